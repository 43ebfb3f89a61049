/* dft in n log n steps whatever the length, in f64. Lengths with small prime factors are transformed factor by factor,
 * from one array into another, which leaves the result in order. Other lengths use Bluestein's algorithm: a convolution
 * with a chirp, computed by transforms of a power of two. */
#include <math.h>

#include "base/math.h"
#include "device/cpu/kernels/vec.h"
#include "ops/dft.h"
#include "ops/operand.h"

#define MOST_FACTORS 64
#define MOST_PRIME 31 /* above it, two transforms of up to four times the length are faster */

/* Complex numbers, real and imaginary parts apart. */
typedef struct numbers {
  double *re, *im;
} numbers;

typedef struct transform {
  int64_t length;
  int n_factors;
  int64_t factor[MOST_FACTORS];
  numbers root; /* [length]: roots of unity */
} transform;

static bool dft_kernel_factor(transform *t, int64_t length) {
  t->length = length;
  t->n_factors = 0;
  for (int64_t left = length; left > 1;) {
    int64_t factor = left % 4 == 0 ? 4 : 2;
    while (factor <= MOST_PRIME && left % factor != 0) factor++;
    if (factor > MOST_PRIME) return false;
    t->factor[t->n_factors++] = factor;
    left /= factor;
  }
  return true;
}

static void dft_kernel_turn(transform *t) {
  const double turn = -2 * acos(-1.0);
  for (int64_t k = 0; k < t->length; k++) {
    t->root.re[k] = cos(turn * (double)k / (double)t->length);
    t->root.im[k] = sin(turn * (double)k / (double)t->length);
  }
}

/* ---- One factor ----
 * `from` is [factor, m, s] and `to` is [m, factor, s]: for each of m, the parts of s become sums over the factor,
 * multiplied by roots of unity. */

typedef struct pass {
  const transform *t;
  int64_t factor, m, s;
  const double *re, *im;
  double *to_re, *to_im;
} pass;

static void dft_kernel_by_2(const pass *p) {
  for (int64_t k = 0; k < p->m; k++) {
    const int64_t a = k * p->s, b = a + p->m * p->s, c = 2 * k * p->s, d = c + p->s;
    const double wr = p->t->root.re[k * p->s], wi = p->t->root.im[k * p->s];
    for (int64_t q = 0; q < p->s; q++) {
      const double re = p->re[a + q] - p->re[b + q], im = p->im[a + q] - p->im[b + q];
      p->to_re[c + q] = p->re[a + q] + p->re[b + q];
      p->to_im[c + q] = p->im[a + q] + p->im[b + q];
      p->to_re[d + q] = re * wr - im * wi;
      p->to_im[d + q] = re * wi + im * wr;
    }
  }
}

static void dft_kernel_quarters(const double *restrict x, const double *restrict y, double *restrict to_x,
                                double *restrict to_y, int64_t apart, int64_t s, const double *wr, const double *wi) {
  for (int64_t q = 0; q < s; q++) {
    const double even_x = x[q] + x[2 * apart + q], even_y = y[q] + y[2 * apart + q];
    const double odd_x = x[q] - x[2 * apart + q], odd_y = y[q] - y[2 * apart + q];
    const double more_x = x[apart + q] + x[3 * apart + q], more_y = y[apart + q] + y[3 * apart + q];
    const double less_x = y[apart + q] - y[3 * apart + q], less_y = x[3 * apart + q] - x[apart + q];
    to_x[q] = even_x + more_x;
    to_y[q] = even_y + more_y;
    to_x[s + q] = (odd_x + less_x) * wr[0] - (odd_y + less_y) * wi[0];
    to_y[s + q] = (odd_x + less_x) * wi[0] + (odd_y + less_y) * wr[0];
    to_x[2 * s + q] = (even_x - more_x) * wr[1] - (even_y - more_y) * wi[1];
    to_y[2 * s + q] = (even_x - more_x) * wi[1] + (even_y - more_y) * wr[1];
    to_x[3 * s + q] = (odd_x - less_x) * wr[2] - (odd_y - less_y) * wi[2];
    to_y[3 * s + q] = (odd_x - less_x) * wi[2] + (odd_y - less_y) * wr[2];
  }
}

static void dft_kernel_by_4(const pass *p) {
  for (int64_t k = 0; k < p->m; k++) {
    double wr[3], wi[3];
    for (int64_t r = 0; r < 3; r++) {
      wr[r] = p->t->root.re[k * (r + 1) * p->s];
      wi[r] = p->t->root.im[k * (r + 1) * p->s];
    }
    dft_kernel_quarters(p->re + k * p->s, p->im + k * p->s, p->to_re + 4 * k * p->s, p->to_im + 4 * k * p->s,
                        p->m * p->s, p->s, wr, wi);
  }
}

static void dft_kernel_add(const double *restrict x, const double *restrict y, double wr, double wi,
                           double *restrict to_x, double *restrict to_y, int64_t n) {
  for (int64_t q = 0; q < n; q++) {
    to_x[q] += x[q] * wr - y[q] * wi;
    to_y[q] += x[q] * wi + y[q] * wr;
  }
}

static void dft_kernel_by_any(const pass *p) {
  const int64_t n = p->t->length;
  for (int64_t k = 0; k < p->m; k++)
    for (int64_t r = 0; r < p->factor; r++) {
      double *re = p->to_re + (k * p->factor + r) * p->s, *im = p->to_im + (k * p->factor + r) * p->s;
      memset(re, 0, (size_t)p->s * sizeof *re);
      memset(im, 0, (size_t)p->s * sizeof *im);
      for (int64_t j = 0; j < p->factor; j++) {
        const int64_t from = (k + p->m * j) * p->s, turn = (j * r % p->factor * (n / p->factor) + k * r * p->s) % n;
        dft_kernel_add(p->re + from, p->im + from, p->t->root.re[turn], p->t->root.im[turn], re, im, p->s);
      }
    }
}

/* Transforms `at`, using `beside` as scratch; returns whichever of the two has the result. */
static numbers dft_kernel_transform(const transform *t, numbers at, numbers beside) {
  int64_t n = t->length, s = 1;
  for (int i = 0; i < t->n_factors; i++) {
    const int64_t factor = t->factor[i];
    const pass p = {t, factor, n / factor, s, at.re, at.im, beside.re, beside.im};
    (factor == 2 ? dft_kernel_by_2 : factor == 4 ? dft_kernel_by_4 : dft_kernel_by_any)(&p);
    const numbers done = beside;
    beside = at;
    at = done;
    n /= factor;
    s *= factor;
  }
  return at;
}

/* ---- Lines ---- */

typedef struct work {
  transform t;
  bool is_chirp; /* t has the length of a power of two, and: */
  numbers chirp,
      spectrum; /* [the line's length]; [t's length]: the transform of the reversed chirp, divided by t's length */
  numbers a, b; /* [t's length] */
} work;

static int64_t dft_kernel_power(int64_t least) {
  int64_t power = 1;
  while (power < least) power *= 2;
  return power;
}

static void dft_kernel_plan(work *w, int64_t length) {
  w->is_chirp = !dft_kernel_factor(&w->t, length);
  if (w->is_chirp) (void)dft_kernel_factor(&w->t, dft_kernel_power(2 * length - 1));
}

static numbers dft_kernel_take(double **at, int64_t n) {
  const numbers taken = {*at, *at + n};
  *at += 2 * n;
  return taken;
}

static void dft_kernel_chirp(work *w, int64_t length) {
  const double turn = -acos(-1.0);
  const int64_t n = w->t.length;
  memset(w->a.re, 0, (size_t)n * sizeof(double));
  memset(w->a.im, 0, (size_t)n * sizeof(double));
  for (int64_t k = 0; k < length; k++) {
    const double angle = turn * (double)(k * k % (2 * length)) / (double)length;
    w->chirp.re[k] = cos(angle);
    w->chirp.im[k] = sin(angle);
    w->a.re[k] = w->a.re[(n - k) % n] = w->chirp.re[k] / (double)n;
    w->a.im[k] = w->a.im[(n - k) % n] = -w->chirp.im[k] / (double)n;
  }
  const numbers done = dft_kernel_transform(&w->t, w->a, w->b);
  memcpy(w->spectrum.re, done.re, (size_t)n * sizeof(double));
  memcpy(w->spectrum.im, done.im, (size_t)n * sizeof(double));
}

static void dft_kernel_prepare(work *w, int64_t length, double *at) {
  dft_kernel_plan(w, length);
  w->t.root = dft_kernel_take(&at, w->t.length);
  w->a = dft_kernel_take(&at, w->t.length);
  w->b = dft_kernel_take(&at, w->t.length);
  dft_kernel_turn(&w->t);
  if (!w->is_chirp) return;
  w->spectrum = dft_kernel_take(&at, w->t.length);
  w->chirp = dft_kernel_take(&at, length);
  dft_kernel_chirp(w, length);
}

static void dft_kernel_multiply(numbers x, numbers by, int64_t n) {
  for (int64_t k = 0; k < n; k++) {
    const double re = x.re[k] * by.re[k] - x.im[k] * by.im[k], im = x.re[k] * by.im[k] + x.im[k] * by.re[k];
    x.re[k] = re;
    x.im[k] = im;
  }
}

/* The forward transform of what is in a. */
static numbers dft_kernel_line(const work *w, int64_t length) {
  if (!w->is_chirp) return dft_kernel_transform(&w->t, w->a, w->b);
  const int64_t n = w->t.length;
  dft_kernel_multiply(w->a, w->chirp, length);
  memset(w->a.re + length, 0, (size_t)(n - length) * sizeof(double));
  memset(w->a.im + length, 0, (size_t)(n - length) * sizeof(double));
  const numbers there = dft_kernel_transform(&w->t, w->a, w->b), other = there.re == w->a.re ? w->b : w->a;
  dft_kernel_multiply(there, w->spectrum, n);
  /* The inverse is the forward transform with real and imaginary parts swapped. */
  const numbers back = dft_kernel_transform(&w->t, (numbers){there.im, there.re}, (numbers){other.im, other.re});
  const numbers result = {back.im, back.re};
  dft_kernel_multiply(result, w->chirp, length);
  return result;
}

/* ---- The call ---- */

/* Requires the length and the axis to be known when plans are made. */
static bool dft_kernel_takes(const berth_op_call *call) {
  const berth__dft d = berth__dft_describe(call);
  return !berth__call_has(call, BERTH__DFT_AXIS_OPERAND) && !berth__call_has(call, BERTH__DFT_LENGTH_OPERAND) &&
         berth__count(&call->out[0]) > 0 && d.extent < (int64_t)1 << 30 && d.kept < (int64_t)1 << 30;
}

static int64_t dft_kernel_items(const berth_op_call *call) {
  const berth__dft d = berth__dft_describe(call);
  return berth__dft_lines(&d);
}

static uint64_t dft_kernel_scratch(const berth_op_call *call) {
  const int64_t length = berth__dft_read(call).length;
  work w;
  dft_kernel_plan(&w, length);
  return (uint64_t)(w.is_chirp ? 8 * w.t.length + 2 * length : 6 * w.t.length) * sizeof(double);
}

/* A shorter line may need a chirp: what that takes grows with the length. */
static uint64_t dft_kernel_scratch_most(const berth_op_call *call) {
  const int64_t length = berth__dft_read(call).length;
  return (uint64_t)(8 * dft_kernel_power(2 * length - 1) + 2 * length) * sizeof(double);
}

/* An inverse is the forward transform with the parts swapped, before and after. */
static berth_status dft_kernel_run(const berth_op_call *call, berth_error *err) {
  const berth__dft d = berth__dft_read(call);
  work w;
  (void)err;
  dft_kernel_prepare(&w, d.length, call->scratch);
  for (int64_t line = call->begin; line < call->end; line++) {
    berth__dft_load(&d, line, d.is_inverse ? w.a.im : w.a.re, d.is_inverse ? w.a.re : w.a.im);
    const numbers done = dft_kernel_line(&w, d.length);
    berth__dft_store(&d, line, d.is_inverse ? done.im : done.re, d.is_inverse ? done.re : done.im);
  }
  return BERTH_OK;
}

const berth__cpu_kernel BERTH__PER_ISA(berth__kernels_dft)[] = {
    {.name = "dft",
     .code = BERTH__OP_dft,
     .takes = dft_kernel_takes,
     .items = dft_kernel_items,
     .scratch = dft_kernel_scratch,
     .scratch_most = dft_kernel_scratch_most,
     .run = dft_kernel_run},
    {0},
};
