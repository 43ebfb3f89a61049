/* Whole small models compared with PyTorch (recorded.h): every gradient, and ten steps of two optimisers. */
#include <math.h>
#include <stdlib.h>

#include "check.h"

typedef struct recorded_model {
  const char *name, *text;
  int classes;
  const double *gradients; /* of all params, one after the other */
  size_t n_gradients;
  const double *adamw, *sgd; /* the losses of ten steps */
} recorded_model;

#include "recorded.h"

#define STEPS 10
#define MOST 4096

static double filled(uint32_t tensor, uint32_t i) {
  uint32_t h = (tensor * 1000003u + i + 1u) * 2654435761u;
  h ^= h >> 15;
  h *= 2246822519u;
  h ^= h >> 13;
  return ((double)(h >> 16) / 65536 - 0.5) * 2 * 0.6;
}

static berth_value_info info_of(const berth_graph *graph, berth_value value) {
  berth_value_info info = BERTH_VALUE_INFO_INIT;
  berth_error err;
  OK(berth_graph_value(graph, value, &info, &err));
  return info;
}

/* The tensors are numbered through inputs and then params, by the original graph. */
static size_t fill(const recorded_model *m, const berth_graph *graph, uint32_t index, berth_value value, void *data) {
  const berth_value_info info = info_of(graph, value);
  const size_t count = (size_t)(info.size / (info.type == BERTH_I64 ? 8 : 4));
  assert_true(count <= MOST);
  for (size_t i = 0; i < count; i++) {
    const double v = filled(index, (uint32_t)i);
    if (info.type == BERTH_I64)
      ((int64_t *)data)[i] = (int64_t)((v + 0.6) / 1.2 * m->classes) % m->classes;
    else
      ((float *)data)[i] = (float)v;
  }
  return (size_t)info.size;
}

typedef struct running {
  const recorded_model *m;
  test_alloc alloc;
  berth_context *ctx;
  berth_graph *original, *graph;
  berth_session *session;
  int64_t data[MOST];
} running;

static running *begin(const recorded_model *m) {
  running *r = calloc(1, sizeof *r);
  berth_error err;
  assert_non_null(r);
  r->m = m;
  r->ctx = test_context_counting(&r->alloc);
  OK(berth_graph_parse(r->ctx, m->text, strlen(m->text), &r->original, &err));
  OK(berth_graph_parse(r->ctx, m->text, strlen(m->text), &r->graph, &err));
  return r;
}

static void end(running *r) {
  berth_session_destroy(r->session);
  berth_graph_destroy(r->graph);
  berth_graph_destroy(r->original);
  test_context_done(r->ctx, &r->alloc);
  free(r);
}

static void start(running *r, const char *device, int is_training) {
  const uint32_t n_inputs = berth_graph_n_inputs(r->original), n_params = berth_graph_n_params(r->original);
  berth_session_desc desc = BERTH_SESSION_DESC_INIT;
  berth_error err;
  desc.device = device;
  OK(berth_session_create(r->graph, &desc, &r->session, &err));
  OK(berth_plan_check(berth_session_plan(r->session), &err));
  for (uint32_t i = 0; i < n_inputs + n_params; i++) {
    const berth_value value =
        i < n_inputs ? berth_graph_input_at(r->original, i) : berth_graph_param_at(r->original, i - n_inputs);
    const char *name = info_of(r->original, value).name;
    const size_t size = fill(r->m, r->original, i, value, r->data);
    OK(i < n_inputs  ? berth_session_write(r->session, name, r->data, size, &err)
       : is_training ? berth_session_state_write(r->session, name, r->data, size, &err)
                     : berth_session_set_param(r->session, name, r->data, size, &err));
  }
}

static void compare(const running *r, const char *what, double got, double want, double most) {
  if (fabs(got - want) <= 2e-5 * most) return;
  fail_msg("%s: %s is %.9g, and PyTorch has %.9g", r->m->name, what, got, want);
}

static void check_gradients(const recorded_model *m, const char *device) {
  running *r = begin(m);
  berth_value of[32], grads[32];
  const uint32_t n = berth_graph_n_params(r->graph);
  size_t at = 0;
  berth_error err;
  assert_true(n <= 32);
  for (uint32_t i = 0; i < n; i++) of[i] = berth_graph_param_at(r->graph, i);
  OK(berth_graph_grad(r->graph, berth_graph_find(r->graph, "loss"), of, n, grads, &err));
  for (uint32_t i = 0; i < n; i++) OK(berth_graph_output(r->graph, info_of(r->graph, grads[i]).name, grads[i], &err));
  start(r, device, 0);
  OK(berth_session_run(r->session, &err));
  for (uint32_t i = 0; i < n; i++) {
    float got[MOST];
    double most = 1e-3;
    const berth_value_info info = info_of(r->graph, grads[i]);
    const size_t count = (size_t)info.size / sizeof *got;
    OK(berth_session_read(r->session, info.name, got, count * sizeof *got, &err));
    for (size_t e = 0; e < count; e++) most = fmax(most, fabs(m->gradients[at + e]));
    for (size_t e = 0; e < count; e++) compare(r, info.name, (double)got[e], m->gradients[at + e], most);
    at += count;
  }
  assert_int_equal(at, m->n_gradients);
  end(r);
}

static void check_steps(const recorded_model *m, const char *device, int is_sgd) {
  running *r = begin(m);
  berth_train_desc desc = BERTH_TRAIN_DESC_INIT;
  const float rate = is_sgd ? 0.05f : 0.01f;
  berth_error err;
  float loss;
  desc.optimizer = is_sgd ? BERTH_OPTIMIZER_SGD : BERTH_OPTIMIZER_ADAMW;
  desc.beta2 = 0.99;
  desc.epsilon = 1e-6;
  desc.weight_decay = is_sgd ? 0.01 : 0.05;
  desc.clip = is_sgd ? 0 : 0.5;
  OK(berth_graph_train(r->graph, berth_graph_find(r->graph, "loss"), &desc, &err));
  start(r, device, 1);
  OK(berth_session_write(r->session, "learning_rate", &rate, sizeof rate, &err));
  for (int i = 0; i < STEPS; i++) {
    OK(berth_session_run(r->session, &err));
    OK(berth_session_read(r->session, "loss", &loss, sizeof loss, &err));
    compare(r, is_sgd ? "a loss with SGD" : "a loss with AdamW", (double)loss, (is_sgd ? m->sgd : m->adamw)[i], 1);
  }
  end(r);
}

static void gradients_are_those_of_pytorch(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof recorded_models / sizeof *recorded_models; i++) {
    check_gradients(&recorded_models[i], NULL);
    check_gradients(&recorded_models[i], test_gpu());
  }
}

static void ten_steps_are_those_of_pytorch(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof recorded_models / sizeof *recorded_models; i++)
    for (int is_sgd = 0; is_sgd < 2; is_sgd++) {
      check_steps(&recorded_models[i], NULL, is_sgd);
      if (is_sgd == 0) check_steps(&recorded_models[i], test_gpu(), is_sgd);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(gradients_are_those_of_pytorch),
      cmocka_unit_test(ten_steps_are_those_of_pytorch),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
