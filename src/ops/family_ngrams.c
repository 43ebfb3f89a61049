/* ngrams: how often each n-gram of a list occurs in a row of integers; ONNX's TfIdfVectorizer. `pool` contains all
 * 1-grams, then all 2-grams and so on; `starts` gives the beginning of each length; entry `indexes`[i] of the result
 * belongs to the i-th n-gram. The items of an n-gram are 1 to `skip` + 1 apart. An item is one row. */
#include <inttypes.h>

#include "ops/registry.h"

static const berth_attr attrs[] = {[BERTH__NGRAMS_POOL] = {.name = "pool", .kind = BERTH_ATTR_INTS},
                                   [BERTH__NGRAMS_STARTS] = {.name = "starts", .kind = BERTH_ATTR_INTS},
                                   [BERTH__NGRAMS_INDEXES] = {.name = "indexes", .kind = BERTH_ATTR_INTS},
                                   [BERTH__NGRAMS_WEIGHTS] = {.name = "weights", .kind = BERTH_ATTR_FLOATS},
                                   [BERTH__NGRAMS_MODE] = {.name = "mode", .kind = BERTH_ATTR_STRING, .s = "tf"},
                                   [BERTH__NGRAMS_MIN_LENGTH] = {.name = "min_length", .kind = BERTH_ATTR_INT, .i = 1},
                                   [BERTH__NGRAMS_MAX_LENGTH] = {.name = "max_length", .kind = BERTH_ATTR_INT, .i = 1},
                                   [BERTH__NGRAMS_SKIP] = {.name = "skip", .kind = BERTH_ATTR_INT}};

static bool ngrams_is_mode(const berth_attr *attr, const char *name) {
  return strcmp(attr[BERTH__NGRAMS_MODE].s, name) == 0;
}

/* Bounds of the n-grams of length n in the pool. */
static void ngrams_part_of(const berth_attr *attr, int64_t n, int64_t *first, int64_t *last) {
  *first = attr[BERTH__NGRAMS_STARTS].ints[n - 1];
  *last = n < attr[BERTH__NGRAMS_STARTS].count ? attr[BERTH__NGRAMS_STARTS].ints[n] : attr[BERTH__NGRAMS_POOL].count;
}

static berth_status check_pool(const berth_attr *attr, berth_error *err) {
  int64_t grams = 0;
  for (int64_t n = 1; n <= attr[BERTH__NGRAMS_STARTS].count; n++) {
    int64_t first, last;
    ngrams_part_of(attr, n, &first, &last);
    if (first < 0 || last < first || last > attr[BERTH__NGRAMS_POOL].count || (last - first) % n != 0)
      return berth__fail(err, BERTH_INVALID,
                         "the %" PRId64 "-grams take entries %" PRId64 " to %" PRId64 " of a pool of %" PRIu32, n,
                         first, last, attr[BERTH__NGRAMS_POOL].count);
    grams += (last - first) / n;
  }
  if (grams != attr[BERTH__NGRAMS_INDEXES].count ||
      (attr[BERTH__NGRAMS_WEIGHTS].count != 0 &&
       attr[BERTH__NGRAMS_WEIGHTS].count != attr[BERTH__NGRAMS_INDEXES].count))
    return berth__fail(err, BERTH_INVALID,
                       "the pool has %" PRId64 " n-grams, which is not the number of indexes or weights", grams);
  return BERTH_OK;
}

static berth_status ngrams_check_attributes(const berth_attr *attr, berth_error *err) {
  if (attr[BERTH__NGRAMS_MIN_LENGTH].i < 1 || attr[BERTH__NGRAMS_MAX_LENGTH].i < attr[BERTH__NGRAMS_MIN_LENGTH].i ||
      attr[BERTH__NGRAMS_MAX_LENGTH].i > attr[BERTH__NGRAMS_STARTS].count)
    return berth__fail(
        err, BERTH_INVALID, "n-grams of %" PRId64 " to %" PRId64 " items do not fit a pool of lengths up to %" PRIu32,
        attr[BERTH__NGRAMS_MIN_LENGTH].i, attr[BERTH__NGRAMS_MAX_LENGTH].i, attr[BERTH__NGRAMS_STARTS].count);
  if (attr[BERTH__NGRAMS_SKIP].i < 0 || attr[BERTH__NGRAMS_SKIP].i > INT32_MAX)
    return berth__fail(err, BERTH_INVALID, "`skip` is out of range");
  if (!ngrams_is_mode(attr, "tf") && !ngrams_is_mode(attr, "idf") && !ngrams_is_mode(attr, "tfidf"))
    return berth__fail(err, BERTH_INVALID, "mode \"%s\" is not one of tf, idf and tfidf", attr[BERTH__NGRAMS_MODE].s);
  return check_pool(attr, err);
}

static berth_status ngrams_infer(berth__infer *infer, berth_error *err) {
  const berth_attr *attr = infer->attrs;
  int64_t size = 0;
  BERTH__TRY(berth__want_bits(infer, 0, err));
  BERTH__TRY(berth__want_rank(infer, 0, 1, 2, err));
  BERTH__TRY(ngrams_check_attributes(attr, err));
  for (uint32_t i = 0; i < attr[BERTH__NGRAMS_INDEXES].count; i++) {
    if (attr[BERTH__NGRAMS_INDEXES].ints[i] < 0 || attr[BERTH__NGRAMS_INDEXES].ints[i] > INT32_MAX)
      return berth__fail(err, BERTH_INVALID, "index %" PRIu32 " is out of range", i);
    if (attr[BERTH__NGRAMS_INDEXES].ints[i] >= size) size = attr[BERTH__NGRAMS_INDEXES].ints[i] + 1;
  }
  infer->out_type[0] = BERTH_F32;
  infer->out_shape[0] = infer->in_shape[0];
  infer->out_shape[0].dim[infer->in_shape[0].rank - 1] = size;
  return BERTH_OK;
}

static int64_t ngrams_items(const berth_op_call *call) { return call->in[0].rank == 2 ? call->in[0].dim[0] : 1; }

/* The number, over all lengths, of the n-gram at `at`; -1: not in the pool. */
static int64_t ngrams_find(const berth_op_call *call, int64_t at, int64_t step, int64_t n) {
  int64_t first, last, number = 0;
  for (int64_t shorter = 1; shorter < n; shorter++) {
    ngrams_part_of(call->attrs, shorter, &first, &last);
    number += (last - first) / shorter;
  }
  ngrams_part_of(call->attrs, n, &first, &last);
  for (int64_t gram = first; gram < last; gram += n, number++) {
    int64_t k = 0;
    while (k < n && berth__load_i64(&call->in[0], at + k * step) == call->attrs[BERTH__NGRAMS_POOL].ints[gram + k]) k++;
    if (k == n) return number;
  }
  return -1;
}

static void count_row(const berth_op_call *call, int64_t row, int64_t columns, float *out) {
  const berth_attr *attr = call->attrs;
  for (int64_t n = attr[BERTH__NGRAMS_MIN_LENGTH].i; n <= attr[BERTH__NGRAMS_MAX_LENGTH].i; n++) {
    const int64_t steps = n == 1 ? 1 : attr[BERTH__NGRAMS_SKIP].i + 1; /* a single item has no distance */
    for (int64_t step = 1; step <= steps && (n - 1) * step < columns; step++) {
      for (int64_t i = 0; i + (n - 1) * step < columns; i++) {
        const int64_t gram = ngrams_find(call, row * columns + i, step, n);
        if (gram < 0) continue;
        float *place = &out[attr[BERTH__NGRAMS_INDEXES].ints[gram]];
        const float weight =
            attr[BERTH__NGRAMS_WEIGHTS].count != 0 ? (float)attr[BERTH__NGRAMS_WEIGHTS].floats[gram] : 1;
        *place = ngrams_is_mode(attr, "tf") ? *place + 1 : ngrams_is_mode(attr, "idf") ? weight : *place + weight;
      }
    }
  }
}

static berth_status ngrams_kernel(const berth_op_call *call, berth_error *err) {
  const uint32_t rank = call->in[0].rank;
  const int64_t columns = call->in[0].dim[rank - 1], size = call->out[0].dim[rank - 1];
  (void)err;
  for (int64_t row = call->begin; row < call->end; row++) {
    float *out = (float *)call->out[0].data + row * size;
    for (int64_t i = 0; i < size; i++) out[i] = 0;
    count_row(call, row, columns, out);
  }
  return BERTH_OK;
}

const berth__family berth__family_ngrams = {
    .attrs = attrs,
    .n_attrs = sizeof attrs / sizeof *attrs,
    .required = 1u << BERTH__NGRAMS_POOL | 1u << BERTH__NGRAMS_STARTS | 1u << BERTH__NGRAMS_INDEXES,
    .infer = ngrams_infer,
    .items = ngrams_items,
    .kernel = ngrams_kernel,
};
