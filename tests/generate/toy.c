#include "toy.h"

#include <stdio.h>
#include <stdlib.h>

#include "support.h"

#define MOST_TENSORS 256
#define MOST_KEYS 16384
#define ALIGNMENT 32

typedef struct tensor {
  char name[64];
  uint32_t rank;
  int64_t dim[3]; /* the slowest first */
  berth_type type;
  uint32_t ggml_type;
  float scale, middle; /* elements lie within middle - scale and middle + scale */
} tensor;

typedef struct toy {
  const char *arch;
  int64_t layers, head_size, hidden;
  bool has_tokens;
  uint8_t keys[MOST_KEYS];
  size_t keys_size;
  uint64_t n_keys, n_tensors;
  tensor tensors[MOST_TENSORS];
  char prefix[16];
} toy;

/* ---- Keys ---- */

static void put(toy *t, const void *data, size_t size) {
  assert_true(t->keys_size + size <= sizeof t->keys);
  memcpy(t->keys + t->keys_size, data, size);
  t->keys_size += size;
}

static void put_text(toy *t, const char *text) {
  const uint64_t size = strlen(text);
  put(t, &size, sizeof size);
  put(t, text, (size_t)size);
}

/* A name that begins with a dot is below the architecture. */
static void put_name(toy *t, const char *name, uint32_t kind) {
  char text[128];
  snprintf(text, sizeof text, "%s%s", name[0] == '.' ? t->arch : "", name);
  put_text(t, text);
  put(t, &kind, sizeof kind);
  t->n_keys++;
}

static void key_text(toy *t, const char *name, const char *text) {
  put_name(t, name, 8);
  put_text(t, text);
}

static void key_whole(toy *t, const char *name, uint32_t value) {
  put_name(t, name, 4);
  put(t, &value, sizeof value);
}

static void key_real(toy *t, const char *name, float value) {
  put_name(t, name, 6);
  put(t, &value, sizeof value);
}

static void begin_array(toy *t, const char *name, uint32_t kind) {
  const uint64_t count = TOY_VOCABULARY;
  put_name(t, name, 9);
  put(t, &kind, sizeof kind);
  put(t, &count, sizeof count);
}

/* Three special tokens, then letters and what they are merged to, the best first. */
static void key_tokens(toy *t) {
  static const char *const merged[] = {"th",
                                       "he",
                                       "in",
                                       "er",
                                       "an",
                                       "re",
                                       "on",
                                       "\xe2\x96\x81t",
                                       "\xe2\x96\x81"
                                       "a",
                                       "the",
                                       "ing",
                                       "and",
                                       "\xe2\x96\x81the",
                                       "\xe2\x96\x81"
                                       "and"};
  const size_t n_merged = sizeof merged / sizeof merged[0];
  key_text(t, "tokenizer.ggml.model", "llama");
  key_whole(t, "tokenizer.ggml.bos_token_id", 1);
  key_whole(t, "tokenizer.ggml.eos_token_id", 2);
  begin_array(t, "tokenizer.ggml.tokens", 8);
  for (uint32_t i = 0; i < TOY_VOCABULARY; i++) {
    static const char *const special[] = {"<unk>", "<s>", "</s>", "\xe2\x96\x81"};
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz.,!?:;'()[]0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    const size_t left = TOY_VOCABULARY - i;
    const bool is_letter = i >= 4 && left > n_merged;
    const char letter[2] = {is_letter ? letters[i - 4] : '\0', '\0'};
    put_text(t, i < 4 ? special[i] : left <= n_merged ? merged[n_merged - left] : letter);
  }
  begin_array(t, "tokenizer.ggml.scores", 6);
  for (uint32_t i = 0; i < TOY_VOCABULARY; i++) {
    const float score = TOY_VOCABULARY - i <= n_merged ? 0.0f + (float)i : -100.0f;
    put(t, &score, sizeof score);
  }
  begin_array(t, "tokenizer.ggml.token_type", 5);
  for (uint32_t i = 0; i < TOY_VOCABULARY; i++) {
    const int32_t type = i == 0 ? 2 : i < 3 ? 3 : 1;
    put(t, &type, sizeof type);
  }
}

/* ---- Tensors ---- */

static tensor *add(toy *t, const char *name, uint32_t rank, int64_t a, int64_t b, int64_t c) {
  assert_true(t->n_tensors < MOST_TENSORS);
  tensor *out = &t->tensors[t->n_tensors++];
  *out = (tensor){.rank = rank, .dim = {a, b, c}, .type = BERTH_F32, .scale = 0.25f};
  snprintf(out->name, sizeof out->name, "%s%s", t->prefix, name);
  return out;
}

static void matrix(toy *t, const char *name, int64_t columns, int64_t inner) { add(t, name, 2, columns, inner, 0); }

static void vector(toy *t, const char *name, int64_t extent, float middle) {
  add(t, name, 1, extent, 0, 0)->middle = middle;
}

static void norm(toy *t, const char *name, int64_t extent) { vector(t, name, extent, 1); }

static void enter(toy *t, int64_t layer) { snprintf(t->prefix, sizeof t->prefix, "blk.%d.", (int)layer); }

/* ---- What most have ---- */

static void begin(toy *t, int64_t layers, int64_t head_size) {
  t->layers = layers;
  t->head_size = head_size;
  key_text(t, "general.architecture", t->arch);
  if (t->has_tokens)
    key_tokens(t);
  else
    key_text(t, "tokenizer.ggml.model", "none");
  key_whole(t, ".vocab_size", TOY_VOCABULARY);
  key_whole(t, ".context_length", 512);
  key_whole(t, ".block_count", (uint32_t)layers);
  key_whole(t, ".embedding_length", TOY_WIDTH);
  key_whole(t, ".feed_forward_length", (uint32_t)t->hidden);
  key_whole(t, ".attention.head_count", TOY_HEADS);
  key_whole(t, ".attention.head_count_kv", TOY_KV_HEADS);
  key_whole(t, ".attention.key_length", (uint32_t)head_size);
  key_whole(t, ".attention.value_length", (uint32_t)head_size);
  key_whole(t, ".rope.dimension_count", (uint32_t)head_size);
  key_real(t, ".attention.layer_norm_rms_epsilon", 1e-5f);
  matrix(t, "token_embd.weight", TOY_VOCABULARY, TOY_WIDTH);
  norm(t, "output_norm.weight", TOY_WIDTH);
}

static void attention(toy *t) {
  norm(t, "attn_norm.weight", TOY_WIDTH);
  matrix(t, "attn_q.weight", TOY_HEADS * t->head_size, TOY_WIDTH);
  matrix(t, "attn_k.weight", TOY_KV_HEADS * t->head_size, TOY_WIDTH);
  matrix(t, "attn_v.weight", TOY_KV_HEADS * t->head_size, TOY_WIDTH);
  matrix(t, "attn_output.weight", TOY_WIDTH, TOY_HEADS * t->head_size);
}

static void feed(toy *t) {
  norm(t, "ffn_norm.weight", TOY_WIDTH);
  matrix(t, "ffn_gate.weight", t->hidden, TOY_WIDTH);
  matrix(t, "ffn_up.weight", t->hidden, TOY_WIDTH);
  matrix(t, "ffn_down.weight", TOY_WIDTH, t->hidden);
}

/* ---- Architectures ---- */

static void make_llama(toy *t) {
  begin(t, 2, 16);
  matrix(t, "output.weight", TOY_VOCABULARY, TOY_WIDTH);
  for (int64_t layer = 0; layer < t->layers; layer++) {
    enter(t, layer);
    attention(t);
    feed(t);
  }
}

/* With a vocabulary, and a template for chats. */
static void make_llama_text(toy *t) {
  t->has_tokens = true;
  make_llama(t);
  key_text(t, "general.name", "a toy that talks");
  key_text(t, "tokenizer.chat_template",
           "{% for message in messages %}[{{ message.role }}:{{ message.content }}]{% endfor %}"
           "{% if add_generation_prompt %}[assistant:{% endif %}");
}

/* With 1.6 MB of blocks that follow each other in each layer, of which one can be mapped (plan/file_runs.h). */
static void make_llama_blocks(toy *t) {
  t->hidden = 8192;
  make_llama_text(t);
  for (uint64_t i = 0; i < t->n_tensors; i++) {
    tensor *x = &t->tensors[i];
    if (x->rank != 2 || strstr(x->name, ".ffn_") == NULL) continue;
    x->type = BERTH_Q8_0;
    x->ggml_type = 8;
    x->scale = 0.02f;
  }
}

/* Frequencies by factors, and tied embeddings: Llama 3.2. */
static void make_llama_freqs(toy *t) {
  begin(t, 2, 16);
  key_real(t, ".rope.freq_base", 500000);
  vector(t, "rope_freqs.weight", 8, 4);
  for (int64_t layer = 0; layer < t->layers; layer++) {
    enter(t, layer);
    attention(t);
    feed(t);
  }
}

static void make_llama_linear(toy *t) {
  make_llama(t);
  key_text(t, ".rope.scaling.type", "linear");
  key_real(t, ".rope.scaling.factor", 4);
}

static void make_llama_yarn(toy *t) {
  make_llama(t);
  key_text(t, ".rope.scaling.type", "yarn");
  key_real(t, ".rope.scaling.factor", 4);
  key_whole(t, ".rope.scaling.original_context_length", 128);
}

static void make_qwen2(toy *t) {
  begin(t, 2, 16);
  key_real(t, ".rope.freq_base", 1e6f);
  for (int64_t layer = 0; layer < t->layers; layer++) {
    enter(t, layer);
    attention(t);
    vector(t, "attn_q.bias", TOY_HEADS * t->head_size, 0);
    vector(t, "attn_k.bias", TOY_KV_HEADS * t->head_size, 0);
    vector(t, "attn_v.bias", TOY_KV_HEADS * t->head_size, 0);
    feed(t);
  }
}

/* Heads that are larger than their share of the width. */
static void make_qwen3(toy *t) {
  begin(t, 2, 32);
  key_real(t, ".rope.freq_base", 1e6f);
  for (int64_t layer = 0; layer < t->layers; layer++) {
    enter(t, layer);
    attention(t);
    norm(t, "attn_q_norm.weight", t->head_size);
    norm(t, "attn_k_norm.weight", t->head_size);
    feed(t);
  }
}

static void make_gemma_layer(toy *t) {
  attention(t);
  norm(t, "post_attention_norm.weight", TOY_WIDTH);
  feed(t);
  norm(t, "post_ffw_norm.weight", TOY_WIDTH);
}

static void make_gemma2(toy *t) {
  begin(t, 2, 32);
  key_whole(t, ".attention.sliding_window", 6);
  key_real(t, ".attn_logit_softcapping", 1.5f); /* low enough to matter */
  key_real(t, ".final_logit_softcapping", 3);
  for (int64_t layer = 0; layer < t->layers; layer++) {
    enter(t, layer);
    make_gemma_layer(t);
  }
}

/* Six layers go together, of which five see a window. */
static void make_gemma3(toy *t) {
  begin(t, 7, 32);
  key_real(t, ".rope.freq_base", 1e6f);
  key_text(t, ".rope.scaling.type", "linear");
  key_real(t, ".rope.scaling.factor", 8);
  key_whole(t, ".attention.sliding_window", 6);
  for (int64_t layer = 0; layer < t->layers; layer++) {
    enter(t, layer);
    make_gemma_layer(t);
    norm(t, "attn_q_norm.weight", t->head_size);
    norm(t, "attn_k_norm.weight", t->head_size);
  }
}

static void make_gemma3_text(toy *t) {
  t->has_tokens = true;
  make_gemma3(t);
}

static void make_phi3_layers(toy *t) {
  matrix(t, "output.weight", TOY_VOCABULARY, TOY_WIDTH);
  for (int64_t layer = 0; layer < t->layers; layer++) {
    enter(t, layer);
    norm(t, "attn_norm.weight", TOY_WIDTH);
    matrix(t, "attn_qkv.weight", (TOY_HEADS + 2 * TOY_KV_HEADS) * t->head_size, TOY_WIDTH);
    matrix(t, "attn_output.weight", TOY_WIDTH, TOY_HEADS * t->head_size);
    norm(t, "ffn_norm.weight", TOY_WIDTH);
    matrix(t, "ffn_up.weight", 2 * TOY_HIDDEN, TOY_WIDTH);
    matrix(t, "ffn_down.weight", TOY_WIDTH, TOY_HIDDEN);
  }
}

static void make_phi3(toy *t) {
  begin(t, 2, 16);
  make_phi3_layers(t);
}

/* The weights of "phi3". */
static void make_phi3_window(toy *t) {
  begin(t, 2, 16);
  key_whole(t, ".attention.sliding_window", 6);
  make_phi3_layers(t);
}

/* One that is as long as the context is none. */
static void make_phi3_wide(toy *t) {
  begin(t, 2, 16);
  key_whole(t, ".attention.sliding_window", 1 << 18);
  make_phi3_layers(t);
}

/* Factors for a context that is longer (long), or not longer (short), than the model was made with. */
static void make_phi3_factors(toy *t, uint32_t context) {
  begin(t, 2, 16);
  key_text(t, ".rope.scaling.type", "longrope");
  key_whole(t, ".rope.scaling.original_context_length", context);
  key_real(t, ".rope.scaling.attn_factor", 1.25f);
  vector(t, "rope_factors_long.weight", t->head_size / 2, 3);
  vector(t, "rope_factors_short.weight", t->head_size / 2, 1);
  make_phi3_layers(t);
}

static void make_phi3_long(toy *t) { make_phi3_factors(t, 16); }

static void make_phi3_short(toy *t) { make_phi3_factors(t, 512); }

/* ---- Experts ---- */

#define TOY_EXPERTS 4

static void experts_of(toy *t, const char *name, int64_t columns, int64_t inner, berth_type type, uint32_t ggml_type) {
  tensor *x = add(t, name, 3, TOY_EXPERTS, columns, inner);
  x->type = type;
  x->ggml_type = ggml_type;
}

static void make_experts(toy *t, berth_type type, uint32_t ggml_type) {
  matrix(t, "ffn_gate_inp.weight", TOY_EXPERTS, TOY_WIDTH);
  experts_of(t, "ffn_gate_exps.weight", TOY_HIDDEN, TOY_WIDTH, type, ggml_type);
  experts_of(t, "ffn_up_exps.weight", TOY_HIDDEN, TOY_WIDTH, type, ggml_type);
  experts_of(t, "ffn_down_exps.weight", TOY_WIDTH, TOY_HIDDEN, type, ggml_type);
}

static void key_experts(toy *t) {
  key_whole(t, ".expert_count", TOY_EXPERTS);
  key_whole(t, ".expert_used_count", 2);
}

/* Mixtral. */
static void make_llama_experts(toy *t) {
  begin(t, 2, 16);
  key_experts(t);
  matrix(t, "output.weight", TOY_VOCABULARY, TOY_WIDTH);
  for (int64_t layer = 0; layer < t->layers; layer++) {
    enter(t, layer);
    attention(t);
    norm(t, "ffn_norm.weight", TOY_WIDTH);
    make_experts(t, BERTH_F32, 0);
  }
}

static void bias(toy *t, const char *name, int64_t columns) { add(t, name, 2, TOY_EXPERTS, columns, 0); }

static void make_gpt_oss_layer(toy *t, berth_type type, uint32_t ggml_type) {
  attention(t);
  vector(t, "attn_q.bias", TOY_HEADS * t->head_size, 0);
  vector(t, "attn_k.bias", TOY_KV_HEADS * t->head_size, 0);
  vector(t, "attn_v.bias", TOY_KV_HEADS * t->head_size, 0);
  vector(t, "attn_output.bias", TOY_WIDTH, 0);
  vector(t, "attn_sinks.weight", TOY_HEADS, 1);
  norm(t, "post_attention_norm.weight", TOY_WIDTH);
  make_experts(t, type, ggml_type);
  vector(t, "ffn_gate_inp.bias", TOY_EXPERTS, 0);
  bias(t, "ffn_gate_exps.bias", TOY_HIDDEN);
  bias(t, "ffn_up_exps.bias", TOY_HIDDEN);
  bias(t, "ffn_down_exps.bias", TOY_WIDTH);
}

static void make_gpt_oss_of(toy *t, berth_type type, uint32_t ggml_type) {
  begin(t, 3, 16);
  key_experts(t);
  key_whole(t, ".expert_feed_forward_length", TOY_HIDDEN);
  key_whole(t, ".attention.sliding_window", 6);
  key_real(t, ".rope.freq_base", 150000);
  key_text(t, ".rope.scaling.type", "yarn");
  key_real(t, ".rope.scaling.factor", 32);
  key_whole(t, ".rope.scaling.original_context_length", 64);
  matrix(t, "output.weight", TOY_VOCABULARY, TOY_WIDTH);
  for (int64_t layer = 0; layer < t->layers; layer++) {
    enter(t, layer);
    make_gpt_oss_layer(t, type, ggml_type);
  }
}

static void make_gpt_oss(toy *t) { make_gpt_oss_of(t, BERTH_F32, 0); }

static void make_gpt_oss_mxfp4(toy *t) { make_gpt_oss_of(t, BERTH_MXFP4, 39); }

/* ---- Vectors of texts ---- */

static void both(toy *t, const char *name) {
  char text[64];
  snprintf(text, sizeof text, "%s.weight", name);
  norm(t, text, TOY_WIDTH);
  snprintf(text, sizeof text, "%s.bias", name);
  vector(t, text, TOY_WIDTH, 0);
}

static void begin_bert(toy *t) {
  t->layers = 2;
  t->head_size = TOY_WIDTH / TOY_HEADS;
  key_text(t, "general.architecture", t->arch);
  if (t->has_tokens)
    key_tokens(t);
  else
    key_text(t, "tokenizer.ggml.model", "none");
  key_whole(t, "tokenizer.ggml.token_type_count", 2);
  key_whole(t, ".vocab_size", TOY_VOCABULARY);
  key_whole(t, ".context_length", 64);
  key_whole(t, ".block_count", 2);
  key_whole(t, ".embedding_length", TOY_WIDTH);
  key_whole(t, ".feed_forward_length", TOY_HIDDEN);
  key_whole(t, ".attention.head_count", TOY_HEADS);
  key_real(t, ".attention.layer_norm_epsilon", 1e-6f);
  matrix(t, "token_embd.weight", TOY_VOCABULARY, TOY_WIDTH);
  matrix(t, "token_types.weight", 2, TOY_WIDTH);
  both(t, "token_embd_norm");
}

static void make_bert_pooled(toy *t, uint32_t pooling) {
  begin_bert(t);
  key_whole(t, ".pooling_type", pooling);
  matrix(t, "position_embd.weight", 64, TOY_WIDTH);
  for (int64_t layer = 0; layer < t->layers; layer++) {
    enter(t, layer);
    matrix(t, "attn_q.weight", TOY_WIDTH, TOY_WIDTH), vector(t, "attn_q.bias", TOY_WIDTH, 0);
    matrix(t, "attn_k.weight", TOY_WIDTH, TOY_WIDTH), vector(t, "attn_k.bias", TOY_WIDTH, 0);
    matrix(t, "attn_v.weight", TOY_WIDTH, TOY_WIDTH), vector(t, "attn_v.bias", TOY_WIDTH, 0);
    matrix(t, "attn_output.weight", TOY_WIDTH, TOY_WIDTH), vector(t, "attn_output.bias", TOY_WIDTH, 0);
    both(t, "attn_output_norm");
    matrix(t, "ffn_up.weight", TOY_HIDDEN, TOY_WIDTH), vector(t, "ffn_up.bias", TOY_HIDDEN, 0);
    matrix(t, "ffn_down.weight", TOY_WIDTH, TOY_HIDDEN), vector(t, "ffn_down.bias", TOY_WIDTH, 0);
    both(t, "layer_output_norm");
  }
}

static void make_bert(toy *t) { make_bert_pooled(t, 1); }

static void make_bert_first(toy *t) { make_bert_pooled(t, 2); }

static void make_nomic_bert(toy *t) {
  begin_bert(t);
  key_whole(t, ".pooling_type", 1);
  key_real(t, ".rope.freq_base", 1000);
  for (int64_t layer = 0; layer < t->layers; layer++) {
    enter(t, layer);
    matrix(t, "attn_qkv.weight", 3 * TOY_WIDTH, TOY_WIDTH);
    matrix(t, "attn_output.weight", TOY_WIDTH, TOY_WIDTH);
    both(t, "attn_output_norm");
    matrix(t, "ffn_gate.weight", TOY_HIDDEN, TOY_WIDTH);
    matrix(t, "ffn_up.weight", TOY_HIDDEN, TOY_WIDTH);
    matrix(t, "ffn_down.weight", TOY_WIDTH, TOY_HIDDEN);
    both(t, "layer_output_norm");
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

static const struct {
  const char *name;
  void (*make)(toy *t);
} toys[] = {
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

const char *toy_name(uint32_t index) { return index < sizeof toys / sizeof toys[0] ? toys[index].name : NULL; }

/* ---- Writing ---- */

static uint64_t hash_of(const char *name) {
  uint64_t hash = 1469598103934665603u;
  for (; *name != '\0'; name++) hash = (hash ^ (uint8_t)*name) * 1099511628211u;
  return hash;
}

static int64_t count_of(const tensor *x) {
  int64_t count = 1;
  for (uint32_t i = 0; i < x->rank; i++) count *= x->dim[i];
  return count;
}

static uint64_t bytes_of(const tensor *x) {
  return berth_storage_bytes(berth_type_storage(x->type), (uint64_t)count_of(x));
}

static uint64_t padded(uint64_t size) { return (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT; }

static void write_bytes(FILE *file, const void *data, size_t size) {
  if (size != 0) assert_int_equal(fwrite(data, 1, size, file), size);
}

static void write_zeros(FILE *file, uint64_t from, uint64_t to) {
  for (; from < to; from++) write_bytes(file, "", 1);
}

static void write_entry(FILE *file, const tensor *x, uint64_t offset) {
  const uint64_t length = strlen(x->name);
  write_bytes(file, &length, sizeof length);
  write_bytes(file, x->name, (size_t)length);
  write_bytes(file, &x->rank, sizeof x->rank);
  for (uint32_t i = x->rank; i-- > 0;) write_bytes(file, &x->dim[i], sizeof x->dim[i]);
  write_bytes(file, &x->ggml_type, sizeof x->ggml_type);
  write_bytes(file, &offset, sizeof offset);
}

/* Berth does not encode these: any digits, with exponents that make them about as large as other weights. */
static void make_mxfp4(uint64_t *seed, uint8_t *bytes, uint64_t size) {
  for (uint64_t i = 0; i < size; i++) bytes[i] = i % 17 == 0 ? 123 : (uint8_t)test_random(seed);
}

static void write_data(FILE *file, const tensor *x) {
  const int64_t count = count_of(x);
  uint64_t seed = hash_of(x->name);
  berth_error err;
  float *numbers = malloc((size_t)count * sizeof *numbers);
  void *bytes = malloc((size_t)bytes_of(x));
  assert_non_null(numbers);
  assert_non_null(bytes);
  for (int64_t i = 0; i < count; i++) numbers[i] = x->middle + x->scale * test_random_f32(&seed);
  if (x->type == BERTH_MXFP4)
    make_mxfp4(&seed, (uint8_t *)bytes, bytes_of(x));
  else
    TEST_OK(berth_from_f32(x->type, numbers, (uint64_t)count, bytes, &err));
  write_bytes(file, bytes, (size_t)bytes_of(x));
  write_zeros(file, bytes_of(x), padded(bytes_of(x)));
  free(numbers);
  free(bytes);
}

static void toy_save(const toy *t, const char *path) {
  const uint32_t version = 3;
  uint64_t offset = 0;
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  write_bytes(file, "GGUF", 4);
  write_bytes(file, &version, sizeof version);
  write_bytes(file, &t->n_tensors, sizeof t->n_tensors);
  write_bytes(file, &t->n_keys, sizeof t->n_keys);
  write_bytes(file, t->keys, t->keys_size);
  for (uint64_t i = 0; i < t->n_tensors; i++) {
    write_entry(file, &t->tensors[i], offset);
    offset += padded(bytes_of(&t->tensors[i]));
  }
  const long head = ftell(file);
  write_zeros(file, (uint64_t)head, padded((uint64_t)head));
  for (uint64_t i = 0; i < t->n_tensors; i++) write_data(file, &t->tensors[i]);
  assert_int_equal(fclose(file), 0);
}

void toy_write(const char *path, const char *name) {
  static toy t;
  char arch[32];
  for (uint32_t i = 0; toy_name(i) != NULL; i++) {
    if (strcmp(toy_name(i), name) != 0) continue;
    snprintf(arch, sizeof arch, "%.*s", (int)strcspn(name, "/"), name);
    memset(&t, 0, sizeof t);
    t.arch = arch;
    t.hidden = TOY_HIDDEN;
    toys[i].make(&t);
    toy_save(&t, path);
    return;
  }
  fail_msg("there is no toy '%s'", name);
}
