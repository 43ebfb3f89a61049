/* The form `registers`: each thread computes some rows and columns of the result and reads the factors directly from
 * memory. Adjacent threads have adjacent columns, and a thread's own columns are close to each other. */
#include "kernel/lower/tile.h"

/* Unrolling along the last axis of the depth: 1 if a step is long enough to amortise the loop, because compiling a
 * longer kernel takes time, too. */
static int64_t unroll_of(uint32_t rows, uint32_t columns) { return rows * columns >= 16 ? 1 : 4; }

typedef struct work {
  const berth__tile *tile;
  berth__kernel *k;
  uint32_t rows, columns;
  berth__tile_words left, right;
  uint32_t steps;                                      /* steps along the depth per word */
  berth__x sum[BERTH__TILE_MOST][BERTH__TILE_MOST];    /* variables */
  berth__x second[BERTH__TILE_MOST][BERTH__TILE_MOST]; /* the same, if there is a second right side */
  berth__x squares[BERTH__TILE_MOST];                  /* variables, if rows are normalised */
} work;

/* The thread's current position on each axis of the depth. */
typedef struct places {
  berth__tile_at left[BERTH__TILE_MOST], right[BERTH__TILE_MOST], second[BERTH__TILE_MOST];
} places;

static bool has_second(const work *w) { return w->tile->second != BERTH__TILE_NONE; }

static void step_all(const work *w, places *p, uint32_t axis, berth__x x) {
  for (uint32_t i = 0; i < w->rows; i++) p->left[i] = berth__tile_step(w->k, &w->tile->left, p->left[i], axis, x);
  for (uint32_t j = 0; j < w->columns; j++) p->right[j] = berth__tile_step(w->k, &w->tile->right, p->right[j], axis, x);
  for (uint32_t j = 0; j < w->columns && has_second(w); j++)
    p->second[j] = berth__tile_step(w->k, &w->tile->second_side, p->second[j], axis, x);
}

/* One step along the depth for words of lines, or as many steps as a word contains. */
typedef berth__x elements[BERTH__TILE_MOST][BERTH__TILE_WORD];

static void load_lines(const work *w, const berth__tile_side *side, berth__tile_words words, const berth__tile_at *at,
                       uint32_t n, uint32_t step, elements out) {
  for (uint32_t i = 0; i < n; i += words.lines) {
    berth__x values[BERTH__TILE_WORD];
    if (words.depth == 1 && words.lines == 1)
      values[0] = berth__tile_load(w->tile, w->k, side, &at[i]);
    else
      berth__tile_load_word(w->tile, w->k, side, &at[i], values);
    for (uint32_t f = 0; f < words.depth; f++) out[i][step + f] = values[f];
    for (uint32_t f = 0; f < words.lines; f++) out[i + f][step] = values[f];
  }
}

/* The depth has one axis here. */
static void lower_tile_registers_norm(const work *w, berth__x x, elements left) {
  berth__kernel *k = w->k;
  for (uint32_t i = 0; i < w->rows; i++) berth__tile_norm_square(k, w->squares[i], left[i], w->steps);
  for (uint32_t f = 0; f < w->steps; f++) {
    const berth__x scale = berth__tile_norm_scale(w->tile, k, berth__x_affine(k, x, 1, f));
    for (uint32_t i = 0; i < w->rows; i++) left[i][f] = berth__x_mul(k, left[i][f], scale);
  }
}

static void lower_tile_registers_add(const work *w, elements left, elements right,
                                     const berth__x (*sums)[BERTH__TILE_MOST]) {
  berth__kernel *k = w->k;
  for (uint32_t i = 0; i < w->rows; i++)
    for (uint32_t j = 0; j < w->columns; j++) {
      berth__x sum = berth__x_get(k, sums[i][j]);
      for (uint32_t f = 0; f < w->steps; f++) sum = berth__tile_add_product(w->tile, k, left[i][f], right[j][f], sum);
      berth__x_set(k, sums[i][j], sum);
    }
}

/* `steps` steps along the depth, from x on. */
static void lower_tile_registers_multiply(const work *w, const places *p, uint32_t axis, berth__x x) {
  const berth__tile *t = w->tile;
  berth__kernel *k = w->k;
  elements left, right, second;
  for (uint32_t f = 0; f < w->steps; f++) {
    places at = *p;
    step_all(w, &at, axis, berth__x_affine(k, x, 1, f));
    if (f % w->left.depth == 0) load_lines(w, &t->left, w->left, at.left, w->rows, f, left);
    if (f % w->right.depth == 0) load_lines(w, &t->right, w->right, at.right, w->columns, f, right);
    if (has_second(w)) load_lines(w, &t->second_side, (berth__tile_words){1, 1}, at.second, w->columns, f, second);
  }
  if (berth__tile_is_normed(t)) lower_tile_registers_norm(w, x, left);
  lower_tile_registers_add(w, left, right, w->sum);
  if (has_second(w)) lower_tile_registers_add(w, left, second, w->second);
}

static void lower_tile_registers_last_axis(const work *w, const places *p, uint32_t axis) {
  const int64_t n = w->tile->depth.dim[axis], unroll = unroll_of(w->rows, w->columns),
                steps = unroll > w->steps ? unroll : w->steps, whole = n - n % steps;
  berth__kernel *k = w->k;
  const berth__x x = berth__x_loop(k, berth__x_i32(k, 0), berth__x_i32(k, whole), steps);
  for (int64_t i = 0; i < steps && whole > 0; i += w->steps)
    lower_tile_registers_multiply(w, p, axis, berth__x_affine(k, x, 1, i));
  berth__x_end(k);
  for (int64_t i = whole; i < n; i += w->steps) lower_tile_registers_multiply(w, p, axis, berth__x_i32(k, i));
}

static void lower_tile_registers_descend(const work *w, const places *p, uint32_t axis) {
  if (axis + 1 == w->tile->depth.rank) {
    lower_tile_registers_last_axis(w, p, axis);
    return;
  }
  places at = *p;
  step_all(w, &at, axis, berth__x_loop_n(w->k, w->tile->depth.dim[axis]));
  lower_tile_registers_descend(w, &at, axis + 1);
  berth__x_end(w->k);
}

static void lower_tile_registers_start(work *w, const berth__tile_cells *cells, places *p) {
  const berth__tile *t = w->tile;
  for (uint32_t i = 0; i < w->rows; i++) {
    const berth__x row = berth__tile_clamp(w->k, cells->row[i], berth__tile_count(&t->rows));
    p->left[i] = berth__tile_start(t, w->k, &t->left, &t->rows, cells->batch, row);
  }
  for (uint32_t j = 0; j < w->columns; j++) {
    const berth__x column = berth__tile_clamp(w->k, cells->column[j], berth__tile_count(&t->columns));
    p->right[j] = berth__tile_start(t, w->k, &t->right, &t->columns, cells->batch, column);
    if (has_second(w)) p->second[j] = berth__tile_start(t, w->k, &t->second_side, &t->columns, cells->batch, column);
  }
}

static void sum_cells(work *w, berth__tile_cells *cells) {
  const bool is_normed = berth__tile_is_normed(w->tile);
  for (uint32_t i = 0; i < w->rows && is_normed; i++) w->squares[i] = berth__x_variable(w->k, berth__x_f32(w->k, 0));
  for (uint32_t i = 0; i < w->rows; i++)
    for (uint32_t j = 0; j < w->columns; j++) {
      w->sum[i][j] = berth__x_variable(w->k, berth__tile_zero(w->tile, w->k));
      if (has_second(w)) w->second[i][j] = berth__x_variable(w->k, berth__tile_zero(w->tile, w->k));
    }
  if (berth__tile_count(&w->tile->depth) != 0) {
    places p;
    lower_tile_registers_start(w, cells, &p);
    lower_tile_registers_descend(w, &p, 0);
  }
  for (uint32_t i = 0; i < w->rows; i++)
    for (uint32_t j = 0; j < w->columns; j++) {
      cells->sum[i][j] = berth__x_get(w->k, w->sum[i][j]);
      if (has_second(w)) cells->second[i][j] = berth__x_get(w->k, w->second[i][j]);
    }
  for (uint32_t i = 0; i < w->rows && is_normed; i++) {
    const berth__x factor = berth__tile_norm_factor(w->tile, w->k, berth__x_get(w->k, w->squares[i]));
    for (uint32_t j = 0; j < w->columns; j++) {
      cells->sum[i][j] = berth__x_mul(w->k, cells->sum[i][j], factor);
      if (has_second(w)) cells->second[i][j] = berth__x_mul(w->k, cells->second[i][j], factor);
    }
  }
}

#define LANES 64 /* neighbouring threads with adjacent columns */

static int64_t lower_tile_registers_ceil_of(int64_t a, int64_t b) { return a / b + (a % b != 0); }

/* Loads words of both sides if a thread has whole words of lines: its rows are adjacent, and so are `beside` of its
 * columns. */
static void lower_tile_registers_words(work *w, uint32_t beside) {
  const berth__tile_words none = {1, 1};
  w->left = berth__tile_words_of(w->tile, &w->tile->left, &w->tile->rows);
  w->right = berth__tile_words_of(w->tile, &w->tile->right, &w->tile->columns);
  if (w->rows % w->left.lines != 0) w->left = none;
  if (beside % w->right.lines != 0) w->right = none;
  w->steps = w->left.depth > w->right.depth ? w->left.depth : w->right.depth;
}

/* Adjacent columns of a thread: those of a word of the result. If a CPU plays the GPU, where coalescing does not
 * matter, also those of a word of the right side. */
static uint32_t columns_beside(const berth__tile *tile, const berth__tile_form *form, uint32_t word) {
  const uint32_t lines = berth__tile_words_of(tile, &tile->right, &tile->columns).lines;
  if (!tile->l->limits->shares_well && lines > word && form->thread_columns % lines == 0) return lines;
  return form->thread_columns % word == 0 ? word : 1;
}

berth_status berth__tile_registers(berth__tile *tile, const berth__tile_form *form, berth_error *err) {
  const uint32_t word = berth__tile_word(tile), together = form->thread_columns % word == 0 ? word : 1,
                 beside = columns_beside(tile, form, word);
  const int64_t columns = berth__tile_count(&tile->columns),
                bands = lower_tile_registers_ceil_of(berth__tile_count(&tile->rows), form->thread_rows);
  const int64_t blocks = lower_tile_registers_ceil_of(columns, (int64_t)LANES * form->thread_columns);
  const int64_t lanes = lower_tile_registers_ceil_of(columns, blocks * form->thread_columns);
  const int64_t dims[4] = {berth__tile_count(&tile->batch), bands, blocks, lanes};
  berth__kernel *k = berth__tile_begin(tile, NULL, 1, 1);
  if (k == NULL) return berth__l_end(tile->l, k, err);
  berth__x at[4];
  const berth__x flat = berth__l_each(tile->l, k, dims[0] * dims[1] * dims[2] * dims[3]);
  if (berth__tile_has_blocks(tile))
    tile->table = berth__l_blocks_table(k, tile->l->call->in[tile->right.operand].type, BERTH__TABLE_LOCAL);
  berth__l_unravel(k, flat, 4, dims, at);
  const berth__x first =
      berth__x_add(k, berth__x_affine(k, at[2], lanes * form->thread_columns, 0), berth__x_affine(k, at[3], beside, 0));
  berth__tile_cells cells = {.rows = form->thread_rows, .columns = form->thread_columns, .batch = at[0]};
  for (uint32_t i = 0; i < cells.rows; i++) cells.row[i] = berth__x_affine(k, at[1], cells.rows, i);
  for (uint32_t j = 0; j < cells.columns; j++) /* the next adjacent ones are `lanes` further on */
    cells.column[j] = berth__x_affine(k, first, 1, (int64_t)(j - j % beside) * lanes + j % beside);
  work w = {.tile = tile, .k = k, .rows = cells.rows, .columns = cells.columns};
  lower_tile_registers_words(&w, beside);
  sum_cells(&w, &cells);
  berth__tile_store(tile, k, &cells, together);
  return berth__l_end(tile->l, k, err);
}
