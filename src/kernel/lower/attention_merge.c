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
#define AT_ONCE 16u /* records */

typedef struct work {
  const berth__lowering *l;
  const berth__attention *a;
  const berth__attention_form *form;
  berth__kernel *k;
  uint32_t scratch, word;
  const berth__x *at;                       /* batch, head, row, column */
  berth__x chunks;                          /* chunks that have keys in this run */
  berth__x largest, total, sums[MOST_WORD]; /* variables: of the records so far */
} work;

/* An entry of the records from `first` on. They are loaded at once: waiting for one after the other would take most of
 * the time. Records past the last chunk with keys have not been stored; that one is loaded in their place. */
static void load_entries(const work *w, berth__x first, berth__x entry, berth__x *values) {
  berth__kernel *k = w->k;
  const berth__x last = berth__x_affine(k, w->chunks, 1, -1);
  for (uint32_t i = 0; i < AT_ONCE; i++) {
    const berth__x chunk = berth__x_min(k, berth__x_affine(k, first, 1, i), last);
    const berth__x record = berth__attention_record(k, w->a, w->form, w->at[0], w->at[1], w->at[2], chunk);
    values[i] = berth__x_load(k, w->scratch, berth__x_add(k, record, entry));
  }
}

/* The factors of these records, after what was added up before has been rescaled. */
static void find_fades(const work *w, berth__x first, berth__x *fades) {
  berth__kernel *k = w->k;
  berth__x totals[AT_ONCE], total = berth__x_get(k, w->total);
  const berth__x before = berth__x_get(k, w->largest);
  berth__x after = before;
  load_entries(w, first, berth__x_i32(k, BERTH__ATTENTION_TOTAL), totals);
  load_entries(w, first, berth__x_i32(k, BERTH__ATTENTION_LARGEST), fades);
  for (uint32_t i = 0; i < AT_ONCE; i++) {
    const berth__x has_keys = berth__x_lt(k, berth__x_affine(k, first, 1, i), w->chunks);
    fades[i] = berth__x_select(k, has_keys, fades[i], berth__x_f32(k, -INFINITY));
    after = berth__attention_larger(k, after, fades[i]);
  }
  const berth__x fade = berth__attention_weight(k, before, after);
  total = berth__attention_fade(k, total, fade);
  for (uint32_t f = 0; f < w->word; f++)
    berth__x_set(k, w->sums[f], berth__attention_fade(k, berth__x_get(k, w->sums[f]), fade));
  for (uint32_t i = 0; i < AT_ONCE; i++) {
    fades[i] = berth__attention_weight(k, fades[i], after);
    total = berth__x_add(k, total, berth__attention_fade(k, totals[i], fades[i]));
  }
  berth__x_set(k, w->total, total);
  berth__x_set(k, w->largest, after);
}

static void add_records(const work *w) {
  berth__kernel *k = w->k;
  berth__x fades[AT_ONCE], values[MOST_WORD][AT_ONCE];
  const berth__x first = berth__x_loop(k, berth__x_i32(k, 0), w->chunks, AT_ONCE);
  for (uint32_t f = 0; f < w->word; f++)
    load_entries(w, first, berth__x_affine(k, w->at[3], 1, BERTH__ATTENTION_SUMS + f), values[f]);
  find_fades(w, first, fades);
  for (uint32_t f = 0; f < w->word; f++) {
    berth__x sum = berth__x_get(k, w->sums[f]);
    for (uint32_t i = 0; i < AT_ONCE; i++) sum = berth__x_add(k, sum, berth__attention_fade(k, values[f][i], fades[i]));
    berth__x_set(k, w->sums[f], sum);
  }
  berth__x_end(k);
}

/* Stores the thread's element of the result, or all elements of a word, from column at[3] on. */
static void lower_attention_merge_store(berth__lowering *l, const work *w) {
  berth__kernel *k = w->k;
  const berth__x to = berth__attention_at(k, &w->a->out, w->at[0], w->at[1], w->at[2]), first = w->at[3];
  const berth__x divisor =
      berth__attention_divisor(w->l, k, w->a, w->at[1], berth__x_get(k, w->total), berth__x_get(k, w->largest));
  if (w->word > 1) berth__l_word_begin(l, k);
  for (uint32_t f = 0; f < w->word; f++) {
    const berth__x column = berth__x_affine(k, first, 1, f);
    const berth__x place = berth__x_add(k, to, berth__x_affine(k, column, w->a->out.stride, 0));
    if (w->word > 1) berth__l_word_lane(k, f, place);
    berth__l_store(l, k, 0, place, berth__x_div(k, berth__x_get(k, w->sums[f]), divisor));
  }
  if (w->word > 1) berth__l_word_end(l, k, berth__x_add(k, to, first));
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
  work w = {.l = l, .a = a, .form = form, .k = k, .scratch = berth__l_scratch(k, BERTH_F32), .word = word, .at = at};
  const berth__x rows = berth__attention_held(k, a, berth__attention_keys_of(l, k, a, at[0]));
  w.chunks = berth__x_div(k, berth__x_affine(k, rows, 1, form->chunk_keys - 1), berth__x_i32(k, form->chunk_keys));
  w.largest = berth__x_variable(k, berth__x_f32(k, -INFINITY));
  w.total = berth__x_variable(k, berth__x_f32(k, 0));
  for (uint32_t f = 0; f < word; f++) w.sums[f] = berth__x_variable(k, berth__x_f32(k, 0));
  add_records(&w);
  lower_attention_merge_store(l, &w);
  return berth__l_end(l, k, err);
}
