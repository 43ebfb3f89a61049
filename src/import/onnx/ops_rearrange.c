/* Ops that split a tensor into parts and rearrange them. */
#include <stddef.h>

#include "import/onnx/chain.h"
#include "import/onnx/compose.h"

/* One extent of a new shape: that of an axis, times `times`, divided by `parts`; or a number if axis is -1. */
typedef struct extent {
  int64_t axis, times, parts;
} extent;

static berth_status make_extent(berth__onnx_call *call, berth_value x, const extent *e, berth_value *out,
                                berth_error *err) {
  const berth_attr range[2] = {berth_attr_int("start", e->axis), berth_attr_int("end", e->axis + 1)};
  if (e->axis < 0) return berth__onnx_list(call, &e->times, 1, out, err);
  BERTH__TRY(berth__onnx_emit(call, "shape", &x, 1, range, 2, out, 1, err));
  if (e->times != 1) BERTH__TRY(berth__onnx_with(call, "mul", *out, (double)e->times, out, err));
  if (e->parts != 1) BERTH__TRY(berth__onnx_with(call, "div", *out, (double)e->parts, out, err));
  return BERTH_OK;
}

/* x in a shape made from the extents of `like`, even if those are not known yet. */
static berth_status onnx_rearrange_reshape_to(berth__onnx_call *call, berth_value x, berth_value like,
                                              const extent *extents, uint32_t n, berth_value *out, berth_error *err) {
  const berth_attr axis = berth_attr_int("axis", 0);
  berth_value parts[BERTH_MAX_RANK], in[2] = {x, BERTH_VALUE_NONE};
  for (uint32_t i = 0; i < n; i++) BERTH__TRY(make_extent(call, like, &extents[i], &parts[i], err));
  BERTH__TRY(berth__onnx_emit(call, "concat", parts, n, &axis, 1, &in[1], 1, err));
  return berth__onnx_emit(call, "reshape", in, 2, NULL, 0, out, 1, err);
}

static berth_status onnx_rearrange_take_block(berth__onnx_call *call, int64_t *block, berth_error *err) {
  BERTH__TRY(berth__onnx_begin(call, 1, err));
  *block = berth__onnx_int(call, "blocksize", 0);
  if (*block < 1 || *block > 4096)
    return berth__fail(err, BERTH_MALFORMED, "its blocksize is %lld, expected 1 to 4096", (long long)*block);
  const uint32_t rank = berth__onnx_shape(call, call->in[0])->rank;
  if (rank != 4) return berth__fail(err, BERTH_MALFORMED, "its operand has rank %u, expected 4", rank);
  return BERTH_OK;
}

/* [N, C, H, W] to [N, C / b b, H b, W b]: the channels of a block become neighbours in space. */
static berth_status convert_depth_to_space(berth__onnx_call *call, berth_error *err) {
  static const int64_t depth_first[] = {0, 3, 4, 1, 5, 2}, column_first[] = {0, 1, 4, 2, 5, 3};
  const berth__span mode = berth__onnx_string(call, "mode", "DCR");
  berth_value x, result;
  int64_t b;
  BERTH__TRY(onnx_rearrange_take_block(call, &b, err));
  x = call->in[0];
  const bool is_depth_first = berth__span_is(mode, "DCR");
  if (!is_depth_first && !berth__span_is(mode, "CRD"))
    return berth__fail(err, BERTH_MALFORMED, "its mode is neither DCR nor CRD");
  const extent channels = {1, 1, b * b}, block = {-1, b, 1};
  const extent apart[2][6] = {{{0, 1, 1}, block, block, channels, {2, 1, 1}, {3, 1, 1}},
                              {{0, 1, 1}, channels, block, block, {2, 1, 1}, {3, 1, 1}}};
  const extent together[4] = {{0, 1, 1}, channels, {2, b, 1}, {3, b, 1}};
  BERTH__TRY(onnx_rearrange_reshape_to(call, x, x, apart[!is_depth_first], 6, &result, err));
  BERTH__TRY(berth__onnx_listed(call, "transpose", result, "perm", is_depth_first ? depth_first : column_first, 6,
                                &result, err));
  return onnx_rearrange_reshape_to(call, result, x, together, 4, call->out, err);
}

static berth_status convert_space_to_depth(berth__onnx_call *call, berth_error *err) {
  static const int64_t order[] = {0, 3, 5, 1, 2, 4};
  berth_value x, result;
  int64_t b;
  BERTH__TRY(onnx_rearrange_take_block(call, &b, err));
  x = call->in[0];
  const extent apart[6] = {{0, 1, 1}, {1, 1, 1}, {2, 1, b}, {-1, b, 1}, {3, 1, b}, {-1, b, 1}};
  const extent together[4] = {{0, 1, 1}, {1, b * b, 1}, {2, 1, b}, {3, 1, b}};
  BERTH__TRY(onnx_rearrange_reshape_to(call, x, x, apart, 6, &result, err));
  BERTH__TRY(berth__onnx_listed(call, "transpose", result, "perm", order, 6, &result, err));
  return onnx_rearrange_reshape_to(call, result, x, together, 4, call->out, err);
}

/* ---- Col2Im ---- */

#define MAX_SPATIAL 3

typedef struct columns {
  uint32_t n; /* spatial axes */
  int64_t image[MAX_SPATIAL], block[MAX_SPATIAL], stride[MAX_SPATIAL], dilation[MAX_SPATIAL], pad[2 * MAX_SPATIAL];
  int64_t steps[MAX_SPATIAL], left_over[MAX_SPATIAL]; /* blocks along an axis, and what is left after the last one */
  int64_t taps;                                       /* elements of a block */
} columns;

static berth_status take_spatial(const berth__onnx_call *call, const char *name, uint32_t count, int64_t otherwise,
                                 int64_t *out, berth_error *err) {
  uint32_t n;
  const int64_t *given = berth__onnx_ints(call, name, &n);
  if (n != 0 && n != count)
    return berth__fail(err, BERTH_MALFORMED, "its %s has %u entries, expected %u", name, n, count);
  for (uint32_t i = 0; i < count; i++) out[i] = n != 0 ? given[i] : otherwise;
  return BERTH_OK;
}

static berth_status count_blocks(columns *c, berth_error *err) {
  const int64_t most = INT32_MAX;
  c->taps = 1;
  for (uint32_t i = 0; i < c->n; i++) {
    const int64_t sizes[] = {c->image[i], c->block[i], c->stride[i], c->dilation[i]};
    for (size_t k = 0; k < 4; k++)
      if (sizes[k] < 1 || sizes[k] > most)
        return berth__fail(err, BERTH_MALFORMED, "one of its extents is %lld", (long long)sizes[k]);
    if (c->pad[i] < 0 || c->pad[i] > most || c->pad[c->n + i] < 0 || c->pad[c->n + i] > most)
      return berth__fail(err, BERTH_MALFORMED, "one of its pads is negative, or too large");
    const int64_t room = c->image[i] + c->pad[i] + c->pad[c->n + i] - c->dilation[i] * (c->block[i] - 1) - 1;
    if (room < 0) return berth__fail(err, BERTH_MALFORMED, "a block covers more than the padded image");
    c->steps[i] = room / c->stride[i] + 1;
    c->left_over[i] = room % c->stride[i];
    c->taps *= c->block[i];
    if (c->taps > 4096)
      return berth__fail(err, BERTH_UNSUPPORTED, "blocks of more than 4096 elements are not supported");
  }
  return BERTH_OK;
}

static berth_status take_columns(berth__onnx_call *call, columns *c, berth_error *err) {
  uint32_t n_block = 0;
  (void)berth__onnx_constant_ints(call, call->in[1], c->image, MAX_SPATIAL, &c->n);
  (void)berth__onnx_constant_ints(call, call->in[2], c->block, MAX_SPATIAL, &n_block);
  if (c->n == 0 || c->n != n_block)
    return berth__fail(err, BERTH_MALFORMED, "its image and block have %u and %u axes", c->n, n_block);
  BERTH__TRY(take_spatial(call, "strides", c->n, 1, c->stride, err));
  BERTH__TRY(take_spatial(call, "dilations", c->n, 1, c->dilation, err));
  BERTH__TRY(take_spatial(call, "pads", 2 * c->n, 0, c->pad, err));
  return count_blocks(c, err);
}

/* [taps channels, 1, block]: each channel has one tap, its own. */
static berth_status one_tap_each(berth__onnx_call *call, const columns *c, int64_t channels, berth_type type,
                                 berth_value *out, berth_error *err) {
  int64_t shape[2 + MAX_SPATIAL] = {c->taps, 1, 1, 1, 1}, repeats[2 + MAX_SPATIAL] = {channels, 1, 1, 1, 1};
  const int64_t square[2] = {c->taps, c->taps};
  const size_t size = (size_t)(c->taps * c->taps) * sizeof(float);
  float *taps = berth__alloc_zero(call->graph->ctx, size);
  if (taps == NULL) return berth__fail_nomem(err, "a constant");
  for (int64_t i = 0; i < c->taps; i++) taps[i * c->taps + i] = 1;
  berth_status status =
      berth_graph_constant(call->graph, NULL, BERTH_F32, berth_shape_fixed(2, square), taps, size, out, err);
  berth__free(call->graph->ctx, taps);
  BERTH__TRY(status);
  for (uint32_t i = 0; i < c->n; i++) shape[2 + i] = c->block[i];
  BERTH__TRY(berth__onnx_cast(call, *out, type, out, err));
  BERTH__TRY(berth__onnx_listed(call, "reshape", *out, "shape", shape, 2 + c->n, out, err));
  return berth__onnx_listed(call, "tile", *out, "repeats", repeats, 2 + c->n, out, err);
}

/* ---- Col2Im with shapes that are known when a plan is made, or with many axes ---- */

/* Extents of one spatial axis, each a list of one element. */
typedef struct col_axis {
  berth_value image, block, padded, steps;
  int64_t stride, dilation, first_pad, last_pad;
} col_axis;

static berth_value col_product(berth__onnx_chain *c, const col_axis *axes, uint32_t first, uint32_t n, size_t field) {
  const int64_t one = 1;
  berth_value out = BERTH_VALUE_NONE;
  if (c->status == BERTH_OK) c->status = berth__onnx_list(c->call, &one, 1, &out, c->err);
  for (uint32_t i = first; i < n; i++)
    out = berth__chain_binary(c, "mul", out, *(const berth_value *)((const char *)&axes[i] + field));
  return out;
}

static berth_status col_axes(berth__onnx_chain *c, col_axis *axes, uint32_t n, berth_error *err) {
  int64_t stride[BERTH_MAX_RANK], dilation[BERTH_MAX_RANK], pad[2 * BERTH_MAX_RANK];
  BERTH__TRY(take_spatial(c->call, "strides", n, 1, stride, err));
  BERTH__TRY(take_spatial(c->call, "dilations", n, 1, dilation, err));
  BERTH__TRY(take_spatial(c->call, "pads", 2 * n, 0, pad, err));
  for (uint32_t i = 0; i < n; i++) {
    if (stride[i] < 1 || stride[i] > INT32_MAX || dilation[i] < 1 || dilation[i] > INT32_MAX || pad[i] < 0 ||
        pad[i] > INT32_MAX || pad[n + i] < 0 || pad[n + i] > INT32_MAX)
      return berth__fail(err, BERTH_MALFORMED, "one of its strides, dilations or pads is not possible");
    col_axis *a = &axes[i];
    *a = (col_axis){.stride = stride[i], .dilation = dilation[i], .first_pad = pad[i], .last_pad = pad[n + i]};
    a->image = berth__chain_cast(c, berth__chain_slice(c, c->call->in[1], 0, i, i + 1), BERTH_I64);
    a->block = berth__chain_cast(c, berth__chain_slice(c, c->call->in[2], 0, i, i + 1), BERTH_I64);
    a->padded = berth__chain_with(c, "add", a->image, (double)(a->first_pad + a->last_pad));
    const berth_value reach =
        berth__chain_with(c, "mul", berth__chain_with(c, "sub", a->block, 1), (double)a->dilation);
    const berth_value room = berth__chain_with(c, "sub", berth__chain_binary(c, "sub", a->padded, reach), 1);
    a->steps = berth__chain_with(c, "add", berth__chain_with(c, "div", room, (double)a->stride), 1);
  }
  return c->status;
}

/* Where each element of each block goes in the flattened padded image: [taps blocks, 1]. */
static berth_value col_places(berth__onnx_chain *c, const col_axis *axes, uint32_t n) {
  berth_value sum = BERTH_VALUE_NONE;
  for (uint32_t i = 0; i < 2 * n; i++) {
    const col_axis *a = &axes[i % n];
    int64_t line[BERTH_MAX_RANK];
    for (uint32_t k = 0; k < 2 * n; k++) line[k] = k == i ? -1 : 1;
    const berth_value count = berth__chain_count(c, i < n ? a->block : a->steps);
    berth_value part = berth__chain_with(c, "mul", count, (double)(i < n ? a->dilation : a->stride));
    part = berth__chain_binary(c, "mul", part, col_product(c, axes, i % n + 1, n, offsetof(col_axis, padded)));
    part = berth__chain_reshape(c, part, line, 2 * n);
    sum = sum == BERTH_VALUE_NONE ? part : berth__chain_binary(c, "add", sum, part);
  }
  return berth__chain_reshape(c, sum, (int64_t[]){-1, 1}, 2);
}

static berth_value col_list(berth__onnx_chain *c, const berth_value *parts, size_t n) {
  berth_attr axis = berth_attr_int("axis", 0);
  return berth__chain_emit(c, "concat", parts, n, &axis, 1);
}

/* Adds the elements of all blocks to an image of zeros: [positions, N, C] from [N, C taps, blocks]. */
static berth_value col_scatter(berth__onnx_chain *c, const col_axis *axes, uint32_t n) {
  const berth_value x = c->call->in[0];
  const berth_value each = berth__chain_binary(c, "mul", col_product(c, axes, 0, n, offsetof(col_axis, block)),
                                               col_product(c, axes, 0, n, offsetof(col_axis, steps)));
  const int64_t rest = -1;
  berth_value apart[3] = {berth__chain_extent(c, x, 0), BERTH_VALUE_NONE, each};
  if (c->status == BERTH_OK) c->status = berth__onnx_list(c->call, &rest, 1, &apart[1], c->err);
  berth_value parts = berth__chain_binary(c, "reshape", x, col_list(c, apart, 3));
  parts = berth__chain_listed(c, "transpose", parts, "perm", (int64_t[]){2, 0, 1}, 3);
  const berth_value places[3] = {col_product(c, axes, 0, n, offsetof(col_axis, padded)),
                                 berth__chain_extent(c, parts, 1), berth__chain_extent(c, parts, 2)};
  if (c->status != BERTH_OK) return BERTH_VALUE_NONE;
  const berth_value zero = berth__chain_scalar(c, berth__onnx_value_type(c->call, x), 0);
  const berth_value in[3] = {berth__chain_binary(c, "expand", zero, col_list(c, places, 3)), col_places(c, axes, n),
                             parts};
  berth_attr add = berth_attr_string("reduction", "add");
  return berth__chain_emit(c, "scatter_nd", in, 3, &add, 1);
}

static berth_status col2im_by_scatter(berth__onnx_call *call, berth_error *err) {
  berth__onnx_chain c = {call, err, BERTH_OK};
  const berth__shape *image = berth__onnx_shape(call, call->in[1]), *block = berth__onnx_shape(call, call->in[2]);
  if (berth__onnx_shape(call, call->in[0])->rank != 3)
    return berth__fail(err, BERTH_MALFORMED, "its operand has rank %u, expected 3",
                       berth__onnx_shape(call, call->in[0])->rank);
  if (image->rank != 1 || block->rank != 1 || image->dim[0] != block->dim[0] || image->dim[0] < 1)
    return berth__fail(err, BERTH_MALFORMED, "its image and block must be lists of one length");
  if (image->dim[0] > BERTH_MAX_RANK / 2)
    return berth__onnx_unsupported(call, err, "images of more than %d axes are not supported", BERTH_MAX_RANK / 2);
  const uint32_t n = (uint32_t)image->dim[0];
  col_axis axes[BERTH_MAX_RANK / 2];
  BERTH__TRY(col_axes(&c, axes, n, err));
  const berth_value flat =
      berth__chain_listed(&c, "transpose", col_scatter(&c, axes, n), "perm", (int64_t[]){1, 2, 0}, 3);
  berth_value extents[2 + BERTH_MAX_RANK / 2] = {berth__chain_extent(&c, flat, 0), berth__chain_extent(&c, flat, 1)};
  for (uint32_t i = 0; i < n; i++) extents[2 + i] = axes[i].padded;
  berth_value out = berth__chain_binary(&c, "reshape", flat, col_list(&c, extents, 2 + n));
  for (uint32_t i = 0; i < n; i++)
    if (axes[i].first_pad != 0 || axes[i].last_pad != 0)
      out =
          berth__chain_slice(&c, out, 2 + i, axes[i].first_pad, axes[i].last_pad != 0 ? -axes[i].last_pad : INT64_MAX);
  call->out[0] = out;
  return c.status;
}

/* ---- Col2Im with constant shapes ---- */

static bool has_constant_shapes(const berth__onnx_call *call) {
  int64_t list[MAX_SPATIAL];
  uint32_t n;
  return berth__onnx_constant_ints(call, call->in[1], list, MAX_SPATIAL, &n) &&
         berth__onnx_constant_ints(call, call->in[2], list, MAX_SPATIAL, &n);
}

/* Every block is added to its position in the image: a transposed convolution whose kernels have one tap each. */
static berth_status convert_col2im(berth__onnx_call *call, berth_error *err) {
  columns c = {.n = 0};
  int64_t shape[2 + MAX_SPATIAL];
  berth_value in[2];
  BERTH__TRY(berth__onnx_begin(call, 3, err));
  if (!has_constant_shapes(call)) return col2im_by_scatter(call, err);
  BERTH__TRY(take_columns(call, &c, err));
  const berth__shape *x = berth__onnx_shape(call, call->in[0]);
  if (x->rank != 3) return berth__fail(err, BERTH_MALFORMED, "its operand has rank %u, expected 3", x->rank);
  if (!berth__dim_is_fixed(x->dim[1]) || x->dim[1] % c.taps != 0)
    return berth__onnx_unsupported(call, err,
                                   "the number of channels must be fixed, and a multiple of a block's elements");
  const int64_t channels = x->dim[1] / c.taps;
  shape[0] = 0;
  shape[1] = x->dim[1];
  for (uint32_t i = 0; i < c.n; i++) shape[2 + i] = c.steps[i];
  const berth_attr attrs[] = {berth_attr_ints("strides", c.stride, c.n), berth_attr_ints("dilations", c.dilation, c.n),
                              berth_attr_ints("pads", c.pad, 2 * c.n), berth_attr_int("group", channels),
                              berth_attr_ints("output_padding", c.left_over, c.n)};
  BERTH__TRY(berth__onnx_listed(call, "reshape", call->in[0], "shape", shape, 2 + c.n, &in[0], err));
  BERTH__TRY(one_tap_each(call, &c, channels, berth__onnx_value_type(call, call->in[0]), &in[1], err));
  return berth__onnx_emit(call, "conv_transpose", in, 2, attrs, 5, call->out, 1, err);
}

const berth__onnx_handler berth__onnx_rearrange[] = {
    {"Col2Im", convert_col2im, NULL},
    {"DepthToSpace", convert_depth_to_space, NULL},
    {"SpaceToDepth", convert_space_to_depth, NULL},
    {NULL, NULL, NULL},
};
