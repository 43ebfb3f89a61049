/* Tokenizers beside llama.cpp's own, over its vocabularies: random characters, bytes that are no text, special tokens,
 * and the texts of its public vectors with the vocabularies that have none. Where its library is: make check-slow. */
#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "../../bench/llama/models/llama_settings.h"
#include "text/vocab.h"
#include "text/vocab_file.h"

#define MOST 4096
#define DRAWS 400 /* texts for each vocabulary */

typedef struct llama {
  llama_model_settings (*defaults)(void);
  void *(*load)(const char *, llama_model_settings);
  void (*free)(void *);
  const void *(*vocabulary)(const void *);
  int32_t (*n_tokens)(const void *);
  const char *(*text)(const void *, int32_t);
  int32_t (*tokenise)(const void *, const char *, int32_t, int32_t *, int32_t, bool, bool);
  void (*log)(void (*)(int, const char *, void *), void *);
} llama;

static void say_nothing(int level, const char *text, void *user) { (void)level, (void)text, (void)user; }

static bool find(void *handle, const char *name, void *to) {
  void *symbol = dlsym(handle, name);
  if (symbol != NULL) memcpy(to, &symbol, sizeof symbol);
  return symbol != NULL;
}

static bool llama_open(llama *l) {
  const char *path = getenv("BERTH_TEST_LLAMA");
  void *handle = path != NULL ? dlopen(path, RTLD_NOW | RTLD_GLOBAL) : NULL;
  if (handle == NULL) return false;
  const bool is_whole =
      find(handle, "llama_model_default_params", &l->defaults) && find(handle, "llama_log_set", &l->log) &&
      find(handle, "llama_model_load_from_file", &l->load) && find(handle, "llama_model_free", &l->free) &&
      find(handle, "llama_model_get_vocab", &l->vocabulary) && find(handle, "llama_vocab_n_tokens", &l->n_tokens) &&
      find(handle, "llama_vocab_get_text", &l->text) && find(handle, "llama_tokenize", &l->tokenise);
  if (!is_whole) return false;
  const llama_model_settings defaults = l->defaults();
  l->log(say_nothing, NULL);
  return llama_model_settings_fit(&defaults);
}

/* ---- Texts ---- */

typedef struct draw {
  uint64_t seed;
  const llama *lib;
  const void *vocabulary;
  char text[MOST];
  size_t size;
} draw;

static uint32_t draw_below(draw *d, uint32_t n) {
  d->seed = d->seed * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)((d->seed >> 33) % n);
}

static void draw_add(draw *d, const void *bytes, size_t n) {
  if (d->size + n > sizeof d->text) return;
  memcpy(d->text + d->size, bytes, n);
  d->size += n;
}

static void draw_character(draw *d) {
  static const uint32_t ranges[][2] = {{0x20, 0x7f},     {0x20, 0x7f},       {0x00, 0x20},       {0xa0, 0x250},
                                       {0x300, 0x370},   {0x370, 0x530},     {0x5d0, 0x700},     {0x900, 0xd80},
                                       {0xe00, 0xe80},   {0x1100, 0x1200},   {0x1e00, 0x2070},   {0x2070, 0x2c00},
                                       {0x3000, 0x3100}, {0x4e00, 0x4f00},   {0xac00, 0xad00},   {0xf900, 0xfb00},
                                       {0xfe00, 0xffff}, {0x1d400, 0x1d600}, {0x1f300, 0x1f700}, {0xe0000, 0x10ffff}};
  const uint32_t *range = ranges[draw_below(d, sizeof ranges / sizeof *ranges)];
  const uint32_t c = range[0] + draw_below(d, range[1] - range[0]);
  uint8_t bytes[4];
  size_t n = 0;
  if (c == 0) return; /* texts of C end there */
  if (c < 0x80) {
    bytes[n++] = (uint8_t)c;
  } else {
    const int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    bytes[n++] = (uint8_t)((0xf00 >> more & 0xff) | c >> 6 * more);
    for (int i = more - 1; i >= 0; i--) bytes[n++] = (uint8_t)(0x80 | (c >> 6 * i & 0x3f));
  }
  draw_add(d, bytes, n);
}

/* Any byte but those that begin a number over U+10FFFF, over which llama.cpp ends the program. */
static void draw_byte(draw *d) {
  uint8_t byte = (uint8_t)(1 + draw_below(d, 255));
  if (byte >= 0xf4 && byte <= 0xf7) byte = 0xf3;
  draw_add(d, &byte, 1);
}

static void draw_word(draw *d) {
  static const char *const words[] = {
      " the",     "don't", "I'LL",        "  \n", "\t\t", "\r\n\n", " 1234567",     "3.14", "...",      "!?",
      "\xC2\xA0", "_x1",   "caf\xC3\xA9", " ",    "   ",  "##",     "\xE2\x96\x81", "'s",   "Z\xCC\x81"};
  const char *word = words[draw_below(d, sizeof words / sizeof *words)];
  draw_add(d, word, strlen(word));
}

static void draw_token(draw *d) {
  const char *text = d->lib->text(d->vocabulary, (int32_t)draw_below(d, (uint32_t)d->lib->n_tokens(d->vocabulary)));
  draw_add(d, text, strlen(text));
}

/* One of the first or last tokens, where the special ones are. */
static void draw_special(draw *d) {
  const uint32_t n = (uint32_t)d->lib->n_tokens(d->vocabulary), at = draw_below(d, 60);
  const char *text = d->lib->text(d->vocabulary, (int32_t)(at % 2 != 0 || at >= n ? at % n : n - 1 - at / 2));
  draw_add(d, text, strlen(text));
}

static void draw_text(draw *d) {
  static void (*const kinds[])(draw *) = {draw_character, draw_word, draw_token, draw_special, draw_byte};
  const uint32_t n = 1 + draw_below(d, 40), mixed = draw_below(d, 2), kind = draw_below(d, 5);
  d->size = 0;
  for (uint32_t i = 0; i < n; i++) kinds[mixed != 0 ? draw_below(d, 5) : kind](d);
}

/* ---- Comparing ---- */

static bool same_tokens(const draw *d, berth__tokenizer *t, const char *text, size_t size, uint32_t flags) {
  static int32_t theirs[2 * MOST];
  berth_error err = {BERTH_OK, ""};
  berth__tokens ours = {NULL, 0, 0};
  const int32_t n =
      d->lib->tokenise(d->vocabulary, text, (int32_t)size, theirs, 2 * MOST, (flags & BERTH__ENCODE_ADD_SPECIAL) != 0,
                       (flags & BERTH__ENCODE_PARSE_SPECIAL) != 0);
  TEST_OK(berth__tokenizer_encode(t, text, size, flags, &ours, &err));
  bool is_same = n >= 0 && (size_t)n == ours.count;
  for (size_t i = 0; is_same && i < ours.count; i++) is_same = ours.ids[i] == (uint32_t)theirs[i];
  if (!is_same) {
    print_error("flags %u, %zu bytes, %zu and %d tokens:", flags, size, ours.count, n);
    for (size_t i = 0; i < size && i < 200; i++) print_error(" %02x", (uint8_t)text[i]);
    print_error("\n");
  }
  berth__free(t->ctx, ours.ids);
  return is_same;
}

/* The texts of a file of vectors. */
static size_t compare_vectors(const draw *d, berth__tokenizer *t, const char *path) {
  static const char between[] = "\n__ggml_vocab_test__\n";
  static char texts[1 << 16];
  size_t wrong = 0;
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  texts[fread(texts, 1, sizeof texts - 1, file)] = '\0';
  fclose(file);
  for (const char *at = texts, *end; at != NULL; at = end != NULL ? end + strlen(between) : NULL) {
    end = strstr(at, between);
    wrong += !same_tokens(d, t, at, end != NULL ? (size_t)(end - at) : strlen(at), 0);
  }
  return wrong;
}

static size_t compare(berth_context *ctx, const llama *l, const char *folder, const char *name) {
  char path[1024], texts[1024];
  berth_error err = {BERTH_OK, ""};
  berth__mapping file;
  berth__gguf *model;
  berth__tokenizer *t;
  llama_model_settings settings = l->defaults();
  settings.vocab_only = true;
  snprintf(path, sizeof path, "%s/%s", folder, name);
  snprintf(texts, sizeof texts, "%s/ggml-vocab-llama-bpe.gguf.inp", folder);
  void *theirs = l->load(path, settings);
  assert_non_null(theirs);
  TEST_OK(berth__file_map(path, &file, &err));
  TEST_OK(berth__gguf_open(ctx, path, &file, &model, &err));
  TEST_OK(berth__tokenizer_create(ctx, model, &t, &err));
  berth__gguf_destroy(model);
  draw d = {.seed = 7, .lib = l, .vocabulary = l->vocabulary(theirs)};
  size_t wrong = compare_vectors(&d, t, texts);
  for (int i = 0; i < DRAWS; i++) {
    draw_text(&d);
    wrong += !same_tokens(&d, t, d.text, d.size, (uint32_t)i % 4);
  }
  berth__tokenizer_destroy(t);
  l->free(theirs);
  if (wrong != 0) print_error("%s: %zu texts differ\n", name, wrong);
  return wrong;
}

static void every_vocabulary_agrees(void **state) {
  const char *folder = getenv("BERTH_TEST_VOCABS");
  llama l;
  size_t n = 0, wrong = 0;
  (void)state;
  if (TEST_IS_SANITIZED) TEST_SKIP("llama.cpp's library was built without sanitizers");
  DIR *dir = folder != NULL ? opendir(folder) : NULL;
  if (dir == NULL || !llama_open(&l))
    TEST_SKIP("BERTH_TEST_VOCABS and BERTH_TEST_LLAMA name no vocabularies and no library (make check-slow gets them)");
  berth_context *ctx = test_context();
  for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
    const size_t length = strlen(entry->d_name);
    if (length < 5 || strcmp(entry->d_name + length - 5, ".gguf") != 0) continue;
    wrong += compare(ctx, &l, folder, entry->d_name);
    n++;
  }
  closedir(dir);
  print_message("# %zu vocabularies\n", n);
  assert_true(n >= 19);
  assert_int_equal(wrong, 0);
  berth_context_destroy(ctx);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_vocabulary_agrees)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
