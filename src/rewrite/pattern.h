/* Queries on a graph for finding patterns, before berth__rewrite_start. */
#ifndef BERTH_REWRITE_PATTERN_H
#define BERTH_REWRITE_PATTERN_H

#include "graph/rewrite.h"

#define BERTH__NO_NODE UINT32_MAX

/* The node that makes a value, if it is of this op; else NULL. The value may be BERTH_VALUE_NONE. */
const berth__node *berth__maker(const berth_graph *graph, berth_value value, berth__op_code op);
/* The only reader of a value, which is not an output, if it is of this op; otherwise NULL. */
const berth__node *berth__only_reader(const berth_graph *graph, const berth__uses *uses, berth_value value,
                                      berth__op_code op);
/* f32, or f16 and bf16, which are computed as f32. */
bool berth__is_float(berth_type type);
/* The single element of a value whose data is known, of any type. */
bool berth__is_number(const berth__value *value, double *out);
/* The same for these float types only. */
bool berth__is_float_number(const berth__value *value, double *out);
/* The number of a value's elements; 0 if unknown. */
int64_t berth__value_count(const berth__value *value);
/* Whether a transpose has exactly this permutation. */
bool berth__has_perm(const berth__node *transpose, const int64_t *perm, uint32_t rank);
/* An operand that may be omitted. */
static inline berth_value berth__operand_of(const berth__node *node, uint32_t i) {
  return i < node->n_in ? node->in[i] : BERTH_VALUE_NONE;
}

#endif
