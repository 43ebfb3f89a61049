#include "runner.h"

#include <stdlib.h>
#include <string.h>

#include "elements.h"
#include "progress.h"

/* Weights of deep models must be small, or everything overflows. */
static const double weight_divisor = 16;

static int set_random_param(berth_session *session, const berth_value_info *info) {
  berth_error err = {BERTH_OK, ""};
  size_t size = (size_t)info->size;
  void *data = malloc(size + 1);
  if (!data) return cli_no_memory();
  element_fill(info->type, data, element_count_of(info->type, size), info->name, weight_divisor, ELEMENT_MOST);
  berth_status status = berth_session_set_param(session, info->name, data, size, &err);
  free(data);
  return status == BERTH_OK ? CLI_OK : cli_report(&err);
}

static int missing_param(const berth_value_info *info) {
  int code = cli_failed("the model has no weights for its param '%s'", info->name);
  cli_hint("--weights FILE.safetensors gives them; --random-weights tries the model without");
  return code;
}

static int set_params(const runner *r, berth_session *session) {
  const berth_graph *graph = berth_plan_graph(berth_session_plan(session));
  for (uint32_t i = 0; i < berth_graph_n_params(graph); i++) {
    berth_value_info info = BERTH_VALUE_INFO_INIT;
    berth_error err = {BERTH_OK, ""};
    if (berth_graph_value(graph, berth_graph_param_at(graph, i), &info, &err) != BERTH_OK) return cli_report(&err);
    if (info.data) continue;
    int code = r->random_weights ? set_random_param(session, &info) : missing_param(&info);
    if (code != CLI_OK) return code;
  }
  return CLI_OK;
}

static int create_session(runner *r, uint32_t session_flags, uint32_t plan_flags, berth_session **out) {
  berth_plan_desc plan = BERTH_PLAN_DESC_INIT;
  berth_session_desc desc = BERTH_SESSION_DESC_INIT;
  berth_error err = {BERTH_OK, ""};
  const bool is_reference = (session_flags & BERTH_SESSION_REFERENCE) != 0; /* only the CPU has those kernels */
  const char *device = is_reference ? "cpu" : r->device;
  plan.flags |= plan_flags | BERTH_PLAN_INPUTS_DIE; /* every run writes them again */
  if (!is_reference) plan.flags |= r->plan_flags;
  plan.device = device;
  if (!is_reference) plan.gpu_profile = r->gpu_profile;
  if (!is_reference) plan.compute = r->compute;
  plan.dims = r->model.dims.items;
  plan.n_dims = r->model.dims.n;
  desc.flags = session_flags;
  desc.device = device;
  desc.plan = &plan;
  bool is_first = r->session == NULL;
  if (is_first) plan.budget = r->budget;
  double start = cli_now_ms();
  if (berth_session_create(r->model.graph, &desc, out, &err) != BERTH_OK) return inputs_explain(r->model.graph, &err);
  if (is_first) r->compile_ms = cli_now_ms() - start;
  return CLI_OK;
}

int runner_write_inputs(runner *r, berth_session *session) {
  berth_error err = {BERTH_OK, ""};
  for (uint32_t i = 0; i < r->inputs.n; i++) {
    const berth_array *array = &r->inputs.items[i].array;
    if (berth_session_write_at(session, i, array->data, (size_t)array->size, &err) != BERTH_OK) return cli_report(&err);
  }
  return CLI_OK;
}

int runner_session(runner *r, uint32_t session_flags, uint32_t plan_flags, berth_session **out) {
  *out = NULL;
  int code = create_session(r, session_flags, plan_flags, out);
  if (code == CLI_OK) code = set_params(r, *out);
  if (code == CLI_OK) code = inputs_fill(&r->model, berth_plan_graph(berth_session_plan(*out)), &r->inputs);
  if (code == CLI_OK) code = runner_write_inputs(r, *out);
  if (code == CLI_OK) return CLI_OK;
  berth_session_destroy(*out);
  *out = NULL;
  return code;
}

int runner_open(const model_options *options, const runner_options *more, runner *out) {
  memset(out, 0, sizeof(*out));
  out->random_weights = more->random_weights;
  out->budget = more->budget;
  out->device = options->device;
  out->gpu_profile = options->gpu_profile;
  out->plan_flags = model_plan_flags(options);
  out->compute = model_compute(options);
  int code = model_open(options, &out->model);
  if (code == CLI_OK) code = inputs_read(&out->model, &more->inputs, &out->inputs);
  if (code == CLI_OK) code = inputs_fix(&out->model, &out->inputs, options->device);
  if (code != CLI_OK) return code;
  dims_default(&out->model.dims, out->model.graph);
  return runner_session(out, 0, 0, &out->session);
}

void runner_close(runner *r) {
  berth_session_destroy(r->session);
  r->session = NULL;
  inputs_close(&r->model, &r->inputs);
  model_close(&r->model);
}

int runner_run(berth_session *session) {
  berth_error err = {BERTH_OK, ""};
  return berth_session_run(session, &err) == BERTH_OK ? CLI_OK : cli_report(&err);
}

typedef struct shown_run {
  progress bar;
  uint32_t n_steps;
} shown_run;

static void show_step(void *user, uint32_t step, uint32_t node, const berth_tensor *out, uint32_t n_out, double ms) {
  shown_run *run = user;
  (void)node;
  (void)out;
  (void)n_out;
  (void)ms;
  progress_update(&run->bar, (uint64_t)step + 1, run->n_steps);
}

int runner_run_shown(berth_session *session) {
  shown_run run = {.n_steps = cli_plan_info(berth_session_plan(session)).n_steps};
  progress_begin(&run.bar, "running");
  if (run.bar.terminal) berth_session_observe(session, show_step, &run);
  int code = runner_run(session);
  berth_session_observe(session, NULL, NULL);
  progress_end(&run.bar);
  return code;
}
