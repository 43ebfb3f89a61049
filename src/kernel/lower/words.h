/* Whole words of narrow elements: a thread that computes all elements of a word stores it at once, and a thread that
 * needs all of them loads it at once. */
#ifndef BERTH_KERNEL_LOWER_WORDS_H
#define BERTH_KERNEL_LOWER_WORDS_H

#include "kernel/lower.h"

/* Elements of the first word that precede the one at this byte. */
uint32_t berth__l_skip(uint64_t at, berth__storage storage);

/* For berth__l_each: the number of elements of result 0 per thread, 1 if `count` is not their number or they are not
 * contiguous; the loop over the elements of a word; and its end, with the store. */
uint32_t berth__l_words_of_result(const berth__lowering *l, int64_t count);
berth__x berth__l_open_words(const berth__lowering *l, berth__kernel *k, berth__x word, uint32_t per_word,
                             int64_t count);
void berth__l_close_words(const berth__lowering *l, berth__kernel *k);
/* What berth__l_store does with an element of the open word. */
void berth__l_keep_bits(berth__kernel *k, berth__storage storage, berth__x value);

/* For kernels that know which elements make up a word: between begin and end, berth__l_store to result 0, or to result
 * `out`, at `place`, as lane `lane` (below the number of elements per word), goes into the word; end stores it at the
 * word that contains the first `place`. */
void berth__l_word_begin(const berth__lowering *l, berth__kernel *k);
void berth__l_word_begin_of(const berth__lowering *l, berth__kernel *k, uint32_t out);
void berth__l_word_lane(berth__kernel *k, uint32_t lane, berth__x place);
void berth__l_word_end(const berth__lowering *l, berth__kernel *k, berth__x first_place);

/* Whether an operand begins at a word; results are numbered after the operands. */
bool berth__l_begins_with_word(const berth__lowering *l, uint32_t operand);
/* The word of operand i whose first element is `place`. */
berth__x berth__l_load_word(const berth__lowering *l, berth__kernel *k, uint32_t i, berth__x place);
/* Lane `lane` of such a word, in the number type of the storage. */
berth__x berth__l_lane(berth__kernel *k, berth__storage storage, berth__x word, uint32_t lane);

#endif
