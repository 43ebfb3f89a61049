/* grid_sample: one thread per element of the result, which looks up its point of the grid. */
#include "kernel/lower/math.h"
#include "kernel/lower/sample.h"
#include "ops/resample.h"
#include "ops/window.h"

typedef enum padding_mode {
  ZEROS,
  BORDER,
  REFLECTION
} padding_mode;

typedef struct sampling {
  berth__lowering *l;
  berth__kernel *k;
  berth__resample_mode mode;
  padding_mode padding;
  bool align;
  uint32_t spatial;
} sampling;

/* One axis: its extent, and the limits of its positions. */
typedef struct axis {
  int64_t extent;
  float last, low, high;
  berth__x at, first;     /* f32: the point's position, and that of its first neighbour */
  berth__x place, weight; /* of the current neighbour: i32, f32 */
  berth__x is_there;      /* bool: it is inside x */
} axis;

static berth__x lower_grid_sample_floor_of(berth__kernel *k, berth__x x) { return berth__x1(k, BERTH__INST_floor, x); }

/* Reflects between the ends. */
static berth__x lower_grid_sample_reflect(const sampling *s, const axis *a, berth__x x) {
  berth__kernel *k = s->k;
  const float range = a->high - a->low;
  if (range <= 0) return berth__x_f32(k, a->low);
  const berth__x period = berth__x_f32(k, 2 * range);
  const berth__x far = berth__x1(k, BERTH__INST_abs, berth__m_plus(k, x, -a->low));
  const berth__x rounds = lower_grid_sample_floor_of(k, berth__x_div(k, far, period));
  const berth__x rest = berth__x_sub(k, far, berth__x_mul(k, rounds, period));
  return berth__m_plus(k, berth__x_min(k, rest, berth__x_sub(k, period, rest)), a->low);
}

static berth__x is_between(berth__kernel *k, berth__x x, float low, float high) {
  return berth__x_and(k, berth__x_le(k, berth__x_f32(k, low), x), berth__x_le(k, x, berth__x_f32(k, high)));
}

/* Converts a coordinate of -1 to 1 to a position, moved inside if the padding mode says so; cubic neighbours are moved
 * one by one, which for `border` is not the same. */
static berth__x lower_grid_sample_position(const sampling *s, const axis *a, berth__x coordinate) {
  berth__kernel *k = s->k;
  const berth__x from_0 = berth__m_plus(k, coordinate, 1.0f);
  berth__x at = s->align
                    ? berth__m_scale(k, berth__m_scale(k, from_0, 0.5f), a->last)
                    : berth__m_scale(k, berth__m_plus(k, berth__m_scale(k, from_0, (float)a->extent), -1.0f), 0.5f);
  if (s->mode == BERTH__RESAMPLE_NEAREST) at = berth__x1(k, BERTH__INST_round, at);
  berth__x back = at;
  if (s->padding == BORDER && s->mode != BERTH__RESAMPLE_CUBIC) {
    const berth__x zero = berth__x_f32(k, 0.0f), last = berth__x_f32(k, a->last);
    back = berth__x_select(k, berth__x_lt(k, last, at), last, at);
    back = berth__x_select(k, berth__x_lt(k, at, zero), zero, back);
  } else if (s->padding == REFLECTION) {
    back = berth__x_select(k, berth__l_is_finite(k, at), lower_grid_sample_reflect(s, a, at), at);
  }
  return berth__x_select(k, is_between(k, at, a->low, a->high), at, back);
}

static void place_neighbour(const sampling *s, axis *a, berth__x at) {
  berth__kernel *k = s->k;
  const berth__x is_inside = is_between(k, at, 0.0f, a->last);
  a->is_there = s->padding == ZEROS ? is_inside : berth__l_is_finite(k, at);
  if (s->padding == REFLECTION) at = berth__x_select(k, is_inside, at, lower_grid_sample_reflect(s, a, at));
  a->place = berth__l_clamped_index(k, at, a->extent);
}

static int64_t lower_grid_sample_taps_of(const sampling *s) {
  return s->mode == BERTH__RESAMPLE_NEAREST ? 1 : s->mode == BERTH__RESAMPLE_CUBIC ? 4 : 2;
}

static void lower_grid_sample_open_taps(const sampling *s, axis *a) {
  berth__kernel *k = s->k;
  const berth__x one = berth__x_f32(k, 1.0f);
  const berth__x tap = berth__x_loop_n(k, lower_grid_sample_taps_of(s));
  const berth__x at = berth__x_add(k, a->first, berth__x_convert(k, BERTH__NUM_F32, tap));
  const berth__x distance = berth__x_sub(k, at, a->at);
  switch (s->mode) {
    case BERTH__RESAMPLE_NEAREST: a->weight = one; break;
    case BERTH__RESAMPLE_CUBIC: a->weight = berth__l_cubic(k, -0.75f, distance); break;
    default: a->weight = berth__x_sub(k, one, berth__x1(k, BERTH__INST_abs, distance)); break;
  }
  place_neighbour(s, a, at);
}

static void lower_grid_sample_find_first(const sampling *s, axis *a, berth__x coordinate) {
  berth__kernel *k = s->k;
  a->at = lower_grid_sample_position(s, a, coordinate);
  a->first = s->mode == BERTH__RESAMPLE_NEAREST ? berth__x1(k, BERTH__INST_round, a->at)
                                                : lower_grid_sample_floor_of(k, a->at);
  if (s->mode == BERTH__RESAMPLE_CUBIC) a->first = berth__m_plus(k, a->first, -1.0f);
}

static axis read_axis(const sampling *s, int64_t extent) {
  const float last = (float)(extent - 1);
  return (axis){.extent = extent, .last = last, .low = s->align ? 0 : -0.5f, .high = s->align ? last : last + 0.5f};
}

/* The axes of the point for the element at `at` of the result. */
static void find_point(const sampling *s, const berth__x *at, axis *axes) {
  const berth_tensor *x = &s->l->call->in[0], *grid = &s->l->call->in[1];
  berth__x point[BERTH_MAX_RANK] = {at[0]};
  for (uint32_t i = 0; i < s->spatial; i++) point[1 + i] = at[2 + i];
  for (uint32_t i = 0; i < s->spatial; i++) {
    axes[i] = read_axis(s, x->dim[2 + i]);
    point[1 + s->spatial] = berth__x_i32(s->k, s->spatial - 1 - i);
    lower_grid_sample_find_first(s, &axes[i], berth__l_load(s->l, s->k, 1, berth__l_place(s->k, grid, point)));
  }
}

static berth__x lower_grid_sample_look_up(const sampling *s, const berth__x *at, axis *axes) {
  berth__kernel *k = s->k;
  const berth__x sum = berth__x_variable(k, berth__x_f32(k, 0.0f));
  berth__x from[BERTH_MAX_RANK] = {at[0], at[1]}, weight = berth__x_f32(k, 1.0f), is_there = berth__x_bool(k, true);
  for (uint32_t i = 0; i < s->spatial; i++) {
    lower_grid_sample_open_taps(s, &axes[i]);
    from[2 + i] = axes[i].place;
    weight = berth__x_mul(k, weight, axes[i].weight);
    is_there = berth__x_and(k, is_there, axes[i].is_there);
  }
  is_there = berth__x_and(k, is_there, berth__x_ne(k, weight, berth__x_f32(k, 0.0f)));
  berth__x_if(k, is_there);
  const berth__x element = berth__l_load(s->l, k, 0, berth__l_place(k, &s->l->call->in[0], from));
  const berth__x value = berth__x_convert(k, BERTH__NUM_F32, element);
  berth__x_set(k, sum, berth__m_fma(k, weight, value, berth__x_get(k, sum)));
  berth__x_end(k);
  for (uint32_t i = 0; i < s->spatial; i++) berth__x_end(k);
  return berth__x_get(k, sum);
}

berth_status berth__lower_grid_sample(berth__lowering *l, berth_error *err) {
  static const char *const paddings[] = {"zeros", "border", "reflection"};
  const berth_op_call *call = l->call;
  const berth_tensor *out = &call->out[0];
  sampling s = {.l = l,
                .mode = (berth__resample_mode)berth__name_index(call->attrs[BERTH__GRID_SAMPLE_MODE].s,
                                                                berth__resample_names, BERTH__RESAMPLE_MODES),
                .padding = (padding_mode)berth__name_index(call->attrs[BERTH__GRID_SAMPLE_PADDING].s, paddings, 3),
                .align = call->attrs[BERTH__GRID_SAMPLE_ALIGN_CORNERS].i != 0,
                .spatial = call->in[0].rank - 2};
  berth__x at[BERTH_MAX_RANK];
  axis axes[BERTH__WINDOW_AXES];
  berth__kernel *k = s.k = berth__l_begin(l, call->attrs[BERTH__GRID_SAMPLE_MODE].s);
  berth__l_unravel(k, berth__l_each(l, k, berth__count(out)), out->rank, out->dim, at);
  find_point(&s, at, axes);
  const berth__x value = berth__l_cast(k, lower_grid_sample_look_up(&s, at, axes), BERTH_F32, out->type);
  berth__l_store(l, k, 0, berth__l_place(k, out, at), value);
  return berth__l_end(l, k, err);
}
