/* qproduct, and what all int8 products share. */
#include "ops/bytes.h"

#include "kernel/lower/bytes.h"
#include "ops/product.h"

typedef struct bytes_end {
  berth__tile_epilogue epilogue;
  const berth_attr *own;
  uint32_t scale_view;
  uint32_t counts_view; /* of a bias of integers, which is added to the sum; BERTH__TILE_NONE: there is none */
} bytes_end;

/* Converts to a byte: rounds, adds the zero point, clamps; NaN becomes 0. */
static berth__x to_byte(berth__kernel *k, const berth_attr *own, berth_type type, berth__x value) {
  int64_t low, high;
  berth__int_limits(type, &low, &high);
  value = berth__x_quotient(k, value, berth__x_f32(k, (float)own[BERTH__BYTES_OUT_SCALE].f));
  value = berth__x_add(k, berth__x1(k, BERTH__INST_round, value), berth__x_f32(k, (float)own[BERTH__BYTES_OUT_ZERO].i));
  const berth__x is_nan = berth__x_is_nan(k, value);
  value = berth__x_max(k, value, berth__x_f32(k, (float)low));
  value = berth__x_min(k, value, berth__x_f32(k, (float)high));
  return berth__x_select(k, is_nan, berth__x_f32(k, 0), value);
}

static void lower_bytes_finish(const berth__tile *tile, berth__kernel *k, const berth__x *place, berth__x sum) {
  const bytes_end *end = tile->user;
  const berth_type type = tile->l->call->out[0].type;
  const berth__x scale = berth__l_load(tile->l, k, BERTH__BYTES_SCALE, place[end->scale_view]);
  if (end->counts_view != BERTH__TILE_NONE)
    sum = berth__x_add(k, sum, berth__l_load(tile->l, k, BERTH__BYTES_BIAS, place[end->counts_view]));
  berth__x value = berth__x_mul(k, berth__x_convert(k, BERTH__NUM_F32, sum), scale);
  value = berth__x1(k, BERTH__INST_rounded, value);
  value = berth__tile_epilogue_value(tile, &end->epilogue, k, place, value);
  berth__l_store(tile->l, k, 0, place[0], type == BERTH_F32 ? value : to_byte(k, end->own, type, value));
}

/* The stride between the entries of a scale or a zero point; 0 if there is one for all. */
static int64_t entry_stride(const berth_tensor *tensor) {
  return tensor->rank == 0 || tensor->dim[0] == 1 ? 0 : tensor->stride[0];
}

berth_status berth__tile_lower_bytes(berth__tile *tile, int64_t of_batch, int64_t of_line, berth_error *err) {
  const berth_op_call *call = tile->l->call;
  const berth__bytes_attrs attrs = berth__bytes_attrs_of(tile->l->op, call->attrs);
  const uint32_t axis = call->out[0].rank - 1;
  const bool is_packed = call->in[BERTH__BYTES_WEIGHT].rank == 4 && tile->right.fours > 0;
  bytes_end end = {.own = attrs.own};
  if (call->out[0].type == BERTH_I32) /* rewriting makes these for the CPU only */
    return berth__fail(err, BERTH_UNSUPPORTED, "GPUs have no kernel for integer products whose result is i32");
  if (berth__l_has(tile->l, BERTH__BYTES_X_ZERO)) tile->left.zero = BERTH__BYTES_X_ZERO;
  if (berth__l_has(tile->l, BERTH__BYTES_WEIGHT_ZERO)) {
    const int64_t stride = entry_stride(&call->in[BERTH__BYTES_WEIGHT_ZERO]);
    tile->right.zero = BERTH__BYTES_WEIGHT_ZERO;
    tile->right.zero_batch = of_batch * stride;
    tile->right.zero_line = of_line * stride;
  }
  if (is_packed && strcmp(attrs.own[BERTH__BYTES_WEIGHTS].s, "u8") == 0) tile->right.shift = BERTH__BYTES_SHIFT;
  BERTH__TRY(berth__tile_epilogue_read(tile, &end.epilogue, BERTH__BYTES_BIAS, axis, &attrs.own[BERTH__BYTES_ADDS],
                                       berth__bytes_epilogue_first(&attrs), attrs.code, attrs.numbers, err));
  end.counts_view = BERTH__TILE_NONE;
  if (berth__bytes_counts_bias(call)) {
    end.counts_view = end.epilogue.bias_view;
    end.epilogue.bias = BERTH__TILE_NONE;
  }
  end.scale_view = berth__tile_view_axis(tile, axis, entry_stride(&call->in[BERTH__BYTES_SCALE]));
  tile->finish = lower_bytes_finish;
  tile->user = &end;
  return berth__tile_has_channel_words(tile) ? berth__tile_channel_words(tile, err) : berth__tile_lower(tile, err);
}

berth_status berth__lower_qproduct(berth__lowering *l, berth_error *err) {
  const berth_tensor *x = &l->call->in[0], *w = &l->call->in[1], *out = &l->call->out[0];
  berth__tile tile;
  berth__tile_init(&tile, l, BERTH__NUM_I32);
  for (uint32_t axis = 0; axis + 1 < x->rank; axis++) {
    berth__tile_axis(&tile.rows, x->dim[axis], axis, 1);
    tile.left.line[axis] = x->stride[axis];
  }
  berth__tile_axis(&tile.depth, x->dim[x->rank - 1], 0, 0);
  berth__tile_axis(&tile.columns, out->dim[out->rank - 1], out->rank - 1, 1);
  tile.left.depth[0] = x->stride[x->rank - 1];
  tile.right.depth[0] = 1;
  tile.right.panel = w->dim[2];
  tile.right.panel_stride = w->stride[0];
  tile.right.line[0] = w->stride[2];
  tile.right.fours = w->stride[1];
  return berth__tile_lower_bytes(&tile, 0, 1, err);
}
