/* llama.cpp's parameters for loading a model, in the layout of b10361; check its defaults before use. */
#ifndef BERTH_BENCH_LLAMA_SETTINGS_H
#define BERTH_BENCH_LLAMA_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

enum {
  LLAMA_REST = 512 /* space for later fields of a struct */
};

typedef struct llama_model_settings {
  void *devices, *overrides;
  int32_t n_gpu_layers, split_mode, load_mode, main_gpu; /* load_mode 1: mapped, 0: read */
  const float *tensor_split;
  void *progress, *progress_user, *keys;
  bool vocab_only, check_tensors, use_extra_bufts;
  char unknown[LLAMA_REST];
} llama_model_settings;

static inline bool llama_model_settings_fit(const llama_model_settings *defaults) {
  return defaults->load_mode == 1 && defaults->use_extra_bufts && !defaults->vocab_only;
}

#endif
