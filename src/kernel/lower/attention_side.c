/* Loads rows of queries, keys and values into tiles. */
#include "kernel/lower/attention.h"

bool berth__attention_can_copy(const berth__attention_block *b, const berth__attention_side *side) {
  const berth__lowering *l = b->l;
  const berth__heads *h = side->heads;
  const berth__storage wanted = berth__compute_storage(b->f->kind), storage = berth__l_storage_of(l, side->operand);
  if (storage != wanted && (storage != BERTH_F32 || l->call->in[side->operand].type != BERTH_F32)) return false;
  const int64_t n = 16 / berth_type_storage(storage).bytes;
  return h->stride == 1 && h->size % n == 0 && (h->batch == 1 || h->batch_stride % n == 0) &&
         (h->heads == 1 || h->head_stride % n == 0) && (h->length == 1 || h->row_stride % n == 0) &&
         (l->at == NULL || l->at[side->operand] % 16 == 0);
}

/* Source and destination of a row's elements. */
typedef struct side_row {
  berth__x slot, row, at, is_row;
} side_row;

/* Element `i` of a row, or 16 bytes from there on. */
static void side_take_some(const berth__attention_block *b, const berth__attention_side *side, bool is_copied,
                           const side_row *r, berth__x i) {
  berth__kernel *k = b->k;
  const berth__x to =
      berth__x_tile_at(k, &side->tile, r->slot, side->is_values ? i : r->row, side->is_values ? r->row : i);
  const berth__x is_in = berth__x_lt(k, i, berth__x_i32(k, side->heads->size)), zero = berth__x_i32(k, 0);
  const berth__x inside = berth__x_select(k, is_in, i, zero), is_there = berth__x_and(k, r->is_row, is_in);
  const berth__x from = berth__x_add(k, r->at, berth__x_affine(k, inside, side->heads->stride, 0));
  if (is_copied) {
    berth__x_shared_copy(k, side->tile.array, to, berth__l_in(b->l, k, side->operand), from, is_there);
    return;
  }
  const berth__x value = berth__attention_load(b->l, k, side->operand, from);
  berth__x_shared_store(k, side->tile.array, to, berth__x_select(k, is_there, value, berth__x_f32(k, 0)));
}

/* Neighbouring threads load neighbouring elements. */
void berth__attention_take(const berth__attention_block *b, const berth__attention_side *side, bool is_copied,
                           berth__x slot, berth__x first) {
  berth__kernel *k = b->k;
  const uint32_t wide = is_copied ? 16 / berth_type_storage(side->storage).bytes : 1;
  const uint32_t across = (side->is_values ? side->tile.lines : side->tile.depth) / wide;
  const uint32_t count = (side->is_values ? side->tile.depth : side->tile.lines) * across, threads = k->group_size;
  const berth__x round =
      berth__x_loop_unrolled(k, berth__x_i32(k, 0), berth__x_i32(k, (count + threads - 1) / threads), 1);
  const berth__x n = berth__x_add(k, berth__x_affine(k, round, threads, 0), b->thread);
  if (count % threads != 0) berth__x_if(k, berth__x_lt(k, n, berth__x_i32(k, count)));
  side_row r = {.slot = slot, .row = berth__x_div(k, n, berth__x_i32(k, across))};
  const berth__x i = berth__x_affine(k, berth__x_rem(k, n, berth__x_i32(k, across)), wide, 0);
  if (first == BERTH__X_NONE) {
    const berth__attention_row of = berth__attention_block_row(b, r.row);
    r.at = berth__attention_at(k, side->heads, of.batch, of.head, of.row);
    r.is_row = berth__attention_block_has(b, r.row);
  } else {
    const berth__x key = berth__x_add(k, first, r.row), held = berth__attention_held(k, b->a, b->keys);
    const berth__x inside = berth__x_min(k, key, berth__x_i32(k, side->heads->length - 1));
    r.at = berth__attention_at(k, side->heads, b->batch, berth__attention_block_kv_head(b), inside);
    r.is_row = berth__x_lt(k, key, held);
  }
  side_take_some(b, side, is_copied, &r, i);
  if (count % threads != 0) berth__x_end(k);
  berth__x_end(k);
}

void berth__attention_pass(berth__kernel *k, const berth__attention_passing *by) {
  const berth__x two = berth__x_i32(k, 2), each = berth__x_i32(k, by->step);
  if (by->is_copied) {
    by->take(by->user, berth__x_rem(k, berth__x_div(k, by->first, each), two), by->first);
    berth__x_commit(k);
  }
  const berth__x from = berth__x_loop(k, by->first, by->last, by->step);
  const berth__x next = berth__x_affine(k, from, 1, by->step), number = berth__x_div(k, from, each);
  const berth__x slot = by->is_copied ? berth__x_rem(k, number, two) : berth__x_i32(k, 0);
  if (by->is_copied) {
    berth__x_wait(k, 0);
    berth__x_barrier(k);
    berth__x_if(k, berth__x_lt(k, next, by->last));
    by->take(by->user, berth__x_rem(k, berth__x_affine(k, number, 1, 1), two), next);
    berth__x_end(k);
    berth__x_commit(k);
  } else {
    berth__x_barrier(k);
    by->take(by->user, slot, from);
    berth__x_barrier(k);
  }
  by->see(by->user, slot, from);
  berth__x_end(k);
}

/* ---- Rows of scores ---- */

void berth__attention_find_largest(berth__kernel *k, uint32_t scores, uint32_t lines, uint32_t largest, uint32_t fade,
                                   uint32_t folded) {
  berth__x_row_largest(k, scores, folded);
  for (uint32_t i = 0; i < lines; i++) {
    const berth__x line = berth__x_i32(k, i), before = berth__x_local_load(k, largest, line);
    const berth__x after = berth__attention_larger(k, before, berth__x_local_load(k, folded, line));
    berth__x_local_store(k, largest, line, after);
    berth__x_local_store(k, fade, line, berth__attention_weight(k, before, after));
  }
}
