/* A model with its inputs, ready to run: shared by `run` and `bench`. */
#ifndef BERTH_TOOLS_RUNNER_H
#define BERTH_TOOLS_RUNNER_H

#include "inputs.h"
#include "model.h"

typedef struct runner_options {
  arg_list inputs;
  bool random_weights;
  uint64_t budget;
} runner_options;

#define RUNNER_OPTION_ROWS(type)                                                           \
  INPUT_OPTION_ROW(offsetof(type, runner.inputs)),                                         \
      {"budget",                                                                           \
       0,                                                                                  \
       ARG_BYTES,                                                                          \
       "BYTES",                                                                            \
       "largest arena to use, for example 64K or 2M; recomputes and splits where needed",  \
       offsetof(type, runner.budget),                                                      \
       1,                                                                                  \
       0},                                                                                 \
  {                                                                                        \
    "random-weights", 0, ARG_FLAG, NULL, "fill missing weights with pseudo-random values", \
        offsetof(type, runner.random_weights), 0, 0                                        \
  }
#define RUNNER_DETAILS                                                                                           \
  "Inputs that are not given get a fixed pseudo-random sequence, the same on every machine: splitmix64 seeded\n" \
  "with the FNV-1a hash of the input's name; floats in [-1, 1), integers in [0, 10), bool 0 or 1. Named\n"       \
  "dimensions follow from the given inputs' shapes where --dim does not set them; the rest become 1. An input\n" \
  "that shapes depend on (the target of a reshape, say) must be given; its values become part of the plan.\n"

typedef struct runner {
  model model;
  inputs inputs;
  berth_session *session;
  double compile_ms; /* of that session */
  bool random_weights;
  uint64_t budget;     /* of that session; 0: none */
  uint32_t plan_flags; /* requested by the options */
  const char *device;
  const char *gpu_profile; /* NULL: the device itself */
  berth_compute compute;
} runner;

/* Return exit codes, and print errors. Close either way. */
int runner_open(const model_options *options, const runner_options *more, runner *out);
void runner_close(runner *r);
/* Another session with the same model and inputs; the caller destroys it. */
int runner_session(runner *r, uint32_t session_flags, uint32_t plan_flags, berth_session **out);
int runner_write_inputs(runner *r, berth_session *session);
int runner_run(berth_session *session);
int runner_run_shown(berth_session *session); /* with a progress bar if it takes long */

#endif
