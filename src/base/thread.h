/* A thread pool that is made once. The caller's thread works too; with one thread, no thread is made. Running work
 * allocates nothing; idle workers sleep. */
#ifndef BERTH_BASE_THREAD_H
#define BERTH_BASE_THREAD_H

#include "base/context.h"

#define BERTH__MAX_THREADS 1024u

typedef struct berth__pool berth__pool;

/* worker: 0 .. n_threads - 1; each worker number is used by one thread at a time. */
typedef void (*berth__range_fn)(void *user, uint32_t worker, int64_t begin, int64_t end);

berth_status berth__pool_create(berth_context *ctx, uint32_t n_threads, berth__pool **out, berth_error *err);
/* For work that calls foreign code: threads with at least this stack size. */
berth_status berth__pool_create_deep(berth_context *ctx, uint32_t n_threads, size_t stack, berth__pool **out,
                                     berth_error *err);
/* Uses the caller's threads and makes none. `threads` is complete, and copied. */
berth_status berth__pool_wrap(berth_context *ctx, const berth_thread_pool *threads, berth__pool **out,
                              berth_error *err);
void berth__pool_destroy(berth__pool *pool); /* NULL is fine */
uint32_t berth__pool_n_threads(const berth__pool *pool);
/* Splits [0, n) into pieces and runs them on the pool (NULL: on this thread alone). `grain` items are worth waking a
 * thread for: fewer than twice as many always are one piece; otherwise pieces are at least that large, or a quarter of
 * it while some thread is awake. One run at a time; fn must not run work on the same pool. */
void berth__pool_run(berth__pool *pool, int64_t n, int64_t grain, berth__range_fn fn, void *user);

/* Who takes which pieces. It affects nothing but time. */
typedef enum berth__split {
  BERTH__SPLIT_QUEUE, /* whoever is free takes the next one: the default */
  BERTH__SPLIT_PARTS, /* static partition with work stealing: every worker owns the same part of [0, n) in each run */
} berth__split;
void berth__pool_run_split(berth__pool *pool, int64_t n, int64_t grain, berth__split split, berth__range_fn fn,
                           void *user);

/* Work to share out. */
typedef struct berth__work {
  int64_t n, grain;
  /* About how many items are worth a piece for a thread that is awake, if there are fewer than two grains. 0: such work
   * is always one piece; it may have scratch for one worker only. */
  int64_t awake_grain;
  berth__split split;
} berth__work;
void berth__pool_run_work(berth__pool *pool, const berth__work *work, berth__range_fn fn, void *user);

#define BERTH__STEADY_TAKEN 6 /* bursts of a row whose median counts */

/* What is known of a burst from earlier ones: its recent times, after a pause and right after another burst. */
typedef struct berth__burst {
  double alone_ms;       /* time of this thread alone; a guess at first */
  double helped_ms;      /* time with threads that have to be woken for it; 0: not known yet */
  uint32_t count;        /* bursts that came after a pause */
  double steady_ms[2];   /* right after another burst, small jobs by this thread alone, or shared; 0: not known yet */
  uint32_t steady_count; /* bursts right after another one */
  double steady_took[BERTH__STEADY_TAKEN]; /* times of this row, sorted */
} berth__burst;

/* A burst: runs follow each other closely, and small ones wake nobody. If bursts follow each other closely too, threads
 * that were woken once are still awake for the next, and share small jobs if that was found to pay off. A burst that
 * ends before a sleeper would be awake wakes nobody, nor does one that was found to take longer with help. If help was
 * found to pay off, others are woken when the burst begins, so they are ready when they are needed. Both ways are tried
 * again now and then. berth__pool_end stores the measurements. A pool that is NULL is fine. */
void berth__pool_begin(berth__pool *pool, const berth__burst *burst);
void berth__pool_end(berth__pool *pool, berth__burst *burst);

uint32_t berth__cpu_count(void);
double berth__now_ms(void); /* a monotonic clock */

#endif
