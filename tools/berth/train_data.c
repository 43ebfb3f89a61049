/* The data of a training: arrays of rows from .npy files, a batch of which is taken for every step. Which rows these
 * are follows from the seed and the number of the step alone, so that a training that is resumed sees what it would
 * have seen. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "elements.h"
#include "train.h"

static int train_read_array(training *t, const char *name, const char *path) {
  berth_error err = {BERTH_OK, ""};
  if (t->n_rows == TRAIN_MOST_INPUTS) return cli_usage("more than %d arrays are given", TRAIN_MOST_INPUTS);
  train_rows *rows = &t->rows[t->n_rows];
  if (berth_npy_load(t->model.ctx, path, &rows->array, &err) != BERTH_OK) return cli_report(&err);
  t->n_rows++;
  rows->input = name;
  rows->path = path;
  if (rows->array.rank == 0 || rows->array.dim[0] == 0) return cli_failed("%s has no rows", path);
  if (t->n_rows > 1 && rows->array.dim[0] != t->n_samples)
    return cli_failed("%s has %" PRId64 " rows, and the array before it %" PRId64, path, rows->array.dim[0],
                      t->n_samples);
  t->n_samples = rows->array.dim[0];
  rows->row_size = (size_t)(rows->array.size / (uint64_t)t->n_samples);
  return CLI_OK;
}

/* The input that "NAME=FILE" names; the graph's own name for it, which lives as long as that. */
static int train_find_input(const training *t, const char *option, const char **name, const char **path) {
  size_t length;
  if (!args_split(option, &length, path)) return cli_usage("--input %s: expected NAME=FILE.npy", option);
  for (uint32_t i = 0; i < berth_graph_n_inputs(t->model.graph); i++) {
    berth_value_info info = BERTH_VALUE_INFO_INIT;
    berth_graph_value(t->model.graph, berth_graph_input_at(t->model.graph, i), &info, NULL);
    *name = info.name;
    if (strlen(info.name) == length && memcmp(info.name, option, length) == 0) return CLI_OK;
  }
  return cli_usage("--input %s: the model has no such input", option);
}

int train_read_rows(training *t) {
  const train_options *wanted = t->wanted;
  int code = CLI_OK;
  if (wanted->inputs.n != berth_graph_n_inputs(t->model.graph))
    return cli_usage("the model has %u inputs, and %zu are given with --input", berth_graph_n_inputs(t->model.graph),
                     wanted->inputs.n);
  for (size_t i = 0; i < wanted->inputs.n && code == CLI_OK; i++) {
    const char *name = NULL, *path = NULL;
    code = train_find_input(t, wanted->inputs.items[i], &name, &path);
    for (uint32_t k = 0; k < t->n_rows && code == CLI_OK; k++)
      if (t->rows[k].input == name) code = cli_usage("--input gives '%s' twice", name);
    if (code == CLI_OK) code = train_read_array(t, name, path);
  }
  if (code == CLI_OK) code = train_read_array(t, "train.labels", wanted->labels);
  if (code != CLI_OK) return code;
  t->batch = wanted->batch < (uint64_t)t->n_samples ? (int64_t)wanted->batch : t->n_samples;
  t->epoch = UINT64_MAX;
  t->order = calloc((size_t)t->n_samples, sizeof *t->order);
  size_t largest = 0;
  for (uint32_t i = 0; i < t->n_rows; i++) largest = t->rows[i].row_size > largest ? t->rows[i].row_size : largest;
  t->gathered = malloc(largest * (size_t)t->batch + 1);
  return t->order != NULL && t->gathered != NULL ? CLI_OK : cli_no_memory();
}

static void train_shuffle(training *t, uint64_t epoch) {
  uint64_t state = t->wanted->seed * 0x9e3779b97f4a7c15u + epoch;
  for (uint64_t i = 0; i < (uint64_t)t->n_samples; i++) t->order[i] = i;
  for (uint64_t i = (uint64_t)t->n_samples - 1; i > 0; i--) {
    const uint64_t k = element_random(&state) % (i + 1), swapped = t->order[i];
    t->order[i] = t->order[k];
    t->order[k] = swapped;
  }
  t->epoch = epoch;
}

/* Whole batches alone: what is left of an epoch waits for another order. */
int train_write_batch(training *t) {
  const uint64_t batches = (uint64_t)(t->n_samples / t->batch), epoch = t->step / batches, first = t->step % batches;
  berth_error err = {BERTH_OK, ""};
  if (t->epoch != epoch) train_shuffle(t, epoch);
  for (uint32_t i = 0; i < t->n_rows; i++) {
    const train_rows *rows = &t->rows[i];
    for (uint64_t k = 0; k < (uint64_t)t->batch; k++)
      memcpy((char *)t->gathered + k * rows->row_size,
             (const char *)rows->array.data + t->order[first * (uint64_t)t->batch + k] * rows->row_size,
             rows->row_size);
    if (berth_session_write(t->session, rows->input, t->gathered, rows->row_size * (size_t)t->batch, &err) != BERTH_OK)
      return cli_report(&err);
  }
  return CLI_OK;
}
