/* From kernels to modules: source, what NVRTC makes of it (all that were not compiled before at once, on several
 * threads), and loading. */
#include "device/cuda/code.h"
#include "kernel/render.h"

/* ---- Source ---- */

/* Whether bytes of buffer i, which the kernel only reads, are written by the same dispatch. */
static bool is_written_over(const berth__kernel *kernel, const berth__dispatch *d, uint32_t i) {
  const berth__span *span = &d->spans[i];
  for (uint32_t k = 0; k < kernel->n_buffers; k++)
    if (kernel->buffers[k].is_written && span->at < d->spans[k].at + d->spans[k].size &&
        d->spans[k].at < span->at + span->size)
      return true;
  return false;
}

/* A bit for each buffer that is read alone, in all dispatches of the kernel. */
static uint32_t only_read(const berth__recipe *recipe, uint32_t index) {
  const berth__kernel *kernel = recipe->kernels[index];
  uint32_t bits = 0;
  for (uint32_t i = 0; i < kernel->n_buffers; i++)
    if (!kernel->buffers[i].is_written) bits |= 1u << i;
  for (size_t d = 0; d < recipe->n_dispatches; d++) {
    if (recipe->dispatches[d].kernel != index) continue;
    for (uint32_t i = 0; i < kernel->n_buffers; i++)
      if ((bits >> i & 1u) != 0 && is_written_over(kernel, &recipe->dispatches[d], i)) bits &= ~(1u << i);
  }
  return bits;
}

static berth_status cuda_pipeline_render(const berth__gpu_code *code, uint32_t index, berth__text *out,
                                         berth_error *err) {
  const berth__render_desc desc = {.only_read = only_read(code->recipe, index)};
  berth__text_init(out, code->engine->core.ctx, NULL, NULL);
  BERTH__TRY(berth__render_cuda(code->recipe->kernels[index], &desc, out, err));
  return berth__text_finish(out, err);
}

/* ---- Compiling ---- */

/* What is left to be compiled. */
typedef struct todo {
  berth__gpu_code *code;
  uint32_t *kernels; /* which */
  berth__text *sources;
  berth_status *status;
  berth_error *errors;
  size_t n;
  _Atomic uint64_t n_done;
} todo;

static void compile_some(void *user, uint32_t worker, int64_t begin, int64_t end) {
  todo *t = user;
  const berth__engine *engine = t->code->engine;
  for (int64_t i = begin; i < end; i++) {
    const uint32_t index = t->kernels[i];
    const berth__cuda_source source = {t->code->recipe->kernels[index]->name, t->sources[i].data, t->sources[i].size};
    t->status[i] = berth__cuda_compile(&engine->compiler, &source, &t->code->kernels[index].image, &t->errors[i]);
    const uint64_t done = atomic_fetch_add(&t->n_done, 1) + 1;
    if (worker == 0) berth__progress(engine->core.ctx, "compiling kernels", done, t->n + 1); /* the caller's thread */
  }
}

static berth_status compile_rest(todo *t, berth_error *err) {
  berth__engine *engine = t->code->engine;
  const uint32_t most = engine->core.n_threads < 1 ? 1 : engine->core.n_threads;
  berth__pool *pool = NULL;
  if (t->n == 0) return BERTH_OK;
  BERTH__TRY(berth__cuda_compiler_open(&engine->compiler, err));
  if (t->n > 1 && most > 1)
    BERTH__TRY(berth__pool_create(engine->core.ctx, t->n < most ? (uint32_t)t->n : most, &pool, err));
  berth__pool_run(pool, (int64_t)t->n, 1, compile_some, t);
  berth__pool_destroy(pool);
  for (size_t i = 0; i < t->n; i++)
    if (t->status[i] != BERTH_OK) return berth__fail(err, t->status[i], "%s", t->errors[i].message);
  return BERTH_OK;
}

/* Takes what was compiled before, and lists the rest. */
static berth_status list_rest(todo *t, berth_error *err) {
  const berth__gpu_code *code = t->code;
  for (uint32_t i = 0; i < code->recipe->n_kernels; i++) {
    berth__text *text = &t->sources[t->n];
    const berth_status status = cuda_pipeline_render(code, i, text, err);
    t->kernels[t->n] = i;
    const berth__cuda_source source = {code->recipe->kernels[i]->name, text->data, text->size};
    if (status != BERTH_OK || berth__cuda_compiler_cached(&code->engine->compiler, &source, &code->kernels[i].image))
      berth__text_free(text);
    else
      t->n++;
    BERTH__TRY(status);
  }
  return BERTH_OK;
}

static berth_status compile_all(berth__gpu_code *code, berth_error *err) {
  berth_context *ctx = code->engine->core.ctx;
  const size_t n = code->recipe->n_kernels;
  todo t = {.code = code,
            .kernels = berth__alloc_array(ctx, n, sizeof *t.kernels),
            .sources = berth__alloc_array_zero(ctx, n, sizeof *t.sources),
            .status = berth__alloc_array_zero(ctx, n, sizeof *t.status),
            .errors = berth__alloc_array_zero(ctx, n, sizeof *t.errors)};
  berth_status status = BERTH_OK;
  if (t.kernels == NULL || t.sources == NULL || t.status == NULL || t.errors == NULL)
    status = berth__fail_nomem(err, "a program");
  if (status == BERTH_OK) status = list_rest(&t, err);
  if (status == BERTH_OK) status = compile_rest(&t, err);
  for (size_t i = 0; i < t.n; i++) berth__text_free(&t.sources[i]);
  berth__free(ctx, t.kernels);
  berth__free(ctx, t.sources);
  berth__free(ctx, t.status);
  berth__free(ctx, t.errors);
  return status;
}

berth_status berth__cuda_code_create(berth__engine *engine, const berth__recipe *recipe, berth__gpu_code **out,
                                     berth_error *err) {
  *out = NULL;
  berth__gpu_code *code = berth__alloc_zero(engine->core.ctx, sizeof *code);
  if (code == NULL) return berth__fail_nomem(err, "a program");
  *code = (berth__gpu_code){engine, recipe,
                            berth__alloc_array_zero(engine->core.ctx, recipe->n_kernels, sizeof *code->kernels)};
  const berth_status status = code->kernels != NULL ? compile_all(code, err) : berth__fail_nomem(err, "a program");
  if (status != BERTH_OK) {
    berth__cuda_code_destroy(code);
    return status;
  }
  *out = code;
  return BERTH_OK;
}

/* ---- Loading ---- */

static berth_status cuda_pipeline_load(berth__gpu_code *code, berth__cuda_kernel *kernel, const char *entry,
                                       berth_error *err) {
  static const char doing[] = "loading a kernel";
  berth__engine *engine = code->engine;
  BERTH__TRY(berth__cuda_check(
      engine, berth__cuda_counted(engine, engine->cu->ModuleLoadData(&kernel->module, kernel->image.data)), doing,
      err));
  return berth__cuda_check(engine, engine->cu->ModuleGetFunction(&kernel->function, kernel->module, entry), doing, err);
}

berth_status berth__cuda_make_pipeline(berth__gpu_code *code, size_t dispatch, berth_error *err) {
  const uint32_t index = code->recipe->dispatches[dispatch].kernel;
  berth__cuda_kernel *kernel = &code->kernels[index];
  char entry[BERTH__CUDA_ENTRY];
  if (kernel->function != NULL) return BERTH_OK;
  berth__cuda_entry(code->recipe->kernels[index], entry);
  BERTH__TRY(berth__cuda_enter(code->engine, err));
  const berth_status status = cuda_pipeline_load(code, kernel, entry, err);
  berth__cuda_leave(code->engine);
  berth__free(code->engine->core.ctx, kernel->image.data);
  kernel->image = (berth__kernel_code){0};
  return status;
}

void berth__cuda_code_destroy(berth__gpu_code *code) {
  berth__engine *engine = code->engine;
  const size_t n = code->kernels != NULL ? code->recipe->n_kernels : 0;
  const bool may_free = berth__cuda_enter_to_free(engine);
  for (size_t i = 0; i < n; i++) {
    if (may_free) BERTH__CUDA_FREE(engine, ModuleUnload, code->kernels[i].module);
    berth__free(engine->core.ctx, code->kernels[i].image.data);
  }
  if (may_free) berth__cuda_leave(engine);
  berth__free(engine->core.ctx, code->kernels);
  berth__free(engine->core.ctx, code);
}
