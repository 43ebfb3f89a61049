/* Sums, means, maxima and minima of integers over some axes: folded in 64 bits, like the reference kernel, in loops
 * that compilers vectorise. */
#include "device/cpu/kernels/reduce.h"
#include "device/cpu/kernels/turn.h"
#include "ops/operand.h"

typedef enum int_fold {
  INT_SUM,
  INT_MOST,
  INT_LEAST
} int_fold;

/* Folds n contiguous elements into a state, or rows of columns, each into its own state. */
typedef struct int_type {
  int64_t (*run)(int_fold how, int64_t state, const void *x, int64_t n);
  void (*rows)(int_fold how, int64_t *state, const void *x, int64_t step, int64_t rows, int64_t columns);
} int_type;

/* Sums wrap. */
static inline int64_t reduce_int_add(int64_t a, int64_t b) { return (int64_t)((uint64_t)a + (uint64_t)b); }

#define INT_TYPE(name, element)                                                                               \
  static int64_t reduce_int_run_##name(int_fold how, int64_t state, const void *x, int64_t n) {               \
    const element *p = x;                                                                                     \
    element best = p[0];                                                                                      \
    uint64_t sum = 0;                                                                                         \
    if (how == INT_SUM) {                                                                                     \
      for (int64_t i = 0; i < n; i++) sum += (uint64_t)(int64_t)p[i];                                         \
      return reduce_int_add(state, (int64_t)sum);                                                             \
    }                                                                                                         \
    if (how == INT_MOST)                                                                                      \
      for (int64_t i = 0; i < n; i++) best = p[i] > best ? p[i] : best;                                       \
    else                                                                                                      \
      for (int64_t i = 0; i < n; i++) best = p[i] < best ? p[i] : best;                                       \
    const int64_t found = (int64_t)best;                                                                      \
    return how == INT_MOST ? (found > state ? found : state) : found < state ? found : state;                 \
  }                                                                                                           \
  static void reduce_int_rows_##name(int_fold how, int64_t *state, const void *x, int64_t step, int64_t rows, \
                                     int64_t columns) {                                                       \
    for (int64_t row = 0; row < rows; row++) {                                                                \
      const element *p = (const element *)x + row * step;                                                     \
      if (how == INT_SUM)                                                                                     \
        for (int64_t i = 0; i < columns; i++) state[i] = reduce_int_add(state[i], (int64_t)p[i]);             \
      else if (how == INT_MOST)                                                                               \
        for (int64_t i = 0; i < columns; i++) state[i] = (int64_t)p[i] > state[i] ? (int64_t)p[i] : state[i]; \
      else                                                                                                    \
        for (int64_t i = 0; i < columns; i++) state[i] = (int64_t)p[i] < state[i] ? (int64_t)p[i] : state[i]; \
    }                                                                                                         \
  }                                                                                                           \
  static const int_type reduce_int_##name = {reduce_int_run_##name, reduce_int_rows_##name};
INT_TYPE(i8, int8_t)
INT_TYPE(u8, uint8_t)
INT_TYPE(i16, int16_t)
INT_TYPE(u16, uint16_t)
INT_TYPE(i32, int32_t)
INT_TYPE(u32, uint32_t)
INT_TYPE(i64, int64_t)

static const int_type *reduce_int_type(berth_type type) {
  switch (type) {
    case BERTH_I8: return &reduce_int_i8;
    case BERTH_U8: return &reduce_int_u8;
    case BERTH_I16: return &reduce_int_i16;
    case BERTH_U16: return &reduce_int_u16;
    case BERTH_I32: return &reduce_int_i32;
    case BERTH_U32: return &reduce_int_u32;
    case BERTH_I64: return &reduce_int_i64;
    default: return NULL;
  }
}

static bool reduce_int_takes(const berth_op_call *call) {
  reduction r;
  return reduce_int_type(call->in[BERTH__REDUCE_X].type) != NULL && reduce_read(&r, call);
}

typedef struct folding {
  const berth_op_call *call;
  reduction r;
  const int_type *type;
  int_fold how;
  bool is_mean;
} folding;

static int64_t reduce_int_start(const folding *f) {
  return f->how == INT_SUM ? 0 : f->how == INT_MOST ? INT64_MIN : INT64_MAX;
}

static const char *reduce_int_at(const folding *f, int64_t index) {
  const berth_tensor *x = &f->call->in[BERTH__REDUCE_X];
  return (const char *)x->data + index * (int64_t)berth_type_size(x->type);
}

static void reduce_int_store(const folding *f, int64_t index, int64_t state) {
  berth__store_i64(&f->call->out[0], index, f->is_mean ? state / f->r.gone.count : state);
}

#define GATHERED 512 /* elements gathered from a strided run at a time */

static int64_t reduce_int_run(const folding *f, int64_t state, int64_t first) {
  const reduction *r = &f->r;
  const size_t size = berth_type_size(f->call->in[BERTH__REDUCE_X].type);
  uint64_t gathered[GATHERED];
  if (r->step == 1) return f->type->run(f->how, state, reduce_int_at(f, first), r->run);
  for (int64_t i = 0; i < r->run; i += GATHERED) {
    const int64_t n = r->run - i < GATHERED ? r->run - i : GATHERED;
    turn_together(gathered, reduce_int_at(f, first + i * r->step), r->step, n, size);
    state = f->type->run(f->how, state, gathered, n);
  }
  return state;
}

static void reduce_int_of_runs(const folding *f, int64_t item) {
  const reduction *r = &f->r;
  const int64_t begin = item * r->per_item, left = r->n_outer - begin;
  for (int64_t i = begin; i < begin + (left < r->per_item ? left : r->per_item); i++) {
    const int64_t first = reduce_offset_of(&r->kept, r->kept.rank, i);
    int64_t state = reduce_int_start(f);
    reduce_place at = {{0}, 0};
    for (int64_t k = 0; k < r->gone.count / r->run; k++, reduce_next(&r->gone, &at))
      state = reduce_int_run(f, state, first + at.offset);
    reduce_int_store(f, i, state);
  }
}

static void reduce_int_of_columns(const folding *f, int64_t item) {
  const reduction *r = &f->r;
  const int64_t across = reduce_pieces(r->n_inner, REDUCE_COLUMNS), outer = item / across,
                column = item % across * REDUCE_COLUMNS;
  const int64_t left = r->n_inner - column, n = left < REDUCE_COLUMNS ? left : REDUCE_COLUMNS;
  const int64_t first = reduce_offset_of(&r->kept, r->kept.rank - 1, outer) + column;
  int64_t state[REDUCE_COLUMNS];
  reduce_place at = {{0}, 0};
  for (int64_t i = 0; i < n; i++) state[i] = reduce_int_start(f);
  for (int64_t k = 0; k < r->gone.count / r->run; k++, reduce_next(&r->gone, &at))
    f->type->rows(f->how, state, reduce_int_at(f, first + at.offset), reduce_last_of(&r->gone, r->gone.stride, 0),
                  r->run, n);
  for (int64_t i = 0; i < n; i++) reduce_int_store(f, outer * r->n_inner + column + i, state[i]);
}

static berth_status reduce_int_run_call(const berth_op_call *call, berth_error *err) {
  const berth__op_code code = berth__call_code(call);
  folding f = {.call = call,
               .type = reduce_int_type(call->in[BERTH__REDUCE_X].type),
               .how = code == BERTH__OP_reduce_max   ? INT_MOST
                      : code == BERTH__OP_reduce_min ? INT_LEAST
                                                     : INT_SUM,
               .is_mean = code == BERTH__OP_reduce_mean};
  (void)err;
  if (!reduce_read(&f.r, call)) return BERTH_OK;
  for (int64_t item = call->begin; item < call->end; item++)
    (f.r.in_runs ? reduce_int_of_runs : reduce_int_of_columns)(&f, item);
  return BERTH_OK;
}

#define ROW(op)                                                                                           \
  {                                                                                                       \
    .name = #op " of integers", .code = BERTH__OP_##op, .takes = reduce_int_takes, .items = reduce_items, \
    .run = reduce_int_run_call                                                                            \
  }

const berth__cpu_kernel BERTH__PER_ISA(berth__kernels_reduce_int)[] = {
    ROW(reduce_sum), ROW(reduce_mean), ROW(reduce_max), ROW(reduce_min), {0},
};
