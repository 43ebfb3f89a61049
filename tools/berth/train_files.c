/* The files of a training: weights as safetensors or as an ONNX model, separate adapters, and checkpoints. The library
 * writes a temporary file, syncs and renames it, so that a file is whole at every moment. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "elements.h"
#include "train.h"

/* Tensors to write, with their data. */
typedef struct train_list {
  berth_weight_info *items;
  uint32_t n;
} train_list;

static int train_list_create(train_list *list, uint32_t most) {
  *list = (train_list){calloc((size_t)most + 1, sizeof *list->items), 0};
  return list->items != NULL ? CLI_OK : cli_no_memory();
}

static void train_list_free(train_list *list) {
  for (uint32_t i = 0; i < list->n; i++) free((void *)(uintptr_t)list->items[i].data);
  free(list->items);
}

/* Adds one, whose data is to be filled in. */
static void *train_list_add(train_list *list, const char *name, berth_type type, const berth_shape *shape,
                            uint64_t size) {
  berth_weight_info *one = &list->items[list->n];
  *one = (berth_weight_info)BERTH_WEIGHT_INFO_INIT;
  one->name = name;
  one->type = type;
  one->rank = shape->rank;
  one->size = size;
  for (uint32_t k = 0; k < shape->rank; k++) one->dim[k] = shape->dim[k].extent;
  void *data = calloc((size_t)size + 1, 1);
  one->data = data;
  if (data != NULL) list->n++;
  return data;
}

/* ---- Weights ---- */

static berth_value_info train_find(const berth_graph *graph, const char *name, const char *suffix) {
  berth_value_info info = BERTH_VALUE_INFO_INIT;
  const berth_value value = train_find_beside(graph, name, suffix);
  if (value != BERTH_VALUE_NONE) (void)berth_graph_value(graph, value, &info, NULL);
  return info;
}

static bool train_turns(const berth_node_info *node) {
  if (strcmp(node->op, "transpose") != 0) return false;
  for (uint32_t i = 0; i < node->n_attrs; i++)
    if (strcmp(node->attrs[i].name, "perm") == 0 && node->attrs[i].count != 0) return node->attrs[i].ints[0] != 0;
  return true;
}

static bool train_is_turned(const berth_graph *graph, const char *name) {
  const berth_value w = berth_graph_find(graph, name);
  for (uint32_t i = 0; i < berth_graph_n_nodes(graph); i++) {
    berth_node_info node = BERTH_NODE_INFO_INIT;
    (void)berth_graph_node(graph, i, &node, NULL);
    if (node.n_in != 0 && node.in[0] == w && train_turns(&node)) return true;
  }
  return false;
}

/* w += factor a b, for a [K, rank] and b [rank, N]. */
static int train_add_product(const training *t, const berth_value_info *w, void *data, const berth_value_info *info_a,
                             const void *a, const void *b) {
  const size_t rank = (size_t)t->wanted->lora, count = element_count_of(w->type, w->size);
  const size_t rows = element_count_of(info_a->type, info_a->size) / rank, columns = count / rows;
  const double factor = t->wanted->lora_alpha != 0 ? t->wanted->lora_alpha / (double)rank : 1;
  const bool is_turned = train_is_turned(t->model.graph, w->name);
  berth_error err = {BERTH_OK, ""};
  float *sum = malloc(count * sizeof *sum + 1);
  if (sum == NULL) return cli_no_memory();
  for (size_t i = 0; i < rows; i++)
    for (size_t k = 0; k < columns; k++) {
      const size_t at = is_turned ? k * rows + i : i * columns + k;
      double more = 0;
      for (size_t r = 0; r < rank; r++)
        more += element_at(w->type, a, i * rank + r) * element_at(w->type, b, r * columns + k);
      const double value = element_at(w->type, data, at) + factor * more;
      sum[at] = (float)value;
      if (w->type == BERTH_F64) memcpy((char *)data + at * sizeof value, &value, sizeof value);
    }
  const berth_status status =
      w->type == BERTH_F64 ? BERTH_OK : berth_from_f32(w->type, sum, count, data, &err); /* from full precision */
  free(sum);
  return status == BERTH_OK ? CLI_OK : cli_report(&err);
}

/* Merges the adapter of a param, if it has one. */
static int train_merge(training *t, const berth_value_info *w, void *data) {
  if (t->adapted == NULL) return CLI_OK;
  const berth_value_info a = train_find(t->adapted, w->name, ".lora_a"), b = train_find(t->adapted, w->name, ".lora_b");
  if (a.name == NULL || b.name == NULL) return CLI_OK;
  void *data_a = malloc((size_t)a.size + 1), *data_b = malloc((size_t)b.size + 1);
  int code = data_a != NULL && data_b != NULL ? CLI_OK : cli_no_memory();
  if (code == CLI_OK) code = train_read_param(t, a.name, data_a, (size_t)a.size);
  if (code == CLI_OK) code = train_read_param(t, b.name, data_b, (size_t)b.size);
  if (code == CLI_OK) code = train_add_product(t, w, data, &a, data_a, data_b);
  free(data_a);
  free(data_b);
  return code;
}

static bool train_has_changed(const training *t, const char *name) {
  const berth_value_info now = train_find(t->graph, name, "");
  return now.kind == BERTH_VALUE_STATE || (t->adapted != NULL && train_find(t->adapted, name, ".lora_a").name != NULL);
}

/* The model's params with their current values; only changed ones, or all. */
static int train_list_params(training *t, bool is_changed_alone, train_list *list) {
  const berth_graph *graph = t->model.graph;
  int code = train_list_create(list, berth_graph_n_params(graph));
  for (uint32_t i = 0; i < berth_graph_n_params(graph) && code == CLI_OK; i++) {
    berth_value_info info = BERTH_VALUE_INFO_INIT;
    (void)berth_graph_value(graph, berth_graph_param_at(graph, i), &info, NULL);
    if (is_changed_alone && !train_has_changed(t, info.name)) continue;
    void *data = train_list_add(list, info.name, info.type, &info.shape, info.size);
    code = data != NULL ? train_read_param(t, info.name, data, (size_t)info.size) : cli_no_memory();
    if (code == CLI_OK) code = train_merge(t, &info, data);
  }
  return code;
}

int train_save_weights(training *t, const char *path) {
  const size_t length = strlen(path);
  const bool is_onnx = length > 5 && strcmp(path + length - 5, ".onnx") == 0;
  berth_error err = {BERTH_OK, ""};
  train_list list;
  int code = train_list_params(t, is_onnx, &list);
  if (code == CLI_OK) {
    const berth_status status =
        is_onnx ? berth_model_save(t->model.ctx, t->wanted->model.path, path, list.items, list.n, &err)
                : berth_weights_save(t->model.ctx, path, list.items, list.n, &err);
    if (status != BERTH_OK) code = cli_report(&err);
  }
  train_list_free(&list);
  return code;
}

int train_save_adapters(training *t, const char *path) {
  const berth_graph *graph = t->adapted;
  berth_error err = {BERTH_OK, ""};
  train_list list;
  int code = train_list_create(&list, berth_graph_n_params(graph));
  for (uint32_t i = 0; i < berth_graph_n_params(graph) && code == CLI_OK; i++) {
    berth_value_info info = BERTH_VALUE_INFO_INIT;
    (void)berth_graph_value(graph, berth_graph_param_at(graph, i), &info, NULL);
    if (berth_graph_find(t->model.graph, info.name) != BERTH_VALUE_NONE) continue;
    void *data = train_list_add(&list, info.name, info.type, &info.shape, info.size);
    code = data != NULL ? train_read_param(t, info.name, data, (size_t)info.size) : cli_no_memory();
  }
  if (code == CLI_OK && berth_weights_save(t->model.ctx, path, list.items, list.n, &err) != BERTH_OK)
    code = cli_report(&err);
  train_list_free(&list);
  return code;
}

/* ---- Checkpoints: all states, including the step count, and the options that affect the numbers ---- */

#define CHECKPOINT "berth.training"

enum {
  MARK_VERSION,
  MARK_SEED,
  MARK_BATCH,
  MARK_ACCUMULATE,
  MARK_SAMPLES,
  MARK_TRAINED,
  MARK_WINDOW,
  MARK_COUNT
};

static void train_mark(const training *t, int64_t mark[MARK_COUNT]) {
  mark[MARK_VERSION] = 1;
  mark[MARK_SEED] = (int64_t)t->wanted->seed;
  mark[MARK_BATCH] = t->batch;
  mark[MARK_ACCUMULATE] = (int64_t)t->wanted->accumulate;
  mark[MARK_SAMPLES] = t->n_samples;
  mark[MARK_TRAINED] = t->n_train;
  mark[MARK_WINDOW] = t->window;
}

int train_save_checkpoint(training *t, const char *path) {
  const berth_shape marks = BERTH_SHAPE(MARK_COUNT);
  int64_t mark[MARK_COUNT];
  berth_error err = {BERTH_OK, ""};
  train_list list;
  int code = train_list_create(&list, berth_graph_n_states(t->graph) + 1);
  if (code == CLI_OK) {
    void *data = train_list_add(&list, CHECKPOINT, BERTH_I64, &marks, sizeof mark);
    train_mark(t, mark);
    if (data != NULL) memcpy(data, mark, sizeof mark);
    if (data == NULL) code = cli_no_memory();
  }
  for (uint32_t i = 0; i < berth_graph_n_states(t->graph) && code == CLI_OK; i++) {
    berth_value_info info = BERTH_VALUE_INFO_INIT;
    (void)berth_graph_value(t->graph, berth_graph_state_at(t->graph, i), &info, NULL);
    void *data = train_list_add(&list, info.name, info.type, &info.shape, info.size);
    if (data == NULL)
      code = cli_no_memory();
    else if (berth_session_state_read(t->session, info.name, data, (size_t)info.size, &err) != BERTH_OK)
      code = cli_report(&err);
  }
  if (code == CLI_OK && berth_weights_save(t->model.ctx, path, list.items, list.n, &err) != BERTH_OK)
    code = cli_report(&err);
  train_list_free(&list);
  return code;
}

static int train_check_mark(const training *t, const char *path, const berth_weights *from) {
  static const char *const names[MARK_COUNT] = {"version", "--seed",     "--batch", "--accumulate",
                                                "rows",    "--hold-out", "--dim"};
  berth_weight_info info = BERTH_WEIGHT_INFO_INIT;
  int64_t mark[MARK_COUNT], now[MARK_COUNT];
  const uint32_t index = berth_weights_find(from, CHECKPOINT);
  if (index == UINT32_MAX || berth_weights_at(from, index, &info, NULL) != BERTH_OK || info.type != BERTH_I64 ||
      info.size != sizeof mark)
    return cli_failed("%s is not a checkpoint of a training", path);
  memcpy(mark, info.data, sizeof mark);
  train_mark(t, now);
  for (int i = 0; i < MARK_COUNT; i++)
    if (mark[i] != now[i])
      return cli_failed("%s was made with another %s (%" PRId64 ", and now it is %" PRId64
                        "), so it cannot go on from it",
                        path, names[i], mark[i], now[i]);
  return CLI_OK;
}

/* All states are checked before the first is written, so a checkpoint of another model changes nothing. */
static int train_find_state(const training *t, const char *path, const berth_weights *from, uint32_t state,
                            berth_weight_info *out) {
  berth_value_info info = BERTH_VALUE_INFO_INIT;
  (void)berth_graph_value(t->graph, berth_graph_state_at(t->graph, state), &info, NULL);
  const uint32_t index = berth_weights_find(from, info.name);
  if (index == UINT32_MAX)
    return cli_failed("%s has no '%s': it is a checkpoint of another model or optimiser", path, info.name);
  berth_error err = {BERTH_OK, ""};
  if (berth_weights_at(from, index, out, &err) != BERTH_OK) return cli_report(&err);
  bool fits = out->type == info.type && out->rank == info.shape.rank;
  for (uint32_t k = 0; k < out->rank && fits; k++) fits = out->dim[k] == info.shape.dim[k].extent;
  if (fits) return CLI_OK;
  return cli_failed("'%s' in %s has another type or shape: it is a checkpoint of another model", info.name, path);
}

static int train_restore(training *t, const char *path, const berth_weights *from) {
  const uint32_t n = berth_graph_n_states(t->graph);
  berth_weight_info info = BERTH_WEIGHT_INFO_INIT;
  berth_error err = {BERTH_OK, ""};
  int64_t steps = 0;
  int code = train_check_mark(t, path, from);
  for (uint32_t i = 0; i < n && code == CLI_OK; i++) code = train_find_state(t, path, from, i, &info);
  if (code == CLI_OK && berth_weights_count(from) != n + 1)
    code = cli_failed("%s has more states than this training: it is a checkpoint of another model or optimiser", path);
  for (uint32_t i = 0; i < n && code == CLI_OK; i++) {
    code = train_find_state(t, path, from, i, &info);
    if (code == CLI_OK &&
        berth_session_state_write(t->session, info.name, info.data, (size_t)info.size, &err) != BERTH_OK)
      code = cli_report(&err);
  }
  if (code == CLI_OK && berth_session_state_read(t->session, "train.step", &steps, sizeof steps, &err) != BERTH_OK)
    code = cli_report(&err);
  if (code == CLI_OK) t->step = (uint64_t)steps;
  return code;
}

int train_load_checkpoint(training *t, const char *path) {
  berth_weights *from = NULL;
  berth_error err = {BERTH_OK, ""};
  if (access(path, F_OK) != 0 && errno == ENOENT) return CLI_OK;
  int code = berth_weights_open(t->model.ctx, path, &from, &err) == BERTH_OK ? CLI_OK : cli_report(&err);
  if (code == CLI_OK) code = train_restore(t, path, from);
  berth_weights_destroy(from);
  return code;
}
