/* Shared by the handlers of ai.onnx.ml: lists of numbers, rows, class labels, and transforms of scores. */
#ifndef BERTH_IMPORT_ONNX_ML_H
#define BERTH_IMPORT_ONNX_ML_H

#include "import/onnx/chain.h"

typedef enum berth__ml_transform { /* in the order of TreeEnsemble's numbers */
  BERTH__ML_NONE,
  BERTH__ML_SOFTMAX,
  BERTH__ML_LOGISTIC,
  BERTH__ML_SOFTMAX_ZERO,
  BERTH__ML_PROBIT
} berth__ml_transform;

/* Class labels; of string labels only the count is known. */
typedef struct berth__ml_labels {
  const int64_t *ints; /* NULL: strings, or none */
  uint32_t count;
  bool are_strings;
} berth__ml_labels;

/* The attribute post_transform, a word. */
berth_status berth__ml_transform_of(const berth__onnx_call *call, berth__ml_transform *out, berth_error *err);
/* Integer or string labels, not both. */
berth_status berth__ml_labels_of(const berth__onnx_call *call, const char *ints, const char *strings,
                                 berth__ml_labels *out, berth_error *err);

/* The elements of a tensor of numbers at an address that kernels can read, since a file may not align them. *owned must
 * be freed; it is NULL if they stay in the file. */
berth_status berth__ml_elements(const berth__onnx_call *call, const berth__onnx_tensor *tensor, berth_tensor *out,
                                size_t *count, void **owned, berth_error *err);

/* Numbers from an attribute: a list, or a tensor under another name. */
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

/* A list attribute, f32 or i64, as a constant or weight of a shape with as many elements. */
berth_status berth__ml_list(berth__onnx_call *call, berth_type type, const void *list, uint32_t rank,
                            const int64_t *dim, berth_value *out, berth_error *err);
/* The same for a list of [rows, columns], transposed. */
berth_status berth__ml_transposed(berth__onnx_call *call, const float *list, int64_t rows, int64_t columns,
                                  berth_value *out, berth_error *err);
berth_value berth__ml_vector(berth__onnx_chain *c, const float *list, int64_t count);

/* Which elements of a list are unique, or the first, or the last of their value. */
berth_status berth__ml_mark_alone(berth__onnx_call *call, berth_tensor list, uint32_t count, bool takes_last,
                                  bool *is_it, berth_error *err);

/* x as rows of `type`: [N, F]. One dimension makes a single row; more than two are an error. */
berth_value berth__ml_rows(berth__onnx_chain *c, berth_value x, berth_type type);
/* Concatenates [N, 1] and [N, 1]. */
berth_value berth__ml_beside(berth__onnx_chain *c, berth_value a, berth_value b);

/* Scores [N, C] of f32 after the transform. With one column only PROBIT has an effect, as in ONNX Runtime. */
berth_value berth__ml_transformed(berth__onnx_chain *c, berth__ml_transform transform, berth_value scores, bool is_one);
/* The scores of two classes from the score s of the second, [N, 1]: (1 - s, s), or (-s, s) if `is_mixed` says that
 * scores are centred at 0; logistic(-s), logistic(s) for LOGISTIC. */
berth_value berth__ml_two_classes(berth__onnx_chain *c, berth__ml_transform transform, berth_value s, bool is_mixed);

/* Sets output 0 from the class index of each row, i64 [N]; absent if labels are strings. */
void berth__ml_set_label(berth__onnx_chain *c, const berth__ml_labels *labels, berth_value class_index);

#endif
