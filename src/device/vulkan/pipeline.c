/* From kernels to pipelines: source, SPIR-V, and what the driver makes of it. */
#include "device/vulkan/code.h"
#include "kernel/render.h"

static berth_status vulkan_pipeline_compile(berth__gpu_code *code, const berth__kernel *kernel, berth__spirv *out,
                                            berth_error *err) {
  const berth__engine *engine = code->engine;
  const berth__render_desc desc = {
      .windows = code->windows, .keeps_nan = engine->keeps_nan, .keeps_small = engine->keeps_small};
  berth__text source;
  berth__text_init(&source, code->engine->core.ctx, NULL, NULL);
  berth_status status = berth__render_glsl(kernel, &desc, &source, err);
  if (status == BERTH_OK) status = berth__text_finish(&source, err);
  if (status == BERTH_OK)
    status = berth__spirv_compile(code->engine->compiler, kernel->name, source.data, source.size, out, err);
  berth__text_free(&source);
  return status;
}

static berth_status vulkan_make_pipeline(berth__gpu_code *code, const berth__kernel *kernel, const berth__spirv *spirv,
                                         VkPipeline *out, berth_error *err) {
  berth__engine *engine = code->engine;
  VkShaderModule module = VK_NULL_HANDLE;
  const VkShaderModuleCreateInfo words = {.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
                                          .codeSize = spirv->n_words * sizeof(uint32_t),
                                          .pCode = spirv->words};
  const berth_status status =
      berth__vulkan_check(engine, BERTH__VK_CREATE(engine, ShaderModule, &words, &module), "loading a kernel", err);
  if (status != BERTH_OK) {
    BERTH__VK_DESTROY(engine, ShaderModule, module);
    return status;
  }
  const VkComputePipelineCreateInfo info = {.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
                                            .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                                                      .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                                                      .module = module,
                                                      .pName = "main"},
                                            .layout = code->layouts[berth__vulkan_n_bindings(code, kernel)]};
  const VkResult result = berth__vulkan_counted(
      engine,
      engine->vk.CreateComputePipelines(engine->device, engine->pipelines, 1, &info, &engine->host.callbacks, out));
  BERTH__VK_DESTROY(engine, ShaderModule, module);
  engine->counts.pipelines++;
  if (result != VK_SUCCESS) *out = VK_NULL_HANDLE;
  return berth__vulkan_check(engine, result, "compiling a kernel", err);
}

berth_status berth__vulkan_make_pipeline(berth__gpu_code *code, size_t dispatch, berth_error *err) {
  const uint32_t index = code->recipe->dispatches[dispatch].kernel;
  const berth__kernel *kernel = code->recipe->kernels[index];
  berth__spirv spirv = {0};
  if (code->pipelines[index] != VK_NULL_HANDLE) return BERTH_OK;
  BERTH__TRY(vulkan_pipeline_compile(code, kernel, &spirv, err));
  berth_status status = vulkan_make_pipeline(code, kernel, &spirv, &code->pipelines[index], err);
  berth__free(code->engine->core.ctx, spirv.words);
  return status;
}

static berth_status vulkan_pipeline_prepare(berth__gpu_code *code, berth_error *err) {
  berth__engine *engine = code->engine;
  code->pipelines = berth__alloc_array_zero(engine->core.ctx, code->recipe->n_kernels, sizeof *code->pipelines);
  if (code->pipelines == NULL) return berth__fail_nomem(err, "a program");
  if (code->recipe->n_kernels == 0) return BERTH_OK;
  BERTH__TRY(berth__vulkan_make_layouts(code, err));
  return engine->compiler == NULL ? berth__spirv_compiler_create(engine->core.ctx, &engine->compiler, err) : BERTH_OK;
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
