/* random_uniform, random_normal: MT19937 as in the reference kernel, in one thread, because every number depends on the
 * ones before it. Numbers of 53 bits are kept in two words, and integers decide which points are in the unit disc, so
 * that exactly the same draws are rejected as in the reference kernel. */
#include "kernel/lower/math.h"

#define WORDS 624
#define MIDDLE 397

typedef struct generator {
  uint32_t words; /* a local array */
  berth__x at;    /* variable, i32 */
} generator;

/* high * 2^32 + low */
typedef struct wide {
  berth__x high, low;
} wide;

static berth__x lower_random_shl(berth__kernel *k, berth__x a, uint32_t by) {
  return berth__x2(k, BERTH__INST_shl, a, berth__x_u32(k, by));
}
static berth__x lower_random_shr(berth__kernel *k, berth__x a, uint32_t by) {
  return berth__x2(k, BERTH__INST_shr, a, berth__x_u32(k, by));
}
static berth__x mixed_with(berth__kernel *k, berth__x a, berth__x b) { return berth__x2(k, BERTH__INST_xor, a, b); }
static berth__x masked(berth__kernel *k, berth__x a, uint32_t mask) {
  return berth__x_and(k, a, berth__x_u32(k, mask));
}
static berth__x truth_as_u32(berth__kernel *k, berth__x truth) { return berth__x_convert(k, BERTH__NUM_U32, truth); }

/* ---- The generator ---- */

static generator lower_random_plant(berth__kernel *k, uint32_t seed) {
  const generator g = {.words = berth__kernel_local(k, BERTH__NUM_U32, WORDS),
                       .at = berth__x_variable(k, berth__x_i32(k, WORDS))};
  const berth__x word = berth__x_variable(k, berth__x_u32(k, seed)), i = berth__x_loop_n(k, WORDS);
  const berth__x last = berth__x_get(k, word);
  berth__x_local_store(k, g.words, i, last);
  const berth__x mixed =
      berth__x_mul(k, mixed_with(k, last, lower_random_shr(k, last, 30)), berth__x_u32(k, 1812433253u));
  const berth__x next = berth__x_convert(k, BERTH__NUM_U32, berth__x_affine(k, i, 1, 1));
  berth__x_set(k, word, berth__x_add(k, mixed, next));
  berth__x_end(k);
  return g;
}

static berth__x word_behind(berth__kernel *k, const generator *g, berth__x i, int64_t by) {
  const berth__x at = berth__x_rem(k, berth__x_affine(k, i, 1, by), berth__x_i32(k, WORDS));
  return berth__x_local_load(k, g->words, at);
}

static void lower_random_refill(berth__kernel *k, const generator *g) {
  const berth__x i = berth__x_loop_n(k, WORDS);
  const berth__x sign = masked(k, word_behind(k, g, i, 0), 0x80000000u);
  const berth__x joined = berth__x_or(k, sign, masked(k, word_behind(k, g, i, 1), 0x7fffffffu));
  const berth__x is_odd = berth__x_ne(k, masked(k, joined, 1), berth__x_u32(k, 0));
  const berth__x factor = berth__x_select(k, is_odd, berth__x_u32(k, 0x9908b0dfu), berth__x_u32(k, 0));
  berth__x_local_store(
      k, g->words, i,
      mixed_with(k, word_behind(k, g, i, MIDDLE), mixed_with(k, lower_random_shr(k, joined, 1), factor)));
  berth__x_end(k);
  berth__x_set(k, g->at, berth__x_i32(k, 0));
}

static berth__x tempered(berth__kernel *k, berth__x x) {
  x = mixed_with(k, x, lower_random_shr(k, x, 11));
  x = mixed_with(k, x, masked(k, lower_random_shl(k, x, 7), 0x9d2c5680u));
  x = mixed_with(k, x, masked(k, lower_random_shl(k, x, 15), 0xefc60000u));
  return mixed_with(k, x, lower_random_shr(k, x, 18));
}

/* 53 bits from two words. Words are consumed in pairs, and there is an even number of them. */
static wide next_bits(berth__kernel *k, const generator *g) {
  berth__x_if(k, berth__x_eq(k, berth__x_get(k, g->at), berth__x_i32(k, WORDS)));
  lower_random_refill(k, g);
  berth__x_end(k);
  const berth__x at = berth__x_get(k, g->at);
  const berth__x first = lower_random_shr(k, tempered(k, berth__x_local_load(k, g->words, at)), 5);
  const berth__x second =
      lower_random_shr(k, tempered(k, berth__x_local_load(k, g->words, berth__x_affine(k, at, 1, 1))), 6);
  berth__x_set(k, g->at, berth__x_affine(k, at, 1, 2));
  return (wide){.high = lower_random_shr(k, first, 6), .low = berth__x_or(k, lower_random_shl(k, first, 26), second)};
}

/* ---- Numbers ---- */

/* The 32 bits of v from bit `from` on, with the last one sticky: it is set if any lower bit is. If v has more bits than
 * an f32, this rounds as v itself does. */
static berth__x bits_from(berth__kernel *k, wide v, uint32_t from) {
  const berth__x cut = masked(k, v.low, (1u << from) - 1);
  const berth__x any = truth_as_u32(k, berth__x_ne(k, cut, berth__x_u32(k, 0)));
  return berth__x_or(k, berth__x_or(k, lower_random_shl(k, v.high, 32 - from), lower_random_shr(k, v.low, from)), any);
}

static berth__x lower_random_scaled(berth__kernel *k, berth__x bits, float by) {
  return berth__m_scale(k, berth__x_convert(k, BERTH__NUM_F32, bits), by);
}

/* v / 2^53, rounded once. */
static berth__x uniform_of(berth__kernel *k, wide v) {
  const berth__x many = berth__x_u32(k, 1u << 25); /* enough bits to round correctly */
  const berth__x top = bits_from(k, v, 21), middle = bits_from(k, v, 14), low = bits_from(k, v, 7);
  berth__x y = lower_random_scaled(k, v.low, 0x1p-53f);
  y = berth__x_select(k, berth__x_ne(k, v.high, berth__x_u32(k, 0)), lower_random_scaled(k, low, 0x1p-46f), y);
  y = berth__x_select(k, berth__x_le(k, berth__x_u32(k, 1u << 7), v.high), lower_random_scaled(k, middle, 0x1p-39f), y);
  return berth__x_select(k, berth__x_le(k, many, top), lower_random_scaled(k, top, 0x1p-32f), y);
}

/* 2 v / 2^53 - 1: its sign, and its magnitude as a multiple of 2^-32. */
typedef struct coordinate {
  berth__x is_negative, size;
} coordinate;

static coordinate coordinate_of(berth__kernel *k, wide v) {
  const berth__x half = berth__x_u32(k, 1u << 20), zero = berth__x_u32(k, 0);
  const berth__x is_negative = berth__x_lt(k, v.high, half);
  const berth__x borrow = truth_as_u32(k, berth__x_ne(k, v.low, zero));
  const berth__x low = berth__x_select(k, is_negative, berth__x_sub(k, zero, v.low), v.low);
  const berth__x below = berth__x_sub(k, berth__x_sub(k, half, v.high), borrow);
  const berth__x high = berth__x_select(k, is_negative, below, berth__x_sub(k, v.high, half));
  const berth__x size = berth__x_or(k, lower_random_shl(k, high, 12), lower_random_shr(k, low, 20));
  return (coordinate){.is_negative = is_negative,
                      .size = berth__x_select(k, berth__x_eq(k, high, half), berth__x_u32(k, UINT32_MAX), size)};
}

static wide lower_random_square_of(berth__kernel *k, berth__x a) {
  const berth__x low = masked(k, a, 0xffff), high = lower_random_shr(k, a, 16), middle = berth__x_mul(k, low, high);
  const berth__x least = berth__x_mul(k, low, low), sum = berth__x_add(k, least, lower_random_shl(k, middle, 17));
  const berth__x carry = truth_as_u32(k, berth__x_lt(k, sum, least));
  const berth__x most = berth__x_add(k, berth__x_mul(k, high, high), lower_random_shr(k, middle, 15));
  return (wide){.high = berth__x_add(k, most, carry), .low = sum};
}

static berth__x parts_as_f32(berth__kernel *k, wide v) {
  return berth__x_add(k, lower_random_scaled(k, v.high, 0x1p-32f), lower_random_scaled(k, v.low, 0x1p-64f));
}

/* The square of the distance from 0, as a multiple of 2^-64; is_in: it is below 1. */
typedef struct distance {
  wide square;
  berth__x is_in;
} distance;

static distance distance_of(berth__kernel *k, coordinate x, coordinate y) {
  const wide a = lower_random_square_of(k, x.size), b = lower_random_square_of(k, y.size);
  const berth__x low = berth__x_add(k, a.low, b.low), carry = truth_as_u32(k, berth__x_lt(k, low, a.low));
  const berth__x sum = berth__x_add(k, a.high, b.high), high = berth__x_add(k, sum, carry);
  const berth__x is_over = berth__x_or(k, berth__x_lt(k, sum, a.high), berth__x_lt(k, high, sum));
  const berth__x is_zero = berth__x_eq(k, berth__x_or(k, high, low), berth__x_u32(k, 0));
  const berth__x is_out = berth__x_or(k, is_over, is_zero);
  return (distance){.square = {.high = high, .low = low}, .is_in = berth__x1(k, BERTH__INST_not, is_out)};
}

/* sqrt(-2 log(square) / square); near 1 via 1 - square, which has more digits. */
static berth__x factor_of(berth__kernel *k, wide square) {
  const berth__x zero = berth__x_u32(k, 0);
  const berth__x low = berth__x_sub(k, zero, square.low);
  const berth__x carry = truth_as_u32(k, berth__x_eq(k, square.low, zero));
  const wide lacks = {.high = berth__x_add(k, berth__x1(k, BERTH__INST_not, square.high), carry), .low = low};
  const berth__x s = parts_as_f32(k, square), below_1 = berth__x1(k, BERTH__INST_neg, parts_as_f32(k, lacks));
  const berth__x is_near_1 = berth__m_above(k, s, 0.5f);
  const berth__x safe = berth__x_select(k, is_near_1, below_1, berth__x_f32(k, -0.5f));
  const berth__x log = berth__x_select(k, is_near_1, berth__m_log1p(k, safe), berth__m_log(k, s));
  return berth__x1(k, BERTH__INST_sqrt, berth__x_div(k, berth__m_scale(k, log, -2), s));
}

static berth__x signed_as_f32(berth__kernel *k, coordinate x) {
  const berth__x size = lower_random_scaled(k, x.size, 0x1p-32f);
  return berth__x_select(k, x.is_negative, berth__x1(k, BERTH__INST_neg, size), size);
}

/* ---- Draws ---- */

static void lower_random_store(const berth__lowering *l, berth__kernel *k, berth__x index, berth__x value) {
  berth__l_store(l, k, 0, berth__l_place_flat(k, &l->call->out[0], index), value);
}

static void draw_uniform(const berth__lowering *l, berth__kernel *k, const generator *g, int64_t count) {
  const berth__x i = berth__x_loop_n(k, count);
  lower_random_store(l, k, i, uniform_of(k, next_bits(k, g)));
  berth__x_end(k);
}

/* Draws points until one is in the disc; it gives two numbers. */
static void draw_normal(const berth__lowering *l, berth__kernel *k, const generator *g, int64_t count) {
  const berth__x pair = berth__x_loop(k, berth__x_i32(k, 0), berth__x_i32(k, count), 2);
  const berth__x second = berth__x_affine(k, pair, 1, 1);
  berth__x_loop_n(k, INT32_MAX);
  const coordinate x = coordinate_of(k, next_bits(k, g)), y = coordinate_of(k, next_bits(k, g));
  const distance d = distance_of(k, x, y);
  berth__x_if(k, d.is_in);
  const berth__x factor = factor_of(k, d.square);
  lower_random_store(l, k, pair, berth__x_mul(k, factor, signed_as_f32(k, y)));
  berth__x_if(k, berth__x_lt(k, second, berth__x_i32(k, count)));
  lower_random_store(l, k, second, berth__x_mul(k, factor, signed_as_f32(k, x)));
  berth__x_end(k);
  berth__x_break(k);
  berth__x_end(k);
  berth__x_end(k);
  berth__x_end(k);
}

berth_status berth__lower_random(berth__lowering *l, berth_error *err) {
  const int64_t count = berth__count(&l->call->out[0]), seed = l->call->attrs[BERTH__RANDOM_SEED].i;
  if (count == 0) return BERTH_OK;
  if (seed < 0)
    return berth__fail(
        err, BERTH_UNSUPPORTED,
        "draws without a seed come from the clock, which GPU kernels cannot read; give attribute 'seed'");
  berth__kernel *k = berth__l_begin(l, NULL);
  const generator g = lower_random_plant(k, (uint32_t)seed);
  if (l->op->code == BERTH__OP_random_normal)
    draw_normal(l, k, &g, count);
  else
    draw_uniform(l, k, &g, count);
  return berth__l_end(l, k, err);
}
