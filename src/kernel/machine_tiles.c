/* Tiles in the interpreter: copies that arrive when they are waited for, products of tiles, and their sums, which are
 * spread as expand.c spreads them. */
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
  for (uint32_t lane = 0; lane < m->n; ++lane)
    if (mask[lane] != 0) BERTH__TRY(copy_lane(m, x, lane));
  return BERTH_OK;
}

/* ---- Products ---- */

static uint32_t element_of(const berth__kernel_tile *tile, uint32_t slot, uint32_t line, uint32_t depth) {
  return slot * berth__tile_slot(tile) + (tile->is_deep ? line * tile->pitch + depth : depth * tile->pitch + line);
}

/* What a tile holds must have been there before the last barrier, and is not changed before the next. */
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

static float near_tf32(float x) {
  berth__lane value = {.f = x};
  if (isfinite(x)) value.u = (value.u + 0x1000u) & 0xffffe000u;
  return value.f;
}

static float add_product(berth_compute kind, float a, float b, float sum) {
  const berth__storage storage = berth__compute_storage(kind);
  if (kind == BERTH_COMPUTE_F32) return fmaf(a, b, sum);
  if (storage != BERTH_F32) return fmaf(berth__machine_near(storage, a), berth__machine_near(storage, b), sum);
  const float large_a = near_tf32(a), large_b = near_tf32(b);
  if (kind == BERTH_COMPUTE_TF32X3) {
    sum = fmaf(near_tf32(a - large_a), large_b, sum);
    sum = fmaf(large_a, near_tf32(b - large_b), sum);
  }
  return fmaf(large_a, large_b, sum);
}

/* Row and column of a thread's sum number `cell`. */
static void find_cell(const berth__machine *m, const berth__kernel_sums *sums, uint32_t thread, uint32_t cell,
                      uint32_t *row, uint32_t *column) {
  const berth__sums_spread s = berth__sums_spread_of(m->k, sums);
  const uint32_t i = cell / s.thread_columns, j = cell % s.thread_columns, together = sums->together;
  *row = thread / s.group_columns + i * s.group_rows;
  *column = thread % s.group_columns * together + (j - j % together) * s.group_columns + j % together;
}

static void multiply_lane(berth__machine *m, const berth__kernel_sums *sums, berth__lane *of_lane, uint32_t slot,
                          uint32_t lane) {
  const berth__lane *shared = m->shared + m->n_shared * (lane / m->threads);
  const berth__lane *left = shared + berth__machine_elements(m->k->shared, sums->left.array);
  const berth__lane *right = shared + berth__machine_elements(m->k->shared, sums->right.array);
  const uint32_t n = sums->left.lines * sums->right.lines / m->threads;
  for (uint32_t cell = 0; cell < n; ++cell) {
    uint32_t row, column;
    find_cell(m, sums, lane % m->threads, cell, &row, &column);
    berth__lane sum = of_lane[(size_t)cell * m->n];
    for (uint32_t depth = 0; depth < sums->left.depth; ++depth) {
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
  for (uint32_t lane = 0; lane < m->n; ++lane) {
    const uint32_t first = lane - lane % m->threads;
    if (mask[lane] != mask[first] || (mask[lane] != 0 && slot[lane].u != slot[first].u))
      return fail_copy(m, x, lane, "multiplies without all of its workgroup");
    if (mask[lane] == 0) continue;
    if (slot[lane].u >= sums->left.slots) return fail_copy(m, x, lane, "multiplies a slot that is none");
    if (lane == first) {
      BERTH__TRY(check_tile(m, x, &sums->left, slot[lane].u, lane));
      BERTH__TRY(check_tile(m, x, &sums->right, slot[lane].u, lane));
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

void berth__machine_sum_place(berth__machine *m, berth__x x) {
  const berth__inst *inst = &m->k->insts[x];
  const berth__kernel_sums *sums = &m->k->sums[inst->bits];
  const uint32_t each = berth__machine_values(m, inst->in[0])[0].u;
  berth__lane *out = berth__machine_values(m, x);
  for (uint32_t lane = 0; lane < m->n; ++lane) {
    uint32_t row, column;
    find_cell(m, sums, lane % m->threads, each * sums->together, &row, &column);
    out[lane].u = inst->code == BERTH__INST_sum_row ? row : column;
  }
}
