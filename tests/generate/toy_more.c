/* Architectures that are others with small differences: what the differences are is what these models have. */
#include "support.h"
#include "toy_parts.h"

static void bias(toy *t, const char *name, int64_t extent) { toy_vector(t, name, extent, 0); }

static void output(toy *t) { toy_matrix(t, "output.weight", TOY_VOCABULARY, TOY_WIDTH); }

static void usual_layers(toy *t) {
  for (int64_t layer = 0; layer < t->layers; layer++) {
    toy_enter(t, layer);
    toy_attention(t);
    toy_feed(t);
  }
}

/* ---- Like Llama ---- */

static void make_internlm2(toy *t) {
  toy_begin(t, 2, 16);
  output(t);
  usual_layers(t);
}

/* One layer, and the key of older files for positions that are scaled. */
static void make_llama_old(toy *t) {
  toy_begin(t, 1, 16);
  toy_key_real(t, ".rope.scale_linear", 4);
  output(t);
  usual_layers(t);
}

static void make_mistral3(toy *t) {
  toy_begin(t, 2, 32);
  toy_key_text(t, ".rope.scaling.type", "yarn");
  toy_key_real(t, ".rope.scaling.factor", 16);
  toy_key_real(t, ".rope.scaling.yarn_log_multiplier", 1);
  toy_key_whole(t, ".rope.scaling.original_context_length", 5); /* short, for the temperature to matter */
  toy_key_real(t, ".attention.temperature_scale", 0.5f);
  usual_layers(t);
}

/* A layer without positions is the fourth. */
static void make_smollm3(toy *t) {
  toy_begin(t, 5, 16);
  usual_layers(t);
}

static void plain_feed(toy *t) {
  toy_norm(t, "ffn_norm.weight", TOY_WIDTH);
  toy_matrix(t, "ffn_up.weight", t->hidden, TOY_WIDTH);
  toy_matrix(t, "ffn_down.weight", TOY_WIDTH, t->hidden);
}

static void make_arcee(toy *t) {
  toy_begin(t, 2, 16);
  output(t);
  for (int64_t layer = 0; layer < t->layers; layer++) {
    toy_enter(t, layer);
    toy_attention(t);
    plain_feed(t);
  }
}

static void key_granite(toy *t) {
  toy_key_real(t, ".embedding_scale", 12);
  toy_key_real(t, ".residual_scale", 0.22f);
  toy_key_real(t, ".logit_scale", 8);
  toy_key_real(t, ".attention.scale", 0.0625f);
}

static void make_granite(toy *t) {
  toy_begin(t, 2, 16);
  key_granite(t);
  usual_layers(t);
}

static void shared_expert(toy *t, int64_t hidden) {
  toy_matrix(t, "ffn_gate_shexp.weight", hidden, TOY_WIDTH);
  toy_matrix(t, "ffn_up_shexp.weight", hidden, TOY_WIDTH);
  toy_matrix(t, "ffn_down_shexp.weight", TOY_WIDTH, hidden);
}

static void expert_layers(toy *t, int64_t shared) {
  for (int64_t layer = 0; layer < t->layers; layer++) {
    toy_enter(t, layer);
    toy_attention(t);
    toy_norm(t, "ffn_norm.weight", TOY_WIDTH);
    toy_experts(t, BERTH_F32, 0);
    if (shared > 0) shared_expert(t, shared);
  }
}

static void make_granitemoe(toy *t) {
  toy_begin(t, 2, 16);
  toy_key_experts(t);
  toy_key_whole(t, ".expert_shared_feed_forward_length", 32);
  key_granite(t);
  expert_layers(t, 32);
}

/* The factors follow from the sizes. */
static void make_minicpm(toy *t) {
  toy_begin(t, 2, 16);
  usual_layers(t);
}

/* What llama.cpp writes for what a model does not have. */
static void key_nothing(toy *t) {
  toy_key_real(t, ".expert_weights_scale", 0);
  toy_key_whole(t, ".expert_feed_forward_length", 0);
  toy_key_whole(t, ".expert_shared_feed_forward_length", 0);
  toy_key_whole(t, ".nextn_predict_layers", 0);
  toy_key_real(t, ".logit_scale", 0);
  toy_key_real(t, ".residual_scale", 0);
  toy_key_real(t, ".embedding_scale", 0);
  toy_key_real(t, ".attention.scale", 0);
  toy_key_real(t, ".rope.scaling.factor", 0);
  toy_key_bool(t, ".rope.scaling.finetuned", false);
  toy_key_bool(t, ".attention.causal", true);
}

static void make_llama_saved(toy *t) {
  toy_begin(t, 2, 16);
  toy_key_experts(t);
  key_nothing(t);
  output(t);
  expert_layers(t, 0);
}

/* Without factors; that it has positions does not depend on a key. */
static void make_minicpm_saved(toy *t) {
  toy_begin(t, 2, 16);
  toy_key_real(t, ".logit_scale", 0.5f);
  toy_key_real(t, ".residual_scale", 0);
  toy_key_real(t, ".embedding_scale", 0);
  toy_key_bool(t, ".rope.scaling.finetuned", false);
  usual_layers(t);
}

static void glm4_layers(toy *t) {
  output(t);
  for (int64_t layer = 0; layer < t->layers; layer++) {
    toy_enter(t, layer);
    toy_attention(t);
    toy_norm(t, "post_attention_norm.weight", TOY_WIDTH);
    toy_norm(t, "ffn_norm.weight", TOY_WIDTH);
    toy_matrix(t, "ffn_up.weight", 2 * t->hidden, TOY_WIDTH);
    toy_matrix(t, "ffn_down.weight", TOY_WIDTH, t->hidden);
    toy_norm(t, "post_ffw_norm.weight", TOY_WIDTH);
  }
}

static void make_glm4(toy *t) {
  t->rotated = 8;
  toy_begin(t, 2, 16);
  glm4_layers(t);
}

/* The part of GLM 4.1V that reads text, and a last layer that only guesses further tokens. */
static void make_glm4_dimensions(toy *t) {
  static const int32_t sections[4] = {2, 1, 1, 0};
  t->rotated = 8;
  toy_begin(t, 3, 16);
  toy_key_list(t, ".rope.dimension_sections", sections, 4);
  toy_key_whole(t, ".nextn_predict_layers", 1);
  glm4_layers(t);
  toy_matrix(t, "nextn.eh_proj.weight", TOY_WIDTH, 2 * TOY_WIDTH);
  toy_norm(t, "nextn.enorm.weight", TOY_WIDTH);
  toy_norm(t, "nextn.hnorm.weight", TOY_WIDTH);
}

/* ---- Positions by halves ---- */

static void qwen2moe_layers(toy *t, int64_t shared) {
  output(t);
  expert_layers(t, shared);
  for (int64_t layer = 0; layer < t->layers; layer++) {
    toy_enter(t, layer);
    toy_vector(t, "ffn_gate_inp_shexp.weight", TOY_WIDTH, 0);
    bias(t, "attn_q.bias", TOY_WIDTH);
    bias(t, "attn_k.bias", t->kv_heads * t->head_size);
    bias(t, "attn_v.bias", t->kv_heads * t->head_size);
  }
}

static void make_qwen2moe(toy *t) {
  toy_begin(t, 2, 16);
  toy_key_experts(t);
  toy_key_whole(t, ".expert_feed_forward_length", TOY_HIDDEN);
  toy_key_whole(t, ".expert_shared_feed_forward_length", 32);
  qwen2moe_layers(t, 32);
}

/* Older files do not say how wide experts are: the two of a row together, and the shared one, as a feed-forward part.
 */
static void make_qwen2moe_old(toy *t) {
  t->hidden = 2 * TOY_HIDDEN;
  toy_begin(t, 2, 16);
  toy_key_experts(t);
  qwen2moe_layers(t, t->hidden);
}

static void head_norms(toy *t) {
  for (int64_t layer = 0; layer < t->layers; layer++) {
    toy_enter(t, layer);
    toy_norm(t, "attn_q_norm.weight", t->head_size);
    toy_norm(t, "attn_k_norm.weight", t->head_size);
  }
}

static void make_qwen3moe(toy *t) {
  toy_begin(t, 2, 32);
  toy_key_experts(t);
  toy_key_whole(t, ".expert_feed_forward_length", TOY_HIDDEN);
  expert_layers(t, 0);
  head_norms(t);
}

static void make_seed_oss(toy *t) {
  toy_begin(t, 2, 16);
  output(t);
  for (int64_t layer = 0; layer < t->layers; layer++) {
    toy_enter(t, layer);
    toy_attention(t);
    bias(t, "attn_q.bias", TOY_WIDTH);
    bias(t, "attn_k.bias", t->kv_heads * t->head_size);
    bias(t, "attn_v.bias", t->kv_heads * t->head_size);
    toy_norm(t, "post_attention_norm.weight", TOY_WIDTH);
    toy_matrix(t, "ffn_gate.weight", t->hidden, TOY_WIDTH);
    toy_matrix(t, "ffn_up.weight", t->hidden, TOY_WIDTH);
    toy_matrix(t, "ffn_down.weight", TOY_WIDTH, t->hidden);
  }
}

static void make_exaone(toy *t) {
  toy_begin(t, 2, 16);
  toy_vector(t, "rope_freqs.weight", 8, 4);
  output(t);
  usual_layers(t);
}

/* Norms after each part and none before. */
static void layers_normed_after(toy *t) {
  for (int64_t layer = 0; layer < t->layers; layer++) {
    toy_enter(t, layer);
    toy_matrix(t, "attn_q.weight", TOY_HEADS * t->head_size, TOY_WIDTH);
    toy_matrix(t, "attn_k.weight", t->kv_heads * t->head_size, TOY_WIDTH);
    toy_matrix(t, "attn_v.weight", t->kv_heads * t->head_size, TOY_WIDTH);
    toy_matrix(t, "attn_output.weight", TOY_WIDTH, TOY_HEADS * t->head_size);
    toy_norm(t, "post_attention_norm.weight", TOY_WIDTH);
    toy_matrix(t, "ffn_gate.weight", t->hidden, TOY_WIDTH);
    toy_matrix(t, "ffn_up.weight", t->hidden, TOY_WIDTH);
    toy_matrix(t, "ffn_down.weight", TOY_WIDTH, t->hidden);
    toy_norm(t, "post_ffw_norm.weight", TOY_WIDTH);
  }
}

static void make_exaone4(toy *t) {
  toy_begin(t, 2, 16);
  layers_normed_after(t);
  head_norms(t);
}

/* So many layers that those with windows are among them. */
static void make_exaone4_windows(toy *t) {
  t->hidden = 8;
  toy_begin(t, 64, 16);
  toy_key_whole(t, ".attention.sliding_window", 6);
  layers_normed_after(t);
  head_norms(t);
}

static void row_norms(toy *t) {
  for (int64_t layer = 0; layer < t->layers; layer++) {
    toy_enter(t, layer);
    toy_norm(t, "attn_q_norm.weight", TOY_HEADS * t->head_size);
    toy_norm(t, "attn_k_norm.weight", t->kv_heads * t->head_size);
  }
}

static void make_olmo2(toy *t) {
  toy_begin(t, 2, 16);
  output(t);
  layers_normed_after(t);
  row_norms(t);
}

/* OLMo 3: a window in three of four layers, and scaled positions in the fourth. */
static void make_olmo2_windows(toy *t) {
  toy_begin(t, 5, 16);
  toy_key_whole(t, ".attention.sliding_window", 6);
  toy_key_text(t, ".rope.scaling.type", "yarn");
  toy_key_real(t, ".rope.scaling.factor", 8);
  toy_key_whole(t, ".rope.scaling.original_context_length", 64);
  output(t);
  layers_normed_after(t);
  row_norms(t);
}

/* As many heads for keys as for queries: its norm of keys is as wide as the model. */
static void make_olmoe(toy *t) {
  t->kv_heads = TOY_HEADS;
  toy_begin(t, 2, 16);
  toy_key_experts(t);
  output(t);
  for (int64_t layer = 0; layer < t->layers; layer++) {
    toy_enter(t, layer);
    toy_attention(t);
    toy_norm(t, "ffn_norm.weight", TOY_WIDTH);
    toy_experts(t, BERTH_F32, 0);
  }
  row_norms(t);
}

static void make_gemma(toy *t) {
  toy_begin(t, 2, 32);
  usual_layers(t);
}

/* ---- Layer norms ---- */

static void begin_with_layer_norms(toy *t, int64_t layers, bool has_bias) {
  toy_begin(t, layers, 16);
  toy_key_real(t, ".attention.layer_norm_epsilon", 1e-5f);
  if (has_bias) bias(t, "output_norm.bias", TOY_WIDTH);
}

static void joined_attention(toy *t, bool has_bias) {
  const int64_t all = (TOY_HEADS + 2 * t->kv_heads) * t->head_size;
  toy_matrix(t, "attn_qkv.weight", all, TOY_WIDTH);
  toy_matrix(t, "attn_output.weight", TOY_WIDTH, TOY_WIDTH);
  if (!has_bias) return;
  bias(t, "attn_qkv.bias", all);
  bias(t, "attn_output.bias", TOY_WIDTH);
}

static void plain_parts(toy *t, bool has_bias) {
  toy_matrix(t, "ffn_up.weight", t->hidden, TOY_WIDTH);
  toy_matrix(t, "ffn_down.weight", TOY_WIDTH, t->hidden);
  if (!has_bias) return;
  bias(t, "ffn_up.bias", t->hidden);
  bias(t, "ffn_down.bias", TOY_WIDTH);
}

/* Norms before both parts, one product for queries, keys and values, biases everywhere. */
static void gpt_layers(toy *t) {
  for (int64_t layer = 0; layer < t->layers; layer++) {
    toy_enter(t, layer);
    toy_both(t, "attn_norm");
    joined_attention(t, true);
    toy_both(t, "ffn_norm");
    plain_parts(t, true);
  }
}

static void make_gpt2(toy *t) {
  begin_with_layer_norms(t, 2, true);
  toy_matrix(t, "position_embd.weight", 512, TOY_WIDTH);
  gpt_layers(t);
}

static void make_gpt2_text(toy *t) {
  t->has_tokens = true;
  make_gpt2(t);
}

static void make_gptneox(toy *t) {
  t->rotated = 8;
  begin_with_layer_norms(t, 2, true);
  toy_key_bool(t, ".use_parallel_residual", true);
  output(t);
  gpt_layers(t);
}

static void make_gptneox_serial(toy *t) {
  begin_with_layer_norms(t, 2, true);
  toy_key_bool(t, ".use_parallel_residual", false);
  output(t);
  gpt_layers(t);
}

static void falcon_layers(toy *t, bool has_two_norms) {
  for (int64_t layer = 0; layer < t->layers; layer++) {
    toy_enter(t, layer);
    toy_both(t, "attn_norm");
    if (has_two_norms) toy_both(t, "attn_norm_2");
    joined_attention(t, false);
    plain_parts(t, false);
  }
}

static void make_falcon(toy *t) {
  begin_with_layer_norms(t, 2, true);
  falcon_layers(t, false);
}

static void make_falcon_two(toy *t) {
  begin_with_layer_norms(t, 2, true);
  output(t);
  falcon_layers(t, true);
}

static void make_phi2(toy *t) {
  t->rotated = 8;
  begin_with_layer_norms(t, 2, true);
  output(t);
  bias(t, "output.bias", TOY_VOCABULARY);
  for (int64_t layer = 0; layer < t->layers; layer++) {
    toy_enter(t, layer);
    toy_both(t, "attn_norm");
    joined_attention(t, true);
    plain_parts(t, true);
  }
}

static void bias_of_norms(toy *t) {
  for (int64_t layer = 0; layer < t->layers; layer++) {
    toy_enter(t, layer);
    bias(t, "attn_norm.bias", TOY_WIDTH);
    bias(t, "ffn_norm.bias", TOY_WIDTH);
  }
}

static void make_starcoder2(toy *t) {
  begin_with_layer_norms(t, 2, true);
  for (int64_t layer = 0; layer < t->layers; layer++) {
    toy_enter(t, layer);
    toy_attention(t);
    bias(t, "attn_q.bias", TOY_WIDTH);
    bias(t, "attn_k.bias", t->kv_heads * t->head_size);
    bias(t, "attn_v.bias", t->kv_heads * t->head_size);
    bias(t, "attn_output.bias", TOY_WIDTH);
    toy_norm(t, "ffn_norm.weight", TOY_WIDTH);
    plain_parts(t, true);
  }
  bias_of_norms(t);
}

static void make_nemotron(toy *t) {
  t->rotated = 8;
  begin_with_layer_norms(t, 2, true);
  output(t);
  for (int64_t layer = 0; layer < t->layers; layer++) {
    toy_enter(t, layer);
    toy_attention(t);
    plain_feed(t);
  }
  bias_of_norms(t);
}

static void make_stablelm(toy *t) {
  t->rotated = 8;
  begin_with_layer_norms(t, 2, true);
  output(t);
  usual_layers(t);
  bias_of_norms(t);
}

/* Each head has a scale of its own. */
static void norms_by_head(toy *t) {
  toy_add(t, "attn_q_norm.weight", 2, TOY_HEADS, t->head_size, 0)->middle = 1;
  toy_add(t, "attn_k_norm.weight", 2, t->kv_heads, t->head_size, 0)->middle = 1;
}

static void one_norm(toy *t, bool has_bias) {
  toy_attention(t);
  if (has_bias) bias(t, "attn_norm.bias", TOY_WIDTH);
  toy_matrix(t, "ffn_gate.weight", t->hidden, TOY_WIDTH);
  toy_matrix(t, "ffn_up.weight", t->hidden, TOY_WIDTH);
  toy_matrix(t, "ffn_down.weight", TOY_WIDTH, t->hidden);
}

static void make_stablelm_parallel(toy *t) {
  begin_with_layer_norms(t, 2, true);
  output(t);
  for (int64_t layer = 0; layer < t->layers; layer++) {
    toy_enter(t, layer);
    one_norm(t, true);
    norms_by_head(t);
  }
}

static void command_r_of(toy *t, float scale) {
  begin_with_layer_norms(t, 2, false);
  toy_key_real(t, ".logit_scale", scale);
  for (int64_t layer = 0; layer < t->layers; layer++) {
    toy_enter(t, layer);
    one_norm(t, false);
  }
}

static void make_command_r(toy *t) { command_r_of(t, 0.0625f); }

static void make_command_r_saved(toy *t) { command_r_of(t, 0); }

static void make_cohere2(toy *t) {
  begin_with_layer_norms(t, 5, false);
  toy_key_real(t, ".logit_scale", 0.25f);
  toy_key_whole(t, ".attention.sliding_window", 6);
  for (int64_t layer = 0; layer < t->layers; layer++) {
    toy_enter(t, layer);
    one_norm(t, false);
  }
}

static const toy_model toys[] = {
    {"internlm2", make_internlm2},
    {"ernie4_5", make_internlm2},
    {"llama/old", make_llama_old},
    {"llama/saved", make_llama_saved},
    {"mistral3", make_mistral3},
    {"smollm3", make_smollm3},
    {"arcee", make_arcee},
    {"granite", make_granite},
    {"granitemoe", make_granitemoe},
    {"minicpm", make_minicpm},
    {"minicpm/saved", make_minicpm_saved},
    {"glm4", make_glm4},
    {"glm4/dimensions", make_glm4_dimensions},
    {"qwen2moe", make_qwen2moe},
    {"qwen2moe/old", make_qwen2moe_old},
    {"qwen3moe", make_qwen3moe},
    {"seed_oss", make_seed_oss},
    {"exaone", make_exaone},
    {"exaone4", make_exaone4},
    {"exaone4/windows", make_exaone4_windows},
    {"olmo2", make_olmo2},
    {"olmo2/windows", make_olmo2_windows},
    {"olmoe", make_olmoe},
    {"gemma", make_gemma},
    {"gpt2", make_gpt2},
    {"gpt2/text", make_gpt2_text},
    {"gptneox", make_gptneox},
    {"gptneox/serial", make_gptneox_serial},
    {"falcon", make_falcon},
    {"falcon/two", make_falcon_two},
    {"phi2", make_phi2},
    {"starcoder2", make_starcoder2},
    {"nemotron", make_nemotron},
    {"stablelm", make_stablelm},
    {"stablelm/parallel", make_stablelm_parallel},
    {"command-r", make_command_r},
    {"command-r/saved", make_command_r_saved},
    {"cohere2", make_cohere2},
};

const toy_model *toy_more(size_t index) {
  const size_t n = sizeof toys / sizeof toys[0];
  return index < n ? &toys[index] : toy_recent(index - n);
}
