/* Convolutions over channels-last values, as channels_last.c and quantized.c make them. */
#ifndef BERTH_REWRITE_CONVOLUTION_H
#define BERTH_REWRITE_CONVOLUTION_H

#include "ops/window.h"
#include "rewrite/rewrite.h"

/* The windows of a conv or a conv_transpose with their pads written out, and as the attributes of the ops with channels
 * last (four of them). */
typedef struct berth__windows {
  uint32_t spatial;
  int64_t kernel[BERTH__WINDOW_AXES], strides[BERTH__WINDOW_AXES], dilations[BERTH__WINDOW_AXES];
  int64_t pads[2 * BERTH__WINDOW_AXES];
} berth__windows;
void berth__windows_of(const berth_graph *graph, const berth__node *conv, berth__windows *w);
/* Whether they are the same for all extents that x can have, as far as these are known as bounds. */
bool berth__windows_are_known(const berth_graph *graph, const berth__node *conv);
uint32_t berth__windows_attrs(const berth__windows *w, berth_attr *attrs);

/* A convolution whose x lies channels last already; norm: the batch_norm after it that becomes part of it, or NULL.
 * Values of a prelude are made where they are needed. is_static: the weight is known before a run. */
berth_status berth__rewrite_conv(berth__rewrite *r, const berth__rewrite_target *target, const berth__node *conv,
                                 const berth__node *norm, berth_value x_last, bool is_static, berth_value *out_last,
                                 berth_error *err);
/* The same over the parts of a concat of channels, each added to the sum of those before it: the whole need not be
 * there. */
berth_status berth__rewrite_conv_parts(berth__rewrite *r, const berth__rewrite_target *target, const berth__node *conv,
                                       const berth__node *norm, const berth_value *x_last, uint32_t n_parts,
                                       berth_value *out_last, berth_error *err);
/* Likewise a conv_transpose, where it can be. */
bool berth__rewrite_takes_transposed(const berth__node *conv);
berth_status berth__rewrite_conv_transpose(berth__rewrite *r, const berth__rewrite_target *target,
                                           const berth__node *conv, const berth__node *norm, berth_value x_last,
                                           berth_value *out_last, berth_error *err);
/* A conv_transpose in which every channel has a kernel of its own, for kernels whose vectors run over channels: a
 * depthwise convolution of x, with zeros between its elements, by the kernels turned around. */
bool berth__rewrite_takes_spread(const berth__rewrite *r, const berth__rewrite_target *target, const berth__node *conv);
berth_status berth__rewrite_conv_spread(berth__rewrite *r, const berth__rewrite_target *target, const berth__node *conv,
                                        const berth__node *norm, berth_value x_last, berth_value *out_last,
                                        berth_error *err);
/* A batch_norm as scale and shift [C]: two values of the prelude. bias: of what comes before it, or
 * BERTH_VALUE_NONE. */
berth_status berth__rewrite_norm(berth__rewrite *r, const berth__node *norm, berth_value bias, berth_value *scale,
                                 berth_value *shift, berth_error *err);

#endif
