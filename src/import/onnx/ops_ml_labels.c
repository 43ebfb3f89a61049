/* ai.onnx.ml's LabelEncoder: a map from numbers to numbers. The index of a key among the keys, counted from 1, selects
 * the value; index 0 selects the default. String keys are refused where they are made; string values make the result
 * absent. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "import/onnx/compose.h"
#include "import/onnx/converter.h"
#include "import/onnx/ml.h"

/* Keys or values: a list of numbers from an attribute. */
typedef struct label_list {
  berth_type type;
  const void *data; /* NULL: not given */
  void *owned;
  size_t count;
  bool are_strings;
} label_list;

static berth_status labels_of_tensor(const berth__onnx_call *call, const berth__onnx_tensor *tensor, label_list *out,
                                     berth_error *err) {
  berth_tensor elements = {.type = BERTH_TYPE_NONE};
  out->are_strings = tensor->data_type == BERTH__ONNX_OF_STRINGS;
  if (out->are_strings) return BERTH_OK;
  BERTH__TRY(berth__ml_elements(call, tensor, &elements, &out->count, &out->owned, err));
  out->type = elements.type;
  out->data = elements.data;
  return BERTH_OK;
}

/* `kind` is "keys" or "values". */
static berth_status labels_read(const berth__onnx_call *call, const char *kind, label_list *out, berth_error *err) {
  char name[32];
  uint32_t count;
  snprintf(name, sizeof name, "%s_tensor", kind);
  const berth__onnx_attr *attr = berth__onnx_find(call, name);
  *out = (label_list){.type = BERTH_TYPE_NONE};
  if (attr != NULL && attr->tensor != NULL) return labels_of_tensor(call, attr->tensor, out, err);
  snprintf(name, sizeof name, "%s_int64s", kind);
  out->data = berth__onnx_ints(call, name, &count);
  out->type = BERTH_I64;
  if (out->data == NULL) {
    snprintf(name, sizeof name, "%s_floats", kind);
    out->data = berth__onnx_floats(call, name, &count);
    out->type = BERTH_F32;
  }
  if (out->data == NULL) {
    snprintf(name, sizeof name, "%s_strings", kind);
    berth__onnx_strings(call, name, &count);
    out->are_strings = count != 0;
  }
  out->count = count;
  return BERTH_OK;
}

static berth_tensor labels_tensor(const label_list *list) {
  return (berth_tensor){.data = (void *)(uintptr_t)list->data, .type = list->type};
}

/* The value of unknown keys: element 0 of `room`. */
static berth_status labels_default(const berth__onnx_call *call, berth_tensor *room, berth_error *err) {
  const berth__onnx_attr *attr = berth__onnx_find(call, "default_tensor");
  if (attr != NULL && attr->tensor != NULL && attr->tensor->data_type != 0) {
    label_list list = {0};
    BERTH__TRY(labels_of_tensor(call, attr->tensor, &list, err));
    const bool is_one = list.count == 1 && list.type == room->type;
    if (is_one) memcpy(room->data, list.data, berth_type_size(list.type));
    berth__free(call->graph->ctx, list.owned);
    return is_one
               ? BERTH_OK
               : berth__fail(err, BERTH_MALFORMED, "default_tensor must have one element, of the type of the values");
  }
  if (berth__type_is_float(room->type))
    berth__store_f64(room, 0, berth__onnx_float(call, "default_float", -0.0));
  else
    berth__store_i64(room, 0, berth__onnx_int(call, "default_int64", -1));
  return BERTH_OK;
}

/* The default, then the values: [1 + n]. */
static berth_status labels_values(berth__onnx_call *call, const label_list *values, berth_value *out,
                                  berth_error *err) {
  const size_t size = berth_type_size(values->type);
  const int64_t extent = (int64_t)values->count + 1;
  uint8_t *all = berth__alloc_array(call->graph->ctx, values->count + 1, size);
  if (all == NULL) return berth__fail_nomem(err, "the values of a node");
  berth_tensor room = {.data = all, .type = values->type};
  berth_status status = labels_default(call, &room, err);
  if (values->count != 0) memcpy(all + size, values->data, values->count * size);
  if (status == BERTH_OK) return berth__onnx_add_made(call, values->type, 1, &extent, all, out, err);
  berth__free(call->graph->ctx, all);
  return status;
}

static bool labels_is_nan(const label_list *keys, size_t i) {
  const berth_tensor tensor = labels_tensor(keys);
  return berth__type_is_float(keys->type) && isnan(berth__load_f64(&tensor, (int64_t)i));
}

/* k + 1 if key k is the first with its value, otherwise 0: a key counts once. NaN is handled separately. */
static berth_status labels_places(berth__onnx_call *call, const label_list *keys, berth_value *out, berth_error *err) {
  const int64_t extent = (int64_t)keys->count;
  int32_t *places = berth__alloc_array(call->graph->ctx, keys->count, sizeof *places);
  bool *is_first = berth__alloc_array(call->graph->ctx, keys->count, sizeof *is_first);
  berth_status status = places != NULL && is_first != NULL ? BERTH_OK : berth__fail_nomem(err, "the keys of a node");
  if (status == BERTH_OK)
    status = berth__ml_mark_alone(call, labels_tensor(keys), (uint32_t)keys->count, false, is_first, err);
  for (size_t i = 0; status == BERTH_OK && i < keys->count; i++)
    places[i] = is_first[i] && !labels_is_nan(keys, i) ? (int32_t)i + 1 : 0;
  berth__free(call->graph->ctx, is_first);
  if (status == BERTH_OK) return berth__onnx_add_made(call, BERTH_I32, 1, &extent, places, out, err);
  berth__free(call->graph->ctx, places);
  return status;
}

/* The index of each element among the keys, from 1; 0: not found. */
static berth_value labels_find(berth__onnx_chain *c, const label_list *keys, berth_value x) {
  const int64_t extent = (int64_t)keys->count, last = berth__onnx_shape(c->call, x)->rank;
  berth_value list = BERTH_VALUE_NONE, places = BERTH_VALUE_NONE;
  if (last >= BERTH_MAX_RANK)
    c->status = berth__fail(c->err, BERTH_UNSUPPORTED, "its operand has a rank of %d", BERTH_MAX_RANK);
  if (c->status == BERTH_OK) c->status = berth__ml_list(c->call, keys->type, keys->data, 1, &extent, &list, c->err);
  if (c->status == BERTH_OK) c->status = labels_places(c->call, keys, &places, c->err);
  const berth_value is_each =
      berth__chain_binary(c, "eq", berth__chain_listed(c, "unsqueeze", x, "axes", &last, 1), list);
  const berth_value each = berth__chain_where(c, is_each, places, berth__chain_scalar(c, BERTH_I32, 0));
  const berth_attr attrs[] = {berth_attr_ints("axes", &last, 1), berth_attr_int("keepdims", 0)};
  berth_value place = berth__chain_emit(c, "reduce_sum", &each, 1, attrs, 2);
  for (size_t i = 0; i < keys->count; i++)
    if (labels_is_nan(keys, i)) {
      const berth_value at = berth__chain_scalar(c, BERTH_I32, (double)(i + 1));
      return berth__chain_where(c, berth__chain_binary(c, "ne", x, x), at, place);
    }
  return place;
}

static berth_status labels_map(berth__onnx_call *call, const label_list *keys, const label_list *values,
                               berth_error *err) {
  berth__onnx_chain c = {call, err, BERTH_OK};
  const berth_attr axis = berth_attr_int("axis", 0);
  berth_value in[2];
  if (values->are_strings) {
    berth__onnx_set_absent(call, 0, "its values are strings");
    return BERTH_OK;
  }
  if (keys->are_strings) return berth__fail(err, BERTH_MALFORMED, "its keys are strings, its operand has none");
  if (keys->count != values->count || keys->count == 0 || keys->count >= INT32_MAX)
    return berth__fail(err, BERTH_MALFORMED, "it has %zu key%s and %zu value%s", keys->count,
                       berth__plural(keys->count), values->count, berth__plural(values->count));
  if (berth__onnx_value_type(call, call->in[0]) != keys->type)
    return berth__fail(err, BERTH_MALFORMED, "its keys have the type %s, its operand has the type %s",
                       berth_type_name(keys->type), berth_type_name(berth__onnx_value_type(call, call->in[0])));
  BERTH__TRY(labels_values(call, values, &in[0], err));
  in[1] = labels_find(&c, keys, call->in[0]);
  berth__onnx_set(call, 0, berth__chain_emit(&c, "gather", in, 2, &axis, 1));
  return c.status;
}

static berth_status convert_label_encoder(berth__onnx_call *call, berth_error *err) {
  label_list keys, values = {0};
  BERTH__TRY(berth__onnx_begin(call, 1, err));
  if (call->opset < 2) { /* its only map is between strings and their indices */
    berth__onnx_set_absent(call, 0, "its values are strings");
    return BERTH_OK;
  }
  berth_status status = labels_read(call, "keys", &keys, err);
  if (status == BERTH_OK) status = labels_read(call, "values", &values, err);
  if (status == BERTH_OK) status = labels_map(call, &keys, &values, err);
  berth__free(call->graph->ctx, keys.owned);
  berth__free(call->graph->ctx, values.owned);
  return status;
}

const berth__onnx_handler berth__onnx_ml_labels[] = {
    {"LabelEncoder", convert_label_encoder, NULL},
    {NULL, NULL, NULL},
};
