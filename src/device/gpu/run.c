/* Running a program: submissions, host steps between them, times for observers, and the checked mode. */
#include "base/cancel.h"
#include "base/thread.h"
#include "device/gpu/program.h"

/* The end of the dispatches of the step that contains dispatch `i`. */
static size_t end_of_step(const berth__program *program, size_t i, size_t end) {
  const uint32_t step = program->recipe->dispatches[i].step;
  while (i < end && program->recipe->dispatches[i].step == step) i++;
  return i;
}

static void gpu_run_tell(const berth__program *program, const berth__observer *observer, size_t dispatch, double ms) {
  const uint32_t step = program->recipe->dispatches[dispatch].step;
  observer->call(observer->user, step, program->plan->order[step], NULL, 0, ms);
}

static berth_status submit_and_wait(berth__program *program, const berth__gpu_part *part, bool timed,
                                    berth_error *err) {
  BERTH__TRY(program->driver->submit(program->now.binding, part, timed, err));
  return program->driver->wait(program->now.binding, err);
}

/* ---- Observed ---- */

static berth_status run_timed(berth__program *program, const berth__gpu_part *part, const berth__observer *observer,
                              berth_error *err) {
  size_t n = 0;
  BERTH__TRY(submit_and_wait(program, part, true, err));
  BERTH__TRY(program->driver->times(program->now.binding, part, program->ms, err));
  for (size_t i = part->first; i < part->end; i = end_of_step(program, i, part->end))
    gpu_run_tell(program, observer, i, program->ms[n++]);
  return BERTH_OK;
}

/* If the device has no clock, the host's clock measures one submission and the wait for it. */
static berth_status run_by_host_clock(berth__program *program, const berth__gpu_part *part,
                                      const berth__observer *observer, berth_error *err) {
  const double start = berth__now_ms();
  BERTH__TRY(submit_and_wait(program, part, false, err));
  gpu_run_tell(program, observer, part->first, berth__now_ms() - start);
  return BERTH_OK;
}

static berth_status run_observed(berth__program *program, const berth__gpu_part *part, const berth__observer *observer,
                                 berth_error *err) {
  const size_t most = program->driver->timed_steps(program->engine);
  for (size_t i = part->first, next; i < part->end; i = next) {
    next = end_of_step(program, i, part->end);
    for (size_t n = 1; n < most && !observer->is_apart && next < part->end; n++)
      next = end_of_step(program, next, part->end);
    const berth__gpu_part some = {.first = i, .end = next, .index = part->index};
    BERTH__TRY(most != 0 ? run_timed(program, &some, observer, err) : run_by_host_clock(program, &some, observer, err));
  }
  return BERTH_OK;
}

static berth_status run_on_host(berth__program *program, const berth__gpu_part *part, const berth__observer *observer,
                                berth_error *err) {
  const uint32_t step = program->recipe->dispatches[part->first].step;
  const double start = berth__now_ms();
  BERTH__TRY(berth__host_steps_run(program->host, step, program->driver->device, program->now.block, err));
  if (observer->call != NULL) gpu_run_tell(program, observer, part->first, berth__now_ms() - start);
  return BERTH_OK;
}

/* A part that fails may have done anything before. */
static void gpu_run_begin(const berth__observer *observer) {
  if (observer->begun != NULL) *observer->begun = UINT32_MAX;
}

static berth_status run_part(berth__program *program, const berth__gpu_part *part, const berth__observer *observer,
                             berth_error *err) {
  gpu_run_begin(observer);
  if (part->is_on_host) return run_on_host(program, part, observer, err);
  if (observer->call != NULL) return run_observed(program, part, observer, err);
  return submit_and_wait(program, part, false, err);
}

/* ---- Checked mode: verifies memory around every step, through the shadow copy if the host cannot access the block
 * ---- */

static unsigned char *seen_bytes(const berth__program *program) {
  const berth__device *device = program->driver->device;
  return device->host != NULL ? device->host(program->now.block) : NULL;
}

static berth_status exchange(const berth__program *program, bool up, berth_error *err) {
  const berth__device *device = program->driver->device;
  const uint64_t size = program->plan->info.arena_size;
  if (seen_bytes(program) != NULL) return BERTH_OK;
  return up ? device->write(program->now.block, 0, program->shadow, size, err)
            : device->read(program->now.block, 0, program->shadow, size, err);
}

static berth_status run_watched(berth__program *program, const berth__gpu_part *part, const berth__observer *observer,
                                berth_error *err) {
  const uint32_t step = program->recipe->dispatches[part->first].step;
  BERTH__TRY(exchange(program, false, err));
  berth__watch_before(program->watch, step);
  if (!program->driver->is_host) berth__watch_stop(program->watch); /* drivers copy whole arenas */
  BERTH__TRY(exchange(program, true, err));
  BERTH__TRY(run_part(program, part, observer, err));
  BERTH__TRY(exchange(program, false, err));
  return berth__watch_after(program->watch, step, err);
}

static berth_status run_checked(berth__program *program, size_t begin, size_t end, const berth__observer *observer,
                                berth_error *err) {
  unsigned char *bytes = seen_bytes(program);
  berth_status status = BERTH_OK;
  berth__watch_start(program->watch, bytes != NULL ? bytes : program->shadow);
  for (size_t i = begin; i < end && status == BERTH_OK; i++) {
    status = berth__check_cancel(observer->cancel, "the run", err);
    if (status == BERTH_OK) status = run_watched(program, &program->parts[i], observer, err);
  }
  berth__watch_stop(program->watch);
  return status;
}

/* ---- Whole runs ---- */

static berth_status run_parts(berth__program *program, size_t begin, size_t end, const berth__observer *observer,
                              berth_error *err) {
  if (program->watch != NULL) return run_checked(program, begin, end, observer, err);
  for (size_t i = begin; i < end; i++) {
    BERTH__TRY(berth__check_cancel(observer->cancel, "the run", err));
    BERTH__TRY(run_part(program, &program->parts[i], observer, err));
  }
  return BERTH_OK;
}

static berth_status gpu_run_check_ready(const berth__program *program, berth_error *err) {
  BERTH__TRY(program->driver->alive(program->engine, err));
  if (program->now.block != NULL) return BERTH_OK;
  return berth__fail(err, BERTH_INTERNAL,
                     "the arena that this program was made for is gone, and it could not be made for another");
}

berth_status berth__gpu_prepare(berth__program *program, const berth__observer *observer, berth_error *err) {
  BERTH__TRY(gpu_run_check_ready(program, err));
  return run_parts(program, 0, program->n_prelude, observer, err);
}

/* Only a plain first part can run while the caller does something else. */
static bool starts_at_once(const berth__program *program) {
  const size_t first = program->n_prelude;
  return program->watch == NULL && program->observer.call == NULL && first < program->n_parts &&
         !program->parts[first].is_on_host;
}

berth_status berth__gpu_submit(berth__program *program, const berth__observer *observer, berth_error *err) {
  BERTH__TRY(gpu_run_check_ready(program, err));
  program->observer = *observer;
  program->is_under_way = false;
  if (!starts_at_once(program)) return BERTH_OK;
  BERTH__TRY(program->driver->submit(program->now.binding, &program->parts[program->n_prelude], false, err));
  program->is_under_way = true;
  gpu_run_begin(observer);
  return BERTH_OK;
}

berth_status berth__gpu_wait(berth__program *program, berth_error *err) {
  const size_t begin = program->n_prelude + program->is_under_way;
  const bool is_under_way = program->is_under_way;
  program->is_under_way = false;
  if (is_under_way) BERTH__TRY(program->driver->wait(program->now.binding, err));
  return run_parts(program, begin, program->n_parts, &program->observer, err);
}

berth_clock berth__gpu_clock(const berth__engine *engine) {
  const berth__gpu_engine *core = (const berth__gpu_engine *)(const void *)engine;
  return core->driver->timed_steps(engine) != 0 ? BERTH_CLOCK_DEVICE : BERTH_CLOCK_HOST;
}
