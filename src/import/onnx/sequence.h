/* Sequences of tensors while a file is converted. A value from BERTH__ONNX_SEQUENCES on stands for one; no graph has
 * it. Where it is known how many tensors there are, a sequence is the list of their values. Otherwise its tensors have
 * one shape and are the slices of one value, `stacked`, along its first axis. */
#ifndef BERTH_IMPORT_ONNX_SEQUENCE_H
#define BERTH_IMPORT_ONNX_SEQUENCE_H

#include "import/onnx/convert.h"

typedef struct berth__onnx_sequence {
  berth_value *values; /* of a list */
  size_t n;
  berth_value stacked; /* BERTH_VALUE_NONE: it is only a list */
  bool is_list;        /* a list may be there as `stacked`, too */
  /* In the body of a loop that is not unrolled: these tensors come after those of the iterations before, which only a
   * run knows. It is the sequence that stands for them, itself included; otherwise BERTH_VALUE_NONE. */
  berth_value before;
  bool is_read; /* of such a sequence: the body has tried to read it */
} berth__onnx_sequence;

/* Operand k; a copy, because making another sequence may move it. */
berth_status berth__onnx_sequence_in(const berth__onnx_call *call, size_t k, berth__onnx_sequence *out,
                                     berth_error *err);
berth__onnx_sequence berth__onnx_sequence_of(const berth__onnx_call *call, berth_value value);

/* A new list of n values, which the caller must set; the converter owns it. */
berth_status berth__onnx_sequence_list(berth__onnx_call *call, size_t n, berth_value *out, berth_value **values,
                                       berth_error *err);
/* A new sequence of the slices of a value. */
berth_status berth__onnx_sequence_slices(berth__onnx_call *call, berth_value stacked, berth_value *out,
                                         berth_error *err);
/* The sequence from the iterations before, of which nothing is known. */
berth_status berth__onnx_sequence_unknown(berth__onnx_call *call, berth_value *out, berth_error *err);
/* Notes that an iteration reads what it must not; returns the error. */
berth_status berth__onnx_sequence_fail_read(const berth__onnx_call *call, const berth__onnx_sequence *from,
                                            berth_error *err);

/* The tensors as the slices of one value. They must have one shape, and there must be one of them. */
berth_status berth__onnx_sequence_stack(berth__onnx_call *call, const berth__onnx_sequence *from, berth_value *out,
                                        berth_error *err);
/* The tensors of `a`, then the slices of `b`. */
berth_status berth__onnx_sequence_append(berth__onnx_call *call, const berth__onnx_sequence *a, berth_value b,
                                         berth_value *out, berth_error *err);

/* Slices along the first axis, turned into slices along `axis`. */
berth_status berth__onnx_move_first(berth__onnx_call *call, berth_value x, uint32_t axis, berth_value *out,
                                    berth_error *err);
/* Slices along the first axis, joined along `axis` of the slices. */
berth_status berth__onnx_join_first(berth__onnx_call *call, berth_value x, uint32_t axis, berth_value *out,
                                    berth_error *err);

#endif
