/* Driver errors in words; waiting; and what happens when a device is lost. */
#include <stdio.h>
#include <time.h>

#include "device/cuda/cuda.h"

#define GRACE 10e3   /* ms to wait for running work before its memory is freed, or else leaked */
#define PATIENCE 2.0 /* ms of busy polling: runs are short, and sleeping takes longer */
#define PAUSE_NS 50000

/* Errors after which the context cannot compute any more. */
static bool is_fatal(berth__cu_result result) {
  switch (result) {
    case BERTH__CU_DEINITIALIZED:
    case BERTH__CU_ECC_UNCORRECTABLE:
    case BERTH__CU_NVLINK_UNCORRECTABLE:
    case BERTH__CU_CONTAINED:
    case BERTH__CU_ILLEGAL_ADDRESS:
    case BERTH__CU_LAUNCH_TIMEOUT:
    case BERTH__CU_CONTEXT_IS_DESTROYED:
    case BERTH__CU_MPS_CLIENT_TERMINATED:
    case BERTH__CU_ASSERT: return true;
    default: return result >= BERTH__CU_HARDWARE_STACK_ERROR && result <= BERTH__CU_LAUNCH_FAILED;
  }
}

static berth_status cuda_status_lose(berth__engine *engine, berth_error *err) {
  engine->is_lost = true;
  berth__log(engine->core.ctx, 2, "cuda: %s", engine->why);
  return berth__fail(err, BERTH_DEVICE_LOST, "%s", engine->why);
}

berth_status berth__cuda_check(berth__engine *engine, berth__cu_result result, const char *doing, berth_error *err) {
  char text[BERTH__CUDA_TEXT];
  if (result == BERTH__CU_SUCCESS) return BERTH_OK;
  berth__cuda_say(engine->cu, result, text);
  if (is_fatal(result)) {
    snprintf(engine->why, sizeof engine->why,
             "the device %.60s was lost while %.60s: %.100s; only a new session can go on from here", engine->name,
             doing, text);
    return cuda_status_lose(engine, err);
  }
  if (result == BERTH__CU_OUT_OF_MEMORY)
    return berth__fail(err, BERTH_DEVICE_NOMEM, "%s has no memory left for %s: %s", engine->name, doing, text);
  const bool is_unsupported = result == BERTH__CU_NO_BINARY_FOR_GPU || result == BERTH__CU_UNSUPPORTED_PTX_VERSION;
  return berth__fail(err, is_unsupported ? BERTH_UNSUPPORTED : BERTH_INTERNAL, "%s: %s while %s", engine->name, text,
                     doing);
}

berth_status berth__cuda_alive(const berth__engine *engine, berth_error *err) {
  return engine->is_lost ? berth__fail(err, BERTH_DEVICE_LOST, "%s", engine->why) : BERTH_OK;
}

/* ---- The context ---- */

static berth_status cuda_status_start(berth__engine *engine, berth_error *err) {
  static const char doing[] = "opening it";
  const berth__cu_calls *cu = engine->cu;
  if (engine->context != NULL) return BERTH_OK;
  return berth__cuda_check(
      engine, berth__cuda_counted(engine, cu->DevicePrimaryCtxRetain(&engine->context, engine->device)), doing, err);
}

static berth_status make_stream(berth__engine *engine, berth_error *err) {
  if (engine->stream != NULL) return BERTH_OK;
  return berth__cuda_check(
      engine, berth__cuda_counted(engine, engine->cu->StreamCreate(&engine->stream, BERTH__CU_STREAM_NON_BLOCKING)),
      "opening it", err);
}

berth_status berth__cuda_enter(berth__engine *engine, berth_error *err) {
  BERTH__TRY(berth__cuda_alive(engine, err));
  BERTH__TRY(cuda_status_start(engine, err));
  BERTH__TRY(berth__cuda_check(engine, engine->cu->CtxPushCurrent(engine->context), "entering its context", err));
  const berth_status status = make_stream(engine, err);
  if (status != BERTH_OK) berth__cuda_leave(engine);
  return status;
}

void berth__cuda_leave(berth__engine *engine) {
  berth__cu_context context;
  (void)engine->cu->CtxPopCurrent(&context);
}

/* ---- Waiting ---- */

static void cuda_status_pause(void) {
  const struct timespec time = {.tv_nsec = PAUSE_NS};
  nanosleep(&time, NULL);
}

/* The result of the work; NOT_READY if it takes longer than `most` ms. */
static berth__cu_result wait_up_to(berth__engine *engine, berth__cu_event event, double most) {
  const double start = berth__now_ms();
  for (;;) {
    const berth__cu_result result =
        event != NULL ? engine->cu->EventQuery(event) : engine->cu->StreamQuery(engine->stream);
    if (result != BERTH__CU_NOT_READY) return result;
    const double passed = berth__now_ms() - start;
    if (passed > most) return result;
    if (passed > PATIENCE) cuda_status_pause();
  }
}

berth_status berth__cuda_wait(berth__engine *engine, berth__cu_event event, const char *doing, berth_error *err) {
  const berth__cu_result result = wait_up_to(engine, event, engine->timeout);
  if (result != BERTH__CU_NOT_READY) return berth__cuda_check(engine, result, doing, err);
  snprintf(engine->why, sizeof engine->why,
           "the device %.60s did not finish %.60s within %.3g s, and is taken for lost (BERTH_CUDA_TIMEOUT sets the "
           "time)",
           engine->name, doing, engine->timeout / 1e3);
  return cuda_status_lose(engine, err);
}

/* Nothing is freed while the device may still use it. */
bool berth__cuda_enter_to_free(berth__engine *engine) {
  if (engine->context == NULL || engine->is_abandoned) return false;
  if (engine->cu->CtxPushCurrent(engine->context) != BERTH__CU_SUCCESS) return false;
  if (engine->stream == NULL || wait_up_to(engine, NULL, GRACE) != BERTH__CU_NOT_READY) return true;
  engine->is_lost = engine->is_abandoned = true;
  snprintf(engine->why, sizeof engine->why, "the device %.80s does not finish what it was given", engine->name);
  berth__log(engine->core.ctx, 2, "cuda: %s; what it works on is never freed", engine->why);
  berth__cuda_leave(engine);
  return false;
}
