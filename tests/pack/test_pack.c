/* berth_pack(): every kind of input, every way to be wrong, and what is promised about the result. */
#include <stdio.h>
#include <stdlib.h>

#include "support/support.h"

enum {
  N_MAX = 600
};

static berth_pack_buffer buffer(uint64_t size, int64_t lower, int64_t upper) {
  return (berth_pack_buffer){size, 0, lower, upper, BERTH_PACK_FREE};
}

static void assert_valid(const berth_pack_buffer *b, size_t n, const uint64_t *offset, uint64_t size) {
  uint64_t top = 0;
  for (size_t i = 0; i < n; i++) {
    if (b[i].size > 0 && offset[i] + b[i].size > top) top = offset[i] + b[i].size;
    if (b[i].align > 1) assert_int_equal(offset[i] % b[i].align, 0);
    if (b[i].offset != BERTH_PACK_FREE) assert_int_equal(offset[i], b[i].offset);
    for (size_t j = 0; j < i; j++) {
      if (b[i].lower >= b[j].upper || b[j].lower >= b[i].upper) continue;
      if (b[i].lower == b[i].upper || b[j].lower == b[j].upper || b[i].size == 0 || b[j].size == 0) continue;
      assert_false(offset[i] < offset[j] + b[j].size && offset[j] < offset[i] + b[i].size);
    }
  }
  assert_int_equal(top, size);
}

/* Packs with a descriptor (NULL: defaults) and checks the placement. */
static berth_pack_result pack(const berth_pack_buffer *b, size_t n, const berth_pack_desc *desc, uint64_t *offset) {
  berth_error err;
  berth_pack_result r = BERTH_PACK_RESULT_INIT;
  berth_context *ctx = test_context();
  TEST_OK(berth_pack(ctx, b, n, desc, offset, &r, &err));
  assert_valid(b, n, offset, r.size);
  assert_true(r.lower_bound <= r.size);
  assert_true(!r.optimal || r.lower_bound == r.size);
  berth_context_destroy(ctx);
  return r;
}

static void expect_invalid(const berth_pack_buffer *b, size_t n, const char *part) {
  berth_error err;
  berth_pack_result r = BERTH_PACK_RESULT_INIT;
  uint64_t offset[8];
  berth_context *ctx = test_context();
  test_expect_error(berth_pack(ctx, b, n, NULL, offset, &r, &err), BERTH_INVALID, &err, part);
  berth_context_destroy(ctx);
}

static void nothing_to_pack(void **state) {
  (void)state;
  berth_pack_result r = pack(NULL, 0, NULL, NULL);
  assert_int_equal(r.size, 0);
  assert_true(r.optimal && r.fits && !r.infeasible && !r.cancelled);
}

/* Those of the largest alignment have gaps between them, whatever fills these. */
static void alignments_that_differ_are_bounded(void **state) {
  (void)state;
  berth_pack_buffer b[4] = {buffer(65, 0, 1), buffer(65, 0, 1), buffer(65, 0, 1), buffer(4, 0, 1)};
  for (int i = 0; i < 3; i++) b[i].align = 64;
  b[3].align = 4;
  uint64_t offset[4];
  const berth_pack_result r = pack(b, 4, NULL, offset);
  assert_int_equal(r.size, 2 * 128 + 65);
  assert_int_equal(r.lower_bound, r.size);
  assert_true(r.optimal);
}

static void sizes_and_lifetimes_of_zero(void **state) {
  (void)state;
  berth_pack_buffer b[] = {buffer(0, 0, 5), buffer(8, 2, 2),  buffer(4, 0, 5),
                           buffer(4, 1, 3), {0, 4, 0, 5, 12}, {0, 0, 3, 3, 7}};
  uint64_t offset[6];
  berth_pack_result r = pack(b, 6, NULL, offset);
  assert_int_equal(r.size, 8); /* the buffer that never lives still needs its bytes to exist */
  assert_true(r.optimal);
  assert_int_equal(offset[0], 0);
  assert_int_equal(offset[4], 12);
  assert_int_equal(offset[5], 7);
}

static void touching_lifetimes_share(void **state) {
  (void)state;
  berth_pack_buffer b[] = {buffer(10, 0, 5), buffer(10, 5, 9), buffer(10, INT64_MIN, 0), buffer(10, 9, INT64_MAX)};
  uint64_t offset[4];
  assert_int_equal(pack(b, 4, NULL, offset).size, 10);
}

static void alignment(void **state) {
  (void)state;
  berth_pack_buffer b[] = {buffer(1, 0, 4), buffer(1, 0, 4), buffer(3, 0, 4), buffer(5, 1, 3)};
  uint64_t offset[4];
  b[0].align = 64;
  b[1].align = 48;
  b[2].align = 7;
  berth_pack_result r = pack(b, 4, NULL, offset);
  assert_true(r.optimal);
  assert_int_equal(r.size, 49);
  for (size_t i = 0; i < 4; i++) b[i].align = 64;
  r = pack(b, 4, NULL, offset);
  assert_true(r.optimal);
  assert_int_equal(r.size, 193); /* the last of four slots needs only its own byte */
}

static void fixed_offsets(void **state) {
  (void)state;
  berth_pack_buffer b[] = {buffer(4, 0, 9), buffer(4, 2, 5), buffer(6, 3, 9), buffer(2, 0, 9)};
  uint64_t offset[4];
  b[0].offset = 6;
  berth_pack_result r = pack(b, 4, NULL, offset);
  assert_true(r.optimal);
  assert_int_equal(r.size, 16);
  b[3].offset = 100;
  r = pack(b, 4, NULL, offset);
  assert_int_equal(r.size, 102);
  assert_true(r.optimal);
}

static void fixed_buffers_that_overlap(void **state) {
  (void)state;
  berth_pack_buffer b[] = {buffer(4, 0, 9), buffer(4, 2, 5), buffer(4, 4, 7)};
  uint64_t offset[3];
  b[1].offset = 6;
  b[2].offset = 9;
  expect_invalid(b, 3, "1 (at 6) and 2 (at 9)");
  b[2].lower = 5;
  pack(b, 3, NULL, offset);
}

static void wrong_buffers(void **state) {
  (void)state;
  berth_pack_buffer b[] = {buffer(4, 0, 9), buffer(4, 5, 4)};
  expect_invalid(b, 2, "buffer 1 ends at 4, before it starts at 5");
  b[1] = (berth_pack_buffer){4, 8, 0, 4, 12};
  expect_invalid(b, 2, "not a multiple of 8");
}

static void enormous_sizes(void **state) {
  (void)state;
  berth_pack_buffer b[] = {buffer(UINT64_C(1) << 61, 0, 9), buffer(UINT64_C(1) << 60, 0, 9), buffer(1, 0, 9)};
  uint64_t offset[3];
  assert_int_equal(pack(b, 3, NULL, offset).size, (UINT64_C(3) << 60) + 1);
  b[1].size = UINT64_MAX;
  expect_invalid(b, 3, "2^62");
  b[1].size = UINT64_C(1) << 63;
  expect_invalid(b, 3, "2^62");
  b[1] = (berth_pack_buffer){2, 0, 0, 1, UINT64_MAX - 1};
  expect_invalid(b, 3, "2^62");
  b[1] = (berth_pack_buffer){2, UINT64_MAX, 0, 1, BERTH_PACK_FREE};
  expect_invalid(b, 3, "2^62");
}

static void wrong_arguments(void **state) {
  (void)state;
  berth_error err;
  berth_pack_result r = BERTH_PACK_RESULT_INIT;
  berth_pack_buffer b = buffer(1, 0, 1);
  uint64_t offset;
  berth_context *ctx = test_context();
  test_expect_error(berth_pack(NULL, &b, 1, NULL, &offset, &r, &err), BERTH_INVALID, &err, "context");
  test_expect_error(berth_pack(ctx, &b, 1, NULL, &offset, NULL, &err), BERTH_INVALID, &err, "result");
  test_expect_error(berth_pack(ctx, NULL, 1, NULL, &offset, &r, &err), BERTH_INVALID, &err, "buffers");
  test_expect_error(berth_pack(ctx, &b, 1, NULL, NULL, &r, &err), BERTH_INVALID, &err, "offsets");
  berth_pack_desc d = BERTH_PACK_DESC_INIT;
  d.n_heaps = 2;
  test_expect_error(berth_pack(ctx, &b, 1, &d, &offset, &r, &err), BERTH_INVALID, &err, "heap");
  d.struct_size = 3;
  test_expect_error(berth_pack(ctx, &b, 1, &d, &offset, &r, &err), BERTH_INVALID, &err, "struct_size");
  berth_context_destroy(ctx);
}

/* Random lifetimes at a density: buffers that fill a strip of `height` at most moments. */
static size_t random_instance(berth_pack_buffer *b, size_t n, uint64_t seed) {
  for (size_t i = 0; i < n; i++) {
    int64_t lower = (int64_t)(test_random(&seed) % 1000);
    b[i] = buffer(1 + test_random(&seed) % 4096, lower, lower + 1 + (int64_t)(test_random(&seed) % 80));
  }
  return n;
}

static void capacity(void **state) {
  (void)state;
  berth_pack_buffer b[] = {buffer(4, 0, 3), buffer(4, 3, 9), buffer(4, 0, 9), buffer(4, 9, 21), buffer(4, 0, 21)};
  uint64_t offset[5];
  berth_pack_desc d = BERTH_PACK_DESC_INIT;
  d.capacity = 12;
  berth_pack_result r = pack(b, 5, &d, offset);
  assert_true(r.fits && !r.infeasible && r.size == 12);
  d.capacity = 11;
  r = pack(b, 5, &d, offset);
  assert_true(!r.fits && r.infeasible && r.size == 12 && r.lower_bound == 12);
  d.capacity = 1000;
  r = pack(b, 5, &d, offset);
  assert_true(r.fits && r.size <= 1000);
}

/* The smallest instance whose best packing is above the largest load: only a search can prove it. */
static void proof_above_the_load(void **state) {
  (void)state;
  berth_pack_buffer b[] = {buffer(2, 0, 2), buffer(1, 1, 4), buffer(2, 3, 6), buffer(1, 5, 8),
                           buffer(1, 0, 1), buffer(1, 7, 8), buffer(1, 2, 3), buffer(2, 6, 7)};
  uint64_t offset[8];
  berth_pack_result r = pack(b, 8, NULL, offset);
  assert_true(r.optimal);
  berth_pack_desc d = BERTH_PACK_DESC_INIT;
  d.capacity = r.size - 1;
  r = pack(b, 8, &d, offset);
  assert_true(r.infeasible && !r.fits);
}

static void several_heaps(void **state) {
  (void)state;
  berth_error err;
  berth_pack_result r = BERTH_PACK_RESULT_INIT;
  berth_context *ctx = test_context();
  berth_pack_buffer b[] = {buffer(60, 0, 9), buffer(50, 0, 9), buffer(30, 0, 4), buffer(30, 4, 9), buffer(0, 0, 9)};
  berth_pack_heap heaps[] = {{100}, {60}};
  uint64_t offset[5];
  uint32_t heap_of[5];
  berth_pack_desc d = BERTH_PACK_DESC_INIT;
  d.heaps = heaps;
  d.n_heaps = 2;
  d.heap_of = heap_of;
  TEST_OK(berth_pack(ctx, b, 5, &d, offset, &r, &err));
  assert_true(r.fits && r.optimal && !r.infeasible);
  assert_int_equal(r.size, 140);
  uint64_t top[2] = {0, 0};
  for (size_t i = 0; i < 4; i++) {
    assert_true(heap_of[i] < 2);
    if (offset[i] + b[i].size > top[heap_of[i]]) top[heap_of[i]] = offset[i] + b[i].size;
    for (size_t j = 0; j < i; j++)
      if (heap_of[i] == heap_of[j] && b[i].lower < b[j].upper && b[j].lower < b[i].upper)
        assert_true(offset[i] >= offset[j] + b[j].size || offset[j] >= offset[i] + b[i].size);
  }
  assert_true(top[0] <= 100 && top[1] <= 60);
  heaps[1].limit = 39; /* 140 are alive at once */
  TEST_OK(berth_pack(ctx, b, 5, &d, offset, &r, &err));
  assert_true(!r.fits && r.infeasible);
  heaps[0].limit = 59; /* no heap for the largest */
  heaps[1].limit = 59;
  TEST_OK(berth_pack(ctx, b, 5, &d, offset, &r, &err));
  assert_true(!r.fits && r.infeasible);
  d.n_heaps = 1;
  heaps[0].limit = 140;
  TEST_OK(berth_pack(ctx, b, 5, &d, offset, &r, &err));
  assert_true(r.fits && heap_of[3] == 0);
  berth_context_destroy(ctx);
}

typedef struct watch {
  uint64_t calls, last_nodes, stop_after;
} watch;

static int on_progress(void *user, const berth_pack_progress *p) {
  watch *w = user;
  assert_true(p->size >= p->lower_bound);
  assert_true(p->nodes >= w->last_nodes);
  w->last_nodes = p->nodes;
  return ++w->calls >= w->stop_after;
}

/* Hard enough that the default effort does not end early: a strip cut into pieces that are then jittered. */
static size_t hard_instance(berth_pack_buffer *b, size_t n) {
  random_instance(b, n, 5);
  for (size_t i = 0; i < n; i++) b[i].size += 4000;
  return n;
}

static void progress_and_cancelling(void **state) {
  (void)state;
  static berth_pack_buffer b[N_MAX];
  static uint64_t offset[N_MAX];
  size_t n = hard_instance(b, N_MAX);
  watch w = {0, 0, UINT64_MAX};
  berth_pack_desc d = BERTH_PACK_DESC_INIT;
  d.effort = 20000;
  d.progress = on_progress;
  d.user = &w;
  berth_pack_result all = pack(b, n, &d, offset);
  assert_false(all.cancelled);
  assert_true(w.calls > 1);
  w = (watch){0, 0, 1};
  berth_pack_result some = pack(b, n, &d, offset);
  assert_true(some.cancelled && w.calls == 1);
  assert_true(some.nodes <= all.nodes);
}

static void same_input_same_result(void **state) {
  (void)state;
  static berth_pack_buffer b[N_MAX];
  static uint64_t first[N_MAX], second[N_MAX];
  size_t n = hard_instance(b, 300);
  for (uint64_t seed = 0; seed < 3; seed++) {
    berth_pack_desc d = BERTH_PACK_DESC_INIT;
    d.effort = 20000;
    d.seed = seed;
    berth_pack_result a = pack(b, n, &d, first), c = pack(b, n, &d, second);
    assert_memory_equal(first, second, n * sizeof *first);
    assert_int_equal(a.nodes, c.nodes);
  }
}

static void effort_only_helps(void **state) {
  (void)state;
  static berth_pack_buffer b[N_MAX];
  static uint64_t offset[N_MAX];
  size_t n = hard_instance(b, 400);
  berth_pack_desc d = BERTH_PACK_DESC_INIT;
  d.effort = 1;
  berth_pack_result quick = pack(b, n, &d, offset);
  d.effort = 0;
  berth_pack_result full = pack(b, n, &d, offset);
  assert_true(full.size <= quick.size);
  assert_true(quick.nodes <= full.nodes);
}

/* A perfect packing of the strip [0, time) x [0, height), made by cutting pieces in two until there are n. */
static void guillotine(berth_pack_buffer *b, size_t n, uint64_t height, int64_t time, uint64_t seed) {
  b[0] = buffer(height, 0, time);
  for (size_t count = 1; count < n; count++) {
    size_t k = 0; /* the largest piece is cut */
    for (size_t i = 1; i < count; i++)
      if (b[i].size * (uint64_t)(b[i].upper - b[i].lower) > b[k].size * (uint64_t)(b[k].upper - b[k].lower)) k = i;
    uint64_t percent = 20 + test_random(&seed) % 60;
    b[count] = b[k];
    if (test_random(&seed) % 2 && b[k].upper - b[k].lower > 4) {
      int64_t middle = b[k].lower + (b[k].upper - b[k].lower) * (int64_t)percent / 100;
      b[k].upper = b[count].lower = middle;
    } else {
      b[k].size = b[k].size * percent / 100 + 1;
      b[count].size -= b[k].size;
    }
  }
}

static void perfect_packings_are_found(void **state) {
  (void)state;
  static berth_pack_buffer b[N_MAX];
  static uint64_t offset[N_MAX];
  unsigned found = 0, tried = 0;
  for (size_t n = 100; n <= 500; n += 100) {
    for (uint64_t seed = 1; seed <= test_share(3); seed++) {
      guillotine(b, n, 1 << 20, 1 << 20, seed * 7919 + n);
      berth_pack_result r = pack(b, n, NULL, offset);
      assert_int_equal(r.lower_bound, 1 << 20);
      found += r.optimal != 0;
      tried++;
      if (n <= 300) assert_true(r.optimal);
    }
  }
  print_message("perfect packings: %u of %u\n", found, tried);
  assert_true(found * 10 >= tried * 7);
}

/* Buffers stacked into a strip at random moments until it is 95 to 100% full everywhere it can be. */
static size_t dense(berth_pack_buffer *b, size_t n_max, uint64_t height, uint64_t seed) {
  enum {
    TIME = 60
  };
  uint64_t top[TIME] = {0};
  size_t n = 0;
  for (unsigned misses = 0; n < n_max && misses < 400;) {
    int64_t lower = (int64_t)(test_random(&seed) % TIME), upper = lower + 1 + (int64_t)(test_random(&seed) % 12);
    if (upper > TIME) upper = TIME;
    uint64_t size = 1 + test_random(&seed) % (height / 8), load = 0;
    for (int64_t t = lower; t < upper; t++)
      if (top[t] > load) load = top[t];
    if (load + size > height) {
      misses++;
      continue;
    }
    for (int64_t t = lower; t < upper; t++) top[t] += size;
    b[n++] = buffer(size, lower, upper);
  }
  return n;
}

static void dense_lifetimes(void **state) {
  (void)state;
  static berth_pack_buffer b[N_MAX];
  static uint64_t offset[N_MAX];
  for (uint64_t seed = 1; seed <= test_share(3); seed++) {
    size_t n = dense(b, 300, 1000, seed);
    berth_pack_result r = pack(b, n, NULL, offset);
    assert_true(r.size * 100 <= r.lower_bound * 106); /* the best is above the load, and not known */
  }
}

/* Reads id,lower,upper,size,... under a line of names. */
static size_t read_instance(const char *name, berth_pack_buffer *b, size_t n_max) {
  const char *source = getenv("BERTH_SRC");
  char path[512], line[256];
  snprintf(path, sizeof path, "%s/bench/pack/best/%s", source != NULL ? source : ".", name);
  FILE *file = fopen(path, "r");
  assert_non_null(file);
  size_t n = 0;
  assert_non_null(fgets(line, sizeof line, file));
  while (n < n_max && fgets(line, sizeof line, file) != NULL) {
    char *at;
    strtoull(line, &at, 10);
    int64_t lower = strtoll(at + 1, &at, 10), upper = strtoll(at + 1, &at, 10);
    b[n++] = buffer(strtoull(at + 1, &at, 10), lower, upper);
  }
  fclose(file);
  return n;
}

/* Two public instances that took long to solve: the sizes are what the default effort has found. D's is the best there
 * is; nobody has proven one for J. */
static void hard_public_instances(void **state) {
  (void)state;
  static berth_pack_buffer b[N_MAX];
  static uint64_t offset[N_MAX];
  static const struct {
    const char *name;
    size_t n;
    uint64_t size;
    int optimal;
  } known[] = {{"D.986112.csv", 213, 986112, 1}, {"J.991232.csv", 409, 1003520, 0}};
  for (size_t k = 0; k < 2; k++) {
    assert_int_equal(read_instance(known[k].name, b, N_MAX), known[k].n);
    berth_pack_desc d = BERTH_PACK_DESC_INIT;
    if (test_step() > 1) d.effort = 100000;
    berth_pack_result r = pack(b, known[k].n, &d, offset);
    if (test_step() > 1) continue;
    assert_true(r.size <= known[k].size);
    if (known[k].optimal) assert_true(r.optimal);
  }
}

static berth_status pack_everything(berth_context *ctx, berth_error *err, void *user) {
  berth_pack_buffer b[24];
  uint64_t offset[24];
  uint32_t heap_of[24];
  berth_pack_result r = BERTH_PACK_RESULT_INIT;
  (void)user;
  random_instance(b, 24, 9);
  b[3].align = 64;
  b[4].offset = 5000;
  berth_pack_desc d = BERTH_PACK_DESC_INIT;
  d.effort = 200;
  berth_status status = berth_pack(ctx, b, 24, &d, offset, &r, err);
  if (status != BERTH_OK) return status;
  berth_pack_heap heaps[] = {{20000}, {UINT64_MAX}};
  d.heaps = heaps;
  d.n_heaps = 2;
  d.heap_of = heap_of;
  return berth_pack(ctx, b, 24, &d, offset, &r, err);
}

static void every_allocation_may_fail(void **state) {
  (void)state;
  assert_true(test_fail_each_allocation(pack_everything, NULL) > 20);
}

static void many_buffers(void **state) {
  (void)state;
  enum {
    MANY = 60000
  };
  berth_pack_buffer *b = test_malloc(MANY * sizeof *b);
  uint64_t *offset = test_malloc(MANY * sizeof *offset), seed = 3;
  for (size_t i = 0; i < MANY; i++) {
    int64_t lower = (int64_t)(test_random(&seed) % 100000);
    b[i] = buffer(16 + 16 * (test_random(&seed) % 64), lower, lower + 1 + (int64_t)(test_random(&seed) % 200));
  }
  berth_error err;
  berth_pack_result r = BERTH_PACK_RESULT_INIT;
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  berth_pack_desc d = BERTH_PACK_DESC_INIT;
  d.effort = 1;
  TEST_OK(berth_pack(ctx, b, MANY, &d, offset, &r, &err));
  assert_true(r.size * 100 <= r.lower_bound * 110);
  assert_true(alloc.peak_bytes < UINT64_C(100) << 20);
  test_context_done(ctx, &alloc);
  test_free(offset);
  test_free(b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(nothing_to_pack),
      cmocka_unit_test(alignments_that_differ_are_bounded),
      cmocka_unit_test(sizes_and_lifetimes_of_zero),
      cmocka_unit_test(touching_lifetimes_share),
      cmocka_unit_test(alignment),
      cmocka_unit_test(fixed_offsets),
      cmocka_unit_test(fixed_buffers_that_overlap),
      cmocka_unit_test(wrong_buffers),
      cmocka_unit_test(enormous_sizes),
      cmocka_unit_test(wrong_arguments),
      cmocka_unit_test(capacity),
      cmocka_unit_test(proof_above_the_load),
      cmocka_unit_test(several_heaps),
      cmocka_unit_test(progress_and_cancelling),
      cmocka_unit_test(same_input_same_result),
      cmocka_unit_test(effort_only_helps),
      cmocka_unit_test(perfect_packings_are_found),
      cmocka_unit_test(dense_lifetimes),
      cmocka_unit_test(hard_public_instances),
      cmocka_unit_test(every_allocation_may_fail),
      cmocka_unit_test(many_buffers),
  };
  return cmocka_run_group_tests_name("pack", tests, NULL, NULL);
}
