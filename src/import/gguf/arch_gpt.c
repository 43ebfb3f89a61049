/* Decoders with layer norms: GPT-2, GPT-NeoX, Falcon, Phi 2, StarCoder 2, StableLM, Nemotron, Command R. */
#include "import/gguf/arch.h"
#include "import/gguf/parts.h"

static berth__layer_form gpt_form(berth__net *net, berth__gate gate) {
  berth__layer_form form = berth__net_layer_form();
  net->norm = BERTH__NORM_LAYER;
  form.gate = gate;
  return form;
}

/* A position embedding is added to that of the token. Padding rows may be beyond the end of the table: they use its
 * last row, and nothing reads them. */
void berth__arch_gpt2(berth__net *net) {
  const berth__layer_form form = gpt_form(net, BERTH__PLAIN_GELU);
  berth_value x = berth__net_begin(net);
  const int64_t places = berth__net_whole(net, ".context_length");
  const berth_value table = berth__net_weight(net, "position_embd.weight", 2, (const int64_t[]){places, net->width});
  const berth_value last = berth__net_cast(net, berth__net_number(net, (double)places - 1), BERTH_I32);
  const berth_value place = berth__net_two(net, "min", net->places, last);
  x = berth__net_two(net, "add", x, berth__net_two(net, "embedding", table, place));
  berth__net_finish(net, berth__net_layers(net, x, &form, &form, 0), 1, 0);
}

/* Attention and the feed-forward part read the same x, each through a norm of its own, or run one after the other. */
void berth__arch_gptneox(berth__net *net) {
  berth__layer_form form = gpt_form(net, BERTH__PLAIN_GELU_ERF);
  if (net->status == BERTH_OK)
    net->status = berth__gguf_bool_or(net->file, ".use_parallel_residual", true, &form.is_parallel, net->err);
  berth__net_decoder(net, BERTH__ROPE_HALVES, &form);
}

/* The larger models have a norm for each of the two parts; "attn_norm" is that of the feed-forward part. */
void berth__arch_falcon(berth__net *net) {
  berth__layer_form form = gpt_form(net, BERTH__PLAIN_GELU_ERF);
  const bool has_two = berth__gguf_tensor_find(net->file, "blk.0.attn_norm_2.weight") != NULL;
  form.is_parallel = true;
  form.attention_norm = has_two ? "attn_norm_2" : "attn_norm";
  form.feed_norm = has_two ? "attn_norm" : NULL;
  berth__net_decoder(net, BERTH__ROPE_HALVES, &form);
}

void berth__arch_phi2(berth__net *net) {
  berth__layer_form form = gpt_form(net, BERTH__PLAIN_GELU);
  form.is_parallel = true;
  form.feed_norm = NULL;
  berth__net_decoder(net, BERTH__ROPE_HALVES, &form);
}

void berth__arch_starcoder2(berth__net *net) {
  const berth__layer_form form = gpt_form(net, BERTH__PLAIN_GELU);
  berth__net_decoder(net, BERTH__ROPE_HALVES, &form);
}

void berth__arch_nemotron(berth__net *net) {
  const berth__layer_form form = gpt_form(net, BERTH__PLAIN_RELU2);
  berth__net_decoder(net, BERTH__ROPE_HALVES, &form);
}

/* The 12B model has one norm for both parts, which read the same x. */
void berth__arch_stablelm(berth__net *net) {
  berth__layer_form form = gpt_form(net, BERTH__GATE_SILU);
  form.is_parallel = berth__gguf_tensor_find(net->file, "blk.0.ffn_norm.weight") == NULL;
  if (form.is_parallel) form.feed_norm = NULL;
  berth__net_decoder(net, BERTH__ROPE_HALVES, &form);
}

/* Norms without biases, one for both parts. In the second version, only layers with a sliding window use positions. */
static void command_r(berth__net *net, bool has_windows) {
  berth__layer_form local = gpt_form(net, BERTH__GATE_SILU);
  net->norm = BERTH__NORM_LAYER_PLAIN;
  local.is_parallel = true;
  local.feed_norm = NULL;
  const berth_value x = berth__net_begin(net);
  const berth__rope_tables rope = berth__net_rope(net, BERTH__ROPE_NEIGHBOURS, berth__net_rope_base(net), true);
  const double scale = has_windows ? berth__net_real(net, ".logit_scale") : berth__net_real_or(net, ".logit_scale", 1);
  berth__layer_form global = local;
  local.attention.rope = &rope;
  if (has_windows) local.attention.window = berth__net_whole(net, ".attention.sliding_window");
  berth__net_finish(net, berth__net_layers(net, x, has_windows ? &global : &local, &local, 4), berth__net_factor(scale),
                    0);
}

void berth__arch_command_r(berth__net *net) { command_r(net, false); }

void berth__arch_cohere2(berth__net *net) { command_r(net, true); }
