/* The parts of the CUDA renderer. */
#ifndef BERTH_KERNEL_RENDER_CUDA_H
#define BERTH_KERNEL_RENDER_CUDA_H

#include "base/text.h"
#include "kernel/kernel.h"

/* The sums of a warp. Warps are numbered consecutively within a part. */
berth__warps berth__cuda_warps_of(const berth__kernel *kernel, const berth__kernel_sums *sums);

/* render_cuda_tiles.c: functions that kernels with tiles need; and those of this kernel, which its instructions are
 * rendered to. Whether its tiles can be rendered. */
void berth__cuda_tiles_prelude(const berth__kernel *kernel, berth__text *out);
void berth__cuda_tiles_open(const berth__kernel *kernel, berth__text *out);
uint32_t berth__cuda_tiles_factors(const berth__kernel *kernel, uint32_t sums); /* words of factors per thread */
bool berth__cuda_tiles_fit(const berth__kernel *kernel);

/* render_cuda_warpgroup.c: the same for sums with is_late, which need compute capability 9.0. */
void berth__cuda_warpgroup_prelude(const berth__kernel *kernel, berth__text *out);
void berth__cuda_warpgroup_open(const berth__kernel *kernel, uint32_t sums, berth__text *out);
bool berth__cuda_warpgroup_fits(const berth__kernel *kernel, const berth__kernel_sums *sums);

/* render_cuda_fours.c: the same for f32 sums that threads multiply, four neighbours at a time; and the row and column
 * of a sum by its number. */
void berth__cuda_fours_open(const berth__kernel *kernel, uint32_t sums, berth__text *out);
void berth__cuda_fours_places(const berth__kernel *kernel, uint32_t sums, berth__text *out);
bool berth__cuda_fours_fit(const berth__kernel *kernel, const berth__kernel_sums *sums);

#endif
