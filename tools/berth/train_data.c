/* Training data: arrays of rows from .npy and safetensors files, of which every run takes a batch. The choice of rows
 * depends only on the seed and the run's number, so a resumed training sees the same data as an uninterrupted one. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "elements.h"
#include "format.h"
#include "train.h"

/* ---- Files ---- */

/* One tensor of a file: the named one, or the one with the input's name, or the only one. */
static int train_pick(const berth_weights *weights, const char *path, const char *tensor, const char *input,
                      berth_weight_info *info) {
  berth_error err = {BERTH_OK, ""};
  uint32_t index = berth_weights_find(weights, tensor != NULL ? tensor : input);
  if (index == UINT32_MAX && tensor == NULL && berth_weights_count(weights) == 1) index = 0;
  if (index == UINT32_MAX && tensor != NULL) return cli_failed("%s has no tensor '%s'", path, tensor);
  if (index == UINT32_MAX)
    return cli_failed("%s has %u tensors, and none is called '%s'; say which: %s:NAME", path,
                      berth_weights_count(weights), input, path);
  return berth_weights_at(weights, index, info, &err) == BERTH_OK ? CLI_OK : cli_report(&err);
}

static int train_copy_tensor(const berth_weight_info *info, train_rows *rows) {
  rows->array = (berth_array){.type = info->type, .rank = info->rank, .size = info->size};
  memcpy(rows->array.dim, info->dim, sizeof rows->array.dim);
  rows->array.data = malloc((size_t)info->size + 1);
  rows->own_memory = true;
  if (rows->array.data == NULL) return cli_no_memory();
  memcpy(rows->array.data, info->data, (size_t)info->size);
  return CLI_OK;
}

static int train_load_tensor(training *t, const char *path, const char *name, train_rows *rows) {
  berth_error err = {BERTH_OK, ""};
  berth_weights *weights = NULL;
  const char *colon = strstr(path, ".safetensors:");
  char *file = colon != NULL ? strndup(path, (size_t)(colon - path) + strlen(".safetensors")) : strdup(path);
  const char *tensor = colon != NULL ? colon + strlen(".safetensors:") : NULL;
  berth_weight_info info = BERTH_WEIGHT_INFO_INIT;
  if (file == NULL) return cli_no_memory();
  int code = berth_weights_open(t->model.ctx, file, &weights, &err) == BERTH_OK ? CLI_OK : cli_report(&err);
  if (code == CLI_OK) code = train_pick(weights, file, tensor, name, &info);
  if (code == CLI_OK) code = train_copy_tensor(&info, rows);
  berth_weights_destroy(weights);
  free(file);
  return code;
}

static int train_load(training *t, const char *path, const char *name, train_rows *rows) {
  berth_error err = {BERTH_OK, ""};
  const char *end = strstr(path, ".safetensors");
  if (end != NULL && (end[12] == '\0' || end[12] == ':')) return train_load_tensor(t, path, name, rows);
  return berth_npy_load(t->model.ctx, path, &rows->array, &err) == BERTH_OK ? CLI_OK : cli_report(&err);
}

static void train_free_array(training *t, train_rows *rows) {
  if (rows->own_memory)
    free(rows->array.data);
  else
    berth_array_free(t->model.ctx, &rows->array);
  rows->array.data = NULL;
}

/* ---- Other types ---- */

/* The factor given to an input by --scale; 0: none. */
static int train_find_scale(const training *t, const char *name, double *factor) {
  *factor = 0;
  for (size_t i = 0; i < t->wanted->scales.n; i++) {
    size_t length;
    const char *value = NULL;
    char *end = NULL;
    if (!args_split(t->wanted->scales.items[i], &length, &value))
      return cli_usage("--scale %s: expected NAME=FACTOR", t->wanted->scales.items[i]);
    if (strlen(name) != length || memcmp(name, t->wanted->scales.items[i], length) != 0) continue;
    *factor = strtod(value, &end);
    if (end == value || *end != '\0' || !(*factor > 0 && *factor <= 1e30))
      return cli_usage("--scale %s: the factor must be a number above 0", t->wanted->scales.items[i]);
  }
  return CLI_OK;
}

/* Converts numbers of any type to the input's type, times a factor. */
static int train_convert(training *t, train_rows *rows, berth_type to, double factor) {
  const size_t count = element_count_of(rows->array.type, rows->array.size);
  const size_t size = (size_t)berth_storage_bytes(berth_type_storage(to), count);
  berth_error err = {BERTH_OK, ""};
  float *wide = malloc(count * sizeof *wide + 1);
  void *data = malloc(size + 1);
  berth_status status = wide != NULL && data != NULL ? BERTH_OK : BERTH_NOMEM;
  for (size_t i = 0; i < count && status == BERTH_OK; i++)
    wide[i] = (float)(element_at(rows->array.type, rows->array.data, i) * factor);
  if (status == BERTH_OK) status = berth_from_f32(to, wide, count, data, &err);
  free(wide);
  if (status != BERTH_OK) {
    free(data);
    return data == NULL || err.status == BERTH_OK ? cli_no_memory() : cli_report(&err);
  }
  berth_array array = rows->array;
  train_free_array(t, rows);
  array.data = data;
  array.type = to;
  array.size = size;
  rows->array = array;
  rows->own_memory = true;
  return CLI_OK;
}

/* .npy has no bf16, so f32 is accepted for it; other types are converted if --scale is given. */
static int train_fit_type(training *t, train_rows *rows, berth_type wanted) {
  double factor = 0;
  const int code = train_find_scale(t, rows->input, &factor);
  if (code != CLI_OK) return code;
  if (factor != 0 && !element_is_float(wanted))
    return cli_failed("--scale %s=...: inputs of type %s cannot be scaled", rows->input, berth_type_name(wanted));
  if (factor != 0) return train_convert(t, rows, wanted, factor);
  if (rows->array.type == BERTH_F32 && (wanted == BERTH_BF16 || wanted == BERTH_F16))
    return train_convert(t, rows, wanted, 1);
  if (rows->array.type == wanted) return CLI_OK;
  const int failed = cli_failed("input '%s' is %s, but %s holds %s", rows->input, berth_type_name(wanted), rows->path,
                                berth_type_name(rows->array.type));
  if (element_is_float(wanted))
    cli_hint("--scale %s=1 converts it, and --scale %s=0.0039216 makes 0 to 1 of bytes", rows->input, rows->input);
  return failed;
}

/* ---- Rows ---- */

static int train_read_array(training *t, const char *name, const char *path, berth_type wanted) {
  if (t->n_rows == TRAIN_MOST_INPUTS) return cli_usage("more than %d arrays are given", TRAIN_MOST_INPUTS);
  train_rows *rows = &t->rows[t->n_rows];
  rows->input = name;
  rows->path = path;
  int code = train_load(t, path, wanted == BERTH_TYPE_NONE ? "labels" : name, rows);
  if (code != CLI_OK) return code;
  t->n_rows++;
  if (rows->array.rank == 0 || rows->array.dim[0] == 0) return cli_failed("%s has no rows", path);
  if (t->n_rows > 1 && rows->array.dim[0] != t->n_samples)
    return cli_failed("%s has %" PRId64 " row%s, and the array before it %" PRId64, path, rows->array.dim[0],
                      cli_plural((uint64_t)rows->array.dim[0]), t->n_samples);
  t->n_samples = rows->array.dim[0];
  if (wanted != BERTH_TYPE_NONE) code = train_fit_type(t, rows, wanted);
  rows->row_size = (size_t)(rows->array.size / (uint64_t)t->n_samples);
  return code;
}

/* The input of "NAME=FILE"; the name is owned by the graph. */
static int train_find_input(const training *t, const char *option, berth_value_info *info, const char **path) {
  size_t length;
  if (!args_split(option, &length, path)) return cli_usage("--input %s: expected NAME=FILE", option);
  for (uint32_t i = 0; i < berth_graph_n_inputs(t->model.graph); i++) {
    berth_graph_value(t->model.graph, berth_graph_input_at(t->model.graph, i), info, NULL);
    if (strlen(info->name) == length && memcmp(info->name, option, length) == 0) return CLI_OK;
  }
  const int code = cli_usage("--input %s: the model has no such input", option);
  for (uint32_t i = 0; i < berth_graph_n_inputs(t->model.graph); i++) {
    char shape[FORMAT_SIZE];
    berth_graph_value(t->model.graph, berth_graph_input_at(t->model.graph, i), info, NULL);
    cli_hint("it has '%s', %s%s", info->name, berth_type_name(info->type), format_shape(&info->shape, shape));
  }
  return code;
}

static int train_read_arrays(training *t) {
  const train_options *wanted = t->wanted;
  int code = CLI_OK;
  if (wanted->inputs.n != berth_graph_n_inputs(t->model.graph))
    return cli_usage("the model has %u input%s, and %zu %s given with --input", berth_graph_n_inputs(t->model.graph),
                     cli_plural(berth_graph_n_inputs(t->model.graph)), wanted->inputs.n,
                     wanted->inputs.n == 1 ? "is" : "are");
  for (size_t i = 0; i < wanted->inputs.n && code == CLI_OK; i++) {
    berth_value_info info = BERTH_VALUE_INFO_INIT;
    const char *path = NULL;
    code = train_find_input(t, wanted->inputs.items[i], &info, &path);
    for (uint32_t k = 0; k < t->n_rows && code == CLI_OK; k++)
      if (t->rows[k].input == info.name) code = cli_usage("--input gives '%s' twice", info.name);
    if (code == CLI_OK) code = train_read_array(t, info.name, path, info.type);
  }
  return code == CLI_OK ? train_read_array(t, "train.labels", wanted->labels, BERTH_TYPE_NONE) : code;
}

static void train_shuffle(uint64_t *items, uint64_t n, uint64_t state) {
  for (uint64_t i = n - 1; i > 0 && n != 0; i--) {
    const uint64_t k = element_random(&state) % (i + 1), swapped = items[i];
    items[i] = items[k];
    items[k] = swapped;
  }
}

int train_read_rows(training *t) {
  size_t largest = 0;
  const int code = t->wanted->text != NULL ? train_read_text(t, t->wanted->text) : train_read_arrays(t);
  if (code != CLI_OK) return code;
  t->n_train = t->n_samples - (int64_t)((double)t->n_samples * t->wanted->hold_out / 100);
  if (t->text != NULL) { /* the held-out part is the end of the text */
    t->batch = (int64_t)t->wanted->batch;
    return t->n_train > t->window
               ? CLI_OK
               : cli_failed("%s is shorter than one row of %" PRId64 " characters", t->wanted->text, t->window + 1);
  }
  if (t->n_train < 1) return cli_usage("--hold-out leaves no rows to train on");
  t->batch = t->wanted->batch < (uint64_t)t->n_train ? (int64_t)t->wanted->batch : t->n_train;
  t->epoch = UINT64_MAX;
  t->samples = calloc((size_t)t->n_samples, sizeof *t->samples);
  t->order = calloc((size_t)t->n_samples, sizeof *t->order);
  for (uint32_t i = 0; i < t->n_rows; i++) largest = t->rows[i].row_size > largest ? t->rows[i].row_size : largest;
  t->gathered = malloc(largest * (size_t)t->batch + 1);
  if (t->samples == NULL || t->order == NULL || t->gathered == NULL) return cli_no_memory();
  for (uint64_t i = 0; i < (uint64_t)t->n_samples; i++) t->samples[i] = i;
  if (t->n_train < t->n_samples) train_shuffle(t->samples, (uint64_t)t->n_samples, t->wanted->seed);
  return CLI_OK;
}

void train_free_rows(training *t) {
  for (uint32_t i = 0; i < t->n_rows; i++) train_free_array(t, &t->rows[i]);
  free(t->text);
  free(t->samples);
  free(t->order);
  free(t->gathered);
}

/* ---- Batches ---- */

/* Writes rows to a session: the `count` rows listed in `picked`, then repeats the first one. */
static int train_gather(training *t, berth_session *session, const uint64_t *picked, uint64_t count, uint32_t n_rows) {
  berth_error err = {BERTH_OK, ""};
  for (uint32_t i = 0; i < n_rows; i++) {
    const train_rows *rows = &t->rows[i];
    for (uint64_t k = 0; k < (uint64_t)t->batch; k++)
      memcpy((char *)t->gathered + k * rows->row_size,
             (const char *)rows->array.data + picked[k < count ? k : 0] * rows->row_size, rows->row_size);
    if (berth_session_write(session, rows->input, t->gathered, rows->row_size * (size_t)t->batch, &err) != BERTH_OK)
      return cli_report(&err);
  }
  return CLI_OK;
}

static int train_random_windows(training *t, uint64_t run) {
  uint64_t starts[1024], state = (t->wanted->seed + 1) * 0x9e3779b97f4a7c15u ^ (run + 1) * 0xd1b54a32d192ed03u;
  for (int64_t i = 0; i < t->batch; i++) starts[i] = element_random(&state) % (uint64_t)(t->n_train - t->window);
  return train_write_windows(t, t->session, starts, true);
}

/* Only whole batches: the rest of an epoch is left for another order. */
int train_write_batch(training *t, uint64_t run) {
  if (t->text != NULL) return train_random_windows(t, run);
  const uint64_t batches = (uint64_t)(t->n_train / t->batch), epoch = run / batches, first = run % batches;
  if (t->epoch != epoch) {
    memcpy(t->order, t->samples, (size_t)t->n_train * sizeof *t->order);
    train_shuffle(t->order, (uint64_t)t->n_train, t->wanted->seed * 0x9e3779b97f4a7c15u + epoch);
    t->epoch = epoch;
  }
  return train_gather(t, t->session, t->order + first * (uint64_t)t->batch, (uint64_t)t->batch, t->n_rows);
}

/* Rows of arrays, or consecutive windows of a text. */
int train_write_held(training *t, berth_session *session, uint64_t first, uint64_t count) {
  uint64_t starts[1024];
  if (t->text == NULL) return train_gather(t, session, t->samples + t->n_train + first, count, t->n_rows - 1);
  for (uint64_t i = 0; i < (uint64_t)t->batch; i++)
    starts[i] = (uint64_t)t->n_train + (first + (i < count ? i : 0)) * (uint64_t)t->window;
  return train_write_windows(t, session, starts, false);
}

double train_label(const training *t, uint64_t held, uint64_t index) {
  if (t->text != NULL) return (double)t->text[(uint64_t)t->n_train + held * (uint64_t)t->window + index + 1];
  const train_rows *labels = &t->rows[t->n_rows - 1];
  const uint64_t each = element_count_of(labels->array.type, labels->row_size);
  return element_at(labels->array.type, labels->array.data,
                    (size_t)(t->samples[(uint64_t)t->n_train + held] * each + index));
}
