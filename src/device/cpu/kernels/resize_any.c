/* resize of any number of axes, of any type and by any rule: what resize.c leaves. Sums are those of the reference
 * kernel, in f64 and in its order, so results are the same to the bit. */
#include "device/cpu/kernels/each.h"
#include "device/cpu/kernels/vec.h"
#include "ops/elementwise.h"
#include "ops/resample.h"

#define PIECE 512  /* elements summed together */
#define ITEM 16384 /* elements of the result that are worth a thread */

typedef struct resize_table {
  berth__resample_taps *taps; /* one per element of the result */
  double *weight;             /* `most` per element */
  int64_t most;
} resize_table;

/* At the beginning of a worker's scratch. The result consists of rows along the last axis that changes its extent;
 * `inner` elements belong to each place of a row. */
typedef struct resizer {
  uint32_t across;
  int64_t inner;
  bool copies;
  double extrapolation;
  resize_table table[BERTH_MAX_RANK]; /* up to `across` */
  double *mixed, *line, *result;      /* if inner is 1: two lines of x, and one of the result */
} resizer;

static uint32_t resize_any_across(const berth_op_call *call) {
  const berth_tensor *x = &call->in[BERTH__RESIZE_X], *out = &call->out[0];
  uint32_t across = x->rank - 1;
  for (uint32_t axis = x->rank; axis-- > 0;)
    if (x->dim[axis] != out->dim[axis]) return axis;
  return across;
}

static bool resize_any_is_nearest(const berth_op_call *call) {
  return strcmp(call->attrs[BERTH__RESIZE_MODE].s, "nearest") == 0;
}

static bool resize_any_takes(const berth_op_call *call) {
  return berth_type_size(call->in[BERTH__RESIZE_X].type) > 0 && berth__count(&call->out[0]) > 0;
}

static int64_t resize_any_items(const berth_op_call *call) {
  const uint32_t across = resize_any_across(call);
  int64_t rows = 1;
  for (uint32_t axis = 0; axis < across; axis++) rows *= call->out[0].dim[axis];
  return rows;
}

static int64_t resize_any_grain(const berth_op_call *call) {
  const int64_t rows = resize_any_items(call), each = berth__count(&call->out[0]) / (rows > 0 ? rows : 1);
  return ITEM / (each + 1) + 1;
}

static int64_t resize_any_most(const berth_op_call *call, uint32_t axis) {
  const uint32_t mode =
      berth__name_index(call->attrs[BERTH__RESIZE_MODE].s, berth__resample_names, BERTH__RESAMPLE_MODES);
  const berth__resample how = {.mode = (berth__resample_mode)mode,
                               .antialias = call->attrs[BERTH__RESIZE_ANTIALIAS].i != 0};
  return berth__resample_most(&how, call->in[BERTH__RESIZE_X].dim[axis], call->out[0].dim[axis]);
}

static uint64_t resize_any_scratch(const berth_op_call *call) {
  const berth_tensor *x = &call->in[BERTH__RESIZE_X], *out = &call->out[0];
  const uint64_t reference = berth__family_resize.scratch(call);
  uint64_t bytes = (sizeof(resizer) + 63) / 64 * 64, in = 0, made = 0;
  for (uint32_t axis = 0; axis < x->rank; axis++) {
    bytes += (uint64_t)out->dim[axis] *
             (sizeof(berth__resample_taps) + (uint64_t)resize_any_most(call, axis) * sizeof(double));
    if ((uint64_t)x->dim[axis] > in) in = (uint64_t)x->dim[axis];
    if ((uint64_t)out->dim[axis] > made) made = (uint64_t)out->dim[axis];
  }
  bytes += (2 * in + made) * sizeof(double); /* the longest: where extents are bounds, `across` is not known yet */
  return bytes > reference ? bytes : reference;
}

static void resize_any_prepare(const berth_op_call *call) {
  const berth_tensor *x = &call->in[BERTH__RESIZE_X], *out = &call->out[0];
  resizer *r = call->scratch;
  char *room = (char *)call->scratch + (sizeof *r + 63) / 64 * 64;
  berth__resample how;
  berth__resample_axis axes[BERTH_MAX_RANK];
  berth__resize_read(call, &how, axes);
  *r = (resizer){.across = resize_any_across(call),
                 .inner = 1,
                 .copies = resize_any_is_nearest(call),
                 .extrapolation = call->attrs[BERTH__RESIZE_EXTRAPOLATION].f};
  for (uint32_t axis = r->across + 1; axis < x->rank; axis++) r->inner *= x->dim[axis];
  for (uint32_t axis = 0; axis <= r->across; axis++) {
    resize_table *table = &r->table[axis];
    const int64_t n = out->dim[axis];
    table->most = resize_any_most(call, axis);
    table->taps = (berth__resample_taps *)(void *)room;
    table->weight = (double *)(void *)(room + (size_t)n * sizeof *table->taps);
    room = (char *)(table->weight + n * table->most);
    for (int64_t i = 0; i < n; i++)
      table->taps[i] = berth__resample_at(&how, &axes[axis], i, table->weight + i * table->most);
  }
  r->mixed = (double *)(void *)room;
  r->line = r->mixed + x->dim[r->across];
  r->result = r->line + x->dim[r->across];
}

/* ---- Types ---- */

#define LOAD(c_type)                                         \
  {                                                          \
    const c_type *from = (const c_type *)x->data + index;    \
    for (int64_t i = 0; i < n; i++) to[i] = (double)from[i]; \
    break;                                                   \
  }
static void resize_any_load(double *to, const berth_tensor *x, int64_t index, int64_t n) {
  switch (x->type) {
    case BERTH_U8: LOAD(uint8_t)
    case BERTH_I8: LOAD(int8_t)
    case BERTH_U16: LOAD(uint16_t)
    case BERTH_I16: LOAD(int16_t)
    case BERTH_I32: LOAD(int32_t)
    case BERTH_F32: LOAD(float)
    case BERTH_F64: LOAD(double)
    default: berth__gather_f64(to, x->type, x->data, index, 1, n);
  }
}

/* Truncated, and held within the type's range; sums of finite numbers are not NaN. */
#define STORE(c_type, low, high)                                                    \
  {                                                                                 \
    c_type *to = (c_type *)out->data + index;                                       \
    BERTH__TOGETHER                                                                 \
    for (int64_t i = 0; i < n; i++) {                                               \
      const float sum = (float)from[i];                                             \
      to[i] = (c_type)(int32_t)(sum < (low) ? (low) : sum > (high) ? (high) : sum); \
    }                                                                               \
    break;                                                                          \
  }
/* Integers are truncated from the f32 sum, as in the reference kernel. */
static void resize_any_store(const berth_tensor *out, int64_t index, double *from, int64_t n) {
  switch (out->type) {
    case BERTH_U8: STORE(uint8_t, 0.0f, 255.0f)
    case BERTH_I8: STORE(int8_t, -128.0f, 127.0f)
    case BERTH_U16: STORE(uint16_t, 0.0f, 65535.0f)
    case BERTH_I16: STORE(int16_t, -32768.0f, 32767.0f)
    case BERTH_F32: {
      float *to = (float *)out->data + index;
      for (int64_t i = 0; i < n; i++) to[i] = (float)from[i];
      break;
    }
    default:
      for (int64_t i = 0; i < n && !berth__type_is_float(out->type); i++) from[i] = (double)(float)from[i];
      berth__scatter(BERTH__CLASS_F64, from, out->type, out->data, index, 1, n);
  }
}

/* ---- Rows ---- */

typedef struct row {
  int64_t at[BERTH_MAX_RANK]; /* on the axes before `across` */
  int64_t combinations;       /* of neighbours on them; 0: outside the region */
  int64_t to;                 /* the first element of the result */
} row;

static row resize_any_row(const berth_op_call *call, const resizer *r, int64_t item) {
  row place = {.combinations = 1, .to = item * call->out[0].dim[r->across] * r->inner};
  for (uint32_t axis = r->across; axis-- > 0; item /= call->out[0].dim[axis]) {
    place.at[axis] = item % call->out[0].dim[axis];
    place.combinations *= r->table[axis].taps[place.at[axis]].count;
  }
  return place;
}

/* The first element of x for a combination of neighbours, whose weight by that on `across` is `first`. */
static int64_t resize_any_combination(const berth_op_call *call, const resizer *r, const row *place, int64_t number,
                                      double first, double *weight) {
  int64_t from = 0;
  *weight = first;
  for (uint32_t axis = r->across; axis-- > 0;) {
    const resize_table *table = &r->table[axis];
    const berth__resample_taps *taps = &table->taps[place->at[axis]];
    from += (taps->first + number % taps->count) * call->in[BERTH__RESIZE_X].stride[axis];
    *weight *= table->weight[place->at[axis] * table->most + number % taps->count];
    number /= taps->count;
  }
  return from;
}

static void resize_any_add(double *sum, const double *x, double weight, int64_t n, bool is_first) {
  if (is_first)
    for (int64_t i = 0; i < n; i++) sum[i] = 0 + weight * x[i];
  else
    for (int64_t i = 0; i < n; i++) sum[i] += weight * x[i];
}

static void resize_any_fill(const berth_op_call *call, const resizer *r, int64_t to, int64_t n) {
  double block[PIECE];
  for (int64_t at = 0; at < n; at += PIECE) {
    const int64_t count = n - at < PIECE ? n - at : PIECE;
    for (int64_t i = 0; i < count; i++) block[i] = r->extrapolation;
    berth__scatter(BERTH__CLASS_F64, block, call->out[0].type, call->out[0].data, to + at, 1, count);
  }
}

/* Single elements: lines of x are summed, and then neighbours in that sum. */
static void resize_any_blend(const berth_op_call *call, const resizer *r, const row *place) {
  const berth_tensor *x = &call->in[BERTH__RESIZE_X];
  const resize_table *table = &r->table[r->across];
  const int64_t in = x->dim[r->across], n = call->out[0].dim[r->across];
  for (int64_t c = 0; c < place->combinations; c++) {
    double weight;
    const int64_t from = resize_any_combination(call, r, place, c, 1, &weight);
    resize_any_load(r->line, x, from, in);
    resize_any_add(r->mixed, r->line, weight, in, c == 0);
  }
  for (int64_t i = 0; i < n; i++) {
    const berth__resample_taps *taps = &table->taps[i];
    double sum = taps->count == 0 ? r->extrapolation : 0;
    for (int64_t k = 0; k < taps->count; k++) sum += table->weight[i * table->most + k] * r->mixed[taps->first + k];
    r->result[i] = sum;
  }
  resize_any_store(&call->out[0], place->to, r->result, n);
}

/* Places of several elements: one place of the result, a piece at a time. */
static void resize_any_place(const berth_op_call *call, const resizer *r, const row *place, int64_t i) {
  const berth_tensor *x = &call->in[BERTH__RESIZE_X];
  const resize_table *table = &r->table[r->across];
  const berth__resample_taps *taps = &table->taps[i];
  const int64_t to = place->to + i * r->inner;
  double sum[PIECE], line[PIECE];
  if (taps->count == 0) {
    resize_any_fill(call, r, to, r->inner);
    return;
  }
  for (int64_t at = 0; at < r->inner; at += PIECE) {
    const int64_t n = r->inner - at < PIECE ? r->inner - at : PIECE;
    for (int64_t c = 0; c < place->combinations; c++)
      for (int64_t k = 0; k < taps->count; k++) {
        double weight;
        const int64_t from = resize_any_combination(call, r, place, c, table->weight[i * table->most + k], &weight) +
                             (taps->first + k) * x->stride[r->across];
        resize_any_load(line, x, from + at, n);
        resize_any_add(sum, line, weight, n, c == 0 && k == 0);
      }
    for (int64_t e = 0; e < n; e++) sum[e] = 0 + sum[e]; /* -0 becomes 0, as where the last axis is sampled */
    resize_any_store(&call->out[0], to + at, sum, n);
  }
}

static void resize_any_copy(const berth_op_call *call, const resizer *r, const row *place) {
  const berth_tensor *x = &call->in[BERTH__RESIZE_X], *out = &call->out[0];
  const size_t element = berth_type_size(x->type), bytes = (size_t)r->inner * element;
  double weight;
  const char *from = (const char *)x->data + (size_t)resize_any_combination(call, r, place, 0, 1, &weight) * element;
  char *to = (char *)out->data + (size_t)place->to * element;
  for (int64_t i = 0; i < out->dim[r->across]; i++, to += bytes) {
    const berth__resample_taps *taps = &r->table[r->across].taps[i];
    if (taps->count == 0)
      resize_any_fill(call, r, place->to + i * r->inner, r->inner);
    else
      memcpy(to, from + (size_t)taps->first * bytes, bytes);
  }
}

/* Whether axes that keep their extent are sampled elsewhere by a scale that is near 1, or outside a region. */
static bool resize_any_inner_stays(const berth_op_call *call) {
  berth__resample how;
  berth__resample_axis axes[BERTH_MAX_RANK];
  berth__resize_read(call, &how, axes);
  bool stays = true;
  for (uint32_t axis = resize_any_across(call) + 1; axis < call->in[BERTH__RESIZE_X].rank; axis++)
    stays = stays && axes[axis].scale == 1 && how.coordinates != BERTH__TF_CROP_AND_RESIZE;
  return stays;
}

/* The reference kernel uses the scratch in its own way. Its items are lines along the last axis. */
static berth_status resize_any_reference(const berth_op_call *call, berth_error *err) {
  const int64_t rows = resize_any_items(call), lines = berth__op_items(call->user, call) / (rows > 0 ? rows : 1);
  berth_op_call all = *call;
  all.begin = call->begin * lines;
  all.end = call->end * lines;
  return berth__family_resize.kernel(&all, err);
}

static void resize_any_run_row(const berth_op_call *call, const resizer *r, int64_t item) {
  const row place = resize_any_row(call, r, item);
  const int64_t n = call->out[0].dim[r->across];
  if (place.combinations == 0)
    resize_any_fill(call, r, place.to, n * r->inner);
  else if (r->copies)
    resize_any_copy(call, r, &place);
  else if (r->inner == 1)
    resize_any_blend(call, r, &place);
  else
    for (int64_t i = 0; i < n; i++) resize_any_place(call, r, &place, i);
}

static berth_status resize_any_run(const berth_op_call *call, berth_error *err) {
  if (!resize_any_inner_stays(call)) return resize_any_reference(call, err);
  for (int64_t item = call->begin; item < call->end; item++) resize_any_run_row(call, call->scratch, item);
  return BERTH_OK;
}

const berth__cpu_kernel BERTH__PER_ISA(berth__kernels_resize_any)[] = {
    {.name = "resize any",
     .code = BERTH__OP_resize,
     .takes = resize_any_takes,
     .items = resize_any_items,
     .grain = resize_any_grain,
     .scratch = resize_any_scratch,
     .run = resize_any_run,
     .prepare = resize_any_prepare},
    {0},
};
