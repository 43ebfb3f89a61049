/* max_pool that also returns the index of each maximum, for [N, C, spatial...]: one tap of all windows of a line at a
 * time, with the indices of the maxima so far beside them. */
#include "device/cpu/kernels/each.h"
#include "device/cpu/kernels/vec.h"
#include "ops/pool.h"

/* One tap of n windows, `step` elements of x apart; `at` is the index of the first one's element in its plane. Among
 * equals the first stays, and so does the first NaN; a window without an index takes whatever it sees. */
typedef void (*place_tap)(void *best, int32_t *place, const void *x, int64_t step, int32_t at, int64_t n);

#define PLACE_LOOP(element, apart)                                         \
  BERTH__TOGETHER                                                          \
  for (int64_t i = 0; i < n; i++) {                                        \
    const element x = p[i * (apart)], b = o[i];                            \
    const int32_t before = place[i];                                       \
    const bool is_better = (x > b) | (before < 0) | ((x != x) & (b == b)); \
    o[i] = is_better ? x : b;                                              \
    place[i] = is_better ? at + (int32_t)(i * (apart)) : before;           \
  }
#define PLACE_TAP(name, element)                                                                             \
  static void pool_places_tap_##name(void *best, int32_t *place, const void *from, int64_t step, int32_t at, \
                                     int64_t n) {                                                            \
    const element *p = from;                                                                                 \
    element *o = best;                                                                                       \
    if (step == 1) {                                                                                         \
      PLACE_LOOP(element, 1)                                                                                 \
    } else if (step == 2) {                                                                                  \
      PLACE_LOOP(element, 2)                                                                                 \
    } else {                                                                                                 \
      PLACE_LOOP(element, step)                                                                              \
    }                                                                                                        \
  }
/* NaN is the number that differs from itself; integers have none. */
#if defined(__clang__)
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wtautological-compare"
#endif
PLACE_TAP(i8, int8_t)
PLACE_TAP(u8, uint8_t)
PLACE_TAP(i16, int16_t)
PLACE_TAP(u16, uint16_t)
PLACE_TAP(i32, int32_t)
PLACE_TAP(u32, uint32_t)
PLACE_TAP(i64, int64_t)
PLACE_TAP(f32, float)
PLACE_TAP(f64, double)
#if defined(__clang__)
#pragma clang diagnostic pop
#endif

static place_tap pool_places_tap_of(berth_type type) {
  switch (type) {
    case BERTH_I8: return pool_places_tap_i8;
    case BERTH_U8: return pool_places_tap_u8;
    case BERTH_I16: return pool_places_tap_i16;
    case BERTH_U16: return pool_places_tap_u16;
    case BERTH_I32: return pool_places_tap_i32;
    case BERTH_U32: return pool_places_tap_u32;
    case BERTH_I64: return pool_places_tap_i64;
    case BERTH_F32: return pool_places_tap_f32;
    case BERTH_F64: return pool_places_tap_f64;
    default: return NULL;
  }
}

/* The maximum of a window that sees nothing. */
static void least_of(berth_type type, void *to) {
  const berth_tensor one = {.data = to, .type = type};
  int64_t low, high;
  if (berth__type_is_float(type)) {
    berth__store_f64(&one, 0, -(double)INFINITY);
    return;
  }
  berth__int_limits(type, &low, &high);
  berth__store_i64(&one, 0, low);
}

static void pool_places_read(const berth_op_call *call, berth__window *window) {
  const berth_tensor *x = &call->in[0];
  const berth__window_attrs attrs = berth__pool_window(call->attrs);
  berth__window_read(window, &attrs, x->rank - 2, x->dim + 2, call->attrs[BERTH__POOL_KERNEL].ints,
                     call->out[0].dim + 2);
}

static bool pool_places_takes(const berth_op_call *call) {
  berth__window window;
  if (call->n_out < 2 || call->attrs[BERTH__POOL_CHANNELS_LAST].i != 0 ||
      pool_places_tap_of(call->in[0].type) == NULL || !berth__is_contiguous(&call->in[0]) ||
      berth__count(&call->out[0]) == 0)
    return false;
  pool_places_read(call, &window);
  const berth__window_axis *w = window.axis;
  return w[0].in * w[1].in * w[2].in < INT32_MAX; /* indices in a plane are 32 bits */
}

/* Lines of the result. */
static int64_t pool_places_items(const berth_op_call *call) {
  const berth_tensor *out = &call->out[0];
  return berth__count(out) / out->dim[out->rank - 1];
}

static uint64_t pool_places_scratch(const berth_op_call *call) {
  return (uint64_t)call->out[0].dim[call->out[0].rank - 1] * sizeof(int32_t);
}

/* `area`: number of elements before this plane. */
static void store_places(const berth_op_call *call, const berth__window_axis *w, const int32_t *place, int64_t before,
                         int64_t *to) {
  const bool by_columns = call->attrs[BERTH__POOL_STORAGE_ORDER].i != 0; /* the first spatial axis is the innermost */
  for (int64_t i = 0; i < w[2].out; i++) {
    int64_t at = place[i];
    if (by_columns && at >= 0) {
      const int64_t a = at / w[2].in / w[1].in, b = at / w[2].in % w[1].in, c = at % w[2].in;
      at = a + w[0].in * (b + w[1].in * c);
    }
    to[i] = at < 0 ? -1 : before + at;
  }
}

static void pool_places_line(const berth_op_call *call, const berth__window *window, int64_t item) {
  const berth__window_axis *w = window->axis;
  const size_t element = berth_type_size(call->in[0].type);
  const place_tap take = pool_places_tap_of(call->in[0].type);
  const int64_t row = item % w[1].out, plane = item / w[1].out % w[0].out, outer = item / w[1].out / w[0].out;
  const int64_t before = outer * w[0].in * w[1].in * w[2].in;
  char *best = (char *)call->out[0].data + (size_t)(item * w[2].out) * element;
  int32_t *place = call->scratch;
  uint64_t least;
  least_of(call->in[0].type, &least);
  for (int64_t i = 0; i < w[2].out; i++) {
    memcpy(best + (size_t)i * element, &least, element);
    place[i] = -1;
  }
  for (int64_t tap = 0; tap < berth__window_taps(window); tap++) {
    int64_t t[BERTH__WINDOW_AXES], first, end;
    berth__window_tap(window, tap, t);
    berth__window_span(&w[2], t[2], w[2].out, w[2].in, &first, &end);
    const int64_t i0 = berth__window_input(&w[0], plane, t[0]), i1 = berth__window_input(&w[1], row, t[1]);
    if (i0 < 0 || i0 >= w[0].in || i1 < 0 || i1 >= w[1].in || first >= end) continue;
    const int64_t at = (i0 * w[1].in + i1) * w[2].in + berth__window_input(&w[2], first, t[2]);
    take(best + (size_t)first * element, place + first,
         (const char *)call->in[0].data + (size_t)(before + at) * element, w[2].stride, (int32_t)at, end - first);
  }
  store_places(call, w, place, before, (int64_t *)call->out[1].data + item * w[2].out);
}

static berth_status pool_places_run(const berth_op_call *call, berth_error *err) {
  berth__window window;
  (void)err;
  pool_places_read(call, &window);
  for (int64_t item = call->begin; item < call->end; item++) pool_places_line(call, &window, item);
  return BERTH_OK;
}

const berth__cpu_kernel BERTH__PER_ISA(berth__kernels_pool_places)[] = {
    {.name = "max_pool places",
     .code = BERTH__OP_max_pool,
     .takes = pool_places_takes,
     .items = pool_places_items,
     .scratch = pool_places_scratch,
     .run = pool_places_run},
    {0},
};
