#ifndef BERTH_IMPORT_ONNX_MOVING_SLICE_H
#define BERTH_IMPORT_ONNX_MOVING_SLICE_H

#include "import/onnx/convert.h"

/* Converts a Slice whose bounds are operands that move together along one axis; *done tells whether it was one. */
berth_status berth__onnx_moving_slice(berth__onnx_call *call, bool *done, berth_error *err);

#endif
