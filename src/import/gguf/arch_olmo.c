/* OLMo 2 and 3, OLMoE, EXAONE 4: norms over all queries and over all keys, or norms after each part instead of
 * before. */
#include "import/gguf/arch.h"
#include "import/gguf/parts.h"

static berth__layer_form olmo_form(const berth__rope_tables *rope) {
  return (berth__layer_form){.attention = {.rope = rope},
                             .gate = BERTH__GATE_SILU,
                             .attention_post = "post_attention_norm",
                             .feed_post = "post_ffw_norm"};
}

/* Layers with a sliding window (OLMo 3) keep plain frequencies. */
void berth__arch_olmo2(berth__net *net) {
  berth_value x = berth__net_begin(net);
  const double base = berth__net_rope_base(net);
  const int64_t window = berth__net_whole_or(net, ".attention.sliding_window", 0);
  const berth__rope_tables far = berth__net_rope(net, BERTH__ROPE_HALVES, base, true);
  const berth__layer_form global = olmo_form(&far);
  if (window == 0) {
    x = berth__net_layers(net, x, &global, &global, 0);
  } else {
    const double near_base = berth__net_real_or(net, ".rope.freq_base_swa", base);
    const berth__rope_tables near = berth__net_rope(net, BERTH__ROPE_HALVES, near_base, false);
    berth__layer_form local = olmo_form(&near);
    local.attention.window = window;
    x = berth__net_layers(net, x, &global, &local, 4);
  }
  berth__net_finish(net, x, 1, 0);
}

void berth__arch_olmoe(berth__net *net) {
  berth__layer_form form = berth__net_layer_form();
  form.mixture.keeps_scores = true;
  berth__net_decoder(net, BERTH__ROPE_HALVES, &form);
}

/* The larger model has sliding windows, and uses positions only in those layers. */
void berth__arch_exaone4(berth__net *net) {
  enum {
    LAYERS_WITH_WINDOWS = 64,
    WINDOW = 4096
  };
  berth_value x = berth__net_begin(net);
  const bool has_windows = net->layers == LAYERS_WITH_WINDOWS;
  const berth__rope_tables rope = berth__net_rope(net, BERTH__ROPE_HALVES, berth__net_rope_base(net), true);
  berth__layer_form local = olmo_form(&rope), global = olmo_form(has_windows ? NULL : &rope);
  if (has_windows) local.attention.window = berth__net_whole_or(net, ".attention.sliding_window", WINDOW);
  x = berth__net_layers(net, x, &global, has_windows ? &local : &global, 4);
  berth__net_finish(net, x, 1, 0);
}
