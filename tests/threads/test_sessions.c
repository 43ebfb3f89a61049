/* Sessions on several threads at once: each its own, in a context of its own or in one that all share. */
#include <stdlib.h>

#include "threads.h"

enum {
  THREADS = 4,
  ROUNDS = 6,            /* of each thread */
  ROUNDS_INTERPRETED = 2 /* likewise, on the device that is slow */
};

typedef struct shared {
  berth_context *ctx;
  berth_graph *graph;
  berth_session *clones[THREADS];
  const char *device;
  int rounds;
  const crew_data *data;
} shared;

static const char *const devices[] = {"cpu", "interp"};

static void shared_start(shared *s, const char *device) {
  berth_error err;
  *s = (shared){.ctx = test_context(), .device = device, .rounds = ROUNDS, .data = crew_data_make(device)};
  if (strcmp(device, "cpu") != 0) s->rounds = ROUNDS_INTERPRETED;
  TEST_OK(berth_graph_parse(s->ctx, crew_text, strlen(crew_text), &s->graph, &err));
}

static void shared_finish(shared *s) {
  berth_graph_destroy(s->graph);
  berth_context_destroy(s->ctx);
  free((void *)s->data);
}

/* ---- Each its own context ------------------------------------------------------------------------------------- */

static void alone(crew_member *self, void *user) {
  const shared *s = user;
  berth_error err;
  berth_context *ctx;
  berth_graph *graph;
  berth_context_desc desc = BERTH_CONTEXT_DESC_INIT;
  desc.n_threads = 2;
  if (!CREW_OK(berth_context_create(&desc, &ctx, &err))) return;
  if (CREW_OK(berth_graph_parse(ctx, crew_text, strlen(crew_text), &graph, &err))) {
    berth_session *session = crew_session(self, graph, s->device, 2, s->data);
    for (int i = 0; session != NULL && i < s->rounds; i++) crew_session_run(self, session, s->data);
    berth_session_destroy(session);
    berth_graph_destroy(graph);
  }
  berth_context_destroy(ctx);
}

static void contexts_on_several_threads_know_nothing_of_each_other(void **state) {
  (void)state;
  for (int i = 0; i < 2; i++) {
    shared s;
    shared_start(&s, devices[i]);
    crew_run(THREADS, alone, &s);
    shared_finish(&s);
  }
}

/* ---- One context, one finished graph -------------------------------------------------------------------------- */

static berth_status swallow(void *user, const char *text, size_t size) {
  (void)text;
  *(size_t *)user += size;
  return BERTH_OK;
}

/* Everything that reads a graph or a plan. */
static void read_all(crew_member *self, const shared *s, const berth_plan *plan) {
  berth_error err;
  size_t written = 0;
  berth_slot slot = BERTH_SLOT_INIT;
  CREW_OK(berth_graph_print(s->graph, swallow, &written, &err));
  CREW_OK(berth_plan_check(plan, &err));
  CREW_OK(berth_plan_report(plan, BERTH_REPORT_TEXT, swallow, &written, &err));
  CREW_OK(berth_plan_slot(plan, 0, &slot, &err));
  CREW_TRUE(berth_plan_arena_size(plan) > 0);
  CREW_TRUE(written > 0);
}

static void plans_of_one_graph(crew_member *self, void *user) {
  const shared *s = user;
  for (int i = 0; i < s->rounds; i++) {
    berth_error err;
    berth_plan *plan;
    berth_dim dim = {"n", 1 + (int64_t)self->number * s->rounds + i};
    berth_plan_desc desc = BERTH_PLAN_DESC_INIT;
    desc.device = s->device;
    desc.dims = &dim;
    desc.n_dims = 1;
    if (!CREW_OK(berth_plan_create(s->graph, &desc, &plan, &err))) return;
    read_all(self, s, plan);
    berth_plan_destroy(plan);
  }
}

static void sessions_of_one_graph(crew_member *self, void *user) {
  const shared *s = user;
  berth_error err;
  berth_session *session = crew_session(self, s->graph, s->device, 2, s->data);
  if (session == NULL) return;
  for (int i = 0; i < s->rounds; i++) {
    const berth_dim other = {"n", 1 + i}, back = {"n", s->data->rows};
    crew_session_run(self, session, s->data);
    CREW_OK(berth_session_bind(session, &other, 1, &err));
    CREW_OK(berth_session_bind(session, &back, 1, &err));
    crew_session_run(self, session, s->data);
  }
  berth_session_destroy(session);
}

static void one_plan_is_read_by_all(crew_member *self, void *user) {
  const shared *s = user;
  const berth_plan *plan = berth_session_plan(s->clones[0]);
  for (int i = 0; i < s->rounds; i++) read_all(self, s, plan);
}

static void many_plan_and_run_one_graph_in_one_context(void **state) {
  (void)state;
  for (int i = 0; i < 2; i++) {
    shared s;
    crew_member self = {.number = 0};
    shared_start(&s, devices[i]);
    crew_run(THREADS, plans_of_one_graph, &s);
    crew_run(THREADS, sessions_of_one_graph, &s);
    s.clones[0] = crew_session(&self, s.graph, s.device, 1, s.data);
    if (s.clones[0] == NULL) fail_msg("%s", self.message);
    crew_run(THREADS, one_plan_is_read_by_all, &s);
    berth_session_destroy(s.clones[0]);
    shared_finish(&s);
  }
}

/* ---- Clones --------------------------------------------------------------------------------------------------- */

/* Each clones its own once more while the others run theirs. */
static void run_clone(crew_member *self, void *user) {
  const shared *s = user;
  berth_error err;
  berth_session *mine = s->clones[self->number];
  for (int i = 0; i < s->rounds; i++) {
    berth_session *again;
    crew_session_run(self, mine, s->data);
    if (i % 3 != 0 || !CREW_OK(berth_session_clone(mine, &again, &err))) continue;
    crew_session_run(self, again, s->data);
    berth_session_destroy(again);
  }
}

static void clones_run_side_by_side(void **state) {
  (void)state;
  for (int d = 0; d < 2; d++) {
    shared s;
    berth_error err;
    crew_member self = {.number = 0};
    shared_start(&s, devices[d]);
    s.clones[0] = crew_session(&self, s.graph, s.device, 2, s.data);
    if (s.clones[0] == NULL) fail_msg("%s", self.message);
    for (int i = 1; i < THREADS; i++) TEST_OK(berth_session_clone(s.clones[0], &s.clones[i], &err));
    crew_run(THREADS, run_clone, &s);
    for (int i = 0; i < THREADS; i++) berth_session_destroy(s.clones[i]);
    shared_finish(&s);
  }
}

/* ---- Graphs, packings and devices, in one context -------------------------------------------------------------- */

static void build_and_ask(crew_member *self, void *user) {
  const shared *s = user;
  for (int i = 0; i < s->rounds; i++) {
    berth_error err;
    berth_graph *graph;
    if (!CREW_OK(berth_graph_parse(s->ctx, crew_text, strlen(crew_text), &graph, &err))) return;
    CREW_TRUE(berth_op_count(s->ctx) > 0 && berth_op_name(s->ctx, 0) != NULL);
    berth_graph_destroy(graph);
    for (uint32_t d = 0; d < berth_device_count(s->ctx); d++) {
      berth_device_info info = BERTH_DEVICE_INFO_INIT;
      CREW_OK(berth_device_at(s->ctx, d, &info, &err));
      CREW_TRUE(info.name != NULL);
    }
    berth_pack_buffer buffers[16];
    uint64_t offsets[16];
    berth_pack_result result = BERTH_PACK_RESULT_INIT;
    for (int b = 0; b < 16; b++)
      buffers[b] = (berth_pack_buffer){
          .size = 10 + (uint64_t)(b * 7 % 5), .lower = b, .upper = b + 1 + b % 4, .offset = BERTH_PACK_FREE};
    CREW_OK(berth_pack(s->ctx, buffers, 16, NULL, offsets, &result, &err));
    CREW_TRUE(result.fits);
  }
}

static void one_context_serves_all(void **state) {
  (void)state;
  shared s;
  shared_start(&s, "cpu");
  crew_run(THREADS, build_and_ask, &s);
  shared_finish(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(contexts_on_several_threads_know_nothing_of_each_other),
      cmocka_unit_test(many_plan_and_run_one_graph_in_one_context),
      cmocka_unit_test(clones_run_side_by_side),
      cmocka_unit_test(one_context_serves_all),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
