#include "loss.h"

#include <stdbool.h>
#include <string.h>

#include "elements.h"

static bool loss_is_softmax(const berth_node_info *node, uint32_t rank) {
  if (strcmp(node->op, "softmax") != 0) return false;
  for (uint32_t i = 0; i < node->n_attrs; i++)
    if (strcmp(node->attrs[i].name, "axis") == 0)
      return node->attrs[i].i == (int64_t)rank - 1 || node->attrs[i].i == -1;
  return false;
}

berth_value loss_output(const berth_graph *graph) {
  berth_value_info info = BERTH_VALUE_INFO_INIT;
  for (uint32_t i = 0; i < berth_graph_n_outputs(graph); i++) {
    berth_graph_value(graph, berth_graph_output_at(graph, i), &info, NULL);
    if (element_is_float(info.type)) return berth_graph_output_at(graph, i);
  }
  return BERTH_VALUE_NONE;
}

berth_value loss_logits(const berth_graph *graph, berth_value output) {
  berth_value_info info = BERTH_VALUE_INFO_INIT;
  berth_node_info node = BERTH_NODE_INFO_INIT;
  berth_graph_value(graph, output, &info, NULL);
  if (info.kind != BERTH_VALUE_NODE || berth_graph_node(graph, info.node, &node, NULL) != BERTH_OK) return output;
  return loss_is_softmax(&node, info.shape.rank) ? node.in[0] : output;
}

static berth_status loss_add(berth_graph *graph, const char *op, const berth_value *in, size_t n_in,
                             const berth_attr *attrs, size_t n_attrs, berth_value *out, berth_error *err) {
  return berth_graph_add(graph, op, in, n_in, attrs, n_attrs, out, 1, err);
}

berth_status loss_cross_entropy(berth_graph *graph, berth_value logits, berth_value labels, uint32_t rank,
                                berth_value *loss, berth_error *err) {
  const berth_attr to[] = {berth_attr_string("to", "i64"), berth_attr_string("to", "f32")};
  const berth_attr axis = berth_attr_int("axis", (int64_t)rank - 1), flat = berth_attr_int("keepdims", 0);
  berth_value value = logits;
  berth_status status = loss_add(graph, "cast", &logits, 1, &to[1], 1, &value, err);
  if (status == BERTH_OK) status = loss_add(graph, "log_softmax", &value, 1, &axis, 1, &value, err);
  if (status == BERTH_OK) status = loss_add(graph, "cast", &labels, 1, &to[0], 1, &labels, err);
  const berth_value both[] = {value, labels};
  if (status == BERTH_OK) status = loss_add(graph, "gather_elements", both, 2, &axis, 1, &value, err);
  if (status == BERTH_OK) status = loss_add(graph, "reduce_mean", &value, 1, &flat, 1, &value, err);
  return status == BERTH_OK ? loss_add(graph, "neg", &value, 1, NULL, 0, loss, err) : status;
}

berth_status loss_squares(berth_graph *graph, berth_value y, berth_value wanted, berth_value *loss, berth_error *err) {
  const berth_attr flat = berth_attr_int("keepdims", 0), to = berth_attr_string("to", "f32");
  const berth_value both[] = {y, wanted};
  berth_value value = y;
  berth_status status = loss_add(graph, "sub", both, 2, NULL, 0, &value, err);
  if (status == BERTH_OK) status = loss_add(graph, "cast", &value, 1, &to, 1, &value, err);
  const berth_value twice[] = {value, value};
  if (status == BERTH_OK) status = loss_add(graph, "mul", twice, 2, NULL, 0, &value, err);
  return status == BERTH_OK ? loss_add(graph, "reduce_mean", &value, 1, &flat, 1, loss, err) : status;
}
