/* attention with matrix units, for many queries. A workgroup has a block of them and goes over the keys block by block,
 * while the next keys and values are being copied:
 *
 * scores are sums of queries and keys, whose rows are folded in registers;
 * they become weights relative to the maximum so far, which are rounded into a tile;
 * the result is the sum of weights times values, rescaled when the maximum grows (online softmax).
 *
 * Maxima and totals are f32, and totals add up unrounded weights. A value that is NaN or infinite counts even if its
 * weight is 0: only rows without a key are left out. */
#include <math.h>

#include "kernel/lower/attention.h"
#include "kernel/lower/words.h"

typedef struct matrix_work {
  berth__attention_block b;
  berth__kernel *k;
  berth__attention_side q, keys, values;
  berth__kernel_tile weights;
  bool is_copied;                        /* asynchronous copies, 16 bytes at a time */
  uint32_t scores, result;               /* sums */
  uint32_t lines;                        /* rows per thread, of each */
  uint32_t largest, total, fade, folded; /* local: per row */
} matrix_work;

/* ---- Into tiles ---- */

static void matrix_open_side(matrix_work *w, berth__attention_side *side, berth__attention_tile which) {
  const bool is_queries = which == BERTH__ATTENTION_QUERIES;
  side->storage = w->is_copied ? berth__l_storage_of(w->b.l, side->operand) : berth__compute_storage(w->b.f->kind);
  side->is_values = which == BERTH__ATTENTION_VALUES;
  const berth__tile_desc desc =
      berth__attention_tile_desc(w->b.a, w->b.f, which, side->storage, w->is_copied && !is_queries ? 2 : 1);
  side->tile = berth__kernel_tile_of(w->k, &desc);
}

static void matrix_take_block(const void *user, berth__x slot, berth__x from) {
  const matrix_work *w = user;
  berth__attention_take(&w->b, &w->keys, w->is_copied, slot, from);
  berth__attention_take(&w->b, &w->values, w->is_copied, slot, from);
}

/* ---- Weights ---- */

static void matrix_make_scores(const matrix_work *w, berth__x slot, berth__x from) {
  berth__kernel *k = w->k;
  berth__x each = berth__x_each(k, w->scores);
  for (uint32_t i = 0; i < 2; i++) berth__x_sum_set(k, each, i, berth__x_f32(k, 0));
  berth__x_end(k);
  berth__x_multiply(k, w->scores, slot);
  each = berth__x_each(k, w->scores);
  const berth__x row = berth__x_sum_row(k, each), column = berth__x_sum_column(k, each);
  for (uint32_t i = 0; i < 2; i++) {
    const berth__x key = berth__x_add(k, from, berth__x_affine(k, column, 1, i));
    berth__x_sum_set(k, each, i, berth__attention_block_score(&w->b, row, key, berth__x_sum(k, each, i)));
  }
  berth__x_end(k);
}

static void matrix_make_weights(const matrix_work *w) {
  berth__kernel *k = w->k;
  const berth__x each = berth__x_each(k, w->scores);
  const berth__x row = berth__x_sum_row(k, each), column = berth__x_sum_column(k, each);
  const berth__x largest = berth__x_local_load(k, w->largest, berth__x_sum_line(k, each));
  for (uint32_t i = 0; i < 2; i++) {
    const berth__x weight = berth__attention_weight(k, berth__x_sum(k, each, i), largest);
    berth__x_sum_set(k, each, i, weight);
    berth__x_shared_store(k, w->weights.array,
                          berth__x_tile_at(k, &w->weights, berth__x_i32(k, 0), row, berth__x_affine(k, column, 1, i)),
                          weight);
  }
  berth__x_end(k);
  berth__x_row_total(k, w->scores, w->folded);
  for (uint32_t i = 0; i < w->lines; i++) {
    const berth__x line = berth__x_i32(k, i), fade = berth__x_local_load(k, w->fade, line);
    const berth__x before = berth__attention_fade(k, berth__x_local_load(k, w->total, line), fade);
    berth__x_local_store(k, w->total, line, berth__x_add(k, before, berth__x_local_load(k, w->folded, line)));
  }
}

static void matrix_fade_result(const matrix_work *w) {
  berth__kernel *k = w->k;
  const uint32_t together = k->sums[w->result].together;
  const berth__x each = berth__x_each(k, w->result);
  const berth__x fade = berth__x_local_load(k, w->fade, berth__x_sum_line(k, each));
  for (uint32_t i = 0; i < together; i++)
    berth__x_sum_set(k, each, i, berth__attention_fade(k, berth__x_sum(k, each, i), fade));
  berth__x_end(k);
}

static void matrix_see_block(const void *user, berth__x slot, berth__x from) {
  const matrix_work *w = user;
  matrix_make_scores(w, slot, from);
  berth__attention_find_largest(w->k, w->scores, w->lines, w->largest, w->fade, w->folded);
  matrix_make_weights(w);
  matrix_fade_result(w);
  berth__x_barrier(w->k);
  berth__x_multiply(w->k, w->result, slot);
}

static void matrix_see_keys(const matrix_work *w) {
  berth__attention_passing by = {
      .user = w, .take = matrix_take_block, .see = matrix_see_block, .is_copied = w->is_copied, .step = w->b.f->keys};
  berth__attention_block_range(&w->b, &by.first, &by.last);
  berth__attention_pass(w->k, &by);
}

/* ---- The result ---- */

/* With chunks, stores a record, since other workgroups have further keys of the row. */
static void matrix_store_record(const matrix_work *w, berth__x each, const berth__attention_row *row, berth__x line) {
  berth__kernel *k = w->k;
  const uint32_t scratch = berth__l_scratch(k, BERTH_F32);
  const berth__x column = berth__x_sum_column(k, each);
  const berth__x to = berth__attention_record(k, w->b.a, w->b.f, row->batch, row->head, row->row, w->b.chunk);
  berth__x_if(k, berth__x_eq(k, column, berth__x_i32(k, 0)));
  berth__x_store(k, scratch, berth__x_affine(k, to, 1, BERTH__ATTENTION_LARGEST),
                 berth__x_local_load(k, w->largest, line));
  berth__x_store(k, scratch, berth__x_affine(k, to, 1, BERTH__ATTENTION_TOTAL), berth__x_local_load(k, w->total, line));
  berth__x_end(k);
  berth__x_store(k, scratch, berth__x_add(k, to, berth__x_affine(k, column, 1, BERTH__ATTENTION_SUMS)),
                 berth__x_sum(k, each, 0));
}

static void matrix_store_some(const matrix_work *w, berth__x each, const berth__attention_row *row, berth__x line) {
  berth__kernel *k = w->k;
  const uint32_t together = k->sums[w->result].together;
  const berth__x column = berth__x_sum_column(k, each);
  const berth__x to = berth__attention_at(k, &w->b.a->out, row->batch, row->head, row->row);
  const berth__x divisor = berth__attention_divisor(
      w->b.l, k, w->b.a, row->head, berth__x_local_load(k, w->total, line), berth__x_local_load(k, w->largest, line));
  if (together > 1) berth__l_word_begin(w->b.l, k);
  for (uint32_t i = 0; i < together; i++) {
    const berth__x place =
        berth__x_add(k, to, berth__x_affine(k, berth__x_affine(k, column, 1, i), w->b.a->out.stride, 0));
    if (together > 1) berth__l_word_lane(k, i, place);
    berth__l_store(w->b.l, k, 0, place, berth__x_div(k, berth__x_sum(k, each, i), divisor));
  }
  if (together > 1) berth__l_word_end(w->b.l, k, berth__x_add(k, to, column));
}

static void matrix_store(const matrix_work *w) {
  berth__kernel *k = w->k;
  const berth__x each = berth__x_each(k, w->result), in_block = berth__x_sum_row(k, each);
  const berth__x is_column = berth__x_lt(k, berth__x_sum_column(k, each), berth__x_i32(k, w->b.a->v.size));
  berth__x_if(k, berth__x_and(k, berth__attention_block_has(&w->b, in_block), is_column));
  const berth__attention_row row = berth__attention_block_row(&w->b, in_block);
  (w->b.f->chunks == 1 ? matrix_store_some : matrix_store_record)(w, each, &row, berth__x_sum_line(k, each));
  berth__x_end(k);
  berth__x_end(k);
}

/* ---- All of it ---- */

static void matrix_open_sums(matrix_work *w) {
  const berth__attention_form *f = w->b.f;
  const uint32_t word = f->chunks == 1 ? berth__attention_word(w->b.l, w->b.a) : 1;
  berth__kernel_sums sums = {.type = BERTH__NUM_F32, .kind = f->kind, .group_rows = f->row_groups, .has_rows = true};
  sums.left = w->q.tile;
  sums.right = w->keys.tile;
  sums.together = 2;
  w->scores = berth__kernel_sums_of(w->k, &sums);
  sums.left = w->weights;
  sums.right = w->values.tile;
  sums.together = word == 2 ? 2 : 1;
  w->result = berth__kernel_sums_of(w->k, &sums);
}

static void matrix_open_rows(matrix_work *w) {
  berth__kernel *k = w->k;
  uint32_t *const arrays[] = {&w->largest, &w->total, &w->fade, &w->folded};
  w->lines = w->b.f->queries * BERTH__ROW_THREADS / w->b.f->threads;
  for (int i = 0; i < 4; i++) *arrays[i] = berth__kernel_local(k, BERTH__NUM_F32, w->lines);
  for (uint32_t i = 0; i < w->lines; i++) {
    berth__x_local_store(k, w->largest, berth__x_i32(k, i), berth__x_f32(k, -INFINITY));
    berth__x_local_store(k, w->total, berth__x_i32(k, i), berth__x_f32(k, 0));
  }
}

static void matrix_open_tiles(matrix_work *w) {
  const berth__attention *a = w->b.a;
  w->q = (berth__attention_side){.operand = BERTH__ATTENTION_Q, .heads = &a->q};
  w->keys = (berth__attention_side){.operand = BERTH__ATTENTION_K, .heads = &a->k};
  w->values = (berth__attention_side){.operand = BERTH__ATTENTION_V, .heads = &a->v};
  w->is_copied = berth__attention_can_copy(&w->b, &w->q) && berth__attention_can_copy(&w->b, &w->keys) &&
                 berth__attention_can_copy(&w->b, &w->values);
  matrix_open_side(w, &w->q, BERTH__ATTENTION_QUERIES);
  matrix_open_side(w, &w->keys, BERTH__ATTENTION_KEYS);
  matrix_open_side(w, &w->values, BERTH__ATTENTION_VALUES);
  const berth__tile_desc desc =
      berth__attention_tile_desc(a, w->b.f, BERTH__ATTENTION_WEIGHTS, berth__compute_storage(w->b.f->kind), 1);
  w->weights = berth__kernel_tile_of(w->k, &desc);
}

berth_status berth__attention_matrix(berth__lowering *l, const berth__attention *a, const berth__attention_form *form,
                                     berth_error *err) {
  matrix_work w = {.b = berth__attention_begin(l, a, form, "matrix")};
  w.k = w.b.k;
  if (w.k == NULL) return berth__l_end(l, w.k, err);
  matrix_open_tiles(&w);
  matrix_open_sums(&w);
  matrix_open_rows(&w);
  berth__attention_take(&w.b, &w.q, w.is_copied, berth__x_i32(w.k, 0), BERTH__X_NONE);
  matrix_see_keys(&w);
  matrix_store(&w);
  BERTH__TRY(berth__l_end(l, w.k, err));
  return form->chunks > 1 ? berth__attention_merge(l, a, form, err) : BERTH_OK;
}
