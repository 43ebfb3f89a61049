/* The caller's threads, a run in two halves, and how to stop one. */
#include <pthread.h>

#include "example.h"

/* The simplest pool there is: new threads for every call. A real one keeps them. */
typedef struct job {
  void (*task)(void *data, uint32_t index);
  void *data;
  uint32_t index;
} job;

static void *run_job(void *user) {
  const job *j = user;
  j->task(j->data, j->index);
  return NULL;
}

#define MOST 4

static void parallel_for(void *user, uint32_t n_tasks, void (*task)(void *data, uint32_t index), void *data) {
  pthread_t threads[MOST];
  job jobs[MOST];
  ++*(int *)user;
  for (uint32_t i = 1; i < n_tasks; i++) {
    jobs[i] = (job){task, data, i};
    CHECK(pthread_create(&threads[i], NULL, run_job, &jobs[i]) == 0);
  }
  task(data, 0); /* this thread works too */
  for (uint32_t i = 1; i < n_tasks; i++) pthread_join(threads[i], NULL);
}

static const char source[] =
    "graph \"g\" {\n  input %x : f32[256, 256]\n  param %w : f32[256, 256]\n  %p = matmul(%x, %w)\n  %y = gelu(%p)\n"
    "  output \"y\" = %y\n}\n";
static float x[256 * 256], w[256 * 256], y[256 * 256], want[256 * 256];

int main(void) {
  int n_calls = 0;
  berth_context *ctx;
  berth_graph *graph;
  berth_session *own, *session;
  berth_cancel *cancel;
  berth_thread_pool threads = BERTH_THREAD_POOL_INIT;
  berth_session_desc desc = BERTH_SESSION_DESC_INIT;
  for (int i = 0; i < 256 * 256; i++) x[i] = (float)(i % 7) - 3, w[i] = (float)(i % 5) * 0.01f;
  MUST(berth_context_create(NULL, &ctx, &err));
  MUST(berth_graph_parse(ctx, source, sizeof source - 1, &graph, &err));
  MUST(berth_cancel_create(ctx, &cancel, &err));
  threads.n_threads = MOST;
  threads.parallel_for = parallel_for;
  threads.user = &n_calls;
  desc.threads = &threads;
  desc.cancel = cancel;
  MUST(berth_session_create(graph, &desc, &session, &err));
  MUST(berth_session_create(graph, NULL, &own, &err)); /* with threads of its own, to compare */
  MUST(berth_session_set_param(session, "w", w, sizeof w, &err));
  MUST(berth_session_set_param(own, "w", w, sizeof w, &err));

  MUST(berth_session_write(session, "x", x, sizeof x, &err));
  MUST(berth_session_submit(session, &err));
  puts("something else, while a GPU would already be at work");
  MUST(berth_session_wait(session, &err));
  MUST(berth_session_read(session, "y", y, sizeof y, &err));
  CHECK(n_calls > 0);
  MUST(berth_session_write(own, "x", x, sizeof x, &err));
  MUST(berth_session_run(own, &err));
  MUST(berth_session_read(own, "y", want, sizeof want, &err));
  CHECK(memcmp(y, want, sizeof y) == 0); /* results never depend on threads */

  berth_cancel_request(cancel); /* from any thread, or from a signal handler */
  CHECK(berth_cancel_is_requested(cancel));
  CHECK(berth_session_run(session, &err) == BERTH_CANCELLED);
  berth_cancel_clear(cancel);
  MUST(berth_session_run(session, &err));

  berth_session_destroy(own);
  berth_session_destroy(session);
  berth_cancel_destroy(cancel);
  berth_graph_destroy(graph);
  berth_context_destroy(ctx);
  puts("ok");
  return 0;
}
