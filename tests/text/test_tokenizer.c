/* Tokenizers over small vocabularies; and over those of llama.cpp, with its vectors, where they are. */
#include "text/tokenizer.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "text/vocab_file.h"

#define SPACE "\xE2\x96\x81"
#define G "\xC4\xA0" /* a space, as a letter */

static const char *const spm_tokens[] = {"\x03<unk>", "\x01<s>", "\x01</s>", "\x04<0x0A>", "\x04<0xC3>",
                                         SPACE,       "a",       "b",        "ab",         SPACE "ab",
                                         "\x02<tag>", "aba",     "\xC3\xA9", "\x04<0xA9>", NULL};
static const float spm_scores[] = {0, 0, 0, 0, 0, -9, -8, -7, -3, -1, 0, -2, -4, 0};
static const vocab_desc spm = {.model = "llama", .tokens = spm_tokens, .scores = spm_scores};

static const char *const bpe_tokens[] = {"a",        "b",        "c",           G,   "ab",        G "a", "abc",
                                         "\xC3\x83", "\xC2\xA9", "\x01<|end|>", "1", "\x02<pad>", NULL};
static const char *const bpe_merges[] = {"a b", G " a", "ab c", "broken", NULL};
static const char *const bpe_ids[] = {"bos_token_id=9", "add_bos_token=true", NULL};
static const vocab_desc bpe = {
    .model = "gpt2", .pre = "llama3", .tokens = bpe_tokens, .merges = bpe_merges, .ids = bpe_ids};

static const char *const bert_tokens[] = {"\x01[PAD]", "\x03[UNK]", "\x01[CLS]", "\x01[SEP]", SPACE "un",
                                          "a",         "able",      SPACE "e",   SPACE "!",   SPACE "\xE4\xB8\x80",
                                          SPACE "una", NULL};
static const char *const bert_ids[] = {"bos_token_id=2", "seperator_token_id=3", "unknown_token_id=1", NULL};
static const vocab_desc bert = {.model = "bert", .tokens = bert_tokens, .ids = bert_ids};

static const char *const t5_tokens[] = {"\x01<pad>", "\x01</s>", "\x03<unk>", SPACE,     "a", "b",
                                        SPACE "a",   "ab",       SPACE "ab",  "\x02<u>", NULL};
static const float t5_scores[] = {0, 0, 0, -2, -3, -3, -4, -4.5f, -9, 0};
static const char *const t5_ids[] = {"add_space_prefix=true", NULL};
static const vocab_desc t5 = {.model = "t5", .tokens = t5_tokens, .scores = t5_scores, .ids = t5_ids};

typedef struct encode_case {
  const vocab_desc *vocab;
  const char *text;
  uint32_t flags;
  const char *ids;
} encode_case;

static void texts_become_tokens(void **state) {
  (void)state;
  static const encode_case cases[] = {
      {&spm, "ab", 0, "9"},
      {&spm, "", 0, ""},
      {&spm, "", 1, "1"},
      {&spm, "aba ab", 0, "9 6 9"}, /* " ab" has the better score than "aba" */
      {&spm, "\xC3\xA9\n", 0, "5 12 3"},
      {&spm, "\xC3", 0, "5 4"},                     /* cut off: byte by byte */
      {&spm, "z", 0, "5 0"},                        /* neither a token nor bytes: unknown */
      {&spm, "ab<tag>ab</s>", 0, "9 10 9 0 0 0 0"}, /* a space before the first word after a token */
      {&spm, "ab</s>ab", 2, "9 2 9"},
      {&bpe, "abc", 0, "6"},
      {&bpe, "abcab a", 0, "6 4 5"},
      {&bpe, "aab", 1, "9 0 4"},
      {&bpe, "\xC3\xA9", 0, "7 8"},
      {&bpe, "a<|end|>a", 0, "0 0"}, /* what no token writes is left out */
      {&bpe, "a<|end|>a", 2, "0 9 0"},
      {&bpe, "a<pad>a", 0, "0 11 0"}, /* what a user defined is found in any text */
      {&bpe, "1", 0, "10"},
      {&bert, "unable \xC3\x89!", 0, "1 7 8"},
      {&bert, "Unaable", 1, "2 10 6 3"},
      {&bert, "\xE4\xB8\x80\xE4\xB8\x80 zz", 0, "9 9 1"},
      {&bert, "", 1, "2 3"},
      {&t5, "ab a", 1, "3 7 6 1"},
      {&t5, "aab", 0, "6 7"},
      {&t5, "zz a", 0, "3 2 6"}, /* unknown tokens in a row are one */
      {&t5, "b<u>", 0, "3 5 9"},
      {&t5, "\xFF", 0, "3 2"},
  };
  berth_context *ctx = test_context();
  berth_error err = {BERTH_OK, ""};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    berth__tokenizer *t;
    TEST_OK(vocab_open(ctx, cases[i].vocab, &t, &err));
    const char *got = vocab_encode(t, cases[i].text, strlen(cases[i].text), cases[i].flags);
    if (strcmp(got, cases[i].ids) != 0) print_error("%s, \"%s\"\n", cases[i].vocab->model, cases[i].text);
    assert_string_equal(got, cases[i].ids);
    berth__tokenizer_destroy(t);
  }
  berth_context_destroy(ctx);
}

static void longer_special_tokens_come_first(void **state) {
  (void)state;
  static const char *const tokens[] = {"\x03<unk>", "\x01<s>", "\x01</s>", "\x02xx", "\x02xxx",
                                       "\x02yx",    "a",       SPACE,      NULL};
  const vocab_desc desc = {.model = "llama", .tokens = tokens};
  berth_context *ctx = test_context();
  berth_error err = {BERTH_OK, ""};
  berth__tokenizer *t;
  TEST_OK(vocab_open(ctx, &desc, &t, &err));
  assert_string_equal(vocab_encode(t, "xxxxx", 5, 0), "4 3");
  assert_string_equal(vocab_encode(t, "yxxx", 4, 0), "7 0 4"); /* not "yx", which begins earlier and is shorter */
  berth__tokenizer_destroy(t);
  berth_context_destroy(ctx);
}

static void phi3_tokens_take_the_space_after_them(void **state) {
  (void)state;
  static const char *const tokens[] = {"\x03<unk>", "\x01<s>", "\x01</s>", "\x01<|user|>", "a", SPACE "a", SPACE, NULL};
  const vocab_desc desc = {.model = "llama", .name = "Phi-3 mini", .tokens = tokens};
  berth_context *ctx = test_context();
  berth_error err = {BERTH_OK, ""};
  berth__tokenizer *t;
  TEST_OK(vocab_open(ctx, &desc, &t, &err));
  assert_string_equal(vocab_encode(t, "<|user|> \n\ta", 12, 2), "3 5");
  assert_string_equal(vocab_encode(t, "<s> a", 5, 2), "1 6 5");
  berth__tokenizer_destroy(t);
  berth_context_destroy(ctx);
}

/* A map that writes "x" for "A", and nothing for "B": a double array of five nodes. */
static void a_map_of_characters_is_applied(void **state) {
  (void)state;
  uint32_t nodes[256] = {0};
  char map[4 + sizeof nodes + 3];
  for (size_t i = 0; i < 256; i++) nodes[i] = 1u << 31; /* no character */
  nodes[0] = 0;                                         /* children from 0 on: the node of 'A' is 0x41 */
  nodes['A'] = (uint32_t)('A' ^ 1) << 10 | 1u << 8 | 'A';
  nodes[1] = 1u << 31 | 0; /* the text at 0 */
  nodes['B'] = (uint32_t)('B' ^ 2) << 10 | 1u << 8 | 'B';
  nodes[2] = 1u << 31 | 1; /* the text at 1, which is empty */
  const uint32_t size = sizeof nodes;
  memcpy(map, &size, 4);
  memcpy(map + 4, nodes, sizeof nodes);
  memcpy(map + 4 + sizeof nodes, "a\0", 3);
  vocab_desc desc = t5;
  desc.charsmap = map;
  desc.charsmap_size = sizeof map;
  berth_context *ctx = test_context();
  berth_error err = {BERTH_OK, ""};
  berth__tokenizer *t;
  TEST_OK(vocab_open(ctx, &desc, &t, &err));
  assert_string_equal(vocab_encode(t, "AB", 2, 0), "6");
  assert_string_equal(vocab_encode(t, "aAb", 3, 0), "6 7");
  berth__tokenizer_destroy(t);
  for (size_t cut = 0; cut < 2; cut++) { /* too short for its array; a text without an end */
    desc.charsmap_size = cut == 0 ? 4 + sizeof nodes : sizeof map - 2;
    test_expect_error(vocab_open(ctx, &desc, &t, &err), BERTH_MALFORMED, &err, "precompiled_charsmap");
    assert_null(t);
  }
  berth_context_destroy(ctx);
}

static void ids_come_from_keys_and_texts(void **state) {
  (void)state;
  static const char *const tokens[] = {
      "a", "\x01<|return|>", "\x01<|call|>", "\x01<|end|>", "\x01<|endoftext|>", "\x01<|start|>", "<|im_end|>", NULL};
  static const char *const merges[] = {NULL};
  static const char *const ids[] = {"eos_token_id=1", "bos_token_id=99", NULL};
  const vocab_desc desc = {.model = "gpt2", .pre = "gpt-4o", .tokens = tokens, .merges = merges, .ids = ids};
  berth_context *ctx = test_context();
  berth_error err = {BERTH_OK, ""};
  berth__tokenizer *t;
  TEST_OK(vocab_open(ctx, &desc, &t, &err));
  const berth__token_ids *found = berth__tokenizer_ids(t);
  assert_int_equal(found->eos, 1);
  assert_int_equal(found->bos, BERTH__NO_TOKEN); /* 99 is no token, and neither is 11, which is usual */
  assert_int_equal(found->eot, 6);
  static const bool ends[] = {false, true, true, false, true, false, true};
  for (uint32_t id = 0; id < 7; id++) assert_int_equal(berth__tokenizer_is_end(t, id), ends[id]);
  assert_false(berth__tokenizer_is_end(t, 7));
  char piece[32];
  assert_int_equal(berth__tokenizer_piece(t, 1, false, piece, sizeof piece), 0);
  assert_int_equal(berth__tokenizer_piece(t, 1, true, piece, 3), 10); /* too little room: says how much it takes */
  assert_int_equal(berth__tokenizer_piece(t, 5, false, piece, sizeof piece), 9); /* part of what is said */
  assert_int_equal(berth__tokenizer_piece(t, 7, true, piece, sizeof piece), 0);
  berth__tokenizer_destroy(t);
  berth_context_destroy(ctx);
}

/* Every output is whole characters; all of them together are the text. */
static void streams_split_no_character(void **state) {
  (void)state;
  static const uint32_t ids[] = {3, 7, 0, 8, 6, 7}; /* " ", half an é, "a", the other half alone, "abc", half an é */
  static const char *const want[] = {" ", "", "\xEF\xBF\xBD\x61", "\xEF\xBF\xBD", "abc", "", "\xEF\xBF\xBD"};
  berth_context *ctx = test_context();
  berth_error err = {BERTH_OK, ""};
  berth__tokenizer *t;
  char out[256];
  TEST_OK(vocab_open(ctx, &bpe, &t, &err));
  assert_true(berth__stream_capacity(t) <= sizeof out);
  berth__stream stream = berth__stream_begin(t, false, true);
  for (size_t i = 0; i < 7; i++) {
    const size_t n = i < 6 ? berth__stream_next(&stream, ids[i], out) : berth__stream_end(&stream, out);
    out[n] = '\0';
    assert_string_equal(out, want[i]);
  }
  assert_int_equal(berth__stream_next(&stream, 7, out), 0);
  assert_int_equal(berth__stream_next(&stream, 8, out), 2);
  assert_memory_equal(out, "\xC3\xA9", 2);
  assert_int_equal(berth__stream_end(&stream, out), 0);
  berth__tokenizer_destroy(t);

  TEST_OK(vocab_open(ctx, &spm, &t, &err));
  stream = berth__stream_begin(t, false, true);
  assert_int_equal(berth__stream_next(&stream, 9, out), 2); /* without the space that encoding put there */
  assert_int_equal(berth__stream_next(&stream, 9, out), 3);
  assert_int_equal(berth__stream_next(&stream, 4, out), 0); /* a byte token */
  assert_int_equal(berth__stream_next(&stream, 13, out), 2);
  berth__tokenizer_destroy(t);
  berth_context_destroy(ctx);
}

static void vocabularies_that_are_wrong_are_refused(void **state) {
  (void)state;
  static const char *const none[] = {NULL};
  static const float types[] = {NAN, 1e30f, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
  berth_context *ctx = test_context();
  berth_error err = {BERTH_OK, ""};
  berth__tokenizer *t;
  vocab_desc desc = bpe;
  desc.model = "rwkv";
  test_expect_error(vocab_open(ctx, &desc, &t, &err), BERTH_UNSUPPORTED, &err, "\"rwkv\"");
  desc = bpe;
  desc.pre = "nobody";
  test_expect_error(vocab_open(ctx, &desc, &t, &err), BERTH_UNSUPPORTED, &err, "\"nobody\"");
  desc = bpe;
  desc.merges = NULL;
  test_expect_error(vocab_open(ctx, &desc, &t, &err), BERTH_MALFORMED, &err, "tokenizer.ggml.merges");
  desc = spm;
  desc.types = types;
  test_expect_error(vocab_open(ctx, &desc, &t, &err), BERTH_MALFORMED, &err, "token_type\" are not integers but f32");
  desc = spm;
  desc.tokens = none;
  test_expect_error(vocab_open(ctx, &desc, &t, &err), BERTH_MALFORMED, &err, "empty");
  berth_context_destroy(ctx);
}

/* A quadratic step would take hours. */
static void long_texts_take_little_time(void **state) {
  (void)state;
  enum {
    N = 1 << 18
  };
  static const char *const texts[] = {"a", "ab", " ", "<", "\xC3", "<pad>", "xyz"};
  const vocab_desc *const vocabs[] = {&spm, &bpe, &bert, &t5};
  berth_context *ctx = test_context();
  berth_error err = {BERTH_OK, ""};
  char *text = malloc(N);
  assert_non_null(text);
  for (size_t v = 0; v < 4; v++) {
    berth__tokenizer *t;
    TEST_OK(vocab_open(ctx, vocabs[v], &t, &err));
    for (size_t i = v % 2; i < sizeof texts / sizeof texts[0]; i += 2) {
      const size_t n = strlen(texts[i]);
      for (size_t k = 0; k < N; k++) text[k] = texts[i][k % n];
      berth__tokens ids = {NULL, 0, 0};
      TEST_OK(berth__tokenizer_encode(t, text, N, BERTH__ENCODE_PARSE_SPECIAL, &ids, &err));
      berth__free(ctx, ids.ids);
    }
    berth__tokenizer_destroy(t);
  }
  free(text);
  berth_context_destroy(ctx);
}

static berth_status open_and_encode(berth_context *ctx, berth_error *err, void *user) {
  berth__tokenizer *t;
  berth__tokens ids = {NULL, 0, 0};
  berth_status status = vocab_open(ctx, user, &t, err);
  if (status == BERTH_OK) status = berth__tokenizer_encode(t, "ab a<u> abc\xC3\xA9</s>1", 19, 3, &ids, err);
  if (status != BERTH_OK) assert_int_equal(ids.count, 0);
  berth__free(ctx, ids.ids);
  berth__tokenizer_destroy(t);
  return status;
}

static void every_failed_allocation_is_an_error(void **state) {
  (void)state;
  const vocab_desc *const vocabs[] = {&spm, &bpe, &bert, &t5};
  for (size_t i = 0; i < 4; i++) {
    vocab_desc desc = *vocabs[i];
    assert_true(test_fail_each_allocation(open_and_encode, &desc) > 10);
  }
}

/* ---- llama.cpp's vectors: NAME.gguf, NAME.gguf.inp (texts), NAME.gguf.out (a line of ids for each) ---- */

static char *read_text(const char *folder, const char *name, const char *suffix) {
  char path[1024];
  snprintf(path, sizeof path, "%s/%s%s", folder, name, suffix);
  FILE *file = fopen(path, "rb");
  if (file == NULL) return NULL;
  char *text = calloc(1, 1 << 16);
  assert_non_null(text);
  assert_true(fread(text, 1, (1 << 16) - 1, file) > 0);
  fclose(file);
  return text;
}

static size_t run_vectors(berth_context *ctx, const char *folder, const char *name, char *inputs, char *outputs) {
  static const char between[] = "\n__ggml_vocab_test__\n";
  char path[1024];
  berth_error err = {BERTH_OK, ""};
  berth__mapping file;
  berth__gguf *model;
  berth__tokenizer *t;
  size_t n = 0;
  snprintf(path, sizeof path, "%s/%s", folder, name);
  TEST_OK(berth__file_map(path, &file, &err));
  TEST_OK(berth__gguf_open(ctx, path, &file, &model, &err));
  TEST_OK(berth__tokenizer_create(ctx, model, &t, &err));
  berth__gguf_destroy(model);
  for (char *line = outputs, *next; (next = strchr(line, '\n')) != NULL; line = next + 1, n++) {
    *next = '\0';
    char *end = strstr(inputs, between);
    const size_t size = end != NULL ? (size_t)(end - inputs) : strlen(inputs);
    const char *got = vocab_encode(t, inputs, size, 0);
    while (*line == ' ') line++;
    if (strcmp(got, line) != 0) print_error("%s: \"%.*s\"\n", name, (int)size, inputs);
    assert_string_equal(got, line);
    inputs += size + (end != NULL ? strlen(between) : 0);
  }
  berth__tokenizer_destroy(t);
  return n;
}

static void public_vectors_pass(void **state) {
  (void)state;
  const char *folder = getenv("BERTH_TEST_VOCABS");
  DIR *dir = folder != NULL ? opendir(folder) : NULL;
  if (dir == NULL)
    TEST_SKIP("BERTH_TEST_VOCABS names no folder with llama.cpp's vocabularies (make check-slow gets them)");
  berth_context *ctx = test_context();
  size_t n = 0;
  for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
    const size_t length = strlen(entry->d_name);
    if (length < 5 || strcmp(entry->d_name + length - 5, ".gguf") != 0) continue;
    char *inputs = read_text(folder, entry->d_name, ".inp"), *outputs = read_text(folder, entry->d_name, ".out");
    if (inputs != NULL && outputs != NULL) n += run_vectors(ctx, folder, entry->d_name, inputs, outputs);
    free(inputs);
    free(outputs);
  }
  closedir(dir);
  print_message("# %zu vectors\n", n);
  assert_true(n >= 694);
  berth_context_destroy(ctx);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(texts_become_tokens),
      cmocka_unit_test(longer_special_tokens_come_first),
      cmocka_unit_test(phi3_tokens_take_the_space_after_them),
      cmocka_unit_test(a_map_of_characters_is_applied),
      cmocka_unit_test(ids_come_from_keys_and_texts),
      cmocka_unit_test(streams_split_no_character),
      cmocka_unit_test(vocabularies_that_are_wrong_are_refused),
      cmocka_unit_test(long_texts_take_little_time),
      cmocka_unit_test(every_failed_allocation_is_an_error),
      cmocka_unit_test(public_vectors_pass),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
