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

/* Exit codes, with an error printed. Close either way, before the model. */
int inputs_read(model *m, const arg_list *options, inputs *out);        /* also infers named dimensions */
int inputs_fill(const model *m, const berth_graph *bound, inputs *set); /* all that were not given */
void inputs_close(const model *m, inputs *set);

#endif
