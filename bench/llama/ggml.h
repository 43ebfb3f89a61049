/* ggml's products, from the shared libraries of llama.cpp, opened by name. */
#ifndef BERTH_BENCH_LLAMA_GGML_H
#define BERTH_BENCH_LLAMA_GGML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct ggml_library ggml_library;
/* `library`: libggml.so, with the backends in the same folder. NULL, with a line on stderr: it cannot be used. */
ggml_library *ggml_open(const char *library, int threads);

typedef struct ggml_product ggml_product;
/* x [rows, depth] with a weight [columns, depth], whose blocks are given. The weight has llama.cpp's layout: repacked
 * if the library does that. NULL: not supported by the library. */
ggml_product *ggml_product_make(ggml_library *g, const char *type, int64_t rows, int64_t columns, int64_t depth,
                                const void *weight, const float *x);
bool ggml_product_run(ggml_product *p);
void ggml_product_read(const ggml_product *p, float *out);
bool ggml_product_is_repacked(const ggml_product *p);
void ggml_product_free(ggml_product *p);

#endif
