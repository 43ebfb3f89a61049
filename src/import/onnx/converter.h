/* The state of a conversion; for the files of the driver, not for handlers. */
#ifndef BERTH_IMPORT_ONNX_CONVERTER_H
#define BERTH_IMPORT_ONNX_CONVERTER_H

#include "import/onnx/convert.h"
#include "import/onnx/sequence.h"

#define BERTH__DIM_TEXT 256

/* The names that nodes can refer to: those of the graph, of an inner graph and the graphs around it, or of a function
 * only. */
typedef struct berth__onnx_scope {
  berth__map names;
  struct berth__onnx_scope *outer;
  bool sees_outer;
  const berth__onnx_function *function; /* in a function: the function, and the node that called it */
  const berth__onnx_call *caller;
} berth__onnx_scope;

struct berth__onnx_converter {
  const berth__onnx_model *model;
  berth__onnx_files *files;
  berth_graph *graph;
  const berth_dim *dims; /* extents that the caller gives */
  size_t n_dims;
  berth__onnx_scope *scope;
  char *text; /* a name of the file as a string, until the next one is requested */
  size_t text_capacity;
  size_t n_converted; /* nodes so far: functions that call others twice could grow without bound */
  /* Handlers read attributes without a status; the first invalid one is noted here. */
  const berth__onnx_attr *wrong_attr;
  const char *wrong_attr_why;
  char absent_why[256]; /* the first value of strings, and why it is one */
  berth__onnx_sequence *sequences;
  size_t n_sequences, sequences_capacity;
  size_t n_in_sequences; /* total number of values, and of lists */
};

extern const berth__onnx_handler berth__onnx_core[]; /* Constant, If with a known condition */

berth_status berth__onnx_scope_open(berth__onnx_converter *c, berth__onnx_scope *scope, berth_error *err);
void berth__onnx_scope_close(berth__onnx_converter *c, berth__onnx_scope *scope);
berth_status berth__onnx_inline(berth__onnx_call *call, const berth__onnx_function *function, berth_error *err);
/* Initializers and nodes of an inner graph, in the current scope. */
berth_status berth__onnx_convert_graph(berth__onnx_converter *c, const berth__onnx_graph *graph, berth_error *err);
berth_status berth__onnx_convert_nodes(berth__onnx_converter *c, const berth__onnx_node *nodes, size_t n,
                                       berth_error *err);
/* Gives a value a name in the current scope; the name must be new there. */
berth_status berth__onnx_define(berth__onnx_converter *c, berth__span name, berth_value value, berth_error *err);
bool berth__onnx_knows(berth__span op, berth__span domain); /* whether there is a handler */
/* What a name refers to in the current scope; MALFORMED if nothing. */
berth_status berth__onnx_look_up(berth__onnx_converter *c, berth__span name, berth_value *out, berth_error *err);
/* name NULL: generated. */
berth_status berth__onnx_add_tensor(berth__onnx_converter *c, const char *name, const berth__onnx_tensor *tensor,
                                    berth_value *out, berth_error *err);
berth_status berth__onnx_add_sparse(berth__onnx_converter *c, const char *name, berth__span sparse, berth_value *out,
                                    berth__span *own_name, berth_error *err);

/* An input with the rank that its readers require, where the file does not tell. */
berth__onnx_value berth__onnx_ranked_input(const berth__onnx_graph *graph, const berth__onnx_value *given);
/* The name of an input's dimension, or what one without a name is called; false if its name cannot be used. */
bool berth__onnx_dim_text(const berth__onnx_value *value, uint32_t axis, char out[BERTH__DIM_TEXT]);

/* given_dims.c: the extent that the caller gives for a dimension, or NULL. */
const berth_dim *berth__onnx_given_dim(const berth__onnx_converter *c, const char *name);
/* INVALID: one is given that the file does not have. */
berth_status berth__onnx_check_given_dims(const berth__onnx_converter *c, berth_error *err);

/* declared.c: whether an operand of the node depends on the elements of inputs or weights. */
berth_status berth__onnx_depends_on_data(const berth__onnx_call *call, bool *out, berth_error *err);
/* The one extent that the file declares for result k, a list; false if it declares none. `name` has room for
 * BERTH__DIM_TEXT. */
bool berth__onnx_declared_extent(const berth__onnx_call *call, size_t k, char *name, berth_dim *out);

#endif
