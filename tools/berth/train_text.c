/* A text as data: its bytes are characters, a row is a window of them, and each one's label is the next character. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "elements.h"
#include "train.h"

#define MOST_ROWS 1024
#define MOST_READ 65536 /* initial buffer size */

static int train_read_all(training *t, const char *path) {
  FILE *stream = fopen(path, "rb");
  size_t size = 0, room = 0;
  int code = CLI_OK;
  if (stream == NULL) return cli_failed("%s: %s", path, strerror(errno));
  for (bool goes_on = true; goes_on && code == CLI_OK;) { /* the length of a pipe is unknown */
    room = 2 * room + MOST_READ;
    unsigned char *grown = realloc(t->text, room);
    if (grown == NULL) code = cli_no_memory();
    if (grown == NULL) break;
    t->text = grown;
    size += fread(t->text + size, 1, room - size, stream);
    goes_on = size == room;
    if (ferror(stream)) code = cli_failed("%s: %s", path, strerror(errno));
  }
  fclose(stream);
  t->n_samples = (int64_t)size;
  return code;
}

/* Characters per row: the second extent of the input. */
static int train_find_window(training *t, const berth_value_info *info) {
  if (info->shape.rank != 2 || (info->type != BERTH_I64 && info->type != BERTH_I32 && info->type != BERTH_U8))
    return cli_failed("--text needs one input [batch, time] of i64, i32 or u8, and '%s' is none", info->name);
  const berth_dim dim = info->shape.dim[1];
  t->window = dim.extent;
  for (size_t i = 0; i < t->model.dims.n && dim.name != NULL; i++)
    if (strcmp(t->model.dims.items[i].name, dim.name) == 0) t->window = t->model.dims.items[i].extent;
  if (t->window >= 1) return CLI_OK;
  return cli_usage("--dim %s=N says how many characters a row has", dim.name);
}

int train_read_text(training *t, const char *path) {
  berth_value_info info = BERTH_VALUE_INFO_INIT;
  if (berth_graph_n_inputs(t->model.graph) != 1)
    return cli_failed("--text needs a model with one input, and this one has %u", berth_graph_n_inputs(t->model.graph));
  if (t->wanted->batch > MOST_ROWS) return cli_usage("--batch is at most %d with --text", MOST_ROWS);
  berth_graph_value(t->model.graph, berth_graph_input_at(t->model.graph, 0), &info, NULL);
  const int code = train_find_window(t, &info);
  if (code != CLI_OK) return code;
  t->rows[0].input = info.name;
  t->rows[0].path = path;
  t->rows[0].array.type = info.type;
  t->gathered = calloc((size_t)t->wanted->batch * (size_t)t->window, sizeof(int64_t));
  return t->gathered != NULL ? train_read_all(t, path) : cli_no_memory();
}

static void train_put(void *data, berth_type type, size_t index, unsigned char c) {
  if (type == BERTH_I64) ((int64_t *)data)[index] = c;
  if (type == BERTH_I32) ((int32_t *)data)[index] = c;
  if (type == BERTH_U8) ((uint8_t *)data)[index] = c;
}

/* Writes windows that begin at `starts` to the input or, shifted by one character, to the labels. */
static int train_write_shifted(training *t, berth_session *session, const char *input, berth_type type,
                               const uint64_t *starts, uint64_t shift) {
  const size_t count = (size_t)t->batch * (size_t)t->window;
  berth_error err = {BERTH_OK, ""};
  for (size_t i = 0; i < count; i++)
    train_put(t->gathered, type, i, t->text[starts[i / (size_t)t->window] + i % (size_t)t->window + shift]);
  if (berth_session_write(session, input, t->gathered, count * berth_type_size(type), &err) != BERTH_OK)
    return cli_report(&err);
  return CLI_OK;
}

int train_write_windows(training *t, berth_session *session, const uint64_t *starts, bool has_labels) {
  const int code = train_write_shifted(t, session, t->rows[0].input, t->rows[0].array.type, starts, 0);
  if (code != CLI_OK || !has_labels) return code;
  return train_write_shifted(t, session, "train.labels", BERTH_I64, starts, 1);
}

/* ---- Generating a sample ---- */

typedef struct train_writing {
  berth_session *session;
  uint32_t output;
  int64_t batch;
  uint64_t classes;
  float *logits; /* for every character of every row */
  size_t size;
  uint64_t random;
} train_writing;

/* Samples a class by its probability at a temperature below 1, which prefers likely ones. */
static unsigned char train_draw(train_writing *w, const float *logits) {
  double largest = -HUGE_VAL, sum = 0;
  const double temperature = 0.7;
  const uint64_t n = w->classes < 256 ? w->classes : 256;
  for (uint64_t i = 0; i < n; i++) largest = fmax(largest, (double)logits[i]);
  for (uint64_t i = 0; i < n; i++) sum += exp(((double)logits[i] - largest) / temperature);
  double left = (double)(element_random(&w->random) >> 11) * 0x1p-53 * sum;
  for (uint64_t i = 0; i < n; i++) {
    left -= exp(((double)logits[i] - largest) / temperature);
    if (left <= 0) return (unsigned char)i;
  }
  return ' ';
}

/* The next character after the end of a text, which is at the beginning of the first row. */
static int train_next(training *t, train_writing *w, const unsigned char *text, size_t length, unsigned char *next) {
  const size_t window = (size_t)t->window, count = (size_t)w->batch * window;
  const size_t used = length < window ? length : window;
  const berth_type type = t->rows[0].array.type;
  berth_error err = {BERTH_OK, ""};
  for (size_t i = 0; i < count; i++)
    train_put(t->gathered, type, i, i % window < used ? text[length - used + i % window] : ' ');
  if (berth_session_write(w->session, t->rows[0].input, t->gathered, count * berth_type_size(type), &err) != BERTH_OK ||
      berth_session_run(w->session, &err) != BERTH_OK ||
      berth_session_read_at(w->session, w->output, w->logits, w->size, &err) != BERTH_OK)
    return cli_report(&err);
  *next = train_draw(w, w->logits + (used - 1) * w->classes);
  return CLI_OK;
}

static int train_write_on(training *t, train_writing *w) {
  const char *prompt = t->wanted->prompt != NULL && *t->wanted->prompt != '\0' ? t->wanted->prompt : "\n";
  const size_t begin = strlen(prompt), most = begin + (size_t)t->wanted->sample;
  unsigned char *text = malloc(most + 1);
  int code = text != NULL ? CLI_OK : cli_no_memory();
  if (text != NULL) memcpy(text, prompt, begin);
  for (size_t n = begin; n < most && code == CLI_OK; n++) code = train_next(t, w, text, n, &text[n]);
  if (code == CLI_OK) {
    fwrite(text, 1, most, stdout); /* a model may generate any byte */
    printf("\n");
  }
  free(text);
  return code;
}

/* With a batch of one row, if the model supports it. */
int train_write_sample(training *t) {
  berth_value_info info = BERTH_VALUE_INFO_INIT;
  train_writing w = {.random = t->wanted->seed, .batch = t->batch};
  berth_graph_value(t->model.graph, berth_graph_input_at(t->model.graph, 0), &info, NULL);
  if (info.shape.dim[0].name != NULL) w.batch = 1;
  int code = train_forward_session(t, w.batch, &w.session, &w.output);
  if (code == CLI_OK) code = train_copy_weights(t, w.session);
  if (code == CLI_OK) {
    const berth_graph *graph = berth_plan_graph(berth_session_plan(w.session));
    berth_graph_value(graph, berth_graph_output_at(graph, w.output), &info, NULL);
    w.size = (size_t)info.size;
    w.classes = (uint64_t)info.shape.dim[info.shape.rank - 1].extent;
    w.logits = malloc(w.size + 1);
    if (info.type != BERTH_F32) code = cli_failed("--sample needs logits of f32");
    if (code == CLI_OK) code = w.logits != NULL ? train_write_on(t, &w) : cli_no_memory();
  }
  free(w.logits);
  berth_session_destroy(w.session);
  return code;
}
