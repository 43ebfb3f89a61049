/* Products with weights, norms, and the feed-forward part of a layer. */
#include <math.h>
#include <stdio.h>

#include "import/gguf/parts.h"

berth_value berth__net_linear(berth__net *net, berth_value x, const char *name, int64_t inner, int64_t columns) {
  static const int64_t swapped[2] = {1, 0};
  char text[BERTH__NET_NAME];
  const berth_attr attr = berth_attr_ints("perm", swapped, 2);
  snprintf(text, sizeof text, "%s.weight", name);
  const berth_value weight = berth__net_weight(net, text, 2, (const int64_t[]){columns, inner});
  const berth_value turned = berth__net_add(net, "transpose", &weight, 1, &attr, 1);
  const berth_value product = berth__net_two(net, "matmul", x, turned);
  snprintf(text, sizeof text, "%s.bias", name);
  if (!berth__net_has(net, text)) return product;
  return berth__net_two(net, "add", product, berth__net_vector(net, text, columns));
}

static berth_value feed_norm(berth__net *net, const berth_value *in, size_t n) {
  const berth_attr attr = berth_attr_float("epsilon", net->epsilon);
  return berth__net_add(net, net->norm == BERTH__NORM_RMS ? "rms_norm" : "layer_norm", in, n, &attr, 1);
}

berth_value berth__net_norm(berth__net *net, berth_value x, const char *name) {
  char text[BERTH__NET_NAME];
  berth_value in[3] = {x};
  size_t n = 1;
  snprintf(text, sizeof text, "%s.weight", name);
  in[n++] = berth__net_vector(net, text, net->width);
  snprintf(text, sizeof text, "%s.bias", name);
  if (net->norm == BERTH__NORM_LAYER) in[n++] = berth__net_vector(net, text, net->width);
  return feed_norm(net, in, n);
}

berth_value berth__net_norm_by(berth__net *net, berth_value x, berth_value scale) {
  return feed_norm(net, (const berth_value[]){x, scale}, scale != BERTH_VALUE_NONE ? 2 : 1);
}

berth_value berth__net_soft_cap(berth__net *net, berth_value x, double cap) {
  if (cap == 0) return x;
  return berth__net_scaled(net, berth__net_one(net, "tanh", berth__net_scaled(net, x, 1 / cap)), cap);
}

static berth_value feed_clamp(berth__net *net, berth_value x, double low, double high) {
  const berth_attr attrs[] = {berth_attr_float("min", low), berth_attr_float("max", high)};
  return berth__net_add(net, "clamp", &x, 1, attrs, 2);
}

/* g sigmoid(1.702 g) (up + 1), with g clamped to at most 7 and up to between -7 and 7. */
static berth_value feed_gpt_oss(berth__net *net, berth_value g, berth_value up) {
  g = feed_clamp(net, g, -INFINITY, 7);
  up = berth__net_two(net, "add", feed_clamp(net, up, -7, 7), berth__net_number(net, 1));
  const berth_value open = berth__net_one(net, "sigmoid", berth__net_scaled(net, g, 1.702));
  return berth__net_two(net, "mul", berth__net_two(net, "mul", g, open), up);
}

static berth_value feed_gate(berth__net *net, berth__gate gate, berth_value g, berth_value up) {
  if (gate == BERTH__GATE_GPT_OSS) return feed_gpt_oss(net, g, up);
  const char *op = gate == BERTH__GATE_SILU ? "silu" : "gelu_tanh";
  return berth__net_two(net, "mul", berth__net_one(net, op, g), up);
}

static berth_value feed_plain(berth__net *net, berth__gate form, berth_value x) {
  if (form == BERTH__PLAIN_GELU) return berth__net_one(net, "gelu_tanh", x);
  if (form == BERTH__PLAIN_GELU_ERF) return berth__net_one(net, "gelu", x);
  x = berth__net_one(net, "relu", x);
  return berth__net_two(net, "mul", x, x);
}

/* The tensors "ffn_gate", "ffn_up" and "ffn_down" with a suffix, with the width that a key states. */
static berth_value feed_through(berth__net *net, berth_value x, berth__gate gate, const char *suffix, const char *key,
                                int64_t hidden) {
  char name[3][BERTH__NET_NAME];
  static const char *const names[] = {"ffn_gate%s", "ffn_up%s", "ffn_down%s"};
  for (int i = 0; i < 3; i++) snprintf(name[i], sizeof name[i], names[i], suffix);
  const berth_value g = berth__net_linear(net, x, name[0], net->width, hidden),
                    up = berth__net_linear(net, x, name[1], net->width, hidden);
  berth__net_need_hidden(net, key, hidden);
  return berth__net_linear(net, feed_gate(net, gate, g, up), name[2], hidden, net->width);
}

berth_value berth__net_feed(berth__net *net, berth_value x, berth__gate gate) {
  const bool is_plain = gate >= BERTH__PLAIN_GELU;
  if (!is_plain && berth__net_has(net, "ffn_gate.weight"))
    return feed_through(net, x, gate, "", ".feed_forward_length", net->hidden);
  berth_value up = berth__net_linear(net, x, "ffn_up", net->width, is_plain ? net->hidden : 2 * net->hidden);
  berth__net_need_hidden(net, ".feed_forward_length", net->hidden);
  if (is_plain)
    up = feed_plain(net, gate, up);
  else
    up = feed_gate(net, gate, berth__net_columns(net, up, 0, net->hidden),
                   berth__net_columns(net, up, net->hidden, net->hidden));
  return berth__net_linear(net, up, "ffn_down", net->hidden, net->width);
}

/* ---- Experts ---- */

typedef struct experts {
  int64_t count, used, hidden;
  berth_value which, weights; /* per row: [rows, used], and [rows, used, 1] */
} experts;

/* The best experts of each row. Their weights are a softmax over their own scores, which equals a softmax over all
 * scores divided by its sum over the chosen ones. With `weighs_all` they are a softmax over all scores. */
static void experts_choose(berth__net *net, berth_value x, bool weighs_all, experts *e) {
  berth_value best[2] = {BERTH_VALUE_NONE, BERTH_VALUE_NONE};
  const berth_attr attr = berth_attr_int("k", e->used);
  const berth_shape apart = {.rank = 3, .dim = {{.name = "rows"}, {.extent = e->used}, {.extent = 1}}};
  berth_value scores = berth__net_linear(net, x, "ffn_gate_inp", net->width, e->count);
  if (weighs_all) scores = berth__net_one(net, "softmax", scores);
  if (net->status == BERTH_OK)
    net->status = berth_graph_add(net->graph, "top_k", &scores, 1, &attr, 1, best, 2, net->err);
  e->which = best[1];
  e->weights = berth__net_reshape(net, weighs_all ? best[0] : berth__net_one(net, "softmax", best[0]), apart);
  e->weights =
      berth__net_scaled(net, e->weights, berth__net_factor(berth__net_real_or(net, ".expert_weights_scale", 1)));
}

/* The result is [rows, used, columns], for x [rows, inner] or [rows, used, inner]. */
static berth_value experts_linear(berth__net *net, const experts *e, berth_value x, const char *name, int64_t inner,
                                  int64_t columns) {
  char text[BERTH__NET_NAME];
  snprintf(text, sizeof text, "%s.weight", name);
  const berth_value weights = berth__net_param(net, text, 3, (const int64_t[]){e->count, columns, inner});
  const berth_value product =
      berth__net_add(net, "expert_matmul", (const berth_value[]){x, weights, e->which}, 3, NULL, 0);
  snprintf(text, sizeof text, "%s.bias", name);
  if (!berth__net_has(net, text)) return product;
  const berth_value bias = berth__net_weight(net, text, 2, (const int64_t[]){e->count, columns});
  return berth__net_two(net, "add", product, berth__net_two(net, "embedding", bias, e->which));
}

/* The shared expert, which every row goes through. */
static berth_value experts_shared(berth__net *net, berth_value x, berth__gate gate) {
  static const char key[] = ".expert_shared_feed_forward_length";
  const berth_value y = feed_through(net, x, gate, "_shexp", key, berth__net_size_or(net, key, net->hidden));
  if (!berth__net_has(net, "ffn_gate_inp_shexp.weight")) return y;
  const berth_value column = berth__net_vector(net, "ffn_gate_inp_shexp.weight", net->width);
  const berth_shape turned = {.rank = 2, .dim = {{.extent = net->width}, {.extent = 1}}};
  const berth_value open = berth__net_two(net, "matmul", x, berth__net_reshape(net, column, turned));
  return berth__net_two(net, "mul", y, berth__net_one(net, "sigmoid", open));
}

berth_value berth__net_experts(berth__net *net, berth_value x, berth__gate gate, const berth__mixture *mixture) {
  static const int64_t uses = 1;
  const berth_attr attrs[] = {berth_attr_ints("axes", &uses, 1), berth_attr_int("keepdims", 0)};
  experts e = {.count = berth__net_whole(net, ".expert_count"), .used = berth__net_whole(net, ".expert_used_count")};
  if (net->status == BERTH_OK && e.used < 1)
    net->status = berth__fail(net->err, BERTH_MALFORMED, "key '.expert_used_count' is 0, and must be above 0");
  const int64_t parts = net->status == BERTH_OK && mixture->splits_width ? e.used : 1;
  e.hidden = berth__net_size_or(net, ".expert_feed_forward_length", net->hidden / parts);
  experts_choose(net, x, mixture->weighs_all, &e);
  const berth_value g = experts_linear(net, &e, x, "ffn_gate_exps", net->width, e.hidden),
                    up = experts_linear(net, &e, x, "ffn_up_exps", net->width, e.hidden);
  berth__net_need_hidden(net, ".expert_feed_forward_length", e.hidden);
  const berth_value y = experts_linear(net, &e, feed_gate(net, gate, g, up), "ffn_down_exps", e.hidden, net->width);
  const berth_value weighed = berth__net_two(net, "mul", y, e.weights);
  const berth_value sum = berth__net_add(net, "reduce_sum", &weighed, 1, attrs, 2);
  return mixture->is_shared ? berth__net_two(net, "add", sum, experts_shared(net, x, gate)) : sum;
}
