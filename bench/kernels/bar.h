/* oneDNN's kernel for the same work, as a yardstick. bar_dnnl.c is compiled if the build enables it (BERTH_DNNL),
 * otherwise bar_none.c, which has none. */
#ifndef BERTH_BENCH_KERNELS_BAR_H
#define BERTH_BENCH_KERNELS_BAR_H

#include <stdbool.h>
#include <stdint.h>

typedef enum bar_kind {
  BAR_NONE,
  BAR_MATMUL,
  BAR_CONV
} bar_kind;

typedef struct bar_work {
  bar_kind kind;
  bool is_bytes; /* u8 times i8 into f32; otherwise all is f32 */
  bool has_bias;
  int64_t batch, m, k, n;                                               /* for a matmul; batch 0: the weight has none */
  int64_t height, width, channels, outputs, kernel, stride, pad, group; /* for a convolution */
} bar_work;

typedef struct bar bar;

/* Its name and version; NULL: not available. */
const char *bar_name(void);
/* Limits it to one thread and this instruction set. */
void bar_limit(const char *isa);
/* NULL: not available for this work. */
bar *bar_create(const bar_work *work);
void bar_run(const bar *b);
void bar_destroy(bar *b);

#endif
