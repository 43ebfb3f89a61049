#include "import/onnx/ranks.h"

#define MOST_STEPS 8    /* from a value to a node that determines its rank */
#define MOST_INPUTS 256 /* per graph: all nodes are searched for each */

typedef struct ranks_rule {
  const char *op;
  uint32_t rank;    /* if it is always the same; 0: it is not */
  const char *list; /* an attribute with one number per axis, and `more` axes without one; NULL: none */
  uint32_t more;
  uint32_t like; /* an operand of the same rank, if that is a weight; 0: none */
} ranks_rule;

static const ranks_rule ranks_rules[] = {
    {.op = "AveragePool", .list = "kernel_shape", .more = 2},
    {.op = "Conv", .list = "kernel_shape", .more = 2, .like = 1},
    {.op = "ConvInteger", .list = "kernel_shape", .more = 2, .like = 1},
    {.op = "ConvTranspose", .list = "kernel_shape", .more = 2, .like = 1},
    {.op = "DepthToSpace", .rank = 4},
    {.op = "GRU", .rank = 3},
    {.op = "Gemm", .rank = 2},
    {.op = "LSTM", .rank = 3},
    {.op = "LpPool", .list = "kernel_shape", .more = 2},
    {.op = "MaxPool", .list = "kernel_shape", .more = 2},
    {.op = "QLinearConv", .list = "kernel_shape", .more = 2, .like = 3},
    {.op = "RNN", .rank = 3},
    {.op = "SpaceToDepth", .rank = 4},
    {.op = "Transpose", .list = "perm"},
};

/* The result has the rank of operand 0, whatever the others are (scalars, and lists for the channels). */
static const char *const ranks_keep[] = {
    "BatchNormalization", "Cast",    "Clip", "DequantizeLinear", "Identity", "ImageScaler", "Pad", "Relu",
    "QuantizeLinear",     "Sigmoid", "Tanh", "Dropout",          NULL};
/* The same, if operand 1 is a weight of one element. */
static const char *const ranks_join[] = {"Add", "Div", "Mul", "Pow", "Sub", NULL};

static bool ranks_is_among(berth__span op, const char *const *list) {
  for (; *list != NULL; list++)
    if (berth__span_is(op, *list)) return true;
  return false;
}

static const berth__onnx_tensor *ranks_weight(const berth__onnx_graph *graph, const berth__onnx_node *node, size_t k) {
  for (size_t i = 0; k < node->n_inputs && i < graph->n_initializers; i++)
    if (berth__span_equal(graph->initializers[i].name, node->inputs[k])) return &graph->initializers[i];
  return NULL;
}

static uint32_t ranks_by_rule(const berth__onnx_graph *graph, const berth__onnx_node *node, const ranks_rule *rule) {
  if (rule->rank != 0) return rule->rank;
  for (size_t i = 0; i < node->n_attrs; i++) {
    const berth__onnx_attr *attr = &node->attrs[i];
    if (berth__span_is(attr->name, rule->list) && attr->n_ints != 0 && attr->n_ints + rule->more <= BERTH_MAX_RANK)
      return (uint32_t)attr->n_ints + rule->more;
  }
  const berth__onnx_tensor *weight = rule->like != 0 ? ranks_weight(graph, node, rule->like) : NULL;
  return weight != NULL && !weight->rank_is_too_large ? weight->rank : 0;
}

static bool ranks_keeps(const berth__onnx_graph *graph, const berth__onnx_node *node) {
  if (node->n_outputs == 0) return false;
  if (ranks_is_among(node->op, ranks_keep)) return true;
  const berth__onnx_tensor *weight = ranks_is_among(node->op, ranks_join) ? ranks_weight(graph, node, 1) : NULL;
  int64_t count = 1;
  for (uint32_t i = 0; weight != NULL && i < weight->rank; i++)
    if (weight->dim[i] != 1) count = 0;
  return weight != NULL && count == 1 && weight->rank <= 1;
}

/* The rank that a node which reads the value determines; *next is the result of the first reader that keeps its
 * rank. */
static uint32_t ranks_look(const berth__onnx_graph *graph, berth__span name, berth__span *next) {
  *next = (berth__span){0};
  for (size_t n = 0; n < graph->n_nodes; n++) {
    const berth__onnx_node *node = &graph->nodes[n];
    if (node->n_inputs == 0 || node->domain.size != 0 || !berth__span_equal(node->inputs[0], name)) continue;
    for (size_t i = 0; i < sizeof ranks_rules / sizeof *ranks_rules; i++) {
      const bool is_it = berth__span_is(node->op, ranks_rules[i].op);
      const uint32_t found = is_it ? ranks_by_rule(graph, node, &ranks_rules[i]) : 0;
      if (found != 0) return found;
    }
    if (next->size == 0 && ranks_keeps(graph, node)) *next = node->outputs[0];
  }
  return 0;
}

uint32_t berth__onnx_wanted_rank(const berth__onnx_graph *graph, berth__span name) {
  uint32_t found = 0;
  if (graph->n_inputs > MOST_INPUTS) return 0;
  for (uint32_t step = 0; step < MOST_STEPS && name.size != 0 && found == 0; step++) {
    berth__span next;
    found = ranks_look(graph, name, &next);
    name = next;
  }
  return found;
}
