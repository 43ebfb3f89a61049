#include "base/thread.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>
#include <unistd.h>

#define STACK_SIZE ((size_t)1 << 20)
#define QUEUE_PER_THREAD 4  /* pieces: more than threads, so that a late thread does not delay the others */
#define PARTS_PER_THREAD 16 /* most pieces: the last ones taken are small, so that threads end together */
#define APART 128           /* bytes between what different threads write: cache lines are fetched in pairs */

typedef struct pool_job {
  berth__range_fn fn;
  void *user;
  int64_t n, pieces;
  uint32_t n_shares; /* workers below this one own pieces (static partition); 1: the caller owns all, as a queue */
  bool wakes;        /* worth waking a thread for */
} pool_job;

/* Number 0 is the caller's thread, which was not made here. */
typedef struct pool_worker {
  pthread_t thread;
  berth__pool *pool;
  uint32_t number;
  _Atomic uint64_t share; /* pieces it owns that nobody has taken yet: begin in the low half, end in the high half */
  char apart[APART];
} pool_worker;

/* A run opens a job, and workers that notice it in time join it. Its pieces are a queue from which everyone takes the
 * next one, or a static partition with work stealing: every worker owns a range of neighbouring pieces, takes half of
 * the rest of it at a time from the front, and then steals from the back of the others' ranges. With a static partition
 * a worker has the same part of every job of the same size, so what it wrote in one is in its cache for the next, and
 * the others take over the work of a late or slow worker. The caller closes the job when nothing is left, and waits for
 * those that joined. A worker that comes late finds the job closed: nobody waits for a sleeper.
 *
 * `state` holds the number of the job, whether it is open, and how many workers have joined it. A job is written before
 * it is opened, and stays until the last worker has left. Workers look for the next job for a moment before they sleep.
 *
 * A burst that is worth sharing calls workers when it begins: they wake up and look for jobs.
 *
 * A worker that goes to sleep announces it and then looks at the state once more; whoever changes the state then looks
 * for sleepers. All of these accesses are sequentially consistent, so one of the two always sees the other. */
struct berth__pool {
  berth_context *ctx;
  berth_thread_pool outside; /* the caller's threads; without parallel_for: those of the pool itself */
  pthread_mutex_t lock;
  pthread_cond_t wake; /* a job is open, a burst calls, or quit */
  pthread_cond_t done; /* the last worker left the job */
  pool_job job;
  _Atomic uint64_t state;
  _Atomic uint32_t n_asleep; /* workers */
  _Atomic uint32_t calls;    /* bursts that called workers */
  _Atomic bool is_caller_asleep;
  _Atomic bool in_burst, quit;
  bool is_steady;     /* the last burst ended just before this one */
  bool shares_small;  /* jobs of less than two grains are shared too, by threads that are awake */
  double patience_ms; /* it wakes nobody before this time: it is likely over before help pays off */
  bool has_help;      /* some thread was awake, or was woken, in this burst */
  double began_ms, ended_ms;
  uint32_t n_threads;
  uint32_t n_started;
  char apart[APART];
  pool_worker workers[]; /* length: n_threads */
};

#define JOINED ((uint64_t)0xffff)  /* part of the state: how many workers are in the job */
#define OPEN ((uint64_t)1 << 16)   /* the job takes more workers */
#define NUMBER ((uint64_t)1 << 17) /* increment of the job's number */
#define WAKE_PIECES 4              /* in a burst, jobs of fewer small pieces are left to threads that are awake */
#define STEADY_PIECES 2            /* the same when runs follow each other: a thread that was woken stays awake */
#define STEADY_MS 0.05             /* longest pause between runs that follow each other */
#define SHORT_MS 0.06              /* what this thread does alone while another one wakes up, and a little more */
#define LONG_MS 2.0                /* from this duration on, help always pays off */
#define CALL_MS 0.03               /* burst time that is worth calling a thread for */
#define PATIENCE 2    /* a burst that is faster alone wakes somebody when it takes this many times as long */
#define GAIN 0.95     /* the time with help must be below this fraction of the time without */
#define FIRST_TRIES 4 /* bursts after pauses that alternate: alone, with help */
#define TRY_AGAIN 32  /* such bursts until the other way is tried again */
#define STEADY_ROW (STEADY_SETTLING + BERTH__STEADY_TAKEN) /* bursts that follow each other and run the same way */
#define STEADY_SETTLING 2                                  /* of them do not count: threads are still waking up */
#define STEADY_FIRST 4                                     /* rows that alternate: alone, shared */
#define STEADY_AGAIN 32                                    /* rows, the last of which tries the other way */
#define AWAKE_SHARE 4 /* fraction of a grain that is worth sharing with threads that are awake */
#define LOOKS 4000    /* looks for the next job before a worker sleeps: some tens of microseconds */

static inline void pause_a_moment(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

static uint64_t share_of(uint64_t first, uint64_t end) { return end << 32 | first; }

/* Takes pieces from what is left of a share: one, or half of them. False: nothing is left. */
static bool take_from(pool_worker *owner, bool from_front, bool one, int64_t *first, int64_t *end) {
  uint64_t share = atomic_load_explicit(&owner->share, memory_order_relaxed);
  for (;;) {
    const uint64_t from = share & UINT32_MAX, to = share >> 32, count = one ? 1 : (to - from + 1) / 2;
    if (from >= to) return false;
    *first = (int64_t)(from_front ? from : to - count);
    *end = (int64_t)(from_front ? from + count : to);
    const uint64_t left = from_front ? share_of(from + count, to) : share_of(from, to - count);
    if (atomic_compare_exchange_weak_explicit(&owner->share, &share, left, memory_order_relaxed, memory_order_relaxed))
      return true;
  }
}

/* The first item of a piece; the first `n % pieces` pieces have one item more than the others. */
static int64_t begin_of(const pool_job *job, int64_t piece) {
  const int64_t size = job->n / job->pieces, rest = job->n % job->pieces;
  return piece * size + (piece < rest ? piece : rest);
}

static void take_pieces(berth__pool *pool, const pool_job *job, uint32_t number) {
  int64_t first, end;
  for (uint32_t i = 0; i < job->n_shares; i++) { /* first its own, then those of the workers after it */
    const uint32_t owner = (number + i) % job->n_shares;
    const bool from_front = owner == number || job->n_shares == 1;
    while (take_from(&pool->workers[owner], from_front, job->n_shares == 1, &first, &end))
      job->fn(job->user, number, begin_of(job, first), begin_of(job, end));
  }
}

static bool is_new(uint64_t state, uint64_t seen) { return (state & OPEN) && state / NUMBER != seen; }

/* Sleeps until there is a job, or a burst calls. */
static void sleep_until_called(berth__pool *pool, uint64_t seen) {
  pthread_mutex_lock(&pool->lock);
  const uint32_t calls = atomic_load(&pool->calls);
  atomic_fetch_add(&pool->n_asleep, 1);
  while (!atomic_load(&pool->quit) && !is_new(atomic_load(&pool->state), seen) && atomic_load(&pool->calls) == calls)
    pthread_cond_wait(&pool->wake, &pool->lock);
  atomic_fetch_sub(&pool->n_asleep, 1);
  pthread_mutex_unlock(&pool->lock);
}

/* Looks for a job for a moment, then sleeps until it is worth looking again. False: the pool ends. */
static bool await_job(berth__pool *pool, uint64_t seen) {
  while (!atomic_load(&pool->quit)) {
    for (int i = 0; i < LOOKS && !atomic_load_explicit(&pool->quit, memory_order_relaxed); i++) {
      if (is_new(atomic_load(&pool->state), seen)) return true;
      pause_a_moment();
    }
    sleep_until_called(pool, seen);
  }
  return false;
}

/* False: it has been closed meanwhile. */
static bool join_job(berth__pool *pool, uint64_t *seen) {
  uint64_t state = atomic_load(&pool->state);
  while (is_new(state, *seen)) {
    if (!atomic_compare_exchange_weak(&pool->state, &state, state + 1)) continue;
    *seen = state / NUMBER;
    return true;
  }
  return false;
}

static void leave_job(berth__pool *pool) {
  const uint64_t state = atomic_fetch_sub(&pool->state, 1) - 1;
  if ((state & (JOINED | OPEN)) != 0 || !atomic_load(&pool->is_caller_asleep)) return;
  pthread_mutex_lock(&pool->lock);
  pthread_cond_signal(&pool->done);
  pthread_mutex_unlock(&pool->lock);
}

static void *work(void *user) {
  pool_worker *self = user;
  berth__pool *pool = self->pool;
  uint64_t seen = 0;
  while (await_job(pool, seen)) {
    if (!join_job(pool, &seen)) continue;
    const pool_job job = pool->job;
    take_pieces(pool, &job, self->number);
    leave_job(pool);
  }
  return NULL;
}

/* Workers block signals, which are for the program's threads, but not faults: a fault is delivered to its own thread,
 * and blocking one ends the process whatever handler there is. */
static int start_worker(berth__pool *pool, const pthread_attr_t *attr, pool_worker *worker) {
  sigset_t all, before;
  sigfillset(&all);
  sigdelset(&all, SIGBUS);
  sigdelset(&all, SIGSEGV);
  sigdelset(&all, SIGFPE);
  sigdelset(&all, SIGILL);
  worker->pool = pool;
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int code = pthread_create(&worker->thread, attr, work, worker);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (code == 0) pool->n_started++;
  return code;
}

static int start_workers(berth__pool *pool, size_t stack) {
  pthread_attr_t attr;
  int code = pthread_attr_init(&attr);
  if (code != 0) return code;
  pthread_attr_setstacksize(&attr, stack); /* if this is refused, the default will do */
  for (uint32_t i = 1; code == 0 && i < pool->n_threads; i++) {
    pool->workers[i].number = i;
    code = start_worker(pool, &attr, &pool->workers[i]);
  }
  pthread_attr_destroy(&attr);
  return code;
}

static int init_locks(berth__pool *pool) {
  int code = pthread_mutex_init(&pool->lock, NULL);
  if (code != 0) return code;
  code = pthread_cond_init(&pool->wake, NULL);
  if (code != 0) goto fail_lock;
  code = pthread_cond_init(&pool->done, NULL);
  if (code != 0) goto fail_wake;
  return 0;

fail_wake:
  pthread_cond_destroy(&pool->wake);
fail_lock:
  pthread_mutex_destroy(&pool->lock);
  return code;
}

static berth_status check_count(uint32_t n_threads, berth_error *err) {
  if (n_threads != 0 && n_threads <= BERTH__MAX_THREADS) return BERTH_OK;
  return berth__fail(err, BERTH_INVALID, "a pool of %u threads is not possible; use 1 to %u", (unsigned)n_threads,
                     (unsigned)BERTH__MAX_THREADS);
}

berth_status berth__pool_create(berth_context *ctx, uint32_t n_threads, berth__pool **out, berth_error *err) {
  return berth__pool_create_deep(ctx, n_threads, STACK_SIZE, out, err);
}

berth_status berth__pool_create_deep(berth_context *ctx, uint32_t n_threads, size_t stack, berth__pool **out,
                                     berth_error *err) {
  *out = NULL;
  BERTH__TRY(check_count(n_threads, err));
  berth__pool *pool = berth__alloc_zero(ctx, sizeof *pool + n_threads * sizeof(pool_worker));
  if (pool == NULL) return berth__fail_nomem(err, "the thread pool");
  pool->ctx = ctx;
  pool->n_threads = n_threads;
  pool->shares_small = true;
  int code = init_locks(pool);
  if (code != 0) {
    berth__free(ctx, pool);
    return berth__fail(err, BERTH_NOMEM, "cannot make the locks of the thread pool: %s", strerror(code));
  }
  code = start_workers(pool, stack);
  if (code != 0) {
    berth__pool_destroy(pool);
    return berth__fail(err, BERTH_NOMEM, "cannot start %u threads: %s; use fewer", (unsigned)n_threads, strerror(code));
  }
  *out = pool;
  return BERTH_OK;
}

berth_status berth__pool_wrap(berth_context *ctx, const berth_thread_pool *threads, berth__pool **out,
                              berth_error *err) {
  *out = NULL;
  if (threads->parallel_for == NULL)
    return berth__fail(err, BERTH_INVALID, "a berth_thread_pool needs its parallel_for");
  BERTH__TRY(check_count(threads->n_threads, err));
  berth__pool *pool = berth__alloc_zero(ctx, sizeof *pool + threads->n_threads * sizeof(pool_worker));
  if (pool == NULL) return berth__fail_nomem(err, "the thread pool");
  pool->ctx = ctx;
  pool->n_threads = threads->n_threads;
  pool->outside = *threads;
  *out = pool;
  return BERTH_OK;
}

void berth__pool_destroy(berth__pool *pool) {
  if (pool == NULL) return;
  if (pool->outside.parallel_for != NULL) {
    berth__free(pool->ctx, pool);
    return;
  }
  pthread_mutex_lock(&pool->lock);
  atomic_store(&pool->quit, true);
  pthread_cond_broadcast(&pool->wake);
  pthread_mutex_unlock(&pool->lock);
  for (uint32_t i = 1; i <= pool->n_started; i++) pthread_join(pool->workers[i].thread, NULL);
  pthread_cond_destroy(&pool->done);
  pthread_cond_destroy(&pool->wake);
  pthread_mutex_destroy(&pool->lock);
  berth__free(pool->ctx, pool);
}

static bool is_better_alone(double alone_ms, double helped_ms) { return helped_ms > 0 && helped_ms >= GAIN * alone_ms; }

/* Whether a burst after a pause, when all workers are asleep, should wake others. */
static bool wants_help(const berth__burst *burst) {
  if (burst->alone_ms < SHORT_MS) return false;
  if (burst->alone_ms >= LONG_MS) return true;
  if (burst->count < FIRST_TRIES) return burst->count % 2 == 1;
  const bool tries = burst->count % TRY_AGAIN == TRY_AGAIN - 1;
  return is_better_alone(burst->alone_ms, burst->helped_ms) == tries;
}

/* Whether a burst that follows another one tries the other way, to measure it. */
static bool steady_is_try(const berth__burst *burst) {
  const uint32_t row = burst->steady_count / STEADY_ROW;
  return row < STEADY_FIRST || row % STEADY_AGAIN == STEADY_AGAIN - 1;
}

/* Whether small jobs are shared when bursts follow each other: alternates both ways, then picks the faster one. */
static bool wants_shares(const berth__burst *burst) {
  const uint32_t row = burst->steady_count / STEADY_ROW;
  if (row < STEADY_FIRST) return row % 2 == 1;
  return is_better_alone(burst->steady_ms[0], burst->steady_ms[1]) == steady_is_try(burst);
}

static double patience_for(const berth__burst *burst) {
  const double alone = PATIENCE * burst->alone_ms;
  if (wants_help(burst)) return 0;
  return alone > SHORT_MS ? alone : SHORT_MS;
}

/* Calls as many as may be of use; long bursts have jobs that wake them. */
static void call_workers(berth__pool *pool, const berth__burst *burst) {
  if (pool->n_threads == 1 || pool->outside.parallel_for != NULL || burst->alone_ms >= LONG_MS) return;
  pool->has_help = true;
  if (atomic_load(&pool->n_asleep) == 0) return;
  pthread_mutex_lock(&pool->lock);
  atomic_fetch_add(&pool->calls, 1);
  for (uint32_t i = 1; i < pool->n_threads && i * CALL_MS < burst->alone_ms; i++) pthread_cond_signal(&pool->wake);
  pthread_mutex_unlock(&pool->lock);
}

void berth__pool_begin(berth__pool *pool, const berth__burst *burst) {
  if (pool == NULL) return;
  pool->began_ms = berth__now_ms();
  pool->is_steady = pool->began_ms - pool->ended_ms < STEADY_MS;
  pool->patience_ms = patience_for(burst);
  pool->shares_small = !pool->is_steady || wants_shares(burst);
  pool->has_help = false;
  atomic_store(&pool->in_burst, true);
  if (!pool->is_steady && wants_help(burst)) call_workers(pool, burst);
}

/* A moving average. A burst that something else delayed counts only a little, however long it took. */
static double blend(double known, double took) {
  if (known <= 0) return took;
  const double least = known / 2, most = known * 2;
  return known + ((took < least ? least : took > most ? most : took) - known) / 8;
}

/* The time of a row is its median, since a single burst may have been delayed by another program. The processor's clock
 * varies with the load of its neighbours, so only the ratio of the two ways counts: if a row shows that the usual way
 * has become faster or slower, the other one is scaled alike. */
static void note_steady_row(berth__burst *burst, bool shared, double took) {
  double *known = &burst->steady_ms[shared];
  if (*known <= 0) {
    *known = took;
  } else if (steady_is_try(burst)) {
    *known += (took - *known) / 2;
  } else {
    burst->steady_ms[!shared] *= took / *known;
    *known = took;
  }
}

static void note_steady(berth__burst *burst, bool shared, double took) {
  const uint32_t at = burst->steady_count % STEADY_ROW;
  double *sorted = burst->steady_took;
  if (at >= STEADY_SETTLING) {
    uint32_t i = at - STEADY_SETTLING;
    for (; i > 0 && sorted[i - 1] > took; i--) sorted[i] = sorted[i - 1];
    sorted[i] = took;
  }
  if (at == STEADY_ROW - 1) note_steady_row(burst, shared, sorted[(BERTH__STEADY_TAKEN - 1) / 2]);
  burst->steady_count++;
}

/* The time with help is at least its share of the time alone: a burst that something else delayed once is found to be
 * short again. */
void berth__pool_end(berth__pool *pool, berth__burst *burst) {
  if (pool == NULL) return;
  atomic_store(&pool->in_burst, false);
  pool->ended_ms = berth__now_ms();
  const double took = pool->ended_ms - pool->began_ms, most = took * pool->n_threads;
  if (pool->has_help && most < burst->alone_ms) burst->alone_ms = most;
  if (pool->is_steady) {
    note_steady(burst, pool->shares_small, took);
    return;
  }
  const bool is_first = burst->count++ == 0;
  if (pool->has_help)
    burst->helped_ms = blend(burst->helped_ms, took);
  else
    burst->alone_ms = blend(is_first ? 0 : burst->alone_ms, took);
}

uint32_t berth__pool_n_threads(const berth__pool *pool) { return pool != NULL ? pool->n_threads : 1; }

static void share_pieces(berth__pool *pool, const pool_job *job) {
  pool->job = *job;
  for (int64_t i = 0; i < job->n_shares; i++) {
    const uint64_t first = (uint64_t)(job->pieces * i / job->n_shares);
    const uint64_t end = (uint64_t)(job->pieces * (i + 1) / job->n_shares);
    atomic_store_explicit(&pool->workers[i].share, share_of(first, end), memory_order_relaxed);
  }
}

static void take_outside(void *data, uint32_t index) {
  berth__pool *pool = data;
  take_pieces(pool, &pool->job, index);
}

static void open_job(berth__pool *pool, const pool_job *job) {
  share_pieces(pool, job);
  const uint64_t number = atomic_load_explicit(&pool->state, memory_order_relaxed) / NUMBER + 1;
  atomic_store(&pool->state, number * NUMBER | OPEN);
  pool->has_help = pool->has_help || job->wakes || atomic_load(&pool->n_asleep) + 1 < pool->n_threads;
  if (!job->wakes || atomic_load(&pool->n_asleep) == 0) return;
  pthread_mutex_lock(&pool->lock);
  if (job->pieces >= pool->n_threads) {
    pthread_cond_broadcast(&pool->wake);
  } else {
    for (int64_t i = 1; i < job->pieces; i++) pthread_cond_signal(&pool->wake);
  }
  pthread_mutex_unlock(&pool->lock);
}

static void close_job(berth__pool *pool) {
  uint64_t state = atomic_fetch_and(&pool->state, ~OPEN);
  for (int i = 0; i < LOOKS && (state & JOINED) != 0; i++) {
    pause_a_moment();
    state = atomic_load(&pool->state);
  }
  if ((state & JOINED) == 0) return;
  pthread_mutex_lock(&pool->lock);
  atomic_store(&pool->is_caller_asleep, true);
  while ((atomic_load(&pool->state) & JOINED) != 0) pthread_cond_wait(&pool->done, &pool->lock);
  atomic_store(&pool->is_caller_asleep, false);
  pthread_mutex_unlock(&pool->lock);
}

/* Whether a job of n items, of which `worth` are worth a thread, is worth waking one. A burst that has lasted long is
 * not short, whatever the last one was. */
static bool wakes_for(berth__pool *pool, int64_t n, int64_t worth) {
  if (pool->outside.parallel_for != NULL || !atomic_load(&pool->in_burst)) return true;
  if (pool->is_steady) return worth == 1 || n / worth >= STEADY_PIECES;
  if (pool->patience_ms > 0 && berth__now_ms() - pool->began_ms >= pool->patience_ms) pool->patience_ms = 0;
  return pool->patience_ms <= 0 && (worth == 1 || n / worth >= WAKE_PIECES);
}

/* With so few pieces, each thread should get the same number: rounds up if there are enough items. */
static int64_t even_pieces(int64_t n, int64_t pieces, int64_t n_threads) {
  const int64_t even = (pieces + n_threads - 1) / n_threads * n_threads;
  return pieces >= n_threads && even <= n ? even : pieces;
}

/* How many pieces threads share, and whether to wake some; one piece is left to the caller. */
static void cut_job(berth__pool *pool, const berth__work *work, pool_job *job) {
  const int64_t n_threads = pool->n_threads, worth = work->grain > 0 ? work->grain : 1;
  const bool is_outside = pool->outside.parallel_for != NULL;
  const bool some_are_awake = !is_outside && atomic_load(&pool->n_asleep) + 1 < n_threads;
  const int64_t least = some_are_awake ? (worth + AWAKE_SHARE - 1) / AWAKE_SHARE : worth;
  int64_t wanted = 1;
  if (work->n / worth >= 2) {
    wanted = work->n / least;
    job->wakes = wakes_for(pool, work->n, worth);
  } else if (!is_outside && pool->shares_small && work->awake_grain > 0 && work->n / work->awake_grain >= 2) {
    job->wakes = !some_are_awake && pool->is_steady && atomic_load(&pool->in_burst);
    wanted = some_are_awake || job->wakes ? even_pieces(work->n, work->n / work->awake_grain, n_threads) : 1;
  }
  const bool has_parts = work->split == BERTH__SPLIT_PARTS && wanted >= n_threads;
  const int64_t most = n_threads * (has_parts ? PARTS_PER_THREAD : QUEUE_PER_THREAD);
  job->pieces = wanted < most ? wanted : most;
  job->n_shares = has_parts ? (uint32_t)n_threads : 1;
}

void berth__pool_run_work(berth__pool *pool, const berth__work *work, berth__range_fn fn, void *user) {
  if (work->n <= 0) return;
  pool_job job = {.fn = fn, .user = user, .n = work->n, .pieces = 1};
  if (pool != NULL && pool->n_threads > 1) cut_job(pool, work, &job);
  if (job.pieces <= 1) {
    fn(user, 0, 0, work->n);
    return;
  }
  if (pool->outside.parallel_for != NULL) {
    const uint32_t n_threads = pool->n_threads;
    share_pieces(pool, &job);
    pool->outside.parallel_for(pool->outside.user, job.pieces < n_threads ? (uint32_t)job.pieces : n_threads,
                               take_outside, pool);
    return;
  }
  open_job(pool, &job);
  take_pieces(pool, &job, 0);
  close_job(pool);
}

void berth__pool_run_split(berth__pool *pool, int64_t n, int64_t grain, berth__split split, berth__range_fn fn,
                           void *user) {
  berth__pool_run_work(pool, &(berth__work){.n = n, .grain = grain, .split = split}, fn, user);
}

void berth__pool_run(berth__pool *pool, int64_t n, int64_t grain, berth__range_fn fn, void *user) {
  berth__pool_run_split(pool, n, grain, BERTH__SPLIT_QUEUE, fn, user);
}

uint32_t berth__cpu_count(void) {
  long count = sysconf(_SC_NPROCESSORS_ONLN);
#ifdef __linux__
  cpu_set_t set; /* the process may be restricted to fewer cores than the machine has */
  if (sched_getaffinity(0, sizeof set, &set) == 0) count = CPU_COUNT(&set);
#endif
  if (count < 1) return 1;
  return count > (long)BERTH__MAX_THREADS ? BERTH__MAX_THREADS : (uint32_t)count;
}

double berth__now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}
