#include <stdio.h>

#include "support.h"
#include "toy_parts.h"

/* ---- Architectures ---- */

static void make_llama(toy *t) {
  toy_begin(t, 2, 16);
  toy_matrix(t, "output.weight", TOY_VOCABULARY, TOY_WIDTH);
  for (int64_t layer = 0; layer < t->layers; layer++) {
    toy_enter(t, layer);
    toy_attention(t);
    toy_feed(t);
  }
}

/* With a vocabulary, and a template for chats. */
static void make_llama_text(toy *t) {
  t->has_tokens = true;
  make_llama(t);
  toy_key_text(t, "general.name", "a toy that talks");
  toy_key_text(t, "tokenizer.chat_template",
               "{% for message in messages %}[{{ message.role }}:{{ message.content }}]{% endfor %}"
               "{% if add_generation_prompt %}[assistant:{% endif %}");
}

/* With 1.6 MB of blocks that follow each other in each layer, of which one can be mapped (plan/file_runs.h). */
static void make_llama_blocks(toy *t) {
  t->hidden = 8192;
  make_llama_text(t);
  for (uint64_t i = 0; i < t->n_tensors; i++) {
    toy_tensor *x = &t->tensors[i];
    if (x->rank != 2 || strstr(x->name, ".ffn_") == NULL) continue;
    x->type = BERTH_Q8_0;
    x->ggml_type = 8;
    x->scale = 0.02f;
  }
}

/* Frequencies by factors, and tied embeddings: Llama 3.2. */
static void make_llama_freqs(toy *t) {
  toy_begin(t, 2, 16);
  toy_key_real(t, ".rope.freq_base", 500000);
  toy_vector(t, "rope_freqs.weight", 8, 4);
  for (int64_t layer = 0; layer < t->layers; layer++) {
    toy_enter(t, layer);
    toy_attention(t);
    toy_feed(t);
  }
}

static void make_llama_linear(toy *t) {
  make_llama(t);
  toy_key_text(t, ".rope.scaling.type", "linear");
  toy_key_real(t, ".rope.scaling.factor", 4);
}

static void make_llama_yarn(toy *t) {
  make_llama(t);
  toy_key_text(t, ".rope.scaling.type", "yarn");
  toy_key_real(t, ".rope.scaling.factor", 4);
  toy_key_whole(t, ".rope.scaling.original_context_length", 128);
}

static void make_qwen2(toy *t) {
  toy_begin(t, 2, 16);
  toy_key_real(t, ".rope.freq_base", 1e6f);
  for (int64_t layer = 0; layer < t->layers; layer++) {
    toy_enter(t, layer);
    toy_attention(t);
    toy_vector(t, "attn_q.bias", TOY_HEADS * t->head_size, 0);
    toy_vector(t, "attn_k.bias", TOY_KV_HEADS * t->head_size, 0);
    toy_vector(t, "attn_v.bias", TOY_KV_HEADS * t->head_size, 0);
    toy_feed(t);
  }
}

/* Heads that are larger than their share of the width. */
static void make_qwen3(toy *t) {
  toy_begin(t, 2, 32);
  toy_key_real(t, ".rope.freq_base", 1e6f);
  for (int64_t layer = 0; layer < t->layers; layer++) {
    toy_enter(t, layer);
    toy_attention(t);
    toy_norm(t, "attn_q_norm.weight", t->head_size);
    toy_norm(t, "attn_k_norm.weight", t->head_size);
    toy_feed(t);
  }
}

static void make_gemma_layer(toy *t) {
  toy_attention(t);
  toy_norm(t, "post_attention_norm.weight", TOY_WIDTH);
  toy_feed(t);
  toy_norm(t, "post_ffw_norm.weight", TOY_WIDTH);
}

static void make_gemma2(toy *t) {
  toy_begin(t, 2, 32);
  toy_key_whole(t, ".attention.sliding_window", 6);
  toy_key_real(t, ".attn_logit_softcapping", 1.5f); /* low enough to matter */
  toy_key_real(t, ".final_logit_softcapping", 3);
  for (int64_t layer = 0; layer < t->layers; layer++) {
    toy_enter(t, layer);
    make_gemma_layer(t);
  }
}

/* Six layers go together, of which five see a window. */
static void make_gemma3(toy *t) {
  toy_begin(t, 7, 32);
  toy_key_real(t, ".rope.freq_base", 1e6f);
  toy_key_text(t, ".rope.scaling.type", "linear");
  toy_key_real(t, ".rope.scaling.factor", 8);
  toy_key_whole(t, ".attention.sliding_window", 6);
  for (int64_t layer = 0; layer < t->layers; layer++) {
    toy_enter(t, layer);
    make_gemma_layer(t);
    toy_norm(t, "attn_q_norm.weight", t->head_size);
    toy_norm(t, "attn_k_norm.weight", t->head_size);
  }
}

static void make_gemma3_text(toy *t) {
  t->has_tokens = true;
  make_gemma3(t);
}

static void make_phi3_layers(toy *t) {
  toy_matrix(t, "output.weight", TOY_VOCABULARY, TOY_WIDTH);
  for (int64_t layer = 0; layer < t->layers; layer++) {
    toy_enter(t, layer);
    toy_norm(t, "attn_norm.weight", TOY_WIDTH);
    toy_matrix(t, "attn_qkv.weight", (TOY_HEADS + 2 * TOY_KV_HEADS) * t->head_size, TOY_WIDTH);
    toy_matrix(t, "attn_output.weight", TOY_WIDTH, TOY_HEADS * t->head_size);
    toy_norm(t, "ffn_norm.weight", TOY_WIDTH);
    toy_matrix(t, "ffn_up.weight", 2 * TOY_HIDDEN, TOY_WIDTH);
    toy_matrix(t, "ffn_down.weight", TOY_WIDTH, TOY_HIDDEN);
  }
}

static void make_phi3(toy *t) {
  toy_begin(t, 2, 16);
  make_phi3_layers(t);
}

/* The weights of "phi3". */
static void make_phi3_window(toy *t) {
  toy_begin(t, 2, 16);
  toy_key_whole(t, ".attention.sliding_window", 6);
  make_phi3_layers(t);
}

/* One that is as long as the context is none. */
static void make_phi3_wide(toy *t) {
  toy_begin(t, 2, 16);
  toy_key_whole(t, ".attention.sliding_window", 1 << 18);
  make_phi3_layers(t);
}

/* Factors for a context that is longer (long), or not longer (short), than the model was made with. */
static void make_phi3_factors(toy *t, uint32_t context) {
  toy_begin(t, 2, 16);
  toy_key_text(t, ".rope.scaling.type", "longrope");
  toy_key_whole(t, ".rope.scaling.original_context_length", context);
  toy_key_real(t, ".rope.scaling.attn_factor", 1.25f);
  toy_vector(t, "rope_factors_long.weight", t->head_size / 2, 3);
  toy_vector(t, "rope_factors_short.weight", t->head_size / 2, 1);
  make_phi3_layers(t);
}

static void make_phi3_long(toy *t) { make_phi3_factors(t, 16); }

static void make_phi3_short(toy *t) { make_phi3_factors(t, 512); }

/* ---- Experts ---- */

/* Mixtral. */
static void make_llama_experts(toy *t) {
  toy_begin(t, 2, 16);
  toy_key_experts(t);
  toy_matrix(t, "output.weight", TOY_VOCABULARY, TOY_WIDTH);
  for (int64_t layer = 0; layer < t->layers; layer++) {
    toy_enter(t, layer);
    toy_attention(t);
    toy_norm(t, "ffn_norm.weight", TOY_WIDTH);
    toy_experts(t, BERTH_F32, 0);
  }
}

static void bias(toy *t, const char *name, int64_t columns) { toy_add(t, name, 2, TOY_EXPERTS, columns, 0); }

static void make_gpt_oss_layer(toy *t, berth_type type, uint32_t ggml_type) {
  toy_attention(t);
  toy_vector(t, "attn_q.bias", TOY_HEADS * t->head_size, 0);
  toy_vector(t, "attn_k.bias", TOY_KV_HEADS * t->head_size, 0);
  toy_vector(t, "attn_v.bias", TOY_KV_HEADS * t->head_size, 0);
  toy_vector(t, "attn_output.bias", TOY_WIDTH, 0);
  toy_vector(t, "attn_sinks.weight", TOY_HEADS, 1);
  toy_norm(t, "post_attention_norm.weight", TOY_WIDTH);
  toy_experts(t, type, ggml_type);
  toy_vector(t, "ffn_gate_inp.bias", TOY_EXPERTS, 0);
  bias(t, "ffn_gate_exps.bias", TOY_HIDDEN);
  bias(t, "ffn_up_exps.bias", TOY_HIDDEN);
  bias(t, "ffn_down_exps.bias", TOY_WIDTH);
}

static void make_gpt_oss_of(toy *t, berth_type type, uint32_t ggml_type) {
  toy_begin(t, 3, 16);
  toy_key_experts(t);
  toy_key_whole(t, ".expert_feed_forward_length", TOY_HIDDEN);
  toy_key_whole(t, ".attention.sliding_window", 6);
  toy_key_real(t, ".rope.freq_base", 150000);
  toy_key_text(t, ".rope.scaling.type", "yarn");
  toy_key_real(t, ".rope.scaling.factor", 32);
  toy_key_whole(t, ".rope.scaling.original_context_length", 64);
  toy_matrix(t, "output.weight", TOY_VOCABULARY, TOY_WIDTH);
  for (int64_t layer = 0; layer < t->layers; layer++) {
    toy_enter(t, layer);
    make_gpt_oss_layer(t, type, ggml_type);
  }
}

static void make_gpt_oss(toy *t) { make_gpt_oss_of(t, BERTH_F32, 0); }

static void make_gpt_oss_mxfp4(toy *t) { make_gpt_oss_of(t, BERTH_MXFP4, 39); }

/* ---- Vectors of texts ---- */

static void begin_bert(toy *t) {
  t->layers = 2;
  t->head_size = TOY_WIDTH / TOY_HEADS;
  toy_key_text(t, "general.architecture", t->arch);
  if (t->has_tokens)
    toy_key_tokens(t);
  else
    toy_key_text(t, "tokenizer.ggml.model", "none");
  toy_key_whole(t, "tokenizer.ggml.token_type_count", 2);
  toy_key_whole(t, ".vocab_size", TOY_VOCABULARY);
  toy_key_whole(t, ".context_length", 64);
  toy_key_whole(t, ".block_count", 2);
  toy_key_whole(t, ".embedding_length", TOY_WIDTH);
  toy_key_whole(t, ".feed_forward_length", TOY_HIDDEN);
  toy_key_whole(t, ".attention.head_count", TOY_HEADS);
  toy_key_real(t, ".attention.layer_norm_epsilon", 1e-6f);
  toy_matrix(t, "token_embd.weight", TOY_VOCABULARY, TOY_WIDTH);
  toy_matrix(t, "token_types.weight", 2, TOY_WIDTH);
  toy_both(t, "token_embd_norm");
}

static void make_bert_pooled(toy *t, uint32_t pooling) {
  begin_bert(t);
  toy_key_whole(t, ".pooling_type", pooling);
  toy_matrix(t, "position_embd.weight", 64, TOY_WIDTH);
  for (int64_t layer = 0; layer < t->layers; layer++) {
    toy_enter(t, layer);
    toy_matrix(t, "attn_q.weight", TOY_WIDTH, TOY_WIDTH), toy_vector(t, "attn_q.bias", TOY_WIDTH, 0);
    toy_matrix(t, "attn_k.weight", TOY_WIDTH, TOY_WIDTH), toy_vector(t, "attn_k.bias", TOY_WIDTH, 0);
    toy_matrix(t, "attn_v.weight", TOY_WIDTH, TOY_WIDTH), toy_vector(t, "attn_v.bias", TOY_WIDTH, 0);
    toy_matrix(t, "attn_output.weight", TOY_WIDTH, TOY_WIDTH), toy_vector(t, "attn_output.bias", TOY_WIDTH, 0);
    toy_both(t, "attn_output_norm");
    toy_matrix(t, "ffn_up.weight", TOY_HIDDEN, TOY_WIDTH), toy_vector(t, "ffn_up.bias", TOY_HIDDEN, 0);
    toy_matrix(t, "ffn_down.weight", TOY_WIDTH, TOY_HIDDEN), toy_vector(t, "ffn_down.bias", TOY_WIDTH, 0);
    toy_both(t, "layer_output_norm");
  }
}

static void make_bert(toy *t) { make_bert_pooled(t, 1); }

static void make_bert_first(toy *t) { make_bert_pooled(t, 2); }

static void make_nomic_bert(toy *t) {
  begin_bert(t);
  toy_key_whole(t, ".pooling_type", 1);
  toy_key_real(t, ".rope.freq_base", 1000);
  for (int64_t layer = 0; layer < t->layers; layer++) {
    toy_enter(t, layer);
    toy_matrix(t, "attn_qkv.weight", 3 * TOY_WIDTH, TOY_WIDTH);
    toy_matrix(t, "attn_output.weight", TOY_WIDTH, TOY_WIDTH);
    toy_both(t, "attn_output_norm");
    toy_matrix(t, "ffn_gate.weight", TOY_HIDDEN, TOY_WIDTH);
    toy_matrix(t, "ffn_up.weight", TOY_HIDDEN, TOY_WIDTH);
    toy_matrix(t, "ffn_down.weight", TOY_WIDTH, TOY_HIDDEN);
    toy_both(t, "layer_output_norm");
  }
}

static void make_nomic_bert_text(toy *t) {
  t->has_tokens = true;
  make_nomic_bert(t);
}

/* Fewer rows than its tokenizer has tokens. */
static void make_nomic_bert_few(toy *t) {
  make_nomic_bert_text(t);
  assert_string_equal(t->tensors[0].name, "token_embd.weight");
  t->tensors[0].dim[0] = TOY_VOCABULARY - 1;
}

static const toy_model toys[] = {
    {"llama", make_llama},
    {"llama/text", make_llama_text},
    {"llama/blocks", make_llama_blocks},
    {"llama/freqs", make_llama_freqs},
    {"llama/linear", make_llama_linear},
    {"llama/yarn", make_llama_yarn},
    {"qwen2", make_qwen2},
    {"qwen3", make_qwen3},
    {"gemma2", make_gemma2},
    {"gemma3", make_gemma3},
    {"gemma3/text", make_gemma3_text},
    {"phi3", make_phi3},
    {"phi3/window", make_phi3_window},
    {"phi3/wide", make_phi3_wide},
    {"phi3/long", make_phi3_long},
    {"phi3/short", make_phi3_short},
    {"llama/experts", make_llama_experts},
    {"gpt-oss", make_gpt_oss},
    {"gpt-oss/mxfp4", make_gpt_oss_mxfp4},
    {"bert", make_bert},
    {"bert/first", make_bert_first},
    {"nomic-bert", make_nomic_bert},
    {"nomic-bert/text", make_nomic_bert_text},
    {"nomic-bert/few", make_nomic_bert_few},
};

static const toy_model *toy_at(size_t index) {
  const size_t n = sizeof toys / sizeof toys[0];
  return index < n ? &toys[index] : toy_more(index - n);
}

const char *toy_name(uint32_t index) {
  const toy_model *model = toy_at(index);
  return model != NULL ? model->name : NULL;
}

void toy_write(const char *path, const char *name) {
  static toy t;
  char arch[32];
  size_t i = 0;
  while (toy_at(i) != NULL && strcmp(toy_at(i)->name, name) != 0) i++;
  if (toy_at(i) == NULL) fail_msg("there is no toy '%s'", name);
  snprintf(arch, sizeof arch, "%.*s", (int)strcspn(name, "/"), name);
  memset(&t, 0, sizeof t);
  t.arch = arch;
  t.hidden = TOY_HIDDEN;
  t.kv_heads = TOY_KV_HEADS;
  toy_at(i)->make(&t);
  toy_save(&t, path);
}
