/* The results of sums on matrix units, by way of shared memory. The units leave each thread two neighbours here and two
 * there: stored from there, or with operands of the epilogue loaded there, a row would be touched 4 or 8 bytes at a
 * time. So the workgroup writes its sums over its tiles, which are no longer needed, and then every thread finishes
 * runs of 16 bytes of a row. */
#include "kernel/lower/tile.h"
#include "kernel/lower/words.h"

#define PADDING 8u     /* elements after a row of sums: threads that store pairs of four rows use all banks */
#define MOST_RUNS 4u   /* of a thread whose operands are loaded before the first is stored */
#define MOST_WIDTH 8u  /* elements of a run */
#define MOST_EXTRAS 4u /* operands of the epilogue that are loaded in runs */

typedef struct staged {
  const berth__tile *tile;
  const berth__tile_staging *of;
  berth__kernel *k;
  uint32_t array, pitch, width, local;
} staged;

/* Adjacent results of a row. */
typedef struct staged_run {
  berth__x fits;        /* it is inside of the result */
  berth__x row, column; /* of its first element, moved inside of the result */
  berth__x at;          /* of its sums in the array */
  berth__x extras[MOST_WIDTH][MOST_EXTRAS], bias[MOST_WIDTH];
  berth__x place[BERTH__TILE_VIEWS]; /* of its first element */
} staged_run;

/* ---- Which results ---- */

static void strides_of(const berth__tile *tile, uint32_t view, const berth__tile_space *space, int64_t *stride) {
  for (uint32_t axis = 0; axis < space->rank; axis++)
    stride[axis] = space->times[axis] == 0 ? 0 : tile->views[view].stride[space->of[axis]] * space->times[axis];
}

static bool steps_by(const berth__tile *tile, uint32_t view, const berth__tile_space *space, int64_t n) {
  int64_t stride[BERTH__TILE_AXES];
  strides_of(tile, view, space, stride);
  for (uint32_t axis = 0; axis < space->rank; axis++)
    if (space->dim[axis] > 1 && stride[axis] % n != 0) return false;
  return true;
}

/* Whether n adjacent columns, from a multiple of n on, are adjacent in a view, and aligned to as many elements. */
static bool has_runs(const berth__tile *tile, uint32_t view, int64_t n) {
  int64_t stride[BERTH__TILE_AXES], run = 1;
  uint32_t axis = tile->columns.rank;
  strides_of(tile, view, &tile->columns, stride);
  while (axis > 0 && (tile->columns.dim[axis - 1] == 1 || stride[axis - 1] == run)) run *= tile->columns.dim[--axis];
  for (uint32_t i = 0; i < axis; i++)
    if (stride[i] % n != 0) return false;
  return run % n == 0 && steps_by(tile, view, &tile->rows, n) && steps_by(tile, view, &tile->batch, n);
}

/* Whether all columns have the same element. */
static bool is_same(const berth__tile *tile, uint32_t view) { return steps_by(tile, view, &tile->columns, INT64_MAX); }

static bool is_float(berth__storage storage) {
  return storage == BERTH_F32 || storage == BERTH_F16 || storage == BERTH_BF16;
}

static berth__storage result_storage(const berth__tile *tile) {
  return tile->is_for_scratch ? BERTH_F32 : berth__l_storage_of(tile->l, tile->l->call->n_in);
}

uint32_t berth__tile_staged_width(const berth__tile *tile) {
  const berth__lowering *l = tile->l;
  const berth__storage storage = result_storage(tile);
  if (!tile->is_for_scratch && (tile->finish != berth__tile_finish || tile->goes_elsewhere || !is_float(storage) ||
                                berth__l_number(l->call->out[0].type) != BERTH__NUM_F32))
    return 0;
  if (!tile->is_for_scratch && l->at != NULL && l->at[l->call->n_in] % 16 != 0) return 0;
  if (tile->type != BERTH__NUM_F32 || tile->second != BERTH__TILE_NONE || berth__tile_has_blocks(tile)) return 0;
  const uint32_t width = 16 / berth_type_storage(storage).bytes;
  return has_runs(tile, 0, width) ? width : 0;
}

uint64_t berth__tile_staged_bytes(uint32_t rows, uint32_t columns) { return 4 * (uint64_t)rows * (columns + PADDING); }

/* ---- Operands of the epilogue ---- */

static berth__x place_of(const staged *s, uint32_t view, berth__x row, berth__x column) {
  const berth__tile *t = s->tile;
  const berth__tile_space *const spaces[3] = {&t->batch, &t->rows, &t->columns};
  const berth__x flat[3] = {s->of->batch, row, column};
  berth__x place = berth__x_i32(s->k, 0);
  for (int i = 0; i < 3; i++) {
    int64_t stride[BERTH__TILE_AXES];
    strides_of(t, view, spaces[i], stride);
    place = berth__x_add(s->k, place, berth__tile_place(s->k, flat[i], spaces[i]->rank, spaces[i]->dim, stride));
  }
  return place;
}

/* The words of a run, at once if they are four or eight. */
static void load_words(const staged *s, uint32_t operand, uint32_t n, berth__x place, berth__x *words) {
  berth__kernel *k = s->k;
  const uint32_t buffer = berth__l_buffer(s->tile->l, k, operand, BERTH_U32);
  const berth__x first = berth__x_div(k, place, berth__x_i32(k, s->width / n));
  for (uint32_t i = 0; i < n; i += n % 4 == 0 ? 4 : 1) {
    if (n % 4 != 0) {
      words[i] = berth__x_load(k, buffer, berth__x_affine(k, first, 1, i));
      continue;
    }
    const berth__x four = berth__x_div(k, berth__x_affine(k, first, 1, i), berth__x_i32(k, 4));
    const berth__x quad = berth__x_quad(k, buffer, four);
    for (uint32_t j = 0; j < 4; j++) words[i + j] = berth__x_part(k, quad, j);
  }
}

static void load_run(const staged *s, const staged_run *run, uint32_t operand, uint32_t view, berth__x *values) {
  const berth__tile *t = s->tile;
  berth__kernel *k = s->k;
  const berth__storage storage = berth__l_storage_of(t->l, operand);
  const uint32_t per_word = berth__storage_per_word(storage);
  const bool is_aligned = t->l->at == NULL || t->l->at[operand] % 16 == 0;
  if (is_float(storage) && is_aligned && has_runs(t, view, s->width)) {
    berth__x words[MOST_WIDTH] = {0};
    load_words(s, operand, s->width / per_word, run->place[view], words);
    for (uint32_t i = 0; i < s->width; i++)
      values[i] = per_word == 1 ? berth__x_bits(k, BERTH__NUM_F32, words[i])
                                : berth__l_lane(k, storage, words[i / per_word], i % per_word);
    return;
  }
  for (uint32_t i = 0; i < s->width; i++) {
    if (i > 0 && is_same(t, view)) {
      values[i] = values[0];
      continue;
    }
    const berth__x place =
        i == 0 ? run->place[view] : place_of(s, view, run->row, berth__x_affine(k, run->column, 1, i));
    values[i] = berth__x_convert(k, BERTH__NUM_F32, berth__l_load(t->l, k, operand, place));
  }
}

static uint32_t count_extras(const berth__tile *tile) {
  const berth__tile_epilogue *epilogue = tile->user;
  if (tile->is_for_scratch) return 0;
  const uint32_t n_sum = epilogue->sum != BERTH__TILE_NONE ? 1 : 0;
  const uint32_t n = n_sum + (epilogue->chain.n_steps != 0 ? epilogue->chain.n_operands - 1 : 0);
  return n <= MOST_EXTRAS ? n : 0;
}

static void load_extras(const staged *s, staged_run *run) {
  const berth__tile_epilogue *epilogue = s->tile->user;
  const uint32_t n = count_extras(s->tile);
  if (s->tile->is_for_scratch) return;
  if (epilogue->bias != BERTH__TILE_NONE) load_run(s, run, epilogue->bias, epilogue->bias_view, run->bias);
  const uint32_t n_sum = epilogue->sum != BERTH__TILE_NONE ? 1 : 0;
  for (uint32_t e = 0; e < n; e++) {
    berth__x values[MOST_WIDTH] = {0};
    const bool is_sum = e < n_sum;
    load_run(s, run, is_sum ? epilogue->sum : epilogue->first_extra + e - n_sum,
             is_sum ? epilogue->sum_view : epilogue->extra_view + e - n_sum, values);
    for (uint32_t i = 0; i < s->width; i++) run->extras[i][e] = values[i];
  }
}

/* ---- Runs ---- */

/* Neighbouring threads have neighbouring runs. */
static void open_run(const staged *s, berth__x number, staged_run *run) {
  const berth__tile *t = s->tile;
  berth__kernel *k = s->k;
  const int64_t rows = berth__tile_count(&t->rows), columns = berth__tile_count(&t->columns);
  const berth__x of_row = berth__x_i32(k, s->of->columns / s->width);
  const berth__x down = berth__x_div(k, number, of_row);
  const berth__x across = berth__x_affine(k, berth__x_rem(k, number, of_row), s->width, 0);
  const berth__x row = berth__x_add(k, s->of->row, down), column = berth__x_add(k, s->of->column, across);
  run->at = berth__x_add(k, berth__x_affine(k, down, s->pitch, 0), across);
  run->fits =
      berth__x_and(k, berth__x_lt(k, row, berth__x_i32(k, rows)), berth__x_lt(k, column, berth__x_i32(k, columns)));
  run->row = berth__tile_clamp(k, row, rows);
  run->column = berth__x_min(k, column, berth__x_i32(k, columns - s->width));
  for (uint32_t v = 0; v < t->n_views; v++) run->place[v] = place_of(s, v, run->row, run->column);
  load_extras(s, run);
}

static berth__x finished(const staged *s, const staged_run *run, uint32_t i) {
  const berth__tile *t = s->tile;
  berth__kernel *k = s->k;
  berth__tile of_cell = *t;
  berth__x place[BERTH__TILE_VIEWS] = {0};
  const berth__x sum = berth__x_shared_load(k, s->array, berth__x_affine(k, run->at, 1, i));
  if (t->is_for_scratch) return sum;
  const berth__tile_epilogue *epilogue = t->user;
  for (uint32_t v = 0; v < t->n_views; v++)
    place[v] = i == 0 ? run->place[v] : place_of(s, v, run->row, berth__x_affine(k, run->column, 1, i));
  of_cell.extras = count_extras(t) > 0 ? run->extras[i] : NULL;
  of_cell.held_bias = epilogue->bias != BERTH__TILE_NONE ? run->bias[i] : BERTH__X_NONE;
  return berth__tile_epilogue_value(&of_cell, epilogue, k, place, sum);
}

static berth__x packed_word(berth__kernel *k, berth__storage storage, const berth__x *values) {
  if (storage == BERTH_F32) return berth__x_bits(k, BERTH__NUM_U32, values[0]);
  if (storage == BERTH_BF16) return berth__x_pack_pair(k, values[0], values[1]);
  const berth__x high = berth__x2(k, BERTH__INST_shl, berth__x_pack(k, storage, values[1]), berth__x_u32(k, 16));
  return berth__x_or(k, berth__x_pack(k, storage, values[0]), high);
}

static void store_run(const staged *s, const staged_run *run) {
  const berth__lowering *l = s->tile->l;
  berth__kernel *k = s->k;
  const berth__storage storage = result_storage(s->tile);
  const uint32_t per_word = berth__storage_per_word(storage);
  const uint32_t buffer = s->tile->is_for_scratch ? berth__l_scratch(k, BERTH_U32)
                                                  : berth__l_buffer(l, k, berth__operand_out(l->call, 0), BERTH_U32);
  berth__x values[MOST_WIDTH] = {0};
  berth__x_if(k, run->fits);
  for (uint32_t i = 0; i < s->width; i++) values[i] = finished(s, run, i);
  for (uint32_t i = 0; i < 4; i++)
    berth__x_local_store(k, s->local, berth__x_i32(k, i), packed_word(k, storage, values + i * per_word));
  berth__x_quad_store(k, buffer, berth__x_div(k, run->place[0], berth__x_i32(k, s->width)), s->local);
  berth__x_end(k);
}

static void put_sums(const staged *s) {
  berth__kernel *k = s->k;
  const berth__x each = berth__x_each(k, s->of->sums);
  const uint32_t together = k->status == BERTH_OK ? k->sums[s->of->sums].together : 1;
  const berth__x row = berth__x_affine(k, berth__x_sum_row(k, each), s->pitch, 0);
  const berth__x at = berth__x_add(k, row, berth__x_sum_column(k, each));
  for (uint32_t i = 0; i < together; i++)
    berth__x_shared_store(k, s->array, berth__x_affine(k, at, 1, i), berth__x_sum(k, each, i));
  berth__x_end(k);
}

void berth__tile_store_staged(const berth__tile *tile, berth__kernel *k, const berth__tile_staging *staging) {
  staged s = {.tile = tile, .of = staging, .k = k, .pitch = staging->columns + PADDING, .width = staging->width};
  s.array = berth__kernel_shared_over(k, BERTH__NUM_F32, staging->rows * s.pitch, staging->first_array);
  s.local = berth__kernel_local(k, BERTH__NUM_U32, 4);
  const uint32_t threads = k->group_size, n = staging->rows * staging->columns / staging->width / threads;
  const uint32_t together = n % MOST_RUNS == 0 ? MOST_RUNS : n % 2 == 0 ? 2 : 1;
  staged_run runs[MOST_RUNS] = {{0}};
  berth__x_barrier(k);
  put_sums(&s);
  berth__x_barrier(k);
  const berth__x round = berth__x_loop_n(k, n / together);
  const berth__x first = berth__x_add(k, berth__x_affine(k, round, (int64_t)threads * together, 0), berth__x_thread(k));
  for (uint32_t i = 0; i < together; i++) open_run(&s, berth__x_affine(k, first, 1, (int64_t)i * threads), &runs[i]);
  for (uint32_t i = 0; i < together; i++) store_run(&s, &runs[i]);
  berth__x_end(k);
}
