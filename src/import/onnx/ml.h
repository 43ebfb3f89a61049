/* What the handlers of ai.onnx.ml share: lists of numbers, rows, class labels, and what is done to scores. */
#ifndef BERTH_IMPORT_ONNX_ML_H
#define BERTH_IMPORT_ONNX_ML_H

#include "import/onnx/chain.h"

typedef enum berth__ml_transform { /* in the order of the numbers that TreeEnsemble gives them */
  BERTH__ML_NONE,
  BERTH__ML_SOFTMAX,
  BERTH__ML_LOGISTIC,
  BERTH__ML_SOFTMAX_ZERO,
  BERTH__ML_PROBIT
} berth__ml_transform;

/* Class labels; of strings only the number is known. */
typedef struct berth__ml_labels {
  const int64_t *ints; /* NULL: strings, or none at all */
  uint32_t count;
  bool are_strings;
} berth__ml_labels;

/* The attribute post_transform, a word. */
berth_status berth__ml_transform_of(const berth__onnx_call *call, berth__ml_transform *out, berth_error *err);
/* Labels of integers or of strings, not of both. */
berth_status berth__ml_labels_of(const berth__onnx_call *call, const char *ints, const char *strings,
                                 berth__ml_labels *out, berth_error *err);

/* The elements of a tensor of numbers, where kernels can read them: a file may have them at any address. *owned is to
 * be freed; NULL where they stay in the file. */
berth_status berth__ml_elements(const berth__onnx_call *call, const berth__onnx_tensor *tensor, berth_tensor *out,
                                size_t *count, void **owned, berth_error *err);

/* Numbers of an attribute: a list, or a tensor under another name. */
typedef struct berth__ml_numbers {
  berth_tensor tensor;
  uint32_t count;
  void *owned;
} berth__ml_numbers;
berth_status berth__ml_numbers_of(const berth__onnx_call *call, const char *list, const char *tensor,
                                  berth__ml_numbers *out, berth_error *err);
void berth__ml_numbers_free(const berth__onnx_call *call, berth__ml_numbers *numbers);
static inline double berth__ml_number(const berth__ml_numbers *numbers, size_t i) {
  return berth__load_f64(&numbers->tensor, (int64_t)i);
}

/* A list that is an attribute, f32 or i64, as a constant or weight of a shape that has as many elements. */
berth_status berth__ml_list(berth__onnx_call *call, berth_type type, const void *list, uint32_t rank,
                            const int64_t *dim, berth_value *out, berth_error *err);
/* The same for a list of [rows, columns], transposed. */
berth_status berth__ml_transposed(berth__onnx_call *call, const float *list, int64_t rows, int64_t columns,
                                  berth_value *out, berth_error *err);
berth_value berth__ml_vector(berth__onnx_chain *c, const float *list, int64_t count);

/* Which elements of a list are the only ones of their value, or the first of them, or the last of them. */
berth_status berth__ml_mark_alone(berth__onnx_call *call, berth_tensor list, uint32_t count, bool takes_last,
                                  bool *is_it, berth_error *err);

/* x as rows of `type`: [N, F]. What has one dimension is one row. Fails for more than two. */
berth_value berth__ml_rows(berth__onnx_chain *c, berth_value x, berth_type type);
/* [N, 1] and [N, 1] beside each other. */
berth_value berth__ml_beside(berth__onnx_chain *c, berth_value a, berth_value b);

/* Scores [N, C] of f32 after the transform. With one column only PROBIT does something, as in ONNX Runtime. */
berth_value berth__ml_transformed(berth__onnx_chain *c, berth__ml_transform transform, berth_value scores, bool is_one);
/* The scores of two classes from the score s of the second, [N, 1]: (1 - s, s), or (-s, s) where `is_mixed` says that
 * scores are around 0; logistic(-s), logistic(s) for LOGISTIC. */
berth_value berth__ml_two_classes(berth__onnx_chain *c, berth__ml_transform transform, berth_value s, bool is_mixed);

/* Output 0 from the number of the class of each row, i64 [N]; absent where labels are strings. */
void berth__ml_set_label(berth__onnx_chain *c, const berth__ml_labels *labels, berth_value class_index);

#endif
