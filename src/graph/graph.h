/* A graph: values (tensors with a type and a shape) made by nodes (ops).
 *
 * Values and nodes are numbered in the order in which they were added; a node is only ever added after the values that
 * it reads, so the node order is a topological order and stays stable. */
#ifndef BERTH_GRAPH_GRAPH_H
#define BERTH_GRAPH_GRAPH_H

#include "base/map.h"
#include "ops/op.h"

/* Bytes of a constant, shared between a graph and the graphs bound from it. */
typedef struct berth__blob berth__blob;

typedef struct berth__value {
  char *name;
  berth_value_kind kind;
  berth_type type;
  berth__shape shape;
  uint32_t bounded;     /* bit k: shape.dim[k] is an upper bound; the true extent is known when a run has come here */
  uint32_t node;        /* kind NODE: which */
  const void *data;     /* constants, params with weights, and results that binding could compute */
  berth__blob *blob;    /* constants and computed results: what holds data */
  bool is_initializer;  /* a constant that its file has among the weights */
  berth__blob *initial; /* states: what they hold before the first run; NULL: zeros */
  berth__blob *low, *high; /* what its elements lie between (enclose.c); NULL: not known */
} berth__value;

typedef struct berth__node {
  const berth__op *op;
  berth_value *in, *out;
  uint32_t n_in, n_out;
  berth_attr *attrs; /* one for each that the op declares, in that order */
} berth__node;

typedef struct berth__output {
  char *name;
  berth_value value;
} berth__output;

/* A run ends with the state holding what `next` was; whoever reads the state sees what it held before. */
typedef struct berth__update {
  berth_value state, next;
} berth__update;

/* Something that must live as long as the graph: the weights behind its params. */
typedef struct berth__keep {
  void *object;
  void (*retain)(void *object);
  void (*release)(void *object);
  void (*rest)(void *object, const void *data, size_t size); /* bytes that were copied: their pages may go */
  berth_status (*check)(void *object, berth_error *err);     /* files that have shrunk must not be read; NULL: none */
} berth__keep;

struct berth_graph {
  berth_context *ctx;
  bool is_bound; /* binding made it: what is still open depends on elements */
  char *name;
  char *weights_path; /* as the text form says it; NULL: none */
  berth__value *values;
  size_t n_values, values_capacity;
  berth__node *nodes;
  size_t n_nodes, nodes_capacity;
  berth_value *inputs, *params, *states;
  size_t n_inputs, inputs_capacity, n_params, params_capacity, n_states, states_capacity;
  berth__update *updates; /* at most one per state, in the order in which they were made */
  size_t n_updates, updates_capacity;
  berth__output *outputs;
  size_t n_outputs, outputs_capacity;
  char **dims; /* names of dimensions */
  size_t n_dims, dims_capacity;
  berth__map value_names, dim_names, output_names;
  berth__keep *keeps;
  size_t n_keeps, keeps_capacity;
  berth__map last_numbers; /* rewrite.c: for a name n, the last of n.2, n.3, ...: those before it are taken */
  uint64_t folded;         /* bytes of large constants that evaluate.c has computed */
};

/* Attributes (attr.c): checks what was given against what the op declares and fills in defaults. */
berth_status berth__attrs_resolve(berth_context *ctx, const berth__op *op, const berth_attr *given, size_t n_given,
                                  berth_attr **out, berth_error *err);
void berth__attrs_free(berth_context *ctx, const berth__op *op, berth_attr *attrs);
/* Gives a node's attribute another value; integers stand for numbers and for dimensions. */
berth_status berth__attr_replace(berth_context *ctx, berth_attr *attr, const berth_attr *value, berth_error *err);
bool berth__same_text(const char *a, const char *b); /* NULL equals NULL alone */
bool berth__attr_equal(const berth_attr *a, const berth_attr *b);
static inline bool berth__attr_is_required(const berth__family *family, uint32_t index) {
  return index < 32 && (family->required >> index & 1u);
}

/* Shapes (shape.c): between the public form and the graph's; new names are added to the graph. */
berth_status berth__shape_import(berth_graph *graph, const berth_shape *shape, berth__shape *out, berth_error *err);
berth_shape berth__shape_export(const berth_graph *graph, const berth__shape *shape);
berth_status berth__graph_dim(berth_graph *graph, const char *name, uint32_t *out, berth_error *err);
/* Takes back the dimensions that were added after there were n, which nothing uses yet. */
void berth__graph_drop_dims(berth_graph *graph, size_t n);
/* Bytes of a value; false while a dimension is not bound or when it overflows. */
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
/* Fails when a file that the graph's data lie in has become shorter. Called before that data is read, and after. */
berth_status berth__graph_check_files(const berth_graph *graph, berth_error *err);

/* What must be there when a run ends, whoever else reads it: outputs, then the next values of states. */
static inline size_t berth__graph_n_kept(const berth_graph *graph) { return graph->n_outputs + graph->n_updates; }
static inline berth_value berth__graph_kept(const berth_graph *graph, size_t index) {
  return index < graph->n_outputs ? graph->outputs[index].value : graph->updates[index - graph->n_outputs].next;
}
/* state.c: whether an update fits: the kinds, types and shapes, as far as they are known. */
berth_status berth__graph_check_update(const berth_graph *graph, berth__update update, berth_error *err);

/* A value with fixed extents as a kernel sees it: contiguous. */
berth_tensor berth__value_tensor(const berth__value *value, const void *data);
/* evaluate.c: computes the results of a node whose operands are all known, as binding does, and keeps them with the
 * values. What cannot be computed (an operand is not known, the op has no kernel for it) is left alone. */
berth_status berth__graph_evaluate(berth_graph *graph, uint32_t node, berth_error *err);
/* The same where the results are small, in a graph that need not be bound. */
berth_status berth__graph_evaluate_small(berth_graph *graph, uint32_t node, berth_error *err);
/* The same for a value and the small ones that it is made from, in a graph that need not be bound. */
berth_status berth__graph_evaluate_value(berth_graph *graph, berth_value value, berth_error *err);

/* Runs a node's kernel on operands that are given as tensors; blobs has n_out entries, of which those that were made
 * are set, also on failure. */
berth_status berth__graph_compute(const berth_graph *graph, const berth__node *node, const berth_tensor *in,
                                  berth__blob **blobs, berth_error *err);
/* enclose.c: what the results of a node lie between, where they follow from extents that are bounds. Where both ends
 * meet, the results are known. */
berth_status berth__graph_enclose(berth_graph *graph, uint32_t node, berth_error *err);

/* Takes out the nodes that are marked (one flag a node); values keep their numbers, and the results of those nodes
 * become constants where their data is known and dropped values otherwise. */
void berth__graph_remove_nodes(berth_graph *graph, const bool *remove);

/* What is in a graph at a moment, to go back to. Outputs must not have been named since. */
typedef struct berth__graph_mark {
  size_t n_values, n_nodes, n_inputs, n_params, n_states, n_updates, n_dims;
} berth__graph_mark;
berth__graph_mark berth__graph_mark_now(const berth_graph *graph);
void berth__graph_roll_back(berth_graph *graph, const berth__graph_mark *mark);

/* A copy with the same numbers; constants and weights are shared. */
berth_status berth__graph_clone(const berth_graph *graph, berth_graph **out, berth_error *err);

/* bind.c: a value that no node makes, as it is, into another graph; dimensions have the same numbers there. */
berth_status berth__graph_copy_source(berth_graph *to, const berth__value *value, berth_value *id, berth_error *err);

/* duplicate.c: the same of a graph that was rewritten, where nodes do not stand in the order of their values. */
berth_status berth__graph_duplicate(const berth_graph *graph, berth_graph **out, berth_error *err);

berth__blob *berth__blob_create(berth_context *ctx, const void *data, uint64_t size); /* data NULL: not filled */
void berth__blob_retain(berth__blob *blob);
void berth__blob_release(berth__blob *blob); /* NULL is fine */
const void *berth__blob_data(const berth__blob *blob);

#endif
