#include "profile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format.h"
#include "out.h"

enum {
  shown_nodes = 20
};

static void observe(void *user, uint32_t step, uint32_t node, const berth_tensor *out, uint32_t n_out, double ms) {
  profile *p = user;
  (void)step;
  (void)out;
  (void)n_out;
  if (node >= p->n_nodes) return;
  p->nodes[node].ms += ms;
  if (p->n_events == p->capacity) return; /* a loop may run a node more often than there is room for */
  p->events[p->n_events++] = (profile_event){node, p->run, cli_now_ms() - p->start_ms - ms, ms};
}

static uint64_t value_bytes(const berth_graph *graph, const berth_value *values, uint32_t n) {
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < n; i++) {
    berth_value_info info;
    if (values[i] == BERTH_VALUE_NONE) continue;
    if (berth_graph_value(graph, values[i], &info, NULL) == BERTH_OK) bytes += info.size;
  }
  return bytes;
}

static int name_nodes(const berth_graph *graph, profile *p) {
  for (uint32_t i = 0; i < p->n_nodes; i++) {
    berth_node_info info;
    berth_error err = {BERTH_OK, ""};
    if (berth_graph_node(graph, i, &info, &err) != BERTH_OK) return cli_report(&err);
    p->nodes[i].name = info.name;
    p->nodes[i].op = info.op;
    p->nodes[i].bytes = value_bytes(graph, info.in, info.n_in) + value_bytes(graph, info.out, info.n_out);
  }
  return CLI_OK;
}

static int observed_runs(runner *r, profile *p) {
  int code = CLI_OK;
  berth_session_observe(r->session, observe, p);
  p->start_ms = cli_now_ms();
  for (p->run = 0; p->run < p->n_runs && code == CLI_OK; p->run++) code = runner_run(r->session);
  berth_session_observe(r->session, NULL, NULL);
  return code;
}

static int by_time(const void *a, const void *b) {
  double x = ((const profile_node *)a)->ms, y = ((const profile_node *)b)->ms;
  return (x < y) - (x > y);
}

int profile_collect(runner *r, uint32_t n_runs, profile *out) {
  const berth_plan *plan = berth_session_plan(r->session);
  const berth_graph *graph = berth_plan_graph(plan);
  memset(out, 0, sizeof(*out));
  out->n_runs = n_runs;
  out->n_nodes = berth_graph_n_nodes(graph);
  out->capacity = (size_t)berth_plan_get_info(plan).n_steps * n_runs;
  out->events = calloc(out->capacity + 1, sizeof(*out->events));
  out->nodes = calloc((size_t)out->n_nodes + 1, sizeof(*out->nodes));
  if (!out->events || !out->nodes) return cli_no_memory();
  int code = name_nodes(graph, out);
  if (code == CLI_OK) code = observed_runs(r, out);
  for (uint32_t i = 0; i < out->n_nodes; i++) {
    out->nodes[i].ms /= n_runs;
    out->total_ms += out->nodes[i].ms;
  }
  qsort(out->nodes, out->n_nodes, sizeof(*out->nodes), by_time);
  return code;
}

typedef struct op_total {
  const char *op;
  uint32_t count;
  double ms;
  uint64_t bytes;
} op_total;

static int by_op_time(const void *a, const void *b) {
  double x = ((const op_total *)a)->ms, y = ((const op_total *)b)->ms;
  return (x < y) - (x > y);
}

/* One row an op, slowest first; NULL when there is no memory. There are few ops, so a scan finds them. */
static op_total *sum_by_op(const profile *p, size_t *n) {
  op_total *totals = calloc((size_t)p->n_nodes + 1, sizeof(*totals));
  *n = 0;
  for (uint32_t i = 0; i < p->n_nodes && totals; i++) {
    size_t at = 0;
    while (at < *n && strcmp(totals[at].op, p->nodes[i].op) != 0) at++;
    if (at == *n) totals[(*n)++].op = p->nodes[i].op;
    totals[at].count++;
    totals[at].ms += p->nodes[i].ms;
    totals[at].bytes += p->nodes[i].bytes;
  }
  if (totals) qsort(totals, *n, sizeof(*totals), by_op_time);
  return totals;
}

static double share_of(const profile *p, double ms) { return p->total_ms > 0 ? 100 * ms / p->total_ms : 0; }

void profile_print(const profile *p) {
  char bytes[FORMAT_SIZE];
  size_t n_ops;
  op_total *ops = sum_by_op(p, &n_ops);
  uint32_t shown = p->n_nodes < shown_nodes ? p->n_nodes : shown_nodes;
  printf("\nby op, mean of %u observed runs\n  %-32s %6s %10s %7s %11s\n", p->n_runs, "op", "nodes", "ms", "share",
         "moved");
  for (size_t i = 0; i < n_ops && ops; i++) {
    printf("  %-32s %6u %10.4f %5.1f %% %11s\n", ops[i].op, ops[i].count, ops[i].ms, share_of(p, ops[i].ms),
           format_short_bytes(ops[i].bytes, bytes));
  }
  printf("\nslowest nodes, %u of %u\n  %-32s %-16s %10s %7s %11s\n", shown, p->n_nodes, "node", "op", "ms", "share",
         "moved");
  for (uint32_t i = 0; i < shown; i++) {
    const profile_node *node = &p->nodes[i];
    printf("  %-32s %-16s %10.4f %5.1f %% %11s\n", node->name, node->op, node->ms, share_of(p, node->ms),
           format_short_bytes(node->bytes, bytes));
  }
  free(ops);
}

static void write_row(json *out, const char *name, const char *op, double ms, double share, uint64_t bytes) {
  json_open_object(out, NULL);
  if (name) json_string(out, "name", name);
  json_string(out, "op", op);
  json_double(out, "ms", ms);
  json_double(out, "share", share / 100);
  json_uint(out, "bytes", bytes);
  json_close_object(out);
}

void profile_write_json(const profile *p, json *out) {
  size_t n_ops;
  op_total *ops = sum_by_op(p, &n_ops);
  json_open_object(out, "profile");
  json_uint(out, "runs", p->n_runs);
  json_open_array(out, "ops");
  for (size_t i = 0; i < n_ops && ops; i++)
    write_row(out, NULL, ops[i].op, ops[i].ms, share_of(p, ops[i].ms), ops[i].bytes);
  json_close_array(out);
  json_open_array(out, "nodes");
  for (uint32_t i = 0; i < p->n_nodes; i++) {
    const profile_node *node = &p->nodes[i];
    write_row(out, node->name, node->op, node->ms, share_of(p, node->ms), node->bytes);
  }
  json_close_array(out);
  json_close_object(out);
  free(ops);
}

/* Chrome's trace format: complete events ("X"), times in microseconds. */
static void write_event(const berth_graph *graph, const profile_event *event, json *out) {
  berth_node_info info;
  if (berth_graph_node(graph, event->node, &info, NULL) != BERTH_OK) return;
  json_open_object(out, NULL);
  json_string(out, "name", info.name);
  json_string(out, "cat", info.op);
  json_string(out, "ph", "X");
  json_double(out, "ts", event->start_ms > 0 ? event->start_ms * 1e3 : 0);
  json_double(out, "dur", event->ms * 1e3);
  json_int(out, "pid", 1);
  json_int(out, "tid", 1);
  json_open_object(out, "args");
  json_uint(out, "run", event->run);
  json_string(out, "op", info.op);
  json_close_object(out);
  json_close_object(out);
}

static berth_status make_trace(const void *text, berth_write_fn write, void *user, berth_error *err) {
  const json *trace = text;
  (void)err;
  return write(user, trace->text, trace->size);
}

int profile_write_trace(const runner *r, const profile *p, const char *path) {
  const berth_graph *graph = berth_plan_graph(berth_session_plan(r->session));
  json out = JSON_INIT;
  json_open_object(&out, NULL);
  json_string(&out, "displayTimeUnit", "ms");
  json_open_array(&out, "traceEvents");
  for (size_t i = 0; i < p->n_events; i++) write_event(graph, &p->events[i], &out);
  json_close_array(&out);
  json_close_object(&out);
  int code = out.failed ? cli_no_memory() : out_make(path, make_trace, &out);
  json_free(&out);
  return code;
}

void profile_close(profile *p) {
  free(p->events);
  free(p->nodes);
  memset(p, 0, sizeof(*p));
}
