/* Shared by handlers: attributes, emitting ops, constants. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "import/onnx/converter.h"

/* ---- Attributes ---- */

static const berth__onnx_attr *find_in(const berth__onnx_attr *attrs, size_t n, berth__span name) {
  for (size_t i = 0; i < n; i++)
    if (berth__span_equal(attrs[i].name, name)) return &attrs[i];
  return NULL;
}

static bool declares(const berth__onnx_function *function, berth__span attr) {
  for (size_t i = 0; i < function->n_attrs; i++)
    if (berth__span_equal(function->attrs[i], attr)) return true;
  return false;
}

/* A reference stands for the caller's attribute, or for the function's default. If the caller omits it, it is not
 * given; if the function does not declare it, this is an error. */
static const berth__onnx_attr *onnx_handlers_follow(const berth__onnx_scope *scope, const berth__onnx_attr *attr,
                                                    bool *is_wrong) {
  *is_wrong = false;
  while (attr != NULL && attr->ref_name.size != 0) {
    while (scope != NULL && scope->function == NULL) scope = scope->outer;
    if (scope == NULL) {
      *is_wrong = true;
      return NULL;
    }
    berth__span name = attr->ref_name;
    const berth__onnx_node *caller = scope->caller->node;
    attr = find_in(caller->attrs, caller->n_attrs, name);
    if (attr == NULL) attr = find_in(scope->function->defaults, scope->function->n_defaults, name);
    *is_wrong = attr == NULL && !declares(scope->function, name);
    scope = scope->outer;
  }
  return attr;
}

static void mark_wrong(const berth__onnx_call *call, const berth__onnx_attr *attr, const char *why) {
  if (call->converter->wrong_attr != NULL) return;
  call->converter->wrong_attr = attr;
  call->converter->wrong_attr_why = why;
}

const berth__onnx_attr *berth__onnx_find(const berth__onnx_call *call, const char *name) {
  berth__span span = {(const uint8_t *)name, strlen(name)};
  const berth__onnx_attr *attr = find_in(call->node->attrs, call->node->n_attrs, span);
  bool is_wrong;
  const berth__onnx_attr *found = onnx_handlers_follow(call->converter->scope, attr, &is_wrong);
  if (is_wrong) mark_wrong(call, attr, "refers to one that no function declares");
  return found;
}

/* Whether it is given and of the type. An empty one has the type's default. */
static bool is_of(const berth__onnx_call *call, const berth__onnx_attr *attr, int type, const char *why) {
  if (attr == NULL) return false;
  if (attr->type == type || attr->type == 0) return true;
  mark_wrong(call, attr, why);
  return false;
}

int64_t berth__onnx_int(const berth__onnx_call *call, const char *name, int64_t otherwise) {
  const berth__onnx_attr *attr = berth__onnx_find(call, name);
  return is_of(call, attr, BERTH__ONNX_INT, "must be an integer") ? attr->i : otherwise;
}

double berth__onnx_float(const berth__onnx_call *call, const char *name, double otherwise) {
  const berth__onnx_attr *attr = berth__onnx_find(call, name);
  return is_of(call, attr, BERTH__ONNX_FLOAT, "must be a number") ? (double)attr->f : otherwise;
}

berth__span berth__onnx_string(const berth__onnx_call *call, const char *name, const char *otherwise) {
  const berth__onnx_attr *attr = berth__onnx_find(call, name);
  if (is_of(call, attr, BERTH__ONNX_STRING, "must be a string")) return attr->s;
  return (berth__span){(const uint8_t *)otherwise, strlen(otherwise)};
}

const int64_t *berth__onnx_ints(const berth__onnx_call *call, const char *name, uint32_t *count) {
  const berth__onnx_attr *attr = berth__onnx_find(call, name);
  bool is_list = is_of(call, attr, BERTH__ONNX_INTS, "must be a list of integers") && attr->n_ints <= UINT32_MAX;
  *count = is_list ? (uint32_t)attr->n_ints : 0;
  return is_list ? attr->ints : NULL;
}

const float *berth__onnx_floats(const berth__onnx_call *call, const char *name, uint32_t *count) {
  const berth__onnx_attr *attr = berth__onnx_find(call, name);
  bool is_list = is_of(call, attr, BERTH__ONNX_FLOATS, "must be a list of numbers") && attr->n_floats <= UINT32_MAX;
  *count = is_list ? (uint32_t)attr->n_floats : 0;
  return is_list ? attr->floats : NULL;
}

const berth__span *berth__onnx_strings(const berth__onnx_call *call, const char *name, uint32_t *count) {
  const berth__onnx_attr *attr = berth__onnx_find(call, name);
  bool is_list = is_of(call, attr, BERTH__ONNX_STRINGS, "must be a list of strings") && attr->n_strings <= UINT32_MAX;
  *count = is_list ? (uint32_t)attr->n_strings : 0;
  return is_list ? attr->strings : NULL;
}

/* ---- Emitting ---- */

berth_status berth__onnx_emit(berth__onnx_call *call, const char *op, const berth_value *in, size_t n_in,
                              const berth_attr *attrs, size_t n_attrs, berth_value *out, size_t n_out,
                              berth_error *err) {
  return berth_graph_add(call->graph, op, in, n_in, attrs, n_attrs, out, n_out, err);
}

berth_status berth__onnx_unary(berth__onnx_call *call, const char *op, berth_value a, berth_value *out,
                               berth_error *err) {
  return berth__onnx_emit(call, op, &a, 1, NULL, 0, out, 1, err);
}

berth_status berth__onnx_binary(berth__onnx_call *call, const char *op, berth_value a, berth_value b, berth_value *out,
                                berth_error *err) {
  berth_value in[2] = {a, b};
  return berth__onnx_emit(call, op, in, 2, NULL, 0, out, 1, err);
}

berth_status berth__onnx_cast(berth__onnx_call *call, berth_value a, berth_type to, berth_value *out,
                              berth_error *err) {
  berth_attr attr = berth_attr_string("to", berth_type_name(to));
  if (berth__onnx_value_type(call, a) == to) {
    *out = a;
    return BERTH_OK;
  }
  return berth__onnx_emit(call, "cast", &a, 1, &attr, 1, out, 1, err);
}

berth_status berth__onnx_same(berth__onnx_call *call, berth_error *err) {
  return berth__onnx_emit(call, call->handler->berth_op, call->in, call->n_in, NULL, 0, call->out, call->n_out, err);
}

/* ---- Constants ---- */

berth_status berth__onnx_scalar(berth__onnx_call *call, berth_type type, double value, berth_value *out,
                                berth_error *err) {
  double room = 0;
  berth_tensor tensor = {.data = &room, .type = type};
  if (berth__type_is_float(type))
    berth__store_f64(&tensor, 0, value);
  else
    berth__store_i64(&tensor, 0, (int64_t)llrint(value));
  return berth_graph_constant(call->graph, NULL, type, berth_shape_fixed(0, NULL), &room, berth_type_size(type), out,
                              err);
}

berth_status berth__onnx_list(berth__onnx_call *call, const int64_t *values, uint32_t count, berth_value *out,
                              berth_error *err) {
  int64_t extent = count;
  return berth_graph_constant(call->graph, NULL, BERTH_I64, berth_shape_fixed(1, &extent), values,
                              count * sizeof *values, out, err);
}

berth_value berth__onnx_in(const berth__onnx_call *call, size_t index) {
  return index < call->n_in ? call->in[index] : BERTH_VALUE_NONE;
}

berth_status berth__onnx_want_in(const berth__onnx_call *call, size_t count, berth_error *err) {
  for (size_t i = 0; i < count; i++)
    if (berth__onnx_in(call, i) == BERTH_VALUE_NONE)
      return berth__fail(err, BERTH_MALFORMED, "operand %zu is missing", i);
  return BERTH_OK;
}

berth_type berth__onnx_value_type(const berth__onnx_call *call, berth_value value) {
  return value < call->graph->n_values ? call->graph->values[value].type : BERTH_TYPE_NONE;
}

bool berth__onnx_is_weight(const berth__onnx_call *call, berth_value value) {
  if (value >= call->graph->n_values) return false;
  const berth_value_kind kind = call->graph->values[value].kind;
  return kind == BERTH_VALUE_PARAM || kind == BERTH_VALUE_CONSTANT;
}

const berth__shape *berth__onnx_shape(const berth__onnx_call *call, berth_value value) {
  return &call->graph->values[value].shape;
}

static bool constant_tensor(const berth__onnx_call *call, berth_value value, berth_tensor *out, int64_t *count) {
  if (value >= call->graph->n_values || call->graph->values[value].blob == NULL) return false;
  const berth__value *v = &call->graph->values[value];
  *out = (berth_tensor){.data = (void *)(uintptr_t)v->data, .type = v->type};
  return berth__shape_count(&v->shape, count);
}

bool berth__onnx_constant_ints(const berth__onnx_call *call, berth_value value, int64_t *out, uint32_t most,
                               uint32_t *count) {
  berth_tensor tensor;
  int64_t n;
  if (!constant_tensor(call, value, &tensor, &n) || n > most || berth__type_is_float(tensor.type)) return false;
  for (int64_t i = 0; i < n; i++) out[i] = berth__load_i64(&tensor, i);
  *count = (uint32_t)n;
  return true;
}

bool berth__onnx_constant_float(const berth__onnx_call *call, berth_value value, double *out) {
  berth_tensor tensor;
  int64_t n;
  if (!constant_tensor(call, value, &tensor, &n) || n != 1) return false;
  *out = berth__type_is_float(tensor.type) ? berth__load_f64(&tensor, 0) : (double)berth__load_i64(&tensor, 0);
  return true;
}

berth_status berth__onnx_unsupported(const berth__onnx_call *call, berth_error *err, const char *fmt, ...) {
  char message[300];
  va_list args;
  (void)call; /* the driver adds the node's name */
  va_start(args, fmt);
  vsnprintf(message, sizeof message, fmt, args);
  va_end(args);
  return berth__fail(err, BERTH_UNSUPPORTED, "%s", message);
}
