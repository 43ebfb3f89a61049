#include "work.h"

#include <stdbool.h>
#include <stdlib.h>

/* ---- Queries on a node ---- */

typedef struct subject {
  const berth_graph *graph;
  const berth_plan *plan; /* NULL: none */
  const berth_node_info *node;
  double result; /* elements of the first result */
  double cost;   /* of its row in the table */
} subject;

static bool tool_work_value_info(const berth_graph *graph, const berth_value *values, uint32_t n, uint32_t at,
                                 berth_value_info *out) {
  return at < n && values[at] != BERTH_VALUE_NONE && berth_graph_value(graph, values[at], out, NULL) == BERTH_OK;
}

static bool tool_work_operand(const subject *s, uint32_t at, berth_value_info *out) {
  return tool_work_value_info(s->graph, s->node->in, s->node->n_in, at, out);
}

static double elements(const berth_value_info *info) {
  berth_storage storage = berth_type_storage(info->type);
  const uint64_t blocks = storage.bytes ? info->size / storage.bytes : 0;
  return (double)blocks * (double)storage.elements;
}

static double operand_elements(const subject *s, uint32_t at) {
  berth_value_info info = BERTH_VALUE_INFO_INIT;
  return tool_work_operand(s, at, &info) ? elements(&info) : 0;
}

/* An extent of an operand; negative axes count from the last. 1 if there is none. */
static double tool_work_extent(const subject *s, uint32_t at, int axis) {
  berth_value_info info = BERTH_VALUE_INFO_INIT;
  if (!tool_work_operand(s, at, &info)) return 1;
  int from_first = axis < 0 ? axis + (int)info.shape.rank : axis;
  if (from_first < 0 || from_first >= (int)info.shape.rank) return 1;
  return (double)info.shape.dim[from_first].extent;
}

static const berth_attr *tool_work_find_attr(const subject *s, const char *name) {
  for (uint32_t i = 0; i < s->node->n_attrs; i++)
    if (strcmp(s->node->attrs[i].name, name) == 0) return &s->node->attrs[i];
  return NULL;
}

static double tool_work_int_attr(const subject *s, const char *name, double otherwise) {
  const berth_attr *attr = tool_work_find_attr(s, name);
  return attr ? (double)attr->i : otherwise;
}

static double taps(const subject *s) {
  const berth_attr *kernel = tool_work_find_attr(s, "kernel");
  double count = 1;
  for (uint32_t i = 0; kernel && i < kernel->count; i++) count *= (double)kernel->ints[i];
  return count;
}

/* The element-wise program of a fused node has four numbers per step. */
static double program_steps(const subject *s) {
  const berth_attr *code = tool_work_find_attr(s, "code");
  return code ? code->count / 4 : 0;
}

/* ---- The rules ---- */

typedef double (*rule)(const subject *s);

static double per_result(const subject *s) { return s->cost * s->result; }
static double per_operand(const subject *s) { return s->cost * operand_elements(s, 0); }
static double per_window(const subject *s) { return s->cost * s->result * taps(s); }
static double program(const subject *s) { return s->result * program_steps(s); }

static double matmul(const subject *s) { return 2 * s->result * tool_work_extent(s, 0, -1); }
static double product(const subject *s) { return matmul(s) + program(s); }

static double conv(const subject *s) {
  double outputs = tool_work_extent(s, 1, 0);
  return outputs > 0 ? 2 * s->result * operand_elements(s, 1) / outputs : 0;
}

static double conv_transpose(const subject *s) {
  double inputs = tool_work_extent(s, 1, 0);
  return inputs > 0 ? 2 * operand_elements(s, 0) * operand_elements(s, 1) / inputs : 0;
}

/* Every element of the weight's gradient is a sum over the positions of dy, operand 1. */
static double conv_weight_grad(const subject *s) {
  const double outputs = tool_work_extent(s, 1, tool_work_int_attr(s, "channels_last", 0) != 0 ? -1 : 1);
  return outputs > 0 ? 2 * operand_elements(s, 1) * s->result / outputs : 0;
}

static double conv_last(const subject *s) {
  return 2 * s->result * taps(s) * tool_work_extent(s, 0, -1) / tool_work_int_attr(s, "group", 1) + program(s);
}

static double conv_transpose_last(const subject *s) {
  return 2 * operand_elements(s, 0) * taps(s) * tool_work_int_attr(s, "channels", 1) + program(s);
}

static double depthwise(const subject *s) { return 2 * s->result * taps(s) + program(s); }

/* The operations of the direct form, for comparison; the rate may exceed the machine's peak. */
static double conv_winograd(const subject *s) { return 2 * s->result * 9 * tool_work_extent(s, 0, -1) + program(s); }

/* Scores and weighted sums over the keys that a query may see in its mode. */
static double attention(const subject *s) {
  const berth_attr *mode = tool_work_find_attr(s, "mode");
  double queries = tool_work_extent(s, 0, -2), keys = tool_work_extent(s, 1, -2),
         window = tool_work_int_attr(s, "window", 0);
  bool limited = mode && mode->s && strcmp(mode->s, "none") != 0;
  double seen = limited && queries <= keys ? keys - (queries - 1) / 2 : keys;
  if (limited && window > 0 && window < seen) seen = window;
  return 2 * seen * (operand_elements(s, 0) + s->result) +
         5 * seen * operand_elements(s, 0) / tool_work_extent(s, 0, -1);
}

/* Five products where attention has two: scores again, and gradients of weights, values, queries and keys. */
static double attention_grad(const subject *s) { return 2.5 * attention(s); }

static double recurrent(const subject *s) {
  return 2 * tool_work_extent(s, 0, 0) * tool_work_extent(s, 0, 1) * (operand_elements(s, 1) + operand_elements(s, 2));
}

static double qlstm(const subject *s) {
  return 2 * tool_work_extent(s, 0, 0) * tool_work_extent(s, 0, 2) * operand_elements(s, 2);
}

typedef struct row {
  const char *op;
  rule flops;
  double cost;
} row;

static const row rows[] = {
    {"matmul", matmul, 0},
    {"product", product, 0},
    {"qproduct", product, 0},
    {"conv", conv, 0},
    {"deform_conv", conv, 0},
    {"conv_transpose", conv_transpose, 0},
    {"conv_weight_grad", conv_weight_grad, 0},
    {"conv_last", conv_last, 0},
    {"qconv_last", conv_last, 0},
    {"conv_transpose_last", conv_transpose_last, 0},
    {"depthwise", depthwise, 0},
    {"qdepthwise", depthwise, 0},
    {"conv_winograd", conv_winograd, 0},
    {"attention", attention, 0},
    {"attention_grad", attention_grad, 0},
    {"lstm", recurrent, 0},
    {"gru", recurrent, 0},
    {"rnn", recurrent, 0},
    {"qlstm", qlstm, 0},
    {"chain", program, 0},
    {"max_pool", per_window, 1},
    {"avg_pool", per_window, 1},
    {"lp_pool", per_window, 2},
    {"softmax", per_result, 5},
    {"log_softmax", per_result, 5},
    {"cross_entropy", per_operand, 4},
    {"cross_entropy_grad", per_result, 6},
    {"sgd", per_result, 4},
    {"adamw", per_result, 14},
    {"layer_norm", per_result, 8},
    {"group_norm", per_result, 8},
    {"rms_norm", per_result, 4},
    {"layer_norm_grad", per_result, 16},
    {"rms_norm_grad", per_result, 11},
    {"layer_norm_scale_grad", per_operand, 9},
    {"rms_norm_scale_grad", per_operand, 6},
    {"batch_norm", per_result, 2},
    {"rope", per_result, 3},
    {"quantize", per_result, 2},
    {"dequantize", per_result, 2},
    {"unpack", per_result, 1},
    {"quantize_range", per_operand, 2},
    {"reduce_sum", per_operand, 1},
    {"reduce_mean", per_operand, 1},
    {"reduce_max", per_operand, 1},
    {"reduce_min", per_operand, 1},
    {"reduce_prod", per_operand, 1},
    {"reduce_bytes", per_operand, 1},
    {"arg_max", per_operand, 1},
    {"arg_min", per_operand, 1},
    {"cumsum", per_result, 1},
};

/* One operation per element, regardless of its cost. */
static const char *const element_wise[] = {
    "neg",     "abs",  "exp",      "log",   "sqrt",  "rsqrt",     "sin",        "cos", "tan",   "asin",  "acos", "atan",
    "sinh",    "cosh", "tanh",     "asinh", "acosh", "atanh",     "expm1",      "erf", "round", "floor", "ceil", "sign",
    "sigmoid", "relu", "softplus", "gelu",  "silu",  "gelu_tanh", "reciprocal", "add", "sub",   "mul",   "div",  "pow",
    "min",     "max",  "mod",      "clamp", "eq",    "ne",        "lt",         "le",  "gt",    "ge",
};

/* They read only as much of their first operand as they write. */
static const char *const selective[] = {"gather", "gather_elements", "gather_nd", "embedding", "narrow", "diagonal"};

static bool tool_work_is_one_of(const char *op, const char *const *names, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (strcmp(op, names[i]) == 0) return true;
  return false;
}
#define IS_ONE_OF(op, names) tool_work_is_one_of(op, names, sizeof(names) / sizeof((names)[0]))

static double tool_work_flops_of(subject *s) {
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    if (strcmp(s->node->op, rows[i].op) != 0) continue;
    s->cost = rows[i].cost;
    return rows[i].flops(s);
  }
  return IS_ONE_OF(s->node->op, element_wise) ? s->result : 0;
}

static bool came_before(const berth_node_info *node, uint32_t at) {
  for (uint32_t i = 0; i < at; i++)
    if (node->in[i] == node->in[at]) return true;
  return false;
}

/* In the arena, where a device may keep elements in fewer bits, or as their type says. */
static uint64_t tool_work_size(const subject *s, berth_value value, const berth_value_info *info) {
  berth_slot slot = BERTH_SLOT_INIT;
  if (s->plan == NULL || berth_plan_slot(s->plan, value, &slot, NULL) != BERTH_OK || slot.storage.bytes == 0)
    return info->size;
  return berth_storage_bytes(slot.storage, (uint64_t)elements(info));
}

static uint64_t tool_work_bytes_of(const subject *s, uint64_t written) {
  berth_value_info info = BERTH_VALUE_INFO_INIT;
  uint64_t bytes = written;
  if (strcmp(s->node->op, "write_rows") == 0 && tool_work_operand(s, 1, &info)) /* in place */
    return 2 * tool_work_size(s, s->node->in[1], &info);
  for (uint32_t i = 0; i < s->node->n_in; i++) {
    if (came_before(s->node, i) || !tool_work_operand(s, i, &info)) continue;
    const uint64_t size = tool_work_size(s, s->node->in[i], &info);
    bool is_partly_read = i == 0 && size > written && IS_ONE_OF(s->node->op, selective);
    bytes += is_partly_read ? written : size;
  }
  return bytes;
}

work work_of_node(const berth_graph *graph, const berth_plan *plan, const berth_node_info *node) {
  subject s = {.graph = graph, .plan = plan, .node = node};
  berth_value_info info = BERTH_VALUE_INFO_INIT;
  uint64_t written = 0;
  for (uint32_t i = 0; i < node->n_out; i++) {
    if (!tool_work_value_info(graph, node->out, node->n_out, i, &info)) continue;
    if (i == 0) s.result = elements(&info);
    written += tool_work_size(&s, node->out[i], &info);
  }
  work done = {.bytes = tool_work_bytes_of(&s, written)};
  done.flops = tool_work_flops_of(&s);
  return done;
}
