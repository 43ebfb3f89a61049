#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "format.h"
#include "inspect.h"
#include "json.h"
#include "utf8.h"

enum {
  max_text = 48, /* most characters of a value shown in text */
  max_types = 64
};

typedef struct type_count {
  const char *name;
  bool supported;
  uint64_t count, bytes;
} type_count;

typedef struct gguf_model {
  const char *path;
  const berth_model_info *info;
  bool runs;
  const char *why_not;
  type_count types[max_types]; /* sorted by bytes, descending */
  size_t n_types;
} gguf_model;

/* ---- Collecting ---- */

static void gguf_count_type(gguf_model *m, const berth_model_tensor *tensor) {
  size_t i = 0;
  while (i < m->n_types && strcmp(m->types[i].name, tensor->type) != 0) i++;
  if (i == max_types) return;
  if (i == m->n_types) m->types[m->n_types++] = (type_count){.name = tensor->type, .supported = tensor->supported != 0};
  m->types[i].count++;
  m->types[i].bytes += tensor->size;
}

static int gguf_by_bytes(const void *a, const void *b) {
  const type_count *x = a, *y = b;
  if (x->bytes != y->bytes) return x->bytes < y->bytes ? 1 : -1;
  return strcmp(x->name, y->name);
}

/* Tokenizer kinds, by their names in files. */
static const struct {
  const char *name, *kind;
} tokenizers[] = {
    {"llama", "SPM"}, {"gpt2", "BPE"},     {"gemma4", "BPE"}, {"bert", "WordPiece"}, {"t5", "Unigram"},
    {"rwkv", "RWKV"}, {"plamo2", "PLaMo"}, {"none", "none"},  {"", "none"},          {"no_vocab", "none"},
};

static const char *gguf_tokenizer_kind(const char *name) {
  size_t i = 0;
  while (i < sizeof(tokenizers) / sizeof(tokenizers[0]) && strcmp(tokenizers[i].name, name) != 0) i++;
  return i < sizeof(tokenizers) / sizeof(tokenizers[0]) ? tokenizers[i].kind : "unknown";
}

static uint64_t gguf_n_tokens(const berth_model_info *info) {
  for (size_t i = 0; i < info->n_keys; i++)
    if (strcmp(info->keys[i].name, "tokenizer.ggml.tokens") == 0) return info->keys[i].count;
  return 0;
}

/* ---- As text ---- */

/* A quoted string on one line, truncated if it is long. */
static void gguf_print_string(const char *text, size_t most) {
  size_t shown = 0;
  putchar('"');
  for (; *text && shown < most; shown++) {
    const size_t n = utf8_length(text);
    if (n == 0 || (n == 1 && (*text == '"' || *text == '\\' || (unsigned char)*text < ' ' || *text == 127))) {
      printf(*text == '\n' ? "\\n" : *text == '"' || *text == '\\' ? "\\%c" : "\\x%02X", (unsigned char)*text);
      text++;
    } else {
      printf("%.*s", (int)n, text);
      text += n;
    }
  }
  printf(*text ? "\"..." : "\"");
}

static void gguf_print_key(const berth_model_key *key) {
  char type[FORMAT_SIZE];
  const bool is_text = strcmp(key->type, "string") == 0;
  size_t room = max_text;
  if (key->is_array)
    snprintf(type, sizeof(type), "%s[%" PRIu64 "]", key->type, key->count);
  else
    snprintf(type, sizeof(type), "%s", key->type);
  printf("  key      %-40s %-14s ", key->name, type);
  size_t i = 0;
  for (; i < key->n_values && room > 0; i++) {
    const size_t length = strlen(key->values[i]), used = length + 4 < room ? length + 4 : room;
    if (i) printf(", ");
    if (is_text)
      gguf_print_string(key->values[i], room);
    else
      printf("%s", key->values[i]);
    room -= used;
  }
  printf(i < key->count ? "%s...\n" : "\n", i ? ", " : "");
}

static void gguf_print_head(const gguf_model *m) {
  const berth_model_info *info = m->info;
  char count[FORMAT_SIZE], bytes[FORMAT_SIZE];
  printf("%s: GGUF version %" PRId64 ", %zu key%s, %zu tensor%s\n", m->path, info->ir_version, info->n_keys,
         cli_plural(info->n_keys), info->n_tensors, cli_plural(info->n_tensors));
  if (*info->name) {
    printf("  name     ");
    gguf_print_string(info->name, max_text);
    printf("\n");
  }
  printf("  arch     ");
  if (*info->architecture)
    gguf_print_string(info->architecture, max_text);
  else
    printf("none");
  printf("\n  tokens   ");
  if (*info->tokenizer)
    printf("%s of %s\n", gguf_tokenizer_kind(info->tokenizer), format_count(gguf_n_tokens(info), count));
  else
    printf("none\n");
  printf("  template %s\n", *info->chat_template ? "for chat" : "none");
  printf("  params   %zu of %s element%s, %s\n", info->n_tensors, format_count(info->param_elements, count),
         cli_plural(info->param_elements), format_bytes(info->param_bytes, bytes));
  for (size_t i = 0; i < info->n_files; i++) printf("  file     %s\n", info->files[i]);
}

static void gguf_print_text(const gguf_model *m) {
  const berth_model_info *info = m->info;
  char count[FORMAT_SIZE], bytes[FORMAT_SIZE], shape[FORMAT_SIZE];
  gguf_print_head(m);
  for (size_t i = 0; i < info->n_keys; i++) gguf_print_key(&info->keys[i]);
  for (size_t i = 0; i < info->n_tensors; i++) {
    const berth_model_tensor *t = &info->tensors[i];
    printf("  tensor   %-40s %-8s %-20s %12s\n", t->name, t->type, format_extents(t->rank, t->dim, shape),
           format_short_bytes(t->size, bytes));
  }
  for (size_t i = 0; i < m->n_types; i++) {
    const type_count *t = &m->types[i];
    printf("  type     %-8s %s tensor%s, %s%s\n", t->name, format_count(t->count, count), cli_plural(t->count),
           format_bytes(t->bytes, bytes), t->supported ? "" : "  not supported");
  }
  if (m->runs)
    printf("  runs     yes\n");
  else
    printf("  runs     no: %s\n", m->why_not);
}

/* ---- As JSON ---- */

/* A value as the corresponding JSON type. The library's format of numbers is valid JSON. */
static void gguf_write_value(json *out, const char *name, const char *type, const char *text) {
  char *end;
  if (strcmp(type, "string") == 0 || strcmp(type, "array") == 0)
    json_string(out, name, text);
  else if (strcmp(type, "bool") == 0)
    json_bool(out, name, strcmp(text, "true") == 0);
  else if (type[0] == 'f')
    json_double(out, name, strtod(text, &end));
  else if (text[0] == '-')
    json_int(out, name, strtoll(text, &end, 10));
  else
    json_uint(out, name, strtoull(text, &end, 10));
}

static void gguf_write_keys(json *out, const berth_model_info *info) {
  json_open_object(out, "keys");
  for (size_t i = 0; i < info->n_keys; i++) {
    const berth_model_key *key = &info->keys[i];
    if (!key->is_array) {
      gguf_write_value(out, key->name, key->type, key->values[0]);
      continue;
    }
    json_open_object(out, key->name);
    json_string(out, "type", key->type);
    json_uint(out, "count", key->count);
    json_open_array(out, "first");
    for (size_t k = 0; k < key->n_values; k++) gguf_write_value(out, NULL, key->type, key->values[k]);
    json_close_array(out);
    json_close_object(out);
  }
  json_close_object(out);
}

static void gguf_write_tensors(json *out, const gguf_model *m) {
  json_open_object(out, "types");
  for (size_t i = 0; i < m->n_types; i++) {
    json_open_object(out, m->types[i].name);
    json_uint(out, "count", m->types[i].count);
    json_uint(out, "bytes", m->types[i].bytes);
    json_close_object(out);
  }
  json_close_object(out);
  json_open_array(out, "unsupported");
  for (size_t i = 0; i < m->n_types; i++)
    if (!m->types[i].supported) json_string(out, NULL, m->types[i].name);
  json_close_array(out);
  json_open_array(out, "tensors");
  for (size_t i = 0; i < m->info->n_tensors; i++) {
    const berth_model_tensor *t = &m->info->tensors[i];
    json_open_object(out, NULL);
    json_string(out, "name", t->name);
    json_string(out, "dtype", t->type);
    json_ints(out, "shape", t->rank, t->dim);
    json_uint(out, "bytes", t->size);
    json_close_object(out);
  }
  json_close_array(out);
}

static int gguf_print_json(const gguf_model *m) {
  const berth_model_info *info = m->info;
  json out = JSON_INIT;
  json_open_object(&out, NULL);
  json_string(&out, "format", info->format);
  json_string(&out, "file", m->path);
  json_string(&out, "name", info->name);
  json_int(&out, "version", info->ir_version);
  json_string(&out, "architecture", info->architecture);
  json_string(&out, "tokenizer", gguf_tokenizer_kind(info->tokenizer));
  json_uint(&out, "n_tokens", gguf_n_tokens(info));
  json_bool(&out, "chat_template", *info->chat_template != '\0');
  json_uint(&out, "n_tensors", info->n_tensors);
  json_uint(&out, "param_elements", info->param_elements);
  json_uint(&out, "bytes", info->param_bytes);
  json_open_array(&out, "files");
  for (size_t i = 0; i < info->n_files; i++) json_string(&out, NULL, info->files[i]);
  json_close_array(&out);
  gguf_write_keys(&out, info);
  gguf_write_tensors(&out, m);
  json_bool(&out, "runs", m->runs);
  json_string(&out, "reason", m->runs ? NULL : m->why_not);
  json_close_object(&out);
  return json_print(&out);
}

int inspect_gguf(berth_context *ctx, const char *path, bool as_json) {
  berth_model_info *info = NULL;
  berth_error err = {BERTH_OK, ""};
  if (berth_model_inspect(ctx, path, &info, &err) != BERTH_OK) return cli_report(&err);
  const berth_status status = berth_model_check(ctx, path, &err);
  const size_t n = strlen(path);
  const bool named = strncmp(err.message, path, n) == 0 && strncmp(err.message + n, ": ", 2) == 0;
  gguf_model model = {
      .path = path, .info = info, .runs = status == BERTH_OK, .why_not = err.message + (named ? n + 2 : 0)};
  for (size_t i = 0; i < info->n_tensors; i++) gguf_count_type(&model, &info->tensors[i]);
  if (model.n_types > 0) qsort(model.types, model.n_types, sizeof(model.types[0]), gguf_by_bytes);
  int code = CLI_OK;
  if (status == BERTH_NOMEM)
    code = cli_report(&err);
  else if (as_json)
    code = gguf_print_json(&model);
  else
    gguf_print_text(&model);
  berth_model_info_destroy(info);
  return code;
}
