#include "ops/bytes_last.h"

berth_status berth__bytes_convolve(const berth_op_call *call, berth__bytes_sum sum, berth_error *err) {
  const int64_t outputs = call->out[0].dim[call->out[0].rank - 1];
  berth__last last;
  berth__bytes b;
  berth__last_read(call, &last);
  BERTH__TRY(berth__bytes_read(call, &b, err));
  for (int64_t item = call->begin; item < call->end; item++) {
    const berth__last_pixel pixel = berth__last_pixel_of(&last, item);
    for (int64_t output = 0; output < outputs; output++)
      berth__bytes_store(&b, item * outputs + output, output, sum(&b, &last, &pixel, output));
  }
  return BERTH_OK;
}
