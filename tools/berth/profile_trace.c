/* A profile in Chrome's trace format, which Perfetto also reads: complete events ("X"), times in microseconds. A run is
 * a slice that contains those of its nodes. */
#include <stdio.h>

#include "format.h"
#include "out.h"
#include "profile.h"

static void name_track(json *out, const char *what, const char *name) {
  json_open_object(out, NULL);
  json_string(out, "name", what);
  json_string(out, "ph", "M");
  json_int(out, "pid", 1);
  json_int(out, "tid", 1);
  json_open_object(out, "args");
  json_string(out, "name", name);
  json_close_object(out);
  json_close_object(out);
}

static void open_slice(json *out, const char *name, const char *category, double start_ms, double ms) {
  json_open_object(out, NULL);
  json_string(out, "name", name);
  json_string(out, "cat", category);
  json_string(out, "ph", "X");
  json_double(out, "ts", start_ms > 0 ? start_ms * 1e3 : 0);
  json_double(out, "dur", ms * 1e3);
  json_int(out, "pid", 1);
  json_int(out, "tid", 1);
  json_open_object(out, "args");
}

static void close_slice(json *out) {
  json_close_object(out);
  json_close_object(out);
}

static void write_shapes(const berth_graph *graph, const char *key, const berth_value *values, uint32_t n, json *out) {
  json_open_array(out, key);
  for (uint32_t i = 0; i < n; i++) {
    berth_value_info info = BERTH_VALUE_INFO_INIT;
    char shape[FORMAT_SIZE], text[2 * FORMAT_SIZE];
    if (values[i] == BERTH_VALUE_NONE || berth_graph_value(graph, values[i], &info, NULL) != BERTH_OK) continue;
    snprintf(text, sizeof(text), "%s%s", berth_type_name(info.type), format_shape(&info.shape, shape));
    json_string(out, NULL, text);
  }
  json_close_array(out);
}

static void write_event(const berth_plan *plan, const profile *p, const profile_event *event, json *out) {
  const berth_graph *graph = berth_plan_graph(plan);
  berth_node_info info = BERTH_NODE_INFO_INIT;
  if (berth_graph_node(graph, event->node, &info, NULL) != BERTH_OK) return;
  work done = work_of_node(graph, plan, &info);
  open_slice(out, info.name, info.op, event->start_ms, event->ms);
  json_string(out, "op", info.op);
  if (p->step_of[event->node]) steps_write_kernel(p->step_of[event->node], p->device, out);
  write_shapes(graph, "in", info.in, info.n_in, out);
  write_shapes(graph, "out", info.out, info.n_out, out);
  json_uint(out, "bytes", done.bytes);
  json_double(out, "flops", done.flops);
  close_slice(out);
}

static void write_run(const berth_plan *plan, const profile *p, uint32_t index, json *out) {
  const profile_run *run = &p->runs[index];
  char name[32];
  snprintf(name, sizeof(name), "run %u", index);
  open_slice(out, name, "run", run->start_ms, run->ms);
  close_slice(out);
  for (size_t i = run->first_event; i < run->end_event; i++) write_event(plan, p, &p->events[i], out);
}

static berth_status make_trace(const void *text, berth_write_fn write, void *user, berth_error *err) {
  const json *trace = text;
  (void)err;
  return write(user, trace->text, trace->size);
}

int profile_write_trace(const runner *r, const profile *p, const char *path) {
  const berth_plan *plan = berth_session_plan(r->session);
  json out = JSON_INIT;
  json_open_object(&out, NULL);
  json_string(&out, "displayTimeUnit", "ms");
  json_open_array(&out, "traceEvents");
  name_track(&out, "process_name", berth_graph_name(berth_plan_graph(plan)));
  name_track(&out, "thread_name", "steps");
  for (uint32_t i = 0; i < p->n_runs; i++) write_run(plan, p, i, &out);
  json_close_array(&out);
  json_close_object(&out);
  int code = out.failed ? cli_no_memory() : out_make(path, make_trace, &out);
  json_free(&out);
  return code;
}
