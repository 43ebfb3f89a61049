/* Few rows, and weights whose blocks lie along the depth. A thread decodes a slice of a block at a time, of one weight
 * row or a few, from whole words that are loaded once; neighbouring threads have neighbouring slices. What it loads of
 * the rows serves all its columns. Factors and offsets are taken once for the elements that share them:
 *
 *   sum of x * (factor * (q - bias) + offset) = factor * sum of x * q + (offset - factor * bias) * sum of x
 *
 * Weights of f16 and bf16 go the same way, in blocks of eight. */
#include "base/blocks.h"
#include "kernel/lower/tile.h"
#include "kernel/lower/words.h"

#define PLAIN_BLOCK 8 /* elements of two bytes */

typedef struct work {
  const berth__tile *tile;
  const berth__tile_form *form; /* thread_rows, thread_columns; group_rows: lanes of a sum; group_columns: such sums */
  berth__kernel *k;
  berth__l_slices slices;
  int64_t elements; /* of a block */
  bool is_plain, is_wide, has_wide_scale;
  berth__tile_at left[BERTH__TILE_MOST], right[BERTH__TILE_MOST];
  berth__x sum[BERTH__TILE_MOST][BERTH__TILE_MOST];                               /* variables */
  berth__x second[BERTH__TILE_MOST][BERTH__TILE_MOST], squares[BERTH__TILE_MOST]; /* likewise, where there are such */
  berth__x lane;
  /* Where the workgroup keeps the rows, multiplied by the scale where they are normed; `pitch` elements each. */
  bool is_staged;
  uint32_t staged, pitch, between; /* quads without a gap: neighbouring lanes then hit different banks */
} work;

typedef berth__x values[BERTH__SLICE_QUADS][4];

/* ---- When ---- */

static bool packed_is_plain(berth__storage storage) { return storage == BERTH_F16 || storage == BERTH_BF16; }

static int64_t packed_elements(const berth__tile *tile) {
  const berth__storage storage = berth__l_storage_of(tile->l, tile->right.operand);
  return packed_is_plain(storage) ? PLAIN_BLOCK : berth_type_storage(storage).elements;
}

static berth__l_slices packed_slices(const berth__tile *tile) {
  const berth__storage storage = berth__l_storage_of(tile->l, tile->right.operand);
  return packed_is_plain(storage) ? (berth__l_slices){1, PLAIN_BLOCK / 4} : berth__l_slices_of(storage);
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

bool berth__tile_takes_packed(const berth__tile *tile) {
  const berth__storage storage = berth__l_storage_of(tile->l, tile->right.operand);
  const bool is_plain = packed_is_plain(storage);
  if (tile->type != BERTH__NUM_F32 || tile->depth.rank != 1 || tile->depth.dim[0] == 0) return false;
  if (!is_plain && berth__l_format_of(storage) == NULL) return false;
  if (is_plain && !berth__l_begins_with_word(tile->l, tile->right.operand)) return false;
  const int64_t elements = packed_elements(tile);
  return packed_is_simple(&tile->left) && packed_is_simple(&tile->right) && tile->depth.dim[0] % elements == 0 &&
         packed_are_multiples(&tile->batch, tile->right.batch, elements) &&
         packed_are_multiples(&tile->columns, tile->right.line, elements);
}

int64_t berth__tile_packed_slices(const berth__tile *tile) {
  return tile->depth.dim[0] / packed_elements(tile) * packed_slices(tile).per_block;
}

/* Whether four neighbours of a row are one load. */
static bool packed_is_wide(const berth__tile *tile) {
  const uint32_t operand = tile->left.operand;
  return berth__l_storage_of(tile->l, operand) == BERTH_F32 &&
         (tile->l->at == NULL || tile->l->at[operand] % 16 == 0) &&
         packed_are_multiples(&tile->batch, tile->left.batch, 4) &&
         packed_are_multiples(&tile->rows, tile->left.line, 4);
}

static bool packed_has_wide_scale(const berth__tile *tile) {
  const uint32_t operand = tile->scale;
  return operand != BERTH__TILE_NONE && berth__l_storage_of(tile->l, operand) == BERTH_F32 &&
         (tile->l->at == NULL || tile->l->at[operand] % 16 == 0) && tile->l->call->in[operand].stride[0] == 1;
}

/* ---- Loading ---- */

static void packed_load_scale(const work *w, berth__x depth, berth__x *out) {
  const berth__tile *t = w->tile;
  berth__kernel *k = w->k;
  if (!w->has_wide_scale) {
    for (uint32_t i = 0; i < 4; i++) out[i] = berth__tile_norm_scale(t, k, berth__x_affine(k, depth, 1, i));
    return;
  }
  const berth__x quad = berth__x_quad(k, berth__l_in(t->l, k, t->scale), berth__x_div(k, depth, berth__x_i32(k, 4)));
  for (uint32_t i = 0; i < 4; i++) out[i] = berth__x_part(k, quad, i);
}

static void packed_load_row(const work *w, berth__x place, berth__x *out) {
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
  berth__l_quad quad = {.factor = BERTH__X_NONE, .offset = BERTH__X_NONE};
  for (uint32_t f = 0; f < 4; f += 2) {
    const berth__x word = berth__l_blocks_word(b, 0, berth__x_i32(b->k, 2 * i + f / 2));
    for (uint32_t lane = 0; lane < 2; lane++) quad.q[f + lane] = berth__l_lane(b->k, storage, word, lane);
  }
  return quad;
}

static void packed_load_slice(const work *w, uint32_t operand, uint32_t column, berth__x block, berth__x slice,
                              berth__l_quad *quads) {
  const berth__tile *t = w->tile;
  berth__kernel *k = w->k;
  const berth__storage storage = berth__l_storage_of(t->l, t->right.operand);
  const berth__x first = berth__x_div(k, w->right[column].index, berth__x_i32(k, w->elements));
  berth__l_blocks b = berth__l_blocks_at(t->l, k, operand, t->table, berth__x_add(k, first, block));
  if (w->is_plain) {
    b.bytes = PLAIN_BLOCK * 2;
    b.is_wide = t->l->at == NULL || t->l->at[operand] % 16 == 0;
  }
  for (uint32_t i = 0; i < w->slices.n_quads; i++)
    quads[i] = w->is_plain ? packed_plain_quad(&b, storage, i)
                           : berth__l_blocks_quad(&b, berth__l_slice_quad(k, storage, slice, i));
}

/* ---- Rows in shared memory: slices lie apart, and lanes that load them from memory take a line of the cache each ----
 */

#define STAGED_LANES 8u /* that read quads of shared memory at once */

static berth__x packed_staged_quad(const work *w, berth__x quad) {
  return berth__x_add(w->k, quad, berth__x_div(w->k, quad, berth__x_i32(w->k, w->between)));
}

/* How many lanes of the first ones meet in a bank with others, with a gap of a quad after so many. */
static uint32_t packed_conflicts(const work *w, berth__storage storage, uint32_t between) {
  uint32_t seen[STAGED_LANES] = {0}, most = 0;
  for (uint32_t lane = 0; lane < STAGED_LANES; lane++) {
    const uint32_t block = lane / w->slices.per_block, slice = lane % w->slices.per_block;
    const uint32_t in_block = w->is_plain ? 0 : berth__l_slice_first(storage, slice);
    const uint32_t quad = block * (uint32_t)w->elements / 4 + in_block;
    const uint32_t n = ++seen[(quad + quad / between) % STAGED_LANES];
    most = n > most ? n : most;
  }
  return most;
}

/* Whether the rows fit beside the parts of sums, twice at least. */
static void packed_choose_stage(work *w, berth__storage storage, uint64_t parts_bytes) {
  const uint64_t depth = (uint64_t)w->tile->depth.dim[0];
  uint32_t best = UINT32_MAX;
  for (uint32_t between = 4; between <= 64; between *= 2) {
    const uint32_t conflicts = packed_conflicts(w, storage, between);
    if (conflicts >= best) continue;
    best = conflicts;
    w->between = between;
  }
  const uint64_t pitch = 4 * (depth / 4 + depth / 4 / w->between + 1);
  w->is_staged = w->is_wide && depth % 4 == 0 &&
                 pitch * 4 * w->form->thread_rows + parts_bytes <= w->tile->l->limits->shared_bytes;
  w->pitch = (uint32_t)pitch;
}

/* All threads of the workgroup, and a barrier after it. */
static void packed_stage(work *w) {
  berth__kernel *k = w->k;
  const int64_t quads = w->tile->depth.dim[0] / 4;
  w->staged = berth__kernel_shared(k, BERTH__NUM_F32, w->pitch * w->form->thread_rows);
  const berth__x quad = berth__x_loop(k, berth__x_thread(k), berth__x_i32(k, quads), k->group_size);
  const berth__x depth = berth__x_affine(k, quad, 4, 0), to = berth__x_affine(k, packed_staged_quad(w, quad), 4, 0);
  berth__x scale[4], x[4];
  if (berth__tile_is_normed(w->tile)) packed_load_scale(w, depth, scale);
  for (uint32_t row = 0; row < w->form->thread_rows; row++) {
    packed_load_row(w, berth__x_add(k, w->left[row].index, depth), x);
    if (berth__tile_is_normed(w->tile)) berth__tile_norm_square(k, w->squares[row], x, 4);
    for (uint32_t f = 0; f < 4; f++)
      berth__x_shared_store(k, w->staged, berth__x_affine(k, to, 1, (int64_t)row * w->pitch + f),
                            berth__tile_is_normed(w->tile) ? berth__x_mul(k, x[f], scale[f]) : x[f]);
  }
  berth__x_end(k);
  berth__x_barrier(k);
}

static void packed_load_staged(const work *w, berth__x depth, uint32_t row, berth__x *out) {
  berth__kernel *k = w->k;
  const berth__x at = berth__x_affine(k, packed_staged_quad(w, berth__x_div(k, depth, berth__x_i32(k, 4))), 4, 0);
  for (uint32_t f = 0; f < 4; f++)
    out[f] = berth__x_shared_load(k, w->staged, berth__x_affine(k, at, 1, (int64_t)row * w->pitch + f));
}

/* ---- Summing ---- */

static bool packed_share(const berth__l_quad *a, const berth__l_quad *b) {
  return a->factor == b->factor && a->offset == b->offset;
}

/* What x is multiplied by beside q; BERTH__X_NONE: nothing. */
static berth__x packed_rest(berth__kernel *k, const berth__l_quad *quad) {
  if (quad->bias == 0) return quad->offset;
  const berth__x less = berth__x_mul(k, quad->factor, berth__x_f32(k, (float)-quad->bias));
  return quad->offset == BERTH__X_NONE ? less : berth__x_add(k, less, quad->offset);
}

/* The quads from `first` on that share its factor, against one row. */
static void packed_add_group(const work *w, const berth__l_quad *quads, uint32_t first, values x, berth__x variable) {
  berth__kernel *k = w->k;
  const berth__l_quad *shared = &quads[first];
  const berth__x rest = packed_rest(k, shared);
  berth__x dot = BERTH__X_NONE, total = BERTH__X_NONE;
  for (uint32_t i = first; i < w->slices.n_quads; i++) {
    if (!packed_share(shared, &quads[i])) continue;
    for (uint32_t f = 0; f < 4; f++) {
      const berth__x q = quads[i].q[f];
      dot = dot == BERTH__X_NONE ? berth__x_mul(k, x[i][f], q) : berth__x3(k, BERTH__INST_fma, x[i][f], q, dot);
      if (rest != BERTH__X_NONE) total = total == BERTH__X_NONE ? x[i][f] : berth__x_add(k, total, x[i][f]);
    }
  }
  berth__x sum = berth__x_get(k, variable);
  sum = shared->factor == BERTH__X_NONE ? berth__x_add(k, sum, dot)
                                        : berth__x3(k, BERTH__INST_fma, dot, shared->factor, sum);
  if (rest != BERTH__X_NONE) sum = berth__x3(k, BERTH__INST_fma, total, rest, sum);
  berth__x_set(k, variable, sum);
}

static void packed_add_column(const work *w, const berth__x (*sums)[BERTH__TILE_MOST], uint32_t column,
                              const berth__l_quad *quads, values *x) {
  for (uint32_t i = 0; i < w->slices.n_quads; i++) {
    bool is_first = true;
    for (uint32_t j = 0; j < i; j++) is_first = is_first && !packed_share(&quads[j], &quads[i]);
    for (uint32_t row = 0; row < w->form->thread_rows && is_first; row++)
      packed_add_group(w, quads, i, x[row], sums[row][column]);
  }
}

/* The rows' elements of a slice, and what becomes of them where rows are normed. */
static void packed_load_rows(const work *w, berth__x block, berth__x slice, values *x) {
  const berth__storage storage = berth__l_storage_of(w->tile->l, w->tile->right.operand);
  berth__kernel *k = w->k;
  for (uint32_t i = 0; i < w->slices.n_quads; i++) {
    const berth__x quad = w->is_plain ? berth__x_i32(k, i) : berth__l_slice_quad(k, storage, slice, i);
    const berth__x depth = berth__x_add(k, berth__x_affine(k, block, w->elements, 0), berth__x_affine(k, quad, 4, 0));
    berth__x scale[4];
    if (berth__tile_is_normed(w->tile) && !w->is_staged) packed_load_scale(w, depth, scale);
    for (uint32_t row = 0; row < w->form->thread_rows; row++) {
      if (w->is_staged) {
        packed_load_staged(w, depth, row, x[row][i]);
        continue;
      }
      packed_load_row(w, berth__x_add(k, w->left[row].index, depth), x[row][i]);
      if (!berth__tile_is_normed(w->tile)) continue;
      berth__tile_norm_square(k, w->squares[row], x[row][i], 4);
      for (uint32_t f = 0; f < 4; f++) x[row][i][f] = berth__x_mul(k, x[row][i][f], scale[f]);
    }
  }
}

static void packed_sum(const work *w) {
  berth__kernel *k = w->k;
  values x[BERTH__TILE_MOST];
  const berth__x all = berth__x_i32(k, berth__tile_packed_slices(w->tile));
  const berth__x number = berth__x_loop(k, w->lane, all, w->form->group_rows);
  const berth__x per_block = berth__x_i32(k, w->slices.per_block);
  const berth__x block = berth__x_div(k, number, per_block), slice = berth__x_rem(k, number, per_block);
  packed_load_rows(w, block, slice, x);
  for (uint32_t column = 0; column < w->form->thread_columns; column++) {
    berth__l_quad quads[BERTH__SLICE_QUADS];
    packed_load_slice(w, w->tile->right.operand, column, block, slice, quads);
    packed_add_column(w, w->sum, column, quads, x);
    if (w->tile->second == BERTH__TILE_NONE) continue;
    packed_load_slice(w, w->tile->second, column, block, slice, quads);
    packed_add_column(w, w->second, column, quads, x);
  }
  berth__x_end(k);
}

static void packed_start(work *w, const berth__tile_cells *cells) {
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

/* ---- Sums that lanes share ---- */

#define FEW_PARTS 8u
/* The parts of sums in shared memory: `n` sums, `parts` of each, one more place between them for the banks. */
typedef struct packed_parts {
  uint32_t array, n, parts;
} packed_parts;

/* Sums of a row of a thread: of its columns, of those with the second right side, and of the squares. */
static uint32_t packed_second_at(const work *w) { return w->form->thread_columns; }
static uint32_t packed_squares_at(const work *w) {
  return w->form->thread_columns * (w->tile->second != BERTH__TILE_NONE ? 2 : 1);
}
static uint32_t packed_row_sums(const work *w) { return packed_squares_at(w) + berth__tile_is_normed(w->tile); }

static packed_parts packed_make_parts(const work *w, uint32_t parts) {
  const berth__tile_form *f = w->form;
  const uint32_t n = f->thread_rows * packed_row_sums(w) * f->group_columns;
  return (packed_parts){berth__kernel_shared(w->k, BERTH__NUM_F32, n * (parts + 1)), n, parts};
}

/* Of those that packed_join makes. */
static uint64_t packed_parts_bytes(const work *w) {
  const berth__tile_form *f = w->form;
  const uint64_t n = (uint64_t)f->thread_rows * packed_row_sums(w) * f->group_columns;
  const uint32_t table = berth__l_blocks_table_size(w->tile->l->call->in[w->tile->right.operand].type);
  return 4 * (n * (f->group_rows + 1) + n * (FEW_PARTS + 1) + table);
}

static berth__x packed_place(berth__kernel *k, const packed_parts *p, berth__x number, berth__x part) {
  return berth__x_add(k, berth__x_affine(k, number, p->parts + 1, 0), part);
}

/* Adds up `count` parts of a sum, from part `first` on. */
static berth__x packed_add_parts(berth__kernel *k, const packed_parts *p, berth__x number, berth__x first,
                                 uint32_t count) {
  const berth__x sum = berth__x_variable(k, berth__x_f32(k, 0));
  const berth__x i = berth__x_loop_unrolled(k, berth__x_i32(k, 0), berth__x_i32(k, count), 1);
  const berth__x part = berth__x_shared_load(k, p->array, packed_place(k, p, number, berth__x_add(k, first, i)));
  berth__x_set(k, sum, berth__x_add(k, berth__x_get(k, sum), part));
  berth__x_end(k);
  return berth__x_get(k, sum);
}

/* Many parts of each sum become FEW_PARTS, each by a thread. */
static packed_parts packed_fold(const work *w, const packed_parts *many) {
  berth__kernel *k = w->k;
  const packed_parts few = packed_make_parts(w, FEW_PARTS);
  const uint32_t each = many->parts / FEW_PARTS;
  const berth__x at = berth__x_loop(k, berth__x_thread(k), berth__x_i32(k, many->n * FEW_PARTS), k->group_size);
  const berth__x number = berth__x_div(k, at, berth__x_i32(k, FEW_PARTS)),
                 part = berth__x_rem(k, at, berth__x_i32(k, FEW_PARTS));
  const berth__x sum = packed_add_parts(k, many, number, berth__x_affine(k, part, each, 0), each);
  berth__x_shared_store(k, few.array, packed_place(k, &few, number, part), sum);
  berth__x_end(k);
  berth__x_barrier(k);
  return few;
}

/* What a row is divided by, once its sums are whole. */
static void packed_scale_cell(const work *w, berth__tile_cells *cells, uint32_t row, uint32_t column, berth__x factor) {
  cells->sum[row][column] = berth__x_mul(w->k, cells->sum[row][column], factor);
  if (w->tile->second != BERTH__TILE_NONE)
    cells->second[row][column] = berth__x_mul(w->k, cells->second[row][column], factor);
}

/* Sums are counted [row][sum of the row][of the workgroup]. */
static void packed_store_part(const work *w, const packed_parts *parts, uint32_t row, uint32_t sum, berth__x group,
                              berth__x variable) {
  const int64_t before = (int64_t)(row * packed_row_sums(w) + sum) * w->form->group_columns;
  const berth__x to = packed_place(w->k, parts, berth__x_affine(w->k, group, 1, before), w->lane);
  berth__x_shared_store(w->k, parts->array, to, berth__x_get(w->k, variable));
}

/* Sum `sum` of the row, of the columns' group at[2]. */
static berth__x packed_whole(const work *w, const packed_parts *parts, const berth__x *at, berth__x sum) {
  berth__kernel *k = w->k;
  const berth__x of_row = berth__x_add(k, berth__x_affine(k, at[0], packed_row_sums(w), 0), sum);
  const berth__x number = berth__x_add(k, berth__x_affine(k, of_row, w->form->group_columns, 0), at[2]);
  return packed_add_parts(k, parts, number, berth__x_i32(k, 0), parts->parts);
}

/* Those of a row: what all threads of the workgroup have seen of it where it is staged. */
static berth__x packed_whole_squares(const work *w, const packed_parts *parts, const berth__x *at) {
  berth__kernel *k = w->k;
  const berth__x which = berth__x_i32(k, packed_squares_at(w));
  if (!w->is_staged) return packed_whole(w, parts, at, which);
  berth__x sum = BERTH__X_NONE;
  for (uint32_t group = 0; group < w->form->group_columns; group++) {
    const berth__x of_group[3] = {at[0], at[1], berth__x_i32(k, group)};
    const berth__x part = packed_whole(w, parts, of_group, which);
    sum = group == 0 ? part : berth__x_add(k, sum, part);
  }
  return sum;
}

/* One thread for each result finishes it. */
static void packed_join(const work *w, const berth__tile_cells *cells, berth__x first_column, berth__x group) {
  const berth__tile_form *f = w->form;
  berth__kernel *k = w->k;
  packed_parts parts = packed_make_parts(w, f->group_rows);
  const bool has_second = w->tile->second != BERTH__TILE_NONE, is_normed = berth__tile_is_normed(w->tile);
  for (uint32_t row = 0; row < f->thread_rows; row++) {
    for (uint32_t column = 0; column < f->thread_columns; column++) {
      packed_store_part(w, &parts, row, column, group, w->sum[row][column]);
      if (has_second) packed_store_part(w, &parts, row, packed_second_at(w) + column, group, w->second[row][column]);
    }
    if (is_normed) packed_store_part(w, &parts, row, packed_squares_at(w), group, w->squares[row]);
  }
  berth__x_barrier(k);
  if (parts.parts > 2 * FEW_PARTS) parts = packed_fold(w, &parts);
  const uint32_t n = f->thread_rows * f->thread_columns * f->group_columns;
  const berth__x number = berth__x_loop(k, berth__x_thread(k), berth__x_i32(k, n), k->group_size);
  berth__x at[3];
  berth__l_unravel(k, number, 3, (const int64_t[]){f->thread_rows, f->thread_columns, f->group_columns}, at);
  berth__tile_cells one = {.rows = 1, .columns = 1, .batch = cells->batch};
  one.row[0] = at[0];
  one.column[0] =
      berth__x_add(k, berth__x_affine(k, at[2], f->thread_columns, 0), berth__x_add(k, at[1], first_column));
  one.sum[0][0] = packed_whole(w, &parts, at, at[1]);
  if (has_second) one.second[0][0] = packed_whole(w, &parts, at, berth__x_affine(k, at[1], 1, packed_second_at(w)));
  if (is_normed) {
    const berth__x squares = packed_whole_squares(w, &parts, at);
    packed_scale_cell(w, &one, 0, 0, berth__tile_norm_factor(w->tile, k, squares));
  }
  berth__tile_store(w->tile, k, &one, 1);
  berth__x_end(k);
}

static void packed_finish(const work *w, berth__tile_cells *cells) {
  const uint32_t word = berth__tile_word(w->tile), together = cells->columns % word == 0 ? word : 1;
  for (uint32_t row = 0; row < cells->rows; row++) {
    berth__x factor = BERTH__X_NONE;
    if (berth__tile_is_normed(w->tile))
      factor = berth__tile_norm_factor(w->tile, w->k, berth__x_get(w->k, w->squares[row]));
    for (uint32_t column = 0; column < cells->columns; column++) {
      cells->sum[row][column] = berth__x_get(w->k, w->sum[row][column]);
      if (w->tile->second != BERTH__TILE_NONE) cells->second[row][column] = berth__x_get(w->k, w->second[row][column]);
      if (factor != BERTH__X_NONE) packed_scale_cell(w, cells, row, column, factor);
    }
  }
  berth__tile_store(w->tile, w->k, cells, together);
}

static void packed_rows(berth__kernel *k, berth__tile_cells *cells, berth__x first_column) {
  for (uint32_t row = 0; row < cells->rows; row++) cells->row[row] = berth__x_i32(k, row);
  for (uint32_t column = 0; column < cells->columns; column++)
    cells->column[column] = berth__x_affine(k, first_column, 1, column);
}

/* ---- Both ways ---- */

static berth__l_table packed_table(const berth__tile *tile, berth__kernel *k, berth__l_table_kind kind) {
  return berth__l_blocks_table(k, berth__l_storage_of(tile->l, tile->right.operand), kind);
}

static void packed_alone(work *w, berth__tile *tile) {
  const berth__tile_form *f = w->form;
  berth__kernel *k = w->k;
  const int64_t dims[2] = {berth__tile_count(&tile->batch),
                           (berth__tile_count(&tile->columns) + f->thread_columns - 1) / f->thread_columns};
  berth__x at[2];
  berth__l_unravel(k, berth__l_each(tile->l, k, dims[0] * dims[1]), 2, dims, at);
  tile->table = packed_table(tile, k, BERTH__TABLE_LOCAL);
  berth__tile_cells cells = {.rows = f->thread_rows, .columns = f->thread_columns, .batch = at[0]};
  packed_rows(k, &cells, berth__x_affine(k, at[1], f->thread_columns, 0));
  w->lane = berth__x_i32(k, 0);
  packed_start(w, &cells);
  packed_sum(w);
  packed_finish(w, &cells);
}

static void packed_together(work *w, berth__tile *tile, const int64_t *dims) {
  const berth__tile_form *f = w->form;
  berth__kernel *k = w->k;
  berth__x at[2], of[2];
  berth__l_unravel(k, berth__x_group(k), 2, dims, at);
  tile->table = packed_table(tile, k, BERTH__TABLE_SHARED);
  berth__l_unravel(k, berth__x_thread(k), 2, (const int64_t[]){f->group_columns, f->group_rows}, of);
  const berth__x first = berth__x_affine(k, at[1], (int64_t)f->group_columns * f->thread_columns, 0);
  berth__tile_cells cells = {.rows = f->thread_rows, .columns = f->thread_columns, .batch = at[0]};
  packed_rows(k, &cells, berth__x_add(k, first, berth__x_affine(k, of[0], f->thread_columns, 0)));
  w->lane = of[1];
  packed_start(w, &cells);
  packed_choose_stage(w, berth__l_storage_of(tile->l, tile->right.operand), packed_parts_bytes(w));
  if (w->is_staged) packed_stage(w);
  packed_sum(w);
  packed_join(w, &cells, first, of[0]);
}

berth_status berth__tile_packed(berth__tile *tile, const berth__tile_form *form, berth_error *err) {
  const berth__storage storage = berth__l_storage_of(tile->l, tile->right.operand);
  const int64_t width = (int64_t)form->group_columns * form->thread_columns;
  const int64_t dims[2] = {berth__tile_count(&tile->batch), (berth__tile_count(&tile->columns) + width - 1) / width};
  berth__kernel *k = berth__tile_begin(tile, berth_type_name(storage), (uint64_t)(dims[0] * dims[1]),
                                       form->group_rows * form->group_columns);
  if (k == NULL) return berth__l_end(tile->l, k, err);
  work w = {.tile = tile,
            .form = form,
            .k = k,
            .slices = packed_slices(tile),
            .elements = packed_elements(tile),
            .is_plain = packed_is_plain(storage),
            .is_wide = packed_is_wide(tile),
            .has_wide_scale = packed_has_wide_scale(tile)};
  if (form->group_rows == 1)
    packed_alone(&w, tile);
  else
    packed_together(&w, tile, dims);
  return berth__l_end(tile->l, k, err);
}
