/* Products of few rows (GEMV): with sums shared by lanes, and with one thread per sum. tile_packed_sum.c computes the
 * sums. */
#include "kernel/lower/tile_packed.h"
#include "base/blocks.h"

/* ---- Sums shared by lanes ---- */

#define FEW_PARTS 8u
/* The parts of sums in shared memory: `n` sums of `parts` each, padded by one entry to avoid bank conflicts. */
typedef struct packed_parts {
  uint32_t array, n, parts;
} packed_parts;

/* Sums per row of a thread: of its columns, of those of the second right side, and of squares. */
static uint32_t packed_second_at(const berth__packed *w) { return w->form->thread_columns; }
static uint32_t packed_squares_at(const berth__packed *w) {
  return w->form->thread_columns * (w->tile->second != BERTH__TILE_NONE ? 2 : 1);
}
static uint32_t packed_row_sums(const berth__packed *w) {
  return packed_squares_at(w) + berth__tile_is_normed(w->tile);
}

static packed_parts packed_make_parts(const berth__packed *w, uint32_t parts) {
  const berth__tile_form *f = w->form;
  const uint32_t n = f->thread_rows * packed_row_sums(w) * f->group_columns;
  return (packed_parts){berth__kernel_shared(w->k, BERTH__NUM_F32, n * (parts + 1)), n, parts};
}

/* Bytes of the parts that packed_join needs. */
static uint64_t packed_parts_bytes(const berth__packed *w) {
  const berth__tile_form *f = w->form;
  const uint64_t n = (uint64_t)f->thread_rows * packed_row_sums(w) * f->group_columns;
  const uint32_t table = berth__l_blocks_table_size(w->tile->l->call->in[w->tile->right.operand].type);
  return 4 * (n * (f->group_rows + 1) + n * (FEW_PARTS + 1) + table);
}

static berth__x packed_place(berth__kernel *k, const packed_parts *p, berth__x number, berth__x part) {
  return berth__x_add(k, berth__x_affine(k, number, p->parts + 1, 0), part);
}

/* Adds up `count` parts of a sum, from part `first` on. */
static berth__x packed_add_parts(berth__kernel *k, const packed_parts *p, berth__x number, berth__x first,
                                 uint32_t count) {
  const berth__x sum = berth__x_variable(k, berth__x_f32(k, 0));
  const berth__x i = berth__x_loop_unrolled(k, berth__x_i32(k, 0), berth__x_i32(k, count), 1);
  const berth__x part = berth__x_shared_load(k, p->array, packed_place(k, p, number, berth__x_add(k, first, i)));
  berth__x_set(k, sum, berth__x_add(k, berth__x_get(k, sum), part));
  berth__x_end(k);
  return berth__x_get(k, sum);
}

/* Reduces many parts of each sum to FEW_PARTS, each by one thread. */
static packed_parts packed_fold(const berth__packed *w, const packed_parts *many) {
  berth__kernel *k = w->k;
  const packed_parts few = packed_make_parts(w, FEW_PARTS);
  const uint32_t each = many->parts / FEW_PARTS;
  const berth__x at = berth__x_loop(k, berth__x_thread(k), berth__x_i32(k, many->n * FEW_PARTS), k->group_size);
  const berth__x number = berth__x_div(k, at, berth__x_i32(k, FEW_PARTS)),
                 part = berth__x_rem(k, at, berth__x_i32(k, FEW_PARTS));
  const berth__x sum = packed_add_parts(k, many, number, berth__x_affine(k, part, each, 0), each);
  berth__x_shared_store(k, few.array, packed_place(k, &few, number, part), sum);
  berth__x_end(k);
  berth__x_barrier(k);
  return few;
}

/* Divides a cell by its row's divisor, once its sums are complete. */
void berth__packed_scale_cell(const berth__packed *w, berth__tile_cells *cells, uint32_t row, uint32_t column,
                              berth__x factor) {
  cells->sum[row][column] = berth__x_mul(w->k, cells->sum[row][column], factor);
  if (w->tile->second != BERTH__TILE_NONE)
    cells->second[row][column] = berth__x_mul(w->k, cells->second[row][column], factor);
}

/* Adds up the lanes of a subgroup. */
berth__x berth__packed_exchange(const berth__packed *w, berth__x variable) {
  berth__x sum = berth__x_get(w->k, variable);
  for (uint32_t distance = w->reach / 2; distance > 0; distance /= 2)
    sum = berth__x_add(w->k, sum, berth__x_exchange(w->k, sum, distance));
  return sum;
}

/* Sums are indexed [row][sum of the row][sum of the workgroup]. */
static void packed_store_part(const berth__packed *w, const packed_parts *parts, uint32_t row, uint32_t sum,
                              berth__x group, berth__x value) {
  const int64_t before = (int64_t)(row * packed_row_sums(w) + sum) * w->form->group_columns;
  const berth__x part = berth__x_div(w->k, w->lane, berth__x_i32(w->k, w->reach));
  const berth__x to = packed_place(w->k, parts, berth__x_affine(w->k, group, 1, before), part);
  berth__x_shared_store(w->k, parts->array, to, value);
}

/* All of a thread's sums; in a subgroup, the first lane stores them. */
static void packed_store_parts(const berth__packed *w, const packed_parts *parts, berth__x group) {
  const berth__tile_form *f = w->form;
  berth__kernel *k = w->k;
  const bool has_second = w->tile->second != BERTH__TILE_NONE, is_normed = berth__tile_is_normed(w->tile);
  berth__x all[BERTH__TILE_MOST][2 * BERTH__TILE_MOST + 1];
  for (uint32_t row = 0; row < f->thread_rows; row++) {
    for (uint32_t column = 0; column < f->thread_columns; column++) {
      all[row][column] = berth__packed_exchange(w, w->sum[row][column]);
      if (has_second) all[row][packed_second_at(w) + column] = berth__packed_exchange(w, w->second[row][column]);
    }
    if (is_normed) all[row][packed_squares_at(w)] = berth__packed_exchange(w, w->squares[row]);
  }
  berth__x_if(k, berth__x_eq(k, berth__x_rem(k, w->lane, berth__x_i32(k, w->reach)), berth__x_i32(k, 0)));
  for (uint32_t row = 0; row < f->thread_rows; row++)
    for (uint32_t sum = 0; sum < packed_row_sums(w); sum++) packed_store_part(w, parts, row, sum, group, all[row][sum]);
  berth__x_end(k);
}

/* Sum `sum` of the row, for the column group at[2]. */
static berth__x packed_whole(const berth__packed *w, const packed_parts *parts, const berth__x *at, berth__x sum) {
  berth__kernel *k = w->k;
  const berth__x of_row = berth__x_add(k, berth__x_affine(k, at[0], packed_row_sums(w), 0), sum);
  const berth__x number = berth__x_add(k, berth__x_affine(k, of_row, w->form->group_columns, 0), at[2]);
  return packed_add_parts(k, parts, number, berth__x_i32(k, 0), parts->parts);
}

/* The sum of squares of a row: over all threads of the workgroup if the row is staged. */
static berth__x packed_whole_squares(const berth__packed *w, const packed_parts *parts, const berth__x *at) {
  berth__kernel *k = w->k;
  const berth__x which = berth__x_i32(k, packed_squares_at(w));
  if (!w->is_staged) return packed_whole(w, parts, at, which);
  berth__x sum = BERTH__X_NONE;
  for (uint32_t group = 0; group < w->form->group_columns; group++) {
    const berth__x of_group[3] = {at[0], at[1], berth__x_i32(k, group)};
    const berth__x part = packed_whole(w, parts, of_group, which);
    sum = group == 0 ? part : berth__x_add(k, sum, part);
  }
  return sum;
}

/* One thread per result finishes it. */
static void packed_join(const berth__packed *w, const berth__tile_cells *cells, berth__x first_column, berth__x group) {
  const berth__tile_form *f = w->form;
  berth__kernel *k = w->k;
  packed_parts parts = packed_make_parts(w, f->group_rows / w->reach);
  const bool has_second = w->tile->second != BERTH__TILE_NONE, is_normed = berth__tile_is_normed(w->tile);
  packed_store_parts(w, &parts, group);
  berth__x_barrier(k);
  if (parts.parts > 2 * FEW_PARTS) parts = packed_fold(w, &parts);
  const uint32_t n = f->thread_rows * f->thread_columns * f->group_columns;
  const berth__x number = berth__x_loop(k, berth__x_thread(k), berth__x_i32(k, n), k->group_size);
  berth__x at[3];
  berth__l_unravel(k, number, 3, (const int64_t[]){f->thread_rows, f->thread_columns, f->group_columns}, at);
  berth__tile_cells one = {.rows = 1, .columns = 1, .batch = cells->batch};
  one.row[0] = at[0];
  one.column[0] =
      berth__x_add(k, berth__x_affine(k, at[2], f->thread_columns, 0), berth__x_add(k, at[1], first_column));
  one.sum[0][0] = packed_whole(w, &parts, at, at[1]);
  if (has_second) one.second[0][0] = packed_whole(w, &parts, at, berth__x_affine(k, at[1], 1, packed_second_at(w)));
  if (is_normed) {
    const berth__x squares = packed_whole_squares(w, &parts, at);
    berth__packed_scale_cell(w, &one, 0, 0, berth__tile_norm_factor(w->tile, k, squares));
  }
  berth__tile_store(w->tile, k, &one, 1);
  berth__x_end(k);
}

static void packed_finish(const berth__packed *w, berth__tile_cells *cells) {
  const uint32_t word = berth__tile_word(w->tile), together = cells->columns % word == 0 ? word : 1;
  for (uint32_t row = 0; row < cells->rows; row++) {
    berth__x factor = BERTH__X_NONE;
    if (berth__tile_is_normed(w->tile))
      factor = berth__tile_norm_factor(w->tile, w->k, berth__x_get(w->k, w->squares[row]));
    for (uint32_t column = 0; column < cells->columns; column++) {
      cells->sum[row][column] = berth__x_get(w->k, w->sum[row][column]);
      if (w->tile->second != BERTH__TILE_NONE) cells->second[row][column] = berth__x_get(w->k, w->second[row][column]);
      if (factor != BERTH__X_NONE) berth__packed_scale_cell(w, cells, row, column, factor);
    }
  }
  berth__tile_store(w->tile, w->k, cells, together);
}

void berth__packed_rows(berth__kernel *k, berth__tile_cells *cells, berth__x first_column) {
  for (uint32_t row = 0; row < cells->rows; row++) cells->row[row] = berth__x_i32(k, row);
  for (uint32_t column = 0; column < cells->columns; column++)
    cells->column[column] = berth__x_affine(k, first_column, 1, column);
}

/* ---- Shared by both ---- */

static void packed_stage(berth__packed *w) {
  berth__packed_put_rows(w);
  berth__x_barrier(w->k);
}

berth__l_table berth__packed_table(const berth__tile *tile, berth__kernel *k, berth__l_table_kind kind) {
  return berth__l_blocks_table(k, berth__l_storage_of(tile->l, tile->right.operand), kind);
}

static void packed_alone(berth__packed *w, berth__tile *tile) {
  const berth__tile_form *f = w->form;
  berth__kernel *k = w->k;
  const int64_t dims[2] = {berth__tile_count(&tile->batch),
                           (berth__tile_count(&tile->columns) + f->thread_columns - 1) / f->thread_columns};
  berth__x at[2];
  berth__l_unravel(k, berth__l_each(tile->l, k, dims[0] * dims[1]), 2, dims, at);
  tile->table = berth__packed_table(tile, k, BERTH__TABLE_LOCAL);
  berth__tile_cells cells = {.rows = f->thread_rows, .columns = f->thread_columns, .batch = at[0]};
  berth__packed_rows(k, &cells, berth__x_affine(k, at[1], f->thread_columns, 0));
  w->lane = berth__x_i32(k, 0);
  berth__packed_start(w, &cells);
  berth__packed_sum(w, NULL);
  packed_finish(w, &cells);
}

static void packed_together(berth__packed *w, berth__tile *tile, const int64_t *dims) {
  const berth__tile_form *f = w->form;
  berth__kernel *k = w->k;
  berth__x at[2], of[2];
  berth__l_unravel(k, berth__x_group(k), 2, dims, at);
  tile->table = berth__packed_table(tile, k, BERTH__TABLE_SHARED);
  berth__l_unravel(k, berth__x_thread(k), 2, (const int64_t[]){f->group_columns, f->group_rows}, of);
  const berth__x first = berth__x_affine(k, at[1], (int64_t)f->group_columns * f->thread_columns, 0);
  berth__tile_cells cells = {.rows = f->thread_rows, .columns = f->thread_columns, .batch = at[0]};
  berth__packed_rows(k, &cells, berth__x_add(k, first, berth__x_affine(k, of[0], f->thread_columns, 0)));
  w->lane = of[1];
  berth__packed_start(w, &cells);
  berth__packed_slice early[BERTH__PACKED_EARLY];
  berth__packed_load_first(w, early);
  berth__packed_load_scales(w);
  if (w->n_early != 0) berth__x_await(k);
  if (w->is_staged) packed_stage(w);
  berth__packed_sum(w, w->n_early != 0 ? early : NULL);
  if (w->n_early != 0) berth__x_release(k);
  packed_join(w, &cells, first, of[0]);
}

/* Lanes of a sum that exchange: all of them, or sets as large as a subgroup. */
static uint32_t packed_reach(const berth__kernel_limits *limits, const berth__tile_form *form) {
  const uint32_t lanes = limits->exchanges ? limits->lanes : 1;
  if (lanes < 2 || (lanes & (lanes - 1)) != 0 || form->group_rows * form->group_columns % lanes != 0) return 1;
  return form->group_rows < lanes ? form->group_rows : lanes;
}

/* Approximate bytes that a thread has in flight before it waits. */
#define EARLY_BYTES 128

static uint32_t packed_count_early(const berth__packed *w) {
  const berth__tile *t = w->tile;
  const int64_t of_lane = berth__tile_packed_slices(t) / w->form->group_rows;
  if (!t->l->limits->begins_early || w->form->group_rows == 1) return 0;
  const int64_t bytes = (int64_t)w->slices.n_quads * 4 * w->form->thread_columns *
                        (t->second != BERTH__TILE_NONE ? 2 : 1) *
                        (w->is_plain ? berth_type_storage(berth__l_storage_of(t->l, t->right.operand)).bytes : 1);
  const int64_t wanted = EARLY_BYTES / bytes;
  const int64_t n = wanted < 1 ? 1 : wanted < BERTH__PACKED_EARLY ? wanted : BERTH__PACKED_EARLY;
  return (uint32_t)(n < of_lane ? n : of_lane);
}

/* Each of a thread's sums is finished by a lane of its own. */
static bool packed_can_flow(const berth__packed *w) {
  const berth__tile_form *f = w->form;
  return w->is_staged && w->reach > 1 && w->reach == f->group_rows && f->thread_rows * f->thread_columns <= w->reach;
}

static berth__packed packed_of(const berth__tile *tile, const berth__tile_form *form, berth__kernel *k) {
  const berth__storage storage = berth__l_storage_of(tile->l, tile->right.operand);
  berth__packed w = {.tile = tile,
                     .form = form,
                     .k = k,
                     .slices = berth__packed_slices(tile),
                     .elements = berth__packed_elements(tile),
                     .is_plain = berth__packed_is_plain(storage),
                     .is_wide = berth__packed_is_wide(tile),
                     .has_wide_scale = berth__packed_has_wide_scale(tile),
                     .reach = packed_reach(tile->l->limits, form)};
  w.n_early = packed_count_early(&w);
  if (form->group_rows > 1) berth__packed_choose_stage(&w, storage, packed_parts_bytes(&w));
  return w;
}

/* Threads round the rows together: in whole subgroups. */
bool berth__tile_fits_bytes(const berth__tile *tile, const berth__tile_form *form) {
  const berth__packed w = packed_of(tile, form, NULL);
  return w.is_staged && form->group_rows * form->group_columns % tile->l->limits->lanes == 0;
}

berth_status berth__tile_packed(berth__tile *tile, const berth__tile_form *form, uint32_t most_groups,
                                berth_error *err) {
  const berth__storage storage = berth__l_storage_of(tile->l, tile->right.operand);
  const int64_t width = (int64_t)form->group_columns * form->thread_columns;
  const int64_t dims[2] = {berth__tile_count(&tile->batch), (berth__tile_count(&tile->columns) + width - 1) / width};
  berth__kernel *k = berth__tile_begin(tile, berth_type_name(storage), (uint64_t)(dims[0] * dims[1]),
                                       form->group_rows * form->group_columns);
  if (k == NULL) return berth__l_end(tile->l, k, err);
  berth__packed w = packed_of(tile, form, k);
  if (form->group_rows == 1)
    packed_alone(&w, tile);
  else if (most_groups != 0 && dims[0] == 1 && packed_can_flow(&w)) {
    if (k->n_groups > most_groups) k->n_groups = most_groups;
    berth__packed_flow(&w, tile, dims[1]);
  } else
    packed_together(&w, tile, dims);
  return berth__l_end(tile->l, k, err);
}
