/* sgd: a step of gradient descent, with momentum if there is a velocity.
 *
 *   g = scale gradient + weight_decay w,  velocity = momentum velocity + g,  w = w - rate velocity
 *
 * If `apply` is 0, the results are the operands: the step waits for more gradients.
 *
 * In f64, with each result rounded once. An element of the operands is read before the same element of a result is
 * written, so both results may overwrite their operands. */
#include "ops/optimizer.h"
#include "ops/registry.h"

static const berth_attr attrs_of_sgd[] = {
    [BERTH__SGD_MOMENTUM] = {.name = "momentum", .kind = BERTH_ATTR_FLOAT, .f = 0},
    [BERTH__SGD_WEIGHT_DECAY] = {.name = "weight_decay", .kind = BERTH_ATTR_FLOAT, .f = 0}};

static berth_status sgd_infer(berth__infer *infer, berth_error *err) {
  const bool has_velocity = infer->n_in > BERTH__SGD_VELOCITY && infer->in_type[BERTH__SGD_VELOCITY] != BERTH_TYPE_NONE;
  BERTH__TRY(berth__optimizer_check_weight(infer, err));
  BERTH__TRY(berth__optimizer_check_like(infer, BERTH__SGD_GRADIENT, err));
  BERTH__TRY(berth__optimizer_check_scalar(infer, BERTH__SGD_RATE, false, err));
  BERTH__TRY(berth__optimizer_check_scalar(infer, BERTH__SGD_SCALE, false, err));
  BERTH__TRY(berth__optimizer_check_scalar(infer, BERTH__SGD_APPLY, true, err));
  if (has_velocity) BERTH__TRY(berth__optimizer_check_like(infer, BERTH__SGD_VELOCITY, err));
  if (has_velocity != (infer->n_out == 2))
    return berth__fail(err, BERTH_INVALID, "a velocity is kept where there is one: it is operand 3 and result 1");
  for (uint32_t i = 0; i < infer->n_out; i++) {
    infer->out_type[i] = infer->in_type[0];
    infer->out_shape[i] = infer->in_shape[0];
  }
  return BERTH_OK;
}

typedef struct sgd {
  double rate, scale, decay, momentum;
} sgd;

#define DEFINE_SGD(suffix, c_type)                                                                   \
  static void sgd_##suffix(const berth_op_call *call, const sgd *s) {                                \
    const c_type *w = call->in[0].data, *g = call->in[BERTH__SGD_GRADIENT].data;                     \
    const c_type *velocity =                                                                         \
        berth__optimizer_has(call, BERTH__SGD_VELOCITY) ? call->in[BERTH__SGD_VELOCITY].data : NULL; \
    c_type *to = call->out[0].data;                                                                  \
    for (int64_t i = call->begin; i < call->end; i++) {                                              \
      const double before = (double)w[i];                                                            \
      double step = s->scale * (double)g[i] + s->decay * before;                                     \
      if (velocity != NULL) step += s->momentum * (double)velocity[i];                               \
      if (velocity != NULL) ((c_type *)call->out[1].data)[i] = (c_type)step;                         \
      to[i] = (c_type)(before - s->rate * step);                                                     \
    }                                                                                                \
  }
DEFINE_SGD(f32, float)
DEFINE_SGD(f64, double)

static berth_status sgd_kernel(const berth_op_call *call, berth_error *err) {
  const sgd s = {.rate = berth__optimizer_scalar(call, BERTH__SGD_RATE, 0),
                 .scale = berth__optimizer_scalar(call, BERTH__SGD_SCALE, 1),
                 .decay = call->attrs[BERTH__SGD_WEIGHT_DECAY].f,
                 .momentum = call->attrs[BERTH__SGD_MOMENTUM].f};
  (void)err;
  if (berth__optimizer_scalar(call, BERTH__SGD_APPLY, 1) == 0) {
    berth__optimizer_keep(call, BERTH__SGD_W, 0);
    if (call->n_out > 1) berth__optimizer_keep(call, BERTH__SGD_VELOCITY, 1);
    return BERTH_OK;
  }
  (call->in[0].type == BERTH_F32 ? sgd_f32 : sgd_f64)(call, &s);
  return BERTH_OK;
}

static int64_t sgd_items(const berth_op_call *call) { return berth__count(&call->out[0]); }

static uint32_t sgd_in_place_rest(const berth_attr *attrs, uint32_t out) {
  (void)attrs;
  return out == 1 ? 1u << BERTH__SGD_VELOCITY : 0;
}

const berth__family berth__family_sgd = {.attrs = attrs_of_sgd,
                                         .n_attrs = 2,
                                         .infer = sgd_infer,
                                         .items = sgd_items,
                                         .kernel = sgd_kernel,
                                         .in_place_rest = sgd_in_place_rest};
