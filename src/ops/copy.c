#include "ops/copy.h"

#include <inttypes.h>

#include "ops/line.h"

#define COPY_EACH(bytes)          \
  for (int64_t i = 0; i < n; i++) \
  memcpy((char *)to + i * to_stride * (bytes), (const char *)from + i * from_stride * (bytes), (size_t)(bytes))

void berth__copy_line(void *to, int64_t to_stride, const void *from, int64_t from_stride, int64_t n, size_t element) {
  if (n <= 0) return;
  if (to_stride == 1 && from_stride == 1) {
    memcpy(to, from, (size_t)n * element);
    return;
  }
  switch (element) {
    case 1: COPY_EACH(1); break;
    case 2: COPY_EACH(2); break;
    case 4: COPY_EACH(4); break;
    default: COPY_EACH(8); break;
  }
}

void berth__copy_join(berth__copy *c) {
  uint32_t rank = 0;
  for (uint32_t axis = 0; axis < c->rank; axis++) {
    if (c->dim[axis] == 1) continue;
    const uint32_t last = rank - 1;
    if (rank > 0 && c->from_stride[last] == c->from_stride[axis] * c->dim[axis] &&
        c->to_stride[last] == c->to_stride[axis] * c->dim[axis]) {
      c->dim[last] *= c->dim[axis];
      c->from_stride[last] = c->from_stride[axis];
      c->to_stride[last] = c->to_stride[axis];
      continue;
    }
    c->dim[rank] = c->dim[axis];
    c->from_stride[rank] = c->from_stride[axis];
    c->to_stride[rank] = c->to_stride[axis];
    rank++;
  }
  if (rank == 0) c->dim[0] = c->from_stride[0] = c->to_stride[0] = 1;
  c->rank = rank == 0 ? 1 : rank;
}

/* Finds the line that contains `begin`. Returns the offset of `begin` in that line. */
static int64_t copy_seek(const berth__copy *c, int64_t begin, int64_t *at, int64_t *from, int64_t *to) {
  const int64_t inside = begin % c->dim[c->rank - 1];
  int64_t rest = begin / c->dim[c->rank - 1];
  *from = *to = 0;
  for (uint32_t axis = c->rank - 1; axis-- > 0; rest /= c->dim[axis]) {
    at[axis] = rest % c->dim[axis];
    *from += at[axis] * c->from_stride[axis];
    *to += at[axis] * c->to_stride[axis];
  }
  return inside;
}

static void copy_next_line(const berth__copy *c, int64_t *at, int64_t *from, int64_t *to) {
  for (uint32_t axis = c->rank - 1; axis-- > 0;) {
    *from += c->from_stride[axis];
    *to += c->to_stride[axis];
    if (++at[axis] < c->dim[axis]) return;
    *from -= at[axis] * c->from_stride[axis];
    *to -= at[axis] * c->to_stride[axis];
    at[axis] = 0;
  }
}

void berth__copy_range(const berth__copy *copy, int64_t begin, int64_t end) {
  if (begin >= end) return; /* also for an extent of 0 */
  berth__copy c = *copy;
  berth__copy_join(&c);
  const uint32_t inner = c.rank - 1;
  int64_t at[BERTH_MAX_RANK], from, to;
  int64_t inside = copy_seek(&c, begin, at, &from, &to);
  while (begin < end) {
    int64_t n = c.dim[inner] - inside;
    if (n > end - begin) n = end - begin;
    berth__copy_line(berth__element(c.to, to + inside * c.to_stride[inner], c.element), c.to_stride[inner],
                     berth__element(c.from, from + inside * c.from_stride[inner], c.element), c.from_stride[inner], n,
                     c.element);
    begin += n;
    inside = 0;
    copy_next_line(&c, at, &from, &to);
  }
}

int64_t berth__copy_items(const berth_op_call *call) { return berth__count(&call->out[0]); }

berth_status berth__copy_kernel(const berth_op_call *call, berth_error *err) {
  (void)err;
  const berth_tensor *in = &call->in[0], *out = &call->out[0];
  berth__copy c = {.rank = in->rank, .from = in->data, .to = out->data, .element = berth_type_size(in->type)};
  memcpy(c.dim, in->dim, sizeof c.dim);
  memcpy(c.from_stride, in->stride, sizeof c.from_stride);
  berth__contiguous_strides(in->rank, in->dim, c.to_stride);
  berth__copy_range(&c, call->begin, call->end);
  return BERTH_OK;
}

void berth__copy_view(const berth_op_call *call, const int64_t *stride, int64_t offset) {
  const berth_tensor *in = &call->in[0], *out = &call->out[0];
  berth__copy c = {.rank = out->rank, .to = out->data, .element = berth_type_size(in->type)};
  c.from = berth__element(in->data, offset, c.element);
  memcpy(c.dim, out->dim, sizeof c.dim);
  memcpy(c.from_stride, stride, out->rank * sizeof *stride);
  memcpy(c.to_stride, out->stride, sizeof c.to_stride);
  berth__copy_range(&c, call->begin, call->end);
}

/* A joined axis is one evenly spaced run of elements and can be split at will; a stride cannot cross two of them. */
bool berth__view_same_order(const berth_tensor *in, const berth__shape *shape, int64_t *stride) {
  if (berth__is_contiguous(in)) {
    berth__contiguous_strides(shape->rank, shape->dim, stride);
    return true;
  }
  berth__copy runs = {.rank = in->rank};
  memcpy(runs.dim, in->dim, sizeof runs.dim);
  memcpy(runs.from_stride, in->stride, sizeof runs.from_stride);
  memcpy(runs.to_stride, in->stride, sizeof runs.to_stride);
  berth__copy_join(&runs);
  uint32_t next = 0;
  for (uint32_t run = 0; run < runs.rank; run++) {
    const uint32_t first = next;
    int64_t count = 1, step = runs.from_stride[run];
    while (count < runs.dim[run]) count *= shape->dim[next++];
    if (count > runs.dim[run]) return false;
    for (uint32_t axis = next; axis-- > first; step *= shape->dim[axis]) stride[axis] = step;
  }
  for (; next < shape->rank; next++) stride[next] = 1; /* remaining axes of extent 1 */
  return true;
}

bool berth__view_reshaped(const berth_tensor *in, const berth_attr *attrs, const berth__shape *shape, berth_type type,
                          uint32_t out, int64_t *offset, int64_t *stride) {
  (void)attrs;
  (void)type;
  (void)out;
  *offset = 0;
  return berth__view_same_order(in, shape, stride);
}

berth_status berth__want_axes(const berth_attr *list, uint32_t rank, uint32_t *axes, berth_error *err) {
  *axes = 0;
  for (uint32_t k = 0; k < list->count; k++) {
    uint32_t axis;
    BERTH__TRY(berth__want_axis(list->ints[k], rank, &axis, err));
    if (*axes >> axis & 1u)
      return berth__fail(err, BERTH_INVALID, "axis %" PRIu32 " is named twice in `%s`", axis, list->name);
    *axes |= 1u << axis;
  }
  return BERTH_OK;
}
