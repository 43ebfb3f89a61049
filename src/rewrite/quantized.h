/* What quantized.c rewrites, as quantized_match.c finds it. */
#ifndef BERTH_REWRITE_QUANTIZED_H
#define BERTH_REWRITE_QUANTIZED_H

#include "graph/rewrite.h"

/* Bytes with what turns them into numbers; a scale and a zero point that are not there are BERTH_VALUE_NONE. */
typedef struct berth__quantized {
  berth_value bytes, scale, zero;
} berth__quantized;

/* A convolution or a int8 product, with what is done to its result. */
typedef struct berth__quant_product {
  bool is_conv, is_weight_turned; /* turned: [N, K] */
  uint32_t anchor;                /* the conv or the matmul */
  berth__quantized x, weight;
  bool is_raw;       /* the result is the sums, i32: nothing that is known comes after them */
  berth_value scale; /* of the sums, where that is no product of the two scales; BERTH_VALUE_NONE: it is */
  berth_value bias, out;
  bool is_bias_counted; /* it was i32, in steps of the sums */
  int64_t columns;
  int64_t code[4]; /* the epilogue: a step at most */
  double numbers[2];
  uint32_t n_steps, n_numbers;
  double out_scale;
  berth_value out_unit; /* the value that out_scale comes from */
  int64_t out_zero;
} berth__quant_product;

/* quantize(dequantize(a) + dequantize(b)), all with known numbers. */
typedef struct berth__quant_sum {
  berth_value a, b, out;
  double a_scale, b_scale, out_scale;
  int64_t a_zero, b_zero, out_zero;
} berth__quant_sum;

/* A mean of dequantize(x) over some axes, with known numbers. */
typedef struct berth__quant_mean {
  berth_value x, out;
  const berth_attr *axes;
  int64_t count; /* elements of one mean */
  double scale;
  int64_t zero;
} berth__quant_mean;

/* The scale and the zero point that cover all elements of x, as ONNX's DynamicQuantizeLinear is imported. */
typedef struct berth__quant_range {
  berth_value x, scale, zero;
  uint32_t zero_node; /* that makes zero */
} berth__quant_range;

typedef struct berth__quant_view { /* of a graph, for finding */
  bool takes_sums;                 /* the device has products of bytes whose result is i32 */
  const berth_graph *graph;
  const berth__uses *uses;
  const bool *is_static;
} berth__quant_view;

/* Each looks at one node; the product sets the node whose result becomes that of the new one. */
bool berth__quant_match_product(const berth__quant_view *view, uint32_t node, berth__quant_product *out,
                                uint32_t *sink);
bool berth__quant_match_sum(const berth__quant_view *view, uint32_t node, berth__quant_sum *out);
bool berth__quant_match_mean(const berth__quant_view *view, uint32_t node, berth__quant_mean *out);
bool berth__quant_match_range(const berth__quant_view *view, uint32_t node, berth__quant_range *out);

#endif
