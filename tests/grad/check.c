#include "check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define STEP 1e-3 /* of differences of the fourth order: h^4 and eps / h are both below 1e-12 */
#define MOST_INPUTS 8
#define MOST_ELEMENTS 512

typedef struct checked {
  const grad_case *c;
  berth_context *ctx;
  test_alloc alloc;
  berth_graph *graph;
  berth_session *session;
  berth_value input[MOST_INPUTS], first[MOST_INPUTS], second[MOST_INPUTS];
  uint32_t n_inputs;
  size_t count[MOST_INPUTS];
  double x[MOST_INPUTS][MOST_ELEMENTS];
  uint64_t seed;
  int n_wrong;
} checked;

static double between(uint64_t *seed, double low, double high) {
  return low + (high - low) * (double)(test_random(seed) >> 11) * 0x1p-53;
}

static berth_value_info info_of(const berth_graph *graph, berth_value value) {
  berth_value_info info = BERTH_VALUE_INFO_INIT;
  berth_error err;
  OK(berth_graph_value(graph, value, &info, &err));
  return info;
}

static berth_value add(berth_graph *graph, const char *op, berth_value a, berth_value b) {
  const berth_value in[] = {a, b};
  berth_value out;
  berth_error err;
  OK(berth_graph_add(graph, op, in, b == BERTH_VALUE_NONE ? 1 : 2, NULL, 0, &out, 1, &err));
  return out;
}

/* The sum of the elements of a value, each with a weight of its own; added to what there is. */
static berth_value add_weighted(checked *k, berth_value sum, berth_value value) {
  const berth_value_info info = info_of(k->graph, value);
  double weight[MOST_ELEMENTS];
  berth_value weights;
  berth_error err;
  if (info.type != BERTH_F64 || info.size > sizeof weight)
    fail_msg("%s: { %s }: '%s' is no f64, or large", k->c->op, k->c->text, info.name);
  for (size_t i = 0; i < info.size / sizeof *weight; i++) weight[i] = between(&k->seed, -1, 1);
  OK(berth_graph_constant(k->graph, NULL, BERTH_F64, info.shape, weight, (size_t)info.size, &weights, &err));
  const berth_attr flat = berth_attr_int("keepdims", 0);
  const berth_value product = add(k->graph, "mul", value, weights);
  berth_value one;
  OK(berth_graph_add(k->graph, "reduce_sum", &product, 1, &flat, 1, &one, 1, &err));
  return sum == BERTH_VALUE_NONE ? one : add(k->graph, "add", sum, one);
}

static void name_outputs(checked *k, const char *prefix, const berth_value *values) {
  char name[32];
  berth_error err;
  for (uint32_t i = 0; i < k->n_inputs; i++) {
    if (values[i] == BERTH_VALUE_NONE) continue;
    snprintf(name, sizeof name, "%s%u", prefix, i);
    OK(berth_graph_output(k->graph, name, values[i], &err));
  }
}

static void build(checked *k) {
  char text[4096];
  berth_error err;
  berth_value loss = BERTH_VALUE_NONE, twice = BERTH_VALUE_NONE;
  snprintf(text, sizeof text, "graph \"g\" { %s output \"y\" = %%y }", k->c->text);
  OK(berth_graph_parse(k->ctx, text, strlen(text), &k->graph, &err));
  for (uint32_t i = 0; i < berth_graph_n_inputs(k->graph); i++) {
    const berth_value value = berth_graph_input_at(k->graph, i);
    assert_true(k->n_inputs < MOST_INPUTS && info_of(k->graph, value).type == BERTH_F64);
    k->count[k->n_inputs] = (size_t)info_of(k->graph, value).size / sizeof(double);
    assert_true(k->count[k->n_inputs] <= MOST_ELEMENTS);
    k->input[k->n_inputs++] = value;
  }
  loss = add_weighted(k, loss, berth_graph_find(k->graph, "y"));
  if (berth_graph_find(k->graph, "z") != BERTH_VALUE_NONE)
    loss = add_weighted(k, loss, berth_graph_find(k->graph, "z"));
  OK(berth_graph_output(k->graph, "loss", loss, &err));
  OK(berth_graph_grad(k->graph, loss, k->input, k->n_inputs, k->first, &err));
  name_outputs(k, "d", k->first);
  for (uint32_t i = 0; i < k->n_inputs; i++) {
    k->second[i] = BERTH_VALUE_NONE;
    assert_true(k->first[i] != BERTH_VALUE_NONE);
    if (!k->c->once) twice = add_weighted(k, twice, k->first[i]);
  }
  if (k->c->once) return;
  OK(berth_graph_output(k->graph, "twice", twice, &err));
  OK(berth_graph_grad(k->graph, twice, k->input, k->n_inputs, k->second, &err));
  name_outputs(k, "dd", k->second);
  OK(berth_graph_verify(k->graph, &err));
}

static void draw_inputs(checked *k) {
  const double low = k->c->low != 0 || k->c->high != 0 ? k->c->low : -1;
  const double high = k->c->low != 0 || k->c->high != 0 ? k->c->high : 1;
  for (uint32_t i = 0; i < k->n_inputs; i++)
    for (size_t e = 0; e < k->count[i]; e++) k->x[i][e] = between(&k->seed, low, high);
}

static void start(checked *k) {
  berth_error err;
  berth_plan_desc plan = BERTH_PLAN_DESC_INIT;
  berth_session_desc desc = BERTH_SESSION_DESC_INIT;
  plan.flags = BERTH_PLAN_REFERENCE;
  plan.effort = 1;
  plan.n_threads = 1;
  desc.plan = &plan;
  desc.flags = BERTH_SESSION_REFERENCE;
  OK(berth_session_create(k->graph, &desc, &k->session, &err));
}

static void run(checked *k) {
  berth_error err;
  for (uint32_t i = 0; i < k->n_inputs; i++)
    OK(berth_session_write_at(k->session, i, k->x[i], k->count[i] * sizeof(double), &err));
  OK(berth_session_run(k->session, &err));
}

/* The loss, and the sum of the first derivatives, at this distance. */
static void run_at(checked *k, double *x, double at, double *loss, double *twice) {
  berth_error err;
  *x = at;
  run(k);
  OK(berth_session_read(k->session, "loss", loss, sizeof *loss, &err));
  if (!k->c->once) OK(berth_session_read(k->session, "twice", twice, sizeof *twice, &err));
}

static double slope(const double *f) { return (f[0] - 8 * f[1] + 8 * f[2] - f[3]) / (12 * STEP); }

static void differences(checked *k, double *x, double *first, double *second) {
  static const double steps[] = {-2, -1, 1, 2};
  double loss[4], twice[4] = {0};
  const double at = *x;
  for (int i = 0; i < 4; i++) run_at(k, x, at + steps[i] * STEP, &loss[i], &twice[i]);
  *x = at;
  *first = slope(loss);
  *second = slope(twice);
}

static void compare(checked *k, uint32_t input, const char *which, const double *got, const double *want) {
  double most = 0;
  for (size_t e = 0; e < k->count[input]; e++) most = fmax(most, fabs(want[e]));
  for (size_t e = 0; e < k->count[input]; e++) {
    if (fabs(got[e] - want[e]) <= 1e-6 * fmax(most, 1e-3)) continue;
    print_error("%s: { %s }: the %s derivative by input %u, element %zu, is %.12g and should be %.12g\n", k->c->op,
                k->c->text, which, input, e, got[e], want[e]);
    k->n_wrong++;
    return;
  }
}

static void check_input(checked *k, uint32_t input) {
  double first[MOST_ELEMENTS] = {0}, second[MOST_ELEMENTS] = {0}, want_first[MOST_ELEMENTS], want_second[MOST_ELEMENTS];
  char name[32];
  berth_error err;
  run(k);
  snprintf(name, sizeof name, "d%u", input);
  OK(berth_session_read(k->session, name, first, k->count[input] * sizeof *first, &err));
  snprintf(name, sizeof name, "dd%u", input);
  if (k->second[input] != BERTH_VALUE_NONE)
    OK(berth_session_read(k->session, name, second, k->count[input] * sizeof *second, &err));
  for (size_t e = 0; e < k->count[input]; e++) differences(k, &k->x[input][e], &want_first[e], &want_second[e]);
  compare(k, input, "first", first, want_first);
  if (!k->c->once) compare(k, input, "second", second, want_second);
}

static checked *begin(const grad_case *c) {
  checked *k = calloc(1, sizeof *k);
  assert_non_null(k);
  k->c = c;
  k->seed = 20;
  k->ctx = test_context_counting(&k->alloc);
  build(k);
  draw_inputs(k);
  return k;
}

static int end(checked *k) {
  berth_session_destroy(k->session);
  berth_graph_destroy(k->graph);
  test_context_done(k->ctx, &k->alloc);
  const int n_wrong = k->n_wrong;
  free(k);
  return n_wrong;
}

int grad_check_case(const grad_case *c) {
  checked *k = begin(c);
  start(k);
  for (uint32_t i = 0; i < k->n_inputs; i++) check_input(k, i);
  return end(k);
}

/* ---- On a device ---- */

#define ROUNDED 1e-4 /* a device computes f64 in f32 */

static void read_all(checked *k, double (*first)[MOST_ELEMENTS], double (*second)[MOST_ELEMENTS]) {
  char name[32];
  berth_error err;
  for (uint32_t i = 0; i < k->n_inputs; i++) {
    snprintf(name, sizeof name, "d%u", i);
    OK(berth_session_read(k->session, name, first[i], k->count[i] * sizeof(double), &err));
    snprintf(name, sizeof name, "dd%u", i);
    if (k->second[i] != BERTH_VALUE_NONE)
      OK(berth_session_read(k->session, name, second[i], k->count[i] * sizeof(double), &err));
  }
}

static void compare_device(checked *k, const char *device, const char *which, uint32_t input, const double *got,
                           const double *want) {
  double most = 0.1;
  for (size_t e = 0; e < k->count[input]; e++) most = fmax(most, fabs(want[e]));
  for (size_t e = 0; e < k->count[input]; e++) {
    if (fabs(got[e] - want[e]) <= ROUNDED * most) continue;
    print_error("%s on %s: { %s }: the %s derivative by input %u, element %zu, is %.9g and should be %.9g\n", k->c->op,
                device, k->c->text, which, input, e, got[e], want[e]);
    k->n_wrong++;
    return;
  }
}

int grad_check_case_on(const grad_case *c, const char *device, berth_error *why) {
  static double first[2][MOST_INPUTS][MOST_ELEMENTS], second[2][MOST_INPUTS][MOST_ELEMENTS];
  berth_session_desc desc = BERTH_SESSION_DESC_INIT;
  checked *k = begin(c);
  start(k);
  run(k);
  read_all(k, first[0], second[0]);
  berth_session_destroy(k->session);
  k->session = NULL;
  desc.device = device;
  if (berth_session_create(k->graph, &desc, &k->session, why) != BERTH_OK) {
    end(k);
    return -1;
  }
  run(k);
  read_all(k, first[1], second[1]);
  for (uint32_t i = 0; i < k->n_inputs; i++) {
    compare_device(k, device, "first", i, first[1][i], first[0][i]);
    if (k->second[i] != BERTH_VALUE_NONE) compare_device(k, device, "second", i, second[1][i], second[0][i]);
  }
  return end(k);
}
