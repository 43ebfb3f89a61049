/* The form `shared`: a workgroup copies a piece of both sides at a time to shared memory, where a whole row or column
 * of threads uses each element. While it works on a piece, the next one is being loaded into registers. */
#include "kernel/lower/tile.h"

#define MOST_ELEMENTS 16u /* of a piece, per thread */

typedef struct piece {
  const berth__tile_side *side;
  const berth__tile_space *lines;
  berth__kernel_tile tile;
  uint32_t width;                   /* lines of the piece, which are contiguous */
  berth__x first;                   /* line of the workgroup */
  uint32_t n_elements;              /* elements per thread: every `threads`-th */
  uint32_t beside;                  /* adjacent elements along the depth that a word or a block yields at once */
  berth__x elements[MOST_ELEMENTS]; /* variables */
} piece;

typedef struct work {
  const berth__tile *tile;
  const berth__tile_form *form;
  berth__kernel *k;
  piece left, right;
  berth__x thread, batch;
  uint32_t sums;
} work;

static uint32_t threads_of(const work *w) { return w->form->group_rows * w->form->group_columns; }

/* Elements of blocks are decoded four at a time. */
static uint32_t lower_tile_shared_beside(const work *w, const piece *p) {
  const uint32_t n = berth__tile_words_of(w->tile, p->side, p->lines).depth;
  const uint32_t units = p->width * w->form->depth / n;
  const bool fits = w->form->depth % n == 0 && (units + threads_of(w) - 1) / threads_of(w) * n <= MOST_ELEMENTS;
  return fits && p->side == &w->tile->right && berth__tile_has_blocks(w->tile) ? n : 1;
}

static void open_piece(const work *w, piece *p, uint32_t width) {
  p->width = width;
  p->tile = berth__kernel_tile_of(
      w->k, &(berth__tile_desc){
                .type = w->tile->type, .storage = BERTH_F32, .lines = width, .depth = w->form->depth, .slots = 1});
  p->beside = lower_tile_shared_beside(w, p);
  p->n_elements = (width * w->form->depth / p->beside + threads_of(w) - 1) / threads_of(w) * p->beside;
  for (uint32_t i = 0; i < p->n_elements; i++)
    p->elements[i] = berth__x_variable(w->k, berth__tile_zero(w->tile, w->k));
}

/* The line and depth in the piece of a thread's element `i`, and whether it exists: neighbouring threads load
 * neighbouring elements. */
static berth__x place_element(const work *w, const piece *p, uint32_t i, berth__x *line, berth__x *depth) {
  berth__kernel *k = w->k;
  const bool is_deep = p->beside > 1 || berth__tile_is_deep(w->tile, p->side, p->lines);
  const berth__x n = berth__x_affine(k, w->thread, 1, (int64_t)(i / p->beside) * threads_of(w));
  const berth__x inner = berth__x_i32(k, is_deep ? w->form->depth / p->beside : p->width);
  const berth__x low = berth__x_rem(k, n, inner), high = berth__x_div(k, n, inner);
  *line = is_deep ? high : low;
  *depth = is_deep ? berth__x_affine(k, low, p->beside, 0) : high;
  return berth__x_lt(k, n, berth__x_i32(k, (int64_t)p->width * w->form->depth / p->beside));
}

/* One element, or several adjacent ones: a depth of whole blocks contains all of these or none. */
static void lower_tile_shared_load_elements(const work *w, const piece *p, berth__x line, berth__x depth,
                                            berth__x *values) {
  berth__kernel *k = w->k;
  const int64_t lines = berth__tile_count(p->lines), whole = berth__tile_count(&w->tile->depth);
  const bool is_even = whole % w->form->depth == 0; /* no partial piece at the end */
  const berth__x at_line = berth__tile_clamp(k, berth__x_add(k, p->first, line), lines);
  const berth__x inside = is_even ? depth : berth__x_min(k, depth, berth__x_i32(k, whole - p->beside));
  berth__tile_at at = berth__tile_start(w->tile, k, p->side, p->lines, w->batch, at_line);
  at = berth__tile_dive(w->tile, k, p->side, at, inside);
  if (p->beside > 1)
    berth__tile_load_word(w->tile, k, p->side, &at, values);
  else
    values[0] = berth__tile_load(w->tile, k, p->side, &at);
  for (uint32_t f = 0; f < p->beside && !is_even; f++)
    values[f] =
        berth__x_select(k, berth__x_lt(k, depth, berth__x_i32(k, whole)), values[f], berth__tile_zero(w->tile, k));
}

/* Loads from memory into the thread's variables. */
static void fetch_piece(const work *w, const piece *p, berth__x from) {
  for (uint32_t i = 0; i < p->n_elements; i += p->beside) {
    berth__x line, depth, values[BERTH__TILE_WORD];
    berth__x_if(w->k, place_element(w, p, i, &line, &depth));
    lower_tile_shared_load_elements(w, p, line, berth__x_add(w->k, from, depth), values);
    for (uint32_t f = 0; f < p->beside; f++) berth__x_set(w->k, p->elements[i + f], values[f]);
    berth__x_end(w->k);
  }
}

static void put_piece(const work *w, const piece *p) {
  berth__kernel *k = w->k;
  for (uint32_t i = 0; i < p->n_elements; i += p->beside) {
    berth__x line, depth;
    berth__x_if(k, place_element(w, p, i, &line, &depth));
    for (uint32_t f = 0; f < p->beside; f++) {
      const berth__x to =
          berth__x_tile_at(k, &p->tile, berth__x_i32(k, 0), line, berth__x_affine(k, depth, 1, (int64_t)f));
      berth__x_shared_store(k, p->tile.array, to, berth__x_get(k, p->elements[i + f]));
    }
    berth__x_end(k);
  }
}

static void fetch_both(const work *w, berth__x from) {
  fetch_piece(w, &w->left, from);
  fetch_piece(w, &w->right, from);
}

static void sum_pieces(const work *w) {
  berth__kernel *k = w->k;
  const berth__x whole = berth__x_i32(k, berth__tile_count(&w->tile->depth));
  fetch_both(w, berth__x_i32(k, 0));
  const berth__x from = berth__x_loop(k, berth__x_i32(k, 0), whole, w->form->depth);
  const berth__x next = berth__x_affine(k, from, 1, w->form->depth);
  put_piece(w, &w->left);
  put_piece(w, &w->right);
  berth__x_barrier(k);
  berth__x_if(k, berth__x_lt(k, next, whole));
  fetch_both(w, next);
  berth__x_end(k);
  berth__x_multiply(k, w->sums, berth__x_i32(k, 0));
  berth__x_barrier(k);
  berth__x_end(k);
}

berth_status berth__tile_shared(berth__tile *tile, const berth__tile_form *form, berth_error *err) {
  const uint32_t height = form->group_rows * form->thread_rows, width = form->group_columns * form->thread_columns;
  const int64_t dims[3] = {berth__tile_count(&tile->batch), (berth__tile_count(&tile->rows) + height - 1) / height,
                           (berth__tile_count(&tile->columns) + width - 1) / width};
  berth__kernel *k =
      berth__tile_begin(tile, "tiled", (uint64_t)(dims[0] * dims[1] * dims[2]), form->group_rows * form->group_columns);
  if (k == NULL) return berth__l_end(tile->l, k, err);
  if (berth__tile_has_blocks(tile))
    tile->table = berth__l_blocks_table(k, tile->l->call->in[tile->right.operand].type, BERTH__TABLE_SHARED);
  berth__x group[3];
  berth__l_unravel(k, berth__x_group(k), 3, dims, group);
  work w = {.tile = tile, .form = form, .k = k, .thread = berth__x_thread(k), .batch = group[0]};
  w.left = (piece){.side = &tile->left, .lines = &tile->rows, .first = berth__x_affine(k, group[1], height, 0)};
  w.right = (piece){.side = &tile->right, .lines = &tile->columns, .first = berth__x_affine(k, group[2], width, 0)};
  open_piece(&w, &w.left, height);
  open_piece(&w, &w.right, width);
  const uint32_t word = berth__tile_word(tile), together = form->thread_columns % word == 0 ? word : 1;
  w.sums = berth__kernel_sums_of(k, &(berth__kernel_sums){.left = w.left.tile,
                                                          .right = w.right.tile,
                                                          .type = tile->type,
                                                          .together = together,
                                                          .group_rows = form->group_rows});
  sum_pieces(&w);
  berth__tile_store_sums(tile, k, w.sums, w.batch, w.left.first, w.right.first);
  return berth__l_end(tile->l, k, err);
}
