#include "base/thread.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "support.h"

enum {
  MOST = 10000
};

typedef struct cover {
  _Atomic uint32_t hits[MOST];
  _Atomic int busy[8]; /* a worker number is used by one thread at a time */
  _Atomic uint32_t pieces, wrong;
  int64_t n, grain, awake_grain;
} cover;

static void touch(void *user, uint32_t worker, int64_t begin, int64_t end) {
  cover *c = user;
  if (worker >= 8 || begin >= end || begin < 0 || end > c->n) {
    atomic_fetch_add(&c->wrong, 1);
    return;
  }
  if (atomic_exchange(&c->busy[worker], 1) != 0) atomic_fetch_add(&c->wrong, 1);
  const int64_t small = c->awake_grain > 0 && c->awake_grain < c->n ? (c->awake_grain + 1) / 2 : c->n;
  const int64_t least = c->n / c->grain < 2 ? small : (c->grain + 3) / 4; /* threads that are awake get such pieces */
  if (end - begin < least) atomic_fetch_add(&c->wrong, 1);
  for (int64_t i = begin; i < end; i++) atomic_fetch_add(&c->hits[i], 1);
  atomic_fetch_add(&c->pieces, 1);
  atomic_store(&c->busy[worker], 0);
}

static cover *run_work(berth__pool *pool, const berth__work *work) {
  cover *c = calloc(1, sizeof *c);
  assert_non_null(c);
  c->n = work->n;
  c->grain = work->grain;
  c->awake_grain = work->awake_grain;
  berth__pool_run_work(pool, work, touch, c);
  assert_int_equal(c->wrong, 0);
  for (int64_t i = 0; i < MOST; i++) assert_int_equal(c->hits[i], i < work->n);
  return c;
}

static cover *run_split(berth__pool *pool, int64_t n, int64_t grain, berth__split split) {
  return run_work(pool, &(berth__work){.n = n, .grain = grain, .split = split});
}

static cover *run_once(berth__pool *pool, int64_t n, int64_t grain) {
  return run_split(pool, n, grain, BERTH__SPLIT_QUEUE);
}

static void ranges_cover_everything_once(void **state) {
  (void)state;
  const int64_t sizes[] = {0, 1, 2, 3, 7, 8, 9, 64, 1000, 9999, MOST};
  const int64_t grains[] = {1, 2, 3, 10, 100, 100000};
  const uint32_t threads[] = {1, 2, 4};
  berth_context *ctx = test_context();
  for (size_t t = 0; t < 3; t++) {
    berth__pool *pool;
    berth_error err;
    TEST_OK(berth__pool_create(ctx, threads[t], &pool, &err));
    assert_int_equal(berth__pool_n_threads(pool), threads[t]);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
      for (size_t g = 0; g < sizeof grains / sizeof *grains; g++) {
        free(run_split(pool, sizes[i], grains[g], BERTH__SPLIT_QUEUE));
        free(run_split(pool, sizes[i], grains[g], BERTH__SPLIT_PARTS));
        free(run_work(pool, &(berth__work){sizes[i], grains[g], (grains[g] + 3) / 4, BERTH__SPLIT_QUEUE}));
        free(run_work(pool, &(berth__work){sizes[i], grains[g], (grains[g] + 3) / 4, BERTH__SPLIT_PARTS}));
      }
    }
    berth__pool_destroy(pool);
  }
  berth_context_destroy(ctx);
}

static void no_pool_runs_on_this_thread(void **state) {
  (void)state;
  assert_int_equal(berth__pool_n_threads(NULL), 1);
  cover *c = run_once(NULL, 100, 1);
  assert_int_equal(c->pieces, 1);
  free(c);
  berth__pool_destroy(NULL);
}

static void zero_or_negative_items_run_nothing(void **state) {
  (void)state;
  berth_context *ctx = test_context();
  berth__pool *pool;
  berth_error err;
  TEST_OK(berth__pool_create(ctx, 4, &pool, &err));
  cover *c = run_once(pool, 0, 1);
  assert_int_equal(c->pieces, 0);
  berth__pool_run(pool, -5, 1, touch, c);
  assert_int_equal(c->pieces, 0);
  assert_int_equal(c->wrong, 0);
  free(c);
  berth__pool_destroy(pool);
  berth_context_destroy(ctx);
}

/* Whoever is awake: such work may have scratch for one worker alone. */
static void work_of_one_grain_is_not_split(void **state) {
  (void)state;
  berth_context *ctx = test_context();
  berth__pool *pool;
  berth_error err;
  TEST_OK(berth__pool_create(ctx, 4, &pool, &err));
  for (int i = 0; i < 100; i++) {
    cover *c = run_once(pool, 100, 51);
    assert_int_equal(c->pieces, 1);
    free(c);
    c = run_once(pool, 100, 50);
    assert_true(c->pieces == 2 || c->pieces == 7);
    free(c);
  }
  berth__pool_destroy(pool);
  berth_context_destroy(ctx);
}

static void wait_a_moment(void) { nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL); }

static void note_worker(void *user, uint32_t worker, int64_t begin, int64_t end) {
  atomic_uint *seen = user;
  (void)begin, (void)end;
  atomic_fetch_or(seen, 1u << worker);
}

/* What takes longer with help than alone is done alone, but for a try now and then. */
static void bursts_that_help_slows_down_wake_nobody(void **state) {
  (void)state;
  berth_context *ctx = test_context();
  berth__pool *pool;
  berth_error err;
  bool was_alone = false, had_help = false;
  TEST_OK(berth__pool_create(ctx, 2, &pool, &err));
  for (int i = 0; i < 20000 && !(was_alone && had_help); i++) {
    atomic_uint ignored = 0;
    berth__burst burst = {.alone_ms = 1.5, .helped_ms = 1.9, .count = i % 2 == 0 ? 0 : 31};
    wait_a_moment();
    berth__pool_begin(pool, &burst);
    berth__pool_run(pool, 8, 1, note_worker, &ignored);
    berth__pool_end(pool, &burst);
    if (i % 2 == 0) was_alone = was_alone || burst.helped_ms == 1.9;
    if (i % 2 == 1) had_help = had_help || burst.helped_ms != 1.9;
  }
  assert_true(was_alone && had_help);
  berth__pool_destroy(pool);
  berth_context_destroy(ctx);
}

/* Runs that follow each other keep workers awake, which then take pieces too small to wake a worker for. */
static void threads_that_are_awake_get_smaller_pieces(void **state) {
  (void)state;
  berth_context *ctx = test_context();
  berth__pool *pool;
  berth_error err;
  uint32_t most = 0;
  TEST_OK(berth__pool_create(ctx, 2, &pool, &err));
  for (int i = 0; i < 20000 && most < 3; i++) {
    berth__burst burst = {.alone_ms = 1};
    berth__pool_begin(pool, &burst);
    free(run_once(pool, 1000, 1)); /* wakes */
    cover *c = run_once(pool, 100, 50);
    if (c->pieces > most) most = c->pieces;
    free(c);
    berth__pool_end(pool, &burst);
  }
  assert_int_equal(most, 7); /* of 13 and more */
  berth__pool_destroy(pool);
  berth_context_destroy(ctx);
}

/* Less than two grains: they wake no worker, unless bursts follow each other; workers that are awake help. */
static void small_work_is_shared_by_threads_that_are_awake(void **state) {
  (void)state;
  berth_context *ctx = test_context();
  berth__pool *pool;
  berth_error err;
  uint32_t most = 0, seen = 0;
  const berth__work small = {.n = 100, .grain = 80, .awake_grain = 20};
  TEST_OK(berth__pool_create(ctx, 2, &pool, &err));
  for (int i = 0; i < 20000 && (most < 6 || seen != 3); i++) {
    berth__burst burst = {.alone_ms = 0.01, .steady_ms = {2, 1}, .steady_count = 256};
    atomic_uint workers = 0;
    berth__pool_begin(pool, &burst);
    cover *c = run_work(pool, &small);
    for (int k = 0; k < 10; k++) berth__pool_run_work(pool, &small, note_worker, &workers);
    berth__pool_end(pool, &burst);
    if (c->pieces > most) most = c->pieces;
    seen |= atomic_load(&workers);
    free(c);
  }
  assert_int_equal(most, 6);
  assert_int_equal(seen, 3);
  berth__pool_destroy(pool);
  berth_context_destroy(ctx);
}

/* Where bursts follow each other, what small jobs take shared and not is tried, and then the better way is taken, but
 * for a row of tries now and then. */
static void bursts_in_a_row_find_out_whether_sharing_pays(void **state) {
  (void)state;
  berth_context *ctx = test_context();
  berth__pool *pool;
  berth_error err;
  uint32_t seen[2] = {0}; /* pieces: better alone; better shared */
  const berth__work small = {.n = 100, .grain = 80, .awake_grain = 20};
  TEST_OK(berth__pool_create(ctx, 2, &pool, &err));
  for (int i = 0; i < 20000 && seen[1] < 6; i++) {
    for (uint32_t k = 0; k < 2; k++) {
      berth__burst burst = {.alone_ms = 0.01, .steady_ms = {1, k == 0 ? 1.2 : 0.8}, .steady_count = 40};
      berth__pool_begin(pool, &(berth__burst){0});
      berth__pool_end(pool, &(berth__burst){0});
      berth__pool_begin(pool, &burst);
      cover *c = run_work(pool, &small);
      berth__pool_end(pool, &burst);
      if (burst.steady_count == 41 && c->pieces > seen[k]) seen[k] = c->pieces; /* it was right after the other one */
      free(c);
    }
  }
  assert_int_equal(seen[0], 1);
  assert_int_equal(seen[1], 6);
  berth__burst burst = {.alone_ms = 0.01};
  bool were_tried = false;
  for (int i = 0; i < 20000 && !were_tried; i++) {
    berth__pool_begin(pool, &burst);
    berth__pool_end(pool, &burst);
    were_tried = burst.steady_ms[0] > 0 && burst.steady_ms[1] > 0;
    if (burst.steady_count < 8) assert_true(burst.steady_ms[1] <= 0);
  }
  assert_true(were_tried);
  berth__pool_destroy(pool);
  berth_context_destroy(ctx);
}

/* The last of a row, whose other bursts took 1 ms: what counts is the median, and when the usual way has become faster
 * or slower, so has the other. */
static void one_slow_burst_of_a_row_decides_nothing(void **state) {
  (void)state;
  berth_context *ctx = test_context();
  berth__pool *pool;
  berth_error err;
  bool was_seen = false;
  const struct timespec while_held_up = {.tv_nsec = 5000000};
  TEST_OK(berth__pool_create(ctx, 2, &pool, &err));
  for (int i = 0; i < 20000 && !was_seen; i++) {
    berth__burst burst = {.alone_ms = 0.01, .steady_ms = {3, 2}, .steady_count = 47, .steady_took = {1, 1, 1, 1, 1, 0}};
    berth__pool_begin(pool, &(berth__burst){0});
    berth__pool_end(pool, &(berth__burst){0});
    berth__pool_begin(pool, &burst);
    nanosleep(&while_held_up, NULL);
    berth__pool_end(pool, &burst);
    if (burst.steady_count != 48) continue; /* it was not right after the other one */
    was_seen = true;
    assert_true(burst.steady_ms[1] > 0.999 && burst.steady_ms[1] < 1.001);
    assert_true(burst.steady_ms[0] > 1.499 && burst.steady_ms[0] < 1.501);
  }
  assert_true(was_seen);
  berth__pool_destroy(pool);
  berth_context_destroy(ctx);
}

/* Outside of a burst, and in one after a pause that does without help, a sleeper stays asleep. */
static void small_work_after_a_pause_wakes_nobody(void **state) {
  (void)state;
  berth_context *ctx = test_context();
  berth__pool *pool;
  berth_error err;
  bool was_alone = false;
  const berth__work small = {.n = 100, .grain = 80, .awake_grain = 20};
  TEST_OK(berth__pool_create(ctx, 2, &pool, &err));
  for (int i = 0; i < 20000 && !was_alone; i++) { /* until the worker is asleep */
    berth__burst burst = {.alone_ms = 0.01};
    wait_a_moment();
    cover *before = run_work(pool, &small);
    berth__pool_begin(pool, &burst);
    cover *c = run_work(pool, &small);
    berth__pool_end(pool, &burst);
    was_alone = before->pieces == 1 && c->pieces == 1;
    free(before);
    free(c);
  }
  assert_true(was_alone);
  berth__pool_destroy(pool);
  berth_context_destroy(ctx);
}

/* Where other workers were found to save time, a burst wakes them as it begins, whatever its jobs are. */
static void bursts_that_help_speeds_up_call_others(void **state) {
  (void)state;
  berth_context *ctx = test_context();
  berth__pool *pool;
  berth_error err;
  uint32_t seen = 0;
  if (berth__cpu_count() == 1) {
    berth_context_destroy(ctx);
    TEST_SKIP("with one processor, nobody is awake beside the one who asks");
  }
  const berth__work small = {.n = 2, .grain = 2, .awake_grain = 1};
  TEST_OK(berth__pool_create(ctx, 2, &pool, &err));
  for (int i = 0; i < 20000 && seen != 3; i++) {
    berth__burst burst = {.alone_ms = 1, .helped_ms = 0.5, .count = 4};
    atomic_uint workers = 0;
    wait_a_moment();
    berth__pool_begin(pool, &burst);
    const double until = berth__now_ms() + 1;
    while (berth__now_ms() < until) berth__pool_run_work(pool, &small, note_worker, &workers);
    berth__pool_end(pool, &burst);
    assert_int_equal(burst.count, 5);
    assert_true(burst.helped_ms > 0.5 && burst.helped_ms < 0.6); /* however long it took, it counts a little */
    seen |= atomic_load(&workers);
  }
  assert_int_equal(seen, 3);
  berth__pool_destroy(pool);
  berth_context_destroy(ctx);
}

/* At first bursts take turns: alone, with help. */
static void both_ways_are_tried_at_first(void **state) {
  (void)state;
  berth_context *ctx = test_context();
  berth__pool *pool;
  berth_error err;
  bool alone = false, helped = false;
  TEST_OK(berth__pool_create(ctx, 2, &pool, &err));
  for (int i = 0; i < 20000 && !(alone && helped); i++) {
    berth__burst burst = {.alone_ms = 1};
    wait_a_moment();
    for (uint32_t k = 0; k < 2; k++) {
      berth__pool_begin(pool, &burst);
      berth__pool_end(pool, &burst);
      wait_a_moment();
      if (k == 0) alone = alone || (burst.alone_ms < 1 && burst.helped_ms <= 0); /* it was a guess before */
      burst.alone_ms = 1;
    }
    helped = helped || burst.helped_ms > 0;
  }
  assert_true(alone && helped);
  berth__pool_destroy(pool);
  berth_context_destroy(ctx);
}

/* A burst that is over before a sleeper is awake is done by its own thread; what it took is what it takes alone. */
static void short_bursts_wake_nobody(void **state) {
  (void)state;
  berth_context *ctx = test_context();
  berth__pool *pool;
  berth_error err;
  bool was_alone = false;
  berth__burst burst = {0};
  TEST_OK(berth__pool_create(ctx, 2, &pool, &err));
  for (int i = 0; i < 20000 && !was_alone; i++) { /* until the worker is asleep */
    atomic_uint seen = 0;
    wait_a_moment();
    burst = (berth__burst){0};
    berth__pool_begin(pool, &burst);
    for (int k = 0; k < 2; k++) berth__pool_run(pool, 8, 1, note_worker, &seen); /* a burst that lasts wakes */
    berth__pool_end(pool, &burst);
    was_alone = atomic_load(&seen) == 1 && burst.alone_ms > 0;
  }
  assert_true(was_alone);
  burst.alone_ms = 1e9;
  berth__pool_begin(pool, &burst);
  atomic_uint ignored = 0;
  berth__pool_run(pool, 8, 1, note_worker, &ignored); /* wakes, so that it says at most how long it takes alone */
  berth__pool_end(pool, &burst);
  assert_true(burst.alone_ms > 0 && burst.alone_ms < 1e9);
  berth__pool_destroy(pool);
  berth_context_destroy(ctx);
}

static void add_up(void *user, uint32_t worker, int64_t begin, int64_t end) {
  int64_t *sums = user; /* one per worker, a cache line apart; no atomics: the pool itself must order the runs */
  for (int64_t i = begin; i < end; i++) sums[worker * 8] += i;
}

static void many_runs_lose_nothing_and_allocate_nothing(void **state) {
  (void)state;
  enum {
    RUNS = 20000
  };
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  berth__pool *pool;
  berth_error err;
  TEST_OK(berth__pool_create(ctx, 4, &pool, &err));
  uint64_t calls = alloc.calls, blocks = alloc.live_blocks;
  int64_t sums[4 * 8] = {0};
  for (int run = 0; run < RUNS; run++) {
    const berth__split split = run % 2 == 0 ? BERTH__SPLIT_QUEUE : BERTH__SPLIT_PARTS;
    berth__pool_run_split(pool, 10 + run % 20, 1, split, add_up, sums);
  }
  int64_t want = 0;
  for (int run = 0; run < RUNS; run++) want += (int64_t)(10 + run % 20) * (9 + run % 20) / 2;
  assert_int_equal(sums[0] + sums[8] + sums[16] + sums[24], want);
  assert_int_equal(alloc.calls, calls);
  assert_int_equal(alloc.live_blocks, blocks);
  berth__pool_destroy(pool);
  test_context_done(ctx, &alloc);
}

/* Every piece waits for another one: only two threads at once get through. */
typedef struct meeting {
  _Atomic int arrived;
  _Atomic int met;
} meeting;

static void meet(void *user, uint32_t worker, int64_t begin, int64_t end) {
  (void)worker;
  (void)begin;
  (void)end;
  meeting *m = user;
  atomic_fetch_add(&m->arrived, 1);
  double until = berth__now_ms() + 20000;
  while (atomic_load(&m->arrived) < 2 && berth__now_ms() < until) usleep(100);
  if (atomic_load(&m->arrived) >= 2) atomic_fetch_add(&m->met, 1);
}

static void two_pieces_run_at_the_same_time(void **state) {
  (void)state;
  berth_context *ctx = test_context();
  berth__pool *pool;
  berth_error err;
  TEST_OK(berth__pool_create(ctx, 2, &pool, &err));
  meeting m = {0};
  berth__pool_run(pool, 2, 1, meet, &m);
  assert_int_equal(m.met, 2);
  berth__pool_destroy(pool);
  berth_context_destroy(ctx);
}

/* Both workers are in their first piece before either goes on. */
typedef struct first_pieces {
  _Atomic int arrived;
  _Atomic int64_t begin[2]; /* plus one; 0: not there yet */
} first_pieces;

static void note_first(void *user, uint32_t worker, int64_t begin, int64_t end) {
  (void)end;
  first_pieces *f = user;
  if (atomic_load(&f->begin[worker]) != 0) return;
  atomic_store(&f->begin[worker], begin + 1);
  atomic_fetch_add(&f->arrived, 1);
  double until = berth__now_ms() + 20000;
  while (atomic_load(&f->arrived) < 2 && berth__now_ms() < until) usleep(100);
}

static void with_parts_a_worker_begins_with_its_own(void **state) {
  (void)state;
  berth_context *ctx = test_context();
  berth__pool *pool;
  berth_error err;
  TEST_OK(berth__pool_create(ctx, 2, &pool, &err));
  for (int64_t n = 6; n < 300; n += 7) {
    first_pieces f = {0};
    berth__pool_run_split(pool, n, 1, BERTH__SPLIT_PARTS, note_first, &f);
    assert_int_equal(f.begin[0], 1);
    const int64_t middle = f.begin[1] - 1, more = n % 32; /* of 32 pieces at most, those in front have one more */
    assert_int_equal(middle, n < 32 ? n / 2 : 16 * (n / 32) + (more < 16 ? more : 16));
  }
  berth__pool_destroy(pool);
  berth_context_destroy(ctx);
}

/* The caller does not leave its first piece before the other has done all the rest of eight items. */
typedef struct help {
  _Atomic bool has_begun; /* the caller; the other waits for it */
  _Atomic int done;       /* items, by the other */
  _Atomic bool was_given;
} help;

static void wait_for_help(void *user, uint32_t worker, int64_t begin, int64_t end) {
  help *h = user;
  double until = berth__now_ms() + 20000;
  if (worker == 0) {
    atomic_store(&h->has_begun, true);
    while (atomic_load(&h->done) < 8 - (end - begin) && berth__now_ms() < until) usleep(100);
    atomic_store(&h->was_given, atomic_load(&h->done) == 8 - (end - begin));
    return;
  }
  while (!atomic_load(&h->has_begun) && berth__now_ms() < until) usleep(100);
  atomic_fetch_add(&h->done, (int)(end - begin));
}

static void a_worker_helps_with_the_part_of_another(void **state) {
  (void)state;
  berth_context *ctx = test_context();
  berth__pool *pool;
  berth_error err;
  TEST_OK(berth__pool_create(ctx, 2, &pool, &err));
  for (int run = 0; run < 200; run++) {
    help h = {0};
    berth__pool_run_split(pool, 8, 1, BERTH__SPLIT_PARTS, wait_for_help, &h);
    assert_true(h.was_given);
  }
  berth__pool_destroy(pool);
  berth_context_destroy(ctx);
}

/* Much more than a worker's stack is by default. */
static void go_deep(void *user, uint32_t worker, int64_t begin, int64_t end) {
  volatile char deep[6 << 20];
  (void)worker;
  for (size_t i = 0; i < sizeof deep; i += 4096) deep[i] = (char)i;
  atomic_fetch_add((_Atomic int64_t *)user, deep[4096] == 0 ? end - begin : 0);
}

static void deep_pools_have_deep_stacks(void **state) {
  berth_context *ctx = test_context();
  _Atomic int64_t done = 0;
  berth__pool *pool;
  berth_error err;
  (void)state;
  TEST_OK(berth__pool_create_deep(ctx, 3, (size_t)8 << 20, &pool, &err));
  for (int i = 0; i < 20; i++) berth__pool_run(pool, 12, 1, go_deep, &done);
  assert_int_equal(done, 20 * 12);
  berth__pool_destroy(pool);
  berth_context_destroy(ctx);
}

static void wrong_thread_counts_are_refused(void **state) {
  (void)state;
  berth_context *ctx = test_context();
  berth__pool *pool = (berth__pool *)ctx;
  berth_error err;
  test_expect_error(berth__pool_create(ctx, 0, &pool, &err), BERTH_INVALID, &err, "0 threads");
  assert_null(pool);
  test_expect_error(berth__pool_create(ctx, BERTH__MAX_THREADS + 1, &pool, &err), BERTH_INVALID, &err, "1025");
  berth_context_destroy(ctx);
}

static berth_status make_pool(berth_context *ctx, berth_error *err, void *user) {
  (void)user;
  berth__pool *pool;
  berth_status status = berth__pool_create(ctx, 2, &pool, err);
  berth__pool_destroy(pool);
  return status;
}

static void a_pool_without_memory_fails(void **state) {
  (void)state;
  assert_int_equal(test_fail_each_allocation(make_pool, NULL), 1);
}

static void the_machine_has_processors_and_a_clock(void **state) {
  (void)state;
  assert_true(berth__cpu_count() >= 1);
  double before = berth__now_ms();
  usleep(2000);
  double after = berth__now_ms();
  assert_true(after - before >= 1.9 && after - before < 10000);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(ranges_cover_everything_once),
      cmocka_unit_test(no_pool_runs_on_this_thread),
      cmocka_unit_test(zero_or_negative_items_run_nothing),
      cmocka_unit_test(work_of_one_grain_is_not_split),
      cmocka_unit_test(threads_that_are_awake_get_smaller_pieces),
      cmocka_unit_test(small_work_is_shared_by_threads_that_are_awake),
      cmocka_unit_test(bursts_in_a_row_find_out_whether_sharing_pays),
      cmocka_unit_test(one_slow_burst_of_a_row_decides_nothing),
      cmocka_unit_test(small_work_after_a_pause_wakes_nobody),
      cmocka_unit_test(bursts_that_help_speeds_up_call_others),
      cmocka_unit_test(both_ways_are_tried_at_first),
      cmocka_unit_test(many_runs_lose_nothing_and_allocate_nothing),
      cmocka_unit_test(two_pieces_run_at_the_same_time),
      cmocka_unit_test(with_parts_a_worker_begins_with_its_own),
      cmocka_unit_test(short_bursts_wake_nobody),
      cmocka_unit_test(bursts_that_help_slows_down_wake_nobody),
      cmocka_unit_test(a_worker_helps_with_the_part_of_another),
      cmocka_unit_test(deep_pools_have_deep_stacks),
      cmocka_unit_test(wrong_thread_counts_are_refused),
      cmocka_unit_test(a_pool_without_memory_fails),
      cmocka_unit_test(the_machine_has_processors_and_a_clock),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
