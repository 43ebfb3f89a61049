/* The patterns that quantized_match.c finds and quantized.c rewrites. */
#ifndef BERTH_REWRITE_QUANTIZED_H
#define BERTH_REWRITE_QUANTIZED_H

#include "graph/rewrite.h"

/* An int8 value with its scale and zero point; BERTH_VALUE_NONE if it has none. */
typedef struct berth__quantized {
  berth_value bytes, scale, zero;
} berth__quantized;

/* An int8 convolution or product, with what follows it. */
typedef struct berth__quant_product {
  bool is_conv, is_weight_turned; /* turned: [N, K] */
  uint32_t anchor;                /* the conv or the matmul */
  berth__quantized x, weight;
  bool is_raw;       /* the result is the i32 sums: nothing known follows */
  berth_value scale; /* of the sums, if it is not the product of the two scales; BERTH_VALUE_NONE: it is */
  berth_value bias, out;
  bool is_bias_counted; /* it was i32, in units of the sums */
  int64_t columns;
  int64_t code[4]; /* the epilogue: at most one step */
  double numbers[2];
  uint32_t n_steps, n_numbers;
  double out_scale;
  berth_value out_unit; /* the value that out_scale is taken from */
  int64_t out_zero;
} berth__quant_product;

/* quantize(dequantize(a) + dequantize(b)), with all numbers known. */
typedef struct berth__quant_sum {
  berth_value a, b, out;
  double a_scale, b_scale, out_scale;
  int64_t a_zero, b_zero, out_zero;
} berth__quant_sum;

/* A mean of dequantize(x) over some axes, with all numbers known. */
typedef struct berth__quant_mean {
  berth_value x, out;
  const berth_attr *axes;
  int64_t count; /* elements per mean */
  double scale;
  int64_t zero;
} berth__quant_mean;

/* quantize(dequantize(x)) with the same numbers, which is x; or quantize(max_pool(dequantize(x))), which is the
 * max_pool of the bytes: dequantizing keeps their order. */
typedef struct berth__quant_same {
  berth_value x, out;
  uint32_t pool; /* BERTH__NO_NODE: none */
} berth__quant_same;

/* The scale and the zero point that cover all elements of x, as imported from ONNX's DynamicQuantizeLinear. */
typedef struct berth__quant_range {
  berth_value x, scale, zero;
  uint32_t zero_node; /* makes the zero point */
} berth__quant_range;

typedef struct berth__quant_view { /* queries on a graph */
  bool takes_sums;                 /* the device has int8 products with i32 results */
  const berth_graph *graph;
  const berth__uses *uses;
  const bool *is_static;
} berth__quant_view;

/* Each examines one node; the product sets the node whose result the new one makes. */
bool berth__quant_match_product(const berth__quant_view *view, uint32_t node, berth__quant_product *out,
                                uint32_t *sink);
bool berth__quant_match_sum(const berth__quant_view *view, uint32_t node, berth__quant_sum *out);
bool berth__quant_match_same(const berth__quant_view *view, uint32_t node, berth__quant_same *out);
bool berth__quant_match_mean(const berth__quant_view *view, uint32_t node, berth__quant_mean *out);
bool berth__quant_match_range(const berth__quant_view *view, uint32_t node, berth__quant_range *out);

#endif
