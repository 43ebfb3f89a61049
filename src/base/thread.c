#include "base/thread.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>
#include <unistd.h>

#define STACK_SIZE ((size_t)1 << 20)
#define PIECES_PER_THREAD 4 /* more pieces than threads, so that a late thread does not hold up the rest */

typedef struct pool_job {
  berth__range_fn fn;
  void *user;
  int64_t n, pieces;
  bool is_coarse; /* one item is worth a thread, and may be worth much more */
} pool_job;

typedef struct pool_worker {
  pthread_t thread;
  berth__pool *pool;
  uint32_t number;
} pool_worker;

/* A run opens a job; workers that see it in time join it and take pieces by counting `next` up. The caller takes pieces
 * too, closes the job when none are left, and waits for those that joined. A worker that comes late finds the job
 * closed: nobody waits for a sleeper.
 *
 * `state` has the number of the job, whether it is open, and how many workers joined it; a job is written before it is
 * opened, and stays until the last of them left. Between the jobs of a burst (berth__pool_begin to berth__pool_end)
 * workers look for the next one for a moment before they sleep; outside of a burst they sleep at once.
 *
 * Who goes to sleep first says so and then looks at the state once more; who changes the state then looks for sleepers.
 * All of these are sequentially consistent, so one of the two always sees the other. */
struct berth__pool {
  berth_context *ctx;
  pthread_mutex_t lock;
  pthread_cond_t wake; /* a job is open, or quit */
  pthread_cond_t done; /* the last worker left the job */
  pool_job job;
  _Atomic int64_t next;
  _Atomic uint64_t state;
  _Atomic uint32_t n_asleep; /* workers */
  _Atomic bool is_caller_asleep;
  _Atomic bool in_burst, quit;
  uint32_t n_threads;
  uint32_t n_started;
  pool_worker workers[]; /* n_threads - 1: the caller is worker 0 */
};

#define JOINED ((uint64_t)0xffff)  /* of the state: how many workers are in the job */
#define OPEN ((uint64_t)1 << 16)   /* it takes more */
#define NUMBER ((uint64_t)1 << 17) /* what the number of the job counts up by */
#define WAKE_PIECES 4              /* in a burst, a job of fewer small ones is for those that are awake */
#define LOOKS 4000                 /* for the next job, before a worker sleeps: some tens of microseconds */

static inline void pause_a_moment(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

static void take_pieces(berth__pool *pool, const pool_job *job, uint32_t number) {
  int64_t size = job->n / job->pieces, rest = job->n % job->pieces; /* the first `rest` pieces have one more */
  for (;;) {
    int64_t i = atomic_fetch_add_explicit(&pool->next, 1, memory_order_relaxed);
    if (i >= job->pieces) return;
    int64_t begin = i * size + (i < rest ? i : rest);
    job->fn(job->user, number, begin, begin + size + (i < rest));
  }
}

static bool is_new(uint64_t state, uint64_t seen) { return (state & OPEN) && state / NUMBER != seen; }

/* Looks for a job for a moment, then sleeps until there is one. False: the pool ends. */
static bool await_job(berth__pool *pool, uint64_t seen) {
  for (int i = 0; i < LOOKS && atomic_load_explicit(&pool->in_burst, memory_order_relaxed); i++) {
    if (is_new(atomic_load(&pool->state), seen)) return true;
    pause_a_moment();
  }
  pthread_mutex_lock(&pool->lock);
  atomic_fetch_add(&pool->n_asleep, 1);
  while (!atomic_load(&pool->quit) && !is_new(atomic_load(&pool->state), seen))
    pthread_cond_wait(&pool->wake, &pool->lock);
  atomic_fetch_sub(&pool->n_asleep, 1);
  pthread_mutex_unlock(&pool->lock);
  return !atomic_load(&pool->quit);
}

/* False: it was closed meanwhile. */
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

/* Workers take no signals: those are for the threads of the program. */
static int start_worker(berth__pool *pool, const pthread_attr_t *attr, pool_worker *worker) {
  sigset_t all, before;
  sigfillset(&all);
  worker->pool = pool;
  worker->number = pool->n_started + 1;
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int code = pthread_create(&worker->thread, attr, work, worker);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (code == 0) pool->n_started++;
  return code;
}

static int start_workers(berth__pool *pool) {
  pthread_attr_t attr;
  int code = pthread_attr_init(&attr);
  if (code != 0) return code;
  pthread_attr_setstacksize(&attr, STACK_SIZE); /* where this is refused, the default will do */
  for (uint32_t i = 0; code == 0 && i + 1 < pool->n_threads; i++) {
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

berth_status berth__pool_create(berth_context *ctx, uint32_t n_threads, berth__pool **out, berth_error *err) {
  *out = NULL;
  if (n_threads == 0 || n_threads > BERTH__MAX_THREADS) {
    return berth__fail(err, BERTH_INVALID, "a pool of %u threads is not possible; use 1 to %u", (unsigned)n_threads,
                       (unsigned)BERTH__MAX_THREADS);
  }
  berth__pool *pool = berth__alloc_zero(ctx, sizeof *pool + (n_threads - 1) * sizeof(pool_worker));
  if (pool == NULL) return berth__fail_nomem(err, "the thread pool");
  pool->ctx = ctx;
  pool->n_threads = n_threads;
  int code = init_locks(pool);
  if (code != 0) {
    berth__free(ctx, pool);
    return berth__fail(err, BERTH_NOMEM, "cannot make the locks of the thread pool: %s", strerror(code));
  }
  code = start_workers(pool);
  if (code != 0) {
    berth__pool_destroy(pool);
    return berth__fail(err, BERTH_NOMEM, "cannot start %u threads: %s; use fewer", (unsigned)n_threads, strerror(code));
  }
  *out = pool;
  return BERTH_OK;
}

void berth__pool_destroy(berth__pool *pool) {
  if (pool == NULL) return;
  pthread_mutex_lock(&pool->lock);
  atomic_store(&pool->in_burst, false);
  atomic_store(&pool->quit, true);
  pthread_cond_broadcast(&pool->wake);
  pthread_mutex_unlock(&pool->lock);
  for (uint32_t i = 0; i < pool->n_started; i++) pthread_join(pool->workers[i].thread, NULL);
  pthread_cond_destroy(&pool->done);
  pthread_cond_destroy(&pool->wake);
  pthread_mutex_destroy(&pool->lock);
  berth__free(pool->ctx, pool);
}

void berth__pool_begin(berth__pool *pool) {
  if (pool != NULL) atomic_store(&pool->in_burst, true);
}

void berth__pool_end(berth__pool *pool) {
  if (pool != NULL) atomic_store(&pool->in_burst, false);
}

uint32_t berth__pool_n_threads(const berth__pool *pool) { return pool != NULL ? pool->n_threads : 1; }

static void open_job(berth__pool *pool, const pool_job *job) {
  pool->job = *job;
  atomic_store_explicit(&pool->next, 0, memory_order_relaxed);
  const uint64_t number = atomic_load_explicit(&pool->state, memory_order_relaxed) / NUMBER + 1;
  atomic_store(&pool->state, number * NUMBER | OPEN);
  const bool is_worth_waking = job->pieces >= WAKE_PIECES || job->is_coarse || !atomic_load(&pool->in_burst);
  if (!is_worth_waking || atomic_load(&pool->n_asleep) == 0) return;
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

void berth__pool_run(berth__pool *pool, int64_t n, int64_t grain, berth__range_fn fn, void *user) {
  if (n <= 0) return;
  int64_t pieces = n / (grain > 0 ? grain : 1);
  int64_t most = (int64_t)berth__pool_n_threads(pool) * PIECES_PER_THREAD;
  if (pieces > most) pieces = most;
  if (berth__pool_n_threads(pool) == 1 || pieces <= 1) {
    fn(user, 0, 0, n);
    return;
  }
  pool_job job = {.fn = fn, .user = user, .n = n, .pieces = pieces, .is_coarse = grain <= 1};
  open_job(pool, &job);
  take_pieces(pool, &job, 0);
  close_job(pool);
}

uint32_t berth__cpu_count(void) {
  long count = sysconf(_SC_NPROCESSORS_ONLN);
#ifdef __linux__
  cpu_set_t set; /* what this process may use can be less than what is there */
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
