/* Products with weights, norms, and the feed-forward part of a layer. */
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

berth_value berth__net_rms_norm(berth__net *net, berth_value x, const char *name, int64_t size) {
  char text[BERTH__NET_NAME];
  const berth_attr attr = berth_attr_float("epsilon", net->epsilon);
  snprintf(text, sizeof text, "%s.weight", name);
  return berth__net_add(net, "rms_norm", (const berth_value[]){x, berth__net_vector(net, text, size)}, 2, &attr, 1);
}

berth_value berth__net_soft_cap(berth__net *net, berth_value x, double cap) {
  if (cap == 0) return x;
  return berth__net_scaled(net, berth__net_one(net, "tanh", berth__net_scaled(net, x, 1 / cap)), cap);
}

static berth_value feed_gate(berth__net *net, berth__gate gate, berth_value g, berth_value up) {
  const char *op = gate == BERTH__GATE_SILU ? "silu" : "gelu_tanh";
  return berth__net_two(net, "mul", berth__net_one(net, op, g), up);
}

berth_value berth__net_feed(berth__net *net, berth_value x, berth__gate gate) {
  berth_value g, up;
  if (berth__net_has(net, "ffn_gate.weight")) {
    g = berth__net_linear(net, x, "ffn_gate", net->width, net->hidden);
    up = berth__net_linear(net, x, "ffn_up", net->width, net->hidden);
  } else {
    const berth_value both = berth__net_linear(net, x, "ffn_up", net->width, 2 * net->hidden);
    g = berth__net_columns(net, both, 0, net->hidden);
    up = berth__net_columns(net, both, net->hidden, net->hidden);
  }
  return berth__net_linear(net, feed_gate(net, gate, g, up), "ffn_down", net->hidden, net->width);
}

berth_value berth__net_experts(berth__net *net, berth_value x, berth__gate gate) {
  (void)x, (void)gate;
  if (net->status == BERTH_OK)
    net->status = berth__fail(net->err, BERTH_UNSUPPORTED, "mixtures of experts are not built yet");
  return BERTH_VALUE_NONE;
}
