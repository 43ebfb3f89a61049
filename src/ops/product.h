/* The operands and attributes of `product`. */
#ifndef BERTH_OPS_PRODUCT_H
#define BERTH_OPS_PRODUCT_H

#include <stdint.h>

/* Packed weights of bf16 have two rows of a column beside each other. */
static inline int64_t berth__bf16_pairs(int64_t rows) { return rows / 2 + rows % 2; }

#endif
