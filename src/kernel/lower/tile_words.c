/* Loads whole words of factors: one load of narrow elements yields neighbours along the depth, or adjacent lines. */
#include "kernel/lower/tile.h"
#include "kernel/lower/words.h"

/* Whether the strides of all axes with more than one element are multiples of n. */
static bool are_multiples(const int64_t *stride, const int64_t *dim, uint32_t rank, uint32_t except, int64_t n) {
  for (uint32_t axis = 0; axis < rank; axis++)
    if (axis != except && dim[axis] > 1 && stride[axis] % n != 0) return false;
  return true;
}

/* n neighbours of the last axis of the depth, from a multiple of n on. */
static bool has_depth_words(const berth__tile *tile, const berth__tile_side *side, const berth__tile_space *lines,
                            int64_t n) {
  const uint32_t last = tile->depth.rank - 1;
  if (tile->depth.dim[last] % n != 0 || side->depth[last] != 1 ||
      !are_multiples(side->depth, tile->depth.dim, tile->depth.rank, last, n))
    return false;
  if (side->fours > 0)
    return n == 4 && side->fours % n == 0 && side->panel > 0 && side->panel_stride % n == 0 && side->line[0] % n == 0;
  if (side->window == NULL)
    return side->panel == 0 && are_multiples(side->line, lines->dim, lines->rank, BERTH__TILE_NONE, n);
  if (last >= side->taps && last < side->taps + BERTH__WINDOW_AXES) return false;
  const int64_t *dim = lines->dim + lines->rank - BERTH__WINDOW_AXES;
  for (uint32_t i = 0; i < BERTH__WINDOW_AXES; i++)
    if ((dim[i] > 1 || side->window->axis[i].kernel > 1) && side->window_stride[i] % n != 0) return false;
  return are_multiples(side->line, lines->dim, lines->rank - BERTH__WINDOW_AXES, BERTH__TILE_NONE, n);
}

/* n adjacent lines, from a multiple of n on. */
static bool has_line_words(const berth__tile *tile, const berth__tile_side *side, const berth__tile_space *lines,
                           int64_t n) {
  uint32_t last = lines->rank;
  while (last > 0 && lines->dim[last - 1] == 1) last--;
  if (side->zero != BERTH__TILE_NONE && side->zero_line != 0)
    return false; /* a word's elements share their zero point */
  if (side->window != NULL || side->fours > 0 || last-- == 0 || lines->dim[last] % n != 0) return false;
  if (!are_multiples(side->depth, tile->depth.dim, tile->depth.rank, BERTH__TILE_NONE, n)) return false;
  if (side->panel > 0) return side->line[0] == 1 && side->panel % n == 0 && side->panel_stride % n == 0;
  return side->line[last] == 1 && are_multiples(side->line, lines->dim, lines->rank, last, n);
}

/* Whether n consecutive elements, counted over all axes and from a multiple of n on, are contiguous: contiguous axes
 * are joined. */
static bool is_run(const berth__tile_space *space, const int64_t *stride, int64_t n) {
  uint32_t axis = space->rank;
  int64_t run = 1;
  while (axis > 0 && (space->dim[axis - 1] == 1 || stride[axis - 1] == run)) run *= space->dim[--axis];
  return run % n == 0 && are_multiples(stride, space->dim, axis, BERTH__TILE_NONE, n);
}

berth__tile_words berth__tile_chunks_of(const berth__tile *tile, const berth__tile_side *side,
                                        const berth__tile_space *lines, uint32_t n) {
  const berth__tile_words none = {1, 1}, deep = {.depth = n, .lines = 1}, across = {.depth = 1, .lines = n};
  if (side->base != NULL || side->zero != BERTH__TILE_NONE || side->shift != 0 || side->fours > 0 ||
      !are_multiples(side->batch, tile->batch.dim, tile->batch.rank, BERTH__TILE_NONE, n))
    return none;
  if (side->window != NULL) return has_depth_words(tile, side, lines, n) ? deep : none;
  if (side->panel > 0) return has_line_words(tile, side, lines, n) ? across : none;
  if (is_run(&tile->depth, side->depth, n) && are_multiples(side->line, lines->dim, lines->rank, BERTH__TILE_NONE, n))
    return deep;
  return is_run(lines, side->line, n) &&
                 are_multiples(side->depth, tile->depth.dim, tile->depth.rank, BERTH__TILE_NONE, n)
             ? across
             : none;
}

berth__tile_words berth__tile_words_of(const berth__tile *tile, const berth__tile_side *side,
                                       const berth__tile_space *lines) {
  const berth__storage storage = berth__l_storage_of(tile->l, side->operand);
  berth__tile_words words = {.depth = 1, .lines = 1};
  if (tile->depth.rank == 0) return words;
  if (berth_type_storage(storage).elements != 1) { /* blocks run along the depth */
    const bool is_plain = tile->depth.rank == 1 && side->window == NULL && side->panel == 0 && side->fours == 0;
    if (is_plain && side->depth[0] == 1) words.depth = BERTH__TILE_WORD;
    return words;
  }
  const uint32_t n = berth__storage_per_word(storage);
  if (n == 1 || !berth__l_begins_with_word(tile->l, side->operand) ||
      !are_multiples(side->batch, tile->batch.dim, tile->batch.rank, BERTH__TILE_NONE, n))
    return words;
  if (has_depth_words(tile, side, lines, n))
    words.depth = n;
  else if (has_line_words(tile, side, lines, n))
    words.lines = n;
  return words;
}

void berth__tile_load_word(const berth__tile *tile, berth__kernel *k, const berth__tile_side *side,
                           const berth__tile_at *at, berth__x *values) {
  const berth__storage storage = berth__l_storage_of(tile->l, side->operand);
  berth__x index = at->index;
  if (berth_type_storage(storage).elements != 1) {
    berth__l_load_block_quad(tile->l, k, side->operand, tile->table, index, values);
    return;
  }
  if (side->fours > 0) {
    const berth__x four = berth__x_i32(k, 4);
    index = berth__x_add(k, index, berth__x_affine(k, berth__x_div(k, at->row, four), side->fours, 0));
  }
  if (at->inside != BERTH__X_NONE) index = berth__x_select(k, at->inside, index, berth__x_i32(k, 0));
  const berth__x word = berth__l_load_word(tile->l, k, side->operand, index);
  for (uint32_t i = 0; i < berth__storage_per_word(storage); i++) {
    berth__x value = berth__x_convert(k, tile->type, berth__l_lane(k, storage, word, i));
    if (at->zero != BERTH__X_NONE) value = berth__x_sub(k, value, at->zero);
    values[i] = at->inside != BERTH__X_NONE ? berth__x_select(k, at->inside, value, berth__tile_zero(tile, k)) : value;
  }
}
