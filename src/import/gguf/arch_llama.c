/* Llama, Mistral, SmolLM, Mixtral (with experts) and all that are built like them. */
#include "import/gguf/arch.h"
#include "import/gguf/parts.h"

void berth__arch_llama(berth__net *net) {
  berth_value x = berth__net_begin(net);
  net->epsilon = berth__net_real(net, ".attention.layer_norm_rms_epsilon");
  const berth__rope_tables rope = berth__net_rope(net, BERTH__ROPE_NEIGHBOURS, berth__net_rope_base(net), true);
  const berth__layer_form form = {.attention = {.scale = berth__net_real_or(net, ".attention.scale", 0), .rope = &rope},
                                  .gate = BERTH__GATE_SILU,
                                  .feed_norm = "ffn_norm"};
  for (int64_t layer = 0; layer < net->layers && net->status == BERTH_OK; layer++)
    x = berth__net_layer(net, x, layer, &form);
  berth__net_finish(net, x, 0);
}
