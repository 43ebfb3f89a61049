/* WebGPU as a device. */
#include "device/webgpu/webgpu.h"

#include <stdio.h>

#include "device/gpu/profile.h"
#include "device/gpu/recipe.h"

static void describe(const berth_context *ctx, uint32_t index, berth_device_info *out) {
  static _Thread_local char reason[sizeof((berth_error *)NULL)->message];
  berth__engine *engine;
  berth_error err;
  (void)index;
  snprintf(out->description, sizeof out->description, "WebGPU");
  if (berth__webgpu_try((berth_context *)(uintptr_t)ctx, &engine, &err) == BERTH_OK) {
    snprintf(out->description, sizeof out->description, "%s, WebGPU", engine->name);
    out->available = true;
    berth__webgpu_close(engine);
    return;
  }
  snprintf(reason, sizeof reason, "%s", err.message);
  out->reason = reason;
}

/* A window begins where the standard lets one begin at worst; tensors that do so too never have to share one. */
static berth__limits limits(void) {
  berth__limits gpu = berth__gpu_limits("webgpu");
  gpu.min_align = 256;
  return gpu;
}

static void profile(const berth__engine *engine, berth__profile *out) {
  berth__profile_set(out, engine->name, &engine->loops);
}

static berth_clock step_clock(const berth__engine *engine) {
  return engine->times != NULL ? BERTH_CLOCK_DEVICE : BERTH_CLOCK_HOST;
}

const berth__device berth__webgpu_device = {
    .name = "webgpu",
    .describe = describe,
    .limits = limits,
    .profile = profile,
    .open = berth__webgpu_open,
    .close = berth__webgpu_close,
    .block_create = berth__webgpu_block_create,
    .block_destroy = berth__webgpu_block_destroy,
    .write = berth__webgpu_write,
    .read = berth__webgpu_read,
    .copy = berth__webgpu_copy,
    .fill = berth__webgpu_fill,
    .program_create = berth__webgpu_program_create,
    .program_destroy = berth__webgpu_program_destroy,
    .program_bind = berth__webgpu_program_bind,
    .prepare = berth__webgpu_prepare,
    .clock = step_clock,
    .submit = berth__webgpu_start,
    .wait = berth__webgpu_end,
};
