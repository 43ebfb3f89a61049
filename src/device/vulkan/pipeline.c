/* From kernels to pipelines: source, SPIR-V, and what the driver makes of it. */
#include "device/vulkan/program.h"
#include "loop/render.h"

static berth_status check_kernel(const berth__engine *engine, const berth__kernel *kernel, berth_error *err) {
  const VkPhysicalDeviceLimits *limits = &engine->properties.limits;
  const char *name = engine->properties.deviceName;
  uint64_t shared = 0;
  for (uint32_t i = 0; i < kernel->n_shared; i++) shared += (uint64_t)kernel->shared[i].count * 4;
  if (kernel->group_size > limits->maxComputeWorkGroupInvocations ||
      kernel->group_size > limits->maxComputeWorkGroupSize[0])
    return berth__fail(err, BERTH_UNSUPPORTED, "it has workgroups of %u threads, which are too many for %s",
                       kernel->group_size, name);
  if (shared > limits->maxComputeSharedMemorySize)
    return berth__fail(err, BERTH_UNSUPPORTED, "its workgroups share %llu bytes, and %s has %u",
                       (unsigned long long)shared, name, limits->maxComputeSharedMemorySize);
  if ((kernel->n_groups + BERTH__GRID_ROW - 1) / BERTH__GRID_ROW > limits->maxComputeWorkGroupCount[1])
    return berth__fail(err, BERTH_UNSUPPORTED, "it has %llu workgroups, which are too many for %s",
                       (unsigned long long)kernel->n_groups, name);
  return BERTH_OK;
}

static berth_status compile(berth__program *program, const berth__kernel *kernel, berth__spirv *out, berth_error *err) {
  const berth__engine *engine = program->engine;
  const berth__render_desc desc = {
      .windows = program->windows, .keeps_nan = engine->keeps_nan, .keeps_small = engine->keeps_small};
  berth__text source;
  berth__text_init(&source, program->ctx, NULL, NULL);
  berth_status status = berth__render_glsl(kernel, &desc, &source, err);
  if (status == BERTH_OK) status = berth__text_finish(&source, err);
  if (status == BERTH_OK)
    status = berth__spirv_compile(program->engine->compiler, kernel->name, source.data, source.size, out, err);
  berth__text_free(&source);
  return status;
}

static berth_status make_pipeline(berth__program *program, const berth__kernel *kernel, const berth__spirv *spirv,
                                  VkPipeline *out, berth_error *err) {
  berth__engine *engine = program->engine;
  VkShaderModule module = VK_NULL_HANDLE;
  const VkShaderModuleCreateInfo code = {.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
                                         .codeSize = spirv->n_words * sizeof(uint32_t),
                                         .pCode = spirv->words};
  const berth_status status =
      berth__vulkan_check(engine, BERTH__VK_CREATE(engine, ShaderModule, &code, &module), "loading a kernel", err);
  if (status != BERTH_OK) {
    BERTH__VK_DESTROY(engine, ShaderModule, module);
    return status;
  }
  const VkComputePipelineCreateInfo info = {.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
                                            .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                                                      .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                                                      .module = module,
                                                      .pName = "main"},
                                            .layout = program->layouts[berth__vulkan_n_bindings(program, kernel)]};
  const VkResult result = berth__vulkan_counted(
      engine,
      engine->vk.CreateComputePipelines(engine->device, engine->pipelines, 1, &info, &engine->host.callbacks, out));
  BERTH__VK_DESTROY(engine, ShaderModule, module);
  engine->counts.pipelines++;
  if (result != VK_SUCCESS) *out = VK_NULL_HANDLE;
  return berth__vulkan_check(engine, result, "compiling a kernel", err);
}

static berth_status make_one(berth__program *program, size_t index, berth_error *err) {
  const berth__kernel *kernel = program->recipe->kernels[index];
  berth__spirv spirv = {0};
  BERTH__TRY(check_kernel(program->engine, kernel, err));
  BERTH__TRY(compile(program, kernel, &spirv, err));
  berth_status status = make_pipeline(program, kernel, &spirv, &program->pipelines[index], err);
  berth__free(program->ctx, spirv.words);
  return status;
}

berth_status berth__vulkan_make_pipelines(berth__program *program, berth_error *err) {
  const berth__recipe *recipe = program->recipe;
  program->pipelines = berth__alloc_array_zero(program->ctx, recipe->n_kernels, sizeof *program->pipelines);
  if (program->pipelines == NULL) return berth__fail_nomem(err, "a program");
  if (program->engine->compiler == NULL)
    BERTH__TRY(berth__spirv_compiler_create(program->ctx, &program->engine->compiler, err));
  for (size_t i = 0; i < recipe->n_kernels; i++) {
    berth__progress(program->ctx, "compiling kernels", i, recipe->n_kernels);
    const berth_status status = make_one(program, i, err);
    if (status != BERTH_OK) return berth__fail_within(err, status, "kernel '%s'", recipe->kernels[i]->name);
  }
  berth__progress(program->ctx, "compiling kernels", recipe->n_kernels, recipe->n_kernels);
  return BERTH_OK;
}

void berth__vulkan_free_pipelines(berth__program *program) {
  for (size_t i = 0; program->pipelines != NULL && i < program->recipe->n_kernels; i++)
    BERTH__VK_DESTROY(program->engine, Pipeline, program->pipelines[i]);
}
