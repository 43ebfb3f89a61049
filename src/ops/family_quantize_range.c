/* quantize_range: the scale and the u8 zero point that cover all elements of x and 0 with 256 steps, like ONNX's
 * DynamicQuantizeLinear. An x of only zeros, or without elements, has scale 1. One item. */
#include <math.h>

#include "ops/registry.h"

static berth_status quantize_range_infer(berth__infer *infer, berth_error *err) {
  BERTH__TRY(berth__want_type(infer, 0, BERTH_F32, err));
  infer->out_type[0] = BERTH_F32;
  infer->out_type[1] = BERTH_U8;
  infer->out_shape[0] = infer->out_shape[1] = (berth__shape){.rank = 0};
  return BERTH_OK;
}

static berth_status quantize_range_kernel(const berth_op_call *call, berth_error *err) {
  const float *x = call->in[0].data;
  float low = 0, high = 0;
  (void)err;
  for (int64_t i = 0; i < berth__count(&call->in[0]); i++) {
    if (x[i] < low || isnan(x[i])) low = x[i];
    if (x[i] > high || isnan(x[i])) high = x[i];
  }
  const float range = high - low, scale = range == 0 ? 1 : range / 255;
  berth__store_f64(&call->out[0], 0, (double)scale);
  berth__store_f64(&call->out[1], 0, rint((double)(-low / scale)));
  return BERTH_OK;
}

const berth__family berth__family_quantize_range = {.infer = quantize_range_infer, .kernel = quantize_range_kernel};
