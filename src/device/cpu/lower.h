/* Rewriting a bound graph for the fast kernels of the CPU, one file a step. lower.c is the order, and says why. */
#ifndef BERTH_DEVICE_CPU_LOWER_H
#define BERTH_DEVICE_CPU_LOWER_H

#include "device/cpu/cpu.h"
#include "graph/rewrite.h"
#include "ops/window.h"

/* lower_attention.c: attention that was written as products and a softmax. */
berth_status berth__lower_attention(berth_graph *graph, berth_error *err);
/* lower_quant.c: products of bytes. */
berth_status berth__lower_quant(berth_graph *graph, berth_error *err);
/* lower_layout.c: convolutions and what is around them with their channels last. */
berth_status berth__lower_layout(berth_graph *graph, berth_error *err);
/* lower_product.c: products with weights that are packed once. flags: of the plan. */
berth_status berth__lower_product(berth_graph *graph, uint32_t flags, berth_error *err);
/* lower_fuse.c: element-wise nodes into chains, and into the products and convolutions before them. */
berth_status berth__lower_fuse(berth_graph *graph, berth_error *err);
/* lower_beside.c: products of the same x as one. */
berth_status berth__lower_beside(berth_graph *graph, berth_error *err);

/* lower_conv.c: the windows of a conv or a conv_transpose with their pads written out, and as the attributes of the ops
 * with channels last (four of them). */
typedef struct berth__windows {
  uint32_t spatial;
  int64_t kernel[BERTH__WINDOW_AXES], strides[BERTH__WINDOW_AXES], dilations[BERTH__WINDOW_AXES];
  int64_t pads[2 * BERTH__WINDOW_AXES];
} berth__windows;
void berth__lower_windows(const berth_graph *graph, const berth__node *conv, berth__windows *w);
uint32_t berth__windows_attrs(const berth__windows *w, berth_attr *attrs);

/* lower_conv.c: a convolution whose x lies channels last already; norm: the batch_norm behind it that becomes part of
 * it, or NULL. Values of a prelude are made where they are needed. */
berth_status berth__lower_conv(berth__rewrite *r, const berth__node *conv, const berth__node *norm, berth_value x_last,
                               berth_value *out_last, berth_error *err);
/* lower_conv.c: the same over the parts of a concat of channels, each added to the sum of those before it: the whole
 * need not be there. */
berth_status berth__lower_conv_parts(berth__rewrite *r, const berth__node *conv, const berth__node *norm,
                                     const berth_value *x_last, uint32_t n_parts, berth_value *out_last,
                                     berth_error *err);
/* lower_conv.c: likewise a conv_transpose, where it can be. */
bool berth__lower_takes_transposed(const berth__node *conv);
berth_status berth__lower_conv_transpose(berth__rewrite *r, const berth__node *conv, const berth__node *norm,
                                         berth_value x_last, berth_value *out_last, berth_error *err);
/* lower_conv.c: a batch_norm as scale and shift [C]: two values of the prelude. bias: of what comes before it, or
 * BERTH_VALUE_NONE. */
berth_status berth__lower_norm(berth__rewrite *r, const berth__node *norm, berth_value bias, berth_value *scale,
                               berth_value *shift, berth_error *err);

/* Values that the prelude can make: params, constants, and what depends on them alone. One entry a value. */
berth_status berth__static_values(const berth_graph *graph, bool **out, berth_error *err);

#endif
