/* Reads blocks by words; tables of values, and slices. */
#include "kernel/lower/blocks.h"

#include "base/blocks.h"

berth_status berth__l_check_blocks(berth_type type, berth_error *err) {
  if (berth__l_format_of(type) != NULL) return BERTH_OK;
  return berth__fail(err, BERTH_UNSUPPORTED, "blocks of %s have no kernel in the kernel language",
                     berth_type_name(type));
}

/* ---- Words ---- */

berth__l_blocks berth__l_blocks_at(const berth__lowering *l, berth__kernel *k, uint32_t operand, berth__l_table table,
                                   berth__x block) {
  const int64_t bytes = berth_type_storage(l->call->in[operand].type).bytes;
  const uint64_t at = l->at != NULL ? l->at[operand] : 0;
  return (berth__l_blocks){.l = l,
                           .k = k,
                           .operand = operand,
                           .table = table,
                           .block = block,
                           .bytes = bytes,
                           .base = (int64_t)(at % 4),
                           .is_wide = bytes % 16 == 0 && at % 16 == 0};
}

static uint32_t blocks_buffer(const berth__l_blocks *b) { return berth__l_buffer(b->l, b->k, b->operand, BERTH_U32); }

static berth__x blocks_find(const berth__l_seen *seen, uint32_t n, berth__x at) {
  for (uint32_t i = 0; i < n; i++)
    if (seen[i].at == at) return seen[i].value;
  return BERTH__X_NONE;
}

static void blocks_keep(berth__l_seen *seen, uint32_t *n, berth__x at, berth__x value) {
  if (*n < BERTH__BLOCKS_SEEN) seen[(*n)++] = (berth__l_seen){at, value};
}

static berth__x blocks_load_part(berth__l_blocks *b, berth__x at, uint32_t part) {
  berth__x quad = blocks_find(b->quads, b->n_quads, at);
  if (quad == BERTH__X_NONE) {
    quad = berth__x_quad(b->k, blocks_buffer(b), at);
    blocks_keep(b->quads, &b->n_quads, at, quad);
  }
  return berth__x_part(b->k, quad, part);
}

/* Word `at` of the operand, loaded once. */
static berth__x blocks_load(berth__l_blocks *b, berth__x at) {
  berth__x value = blocks_find(b->words, b->n_words, at);
  uint32_t part;
  if (value != BERTH__X_NONE) return value;
  const berth__x four = berth__x_i32(b->k, 4);
  if (b->is_wide && berth__x_is_constant(b->k, berth__x_rem(b->k, at, four), &part))
    value = blocks_load_part(b, berth__x_div(b->k, at, four), part);
  else
    value = berth__x_load(b->k, blocks_buffer(b), at);
  blocks_keep(b->words, &b->n_words, at, value);
  return value;
}

static berth__x blocks_shift(berth__kernel *k, berth__inst_code code, berth__x a, int64_t by) {
  return berth__x2(k, code, a, berth__x_i32(k, by));
}

/* The four bytes from halfword `at` on. A word that may be past the end is read only if its bytes are needed. */
static berth__x blocks_load_at_half(berth__l_blocks *b, berth__x at, bool has_next) {
  berth__kernel *k = b->k;
  const berth__x two = berth__x_i32(k, 2), first = berth__x_div(k, at, two);
  const berth__x next = berth__x_div(k, berth__x_affine(k, at, 1, has_next ? 2 : 1), two);
  const berth__x low = blocks_load(b, first), high = blocks_load(b, next);
  const berth__x both =
      berth__x_or(k, blocks_shift(k, BERTH__INST_shr, low, 16), blocks_shift(k, BERTH__INST_shl, high, 16));
  return berth__x_select(k, berth__x_ne(k, berth__x_rem(k, at, two), berth__x_i32(k, 0)), both, low);
}

/* The same from byte `at` on. Shifts must be below 32, so a shift by 32 is split in two. */
static berth__x blocks_load_at_byte(berth__l_blocks *b, berth__x at) {
  berth__kernel *k = b->k;
  const berth__x four = berth__x_i32(k, 4), by = berth__x_affine(k, berth__x_rem(k, at, four), 8, 0);
  const berth__x low = blocks_load(b, berth__x_div(k, at, four)),
                 high = blocks_load(b, berth__x_div(k, berth__x_affine(k, at, 1, 3), four));
  const berth__x up =
      berth__x2(k, BERTH__INST_shl, blocks_shift(k, BERTH__INST_shl, high, 1), berth__x_affine(k, by, -1, 31));
  return berth__x_or(k, berth__x2(k, BERTH__INST_shr, low, by), up);
}

berth__x berth__l_blocks_word(berth__l_blocks *b, int64_t first, berth__x index) {
  berth__kernel *k = b->k;
  if (k == NULL || k->status != BERTH_OK) return BERTH__X_NONE;
  const int64_t at = b->base + first;
  if (b->bytes % 4 == 0 && at % 4 == 0)
    return blocks_load(b, berth__x_add(k, berth__x_affine(k, b->block, b->bytes / 4, at / 4), index));
  if (b->bytes % 2 == 0 && at % 2 == 0) {
    const bool has_next = first + 4 * k->insts[index].high + 8 <= b->bytes;
    const berth__x half = berth__x_affine(k, b->block, b->bytes / 2, at / 2);
    return blocks_load_at_half(b, berth__x_add(k, half, berth__x_affine(k, index, 2, 0)), has_next);
  }
  const berth__x byte = berth__x_affine(k, b->block, b->bytes, at);
  return blocks_load_at_byte(b, berth__x_add(k, byte, berth__x_affine(k, index, 4, 0)));
}

berth__x berth__l_blocks_byte(berth__l_blocks *b, int64_t first, berth__x index) {
  berth__kernel *k = b->k;
  const berth__x four = berth__x_i32(k, 4);
  const berth__x at = berth__x_add(k, berth__x_affine(k, b->block, b->bytes, b->base + first), index);
  const berth__x word = blocks_load(b, berth__x_div(k, at, four));
  const berth__x down = berth__x2(k, BERTH__INST_shr, word, berth__x_affine(k, berth__x_rem(k, at, four), 8, 0));
  return berth__x_and(k, down, berth__x_u32(k, 255));
}

berth__x berth__l_blocks_half(berth__l_blocks *b, int64_t first) {
  berth__kernel *k = b->k;
  if ((b->base + first) % 2 != 0 || b->bytes % 2 != 0) {
    const berth__x low = berth__l_blocks_byte(b, first, berth__x_i32(k, 0)),
                   high = berth__l_blocks_byte(b, first, berth__x_i32(k, 1));
    return berth__x1(k, BERTH__INST_unpack_half, berth__x_or(k, low, blocks_shift(k, BERTH__INST_shl, high, 8)));
  }
  const berth__x two = berth__x_i32(k, 2), at = berth__x_affine(k, b->block, b->bytes / 2, (b->base + first) / 2);
  const berth__x word = blocks_load(b, berth__x_div(k, at, two));
  const berth__x by = berth__x_affine(k, berth__x_rem(k, at, two), 16, 0);
  return berth__x1(k, BERTH__INST_unpack_half, berth__x2(k, BERTH__INST_shr, word, by));
}

/* ---- Tables ---- */

#define TABLE_MOST 512u
#define TABLE_STEP 32u /* entries that neighbouring threads select from */

static berth__x blocks_entry(berth__kernel *k, const berth__l_format *format, uint32_t i) {
  const uint32_t bits = format->entry(i);
  return format->table_type == BERTH__NUM_U32 ? berth__x_u32(k, bits)
                                              : berth__x_bits(k, BERTH__NUM_F32, berth__x_u32(k, bits));
}

/* Entry `index` of n, from `first` on, selected bit by bit: kernels have no constant arrays. */
static berth__x blocks_choose(berth__kernel *k, const berth__l_format *format, uint32_t first, uint32_t n,
                              berth__x index) {
  berth__x entries[TABLE_MOST];
  for (uint32_t i = 0; i < n; i++) entries[i] = blocks_entry(k, format, first + i);
  for (uint32_t bit = 0; n > 1; bit++, n /= 2) {
    const berth__x one = berth__x_i32(k, 1), zero = berth__x_i32(k, 0);
    const berth__x is_set = berth__x_ne(k, berth__x_and(k, blocks_shift(k, BERTH__INST_shr, index, bit), one), zero);
    for (uint32_t i = 0; i < n / 2; i++) entries[i] = berth__x_select(k, is_set, entries[2 * i + 1], entries[2 * i]);
  }
  return entries[0];
}

/* Threads of a subgroup compute entries of the same range, so that none diverges into the selects of others. */
static void blocks_fill_shared(berth__kernel *k, const berth__l_format *format, uint32_t array) {
  const uint32_t size = format->table_size, threads = k->group_size;
  uint32_t step = size < TABLE_STEP ? size : TABLE_STEP;
  while (step > threads) step /= 2;
  for (uint32_t first = 0; first < size; first += step) {
    const uint32_t begin = first % (threads / step * step); /* the thread of the first entry */
    const berth__x lane = berth__x_affine(k, berth__x_thread(k), 1, -(int64_t)begin);
    berth__x_if(k,
                berth__x_and(k, berth__x_le(k, berth__x_i32(k, 0), lane), berth__x_lt(k, lane, berth__x_i32(k, step))));
    const berth__x value = blocks_choose(k, format, first, step, lane);
    berth__x_shared_store(k, array, berth__x_affine(k, lane, 1, first), value);
    berth__x_end(k);
  }
  berth__x_barrier(k);
}

uint32_t berth__l_blocks_table_size(berth_type type) {
  const berth__l_format *format = berth__l_format_of(type);
  return format != NULL ? format->table_size : 0;
}

berth__l_table berth__l_blocks_table(berth__kernel *k, berth_type type, berth__l_table_kind kind) {
  const berth__l_format *format = berth__l_format_of(type);
  berth__l_table table = {.kind = BERTH__TABLE_TREE};
  if (k == NULL || format == NULL || format->table_size == 0 || kind == BERTH__TABLE_TREE) return table;
  table.kind = kind;
  if (kind == BERTH__TABLE_SHARED) {
    table.array = berth__kernel_shared(k, format->table_type, format->table_size);
    blocks_fill_shared(k, format, table.array);
    return table;
  }
  table.array = berth__kernel_local(k, format->table_type, format->table_size);
  for (uint32_t i = 0; i < format->table_size; i++)
    berth__x_local_store(k, table.array, berth__x_i32(k, i), blocks_entry(k, format, i));
  return table;
}

berth__x berth__l_blocks_look_up(berth__l_blocks *b, berth__x index) {
  const berth__l_format *format = berth__l_format_of(b->l->call->in[b->operand].type);
  const berth__x at = berth__x_convert(b->k, BERTH__NUM_I32, index);
  switch (b->table.kind) {
    case BERTH__TABLE_SHARED: return berth__x_shared_load(b->k, b->table.array, at);
    case BERTH__TABLE_LOCAL: return berth__x_local_load(b->k, b->table.array, at);
    default: return blocks_choose(b->k, format, 0, format->table_size, at);
  }
}

/* ---- Quads and elements ---- */

bool berth__l_blocks_has_bytes(berth_type type) {
  const berth__l_format *format = berth__l_format_of(type);
  return format != NULL && (format->table_size == 0 || format->table_type != BERTH__NUM_F32);
}

berth__l_quad berth__l_blocks_quad(berth__l_blocks *b, berth__x index) {
  const berth__l_format *format = berth__l_format_of(b->l->call->in[b->operand].type);
  berth__l_quad quad = format->quad(b, index);
  quad.bias = format->bias;
  return quad;
}

static berth__x blocks_value(berth__kernel *k, const berth__l_quad *quad, berth__x q) {
  if (quad->bias != 0) q = berth__x_sub(k, q, berth__x_f32(k, (float)quad->bias));
  if (quad->factor == BERTH__X_NONE) return q;
  const berth__x product = berth__x_mul(k, q, quad->factor);
  if (quad->offset == BERTH__X_NONE) return product;
  return berth__x_add(k, berth__x1(k, BERTH__INST_rounded, product), quad->offset);
}

void berth__l_quad_values(berth__kernel *k, const berth__l_quad *quad, berth__x *values) {
  for (uint32_t i = 0; i < 4; i++) values[i] = blocks_value(k, quad, quad->q[i]);
}

static berth__l_quad blocks_load_quad(const berth__lowering *l, berth__kernel *k, uint32_t operand,
                                      berth__l_table table, berth__x place) {
  const berth__x elements = berth__x_i32(k, berth_type_storage(l->call->in[operand].type).elements);
  berth__l_blocks b = berth__l_blocks_at(l, k, operand, table, berth__x_div(k, place, elements));
  return berth__l_blocks_quad(&b, berth__x_div(k, berth__x_rem(k, place, elements), berth__x_i32(k, 4)));
}

void berth__l_load_block_quad(const berth__lowering *l, berth__kernel *k, uint32_t operand, berth__l_table table,
                              berth__x place, berth__x *values) {
  if (k == NULL) return;
  const berth__l_quad quad = blocks_load_quad(l, k, operand, table, place);
  berth__l_quad_values(k, &quad, values);
}

/* Caches are read element by element: each byte is one load. */
static berth__x blocks_load_q8_0(const berth__lowering *l, berth__kernel *k, uint32_t operand, berth__x place) {
  const berth__x elements = berth__x_i32(k, 32), last = berth__x_i32(k, 24);
  berth__l_blocks b =
      berth__l_blocks_at(l, k, operand, (berth__l_table){.kind = BERTH__TABLE_TREE}, berth__x_div(k, place, elements));
  const berth__x byte = berth__l_blocks_byte(&b, 2, berth__x_rem(k, place, elements));
  const berth__x up = berth__x2(k, BERTH__INST_shl, berth__x_bits(k, BERTH__NUM_I32, byte), last);
  const berth__x q = berth__x_convert(k, BERTH__NUM_F32, berth__x2(k, BERTH__INST_shr, up, last));
  return berth__x_mul(k, q, berth__l_blocks_half(&b, 0));
}

berth__x berth__l_load_block(const berth__lowering *l, berth__kernel *k, uint32_t operand, berth__x place) {
  if (k == NULL) return BERTH__X_NONE;
  if (l->call->in[operand].type == BERTH_Q8_0) return blocks_load_q8_0(l, k, operand, place);
  const berth__l_quad quad = blocks_load_quad(l, k, operand, (berth__l_table){.kind = BERTH__TABLE_TREE}, place);
  const berth__x lane = berth__x_rem(k, place, berth__x_i32(k, 4)), two = berth__x_i32(k, 2);
  const berth__x is_odd = berth__x_ne(k, berth__x_rem(k, lane, two), berth__x_i32(k, 0));
  const berth__x low = berth__x_select(k, is_odd, quad.q[1], quad.q[0]),
                 high = berth__x_select(k, is_odd, quad.q[3], quad.q[2]);
  return blocks_value(k, &quad, berth__x_select(k, berth__x_lt(k, lane, two), low, high));
}

/* ---- Slices ---- */

/* Short slices if the format allows: neighbouring lanes then read neighbouring parts of x. */
berth__l_slices berth__l_slices_of(berth_type type) {
  switch ((int)type) {
    case BERTH_Q8_0: return (berth__l_slices){2, 4, 4, 4};
    case BERTH_Q4_K:
    case BERTH_Q5_K: return (berth__l_slices){8, 8, 4, 8};
    case BERTH_Q2_K:
    case BERTH_Q3_K:
    case BERTH_Q6_K: return (berth__l_slices){8, 8, 2, 8};
    case BERTH_IQ2_XXS:
    case BERTH_IQ2_XS:
    case BERTH_IQ2_S:
    case BERTH_IQ3_XXS:
    case BERTH_IQ3_S: return (berth__l_slices){8, 8, 8, 8}; /* decoding words of signs is expensive */
    case BERTH_IQ4_XS: return (berth__l_slices){16, 4, 2, 4};
    default: return (berth__l_slices){2, 4, 2, 4};
  }
}

berth__l_slices berth__l_slices_for_bytes(berth_type type) {
  switch ((int)type) {
    case BERTH_Q4_K:
    case BERTH_Q5_K: return (berth__l_slices){4, 16, 8, 8};
    case BERTH_Q2_K:
    case BERTH_Q3_K:
    case BERTH_Q6_K: return (berth__l_slices){4, 16, 4, 8};
    case BERTH_Q4_0:
    case BERTH_Q4_1:
    case BERTH_Q5_0:
    case BERTH_Q5_1:
    case BERTH_Q4_0F:
    case BERTH_Q4_1F: return (berth__l_slices){1, 8, 8, 8};
    default: return berth__l_slices_of(type);
  }
}

uint32_t berth__l_slice_first(const berth__l_slices *s, uint32_t slice) {
  const uint32_t in_run = s->step / s->beside, run = s->n_quads / s->beside * s->step;
  return slice / in_run * run + slice % in_run * s->beside;
}

berth__x berth__l_slice_quad(berth__kernel *k, const berth__l_slices *s, berth__x slice, uint32_t i) {
  const int64_t in_run = s->step / s->beside, run = (int64_t)(s->n_quads / s->beside) * s->step;
  const berth__x group = berth__x_i32(k, in_run);
  const berth__x first = berth__x_add(k, berth__x_affine(k, berth__x_div(k, slice, group), run, 0),
                                      berth__x_affine(k, berth__x_rem(k, slice, group), s->beside, 0));
  return berth__x_affine(k, first, 1, (int64_t)(i / s->beside) * s->step + i % s->beside);
}
