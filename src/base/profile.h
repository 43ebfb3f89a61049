/* What plans and kernels of a GPU depend on. A plan holds the profile that it was made with: scratch was sized by it,
 * and the program is made with the same one. */
#ifndef BERTH_BASE_PROFILE_H
#define BERTH_BASE_PROFILE_H

#include <stdbool.h>
#include <stdint.h>

#include "berth/berth.h"

/* What schedules of kernels are chosen from. */
typedef struct berth__kernel_limits {
  uint32_t group_size;   /* threads of a workgroup, at most */
  uint32_t lanes;        /* threads that step together */
  bool exchanges;        /* those can give each other what they have; their number is fixed then */
  bool begins_early;     /* kernels begin while those before them end, and wait where they say so (`await`) */
  uint32_t shared_bytes; /* of a workgroup's shared arrays, at most */
  bool shares_well;      /* tiles in shared memory pay; not so where a CPU plays the GPU */
  uint32_t multiplies;   /* bit c: berth_compute c has matrix units, for which kernels are rendered; of f32: tiles */
  uint32_t tile_bytes;   /* of shared arrays for those, so that two workgroups share a core */
  uint32_t large_bytes;  /* of one that has a core for itself; 0: there are none such */
  bool has_warpgroups;   /* four warps multiply at once, from tiles of 16 bits in shared memory (wgmma) */
  berth_compute compute; /* how the plan's products may be computed */
} berth__kernel_limits;

#define BERTH__MATRIX_UNITS                                                                                     \
  (1u << BERTH_COMPUTE_F32 | 1u << BERTH_COMPUTE_TF32X3 | 1u << BERTH_COMPUTE_TF32 | 1u << BERTH_COMPUTE_BF16 | \
   1u << BERTH_COMPUTE_F16) /* of                                                                               \
`multiplies`: those of NVIDIA since compute capability 8.0 */

typedef struct berth__profile {
  char name[64]; /* of a device, or one of those that can be named without it; "": the device is no GPU */
  berth__kernel_limits loops;
} berth__profile;

#endif
