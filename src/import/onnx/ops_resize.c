/* Interpolation: Resize, Upsample, GridSample, AffineGrid, RoiAlign and MaxRoiPool. */
#include "import/onnx/attr_list.h"
#include "import/onnx/chain.h"

/* ---- Resize ---- */

static const char *const modes[] = {"nearest", "linear", "cubic", "bilinear", "bicubic", NULL};
static const char *const mode_of[] = {"nearest", "linear", "cubic", "linear", "cubic", NULL};
static const char *const coordinates[] = {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
                                          "asymmetric", "tf_half_pixel_for_nn", "tf_crop_and_resize", NULL};
/* With scales: when an axis shrinks, a fractional extent is used unrounded, as in ONNX's own tests. */
static const char *const scaled_coordinates[] = {
    "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners_scaled",
    "asymmetric", "tf_half_pixel_for_nn", "tf_crop_and_resize", NULL};
static const char *const nearest[] = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil", NULL};
static const char *const aspects[] = {"stretch", "not_larger", "not_smaller", NULL};

/* An operand that is given and not empty. */
static bool has_elements(const berth__onnx_call *call, size_t index) {
  const berth_value value = berth__onnx_in(call, index);
  return value != BERTH_VALUE_NONE &&
         !(berth__onnx_shape(call, value)->rank == 1 && berth__onnx_shape(call, value)->dim[0] == 0);
}

static berth_status convert_resize(berth__onnx_call *call, berth_error *err) {
  berth__onnx_attr_list attrs = {.count = 0};
  BERTH__TRY(berth__onnx_want_in(call, 1, err));
  if (call->n_out != 1) return berth__fail(err, BERTH_MALFORMED, "it has %zu outputs, expected 1", call->n_out);
  const bool has_roi = has_elements(call, 1);
  const size_t target = has_elements(call, 3) ? 3 : 2;
  if (!has_elements(call, target)) return berth__fail(err, BERTH_MALFORMED, "it has neither scales nor sizes");
  const berth_value in[3] = {call->in[0], call->in[target], has_roi ? call->in[1] : BERTH_VALUE_NONE};
  BERTH__TRY(berth__onnx_put_word(call, &attrs, "mode", "mode", modes, mode_of, err));
  BERTH__TRY(berth__onnx_put_word(call, &attrs, "coordinate_transformation_mode", "coordinates", coordinates,
                                  target == 2 ? scaled_coordinates : coordinates, err));
  BERTH__TRY(berth__onnx_put_word(call, &attrs, "nearest_mode", "nearest", nearest, nearest, err));
  BERTH__TRY(berth__onnx_put_word(call, &attrs, "keep_aspect_ratio_policy", "aspect", aspects, aspects, err));
  berth__onnx_put_float(call, &attrs, "cubic_coeff_a", "cubic_a");
  berth__onnx_put_float(call, &attrs, "extrapolation_value", "extrapolation");
  berth__onnx_put_int(call, &attrs, "exclude_outside", "exclude_outside");
  berth__onnx_put_int(call, &attrs, "antialias", "antialias");
  berth__onnx_put_ints(call, &attrs, "axes", "axes");
  return berth__onnx_emit(call, "resize", in, has_roi ? 3 : 2, attrs.at, attrs.count, call->out, 1, err);
}

/* Upsample, and Resize as it was in opset 10: only scales, positions from the corners. */
static berth_status emit_scaled(berth__onnx_call *call, berth_value scales, berth_error *err) {
  berth__onnx_attr_list attrs = {.count = 0};
  const berth_value in[2] = {call->in[0], scales};
  BERTH__TRY(berth__onnx_put_word(call, &attrs, "mode", "mode", modes, mode_of, err));
  berth__onnx_put(&attrs, berth_attr_string("coordinates", "asymmetric"));
  berth__onnx_put(&attrs, berth_attr_string("nearest", "simple"));
  return berth__onnx_emit(call, "resize", in, 2, attrs.at, attrs.count, call->out, 1, err);
}

static berth_status convert_upsample(berth__onnx_call *call, berth_error *err) {
  const berth__onnx_attr *given = berth__onnx_find(call, "scales");
  berth_value scales;
  BERTH__TRY(berth__onnx_want_in(call, given != NULL ? 1 : 2, err));
  if (call->n_out != 1) return berth__fail(err, BERTH_MALFORMED, "it has %zu outputs, expected 1", call->n_out);
  if (given == NULL) return emit_scaled(call, call->in[1], err);
  const int64_t count = (int64_t)given->n_floats;
  BERTH__TRY(berth_graph_constant(call->graph, NULL, BERTH_F32, berth_shape_fixed(1, &count), given->floats,
                                  given->n_floats * sizeof *given->floats, &scales, err));
  return emit_scaled(call, scales, err);
}

static berth_status convert_resize_by_opset(berth__onnx_call *call, berth_error *err) {
  return call->opset < 11 ? convert_upsample(call, err) : convert_resize(call, err);
}

/* ---- GridSample and AffineGrid ---- */

static berth_status convert_grid_sample(berth__onnx_call *call, berth_error *err) {
  static const char *const paddings[] = {"zeros", "border", "reflection", NULL};
  berth__onnx_attr_list attrs = {.count = 0};
  BERTH__TRY(berth__onnx_want_in(call, 2, err));
  if (call->n_out != 1) return berth__fail(err, BERTH_MALFORMED, "it has %zu outputs, expected 1", call->n_out);
  BERTH__TRY(berth__onnx_put_word(call, &attrs, "mode", "mode", modes, mode_of, err));
  BERTH__TRY(berth__onnx_put_word(call, &attrs, "padding_mode", "padding", paddings, paddings, err));
  berth__onnx_put_int(call, &attrs, "align_corners", "align_corners");
  return berth__onnx_emit(call, "grid_sample", call->in, 2, attrs.at, attrs.count, call->out, 1, err);
}

/* The points of one axis from -1 to 1: the corners of its elements or their centres. The only point of an axis is at
 * the end, as in ONNX Runtime. */
static berth_value grid_points(berth__onnx_chain *c, berth_value extent, bool align) {
  const berth_value n = berth__chain_cast(c, extent, BERTH_F64);
  const berth_value i = berth__chain_cast(c, berth__chain_count(c, extent), BERTH_F64);
  const berth_value twice = berth__chain_with(c, "mul", i, 2);
  if (!align) {
    const berth_value middle = berth__chain_binary(c, "div", berth__chain_with(c, "add", twice, 1), n);
    return berth__chain_with(c, "sub", middle, 1);
  }
  const berth_value steps = berth__chain_with(c, "max", berth__chain_with(c, "sub", n, 1), 1);
  const berth_value corner = berth__chain_with(c, "sub", berth__chain_binary(c, "div", twice, steps), 1);
  return berth__chain_where(c, berth__chain_with(c, "gt", n, 1), corner, berth__chain_scalar(c, BERTH_F64, 1));
}

/* A list of extents: constants, or slices of one value. */
typedef struct grid_size {
  berth_value value;
  bool is_known;
  int64_t known[BERTH_MAX_RANK];
  uint32_t count;
} grid_size;

static berth_value grid_extent(berth__onnx_chain *c, const grid_size *size, uint32_t k) {
  berth_value out = BERTH_VALUE_NONE;
  if (!size->is_known) return berth__chain_cast(c, berth__chain_slice(c, size->value, 0, k, k + 1), BERTH_I64);
  if (c->status == BERTH_OK) c->status = berth__onnx_list(c->call, &size->known[k], 1, &out, c->err);
  return out;
}

/* [first], spatial extents, [last] as one list; negative `first`: without it. */
static berth_value grid_shape(berth__onnx_chain *c, const grid_size *size, bool has_batch, int64_t last) {
  const uint32_t from = has_batch ? 0 : 2;
  int64_t list[BERTH_MAX_RANK];
  berth_value parts[BERTH_MAX_RANK], out = BERTH_VALUE_NONE;
  uint32_t n = 0;
  for (uint32_t k = from; k < size->count; k++)
    if (k != 1) {
      list[n] = size->is_known ? size->known[k] : 0;
      if (!size->is_known) parts[n] = grid_extent(c, size, k);
      n++;
    }
  list[n] = last;
  if (c->status != BERTH_OK) return out;
  if (size->is_known) {
    c->status = berth__onnx_list(c->call, list, n + 1, &out, c->err);
    return out;
  }
  c->status = berth__onnx_list(c->call, &last, 1, &parts[n], c->err);
  berth_attr axis = berth_attr_int("axis", 0);
  return berth__chain_emit(c, "concat", parts, n + 1, &axis, 1);
}

/* [points, spatial + 1]: each point with the last axis first, followed by a 1. */
static berth_value grid_plain(berth__onnx_chain *c, const grid_size *size) {
  const bool align = berth__onnx_int(c->call, "align_corners", 0) != 0;
  const uint32_t spatial = size->count - 2;
  const berth_value shape = grid_shape(c, size, false, 1);
  berth_value parts[4];
  for (uint32_t k = 0; k < spatial; k++) {
    int64_t line[4] = {1, 1, 1, 1};
    line[k] = -1;
    const berth_value points = grid_points(c, grid_extent(c, size, 2 + k), align);
    parts[spatial - 1 - k] =
        berth__chain_binary(c, "expand", berth__chain_reshape(c, points, line, spatial + 1), shape);
  }
  parts[spatial] = berth__chain_binary(c, "expand", berth__chain_scalar(c, BERTH_F64, 1), shape);
  berth_attr axis = berth_attr_int("axis", -1);
  const berth_value all = berth__chain_emit(c, "concat", parts, spatial + 1, &axis, 1);
  return berth__chain_reshape(c, all, (int64_t[]){-1, (int64_t)spatial + 1}, 2);
}

/* theta [N, d, d + 1] and the size [N, C, spatial...]: the points of a regular grid, transformed by each matrix. */
static berth_status convert_affine_grid(berth__onnx_call *call, berth_error *err) {
  berth__onnx_chain c = {call, err, BERTH_OK};
  BERTH__TRY(berth__onnx_want_in(call, 2, err));
  if (call->n_out != 1) return berth__fail(err, BERTH_MALFORMED, "it has %zu outputs, expected 1", call->n_out);
  grid_size size = {.value = call->in[1]};
  const berth__shape *given = berth__onnx_shape(call, call->in[1]), *matrix = berth__onnx_shape(call, call->in[0]);
  if (given->rank != 1 || (given->dim[0] != 4 && given->dim[0] != 5) || matrix->rank != 3)
    return berth__fail(err, BERTH_MALFORMED, "its size must have 4 or 5 entries, and theta the rank 3");
  size.count = (uint32_t)given->dim[0];
  uint32_t count;
  size.is_known = berth__onnx_constant_ints(call, call->in[1], size.known, BERTH_MAX_RANK, &count);
  for (uint32_t k = 0; size.is_known && k < size.count; k++)
    if (size.known[k] < 1) return berth__fail(err, BERTH_MALFORMED, "a grid of that size is not possible");
  const berth_value points = berth__chain_cast(&c, grid_plain(&c, &size), berth__onnx_value_type(call, call->in[0]));
  const berth_value theta = berth__chain_listed(&c, "transpose", call->in[0], "perm", (int64_t[]){0, 2, 1}, 3);
  const berth_value moved = berth__chain_binary(&c, "matmul", points, theta);
  call->out[0] = berth__chain_binary(&c, "reshape", moved, grid_shape(&c, &size, true, (int64_t)size.count - 2));
  return c.status;
}

/* ---- Regions ---- */

static berth_status convert_roi_align(berth__onnx_call *call, berth_error *err) {
  static const char *const pools[] = {"avg", "max", NULL};
  berth__onnx_attr_list attrs = {.count = 0};
  BERTH__TRY(berth__onnx_want_in(call, 3, err));
  if (call->n_out != 1) return berth__fail(err, BERTH_MALFORMED, "it has %zu outputs, expected 1", call->n_out);
  const berth__span mode =
      berth__onnx_string(call, "coordinate_transformation_mode", call->opset < 16 ? "output_half_pixel" : "half_pixel");
  BERTH__TRY(berth__onnx_put_word(call, &attrs, "mode", "mode", pools, pools, err));
  berth__onnx_put_int(call, &attrs, "output_height", "output_height");
  berth__onnx_put_int(call, &attrs, "output_width", "output_width");
  berth__onnx_put_int(call, &attrs, "sampling_ratio", "sampling_ratio");
  berth__onnx_put_float(call, &attrs, "spatial_scale", "spatial_scale");
  berth__onnx_put(&attrs, berth_attr_int("half_pixel", berth__span_is(mode, "half_pixel")));
  return berth__onnx_emit(call, "roi_align", call->in, 3, attrs.at, attrs.count, call->out, 1, err);
}

static berth_status convert_max_roi_pool(berth__onnx_call *call, berth_error *err) {
  berth__onnx_attr_list attrs = {.count = 0};
  BERTH__TRY(berth__onnx_want_in(call, 2, err));
  if (call->n_out != 1) return berth__fail(err, BERTH_MALFORMED, "it has %zu outputs, expected 1", call->n_out);
  berth__onnx_put_ints(call, &attrs, "pooled_shape", "pooled");
  berth__onnx_put_float(call, &attrs, "spatial_scale", "spatial_scale");
  return berth__onnx_emit(call, "max_roi_pool", call->in, 2, attrs.at, attrs.count, call->out, 1, err);
}

const berth__onnx_handler berth__onnx_resize[] = {
    {"Resize", convert_resize_by_opset, NULL},
    {"Upsample", convert_upsample, NULL},
    {"GridSample", convert_grid_sample, NULL},
    {"AffineGrid", convert_affine_grid, NULL},
    {"RoiAlign", convert_roi_align, NULL},
    {"MaxRoiPool", convert_max_roi_pool, NULL},
    {NULL, NULL, NULL},
};
