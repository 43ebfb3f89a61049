/* From ONNX nodes to berth's graph. Each ONNX op has a handler in one of the ops_*.c files, which emits one or several
 * of berth's ops. An op that is composed of others is a decomposition there, not a kernel. */
#ifndef BERTH_IMPORT_ONNX_CONVERT_H
#define BERTH_IMPORT_ONNX_CONVERT_H

#include "graph/graph.h"
#include "import/onnx/model.h"
#include "import/onnx/tensor.h"

typedef struct berth__onnx_converter berth__onnx_converter;

/* Stands for a value of strings, which cannot be made. A node that reads one has only such results, and an output that
 * is one is left out of the graph: the others can still run. */
#define BERTH__ONNX_ABSENT (BERTH_VALUE_NONE - 1)
/* Stands for an empty optional; only the ops of optionals may read it. */
#define BERTH__ONNX_EMPTY (BERTH_VALUE_NONE - 2)
/* Values from here up to those two are sequences of tensors, which only their own ops may read (ops_sequence.c). */
#define BERTH__ONNX_SEQUENCES (BERTH_VALUE_NONE / 2)

static inline bool berth__onnx_is_sequence(berth_value value) {
  return value >= BERTH__ONNX_SEQUENCES && value < BERTH__ONNX_EMPTY;
}

typedef struct berth__onnx_handler berth__onnx_handler;

/* One ONNX node during conversion. The handler sets out[k] for every output that is asked for. */
typedef struct berth__onnx_call {
  berth__onnx_converter *converter;
  berth_graph *graph;
  const berth__onnx_node *node;
  int64_t opset;         /* version of the node's domain */
  const berth_value *in; /* BERTH_VALUE_NONE for omitted operands; n_in counts up to the last one given */
  size_t n_in;
  berth_value *out;
  size_t n_out;
  const berth__onnx_handler *handler;
} berth__onnx_call;

typedef berth_status (*berth__onnx_handler_fn)(berth__onnx_call *call, berth_error *err);

struct berth__onnx_handler {
  const char *op;
  berth__onnx_handler_fn convert;
  const char *berth_op; /* for berth__onnx_same: the name of berth's op; otherwise NULL */
};

/* Tables, one per ops_*.c file, each terminated by an entry without a name. Domain "" (ai.onnx) unless noted. */
extern const berth__onnx_handler berth__onnx_math[];             /* element-wise */
extern const berth__onnx_handler berth__onnx_activation[];       /* activation functions */
extern const berth__onnx_handler berth__onnx_random[];           /* random numbers, Dropout */
extern const berth__onnx_handler berth__onnx_reduce[];           /* reductions, softmax, along an axis */
extern const berth__onnx_handler berth__onnx_norm[];             /* normalisations */
extern const berth__onnx_handler berth__onnx_loss[];             /* losses */
extern const berth__onnx_handler berth__onnx_einsum[];           /* Einsum */
extern const berth__onnx_handler berth__onnx_move[];             /* shapes, slices */
extern const berth__onnx_handler berth__onnx_index[];            /* gathers, scatters */
extern const berth__onnx_handler berth__onnx_rearrange[];        /* blocks between depth and space */
extern const berth__onnx_handler berth__onnx_window[];           /* products, convolutions, pooling */
extern const berth__onnx_handler berth__onnx_resize[];           /* resizing and sampling */
extern const berth__onnx_handler berth__onnx_quant[];            /* quantised */
extern const berth__onnx_handler berth__onnx_detection[];        /* detection, text */
extern const berth__onnx_handler berth__onnx_sequences[];        /* sequences of tensors */
extern const berth__onnx_handler berth__onnx_recurrent[];        /* LSTM, GRU, RNN */
extern const berth__onnx_handler berth__onnx_signal[];           /* windows, Fourier transforms */
extern const berth__onnx_handler berth__onnx_control[];          /* If, Loop, Scan */
extern const berth__onnx_handler berth__onnx_attention[];        /* Attention, RotaryEmbedding */
extern const berth__onnx_handler berth__onnx_linear_attention[]; /* LinearAttention, CausalConvWithState */
extern const berth__onnx_handler berth__onnx_removed[];          /* ops that only early versions had */
extern const berth__onnx_handler berth__onnx_unofficial[];       /* ops that others put into this domain */
/* Domain ai.onnx.preview.training. */
extern const berth__onnx_handler berth__onnx_training[]; /* optimiser steps */
/* Domain ai.onnx.ml. */
extern const berth__onnx_handler berth__onnx_ml[];        /* scalers, encoders */
extern const berth__onnx_handler berth__onnx_ml_labels[]; /* label maps */
extern const berth__onnx_handler berth__onnx_ml_linear[]; /* linear models */
extern const berth__onnx_handler berth__onnx_ml_trees[];  /* trees */
extern const berth__onnx_handler berth__onnx_ml_svm[];    /* support vector machines */
/* Domain ai.onnx.preview. */
extern const berth__onnx_handler berth__onnx_preview[]; /* FlexAttention */
/* Domain com.microsoft. */
extern const berth__onnx_handler berth__onnx_microsoft[];           /* fused ops, norms */
extern const berth__onnx_handler berth__onnx_microsoft_quant[];     /* quantised */
extern const berth__onnx_handler berth__onnx_microsoft_attention[]; /* attention */

typedef struct berth__onnx_wanted {
  berth__onnx_files *files; /* stays the caller's until the graph is destroyed (weights point into it) */
  const berth_dim *dims;    /* extents for named dimensions, which are fixed ones in the graph */
  size_t n_dims;
} berth__onnx_wanted;

/* Turns the model into a graph, after sorting its nodes. */
berth_status berth__onnx_convert(berth__onnx_model *model, const berth__onnx_wanted *wanted, berth_graph *graph,
                                 berth_error *err);

/* ---- For handlers ---- */

/* One berth op with the same meaning and operands, named in the table. */
berth_status berth__onnx_same(berth__onnx_call *call, berth_error *err);

/* Converts the node as if it were another op of ONNX's own domain, with these operands and its own attributes. */
berth_status berth__onnx_as(berth__onnx_call *call, const char *op, int64_t opset, const berth_value *in, size_t n_in,
                            berth_value *out, size_t n_out, berth_error *err);

/* Attributes; inside a function, references to the caller's are followed. The default is returned if it is not
 * given. */
const berth__onnx_attr *berth__onnx_find(const berth__onnx_call *call, const char *name); /* NULL: not given */
int64_t berth__onnx_int(const berth__onnx_call *call, const char *name, int64_t otherwise);
double berth__onnx_float(const berth__onnx_call *call, const char *name, double otherwise);
berth__span berth__onnx_string(const berth__onnx_call *call, const char *name, const char *otherwise);
/* The list, or NULL and 0. It lives as long as the model. */
const int64_t *berth__onnx_ints(const berth__onnx_call *call, const char *name, uint32_t *count);
const float *berth__onnx_floats(const berth__onnx_call *call, const char *name, uint32_t *count);
const berth__span *berth__onnx_strings(const berth__onnx_call *call, const char *name, uint32_t *count);

/* Emits one berth op. Names are generated; the driver renames what becomes an ONNX output. */
berth_status berth__onnx_emit(berth__onnx_call *call, const char *op, const berth_value *in, size_t n_in,
                              const berth_attr *attrs, size_t n_attrs, berth_value *out, size_t n_out,
                              berth_error *err);
/* Shorter forms for one result. */
berth_status berth__onnx_unary(berth__onnx_call *call, const char *op, berth_value a, berth_value *out,
                               berth_error *err);
berth_status berth__onnx_binary(berth__onnx_call *call, const char *op, berth_value a, berth_value b, berth_value *out,
                                berth_error *err);
berth_status berth__onnx_cast(berth__onnx_call *call, berth_value a, berth_type to, berth_value *out, berth_error *err);
/* A constant scalar of a type (rounded for integers), and a constant list of i64. */
berth_status berth__onnx_scalar(berth__onnx_call *call, berth_type type, double value, berth_value *out,
                                berth_error *err);
berth_status berth__onnx_list(berth__onnx_call *call, const int64_t *values, uint32_t count, berth_value *out,
                              berth_error *err);

berth_value berth__onnx_in(const berth__onnx_call *call, size_t index); /* BERTH_VALUE_NONE past the end */
berth_status berth__onnx_want_in(const berth__onnx_call *call, size_t count, berth_error *err);
berth_type berth__onnx_value_type(const berth__onnx_call *call, berth_value value);
bool berth__onnx_is_weight(const berth__onnx_call *call, berth_value value); /* or a constant */
const berth__shape *berth__onnx_shape(const berth__onnx_call *call, berth_value value);
/* Marks output k as BERTH__ONNX_ABSENT because it would hold strings. `why` is reported if no output is left. */
void berth__onnx_set_absent(berth__onnx_call *call, size_t k, const char *why);
/* A tensor made by a handler: a constant if it is small, otherwise a weight. Takes ownership of `owned`, also on
 * failure. */
berth_status berth__onnx_add_made(berth__onnx_call *call, berth_type type, uint32_t rank, const int64_t *dim,
                                  void *owned, berth_value *out, berth_error *err);
/* A constant operand as integers or numbers: at most `most` of them. False if it is not constant. */
bool berth__onnx_constant_ints(const berth__onnx_call *call, berth_value value, int64_t *out, uint32_t most,
                               uint32_t *count);
bool berth__onnx_constant_float(const berth__onnx_call *call, berth_value value, double *out);

/* UNSUPPORTED, with the node's name and op before the message. */
berth_status berth__onnx_unsupported(const berth__onnx_call *call, berth_error *err, const char *fmt, ...)
    BERTH__PRINTF(3, 4);

#endif
