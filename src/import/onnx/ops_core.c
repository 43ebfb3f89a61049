/* Constant, Identity, and If with a known condition. */
#include <stdio.h>

#include "import/onnx/converter.h"

static berth_status constant_floats(berth__onnx_call *call, const berth__onnx_attr *attr, bool is_list,
                                    berth_error *err) {
  int64_t extent = (int64_t)attr->n_floats;
  const float *data = is_list ? attr->floats : &attr->f;
  size_t count = is_list ? attr->n_floats : 1;
  return berth_graph_constant(call->graph, NULL, BERTH_F32, berth_shape_fixed(is_list ? 1 : 0, &extent), data,
                              count * sizeof *data, &call->out[0], err);
}

static berth_status constant_ints(berth__onnx_call *call, const berth__onnx_attr *attr, bool is_list,
                                  berth_error *err) {
  int64_t extent = (int64_t)attr->n_ints;
  const int64_t *data = is_list ? attr->ints : &attr->i;
  size_t count = is_list ? attr->n_ints : 1;
  return berth_graph_constant(call->graph, NULL, BERTH_I64, berth_shape_fixed(is_list ? 1 : 0, &extent), data,
                              count * sizeof *data, &call->out[0], err);
}

static berth_status convert_constant(berth__onnx_call *call, berth_error *err) {
  const berth__onnx_attr *attr;
  if (call->n_out != 1) return berth__fail(err, BERTH_MALFORMED, "a Constant has one output");
  if ((attr = berth__onnx_find(call, "value")) != NULL && attr->tensor != NULL &&
      attr->tensor->data_type != BERTH__ONNX_OF_STRINGS)
    return berth__onnx_add_tensor(call->converter, NULL, attr->tensor, &call->out[0], err);
  if ((attr = berth__onnx_find(call, "sparse_value")) != NULL && attr->is_sparse) {
    char name[64];
    snprintf(name, sizeof name, "sparse_%zu", call->graph->n_values);
    return berth__onnx_add_sparse(call->converter, name, attr->sparse, &call->out[0], NULL, err);
  }
  if ((attr = berth__onnx_find(call, "value_float")) != NULL) return constant_floats(call, attr, false, err);
  if ((attr = berth__onnx_find(call, "value_floats")) != NULL) return constant_floats(call, attr, true, err);
  if ((attr = berth__onnx_find(call, "value_int")) != NULL) return constant_ints(call, attr, false, err);
  if ((attr = berth__onnx_find(call, "value_ints")) != NULL) return constant_ints(call, attr, true, err);
  berth__onnx_set_absent(call, 0, "constants of strings are not supported");
  return BERTH_OK;
}

static berth_status convert_identity(berth__onnx_call *call, berth_error *err) {
  BERTH__TRY(berth__onnx_want_in(call, 1, err));
  if (call->n_out != 1) return berth__fail(err, BERTH_MALFORMED, "an Identity has one output");
  call->out[0] = call->in[0];
  return BERTH_OK;
}

/* ---- Optionals: whether one is empty is known when the file is read ---- */

static berth_status convert_optional(berth__onnx_call *call, berth_error *err) {
  if (call->n_out != 1) return berth__fail(err, BERTH_MALFORMED, "an Optional has one output");
  call->out[0] = berth__onnx_in(call, 0) != BERTH_VALUE_NONE ? call->in[0] : BERTH__ONNX_EMPTY;
  return BERTH_OK;
}

/* An input of the model that is an optional is never empty. */
static berth_status convert_has_element(berth__onnx_call *call, berth_error *err) {
  if (call->n_out != 1) return berth__fail(err, BERTH_MALFORMED, "an OptionalHasElement has one output");
  const berth_value given = berth__onnx_in(call, 0);
  const bool has_element = given != BERTH_VALUE_NONE && given != BERTH__ONNX_EMPTY;
  return berth__onnx_scalar(call, BERTH_BOOL, has_element, &call->out[0], err);
}

static berth_status convert_get_element(berth__onnx_call *call, berth_error *err) {
  BERTH__TRY(berth__onnx_want_in(call, 1, err));
  if (call->n_out != 1) return berth__fail(err, BERTH_MALFORMED, "an OptionalGetElement has one output");
  if (call->in[0] == BERTH__ONNX_EMPTY) return berth__fail(err, BERTH_MALFORMED, "the optional is empty");
  call->out[0] = call->in[0];
  return BERTH_OK;
}

const berth__onnx_handler berth__onnx_core[] = {
    {"Constant", convert_constant, NULL},
    {"Identity", convert_identity, NULL},
    {"Optional", convert_optional, NULL},
    {"OptionalGetElement", convert_get_element, NULL},
    {"OptionalHasElement", convert_has_element, NULL},
    {NULL, NULL, NULL},
};
