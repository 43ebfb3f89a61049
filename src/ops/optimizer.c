#include "ops/optimizer.h"

#include <inttypes.h>
#include <string.h>

berth_status berth__optimizer_check_weight(const berth__infer *infer, berth_error *err) {
  if (infer->in_type[0] == BERTH_F32 || infer->in_type[0] == BERTH_F64) return BERTH_OK;
  return berth__fail(err, BERTH_INVALID, "operand 0 has type %s, expected f32 or f64",
                     berth_type_name(infer->in_type[0]));
}

berth_status berth__optimizer_check_like(const berth__infer *infer, uint32_t operand, berth_error *err) {
  const berth__shape *w = &infer->in_shape[0], *other = &infer->in_shape[operand];
  int64_t ignored;
  BERTH__TRY(berth__want_same_type(infer, 0, operand, err));
  if (other->rank != w->rank)
    return berth__fail(err, BERTH_INVALID,
                       "operand %" PRIu32 " has rank %" PRIu32 ", expected %" PRIu32 " as operand 0 has", operand,
                       other->rank, w->rank);
  for (uint32_t i = 0; i < w->rank; i++)
    BERTH__TRY(
        berth__same_dim(w->dim[i], other->dim[i], "the shapes of a weight and of what is kept with it", &ignored, err));
  return BERTH_OK;
}

berth_status berth__optimizer_check_scalar(const berth__infer *infer, uint32_t operand, bool is_int, berth_error *err) {
  int64_t count;
  if (operand >= infer->n_in || infer->in_type[operand] == BERTH_TYPE_NONE) return BERTH_OK;
  if (!is_int) BERTH__TRY(berth__want_float(infer, operand, err));
  if (is_int && infer->in_type[operand] != BERTH_I64) return berth__want_type(infer, operand, BERTH_I32, err);
  if (berth__shape_count(&infer->in_shape[operand], &count) && count != 1)
    return berth__fail(err, BERTH_INVALID, "operand %" PRIu32 " has %" PRId64 " elements, expected one", operand,
                       count);
  return BERTH_OK;
}

void berth__optimizer_keep(const berth_op_call *call, uint32_t operand, uint32_t result) {
  const size_t element = berth_type_size(call->out[result].type);
  const size_t begin = (size_t)call->begin * element, size = (size_t)(call->end - call->begin) * element;
  const char *from = call->in[operand].data;
  char *to = call->out[result].data;
  if (from != to && size != 0) memcpy(to + begin, from + begin, size);
}
