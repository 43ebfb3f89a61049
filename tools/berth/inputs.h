/* The input arrays of a model: from .npy files, the sample digits, or the pseudo-random sequence. */
#ifndef BERTH_TOOLS_INPUTS_H
#define BERTH_TOOLS_INPUTS_H

#include "model.h"

typedef struct input {
  berth_array array; /* data is NULL if there is none */
  bool given;        /* from a file */
  bool own_memory;   /* from malloc, not from the context */
} input;

typedef struct inputs {
  input *items; /* indexed like the graph's inputs */
  uint32_t n;
} inputs;

#define INPUT_OPTION_ROW(field) \
  { "input", 0, ARG_LIST, "NAME=FILE.npy", "values of an input; may be repeated", field, 0, 0 }

/* Return exit codes, and print errors. Close either way, before the model. */
int inputs_read(model *m, const arg_list *options, inputs *out); /* also infers named dimensions */
/* Given inputs that shapes require become constants of the graph; so do others that shapes depend on, if there are no
 * upper bounds to plan with, or the device (NULL: the default one) needs all extents. */
int inputs_fix(model *m, inputs *set, const char *device);
/* Explains why there is no plan; if an input that shapes depend on is missing, says that it must be given. */
int inputs_explain(const berth_graph *graph, const berth_error *err);
int inputs_fill(const model *m, const berth_graph *bound, inputs *set); /* all inputs that were not given */
void inputs_close(const model *m, inputs *set);

#endif
