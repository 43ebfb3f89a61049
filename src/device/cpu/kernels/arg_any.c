/* arg_max and arg_min of integers and f64, and of f32 if the last of equal elements is wanted. Along the last axis, the
 * extreme is found first and its position after that. Along another axis, neighbouring lines are searched together. */
#include "device/cpu/kernels/vec.h"
#include "ops/elementwise.h"

#define ITEM 16384 /* elements per work item */
#define COLUMNS 128

typedef struct searcher {
  int64_t (*line)(const void *x, int64_t n, bool smallest, bool last);
  void (*columns)(int64_t *out, const void *x, int64_t length, int64_t step, int64_t n, bool smallest, bool last);
} searcher;

/* The first or the last position where `is_it` holds. */
#define ARG_FIND(is_it)             \
  if (last)                         \
    for (int64_t i = n; i-- > 0;) { \
      if (is_it) return i;          \
    }                               \
  for (int64_t i = 0; i < n; i++)   \
    if (is_it) return i;            \
  return 0;

#define ARG_LINE(name, element)                                                               \
  static int64_t arg_any_line_##name(const void *from, int64_t n, bool smallest, bool last) { \
    const element *x = from;                                                                  \
    element best = x[0];                                                                      \
    int odd = 0;                                                                              \
    for (int64_t i = 0; i < n; i++) odd |= x[i] != x[i];                                      \
    if (odd != 0) {                                                                           \
      ARG_FIND(x[i] != x[i])                                                                  \
    }                                                                                         \
    if (smallest)                                                                             \
      for (int64_t i = 0; i < n; i++) best = x[i] < best ? x[i] : best;                       \
    else                                                                                      \
      for (int64_t i = 0; i < n; i++) best = x[i] > best ? x[i] : best;                       \
    ARG_FIND(x[i] == best)                                                                    \
  }

/* One more row of some columns: positions are counted in 32 bits. */
#define ARG_ROW(element, beats)                   \
  for (int64_t i = 0; i < n; i++) {               \
    const element x = row[i], b = best[i];        \
    const bool is_better = (beats);               \
    best[i] = is_better ? x : b;                  \
    place[i] = is_better ? (int32_t)k : place[i]; \
  }

#define ARG_COLUMNS(name, element)                                                                            \
  static void arg_any_columns_##name(int64_t *out, const void *from, int64_t length, int64_t step, int64_t n, \
                                     bool smallest, bool last) {                                              \
    element best[COLUMNS];                                                                                    \
    int32_t place[COLUMNS] = {0};                                                                             \
    memcpy(best, from, (size_t)n * sizeof *best);                                                             \
    for (int64_t k = 1; k < length; k++) {                                                                    \
      const element *row = (const element *)from + k * step;                                                  \
      if (smallest && last) {                                                                                 \
        ARG_ROW(element, (x <= b) | (x != x))                                                                 \
      } else if (smallest) {                                                                                  \
        ARG_ROW(element, (x < b) | ((x != x) & (b == b)))                                                     \
      } else if (last) {                                                                                      \
        ARG_ROW(element, (x >= b) | (x != x))                                                                 \
      } else {                                                                                                \
        ARG_ROW(element, (x > b) | ((x != x) & (b == b)))                                                     \
      }                                                                                                       \
    }                                                                                                         \
    for (int64_t i = 0; i < n; i++) out[i] = place[i];                                                        \
  }

#define ARG_TYPE(name, element) ARG_LINE(name, element) ARG_COLUMNS(name, element)
/* NaN is the number that differs from itself; integers have none. */
#if defined(__clang__)
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wtautological-compare"
#endif
ARG_TYPE(i8, int8_t)
ARG_TYPE(u8, uint8_t)
ARG_TYPE(i16, int16_t)
ARG_TYPE(u16, uint16_t)
ARG_TYPE(i32, int32_t)
ARG_TYPE(u32, uint32_t)
ARG_TYPE(i64, int64_t)
ARG_TYPE(f32, float)
ARG_TYPE(f64, double)
#if defined(__clang__)
#pragma clang diagnostic pop
#endif

static const searcher *arg_any_searcher(berth_type type) {
#define CASE(TYPE, name)                                                             \
  case BERTH_##TYPE: {                                                               \
    static const searcher of_##name = {arg_any_line_##name, arg_any_columns_##name}; \
    return &of_##name;                                                               \
  }
  switch (type) {
    CASE(I8, i8)
    CASE(U8, u8)
    CASE(I16, i16)
    CASE(U16, u16)
    CASE(I32, i32)
    CASE(U32, u32)
    CASE(I64, i64)
    CASE(F32, f32)
    CASE(F64, f64)
    default: return NULL;
  }
}

static berth__lines arg_any_lines_of(const berth_op_call *call) {
  return berth__lines_of(&call->in[0], call->attrs[BERTH__ARG_AXIS].i);
}

static bool arg_any_takes(const berth_op_call *call) {
  return arg_any_searcher(call->in[0].type) != NULL && berth__is_contiguous(&call->in[0]) &&
         arg_any_lines_of(call).length < INT32_MAX;
}

static int64_t arg_any_lines_each(const berth__lines *lines) { return lines->length < ITEM ? ITEM / lines->length : 1; }
static int64_t arg_any_pieces_across(const berth__lines *lines) { return (lines->inner + COLUMNS - 1) / COLUMNS; }

static int64_t arg_any_items(const berth_op_call *call) {
  const berth__lines lines = arg_any_lines_of(call);
  if (lines.inner > 1) return lines.outer * arg_any_pieces_across(&lines);
  return (lines.outer + arg_any_lines_each(&lines) - 1) / arg_any_lines_each(&lines);
}

static berth_status arg_any_run(const berth_op_call *call, berth_error *err) {
  const searcher *with = arg_any_searcher(call->in[0].type);
  const berth__lines lines = arg_any_lines_of(call);
  const bool smallest = berth__call_code(call) == BERTH__OP_arg_min, last = call->attrs[BERTH__ARG_SELECT_LAST].i != 0;
  const int64_t each = arg_any_lines_each(&lines), across = arg_any_pieces_across(&lines);
  const size_t element = berth_type_size(call->in[0].type);
  const char *x = call->in[0].data;
  int64_t *out = call->out[0].data;
  (void)err;
  for (int64_t item = call->begin; item < call->end; item++) {
    if (lines.inner > 1) {
      const int64_t outer = item / across, column = item % across * COLUMNS, left = lines.inner - column;
      with->columns(out + outer * lines.inner + column,
                    x + (size_t)(outer * lines.length * lines.inner + column) * element, lines.length, lines.inner,
                    left < COLUMNS ? left : COLUMNS, smallest, last);
      continue;
    }
    for (int64_t line = item * each; line < lines.outer && line < (item + 1) * each; line++)
      out[line] = with->line(x + (size_t)(line * lines.length) * element, lines.length, smallest, last);
  }
  return BERTH_OK;
}

#define KERNEL(op) \
  { .name = #op " any", .code = BERTH__OP_##op, .takes = arg_any_takes, .items = arg_any_items, .run = arg_any_run }
const berth__cpu_kernel BERTH__PER_ISA(berth__kernels_arg_any)[] = {KERNEL(arg_max), KERNEL(arg_min), {0}};
