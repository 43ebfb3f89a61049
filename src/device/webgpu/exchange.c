/* Subgroup exchange, an optional feature of WebGPU. */
#include "device/webgpu/webgpu.h"

static const char trial[] =
    "enable subgroups;\n"
    "@group(0) @binding(0) var<storage, read_write> w: array<u32>;\n"
    "@compute @workgroup_size(32) fn main(@builtin(local_invocation_index) lane: u32) {\n"
    "  w[lane] = subgroupShuffleXor(lane, 1u);\n"
    "}\n";

/* The feature has one number in the standard and another in earlier versions; each stands for something harmless in the
 * other. */
size_t berth__webgpu_exchange_features(const berth__engine *engine, uint32_t features[2]) {
  static const uint32_t wanted[] = {BERTH__WGPU_FEATURE_SUBGROUPS, BERTH__WGPU_FEATURE_SUBGROUPS_BEFORE};
  size_t n = 0;
  for (size_t i = 0; i < 2; i++)
    if (engine->gpu->AdapterHasFeature != NULL && engine->gpu->AdapterHasFeature(engine->adapter, wanted[i]))
      features[n++] = wanted[i];
  return n;
}

/* Compiling a shader that needs the feature shows whether one of the numbers was right. */
berth_status berth__webgpu_try_exchange(berth__engine *engine, berth_error *err) {
  berth__kernel_limits *limits = &engine->core.profile.loops;
  uint32_t features[2];
  limits->exchanges = false;
  if (!engine->has_even_lanes || berth__webgpu_exchange_features(engine, features) == 0) return BERTH_OK;
  berth__wgpu_wgsl wgsl = {.chain = {.kind = BERTH__WGPU_WGSL}, .code = {trial, sizeof trial - 1}};
  const berth__wgpu_named desc = {.next = &wgsl.chain};
  berth__webgpu_watch(engine);
  berth__wgpu module = BERTH__WEBGPU_CREATE(engine, ShaderModule, &desc);
  const berth_status status = berth__webgpu_check_made(engine, module, "trying subgroups", err);
  BERTH__WEBGPU_RELEASE(engine, ShaderModule, module);
  limits->exchanges = status == BERTH_OK;
  return status == BERTH_DEVICE_LOST ? status : BERTH_OK;
}
