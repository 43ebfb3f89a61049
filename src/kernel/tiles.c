/* Builds tiles, sums, and the instructions on them. */
#include "kernel/maker.h"

/* ---- Tiles and sums ---- */

berth__storage berth__compute_storage(berth_compute kind) {
  return kind == BERTH_COMPUTE_BF16 ? BERTH_BF16 : kind == BERTH_COMPUTE_F16 ? BERTH_F16 : BERTH_F32;
}

uint32_t berth__kernel_shared_as(berth__kernel *k, berth__storage storage, uint32_t count) {
  const uint32_t array = berth__kernel_shared(k, BERTH__NUM_F32, count);
  if (k != NULL && k->status == BERTH_OK) k->shared[array].storage = storage;
  return array;
}

/* Padding of the contiguous extent, so that threads across it use different banks: one element if each thread loads
 * single elements, four if it loads four at once. Matrix units load eight rows of 16 bytes at once; for tf32, four
 * neighbours of eight lines; for f32 that is rounded to a narrow type, eight of four lines. */
static uint32_t padding_of(const berth__tile_desc *desc) {
  if (desc->is_for_warpgroup) return 0;
  if (desc->is_for_fours) return 4;
  if (desc->kind == BERTH_COMPUTE_F32) return 1;
  if (desc->storage != BERTH_F32) return 8;
  const bool is_tf32 = berth__compute_storage(desc->kind) == BERTH_F32;
  return is_tf32 == desc->is_deep ? 4 : 8;
}

static uint32_t pitch_of(const berth__tile_desc *desc) {
  return (desc->is_deep ? desc->depth : desc->lines) + padding_of(desc);
}

uint32_t berth__tile_slot_bytes(const berth__tile_desc *desc) {
  return pitch_of(desc) * (desc->is_deep ? desc->lines : desc->depth) * berth_type_storage(desc->storage).bytes;
}

berth__kernel_tile berth__kernel_tile_of(berth__kernel *k, const berth__tile_desc *desc) {
  berth__kernel_tile tile = {.lines = desc->lines,
                             .depth = desc->depth,
                             .slots = desc->slots,
                             .is_deep = desc->is_deep,
                             .pitch = pitch_of(desc),
                             .row = desc->is_for_warpgroup ? BERTH__ROW_BYTES / 2 : 0};
  const uint32_t count = desc->slots * berth__tile_slot(&tile);
  tile.array = desc->type == BERTH__NUM_F32 ? berth__kernel_shared_as(k, desc->storage, count)
                                            : berth__kernel_shared(k, desc->type, count);
  return tile;
}

static uint64_t tiles_array_bytes(const berth__kernel_array *array) {
  return ((uint64_t)array->count * berth_type_storage(array->storage).bytes + 3) & ~(uint64_t)3;
}

uint32_t berth__sums_room(const berth__kernel *k, const berth__kernel_sums *sums) {
  const uint32_t left = sums->left.array, right = sums->right.array;
  return tiles_array_bytes(&k->shared[left]) < tiles_array_bytes(&k->shared[right]) ? right : left;
}

static bool sums_fit(const berth__kernel *k, const berth__kernel_sums *sums) {
  const berth__kernel_tile *left = &sums->left, *right = &sums->right;
  const uint32_t parts = berth__sums_parts(sums);
  if (k->group_size % parts != 0 || left->depth % parts != 0) return false;
  if (sums->group_rows == 0 || k->group_size / parts % sums->group_rows != 0) return false;
  const berth__sums_spread s = berth__sums_spread_of(k, sums);
  if (parts > 1 && (sums->has_rows || s.thread_rows * s.thread_columns % (parts * sums->together) != 0 ||
                    (sums->stage == 0 && tiles_array_bytes(&k->shared[berth__sums_room(k, sums)]) <
                                             4 * (uint64_t)left->lines * right->lines * parts)))
    return false;
  if (left->slots != right->slots && left->slots != 1 && right->slots != 1) return false;
  if (sums->has_rows && (s.group_columns != BERTH__ROW_THREADS || sums->type != BERTH__NUM_F32)) return false;
  return left->depth == right->depth && k->shared[left->array].type == sums->type &&
         k->shared[right->array].type == sums->type && s.thread_rows * s.group_rows == left->lines &&
         s.thread_columns * s.group_columns == right->lines && s.thread_columns % sums->together == 0 &&
         s.thread_rows * s.thread_columns <= BERTH__THREAD_SUMS;
}

uint32_t berth__kernel_sums_of(berth__kernel *k, const berth__kernel_sums *sums) {
  if (k == NULL || k->status != BERTH_OK) return 0;
  if (k->n_sums == BERTH__KERNEL_SUMS || !sums_fit(k, sums)) {
    berth__maker_mistake(k, BERTH__INST_multiply, "its tiles do not fit each other, or the threads");
    return 0;
  }
  k->sums[k->n_sums] = *sums;
  return k->n_sums++;
}

berth__sums_spread berth__sums_spread_of(const berth__kernel *k, const berth__kernel_sums *sums) {
  const uint32_t parts = berth__sums_parts(sums), threads = k->group_size / parts;
  const uint32_t rows = sums->group_rows, columns = threads / rows;
  return (berth__sums_spread){.parts = parts,
                              .threads = threads,
                              .thread_rows = sums->left.lines / rows,
                              .thread_columns = sums->right.lines / columns,
                              .group_rows = rows,
                              .group_columns = columns};
}

berth__warps berth__warps_of(uint32_t n, uint32_t lines, uint32_t columns, bool has_rows) {
  berth__warps best = {0};
  for (uint32_t down = 1; down <= n; down *= 2) {
    const berth__warps w = {n, n / down, lines / down, columns / (n / down)};
    if (w.rows % 16 != 0 || w.columns % 16 != 0 || w.rows == 0 || w.columns == 0 || (has_rows && w.across != 1))
      continue;
    if (best.across == 0 || w.rows + w.columns < best.rows + best.columns) best = w;
  }
  return best;
}

uint32_t berth__kernel_shared_over(berth__kernel *k, berth__number type, uint32_t count, uint32_t first) {
  if (k != NULL && k->status == BERTH_OK && (first >= k->n_shared || k->shared[first].over != 0))
    berth__maker_mistake(k, BERTH__INST_shared_store, "there is no array that it could lie over");
  const uint32_t array = berth__kernel_shared(k, type, count);
  if (k != NULL && k->status == BERTH_OK) k->shared[array].over = first + 1;
  return array;
}

/* Arrays that lie alone follow one another. */
uint64_t berth__kernel_shared_at(const berth__kernel *kernel, uint32_t array) {
  const uint32_t before = kernel->shared[array].over != 0 ? kernel->shared[array].over - 1 : array;
  uint64_t at = 0;
  for (uint32_t i = 0; i < before; i++)
    if (kernel->shared[i].over == 0) at += tiles_array_bytes(&kernel->shared[i]);
  return at;
}

bool berth__kernel_shared_meet(const berth__kernel *kernel, uint32_t a, uint32_t b) {
  const uint64_t of_a = berth__kernel_shared_at(kernel, a), of_b = berth__kernel_shared_at(kernel, b);
  return of_a < of_b + tiles_array_bytes(&kernel->shared[b]) && of_b < of_a + tiles_array_bytes(&kernel->shared[a]);
}

uint64_t berth__kernel_shared_bytes(const berth__kernel *kernel) {
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < kernel->n_shared; i++) {
    const uint64_t end = berth__kernel_shared_at(kernel, i) + tiles_array_bytes(&kernel->shared[i]);
    if (end > bytes) bytes = end;
  }
  return bytes;
}

/* ---- Instructions ---- */

static berth__x kernel_tiles_put(berth__kernel *k, berth__inst_code code, berth__number type, uint32_t bits,
                                 const berth__x *in, uint32_t n) {
  berth__inst inst = {
      .code = (uint8_t)code, .type = (uint8_t)type, .bits = bits, .in = {BERTH__X_NONE, BERTH__X_NONE, BERTH__X_NONE}};
  for (uint32_t i = 0; i < n; i++) inst.in[i] = in[i];
  berth__range_of_type(type, &inst.low, &inst.high);
  return berth__maker_put(k, &inst);
}

/* Element `along` of row `across` of a tile for a warpgroup. */
static berth__x at_row(berth__kernel *k, const berth__kernel_tile *tile, berth__x across, berth__x along) {
  const uint32_t wide = tile->row / BERTH__ROW_PIECES, rows = tile->is_deep ? tile->lines : tile->depth;
  const berth__x row = berth__x_i32(k, tile->row), eight = berth__x_i32(k, BERTH__ROW_PIECES);
  const berth__x in_row = berth__x_rem(k, along, row), piece = berth__x_div(k, in_row, berth__x_i32(k, wide));
  const berth__x exchanged = berth__x2(k, BERTH__INST_xor, piece, berth__x_rem(k, across, eight));
  const berth__x panel = berth__x_affine(k, berth__x_div(k, along, row), (int64_t)rows * tile->row, 0);
  const berth__x at = berth__x_add(k, panel, berth__x_affine(k, across, tile->row, 0));
  return berth__x_add(k, berth__x_add(k, at, berth__x_affine(k, exchanged, wide, 0)),
                      berth__x_rem(k, in_row, berth__x_i32(k, wide)));
}

berth__x berth__x_tile_at(berth__kernel *k, const berth__kernel_tile *tile, berth__x slot, berth__x line,
                          berth__x depth) {
  const berth__x across = tile->is_deep ? line : depth, along = tile->is_deep ? depth : line;
  const berth__x first = tile->slots == 1 ? berth__x_i32(k, 0) : berth__x_affine(k, slot, berth__tile_slot(tile), 0);
  if (tile->row != 0) return berth__x_add(k, first, at_row(k, tile, across, along));
  return berth__x_add(k, berth__x_add(k, first, berth__x_affine(k, across, tile->pitch, 0)), along);
}

void berth__x_shared_copy(berth__kernel *k, uint32_t array, berth__x to, uint32_t buffer, berth__x index,
                          berth__x is_there) {
  const berth__x in[3] = {to, index, is_there};
  if (!berth__maker_accepts(k, BERTH__INST_shared_copy, 3, in)) return;
  if (array >= k->n_shared || buffer >= k->n_buffers || k->shared[array].storage != k->buffers[buffer].storage ||
      k->buffers[buffer].skip != 0 || berth__maker_type(k, is_there) != BERTH__NUM_BOOL) {
    berth__maker_mistake(k, BERTH__INST_shared_copy, "it takes 16 bytes from a buffer to an array of the same storage");
    return;
  }
  k->buffers[buffer].is_read = true;
  kernel_tiles_put(k, BERTH__INST_shared_copy, BERTH__NUM_F32, array | buffer << 8, in, 3);
}

void berth__x_commit(berth__kernel *k) {
  if (berth__maker_accepts(k, BERTH__INST_commit, 0, NULL))
    kernel_tiles_put(k, BERTH__INST_commit, BERTH__NUM_I32, 0, NULL, 0);
}

void berth__x_wait(berth__kernel *k, uint32_t n) {
  if (berth__maker_accepts(k, BERTH__INST_wait, 0, NULL))
    kernel_tiles_put(k, BERTH__INST_wait, BERTH__NUM_I32, n, NULL, 0);
}

static void put_of_slot(berth__kernel *k, berth__inst_code code, uint32_t sums, berth__x slot) {
  if (!berth__maker_accepts(k, code, 1, &slot)) return;
  if (sums >= k->n_sums || berth__maker_type(k, slot) != BERTH__NUM_I32)
    berth__maker_mistake(k, code, "there are no such sums, or its slot is no i32");
  else
    kernel_tiles_put(k, code, BERTH__NUM_F32, sums, &slot, 1);
}

void berth__x_multiply(berth__kernel *k, uint32_t sums, berth__x slot) {
  put_of_slot(k, BERTH__INST_multiply, sums, slot);
}

void berth__x_ahead(berth__kernel *k, uint32_t sums, berth__x slot) { put_of_slot(k, BERTH__INST_ahead, sums, slot); }

void berth__x_settle(berth__kernel *k, uint32_t sums) {
  if (!berth__maker_accepts(k, BERTH__INST_settle, 0, NULL)) return;
  if (sums >= k->n_sums)
    berth__maker_mistake(k, BERTH__INST_settle, "there are no such sums");
  else
    kernel_tiles_put(k, BERTH__INST_settle, BERTH__NUM_F32, sums, NULL, 0);
}

static uint32_t last_place(const berth__kernel *k, berth__inst_code code, const berth__kernel_sums *sums) {
  if (code == BERTH__INST_sum_row) return sums->left.lines - 1;
  return code == BERTH__INST_sum_line ? berth__sums_lines(k, sums) - 1 : sums->right.lines - sums->together;
}

static berth__x put_place(berth__kernel *k, berth__inst_code code, berth__x each) {
  if (!berth__maker_accepts(k, code, 1, &each)) return BERTH__X_NONE;
  if (k->insts[each].code != BERTH__INST_each) return berth__maker_mistake(k, code, "it is of an `each`");
  const berth__kernel_sums *sums = &k->sums[k->insts[each].bits];
  if (code == BERTH__INST_sum_line && !sums->has_rows) return berth__maker_mistake(k, code, "these have no rows");
  const berth__inst inst = {.code = (uint8_t)code,
                            .type = BERTH__NUM_I32,
                            .bits = k->insts[each].bits,
                            .in = {each, BERTH__X_NONE, BERTH__X_NONE},
                            .high = last_place(k, code, sums)};
  return berth__maker_put(k, &inst);
}

berth__x berth__x_sum_row(berth__kernel *k, berth__x each) { return put_place(k, BERTH__INST_sum_row, each); }

berth__x berth__x_sum_column(berth__kernel *k, berth__x each) { return put_place(k, BERTH__INST_sum_column, each); }

/* Whether sums `n` are those of an `each`, or are distributed over the threads in the same way. */
static bool lies_as(const berth__kernel *k, berth__x each, uint32_t n) {
  if (k->insts[each].code != BERTH__INST_each || n >= k->n_sums) return false;
  const berth__kernel_sums *a = &k->sums[k->insts[each].bits], *b = &k->sums[n];
  return a->left.lines == b->left.lines && a->right.lines == b->right.lines && a->together == b->together &&
         a->group_rows == b->group_rows && a->has_rows == b->has_rows && a->is_late == b->is_late &&
         a->by_fours == b->by_fours && berth__sums_parts(a) == berth__sums_parts(b);
}

berth__x berth__x_sum_beside(berth__kernel *k, berth__x each, uint32_t sums, uint32_t which) {
  const berth__x in[2] = {each, berth__x_i32(k, which)};
  if (!berth__maker_accepts(k, BERTH__INST_sum, 2, in)) return BERTH__X_NONE;
  if (!lies_as(k, each, sums) || which >= k->sums[sums].together)
    return berth__maker_mistake(k, BERTH__INST_sum, "it is one of those of an `each`");
  return kernel_tiles_put(k, BERTH__INST_sum, k->sums[sums].type, sums, in, 2);
}

/* The sums of an `each`; if it is not one, a number that no sums have. */
static uint32_t sums_of(const berth__kernel *k, berth__x each) {
  const bool is_each = k != NULL && each < k->n_insts && k->insts[each].code == BERTH__INST_each;
  return is_each ? k->insts[each].bits : BERTH__KERNEL_SUMS;
}

berth__x berth__x_sum(berth__kernel *k, berth__x each, uint32_t which) {
  return berth__x_sum_beside(k, each, sums_of(k, each), which);
}

void berth__x_sum_set_beside(berth__kernel *k, berth__x each, uint32_t sums, uint32_t which, berth__x value) {
  const berth__x in[3] = {each, berth__x_i32(k, which), value};
  if (!berth__maker_accepts(k, BERTH__INST_sum_set, 3, in)) return;
  if (!lies_as(k, each, sums) || which >= k->sums[sums].together || berth__maker_type(k, value) != k->sums[sums].type)
    berth__maker_mistake(k, BERTH__INST_sum_set, "it is one of those of an `each`, and its value has their type");
  else
    kernel_tiles_put(k, BERTH__INST_sum_set, k->sums[sums].type, sums, in, 3);
}

void berth__x_sum_set(berth__kernel *k, berth__x each, uint32_t which, berth__x value) {
  berth__x_sum_set_beside(k, each, sums_of(k, each), which, value);
}

berth__x berth__x_sum_line(berth__kernel *k, berth__x each) { return put_place(k, BERTH__INST_sum_line, each); }

static void put_fold(berth__kernel *k, berth__inst_code code, uint32_t sums, uint32_t local) {
  if (!berth__maker_accepts(k, code, 0, NULL)) return;
  if (sums >= k->n_sums || !k->sums[sums].has_rows || local >= k->n_local || k->local[local].type != BERTH__NUM_F32 ||
      k->local[local].count != berth__sums_lines(k, &k->sums[sums]))
    berth__maker_mistake(k, code, "these have no rows, or the array has no room for one each");
  else
    kernel_tiles_put(k, code, BERTH__NUM_F32, sums | local << 8, NULL, 0);
}

void berth__x_row_largest(berth__kernel *k, uint32_t sums, uint32_t local) {
  put_fold(k, BERTH__INST_row_largest, sums, local);
}

void berth__x_row_total(berth__kernel *k, uint32_t sums, uint32_t local) {
  put_fold(k, BERTH__INST_row_total, sums, local);
}

void berth__x_join(berth__kernel *k, uint32_t sums) {
  if (!berth__maker_accepts(k, BERTH__INST_join, 0, NULL)) return;
  if (sums >= k->n_sums || berth__sums_parts(&k->sums[sums]) == 1)
    berth__maker_mistake(k, BERTH__INST_join, "these sums have no parts");
  else
    kernel_tiles_put(k, BERTH__INST_join, BERTH__NUM_F32, sums, NULL, 0);
}
