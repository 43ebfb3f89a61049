/* Sums of products in tiles: what matrix products and convolutions have in common.
 *
 *   result(batch, row, column) = finish(sum over depth of left(batch, row, depth) * right(batch, depth, column))
 *
 * Each of the four is a space of axes. An operand's elements lie at strides over them; a convolution's x has a window,
 * whose taps are axes of the depth, so that nothing is unfolded in memory. tile.c chooses one of six forms:
 *
 *   registers  each thread has some rows and columns of the result and reads what it needs straight from memory
 *   shared     a workgroup takes pieces of both sides into shared memory and uses each element of them many times
 *   split      for few results with long sums: the threads of a workgroup share the depth
 *   deep       as shared, for few results with long sums: parts of a workgroup share the depth
 *   packed     for few rows and weights in blocks, or halves: threads decode whole slices of them
 *   matrix     as shared, for matrix units: where the plan allows what they round to, or operands are no wider
 *
 * Long sums with few results are cut into sections first, each of which is such a tile (tile_sections.c). */
#ifndef BERTH_KERNEL_LOWER_TILE_H
#define BERTH_KERNEL_LOWER_TILE_H

#include "kernel/lower.h"
#include "kernel/lower/blocks.h"
#include "ops/chain.h"
#include "ops/window.h"

#define BERTH__TILE_AXES (BERTH_MAX_RANK + 1)
#define BERTH__TILE_VIEWS 20u
#define BERTH__TILE_MOST 8u /* rows or columns of a thread */
#define BERTH__TILE_FEW_ROWS 4
#define BERTH__TILE_PARTS 4u /* deep: parts of a workgroup, that share the depth */
#define BERTH__TILE_NONE UINT32_MAX

typedef struct berth__tile_space {
  uint32_t rank;
  int64_t dim[BERTH__TILE_AXES];
  /* Which axis of the result an axis is, and how many elements of that one step is: groups are steps over channels. */
  uint32_t of[BERTH__TILE_AXES];
  int64_t times[BERTH__TILE_AXES]; /* 0: none */
} berth__tile_space;
void berth__tile_axis(berth__tile_space *space, int64_t dim, uint32_t of, int64_t times);
int64_t berth__tile_count(const berth__tile_space *space);

struct berth__tile;
/* One of the two that are multiplied. Lines are its rows (left) or columns (right). */
typedef struct berth__tile_side {
  uint32_t operand;
  int64_t batch[BERTH__TILE_AXES], line[BERTH__TILE_AXES], depth[BERTH__TILE_AXES]; /* strides */
  /* Where a batch begins, in the place of strides; NULL: by these. Its places are multiples of what lines lie apart. */
  berth__x (*base)(const struct berth__tile *tile, berth__kernel *k, berth__x batch);
  int64_t panel, panel_stride; /* panel > 0: line / panel * panel_stride + line % panel */
  int64_t fours;               /* > 0: depth is counted in rows, and rows lie four together, so far apart */
  /* A window over x: the last three axes of the lines are its places, three axes of the depth from `taps` on its taps;
   * what lies outside counts as 0. */
  const berth__window *window;
  bool is_transposed; /* a place of the result collects from the places of x whose windows cover it */
  uint32_t taps;
  int64_t window_stride[BERTH__WINDOW_AXES];
  /* What is taken off the elements, for integers: an operand (or none), with strides over flat batches and lines, less
   * `shift`. */
  uint32_t zero;
  int64_t zero_batch, zero_line, shift;
} berth__tile_side;

/* An operand or a result seen from the places of the result: strides over the result's axes. */
typedef struct berth__tile_view {
  int64_t stride[BERTH_MAX_RANK];
} berth__tile_view;

typedef struct berth__tile {
  berth__lowering *l;
  berth__number type; /* of the sums: F32 or I32 (integers wrap) */
  berth__tile_space batch, rows, columns, depth;
  berth__tile_side left, right;
  berth__tile_view views[BERTH__TILE_VIEWS]; /* the first is that of the result */
  uint32_t n_views;
  /* Makes what becomes of a sum and stores it; place[v] is where view v has the element. */
  void (*finish)(const struct berth__tile *tile, berth__kernel *k, const berth__x *place, berth__x sum);
  const void *user;    /* finish's own */
  bool goes_elsewhere; /* finish does not store into the call's first result */
  bool has_weight;     /* the right side is one as a rule, and nothing of a run stores it */
  /* For few rows. scale: an operand that runs along the depth; rows are divided by the root of the mean of their
   * squares and multiplied by it, on the way: sum of x * scale * w over that root. BERTH__TILE_NONE: they are not. */
  uint32_t scale;
  double epsilon;
  /* Another right side (BERTH__TILE_NONE: there is none), with its strides; finish finds its sum where second_sum
   * points to. For the packed form, where it lies as the right one does, and the one by registers. */
  uint32_t second;
  berth__tile_side second_side;
  berth__x *second_sum;
  berth__l_table table; /* of the blocks on the right: set by the forms */
  /* What the operands of the usual end have for the cell that is finished; NULL: they are loaded there. A result may
   * lie over one of them, so that no compiler brings forward what is loaded between two stores. */
  const berth__x *extras;
} berth__tile;

/* A tile of the call's first result, with that as its first view and no axes. */
void berth__tile_init(berth__tile *tile, berth__lowering *l, berth__number type);
/* Adds a view of an operand that broadcasts against the result (strides over its last axes), or of one axis alone; its
 * number. */
uint32_t berth__tile_view_operand(berth__tile *tile, uint32_t operand);
uint32_t berth__tile_view_axis(berth__tile *tile, uint32_t axis, int64_t stride);
berth_status berth__tile_lower(berth__tile *tile, berth_error *err);

/* The usual end: bias?, what is added?, an epilogue. Operands as in ops/epilogue.h. */
typedef struct berth__tile_epilogue {
  uint32_t bias, sum, first_extra; /* operands; BERTH__TILE_NONE: there is none */
  uint32_t bias_view, sum_view, extra_view;
  berth__chain chain;
} berth__tile_epilogue;
/* `axis` of the result is that of the bias. adds: NULL where the op has none. */
berth_status berth__tile_epilogue_read(berth__tile *tile, berth__tile_epilogue *epilogue, uint32_t bias, uint32_t axis,
                                       const berth_attr *adds, uint32_t first_extra, const berth_attr *code,
                                       const berth_attr *numbers, berth_error *err);
berth__x berth__tile_epilogue_value(const berth__tile *tile, const berth__tile_epilogue *epilogue, berth__kernel *k,
                                    const berth__x *place, berth__x value);
void berth__tile_finish(const berth__tile *tile, berth__kernel *k, const berth__x *place, berth__x sum);
/* The operands of a tile's end that are loaded before the first store: how many there are, 0 where they are few or too
 * many, and what they hold at a place. */
#define BERTH__TILE_EXTRAS 2u
uint32_t berth__tile_n_extras(const berth__tile *tile);
void berth__tile_load_extras(const berth__tile *tile, berth__kernel *k, const berth__x *place, berth__x *values);
/* Where every view has the element at these coordinates of the result. */
void berth__tile_views(const berth__tile *tile, berth__kernel *k, const berth__x *at, berth__x *place);

/* ---- tile_place.c: the way to an element ---- */

typedef struct berth__tile_at {
  berth__x index, row;
  berth__x inside; /* BERTH__X_NONE: it always is */
  berth__x axis[BERTH__WINDOW_AXES];
  berth__x zero; /* BERTH__X_NONE: nothing is taken off */
} berth__tile_at;
/* From a batch and a line, both flat; then axis by axis of the depth, in any order; or all of them from a flat depth.
 */
berth__tile_at berth__tile_start(const berth__tile *tile, berth__kernel *k, const berth__tile_side *side,
                                 const berth__tile_space *lines, berth__x batch, berth__x line);
berth__tile_at berth__tile_step(berth__kernel *k, const berth__tile_side *side, berth__tile_at at, uint32_t axis,
                                berth__x x);
berth__tile_at berth__tile_dive(const berth__tile *tile, berth__kernel *k, const berth__tile_side *side,
                                berth__tile_at at, berth__x depth);
berth__x berth__tile_load(const berth__tile *tile, berth__kernel *k, const berth__tile_side *side,
                          const berth__tile_at *at);
/* A place from a flat index over axes; axes that lie without a gap are taken together. */
berth__x berth__tile_place(berth__kernel *k, berth__x flat, uint32_t rank, const int64_t *dim, const int64_t *stride);

/* tile_words.c: what a word of a side holds: so many neighbours of the last axis of the depth, or lines beside each
 * other, from a multiple of that number on; at most one of the two is more than 1. And the elements of the word that
 * begins at a place. */
#define BERTH__TILE_WORD 4u /* elements of a word at most */
typedef struct berth__tile_words {
  uint32_t depth, lines;
} berth__tile_words;
berth__tile_words berth__tile_words_of(const berth__tile *tile, const berth__tile_side *side,
                                       const berth__tile_space *lines);
/* The same for n elements of any storage that is not of blocks, counted through all axes. */
berth__tile_words berth__tile_chunks_of(const berth__tile *tile, const berth__tile_side *side,
                                        const berth__tile_space *lines, uint32_t n);
void berth__tile_load_word(const berth__tile *tile, berth__kernel *k, const berth__tile_side *side,
                           const berth__tile_at *at, berth__x *values);

/* tile_norm.c: rows that are normed on the way. What a sum is multiplied by in the end, from the sum of squares; the
 * scale at a place of the depth; and the sum of squares so far (a variable) with some more elements. */
static inline bool berth__tile_is_normed(const berth__tile *tile) { return tile->scale != BERTH__TILE_NONE; }
berth__x berth__tile_norm_factor(const berth__tile *tile, berth__kernel *k, berth__x squares);
berth__x berth__tile_norm_scale(const berth__tile *tile, berth__kernel *k, berth__x depth);
void berth__tile_norm_square(berth__kernel *k, berth__x variable, const berth__x *values, uint32_t n);

berth__x berth__tile_zero(const berth__tile *tile, berth__kernel *k);
berth__x berth__tile_add_product(const berth__tile *tile, berth__kernel *k, berth__x a, berth__x b, berth__x sum);
/* x, but at most count - 1: where a tile hangs over the edge, its loads stay inside. */
berth__x berth__tile_clamp(berth__kernel *k, berth__x x, int64_t count);

/* What a thread has of the result: so many rows and columns, their numbers before they were clamped, and sums. */
typedef struct berth__tile_cells {
  uint32_t rows, columns;
  berth__x batch, row[BERTH__TILE_MOST], column[BERTH__TILE_MOST];
  berth__x sum[BERTH__TILE_MOST][BERTH__TILE_MOST];    /* values */
  berth__x second[BERTH__TILE_MOST][BERTH__TILE_MOST]; /* those of the second right side, where there is one */
} berth__tile_cells;
/* How many columns beside each other make a word of the result: 1 where it has a word for each, or they share words
 * with others. A thread that has such columns stores them at once. */
uint32_t berth__tile_word(const berth__tile *tile);
/* Finishes the cells that are not over the edge. `together`: so many columns from the first on make a word, and so on.
 */
void berth__tile_store(const berth__tile *tile, berth__kernel *k, const berth__tile_cells *cells, uint32_t together);
/* The same for sums of tiles, whose first has this row and column; those that lie together make a word. */
void berth__tile_store_sums(const berth__tile *tile, berth__kernel *k, uint32_t sums, berth__x batch, berth__x row,
                            berth__x column);

/* ---- The forms ---- */

typedef struct berth__tile_form {
  uint32_t thread_rows, thread_columns; /* results of a thread */
  /* Threads of a workgroup: shared. Split and packed: parts of the depth, and columns or, packed, thread_columns of
   * them each. */
  uint32_t group_rows, group_columns;
  uint32_t depth; /* shared, deep: of a piece */
} berth__tile_form;
berth_status berth__tile_registers(berth__tile *tile, const berth__tile_form *form, berth_error *err);
berth_status berth__tile_shared(berth__tile *tile, const berth__tile_form *form, berth_error *err);
berth_status berth__tile_deep(berth__tile *tile, const berth__tile_form *form, berth_error *err);
berth_status berth__tile_split(berth__tile *tile, const berth__tile_form *form, berth_error *err);
/* most_groups: workgroups that go on with further columns, 0: each has some of its own. */
berth_status berth__tile_packed(berth__tile *tile, const berth__tile_form *form, uint32_t most_groups,
                                berth_error *err);
/* tile_matrix.c: how the sums are multiplied, f32 where not by matrix units; and that form, where one fits. */
berth_compute berth__tile_kind(const berth__tile *tile);
typedef struct berth__matrix_form {
  uint32_t rows, columns, threads, depth, slots;
  uint32_t parts; /* of the threads, that share the depth */
  bool is_late;   /* warpgroups multiply */
  bool by_fours;  /* threads multiply, f32 that both sides are copied as */
} berth__matrix_form;
bool berth__tile_matrix_form(const berth__tile *tile, berth_compute kind, berth__matrix_form *out);
bool berth__tile_fours_form(const berth__tile *tile, berth__matrix_form *out); /* that of f32 */
berth_status berth__tile_matrix(berth__tile *tile, berth_compute kind, const berth__matrix_form *form,
                                berth_error *err);
/* tile_sections.c: long sums with few results, cut into sections of the depth that have workgroups of their own. What
 * these sum lies in the step's scratch, and a second kernel adds it up, always in the same order. How many sections
 * there are depends on extents, types and limits alone; 1: the tile is lowered as it is. */
uint32_t berth__tile_sections(const berth__tile *tile);
uint64_t berth__tile_scratch(const berth__tile *tile); /* bytes of scratch */
berth_status berth__tile_lower_sections(berth__tile *tile, berth_error *err);
/* tile.c: the workgroups that tiles of this size are. */
int64_t berth__tile_groups(const berth__tile *tile, int64_t rows, int64_t columns);
/* tile_packed.c: whether it can be made, and the slices that a sum has then. */
bool berth__tile_takes_packed(const berth__tile *tile);
int64_t berth__tile_packed_slices(const berth__tile *tile);
/* Whether the right side lies in blocks. */
bool berth__tile_has_blocks(const berth__tile *tile);
/* Opens the kernel: its work, workgroups and threads. */
berth__kernel *berth__tile_begin(berth__tile *tile, const char *what, uint64_t groups, uint32_t threads);
/* Whether neighbours along the depth, rather than lines, are neighbours in memory. */
bool berth__tile_is_deep(const berth__tile *tile, const berth__tile_side *side, const berth__tile_space *lines);

#endif
