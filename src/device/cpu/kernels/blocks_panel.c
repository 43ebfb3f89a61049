/* VF_PANEL rows of a weight in blocks times many rows of x. The rows are unpacked once, into bytes: a lane of a vector
 * holds four neighbouring elements of one row. Tiles of x then go over them.
 *
 * One instruction sums four products of an unsigned and a signed byte (vi_dot), and reads the signed ones, of x,
 * directly from memory. Numbers of formats with an offset are not negative. The others get 128 added, and each group's
 * sum starts with the correction, which depends on x only. AVX2 has no such instruction: see blocks_pairs.c. */
#include "base/blocks_split.h"
#include "base/storage.h"
#include "device/cpu/kernels/blocks.h"
#include "device/cpu/kernels/inlined.h"

#if !defined(__AVX2__) || VF_LANES != 8

#if defined(__AVX512BW__) && VF_LANES == 16
#include "device/cpu/kernels/blocks_unpack_avx512.h"
#endif

#define ROWS 4
#define DEEP 256 /* elements unpacked at a time */

/* ---- The panel: two halves of VF_LANES columns, one after the other ---- */

typedef struct blocks_half {
  float *factor, *offset; /* [groups][VF_LANES] */
  uint8_t *bytes;         /* [depth / 4][VF_LANES][4] */
} blocks_half;

static int64_t blocks_half_bytes(int64_t group, int64_t depth) {
  return depth / group * VF_LANES * (int64_t)(2 * sizeof(float)) + depth * VF_LANES;
}

static blocks_half blocks_half_of(int64_t group, int64_t depth, const void *panel, int half) {
  const int64_t n = depth / group * VF_LANES;
  float *numbers = (float *)((uintptr_t)panel + (uintptr_t)(half * blocks_half_bytes(group, depth)));
  return (blocks_half){numbers, numbers + n, (uint8_t *)(numbers + 2 * n)};
}

uint64_t blocks_panel_bytes(berth_type type, int64_t depth) {
  if (depth > BLOCKS_SLICE) depth = BLOCKS_SLICE;
  return 2 * (uint64_t)blocks_half_bytes(berth__block_group(type), depth);
}

/* `n` elements of VF_LANES rows: interleaved in groups of four, xor `flip`. */
static void blocks_interleave(const berth__block_parts *rows, int64_t n, uint32_t flip, uint8_t *to) {
  int64_t k = 0;
  for (; k + 4 * VF_LANES <= n; k += 4 * VF_LANES) {
    vf x[VF_LANES];
    for (int r = 0; r < VF_LANES; r++) memcpy(&x[r], rows[r].q + k, sizeof x[r]);
    vf_transpose(x);
    for (int r = 0; r < VF_LANES; r++) {
      vi four;
      memcpy(&four, &x[r], sizeof four);
      four = vi_xor(four, vi_set1((int32_t)flip));
      memcpy(to + (k + 4 * r) * VF_LANES, &four, sizeof four);
    }
  }
  for (; k < n; k += 4)
    for (int r = 0; r < VF_LANES; r++) {
      uint32_t four;
      memcpy(&four, rows[r].q + k, sizeof four);
      four ^= flip;
      memcpy(to + k * VF_LANES + r * 4, &four, sizeof four);
    }
}

typedef struct blocks_unpacking {
  berth_type type;
  berth_storage storage;
  int64_t group;
  uint32_t flip;
  blocks_split split;
  int64_t row_bytes;
  blocks_half to;
} blocks_unpacking;

/* Factors and offsets of `n` groups from `first` on. */
static void blocks_turn_numbers(const blocks_unpacking *u, const berth__block_parts *rows, int64_t first, int64_t n) {
  for (int64_t g = 0; g < n; g += VF_LANES) {
    vf factor[VF_LANES], offset[VF_LANES];
    for (int r = 0; r < VF_LANES; r++) {
      factor[r] = vf_load(rows[r].factor + g);
      offset[r] = vf_load(rows[r].offset + g);
    }
    vf_transpose(factor);
    vf_transpose(offset);
    for (int64_t i = 0; i < VF_LANES && g + i < n; i++) {
      vf_store(u->to.factor + (first + g + i) * VF_LANES, factor[i]);
      vf_store(u->to.offset + (first + g + i) * VF_LANES, offset[i]);
    }
  }
}

/* n elements of one row, at most DEEP. */
static void blocks_unpack_row(const blocks_unpacking *u, const uint8_t *w, int64_t n, berth__block_parts *to) {
  if (u->storage.elements == DEEP) {
    u->split(w, to);
  } else {
    berth__block_parts p;
    p.offset[0] = 0;
    for (int64_t b = 0; b < n / BLOCKS_X; b++, w += u->storage.bytes) {
      u->split(w, &p);
      memcpy(to->q + b * BLOCKS_X, p.q, BLOCKS_X);
      to->factor[b] = p.factor[0];
      to->offset[b] = p.offset[0];
    }
  }
}

#if defined(__AVX512BW__) && VF_LANES == 16
static bool blocks_unpack_directly(const blocks_unpacking *u, const uint8_t *w, int64_t columns, int64_t depth) {
  unpack_rows of = {.factor = u->to.factor, .offset = u->to.offset, .bytes = u->to.bytes};
  for (int r = 0; r < VF_LANES; r++) of.row[r] = w + (r < columns ? r : columns - 1) * u->row_bytes;
  return unpack_sixteen(u->type, &of, depth);
}
#else
static bool blocks_unpack_directly(const blocks_unpacking *u, const uint8_t *w, int64_t columns, int64_t depth) {
  return (void)u, (void)w, (void)columns, (void)depth, false;
}
#endif

static void blocks_unpack_half(const blocks_unpacking *u, const uint8_t *w, int64_t columns, int64_t depth) {
  berth__block_parts rows[VF_LANES];
  if (blocks_unpack_directly(u, w, columns, depth)) return;
  memset(rows, 0, sizeof rows);
  for (int64_t at = 0, n; at < depth; at += n, w += DEEP / u->storage.elements * u->storage.bytes) {
    n = depth - at < DEEP ? depth - at : DEEP;
    for (int r = 0; r < VF_LANES; r++) /* missing columns repeat the last one */
      blocks_unpack_row(u, w + (r < columns ? r : columns - 1) * u->row_bytes, n, &rows[r]);
    blocks_interleave(rows, n, u->flip, u->to.bytes + at * VF_LANES);
    blocks_turn_numbers(u, rows, at / u->group, n / u->group);
  }
}

/* `depth` elements of rows that are row_bytes apart. */
static void blocks_unpack(berth_type type, const uint8_t *w, int64_t row_bytes, int64_t columns, int64_t depth,
                          void *panel) {
  blocks_unpacking u = {.type = type,
                        .storage = berth_type_storage(type),
                        .group = berth__block_group(type),
                        .flip = berth__block_has_offset(type) ? 0 : 0x80808080u,
                        .split = blocks_split_of(type),
                        .row_bytes = row_bytes};
  for (int half = 0; half < 2 && half * VF_LANES < columns; half++) {
    u.to = blocks_half_of(u.group, depth, panel, half);
    blocks_unpack_half(&u, w + half * VF_LANES * u.row_bytes, columns - half * VF_LANES, depth);
  }
}

/* ---- Tiles: ROWS rows of x, and one or both halves of the panel ---- */

INLINED vi blocks_four(const void *x) {
  int32_t four;
  memcpy(&four, x, sizeof four);
  return vi_set1(four);
}

typedef struct blocks_tile {
  const void *panel;
  const blocks_x *x;
  int64_t row, first, depth; /* the first row; elements [first, first + depth) of it */
  float *out;
} blocks_tile;

INLINED void blocks_group_of(const int8_t *const *x, int64_t at, const blocks_half *half, const int rows,
                             const int halves, const int group, vi count[ROWS][2]) {
  UNROLL for (int c = 0; c < group / 4; c++) {
    vi w[2];
    UNROLL for (int h = 0; h < halves; h++) w[h] = vi_load(half[h].bytes + (at + c * 4) * VF_LANES);
    UNROLL for (int r = 0; r < rows; r++) {
      const vi four = blocks_four(x[r] + at + c * 4);
      UNROLL for (int h = 0; h < halves; h++) count[r][h] = vi_dot(count[r][h], w[h], four);
    }
  }
}

typedef struct blocks_running {
  blocks_half half[2];
  const int8_t *x[ROWS];
  const float *scale[ROWS], *sum[ROWS];
  vf part[ROWS][2], total[ROWS][2];
} blocks_running;

/* Group g. If two groups share a scale of x and have no offset, `part` keeps the sum of the first, and both are scaled
 * together. */
INLINED void blocks_add_group(blocks_running *k, int64_t g, const int rows, const int halves, const int group,
                              const bool is_offset, const bool is_first) {
  const bool is_joined = group != BLOCKS_X && !is_offset;
  const int64_t at = g * group;
  vi count[ROWS][2];
  UNROLL for (int r = 0; r < rows; r++) UNROLL for (int h = 0; h < halves; h++) count[r][h] =
      is_offset ? vi_set1(0) : blocks_four(k->sum[r] + g);
  blocks_group_of(k->x, at, k->half, rows, halves, group, count);
  UNROLL for (int h = 0; h < halves; h++) {
    const vf factor = vf_load(k->half[h].factor + g * VF_LANES), offset = vf_load(k->half[h].offset + g * VF_LANES);
    UNROLL for (int r = 0; r < rows; r++) {
      const vf number = vf_from_int(count[r][h]), by = vf_set1(k->scale[r][at / BLOCKS_X]);
      vf *total = &k->total[r][h], *part = &k->part[r][h];
      if (!is_joined) *total = vf_fma(number, factor * by, *total);
      if (is_joined && is_first) *part = number * factor;
      if (is_joined && !is_first) *total = vf_fma(vf_fma(number, factor, *part), by, *total);
      if (is_offset) *total = vf_fma(offset, vf_set1(k->sum[r][g]), *total);
    }
  }
}

INLINED void blocks_run(const blocks_tile *t, const int rows, const int halves, const int group, const bool is_offset) {
  blocks_running k;
  k.half[0] = blocks_half_of(group, t->depth, t->panel, 0);
  k.half[1] = blocks_half_of(group, t->depth, t->panel, 1);
  UNROLL for (int r = 0; r < rows; r++) {
    const blocks_row_x from = blocks_row_of(t->x, t->row + r);
    k.x[r] = from.q + t->first;
    k.scale[r] = from.scale + t->first / BLOCKS_X;
    k.sum[r] = (group == BLOCKS_X ? from.sums : from.sum) + t->first / group;
    UNROLL for (int h = 0; h < halves; h++) k.total[r][h] =
        t->first != 0 ? vf_load(t->out + r * VF_PANEL + h * VF_LANES) : vf_zero();
  }
  for (int64_t g = 0; g < t->depth / group; g += BLOCKS_X / group) {
    blocks_add_group(&k, g, rows, halves, group, is_offset, true);
    if (group != BLOCKS_X) blocks_add_group(&k, g + 1, rows, halves, group, is_offset, false);
  }
  UNROLL for (int r = 0; r < rows; r++) {
    UNROLL for (int h = 0; h < halves; h++) vf_store(t->out + r * VF_PANEL + h * VF_LANES, k.total[r][h]);
  }
}

typedef void (*blocks_fn)(const blocks_tile *t);
#define TILES(name, group, is_offset)                                                              \
  static void name##_one(const blocks_tile *t) { blocks_run(t, 1, 1, group, is_offset); }          \
  static void name##_one_wide(const blocks_tile *t) { blocks_run(t, 1, 2, group, is_offset); }     \
  static void name##_many(const blocks_tile *t) { blocks_run(t, ROWS, 1, group, is_offset); }      \
  static void name##_many_wide(const blocks_tile *t) { blocks_run(t, ROWS, 2, group, is_offset); } \
  static const blocks_fn name[2][2] = {{name##_one, name##_one_wide}, {name##_many, name##_many_wide}};
TILES(groups_32, 32, false)
TILES(groups_32_offset, 32, true)
TILES(groups_16, 16, false)
TILES(groups_16_offset, 16, true)

/* Elements [at, at + depth) of n rows of x, added to the sums of earlier elements in `out`. */
static void blocks_multiply(berth_type type, const void *panel, int64_t columns, const blocks_x *x, int64_t n,
                            int64_t at, int64_t depth, blocks_ahead *ahead, float *out) {
  const bool is_offset = berth__block_has_offset(type), is_wide = columns > VF_LANES;
  const blocks_fn(*run)[2] = berth__block_group(type) == 16 ? (is_offset ? groups_16_offset : groups_16)
                                                            : (is_offset ? groups_32_offset : groups_32);
  for (int64_t r = 0, step; r < n; r += step) {
    const blocks_tile t = {.panel = panel, .x = x, .row = r, .first = at, .depth = depth, .out = out + r * VF_PANEL};
    step = n - r >= ROWS ? ROWS : 1;
    blocks_ask(ahead);
    run[step == ROWS][is_wide](&t);
  }
}

int64_t blocks_copies_many(berth_type type) { return (void)type, 1; }

/* If numbers have 128 added, the sums of x are not needed as floats: the corrections take their place. */
bool blocks_starts_many(berth_type type) { return !berth__block_has_offset(type); }

void blocks_arrange_many(berth_type type, const blocks_x *x, int64_t row) { (void)type, (void)x, (void)row; }

void blocks_product(berth_type type, const uint8_t *w, int64_t columns, const blocks_x *x, int64_t n, void *panel,
                    float *out) {
  const berth_storage storage = berth_type_storage(type);
  const int64_t row_bytes = (int64_t)berth__storage_size(storage, (uint64_t)x->depth);
  const int64_t tiles = n / ROWS + n % ROWS;
  for (int64_t at = 0, depth; at < x->depth; at += depth) {
    depth = x->depth - at < BLOCKS_SLICE ? x->depth - at : BLOCKS_SLICE;
    blocks_ahead ahead = blocks_look_ahead(w, columns, row_bytes, x->depth, at, tiles);
    blocks_unpack(type, w + at / storage.elements * storage.bytes, row_bytes, columns, depth, panel);
    blocks_multiply(type, panel, columns, x, n, at, depth, &ahead, out);
  }
}

#endif
