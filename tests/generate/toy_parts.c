#include "toy_parts.h"

#include <stdio.h>
#include <stdlib.h>

#include "support.h"

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

void toy_key_text(toy *t, const char *name, const char *text) {
  put_name(t, name, 8);
  put_text(t, text);
}

void toy_key_whole(toy *t, const char *name, uint32_t value) {
  put_name(t, name, 4);
  put(t, &value, sizeof value);
}

void toy_key_real(toy *t, const char *name, float value) {
  put_name(t, name, 6);
  put(t, &value, sizeof value);
}

void toy_key_bool(toy *t, const char *name, bool value) {
  const uint8_t byte = value;
  put_name(t, name, 7);
  put(t, &byte, sizeof byte);
}

static void begin_list(toy *t, const char *name, uint32_t kind, uint64_t count) {
  put_name(t, name, 9);
  put(t, &kind, sizeof kind);
  put(t, &count, sizeof count);
}

void toy_key_list(toy *t, const char *name, const int32_t *values, size_t n) {
  begin_list(t, name, 5, n);
  put(t, values, n * sizeof *values);
}

static void begin_array(toy *t, const char *name, uint32_t kind) { begin_list(t, name, kind, TOY_VOCABULARY); }

/* Three special tokens, then letters and what they are merged to, the best first. */
void toy_key_tokens(toy *t) {
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
  toy_key_text(t, "tokenizer.ggml.model", "llama");
  toy_key_whole(t, "tokenizer.ggml.bos_token_id", 1);
  toy_key_whole(t, "tokenizer.ggml.eos_token_id", 2);
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

toy_tensor *toy_add(toy *t, const char *name, uint32_t rank, int64_t a, int64_t b, int64_t c) {
  assert_true(t->n_tensors < TOY_MOST_TENSORS);
  toy_tensor *out = &t->tensors[t->n_tensors++];
  *out = (toy_tensor){.rank = rank, .dim = {a, b, c}, .type = BERTH_F32, .scale = 0.25f};
  snprintf(out->name, sizeof out->name, "%s%s", t->prefix, name);
  return out;
}

void toy_matrix(toy *t, const char *name, int64_t columns, int64_t inner) { toy_add(t, name, 2, columns, inner, 0); }

void toy_vector(toy *t, const char *name, int64_t extent, float middle) {
  toy_add(t, name, 1, extent, 0, 0)->middle = middle;
}

void toy_norm(toy *t, const char *name, int64_t extent) { toy_vector(t, name, extent, 1); }

void toy_enter(toy *t, int64_t layer) { snprintf(t->prefix, sizeof t->prefix, "blk.%d.", (int)layer); }

/* ---- What most have ---- */

void toy_begin(toy *t, int64_t layers, int64_t head_size) {
  t->layers = layers;
  t->head_size = head_size;
  toy_key_text(t, "general.architecture", t->arch);
  if (t->has_tokens)
    toy_key_tokens(t);
  else
    toy_key_text(t, "tokenizer.ggml.model", "none");
  toy_key_whole(t, ".vocab_size", TOY_VOCABULARY);
  toy_key_whole(t, ".context_length", 512);
  toy_key_whole(t, ".block_count", (uint32_t)layers);
  toy_key_whole(t, ".embedding_length", TOY_WIDTH);
  toy_key_whole(t, ".feed_forward_length", (uint32_t)t->hidden);
  toy_key_whole(t, ".attention.head_count", TOY_HEADS);
  if (t->heads_of_layers != NULL)
    toy_key_list(t, ".attention.head_count_kv", t->heads_of_layers, (size_t)layers);
  else
    toy_key_whole(t, ".attention.head_count_kv", (uint32_t)t->kv_heads);
  toy_key_whole(t, ".attention.key_length", (uint32_t)head_size);
  toy_key_whole(t, ".attention.value_length", (uint32_t)(t->value_size != 0 ? t->value_size : head_size));
  toy_key_whole(t, ".rope.dimension_count", (uint32_t)(t->rotated != 0 ? t->rotated : head_size));
  toy_key_real(t, ".attention.layer_norm_rms_epsilon", t->epsilon != 0 ? t->epsilon : 1e-5f);
  toy_matrix(t, "token_embd.weight", TOY_VOCABULARY, TOY_WIDTH);
  toy_norm(t, t->last_norm != NULL ? t->last_norm : "output_norm.weight", TOY_WIDTH);
}

void toy_attention(toy *t) {
  toy_norm(t, "attn_norm.weight", TOY_WIDTH);
  toy_matrix(t, "attn_q.weight", TOY_HEADS * t->head_size, TOY_WIDTH);
  toy_matrix(t, "attn_k.weight", t->kv_heads * t->head_size, TOY_WIDTH);
  toy_matrix(t, "attn_v.weight", t->kv_heads * t->head_size, TOY_WIDTH);
  toy_matrix(t, "attn_output.weight", TOY_WIDTH, TOY_HEADS * t->head_size);
}

void toy_feed(toy *t) {
  toy_norm(t, "ffn_norm.weight", TOY_WIDTH);
  toy_matrix(t, "ffn_gate.weight", t->hidden, TOY_WIDTH);
  toy_matrix(t, "ffn_up.weight", t->hidden, TOY_WIDTH);
  toy_matrix(t, "ffn_down.weight", TOY_WIDTH, t->hidden);
}

void toy_both(toy *t, const char *name) {
  char text[64];
  snprintf(text, sizeof text, "%s.weight", name);
  toy_norm(t, text, TOY_WIDTH);
  snprintf(text, sizeof text, "%s.bias", name);
  toy_vector(t, text, TOY_WIDTH, 0);
}

static void experts_of(toy *t, const char *name, int64_t columns, int64_t inner, berth_type type, uint32_t ggml_type) {
  toy_tensor *x = toy_add(t, name, 3, TOY_EXPERTS, columns, inner);
  x->type = type;
  x->ggml_type = ggml_type;
}

void toy_experts(toy *t, berth_type type, uint32_t ggml_type) {
  toy_matrix(t, "ffn_gate_inp.weight", TOY_EXPERTS, TOY_WIDTH);
  experts_of(t, "ffn_gate_exps.weight", TOY_HIDDEN, TOY_WIDTH, type, ggml_type);
  experts_of(t, "ffn_up_exps.weight", TOY_HIDDEN, TOY_WIDTH, type, ggml_type);
  experts_of(t, "ffn_down_exps.weight", TOY_WIDTH, TOY_HIDDEN, type, ggml_type);
}

void toy_key_experts(toy *t) {
  toy_key_whole(t, ".expert_count", TOY_EXPERTS);
  toy_key_whole(t, ".expert_used_count", 2);
}

/* ---- Writing ---- */

#define ALIGNMENT 32

static uint64_t hash_of(const char *name) {
  uint64_t hash = 1469598103934665603u;
  for (; *name != '\0'; name++) hash = (hash ^ (uint8_t)*name) * 1099511628211u;
  return hash;
}

static int64_t count_of(const toy_tensor *x) {
  int64_t count = 1;
  for (uint32_t i = 0; i < x->rank; i++) count *= x->dim[i];
  return count;
}

static uint64_t bytes_of(const toy_tensor *x) {
  return berth_storage_bytes(berth_type_storage(x->type), (uint64_t)count_of(x));
}

static uint64_t padded(uint64_t size) { return (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT; }

static void write_bytes(FILE *file, const void *data, size_t size) {
  if (size != 0) assert_int_equal(fwrite(data, 1, size, file), size);
}

static void write_zeros(FILE *file, uint64_t from, uint64_t to) {
  for (; from < to; from++) write_bytes(file, "", 1);
}

static void write_entry(FILE *file, const toy_tensor *x, uint64_t offset) {
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

static void write_data(FILE *file, const toy_tensor *x) {
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

void toy_save(const toy *t, const char *path) {
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
