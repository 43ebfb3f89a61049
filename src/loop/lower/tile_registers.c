/* Each thread sums some rows and columns of the result, with what it multiplies straight from memory. Neighbouring
 * threads have neighbouring columns. */
#include "loop/lower/tile.h"

#define UNROLL 4 /* steps along the last axis of the depth that a round of its loop takes */

typedef struct work {
  const berth__tile *tile;
  berth__kernel *k;
  uint32_t rows, columns;
  berth__x sum[BERTH__TILE_MOST][BERTH__TILE_MOST]; /* variables */
} work;

/* Where the thread is on its way down the axes of the depth. */
typedef struct places {
  berth__tile_at left[BERTH__TILE_MOST], right[BERTH__TILE_MOST];
} places;

static void step_all(const work *w, places *p, uint32_t axis, berth__x x) {
  for (uint32_t i = 0; i < w->rows; i++) p->left[i] = berth__tile_step(w->k, &w->tile->left, p->left[i], axis, x);
  for (uint32_t j = 0; j < w->columns; j++) p->right[j] = berth__tile_step(w->k, &w->tile->right, p->right[j], axis, x);
}

static void multiply(const work *w, const places *p) {
  berth__kernel *k = w->k;
  berth__x left[BERTH__TILE_MOST], right[BERTH__TILE_MOST];
  for (uint32_t i = 0; i < w->rows; i++) left[i] = berth__tile_load(w->tile, k, &w->tile->left, &p->left[i]);
  for (uint32_t j = 0; j < w->columns; j++) right[j] = berth__tile_load(w->tile, k, &w->tile->right, &p->right[j]);
  for (uint32_t i = 0; i < w->rows; i++)
    for (uint32_t j = 0; j < w->columns; j++) {
      const berth__x sum = berth__x_get(k, w->sum[i][j]);
      berth__x_set(k, w->sum[i][j], berth__tile_add_product(w->tile, k, left[i], right[j], sum));
    }
}

static void last_axis(const work *w, const places *p, uint32_t axis) {
  const int64_t n = w->tile->depth.dim[axis], whole = n - n % UNROLL;
  berth__kernel *k = w->k;
  const berth__x x = berth__x_loop(k, berth__x_i32(k, 0), berth__x_i32(k, whole), UNROLL);
  for (int64_t i = 0; i < UNROLL && whole > 0; i++) {
    places at = *p;
    step_all(w, &at, axis, berth__x_affine(k, x, 1, i));
    multiply(w, &at);
  }
  berth__x_end(k);
  for (int64_t i = whole; i < n; i++) {
    places at = *p;
    step_all(w, &at, axis, berth__x_i32(k, i));
    multiply(w, &at);
  }
}

static void descend(const work *w, const places *p, uint32_t axis) {
  if (axis + 1 == w->tile->depth.rank) {
    last_axis(w, p, axis);
    return;
  }
  places at = *p;
  step_all(w, &at, axis, berth__x_loop_n(w->k, w->tile->depth.dim[axis]));
  descend(w, &at, axis + 1);
  berth__x_end(w->k);
}

static void start(work *w, const berth__tile_cells *cells, places *p) {
  const berth__tile *t = w->tile;
  for (uint32_t i = 0; i < w->rows; i++) {
    const berth__x row = berth__tile_clamp(w->k, cells->row[i], berth__tile_count(&t->rows));
    p->left[i] = berth__tile_start(t, w->k, &t->left, &t->rows, cells->batch, row);
  }
  for (uint32_t j = 0; j < w->columns; j++) {
    const berth__x column = berth__tile_clamp(w->k, cells->column[j], berth__tile_count(&t->columns));
    p->right[j] = berth__tile_start(t, w->k, &t->right, &t->columns, cells->batch, column);
  }
}

static void sum_cells(work *w, berth__tile_cells *cells) {
  for (uint32_t i = 0; i < w->rows; i++)
    for (uint32_t j = 0; j < w->columns; j++) w->sum[i][j] = berth__x_variable(w->k, berth__tile_zero(w->tile, w->k));
  if (berth__tile_count(&w->tile->depth) != 0) {
    places p;
    start(w, cells, &p);
    descend(w, &p, 0);
  }
  for (uint32_t i = 0; i < w->rows; i++)
    for (uint32_t j = 0; j < w->columns; j++) cells->sum[i][j] = berth__x_get(w->k, w->sum[i][j]);
}

berth_status berth__tile_registers(berth__tile *tile, const berth__tile_form *form, berth_error *err) {
  const int64_t batches = berth__tile_count(&tile->batch), rows = berth__tile_count(&tile->rows);
  const int64_t columns = berth__tile_count(&tile->columns);
  const int64_t bands = (rows + form->thread_rows - 1) / form->thread_rows;
  const int64_t strips = (columns + form->thread_columns - 1) / form->thread_columns;
  berth__kernel *k = berth__tile_begin(tile, NULL, 1, 1);
  if (k == NULL) return berth__l_end(tile->l, k, err);
  const berth__x index = berth__l_each(tile->l, k, batches * bands * strips);
  berth__x at[3];
  berth__l_unravel(k, index, 3, (const int64_t[]){batches, bands, strips}, at);
  berth__tile_cells cells = {.rows = form->thread_rows, .columns = form->thread_columns, .batch = at[0]};
  for (uint32_t i = 0; i < cells.rows; i++) cells.row[i] = berth__x_affine(k, at[1], cells.rows, i);
  for (uint32_t j = 0; j < cells.columns; j++) cells.column[j] = berth__x_affine(k, at[2], 1, (int64_t)j * strips);
  work w = {.tile = tile, .k = k, .rows = cells.rows, .columns = cells.columns};
  sum_cells(&w, &cells);
  berth__tile_store(tile, k, &cells);
  return berth__l_end(tile->l, k, err);
}
