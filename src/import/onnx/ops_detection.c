/* Detection and text. */
#include "import/onnx/compose.h"

/* The valid rows are cut off; their number must be known when the plan is made. */
static berth_status convert_suppression(berth__onnx_call *call, berth_error *err) {
  berth_value results[2];
  int64_t zero = 0;
  BERTH__TRY(berth__onnx_begin(call, 2, err));
  berth_attr attr = berth_attr_int("center", berth__onnx_int(call, "center_point_box", 0));
  BERTH__TRY(berth__onnx_emit(call, "non_max_suppression", call->in, call->n_in, &attr, 1, results, 2, err));
  berth_attr attrs[] = {berth_attr_ints("axes", &zero, 1), berth_attr_ints("starts", &zero, 1)};
  berth_value in[3] = {results[0], BERTH_VALUE_NONE, results[1]};
  return berth__onnx_emit(call, "narrow", in, 3, attrs, 2, call->out, 1, err);
}

static const char *onnx_detection_mode_of(berth__span mode) {
  return berth__span_is(mode, "TF") ? "tf" : berth__span_is(mode, "IDF") ? "idf" : "tfidf";
}

static berth_status emit_ngrams(berth__onnx_call *call, const double *weights, uint32_t n_weights, berth_error *err) {
  uint32_t n_pool, n_counts, n_indexes;
  const int64_t *pool = berth__onnx_ints(call, "pool_int64s", &n_pool);
  const int64_t *counts = berth__onnx_ints(call, "ngram_counts", &n_counts);
  const int64_t *indexes = berth__onnx_ints(call, "ngram_indexes", &n_indexes);
  berth_attr attrs[] = {
      berth_attr_ints("pool", pool, n_pool),
      berth_attr_ints("starts", counts, n_counts),
      berth_attr_ints("indexes", indexes, n_indexes),
      berth_attr_floats("weights", weights, n_weights),
      berth_attr_string("mode", onnx_detection_mode_of(berth__onnx_string(call, "mode", "TFIDF"))),
      berth_attr_int("min_length", berth__onnx_int(call, "min_gram_length", 1)),
      berth_attr_int("max_length", berth__onnx_int(call, "max_gram_length", 1)),
      berth_attr_int("skip", berth__onnx_int(call, "max_skip_count", 0)),
  };
  return berth__onnx_emit(call, "ngrams", call->in, 1, attrs, sizeof attrs / sizeof *attrs, call->out, 1, err);
}

static berth_status convert_ngrams(berth__onnx_call *call, berth_error *err) {
  const berth__onnx_attr *weights = berth__onnx_find(call, "weights");
  size_t n = weights != NULL ? weights->n_floats : 0;
  BERTH__TRY(berth__onnx_begin(call, 1, err));
  if (berth__onnx_find(call, "pool_strings") != NULL)
    return berth__onnx_unsupported(call, err, "n-grams of strings are not supported");
  double *wide = berth__alloc_array(call->graph->ctx, n, sizeof *wide);
  if (wide == NULL) return berth__fail_nomem(err, "weights");
  for (size_t i = 0; i < n; i++) wide[i] = (double)weights->floats[i];
  berth_status status = emit_ngrams(call, wide, (uint32_t)n, err);
  berth__free(call->graph->ctx, wide);
  return status;
}

const berth__onnx_handler berth__onnx_detection[] = {
    {"NonMaxSuppression", convert_suppression, NULL},
    {"TfIdfVectorizer", convert_ngrams, NULL},
    {NULL, NULL, NULL},
};
