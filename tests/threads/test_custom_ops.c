/* Ops registered in a context while other threads plan and run theirs there (test_registering.c only builds). */
#include <stdio.h>
#include <stdlib.h>

#include "threads.h"

enum {
  THREADS = 4,
  OPS = 24 /* of each thread */
};

static berth_status same_infer(const berth_op_infer *call, berth_error *err) {
  (void)err;
  call->out_type[0] = call->in_type[0];
  call->out_shape[0] = call->in_shape[0];
  return BERTH_OK;
}

static berth_status add_kernel(const berth_op_call *call, berth_error *err) {
  const float *x = call->in[0].data;
  float *y = call->out[0].data;
  (void)err;
  for (int64_t i = 0; i < call->in[0].dim[0]; i++) y[i] = x[i] + *(const float *)call->user;
  return BERTH_OK;
}

typedef struct shared {
  berth_context *ctx;
  float added[THREADS];
} shared;

static void name_of(char *name, size_t size, uint32_t thread, int op) {
  (void)snprintf(name, size, "thread%u.op%d", (unsigned)thread, op);
}

static bool register_one(crew_member *self, shared *s, int op) {
  char name[64];
  berth_error err;
  berth_op_desc desc = BERTH_OP_DESC_INIT;
  name_of(name, sizeof name, self->number, op);
  desc.name = name;
  desc.min_in = desc.max_in = 1;
  desc.infer = same_infer;
  desc.kernel = add_kernel;
  desc.user = &s->added[self->number];
  return CREW_OK(berth_op_register(s->ctx, &desc, &err));
}

/* A graph of the op just registered: looked up by name, planned, and run. */
static void use_one(crew_member *self, shared *s, int op) {
  char name[64];
  berth_error err;
  berth_graph *graph;
  berth_value x, y;
  berth_session *session;
  float in[4] = {1, 2, 3, 4}, out[4] = {0};
  name_of(name, sizeof name, self->number, op);
  if (!CREW_OK(berth_graph_create(s->ctx, "g", &graph, &err))) return;
  if (CREW_OK(berth_graph_input(graph, "x", BERTH_F32, BERTH_SHAPE(4), &x, &err)) &&
      CREW_OK(berth_graph_add(graph, name, &x, 1, NULL, 0, &y, 1, &err)) &&
      CREW_OK(berth_graph_output(graph, "y", y, &err)) && CREW_OK(berth_session_create(graph, NULL, &session, &err))) {
    CREW_OK(berth_session_write(session, "x", in, sizeof in, &err));
    CREW_OK(berth_session_run(session, &err));
    CREW_OK(berth_session_read(session, "y", out, sizeof out, &err));
    CREW_TRUE(out[3] == 4 + s->added[self->number]);
    berth_session_destroy(session);
  }
  berth_graph_destroy(graph);
}

static void register_and_use(crew_member *self, void *user) {
  shared *s = user;
  for (int op = 0; op < OPS && !self->failed; op++) {
    if (!register_one(self, s, op)) return;
    use_one(self, s, op);
    const uint32_t count = berth_op_count(s->ctx);
    for (uint32_t i = 0; i < count; i++) CREW_TRUE(berth_op_name(s->ctx, i) != NULL); /* they only become more */
  }
}

static void ops_are_registered_while_others_run(void **state) {
  (void)state;
  test_alloc alloc = {0};
  shared s = {.ctx = test_context_counting(&alloc)};
  for (int i = 0; i < THREADS; i++) s.added[i] = (float)(i + 1);
  const uint32_t before = berth_op_count(s.ctx);
  crew_run(THREADS, register_and_use, &s);
  assert_int_equal(berth_op_count(s.ctx), before + THREADS * OPS);
  test_context_done(s.ctx, &alloc);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(ops_are_registered_while_others_run),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
