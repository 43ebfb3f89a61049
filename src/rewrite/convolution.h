/* Convolutions on channels-last values, for channels_last.c and quantized.c. */
#ifndef BERTH_REWRITE_CONVOLUTION_H
#define BERTH_REWRITE_CONVOLUTION_H

#include "ops/window.h"
#include "rewrite/rewrite.h"

/* The windows of a conv or a conv_transpose with explicit pads, and the attributes for the ops with channels last (four
 * of them). */
typedef struct berth__windows {
  uint32_t spatial;
  int64_t kernel[BERTH__WINDOW_AXES], strides[BERTH__WINDOW_AXES], dilations[BERTH__WINDOW_AXES];
  int64_t pads[2 * BERTH__WINDOW_AXES];
} berth__windows;
void berth__windows_of(const berth_graph *graph, const berth__node *conv, berth__windows *w);
/* Whether they are the same for all possible extents of x, as far as bounds are known. */
bool berth__windows_are_known(const berth_graph *graph, const berth__node *conv);
uint32_t berth__windows_attrs(const berth__windows *w, berth_attr *attrs);

/* A convolution whose x is channels last already; norm: the batch_norm after it to be folded in, or NULL. Nodes of the
 * prelude are added as needed. is_static: the weight is known before a run. */
berth_status berth__rewrite_conv(berth__rewrite *r, const berth__rewrite_target *target, const berth__node *conv,
                                 const berth__node *norm, berth_value x_last, bool is_static, berth_value *out_last,
                                 berth_error *err);
/* The same over the parts of a concat of channels, each added to the sum of the previous ones: the concat itself is not
 * needed. */
berth_status berth__rewrite_conv_parts(berth__rewrite *r, const berth__rewrite_target *target, const berth__node *conv,
                                       const berth__node *norm, const berth_value *x_last, uint32_t n_parts,
                                       berth_value *out_last, berth_error *err);
/* The same for a conv_transpose, if possible. */
bool berth__rewrite_takes_transposed(const berth__node *conv);
berth_status berth__rewrite_conv_transpose(berth__rewrite *r, const berth__rewrite_target *target,
                                           const berth__node *conv, const berth__node *norm, berth_value x_last,
                                           bool is_static, berth_value *out_last, berth_error *err);
/* A conv_transpose with strides of 1 and a static weight as the convolution that it is: by reversed kernels, over more
 * padding. */
bool berth__rewrite_takes_around(const berth__rewrite *r, const berth__rewrite_target *target, const berth__node *conv);
berth_status berth__rewrite_conv_around(berth__rewrite *r, const berth__rewrite_target *target, const berth__node *conv,
                                        const berth__node *norm, berth_value x_last, berth_value *out_last,
                                        berth_error *err);
/* A conv_transpose in which every channel has its own kernel, for kernels whose vectors run over channels; or, with
 * strides of 1 or holes between the taps, a depthwise convolution of x, with zeros between its elements, with reversed
 * kernels. */
bool berth__rewrite_takes_spread(const berth__rewrite *r, const berth__rewrite_target *target, const berth__node *conv);
berth_status berth__rewrite_conv_spread(berth__rewrite *r, const berth__rewrite_target *target, const berth__node *conv,
                                        const berth__node *norm, berth_value x_last, berth_value *out_last,
                                        berth_error *err);
/* A batch_norm as scale and shift [C]: two values of the prelude. bias: of the node before it, or BERTH_VALUE_NONE. */
berth_status berth__rewrite_norm(berth__rewrite *r, const berth__node *norm, berth_value bias, berth_value *scale,
                                 berth_value *shift, berth_error *err);

#endif
