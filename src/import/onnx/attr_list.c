#include "import/onnx/attr_list.h"

void berth__onnx_put(berth__onnx_attr_list *list, berth_attr attr) {
  if (list->count < BERTH__ONNX_MAX_ATTRS) list->at[list->count++] = attr;
}

void berth__onnx_put_ints(const berth__onnx_call *call, berth__onnx_attr_list *list, const char *onnx_name,
                          const char *name) {
  uint32_t count;
  const int64_t *values = berth__onnx_ints(call, onnx_name, &count);
  if (count != 0) berth__onnx_put(list, berth_attr_ints(name, values, count));
}

void berth__onnx_put_int(const berth__onnx_call *call, berth__onnx_attr_list *list, const char *onnx_name,
                         const char *name) {
  if (berth__onnx_find(call, onnx_name) != NULL)
    berth__onnx_put(list, berth_attr_int(name, berth__onnx_int(call, onnx_name, 0)));
}

void berth__onnx_put_float(const berth__onnx_call *call, berth__onnx_attr_list *list, const char *onnx_name,
                           const char *name) {
  if (berth__onnx_find(call, onnx_name) != NULL)
    berth__onnx_put(list, berth_attr_float(name, berth__onnx_float(call, onnx_name, 0)));
}

berth_status berth__onnx_put_word(const berth__onnx_call *call, berth__onnx_attr_list *list, const char *onnx_name,
                                  const char *name, const char *const *from, const char *const *to, berth_error *err) {
  if (berth__onnx_find(call, onnx_name) == NULL) return BERTH_OK;
  const berth__span word = berth__onnx_string(call, onnx_name, "");
  for (size_t i = 0; from[i] != NULL; i++) {
    if (!berth__span_is(word, from[i])) continue;
    berth__onnx_put(list, berth_attr_string(name, to[i]));
    return BERTH_OK;
  }
  return berth__fail(err, BERTH_MALFORMED, "%s is '%.*s'", onnx_name, (int)(word.size > 40 ? 40 : word.size),
                     word.data != NULL ? (const char *)word.data : "");
}

berth_status berth__onnx_put_window(const berth__onnx_call *call, berth__onnx_attr_list *list, berth_error *err) {
  static const char *const from[] = {"NOTSET", "VALID", "", "SAME_UPPER", "SAME_LOWER", NULL};
  static const char *const to[] = {"none", "none", "none", "same_upper", "same_lower", NULL};
  const berth__span mode = berth__onnx_string(call, "auto_pad", "NOTSET");
  berth__onnx_put_ints(call, list, "strides", "strides");
  berth__onnx_put_ints(call, list, "dilations", "dilations");
  if (berth__span_is(mode, "NOTSET") || mode.size == 0) berth__onnx_put_ints(call, list, "pads", "pads");
  return berth__onnx_put_word(call, list, "auto_pad", "auto_pad", from, to, err);
}
