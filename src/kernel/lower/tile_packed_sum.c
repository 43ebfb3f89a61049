/* Few rows, and weights with blocks along the depth. A thread decodes a slice of a block at a time, of one or a few
 * weight rows, from whole words that are loaded once; neighbouring threads have neighbouring slices. All its columns
 * reuse what it loads of the rows. Factors and offsets are applied once for the elements that share them:
 *
 *   sum of x * (factor * (q - bias) + offset) = factor * sum of x * q + (offset - factor * bias) * sum of x
 *
 * Weights of f16 and bf16 are treated alike, in blocks of eight, and so are those of f32 if kernels begin early. Then a
 * thread loads its first slices before it waits for the rows, which the previous kernel is still computing. */
#include "base/blocks.h"
#include "kernel/lower/tile_packed.h"
#include "kernel/lower/words.h"

#define PLAIN_BLOCK 8

/* A quad of a row; its total is BERTH__X_NONE if it is not in shared memory. */
typedef struct row_quad {
  berth__x x[4], total;
} row_quad;
typedef row_quad values[BERTH__SLICE_QUADS];

/* ---- Conditions ---- */

bool berth__packed_is_plain(berth__storage storage) {
  return storage == BERTH_F16 || storage == BERTH_BF16 || storage == BERTH_F32;
}

int64_t berth__packed_elements(const berth__tile *tile) {
  const berth__storage storage = berth__l_storage_of(tile->l, tile->right.operand);
  return berth__packed_is_plain(storage) ? PLAIN_BLOCK : berth_type_storage(storage).elements;
}

berth__l_slices berth__packed_slices(const berth__tile *tile) {
  const berth__storage storage = berth__l_storage_of(tile->l, tile->right.operand);
  if (berth__packed_is_plain(storage)) return (berth__l_slices){1, PLAIN_BLOCK / 4, PLAIN_BLOCK / 4, PLAIN_BLOCK / 4};
  return tile->in_bytes ? berth__l_slices_for_bytes(storage) : berth__l_slices_of(storage);
}

static bool packed_are_multiples(const berth__tile_space *space, const int64_t *stride, int64_t of) {
  for (uint32_t axis = 0; axis < space->rank; axis++)
    if (space->dim[axis] > 1 && stride[axis] % of != 0) return false;
  return true;
}

static bool packed_is_simple(const berth__tile_side *side) {
  return side->window == NULL && side->panel == 0 && side->fours == 0 && side->zero == BERTH__TILE_NONE &&
         side->shift == 0 && side->depth[0] == 1;
}

static bool packed_lie_alike(const berth__tile *tile) {
  const berth__tile_side *a = &tile->right, *b = &tile->second_side;
  if (berth__l_storage_of(tile->l, a->operand) != berth__l_storage_of(tile->l, b->operand)) return false;
  return a->line[0] == b->line[0] && a->depth[0] == b->depth[0];
}

bool berth__tile_takes_packed(const berth__tile *tile) {
  const berth__storage storage = berth__l_storage_of(tile->l, tile->right.operand);
  const bool is_plain = berth__packed_is_plain(storage);
  if (tile->type != BERTH__NUM_F32 || tile->depth.rank != 1 || tile->depth.dim[0] == 0) return false;
  if (!is_plain && berth__l_format_of(storage) == NULL) return false;
  if (is_plain && !berth__l_begins_with_word(tile->l, tile->right.operand)) return false;
  if (storage == BERTH_F32 && !tile->l->limits->begins_early) return false;
  if (tile->second != BERTH__TILE_NONE && !packed_lie_alike(tile)) return false;
  const int64_t elements = berth__packed_elements(tile);
  return packed_is_simple(&tile->left) && packed_is_simple(&tile->right) && tile->depth.dim[0] % elements == 0 &&
         packed_are_multiples(&tile->batch, tile->right.batch, elements) &&
         packed_are_multiples(&tile->columns, tile->right.line, elements);
}

int64_t berth__tile_packed_slices(const berth__tile *tile) {
  return tile->depth.dim[0] / berth__packed_elements(tile) * berth__packed_slices(tile).per_block;
}

/* Whether four neighbours of a row are a single load. */
bool berth__packed_is_wide(const berth__tile *tile) {
  const uint32_t operand = tile->left.operand;
  return berth__l_storage_of(tile->l, operand) == BERTH_F32 &&
         (tile->l->at == NULL || tile->l->at[operand] % 16 == 0) &&
         packed_are_multiples(&tile->batch, tile->left.batch, 4) &&
         packed_are_multiples(&tile->rows, tile->left.line, 4);
}

bool berth__packed_has_wide_scale(const berth__tile *tile) {
  const uint32_t operand = tile->scale;
  return operand != BERTH__TILE_NONE && berth__l_storage_of(tile->l, operand) == BERTH_F32 &&
         (tile->l->at == NULL || tile->l->at[operand] % 16 == 0) && tile->l->call->in[operand].stride[0] == 1;
}

/* ---- Loading ---- */

void berth__packed_load_scale(const berth__packed *w, berth__x depth, berth__x *out) {
  const berth__tile *t = w->tile;
  berth__kernel *k = w->k;
  if (!w->has_wide_scale) {
    for (uint32_t i = 0; i < 4; i++) out[i] = berth__tile_norm_scale(t, k, berth__x_affine(k, depth, 1, i));
    return;
  }
  const berth__x quad = berth__x_quad(k, berth__l_in(t->l, k, t->scale), berth__x_div(k, depth, berth__x_i32(k, 4)));
  for (uint32_t i = 0; i < 4; i++) out[i] = berth__x_part(k, quad, i);
}

void berth__packed_load_row(const berth__packed *w, berth__x place, berth__x *out) {
  const berth__tile *t = w->tile;
  berth__kernel *k = w->k;
  if (!w->is_wide) {
    for (uint32_t i = 0; i < 4; i++)
      out[i] =
          berth__x_convert(k, BERTH__NUM_F32, berth__l_load(t->l, k, t->left.operand, berth__x_affine(k, place, 1, i)));
    return;
  }
  const uint32_t buffer = berth__l_in(t->l, k, t->left.operand);
  const berth__x quad = berth__x_quad(k, buffer, berth__x_div(k, place, berth__x_i32(k, 4)));
  for (uint32_t i = 0; i < 4; i++) out[i] = berth__x_part(k, quad, i);
}

static berth__l_quad packed_plain_quad(berth__l_blocks *b, berth__storage storage, uint32_t i) {
  berth__l_quad quad = {.factor = BERTH__X_NONE, .offset = BERTH__X_NONE, .bytes = BERTH__X_NONE};
  for (uint32_t f = 0; f < 4 && storage == BERTH_F32; f++)
    quad.q[f] = berth__x_bits(b->k, BERTH__NUM_F32, berth__l_blocks_word(b, 0, berth__x_i32(b->k, 4 * i + f)));
  if (storage == BERTH_F32) return quad;
  for (uint32_t f = 0; f < 4; f += 2) {
    const berth__x word = berth__l_blocks_word(b, 0, berth__x_i32(b->k, 2 * i + f / 2));
    for (uint32_t lane = 0; lane < 2; lane++) quad.q[f + lane] = berth__l_lane(b->k, storage, word, lane);
  }
  return quad;
}

static void packed_load_slice(const berth__packed *w, uint32_t operand, uint32_t column, berth__x block, berth__x slice,
                              berth__l_quad *quads) {
  const berth__tile *t = w->tile;
  berth__kernel *k = w->k;
  const berth__storage storage = berth__l_storage_of(t->l, t->right.operand);
  const berth__x first = berth__x_div(k, w->right[column].index, berth__x_i32(k, w->elements));
  berth__l_blocks b = berth__l_blocks_at(t->l, k, operand, t->table, berth__x_add(k, first, block));
  if (w->is_plain) {
    b.bytes = PLAIN_BLOCK * (storage == BERTH_F32 ? 4 : 2);
    b.is_wide = t->l->at == NULL || t->l->at[operand] % 16 == 0;
  }
  for (uint32_t i = 0; i < w->slices.n_quads; i++)
    quads[i] = w->is_plain ? packed_plain_quad(&b, storage, i)
                           : berth__l_blocks_quad(&b, berth__l_slice_quad(k, &w->slices, slice, i));
}

/* ---- Rows in shared memory: slices are apart, so lanes that load them from memory would use a cache line each ---- */

#define STAGED_LANES 8u /* lanes that read quads of shared memory at once */

static berth__x packed_staged_quad(const berth__packed *w, berth__x quad) {
  return berth__x_add(w->k, quad, berth__x_div(w->k, quad, berth__x_i32(w->k, w->between)));
}

/* The number of bank conflicts among the first lanes, with a gap of one quad after every `between`. */
static uint32_t packed_conflicts(const berth__packed *w, uint32_t between) {
  uint32_t seen[STAGED_LANES] = {0}, most = 0;
  for (uint32_t lane = 0; lane < STAGED_LANES; lane++) {
    const uint32_t block = lane / w->slices.per_block, slice = lane % w->slices.per_block;
    const uint32_t in_block = w->is_plain ? 0 : berth__l_slice_first(&w->slices, slice);
    const uint32_t quad = block * (uint32_t)w->elements / 4 + in_block;
    const uint32_t n = ++seen[(quad + quad / between) % STAGED_LANES];
    most = n > most ? n : most;
  }
  return most;
}

/* Whether the rows fit in addition to the parts of sums, with room for at least two workgroups. */
void berth__packed_choose_stage(berth__packed *w, berth__storage storage, uint64_t parts_bytes) {
  const uint64_t depth = (uint64_t)w->tile->depth.dim[0];
  uint32_t best = UINT32_MAX;
  if (w->tile->in_bytes) {
    w->is_staged = berth__packed_bytes_room(w) + parts_bytes <= w->tile->l->limits->shared_bytes;
    return;
  }
  for (uint32_t between = 4; between <= 64; between *= 2) {
    const uint32_t conflicts = packed_conflicts(w, between);
    if (conflicts >= best) continue;
    best = conflicts;
    w->between = between;
  }
  const uint64_t pitch = 4 * (depth / 4 + depth / 4 / w->between + 1);
  const uint64_t bytes = pitch * 4 * w->form->thread_rows + parts_bytes, totals = depth * w->form->thread_rows,
                 most = w->tile->l->limits->shared_bytes;
  w->is_staged = w->is_wide && depth % 4 == 0 && bytes <= most;
  w->pitch = (uint32_t)pitch;
  w->has_totals = w->is_staged && !w->is_plain && berth__l_format_of(storage)->has_rest && bytes + totals <= most;
}

/* A quad of every row, and its total, which is made here once for all columns. */
static void packed_put_quad(const berth__packed *w, berth__x quad) {
  berth__kernel *k = w->k;
  const berth__x depth = berth__x_affine(k, quad, 4, 0), to = berth__x_affine(k, packed_staged_quad(w, quad), 4, 0);
  berth__x scale[4], x[4];
  if (berth__tile_is_normed(w->tile)) berth__packed_load_scale(w, depth, scale);
  for (uint32_t row = 0; row < w->form->thread_rows; row++) {
    berth__packed_load_row(w, berth__x_add(k, w->left[row].index, depth), x);
    if (berth__tile_is_normed(w->tile)) berth__tile_norm_square(k, w->squares[row], x, 4);
    for (uint32_t f = 0; f < 4; f++) {
      if (berth__tile_is_normed(w->tile)) x[f] = berth__x_mul(k, x[f], scale[f]);
      berth__x_shared_store(k, w->staged, berth__x_affine(k, to, 1, (int64_t)row * w->pitch + f), x[f]);
    }
    if (!w->has_totals) continue;
    const berth__x total = berth__x_add(k, berth__x_add(k, x[0], x[1]), berth__x_add(k, x[2], x[3]));
    berth__x_shared_store(k, w->totals, berth__x_affine(k, quad, 1, row * (w->tile->depth.dim[0] / 4)), total);
  }
}

#define STAGED_TOGETHER 8 /* most quads of a thread that are loaded before the first is stored */

/* Called by all threads of the workgroup; a barrier must follow. All weights wait for these loads, so a thread waits
 * once for all of them if there are few. */
void berth__packed_put_rows(berth__packed *w) {
  berth__kernel *k = w->k;
  if (w->tile->in_bytes) {
    berth__packed_put_bytes(w);
    return;
  }
  const int64_t quads = w->tile->depth.dim[0] / 4, threads = k->group_size, whole = quads / threads;
  const berth__x thread = berth__x_thread(k);
  w->staged = berth__kernel_shared(k, BERTH__NUM_F32, w->pitch * w->form->thread_rows);
  if (w->has_totals) w->totals = berth__kernel_shared(k, BERTH__NUM_F32, (uint32_t)quads * w->form->thread_rows);
  if (whole > STAGED_TOGETHER) {
    packed_put_quad(w, berth__x_loop(k, thread, berth__x_i32(k, quads), threads));
    berth__x_end(k);
    return;
  }
  const berth__x i = berth__x_loop_unrolled(k, berth__x_i32(k, 0), berth__x_i32(k, whole), 1);
  packed_put_quad(w, berth__x_add(k, thread, berth__x_affine(k, i, threads, 0)));
  berth__x_end(k);
  if (quads % threads == 0) return;
  berth__x_if(k, berth__x_lt(k, thread, berth__x_i32(k, quads % threads)));
  packed_put_quad(w, berth__x_affine(k, thread, 1, whole * threads));
  berth__x_end(k);
}

static void packed_load_staged(const berth__packed *w, berth__x depth, uint32_t row, row_quad *out) {
  berth__kernel *k = w->k;
  const berth__x quad = berth__x_div(k, depth, berth__x_i32(k, 4)),
                 at = berth__x_affine(k, packed_staged_quad(w, quad), 4, 0);
  for (uint32_t f = 0; f < 4; f++)
    out->x[f] = berth__x_shared_load(k, w->staged, berth__x_affine(k, at, 1, (int64_t)row * w->pitch + f));
  if (!w->has_totals) return;
  const int64_t first = row * (w->tile->depth.dim[0] / 4);
  out->total = berth__x_shared_load(k, w->totals, berth__x_affine(k, quad, 1, first));
}

/* ---- Summing ---- */

static bool packed_share(const berth__l_quad *a, const berth__l_quad *b) {
  return a->factor == b->factor && a->offset == b->offset;
}

/* The factor of x that does not depend on q; BERTH__X_NONE: none. */
static berth__x packed_rest(berth__kernel *k, const berth__l_quad *quad) {
  if (quad->bias == 0) return quad->offset;
  const berth__x less = berth__x_mul(k, quad->factor, berth__x_f32(k, (float)-quad->bias));
  return quad->offset == BERTH__X_NONE ? less : berth__x_add(k, less, quad->offset);
}

/* Adds up the elements of quads; BERTH__X_NONE: there were none so far. */
static berth__x packed_add_total(berth__kernel *k, berth__x total, const row_quad *quad) {
  const bool is_known = quad->total != BERTH__X_NONE;
  const berth__x *parts = is_known ? &quad->total : quad->x;
  for (uint32_t i = 0; i < (is_known ? 1 : 4); i++)
    total = total == BERTH__X_NONE ? parts[i] : berth__x_add(k, total, parts[i]);
  return total;
}

/* Multiplies one row by the quads from `first` on that share its factor. */
static void packed_add_group(const berth__packed *w, const berth__l_quad *quads, uint32_t first, values x,
                             berth__x variable) {
  berth__kernel *k = w->k;
  const berth__l_quad *shared = &quads[first];
  const berth__x rest = packed_rest(k, shared);
  berth__x dot = BERTH__X_NONE, total = BERTH__X_NONE;
  for (uint32_t i = first; i < w->slices.n_quads; i++) {
    if (!packed_share(shared, &quads[i])) continue;
    for (uint32_t f = 0; f < 4; f++) {
      const berth__x q = quads[i].q[f];
      dot = dot == BERTH__X_NONE ? berth__x_mul(k, x[i].x[f], q) : berth__x3(k, BERTH__INST_fma, x[i].x[f], q, dot);
    }
    if (rest != BERTH__X_NONE) total = packed_add_total(k, total, &x[i]);
  }
  berth__x sum = berth__x_get(k, variable);
  sum = shared->factor == BERTH__X_NONE ? berth__x_add(k, sum, dot)
                                        : berth__x3(k, BERTH__INST_fma, dot, shared->factor, sum);
  if (rest != BERTH__X_NONE) sum = berth__x3(k, BERTH__INST_fma, total, rest, sum);
  berth__x_set(k, variable, sum);
}

static void packed_add_column(const berth__packed *w, const berth__x (*sums)[BERTH__TILE_MOST], uint32_t column,
                              const berth__l_quad *quads, values *x) {
  for (uint32_t i = 0; i < w->slices.n_quads; i++) {
    bool is_first = true;
    for (uint32_t j = 0; j < i; j++) is_first = is_first && !packed_share(&quads[j], &quads[i]);
    for (uint32_t row = 0; row < w->form->thread_rows && is_first; row++)
      packed_add_group(w, quads, i, x[row], sums[row][column]);
  }
}

/* The rows' elements for a slice, scaled if rows are normalised. */
static void packed_load_rows(const berth__packed *w, berth__x block, berth__x slice, values *x) {
  berth__kernel *k = w->k;
  for (uint32_t i = 0; i < w->slices.n_quads; i++) {
    const berth__x quad = w->is_plain ? berth__x_i32(k, i) : berth__l_slice_quad(k, &w->slices, slice, i);
    const berth__x depth = berth__x_add(k, berth__x_affine(k, block, w->elements, 0), berth__x_affine(k, quad, 4, 0));
    berth__x scale[4];
    if (berth__tile_is_normed(w->tile) && !w->is_staged) berth__packed_load_scale(w, depth, scale);
    for (uint32_t row = 0; row < w->form->thread_rows; row++) {
      row_quad *out = &x[row][i];
      out->total = BERTH__X_NONE;
      if (w->is_staged) {
        packed_load_staged(w, depth, row, out);
        continue;
      }
      berth__packed_load_row(w, berth__x_add(k, w->left[row].index, depth), out->x);
      if (!berth__tile_is_normed(w->tile)) continue;
      berth__tile_norm_square(k, w->squares[row], out->x, 4);
      for (uint32_t f = 0; f < 4; f++) out->x[f] = berth__x_mul(k, out->x[f], scale[f]);
    }
  }
}

static void packed_find_slice(const berth__packed *w, berth__x number, berth__x *block, berth__x *slice) {
  const berth__x per_block = berth__x_i32(w->k, w->slices.per_block);
  *block = berth__x_div(w->k, number, per_block);
  *slice = berth__x_rem(w->k, number, per_block);
}

/* The first slices of the thread, `lanes` apart. */
void berth__packed_load_first(const berth__packed *w, berth__packed_slice *quads) {
  for (uint32_t i = 0; i < w->n_early; i++) {
    berth__x block, slice;
    packed_find_slice(w, berth__x_affine(w->k, w->lane, 1, (int64_t)i * w->form->group_rows), &block, &slice);
    for (uint32_t column = 0; column < w->form->thread_columns; column++) {
      packed_load_slice(w, w->tile->right.operand, column, block, slice, quads[i][0][column]);
      if (w->tile->second != BERTH__TILE_NONE)
        packed_load_slice(w, w->tile->second, column, block, slice, quads[i][1][column]);
    }
  }
}

/* What the rows have for a slice. */
typedef struct packed_rows {
  values x[BERTH__TILE_MOST];
  berth__packed_units units;
} packed_rows;

static void packed_add_quads(const berth__packed *w, const berth__x (*sums)[BERTH__TILE_MOST], uint32_t column,
                             const berth__l_quad *quads, packed_rows *rows) {
  if (w->tile->in_bytes)
    berth__packed_add_units(w, sums, column, quads, &rows->units);
  else
    packed_add_column(w, sums, column, quads, rows->x);
}

/* loaded NULL: loads them first. */
static void packed_add_slice(const berth__packed *w, berth__x number, berth__packed_slice loaded) {
  packed_rows rows;
  berth__x block, slice;
  packed_find_slice(w, number, &block, &slice);
  if (w->tile->in_bytes)
    berth__packed_load_units(w, block, slice, &rows.units);
  else
    packed_load_rows(w, block, slice, rows.x);
  for (uint32_t column = 0; column < w->form->thread_columns; column++) {
    berth__l_quad quads[BERTH__SLICE_QUADS];
    if (loaded == NULL) packed_load_slice(w, w->tile->right.operand, column, block, slice, quads);
    packed_add_quads(w, w->sum, column, loaded != NULL ? loaded[0][column] : quads, &rows);
    if (w->tile->second == BERTH__TILE_NONE) continue;
    if (loaded == NULL) packed_load_slice(w, w->tile->second, column, block, slice, quads);
    packed_add_quads(w, w->second, column, loaded != NULL ? loaded[1][column] : quads, &rows);
  }
}

#define UNROLLED 4 /* slices of a thread that are loaded together */

/* Slices [from, to) of the thread, which exist for every lane. */
static void packed_add_slices(const berth__packed *w, int64_t from, int64_t to) {
  berth__kernel *k = w->k;
  const int64_t lanes = w->form->group_rows, whole = from + (to - from) / UNROLLED * UNROLLED;
  const berth__x first = berth__x_loop(k, berth__x_i32(k, from), berth__x_i32(k, whole), UNROLLED);
  const berth__x i = berth__x_loop_unrolled(k, berth__x_i32(k, 0), berth__x_i32(k, UNROLLED), 1);
  packed_add_slice(w, berth__x_add(k, w->lane, berth__x_affine(k, berth__x_add(k, first, i), lanes, 0)), NULL);
  berth__x_end(k);
  berth__x_end(k);
  const berth__x rest = berth__x_loop_unrolled(k, berth__x_i32(k, whole), berth__x_i32(k, to), 1);
  packed_add_slice(w, berth__x_add(k, w->lane, berth__x_affine(k, rest, lanes, 0)), NULL);
  berth__x_end(k);
}

/* `early`: slices already loaded; NULL: none. */
void berth__packed_sum(const berth__packed *w, berth__packed_slice *early) {
  berth__kernel *k = w->k;
  const int64_t lanes = w->form->group_rows, all = berth__tile_packed_slices(w->tile);
  for (uint32_t i = 0; early != NULL && i < w->n_early; i++)
    packed_add_slice(w, berth__x_affine(k, w->lane, 1, i * lanes), early[i]);
  const int64_t from = early != NULL ? w->n_early : 0;
  if (w->n_early == 0) {
    const berth__x number = berth__x_loop(k, w->lane, berth__x_i32(k, all), lanes);
    packed_add_slice(w, number, NULL);
    berth__x_end(k);
    return;
  }
  packed_add_slices(w, from, all / lanes);
  if (all % lanes == 0) return;
  const berth__x last = berth__x_affine(k, w->lane, 1, all / lanes * lanes);
  berth__x_if(k, berth__x_lt(k, last, berth__x_i32(k, all)));
  packed_add_slice(w, berth__tile_clamp(k, last, all), NULL);
  berth__x_end(k);
}

void berth__packed_start(berth__packed *w, const berth__tile_cells *cells) {
  const berth__tile *t = w->tile;
  berth__kernel *k = w->k;
  for (uint32_t row = 0; row < cells->rows; row++)
    w->left[row] = berth__tile_start(t, k, &t->left, &t->rows, cells->batch, cells->row[row]);
  for (uint32_t column = 0; column < cells->columns; column++) {
    const berth__x inside = berth__tile_clamp(k, cells->column[column], berth__tile_count(&t->columns));
    w->right[column] = berth__tile_start(t, k, &t->right, &t->columns, cells->batch, inside);
    for (uint32_t row = 0; row < cells->rows; row++) {
      w->sum[row][column] = berth__x_variable(k, berth__x_f32(k, 0));
      if (t->second != BERTH__TILE_NONE) w->second[row][column] = berth__x_variable(k, berth__x_f32(k, 0));
    }
  }
  for (uint32_t row = 0; row < cells->rows && berth__tile_is_normed(t); row++)
    w->squares[row] = berth__x_variable(k, berth__x_f32(k, 0));
}
