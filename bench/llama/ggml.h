/* ggml's products, from its shared libraries: those of llama.cpp, opened by name. */
#ifndef BERTH_BENCH_LLAMA_GGML_H
#define BERTH_BENCH_LLAMA_GGML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct ggml_library ggml_library;
/* `library`: libggml.so; the backends are in its folder. NULL, with a line on stderr: it cannot be used. */
ggml_library *ggml_open(const char *library, int threads);

typedef struct ggml_product ggml_product;
/* x [rows, depth] with a weight [columns, depth], whose blocks are given. The weight lies as llama.cpp has it: repacked
 * where the library does that. NULL: the library cannot. */
ggml_product *ggml_product_make(ggml_library *g, const char *type, int64_t rows, int64_t columns, int64_t depth,
                                const void *weight, const float *x);
bool ggml_product_run(ggml_product *p);
void ggml_product_read(const ggml_product *p, float *out);
bool ggml_product_is_repacked(const ggml_product *p);
void ggml_product_free(ggml_product *p);

#endif
