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

berth_value berth__net_gate(berth__net *net, berth__gate gate, berth_value g, berth_value up) {
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

berth_value berth__net_gated(berth__net *net, berth_value x, berth__gate gate, const char *suffix, const char *key,
                             int64_t hidden) {
  char name[3][BERTH__NET_NAME];
  static const char *const names[] = {"ffn_gate%s", "ffn_up%s", "ffn_down%s"};
  for (int i = 0; i < 3; i++) snprintf(name[i], sizeof name[i], names[i], suffix);
  const berth_value g = berth__net_linear(net, x, name[0], net->width, hidden),
                    up = berth__net_linear(net, x, name[1], net->width, hidden);
  berth__net_need_hidden(net, key, hidden);
  return berth__net_linear(net, berth__net_gate(net, gate, g, up), name[2], hidden, net->width);
}

berth_value berth__net_feed(berth__net *net, berth_value x, berth__gate gate) {
  const bool is_plain = gate >= BERTH__PLAIN_GELU;
  if (!is_plain && berth__net_has(net, "ffn_gate.weight"))
    return berth__net_gated(net, x, gate, "", ".feed_forward_length", net->hidden);
  berth_value up = berth__net_linear(net, x, "ffn_up", net->width, is_plain ? net->hidden : 2 * net->hidden);
  berth__net_need_hidden(net, ".feed_forward_length", net->hidden);
  if (is_plain)
    up = feed_plain(net, gate, up);
  else
    up = berth__net_gate(net, gate, berth__net_columns(net, up, 0, net->hidden),
                         berth__net_columns(net, up, net->hidden, net->hidden));
  return berth__net_linear(net, up, "ffn_down", net->hidden, net->width);
}
