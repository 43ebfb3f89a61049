/* Architectures of 2025: experts that are chosen by sigmoids, biases and groups, layers with convolutions. */
#include "support.h"
#include "toy_parts.h"

static void norms_of_heads(toy *t) {
  toy_norm(t, "attn_q_norm.weight", t->head_size);
  toy_norm(t, "attn_k_norm.weight", t->head_size);
}

static void shared_expert(toy *t, int64_t hidden) {
  toy_matrix(t, "ffn_gate_shexp.weight", hidden, TOY_WIDTH);
  toy_matrix(t, "ffn_up_shexp.weight", hidden, TOY_WIDTH);
  toy_matrix(t, "ffn_down_shexp.weight", TOY_WIDTH, hidden);
}

/* `shared`: the width of the shared expert, or 0. The bias is large enough to change the choice. */
static void biased_experts(toy *t, int64_t shared) {
  toy_experts(t, BERTH_F32, 0);
  toy_vector(t, "exp_probs_b.bias", TOY_EXPERTS, 0);
  if (shared > 0) shared_expert(t, shared);
}

static void key_mixture(toy *t, uint32_t scores, bool is_divided) {
  toy_key_experts(t);
  toy_key_whole(t, ".expert_feed_forward_length", TOY_HIDDEN);
  toy_key_whole(t, ".expert_gating_func", scores);
  toy_key_bool(t, ".expert_weights_norm", is_divided);
  toy_key_whole(t, ".leading_dense_block_count", 1);
}

/* Queries, keys and values from one product. */
static void joined_attention(toy *t) {
  toy_norm(t, "attn_norm.weight", TOY_WIDTH);
  toy_matrix(t, "attn_qkv.weight", (TOY_HEADS + 2 * t->kv_heads) * t->head_size, TOY_WIDTH);
  toy_matrix(t, "attn_output.weight", TOY_WIDTH, TOY_HEADS * t->head_size);
}

/* Layer 0 is dense, and the others have experts. */
static void mixed_layers(toy *t, int64_t shared, void (*attention)(toy *t)) {
  toy_matrix(t, "output.weight", TOY_VOCABULARY, TOY_WIDTH);
  for (int64_t layer = 0; layer < t->layers; layer++) {
    toy_enter(t, layer);
    attention(t);
    if (layer == 0) {
      toy_feed(t);
      continue;
    }
    toy_norm(t, "ffn_norm.weight", TOY_WIDTH);
    biased_experts(t, shared);
  }
}

static void make_ernie4_5_moe(toy *t) {
  toy_begin(t, 3, 16);
  key_mixture(t, 1, true);
  toy_key_whole(t, ".interleave_moe_layer_step", 1);
  toy_key_whole(t, ".expert_shared_count", 2);
  toy_key_whole(t, ".expert_shared_feed_forward_length", 48);
  mixed_layers(t, 48, toy_attention);
}

static void make_dots1(toy *t) {
  t->kv_heads = TOY_HEADS;
  toy_begin(t, 3, 16);
  key_mixture(t, 2, true);
  toy_key_whole(t, ".expert_shared_count", 2);
  toy_key_real(t, ".expert_weights_scale", 2.5f);
  mixed_layers(t, 2 * TOY_HIDDEN, toy_attention);
  for (int64_t layer = 0; layer < t->layers; layer++) {
    toy_enter(t, layer);
    norms_of_heads(t);
  }
}

/* Two groups of two experts, one of which is used. */
static void make_bailingmoe2(toy *t) {
  toy_begin(t, 3, 16);
  key_mixture(t, 2, true);
  toy_key_whole(t, ".expert_shared_count", 1);
  toy_key_whole(t, ".expert_group_count", 2);
  toy_key_whole(t, ".expert_group_used_count", 1);
  toy_key_real(t, ".expert_weights_scale", 2.5f);
  mixed_layers(t, TOY_HIDDEN, joined_attention);
  for (int64_t layer = 0; layer < t->layers; layer++) {
    toy_enter(t, layer);
    norms_of_heads(t);
  }
}

/* Weights that are not divided by their sum, half of a head that turns, and biases. */
static void make_glm4moe(toy *t) {
  t->rotated = 8;
  toy_begin(t, 3, 16);
  key_mixture(t, 2, false);
  toy_key_whole(t, ".expert_shared_count", 1);
  toy_matrix(t, "output.weight", TOY_VOCABULARY, TOY_WIDTH);
  for (int64_t layer = 0; layer < t->layers; layer++) {
    toy_enter(t, layer);
    toy_attention(t);
    norms_of_heads(t);
    toy_vector(t, "attn_q.bias", TOY_HEADS * t->head_size, 0);
    toy_vector(t, "attn_k.bias", t->kv_heads * t->head_size, 0);
    toy_vector(t, "attn_v.bias", t->kv_heads * t->head_size, 0);
    toy_norm(t, "post_attention_norm.weight", TOY_WIDTH);
    if (layer == 0) {
      toy_matrix(t, "ffn_gate.weight", t->hidden, TOY_WIDTH);
      toy_matrix(t, "ffn_up.weight", t->hidden, TOY_WIDTH);
      toy_matrix(t, "ffn_down.weight", TOY_WIDTH, t->hidden);
    } else {
      biased_experts(t, TOY_HIDDEN);
    }
  }
}

static void hunyuan_layers(toy *t, bool has_experts) {
  for (int64_t layer = 0; layer < t->layers; layer++) {
    toy_enter(t, layer);
    toy_attention(t);
    norms_of_heads(t);
    if (has_experts) {
      toy_norm(t, "ffn_norm.weight", TOY_WIDTH);
      toy_experts(t, BERTH_F32, 0);
      shared_expert(t, 32);
    } else {
      toy_feed(t);
    }
  }
}

static void make_hunyuan_dense(toy *t) {
  toy_begin(t, 2, 16);
  toy_key_real(t, ".rope.freq_base", 11158840);
  hunyuan_layers(t, false);
}

static void make_hunyuan_moe(toy *t) {
  toy_begin(t, 2, 16);
  toy_key_experts(t);
  toy_key_whole(t, ".expert_feed_forward_length", TOY_HIDDEN);
  toy_key_whole(t, ".expert_shared_feed_forward_length", 32);
  hunyuan_layers(t, true);
}

/* ---- What of models for pictures reads text ---- */

static void vision_layers(toy *t, const int32_t sections[4], bool has_norms, bool has_experts) {
  toy_key_list(t, ".rope.dimension_sections", sections, 4);
  toy_matrix(t, "output.weight", TOY_VOCABULARY, TOY_WIDTH);
  for (int64_t layer = 0; layer < t->layers; layer++) {
    toy_enter(t, layer);
    toy_attention(t);
    if (has_norms) norms_of_heads(t);
    if (has_experts) {
      toy_norm(t, "ffn_norm.weight", TOY_WIDTH);
      toy_experts(t, BERTH_F32, 0);
    } else {
      toy_feed(t);
    }
  }
}

/* llama.cpp (b10361) ignores the epsilon of this architecture, and adds nothing. */
static void make_qwen2vl(toy *t) {
  t->epsilon = 1e-9f;
  toy_begin(t, 2, 16);
  vision_layers(t, (const int32_t[]){2, 3, 3, 0}, false, false);
}

static void make_qwen3vl(toy *t) {
  toy_begin(t, 2, 16);
  toy_key_whole(t, ".n_deepstack_layers", 0);
  vision_layers(t, (const int32_t[]){3, 3, 2, 0}, true, false);
}

static void make_qwen3vlmoe(toy *t) {
  toy_begin(t, 2, 16);
  toy_key_experts(t);
  toy_key_whole(t, ".expert_feed_forward_length", TOY_HIDDEN);
  toy_key_whole(t, ".n_deepstack_layers", 0);
  vision_layers(t, (const int32_t[]){3, 3, 2, 0}, true, true);
}

/* ---- Convolutions ---- */

#define TAPS 3

static void convolution(toy *t) {
  toy_norm(t, "attn_norm.weight", TOY_WIDTH);
  toy_matrix(t, "shortconv.in_proj.weight", 3 * TOY_WIDTH, TOY_WIDTH);
  toy_add(t, "shortconv.conv.weight", 2, TOY_WIDTH, TAPS, 0)->scale = 1;
  toy_matrix(t, "shortconv.out_proj.weight", TOY_WIDTH, TOY_WIDTH);
}

/* Layers 1 and 3 have attention; from `first_expert` on they have experts. */
static void lfm2_layers(toy *t, int64_t first_expert) {
  for (int64_t layer = 0; layer < t->layers; layer++) {
    toy_enter(t, layer);
    if (layer % 2 == 1) {
      toy_attention(t);
      norms_of_heads(t);
    } else {
      convolution(t);
    }
    if (layer < first_expert) {
      toy_feed(t);
    } else {
      toy_norm(t, "ffn_norm.weight", TOY_WIDTH);
      biased_experts(t, 0);
    }
  }
}

static void begin_lfm2(toy *t) {
  static const int32_t heads[] = {0, TOY_KV_HEADS, 0, TOY_KV_HEADS};
  t->heads_of_layers = heads;
  t->last_norm = "token_embd_norm.weight";
  toy_begin(t, 4, 16);
  toy_key_whole(t, ".shortconv.l_cache", TAPS);
}

static void make_lfm2(toy *t) {
  begin_lfm2(t);
  lfm2_layers(t, t->layers);
}

static void make_lfm2_text(toy *t) {
  t->has_tokens = true;
  make_lfm2(t);
}

static void make_lfm2moe(toy *t) {
  begin_lfm2(t);
  key_mixture(t, 2, true);
  lfm2_layers(t, 1);
}

/* ---- Latent vectors ---- */

#define RANK 32
#define TURNED 32
#define PLAIN 16
#define VALUES 24

static void latent_attention(toy *t, int64_t query_rank) {
  const int64_t queries = TOY_HEADS * (PLAIN + TURNED);
  toy_norm(t, "attn_norm.weight", TOY_WIDTH);
  if (query_rank > 0) {
    toy_matrix(t, "attn_q_a.weight", query_rank, TOY_WIDTH);
    toy_norm(t, "attn_q_a_norm.weight", query_rank);
    toy_matrix(t, "attn_q_b.weight", queries, query_rank);
  } else {
    toy_matrix(t, "attn_q.weight", queries, TOY_WIDTH);
  }
  toy_matrix(t, "attn_kv_a_mqa.weight", RANK + TURNED, TOY_WIDTH);
  toy_norm(t, "attn_kv_a_norm.weight", RANK);
  toy_add(t, "attn_k_b.weight", 3, TOY_HEADS, RANK, PLAIN);
  toy_add(t, "attn_v_b.weight", 3, TOY_HEADS, VALUES, RANK);
  toy_matrix(t, "attn_output.weight", TOY_WIDTH, TOY_HEADS * VALUES);
}

static void begin_deepseek2(toy *t, int64_t layers) {
  t->kv_heads = 1;
  t->rotated = TURNED;
  t->value_size = RANK;
  toy_begin(t, layers, RANK + TURNED);
  toy_key_whole(t, ".attention.kv_lora_rank", RANK);
  toy_key_whole(t, ".attention.key_length_mla", PLAIN + TURNED);
  toy_key_whole(t, ".attention.value_length_mla", VALUES);
  toy_matrix(t, "output.weight", TOY_VOCABULARY, TOY_WIDTH);
}

/* Layer 0 is dense. */
static void deepseek2_layers(toy *t, int64_t query_rank, bool is_biased) {
  for (int64_t layer = 0; layer < t->layers; layer++) {
    toy_enter(t, layer);
    latent_attention(t, query_rank);
    if (layer == 0) {
      toy_feed(t);
      continue;
    }
    toy_norm(t, "ffn_norm.weight", TOY_WIDTH);
    toy_experts(t, BERTH_F32, 0);
    if (is_biased) toy_vector(t, "exp_probs_b.bias", TOY_EXPERTS, 0);
    shared_expert(t, TOY_HIDDEN);
  }
}

static void make_deepseek2(toy *t) {
  begin_deepseek2(t, 3);
  key_mixture(t, 2, true);
  toy_key_whole(t, ".attention.q_lora_rank", 48);
  toy_key_whole(t, ".expert_shared_count", 1);
  toy_key_real(t, ".expert_weights_scale", 1.8f);
  deepseek2_layers(t, 48, true);
}

/* Positions by YaRN, whose magnitude is in the scores. llama.cpp takes models of 26 and 27 layers for those whose
 * queries have no latent vectors. */
static void make_deepseek2_lite(toy *t) {
  begin_deepseek2(t, 26);
  toy_key_experts(t);
  toy_key_whole(t, ".expert_feed_forward_length", TOY_HIDDEN);
  toy_key_whole(t, ".leading_dense_block_count", 1);
  toy_key_whole(t, ".expert_shared_count", 1);
  toy_key_text(t, ".rope.scaling.type", "yarn");
  toy_key_real(t, ".rope.scaling.factor", 40);
  toy_key_real(t, ".rope.scaling.yarn_log_multiplier", 0.0707f);
  toy_key_whole(t, ".rope.scaling.original_context_length", 64);
  deepseek2_layers(t, 0, false);
}

/* ---- Embeddings of texts ---- */

static void embedding_layers(toy *t, bool has_norms) {
  for (int64_t layer = 0; layer < t->layers; layer++) {
    toy_enter(t, layer);
    toy_attention(t);
    if (has_norms) norms_of_heads(t);
    toy_feed(t);
  }
}

static void make_qwen3_embedding(toy *t) {
  toy_begin(t, 2, 32);
  toy_key_whole(t, ".pooling_type", 3);
  embedding_layers(t, true);
}

static void make_qwen2_embedding(toy *t) {
  toy_begin(t, 2, 16);
  toy_key_whole(t, ".pooling_type", 1);
  toy_key_bool(t, ".attention.causal", false);
  embedding_layers(t, false);
}

/* Windows of three tokens on either side in six layers of seven, and two layers after pooling. */
static void make_gemma_embedding(toy *t) {
  toy_begin(t, 7, 32);
  toy_key_whole(t, ".pooling_type", 1);
  toy_key_real(t, ".rope.freq_base", 1e6f);
  toy_key_whole(t, ".attention.sliding_window", 6);
  toy_key_whole(t, ".dense_2_feat_in", TOY_WIDTH);
  toy_key_whole(t, ".dense_2_feat_out", 2 * TOY_WIDTH);
  toy_key_whole(t, ".dense_3_feat_in", 2 * TOY_WIDTH);
  toy_key_whole(t, ".dense_3_feat_out", TOY_WIDTH);
  toy_matrix(t, "dense_2.weight", 2 * TOY_WIDTH, TOY_WIDTH);
  toy_matrix(t, "dense_3.weight", TOY_WIDTH, 2 * TOY_WIDTH);
  for (int64_t layer = 0; layer < t->layers; layer++) {
    toy_enter(t, layer);
    toy_attention(t);
    norms_of_heads(t);
    toy_norm(t, "post_attention_norm.weight", TOY_WIDTH);
    toy_feed(t);
    toy_norm(t, "post_ffw_norm.weight", TOY_WIDTH);
  }
}

static const toy_model toys[] = {
    {"ernie4_5-moe", make_ernie4_5_moe},
    {"dots1", make_dots1},
    {"bailingmoe2", make_bailingmoe2},
    {"glm4moe", make_glm4moe},
    {"hunyuan-dense", make_hunyuan_dense},
    {"hunyuan-moe", make_hunyuan_moe},
    {"qwen2vl", make_qwen2vl},
    {"qwen3vl", make_qwen3vl},
    {"qwen3vlmoe", make_qwen3vlmoe},
    {"lfm2", make_lfm2},
    {"lfm2/text", make_lfm2_text},
    {"lfm2moe", make_lfm2moe},
    {"deepseek2", make_deepseek2},
    {"deepseek2/lite", make_deepseek2_lite},
    {"qwen3/embedding", make_qwen3_embedding},
    {"qwen2/embedding", make_qwen2_embedding},
    {"gemma-embedding", make_gemma_embedding},
};

const toy_model *toy_recent(size_t index) { return index < sizeof toys / sizeof toys[0] ? &toys[index] : NULL; }
