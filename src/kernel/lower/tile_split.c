/* The form `split`: a workgroup computes some columns of a few rows, and its threads share the depth: each sums a part
 * of it. Adjacent parts form sets, which are added up by subgroup exchange if lanes can do that; otherwise a set is one
 * part. The sets are added up in shared memory. */
#include "kernel/lower/tile.h"

typedef struct work {
  const berth__tile *tile;
  const berth__tile_form *form; /* group_columns: columns per workgroup; group_rows: parts of the depth */
  berth__kernel *k;
  berth__x part, column; /* of the thread, in its workgroup */
  uint32_t lanes, sets;  /* parts per set, and number of sets */
  uint32_t parts;        /* shared: [rows][sets][columns]; if rows are normalised, their squares are further rows */
} work;

static void sum_part(const work *w, const berth__tile_cells *cells, berth__x *sums) {
  const berth__tile *t = w->tile;
  berth__kernel *k = w->k;
  berth__tile_at left[BERTH__TILE_MOST], right;
  for (uint32_t i = 0; i < cells->rows; i++) {
    const berth__x row = berth__tile_clamp(k, cells->row[i], berth__tile_count(&t->rows));
    left[i] = berth__tile_start(t, k, &t->left, &t->rows, cells->batch, row);
    sums[i] = berth__x_variable(k, berth__tile_zero(t, k));
    if (berth__tile_is_normed(t)) sums[cells->rows + i] = berth__x_variable(k, berth__tile_zero(t, k));
  }
  const berth__x column = berth__tile_clamp(k, cells->column[0], berth__tile_count(&t->columns));
  right = berth__tile_start(t, k, &t->right, &t->columns, cells->batch, column);
  const berth__x whole = berth__x_i32(k, berth__tile_count(&t->depth));
  const berth__x depth = berth__x_loop(k, w->part, whole, w->form->group_rows);
  const berth__tile_at right_at = berth__tile_dive(t, k, &t->right, right, depth);
  berth__x factor = berth__tile_load(t, k, &t->right, &right_at);
  if (berth__tile_is_normed(t)) factor = berth__x_mul(k, factor, berth__tile_norm_scale(t, k, depth));
  for (uint32_t i = 0; i < cells->rows; i++) {
    const berth__tile_at at = berth__tile_dive(t, k, &t->left, left[i], depth);
    const berth__x value = berth__tile_load(t, k, &t->left, &at);
    if (berth__tile_is_normed(t)) berth__tile_norm_square(k, sums[cells->rows + i], &value, 1);
    berth__x_set(k, sums[i], berth__tile_add_product(t, k, value, factor, berth__x_get(k, sums[i])));
  }
  berth__x_end(k);
}

static berth__x slot_of(const work *w, uint32_t row, berth__x set) {
  const int64_t columns = w->form->group_columns;
  const berth__x first = berth__x_affine(w->k, set, columns, (int64_t)row * w->sets * columns);
  return berth__x_add(w->k, first, w->column);
}

/* Parts per set. */
static uint32_t lanes_of(const berth__kernel_limits *limits, const berth__tile_form *form, bool is_deep) {
  const uint32_t lanes = limits->exchanges && is_deep ? limits->lanes : 1;
  return lanes > 1 && (lanes & (lanes - 1)) == 0 && form->group_rows % lanes == 0 ? lanes : 1;
}

/* Stores the sum of a set in its slot. */
static void store_sets(const work *w, uint32_t rows, const berth__x *sums) {
  berth__kernel *k = w->k;
  const berth__x lanes = berth__x_i32(k, w->lanes), set = berth__x_div(k, w->part, lanes);
  berth__x all[2 * BERTH__TILE_MOST];
  for (uint32_t i = 0; i < rows; i++) {
    all[i] = berth__x_get(k, sums[i]);
    for (uint32_t distance = w->lanes / 2; distance > 0; distance /= 2)
      all[i] = berth__x_add(k, all[i], berth__x_exchange(k, all[i], distance));
  }
  berth__x_if(k, berth__x_eq(k, berth__x_rem(k, w->part, lanes), berth__x_i32(k, 0)));
  for (uint32_t i = 0; i < rows; i++) berth__x_shared_store(k, w->parts, slot_of(w, i, set), all[i]);
  berth__x_end(k);
}

/* Halves the number of sets until one is left. If it is not a power of two, the excess is added first. */
static void lower_tile_split_add_sets(const work *w, uint32_t rows) {
  berth__kernel *k = w->k;
  uint32_t left = w->sets;
  berth__x_barrier(k);
  while (left > 1) {
    const uint32_t half = (left + 1) / 2;
    berth__x_if(k, berth__x_lt(k, berth__x_affine(k, w->part, 1, half), berth__x_i32(k, left)));
    for (uint32_t i = 0; i < rows; i++) {
      const berth__x to = slot_of(w, i, w->part), from = slot_of(w, i, berth__x_affine(k, w->part, 1, half));
      const berth__x sum =
          berth__x_add(k, berth__x_shared_load(k, w->parts, to), berth__x_shared_load(k, w->parts, from));
      berth__x_shared_store(k, w->parts, to, sum);
    }
    berth__x_end(k);
    berth__x_barrier(k);
    left = half;
  }
}

/* Columns that make up a word of the result, if a workgroup has whole words; otherwise 1. */
static uint32_t lower_tile_split_word(const work *w) {
  const uint32_t word = berth__tile_word(w->tile);
  return w->form->group_columns % word == 0 ? word : 1;
}

/* The threads of the first parts finish one row each: a column, or the columns of a word. */
static void lower_tile_split_store_rows(const work *w, const berth__tile_cells *cells) {
  berth__kernel *k = w->k;
  const uint32_t word = lower_tile_split_word(w);
  const berth__x is_first = berth__x_eq(k, berth__x_rem(k, w->column, berth__x_i32(k, word)), berth__x_i32(k, 0));
  for (uint32_t i = 0; i < cells->rows; i++) {
    const int64_t owner = i % w->form->group_rows;
    berth__tile_cells some = {.rows = 1, .columns = word, .batch = cells->batch};
    some.row[0] = cells->row[i];
    berth__x_if(k, berth__x_and(k, berth__x_eq(k, w->part, berth__x_i32(k, owner)), is_first));
    for (uint32_t j = 0; j < word; j++) {
      some.column[j] = berth__x_affine(k, cells->column[0], 1, j);
      some.sum[0][j] = berth__x_shared_load(k, w->parts, berth__x_affine(k, slot_of(w, i, berth__x_i32(k, 0)), 1, j));
    }
    if (berth__tile_is_normed(w->tile)) {
      const berth__x squares = berth__x_shared_load(k, w->parts, slot_of(w, cells->rows + i, berth__x_i32(k, 0)));
      const berth__x factor = berth__tile_norm_factor(w->tile, k, squares);
      for (uint32_t j = 0; j < word; j++) some.sum[0][j] = berth__x_mul(k, some.sum[0][j], factor);
    }
    berth__tile_store(w->tile, k, &some, word);
    berth__x_end(k);
  }
}

berth_status berth__tile_split(berth__tile *tile, const berth__tile_form *form, berth_error *err) {
  const uint32_t threads = form->group_rows * form->group_columns;
  const bool is_deep = berth__tile_is_deep(tile, &tile->right, &tile->columns);
  const int64_t dims[3] = {berth__tile_count(&tile->batch),
                           (berth__tile_count(&tile->rows) + form->thread_rows - 1) / form->thread_rows,
                           (berth__tile_count(&tile->columns) + form->group_columns - 1) / form->group_columns};
  berth__kernel *k = berth__tile_begin(tile, "split", (uint64_t)(dims[0] * dims[1] * dims[2]), threads);
  if (k == NULL) return berth__l_end(tile->l, k, err);
  const uint32_t n_sums = form->thread_rows * (berth__tile_is_normed(tile) ? 2 : 1);
  berth__x group[3], sums[2 * BERTH__TILE_MOST];
  berth__l_unravel(k, berth__x_group(k), 3, dims, group);
  const berth__x thread = berth__x_thread(k), inner = berth__x_i32(k, is_deep ? form->group_rows : form->group_columns);
  const berth__x low = berth__x_rem(k, thread, inner), high = berth__x_div(k, thread, inner);
  work w = {.tile = tile, .form = form, .k = k, .part = is_deep ? low : high, .column = is_deep ? high : low};
  w.lanes = lanes_of(tile->l->limits, form, is_deep);
  w.sets = form->group_rows / w.lanes;
  w.parts = berth__kernel_shared(k, tile->type, n_sums * threads / w.lanes);
  berth__tile_cells cells = {.rows = form->thread_rows, .columns = 1, .batch = group[0]};
  for (uint32_t i = 0; i < cells.rows; i++) cells.row[i] = berth__x_affine(k, group[1], cells.rows, i);
  cells.column[0] = berth__x_add(k, berth__x_affine(k, group[2], form->group_columns, 0), w.column);
  sum_part(&w, &cells, sums);
  store_sets(&w, n_sums, sums);
  lower_tile_split_add_sets(&w, n_sums);
  lower_tile_split_store_rows(&w, &cells);
  return berth__l_end(tile->l, k, err);
}
