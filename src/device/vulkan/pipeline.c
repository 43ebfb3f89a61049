/* From kernels to pipelines: source, SPIR-V, and the driver's compilation. All kernels of a recipe are compiled in
 * parallel: each takes some tens of milliseconds if nothing is cached. */
#include "base/thread.h"
#include "device/vulkan/code.h"
#include "kernel/render.h"

/* Whether it multiplies cooperative matrices. */
static bool has_units(const berth__gpu_code *code, const berth__kernel *kernel) {
  return kernel->n_sums != 0 && !code->engine->units.is_played;
}

static berth_status vulkan_pipeline_compile(berth__gpu_code *code, const berth__kernel *kernel, berth__spirv *out,
                                            berth_error *err) {
  const berth__engine *engine = code->engine;
  const berth__render_desc desc = {.windows = code->windows,
                                   .keeps_nan = engine->keeps_nan,
                                   .keeps_small = engine->keeps_small,
                                   .units = engine->units};
  berth__text source;
  berth__text_init(&source, code->engine->core.ctx, NULL, NULL);
  berth_status status = berth__render_glsl(kernel, &desc, &source, err);
  if (status == BERTH_OK) status = berth__text_finish(&source, err);
  if (status == BERTH_OK)
    status = berth__spirv_compile(code->engine->compiler, kernel->name, source.data, source.size, out, err);
  if (status == BERTH_OK && has_units(code, kernel)) {
    const bool is_bf16 = kernel->sums[0].kind == BERTH_COMPUTE_BF16;
    status = berth__spirv_to_khr(code->engine->core.ctx, is_bf16, out, err);
  }
  berth__text_free(&source);
  return status;
}

/* The result of making one pipeline on a thread; one thread evaluates all of them afterwards. */
typedef struct making {
  berth_status status; /* of the source */
  VkResult result;     /* of the driver, if there was a source */
  const char *doing;
  berth_error err;
} making;

typedef struct making_all {
  berth__gpu_code *code;
  making *kernels;
  _Atomic uint64_t n_done;
} making_all;

static void vulkan_make_pipeline(const berth__gpu_code *code, const berth__kernel *kernel, const berth__spirv *spirv,
                                 VkPipeline *out, making *m) {
  const berth__engine *engine = code->engine;
  VkShaderModule module = VK_NULL_HANDLE;
  const VkShaderModuleCreateInfo words = {.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
                                          .codeSize = spirv->n_words * sizeof(uint32_t),
                                          .pCode = spirv->words};
  m->doing = "loading a kernel";
  m->result = engine->vk.CreateShaderModule(engine->device, &words, &engine->host.callbacks, &module);
  if (m->result != VK_SUCCESS) return;
  const VkPipelineShaderStageCreateFlags whole =
      berth__kernel_uses(kernel, BERTH__INST_exchange) || has_units(code, kernel)
          ? VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT
          : 0;
  const VkComputePipelineCreateInfo info = {.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
                                            .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                                                      .flags = whole,
                                                      .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                                                      .module = module,
                                                      .pName = "main"},
                                            .layout = code->layouts[berth__vulkan_n_bindings(code, kernel)]};
  m->doing = "compiling a kernel";
  m->result =
      engine->vk.CreateComputePipelines(engine->device, engine->pipelines, 1, &info, &engine->host.callbacks, out);
  engine->vk.DestroyShaderModule(engine->device, module, &engine->host.callbacks);
  if (m->result != VK_SUCCESS) *out = VK_NULL_HANDLE;
}

static void make_some(void *user, uint32_t worker, int64_t begin, int64_t end) {
  making_all *all = user;
  const berth__recipe *recipe = all->code->recipe;
  for (int64_t i = begin; i < end; i++) {
    making *m = &all->kernels[i];
    berth__spirv spirv = {0};
    m->status = vulkan_pipeline_compile(all->code, recipe->kernels[i], &spirv, &m->err);
    if (m->status == BERTH_OK) vulkan_make_pipeline(all->code, recipe->kernels[i], &spirv, &all->code->pipelines[i], m);
    berth__free(recipe->ctx, spirv.words);
    const uint64_t done = atomic_fetch_add(&all->n_done, 1) + 1;
    if (worker == 0) berth__progress(recipe->ctx, "compiling kernels", done, recipe->n_kernels + 1);
  }
}

/* Counts what was made; the first failure is reported. */
static berth_status settle(berth__gpu_code *code, making *kernels, berth_error *err) {
  berth__engine *engine = code->engine;
  berth_status status = BERTH_OK;
  for (size_t i = 0; i < code->recipe->n_kernels; i++) {
    making *m = &kernels[i];
    if (code->pipelines[i] != VK_NULL_HANDLE) engine->counts.handles++;
    if (m->status == BERTH_OK) engine->counts.pipelines++;
    if (status != BERTH_OK) continue;
    status = m->status;
    if (status != BERTH_OK)
      *err = m->err;
    else
      status = berth__vulkan_check(engine, m->result, m->doing, err);
    if (status != BERTH_OK) status = berth__fail_within(err, status, "kernel '%s'", code->recipe->kernels[i]->name);
  }
  return status;
}

#define COMPILER_STACK ((size_t)8 << 20) /* as for a program's main thread: compilers recurse */

static berth_status make_all(berth__gpu_code *code, berth_error *err) {
  berth_context *ctx = code->engine->core.ctx;
  const size_t n = code->recipe->n_kernels;
  const uint32_t most = code->engine->core.n_threads, n_threads = n < most ? (uint32_t)n : most;
  making_all all = {.code = code, .kernels = berth__alloc_array_zero(ctx, n, sizeof *all.kernels)};
  berth__pool *pool = NULL;
  berth_status status = all.kernels != NULL ? BERTH_OK : berth__fail_nomem(err, "a program");
  if (status == BERTH_OK && n_threads > 1) status = berth__pool_create_deep(ctx, n_threads, COMPILER_STACK, &pool, err);
  if (status == BERTH_OK) {
    berth__pool_run(pool, (int64_t)n, 1, make_some, &all);
    status = settle(code, all.kernels, err);
  }
  berth__pool_destroy(pool);
  berth__free(ctx, all.kernels);
  return status;
}

/* They exist already. */
berth_status berth__vulkan_make_pipeline(berth__gpu_code *code, size_t dispatch, berth_error *err) {
  (void)code, (void)dispatch, (void)err;
  return BERTH_OK;
}

static berth_status vulkan_pipeline_prepare(berth__gpu_code *code, berth_error *err) {
  berth__engine *engine = code->engine;
  code->pipelines = berth__alloc_array_zero(engine->core.ctx, code->recipe->n_kernels, sizeof *code->pipelines);
  if (code->pipelines == NULL) return berth__fail_nomem(err, "a program");
  if (code->recipe->n_kernels == 0) return BERTH_OK;
  BERTH__TRY(berth__vulkan_make_layouts(code, err));
  if (engine->compiler == NULL) BERTH__TRY(berth__spirv_compiler_create(engine->core.ctx, &engine->compiler, err));
  return make_all(code, err);
}

berth_status berth__vulkan_code_create(berth__engine *engine, const berth__recipe *recipe, berth__gpu_code **out,
                                       berth_error *err) {
  *out = NULL;
  berth__gpu_code *code = berth__alloc_zero(engine->core.ctx, sizeof *code);
  if (code == NULL) return berth__fail_nomem(err, "a program");
  code->engine = engine;
  code->recipe = recipe;
  const berth_status status = vulkan_pipeline_prepare(code, err);
  if (status != BERTH_OK) {
    berth__vulkan_code_destroy(code);
    return status;
  }
  *out = code;
  return BERTH_OK;
}

void berth__vulkan_code_destroy(berth__gpu_code *code) {
  berth__engine *engine = code->engine;
  if (berth__vulkan_may_free(engine)) {
    for (size_t i = 0; code->pipelines != NULL && i < code->recipe->n_kernels; i++)
      BERTH__VK_DESTROY(engine, Pipeline, code->pipelines[i]);
    berth__vulkan_free_layouts(code);
  }
  berth__free(engine->core.ctx, code->pipelines);
  berth__free(engine->core.ctx, code);
}
