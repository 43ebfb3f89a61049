/* A graph whose runs are training steps: params become states, with their gradients and an optimiser that updates
 * them. */
#include <math.h>

#include "base/desc.h"
#include "base/text.h"
#include "grad/grad.h"

typedef struct training {
  berth__grad d; /* adds nodes */
  berth_train_desc desc;
  berth_value *params, *grads; /* what is trained */
  const void **data;           /* their weights */
  size_t n, n_turned;          /* params, and how many are states by now */
  berth_value *old_params;     /* the graph's previous list */
  size_t n_old_params;
  berth_value rate, step, scale;
  berth_value starts; /* true in the first run of a step: sums are reset; BERTH_VALUE_NONE: every run is a step */
  berth_value apply;  /* 1 in the last run of a step, which updates the weights */
} training;

static bool train_is_number(double x, double most) { return x >= 0 && x <= most; }

static berth_status train_check(const training *t, berth_error *err) {
  const berth_train_desc *desc = &t->desc;
  const bool is_sgd = desc->optimizer == BERTH_OPTIMIZER_SGD;
  if (!is_sgd && desc->optimizer != BERTH_OPTIMIZER_ADAMW)
    return berth__fail(err, BERTH_INVALID, "there is no optimizer %d", (int)desc->optimizer);
  const bool fits = is_sgd ? train_is_number(desc->momentum, HUGE_VAL)
                           : desc->beta1 >= 0 && desc->beta1 < 1 && desc->beta2 >= 0 && desc->beta2 < 1 &&
                                 train_is_number(desc->epsilon, HUGE_VAL);
  if (!fits || !train_is_number(desc->weight_decay, HUGE_VAL) || !train_is_number(desc->clip, HUGE_VAL))
    return berth__fail(err, BERTH_INVALID,
                       "a hyperparameter of the optimiser is negative, out of range or not a number");
  if (desc->params == NULL && desc->n_params != 0)
    return berth__fail(err, BERTH_INVALID, "params are counted but not given");
  return BERTH_OK;
}

static berth_status train_check_param(const training *t, size_t index, berth_error *err) {
  const berth_graph *graph = t->d.graph;
  const berth_value param = t->params[index];
  if (param >= graph->n_values || graph->values[param].kind != BERTH_VALUE_PARAM)
    return berth__fail(err, BERTH_INVALID, "value %u, to be trained, is not a param of the graph", param);
  if (!berth__type_is_float(graph->values[param].type))
    return berth__fail(err, BERTH_UNSUPPORTED, "param '%s' is %s; only f32, f64, f16 and bf16 can be trained",
                       graph->values[param].name, berth_type_name(graph->values[param].type));
  for (size_t i = 0; i < index; i++)
    if (t->params[i] == param)
      return berth__fail(err, BERTH_INVALID, "param '%s' is named twice", graph->values[param].name);
  return BERTH_OK;
}

/* Collects what is trained, and allocates everything that must not fail later. */
static berth_status train_collect(training *t, berth_error *err) {
  berth_graph *graph = t->d.graph;
  berth_context *ctx = graph->ctx;
  const bool is_all = t->desc.params == NULL;
  const size_t most = is_all ? graph->n_params : t->desc.n_params;
  t->params = berth__alloc_array(ctx, most, sizeof *t->params);
  t->grads = berth__alloc_array(ctx, most, sizeof *t->grads);
  t->data = berth__alloc_array_zero(ctx, most, sizeof *t->data);
  t->old_params = berth__alloc_array(ctx, graph->n_params, sizeof *t->old_params);
  if (t->params == NULL || t->grads == NULL || t->data == NULL || t->old_params == NULL)
    return berth__fail_nomem(err, "training");
  t->n_old_params = graph->n_params;
  if (graph->n_params != 0) memcpy(t->old_params, graph->params, graph->n_params * sizeof *graph->params);
  for (size_t i = 0; i < most; i++) {
    const berth_value param = is_all ? graph->params[i] : t->desc.params[i];
    if (is_all && !berth__type_is_float(graph->values[param].type)) continue;
    t->params[t->n++] = param;
    BERTH__TRY(train_check_param(t, t->n - 1, err));
  }
  return BERTH__RESERVE(ctx, graph->states, graph->states_capacity, graph->n_states + t->n, err);
}

/* A param that the loss depends on becomes a state; the others stay params. */
static berth_status train_turn(training *t, size_t index, berth_error *err) {
  berth_graph *graph = t->d.graph;
  berth__value *value = &graph->values[t->params[index]];
  uint64_t size = 0;
  t->data[index] = value->data;
  if (value->data != NULL && berth__value_size(value, &size)) {
    value->initial = berth__blob_create(graph->ctx, value->data, size);
    if (value->initial == NULL) return berth__fail_nomem(err, "the weights of a param");
  }
  value->kind = BERTH_VALUE_STATE;
  value->data = NULL;
  size_t n = 0;
  for (size_t i = 0; i < graph->n_params; i++)
    if (graph->params[i] != t->params[index]) graph->params[n++] = graph->params[i];
  graph->n_params = n;
  BERTH__TRY(BERTH__RESERVE(graph->ctx, graph->states, graph->states_capacity, graph->n_states + 1, err));
  graph->states[graph->n_states++] = t->params[index];
  return BERTH_OK;
}

/* Makes the states params again; everything else in the graph has been rolled back. */
static void train_turn_back(training *t) {
  berth_graph *graph = t->d.graph;
  for (size_t i = 0; i < t->n_turned; i++) {
    berth__value *value = &graph->values[t->params[i]];
    if (value->kind != BERTH_VALUE_STATE) continue;
    berth__blob_release(value->initial);
    value->initial = NULL;
    value->data = t->data[i];
    value->kind = BERTH_VALUE_PARAM;
  }
  if (t->old_params != NULL && t->n_old_params != 0)
    memcpy(graph->params, t->old_params, t->n_old_params * sizeof *graph->params);
}

/* The factor of gradients: 1 over the number of runs they were summed over, or less if their global norm exceeds the
 * limit. */
static berth_value train_scale(training *t) {
  berth__grad *d = &t->d;
  berth_value sum = BERTH_VALUE_NONE;
  const berth_attr flat = berth_attr_int("keepdims", 0);
  const double share = t->starts != BERTH_VALUE_NONE ? 1 / (double)t->desc.accumulate : 1;
  if (t->desc.clip == 0) return share != 1 ? berth__grad_scalar(d, BERTH_F32, share) : BERTH_VALUE_NONE;
  for (size_t i = 0; i < t->n && berth__grad_ok(d); i++) {
    if (t->grads[i] == BERTH_VALUE_NONE) continue;
    const berth_value square = berth__grad_mul(d, t->grads[i], t->grads[i]);
    const berth_value one =
        berth__grad_cast(d, berth__grad_op(d, BERTH__OP_reduce_sum, &square, 1, &flat, 1), BERTH_F32);
    sum = sum == BERTH_VALUE_NONE ? one : berth__grad_add(d, sum, one);
  }
  if (sum == BERTH_VALUE_NONE) return sum;
  berth_value root = berth__grad_1(d, BERTH__OP_sqrt, sum);
  if (share != 1) root = berth__grad_scale(d, root, share);
  const berth_value norm = berth__grad_num(d, BERTH__OP_add, root, 1e-6);
  const berth_value scale =
      berth__grad_num(d, BERTH__OP_min, berth__grad_num_first(d, BERTH__OP_div, t->desc.clip, norm), 1);
  return share != 1 ? berth__grad_scale(d, scale, share) : scale;
}

/* The optimiser's type: weights of 16 bits have a master copy. */
static berth_type train_type(const training *t, berth_value param) {
  return t->d.graph->values[param].type == BERTH_F64 ? BERTH_F64 : BERTH_F32;
}

/* An optimiser state, named after a param; data NULL: it starts as zeros. */
static berth_value train_state_of(training *t, berth_value param, const char *suffix, const void *data, size_t size) {
  berth_graph *graph = t->d.graph;
  berth_value out = BERTH_VALUE_NONE;
  if (!berth__grad_ok(&t->d)) return out;
  berth__text name;
  berth__text_init(&name, graph->ctx, NULL, NULL);
  berth__text_printf(&name, "%s%s", graph->values[param].name, suffix);
  t->d.status = berth__text_finish(&name, t->d.err);
  if (berth__grad_ok(&t->d))
    t->d.status =
        berth_graph_state(graph, name.data, train_type(t, param),
                          berth__shape_export(graph, &graph->values[param].shape), data, size, &out, t->d.err);
  berth__text_free(&name);
  return out;
}

static berth_value train_state(training *t, berth_value param, const char *suffix) {
  return train_state_of(t, param, suffix, NULL, 0);
}

/* The f32 master copy of 16-bit weights, initialised with them. */
static berth_value train_master(training *t, size_t index) {
  berth_context *ctx = t->d.graph->ctx;
  const berth__value *value = &t->d.graph->values[t->params[index]];
  int64_t count = 0;
  if (!berth__grad_ok(&t->d)) return BERTH_VALUE_NONE;
  if (t->data[index] == NULL || !berth__shape_count(&value->shape, &count))
    return train_state(t, t->params[index], ".master");
  float *wide = berth__alloc_array(ctx, (size_t)count, sizeof *wide);
  berth_value out = BERTH_VALUE_NONE;
  if (wide == NULL) {
    t->d.status = berth__fail_nomem(t->d.err, "a copy of weights");
    return out;
  }
  t->d.status = berth_to_f32(value->type, t->data[index], (uint64_t)count, wide, t->d.err);
  out = train_state_of(t, t->params[index], ".master", wide, (size_t)count * sizeof *wide);
  berth__free(ctx, wide);
  return out;
}

static void train_update(training *t, berth_value state, berth_value next) {
  if (berth__grad_ok(&t->d)) t->d.status = berth_graph_update(t->d.graph, state, next, t->d.err);
}

/* The weight updated by an optimiser; if that is a master copy, the param is the rounded copy. */
static void train_update_weight(training *t, berth_value param, berth_value w, berth_value next) {
  train_update(t, w, next);
  if (w != param) train_update(t, param, berth__grad_cast(&t->d, next, berth__grad_type(&t->d, param)));
}

static void train_sgd(training *t, berth_value param, berth_value w, berth_value gradient) {
  const berth_attr attrs[2] = {berth_attr_float("momentum", t->desc.momentum),
                               berth_attr_float("weight_decay", t->desc.weight_decay)};
  const bool has_velocity = t->desc.momentum != 0;
  const berth_value velocity = has_velocity ? train_state(t, param, ".velocity") : BERTH_VALUE_NONE;
  const berth_value in[] = {w, gradient, t->rate, velocity, t->scale, t->apply};
  berth_value out[2] = {BERTH_VALUE_NONE, BERTH_VALUE_NONE};
  berth__grad_ops(&t->d, BERTH__OP_sgd, in, 6, attrs, 2, out, has_velocity ? 2 : 1);
  train_update_weight(t, param, w, out[0]);
  if (has_velocity) train_update(t, velocity, out[1]);
}

static void train_adamw(training *t, berth_value param, berth_value w, berth_value gradient) {
  const berth_attr attrs[4] = {berth_attr_float("beta1", t->desc.beta1), berth_attr_float("beta2", t->desc.beta2),
                               berth_attr_float("epsilon", t->desc.epsilon),
                               berth_attr_float("weight_decay", t->desc.weight_decay)};
  const berth_value mean = train_state(t, param, ".mean"), square = train_state(t, param, ".square");
  const berth_value in[] = {w, gradient, mean, square, t->rate, t->step, t->scale, t->apply};
  berth_value out[3] = {BERTH_VALUE_NONE, BERTH_VALUE_NONE, BERTH_VALUE_NONE};
  berth__grad_ops(&t->d, BERTH__OP_adamw, in, 8, attrs, 4, out, 3);
  train_update_weight(t, param, w, out[0]);
  train_update(t, mean, out[1]);
  train_update(t, square, out[2]);
}

static berth_value train_counter(training *t, const char *name) {
  berth_value count = BERTH_VALUE_NONE;
  if (berth__grad_ok(&t->d))
    t->d.status = berth_graph_state(t->d.graph, name, BERTH_I64, berth_shape_fixed(0, NULL), NULL, 0, &count, t->d.err);
  return count;
}

/* Counts the runs of a step, if a step takes several. */
static void train_count_runs(training *t) {
  berth__grad *d = &t->d;
  const double n = (double)t->desc.accumulate;
  const berth_value run = train_counter(t, "train.run");
  const berth_value next = berth__grad_num(d, BERTH__OP_add, run, 1);
  const berth_value is_last = berth__grad_num(d, BERTH__OP_eq, berth__grad_num(d, BERTH__OP_mod, next, n), 0);
  train_update(t, run, next);
  t->starts = berth__grad_num(d, BERTH__OP_eq, berth__grad_num(d, BERTH__OP_mod, run, n), 0);
  t->apply = berth__grad_cast(d, is_last, BERTH_I64);
}

static void train_add_inputs(training *t) {
  berth__grad *d = &t->d;
  t->starts = t->apply = BERTH_VALUE_NONE;
  if (berth__grad_ok(d))
    d->status = berth_graph_input(d->graph, "learning_rate", BERTH_F32, berth_shape_fixed(0, NULL), &t->rate, d->err);
  if (t->desc.accumulate > 1) train_count_runs(t);
  const berth_value count = train_counter(t, "train.step");
  t->step =
      t->apply == BERTH_VALUE_NONE ? berth__grad_num(d, BERTH__OP_add, count, 1) : berth__grad_add(d, count, t->apply);
  train_update(t, count, t->step);
}

/* The gradient for the optimiser: in its type, and summed over the runs of a step. */
static berth_value train_gradient(training *t, size_t index) {
  berth__grad *d = &t->d;
  const berth_value gradient = berth__grad_cast(d, t->grads[index], train_type(t, t->params[index]));
  if (t->starts == BERTH_VALUE_NONE) return gradient;
  const berth_value sum = train_state(t, t->params[index], ".sum");
  const berth_value zero = berth__grad_scalar(d, train_type(t, t->params[index]), 0);
  const berth_value next = berth__grad_add(d, berth__grad_where(d, t->starts, zero, sum), gradient);
  train_update(t, sum, next);
  return next;
}

static void train_add_steps(training *t) {
  berth__grad *d = &t->d;
  for (size_t i = 0; i < t->n && berth__grad_ok(d); i++) {
    t->n_turned = i + 1;
    if (t->grads[i] == BERTH_VALUE_NONE) continue;
    d->status = train_turn(t, i, d->err);
    t->grads[i] = train_gradient(t, i);
  }
  t->scale = train_scale(t);
  for (size_t i = 0; i < t->n && berth__grad_ok(d); i++) {
    if (t->grads[i] == BERTH_VALUE_NONE) continue;
    const berth_value param = t->params[i];
    const berth_value w = t->d.graph->values[param].type == train_type(t, param) ? param : train_master(t, i);
    if (t->desc.optimizer == BERTH_OPTIMIZER_SGD)
      train_sgd(t, param, w, t->grads[i]);
    else
      train_adamw(t, param, w, t->grads[i]);
  }
}

static berth_status train_build(training *t, berth_value loss, berth_error *err) {
  bool has_some = false;
  BERTH__TRY(berth_graph_grad(t->d.graph, loss, t->params, t->n, t->grads, err));
  for (size_t i = 0; i < t->n; i++) has_some = has_some || t->grads[i] != BERTH_VALUE_NONE;
  if (!has_some)
    return berth__fail(err, BERTH_INVALID, "the loss '%s' depends on no param that is to be trained",
                       t->d.graph->values[loss].name);
  train_add_inputs(t);
  train_add_steps(t);
  return t->d.status;
}

berth_status berth_graph_train(berth_graph *graph, berth_value loss, const berth_train_desc *desc, berth_error *err) {
  training t = {.desc = BERTH_TRAIN_DESC_INIT};
  if (graph == NULL) return berth__fail(err, BERTH_INVALID, "the graph is NULL");
  BERTH__TRY(BERTH__DESC_COPY(&t.desc, desc, "berth_train_desc", err));
  t.d = (berth__grad){.graph = graph, .err = err};
  BERTH__TRY(train_check(&t, err));
  const berth__graph_mark mark = berth__graph_mark_now(graph);
  berth_status status = train_collect(&t, err);
  if (status == BERTH_OK) status = train_build(&t, loss, err);
  if (status != BERTH_OK) {
    berth__graph_roll_back(graph, &mark);
    train_turn_back(&t);
  }
  berth__free(graph->ctx, t.params);
  berth__free(graph->ctx, t.grads);
  berth__free(graph->ctx, t.data);
  berth__free(graph->ctx, t.old_params);
  return status;
}
