/* berth_pack() against brute force on 100,000 small random instances (20,000 under the sanitizers): the size is the
 * smallest there is, "optimal" and "infeasible" are said when and only when they are true, and no placement overlaps.
 * Covers alignment, fixed offsets, capacities, empty sizes and lifetimes. Seeded; BERTH_BRUTE_CASES and
 * BERTH_BRUTE_SEED override the defaults.
 *
 * The truth comes from trying every order of the buffers and putting each on top of the earlier ones it conflicts with
 * (some order of offsets is the order of a best placement), skipping over fixed buffers. */
#include <stdio.h>
#include <stdlib.h>

#include "support.h"

enum {
  MAX_N = 7
};

typedef struct brute {
  const berth_pack_buffer *b;
  size_t n;
  uint64_t offset[MAX_N];
  int placed[MAX_N];
  uint64_t best;
} brute;

static uint64_t random_state;

static uint64_t next_random(void) {
  uint64_t z = (random_state += UINT64_C(0x9E3779B97F4A7C15));
  z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
  return z ^ (z >> 31);
}

static uint64_t below(uint64_t n) { return next_random() % n; }

static int conflict(const berth_pack_buffer *a, const berth_pack_buffer *b) {
  return a->size > 0 && b->size > 0 && a->lower < b->upper && b->lower < a->upper && a->lower < a->upper &&
         b->lower < b->upper;
}

static int overlap(const berth_pack_buffer *a, uint64_t x, const berth_pack_buffer *b, uint64_t y) {
  return conflict(a, b) && x < y + b->size && y < x + a->size;
}

/* The lowest offset for buffer i above all earlier ones that avoids the fixed ones. */
static uint64_t lowest(const brute *s, size_t i) {
  const berth_pack_buffer *b = &s->b[i];
  uint64_t align = b->align > 1 ? b->align : 1, x = 0;
  for (size_t j = 0; j < s->n; j++)
    if (s->placed[j] && s->b[j].offset == BERTH_PACK_FREE && conflict(b, &s->b[j]) && s->offset[j] + s->b[j].size > x)
      x = s->offset[j] + s->b[j].size;
  for (x = (x + align - 1) / align * align;; x += align) {
    int clear = 1;
    for (size_t j = 0; j < s->n; j++)
      if (s->b[j].offset != BERTH_PACK_FREE && overlap(b, x, &s->b[j], s->b[j].offset)) clear = 0;
    if (clear) return x;
  }
}

static void try_orders(brute *s, uint64_t height) {
  if (height >= s->best) return;
  int done = 1;
  for (size_t i = 0; i < s->n; i++) {
    if (s->placed[i]) continue;
    done = 0;
    s->offset[i] = lowest(s, i);
    s->placed[i] = 1;
    uint64_t top = s->b[i].size > 0 ? s->offset[i] + s->b[i].size : 0;
    try_orders(s, top > height ? top : height);
    s->placed[i] = 0;
  }
  if (done) s->best = height;
}

/* UINT64_MAX when fixed buffers overlap. */
static uint64_t smallest_size(const berth_pack_buffer *b, size_t n) {
  brute s = {.b = b, .n = n, .best = UINT64_MAX};
  uint64_t height = 0;
  for (size_t i = 0; i < n; i++) {
    if (b[i].offset == BERTH_PACK_FREE) continue;
    s.placed[i] = 1;
    if (b[i].size > 0 && b[i].offset + b[i].size > height) height = b[i].offset + b[i].size;
    for (size_t j = 0; j < i; j++)
      if (b[j].offset != BERTH_PACK_FREE && overlap(&b[i], b[i].offset, &b[j], b[j].offset)) return UINT64_MAX;
  }
  try_orders(&s, height);
  return s.best;
}

static size_t make_instance(berth_pack_buffer *b) {
  size_t n = 1 + below(MAX_N);
  uint64_t time = 2 + below(9), largest = 1 + below(12), aligned = below(4), fixed = below(4);
  for (size_t i = 0; i < n; i++) {
    uint64_t lower = below(time), length = below(20) == 0 ? 0 : 1 + below(time - lower);
    b[i].lower = (int64_t)lower - 3;
    b[i].upper = b[i].lower + (int64_t)length;
    b[i].size = below(30) == 0 ? 0 : 1 + below(largest);
    b[i].align = aligned == 0 ? below(5) : aligned == 1 ? 4 : 0;
    b[i].offset = BERTH_PACK_FREE;
    if (fixed == 0 && below(3) == 0) b[i].offset = below(8) * (b[i].align > 1 ? b[i].align : 1);
  }
  return n;
}

static void check_placement(const berth_pack_buffer *b, size_t n, const uint64_t *offset, uint64_t size) {
  uint64_t top = 0;
  for (size_t i = 0; i < n; i++) {
    if (b[i].size > 0 && offset[i] + b[i].size > top) top = offset[i] + b[i].size;
    if (b[i].align > 1) assert_int_equal(offset[i] % b[i].align, 0);
    if (b[i].offset != BERTH_PACK_FREE) assert_int_equal(offset[i], b[i].offset);
    for (size_t j = 0; j < i; j++) assert_false(overlap(&b[i], offset[i], &b[j], offset[j]));
  }
  assert_int_equal(top, size);
}

static void print_instance(const berth_pack_buffer *b, size_t n, uint64_t best, const berth_pack_result *r) {
  for (size_t i = 0; i < n; i++)
    print_message("  size %llu align %llu [%lld, %lld) offset %lld\n", (unsigned long long)b[i].size,
                  (unsigned long long)b[i].align, (long long)b[i].lower, (long long)b[i].upper, (long long)b[i].offset);
  print_message("  true %llu, size %llu, bound %llu, optimal %d fits %d infeasible %d\n", (unsigned long long)best,
                (unsigned long long)r->size, (unsigned long long)r->lower_bound, r->optimal, r->fits, r->infeasible);
}

static void one_case(berth_context *ctx, uint64_t seed) {
  berth_pack_buffer b[MAX_N];
  uint64_t offset[MAX_N];
  berth_pack_result r = BERTH_PACK_RESULT_INIT;
  size_t n = make_instance(b);
  uint64_t best = smallest_size(b, n);
  berth_pack_desc d = BERTH_PACK_DESC_INIT;
  d.seed = seed % 4;
  berth_status status = berth_pack(ctx, b, n, &d, offset, &r, NULL);
  if (best == UINT64_MAX) {
    assert_int_equal(status, BERTH_INVALID);
    return;
  }
  assert_int_equal(status, BERTH_OK);
  if (r.size != best || !r.optimal || r.lower_bound != best) print_instance(b, n, best, &r);
  assert_int_equal(r.size, best);
  assert_true(r.optimal && r.lower_bound == best && r.fits && !r.infeasible);
  check_placement(b, n, offset, r.size);
  d.capacity = best + below(5) - (best > 2 ? 2 : 0);
  assert_int_equal(berth_pack(ctx, b, n, &d, offset, &r, NULL), BERTH_OK);
  if (r.fits != (best <= d.capacity) || r.infeasible != (best > d.capacity)) print_instance(b, n, best, &r);
  assert_int_equal(r.fits, best <= d.capacity);
  assert_int_equal(r.infeasible, best > d.capacity);
  if (r.fits) check_placement(b, n, offset, r.size);
}

static uint64_t setting(const char *name, uint64_t value) {
  const char *text = getenv(name);
  return text != NULL ? strtoull(text, NULL, 0) : value;
}

static void agrees_with_brute_force(void **state) {
  (void)state;
  berth_context *ctx;
  assert_int_equal(berth_context_create(NULL, &ctx, NULL), BERTH_OK);
  random_state = setting("BERTH_BRUTE_SEED", 1);
  uint64_t cases = setting("BERTH_BRUTE_CASES", test_share(100000));
  for (uint64_t k = 0; k < cases; k++) one_case(ctx, k);
  berth_context_destroy(ctx);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(agrees_with_brute_force)};
  return cmocka_run_group_tests_name("pack_brute", tests, NULL, NULL);
}
