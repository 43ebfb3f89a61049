/* llm.c's GPT-2 on the CPU with an interface of four functions. A script builds bench/train/llmc.c as a library against
 * a checkout, and bench_gpt2 opens it. */
#ifndef BERTH_BENCH_TRAIN_LLMC_H
#define BERTH_BENCH_TRAIN_LLMC_H

#include <stddef.h>

/* llm.c's 16 tensors in its order; those of layers contain all layers. */
enum {
  LLMC_WTE,
  LLMC_WPE,
  LLMC_LN1W,
  LLMC_LN1B,
  LLMC_QKVW,
  LLMC_QKVB,
  LLMC_PROJW,
  LLMC_PROJB,
  LLMC_LN2W,
  LLMC_LN2B,
  LLMC_FCW,
  LLMC_FCB,
  LLMC_FCPROJW,
  LLMC_FCPROJB,
  LLMC_LNFW,
  LLMC_LNFB,
  LLMC_TENSORS
};

typedef struct llmc_shape {
  int batch, length, vocabulary, positions, layers, heads, channels;
} llmc_shape;

typedef struct llmc_library {
  void *(*create)(const llmc_shape *shape);
  float *(*weights)(void *model, int tensor, size_t *count); /* to be set before the first step */
  const float *(*gradients)(void *model, int tensor);        /* of the last step */
  /* One step of AdamW without weight decay; t counts from 1. Returns the loss. */
  float (*step)(void *model, const int *ids, const int *labels, float rate, int t);
  size_t (*bytes)(void *model); /* allocated bytes, by its own counts */
} llmc_library;

/* The library's only export. */
const llmc_library *llmc_open(void);

#endif
