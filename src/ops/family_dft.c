/* dft: the discrete Fourier transform along an axis. The last axis of x has extent 1 (real) or 2 (complex), that of the
 * result 2; the axis may first be truncated or zero-padded to `length`. A one-sided inverse takes the first half of the
 * spectrum of a real line and returns that line. In f64; an item is one line. Lines whose length is a power of two take
 * n log n steps, the others n^2. */
#include <inttypes.h>
#include <math.h>

#include "base/math.h"
#include "ops/dft.h"
#include "ops/operand.h"

static const berth_attr attrs[] = {[BERTH__DFT_AXIS] = {.name = "axis", .kind = BERTH_ATTR_INT, .i = -2},
                                   [BERTH__DFT_INVERSE] = {.name = "inverse", .kind = BERTH_ATTR_INT},
                                   [BERTH__DFT_ONESIDED] = {.name = "onesided", .kind = BERTH_ATTR_INT},
                                   [BERTH__DFT_LENGTH] = {.name = "length", .kind = BERTH_ATTR_INTS}};

static bool is_real_inverse(const berth_attr *attr) {
  return attr[BERTH__DFT_ONESIDED].i != 0 && attr[BERTH__DFT_INVERSE].i != 0;
}

static berth_status result_extent(berth__infer *infer, int64_t extent, int64_t *out, berth_error *err) {
  berth__list length;
  BERTH__TRY(berth__infer_list(infer, BERTH__DFT_LENGTH, 1, &length, err));
  if (length.given && length.count != 1)
    return berth__fail(err, BERTH_INVALID, "the length has %" PRIu32 " entries, expected one", length.count);
  if (length.given && length.known && length.at[0] < 0)
    return berth__fail(err, BERTH_INVALID, "the length is %" PRId64 ", expected 1 or more", length.at[0]);
  if (is_real_inverse(infer->attrs)) extent = berth__dim_is_fixed(extent) ? 2 * (extent - 1) : BERTH__DIM_UNKNOWN;
  *out = !length.given ? extent : length.known ? length.at[0] : BERTH__DIM_UNKNOWN;
  if (berth__dim_is_fixed(*out) && *out < 1)
    return berth__fail(err, BERTH_INVALID, "the length is %" PRId64 ", expected 1 or more", *out);
  if (infer->attrs[BERTH__DFT_ONESIDED].i == 0 || is_real_inverse(infer->attrs)) return BERTH_OK;
  *out = berth__dim_is_fixed(*out) ? *out / 2 + 1 : BERTH__DIM_UNKNOWN;
  return BERTH_OK;
}

static berth_status check_parts(const berth__infer *infer, berth_error *err) {
  const berth__shape *x = &infer->in_shape[0];
  const int64_t parts = x->dim[x->rank - 1];
  if (berth__dim_is_fixed(parts) && parts != 1 && parts != 2)
    return berth__fail(err, BERTH_INVALID, "the last axis has extent %" PRId64 ", expected 1 (real) or 2 (complex)",
                       parts);
  if (is_real_inverse(infer->attrs) && parts == 1)
    return berth__fail(err, BERTH_INVALID, "the spectrum of a onesided inverse must be complex");
  return BERTH_OK;
}

static berth_status dft_infer(berth__infer *infer, berth_error *err) {
  const berth__shape *x = &infer->in_shape[0];
  berth__list list = {.known = true, .count = 1, .at = {infer->attrs[BERTH__DFT_AXIS].i}};
  uint32_t axis = 0;
  BERTH__TRY(berth__want_float(infer, 0, err));
  BERTH__TRY(berth__want_rank(infer, 0, 2, BERTH_MAX_RANK, err));
  if (berth__infer_has(infer, BERTH__DFT_AXIS_OPERAND))
    BERTH__TRY(berth__infer_list(infer, BERTH__DFT_AXIS, BERTH__DFT_AXIS_OPERAND, &list, err));
  if (list.count != 1) return berth__fail(err, BERTH_INVALID, "operand 2 has %u elements, expected one", list.count);
  if (list.known) BERTH__TRY(berth__want_axis(list.at[0], x->rank, &axis, err));
  if (list.known && axis == x->rank - 1)
    return berth__fail(err, BERTH_INVALID, "the last axis holds the parts of numbers and cannot be transformed");
  BERTH__TRY(check_parts(infer, err));
  berth__shape *out = &infer->out_shape[0];
  infer->out_type[0] = infer->in_type[0];
  *out = *x;
  out->dim[x->rank - 1] = is_real_inverse(infer->attrs) ? 1 : 2;
  if (list.known) return result_extent(infer, x->dim[axis], &out->dim[axis], err);
  for (uint32_t i = 0; i + 1 < x->rank; i++) out->dim[i] = BERTH__DIM_UNKNOWN;
  return BERTH_OK;
}

berth__dft berth__dft_describe(const berth_op_call *call) {
  const berth_tensor *x = &call->in[0];
  berth__dft d = {.call = call, .inner = 1, .parts = x->dim[x->rank - 1]};
  const int64_t axis = berth__call_has(call, BERTH__DFT_AXIS_OPERAND) && call->in[BERTH__DFT_AXIS_OPERAND].data != NULL
                           ? berth__load_i64(&call->in[BERTH__DFT_AXIS_OPERAND], 0)
                           : call->attrs[BERTH__DFT_AXIS].i;
  d.axis = (uint32_t)(axis < 0 ? axis + x->rank : axis);
  for (uint32_t i = d.axis + 1; i + 1 < x->rank; i++) d.inner *= x->dim[i];
  d.extent = x->dim[d.axis];
  d.kept = call->out[0].dim[d.axis];
  d.is_inverse = call->attrs[BERTH__DFT_INVERSE].i != 0;
  d.is_real = is_real_inverse(call->attrs);
  d.length = !d.is_real && call->attrs[BERTH__DFT_ONESIDED].i != 0 && d.kept > 0 ? 2 * d.kept - 1 : d.kept;
  return d;
}

berth__dft berth__dft_read(const berth_op_call *call) {
  berth__dft d = berth__dft_describe(call);
  berth__list length;
  berth__call_list(call, BERTH__DFT_LENGTH, 1, &length);
  d.length = length.given ? length.at[0] : d.is_real ? 2 * (d.extent - 1) : d.extent;
  return d;
}

int64_t berth__dft_lines(const berth__dft *d) {
  const berth_tensor *x = &d->call->in[0];
  int64_t lines = 1;
  for (uint32_t i = 0; i + 1 < x->rank; i++)
    if (i != d->axis) lines *= x->dim[i];
  return lines;
}

/* The other half of the spectrum of a real line. */
static void complete_line(int64_t length, double *re, double *im) {
  im[0] = 0;
  for (int64_t n = length / 2 + 1; n < length; n++) {
    re[n] = re[length - n];
    im[n] = -im[length - n];
  }
  if (length % 2 == 0) im[length / 2] = 0;
}

void berth__dft_load(const berth__dft *d, int64_t line, double *re, double *im) {
  const berth_tensor *x = &d->call->in[0];
  const int64_t first = (line / d->inner * d->extent * d->inner + line % d->inner) * d->parts;
  const int64_t step = d->inner * d->parts, n = d->extent < d->length ? d->extent : d->length;
  for (int64_t i = n; i < d->length; i++) re[i] = 0;
  for (int64_t i = d->parts == 2 ? n : 0; i < d->length; i++) im[i] = 0;
  if (x->type == BERTH_F32) {
    const float *from = (const float *)x->data + first;
    for (int64_t i = 0; i < n; i++) re[i] = (double)from[i * step];
    for (int64_t i = 0; i < n && d->parts == 2; i++) im[i] = (double)from[i * step + 1];
  } else {
    for (int64_t i = 0; i < n; i++) re[i] = berth__load_f64(x, first + i * step);
    for (int64_t i = 0; i < n && d->parts == 2; i++) im[i] = berth__load_f64(x, first + i * step + 1);
  }
  if (d->is_real) complete_line(d->length, re, im);
}

void berth__dft_store(const berth__dft *d, int64_t line, const double *re, const double *im) {
  const berth_tensor *out = &d->call->out[0];
  const int64_t parts = d->is_real ? 1 : 2, step = d->inner * parts;
  const int64_t first = (line / d->inner * d->kept * d->inner + line % d->inner) * parts;
  const double scale = d->is_inverse ? 1 / (double)d->length : 1;
  if (out->type == BERTH_F32) {
    float *to = (float *)out->data + first;
    for (int64_t k = 0; k < d->kept; k++) to[k * step] = (float)(re[k] * scale);
    for (int64_t k = 0; k < d->kept && parts == 2; k++) to[k * step + 1] = (float)(im[k] * scale);
    return;
  }
  for (int64_t k = 0; k < d->kept; k++) berth__store_f64(out, first + k * step, re[k] * scale);
  for (int64_t k = 0; k < d->kept && parts == 2; k++) berth__store_f64(out, first + k * step + 1, im[k] * scale);
}

/* ---- The reference kernel ---- */

typedef struct job {
  berth__dft d;
  double *re, *im, *cosine, *sine, *out_re, *out_im; /* in scratch */
} job;

static job dft_prepare(const berth_op_call *call) {
  job j = {.d = berth__dft_read(call)};
  double **const places[] = {&j.re, &j.im, &j.cosine, &j.sine, &j.out_re, &j.out_im};
  for (size_t i = 0; i < sizeof places / sizeof *places; i++)
    *places[i] = (double *)call->scratch + (int64_t)i * j.d.length;
  return j;
}

/* An axis that is an operand is known only to the kernel: then the whole call is one item. */
static int64_t dft_items(const berth_op_call *call) {
  if (berth__call_has(call, BERTH__DFT_AXIS_OPERAND)) return 1;
  const berth__dft d = berth__dft_describe(call);
  return berth__dft_lines(&d);
}

static uint64_t dft_scratch(const berth_op_call *call) {
  int64_t length = berth__dft_describe(call).length;
  if (berth__call_has(call, BERTH__DFT_AXIS_OPERAND)) /* for whichever axis is the longest */
    for (uint32_t i = 0; i < call->out[0].rank; i++)
      if (2 * call->out[0].dim[i] > length) length = 2 * call->out[0].dim[i];
  uint64_t size;
  return berth__mul_u64((uint64_t)length, 6 * sizeof(double), &size) ? size : UINT64_MAX;
}

static void make_table(const job *j) {
  const double sign = j->d.is_inverse ? 1 : -1, turn = 2 * acos(-1.0);
  for (int64_t k = 0; k < j->d.length; k++) {
    j->cosine[k] = cos(turn * (double)k / (double)j->d.length);
    j->sine[k] = sign * sin(turn * (double)k / (double)j->d.length);
  }
}

static void sum_directly(const job *j) {
  for (int64_t k = 0; k < j->d.kept; k++) {
    double re = 0, im = 0;
    for (int64_t n = 0, at = 0; n < j->d.length; n++) {
      re += j->re[n] * j->cosine[at] - j->im[n] * j->sine[at];
      im += j->re[n] * j->sine[at] + j->im[n] * j->cosine[at];
      at += k;
      if (at >= j->d.length) at -= j->d.length;
    }
    j->out_re[k] = re;
    j->out_im[k] = im;
  }
}

static void reverse_bits(const job *j) {
  for (int64_t i = 0, to = 0; i < j->d.length; i++) {
    j->out_re[to] = j->re[i];
    j->out_im[to] = j->im[i];
    int64_t bit = j->d.length >> 1;
    while (bit != 0 && (to & bit)) {
      to ^= bit;
      bit >>= 1;
    }
    to |= bit;
  }
}

static void butterflies(const job *j) {
  double *re = j->out_re, *im = j->out_im;
  reverse_bits(j);
  for (int64_t half = 1; half < j->d.length; half *= 2) {
    const int64_t step = j->d.length / (2 * half);
    for (int64_t block = 0; block < j->d.length; block += 2 * half) {
      for (int64_t k = 0; k < half; k++) {
        const int64_t a = block + k, b = a + half;
        const double r = re[b] * j->cosine[k * step] - im[b] * j->sine[k * step];
        const double i = re[b] * j->sine[k * step] + im[b] * j->cosine[k * step];
        re[b] = re[a] - r;
        im[b] = im[a] - i;
        re[a] += r;
        im[a] += i;
      }
    }
  }
}

static berth_status dft_kernel(const berth_op_call *call, berth_error *err) {
  const job j = dft_prepare(call);
  (void)err;
  make_table(&j);
  const int64_t lines_each = berth__call_has(call, BERTH__DFT_AXIS_OPERAND) ? berth__dft_lines(&j.d) : 1;
  for (int64_t line = call->begin * lines_each; line < call->end * lines_each; line++) {
    berth__dft_load(&j.d, line, j.re, j.im);
    if ((j.d.length & (j.d.length - 1)) == 0)
      butterflies(&j);
    else
      sum_directly(&j);
    berth__dft_store(&j.d, line, j.out_re, j.out_im);
  }
  return BERTH_OK;
}

const berth__family berth__family_dft = {
    .attrs = attrs,
    .n_attrs = sizeof attrs / sizeof *attrs,
    .infer = dft_infer,
    .items = dft_items,
    .scratch = dft_scratch,
    .kernel = dft_kernel,
    .valued = 1u << BERTH__DFT_LENGTH_OPERAND | 1u << BERTH__DFT_AXIS_OPERAND,
    .attr_of = {[BERTH__DFT_LENGTH_OPERAND] = BERTH__DFT_LENGTH + 1, [BERTH__DFT_AXIS_OPERAND] = BERTH__DFT_AXIS + 1},
};
