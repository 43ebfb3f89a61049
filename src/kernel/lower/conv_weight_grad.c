/* conv_weight_grad: the number of threads per element of the weight depends on the length of its sum over images and
 * positions. */
#include "ops/conv_weight_grad.h"

#include "kernel/lower/rows.h"

typedef struct weight_grad {
  const berth__lowering *l;
  berth__weight_grad g;
  berth__x x, dy; /* offset of the element's channels */
  berth__x tap[BERTH__WINDOW_AXES];
} weight_grad;

/* The position that the tap reads on an axis; *is_in becomes false if that is outside. */
static berth__x lower_weight_grad_input(berth__kernel *k, const weight_grad *s, uint32_t axis, berth__x place,
                                        berth__x *is_in) {
  const berth__window_axis *w = &s->g.window.axis[axis];
  const berth__x zero = berth__x_i32(k, 0), end = berth__x_i32(k, w->in);
  const berth__x at = berth__x_add(k, berth__x_affine(k, place, w->stride, -w->begin),
                                   berth__x_affine(k, s->tap[axis], w->dilation, 0));
  const berth__x inside = berth__x_and(k, berth__x_le(k, zero, at), berth__x_lt(k, at, end));
  *is_in = *is_in == BERTH__X_NONE ? inside : berth__x_and(k, *is_in, inside);
  return berth__x_max(k, berth__x_min(k, at, berth__x_i32(k, w->in - 1)), zero);
}

static void lower_weight_grad_product(berth__kernel *k, const void *state, berth__x i, berth__x *values) {
  const weight_grad *s = state;
  const berth__window_axis *w = s->g.window.axis;
  const int64_t dim[] = {s->g.images, w[0].out, w[1].out, w[2].out};
  berth__x at[1 + BERTH__WINDOW_AXES], is_in = BERTH__X_NONE;
  berth__l_unravel(k, i, 1 + BERTH__WINDOW_AXES, dim, at);
  berth__x x = berth__x_add(k, s->x, berth__x_affine(k, at[0], s->g.x.image, 0));
  berth__x dy = berth__x_add(k, s->dy, berth__x_affine(k, at[0], s->g.dy.image, 0));
  for (uint32_t axis = 0; axis < BERTH__WINDOW_AXES; axis++) {
    const berth__x input = lower_weight_grad_input(k, s, axis, at[1 + axis], &is_in);
    x = berth__x_add(k, x, berth__x_affine(k, input, s->g.x.axis[axis], 0));
    dy = berth__x_add(k, dy, berth__x_affine(k, at[1 + axis], s->g.dy.axis[axis], 0));
  }
  const berth__x product = berth__x_mul(k, berth__l_load(s->l, k, BERTH__WEIGHT_GRAD_X, x),
                                        berth__l_load(s->l, k, BERTH__WEIGHT_GRAD_DY, dy));
  values[0] = berth__x_select(k, is_in, product, berth__x_f32(k, 0));
}

/* The channels and the tap of the element of a row; rows past the last one use the last one. */
static void lower_weight_grad_element(berth__kernel *k, weight_grad *s, berth__x row, int64_t count) {
  const berth__window_axis *w = s->g.window.axis;
  const int64_t each = s->g.channels / s->g.group, outputs = s->g.outputs / s->g.group;
  const int64_t dim[] = {s->g.group, outputs, each, w[0].kernel, w[1].kernel, w[2].kernel};
  berth__x at[6];
  berth__l_unravel(k, berth__x_min(k, row, berth__x_i32(k, count - 1)), 6, dim, at);
  s->x = berth__x_affine(k, berth__x_add(k, berth__x_affine(k, at[0], each, 0), at[2]), s->g.x.channel, 0);
  s->dy = berth__x_affine(k, berth__x_add(k, berth__x_affine(k, at[0], outputs, 0), at[1]), s->g.dy.channel, 0);
  for (uint32_t axis = 0; axis < BERTH__WINDOW_AXES; axis++) s->tap[axis] = at[3 + axis];
}

berth_status berth__lower_conv_weight_grad(berth__lowering *l, berth_error *err) {
  weight_grad s = {.l = l};
  const int64_t count = berth__count(&l->call->out[0]);
  if (count == 0) return BERTH_OK;
  berth__weight_grad_of(l->call, &s.g);
  const berth__window_axis *w = s.g.window.axis;
  berth__kernel *k = berth__l_begin(l, NULL);
  if (k == NULL) return berth__l_end(l, k, err);
  const bool is_empty = berth__count(&l->call->in[BERTH__WEIGHT_GRAD_X]) == 0; /* only padding is read */
  const int64_t length = is_empty ? 0 : s.g.images * w[0].out * w[1].out * w[2].out;
  berth__l_rows rows = berth__l_rows_of(l, k, count, length, true);
  berth__x sum = berth__x_f32(k, 0);
  const berth__l_fold fold = {.n = 1,
                              .start = {sum},
                              .is_sum = true,
                              .element = lower_weight_grad_product,
                              .join = berth__l_join_sums,
                              .state = &s};
  if (length > 0) {
    lower_weight_grad_element(k, &s, rows.row, count);
    berth__l_rows_fold(k, &rows, &fold, &sum);
  }
  berth__l_rows_once(k, &rows);
  berth__l_store(l, k, 0, berth__l_place_flat(k, &l->call->out[0], rows.row), sum);
  berth__x_end(k);
  return berth__l_end(l, k, err);
}
