/* Tiles in the interpreter: copies that arrive when they are waited for, products of tiles, and their sums, distributed
 * like in expand.c. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/half.h"
#include "kernel/machine.h"

float berth__machine_near(berth__storage storage, float x) {
  if (storage == BERTH_BF16) return berth__bf16_to_f32(berth__f32_to_bf16(x));
  return storage == BERTH_F16 ? berth__f16_to_f32(berth__f32_to_f16(x)) : x;
}

/* ---- Copies ---- */

static berth_status fail_copy(const berth__machine *m, berth__x x, uint32_t lane, const char *what) {
  return berth__fail(m->err, BERTH_INTERNAL,
                     "The kernel %s: instruction %" PRIu32 " (%s) of thread %" PRIu32 " of workgroup %" PRIu64 " %s.",
                     m->k->name, x, berth__inst_name((berth__inst_code)m->k->insts[x].code), lane % m->threads,
                     m->group + lane / m->threads, what);
}

static berth_status copy_lane(berth__machine *m, berth__x x, uint32_t lane) {
  const berth__inst *inst = &m->k->insts[x];
  const uint32_t array = inst->bits & 255u, buffer = inst->bits >> 8;
  const uint32_t n = 16 / berth_type_storage(m->k->buffers[buffer].storage).bytes;
  const uint32_t to = berth__machine_values(m, inst->in[0])[lane].u,
                 from = berth__machine_values(m, inst->in[1])[lane].u;
  const bool is_there = berth__machine_values(m, inst->in[2])[lane].u != 0;
  const uint64_t first = berth__machine_elements(m->k->shared, array) + m->n_shared * (lane / m->threads);
  uint32_t other;
  if (to % n != 0 || (uint64_t)to + n > m->k->shared[array].count)
    return fail_copy(m, x, lane, "copies past its array, or to where no 16 bytes begin");
  if (is_there && (from % n != 0 || from < m->buffers[buffer].first || (uint64_t)from + n > m->buffers[buffer].count))
    return fail_copy(m, x, lane, "copies from past its buffer, or from where no 16 bytes begin");
  for (uint32_t i = 0; i < n; ++i) {
    berth__machine_use *use = &m->uses[first + to + i];
    if (!berth__machine_note(use, m->time, lane, true, &other)) return berth__machine_fail_race(m, x, lane, other);
    use->group = m->group_open;
    m->shared[first + to + i].f = is_there ? berth__machine_element(m, buffer, from + i) : 0;
  }
  return BERTH_OK;
}

berth_status berth__machine_copy(berth__machine *m, berth__x x) {
  const uint32_t *mask = berth__machine_mask(m, m->k->insts[x].depth);
  if (m->n_in[m->k->insts[x].depth] > 0) BERTH__TRY(berth__machine_take(m, x, m->k->insts[x].bits & 255u));
  for (uint32_t lane = 0; lane < m->n; ++lane)
    if (mask[lane] != 0) BERTH__TRY(copy_lane(m, x, lane));
  return BERTH_OK;
}

/* ---- Products ---- */

static uint32_t element_of(const berth__kernel_tile *tile, uint32_t slot, uint32_t line, uint32_t depth) {
  const uint32_t first = (tile->slots == 1 ? 0 : slot) * berth__tile_slot(tile);
  const uint32_t across = tile->is_deep ? line : depth, along = tile->is_deep ? depth : line;
  if (tile->row == 0) return first + across * tile->pitch + along;
  const uint32_t rows = tile->is_deep ? tile->lines : tile->depth, wide = tile->row / BERTH__ROW_PIECES;
  const uint32_t in_row = along % tile->row, piece = in_row / wide ^ across % BERTH__ROW_PIECES;
  return first + (along / tile->row * rows + across) * tile->row + piece * wide + in_row % wide;
}

/* The contents of a tile must have arrived before the last barrier, and must not change before the next. */
static berth_status check_tile(berth__machine *m, berth__x x, const berth__kernel_tile *tile, uint32_t slot,
                               uint32_t lane) {
  const uint64_t first = berth__machine_elements(m->k->shared, tile->array) + m->n_shared * (lane / m->threads);
  for (uint32_t line = 0; line < tile->lines; ++line)
    for (uint32_t depth = 0; depth < tile->depth; ++depth) {
      berth__machine_use *use = &m->uses[first + element_of(tile, slot, line, depth)];
      if (use->write_time == m->time && use->group == 0) return berth__machine_fail_race(m, x, lane, use->writer);
      if (use->group > m->group_settled) return fail_copy(m, x, lane, "multiplies what was copied and not waited for");
      use->read_time = m->time;
      use->reader = UINT32_MAX;
    }
  return BERTH_OK;
}

/* The previous slot is being read until now: nobody may write to it before the next barrier. Slots are used in turn. */
static berth_status note_late(berth__machine *m, berth__x x, uint32_t slot, uint32_t lane) {
  const berth__kernel_sums *sums = &m->k->sums[m->k->insts[x].bits];
  for (int i = 0; i < 2; ++i) {
    const berth__kernel_tile *tile = i == 0 ? &sums->left : &sums->right;
    const uint64_t first = berth__machine_elements(m->k->shared, tile->array) + m->n_shared * (lane / m->threads);
    const uint32_t size = berth__tile_slot(tile), before = (slot + tile->slots - 1) % tile->slots;
    for (uint32_t e = before * size; e < (before + 1) * size; ++e) {
      berth__machine_use *use = &m->uses[first + e];
      if (use->write_time == m->time) return berth__machine_fail_race(m, x, lane, use->writer);
      use->read_time = m->time;
      use->reader = UINT32_MAX;
    }
  }
  return BERTH_OK;
}

static float near_tf32(float x) {
  berth__lane value = {.f = x};
  if (isfinite(x)) value.u = (value.u + 0x1000u) & 0xffffe000u;
  return value.f;
}

static float add_product(berth_compute kind, float a, float b, float sum) {
  const berth__storage storage = berth__compute_storage(kind);
  if (kind == BERTH_COMPUTE_F32) return a * b + sum; /* like `fma` in the interpreter */
  if (storage != BERTH_F32) return fmaf(berth__machine_near(storage, a), berth__machine_near(storage, b), sum);
  const float large_a = near_tf32(a), large_b = near_tf32(b);
  if (kind == BERTH_COMPUTE_TF32X3) {
    sum = fmaf(near_tf32(a - large_a), large_b, sum);
    sum = fmaf(large_a, near_tf32(b - large_b), sum);
  }
  return fmaf(large_a, large_b, sum);
}

/* Row and column of sum `cell` of a thread within its part. */
static void find_cell(const berth__machine *m, const berth__kernel_sums *sums, uint32_t thread, uint32_t cell,
                      uint32_t *row, uint32_t *column) {
  const berth__sums_spread s = berth__sums_spread_of(m->k, sums);
  thread %= s.threads;
  const uint32_t i = cell / s.thread_columns, j = cell % s.thread_columns, together = sums->together;
  *row = thread / s.group_columns + i * s.group_rows;
  *column = thread % s.group_columns * together + (j - j % together) * s.group_columns + j % together;
}

static void multiply_lane(berth__machine *m, const berth__kernel_sums *sums, berth__lane *of_lane, uint32_t slot,
                          uint32_t lane) {
  const berth__lane *shared = m->shared + m->n_shared * (lane / m->threads);
  const berth__lane *left = shared + berth__machine_elements(m->k->shared, sums->left.array);
  const berth__lane *right = shared + berth__machine_elements(m->k->shared, sums->right.array);
  const uint32_t parts = berth__sums_parts(sums), n = sums->left.lines * sums->right.lines / m->threads * parts;
  const uint32_t deep = sums->left.depth / parts, from = lane % m->threads / (m->threads / parts) * deep;
  for (uint32_t cell = 0; cell < n; ++cell) {
    uint32_t row, column;
    find_cell(m, sums, lane % m->threads, cell, &row, &column);
    berth__lane sum = of_lane[(size_t)cell * m->n];
    for (uint32_t depth = from; depth < from + deep; ++depth) {
      const berth__lane a = left[element_of(&sums->left, slot, row, depth)],
                        b = right[element_of(&sums->right, slot, column, depth)];
      if (sums->type == BERTH__NUM_F32)
        sum.f = add_product(sums->kind, a.f, b.f, sum.f);
      else
        sum.u += a.u * b.u;
    }
    of_lane[(size_t)cell * m->n] = sum;
  }
}

berth_status berth__machine_multiply(berth__machine *m, berth__x x) {
  const berth__inst *inst = &m->k->insts[x];
  const berth__kernel_sums *sums = &m->k->sums[inst->bits];
  const uint32_t *mask = berth__machine_mask(m, inst->depth);
  const berth__lane *slot = berth__machine_values(m, inst->in[0]);
  berth__lane *all = m->sums + (size_t)berth__machine_sums(m->k, inst->bits) * m->n;
  if (m->n_in[inst->depth] > 0) {
    BERTH__TRY(berth__machine_take(m, x, sums->left.array));
    BERTH__TRY(berth__machine_take(m, x, sums->right.array));
    m->is_going[inst->bits] = sums->is_late;
  }
  for (uint32_t lane = 0; lane < m->n; ++lane) {
    const uint32_t first = lane - lane % m->threads;
    if (mask[lane] != mask[first] || (mask[lane] != 0 && slot[lane].u != slot[first].u))
      return fail_copy(m, x, lane, "multiplies without all of its workgroup");
    if (mask[lane] == 0) continue;
    const uint32_t slots = sums->left.slots > sums->right.slots ? sums->left.slots : sums->right.slots;
    if (slot[lane].u >= slots) return fail_copy(m, x, lane, "multiplies a slot that is none");
    if (lane == first) {
      BERTH__TRY(check_tile(m, x, &sums->left, slot[lane].u, lane));
      BERTH__TRY(check_tile(m, x, &sums->right, slot[lane].u, lane));
      if (inst->code == BERTH__INST_multiply && sums->is_late) BERTH__TRY(note_late(m, x, slot[lane].u, lane));
    }
    if (inst->code == BERTH__INST_multiply) multiply_lane(m, sums, all + lane, slot[lane].u, lane);
  }
  return BERTH_OK;
}

/* ---- Sums ---- */

void berth__machine_sum(berth__machine *m, berth__x x) {
  const berth__inst *inst = &m->k->insts[x];
  const uint32_t each = berth__machine_values(m, inst->in[0])[0].u, which = m->k->insts[inst->in[1]].bits;
  const size_t sum = berth__machine_sums(m->k, inst->bits) + each * m->k->sums[inst->bits].together + which;
  memcpy(berth__machine_values(m, x), m->sums + sum * m->n, m->n * sizeof(berth__lane));
}

void berth__machine_sum_set(berth__machine *m, berth__x x) {
  const berth__inst *inst = &m->k->insts[x];
  const uint32_t each = berth__machine_values(m, inst->in[0])[0].u, which = m->k->insts[inst->in[1]].bits;
  const size_t sum = berth__machine_sums(m->k, inst->bits) + each * m->k->sums[inst->bits].together + which;
  const berth__lane *value = berth__machine_values(m, inst->in[2]);
  const uint32_t *mask = berth__machine_mask(m, inst->depth);
  for (uint32_t lane = 0; lane < m->n; ++lane)
    if (mask[lane] != 0) m->sums[sum * m->n + lane] = value[lane];
}

void berth__machine_sum_place(berth__machine *m, berth__x x) {
  const berth__inst *inst = &m->k->insts[x];
  const berth__kernel_sums *sums = &m->k->sums[inst->bits];
  const berth__sums_spread s = berth__sums_spread_of(m->k, sums);
  const uint32_t each = berth__machine_values(m, inst->in[0])[0].u;
  berth__lane *out = berth__machine_values(m, x);
  for (uint32_t lane = 0; lane < m->n; ++lane) {
    uint32_t row, column;
    const uint32_t part = lane % m->threads / s.threads, of_part = s.thread_rows * s.thread_columns / s.parts;
    find_cell(m, sums, lane % m->threads, part * of_part + each * sums->together, &row, &column);
    out[lane].u = inst->code == BERTH__INST_sum_row    ? row
                  : inst->code == BERTH__INST_sum_line ? each * sums->together / s.thread_columns
                                                       : column;
  }
}

/* Adds up the sums of all parts, in order; the first ones of a thread receive the sums that it keeps. */
static void join_group(berth__machine *m, const berth__sums_spread *s, berth__lane *all, bool is_float) {
  const uint32_t n = s->thread_rows * s->thread_columns, of_part = n / s->parts;
  for (uint32_t thread = 0; thread < s->threads; ++thread)
    for (uint32_t cell = 0; cell < n; ++cell) {
      berth__lane *sum = all + (size_t)cell * m->n + thread, total = sum[0];
      for (uint32_t part = 1; part < s->parts; ++part) {
        const berth__lane more = sum[(size_t)part * s->threads];
        if (is_float)
          total.f += more.f;
        else
          total.u += more.u;
      }
      sum[0] = total;
    }
  for (uint32_t part = 1; part < s->parts; ++part)
    for (uint32_t thread = 0; thread < s->threads; ++thread)
      for (uint32_t cell = 0; cell < of_part; ++cell)
        all[(size_t)cell * m->n + part * s->threads + thread] = all[(size_t)(part * of_part + cell) * m->n + thread];
}

berth_status berth__machine_join(berth__machine *m, berth__x x) {
  const berth__inst *inst = &m->k->insts[x];
  const berth__kernel_sums *sums = &m->k->sums[inst->bits];
  const uint32_t *mask = berth__machine_mask(m, inst->depth);
  const berth__sums_spread s = berth__sums_spread_of(m->k, sums);
  berth__lane *all = m->sums + (size_t)berth__machine_sums(m->k, inst->bits) * m->n;
  for (uint32_t lane = 0; lane < m->n; ++lane) {
    if (mask[lane] != mask[lane - lane % m->threads])
      return fail_copy(m, x, lane, "joins sums without all of its workgroup");
    if (lane % m->threads == 0 && mask[lane] != 0) join_group(m, &s, all + lane, sums->type == BERTH__NUM_F32);
  }
  return BERTH_OK;
}

/* ---- Rows ---- */

static float fold_two(bool is_total, float a, float b) {
  if (is_total) return a + b;
  return a < b || isnan(b) ? b : a;
}

/* The fold over one thread's elements of its row `line`. */
static float fold_own(const berth__machine *m, berth__x x, uint32_t lane, uint32_t line) {
  const berth__inst *inst = &m->k->insts[x];
  const uint32_t n = inst->bits & 255u;
  const uint32_t columns = berth__sums_spread_of(m->k, &m->k->sums[n]).thread_columns;
  const berth__lane *sum = m->sums + ((size_t)berth__machine_sums(m->k, n) + line * columns) * m->n + lane;
  float all = sum->f;
  for (uint32_t j = 1; j < columns; ++j)
    all = fold_two(inst->code == BERTH__INST_row_total, all, sum[(size_t)j * m->n].f);
  return all;
}

/* Over the four threads of a row, always in the same order. */
berth_status berth__machine_fold(berth__machine *m, berth__x x) {
  const berth__inst *inst = &m->k->insts[x];
  const uint32_t *mask = berth__machine_mask(m, inst->depth), lines = m->k->local[inst->bits >> 8].count;
  const bool is_total = inst->code == BERTH__INST_row_total;
  berth__lane *out = m->local + berth__machine_elements(m->k->local, inst->bits >> 8) * m->n;
  for (uint32_t first = 0; first < m->n; first += BERTH__ROW_THREADS) {
    for (uint32_t i = 0; i < BERTH__ROW_THREADS; ++i)
      if (mask[first + i] != mask[first - first % m->threads])
        return fail_copy(m, x, first + i, "folds rows without all of its workgroup");
    for (uint32_t line = 0; mask[first] != 0 && line < lines; ++line) {
      float own[BERTH__ROW_THREADS];
      for (uint32_t i = 0; i < BERTH__ROW_THREADS; ++i) own[i] = fold_own(m, x, first + i, line);
      const float all = fold_two(is_total, fold_two(is_total, own[0], own[1]), fold_two(is_total, own[2], own[3]));
      for (uint32_t i = 0; i < BERTH__ROW_THREADS; ++i) out[(size_t)line * m->n + first + i].f = all;
    }
  }
  return BERTH_OK;
}
