/* Opening and closing a device. */
#include <stdio.h>
#include <stdlib.h>

#include "device/gpu/profile.h"
#include "device/webgpu/webgpu.h"

static const char doing[] = "opening it";

static void webgpu_engine_read_options(berth__engine *engine, bool is_cpu) {
  const berth__options *options = &engine->core.ctx->options;
  /* A CPU that plays a GPU may take minutes for a large model; a GPU that takes so long hangs. */
  const double usual = is_cpu ? 600 : 60;
  const uint64_t binding = options->webgpu_max_binding;
  engine->timeout = (options->webgpu_timeout > 0 ? options->webgpu_timeout : usual) * 1e3;
  if (binding != 0 && binding < engine->max_binding) engine->max_binding = binding;
  engine->binds_each = options->webgpu_offsets != NULL && strcmp(options->webgpu_offsets, "static") == 0;
}

/* ---- Finding an adapter ---- */

static berth_status webgpu_engine_find(berth__engine *engine, berth_error *err) {
  const berth__wgpu_adapter_options options = {.level = BERTH__WGPU_CORE, .power = BERTH__WGPU_HIGH_PERFORMANCE};
  const berth__wgpu_callback callback = {
      .mode = BERTH__WGPU_PROCESS_EVENTS, .call = (berth__wgpu_fn)berth__webgpu_on_object, .user1 = engine};
  const char *reason;
  snprintf(engine->name, sizeof engine->name, "WebGPU");
  engine->timeout = 60e3;
  engine->gpu = berth__wgpu_library(engine->core.ctx->options.webgpu_library, &reason);
  if (engine->gpu == NULL) return berth__fail(err, BERTH_UNSUPPORTED, "%s", reason);
  engine->instance = engine->gpu->CreateInstance(NULL); /* its descriptor differs between implementations */
  if (engine->instance == NULL) return berth__fail(err, BERTH_UNSUPPORTED, "WebGPU does not start");
  engine->gpu->InstanceRequestAdapter(engine->instance, &options, callback);
  BERTH__TRY(berth__webgpu_wait(engine, "finding a GPU", err));
  engine->adapter = engine->answer.object;
  if (engine->answer.status != BERTH__WGPU_SUCCESS || engine->adapter == NULL)
    return berth__fail(err, BERTH_UNSUPPORTED, "WebGPU finds no usable GPU (%.150s)", engine->answer.text);
  return BERTH_OK;
}

/* ---- The device ---- */

static void ask_for(berth__wgpu_limits *limits, const berth__wgpu_limits *there) {
  memset(limits, 0xff, sizeof *limits); /* BERTH__WGPU_ANY_* */
  limits->next = NULL;
  limits->storage_buffers = there->storage_buffers;
  limits->storage_binding = there->storage_binding;
  limits->buffer = there->buffer;
  limits->shared_bytes = there->shared_bytes;
  limits->group_threads = there->group_threads;
  limits->group_size[0] = there->group_size[0];
  limits->groups = there->groups;
  limits->uniform_align = there->uniform_align;
  limits->storage_align = there->storage_align;
}

static berth_status request_device(berth__engine *engine, berth_error *err) {
  berth__wgpu_limits limits;
  uint32_t features[4];
  ask_for(&limits, &engine->limits);
  const size_t n_times = berth__webgpu_times_features(engine, features);
  const berth__wgpu_device_desc desc = {
      .n_features = n_times + berth__webgpu_exchange_features(engine, features + n_times),
      .features = features,
      .limits = &limits,
      .lost = {.mode = BERTH__WGPU_SPONTANEOUS, .call = (berth__wgpu_fn)berth__webgpu_on_lost, .user1 = engine},
      .error = {.call = (berth__wgpu_fn)berth__webgpu_on_error, .user1 = engine}};
  const berth__wgpu_callback callback = {
      .mode = BERTH__WGPU_PROCESS_EVENTS, .call = (berth__wgpu_fn)berth__webgpu_on_object, .user1 = engine};
  engine->answer = (berth__webgpu_answer){0};
  engine->gpu->AdapterRequestDevice(engine->adapter, &desc, callback);
  BERTH__TRY(berth__webgpu_wait(engine, doing, err));
  engine->device = engine->answer.object;
  if (engine->answer.status != BERTH__WGPU_SUCCESS || engine->device == NULL)
    return berth__fail(err, BERTH_UNSUPPORTED, "%s cannot be opened: %s", engine->name, engine->answer.text);
  engine->queue = engine->gpu->DeviceGetQueue(engine->device);
  return BERTH_OK;
}

#define GROUP_SIZE 256u /* threads: more seldom help */

static uint32_t webgpu_engine_lesser(uint32_t a, uint32_t b) { return a < b ? a : b; }

static berth_status webgpu_engine_read_properties(berth__engine *engine, bool *is_cpu, berth_error *err) {
  berth__wgpu_adapter_info info = {0};
  const berth__wgpu_limits *limits = &engine->limits;
  engine->gpu->AdapterGetInfo(engine->adapter, &info);
  *is_cpu = info.kind == BERTH__WGPU_ADAPTER_CPU;
  if (info.device.data != NULL && info.device.length != 0)
    berth__webgpu_copy_text(engine->name, sizeof engine->name, info.device);
  engine->gpu->AdapterGetLimits(engine->adapter, &engine->limits);
  engine->max_binding = limits->storage_binding;
  engine->core.max_threads = webgpu_engine_lesser(limits->group_threads, limits->group_size[0]);
  engine->core.max_shared = limits->shared_bytes;
  engine->core.max_groups = limits->groups;
  const berth__kernel_limits loops = {
      .group_size = webgpu_engine_lesser(GROUP_SIZE, engine->core.max_threads),
      .lanes = info.least_subgroup != 0 && info.least_subgroup <= 128 ? info.least_subgroup : 32,
      .shared_bytes = limits->shared_bytes > 16 ? limits->shared_bytes - 16 : 0, /* the renderer uses a word itself */
      .shares_well = !*is_cpu};
  engine->has_even_lanes = loops.lanes == info.most_subgroup && loops.lanes > 1;
  berth__profile_set(&engine->core.profile, engine->name, &loops);
  engine->gpu->AdapterInfoFreeMembers(info);
  if (info.backend == BERTH__WGPU_BACKEND_NULL) /* Dawn's adapter if there is no driver */
    return berth__fail(err, BERTH_UNSUPPORTED, "WebGPU finds no driver, only a null backend that computes nothing");
  return BERTH_OK;
}

static berth_status webgpu_engine_open(berth__engine *engine, berth_error *err) {
  bool is_cpu;
  BERTH__TRY(webgpu_engine_find(engine, err));
  BERTH__TRY(webgpu_engine_read_properties(engine, &is_cpu, err));
  webgpu_engine_read_options(engine, is_cpu);
  BERTH__TRY(request_device(engine, err));
  BERTH__TRY(berth__webgpu_try_exchange(engine, err));
  return berth__webgpu_make_times(engine, err);
}

berth_status berth__webgpu_try(berth_context *ctx, uint32_t n_threads, berth__engine **out, berth_error *err) {
  *out = NULL;
  berth__engine *engine = berth__alloc_zero(ctx, sizeof *engine);
  if (engine == NULL) return berth__fail_nomem(err, "the device 'webgpu'");
  berth__gpu_start(engine, ctx, &berth__webgpu_driver, n_threads);
  berth_status status = webgpu_engine_open(engine, err);
  if (status != BERTH_OK) {
    berth__webgpu_close(engine);
    return status;
  }
  *out = engine;
  return BERTH_OK;
}

berth_status berth__webgpu_open(berth_context *ctx, const char *which, uint32_t n_threads, berth__engine **out,
                                berth_error *err) {
  (void)which;
  const berth_status status = berth__webgpu_try(ctx, n_threads, out, err);
  if (status != BERTH_UNSUPPORTED) return status;
  return berth__fail_within(err, status, "the device 'webgpu' cannot be used here");
}

void berth__webgpu_close(berth__engine *engine) {
  if (engine == NULL) return;
  const berth__wgpu_calls *gpu = engine->gpu;
  if (engine->device != NULL) {
    berth__webgpu_free_buffer(engine, &engine->staging);
    berth__webgpu_free_buffer(engine, &engine->moving);
    berth__webgpu_free_times(engine);
    berth__log(engine->core.ctx, 0, "webgpu: %s closed: %llu submissions; left behind: %llu objects", engine->name,
               (unsigned long long)engine->counts.submissions, (unsigned long long)engine->counts.objects);
    gpu->QueueRelease(engine->queue);
    gpu->DeviceDestroy(engine->device); /* calls on_lost, which must still find the engine */
    gpu->DeviceRelease(engine->device);
  }
  berth__gpu_end(engine);
  if (engine->adapter != NULL) gpu->AdapterRelease(engine->adapter);
  if (engine->instance != NULL) gpu->InstanceRelease(engine->instance);
  berth__free(engine->core.ctx, engine);
}
