/* attention_grad in blocks: a workgroup holds some queries and some keys in tiles, and computes the scores between them
 * in registers. There are two kernels, so that every result has one writer:
 *
 * queries: a block of queries goes over the keys twice. The first pass computes the divisor of the weights, as the log
 * of the sum, and the sum of weights times their gradients, which stay in scratch; the second computes dq. keys: a
 * block of keys goes over the queries that see it, and accumulates dk and dv.
 *
 * Products are those of tiles: by matrix units, or expanded. Weights and slopes are rounded like the operands that they
 * are multiplied with. As in attention_matrix.c, a NaN or infinity counts even if its weight is 0. */
#include <math.h>

#include "kernel/lower/attention.h"
#include "kernel/lower/words.h"

/* Per query, in scratch. The log of a query that sees no key is infinity, which makes its weights 0. */
enum {
  RECORD_LOG,
  RECORD_SUM,
  RECORD
};

typedef struct grad_work {
  berth__attention_block b;
  const berth__attention_grad *g;
  berth__kernel *k;
  berth__attention_side q, dy, keys, values;
  berth__kernel_tile weights, slopes; /* queries by keys */
  bool is_copied;                     /* asynchronous copies, 16 bytes at a time */
  uint32_t scores, products;          /* sums: queries by keys, and dy by values */
  uint32_t result, second;            /* sums: dq, or dk and dv */
  uint32_t scratch, lines;            /* lines: rows of scores per thread */
  uint32_t log, sum;                  /* local, for these rows: see RECORD */
  uint32_t largest, total, fade, folded;
} grad_work;

/* ---- The form ---- */

#define ROWS_A_WARP 16u
#define LEAST_ROWS 9
#define MOST_SIZE 128u
#define MOST_SUMS 144u   /* most sums of all kinds that fit in a thread's registers */
#define ENOUGH_GROUPS 48 /* fewest blocks of this many rows for which larger blocks pay off */

static berth__tile_desc grad_side_desc(const berth__attention_form *f, uint32_t rows, int64_t size,
                                       berth__storage storage, uint32_t slots) {
  return (berth__tile_desc){.type = BERTH__NUM_F32,
                            .kind = f->kind,
                            .storage = storage,
                            .lines = rows,
                            .depth = berth__attention_padded(size),
                            .slots = slots,
                            .is_deep = true};
}

/* Of the larger kernel, the one for keys: f32 may be held as f32, unless its storage is known to differ. */
static uint32_t grad_bytes(const berth__attention_grad *g, const berth__storage *storage,
                           const berth__attention_form *f) {
  static const uint32_t held[] = {BERTH__ATTENTION_Q, BERTH__ATTENTION_K, BERTH__ATTENTION_V, BERTH__ATTENTION_DY};
  const bool is_copied = f->kind != BERTH_COMPUTE_F32;
  const berth__storage narrow = berth__compute_storage(f->kind);
  berth__storage wide = narrow;
  for (size_t i = 0; i < sizeof held / sizeof *held; i++)
    if ((storage != NULL ? storage[held[i]] : g->a.call->in[held[i]].type) == BERTH_F32) wide = BERTH_F32;
  const int64_t sizes[2] = {g->a.q.size, g->a.v.size};
  const berth__tile_desc between = grad_side_desc(f, f->queries, f->keys, narrow, 1);
  uint32_t bytes = 2 * berth__tile_slot_bytes(&between);
  for (int i = 0; i < 2; i++) {
    const berth__tile_desc rows = grad_side_desc(f, f->queries, sizes[i], wide, 1);
    const berth__tile_desc keys = grad_side_desc(f, f->keys, sizes[i], wide, 1);
    const uint32_t of_rows = berth__tile_slot_bytes(&rows), of_keys = berth__tile_slot_bytes(&keys);
    const uint32_t more = of_rows > of_keys ? of_rows : of_keys;
    bytes += of_rows + of_keys + (is_copied ? more : 0);
  }
  /* when expanded, rows are folded through shared memory */
  return bytes + (is_copied ? 0 : 4 * f->queries * BERTH__ROW_THREADS);
}

/* Warps have whole pieces of 16 x 16 of all sums. */
static bool grad_form_fits(const berth__attention_grad *g, const berth__storage *storage,
                           const berth__attention_form *f, const berth__kernel_limits *limits) {
  const uint32_t size = berth__attention_padded(g->a.q.size), columns = berth__attention_padded(g->a.v.size);
  const uint32_t beside = f->queries / f->keys;
  const uint32_t sums = (f->keys * (size + columns) + 2 * f->queries * f->keys) / f->threads;
  const uint32_t most = f->kind == BERTH_COMPUTE_F32 ? limits->shared_bytes : limits->tile_bytes;
  return f->threads <= limits->group_size && sums <= MOST_SUMS && size / ROWS_A_WARP % beside == 0 &&
         columns / ROWS_A_WARP % beside == 0 && grad_bytes(g, storage, f) <= most;
}

/* The largest blocks that there is room for, and that leave enough workgroups. */
bool berth__attention_grad_form(const berth__attention_grad *g, const berth__storage *storage,
                                const berth__kernel_limits *limits, berth__attention_form *out) {
  static const struct { uint32_t warps, keys; } blocks[] = {{8, 64}, {4, 64}, {2, 32}, {1, 16}};
  const berth__attention *a = &g->a;
  const int64_t most = MOST_SIZE, rows = a->q.length;
  if (!limits->shares_well || rows < LEAST_ROWS || a->q.batch == 0 || a->k.length == 0 || a->q.size == 0 ||
      a->v.size == 0 || a->q.size > most || a->v.size > most)
    return false;
  berth__attention_form f = {.kind = berth__attention_kind(a, limits), .rows = rows, .heads = a->q.heads, .chunks = 1};
  for (size_t i = a->q.size + a->v.size > most ? 0 : 1; i < sizeof blocks / sizeof *blocks; i++) {
    f.keys = blocks[i].keys;
    f.queries = ROWS_A_WARP * blocks[i].warps;
    f.threads = 32 * blocks[i].warps;
    f.row_groups = f.threads / BERTH__ROW_THREADS;
    f.blocks = (rows + f.queries - 1) / f.queries;
    f.chunk_keys = (a->k.length + f.keys - 1) / f.keys * f.keys;
    const bool is_last = i + 1 == sizeof blocks / sizeof *blocks;
    const bool is_much = rows <= f.queries / 2 || a->q.batch * f.heads * rows < (int64_t)ENOUGH_GROUPS * f.queries;
    if ((is_last || !is_much) && grad_form_fits(g, storage, &f, limits)) {
      *out = f;
      return true;
    }
  }
  return false;
}

/* ---- Tiles and sums ---- */

static void grad_open_side(grad_work *w, berth__attention_side *side, uint32_t rows, uint32_t slots) {
  side->storage = w->is_copied ? berth__l_storage_of(w->b.l, side->operand) : berth__compute_storage(w->b.f->kind);
  const berth__tile_desc desc =
      grad_side_desc(w->b.f, rows, side->heads->size, side->storage, w->is_copied ? slots : 1);
  side->tile = berth__kernel_tile_of(w->k, &desc);
}

/* The streamed side has two slots. */
static void grad_open_tiles(grad_work *w, bool is_keys) {
  const berth__attention_form *f = w->b.f;
  w->q = (berth__attention_side){.operand = BERTH__ATTENTION_Q, .heads = &w->g->a.q};
  w->dy = (berth__attention_side){.operand = BERTH__ATTENTION_DY, .heads = &w->g->dy};
  w->keys = (berth__attention_side){.operand = BERTH__ATTENTION_K, .heads = &w->g->a.k};
  w->values = (berth__attention_side){.operand = BERTH__ATTENTION_V, .heads = &w->g->a.v};
  w->is_copied = f->kind != BERTH_COMPUTE_F32 && berth__attention_can_copy(&w->b, &w->q) &&
                 berth__attention_can_copy(&w->b, &w->dy) && berth__attention_can_copy(&w->b, &w->keys) &&
                 berth__attention_can_copy(&w->b, &w->values);
  grad_open_side(w, &w->q, f->queries, is_keys ? 2 : 1);
  grad_open_side(w, &w->dy, f->queries, is_keys ? 2 : 1);
  grad_open_side(w, &w->keys, f->keys, is_keys ? 1 : 2);
  grad_open_side(w, &w->values, f->keys, is_keys ? 1 : 2);
  const berth__tile_desc between = grad_side_desc(f, f->queries, f->keys, berth__compute_storage(f->kind), 1);
  w->slopes = berth__kernel_tile_of(w->k, &between);
  if (is_keys) w->weights = berth__kernel_tile_of(w->k, &between);
}

/* The transposed view of a tile: rows become the depth. */
static berth__kernel_tile grad_turned(berth__kernel_tile tile) {
  const uint32_t lines = tile.lines;
  tile.lines = tile.depth;
  tile.depth = lines;
  tile.is_deep = !tile.is_deep;
  return tile;
}

static uint32_t grad_open_sum(const grad_work *w, const berth__kernel_tile *left, const berth__kernel_tile *right,
                              uint32_t together, bool has_rows) {
  const uint32_t rows = w->b.f->row_groups < left->lines ? w->b.f->row_groups : left->lines;
  const berth__kernel_sums sums = {.type = BERTH__NUM_F32,
                                   .kind = w->b.f->kind,
                                   .left = *left,
                                   .right = *right,
                                   .together = together,
                                   .group_rows = rows,
                                   .has_rows = has_rows};
  return berth__kernel_sums_of(w->k, &sums);
}

static uint32_t grad_together(const grad_work *w, uint32_t out, const berth__heads *h) {
  return berth__attention_word_of(w->b.l, out, h) == 2 ? 2 : 1;
}

static void grad_open_sums(grad_work *w, bool is_keys) {
  const berth__kernel_tile turned_q = grad_turned(w->q.tile), turned_dy = grad_turned(w->dy.tile);
  const berth__kernel_tile turned_keys = grad_turned(w->keys.tile);
  w->scores = grad_open_sum(w, &w->q.tile, &w->keys.tile, 2, true);
  w->products = grad_open_sum(w, &w->dy.tile, &w->values.tile, 2, true);
  if (is_keys) {
    const berth__kernel_tile by_keys = grad_turned(w->slopes), weights = grad_turned(w->weights);
    w->result = grad_open_sum(w, &by_keys, &turned_q, grad_together(w, 1, &w->g->dk), false);
    w->second = grad_open_sum(w, &weights, &turned_dy, grad_together(w, 2, &w->g->dv), false);
  } else {
    w->result = grad_open_sum(w, &w->slopes, &turned_keys, grad_together(w, 0, &w->g->a.out), true);
  }
}

static void grad_open(grad_work *w, bool is_keys) {
  w->scratch = berth__l_scratch(w->k, BERTH_F32);
  w->lines = w->b.f->queries * BERTH__ROW_THREADS / w->b.f->threads;
  grad_open_tiles(w, is_keys);
  grad_open_sums(w, is_keys);
  w->log = berth__kernel_local(w->k, BERTH__NUM_F32, w->lines);
  w->sum = berth__kernel_local(w->k, BERTH__NUM_F32, w->lines);
}

/* ---- Streamed blocks ---- */

static void grad_pass(const grad_work *w, berth__x first, berth__x last, uint32_t step, berth__attention_see *take,
                      berth__attention_see *see) {
  const berth__attention_passing by = {
      .user = w, .take = take, .see = see, .is_copied = w->is_copied, .first = first, .last = last, .step = step};
  berth__x_barrier(w->k); /* all threads have finished with the previous block */
  berth__attention_pass(w->k, &by);
}

static void grad_clear(const grad_work *w, uint32_t sums) {
  berth__kernel *k = w->k;
  const berth__x each = berth__x_each(k, sums);
  for (uint32_t i = 0; i < k->sums[sums].together; i++) berth__x_sum_set(k, each, i, berth__x_f32(k, 0));
  berth__x_end(k);
}

static void grad_multiply(const grad_work *w, berth__x slot) {
  grad_clear(w, w->scores);
  grad_clear(w, w->products);
  berth__x_multiply(w->k, w->scores, slot);
  berth__x_multiply(w->k, w->products, slot);
}

/* Whether all queries of the block see all keys from there on. */
static berth__x grad_sees_all(const grad_work *w, berth__x from) {
  berth__kernel *k = w->k;
  const berth__attention *a = &w->g->a;
  const int64_t rows = w->b.f->queries;
  berth__x first, last, unused;
  const berth__x end = berth__x_affine(k, w->b.first_row, 1, rows - 1);
  berth__attention_range_of(k, a, w->b.keys, w->b.first_row, &unused, &last);
  berth__attention_range_of(k, a, w->b.keys, end, &first, &unused);
  const berth__x are_rows = berth__x_lt(k, end, berth__x_i32(k, a->q.length));
  const berth__x is_in =
      berth__x_and(k, berth__x_le(k, first, from), berth__x_le(k, berth__x_affine(k, from, 1, w->b.f->keys), last));
  return berth__x_and(k, are_rows, is_in);
}

/* The position of a cell in the sums, and how to process it. */
typedef struct grad_cell {
  berth__x each, row, column, line;
  bool is_whole; /* nothing is masked */
} grad_cell;
typedef void grad_turn(const grad_work *w, const grad_cell *c, berth__x from);

static void grad_go_through(const grad_work *w, berth__x from, bool is_whole, grad_turn *turn) {
  berth__kernel *k = w->k;
  grad_cell c = {.each = berth__x_each(k, w->scores), .is_whole = is_whole};
  c.row = berth__x_sum_row(k, c.each);
  c.column = berth__x_sum_column(k, c.each);
  c.line = berth__x_sum_line(k, c.each);
  turn(w, &c, from);
  berth__x_end(k);
}

/* Most blocks are fully visible; that is checked once per block, not once per score. */
static void grad_each_score(const grad_work *w, berth__x from, grad_turn *turn) {
  const bool is_plain = w->g->a.mask == NULL && w->g->a.bias == NULL;
  if (is_plain) {
    berth__x_if(w->k, grad_sees_all(w, from));
    grad_go_through(w, from, true, turn);
    berth__x_else(w->k);
  }
  grad_go_through(w, from, false, turn);
  if (is_plain) berth__x_end(w->k);
}

static berth__x grad_score(const grad_work *w, const grad_cell *c, berth__x key, berth__x sum) {
  berth__kernel *k = w->k;
  if (!c->is_whole) {
    const berth__x score = berth__attention_block_score(&w->b, c->row, key, sum);
    return berth__x_select(k, berth__attention_block_has(&w->b, c->row), score, berth__x_f32(k, -INFINITY));
  }
  return berth__attention_scaled(k, &w->g->a, sum);
}

/* ---- The divisor of the weights ---- */

static void grad_make_scores(const grad_work *w, const grad_cell *c, berth__x from) {
  berth__kernel *k = w->k;
  for (uint32_t i = 0; i < 2; i++) {
    const berth__x key = berth__x_add(k, from, berth__x_affine(k, c->column, 1, i));
    berth__x_sum_set(k, c->each, i, grad_score(w, c, key, berth__x_sum(k, c->each, i)));
  }
}

/* Replaces scores by weights relative to the maximum so far, and dp by weights times dp. */
static void grad_weigh(const grad_work *w) {
  berth__kernel *k = w->k;
  const berth__x each = berth__x_each(k, w->scores);
  const berth__x largest = berth__x_local_load(k, w->largest, berth__x_sum_line(k, each));
  for (uint32_t i = 0; i < 2; i++) {
    const berth__x weight = berth__attention_weight(k, berth__x_sum(k, each, i), largest);
    const berth__x dp = berth__x_sum_beside(k, each, w->products, i);
    berth__x_sum_set(k, each, i, weight);
    berth__x_sum_set_beside(k, each, w->products, i, berth__attention_fade(k, dp, weight));
  }
  berth__x_end(k);
}

static void grad_add_folded(const grad_work *w, uint32_t sums, uint32_t to) {
  berth__kernel *k = w->k;
  berth__x_row_total(k, sums, w->folded);
  for (uint32_t i = 0; i < w->lines; i++) {
    const berth__x line = berth__x_i32(k, i), fade = berth__x_local_load(k, w->fade, line);
    const berth__x before = berth__attention_fade(k, berth__x_local_load(k, to, line), fade);
    berth__x_local_store(k, to, line, berth__x_add(k, before, berth__x_local_load(k, w->folded, line)));
  }
}

static void grad_see_weights(const void *user, berth__x slot, berth__x from) {
  const grad_work *w = user;
  berth__kernel *k = w->k;
  grad_multiply(w, slot);
  grad_each_score(w, from, grad_make_scores);
  berth__attention_find_largest(k, w->scores, w->lines, w->largest, w->fade, w->folded);
  grad_weigh(w);
  grad_add_folded(w, w->scores, w->total);
  grad_add_folded(w, w->products, w->sum);
}

static berth__x grad_record(const grad_work *w, berth__x in_block, int64_t which) {
  berth__kernel *k = w->k;
  const berth__attention *a = &w->g->a;
  const berth__x last = berth__x_i32(k, a->q.length - 1);
  const berth__x row = berth__x_min(k, berth__x_add(k, w->b.first_row, in_block), last);
  const berth__x head = berth__x_add(k, berth__x_affine(k, w->b.batch, a->q.heads, 0), w->b.head);
  return berth__x_affine(k, berth__x_add(k, berth__x_affine(k, head, a->q.length, 0), row), RECORD, which);
}

/* The first cell of a row in this thread, of those handled together. */
static berth__x grad_is_first(const grad_work *w, berth__x column) {
  return berth__x_lt(w->k, column, berth__x_i32(w->k, 2 * (int64_t)BERTH__ROW_THREADS));
}

static void grad_keep_records(const grad_work *w) {
  berth__kernel *k = w->k;
  for (uint32_t i = 0; i < w->lines; i++) {
    const berth__x line = berth__x_i32(k, i), largest = berth__x_local_load(k, w->largest, line);
    const berth__x divisor =
        berth__attention_divisor(w->b.l, k, &w->g->a, w->b.head, berth__x_local_load(k, w->total, line), largest);
    const berth__x is_none = berth__x_eq(k, largest, berth__x_f32(k, -INFINITY));
    const berth__x log = berth__x_add(k, largest, berth__l_unary(k, BERTH__OP_log, divisor));
    berth__x_local_store(k, w->log, line, berth__x_select(k, is_none, berth__x_f32(k, INFINITY), log));
    berth__x_local_store(k, w->sum, line, berth__x_div(k, berth__x_local_load(k, w->sum, line), divisor));
  }
  const berth__x each = berth__x_each(k, w->scores), row = berth__x_sum_row(k, each);
  const berth__x line = berth__x_sum_line(k, each);
  const berth__x is_first = berth__x_eq(k, berth__x_sum_column(k, each), berth__x_i32(k, 0));
  berth__x_if(k, berth__x_and(k, is_first, berth__attention_block_has(&w->b, row)));
  berth__x_store(k, w->scratch, grad_record(w, row, RECORD_LOG), berth__x_local_load(k, w->log, line));
  berth__x_store(k, w->scratch, grad_record(w, row, RECORD_SUM), berth__x_local_load(k, w->sum, line));
  berth__x_end(k);
  berth__x_end(k);
}

static void grad_fetch_records(const grad_work *w) {
  berth__kernel *k = w->k;
  const berth__x each = berth__x_each(k, w->scores), row = berth__x_sum_row(k, each);
  const berth__x line = berth__x_sum_line(k, each);
  berth__x_if(k, grad_is_first(w, berth__x_sum_column(k, each)));
  berth__x_local_store(k, w->log, line, berth__x_load(k, w->scratch, grad_record(w, row, RECORD_LOG)));
  berth__x_local_store(k, w->sum, line, berth__x_load(k, w->scratch, grad_record(w, row, RECORD_SUM)));
  berth__x_end(k);
  berth__x_end(k);
}

/* ---- Slopes ---- */

static void grad_put(const grad_work *w, const berth__kernel_tile *tile, berth__x row, berth__x column, berth__x x) {
  const berth__x at = berth__x_tile_at(w->k, tile, berth__x_i32(w->k, 0), row, column);
  berth__x_shared_store(w->k, tile->array, at, x);
}

/* The weight of a score and its slope. Where nothing is masked, a weight of 0 needs no care. */
static void grad_weight_and_slope(const grad_work *w, const grad_cell *c, berth__x key, uint32_t i, berth__x *weight,
                                  berth__x *slope) {
  berth__kernel *k = w->k;
  const berth__attention *a = &w->g->a;
  const berth__x log = berth__x_local_load(k, w->log, c->line), sum = berth__x_local_load(k, w->sum, c->line);
  const berth__x product = berth__x_sum(k, c->each, i), dp = berth__x_sum_beside(k, c->each, w->products, i);
  if (c->is_whole && a->cap == 0) {
    const berth__x scale = berth__x_f32(k, (float)a->scale), less = berth__x1(k, BERTH__INST_neg, log);
    *weight = berth__x1(k, BERTH__INST_exp, berth__x3(k, BERTH__INST_fma, product, scale, less));
    *slope = berth__x_mul(k, *weight, berth__x_sub(k, dp, sum));
    return;
  }
  *weight = berth__x1(k, BERTH__INST_exp, berth__x_sub(k, grad_score(w, c, key, product), log));
  *slope = berth__attention_slope(k, a, *weight, dp, sum, product);
}

static void grad_make_slopes(const grad_work *w, const grad_cell *c, berth__x from) {
  berth__kernel *k = w->k;
  for (uint32_t i = 0; i < 2; i++) {
    const berth__x column = berth__x_affine(k, c->column, 1, i), key = berth__x_add(k, from, column);
    berth__x weight, slope;
    grad_weight_and_slope(w, c, key, i, &weight, &slope);
    grad_put(w, &w->slopes, c->row, column, slope);
    if (w->weights.lines != 0) grad_put(w, &w->weights, c->row, column, weight);
  }
}

static void grad_see_slopes(const void *user, berth__x slot, berth__x from) {
  const grad_work *w = user;
  grad_multiply(w, slot);
  grad_each_score(w, from, grad_make_slopes);
  berth__x_barrier(w->k);
  berth__x_multiply(w->k, w->result, slot);
}

/* ---- Results ---- */

typedef struct grad_out {
  uint32_t out, sums;
  const berth__heads *heads;
  float scale;
} grad_out;

/* The cells of a row that are handled together. */
static void grad_store_some(const grad_work *w, const grad_out *o, berth__x each, berth__x to) {
  berth__kernel *k = w->k;
  const uint32_t together = k->sums[o->sums].together;
  const berth__x column = berth__x_sum_column(k, each), scale = berth__x_f32(k, o->scale);
  if (together > 1) berth__l_word_begin_of(w->b.l, k, o->out);
  for (uint32_t i = 0; i < together; i++) {
    const berth__x place =
        berth__x_add(k, to, berth__x_affine(k, berth__x_affine(k, column, 1, i), o->heads->stride, 0));
    if (together > 1) berth__l_word_lane(k, i, place);
    berth__l_store(w->b.l, k, o->out, place, berth__x_mul(k, berth__x_sum(k, each, i), scale));
  }
  if (together > 1) berth__l_word_end(w->b.l, k, berth__x_add(k, to, column));
}

/* Rows of a head, from `first` on. */
static void grad_store(const grad_work *w, const grad_out *o, berth__x head, berth__x first) {
  berth__kernel *k = w->k;
  const berth__x each = berth__x_each(k, o->sums), row = berth__x_add(k, first, berth__x_sum_row(k, each));
  const berth__x is_row = berth__x_lt(k, row, berth__x_i32(k, o->heads->length));
  const berth__x is_column = berth__x_lt(k, berth__x_sum_column(k, each), berth__x_i32(k, o->heads->size));
  berth__x_if(k, berth__x_and(k, is_row, is_column));
  grad_store_some(w, o, each, berth__attention_at(k, o->heads, w->b.batch, head, row));
  berth__x_end(k);
  berth__x_end(k);
}

/* ---- Queries ---- */

static void grad_take_keys(const void *user, berth__x slot, berth__x from) {
  const grad_work *w = user;
  berth__attention_take(&w->b, &w->keys, w->is_copied, slot, from);
  berth__attention_take(&w->b, &w->values, w->is_copied, slot, from);
}

static void grad_open_rows(grad_work *w) {
  berth__kernel *k = w->k;
  uint32_t *const arrays[] = {&w->largest, &w->total, &w->fade, &w->folded};
  for (int i = 0; i < 4; i++) *arrays[i] = berth__kernel_local(k, BERTH__NUM_F32, w->lines);
  for (uint32_t i = 0; i < w->lines; i++) {
    const berth__x line = berth__x_i32(k, i), zero = berth__x_f32(k, 0);
    berth__x_local_store(k, w->largest, line, berth__x_f32(k, -INFINITY));
    berth__x_local_store(k, w->total, line, zero);
    berth__x_local_store(k, w->sum, line, zero);
  }
}

static berth_status grad_queries(berth__lowering *l, const berth__attention_grad *g, const berth__attention_form *form,
                                 berth_error *err) {
  grad_work w = {.b = berth__attention_begin(l, &g->a, form, "tiled queries"), .g = g};
  berth__x first, last;
  w.k = w.b.k;
  if (w.k == NULL) return berth__l_end(l, w.k, err);
  w.k->flops *= 2.5;
  grad_open(&w, false);
  grad_open_rows(&w);
  berth__attention_take(&w.b, &w.q, w.is_copied, berth__x_i32(w.k, 0), BERTH__X_NONE);
  berth__attention_take(&w.b, &w.dy, w.is_copied, berth__x_i32(w.k, 0), BERTH__X_NONE);
  berth__attention_block_range(&w.b, &first, &last);
  grad_pass(&w, first, last, form->keys, grad_take_keys, grad_see_weights);
  grad_keep_records(&w);
  grad_pass(&w, first, last, form->keys, grad_take_keys, grad_see_slopes);
  const grad_out dq = {0, w.result, &g->a.out, (float)g->a.scale};
  grad_store(&w, &dq, w.b.head, w.b.first_row);
  return berth__l_end(l, w.k, err);
}

/* ---- Keys ---- */

static void grad_take_queries(const void *user, berth__x slot, berth__x from) {
  const grad_work *w = user;
  berth__attention_block b = w->b;
  b.first_row = from;
  berth__attention_take(&b, &w->q, w->is_copied, slot, BERTH__X_NONE);
  berth__attention_take(&b, &w->dy, w->is_copied, slot, BERTH__X_NONE);
}

static void grad_see_queries(const void *user, berth__x slot, berth__x from) {
  const grad_work *w = user;
  grad_work at = *w;
  at.b.first_row = from;
  grad_fetch_records(&at);
  grad_see_slopes(&at, slot, w->b.chunk);
  berth__x_multiply(w->k, w->second, slot);
}

/* The queries that see any of the keys from `from` on, starting at a multiple of a block. */
static void grad_row_range(const grad_work *w, berth__x from, berth__x *first, berth__x *last) {
  berth__kernel *k = w->k;
  const berth__attention *a = &w->g->a;
  const int64_t rows = w->b.f->queries;
  const berth__x own = berth__x_affine(k, berth__x_sub(k, from, w->b.keys), 1, a->q.length); /* of the first key */
  *first = berth__x_i32(k, 0);
  *last = berth__x_i32(k, a->q.length);
  if (a->window > 0) *last = berth__x_min(k, *last, berth__x_affine(k, own, 1, w->b.f->keys + a->window - 1));
  if (!a->causal) return;
  const berth__x block = berth__x_div(k, berth__x_max(k, own, *first), berth__x_i32(k, rows));
  *first = berth__x_affine(k, block, rows, 0);
}

/* The block's chunk is given by the first of its keys. */
static berth__attention_block grad_begin_keys(berth__lowering *l, const berth__attention_grad *g,
                                              const berth__attention_form *form) {
  const int64_t dims[3] = {g->a.k.batch, g->a.k.heads, g->a.k.length / form->keys + (g->a.k.length % form->keys != 0)};
  berth__attention_block b = {.l = l, .a = &g->a, .f = form, .k = berth__l_begin(l, "tiled keys")};
  if (b.k == NULL) return b;
  berth__x group[3];
  berth__attention_work(l, &g->a, b.k);
  b.k->flops *= 2;
  b.k->group_size = form->threads;
  b.k->n_groups = (uint64_t)(dims[0] * dims[1] * dims[2]);
  berth__l_unravel(b.k, berth__x_group(b.k), 3, dims, group);
  b.thread = berth__x_thread(b.k);
  b.batch = group[0];
  b.head = berth__x_affine(b.k, group[1], g->a.q.heads / g->a.k.heads, 0); /* the first head that reads these keys */
  b.chunk = berth__x_affine(b.k, group[2], form->keys, 0);
  b.keys = berth__attention_keys_of(l, b.k, &g->a, b.batch);
  return b;
}

static berth_status grad_keys(berth__lowering *l, const berth__attention_grad *g, const berth__attention_form *form,
                              berth_error *err) {
  grad_work w = {.b = grad_begin_keys(l, g, form), .g = g};
  berth__x first, last;
  w.k = w.b.k;
  if (w.k == NULL) return berth__l_end(l, w.k, err);
  grad_open(&w, true);
  const berth__x from = w.b.chunk, head = w.b.head, kv_head = berth__attention_block_kv_head(&w.b);
  grad_take_keys(&w, berth__x_i32(w.k, 0), from);
  grad_row_range(&w, from, &first, &last);
  w.b.head = berth__x_add(w.k, head, berth__x_loop_n(w.k, g->a.q.heads / g->a.k.heads));
  grad_pass(&w, first, last, form->queries, grad_take_queries, grad_see_queries);
  berth__x_end(w.k);
  const grad_out dk = {1, w.result, &g->dk, (float)g->a.scale}, dv = {2, w.second, &g->dv, 1};
  grad_store(&w, &dk, kv_head, from);
  grad_store(&w, &dv, kv_head, from);
  return berth__l_end(l, w.k, err);
}

berth_status berth__attention_grad_tiled(berth__lowering *l, const berth__attention_grad *g,
                                         const berth__attention_form *form, berth_error *err) {
  BERTH__TRY(grad_queries(l, g, form, err));
  return grad_keys(l, g, form, err);
}
