/* Workgroups that loop over further columns and keep the rows for all of them. A sum belongs to the lanes of one
 * subgroup, so no barrier is needed. */
#include "kernel/lower/tile_packed.h"

/* The divisors of the rows. Contains the barrier after staging the rows. */
static void packed_flow_factors(const berth__packed *w, berth__x *factors) {
  berth__kernel *k = w->k;
  const uint32_t sets = k->group_size / w->reach, rows = w->form->thread_rows;
  if (!berth__tile_is_normed(w->tile)) {
    berth__x_barrier(k);
    return;
  }
  const uint32_t array = berth__kernel_shared(k, BERTH__NUM_F32, sets * rows);
  const berth__x reach = berth__x_i32(k, w->reach), set = berth__x_div(k, berth__x_thread(k), reach);
  berth__x squares[BERTH__TILE_MOST];
  for (uint32_t row = 0; row < rows; row++) squares[row] = berth__packed_exchange(w, w->squares[row]);
  berth__x_if(k, berth__x_eq(k, berth__x_rem(k, berth__x_thread(k), reach), berth__x_i32(k, 0)));
  for (uint32_t row = 0; row < rows; row++)
    berth__x_shared_store(k, array, berth__x_affine(k, set, 1, (int64_t)row * sets), squares[row]);
  berth__x_end(k);
  berth__x_barrier(k);
  for (uint32_t row = 0; row < rows; row++) {
    berth__x sum = berth__x_shared_load(k, array, berth__x_i32(k, (int64_t)row * sets));
    for (uint32_t i = 1; i < sets; i++)
      sum = berth__x_add(k, sum, berth__x_shared_load(k, array, berth__x_i32(k, (int64_t)row * sets + i)));
    factors[row] = berth__tile_norm_factor(w->tile, k, sum);
  }
}

/* Every lane has every sum: lane i finishes sum i. */
static berth__tile_cells packed_flow_one(const berth__packed *w, const berth__tile_cells *cells) {
  berth__kernel *k = w->k;
  const berth__x columns = berth__x_i32(k, cells->columns);
  berth__tile_cells one = {.rows = 1, .columns = 1, .batch = cells->batch};
  one.row[0] = berth__tile_clamp(k, berth__x_div(k, w->lane, columns), cells->rows);
  one.column[0] = berth__x_add(k, cells->column[0], berth__x_rem(k, w->lane, columns));
  return one;
}

/* Loads the other operands of the lane's sum, which are on their way while it adds up. */
static bool packed_flow_load(const berth__packed *w, const berth__tile_cells *cells, berth__x *extras) {
  const berth__tile_cells one = packed_flow_one(w, cells);
  return berth__tile_load_ahead(w->tile, w->k, &one, extras);
}

/* extras NULL: nothing was loaded for the cell. */
static void packed_flow_store(const berth__packed *w, const berth__tile_cells *cells, const berth__x *factors,
                              const berth__x *extras) {
  berth__kernel *k = w->k;
  const bool has_second = w->tile->second != BERTH__TILE_NONE;
  const berth__x n = berth__x_i32(k, cells->rows * cells->columns);
  berth__tile_cells one = packed_flow_one(w, cells);
  berth__tile of_one = *w->tile;
  of_one.extras = extras;
  for (uint32_t row = cells->rows; row-- > 0;)
    for (uint32_t column = cells->columns; column-- > 0;) {
      berth__tile_cells all = {.sum = {{berth__packed_exchange(w, w->sum[row][column])}}};
      if (has_second) all.second[0][0] = berth__packed_exchange(w, w->second[row][column]);
      if (berth__tile_is_normed(w->tile)) berth__packed_scale_cell(w, &all, 0, 0, factors[row]);
      const berth__x number = berth__x_i32(k, row * cells->columns + column);
      const bool is_last = row + 1 == cells->rows && column + 1 == cells->columns;
      const berth__x is_mine = berth__x_eq(k, w->lane, number);
      one.sum[0][0] = is_last ? all.sum[0][0] : berth__x_select(k, is_mine, all.sum[0][0], one.sum[0][0]);
      if (has_second)
        one.second[0][0] = is_last ? all.second[0][0] : berth__x_select(k, is_mine, all.second[0][0], one.second[0][0]);
    }
  berth__x_if(k, berth__x_lt(k, w->lane, n));
  berth__tile_store(&of_one, k, &one, 1);
  berth__x_end(k);
}

/* The thread's columns within the set that a workgroup processes at a time. */
static berth__tile_cells packed_flow_cells(const berth__packed *w, berth__x set, berth__x group) {
  const berth__tile_form *f = w->form;
  const berth__x first = berth__x_affine(w->k, set, (int64_t)f->group_columns * f->thread_columns, 0);
  berth__tile_cells cells = {.rows = f->thread_rows, .columns = f->thread_columns, .batch = berth__x_i32(w->k, 0)};
  berth__packed_rows(w->k, &cells, berth__x_add(w->k, first, berth__x_affine(w->k, group, f->thread_columns, 0)));
  return cells;
}

void berth__packed_flow(berth__packed *w, berth__tile *tile, int64_t sets) {
  const berth__tile_form *f = w->form;
  berth__kernel *k = w->k;
  const int64_t groups = (int64_t)k->n_groups;
  berth__x of[2], factors[BERTH__TILE_MOST], extras[BERTH__TILE_EXTRAS];
  bool has_extras;
  berth__packed_slice early[BERTH__PACKED_EARLY];
  if (w->is_plain) k->resident = 1; /* or the compiler keeps fewer loads under way */
  tile->table = berth__packed_table(tile, k, BERTH__TABLE_SHARED);
  berth__l_unravel(k, berth__x_thread(k), 2, (const int64_t[]){f->group_columns, f->group_rows}, of);
  w->lane = of[1];
  berth__tile_cells cells = packed_flow_cells(w, berth__x_group(k), of[0]);
  berth__packed_start(w, &cells);
  berth__packed_load_first(w, early);
  berth__packed_load_scales(w);
  /* The next kernel's workgroups take up space, but their weights come while this one's rows are staged, or, as far as
   * rounding rows keeps cores busy, while it sums up. Those that go on with further columns release none. */
  const bool releases = w->n_early != 0 && sets <= groups;
  if (w->n_early != 0) berth__x_await(k);
  has_extras = packed_flow_load(w, &cells, extras);
  if (releases && !tile->in_bytes) berth__x_release(k);
  berth__packed_put_rows(w);
  packed_flow_factors(w, factors);
  if (releases && tile->in_bytes) berth__x_release(k);
  berth__packed_sum(w, w->n_early != 0 ? early : NULL);
  packed_flow_store(w, &cells, factors, has_extras ? extras : NULL);
  if (sets <= groups) return;
  const berth__x set =
      berth__x_loop(k, berth__x_affine(k, berth__x_group(k), 1, groups), berth__x_i32(k, sets), groups);
  cells = packed_flow_cells(w, set, of[0]);
  berth__packed_start(w, &cells);
  has_extras = packed_flow_load(w, &cells, extras);
  berth__packed_sum(w, NULL);
  packed_flow_store(w, &cells, factors, has_extras ? extras : NULL);
  berth__x_end(k);
}
