/* max_pool of integers and f64, in both layouts: the lines of x that a line of the result sees are combined first, and
 * then positions of the combined line. With channels last a position is all channels of a pixel. */
#include "device/cpu/kernels/each.h"
#include "device/cpu/kernels/vec.h"
#include "ops/pool.h"

/* How elements of a type are combined. */
typedef struct joiner {
  void (*start)(void *best, int64_t n);
  void (*join)(void *best, const void *x, int64_t step, int64_t n); /* x has stride `step` */
} joiner;

#define JOINER(name, element, least, is_better)                                             \
  static void pool_max_start_##name(void *best, int64_t n) {                                \
    element *o = best;                                                                      \
    for (int64_t i = 0; i < n; i++) o[i] = (element)(least);                                \
  }                                                                                         \
  static void pool_max_join_##name(void *best, const void *from, int64_t step, int64_t n) { \
    const element *p = from;                                                                \
    element *o = best;                                                                      \
    BERTH__EACH_ONE(element, element, (is_better) ? x : o[i], step)                         \
  }
JOINER(i8, int8_t, INT8_MIN, x > o[i])
JOINER(u8, uint8_t, 0, x > o[i])
JOINER(i16, int16_t, INT16_MIN, x > o[i])
JOINER(u16, uint16_t, 0, x > o[i])
JOINER(i32, int32_t, INT32_MIN, x > o[i])
JOINER(u32, uint32_t, 0, x > o[i])
JOINER(i64, int64_t, INT64_MIN, x > o[i])
JOINER(f64, double, -(double)INFINITY, x > o[i] || x != x)

static const joiner *pool_max_joiner(berth_type type) {
#define CASE(TYPE, name)                                                           \
  case BERTH_##TYPE: {                                                             \
    static const joiner of_##name = {pool_max_start_##name, pool_max_join_##name}; \
    return &of_##name;                                                             \
  }
  switch (type) {
    CASE(I8, i8)
    CASE(U8, u8)
    CASE(I16, i16)
    CASE(U16, u16)
    CASE(I32, i32)
    CASE(U32, u32)
    CASE(I64, i64)
    CASE(F64, f64)
    default: return NULL;
  }
}

typedef struct pooling {
  berth__window window;
  int64_t place; /* contiguous elements that have the same windows */
  int64_t outer; /* images, or their channels */
  size_t element;
  const joiner *with;
} pooling;

static void pool_max_describe(const berth_op_call *call, pooling *p) {
  const berth_tensor *x = &call->in[0], *out = &call->out[0];
  const berth__window_attrs window = berth__pool_window(call->attrs);
  const bool is_last = call->attrs[BERTH__POOL_CHANNELS_LAST].i != 0;
  const uint32_t first = is_last ? 1 : 2;
  berth__window_read(&p->window, &window, x->rank - 2, x->dim + first, call->attrs[BERTH__POOL_KERNEL].ints,
                     out->dim + first);
  p->place = is_last ? x->dim[x->rank - 1] : 1;
  p->outer = is_last ? x->dim[0] : x->dim[0] * x->dim[1];
  p->element = berth_type_size(x->type);
  p->with = pool_max_joiner(x->type);
}

static bool pool_max_takes(const berth_op_call *call) {
  return call->n_out == 1 && pool_max_joiner(call->in[0].type) != NULL && berth__is_contiguous(&call->in[0]) &&
         berth__count(&call->out[0]) > 0;
}

/* Lines of the result. */
static int64_t pool_max_items(const berth_op_call *call) {
  pooling p;
  pool_max_describe(call, &p);
  return p.outer * p.window.axis[0].out * p.window.axis[1].out;
}

static uint64_t pool_max_scratch(const berth_op_call *call) {
  pooling p;
  pool_max_describe(call, &p);
  return (uint64_t)(p.window.axis[2].in * p.place) * p.element;
}

/* Combines the lines that windows see. */
static void pool_max_join_lines(const pooling *p, const char *x, int64_t plane, int64_t row, void *line) {
  const berth__window_axis *w = p->window.axis;
  const int64_t n = w[2].in * p->place;
  p->with->start(line, n);
  for (int64_t k0 = 0; k0 < w[0].kernel; k0++)
    for (int64_t k1 = 0; k1 < w[1].kernel; k1++) {
      const int64_t i0 = berth__window_input(&w[0], plane, k0), i1 = berth__window_input(&w[1], row, k1);
      if (i0 < 0 || i0 >= w[0].in || i1 < 0 || i1 >= w[1].in) continue;
      p->with->join(line, x + (size_t)((i0 * w[1].in + i1) * n) * p->element, 1, n);
    }
}

/* One tap of all windows of a line. */
static void pool_max_join_tap(const pooling *p, int64_t tap, const char *line, char *out) {
  const berth__window_axis *w = &p->window.axis[2];
  const int64_t size = p->place * (int64_t)p->element;
  int64_t first, end;
  berth__window_span(w, tap, w->out, w->in, &first, &end);
  const int64_t from = first < end ? berth__window_input(w, first, tap) : 0;
  if (p->place == 1)
    p->with->join(out + first * size, line + from * size, w->stride, end - first);
  else if (w->stride == 1)
    p->with->join(out + first * size, line + from * size, 1, (end - first) * p->place);
  else
    for (int64_t i = first; i < end; i++)
      p->with->join(out + i * size, line + (from + (i - first) * w->stride) * size, 1, p->place);
}

static berth_status pool_max_run(const berth_op_call *call, berth_error *err) {
  pooling p;
  const berth__window_axis *w = p.window.axis;
  (void)err;
  pool_max_describe(call, &p);
  for (int64_t item = call->begin; item < call->end; item++) {
    const int64_t row = item % w[1].out, plane = item / w[1].out % w[0].out, outer = item / w[1].out / w[0].out;
    const char *x =
        (const char *)call->in[0].data + (size_t)(outer * w[0].in * w[1].in * w[2].in * p.place) * p.element;
    char *out = (char *)call->out[0].data + (size_t)(item * w[2].out * p.place) * p.element;
    pool_max_join_lines(&p, x, plane, row, call->scratch);
    p.with->start(out, w[2].out * p.place);
    for (int64_t tap = 0; tap < w[2].kernel; tap++) pool_max_join_tap(&p, tap, call->scratch, out);
  }
  return BERTH_OK;
}

const berth__cpu_kernel BERTH__PER_ISA(berth__kernels_pool_max)[] = {
    {.name = "max_pool lines",
     .code = BERTH__OP_max_pool,
     .takes = pool_max_takes,
     .items = pool_max_items,
     .scratch = pool_max_scratch,
     .run = pool_max_run},
    {0},
};
