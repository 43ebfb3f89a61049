/* ONNX files that lie, one for each way: refused, each with its own reason. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "import/onnx/convert.h"
#include "onnx_writer.h"
#include "support.h"

typedef struct wrong_file {
  const char *name;
  pb (*make)(void);
  berth_status status;
  const char *part; /* of the message */
} wrong_file;

static const int64_t two[] = {2}, two_by_two[] = {2, 2};

/* ---- Graphs to start from: x : f32[2] goes in, y comes out ---- */

static pb with_input_and_output(void) {
  pb graph = {0};
  pb_text(&graph, 2, "test");
  onnx_add_input(&graph, "x", 1, two);
  onnx_add_output(&graph, "y");
  return graph;
}

static pb finish_with_node(pb *node) {
  pb graph = with_input_and_output();
  pb_put(&graph, GRAPH_NODE, node);
  return onnx_model(&graph);
}

static pb finish_with_weight(pb *tensor) {
  pb graph = with_input_and_output();
  pb_put(&graph, GRAPH_INITIALIZER, tensor);
  onnx_add_node(&graph, "Add", "x,w", "y");
  return onnx_model(&graph);
}

static pb finish_with_functions(pb *first, pb *second) {
  pb graph = with_input_and_output(), node = onnx_node("F", "x", "y");
  pb_text(&node, NODE_DOMAIN, "local");
  pb_put(&graph, GRAPH_NODE, &node);
  pb model = onnx_model(&graph);
  pb_put(&model, MODEL_FUNCTION, first);
  if (second != NULL) pb_put(&model, MODEL_FUNCTION, second);
  return model;
}

static void add_call(pb *function, const char *name, const char *inputs, const char *outputs) {
  pb node = onnx_node(name, inputs, outputs);
  pb_text(&node, NODE_DOMAIN, "local");
  pb_put(function, FUNCTION_NODE, &node);
}

/* ---- The wire ---- */

static pb raw_model(const void *bytes, size_t size) {
  pb model = {0};
  pb_raw(&model, bytes, size);
  return model;
}
#define RAW(text) raw_model(text, sizeof(text) - 1)

static pb length_past_end(void) { return RAW("\x08\x08\x3a\x7fgraph"); }
static pb huge_length(void) { return RAW("\x08\x08\x3a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"); }
static pb endless_number(void) { return RAW("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"); }
static pb cut_number(void) { return RAW("\x08\x08\x10\xff"); }
static pb cut_fixed(void) { return RAW("\x08\x08\x11\x01\x02\x03"); }
static pb unknown_wire_type(void) { return RAW("\x08\x08\x3b\x01"); }
static pb field_zero(void) { return RAW("\x08\x08\x02\x01"); }
static pb graph_as_number(void) { return RAW("\x08\x08\x38\x01"); }
static pb no_graph(void) { return RAW("\x08\x08\x12\x01x"); }

static pb two_graphs(void) {
  pb graph = with_input_and_output(), other = with_input_and_output();
  pb model = onnx_model(&graph);
  pb_put(&model, MODEL_GRAPH, &other);
  return model;
}

/* ---- Tensors ---- */

static pb weight_of(int type, uint32_t rank, const int64_t *dims) {
  pb tensor = onnx_tensor("w", type, rank, dims);
  return finish_with_weight(&tensor);
}

static pb negative_dim(void) { return weight_of(ONNX_F32, 1, (int64_t[]){-2}); }
static pb huge_dim(void) { return weight_of(ONNX_F32, 1, (int64_t[]){INT64_MAX}); }
static pb overflowing_dims(void) { return weight_of(ONNX_F32, 3, (int64_t[]){1 << 30, 1 << 30, 1 << 30}); }
static pb missing_elements(void) { return weight_of(ONNX_F32, 1, (int64_t[]){1 << 30}); }
static pb rank_nine(void) { return weight_of(ONNX_F32, 9, (int64_t[]){1, 1, 1, 1, 1, 1, 1, 1, 1}); }
static pb string_weight(void) { return weight_of(ONNX_STRING, 1, two); }
static pb complex_weight(void) { return weight_of(ONNX_COMPLEX64, 1, two); }
static pb undefined_weight(void) { return weight_of(0, 1, two); }
static pb weight_of_no_type(void) { return weight_of(99, 1, two); }

static pb raw_of_wrong_size(void) {
  pb tensor = onnx_tensor("w", ONNX_F32, 1, two);
  pb_bytes(&tensor, TENSOR_RAW, "1234567", 7);
  return finish_with_weight(&tensor);
}

static pb floats(size_t count) {
  pb tensor = onnx_tensor("w", ONNX_F32, 1, two);
  for (size_t i = 0; i < count; i++) pb_float(&tensor, TENSOR_FLOATS, 1);
  return finish_with_weight(&tensor);
}
static pb too_few_elements(void) { return floats(1); }
static pb too_many_elements(void) { return floats(3); }

static pb too_many_packed(void) {
  pb tensor = onnx_tensor("w", ONNX_F32, 1, two);
  pb_bytes(&tensor, TENSOR_FLOATS, "123412341234", 12);
  return finish_with_weight(&tensor);
}

static pb cut_packed(void) {
  pb tensor = onnx_tensor("w", ONNX_F32, 1, two);
  pb_bytes(&tensor, TENSOR_FLOATS, "1234123", 7);
  return finish_with_weight(&tensor);
}

static pb floats_as_integers(void) {
  pb tensor = onnx_tensor("w", ONNX_F32, 1, two);
  pb_int(&tensor, TENSOR_FLOATS, 1);
  pb_int(&tensor, TENSOR_FLOATS, 1);
  return finish_with_weight(&tensor);
}

static pb sparse_with(int64_t index, uint32_t n_indices) {
  pb graph = with_input_and_output(), sparse = {0};
  int64_t count = n_indices;
  pb values = onnx_tensor("w", ONNX_F32, 1, (int64_t[]){1}), indices = onnx_tensor("", ONNX_I64, 1, &count);
  pb_float(&values, TENSOR_FLOATS, 1);
  for (uint32_t i = 0; i < n_indices; i++) pb_int(&indices, TENSOR_INT64S, index);
  pb_put(&sparse, 1, &values);
  pb_put(&sparse, 2, &indices);
  pb_int(&sparse, 3, 2);
  pb_put(&graph, GRAPH_SPARSE, &sparse);
  onnx_add_node(&graph, "Add", "x,w", "y");
  return onnx_model(&graph);
}
static pb sparse_index_outside(void) { return sparse_with(2, 1); }
static pb sparse_index_negative(void) { return sparse_with(-1, 1); }
static pb sparse_too_many_indices(void) { return sparse_with(0, 2); }

/* ---- External data ---- */

static pb external(const char *location, const char *offset, const char *length) {
  pb tensor = onnx_tensor("w", ONNX_F32, 1, two);
  if (location != NULL) onnx_external(&tensor, "location", location);
  if (offset != NULL) onnx_external(&tensor, "offset", offset);
  if (length != NULL) onnx_external(&tensor, "length", length);
  return finish_with_weight(&tensor);
}
static pb external_above(void) { return external("../weights.bin", NULL, NULL); }
static pb external_absolute(void) { return external("/etc/passwd", NULL, NULL); }
static pb external_around(void) { return external("a/../../weights.bin", NULL, NULL); }
static pb external_backslash(void) { return external("a\\..\\..\\weights.bin", NULL, NULL); }
static pb external_link(void) { return external("link.bin", NULL, NULL); }
static pb external_nowhere(void) { return external(NULL, "0", NULL); }
static pb external_missing(void) { return external("not_there.bin", NULL, NULL); }
static pb external_past_end(void) { return external("weights.bin", "9", "8"); }
static pb external_far_past_end(void) { return external("weights.bin", "9223372036854775807", NULL); }
static pb external_short(void) { return external("weights.bin", "0", "4"); }
static pb external_no_number(void) { return external("weights.bin", "-8", NULL); }
static pb external_too_large(void) { return external("weights.bin", "99999999999999999999", NULL); }

/* ---- Inputs and outputs ---- */

static pb with_typed_input(int type, uint32_t rank, const int64_t *dims) {
  pb graph = {0}, input = onnx_value("x", type, rank, dims);
  pb_put(&graph, GRAPH_INPUT, &input);
  onnx_add_output(&graph, "y");
  onnx_add_node(&graph, "Identity", "x", "y");
  return onnx_model(&graph);
}
static pb string_input(void) { return with_typed_input(ONNX_STRING, 1, two); }
static pb complex_input(void) { return with_typed_input(ONNX_COMPLEX64, 1, two); }
static pb input_of_no_type(void) { return with_typed_input(1000, 1, two); }
static pb input_of_rank_nine(void) { return with_typed_input(ONNX_F32, 9, (int64_t[]){1, 1, 1, 1, 1, 1, 1, 1, 1}); }
static pb huge_input(void) { return with_typed_input(ONNX_F32, 2, (int64_t[]){INT64_MAX, INT64_MAX}); }

static pb with_kind_of_input(uint32_t field, uint32_t list) {
  pb graph = {0}, value = {0}, type = {0}, empty = {0};
  pb_put(&type, field, &empty);
  pb_text(&value, 1, "x");
  pb_put(&value, 2, &type);
  pb_put(&graph, list, &value);
  onnx_add_node(&graph, "Relu", "x", "y");
  return onnx_model(&graph);
}
static pb sequence_input(void) { return with_kind_of_input(4, GRAPH_INPUT); }
static pb map_input(void) { return with_kind_of_input(5, GRAPH_INPUT); }
static pb optional_input(void) { return with_kind_of_input(9, GRAPH_INPUT); }
static pb shapeless_input(void) { return with_kind_of_input(1, GRAPH_INPUT); }

static pb sequence_output(void) {
  pb graph = {0}, value = {0}, type = {0}, empty = {0};
  onnx_add_input(&graph, "x", 1, two);
  pb_put(&type, 4, &empty);
  pb_text(&value, 1, "x");
  pb_put(&value, 2, &type);
  pb_put(&graph, GRAPH_OUTPUT, &value);
  return onnx_model(&graph);
}

static pb undefined_output(void) {
  pb graph = with_input_and_output();
  onnx_add_node(&graph, "Relu", "x", "z");
  return onnx_model(&graph);
}

static pb input_twice(void) {
  pb graph = with_input_and_output();
  onnx_add_input(&graph, "x", 2, two_by_two);
  onnx_add_node(&graph, "Relu", "x", "y");
  return onnx_model(&graph);
}

static pb input_without_name(void) {
  pb graph = with_input_and_output();
  onnx_add_input(&graph, "", 1, two);
  onnx_add_node(&graph, "Relu", "x", "y");
  return onnx_model(&graph);
}

/* ---- Names ---- */

static pb weight_twice(void) {
  pb graph = with_input_and_output();
  for (int i = 0; i < 2; i++) {
    pb tensor = onnx_tensor("w", ONNX_F32, 0, NULL);
    pb_float(&tensor, TENSOR_FLOATS, 1);
    pb_put(&graph, GRAPH_INITIALIZER, &tensor);
  }
  onnx_add_node(&graph, "Add", "x,w", "y");
  return onnx_model(&graph);
}

static pb result_twice(void) {
  pb graph = with_input_and_output();
  onnx_add_node(&graph, "Relu", "x", "y");
  onnx_add_node(&graph, "Neg", "x", "y");
  return onnx_model(&graph);
}

static pb result_named_as_input(void) {
  pb graph = with_input_and_output();
  onnx_add_node(&graph, "Relu", "x", "x");
  return onnx_model(&graph);
}

static pb undefined_operand(void) {
  pb node = onnx_node("Add", "x,nothing", "y");
  return finish_with_node(&node);
}

static pb cycle(void) {
  pb graph = with_input_and_output();
  onnx_add_node(&graph, "Add", "x,y", "z");
  onnx_add_node(&graph, "Relu", "z", "y");
  return onnx_model(&graph);
}

static pb zero_in_result(void) {
  pb node = onnx_node("Relu", "x", "");
  pb_bytes(&node, 2, "y\0z", 3);
  return finish_with_node(&node);
}

static pb zero_in_operand(void) {
  pb node = onnx_node("Relu", "", "y");
  pb_bytes(&node, 1, "x\0z", 3);
  return finish_with_node(&node);
}

static pb zero_in_weight(void) {
  pb tensor = onnx_tensor("", ONNX_F32, 0, NULL);
  pb_float(&tensor, TENSOR_FLOATS, 1);
  pb_bytes(&tensor, 8, "w\0", 2);
  return finish_with_weight(&tensor);
}

static pb zero_in_dimension(void) {
  pb graph = {0}, dim = {0}, shape = {0}, tensor = {0}, type = {0}, value = {0};
  pb_bytes(&dim, 2, "n\0m", 3);
  pb_put(&shape, 1, &dim);
  pb_int(&tensor, 1, ONNX_F32);
  pb_put(&tensor, 2, &shape);
  pb_put(&type, 1, &tensor);
  pb_text(&value, 1, "x");
  pb_put(&value, 2, &type);
  pb_put(&graph, GRAPH_INPUT, &value);
  return onnx_model(&graph);
}

/* ---- Nodes ---- */

static pb unknown_op(void) {
  pb node = onnx_node("Frobnicate", "x", "y");
  return finish_with_node(&node);
}

static pb unknown_domain(void) {
  pb node = onnx_node("Relu", "x", "y");
  pb_text(&node, NODE_DOMAIN, "com.example");
  return finish_with_node(&node);
}

static pb no_op(void) {
  pb node = onnx_node("", "x", "y");
  return finish_with_node(&node);
}

static pb missing_operand(void) {
  pb node = onnx_node("MatMul", "x", "y");
  return finish_with_node(&node);
}

static pb too_many_operands(void) {
  pb node = onnx_node("Relu", "x,x,x", "y");
  return finish_with_node(&node);
}

static pb too_many_results(void) {
  pb node = onnx_node("Relu", "x", "y,z");
  return finish_with_node(&node);
}

static pb shapes_that_do_not_fit(void) {
  pb graph = with_input_and_output();
  onnx_add_input(&graph, "v", 1, (int64_t[]){3});
  onnx_add_node(&graph, "Add", "x,v", "y");
  return onnx_model(&graph);
}

static pb float_axis(void) {
  pb node = onnx_node("Softmax", "x", "y");
  onnx_attr_float(&node, "axis", 1.5f);
  return finish_with_node(&node);
}

static pb integer_alpha(void) {
  pb node = onnx_node("LeakyRelu", "x", "y");
  onnx_attr_int(&node, "alpha", 1);
  return finish_with_node(&node);
}

static pb integer_list(void) {
  pb node = onnx_node("Transpose", "x", "y");
  onnx_attr_int(&node, "perm", 0);
  return finish_with_node(&node);
}

static pb attribute_with_two_graphs(void) {
  pb node = onnx_node("If", "x", "y"), attr = {0}, graph = {0}, other = {0};
  pb_text(&attr, 1, "then_branch");
  pb_put(&attr, 6, &graph);
  pb_put(&attr, 6, &other);
  pb_put(&node, NODE_ATTRIBUTE, &attr);
  return finish_with_node(&node);
}

static pb cast_to_nothing(void) {
  pb node = onnx_node("Cast", "x", "y");
  return finish_with_node(&node);
}

static pb branch_missing(void) {
  pb graph = with_input_and_output(), condition = onnx_value("c", ONNX_BOOL, 0, NULL);
  pb_put(&graph, GRAPH_INPUT, &condition);
  onnx_add_node(&graph, "If", "c", "y");
  return onnx_model(&graph);
}

/* ---- Functions and inner graphs ---- */

static pb recursive_function(void) {
  pb function = onnx_function("F", "a", "b");
  add_call(&function, "F", "a", "b");
  return finish_with_functions(&function, NULL);
}

static pb functions_in_a_ring(void) {
  pb first = onnx_function("F", "a", "b"), second = onnx_function("G", "a", "b");
  add_call(&first, "G", "a", "b");
  add_call(&second, "F", "a", "b");
  return finish_with_functions(&first, &second);
}

/* Each calls the next twice: 2^40 nodes from a file of a few kilobytes. */
static pb doubling_functions(void) {
  pb first = onnx_function("F", "a", "c");
  add_call(&first, "F1", "a", "b");
  add_call(&first, "F1", "b", "c");
  pb model = finish_with_functions(&first, NULL);
  for (int i = 1; i <= 40; i++) {
    char name[16], next[16];
    snprintf(name, sizeof name, "F%d", i);
    snprintf(next, sizeof next, "F%d", i + 1);
    pb function = onnx_function(name, "a", i < 40 ? "c" : "a");
    if (i < 40) add_call(&function, next, "a", "b");
    if (i < 40) add_call(&function, next, "b", "c");
    pb_put(&model, MODEL_FUNCTION, &function);
  }
  return model;
}

static pb reference_to_nothing(void) {
  pb function = onnx_function("F", "a", "b"), node = onnx_node("LeakyRelu", "a", "b");
  onnx_attr_ref(&node, "alpha", 1, "slope");
  pb_put(&function, FUNCTION_NODE, &node);
  return finish_with_functions(&function, NULL);
}

static pb reference_outside_function(void) {
  pb node = onnx_node("LeakyRelu", "x", "y");
  onnx_attr_ref(&node, "alpha", 1, "slope");
  return finish_with_node(&node);
}

static pb function_without_result(void) {
  pb function = onnx_function("F", "a", "b");
  return finish_with_functions(&function, NULL);
}

static pb function_with_too_few_inputs(void) {
  pb function = onnx_function("F", "", "b");
  return finish_with_functions(&function, NULL);
}

static pb function_sees_no_outer_name(void) {
  pb function = onnx_function("F", "a", "b"), node = onnx_node("Relu", "x", "b");
  pb_put(&function, FUNCTION_NODE, &node);
  return finish_with_functions(&function, NULL);
}

/* Written from the inside out into one block, from its end: a message's length stands before it. */
typedef struct tail {
  uint8_t *data;
  size_t at, end;
} tail;

static void wrap(tail *t, uint32_t field) {
  pb head = {0};
  uint64_t size = t->end - t->at;
  uint8_t key = (uint8_t)(field << 3 | 2);
  pb_raw(&head, &key, 1);
  for (; size >= 0x80; size >>= 7) pb_raw(&head, &(uint8_t){(uint8_t)(size | 0x80)}, 1);
  pb_raw(&head, &(uint8_t){(uint8_t)size}, 1);
  t->at -= head.size;
  memcpy(t->data + t->at, head.data, head.size);
  pb_free(&head);
}

static pb nested_graphs(void) {
  enum {
    DEPTH = 100000,
    ROOM = DEPTH * 16
  };
  tail t = {malloc(ROOM), ROOM, ROOM};
  assert_non_null(t.data);
  for (int i = 0; i < DEPTH; i++) {
    wrap(&t, 6); /* a graph in an attribute in a node */
    wrap(&t, NODE_ATTRIBUTE);
    wrap(&t, GRAPH_NODE);
  }
  wrap(&t, MODEL_GRAPH);
  pb model = {0};
  pb_int(&model, 1, 8);
  pb_raw(&model, t.data + t.at, t.end - t.at);
  free(t.data);
  return model;
}

#define M BERTH_MALFORMED
#define U BERTH_UNSUPPORTED
static const wrong_file wrong_files[] = {
    {"length past the end", length_past_end, M,
     "a field of 127 bytes runs past the end of its message, which has 5 left"},
    {"huge length", huge_length, M, "runs past the end of its message"},
    {"endless number", endless_number, M, "a number has more than ten bytes"},
    {"cut number", cut_number, M, "a number runs past the end"},
    {"cut fixed field", cut_fixed, M, "a field runs past the end"},
    {"unknown wire type", unknown_wire_type, M, "the unknown wire type 3"},
    {"field zero", field_zero, M, "an impossible number"},
    {"graph as a number", graph_as_number, M, "the graph has the wrong wire type"},
    {"no graph", no_graph, M, "it has no graph"},
    {"two graphs", two_graphs, M, "the model has two graphs"},

    {"negative dim", negative_dim, M, "a tensor has the negative dimension -2"},
    {"huge dim", huge_dim, M, "tensor 'w': its size does not fit"},
    {"product overflow", overflowing_dims, M, "tensor 'w': the product of its dimensions does not fit in 64 bits"},
    {"no elements", missing_elements, M, "tensor 'w': the shape has 1073741824 elements but fewer are stored"},
    {"weight of rank 9", rank_nine, U, "tensor 'w': it has more than 8 dimensions"},
    {"string weight", string_weight, U, "tensor 'w': elements of type string are not supported"},
    {"complex weight", complex_weight, U, "elements of type complex64 are not supported"},
    {"weight of undefined type", undefined_weight, U, "elements of type undefined are not supported"},
    {"weight of no type", weight_of_no_type, M, "there is no element type 99"},
    {"raw data of a wrong size", raw_of_wrong_size, M, "tensor 'w': its shape needs 8 bytes but 7 are stored"},
    {"too few elements", too_few_elements, M, "the shape has 2 elements but 1 are stored"},
    {"too many elements", too_many_elements, M, "more elements than the shape has"},
    {"too many packed elements", too_many_packed, M, "more elements than the shape has"},
    {"cut packed elements", cut_packed, M, "a packed list ends inside an element"},
    {"floats stored as integers", floats_as_integers, M, "stored as something else than their type"},
    {"sparse index outside", sparse_index_outside, M, "an index outside its shape"},
    {"sparse index negative", sparse_index_negative, M, "an index outside its shape"},
    {"sparse with too many indices", sparse_too_many_indices, M, "indices do not go with its values"},

    {"external: above", external_above, M, "external data '../weights.bin' is outside the model's folder"},
    {"external: absolute", external_absolute, M, "external data '/etc/passwd' is outside the model's folder"},
    {"external: around", external_around, M, "external data 'a/../../weights.bin' is outside"},
    {"external: backslash", external_backslash, M, "is outside the model's folder"},
    {"external: link", external_link, M, "leads out of the model's folder"},
    {"external: no location", external_nowhere, M, "its data is in another file, which is not named"},
    {"external: missing", external_missing, BERTH_IO, "not_there.bin"},
    {"external: past the end", external_past_end, M, "external data 'weights.bin' has 16 bytes, 8 from 9 are needed"},
    {"external: far past the end", external_far_past_end, M, "has 16 bytes, 8 from 9223372036854775807 are needed"},
    {"external: too short", external_short, M, "its shape needs 8 bytes but 4 are stored"},
    {"external: not a number", external_no_number, M, "an offset or length of external data is not a number"},
    {"external: too large", external_too_large, M, "an offset or length of external data is not a number"},

    {"string input", string_input, U, "input 'x': elements of type string are not supported"},
    {"complex input", complex_input, U, "input 'x': elements of type complex64 are not supported"},
    {"input of no type", input_of_no_type, M, "input 'x': there is no element type 1000"},
    {"input of rank 9", input_of_rank_nine, U, "input 'x' has more than 8 dimensions"},
    {"huge input", huge_input, M, "'x'"},
    {"sequence input", sequence_input, U, "input 'x' is of the kind sequence; only tensors are supported"},
    {"map input", map_input, U, "input 'x' is of the kind map"},
    {"optional input", optional_input, U, "input 'x' is of the kind optional"},
    {"input without a shape", shapeless_input, U, "input 'x' has no shape, not even a rank"},
    {"sequence output", sequence_output, U, "output 'x' is of the kind sequence"},
    {"output made by nothing", undefined_output, M, "output 'y' is not defined by any node"},
    {"input twice", input_twice, M, "input 'x' is defined twice"},
    {"input without a name", input_without_name, M, "an input has no name"},

    {"weight twice", weight_twice, M, "'w' is defined twice"},
    {"result twice", result_twice, M, "ONNX node 'y' (Neg): 'y' is defined twice"},
    {"result named as an input", result_named_as_input, M, "'x' is defined twice"},
    {"operand made by nothing", undefined_operand, M,
     "ONNX node 'y' (Add): operand 1, 'nothing', is not defined by any node"},
    {"cycle", cycle, M, "the ONNX nodes 'z' (Add), 'y' (Relu) wait for each other's results"},
    {"zero byte in a result", zero_in_result, M, "a name holds a zero byte"},
    {"zero byte in an operand", zero_in_operand, M, "a name holds a zero byte"},
    {"zero byte in a weight", zero_in_weight, M, "a name holds a zero byte"},
    {"zero byte in a dimension", zero_in_dimension, M, "dimension 0 of input 'x' has a name that"},

    {"unknown op", unknown_op, U, "ONNX node 'y' (Frobnicate): the op Frobnicate is not supported"},
    {"unknown domain", unknown_domain, U, "the op com.example.Relu is not supported"},
    {"no op", no_op, U, "is not supported"},
    {"missing operand", missing_operand, M, "ONNX node 'y' (MatMul): "},
    {"too many operands", too_many_operands, M, "ONNX node 'y' (Relu): "},
    {"too many results", too_many_results, M, "ONNX node 'y' (Relu): "},
    {"shapes that do not fit", shapes_that_do_not_fit, M, "ONNX node 'y' (Add): "},
    {"axis as a float", float_axis, M, "ONNX node 'y' (Softmax): the attribute 'axis' must be an integer"},
    {"alpha as an integer", integer_alpha, M, "the attribute 'alpha' must be a number"},
    {"list as an integer", integer_list, M, "the attribute 'perm' must be a list of integers"},
    {"attribute with two graphs", attribute_with_two_graphs, M, "an attribute has two graphs"},
    {"required attribute missing", cast_to_nothing, M, "ONNX node 'y' (Cast): "},
    {"branch missing", branch_missing, M, "it has no graph 'then_branch'"},

    {"recursive function", recursive_function, M,
     "ONNX node 'y' (F): ONNX node 'b' (F): functions or graphs are nested more than 64 deep"},
    {"functions in a ring", functions_in_a_ring, M, "nested more than 64 deep"},
    {"functions that double", doubling_functions, U, "more than 1000000 nodes once its functions are inlined"},
    {"reference to nothing", reference_to_nothing, M, "the attribute 'alpha' refers to one that no function declares"},
    {"reference outside a function", reference_outside_function, M, "refers to one that no function declares"},
    {"function without its result", function_without_result, M, "the function's output 'b' is not defined by any node"},
    {"function with too few inputs", function_with_too_few_inputs, M, "the function has 0 operands and 1 result"},
    {"function sees no outer name", function_sees_no_outer_name, M, "operand 0, 'x', is not defined by any node"},
    {"100,000 nested graphs", nested_graphs, M, "graphs are nested more than 64 deep"},
};
enum {
  N_WRONG = sizeof wrong_files / sizeof wrong_files[0]
};

static void test_refused(void **state) {
  const wrong_file *file = *state;
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  berth_graph *graph = NULL;
  berth_error err = {BERTH_OK, ""};
  pb model = file->make();
  test_write_file(test_path("weights.bin"), "0123456789abcdef", 16);
  (void)symlink("/dev/null", test_path("link.bin")); /* it is there already after the first test */
  test_write_file(test_path("wrong.onnx"), model.data, model.size);
  pb_free(&model);
  berth_status status = berth_graph_load(ctx, test_path("wrong.onnx"), &graph, &err);
  test_expect_error(status, file->status, &err, file->part);
  assert_null(graph);
  test_context_done(ctx, &alloc);
}

/* From memory of just that size, so that a sanitizer sees a read past the end. */
static void load_exact(berth_context *ctx, const uint8_t *data, size_t size) {
  uint8_t *exact = malloc(size != 0 ? size : 1);
  berth__onnx_model model;
  berth__onnx_files files = {.ctx = ctx};
  berth_error err = {BERTH_OK, ""};
  assert_non_null(exact);
  memcpy(exact, data, size);
  berth_status status = berth__onnx_parse(ctx, exact, size, &model, &err);
  if (status == BERTH_OK) {
    berth_graph *graph;
    TEST_OK(berth_graph_create(ctx, "cut", &graph, &err));
    status = berth__onnx_convert(&model, &(berth__onnx_wanted){.files = &files}, graph, &err);
    berth_graph_destroy(graph);
    berth__onnx_files_free(&files);
    berth__onnx_free(&model);
  }
  if (status != BERTH_OK && status != BERTH_UNSUPPORTED) test_expect_error(status, BERTH_MALFORMED, &err, NULL);
  free(exact);
}

static void test_cut_anywhere(void **state) {
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  pb function = onnx_function("F", "a", "b"), node = onnx_node("LeakyRelu", "a", "b");
  (void)state;
  onnx_attr_float(&node, "alpha", 0.5f);
  pb_put(&function, FUNCTION_NODE, &node);
  pb models[] = {finish_with_functions(&function, NULL), floats(2), sparse_with(1, 1)};
  for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) {
    for (size_t size = 0; size <= models[i].size; size++) load_exact(ctx, models[i].data, size);
    pb_free(&models[i]);
  }
  test_context_done(ctx, &alloc);
}

int main(void) {
  struct CMUnitTest tests[N_WRONG + 1] = {cmocka_unit_test(test_cut_anywhere)};
  for (size_t i = 0; i < N_WRONG; i++)
    tests[i + 1] = (struct CMUnitTest){
        .name = wrong_files[i].name, .test_func = test_refused, .initial_state = (void *)(uintptr_t)&wrong_files[i]};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
