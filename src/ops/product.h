/* The operands and attributes of `product`. */
#ifndef BERTH_OPS_PRODUCT_H
#define BERTH_OPS_PRODUCT_H

#include <stdint.h>

/* x, weight, bias?, what is added (where `adds` is set), those of the tail */
#define BERTH__PRODUCT_BIAS 2u

enum {
  BERTH__PRODUCT_COLUMNS,
  BERTH__PRODUCT_PANEL,
  BERTH__PRODUCT_CODE,
  BERTH__PRODUCT_NUMBERS,
  BERTH__PRODUCT_ADDS,
  BERTH__PRODUCT_ROUNDS, /* x to bf16, as the weight is */
  BERTH__PRODUCT_ATTRS
};

/* Packed weights of bf16 have two rows of a column beside each other. */
static inline int64_t berth__bf16_pairs(int64_t rows) { return rows / 2 + rows % 2; }

#endif
