/* From kernels to pipelines: source, and what the implementation makes of it. */
#include "device/webgpu/program.h"
#include "loop/render.h"

static berth_status check_kernel(const berth__engine *engine, const berth__kernel *kernel, berth_error *err) {
  const berth__wgpu_limits *limits = &engine->limits;
  uint64_t shared = 0;
  for (uint32_t i = 0; i < kernel->n_shared; i++) shared += (uint64_t)kernel->shared[i].count * 4;
  if (kernel->group_size > limits->group_threads || kernel->group_size > limits->group_size[0])
    return berth__fail(err, BERTH_UNSUPPORTED, "it has workgroups of %u threads, which are too many for %s",
                       kernel->group_size, engine->name);
  if (shared > limits->shared_bytes)
    return berth__fail(err, BERTH_UNSUPPORTED, "its workgroups share %llu bytes, and %s has %u",
                       (unsigned long long)shared, engine->name, limits->shared_bytes);
  if (berth__grid_columns(kernel->n_groups) > limits->groups || berth__grid_rows(kernel->n_groups) > limits->groups)
    return berth__fail(err, BERTH_UNSUPPORTED, "it has %llu workgroups, which are too many for %s",
                       (unsigned long long)kernel->n_groups, engine->name);
  return BERTH_OK;
}

static berth_status compile(berth__program *program, berth__webgpu_pipeline *pipeline, const berth__text *source,
                            berth_error *err) {
  berth__engine *engine = program->engine;
  berth__wgpu_wgsl code = {.chain = {.kind = BERTH__WGPU_WGSL}, .code = {source->data, source->size}};
  const berth__wgpu_named desc = {.next = &code.chain};
  berth__webgpu_watch(engine);
  berth__wgpu module = BERTH__WEBGPU_CREATE(engine, ShaderModule, &desc);
  const berth__wgpu_pipeline_desc info = {.layout = program->layouts[pipeline->n_windows],
                                          .compute = {.module = module, .entry = {"main", 4}}};
  if (module != NULL) pipeline->handle = BERTH__WEBGPU_CREATE(engine, ComputePipeline, &info);
  BERTH__WEBGPU_RELEASE(engine, ShaderModule, module);
  return berth__webgpu_check_made(engine, pipeline->handle, "compiling a kernel", err);
}

static berth_status make_pipeline(berth__program *program, berth__webgpu_pipeline *pipeline, berth_error *err) {
  const berth__kernel *kernel = program->recipe->kernels[pipeline->kernel];
  const berth__render_desc desc = {.windows = program->windows,
                                   .window_of = program->windows ? pipeline->window_of : NULL};
  berth__text source;
  BERTH__TRY(check_kernel(program->engine, kernel, err));
  berth__text_init(&source, program->ctx, NULL, NULL);
  berth_status status = berth__render_wgsl(kernel, &desc, &source, err);
  if (status == BERTH_OK) status = berth__text_finish(&source, err);
  if (status == BERTH_OK) status = compile(program, pipeline, &source, err);
  berth__text_free(&source);
  return status;
}

/* The one that does this already, or a new one at the end. */
static berth__webgpu_pipeline *pipeline_for(berth__program *program, uint32_t kernel, const berth__webgpu_windows *w) {
  berth__webgpu_pipeline wanted = {.kernel = kernel, .n_windows = w->count};
  memcpy(wanted.window_of, w->of, sizeof wanted.window_of);
  for (size_t i = 0; i < program->n_pipelines; i++) {
    berth__webgpu_pipeline *pipeline = &program->pipelines[i];
    if (pipeline->kernel == kernel && memcmp(pipeline->window_of, w->of, sizeof w->of) == 0) return pipeline;
  }
  program->pipelines[program->n_pipelines] = wanted;
  return &program->pipelines[program->n_pipelines++];
}

berth_status berth__webgpu_make_pipelines(berth__program *program, berth_error *err) {
  const berth__recipe *recipe = program->recipe;
  const size_t n = recipe->n_dispatches;
  program->pipelines = berth__alloc_array_zero(program->ctx, n, sizeof *program->pipelines);
  program->pipeline_of = berth__alloc_array_zero(program->ctx, n, sizeof *program->pipeline_of);
  if (program->pipelines == NULL || program->pipeline_of == NULL) return berth__fail_nomem(err, "a program");
  for (size_t i = 0; i < n; i++) {
    const uint32_t kernel = recipe->dispatches[i].kernel;
    berth__webgpu_windows windows;
    if (kernel == BERTH__ON_HOST) continue;
    BERTH__TRY(berth__webgpu_windows_of(program, &recipe->dispatches[i], &windows, err));
    berth__webgpu_pipeline *pipeline = pipeline_for(program, kernel, &windows);
    program->pipeline_of[i] = (uint32_t)(pipeline - program->pipelines);
    if (pipeline->handle != NULL) continue;
    berth__progress(program->ctx, "compiling kernels", i, n);
    const berth_status status = make_pipeline(program, pipeline, err);
    if (status != BERTH_OK) return berth__fail_within(err, status, "kernel '%s'", recipe->kernels[kernel]->name);
  }
  berth__progress(program->ctx, "compiling kernels", n, n);
  return BERTH_OK;
}

void berth__webgpu_free_pipelines(berth__program *program) {
  for (size_t i = 0; program->pipelines != NULL && i < program->n_pipelines; i++)
    BERTH__WEBGPU_RELEASE(program->engine, ComputePipeline, program->pipelines[i].handle);
  berth__free(program->ctx, program->pipelines);
  berth__free(program->ctx, program->pipeline_of);
}
