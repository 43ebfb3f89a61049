/* The library: llm.c's own source and functions that expose it. LLMC_SOURCE is its train_gpt2.c. */
#define TESTING
#include LLMC_SOURCE

#include "llmc.h"

typedef struct llmc_model {
  GPT2 gpt;
  int batch, length;
} llmc_model;

static float **llmc_tensor(ParameterTensors *p, int tensor) {
  float **const all[LLMC_TENSORS] = {&p->wte,      &p->wpe,      &p->ln1w, &p->ln1b, &p->qkvw, &p->qkvb,
                                     &p->attprojw, &p->attprojb, &p->ln2w, &p->ln2b, &p->fcw,  &p->fcb,
                                     &p->fcprojw,  &p->fcprojb,  &p->lnfw, &p->lnfb};
  return all[tensor];
}

static void *llmc_create(const llmc_shape *shape) {
  llmc_model *m = calloc(1, sizeof *m);
  if (m == NULL) return NULL;
  m->batch = shape->batch;
  m->length = shape->length;
  m->gpt.config.max_seq_len = shape->positions;
  m->gpt.config.vocab_size = shape->vocabulary;
  m->gpt.config.padded_vocab_size = (shape->vocabulary + 127) / 128 * 128;
  m->gpt.config.num_layers = shape->layers;
  m->gpt.config.num_heads = shape->heads;
  m->gpt.config.channels = shape->channels;
  fill_in_parameter_sizes(m->gpt.param_sizes, m->gpt.config);
  for (int i = 0; i < LLMC_TENSORS; i++) m->gpt.num_parameters += m->gpt.param_sizes[i];
  m->gpt.params_memory = malloc_and_point_parameters(&m->gpt.params, m->gpt.param_sizes);
  memset(m->gpt.params_memory, 0, m->gpt.num_parameters * sizeof(float));
  m->gpt.mean_loss = -1;
  return m;
}

static float *llmc_weights(void *model, int tensor, size_t *count) {
  llmc_model *m = model;
  *count = m->gpt.param_sizes[tensor];
  return *llmc_tensor(&m->gpt.params, tensor);
}

static const float *llmc_gradients(void *model, int tensor) {
  llmc_model *m = model;
  return *llmc_tensor(&m->gpt.grads, tensor);
}

static float llmc_step(void *model, const int *ids, const int *labels, float rate, int t) {
  llmc_model *m = model;
  gpt2_forward(&m->gpt, (int *)ids, (int *)labels, (size_t)m->batch, (size_t)m->length);
  gpt2_zero_grad(&m->gpt);
  gpt2_backward(&m->gpt);
  gpt2_update(&m->gpt, rate, 0.9f, 0.999f, 1e-8f, 0, t);
  return m->gpt.mean_loss;
}

/* Weights, gradients and two moments; activations and their gradients. */
static size_t llmc_bytes(void *model) {
  const llmc_model *m = model;
  return (4 * m->gpt.num_parameters + 2 * m->gpt.num_activations) * sizeof(float);
}

const llmc_library *llmc_open(void) {
  static const llmc_library library = {llmc_create, llmc_weights, llmc_gradients, llmc_step, llmc_bytes};
  return &library;
}
