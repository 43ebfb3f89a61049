/* Elements that lie in blocks, decoded where they are loaded (base/blocks.h has the formats).
 *
 * Blocks are read by words, four elements at a time: a quad is four neighbours, from a multiple of four on. Each word
 * is loaded once for all quads of a block that need it, and so is what follows from it: a kernel that asks for those
 * quads together that share words (a slice) loads nothing twice. Where blocks lie at multiples of 16 bytes, four words
 * are one load; where they do not begin with a word, words are put together from two. */
#ifndef BERTH_KERNEL_LOWER_BLOCKS_H
#define BERTH_KERNEL_LOWER_BLOCKS_H

#include "kernel/lower.h"

/* Formats with a table of values: where kernels look them up. A tree of selects is always there; an array that is
 * shared by the workgroup, or each thread's own, is made once and read from then on. */
typedef enum berth__l_table_kind {
  BERTH__TABLE_TREE,
  BERTH__TABLE_SHARED,
  BERTH__TABLE_LOCAL
} berth__l_table_kind;
typedef struct berth__l_table {
  berth__l_table_kind kind;
  uint32_t array;
} berth__l_table;
/* The table of a format, as an array where it has one; a shared one is filled by all threads, with a barrier after it:
 * outside of ifs. */
berth__l_table berth__l_blocks_table(berth__kernel *k, berth_type type, berth__l_table_kind kind);
uint32_t berth__l_blocks_table_size(berth_type type); /* its entries, of a word each; 0: the type has none */

#define BERTH__BLOCKS_SEEN 64u
typedef struct berth__l_seen {
  berth__x at, value;
} berth__l_seen;

/* One block, from where it stands to the end of the kernel's block of instructions. */
typedef struct berth__l_blocks {
  const berth__lowering *l;
  berth__kernel *k;
  uint32_t operand;
  berth__l_table table;
  berth__x block; /* its number */
  /* the reader's own */
  int64_t bytes, base; /* of a block; before the first one, in its first word */
  bool is_wide;
  uint32_t n_words, n_quads;
  berth__l_seen words[BERTH__BLOCKS_SEEN], quads[BERTH__BLOCKS_SEEN];
} berth__l_blocks;
berth__l_blocks berth__l_blocks_at(const berth__lowering *l, berth__kernel *k, uint32_t operand, berth__l_table table,
                                   berth__x block);

/* element i = factor * (q[i] - bias) + offset. */
typedef struct berth__l_quad {
  berth__x q[4];           /* f32 */
  int bias;                /* the same for all of a format */
  berth__x factor, offset; /* BERTH__X_NONE: 1 and 0. Equal numbers are equal factors. */
} berth__l_quad;
/* Quad `index` of the block. */
berth__l_quad berth__l_blocks_quad(berth__l_blocks *b, berth__x index);
/* Its elements, rounded as base/blocks.c does it. */
void berth__l_quad_values(berth__kernel *k, const berth__l_quad *quad, berth__x *values);

/* Slices: the shares of a block that threads take in kernels over whole blocks. */
#define BERTH__SLICE_QUADS 8u
typedef struct berth__l_slices {
  uint32_t per_block, n_quads;
} berth__l_slices;
berth__l_slices berth__l_slices_of(berth_type type);
/* Quad i of slice `slice` of a block. */
uint32_t berth__l_slice_first(berth_type type, uint32_t slice); /* its first quad */
berth__x berth__l_slice_quad(berth__kernel *k, berth_type type, berth__x slice, uint32_t i);

/* Element `place` of an operand of a block type, as f32; and the four from `place` on, a multiple of four. */
berth__x berth__l_load_block(const berth__lowering *l, berth__kernel *k, uint32_t operand, berth__x place);
void berth__l_load_block_quad(const berth__lowering *l, berth__kernel *k, uint32_t operand, berth__l_table table,
                              berth__x place, berth__x *values);
/* Whether the type has blocks that kernels decode; an error where it has not. */
berth_status berth__l_check_blocks(berth_type type, berth_error *err);

/* ---- blocks.c for blocks_formats.c: reading a block, all in u32 ---- */

/* The four bytes from byte `first` + 4 * index on; byte `first` + index; the f16 at byte `first`. */
berth__x berth__l_blocks_word(berth__l_blocks *b, int64_t first, berth__x index);
berth__x berth__l_blocks_byte(berth__l_blocks *b, int64_t first, berth__x index);
berth__x berth__l_blocks_half(berth__l_blocks *b, int64_t first);
/* Entry `index` of the format's table. */
berth__x berth__l_blocks_look_up(berth__l_blocks *b, berth__x index);

/* blocks_formats.c: one row a format. */
typedef struct berth__l_format {
  berth__l_quad (*quad)(berth__l_blocks *b, berth__x index);
  uint32_t table_size; /* entries of its table, a power of two; 0: none */
  berth__number table_type;
  uint32_t (*entry)(uint32_t i); /* its bits */
} berth__l_format;
const berth__l_format *berth__l_format_of(berth_type type); /* NULL: none */

#endif
