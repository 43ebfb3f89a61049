/* The model of a verb: a file, or the built-in digits. */
#ifndef BERTH_TOOLS_MODEL_H
#define BERTH_TOOLS_MODEL_H

#include <stddef.h>

#include "args.h"
#include "cli.h"
#include "dims.h"

typedef struct model_options {
  const char *path; /* NULL: the built-in model */
  const char *weights;
  const char *device;
  const char *gpu_profile; /* NULL: the device's own */
  const char *compute;     /* allowed compute type of products; NULL: f32 */
  const char *kv;          /* storage of keys and values of a GGUF model; NULL: f16 */
  const char *fallback;    /* device for nodes without kernels on the device; NULL: they are an error */
  uint64_t threads;
  uint64_t memory_limit; /* 0: the machine's memory */
  arg_list dims;
  bool bf16, f16_weights;
} model_options;

/* Rows of a verb's option table for options of every verb with a model; `type` has a model_options named model. */
#define MODEL_OPTION_ROWS(type)                                                                                       \
  {"dim", 0, ARG_LIST, "NAME=N", "bind a named dimension; may be repeated", offsetof(type, model.dims), 0, 0},        \
      {"weights", 0, ARG_TEXT, "FILE", "safetensors file with the model's weights", offsetof(type, model.weights),    \
       0,         0},                                                                                                 \
      {"bf16",                                                                                                        \
       0,                                                                                                             \
       ARG_FLAG,                                                                                                      \
       NULL,                                                                                                          \
       "keep weights of matrix products as bf16: half the bytes, less accurate",                                      \
       offsetof(type, model.bf16),                                                                                    \
       0,                                                                                                             \
       0},                                                                                                            \
      {"f16-weights",                                                                                                 \
       0,                                                                                                             \
       ARG_FLAG,                                                                                                      \
       NULL,                                                                                                          \
       "on GPUs, keep weights of matrix products as f16: half the bytes, less accurate",                              \
       offsetof(type, model.f16_weights),                                                                             \
       0,                                                                                                             \
       0},                                                                                                            \
      {"compute",                                                                                                     \
       0,                                                                                                             \
       ARG_TEXT,                                                                                                      \
       "K",                                                                                                           \
       "on GPUs with matrix units, multiply as f32, tf32x3, tf32, bf16 or f16: faster, less accurate (f32)",          \
       offsetof(type, model.compute),                                                                                 \
       0,                                                                                                             \
       0},                                                                                                            \
      {"fallback",                                                                                                    \
       0,                                                                                                             \
       ARG_TEXT,                                                                                                      \
       "cpu",                                                                                                         \
       "run nodes that the device has no kernels for on the CPU; without it they are an error",                       \
       offsetof(type, model.fallback),                                                                                \
       0,                                                                                                             \
       0},                                                                                                            \
      {"gpu-profile",                                                                                                 \
       0,                                                                                                             \
       ARG_TEXT,                                                                                                      \
       "P",                                                                                                           \
       "plan for a kind of GPU: generic, nvidia, hopper, cooperative, turing, cpu or minimal (that of the device)",   \
       offsetof(type, model.gpu_profile),                                                                             \
       0,                                                                                                             \
       0},                                                                                                            \
      {"memory-limit",                                                                                                \
       0,                                                                                                             \
       ARG_BYTES,                                                                                                     \
       "N",                                                                                                           \
       "refuse an arena of more than N bytes of host memory (memory of the machine or its control group)",            \
       offsetof(type, model.memory_limit),                                                                            \
       1,                                                                                                             \
       0},                                                                                                            \
  {                                                                                                                   \
    "device", 0, ARG_TEXT, "D", "device to run on, as listed by `berth devices` (cpu)", offsetof(type, model.device), \
        0, 0                                                                                                          \
  }
#define MODEL_THREADS_ROW(type) \
  { "threads", 0, ARG_COUNT, "N", "number of threads; 0: one per core (0)", offsetof(type, model.threads), 0, 1024 }

typedef struct model {
  berth_context *ctx;
  cli_allocations allocations; /* by ctx */
  berth_graph *graph;
  bool built_in;
  double load_ms;
  dims dims;
} model;

/* Return exit codes, and print errors. Close either way. The dims come from --dim. */
int model_open(const model_options *options, model *out);
void model_close(model *m);
/* Loads the file again with another cache (of a GGUF model), replacing the graph. */
int model_reload(const model_options *options, const char *kv, model *m);
uint32_t model_plan_flags(const model_options *options);
berth_compute model_compute(const model_options *options); /* the options for a plan */
const char *model_device(const model_options *options);    /* the device's name, with the default filled in */

#endif
