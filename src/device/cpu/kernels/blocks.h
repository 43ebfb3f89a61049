/* Products with weights that stay in blocks (base/blocks.h): what the files of product_blocks share.
 *
 * Rows of x are quantised first, as in llama.cpp: 32 elements share a scale and become bytes from -127 to 127. Products
 * of bytes are summed as integers, exactly, over each group of the weight. The sums are multiplied by both scales and
 * added up in f32. A group's offset is multiplied by the sum of x over the group. */
#ifndef BERTH_DEVICE_CPU_KERNELS_BLOCKS_H
#define BERTH_DEVICE_CPU_KERNELS_BLOCKS_H

#include "base/blocks.h"
#include "device/cpu/kernels/vec.h"

#define BLOCKS_X 32   /* elements of x that share a scale */
#define BLOCKS_SUM 16 /* elements of x that share a sum: the smallest group size */

/* A row of x. */
typedef struct blocks_row_x {
  const int8_t *q;
  const float *scale;  /* one per 32 elements */
  const float *sum;    /* one per 16 elements: the sum of the bytes, times the scale */
  const float *sums;   /* the same per 32 elements */
  const int8_t *minus; /* -q, if the kernel for one row needs it too */
} blocks_row_x;

/* Some rows of x in scratch. */
typedef struct blocks_x {
  int64_t depth, copies; /* 2: each row is followed by -q, or bytes are stored as 16 bits */
  bool has_starts;       /* `sum` and `sums` are i32: the sums of the bytes, times -128 (blocks_panel.c) */
  int8_t *q;
  float *scale, *sum, *sums;
} blocks_x;

/* Bytes of so many rows, and where their parts begin. */
static inline uint64_t blocks_x_bytes(int64_t rows, int64_t depth, int64_t copies) {
  return (uint64_t)rows * ((uint64_t)(depth * copies) + 4 * sizeof(float) * (uint64_t)(depth / BLOCKS_X));
}
static inline blocks_x blocks_x_in(void *scratch, int64_t rows, int64_t depth, int64_t copies) {
  const int64_t n = rows * (depth / BLOCKS_X);
  float *numbers = scratch;
  return (blocks_x){.depth = depth,
                    .copies = copies,
                    .scale = numbers,
                    .sum = numbers + n,
                    .sums = numbers + 3 * n,
                    .q = (int8_t *)(numbers + 4 * n)};
}
static inline blocks_row_x blocks_row_of(const blocks_x *x, int64_t row) {
  const int64_t n = x->depth / BLOCKS_X;
  const int8_t *q = x->q + row * x->depth * x->copies;
  return (blocks_row_x){q, x->scale + row * n, x->sum + row * 2 * n, x->sums + row * n, q + x->depth};
}

#define blocks_quantise BERTH__PER_ISA(berth__blocks_quantise)
#define blocks_copies BERTH__PER_ISA(berth__blocks_copies)
#define blocks_arrange BERTH__PER_ISA(berth__blocks_arrange)
#define blocks_copies_many BERTH__PER_ISA(berth__blocks_copies_many)
#define blocks_starts_many BERTH__PER_ISA(berth__blocks_starts_many)
#define blocks_arrange_many BERTH__PER_ISA(berth__blocks_arrange_many)
#define blocks_has_dots BERTH__PER_ISA(berth__blocks_has_dots)
#define blocks_dots BERTH__PER_ISA(berth__blocks_dots)
#define blocks_split_of BERTH__PER_ISA(berth__blocks_split_of)
#define blocks_panel_bytes BERTH__PER_ISA(berth__blocks_panel_bytes)
#define blocks_product BERTH__PER_ISA(berth__blocks_product)

/* Quantises a row of f32, whose elements are `step` apart, into row `row` of x. A block that contains NaN or an
 * infinity gets the scale NaN. */
void blocks_quantise(const float *from, int64_t step, const blocks_x *x, int64_t row);

/* Rows of a weight times one row of x, whose bytes are in the order that the kernel of this type needs. */
int64_t blocks_copies(berth_type type);
void blocks_arrange(berth_type type, const blocks_x *x, int64_t row);
bool blocks_has_dots(berth_type type);
void blocks_dots(berth_type type, const uint8_t *w, int64_t row_bytes, int64_t n, const blocks_row_x *x, int64_t depth,
                 float *out);
typedef void (*blocks_split)(const uint8_t *block, berth__block_parts *parts);
blocks_split blocks_split_of(berth_type type);

/* Up to VF_PANEL rows of a weight (columns of the result) times the first n rows of x; rows of out are VF_PANEL
 * elements apart. A slice of the weight's rows at a time is unpacked and interleaved in scratch, the panel, which stays
 * in the L1 cache while all rows of x go over it. */
uint64_t blocks_panel_bytes(berth_type type, int64_t depth);
/* The copies and sums of x that it needs; blocks_arrange_many is called after blocks_quantise. */
int64_t blocks_copies_many(berth_type type);
bool blocks_starts_many(berth_type type);
void blocks_arrange_many(berth_type type, const blocks_x *x, int64_t row);
void blocks_product(berth_type type, const uint8_t *w, int64_t columns, const blocks_x *x, int64_t n, void *panel,
                    float *out);

/* ---- x stays f32: blocks_exact.c ---- */

#define BLOCKS_EXACT_FEW 3     /* rows of x for which blocks are multiplied as they are decoded */
#define BLOCKS_EXACT_SLICE 256 /* elements of a row of the weight that are decoded at a time */

#define blocks_exact_dots BERTH__PER_ISA(berth__blocks_exact_dots)
#define blocks_exact_product BERTH__PER_ISA(berth__blocks_exact_product)

/* Rows of f32, whose elements are next to each other. */
typedef struct blocks_exact_x {
  int64_t depth;
  const float *const *rows;
} blocks_exact_x;

/* Rows of a weight (columns of the result) times n rows of x, up to BLOCKS_EXACT_FEW; rows of out are VF_PANEL
 * elements apart. */
void blocks_exact_dots(berth_type type, const uint8_t *w, int64_t row_bytes, int64_t columns, const blocks_exact_x *x,
                       int64_t n, float *out);
/* The same for any number of rows and up to VF_PANEL columns. The panel has BLOCKS_EXACT_SLICE * VF_PANEL elements. */
void blocks_exact_product(berth_type type, const uint8_t *w, int64_t columns, const blocks_exact_x *x, int64_t n,
                          float *panel, float *out);

#define BLOCKS_SLICE 512 /* elements per row: a multiple of every block size */

/* The part of the weight that is unpacked next comes from memory, in short runs: it is prefetched, a little with every
 * tile. */
typedef struct blocks_ahead {
  const uint8_t *at; /* the next address to prefetch, in the first row */
  int64_t rows, row_bytes, bytes, done, each;
} blocks_ahead;

/* `at`: in the slice that is multiplied now. After the last of these rows come the first of the next ones. */
static inline blocks_ahead blocks_look_ahead(const uint8_t *w, int64_t columns, int64_t row_bytes, int64_t depth,
                                             int64_t at, int64_t tiles) {
  const int64_t next = at + BLOCKS_SLICE < depth ? at + BLOCKS_SLICE : 0;
  const int64_t end = next + BLOCKS_SLICE < depth ? next + BLOCKS_SLICE : depth;
  const int64_t begin_byte = next * row_bytes / depth, bytes = end * row_bytes / depth - begin_byte;
  const int64_t lines = columns * (bytes / 64 + 1);
  const uint8_t *first = w + (next != 0 ? 0 : columns * row_bytes) + begin_byte;
  return (blocks_ahead){first, columns, row_bytes, bytes, 0, lines / (tiles + 1) + 1};
}

static inline void blocks_ask(blocks_ahead *a) {
  for (int64_t i = 0; i < a->each && a->rows > 0; i++, a->done += 64) {
    if (a->done >= a->bytes) a->at += a->row_bytes, a->rows--, a->done = 0;
    __builtin_prefetch(a->at + a->done);
  }
}

#endif
