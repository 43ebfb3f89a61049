/* One context, several threads: ops are registered while other threads build graphs and look for them. Run with the
 * thread sanitizer, this also shows that nobody reads what another is writing. */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>

#include "support.h"

#define N_WRITERS 3
#define N_READERS 3
#define N_OPS 40 /* of each writer */

static berth_status infer_same(const berth_op_infer *call, berth_error *err) {
  (void)err;
  call->out_type[0] = call->in_type[0];
  call->out_shape[0] = call->in_shape[0];
  return BERTH_OK;
}

static berth_status copy(const berth_op_call *call, berth_error *err) {
  (void)err;
  memcpy(call->out[0].data, call->in[0].data, 4 * sizeof(float));
  return BERTH_OK;
}

typedef struct crew {
  berth_context *ctx;
  _Atomic uint32_t n_registered, n_refused, n_wrong;
} crew;

static berth_status register_op(berth_context *ctx, const char *name) {
  const berth_attr attrs[] = {berth_attr_int("k", 7)};
  berth_op_desc desc = BERTH_OP_DESC_INIT;
  desc.name = name;
  desc.min_in = desc.max_in = 1;
  desc.attrs = attrs;
  desc.n_attrs = 1;
  desc.infer = infer_same;
  desc.kernel = copy;
  return berth_op_register(ctx, &desc, NULL);
}

/* Ops of its own, and one that every writer wants: only one of them gets it. */
static void *write_ops(void *user) {
  crew *c = user;
  static _Atomic uint32_t next;
  const uint32_t number = atomic_fetch_add(&next, 1);
  char name[64];
  for (uint32_t i = 0; i < N_OPS; i++) {
    snprintf(name, sizeof name, "test.op_%u_%u", number, i);
    if (register_op(c->ctx, name) == BERTH_OK) atomic_fetch_add(&c->n_registered, 1);
    snprintf(name, sizeof name, "test.shared_%u", i);
    if (register_op(c->ctx, name) == BERTH_OK)
      atomic_fetch_add(&c->n_registered, 1);
    else
      atomic_fetch_add(&c->n_refused, 1);
  }
  return NULL;
}

static bool use_op(berth_context *ctx, const char *name) {
  const int64_t extent = 4;
  berth_graph *graph;
  berth_value x, y;
  berth_node_info node = BERTH_NODE_INFO_INIT;
  bool ok = berth_graph_create(ctx, "g", &graph, NULL) == BERTH_OK &&
            berth_graph_input(graph, "x", BERTH_F32, berth_shape_fixed(1, &extent), &x, NULL) == BERTH_OK &&
            berth_graph_add(graph, name, &x, 1, NULL, 0, &y, 1, NULL) == BERTH_OK &&
            berth_graph_output(graph, "y", y, NULL) == BERTH_OK && berth_graph_verify(graph, NULL) == BERTH_OK &&
            berth_graph_node(graph, 0, &node, NULL) == BERTH_OK && node.n_attrs == 1 && node.attrs[0].i == 7;
  berth_graph_destroy(graph);
  return ok;
}

/* The last op that is listed is always there in full. */
static void *read_ops(void *user) {
  crew *c = user;
  berth_context *none = NULL;
  const uint32_t n_built_in = berth_op_count(none), all = n_built_in + N_WRITERS * N_OPS + N_OPS;
  uint32_t seen = 0;
  while (seen < all) {
    const uint32_t n = berth_op_count(c->ctx);
    if (n < seen) atomic_fetch_add(&c->n_wrong, 1);
    if (n == n_built_in || n == seen) continue;
    seen = n;
    const char *name = berth_op_name(c->ctx, n - 1);
    if (name == NULL || strncmp(name, "test.", 5) != 0 || !use_op(c->ctx, name)) atomic_fetch_add(&c->n_wrong, 1);
  }
  return NULL;
}

static void registering_beside_building(void **state) {
  (void)state;
  crew c = {0};
  test_alloc alloc = {0};
  pthread_t threads[N_WRITERS + N_READERS];
  c.ctx = test_context_counting(&alloc);
  for (int i = 0; i < N_READERS; i++) assert_int_equal(pthread_create(&threads[i], NULL, read_ops, &c), 0);
  for (int i = 0; i < N_WRITERS; i++) assert_int_equal(pthread_create(&threads[N_READERS + i], NULL, write_ops, &c), 0);
  for (int i = 0; i < N_WRITERS + N_READERS; i++) pthread_join(threads[i], NULL);
  assert_int_equal(atomic_load(&c.n_registered), N_WRITERS * N_OPS + N_OPS);
  assert_int_equal(atomic_load(&c.n_refused), (N_WRITERS - 1) * N_OPS);
  assert_int_equal(atomic_load(&c.n_wrong), 0);
  assert_null(berth_op_name(c.ctx, berth_op_count(c.ctx)));
  test_context_done(c.ctx, &alloc);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(registering_beside_building)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
