/* unique: the different elements of a tensor, or the different slices along an axis; where each comes first, which one
 * every element is, and how often each comes. How many there are depends on the elements; where only a run knows
 * them, it is planned that all are different. */
#include <inttypes.h>
#include <math.h>

#include "ops/line.h"
#include "ops/operand.h"
#include "ops/registry.h"

enum {
  AXIS,
  FLAT,
  SORTED
};
static const berth_attr attrs[] = {
    {.name = "axis", .kind = BERTH_ATTR_INT},
    {.name = "flat", .kind = BERTH_ATTR_INT, .i = 1}, /* 1: elements, whatever the axis */
    {.name = "sorted", .kind = BERTH_ATTR_INT, .i = 1},
};
enum {
  VALUES,
  FIRST,
  INVERSE,
  COUNTS
};

/* Slice s has the elements (o n + s) inner + i for every o and i. */
typedef struct slices {
  berth_tensor data;
  int64_t outer, n, inner;
} slices;

static slices slices_of(berth_tensor data, uint32_t rank, const int64_t *dim, const berth_attr *attr) {
  slices s = {.data = data, .outer = 1, .n = 1, .inner = 1};
  const uint32_t axis = (uint32_t)(attr[AXIS].i < 0 ? attr[AXIS].i + rank : attr[AXIS].i);
  for (uint32_t k = 0; k < rank; k++) *(attr[FLAT].i || k == axis ? &s.n : k < axis ? &s.outer : &s.inner) *= dim[k];
  return s;
}

static int compare_elements(const berth_tensor *t, int64_t a, int64_t b) {
  if (!berth__type_is_float(t->type)) {
    const int64_t x = berth__load_i64(t, a), y = berth__load_i64(t, b);
    return (x > y) - (x < y);
  }
  const double x = berth__load_f64(t, a), y = berth__load_f64(t, b);
  if (isnan(x) || isnan(y)) return (isnan(x) != 0) - (isnan(y) != 0); /* the largest of all, and one like another */
  return (x > y) - (x < y);
}

static int compare(const slices *s, int64_t a, int64_t b) {
  for (int64_t o = 0; o < s->outer; o++)
    for (int64_t i = 0; i < s->inner; i++) {
      const int order = compare_elements(&s->data, (o * s->n + a) * s->inner + i, (o * s->n + b) * s->inner + i);
      if (order != 0) return order;
    }
  return 0;
}

/* The first slice that is like slice k. */
static int64_t first_like(const slices *s, int64_t k) {
  int64_t first = 0;
  while (first < k && compare(s, first, k) != 0) first++;
  return first;
}

static berth_status infer(berth__infer *infer, berth_error *err) {
  const berth__shape *in = &infer->in_shape[0];
  const berth_attr *attr = infer->attrs;
  uint32_t axis = 0;
  int64_t count, different = BERTH__DIM_UNKNOWN;
  if (!attr[FLAT].i) BERTH__TRY(berth__want_axis(attr[AXIS].i, in->rank, &axis, err));
  const berth_tensor data = berth__infer_tensor(infer, 0);
  int64_t n = attr[FLAT].i ? BERTH__DIM_UNKNOWN : in->dim[axis];
  if (berth__shape_count(in, &count)) {
    const slices s = slices_of(data, in->rank, in->dim, attr);
    n = s.n;
    if (data.data != NULL)
      different = 0;
    else if (infer->wants_bounds)
      different = n;
    for (int64_t k = 0; data.data != NULL && k < s.n; k++) different += first_like(&s, k) == k;
  }
  for (uint32_t k = 0; k < infer->n_out; k++) {
    infer->out_type[k] = k == VALUES ? infer->in_type[0] : BERTH_I64;
    infer->out_shape[k] = (berth__shape){.rank = 1, .dim = {k == INVERSE ? n : different}};
  }
  if (attr[FLAT].i) return BERTH_OK;
  infer->out_shape[VALUES] = *in;
  infer->out_shape[VALUES].dim[axis] = different;
  return BERTH_OK;
}

/* For every slice, the first that is like it. */
static uint64_t scratch(const berth_op_call *call) { return (uint64_t)call->out[INVERSE].dim[0] * sizeof(int64_t); }

static void put_slice(const berth_op_call *call, const slices *s, int64_t from, int64_t to) {
  const size_t size = berth_type_size(s->data.type);
  const int64_t different = call->out[FIRST].dim[0];
  for (int64_t o = 0; o < s->outer; o++)
    memcpy(berth__element(call->out[VALUES].data, (o * different + to) * s->inner, size),
           berth__element(s->data.data, (o * s->n + from) * s->inner, size), (size_t)s->inner * size);
}

static berth_status kernel(const berth_op_call *call, berth_error *err) {
  (void)err;
  const slices s = slices_of(call->in[0], call->in[0].rank, call->in[0].dim, call->attrs);
  int64_t *like = call->scratch, *first = call->out[FIRST].data, *inverse = call->out[INVERSE].data;
  int64_t *counts = call->out[COUNTS].data, before = 0;
  for (int64_t k = 0; k < s.n; k++) like[k] = first_like(&s, k);
  for (int64_t k = 0; k < s.n; k++) {
    if (like[k] != k) continue;
    int64_t place = before++, count = 0;
    if (call->attrs[SORTED].i) {
      place = 0;
      for (int64_t j = 0; j < s.n; j++) place += like[j] == j && compare(&s, j, k) < 0;
    }
    for (int64_t j = k; j < s.n; j++) {
      if (like[j] != k) continue;
      inverse[j] = place;
      count++;
    }
    first[place] = k;
    counts[place] = count;
    put_slice(call, &s, k, place);
  }
  return BERTH_OK;
}

const berth__family berth__family_unique = {
    .attrs = attrs,
    .n_attrs = sizeof attrs / sizeof *attrs,
    .infer = infer,
    .scratch = scratch,
    .kernel = kernel,
    .valued = 1u,
    .bounded = 1u,
};
