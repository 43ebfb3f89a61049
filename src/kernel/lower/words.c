#include "kernel/lower/words.h"

uint32_t berth__l_words_of_result(const berth__lowering *l, int64_t count) {
  const berth_tensor *out = &l->call->out[0];
  if (l->call->n_out == 0 || berth__count(out) != count || !berth__is_contiguous(out)) return 1;
  const berth__storage storage = berth__l_storage_of(l, l->call->n_in);
  const uint64_t at = l->at != NULL ? l->at[l->call->n_in] : 0;
  return berth__l_skip(at, storage) == 0 ? berth__storage_per_word(storage) : 1;
}

berth__x berth__l_open_words(const berth__lowering *l, berth__kernel *k, berth__x word, uint32_t per_word,
                             int64_t count) {
  berth__kernel_word *w = &k->word;
  *w = (berth__kernel_word){.operand = l->call->n_in, .word = word};
  w->bits = berth__x_variable(k, berth__x_u32(k, 0));
  w->written = berth__x_variable(k, berth__x_u32(k, 0));
  w->depth = k->depth;
  w->lane = berth__x_loop_unrolled(k, berth__x_i32(k, 0), berth__x_i32(k, per_word), 1);
  w->index = berth__x_add(k, berth__x_affine(k, word, per_word, 0), w->lane);
  w->is_open = k->status == BERTH_OK;
  if (count % per_word != 0) berth__x_if(k, berth__x_lt(k, w->index, berth__x_i32(k, count)));
  return w->index;
}

/* Collects the bits of one element of the word, instead of storing them. */
void berth__l_keep_bits(berth__kernel *k, berth__storage storage, berth__x value) {
  const berth__kernel_word *w = &k->word;
  const uint32_t width = 32 / berth__storage_per_word(storage);
  const berth__x by = berth__x_affine(k, w->lane, width, 0), ones = berth__x_u32(k, (1u << width) - 1);
  const berth__x mask = berth__x2(k, BERTH__INST_shl, ones, by);
  const berth__x bits = berth__x2(k, BERTH__INST_shl, berth__x_pack(k, storage, value), by);
  const berth__x others = berth__x_and(k, berth__x_get(k, w->bits), berth__x1(k, BERTH__INST_not, mask));
  berth__x_set(k, w->bits, berth__x_or(k, others, bits));
  if (!w->is_whole) berth__x_set(k, w->written, berth__x_or(k, berth__x_get(k, w->written), mask));
}

/* After the loop: stores the whole word, or merges the elements written with the existing ones. */
void berth__l_close_words(const berth__lowering *l, berth__kernel *k) {
  const berth__kernel_word w = k->word;
  while (k->depth > w.depth && k->status == BERTH_OK) berth__x_end(k);
  k->word.is_open = false;
  const uint32_t words = berth__l_buffer(l, k, w.operand, BERTH_U32);
  const berth__x bits = berth__x_get(k, w.bits), written = berth__x_get(k, w.written);
  berth__x_if(k, berth__x_eq(k, written, berth__x_u32(k, UINT32_MAX)));
  berth__x_store(k, words, w.word, bits);
  berth__x_else(k);
  berth__x_if(k, berth__x_ne(k, written, berth__x_u32(k, 0)));
  const berth__x there = berth__x_and(k, berth__x_load(k, words, w.word), berth__x1(k, BERTH__INST_not, written));
  berth__x_store(k, words, w.word, berth__x_or(k, there, bits));
  berth__x_end(k);
  berth__x_end(k);
}

/* ---- Words that the kernel delimits itself ---- */

void berth__l_word_begin_of(const berth__lowering *l, berth__kernel *k, uint32_t out) {
  if (k == NULL) return;
  k->word = (berth__kernel_word){.operand = berth__operand_out(l->call, out), .is_whole = true, .depth = k->depth};
  k->word.bits = berth__x_variable(k, berth__x_u32(k, 0));
  k->word.is_open = k->status == BERTH_OK;
}

void berth__l_word_begin(const berth__lowering *l, berth__kernel *k) { berth__l_word_begin_of(l, k, 0); }

void berth__l_word_lane(berth__kernel *k, uint32_t lane, berth__x place) {
  if (k == NULL) return;
  k->word.lane = berth__x_i32(k, lane);
  k->word.index = place;
}

void berth__l_word_end(const berth__lowering *l, berth__kernel *k, berth__x first_place) {
  if (k == NULL) return;
  const uint32_t operand = k->word.operand;
  const berth__x per_word = berth__x_i32(k, berth__storage_per_word(berth__l_storage_of(l, operand)));
  k->word.is_open = false;
  berth__x_store(k, berth__l_buffer(l, k, operand, BERTH_U32), berth__x_div(k, first_place, per_word),
                 berth__x_get(k, k->word.bits));
}

bool berth__l_begins_with_word(const berth__lowering *l, uint32_t operand) {
  return l->at == NULL || l->at[operand] % 4 == 0;
}

berth__x berth__l_load_word(const berth__lowering *l, berth__kernel *k, uint32_t i, berth__x place) {
  const berth__x per_word = berth__x_i32(k, berth__storage_per_word(berth__l_storage_of(l, i)));
  return berth__x_load(k, berth__l_buffer(l, k, berth__operand_in(i), BERTH_U32), berth__x_div(k, place, per_word));
}

/* For f16 and bf16; bf16 is the upper half of an f32. */
static berth__x lower_words_float_lane(berth__kernel *k, berth__storage storage, berth__x word, uint32_t lane) {
  const berth__x half = berth__x_u32(k, 16);
  if (storage == BERTH_F16)
    return berth__x1(k, BERTH__INST_unpack_half, lane == 0 ? word : berth__x2(k, BERTH__INST_shr, word, half));
  const berth__x upper =
      lane == 0 ? berth__x2(k, BERTH__INST_shl, word, half) : berth__x_and(k, word, berth__x_u32(k, 0xffff0000u));
  return berth__x_bits(k, BERTH__NUM_F32, upper);
}

berth__x berth__l_lane(berth__kernel *k, berth__storage storage, berth__x word, uint32_t lane) {
  if (storage == BERTH_F16 || storage == BERTH_BF16) return lower_words_float_lane(k, storage, word, lane);
  const uint32_t width = 32 / berth__storage_per_word(storage);
  const bool is_signed = berth__storage_number(storage) == BERTH__NUM_I32;
  const berth__x number = berth__x_bits(k, berth__storage_number(storage), word);
  if (!is_signed) {
    const berth__x low = berth__x2(k, BERTH__INST_shr, number, berth__x_u32(k, lane * width));
    return berth__x_and(k, low, berth__x_u32(k, width == 32 ? UINT32_MAX : (1u << width) - 1));
  }
  const berth__x high = berth__x2(k, BERTH__INST_shl, number, berth__x_i32(k, 32 - width * (lane + 1)));
  return berth__x2(k, BERTH__INST_shr, high, berth__x_i32(k, 32 - width));
}
