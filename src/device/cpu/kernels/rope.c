/* Rotary position embedding. Angles are computed in f64, once for all heads of a row: positions are large, and the
 * angle modulo a full turn must be exact. The pairs of a head are rotated in vectors; f16 and bf16 are converted head
 * by head. */
#include "device/cpu/kernels/chain_steps.h"
#include "ops/heads.h"
#include "ops/operand.h"

typedef struct rope {
  berth__heads x;
  const berth_tensor *second;          /* positions, or cosines */
  const berth_tensor *cosines, *sines; /* tables; NULL: positions are given */
  int64_t pairs;
  double ratio;         /* between the frequencies of consecutive pairs */
  float *cosine, *sine; /* of one row, in scratch */
  float *head;          /* of x, if it is not f32 */
} rope;

static bool rope_kernel_is_float(berth_type type) {
  return type == BERTH_F32 || type == BERTH_F16 || type == BERTH_BF16;
}

static bool rope_kernel_takes(const berth_op_call *call) {
  const bool has_tables = berth__call_has(call, BERTH__ROPE_SIN);
  if (!rope_kernel_is_float(call->in[BERTH__ROPE_X].type)) return false;
  return !has_tables ||
         (rope_kernel_is_float(call->in[BERTH__ROPE_COS].type) && rope_kernel_is_float(call->in[BERTH__ROPE_SIN].type));
}

static rope rope_kernel_describe(const berth_op_call *call) {
  rope r = {.x = berth__heads_of(&call->in[BERTH__ROPE_X], call->attrs[BERTH__ROPE_HEADS].i),
            .second = &call->in[BERTH__ROPE_POSITIONS]};
  const int64_t dims = call->attrs[BERTH__ROPE_DIMS].i != 0 ? call->attrs[BERTH__ROPE_DIMS].i : r.x.size;
  r.pairs = dims / 2;
  r.cosine = call->scratch;
  r.sine = r.cosine + r.pairs;
  r.head = r.cosine + r.x.size;
  if (berth__call_has(call, BERTH__ROPE_SIN)) {
    r.cosines = &call->in[BERTH__ROPE_COS];
    r.sines = &call->in[BERTH__ROPE_SIN];
  } else if (dims != 0) {
    r.ratio = pow(call->attrs[BERTH__ROPE_THETA].f, -2.0 / (double)dims);
  }
  return r;
}

/* Must not read data: it is called when there is none yet. */
static uint64_t rope_kernel_scratch(const berth_op_call *call) {
  const int64_t size = berth__heads_of(&call->in[BERTH__ROPE_X], call->attrs[BERTH__ROPE_HEADS].i).size;
  return (uint64_t)size * (call->in[BERTH__ROPE_X].type == BERTH_F32 ? 1 : 2) * sizeof(float);
}

static int64_t rope_kernel_items(const berth_op_call *call) {
  const berth__heads x = berth__heads_of(&call->in[BERTH__ROPE_X], call->attrs[BERTH__ROPE_HEADS].i);
  return x.batch * x.length;
}

static void rope_kernel_load(float *to, const berth_tensor *table, int64_t at, int64_t n) {
  chain_load(to, table->type, (const char *)table->data + at * (int64_t)berth_type_size(table->type), 1, n);
}

/* Tables and positions without a batch axis serve every batch. */
static void rope_kernel_find_angles(rope *r, int64_t batch, int64_t row) {
  const bool by_batch = r->second->rank == (r->cosines != NULL ? 3u : 2u);
  const int64_t at = by_batch ? batch * r->x.length + row : row;
  if (r->cosines != NULL) {
    rope_kernel_load(r->cosine, r->cosines, at * r->pairs, r->pairs);
    rope_kernel_load(r->sine, r->sines, at * r->pairs, r->pairs);
    return;
  }
  const double position = (double)berth__load_i64(r->second, at);
  double frequency = 1;
  for (int64_t i = 0; i < r->pairs; i++, frequency *= r->ratio) {
    r->cosine[i] = (float)cos(position * frequency);
    r->sine[i] = (float)sin(position * frequency);
  }
}

static void rope_kernel_turn_halves(const rope *r, const float *x, float *y) {
  const vf none = vf_set1(0);
  for (int64_t i = 0; i < r->pairs; i += VF_LANES) {
    const int64_t n = vf_tail(r->pairs - i);
    const vf a = vf_load_else(x + i, n, none), b = vf_load_else(x + i + r->pairs, n, none);
    const vf c = vf_load_else(r->cosine + i, n, none), s = vf_load_else(r->sine + i, n, none);
    vf_store_n(y + i, a * c - b * s, n);
    vf_store_n(y + i + r->pairs, a * s + b * c, n);
  }
}

static void rope_kernel_turn_neighbours(const rope *r, const float *x, float *y) {
  for (int64_t i = 0; i < r->pairs; i++) {
    const float a = x[2 * i], b = x[2 * i + 1];
    y[2 * i] = a * r->cosine[i] - b * r->sine[i];
    y[2 * i + 1] = a * r->sine[i] + b * r->cosine[i];
  }
}

static void rope_kernel_turn(const rope *r, const berth_op_call *call, const float *x, float *y) {
  const int64_t rest = r->x.size - 2 * r->pairs;
  if (call->attrs[BERTH__ROPE_INTERLEAVED].i != 0)
    rope_kernel_turn_neighbours(r, x, y);
  else
    rope_kernel_turn_halves(r, x, y);
  if (rest > 0 && x != y) memcpy(y + 2 * r->pairs, x + 2 * r->pairs, (size_t)rest * sizeof(float));
}

static berth_status rope_kernel_run(const berth_op_call *call, berth_error *err) {
  rope r = rope_kernel_describe(call);
  const berth_tensor *x = &call->in[BERTH__ROPE_X];
  (void)err;
  for (int64_t item = call->begin; item < call->end; item++) {
    const int64_t batch = item / r.x.length, row = item % r.x.length;
    rope_kernel_find_angles(&r, batch, row);
    for (int64_t head = 0; head < r.x.heads; head++) {
      const int64_t at = berth__heads_at(&r.x, batch, head, row);
      if (x->type == BERTH_F32) {
        rope_kernel_turn(&r, call, (const float *)x->data + at, (float *)call->out[0].data + at);
        continue;
      }
      rope_kernel_load(r.head, x, at, r.x.size);
      rope_kernel_turn(&r, call, r.head, r.head);
      chain_store((uint16_t *)call->out[0].data + at, x->type, r.head, r.x.size);
    }
  }
  return BERTH_OK;
}

const berth__cpu_kernel BERTH__PER_ISA(berth__kernels_rope)[] = {
    {.name = "rope",
     .code = BERTH__OP_rope,
     .takes = rope_kernel_takes,
     .items = rope_kernel_items,
     .scratch = rope_kernel_scratch,
     .run = rope_kernel_run},
    {0},
};
