/* Generators: chunks, chats, full contexts, conversations that are saved, forked and taken back, and no allocations. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "generate/generator.h"
#include "support.h"
#include "toy.h"

#define OK(expr) TEST_OK(expr)
#define TEXT "the ring and the thing"

static char path[1024];

static int write_toys(void **state) {
  (void)state;
  snprintf(path, sizeof path, "%s", test_path("text.gguf"));
  toy_write(path, "llama/text");
  return 0;
}

typedef struct speaker {
  test_alloc alloc;
  berth_context *ctx;
  berth_generator *g;
} speaker;

static berth_generator_desc greedy(void) {
  static berth_sampling_desc sampling;
  berth_generator_desc desc = BERTH_GENERATOR_DESC_INIT;
  sampling = (berth_sampling_desc)BERTH_SAMPLING_DESC_INIT;
  sampling.temperature = 0;
  desc.sampling = &sampling;
  desc.ctx = 64;
  desc.chunk = 8;
  return desc;
}

static void speaker_start(speaker *s, const berth_generator_desc *desc) {
  berth_error err;
  memset(s, 0, sizeof *s);
  s->ctx = test_context_counting(&s->alloc);
  OK(berth_generator_create(s->ctx, path, desc, &s->g, &err));
}

static void speaker_finish(speaker *s) {
  berth_generator_destroy(s->g);
  test_context_done(s->ctx, &s->alloc);
}

static void feed(berth_generator *g, const char *text) {
  berth_error err;
  OK(berth_generator_feed(g, text, strlen(text), 0, &err));
}

static void speak(berth_generator *g, int n, int32_t *tokens) {
  berth_error err;
  for (int i = 0; i < n; i++) {
    berth_piece piece = BERTH_PIECE_INIT;
    OK(berth_generator_next(g, &piece, &err));
    tokens[i] = piece.token;
  }
}

static uint32_t count(const berth_generator *g) {
  berth_generator_info info = BERTH_GENERATOR_INFO_INIT;
  berth_error err;
  OK(berth_generator_get_info(g, &info, &err));
  return info.n_tokens;
}

/* ---- Reading and generating ---- */

static void chunks_do_not_change_what_comes(void **state) {
  (void)state;
  static const uint32_t chunks[] = {1, 3, 8, 64};
  int32_t want[20], got[20];
  for (size_t i = 0; i < sizeof chunks / sizeof chunks[0]; i++) {
    speaker s;
    berth_generator_desc desc = greedy();
    desc.chunk = chunks[i];
    speaker_start(&s, &desc);
    feed(s.g, TEXT);
    speak(s.g, 20, i == 0 ? want : got);
    if (i > 0) assert_memory_equal(got, want, sizeof want);
    speaker_finish(&s);
  }
}

static void every_device_says_the_same(void **state) {
  (void)state;
  const char *const devices[] = {"cpu", "interp", test_gpu()};
  int32_t want[20], got[20];
  for (size_t i = 0; i < 3; i++) {
    speaker s;
    berth_generator_desc desc = greedy();
    desc.device = devices[i];
    speaker_start(&s, &desc);
    feed(s.g, TEXT);
    speak(s.g, 20, i == 0 ? want : got);
    if (i > 0) assert_memory_equal(got, want, sizeof want);
    speaker_finish(&s);
  }
}

/* ---- Models in memory ---- */

typedef struct held {
  uint8_t *data;
  size_t size;
  uint32_t n_released;
} held;

static held hold(const char *name) {
  held file = {0};
  FILE *f = fopen(name, "rb");
  assert_non_null(f);
  fseek(f, 0, SEEK_END);
  file.size = (size_t)ftell(f);
  rewind(f);
  file.data = malloc(file.size);
  assert_int_equal(fread(file.data, 1, file.size, f), file.size);
  fclose(f);
  return file;
}

static void note_release(void *user, const void *data, size_t size) {
  held *file = user;
  assert_true(data == file->data && size == file->size);
  file->n_released++;
}

static void a_model_in_memory_says_the_same(void **state) {
  (void)state;
  speaker s;
  berth_error err;
  berth_generator *other, *fork;
  int32_t want[20], got[20];
  const berth_generator_desc desc = greedy();
  held file = hold(path);
  speaker_start(&s, &desc);
  feed(s.g, TEXT);
  speak(s.g, 20, want);
  OK(berth_generator_from_memory(s.ctx, file.data, file.size, note_release, &file, &desc, &other, &err));
  feed(other, TEXT);
  OK(berth_generator_fork(other, &fork, &err));
  speak(other, 20, got);
  assert_memory_equal(got, want, sizeof want);
  berth_generator_destroy(other);
  assert_int_equal(file.n_released, 0); /* the fork needs it */
  speak(fork, 20, got);
  assert_memory_equal(got, want, sizeof want);
  berth_generator_destroy(fork);
  assert_int_equal(file.n_released, 1);
  speaker_finish(&s);
  free(file.data);
}

static void memory_is_released_on_every_failure(void **state) {
  (void)state;
  berth_error err;
  berth_generator *g;
  held file = hold(path);
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  const berth_generator_desc desc = greedy();
  berth_generator_desc wrong = greedy();
  wrong.struct_size = 1;
#define REFUSED(ctx, desc, out, want)                                                                             \
  file.n_released = 0;                                                                                            \
  test_expect_error(berth_generator_from_memory(ctx, file.data, file.size, note_release, &file, desc, out, &err), \
                    want, &err, NULL);                                                                            \
  assert_int_equal(file.n_released, 1)
  REFUSED(NULL, &desc, &g, BERTH_INVALID);
  REFUSED(ctx, &desc, NULL, BERTH_INVALID);
  REFUSED(ctx, &wrong, &g, BERTH_INVALID);
  alloc.fail_at = alloc.calls + 1;
  REFUSED(ctx, &desc, &g, BERTH_NOMEM);
  alloc.fail_at = 0;
  file.size /= 2;
  REFUSED(ctx, &desc, &g, BERTH_MALFORMED);
#undef REFUSED
  test_context_done(ctx, &alloc);
  free(file.data);
}

static berth_plan_info plan_of(berth_graph *graph) {
  const berth_dim dims[] = {{"rows", 8}, {"ctx", 64}};
  berth_plan_desc desc = BERTH_PLAN_DESC_INIT;
  berth_plan_info info = BERTH_PLAN_INFO_INIT;
  berth_plan *plan;
  berth_error err;
  desc.dims = dims;
  desc.n_dims = berth_graph_n_dims(graph); /* vectors of texts have no ctx */
  OK(berth_plan_create(graph, &desc, &plan, &err));
  OK(berth_plan_get_info(plan, &info, &err));
  berth_plan_destroy(plan);
  return info;
}

static void expect_header_planned_like(const char *name) {
  char file_path[1024];
  berth_error err;
  berth_graph *whole, *begun = NULL;
  berth_context *ctx = test_context();
  berth_load_desc desc = BERTH_LOAD_DESC_INIT;
  snprintf(file_path, sizeof file_path, "%s", test_path("header.gguf"));
  toy_write(file_path, name);
  held file = hold(file_path);
  desc.file_size = file.size;
  size_t size = 64;
  berth_status status = BERTH_IO;
  for (; status == BERTH_IO; size += 64)
    status = berth_graph_from_memory_with(ctx, file.data, size, NULL, NULL, &desc, &begun, &err);
  OK(status);
  assert_true(size < file.size / 2);
  OK(berth_graph_load(ctx, file_path, &whole, &err));
  const berth_plan_info want = plan_of(whole), got = plan_of(begun);
  assert_int_equal(got.arena_size, want.arena_size);
  assert_int_equal(got.weights_size, want.weights_size);
  assert_int_equal(got.state_size, want.state_size);
  assert_int_equal(got.activations_size, want.activations_size);
  assert_int_equal(got.scratch_size, want.scratch_size);
  assert_int_equal(got.preparation_peak, want.preparation_peak);
  assert_int_equal(got.n_steps, want.n_steps);
  berth_graph_destroy(whole);
  berth_graph_destroy(begun);
  berth_context_destroy(ctx);
  free(file.data);
}

static void a_header_is_planned_like_its_file(void **state) {
  (void)state;
  for (uint32_t i = 0; toy_name(i) != NULL; i++) expect_header_planned_like(toy_name(i));
}

/* Half the bytes, or about a quarter; the toy's choices are clear enough for most. */
static void a_cache_may_be_smaller(void **state) {
  (void)state;
  static const berth_type types[] = {BERTH_F32, BERTH_F16, BERTH_BF16, BERTH_Q8_0};
  const char *const devices[] = {"cpu", test_gpu()};
  int32_t want[6], got[6];
  for (size_t d = 0; d < 2; d++)
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
      speaker s;
      berth_error err;
      berth_generator_info info = BERTH_GENERATOR_INFO_INIT;
      berth_generator_desc desc = greedy();
      desc.kv = types[i];
      desc.device = devices[d];
      speaker_start(&s, &desc);
      OK(berth_generator_get_info(s.g, &info, &err));
      const uint64_t row = berth_storage_bytes(berth_type_storage(types[i]), 32);
      assert_int_equal(info.state_size, 2 * 2 * 64 * row); /* layers, keys and values, rows of 32 columns */
      feed(s.g, TEXT);
      speak(s.g, 6, i == 0 ? want : got);
      if (types[i] == BERTH_F16 || types[i] == BERTH_Q8_0) assert_memory_equal(got, want, sizeof want);
      speaker_finish(&s);
    }
}

static void tokens_and_text_are_the_same_conversation(void **state) {
  (void)state;
  speaker s;
  berth_error err;
  int32_t want[8], got[8], tokens[64];
  const berth_generator_desc desc = greedy();
  speaker_start(&s, &desc);
  feed(s.g, TEXT);
  const uint32_t n = count(s.g);
  memcpy(tokens, berth_generator_tokens(s.g), n * sizeof *tokens);
  assert_int_equal(tokens[0], 1); /* bos */
  speak(s.g, 8, want);
  assert_int_equal(count(s.g), n + 8);
  berth_generator_reset(s.g);
  assert_int_equal(count(s.g), 0);
  OK(berth_generator_feed_tokens(s.g, tokens, n, &err));
  speak(s.g, 8, got);
  assert_memory_equal(got, want, sizeof want);
  speaker_finish(&s);
}

typedef struct scored {
  uint32_t n, vocabulary;
  float logits[64][512];
} scored;

static void keep_scores(void *user, uint32_t position, const float *logits, uint32_t n) {
  scored *s = user;
  assert_int_equal(position, s->n);
  assert_true(n <= 512);
  s->vocabulary = n;
  memcpy(s->logits[s->n++], logits, n * sizeof *logits);
}

static void every_token_has_scores(void **state) {
  (void)state;
  static scored all;
  speaker s, alone;
  berth_error err;
  int32_t tokens[64], want[8], got[8];
  size_t n = 0, cut = 0;
  berth_generator_desc desc = greedy();
  speaker_start(&alone, &desc);
  OK(berth_generator_encode(alone.g, TEXT, strlen(TEXT), 0, tokens, 64, &n, &err));
  OK(berth_generator_encode(alone.g, TEXT, strlen(TEXT), 0, tokens, 3, &cut, &err));
  assert_int_equal(cut, n);
  assert_true(n > 10);
  assert_int_equal(count(alone.g), 0);
  all.n = 0;
  desc.scores = keep_scores;
  desc.user = &all;
  speaker_start(&s, &desc); /* chunks of 8, of which the last is not full */
  feed(s.g, TEXT);
  assert_int_equal(all.n, n);
  assert_memory_equal(berth_generator_tokens(s.g), tokens, n * sizeof *tokens);
  for (size_t i = 0; i < n; i++) {
    const float *logits;
    uint32_t vocabulary;
    OK(berth_generator_feed_tokens(alone.g, &tokens[i], 1, &err));
    OK(berth_generator_logits(alone.g, &logits, &vocabulary, &err));
    assert_int_equal(vocabulary, all.vocabulary);
    for (uint32_t v = 0; v < vocabulary; v++) assert_float_equal(all.logits[i][v], logits[v], 1e-4);
  }
  berth_generator *fork = NULL;
  OK(berth_generator_fork(s.g, &fork, &err));
  speak(alone.g, 8, want);
  speak(fork, 8, got);
  assert_memory_equal(got, want, sizeof want);
  assert_int_equal(all.n, n + 7); /* the last one is not evaluated yet */
  berth_generator_destroy(fork);
  speaker_finish(&s);
  speaker_finish(&alone);
}

static void a_thousand_tokens_allocate_nothing(void **state) {
  (void)state;
  speaker s;
  berth_error err;
  berth_sampling_desc sampling = BERTH_SAMPLING_DESC_INIT;
  berth_generator_desc desc = greedy();
  desc.ctx = 1100;
  desc.chunk = 16;
  desc.sampling = &sampling;
  sampling.repeat_penalty = 1.1f;
  speaker_start(&s, &desc);
  feed(s.g, TEXT);
  const uint64_t calls = s.alloc.calls;
  for (int i = 0; i < 1000; i++) {
    berth_piece piece = BERTH_PIECE_INIT;
    OK(berth_generator_next(s.g, &piece, &err));
  }
  assert_int_equal(s.alloc.calls, calls);
  speaker_finish(&s);
}

static void pieces_are_the_text_of_their_tokens(void **state) {
  (void)state;
  speaker s;
  berth_error err;
  char text[256] = "";
  const berth_generator_desc desc = greedy();
  speaker_start(&s, &desc);
  feed(s.g, TEXT);
  for (int i = 0; i < 20; i++) {
    berth_piece piece = BERTH_PIECE_INIT;
    OK(berth_generator_next(s.g, &piece, &err));
    assert_int_equal(strlen(piece.text), piece.text_size);
    if (piece.is_end) assert_int_equal(piece.token, 2);
    strncat(text, piece.text, sizeof text - strlen(text) - 1);
  }
  assert_true(strlen(text) > 5);
  assert_null(strstr(text, "<s>"));
  speaker_finish(&s);
}

/* ---- Chats ---- */

static void note_total(void *user, uint32_t done, uint32_t total) {
  (void)done;
  *(uint32_t *)user = total;
}

static void expect_text(const berth_generator *g, const char *text) {
  speaker s;
  berth_error err;
  const berth_generator_desc desc = greedy();
  speaker_start(&s, &desc);
  OK(berth_generator_feed(s.g, text, strlen(text), BERTH_FEED_SPECIAL, &err));
  assert_int_equal(count(g), count(s.g));
  assert_memory_equal(berth_generator_tokens(g), berth_generator_tokens(s.g), count(g) * sizeof(int32_t));
  speaker_finish(&s);
}

static void a_chat_evaluates_what_is_new(void **state) {
  (void)state;
  speaker s;
  berth_error err;
  uint32_t total = 0;
  berth_message messages[3] = {{"user", "and the thing"}, {"assistant", "the ring"}, {"user", "in"}};
  berth_generator_desc desc = greedy();
  desc.progress = note_total;
  desc.user = &total;
  speaker_start(&s, &desc);
  OK(berth_generator_chat(s.g, messages, 1, &err));
  expect_text(s.g, "[user:and the thing][assistant:");
  const uint32_t first = count(s.g);
  assert_int_equal(total, first);
  feed(s.g, "the ring");
  OK(berth_generator_chat(s.g, messages, 3, &err));
  expect_text(s.g, "[user:and the thing][assistant:the ring][user:in][assistant:");
  assert_true(total < count(s.g) - first / 2);
  total = 0;
  OK(berth_generator_chat(s.g, messages, 3, &err)); /* nothing is new but the logits */
  assert_int_equal(total, 0);
  OK(berth_generator_chat(s.g, messages, 1, &err)); /* and what was said can be taken back */
  expect_text(s.g, "[user:and the thing][assistant:");
  test_expect_error(berth_generator_chat(s.g, messages, 0, &err), BERTH_INVALID, &err, "messages");
  messages[0].content = "the ring and the thing and the ring and the thing and the king and the singing of the thing";
  test_expect_error(berth_generator_chat(s.g, messages, 1, &err), BERTH_INFEASIBLE, &err, "room for 64");
  expect_text(s.g, "[user:and the thing][assistant:");
  speaker_finish(&s);
}

static void a_chat_that_slides_keeps_its_first_token(void **state) {
  (void)state;
  static const berth_message message = {"user", "the ring and the thing and the ring and the thing"};
  for (uint32_t capacity = 2; capacity <= 16; capacity++) {
    speaker s;
    berth_error err;
    int32_t tokens[4];
    berth_generator_desc desc = greedy();
    desc.flags = BERTH_GENERATOR_SLIDE;
    desc.ctx = capacity;
    speaker_start(&s, &desc);
    for (int i = 0; i < 2; i++) { /* the second time, all of it is there */
      OK(berth_generator_chat(s.g, &message, 1, &err));
      assert_int_equal(count(s.g), capacity < 4 ? 2 : capacity / 2);
      assert_int_equal(berth_generator_tokens(s.g)[0], 1);
    }
    speak(s.g, 4, tokens);
    speaker_finish(&s);
  }
}

/* ---- The end of the context ---- */

static void a_full_context_is_a_clear_error(void **state) {
  (void)state;
  speaker s;
  berth_error err;
  berth_piece piece = BERTH_PIECE_INIT;
  int32_t tokens[64] = {1};
  const berth_generator_desc desc = greedy();
  speaker_start(&s, &desc);
  OK(berth_generator_feed_tokens(s.g, tokens, 60, &err));
  test_expect_error(berth_generator_feed_tokens(s.g, tokens, 5, &err), BERTH_INFEASIBLE, &err,
                    "room for 64 tokens, 60 are in it, and 5 more are to come");
  assert_int_equal(count(s.g), 60);
  speak(s.g, 4, tokens);
  test_expect_error(berth_generator_next(s.g, &piece, &err), BERTH_INFEASIBLE, &err, "the context is full");
  assert_int_equal(piece.token, -1);
  assert_int_equal(count(s.g), 64);
  speaker_finish(&s);
}

static void a_sliding_context_goes_on(void **state) {
  (void)state;
  speaker s, fresh;
  int32_t tokens[200], before[64], want[1];
  berth_error err;
  berth_generator_desc desc = greedy();
  desc.flags = BERTH_GENERATOR_SLIDE;
  speaker_start(&s, &desc);
  feed(s.g, TEXT);
  speak(s.g, (int)(64 - count(s.g)), tokens);
  memcpy(before, berth_generator_tokens(s.g), sizeof before);
  speak(s.g, 1, tokens); /* bos, and the later half of the other 63, and one more */
  assert_int_equal(count(s.g), 1 + 31 + 1);
  assert_int_equal(berth_generator_tokens(s.g)[0], 1);
  assert_memory_equal(berth_generator_tokens(s.g) + 1, before + 33, 31 * sizeof *before);
  speaker_start(&fresh, &desc);
  OK(berth_generator_feed_tokens(fresh.g, berth_generator_tokens(s.g), 32, &err));
  speak(fresh.g, 1, want);
  assert_int_equal(tokens[0], want[0]);
  speak(s.g, 150, tokens);
  speaker_finish(&fresh);
  speaker_finish(&s);
}

/* ---- Several continuations ---- */

static void a_mark_is_gone_back_to_without_evaluating(void **state) {
  (void)state;
  speaker s;
  berth_error err;
  int32_t want[12], got[12];
  const berth_generator_desc desc = greedy();
  speaker_start(&s, &desc);
  test_expect_error(berth_generator_rewind(s.g, &err), BERTH_INVALID, &err, "no mark");
  feed(s.g, TEXT);
  OK(berth_generator_mark(s.g, &err));
  const uint32_t n = count(s.g);
  speak(s.g, 12, want);
  for (int i = 0; i < 2; i++) {
    OK(berth_generator_rewind(s.g, &err));
    assert_int_equal(count(s.g), n);
    feed(s.g, "other");
    OK(berth_generator_rewind(s.g, &err));
    speak(s.g, 12, got);
    assert_memory_equal(got, want, sizeof want);
  }
  speaker_finish(&s);
}

static void a_fork_goes_on_by_itself(void **state) {
  (void)state;
  speaker s;
  berth_error err;
  berth_generator *fork;
  int32_t want[12], got[12];
  const berth_generator_desc desc = greedy();
  speaker_start(&s, &desc);
  feed(s.g, TEXT);
  speak(s.g, 2, want);
  OK(berth_generator_fork(s.g, &fork, &err));
  speak(s.g, 12, want);
  speak(fork, 12, got);
  assert_memory_equal(got, want, sizeof want);
  berth_generator_destroy(fork);
  speaker_finish(&s);
}

static void a_cancelled_token_changes_nothing(void **state) {
  (void)state;
  speaker s;
  berth_error err;
  berth_context *ctx = test_context();
  berth_cancel *cancel;
  berth_piece piece = BERTH_PIECE_INIT;
  int32_t want[12], got[12];
  berth_generator_desc desc = greedy();
  OK(berth_cancel_create(ctx, &cancel, &err));
  desc.cancel = cancel;
  speaker_start(&s, &desc);
  feed(s.g, TEXT);
  OK(berth_generator_mark(s.g, &err));
  speak(s.g, 12, want);
  OK(berth_generator_rewind(s.g, &err));
  speak(s.g, 4, got);
  berth_cancel_request(cancel);
  test_expect_error(berth_generator_next(s.g, &piece, &err), BERTH_CANCELLED, &err, NULL);
  berth_cancel_clear(cancel);
  speak(s.g, 8, got + 4);
  assert_memory_equal(got, want, sizeof want);
  speaker_finish(&s);
  berth_cancel_destroy(cancel);
  berth_context_destroy(ctx);
}

typedef struct stop {
  berth_cancel *cancel;
  uint32_t after; /* tokens of a feed; 0: never */
} stop;

static void stop_after(void *user, uint32_t done, uint32_t total) {
  const stop *s = user;
  (void)total;
  if (s->after != 0 && done >= s->after) berth_cancel_request(s->cancel);
}

/* The logits are those of the same tokens in a fresh conversation. */
static void expect_true_logits(berth_generator *g) {
  speaker fresh;
  berth_error err;
  const float *got, *want;
  uint32_t n;
  const berth_generator_desc desc = greedy();
  speaker_start(&fresh, &desc);
  OK(berth_generator_feed_tokens(fresh.g, berth_generator_tokens(g), count(g), &err));
  OK(berth_generator_logits(fresh.g, &want, &n, &err));
  OK(berth_generator_logits(g, &got, &n, &err));
  for (uint32_t i = 0; i < n; i++) assert_true(fabsf(got[i] - want[i]) < 1e-4f);
  speaker_finish(&fresh);
}

static void a_cancelled_feed_keeps_what_was_there(void **state) {
  (void)state;
  speaker s;
  stop when = {0};
  berth_error err;
  berth_context *ctx = test_context();
  berth_generator_desc desc = greedy();
  int32_t token;
  OK(berth_cancel_create(ctx, &when.cancel, &err));
  desc.cancel = when.cancel;
  desc.progress = stop_after;
  desc.user = &when;
  speaker_start(&s, &desc);
  feed(s.g, TEXT);
  const uint32_t n = count(s.g);
  for (int spoken = 0; spoken < 2; spoken++) { /* the token that was said last is not evaluated yet */
    speak(s.g, spoken, &token);
    berth_cancel_request(when.cancel);
    test_expect_error(berth_generator_feed(s.g, TEXT, strlen(TEXT), 0, &err), BERTH_CANCELLED, &err, NULL);
    berth_cancel_clear(when.cancel);
    assert_int_equal(count(s.g), n + (uint32_t)spoken);
    if (spoken) assert_int_equal(berth_generator_tokens(s.g)[n], token);
    expect_true_logits(s.g);
  }
  when.after = 8; /* the first chunk is read */
  test_expect_error(berth_generator_feed(s.g, TEXT, strlen(TEXT), 0, &err), BERTH_CANCELLED, &err, NULL);
  berth_cancel_clear(when.cancel);
  when.after = 0;
  assert_int_equal(count(s.g), n + 1 + 8);
  OK(berth_generator_mark(s.g, &err));
  speak(s.g, 1, &token);
  OK(berth_generator_rewind(s.g, &err));
  expect_true_logits(s.g);
  OK(berth_generator_feed_tokens(s.g, NULL, 0, &err)); /* nothing */
  assert_int_equal(count(s.g), n + 1 + 8);
  expect_true_logits(s.g);
  speaker_finish(&s);
  berth_cancel_destroy(when.cancel);
  berth_context_destroy(ctx);
}

typedef struct breaker {
  berth_cancel *cancel;
  uint32_t left; /* steps until it is requested; 0: never */
} breaker;

static void break_after(void *user, uint32_t step, uint32_t node, const berth_tensor *out, uint32_t n_out, double ms) {
  breaker *b = user;
  (void)step, (void)node, (void)out, (void)n_out, (void)ms;
  if (b->left != 0 && --b->left == 0) berth_cancel_request(b->cancel);
}

/* In the middle of a run, which has written over the logits by then, or has not. */
static void a_run_that_is_cancelled_leaves_true_logits(void **state) {
  (void)state;
  speaker s;
  breaker b = {0};
  berth_error err;
  berth_context *ctx = test_context();
  berth_generator_desc desc = greedy();
  uint32_t n_cancelled = 0;
  OK(berth_cancel_create(ctx, &b.cancel, &err));
  desc.cancel = b.cancel;
  desc.chunk = 32;
  speaker_start(&s, &desc);
  berth_session_observe(s.g->session, break_after, &b);
  feed(s.g, TEXT);
  OK(berth_generator_mark(s.g, &err));
  const uint32_t n = count(s.g);
  for (uint32_t steps = 1; steps < 400; steps += 5) {
    OK(berth_generator_rewind(s.g, &err));
    b.left = steps;
    const berth_status status = berth_generator_feed(s.g, TEXT TEXT, strlen(TEXT TEXT), 0, &err);
    const bool is_over = b.left != 0;
    b.left = 0;
    berth_cancel_clear(b.cancel);
    if (is_over) break;
    if (status == BERTH_OK) continue; /* after the last step */
    assert_int_equal(status, BERTH_CANCELLED);
    assert_int_equal(count(s.g), n);
    expect_true_logits(s.g);
    n_cancelled++;
  }
  assert_true(n_cancelled > 2);
  speaker_finish(&s);
  berth_cancel_destroy(b.cancel);
  berth_context_destroy(ctx);
}

/* ---- Saving ---- */

static void *save(berth_generator *g, size_t *size) {
  berth_error err;
  *size = (size_t)berth_generator_save_size(g);
  void *bytes = malloc(*size);
  assert_non_null(bytes);
  OK(berth_generator_save(g, bytes, *size, &err));
  return bytes;
}

/* Another generator, of another size, draws the same tokens by the same logits. */
static void check_saved(const char *device, int spoken) {
  speaker a, b;
  berth_error err;
  size_t size;
  int32_t want[20], got[20];
  const float *logits;
  uint32_t n;
  static float kept[TOY_VOCABULARY];
  berth_sampling_desc sampling = BERTH_SAMPLING_DESC_INIT;
  berth_generator_desc desc = greedy();
  desc.sampling = &sampling;
  desc.device = device;
  sampling.seed = 7;
  speaker_start(&a, &desc);
  feed(a.g, TEXT);
  speak(a.g, spoken, want);
  void *bytes = save(a.g, &size);
  OK(berth_generator_logits(a.g, &logits, &n, &err));
  assert_int_equal(n, TOY_VOCABULARY);
  memcpy(kept, logits, sizeof kept);
  speak(a.g, 20, want);
  desc.ctx = 96;
  speaker_start(&b, &desc);
  feed(b.g, "something else");
  OK(berth_generator_load(b.g, bytes, size, &err));
  OK(berth_generator_logits(b.g, &logits, &n, &err));
  assert_memory_equal(logits, kept, sizeof kept);
  speak(b.g, 20, got);
  assert_memory_equal(got, want, sizeof want);
  free(bytes);
  speaker_finish(&a);
  speaker_finish(&b);
}

static void a_saved_conversation_goes_on_to_the_bit(void **state) {
  (void)state;
  check_saved("cpu", 0);
  check_saved("cpu", 5);
  check_saved(test_gpu(), 3);
}

static void bytes_that_are_no_conversation_are_refused(void **state) {
  (void)state;
  speaker s, small;
  berth_error err;
  size_t size;
  berth_generator_desc desc = greedy();
  speaker_start(&s, &desc);
  feed(s.g, TEXT);
  uint8_t *bytes = save(s.g, &size);
  test_expect_error(berth_generator_save(s.g, bytes, size - 1, &err), BERTH_INVALID, &err, "the conversation is");
  test_expect_error(berth_generator_load(s.g, bytes, 10, &err), BERTH_MALFORMED, &err, "10 bytes are no");
  test_expect_error(berth_generator_load(s.g, bytes, size - 1, &err), BERTH_MALFORMED, &err, "cut off");
  uint64_t seed = 5;
  for (int i = 0; i < 200; i++) { /* none of them may do more than fail, or load something else */
    const size_t at = (size_t)(test_random(&seed) % (i < 100 ? 48 : size));
    const uint8_t before = bytes[at];
    bytes[at] = (uint8_t)test_random(&seed);
    if (berth_generator_load(s.g, bytes, size, &err) == BERTH_OK) {
      int32_t token;
      speak(s.g, 1, &token);
    }
    bytes[at] = before;
  }
  bytes[0] ^= 1;
  test_expect_error(berth_generator_load(s.g, bytes, size, &err), BERTH_MALFORMED, &err, "no saved conversation");
  bytes[0] ^= 1, bytes[8] ^= 1;
  test_expect_error(berth_generator_load(s.g, bytes, size, &err), BERTH_INVALID, &err, "another model");
  bytes[8] ^= 1;
  desc.ctx = 4;
  speaker_start(&small, &desc);
  test_expect_error(berth_generator_load(small.g, bytes, size, &err), BERTH_INFEASIBLE, &err, "room for 4");
  speaker_finish(&small);
  free(bytes);
  speaker_finish(&s);
}

#define HEAD 48       /* bytes before the tokens */
#define HAS_LOGITS 36 /* where the head says it */

/* They are made again. */
static void a_conversation_saved_without_logits_goes_on(void **state) {
  (void)state;
  speaker s;
  berth_error err;
  size_t size;
  const size_t logits = TOY_VOCABULARY * sizeof(float);
  const berth_generator_desc desc = greedy();
  speaker_start(&s, &desc);
  feed(s.g, TEXT);
  uint8_t *bytes = save(s.g, &size);
  const size_t at = HEAD + count(s.g) * sizeof(int32_t);
  assert_int_equal(bytes[HAS_LOGITS], 1);
  for (size_t i = HAS_LOGITS + 8; i < HEAD; i++) assert_int_equal(bytes[i], 0);
  bytes[HAS_LOGITS] = 0;
  memmove(bytes + at, bytes + at + logits, size - at - logits);
  feed(s.g, "other");
  OK(berth_generator_load(s.g, bytes, size - logits, &err));
  expect_true_logits(s.g);
  bytes[HEAD - 1] = 1;
  test_expect_error(berth_generator_load(s.g, bytes, size - logits, &err), BERTH_MALFORMED, &err, "not whole");
  free(bytes);
  speaker_finish(&s);
}

/* The toy with another name, or with other bytes at its end, which is a matrix. */
static void write_changed(const char *to, const char *name, uint8_t flip, size_t n_flipped) {
  static char bytes[1 << 20];
  static const char old[] = "a toy that talks";
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  const size_t size = fread(bytes, 1, sizeof bytes, file);
  fclose(file);
  assert_true(size < sizeof bytes && strlen(name) == strlen(old));
  char *found = memmem(bytes, size, old, strlen(old));
  assert_non_null(found);
  memcpy(found, name, strlen(name));
  for (size_t i = size - n_flipped; i < size; i++) bytes[i] = (char)((uint8_t)bytes[i] | flip);
  test_write_file(to, bytes, size);
}

static void other_models_are_told_apart(void **state) {
  (void)state;
  speaker s;
  berth_error err;
  size_t size;
  char other[1024];
  const berth_generator_desc desc = greedy();
  snprintf(other, sizeof other, "%s", test_path("other.gguf"));
  speaker_start(&s, &desc);
  feed(s.g, TEXT);
  void *bytes = save(s.g, &size);
  for (int i = 0; i < 3; i++) {
    berth_generator *g;
    write_changed(other, i == 1 ? "a toy that walks" : "a toy that talks", 1, i == 2 ? 4096 : 0);
    OK(berth_generator_create(s.ctx, other, &desc, &g, &err));
    if (i == 0)
      OK(berth_generator_load(g, bytes, size, &err));
    else
      test_expect_error(berth_generator_load(g, bytes, size, &err), BERTH_INVALID, &err, "another model");
    berth_generator_destroy(g);
  }
  free(bytes);
  speaker_finish(&s);
}

/* ---- Errors ---- */

static void a_model_that_gives_no_numbers_says_nothing(void **state) {
  (void)state;
  berth_error err;
  char broken[1024];
  berth_context *ctx = test_context();
  berth_generator *g;
  berth_piece piece = BERTH_PIECE_INIT;
  const berth_generator_desc desc = greedy();
  snprintf(broken, sizeof broken, "%s", test_path("broken.gguf"));
  write_changed(broken, "a toy that talks", 0xff, TOY_WIDTH * TOY_HIDDEN * sizeof(float));
  OK(berth_generator_create(ctx, broken, &desc, &g, &err));
  feed(g, TEXT);
  test_expect_error(berth_generator_next(g, &piece, &err), BERTH_MALFORMED, &err, "is a number: the model is broken");
  berth_generator_destroy(g);
  berth_context_destroy(ctx);
}

static void expect_no_generator(const char *file, const berth_generator_desc *desc, berth_status status,
                                const char *part) {
  berth_context *ctx = test_context();
  berth_generator *g;
  berth_error err;
  test_expect_error(berth_generator_create(ctx, file, desc, &g, &err), status, &err, part);
  assert_null(g);
  berth_context_destroy(ctx);
}

static void what_cannot_be_is_refused(void **state) {
  (void)state;
  speaker s;
  berth_error err;
  berth_piece piece = BERTH_PIECE_INIT;
  berth_generator_desc desc = greedy();
  speaker_start(&s, &desc);
  test_expect_error(berth_generator_next(s.g, &piece, &err), BERTH_INVALID, &err, "feed it something first");
  test_expect_error(berth_generator_feed_tokens(s.g, (const int32_t[]){80}, 1, &err), BERTH_INVALID, &err, "token 80");
  test_expect_error(berth_generator_feed_tokens(s.g, (const int32_t[]){-1}, 1, &err), BERTH_INVALID, &err, "token -1");
  speaker_finish(&s);
  desc.kv = BERTH_Q4_0;
  expect_no_generator(path, &desc, BERTH_UNSUPPORTED, "a cache may be f32, f16, bf16 or q8_0, not q4_0");
  desc = greedy();
  desc.ctx = 1;
  desc.flags = BERTH_GENERATOR_SLIDE;
  expect_no_generator(path, &desc, BERTH_INVALID, "a context that slides needs room for 2 tokens");
  desc = greedy();
  desc.device = "abacus";
  expect_no_generator(path, &desc, BERTH_UNSUPPORTED, "abacus");
  expect_no_generator("nowhere.gguf", NULL, BERTH_IO, "nowhere.gguf");
  char bert[1024];
  snprintf(bert, sizeof bert, "%s", test_path("bert.gguf"));
  toy_write(bert, "bert");
  expect_no_generator(bert, NULL, BERTH_UNSUPPORTED, "makes vectors of texts");
}

/* ---- Vectors of texts ---- */

/* Says of itself that it takes 2^31 - 1 tokens, which costs nothing before somebody has a text so long. */
static void write_long(const char *to) {
  static char bytes[1 << 20];
  static const char key[] = "nomic-bert.context_length\x04\0\0";
  const int32_t most = INT32_MAX;
  toy_write(to, "nomic-bert/text");
  FILE *file = fopen(to, "rb");
  assert_non_null(file);
  const size_t size = fread(bytes, 1, sizeof bytes, file);
  fclose(file);
  char *found = memmem(bytes, size, key, sizeof key);
  assert_non_null(found);
  memcpy(found + sizeof key, &most, sizeof most);
  test_write_file(to, bytes, size);
}

static void an_embedder_takes_what_its_texts_need(void **state) {
  (void)state;
  test_alloc alloc = {0};
  berth_error err;
  berth_embedder *e;
  float first[TOY_WIDTH], longer[TOY_WIDTH], again[TOY_WIDTH];
  char file[1024];
  snprintf(file, sizeof file, "%s", test_path("long.gguf"));
  write_long(file);
  berth_context *ctx = test_context_counting(&alloc);
  OK(berth_embedder_create(ctx, file, NULL, &e, &err));
  OK(berth_embedder_embed(e, "the ring", 8, first, TOY_WIDTH, &err));
  OK(berth_embedder_embed(e, TEXT TEXT TEXT, strlen(TEXT TEXT TEXT), longer, TOY_WIDTH, &err));
  OK(berth_embedder_embed(e, "the ring", 8, again, TOY_WIDTH, &err));
  assert_memory_equal(again, first, sizeof first);
  assert_memory_not_equal(longer, first, sizeof first);
  assert_true(alloc.peak_bytes < (uint64_t)64 << 20);
  berth_embedder_destroy(e);
  toy_write(file, "nomic-bert/few");
  test_expect_error(berth_embedder_create(ctx, file, NULL, &e, &err), BERTH_MALFORMED, &err,
                    "the tokenizer has 80 tokens, and the model 79");
  test_context_done(ctx, &alloc);
}

/* Every 41st allocation: there are a few thousand. */
static void creating_survives_failed_allocations(void **state) {
  (void)state;
  uint64_t calls = UINT64_MAX;
  for (uint64_t at = 1; at < calls; at += 41) {
    test_alloc alloc = {0};
    berth_error err;
    berth_generator *g;
    const berth_generator_desc desc = greedy();
    berth_context *ctx = test_context_counting(&alloc);
    const uint64_t before = alloc.calls;
    alloc.fail_at = at;
    const berth_status status = berth_generator_create(ctx, path, &desc, &g, &err);
    if (alloc.failed == 0) calls = 0;
    assert_true(status == BERTH_OK || status == BERTH_NOMEM);
    assert_true(alloc.calls >= before);
    alloc.fail_at = 0;
    berth_generator_destroy(g);
    test_context_done(ctx, &alloc);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(chunks_do_not_change_what_comes),
      cmocka_unit_test(every_device_says_the_same),
      cmocka_unit_test(a_model_in_memory_says_the_same),
      cmocka_unit_test(memory_is_released_on_every_failure),
      cmocka_unit_test(a_header_is_planned_like_its_file),
      cmocka_unit_test(a_cache_may_be_smaller),
      cmocka_unit_test(tokens_and_text_are_the_same_conversation),
      cmocka_unit_test(every_token_has_scores),
      cmocka_unit_test(a_thousand_tokens_allocate_nothing),
      cmocka_unit_test(pieces_are_the_text_of_their_tokens),
      cmocka_unit_test(a_chat_evaluates_what_is_new),
      cmocka_unit_test(a_chat_that_slides_keeps_its_first_token),
      cmocka_unit_test(a_full_context_is_a_clear_error),
      cmocka_unit_test(a_sliding_context_goes_on),
      cmocka_unit_test(a_mark_is_gone_back_to_without_evaluating),
      cmocka_unit_test(a_fork_goes_on_by_itself),
      cmocka_unit_test(a_cancelled_token_changes_nothing),
      cmocka_unit_test(a_cancelled_feed_keeps_what_was_there),
      cmocka_unit_test(a_run_that_is_cancelled_leaves_true_logits),
      cmocka_unit_test(a_saved_conversation_goes_on_to_the_bit),
      cmocka_unit_test(bytes_that_are_no_conversation_are_refused),
      cmocka_unit_test(a_conversation_saved_without_logits_goes_on),
      cmocka_unit_test(other_models_are_told_apart),
      cmocka_unit_test(a_model_that_gives_no_numbers_says_nothing),
      cmocka_unit_test(what_cannot_be_is_refused),
      cmocka_unit_test(an_embedder_takes_what_its_texts_need),
      cmocka_unit_test(creating_survives_failed_allocations),
  };
  return cmocka_run_group_tests(tests, write_toys, NULL);
}
