#include "samples.h"

#include <float.h>
#include <math.h>

#include "support.h"

berth__kernel *sample_make(berth_context *ctx, const char *name, sample_fn fn) {
  berth_error err;
  berth__kernel *k;
  TEST_OK(berth__kernel_create(ctx, name, &k, &err));
  fn(k);
  TEST_OK(berth__kernel_finish(k, &err));
  return k;
}

static berth__x flat_index(berth__kernel *k, uint32_t group_size, uint64_t n_groups) {
  k->group_size = group_size;
  k->n_groups = n_groups;
  const berth__x thread = berth__x_thread(k); /* in its own statement, since arguments are evaluated in any order */
  return berth__x_add(k, berth__x_affine(k, berth__x_group(k), group_size, 0), thread);
}

void sample_scaled_sum(berth__kernel *k) {
  const uint32_t a = berth__kernel_buffer_of(k, 0, BERTH_F32), b = berth__kernel_buffer_of(k, 1, BERTH_F32);
  const berth__x i = flat_index(k, 64, 16);
  berth__x_if(k, berth__x_lt(k, i, berth__x_i32(k, 1000)));
  const berth__x far = berth__x_load(k, a, berth__x_affine(k, i, 1, 1000));
  const berth__x sum = berth__x_add(k, berth__x_load(k, a, i), far);
  berth__x_store(k, b, i, berth__x_mul(k, sum, berth__x_f32(k, 0.1f)));
  berth__x_end(k);
}

void sample_row_sums(berth__kernel *k) {
  const uint32_t in = berth__kernel_buffer_of(k, 0, BERTH_F32), out = berth__kernel_buffer_of(k, 1, BERTH_F32);
  const uint32_t shared = berth__kernel_shared(k, BERTH__NUM_F32, 32);
  k->group_size = 32;
  k->n_groups = 70000;
  const berth__x group = berth__x_group(k), thread = berth__x_thread(k);
  const berth__x sum = berth__x_variable(k, berth__x_f32(k, 0.0f));
  const berth__x j = berth__x_loop(k, thread, berth__x_i32(k, 100), 32);
  const berth__x element = berth__x_load(k, in, berth__x_add(k, berth__x_affine(k, group, 100, 0), j));
  berth__x_set(k, sum, berth__x_add(k, berth__x_get(k, sum), element));
  berth__x_end(k);
  berth__x_shared_store(k, shared, thread, berth__x_get(k, sum));
  berth__x_barrier(k);
  berth__x_if(k, berth__x_eq(k, thread, berth__x_i32(k, 0)));
  const berth__x total = berth__x_variable(k, berth__x_f32(k, 0.0f));
  const berth__x t = berth__x_loop_n(k, 32);
  const berth__x part = berth__x_shared_load(k, shared, t);
  berth__x_set(k, total, berth__x_add(k, berth__x_get(k, total), part));
  berth__x_end(k);
  berth__x_store(k, out, group, berth__x_get(k, total));
  berth__x_end(k);
}

void sample_windows(berth__kernel *k) {
  const uint32_t half = berth__kernel_buffer_of(k, 0, BERTH_F16), out = berth__kernel_buffer_of(k, 1, BERTH_I32);
  const uint32_t local = berth__kernel_local(k, BERTH__NUM_I32, 4);
  const berth__x i = flat_index(k, 8, 1);
  const berth__x j = berth__x_loop_unrolled(k, berth__x_i32(k, 0), berth__x_i32(k, 4), 1);
  const berth__x element = berth__x_load(k, half, berth__x_add(k, berth__x_affine(k, i, 4, 0), j));
  berth__x_local_store(k, local, j, berth__x_convert(k, BERTH__NUM_I32, element));
  berth__x_end(k);
  const berth__x first = berth__x_local_load(k, local, berth__x_i32(k, 0));
  const berth__x by = berth__x_local_load(k, local, berth__x_i32(k, 1));
  berth__x_if(k, berth__x_lt(k, by, first));
  berth__x_store(k, out, i, berth__x_div(k, first, by));
  berth__x_else(k);
  berth__x_store(k, out, i, berth__x2(k, BERTH__INST_rem, first, berth__x_i32(k, 7)));
  berth__x_end(k);
}

void sample_literals(berth__kernel *k) {
  static const float values[] = {INFINITY, -INFINITY, NAN, -0.0f, 1e-40f, 1.0f, -2.5f, -FLT_MAX, 16777216.0f, 0.1f};
  const uint32_t f = berth__kernel_buffer_of(k, 0, BERTH_F32), i = berth__kernel_buffer_of(k, 1, BERTH_I32);
  const berth__x zero = berth__x_i32(k, 0);
  for (size_t v = 0; v < sizeof values / sizeof values[0]; v++)
    berth__x_store(k, f, berth__x_i32(k, (int64_t)v), berth__x_f32(k, values[v]));
  berth__x_store(k, i, zero, berth__x_i32(k, INT32_MIN));
  berth__x_store(k, i, berth__x_i32(k, 1), berth__x_sub(k, berth__x_load(k, i, zero), berth__x_i32(k, -3)));
  berth__x_store(k, i, berth__x_i32(k, 2), berth__x_affine(k, berth__x_load(k, i, zero), -2, -1));
  berth__x_store(k, f, zero, berth__x_add(k, berth__x_load(k, f, zero), berth__x_f32(k, -0.5f)));
}

/* A condition from memory around a barrier. */
void sample_guarded(berth__kernel *k) {
  const uint32_t guard = berth__kernel_buffer_of(k, 9, BERTH_U32);
  berth__x_if(k, berth__x_ne(k, berth__x_load(k, guard, berth__x_i32(k, 0)), berth__x_u32(k, 0)));
  sample_row_sums(k);
  berth__x_end(k);
}

/* Blocks of 32 elements go through shared memory; their number is read from memory. */
void sample_counted(berth__kernel *k) {
  const uint32_t counts = berth__kernel_buffer_of(k, 0, BERTH_I32), in = berth__kernel_buffer_of(k, 1, BERTH_F32),
                 out = berth__kernel_buffer_of(k, 2, BERTH_F32);
  k->group_size = 32;
  k->n_groups = 4;
  const uint32_t shared = berth__kernel_shared(k, BERTH__NUM_F32, 32);
  const berth__x thread = berth__x_thread(k), group = berth__x_group(k);
  const berth__x count = berth__x_min(k, berth__x_load(k, counts, group), berth__x_i32(k, 320));
  const berth__x sum = berth__x_variable(k, berth__x_f32(k, 0));
  const berth__x from = berth__x_loop(k, berth__x_i32(k, 0), count, 32);
  berth__x_barrier(k);
  berth__x_shared_store(k, shared, thread, berth__x_load(k, in, berth__x_add(k, from, thread)));
  berth__x_barrier(k);
  const berth__x other = berth__x_shared_load(k, shared, berth__x_sub(k, berth__x_i32(k, 31), thread));
  berth__x_set(k, sum, berth__x_add(k, berth__x_get(k, sum), other));
  berth__x_end(k);
  berth__x_store(k, out, berth__x_add(k, berth__x_affine(k, group, 32, 0), thread), berth__x_get(k, sum));
}

/* ---- Every instruction ---- */

typedef struct values {
  berth__x of[4][3]; /* by type */
} values;

static values load_values(berth__kernel *k) {
  static const berth__storage storages[] = {BERTH_F32, BERTH_I32, BERTH_U32};
  values v;
  for (uint32_t type = 0; type < 3; type++)
    for (uint32_t i = 0; i < 3; i++)
      v.of[type][i] = berth__x_load(k, berth__kernel_buffer_of(k, type, storages[type]), berth__x_i32(k, i));
  for (uint32_t i = 0; i < 3; i++) v.of[BERTH__NUM_BOOL][i] = berth__x_eq(k, v.of[1][i], v.of[1][(i + 1) % 3]);
  return v;
}

static void keep(berth__kernel *k, berth__x x, int64_t *n) {
  const berth__number type = (berth__number)berth__x_inst(k, x)->type;
  const berth__x bits = type == BERTH__NUM_BOOL  ? berth__x_convert(k, BERTH__NUM_U32, x)
                        : type == BERTH__NUM_U32 ? x
                                                 : berth__x_bits(k, BERTH__NUM_U32, x);
  berth__x_store(k, berth__kernel_buffer_of(k, 3, BERTH_U32), berth__x_i32(k, (*n)++), bits);
}

#define F 1u
#define I 2u
#define U 4u
#define B 8u

/* The types that an instruction supports: one bit each. */
static uint32_t types_of(berth__inst_code code) {
  switch (code) {
    case BERTH__INST_rem: return I | U;
    case BERTH__INST_and:
    case BERTH__INST_or:
    case BERTH__INST_xor:
    case BERTH__INST_not: return I | U | B;
    case BERTH__INST_shl:
    case BERTH__INST_shr: return I | U;
    case BERTH__INST_neg: return F | I | U;
    case BERTH__INST_abs: return F | I;
    case BERTH__INST_eq:
    case BERTH__INST_ne: return F | I | U | B;
    case BERTH__INST_quotient:
    case BERTH__INST_rounded:
    case BERTH__INST_fma:
    case BERTH__INST_sqrt:
    case BERTH__INST_exp:
    case BERTH__INST_floor:
    case BERTH__INST_ceil:
    case BERTH__INST_round:
    case BERTH__INST_trunc:
    case BERTH__INST_to_half:
    case BERTH__INST_pack_half: return F;
    case BERTH__INST_dot4:
    case BERTH__INST_unpack_half: return U;
    default: return F | I | U;
  }
}

static berth__x apply(berth__kernel *k, berth__inst_code code, const berth__x *in) {
  switch (berth__inst_operands(code)) {
    case 1: return berth__x1(k, code, in[0]);
    case 2: return berth__x2(k, code, in[0], in[1]);
    default: return berth__x3(k, code, in[0], in[1], in[2]);
  }
}

static void make_conversions(berth__kernel *k, const values *v, int64_t *n) {
  for (uint32_t from = 0; from < 4; from++) {
    for (uint32_t to = 0; to < 4; to++) {
      keep(k, berth__x_convert(k, (berth__number)to, v->of[from][1]), n);
      if (from < 3 && to < 3) keep(k, berth__x_bits(k, (berth__number)to, v->of[from][2]), n);
    }
  }
}

static void make_bytes(berth__kernel *k, const values *v, int64_t *n) {
  for (uint32_t which = 0; which < 4; which++) {
    keep(k, berth__x_byte(k, v->of[BERTH__NUM_I32][0], which), n);
    keep(k, berth__x_byte(k, v->of[BERTH__NUM_U32][0], which), n);
  }
}

void sample_everything(berth__kernel *k) {
  const values v = load_values(k);
  int64_t n = 0;
  for (int code = BERTH__INST_add; code <= BERTH__INST_unpack_half; code++) {
    for (uint32_t type = 0; type < 4; type++) {
      if (code == BERTH__INST_select) {
        keep(k, berth__x_select(k, v.of[3][0], v.of[type][0], v.of[type][1]), &n);
        continue;
      }
      if ((types_of((berth__inst_code)code) >> type & 1u) == 0) continue;
      berth__x in[3] = {v.of[type][0], v.of[type][1], v.of[type][2]};
      if (code == BERTH__INST_shl || code == BERTH__INST_shr)
        in[1] = berth__x2(k, BERTH__INST_and, in[1], type == 1 ? berth__x_i32(k, 31) : berth__x_u32(k, 31));
      keep(k, apply(k, (berth__inst_code)code, in), &n);
    }
  }
  make_conversions(k, &v, &n);
  make_bytes(k, &v, &n);
}

void sample_blocks(berth__kernel *k) {
  sample_row_sums(k);
  const uint32_t out = berth__kernel_buffer_of(k, 4, BERTH_U32);
  const berth__x i = berth__x_loop_n(k, 10);
  berth__x_if(k, berth__x_lt(k, berth__x_load(k, out, i), berth__x_u32(k, 3)));
  berth__x_break(k);
  berth__x_else(k);
  berth__x_store(k, out, i, berth__x_u32(k, 9));
  berth__x_end(k);
  berth__x_end(k);
}

void sample_storages(berth__kernel *k) {
  static const berth__storage storages[] = {BERTH_F32, BERTH_I32, BERTH_U32, BERTH_F16, BERTH_BF16,
                                            BERTH_I16, BERTH_U16, BERTH_I8,  BERTH_U8,  BERTH_BOOL};
  const berth__x thread = berth__x_thread(k), index = berth__x_affine(k, thread, 3, 1);
  for (uint32_t i = 0; i < sizeof storages / sizeof storages[0]; i++) {
    const berth__x value = berth__x_load(k, berth__kernel_buffer_of(k, i, storages[i]), index);
    berth__x_store(k, berth__kernel_buffer_of(k, i, storages[i]), thread, value);
  }
}

/* In addition to a plain load through the same array. */
void sample_contended(berth__kernel *k) {
  const uint32_t in = berth__kernel_buffer_of(k, 0, BERTH_I32), out = berth__kernel_buffer_of(k, 1, BERTH_U32);
  const berth__x i = flat_index(k, 64, 2);
  berth__x_store_max(k, out, berth__x_load(k, in, i), berth__x_convert(k, BERTH__NUM_U32, i));
}

void sample_exchanged(berth__kernel *k) {
  const uint32_t guard = berth__kernel_buffer_of(k, 0, BERTH_U32), in = berth__kernel_buffer_of(k, 1, BERTH_F32),
                 out = berth__kernel_buffer_of(k, 2, BERTH_F32);
  k->group_size = 32;
  k->n_groups = 3;
  berth__x_if(k, berth__x_ne(k, berth__x_load(k, guard, berth__x_i32(k, 0)), berth__x_u32(k, 0)));
  const berth__x thread = berth__x_thread(k); /* before the group, since operands are evaluated in any order */
  const berth__x index = berth__x_add(k, berth__x_affine(k, berth__x_group(k), 32, 0), thread);
  const berth__x own = berth__x_load(k, in, index), there = berth__x_exchange(k, thread, 1);
  const berth__x sum = berth__x_add(k, own, berth__x_exchange(k, own, 2));
  berth__x_store(k, out, index, berth__x_mul(k, sum, berth__x_convert(k, BERTH__NUM_F32, there)));
  berth__x_end(k);
}

const sample_fn samples[SAMPLES] = {sample_scaled_sum, sample_row_sums,   sample_windows, sample_guarded,
                                    sample_literals,   sample_everything, sample_blocks,  sample_counted,
                                    sample_storages,   sample_contended};
