/* gpt-oss: experts, attention sinks, and a sliding window in every other layer. */
#include "import/gguf/arch.h"
#include "import/gguf/parts.h"

void berth__arch_gpt_oss(berth__net *net) {
  berth_value x = berth__net_begin(net);
  const berth__rope_tables rope = berth__net_rope(net, BERTH__ROPE_HALVES, berth__net_rope_base(net), true);
  const berth__layer_form global = {.attention = {.has_sinks = true, .rope = &rope},
                                    .gate = BERTH__GATE_GPT_OSS,
                                    .attention_norm = "attn_norm",
                                    .feed_norm = "post_attention_norm"};
  berth__layer_form local = global;
  local.attention.window = berth__net_whole(net, ".attention.sliding_window");
  x = berth__net_layers(net, x, &global, &local, 2);
  berth__net_finish(net, x, 1, 0);
}
