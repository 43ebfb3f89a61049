/* Functions that languages lack, or have with fewer digits than the reference kernels need: what Vulkan and WebGPU ask
 * of a driver is little (sin: 2^-11), and drivers differ. The polynomials are least-squares fits at Chebyshev points;
 * errors are within a few units of the last place. Words with @ are the dialect's. */
#include "loop/dialect.h"

/* x = 2^e m with m about 1; log(m) = 2 atanh(s) with s = f / (2 + f), f = m - 1. */
#define LOG                                                                                 \
  "  @f scaled = @select(x, x * 33554432.0, x < 1.17549435e-38);\n"                         \
  "  @u shifted = @asu(scaled) + 4913933u;\n" /* 1 - sqrt(0.5), as bits */                  \
  "  @f e = @float(@int(shifted >> 23u) - 127) - @select(0.0, 25.0, x < 1.17549435e-38);\n" \
  "  @f f = @asf((shifted & 8388607u) + 1060439283u) - 1.0;\n"                              \
  "  @f s = f / (2.0 + f);\n"                                                               \
  "  @f z = s * s;\n"                                                                       \
  "  @f p = z * (0.666666687 + z * (0.400001258 + z * (0.285505414 + z * 0.233363599)));\n" \
  "  @f y = e * 0.693145751953125 + (f - (s * (f - p) - e * 1.42860677e-06));\n"            \
  "  @f edge = @select(@asf(2143289344u), @asf(4286578688u), x == 0.0);\n" /* NaN, -inf */  \
  "  @f most = @select(y, x, @asu(x) == 2139095040u);\n"                                    \
  "  return @select(edge, most, x > 0.0);\n"

/* Nothing overflows: 1 - 2 / (inf + 1) is 1. */
#define TANH                                                                \
  "  @f a = abs(x);\n"                                                      \
  "  @f z = x * x;\n"                                                       \
  "  @f p = -0.0538524836 + z * (0.021003589 - z * 0.00610488793);\n"       \
  "  @f near = x + x * (z * (-0.333333284 + z * (0.133327827 + z * p)));\n" \
  "  @f far = 1.0 - 2.0 / (exp(2.0 * a) + 1.0);\n"                          \
  "  return @select(@asf(@asu(far) | (@asu(x) & 2147483648u)), near, a < 0.625);\n"

/* Turned by pi / 4 or pi / 2 to where |t| < tan(pi / 8). */
#define ATAN                                                                                       \
  "  @f a = abs(x);\n"                                                                             \
  "  @f mid = @select(a, (a - 1.0) / (a + 1.0), a > 0.414213562);\n"                               \
  "  @f t = @select(mid, -1.0 / a, a > 2.41421356);\n"                                             \
  "  @f turn = @select(@select(0.0, 0.785398163, a > 0.414213562), 1.57079633, a > 2.41421356);\n" \
  "  @f z = t * t;\n"                                                                              \
  "  @f p = z * (-0.333332866 + z * (0.199913904 + z * (-0.140264943 + z * 0.0852959007)));\n"     \
  "  @f y = turn + (t + t * p);\n"                                                                 \
  "  return @asf(@asu(y) | (@asu(x) & 2147483648u));\n"

/* A sine or cosine of x less n quarters of a turn. The quarter is taken off in pieces of 8 bits, which n times is exact
 * up to |x| of about 1e5; from there on the language's own function has to do. quarter: 0 for sin, 1 for cos. */
#define WAVE(quarter, own)                                                                       \
  "  @f n = @round(x * 0.636619772);\n"                                                          \
  "  @f r1 = x - n * 1.5703125;\n"                                                               \
  "  @f r2 = r1 - n * 0.0004825592041015625;\n"                                                  \
  "  @f r3 = r2 - n * 1.2665987014770508e-06;\n"                                                 \
  "  @f r = r3 - n * 9.92093580e-10;\n"                                                          \
  "  @f z = r * r;\n"                                                                            \
  "  @f s = r + r * (z * (-0.166666642 + z * (0.00833274797 - z * 0.000195879096)));\n"          \
  "  @f c = 1.0 - z * (0.5 - z * (0.0416666642 + z * (-0.00138882711 + z * 2.45438896e-05)));\n" \
  "  @i q = @int(n) + " quarter                                                                  \
  ";\n"                                                                                          \
  "  @f y = @select(s, c, (q & 1) != 0);\n"                                                      \
  "  @f signed_y = @select(y, -y, (q & 2) != 0);\n"                                              \
  "  return @select(" own "(x), signed_y, abs(x) < 100000.0);\n"

/* To nearest even: by the bits that go; below 2^-14, where an f16 is a multiple of 2^-24, by adding a number whose last
 * place that is. */
#define TO_HALF                                                                         \
  "  @u sign = @asu(x) & 2147483648u;\n"                                                \
  "  @u a = @asu(x) & 2147483647u;\n"                                                   \
  "  @u rounded = (a + 4095u + ((a >> 13u) & 1u)) & 4294959104u;\n"                     \
  "  @f small = (@asf(a) + 0.5) - 0.5;\n"                                               \
  "  @f normal = @select(@asf(rounded), small, a < 947912704u);\n"                      \
  "  @f large = @select(@asf(2139095040u), @asf(a), a > 2139095040u);\n" /* inf, NaN */ \
  "  return @asf(@asu(@select(normal, large, a >= 1199566848u)) | sign);\n"

/* By 0 gives 0; the least number by -1 is itself again; a remainder has the sign of the dividend. Without branches: a
 * driver that runs all lanes together divides in those that do not take part, too. */
#define SAFE_I32                          \
  "  @i odd = @int(b == 0 || b == -1);\n" \
  "  @i q = a / (b * (1 - odd) + odd);\n"
#define SAFE_U32 "  @u odd = @uint(b == 0u);\n"

const berth__function berth__functions[] = {
    {"berth_log", BERTH__FN_F32, LOG},
    {"berth_tanh", BERTH__FN_F32, TANH},
    {"berth_atan", BERTH__FN_F32, ATAN},
    {"berth_sin", BERTH__FN_F32, WAVE("0", "sin")},
    {"berth_cos", BERTH__FN_F32, WAVE("1", "cos")},
    {"berth_to_half", BERTH__FN_F32, TO_HALF},
    {"berth_div_i32", BERTH__FN_I32, SAFE_I32 "  return q * (1 - odd) - a * @int(b == -1);\n"},
    {"berth_rem_i32", BERTH__FN_I32, SAFE_I32 "  return (a - q * b) * (1 - odd);\n"},
    {"berth_div_u32", BERTH__FN_U32, SAFE_U32 "  return (a / (b + odd)) * (1u - odd);\n"},
    {"berth_rem_u32", BERTH__FN_U32, SAFE_U32 "  return a % (b + odd);\n"},
};
const size_t berth__n_functions = sizeof berth__functions / sizeof berth__functions[0];
