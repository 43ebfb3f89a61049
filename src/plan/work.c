/* What nodes cost, to compare which could be run again: the operations of products, plus a cost for every element
 * read or written. */
#include "plan/remake.h"

#define PER_ELEMENT 2.0 /* operations that take as long as moving an element */

static double plan_work_elements(const berth_graph *graph, berth_value value) {
  int64_t count = 0;
  if (value == BERTH_VALUE_NONE || !berth__shape_count(&graph->values[value].shape, &count)) return 0;
  return (double)count;
}

static double plan_work_last(const berth_graph *graph, berth_value value) {
  const berth__shape *shape = &graph->values[value].shape;
  return shape->rank == 0 ? 1 : (double)shape->dim[shape->rank - 1];
}

static double plan_work_rows(const berth_graph *graph, berth_value value) {
  const double last = plan_work_last(graph, value);
  return last > 0 ? plan_work_elements(graph, value) / last : 0;
}

/* Every weight once per pixel of the result; channels are the second axis, or the last. */
static double plan_work_convolution(const berth_graph *graph, const berth__node *node, bool is_last) {
  const berth__shape *out = &graph->values[node->out[0]].shape;
  const double channels = out->rank < 2 ? 1 : (double)out->dim[is_last ? out->rank - 1 : 1];
  const double pixels = channels > 0 ? plan_work_elements(graph, node->out[0]) / channels : 0;
  return 2 * pixels * plan_work_elements(graph, node->in[1]);
}

/* Scores and weighted sums: two products of every query with every key. */
static double plan_work_attention(const berth_graph *graph, const berth__node *node) {
  const berth__shape *k = &graph->values[node->in[BERTH__ATTENTION_K]].shape;
  const double keys = k->rank < 2 ? 1 : (double)k->dim[k->rank - 2];
  const bool is_limited = strcmp(node->attrs[BERTH__ATTENTION_MODE].s, "none") != 0;
  return 4 * plan_work_elements(graph, node->in[BERTH__ATTENTION_Q]) * keys * (is_limited ? 0.5 : 1);
}

double berth__node_operations(const berth_graph *graph, const berth__node *node) {
  switch (node->op->code) {
    case BERTH__OP_matmul:
    case BERTH__OP_product:
    case BERTH__OP_row_product:
    case BERTH__OP_qproduct: return 2 * plan_work_elements(graph, node->out[0]) * plan_work_last(graph, node->in[0]);
    case BERTH__OP_expert_matmul:
      return 2 * plan_work_elements(graph, node->out[0]) * plan_work_last(graph, node->in[0]);
    case BERTH__OP_conv: return plan_work_convolution(graph, node, false);
    case BERTH__OP_conv_last:
    case BERTH__OP_qconv_last:
    case BERTH__OP_conv_winograd: return plan_work_convolution(graph, node, true);
    case BERTH__OP_conv_transpose:
    case BERTH__OP_conv_transpose_last:
      return 2 * plan_work_elements(graph, node->in[0]) * plan_work_elements(graph, node->in[1]) /
             (node->op->code == BERTH__OP_conv_transpose ? (double)graph->values[node->in[0]].shape.dim[1]
                                                         : plan_work_last(graph, node->in[0]));
    case BERTH__OP_conv_weight_grad: {
      const berth__shape *out = &graph->values[node->out[0]].shape;
      const double each = out->dim[0] > 0 ? plan_work_elements(graph, node->out[0]) / (double)out->dim[0] : 0;
      return 2 * each * plan_work_elements(graph, node->in[BERTH__WEIGHT_GRAD_DY]);
    }
    case BERTH__OP_attention: return plan_work_attention(graph, node);
    case BERTH__OP_attention_grad: return 2.5 * plan_work_attention(graph, node);
    case BERTH__OP_lstm:
    case BERTH__OP_gru:
    case BERTH__OP_rnn:
      return 2 * plan_work_rows(graph, node->in[BERTH__RECURRENT_X]) *
             (plan_work_elements(graph, node->in[BERTH__RECURRENT_WEIGHT]) +
              plan_work_elements(graph, node->in[BERTH__RECURRENT_RECURRENCE]));
    default: return 0;
  }
}

double berth__node_work(const berth_graph *graph, const berth__node *node) {
  double moved = 0;
  for (uint32_t i = 0; i < node->n_in; i++) moved += plan_work_elements(graph, node->in[i]);
  for (uint32_t i = 0; i < node->n_out; i++) moved += plan_work_elements(graph, node->out[i]);
  return berth__node_operations(graph, node) + PER_ELEMENT * moved;
}

double berth__plan_work(const berth_plan *plan, const berth__limits *limits, const berth__node *node, bool is_view) {
  if (is_view) return 0;
  if (limits->work == NULL) return berth__node_work(plan->graph, node);
  return limits->work(limits, plan->graph, node, plan->storages);
}
