/* A workgroup's block of queries: which queries it contains, and which keys they see. */
#include <math.h>

#include "kernel/lower/attention.h"

static int64_t heads_a_key(const berth__attention *a) { return a->q.heads / a->k.heads; }

berth__attention_block berth__attention_begin(berth__lowering *l, const berth__attention *a,
                                              const berth__attention_form *f, const char *what) {
  const int64_t dims[4] = {a->q.batch, f->heads, f->blocks, f->chunks};
  berth__attention_block b = {.l = l, .a = a, .f = f, .k = berth__l_begin(l, what)};
  if (b.k == NULL) return b;
  berth__x group[4];
  berth__attention_work(l, a, b.k);
  b.k->group_size = f->threads;
  b.k->n_groups = (uint64_t)(dims[0] * dims[1] * dims[2] * dims[3]);
  berth__l_unravel(b.k, berth__x_group(b.k), 4, dims, group);
  b.thread = berth__x_thread(b.k);
  b.batch = group[0];
  b.head = group[1];
  b.first_row = berth__x_affine(b.k, group[2], f->queries, 0);
  b.chunk = group[3];
  b.keys = berth__attention_keys_of(l, b.k, a, b.batch);
  return b;
}

berth__attention_row berth__attention_block_row(const berth__attention_block *b, berth__x in_block) {
  berth__kernel *k = b->k;
  const berth__x last = berth__x_i32(k, b->f->rows - 1);
  const berth__x row = berth__x_min(k, berth__x_add(k, b->first_row, in_block), last);
  if (!b->f->folds_heads) return berth__attention_row_of(k, b->a, b->keys, b->batch, b->head, row);
  const berth__x length = berth__x_i32(k, b->a->q.length);
  const berth__x head =
      berth__x_add(k, berth__x_affine(k, b->head, heads_a_key(b->a), 0), berth__x_div(k, row, length));
  return berth__attention_row_of(k, b->a, b->keys, b->batch, head, berth__x_rem(k, row, length));
}

berth__x berth__attention_block_has(const berth__attention_block *b, berth__x in_block) {
  const berth__x row = berth__x_add(b->k, b->first_row, in_block);
  return berth__x_and(b->k, berth__x_lt(b->k, in_block, berth__x_i32(b->k, b->f->queries)),
                      berth__x_lt(b->k, row, berth__x_i32(b->k, b->f->rows)));
}

/* Without folding, b->head is the queries' head. */
berth__x berth__attention_block_kv_head(const berth__attention_block *b) {
  return b->f->folds_heads ? b->head : berth__x_div(b->k, b->head, berth__x_i32(b->k, heads_a_key(b->a)));
}

void berth__attention_block_range(const berth__attention_block *b, berth__x *first, berth__x *last) {
  berth__kernel *k = b->k;
  const berth__attention *a = b->a;
  berth__x unused;
  if (a->ring) { /* any row may hold a key that is seen */
    *first = berth__x_i32(k, 0);
    *last = berth__attention_held(k, a, b->keys);
  } else if (b->f->folds_heads) {
    berth__attention_range_of(k, a, b->keys, berth__x_i32(k, 0), first, &unused);
    berth__attention_range_of(k, a, b->keys, berth__x_i32(k, a->q.length - 1), &unused, last);
  } else {
    const berth__x end = berth__x_i32(k, a->q.length - 1);
    berth__attention_range_of(k, a, b->keys, b->first_row, first, &unused);
    berth__attention_range_of(
        k, a, b->keys, berth__x_min(k, berth__x_affine(k, b->first_row, 1, b->f->queries - 1), end), &unused, last);
  }
  *first = berth__x_affine(k, berth__x_div(k, *first, berth__x_i32(k, b->f->keys)), b->f->keys, 0);
  *first = berth__x_max(k, *first, berth__x_affine(k, b->chunk, b->f->chunk_keys, 0));
  *last = berth__x_min(k, *last, berth__x_affine(k, b->chunk, b->f->chunk_keys, b->f->chunk_keys));
}

berth__x berth__attention_block_score(const berth__attention_block *b, berth__x in_block, berth__x key, berth__x sum) {
  berth__kernel *k = b->k;
  const berth__x value = berth__x_variable(k, berth__x_f32(k, -INFINITY));
  const berth__attention_row row = berth__attention_block_row(b, in_block);
  berth__x_if(k, berth__x_lt(k, key, berth__x_i32(k, b->a->k.length)));
  const berth__x seen = berth__attention_key_at(k, b->a, b->keys, key);
  berth__x_set(k, value, berth__attention_score(b->l, k, b->a, &row, seen, sum));
  berth__x_end(k);
  return berth__x_get(k, value);
}
