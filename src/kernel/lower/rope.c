/* rope (rotary position embedding): pairs of elements are rotated by an angle that grows with the position. */
#include <math.h>

#include "kernel/lower/math.h"
#include "ops/heads.h"

typedef struct job {
  const berth__lowering *l;
  berth__heads x, out;
  int64_t dims, pairs;
  bool has_tables, is_interleaved, is_packed;
} job;

/* The coordinates of a thread. */
typedef struct spot {
  berth__x batch, head, row, item; /* item: a pair or, after the pairs, an element that is not rotated */
} spot;

static job lower_rope_describe(const berth__lowering *l) {
  const berth_op_call *call = l->call;
  job j = {.l = l,
           .x = berth__heads_of(&call->in[BERTH__ROPE_X], call->attrs[BERTH__ROPE_HEADS].i),
           .out = berth__heads_of(&call->out[0], call->attrs[BERTH__ROPE_HEADS].i),
           .has_tables = berth__l_has(l, BERTH__ROPE_SIN),
           .is_interleaved = call->attrs[BERTH__ROPE_INTERLEAVED].i != 0,
           .is_packed = call->in[BERTH__ROPE_X].rank < 4};
  j.dims = call->attrs[BERTH__ROPE_DIMS].i == 0 ? j.x.size : call->attrs[BERTH__ROPE_DIMS].i;
  j.pairs = j.dims / 2;
  return j;
}

/* ---- Angles ---- */

#define PI 3.14159265358979323846
#define LOW_BITS 16u

/* How far a step of the position turns pair i, as a fraction of a whole turn: the first 32 binary digits, or the next
 * 16. An f32 would do for the first few hundred positions only. */
static uint32_t turn_of_step(const job *j, int64_t pair, bool low) {
  const double turn = pow(j->l->call->attrs[BERTH__ROPE_THETA].f, -2.0 * (double)pair / (double)j->dims) / (2 * PI);
  const double digits = (turn - floor(turn)) * 0x1p32, whole = floor(digits);
  return low ? (uint32_t)((digits - whole) * (double)(1u << LOW_BITS)) : (uint32_t)whole;
}

/* Entry `pair` of the list of all turns, from `first` on: selected by the bits of the pair's number. */
static berth__x turn_of(const job *j, berth__kernel *k, berth__x pair, int64_t first, int64_t n, bool low) {
  if (n == 1) return berth__x_u32(k, turn_of_step(j, first < j->pairs ? first : j->pairs - 1, low));
  const int64_t half = n / 2;
  const berth__x bit = berth__x_and(k, pair, berth__x_i32(k, half));
  return berth__x_select(k, berth__x_ne(k, bit, berth__x_i32(k, 0)), turn_of(j, k, pair, first + half, half, low),
                         turn_of(j, k, pair, first, half, low));
}

/* position * turn: whole turns overflow and vanish. */
static void angle_by_position(const job *j, berth__kernel *k, berth__x row, berth__x pair, berth__x *sine,
                              berth__x *cosine) {
  int64_t n = 1;
  while (n < j->pairs) n *= 2;
  const berth__x position = berth__l_load(j->l, k, BERTH__ROPE_POSITIONS, row);
  const berth__x count = berth__x_bits(k, BERTH__NUM_U32, berth__x1(k, BERTH__INST_abs, position));
  const berth__x high = turn_of(j, k, pair, 0, n, false), low = turn_of(j, k, pair, 0, n, true);
  const berth__x by = berth__x_u32(k, LOW_BITS), part = berth__x_and(k, count, berth__x_u32(k, (1u << LOW_BITS) - 1));
  const berth__x fine = berth__x_add(k, berth__x_mul(k, berth__x2(k, BERTH__INST_shr, count, by), low),
                                     berth__x2(k, BERTH__INST_shr, berth__x_mul(k, part, low), by));
  berth__m_sin_cos_of_turns(k, berth__x_add(k, berth__x_mul(k, count, high), fine), sine, cosine);
  *sine = berth__x_select(k, berth__x_lt(k, position, berth__x_i32(k, 0)), berth__x1(k, BERTH__INST_neg, *sine), *sine);
}

static void find_angle(const job *j, berth__kernel *k, const spot *s, berth__x *sine, berth__x *cosine) {
  const bool by_batch = j->l->call->in[BERTH__ROPE_POSITIONS].rank == (j->has_tables ? 3u : 2u);
  const berth__x row = by_batch ? berth__x_add(k, berth__x_affine(k, s->batch, j->x.length, 0), s->row) : s->row;
  if (!j->has_tables) {
    angle_by_position(j, k, row, s->item, sine, cosine);
    return;
  }
  const berth__x at = berth__x_add(k, berth__x_affine(k, row, j->pairs, 0), s->item);
  *cosine = berth__l_load(j->l, k, BERTH__ROPE_COS, at);
  *sine = berth__l_load(j->l, k, BERTH__ROPE_SIN, at);
}

/* ---- Elements ---- */

static berth__x lower_rope_place(berth__kernel *k, const berth__heads *h, const spot *s, berth__x element) {
  const berth__x outer =
      berth__x_add(k, berth__x_affine(k, s->batch, h->batch_stride, 0), berth__x_affine(k, s->head, h->head_stride, 0));
  const berth__x inner =
      berth__x_add(k, berth__x_affine(k, s->row, h->row_stride, 0), berth__x_affine(k, element, h->stride, 0));
  return berth__x_add(k, outer, inner);
}

static void turn_pair(const job *j, berth__kernel *k, const spot *s) {
  const berth__x i = j->is_interleaved ? berth__x_affine(k, s->item, 2, 0) : s->item;
  const berth__x other = berth__x_affine(k, i, 1, j->is_interleaved ? 1 : j->pairs);
  const berth__x a = berth__l_load(j->l, k, BERTH__ROPE_X, lower_rope_place(k, &j->x, s, i));
  const berth__x b = berth__l_load(j->l, k, BERTH__ROPE_X, lower_rope_place(k, &j->x, s, other));
  berth__x sine, cosine;
  find_angle(j, k, s, &sine, &cosine);
  const berth__x first = berth__x_sub(k, berth__x_mul(k, a, cosine), berth__x_mul(k, b, sine));
  const berth__x second = berth__x_add(k, berth__x_mul(k, a, sine), berth__x_mul(k, b, cosine));
  berth__l_store(j->l, k, 0, lower_rope_place(k, &j->out, s, i), first);
  berth__l_store(j->l, k, 0, lower_rope_place(k, &j->out, s, other), second);
}

static void keep_element(const job *j, berth__kernel *k, const spot *s) {
  const berth__x element = berth__x_affine(k, s->item, 1, j->pairs); /* a pair is one item, but two elements */
  berth__l_store(j->l, k, 0, lower_rope_place(k, &j->out, s, element),
                 berth__l_load(j->l, k, BERTH__ROPE_X, lower_rope_place(k, &j->x, s, element)));
}

/* In memory order of the elements. */
static spot spot_of(const job *j, berth__kernel *k, berth__x index, int64_t items) {
  const int64_t packed[] = {j->x.batch, j->x.length, j->x.heads, items};
  const int64_t apart[] = {j->x.batch, j->x.heads, j->x.length, items};
  berth__x at[4];
  berth__l_unravel(k, index, 4, j->is_packed ? packed : apart, at);
  return (spot){.batch = at[0], .row = at[j->is_packed ? 1 : 2], .head = at[j->is_packed ? 2 : 1], .item = at[3]};
}

berth_status berth__lower_rope(berth__lowering *l, berth_error *err) {
  const job j = lower_rope_describe(l);
  const int64_t items = j.x.size - j.pairs, count = j.x.batch * j.x.heads * j.x.length * items;
  if (count == 0) return BERTH_OK;
  berth__kernel *k = berth__l_begin(l, NULL);
  const spot s = spot_of(&j, k, berth__l_each(l, k, count), items);
  if (j.pairs > 0) {
    berth__x_if(k, berth__x_lt(k, s.item, berth__x_i32(k, j.pairs)));
    turn_pair(&j, k, &s);
    berth__x_else(k);
    keep_element(&j, k, &s);
    berth__x_end(k);
  } else {
    keep_element(&j, k, &s);
  }
  return berth__l_end(l, k, err);
}
