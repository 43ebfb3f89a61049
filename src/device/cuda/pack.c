/* Packs kernels for GPUs that need not be present. */
#include <stdio.h>
#include <stdlib.h>

#include "device/cuda/cuda.h"

typedef struct target {
  char name[24]; /* "sm_90" */
  int capability;
  bool is_ptx;
} target;

static berth_status cuda_pack_parse(const char *text, size_t size, target *out, berth_error *err) {
  enum {
    OLDEST = 50,
    NEWEST = 999
  };
  const char *number;
  char *end;
  snprintf(out->name, sizeof out->name, "%.*s", (int)(size < sizeof out->name ? size : sizeof out->name - 1), text);
  out->is_ptx = strncmp(out->name, "compute_", 8) == 0;
  number = out->name + (out->is_ptx ? 8 : 3);
  if (size < sizeof out->name && (out->is_ptx || strncmp(out->name, "sm_", 3) == 0)) {
    const long capability = strtol(number, &end, 10);
    out->capability = (int)capability;
    if (*number >= '1' && *number <= '9' && *end == '\0' && capability >= OLDEST && capability <= NEWEST)
      return BERTH_OK;
  }
  return berth__fail(err, BERTH_INVALID, "'%.*s' is not a compilation target; targets look like sm_90 or compute_80",
                     (int)size, text);
}

/* Checks all kernels, including cached ones: an older GPU never asks for the kernels of a plan with matrix units. */
static berth_status cuda_pack_check(const berth__recipe *recipe, const target *t, berth_error *err) {
  for (uint32_t i = 0; i < recipe->n_kernels; i++)
    BERTH__TRY(berth__cuda_check_units(recipe->kernels[i], t->capability, err));
  return BERTH_OK;
}

/* Adds existing images, taking ownership. */
static berth_status cuda_pack_add(const berth__recipe *recipe, const target *t, berth__kernel_code *images,
                                  berth__kernel_packer *out, berth_error *err) {
  for (uint32_t i = 0; i < recipe->n_kernels; i++) {
    berth__text source;
    berth_status status = berth__cuda_render(recipe, i, &source, err);
    if (status == BERTH_OK) status = berth__kernel_packer_add(out, t->name, source.data, source.size, &images[i], err);
    berth__text_free(&source);
    BERTH__TRY(status);
  }
  return BERTH_OK;
}

static berth_status cuda_pack_open(berth__cuda_compiler *compiler, berth_context *ctx, const target *t,
                                   berth_error *err) {
  berth__cuda_compiler_start(compiler, ctx, t->capability);
  BERTH__TRY(berth__cuda_compiler_open(compiler, err));
  if (compiler->architecture != t->capability) {
    char known[256];
    berth__nvrtc_architectures(&compiler->nvrtc, known, sizeof known);
    return berth__fail(err, BERTH_UNSUPPORTED,
                       "this NVRTC does not compile for %s, but for these compute capabilities: %s ('%s')", t->name,
                       known, compiler->nvrtc.path);
  }
  compiler->is_ptx = t->is_ptx;
  return BERTH_OK;
}

static berth_status cuda_pack_for(const berth__recipe *recipe, const target *t, berth__kernel_packer *out,
                                  berth_error *err) {
  berth_context *ctx = recipe->ctx;
  berth__cuda_compiler compiler = {.ctx = NULL};
  berth__kernel_code *images = berth__alloc_array_zero(ctx, recipe->n_kernels, sizeof *images);
  berth_status status = images != NULL ? cuda_pack_check(recipe, t, err) : berth__fail_nomem(err, "a pack of kernels");
  if (status == BERTH_OK) status = cuda_pack_open(&compiler, ctx, t, err);
  if (status == BERTH_OK) status = berth__cuda_compile_all(&compiler, recipe, ctx->n_threads, images, err);
  if (status == BERTH_OK) status = cuda_pack_add(recipe, t, images, out, err);
  for (size_t i = 0; images != NULL && i < recipe->n_kernels; i++) berth__free(ctx, images[i].data);
  berth__free(ctx, images);
  berth__cuda_compiler_end(&compiler);
  return status;
}

/* For the GPU that the plan was made for. */
static berth_status cuda_pack_here(const berth__recipe *recipe, berth__kernel_packer *out, berth_error *err) {
  const char *which = recipe->plan->which;
  berth__engine *engine;
  target t;
  BERTH__TRY(berth__cuda_open(recipe->ctx, which[0] != '\0' ? which : NULL, 1, &engine, err));
  snprintf(t.name, sizeof t.name, "sm_%d", engine->compiler.capability);
  t.capability = engine->compiler.capability;
  t.is_ptx = false;
  berth__cuda_close(engine);
  return cuda_pack_for(recipe, &t, out, err);
}

berth_status berth__cuda_pack_kernels(const berth__recipe *recipe, const char *targets, berth__kernel_packer *out,
                                      berth_error *err) {
  if (targets == NULL) return cuda_pack_here(recipe, out, err);
  for (const char *at = targets;;) {
    const size_t size = strcspn(at, ",");
    target t;
    BERTH__TRY(cuda_pack_parse(at, size, &t, err));
    BERTH__TRY(cuda_pack_for(recipe, &t, out, err));
    if (at[size] == '\0') return BERTH_OK;
    at += size + 1;
  }
}
