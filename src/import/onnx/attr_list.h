/* Attributes of a berth op, collected from those of an ONNX node. */
#ifndef BERTH_IMPORT_ONNX_ATTR_LIST_H
#define BERTH_IMPORT_ONNX_ATTR_LIST_H

#include "import/onnx/convert.h"

#define BERTH__ONNX_MAX_ATTRS 12 /* more than any handler adds */

typedef struct berth__onnx_attr_list {
  berth_attr at[BERTH__ONNX_MAX_ATTRS];
  size_t count;
} berth__onnx_attr_list;

void berth__onnx_put(berth__onnx_attr_list *list, berth_attr attr);
/* Adds the node's attribute under berth's name, if it is given. */
void berth__onnx_put_ints(const berth__onnx_call *call, berth__onnx_attr_list *list, const char *onnx_name,
                          const char *name);
void berth__onnx_put_int(const berth__onnx_call *call, berth__onnx_attr_list *list, const char *onnx_name,
                         const char *name);
void berth__onnx_put_float(const berth__onnx_call *call, berth__onnx_attr_list *list, const char *onnx_name,
                           const char *name);
/* One of several words: ONNX's words are `from`, berth's are `to`, both terminated by NULL. MALFORMED for any other. */
berth_status berth__onnx_put_word(const berth__onnx_call *call, berth__onnx_attr_list *list, const char *onnx_name,
                                  const char *name, const char *const *from, const char *const *to, berth_error *err);
/* Strides, dilations and padding of a window. */
berth_status berth__onnx_put_window(const berth__onnx_call *call, berth__onnx_attr_list *list, berth_error *err);

#endif
