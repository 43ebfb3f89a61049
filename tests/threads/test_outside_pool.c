/* A session on the caller's threads: the same results, no thread and no allocation of its own. */
#include <pthread.h>
#include <stdbool.h>

#include "support.h"

#define MOST 4

/* A small pool, as a program may have one. */
typedef struct pool {
  pthread_mutex_t lock;
  pthread_cond_t wake, done;
  void (*task)(void *data, uint32_t index);
  void *data;
  uint32_t next, n_tasks, n_running, n_calls, most_tasks;
  bool quit;
  pthread_t threads[MOST];
} pool;

static void *work(void *user) {
  pool *p = user;
  pthread_mutex_lock(&p->lock);
  while (!p->quit) {
    if (p->next >= p->n_tasks) {
      pthread_cond_wait(&p->wake, &p->lock);
      continue;
    }
    const uint32_t index = p->next++;
    p->n_running++;
    pthread_mutex_unlock(&p->lock);
    p->task(p->data, index);
    pthread_mutex_lock(&p->lock);
    if (--p->n_running == 0 && p->next == p->n_tasks) pthread_cond_signal(&p->done);
  }
  pthread_mutex_unlock(&p->lock);
  return NULL;
}

static void in_parallel(void *user, uint32_t n_tasks, void (*task)(void *data, uint32_t index), void *data) {
  pool *p = user;
  pthread_mutex_lock(&p->lock);
  p->task = task;
  p->data = data;
  p->next = 0;
  p->n_tasks = n_tasks;
  p->n_calls++;
  if (n_tasks > p->most_tasks) p->most_tasks = n_tasks;
  pthread_cond_broadcast(&p->wake);
  while (p->next < p->n_tasks || p->n_running != 0) pthread_cond_wait(&p->done, &p->lock);
  p->n_tasks = p->next = 0;
  pthread_mutex_unlock(&p->lock);
}

/* One after the other, on this thread, the last one first: that is allowed too. */
static void in_turn(void *user, uint32_t n_tasks, void (*task)(void *data, uint32_t index), void *data) {
  pool *p = user;
  p->n_calls++;
  if (n_tasks > p->most_tasks) p->most_tasks = n_tasks;
  for (uint32_t i = n_tasks; i-- > 0;) task(data, i);
}

static void pool_start(pool *p) {
  memset(p, 0, sizeof *p);
  pthread_mutex_init(&p->lock, NULL);
  pthread_cond_init(&p->wake, NULL);
  pthread_cond_init(&p->done, NULL);
  for (int i = 0; i < MOST; i++) assert_int_equal(pthread_create(&p->threads[i], NULL, work, p), 0);
}

static void pool_end(pool *p) {
  pthread_mutex_lock(&p->lock);
  p->quit = true;
  pthread_cond_broadcast(&p->wake);
  pthread_mutex_unlock(&p->lock);
  for (int i = 0; i < MOST; i++) pthread_join(p->threads[i], NULL);
  pthread_cond_destroy(&p->done);
  pthread_cond_destroy(&p->wake);
  pthread_mutex_destroy(&p->lock);
}

#define ROWS 96
#define COLUMNS 256
static const char text[] =
    "graph \"g\" {\ninput %x : f32[96, 256]\nparam %w : f32[256, 256]\n%p = matmul(%x, %w)\n%g = gelu(%p)\n"
    "%s = softmax(%g)\n%t = transpose(%s) {perm = [1, 0]}\n%u = layer_norm(%p)\noutput \"t\" = %t\noutput \"u\" = "
    "%u\n}";
static float x[ROWS * COLUMNS], w[COLUMNS * COLUMNS];

static berth_session *make(berth_graph *graph, const berth_thread_pool *threads, uint32_t n_threads, uint32_t flags,
                           const char *device) {
  berth_session_desc desc = BERTH_SESSION_DESC_INIT;
  berth_session *session;
  berth_error err;
  desc.threads = threads;
  desc.n_threads = n_threads;
  desc.flags = flags;
  desc.device = device;
  TEST_OK(berth_session_create(graph, &desc, &session, &err));
  TEST_OK(berth_session_set_param(session, "w", w, sizeof w, &err));
  return session;
}

static void run(berth_session *session, float *t, float *u) {
  berth_error err;
  TEST_OK(berth_session_write(session, "x", x, sizeof x, &err));
  TEST_OK(berth_session_run(session, &err));
  TEST_OK(berth_session_read(session, "t", t, sizeof x, &err));
  TEST_OK(berth_session_read(session, "u", u, sizeof x, &err));
}

static float want[2][ROWS * COLUMNS], got[2][ROWS * COLUMNS];

static void compare(berth_graph *graph, pool *p, const berth_thread_pool *threads, test_alloc *alloc, uint32_t flags,
                    const char *device) {
  berth_error err;
  berth_session *own = make(graph, NULL, 3, flags, device), *outside = make(graph, threads, 0, flags, device), *clone;
  assert_int_equal(berth_session_n_threads(outside), threads->n_threads);
  run(own, want[0], want[1]);
  p->n_calls = p->most_tasks = 0;
  run(outside, got[0], got[1]);
  assert_memory_equal(got, want, sizeof want);
  const uint64_t before = atomic_load(&alloc->calls);
  for (int i = 0; i < 5; i++) run(outside, got[0], got[1]);
  assert_int_equal(atomic_load(&alloc->calls), before);
  assert_memory_equal(got, want, sizeof want);
  if (device == NULL) assert_true(p->n_calls >= 6);
  assert_true(p->most_tasks <= threads->n_threads);
  TEST_OK(berth_session_clone(outside, &clone, &err));
  assert_int_equal(berth_session_n_threads(clone), threads->n_threads);
  run(clone, got[0], got[1]);
  assert_memory_equal(got, want, sizeof want);
  berth_session_destroy(clone);
  berth_session_destroy(outside);
  berth_session_destroy(own);
}

static void results_are_the_same(void **state) {
  (void)state;
  test_alloc alloc = {0};
  uint64_t seed = 5;
  berth_error err;
  pool p;
  berth_graph *graph;
  berth_context *ctx = test_context_counting(&alloc);
  for (size_t i = 0; i < ROWS * COLUMNS; i++) x[i] = test_random_f32(&seed);
  for (size_t i = 0; i < COLUMNS * COLUMNS; i++) w[i] = test_random_f32(&seed);
  TEST_OK(berth_graph_parse(ctx, text, sizeof text - 1, &graph, &err));
  pool_start(&p);
  for (uint32_t n = 1; n <= MOST; n++) {
    berth_thread_pool threads = BERTH_THREAD_POOL_INIT;
    threads.n_threads = n;
    threads.user = &p;
    threads.parallel_for = in_parallel;
    if (n > 1) compare(graph, &p, &threads, &alloc, 0, NULL);
    threads.parallel_for = in_turn;
    if (n > 1) compare(graph, &p, &threads, &alloc, 0, NULL);
    if (n == 2) compare(graph, &p, &threads, &alloc, BERTH_SESSION_CHECKED, NULL);
    if (n == 3) compare(graph, &p, &threads, &alloc, 0, "interp");
  }
  pool_end(&p);
  berth_graph_destroy(graph);
  test_context_done(ctx, &alloc);
}

static void wrong_pools_are_refused(void **state) {
  (void)state;
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  berth_session_desc desc = BERTH_SESSION_DESC_INIT;
  berth_thread_pool threads = BERTH_THREAD_POOL_INIT;
  berth_session *session;
  berth_graph *graph;
  berth_error err;
  TEST_OK(berth_graph_parse(ctx, text, sizeof text - 1, &graph, &err));
  desc.threads = &threads;
  threads.n_threads = 2;
  test_expect_error(berth_session_create(graph, &desc, &session, &err), BERTH_INVALID, &err, "parallel_for");
  threads.parallel_for = in_turn;
  threads.n_threads = 0;
  test_expect_error(berth_session_create(graph, &desc, &session, &err), BERTH_INVALID, &err, "1 to 1024");
  threads.n_threads = 5000;
  test_expect_error(berth_session_create(graph, &desc, &session, &err), BERTH_INVALID, &err, "1 to 1024");
  threads.struct_size = 2;
  test_expect_error(berth_session_create(graph, &desc, &session, &err), BERTH_INVALID, &err, "berth_thread_pool");
  berth_graph_destroy(graph);
  test_context_done(ctx, &alloc);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(results_are_the_same),
      cmocka_unit_test(wrong_pools_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
