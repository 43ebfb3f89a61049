/* Gemma: embeddings are multiplied by the square root of the width. Gemma 2 and 3 also have norms after each part, and
 * layers with a sliding window between layers with full attention. */
#include <math.h>

#include "import/gguf/arch.h"
#include "import/gguf/parts.h"

/* Scores are scaled by the size of a head, but in the 27B models by the width per head of the embedding. */
static double gemma_scale(const berth__net *net, int64_t layers_of_27b) {
  if (net->status != BERTH_OK) return 1; /* the number of heads may be 0 */
  const int64_t size = net->layers == layers_of_27b ? net->width / net->heads : net->key_size;
  return 1 / sqrt((double)size);
}

static berth_value gemma_begin(berth__net *net) {
  const berth_value x = berth__net_begin(net);
  return berth__net_scaled(net, x, sqrt((double)net->width));
}

static berth__layer_form gemma_form(double scale, double cap, const berth__rope_tables *rope) {
  return (berth__layer_form){.attention = {.scale = scale, .cap = cap, .rope = rope},
                             .gate = BERTH__GATE_GELU,
                             .attention_norm = "attn_norm",
                             .feed_norm = "ffn_norm",
                             .attention_post = "post_attention_norm",
                             .feed_post = "post_ffw_norm"};
}

void berth__arch_gemma(berth__net *net) {
  const berth_value x = gemma_begin(net);
  const berth__rope_tables rope = berth__net_rope(net, BERTH__ROPE_HALVES, berth__net_rope_base(net), true);
  berth__layer_form form = berth__net_layer_form();
  form.gate = BERTH__GATE_GELU;
  form.attention.rope = &rope;
  berth__net_finish(net, berth__net_layers(net, x, &form, &form, 0), 1, 0);
}

static void gemma3_layers(berth__net *net, int64_t layers_of_27b, double cap) {
  berth_value x = gemma_begin(net);
  const double near_base = berth__net_real_or(net, ".rope.freq_base_swa", 10000);
  const berth__rope_tables far = berth__net_rope(net, BERTH__ROPE_HALVES, berth__net_rope_base(net), true),
                           near = berth__net_rope(net, BERTH__ROPE_HALVES, near_base, false);
  const int64_t window = berth__net_whole_or(net, ".attention.sliding_window", 0);
  const berth__layer_form global = gemma_form(gemma_scale(net, layers_of_27b), 0, &far);
  berth__layer_form local = window > 0 ? gemma_form(gemma_scale(net, layers_of_27b), 0, &near) : global;
  local.attention.window = window;
  x = berth__net_layers(net, x, &global, &local, 6);
  berth__net_finish(net, x, 1, cap);
}

void berth__arch_gemma3(berth__net *net) {
  gemma3_layers(net, 62, berth__net_real_or(net, ".final_logit_softcapping", 0));
}

/* EmbeddingGemma: Gemma 3 whose tokens see those after them; layers with a window see half of it on either side. */
void berth__arch_gemma_embedding(berth__net *net) {
  net->sees_all = true;
  gemma3_layers(net, 0, 0);
}

void berth__arch_gemma2(berth__net *net) {
  berth_value x = gemma_begin(net);
  const berth__rope_tables rope = berth__net_rope(net, BERTH__ROPE_HALVES, berth__net_rope_base(net), true);
  const berth__layer_form global =
      gemma_form(gemma_scale(net, 46), berth__net_real_or(net, ".attn_logit_softcapping", 50), &rope);
  berth__layer_form local = global;
  local.attention.window = berth__net_whole_or(net, ".attention.sliding_window", 4096);
  x = berth__net_layers(net, x, &global, &local, 2);
  berth__net_finish(net, x, 1, berth__net_real_or(net, ".final_logit_softcapping", 30));
}
