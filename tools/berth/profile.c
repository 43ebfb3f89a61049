#include "profile.h"

#include <stdlib.h>
#include <string.h>

static void tool_profile_observe(void *user, uint32_t step, uint32_t node, const berth_tensor *out, uint32_t n_out,
                                 double ms) {
  profile *p = user;
  (void)step;
  (void)out;
  (void)n_out;
  if (node >= p->n_nodes || p->n_events == p->capacity)
    return; /* a loop may run a node more often than there is space for */
  p->events[p->n_events++] = (profile_event){node, cli_now_ms() - p->start_ms - ms, ms};
}

/* A device's own clock measures durations, not start times: the steps are placed one after the other. */
static void tool_profile_line_up(profile *p, const profile_run *run) {
  double at = run->start_ms;
  for (size_t i = run->first_event; i < run->end_event; i++) {
    p->events[i].start_ms = at;
    at += p->events[i].ms;
  }
}

static int observed_runs(runner *r, profile *p) {
  int code = CLI_OK;
  berth_session_observe(r->session, tool_profile_observe, p);
  p->start_ms = cli_now_ms();
  for (uint32_t i = 0; i < p->n_runs && code == CLI_OK; i++) {
    profile_run *run = &p->runs[i];
    if ((code = runner_write_inputs(r, r->session)) != CLI_OK) break;
    run->first_event = p->n_events;
    run->start_ms = cli_now_ms() - p->start_ms;
    code = runner_run(r->session);
    run->ms = cli_now_ms() - p->start_ms - run->start_ms;
    run->end_event = p->n_events;
    if (p->clock != BERTH_CLOCK_HOST) tool_profile_line_up(p, run);
    p->run_ms += run->ms / p->n_runs;
  }
  berth_session_observe(r->session, NULL, NULL);
  return code;
}

static int tool_profile_name_nodes(const berth_graph *graph, profile *p) {
  for (uint32_t i = 0; i < p->n_nodes; i++) {
    berth_node_info info = BERTH_NODE_INFO_INIT;
    berth_error err = {BERTH_OK, ""};
    if (berth_graph_node(graph, i, &info, &err) != BERTH_OK) return cli_report(&err);
    p->nodes[i] = (profile_row){.name = info.name, .op = info.op, .n_nodes = 1};
  }
  for (uint32_t i = 0; i < p->steps.n; i++) {
    profile_row *row = &p->nodes[p->steps.items[i].node];
    row->step = p->step_of[p->steps.items[i].node] = &p->steps.items[i];
    row->n_reference = row->step->kind == BERTH_KERNEL_REFERENCE;
  }
  return CLI_OK;
}

/* Views run no kernel: they take no time and move no bytes. */
static void add_events(const berth_plan *plan, profile *p) {
  const berth_graph *graph = berth_plan_graph(plan);
  for (size_t i = 0; i < p->n_events; i++) {
    const profile_event *event = &p->events[i];
    berth_node_info info = BERTH_NODE_INFO_INIT;
    p->nodes[event->node].ms += event->ms / p->n_runs;
    if (berth_graph_node(graph, event->node, &info, NULL) != BERTH_OK) continue;
    work done = work_of_node(graph, plan, &info);
    p->nodes[event->node].work = done;
    p->nodes[event->node].least_ms = peak_least_ms(&p->peak, done.flops, done.bytes);
  }
}

static void add_row(profile_row *sum, const profile_row *row) {
  sum->n_nodes += row->n_nodes;
  sum->n_reference += row->n_reference;
  sum->ms += row->ms;
  sum->least_ms += row->least_ms;
  sum->work.flops += row->work.flops;
  sum->work.bytes += row->work.bytes;
}

/* There are few ops, so a linear search suffices. */
static void sum_by_op(profile *p) {
  for (uint32_t i = 0; i < p->n_nodes; i++) {
    uint32_t at = 0;
    while (at < p->n_ops && strcmp(p->ops[at].op, p->nodes[i].op) != 0) at++;
    if (at == p->n_ops) p->ops[p->n_ops++].op = p->nodes[i].op;
    add_row(&p->ops[at], &p->nodes[i]);
    add_row(&p->total, &p->nodes[i]);
  }
}

static int by_time(const void *a, const void *b) {
  double x = ((const profile_row *)a)->ms, y = ((const profile_row *)b)->ms;
  return (x < y) - (x > y);
}

/* Plans for GPUs have a profile; a plan that fell back entirely has none. */
static bool on_cpu(const berth_plan *plan) { return berth_plan_gpu_profile(plan) == NULL; }

int profile_collect(runner *r, uint32_t n_runs, bool with_peak, profile *out) {
  const berth_plan *plan = berth_session_plan(r->session);
  const berth_graph *graph = berth_plan_graph(plan);
  memset(out, 0, sizeof(*out));
  out->n_runs = n_runs;
  out->clock = berth_session_clock(r->session);
  out->n_nodes = berth_graph_n_nodes(graph);
  out->capacity = (size_t)cli_plan_info(plan).n_steps * n_runs;
  out->events = calloc(out->capacity + 1, sizeof(*out->events));
  out->runs = calloc((size_t)n_runs + 1, sizeof(*out->runs));
  out->nodes = calloc((size_t)out->n_nodes + 1, sizeof(*out->nodes));
  out->ops = calloc((size_t)out->n_nodes + 1, sizeof(*out->ops));
  out->step_of = calloc((size_t)out->n_nodes + 1, sizeof(*out->step_of));
  if (!out->events || !out->runs || !out->nodes || !out->ops || !out->step_of) return cli_no_memory();
  out->device = r->device ? r->device : "cpu";
  out->on_gpu = !on_cpu(plan);
  int code = steps_read(plan, &out->steps);
  if (code == CLI_OK) code = tool_profile_name_nodes(graph, out);
  if (code == CLI_OK) code = observed_runs(r, out);
  if (code != CLI_OK) return code;
  if (with_peak)
    out->peak = on_cpu(plan) ? peak_measure(berth_session_n_threads(r->session))
                             : peak_measure_on(r->model.ctx, r->device, r->gpu_profile);
  add_events(plan, out);
  sum_by_op(out);
  qsort(out->nodes, out->n_nodes, sizeof(*out->nodes), by_time);
  qsort(out->ops, out->n_ops, sizeof(*out->ops), by_time);
  return CLI_OK;
}

void profile_close(profile *p) {
  free(p->events);
  free(p->runs);
  free(p->nodes);
  free(p->ops);
  free(p->step_of);
  steps_close(&p->steps);
  memset(p, 0, sizeof(*p));
}

double profile_gflops(const profile_row *row) { return row->ms > 0 ? row->work.flops / row->ms * 1e-6 : 0; }
double profile_gb_per_s(const profile_row *row) { return row->ms > 0 ? (double)row->work.bytes / row->ms * 1e-6 : 0; }

double profile_of_peak(const profile_row *row) { return row->ms > 0 ? row->least_ms / row->ms : 0; }

double profile_share(const profile *p, const profile_row *row) { return p->total.ms > 0 ? row->ms / p->total.ms : 0; }
