/* The WebGPU device. */
#include "device/webgpu/webgpu.h"

#include <stdio.h>

#include "device/gpu/recipe.h"

static void webgpu_describe(const berth_context *ctx, uint32_t index, berth_device_info *out) {
  static _Thread_local char reason[sizeof((berth_error *)NULL)->message];
  berth__engine *engine;
  berth_error err;
  (void)index;
  snprintf(out->description, sizeof out->description, "WebGPU");
  if (berth__webgpu_try((berth_context *)(uintptr_t)ctx, 1, &engine, &err) == BERTH_OK) {
    snprintf(out->description, sizeof out->description, "%s, WebGPU", engine->name);
    out->available = true;
    berth__webgpu_close(engine);
    return;
  }
  snprintf(reason, sizeof reason, "%s", err.message);
  out->reason = reason;
}

/* Windows begin at the largest alignment that the standard allows; tensors with that alignment never have to share
 * one. */
static berth__limits webgpu_limits(void) {
  berth__limits gpu = berth__gpu_limits("webgpu");
  gpu.min_align = 256;
  return gpu;
}

const berth__device berth__webgpu_device = {
    .name = "webgpu",
    .runs_steps_apart = true,
    .describe = webgpu_describe,
    .limits = webgpu_limits,
    .open = berth__webgpu_open,
    .use_threads = berth__gpu_use_threads,
    .close = berth__webgpu_close,
    .block_create = berth__webgpu_block_create,
    .block_destroy = berth__webgpu_block_destroy,
    .write = berth__webgpu_write,
    .read = berth__webgpu_read,
    .copy = berth__webgpu_copy,
    .fill = berth__webgpu_fill,
    .clock = berth__gpu_clock,
    BERTH__GPU_ROWS,
};
