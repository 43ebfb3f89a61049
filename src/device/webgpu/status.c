/* Waiting for answers, errors of the implementation, and what happens when a device is lost. */
#include <stdio.h>

#include "base/thread.h"
#include "device/webgpu/webgpu.h"

void berth__webgpu_copy_text(char *out, size_t size, berth__wgpu_string text) {
  const size_t length = text.data == NULL ? 0 : text.length == SIZE_MAX ? strlen(text.data) : text.length;
  const size_t n = length < size ? length : size - 1;
  for (size_t i = 0; i < n; i++) out[i] = text.data[i] == '\n' || text.data[i] == '\t' ? ' ' : text.data[i];
  out[n] = '\0';
}

/* ---- Callbacks ---- */

void berth__webgpu_on_error(const berth__wgpu *device, uint32_t type, berth__wgpu_string message, void *user,
                            void *unused) {
  (void)device, (void)type, (void)unused;
  berth__engine *engine = user;
  if (!engine->has_failed)
    berth__webgpu_copy_text(engine->said, sizeof engine->said, message); /* the first error is the cause */
  engine->has_failed = true;
}

void berth__webgpu_on_lost(const berth__wgpu *device, uint32_t reason, berth__wgpu_string message, void *user,
                           void *unused) {
  (void)device, (void)unused;
  berth__engine *engine = user;
  char text[200];
  if (reason == BERTH__WGPU_DESTROYED || engine->is_lost) return;
  berth__webgpu_copy_text(text, sizeof text, message);
  snprintf(engine->why, sizeof engine->why, "the device %.80s was lost (%s); only a new session can go on from here",
           engine->name, text);
  engine->is_lost = true;
}

static void on_scope(uint32_t status, uint32_t type, berth__wgpu_string message, void *user, void *unused) {
  (void)unused;
  berth__webgpu_answer *answer = &((berth__engine *)user)->answer;
  berth__webgpu_copy_text(answer->text, sizeof answer->text, message);
  answer->status = status;
  answer->type = type;
  answer->is_here = true;
}

void berth__webgpu_on_object(uint32_t status, berth__wgpu object, berth__wgpu_string message, void *user,
                             void *unused) {
  (void)unused;
  berth__webgpu_answer *answer = &((berth__engine *)user)->answer;
  berth__webgpu_copy_text(answer->text, sizeof answer->text, message);
  answer->status = status;
  answer->object = object;
  answer->is_here = true;
}

/* ---- Waiting ---- */

berth_status berth__webgpu_alive(const berth__engine *engine, berth_error *err) {
  return engine->is_lost ? berth__fail(err, BERTH_DEVICE_LOST, "%s", engine->why) : BERTH_OK;
}

berth_status berth__webgpu_wait(berth__engine *engine, const char *doing, berth_error *err) {
  const double start = berth__now_ms();
  for (uint32_t round = 0; !engine->answer.is_here; round++) {
    engine->gpu->InstanceProcessEvents(engine->instance);
    if (engine->answer.is_here) break;
    if (engine->is_lost) return berth__webgpu_alive(engine, err);
    const double left = start + engine->timeout - berth__now_ms();
    if (left < 0) {
      snprintf(engine->why, sizeof engine->why,
               "the device %.60s did not finish %s within %.3g s, and is taken for lost (BERTH_WEBGPU_TIMEOUT sets the "
               "time)",
               engine->name, doing, engine->timeout / 1e3);
      engine->is_lost = true;
      return berth__webgpu_alive(engine, err);
    }
    engine->gpu->rest(round, left);
  }
  return BERTH_OK;
}

/* ---- Errors ---- */

static const uint32_t filters[] = {BERTH__WGPU_FILTER_VALIDATION, BERTH__WGPU_FILTER_MEMORY,
                                   BERTH__WGPU_FILTER_INTERNAL};
#define N_FILTERS (sizeof filters / sizeof filters[0])

void berth__webgpu_watch(berth__engine *engine) {
  for (size_t i = 0; i < N_FILTERS; i++) engine->gpu->DevicePushErrorScope(engine->device, filters[i]);
}

static berth_status fail_said(const berth__engine *engine, uint32_t type, const char *doing, const char *said,
                              berth_error *err) {
  if (type == BERTH__WGPU_OUT_OF_MEMORY)
    return berth__fail(err, BERTH_DEVICE_NOMEM, "%s has no memory left for %s: %s", engine->name, doing, said);
  return berth__fail(err, BERTH_INTERNAL, "%s while %s: %s", engine->name, doing, said);
}

/* The errors caught by the scope that was popped. Failing to pop a scope is an error, too. */
static berth_status webgpu_status_of_scope(const berth__engine *engine, const char *doing, berth_error *err) {
  const berth__webgpu_answer *answer = &engine->answer;
  if (answer->status == BERTH__WGPU_SUCCESS)
    return answer->type > BERTH__WGPU_NO_ERROR ? fail_said(engine, answer->type, doing, answer->text, err) : BERTH_OK;
  BERTH__TRY(berth__webgpu_alive(engine, err));
  return berth__fail(err, BERTH_INTERNAL, "%s did not report whether %s succeeded: %s", engine->name, doing,
                     answer->text);
}

berth_status berth__webgpu_check(berth__engine *engine, const char *doing, berth_error *err) {
  const berth__wgpu_callback callback = {
      .mode = BERTH__WGPU_PROCESS_EVENTS, .call = (berth__wgpu_fn)on_scope, .user1 = engine};
  berth_status status = BERTH_OK;
  for (size_t i = 0; i < N_FILTERS; i++) { /* pops all of them, even after an error */
    engine->answer = (berth__webgpu_answer){0};
    engine->gpu->DevicePopErrorScope(engine->device, callback);
    const berth_status waited = berth__webgpu_wait(engine, doing, status == BERTH_OK ? err : NULL);
    if (status != BERTH_OK) continue;
    status = waited == BERTH_OK ? webgpu_status_of_scope(engine, doing, err) : waited;
  }
  return status;
}

berth_status berth__webgpu_check_made(berth__engine *engine, berth__wgpu object, const char *doing, berth_error *err) {
  BERTH__TRY(berth__webgpu_check(engine, doing, err));
  return object != NULL
             ? BERTH_OK
             : fail_said(engine, BERTH__WGPU_INTERNAL, doing, "it returned nothing and reported no error", err);
}

berth_status berth__webgpu_hear(berth__engine *engine, const char *doing, berth_error *err) {
  BERTH__TRY(berth__webgpu_alive(engine, err));
  if (!engine->has_failed) return BERTH_OK;
  engine->has_failed = false;
  return fail_said(engine, BERTH__WGPU_INTERNAL, doing, engine->said, err);
}
