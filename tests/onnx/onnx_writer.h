/* Writes ONNX files, right ones and wrong ones: Protocol Buffers a field at a time. Fails the test where memory is out.
 */
#ifndef BERTH_TESTS_ONNX_WRITER_H
#define BERTH_TESTS_ONNX_WRITER_H

#include <stddef.h>
#include <stdint.h>

/* A message that grows. Start from {0}; a message that is put into another is freed by that. */
typedef struct pb {
  uint8_t *data;
  size_t size, capacity;
} pb;

void pb_free(pb *message);
void pb_raw(pb *out, const void *data, size_t size); /* bytes as they are */
void pb_int(pb *out, uint32_t field, int64_t value);
void pb_float(pb *out, uint32_t field, float value);
void pb_bytes(pb *out, uint32_t field, const void *data, size_t size);
void pb_text(pb *out, uint32_t field, const char *text);
void pb_put(pb *out, uint32_t field, pb *inner); /* frees inner */

enum { /* TensorProto.DataType */
  ONNX_F32 = 1,
  ONNX_U8 = 2,
  ONNX_I8 = 3,
  ONNX_I16 = 5,
  ONNX_I32 = 6,
  ONNX_I64 = 7,
  ONNX_STRING = 8,
  ONNX_BOOL = 9,
  ONNX_F16 = 10,
  ONNX_F64 = 11,
  ONNX_U32 = 12,
  ONNX_U64 = 13,
  ONNX_COMPLEX64 = 14,
  ONNX_BF16 = 16
};

enum { /* fields */
  TENSOR_FLOATS = 4,
  TENSOR_INT32S = 5,
  TENSOR_INT64S = 7,
  TENSOR_RAW = 9,
  TENSOR_DOUBLES = 10,
  TENSOR_UINT64S = 11,
  GRAPH_NODE = 1,
  GRAPH_INITIALIZER = 5,
  GRAPH_INPUT = 11,
  GRAPH_OUTPUT = 12,
  GRAPH_SPARSE = 15,
  NODE_ATTRIBUTE = 5,
  NODE_DOMAIN = 7,
  FUNCTION_ATTRIBUTE = 6,
  FUNCTION_NODE = 7,
  FUNCTION_DEFAULT = 11,
  MODEL_GRAPH = 7,
  MODEL_OPSET = 8,
  MODEL_FUNCTION = 25
};

/* Names in a list are separated by commas. */
pb onnx_tensor(const char *name, int type, uint32_t rank, const int64_t *dims); /* no elements yet */
void onnx_external(pb *tensor, const char *key, const char *value);
pb onnx_value(const char *name, int type, uint32_t rank, const int64_t *dims); /* ValueInfoProto; -1: no extent */
pb onnx_node(const char *op, const char *inputs, const char *outputs);
void onnx_attr_int(pb *node, const char *name, int64_t value);
void onnx_attr_float(pb *node, const char *name, float value);
void onnx_attr_string(pb *node, const char *name, const char *value);
void onnx_attr_ints(pb *node, const char *name, size_t count, const int64_t *values);
void onnx_attr_floats(pb *node, const char *name, size_t count, const float *values);
void onnx_attr_strings(pb *node, const char *name, size_t count, const char *const *values);
void onnx_attr_graph(pb *node, const char *name, pb *graph);
void onnx_attr_ref(pb *node, const char *name, int type, const char *of);    /* inside a function */
pb onnx_function(const char *name, const char *inputs, const char *outputs); /* of the domain "local" */
pb onnx_opset(const char *domain, int64_t version);
/* IR version 8, opset 17; the graph is freed. More may be added after. */
pb onnx_model(pb *graph);

/* Parts of a graph. */
void onnx_add_input(pb *graph, const char *name, uint32_t rank, const int64_t *dims); /* f32 */
void onnx_add_output(pb *graph, const char *name);
void onnx_add_node(pb *graph, const char *op, const char *inputs, const char *outputs);

#endif
