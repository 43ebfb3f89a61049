/* Gradients of element-wise ops of one operand: the incoming gradient times the derivative. */
#include <math.h>

#include "grad/grad.h"

/* math.h has these only with extensions. */
#define GRAD_PI 3.14159265358979323846

static berth_value square(berth__grad *d, berth_value a) { return berth__grad_mul(d, a, a); }

/* number + sign a^2 */
static berth_value grad_square_plus(berth__grad *d, berth_value a, double sign, double number) {
  const berth_value s = square(d, a);
  return sign > 0 ? berth__grad_num(d, BERTH__OP_add, s, number) : berth__grad_num_first(d, BERTH__OP_sub, number, s);
}

static berth_value derivative_of_power(berth__grad *d, berth_value x, berth_value y) {
  switch (d->node.op->code) {
    case BERTH__OP_exp: return y;
    case BERTH__OP_expm1: return berth__grad_num(d, BERTH__OP_add, y, 1);
    case BERTH__OP_log: return berth__grad_1(d, BERTH__OP_reciprocal, x);
    case BERTH__OP_sqrt: return berth__grad_num_first(d, BERTH__OP_div, 0.5, y);
    case BERTH__OP_rsqrt: return berth__grad_scale(d, berth__grad_mul(d, y, square(d, y)), -0.5);
    case BERTH__OP_reciprocal: return berth__grad_neg(d, square(d, y));
    case BERTH__OP_abs: return berth__grad_1(d, BERTH__OP_sign, x);
    default: return berth__grad_full_like(d, x, -1); /* neg */
  }
}

void berth__grad_of_power(berth__grad *d) {
  const berth_value dy = berth__grad_dy(d);
  if (d->node.op->code == BERTH__OP_neg) {
    berth__grad_give(d, 0, berth__grad_neg(d, dy));
    return;
  }
  berth__grad_give(d, 0, berth__grad_mul(d, dy, derivative_of_power(d, berth__grad_in(d, 0), berth__grad_out(d))));
}

static berth_value derivative_of_angle(berth__grad *d, berth_value x, berth_value y) {
  switch (d->node.op->code) {
    case BERTH__OP_sin: return berth__grad_1(d, BERTH__OP_cos, x);
    case BERTH__OP_cos: return berth__grad_neg(d, berth__grad_1(d, BERTH__OP_sin, x));
    case BERTH__OP_tan: return grad_square_plus(d, y, 1, 1);
    case BERTH__OP_asin: return berth__grad_1(d, BERTH__OP_rsqrt, grad_square_plus(d, x, -1, 1));
    case BERTH__OP_acos: return berth__grad_neg(d, berth__grad_1(d, BERTH__OP_rsqrt, grad_square_plus(d, x, -1, 1)));
    case BERTH__OP_atan: return berth__grad_1(d, BERTH__OP_reciprocal, grad_square_plus(d, x, 1, 1));
    case BERTH__OP_sinh: return berth__grad_1(d, BERTH__OP_cosh, x);
    case BERTH__OP_cosh: return berth__grad_1(d, BERTH__OP_sinh, x);
    case BERTH__OP_tanh: return grad_square_plus(d, y, -1, 1);
    case BERTH__OP_asinh: return berth__grad_1(d, BERTH__OP_rsqrt, grad_square_plus(d, x, 1, 1));
    case BERTH__OP_acosh: return berth__grad_1(d, BERTH__OP_rsqrt, grad_square_plus(d, x, 1, -1));
    default: return berth__grad_1(d, BERTH__OP_reciprocal, grad_square_plus(d, x, -1, 1)); /* atanh */
  }
}

void berth__grad_of_angle(berth__grad *d) {
  const berth_value factor = derivative_of_angle(d, berth__grad_in(d, 0), berth__grad_out(d));
  berth__grad_give(d, 0, berth__grad_mul(d, berth__grad_dy(d), factor));
}

/* e^(-scale x^2) times a factor */
static berth_value grad_bell(berth__grad *d, berth_value x, double scale, double factor) {
  const berth_value power = berth__grad_1(d, BERTH__OP_exp, berth__grad_scale(d, square(d, x), -scale));
  return berth__grad_scale(d, power, factor);
}

/* Derivative of x (1 + erf(x / sqrt 2)) / 2: the distribution function, plus x times the density. */
static berth_value derivative_of_gelu(berth__grad *d, berth_value x) {
  berth_value below = berth__grad_1(d, BERTH__OP_erf, berth__grad_scale(d, x, sqrt(0.5)));
  below = berth__grad_scale(d, berth__grad_num(d, BERTH__OP_add, below, 1), 0.5);
  return berth__grad_add(d, below, berth__grad_mul(d, x, grad_bell(d, x, 0.5, 1 / sqrt(2 * GRAD_PI))));
}

/* Derivative of x (1 + tanh u) / 2, which is x s with s = sigmoid(v) and v = 2 u = 2 sqrt(2 / pi) (x + 0.044715 x^3):
 * it is s (1 + (1 - s) x v'), which takes few steps, and is precise where s is small. */
static berth_value derivative_of_gelu_tanh(berth__grad *d, berth_value x) {
  const double c = 2 * sqrt(2 / GRAD_PI), a = 0.044715;
  const berth_value xx = square(d, x);
  const berth_value inner = berth__grad_num(d, BERTH__OP_add, berth__grad_scale(d, xx, c * a), c);
  const berth_value s = berth__grad_1(d, BERTH__OP_sigmoid, berth__grad_mul(d, x, inner));
  const berth_value slope = berth__grad_num(d, BERTH__OP_add, berth__grad_scale(d, xx, 3 * c * a), c);
  const berth_value rest =
      berth__grad_mul(d, berth__grad_num_first(d, BERTH__OP_sub, 1, s), berth__grad_mul(d, x, slope));
  return berth__grad_mul(d, s, berth__grad_num(d, BERTH__OP_add, rest, 1));
}

static berth_value derivative_of_silu(berth__grad *d, berth_value x, berth_value y) {
  const berth_value s = berth__grad_1(d, BERTH__OP_sigmoid, x);
  return berth__grad_add(d, s, berth__grad_mul(d, y, berth__grad_num_first(d, BERTH__OP_sub, 1, s)));
}

static berth_value derivative_of_activation(berth__grad *d, berth_value x, berth_value y) {
  switch (d->node.op->code) {
    case BERTH__OP_softplus: return berth__grad_1(d, BERTH__OP_sigmoid, x);
    case BERTH__OP_sigmoid: return berth__grad_mul(d, y, berth__grad_num_first(d, BERTH__OP_sub, 1, y));
    case BERTH__OP_silu: return derivative_of_silu(d, x, y);
    case BERTH__OP_gelu: return derivative_of_gelu(d, x);
    case BERTH__OP_gelu_tanh: return derivative_of_gelu_tanh(d, x);
    default: return grad_bell(d, x, 1, 2 / sqrt(GRAD_PI)); /* erf */
  }
}

void berth__grad_of_activation(berth__grad *d) {
  const berth_value factor = derivative_of_activation(d, berth__grad_in(d, 0), berth__grad_out(d));
  berth__grad_give(d, 0, berth__grad_mul(d, berth__grad_dy(d), factor));
}

/* relu and clamp: the gradient passes, or not. */
void berth__grad_of_bounds(berth__grad *d) {
  const berth_value x = berth__grad_in(d, 0), zero = berth__grad_scalar(d, berth__grad_type(d, x), 0);
  const berth_value inside = d->node.op->code == BERTH__OP_relu ? berth__grad_2(d, BERTH__OP_gt, x, zero)
                                                                : berth__grad_2(d, BERTH__OP_eq, x, berth__grad_out(d));
  berth__grad_give(d, 0, berth__grad_where(d, inside, berth__grad_dy(d), zero));
}

/* identity, and cast between floats. */
void berth__grad_of_same(berth__grad *d) { berth__grad_give(d, 0, berth__grad_dy(d)); }
