/* A model for a batch of rows, with a loss on its first output of a float type; and without a loss, for measuring. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "elements.h"
#include "format.h"
#include "loss.h"
#include "train.h"

/* ---- Shapes ---- */

/* Checks that a row in the file is a row of the input: the same extents, if those are fixed. */
static int train_check_rows(const train_rows *rows, const berth_value_info *info) {
  char wanted[FORMAT_SIZE], got[FORMAT_SIZE];
  bool fits = rows->array.rank == info->shape.rank;
  for (uint32_t k = 1; k < info->shape.rank && fits; k++)
    fits = info->shape.dim[k].name != NULL || info->shape.dim[k].extent == rows->array.dim[k];
  if (fits) return CLI_OK;
  const int code = cli_failed("%s has rows of another shape than input '%s'", rows->path, info->name);
  cli_hint("the input is %s, and the file holds %s", format_shape(&info->shape, wanted),
           format_extents(rows->array.rank, rows->array.dim, got));
  return code;
}

/* Named dimensions that were not given are taken from the rows; an input's first one is the batch. */
static int train_infer_dims(training *t, const train_rows *rows) {
  berth_value_info info = BERTH_VALUE_INFO_INIT;
  berth_error err = {BERTH_OK, ""};
  const berth_value value = berth_graph_find(t->model.graph, rows->input);
  if (berth_graph_value(t->model.graph, value, &info, &err) != BERTH_OK) return cli_report(&err);
  if (info.shape.rank == 0) return cli_failed("input '%s' is one number and has no rows", info.name);
  int code = t->text == NULL ? train_check_rows(rows, &info) : CLI_OK;
  if (code != CLI_OK) return code;
  if (info.shape.dim[0].name == NULL && info.shape.dim[0].extent != t->batch)
    return cli_failed("input '%s' has %" PRId64 " row%s, and a batch %" PRId64 "; --batch %" PRId64 " fits it",
                      info.name, info.shape.dim[0].extent, cli_plural((uint64_t)info.shape.dim[0].extent), t->batch,
                      info.shape.dim[0].extent);
  if (info.shape.dim[0].name != NULL) code = dims_infer(&t->model.dims, info.shape.dim[0].name, t->batch, info.name);
  for (uint32_t k = 1; k < info.shape.rank && code == CLI_OK; k++)
    if (info.shape.dim[k].name != NULL)
      code = dims_infer(&t->model.dims, info.shape.dim[k].name, t->text != NULL ? t->window : rows->array.dim[k],
                        info.name);
  return code;
}

static bool train_is_batch(const training *t, const char *name) {
  for (uint32_t i = 0; i < berth_graph_n_inputs(t->model.graph); i++) {
    berth_value_info info = BERTH_VALUE_INFO_INIT;
    berth_graph_value(t->model.graph, berth_graph_input_at(t->model.graph, i), &info, NULL);
    if (info.shape.rank != 0 && info.shape.dim[0].name != NULL && strcmp(info.shape.dim[0].name, name) == 0)
      return true;
  }
  return false;
}

int train_bind(training *t, int64_t batch, berth_graph **out) {
  const dims *set = &t->model.dims;
  berth_error err = {BERTH_OK, ""};
  berth_dim *items = calloc(set->n + 1, sizeof *items);
  if (items == NULL) return cli_no_memory();
  for (size_t i = 0; i < set->n; i++) {
    items[i] = set->items[i];
    if (train_is_batch(t, items[i].name)) items[i].extent = batch;
  }
  const berth_status status = berth_graph_bind(train_base(t), items, set->n, out, &err);
  free(items);
  return status == BERTH_OK ? CLI_OK : cli_report(&err);
}

/* ---- The output for the loss ---- */

berth_value train_logits(const training *t, const berth_graph *graph) {
  const berth_value output = loss_output(graph);
  return output == BERTH_VALUE_NONE || !train_has_classes(t) ? output : loss_logits(graph, output);
}

/* ---- Losses ---- */

static uint64_t train_count(const berth_value_info *info) { return info->size / berth_type_size(info->type); }

static int train_check_label(const training *t, double label, size_t row, int64_t classes, const char *path) {
  if (label >= 0 && label < (double)classes && label == floor(label)) return CLI_OK;
  if (t->text != NULL)
    return cli_failed("character %g at byte %zu of %s is not one of the model's %" PRId64 " classes", label, row, path,
                      classes);
  return cli_failed("label %g in row %zu of %s is not a class: there are %" PRId64 ", and the first is 0", label, row,
                    path, classes);
}

static int train_check_classes(const training *t, const berth_value_info *y) {
  const train_rows *labels = &t->rows[t->n_rows != 0 ? t->n_rows - 1 : 0];
  const int64_t classes = y->shape.dim[y->shape.rank - 1].extent;
  int code = CLI_OK;
  if (t->text != NULL) {
    for (int64_t i = 0; i < t->n_samples && code == CLI_OK; i++)
      code = train_check_label(t, t->text[i], (size_t)i, classes, labels->path);
    return code;
  }
  const uint64_t each = element_count_of(labels->array.type, labels->row_size);
  const uint64_t wanted = train_count(y) / (uint64_t)(t->batch * classes);
  if (each != wanted)
    return cli_failed("%s has %" PRIu64 " label%s in %" PRId64 " row%s; there %s %" PRIu64 " per row", labels->path,
                      each * (uint64_t)t->n_samples, cli_plural(each * (uint64_t)t->n_samples), t->n_samples,
                      cli_plural((uint64_t)t->n_samples), wanted == 1 ? "is" : "are", wanted);
  for (size_t i = 0; i < each * (uint64_t)t->n_samples && code == CLI_OK; i++)
    code = train_check_label(t, element_at(labels->array.type, labels->array.data, i), i / each, classes, labels->path);
  return code;
}

static int train_check_values(const training *t, const berth_value_info *y) {
  const train_rows *labels = &t->rows[t->n_rows - 1];
  if (labels->array.type != y->type)
    return cli_failed("the output '%s' is %s, but %s holds %s", y->name, berth_type_name(y->type), labels->path,
                      berth_type_name(labels->array.type));
  const uint64_t each = element_count_of(labels->array.type, labels->row_size);
  if (each * (uint64_t)t->batch == train_count(y)) return CLI_OK;
  return cli_failed("%s has %" PRIu64 " number%s per row, and the output '%s' %" PRIu64, labels->path, each,
                    cli_plural(each), y->name, train_count(y) / (uint64_t)t->batch);
}

/* The last axis has the classes; labels have extent 1 there. */
static int train_check_output(const training *t, const berth_value_info *y) {
  char shape[FORMAT_SIZE];
  const bool fits = y->shape.rank >= 2 && y->shape.dim[y->shape.rank - 1].extent > 0 &&
                    train_count(y) % (uint64_t)(t->batch * y->shape.dim[y->shape.rank - 1].extent) == 0;
  if (!train_has_classes(t)) return train_check_values(t, y);
  if (fits) return train_check_classes(t, y);
  return cli_failed("cross_entropy needs an output [batch, ..., classes], and '%s' is %s", y->name,
                    format_shape(&y->shape, shape));
}

int train_add_loss(training *t, berth_value *loss) {
  berth_value_info y = BERTH_VALUE_INFO_INIT;
  berth_error err = {BERTH_OK, ""};
  berth_value given;
  int code = CLI_OK;
  for (uint32_t i = 0; i < (t->text != NULL ? 1 : t->n_rows - 1) && code == CLI_OK; i++)
    code = train_infer_dims(t, &t->rows[i]);
  if (code == CLI_OK) dims_default(&t->model.dims, t->model.graph);
  if (code == CLI_OK) code = train_bind(t, t->batch, &t->graph);
  if (code != CLI_OK) return code;
  const berth_value output = train_logits(t, t->graph);
  if (output == BERTH_VALUE_NONE) return cli_failed("the model has no output of a float type to take a loss of");
  if (berth_graph_value(t->graph, output, &y, &err) != BERTH_OK) return cli_report(&err);
  if ((code = train_check_output(t, &y)) != CLI_OK) return code;
  berth_shape shape = y.shape;
  if (train_has_classes(t)) shape.dim[shape.rank - 1].extent = 1;
  const berth_type type = t->text != NULL ? BERTH_I64 : t->rows[t->n_rows - 1].array.type;
  berth_status status = berth_graph_input(t->graph, "train.labels", type, shape, &given, &err);
  if (status == BERTH_OK)
    status = train_has_classes(t) ? loss_cross_entropy(t->graph, output, given, y.shape.rank, loss, &err)
                                  : loss_squares(t->graph, output, given, loss, &err);
  if (status == BERTH_OK) status = berth_graph_output(t->graph, "train.loss", *loss, &err);
  return status == BERTH_OK ? CLI_OK : cli_report(&err);
}

/* ---- Without a loss ---- */

int train_forward_session(training *t, int64_t batch, berth_session **out, uint32_t *logits) {
  berth_session_desc desc = BERTH_SESSION_DESC_INIT;
  berth_plan_desc plan = BERTH_PLAN_DESC_INIT;
  berth_error err = {BERTH_OK, ""};
  berth_graph *graph = NULL;
  const int code = train_bind(t, batch, &graph);
  if (code != CLI_OK) return code;
  plan.flags = model_plan_flags(&t->wanted->model);
  plan.gpu_profile = t->wanted->model.gpu_profile;
  plan.compute = model_compute(&t->wanted->model);
  plan.device = desc.device = t->wanted->model.device;
  desc.plan = &plan;
  *logits = berth_graph_n_outputs(graph);
  berth_status status = berth_graph_output(graph, "train.logits", train_logits(t, graph), &err);
  if (status == BERTH_OK) status = berth_session_create(graph, &desc, out, &err);
  berth_graph_destroy(graph);
  return status == BERTH_OK ? CLI_OK : cli_report(&err);
}

int train_copy_weights(training *t, berth_session *to) {
  const berth_graph *base = train_base(t);
  berth_error err = {BERTH_OK, ""};
  int code = CLI_OK;
  for (uint32_t i = 0; i < berth_graph_n_params(base) && code == CLI_OK; i++) {
    berth_value_info info = BERTH_VALUE_INFO_INIT, now = BERTH_VALUE_INFO_INIT;
    berth_graph_value(base, berth_graph_param_at(base, i), &info, NULL);
    berth_graph_value(t->graph, berth_graph_find(t->graph, info.name), &now, NULL);
    if (now.kind != BERTH_VALUE_STATE && info.data != NULL) continue; /* frozen: it is already there */
    void *data = malloc((size_t)info.size + 1);
    if (data == NULL) return cli_no_memory();
    code = train_read_param(t, info.name, data, (size_t)info.size);
    if (code == CLI_OK && berth_session_set_param(to, info.name, data, (size_t)info.size, &err) != BERTH_OK)
      code = cli_report(&err);
    free(data);
  }
  return code;
}
