/* unique: the distinct elements of a tensor, or the distinct slices along an axis; the first occurrence of each, the
 * index of each element's distinct one, and their counts. Their number depends on the data; if only a run knows it, all
 * are planned to be distinct. */
#include <inttypes.h>
#include <math.h>

#include "ops/line.h"
#include "ops/operand.h"
#include "ops/registry.h"

static const berth_attr attrs[] = {
    [BERTH__UNIQUE_AXIS] = {.name = "axis", .kind = BERTH_ATTR_INT},
    [BERTH__UNIQUE_FLAT] = {.name = "flat", .kind = BERTH_ATTR_INT, .i = 1}, /* 1: elements, regardless of the axis */
    [BERTH__UNIQUE_SORTED] = {.name = "sorted", .kind = BERTH_ATTR_INT, .i = 1},
};
enum {
  VALUES,
  FIRST,
  INVERSE,
  COUNTS
};

/* Slice s consists of the elements (o n + s) inner + i for all o and i. */
typedef struct slices {
  berth_tensor data;
  int64_t outer, n, inner;
} slices;

static slices slices_of(berth_tensor data, uint32_t rank, const int64_t *dim, const berth_attr *attr) {
  slices s = {.data = data, .outer = 1, .n = 1, .inner = 1};
  const uint32_t axis =
      (uint32_t)(attr[BERTH__UNIQUE_AXIS].i < 0 ? attr[BERTH__UNIQUE_AXIS].i + rank : attr[BERTH__UNIQUE_AXIS].i);
  for (uint32_t k = 0; k < rank; k++)
    *(attr[BERTH__UNIQUE_FLAT].i || k == axis ? &s.n : k < axis ? &s.outer : &s.inner) *= dim[k];
  return s;
}

static int compare_elements(const berth_tensor *t, int64_t a, int64_t b) {
  if (t->type == BERTH_U64) {
    const uint64_t *x = t->data;
    return (x[a] > x[b]) - (x[a] < x[b]);
  }
  if (!berth__type_is_float(t->type)) {
    const int64_t x = berth__load_i64(t, a), y = berth__load_i64(t, b);
    return (x > y) - (x < y);
  }
  const double x = berth__load_f64(t, a), y = berth__load_f64(t, b);
  if (isnan(x) || isnan(y)) return (isnan(x) != 0) - (isnan(y) != 0); /* NaN is the largest, and equal to NaN */
  return (x > y) - (x < y);
}

static int unique_compare(const slices *s, int64_t a, int64_t b) {
  for (int64_t o = 0; o < s->outer; o++)
    for (int64_t i = 0; i < s->inner; i++) {
      const int order = compare_elements(&s->data, (o * s->n + a) * s->inner + i, (o * s->n + b) * s->inner + i);
      if (order != 0) return order;
    }
  return 0;
}

/* The first slice equal to slice k. */
static int64_t first_like(const slices *s, int64_t k) {
  int64_t first = 0;
  while (first < k && unique_compare(s, first, k) != 0) first++;
  return first;
}

/* different: the number of distinct slices; n: of all slices. */
static void set_shapes(const berth__shape *in, const berth_attr *attr, int64_t n, int64_t different, uint32_t n_out,
                       berth__shape *out) {
  for (uint32_t k = 0; k < n_out; k++) out[k] = (berth__shape){.rank = 1, .dim = {k == INVERSE ? n : different}};
  if (attr[BERTH__UNIQUE_FLAT].i) return;
  out[VALUES] = *in;
  out[VALUES].dim[attr[BERTH__UNIQUE_AXIS].i < 0 ? attr[BERTH__UNIQUE_AXIS].i + in->rank : attr[BERTH__UNIQUE_AXIS].i] =
      different;
}

static berth_status unique_infer(berth__infer *infer, berth_error *err) {
  const berth__shape *in = &infer->in_shape[0];
  const berth_attr *attr = infer->attrs;
  uint32_t axis = 0;
  int64_t count, different = BERTH__DIM_UNKNOWN;
  if (!attr[BERTH__UNIQUE_FLAT].i) BERTH__TRY(berth__want_axis(attr[BERTH__UNIQUE_AXIS].i, in->rank, &axis, err));
  const berth_tensor data = berth__infer_tensor(infer, 0);
  int64_t n = attr[BERTH__UNIQUE_FLAT].i ? BERTH__DIM_UNKNOWN : in->dim[axis];
  if (berth__shape_count(in, &count)) {
    const slices s = slices_of(data, in->rank, in->dim, attr);
    n = s.n;
    if (data.data != NULL)
      different = 0;
    else if (infer->wants_bounds)
      different = n;
    for (int64_t k = 0; data.data != NULL && k < s.n; k++) different += first_like(&s, k) == k;
  }
  for (uint32_t k = 0; k < infer->n_out; k++) infer->out_type[k] = k == VALUES ? infer->in_type[0] : BERTH_I64;
  set_shapes(in, attr, n, different, infer->n_out, infer->out_shape);
  return BERTH_OK;
}

/* For every slice its position in the order, and for every distinct one its first occurrence. */
static uint64_t unique_scratch(const berth_op_call *call) {
  return (uint64_t)call->out[INVERSE].dim[0] * 2 * sizeof(int64_t);
}

static bool is_before(const slices *s, int64_t a, int64_t b) {
  const int order = unique_compare(s, a, b);
  return order != 0 ? order < 0 : a < b;
}

/* Moves the last entry of a heap from the root down to its position. */
static void unique_sift_down(const slices *s, int64_t *heap, int64_t at, int64_t n) {
  const int64_t moved = heap[at];
  for (int64_t child; (child = 2 * at + 1) < n; at = child) {
    if (child + 1 < n && is_before(s, heap[child], heap[child + 1])) child++;
    if (!is_before(s, moved, heap[child])) break;
    heap[at] = heap[child];
  }
  heap[at] = moved;
}

/* Sorts the slices, stably; returns the number of distinct ones. */
static int64_t sort(const slices *s, int64_t *order) {
  int64_t different = s->n > 0;
  for (int64_t k = 0; k < s->n; k++) order[k] = k;
  for (int64_t k = s->n / 2; k-- > 0;) unique_sift_down(s, order, k, s->n);
  for (int64_t n = s->n; n-- > 1;) {
    const int64_t last = order[0];
    order[0] = order[n];
    order[n] = last;
    unique_sift_down(s, order, 0, n);
  }
  for (int64_t k = 1; k < s->n; k++) different += unique_compare(s, order[k - 1], order[k]) != 0;
  return different;
}

/* Inference without scratch compares every slice with all previous ones. */
static berth_status unique_find(const berth_op_call *call, berth__shape *out, berth_error *err) {
  berth__shape in = {.rank = call->in[0].rank};
  (void)err;
  memcpy(in.dim, call->in[0].dim, sizeof in.dim);
  const slices s = slices_of(call->in[0], in.rank, in.dim, call->attrs);
  set_shapes(&in, call->attrs, s.n, sort(&s, call->scratch), call->n_out, out);
  return BERTH_OK;
}

static void put_slice(const berth_op_call *call, const slices *s, int64_t from, int64_t to) {
  const size_t size = berth_type_size(s->data.type);
  const int64_t different = call->out[FIRST].dim[0];
  for (int64_t o = 0; o < s->outer; o++)
    memcpy(berth__element(call->out[VALUES].data, (o * different + to) * s->inner, size),
           berth__element(s->data.data, (o * s->n + from) * s->inner, size), (size_t)s->inner * size);
}

static berth_status unique_kernel(const berth_op_call *call, berth_error *err) {
  (void)err;
  const slices s = slices_of(call->in[0], call->in[0].rank, call->in[0].dim, call->attrs);
  int64_t *order = call->scratch, *head = order + s.n, *first = call->out[FIRST].data;
  int64_t *inverse = call->out[INVERSE].data, *counts = call->out[COUNTS].data, group = -1, before = 0;
  sort(&s, order);
  for (int64_t k = 0; k < s.n; k++) {
    if (k == 0 || unique_compare(&s, order[k - 1], order[k]) != 0) head[++group] = order[k];
    inverse[order[k]] = group;
  }
  int64_t *place = order; /* per group: its position, sorted or in order of occurrence */
  for (int64_t k = 0; k <= group; k++) place[k] = k;
  for (int64_t k = 0; k < s.n && !call->attrs[BERTH__UNIQUE_SORTED].i; k++)
    if (head[inverse[k]] == k) place[inverse[k]] = before++;
  for (int64_t k = 0; k <= group; k++) {
    first[place[k]] = head[k];
    counts[place[k]] = 0;
    put_slice(call, &s, head[k], place[k]);
  }
  for (int64_t k = 0; k < s.n; k++) counts[inverse[k] = place[inverse[k]]]++;
  return BERTH_OK;
}

const berth__family berth__family_unique = {
    .attrs = attrs,
    .n_attrs = sizeof attrs / sizeof *attrs,
    .infer = unique_infer,
    .find = unique_find,
    .scratch = unique_scratch,
    .kernel = unique_kernel,
    .valued = 1u,
    .bounded = 1u,
};
