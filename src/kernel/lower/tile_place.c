/* Addresses of the elements of operands and of the result. */
#include "base/blocks.h"
#include "kernel/lower/tile.h"
#include "kernel/lower/words.h"

berth__x berth__tile_place(berth__kernel *k, berth__x flat, uint32_t rank, const int64_t *dim, const int64_t *stride) {
  int64_t merged_dim[BERTH__TILE_AXES], merged_stride[BERTH__TILE_AXES];
  uint32_t n = 0;
  for (uint32_t axis = 0; axis < rank; axis++) {
    if (dim[axis] == 1) continue;
    if (n > 0 && merged_stride[n - 1] == stride[axis] * dim[axis]) {
      merged_dim[n - 1] *= dim[axis];
      merged_stride[n - 1] = stride[axis];
    } else {
      merged_dim[n] = dim[axis];
      merged_stride[n++] = stride[axis];
    }
  }
  berth__x at[BERTH__TILE_AXES], place = berth__x_i32(k, 0);
  berth__l_unravel(k, flat, n, merged_dim, at);
  for (uint32_t axis = 0; axis < n; axis++)
    place = berth__x_add(k, place, berth__x_affine(k, at[axis], merged_stride[axis], 0));
  return place;
}

bool berth__tile_has_blocks(const berth__tile *tile) {
  return berth__type_is_block(tile->l->call->in[tile->right.operand].type);
}

berth__x berth__tile_clamp(berth__kernel *k, berth__x x, int64_t count) {
  return berth__x_min(k, x, berth__x_i32(k, count - 1));
}

berth__x berth__tile_zero(const berth__tile *tile, berth__kernel *k) {
  return tile->type == BERTH__NUM_F32 ? berth__x_f32(k, 0) : berth__x_i32(k, 0);
}

berth__x berth__tile_add_product(const berth__tile *tile, berth__kernel *k, berth__x a, berth__x b, berth__x sum) {
  if (tile->type == BERTH__NUM_F32) return berth__x3(k, BERTH__INST_fma, a, b, sum);
  return berth__x_add(k, berth__x_mul(k, a, b), sum);
}

/* ---- One side ---- */

/* The zero point of a line, adjusted by the offset of the stored weights. */
static berth__x lower_tile_place_zero_of(const berth__tile *tile, berth__kernel *k, const berth__tile_side *side,
                                         berth__x batch, berth__x line) {
  if (side->zero == BERTH__TILE_NONE) return side->shift == 0 ? BERTH__X_NONE : berth__x_i32(k, -side->shift);
  const berth__x of_batch = berth__x_affine(k, batch, side->zero_batch, 0);
  const berth__x at = berth__x_add(k, of_batch, berth__x_affine(k, line, side->zero_line, 0));
  const berth__x loaded = berth__x_convert(k, BERTH__NUM_I32, berth__l_load(tile->l, k, side->zero, at));
  return berth__x_affine(k, loaded, 1, -side->shift);
}

static void start_window(berth__kernel *k, const berth__tile_side *side, const berth__tile_space *lines, berth__x line,
                         berth__tile_at *at) {
  berth__x place[BERTH__TILE_AXES];
  const uint32_t first = lines->rank - BERTH__WINDOW_AXES;
  berth__l_unravel(k, line, lines->rank, lines->dim, place);
  for (uint32_t axis = 0; axis < first; axis++)
    at->index = berth__x_add(k, at->index, berth__x_affine(k, place[axis], side->line[axis], 0));
  for (uint32_t i = 0; i < BERTH__WINDOW_AXES; i++) {
    const berth__window_axis *w = &side->window->axis[i];
    at->axis[i] = side->is_transposed ? berth__x_affine(k, place[first + i], 1, w->begin)
                                      : berth__x_affine(k, place[first + i], w->stride, -w->begin);
  }
}

berth__tile_at berth__tile_start(const berth__tile *tile, berth__kernel *k, const berth__tile_side *side,
                                 const berth__tile_space *lines, berth__x batch, berth__x line) {
  berth__tile_at at = {
      .inside = BERTH__X_NONE, .row = berth__x_i32(k, 0), .zero = lower_tile_place_zero_of(tile, k, side, batch, line)};
  at.index = side->base != NULL ? side->base(tile, k, batch)
                                : berth__tile_place(k, batch, tile->batch.rank, tile->batch.dim, side->batch);
  if (side->window != NULL) {
    start_window(k, side, lines, line, &at);
  } else if (side->panel > 0) {
    const berth__x width = berth__x_i32(k, side->panel);
    at.index = berth__x_add(k, at.index, berth__x_affine(k, berth__x_div(k, line, width), side->panel_stride, 0));
    at.index = berth__x_add(k, at.index, berth__x_affine(k, berth__x_rem(k, line, width), side->line[0], 0));
  } else {
    at.index = berth__x_add(k, at.index, berth__tile_place(k, line, lines->rank, lines->dim, side->line));
  }
  return at;
}

static berth__x both(berth__kernel *k, berth__x a, berth__x b) {
  return a == BERTH__X_NONE ? b : berth__x_and(k, a, b);
}

static berth__tile_at step_window(berth__kernel *k, const berth__tile_side *side, berth__tile_at at, uint32_t i,
                                  berth__x tap) {
  const berth__window_axis *w = &side->window->axis[i];
  const berth__x zero = berth__x_i32(k, 0);
  berth__x place =
      berth__x_add(k, at.axis[i], berth__x_affine(k, tap, side->is_transposed ? -w->dilation : w->dilation, 0));
  at.inside = both(k, at.inside, berth__x_le(k, zero, place));
  if (side->is_transposed) {
    const berth__x stride = berth__x_i32(k, w->stride);
    at.inside = both(k, at.inside, berth__x_eq(k, berth__x_rem(k, place, stride), zero));
    place = berth__x_div(k, place, stride);
  }
  at.inside = both(k, at.inside, berth__x_lt(k, place, berth__x_i32(k, w->in)));
  at.index = berth__x_add(k, at.index, berth__x_affine(k, place, side->window_stride[i], 0));
  return at;
}

berth__tile_at berth__tile_step(berth__kernel *k, const berth__tile_side *side, berth__tile_at at, uint32_t axis,
                                berth__x x) {
  if (side->window != NULL && axis >= side->taps && axis < side->taps + BERTH__WINDOW_AXES)
    return step_window(k, side, at, axis - side->taps, x);
  berth__x *count = side->fours > 0 ? &at.row : &at.index;
  *count = berth__x_add(k, *count, berth__x_affine(k, x, side->depth[axis], 0));
  return at;
}

berth__tile_at berth__tile_dive(const berth__tile *tile, berth__kernel *k, const berth__tile_side *side,
                                berth__tile_at at, berth__x depth) {
  const berth__tile_space *space = &tile->depth;
  if (side->window == NULL) { /* contiguous axes need no division */
    berth__x *count = side->fours > 0 ? &at.row : &at.index;
    *count = berth__x_add(k, *count, berth__tile_place(k, depth, space->rank, space->dim, side->depth));
    return at;
  }
  berth__x x[BERTH__TILE_AXES];
  berth__l_unravel(k, depth, space->rank, space->dim, x);
  for (uint32_t axis = 0; axis < space->rank; axis++) at = berth__tile_step(k, side, at, axis, x[axis]);
  return at;
}

berth__x berth__tile_load(const berth__tile *tile, berth__kernel *k, const berth__tile_side *side,
                          const berth__tile_at *at) {
  berth__x index = at->index;
  if (side->fours > 0) {
    const berth__x four = berth__x_i32(k, 4);
    index = berth__x_add(k, index, berth__x_affine(k, berth__x_div(k, at->row, four), side->fours, 0));
    index = berth__x_add(k, index, berth__x_rem(k, at->row, four));
  }
  if (at->inside != BERTH__X_NONE) index = berth__x_select(k, at->inside, index, berth__x_i32(k, 0));
  const bool is_block = berth__type_is_block(tile->l->call->in[side->operand].type);
  berth__x value = is_block ? berth__l_load_block(tile->l, k, side->operand, index)
                            : berth__x_convert(k, tile->type, berth__l_load(tile->l, k, side->operand, index));
  if (at->zero != BERTH__X_NONE) value = berth__x_sub(k, value, at->zero);
  return at->inside != BERTH__X_NONE ? berth__x_select(k, at->inside, value, berth__tile_zero(tile, k)) : value;
}

/* ---- The result ---- */

void berth__tile_views(const berth__tile *tile, berth__kernel *k, const berth__x *at, berth__x *place) {
  for (uint32_t v = 0; v < tile->n_views; v++) {
    place[v] = berth__x_i32(k, 0);
    for (uint32_t axis = 0; axis < tile->l->call->out[0].rank; axis++)
      place[v] = berth__x_add(k, place[v], berth__x_affine(k, at[axis], tile->views[v].stride[axis], 0));
  }
}

/* The contribution of a line to the position in each view. */
static void lower_tile_place_share(const berth__tile *tile, berth__kernel *k, const berth__tile_space *space,
                                   berth__x flat, berth__x *places) {
  for (uint32_t v = 0; v < tile->n_views; v++) {
    int64_t stride[BERTH__TILE_AXES];
    for (uint32_t axis = 0; axis < space->rank; axis++)
      stride[axis] = space->times[axis] == 0 ? 0 : tile->views[v].stride[space->of[axis]] * space->times[axis];
    places[v] = berth__tile_place(k, flat, space->rank, space->dim, stride);
  }
}

/* The stride of view 0 over an axis of a space. */
static int64_t result_stride(const berth__tile *tile, const berth__tile_space *space, uint32_t axis) {
  return space->times[axis] == 0 ? 0 : tile->views[0].stride[space->of[axis]] * space->times[axis];
}

/* Whether steps over all axes of a space but one keep elements at the start of a word. */
static bool keeps_words(const berth__tile *tile, const berth__tile_space *space, uint32_t except, int64_t per_word) {
  for (uint32_t axis = 0; axis < space->rank; axis++)
    if (axis != except && space->dim[axis] > 1 && result_stride(tile, space, axis) % per_word != 0) return false;
  return true;
}

uint32_t berth__tile_word(const berth__tile *tile) {
  const uint32_t operand = tile->l->call->n_in,
                 per_word = berth__storage_per_word(berth__l_storage_of(tile->l, operand));
  uint32_t last = tile->columns.rank;
  while (last > 0 && tile->columns.dim[last - 1] == 1) last--;
  if (tile->goes_elsewhere || per_word == 1 || last-- == 0 || !berth__l_begins_with_word(tile->l, operand)) return 1;
  const bool is_row = result_stride(tile, &tile->columns, last) == 1 && tile->columns.dim[last] % per_word == 0;
  return is_row && keeps_words(tile, &tile->columns, last, per_word) &&
                 keeps_words(tile, &tile->rows, BERTH__TILE_NONE, per_word) &&
                 keeps_words(tile, &tile->batch, BERTH__TILE_NONE, per_word)
             ? per_word
             : 1;
}

/* The contributions of the cells' columns, rows and batch to the positions in the views; all are inside. */
typedef struct shares {
  berth__x batch[BERTH__TILE_VIEWS], row[BERTH__TILE_MOST][BERTH__TILE_VIEWS],
      column[BERTH__TILE_MOST][BERTH__TILE_VIEWS];
} shares;

static void share_cells(const berth__tile *tile, berth__kernel *k, const berth__tile_cells *cells, shares *s) {
  const int64_t rows = berth__tile_count(&tile->rows), columns = berth__tile_count(&tile->columns);
  lower_tile_place_share(tile, k, &tile->batch, cells->batch, s->batch);
  for (uint32_t j = 0; j < cells->columns; j++)
    lower_tile_place_share(tile, k, &tile->columns, berth__tile_clamp(k, cells->column[j], columns), s->column[j]);
  for (uint32_t i = 0; i < cells->rows; i++)
    lower_tile_place_share(tile, k, &tile->rows, berth__tile_clamp(k, cells->row[i], rows), s->row[i]);
}

static void place_cell(const berth__tile *tile, berth__kernel *k, const shares *s, uint32_t row, uint32_t column,
                       berth__x *place) {
  for (uint32_t v = 0; v < tile->n_views; v++)
    place[v] = berth__x_add(k, berth__x_add(k, s->batch[v], s->row[row][v]), s->column[column][v]);
}

/* Values of the epilogue's operands, for all cells: [row][column][operand]. */
typedef berth__x cell_extras[BERTH__TILE_MOST][BERTH__TILE_MOST][BERTH__TILE_EXTRAS];

static void load_extras(const berth__tile *tile, berth__kernel *k, const berth__tile_cells *cells, const shares *s,
                        cell_extras values) {
  berth__x place[BERTH__TILE_VIEWS];
  for (uint32_t i = 0; i < cells->rows; i++)
    for (uint32_t j = 0; j < cells->columns; j++) {
      place_cell(tile, k, s, i, j, place);
      berth__tile_load_extras(tile, k, place, values[i][j]);
    }
}

/* Cells of one row whose results make up a word, or one cell. extras NULL: there are none. */
static void finish_cells(const berth__tile *tile, berth__kernel *k, const berth__tile_cells *cells, const shares *s,
                         uint32_t row, uint32_t column, uint32_t together,
                         const berth__x (*extras)[BERTH__TILE_EXTRAS]) {
  const int64_t rows = berth__tile_count(&tile->rows), columns = berth__tile_count(&tile->columns);
  const berth__x fits = berth__x_and(k, berth__x_lt(k, cells->row[row], berth__x_i32(k, rows)),
                                     berth__x_lt(k, cells->column[column], berth__x_i32(k, columns)));
  berth__tile of_cell = *tile;
  berth__x place[BERTH__TILE_VIEWS], first = BERTH__X_NONE;
  berth__x_if(k, fits);
  if (together > 1) berth__l_word_begin(tile->l, k);
  for (uint32_t i = 0; i < together; i++) {
    place_cell(tile, k, s, row, column + i, place);
    if (i == 0) first = place[0];
    if (together > 1) berth__l_word_lane(k, i, place[0]);
    if (tile->second_sum != NULL) *tile->second_sum = cells->second[row][column + i];
    if (extras != NULL) of_cell.extras = extras[column + i];
    tile->finish(&of_cell, k, place, cells->sum[row][column + i]);
  }
  if (together > 1) berth__l_word_end(tile->l, k, first);
  berth__x_end(k);
}

static void store_cells(const berth__tile *tile, berth__kernel *k, const berth__tile_cells *cells, uint32_t together,
                        const shares *s, const cell_extras extras) {
  for (uint32_t i = 0; i < cells->rows; i++)
    for (uint32_t j = 0; j < cells->columns; j += together)
      finish_cells(tile, k, cells, s, i, j, together, extras != NULL ? extras[i] : NULL);
}

bool berth__tile_load_ahead(const berth__tile *tile, berth__kernel *k, const berth__tile_cells *cell,
                            berth__x *values) {
  berth__x place[BERTH__TILE_VIEWS];
  shares s;
  if (berth__tile_n_extras(tile) == 0) return false;
  share_cells(tile, k, cell, &s);
  place_cell(tile, k, &s, 0, 0, place);
  berth__tile_load_extras(tile, k, place, values);
  return true;
}

void berth__tile_store(const berth__tile *tile, berth__kernel *k, const berth__tile_cells *cells, uint32_t together) {
  const bool has_extras = berth__tile_n_extras(tile) > 0 && cells->rows * cells->columns > 1 && tile->extras == NULL;
  shares s;
  cell_extras extras;
  share_cells(tile, k, cells, &s);
  if (has_extras) load_extras(tile, k, cells, &s, extras);
  store_cells(tile, k, cells, together, &s,
              has_extras ? (const berth__x(*)[BERTH__TILE_MOST][BERTH__TILE_EXTRAS])extras : NULL);
}

/* ---- Sums of tiles ---- */

/* The cells of the current step of an `each`. */
static berth__tile_cells cells_of(berth__kernel *k, uint32_t sums, berth__x each, berth__x batch, berth__x row,
                                  berth__x column) {
  berth__tile_cells cells = {.rows = 1, .columns = k->status == BERTH_OK ? k->sums[sums].together : 1, .batch = batch};
  const berth__x first = berth__x_add(k, column, berth__x_sum_column(k, each));
  cells.row[0] = berth__x_add(k, row, berth__x_sum_row(k, each));
  for (uint32_t j = 0; j < cells.columns; j++) cells.column[j] = berth__x_affine(k, first, 1, j);
  return cells;
}

/* The epilogue's operands for a thread's sums, loaded into a local array before the first sum is stored: for as many
 * steps of the `each` at a time as registers allow. */
typedef struct held_extras {
  uint32_t n, array;
  uint32_t count, most; /* steps of the `each`, and steps at a time */
} held_extras;
#define MOST_HELD 64u /* numbers, in addition to the sums */
#define SOME_HELD 32u /* if those do not suffice for all, there are many sums */

static held_extras open_extras(const berth__tile *tile, berth__kernel *k, uint32_t sums) {
  held_extras held = {.n = berth__tile_n_extras(tile), .count = 1, .most = 1};
  if (held.n == 0 || k->status != BERTH_OK) return (held_extras){.count = 1, .most = 1};
  const berth__sums_spread spread = berth__sums_spread_of(k, &k->sums[sums]);
  const uint32_t together = k->sums[sums].together, each = held.n * together;
  held.count = spread.thread_rows * spread.thread_columns / spread.parts / together;
  held.most = held.count * each <= MOST_HELD ? held.count : SOME_HELD / each;
  held.array = berth__kernel_local(k, BERTH__NUM_F32, held.most * each);
  return held;
}

/* Opens a block for the steps from `first` on, unless that is all of them. */
static void begin_some(berth__kernel *k, const held_extras *held, berth__x each, uint32_t first) {
  if (held->most >= held->count) return;
  const berth__x is_after = berth__x_le(k, berth__x_i32(k, first), each);
  berth__x_if(k, berth__x_and(k, is_after, berth__x_lt(k, each, berth__x_i32(k, first + held->most))));
}

static void end_some(berth__kernel *k, const held_extras *held) {
  if (held->most < held->count) berth__x_end(k);
}

static berth__x extra_at(berth__kernel *k, const held_extras *held, const berth__tile_cells *cells, berth__x each,
                         uint32_t first, uint32_t column, uint32_t i) {
  const int64_t step = (int64_t)cells->columns * held->n;
  return berth__x_affine(k, each, step, (int64_t)column * held->n + i - step * first);
}

static void hold_extras(const berth__tile *tile, berth__kernel *k, const held_extras *held, uint32_t sums,
                        berth__x batch, berth__x row, berth__x column, uint32_t first) {
  shares s;
  cell_extras extras;
  const berth__x each = berth__x_each(k, sums);
  begin_some(k, held, each, first);
  const berth__tile_cells cells = cells_of(k, sums, each, batch, row, column);
  share_cells(tile, k, &cells, &s);
  load_extras(tile, k, &cells, &s, extras);
  for (uint32_t j = 0; j < cells.columns; j++)
    for (uint32_t i = 0; i < held->n; i++)
      berth__x_local_store(k, held->array, extra_at(k, held, &cells, each, first, j, i), extras[0][j][i]);
  end_some(k, held);
  berth__x_end(k);
}

static void store_some(const berth__tile *tile, berth__kernel *k, const held_extras *held, uint32_t sums,
                       berth__x batch, berth__x row, berth__x column, uint32_t first) {
  shares s;
  cell_extras extras;
  const berth__x each = berth__x_each(k, sums);
  begin_some(k, held, each, first);
  berth__tile_cells cells = cells_of(k, sums, each, batch, row, column);
  for (uint32_t j = 0; j < cells.columns; j++) {
    cells.sum[0][j] = berth__x_sum(k, each, j);
    for (uint32_t i = 0; i < held->n; i++)
      extras[0][j][i] = berth__x_local_load(k, held->array, extra_at(k, held, &cells, each, first, j, i));
  }
  share_cells(tile, k, &cells, &s);
  store_cells(tile, k, &cells, cells.columns, &s,
              held->n > 0 ? (const berth__x(*)[BERTH__TILE_MOST][BERTH__TILE_EXTRAS])extras : NULL);
  end_some(k, held);
  berth__x_end(k);
}

void berth__tile_store_sums(const berth__tile *tile, berth__kernel *k, uint32_t sums, berth__x batch, berth__x row,
                            berth__x column) {
  const held_extras held = open_extras(tile, k, sums);
  for (uint32_t first = 0; first < held.count; first += held.most) {
    if (held.n > 0) hold_extras(tile, k, &held, sums, batch, row, column, first);
    store_some(tile, k, &held, sums, batch, row, column, first);
  }
}
