#include "onnx_writer.h"

#include <stdlib.h>

#include "support.h"

void pb_free(pb *message) {
  free(message->data);
  *message = (pb){0};
}

void pb_raw(pb *out, const void *data, size_t size) {
  if (out->size + size > out->capacity) {
    out->capacity = (out->size + size) * 2;
    out->data = realloc(out->data, out->capacity);
    assert_non_null(out->data);
  }
  if (size != 0) memcpy(out->data + out->size, data, size);
  out->size += size;
}

static void put_varint(pb *out, uint64_t value) {
  do {
    uint8_t byte = (uint8_t)((value & 0x7f) | (value >= 0x80 ? 0x80 : 0));
    pb_raw(out, &byte, 1);
    value >>= 7;
  } while (value != 0);
}

void pb_int(pb *out, uint32_t field, int64_t value) {
  put_varint(out, (uint64_t)field << 3);
  put_varint(out, (uint64_t)value);
}

void pb_float(pb *out, uint32_t field, float value) {
  put_varint(out, (uint64_t)field << 3 | 5);
  pb_raw(out, &value, sizeof value);
}

void pb_bytes(pb *out, uint32_t field, const void *data, size_t size) {
  put_varint(out, (uint64_t)field << 3 | 2);
  put_varint(out, size);
  pb_raw(out, data, size);
}

void pb_text(pb *out, uint32_t field, const char *text) { pb_bytes(out, field, text, strlen(text)); }

void pb_put(pb *out, uint32_t field, pb *inner) {
  pb_bytes(out, field, inner->data, inner->size);
  pb_free(inner);
}

static void put_names(pb *out, uint32_t field, const char *names) {
  while (*names != '\0') {
    size_t length = strcspn(names, ",");
    pb_bytes(out, field, names, length);
    names += length + (names[length] == ',');
  }
}

pb onnx_tensor(const char *name, int type, uint32_t rank, const int64_t *dims) {
  pb tensor = {0};
  for (uint32_t i = 0; i < rank; i++) pb_int(&tensor, 1, dims[i]);
  pb_int(&tensor, 2, type);
  pb_text(&tensor, 8, name);
  return tensor;
}

void onnx_external(pb *tensor, const char *key, const char *value) {
  pb entry = {0};
  pb_text(&entry, 1, key);
  pb_text(&entry, 2, value);
  pb_put(tensor, 13, &entry);
  pb_int(tensor, 14, 1);
}

pb onnx_value(const char *name, int type, uint32_t rank, const int64_t *dims) {
  pb shape = {0}, tensor = {0}, holder = {0}, value = {0};
  for (uint32_t i = 0; i < rank; i++) {
    pb dim = {0};
    if (dims[i] != -1) pb_int(&dim, 1, dims[i]);
    pb_put(&shape, 1, &dim);
  }
  pb_int(&tensor, 1, type);
  pb_put(&tensor, 2, &shape);
  pb_put(&holder, 1, &tensor);
  pb_text(&value, 1, name);
  pb_put(&value, 2, &holder);
  return value;
}

pb onnx_node(const char *op, const char *inputs, const char *outputs) {
  pb node = {0};
  put_names(&node, 1, inputs);
  put_names(&node, 2, outputs);
  pb_text(&node, 4, op);
  return node;
}

void onnx_attr_int(pb *node, const char *name, int64_t value) {
  pb attr = {0};
  pb_text(&attr, 1, name);
  pb_int(&attr, 3, value);
  pb_int(&attr, 20, 2);
  pb_put(node, NODE_ATTRIBUTE, &attr);
}

void onnx_attr_float(pb *node, const char *name, float value) {
  pb attr = {0};
  pb_text(&attr, 1, name);
  pb_float(&attr, 2, value);
  pb_int(&attr, 20, 1);
  pb_put(node, NODE_ATTRIBUTE, &attr);
}

void onnx_attr_string(pb *node, const char *name, const char *value) {
  pb attr = {0};
  pb_text(&attr, 1, name);
  pb_text(&attr, 4, value);
  pb_int(&attr, 20, 3);
  pb_put(node, NODE_ATTRIBUTE, &attr);
}

void onnx_attr_ints(pb *node, const char *name, size_t count, const int64_t *values) {
  pb attr = {0};
  pb_text(&attr, 1, name);
  for (size_t i = 0; i < count; i++) pb_int(&attr, 8, values[i]);
  pb_int(&attr, 20, 7);
  pb_put(node, NODE_ATTRIBUTE, &attr);
}

void onnx_attr_floats(pb *node, const char *name, size_t count, const float *values) {
  pb attr = {0};
  pb_text(&attr, 1, name);
  for (size_t i = 0; i < count; i++) pb_float(&attr, 7, values[i]);
  pb_int(&attr, 20, 6);
  pb_put(node, NODE_ATTRIBUTE, &attr);
}

void onnx_attr_strings(pb *node, const char *name, size_t count, const char *const *values) {
  pb attr = {0};
  pb_text(&attr, 1, name);
  for (size_t i = 0; i < count; i++) pb_text(&attr, 9, values[i]);
  pb_int(&attr, 20, 8);
  pb_put(node, NODE_ATTRIBUTE, &attr);
}

void onnx_attr_graph(pb *node, const char *name, pb *graph) {
  pb attr = {0};
  pb_text(&attr, 1, name);
  pb_put(&attr, 6, graph);
  pb_int(&attr, 20, 5);
  pb_put(node, NODE_ATTRIBUTE, &attr);
}

void onnx_attr_ref(pb *node, const char *name, int type, const char *of) {
  pb attr = {0};
  pb_text(&attr, 1, name);
  pb_int(&attr, 20, type);
  pb_text(&attr, 21, of);
  pb_put(node, NODE_ATTRIBUTE, &attr);
}

pb onnx_opset(const char *domain, int64_t version) {
  pb opset = {0};
  pb_text(&opset, 1, domain);
  pb_int(&opset, 2, version);
  return opset;
}

pb onnx_function(const char *name, const char *inputs, const char *outputs) {
  pb function = {0}, opset = onnx_opset("", 17);
  pb_text(&function, 1, name);
  put_names(&function, 4, inputs);
  put_names(&function, 5, outputs);
  pb_put(&function, 9, &opset);
  pb_text(&function, 10, "local");
  return function;
}

pb onnx_model(pb *graph) {
  pb model = {0}, opset = onnx_opset("", 17), local = onnx_opset("local", 1);
  pb_int(&model, 1, 8);
  pb_text(&model, 2, "berth");
  pb_put(&model, MODEL_OPSET, &opset);
  pb_put(&model, MODEL_OPSET, &local);
  pb_put(&model, MODEL_GRAPH, graph);
  return model;
}

void onnx_add_input(pb *graph, const char *name, uint32_t rank, const int64_t *dims) {
  pb value = onnx_value(name, ONNX_F32, rank, dims);
  pb_put(graph, GRAPH_INPUT, &value);
}

void onnx_add_output(pb *graph, const char *name) {
  pb value = {0};
  pb_text(&value, 1, name);
  pb_put(graph, GRAPH_OUTPUT, &value);
}

void onnx_add_node(pb *graph, const char *op, const char *inputs, const char *outputs) {
  pb node = onnx_node(op, inputs, outputs);
  pb_put(graph, GRAPH_NODE, &node);
}
