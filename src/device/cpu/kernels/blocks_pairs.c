/* Like blocks_panel.c, for AVX2, which has no instruction that sums four products of bytes into 32 bits: it sums two
 * products of an unsigned and a signed byte in 16 bits. Numbers are made unsigned, and the shift is accounted for in
 * the offset. In most formats the numbers are so small that the sums of several pairs fit into 16 bits (a chain). In
 * the others they are widened to 16 bits, and so is x, and products of two pairs are summed in 32 bits. That is twice
 * the instructions, but fewer than splitting bytes into halves of four bits, whose sums have to be combined again.
 *
 * A tile is 4 rows of x and two vectors of numbers, 16 columns. */
#include "base/blocks_split.h"
#include "base/storage.h"
#include "device/cpu/kernels/blocks.h"
#include "device/cpu/kernels/inlined.h"

#if defined(__AVX2__) && VF_LANES == 8

#define ROWS 4
#define DEEP 256 /* elements unpacked at a time */
#define STEP 64  /* bytes of the panel per four elements: two vectors */

/* How the numbers of a format are multiplied. */
typedef struct pairs_manner {
  int group;
  int shift;    /* added to the numbers, so that none is negative */
  int chain;    /* pairs summed in 16 bits: chain * 2 * 127 * (the largest number) < 32768 */
  bool is_wide; /* numbers of 16 bits, unchanged; none of these formats has offsets */
} pairs_manner;

static pairs_manner pairs_manner_of(berth_type type) {
  pairs_manner m = {.group = (int)berth__block_group(type), .chain = 8};
  switch ((int)type) {
    case BERTH_Q4_0:
    case BERTH_Q4_0F: m.shift = 8; break;
    case BERTH_Q4_1:
    case BERTH_Q4_1F:
    case BERTH_Q4_K: break;
    case BERTH_Q5_0: m.shift = 16, m.chain = 4; break;
    case BERTH_MXFP4: m.shift = 12, m.chain = 4; break;
    case BERTH_Q5_1:
    case BERTH_Q5_K: m.chain = 4; break;
    case BERTH_Q2_K: m.chain = 4; break;
    case BERTH_Q3_K: m.shift = 4, m.chain = 4; break;
    case BERTH_Q6_K: m.shift = 32, m.chain = 2; break;
    case BERTH_IQ2_XS:
    case BERTH_IQ2_S: m.shift = 43, m.chain = 1; break;
    case BERTH_IQ3_S: m.shift = 15, m.chain = 4; break;
    default: m.is_wide = true; break;
  }
  return m;
}

/* ---- The panel: factors and offsets of 16 columns for each group, then their numbers ----
 *
 * Four elements of 8 columns are one vector, or two if numbers are wide. The vectors of columns 0 to 7 and 8 to 15 lie
 * side by side. */

typedef struct pairs_panel {
  float *factor, *offset; /* [groups][16] */
  uint8_t *numbers;
} pairs_panel;

static uint64_t pairs_numbers_bytes(const pairs_manner *m, int64_t depth) {
  return (uint64_t)depth / 4 * STEP * (m->is_wide ? 2 : 1);
}

static pairs_panel pairs_panel_in(const pairs_manner *m, int64_t depth, const void *panel) {
  float *factor = (float *)(uintptr_t)panel, *offset = factor + depth / m->group * VF_PANEL;
  return (pairs_panel){factor, offset, (uint8_t *)(offset + depth / m->group * VF_PANEL)};
}

uint64_t blocks_panel_bytes(berth_type type, int64_t depth) {
  const pairs_manner m = pairs_manner_of(type);
  if (depth > BLOCKS_SLICE) depth = BLOCKS_SLICE;
  return 2 * sizeof(float) * VF_PANEL * (uint64_t)(depth / m.group) + pairs_numbers_bytes(&m, depth);
}

/* ---- Unpacking rows, 8 at a time ---- */

typedef struct pairs_unpacking {
  berth_type type;
  pairs_manner manner;
  blocks_split split;
  int64_t depth, bytes; /* per block */
  const uint8_t *row[VF_LANES];
  float *factor, *offset; /* of these columns in the panel */
  uint8_t *numbers;       /* where the first vector goes; the next is STEP bytes further */
} pairs_unpacking;

static inline void pairs_turn(vi x[VF_LANES]) {
  vf y[VF_LANES];
  for (int i = 0; i < VF_LANES; i++) y[i] = _mm256_castsi256_ps(x[i]);
  vf_transpose(y);
  for (int i = 0; i < VF_LANES; i++) x[i] = _mm256_castps_si256(y[i]);
}

static inline void pairs_store(const pairs_unpacking *u, int64_t element, vi x) {
  _mm256_storeu_si256((vi *)(u->numbers + element / 4 * STEP), x);
}

/* Factors and offsets of `n` groups from `first` on. */
static void pairs_turn_numbers(const pairs_unpacking *u, const berth__block_parts *rows, int64_t first, int64_t n) {
  const vf shift = vf_set1((float)u->manner.shift);
  for (int64_t g = 0; g < n; g += VF_LANES) {
    vf factor[VF_LANES], offset[VF_LANES];
    for (int r = 0; r < VF_LANES; r++) {
      factor[r] = vf_load(rows[r].factor + g);
      offset[r] = vf_load(rows[r].offset + g);
    }
    vf_transpose(factor);
    vf_transpose(offset);
    for (int64_t i = 0; i < VF_LANES && g + i < n; i++) {
      vf_store(u->factor + (first + g + i) * VF_PANEL, factor[i]);
      vf_store(u->offset + (first + g + i) * VF_PANEL, vf_fnma(shift, factor[i], offset[i]));
    }
  }
}

/* Blocks of 32 with a scale and no offset: the scale of each row. */
static inline void pairs_scales(const pairs_unpacking *u, int64_t block) {
  uint16_t bits[VF_LANES];
  for (int r = 0; r < VF_LANES; r++) memcpy(&bits[r], u->row[r] + block * u->bytes, sizeof bits[r]);
  const vf factor = vf_load_f16(bits);
  vf_store(u->factor + block * VF_PANEL, factor);
  vf_store(u->offset + block * VF_PANEL, vf_set1((float)-u->manner.shift) * factor);
}

/* Four bytes of each row as pairs of 16 bits: the first two, then the other two. */
static inline void pairs_store_wide(const pairs_unpacking *u, int64_t element, vi x) {
  const vi first = _mm256_broadcastsi128_si256(_mm_setr_epi8(-1, 0, -1, 1, -1, 4, -1, 5, -1, 8, -1, 9, -1, 12, -1, 13));
  const vi second =
      _mm256_broadcastsi128_si256(_mm_setr_epi8(-1, 2, -1, 3, -1, 6, -1, 7, -1, 10, -1, 11, -1, 14, -1, 15));
  uint8_t *to = u->numbers + element / 2 * STEP;
  _mm256_storeu_si256((vi *)to, _mm256_srai_epi16(_mm256_shuffle_epi8(x, first), 8));
  _mm256_storeu_si256((vi *)(to + STEP), _mm256_srai_epi16(_mm256_shuffle_epi8(x, second), 8));
}

static void pairs_unpack_q8_0(const pairs_unpacking *u) {
  for (int64_t b = 0; b < u->depth / 32; b++) {
    vi x[VF_LANES];
    pairs_scales(u, b);
    for (int r = 0; r < VF_LANES; r++) x[r] = blocks_load(u->row[r] + b * 34 + 2);
    pairs_turn(x);
    for (int i = 0; i < VF_LANES; i++) pairs_store_wide(u, b * 32 + i * 4, x[i]);
  }
}

/* Two blocks at a time; a single last block is unpacked twice. */
static void pairs_unpack_q4_0(const pairs_unpacking *u) {
  const vi half = _mm256_set1_epi8(15);
  const int64_t n = u->depth / 32;
  for (int64_t b = 0; b < n; b += 2) {
    const int64_t other = b + 1 < n ? b + 1 : b;
    vi x[VF_LANES];
    pairs_scales(u, b);
    pairs_scales(u, other);
    for (int r = 0; r < VF_LANES; r++)
      x[r] = _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)(u->row[r] + b * 18 + 2))),
                                     _mm_loadu_si128((const __m128i *)(u->row[r] + other * 18 + 2)), 1);
    pairs_turn(x);
    for (int i = 0; i < VF_LANES; i++) {
      const int64_t at = (i < 4 ? b : other) * 32 + i % 4 * 4;
      pairs_store(u, at, _mm256_and_si256(x[i], half));
      pairs_store(u, at + 16, _mm256_and_si256(_mm256_srli_epi16(x[i], 4), half));
    }
  }
}

/* 32 bytes hold two groups each. */
static void pairs_unpack_q4_k(const pairs_unpacking *u) {
  const vi half = _mm256_set1_epi8(15);
  berth__block_parts rows[VF_LANES];
  for (int64_t b = 0; b < u->depth / 256; b++) {
    for (int r = 0; r < VF_LANES; r++) q4_k_scales(u->row[r] + b * 144, &rows[r]);
    pairs_turn_numbers(u, rows, b * 8, 8);
    for (int j = 0; j < 4; j++) {
      vi x[VF_LANES];
      for (int r = 0; r < VF_LANES; r++) x[r] = blocks_load(u->row[r] + b * 144 + 16 + 32 * j);
      pairs_turn(x);
      for (int i = 0; i < VF_LANES; i++) {
        const int64_t at = b * 256 + j * 64 + i * 4;
        pairs_store(u, at, _mm256_and_si256(x[i], half));
        pairs_store(u, at + 32, _mm256_and_si256(_mm256_srli_epi16(x[i], 4), half));
      }
    }
  }
}

static inline void pairs_load_turned(const pairs_unpacking *u, int64_t at, vi x[VF_LANES]) {
  for (int r = 0; r < VF_LANES; r++) x[r] = blocks_load(u->row[r] + at);
  pairs_turn(x);
}

static void pairs_unpack_q6_k(const pairs_unpacking *u) {
  const vi half = _mm256_set1_epi8(15), upper = _mm256_set1_epi8(48);
  berth__block_parts rows[VF_LANES];
  memset(rows, 0, sizeof rows);
  for (int64_t b = 0; b < u->depth / 256; b++) {
    for (int r = 0; r < VF_LANES; r++) {
      const uint8_t *block = u->row[r] + b * 210;
      const float scale = blocks_f16(block + 208);
      for (int g = 0; g < 16; g++) rows[r].factor[g] = scale * (float)(int8_t)block[192 + g];
    }
    pairs_turn_numbers(u, rows, b * 16, 16);
    for (int j = 0; j < 2; j++) {
      vi l0[VF_LANES], l1[VF_LANES], h[VF_LANES];
      pairs_load_turned(u, b * 210 + 64 * j, l0);
      pairs_load_turned(u, b * 210 + 64 * j + 32, l1);
      pairs_load_turned(u, b * 210 + 128 + 32 * j, h);
      for (int i = 0; i < VF_LANES; i++) {
        const int64_t at = b * 256 + j * 128 + i * 4;
        const vi a = _mm256_and_si256(_mm256_slli_epi16(h[i], 4), upper);
        const vi c = _mm256_and_si256(_mm256_slli_epi16(h[i], 2), upper);
        const vi e = _mm256_and_si256(h[i], upper), g = _mm256_and_si256(_mm256_srli_epi16(h[i], 2), upper);
        pairs_store(u, at, _mm256_or_si256(_mm256_and_si256(l0[i], half), a));
        pairs_store(u, at + 32, _mm256_or_si256(_mm256_and_si256(l1[i], half), c));
        pairs_store(u, at + 64, _mm256_or_si256(_mm256_and_si256(_mm256_srli_epi16(l0[i], 4), half), e));
        pairs_store(u, at + 96, _mm256_or_si256(_mm256_and_si256(_mm256_srli_epi16(l1[i], 4), half), g));
      }
    }
  }
}

/* ---- Any format ---- */

/* n elements of one row, at most DEEP. */
static void pairs_unpack_row(const pairs_unpacking *u, const uint8_t *w, int64_t n, berth__block_parts *to) {
  const vi shift = _mm256_set1_epi8((char)u->manner.shift);
  if (berth_type_storage(u->type).elements == DEEP) {
    u->split(w, to);
  } else {
    berth__block_parts p;
    p.offset[0] = 0;
    for (int64_t b = 0; b < n / BLOCKS_X; b++, w += u->bytes) {
      u->split(w, &p);
      memcpy(to->q + b * BLOCKS_X, p.q, BLOCKS_X);
      to->factor[b] = p.factor[0];
      to->offset[b] = p.offset[0];
    }
  }
  for (int i = 0; i < DEEP; i += 32) blocks_store(to->q + i, _mm256_add_epi8(blocks_load(to->q + i), shift));
}

static void pairs_unpack_any(const pairs_unpacking *u) {
  const int64_t per = DEEP / (int64_t)berth_type_storage(u->type).elements * u->bytes;
  berth__block_parts rows[VF_LANES];
  memset(rows, 0, sizeof rows);
  for (int64_t at = 0, n, b = 0; at < u->depth; at += n, b++) {
    n = u->depth - at < DEEP ? u->depth - at : DEEP;
    for (int r = 0; r < VF_LANES; r++) pairs_unpack_row(u, u->row[r] + b * per, n, &rows[r]);
    pairs_turn_numbers(u, rows, at / u->manner.group, n / u->manner.group);
    for (int64_t k = 0; k < n; k += 32) {
      vi x[VF_LANES];
      for (int r = 0; r < VF_LANES; r++) x[r] = blocks_load(rows[r].q + k);
      pairs_turn(x);
      for (int i = 0; i < VF_LANES; i++)
        if (u->manner.is_wide)
          pairs_store_wide(u, at + k + i * 4, x[i]);
        else
          pairs_store(u, at + k + i * 4, x[i]);
    }
  }
}

static void pairs_unpack_eight(const pairs_unpacking *u) {
  switch ((int)u->type) {
    case BERTH_Q8_0: pairs_unpack_q8_0(u); break;
    case BERTH_Q4_0: pairs_unpack_q4_0(u); break;
    case BERTH_Q4_K: pairs_unpack_q4_k(u); break;
    case BERTH_Q6_K: pairs_unpack_q6_k(u); break;
    default: pairs_unpack_any(u); break;
  }
}

/* `depth` elements of rows that are row_bytes apart. */
static void pairs_unpack(berth_type type, const uint8_t *w, int64_t row_bytes, int64_t columns, int64_t depth,
                         void *panel) {
  const berth_storage storage = berth_type_storage(type);
  pairs_unpacking u = {.type = type,
                       .manner = pairs_manner_of(type),
                       .split = blocks_split_of(type),
                       .depth = depth,
                       .bytes = storage.bytes};
  const pairs_panel to = pairs_panel_in(&u.manner, depth, panel);
  for (int64_t first = 0; first < VF_PANEL; first += VF_LANES) {
    for (int64_t r = 0; r < VF_LANES; r++) /* missing columns repeat the last one */
      u.row[r] = w + (first + r < columns ? first + r : columns - 1) * row_bytes;
    u.factor = to.factor + first;
    u.offset = to.offset + first;
    u.numbers = to.numbers + first * 4;
    pairs_unpack_eight(&u);
  }
}

/* ---- Tiles ---- */

INLINED vi pairs_four(const int8_t *x) {
  int32_t four;
  memcpy(&four, x, sizeof four);
  return vi_set1(four);
}

/* Stops compilers from reordering the sums, which makes them run out of registers. */
#define KEEP_ORDER(x) __asm__("" : "+x"(x))

/* Sums of one chain, in 16 bits: each row with both vectors. */
INLINED void pairs_chain(const int8_t *const *x, int64_t at, const uint8_t *w, const int rows, const int chain,
                         vi part[ROWS][2]) {
  UNROLL for (int i = 0; i < chain; i++) {
    const vi first = vi_load(w + (at / 4 + i) * STEP), second = vi_load(w + (at / 4 + i) * STEP + 32);
    UNROLL for (int r = 0; r < rows; r++) {
      const vi four = pairs_four(x[r] + at + i * 4);
      const vi a = _mm256_maddubs_epi16(first, four), b = _mm256_maddubs_epi16(second, four);
      part[r][0] = i == 0 ? a : _mm256_add_epi16(part[r][0], a);
      part[r][1] = i == 0 ? b : _mm256_add_epi16(part[r][1], b);
      KEEP_ORDER(part[r][0]);
      KEEP_ORDER(part[r][1]);
    }
  }
}

/* Sums of one group. */
INLINED void pairs_group(const int8_t *const *x, int64_t at, const uint8_t *w, const int rows, const int group,
                         const int chain, vi count[ROWS][2]) {
  const vi ones = _mm256_set1_epi16(1);
  UNROLL for (int c = 0; c < group / 4; c += chain) {
    vi part[ROWS][2];
    pairs_chain(x, at + c * 4, w, rows, chain, part);
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < 2; v++) {
      const vi sum = _mm256_madd_epi16(part[r][v], ones);
      count[r][v] = c == 0 ? sum : vi_add(count[r][v], sum);
    }
  }
}

/* The same with numbers of 16 bits. */
INLINED void pairs_group_wide(const int8_t *const *x, int64_t at, const uint8_t *w, const int rows, vi count[ROWS][2]) {
  UNROLL for (int i = 0; i < BLOCKS_X / 2; i++) {
    const vi first = vi_load(w + (at / 2 + i) * STEP), second = vi_load(w + (at / 2 + i) * STEP + 32);
    UNROLL for (int r = 0; r < rows; r++) {
      const vi two = pairs_four(x[r] + 2 * at + i * 4);
      vi a = _mm256_madd_epi16(first, two), b = _mm256_madd_epi16(second, two);
      KEEP_ORDER(a);
      KEEP_ORDER(b);
      count[r][0] = i == 0 ? a : vi_add(count[r][0], a);
      count[r][1] = i == 0 ? b : vi_add(count[r][1], b);
      KEEP_ORDER(count[r][0]);
      KEEP_ORDER(count[r][1]);
    }
  }
}

typedef struct pairs_tile {
  const float *factor, *offset;
  const uint8_t *numbers;
  const blocks_x *x;
  int64_t row, first, depth; /* the first row; elements [first, first + depth) of it */
  float *out;
} pairs_tile;

INLINED void pairs_run(const pairs_tile *t, const int rows, const int group, const int chain, const bool is_wide) {
  const int8_t *x[ROWS];
  const float *scale[ROWS], *sum[ROWS];
  vf total[ROWS][2];
  UNROLL for (int r = 0; r < rows; r++) {
    const blocks_row_x from = blocks_row_of(t->x, t->row + r);
    x[r] = from.q + (is_wide ? 2 : 1) * t->first;
    scale[r] = from.scale + t->first / BLOCKS_X;
    sum[r] = (group == BLOCKS_X ? from.sums : from.sum) + t->first / group;
    UNROLL for (int v = 0; v < 2; v++) total[r][v] =
        t->first != 0 ? vf_load(t->out + r * VF_PANEL + v * VF_LANES) : vf_zero();
  }
  for (int64_t at = 0, g = 0; at < t->depth; at += group, g++) {
    vi count[ROWS][2];
    if (is_wide)
      pairs_group_wide(x, at, t->numbers, rows, count);
    else
      pairs_group(x, at, t->numbers, rows, group, chain, count);
    UNROLL for (int v = 0; v < 2; v++) {
      const vf factor = vf_load(t->factor + g * VF_PANEL + v * VF_LANES);
      const vf offset = vf_load(t->offset + g * VF_PANEL + v * VF_LANES);
      UNROLL for (int r = 0; r < rows; r++) {
        total[r][v] = vf_fma(vf_from_int(count[r][v]), factor * vf_set1(scale[r][at / BLOCKS_X]), total[r][v]);
        if (!is_wide) total[r][v] = vf_fma(offset, vf_set1(sum[r][g]), total[r][v]);
      }
    }
  }
  UNROLL for (int r = 0; r < rows; r++) {
    UNROLL for (int v = 0; v < 2; v++) vf_store(t->out + r * VF_PANEL + v * VF_LANES, total[r][v]);
  }
}

typedef void (*pairs_fn)(const pairs_tile *t);
#define TILES(name, group, chain, is_wide)                                                    \
  static void name##_many(const pairs_tile *t) { pairs_run(t, ROWS, group, chain, is_wide); } \
  static void name##_one(const pairs_tile *t) { pairs_run(t, 1, group, chain, is_wide); }     \
  static const pairs_fn name[] = {name##_one, name##_many};
TILES(wide, 32, 0, true)
TILES(chain_8, 32, 8, false)
TILES(chain_4, 32, 4, false)
TILES(small_4, 16, 4, false)
TILES(small_2, 16, 2, false)
TILES(small_1, 16, 1, false)

static const pairs_fn *pairs_tiles_of(const pairs_manner *m) {
  if (m->is_wide) return wide;
  if (m->group == 16) return m->chain == 4 ? small_4 : m->chain == 2 ? small_2 : small_1;
  return m->chain == 8 ? chain_8 : chain_4;
}

/* Elements [at, at + depth) of n rows of x, added to the sums of earlier elements in `out`. */
static void pairs_multiply(const pairs_manner *m, const void *panel, const blocks_x *x, int64_t n, int64_t at,
                           int64_t depth, blocks_ahead *ahead, float *out) {
  const pairs_panel from = pairs_panel_in(m, depth, panel);
  const pairs_fn *run = pairs_tiles_of(m);
  for (int64_t r = 0, step; r < n; r += step) {
    const pairs_tile t = {.factor = from.factor,
                          .offset = from.offset,
                          .numbers = from.numbers,
                          .x = x,
                          .row = r,
                          .first = at,
                          .depth = depth,
                          .out = out + r * VF_PANEL};
    step = n - r >= ROWS ? ROWS : 1;
    blocks_ask(ahead);
    run[step == ROWS](&t);
  }
}

/* Numbers of 16 bits need x in 16 bits. */
int64_t blocks_copies_many(berth_type type) { return pairs_manner_of(type).is_wide ? 2 : 1; }

/* Backwards, so that nothing is overwritten before it is read. */
bool blocks_starts_many(berth_type type) { return (void)type, false; }

void blocks_arrange_many(berth_type type, const blocks_x *x, int64_t row) {
  int8_t *q = x->q + row * x->depth * x->copies;
  if (!pairs_manner_of(type).is_wide) return;
  for (int64_t i = x->depth - 16; i >= 0; i -= 16)
    blocks_store(q + 2 * i, _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(q + i))));
}

void blocks_product(berth_type type, const uint8_t *w, int64_t columns, const blocks_x *x, int64_t n, void *panel,
                    float *out) {
  const pairs_manner m = pairs_manner_of(type);
  const berth_storage storage = berth_type_storage(type);
  const int64_t row_bytes = (int64_t)berth__storage_size(storage, (uint64_t)x->depth);
  const int64_t tiles = n / ROWS + n % ROWS;
  for (int64_t at = 0, depth; at < x->depth; at += depth) {
    depth = x->depth - at < BLOCKS_SLICE ? x->depth - at : BLOCKS_SLICE;
    blocks_ahead ahead = blocks_look_ahead(w, columns, row_bytes, x->depth, at, tiles);
    pairs_unpack(type, w + at / storage.elements * storage.bytes, row_bytes, columns, depth, panel);
    pairs_multiply(&m, panel, x, n, at, depth, &ahead, out);
  }
}

#endif
