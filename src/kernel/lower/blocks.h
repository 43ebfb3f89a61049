/* Elements in blocks, decoded when they are loaded (base/blocks.h has the formats).
 *
 * Blocks are read by words, four elements at a time: a quad is four neighbours, starting at a multiple of four. Each
 * word is loaded once for all quads of a block that need it, and so is what is derived from it: a kernel that requests
 * together the quads that share words (a slice) loads nothing twice. If blocks are multiples of 16 bytes, four words
 * are one load; if they do not begin at a word, words are assembled from two. */
#ifndef BERTH_KERNEL_LOWER_BLOCKS_H
#define BERTH_KERNEL_LOWER_BLOCKS_H

#include "kernel/lower.h"

/* How kernels look up values of formats with a table. A tree of selects always works; an array, shared by the workgroup
 * or one per thread, is filled once and read from then on. */
typedef enum berth__l_table_kind {
  BERTH__TABLE_TREE,
  BERTH__TABLE_SHARED,
  BERTH__TABLE_LOCAL
} berth__l_table_kind;
typedef struct berth__l_table {
  berth__l_table_kind kind;
  uint32_t array;
} berth__l_table;
/* The table of a format, as an array if it has one; a shared one is filled by all threads, followed by a barrier, so
 * this must be outside of ifs. */
berth__l_table berth__l_blocks_table(berth__kernel *k, berth_type type, berth__l_table_kind kind);
uint32_t berth__l_blocks_table_size(berth_type type); /* its entries, one word each; 0: the type has none */

#define BERTH__BLOCKS_SEEN 64u
typedef struct berth__l_seen {
  berth__x at, value;
} berth__l_seen;

/* One block; valid up to the end of the kernel's current block of instructions. */
typedef struct berth__l_blocks {
  const berth__lowering *l;
  berth__kernel *k;
  uint32_t operand;
  berth__l_table table;
  berth__x block; /* its number */
  /* private to the reader */
  int64_t bytes, base; /* per block; before the first block, in its first word */
  bool is_wide;
  uint32_t n_words, n_quads;
  berth__l_seen words[BERTH__BLOCKS_SEEN], quads[BERTH__BLOCKS_SEEN];
} berth__l_blocks;
berth__l_blocks berth__l_blocks_at(const berth__lowering *l, berth__kernel *k, uint32_t operand, berth__l_table table,
                                   berth__x block);

/* element i = factor * (q[i] - bias) + offset. */
typedef struct berth__l_quad {
  berth__x q[4];           /* f32 */
  berth__x bytes;          /* the same as four bytes with signs, u32; BERTH__X_NONE: the format has no such form */
  int bias;                /* that of the format */
  berth__x factor, offset; /* BERTH__X_NONE: 1 and 0. Equal numbers mean equal factors. */
} berth__l_quad;
/* Quad `index` of the block. */
berth__l_quad berth__l_blocks_quad(berth__l_blocks *b, berth__x index);
bool berth__l_blocks_has_bytes(berth_type type); /* quads have `bytes` */
/* Its elements, rounded as in base/blocks.c. */
void berth__l_quad_values(berth__kernel *k, const berth__l_quad *quad, berth__x *values);

/* Slices: the pieces of a block that threads share out in kernels over whole blocks. The order of a slice's quads: some
 * adjacent ones, and then again `step` further on, namely those that share words. A slice continues after the adjacent
 * quads of the previous one or, after `step` of them, begins a new run. */
#define BERTH__SLICE_QUADS 16u
typedef struct berth__l_slices {
  uint32_t per_block, n_quads, beside, step;
} berth__l_slices;
berth__l_slices berth__l_slices_of(berth_type type);
/* The same for products with bytes, where what a slice has in common costs more than its elements: adjacent quads are
 * multiples of 16 elements. */
berth__l_slices berth__l_slices_for_bytes(berth_type type);
/* Quad i of slice `slice` of a block. */
uint32_t berth__l_slice_first(const berth__l_slices *slices, uint32_t slice); /* its first quad */
berth__x berth__l_slice_quad(berth__kernel *k, const berth__l_slices *slices, berth__x slice, uint32_t i);

/* Element `place` of an operand of a block type, as f32; and the four elements from `place`, a multiple of four, on. */
berth__x berth__l_load_block(const berth__lowering *l, berth__kernel *k, uint32_t operand, berth__x place);
void berth__l_load_block_quad(const berth__lowering *l, berth__kernel *k, uint32_t operand, berth__l_table table,
                              berth__x place, berth__x *values);
/* Whether kernels can decode blocks of this type; an error if not. */
berth_status berth__l_check_blocks(berth_type type, berth_error *err);

/* ---- blocks.c for blocks_formats.c: reading a block, all as u32 ---- */

/* The four bytes from byte `first` + 4 * index on; byte `first` + index; the f16 at byte `first`. */
berth__x berth__l_blocks_word(berth__l_blocks *b, int64_t first, berth__x index);
berth__x berth__l_blocks_byte(berth__l_blocks *b, int64_t first, berth__x index);
berth__x berth__l_blocks_half(berth__l_blocks *b, int64_t first);
/* Entry `index` of the format's table. */
berth__x berth__l_blocks_look_up(berth__l_blocks *b, berth__x index);

/* blocks_formats.c: one row per format. */
typedef struct berth__l_format {
  berth__l_quad (*quad)(berth__l_blocks *b, berth__x index);
  bool has_rest; /* quads have a bias or an offset */
  int bias;
  uint32_t table_size; /* entries of its table, a power of two; 0: no table */
  berth__number table_type;
  uint32_t (*entry)(uint32_t i); /* the bits of entry i */
} berth__l_format;
const berth__l_format *berth__l_format_of(berth_type type); /* NULL: none */

#endif
