/* cast between types that chains of f32 cannot hold: 16 and 64 bits, f64. Floats are converted through blocks of f32 or
 * f64, integers directly. */
#include <math.h>

#include "device/cpu/kernels/bf16.h"
#include "device/cpu/kernels/each.h"
#include "device/cpu/kernels/half.h"
#include "device/cpu/kernels/lines.h"
#include "ops/elementwise.h"

#define BLOCK 512 /* elements per block of floats */

/* Elements that are `step` apart are converted and stored contiguously. */
typedef void (*convert)(void *to, const void *from, int64_t step, int64_t n);

#define CONVERT(name, element, result, expression)                               \
  static void cast_##name(void *to, const void *from, int64_t step, int64_t n) { \
    const element *p = from;                                                     \
    result *o = to;                                                              \
    BERTH__EACH_ONE(element, result, expression, step)                           \
  }

/* ---- Integers ------------------------------------------------------------------------------------------------- */

/* Modulo 2^n: the signedness of the result does not matter. */
#define INTEGER(type, element)                   \
  CONVERT(type##_1, element, uint8_t, x)         \
  CONVERT(type##_2, element, uint16_t, x)        \
  CONVERT(type##_4, element, uint32_t, x)        \
  CONVERT(type##_8, element, uint64_t, x)        \
  CONVERT(type##_bool, element, uint8_t, x != 0) \
  CONVERT(type##_f32, element, float, x)         \
  CONVERT(type##_f64, element, double, x)
INTEGER(i8, int8_t)
INTEGER(u8, uint8_t)
INTEGER(i16, int16_t)
INTEGER(u16, uint16_t)
INTEGER(i32, int32_t)
INTEGER(u32, uint32_t)
INTEGER(i64, int64_t)
INTEGER(u64, uint64_t)

enum {
  TO_1,
  TO_2,
  TO_4,
  TO_8,
  TO_BOOL,
  TO_F32,
  TO_F64,
  TO_KINDS
};
#define FROM(type)                                                                                             \
  {                                                                                                            \
    cast_##type##_1, cast_##type##_2, cast_##type##_4, cast_##type##_8, cast_##type##_bool, cast_##type##_f32, \
        cast_##type##_f64                                                                                      \
  }
static const convert of_i8[] = FROM(i8), of_u8[] = FROM(u8), of_i16[] = FROM(i16), of_u16[] = FROM(u16),
                     of_i32[] = FROM(i32), of_u32[] = FROM(u32), of_i64[] = FROM(i64), of_u64[] = FROM(u64);

static const convert *cast_integers_of(berth_type from) {
  switch (from) {
    case BERTH_I8: return of_i8;
    case BERTH_U8: return of_u8;
    case BERTH_I16: return of_i16;
    case BERTH_U16: return of_u16;
    case BERTH_I32: return of_i32;
    case BERTH_U32: return of_u32;
    case BERTH_I64: return of_i64;
    case BERTH_U64: return of_u64;
    default: return NULL;
  }
}

/* The kind of integer conversion; -1: half floats. */
static int cast_kind_of(berth_type to) {
  switch (to) {
    case BERTH_BOOL: return TO_BOOL;
    case BERTH_F32: return TO_F32;
    case BERTH_F64: return TO_F64;
    case BERTH_F16:
    case BERTH_BF16: return -1;
    default: break;
  }
  switch (berth_type_size(to)) {
    case 1: return TO_1;
    case 2: return TO_2;
    case 4: return TO_4;
    default: return TO_8;
  }
}

/* ---- Floats --------------------------------------------------------------------------------------------------- */

/* Toward zero, clamped to the range; NaN becomes 0. Clamped first, so that no conversion is out of range. */
#define HELD(x, low, high) ((x) < (low) ? (low) : (x) > (high) ? (high) : (x) == (x) ? (x) : 0)
#define FLOATS(type, element, high_32, high_64, high_u32, high_u64)                                          \
  CONVERT(type##_i8, element, int8_t, HELD(x, -128, 127))                                                    \
  CONVERT(type##_u8, element, uint8_t, HELD(x, 0, 255))                                                      \
  CONVERT(type##_i16, element, int16_t, HELD(x, -32768, 32767))                                              \
  CONVERT(type##_u16, element, uint16_t, HELD(x, 0, 65535))                                                  \
  CONVERT(type##_i32, element, int32_t,                                                                      \
          x >= (element)0x1p31 ? INT32_MAX : (int32_t)HELD(x, (element)-0x1p31, high_32))                    \
  CONVERT(type##_u32, element, uint32_t, x >= (element)0x1p32 ? UINT32_MAX : (uint32_t)HELD(x, 0, high_u32)) \
  CONVERT(type##_i64, element, int64_t,                                                                      \
          x >= (element)0x1p63 ? INT64_MAX : (int64_t)HELD(x, (element)-0x1p63, high_64))                    \
  CONVERT(type##_u64, element, uint64_t, x >= (element)0x1p64 ? UINT64_MAX : (uint64_t)HELD(x, 0, high_u64)) \
  CONVERT(type##_bool, element, uint8_t, x != 0)
FLOATS(f32, float, 0x1.fffffep30f, 0x1.fffffep62f, 0x1.fffffep31f, 0x1.fffffep63f)
FLOATS(f64, double, 2147483647.0, 0x1.fffffffffffffp62, 4294967295.0, 0x1.fffffffffffffp63)
CONVERT(f32_f64, float, double, x)
CONVERT(f64_f32, double, float, x)
CONVERT(f32_f32, float, float, x)
CONVERT(f64_f64, double, double, x)
CONVERT(f32_bf16, float, uint16_t, bf16_of(x))
CONVERT(f16_f32, uint16_t, float, half_to_float(x))
CONVERT(bf16_f32, uint16_t, float, half_from_bits((uint32_t)x << 16))

static void cast_f32_f16(void *to, const void *from, int64_t step, int64_t n) {
  (void)step; /* blocks are contiguous */
  half_store_line(to, from, n);
}

/* Halves of what f32 cannot hold, rounded once: f32 with a sticky last bit comes first. Where rounding to f32 loses
 * something, the neighbour toward 0 gets an odd last bit, and f32 has more bits than halves need to round that
 * correctly. */
static inline float cast_odd_f32(double x) {
  const float nearest = (float)x;
  const double back = (double)nearest;
  uint32_t bits;
  memcpy(&bits, &nearest, sizeof bits);
  bits -= fabs(back) > fabs(x);
  bits |= (back < x) | (back > x); /* neither holds for NaN */
  return half_from_bits(bits);
}

/* An integer of more than 53 bits keeps a sticky bit among those that f64 holds. */
static inline double cast_sticky_u64(uint64_t x) {
  const uint64_t kept = (x & ~UINT64_C(0x7ff)) | (uint64_t)((x & 0x7ff) != 0) << 11;
  return (double)(x >> 53 != 0 ? kept : x);
}
static inline double cast_sticky_i64(int64_t x) {
  const double size = cast_sticky_u64(x < 0 ? 0 - (uint64_t)x : (uint64_t)x);
  return x < 0 ? -size : size;
}

CONVERT(bool_f32, uint8_t, float, x != 0)
CONVERT(f64_odd, double, float, cast_odd_f32(x))
CONVERT(i32_odd, int32_t, float, cast_odd_f32((double)x))
CONVERT(u32_odd, uint32_t, float, cast_odd_f32((double)x))
CONVERT(i64_odd, int64_t, float, cast_odd_f32(cast_sticky_i64(x)))
CONVERT(u64_odd, uint64_t, float, cast_odd_f32(cast_sticky_u64(x)))

/* The first of two conversions to halves, by way of f32. */
static convert cast_before_halves(berth_type from) {
  switch (from) {
    case BERTH_BOOL: return cast_bool_f32;
    case BERTH_I8: return cast_i8_f32;
    case BERTH_U8: return cast_u8_f32;
    case BERTH_I16: return cast_i16_f32;
    case BERTH_U16: return cast_u16_f32;
    case BERTH_I32: return cast_i32_odd;
    case BERTH_U32: return cast_u32_odd;
    case BERTH_I64: return cast_i64_odd;
    case BERTH_U64: return cast_u64_odd;
    case BERTH_F64: return cast_f64_odd;
    default: return NULL;
  }
}

#define TO_ANY(type, of)                        \
  switch (to) {                                 \
    case BERTH_I8: return cast_##type##_i8;     \
    case BERTH_U8: return cast_##type##_u8;     \
    case BERTH_I16: return cast_##type##_i16;   \
    case BERTH_U16: return cast_##type##_u16;   \
    case BERTH_I32: return cast_##type##_i32;   \
    case BERTH_U32: return cast_##type##_u32;   \
    case BERTH_I64: return cast_##type##_i64;   \
    case BERTH_U64: return cast_##type##_u64;   \
    case BERTH_BOOL: return cast_##type##_bool; \
    case BERTH_F32: return cast_##type##_f32;   \
    case BERTH_F64: return cast_##type##_f64;   \
    default: return of;                         \
  }
static convert cast_from_f32(berth_type to) { TO_ANY(f32, to == BERTH_F16 ? cast_f32_f16 : cast_f32_bf16) }
static convert cast_from_f64(berth_type to) { TO_ANY(f64, NULL) } /* for halves, see cast_before_halves */

/* ---- The call ------------------------------------------------------------------------------------------------- */

/* One conversion, or two with a block of f32 between them; both NULL: there is none. */
typedef struct way {
  convert first, second;
} way;

static way cast_way_of(const berth_op_call *call) {
  const berth_type from = call->in[0].type, to = call->out[0].type;
  const convert *integers = cast_integers_of(from == BERTH_BOOL ? BERTH_U8 : from);
  const int kind = cast_kind_of(to);
  if (from == BERTH_BOOL && kind >= 0 && kind != TO_BOOL) return (way){of_u8[TO_BOOL], of_u8[kind]};
  if (integers != NULL && kind >= 0) return (way){integers[kind], NULL};
  /* by way of f32 */
  if (kind < 0 && cast_before_halves(from) != NULL) return (way){cast_before_halves(from), cast_from_f32(to)};
  switch (from) {
    case BERTH_F64: return (way){cast_from_f64(to), NULL};
    case BERTH_F32: return to == BERTH_F16 ? (way){cast_f32_f32, cast_f32_f16} : (way){cast_from_f32(to), NULL};
    case BERTH_F16: return to == BERTH_F32 ? (way){cast_f16_f32, NULL} : (way){cast_f16_f32, cast_from_f32(to)};
    case BERTH_BF16: return to == BERTH_F32 ? (way){cast_bf16_f32, NULL} : (way){cast_bf16_f32, cast_from_f32(to)};
    default: return (way){NULL, NULL};
  }
}

typedef struct casting {
  way way;
  berth_type from, to;
} casting;

static bool cast_kernel_takes(const berth_op_call *call) {
  return call->in[0].type != call->out[0].type && cast_way_of(call).first != NULL;
}

static void cast_line(const way *w, berth_type to_type, char *to, berth_type from_type, const char *from, int64_t step,
                      int64_t n) {
  const int64_t to_size = (int64_t)berth_type_size(to_type), from_size = (int64_t)berth_type_size(from_type);
  float block[BLOCK];
  if (w->second == NULL) {
    w->first(to, from, step, n);
    return;
  }
  for (int64_t at = 0; at < n; at += BLOCK) {
    const int64_t count = n - at < BLOCK ? n - at : BLOCK;
    const char *x = from + at * step * from_size;
    if (from_type == BERTH_F16 && step == 1)
      half_load_line(block, (const uint16_t *)(const void *)x, count);
    else
      w->first(block, x, step, count);
    w->second(to + at * to_size, block, 1, count);
  }
}

static void cast_run_line(const void *state, void *out, const void *const *in, const int64_t *step, int64_t n) {
  const casting *c = state;
  if (c->from == BERTH_F16 && c->to == BERTH_F32 && step[0] == 1)
    half_load_line(out, in[0], n);
  else if (c->from == BERTH_F32 && c->to == BERTH_F16 && step[0] == 1)
    half_store_line(out, in[0], n);
  else
    cast_line(&c->way, c->to, out, c->from, in[0], step[0], n);
}

static berth_status cast_kernel_run(const berth_op_call *call, berth_error *err) {
  const casting c = {cast_way_of(call), call->in[0].type, call->out[0].type};
  (void)err;
  lines_do(call, cast_run_line, &c);
  return BERTH_OK;
}

const berth__cpu_kernel BERTH__PER_ISA(berth__kernels_cast)[] = {
    {.name = "cast", .code = BERTH__OP_cast, .takes = cast_kernel_takes, .items = lines_items, .run = cast_kernel_run},
    {0},
};
