/* dft: each number of the result is computed directly as a sum over the line. Angles are integer fractions of a turn,
 * so they stay exact however long the line is. */
#include "kernel/lower/math.h"
#include "kernel/lower/rows.h"

enum {
  REAL,
  IMAGINARY
};

#define SHORT (INT64_C(1) << 16) /* products of two numbers below it fit in 32 bits */
#define LONGEST (INT64_C(1) << 21)
#define HALF_BITS 1024

typedef struct transform {
  const berth__lowering *l;
  int64_t length, extent, kept, inner, parts; /* of the transform, and of the operand's and the result's axis */
  bool is_inverse, is_real;                   /* is_real: the spectrum is the first half of that of a real line */
  berth__x base;                              /* position of the line's first number */
  berth__x wave;                              /* i32: index of the result's number */
} transform;

/* i * wave modulo the length. */
static berth__x phase_of(berth__kernel *k, const transform *t, berth__x i) {
  const berth__x n = berth__x_convert(k, BERTH__NUM_U32, i), wave = berth__x_convert(k, BERTH__NUM_U32, t->wave);
  const berth__x length = berth__x_u32(k, (uint32_t)t->length);
  if (t->length <= SHORT) return berth__x_rem(k, berth__x_mul(k, n, wave), length);
  const berth__x half = berth__x_u32(k, HALF_BITS);
  const berth__x high = berth__x_rem(k, berth__x_mul(k, berth__x_div(k, n, half), wave), length);
  const berth__x low = berth__x_rem(k, berth__x_mul(k, berth__x_rem(k, n, half), wave), length);
  return berth__x_rem(k, berth__x_add(k, berth__x_mul(k, high, half), low), length);
}

/* phase / length of a turn, in parts of 2^32. */
static berth__x turns_of(berth__kernel *k, const transform *t, berth__x phase) {
  const uint64_t turn = UINT64_C(1) << 32, length = (uint64_t)t->length;
  const berth__x whole = berth__x_mul(k, phase, berth__x_u32(k, (uint32_t)(turn / length)));
  const float left = (float)((double)(turn % length) / (double)length);
  const berth__x rest = berth__m_scale(k, berth__x_convert(k, BERTH__NUM_F32, phase), left);
  return berth__x_add(k, whole, berth__x_convert(k, BERTH__NUM_U32, rest));
}

/* Whether a number of a real line's spectrum stands for itself: the first one, and for even lengths the middle one,
 * whose imaginary parts do not count. The others stand for two. */
static berth__x is_alone(berth__kernel *k, const transform *t, berth__x i) {
  const berth__x is_first = berth__x_eq(k, i, berth__x_i32(k, 0));
  if (t->length % 2 != 0) return is_first;
  return berth__x_or(k, is_first, berth__x_eq(k, i, berth__x_i32(k, t->length / 2)));
}

static void load_product(berth__kernel *k, const void *state, berth__x i, berth__x *values) {
  const transform *t = state;
  const berth__x place = berth__x_add(k, t->base, berth__x_affine(k, i, t->inner * t->parts, 0));
  const berth__x re = berth__l_load(t->l, k, BERTH__DFT_X, place);
  berth__x sine, cosine;
  berth__m_sin_cos_of_turns(k, turns_of(k, t, phase_of(k, t, i)), &sine, &cosine);
  if (!t->is_inverse) sine = berth__x1(k, BERTH__INST_neg, sine);
  values[REAL] = berth__x_mul(k, re, cosine);
  values[IMAGINARY] = berth__x_mul(k, re, sine);
  if (t->parts == 1) return;
  const berth__x im = berth__l_load(t->l, k, BERTH__DFT_X, berth__x_affine(k, place, 1, 1));
  const berth__x turned = berth__x_sub(k, values[REAL], berth__x_mul(k, im, sine));
  values[IMAGINARY] = berth__x_add(k, values[IMAGINARY], berth__x_mul(k, im, cosine));
  values[REAL] =
      t->is_real ? berth__x_select(k, is_alone(k, t, i), values[REAL], berth__x_add(k, turned, turned)) : turned;
}

static transform lower_dft_describe(const berth__lowering *l) {
  const berth_op_call *call = l->call;
  const berth_tensor *x = &call->in[BERTH__DFT_X];
  const uint32_t axis = (uint32_t)(call->attrs[BERTH__DFT_AXIS].i < 0 ? call->attrs[BERTH__DFT_AXIS].i + x->rank
                                                                      : call->attrs[BERTH__DFT_AXIS].i);
  transform t = {.l = l,
                 .extent = x->dim[axis],
                 .kept = call->out[0].dim[axis],
                 .inner = 1,
                 .parts = x->dim[x->rank - 1],
                 .is_inverse = call->attrs[BERTH__DFT_INVERSE].i != 0};
  t.is_real = t.is_inverse && call->attrs[BERTH__DFT_ONESIDED].i != 0;
  for (uint32_t i = axis + 1; i + 1 < x->rank; i++) t.inner *= x->dim[i];
  t.length = call->attrs[BERTH__DFT_LENGTH].count != 0 ? call->attrs[BERTH__DFT_LENGTH].ints[0]
             : t.is_real                               ? 2 * (t.extent - 1)
                                                       : t.extent;
  return t;
}

static void lower_dft_store_number(berth__kernel *k, const transform *t, berth__x row, const berth__x *sums) {
  const int64_t parts = t->is_real ? 1 : 2;
  for (int64_t part = 0; part < parts; part++) {
    const berth__x value = t->is_inverse ? berth__m_scale(k, sums[part], 1.0f / (float)t->length) : sums[part];
    const berth__x index = berth__x_affine(k, row, parts, part);
    berth__l_store(t->l, k, 0, berth__l_place_flat(k, &t->l->call->out[0], index), value);
  }
}

berth_status berth__lower_dft(berth__lowering *l, berth_error *err) {
  if (berth__l_has(l, BERTH__DFT_LENGTH_OPERAND) || berth__l_has(l, BERTH__DFT_AXIS_OPERAND))
    return berth__fail(err, BERTH_UNSUPPORTED,
                       "its length or axis is an operand, but GPU kernels need them in advance");
  transform t = lower_dft_describe(l);
  const int64_t count = berth__count(&l->call->out[0]) / (t.is_real ? 1 : 2);
  if (count == 0) return BERTH_OK;
  if (t.length > LONGEST) return berth__fail(err, BERTH_UNSUPPORTED, "lines of more than 2^21 numbers have no kernel");
  berth__kernel *k = berth__l_begin(l, NULL);
  if (k == NULL) return berth__l_end(l, k, err);
  const int64_t taken = t.is_real ? t.length / 2 + 1 : t.length;
  const int64_t filled = taken < t.extent ? taken : t.extent; /* the rest is zeros */
  berth__l_rows rows = berth__l_rows_of(l, k, count, filled, false);
  const berth__x inner = berth__x_i32(k, t.inner), line = berth__x_div(k, rows.row, inner);
  const berth__x kept = berth__x_i32(k, t.kept), outer = berth__x_div(k, line, kept);
  t.wave = berth__x_rem(k, line, kept);
  t.base = berth__x_add(k, berth__x_affine(k, outer, t.extent * t.inner, 0), berth__x_rem(k, rows.row, inner));
  t.base = berth__x_affine(k, t.base, t.parts, 0);
  const berth__x zero = berth__x_f32(k, 0);
  const berth__l_fold fold = {
      .n = 2, .start = {zero, zero}, .is_sum = true, .element = load_product, .join = berth__l_join_sums, .state = &t};
  berth__x sums[BERTH__FOLD_VALUES];
  berth__l_rows_fold(k, &rows, &fold, sums);
  berth__l_rows_once(k, &rows);
  lower_dft_store_number(k, &t, rows.row, sums);
  return berth__l_end(l, k, err);
}
