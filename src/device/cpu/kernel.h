/* Fast kernels of the CPU. Each file of kernels/ is compiled once for every instruction set that the compiler supports
 * (cmake/Kernels.cmake), over the thin vector layer of kernels/vec.h. Which set is used is decided when the program
 * starts (isa.c). A call that no fast kernel takes runs the op's reference kernel. */
#ifndef BERTH_DEVICE_CPU_KERNEL_H
#define BERTH_DEVICE_CPU_KERNEL_H

#include "ops/op.h"

/* One kernel for one op. Only `run` sees data; the other functions see tensors with shapes and strides. The results do
 * not depend on how the items are split. */
typedef struct berth__cpu_kernel {
  const char *name; /* shown in profiles */
  berth__op_code code;
  bool (*takes)(const berth_op_call *call);       /* NULL: it takes every call of the op */
  int64_t (*items)(const berth_op_call *call);    /* NULL: one item */
  int64_t (*grain)(const berth_op_call *call);    /* number of items worth waking a thread for; NULL: judged by bytes */
  uint64_t (*scratch)(const berth_op_call *call); /* bytes per worker; NULL: none */
  berth_status (*run)(const berth_op_call *call, berth_error *err);
  void (*prepare)(const berth_op_call *call); /* fills a worker's scratch before its first run of a step; may be NULL */
  bool has_parts; /* neighbouring items share cache lines: each thread gets a range of its own */
  /* Bytes per worker that are enough for this call and for any call with smaller extents. NULL: `scratch` already
   * is. */
  uint64_t (*scratch_most)(const berth_op_call *call);
} berth__cpu_kernel;

typedef struct berth__cpu_isa {
  const char *name;                       /* "avx512" */
  uint32_t lanes;                         /* f32 elements per vector */
  uint32_t panel;                         /* columns per panel of packed weights */
  bool has_dot8;                          /* sums four int8 products in one instruction */
  const berth__cpu_kernel *const *tables; /* NULL-terminated; each table ends with a kernel without a name */
} berth__cpu_isa;

/* Where the kernels of a program come from. */
typedef struct berth__cpu_kernels {
  const berth__cpu_isa *isa;
  /* Kernels of a backend, tried before those of the instruction set: a table that ends with a kernel without a name.
   * NULL: none. */
  const berth__cpu_kernel *backend;
} berth__cpu_kernels;

/* As the context's options say (cpu_isa, cpu_backend). The default, also when the context is NULL, is the best
 * instruction set of this machine. */
berth__cpu_kernels berth__cpu_kernels_of(const berth_context *ctx);
/* Fails if an option names something that does not exist. */
berth_status berth__cpu_kernels_check(const berth_context *ctx, berth_error *err);
/* All that this machine supports, best first; NULL past the end. For tests and benchmarks. */
const berth__cpu_isa *berth__cpu_isa_at(uint32_t index);
/* The first kernel that takes the call; NULL: none does, so the reference kernel runs. */
const berth__cpu_kernel *berth__cpu_kernel_find(const berth__cpu_kernels *from, const berth__op *op,
                                                const berth_op_call *call);

#endif
