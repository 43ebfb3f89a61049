#include "base/thread.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#define STACK_SIZE ((size_t)1 << 20)
#define PIECES_PER_THREAD 4 /* more pieces than threads, so that a late thread does not hold up the rest */

typedef struct pool_job {
  berth__range_fn fn;
  void *user;
  int64_t n, pieces;
} pool_job;

typedef struct pool_worker {
  pthread_t thread;
  berth__pool *pool;
  uint32_t number;
} pool_worker;

/* A run opens a job; workers that wake in time join it and take pieces by counting `next` up. The caller takes pieces
 * too, closes the job when none are left, and waits for those that joined. A worker that wakes late finds the job
 * closed: nobody waits for a sleeper. */
struct berth__pool {
  berth_context *ctx;
  pthread_mutex_t lock;
  pthread_cond_t wake; /* a job is open, or quit */
  pthread_cond_t done; /* the last worker left the job */
  pool_job job;
  _Atomic int64_t next;
  uint64_t generation; /* of the job; a worker joins each at most once */
  uint32_t joined;
  int open, quit;
  uint32_t n_threads;
  uint32_t n_started;
  pool_worker workers[]; /* n_threads - 1: the caller is worker 0 */
};

static void take_pieces(berth__pool *pool, const pool_job *job, uint32_t number) {
  int64_t size = job->n / job->pieces, rest = job->n % job->pieces; /* the first `rest` pieces have one more */
  for (;;) {
    int64_t i = atomic_fetch_add_explicit(&pool->next, 1, memory_order_relaxed);
    if (i >= job->pieces) return;
    int64_t begin = i * size + (i < rest ? i : rest);
    job->fn(job->user, number, begin, begin + size + (i < rest));
  }
}

static void *work(void *user) {
  pool_worker *self = user;
  berth__pool *pool = self->pool;
  uint64_t seen = 0;
  pthread_mutex_lock(&pool->lock);
  for (;;) {
    while (!pool->quit && (!pool->open || pool->generation == seen)) pthread_cond_wait(&pool->wake, &pool->lock);
    if (pool->quit) break;
    seen = pool->generation;
    pool->joined++;
    pool_job job = pool->job;
    pthread_mutex_unlock(&pool->lock);
    take_pieces(pool, &job, self->number);
    pthread_mutex_lock(&pool->lock);
    if (--pool->joined == 0) pthread_cond_signal(&pool->done);
  }
  pthread_mutex_unlock(&pool->lock);
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
  pool->quit = 1;
  pthread_cond_broadcast(&pool->wake);
  pthread_mutex_unlock(&pool->lock);
  for (uint32_t i = 0; i < pool->n_started; i++) pthread_join(pool->workers[i].thread, NULL);
  pthread_cond_destroy(&pool->done);
  pthread_cond_destroy(&pool->wake);
  pthread_mutex_destroy(&pool->lock);
  berth__free(pool->ctx, pool);
}

uint32_t berth__pool_n_threads(const berth__pool *pool) { return pool != NULL ? pool->n_threads : 1; }

static void open_job(berth__pool *pool, const pool_job *job) {
  pthread_mutex_lock(&pool->lock);
  pool->job = *job;
  atomic_store_explicit(&pool->next, 0, memory_order_relaxed);
  pool->generation++;
  pool->open = 1;
  if (job->pieces >= pool->n_threads) {
    pthread_cond_broadcast(&pool->wake);
  } else {
    for (int64_t i = 1; i < job->pieces; i++) pthread_cond_signal(&pool->wake);
  }
  pthread_mutex_unlock(&pool->lock);
}

static void close_job(berth__pool *pool) {
  pthread_mutex_lock(&pool->lock);
  pool->open = 0;
  while (pool->joined > 0) pthread_cond_wait(&pool->done, &pool->lock);
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
  pool_job job = {.fn = fn, .user = user, .n = n, .pieces = pieces};
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
