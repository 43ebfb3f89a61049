/* rope_rows: rope before write_rows, as for the keys of a cache: x with rows [position, position + n) replaced by rows
 * that are turned first.
 *   x          f32, f16 or bf16 [capacity, H * D]
 *   rows       f32 [n, H * D]
 *   position   i32 or i64, a scalar
 *   cos, sin   tables of a float type, [n, dims / 2]
 * The result is that of the two ops. One item. */
#include "ops/heads.h"
#include "ops/line.h"
#include "ops/registry.h"

static const berth_attr attrs[BERTH__ROPE_ROWS_ATTRS] = {
    [BERTH__ROPE_ROWS_RING] = {.name = "ring", .kind = BERTH_ATTR_INT},
    [BERTH__ROPE_ROWS_HEADS] = {.name = "heads", .kind = BERTH_ATTR_INT},
    [BERTH__ROPE_ROWS_DIMS] = {.name = "dims", .kind = BERTH_ATTR_INT},
    [BERTH__ROPE_ROWS_INTERLEAVED] = {.name = "interleaved", .kind = BERTH_ATTR_INT},
};

/* The attributes of each of the two ops. */
static void rope_rows_attrs(const berth_attr *attr, berth_attr rope[4], berth_attr write[2]) {
  for (uint32_t i = 0; i < 4; i++) rope[i] = berth__family_rope.attrs[i];
  for (uint32_t i = 0; i < 2; i++) write[i] = berth__family_write_rows.attrs[i];
  rope[BERTH__ROPE_HEADS].i = attr[BERTH__ROPE_ROWS_HEADS].i;
  rope[BERTH__ROPE_DIMS].i = attr[BERTH__ROPE_ROWS_DIMS].i;
  rope[BERTH__ROPE_INTERLEAVED].i = attr[BERTH__ROPE_ROWS_INTERLEAVED].i;
  write[BERTH__WRITE_ROWS_RING].i = attr[BERTH__ROPE_ROWS_RING].i;
}

static const uint32_t rope_rows_turned[] = {BERTH__ROPE_ROWS_ROWS, BERTH__ROPE_ROWS_COS, BERTH__ROPE_ROWS_SIN};

static berth_status rope_rows_infer(berth__infer *infer, berth_error *err) {
  berth_attr of_rope[4], of_write[2];
  berth_type types[3];
  berth__shape shapes[3];
  berth__infer rope = *infer, write = *infer;
  rope_rows_attrs(infer->attrs, of_rope, of_write);
  BERTH__TRY(berth__want_rank(infer, BERTH__ROPE_ROWS_X, 2, 2, err));
  BERTH__TRY(berth__want_float(infer, BERTH__ROPE_ROWS_X, err));
  BERTH__TRY(berth__want_type(infer, BERTH__ROPE_ROWS_ROWS, BERTH_F32, err));
  BERTH__TRY(berth__want_rank(infer, BERTH__ROPE_ROWS_ROWS, 2, 2, err));
  for (uint32_t i = 0; i < 3; i++) {
    types[i] = infer->in_type[rope_rows_turned[i]];
    shapes[i] = infer->in_shape[rope_rows_turned[i]];
  }
  rope.in_type = types;
  rope.in_shape = shapes;
  rope.n_in = 3;
  rope.attrs = of_rope;
  BERTH__TRY(berth__family_rope.infer(&rope, err));
  write.n_in = 3;
  write.attrs = of_write;
  return berth__family_write_rows.infer(&write, err);
}

/* Of the turned rows; rope's own comes after them. */
static uint64_t rope_rows_bytes(const berth_op_call *call) {
  return ((uint64_t)berth__count(&call->in[BERTH__ROPE_ROWS_ROWS]) * sizeof(float) + 63) / 64 * 64;
}

static berth_op_call rope_rows_rope(const berth_op_call *call, berth_tensor in[3], const berth_attr *attr) {
  berth_op_call rope = *call;
  for (uint32_t i = 0; i < 3; i++) in[i] = call->in[rope_rows_turned[i]];
  rope.in = in;
  rope.n_in = 3;
  rope.attrs = attr;
  rope.n_attrs = 4;
  return rope;
}

static uint64_t rope_rows_scratch(const berth_op_call *call) {
  berth_attr of_rope[4], of_write[2];
  berth_tensor in[3];
  rope_rows_attrs(call->attrs, of_rope, of_write);
  const berth_op_call rope = rope_rows_rope(call, in, of_rope);
  return rope_rows_bytes(call) + berth__family_rope.scratch(&rope);
}

static berth_status rope_rows_kernel(const berth_op_call *call, berth_error *err) {
  berth_attr of_rope[4], of_write[2];
  berth_tensor in[3], turned = call->in[BERTH__ROPE_ROWS_ROWS];
  rope_rows_attrs(call->attrs, of_rope, of_write);
  berth__contiguous_strides(turned.rank, turned.dim, turned.stride);
  turned.data = call->scratch;
  berth_op_call rope = rope_rows_rope(call, in, of_rope), write = *call;
  rope.out = &turned;
  rope.scratch = (char *)call->scratch + rope_rows_bytes(call);
  rope.begin = 0;
  rope.end = berth__family_rope.items(&rope);
  BERTH__TRY(berth__family_rope.kernel(&rope, err));
  const berth_tensor written[] = {call->in[BERTH__ROPE_ROWS_X], turned, call->in[BERTH__ROPE_ROWS_POSITION]};
  write.in = written;
  write.n_in = 3;
  write.attrs = of_write;
  write.n_attrs = 2;
  write.begin = 0;
  write.end = berth__family_write_rows.items(&write);
  return berth__family_write_rows.kernel(&write, err);
}

const berth__family berth__family_rope_rows = {
    .attrs = attrs,
    .n_attrs = sizeof attrs / sizeof *attrs,
    .infer = rope_rows_infer,
    .scratch = rope_rows_scratch,
    .kernel = rope_rows_kernel,
};
