/* Training a model: its data, its loss, its steps, and files that are whole at every moment. */
#ifndef BERTH_TOOLS_TRAIN_H
#define BERTH_TOOLS_TRAIN_H

#include "model.h"

typedef struct train_options {
  model_options model;
  arg_list inputs, scales, trained, frozen, lora_on;
  const char *labels, *text, *loss, *optimizer, *schedule, *save, *adapters, *checkpoint, *prompt;
  double rate, momentum, weight_decay, clip, hold_out, lora_alpha;
  uint64_t steps, batch, seed, every, warmup, accumulate, lora, sample, budget;
  bool json;
} train_options;

/* One array of rows, and the input that gets a batch of them. */
typedef struct train_rows {
  berth_array array;
  bool own_memory;   /* its data is from malloc */
  const char *input; /* its name */
  const char *path;  /* of the file */
  size_t row_size;   /* bytes */
} train_rows;

#define TRAIN_MOST_INPUTS 16

/* What was measured on the rows that are held out. */
typedef struct train_score {
  double loss, accuracy; /* accuracy NAN: there are no classes */
  uint64_t count;        /* rows, or characters; 0: nothing was measured */
} train_score;

typedef struct training {
  const train_options *wanted;
  model model;
  bool is_onnx;
  berth_graph *adapted; /* with low-rank adapters; NULL: there are none */
  berth_graph *graph;   /* bound, with the loss and the optimiser */
  berth_session *session;
  berth_session *forward;             /* without them, for measuring; NULL: not yet */
  uint32_t logits;                    /* which output of it the loss is taken of */
  train_rows rows[TRAIN_MOST_INPUTS]; /* the last one has the labels */
  uint32_t n_rows;
  unsigned char *text; /* instead of arrays: characters, and how many of them are one row */
  int64_t window;
  int64_t n_samples, n_train, batch; /* rows, or characters; those that are trained on; rows of a run */
  uint64_t *samples;                 /* the rows, in an order that the seed says; those from n_train on are held out */
  uint64_t *order;                   /* of the samples in this epoch */
  uint64_t epoch;                    /* whose order it is; UINT64_MAX: none yet */
  void *gathered;                    /* a batch */
  uint64_t step;                     /* steps that were done */
  double loss;                       /* of the last one */
  train_score score;
} training;

static inline const berth_graph *train_base(const training *t) {
  return t->adapted != NULL ? t->adapted : t->model.graph;
}
static inline bool train_has_classes(const training *t) { return t->wanted->loss[0] == 'c'; }

/* Exit codes, with an error printed. */
int train_read_rows(training *t);                 /* train_data.c: the arrays, or the text */
int train_split(training *t);                     /* into rows to train on and rows that are held out */
int train_write_batch(training *t, uint64_t run); /* the rows of this run into the inputs */
/* So many of the rows that are held out, from `first` on, into a session; the rest of the batch is the first of
 * them. */
int train_write_held(training *t, berth_session *session, uint64_t first, uint64_t count);
double train_label(const training *t, uint64_t held, uint64_t index); /* of a row that is held out */
void train_free_rows(training *t);

int train_read_text(training *t, const char *path); /* train_text.c */
int train_write_windows(training *t, berth_session *session, const uint64_t *starts, bool has_labels);
int train_write_sample(training *t); /* what the model writes, to stdout */

int train_bind(training *t, int64_t batch, berth_graph **out); /* train_loss.c: the model for so many rows */
int train_add_loss(training *t, berth_value *loss);            /* the graph bound, with a loss */
/* The output that the loss is taken of: before a softmax that ends the model, for classes. */
berth_value train_logits(const training *t, const berth_graph *graph);
int train_forward_session(training *t, int64_t batch, berth_session **out, uint32_t *logits);
int train_copy_weights(training *t, berth_session *to); /* into a session without the optimiser */

int train_adapt(training *t);                                                /* train_params.c: low-rank adapters */
int train_choose(training *t, berth_value **params, size_t *n);              /* what is trained; NULL: all */
int train_start_params(training *t);                                         /* those without weights, at random */
int train_read_param(training *t, const char *name, void *dst, size_t size); /* as it is now */
/* The value whose name is that of another with more behind it, such as "w.lora_a"; BERTH_VALUE_NONE: there is none. */
berth_value train_find_beside(const berth_graph *graph, const char *name, const char *suffix);

int train_measure(training *t);       /* train_score.c: on the rows that are held out, into t->score */
double train_rate(const training *t); /* train_rate.c: of the step that comes */

int train_save_weights(training *t, const char *path);  /* train_files.c: safetensors, or the ONNX model */
int train_save_adapters(training *t, const char *path); /* the adapters alone */
int train_save_checkpoint(training *t, const char *path);
int train_load_checkpoint(training *t, const char *path); /* nothing where there is no such file */

#endif
