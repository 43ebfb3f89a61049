/* A loss behind the first output of a model, for a batch of rows. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "elements.h"
#include "train.h"

/* A row in the file is one of the input: the same type, and the same extents where those are fixed. */
static int train_check_rows(const train_rows *rows, const berth_value_info *info) {
  if (rows->array.type != info->type)
    return cli_failed("input '%s' is %s, but %s holds %s", info->name, berth_type_name(info->type), rows->path,
                      berth_type_name(rows->array.type));
  bool fits = rows->array.rank == info->shape.rank;
  for (uint32_t k = 1; k < info->shape.rank && fits; k++)
    fits = info->shape.dim[k].name != NULL || info->shape.dim[k].extent == rows->array.dim[k];
  if (fits) return CLI_OK;
  return cli_failed("%s has rows of another shape than input '%s'", rows->path, info->name);
}

/* Named dimensions that nobody gave are the batch where they come first in an input. */
static int train_bind(training *t) {
  berth_error err = {BERTH_OK, ""};
  for (uint32_t i = 0; i + 1 < t->n_rows; i++) {
    berth_value_info info = BERTH_VALUE_INFO_INIT;
    const berth_value value = berth_graph_find(t->model.graph, t->rows[i].input);
    if (berth_graph_value(t->model.graph, value, &info, &err) != BERTH_OK) return cli_report(&err);
    if (info.shape.rank == 0) return cli_failed("input '%s' is one number and has no rows", info.name);
    int code = train_check_rows(&t->rows[i], &info);
    if (code != CLI_OK) return code;
    if (info.shape.dim[0].name == NULL) {
      if (info.shape.dim[0].extent != t->batch)
        return cli_failed("input '%s' has %" PRId64 " rows, and a batch %" PRId64 "; --batch says another number",
                          info.name, info.shape.dim[0].extent, t->batch);
      continue;
    }
    code = dims_infer(&t->model.dims, info.shape.dim[0].name, t->batch, info.name);
    for (uint32_t k = 1; k < info.shape.rank && code == CLI_OK; k++)
      if (info.shape.dim[k].name != NULL)
        code = dims_infer(&t->model.dims, info.shape.dim[k].name, t->rows[i].array.dim[k], info.name);
    if (code != CLI_OK) return code;
  }
  dims_default(&t->model.dims, t->model.graph);
  if (berth_graph_bind(t->model.graph, t->model.dims.items, t->model.dims.n, &t->graph, &err) != BERTH_OK)
    return cli_report(&err);
  return CLI_OK;
}

static berth_status train_add(training *t, const char *op, const berth_value *in, size_t n_in, const berth_attr *attrs,
                              size_t n_attrs, berth_value *out, berth_error *err) {
  return berth_graph_add(t->graph, op, in, n_in, attrs, n_attrs, out, 1, err);
}

static bool is_softmax_of_classes(const berth_node_info *node) {
  if (strcmp(node->op, "softmax") != 0) return false;
  for (uint32_t i = 0; i < node->n_attrs; i++)
    if (strcmp(node->attrs[i].name, "axis") == 0) return node->attrs[i].i == 1 || node->attrs[i].i == -1;
  return false;
}

/* The mean of -log p of each row's label. A softmax that ends the model is left out: its logarithm is exact where it
 * overflows. */
static berth_status train_cross_entropy(training *t, berth_value logits, berth_value labels, berth_value *loss,
                                        berth_error *err) {
  berth_value_info info = BERTH_VALUE_INFO_INIT;
  berth_node_info node = BERTH_NODE_INFO_INIT;
  const berth_attr wide = berth_attr_string("to", "i64"), axis = berth_attr_int("axis", 1);
  const berth_attr flat = berth_attr_int("keepdims", 0);
  berth_value value;
  berth_status status = berth_graph_value(t->graph, logits, &info, err);
  if (status == BERTH_OK && info.kind == BERTH_VALUE_NODE) {
    status = berth_graph_node(t->graph, info.node, &node, err);
    if (status == BERTH_OK && is_softmax_of_classes(&node)) logits = node.in[0];
  }
  if (status == BERTH_OK) status = train_add(t, "log_softmax", &logits, 1, &axis, 1, &value, err);
  if (status == BERTH_OK) status = train_add(t, "cast", &labels, 1, &wide, 1, &labels, err);
  const berth_value both[] = {status == BERTH_OK ? value : 0, labels};
  if (status == BERTH_OK) status = train_add(t, "gather_elements", both, 2, &axis, 1, &value, err);
  if (status == BERTH_OK) status = train_add(t, "reduce_mean", &value, 1, &flat, 1, &value, err);
  return status == BERTH_OK ? train_add(t, "neg", &value, 1, NULL, 0, loss, err) : status;
}

static berth_status train_squares(training *t, berth_value y, berth_value labels, berth_value *loss, berth_error *err) {
  const berth_attr flat = berth_attr_int("keepdims", 0);
  const berth_value both[] = {y, labels};
  berth_value value;
  berth_status status = train_add(t, "sub", both, 2, NULL, 0, &value, err);
  const berth_value twice[] = {status == BERTH_OK ? value : 0, status == BERTH_OK ? value : 0};
  if (status == BERTH_OK) status = train_add(t, "mul", twice, 2, NULL, 0, &value, err);
  return status == BERTH_OK ? train_add(t, "reduce_mean", &value, 1, &flat, 1, loss, err) : status;
}

/* Labels of classes are a column; those of squares have the shape of the output. */
static berth_shape train_label_shape(const training *t, bool is_classes, const berth_value_info *y) {
  const int64_t column[] = {t->batch, 1};
  return is_classes ? berth_shape_fixed(2, column) : y->shape;
}

static int train_check_classes(const train_rows *labels, const berth_value_info *y) {
  const int64_t classes = y->shape.dim[1].extent;
  const size_t n = element_count_of(labels->array.type, labels->array.size);
  if (n != (size_t)labels->array.dim[0])
    return cli_failed("%s has %zu labels in %" PRId64 " rows; there is one class a row", labels->path, n,
                      labels->array.dim[0]);
  for (size_t i = 0; i < n; i++) {
    const double label = element_at(labels->array.type, labels->array.data, i);
    if (!(label >= 0 && label < (double)classes && label == floor(label)))
      return cli_failed("label %g in row %zu of %s is no class: '%s' has %" PRId64 ", and the first is 0", label, i,
                        labels->path, y->name, classes);
  }
  return CLI_OK;
}

int train_add_loss(training *t, berth_value *loss) {
  const bool is_classes = strcmp(t->wanted->loss, "cross_entropy") == 0;
  const train_rows *labels = &t->rows[t->n_rows - 1];
  berth_value_info y = BERTH_VALUE_INFO_INIT;
  berth_error err = {BERTH_OK, ""};
  berth_value given;
  int code = train_bind(t);
  if (code != CLI_OK) return code;
  const berth_value output = berth_graph_output_at(t->graph, 0);
  if (berth_graph_value(t->graph, output, &y, &err) != BERTH_OK) return cli_report(&err);
  if (is_classes && (y.shape.rank != 2 || y.shape.dim[0].extent != t->batch))
    return cli_failed("cross_entropy needs an output [batch, classes], and '%s' is none", y.name);
  if (!is_classes && labels->array.type != y.type)
    return cli_failed("the output '%s' is %s, but %s holds %s", y.name, berth_type_name(y.type), labels->path,
                      berth_type_name(labels->array.type));
  if (is_classes && (code = train_check_classes(labels, &y)) != CLI_OK) return code;
  const berth_shape shape = train_label_shape(t, is_classes, &y);
  berth_status status = berth_graph_input(t->graph, "train.labels", labels->array.type, shape, &given, &err);
  if (status == BERTH_OK)
    status =
        is_classes ? train_cross_entropy(t, output, given, loss, &err) : train_squares(t, output, given, loss, &err);
  if (status == BERTH_OK) status = berth_graph_output(t->graph, "train.loss", *loss, &err);
  return status == BERTH_OK ? CLI_OK : cli_report(&err);
}

static float train_random_number(uint64_t *state) { /* from -1 to 1 */
  return (float)((double)(element_random(state) >> 11) * 0x1p-52 - 1);
}

/* So many elements go into each of a result. */
static double train_fan_in(const berth_value_info *info) {
  double n = 1;
  if (info->shape.rank == 2) return (double)info->shape.dim[0].extent;
  for (uint32_t i = 1; i < info->shape.rank; i++) n *= (double)info->shape.dim[i].extent;
  return n;
}

static int train_start_param(training *t, const berth_value_info *info, uint64_t *state) {
  const size_t count = (size_t)(info->size / sizeof(float));
  const double scale = sqrt(1 / fmax(train_fan_in(info), 1));
  berth_error err = {BERTH_OK, ""};
  if (info->type != BERTH_F32) return cli_failed("param '%s' has no weights; --weights has them", info->name);
  float *data = malloc(info->size == 0 ? 1 : (size_t)info->size);
  if (data == NULL) return cli_no_memory();
  for (size_t i = 0; i < count; i++) data[i] = (float)(scale * (double)train_random_number(state));
  const berth_status status = berth_session_state_write(t->session, info->name, data, (size_t)info->size, &err);
  free(data);
  return status == BERTH_OK ? CLI_OK : cli_report(&err);
}

int train_start_params(training *t) {
  uint64_t state = t->wanted->seed;
  int code = CLI_OK, n = 0;
  for (uint32_t i = 0; i < berth_graph_n_params(t->model.graph) && code == CLI_OK; i++) {
    berth_value_info info = BERTH_VALUE_INFO_INIT;
    (void)berth_graph_value(t->model.graph, berth_graph_param_at(t->model.graph, i), &info, NULL);
    if (info.data != NULL) continue;
    n++;
    if (info.shape.rank >= 2) code = train_start_param(t, &info, &state); /* others start as zeros */
  }
  if (n != 0 && code == CLI_OK)
    cli_note("%d params have no weights: they start at random, and as zeros where they have less than two axes", n);
  return code;
}
