/* What plans and kernels of a GPU depend on. A plan stores the profile that it was made with: its scratch was sized by
 * it, and the program must be made with the same one. */
#ifndef BERTH_BASE_PROFILE_H
#define BERTH_BASE_PROFILE_H

#include <stdbool.h>
#include <stdint.h>

#include "berth/berth.h"

/* Limits by which the schedules of kernels are chosen. */
typedef struct berth__kernel_limits {
  uint32_t group_size;   /* most threads per workgroup */
  uint32_t lanes;        /* threads per subgroup */
  bool exchanges;        /* subgroup exchange; their number is fixed then */
  bool begins_early;     /* kernels may begin before those before them end, and wait at their `await` */
  bool has_dot4;         /* products of four bytes are one instruction */
  uint32_t shared_bytes; /* most bytes of a workgroup's shared arrays */
  bool shares_well;      /* tiles in shared memory pay off; false where a CPU plays the GPU */
  uint32_t multiplies;   /* bit c: matrix units for berth_compute c, for which kernels are rendered; of f32: tiles */
  uint32_t tile_bytes;   /* shared bytes per workgroup of these kernels, so that two workgroups fit on a core */
  uint32_t large_bytes;  /* shared bytes of a workgroup that has a core to itself; 0: not supported */
  bool has_warpgroups;   /* four warps multiply together, from 16-bit tiles in shared memory (wgmma) */
  bool is_cooperative;   /* the units are cooperative matrices (Vulkan): threads see sums in shared memory only, and
                          * tiles hold the numbers that are multiplied */
  berth_compute compute; /* compute type allowed for the plan's products */
} berth__kernel_limits;

/* Whether this build may have GPUs with matrix units (multiplies) and lanes that exchange values. Those of a browser
 * have neither, and code for them is left out of the module that a page loads. */
#ifdef __wasm__
#define BERTH__NATIVE_GPUS false
#else
#define BERTH__NATIVE_GPUS true
#endif

#define BERTH__MATRIX_UNITS                                                                                     \
  (1u << BERTH_COMPUTE_F32 | 1u << BERTH_COMPUTE_TF32X3 | 1u << BERTH_COMPUTE_TF32 | 1u << BERTH_COMPUTE_BF16 | \
   1u << BERTH_COMPUTE_F16) /* `multiplies` of NVIDIA GPUs since compute capability 8.0 */

typedef struct berth__profile {
  char name[64]; /* name of a device that can be described without hardware; "": not a GPU */
  berth__kernel_limits loops;
} berth__profile;

#endif
