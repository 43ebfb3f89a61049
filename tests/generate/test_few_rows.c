/* Texts of few tokens: they are read in runs of few rows where that is faster, and the logits are those of a chunk. */
#include <math.h>
#include <stdio.h>

#include "generate/generator.h"
#include "speaker.h"
#include "toy.h"

static char path[1024];

/* 3.3 MB, most of it q8_0: few rows are worth it from 3 tokens on. */
static int write_model(void **state) {
  (void)state;
  snprintf(path, sizeof path, "%s", test_path("few.gguf"));
  toy_write(path, "llama/blocks");
  return 0;
}

static void note_run(void *user, uint32_t done, uint32_t total) {
  (void)done;
  (void)total;
  ++*(uint32_t *)user;
}

static berth_generator_desc reads(uint32_t chunk, uint32_t *n_runs) {
  berth_generator_desc desc = speaker_greedy();
  desc.chunk = chunk;
  desc.ctx = 128;
  desc.kv = BERTH_F32;
  desc.progress = note_run;
  desc.user = n_runs;
  return desc;
}

static void feed(berth_generator *g, uint32_t n) {
  int32_t tokens[128];
  berth_error err;
  for (uint32_t i = 0; i < n; i++) tokens[i] = 3 + (int32_t)(i * 7 % 70);
  TEST_OK(berth_generator_feed_tokens(g, tokens, n, &err));
}

static void short_texts_are_read_in_few_runs(void **state) {
  static const uint32_t tokens_runs[][2] = {{3, 1},  {16, 1}, {17, 2}, {19, 2}, {32, 2}, {33, 1},
                                            {64, 1}, {66, 3}, {67, 2}, {97, 2}, {125, 2}};
  uint32_t n_runs = 0;
  speaker s;
  (void)state;
  const berth_generator_desc desc = reads(64, &n_runs);
  speaker_start_with(&s, path, &desc);
  assert_int_equal(s.g->few_from, 3);
  for (size_t i = 0; i < sizeof tokens_runs / sizeof tokens_runs[0]; i++) {
    berth_generator_reset(s.g);
    n_runs = 0;
    const uint64_t calls = s.alloc.calls;
    feed(s.g, tokens_runs[i][0]);
    assert_int_equal(n_runs, tokens_runs[i][1]);
    assert_int_equal(s.alloc.calls, calls);
  }
  speaker_finish(&s);
}

/* 60 tokens leave room for 4, which is less than few rows take. */
static void a_full_context_is_read_to_its_end(void **state) {
  uint32_t n_runs = 0;
  speaker s;
  (void)state;
  berth_generator_desc desc = reads(32, &n_runs);
  desc.ctx = 64;
  speaker_start_with(&s, path, &desc);
  feed(s.g, 60);
  assert_int_equal(n_runs, 2);
  feed(s.g, 4);
  assert_int_equal(n_runs, 6);
  speaker_finish(&s);
}

static void the_logits_are_those_of_a_chunk(void **state) {
  static const uint32_t counts[] = {3, 15, 16, 20};
  uint32_t n_runs = 0;
  speaker few, whole;
  berth_error err;
  (void)state;
  const berth_generator_desc a = reads(64, &n_runs), b = reads(8, &n_runs); /* 8: no third binding */
  speaker_start_with(&few, path, &a);
  speaker_start_with(&whole, path, &b);
  assert_int_equal(whole.g->few, 0);
  for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
    const float *got, *want;
    uint32_t n;
    berth_generator_reset(few.g);
    berth_generator_reset(whole.g);
    feed(few.g, counts[i]);
    feed(whole.g, counts[i]);
    TEST_OK(berth_generator_logits(few.g, &got, &n, &err));
    TEST_OK(berth_generator_logits(whole.g, &want, &n, &err));
    for (uint32_t v = 0; v < n; v++) assert_true(fabsf(got[v] - want[v]) < 1e-4f);
  }
  speaker_finish(&few);
  speaker_finish(&whole);
}

/* The third binding fits into what a chunk takes. */
static void the_arena_is_that_of_a_chunk(void **state) {
  uint32_t n_runs = 0;
  berth_error err;
  berth_dim dims[BERTH_GENERATOR_DIMS];
  berth_plan_desc desc = BERTH_PLAN_DESC_INIT;
  berth_plan_info info = BERTH_PLAN_INFO_INIT;
  berth_plan *plan;
  speaker s;
  (void)state;
  const berth_generator_desc how = reads(64, &n_runs);
  speaker_start_with(&s, path, &how);
  assert_int_equal(s.g->few, 16);
  desc.dims = dims;
  desc.n_dims = berth_generator_dims(s.g->graph, how.ctx, how.chunk, how.chunk, dims);
  desc.n_threads = berth_session_n_threads(s.g->session);
  TEST_OK(berth_plan_create(s.g->graph, &desc, &plan, &err));
  TEST_OK(berth_plan_get_info(plan, &info, &err));
  assert_int_equal(berth_arena_size(s.g->session->arena), info.arena_size);
  berth_plan_destroy(plan);
  speaker_finish(&s);
}

/* A small model stays in the caches: there is nothing to share. */
static void a_small_model_needs_none(void **state) {
  uint32_t n_runs = 0;
  char small[1024];
  speaker s;
  (void)state;
  snprintf(small, sizeof small, "%s", test_path("small.gguf"));
  toy_write(small, "llama/text");
  const berth_generator_desc desc = reads(64, &n_runs);
  speaker_start_with(&s, small, &desc);
  assert_int_equal(s.g->few, 0);
  feed(s.g, 5);
  assert_int_equal(n_runs, 5);
  speaker_finish(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(short_texts_are_read_in_few_runs), cmocka_unit_test(a_full_context_is_read_to_its_end),
      cmocka_unit_test(the_logits_are_those_of_a_chunk),  cmocka_unit_test(the_arena_is_that_of_a_chunk),
      cmocka_unit_test(a_small_model_needs_none),
  };
  return cmocka_run_group_tests(tests, write_model, NULL);
}
