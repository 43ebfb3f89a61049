/* Predicts how attention and its gradients will be computed, as far as possible before the graph is planned. */
#include "kernel/lower/attention.h"

#include "device/gpu/recipe.h"
#include "graph/rewrite.h"
#include "plan/plan.h"

#define MOST_OPERANDS 16u

static bool describe(const berth_graph *graph, const berth__node *node, berth_tensor *tensors, berth_op_call *call) {
  if (node->n_in + node->n_out > MOST_OPERANDS || berth__node_is_bounded(graph, node)) return false;
  for (uint32_t i = 0; i < node->n_in + node->n_out; i++) {
    const berth_value value = i < node->n_in ? node->in[i] : node->out[i - node->n_in];
    int64_t count;
    if (value == BERTH_VALUE_NONE) continue;
    if (!berth__shape_count(&graph->values[value].shape, &count)) return false;
    int64_t strides[BERTH_MAX_RANK];
    berth__contiguous_strides(graph->values[value].shape.rank, graph->values[value].shape.dim, strides);
    tensors[i] = berth__plan_tensor(graph, value, strides);
  }
  *call = (berth_op_call){.in = tensors,
                          .n_in = node->n_in,
                          .out = tensors + node->n_in,
                          .n_out = node->n_out,
                          .attrs = node->attrs,
                          .n_attrs = node->op->family->n_attrs};
  return true;
}

bool berth__gpu_attends_by_units(const berth__kernel_limits *limits, const berth_graph *graph,
                                 const berth__node *node) {
  berth_tensor tensors[MOST_OPERANDS] = {0};
  berth_op_call call;
  berth__attention_form form;
  const bool is_grad = node->op->code == BERTH__OP_attention_grad;
  if ((!is_grad && node->op->code != BERTH__OP_attention) || !describe(graph, node, tensors, &call)) return false;
  if (is_grad) {
    berth__attention_grad g;
    berth__attention_grad_of(&call, &g);
    return berth__attention_grad_form(&g, NULL, limits, &form) && form.kind != BERTH_COMPUTE_F32;
  }
  berth__attention a;
  berth__attention_of(&call, &a);
  return berth__attention_form_of(&a, limits, &form) && form.kind != BERTH_COMPUTE_F32;
}
