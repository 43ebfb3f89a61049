/* Which params are trained, their low-rank adapters, and their initial values. */
#include <fnmatch.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "elements.h"
#include "train.h"

static bool train_matches(const arg_list *patterns, const char *name) {
  for (size_t i = 0; i < patterns->n; i++)
    if (fnmatch(patterns->items[i], name, 0) == 0) return true;
  return false;
}

static berth_value_info train_param_at(const berth_graph *graph, uint32_t index) {
  berth_value_info info = BERTH_VALUE_INFO_INIT;
  (void)berth_graph_value(graph, berth_graph_param_at(graph, index), &info, NULL);
  return info;
}

/* The statistics of a batch norm: running means, not weights. */
static bool train_is_statistic(const berth_graph *graph, berth_value value) {
  bool found = false;
  for (uint32_t i = 0; i < berth_graph_n_nodes(graph); i++) {
    berth_node_info node = BERTH_NODE_INFO_INIT;
    (void)berth_graph_node(graph, i, &node, NULL);
    for (uint32_t k = 0; k < node.n_in; k++) {
      if (node.in[k] != value) continue;
      if (strcmp(node.op, "batch_norm") != 0 || k < 3) return false; /* x, scale, bias, mean, variance */
      found = true;
    }
  }
  return found;
}

/* A pattern that matches no param is an error. */
static int train_check_patterns(const berth_graph *graph, const char *option, const arg_list *patterns) {
  for (size_t i = 0; i < patterns->n; i++) {
    const arg_list one = {&patterns->items[i], 1};
    bool found = false;
    for (uint32_t k = 0; k < berth_graph_n_params(graph); k++)
      found = found || train_matches(&one, train_param_at(graph, k).name);
    if (!found) return cli_usage("--%s %s: no param of the model has such a name", option, patterns->items[i]);
  }
  return CLI_OK;
}

/* ---- Adapters ---- */

int train_adapt(training *t) {
  const berth_graph *graph = t->model.graph;
  berth_lora_desc desc = BERTH_LORA_DESC_INIT;
  berth_error err = {BERTH_OK, ""};
  if (t->wanted->lora == 0) return CLI_OK;
  const int code = train_check_patterns(graph, "lora-on", &t->wanted->lora_on);
  if (code != CLI_OK) return code;
  berth_value *params = calloc((size_t)berth_graph_n_params(graph) + 1, sizeof *params);
  if (params == NULL) return cli_no_memory();
  for (uint32_t i = 0; i < berth_graph_n_params(graph); i++)
    if (train_matches(&t->wanted->lora_on, train_param_at(graph, i).name))
      params[desc.n_params++] = berth_graph_param_at(graph, i);
  desc.rank = (uint32_t)t->wanted->lora;
  desc.alpha = t->wanted->lora_alpha;
  if (t->wanted->lora_on.n != 0) desc.params = params;
  const berth_status status = berth_graph_lora(graph, &desc, &t->adapted, &err);
  free(params);
  return status == BERTH_OK ? CLI_OK : cli_report(&err);
}

static bool train_is_adapter(const training *t, const char *name) {
  return t->adapted != NULL && berth_graph_find(t->model.graph, name) == BERTH_VALUE_NONE;
}

/* ---- Choosing what is trained ---- */

/* With adapters only these, and what --train names; otherwise all params of a float type, or those that --train names;
 * never what --freeze names. */
static bool train_is_chosen(const training *t, const berth_value_info *info) {
  const train_options *wanted = t->wanted;
  if (!element_is_float(info->type) || train_matches(&wanted->frozen, info->name)) return false;
  if (train_is_adapter(t, info->name) || train_matches(&wanted->trained, info->name)) return true;
  return t->adapted == NULL && wanted->trained.n == 0;
}

int train_choose(training *t, berth_value **params, size_t *n) {
  const uint32_t count = berth_graph_n_params(t->graph);
  uint32_t n_statistics = 0;
  int code = train_check_patterns(t->graph, "train", &t->wanted->trained);
  if (code == CLI_OK) code = train_check_patterns(t->graph, "freeze", &t->wanted->frozen);
  if (code != CLI_OK) return code;
  *n = 0;
  *params = calloc((size_t)count + 1, sizeof **params);
  if (*params == NULL) return cli_no_memory();
  for (uint32_t i = 0; i < count; i++) {
    const berth_value_info info = train_param_at(t->graph, i);
    const berth_value param = berth_graph_param_at(t->graph, i);
    if (!train_is_chosen(t, &info)) continue;
    const bool is_statistic = !train_matches(&t->wanted->trained, info.name) && train_is_statistic(t->graph, param);
    n_statistics += is_statistic;
    if (!is_statistic) (*params)[(*n)++] = param;
  }
  if (n_statistics != 0) cli_note("%u means and variances of batch norms stay as they are", n_statistics);
  if (*n != 0) return CLI_OK;
  free(*params);
  *params = NULL;
  return cli_failed("no param of a float type is left to train");
}

/* ---- Initial values ---- */

berth_value train_find_beside(const berth_graph *graph, const char *name, const char *suffix) {
  const size_t length = strlen(name);
  for (uint32_t v = 0; v < berth_graph_n_values(graph); v++) {
    berth_value_info info = BERTH_VALUE_INFO_INIT;
    if (berth_graph_value(graph, v, &info, NULL) == BERTH_OK && strncmp(info.name, name, length) == 0 &&
        strcmp(info.name + length, suffix) == 0)
      return v;
  }
  return BERTH_VALUE_NONE;
}

static bool train_is_state(const training *t, berth_value value) {
  berth_value_info now = BERTH_VALUE_INFO_INIT;
  return value != BERTH_VALUE_NONE && berth_graph_value(t->graph, value, &now, NULL) == BERTH_OK &&
         now.kind == BERTH_VALUE_STATE;
}

int train_read_param(training *t, const char *name, void *dst, size_t size) {
  berth_error err = {BERTH_OK, ""};
  berth_value_info info = BERTH_VALUE_INFO_INIT;
  if (train_is_state(t, berth_graph_find(t->graph, name)))
    return berth_session_state_read(t->session, name, dst, size, &err) == BERTH_OK ? CLI_OK : cli_report(&err);
  berth_graph_value(train_base(t), berth_graph_find(train_base(t), name), &info, NULL);
  if (info.data != NULL) memcpy(dst, info.data, size);
  return info.data != NULL ? CLI_OK : cli_failed("param '%s' has no weights, and is not trained", name);
}

/* Writes the param, and its f32 master copy if there is one. */
static int train_set(training *t, const berth_value_info *info, const float *data, size_t count) {
  berth_value_info master = BERTH_VALUE_INFO_INIT;
  berth_error err = {BERTH_OK, ""};
  const berth_value wide = train_find_beside(t->graph, info->name, ".master");
  void *narrow = malloc((size_t)info->size + 1);
  if (narrow == NULL) return cli_no_memory();
  berth_status status = berth_from_f32(info->type, data, count, narrow, &err);
  if (status == BERTH_OK) status = berth_session_state_write(t->session, info->name, narrow, (size_t)info->size, &err);
  if (status == BERTH_OK && train_is_state(t, wide)) {
    status = berth_graph_value(t->graph, wide, &master, &err);
    if (status == BERTH_OK)
      status = berth_session_state_write(t->session, master.name, data, count * sizeof *data, &err);
  }
  free(narrow);
  return status == BERTH_OK ? CLI_OK : cli_report(&err);
}

static float train_random_number(uint64_t *state) { /* from -1 to 1 */
  return (float)((double)(element_random(state) >> 11) * 0x1p-52 - 1);
}

/* The number of elements that contribute to each element of a result. */
static double train_fan_in(const berth_value_info *info) {
  double n = 1;
  if (info->shape.rank == 2) return (double)info->shape.dim[0].extent;
  for (uint32_t i = 1; i < info->shape.rank; i++) n *= (double)info->shape.dim[i].extent;
  return n;
}

static bool train_ends_with(const char *name, const char *end) {
  const size_t length = strlen(name), wanted = strlen(end);
  return length >= wanted && strcmp(name + length - wanted, end) == 0;
}

/* Scales of norms are initialised to ones, other vectors and the second matrix of an adapter to zeros, and the rest at
 * random. */
static int train_start_param(training *t, const berth_value_info *info, uint64_t *state) {
  const size_t count = element_count_of(info->type, info->size);
  const bool is_zero =
      info->shape.rank < 2 || (train_is_adapter(t, info->name) && train_ends_with(info->name, ".lora_b"));
  const double scale = is_zero ? 0 : sqrt(1 / fmax(train_fan_in(info), 1));
  const float first = train_ends_with(info->name, "norm.weight") || train_ends_with(info->name, ".scale") ? 1.0f : 0.0f;
  float *data = malloc(count * sizeof *data + 1);
  if (data == NULL) return cli_no_memory();
  for (size_t i = 0; i < count; i++)
    data[i] = is_zero ? (info->shape.rank < 2 ? first : 0) : (float)(scale * (double)train_random_number(state));
  const int code = train_set(t, info, data, count);
  free(data);
  return code;
}

int train_start_params(training *t) {
  const berth_graph *base = train_base(t);
  uint64_t state = t->wanted->seed;
  int code = CLI_OK, n = 0;
  for (uint32_t i = 0; i < berth_graph_n_params(base) && code == CLI_OK; i++) {
    const berth_value_info info = train_param_at(base, i);
    if (info.data != NULL) continue;
    if (!train_is_state(t, berth_graph_find(t->graph, info.name)))
      return cli_failed("param '%s' has no weights, and is not trained; --weights has them", info.name);
    n += !train_is_adapter(t, info.name);
    code = train_start_param(t, &info, &state);
  }
  if (n != 0 && code == CLI_OK)
    cli_note("%d params have no weights: they start at random, and as zeros or ones where they have less than two axes",
             n);
  return code;
}
