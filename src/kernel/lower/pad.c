/* pad: adds elements around a tensor. Negative pads crop, before the others are added. */
#include "kernel/lower/copy.h"
#include "ops/operand.h"

/* The change of an axis: `kept` elements from `crop` on, with `before` elements before them. */
typedef struct margin {
  int64_t crop, kept, before;
} margin;

static margin lower_pad_margin_of(int64_t extent, int64_t begin, int64_t end) {
  margin m = {.crop = begin < 0 ? -begin : 0, .before = begin > 0 ? begin : 0};
  m.kept = extent - m.crop + (end < 0 ? end : 0);
  return m;
}

static void read_margins(const berth_op_call *call, margin *margins) {
  const berth_tensor *in = &call->in[0];
  berth__list pads, axes;
  berth__attr_list(&call->attrs[BERTH__PAD_PADS], &pads);
  berth__attr_list(&call->attrs[BERTH__PAD_AXES], &axes);
  for (uint32_t axis = 0; axis < in->rank; axis++) margins[axis] = lower_pad_margin_of(in->dim[axis], 0, 0);
  for (uint32_t i = 0, n = pads.count / 2; i < n; i++) {
    const int64_t given = axes.given ? axes.at[i] : i;
    const uint32_t axis = (uint32_t)(given < 0 ? given + in->rank : given);
    margins[axis] = lower_pad_margin_of(in->dim[axis], pads.at[i], pads.at[n + i]);
  }
}

/* A multiple of the period that makes every index of the result non-negative. */
static int64_t lift(int64_t before, int64_t period) { return (before + period - 1) / period * period; }

/* Maps index `i`, which may be outside the kept elements, to one of them. */
static berth__x found(berth__kernel *k, const margin *m, const char *mode, berth__x i) {
  if (m->kept == 1) return berth__x_i32(k, 0);
  if (strcmp(mode, "edge") == 0)
    return berth__x_max(k, berth__x_min(k, i, berth__x_i32(k, m->kept - 1)), berth__x_i32(k, 0));
  const bool wraps = strcmp(mode, "wrap") == 0;
  const int64_t period = wraps ? m->kept : 2 * (m->kept - 1); /* back and forth, without repeating the ends */
  const berth__x in_period =
      berth__x_rem(k, berth__x_affine(k, i, 1, lift(m->before, period)), berth__x_i32(k, period));
  if (wraps) return in_period;
  return berth__x_min(k, in_period, berth__x_affine(k, in_period, -1, period));
}

static berth__x pad_value(const berth__lowering *l, berth__kernel *k) {
  const berth_type type = l->call->in[0].type;
  if (berth__l_has(l, BERTH__PAD_VALUE_OPERAND))
    return berth__l_load(l, k, BERTH__PAD_VALUE_OPERAND, berth__x_i32(k, 0));
  return berth__l_cast(k, berth__x_f32(k, (float)l->call->attrs[BERTH__PAD_VALUE].f), BERTH_F32, type);
}

/* Elements of the operand, or `value` if an axis says that there is none. */
static berth__x lower_pad_padded(const berth__lowering *l, berth__kernel *k, const margin *margins,
                                 const berth__x *at) {
  const berth_tensor *in = &l->call->in[0];
  berth__x from[BERTH_MAX_RANK], inside = berth__x_bool(k, true);
  for (uint32_t axis = 0; axis < in->rank; axis++) {
    const margin *m = &margins[axis];
    const berth__x i = berth__x_affine(k, at[axis], 1, -m->before);
    inside = berth__x_and(k, inside, berth__x_le(k, berth__x_i32(k, 0), i));
    inside = berth__x_and(k, inside, berth__x_lt(k, i, berth__x_i32(k, m->kept)));
    from[axis] = berth__x_affine(k, i, 1, m->crop);
  }
  const berth__x value = berth__x_variable(k, pad_value(l, k));
  berth__x_if(k, inside);
  berth__x_set(k, value, berth__l_load(l, k, 0, berth__l_place(k, in, from)));
  berth__x_end(k);
  return berth__x_get(k, value);
}

static berth__x lower_pad_repeated(const berth__lowering *l, berth__kernel *k, const margin *margins,
                                   const berth__x *at) {
  const berth_tensor *in = &l->call->in[0];
  berth__x from[BERTH_MAX_RANK];
  for (uint32_t axis = 0; axis < in->rank; axis++) {
    const berth__x i = berth__x_affine(k, at[axis], 1, -margins[axis].before);
    from[axis] =
        berth__x_affine(k, found(k, &margins[axis], l->call->attrs[BERTH__PAD_MODE].s, i), 1, margins[axis].crop);
  }
  return berth__l_load(l, k, 0, berth__l_place(k, in, from));
}

berth_status berth__lower_pad(berth__lowering *l, berth_error *err) {
  const berth_tensor *out = &l->call->out[0];
  const bool is_constant = strcmp(l->call->attrs[BERTH__PAD_MODE].s, "constant") == 0;
  margin margins[BERTH_MAX_RANK];
  berth__x at[BERTH_MAX_RANK];
  if (berth__l_has(l, BERTH__PAD_PADS_OPERAND) || berth__l_has(l, BERTH__PAD_AXES_OPERAND))
    return berth__fail(err, BERTH_UNSUPPORTED, "only a run knows its pads, but GPU kernels are compiled before it");
  if (berth__count(out) == 0) return BERTH_OK;
  read_margins(l->call, margins);
  berth__kernel *k = berth__l_begin(l, l->call->attrs[BERTH__PAD_MODE].s);
  berth__l_unravel(k, berth__l_each(l, k, berth__count(out)), out->rank, out->dim, at);
  const berth__x value = is_constant ? lower_pad_padded(l, k, margins, at) : lower_pad_repeated(l, k, margins, at);
  berth__l_store(l, k, 0, berth__l_place(k, out, at), value);
  return berth__l_end(l, k, err);
}
