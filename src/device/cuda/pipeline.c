/* From compiled kernels to modules of the driver. */
#include "device/cuda/code.h"
#include "kernel/render.h"

berth_status berth__cuda_code_create(berth__engine *engine, const berth__recipe *recipe, berth__gpu_code **out,
                                     berth_error *err) {
  berth_context *ctx = engine->core.ctx;
  *out = NULL;
  berth__gpu_code *code = berth__alloc_zero(ctx, sizeof *code);
  if (code == NULL) return berth__fail_nomem(err, "a program");
  *code = (berth__gpu_code){.engine = engine,
                            .recipe = recipe,
                            .kernels = berth__alloc_array_zero(ctx, recipe->n_kernels, sizeof *code->kernels),
                            .images = berth__alloc_array_zero(ctx, recipe->n_kernels, sizeof *code->images)};
  berth_status status = BERTH_OK;
  if (code->kernels == NULL || code->images == NULL) status = berth__fail_nomem(err, "a program");
  if (status == BERTH_OK) status = berth__cuda_compiler_use_kept(&engine->compiler, err);
  if (status == BERTH_OK)
    status = berth__cuda_compile_all(&engine->compiler, recipe, engine->core.n_threads, code->images, err);
  if (status != BERTH_OK) {
    berth__cuda_code_destroy(code);
    return status;
  }
  *out = code;
  return BERTH_OK;
}

/* ---- Loading ---- */

static berth_status cuda_pipeline_load(berth__gpu_code *code, uint32_t index, berth_error *err) {
  static const char doing[] = "loading a kernel";
  berth__engine *engine = code->engine;
  berth__cuda_kernel *kernel = &code->kernels[index];
  char entry[BERTH__CUDA_ENTRY];
  berth__cuda_entry(code->recipe->kernels[index], entry);
  kernel->awaits = berth__cuda_code_awaits(&code->images[index]);
  BERTH__TRY(berth__cuda_check(
      engine, berth__cuda_counted(engine, engine->cu->ModuleLoadData(&kernel->module, code->images[index].data)), doing,
      err));
  BERTH__TRY(
      berth__cuda_check(engine, engine->cu->ModuleGetFunction(&kernel->function, kernel->module, entry), doing, err));
  const uint32_t shared = berth__cuda_dynamic_shared(code->recipe->kernels[index]);
  if (shared == 0) return BERTH_OK;
  return berth__cuda_check(
      engine, engine->cu->FuncSetAttribute(kernel->function, BERTH__CU_FUNCTION_DYNAMIC_SHARED, (int)shared), doing,
      err);
}

berth_status berth__cuda_make_pipeline(berth__gpu_code *code, size_t dispatch, berth_error *err) {
  const uint32_t index = code->recipe->dispatches[dispatch].kernel;
  if (code->kernels[index].function != NULL) return BERTH_OK;
  BERTH__TRY(berth__cuda_enter(code->engine, err));
  const berth_status status = cuda_pipeline_load(code, index, err);
  berth__cuda_leave(code->engine);
  berth__free(code->engine->core.ctx, code->images[index].data);
  code->images[index] = (berth__kernel_code){0};
  return status;
}

void berth__cuda_code_destroy(berth__gpu_code *code) {
  berth__engine *engine = code->engine;
  const size_t n = code->kernels != NULL ? code->recipe->n_kernels : 0;
  const bool may_free = berth__cuda_enter_to_free(engine);
  for (size_t i = 0; i < n; i++) {
    if (may_free) BERTH__CUDA_FREE(engine, ModuleUnload, code->kernels[i].module);
    if (code->images != NULL) berth__free(engine->core.ctx, code->images[i].data);
  }
  if (may_free) berth__cuda_leave(engine);
  berth__free(engine->core.ctx, code->kernels);
  berth__free(engine->core.ctx, code->images);
  berth__free(engine->core.ctx, code);
}
