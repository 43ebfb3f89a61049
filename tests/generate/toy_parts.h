/* What toys are made of: keys, tensors, and the file that they end up in. */
#ifndef BERTH_TESTS_TOY_PARTS_H
#define BERTH_TESTS_TOY_PARTS_H

#include <stddef.h>

#include "toy.h"

#define TOY_MOST_TENSORS 1024
#define TOY_MOST_KEYS 16384
#define TOY_EXPERTS 4

typedef struct toy_tensor {
  char name[64];
  uint32_t rank;
  int64_t dim[3]; /* the slowest first */
  berth_type type;
  uint32_t ggml_type;
  float scale, middle; /* elements lie within middle - scale and middle + scale */
} toy_tensor;

typedef struct toy {
  const char *arch;
  int64_t layers, head_size, hidden, kv_heads;
  int64_t rotated, value_size;    /* 0: the whole head */
  const int32_t *heads_of_layers; /* heads for keys; NULL: kv_heads in all */
  const char *last_norm;          /* NULL: "output_norm.weight" */
  float epsilon;                  /* of norms; 0: 1e-5 */
  bool has_tokens;
  uint8_t keys[TOY_MOST_KEYS];
  size_t keys_size;
  uint64_t n_keys, n_tensors;
  toy_tensor tensors[TOY_MOST_TENSORS];
  char prefix[16];
} toy;

/* Keys. A name that begins with a dot is below the architecture. */
void toy_key_text(toy *t, const char *name, const char *text);
void toy_key_whole(toy *t, const char *name, uint32_t value);
void toy_key_real(toy *t, const char *name, float value);
void toy_key_bool(toy *t, const char *name, bool value);
void toy_key_list(toy *t, const char *name, const int32_t *values, size_t n);
void toy_key_tokens(toy *t);
void toy_key_experts(toy *t);

/* Tensors, of the layer that was entered. The slowest extent comes first. */
void toy_enter(toy *t, int64_t layer);
toy_tensor *toy_add(toy *t, const char *name, uint32_t rank, int64_t a, int64_t b, int64_t c);
void toy_matrix(toy *t, const char *name, int64_t columns, int64_t inner);
void toy_vector(toy *t, const char *name, int64_t extent, float middle);
void toy_norm(toy *t, const char *name, int64_t extent);
void toy_both(toy *t, const char *name); /* a norm's weight and its bias */

/* What most have. */
void toy_begin(toy *t, int64_t layers, int64_t head_size);
void toy_attention(toy *t);
void toy_feed(toy *t);
void toy_experts(toy *t, berth_type type, uint32_t ggml_type);

void toy_save(const toy *t, const char *path);

typedef struct toy_model {
  const char *name;
  void (*make)(toy *t);
} toy_model;
/* toy_more.c, toy_recent.c: NULL past the end. */
const toy_model *toy_more(size_t index);
const toy_model *toy_recent(size_t index);

#endif
