#include <inttypes.h>
#include <stdio.h>

#include "bounds.h"
#include "cli.h"
#include "format.h"
#include "inspect.h"
#include "json.h"

typedef struct onnx_file {
  const char *path;
  const berth_model_info *info;
  const berth_graph *graph; /* NULL: berth cannot load it; the message says why */
  const char *why_not;
  const berth_graph *bound; /* with 1 for every named dimension; NULL: shapes depend on more than these */
} onnx_file;

static const char *domain_name(const char *domain) { return *domain ? domain : "ai.onnx"; }

/* "Conv", or "com.microsoft.FusedConv". */
static const char *op_name(const berth_model_op *op, char out[FORMAT_SIZE]) {
  snprintf(out, FORMAT_SIZE, "%s%s%s", op->domain, *op->domain ? "." : "", op->name);
  return out;
}

/* The name of an input whose values are needed for planning; NULL: not needed. */
static const char *needed_name(const onnx_file *f, uint32_t input) {
  berth_value_info info = BERTH_VALUE_INFO_INIT;
  berth_value value = berth_graph_input_at(f->graph, input);
  if (f->bound || !berth_graph_shapes_depend(f->graph, value)) return NULL;
  return berth_graph_value(f->graph, value, &info, NULL) == BERTH_OK ? info.name : NULL;
}

static void tool_inspect_onnx_print_value(const char *label, const berth_model_value *value) {
  char shape[FORMAT_SIZE];
  printf("  %-8s %-24s %s%s\n", label, value->name, value->type,
         value->has_shape ? format_shape(&value->shape, shape) : "");
}

static void tool_inspect_onnx_print_head(const onnx_file *f) {
  const berth_model_info *info = f->info;
  printf("%s: ONNX model '%s', IR version %" PRId64 ", %" PRIu64 " node%s\n", f->path, info->name, info->ir_version,
         info->n_nodes, cli_plural(info->n_nodes));
  for (size_t i = 0; i < info->n_opsets; i++) {
    printf("  opset    %-24s %" PRId64 "\n", domain_name(info->opsets[i].domain), info->opsets[i].version);
  }
  if (*info->producer) printf("  producer %s %s\n", info->producer, info->producer_version);
}

static void print_verdict(const onnx_file *f) {
  if (!f->graph) {
    printf("  runs     no: %s\n", f->why_not);
    return;
  }
  printf("  runs     yes, on cpu\n");
  if (f->bound && !berth_graph_n_dims(f->graph)) bounds_print(f->bound, "  bound    ");
  for (uint32_t i = 0; i < berth_graph_n_inputs(f->graph); i++) {
    const char *name = needed_name(f, i);
    if (name) printf("  needs    %-24s shapes depend on its values\n", name);
  }
}

static void tool_inspect_onnx_print_text(const onnx_file *f) {
  const berth_model_info *info = f->info;
  char count[FORMAT_SIZE], bytes[FORMAT_SIZE], name[FORMAT_SIZE];
  tool_inspect_onnx_print_head(f);
  for (size_t i = 0; i < info->n_inputs; i++) tool_inspect_onnx_print_value("input", &info->inputs[i]);
  for (size_t i = 0; i < info->n_outputs; i++) tool_inspect_onnx_print_value("output", &info->outputs[i]);
  for (uint32_t i = 0; f->graph && i < berth_graph_n_dims(f->graph); i++) {
    printf("  dim      %s\n", berth_graph_dim_name(f->graph, i));
  }
  printf("  params   %" PRIu64 " of %s element%s, %s\n", info->n_params, format_count(info->param_elements, count),
         cli_plural(info->param_elements), format_bytes(info->param_bytes, bytes));
  for (size_t i = 0; i < info->n_files; i++) printf("  file     %s\n", info->files[i]);
  if (info->n_functions) printf("  funcs    %" PRIu64 "\n", info->n_functions);
  for (size_t i = 0; i < info->n_ops; i++) {
    printf("  op       %-24s %" PRIu64 "%s\n", op_name(&info->ops[i], name), info->ops[i].count,
           info->ops[i].supported ? "" : "  not supported");
  }
  print_verdict(f);
}

static void write_values(json *out, const char *key, const berth_model_value *values, size_t n) {
  json_open_array(out, key);
  for (size_t i = 0; i < n; i++) {
    const berth_shape *shape = &values[i].shape;
    json_open_object(out, NULL);
    json_string(out, "name", values[i].name);
    json_string(out, "dtype", values[i].type);
    if (values[i].has_shape) {
      json_open_array(out, "shape");
      for (uint32_t d = 0; d < shape->rank && d < BERTH_MAX_RANK; d++) {
        if (shape->dim[d].name) {
          json_string(out, NULL, shape->dim[d].name);
        } else {
          json_int(out, NULL, shape->dim[d].extent);
        }
      }
      json_close_array(out);
    } else {
      json_null(out, "shape");
    }
    json_close_object(out);
  }
  json_close_array(out);
}

static void write_ops(json *out, const char *key, const berth_model_info *info, bool only_unsupported) {
  char name[FORMAT_SIZE];
  json_open_object(out, key);
  for (size_t i = 0; i < info->n_ops; i++) {
    if (only_unsupported && info->ops[i].supported) continue;
    json_uint(out, op_name(&info->ops[i], name), info->ops[i].count);
  }
  json_close_object(out);
}

static void write_graph(json *out, const onnx_file *f) {
  json_open_array(out, "dims");
  for (uint32_t i = 0; f->graph && i < berth_graph_n_dims(f->graph); i++) {
    json_string(out, NULL, berth_graph_dim_name(f->graph, i));
  }
  json_close_array(out);
  json_open_array(out, "needs");
  for (uint32_t i = 0; f->graph && i < berth_graph_n_inputs(f->graph); i++) {
    const char *name = needed_name(f, i);
    if (name) json_string(out, NULL, name);
  }
  json_close_array(out);
  json_bool(out, "runs", f->graph != NULL);
  json_string(out, "reason", f->graph ? NULL : f->why_not);
}

static int tool_inspect_onnx_print_json(const onnx_file *f) {
  const berth_model_info *info = f->info;
  json out = JSON_INIT;
  json_open_object(&out, NULL);
  json_string(&out, "format", info->format);
  json_string(&out, "file", f->path);
  json_string(&out, "name", info->name);
  json_int(&out, "ir_version", info->ir_version);
  json_open_object(&out, "opsets");
  for (size_t i = 0; i < info->n_opsets; i++) {
    json_int(&out, domain_name(info->opsets[i].domain), info->opsets[i].version);
  }
  json_close_object(&out);
  json_string(&out, "producer", info->producer);
  json_string(&out, "producer_version", info->producer_version);
  json_uint(&out, "n_nodes", info->n_nodes);
  json_uint(&out, "n_functions", info->n_functions);
  json_uint(&out, "n_params", info->n_params);
  json_uint(&out, "param_elements", info->param_elements);
  json_uint(&out, "param_bytes", info->param_bytes);
  json_open_array(&out, "files");
  for (size_t i = 0; i < info->n_files; i++) json_string(&out, NULL, info->files[i]);
  json_close_array(&out);
  write_values(&out, "inputs", info->inputs, info->n_inputs);
  write_values(&out, "outputs", info->outputs, info->n_outputs);
  write_ops(&out, "ops", info, false);
  write_ops(&out, "unsupported", info, true);
  write_graph(&out, f);
  json_close_object(&out);
  return json_print(&out);
}

int inspect_onnx(berth_context *ctx, const char *path, bool as_json) {
  berth_model_info *info = NULL;
  berth_graph *graph = NULL;
  berth_error err = {BERTH_OK, ""};
  if (berth_model_inspect(ctx, path, &info, &err) != BERTH_OK) return cli_report(&err);
  berth_status status = berth_graph_load(ctx, path, &graph, &err);
  bool named = strncmp(err.message, path, strlen(path)) == 0 && strncmp(err.message + strlen(path), ": ", 2) == 0;
  berth_graph *bound = graph ? bounds_try(graph, NULL) : NULL;
  onnx_file file = {path, info, graph, err.message + (named ? strlen(path) + 2 : 0), bound};
  int code = CLI_OK;
  if (status == BERTH_NOMEM) {
    code = cli_report(&err);
  } else if (as_json) {
    code = tool_inspect_onnx_print_json(&file);
  } else {
    tool_inspect_onnx_print_text(&file);
  }
  berth_graph_destroy(bound);
  berth_graph_destroy(graph);
  berth_model_info_destroy(info);
  return code;
}
