#include "check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "elements.h"
#include "format.h"
#include "outputs.h"
#include "progress.h"

typedef struct record {
  berth_type type;
  size_t count;
  void *data;
} record;

typedef struct recorder {
  const berth_graph *graph; /* of the observed session */
  record *values;           /* by value number */
  uint32_t n_values;        /* of the model; values added by a device have no counterpart */
  check_result *result;     /* when comparing; NULL when recording */
  progress bar;
  uint32_t n_steps;
  bool no_memory;
} recorder;

static size_t element_count(const berth_tensor *tensor) {
  size_t count = 1;
  for (uint32_t i = 0; i < tensor->rank; i++) count *= (size_t)tensor->dim[i];
  return count;
}

/* Gathers elements with any strides, in order. */
static void tool_check_gather(const berth_tensor *tensor, size_t count, char *out) {
  size_t width = berth_type_size(tensor->type);
  int64_t index[BERTH_MAX_RANK] = {0};
  int64_t at = 0;
  for (size_t n = 0; n < count; n++) {
    memcpy(out + n * width, (const char *)tensor->data + at * (int64_t)width, width);
    for (uint32_t d = tensor->rank; d-- > 0;) {
      at += tensor->stride[d];
      if (++index[d] < tensor->dim[d]) break;
      at -= tensor->stride[d] * tensor->dim[d];
      index[d] = 0;
    }
  }
}

static record copy_tensor(const berth_tensor *tensor) {
  record copy = {tensor->type, element_count(tensor), NULL};
  copy.data = malloc(copy.count * berth_type_size(tensor->type) + 1);
  if (copy.data) tool_check_gather(tensor, copy.count, copy.data);
  return copy;
}

static void tolerance_of(berth_type type, double *absolute, double *relative) {
  bool is_float = element_is_float(type), is_byte = type == BERTH_U8 || type == BERTH_I8;
  *absolute = !is_float ? (is_byte ? 1 : 0) : type == BERTH_F16 ? 1e-3 : type == BERTH_BF16 ? 1e-2 : 1e-4;
  *relative = !is_float ? 0 : type == BERTH_F16 ? 4e-3 : type == BERTH_BF16 ? 2e-2 : 1e-3;
}

static double difference(double got, double want) {
  if (got == want || (isnan(got) && isnan(want))) return 0;
  double gap = fabs(got - want);
  return isfinite(gap) ? gap : (double)INFINITY;
}

static bool is_half(berth_type type) { return type == BERTH_F16 || type == BERTH_BF16; }

/* The reference kernels round f16 and bf16 after every node, others at the end of a fused node: the difference is noise
 * whose size depends on the intermediate values, and so on the larger elements of a value rather than on each element.
 * The few that are far larger than the rest were not in the sums of the others, so the size is the power of two that is
 * above 15 of 16 elements. */
#define EXPONENTS 2200 /* of f64: from -1073, of the smallest number, to 1024 */
static double noise_size(const record *want, berth_type noise) {
  static size_t below[EXPONENTS];
  size_t count = 0, seen = 0;
  if (!is_half(noise)) return 0;
  memset(below, 0, sizeof below);
  for (size_t i = 0; i < want->count; i++) {
    const double reference = element_at(want->type, want->data, i);
    int exponent;
    if (!isfinite(reference) || reference == 0) continue;
    (void)frexp(reference, &exponent);
    below[exponent + EXPONENTS / 2]++;
    count++;
  }
  for (int i = 0; i < EXPONENTS; i++) {
    seen += below[i];
    if (seen > 0 && seen >= count - count / 16) return ldexp(1, i - EXPONENTS / 2);
  }
  return 0;
}

static void tool_check_compare(check_node *node, const record *got, const record *want) {
  double absolute, relative;
  const berth_type noise = element_is_float(want->type) && is_half(node->noise) ? node->noise : want->type;
  tolerance_of(noise, &absolute, &relative);
  if (got->type != want->type || got->count != want->count) {
    node->max_abs = node->max_rel = node->excess = (double)INFINITY;
    return;
  }
  const double usual = noise_size(want, noise);
  for (size_t i = 0; i < want->count; i++) {
    double reference = element_at(want->type, want->data, i);
    double gap = difference(element_at(got->type, got->data, i), reference);
    if (gap == 0) continue;
    double size = isfinite(reference) ? fabs(reference) : 0;
    double allowed = absolute + relative * fmax(size, usual);
    node->max_abs = fmax(node->max_abs, gap);
    node->max_rel = fmax(node->max_rel, gap / fmax(size, 1e-3));
    node->excess = fmax(node->excess, allowed > 0 ? gap / allowed : (double)INFINITY);
  }
}

static void keep_or_compare(recorder *rec, uint32_t node, berth_value value, record *copy) {
  record *kept = &rec->values[value];
  if (!rec->result) {
    free(kept->data);
    *kept = *copy;
    return;
  }
  if (kept->data) {
    rec->result->nodes[node].compared = true;
    tool_check_compare(&rec->result->nodes[node], kept, copy);
  }
  free(copy->data);
}

static void tool_check_observe(void *user, uint32_t step, uint32_t node, const berth_tensor *out, uint32_t n_out,
                               double ms) {
  recorder *rec = user;
  berth_node_info info = BERTH_NODE_INFO_INIT;
  (void)ms;
  progress_update(&rec->bar, (uint64_t)step + 1, rec->n_steps);
  if (berth_graph_node(rec->graph, node, &info, NULL) != BERTH_OK) return;
  if (rec->result) { /* in a loop, the last round was recorded, so the last comparison counts */
    check_node *compared = &rec->result->nodes[node];
    compared->max_abs = compared->max_rel = compared->excess = 0;
  }
  for (uint32_t i = 0; i < n_out && i < info.n_out; i++) {
    if (!out[i].data || info.out[i] >= rec->n_values) continue;
    record copy = copy_tensor(&out[i]);
    if (!copy.data) {
      rec->no_memory = true;
      return;
    }
    keep_or_compare(rec, node, info.out[i], &copy);
  }
}

static int watched_run(recorder *rec, berth_session *session) {
  const berth_plan *plan = berth_session_plan(session);
  rec->graph = berth_plan_graph(plan);
  rec->n_steps = cli_plan_info(plan).n_steps;
  progress_begin(&rec->bar, "checking");
  berth_session_observe(session, tool_check_observe, rec);
  int code = runner_run(session);
  berth_session_observe(session, NULL, NULL);
  progress_end(&rec->bar);
  return code == CLI_OK && rec->no_memory ? cli_no_memory() : code;
}

static void tool_check_sum_up(check_result *result) {
  result->worst = UINT32_MAX;
  result->ok = true;
  for (uint32_t i = 0; i < result->n; i++) {
    const check_node *node = &result->nodes[i];
    if (!node->compared) continue;
    if (result->worst == UINT32_MAX || node->excess > result->nodes[result->worst].excess) result->worst = i;
    result->max_abs = fmax(result->max_abs, node->max_abs);
    result->max_rel = fmax(result->max_rel, node->max_rel);
    if (!(node->excess <= 1)) result->ok = false;
  }
}

static berth_type noisier(berth_type a, berth_type b) {
  return a == BERTH_BF16 || b == BERTH_BF16 ? BERTH_BF16 : is_half(a) ? a : b;
}

/* What was rounded to f16 or bf16 on the way to a node's results stays inexact, whatever the later types. Weights were
 * rounded before, and are the same on both sides. of: by value. */
static berth_type noise_of(const berth_graph *graph, const berth_node_info *info, berth_type *of) {
  berth_type noise = BERTH_TYPE_NONE;
  for (uint32_t i = 0; i < info->n_in; i++)
    if (info->in[i] != BERTH_VALUE_NONE) noise = noisier(noise, of[info->in[i]]);
  for (uint32_t i = 0; i < info->n_out; i++) {
    berth_value_info value = BERTH_VALUE_INFO_INIT;
    if (berth_graph_value(graph, info->out[i], &value, NULL) == BERTH_OK && is_half(value.type))
      noise = noisier(noise, value.type);
  }
  for (uint32_t i = 0; i < info->n_out; i++) of[info->out[i]] = noise;
  return noise;
}

static int tool_check_find_noise(const berth_graph *graph, check_result *out) {
  berth_type *of = calloc((size_t)berth_graph_n_values(graph) + 1, sizeof(*of));
  if (!of) return cli_no_memory();
  for (uint32_t i = 0; i < out->n; i++) {
    berth_node_info info = BERTH_NODE_INFO_INIT;
    if (berth_graph_node(graph, i, &info, NULL) == BERTH_OK) out->nodes[i].noise = noise_of(graph, &info, of);
  }
  free(of);
  return CLI_OK;
}

static int tool_check_name_nodes(const berth_plan *plan, check_result *out) {
  const berth_graph *graph = berth_plan_graph(plan);
  out->n = berth_graph_n_nodes(graph);
  out->nodes = calloc((size_t)out->n + 1, sizeof(*out->nodes));
  if (!out->nodes) return cli_no_memory();
  for (uint32_t i = 0; i < out->n; i++) {
    berth_node_info info = BERTH_NODE_INFO_INIT;
    berth_error err = {BERTH_OK, ""};
    if (berth_graph_node(graph, i, &info, &err) != BERTH_OK) return cli_report(&err);
    out->nodes[i].name = info.name;
    out->nodes[i].op = info.op;
    berth_slot slot = BERTH_SLOT_INIT;
    out->nodes[i].is_view = berth_plan_slot(plan, info.out[0], &slot, NULL) == BERTH_OK && slot.is_view;
  }
  return tool_check_find_noise(graph, out);
}

/* The node that makes an output, in the reference's graph; UINT32_MAX: none. */
static uint32_t node_of(const berth_graph *graph, berth_value value) {
  for (uint32_t n = 0; n < berth_graph_n_nodes(graph); n++) {
    berth_node_info info = BERTH_NODE_INFO_INIT;
    if (berth_graph_node(graph, n, &info, NULL) != BERTH_OK) continue;
    for (uint32_t i = 0; i < info.n_out; i++)
      if (info.out[i] == value) return n;
  }
  return UINT32_MAX;
}

static record record_of(const berth_array *array) {
  return (record){array->type, (size_t)array->size / berth_type_size(array->type), array->data};
}

/* Outputs are compared even if no kernel makes them: a view, or the result of a fused node. */
static int compare_output(berth_session *session, check_result *out, uint32_t index) {
  const berth_graph *graph = berth_plan_graph(berth_session_plan(out->reference));
  const berth_value value = berth_graph_output_at(graph, index);
  const uint32_t node = node_of(graph, value);
  output got = {0}, want = {0};
  if (node == UINT32_MAX || out->nodes[node].compared) return CLI_OK;
  int code = output_read(session, index, &got);
  if (code == CLI_OK) code = output_read(out->reference, index, &want);
  if (code == CLI_OK) {
    const record a = record_of(&got.array), b = record_of(&want.array);
    out->nodes[node].compared = true;
    tool_check_compare(&out->nodes[node], &a, &b);
  }
  free(got.array.data);
  free(want.array.data);
  return code;
}

static int compare_outputs(berth_session *session, check_result *out) {
  int code = CLI_OK;
  for (uint32_t i = 0; i < berth_graph_n_outputs(berth_plan_graph(berth_session_plan(out->reference))); i++)
    if (code == CLI_OK) code = compare_output(session, out, i);
  return code;
}

static int compare_sessions(runner *r, recorder *rec, check_result *out) {
  uint32_t apart = BERTH_PLAN_NO_REUSE | BERTH_PLAN_NO_INPLACE | BERTH_PLAN_NO_CONCAT | BERTH_PLAN_NO_STRIDED;
  berth_error err = {BERTH_OK, ""};
  int code = runner_write_inputs(r, r->session);
  if (code == CLI_OK && berth_session_state_reset(r->session, NULL, &err) != BERTH_OK) code = cli_report(&err);
  if (code == CLI_OK) code = watched_run(rec, r->session);
  if (code == CLI_OK) code = runner_session(r, BERTH_SESSION_REFERENCE, apart, &out->reference);
  if (code != CLI_OK) return code;
  rec->result = out;
  code = tool_check_name_nodes(berth_session_plan(out->reference), out);
  if (code == CLI_OK) code = watched_run(rec, out->reference);
  if (code == CLI_OK) code = compare_outputs(r->session, out);
  if (code == CLI_OK) tool_check_sum_up(out);
  return code;
}

int check_run(runner *r, check_result *out) {
  memset(out, 0, sizeof(*out));
  uint32_t n_values = berth_graph_n_values(r->model.graph);
  recorder rec = {.values = calloc((size_t)n_values + 1, sizeof(*rec.values)), .n_values = n_values};
  if (!rec.values) return cli_no_memory();
  int code = compare_sessions(r, &rec, out);
  for (uint32_t i = 0; i < n_values; i++) free(rec.values[i].data);
  free(rec.values);
  return code;
}

void check_print(const check_result *result) {
  format_colours colours = format_stdout_colours();
  printf("check: every node against the reference kernels\n");
  printf("  %-32s %-16s %12s %12s\n", "node", "op", "max abs", "max rel");
  for (uint32_t i = 0; i < result->n; i++) {
    const check_node *node = &result->nodes[i];
    if (!node->compared) {
      printf("  %-32s %-16s %12s %12s\n", node->name, node->op, node->is_view ? "view" : "fused or not run", "-");
      continue;
    }
    bool over = !(node->excess <= 1);
    const char *mark = over ? "  over tolerance" : i == result->worst && node->max_abs > 0 ? "  worst" : "";
    printf("  %s%-32s %-16s %12.3g %12.3g%s%s\n",
           over    ? colours.bad
           : *mark ? colours.bold
                   : "",
           node->name, node->op, node->max_abs, node->max_rel, mark, over || *mark ? colours.end : "");
  }
  printf("  %s%s%s: largest difference %.3g, relative %.3g\n", result->ok ? colours.good : colours.bad,
         result->ok ? "all within tolerance" : "over tolerance", colours.end, result->max_abs, result->max_rel);
}

void check_write_json(const check_result *result, json *out) {
  json_open_object(out, "check");
  json_double(out, "max_abs", result->max_abs);
  json_double(out, "max_rel", result->max_rel);
  json_string(out, "worst_node", result->worst == UINT32_MAX ? NULL : result->nodes[result->worst].name);
  json_bool(out, "ok", result->ok);
  json_open_array(out, "nodes");
  for (uint32_t i = 0; i < result->n; i++) {
    const check_node *node = &result->nodes[i];
    json_open_object(out, NULL);
    json_string(out, "name", node->name);
    json_string(out, "op", node->op);
    if (node->compared) {
      json_double(out, "max_abs", node->max_abs);
      json_double(out, "max_rel", node->max_rel);
      json_bool(out, "ok", node->excess <= 1);
    } else {
      json_bool(out, node->is_view ? "view" : "not_run", true);
    }
    json_close_object(out);
  }
  json_close_array(out);
  json_close_object(out);
}

void check_close(check_result *result) {
  berth_session_destroy(result->reference);
  free(result->nodes);
  memset(result, 0, sizeof(*result));
}
