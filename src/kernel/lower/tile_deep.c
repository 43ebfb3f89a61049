/* The form `deep` (split-K inside a workgroup), for few results with long sums: like `shared`, but the threads of a
 * workgroup form parts that share the depth. Each part has its own pieces in shared memory, and sums for the same
 * results; at the end the first part adds up the partial sums of the others. This keeps busy a device that so few
 * results would leave idle, without partial sums in memory. */
#include "kernel/lower/tile.h"

#define MOST_ELEMENTS 16u /* of a piece, per thread */

typedef struct deep_piece {
  const berth__tile_side *side;
  const berth__tile_space *lines;
  uint32_t width;                   /* lines of the piece, which are contiguous */
  berth__x first;                   /* line of the workgroup */
  berth__x base;                    /* offset of the part's piece in the array */
  uint32_t n_elements;              /* elements per thread: every `threads`-th */
  berth__x elements[MOST_ELEMENTS]; /* variables */
} deep_piece;

typedef struct deep_work {
  const berth__tile *tile;
  const berth__tile_form *form;
  berth__kernel *k;
  deep_piece left, right;
  uint32_t array;                                   /* shared: pieces of both sides, part by part; finally sums */
  berth__x thread, part, batch;                     /* thread: of its part */
  berth__x row, column;                             /* of the thread, in the tile */
  berth__x sum[BERTH__TILE_MOST][BERTH__TILE_MOST]; /* variables */
} deep_work;

static uint32_t deep_threads(const deep_work *w) { return w->form->group_rows * w->form->group_columns; }

/* One more than the number of lines, so that threads with consecutive depths use different banks. */
static uint32_t deep_pitch(const deep_piece *p) { return p->width + 1; }

static uint32_t deep_piece_size(const deep_work *w, const deep_piece *p) { return deep_pitch(p) * w->form->depth; }

static uint32_t deep_sums(const deep_work *w) {
  return w->form->thread_rows * w->form->thread_columns * deep_threads(w);
}

static void deep_make_array(deep_work *w) {
  const uint32_t both = deep_piece_size(w, &w->left) + deep_piece_size(w, &w->right), sums = deep_sums(w);
  w->array = berth__kernel_shared(w->k, w->tile->type, BERTH__TILE_PARTS * (both > sums ? both : sums));
  w->left.base = berth__x_affine(w->k, w->part, both, 0);
  w->right.base = berth__x_affine(w->k, w->part, both, deep_piece_size(w, &w->left));
}

static void deep_open_piece(const deep_work *w, deep_piece *p) {
  p->n_elements = p->width * w->form->depth / deep_threads(w);
  for (uint32_t i = 0; i < p->n_elements; i++)
    p->elements[i] = berth__x_variable(w->k, berth__tile_zero(w->tile, w->k));
}

/* The line and depth in the piece of a thread's element `i`: neighbouring threads load neighbouring elements. Pieces
 * are a multiple of the number of threads. */
static void deep_place(const deep_work *w, const deep_piece *p, uint32_t i, berth__x *line, berth__x *depth) {
  berth__kernel *k = w->k;
  const bool is_deep = berth__tile_is_deep(w->tile, p->side, p->lines);
  const berth__x n = berth__x_affine(k, w->thread, 1, (int64_t)i * deep_threads(w));
  const berth__x inner = berth__x_i32(k, is_deep ? w->form->depth : p->width);
  const berth__x low = berth__x_rem(k, n, inner), high = berth__x_div(k, n, inner);
  *line = is_deep ? high : low;
  *depth = is_deep ? low : high;
}

/* Loads from memory into the thread's variables; zeros past the end of the depth. */
static void deep_fetch(const deep_work *w, const deep_piece *p, berth__x from) {
  berth__kernel *k = w->k;
  const int64_t whole = berth__tile_count(&w->tile->depth), lines = berth__tile_count(p->lines);
  const bool is_even = whole % ((int64_t)w->form->depth * BERTH__TILE_PARTS) == 0; /* no partial piece at the end */
  for (uint32_t i = 0; i < p->n_elements; i++) {
    berth__x line, depth;
    deep_place(w, p, i, &line, &depth);
    depth = berth__x_add(k, from, depth);
    const berth__x at_line = berth__tile_clamp(k, berth__x_add(k, p->first, line), lines);
    berth__tile_at at = berth__tile_start(w->tile, k, p->side, p->lines, w->batch, at_line);
    at = berth__tile_dive(w->tile, k, p->side, at, is_even ? depth : berth__tile_clamp(k, depth, whole));
    berth__x value = berth__tile_load(w->tile, k, p->side, &at);
    if (!is_even)
      value = berth__x_select(k, berth__x_lt(k, depth, berth__x_i32(k, whole)), value, berth__tile_zero(w->tile, k));
    berth__x_set(k, p->elements[i], value);
  }
}

static void deep_put(const deep_work *w, const deep_piece *p) {
  berth__kernel *k = w->k;
  for (uint32_t i = 0; i < p->n_elements; i++) {
    berth__x line, depth;
    deep_place(w, p, i, &line, &depth);
    const berth__x to = berth__x_add(k, berth__x_affine(k, depth, deep_pitch(p), 0), line);
    berth__x_shared_store(k, w->array, berth__x_add(k, p->base, to), berth__x_get(k, p->elements[i]));
  }
}

static int64_t deep_row_at(const deep_work *w, uint32_t i) { return (int64_t)i * w->form->group_rows; }
static int64_t deep_column_at(const deep_work *w, uint32_t j) { return (int64_t)j * w->form->group_columns; }

static void deep_multiply(const deep_work *w) {
  const berth__tile_form *f = w->form;
  berth__kernel *k = w->k;
  berth__x left[BERTH__TILE_MOST], right[BERTH__TILE_MOST];
  const berth__x depth = berth__x_loop_unrolled(k, berth__x_i32(k, 0), berth__x_i32(k, f->depth), 1);
  const berth__x left_at =
      berth__x_add(k, berth__x_add(k, w->left.base, w->row), berth__x_affine(k, depth, deep_pitch(&w->left), 0));
  const berth__x right_at =
      berth__x_add(k, berth__x_add(k, w->right.base, w->column), berth__x_affine(k, depth, deep_pitch(&w->right), 0));
  for (uint32_t i = 0; i < f->thread_rows; i++)
    left[i] = berth__x_shared_load(k, w->array, berth__x_affine(k, left_at, 1, deep_row_at(w, i)));
  for (uint32_t j = 0; j < f->thread_columns; j++)
    right[j] = berth__x_shared_load(k, w->array, berth__x_affine(k, right_at, 1, deep_column_at(w, j)));
  for (uint32_t i = 0; i < f->thread_rows; i++)
    for (uint32_t j = 0; j < f->thread_columns; j++) {
      const berth__x sum = berth__x_get(k, w->sum[i][j]);
      berth__x_set(k, w->sum[i][j], berth__tile_add_product(w->tile, k, left[i], right[j], sum));
    }
  berth__x_end(k);
}

static void deep_fetch_both(const deep_work *w, berth__x round) {
  const berth__x from = berth__x_add(w->k, round, berth__x_affine(w->k, w->part, w->form->depth, 0));
  deep_fetch(w, &w->left, from);
  deep_fetch(w, &w->right, from);
}

/* While a piece is processed, the next one is being loaded. */
static void deep_sum(const deep_work *w) {
  berth__kernel *k = w->k;
  const int64_t step = (int64_t)w->form->depth * BERTH__TILE_PARTS;
  const berth__x whole = berth__x_i32(k, berth__tile_count(&w->tile->depth));
  deep_fetch_both(w, berth__x_i32(k, 0));
  const berth__x from = berth__x_loop(k, berth__x_i32(k, 0), whole, step);
  const berth__x next = berth__x_affine(k, from, 1, step);
  deep_put(w, &w->left);
  deep_put(w, &w->right);
  berth__x_barrier(k);
  berth__x_if(k, berth__x_lt(k, next, whole));
  deep_fetch_both(w, next);
  berth__x_end(k);
  deep_multiply(w);
  berth__x_barrier(k);
  berth__x_end(k);
}

/* Sums of parts are stored as [part][result of a thread][thread]. */
static berth__x deep_slot(const deep_work *w, berth__x part, uint32_t result) {
  const berth__x first = berth__x_affine(w->k, part, deep_sums(w), (int64_t)result * deep_threads(w));
  return berth__x_add(w->k, first, w->thread);
}

static void deep_join(const deep_work *w, berth__tile_cells *cells) {
  const berth__tile_form *f = w->form;
  berth__kernel *k = w->k;
  const uint32_t n = f->thread_rows * f->thread_columns;
  for (uint32_t r = 0; r < n; r++)
    berth__x_shared_store(k, w->array, deep_slot(w, w->part, r),
                          berth__x_get(k, w->sum[r / f->thread_columns][r % f->thread_columns]));
  berth__x_barrier(k);
  berth__x_if(k, berth__x_eq(k, w->part, berth__x_i32(k, 0)));
  for (uint32_t r = 0; r < n; r++) {
    berth__x sum = berth__x_shared_load(k, w->array, deep_slot(w, berth__x_i32(k, 0), r));
    for (uint32_t part = 1; part < BERTH__TILE_PARTS; part++)
      sum = berth__x_add(k, sum, berth__x_shared_load(k, w->array, deep_slot(w, berth__x_i32(k, part), r)));
    cells->sum[r / f->thread_columns][r % f->thread_columns] = sum;
  }
  berth__tile_store(w->tile, k, cells, 1);
  berth__x_end(k);
}

static void deep_cells(const deep_work *w, berth__tile_cells *cells) {
  berth__kernel *k = w->k;
  for (uint32_t i = 0; i < cells->rows; i++)
    cells->row[i] = berth__x_add(k, berth__x_affine(k, w->left.first, 1, deep_row_at(w, i)), w->row);
  for (uint32_t j = 0; j < cells->columns; j++)
    cells->column[j] = berth__x_add(k, berth__x_affine(k, w->right.first, 1, deep_column_at(w, j)), w->column);
}

berth_status berth__tile_deep(berth__tile *tile, const berth__tile_form *form, berth_error *err) {
  const uint32_t height = form->group_rows * form->thread_rows, width = form->group_columns * form->thread_columns;
  const int64_t dims[3] = {berth__tile_count(&tile->batch), (berth__tile_count(&tile->rows) + height - 1) / height,
                           (berth__tile_count(&tile->columns) + width - 1) / width};
  berth__kernel *k = berth__tile_begin(tile, "deep", (uint64_t)(dims[0] * dims[1] * dims[2]),
                                       BERTH__TILE_PARTS * form->group_rows * form->group_columns);
  if (k == NULL) return berth__l_end(tile->l, k, err);
  berth__x group[3], at[3];
  berth__l_unravel(k, berth__x_group(k), 3, dims, group);
  berth__l_unravel(k, berth__x_thread(k), 3,
                   (const int64_t[]){BERTH__TILE_PARTS, form->group_rows, form->group_columns}, at);
  deep_work w = {.tile = tile, .form = form, .k = k, .batch = group[0], .part = at[0], .row = at[1], .column = at[2]};
  w.thread = berth__x_rem(k, berth__x_thread(k), berth__x_i32(k, deep_threads(&w)));
  w.left = (deep_piece){.side = &tile->left, .lines = &tile->rows, .width = height};
  w.right = (deep_piece){.side = &tile->right, .lines = &tile->columns, .width = width};
  w.left.first = berth__x_affine(k, group[1], height, 0);
  w.right.first = berth__x_affine(k, group[2], width, 0);
  deep_make_array(&w);
  deep_open_piece(&w, &w.left);
  deep_open_piece(&w, &w.right);
  for (uint32_t i = 0; i < form->thread_rows; i++)
    for (uint32_t j = 0; j < form->thread_columns; j++) w.sum[i][j] = berth__x_variable(k, berth__tile_zero(tile, k));
  deep_sum(&w);
  berth__tile_cells cells = {.rows = form->thread_rows, .columns = form->thread_columns, .batch = group[0]};
  deep_cells(&w, &cells);
  deep_join(&w, &cells);
  return berth__l_end(tile->l, k, err);
}
