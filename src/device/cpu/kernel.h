/* Fast kernels of the CPU. Each file of kernels/ is compiled once for every instruction set that the compiler can make
 * code for (cmake/Kernels.cmake), over the thin vector layer of kernels/vec.h; which set is used is decided when the
 * program starts (isa.c). A call that no fast kernel takes runs the op's reference kernel. */
#ifndef BERTH_DEVICE_CPU_KERNEL_H
#define BERTH_DEVICE_CPU_KERNEL_H

#include "ops/op.h"

/* One kernel for one op. All of these see tensors with shapes and strides; only run sees data. Whatever a kernel
 * computes is the same for every split of its items. */
typedef struct berth__cpu_kernel {
  const char *name; /* what profiles show */
  berth__op_code code;
  bool (*takes)(const berth_op_call *call);       /* NULL: every call of the op */
  int64_t (*items)(const berth_op_call *call);    /* NULL: one */
  int64_t (*grain)(const berth_op_call *call);    /* items worth waking a thread for; NULL: judged by bytes */
  uint64_t (*scratch)(const berth_op_call *call); /* bytes for one worker; NULL: none */
  berth_status (*run)(const berth_op_call *call, berth_error *err);
  void (*prepare)(const berth_op_call *call); /* fills a worker's scratch, before its first run of a step; or NULL */
  bool has_parts; /* neighbouring items read and write neighbouring bytes: threads get parts of their own */
  /* Bytes for one worker that are enough for this call and for any with smaller extents. NULL: those of `scratch` are.
   */
  uint64_t (*scratch_most)(const berth_op_call *call);
} berth__cpu_kernel;

typedef struct berth__cpu_isa {
  const char *name;                       /* "avx512" */
  uint32_t lanes;                         /* f32 in a vector */
  uint32_t panel;                         /* columns of a panel of packed weights */
  bool has_dot8;                          /* sums of four int8 products in one instruction */
  const berth__cpu_kernel *const *tables; /* NULL-terminated; each ends with a kernel without a name */
} berth__cpu_isa;

/* Where the kernels of a program come from. */
typedef struct berth__cpu_kernels {
  const berth__cpu_isa *isa;
  /* Other people's kernels, which come before those of the instruction set: a table that ends with a kernel without a
   * name; NULL: none. */
  const berth__cpu_kernel *backend;
} berth__cpu_kernels;

/* As the context's options say (cpu_isa, cpu_backend); the best instruction set of this machine where they do not, or
 * where the context is NULL. */
berth__cpu_kernels berth__cpu_kernels_of(const berth_context *ctx);
/* Fails where an option names something that is not there. */
berth_status berth__cpu_kernels_check(const berth_context *ctx, berth_error *err);
/* All that this machine has, best first; NULL past the end. For tests and benchmarks. */
const berth__cpu_isa *berth__cpu_isa_at(uint32_t index);
/* The first kernel that takes the call; NULL: the reference kernel is it. */
const berth__cpu_kernel *berth__cpu_kernel_find(const berth__cpu_kernels *from, const berth__op *op,
                                                const berth_op_call *call);

#endif
