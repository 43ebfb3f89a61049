/* Sums of products in tiles: shared by matrix products and convolutions.
 *
 *   result(batch, row, column) = finish(sum over depth of left(batch, row, depth) * right(batch, depth, column))
 *
 * Each of the four is a space of axes, and operands have strides over them. A convolution's x has a window, whose taps
 * are axes of the depth, so nothing is unfolded in memory (implicit GEMM). tile.c chooses one of six forms:
 *
 * registers  each thread has some rows and columns of the result and reads its factors directly from memory
 * shared     a workgroup loads pieces of both sides into shared memory and uses each element of them many times
 * split      for few results with long sums: the threads of a workgroup share the depth
 * deep       like shared, for few results with long sums: parts of a workgroup share the depth
 * packed     for few rows and weights in blocks, or 16-bit floats: threads decode whole slices of them, or multiply
 *            their integers by rows of bytes
 * matrix     like shared, for matrix units: if the plan allows their rounding, or operands are no wider
 *
 * Long sums with few results are first cut into sections, each of which is such a tile (tile_sections.c). */
#ifndef BERTH_KERNEL_LOWER_TILE_H
#define BERTH_KERNEL_LOWER_TILE_H

#include "kernel/lower.h"
#include "kernel/lower/blocks.h"
#include "ops/chain.h"
#include "ops/window.h"

#define BERTH__TILE_AXES (BERTH_MAX_RANK + 1)
#define BERTH__TILE_VIEWS 20u
#define BERTH__TILE_MOST 8u /* most rows or columns per thread */
#define BERTH__TILE_FEW_ROWS 4
#define BERTH__TILE_PARTS 4u /* deep: parts of a workgroup that share the depth */
#define BERTH__TILE_NONE UINT32_MAX

typedef struct berth__tile_space {
  uint32_t rank;
  int64_t dim[BERTH__TILE_AXES];
  /* The axis of the result that an axis corresponds to, and how many of its elements one step is: a step over groups
   * skips their channels. */
  uint32_t of[BERTH__TILE_AXES];
  int64_t times[BERTH__TILE_AXES]; /* 0: no such axis */
} berth__tile_space;
void berth__tile_axis(berth__tile_space *space, int64_t dim, uint32_t of, int64_t times);
int64_t berth__tile_count(const berth__tile_space *space);

struct berth__tile;
/* One of the two factors. Its lines are its rows (left) or columns (right). */
typedef struct berth__tile_side {
  uint32_t operand;
  int64_t batch[BERTH__TILE_AXES], line[BERTH__TILE_AXES], depth[BERTH__TILE_AXES]; /* strides */
  /* Position of a batch, instead of strides; NULL: use the strides. Positions are multiples of the line stride. */
  berth__x (*base)(const struct berth__tile *tile, berth__kernel *k, berth__x batch);
  int64_t panel, panel_stride; /* panel > 0: line / panel * panel_stride + line % panel */
  int64_t fours; /* > 0: depth counts rows, which are interleaved by four; stride between groups of four */
  /* A window over x: the last three axes of the lines are its positions, and three axes of the depth, from `taps` on,
   * are its taps; elements outside x count as 0. */
  const berth__window *window;
  bool is_transposed; /* a position of the result gathers from the positions of x whose windows cover it */
  uint32_t taps;
  int64_t window_stride[BERTH__WINDOW_AXES];
  /* Zero point to subtract from the elements, for integers: an operand (or none), with strides over flat batches and
   * lines, minus `shift`. */
  uint32_t zero;
  int64_t zero_batch, zero_line, shift;
} berth__tile_side;

/* An operand or a result addressed by positions of the result: strides over the result's axes. */
typedef struct berth__tile_view {
  int64_t stride[BERTH_MAX_RANK];
} berth__tile_view;

typedef struct berth__tile {
  berth__lowering *l;
  berth__number type; /* of the sums: F32 or I32 (integers wrap) */
  berth__tile_space batch, rows, columns, depth;
  berth__tile_side left, right;
  berth__tile_view views[BERTH__TILE_VIEWS]; /* the first is the result itself */
  uint32_t n_views;
  /* Applies the epilogue to a sum and stores it; place[v] is the element's position in view v. */
  void (*finish)(const struct berth__tile *tile, berth__kernel *k, const berth__x *place, berth__x sum);
  const void *user;    /* for finish */
  bool goes_elsewhere; /* finish does not store to the call's first result */
  bool is_for_scratch; /* finish stores the sum itself, as f32, to the step's scratch, at the place in view 0 */
  bool is_exact;       /* the left side must not be rounded, even if the right one is in blocks */
  bool has_weight;     /* the right side is usually a weight, and nothing in a run stores to it */
  /* For few rows. scale: an operand along the depth; each row is divided by its root mean square and multiplied by
   * scale as part of the product: the sum of x * scale * w, divided by that root. BERTH__TILE_NONE: rows are not
   * normalised. */
  uint32_t scale;
  double epsilon;
  /* A second right side (BERTH__TILE_NONE: none), with its strides; second_sum points to its sum for finish. Supported
   * by the packed form, if both right sides have the same layout, and by the registers form. */
  uint32_t second;
  berth__tile_side second_side;
  berth__x *second_sum;
  berth__l_table table; /* of block types on the right: set by the forms */
  bool in_bytes;        /* packed: the rows are rounded to bytes, set when the form is chosen */
  /* Preloaded epilogue operands of the current cell; NULL: they are loaded on use. A result may overwrite one of them,
   * so compilers cannot hoist these loads over stores. */
  const berth__x *extras;
  berth__x held_bias; /* the same for the bias; BERTH__X_NONE: it is loaded on use */
} berth__tile;

/* A tile of the call's first result, which is its first view, without axes. */
void berth__tile_init(berth__tile *tile, berth__lowering *l, berth__number type);
/* Adds a view of an operand that broadcasts against the result (strides over its last axes), or of one axis only;
 * returns its number. */
uint32_t berth__tile_view_operand(berth__tile *tile, uint32_t operand);
uint32_t berth__tile_view_axis(berth__tile *tile, uint32_t axis, int64_t stride);
berth_status berth__tile_lower(berth__tile *tile, berth_error *err);

/* The usual epilogue: optional bias, optional summand, a chain. Operands as in ops/epilogue.h. */
typedef struct berth__tile_epilogue {
  uint32_t bias, sum, first_extra; /* operands; BERTH__TILE_NONE: there is none */
  uint32_t bias_view, sum_view, extra_view;
  berth__chain chain;
} berth__tile_epilogue;
/* `axis` of the result is the axis of the bias. adds: NULL if the op has no such attribute. */
berth_status berth__tile_epilogue_read(berth__tile *tile, berth__tile_epilogue *epilogue, uint32_t bias, uint32_t axis,
                                       const berth_attr *adds, uint32_t first_extra, const berth_attr *code,
                                       const berth_attr *numbers, berth_error *err);
berth__x berth__tile_epilogue_value(const berth__tile *tile, const berth__tile_epilogue *epilogue, berth__kernel *k,
                                    const berth__x *place, berth__x value);
void berth__tile_finish(const berth__tile *tile, berth__kernel *k, const berth__x *place, berth__x sum);
/* Epilogue operands that are loaded before the first store: their number, 0 if there are none or too many, and their
 * values at a position. */
#define BERTH__TILE_EXTRAS 2u
uint32_t berth__tile_n_extras(const berth__tile *tile);
void berth__tile_load_extras(const berth__tile *tile, berth__kernel *k, const berth__x *place, berth__x *values);
/* The position in every view of the element with these coordinates. */
void berth__tile_views(const berth__tile *tile, berth__kernel *k, const berth__x *at, berth__x *place);

/* ---- tile_place.c: addressing ---- */

typedef struct berth__tile_at {
  berth__x index, row;
  berth__x inside; /* BERTH__X_NONE: always */
  berth__x axis[BERTH__WINDOW_AXES];
  berth__x zero; /* BERTH__X_NONE: nothing to subtract */
} berth__tile_at;
/* Starts with a flat batch and a flat line; then adds the depth axis by axis, in any order, or all of it from a flat
 * depth. */
berth__tile_at berth__tile_start(const berth__tile *tile, berth__kernel *k, const berth__tile_side *side,
                                 const berth__tile_space *lines, berth__x batch, berth__x line);
berth__tile_at berth__tile_step(berth__kernel *k, const berth__tile_side *side, berth__tile_at at, uint32_t axis,
                                berth__x x);
berth__tile_at berth__tile_dive(const berth__tile *tile, berth__kernel *k, const berth__tile_side *side,
                                berth__tile_at at, berth__x depth);
berth__x berth__tile_load(const berth__tile *tile, berth__kernel *k, const berth__tile_side *side,
                          const berth__tile_at *at);
/* A position from a flat index over axes; contiguous axes are joined. */
berth__x berth__tile_place(berth__kernel *k, berth__x flat, uint32_t rank, const int64_t *dim, const int64_t *stride);

/* tile_words.c: the contents of a side's word: neighbours along the last axis of the depth, or adjacent lines, from a
 * multiple of their number on; at most one of the two counts is above 1. And the elements of the word at a position. */
#define BERTH__TILE_WORD 4u /* most elements per word */
typedef struct berth__tile_words {
  uint32_t depth, lines;
} berth__tile_words;
berth__tile_words berth__tile_words_of(const berth__tile *tile, const berth__tile_side *side,
                                       const berth__tile_space *lines);
/* The same for n elements of any storage except blocks, counted over all axes. */
berth__tile_words berth__tile_chunks_of(const berth__tile *tile, const berth__tile_side *side,
                                        const berth__tile_space *lines, uint32_t n);
void berth__tile_load_word(const berth__tile *tile, berth__kernel *k, const berth__tile_side *side,
                           const berth__tile_at *at, berth__x *values);

/* tile_norm.c: rows that are normalised by the product. The final factor of a sum, given the sum of squares; the scale
 * at a position of the depth; and adding elements to the sum of squares (a variable). */
static inline bool berth__tile_is_normed(const berth__tile *tile) { return tile->scale != BERTH__TILE_NONE; }
berth__x berth__tile_norm_factor(const berth__tile *tile, berth__kernel *k, berth__x squares);
berth__x berth__tile_norm_scale(const berth__tile *tile, berth__kernel *k, berth__x depth);
void berth__tile_norm_square(berth__kernel *k, berth__x variable, const berth__x *values, uint32_t n);

berth__x berth__tile_zero(const berth__tile *tile, berth__kernel *k);
berth__x berth__tile_add_product(const berth__tile *tile, berth__kernel *k, berth__x a, berth__x b, berth__x sum);
/* min(x, count - 1): keeps the loads of a tile at the edge inside. */
berth__x berth__tile_clamp(berth__kernel *k, berth__x x, int64_t count);

/* A thread's part of the result: rows and columns, their unclamped indices, and sums. */
typedef struct berth__tile_cells {
  uint32_t rows, columns;
  berth__x batch, row[BERTH__TILE_MOST], column[BERTH__TILE_MOST];
  berth__x sum[BERTH__TILE_MOST][BERTH__TILE_MOST];    /* values */
  berth__x second[BERTH__TILE_MOST][BERTH__TILE_MOST]; /* of the second right side, if there is one */
} berth__tile_cells;
/* The number of adjacent columns that make up a word of the result; 1 if elements are words, or words contain other
 * elements too. A thread that has all columns of a word stores them together. */
uint32_t berth__tile_word(const berth__tile *tile);
/* Loads the epilogue operands of one cell, for the `extras` of a tile that stores it later; the nearest ones if it is
 * outside the result. Whether there are any. */
bool berth__tile_load_ahead(const berth__tile *tile, berth__kernel *k, const berth__tile_cells *cell, berth__x *values);
/* Finishes the cells inside the result. `together`: this many columns at a time make up a word. */
void berth__tile_store(const berth__tile *tile, berth__kernel *k, const berth__tile_cells *cells, uint32_t together);
/* The same for sums of tiles, the first of which has this row and column; sums that belong together make up a word. */
void berth__tile_store_sums(const berth__tile *tile, berth__kernel *k, uint32_t sums, berth__x batch, berth__x row,
                            berth__x column);

/* ---- The forms ---- */

typedef struct berth__tile_form {
  uint32_t thread_rows, thread_columns; /* results per thread */
  /* Threads of a workgroup: shared. Split and packed: parts of the depth, and columns (packed: sets of
   * thread_columns). */
  uint32_t group_rows, group_columns;
  uint32_t depth; /* shared, deep: per piece */
} berth__tile_form;
berth_status berth__tile_registers(berth__tile *tile, const berth__tile_form *form, berth_error *err);
berth_status berth__tile_shared(berth__tile *tile, const berth__tile_form *form, berth_error *err);
berth_status berth__tile_deep(berth__tile *tile, const berth__tile_form *form, berth_error *err);
berth_status berth__tile_split(berth__tile *tile, const berth__tile_form *form, berth_error *err);
/* most_groups: workgroups loop over further columns; 0: each has only its own. */
berth_status berth__tile_packed(berth__tile *tile, const berth__tile_form *form, uint32_t most_groups,
                                berth_error *err);
/* tile_matrix.c: the compute type of the sums, f32 without matrix units; and the form, if one fits. */
berth_compute berth__tile_kind(const berth__tile *tile);
typedef struct berth__matrix_form {
  uint32_t rows, columns, threads, depth, slots;
  uint32_t parts; /* parts of the threads that share the depth */
  bool is_late;   /* warpgroups multiply */
  bool by_fours;  /* threads multiply f32, to which both sides are copied */
} berth__matrix_form;
bool berth__tile_matrix_form(const berth__tile *tile, berth_compute kind, berth__matrix_form *out);
bool berth__tile_fours_form(const berth__tile *tile, berth__matrix_form *out); /* the form for f32 */
berth_status berth__tile_matrix(berth__tile *tile, berth_compute kind, const berth__matrix_form *form,
                                berth_error *err);
/* tile_cost.c: estimated nanoseconds of the best form for warpgroups, with the depth cut into sections, and that form;
 * 0 if there is none. And of the best form for warps, or f32. */
double berth__tile_warpgroup_cost(const berth__tile *tile, uint32_t sections, berth__matrix_form *out);
double berth__tile_units_cost(const berth__tile *tile, berth_compute kind, uint32_t sections);
/* For warpgroups, by shape alone, before there is a tile. */
double berth__tile_shape_cost(int64_t batch, int64_t rows, int64_t columns, int64_t depth);
/* Rows of tiles that workgroups go through together, column by column: those that run at the same time load few
 * different bytes then; or all rows, if the cache keeps the whole left side but not the right one. */
int64_t berth__tile_band(const berth__tile *tile, int64_t rows, int64_t columns);
/* tile_staged.c: finishes sums of a tile whose results are runs of 16 bytes, by way of shared memory. The elements of a
 * run, 0 if results are no such runs; the bytes of shared memory; and the code, after which the operands are lost. */
typedef struct berth__tile_staging {
  uint32_t sums, rows, columns; /* of the workgroup */
  uint32_t width;               /* elements of a run, not 0 */
  uint32_t first_array;         /* the sums are staged over this array and those after it */
  berth__x batch, row, column;  /* of the first sum */
} berth__tile_staging;
uint32_t berth__tile_staged_width(const berth__tile *tile);
uint64_t berth__tile_staged_bytes(uint32_t rows, uint32_t columns);
void berth__tile_store_staged(const berth__tile *tile, berth__kernel *k, const berth__tile_staging *staging);
/* tile_sections.c: long sums with few results are cut into sections of the depth that have their own workgroups. Their
 * sums go to the step's scratch, and a second kernel adds them up, always in the same order. The number of sections
 * depends only on extents, types and limits; 1: the tile is not cut. */
uint32_t berth__tile_sections(const berth__tile *tile);
/* Estimated nanoseconds of a product by warpgroups, in sections where that is faster, by shape alone. */
double berth__tile_time(int64_t batch, int64_t rows, int64_t columns, int64_t depth);
uint64_t berth__tile_scratch(const berth__tile *tile); /* bytes of scratch */
berth_status berth__tile_lower_sections(berth__tile *tile, berth_error *err);
/* tile.c: the number of workgroups for tiles of this size. */
int64_t berth__tile_groups(const berth__tile *tile, int64_t rows, int64_t columns);
/* tile_packed.c: whether the packed form is possible, and the slices per sum. */
bool berth__tile_takes_packed(const berth__tile *tile);
int64_t berth__tile_packed_slices(const berth__tile *tile);
/* Whether its rows can be rounded to bytes; and, in this form, with `in_bytes` set. */
bool berth__tile_takes_bytes(const berth__tile *tile);
bool berth__tile_fits_bytes(const berth__tile *tile, const berth__tile_form *form);
/* Whether the right side has a block type. */
bool berth__tile_has_blocks(const berth__tile *tile);
/* Opens the kernel: sets its work, workgroups and threads. */
berth__kernel *berth__tile_begin(berth__tile *tile, const char *what, uint64_t groups, uint32_t threads);
/* Whether elements are contiguous along the depth rather than across lines. */
bool berth__tile_is_deep(const berth__tile *tile, const berth__tile_side *side, const berth__tile_space *lines);

#endif
