/* Blocks as kernels see them: bytes, and f16 where a block has an even number of bytes. Each format is integers with a
 * factor and an offset, as base/blocks.c takes them apart; here for one element at a time. */
#include "kernel/lower/blocks.h"

#include "base/blocks.h"

/* The block that an element lies in, and which of its elements it is. */
typedef struct spot {
  const berth__lowering *l;
  berth__kernel *k;
  uint32_t operand;
  int64_t bytes; /* of a block */
  berth__x block, lane;
} spot;

/* x = factor * q + offset; offset is BERTH__X_NONE where there is none. */
typedef struct parts {
  berth__x q, factor, offset;
} parts;

/* ---- Small steps, all in i32 ---- */

static berth__x blocks_byte(const spot *s, berth_type type, int64_t first, berth__x index) {
  const berth__x at = berth__x_add(s->k, berth__x_affine(s->k, s->block, s->bytes, first), index);
  const berth__x byte = berth__x_load(s->k, berth__l_buffer(s->l, s->k, s->operand, type), at);
  return berth__x_convert(s->k, BERTH__NUM_I32, byte);
}

static berth__x blocks_u8(const spot *s, int64_t first, berth__x index) {
  return blocks_byte(s, BERTH_U8, first, index);
}

static berth__x blocks_scale(const spot *s, int64_t first) {
  const berth__x at = berth__x_affine(s->k, s->block, s->bytes / 2, first / 2);
  return berth__x_load(s->k, berth__l_buffer(s->l, s->k, s->operand, BERTH_F16), at);
}

static berth__x over(const spot *s, berth__x a, int64_t by) { return berth__x_div(s->k, a, berth__x_i32(s->k, by)); }
static berth__x modulo(const spot *s, berth__x a, int64_t by) { return berth__x_rem(s->k, a, berth__x_i32(s->k, by)); }
static berth__x affine(const spot *s, berth__x a, int64_t factor, int64_t offset) {
  return berth__x_affine(s->k, a, factor, offset);
}

/* (a >> by) & mask */
static berth__x blocks_bits(const spot *s, berth__x a, berth__x by, int64_t mask) {
  return berth__x_and(s->k, berth__x2(s->k, BERTH__INST_shr, a, by), berth__x_i32(s->k, mask));
}
static berth__x blocks_bits_at(const spot *s, berth__x a, int64_t by, int64_t mask) {
  return blocks_bits(s, a, berth__x_i32(s->k, by), mask);
}

static berth__x blocks_is_below(const spot *s, berth__x a, int64_t end) {
  return berth__x_lt(s->k, a, berth__x_i32(s->k, end));
}

static berth__x blocks_times(const spot *s, berth__x scale, berth__x by) {
  return berth__x_mul(s->k, scale, berth__x_convert(s->k, BERTH__NUM_F32, by));
}

/* -(scale * by), rounded before it is added. */
static berth__x blocks_minus(const spot *s, berth__x scale, berth__x by) {
  const berth__x product = berth__x1(s->k, BERTH__INST_rounded, blocks_times(s, scale, by));
  return berth__x1(s->k, BERTH__INST_neg, product);
}

/* Element i of 2 n that lie two a byte: the low halves of n bytes, then the high ones. */
static berth__x blocks_half(const spot *s, int64_t first, berth__x start, berth__x i, int64_t n) {
  const berth__x byte = blocks_u8(s, first, berth__x_add(s->k, start, modulo(s, i, n)));
  return blocks_bits(s, byte, affine(s, over(s, i, n), 4, 0), 15);
}

/* Word `index` of a table, chosen bit by bit: kernels have no arrays of constants. n is a power of two up to 128. */
static berth__x blocks_word(const spot *s, const uint32_t *table, uint32_t n, berth__x index) {
  berth__x words[128];
  for (uint32_t i = 0; i < n; i++) words[i] = berth__x_u32(s->k, table[i]);
  for (uint32_t bit = 0; n > 1; bit++, n /= 2) {
    const berth__x zero = berth__x_i32(s->k, 0);
    const berth__x is_set = berth__x_ne(s->k, blocks_bits_at(s, index, bit, 1), zero);
    for (uint32_t i = 0; i < n / 2; i++) words[i] = berth__x_select(s->k, is_set, words[2 * i + 1], words[2 * i]);
  }
  return words[0];
}

/* Entry q of sixteen signed bytes. */
static berth__x blocks_look_up(const spot *s, const int8_t *table, berth__x q) {
  uint32_t words[4] = {0};
  for (uint32_t i = 0; i < 16; i++) words[i / 4] |= (uint32_t)(uint8_t)table[i] << i % 4 * 8;
  const berth__x word = berth__x_bits(s->k, BERTH__NUM_I32, blocks_word(s, words, 4, over(s, q, 4)));
  const berth__x up = berth__x2(s->k, BERTH__INST_shl, word, affine(s, modulo(s, q, 4), -8, 24));
  return berth__x2(s->k, BERTH__INST_shr, up, berth__x_i32(s->k, 24));
}

/* ---- Formats of 32 elements ---- */

static parts blocks_q8_0(const spot *s) {
  return (parts){blocks_byte(s, BERTH_I8, 2, s->lane), blocks_scale(s, 0), BERTH__X_NONE};
}

static berth__x blocks_nibble(const spot *s, int64_t first) {
  return blocks_half(s, first, berth__x_i32(s->k, 0), s->lane, 16);
}

static parts blocks_q4_0(const spot *s) {
  return (parts){affine(s, blocks_nibble(s, 2), 1, -8), blocks_scale(s, 0), BERTH__X_NONE};
}

static parts blocks_q4_1(const spot *s) { return (parts){blocks_nibble(s, 4), blocks_scale(s, 0), blocks_scale(s, 2)}; }

static berth__x blocks_five(const spot *s, int64_t fifth, int64_t halves) {
  const berth__x byte = blocks_u8(s, fifth, over(s, s->lane, 8));
  const berth__x bit = blocks_bits(s, byte, modulo(s, s->lane, 8), 1);
  return berth__x_add(s->k, blocks_nibble(s, halves), affine(s, bit, 16, 0));
}

static parts blocks_q5_0(const spot *s) {
  return (parts){affine(s, blocks_five(s, 2, 6), 1, -16), blocks_scale(s, 0), BERTH__X_NONE};
}

static parts blocks_q5_1(const spot *s) {
  return (parts){blocks_five(s, 4, 8), blocks_scale(s, 0), blocks_scale(s, 2)};
}

static parts blocks_iq4_nl(const spot *s) {
  return (parts){blocks_look_up(s, berth__block_curve, blocks_nibble(s, 2)), blocks_scale(s, 0), BERTH__X_NONE};
}

static parts blocks_mxfp4(const spot *s) {
  berth__kernel *k = s->k;
  const berth__x e = blocks_u8(s, 0, berth__x_i32(k, 0));
  const berth__x small = berth__x2(k, BERTH__INST_shl, berth__x_i32(k, 0x00200000), blocks_bits_at(s, e, 0, 1));
  const berth__x large = berth__x2(k, BERTH__INST_shl, affine(s, e, 1, -1), berth__x_i32(k, 23));
  const berth__x bits = berth__x_select(k, blocks_is_below(s, e, 2), small, large);
  return (parts){blocks_look_up(s, berth__block_floats, blocks_nibble(s, 1)), berth__x_bits(k, BERTH__NUM_F32, bits),
                 BERTH__X_NONE};
}

/* ---- Formats of 256 elements ---- */

/* Two bits of each element: 32 bytes have 128. */
static berth__x blocks_pair(const spot *s, int64_t first) {
  const berth__x index = berth__x_add(s->k, affine(s, over(s, s->lane, 128), 32, 0), modulo(s, s->lane, 32));
  return blocks_bits(s, blocks_u8(s, first, index), affine(s, over(s, modulo(s, s->lane, 128), 32), 2, 0), 3);
}

static parts blocks_q2_k(const spot *s) {
  const berth__x scales = blocks_u8(s, 0, over(s, s->lane, 16));
  return (parts){blocks_pair(s, 16), blocks_times(s, blocks_scale(s, 80), blocks_bits_at(s, scales, 0, 15)),
                 blocks_minus(s, blocks_scale(s, 82), blocks_bits_at(s, scales, 4, 15))};
}

static parts blocks_q3_k(const spot *s) {
  berth__kernel *k = s->k;
  const berth__x g = over(s, s->lane, 16);
  const berth__x low = blocks_bits(s, blocks_u8(s, 96, modulo(s, g, 8)), affine(s, over(s, g, 8), 4, 0), 15);
  const berth__x up = blocks_bits(s, blocks_u8(s, 104, modulo(s, g, 4)), affine(s, over(s, g, 4), 2, 0), 3);
  const berth__x by = berth__x_add(k, low, affine(s, up, 16, -32));
  const berth__x third = blocks_bits(s, blocks_u8(s, 0, modulo(s, s->lane, 32)), over(s, s->lane, 32), 1);
  return (parts){berth__x_add(k, blocks_pair(s, 32), affine(s, third, 4, -4)),
                 blocks_times(s, blocks_scale(s, 108), by), BERTH__X_NONE};
}

/* The factor and the offset of q4_k and q5_k: scales of six bits in 12 bytes. */
static void blocks_k_scales(const spot *s, parts *p) {
  berth__kernel *k = s->k;
  const berth__x g = over(s, s->lane, 32), four = modulo(s, g, 4), is_first = blocks_is_below(s, g, 4);
  const berth__x a = blocks_u8(s, 4, four), b = blocks_u8(s, 8, four), c = blocks_u8(s, 12, four);
  const berth__x scale = berth__x_add(k, blocks_bits_at(s, c, 0, 15), affine(s, blocks_bits_at(s, a, 6, 3), 16, 0));
  const berth__x least = berth__x_add(k, blocks_bits_at(s, c, 4, 15), affine(s, blocks_bits_at(s, b, 6, 3), 16, 0));
  p->factor = blocks_times(s, blocks_scale(s, 0), berth__x_select(k, is_first, blocks_bits_at(s, a, 0, 63), scale));
  p->offset = blocks_minus(s, blocks_scale(s, 2), berth__x_select(k, is_first, blocks_bits_at(s, b, 0, 63), least));
}

static berth__x blocks_k_nibble(const spot *s, int64_t first) {
  return blocks_half(s, first, affine(s, over(s, s->lane, 64), 32, 0), modulo(s, s->lane, 64), 32);
}

static parts blocks_q4_k(const spot *s) {
  parts p = {.q = blocks_k_nibble(s, 16)};
  blocks_k_scales(s, &p);
  return p;
}

static parts blocks_q5_k(const spot *s) {
  const berth__x fifth = blocks_bits(s, blocks_u8(s, 16, modulo(s, s->lane, 32)), over(s, s->lane, 32), 1);
  parts p = {.q = berth__x_add(s->k, blocks_k_nibble(s, 48), affine(s, fifth, 16, 0))};
  blocks_k_scales(s, &p);
  return p;
}

static parts blocks_q6_k(const spot *s) {
  const berth__x low = blocks_half(s, 0, affine(s, over(s, s->lane, 128), 64, 0), modulo(s, s->lane, 128), 64);
  const berth__x by = blocks_byte(s, BERTH_I8, 192, over(s, s->lane, 16));
  return (parts){berth__x_add(s->k, low, affine(s, blocks_pair(s, 128), 16, -32)),
                 blocks_times(s, blocks_scale(s, 208), by), BERTH__X_NONE};
}

static parts blocks_iq4_xs(const spot *s) {
  berth__kernel *k = s->k;
  const berth__x g = over(s, s->lane, 32);
  const berth__x low = blocks_bits(s, blocks_u8(s, 4, over(s, g, 2)), affine(s, modulo(s, g, 2), 4, 0), 15);
  const berth__x up = blocks_bits(s, blocks_u8(s, 2, over(s, g, 4)), affine(s, modulo(s, g, 4), 2, 0), 3);
  const berth__x q = blocks_half(s, 8, affine(s, g, 16, 0), modulo(s, s->lane, 32), 16);
  return (parts){blocks_look_up(s, berth__block_curve, q),
                 blocks_times(s, blocks_scale(s, 0), berth__x_add(k, low, affine(s, up, 16, -32))), BERTH__X_NONE};
}

/* Four bytes of a group's second half: the signs, and the scale in the last half byte. */
static parts blocks_iq2_xxs(const spot *s) {
  berth__kernel *k = s->k;
  uint32_t table[128];
  for (uint32_t i = 0; i < 128; i++)
    table[i] = (uint32_t)berth__block_grid[2 * i] | (uint32_t)berth__block_grid[2 * i + 1] << 16;
  const berth__x group = affine(s, over(s, s->lane, 32), 8, 0), in_group = modulo(s, s->lane, 32);
  const berth__x eight = over(s, in_group, 8), j = modulo(s, in_group, 8);
  const berth__x point = blocks_u8(s, 2, berth__x_add(k, group, eight));
  const berth__x word = berth__x_bits(k, BERTH__NUM_I32, blocks_word(s, table, 128, over(s, point, 2)));
  const berth__x at = berth__x_add(k, affine(s, modulo(s, point, 2), 16, 0), affine(s, j, 2, 0));
  const berth__x digit = blocks_bits(s, word, at, 3);
  const berth__x x = berth__x_add(k, affine(s, digit, 17, 8), over(s, digit, 2));
  berth__x bytes[4], signs = berth__x_i32(k, 0);
  for (int i = 0; i < 4; i++) {
    bytes[i] = blocks_u8(s, 6 + i, group);
    const berth__x part = i < 3 ? bytes[i] : blocks_bits_at(s, bytes[i], 0, 15);
    signs = berth__x_add(k, signs, affine(s, part, INT64_C(1) << 8 * i, 0));
  }
  const berth__x seven = blocks_bits(s, signs, affine(s, eight, 7, 0), 127);
  berth__x odd = seven; /* the eighth sign makes their number even */
  for (int by = 4; by > 0; by /= 2)
    odd = berth__x2(k, BERTH__INST_xor, odd, berth__x2(k, BERTH__INST_shr, odd, berth__x_i32(k, by)));
  const berth__x sign =
      berth__x_select(k, blocks_is_below(s, j, 7), blocks_bits(s, seven, j, 1), blocks_bits_at(s, odd, 0, 1));
  const berth__x minus = berth__x_ne(k, sign, berth__x_i32(k, 0));
  const berth__x number = berth__x_convert(k, BERTH__NUM_F32, blocks_bits_at(s, bytes[3], 4, 15));
  const berth__x by = berth__x_add(k, number, berth__x_f32(k, 0.5f));
  const berth__x factor = berth__x_mul(k, berth__x_mul(k, blocks_scale(s, 0), by), berth__x_f32(k, 0.25f));
  return (parts){berth__x_select(k, minus, affine(s, x, -1, 0), x), factor, BERTH__X_NONE};
}

/* ---- The table ---- */

static parts (*blocks_find(berth_type type))(const spot *s) {
  switch ((int)type) {
    case BERTH_Q8_0: return blocks_q8_0;
    case BERTH_Q4_0: return blocks_q4_0;
    case BERTH_Q4_1: return blocks_q4_1;
    case BERTH_Q5_0: return blocks_q5_0;
    case BERTH_Q5_1: return blocks_q5_1;
    case BERTH_Q2_K: return blocks_q2_k;
    case BERTH_Q3_K: return blocks_q3_k;
    case BERTH_Q4_K: return blocks_q4_k;
    case BERTH_Q5_K: return blocks_q5_k;
    case BERTH_Q6_K: return blocks_q6_k;
    case BERTH_IQ2_XXS: return blocks_iq2_xxs;
    case BERTH_IQ4_NL: return blocks_iq4_nl;
    case BERTH_IQ4_XS: return blocks_iq4_xs;
    case BERTH_MXFP4: return blocks_mxfp4;
    default: return NULL;
  }
}

berth_status berth__l_check_blocks(berth_type type, berth_error *err) {
  if (blocks_find(type) != NULL) return BERTH_OK;
  return berth__fail(err, BERTH_UNSUPPORTED, "blocks of %s have no kernel in the kernel language",
                     berth_type_name(type));
}

berth__x berth__l_load_block(const berth__lowering *l, berth__kernel *k, uint32_t operand, berth__x place) {
  const berth_type type = l->call->in[operand].type;
  const berth_storage storage = berth_type_storage(type);
  const berth__x block = berth__x_i32(k, storage.elements);
  const spot s = {.l = l,
                  .k = k,
                  .operand = operand,
                  .bytes = storage.bytes,
                  .block = berth__x_div(k, place, block),
                  .lane = berth__x_rem(k, place, block)};
  const parts p = blocks_find(type)(&s);
  const berth__x product = berth__x_mul(k, berth__x_convert(k, BERTH__NUM_F32, p.q), p.factor);
  return p.offset == BERTH__X_NONE ? product : berth__x_add(k, berth__x1(k, BERTH__INST_rounded, product), p.offset);
}
