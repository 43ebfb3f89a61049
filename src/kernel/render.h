/* From a kernel to source. A renderer knows its language and nothing about ops. */
#ifndef BERTH_KERNEL_RENDER_H
#define BERTH_KERNEL_RENDER_H

#include "base/text.h"
#include "kernel/kernel.h"

/* GLSL: how a device multiplies cooperative matrices: the pieces of sums and of their depth, and the threads of a
 * subgroup, which all workgroups consist of. */
typedef struct berth__render_units {
  uint32_t rows, columns, depth; /* 8 or 16; 0: it has none, and kernels must have no sums */
  uint32_t lanes;
  bool is_played; /* matrices are written as arrays of each thread, for tests */
} berth__render_units;

/* How buffers are passed to the kernel. */
typedef struct berth__render_desc {
  bool windows; /* every buffer has its own binding (binding i: buffer i); otherwise all are binding 0 */
  /* GLSL: drivers can be told to preserve NaN, infinities and the sign of 0; and subnormals. Otherwise they may drop
   * them. */
  bool keeps_nan, keeps_small;
  berth__render_units units;
  /* WGSL, with binding windows: the binding of each buffer, numbered from 0 without gaps. NULL: each has its own. */
  const uint8_t *window_of;
  /* CUDA, HIP, Metal: a bit for each buffer that the kernel only reads and that no dispatch lets overlap with what it
   * writes. */
  uint32_t only_read;
} berth__render_desc;

/* Most workgroups per row of the grid. A kernel with more has further rows: the number of a workgroup is x + y *
 * BERTH__GRID_ROW, and those past n_groups do nothing. */
#define BERTH__GRID_ROW 65535u

/* Workgroups per row of a grid of at least n_groups. */
static inline uint32_t berth__grid_columns(uint64_t n_groups) {
  return n_groups < BERTH__GRID_ROW ? (uint32_t)n_groups : BERTH__GRID_ROW;
}
static inline uint32_t berth__grid_rows(uint64_t n_groups) {
  return (uint32_t)((n_groups + BERTH__GRID_ROW - 1) / BERTH__GRID_ROW);
}

/* GLSL 4.50 for Vulkan compute, appended to `out` (from berth__text_init): the words of a buffer begin at the push
 * constant uint at[i]. Descriptor set 0; the entry point is main. */
berth_status berth__render_glsl(const berth__kernel *kernel, const berth__render_desc *desc, berth__text *out,
                                berth_error *err);

/* WGSL: the words of a buffer begin at bN of a uniform struct with one u32 per buffer, which is the binding after the
 * storage ones. Group 0; the entry point is main. */
berth_status berth__render_wgsl(const berth__kernel *kernel, const berth__render_desc *desc, berth__text *out,
                                berth_error *err);

/* CUDA C: buffer i is a pointer to its first word, parameter i of the kernel, which is named by berth__cuda_entry. Must
 * be compiled without contraction of products and sums (--fmad=false). A workgroup is a block of a grid of one row. */
berth_status berth__render_cuda(const berth__kernel *kernel, const berth__render_desc *desc, berth__text *out,
                                berth_error *err);
#define BERTH__CUDA_ENTRY 64u
#define BERTH__CUDA_STATIC_SHARED 49152u /* most bytes of statically declared shared memory */
/* Shared bytes that a launch must request; 0: the kernel declares its shared arrays. */
uint32_t berth__cuda_dynamic_shared(const berth__kernel *kernel);
void berth__cuda_entry(const berth__kernel *kernel, char out[BERTH__CUDA_ENTRY]);

/* HIP for AMD GPUs and Metal for Apple GPUs: like CUDA C, with the same entry (parameter i of Metal is buffer(i)), from
 * kernels without tiles, and with all shared arrays declared. Compile HIP with -ffp-contract=off, Metal without fast
 * math. No device runs them yet: tests compile HIP and emulate Metal on a host, and neither has run on its hardware. */
berth_status berth__render_hip(const berth__kernel *kernel, const berth__render_desc *desc, berth__text *out,
                               berth_error *err);
berth_status berth__render_metal(const berth__kernel *kernel, const berth__render_desc *desc, berth__text *out,
                                 berth_error *err);

#endif
