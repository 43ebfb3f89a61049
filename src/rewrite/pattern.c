#include "rewrite/pattern.h"

const berth__node *berth__maker(const berth_graph *graph, berth_value value, berth__op_code op) {
  if (value == BERTH_VALUE_NONE || graph->values[value].kind != BERTH_VALUE_NODE) return NULL;
  const berth__node *node = &graph->nodes[graph->values[value].node];
  return node->op->code == op ? node : NULL;
}

const berth__node *berth__only_reader(const berth_graph *graph, const berth__uses *uses, berth_value value,
                                      berth__op_code op) {
  if (uses->count[value] != 1 || uses->is_output[value]) return NULL;
  const berth__node *node = &graph->nodes[uses->reader[value]];
  return node->op->code == op ? node : NULL;
}

int64_t berth__value_count(const berth__value *value) {
  int64_t count = 0;
  return berth__shape_count(&value->shape, &count) ? count : 0;
}

bool berth__is_number(const berth__value *value, double *out) {
  if (value->data == NULL || berth__value_count(value) != 1) return false;
  const berth_tensor tensor = berth__value_tensor(value, value->data);
  *out = berth__load_f64(&tensor, 0);
  return true;
}

bool berth__is_float(berth_type type) { return type == BERTH_F32 || type == BERTH_F16 || type == BERTH_BF16; }

bool berth__is_float_number(const berth__value *value, double *out) {
  return berth__is_float(value->type) && berth__is_number(value, out);
}

bool berth__has_perm(const berth__node *transpose, const int64_t *perm, uint32_t rank) {
  const berth_attr *attr = &transpose->attrs[BERTH__TRANSPOSE_PERM];
  return attr->count == rank && memcmp(attr->ints, perm, rank * sizeof *perm) == 0;
}
