/* The pool as kernels use it: plain memory that one job writes and the next one reads, on other threads. The thread
 * sanitizer then sees every order that the pool does not give. */
#include <time.h>

#include "base/thread.h"
#include "threads.h"

enum {
  N = 4096,
  JOBS = 400
};

typedef struct buffers {
  int64_t from[N], to[N];
  int64_t in_worker[THREADS_MOST * 32]; /* scratch of a worker: no lock, as its number is one thread's at a time */
} buffers;

/* Reads what neighbours wrote in the job before: pieces move between workers, so this crosses threads. */
static void blur(void *user, uint32_t worker, int64_t begin, int64_t end) {
  buffers *b = user;
  for (int64_t i = begin; i < end; i++) b->to[i] = b->from[i] + b->from[(i + N / 2) % N];
  b->in_worker[worker * 32] += end - begin;
}

static void rest(long microseconds) {
  const struct timespec time = {.tv_nsec = microseconds * 1000};
  nanosleep(&time, NULL);
}

/* Now and then a rest: long enough for workers to sleep, or just as long as they look for work. */
static void run_jobs(berth__pool *pool, buffers *b, berth__split split, bool in_burst) {
  berth__burst burst = {.alone_ms = 1};
  if (in_burst) berth__pool_begin(pool, &burst);
  for (int job = 0; job < JOBS; job++) {
    berth__pool_run_split(pool, N, 1 + job % 700, split, blur, b);
    for (int i = 0; i < N; i++) b->from[i] = b->to[i] & 0xffff; /* the caller's turn */
    if (job % 100 == 99) rest(job % 200 == 199 ? 2000 : 30);
  }
  if (in_burst) berth__pool_end(pool, &burst);
}

/* Bursts of small jobs, which are for threads that are awake: some follow each other, some come after a pause, and some
 * of these call others as they begin. */
static void run_bursts(berth__pool *pool, buffers *b, berth__split split) {
  for (int i = 0; i < JOBS / 4; i++) {
    berth__burst burst = {
        .alone_ms = 1, .helped_ms = i % 2 == 0 ? 0.5 : 1.5, .count = 4, .steady_ms = {1, 0.5}, .steady_count = 40};
    if (i % 10 == 9) rest(i % 20 == 19 ? 1000 : 60);
    berth__pool_begin(pool, &burst);
    for (int job = 0; job < 4; job++) {
      berth__pool_run_work(pool, &(berth__work){N, N - 1, N / 9, split}, blur, b);
      for (int k = 0; k < N; k++) b->from[k] = b->to[k] & 0xffff;
    }
    berth__pool_end(pool, &burst);
  }
}

static void start_buffers(buffers *b) {
  *b = (buffers){.from = {0}};
  for (int i = 0; i < N; i++) b->from[i] = i;
}

static void one_caller(crew_member *self, void *user) {
  static const berth__split splits[] = {BERTH__SPLIT_QUEUE, BERTH__SPLIT_PARTS};
  berth_context *ctx = user;
  static _Thread_local buffers b, plain;
  for (uint32_t n_threads = 1; n_threads <= 4; n_threads++) {
    berth_error err;
    berth__pool *pool;
    if (!CREW_OK(berth__pool_create(ctx, n_threads, &pool, &err))) return;
    for (int s = 0; s < 2; s++) {
      start_buffers(&b);
      run_jobs(pool, &b, splits[s], s == 1);
      run_bursts(pool, &b, splits[s]);
      start_buffers(&plain);
      run_jobs(NULL, &plain, splits[s], false);
      run_bursts(NULL, &plain, splits[s]);
      CREW_TRUE(memcmp(b.from, plain.from, sizeof b.from) == 0);
      int64_t done = 0;
      for (uint32_t w = 0; w < n_threads; w++) done += b.in_worker[w * 32];
      CREW_TRUE(done == (int64_t)N * 2 * JOBS);
    }
    berth__pool_destroy(pool);
  }
}

static void a_job_sees_what_the_one_before_wrote(void **state) {
  (void)state;
  berth_context *ctx = test_context();
  crew_run(1, one_caller, ctx);
  berth_context_destroy(ctx);
}

static void pools_of_one_context_do_not_meet(void **state) {
  (void)state;
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  crew_run(3, one_caller, ctx);
  test_context_done(ctx, &alloc);
}

/* A pool may be handed on: one caller at a time, which need not be the thread that made it. */
static void handed_on(crew_member *self, void *user) {
  berth__pool *pool = user;
  static buffers b;
  start_buffers(&b);
  run_jobs(pool, &b, BERTH__SPLIT_PARTS, true);
  CREW_TRUE(b.from[1] != 1);
}

static void a_pool_may_be_used_by_one_thread_after_another(void **state) {
  (void)state;
  berth_context *ctx = test_context();
  berth__pool *pool;
  berth_error err;
  TEST_OK(berth__pool_create(ctx, 3, &pool, &err));
  for (int i = 0; i < 3; i++) crew_run(1, handed_on, pool);
  berth__pool_destroy(pool);
  berth_context_destroy(ctx);
}

/* Workers that have not even started yet, and workers that are still looking for work. */
static void a_pool_can_end_at_once(void **state) {
  (void)state;
  berth_context *ctx = test_context();
  static buffers b;
  for (int i = 0; i < 50; i++) {
    berth__pool *pool;
    berth_error err;
    TEST_OK(berth__pool_create(ctx, 4, &pool, &err));
    if (i % 2 == 1) berth__pool_run(pool, N, 1, blur, &b);
    berth__pool_destroy(pool);
  }
  berth_context_destroy(ctx);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_job_sees_what_the_one_before_wrote),
      cmocka_unit_test(pools_of_one_context_do_not_meet),
      cmocka_unit_test(a_pool_may_be_used_by_one_thread_after_another),
      cmocka_unit_test(a_pool_can_end_at_once),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
