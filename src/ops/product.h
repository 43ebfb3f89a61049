/* The operands and attributes of `product`. */
#ifndef BERTH_OPS_PRODUCT_H
#define BERTH_OPS_PRODUCT_H

#include <stdint.h>

/* Packed bf16 weights have two adjacent rows of a column. */
static inline int64_t berth__bf16_pairs(int64_t rows) { return rows / 2 + rows % 2; }

#endif
