/* The CUDA device. */
#include "device/cuda/cuda.h"

#include "device/gpu/recipe.h"

static const char *const names[BERTH__CUDA_MAX_DEVICES] = {
    "cuda",   "cuda:1", "cuda:2",  "cuda:3",  "cuda:4",  "cuda:5",  "cuda:6",  "cuda:7",
    "cuda:8", "cuda:9", "cuda:10", "cuda:11", "cuda:12", "cuda:13", "cuda:14", "cuda:15"};

static void cuda_describe(const berth_context *ctx, uint32_t index, berth_device_info *out) {
  static _Thread_local char reason[BERTH__CUDA_TEXT];
  out->name = names[index < BERTH__CUDA_MAX_DEVICES ? index : 0];
  out->available = berth__cuda_describe(ctx, index, out, reason);
  out->reason = out->available ? NULL : reason;
}

static berth__limits cuda_limits(void) { return berth__gpu_limits("cuda"); }

const berth__device berth__cuda_device = {
    .name = "cuda",
    .count = berth__cuda_count,
    .describe = cuda_describe,
    .limits = cuda_limits,
    .multiplies = true,
    .exchanges = true,
    .has_dot4 = true,
    .open = berth__cuda_open,
    .use_threads = berth__gpu_use_threads,
    .close = berth__cuda_close,
    .block_create = berth__cuda_block_create,
    .block_destroy = berth__cuda_block_destroy,
    .write = berth__cuda_write,
    .read = berth__cuda_read,
    .copy = berth__cuda_copy,
    .fill = berth__cuda_fill,
    .memory = berth__cuda_memory,
    .write_memory = berth__cuda_write_memory,
    .read_memory = berth__cuda_read_memory,
    .pack_kernels = berth__cuda_pack_kernels,
    .clock = berth__gpu_clock,
    BERTH__GPU_ROWS,
};
