/* Running: records, submits, and waits for dispatches. */
#include "device/webgpu/code.h"
#include "kernel/render.h"

static const char running[] = "running a program";

static void webgpu_record_dispatch(const berth__gpu_binding *binding, berth__wgpu pass, size_t i) {
  const berth__gpu_code *code = binding->code;
  const berth__wgpu_calls *gpu = binding->engine->gpu;
  const uint64_t n_groups = code->recipe->kernels[code->recipe->dispatches[i].kernel]->n_groups;
  const berth__wgpu group = binding->groups[code->n_groups > 1 ? i : 0];
  const uint32_t begins = (uint32_t)i * code->stride;
  gpu->ComputePassEncoderSetPipeline(pass, code->pipelines[code->pipeline_of[i]].handle);
  gpu->ComputePassEncoderSetBindGroup(pass, 0, group, binding->engine->binds_each ? 0 : 1, &begins);
  gpu->ComputePassEncoderDispatchWorkgroups(pass, berth__grid_columns(n_groups), berth__grid_rows(n_groups), 1);
}

static void record_pass(const berth__gpu_binding *binding, berth__wgpu pass, size_t begin, size_t end) {
  for (size_t i = begin; i < end; i++) webgpu_record_dispatch(binding, pass, i);
  berth__webgpu_end_pass(binding->engine, pass);
}

/* Every step has its own pass, timed by the device's clock. Returns the bytes of the timestamps. */
static uint64_t record_timed(const berth__gpu_binding *binding, berth__wgpu encoder, const berth__gpu_part *part) {
  const berth__dispatch *d = binding->code->recipe->dispatches;
  uint32_t n = 0;
  for (size_t i = part->first, next; i < part->end; i = next) {
    for (next = i; next < part->end && d[next].step == d[i].step;) next++;
    record_pass(binding, berth__webgpu_begin_timed(binding->engine, encoder, n++), i, next);
  }
  return berth__webgpu_fetch_times(binding->engine, encoder, n);
}

/* The end is detected by a word that is copied after it, or by the timestamps. */
static berth_status webgpu_record_submit(berth__gpu_binding *binding, const berth__gpu_part *part, bool timed,
                                         berth_error *err) {
  berth__engine *engine = binding->engine;
  BERTH__TRY(berth__webgpu_alive(engine, err));
  const berth__wgpu encoder = berth__webgpu_record(engine);
  binding->timed_bytes = 0;
  if (timed) {
    binding->timed_bytes = record_timed(binding, encoder, part);
  } else {
    record_pass(binding, berth__webgpu_begin_pass(engine, encoder, NULL), part->first, part->end);
    engine->gpu->CommandEncoderCopyBufferToBuffer(encoder, binding->block->buffer, 0, engine->staging, 0, 4);
  }
  berth__webgpu_submit(engine, encoder);
  return BERTH_OK;
}

static berth_status webgpu_record_wait_for(berth__gpu_binding *binding, berth_error *err) {
  return berth__webgpu_fetch(binding->engine, 0, binding->ticks, binding->timed_bytes, running, err);
}

static berth_status webgpu_record_times(berth__gpu_binding *binding, const berth__gpu_part *part, double *ms,
                                        berth_error *err) {
  (void)part, (void)err;
  const uint32_t n = (uint32_t)(binding->timed_bytes / (2 * sizeof(uint64_t)));
  for (uint32_t i = 0; i < n; i++) ms[i] = berth__webgpu_time_of(binding->ticks, i);
  return BERTH_OK;
}

static size_t webgpu_record_timed_steps(const berth__engine *engine) {
  return engine->times != NULL ? BERTH__WEBGPU_TIMED : 0;
}

const berth__gpu_driver berth__webgpu_driver = {.device = &berth__webgpu_device,
                                                .alive = berth__webgpu_alive,
                                                .code_create = berth__webgpu_code_create,
                                                .make_pipeline = berth__webgpu_make_pipeline,
                                                .code_destroy = berth__webgpu_code_destroy,
                                                .bind = berth__webgpu_bind,
                                                .unbind = berth__webgpu_unbind,
                                                .submit = webgpu_record_submit,
                                                .wait = webgpu_record_wait_for,
                                                .timed_steps = webgpu_record_timed_steps,
                                                .times = webgpu_record_times};
