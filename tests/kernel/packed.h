/* Products of few rows with weights in blocks, lowered and interpreted. */
#ifndef BERTH_TESTS_KERNEL_PACKED_H
#define BERTH_TESTS_KERNEL_PACKED_H

#include "kernel/lower/tile.h"

#define WIDE 512 /* a depth of whole blocks */
#define MANY 37  /* columns: no multiple of anything */
#define MOST 112 /* rows */

#define N_PACKED 20u
extern const berth_type packed_types[N_PACKED];

typedef struct packed_data {
  uint32_t blocks[MANY * WIDE + 8]; /* the bytes of the widest type, and some before them */
  float x[MOST * WIDE], weights[MANY * WIDE], result[MOST * (MANY + 1)];
} packed_data;

/* Random x and weights, which begin `before` bytes into their memory. */
void packed_fill(packed_data *d, berth_type type, uint32_t before);

/* NULL: the form that is chosen. */
extern const berth__tile_form *packed_form;
extern uint32_t packed_groups;
extern bool packed_in_bytes; /* this form's rows are rounded */
extern bool packed_is_deep;  /* a column's weights are contiguous, or a row's */

/* Lowers a product of so many rows of x and columns of weights of a depth; and with MANY columns. */
void packed_lower_of(berth__lowering *l, berth_type type, uint32_t rows, int64_t columns, int64_t depth,
                     uint32_t before, const berth__kernel_limits *with, berth_context *ctx);
void packed_lower(berth__lowering *l, berth_type type, uint32_t rows, int64_t depth, uint32_t before,
                  const berth__kernel_limits *with, berth_context *ctx);
void packed_run(packed_data *d, const berth__lowering *l, berth_type type, uint32_t before);

#endif
