/* Qwen 2 and 2.5 (biases of queries, keys and values), Qwen 3 (norms of queries and keys): the tensors that a file has
 * tell them apart. */
#include "import/gguf/arch.h"
#include "import/gguf/parts.h"

void berth__arch_qwen(berth__net *net) {
  berth_value x = berth__net_begin(net);
  net->epsilon = berth__net_real(net, ".attention.layer_norm_rms_epsilon");
  const berth__rope_tables rope = berth__net_rope(net, BERTH__ROPE_HALVES, berth__net_rope_base(net), true);
  const berth__layer_form form = {.attention = {.rope = &rope}, .gate = BERTH__GATE_SILU, .feed_norm = "ffn_norm"};
  for (int64_t layer = 0; layer < net->layers && net->status == BERTH_OK; layer++)
    x = berth__net_layer(net, x, layer, &form);
  berth__net_finish(net, x, 0);
}
