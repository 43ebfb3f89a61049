/* A model run on given inputs, as the program runs it: inputs that shapes cannot do without are made constants, and the
 * named dimensions follow from the shapes of the others. BERTH_TEST_DEVICE names the device; without it, it is the CPU.
 */
#ifndef BERTH_TESTS_RUN_MODEL_H
#define BERTH_TESTS_RUN_MODEL_H

#include <stdbool.h>

#include "berth/berth.h"

#define RUN_MAX_DIMS 64

typedef struct run_input {
  const char *name;
  berth_array array;
  bool is_fixed; /* it is a constant of the graph now */
} run_input;

typedef struct run_dims {
  berth_dim item[RUN_MAX_DIMS]; /* the names are the graph's */
  size_t n;
} run_dims;

/* Changes the graph where inputs are fixed. The session is the caller's, also where a later step failed. */
berth_status run_model(berth_graph *graph, run_input *inputs, size_t n, run_dims *dims, berth_session **session,
                       berth_error *err);
/* Writes the inputs and runs again. */
berth_status run_again(berth_session *session, const run_input *inputs, size_t n, berth_error *err);

#endif
