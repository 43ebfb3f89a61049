/* Products of few rows with weights that run along the depth, in blocks or not: shared by tile_packed.c,
 * tile_packed_sum.c and tile_flow.c. */
#ifndef BERTH_KERNEL_LOWER_TILE_PACKED_H
#define BERTH_KERNEL_LOWER_TILE_PACKED_H

#include "kernel/lower/tile.h"

#define BERTH__UNIT_WORDS 4u
#define BERTH__PACKED_PIECE 8u /* elements that a thread rounds to bytes at a time */
/* 16 adjacent elements of a row that was rounded to bytes: their words, the scale of their group, and what starts or
 * completes their dot product. And those of a slice, for every row. */
typedef struct berth__packed_unit {
  berth__x word[BERTH__UNIT_WORDS], scale, rest;
} berth__packed_unit;
typedef struct berth__packed_units {
  berth__packed_unit of[BERTH__TILE_MOST][BERTH__SLICE_QUADS / BERTH__UNIT_WORDS];
} berth__packed_units;

#define BERTH__PACKED_EARLY 4u /* most slices of a thread that are loaded before the rows */

typedef struct berth__packed {
  const berth__tile *tile;
  const berth__tile_form *form; /* thread_rows, thread_columns; group_rows: lanes per sum; group_columns: such sums */
  berth__kernel *k;
  berth__l_slices slices;
  int64_t elements; /* per block */
  bool is_plain, is_wide, has_wide_scale;
  berth__tile_at left[BERTH__TILE_MOST], right[BERTH__TILE_MOST];
  berth__x sum[BERTH__TILE_MOST][BERTH__TILE_MOST];                               /* variables */
  berth__x second[BERTH__TILE_MOST][BERTH__TILE_MOST], squares[BERTH__TILE_MOST]; /* the same, if needed */
  berth__x lane;
  uint32_t n_early; /* slices of the thread that are loaded before the rows; 0: none, and kernels do not begin early */
  uint32_t reach;   /* adjacent lanes that exchange values; 1: none */
  /* Whether the workgroup keeps the rows in shared memory, multiplied by the scale if they are normalised; `pitch`
   * elements each. */
  bool is_staged;
  uint32_t staged, pitch, between; /* quads between gaps, which let neighbouring lanes use different banks */
  bool has_totals;                 /* and the total of each quad, for formats whose elements have a bias or an offset */
  uint32_t totals;                 /* of bytes: scales, and totals */
  uint32_t n_scales; /* of bytes: loaded before the rows, for the thread's piece of them; 0: with the rows */
  berth__x scales[BERTH__PACKED_PIECE];
} berth__packed;

/* A slice per column, for both right sides. */
typedef berth__l_quad berth__packed_slice[2][BERTH__TILE_MOST][BERTH__SLICE_QUADS];

/* tile_packed_sum.c */
bool berth__packed_is_plain(berth__storage storage);
int64_t berth__packed_elements(const berth__tile *tile);
berth__l_slices berth__packed_slices(const berth__tile *tile);
bool berth__packed_is_wide(const berth__tile *tile);
bool berth__packed_has_wide_scale(const berth__tile *tile);
/* Decides whether the rows go to shared memory, if they fit in addition to the parts of sums. */
void berth__packed_choose_stage(berth__packed *w, berth__storage storage, uint64_t parts_bytes);
void berth__packed_put_rows(berth__packed *w); /* called by all threads of the workgroup; a barrier must follow */
void berth__packed_load_scale(const berth__packed *w, berth__x depth, berth__x *out); /* of four elements */
void berth__packed_load_row(const berth__packed *w, berth__x place, berth__x *out);
void berth__packed_start(berth__packed *w, const berth__tile_cells *cells);
void berth__packed_load_first(const berth__packed *w, berth__packed_slice *quads);
void berth__packed_sum(const berth__packed *w, berth__packed_slice *early); /* NULL: nothing is loaded yet */

/* tile_packed_bytes.c: rows of bytes. Sets where they lie, and returns the bytes of shared memory that they take. */
uint64_t berth__packed_bytes_room(berth__packed *w);
void berth__packed_put_bytes(berth__packed *w); /* as berth__packed_put_rows */
void berth__packed_load_scales(
    berth__packed *w); /* of a norm, where few are needed: they are weights, like the right side */
void berth__packed_load_units(const berth__packed *w, berth__x block, berth__x slice, berth__packed_units *out);
void berth__packed_add_units(const berth__packed *w, const berth__x (*sums)[BERTH__TILE_MOST], uint32_t column,
                             const berth__l_quad *quads, const berth__packed_units *x);

/* tile_packed.c */
berth__x berth__packed_exchange(const berth__packed *w, berth__x variable); /* the sum over the lanes that exchange */
void berth__packed_scale_cell(const berth__packed *w, berth__tile_cells *cells, uint32_t row, uint32_t column,
                              berth__x factor);
void berth__packed_rows(berth__kernel *k, berth__tile_cells *cells, berth__x first_column);
berth__l_table berth__packed_table(const berth__tile *tile, berth__kernel *k, berth__l_table_kind kind);

/* tile_flow.c */
void berth__packed_flow(berth__packed *w, berth__tile *tile, int64_t sets);

#endif
