/* Register tiles: up to GEMM_ROWS rows of A times one panel of packed B, the inner part of products and convolutions.
 *
 * B is packed as pack_weights does it: [panels, K, VF_PANEL], padding columns 0. A is given by pointers, so that rows
 * may lie anywhere: K is `taps` segments of `depth` elements, and rows[tap * n_rows + r] is where segment `tap` of row
 * r begins (its elements lie one after the other). A plain product has one tap and depth K. In a convolution a row is a
 * pixel of the result and a tap is a place of the kernel; a pixel outside the input is a pointer to `depth` zeros.
 *
 *   gemm_tile tile = {.rows = pointers, .taps = taps, .depth = channels, .low = low, .high = high,
 *                     .panel = w + panel * taps * channels * VF_PANEL, .bias = bias ? bias + panel * VF_PANEL : NULL,
 *                     .out = out + row * n + panel * VF_PANEL, .out_stride = n,
 *                     .columns = n - panel * VF_PANEL < VF_PANEL ? n - panel * VF_PANEL : VF_PANEL};
 *   gemm_tile_run(&tile, n_rows);
 *
 * Every element is summed over K in order, one fused multiply-add after the other, whatever n_rows is; so the split of
 * rows into tiles changes no result. Tiles of about equal height are the fastest: gemm_tile_height() and
 * gemm_tiles_of() say which. */
#ifndef BERTH_DEVICE_CPU_KERNELS_GEMM_TILE_H
#define BERTH_DEVICE_CPU_KERNELS_GEMM_TILE_H

#include "device/cpu/kernels/vec.h"

#if VF_LANES == 16
#define GEMM_ROWS 14 /* with 32 registers: 28 sums, 2 of B, 1 of A */
#else
#define GEMM_ROWS 6
#endif

typedef struct gemm_tile {
  const float *const *rows; /* taps * n_rows pointers; with row_step, taps */
  int64_t row_step;         /* elements between rows if constant for all rows of a tap; otherwise 0 */
  int64_t row_offset;       /* with row_step: from where `rows` points to, to the first row */
  int64_t taps, depth;
  const float *panel;         /* taps * depth rows of VF_PANEL */
  const float *const *panels; /* for each tap, where its rows of the panel begin; NULL: they lie one after the other */
  int64_t panel_step;         /* elements between rows of the panel; 0: VF_PANEL, as in packed panels */
  const uint16_t *halves;     /* a packed panel of f16, converted as it is loaded; NULL: see `panel` */
  const float *bias;          /* `columns` elements that the sums start with; NULL: 0 */
  int64_t bias_stride;        /* elements between those of one row and the next; 0: all rows have the same */
  float *out;
  int64_t out_stride; /* elements between rows */
  int64_t columns;    /* 1..VF_PANEL: how many are stored */
  float low, high;    /* the result is clamped to this; infinite bounds change nothing. NaN stays NaN */
  bool is_far;        /* the panel is probably not in a cache: with one or two rows it is prefetched */
  const char *ahead;  /* what a later tile reads from slow memory: prefetched meanwhile */
  int64_t ahead_step; /* bytes further with every row of the panel; NULL: nothing */
  const float *also;  /* added before the clamp, with the strides of `out`, which it may be; NULL: nothing */
} gemm_tile;

#define gemm_tile_run BERTH__PER_ISA(berth__gemm_tile_run)
/* 1 <= n_rows <= GEMM_ROWS */
void gemm_tile_run(const gemm_tile *tile, int64_t n_rows);

/* The height of tiles that cuts n_rows most evenly, for rows that are row_stride elements apart. Rows a multiple of a
 * page apart share one set of the first cache, which holds eight lines: tiles stay below that then. */
static inline int64_t gemm_tile_height(int64_t n_rows, int64_t row_stride) {
  const int64_t most = GEMM_ROWS > 8 && row_stride % 1024 == 0 ? 8 : GEMM_ROWS;
  const int64_t tiles = (n_rows + most - 1) / most;
  return tiles > 0 ? (n_rows + tiles - 1) / tiles : most;
}

/* Splits rows into as few tiles as that height allows, whose heights differ by one row at most: a last tile of one or
 * two rows would wait for its few sums one after the other. */
typedef struct gemm_tiles {
  int64_t each, larger; /* rows per tile; the number of tiles, the first ones, that have one more */
} gemm_tiles;

static inline gemm_tiles gemm_tiles_of(int64_t n_rows, int64_t height) {
  const int64_t tiles = n_rows > 0 ? (n_rows + height - 1) / height : 1;
  return (gemm_tiles){n_rows / tiles, n_rows % tiles};
}

/* The rows of the next tile. */
static inline int64_t gemm_tiles_next(gemm_tiles *tiles) { return tiles->each + (tiles->larger-- > 0); }

#endif
