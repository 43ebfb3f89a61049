/* Sampling between elements: Resize, Upsample, GridSample, AffineGrid, RoiAlign and MaxRoiPool. */
#include "import/onnx/attr_list.h"

/* ---- Resize ---- */

static const char *const modes[] = {"nearest", "linear", "cubic", "bilinear", "bicubic", NULL};
static const char *const mode_of[] = {"nearest", "linear", "cubic", "linear", "cubic", NULL};
static const char *const coordinates[] = {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
                                          "asymmetric", "tf_half_pixel_for_nn", "tf_crop_and_resize", NULL};
static const char *const nearest[] = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil", NULL};
static const char *const aspects[] = {"stretch", "not_larger", "not_smaller", NULL};

/* An operand that is there and has elements. */
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
                                  coordinates, err));
  BERTH__TRY(berth__onnx_put_word(call, &attrs, "nearest_mode", "nearest", nearest, nearest, err));
  BERTH__TRY(berth__onnx_put_word(call, &attrs, "keep_aspect_ratio_policy", "aspect", aspects, aspects, err));
  berth__onnx_put_float(call, &attrs, "cubic_coeff_a", "cubic_a");
  berth__onnx_put_float(call, &attrs, "extrapolation_value", "extrapolation");
  berth__onnx_put_int(call, &attrs, "exclude_outside", "exclude_outside");
  berth__onnx_put_int(call, &attrs, "antialias", "antialias");
  berth__onnx_put_ints(call, &attrs, "axes", "axes");
  return berth__onnx_emit(call, "resize", in, has_roi ? 3 : 2, attrs.at, attrs.count, call->out, 1, err);
}

/* Upsample, and Resize as it was in opset 10: scales alone, positions from the corners. */
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

/* The points of a grid of `spatial` axes from -1 to 1, the last axis first, each with a 1 after it. An
 * axis of one point has it at the end, as ONNX Runtime does. */
static void fill_grid(float *to, const int64_t *extent, uint32_t spatial, int64_t points, bool align) {
  for (int64_t point = 0; point < points; point++) {
    int64_t rest = point;
    for (uint32_t k = spatial; k-- > 0; rest /= extent[k]) {
      const double n = (double)extent[k], i = (double)(rest % extent[k]);
      *to++ = (float)(align ? (n > 1 ? 2 * i / (n - 1) - 1 : 1) : (2 * i + 1) / n - 1);
    }
    *to++ = 1;
  }
}

static berth_status grid_constant(berth__onnx_call *call, const int64_t *extent, uint32_t spatial, int64_t points,
                                  berth_value *out, berth_error *err) {
  const bool align = berth__onnx_int(call, "align_corners", 0) != 0;
  const int64_t dims[2] = {points, spatial + 1};
  const size_t size = (size_t)points * (spatial + 1) * sizeof(float);
  float *grid = berth__alloc(call->graph->ctx, size);
  if (grid == NULL) return berth__fail_nomem(err, "a grid");
  fill_grid(grid, extent, spatial, points, align);
  const berth_status status =
      berth_graph_constant(call->graph, NULL, BERTH_F32, berth_shape_fixed(2, dims), grid, size, out, err);
  berth__free(call->graph->ctx, grid);
  return status;
}

#define MAX_GRID ((int64_t)1 << 24) /* points that are worth keeping as a constant */

/* theta [N, d, d + 1] and the size [N, C, spatial...]: the points of a plain grid, moved by each matrix. */
static berth_status convert_affine_grid(berth__onnx_call *call, berth_error *err) {
  int64_t size[BERTH_MAX_RANK], points = 1;
  uint32_t count;
  berth_value grid, theta;
  BERTH__TRY(berth__onnx_want_in(call, 2, err));
  if (call->n_out != 1) return berth__fail(err, BERTH_MALFORMED, "it has %zu outputs, expected 1", call->n_out);
  if (!berth__onnx_constant_ints(call, call->in[1], size, BERTH_MAX_RANK, &count))
    return berth__onnx_unsupported(call, err, "a size that is not a constant is not supported");
  const berth__shape *matrix = berth__onnx_shape(call, call->in[0]);
  if (count < 4 || count > 5 || matrix->rank != 3)
    return berth__fail(err, BERTH_MALFORMED, "its size has %u entries, expected 4 or 5", count);
  const uint32_t spatial = count - 2;
  for (uint32_t k = 0; k < spatial; k++) {
    if (size[2 + k] < 1 || size[2 + k] > MAX_GRID || (points *= size[2 + k]) > MAX_GRID)
      return berth__onnx_unsupported(call, err, "a grid of that size is not supported");
  }
  BERTH__TRY(grid_constant(call, size + 2, spatial, points, &grid, err));
  BERTH__TRY(berth__onnx_cast(call, grid, berth__onnx_value_type(call, call->in[0]), &grid, err));
  const int64_t perm[3] = {0, 2, 1};
  const berth_attr turn = berth_attr_ints("perm", perm, 3);
  BERTH__TRY(berth__onnx_emit(call, "transpose", call->in, 1, &turn, 1, &theta, 1, err));
  BERTH__TRY(berth__onnx_binary(call, "matmul", grid, theta, &grid, err));
  berth_dim shape[BERTH_MAX_RANK] = {{.extent = size[0]}};
  for (uint32_t k = 0; k < spatial; k++) shape[1 + k].extent = size[2 + k];
  shape[1 + spatial].extent = spatial;
  const berth_attr reshape = berth_attr_dims("shape", shape, spatial + 2);
  return berth__onnx_emit(call, "reshape", &grid, 1, &reshape, 1, call->out, 1, err);
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
