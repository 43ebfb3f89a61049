/* Instructions that languages leave undefined: division by 0, and the rounding direction to f16. Words with @ come from
 * the dialect. */
#include "kernel/dialect.h"

/* To nearest even: by the bits that are dropped; below 2^-14, where an f16 is a multiple of 2^-24, by adding a number
 * whose last bit has that weight. */
#define TO_HALF                                                                         \
  "  @u sign = @asu(x) & 2147483648u;\n"                                                \
  "  @u a = @asu(x) & 2147483647u;\n"                                                   \
  "  @u rounded = (a + 4095u + ((a >> 13u) & 1u)) & 4294959104u;\n"                     \
  "  @f small = (@asf(a) + @asf(1056964608u)) - @asf(1056964608u);\n" /* 0.5 */         \
  "  @f normal = @select(@asf(rounded), small, a < 947912704u);\n"                      \
  "  @f large = @select(@asf(2139095040u), @asf(a), a > 2139095040u);\n" /* inf, NaN */ \
  "  return @asf(@asu(@select(normal, large, a >= 1199566848u)) | sign);\n"

/* The bits of the nearest f16: by the bits that are dropped; below 2^-14 in multiples of 2^-24, the weight of its last
 * bit there. There is no float sum in it that a language might rearrange. */
#define PACK_HALF                                                                   \
  "  @u sign = (@asu(x) >> 16u) & 32768u;\n"                                        \
  "  @u a = @asu(x) & 2147483647u;\n"                                               \
  "  @u normal = ((a + 4095u + ((a >> 13u) & 1u)) >> 13u) - 114688u;\n"             \
  "  @u small = @tou(@round(@asf(min(a, 947912704u)) * 16777216.0));\n"             \
  "  @u finite = @select(normal, small, a < 947912704u);\n"                         \
  "  @u large = @select(31744u, 32256u | ((a >> 13u) & 1023u), a > 2139095040u);\n" \
  "  return @select(finite, large, a >= 1199566848u) | sign;\n"

/* The bits of the nearest bf16; NaN stays NaN. */
#define PACK_BF16                                                \
  "  @u bits = @asu(x);\n"                                       \
  "  @u near = (bits + 32767u + ((bits >> 16u) & 1u)) >> 16u;\n" \
  "  return @select(near, (bits >> 16u) | 64u, (bits & 2147483647u) > 2139095040u);\n"

/* x / y may be wrong by 2.5 units in the last place. With mantissas of 24 bits, e the exponent of the result and
 * `first` the smallest number with it, the quotient is a mantissa times y's plus a remainder. The remainder of the
 * mantissa that the device found fits in 32 bits whatever the device's error was, and tells by how many units to
 * correct it. There are never ties. If x, y or the quotient is 0, infinite, NaN or very small, or y very large, x / y
 * is kept. */
#define QUOTIENT                                                                                         \
  "  @f q = x / y;\n"                                                                                    \
  "  @u a = @asu(x) & 2147483647u;\n"                                                                    \
  "  @u b = @asu(y) & 2147483647u;\n"                                                                    \
  "  @u ma = (a & 8388607u) | 8388608u;\n"                                                               \
  "  @u mb = (b & 8388607u) | 8388608u;\n"                                                               \
  "  @u less = @select(0u, 1u, ma < mb);\n"                                                              \
  "  @u e = ((a >> 23u) + 127u) - ((b >> 23u) + less);\n"                                                \
  "  @u first = e << 23u;\n"                                                                             \
  "  @u about = min(max(@asu(q) & 2147483647u, first), first + 8388607u);\n"                             \
  "  @u rest = (ma << (23u + less)) - ((about - first) + 8388608u) * mb;\n"                              \
  "  @u twice = rest + rest + 268435456u;\n" /* 2^28 is 0 */                                             \
  "  @u up = @select(0u, 1u, twice > 268435456u + mb) + @select(0u, 1u, twice > 268435456u + 3u * mb)"   \
  " + @select(0u, 1u, twice > 268435456u + 5u * mb);\n"                                                  \
  "  @u down = @select(0u, 1u, twice < 268435456u - mb) + @select(0u, 1u, twice < 268435456u - 3u * mb)" \
  " + @select(0u, 1u, twice < 268435456u - 5u * mb);\n"                                                  \
  "  @u bits = (about + up - down) | ((@asu(x) ^ @asu(y)) & 2147483648u);\n"                             \
  "  return @select(q, @asf(bits), a - 8388608u < 2130706432u && b - 8388608u < 2113929216u && e - 1u < 254u);\n"

/* Division by 0 gives 0; the smallest number divided by -1 is itself; a remainder has the sign of the dividend. Without
 * branches: a driver that runs all lanes together also divides in inactive ones. */
#define SAFE_I32                                   \
  "  @i odd = @select(0, 1, b == 0 || b == -1);\n" \
  "  @i q = a / (b * (1 - odd) + odd);\n"
#define SAFE_U32 "  @u odd = @select(0u, 1u, b == 0u);\n"

#define DOT4_FACTOR(x, by) "(((" #x " >> " #by "u) & 255u) ^ 128u) - 128u"
#define DOT4_PRODUCT(by) "(" DOT4_FACTOR(a, by) ") * (" DOT4_FACTOR(b, by) ")"
#define DOT4 "  return c + " DOT4_PRODUCT(0) " + " DOT4_PRODUCT(8) " + " DOT4_PRODUCT(16) " + " DOT4_PRODUCT(24) ";\n"

const berth__function berth__functions[] = {
    {"berth_to_half", BERTH__FN_F32, TO_HALF},
    {"berth_pack_half", BERTH__FN_PACK, PACK_HALF},
    {"berth_pack_bf16", BERTH__FN_PACK, PACK_BF16},
    {"berth_quotient", BERTH__FN_F32_F32, QUOTIENT},
    {"berth_div_i32", BERTH__FN_I32, SAFE_I32 "  return q * (1 - odd) - a * @select(0, 1, b == -1);\n"},
    {"berth_rem_i32", BERTH__FN_I32, SAFE_I32 "  return (a - q * b) * (1 - odd);\n"},
    {"berth_div_u32", BERTH__FN_U32, SAFE_U32 "  return (a / (b + odd)) * (1u - odd);\n"},
    {"berth_rem_u32", BERTH__FN_U32, SAFE_U32 "  return a % (b + odd);\n"},
    {"berth_dot4", BERTH__FN_U32_U32_U32, DOT4},
};
const size_t berth__n_functions = sizeof berth__functions / sizeof berth__functions[0];
