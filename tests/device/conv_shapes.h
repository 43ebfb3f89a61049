/* Shared by the tests of the kernels of convolutions and pooling. */
#ifndef BERTH_TESTS_CONV_SHAPES_H
#define BERTH_TESTS_CONV_SHAPES_H

#include "fast.h"

#define F32(...)                                                                                          \
  {                                                                                                       \
    .type = BERTH_F32, .rank = sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), .dim = { __VA_ARGS__ } \
  }
#define COUNT(list) (sizeof(list) / sizeof *(list))

/* Two spatial axes; 0 in stride, dilation and group means 1. */
typedef struct shape {
  int64_t images, height, width, channels, outputs, kernel, stride, dilation, pad, group;
  bool has_bias;
  fast_layout layout; /* of x */
} shape;

typedef struct lists {
  int64_t kernel[2], strides[2], dilations[2], pads[4];
} lists;

static inline lists lists_of(const shape *s) {
  const int64_t stride = s->stride ? s->stride : 1, dilation = s->dilation ? s->dilation : 1;
  return (lists){.kernel = {s->kernel, s->kernel},
                 .strides = {stride, stride},
                 .dilations = {dilation, dilation},
                 .pads = {s->pad, s->pad, s->pad, s->pad}};
}

static inline berth_attr ints(const char *name, const int64_t *values, uint32_t count) {
  return (berth_attr){.name = name, .kind = BERTH_ATTR_INTS, .count = count, .ints = values};
}

/* Errors of a sum of k products of numbers up to 3. */
static inline double tolerance(int64_t k) { return 4e-6 * (double)k + 1e-5; }

/* Adds epilogues: a clamp, and a chain with a residual and a factor for each channel. attr: the first free one. */
void check_tails(fast_case c, uint32_t attr, const int64_t *out, const berth__cpu_isa *isa);

#endif
