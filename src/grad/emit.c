/* Adds the nodes of gradients. After a failure, the functions here do nothing. */
#include "base/math.h"
#include "grad/grad.h"

void berth__grad_ops(berth__grad *d, berth__op_code op, const berth_value *in, size_t n_in, const berth_attr *attrs,
                     size_t n_attrs, berth_value *out, size_t n_out) {
  for (size_t i = 0; i < n_out; i++) out[i] = BERTH_VALUE_NONE;
  if (!berth__grad_ok(d)) return;
  d->status = berth__graph_add_op(d->graph, berth__op_builtin(op), in, n_in, attrs, n_attrs, NULL, out, n_out, d->err);
}

berth_value berth__grad_op(berth__grad *d, berth__op_code op, const berth_value *in, size_t n_in,
                           const berth_attr *attrs, size_t n_attrs) {
  berth_value out;
  berth__grad_ops(d, op, in, n_in, attrs, n_attrs, &out, 1);
  return out;
}

berth_value berth__grad_1(berth__grad *d, berth__op_code op, berth_value a) {
  return berth__grad_op(d, op, &a, 1, NULL, 0);
}

berth_value berth__grad_2(berth__grad *d, berth__op_code op, berth_value a, berth_value b) {
  const berth_value in[] = {a, b};
  return berth__grad_op(d, op, in, 2, NULL, 0);
}

berth_value berth__grad_num(berth__grad *d, berth__op_code op, berth_value a, double number) {
  return berth__grad_2(d, op, a, berth__grad_scalar(d, berth__grad_type(d, a), number));
}

berth_value berth__grad_num_first(berth__grad *d, berth__op_code op, double number, berth_value a) {
  return berth__grad_2(d, op, berth__grad_scalar(d, berth__grad_type(d, a), number), a);
}

berth_value berth__grad_where(berth__grad *d, berth_value condition, berth_value a, berth_value b) {
  const berth_value in[] = {condition, a, b};
  return berth__grad_op(d, BERTH__OP_where, in, 3, NULL, 0);
}

berth_value berth__grad_tensor(berth__grad *d, berth_type type, uint32_t rank, const int64_t *dim,
                               const double *elements) {
  berth_value out = BERTH_VALUE_NONE;
  berth__value value = {.type = type, .shape = {.rank = rank}};
  uint64_t size;
  if (!berth__grad_ok(d)) return out;
  if (rank != 0) memcpy(value.shape.dim, dim, rank * sizeof *dim);
  if (!berth__value_size(&value, &size)) {
    berth__grad_fail(d, BERTH_INVALID, "a constant of its gradient is too large");
    return out;
  }
  void *data = berth__alloc_u64(d->graph->ctx, size);
  if (data == NULL) {
    d->status = berth__fail_nomem(d->err, "a constant");
    return out;
  }
  const berth_tensor tensor = berth__value_tensor(&value, data);
  const int64_t count = berth__count(&tensor);
  for (int64_t i = 0; i < count; i++) berth__store_f64(&tensor, i, elements[i]);
  d->status =
      berth_graph_constant(d->graph, NULL, type, berth_shape_fixed(rank, dim), data, (size_t)size, &out, d->err);
  berth__free(d->graph->ctx, data);
  return out;
}

berth_value berth__grad_scalar(berth__grad *d, berth_type type, double number) {
  return berth__grad_tensor(d, type, 0, NULL, &number);
}

berth_value berth__grad_ints(berth__grad *d, const int64_t *entries, uint32_t n) {
  berth_value out = BERTH_VALUE_NONE;
  const int64_t dim[] = {n};
  if (berth__grad_ok(d))
    d->status = berth_graph_constant(d->graph, NULL, BERTH_I64, berth_shape_fixed(1, dim), entries, n * sizeof *entries,
                                     &out, d->err);
  return out;
}

berth__shape berth__grad_shape(const berth__grad *d, berth_value value) {
  return berth__grad_ok(d) ? d->graph->values[value].shape : (berth__shape){.rank = 0};
}

berth_type berth__grad_type(const berth__grad *d, berth_value value) {
  return berth__grad_ok(d) ? d->graph->values[value].type : BERTH_F32;
}

bool berth__grad_fixed(berth__grad *d, berth_value value) {
  const berth__shape shape = berth__grad_shape(d, value);
  int64_t count;
  if (!berth__grad_ok(d)) return false;
  if (berth__shape_count(&shape, &count)) return true;
  berth__grad_fail(d, BERTH_UNSUPPORTED,
                   "its gradient needs all extents of '%s', some of which are not known before dimensions are bound; "
                   "bind the graph first",
                   d->graph->values[value].name);
  return false;
}

uint32_t berth__grad_axis(berth__grad *d, int64_t axis, uint32_t rank) {
  uint32_t out = 0;
  if (berth__grad_ok(d)) d->status = berth__want_axis(axis, rank, &out, d->err);
  return berth__grad_ok(d) ? out : 0;
}

berth_value berth__grad_cast(berth__grad *d, berth_value a, berth_type type) {
  if (!berth__grad_ok(d) || berth__grad_type(d, a) == type) return a;
  const berth_attr to = berth_attr_string("to", berth_type_name(type));
  return berth__grad_op(d, BERTH__OP_cast, &a, 1, &to, 1);
}

/* To the shape in an op's attribute; an unknown extent is taken from `like` when the graph is bound. */
static berth_value grad_to_shape(berth__grad *d, berth__op_code op, berth_value a, const berth__shape *shape,
                                 berth_value like) {
  if (!berth__grad_ok(d)) return BERTH_VALUE_NONE;
  const berth_shape shown = berth__shape_export(d->graph, shape);
  bool is_known = true;
  for (uint32_t i = 0; i < shape->rank; i++) is_known = is_known && shape->dim[i] != BERTH__DIM_UNKNOWN;
  berth_attr attrs[2] = {berth_attr_int("allowzero", 1), berth_attr_dims("shape", shown.dim, shape->rank)};
  const size_t n_attrs = op == BERTH__OP_reshape ? 2 : 1;
  if (is_known) return berth__grad_op(d, op, &a, 1, attrs + 2 - n_attrs, n_attrs);
  if (like == BERTH_VALUE_NONE) {
    berth__grad_fail(d, BERTH_UNSUPPORTED,
                     "its gradient needs extents that are not known before dimensions are bound; "
                     "bind the graph first");
    return BERTH_VALUE_NONE;
  }
  const berth_value in[] = {a, berth__grad_1(d, BERTH__OP_shape, like)};
  return berth__grad_op(d, op, in, 2, attrs, n_attrs - 1);
}

static bool grad_has_shape(const berth__grad *d, berth_value a, const berth__shape *shape) {
  const berth__shape own = berth__grad_shape(d, a);
  for (uint32_t i = 0; i < own.rank; i++)
    if (own.dim[i] == BERTH__DIM_UNKNOWN) return false;
  return berth__shape_equal(&own, shape);
}

berth_value berth__grad_reshape(berth__grad *d, berth_value a, const berth__shape *shape) {
  if (!berth__grad_ok(d) || grad_has_shape(d, a, shape)) return a;
  return grad_to_shape(d, BERTH__OP_reshape, a, shape, BERTH_VALUE_NONE);
}

berth_value berth__grad_reshape_like(berth__grad *d, berth_value a, berth_value like) {
  const berth__shape shape = berth__grad_shape(d, like);
  if (!berth__grad_ok(d) || grad_has_shape(d, a, &shape)) return a;
  return grad_to_shape(d, BERTH__OP_reshape, a, &shape, like);
}

berth_value berth__grad_expand_like(berth__grad *d, berth_value a, berth_value like) {
  const berth__shape shape = berth__grad_shape(d, like);
  if (!berth__grad_ok(d) || grad_has_shape(d, a, &shape)) return a;
  return grad_to_shape(d, BERTH__OP_expand, a, &shape, like);
}

berth_value berth__grad_unsqueeze(berth__grad *d, berth_value a, const int64_t *axes, uint32_t n) {
  const berth_attr attr = berth_attr_ints("axes", axes, n);
  return n == 0 ? a : berth__grad_op(d, BERTH__OP_unsqueeze, &a, 1, &attr, 1);
}

berth_value berth__grad_full_like(berth__grad *d, berth_value like, double number) {
  return berth__grad_expand_like(d, berth__grad_scalar(d, berth__grad_type(d, like), number), like);
}

#define GRAD_SMALL 65536 /* bytes up to which it may be a constant */

berth_value berth__grad_zeros_like(berth__grad *d, berth_value like) {
  uint64_t size;
  if (!berth__grad_ok(d)) return BERTH_VALUE_NONE;
  if (berth__value_size(&d->graph->values[like], &size) && size <= GRAD_SMALL) return berth__grad_full_like(d, like, 0);
  const berth__shape scalar = {.rank = 0};
  const berth_value no = berth__grad_reshape(d, berth__grad_2(d, BERTH__OP_lt, d->loss, d->loss), &scalar);
  return berth__grad_expand_like(d, berth__grad_cast(d, no, berth__grad_type(d, like)), like);
}

berth_value berth__grad_reduce(berth__grad *d, berth__op_code op, berth_value a, const int64_t *axes, uint32_t n,
                               bool keeps) {
  const berth_attr attrs[2] = {berth_attr_ints("axes", axes, n), berth_attr_int("keepdims", keeps)};
  return n == 0 ? a : berth__grad_op(d, op, &a, 1, attrs, 2);
}

berth_value berth__grad_sum_last(berth__grad *d, berth_value a) {
  const int64_t axis = -1;
  return berth__grad_reduce(d, BERTH__OP_reduce_sum, a, &axis, 1, true);
}

berth_value berth__grad_sum_to(berth__grad *d, berth_value a, berth_value like) {
  const berth__shape from = berth__grad_shape(d, a), to = berth__grad_shape(d, like);
  int64_t axes[BERTH_MAX_RANK] = {0};
  uint32_t n = 0;
  if (!berth__grad_ok(d)) return BERTH_VALUE_NONE;
  if (from.rank < to.rank) return berth__grad_reshape_like(d, a, like); /* axes of extent 1 that were removed */
  const uint32_t before = from.rank - to.rank;
  for (uint32_t i = 0; i < from.rank; i++) {
    const int64_t extent = i < before ? 1 : to.dim[i - before];
    if (i < before || (extent == 1 && from.dim[i] != 1)) axes[n++] = i;
    if (extent == 1 || (extent == from.dim[i] && extent != BERTH__DIM_UNKNOWN)) continue;
    if (berth__dim_is_fixed(extent)) continue; /* the other extent is open, and has no other choice */
    berth__grad_fail(d, BERTH_UNSUPPORTED,
                     "whether axis %u of '%s' is broadcast is not known before dimensions are bound; bind the graph "
                     "first",
                     i - before, d->graph->values[like].name);
    return BERTH_VALUE_NONE;
  }
  a = berth__grad_reduce(d, BERTH__OP_reduce_sum, a, axes, n, false);
  return n == 0 ? a : berth__grad_reshape_like(d, a, like);
}

berth_value berth__grad_transpose(berth__grad *d, berth_value a, const int64_t *perm) {
  const berth_attr attr = berth_attr_ints("perm", perm, berth__grad_rank(d, a));
  return berth__grad_op(d, BERTH__OP_transpose, &a, 1, &attr, 1);
}

berth_value berth__grad_swap_last(berth__grad *d, berth_value a) {
  const uint32_t rank = berth__grad_rank(d, a);
  int64_t perm[BERTH_MAX_RANK] = {0};
  for (uint32_t i = 0; i < rank; i++) perm[i] = i;
  if (rank < 2) return a;
  perm[rank - 2] = rank - 1;
  perm[rank - 1] = rank - 2;
  return berth__grad_transpose(d, a, perm);
}

berth_value berth__grad_move_axis(berth__grad *d, berth_value a, uint32_t from, uint32_t to) {
  const uint32_t rank = berth__grad_rank(d, a);
  int64_t perm[BERTH_MAX_RANK] = {0};
  uint32_t next = 0;
  if (!berth__grad_ok(d) || from == to) return a;
  for (uint32_t i = 0; i < rank; i++) {
    if (i == to) {
      perm[i] = from;
      continue;
    }
    if (next == from) next++;
    perm[i] = next++;
  }
  return berth__grad_transpose(d, a, perm);
}

berth_value berth__grad_narrow(berth__grad *d, berth_value a, uint32_t axis, int64_t start, int64_t end) {
  const int64_t axes[] = {axis};
  const berth_attr attrs[3] = {berth_attr_ints("axes", axes, 1), berth_attr_ints("starts", &start, 1),
                               berth_attr_ints("ends", &end, 1)};
  return berth__grad_op(d, BERTH__OP_narrow, &a, 1, attrs, 3);
}

berth_value berth__grad_ratio(berth__grad *d, berth_value a, berth_value b) {
  const berth__shape of_a = berth__grad_shape(d, a), of_b = berth__grad_shape(d, b);
  const berth_type type = berth__grad_type(d, a);
  int64_t count_a, count_b;
  if (!berth__grad_ok(d)) return BERTH_VALUE_NONE;
  if (berth__shape_count(&of_a, &count_a) && berth__shape_count(&of_b, &count_b))
    return berth__grad_scalar(d, type, count_b == 0 ? 0 : (double)count_a / (double)count_b);
  return berth__grad_2(d, BERTH__OP_div, berth__grad_cast(d, berth__grad_1(d, BERTH__OP_size, a), type),
                       berth__grad_cast(d, berth__grad_1(d, BERTH__OP_size, b), type));
}

bool berth__grad_read_list(berth__grad *d, uint32_t operand, uint32_t attr, berth__grad_list *out) {
  const berth_attr *list = &d->node.attrs[attr];
  out->n = 0;
  if (!berth__grad_ok(d)) return false;
  if (!berth__grad_has(d, operand)) {
    const bool is_dims = list->kind == BERTH_ATTR_DIMS;
    for (; out->n < list->count && out->n < BERTH__GRAD_MAX_LIST; out->n++)
      out->entry[out->n] = is_dims ? list->dims[out->n].extent : list->ints[out->n];
    return true;
  }
  const berth__value *value = &d->graph->values[berth__grad_in(d, operand)];
  int64_t count;
  if (value->blob == NULL || !berth__shape_count(&value->shape, &count) || count > BERTH__GRAD_MAX_LIST) {
    berth__grad_fail(d, BERTH_UNSUPPORTED, "its gradient needs the elements of '%s', which are not known before a run",
                     value->name);
    return false;
  }
  const berth_tensor tensor = berth__value_tensor(value, value->data);
  for (; out->n < count; out->n++) out->entry[out->n] = berth__load_i64(&tensor, out->n);
  return true;
}
