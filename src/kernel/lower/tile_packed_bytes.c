/* Rows as bytes: every 32 elements of a row share a scale, their largest magnitude divided by 127, as in the CPU's
 * kernels (device/cpu/kernels/blocks_row.c), which round alike. The workgroup rounds its rows once, into shared memory,
 * and `dot4` multiplies them by the integers of the weights' blocks:
 *
 *   sum of x * (factor * (q - bias) + offset) = scale * factor * (dot of bytes - bias * sum of bytes)
 *                                             + offset * scale * sum of bytes
 *
 * If a group of 32 has NaN or an infinity, its scale is NaN. */
#include "kernel/lower/tile_packed.h"

#define GROUP 32u /* elements that share a scale */
#define UNIT 16u  /* elements with a sum, 16 bytes: the smallest group of a format */
#define UNIT_WORDS BERTH__UNIT_WORDS
#define GROUP_THREADS 4u               /* threads that round a group together */
#define EACH (BERTH__PACKED_PIECE / 4) /* quads of each of them */
#define READERS 8u                     /* lanes that read four words of shared memory at once */

/* ---- Conditions ---- */

bool berth__tile_takes_bytes(const berth__tile *tile) {
  const berth__kernel_limits *limits = tile->l->limits;
  const berth__storage storage = berth__l_storage_of(tile->l, tile->right.operand);
  if (!BERTH__NATIVE_GPUS || tile->is_exact) return false;
  if (!berth__l_blocks_has_bytes(storage) || berth__l_slices_for_bytes(storage).beside % UNIT_WORDS != 0) return false;
  return limits->has_dot4 && limits->exchanges && limits->lanes >= GROUP_THREADS;
}

/* ---- Where the rows lie ---- */

static const berth__l_format *bytes_format(const berth__packed *w) {
  return berth__l_format_of(berth__l_storage_of(w->tile->l, w->tile->right.operand));
}
static bool bytes_has_rest(const berth__packed *w) { return bytes_format(w)->has_rest; }

/* Words of a unit's record: its group's scale, and its sum. Without sums there is one record per group. */
static uint32_t bytes_record(const berth__packed *w) { return bytes_has_rest(w) ? 2 : 1; }
static uint32_t bytes_per_record(const berth__packed *w) { return bytes_has_rest(w) ? UNIT : GROUP; }

/* Bank conflicts among lanes that read their first unit, with a gap of one unit after every `between`. */
static uint32_t bytes_conflicts(const berth__packed *w, uint32_t between) {
  uint32_t seen[READERS] = {0}, most = 0;
  for (uint32_t lane = 0; lane < READERS; lane++) {
    const uint32_t block = lane / w->slices.per_block, slice = lane % w->slices.per_block;
    const uint32_t quad = block * (uint32_t)w->elements / 4 + berth__l_slice_first(&w->slices, slice);
    const uint32_t unit = quad / UNIT_WORDS, n = ++seen[(unit + unit / between) % READERS];
    most = n > most ? n : most;
  }
  return most;
}

uint64_t berth__packed_bytes_room(berth__packed *w) {
  const uint64_t depth = (uint64_t)w->tile->depth.dim[0];
  uint32_t best = UINT32_MAX;
  for (uint32_t between = 2; between <= 16; between *= 2) {
    const uint32_t conflicts = bytes_conflicts(w, between);
    if (conflicts >= best) continue;
    best = conflicts;
    w->between = between;
  }
  const uint64_t units = depth / UNIT, pitch = UNIT_WORDS * (units + units / w->between);
  w->pitch = (uint32_t)pitch;
  return 4 * w->form->thread_rows * (pitch + depth / bytes_per_record(w) * bytes_record(w));
}

static berth__x bytes_place(const berth__packed *w, berth__x unit, uint32_t row) {
  berth__kernel *k = w->k;
  const berth__x gaps = berth__x_div(k, unit, berth__x_i32(k, w->between));
  return berth__x_affine(k, berth__x_add(k, unit, gaps), UNIT_WORDS, (int64_t)row * w->pitch);
}

static berth__x bytes_record_place(const berth__packed *w, berth__x record, uint32_t row) {
  const int64_t of_row = w->tile->depth.dim[0] / bytes_per_record(w) * bytes_record(w);
  return berth__x_affine(w->k, record, bytes_record(w), row * of_row);
}

/* ---- Rounding the rows ---- */

static berth__x bytes_exchange_sum(berth__kernel *k, berth__x sum, uint32_t distance) {
  return berth__x_add(k, sum, berth__x_exchange(k, sum, distance));
}

/* The bits of the largest magnitude of the group: as integers they are ordered as the numbers are, with infinity and
 * NaN at the top. */
static berth__x bytes_largest(berth__kernel *k, const berth__x *x) {
  berth__x most = BERTH__X_NONE;
  for (uint32_t i = 0; i < 4 * EACH; i++) {
    const berth__x bits = berth__x_and(k, berth__x_bits(k, BERTH__NUM_U32, x[i]), berth__x_u32(k, 0x7fffffffu));
    most = i == 0 ? bits : berth__x_max(k, most, bits);
  }
  for (uint32_t distance = 1; distance < GROUP_THREADS; distance *= 2)
    most = berth__x_max(k, most, berth__x_exchange(k, most, distance));
  return most;
}

/* x * by, which is at most 127, to the nearest even, in the low byte: the sum with 1.5 * 2^23 has it there. */
static berth__x bytes_round(berth__kernel *k, berth__x x, berth__x by) {
  const berth__x number = berth__x1(k, BERTH__INST_rounded, berth__x_mul(k, x, by));
  return berth__x_bits(k, BERTH__NUM_U32, berth__x_add(k, number, berth__x_f32(k, 12582912.0f)));
}

static berth__x bytes_join(berth__kernel *k, const berth__x *low) {
  berth__x word = berth__x_and(k, low[0], berth__x_u32(k, 255));
  for (uint32_t i = 1; i < 4; i++) {
    const berth__x byte = i < 3 ? berth__x_and(k, low[i], berth__x_u32(k, 255)) : low[i];
    word = berth__x_or(k, word, berth__x2(k, BERTH__INST_shl, byte, berth__x_u32(k, 8 * i)));
  }
  return word;
}

/* 127 divided by the largest magnitude; 0 if that is below 2^-120, where it could be infinite: such a group counts as
 * zeros. */
static berth__x bytes_factor(berth__kernel *k, berth__x most) {
  const berth__x is_normal = berth__x_le(k, berth__x_u32(k, 7u << 23), most);
  const berth__x by = berth__x_quotient(k, berth__x_f32(k, 127), berth__x_bits(k, BERTH__NUM_F32, most));
  return berth__x_select(k, is_normal, by, berth__x_f32(k, 0));
}

static berth__x bytes_scale(berth__kernel *k, berth__x most) {
  const berth__x scale = berth__x_quotient(k, berth__x_bits(k, BERTH__NUM_F32, most), berth__x_f32(k, 127));
  const berth__x nan = berth__x_bits(k, BERTH__NUM_F32, berth__x_u32(k, 0x7fc00000u));
  return berth__x_select(k, berth__x_lt(k, most, berth__x_u32(k, 0x7f800000u)), scale, nan);
}

/* What a unit adds for the format's bias or offset, given the sum of its bytes: an integer to start its dot product
 * with, or a number. */
static berth__x bytes_rest(const berth__packed *w, berth__x sum, berth__x scale) {
  berth__kernel *k = w->k;
  const berth__x whole = berth__x_bits(k, BERTH__NUM_I32, sum);
  const int bias = bytes_format(w)->bias;
  if (bias != 0) return berth__x_bits(k, BERTH__NUM_U32, berth__x_affine(k, whole, -bias, 0));
  return berth__x_bits(k, BERTH__NUM_U32, berth__x_mul(k, scale, berth__x_convert(k, BERTH__NUM_F32, whole)));
}

typedef struct bytes_piece { /* what a thread rounds at a time */
  berth__x quad;             /* the first of its quads */
  berth__x is_there;         /* BERTH__X_NONE: always */
  berth__x x[4 * EACH];
} bytes_piece;

/* Threads past the end round the last pieces, so that those of a group stay together. */
static bytes_piece bytes_find_piece(const berth__packed *w, int64_t round) {
  berth__kernel *k = w->k;
  const int64_t threads = k->group_size, pieces = w->tile->depth.dim[0] / (4 * EACH);
  const berth__x piece = berth__x_affine(k, berth__x_thread(k), 1, round * threads);
  bytes_piece p = {.quad = berth__x_affine(k, piece, EACH, 0), .is_there = BERTH__X_NONE};
  if ((round + 1) * threads <= pieces) return p;
  const berth__x in_group = berth__x_rem(k, berth__x_thread(k), berth__x_i32(k, GROUP_THREADS));
  const berth__x last = berth__x_affine(k, in_group, 1, pieces - GROUP_THREADS);
  p.is_there = berth__x_lt(k, piece, berth__x_i32(k, pieces));
  p.quad = berth__x_affine(k, berth__x_select(k, p.is_there, piece, last), EACH, 0);
  return p;
}

static void bytes_load_scale(const berth__packed *w, berth__x quad, berth__x *out) {
  for (uint32_t i = 0; i < EACH; i++) berth__packed_load_scale(w, berth__x_affine(w->k, quad, 4, 4 * i), &out[4 * i]);
}

void berth__packed_load_scales(berth__packed *w) {
  berth__kernel *k = w->k;
  const int64_t pieces = w->tile->depth.dim[0] / (4 * EACH);
  if (!w->tile->in_bytes || !berth__tile_is_normed(w->tile) || pieces > (int64_t)k->group_size) return;
  w->n_scales = 4 * EACH;
  bytes_load_scale(w, bytes_find_piece(w, 0).quad, w->scales);
}

static void bytes_load(const berth__packed *w, bytes_piece *p, uint32_t row) {
  berth__kernel *k = w->k;
  berth__x scale[4 * EACH];
  for (uint32_t i = 0; i < EACH; i++)
    berth__packed_load_row(w, berth__x_add(k, w->left[row].index, berth__x_affine(k, p->quad, 4, 4 * i)), &p->x[4 * i]);
  if (!berth__tile_is_normed(w->tile)) return;
  if (w->n_scales != 0)
    memcpy(scale, w->scales, sizeof scale);
  else
    bytes_load_scale(w, p->quad, scale);
  if (p->is_there != BERTH__X_NONE) berth__x_if(k, p->is_there);
  berth__tile_norm_square(k, w->squares[row], p->x, 4 * EACH);
  if (p->is_there != BERTH__X_NONE) berth__x_end(k);
  for (uint32_t i = 0; i < 4 * EACH; i++) p->x[i] = berth__x_mul(k, p->x[i], scale[i]);
}

static void bytes_store(const berth__packed *w, const bytes_piece *p, uint32_t row, const berth__x *words,
                        berth__x scale, berth__x rest) {
  berth__kernel *k = w->k;
  const berth__x unit = berth__x_div(k, p->quad, berth__x_i32(k, UNIT_WORDS));
  const berth__x to = berth__x_add(k, bytes_place(w, unit, row), berth__x_rem(k, p->quad, berth__x_i32(k, UNIT_WORDS)));
  const uint32_t threads = bytes_per_record(w) / (4 * EACH); /* of a record */
  if (p->is_there != BERTH__X_NONE) berth__x_if(k, p->is_there);
  for (uint32_t i = 0; i < EACH; i++) berth__x_shared_store(k, w->staged, berth__x_affine(k, to, 1, i), words[i]);
  berth__x_if(k, berth__x_eq(k, berth__x_rem(k, berth__x_thread(k), berth__x_i32(k, threads)), berth__x_i32(k, 0)));
  const berth__x record = berth__x_div(k, p->quad, berth__x_i32(k, bytes_per_record(w) / 4));
  const berth__x at = bytes_record_place(w, record, row);
  berth__x_shared_store(k, w->totals, at, berth__x_bits(k, BERTH__NUM_U32, scale));
  if (rest != BERTH__X_NONE) berth__x_shared_store(k, w->totals, berth__x_affine(k, at, 1, 1), rest);
  berth__x_end(k);
  if (p->is_there != BERTH__X_NONE) berth__x_end(k);
}

static void bytes_put_piece(const berth__packed *w, bytes_piece *p) {
  berth__kernel *k = w->k;
  for (uint32_t row = 0; row < w->form->thread_rows; row++) {
    berth__x words[EACH], low[4], sum = berth__x_u32(k, 0);
    bytes_load(w, p, row);
    const berth__x most = bytes_largest(k, p->x), by = bytes_factor(k, most), scale = bytes_scale(k, most);
    for (uint32_t i = 0; i < EACH; i++) {
      for (uint32_t f = 0; f < 4; f++) low[f] = bytes_round(k, p->x[4 * i + f], by);
      words[i] = bytes_join(k, low);
      sum = berth__x3(k, BERTH__INST_dot4, words[i], berth__x_u32(k, 0x01010101u), sum);
    }
    berth__x rest = BERTH__X_NONE;
    if (bytes_has_rest(w)) rest = bytes_rest(w, bytes_exchange_sum(k, sum, 1), scale);
    bytes_store(w, p, row, words, scale, rest);
  }
}

/* Called by all threads of the workgroup, which exchange; a barrier must follow. */
void berth__packed_put_bytes(berth__packed *w) {
  berth__kernel *k = w->k;
  const int64_t depth = w->tile->depth.dim[0], pieces = depth / (4 * EACH), threads = k->group_size;
  const int64_t rounds = (pieces + threads - 1) / threads;
  const uint32_t of_row = (uint32_t)(depth / bytes_per_record(w)) * bytes_record(w);
  w->staged = berth__kernel_shared(k, BERTH__NUM_U32, w->pitch * w->form->thread_rows);
  w->totals = berth__kernel_shared(k, BERTH__NUM_U32, of_row * w->form->thread_rows);
  for (int64_t round = 0; round < rounds; round++) {
    bytes_piece p = bytes_find_piece(w, round);
    bytes_put_piece(w, &p);
  }
}

/* ---- Summing ---- */

static void bytes_load_unit(const berth__packed *w, berth__x quad, uint32_t row, berth__packed_unit *out) {
  berth__kernel *k = w->k;
  const berth__x unit = berth__x_div(k, quad, berth__x_i32(k, UNIT_WORDS)), at = bytes_place(w, unit, row);
  for (uint32_t i = 0; i < UNIT_WORDS; i++)
    out->word[i] = berth__x_shared_load(k, w->staged, berth__x_affine(k, at, 1, i));
  const berth__x of_record = berth__x_i32(k, bytes_per_record(w) / 4);
  const berth__x record = bytes_record_place(w, berth__x_div(k, quad, of_record), row);
  out->scale = berth__x_bits(k, BERTH__NUM_F32, berth__x_shared_load(k, w->totals, record));
  out->rest = BERTH__X_NONE;
  if (bytes_has_rest(w)) out->rest = berth__x_shared_load(k, w->totals, berth__x_affine(k, record, 1, 1));
}

/* Units `from` and those after it that share its group's scale and its weight's factor: two at most. */
static uint32_t bytes_alike(const berth__packed *w, const berth__l_quad *quads, uint32_t from) {
  const bool is_pair = w->slices.beside % (GROUP / 4) == 0 && from % 2 == 0;
  const berth__l_quad *a = &quads[from * UNIT_WORDS], *b = a + UNIT_WORDS;
  return is_pair && a->factor == b->factor && a->offset == b->offset ? 2 : 1;
}

/* The same factor for all quads of a unit. */
static void bytes_add_units(const berth__packed *w, const berth__l_quad *quads, const berth__packed_unit *x, uint32_t n,
                            berth__x variable) {
  berth__kernel *k = w->k;
  const bool has_bias = bytes_format(w)->bias != 0, has_offset = bytes_has_rest(w) && !has_bias;
  berth__x dot = berth__x_u32(k, 0), total = x->rest;
  for (uint32_t u = 0; u < n; u++) {
    if (has_bias) dot = u == 0 ? x->rest : berth__x_add(k, dot, x[u].rest);
    for (uint32_t i = 0; i < UNIT_WORDS; i++)
      dot = berth__x3(k, BERTH__INST_dot4, quads[u * UNIT_WORDS + i].bytes, x[u].word[i], dot);
  }
  const berth__x number = berth__x_convert(k, BERTH__NUM_F32, berth__x_bits(k, BERTH__NUM_I32, dot));
  const berth__x by = berth__x_mul(k, quads->factor, x->scale);
  berth__x sum = berth__x3(k, BERTH__INST_fma, number, by, berth__x_get(k, variable));
  if (has_offset) {
    total = berth__x_bits(k, BERTH__NUM_F32, total);
    if (n == 2) total = berth__x_add(k, total, berth__x_bits(k, BERTH__NUM_F32, x[1].rest));
    sum = berth__x3(k, BERTH__INST_fma, total, quads->offset, sum);
  }
  berth__x_set(k, variable, sum);
}

void berth__packed_load_units(const berth__packed *w, berth__x block, berth__x slice, berth__packed_units *out) {
  berth__kernel *k = w->k;
  for (uint32_t i = 0; i < w->slices.n_quads; i += UNIT_WORDS) {
    const berth__x quad = berth__l_slice_quad(k, &w->slices, slice, i);
    const berth__x at = berth__x_add(k, berth__x_affine(k, block, w->elements / 4, 0), quad);
    for (uint32_t row = 0; row < w->form->thread_rows; row++)
      bytes_load_unit(w, at, row, &out->of[row][i / UNIT_WORDS]);
  }
}

void berth__packed_add_units(const berth__packed *w, const berth__x (*sums)[BERTH__TILE_MOST], uint32_t column,
                             const berth__l_quad *quads, const berth__packed_units *x) {
  for (uint32_t unit = 0, n; unit < w->slices.n_quads / UNIT_WORDS; unit += n) {
    n = bytes_alike(w, quads, unit);
    for (uint32_t row = 0; row < w->form->thread_rows; row++)
      bytes_add_units(w, &quads[unit * UNIT_WORDS], &x->of[row][unit], n, sums[row][column]);
  }
}
