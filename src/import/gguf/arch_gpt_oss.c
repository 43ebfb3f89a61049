/* gpt-oss: experts, sinks in every head, and a sliding window in every other layer. */
#include "import/gguf/arch.h"
#include "import/gguf/parts.h"

void berth__arch_gpt_oss(berth__net *net) {
  berth_value x = berth__net_begin(net);
  net->epsilon = berth__net_real(net, ".attention.layer_norm_rms_epsilon");
  const berth__rope_tables rope = berth__net_rope(net, BERTH__ROPE_HALVES, berth__net_rope_base(net), true);
  const berth__layer_form global = {
      .attention = {.has_sinks = true, .rope = &rope}, .gate = BERTH__GATE_GPT_OSS, .feed_norm = "post_attention_norm"};
  berth__layer_form local = global;
  local.attention.window = berth__net_whole(net, ".attention.sliding_window");
  for (int64_t layer = 0; layer < net->layers && net->status == BERTH_OK; layer++)
    x = berth__net_layer(net, x, layer, berth__net_is_local(net, layer, 2) ? &local : &global);
  berth__net_finish(net, x, 0);
}
