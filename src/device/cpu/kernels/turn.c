#include "device/cpu/kernels/turn.h"

static int64_t turn_least(int64_t a, int64_t b) { return a < b ? a : b; }

/* ---- Four bytes ---- */

static void turn_floats(float *to, int64_t to_stride, const float *from, int64_t from_stride, int64_t width,
                        int64_t length) {
  vf x[VF_LANES];
  for (int64_t i = 0; i < VF_LANES; i++) x[i] = i < length ? vf_load_n(from + i * from_stride, width) : vf_zero();
  vf_transpose(x);
  for (int64_t i = 0; i < width; i++) vf_store_n(to + i * to_stride, x[i], length);
}

static inline void turn_whole(float *to, int64_t to_stride, const float *from, int64_t from_stride) {
  vf x[VF_LANES];
  for (int i = 0; i < VF_LANES; i++) x[i] = vf_load(from + i * from_stride);
  vf_transpose(x);
  for (int i = 0; i < VF_LANES; i++) vf_store(to + i * to_stride, x[i]);
}

/* ---- One, two and eight bytes ---- */

#ifdef __SSE2__
#include <emmintrin.h>

/* Squares of 16 bytes or of 8 pairs of bytes: each round interleaves two lines that are half a square apart, and after
 * four or three rounds lines are columns. */
#define BYTES_SQUARE 16
#define PAIRS_SQUARE 8
#define DOUBLES_SQUARE 8 /* a cache line, in pairs */
#define ROUND(to, from, n, unit)                                              \
  for (int i = 0; i < (n) / 2; i++) {                                         \
    (to)[2 * i] = _mm_unpacklo_epi##unit((from)[i], (from)[i + (n) / 2]);     \
    (to)[2 * i + 1] = _mm_unpackhi_epi##unit((from)[i], (from)[i + (n) / 2]); \
  }

static void turn_bytes(uint8_t *to, int64_t to_stride, const uint8_t *from, int64_t from_stride) {
  __m128i x[16], y[16];
  for (int i = 0; i < 16; i++) x[i] = _mm_loadu_si128((const __m128i *)(const void *)(from + i * from_stride));
  ROUND(y, x, 16, 8)
  ROUND(x, y, 16, 8)
  ROUND(y, x, 16, 8)
  ROUND(x, y, 16, 8)
  for (int i = 0; i < 16; i++) _mm_storeu_si128((__m128i *)(void *)(to + i * to_stride), x[i]);
}

static void turn_pairs(uint16_t *to, int64_t to_stride, const uint16_t *from, int64_t from_stride) {
  __m128i x[8], y[8];
  for (int i = 0; i < 8; i++) x[i] = _mm_loadu_si128((const __m128i *)(const void *)(from + i * from_stride));
  ROUND(y, x, 8, 16)
  ROUND(x, y, 8, 16)
  ROUND(y, x, 8, 16)
  for (int i = 0; i < 8; i++) _mm_storeu_si128((__m128i *)(void *)(to + i * to_stride), y[i]);
}

static void turn_doubles(uint64_t *to, int64_t to_stride, const uint64_t *from, int64_t from_stride) {
  for (int k = 0; k < 8; k += 2)
    for (int i = 0; i < 8; i += 2) {
      const __m128i a = _mm_loadu_si128((const __m128i *)(const void *)(from + k * from_stride + i));
      const __m128i b = _mm_loadu_si128((const __m128i *)(const void *)(from + (k + 1) * from_stride + i));
      _mm_storeu_si128((__m128i *)(void *)(to + i * to_stride + k), _mm_unpacklo_epi64(a, b));
      _mm_storeu_si128((__m128i *)(void *)(to + (i + 1) * to_stride + k), _mm_unpackhi_epi64(a, b));
    }
}
#else
/* Words of 64 bits hold eight bytes or four 16-bit numbers: their squares are transposed by swapping ever smaller parts
 * of pairs of words. */
#define BYTES_SQUARE 8
#define PAIRS_SQUARE 4
#define DOUBLES_SQUARE 8
static inline void swap_parts(uint64_t *a, uint64_t *b, int bits, uint64_t mask) {
  const uint64_t differs = (*a >> bits ^ *b) & mask;
  *a ^= differs << bits;
  *b ^= differs;
}

static void turn_bytes(uint8_t *to, int64_t to_stride, const uint8_t *from, int64_t from_stride) {
  uint64_t x[8];
  for (int i = 0; i < 8; i++) memcpy(&x[i], from + i * from_stride, 8);
  for (int i = 0; i < 4; i++) swap_parts(&x[i], &x[i + 4], 32, 0x00000000ffffffff);
  for (int i = 0; i < 4; i++) swap_parts(&x[i + i / 2 * 2], &x[i + i / 2 * 2 + 2], 16, 0x0000ffff0000ffff);
  for (int i = 0; i < 8; i += 2) swap_parts(&x[i], &x[i + 1], 8, 0x00ff00ff00ff00ff);
  for (int i = 0; i < 8; i++) memcpy(to + i * to_stride, &x[i], 8);
}

static void turn_pairs(uint16_t *to, int64_t to_stride, const uint16_t *from, int64_t from_stride) {
  uint64_t x[4];
  for (int i = 0; i < 4; i++) memcpy(&x[i], from + i * from_stride, 8);
  for (int i = 0; i < 2; i++) swap_parts(&x[i], &x[i + 2], 32, 0x00000000ffffffff);
  for (int i = 0; i < 4; i += 2) swap_parts(&x[i], &x[i + 1], 16, 0x0000ffff0000ffff);
  for (int i = 0; i < 4; i++) memcpy(to + i * to_stride, &x[i], 8);
}

static void turn_doubles(uint64_t *to, int64_t to_stride, const uint64_t *from, int64_t from_stride) {
  for (int i = 0; i < 8; i++)
    for (int k = 0; k < 8; k++) to[i * to_stride + k] = from[k * from_stride + i];
}
#endif

/* ---- Tiles ---- */

#define TURN(c_type)                                                                     \
  do {                                                                                   \
    for (int64_t i = 0; i < width; i++)                                                  \
      for (int64_t k = 0; k < length; k++)                                               \
        ((c_type *)to)[i * to_stride + k] = ((const c_type *)from)[k * from_stride + i]; \
  } while (0)

static int64_t square_of(size_t element) {
  return element == 1 ? BYTES_SQUARE : element == 2 ? PAIRS_SQUARE : element == 4 ? VF_LANES : DOUBLES_SQUARE;
}

static void turn_tile(void *to, int64_t to_stride, const void *from, int64_t from_stride, int64_t width, int64_t length,
                      size_t element) {
  const int64_t square = square_of(element);
  const bool is_whole = width == square && length == square;
  switch (element) {
    case 1:
      if (is_whole)
        turn_bytes(to, to_stride, from, from_stride);
      else
        TURN(uint8_t);
      break;
    case 2:
      if (is_whole)
        turn_pairs(to, to_stride, from, from_stride);
      else
        TURN(uint16_t);
      break;
    case 4:
      if (is_whole)
        turn_whole(to, to_stride, from, from_stride);
      else
        turn_floats(to, to_stride, from, from_stride, width, length);
      break;
    default:
      if (is_whole)
        turn_doubles(to, to_stride, from, from_stride);
      else
        TURN(uint64_t);
      break;
  }
}

/* Few lines side by side, as the channels of a picture: compilers turn these loops into loads, shuffles and stores. */
#define BESIDE(n)                     \
  for (int64_t i = 0; i < width; i++) \
    for (int64_t k = 0; k < (n); k++) to[i * (n) + k] = from[k * from_stride + i];
static void turn_beside(float *restrict to, const float *restrict from, int64_t from_stride, int64_t width,
                        int64_t length) {
  if (length == 2)
    BESIDE(2)
  else if (length == 3)
    BESIDE(3)
  else
    BESIDE(4)
}

void turn_block(void *to, int64_t to_stride, const void *from, int64_t from_stride, int64_t width, int64_t length,
                size_t element) {
  const int64_t size = (int64_t)element, square = square_of(element);
  if (element == sizeof(float) && to_stride == length && length >= 2 && length <= 4) {
    turn_beside(to, from, from_stride, width, length);
    return;
  }
  for (int64_t w = 0; w < width; w += square)
    for (int64_t k = 0; k < length; k += square)
      turn_tile((char *)to + (w * to_stride + k) * size, to_stride, (const char *)from + (w + k * from_stride) * size,
                from_stride, turn_least(width - w, square), turn_least(length - k, square), element);
}

/* ---- Lines ---- */

/* Compilers turn loops with a constant step into vector loads and shuffles. */
#define TAKE(c_type)                                      \
  {                                                       \
    const c_type *restrict p = from;                      \
    c_type *restrict o = to;                              \
    if (step == 2)                                        \
      for (int64_t i = 0; i < n; i++) o[i] = p[i * 2];    \
    else if (step == 3)                                   \
      for (int64_t i = 0; i < n; i++) o[i] = p[i * 3];    \
    else if (step == 4)                                   \
      for (int64_t i = 0; i < n; i++) o[i] = p[i * 4];    \
    else if (step == -1)                                  \
      for (int64_t i = 0; i < n; i++) o[i] = p[-i];       \
    else                                                  \
      for (int64_t i = 0; i < n; i++) o[i] = p[i * step]; \
    break;                                                \
  }
void turn_together(void *to, const void *from, int64_t step, int64_t n, size_t element) {
  switch (element) {
    case 1: TAKE(uint8_t)
    case 2: TAKE(uint16_t)
    case 4: TAKE(uint32_t)
    default: TAKE(uint64_t)
  }
}
