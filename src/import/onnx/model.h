/* The contents of an ONNX file, as far as berth needs them; everything points into the mapping. */
#ifndef BERTH_IMPORT_ONNX_MODEL_H
#define BERTH_IMPORT_ONNX_MODEL_H

#include "base/context.h"
#include "import/onnx/wire.h"

typedef struct berth__onnx_graph berth__onnx_graph;

/* A tensor's description; onnx/tensor.h turns it into elements. */
typedef struct berth__onnx_tensor {
  berth__span name;
  int32_t data_type;
  uint32_t rank;
  int64_t dim[BERTH_MAX_RANK];
  bool rank_is_too_large;
  berth__span message; /* the whole TensorProto: typed fields are read from it when needed */
  berth__span raw;     /* raw_data; data NULL: not given */
  bool is_external;
  berth__span external_location;
  uint64_t external_offset, external_length; /* length UINT64_MAX: to the end of the file */
} berth__onnx_tensor;

typedef struct berth__onnx_attr {
  berth__span name;
  int type; /* AttributeProto.AttributeType; if the file omits it, the type of its contents; 0: none */
  int64_t i;
  float f;
  berth__span s;
  int64_t *ints;
  size_t n_ints, ints_capacity;
  float *floats;
  size_t n_floats, floats_capacity;
  berth__span *strings;
  size_t n_strings, strings_capacity;
  berth__onnx_tensor *tensor;
  berth__onnx_graph *graph;
  bool is_sparse;
  berth__span sparse;   /* SparseTensorProto */
  berth__span ref_name; /* inside a function: refers to the caller's attribute of this name */
} berth__onnx_attr;

enum { /* AttributeProto.AttributeType */
  BERTH__ONNX_FLOAT = 1,
  BERTH__ONNX_INT = 2,
  BERTH__ONNX_STRING = 3,
  BERTH__ONNX_TENSOR = 4,
  BERTH__ONNX_GRAPH = 5,
  BERTH__ONNX_FLOATS = 6,
  BERTH__ONNX_INTS = 7,
  BERTH__ONNX_STRINGS = 8
};

#define BERTH__ONNX_OF_STRINGS 8 /* TensorProto.DataType */

typedef struct berth__onnx_node {
  berth__span name, op, domain;
  berth__span *inputs, *outputs;
  size_t n_inputs, inputs_capacity, n_outputs, outputs_capacity;
  berth__onnx_attr *attrs;
  size_t n_attrs, attrs_capacity;
} berth__onnx_node;

/* A graph's input or output: TypeProto, if it is a tensor. */
typedef struct berth__onnx_value {
  berth__span name;
  const char *other_type; /* "sequence", "map", "optional", "sparse tensor"; NULL: a tensor, or an optional of one */
  bool is_optional;
  int32_t elem_type;
  bool has_shape;
  uint32_t rank;
  bool rank_is_too_large;
  int64_t dim[BERTH_MAX_RANK];          /* -1: named or unknown */
  berth__span dim_name[BERTH_MAX_RANK]; /* size 0: not named */
} berth__onnx_value;

struct berth__onnx_graph {
  berth__span name;
  berth__onnx_node *nodes;
  size_t n_nodes, nodes_capacity;
  berth__onnx_tensor *initializers;
  size_t n_initializers, initializers_capacity;
  berth__span *sparse;
  size_t n_sparse, sparse_capacity;
  berth__span *infos; /* ValueInfoProto of values between inputs and outputs, parsed on demand */
  size_t n_infos, infos_capacity;
  berth__onnx_value *inputs, *outputs;
  size_t n_inputs, inputs_capacity, n_outputs, outputs_capacity;
};

typedef struct berth__onnx_opset {
  berth__span domain;
  int64_t version;
} berth__onnx_opset;

typedef struct berth__onnx_function {
  berth__span name, domain;
  berth__span *inputs, *outputs, *attrs;
  size_t n_inputs, inputs_capacity, n_outputs, outputs_capacity, n_attrs, attrs_capacity;
  berth__onnx_attr *defaults;
  size_t n_defaults, defaults_capacity;
  berth__onnx_node *nodes;
  size_t n_nodes, nodes_capacity;
  berth__onnx_opset *opsets;
  size_t n_opsets, opsets_capacity;
} berth__onnx_function;

typedef struct berth__onnx_model {
  berth_context *ctx;
  int64_t ir_version;
  berth__span producer, producer_version, domain;
  berth__onnx_opset *opsets;
  size_t n_opsets, opsets_capacity;
  berth__onnx_graph graph;
  bool has_graph;
  berth__onnx_function *functions;
  size_t n_functions, functions_capacity;
} berth__onnx_model;

/* The file's bytes must stay mapped as long as the model lives. */
berth_status berth__onnx_parse(berth_context *ctx, const uint8_t *data, size_t size, berth__onnx_model *out,
                               berth_error *err);
void berth__onnx_free(berth__onnx_model *model);
/* sort.c: sorts the nodes of every graph and function such that each comes after those that it reads from. Lists that
 * are in order are unchanged. MALFORMED if there is a cycle. */
berth_status berth__onnx_sort(berth__onnx_model *model, berth_error *err);
/* One ValueInfoProto. */
berth_status berth__onnx_parse_value(berth__span message, berth__onnx_value *value, berth_error *err);
/* One TensorProto, such as the .pb files of ONNX's own tests. */
berth_status berth__onnx_parse_tensor(berth__span message, berth__onnx_tensor *out, berth_error *err);

#endif
