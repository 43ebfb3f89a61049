/* Training a model: its data, its loss, its steps, and files that are whole at every moment. */
#ifndef BERTH_TOOLS_TRAIN_H
#define BERTH_TOOLS_TRAIN_H

#include "model.h"

typedef struct train_options {
  model_options model;
  arg_list inputs;
  const char *labels, *loss, *optimizer, *save, *checkpoint;
  double rate, momentum, weight_decay, clip;
  uint64_t steps, batch, seed, every;
  bool json;
} train_options;

/* One array of rows, and the input that gets a batch of them. */
typedef struct train_rows {
  berth_array array;
  const char *input; /* its name */
  const char *path;  /* of the file */
  size_t row_size;   /* bytes */
} train_rows;

#define TRAIN_MOST_INPUTS 16

typedef struct training {
  const train_options *wanted;
  model model;
  berth_graph *graph; /* bound, with the loss and the optimiser */
  berth_session *session;
  train_rows rows[TRAIN_MOST_INPUTS]; /* the last one has the labels */
  uint32_t n_rows;
  int64_t n_samples, batch;
  uint64_t *order; /* of the samples in this epoch */
  uint64_t epoch;  /* whose order it is; UINT64_MAX: none yet */
  void *gathered;  /* a batch */
  uint64_t step;   /* steps that were done */
  double loss;
} training;

/* Exit codes, with an error printed. */
int train_read_rows(training *t);                      /* train_data.c */
int train_write_batch(training *t);                    /* the rows of this step into the inputs */
int train_add_loss(training *t, berth_value *loss);    /* train_loss.c: the graph bound, with a loss */
int train_start_params(training *t);                   /* those without weights, at random */
int train_save_weights(training *t, const char *path); /* train_files.c: safetensors */
int train_save_checkpoint(training *t, const char *path);
int train_load_checkpoint(training *t, const char *path); /* nothing where there is no such file */

#endif
