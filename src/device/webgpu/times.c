/* Times by the device's clock: every step gets a pass with timestamps at its beginning and end. */
#include "device/webgpu/webgpu.h"

static bool has_calls(const berth__wgpu_calls *gpu) {
  return gpu->AdapterHasFeature != NULL && gpu->DeviceCreateQuerySet != NULL && gpu->QuerySetRelease != NULL &&
         gpu->CommandEncoderResolveQuerySet != NULL;
}

size_t berth__webgpu_times_features(const berth__engine *engine, uint32_t features[2]) {
  static const uint32_t wanted[] = {BERTH__WGPU_FEATURE_TIMES, BERTH__WGPU_FEATURE_TIMES_BEFORE};
  size_t n = 0;
  for (size_t i = 0; i < 2; i++)
    if (has_calls(engine->gpu) && engine->gpu->AdapterHasFeature(engine->adapter, wanted[i])) features[n++] = wanted[i];
  return n;
}

/* This shows whether one of the two features was the right one. */
berth_status berth__webgpu_make_times(berth__engine *engine, berth_error *err) {
  const berth__wgpu_query_set_desc desc = {.kind = BERTH__WGPU_QUERY_TIMES, .count = 2 * BERTH__WEBGPU_TIMED};
  uint32_t features[2];
  if (berth__webgpu_times_features(engine, features) == 0) return BERTH_OK;
  berth__webgpu_watch(engine);
  engine->times = BERTH__WEBGPU_CREATE(engine, QuerySet, &desc);
  const berth_status status = berth__webgpu_check_made(engine, engine->times, "making a query set", err);
  if (status == BERTH_OK)
    return berth__webgpu_make_buffer(engine, BERTH__WGPU_QUERY_RESOLVE | BERTH__WGPU_COPY_SRC,
                                     desc.count * sizeof(uint64_t), &engine->ticks, err);
  BERTH__WEBGPU_RELEASE(engine, QuerySet, engine->times);
  return status == BERTH_DEVICE_LOST ? status : BERTH_OK;
}

void berth__webgpu_free_times(berth__engine *engine) {
  berth__webgpu_free_buffer(engine, &engine->ticks);
  BERTH__WEBGPU_RELEASE(engine, QuerySet, engine->times);
}

berth__wgpu berth__webgpu_begin_timed(berth__engine *engine, berth__wgpu encoder, uint32_t pass) {
  const berth__wgpu_pass_times times = {.query_set = engine->times, .begin = 2 * pass, .end = 2 * pass + 1};
  const berth__wgpu_pass_desc desc = {.times = &times};
  return berth__webgpu_begin_pass(engine, encoder, &desc);
}

uint64_t berth__webgpu_fetch_times(berth__engine *engine, berth__wgpu encoder, uint32_t n_passes) {
  const uint64_t size = n_passes * 2 * sizeof(uint64_t);
  engine->gpu->CommandEncoderResolveQuerySet(encoder, engine->times, 0, 2 * n_passes, engine->ticks, 0);
  engine->gpu->CommandEncoderCopyBufferToBuffer(encoder, engine->ticks, 0, engine->staging, 0, size);
  return size;
}

double berth__webgpu_time_of(const uint64_t *ticks, uint32_t pass) {
  const uint64_t begin = ticks[2 * pass], end = ticks[2 * pass + 1];
  return end > begin ? (double)(end - begin) / 1e6 : 0;
}
