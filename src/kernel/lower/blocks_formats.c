/* The formats: decodes quad `index` of a block. base/blocks_split.h describes the bytes of each; here four elements are
 * the four bytes of a word, which shifts and masks decode together. All numbers are u32 except indices, which are
 * i32. */
#include "base/blocks.h"
#include "kernel/lower/blocks.h"

typedef berth__l_blocks blocks;
typedef berth__l_quad quad;

/* ---- Helpers ---- */

static berth__x formats_over(const blocks *b, berth__x a, int64_t by) {
  return berth__x_div(b->k, a, berth__x_i32(b->k, by));
}
static berth__x formats_modulo(const blocks *b, berth__x a, int64_t by) {
  return berth__x_rem(b->k, a, berth__x_i32(b->k, by));
}
static berth__x formats_times(const blocks *b, berth__x a, int64_t by) { return berth__x_affine(b->k, a, by, 0); }

/* (a >> by) & mask */
static berth__x formats_bits(const blocks *b, berth__x a, berth__x by, uint32_t mask) {
  return berth__x_and(b->k, berth__x2(b->k, BERTH__INST_shr, a, by), berth__x_u32(b->k, mask));
}
static berth__x formats_bits_at(const blocks *b, berth__x a, int64_t by, uint32_t mask) {
  return formats_bits(b, a, berth__x_i32(b->k, by), mask);
}
static berth__x formats_up(const blocks *b, berth__x a, int64_t by) {
  return berth__x2(b->k, BERTH__INST_shl, a, berth__x_i32(b->k, by));
}

static berth__x formats_word(blocks *b, int64_t first) { return berth__l_blocks_word(b, first, berth__x_i32(b->k, 0)); }

static berth__x formats_f32(const blocks *b, berth__x a) { return berth__x_convert(b->k, BERTH__NUM_F32, a); }

/* scale * (by - less) */
static berth__x formats_scaled(const blocks *b, berth__x scale, berth__x by, int less) {
  const berth__x number = formats_f32(b, by);
  return berth__x_mul(b->k, scale, less == 0 ? number : berth__x_sub(b->k, number, berth__x_f32(b->k, (float)less)));
}

/* Minus a product, which is rounded before it is added. */
static berth__x formats_opposite(const blocks *b, berth__x product) {
  return berth__x1(b->k, BERTH__INST_neg, berth__x1(b->k, BERTH__INST_rounded, product));
}

/* The bytes of a word as f32. */
static quad formats_unsigned(const blocks *b, berth__x bytes, berth__x factor, berth__x offset) {
  quad q = {.factor = factor, .offset = offset, .bytes = bytes}; /* below 128 */
  for (uint32_t i = 0; i < 4; i++) q.q[i] = berth__x_byte(b->k, bytes, i);
  return q;
}

static quad formats_signed(const blocks *b, berth__x bytes, berth__x factor) {
  const berth__x word = berth__x_bits(b->k, BERTH__NUM_I32, bytes);
  quad q = {.factor = factor, .offset = BERTH__X_NONE, .bytes = bytes};
  for (uint32_t i = 0; i < 4; i++) q.q[i] = berth__x_byte(b->k, word, i);
  return q;
}

/* Entries of the format's table, indexed by the bytes of a word. */
static quad formats_looked_up(blocks *b, berth__x bytes, berth__x factor) {
  quad q = {.factor = factor, .offset = BERTH__X_NONE, .bytes = BERTH__X_NONE};
  for (int i = 0; i < 4; i++) q.q[i] = berth__l_blocks_look_up(b, formats_bits_at(b, bytes, 8 * i, 255));
  return q;
}

/* Spreads four bits, one per byte. */
static berth__x formats_spread(const blocks *b, berth__x four) {
  const berth__x copies = berth__x_mul(b->k, four, berth__x_u32(b->k, 0x00204081u));
  return berth__x_and(b->k, copies, berth__x_u32(b->k, 0x01010101u));
}

/* Four nibbles: 2 n words have 2 n quads of low nibbles, then 2 n of high nibbles. */
static berth__x formats_halves(blocks *b, int64_t first, berth__x start, berth__x i, int64_t n) {
  const berth__x at = berth__x_add(b->k, start, formats_modulo(b, i, n));
  return formats_bits(b, berth__l_blocks_word(b, first, at), formats_times(b, formats_over(b, i, n), 4), 0x0f0f0f0fu);
}

/* ---- Formats of 32 elements ---- */

static quad formats_q8_0(blocks *b, berth__x index) {
  return formats_signed(b, berth__l_blocks_word(b, 2, index), berth__l_blocks_half(b, 0));
}

static berth__x formats_nibbles(blocks *b, int64_t first, berth__x index) {
  return formats_halves(b, first, berth__x_i32(b->k, 0), index, 4);
}

static quad formats_q4_0(blocks *b, berth__x index) {
  return formats_unsigned(b, formats_nibbles(b, 2, index), berth__l_blocks_half(b, 0), BERTH__X_NONE);
}

static quad formats_q4_1(blocks *b, berth__x index) {
  return formats_unsigned(b, formats_nibbles(b, 4, index), berth__l_blocks_half(b, 0), berth__l_blocks_half(b, 2));
}

static berth__x formats_real(blocks *b, int64_t first) {
  return berth__x_bits(b->k, BERTH__NUM_F32, formats_word(b, first));
}

static quad formats_q4_0f(blocks *b, berth__x index) {
  return formats_unsigned(b, formats_nibbles(b, 4, index), formats_real(b, 0), BERTH__X_NONE);
}

static quad formats_q4_1f(blocks *b, berth__x index) {
  return formats_unsigned(b, formats_nibbles(b, 8, index), formats_real(b, 0), formats_real(b, 4));
}

static berth__x formats_fives(blocks *b, int64_t fifth, int64_t halves, berth__x index) {
  const berth__x four = formats_bits(b, formats_word(b, fifth), formats_times(b, index, 4), 15);
  return berth__x_or(b->k, formats_nibbles(b, halves, index), formats_up(b, formats_spread(b, four), 4));
}

static quad formats_q5_0(blocks *b, berth__x index) {
  return formats_unsigned(b, formats_fives(b, 2, 6, index), berth__l_blocks_half(b, 0), BERTH__X_NONE);
}

static quad formats_q5_1(blocks *b, berth__x index) {
  return formats_unsigned(b, formats_fives(b, 4, 8, index), berth__l_blocks_half(b, 0), berth__l_blocks_half(b, 2));
}

static quad formats_iq4_nl(blocks *b, berth__x index) {
  return formats_looked_up(b, formats_nibbles(b, 2, index), berth__l_blocks_half(b, 0));
}

static quad formats_mxfp4(blocks *b, berth__x index) {
  berth__kernel *k = b->k;
  const berth__x e = berth__l_blocks_byte(b, 0, berth__x_i32(k, 0));
  const berth__x small = berth__x2(k, BERTH__INST_shl, berth__x_u32(k, 0x00200000u), formats_bits_at(b, e, 0, 1));
  const berth__x large = formats_up(b, berth__x_sub(k, e, berth__x_u32(k, 1)), 23);
  const berth__x bits = berth__x_select(k, berth__x_lt(k, e, berth__x_u32(k, 2)), small, large);
  return formats_looked_up(b, formats_nibbles(b, 1, index), berth__x_bits(k, BERTH__NUM_F32, bits));
}

/* ---- Formats of 256 elements ---- */

/* Two bits per element: eight words have 32 quads. */
static berth__x formats_pairs(blocks *b, int64_t first, berth__x index) {
  const berth__x at = berth__x_add(b->k, formats_times(b, formats_over(b, index, 32), 8), formats_modulo(b, index, 8));
  const berth__x by = formats_times(b, formats_over(b, formats_modulo(b, index, 32), 8), 2);
  return formats_bits(b, berth__l_blocks_word(b, first, at), by, 0x03030303u);
}

static quad formats_q2_k(blocks *b, berth__x index) {
  const berth__x scales = berth__l_blocks_byte(b, 0, formats_over(b, index, 4));
  const berth__x factor = formats_scaled(b, berth__l_blocks_half(b, 80), formats_bits_at(b, scales, 0, 15), 0);
  const berth__x offset =
      formats_opposite(b, formats_scaled(b, berth__l_blocks_half(b, 82), formats_bits_at(b, scales, 4, 15), 0));
  return formats_unsigned(b, formats_pairs(b, 16, index), factor, offset);
}

static quad formats_q3_k(blocks *b, berth__x index) {
  berth__kernel *k = b->k;
  const berth__x g = formats_over(b, index, 4), of_four = formats_times(b, formats_modulo(b, g, 4), 8);
  const berth__x eights = berth__l_blocks_word(b, 96, formats_over(b, formats_modulo(b, g, 8), 4));
  const berth__x low =
      formats_bits(b, eights, berth__x_add(k, of_four, formats_times(b, formats_over(b, g, 8), 4)), 15);
  const berth__x up =
      formats_bits(b, formats_word(b, 104), berth__x_add(k, of_four, formats_times(b, formats_over(b, g, 4), 2)), 3);
  const berth__x by = berth__x_or(k, low, formats_up(b, up, 4));
  const berth__x third =
      formats_bits(b, berth__l_blocks_word(b, 0, formats_modulo(b, index, 8)), formats_over(b, index, 8), 0x01010101u);
  const berth__x bytes = berth__x_or(k, formats_pairs(b, 32, index), formats_up(b, third, 2));
  return formats_unsigned(b, bytes, formats_scaled(b, berth__l_blocks_half(b, 108), by, 32), BERTH__X_NONE);
}

/* Scales of six bits: those of the first four groups are in `low`; of those of the others, two bits are there, above
 * those of the first, and four in `up`. */
static berth__x formats_k_six(const blocks *b, berth__x is_first, berth__x low, berth__x up, uint32_t every) {
  const berth__x later = berth__x_or(b->k, up, formats_bits_at(b, low, 2, 48 * every));
  return berth__x_select(b->k, is_first, formats_bits_at(b, low, 0, 63 * every), later);
}

/* The factor and the offset of q4_k and q5_k: scales in 12 bytes. Those of two neighbouring groups are made together,
 * in two bytes, if it is known which of the two this is. */
static quad formats_k_quad(blocks *b, berth__x index, berth__x bytes) {
  berth__kernel *k = b->k;
  const berth__x pair = formats_times(b, formats_modulo(b, formats_over(b, index, 16), 2), 16),
                 in_pair = formats_modulo(b, formats_over(b, index, 8), 2),
                 is_first = berth__x_lt(k, formats_over(b, index, 32), berth__x_i32(k, 1));
  uint32_t which = 0;
  const bool is_known = berth__x_is_constant(k, in_pair, &which);
  const uint32_t every = is_known ? 0x0101u : 1;
  const berth__x by = is_known ? pair : berth__x_add(k, pair, formats_times(b, in_pair, 8));
  const berth__x a = berth__x2(k, BERTH__INST_shr, formats_word(b, 4), by),
                 m = berth__x2(k, BERTH__INST_shr, formats_word(b, 8), by),
                 c = berth__x2(k, BERTH__INST_shr, formats_word(b, 12), by);
  const berth__x scale = formats_k_six(b, is_first, a, formats_bits_at(b, c, 0, 15 * every), every),
                 least = formats_k_six(b, is_first, m, formats_bits_at(b, c, 4, 15 * every), every);
  const berth__x factor = is_known ? berth__x_byte(k, scale, which) : formats_f32(b, scale),
                 offset = is_known ? berth__x_byte(k, least, which) : formats_f32(b, least);
  return formats_unsigned(b, bytes, berth__x_mul(k, berth__l_blocks_half(b, 0), factor),
                          formats_opposite(b, berth__x_mul(k, berth__l_blocks_half(b, 2), offset)));
}

static berth__x formats_k_nibbles(blocks *b, int64_t first, berth__x index) {
  return formats_halves(b, first, formats_times(b, formats_over(b, index, 16), 8), formats_modulo(b, index, 16), 8);
}

static quad formats_q4_k(blocks *b, berth__x index) {
  return formats_k_quad(b, index, formats_k_nibbles(b, 16, index));
}

static quad formats_q5_k(blocks *b, berth__x index) {
  const berth__x word = berth__l_blocks_word(b, 16, formats_modulo(b, index, 8));
  const berth__x fifth = formats_up(b, formats_bits(b, word, formats_over(b, index, 8), 0x01010101u), 4);
  return formats_k_quad(b, index, berth__x_or(b->k, formats_k_nibbles(b, 48, index), fifth));
}

static quad formats_q6_k(blocks *b, berth__x index) {
  const berth__x low =
      formats_halves(b, 0, formats_times(b, formats_over(b, index, 32), 16), formats_modulo(b, index, 32), 16);
  const berth__x bytes = berth__x_or(b->k, low, formats_up(b, formats_pairs(b, 128, index), 4));
  const berth__x scale = berth__l_blocks_byte(b, 192, formats_over(b, index, 4));
  const berth__x up = formats_up(b, berth__x_bits(b->k, BERTH__NUM_I32, scale), 24);
  const berth__x by = berth__x2(b->k, BERTH__INST_shr, up, berth__x_i32(b->k, 24));
  return formats_unsigned(b, bytes, formats_scaled(b, berth__l_blocks_half(b, 208), by, 0), BERTH__X_NONE);
}

static quad formats_iq4_xs(blocks *b, berth__x index) {
  const berth__x g = formats_over(b, index, 8);
  const berth__x low = formats_bits(b, formats_word(b, 4), formats_times(b, g, 4), 15);
  const berth__x up = formats_bits(b, formats_word(b, 0), berth__x_affine(b->k, g, 2, 16), 3);
  const berth__x by = berth__x_or(b->k, low, formats_up(b, up, 4));
  const berth__x bytes = formats_halves(b, 8, formats_times(b, g, 4), formats_modulo(b, index, 8), 4);
  return formats_looked_up(b, bytes, formats_scaled(b, berth__l_blocks_half(b, 0), by, 32));
}

/* Spreads two bits of each of four coordinates, one per byte, and maps them to the coordinates: 8, 25, 43. */
static berth__x formats_coordinates(const blocks *b, berth__x eight) {
  berth__kernel *k = b->k;
  const berth__x more = berth__x_or(k, eight, formats_up(b, eight, 6));
  const berth__x all = berth__x_or(k, more, formats_up(b, more, 12));
  const berth__x digits = berth__x_and(k, all, berth__x_u32(k, 0x03030303u));
  const berth__x sum = berth__x_add(k, berth__x_mul(k, digits, berth__x_u32(k, 17)), berth__x_u32(k, 0x08080808u));
  return berth__x_add(k, sum, formats_bits_at(b, digits, 1, 0x01010101u));
}

/* Negates the bytes that have a one in the mask, from 1 to 127. */
static berth__x formats_opposites(const blocks *b, berth__x bytes, berth__x mask) {
  berth__kernel *k = b->k;
  const berth__x all = berth__x_mul(k, mask, berth__x_u32(k, 255));
  return berth__x_add(k, berth__x2(k, BERTH__INST_xor, bytes, all), mask);
}

/* Eight signs from seven, which lie in `word` from bit `by` on: the eighth makes the number of minuses even. */
static berth__x formats_eight_signs(const blocks *b, berth__x word, berth__x by) {
  berth__kernel *k = b->k;
  const berth__x seven = formats_bits(b, word, by, 127);
  berth__x odd = seven;
  for (int down = 4; down > 0; down /= 2)
    odd = berth__x2(k, BERTH__INST_xor, odd, berth__x2(k, BERTH__INST_shr, odd, berth__x_i32(k, down)));
  return berth__x_or(k, seven, formats_up(b, formats_bits_at(b, odd, 0, 1), 7));
}

/* Those of one half of eight elements, one to a byte. */
static berth__x formats_half_of_signs(const blocks *b, berth__x eight, berth__x half) {
  return formats_spread(b, formats_bits(b, eight, formats_times(b, half, 4), 15));
}

/* Half of a point of eight coordinates. The table has two points in a word, as digits. */
static berth__x formats_half_of_point(blocks *b, berth__x point, berth__x half) {
  berth__kernel *k = b->k;
  const berth__x two = berth__l_blocks_look_up(b, berth__x2(k, BERTH__INST_shr, point, berth__x_i32(k, 1)));
  const berth__x of_two = formats_up(b, formats_bits_at(b, point, 0, 1), 4);
  const berth__x at = berth__x_add(k, of_two, berth__x_convert(k, BERTH__NUM_U32, formats_times(b, half, 8)));
  return formats_coordinates(b, formats_bits(b, two, at, 255));
}

/* The block's scale times (scale + 1/2), times `by`. */
static berth__x formats_half_scale(blocks *b, berth__x scale, float by) {
  berth__kernel *k = b->k;
  const berth__x sum = berth__x_add(k, formats_f32(b, scale), berth__x_f32(k, 0.5f));
  return berth__x_mul(k, berth__x_mul(k, berth__l_blocks_half(b, 0), sum), berth__x_f32(k, by));
}

/* Two words per group: four indices of points; and their signs, seven bits each, with the scale in the last four bits.
 * A point is two quads. */
static quad formats_iq2_xxs(blocks *b, berth__x index) {
  const berth__x group = formats_times(b, formats_over(b, index, 8), 2), q = formats_modulo(b, index, 8);
  const berth__x points = berth__l_blocks_word(b, 2, group), word = berth__l_blocks_word(b, 6, group);
  const berth__x which = formats_over(b, q, 2), half = formats_modulo(b, q, 2);
  const berth__x point = formats_bits(b, points, formats_times(b, which, 8), 255);
  const berth__x bytes = formats_half_of_point(b, point, half);
  const berth__x minus = formats_half_of_signs(b, formats_eight_signs(b, word, formats_times(b, which, 7)), half);
  const berth__x factor = formats_half_scale(b, formats_bits_at(b, word, 28, 15), 0.25f);
  return formats_signed(b, formats_opposites(b, bytes, minus), factor);
}

/* Number `i` of four bits, from byte `first` on. */
static berth__x formats_nibble(blocks *b, int64_t first, berth__x i) {
  const berth__x both = berth__l_blocks_byte(b, first, formats_over(b, i, 2));
  return formats_bits(b, both, formats_times(b, formats_modulo(b, i, 2), 4), 15);
}

static quad formats_iq2_xs(blocks *b, berth__x index) {
  const berth__x at = formats_over(b, index, 2), half = formats_modulo(b, index, 2);
  const berth__x two = berth__l_blocks_word(b, 2, formats_over(b, at, 2));
  const berth__x one = formats_bits(b, two, formats_times(b, formats_modulo(b, at, 2), 16), 0xffff);
  const berth__x bytes = formats_half_of_point(b, formats_bits_at(b, one, 0, 511), half);
  const berth__x minus = formats_half_of_signs(b, formats_eight_signs(b, one, berth__x_i32(b->k, 9)), half);
  const berth__x factor = formats_half_scale(b, formats_nibble(b, 66, formats_over(b, index, 4)), 0.25f);
  return formats_signed(b, formats_opposites(b, bytes, minus), factor);
}

static quad formats_iq2_s(blocks *b, berth__x index) {
  const berth__x g = formats_over(b, index, 8), half = formats_modulo(b, index, 2);
  const berth__x at = formats_modulo(b, formats_over(b, index, 2), 4), by = formats_times(b, at, 8);
  const berth__x low = formats_bits(b, berth__l_blocks_word(b, 2, g), by, 255);
  const berth__x up = formats_bits(b, berth__l_blocks_byte(b, 66, g), formats_times(b, at, 2), 3);
  const berth__x bytes = formats_half_of_point(b, berth__x_or(b->k, low, formats_up(b, up, 8)), half);
  const berth__x minus = formats_half_of_signs(b, formats_bits(b, berth__l_blocks_word(b, 34, g), by, 255), half);
  const berth__x factor = formats_half_scale(b, formats_nibble(b, 74, formats_over(b, index, 4)), 0.25f);
  return formats_signed(b, formats_opposites(b, bytes, minus), factor);
}

/* The number of a point of four coordinates, which is a quad and a word of the table, but for its ninth bit. */
static berth__x formats_point_of_four(blocks *b, berth__x index) {
  const berth__x four = berth__l_blocks_word(b, 2, formats_over(b, index, 4));
  return formats_bits(b, four, formats_times(b, formats_modulo(b, index, 4), 8), 255);
}

static quad formats_iq3_xxs(blocks *b, berth__x index) {
  const berth__x word = berth__l_blocks_word(b, 66, formats_over(b, index, 8));
  const berth__x bytes = berth__l_blocks_look_up(b, formats_point_of_four(b, index));
  const berth__x by = formats_times(b, formats_over(b, formats_modulo(b, index, 8), 2), 7);
  const berth__x minus = formats_half_of_signs(b, formats_eight_signs(b, word, by), formats_modulo(b, index, 2));
  const berth__x factor = formats_half_scale(b, formats_bits_at(b, word, 28, 15), 0.5f);
  return formats_signed(b, formats_opposites(b, bytes, minus), factor);
}

static quad formats_iq3_s(blocks *b, berth__x index) {
  const berth__x g = formats_over(b, index, 8), at = formats_modulo(b, index, 8);
  const berth__x ninth = formats_bits(b, berth__l_blocks_byte(b, 66, g), at, 1);
  const berth__x point = berth__x_or(b->k, formats_point_of_four(b, index), formats_up(b, ninth, 8));
  const berth__x bytes = berth__l_blocks_look_up(b, point);
  const berth__x signs = formats_bits(b, berth__l_blocks_word(b, 74, g), formats_times(b, at, 4), 15);
  const berth__x by = berth__x_or(b->k, formats_up(b, formats_nibble(b, 106, g), 1), berth__x_u32(b->k, 1));
  const berth__x factor = formats_scaled(b, berth__l_blocks_half(b, 0), by, 0);
  return formats_signed(b, formats_opposites(b, bytes, formats_spread(b, signs)), factor);
}

/* ---- The table ---- */

static uint32_t formats_float_bits(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}
static uint32_t formats_curve(uint32_t i) { return formats_float_bits((float)berth__block_curve[i]); }
static uint32_t formats_floats(uint32_t i) { return formats_float_bits((float)berth__block_floats[i]); }
static uint32_t formats_grid(uint32_t i) {
  return (uint32_t)berth__block_grid[2 * i] | (uint32_t)berth__block_grid[2 * i + 1] << 16;
}

/* Bytes of coordinates as digits: 8, 25 and 43 are 0, 1 and 2. */
static uint32_t formats_digits(uint64_t point) {
  uint32_t digits = 0;
  for (int j = 0; j < 8; j++) digits |= (uint32_t)((point >> 8 * j & 255) / 17) << 2 * j;
  return digits;
}
static uint32_t formats_points_xs(uint32_t i) {
  return formats_digits(berth__block_points_iq2_xs[2 * i]) | formats_digits(berth__block_points_iq2_xs[2 * i + 1])
                                                                 << 16;
}
static uint32_t formats_points_s(uint32_t i) {
  return formats_digits(berth__block_points_iq2_s[2 * i]) | formats_digits(berth__block_points_iq2_s[2 * i + 1]) << 16;
}
static uint32_t formats_fours_xxs(uint32_t i) { return berth__block_points_iq3_xxs[i]; }
static uint32_t formats_fours_s(uint32_t i) { return berth__block_points_iq3_s[i]; }

const berth__l_format *berth__l_format_of(berth_type type) {
  static const berth__l_format rows[] = {
      [0] = {.quad = formats_q8_0},
      [BERTH_Q4_0 - BERTH_Q8_0] = {.quad = formats_q4_0, .has_rest = true, .bias = 8},
      [BERTH_Q4_1 - BERTH_Q8_0] = {.quad = formats_q4_1, .has_rest = true},
      [BERTH_Q5_0 - BERTH_Q8_0] = {.quad = formats_q5_0, .has_rest = true, .bias = 16},
      [BERTH_Q5_1 - BERTH_Q8_0] = {.quad = formats_q5_1, .has_rest = true},
      [BERTH_Q2_K - BERTH_Q8_0] = {.quad = formats_q2_k, .has_rest = true},
      [BERTH_Q3_K - BERTH_Q8_0] = {.quad = formats_q3_k, .has_rest = true, .bias = 4},
      [BERTH_Q4_K - BERTH_Q8_0] = {.quad = formats_q4_k, .has_rest = true},
      [BERTH_Q5_K - BERTH_Q8_0] = {.quad = formats_q5_k, .has_rest = true},
      [BERTH_Q6_K - BERTH_Q8_0] = {.quad = formats_q6_k, .has_rest = true, .bias = 32},
      [BERTH_IQ2_XXS - BERTH_Q8_0] = {formats_iq2_xxs, false, 0, 128, BERTH__NUM_U32, formats_grid},
      [BERTH_IQ4_NL - BERTH_Q8_0] = {formats_iq4_nl, false, 0, 16, BERTH__NUM_F32, formats_curve},
      [BERTH_IQ4_XS - BERTH_Q8_0] = {formats_iq4_xs, false, 0, 16, BERTH__NUM_F32, formats_curve},
      [BERTH_MXFP4 - BERTH_Q8_0] = {formats_mxfp4, false, 0, 16, BERTH__NUM_F32, formats_floats},
      [BERTH_IQ2_XS - BERTH_Q8_0] = {formats_iq2_xs, false, 0, 256, BERTH__NUM_U32, formats_points_xs},
      [BERTH_IQ2_S - BERTH_Q8_0] = {formats_iq2_s, false, 0, 512, BERTH__NUM_U32, formats_points_s},
      [BERTH_IQ3_XXS - BERTH_Q8_0] = {formats_iq3_xxs, false, 0, 256, BERTH__NUM_U32, formats_fours_xxs},
      [BERTH_IQ3_S - BERTH_Q8_0] = {formats_iq3_s, false, 0, 512, BERTH__NUM_U32, formats_fours_s},
      [BERTH_Q4_0F - BERTH_Q8_0] = {.quad = formats_q4_0f, .has_rest = true, .bias = 8},
      [BERTH_Q4_1F - BERTH_Q8_0] = {.quad = formats_q4_1f, .has_rest = true},
  };
  const int at = (int)type - (int)BERTH_Q8_0;
  return at >= 0 && at < (int)(sizeof rows / sizeof rows[0]) && rows[at].quad != NULL ? &rows[at] : NULL;
}
