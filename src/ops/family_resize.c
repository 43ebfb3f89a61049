/* resize: samples x on a grid with other extents. The second operand specifies it: scales if it is of a float type,
 * extents if it is of an integer type; one per axis, or per entry of `axes`. */
#include <inttypes.h>
#include <math.h>

#include "ops/copy.h"
#include "ops/elementwise.h"
#include "ops/line.h"
#include "ops/operand.h"
#include "ops/registry.h"
#include "ops/resample.h"

static const berth_attr attrs[] = {
    [BERTH__RESIZE_MODE] = {.name = "mode", .kind = BERTH_ATTR_STRING, .s = "nearest"},
    [BERTH__RESIZE_COORDINATES] = {.name = "coordinates", .kind = BERTH_ATTR_STRING, .s = "half_pixel"},
    [BERTH__RESIZE_NEAREST] = {.name = "nearest", .kind = BERTH_ATTR_STRING, .s = "round_prefer_floor"},
    [BERTH__RESIZE_CUBIC_A] = {.name = "cubic_a", .kind = BERTH_ATTR_FLOAT, .f = -0.75},
    [BERTH__RESIZE_EXCLUDE_OUTSIDE] = {.name = "exclude_outside", .kind = BERTH_ATTR_INT},
    [BERTH__RESIZE_EXTRAPOLATION] = {.name = "extrapolation", .kind = BERTH_ATTR_FLOAT},
    [BERTH__RESIZE_ANTIALIAS] = {.name = "antialias", .kind = BERTH_ATTR_INT},
    [BERTH__RESIZE_AXES] = {.name = "axes", .kind = BERTH_ATTR_INTS}, /* empty: all */
    [BERTH__RESIZE_ASPECT] = {.name = "aspect", .kind = BERTH_ATTR_STRING, .s = "stretch"},
};
static const char *const aspect_names[] = {"stretch", "not_larger", "not_smaller"};
enum {
  N_ASPECTS = 3
};

static uint32_t n_axes(const berth_attr *attr, uint32_t rank) {
  return attr[BERTH__RESIZE_AXES].count ? attr[BERTH__RESIZE_AXES].count : rank;
}

static uint32_t resize_axis_at(const berth_attr *attr, uint32_t rank, uint32_t k) {
  if (attr[BERTH__RESIZE_AXES].count == 0) return k;
  return (uint32_t)(attr[BERTH__RESIZE_AXES].ints[k] < 0 ? attr[BERTH__RESIZE_AXES].ints[k] + rank
                                                         : attr[BERTH__RESIZE_AXES].ints[k]);
}

static void read_how(const berth_attr *attr, berth__resample *how) {
  *how = (berth__resample){
      .mode = (berth__resample_mode)berth__name_index(attr[BERTH__RESIZE_MODE].s, berth__resample_names,
                                                      BERTH__RESAMPLE_MODES),
      .coordinates = (berth__coordinates)berth__name_index(attr[BERTH__RESIZE_COORDINATES].s, berth__coordinate_names,
                                                           BERTH__COORDINATES),
      .nearest =
          (berth__nearest)berth__name_index(attr[BERTH__RESIZE_NEAREST].s, berth__nearest_names, BERTH__NEARESTS),
      .cubic_a = attr[BERTH__RESIZE_CUBIC_A].f,
      .exclude_outside = attr[BERTH__RESIZE_EXCLUDE_OUTSIDE].i != 0,
      .antialias = attr[BERTH__RESIZE_ANTIALIAS].i != 0,
  };
}

/* ---- Inference ---- */

static berth_status want_name(const berth_attr *attr, const char *const *names, uint32_t count, berth_error *err) {
  if (berth__name_index(attr->s, names, count) < count) return BERTH_OK;
  return berth__fail(err, BERTH_INVALID, "`%s` is \"%s\", which is not one of its values; they start with \"%s\"",
                     attr->name, attr->s, names[0]);
}

static berth_status resize_check(const berth__infer *infer, berth_error *err) {
  const berth_attr *attr = infer->attrs;
  const uint32_t rank = infer->in_shape[BERTH__RESIZE_X].rank;
  uint32_t mask;
  BERTH__TRY(want_name(&attr[BERTH__RESIZE_MODE], berth__resample_names, BERTH__RESAMPLE_MODES, err));
  BERTH__TRY(want_name(&attr[BERTH__RESIZE_COORDINATES], berth__coordinate_names, BERTH__COORDINATES, err));
  BERTH__TRY(want_name(&attr[BERTH__RESIZE_NEAREST], berth__nearest_names, BERTH__NEARESTS, err));
  BERTH__TRY(want_name(&attr[BERTH__RESIZE_ASPECT], aspect_names, N_ASPECTS, err));
  BERTH__TRY(berth__want_rank(infer, BERTH__RESIZE_X, 1, BERTH_MAX_RANK, err));
  BERTH__TRY(berth__want_axes(&attr[BERTH__RESIZE_AXES], rank, &mask, err));
  if (strcmp(attr[BERTH__RESIZE_MODE].s, "nearest") != 0) BERTH__TRY(berth__want_numeric(infer, BERTH__RESIZE_X, err));
  BERTH__TRY(berth__want_numeric(infer, BERTH__RESIZE_TARGET, err));
  BERTH__TRY(berth__want_rank(infer, BERTH__RESIZE_TARGET, 1, 1, err));
  const int64_t want = n_axes(attr, rank), given = infer->in_shape[BERTH__RESIZE_TARGET].dim[0];
  if (berth__dim_is_fixed(given) && given != want)
    return berth__fail(err, BERTH_INVALID, "operand 1 has %" PRId64 " entries, expected %" PRId64, given, want);
  const bool crops = strcmp(attr[BERTH__RESIZE_COORDINATES].s, "tf_crop_and_resize") == 0;
  if (!crops) return BERTH_OK;
  if (!berth__infer_has(infer, BERTH__RESIZE_ROI))
    return berth__fail(err, BERTH_INVALID, "tf_crop_and_resize needs operand 2, the region");
  BERTH__TRY(berth__want_float(infer, BERTH__RESIZE_ROI, err));
  BERTH__TRY(berth__want_rank(infer, BERTH__RESIZE_ROI, 1, 1, err));
  int64_t same;
  return berth__same_dim(infer->in_shape[BERTH__RESIZE_ROI].dim[0], 2 * want, "entries of the region", &same, err);
}

/* One scale for all axes, which keeps the aspect ratio; 0 as long as an extent is open or none is above 0. */
static float resize_common_scale(const berth_attr *attr, const berth_tensor *target, uint32_t rank, const int64_t *in) {
  const bool largest = strcmp(attr[BERTH__RESIZE_ASPECT].s, "not_smaller") == 0;
  float best = 0;
  for (uint32_t k = 0; k < n_axes(attr, rank); k++) {
    const int64_t extent = in[resize_axis_at(attr, rank, k)];
    if (extent < 1) return 0;
    const float scale = (float)berth__load_i64(target, k) / (float)extent;
    if (k == 0 || (largest ? scale > best : scale < best)) best = scale;
  }
  return best;
}

/* The effect on entry k's axis of `in` elements: its scale and, if it can be determined, its extent. */
static berth_status resize_measure(const berth_attr *attr, const berth_tensor *target, uint32_t rank, const int64_t *in,
                                   uint32_t k, float *scale, int64_t *out, berth_error *err) {
  const int64_t extent = in[resize_axis_at(attr, rank, k)];
  double length;
  *out = BERTH__DIM_UNKNOWN;
  if (!berth__type_is_float(target->type)) {
    const int64_t asked = berth__load_i64(target, k);
    if (asked < 0) return berth__fail(err, BERTH_INVALID, "extent %" PRIu32 " is %" PRId64, k, asked);
    const bool stretches = strcmp(attr[BERTH__RESIZE_ASPECT].s, "stretch") == 0;
    *scale = stretches ? (float)asked / (float)extent : resize_common_scale(attr, target, rank, in);
    if (stretches) return *out = asked, BERTH_OK;
    if (!berth__dim_is_fixed(extent) || *scale == 0) return BERTH_OK;
    length = floor((double)(*scale * (float)extent) + 0.5);
  } else {
    *scale = (float)berth__load_f64(target, k);
    if (!(*scale > 0)) return berth__fail(err, BERTH_INVALID, "scale %" PRIu32 " is %g", k, (double)*scale);
    if (*scale == 1) return *out = extent, BERTH_OK;
    if (!berth__dim_is_fixed(extent)) return BERTH_OK;
    length = floor((double)((float)extent * *scale));
  }
  if (!(length < 0x1p62)) return berth__fail(err, BERTH_INVALID, "scale %g is too large", (double)*scale);
  *out = (int64_t)length;
  return BERTH_OK;
}

static berth_status resize_infer(berth__infer *infer, berth_error *err) {
  BERTH__TRY(resize_check(infer, err));
  const berth_tensor target = berth__infer_most(infer, BERTH__RESIZE_TARGET); /* larger sizes give larger results */
  const berth__shape *x = &infer->in_shape[BERTH__RESIZE_X];
  berth__shape *out = &infer->out_shape[0];
  *out = *x;
  for (uint32_t k = 0; k < n_axes(infer->attrs, x->rank); k++) {
    const uint32_t axis = resize_axis_at(infer->attrs, x->rank, k);
    float scale;
    out->dim[axis] = BERTH__DIM_UNKNOWN;
    if (target.data)
      BERTH__TRY(resize_measure(infer->attrs, &target, x->rank, x->dim, k, &scale, &out->dim[axis], err));
    if (x->dim[axis] == 0 && out->dim[axis] > 0)
      return berth__fail(err, BERTH_INVALID, "axis %" PRIu32 " is empty and cannot grow", axis);
  }
  infer->out_type[0] = infer->in_type[BERTH__RESIZE_X];
  return BERTH_OK;
}

/* ---- Kernel ---- Scratch: per axis, the neighbours of each element of the result and their weights; then three
 * lines. */

typedef struct axis_table {
  berth__resample_taps *taps;
  double *weight; /* `most` per element */
  int64_t most;
} axis_table;

typedef struct resizing {
  axis_table axis[BERTH_MAX_RANK];
  double *mixed, *line, *result; /* two lines of x, and one of the result */
  double extrapolation;
} resizing;

static uint64_t resize_scratch(const berth_op_call *call) {
  const berth_tensor *x = &call->in[BERTH__RESIZE_X], *out = &call->out[0];
  berth__resample how;
  uint64_t bytes = 0;
  read_how(call->attrs, &how);
  for (uint32_t axis = 0; axis < x->rank; axis++) {
    const uint64_t most = (uint64_t)berth__resample_most(&how, x->dim[axis], out->dim[axis]);
    bytes += (uint64_t)out->dim[axis] * (sizeof(berth__resample_taps) + most * sizeof(double));
  }
  return bytes + (2 * (uint64_t)x->dim[x->rank - 1] + (uint64_t)out->dim[x->rank - 1]) * sizeof(double);
}

void berth__resize_read(const berth_op_call *call, berth__resample *how, berth__resample_axis *axes) {
  const berth_tensor *x = &call->in[BERTH__RESIZE_X], *out = &call->out[0];
  const uint32_t count = n_axes(call->attrs, x->rank);
  read_how(call->attrs, how);
  for (uint32_t axis = 0; axis < x->rank; axis++)
    axes[axis] = (berth__resample_axis){.in = x->dim[axis], .out = out->dim[axis], .scale = 1, .roi_end = 1};
  for (uint32_t k = 0; k < count; k++) {
    berth__resample_axis *axis = &axes[resize_axis_at(call->attrs, x->rank, k)];
    int64_t extent;
    (void)resize_measure(call->attrs, &call->in[BERTH__RESIZE_TARGET], x->rank, x->dim, k, &axis->scale, &extent, NULL);
    if (!berth__call_has(call, BERTH__RESIZE_ROI) || berth__count(&call->in[BERTH__RESIZE_ROI]) != 2 * (int64_t)count)
      continue;
    axis->roi_begin = (float)berth__load_f64(&call->in[BERTH__RESIZE_ROI], k);
    axis->roi_end = (float)berth__load_f64(&call->in[BERTH__RESIZE_ROI], count + k);
  }
}

static void resize_prepare(const berth_op_call *call, resizing *r) {
  const berth_tensor *x = &call->in[BERTH__RESIZE_X], *out = &call->out[0];
  berth__resample how;
  berth__resample_axis axes[BERTH_MAX_RANK];
  char *room = call->scratch;
  berth__resize_read(call, &how, axes);
  for (uint32_t axis = 0; axis < x->rank; axis++) {
    axis_table *table = &r->axis[axis];
    const int64_t n = out->dim[axis];
    table->most = berth__resample_most(&how, x->dim[axis], n);
    table->taps = (berth__resample_taps *)(void *)room;
    table->weight = (double *)(void *)(room + (size_t)n * sizeof *table->taps);
    room = (char *)(table->weight + n * table->most);
    for (int64_t i = 0; i < n; i++)
      table->taps[i] = berth__resample_at(&how, &axes[axis], i, table->weight + i * table->most);
  }
  r->mixed = (double *)(void *)room;
  r->line = r->mixed + x->dim[x->rank - 1];
  r->result = r->line + x->dim[x->rank - 1];
  r->extrapolation = call->attrs[BERTH__RESIZE_EXTRAPOLATION].f;
}

/* The position of line `item` of the result on the axes before the last; false if it is outside the region. */
static bool line_place(const berth_op_call *call, const resizing *r, int64_t item, int64_t *at) {
  bool inside = true;
  for (uint32_t axis = call->out[0].rank - 1; axis-- > 0; item /= call->out[0].dim[axis]) {
    at[axis] = item % call->out[0].dim[axis];
    inside = inside && r->axis[axis].taps[at[axis]].count > 0;
  }
  return inside;
}

static void resize_fill_line(const berth_op_call *call, const resizing *r, int64_t to, int64_t n) {
  for (int64_t i = 0; i < n; i++) r->result[i] = r->extrapolation;
  berth__scatter(BERTH__CLASS_F64, r->result, call->out[0].type, call->out[0].data, to, 1, n);
}

static void resize_copy_nearest(const berth_op_call *call, const resizing *r, const int64_t *at, int64_t to,
                                int64_t n) {
  const berth_tensor *x = &call->in[BERTH__RESIZE_X], *out = &call->out[0];
  const uint32_t last = x->rank - 1;
  const size_t size = berth_type_size(x->type);
  int64_t from = 0;
  for (uint32_t axis = 0; axis < last; axis++) from += r->axis[axis].taps[at[axis]].first * x->stride[axis];
  for (int64_t i = 0; i < n; i++) {
    const berth__resample_taps *taps = &r->axis[last].taps[i];
    if (taps->count == 0)
      berth__store_f64(out, to + i, r->extrapolation);
    else
      memcpy(berth__element(out->data, to + i, size), berth__element(x->data, from + taps->first, size), size);
  }
}

/* The weighted sum of the lines of x for a line of the result. */
static void mix_lines(const berth_op_call *call, const resizing *r, const int64_t *at) {
  const berth_tensor *x = &call->in[BERTH__RESIZE_X];
  const uint32_t last = x->rank - 1;
  const int64_t n = x->dim[last];
  int64_t combinations = 1;
  for (uint32_t axis = 0; axis < last; axis++) combinations *= r->axis[axis].taps[at[axis]].count;
  for (int64_t c = 0; c < combinations; c++) {
    int64_t from = 0, rest = c;
    double weight = 1;
    for (uint32_t axis = last; axis-- > 0;) {
      const axis_table *table = &r->axis[axis];
      const berth__resample_taps *taps = &table->taps[at[axis]];
      from += (taps->first + rest % taps->count) * x->stride[axis];
      weight *= table->weight[at[axis] * table->most + rest % taps->count];
      rest /= taps->count;
    }
    berth__gather_f64(r->line, x->type, x->data, from, 1, n);
    for (int64_t i = 0; i < n; i++) r->mixed[i] = (c == 0 ? 0 : r->mixed[i]) + weight * r->line[i];
  }
}

/* Integers are truncated from the f32 sum, not from the f64 one, which may be slightly below an integer. */
static void blend_line(const berth_op_call *call, const resizing *r, const int64_t *at, int64_t to, int64_t n) {
  const axis_table *table = &r->axis[call->out[0].rank - 1];
  const bool is_float = berth__type_is_float(call->out[0].type);
  mix_lines(call, r, at);
  for (int64_t i = 0; i < n; i++) {
    const berth__resample_taps *taps = &table->taps[i];
    double sum = taps->count == 0 ? r->extrapolation : 0;
    for (int64_t k = 0; k < taps->count; k++) sum += table->weight[i * table->most + k] * r->mixed[taps->first + k];
    r->result[i] = is_float ? sum : (double)(float)sum;
  }
  berth__scatter(BERTH__CLASS_F64, r->result, call->out[0].type, call->out[0].data, to, 1, n);
}

static int64_t resize_items(const berth_op_call *call) {
  int64_t lines = 1;
  for (uint32_t axis = 0; axis + 1 < call->out[0].rank; axis++) lines *= call->out[0].dim[axis];
  return lines;
}

static berth_status resize_kernel(const berth_op_call *call, berth_error *err) {
  (void)err;
  resizing r;
  int64_t at[BERTH_MAX_RANK];
  const int64_t n = call->out[0].dim[call->out[0].rank - 1];
  const bool copies = strcmp(call->attrs[BERTH__RESIZE_MODE].s, "nearest") == 0;
  if (n == 0) return BERTH_OK;
  resize_prepare(call, &r);
  for (int64_t item = call->begin; item < call->end; item++) {
    if (!line_place(call, &r, item, at))
      resize_fill_line(call, &r, item * n, n);
    else if (copies)
      resize_copy_nearest(call, &r, at, item * n, n);
    else
      blend_line(call, &r, at, item * n, n);
  }
  return BERTH_OK;
}

const berth__family berth__family_resize = {
    .attrs = attrs,
    .n_attrs = sizeof attrs / sizeof *attrs,
    .infer = resize_infer,
    .items = resize_items,
    .scratch = resize_scratch,
    .kernel = resize_kernel,
    .valued = 1u << BERTH__RESIZE_TARGET,
};
