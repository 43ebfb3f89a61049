/* CUDA as a driver of the GPU runtime: a module for each kernel of a recipe, and graphs that launch them, made once for
 * a block. */
#ifndef BERTH_DEVICE_CUDA_CODE_H
#define BERTH_DEVICE_CUDA_CODE_H

#include "device/cuda/cuda.h"

typedef struct berth__cuda_kernel {
  berth__cu_module module;
  berth__cu_function function;
  bool awaits; /* its code waits for the kernels before it, if it begins early */
} berth__cuda_kernel;

struct berth__gpu_code {
  berth__engine *engine;
  const berth__recipe *recipe;
  berth__cuda_kernel *kernels; /* one per kernel of the recipe */
  berth__kernel_code *images;  /* the same: compiled code, until its module is loaded */
};

struct berth__gpu_binding {
  const berth__gpu_code *code;
  berth__engine *engine;
  berth__block *block;
  size_t n_parts;
  berth__cu_exec *graphs;  /* two per part: plain, and with an event after every step, for observers */
  berth__cu_event *events; /* as many as the longest part needs */
  size_t n_events;
};

/* ---- pipeline.c ---- */

berth_status berth__cuda_code_create(berth__engine *engine, const berth__recipe *recipe, berth__gpu_code **out,
                                     berth_error *err);
berth_status berth__cuda_make_pipeline(berth__gpu_code *code, size_t dispatch, berth_error *err);
void berth__cuda_code_destroy(berth__gpu_code *code);

#endif
