#include <stdio.h>
#include <stdlib.h>

#include "cli.h"
#include "format.h"
#include "inspect.h"
#include "json.h"

typedef struct op_count {
  const char *op;
  uint32_t count;
} op_count;

typedef struct summary {
  const berth_graph *graph;
  op_count *ops; /* most frequent first */
  size_t n_ops;
  uint64_t param_bytes, constant_bytes, state_bytes;
} summary;

static int tool_inspect_graph_by_count(const void *a, const void *b) {
  const op_count *x = a, *y = b;
  if (x->count != y->count) return x->count < y->count ? 1 : -1;
  return strcmp(x->op, y->op);
}

static int count_ops(summary *s) {
  uint32_t n = berth_graph_n_nodes(s->graph);
  s->ops = calloc((size_t)n + 1, sizeof(*s->ops));
  if (!s->ops) return cli_no_memory();
  for (uint32_t i = 0; i < n; i++) {
    berth_node_info info = BERTH_NODE_INFO_INIT;
    berth_error err = {BERTH_OK, ""};
    if (berth_graph_node(s->graph, i, &info, &err) != BERTH_OK) return cli_report(&err);
    size_t at = 0;
    while (at < s->n_ops && strcmp(s->ops[at].op, info.op) != 0) at++;
    if (at == s->n_ops) s->ops[s->n_ops++].op = info.op;
    s->ops[at].count++;
  }
  qsort(s->ops, s->n_ops, sizeof(*s->ops), tool_inspect_graph_by_count);
  return CLI_OK;
}

static int sum_bytes(summary *s) {
  for (berth_value v = 0; v < berth_graph_n_values(s->graph); v++) {
    berth_value_info info = BERTH_VALUE_INFO_INIT;
    berth_error err = {BERTH_OK, ""};
    if (berth_graph_value(s->graph, v, &info, &err) != BERTH_OK) return cli_report(&err);
    if (info.kind == BERTH_VALUE_PARAM) s->param_bytes += info.size;
    if (info.kind == BERTH_VALUE_CONSTANT) s->constant_bytes += info.size;
    if (info.kind == BERTH_VALUE_STATE) s->state_bytes += info.size;
  }
  return CLI_OK;
}

static void tool_inspect_graph_print_value(const berth_graph *graph, const char *label, const char *name,
                                           berth_value value) {
  berth_value_info info = BERTH_VALUE_INFO_INIT;
  char shape[FORMAT_SIZE];
  if (berth_graph_value(graph, value, &info, NULL) != BERTH_OK) return;
  printf("  %-8s %-24s %s%s\n", label, name ? name : info.name, berth_type_name(info.type),
         format_shape(&info.shape, shape));
}

static void tool_inspect_graph_print_text(const char *path, const summary *s) {
  const berth_graph *graph = s->graph;
  const uint32_t n_nodes = berth_graph_n_nodes(graph), n_values = berth_graph_n_values(graph);
  char bytes[FORMAT_SIZE];
  printf("%s: berth graph '%s', %u node%s, %u value%s\n", path, berth_graph_name(graph), n_nodes, cli_plural(n_nodes),
         n_values, cli_plural(n_values));
  for (uint32_t i = 0; i < berth_graph_n_inputs(graph); i++) {
    tool_inspect_graph_print_value(graph, "input", NULL, berth_graph_input_at(graph, i));
  }
  for (uint32_t i = 0; i < berth_graph_n_outputs(graph); i++) {
    tool_inspect_graph_print_value(graph, "output", berth_graph_output_name(graph, i), berth_graph_output_at(graph, i));
  }
  for (uint32_t i = 0; i < berth_graph_n_states(graph); i++) {
    tool_inspect_graph_print_value(graph, "state", NULL, berth_graph_state_at(graph, i));
  }
  for (uint32_t i = 0; i < berth_graph_n_dims(graph); i++) printf("  dim      %s\n", berth_graph_dim_name(graph, i));
  printf("  params   %u, %s\n", berth_graph_n_params(graph), format_bytes(s->param_bytes, bytes));
  printf("  consts   %s\n", format_bytes(s->constant_bytes, bytes));
  if (berth_graph_n_states(graph) != 0)
    printf("  states   %u, %s\n", berth_graph_n_states(graph), format_bytes(s->state_bytes, bytes));
  for (size_t i = 0; i < s->n_ops; i++) printf("  op       %-24s %u\n", s->ops[i].op, s->ops[i].count);
}

static void write_value(json *out, const berth_graph *graph, const char *name, berth_value value) {
  berth_value_info info = BERTH_VALUE_INFO_INIT;
  if (berth_graph_value(graph, value, &info, NULL) != BERTH_OK) return;
  json_open_object(out, NULL);
  json_string(out, "name", name ? name : info.name);
  json_string(out, "dtype", berth_type_name(info.type));
  json_open_array(out, "shape");
  for (uint32_t i = 0; i < info.shape.rank; i++) {
    if (info.shape.dim[i].name) {
      json_string(out, NULL, info.shape.dim[i].name);
    } else {
      json_int(out, NULL, info.shape.dim[i].extent);
    }
  }
  json_close_array(out);
  json_close_object(out);
}

static int tool_inspect_graph_print_json(const char *path, const summary *s) {
  const berth_graph *graph = s->graph;
  json out = JSON_INIT;
  json_open_object(&out, NULL);
  json_string(&out, "format", "berth");
  json_string(&out, "file", path);
  json_string(&out, "name", berth_graph_name(graph));
  json_uint(&out, "n_nodes", berth_graph_n_nodes(graph));
  json_uint(&out, "n_values", berth_graph_n_values(graph));
  json_uint(&out, "n_params", berth_graph_n_params(graph));
  json_uint(&out, "param_bytes", s->param_bytes);
  json_uint(&out, "constant_bytes", s->constant_bytes);
  json_uint(&out, "state_bytes", s->state_bytes);
  json_open_array(&out, "inputs");
  for (uint32_t i = 0; i < berth_graph_n_inputs(graph); i++) {
    write_value(&out, graph, NULL, berth_graph_input_at(graph, i));
  }
  json_close_array(&out);
  json_open_array(&out, "outputs");
  for (uint32_t i = 0; i < berth_graph_n_outputs(graph); i++) {
    write_value(&out, graph, berth_graph_output_name(graph, i), berth_graph_output_at(graph, i));
  }
  json_close_array(&out);
  json_open_array(&out, "states");
  for (uint32_t i = 0; i < berth_graph_n_states(graph); i++) {
    write_value(&out, graph, NULL, berth_graph_state_at(graph, i));
  }
  json_close_array(&out);
  json_open_array(&out, "dims");
  for (uint32_t i = 0; i < berth_graph_n_dims(graph); i++) json_string(&out, NULL, berth_graph_dim_name(graph, i));
  json_close_array(&out);
  json_open_object(&out, "ops");
  for (size_t i = 0; i < s->n_ops; i++) json_uint(&out, s->ops[i].op, s->ops[i].count);
  json_close_object(&out);
  json_close_object(&out);
  return json_print(&out);
}

int inspect_graph(berth_context *ctx, const char *path, bool as_json) {
  berth_graph *graph = NULL;
  berth_error err = {BERTH_OK, ""};
  if (berth_graph_load(ctx, path, &graph, &err) != BERTH_OK) return cli_report(&err);
  summary s = {.graph = graph};
  int code = count_ops(&s);
  if (code == CLI_OK) code = sum_bytes(&s);
  if (code == CLI_OK && as_json) code = tool_inspect_graph_print_json(path, &s);
  if (code == CLI_OK && !as_json) tool_inspect_graph_print_text(path, &s);
  free(s.ops);
  berth_graph_destroy(graph);
  return code;
}
