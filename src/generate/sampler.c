#include "generate/sampler.h"

#include <math.h>

#include "base/desc.h"

berth_status berth__sampler_create(berth_context *ctx, uint32_t count, berth__sampler *out, berth_error *err) {
  *out = (berth__sampler){.desc = BERTH_SAMPLING_DESC_INIT, .count = count};
  out->candidates = berth__alloc_array(ctx, count, sizeof *out->candidates);
  out->is_penalised = berth__alloc_array_zero(ctx, count, 1);
  if (out->candidates != NULL && out->is_penalised != NULL) return BERTH_OK;
  berth__sampler_free(ctx, out);
  return berth__fail_nomem(err, "candidates for tokens");
}

void berth__sampler_free(berth_context *ctx, berth__sampler *sampler) {
  berth__free(ctx, sampler->candidates);
  berth__free(ctx, sampler->is_penalised);
  *sampler = (berth__sampler){0};
}

berth_status berth__sampler_set(berth__sampler *sampler, const berth_sampling_desc *desc, berth_error *err) {
  berth_sampling_desc full = BERTH_SAMPLING_DESC_INIT;
  BERTH__TRY(BERTH__DESC_COPY(&full, desc, "berth_sampling_desc", err));
  if (!(full.temperature >= 0) || isinf(full.temperature))
    return berth__fail(err, BERTH_INVALID, "a temperature of %g is not 0 or more", (double)full.temperature);
  if (!(full.top_p > 0 && full.top_p <= 1))
    return berth__fail(err, BERTH_INVALID, "top_p is %g, and must be over 0 and at most 1", (double)full.top_p);
  if (!(full.min_p >= 0 && full.min_p <= 1))
    return berth__fail(err, BERTH_INVALID, "min_p is %g, and must be from 0 to 1", (double)full.min_p);
  if (!(full.repeat_penalty > 0) || isinf(full.repeat_penalty))
    return berth__fail(err, BERTH_INVALID, "a repeat penalty of %g is not over 0", (double)full.repeat_penalty);
  sampler->desc = full;
  sampler->state = full.seed;
  return BERTH_OK;
}

/* ---- Numbers ---- */

/* splitmix64 (Steele, Lea and Flood, 2014). */
static uint64_t sampler_random(uint64_t *state) {
  uint64_t x = *state += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

static double sampler_uniform(uint64_t *state) { return (double)(sampler_random(state) >> 11) * 0x1p-53; }

/* e^x for x <= 0, to about 1e-15 of it: x = n log 2 + r, and a series for r. C libraries differ in the last digit. */
static double sampler_exp(double x) {
  if (!(x > -700)) return 0;
  const double n = floor(x * 1.4426950408889634074 + 0.5);
  const double r = (x - n * 0.693147180369123816490) - n * 1.90821492927058770002e-10;
  double sum = 1;
  for (int i = 14; i > 0; i--) sum = 1 + sum * r / i;
  return ldexp(sum, (int)n);
}

/* ---- Order: by logit, the larger first, and by token among equals ---- */

static bool sampler_before(berth__candidate a, berth__candidate b) {
  return a.logit > b.logit || (a.logit == b.logit && a.token < b.token);
}

/* A heap whose top comes last of all: its root is the worst of the n. */
static void sampler_sift(berth__candidate *heap, size_t n, size_t at) {
  const berth__candidate moved = heap[at];
  for (size_t child; (child = 2 * at + 1) < n; at = child) {
    if (child + 1 < n && sampler_before(heap[child], heap[child + 1])) child++;
    if (!sampler_before(moved, heap[child])) break;
    heap[at] = heap[child];
  }
  heap[at] = moved;
}

/* The k best of n come first, in order. */
static void sampler_sort(berth__candidate *list, size_t n, size_t k) {
  for (size_t i = k / 2; i-- > 0;) sampler_sift(list, k, i);
  for (size_t i = k; i < n; i++)
    if (sampler_before(list[i], list[0])) {
      const berth__candidate better = list[i];
      list[i] = list[0];
      list[0] = better;
      sampler_sift(list, k, 0);
    }
  for (size_t end = k; end-- > 1;) {
    const berth__candidate worst = list[0];
    list[0] = list[end];
    list[end] = worst;
    sampler_sift(list, end, 0);
  }
}

/* ---- The steps ---- */

static float sampler_penalty(const berth__sampler *s, float logit) {
  return logit > 0 ? logit / s->desc.repeat_penalty : logit * s->desc.repeat_penalty;
}

/* All tokens as candidates, with penalties for those that came lately. A logit that is no number is the least. */
static void sampler_load(berth__sampler *s, const float *logits, const int32_t *tokens, size_t n_tokens) {
  const size_t last = n_tokens < s->desc.repeat_last ? n_tokens : s->desc.repeat_last;
  const bool penalises = s->desc.repeat_penalty != 1;
  for (size_t i = n_tokens - last; penalises && i < n_tokens; i++) s->is_penalised[tokens[i]] = 1;
  for (uint32_t i = 0; i < s->count; i++) {
    const float logit = isnan(logits[i]) ? -INFINITY : logits[i];
    s->candidates[i] = (berth__candidate){s->is_penalised[i] ? sampler_penalty(s, logit) : logit, (int32_t)i};
  }
  for (size_t i = n_tokens - last; penalises && i < n_tokens; i++) s->is_penalised[tokens[i]] = 0;
}

static int32_t sampler_best(const berth__sampler *s) {
  uint32_t best = 0;
  for (uint32_t i = 1; i < s->count; i++)
    if (s->candidates[i].logit > s->candidates[best].logit) best = i;
  return s->candidates[best].token;
}

static double sampler_weight(const berth__sampler *s, size_t i, double temperature) {
  const double below = (double)s->candidates[i].logit - (double)s->candidates[0].logit;
  return i == 0 ? 1 : sampler_exp(below / temperature);
}

/* The fewest of n whose probabilities reach top_p. */
static size_t sampler_cut_top_p(const berth__sampler *s, size_t n) {
  double total = 0, sum = 0;
  if (s->desc.top_p >= 1) return n;
  for (size_t i = 0; i < n; i++) total += sampler_weight(s, i, 1);
  for (size_t i = 0; i < n; i++) {
    sum += sampler_weight(s, i, 1);
    if (sum >= (double)s->desc.top_p * total) return i + 1;
  }
  return n;
}

static size_t sampler_cut_min_p(const berth__sampler *s, size_t n) {
  size_t kept = n > 0 ? 1 : 0;
  if (s->desc.min_p <= 0) return n;
  while (kept < n && sampler_weight(s, kept, 1) >= (double)s->desc.min_p) kept++;
  return kept;
}

static int32_t sampler_draw(berth__sampler *s, size_t n) {
  const double temperature = (double)s->desc.temperature;
  double total = 0, sum = 0;
  for (size_t i = 0; i < n; i++) total += sampler_weight(s, i, temperature);
  const double point = sampler_uniform(&s->state) * total;
  for (size_t i = 0; i < n; i++) {
    sum += sampler_weight(s, i, temperature);
    if (point < sum) return s->candidates[i].token;
  }
  return s->candidates[0].token;
}

int32_t berth__sampler_choose(berth__sampler *s, const float *logits, const int32_t *tokens, size_t n_tokens) {
  sampler_load(s, logits, tokens, n_tokens);
  if (s->desc.temperature <= 0) return sampler_best(s);
  const bool is_cut = s->desc.top_k > 0 && s->desc.top_k < s->count;
  size_t n = is_cut ? s->desc.top_k : s->count;
  sampler_sort(s->candidates, s->count, n);
  n = sampler_cut_top_p(s, n);
  n = sampler_cut_min_p(s, n);
  return sampler_draw(s, n);
}
