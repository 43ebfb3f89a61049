/* A slice whose bounds are known only during a run, but whose length is known: x[i : i + 2] with a loop counter i, for
 * example. Its elements are gathered, so that its shape does not depend on data. */
#include "import/onnx/moving_slice.h"

#define MAX_STEPS 16    /* from a bound back to what it is computed from */
#define MAX_LENGTH 4096 /* of the list of indices */

/* A single number as another one plus a constant. */
typedef struct sum {
  berth_value value;
  int64_t constant;
} sum;

static bool shows_its_operand(const berth__node *node) {
  switch (node->op->code) {
    case BERTH__OP_identity:
    case BERTH__OP_reshape:
    case BERTH__OP_squeeze:
    case BERTH__OP_unsqueeze: return true;
    default: return false;
  }
}

static bool constant_of(const berth__onnx_call *call, berth_value value, int64_t *out) {
  uint32_t count;
  return berth__onnx_constant_ints(call, value, out, 1, &count) && count == 1 && *out > -MAX_LENGTH &&
         *out < MAX_LENGTH;
}

static sum onnx_moving_slice_take_apart(const berth__onnx_call *call, berth_value value) {
  sum s = {.value = value};
  for (int steps = 0; steps < MAX_STEPS && call->graph->values[s.value].kind == BERTH_VALUE_NODE; steps++) {
    const berth__node *node = &call->graph->nodes[call->graph->values[s.value].node];
    int64_t constant;
    if (shows_its_operand(node)) {
      s.value = node->in[0];
    } else if ((node->op->code == BERTH__OP_add || node->op->code == BERTH__OP_sub) &&
               constant_of(call, node->in[1], &constant)) {
      s.value = node->in[0];
      s.constant += node->op->code == BERTH__OP_add ? constant : -constant;
    } else if (node->op->code == BERTH__OP_add && constant_of(call, node->in[0], &constant)) {
      s.value = node->in[1];
      s.constant += constant;
    } else {
      break;
    }
  }
  return s;
}

static bool is_one_number(const berth__onnx_call *call, berth_value value) {
  int64_t count;
  return berth__onnx_value_type(call, value) == BERTH_I64 &&
         berth__shape_count(berth__onnx_shape(call, value), &count) && count == 1;
}

/* 0: not known. */
static int64_t onnx_moving_slice_length_of(const berth__onnx_call *call, berth_value starts, berth_value ends) {
  int64_t ignored;
  uint32_t count;
  if (!is_one_number(call, starts) || !is_one_number(call, ends)) return 0;
  if (berth__onnx_constant_ints(call, starts, &ignored, 1, &count)) return 0;
  sum from = onnx_moving_slice_take_apart(call, starts), to = onnx_moving_slice_take_apart(call, ends);
  int64_t length = to.constant - from.constant;
  return from.value == to.value && length > 0 && length <= MAX_LENGTH ? length : 0;
}

static berth_status gather_window(berth__onnx_call *call, int64_t axis, int64_t length, berth_error *err) {
  int64_t offsets[MAX_LENGTH];
  const berth_attr along = berth_attr_int("axis", axis);
  berth_value in[2] = {call->in[0], BERTH_VALUE_NONE}, list;
  for (int64_t i = 0; i < length; i++) offsets[i] = i;
  BERTH__TRY(berth__onnx_list(call, offsets, (uint32_t)length, &list, err));
  BERTH__TRY(berth__onnx_binary(call, "add", call->in[1], list, &in[1], err));
  return berth__onnx_emit(call, "gather", in, 2, &along, 1, &call->out[0], 1, err);
}

berth_status berth__onnx_moving_slice(berth__onnx_call *call, bool *done, berth_error *err) {
  int64_t axis = 0, step = 1;
  uint32_t count = 1;
  *done = false;
  berth_value axes = berth__onnx_in(call, 3), steps = berth__onnx_in(call, 4);
  if (axes != BERTH_VALUE_NONE && !(berth__onnx_constant_ints(call, axes, &axis, 1, &count) && count == 1))
    return BERTH_OK;
  if (steps != BERTH_VALUE_NONE && !(berth__onnx_constant_ints(call, steps, &step, 1, &count) && count == 1))
    return BERTH_OK;
  int64_t length = step == 1 ? onnx_moving_slice_length_of(call, call->in[1], call->in[2]) : 0;
  *done = length != 0;
  return *done ? gather_window(call, axis, length, err) : BERTH_OK;
}
