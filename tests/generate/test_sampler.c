/* Choosing tokens: which are left after every step, and that draws follow the probabilities and the seed. */
#include <math.h>

#include "generate/sampler.h"
#include "support.h"

#define N 8

static const float logits[N] = {1.0f, 3.0f, -2.0f, 0.5f, 2.0f, 3.0f, -INFINITY, 0.0f};

typedef struct chooser {
  berth_context *ctx;
  berth__sampler sampler;
} chooser;

static berth_sampling_desc plain(void) {
  berth_sampling_desc desc = BERTH_SAMPLING_DESC_INIT;
  desc.top_k = 0;
  desc.temperature = 1;
  desc.top_p = 1;
  desc.min_p = 0;
  return desc;
}

static void chooser_start(chooser *c, const berth_sampling_desc *desc, uint32_t count) {
  berth_error err;
  c->ctx = test_context();
  TEST_OK(berth__sampler_create(c->ctx, count, &c->sampler, &err));
  TEST_OK(berth__sampler_set(c->ctx, &c->sampler, desc, &err));
}

static void chooser_finish(chooser *c) {
  berth__sampler_free(c->ctx, &c->sampler);
  berth_context_destroy(c->ctx);
}

/* How often each token comes in 4000 draws. */
static void count_draws(const berth_sampling_desc *desc, const int32_t *tokens, size_t n_tokens, int *counts) {
  chooser c;
  chooser_start(&c, desc, N);
  memset(counts, 0, N * sizeof *counts);
  for (int i = 0; i < 4000; i++) {
    const int32_t token = berth__sampler_choose(&c.sampler, logits, tokens, n_tokens);
    assert_in_range(token, 0, N - 1);
    counts[token]++;
  }
  chooser_finish(&c);
}

static void expect_only(const int *counts, uint32_t mask) {
  for (int i = 0; i < N; i++)
    if ((counts[i] != 0) != ((mask >> i & 1u) != 0)) fail_msg("token %d came %d times", i, counts[i]);
}

static void temperature_0_takes_the_first_of_the_best(void **state) {
  (void)state;
  chooser c;
  berth_sampling_desc desc = plain();
  desc.temperature = 0;
  chooser_start(&c, &desc, N);
  assert_int_equal(berth__sampler_choose(&c.sampler, logits, NULL, 0), 1);
  chooser_finish(&c);
}

static void draws_follow_the_probabilities(void **state) {
  (void)state;
  int counts[N];
  double total = 0;
  const berth_sampling_desc desc = plain();
  count_draws(&desc, NULL, 0, counts);
  for (int i = 0; i < N; i++) total += exp((double)logits[i]);
  for (int i = 0; i < N; i++) {
    const double want = 4000 * exp((double)logits[i]) / total;
    assert_true(fabs(counts[i] - want) <= 5 * sqrt(want) + 1);
  }
}

static void a_low_temperature_prefers_the_best(void **state) {
  (void)state;
  int counts[N];
  berth_sampling_desc desc = plain();
  desc.temperature = 0.05f;
  count_draws(&desc, NULL, 0, counts);
  expect_only(counts, 1u << 1 | 1u << 5);
}

static void top_k_keeps_the_best_and_the_lower_number_among_equals(void **state) {
  (void)state;
  int counts[N];
  berth_sampling_desc desc = plain();
  desc.top_k = 1;
  count_draws(&desc, NULL, 0, counts);
  expect_only(counts, 1u << 1);
  desc.top_k = 3;
  count_draws(&desc, NULL, 0, counts);
  expect_only(counts, 1u << 1 | 1u << 5 | 1u << 4);
  desc.top_k = 100; /* more than there are */
  count_draws(&desc, NULL, 0, counts);
  assert_true(counts[7] > 0);
}

/* The two best have 0.374 each, the third 0.138. */
static void top_p_keeps_the_fewest_that_reach_it(void **state) {
  (void)state;
  int counts[N];
  berth_sampling_desc desc = plain();
  desc.top_p = 0.3f;
  count_draws(&desc, NULL, 0, counts);
  expect_only(counts, 1u << 1);
  desc.top_p = 0.7f;
  count_draws(&desc, NULL, 0, counts);
  expect_only(counts, 1u << 1 | 1u << 5);
  desc.top_p = 0.8f;
  count_draws(&desc, NULL, 0, counts);
  expect_only(counts, 1u << 1 | 1u << 5 | 1u << 4);
}

/* e^-1 is 0.368, e^-2 is 0.135. */
static void min_p_keeps_what_is_near_the_best(void **state) {
  (void)state;
  int counts[N];
  berth_sampling_desc desc = plain();
  desc.min_p = 0.3f;
  count_draws(&desc, NULL, 0, counts);
  expect_only(counts, 1u << 1 | 1u << 5 | 1u << 4);
  desc.min_p = 0.13f;
  count_draws(&desc, NULL, 0, counts);
  expect_only(counts, 1u << 1 | 1u << 5 | 1u << 4 | 1u << 0);
}

static void penalties_are_for_the_last_tokens_alone(void **state) {
  (void)state;
  static const int32_t tokens[] = {5, 1, 1, 2};
  chooser c;
  berth_sampling_desc desc = plain();
  desc.temperature = 0;
  desc.repeat_penalty = 2;
  desc.repeat_last = 3; /* not token 5 */
  chooser_start(&c, &desc, N);
  assert_int_equal(berth__sampler_choose(&c.sampler, logits, tokens, 4), 5);
  desc.repeat_last = 4; /* both 3.0 become 1.5, once */
  berth_error err;
  TEST_OK(berth__sampler_set(c.ctx, &c.sampler, &desc, &err));
  assert_int_equal(berth__sampler_choose(&c.sampler, logits, tokens, 4), 4);
  assert_int_equal(berth__sampler_choose(&c.sampler, logits, tokens, 0), 1); /* and nothing stays of it */
  chooser_finish(&c);
}

/* The same on every machine: computed elsewhere, by the same definition. */
static void a_seed_gives_the_same_draws_everywhere(void **state) {
  (void)state;
  static const int32_t want[] = {5, 1, 1, 1, 1, 4, 1, 4, 1, 5, 1, 5, 5, 5, 5, 1, 1, 5, 1, 5, 3, 1, 5, 5};
  chooser c;
  berth_sampling_desc desc = plain();
  desc.seed = 42;
  chooser_start(&c, &desc, N);
  for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
    const int32_t token = berth__sampler_choose(&c.sampler, logits, NULL, 0);
    if (token != want[i]) fail_msg("draw %zu is %d, and was %d", i, token, want[i]);
  }
  chooser_finish(&c);
}

static void logits_that_are_no_numbers_are_never_chosen(void **state) {
  (void)state;
  float bad[N];
  chooser c;
  berth_sampling_desc desc = plain();
  for (int i = 0; i < N; i++) bad[i] = i == 3 ? 0 : NAN;
  chooser_start(&c, &desc, N);
  for (int i = 0; i < 50; i++) assert_int_equal(berth__sampler_choose(&c.sampler, bad, NULL, 0), 3);
  chooser_finish(&c);
}

static void the_best_of_a_large_vocabulary_are_kept(void **state) {
  (void)state;
  enum {
    many = 1000
  };
  static float random[many];
  uint64_t seed = 1;
  chooser c;
  berth_sampling_desc desc = plain();
  desc.top_k = 300;
  for (int i = 0; i < many; i++) random[i] = test_random_f32(&seed);
  chooser_start(&c, &desc, many);
  berth__sampler_choose(&c.sampler, random, NULL, 0);
  for (int i = 1; i < 300; i++) assert_true(c.sampler.candidates[i - 1].logit >= c.sampler.candidates[i].logit);
  int n_before = 0;
  for (int i = 0; i < many; i++) n_before += random[i] > c.sampler.candidates[299].logit;
  assert_int_equal(n_before, 299);
  chooser_finish(&c);
}

static void parameters_without_meaning_are_refused(void **state) {
  (void)state;
  static const struct {
    float temperature, top_p, min_p, penalty;
    const char *part;
  } bad[] = {{-1, 1, 0, 1, "a temperature of -1"}, {NAN, 1, 0, 1, "a temperature of"},
             {1, 0, 0, 1, "top_p is 0"},           {1, 1.5f, 0, 1, "top_p is 1.5"},
             {1, 1, -0.5f, 1, "min_p is -0.5"},    {1, 1, 0, 0, "a repeat penalty of 0"}};
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    berth__sampler sampler = {0};
    berth_error err;
    berth_context *ctx = test_context();
    berth_sampling_desc desc = plain();
    desc.temperature = bad[i].temperature;
    desc.top_p = bad[i].top_p;
    desc.min_p = bad[i].min_p;
    desc.repeat_penalty = bad[i].penalty;
    test_expect_error(berth__sampler_set(ctx, &sampler, &desc, &err), BERTH_INVALID, &err, bad[i].part);
    berth_context_destroy(ctx);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(temperature_0_takes_the_first_of_the_best),
      cmocka_unit_test(draws_follow_the_probabilities),
      cmocka_unit_test(a_low_temperature_prefers_the_best),
      cmocka_unit_test(top_k_keeps_the_best_and_the_lower_number_among_equals),
      cmocka_unit_test(top_p_keeps_the_fewest_that_reach_it),
      cmocka_unit_test(min_p_keeps_what_is_near_the_best),
      cmocka_unit_test(penalties_are_for_the_last_tokens_alone),
      cmocka_unit_test(a_seed_gives_the_same_draws_everywhere),
      cmocka_unit_test(logits_that_are_no_numbers_are_never_chosen),
      cmocka_unit_test(the_best_of_a_large_vocabulary_are_kept),
      cmocka_unit_test(parameters_without_meaning_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
