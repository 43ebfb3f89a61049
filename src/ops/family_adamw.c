/* adamw: a step of Adam with decoupled weight decay (Loshchilov and Hutter), in this order:
 *
 *   g = scale gradient
 *   mean = beta1 mean + (1 - beta1) g,  square = beta2 square + (1 - beta2) g^2
 *   w = w - rate weight_decay w - rate (mean / (1 - beta1^step)) / (sqrt(square / (1 - beta2^step)) + epsilon)
 *
 * If `apply` is 0, the results are the operands: the step waits for more gradients.
 *
 * Steps count from 1. In f64, with each result rounded once. An element of the operands is read before the same element
 * of a result is written, so all results may overwrite their operands. */
#include <math.h>

#include "ops/optimizer.h"
#include "ops/registry.h"

static const berth_attr attrs_of_adamw[] = {
    [BERTH__ADAMW_BETA1] = {.name = "beta1", .kind = BERTH_ATTR_FLOAT, .f = 0.9},
    [BERTH__ADAMW_BETA2] = {.name = "beta2", .kind = BERTH_ATTR_FLOAT, .f = 0.999},
    [BERTH__ADAMW_EPSILON] = {.name = "epsilon", .kind = BERTH_ATTR_FLOAT, .f = 1e-8},
    [BERTH__ADAMW_WEIGHT_DECAY] = {.name = "weight_decay", .kind = BERTH_ATTR_FLOAT, .f = 0.01}};

static berth_status adamw_infer(berth__infer *infer, berth_error *err) {
  const double beta1 = infer->attrs[BERTH__ADAMW_BETA1].f, beta2 = infer->attrs[BERTH__ADAMW_BETA2].f;
  if (!(beta1 >= 0 && beta1 < 1 && beta2 >= 0 && beta2 < 1))
    return berth__fail(err, BERTH_INVALID, "`beta1` is %g and `beta2` is %g, expected 0 to less than 1", beta1, beta2);
  BERTH__TRY(berth__optimizer_check_weight(infer, err));
  BERTH__TRY(berth__optimizer_check_like(infer, BERTH__ADAMW_GRADIENT, err));
  BERTH__TRY(berth__optimizer_check_like(infer, BERTH__ADAMW_MEAN, err));
  BERTH__TRY(berth__optimizer_check_like(infer, BERTH__ADAMW_SQUARE, err));
  BERTH__TRY(berth__optimizer_check_scalar(infer, BERTH__ADAMW_RATE, false, err));
  BERTH__TRY(berth__optimizer_check_scalar(infer, BERTH__ADAMW_STEP, true, err));
  BERTH__TRY(berth__optimizer_check_scalar(infer, BERTH__ADAMW_SCALE, false, err));
  BERTH__TRY(berth__optimizer_check_scalar(infer, BERTH__ADAMW_APPLY, true, err));
  for (uint32_t i = 0; i < infer->n_out; i++) {
    infer->out_type[i] = infer->in_type[0];
    infer->out_shape[i] = infer->in_shape[0];
  }
  return BERTH_OK;
}

typedef struct adamw {
  double rate, scale, decay, beta1, beta2, epsilon;
  double correct1, correct2; /* divisors of the moments */
} adamw;

#define DEFINE_ADAMW(suffix, c_type)                                                                \
  static void adamw_##suffix(const berth_op_call *call, const adamw *s) {                           \
    const c_type *w = call->in[0].data, *gradient = call->in[BERTH__ADAMW_GRADIENT].data;           \
    const c_type *means = call->in[BERTH__ADAMW_MEAN].data;                                         \
    const c_type *squares = call->in[BERTH__ADAMW_SQUARE].data;                                     \
    c_type *to_w = call->out[0].data, *to_mean = call->out[1].data, *to_square = call->out[2].data; \
    for (int64_t i = call->begin; i < call->end; i++) {                                             \
      const double before = (double)w[i], g = s->scale * (double)gradient[i];                       \
      const double mean = s->beta1 * (double)means[i] + (1 - s->beta1) * g;                         \
      const double square = s->beta2 * (double)squares[i] + (1 - s->beta2) * g * g;                 \
      const double step = mean / s->correct1 / (sqrt(square / s->correct2) + s->epsilon);           \
      to_mean[i] = (c_type)mean;                                                                    \
      to_square[i] = (c_type)square;                                                                \
      to_w[i] = (c_type)(before - s->rate * (s->decay * before + step));                            \
    }                                                                                               \
  }
DEFINE_ADAMW(f32, float)
DEFINE_ADAMW(f64, double)

static berth_status adamw_kernel(const berth_op_call *call, berth_error *err) {
  const double step = berth__optimizer_scalar(call, BERTH__ADAMW_STEP, 1);
  adamw s = {.rate = berth__optimizer_scalar(call, BERTH__ADAMW_RATE, 0),
             .scale = berth__optimizer_scalar(call, BERTH__ADAMW_SCALE, 1),
             .decay = call->attrs[BERTH__ADAMW_WEIGHT_DECAY].f,
             .beta1 = call->attrs[BERTH__ADAMW_BETA1].f,
             .beta2 = call->attrs[BERTH__ADAMW_BETA2].f,
             .epsilon = call->attrs[BERTH__ADAMW_EPSILON].f};
  (void)err;
  if (berth__optimizer_scalar(call, BERTH__ADAMW_APPLY, 1) == 0) {
    berth__optimizer_keep(call, BERTH__ADAMW_W, 0);
    berth__optimizer_keep(call, BERTH__ADAMW_MEAN, 1);
    berth__optimizer_keep(call, BERTH__ADAMW_SQUARE, 2);
    return BERTH_OK;
  }
  s.correct1 = 1 - pow(s.beta1, step);
  s.correct2 = 1 - pow(s.beta2, step);
  (call->in[0].type == BERTH_F32 ? adamw_f32 : adamw_f64)(call, &s);
  return BERTH_OK;
}

static int64_t adamw_items(const berth_op_call *call) { return berth__count(&call->out[0]); }

static uint32_t adamw_in_place_rest(const berth_attr *attrs, uint32_t out) {
  (void)attrs;
  return out == 1 ? 1u << BERTH__ADAMW_MEAN : out == 2 ? 1u << BERTH__ADAMW_SQUARE : 0;
}

const berth__family berth__family_adamw = {.attrs = attrs_of_adamw,
                                           .n_attrs = 4,
                                           .infer = adamw_infer,
                                           .items = adamw_items,
                                           .kernel = adamw_kernel,
                                           .in_place_rest = adamw_in_place_rest};
