#include "generate/sampler.h"

#include <math.h>

#include "base/desc.h"

berth_status berth__sampler_create(berth_context *ctx, uint32_t count, berth__sampler *out, berth_error *err) {
  *out = (berth__sampler){.desc = BERTH_SAMPLING_DESC_INIT, .count = count};
  out->penalised = berth__alloc_array_zero(ctx, count / 32 + 1, sizeof *out->penalised);
  if (out->penalised == NULL) return berth__fail_nomem(err, "candidates for tokens");
  const berth_status status = berth__sampler_set(ctx, out, NULL, err);
  if (status != BERTH_OK) berth__sampler_free(ctx, out);
  return status;
}

void berth__sampler_free(berth_context *ctx, berth__sampler *sampler) {
  berth__free(ctx, sampler->candidates);
  berth__free(ctx, sampler->penalised);
  *sampler = (berth__sampler){0};
}

static berth_status sampler_check(const berth_sampling_desc *desc, berth_error *err) {
  if (!(desc->temperature >= 0) || isinf(desc->temperature))
    return berth__fail(err, BERTH_INVALID, "a temperature of %g is not 0 or more", (double)desc->temperature);
  if (!(desc->top_p > 0 && desc->top_p <= 1))
    return berth__fail(err, BERTH_INVALID, "top_p is %g, and must be over 0 and at most 1", (double)desc->top_p);
  if (!(desc->min_p >= 0 && desc->min_p <= 1))
    return berth__fail(err, BERTH_INVALID, "min_p is %g, and must be from 0 to 1", (double)desc->min_p);
  if (!(desc->repeat_penalty > 0) || isinf(desc->repeat_penalty))
    return berth__fail(err, BERTH_INVALID, "a repeat penalty of %g is not over 0", (double)desc->repeat_penalty);
  return BERTH_OK;
}

/* The number of candidates to draw from; the single best one needs no list. */
static uint32_t sampler_n(const berth__sampler *sampler, const berth_sampling_desc *desc) {
  if (desc->temperature <= 0) return 1;
  return desc->top_k > 0 && desc->top_k < sampler->count ? desc->top_k : sampler->count;
}

berth_status berth__sampler_set(berth_context *ctx, berth__sampler *sampler, const berth_sampling_desc *desc,
                                berth_error *err) {
  berth_sampling_desc full = BERTH_SAMPLING_DESC_INIT;
  BERTH__TRY(BERTH__DESC_COPY(&full, desc, "berth_sampling_desc", err));
  BERTH__TRY(sampler_check(&full, err));
  BERTH__TRY(BERTH__RESERVE(ctx, sampler->candidates, sampler->capacity, sampler_n(sampler, &full), err));
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

/* e^x for x <= 0, with a relative error of about 1e-15: x = n log 2 + r, and a series for r. C libraries differ in the
 * last digit. */
static double sampler_exp(double x) {
  if (!(x > -700)) return 0;
  const double n = floor(x * 1.4426950408889634074 + 0.5);
  const double r = (x - n * 0.693147180369123816490) - n * 1.90821492927058770002e-10;
  double sum = 1;
  for (int i = 14; i > 0; i--) sum = 1 + sum * r / i;
  return ldexp(sum, (int)n);
}

/* ---- Order: by logit, largest first; by token if equal ---- */

static bool sampler_before(berth__candidate a, berth__candidate b) {
  return a.logit > b.logit || (a.logit == b.logit && a.token < b.token);
}

/* A heap of n candidates with the worst at its root. */
static void sampler_sift(berth__candidate *heap, size_t n, size_t at) {
  const berth__candidate moved = heap[at];
  for (size_t child; (child = 2 * at + 1) < n; at = child) {
    if (child + 1 < n && sampler_before(heap[child], heap[child + 1])) child++;
    if (!sampler_before(moved, heap[child])) break;
    heap[at] = heap[child];
  }
  heap[at] = moved;
}

/* Sorts the best to the front. */
static void sampler_sort(berth__candidate *heap, size_t n) {
  for (size_t end = n; end-- > 1;) {
    const berth__candidate worst = heap[0];
    heap[0] = heap[end];
    heap[end] = worst;
    sampler_sift(heap, end, 0);
  }
}

/* ---- The steps ---- */

static bool sampler_is_penalised(const berth__sampler *s, uint32_t token) {
  return s->penalised[token / 32] >> token % 32 & 1u;
}

static void sampler_mark(berth__sampler *s, const int32_t *tokens, size_t n_tokens, bool is_set) {
  const size_t last = n_tokens < s->desc.repeat_last ? n_tokens : s->desc.repeat_last;
  for (size_t i = n_tokens - last; s->desc.repeat_penalty != 1 && i < n_tokens; i++) {
    const uint32_t token = (uint32_t)tokens[i], bit = 1u << token % 32;
    s->penalised[token / 32] = is_set ? s->penalised[token / 32] | bit : s->penalised[token / 32] & ~bit;
  }
}

/* With the penalty for a recent token. A NaN counts as the smallest logit. */
static berth__candidate sampler_candidate(const berth__sampler *s, const float *logits, uint32_t token) {
  float logit = isnan(logits[token]) ? -INFINITY : logits[token];
  if (sampler_is_penalised(s, token))
    logit = logit > 0 ? logit / s->desc.repeat_penalty : logit * s->desc.repeat_penalty;
  return (berth__candidate){logit, (int32_t)token};
}

/* The n best tokens, best first. */
static void sampler_load(berth__sampler *s, const float *logits, uint32_t n) {
  berth__candidate *heap = s->candidates;
  for (uint32_t i = 0; i < n; i++) heap[i] = sampler_candidate(s, logits, i);
  for (size_t i = n / 2; i-- > 0;) sampler_sift(heap, n, i);
  for (uint32_t i = n; i < s->count; i++) {
    const berth__candidate other = sampler_candidate(s, logits, i);
    if (!sampler_before(other, heap[0])) continue;
    heap[0] = other;
    sampler_sift(heap, n, 0);
  }
  sampler_sort(heap, n);
}

static double sampler_weight(const berth__sampler *s, size_t i, double temperature) {
  const double below = (double)s->candidates[i].logit - (double)s->candidates[0].logit;
  return i == 0 ? 1 : sampler_exp(below / temperature);
}

/* How many of the n candidates it takes for their probabilities to reach top_p. */
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
  size_t n = sampler_n(s, &s->desc);
  sampler_mark(s, tokens, n_tokens, true);
  sampler_load(s, logits, (uint32_t)n);
  sampler_mark(s, tokens, n_tokens, false);
  if (s->desc.temperature <= 0) return s->candidates[0].token;
  n = sampler_cut_top_p(s, n);
  n = sampler_cut_min_p(s, n);
  return sampler_draw(s, n);
}
