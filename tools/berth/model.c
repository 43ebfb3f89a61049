#include "model.h"

#include <stdlib.h>
#include <string.h>

#include "embedded.h"

static berth_status attach(berth_graph *graph, berth_weights *weights, berth_error *err) {
  berth_status status = berth_graph_attach(graph, weights, err);
  berth_weights_destroy(weights); /* the graph keeps what it uses */
  return status;
}

static berth_status load_built_in(berth_context *ctx, berth_graph **out, berth_error *err) {
  berth_weights *weights = NULL;
  berth_status status = berth_graph_parse(ctx, (const char *)berth_digits_graph, berth_digits_graph_size, out, err);
  if (status != BERTH_OK) return status;
  status = berth_weights_from_memory(ctx, berth_digits_weights, berth_digits_weights_size, &weights, err);
  return status == BERTH_OK ? attach(*out, weights, err) : status;
}

/* `given`: extents for named dimensions, one per --dim; NULL: they are bound when the model is planned. */
static berth_status tool_model_load(const model_options *options, const berth_dim *given, model *m, berth_error *err) {
  berth_load_desc desc = BERTH_LOAD_DESC_INIT;
  m->built_in = options->path == NULL;
  desc.weights = options->weights;
  desc.kv = options->kv ? berth_type_from_name(options->kv) : BERTH_TYPE_NONE;
  desc.dims = given;
  desc.n_dims = given ? options->dims.n : 0;
  if (!m->built_in) return berth_graph_load_with(m->ctx, options->path, &desc, &m->graph, err);
  berth_status status = load_built_in(m->ctx, &m->graph, err);
  if (status != BERTH_OK || !options->weights) return status;
  berth_weights *weights = NULL;
  status = berth_weights_open(m->ctx, options->weights, &weights, err);
  return status == BERTH_OK ? attach(m->graph, weights, err) : status;
}

/* Binding keeps the names of dimensions, so that is how a model is loaded. One whose ranks depend on them cannot be
 * read like that: it is loaded with the extents that --dim gives. */
static int tool_model_read(const model_options *options, model *m) {
  berth_error err = {BERTH_OK, ""};
  berth_dim *given = NULL;
  berth_format_info format = BERTH_FORMAT_INFO_INIT;
  int code = CLI_OK;
  berth_status status = tool_model_load(options, NULL, m, &err);
  if ((status == BERTH_MALFORMED || status == BERTH_UNSUPPORTED) && options->dims.n != 0 && options->path &&
      berth_file_format(options->path, &format, NULL) == BERTH_OK && strcmp(format.name, "onnx") == 0) {
    code = dims_read(&options->dims, &given);
    if (code == CLI_OK) status = tool_model_load(options, given, m, &err);
  }
  if (code == CLI_OK && status != BERTH_OK)
    code = status == BERTH_INVALID && given ? cli_usage("%s", err.message) : cli_report(&err);
  if (code == CLI_OK) return dims_open(m->graph, &options->dims, given, &m->dims);
  free(given);
  return code;
}

int model_open(const model_options *options, model *out) {
  memset(out, 0, sizeof(*out));
  int code = cli_context((uint32_t)options->threads, options->memory_limit, &out->allocations, &out->ctx);
  if (code == CLI_OK) code = cli_check_device(out->ctx, options->device);
  if (code == CLI_OK && options->fallback && strcmp(options->fallback, "cpu") != 0)
    code = cli_usage("--fallback takes 'cpu', not '%s'", options->fallback);
  if (code == CLI_OK && options->kv && berth_type_from_name(options->kv) == BERTH_TYPE_NONE)
    code = cli_usage("--kv takes f32, f16, bf16 or q8_0, not '%s'", options->kv);
  berth_compute compute;
  if (code == CLI_OK && options->compute && berth_compute_from_name(options->compute, &compute, NULL) != BERTH_OK)
    code = cli_usage("--compute takes f32, tf32x3, tf32, bf16 or f16, not '%s'", options->compute);
  if (code != CLI_OK) return code;
  double start = cli_now_ms();
  code = tool_model_read(options, out);
  out->load_ms = cli_now_ms() - start;
  return code;
}

int model_reload(const model_options *options, const char *kv, model *m) {
  model_options other = *options;
  other.kv = kv;
  dims_close(&m->dims);
  berth_graph_destroy(m->graph);
  m->graph = NULL;
  return tool_model_read(&other, m);
}

void model_close(model *m) {
  dims_close(&m->dims);
  berth_graph_destroy(m->graph);
  berth_context_destroy(m->ctx);
  m->graph = NULL;
  m->ctx = NULL;
}

const char *model_device(const model_options *options) { return options->device ? options->device : "cpu"; }

uint32_t model_plan_flags(const model_options *options) {
  return (options->fallback ? BERTH_PLAN_FALLBACK_CPU : 0u) | (options->bf16 ? BERTH_PLAN_BF16_WEIGHTS : 0u) |
         (options->f16_weights ? BERTH_PLAN_F16_WEIGHTS : 0u);
}

berth_compute model_compute(const model_options *options) {
  berth_compute compute = BERTH_COMPUTE_F32;
  if (options->compute) (void)berth_compute_from_name(options->compute, &compute, NULL); /* model_open checked it */
  return compute;
}
