/* Finding, opening and closing a device. */
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "device/cuda/cuda.h"
#include "device/gpu/profile.h"
#include "kernel/render.h"

#define GROUP_SIZE 256u /* threads: more seldom help */
#define STATIC_SHARED ((int)BERTH__CUDA_STATIC_SHARED)
#define TILE_SHARED 114688  /* for a kernel with matrix units, so that two workgroups fit on a core */
#define LARGE_SHARED 229376 /* for a workgroup that has a core to itself */
#define EARLY 90            /* from this compute capability on, kernels can begin early */
#define DOT4 61             /* and from this one on multiply four bytes at once */
#define WARPGROUPS 90       /* the only compute capability with wgmma */
#define MOST_ROWS 65535u

/* ---- Available devices ---- */

typedef struct found {
  const berth__cu_calls *cu;
  berth__cu_device devices[BERTH__CUDA_MAX_DEVICES];
  uint32_t ordinals[BERTH__CUDA_MAX_DEVICES]; /* in the driver's numbering, including unusable ones */
  char names[BERTH__CUDA_MAX_DEVICES][BERTH__CUDA_NAME];
  uint32_t n;
} found;

static bool cuda_engine_find(const berth_context *ctx, found *out, char reason[BERTH__CUDA_TEXT]) {
  int n = 0;
  out->n = 0;
  out->cu = berth__cuda_library(ctx->options.cuda_library, reason);
  if (out->cu == NULL) return false;
  const berth__cu_result result = out->cu->DeviceGetCount(&n);
  if (result != BERTH__CU_SUCCESS) {
    char text[BERTH__CUDA_TEXT];
    berth__cuda_say(out->cu, result, text);
    snprintf(reason, BERTH__CUDA_TEXT, "the NVIDIA driver cannot list its GPUs: %.200s", text);
    return false;
  }
  for (int i = 0; i < n && out->n < BERTH__CUDA_MAX_DEVICES; i++) {
    char *name = out->names[out->n];
    if (out->cu->DeviceGet(&out->devices[out->n], i) != BERTH__CU_SUCCESS) continue;
    out->ordinals[out->n] = (uint32_t)i;
    name[0] = '\0';
    (void)out->cu->DeviceGetName(name, BERTH__CUDA_NAME, out->devices[out->n]);
    name[BERTH__CUDA_NAME - 1] = '\0';
    out->n++;
  }
  if (out->n == 0) snprintf(reason, BERTH__CUDA_TEXT, "the NVIDIA driver finds no GPU");
  return out->n != 0;
}

static int attribute(const berth__cu_calls *cu, berth__cu_device device, int which) {
  int value = 0;
  return cu->DeviceGetAttribute(&value, which, device) == BERTH__CU_SUCCESS ? value : 0;
}

static int capability(const berth__cu_calls *cu, berth__cu_device device) {
  return 10 * attribute(cu, device, BERTH__CU_CAPABILITY_MAJOR) + attribute(cu, device, BERTH__CU_CAPABILITY_MINOR);
}

uint32_t berth__cuda_count(const berth_context *ctx) {
  char reason[BERTH__CUDA_TEXT];
  found f;
  return cuda_engine_find(ctx, &f, reason) ? f.n : 1;
}

/* NVRTC, or a pack; if the pack lacks a kernel, that is reported when it is needed. */
static bool has_compiler(const berth_context *ctx, char reason[BERTH__CUDA_TEXT]) {
  berth__nvrtc nvrtc;
  berth__kernel_pack pack;
  berth_error err;
  if (berth__nvrtc_find(&ctx->options, &nvrtc, &err) == BERTH_OK) return true;
  if (ctx->options.kernel_pack != NULL) {
    const berth_status status =
        berth__kernel_pack_open(&pack, (berth_context *)(uintptr_t)ctx, ctx->options.kernel_pack, &err);
    berth__kernel_pack_close(&pack);
    if (status == BERTH_OK) return true;
  }
  snprintf(reason, BERTH__CUDA_TEXT, "%.*s", (int)BERTH__CUDA_TEXT - 1, err.message);
  return false;
}

bool berth__cuda_describe(const berth_context *ctx, uint32_t index, berth_device_info *out,
                          char reason[BERTH__CUDA_TEXT]) {
  size_t memory = 0;
  int version = 0;
  found f;
  snprintf(out->description, sizeof out->description, "CUDA");
  if (!cuda_engine_find(ctx, &f, reason)) return false;
  if (index >= f.n) index = 0;
  const int cc = capability(f.cu, f.devices[index]);
  (void)f.cu->DriverGetVersion(&version);
  (void)f.cu->DeviceTotalMem(&memory, f.devices[index]);
  out->memory = memory;
  snprintf(out->description, sizeof out->description, "%.60s, compute capability %d.%d, CUDA %d.%d", f.names[index],
           cc / 10, cc % 10, version / 1000, version % 1000 / 10);
  return has_compiler(ctx, reason);
}

/* ---- Opening ---- */

/* A number, or part of a name; NULL: the first one, which the driver considers the fastest. */
static bool cuda_engine_choose(const found *f, const char *which, uint32_t *index) {
  char *end;
  *index = 0;
  if (which == NULL) return true;
  const unsigned long number = strtoul(which, &end, 10);
  if (which[0] >= '0' && which[0] <= '9' && *end == '\0') {
    *index = (uint32_t)number;
    return number < f->n;
  }
  for (; *index < f->n; (*index)++)
    if (which[0] != '\0' && strcasestr(f->names[*index], which) != NULL) return true;
  return false;
}

static uint32_t cuda_engine_positive(int value, uint32_t otherwise) { return value > 0 ? (uint32_t)value : otherwise; }

static void cuda_engine_read_properties(berth__engine *engine) {
  const berth__cu_calls *cu = engine->cu;
  const int shared = attribute(cu, engine->device, BERTH__CU_MAX_SHARED_PER_BLOCK);
  size_t memory = 0;
  if (cu->DeviceTotalMem(&memory, engine->device) != BERTH__CU_SUCCESS) memory = SIZE_MAX;
  engine->memory = memory;
  engine->core.max_threads = cuda_engine_positive(attribute(cu, engine->device, BERTH__CU_MAX_THREADS_PER_BLOCK), 1024);
  engine->core.max_shared = cuda_engine_positive(shared < STATIC_SHARED ? shared : STATIC_SHARED, STATIC_SHARED);
  engine->core.max_groups = MOST_ROWS;
  const uint32_t declared = engine->core.max_shared;
  const int optin = attribute(cu, engine->device, BERTH__CU_MAX_SHARED_OPTIN);
  if (optin > STATIC_SHARED) engine->core.max_shared = (uint32_t)optin;
  const berth__kernel_limits loops = {
      .group_size = engine->core.max_threads < GROUP_SIZE ? engine->core.max_threads : GROUP_SIZE,
      .lanes = cuda_engine_positive(attribute(cu, engine->device, BERTH__CU_WARP_SIZE), 32),
      .exchanges = true,
      .begins_early = capability(cu, engine->device) >= EARLY,
      .has_dot4 = capability(cu, engine->device) >= DOT4,
      .shared_bytes = declared,
      .shares_well = true,
      .multiplies = capability(cu, engine->device) >= 80 ? BERTH__MATRIX_UNITS : 0,
      .tile_bytes = optin > TILE_SHARED ? TILE_SHARED : declared,
      .large_bytes = optin > LARGE_SHARED ? LARGE_SHARED : 0,
      .has_warpgroups = capability(cu, engine->device) == WARPGROUPS};
  berth__profile_set(&engine->core.profile, engine->name, &loops);
  engine->timeout = (engine->core.ctx->options.cuda_timeout > 0 ? engine->core.ctx->options.cuda_timeout : 60) * 1e3;
}

static berth_status cuda_engine_open(berth__engine *engine, const char *which, berth_error *err) {
  char reason[BERTH__CUDA_TEXT];
  uint32_t index;
  found f;
  if (!cuda_engine_find(engine->core.ctx, &f, reason))
    return berth__fail(err, BERTH_UNSUPPORTED, "the device 'cuda' cannot be used here: %s", reason);
  if (!cuda_engine_choose(&f, which, &index))
    return berth__fail(err, BERTH_UNSUPPORTED,
                       "there is no device 'cuda:%s'; give the number of one (there are %u) or a part of its name",
                       which, f.n);
  engine->cu = f.cu;
  engine->device = f.devices[index];
  engine->ordinal = f.ordinals[index];
  memcpy(engine->name, f.names[index], sizeof engine->name);
  cuda_engine_read_properties(engine);
  berth__cuda_compiler_start(&engine->compiler, engine->core.ctx, capability(f.cu, engine->device));
  return BERTH_OK;
}

berth_status berth__cuda_open(berth_context *ctx, const char *which, uint32_t n_threads, berth__engine **out,
                              berth_error *err) {
  *out = NULL;
  berth__engine *engine = berth__alloc_zero(ctx, sizeof *engine);
  if (engine == NULL) return berth__fail_nomem(err, "the device 'cuda'");
  berth__gpu_start(engine, ctx, &berth__cuda_driver, n_threads);
  const berth_status status = cuda_engine_open(engine, which, err);
  if (status != BERTH_OK) {
    berth__cuda_close(engine);
    return status;
  }
  *out = engine;
  return BERTH_OK;
}

/* The primary context is shared by the process: it is destroyed with its last user. */
static void let_go(berth__engine *engine) {
  const berth__cuda_counts *counts = &engine->counts;
  if (berth__cuda_enter_to_free(engine)) {
    berth__cuda_staging_destroy(engine);
    BERTH__CUDA_FREE(engine, StreamDestroy, engine->stream);
    berth__cuda_leave(engine);
  }
  if (!engine->is_abandoned) {
    (void)engine->cu->DevicePrimaryCtxRelease(engine->device);
    engine->counts.objects--;
  }
  berth__log(
      engine->core.ctx, 0,
      "cuda: %s closed: %llu submissions; at most %llu bytes of its memory; left behind: %llu objects, %llu bytes",
      engine->name, (unsigned long long)counts->submissions, (unsigned long long)counts->peak_memory,
      (unsigned long long)counts->objects, (unsigned long long)counts->memory);
}

void berth__cuda_close(berth__engine *engine) {
  if (engine == NULL) return;
  if (engine->context != NULL) let_go(engine);
  berth__gpu_end(engine);
  berth__cuda_compiler_end(&engine->compiler);
  berth__free(engine->core.ctx, engine);
}
