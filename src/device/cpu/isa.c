/* Which instruction set the fast kernels use. */
#include <string.h>

#include "base/context.h"
#include "device/cpu/kernel.h"

extern const berth__cpu_isa berth__isa_portable;
#ifdef BERTH__HAS_AVX2
extern const berth__cpu_isa berth__isa_avx2;
#endif
#ifdef BERTH__HAS_AVX512
extern const berth__cpu_isa berth__isa_avx512;
#endif

#ifdef BERTH__HAS_DNNL
extern const berth__cpu_kernel berth__backend_dnnl[];
#endif

typedef struct candidate {
  const berth__cpu_isa *isa;
  bool (*is_there)(void);
} candidate;

static bool always(void) { return true; }
#ifdef BERTH__HAS_AVX2
static bool has_avx2(void) { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
#endif
#ifdef BERTH__HAS_AVX512
static bool has_avx512(void) {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512vnni");
}
#endif

static const candidate candidates[] = {
#ifdef BERTH__HAS_AVX512
    {&berth__isa_avx512, has_avx512},
#endif
#ifdef BERTH__HAS_AVX2
    {&berth__isa_avx2, has_avx2},
#endif
    {&berth__isa_portable, always},
};
#define N_CANDIDATES (sizeof candidates / sizeof *candidates)

const berth__cpu_isa *berth__cpu_isa_at(uint32_t index) {
  for (size_t i = 0; i < N_CANDIDATES; i++)
    if (candidates[i].is_there() && index-- == 0) return candidates[i].isa;
  return NULL;
}

static const berth__cpu_isa *isa_named(const char *name) {
  for (uint32_t i = 0; name != NULL && berth__cpu_isa_at(i) != NULL; i++)
    if (strcmp(berth__cpu_isa_at(i)->name, name) == 0) return berth__cpu_isa_at(i);
  return NULL;
}

static const berth__cpu_kernel *backend_named(const char *name) {
#ifdef BERTH__HAS_DNNL
  if (name != NULL && strcmp(name, "dnnl") == 0) return berth__backend_dnnl;
#endif
  (void)name;
  return NULL;
}

berth__cpu_kernels berth__cpu_kernels_of(const berth_context *ctx) {
  const berth__cpu_isa *isa = ctx != NULL ? isa_named(ctx->options.cpu_isa) : NULL;
  return (berth__cpu_kernels){.isa = isa != NULL ? isa : berth__cpu_isa_at(0),
                              .backend = ctx != NULL ? backend_named(ctx->options.cpu_backend) : NULL};
}

berth_status berth__cpu_kernels_check(const berth_context *ctx, berth_error *err) {
  const char *isa = ctx->options.cpu_isa, *backend = ctx->options.cpu_backend;
  if (backend != NULL && backend_named(backend) == NULL)
    return berth__fail(
        err, BERTH_UNSUPPORTED,
        "BERTH_CPU_BACKEND is '%s', which this build does not have; 'dnnl' needs -DBERTH_DNNL_BACKEND=ON", backend);
  if (isa == NULL || isa_named(isa) != NULL) return BERTH_OK;
  return berth__fail(
      err, BERTH_UNSUPPORTED,
      "BERTH_CPU_ISA is '%s', which this build or this machine does not have; the best that it has is '%s'", isa,
      berth__cpu_isa_at(0)->name);
}

const berth__cpu_kernel *berth__cpu_kernel_find(const berth__cpu_kernels *from, const berth__op *op,
                                                const berth_op_call *call) {
  if (op->custom != NULL) return NULL;
  for (const berth__cpu_kernel *other = from->backend; other != NULL && other->name != NULL; other++)
    if (other->code == op->code && other->takes(call)) return other;
  for (const berth__cpu_kernel *const *table = from->isa->tables; *table != NULL; table++)
    for (const berth__cpu_kernel *kernel = *table; kernel->name != NULL; kernel++)
      if (kernel->code == op->code && (kernel->takes == NULL || kernel->takes(call))) return kernel;
  return NULL;
}
