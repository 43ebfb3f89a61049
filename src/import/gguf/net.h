/* A network that is being built from the keys and tensors of a GGUF file.
 *
 * Functions that add to the graph return the new value. The first failure is stored in the status, and later calls do
 * nothing: an architecture reads like a formula, and the status is checked once at the end. Tensors are named without
 * their layer: after berth__net_enter(net, 3), "attn_q" means "blk.3.attn_q".
 *
 * Inputs and outputs of a graph that generates:
 *   tokens     i32 [rows]: token i has position `position` + i
 *   position   i32 []
 *   last       i32 [1]: the row whose logits are wanted; if those of all rows are wanted, [rows]
 *   logits     f32 [1, vocabulary], or [rows, vocabulary]
 *   states     blk.N.keys and blk.N.values, [ctx, heads * size]: `ctx` is a named dimension like `rows`; layers with
 *              a sliding window have [near, heads * size]
 * Of a graph that computes an embedding of a text (`embeds`):
 *   tokens     i32 [rows], of which the first `length` are the text's
 *   length     i32 []
 *   embedding  f32 [1, width], of length 1
 * There may be more rows than tokens: the rows after the last token see what is before them, and nothing sees them as
 * long as the next run starts at the position after the last token. */
#ifndef BERTH_IMPORT_GGUF_NET_H
#define BERTH_IMPORT_GGUF_NET_H

#include "graph/graph.h"
#include "import/gguf/gguf.h"

#define BERTH__NET_NAME 96 /* bytes of a tensor's name, including the terminator */

typedef enum berth__norm {
  BERTH__NORM_RMS,
  BERTH__NORM_LAYER,      /* with a bias */
  BERTH__NORM_LAYER_PLAIN /* without a bias */
} berth__norm;

typedef struct berth__net {
  berth_context *ctx;
  berth__gguf *file;
  berth_graph *graph;
  berth_error *err;
  berth_status status;
  char prefix[32]; /* prefix of tensor names: "blk.3.", or empty */
  int64_t layer;
  berth_type cache;    /* type of keys and values */
  bool every_row;      /* has logits of every row */
  bool embeds;         /* computes an embedding instead of logits */
  bool sees_all;       /* then: tokens see those after them too */
  bool yarn_in_scores; /* YaRN's magnitude is in the scale of scores, and not in cosines and sines */
  /* From the keys: */
  int64_t layers, width, heads, kv_heads, key_size, value_size, hidden, vocabulary, rotated;
  bool attends;     /* the layer has attention */
  berth__norm norm; /* set by the architecture */
  double epsilon;   /* of norms */
  /* Shared by all layers: */
  berth_value tokens, position, last, length;
  berth_value steps;             /* 0, 1, ...: i32 [rows] */
  berth_value places, positions; /* positions of the rows: i32 [rows], f32 [rows, 1] */
  berth_value temperature;       /* of queries, [rows, 1]; BERTH_VALUE_NONE: none */
} berth__net;

/* ---- Keys: as in gguf.h, a leading dot stands for the architecture ---- */

int64_t berth__net_whole(berth__net *net, const char *key);
int64_t berth__net_whole_or(berth__net *net, const char *key, int64_t fallback);
/* The same for a size, of which llama.cpp writes 0 if there is none. */
int64_t berth__net_size_or(berth__net *net, const char *key, int64_t fallback);
double berth__net_real(berth__net *net, const char *key);
double berth__net_real_or(berth__net *net, const char *key, double fallback);
/* llama.cpp writes 0 for a factor that a model does not have: 1 then, otherwise the factor itself. */
double berth__net_factor(double factor);
/* The width of a feed-forward part, from a key: fails if it is missing or 0. */
void berth__net_need_hidden(berth__net *net, const char *key, int64_t hidden);
/* Reads the keys that every architecture has. */
void berth__net_read_keys(berth__net *net);

/* ---- Values ---- */

berth_value berth__net_add(berth__net *net, const char *op, const berth_value *in, size_t n_in, const berth_attr *attrs,
                           size_t n_attrs);
berth_value berth__net_one(berth__net *net, const char *op, berth_value x);
berth_value berth__net_two(berth__net *net, const char *op, berth_value a, berth_value b);
berth_value berth__net_input(berth__net *net, const char *name, berth_type type, berth_shape shape);
berth_value berth__net_number(berth__net *net, double number); /* f32 [] */
berth_value berth__net_floats(berth__net *net, const float *numbers, int64_t count);
berth_value berth__net_scaled(berth__net *net, berth_value x, double factor); /* x itself if the factor is 1 */
berth_value berth__net_reshape(berth__net *net, berth_value x, berth_shape shape);
berth_value berth__net_cast(berth__net *net, berth_value x, berth_type type);
berth_value berth__net_columns(berth__net *net, berth_value x, int64_t first, int64_t count); /* of [rows, n] */
void berth__net_output(berth__net *net, const char *name, berth_value value);
berth_shape berth__net_rows(int64_t columns); /* [rows, columns] */

/* ---- Tensors ---- */

void berth__net_enter(berth__net *net, int64_t layer); /* -1: outside all layers */
bool berth__net_has(const berth__net *net, const char *name);
const berth__gguf_tensor *berth__net_find(const berth__net *net, const char *name); /* NULL: not found */
/* A tensor with the given extents as f32; block types are unpacked. The name is complete: "attn_q.weight". */
berth_value berth__net_weight(berth__net *net, const char *name, uint32_t rank, const int64_t *extents);
berth_value berth__net_vector(berth__net *net, const char *name, int64_t extent);
/* In the type that it has in the file. */
berth_value berth__net_param(berth__net *net, const char *name, uint32_t rank, const int64_t *extents);

#endif
