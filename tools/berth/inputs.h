/* The arrays that go into a model: from .npy files, from the sample digits, or from the pseudo-random sequence. */
#ifndef BERTH_TOOLS_INPUTS_H
#define BERTH_TOOLS_INPUTS_H

#include "model.h"

typedef struct input {
  berth_array array; /* data NULL while there is none */
  bool given;        /* came from a file */
  bool own_memory;   /* from malloc, not from the context */
} input;

typedef struct inputs {
  input *items; /* by the graph's input index */
  uint32_t n;
} inputs;

#define INPUT_OPTION_ROW(field) \
  { "input", 0, ARG_LIST, "NAME=FILE.npy", "values of an input; may be repeated", field, 0, 0 }

/* Exit codes, with an error printed. Close either way, before the model. */
int inputs_read(model *m, const arg_list *options, inputs *out); /* also infers named dimensions */
/* Given ones that shapes cannot do without become constants of the graph; and others that shapes depend on, where there
 * are no upper bounds to plan with, or where the device (NULL: the default one) wants every extent known. */
int inputs_fix(model *m, inputs *set, const char *device);
/* Why there is no plan; where an input that shapes depend on was not given, that it must be. */
int inputs_explain(const berth_graph *graph, const berth_error *err);
int inputs_fill(const model *m, const berth_graph *bound, inputs *set); /* all that were not given */
void inputs_close(const model *m, inputs *set);

#endif
