/* How attention is cut for a real GPU. */
#include "kernel/lower/attention.h"

#define MOST_QUERIES 16u /* of a block: four rows of the result a thread, of 128 threads */
#define ROW_GROUPS 4u
#define ENOUGH_GROUPS 256 /* workgroups that keep the larger GPUs busy */
#define LEAST_CHUNK 128   /* keys that are worth a workgroup of their own */

static uint32_t shared_of(const berth__attention_form *f, const berth__attention *a) {
  const uint32_t size = (uint32_t)a->q.size, parts = BERTH__ATTENTION_PARTS;
  return 4 * (f->queries * size + f->keys * (size + 1) + f->queries * (f->keys + 1) + f->queries * (parts + 1));
}

/* Where there are few queries (a step of decoding) there would be few workgroups: several share the keys of a block. */
static void choose_chunks(const berth__attention *a, berth__attention_form *f) {
  const int64_t groups = a->q.batch * f->heads * f->blocks, length = a->k.length;
  f->chunks = (ENOUGH_GROUPS + groups - 1) / groups;
  if (f->chunks > length / LEAST_CHUNK) f->chunks = length / LEAST_CHUNK;
  if (f->chunks < 1 || groups >= ENOUGH_GROUPS / 2) f->chunks = 1;
  const int64_t each = (length + f->chunks - 1) / f->chunks;
  f->chunk_keys = (each + f->keys - 1) / f->keys * f->keys;
  f->chunks = (length + f->chunk_keys - 1) / f->chunk_keys;
}

/* 32 keys are a block: each thread of a row of 32 has one. As many queries as there are registers for, fewer where
 * there are no more or shared memory ends. */
bool berth__attention_form_of(const berth__attention *a, const berth__kernel_limits *limits,
                              berth__attention_form *out) {
  const int64_t most = (int64_t)BERTH__ATTENTION_SPANS * BERTH__ATTENTION_LANES;
  if (!limits->shares_well || a->k.length == 0 || a->k.heads == 0 || a->q.batch * a->q.heads * a->q.length == 0 ||
      a->q.size == 0 || a->q.size > most || a->v.size == 0 || a->v.size > most)
    return false;
  const int64_t sharing = a->q.heads / a->k.heads;
  berth__attention_form f = {.queries = MOST_QUERIES, .keys = BERTH__ATTENTION_LANES};
  f.folds_heads = a->q.length < f.queries && sharing > 1;
  f.rows = a->q.length * (f.folds_heads ? sharing : 1);
  f.heads = f.folds_heads ? a->k.heads : a->q.heads;
  while (f.queries > 1 && (int64_t)f.queries / 2 >= f.rows) f.queries /= 2;
  while (f.queries > 4 && shared_of(&f, a) > limits->shared_bytes) f.queries /= 2;
  f.row_groups = f.queries < ROW_GROUPS ? f.queries : ROW_GROUPS;
  f.threads = f.row_groups * BERTH__ATTENTION_LANES;
  f.blocks = (f.rows + f.queries - 1) / f.queries;
  choose_chunks(a, &f);
  *out = f;
  return f.threads <= limits->group_size && shared_of(&f, a) <= limits->shared_bytes;
}

uint64_t berth__scratch_of_attention(const berth_op_call *call, const berth__kernel_limits *limits) {
  berth__attention a;
  berth__attention_form f;
  berth__attention_of(call, &a);
  if (!berth__attention_form_of(&a, limits, &f) || f.chunks == 1) return 0;
  return 4 * (uint64_t)(a.q.batch * a.q.heads * a.q.length * f.chunks * (a.v.size + BERTH__ATTENTION_SUMS));
}
