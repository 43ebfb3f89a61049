#include "minilm.h"

#include <stdio.h>

/* After a failure, the rest does nothing. */
typedef struct encoder {
  berth_graph *graph;
  const minilm_shape *shape;
  uint32_t layer;
  berth_status status;
  berth_error *err;
} encoder;

static berth_value param(encoder *e, const char *name, uint32_t rank, int64_t rows, int64_t columns) {
  berth_value value = BERTH_VALUE_NONE;
  char full[64];
  int64_t extents[] = {rows, columns};
  if (e->status != BERTH_OK) return value;
  snprintf(full, sizeof full, "layer%u.%s", e->layer, name);
  berth_shape shape = berth_shape_fixed(rank, rank == 1 ? &extents[1] : extents);
  e->status = berth_graph_param(e->graph, full, BERTH_F32, shape, &value, e->err);
  return value;
}

static berth_value node(encoder *e, const char *name, const char *op, const berth_value *in, size_t n_in,
                        const berth_attr *attrs, size_t n_attrs) {
  berth_value value = BERTH_VALUE_NONE;
  char full[64];
  if (e->status != BERTH_OK) return value;
  snprintf(full, sizeof full, "layer%u.%s", e->layer, name);
  e->status = berth_graph_add(e->graph, op, in, n_in, attrs, n_attrs, &value, 1, e->err);
  if (e->status == BERTH_OK) e->status = berth_graph_rename(e->graph, value, full, e->err);
  return value;
}

static berth_value linear(encoder *e, const char *name, berth_value x, int64_t from, int64_t to) {
  char label[32];
  snprintf(label, sizeof label, "%s.weight", name);
  berth_value product[] = {x, param(e, label, 2, from, to)};
  snprintf(label, sizeof label, "%s.product", name);
  berth_value sum[] = {node(e, label, "matmul", product, 2, NULL, 0), BERTH_VALUE_NONE};
  snprintf(label, sizeof label, "%s.bias", name);
  sum[1] = param(e, label, 1, 0, to);
  return node(e, name, "add", sum, 2, NULL, 0);
}

static berth_value slice(encoder *e, const char *name, berth_value packed, int64_t index) {
  int64_t axis = -1, start = index * e->shape->hidden, end = start + e->shape->hidden;
  berth_attr attrs[] = {berth_attr_ints("axes", &axis, 1), berth_attr_ints("starts", &start, 1),
                        berth_attr_ints("ends", &end, 1)};
  return node(e, name, "narrow", &packed, 1, attrs, 3);
}

static berth_value attention(encoder *e, berth_value x) {
  berth_value packed = linear(e, "qkv", x, e->shape->hidden, 3 * e->shape->hidden);
  berth_value in[] = {slice(e, "q", packed, 0), slice(e, "k", packed, 1), slice(e, "v", packed, 2)};
  berth_attr heads = berth_attr_int("heads", e->shape->heads);
  berth_value mixed = node(e, "attention", "attention", in, 3, &heads, 1);
  return linear(e, "projection", mixed, e->shape->hidden, e->shape->hidden);
}

static berth_value feed_forward(encoder *e, berth_value x) {
  berth_value up = linear(e, "up", x, e->shape->hidden, e->shape->ffn);
  return linear(e, "down", node(e, "gelu", "gelu", &up, 1, NULL, 0), e->shape->ffn, e->shape->hidden);
}

/* The residual and its norm. */
static berth_value add_and_norm(encoder *e, const char *name, berth_value x, berth_value more) {
  char label[32];
  berth_value sum[] = {more, x};
  snprintf(label, sizeof label, "%s.residual", name);
  berth_value norm[] = {node(e, label, "add", sum, 2, NULL, 0), BERTH_VALUE_NONE, BERTH_VALUE_NONE};
  snprintf(label, sizeof label, "%s.scale", name);
  norm[1] = param(e, label, 1, 0, e->shape->hidden);
  snprintf(label, sizeof label, "%s.shift", name);
  norm[2] = param(e, label, 1, 0, e->shape->hidden);
  return node(e, name, "layer_norm", norm, 3, NULL, 0);
}

berth_status build_minilm(berth_context *ctx, const minilm_shape *shape, berth_graph **out, berth_error *err) {
  encoder e = {.shape = shape, .err = err};
  berth_value x = BERTH_VALUE_NONE;
  int64_t extents[] = {shape->sequence, shape->hidden};
  *out = NULL;
  e.status = berth_graph_create(ctx, "MiniLM", &e.graph, err);
  if (e.status == BERTH_OK)
    e.status = berth_graph_input(e.graph, "hidden_states", BERTH_F32, berth_shape_fixed(2, extents), &x, err);
  for (e.layer = 0; e.layer < shape->layers; e.layer++) {
    x = add_and_norm(&e, "attention_norm", x, attention(&e, x));
    x = add_and_norm(&e, "ffn_norm", x, feed_forward(&e, x));
  }
  if (e.status == BERTH_OK) e.status = berth_graph_output(e.graph, "encoded", x, err);
  if (e.status != BERTH_OK)
    berth_graph_destroy(e.graph);
  else
    *out = e.graph;
  return e.status;
}
