/* attention on a real GPU. A workgroup has a block of queries and goes over the keys block by block:
 *
 * the block of keys is loaded into shared memory, from which each thread computes some of the scores;
 * a few threads per row turn the scores into weights relative to their maximum;
 * each thread accumulates some rows and columns of weights times values in its registers.
 *
 * If heads share their keys and there are few queries (a decoding step), the queries of all heads that share keys are
 * rows of one block, so that keys and values are read once. Several workgroups share the keys of a block, each with one
 * chunk, and attention_merge.c combines their results. */
#include <math.h>

#include "kernel/lower/attention.h"
#include "kernel/lower/words.h"

#define LANES BERTH__ATTENTION_LANES
#define PARTS BERTH__ATTENTION_PARTS
#define MOST_SPANS BERTH__ATTENTION_SPANS
#define MOST_ROWS 8u /* rows of the result per thread */
#define VALUES_AT_ONCE 8

typedef struct work {
  berth__attention_block b;
  berth__lowering *l;
  const berth__attention *a;
  berth__kernel *k;
  const berth__attention_form *f;
  uint32_t query_array, key_array, score_array, part_array, fade_array; /* shared */
  berth__x lane, line;                                                  /* thread = line * (threads of a line) + lane */
  berth__x largest, total;              /* variables of a thread that has a part of a row of scores */
  berth__x sums[MOST_ROWS][MOST_SPANS]; /* variables */
  uint32_t rows, spans;                 /* of the result, per thread */
  uint32_t together;                    /* adjacent ones of these columns: the columns of a word of the result */
} work;

/* ---- Loads to shared memory: elements n, n + threads, ... of a block of rows of `size` ---- */

/* The number of rounds is constant, and they are unrolled, so that all loads of a thread are in flight at once. The
 * code that follows, up to two ends, is for element n. */
static berth__x open_elements(const work *w, int64_t count) {
  berth__kernel *k = w->k;
  const int64_t threads = w->f->threads, rounds = (count + threads - 1) / threads;
  const berth__x round = berth__x_loop_unrolled(k, berth__x_i32(k, 0), berth__x_i32(k, rounds), 1);
  const berth__x n = berth__x_add(k, berth__x_affine(k, round, threads, 0), w->b.thread);
  berth__x_if(k, berth__x_lt(k, n, berth__x_i32(k, count)));
  return n;
}

static void close_elements(const work *w) {
  berth__x_end(w->k);
  berth__x_end(w->k);
}

static void take_queries(const work *w) {
  berth__kernel *k = w->k;
  const int64_t size = w->a->q.size, count = size * w->f->queries;
  const berth__x n = open_elements(w, count);
  const berth__x in_block = berth__x_div(k, n, berth__x_i32(k, size)), i = berth__x_rem(k, n, berth__x_i32(k, size));
  const berth__attention_row row = berth__attention_block_row(&w->b, in_block);
  const berth__x at = berth__attention_at(k, &w->a->q, row.batch, row.head, row.row);
  berth__x_shared_store(
      k, w->query_array, n,
      berth__l_load(w->l, k, BERTH__ATTENTION_Q, berth__x_add(k, at, berth__x_affine(k, i, w->a->q.stride, 0))));
  close_elements(w);
}

static void take_keys(const work *w, berth__x from) {
  berth__kernel *k = w->k;
  const int64_t size = w->a->k.size, count = size * w->f->keys;
  const berth__x n = open_elements(w, count);
  const berth__x in_block = berth__x_div(k, n, berth__x_i32(k, size)), i = berth__x_rem(k, n, berth__x_i32(k, size));
  const berth__x key = berth__x_min(k, berth__x_add(k, from, in_block), berth__x_i32(k, w->a->k.length - 1));
  const berth__x at = berth__attention_at(k, &w->a->k, w->b.batch, berth__attention_block_kv_head(&w->b), key);
  berth__x_shared_store(k, w->key_array, berth__x_add(k, berth__x_affine(k, in_block, size + 1, 0), i),
                        berth__attention_load(w->l, k, BERTH__ATTENTION_K,
                                              berth__x_add(k, at, berth__x_affine(k, i, w->a->k.stride, 0))));
  close_elements(w);
}

/* ---- Scores ---- */

static berth__x score_at(const work *w, berth__x row, berth__x key) {
  return berth__x_add(w->k, berth__x_affine(w->k, row, w->f->keys + 1, 0), key);
}

/* Rows that a thread has in any of the steps: line, line + row_groups, ... Threads are idle if blocks have fewer
 * rows. */
static berth__x own_row(const work *w, uint32_t i) {
  return berth__x_affine(w->k, w->line, 1, (int64_t)i * w->f->row_groups);
}

static void make_scores(const work *w, berth__x from) {
  berth__kernel *k = w->k;
  const int64_t size = w->a->q.size;
  berth__x sums[MOST_ROWS];
  const berth__x count = berth__x_i32(k, w->f->queries), last = berth__x_i32(k, w->f->queries - 1);
  for (uint32_t r = 0; r < w->rows; r++) sums[r] = berth__x_variable(k, berth__x_f32(k, 0));
  const berth__x i = berth__x_loop_n(k, size);
  const berth__x factor =
      berth__x_shared_load(k, w->key_array, berth__x_add(k, berth__x_affine(k, w->lane, size + 1, 0), i));
  for (uint32_t r = 0; r < w->rows; r++) {
    const berth__x row = berth__x_min(k, own_row(w, r), last);
    const berth__x query =
        berth__x_shared_load(k, w->query_array, berth__x_add(k, berth__x_affine(k, row, size, 0), i));
    berth__x_set(k, sums[r], berth__x3(k, BERTH__INST_fma, query, factor, berth__x_get(k, sums[r])));
  }
  berth__x_end(k);
  const berth__x key = berth__x_add(k, from, w->lane);
  for (uint32_t r = 0; r < w->rows; r++) {
    berth__x_if(k, berth__x_lt(k, own_row(w, r), count));
    const berth__x score = berth__attention_block_score(&w->b, own_row(w, r), key, berth__x_get(k, sums[r]));
    berth__x_shared_store(k, w->score_array, score_at(w, own_row(w, r), w->lane), score);
    berth__x_end(k);
  }
}

/* ---- Weights: thread t of the first queries * PARTS has part t % PARTS of row t / PARTS ---- */

static berth__x part_row(const work *w) { return berth__x_div(w->k, w->b.thread, berth__x_i32(w->k, PARTS)); }

static berth__x lower_attention_tiled_part_of(const work *w) {
  return berth__x_rem(w->k, w->b.thread, berth__x_i32(w->k, PARTS));
}

static berth__x part_slot(const work *w, berth__x row, berth__x part) {
  return berth__x_add(w->k, berth__x_affine(w->k, row, PARTS, 0), part);
}

static berth__x part_score(const work *w, uint32_t i) {
  return score_at(w, part_row(w), berth__x_affine(w->k, lower_attention_tiled_part_of(w), 1, (int64_t)i * PARTS));
}

static void open_parts(const work *w) {
  berth__x_if(w->k, berth__x_lt(w->k, w->b.thread, berth__x_i32(w->k, (int64_t)w->f->queries * PARTS)));
}

static void find_largest(const work *w) {
  berth__kernel *k = w->k;
  berth__x largest = berth__x_f32(k, -INFINITY);
  open_parts(w);
  for (uint32_t i = 0; i < w->f->keys / PARTS; i++)
    largest = berth__attention_larger(k, largest, berth__x_shared_load(k, w->score_array, part_score(w, i)));
  berth__x_shared_store(k, w->part_array, part_slot(w, part_row(w), lower_attention_tiled_part_of(w)), largest);
  berth__x_end(k);
}

static void make_weights(const work *w) {
  berth__kernel *k = w->k;
  open_parts(w);
  const berth__x before = berth__x_get(k, w->largest), row = part_row(w);
  berth__x after = before, sum = berth__x_f32(k, 0);
  for (uint32_t i = 0; i < PARTS; i++)
    after = berth__attention_larger(k, after,
                                    berth__x_shared_load(k, w->part_array, part_slot(w, row, berth__x_i32(k, i))));
  const berth__x fade = berth__attention_weight(k, before, after);
  for (uint32_t i = 0; i < w->f->keys / PARTS; i++) {
    const berth__x weight =
        berth__attention_weight(k, berth__x_shared_load(k, w->score_array, part_score(w, i)), after);
    berth__x_shared_store(k, w->score_array, part_score(w, i), weight);
    sum = berth__x_add(k, sum, weight);
  }
  berth__x_set(k, w->total, berth__x_add(k, berth__attention_fade(k, berth__x_get(k, w->total), fade), sum));
  berth__x_set(k, w->largest, after);
  berth__x_if(k, berth__x_eq(k, lower_attention_tiled_part_of(w), berth__x_i32(k, 0)));
  berth__x_shared_store(k, w->fade_array, row, fade);
  berth__x_end(k);
  berth__x_end(k);
}

/* ---- Values ---- */

/* Neighbouring threads have neighbouring columns, or words of columns. */
static berth__x own_column(const work *w, uint32_t s) {
  const uint32_t in_word = s % w->together;
  return berth__x_affine(w->k, w->lane, w->together, (int64_t)(s - in_word) * LANES + in_word);
}

static void fade_sums(const work *w) {
  berth__kernel *k = w->k;
  const berth__x last = berth__x_i32(k, w->f->queries - 1);
  for (uint32_t r = 0; r < w->rows; r++) {
    const berth__x fade = berth__x_shared_load(k, w->fade_array, berth__x_min(k, own_row(w, r), last));
    for (uint32_t s = 0; s < w->spans; s++)
      berth__x_set(k, w->sums[r][s], berth__attention_fade(k, berth__x_get(k, w->sums[r][s]), fade));
  }
}

static void lower_attention_tiled_add_values(const work *w, berth__x from, berth__x until) {
  berth__kernel *k = w->k;
  const berth__x zero = berth__x_f32(k, 0), end = berth__x_i32(k, w->a->v.size - 1);
  const berth__x last = berth__x_i32(k, w->f->queries - 1);
  berth__x values[MOST_SPANS];
  fade_sums(w);
  /* Eight keys at a time, so that their values are in flight at once. Keys past the last one have weight 0. */
  const berth__x past = berth__x_min(k, berth__x_affine(k, from, 1, w->f->keys), until);
  const berth__x eight = berth__x_loop(k, from, past, VALUES_AT_ONCE);
  const berth__x next = berth__x_loop_unrolled(k, berth__x_i32(k, 0), berth__x_i32(k, VALUES_AT_ONCE), 1);
  const berth__x of_block = berth__x_add(k, berth__x_sub(k, eight, from), next);
  const berth__x key = berth__x_min(k, berth__x_add(k, eight, next), berth__x_i32(k, w->a->v.length - 1));
  const berth__x at = berth__attention_at(k, &w->a->v, w->b.batch, berth__attention_block_kv_head(&w->b), key);
  for (uint32_t s = 0; s < w->spans; s++) {
    const berth__x column = berth__x_min(k, own_column(w, s), end);
    values[s] = berth__attention_load(w->l, k, BERTH__ATTENTION_V,
                                      berth__x_add(k, at, berth__x_affine(k, column, w->a->v.stride, 0)));
  }
  for (uint32_t r = 0; r < w->rows; r++) {
    const berth__x row = berth__x_min(k, own_row(w, r), last);
    const berth__x weight = berth__x_shared_load(k, w->score_array, score_at(w, row, of_block));
    const berth__x is_none = berth__x_eq(k, weight, zero);
    for (uint32_t s = 0; s < w->spans; s++) {
      const berth__x sum = berth__x_get(k, w->sums[r][s]);
      const berth__x added = berth__x3(k, BERTH__INST_fma, weight, values[s], sum);
      berth__x_set(k, w->sums[r][s], berth__x_select(k, is_none, sum, added));
    }
  }
  berth__x_end(k);
  berth__x_end(k);
}

static void lower_attention_tiled_see_keys(const work *w) {
  berth__kernel *k = w->k;
  berth__x first, last;
  berth__attention_block_range(&w->b, &first, &last);
  const berth__x from = berth__x_loop(k, first, last, w->f->keys);
  take_keys(w, from);
  berth__x_barrier(k);
  make_scores(w, from);
  berth__x_barrier(k);
  find_largest(w);
  berth__x_barrier(k);
  make_weights(w);
  berth__x_barrier(k);
  lower_attention_tiled_add_values(w, from, berth__attention_held(w->k, w->a, w->b.keys));
  berth__x_end(k);
}

/* Folds the partial totals like the maxima, and the maxima with their rescaling factors. */
static void share_totals(const work *w) {
  berth__kernel *k = w->k;
  berth__x_barrier(k);
  open_parts(w);
  berth__x_shared_store(k, w->part_array, part_slot(w, part_row(w), lower_attention_tiled_part_of(w)),
                        berth__x_get(k, w->total));
  berth__x_if(k, berth__x_eq(k, lower_attention_tiled_part_of(w), berth__x_i32(k, 0)));
  berth__x_shared_store(k, w->fade_array, part_row(w), berth__x_get(k, w->largest));
  berth__x_end(k);
  berth__x_end(k);
  berth__x_barrier(k);
}

/* A row of the result, or of a record if other workgroups have further keys of it. */
static void store_columns(const work *w, uint32_t r, const berth__attention_row *row, berth__x divisor) {
  berth__kernel *k = w->k;
  const bool is_all = w->f->chunks == 1;
  const berth__x to = is_all ? berth__attention_at(k, &w->a->out, row->batch, row->head, row->row)
                             : berth__attention_record(k, w->a, w->f, row->batch, row->head, row->row, w->b.chunk);
  for (uint32_t s = 0; s < w->spans; s += w->together) {
    const berth__x first = own_column(w, s);
    berth__x_if(k, berth__x_lt(k, first, berth__x_i32(k, w->a->v.size)));
    if (w->together > 1) berth__l_word_begin(w->l, k);
    for (uint32_t f = 0; f < w->together; f++) {
      const berth__x column = own_column(w, s + f), sum = berth__x_get(k, w->sums[r][s + f]);
      const berth__x place = berth__x_add(k, to, berth__x_affine(k, column, w->a->out.stride, 0));
      if (w->together > 1) berth__l_word_lane(k, f, place);
      if (is_all)
        berth__l_store(w->l, k, 0, place, berth__x_div(k, sum, divisor));
      else
        berth__x_store(k, berth__l_scratch(k, BERTH_F32),
                       berth__x_add(k, to, berth__x_affine(k, column, 1, BERTH__ATTENTION_SUMS)), sum);
    }
    if (w->together > 1) berth__l_word_end(w->l, k, berth__x_add(k, to, first));
    berth__x_end(k);
  }
}

static void store_head(const work *w, const berth__attention_row *row, berth__x in_block, berth__x total) {
  berth__kernel *k = w->k;
  const uint32_t scratch = berth__l_scratch(k, BERTH_F32);
  const berth__x to = berth__attention_record(k, w->a, w->f, row->batch, row->head, row->row, w->b.chunk);
  berth__x_if(k, berth__x_eq(k, w->lane, berth__x_i32(k, 0)));
  berth__x_store(k, scratch, berth__x_affine(k, to, 1, BERTH__ATTENTION_LARGEST),
                 berth__x_shared_load(k, w->fade_array, in_block));
  berth__x_store(k, scratch, berth__x_affine(k, to, 1, BERTH__ATTENTION_TOTAL), total);
  berth__x_end(k);
}

static void lower_attention_tiled_store_row(const work *w, uint32_t r) {
  berth__kernel *k = w->k;
  const berth__x in_block = own_row(w, r);
  berth__x total = berth__x_f32(k, 0);
  berth__x_if(k, berth__attention_block_has(&w->b, in_block));
  const berth__attention_row row = berth__attention_block_row(&w->b, in_block);
  for (uint32_t i = 0; i < PARTS; i++)
    total = berth__x_add(k, total, berth__x_shared_load(k, w->part_array, part_slot(w, in_block, berth__x_i32(k, i))));
  if (w->f->chunks > 1) store_head(w, &row, in_block, total);
  const berth__x largest = berth__x_shared_load(k, w->fade_array, in_block);
  store_columns(w, r, &row, berth__attention_divisor(w->l, k, w->a, row.head, total, largest));
  berth__x_end(k);
}

/* ---- All of it ---- */

static void open_arrays(work *w) {
  const uint32_t size = (uint32_t)w->a->q.size, queries = w->f->queries;
  w->query_array = berth__kernel_shared(w->k, BERTH__NUM_F32, queries * size);
  w->key_array = berth__kernel_shared(w->k, BERTH__NUM_F32, w->f->keys * (size + 1));
  w->score_array = berth__kernel_shared(w->k, BERTH__NUM_F32, queries * (w->f->keys + 1));
  w->part_array = berth__kernel_shared(w->k, BERTH__NUM_F32, queries * PARTS);
  w->fade_array = berth__kernel_shared(w->k, BERTH__NUM_F32, queries);
  w->largest = berth__x_variable(w->k, berth__x_f32(w->k, -INFINITY));
  w->total = berth__x_variable(w->k, berth__x_f32(w->k, 0));
  w->rows = (queries + w->f->row_groups - 1) / w->f->row_groups;
  w->spans = ((uint32_t)w->a->v.size + LANES - 1) / LANES;
  const uint32_t word = w->f->chunks == 1 ? berth__attention_word(w->l, w->a) : 1;
  w->together = w->spans % word == 0 ? word : 1;
  for (uint32_t r = 0; r < w->rows; r++)
    for (uint32_t s = 0; s < w->spans; s++) w->sums[r][s] = berth__x_variable(w->k, berth__x_f32(w->k, 0));
}

berth_status berth__attention_tiled(berth__lowering *l, const berth__attention *a, const berth__attention_form *form,
                                    berth_error *err) {
  work w = {.l = l, .a = a, .f = form, .b = berth__attention_begin(l, a, form, "tiled")};
  w.k = w.b.k;
  if (w.k == NULL) return berth__l_end(l, w.k, err);
  w.lane = berth__x_rem(w.k, w.b.thread, berth__x_i32(w.k, LANES));
  w.line = berth__x_div(w.k, w.b.thread, berth__x_i32(w.k, LANES));
  open_arrays(&w);
  take_queries(&w);
  lower_attention_tiled_see_keys(&w);
  share_totals(&w);
  for (uint32_t r = 0; r < w.rows; r++) lower_attention_tiled_store_row(&w, r);
  BERTH__TRY(berth__l_end(l, w.k, err));
  return form->chunks > 1 ? berth__attention_merge(l, a, form, err) : BERTH_OK;
}
