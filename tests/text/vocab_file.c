#include "text/vocab_file.h"

#include <stdio.h>
#include <stdlib.h>

#include "text/vocab.h"

static void put(vocab_bytes *b, const void *data, size_t size) {
  if (b->size + size > b->capacity) {
    b->capacity = 2 * (b->size + size);
    b->data = realloc(b->data, b->capacity);
    assert_non_null(b->data);
  }
  if (size != 0) memcpy(b->data + b->size, data, size);
  b->size += size;
}

static void put_number(vocab_bytes *b, uint64_t value, size_t bytes) {
  for (size_t i = 0; i < bytes; i++) {
    const uint8_t byte = (uint8_t)(value >> (8 * i));
    put(b, &byte, 1);
  }
}

static void put_string(vocab_bytes *b, const char *text, size_t size) {
  put_number(b, size, 8);
  put(b, text, size);
}

static void put_key(vocab_bytes *b, const char *name, uint32_t type) {
  put_string(b, name, strlen(name));
  put_number(b, type, 4);
}

static void put_text_key(vocab_bytes *b, const char *name, const char *text) {
  put_key(b, name, 8);
  put_string(b, text, strlen(text));
}

static void put_array_key(vocab_bytes *b, const char *name, uint32_t type, uint64_t count) {
  put_key(b, name, 9);
  put_number(b, type, 4);
  put_number(b, count, 8);
}

static uint64_t count_of(const char *const *list) {
  uint64_t n = 0;
  while (list != NULL && list[n] != NULL) n++;
  return n;
}

static bool is_marked(const char *token) { return token[0] >= 1 && token[0] <= 4; }

static void put_tokens(vocab_bytes *b, const vocab_desc *desc) {
  static const uint32_t types[] = {1, 3, 4, 2, 6};
  const uint64_t n = count_of(desc->tokens);
  put_array_key(b, "tokenizer.ggml.tokens", 8, n);
  for (uint64_t i = 0; i < n; i++) {
    const char *text = desc->tokens[i] + is_marked(desc->tokens[i]);
    put_string(b, text, strlen(text));
  }
  put_array_key(b, "tokenizer.ggml.token_type", desc->types != NULL ? 6 : 5, n);
  if (desc->types != NULL) put(b, desc->types, (size_t)n * sizeof *desc->types);
  for (uint64_t i = 0; i < n && desc->types == NULL; i++)
    put_number(b, types[is_marked(desc->tokens[i]) ? desc->tokens[i][0] : 0], 4);
  if (desc->scores == NULL) return;
  put_array_key(b, "tokenizer.ggml.scores", 6, n);
  put(b, desc->scores, (size_t)n * sizeof *desc->scores);
}

static void put_setting(vocab_bytes *b, const char *setting) {
  char name[128];
  const char *value = strchr(setting, '=') + 1;
  snprintf(name, sizeof name, "tokenizer.ggml.%.*s", (int)(value - 1 - setting), setting);
  const bool is_bool = value[0] == 't' || value[0] == 'f';
  put_key(b, name, is_bool ? 7 : 4);
  put_number(b, is_bool ? value[0] == 't' : strtoul(value, NULL, 10), is_bool ? 1 : 4);
}

vocab_bytes vocab_file_make(const vocab_desc *desc) {
  vocab_bytes b = {NULL, 0, 0};
  const uint64_t n_settings = count_of(desc->ids);
  const int n_given = (desc->pre != NULL) + (desc->name != NULL) + (desc->scores != NULL) + (desc->merges != NULL) +
                      (desc->charsmap != NULL);
  const uint64_t n_keys = 4 + (uint64_t)n_given + n_settings;
  put(&b, "GGUF", 4);
  put_number(&b, 3, 4);
  put_number(&b, 0, 8);
  put_number(&b, n_keys, 8);
  put_text_key(&b, "general.architecture", "test");
  put_text_key(&b, "tokenizer.ggml.model", desc->model);
  if (desc->pre != NULL) put_text_key(&b, "tokenizer.ggml.pre", desc->pre);
  if (desc->name != NULL) put_text_key(&b, "general.name", desc->name);
  put_tokens(&b, desc);
  if (desc->merges != NULL) {
    put_array_key(&b, "tokenizer.ggml.merges", 8, count_of(desc->merges));
    for (size_t i = 0; desc->merges[i] != NULL; i++) put_string(&b, desc->merges[i], strlen(desc->merges[i]));
  }
  if (desc->charsmap != NULL) {
    put_array_key(&b, "tokenizer.ggml.precompiled_charsmap", 0, desc->charsmap_size);
    put(&b, desc->charsmap, desc->charsmap_size);
  }
  for (uint64_t i = 0; i < n_settings; i++) put_setting(&b, desc->ids[i]);
  return b;
}

static void vocab_released(void *user, const void *data, size_t size) {
  (void)data;
  (void)size;
  free(user);
}

berth_status vocab_open(berth_context *ctx, const vocab_desc *desc, berth__tokenizer **out, berth_error *err) {
  const vocab_bytes bytes = vocab_file_make(desc);
  berth__mapping file = {
      .data = bytes.data, .size = bytes.size, .released = vocab_released, .user = bytes.data, .fd = -1};
  berth__gguf *model;
  *out = NULL;
  berth_status status = berth__gguf_open(ctx, NULL, &file, &model, err);
  if (status != BERTH_OK) return status;
  status = berth__tokenizer_create(ctx, model, out, err);
  berth__gguf_destroy(model); /* the tokenizer holds it */
  return status;
}

const char *vocab_encode(berth__tokenizer *t, const char *text, size_t size, uint32_t flags) {
  static char out[4096];
  berth_error err = {BERTH_OK, ""};
  berth__tokens ids = {NULL, 0, 0};
  size_t n = 0;
  TEST_OK(berth__tokenizer_encode(t, text, size, flags, &ids, &err));
  out[0] = '\0';
  for (size_t i = 0; i < ids.count && n + 12 < sizeof out; i++)
    n += (size_t)snprintf(out + n, sizeof out - n, "%s%u", i != 0 ? " " : "", ids.ids[i]);
  berth__free(t->ctx, ids.ids);
  return out;
}
