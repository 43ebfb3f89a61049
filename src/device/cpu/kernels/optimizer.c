/* sgd and adamw of f32, element by element: bound by memory. */
#include "ops/optimizer.h"

#include "device/cpu/kernels/vec.h"

#define ITEM 16384 /* elements */

/* All of one type and contiguous; scalars may be any. */
static bool optimizer_kernel_takes(const berth_op_call *call, uint32_t n_tensors, uint32_t n_out) {
  if (call->n_out > n_out) return false;
  for (uint32_t i = 0; i < n_tensors; i++)
    if (berth__optimizer_has(call, i) && (call->in[i].type != BERTH_F32 || !berth__is_contiguous(&call->in[i])))
      return false;
  for (uint32_t i = 0; i < call->n_out; i++)
    if (call->out[i].type != BERTH_F32) return false;
  return true;
}

static int64_t optimizer_kernel_items(const berth_op_call *call) {
  return (berth__count(&call->out[0]) + ITEM - 1) / ITEM;
}

/* The range of elements of the call's items. */
static void optimizer_kernel_span(const berth_op_call *call, int64_t *begin, int64_t *end) {
  const int64_t count = berth__count(&call->out[0]);
  *begin = call->begin * ITEM;
  *end = call->end * ITEM < count ? call->end * ITEM : count;
}

/* If `apply` is given and 0: the results are these operands, and there is nothing to do. */
static bool optimizer_kernel_waits(const berth_op_call *call, uint32_t apply, const uint32_t *operands, int64_t begin,
                                   int64_t end) {
  if (berth__optimizer_scalar(call, apply, 1) != 0) return false;
  for (uint32_t r = 0; r < call->n_out; r++) {
    const float *from = call->in[operands[r]].data;
    float *to = call->out[r].data;
    if (from != to && end > begin) memcpy(to + begin, from + begin, (size_t)(end - begin) * sizeof *to);
  }
  return true;
}

static vf optimizer_kernel_load(const float *p, int64_t n) { return n == VF_LANES ? vf_load(p) : vf_load_n(p, n); }

static void optimizer_kernel_store(float *p, vf x, int64_t n) {
  if (n == VF_LANES)
    vf_store(p, x);
  else
    vf_store_n(p, x, n);
}

static bool takes_sgd(const berth_op_call *call) {
  if (call->in[BERTH__SGD_W].type != BERTH_F32 || call->in[BERTH__SGD_GRADIENT].type != BERTH_F32) return false;
  const bool has_velocity = berth__optimizer_has(call, BERTH__SGD_VELOCITY);
  if (has_velocity &&
      (call->in[BERTH__SGD_VELOCITY].type != BERTH_F32 || !berth__is_contiguous(&call->in[BERTH__SGD_VELOCITY])))
    return false;
  return optimizer_kernel_takes(call, BERTH__SGD_GRADIENT + 1, has_velocity ? 2 : 1);
}

static berth_status run_sgd(const berth_op_call *call, berth_error *err) {
  const bool has_velocity = berth__optimizer_has(call, BERTH__SGD_VELOCITY);
  const float *w = call->in[BERTH__SGD_W].data, *gradient = call->in[BERTH__SGD_GRADIENT].data;
  const float *velocity = has_velocity ? call->in[BERTH__SGD_VELOCITY].data : NULL;
  float *to = call->out[0].data, *to_velocity = has_velocity ? call->out[1].data : NULL;
  const vf rate = vf_set1((float)berth__optimizer_scalar(call, BERTH__SGD_RATE, 0));
  const vf scale = vf_set1((float)berth__optimizer_scalar(call, BERTH__SGD_SCALE, 1));
  const vf decay = vf_set1((float)call->attrs[BERTH__SGD_WEIGHT_DECAY].f);
  const vf momentum = vf_set1((float)call->attrs[BERTH__SGD_MOMENTUM].f);
  static const uint32_t kept[] = {BERTH__SGD_W, BERTH__SGD_VELOCITY};
  int64_t i, end;
  (void)err;
  optimizer_kernel_span(call, &i, &end);
  if (optimizer_kernel_waits(call, BERTH__SGD_APPLY, kept, i, end)) return BERTH_OK;
  for (; i < end; i += VF_LANES) {
    const int64_t n = vf_tail(end - i);
    const vf before = optimizer_kernel_load(w + i, n);
    vf step = vf_fma(scale, optimizer_kernel_load(gradient + i, n), decay * before);
    if (has_velocity) {
      step = vf_fma(momentum, optimizer_kernel_load(velocity + i, n), step);
      optimizer_kernel_store(to_velocity + i, step, n);
    }
    optimizer_kernel_store(to + i, vf_fnma(rate, step, before), n);
  }
  return BERTH_OK;
}

static bool takes_adamw(const berth_op_call *call) { return optimizer_kernel_takes(call, BERTH__ADAMW_SQUARE + 1, 3); }

/* The constants of a step, each rounded once. */
typedef struct adamw {
  float rate, scale, decay, beta1, beta2, rest1, rest2, epsilon;
  float inverse1, inverse2; /* bias correction of the moments, which started at 0 */
} adamw;

static adamw optimizer_kernel_adamw(const berth_op_call *call) {
  const double step = berth__optimizer_scalar(call, BERTH__ADAMW_STEP, 1);
  const double beta1 = call->attrs[BERTH__ADAMW_BETA1].f, beta2 = call->attrs[BERTH__ADAMW_BETA2].f;
  return (adamw){.rate = (float)berth__optimizer_scalar(call, BERTH__ADAMW_RATE, 0),
                 .scale = (float)berth__optimizer_scalar(call, BERTH__ADAMW_SCALE, 1),
                 .decay = (float)call->attrs[BERTH__ADAMW_WEIGHT_DECAY].f,
                 .beta1 = (float)beta1,
                 .beta2 = (float)beta2,
                 .rest1 = (float)(1 - beta1),
                 .rest2 = (float)(1 - beta2),
                 .epsilon = (float)call->attrs[BERTH__ADAMW_EPSILON].f,
                 .inverse1 = (float)(1 / (1 - pow(beta1, step))),
                 .inverse2 = (float)(1 / (1 - pow(beta2, step)))};
}

static berth_status run_adamw(const berth_op_call *call, berth_error *err) {
  const adamw s = optimizer_kernel_adamw(call);
  const float *w = call->in[BERTH__ADAMW_W].data, *gradient = call->in[BERTH__ADAMW_GRADIENT].data;
  const float *means = call->in[BERTH__ADAMW_MEAN].data, *squares = call->in[BERTH__ADAMW_SQUARE].data;
  float *to = call->out[0].data, *to_mean = call->out[1].data, *to_square = call->out[2].data;
  static const uint32_t kept[] = {BERTH__ADAMW_W, BERTH__ADAMW_MEAN, BERTH__ADAMW_SQUARE};
  int64_t i, end;
  (void)err;
  optimizer_kernel_span(call, &i, &end);
  if (optimizer_kernel_waits(call, BERTH__ADAMW_APPLY, kept, i, end)) return BERTH_OK;
  for (; i < end; i += VF_LANES) {
    const int64_t n = vf_tail(end - i);
    const vf before = optimizer_kernel_load(w + i, n);
    const vf g = vf_set1(s.scale) * optimizer_kernel_load(gradient + i, n);
    const vf mean = vf_fma(vf_set1(s.beta1), optimizer_kernel_load(means + i, n), vf_set1(s.rest1) * g);
    const vf square = vf_fma(vf_set1(s.beta2), optimizer_kernel_load(squares + i, n), vf_set1(s.rest2) * g * g);
    const vf below = vf_sqrt(square * vf_set1(s.inverse2)) + vf_set1(s.epsilon);
    const vf step = vf_fma(vf_set1(s.decay), before, mean * vf_set1(s.inverse1) / below);
    optimizer_kernel_store(to_mean + i, mean, n);
    optimizer_kernel_store(to_square + i, square, n);
    optimizer_kernel_store(to + i, vf_fnma(vf_set1(s.rate), step, before), n);
  }
  return BERTH_OK;
}

const berth__cpu_kernel BERTH__PER_ISA(berth__kernels_optimizer)[] = {
    {"sgd", BERTH__OP_sgd, takes_sgd, optimizer_kernel_items, NULL, NULL, run_sgd, NULL, true, NULL},
    {"adamw", BERTH__OP_adamw, takes_adamw, optimizer_kernel_items, NULL, NULL, run_adamw, NULL, true, NULL},
    {0},
};
