/* Conversations that are taken back, forked, cancelled, saved and loaded. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "generate/generator.h"
#include "speaker.h"
#include "toy.h"

#define OK(expr) TEST_OK(expr)

/* ---- Several continuations ---- */

static void a_mark_is_gone_back_to_without_evaluating(void **state) {
  (void)state;
  speaker s;
  berth_error err;
  int32_t want[12], got[12];
  const berth_generator_desc desc = speaker_greedy();
  speaker_start(&s, &desc);
  test_expect_error(berth_generator_rewind(s.g, &err), BERTH_INVALID, &err, "no mark");
  speaker_feed(s.g, SPEAKER_TEXT);
  OK(berth_generator_mark(s.g, &err));
  const uint32_t n = speaker_count(s.g);
  speaker_speak(s.g, 12, want);
  for (int i = 0; i < 2; i++) {
    OK(berth_generator_rewind(s.g, &err));
    assert_int_equal(speaker_count(s.g), n);
    speaker_feed(s.g, "other");
    OK(berth_generator_rewind(s.g, &err));
    speaker_speak(s.g, 12, got);
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
  const berth_generator_desc desc = speaker_greedy();
  speaker_start(&s, &desc);
  speaker_feed(s.g, SPEAKER_TEXT);
  speaker_speak(s.g, 2, want);
  OK(berth_generator_fork(s.g, &fork, &err));
  speaker_speak(s.g, 12, want);
  speaker_speak(fork, 12, got);
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
  berth_generator_desc desc = speaker_greedy();
  OK(berth_cancel_create(ctx, &cancel, &err));
  desc.cancel = cancel;
  speaker_start(&s, &desc);
  speaker_feed(s.g, SPEAKER_TEXT);
  OK(berth_generator_mark(s.g, &err));
  speaker_speak(s.g, 12, want);
  OK(berth_generator_rewind(s.g, &err));
  speaker_speak(s.g, 4, got);
  berth_cancel_request(cancel);
  test_expect_error(berth_generator_next(s.g, &piece, &err), BERTH_CANCELLED, &err, NULL);
  berth_cancel_clear(cancel);
  speaker_speak(s.g, 8, got + 4);
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
  const berth_generator_desc desc = speaker_greedy();
  speaker_start(&fresh, &desc);
  OK(berth_generator_feed_tokens(fresh.g, berth_generator_tokens(g), speaker_count(g), &err));
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
  berth_generator_desc desc = speaker_greedy();
  int32_t token;
  OK(berth_cancel_create(ctx, &when.cancel, &err));
  desc.cancel = when.cancel;
  desc.progress = stop_after;
  desc.user = &when;
  speaker_start(&s, &desc);
  speaker_feed(s.g, SPEAKER_TEXT);
  const uint32_t n = speaker_count(s.g);
  for (int spoken = 0; spoken < 2; spoken++) { /* the token that was said last is not evaluated yet */
    speaker_speak(s.g, spoken, &token);
    berth_cancel_request(when.cancel);
    test_expect_error(berth_generator_feed(s.g, SPEAKER_TEXT, strlen(SPEAKER_TEXT), 0, &err), BERTH_CANCELLED, &err,
                      NULL);
    berth_cancel_clear(when.cancel);
    assert_int_equal(speaker_count(s.g), n + (uint32_t)spoken);
    if (spoken) assert_int_equal(berth_generator_tokens(s.g)[n], token);
    expect_true_logits(s.g);
  }
  when.after = 8; /* the first chunk is read */
  test_expect_error(berth_generator_feed(s.g, SPEAKER_TEXT, strlen(SPEAKER_TEXT), 0, &err), BERTH_CANCELLED, &err,
                    NULL);
  berth_cancel_clear(when.cancel);
  when.after = 0;
  assert_int_equal(speaker_count(s.g), n + 1 + 8);
  OK(berth_generator_mark(s.g, &err));
  speaker_speak(s.g, 1, &token);
  OK(berth_generator_rewind(s.g, &err));
  expect_true_logits(s.g);
  OK(berth_generator_feed_tokens(s.g, NULL, 0, &err)); /* nothing */
  assert_int_equal(speaker_count(s.g), n + 1 + 8);
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
  berth_generator_desc desc = speaker_greedy();
  uint32_t n_cancelled = 0;
  OK(berth_cancel_create(ctx, &b.cancel, &err));
  desc.cancel = b.cancel;
  desc.chunk = 32;
  speaker_start(&s, &desc);
  berth_session_observe(s.g->session, break_after, &b);
  speaker_feed(s.g, SPEAKER_TEXT);
  OK(berth_generator_mark(s.g, &err));
  const uint32_t n = speaker_count(s.g);
  for (uint32_t steps = 1; steps < 400; steps += 5) {
    OK(berth_generator_rewind(s.g, &err));
    b.left = steps;
    const berth_status status =
        berth_generator_feed(s.g, SPEAKER_TEXT SPEAKER_TEXT, strlen(SPEAKER_TEXT SPEAKER_TEXT), 0, &err);
    const bool is_over = b.left != 0;
    b.left = 0;
    berth_cancel_clear(b.cancel);
    if (is_over) break;
    if (status == BERTH_OK) continue; /* after the last step */
    assert_int_equal(status, BERTH_CANCELLED);
    assert_int_equal(speaker_count(s.g), n);
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
  berth_generator_desc desc = speaker_greedy();
  desc.sampling = &sampling;
  desc.device = device;
  sampling.seed = 7;
  speaker_start(&a, &desc);
  speaker_feed(a.g, SPEAKER_TEXT);
  speaker_speak(a.g, spoken, want);
  void *bytes = save(a.g, &size);
  OK(berth_generator_logits(a.g, &logits, &n, &err));
  assert_int_equal(n, TOY_VOCABULARY);
  memcpy(kept, logits, sizeof kept);
  speaker_speak(a.g, 20, want);
  desc.ctx = 96;
  speaker_start(&b, &desc);
  speaker_feed(b.g, "something else");
  OK(berth_generator_load(b.g, bytes, size, &err));
  OK(berth_generator_logits(b.g, &logits, &n, &err));
  assert_memory_equal(logits, kept, sizeof kept);
  speaker_speak(b.g, 20, got);
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
  berth_generator_desc desc = speaker_greedy();
  speaker_start(&s, &desc);
  speaker_feed(s.g, SPEAKER_TEXT);
  uint8_t *bytes = save(s.g, &size);
  test_expect_error(berth_generator_save(s.g, bytes, size - 1, &err), BERTH_INVALID, &err, "the conversation is");
  test_expect_error(berth_generator_load(s.g, bytes, 10, &err), BERTH_MALFORMED, &err, "10 bytes are no");
  test_expect_error(berth_generator_load(s.g, bytes, size - 1, &err), BERTH_MALFORMED, &err, "truncated or damaged");
  uint64_t seed = 5;
  for (int i = 0; i < 200; i++) { /* none of them may do more than fail, or load something else */
    const size_t at = (size_t)(test_random(&seed) % (i < 100 ? 48 : size));
    const uint8_t before = bytes[at];
    bytes[at] = (uint8_t)test_random(&seed);
    if (berth_generator_load(s.g, bytes, size, &err) == BERTH_OK) {
      int32_t token;
      speaker_speak(s.g, 1, &token);
    }
    bytes[at] = before;
  }
  bytes[0] ^= 1;
  test_expect_error(berth_generator_load(s.g, bytes, size, &err), BERTH_MALFORMED, &err,
                    "are not a saved conversation");
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
  const berth_generator_desc desc = speaker_greedy();
  speaker_start(&s, &desc);
  speaker_feed(s.g, SPEAKER_TEXT);
  uint8_t *bytes = save(s.g, &size);
  const size_t at = HEAD + speaker_count(s.g) * sizeof(int32_t);
  assert_int_equal(bytes[HAS_LOGITS], 1);
  for (size_t i = HAS_LOGITS + 8; i < HEAD; i++) assert_int_equal(bytes[i], 0);
  bytes[HAS_LOGITS] = 0;
  memmove(bytes + at, bytes + at + logits, size - at - logits);
  speaker_feed(s.g, "other");
  OK(berth_generator_load(s.g, bytes, size - logits, &err));
  expect_true_logits(s.g);
  bytes[HEAD - 1] = 1;
  test_expect_error(berth_generator_load(s.g, bytes, size - logits, &err), BERTH_MALFORMED, &err,
                    "truncated or damaged");
  free(bytes);
  speaker_finish(&s);
}

static void other_models_are_told_apart(void **state) {
  (void)state;
  speaker s;
  berth_error err;
  size_t size;
  char other[1024];
  const berth_generator_desc desc = speaker_greedy();
  snprintf(other, sizeof other, "%s", test_path("other.gguf"));
  speaker_start(&s, &desc);
  speaker_feed(s.g, SPEAKER_TEXT);
  void *bytes = save(s.g, &size);
  for (int i = 0; i < 3; i++) {
    berth_generator *g;
    speaker_write_changed(other, i == 1 ? "a toy that walks" : "a toy that talks", 1, i == 2 ? 4096 : 0);
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

/* ---- Rings: layers that see six tokens, and convolutions over three ---- */

#define RING_WINDOW 6

static const char *ring_path(const char *toy) {
  static char file[1024];
  snprintf(file, sizeof file, "%s", test_path("rings.gguf"));
  toy_write(file, toy);
  return file;
}

/* The logits after so many tokens, of a generator that has read nothing else. */
static void ring_expect(berth_generator *g, const char *toy, const berth_generator_desc *desc) {
  speaker fresh;
  berth_error err;
  const float *got, *want;
  uint32_t n;
  speaker_start_with(&fresh, ring_path(toy), desc);
  OK(berth_generator_feed_tokens(fresh.g, berth_generator_tokens(g), speaker_count(g), &err));
  OK(berth_generator_logits(g, &got, &n, &err));
  OK(berth_generator_logits(fresh.g, &want, &n, &err));
  for (uint32_t i = 0; i < n; i++) assert_true(fabsf(got[i] - want[i]) < 1e-4f);
  speaker_finish(&fresh);
}

static void rings_keep_what_a_chunk_sees(void **state) {
  static const uint32_t chunks[] = {1, 4, 8, 64};
  int32_t want[30], got[30];
  (void)state;
  for (size_t i = 0; i < sizeof chunks / sizeof chunks[0]; i++) {
    speaker s;
    berth_error err;
    berth_generator_info info = BERTH_GENERATOR_INFO_INIT;
    berth_generator_desc desc = speaker_greedy();
    desc.chunk = chunks[i];
    speaker_start_with(&s, ring_path("gemma3/text"), &desc);
    OK(berth_generator_get_info(s.g, &info, &err));
    const uint64_t rows = chunks[i] + RING_WINDOW - 1 < 64 ? chunks[i] + RING_WINDOW - 1 : 64;
    /* six layers of seven are rings; keys and values of two heads of 32 */
    assert_int_equal(info.state_size, (6 * rows + 64) * 2 * 64 * sizeof(uint16_t));
    speaker_feed(s.g, SPEAKER_TEXT);
    speaker_speak(s.g, 30, i == 0 ? want : got);
    if (i > 0) assert_memory_equal(got, want, sizeof want);
    speaker_finish(&s);
  }
}

/* What was written over comes from the mark, or is evaluated again. */
static void rings_are_gone_back_to(void **state) {
  speaker s;
  berth_error err;
  int32_t first[20], again[20];
  const berth_generator_desc desc = speaker_greedy();
  speaker_start_with(&s, ring_path(*state), &desc);
  speaker_feed(s.g, SPEAKER_TEXT);
  OK(berth_generator_mark(s.g, &err));
  const uint32_t n_marked = speaker_count(s.g);
  speaker_speak(s.g, 20, first);
  for (int i = 0; i < 2; i++) {
    OK(berth_generator_rewind(s.g, &err));
    assert_int_equal(s.g->n_evaluated, n_marked);
    speaker_speak(s.g, 20, again);
    assert_memory_equal(again, first, sizeof first);
  }
  const uint32_t n = s.g->n_evaluated;
  berth__generator_cut(s.g, n - 3, NULL); /* a few tokens back is within the ring */
  assert_int_equal(s.g->n_evaluated, n - 3);
  OK(berth_generator_feed_tokens(s.g, first, 2, &err));
  ring_expect(s.g, *state, &desc);
  berth__generator_cut(s.g, n_marked + 1, NULL); /* so far is not */
  assert_int_equal(s.g->n_evaluated, 0);
  OK(berth_generator_feed_tokens(s.g, first, 1, &err));
  ring_expect(s.g, *state, &desc);
  speaker_finish(&s);
}

/* Then the rings hold the tokens that were evaluated, not those of the mark. */
static void rings_after_a_cancelled_evaluation(void **state) {
  speaker s;
  stop when = {0};
  berth_error err;
  int32_t spoken[20];
  berth_context *ctx = test_context();
  berth_generator_desc desc = speaker_greedy();
  OK(berth_cancel_create(ctx, &when.cancel, &err));
  desc.cancel = when.cancel;
  desc.progress = stop_after;
  desc.user = &when;
  speaker_start_with(&s, ring_path(*state), &desc);
  for (int i = 0; i < 2; i++) speaker_feed(s.g, SPEAKER_TEXT); /* more than the rings have rows */
  OK(berth_generator_mark(s.g, &err));
  const uint32_t n_marked = speaker_count(s.g);
  assert_true(n_marked > desc.chunk + RING_WINDOW - 1 + desc.chunk);
  speaker_speak(s.g, 20, spoken);
  berth__generator_cut(s.g, n_marked + 1, NULL); /* farther than the rings go back */
  when.after = 1;
  test_expect_error(berth_generator_feed_tokens(s.g, spoken, 1, &err), BERTH_CANCELLED, &err, NULL);
  berth_cancel_clear(when.cancel);
  when.after = 0;
  assert_int_equal(s.g->n_evaluated, desc.chunk);
  OK(berth_generator_rewind(s.g, &err));
  assert_int_equal(speaker_count(s.g), n_marked);
  ring_expect(s.g, *state, &desc);
  speaker_finish(&s);
  berth_cancel_destroy(when.cancel);
  berth_context_destroy(ctx);
}

static void rings_slide_and_are_saved(void **state) {
  static const uint32_t chunks[] = {8, 3}; /* the loader's ring is as long, or shorter */
  int32_t tokens[80], want[10], got[10];
  for (size_t i = 0; i < 2; i++) {
    speaker s, other;
    berth_error err;
    size_t size;
    berth_generator_desc desc = speaker_greedy();
    desc.flags = BERTH_GENERATOR_SLIDE;
    speaker_start_with(&s, ring_path(*state), &desc);
    speaker_feed(s.g, SPEAKER_TEXT);
    speaker_speak(s.g, 80, tokens); /* which slides */
    ring_expect(s.g, *state, &desc);
    void *bytes = save(s.g, &size);
    speaker_speak(s.g, 10, want);
    desc.chunk = chunks[i];
    speaker_start_with(&other, ring_path(*state), &desc);
    OK(berth_generator_load(other.g, bytes, size, &err));
    if (i == 0) { /* the last token again: its row alone is gone back over */
      other.g->has_logits = false;
      const float *logits;
      uint32_t n;
      OK(berth_generator_logits(other.g, &logits, &n, &err));
      assert_true(other.g->intact != 0);
    }
    speaker_speak(other.g, 10, got);
    assert_memory_equal(got, want, sizeof want);
    free(bytes);
    speaker_finish(&other);
    speaker_finish(&s);
  }
}

#define RINGS(test) cmocka_unit_test_prestate(test, "gemma3/text"), cmocka_unit_test_prestate(test, "lfm2/text")

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_mark_is_gone_back_to_without_evaluating),
      cmocka_unit_test(a_fork_goes_on_by_itself),
      cmocka_unit_test(a_cancelled_token_changes_nothing),
      cmocka_unit_test(a_cancelled_feed_keeps_what_was_there),
      cmocka_unit_test(a_run_that_is_cancelled_leaves_true_logits),
      cmocka_unit_test(a_saved_conversation_goes_on_to_the_bit),
      cmocka_unit_test(bytes_that_are_no_conversation_are_refused),
      cmocka_unit_test(a_conversation_saved_without_logits_goes_on),
      cmocka_unit_test(other_models_are_told_apart),
      cmocka_unit_test(rings_keep_what_a_chunk_sees),
      RINGS(rings_are_gone_back_to),
      RINGS(rings_after_a_cancelled_evaluation),
      RINGS(rings_slide_and_are_saved),
  };
  return cmocka_run_group_tests(tests, speaker_write, NULL);
}
