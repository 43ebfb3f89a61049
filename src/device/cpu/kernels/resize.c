/* resize along one axis or two neighbouring ones: x is [outer, down, across, inner], where inner is the channels of a
 * channels-last tensor, or 1. A line of the result is a weighted sum of lines of x, and then of positions in that sum,
 * in f32; f16 and bf16 are converted line by line. "nearest" copies elements of any type. */
#include "device/cpu/kernels/chain_steps.h"
#include "ops/registry.h"
#include "ops/resample.h"

#define ITEM 16384 /* elements of the result per item */

/* ---- Shape ---------------------------------------------------------------------------------------------------- */

typedef struct grid {
  int64_t outer, inner;
  int64_t in[2], out[2]; /* down, across */
  uint32_t axis[2];
  bool has_axis[2];
} grid;

/* False: more than two axes change, or two that are not neighbours. */
static bool read_grid(grid *g, const berth_op_call *call) {
  const berth_tensor *x = &call->in[0], *out = &call->out[0];
  uint32_t first = x->rank, last = 0;
  for (uint32_t axis = 0; axis < x->rank; axis++)
    if (x->dim[axis] != out->dim[axis]) {
      if (first == x->rank) first = axis;
      last = axis;
    }
  if (first == x->rank || last > first + 1) return false;
  *g = (grid){.outer = 1, .inner = 1, .in = {1, x->dim[last]}, .out = {1, out->dim[last]}, .axis = {first, last}};
  g->has_axis[0] = first != last;
  g->has_axis[1] = true;
  if (g->has_axis[0]) {
    g->in[0] = x->dim[first];
    g->out[0] = out->dim[first];
  }
  for (uint32_t axis = 0; axis < first; axis++) g->outer *= x->dim[axis];
  for (uint32_t axis = last + 1; axis < x->rank; axis++) g->inner *= x->dim[axis];
  return true;
}

static bool resize_kernel_is_narrow(berth_type type) { return type == BERTH_F16 || type == BERTH_BF16; }

static bool resize_kernel_takes(const berth_op_call *call) {
  const bool is_nearest = strcmp(call->attrs[BERTH__RESIZE_MODE].s, "nearest") == 0;
  const char *coordinates = call->attrs[BERTH__RESIZE_COORDINATES].s;
  grid g;
  if (strcmp(coordinates, "tf_crop_and_resize") == 0 || strcmp(coordinates, "half_pixel_symmetric") == 0) return false;
  if (is_nearest ? berth_type_size(call->in[0].type) == 0
                 : call->in[0].type != BERTH_F32 && !resize_kernel_is_narrow(call->in[0].type))
    return false;
  return read_grid(&g, call) && berth__count(&call->out[0]) > 0;
}

static int64_t resize_kernel_lines_each(const grid *g) {
  const int64_t line = g->out[1] * g->inner;
  return line < ITEM ? ITEM / line : 1;
}

static int64_t resize_kernel_items(const berth_op_call *call) {
  grid g;
  if (!read_grid(&g, call)) return 0;
  return (g.outer * g.out[0] + resize_kernel_lines_each(&g) - 1) / resize_kernel_lines_each(&g);
}

static int64_t resize_kernel_grain(const berth_op_call *call) {
  (void)call;
  return 1;
}

/* ---- Tables --------------------------------------------------------------------------------------------------- */

typedef struct taps {
  int32_t first, count;
} taps;

typedef struct table {
  taps *of; /* one entry per element of the result */
  float *weight;
  int64_t most; /* weights per element */
} table;

static int64_t weights_of(const berth_op_call *call, const grid *g, int k) {
  berth__resample how = {.mode = (berth__resample_mode)berth__name_index(call->attrs[BERTH__RESIZE_MODE].s,
                                                                         berth__resample_names, BERTH__RESAMPLE_MODES),
                         .antialias = call->attrs[BERTH__RESIZE_ANTIALIAS].i != 0};
  return berth__resample_most(&how, g->in[k], g->out[k]);
}

/* Two tables, the weights of one element in f64, and a line; for 16-bit types also a line of x and of the result in
 * f32. Or what the reference kernel needs. */
static uint64_t resize_kernel_scratch(const berth_op_call *call) {
  const uint64_t reference = berth__family_resize.scratch(call);
  grid g;
  uint64_t bytes = 0, most = 0;
  if (!read_grid(&g, call)) return 0;
  for (int k = 0; k < 2; k++) {
    const uint64_t weights = (uint64_t)weights_of(call, &g, k);
    bytes += (uint64_t)g.out[k] * (sizeof(taps) + weights * sizeof(float));
    if (weights > most) most = weights;
  }
  bytes += most * sizeof(double) + (uint64_t)(g.in[1] * g.inner) * sizeof(float);
  if (resize_kernel_is_narrow(call->in[0].type)) bytes += (uint64_t)((g.in[1] + g.out[1]) * g.inner) * sizeof(float);
  return bytes > reference ? bytes : reference;
}

static void fill_table(const berth_op_call *call, const grid *g, int k, table *t, double *room) {
  berth__resample how;
  berth__resample_axis axes[BERTH_MAX_RANK];
  berth__resize_read(call, &how, axes);
  for (int64_t i = 0; i < g->out[k]; i++) {
    berth__resample_taps at = {.first = 0, .count = 1};
    room[0] = 1;
    if (g->has_axis[k]) at = berth__resample_at(&how, &axes[g->axis[k]], i, room);
    t->of[i] = (taps){(int32_t)at.first, (int32_t)at.count};
    for (int64_t w = 0; w < at.count; w++) t->weight[i * t->most + w] = (float)room[w];
    if (t->most == 2 && at.count == 1 && g->inner == 1 && k == 1)
      t->weight[2 * i] = t->weight[2 * i + 1] = 0.5f * (float)room[0]; /* see blend_pairs */
  }
}

typedef struct resizing {
  grid g;
  table table[2];
  float *line, *narrow, *result; /* the last two for 16-bit types: a line of x, and of the result */
} resizing;

static void resize_kernel_prepare(resizing *r, const berth_op_call *call) {
  char *at = call->scratch;
  double *room = (double *)(void *)at;
  const int64_t down = weights_of(call, &r->g, 0), across = weights_of(call, &r->g, 1);
  at += (size_t)(down > across ? down : across) * sizeof *room;
  for (int k = 0; k < 2; k++) {
    r->table[k].most = k == 0 ? down : across;
    r->table[k].of = (taps *)(void *)at;
    at += (size_t)r->g.out[k] * sizeof(taps);
    r->table[k].weight = (float *)(void *)at;
    at += (size_t)(r->g.out[k] * r->table[k].most) * sizeof(float);
    fill_table(call, &r->g, k, &r->table[k], room);
  }
  r->line = (float *)(void *)at;
  r->narrow = r->line + r->g.in[1] * r->g.inner;
  r->result = r->narrow + r->g.in[1] * r->g.inner;
}

/* ---- Lines ---------------------------------------------------------------------------------------------------- */

/* to = (or +=) from * weight. Products and sums are rounded apart here and below, so that no instruction set gives
 * other bits than another. */
static void resize_kernel_mix(float *to, const float *from, float weight, int64_t n, bool is_first) {
  const vf by = vf_set1(weight);
  int64_t i = 0;
  if (is_first)
    for (; i < n; i += VF_LANES) vf_store_n(to + i, vf_load_n(from + i, vf_tail(n - i)) * by, vf_tail(n - i));
  else
    for (; i < n; i += VF_LANES) {
      const int64_t count = vf_tail(n - i);
      vf_store_n(to + i, vf_load_n(from + i, count) * by + vf_load_n(to + i, count), count);
    }
}

static void mix_pair(float *to, const float *a, float by_a, const float *b, float by_b, int64_t n) {
  const vf wa = vf_set1(by_a), wb = vf_set1(by_b);
  for (int64_t i = 0; i < n; i += VF_LANES) {
    const int64_t count = vf_tail(n - i);
    vf_store_n(to + i, vf_load_n(a + i, count) * wa + vf_load_n(b + i, count) * wb, count);
  }
}

/* The weighted sum of positions `first`, `first + 1`, ... that are `step` elements apart, n elements each. */
static void mix_places(float *to, const float *from, int64_t step, const taps *t, const float *weight, int64_t n) {
  from += t->first * step;
  if (t->count == 2) {
    mix_pair(to, from, weight[0], from + step, weight[1], n);
    return;
  }
  for (int32_t k = 0; k < t->count; k++) resize_kernel_mix(to, from + k * step, weight[k], n, k == 0);
}

/* The line of x, or the weighted sum of lines, from which line `down` of a plane of the result is made. */
static const float *source_line(const resizing *r, const float *plane, int64_t down) {
  const int64_t n = r->g.in[1] * r->g.inner;
  const taps *t = &r->table[0].of[down];
  const float *weight = r->table[0].weight + down * r->table[0].most;
  if (t->count == 1 && weight[0] == 1.0f) return plane + t->first * n;
  mix_places(r->line, plane, n, t, weight, n);
  return r->line;
}

/* The same for a plane of f16 or bf16. */
static const float *narrow_line(const resizing *r, berth_type type, const uint16_t *plane, int64_t down) {
  const int64_t n = r->g.in[1] * r->g.inner;
  const taps *t = &r->table[0].of[down];
  const float *weight = r->table[0].weight + down * r->table[0].most;
  for (int32_t k = 0; k < t->count; k++) {
    chain_load(r->narrow, type, plane + (t->first + k) * n, 1, n);
    resize_kernel_mix(r->line, r->narrow, weight[k], n, k == 0);
  }
  return r->line;
}

static void blend_elements(const resizing *r, float *to, const float *from) {
  const table *t = &r->table[1];
  for (int64_t i = 0; i < r->g.out[1]; i++) {
    const float *weight = t->weight + i * t->most, *x = from + t->of[i].first;
    float sum = weight[0] * x[0];
    for (int32_t k = 1; k < t->of[i].count; k++) sum += weight[k] * x[k];
    to[i] = sum;
  }
}

/* Two neighbours each; if there is only one, it counts as two halves, so that no element needs a branch. */
static void blend_pairs(const resizing *r, float *restrict to, const float *restrict from) {
  const taps *restrict of = r->table[1].of;
  const float *restrict weight = r->table[1].weight;
  const int64_t n = r->g.out[1];
  for (int64_t i = 0; i < n; i++) {
    const int32_t first = of[i].first, second = first + of[i].count - 1;
    to[i] = weight[2 * i] * from[first] + weight[2 * i + 1] * from[second];
  }
}

static void make_line(const resizing *r, float *to, const float *from) {
  const table *t = &r->table[1];
  const int64_t inner = r->g.inner;
  if (inner == 1) {
    (t->most == 2 ? blend_pairs : blend_elements)(r, to, from);
    return;
  }
  for (int64_t i = 0; i < r->g.out[1]; i++)
    mix_places(to + i * inner, from, inner, &t->of[i], t->weight + i * t->most, inner);
}

/* ---- nearest ---- */

/* A position is as wide as this type but may be unaligned: hence memcpy. */
#define PICK(c_type)                                                                                       \
  {                                                                                                        \
    for (int64_t i = 0; i < r->g.out[1]; i++)                                                              \
      memcpy(to + (size_t)i * sizeof(c_type), from + (size_t)t[i].first * sizeof(c_type), sizeof(c_type)); \
    break;                                                                                                 \
  }
/* Positions of so many bytes each. */
static void pick_places(const resizing *r, char *to, const char *from, size_t place) {
  const taps *t = r->table[1].of;
  switch (place) {
    case 1: PICK(uint8_t)
    case 2: PICK(uint16_t)
    case 4: PICK(uint32_t)
    case 8: PICK(uint64_t)
    default:
      for (int64_t i = 0; i < r->g.out[1]; i++)
        memcpy(to + (size_t)i * place, from + (size_t)t[i].first * place, place);
  }
}

static void pick_lines(const resizing *r, const berth_op_call *call, int64_t begin, int64_t end) {
  const grid *g = &r->g;
  const size_t place = (size_t)g->inner * berth_type_size(call->in[0].type), line_bytes = (size_t)g->in[1] * place;
  const char *last = NULL;
  for (int64_t line = begin; line < end; line++) {
    const int64_t of = line / g->out[0] * g->in[0] + r->table[0].of[line % g->out[0]].first;
    const char *from = (const char *)call->in[0].data + (size_t)of * line_bytes;
    char *to = (char *)call->out[0].data + (size_t)(line * g->out[1]) * place;
    if (from == last)
      memcpy(to, to - (size_t)g->out[1] * place, (size_t)g->out[1] * place); /* same as the previous line */
    else
      pick_places(r, to, from, place);
    last = from;
  }
}

/* ---- The call ---- */

/* An axis may keep its extent and yet be sampled elsewhere, by a scale that is not exactly 1. */
static bool others_stay(const berth_op_call *call, const grid *g) {
  berth__resample how;
  berth__resample_axis axes[BERTH_MAX_RANK];
  berth__resize_read(call, &how, axes);
  for (uint32_t axis = 0; axis < call->in[0].rank; axis++)
    if (axis != g->axis[0] && axis != g->axis[1] && axes[axis].scale != 1.0f) return false;
  return true;
}

/* The reference kernel's items are lines along the last axis. */
static berth_status run_reference(const berth_op_call *call, int64_t begin, int64_t end, berth_error *err) {
  berth_op_call lines = *call;
  lines.begin = begin / call->out[0].dim[call->out[0].rank - 1];
  lines.end = end / call->out[0].dim[call->out[0].rank - 1];
  return berth__family_resize.kernel(&lines, err);
}

/* Of f32. */
static void mix_lines(const resizing *r, const berth_op_call *call, int64_t begin, int64_t end) {
  const grid *g = &r->g;
  const int64_t n = g->out[1] * g->inner;
  const float *last = NULL;
  for (int64_t line = begin; line < end; line++) {
    const float *plane = (const float *)call->in[0].data + line / g->out[0] * g->in[0] * g->in[1] * g->inner;
    const float *from = source_line(r, plane, line % g->out[0]);
    float *to = (float *)call->out[0].data + line * n;
    if (from == last && from != r->line)
      memcpy(to, to - n, (size_t)n * sizeof *to); /* same as the previous line */
    else
      make_line(r, to, from);
    last = from;
  }
}

static void mix_narrow_lines(const resizing *r, const berth_op_call *call, int64_t begin, int64_t end) {
  const grid *g = &r->g;
  const int64_t n = g->out[1] * g->inner;
  const berth_type type = call->in[0].type;
  for (int64_t line = begin; line < end; line++) {
    const uint16_t *plane = (const uint16_t *)call->in[0].data + line / g->out[0] * g->in[0] * g->in[1] * g->inner;
    make_line(r, r->result, narrow_line(r, type, plane, line % g->out[0]));
    chain_store((uint16_t *)call->out[0].data + line * n, type, r->result, n);
  }
}

static berth_status resize_kernel_run(const berth_op_call *call, berth_error *err) {
  resizing r;
  const grid *g = &r.g;
  (void)read_grid(&r.g, call);
  const int64_t each = resize_kernel_lines_each(g), n = g->out[1] * g->inner, all = g->outer * g->out[0];
  const int64_t begin = call->begin * each, end = call->end * each < all ? call->end * each : all;
  if (!others_stay(call, g)) return run_reference(call, begin * n, end * n, err);
  resize_kernel_prepare(&r, call);
  if (strcmp(call->attrs[BERTH__RESIZE_MODE].s, "nearest") == 0)
    pick_lines(&r, call, begin, end);
  else if (call->in[0].type == BERTH_F32)
    mix_lines(&r, call, begin, end);
  else
    mix_narrow_lines(&r, call, begin, end);
  return BERTH_OK;
}

const berth__cpu_kernel BERTH__PER_ISA(berth__kernels_resize)[] = {
    {.name = "resize",
     .code = BERTH__OP_resize,
     .takes = resize_kernel_takes,
     .items = resize_kernel_items,
     .grain = resize_kernel_grain,
     .scratch = resize_kernel_scratch,
     .run = resize_kernel_run},
    {0},
};
