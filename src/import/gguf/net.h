/* A network under construction from the keys and tensors of a GGUF file.
 *
 * Functions that add to the graph return the value that they made. The first that fails notes its status, and those
 * after it do nothing: an architecture reads as the formula that it is, and whoever asked for the graph looks at the
 * status once. Tensors are named without the layer: berth__net_enter(net, 3) makes "attn_q" mean "blk.3.attn_q".
 *
 * What the graph takes and gives, for models that generate:
 *   tokens     i32 [rows]: token i stands at position + i
 *   position   i32 []
 *   last       i32 [1]: the row whose logits are wanted; where those of all are wanted, [rows]
 *   logits     f32 [1, vocabulary], or [rows, vocabulary]
 *   states     blk.N.keys and blk.N.values, [ctx, heads * size]: `ctx` is a named dimension like `rows`; layers with
 *              a sliding window have [near, heads * size]
 * Rows may be more than there are tokens: those after the last one see what is before them and are seen by nobody, as
 * long as the next run starts at the position after the last token. */
#ifndef BERTH_IMPORT_GGUF_NET_H
#define BERTH_IMPORT_GGUF_NET_H

#include "graph/graph.h"
#include "import/gguf/gguf.h"

#define BERTH__NET_NAME 96 /* bytes of a tensor's name, with its end */

typedef enum berth__norm {
  BERTH__NORM_RMS,
  BERTH__NORM_LAYER,      /* with a bias */
  BERTH__NORM_LAYER_PLAIN /* without */
} berth__norm;

typedef struct berth__net {
  berth_context *ctx;
  berth__gguf *file;
  berth_graph *graph;
  berth_error *err;
  berth_status status;
  char prefix[32]; /* of tensors' names: "blk.3.", or nothing */
  int64_t layer;
  berth_type cache; /* of keys and values */
  bool every_row;   /* has logits */
  /* What the keys say. */
  int64_t layers, width, heads, kv_heads, key_size, value_size, hidden, vocabulary, rotated;
  berth__norm norm; /* said by the architecture */
  double epsilon;   /* of norms */
  /* What layers share. */
  berth_value tokens, position, last, length;
  berth_value steps;             /* 0, 1, ...: i32 [rows] */
  berth_value places, positions; /* where the rows stand: i32 [rows], f32 [rows, 1] */
  berth_value temperature;       /* of queries, [rows, 1]; BERTH_VALUE_NONE: there is none */
} berth__net;

/* ---- Keys: as in gguf.h, a dot stands for the architecture ---- */

int64_t berth__net_whole(berth__net *net, const char *key);
int64_t berth__net_whole_or(berth__net *net, const char *key, int64_t fallback);
double berth__net_real(berth__net *net, const char *key);
double berth__net_real_or(berth__net *net, const char *key, double fallback);
/* The width of a feed-forward part, which a key says: fails where that is missing or 0. */
void berth__net_need_hidden(berth__net *net, const char *key, int64_t hidden);
/* The keys that every architecture has. */
void berth__net_read_keys(berth__net *net);

/* ---- Values ---- */

berth_value berth__net_add(berth__net *net, const char *op, const berth_value *in, size_t n_in, const berth_attr *attrs,
                           size_t n_attrs);
berth_value berth__net_one(berth__net *net, const char *op, berth_value x);
berth_value berth__net_two(berth__net *net, const char *op, berth_value a, berth_value b);
berth_value berth__net_input(berth__net *net, const char *name, berth_type type, berth_shape shape);
berth_value berth__net_number(berth__net *net, double number); /* f32 [] */
berth_value berth__net_floats(berth__net *net, const float *numbers, int64_t count);
berth_value berth__net_scaled(berth__net *net, berth_value x, double factor); /* x itself where the factor is 1 */
berth_value berth__net_reshape(berth__net *net, berth_value x, berth_shape shape);
berth_value berth__net_cast(berth__net *net, berth_value x, berth_type type);
berth_value berth__net_columns(berth__net *net, berth_value x, int64_t first, int64_t count); /* of [rows, n] */
void berth__net_output(berth__net *net, const char *name, berth_value value);
berth_shape berth__net_rows(int64_t columns); /* [rows, columns] */

/* ---- Tensors ---- */

void berth__net_enter(berth__net *net, int64_t layer); /* -1: outside of all layers */
bool berth__net_has(const berth__net *net, const char *name);
const berth__gguf_tensor *berth__net_find(const berth__net *net, const char *name); /* NULL: there is none */
/* A tensor of the given extents as f32; packed ones are unpacked. The name is whole: "attn_q.weight". */
berth_value berth__net_weight(berth__net *net, const char *name, uint32_t rank, const int64_t *extents);
berth_value berth__net_vector(berth__net *net, const char *name, int64_t extent);
/* As it is in the file, whatever its type. */
berth_value berth__net_param(berth__net *net, const char *name, uint32_t rank, const int64_t *extents);

#endif
