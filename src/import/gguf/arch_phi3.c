/* Phi 3 and 4: one product for queries, keys and values, one for gate and up, and factors of frequencies that depend on
 * the length of the context. */
#include "import/gguf/arch.h"
#include "import/gguf/parts.h"

void berth__arch_phi3(berth__net *net) {
  berth_value x = berth__net_begin(net);
  net->epsilon = berth__net_real(net, ".attention.layer_norm_rms_epsilon");
  const berth__rope_tables rope = berth__net_rope(net, BERTH__ROPE_HALVES, berth__net_rope_base(net), true);
  /* Files say a sliding window that the models were not made with; llama.cpp leaves it out as well. */
  const berth__layer_form form = {.attention = {.rope = &rope}, .gate = BERTH__GATE_SILU, .feed_norm = "ffn_norm"};
  for (int64_t layer = 0; layer < net->layers && net->status == BERTH_OK; layer++)
    x = berth__net_layer(net, x, layer, &form);
  berth__net_finish(net, x, 0);
}
