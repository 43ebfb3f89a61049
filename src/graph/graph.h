/* A graph: values (tensors with a type and a shape) made by nodes (ops).
 *
 * Values and nodes are numbered in the order in which they were added; a node can be added only after the values that
 * it reads, so the node order is a stable topological order. */
#ifndef BERTH_GRAPH_GRAPH_H
#define BERTH_GRAPH_GRAPH_H

#include "base/map.h"
#include "ops/op.h"

/* Bytes of a constant, shared between a graph and the graphs bound from it. */
typedef struct berth__blob berth__blob;

/* Bounds of all elements of a value; zeros if nothing is known. An end may be infinite. */
typedef struct berth__interval {
  double low, high;
  bool is_known, is_nominal;
} berth__interval;

typedef struct berth__value {
  char *name;
  berth_value_kind kind;
  berth_type type;
  berth__shape shape;
  uint32_t bounded;         /* bit k: shape.dim[k] is an upper bound; a run finds the actual extent */
  uint32_t node;            /* kind NODE: its index */
  const void *data;         /* constants, params with weights, and results that binding could compute */
  berth__blob *blob;        /* constants and computed results: owns data */
  bool is_initializer;      /* a constant that is a weight in its file */
  berth__blob *initial;     /* states: their contents before the first run; NULL: zeros */
  berth__blob *low, *high;  /* bounds of its elements (enclose.c); NULL: unknown */
  berth__interval interval; /* of all its elements (interval.c) */
} berth__value;

typedef struct berth__node {
  const berth__op *op;
  berth_value *in, *out;
  uint32_t n_in, n_out;
  berth_attr *attrs; /* one per attribute that the op declares, in that order */
} berth__node;

typedef struct berth__output {
  char *name;
  berth_value value;
} berth__output;

/* At the end of a run the state receives the value of `next`; readers of the state see its previous value. */
typedef struct berth__update {
  berth_value state, next;
} berth__update;

/* An object that must live as long as the graph: the weights of its params. */
typedef struct berth__keep {
  void *object;
  void (*retain)(void *object);
  void (*release)(void *object);
  void (*rest)(void *object, const void *data, size_t size); /* bytes that were copied: their pages may be released */
  berth_status (*check)(void *object, berth_error *err);     /* files that have shrunk must not be read; NULL: none */
} berth__keep;

struct berth_graph {
  berth_context *ctx;
  bool is_bound; /* made by binding: extents that are still open depend on elements */
  char *name;
  char *weights_path; /* as in the text form; NULL: none */
  berth__value *values;
  size_t n_values, values_capacity;
  berth__node *nodes;
  size_t n_nodes, nodes_capacity;
  berth_value *inputs, *params, *states;
  size_t n_inputs, inputs_capacity, n_params, params_capacity, n_states, states_capacity;
  berth__update *updates; /* at most one per state, in creation order */
  size_t n_updates, updates_capacity;
  berth__output *outputs;
  size_t n_outputs, outputs_capacity;
  char **dims; /* names of dimensions */
  size_t n_dims, dims_capacity;
  berth__map value_names, dim_names, output_names;
  berth__keep *keeps;
  size_t n_keeps, keeps_capacity;
  berth__map last_numbers; /* rewrite.c: for a name n, the last of n.2, n.3, ...: the numbers before it are taken */
  uint64_t folded;         /* bytes of large constants computed by evaluate.c */
};

/* Attributes (attr.c): checks the given ones against the op's declaration and fills in defaults. */
berth_status berth__attrs_resolve(berth_context *ctx, const berth__op *op, const berth_attr *given, size_t n_given,
                                  berth_attr **out, berth_error *err);
void berth__attrs_free(berth_context *ctx, const berth__op *op, berth_attr *attrs);
/* Gives a node's attribute another value; integers are accepted for numbers and dimensions. */
berth_status berth__attr_replace(berth_context *ctx, berth_attr *attr, const berth_attr *value, berth_error *err);
bool berth__same_text(const char *a, const char *b); /* NULL equals only NULL */
bool berth__attr_equal(const berth_attr *a, const berth_attr *b);
static inline bool berth__attr_is_required(const berth__family *family, uint32_t index) {
  return index < 32 && (family->required >> index & 1u);
}

/* Shapes (shape.c): converts between the public form and the graph's; new names are added to the graph. */
berth_status berth__shape_import(berth_graph *graph, const berth_shape *shape, berth__shape *out, berth_error *err);
berth_shape berth__shape_export(const berth_graph *graph, const berth__shape *shape);
berth_status berth__graph_dim(berth_graph *graph, const char *name, uint32_t *out, berth_error *err);
/* Removes the dimensions after the first n, which must be unused. */
void berth__graph_drop_dims(berth_graph *graph, size_t n);
/* Bytes of a value; false as long as a dimension is not bound, or if it overflows. */
bool berth__value_size(const berth__value *value, uint64_t *out);

/* Nodes (add.c). */
berth_status berth__graph_add_op(berth_graph *graph, const berth__op *op, const berth_value *in, size_t n_in,
                                 const berth_attr *attrs, size_t n_attrs, const char *const *names, berth_value *out,
                                 size_t n_out, berth_error *err);
/* infer.c: the inference of one node; `label` names it in errors. Sets type, shape and bounded of n_out results. */
berth_status berth__graph_infer(const berth_graph *graph, const berth__op *op, const berth_value *in, size_t n_in,
                                const berth_attr *attrs, const char *label, berth__value *results, size_t n_out,
                                berth_error *err);

/* Values (graph.c). */
berth_status berth__graph_check_name(const berth_graph *graph, const char *name, berth_error *err);
berth_status berth__graph_new_value(berth_graph *graph, const char *name, const berth__value *like, berth_value *out,
                                    berth_error *err);
/* A value that no node makes; it is not in the lists of inputs, params and states yet. */
berth_status berth__graph_add_source(berth_graph *graph, const char *name, berth_value_kind kind, berth_type type,
                                     const berth_shape *shape, berth_value *out, berth_error *err);
void berth__graph_drop_last_value(berth_graph *graph);
berth_status berth__graph_set_weights_path(berth_graph *graph, const char *path, berth_error *err);
/* Retains the object. */
berth_status berth__graph_keep(berth_graph *graph, const berth__keep *keep, berth_error *err);
/* Fails if a file with the graph's data has become shorter. Called before that data is read, and after. */
berth_status berth__graph_check_files(const berth_graph *graph, berth_error *err);

/* Values that must exist at the end of a run, besides their readers: outputs, then the next values of states. */
static inline size_t berth__graph_n_kept(const berth_graph *graph) { return graph->n_outputs + graph->n_updates; }
static inline berth_value berth__graph_kept(const berth_graph *graph, size_t index) {
  return index < graph->n_outputs ? graph->outputs[index].value : graph->updates[index - graph->n_outputs].next;
}
/* state.c: checks the kinds, types and shapes of an update, as far as they are known. */
berth_status berth__graph_check_update(const berth_graph *graph, berth__update update, berth_error *err);

/* A value with fixed extents as a kernel sees it: contiguous. */
berth_tensor berth__value_tensor(const berth__value *value, const void *data);
/* evaluate.c: computes the results of a node whose operands are all known, like binding, and stores them with the
 * values. Nodes that cannot be computed (an unknown operand, an op without kernel) are left alone. */
berth_status berth__graph_evaluate(berth_graph *graph, uint32_t node, berth_error *err);
/* The same if the results are small, in a graph that need not be bound. */
berth_status berth__graph_evaluate_small(berth_graph *graph, uint32_t node, berth_error *err);
/* The same for a value and the small ones that it depends on, in a graph that need not be bound. */
berth_status berth__graph_evaluate_value(berth_graph *graph, berth_value value, berth_error *err);

/* Runs a node's kernel on operands given as tensors; blobs has n_out entries, which are set as far as results were
 * made, also on failure. */
berth_status berth__graph_compute(const berth_graph *graph, const berth__node *node, const berth_tensor *in,
                                  berth__blob **blobs, berth_error *err);
/* interval.c: the intervals of a node's results. */
void berth__graph_find_interval(berth_graph *graph, uint32_t node);
/* enclose.c: bounds of a node's results, if they depend on extents that are bounds, or on data whose interval is known.
 * If both bounds are equal, the results are known. */
berth_status berth__graph_enclose(berth_graph *graph, uint32_t node, berth_error *err);

/* Removes the marked nodes (one flag per node); values keep their numbers, and the results of those nodes become
 * constants if their data is known and dropped values otherwise. */
void berth__graph_remove_nodes(berth_graph *graph, const bool *remove);

/* The contents of a graph at some moment, to roll back to. Outputs must not have been named since. */
typedef struct berth__graph_mark {
  size_t n_values, n_nodes, n_inputs, n_params, n_states, n_updates, n_dims;
} berth__graph_mark;
berth__graph_mark berth__graph_mark_now(const berth_graph *graph);
void berth__graph_roll_back(berth_graph *graph, const berth__graph_mark *mark);

/* A copy with the same numbers; constants and weights are shared. */
berth_status berth__graph_clone(const berth_graph *graph, berth_graph **out, berth_error *err);

/* bind.c: copies a value that no node makes to another graph; dimensions have the same numbers there. */
berth_status berth__graph_copy_source(berth_graph *to, const berth__value *value, berth_value *id, berth_error *err);

/* duplicate.c: the same for a rewritten graph, in which nodes are not in the order of their values. */
berth_status berth__graph_duplicate(const berth_graph *graph, berth_graph **out, berth_error *err);

berth__blob *berth__blob_create(berth_context *ctx, const void *data, uint64_t size); /* data NULL: not initialised */
void berth__blob_retain(berth__blob *blob);
void berth__blob_release(berth__blob *blob); /* NULL is fine */
const void *berth__blob_data(const berth__blob *blob);

#endif
