/* attention of few queries (a decoding step), whose time is that of waiting for memory: every thread loads all it needs
 * of its keys and values at once, and waits once.
 *
 * Each subgroup has its own keys: `key.lanes` adjacent threads share one, exchange their parts of its score, and then
 * fold the maximum and the total of all of them. The weights go through shared memory to the threads that have columns
 * of the values. At the end the subgroups' sums are added up, relative to the largest maximum. */
#include <math.h>

#include "kernel/lower/attention.h"
#include "kernel/lower/words.h"

#define LANES BERTH__ATTENTION_LANES
#define MOST_ROWS BERTH__ATTENTION_FEW
#define MOST_HELD 32u /* elements per thread of a key, and half of those of values */
#define MOST_WIDE 8u  /* elements of 16 bytes */
#define MOST_SUMS 64u /* per thread */

/* ---- Choosing ---- */

/* Elements in 16 bytes, or four for types that are unpacked one by one. */
static uint32_t few_wide(berth_type type) { return type == BERTH_F16 || type == BERTH_BF16 ? 8 : 4; }

/* Given how many threads share a key. */
static bool few_try(const berth__attention *a, uint32_t lanes, berth__attention_few_form *out) {
  const berth_tensor *in = a->call->in;
  berth__few_side *key = &out->key, *value = &out->value;
  *key = (berth__few_side){.wide = few_wide(in[BERTH__ATTENTION_K].type), .lanes = lanes};
  *value = (berth__few_side){.wide = few_wide(in[BERTH__ATTENTION_V].type), .lanes = lanes};
  const uint32_t size = (uint32_t)a->k.size, count = ((uint32_t)a->v.size + value->wide - 1) / value->wide;
  key->fetches = size / key->wide / lanes;
  while (value->lanes < LANES && value->lanes < count) value->lanes *= 2;
  value->fetches = (count + value->lanes - 1) / value->lanes;
  out->keys = LANES / lanes;
  out->passes = out->keys * value->lanes / LANES;
  return key->fetches * key->wide * lanes == size && key->fetches * key->wide <= MOST_HELD &&
         out->passes * value->fetches * value->wide <= 2 * MOST_HELD;
}

bool berth__attention_few_of(const berth__attention *a, int64_t rows, berth__attention_few_form *out) {
  const uint32_t wide = few_wide(a->call->in[BERTH__ATTENTION_V].type);
  if (rows > MOST_ROWS || a->v.size % wide != 0) return false;
  uint32_t lanes = 1;
  while (lanes < LANES && !few_try(a, lanes, out)) lanes *= 2;
  return lanes < LANES && rows * out->value.fetches * wide <= MOST_SUMS;
}

/* ---- A workgroup ---- */

typedef struct few_work {
  berth__attention_block b;
  berth__kernel *k;
  const berth__attention *a;
  berth__attention_few_form f;
  uint32_t rows, warps;
  berth__x warp, lane;
  berth__x own_key, part;                        /* of the block of keys, and of that key */
  berth__x own_value, column;                    /* of the block, in the first pass; the first column */
  uint32_t weights, heads, sum_array;            /* shared */
  berth__x slot;                                 /* variable: half of the weights that is written next */
  berth__x largest[MOST_ROWS], total[MOST_ROWS]; /* variables, of the subgroup; of the thread's keys */
  berth__x sums[MOST_SUMS];                      /* variables: by row, fetch and element */
} few_work;

static berth__x *few_sum(few_work *w, uint32_t row, uint32_t fetch, uint32_t element) {
  return &w->sums[(row * w->f.value.fetches + fetch) * w->f.value.wide + element];
}

/* ---- Loads of adjacent elements ---- */

static bool few_is_aligned(const few_work *w, uint32_t operand, const berth__heads *h, uint32_t wide) {
  const berth__lowering *l = w->b.l;
  const berth__storage storage = berth__l_storage_of(l, operand);
  const bool is_float = storage == BERTH_F32 || storage == BERTH_F16 || storage == BERTH_BF16;
  return is_float && berth_type_storage(storage).bytes * wide == 16 && h->stride == 1 &&
         (h->batch == 1 || h->batch_stride % wide == 0) && (h->heads == 1 || h->head_stride % wide == 0) &&
         (h->length == 1 || h->row_stride % wide == 0) && (l->at == NULL || l->at[operand] % 16 == 0);
}

/* Elements `first` to `first` + wide - 1 of the row at `at`. */
static void few_fetch(const few_work *w, uint32_t operand, const berth__heads *h, berth__x at, berth__x first,
                      uint32_t wide, berth__x *values) {
  const berth__lowering *l = w->b.l;
  berth__kernel *k = w->k;
  const berth__storage storage = berth__l_storage_of(l, operand);
  if (!few_is_aligned(w, operand, h, wide)) {
    for (uint32_t e = 0; e < wide; e++)
      values[e] = berth__attention_load(
          l, k, operand, berth__x_add(k, at, berth__x_affine(k, berth__x_affine(k, first, 1, e), h->stride, 0)));
    return;
  }
  const uint32_t per_word = wide / 4;
  const uint32_t buffer = per_word == 1 ? berth__l_in(l, k, operand) : berth__l_buffer(l, k, operand, BERTH_U32);
  const berth__x quad = berth__x_quad(k, buffer, berth__x_div(k, berth__x_add(k, at, first), berth__x_i32(k, wide)));
  for (uint32_t e = 0; e < wide; e++) {
    const berth__x word = berth__x_part(k, quad, e / per_word);
    values[e] = per_word == 1 ? word : berth__l_lane(k, storage, word, e % per_word);
  }
}

/* ---- Scores ---- */

static berth__x few_row_at(const few_work *w, const berth__heads *h, berth__x key) {
  const berth__x inside = berth__x_min(w->k, key, berth__x_i32(w->k, h->length - 1));
  return berth__attention_at(w->k, h, w->b.batch, berth__attention_block_kv_head(&w->b), inside);
}

static void few_load_key(const few_work *w, berth__x from, berth__x *values) {
  const berth__few_side *side = &w->f.key;
  const berth__x at = few_row_at(w, &w->a->k, berth__x_add(w->k, from, w->own_key));
  for (uint32_t i = 0; i < side->fetches; i++)
    few_fetch(w, BERTH__ATTENTION_K, &w->a->k, at,
              berth__x_affine(w->k, w->part, side->wide, (int64_t)i * side->lanes * side->wide), side->wide,
              values + (size_t)i * side->wide);
}

static void few_load_values(const few_work *w, berth__x from, berth__x *values) {
  const berth__few_side *side = &w->f.value;
  const berth__x last = berth__x_i32(w->k, w->a->v.size - side->wide);
  for (uint32_t p = 0; p < w->f.passes; p++) {
    const berth__x key = berth__x_affine(w->k, w->own_value, 1, (int64_t)p * (LANES / side->lanes));
    const berth__x at = few_row_at(w, &w->a->v, berth__x_add(w->k, from, key));
    for (uint32_t i = 0; i < side->fetches; i++)
      few_fetch(w, BERTH__ATTENTION_V, &w->a->v, at,
                berth__x_min(w->k, berth__x_affine(w->k, w->column, 1, (int64_t)i * side->lanes * side->wide), last),
                side->wide, values + (size_t)(p * side->fetches + i) * side->wide);
  }
}

/* Every thread gets the sum, or the maximum, of the threads at these distances. */
static berth__x few_fold(const few_work *w, berth__x value, uint32_t from, uint32_t until, bool is_sum) {
  for (uint32_t distance = from; distance < until; distance *= 2) {
    const berth__x other = berth__x_exchange(w->k, value, distance);
    value = is_sum ? berth__x_add(w->k, value, other) : berth__attention_larger(w->k, value, other);
  }
  return value;
}

static berth__x few_score(const few_work *w, uint32_t row, berth__x from, const berth__x *key) {
  berth__kernel *k = w->k;
  const berth__few_side *side = &w->f.key;
  const berth__x in_block = berth__x_i32(k, row);
  const berth__attention_row of = berth__attention_block_row(&w->b, in_block);
  const berth__x at = berth__attention_at(k, &w->a->q, of.batch, of.head, of.row);
  const uint32_t wide = few_wide(w->a->call->in[BERTH__ATTENTION_Q].type);
  berth__x sum = berth__x_f32(k, 0), query[MOST_WIDE];
  for (uint32_t i = 0; i < side->fetches * side->wide; i++) {
    /* Threads of a key have alternating runs of `wide` elements; the query's runs may be shorter or longer. */
    const uint32_t fetch = i / side->wide, element = i % side->wide, run = wide < side->wide ? wide : side->wide;
    if (element % run == 0) {
      const berth__x first =
          berth__x_affine(k, w->part, side->wide, (int64_t)fetch * side->lanes * side->wide + element);
      few_fetch(w, BERTH__ATTENTION_Q, &w->a->q, at, first, run, query);
    }
    sum = berth__x3(k, BERTH__INST_fma, query[element % run], key[i], sum);
  }
  return berth__attention_block_score(&w->b, in_block, berth__x_add(k, from, w->own_key),
                                      few_fold(w, sum, 1, side->lanes, true));
}

/* ---- Weights ---- */

static berth__x few_weight_at(const few_work *w, berth__x slot, uint32_t row, berth__x key) {
  const int64_t keys = (int64_t)w->warps * w->f.keys;
  return berth__x_add(w->k, berth__x_affine(w->k, slot, keys * w->rows, row * keys), key);
}

static void few_fade_sums(few_work *w, uint32_t row, berth__x fade) {
  for (uint32_t i = 0; i < w->f.value.fetches; i++)
    for (uint32_t e = 0; e < w->f.value.wide; e++) {
      const berth__x sum = *few_sum(w, row, i, e);
      berth__x_set(w->k, sum, berth__attention_fade(w->k, berth__x_get(w->k, sum), fade));
    }
}

static void few_make_weights(few_work *w, berth__x slot, const berth__x *scores) {
  berth__kernel *k = w->k;
  berth__x weights[MOST_ROWS];
  for (uint32_t r = 0; r < w->rows; r++) {
    const berth__x before = berth__x_get(k, w->largest[r]);
    const berth__x after = berth__attention_larger(k, before, few_fold(w, scores[r], w->f.key.lanes, LANES, false));
    const berth__x fade = berth__attention_weight(k, before, after);
    weights[r] = berth__attention_weight(k, scores[r], after);
    berth__x_set(k, w->total[r],
                 berth__x_add(k, berth__attention_fade(k, berth__x_get(k, w->total[r]), fade), weights[r]));
    berth__x_set(k, w->largest[r], after);
    few_fade_sums(w, r, fade);
  }
  berth__x_if(k, berth__x_eq(k, w->part, berth__x_i32(k, 0)));
  for (uint32_t r = 0; r < w->rows; r++)
    berth__x_shared_store(k, w->weights, few_weight_at(w, slot, r, w->own_key), weights[r]);
  berth__x_end(k);
}

/* Keys that are not seen have weight 0, and their values, which may be anything, do not count. */
static void few_add_values(few_work *w, berth__x slot, const berth__x *values) {
  berth__kernel *k = w->k;
  const berth__few_side *side = &w->f.value;
  for (uint32_t p = 0; p < w->f.passes; p++)
    for (uint32_t r = 0; r < w->rows; r++) {
      const berth__x key = berth__x_affine(k, w->own_value, 1, (int64_t)p * (LANES / side->lanes));
      const berth__x weight = berth__x_shared_load(k, w->weights, few_weight_at(w, slot, r, key));
      const berth__x is_none = berth__x_eq(k, weight, berth__x_f32(k, 0));
      for (uint32_t i = 0; i < side->fetches; i++)
        for (uint32_t e = 0; e < side->wide; e++) {
          const berth__x variable = *few_sum(w, r, i, e), sum = berth__x_get(k, variable);
          const berth__x value = values[(p * side->fetches + i) * side->wide + e];
          const berth__x added = berth__x3(k, BERTH__INST_fma, weight, value, sum);
          berth__x_set(k, variable, berth__x_select(k, is_none, sum, added));
        }
    }
}

/* Two halves of the weights take turns, so that one barrier per block of keys is enough. */
static void few_see_keys(few_work *w) {
  berth__kernel *k = w->k;
  berth__x first, last, key[MOST_HELD], values[2 * MOST_HELD], scores[MOST_ROWS];
  berth__attention_block_range(&w->b, &first, &last);
  const berth__x from = berth__x_loop(k, first, last, w->b.f->keys);
  few_load_key(w, from, key);
  few_load_values(w, from, values);
  for (uint32_t r = 0; r < w->rows; r++) scores[r] = few_score(w, r, from, key);
  const berth__x slot = berth__x_get(k, w->slot);
  few_make_weights(w, slot, scores);
  berth__x_barrier(k);
  few_add_values(w, slot, values);
  berth__x_set(k, w->slot, berth__x_sub(k, berth__x_i32(k, 1), slot));
  berth__x_end(k);
}

/* ---- The sums of all subgroups ---- */

static berth__x few_head_at(const few_work *w, berth__x warp, berth__x row, uint32_t entry) {
  return berth__x_affine(w->k, berth__x_add(w->k, berth__x_affine(w->k, warp, w->rows, 0), row), 2, entry);
}

static berth__x few_sum_at(const few_work *w, berth__x warp, berth__x row, berth__x column) {
  const berth__x line = berth__x_add(w->k, berth__x_affine(w->k, warp, w->rows, 0), row);
  return berth__x_add(w->k, berth__x_affine(w->k, line, w->a->v.size, 0), column);
}

static void few_share_sums(few_work *w) {
  berth__kernel *k = w->k;
  const berth__few_side *side = &w->f.value;
  const berth__x zero = berth__x_i32(k, 0);
  for (uint32_t r = 0; r < w->rows; r++) {
    const berth__x row = berth__x_i32(k, r), largest = berth__x_get(k, w->largest[r]);
    const berth__x total = few_fold(w, berth__x_get(k, w->total[r]), w->f.key.lanes, LANES, true);
    berth__x all[MOST_SUMS];
    for (uint32_t n = 0; n < side->fetches * side->wide; n++)
      all[n] = few_fold(w, berth__x_get(k, *few_sum(w, r, n / side->wide, n % side->wide)), side->lanes, LANES, true);
    berth__x_if(k, berth__x_eq(k, w->lane, zero));
    berth__x_shared_store(k, w->heads, few_head_at(w, w->warp, row, BERTH__ATTENTION_LARGEST), largest);
    berth__x_shared_store(k, w->heads, few_head_at(w, w->warp, row, BERTH__ATTENTION_TOTAL), total);
    berth__x_end(k);
    berth__x_if(k, berth__x_lt(k, w->lane, berth__x_i32(k, side->lanes)));
    for (uint32_t n = 0; n < side->fetches * side->wide; n++) {
      const int64_t fetch = n / side->wide, element = n % side->wide;
      const berth__x column = berth__x_affine(k, w->column, 1, fetch * side->lanes * side->wide + element);
      berth__x_if(k, berth__x_lt(k, column, berth__x_i32(k, w->a->v.size)));
      berth__x_shared_store(k, w->sum_array, few_sum_at(w, w->warp, row, column), all[n]);
      berth__x_end(k);
    }
    berth__x_end(k);
  }
  berth__x_barrier(k);
}

/* The factors of the subgroups' sums of a row, and the row's maximum and total. */
typedef struct few_joined {
  berth__x fade[BERTH__ATTENTION_WARPS], largest, total;
} few_joined;

static few_joined few_join(const few_work *w, berth__x row) {
  berth__kernel *k = w->k;
  few_joined j = {.largest = berth__x_f32(k, -INFINITY), .total = berth__x_f32(k, 0)};
  berth__x largest[BERTH__ATTENTION_WARPS];
  for (uint32_t i = 0; i < w->warps; i++) {
    const berth__x at = few_head_at(w, berth__x_i32(k, i), row, BERTH__ATTENTION_LARGEST);
    largest[i] = berth__x_shared_load(k, w->heads, at);
    j.largest = berth__attention_larger(k, j.largest, largest[i]);
  }
  for (uint32_t i = 0; i < w->warps; i++) {
    const berth__x at = few_head_at(w, berth__x_i32(k, i), row, BERTH__ATTENTION_TOTAL);
    j.fade[i] = berth__attention_weight(k, largest[i], j.largest);
    j.total = berth__x_add(k, j.total, berth__attention_fade(k, berth__x_shared_load(k, w->heads, at), j.fade[i]));
  }
  return j;
}

static berth__x few_joined_sum(const few_work *w, const few_joined *j, berth__x row, berth__x column) {
  berth__kernel *k = w->k;
  berth__x sum = berth__x_f32(k, 0);
  for (uint32_t i = 0; i < w->warps; i++) {
    const berth__x of_warp = berth__x_shared_load(k, w->sum_array, few_sum_at(w, berth__x_i32(k, i), row, column));
    sum = berth__x_add(k, sum, berth__attention_fade(k, of_warp, j->fade[i]));
  }
  return sum;
}

static void few_store_result(const few_work *w, const berth__attention_row *of, berth__x row, berth__x first,
                             uint32_t word) {
  berth__kernel *k = w->k;
  berth__lowering *l = w->b.l;
  const few_joined j = few_join(w, row);
  const berth__x to = berth__attention_at(k, &w->a->out, of->batch, of->head, of->row);
  const berth__x divisor = berth__attention_divisor(l, k, w->a, of->head, j.total, j.largest);
  if (word > 1) berth__l_word_begin(l, k);
  for (uint32_t e = 0; e < word; e++) {
    const berth__x column = berth__x_affine(k, first, 1, e);
    const berth__x place = berth__x_add(k, to, berth__x_affine(k, column, w->a->out.stride, 0));
    if (word > 1) berth__l_word_lane(k, e, place);
    berth__l_store(l, k, 0, place, berth__x_div(k, few_joined_sum(w, &j, row, column), divisor));
  }
  if (word > 1) berth__l_word_end(l, k, berth__x_add(k, to, first));
}

static void few_store_record(const few_work *w, const berth__attention_row *of, berth__x row, berth__x column) {
  berth__kernel *k = w->k;
  const uint32_t scratch = berth__l_scratch(k, BERTH_F32);
  const few_joined j = few_join(w, row);
  const berth__x to = berth__attention_record(k, w->a, w->b.f, of->batch, of->head, of->row, w->b.chunk);
  berth__x_if(k, berth__x_eq(k, column, berth__x_i32(k, 0)));
  berth__x_store(k, scratch, berth__x_affine(k, to, 1, BERTH__ATTENTION_LARGEST), j.largest);
  berth__x_store(k, scratch, berth__x_affine(k, to, 1, BERTH__ATTENTION_TOTAL), j.total);
  berth__x_end(k);
  berth__x_store(k, scratch, berth__x_add(k, to, berth__x_affine(k, column, 1, BERTH__ATTENTION_SUMS)),
                 few_joined_sum(w, &j, row, column));
}

/* Threads take words of the rows' results, or elements of their records, in turn. */
static void few_store(const few_work *w) {
  berth__kernel *k = w->k;
  const bool is_all = w->b.f->chunks == 1;
  const uint32_t word = is_all ? berth__attention_word(w->b.l, w->a) : 1;
  const int64_t across = w->a->v.size / word, count = across * w->rows, threads = w->b.f->threads;
  const berth__x round = berth__x_loop_n(k, (count + threads - 1) / threads);
  const berth__x n = berth__x_add(k, berth__x_affine(k, round, threads, 0), w->b.thread);
  berth__x_if(k, berth__x_lt(k, n, berth__x_i32(k, count)));
  const berth__x row = berth__x_div(k, n, berth__x_i32(k, across));
  const berth__x first = berth__x_affine(k, berth__x_rem(k, n, berth__x_i32(k, across)), word, 0);
  const berth__attention_row of = berth__attention_block_row(&w->b, row);
  if (is_all)
    few_store_result(w, &of, row, first, word);
  else
    few_store_record(w, &of, row, first);
  berth__x_end(k);
  berth__x_end(k);
}

/* ---- All of it ---- */

static void few_open(few_work *w) {
  berth__kernel *k = w->k;
  const berth__few_side *key = &w->f.key, *value = &w->f.value;
  w->warp = berth__x_div(k, w->b.thread, berth__x_i32(k, LANES));
  w->lane = berth__x_rem(k, w->b.thread, berth__x_i32(k, LANES));
  const berth__x first = berth__x_affine(k, w->warp, w->f.keys, 0);
  w->own_key = berth__x_add(k, first, berth__x_div(k, w->lane, berth__x_i32(k, key->lanes)));
  w->part = berth__x_rem(k, w->lane, berth__x_i32(k, key->lanes));
  w->own_value = berth__x_add(k, first, berth__x_div(k, w->lane, berth__x_i32(k, value->lanes)));
  w->column = berth__x_affine(k, berth__x_rem(k, w->lane, berth__x_i32(k, value->lanes)), value->wide, 0);
  w->weights = berth__kernel_shared(k, BERTH__NUM_F32, 2 * w->warps * w->f.keys * w->rows);
  w->heads = berth__kernel_shared(k, BERTH__NUM_F32, 2 * w->warps * w->rows);
  w->sum_array = berth__kernel_shared(k, BERTH__NUM_F32, w->warps * w->rows * (uint32_t)w->a->v.size);
  w->slot = berth__x_variable(k, berth__x_i32(k, 0));
  for (uint32_t r = 0; r < w->rows; r++) {
    w->largest[r] = berth__x_variable(k, berth__x_f32(k, -INFINITY));
    w->total[r] = berth__x_variable(k, berth__x_f32(k, 0));
  }
  for (uint32_t i = 0; i < w->rows * value->fetches * value->wide; i++)
    w->sums[i] = berth__x_variable(k, berth__x_f32(k, 0));
}

berth_status berth__attention_few(berth__lowering *l, const berth__attention *a, const berth__attention_form *form,
                                  berth_error *err) {
  few_work w = {.b = berth__attention_begin(l, a, form, "few"), .a = a, .f = form->few};
  w.k = w.b.k;
  w.b.a = a;
  if (w.k == NULL) return berth__l_end(l, w.k, err);
  w.k->resident = 1; /* there are few workgroups, each of which has all it needs under way */
  w.rows = form->queries;
  w.warps = form->threads / LANES;
  few_open(&w);
  few_see_keys(&w);
  few_share_sums(&w);
  few_store(&w);
  BERTH__TRY(berth__l_end(l, w.k, err));
  return form->chunks > 1 ? berth__attention_merge(l, a, form, err) : BERTH_OK;
}
