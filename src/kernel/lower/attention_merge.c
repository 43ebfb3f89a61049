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

#define MOST_WORD 4 /* elements */

typedef struct work {
  const berth__lowering *l;
  const berth__attention *a;
  const berth__attention_form *form;
  berth__kernel *k;
  uint32_t scratch;
  const berth__x *at; /* batch, head, row, column */
  berth__x chunks;    /* chunks that have keys in this run */
} work;

/* An entry of each record. All are loaded at once: waiting for one after the other would take most of the time. Records
 * past the last chunk with keys have not been stored; the first one is loaded in their place. */
static void load_entries(const work *w, berth__x entry, berth__x *values) {
  berth__kernel *k = w->k;
  for (uint32_t c = 0; c < w->form->chunks; c++) {
    const berth__x chunk = berth__x_i32(k, c), has_keys = berth__x_lt(k, chunk, w->chunks);
    const berth__x stored = berth__x_select(k, has_keys, chunk, berth__x_i32(k, 0));
    const berth__x record = berth__attention_record(k, w->a, w->form, w->at[0], w->at[1], w->at[2], stored);
    values[c] = berth__x_load(k, w->scratch, berth__x_add(k, record, entry));
  }
}

/* The records' factors, the row's maximum, and the total of its weights. */
static berth__x find_fades(const work *w, berth__x *fades, berth__x *largest) {
  berth__kernel *k = w->k;
  berth__x totals[BERTH__ATTENTION_CHUNKS], total = berth__x_f32(k, 0);
  *largest = berth__x_f32(k, -INFINITY);
  load_entries(w, berth__x_i32(k, BERTH__ATTENTION_LARGEST), fades);
  load_entries(w, berth__x_i32(k, BERTH__ATTENTION_TOTAL), totals);
  for (uint32_t c = 0; c < w->form->chunks; c++) {
    const berth__x has_keys = berth__x_lt(k, berth__x_i32(k, c), w->chunks);
    fades[c] = berth__x_select(k, has_keys, fades[c], berth__x_f32(k, -INFINITY));
    *largest = berth__attention_larger(k, *largest, fades[c]);
  }
  for (uint32_t c = 0; c < w->form->chunks; c++) {
    fades[c] = berth__attention_weight(k, fades[c], *largest);
    total = berth__x_add(k, total, berth__attention_fade(k, totals[c], fades[c]));
  }
  return total;
}

/* Stores the thread's element of the result, or all elements of a word, from column at[3] on. */
static void lower_attention_merge_store(berth__lowering *l, const work *w, uint32_t word) {
  berth__kernel *k = w->k;
  const berth__x *at = w->at, first = at[3];
  const berth__x to = berth__attention_at(k, &w->a->out, at[0], at[1], at[2]);
  berth__x fades[BERTH__ATTENTION_CHUNKS], values[MOST_WORD][BERTH__ATTENTION_CHUNKS], largest;
  for (uint32_t f = 0; f < word; f++)
    load_entries(w, berth__x_affine(k, first, 1, BERTH__ATTENTION_SUMS + f), values[f]);
  const berth__x total = find_fades(w, fades, &largest);
  const berth__x divisor = berth__attention_divisor(w->l, k, w->a, at[1], total, largest);
  if (word > 1) berth__l_word_begin(l, k);
  for (uint32_t f = 0; f < word; f++) {
    const berth__x column = berth__x_affine(k, first, 1, f);
    const berth__x place = berth__x_add(k, to, berth__x_affine(k, column, w->a->out.stride, 0));
    berth__x sum = berth__x_f32(k, 0);
    for (uint32_t c = 0; c < w->form->chunks; c++)
      sum = berth__x_add(k, sum, berth__attention_fade(k, values[f][c], fades[c]));
    if (word > 1) berth__l_word_lane(k, f, place);
    berth__l_store(l, k, 0, place, berth__x_div(k, sum, divisor));
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
  lower_attention_merge_store(l, &w, word);
  return berth__l_end(l, k, err);
}
