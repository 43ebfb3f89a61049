/* ai.onnx.preview.training: one step of an optimiser. Every op takes a rate, the number of the step, and then its
 * tensors in groups: all parameters, all gradients, all states of one kind, all of the next; the results likewise. */
#include "import/onnx/chain.h"
#include "import/onnx/compose.h"

enum {
  RATE,
  STEP,
  FIRST
};

typedef struct optimizer {
  berth__onnx_chain c;
  size_t tensors;
  berth_value is_later; /* whether this is not the first step */
} optimizer;

/* `groups` groups of operands, all of which except the gradients are also results. */
static berth_status onnx_training_begin(berth__onnx_call *call, size_t groups, optimizer *o, berth_error *err) {
  BERTH__TRY(berth__onnx_begin(call, FIRST + groups, err));
  *o = (optimizer){.c = {call, err, BERTH_OK}, .tensors = (call->n_in - FIRST) / groups};
  if ((call->n_in - FIRST) % groups != 0 || call->n_out > o->tensors * (groups - 1))
    return berth__fail(err, BERTH_MALFORMED, "%zu operands do not make %zu groups of tensors", call->n_in, groups);
  BERTH__TRY(berth__onnx_want_in(call, call->n_in, err));
  o->is_later = berth__chain_with(&o->c, "gt", call->in[STEP], 0);
  return o->c.status;
}

static berth_value tensor(const optimizer *o, size_t group, size_t index) {
  return o->c.call->in[FIRST + group * o->tensors + index];
}

static void set(const optimizer *o, size_t group, size_t index, berth_value value) {
  berth__onnx_set(o->c.call, group * o->tensors + index, value);
}

static berth_value onnx_training_scaled(optimizer *o, berth_value x, double factor) {
  return berth__chain_with(&o->c, "mul", x, factor);
}

static berth_value sum(optimizer *o, berth_value a, berth_value b) { return berth__chain_binary(&o->c, "add", a, b); }

static berth_value in_type_of(optimizer *o, berth_value value, berth_value like) {
  return berth__chain_cast(&o->c, value, berth__onnx_value_type(o->c.call, like));
}

/* The gradient, including that of the regularisation term. */
static berth_value gradient(optimizer *o, size_t index) {
  const double norm = berth__onnx_float(o->c.call, "norm_coefficient", 0);
  return sum(o, onnx_training_scaled(o, tensor(o, 0, index), norm), tensor(o, 1, index));
}

/* x - rate * step / (sqrt(squares) + epsilon) */
static berth_value onnx_training_descend(optimizer *o, berth_value x, berth_value rate, berth_value step,
                                         berth_value squares) {
  const double epsilon = berth__onnx_float(o->c.call, "epsilon", 1e-6);
  berth_value below = berth__chain_with(&o->c, "add", berth__chain_unary(&o->c, "sqrt", squares), epsilon);
  berth_value scaled_step = berth__chain_binary(&o->c, "mul", in_type_of(o, rate, x), step);
  return berth__chain_binary(&o->c, "sub", x, berth__chain_binary(&o->c, "div", scaled_step, below));
}

static berth_status convert_adagrad(berth__onnx_call *call, berth_error *err) {
  optimizer o;
  BERTH__TRY(onnx_training_begin(call, 3, &o, err));
  berth_value steps = in_type_of(&o, call->in[STEP], call->in[RATE]);
  berth_value decay =
      berth__chain_with(&o.c, "add", onnx_training_scaled(&o, steps, berth__onnx_float(call, "decay_factor", 0)), 1);
  berth_value rate = berth__chain_binary(&o.c, "div", call->in[RATE], decay);
  for (size_t i = 0; i < o.tensors && o.c.status == BERTH_OK; i++) {
    berth_value g = gradient(&o, i);
    berth_value squares = sum(&o, tensor(&o, 2, i), berth__chain_binary(&o.c, "mul", g, g));
    set(&o, 0, i, onnx_training_descend(&o, tensor(&o, 0, i), rate, g, squares));
    set(&o, 1, i, squares);
  }
  return o.c.status;
}

/* 1 - base ^ step */
static berth_value bias_correction(optimizer *o, double base, berth_value steps) {
  berth_value power = berth__chain_binary(
      &o->c, "pow", berth__chain_scalar(&o->c, berth__onnx_value_type(o->c.call, steps), base), steps);
  return berth__chain_with(&o->c, "add", berth__chain_unary(&o->c, "neg", power), 1);
}

static berth_value adam_rate(optimizer *o, double alpha, double beta) {
  const berth__onnx_call *call = o->c.call;
  berth_value steps = in_type_of(o, call->in[STEP], call->in[RATE]);
  berth_value above = berth__chain_unary(&o->c, "sqrt", bias_correction(o, beta, steps));
  berth_value ratio = berth__chain_binary(&o->c, "div", above, bias_correction(o, alpha, steps));
  return berth__chain_where(&o->c, o->is_later, berth__chain_binary(&o->c, "mul", call->in[RATE], ratio),
                            call->in[RATE]);
}

static berth_status convert_adam(berth__onnx_call *call, berth_error *err) {
  const double alpha = berth__onnx_float(call, "alpha", 0.9), beta = berth__onnx_float(call, "beta", 0.999);
  const double kept = 1 - berth__onnx_float(call, "norm_coefficient_post", 0);
  optimizer o;
  BERTH__TRY(onnx_training_begin(call, 4, &o, err));
  berth_value rate = adam_rate(&o, alpha, beta);
  for (size_t i = 0; i < o.tensors && o.c.status == BERTH_OK; i++) {
    berth_value g = gradient(&o, i), square = berth__chain_binary(&o.c, "mul", g, g);
    berth_value mean =
        sum(&o, onnx_training_scaled(&o, tensor(&o, 2, i), alpha), onnx_training_scaled(&o, g, 1 - alpha));
    berth_value squares =
        sum(&o, onnx_training_scaled(&o, tensor(&o, 3, i), beta), onnx_training_scaled(&o, square, 1 - beta));
    set(&o, 0, i, onnx_training_scaled(&o, onnx_training_descend(&o, tensor(&o, 0, i), rate, mean, squares), kept));
    set(&o, 1, i, mean);
    set(&o, 2, i, squares);
  }
  return o.c.status;
}

static berth_status convert_momentum(berth__onnx_call *call, berth_error *err) {
  const double alpha = berth__onnx_float(call, "alpha", 0), beta = berth__onnx_float(call, "beta", 0);
  const bool is_nesterov = berth__span_is(berth__onnx_string(call, "mode", "standard"), "nesterov");
  optimizer o;
  BERTH__TRY(onnx_training_begin(call, 3, &o, err));
  for (size_t i = 0; i < o.tensors && o.c.status == BERTH_OK; i++) {
    berth_value x = tensor(&o, 0, i), g = gradient(&o, i);
    berth_value added = berth__chain_where(&o.c, o.is_later, onnx_training_scaled(&o, g, beta), g);
    berth_value moment = sum(&o, onnx_training_scaled(&o, tensor(&o, 2, i), alpha), added);
    berth_value step = is_nesterov ? sum(&o, g, onnx_training_scaled(&o, moment, alpha)) : moment;
    step = berth__chain_binary(&o.c, "mul", in_type_of(&o, call->in[RATE], x), step);
    set(&o, 0, i, berth__chain_binary(&o.c, "sub", x, step));
    set(&o, 1, i, moment);
  }
  return o.c.status;
}

const berth__onnx_handler berth__onnx_training[] = {
    {"Adagrad", convert_adagrad, NULL},
    {"Adam", convert_adam, NULL},
    {"Momentum", convert_momentum, NULL},
    {NULL, NULL, NULL},
};
