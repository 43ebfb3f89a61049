/* The quality of a model on held-out rows: its loss, and its accuracy. In f64, from the model's outputs. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "elements.h"
#include "train.h"

typedef struct train_measuring {
  berth_type type;
  void *data; /* the logits of a batch */
  size_t size;
  uint64_t each, classes; /* elements per row, and how many of them are the classes of one label; 0: no classes */
  double loss, right;
  uint64_t count;
} train_measuring;

static void train_measure_classes(const training *t, train_measuring *m, uint64_t row, uint64_t held) {
  for (uint64_t i = 0; i < m->each / m->classes; i++) {
    const size_t at = (size_t)(row * m->each + i * m->classes);
    const size_t label = (size_t)train_label(t, held, i);
    double largest = -HUGE_VAL, sum = 0;
    size_t best = 0;
    for (size_t c = 0; c < m->classes; c++) {
      const double x = element_at(m->type, m->data, at + c);
      if (x > largest) best = c;
      largest = fmax(largest, x);
    }
    for (size_t c = 0; c < m->classes; c++) sum += exp(element_at(m->type, m->data, at + c) - largest);
    m->loss += log(sum) + largest - element_at(m->type, m->data, at + label);
    m->right += best == label;
    m->count++;
  }
}

static void train_measure_values(const training *t, train_measuring *m, uint64_t row, uint64_t held) {
  for (uint64_t i = 0; i < m->each; i++) {
    const double error = element_at(m->type, m->data, (size_t)(row * m->each + i)) - train_label(t, held, i);
    m->loss += error * error;
    m->count++;
  }
}

static int train_measure_batch(training *t, train_measuring *m, uint64_t first, uint64_t count) {
  berth_error err = {BERTH_OK, ""};
  const int code = train_write_held(t, t->forward, first, count);
  if (code != CLI_OK) return code;
  if (berth_session_run(t->forward, &err) != BERTH_OK ||
      berth_session_read_at(t->forward, t->logits, m->data, m->size, &err) != BERTH_OK)
    return cli_report(&err);
  for (uint64_t i = 0; i < count; i++)
    (train_has_classes(t) ? train_measure_classes : train_measure_values)(t, m, i, first + i);
  return CLI_OK;
}

static int train_measure_all(training *t, uint64_t n) {
  const berth_graph *graph = berth_plan_graph(berth_session_plan(t->forward));
  berth_value_info info = BERTH_VALUE_INFO_INIT;
  berth_graph_value(graph, berth_graph_output_at(graph, t->logits), &info, NULL);
  train_measuring m = {.type = info.type, .data = malloc((size_t)info.size + 1), .size = (size_t)info.size};
  int code = m.data != NULL ? train_copy_weights(t, t->forward) : cli_no_memory();
  m.each = element_count_of(info.type, info.size) / (uint64_t)t->batch;
  if (train_has_classes(t)) m.classes = (uint64_t)info.shape.dim[info.shape.rank - 1].extent;
  for (uint64_t i = 0; i < n && code == CLI_OK; i += (uint64_t)t->batch)
    code = train_measure_batch(t, &m, i, n - i < (uint64_t)t->batch ? n - i : (uint64_t)t->batch);
  free(m.data);
  if (code != CLI_OK) return code;
  t->score = (train_score){.loss = m.loss / (double)m.count,
                           .accuracy = train_has_classes(t) ? m.right / (double)m.count : (double)NAN,
                           .count = m.count};
  return CLI_OK;
}

int train_measure(training *t) {
  const int64_t held = t->n_samples - t->n_train;
  const int64_t n = t->text != NULL ? (held - 1) / t->window : held;
  if (n < 1) return CLI_OK;
  const int code = t->forward != NULL ? CLI_OK : train_forward_session(t, t->batch, &t->forward, &t->logits);
  return code == CLI_OK ? train_measure_all(t, (uint64_t)n) : code;
}
