/* The operands and attributes of `product`. */
#ifndef BERTH_OPS_PRODUCT_H
#define BERTH_OPS_PRODUCT_H

/* x, weight, bias?, what is added (where `adds` is set), those of the tail */
#define BERTH__PRODUCT_BIAS 2u

enum {
  BERTH__PRODUCT_COLUMNS,
  BERTH__PRODUCT_PANEL,
  BERTH__PRODUCT_CODE,
  BERTH__PRODUCT_NUMBERS,
  BERTH__PRODUCT_ADDS,
  BERTH__PRODUCT_ATTRS
};

#endif
