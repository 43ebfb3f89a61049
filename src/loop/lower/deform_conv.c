/* deform_conv: one thread a result. */
#include "loop/lower.h"
#include "ops/conv.h"

enum { /* operands */
  X,
  WEIGHT,
  OFFSET,
  BIAS,
  MASK
};
#define OFFSET_GROUP BERTH__CONV_ATTRS

typedef struct work {
  berth__lowering *l;
  berth__kernel *k;
  berth__conv conv;
  berth__x image, output, row, column; /* of the result */
} work;

/* An element of a map of x, 0 outside it. */
static berth__x element_at(const work *w, berth__x plane, berth__x row, berth__x column) {
  berth__kernel *k = w->k;
  const berth_tensor *x = &w->l->call->in[X];
  const berth__x zero = berth__x_i32(k, 0);
  berth__x inside = berth__x_and(k, berth__x_le(k, zero, row), berth__x_lt(k, row, berth__x_i32(k, x->dim[2])));
  inside = berth__x_and(k, inside, berth__x_le(k, zero, column));
  inside = berth__x_and(k, inside, berth__x_lt(k, column, berth__x_i32(k, x->dim[3])));
  const berth__x at = berth__x_add(k, plane, berth__x_add(k, berth__x_affine(k, row, x->dim[3], 0), column));
  const berth__x value = berth__l_load(w->l, k, X, berth__x_select(k, inside, at, zero));
  return berth__x_select(k, inside, value, berth__x_f32(k, 0));
}

static berth__x between(berth__kernel *k, berth__x a, berth__x b, berth__x part) {
  const berth__x rest = berth__x_sub(k, berth__x_f32(k, 1), part);
  return berth__x_add(k, berth__x_mul(k, rest, a), berth__x_mul(k, part, b));
}

/* Between four elements; a place that is no number sees 0. */
static berth__x look(const work *w, berth__x plane, berth__x y, berth__x z) {
  berth__kernel *k = w->k;
  const berth_tensor *x = &w->l->call->in[X];
  const berth__x least = berth__x_f32(k, -1), zero = berth__x_f32(k, 0);
  berth__x sees = berth__x_and(k, berth__x_lt(k, least, y), berth__x_lt(k, y, berth__x_f32(k, (float)x->dim[2])));
  sees = berth__x_and(k, sees, berth__x_lt(k, least, z));
  sees = berth__x_and(k, sees, berth__x_lt(k, z, berth__x_f32(k, (float)x->dim[3])));
  y = berth__x_select(k, sees, y, zero);
  z = berth__x_select(k, sees, z, zero);
  const berth__x top = berth__x1(k, BERTH__INST_floor, y), left = berth__x1(k, BERTH__INST_floor, z);
  const berth__x row = berth__x_convert(k, BERTH__NUM_I32, top), column = berth__x_convert(k, BERTH__NUM_I32, left);
  const berth__x below = berth__x_affine(k, row, 1, 1), beside = berth__x_affine(k, column, 1, 1);
  const berth__x right = berth__x_sub(k, z, left);
  const berth__x upper = between(k, element_at(w, plane, row, column), element_at(w, plane, row, beside), right);
  const berth__x lower = between(k, element_at(w, plane, below, column), element_at(w, plane, below, beside), right);
  return berth__x_select(k, sees, between(k, upper, lower, berth__x_sub(k, y, top)), zero);
}

/* An entry of the map that moves taps or weighs them. */
static berth__x map_at(const work *w, uint32_t operand, berth__x entry) {
  berth__kernel *k = w->k;
  const berth_tensor *out = &w->l->call->out[0];
  const berth__x at = berth__x_add(k, berth__x_affine(k, entry, out->dim[2], 0), w->row);
  return berth__l_load(w->l, k, operand, berth__x_add(k, berth__x_affine(k, at, out->dim[3], 0), w->column));
}

/* What a tap (its number, and its row and column in the kernel) sees of a channel. */
static berth__x see(const work *w, berth__x channel, berth__x tap_row, berth__x tap_column) {
  berth__kernel *k = w->k;
  const berth_tensor *x = &w->l->call->in[X];
  const berth__window_axis *axis = w->conv.window.axis + 1;
  const int64_t groups = w->l->call->attrs[OFFSET_GROUP].i;
  const berth__x group = berth__x_div(k, channel, berth__x_i32(k, x->dim[1] / groups));
  const berth__x tap = berth__x_add(k, berth__x_affine(k, tap_row, axis[1].kernel, 0), tap_column);
  const berth__x of_group = berth__x_add(k, berth__x_affine(k, w->image, groups, 0), group);
  const berth__x entry = berth__x_add(k, berth__x_affine(k, of_group, w->conv.taps, 0), tap);
  const berth__x down = berth__x_add(k, berth__x_affine(k, w->row, axis[0].stride, -axis[0].begin),
                                     berth__x_affine(k, tap_row, axis[0].dilation, 0));
  const berth__x across = berth__x_add(k, berth__x_affine(k, w->column, axis[1].stride, -axis[1].begin),
                                       berth__x_affine(k, tap_column, axis[1].dilation, 0));
  const berth__x y =
      berth__x_add(k, berth__x_convert(k, BERTH__NUM_F32, down), map_at(w, OFFSET, berth__x_affine(k, entry, 2, 0)));
  const berth__x z =
      berth__x_add(k, berth__x_convert(k, BERTH__NUM_F32, across), map_at(w, OFFSET, berth__x_affine(k, entry, 2, 1)));
  const berth__x map = berth__x_add(k, berth__x_affine(k, w->image, x->dim[1], 0), channel);
  const berth__x seen = look(w, berth__x_affine(k, map, x->dim[2] * x->dim[3], 0), y, z);
  return berth__l_has(w->l, MASK) ? berth__x_mul(k, map_at(w, MASK, entry), seen) : seen;
}

static berth__x sum_taps(const work *w) {
  berth__kernel *k = w->k;
  const berth_tensor *weight = &w->l->call->in[WEIGHT];
  const int64_t channels = weight->dim[1], outputs = weight->dim[0] / w->l->call->attrs[BERTH__CONV_GROUP].i;
  const berth__x sum = berth__x_variable(k, berth__x_f32(k, 0));
  const berth__x group = berth__x_div(k, w->output, berth__x_i32(k, outputs));
  const berth__x c = berth__x_loop_n(k, channels);
  const berth__x i = berth__x_loop_n(k, weight->dim[2]), j = berth__x_loop_n(k, weight->dim[3]);
  const berth__x factor =
      berth__l_load(w->l, k, WEIGHT, berth__l_place(k, weight, (const berth__x[]){w->output, c, i, j}));
  const berth__x seen = see(w, berth__x_add(k, berth__x_affine(k, group, channels, 0), c), i, j);
  berth__x_set(k, sum, berth__x3(k, BERTH__INST_fma, seen, factor, berth__x_get(k, sum)));
  for (int n = 0; n < 3; n++) berth__x_end(k);
  return berth__x_get(k, sum);
}

berth_status berth__lower_deform_conv(berth__lowering *l, berth_error *err) {
  const berth_tensor *out = &l->call->out[0];
  const int64_t count = berth__count(out);
  work w = {.l = l};
  if (count == 0) return BERTH_OK;
  berth__kernel *k = w.k = berth__l_begin(l, NULL);
  if (k == NULL) return berth__l_end(l, k, err);
  berth__x at[4];
  berth__conv_read(l->call, &w.conv);
  k->flops = 2.0 * (double)count * (double)(l->call->in[WEIGHT].dim[1] * w.conv.taps);
  k->bytes = 4.0 * (double)(count + berth__count(&l->call->in[X]) + berth__count(&l->call->in[WEIGHT]) +
                            berth__count(&l->call->in[OFFSET]));
  berth__l_unravel(k, berth__l_each(l, k, count), 4, out->dim, at);
  w.image = at[0];
  w.output = at[1];
  w.row = at[2];
  w.column = at[3];
  const bool is_empty = berth__count(&l->call->in[X]) == 0 || berth__count(&l->call->in[WEIGHT]) == 0;
  berth__x sum = is_empty ? berth__x_f32(k, 0) : sum_taps(&w);
  if (berth__l_has(l, BIAS))
    sum = berth__x_add(k, sum, berth__l_load(l, k, BIAS, berth__x_affine(k, w.output, l->call->in[BIAS].stride[0], 0)));
  berth__l_store(l, k, 0, berth__l_place(k, out, at), sum);
  return berth__l_end(l, k, err);
}
