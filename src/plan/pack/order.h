/* The orders in which the constructors take the items. */
#ifndef BERTH_PLAN_PACK_ORDER_H
#define BERTH_PLAN_PACK_ORDER_H

#include "plan/pack/problem.h"

typedef enum berth__pack_order {
  BERTH__PACK_BY_LIFETIME,      /* most sections first, then size */
  BERTH__PACK_BY_SIZE,          /* largest first, as given */
  BERTH__PACK_BY_SIZE_LIFETIME, /* largest first, then most sections */
  BERTH__PACK_BY_AREA,          /* size times lifetime */
  BERTH__PACK_BY_BREADTH,       /* fullest section first, then by size */
  BERTH__PACK_BY_START,         /* earliest birth first, then size */
  BERTH__PACK_BY_SPAN_AREA,     /* longest in the caller's clock, then area, then fullest section: for the search */
  BERTH__PACK_BY_BREADTH_AREA,  /* fullest section, then area, then lifetime */
  BERTH__PACK_BY_BREADTH_SPAN,  /* fullest section, then lifetime, then area */
  BERTH__PACK_N_ORDERS
} berth__pack_order;

/* Scratch for sorting: n entries each, load n_sections. */
typedef struct berth__pack_sorter {
  uint64_t *key;
  uint32_t *scratch;
  int64_t *load;
  uint32_t *fullest; /* a tree of 2 * leaves entries for range queries; see order.c */
} berth__pack_sorter;

berth_status berth__pack_sorter_create(berth_context *ctx, const berth__pack_item *items, uint32_t n,
                                       uint32_t n_sections, berth__pack_sorter *sorter, berth_error *err);
void berth__pack_sorter_destroy(berth_context *ctx, berth__pack_sorter *sorter);

/* Writes a permutation of the items. Equal ones keep the caller's order. */
void berth__pack_sort_items(const berth__pack_sorter *sorter, const berth__pack_item *items, uint32_t n,
                            uint32_t n_sections, berth__pack_order order, uint32_t *out);

#endif
