/* From kernels to pipelines: source, and the implementation's compilation. */
#include "device/webgpu/code.h"
#include "kernel/render.h"

static berth_status webgpu_pipeline_compile(berth__gpu_code *code, berth__webgpu_pipeline *pipeline,
                                            const berth__text *source, berth_error *err) {
  berth__engine *engine = code->engine;
  berth__wgpu_wgsl wgsl = {.chain = {.kind = BERTH__WGPU_WGSL}, .code = {source->data, source->size}};
  const berth__wgpu_named desc = {.next = &wgsl.chain};
  berth__webgpu_watch(engine);
  berth__wgpu module = BERTH__WEBGPU_CREATE(engine, ShaderModule, &desc);
  const berth__wgpu_pipeline_desc info = {.layout = code->layouts[pipeline->n_windows],
                                          .compute = {.module = module, .entry = {"main", 4}}};
  if (module != NULL) pipeline->handle = BERTH__WEBGPU_CREATE(engine, ComputePipeline, &info);
  BERTH__WEBGPU_RELEASE(engine, ShaderModule, module);
  return berth__webgpu_check_made(engine, pipeline->handle, "compiling a kernel", err);
}

static berth_status webgpu_make_pipeline(berth__gpu_code *code, berth__webgpu_pipeline *pipeline, berth_error *err) {
  const berth__kernel *kernel = code->recipe->kernels[pipeline->kernel];
  const berth__render_desc desc = {.windows = code->windows, .window_of = code->windows ? pipeline->window_of : NULL};
  berth__text source;
  berth__text_init(&source, code->engine->core.ctx, NULL, NULL);
  berth_status status = berth__render_wgsl(kernel, &desc, &source, err);
  if (status == BERTH_OK) status = berth__text_finish(&source, err);
  if (status == BERTH_OK) status = webgpu_pipeline_compile(code, pipeline, &source, err);
  berth__text_free(&source);
  return status;
}

/* An existing pipeline that fits, or a new one at the end. */
static berth__webgpu_pipeline *pipeline_for(berth__gpu_code *code, uint32_t kernel, const berth__webgpu_windows *w) {
  berth__webgpu_pipeline wanted = {.kernel = kernel, .n_windows = w->count};
  memcpy(wanted.window_of, w->of, sizeof wanted.window_of);
  for (size_t i = 0; i < code->n_pipelines; i++) {
    berth__webgpu_pipeline *pipeline = &code->pipelines[i];
    if (pipeline->kernel == kernel && memcmp(pipeline->window_of, w->of, sizeof w->of) == 0) return pipeline;
  }
  code->pipelines[code->n_pipelines] = wanted;
  return &code->pipelines[code->n_pipelines++];
}

berth_status berth__webgpu_make_pipeline(berth__gpu_code *code, size_t dispatch, berth_error *err) {
  const berth__dispatch *d = &code->recipe->dispatches[dispatch];
  berth__webgpu_windows windows;
  BERTH__TRY(berth__webgpu_windows_of(code, d, &windows, err));
  berth__webgpu_pipeline *pipeline = pipeline_for(code, d->kernel, &windows);
  code->pipeline_of[dispatch] = (uint32_t)(pipeline - code->pipelines);
  return pipeline->handle == NULL ? webgpu_make_pipeline(code, pipeline, err) : BERTH_OK;
}

static berth_status webgpu_pipeline_prepare(berth__gpu_code *code, berth_error *err) {
  berth_context *ctx = code->engine->core.ctx;
  const size_t n = code->recipe->n_dispatches;
  code->pipelines = berth__alloc_array_zero(ctx, n, sizeof *code->pipelines);
  code->pipeline_of = berth__alloc_array_zero(ctx, n, sizeof *code->pipeline_of);
  if (code->pipelines == NULL || code->pipeline_of == NULL) return berth__fail_nomem(err, "a program");
  BERTH__TRY(berth__webgpu_need_staging(code->engine, err));
  return berth__webgpu_make_layouts(code, err);
}

berth_status berth__webgpu_code_create(berth__engine *engine, const berth__recipe *recipe, berth__gpu_code **out,
                                       berth_error *err) {
  *out = NULL;
  berth__gpu_code *code = berth__alloc_zero(engine->core.ctx, sizeof *code);
  if (code == NULL) return berth__fail_nomem(err, "a program");
  code->engine = engine;
  code->recipe = recipe;
  const berth_status status = webgpu_pipeline_prepare(code, err);
  if (status != BERTH_OK) {
    berth__webgpu_code_destroy(code);
    return status;
  }
  *out = code;
  return BERTH_OK;
}

void berth__webgpu_code_destroy(berth__gpu_code *code) {
  berth_context *ctx = code->engine->core.ctx;
  for (size_t i = 0; code->pipelines != NULL && i < code->n_pipelines; i++)
    BERTH__WEBGPU_RELEASE(code->engine, ComputePipeline, code->pipelines[i].handle);
  berth__webgpu_free_layouts(code);
  berth__free(ctx, code->pipelines);
  berth__free(ctx, code->pipeline_of);
  berth__free(ctx, code);
}
