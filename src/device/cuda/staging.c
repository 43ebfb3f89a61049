/* Pinned memory between host and device. */
#include "device/cuda/cuda.h"

static const char doing[] = "copying";

static berth_status cuda_staging_make_lane(berth__engine *engine, berth__cuda_lane *lane, uint64_t offset,
                                           berth_error *err) {
  lane->data = (unsigned char *)engine->staging.data + offset;
  return berth__cuda_check(
      engine, berth__cuda_counted(engine, engine->cu->EventCreate(&lane->event, BERTH__CU_EVENT_DISABLE_TIMING)), doing,
      err);
}

static berth_status cuda_staging_make(berth__engine *engine, berth_error *err) {
  berth__cuda_staging *staging = &engine->staging;
  const uint64_t size = 2 * BERTH__CUDA_LANES * BERTH__CUDA_LANE_SIZE;
  BERTH__TRY(berth__cuda_check(engine,
                               berth__cuda_counted(engine, engine->cu->MemHostAlloc(&staging->data, (size_t)size, 0)),
                               "pinned memory of the host", err));
  for (uint32_t i = 0; i < BERTH__CUDA_LANES; i++) {
    BERTH__TRY(cuda_staging_make_lane(engine, &staging->up[i], 2 * i * BERTH__CUDA_LANE_SIZE, err));
    BERTH__TRY(cuda_staging_make_lane(engine, &staging->down[i], (2 * i + 1) * BERTH__CUDA_LANE_SIZE, err));
  }
  return BERTH_OK;
}

berth_status berth__cuda_staging_need(berth__engine *engine, berth_error *err) {
  if (engine->staging.data != NULL) return BERTH_OK;
  const berth_status status = cuda_staging_make(engine, err);
  if (status != BERTH_OK) berth__cuda_staging_destroy(engine);
  return status;
}

void berth__cuda_staging_destroy(berth__engine *engine) {
  berth__cuda_staging *staging = &engine->staging;
  for (uint32_t i = 0; i < BERTH__CUDA_LANES; i++) {
    BERTH__CUDA_FREE(engine, EventDestroy, staging->up[i].event);
    BERTH__CUDA_FREE(engine, EventDestroy, staging->down[i].event);
  }
  BERTH__CUDA_FREE(engine, MemFreeHost, staging->data);
  *staging = (berth__cuda_staging){0};
}

berth_status berth__cuda_lane_mark(berth__engine *engine, berth__cuda_lane *lane, berth_error *err) {
  BERTH__TRY(berth__cuda_check(engine, engine->cu->EventRecord(lane->event, engine->stream), doing, err));
  lane->is_busy = true;
  return BERTH_OK;
}

berth_status berth__cuda_lane_wait(berth__engine *engine, berth__cuda_lane *lane, berth_error *err) {
  if (!lane->is_busy) return BERTH_OK;
  BERTH__TRY(berth__cuda_wait(engine, lane->event, doing, err));
  lane->is_busy = false;
  return BERTH_OK;
}

berth_status berth__cuda_staging_open(berth__engine *engine, berth__cuda_lane **out, berth_error *err) {
  berth__cuda_staging *staging = &engine->staging;
  *out = &staging->up[staging->open];
  return staging->used == 0 ? berth__cuda_lane_wait(engine, *out, err) : BERTH_OK;
}

/* When a lane is full, its event is recorded and the next one is opened. If recording fails, nothing tells when the
 * lane is free, so this waits for all work. */
berth_status berth__cuda_staging_used(berth__engine *engine, uint64_t size, berth_error *err) {
  berth__cuda_staging *staging = &engine->staging;
  staging->used += size;
  if (staging->used < BERTH__CUDA_LANE_SIZE) return BERTH_OK;
  const berth_status status = berth__cuda_lane_mark(engine, &staging->up[staging->open], err);
  staging->open = (staging->open + 1) % BERTH__CUDA_LANES;
  staging->used = 0;
  if (status != BERTH_OK) (void)berth__cuda_wait(engine, NULL, doing, NULL);
  return status;
}
