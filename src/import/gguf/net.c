#include "import/gguf/net.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

static bool net_note(berth__net *net, berth_status status) {
  if (net->status == BERTH_OK) net->status = status;
  return status == BERTH_OK;
}

/* ---- Keys ---- */

/* Upper limit of every count: the product of two fits 64 bits, and so does the sum of some such products. No product of
 * three is computed here. */
#define NET_MOST ((uint64_t)1 << 30)
#define NET_MOST_OF_HEAD 65536 /* elements of a head: tables are made from this number before any tensor is checked */

static int64_t net_count(berth__net *net, const char *key, uint64_t value) {
  if (value <= NET_MOST) return (int64_t)value;
  net_note(net, berth__fail(net->err, BERTH_MALFORMED, "key '%s' is %" PRIu64 ", which is too large", key, value));
  return 0;
}

int64_t berth__net_whole(berth__net *net, const char *key) {
  uint64_t value = 0;
  if (net->status != BERTH_OK || !net_note(net, berth__gguf_u64(net->file, key, &value, net->err))) return 0;
  return net_count(net, key, value);
}

int64_t berth__net_whole_or(berth__net *net, const char *key, int64_t fallback) {
  return berth__gguf_find(net->file, key) != NULL ? berth__net_whole(net, key) : fallback;
}

double berth__net_real(berth__net *net, const char *key) {
  double value = 0;
  if (net->status != BERTH_OK || !net_note(net, berth__gguf_f64(net->file, key, &value, net->err))) return 0;
  if (fabs(value) <= (double)FLT_MAX) return value; /* false for NaN */
  net_note(net, berth__fail(net->err, BERTH_MALFORMED, "key '%s' is %g, which is not a finite f32", key, value));
  return 0;
}

double berth__net_real_or(berth__net *net, const char *key, double fallback) {
  return berth__gguf_find(net->file, key) != NULL ? berth__net_real(net, key) : fallback;
}

int64_t berth__net_size_or(berth__net *net, const char *key, int64_t fallback) {
  const int64_t size = berth__net_whole_or(net, key, fallback);
  return size != 0 ? size : fallback;
}

double berth__net_factor(double factor) { return factor != 0 ? factor : 1; }

static void net_need_positive(berth__net *net, const char *key, int64_t value) {
  if (net->status == BERTH_OK && value < 1)
    net_note(net, berth__fail(net->err, BERTH_MALFORMED, "key '%s' is %" PRId64 ", and must be above 0", key, value));
}

void berth__net_need_hidden(berth__net *net, const char *key, int64_t hidden) {
  if (net->status == BERTH_OK && hidden < 1) net_need_positive(net, key, berth__net_whole(net, key));
}

static void net_need_head(berth__net *net, const char *key, int64_t value) {
  net_need_positive(net, key, value);
  if (net->status == BERTH_OK && value > NET_MOST_OF_HEAD)
    net_note(net, berth__fail(net->err, BERTH_MALFORMED, "key '%s' is %" PRId64 ", and heads have at most %d elements",
                              key, value, NET_MOST_OF_HEAD));
}

static const char net_kv_heads[] = ".attention.head_count_kv";

/* A number for every layer, in which 0 stands for a layer without attention; the others must be the same. */
static void net_read_kv_heads(berth__net *net) {
  const berth__gguf_key *key = berth__gguf_find(net->file, net_kv_heads);
  berth__gguf_array each;
  if (net->status != BERTH_OK) return;
  if (key == NULL || key->kind != BERTH__GGUF_ARRAY) {
    net->kv_heads = berth__net_whole_or(net, net_kv_heads, net->heads);
    return;
  }
  if (!net_note(net, berth__gguf_array_of(net->file, net_kv_heads, &each, net->err))) return;
  bool is_right = berth__gguf_array_is_whole(&each) && each.count >= (uint64_t)net->layers;
  for (uint64_t i = 0; is_right && i < (uint64_t)net->layers; i++) {
    const int64_t heads = berth__gguf_array_i64(&each, i);
    is_right = heads == 0 || net->kv_heads == 0 || heads == net->kv_heads;
    if (heads != 0) net->kv_heads = heads;
  }
  if (is_right && net->kv_heads >= 0 && net->kv_heads <= (int64_t)NET_MOST) return;
  net_note(net, berth__fail(net->err, BERTH_UNSUPPORTED,
                            "key '%s' must have a whole number for every layer, the same for all that have attention",
                            net_kv_heads));
}

/* Whether a layer has heads for keys, and so attention. */
static bool net_attends(const berth__net *net, int64_t layer) {
  const berth__gguf_key *key = berth__gguf_find(net->file, net_kv_heads);
  return key == NULL || key->kind != BERTH__GGUF_ARRAY || berth__gguf_array_i64(&key->array, (uint64_t)layer) != 0;
}

static void net_read_heads(berth__net *net) {
  net->heads = berth__net_whole(net, ".attention.head_count");
  net_read_kv_heads(net);
  net_need_positive(net, ".attention.head_count", net->heads);
  net_need_positive(net, net_kv_heads, net->kv_heads);
  if (net->status != BERTH_OK) return;
  net->key_size = berth__net_whole_or(net, ".attention.key_length", net->width / net->heads);
  net->value_size = berth__net_whole_or(net, ".attention.value_length", net->width / net->heads);
  net->rotated = berth__net_whole_or(net, ".rope.dimension_count", net->key_size);
  net_need_head(net, ".attention.key_length", net->key_size);
  net_need_head(net, ".attention.value_length", net->value_size);
}

/* The graph does not need it, but planning and generation take it as the size of the context. */
static void net_check_context(berth__net *net) {
  uint64_t context = 0;
  if (net->status != BERTH_OK ||
      !net_note(net, berth__gguf_u64_or(net->file, ".context_length", 1, &context, net->err)))
    return;
  net_need_positive(net, ".context_length", context > 0);
}

/* Layers at the end may only guess further tokens (multi-token prediction); they take no part in the next one. */
static void net_read_layers(berth__net *net) {
  static const char name[] = ".nextn_predict_layers";
  net->layers = berth__net_whole(net, ".block_count");
  net_need_positive(net, ".block_count", net->layers);
  const int64_t ahead = berth__net_whole_or(net, name, 0);
  if (net->status == BERTH_OK && ahead >= net->layers)
    net_note(net, berth__fail(net->err, BERTH_MALFORMED, "key '%s' is %" PRId64 ", and there are %" PRId64 " layers",
                              name, ahead, net->layers));
  net->layers -= ahead;
}

void berth__net_read_keys(berth__net *net) {
  net_read_layers(net);
  net->width = berth__net_whole(net, ".embedding_length");
  net->hidden = berth__net_whole_or(net, ".feed_forward_length", 0);
  net_need_positive(net, ".embedding_length", net->width);
  net_check_context(net);
  if (net->status == BERTH_OK) net_read_heads(net);
  const berth__gguf_tensor *table = berth__gguf_tensor_find(net->file, "token_embd.weight");
  if (net->status != BERTH_OK) return;
  if (table == NULL || table->rank != 2 || table->dim[1] != net->width)
    net_note(net, berth__fail(net->err, BERTH_MALFORMED,
                              "the model needs a tensor 'token_embd.weight' with %" PRId64 " columns", net->width));
  else
    net->vocabulary = table->dim[0];
}

/* ---- Values ---- */

berth_value berth__net_add(berth__net *net, const char *op, const berth_value *in, size_t n_in, const berth_attr *attrs,
                           size_t n_attrs) {
  berth_value out = BERTH_VALUE_NONE;
  if (net->status != BERTH_OK) return out;
  const berth_status status = berth_graph_add(net->graph, op, in, n_in, attrs, n_attrs, &out, 1, net->err);
  if (status != BERTH_OK && net->layer >= 0) berth__fail_within(net->err, status, "layer %" PRId64, net->layer);
  net_note(net, status);
  return out;
}

berth_value berth__net_one(berth__net *net, const char *op, berth_value x) {
  return berth__net_add(net, op, &x, 1, NULL, 0);
}

berth_value berth__net_two(berth__net *net, const char *op, berth_value a, berth_value b) {
  return berth__net_add(net, op, (const berth_value[]){a, b}, 2, NULL, 0);
}

berth_value berth__net_input(berth__net *net, const char *name, berth_type type, berth_shape shape) {
  berth_value out = BERTH_VALUE_NONE;
  if (net->status == BERTH_OK) net_note(net, berth_graph_input(net->graph, name, type, shape, &out, net->err));
  return out;
}

static berth_value net_constant(berth__net *net, berth_type type, berth_shape shape, const void *data, size_t size) {
  berth_value out = BERTH_VALUE_NONE;
  if (net->status == BERTH_OK)
    net_note(net, berth_graph_constant(net->graph, NULL, type, shape, data, size, &out, net->err));
  return out;
}

berth_value berth__net_number(berth__net *net, double number) {
  const float rounded = (float)number;
  return net_constant(net, BERTH_F32, (berth_shape){0}, &rounded, sizeof rounded);
}

berth_value berth__net_floats(berth__net *net, const float *numbers, int64_t count) {
  return net_constant(net, BERTH_F32, berth_shape_fixed(1, &count), numbers, (size_t)count * sizeof *numbers);
}

berth_value berth__net_scaled(berth__net *net, berth_value x, double factor) {
  return factor == 1 ? x : berth__net_two(net, "mul", x, berth__net_number(net, factor));
}

berth_value berth__net_reshape(berth__net *net, berth_value x, berth_shape shape) {
  const berth_attr attr = berth_attr_dims("shape", shape.dim, shape.rank);
  return berth__net_add(net, "reshape", &x, 1, &attr, 1);
}

berth_value berth__net_cast(berth__net *net, berth_value x, berth_type type) {
  const berth_attr attr = berth_attr_string("to", berth_type_name(type));
  return berth__net_add(net, "cast", &x, 1, &attr, 1);
}

berth_value berth__net_columns(berth__net *net, berth_value x, int64_t first, int64_t count) {
  const int64_t axis = 1, end = first + count;
  const berth_attr attrs[] = {berth_attr_ints("axes", &axis, 1), berth_attr_ints("starts", &first, 1),
                              berth_attr_ints("ends", &end, 1)};
  return berth__net_add(net, "narrow", &x, 1, attrs, 3);
}

void berth__net_output(berth__net *net, const char *name, berth_value value) {
  if (net->status == BERTH_OK) net_note(net, berth_graph_output(net->graph, name, value, net->err));
}

berth_shape berth__net_rows(int64_t columns) {
  return (berth_shape){.rank = 2, .dim = {{.name = "rows"}, {.extent = columns}}};
}

/* ---- Tensors ---- */

void berth__net_enter(berth__net *net, int64_t layer) {
  net->layer = layer;
  net->prefix[0] = '\0';
  if (layer >= 0) snprintf(net->prefix, sizeof net->prefix, "blk.%" PRId64 ".", layer);
  net->attends = layer >= 0 && net_attends(net, layer);
}

static const char *net_name(const berth__net *net, const char *name, char *text) {
  snprintf(text, BERTH__NET_NAME, "%s%s", net->prefix, name);
  return text;
}

const berth__gguf_tensor *berth__net_find(const berth__net *net, const char *name) {
  char text[BERTH__NET_NAME];
  return berth__gguf_tensor_find(net->file, net_name(net, name, text));
}

bool berth__net_has(const berth__net *net, const char *name) { return berth__net_find(net, name) != NULL; }

static bool net_is_so(const berth__gguf_tensor *tensor, uint32_t rank, const int64_t *extents) {
  if (tensor->rank != rank) return false;
  for (uint32_t i = 0; i < rank; i++)
    if (tensor->dim[i] != extents[i]) return false;
  return true;
}

static berth_status net_check(const berth__gguf_tensor *tensor, const char *name, uint32_t rank, const int64_t *extents,
                              berth_error *err) {
  char wanted[BERTH__SHAPE_TEXT], has[BERTH__SHAPE_TEXT], type[32];
  if (tensor == NULL) return berth__fail(err, BERTH_MALFORMED, "the model has no tensor '%s'", name);
  if (tensor->type == BERTH_TYPE_NONE)
    return berth__fail(err, BERTH_UNSUPPORTED, "tensor '%s' is of type %s, which berth does not support", name,
                       berth__gguf_type_name(tensor->ggml_type, type));
  if (net_is_so(tensor, rank, extents)) return BERTH_OK;
  berth__shape a = {.rank = tensor->rank}, b = {.rank = rank};
  memcpy(a.dim, tensor->dim, tensor->rank * sizeof *a.dim);
  memcpy(b.dim, extents, rank * sizeof *b.dim);
  return berth__fail(err, BERTH_MALFORMED, "tensor '%s' is %s, and the keys make it %s", name,
                     berth__shape_text(&a, has), berth__shape_text(&b, wanted));
}

static berth_status net_declare(berth__net *net, const char *name, uint32_t rank, const int64_t *extents,
                                berth_value *out) {
  const berth__gguf_tensor *tensor = berth__gguf_tensor_find(net->file, name);
  const void *data;
  BERTH__TRY(net_check(tensor, name, rank, extents, net->err));
  *out = berth_graph_find(net->graph, name);
  if (*out != BERTH_VALUE_NONE) return BERTH_OK; /* tied: one param, used twice */
  BERTH__TRY(berth__gguf_tensor_data(net->file, tensor, &data, net->err));
  BERTH__TRY(berth_graph_param(net->graph, name, tensor->type, berth_shape_fixed(rank, extents), out, net->err));
  net->graph->values[*out].data = data;
  return BERTH_OK;
}

berth_value berth__net_param(berth__net *net, const char *name, uint32_t rank, const int64_t *extents) {
  char text[BERTH__NET_NAME];
  berth_value out = BERTH_VALUE_NONE;
  if (net->status == BERTH_OK) net_note(net, net_declare(net, net_name(net, name, text), rank, extents, &out));
  return out;
}

berth_value berth__net_weight(berth__net *net, const char *name, uint32_t rank, const int64_t *extents) {
  const berth_value param = berth__net_param(net, name, rank, extents);
  if (net->status != BERTH_OK) return BERTH_VALUE_NONE;
  const berth_type type = net->graph->values[param].type;
  if (type == BERTH_F32) return param;
  return berth_type_size(type) == 0 ? berth__net_one(net, "unpack", param) : berth__net_cast(net, param, BERTH_F32);
}

berth_value berth__net_vector(berth__net *net, const char *name, int64_t extent) {
  return berth__net_weight(net, name, 1, &extent);
}
