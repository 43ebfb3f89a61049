/* Describes a tile, chooses its form by shapes and limits, and applies the usual epilogue to a sum. */
#include "kernel/lower/tile.h"

#include "ops/epilogue.h"

void berth__tile_axis(berth__tile_space *space, int64_t dim, uint32_t of, int64_t times) {
  space->dim[space->rank] = dim;
  space->of[space->rank] = of;
  space->times[space->rank++] = times;
}

int64_t berth__tile_count(const berth__tile_space *space) {
  int64_t count = 1;
  for (uint32_t axis = 0; axis < space->rank; axis++) count *= space->dim[axis];
  return count;
}

void berth__tile_init(berth__tile *tile, berth__lowering *l, berth__number type) {
  const berth_tensor *out = &l->call->out[0];
  *tile = (berth__tile){.l = l, .type = type == BERTH__NUM_F32 ? type : BERTH__NUM_I32, .n_views = 1};
  tile->left.zero = tile->right.zero = BERTH__TILE_NONE;
  tile->scale = tile->second = BERTH__TILE_NONE;
  tile->held_bias = BERTH__X_NONE;
  tile->right.operand = 1;
  memcpy(tile->views[0].stride, out->stride, out->rank * sizeof *out->stride);
  tile->finish = berth__tile_finish;
}

uint32_t berth__tile_view_operand(berth__tile *tile, uint32_t operand) {
  const berth_tensor *out = &tile->l->call->out[0];
  berth__broadcast_strides(&tile->l->call->in[operand], out->rank, out->dim, tile->views[tile->n_views].stride);
  return tile->n_views++;
}

uint32_t berth__tile_view_axis(berth__tile *tile, uint32_t axis, int64_t stride) {
  tile->views[tile->n_views] = (berth__tile_view){.stride = {0}};
  tile->views[tile->n_views].stride[axis] = stride;
  return tile->n_views++;
}

/* ---- The usual epilogue ---- */

berth_status berth__tile_epilogue_read(berth__tile *tile, berth__tile_epilogue *epilogue, uint32_t bias, uint32_t axis,
                                       const berth_attr *adds, uint32_t first_extra, const berth_attr *code,
                                       const berth_attr *numbers, berth_error *err) {
  const berth_op_call *call = tile->l->call;
  const bool has_bias = berth__l_has(tile->l, bias), has_sum = adds != NULL && adds->i != 0;
  *epilogue =
      (berth__tile_epilogue){.bias = has_bias ? bias : BERTH__TILE_NONE,
                             .sum = has_sum ? first_extra - 1 : BERTH__TILE_NONE, /* the epilogue's operands follow */
                             .first_extra = first_extra};
  if (has_bias) epilogue->bias_view = berth__tile_view_axis(tile, axis, call->in[bias].stride[0]);
  if (has_sum) epilogue->sum_view = berth__tile_view_operand(tile, epilogue->sum);
  epilogue->extra_view = tile->n_views;
  tile->user = epilogue;
  if (code == NULL || code->count == 0) return BERTH_OK;
  const uint32_t n_extra = call->n_in > first_extra ? call->n_in - first_extra : 0;
  BERTH__TRY(berth__chain_read(code, numbers, 1 + n_extra, &epilogue->chain, err));
  for (uint32_t i = 0; i < n_extra; i++) berth__tile_view_operand(tile, first_extra + i);
  return BERTH_OK;
}

/* Loads extra operand i: first what is added (if there is any), then the epilogue's own. */
static berth__x load_extra(const berth__tile *tile, const berth__tile_epilogue *epilogue, berth__kernel *k,
                           const berth__x *place, uint32_t i) {
  const bool has_sum = epilogue->sum != BERTH__TILE_NONE;
  if (tile->extras != NULL) return tile->extras[i];
  if (has_sum && i == 0) return berth__l_load(tile->l, k, epilogue->sum, place[epilogue->sum_view]);
  const uint32_t own = has_sum ? i - 1 : i;
  return berth__x_convert(k, BERTH__NUM_F32,
                          berth__l_load(tile->l, k, epilogue->first_extra + own, place[epilogue->extra_view + own]));
}

berth__x berth__tile_epilogue_value(const berth__tile *tile, const berth__tile_epilogue *epilogue, berth__kernel *k,
                                    const berth__x *place, berth__x value) {
  berth__lowering *l = tile->l;
  berth__x operands[BERTH__CHAIN_OPERANDS];
  uint32_t n = 0;
  if (epilogue->bias != BERTH__TILE_NONE) {
    const berth__x bias = tile->held_bias != BERTH__X_NONE
                              ? tile->held_bias
                              : berth__l_load(l, k, epilogue->bias, place[epilogue->bias_view]);
    const bool is_float = berth__l_number(l->call->in[epilogue->bias].type) == BERTH__NUM_F32;
    value = berth__x_add(k, value, is_float ? bias : berth__x_convert(k, BERTH__NUM_I32, bias));
  }
  if (epilogue->sum != BERTH__TILE_NONE) value = berth__x_add(k, value, load_extra(tile, epilogue, k, place, n++));
  if (epilogue->chain.n_steps == 0) return value;
  operands[0] = value;
  for (uint32_t i = 0; i + 1 < epilogue->chain.n_operands; i++)
    operands[1 + i] = load_extra(tile, epilogue, k, place, n++);
  return berth__l_chain(k, &epilogue->chain, operands);
}

uint32_t berth__tile_n_extras(const berth__tile *tile) {
  const berth__tile_epilogue *epilogue = tile->user;
  if (tile->finish != berth__tile_finish || tile->type != BERTH__NUM_F32 || !tile->l->limits->shares_well) return 0;
  uint32_t n = epilogue->sum != BERTH__TILE_NONE ? 1 : 0;
  if (epilogue->chain.n_steps != 0) n += epilogue->chain.n_operands - 1;
  return n <= BERTH__TILE_EXTRAS ? n : 0;
}

void berth__tile_load_extras(const berth__tile *tile, berth__kernel *k, const berth__x *place, berth__x *values) {
  for (uint32_t i = 0; i < berth__tile_n_extras(tile); i++) values[i] = load_extra(tile, tile->user, k, place, i);
}

void berth__tile_finish(const berth__tile *tile, berth__kernel *k, const berth__x *place, berth__x sum) {
  berth__l_store(tile->l, k, 0, place[0], berth__tile_epilogue_value(tile, tile->user, k, place, sum));
}

/* ---- Shared by the forms ---- */

static double count_bytes(const berth__lowering *l) {
  double bytes = 0;
  for (uint32_t i = 0; i < l->call->n_in + l->call->n_out; i++) bytes += berth__l_bytes(l, i);
  return bytes;
}

static double results_of(const berth__tile *tile) {
  return (double)berth__tile_count(&tile->batch) * (double)berth__tile_count(&tile->rows) *
         (double)berth__tile_count(&tile->columns);
}

berth__kernel *berth__tile_begin(berth__tile *tile, const char *what, uint64_t groups, uint32_t threads) {
  berth__kernel *k = berth__l_begin(tile->l, what);
  if (k == NULL) return NULL;
  k->flops = 2 * results_of(tile) * (double)berth__tile_count(&tile->depth);
  k->bytes = count_bytes(tile->l);
  k->n_groups = groups;
  k->group_size = threads;
  return k;
}

/* The last axis that has more than one element; rank: there is none. */
static uint32_t lower_tile_last_axis(const berth__tile_space *space) {
  for (uint32_t axis = space->rank; axis-- > 0;)
    if (space->dim[axis] != 1) return axis;
  return space->rank;
}

static int64_t last_stride(const berth__tile_space *space, const int64_t *stride) {
  const uint32_t axis = lower_tile_last_axis(space);
  if (axis == space->rank) return INT64_MAX;
  return stride[axis] < 0 ? -stride[axis] : stride[axis];
}

/* Neighbouring positions of a window are preferred to neighbouring taps, of which there are few. */
bool berth__tile_is_deep(const berth__tile *tile, const berth__tile_side *side, const berth__tile_space *lines) {
  const uint32_t deepest = lower_tile_last_axis(&tile->depth);
  if (side->window != NULL && deepest >= side->taps && deepest < side->taps + BERTH__WINDOW_AXES) return false;
  const int64_t deep = side->fours > 0 ? 1 : last_stride(&tile->depth, side->depth);
  const int64_t across = side->window != NULL
                             ? side->window_stride[2] * (side->is_transposed ? 1 : side->window->axis[2].stride)
                             : last_stride(lines, side->line);
  return deep < across;
}

/* ---- Choosing ---- */

static int64_t lower_tile_ceil_of(int64_t a, int64_t b) { return a / b + (a % b != 0); }

static void swap_sides(berth__tile *tile) {
  const berth__tile_space rows = tile->rows;
  const berth__tile_side left = tile->left;
  tile->rows = tile->columns;
  tile->columns = rows;
  tile->left = tile->right;
  tile->right = left;
}

/* Shorter sums are worth neither staging in shared memory nor sharing between threads. */
#define SHORT_DEPTH 32
#define LONG_DEPTH 512

/* Tiles from large to small, for workgroups of 256 threads and, for devices that have none so large, of 64. A thread
 * with r rows and c columns reads r + c elements of shared memory for r * c products, so a larger tile is better once
 * there are enough workgroups to fill the device and to hide each other's latency; `groups` is that number (measured on
 * a GPU of 132 cores, where a tile that is too small costs a fifth and one that is too large a half). 8 x 8 sums and
 * their operands still fit in the 128 registers per thread with which two such workgroups share a core. */
static const struct choice {
  berth__tile_form form;
  int64_t groups;
} shared_forms[] = {
    {{8, 8, 16, 16, 16}, 512}, {{8, 8, 16, 16, 8}, 512}, {{4, 4, 16, 16, 32}, 96}, {{4, 4, 16, 16, 16}, 96},
    {{2, 2, 16, 16, 32}, 40},  {{1, 1, 16, 16, 32}, 0},  {{4, 4, 8, 8, 16}, 128},  {{2, 2, 8, 8, 16}, 0},
};

/* The table of a block format takes shared memory, too. */
static bool lower_tile_fits(const berth__tile *tile, const berth__tile_form *f) {
  const berth__kernel_limits *limits = tile->l->limits;
  const uint32_t rows = f->group_rows * f->thread_rows, columns = f->group_columns * f->thread_columns;
  const uint32_t table = berth__l_blocks_table_size(tile->l->call->in[tile->right.operand].type);
  return f->group_rows * f->group_columns <= limits->group_size &&
         ((rows + columns + 2) * f->depth + table) * 4 <= limits->shared_bytes;
}

int64_t berth__tile_groups(const berth__tile *tile, int64_t rows, int64_t columns) {
  return berth__tile_count(&tile->batch) * lower_tile_ceil_of(berth__tile_count(&tile->rows), rows) *
         lower_tile_ceil_of(berth__tile_count(&tile->columns), columns);
}

static int64_t lower_tile_groups_of(const berth__tile *tile, const berth__tile_form *f) {
  return berth__tile_groups(tile, (int64_t)f->group_rows * f->thread_rows,
                            (int64_t)f->group_columns * f->thread_columns);
}

/* The fraction of a tile's results that is inside the result. */
static double use_of(const berth__tile *tile, const berth__tile_form *f) {
  return results_of(tile) / ((double)lower_tile_groups_of(tile, f) * f->group_rows * f->thread_rows * f->group_columns *
                             f->thread_columns);
}

/* The first tile with enough workgroups that is mostly inside the result; otherwise the last one that fits. */
static const berth__tile_form *choose_shared(const berth__tile *tile) {
  const berth__tile_form *chosen = NULL;
  for (size_t i = 0; i < sizeof shared_forms / sizeof *shared_forms; i++) {
    const struct choice *choice = &shared_forms[i];
    if (!lower_tile_fits(tile, &choice->form)) continue;
    chosen = &choice->form;
    if (lower_tile_groups_of(tile, chosen) >= choice->groups && use_of(tile, chosen) > 0.6) break;
    if (choice->groups == 0) break;
  }
  return chosen;
}

/* For shapes with long sums for which the tiles above leave most of a device idle: from large to small, for workgroups
 * of 256 threads, four parts of 64 (split-K). Each thread has as many sums as in larger tiles of the shared form, and
 * reads shared memory as rarely. Results whose elements share words, and blocks, use the shared form. */
static const struct choice deep_forms[] = {
    {{4, 4, 8, 8, 16}, 96},
    {{2, 2, 8, 8, 16}, 0},
};
#define DEEP_DEPTH 256  /* shortest depth that is worth splitting */
#define DEEP_GROUPS 128 /* tiles of 64 x 64 that keep a device busy without splitting */

static const berth__tile_form *choose_deep(const berth__tile *tile) {
  const berth__kernel_limits *limits = tile->l->limits;
  const berth__tile_form large = {.thread_rows = 4, .thread_columns = 4, .group_rows = 16, .group_columns = 16};
  if (tile->type != BERTH__NUM_F32 || berth__tile_count(&tile->depth) < DEEP_DEPTH) return NULL;
  if (berth__tile_has_blocks(tile) || berth__tile_word(tile) > 1) return NULL;
  if (limits->group_size < 256 || limits->shared_bytes < 32768) return NULL;
  if (lower_tile_groups_of(tile, &large) >= DEEP_GROUPS) return NULL;
  for (size_t i = 0; i < sizeof deep_forms / sizeof *deep_forms; i++)
    if (lower_tile_groups_of(tile, &deep_forms[i].form) >= deep_forms[i].groups &&
        (use_of(tile, &deep_forms[i].form) > 0.6 || deep_forms[i].groups == 0))
      return &deep_forms[i].form;
  return NULL;
}

/* Threads that load directly from memory: enough rows and columns to reuse what is loaded, but not past the shape. If a
 * CPU plays the GPU, loads lane by lane are the bottleneck, and registers are plentiful: 8 x 8. On a GPU this form is
 * for short sums, which need many threads. */
static berth__tile_form choose_registers(const berth__tile *tile) {
  const int64_t rows = berth__tile_count(&tile->rows), columns = berth__tile_count(&tile->columns);
  const bool shares_well = tile->l->limits->shares_well;
  const uint32_t most_rows = shares_well ? 4 : 8, most_columns = shares_well || rows == 1 ? 4 : 8;
  berth__tile_form form = {.thread_rows = 1, .thread_columns = 1};
  while (form.thread_rows < most_rows && form.thread_rows < rows) form.thread_rows *= 2;
  while (form.thread_columns < most_columns && form.thread_columns < columns) form.thread_columns *= 2;
  const double enough = shares_well ? 65536 : 512;
  const uint32_t word = berth__tile_word(tile); /* columns that a thread should keep */
  while (form.thread_columns < word) form.thread_columns *= 2;
  while (form.thread_rows * form.thread_columns > word &&
         results_of(tile) / (form.thread_rows * form.thread_columns) < enough) {
    if (form.thread_columns >= form.thread_rows && form.thread_columns > word)
      form.thread_columns /= 2;
    else
      form.thread_rows /= 2;
  }
  return form;
}

/* Columns and parts of the depth within a workgroup: neighbouring threads read neighbouring elements. Such a sum is
 * limited by reading, which needs threads: if the depth is contiguous, 128 threads share a column; otherwise 16 columns
 * are 64 contiguous bytes, and 32 are used only if there are very many columns. */
static berth__tile_form choose_split(const berth__tile *tile) {
  const berth__kernel_limits *limits = tile->l->limits;
  const int64_t columns = berth__tile_count(&tile->columns);
  const bool is_deep = berth__tile_is_deep(tile, &tile->right, &tile->columns);
  const uint32_t wanted = is_deep ? 256 : 512, most = limits->group_size < wanted ? limits->group_size : wanted;
  const uint32_t most_rows = is_deep ? 4 : 2;
  berth__tile_form form = {.thread_rows = 1, .thread_columns = 1};
  form.group_columns = is_deep ? (most + 127) / 128 : columns >= 16384 ? 32 : most >= 512 ? 16 : 8;
  while (form.group_columns > 1 && (int64_t)form.group_columns / 2 >= columns) form.group_columns /= 2;
  form.group_rows = most / form.group_columns;
  while (form.thread_rows < most_rows && form.thread_rows < berth__tile_count(&tile->rows)) form.thread_rows *= 2;
  const uint64_t of_row = (uint64_t)most * (berth__tile_is_normed(tile) ? 8 : 4);
  while (form.thread_rows > 1 && form.thread_rows * of_row > limits->shared_bytes) form.thread_rows /= 2;
  return form;
}

/* Few results with long sums: the threads of a workgroup share the depth, or most of the device would be idle. A single
 * row, a decoding step, is limited by reading the weights, and this form reads them contiguously. */
static bool wants_split(const berth__tile *tile) {
  if (berth__tile_has_blocks(tile)) return false; /* it loads single elements */
  const int64_t depth = berth__tile_count(&tile->depth), rows = berth__tile_count(&tile->rows);
  const berth__kernel_limits *limits = tile->l->limits;
  if (limits->group_size < 16 || limits->shared_bytes < 2048) return false;
  if (!limits->shares_well) return depth >= 2048 && results_of(tile) <= 64;
  if (rows <= 4) return depth >= 2 * SHORT_DEPTH && results_of(tile) < 1e6;
  return depth >= LONG_DEPTH && results_of(tile) < 4096;
}

#define PACKED_LANES 128u   /* most lanes that share a sum */
#define PACKED_THREADS 256u /* per workgroup, which keeps the rows in shared memory; half as many if that is small */
#define PACKED_SHARED 32768u
#define PACKED_COLUMNS 2u /* most columns per thread */
#define PACKED_COLUMNS_CPU 4u
#define PACKED_ENOUGH 49152 /* threads that keep a large device busy, given what each loads at once */
#define PACKED_ENOUGH_CPU 256

/* Sums are short here, and limited by memory latency: as many lanes share one as it has slices, so that each loads
 * little, all at once. If a CPU plays the GPU, each thread computes whole sums. */
static uint32_t choose_packed_lanes(const berth__tile *tile, uint32_t threads) {
  const berth__kernel_limits *limits = tile->l->limits;
  const int64_t slices = berth__tile_packed_slices(tile);
  uint32_t lanes = 1;
  if (!limits->shares_well || limits->shared_bytes < 8192) return lanes;
  while (lanes < slices && 2 * lanes <= threads && lanes < PACKED_LANES) lanes *= 2;
  return lanes;
}

/* No more columns than there are, but whole subgroups if these round the rows. */
static void shrink_packed(const berth__tile *tile, berth__tile_form *form) {
  const int64_t columns = berth__tile_count(&tile->columns);
  const uint32_t least = tile->in_bytes ? tile->l->limits->lanes : 1;
  while (form->group_columns > 1 && (int64_t)form->group_columns / 2 * form->thread_columns >= columns &&
         form->group_rows * form->group_columns / 2 >= least)
    form->group_columns /= 2;
}

/* A thread has several columns, which reuse the rows that it loads, if there are enough threads. */
static berth__tile_form choose_packed(const berth__tile *tile) {
  const berth__kernel_limits *limits = tile->l->limits;
  const int64_t columns = berth__tile_count(&tile->columns);
  const uint32_t rows = (uint32_t)berth__tile_count(&tile->rows),
                 wanted = limits->shared_bytes < PACKED_SHARED ? PACKED_THREADS / 2 : PACKED_THREADS,
                 threads = limits->group_size < wanted ? limits->group_size : wanted;
  berth__tile_form form = {.thread_rows = rows, .thread_columns = 1, .group_rows = choose_packed_lanes(tile, threads)};
  const uint32_t most = limits->shares_well ? PACKED_COLUMNS : PACKED_COLUMNS_CPU;
  const int64_t enough = limits->shares_well ? PACKED_ENOUGH : PACKED_ENOUGH_CPU,
                lanes = berth__tile_count(&tile->batch) * columns * form.group_rows;
  while (form.thread_columns < most && rows * form.thread_columns < 4 && lanes / (2 * form.thread_columns) >= enough)
    form.thread_columns *= 2;
  form.group_columns = threads / form.group_rows;
  shrink_packed(tile, &form);
  return form;
}

#define FLOW_GROUPS 528u /* workgroups that a large device runs at once */
#define FLOW_ROUNDS 4    /* rounds of columns per workgroup, which keeps workgroups balanced */

/* If kernels begin early: as many workgroups as run at once, with one subgroup per sum. Several columns per thread save
 * loads of the rows, if there are enough columns. */
static berth__tile_form choose_flow(const berth__tile *tile) {
  const berth__kernel_limits *limits = tile->l->limits;
  const int64_t columns = berth__tile_count(&tile->columns), slices = berth__tile_packed_slices(tile);
  const uint32_t rows = (uint32_t)berth__tile_count(&tile->rows),
                 threads = limits->group_size < PACKED_THREADS ? limits->group_size : PACKED_THREADS;
  berth__tile_form form = {.thread_rows = rows, .thread_columns = 1, .group_rows = 1};
  while (form.group_rows < limits->lanes && form.group_rows < slices && 2 * form.group_rows <= threads)
    form.group_rows *= 2;
  form.group_columns = threads / form.group_rows;
  while (form.thread_columns < PACKED_COLUMNS && rows * form.thread_columns < 4 &&
         columns / (2 * form.thread_columns * form.group_columns) >= FLOW_ROUNDS * (int64_t)FLOW_GROUPS)
    form.thread_columns *= 2;
  shrink_packed(tile, &form);
  return form;
}

/* Few rows, as in text generation: such a product is limited by reading the weights. */
static bool wants_packed(const berth__tile *tile) {
  if (berth__tile_count(&tile->rows) > BERTH__TILE_FEW_ROWS || !berth__tile_takes_packed(tile)) return false;
  return berth__tile_has_blocks(tile) || tile->second != BERTH__TILE_NONE || tile->l->limits->shares_well;
}

static berth_status lower_packed(berth__tile *tile, berth_error *err) {
  const berth__kernel_limits *limits = tile->l->limits;
  const bool flows = limits->begins_early && limits->exchanges;
  tile->in_bytes = berth__tile_takes_bytes(tile);
  berth__tile_form form = flows ? choose_flow(tile) : choose_packed(tile);
  if (tile->in_bytes && !berth__tile_fits_bytes(tile, &form)) {
    tile->in_bytes = false;
    form = flows ? choose_flow(tile) : choose_packed(tile);
  }
  return berth__tile_packed(tile, &form, flows ? FLOW_GROUPS : 0, err);
}

static berth_status lower_chosen(berth__tile *tile, berth_error *err) {
  if (wants_packed(tile)) return lower_packed(tile, err);
  berth__tile_form form;
  if (tile->second != BERTH__TILE_NONE) {
    form = choose_registers(tile);
    return berth__tile_registers(tile, &form, err);
  }
  if (berth__tile_count(&tile->rows) > berth__tile_count(&tile->columns) && !berth__tile_is_normed(tile) &&
      (berth__tile_count(&tile->columns) <= 4 || wants_split(tile)) && !berth__tile_has_blocks(tile))
    swap_sides(tile); /* blocks and norms must stay on their sides */
  if (wants_split(tile)) {
    form = choose_split(tile);
    return berth__tile_split(tile, &form, err);
  }
  berth__matrix_form matrix;
  const berth_compute kind = berth__tile_kind(tile);
  if (BERTH__NATIVE_GPUS && !berth__tile_is_normed(tile) &&
      (kind != BERTH_COMPUTE_F32 ? berth__tile_matrix_form(tile, kind, &matrix)
                                 : berth__tile_fours_form(tile, &matrix)))
    return berth__tile_matrix(tile, kind, &matrix, err);
  const berth__tile_form *shared = choose_shared(tile), *deep = choose_deep(tile);
  if (deep != NULL && tile->l->limits->shares_well && !berth__tile_is_normed(tile) &&
      berth__tile_count(&tile->rows) > 4)
    return berth__tile_deep(tile, deep, err);
  if (shared != NULL && tile->l->limits->shares_well && !berth__tile_is_normed(tile) &&
      berth__tile_count(&tile->depth) >= SHORT_DEPTH && berth__tile_count(&tile->rows) > 4)
    return berth__tile_shared(tile, shared, err);
  form = choose_registers(tile);
  return berth__tile_registers(tile, &form, err);
}

berth_status berth__tile_lower(berth__tile *tile, berth_error *err) {
  const berth_op_call *call = tile->l->call;
  if (results_of(tile) == 0) return BERTH_OK;
  if (berth__count(&call->in[tile->left.operand]) == 0 || berth__count(&call->in[tile->right.operand]) == 0)
    tile->depth = (berth__tile_space){.rank = 1, .dim = {0}};
  return lower_chosen(tile, err);
}
