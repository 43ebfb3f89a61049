/* The last kernel of attention with split keys (flash decoding): combines the records of the workgroups that shared
 * the keys, one thread per element of the result. */
#include <math.h>

#include "kernel/lower/attention.h"
#include "kernel/lower/words.h"

berth__x berth__attention_record(berth__kernel *k, const berth__attention *a, const berth__attention_form *form,
                                 berth__x batch, berth__x head, berth__x row, berth__x chunk) {
  berth__x at = berth__x_add(k, berth__x_affine(k, batch, a->q.heads, 0), head);
  at = berth__x_add(k, berth__x_affine(k, at, a->q.length, 0), row);
  at = berth__x_add(k, berth__x_affine(k, at, form->chunks, 0), chunk);
  return berth__x_affine(k, at, a->v.size + BERTH__ATTENTION_SUMS, 0);
}

typedef struct work {
  const berth__lowering *l;
  const berth__attention *a;
  const berth__attention_form *form;
  berth__kernel *k;
  uint32_t scratch;
  const berth__x *at; /* batch, head, row, column */
  berth__x chunks;    /* chunks that have keys in this run */
} work;

static berth__x lower_attention_merge_entry_of(const work *w, berth__x chunk, int64_t entry) {
  const berth__x record = berth__attention_record(w->k, w->a, w->form, w->at[0], w->at[1], w->at[2], chunk);
  return berth__x_affine(w->k, record, 1, entry);
}

static berth__x largest_of(const work *w) {
  berth__kernel *k = w->k;
  const berth__x largest = berth__x_variable(k, berth__x_f32(k, -INFINITY));
  const berth__x chunk = berth__x_loop(k, berth__x_i32(k, 0), w->chunks, 1);
  const berth__x of_chunk =
      berth__x_load(k, w->scratch, lower_attention_merge_entry_of(w, chunk, BERTH__ATTENTION_LARGEST));
  berth__x_set(k, largest, berth__attention_larger(k, berth__x_get(k, largest), of_chunk));
  berth__x_end(k);
  return berth__x_get(k, largest);
}

static berth__x merged(const work *w) {
  berth__kernel *k = w->k;
  const berth__x largest = largest_of(w), zero = berth__x_f32(k, 0);
  const berth__x sum = berth__x_variable(k, zero), total = berth__x_variable(k, zero);
  const berth__x chunk = berth__x_loop(k, berth__x_i32(k, 0), w->chunks, 1);
  const berth__x of_chunk =
      berth__x_load(k, w->scratch, lower_attention_merge_entry_of(w, chunk, BERTH__ATTENTION_LARGEST));
  const berth__x fade = berth__attention_weight(k, of_chunk, largest);
  const berth__x more = berth__x_load(k, w->scratch, lower_attention_merge_entry_of(w, chunk, BERTH__ATTENTION_TOTAL));
  const berth__x at = berth__x_add(k, lower_attention_merge_entry_of(w, chunk, BERTH__ATTENTION_SUMS), w->at[3]);
  const berth__x values = berth__x_load(k, w->scratch, at);
  berth__x_set(k, total, berth__x_add(k, berth__x_get(k, total), berth__attention_fade(k, more, fade)));
  berth__x_set(k, sum, berth__x_add(k, berth__x_get(k, sum), berth__attention_fade(k, values, fade)));
  berth__x_end(k);
  return berth__x_div(k, berth__x_get(k, sum),
                      berth__attention_divisor(w->l, k, w->a, w->at[1], berth__x_get(k, total), largest));
}

/* Stores the thread's element of the result, or all elements of a word, from column at[3] on. */
static void lower_attention_merge_store(berth__lowering *l, work *w, berth__x *at, uint32_t word) {
  berth__kernel *k = w->k;
  const berth__x to = berth__attention_at(k, &w->a->out, at[0], at[1], at[2]), first = at[3];
  if (word > 1) berth__l_word_begin(l, k);
  for (uint32_t f = 0; f < word; f++) {
    at[3] = berth__x_affine(k, first, 1, f);
    const berth__x place = berth__x_add(k, to, berth__x_affine(k, at[3], w->a->out.stride, 0));
    if (word > 1) berth__l_word_lane(k, f, place);
    berth__l_store(l, k, 0, place, merged(w));
  }
  if (word > 1) berth__l_word_end(l, k, berth__x_add(k, to, first));
}

berth_status berth__attention_merge(berth__lowering *l, const berth__attention *a, const berth__attention_form *form,
                                    berth_error *err) {
  const uint32_t word = berth__attention_word(l, a);
  const int64_t dims[4] = {a->q.batch, a->q.heads, a->q.length, a->v.size / word};
  const int64_t threads = dims[0] * dims[1] * dims[2] * dims[3];
  berth__kernel *k = berth__l_begin(l, "merge");
  if (k == NULL) return berth__l_end(l, k, err);
  berth__x at[4];
  k->flops = 4.0 * (double)threads * word * (double)form->chunks;
  k->bytes = 4.0 * (double)threads * word * (double)form->chunks + berth__l_bytes(l, berth__operand_out(l->call, 0));
  berth__l_unravel(k, berth__l_each_alone(l, k, threads), 4, dims, at);
  at[3] = berth__x_affine(k, at[3], word, 0);
  work w = {.l = l, .a = a, .form = form, .k = k, .scratch = berth__l_scratch(k, BERTH_F32), .at = at};
  const berth__x keys = berth__x_affine(k, berth__attention_keys_of(l, k, a, at[0]), 1, form->chunk_keys - 1);
  w.chunks = berth__x_div(k, keys, berth__x_i32(k, form->chunk_keys));
  lower_attention_merge_store(l, &w, at, word);
  return berth__l_end(l, k, err);
}
