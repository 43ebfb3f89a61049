/* All kernels of a recipe: renders their source and compiles it with NVRTC; kernels that are not cached are compiled in
 * parallel. */
#include "base/thread.h"
#include "device/cuda/compiler.h"
#include "kernel/render.h"

/* ---- Source ---- */

/* Whether the same dispatch writes bytes of buffer i, which the kernel only reads. */
static bool is_written_over(const berth__kernel *kernel, const berth__dispatch *d, uint32_t i) {
  const berth__span *span = &d->spans[i];
  for (uint32_t k = 0; k < kernel->n_buffers; k++)
    if (kernel->buffers[k].is_written && span->at < d->spans[k].at + d->spans[k].size &&
        d->spans[k].at < span->at + span->size)
      return true;
  return false;
}

/* Buffers that the compiler may not take for memory that never changes: what it knows to be such it moves across an
 * `await`, both ways (ptxas 13.0 does). So what is loaded before would come after, and what kernels are still writing
 * could be loaded before. */
static bool is_bound_to_await(const berth__recipe *recipe, size_t dispatch, uint32_t i) {
  const berth__kernel *kernel = recipe->kernels[recipe->dispatches[dispatch].kernel];
  if (!recipe->plan->profile.loops.begins_early) return false;
  if (kernel->buffers[i].is_early) return true;
  return !berth__kernel_has_rounds(kernel) && berth__recipe_is_fresh(recipe, dispatch, i);
}

/* A bit for each buffer that is only read, in all dispatches of the kernel. */
static uint32_t only_read(const berth__recipe *recipe, uint32_t index) {
  const berth__kernel *kernel = recipe->kernels[index];
  uint32_t bits = 0;
  for (uint32_t i = 0; i < kernel->n_buffers; i++)
    if (!kernel->buffers[i].is_written) bits |= 1u << i;
  for (size_t d = 0; d < recipe->n_dispatches; d++) {
    if (recipe->dispatches[d].kernel != index) continue;
    for (uint32_t i = 0; i < kernel->n_buffers; i++)
      if ((bits >> i & 1u) != 0 &&
          (is_written_over(kernel, &recipe->dispatches[d], i) || is_bound_to_await(recipe, d, i)))
        bits &= ~(1u << i);
  }
  return bits;
}

berth_status berth__cuda_render(const berth__recipe *recipe, uint32_t kernel, berth__text *out, berth_error *err) {
  const berth__render_desc desc = {.only_read = only_read(recipe, kernel)};
  berth__text_init(out, recipe->ctx, NULL, NULL);
  BERTH__TRY(berth__render_cuda(recipe->kernels[kernel], &desc, out, err));
  return berth__text_finish(out, err);
}

/* ---- Compiling ---- */

/* The kernels that still have to be compiled. */
typedef struct todo {
  const berth__cuda_compiler *compiler;
  const berth__recipe *recipe;
  berth__kernel_code *images;
  uint32_t *kernels; /* their indices */
  berth__text *sources;
  berth_status *status;
  berth_error *errors;
  size_t n;
  _Atomic uint64_t n_done;
} todo;

/* Whether it multiplies with warpgroups. */
static bool is_late(const berth__kernel *kernel) {
  bool any = false;
  for (uint32_t s = 0; s < kernel->n_sums; s++) any = any || kernel->sums[s].is_late;
  return any;
}

static void compile_some(void *user, uint32_t worker, int64_t begin, int64_t end) {
  todo *t = user;
  for (int64_t i = begin; i < end; i++) {
    const uint32_t index = t->kernels[i];
    const berth__kernel *kernel = t->recipe->kernels[index];
    const berth__cuda_source source = {kernel->name, t->sources[i].data, t->sources[i].size, is_late(kernel)};
    t->status[i] = berth__cuda_compile(t->compiler, &source, &t->images[index], &t->errors[i]);
    const uint64_t done = atomic_fetch_add(&t->n_done, 1) + 1;
    if (worker == 0) berth__progress(t->recipe->ctx, "compiling kernels", done, t->n + 1); /* the caller's thread */
  }
}

/* Like a program's main thread: NVRTC was seen to need more than one MiB of stack. */
#define COMPILER_STACK ((size_t)8 << 20)

static berth_status compile_rest(todo *t, uint32_t n_threads, berth_error *err) {
  berth__pool *pool = NULL;
  if (t->n > 1 && n_threads > 1)
    BERTH__TRY(berth__pool_create_deep(t->recipe->ctx, t->n < n_threads ? (uint32_t)t->n : n_threads, COMPILER_STACK,
                                       &pool, err));
  berth__pool_run(pool, (int64_t)t->n, 1, compile_some, t);
  berth__pool_destroy(pool);
  for (size_t i = 0; i < t->n; i++)
    if (t->status[i] != BERTH_OK) return berth__fail(err, t->status[i], "%s", t->errors[i].message);
  return BERTH_OK;
}

/* Takes cached kernels, and lists the rest. */
static berth_status list_rest(todo *t, berth_error *err) {
  for (uint32_t i = 0; i < t->recipe->n_kernels; i++) {
    berth__text *text = &t->sources[t->n];
    berth_status status = berth__cuda_render(t->recipe, i, text, err);
    const berth__cuda_source source = {t->recipe->kernels[i]->name, text->data, text->size, false};
    t->kernels[t->n] = i;
    if (status == BERTH_OK) status = berth__cuda_compiler_cached(t->compiler, &source, &t->images[i], err);
    if (status != BERTH_OK || t->images[i].data != NULL)
      berth__text_free(text);
    else
      t->n++;
    BERTH__TRY(status);
  }
  return BERTH_OK;
}

berth_status berth__cuda_check_units(const berth__kernel *kernel, int architecture, berth_error *err) {
  if (kernel->n_sums == 0 || architecture >= 80) return BERTH_OK;
  return berth__fail(
      err, BERTH_UNSUPPORTED,
      "the kernel '%s' uses matrix units, which need compute capability 8.0, but it would be compiled for "
      "%d.%d: GPUs before 8.0 are planned for with the profile 'turing' (--gpu-profile turing), and need a "
      "pack of their own",
      kernel->name, architecture / 10, architecture % 10);
}

/* Whether the target has the matrix units that the kernels use. */
static berth_status check_units(const todo *t, berth_error *err) {
  const int architecture = t->compiler->architecture;
  for (size_t i = 0; i < t->n; i++) {
    const berth__kernel *k = t->recipe->kernels[t->kernels[i]];
    if (is_late(k) && (architecture != 90 || t->compiler->is_ptx))
      return berth__fail(err, BERTH_UNSUPPORTED,
                         "the kernel '%s' uses warpgroup instructions, which only compute capability 9.0 (sm_90) has: "
                         "plan for another GPU (--gpu-profile nvidia)",
                         k->name);
    BERTH__TRY(berth__cuda_check_units(k, architecture, err));
  }
  return BERTH_OK;
}

berth_status berth__cuda_compile_all(berth__cuda_compiler *compiler, const berth__recipe *recipe, uint32_t n_threads,
                                     berth__kernel_code *images, berth_error *err) {
  berth_context *ctx = recipe->ctx;
  const size_t n = recipe->n_kernels;
  todo t = {.compiler = compiler,
            .recipe = recipe,
            .images = images,
            .kernels = berth__alloc_array(ctx, n, sizeof *t.kernels),
            .sources = berth__alloc_array_zero(ctx, n, sizeof *t.sources),
            .status = berth__alloc_array_zero(ctx, n, sizeof *t.status),
            .errors = berth__alloc_array_zero(ctx, n, sizeof *t.errors)};
  berth_status status = BERTH_OK;
  if (t.kernels == NULL || t.sources == NULL || t.status == NULL || t.errors == NULL)
    status = berth__fail_nomem(err, "a program");
  if (status == BERTH_OK) status = list_rest(&t, err);
  if (status == BERTH_OK && t.n != 0) status = berth__cuda_compiler_open(compiler, err);
  if (status == BERTH_OK && t.n != 0) status = check_units(&t, err);
  if (status == BERTH_OK && t.n != 0) status = compile_rest(&t, n_threads, err);
  for (size_t i = 0; i < t.n; i++) berth__text_free(&t.sources[i]);
  berth__free(ctx, t.kernels);
  berth__free(ctx, t.sources);
  berth__free(ctx, t.status);
  berth__free(ctx, t.errors);
  return status;
}
