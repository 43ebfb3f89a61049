/* Turns constant operands into the attributes that can replace them: the shape of a reshape, the bounds of a slice.
 * Views are derived from attributes, and the constant then needs no bytes in the arena. */
#include "pass/pass.h"

#define MAX_ENTRIES 4096

static berth_status set_list(berth_graph *graph, const berth_tensor *from, int64_t count, berth_attr *attr,
                             berth_error *err) {
  int64_t *ints = berth__alloc_array(graph->ctx, (size_t)count, sizeof *ints);
  if (ints == NULL) return berth__fail_nomem(err, "attributes");
  for (int64_t i = 0; i < count; i++) ints[i] = berth__load_i64(from, i);
  const berth_attr value = berth_attr_ints(attr->name, ints, (uint32_t)count);
  berth_status status = berth__attr_replace(graph->ctx, attr, &value, err);
  berth__free(graph->ctx, ints);
  return status;
}

/* An integer that a double cannot represent stays an operand. */
static bool pass_static_operands_number_of(const berth_tensor *from, double *out) {
  if (berth__type_is_float(from->type)) return *out = berth__load_f64(from, 0), true;
  const int64_t i = berth__load_i64(from, 0);
  *out = (double)i;
  return i >= -((int64_t)1 << 53) && i <= (int64_t)1 << 53;
}

/* *done: the attribute has replaced the operand. */
static berth_status move_operand(berth_graph *graph, const berth__value *value, berth_attr *attr, bool *done,
                                 berth_error *err) {
  const berth_tensor from = {.data = (void *)(uintptr_t)value->data, .type = value->type};
  const bool is_float = berth__type_is_float(value->type);
  int64_t count;
  *done = false;
  if (value->blob == NULL || !berth__shape_count(&value->shape, &count) || count > MAX_ENTRIES) return BERTH_OK;
  switch (attr->kind) {
    case BERTH_ATTR_INT: *done = count == 1 && !is_float; break;
    case BERTH_ATTR_FLOAT: *done = count == 1 && pass_static_operands_number_of(&from, &attr->f); break;
    case BERTH_ATTR_INTS:
    case BERTH_ATTR_DIMS: *done = !is_float; break;
    default: break;
  }
  if (!*done || attr->kind == BERTH_ATTR_FLOAT) return BERTH_OK;
  if (attr->kind == BERTH_ATTR_INT) return attr->i = berth__load_i64(&from, 0), BERTH_OK;
  return set_list(graph, &from, count, attr, err);
}

berth_status berth__pass_static_operands(berth_graph *graph, berth_error *err) {
  for (size_t n = 0; n < graph->n_nodes; n++) {
    berth__node *node = &graph->nodes[n];
    for (uint32_t i = 0; i < node->n_in && i < BERTH__ATTR_OPERANDS; i++) {
      const uint32_t attr = node->op->family->attr_of[i];
      bool done;
      if (attr == 0 || node->in[i] == BERTH_VALUE_NONE) continue;
      BERTH__TRY(move_operand(graph, &graph->values[node->in[i]], &node->attrs[attr - 1], &done, err));
      if (done) node->in[i] = BERTH_VALUE_NONE;
    }
    while (node->n_in > node->op->min_in && node->in[node->n_in - 1] == BERTH_VALUE_NONE) node->n_in--;
  }
  return BERTH_OK;
}
