#include "device/cpu/kernels/gemm.h"

#define BLOCK_ROWS (GEMM_ROWS == 14 ? 70 : 60) /* of A, at most: whole tiles */
#define BLOCK_BYTES (256 * 1024)               /* a block of A, or of packed B */
#define DEPTH_MOST 2048                        /* larger K is split; shorter sums are also more exact */
#define ITEM_US 12.0          /* what an item should take: short enough to balance, long enough to wake a thread for */
#define SMALL_ITEM_US 1.5     /* used when all the work is less than two items: enough for threads that are awake */
#define SMALL_ITEMS 4         /* at least this many items then */
#define FLOPS_PER_US 1e5      /* of one core, roughly */
#define BYTES_PER_US 2e4      /* for weights that come from memory */
#define NEAR_BYTES_PER_US 5e4 /* for weights that stay in the L2 cache */
#define FAR_ELEMENTS (128 * 1024)  /* weights of this size rarely stay in the L2 cache between runs */
#define NEAR_ELEMENTS (128 * 1024) /* rows of this size stay in the L2 cache */
#define DIRECT_ROWS 4              /* with so few rows, packing B costs more than it saves */
#define PIECE_DEPTH 64             /* rows of B that are packed at a time where a panel serves only one tile */
#define MANY 16                    /* enough items to balance */
#define PACK_ROWS 256              /* rows that share a packed block of B */
#define SHARED_PANELS 8            /* panels that share packed rows of A */
#define EPILOGUE_PANELS 4          /* epilogues are faster over rows that are not too short */
#define SMALL_EPILOGUE_PANELS 2    /* but splitting helps more when there is little work */
#define NARROW_PANELS 16           /* of an item whose results are f32 in scratch first */
#define AHEAD_PARTS 16             /* a panel is prefetched in at most this many parts, one with each tile before it */
#define OFF_PAGE 16                /* padding that keeps rows of packed A off multiples of a page */

static int64_t gemm_kernel_least(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t gemm_kernel_most(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t gemm_kernel_pieces(int64_t n, int64_t piece) { return n / piece + (n % piece != 0); }
/* The size of the pieces when n is cut into equal pieces of at most `limit`. */
static int64_t even_piece(int64_t n, int64_t limit) {
  return n > 0 ? gemm_kernel_pieces(n, gemm_kernel_pieces(n, limit)) : limit;
}

/* ---- How the work is cut ---- */

/* Adds an outer axis; it is joined with the innermost one so far if the two are contiguous. */
static void gemm_kernel_add_axis(uint32_t *n_axes, int64_t *dim, int64_t *a, int64_t *b, int64_t extent,
                                 int64_t a_stride, int64_t b_stride) {
  const uint32_t at = *n_axes;
  if (extent == 1) return;
  if (at > 0 && a_stride == dim[at - 1] * a[at - 1] && (b == NULL || b_stride == dim[at - 1] * b[at - 1])) {
    dim[at - 1] *= extent;
    return;
  }
  dim[at] = extent;
  a[at] = a_stride;
  if (b != NULL) b[at] = b_stride;
  *n_axes = at + 1;
}

/* Axes are stored innermost first. */
static void sort_axes(const gemm_shape *s, gemm *g) {
  uint32_t axis = s->batch_rank;
  g->rows = s->m;
  g->matrices = 1;
  gemm_kernel_add_axis(&g->n_row_axes, g->row_dim, g->a_row, NULL, s->m, s->a_row, 0);
  for (; axis > 0 && (s->b_batch == NULL || s->b_batch[axis - 1] == 0); axis--) {
    gemm_kernel_add_axis(&g->n_row_axes, g->row_dim, g->a_row, NULL, s->batch[axis - 1], s->a_batch[axis - 1], 0);
    g->rows *= s->batch[axis - 1];
  }
  for (; axis > 0; axis--) {
    gemm_kernel_add_axis(&g->n_matrix_axes, g->matrix_dim, g->a_matrix, g->b_matrix, s->batch[axis - 1],
                         s->a_batch[axis - 1], s->b_batch[axis - 1]);
    g->matrices *= s->batch[axis - 1];
  }
}

static double panel_us(const gemm *g, int64_t rows) {
  const double elements = (double)g->depth * VF_PANEL;
  const bool is_near = g->is_packed && g->depth * g->columns < FAR_ELEMENTS;
  const double compute = 2 * elements * (double)rows / FLOPS_PER_US;
  const double memory = (double)berth_type_size(g->b_type) * elements / (is_near ? NEAR_BYTES_PER_US : BYTES_PER_US);
  return (compute > memory ? compute : memory) + 0.01;
}

/* One block of rows, so that items differ only in their columns, and too little work to wake a thread for. */
static bool is_small(const gemm *g) {
  return g->is_packed && g->out_type == BERTH_F32 && g->matrices == 1 && g->rows <= g->item_rows &&
         panel_us(g, g->item_rows) * (double)g->panels < 2 * ITEM_US;
}

/* A packed block of B serves many rows, so it may be as large as the cache allows; otherwise the size of items follows
 * from the time they take. */
static int64_t panels_of_item(const gemm *g, int64_t fitting) {
  const double us = panel_us(g, g->item_rows);
  const int64_t small = gemm_kernel_most((int64_t)(SMALL_ITEM_US / us), gemm_kernel_pieces(g->panels, SMALL_ITEMS));
  const int64_t by_time = is_small(g) ? small : (int64_t)(ITEM_US / us);
  const int64_t panels = g->out_type != BERTH_F32 ? gemm_kernel_least(by_time, NARROW_PANELS) : by_time;
  if (g->out_type != BERTH_F32) fitting = gemm_kernel_least(fitting, NARROW_PANELS * VF_PANEL);
  if (g->packs_b) return fitting / VF_PANEL;
  if (g->packs_a) return gemm_kernel_most(panels, SHARED_PANELS);
  if (!g->has_epilogue) return panels;
  return gemm_kernel_most(panels, is_small(g) ? SMALL_EPILOGUE_PANELS : EPILOGUE_PANELS);
}

static void gemm_kernel_cut(gemm *g) {
  const int64_t fitting = BLOCK_BYTES / 4 / gemm_kernel_most(g->depth, 1);
  g->panels = gemm_kernel_pieces(g->columns, VF_PANEL);
  const int64_t work = g->matrices * gemm_kernel_pieces(g->rows, PACK_ROWS) *
                       gemm_kernel_pieces(g->panels, gemm_kernel_most(1, fitting / VF_PANEL));
  g->item_rows = g->packs_b ? even_piece(g->rows, work < MANY ? PACK_ROWS / 2 : PACK_ROWS) : g->rows;
  g->block_rows = even_piece(g->item_rows, gemm_kernel_most(2 * GEMM_ROWS, gemm_kernel_least(BLOCK_ROWS, fitting)));
  if (!g->packs_b) g->item_rows = g->block_rows;
  g->item_panels = even_piece(g->panels, gemm_kernel_most(panels_of_item(g, fitting), 1));
}

/* B already is a panel in place: contiguous rows of whole vectors. Packing would copy it, and pad it at worst. */
static bool lies_as_panel(const gemm *g) {
  return g->b_type == BERTH_F32 && g->b_column == 1 && g->columns % VF_LANES == 0 && g->columns <= VF_PANEL &&
         g->b_step >= g->columns && g->b_step <= VF_PANEL;
}

void gemm_plan(const gemm_shape *shape, gemm *g) {
  *g = (gemm){.depth = shape->k,
              .columns = shape->n,
              .a_step = shape->a_step,
              .b_step = shape->b_step,
              .b_column = shape->b_column,
              .is_packed = shape->b_batch == NULL,
              .has_epilogue = shape->has_epilogue,
              .a_type = shape->a_type,
              .b_type = shape->b_type,
              .out_type = shape->out_type};
  sort_axes(shape, g);
  g->packs_a = g->a_type != BERTH_F32 || (g->a_step != 1 && g->depth > 1);
  /* A step of 0 (one row for all of K) means packed panels to the tile. */
  const bool packs = !g->is_packed && !lies_as_panel(g) &&
                     (g->rows > DIRECT_ROWS || g->b_column != 1 || g->b_step == 0 || g->b_type != BERTH_F32);
  g->packs_pieces = packs && g->rows <= GEMM_ROWS;
  g->packs_b = packs && !g->packs_pieces;
  g->goes_down = g->is_packed && g->rows * g->depth <= NEAR_ELEMENTS;
  gemm_kernel_cut(g);
}

static int64_t gemm_kernel_row_items(const gemm *g) { return gemm_kernel_pieces(g->rows, g->item_rows); }
static int64_t column_items(const gemm *g) { return gemm_kernel_pieces(g->panels, g->item_panels); }

int64_t gemm_items(const gemm *g) { return g->matrices * gemm_kernel_row_items(g) * column_items(g); }

int64_t gemm_grain(const gemm *g) {
  return gemm_kernel_most(1, (int64_t)(ITEM_US / (panel_us(g, g->item_rows) * (double)g->item_panels)));
}

/* Elements of scratch: packed rows of A, then packed panels of B, then a block of f32 results that are rounded when
 * they are finished. */
static int64_t packed_row(const gemm *g) { return (g->depth + OFF_PAGE) / VF_LANES * VF_LANES + OFF_PAGE; }
static int64_t packed_a(const gemm *g) { return g->packs_a ? g->block_rows * packed_row(g) : 0; }
static int64_t packed_b(const gemm *g) { return g->packs_b ? g->item_panels * g->depth * VF_PANEL : 0; }

static int64_t wide_row(const gemm *g) { return g->item_panels * VF_PANEL; }
static int64_t wide_block(const gemm *g) { return g->out_type != BERTH_F32 ? g->block_rows * wide_row(g) : 0; }

uint64_t gemm_scratch(const gemm *g) { return (uint64_t)(packed_a(g) + packed_b(g) + wide_block(g)) * sizeof(float); }

/* Fewer rows or columns, or a shorter K, may be cut into larger pieces. The upper bound of their size does not depend
 * on the extents, except for rows and panels that exceed a block by themselves. */
uint64_t gemm_scratch_most(const gemm *g) {
  const int64_t block = BLOCK_BYTES / (int64_t)sizeof(float), rows = gemm_kernel_least(g->rows, BLOCK_ROWS);
  const int64_t row = packed_row(g), panel = g->depth * VF_PANEL;
  const int64_t most_a = block + BLOCK_ROWS * 2 * OFF_PAGE; /* plus the padding that keeps rows off pages */
  const int64_t a = gemm_kernel_least(rows * row, gemm_kernel_most(2 * GEMM_ROWS * row, most_a));
  const int64_t b = gemm_kernel_least(g->panels * panel, gemm_kernel_most(block, panel));
  const int64_t wide = rows * gemm_kernel_least(g->panels, NARROW_PANELS) * VF_PANEL;
  const bool may_pack_b = !g->is_packed && g->rows > GEMM_ROWS;
  return (uint64_t)((g->packs_a ? a : 0) + (may_pack_b ? b : 0) + (g->out_type != BERTH_F32 ? wide : 0)) *
         sizeof(float);
}

/* ---- One item ---- */

typedef struct block {
  const gemm *g;
  const gemm_data *data;
  const float *const *rows;
  int64_t first_row, n_rows; /* of the result, counted over all matrices */
  int64_t height;
  const float *panels;    /* the item's panels */
  const uint16_t *halves; /* the item's panels of f16; NULL: see panels */
  const char *from;       /* the item's columns of B as they are, for panels that are packed in pieces */
  float *out;             /* its first element: in the result, or in a block in scratch */
  int64_t out_stride;
  int64_t panel_stride, panel_step;
  int64_t column, n_columns;
  int64_t first_tile,
      n_tiles; /* for prefetching, among tiles that read the same panels: the block's first; 0: no prefetching */
} block;

static const float *bias_of(const gemm_data *data, int64_t column, int64_t columns, float *line) {
  if (data->bias_type == BERTH_F32) return (const float *)data->bias + column;
  chain_load(line, data->bias_type, (const uint16_t *)data->bias + column, 1, columns);
  return line;
}

/* What is added to results at `out`; in a block in scratch it has been added already. */
static const float *also_of(const block *b, float *out) {
  if (b->data->sum == NULL || b->g->out_type != BERTH_F32) return b->data->sum != NULL ? out : NULL;
  return (const float *)b->data->sum + (out - (float *)b->data->out);
}

/* While the tiles of weights from memory are computed, the weights of the next item are prefetched, a part with each
 * tile: waiting for all of them in the first tile takes as long as the other tiles compute. */
static void gemm_kernel_ask_ahead(const block *b, int64_t panel, int64_t from, int64_t number, gemm_tile *tile) {
  const gemm *g = b->g;
  const int64_t parts = gemm_kernel_least(b->n_tiles, AHEAD_PARTS), next = panel + g->item_panels;
  tile->ahead = NULL;
  if (number >= parts || b->column + next * VF_PANEL >= g->columns) return;
  tile->ahead_step = gemm_kernel_pieces(VF_PANEL * (int64_t)sizeof(float), parts);
  tile->ahead = (const char *)(b->panels + next * b->panel_stride + from * VF_PANEL) +
                gemm_kernel_least(number * tile->ahead_step, VF_PANEL * (int64_t)sizeof(float)) * tile->depth;
}

/* Packs n rows of B, from row k on, for the columns of a panel. */
static void gemm_kernel_pack(const block *b, int64_t column, int64_t columns, int64_t k, int64_t n, float *to) {
  const gemm *g = b->g;
  const char *from = b->from + (column * g->b_column + k * g->b_step) * (int64_t)berth_type_size(g->b_type);
  if (g->b_type == BERTH_F32)
    gemm_pack_panel(to, (const float *)(const void *)from, n, columns, g->b_step, g->b_column);
  else
    gemm_pack_halves(to, g->b_type, (const uint16_t *)(const void *)from, n, columns, g->b_step, g->b_column);
}

/* One tile of rows over [from, from + depth) of K, where its panel is packed a piece at a time: the sums go on from
 * piece to piece, so they are those over a panel that was packed whole. */
static void gemm_kernel_run_pieces(const block *b, gemm_tile *whole, int64_t column, int64_t from, int64_t n_rows) {
  float piece[PIECE_DEPTH * VF_PANEL], sums[GEMM_ROWS * VF_PANEL];
  const float *rows[GEMM_ROWS];
  gemm_tile tile = *whole;
  tile.rows = rows;
  tile.panel = piece;
  tile.panel_step = VF_PANEL;
  tile.is_far = false;
  tile.ahead = NULL;
  int64_t k = 0;
  do {
    tile.depth = gemm_kernel_least(PIECE_DEPTH, whole->depth - k);
    const bool is_end = k + tile.depth >= whole->depth;
    gemm_kernel_pack(b, column, tile.columns, from + k, tile.depth, piece);
    for (int64_t r = 0; r < n_rows; r++) rows[r] = whole->rows[r] + k;
    tile.out = is_end ? whole->out : sums;
    tile.out_stride = is_end ? whole->out_stride : VF_PANEL;
    tile.also = is_end ? whole->also : NULL;
    tile.low = is_end ? whole->low : -INFINITY;
    tile.high = is_end ? whole->high : INFINITY;
    gemm_tile_run(&tile, n_rows);
    tile.bias = sums;
    tile.bias_stride = VF_PANEL;
    k += PIECE_DEPTH;
  } while (k < whole->depth);
}

/* Whether a panel of that many columns is packed in pieces. One that is read in place must end with a whole vector. */
static bool gemm_kernel_in_pieces(const gemm *g, int64_t columns) {
  return g->packs_pieces || (!g->is_packed && !g->packs_b && columns % VF_LANES != 0);
}

/* All rows of the block times one panel, for [from, from + depth) of K. */
static void gemm_kernel_run_panel(const block *b, int64_t panel, int64_t from, int64_t depth) {
  const gemm *g = b->g;
  const int64_t column = b->column + panel * VF_PANEL;
  const bool is_end = from + depth == g->depth;
  const int64_t columns = gemm_kernel_least(VF_PANEL, b->column + b->n_columns - column);
  const bool in_pieces = gemm_kernel_in_pieces(g, columns);
  float bias[VF_PANEL];
  gemm_tile tile = {.taps = 1,
                    .depth = depth,
                    .panel_step = b->panel_step,
                    .bias = from == 0 && b->data->bias != NULL ? bias_of(b->data, column, columns, bias) : NULL,
                    .out_stride = b->out_stride,
                    .columns = columns,
                    .low = is_end ? b->data->low : -INFINITY,
                    .high = is_end ? b->data->high : INFINITY,
                    .is_far = g->depth * g->columns >= FAR_ELEMENTS};
  if (b->halves != NULL)
    tile.halves = b->halves + panel * b->panel_stride + from * VF_PANEL;
  else if (!in_pieces)
    tile.panel = b->panels + panel * b->panel_stride + from * b->panel_step;
  gemm_tiles tiles = gemm_tiles_of(b->n_rows, in_pieces ? GEMM_ROWS : b->height);
  for (int64_t at = 0, number = b->first_tile, n; at < b->n_rows; at += n, number++) {
    n = gemm_tiles_next(&tiles);
    if (b->n_tiles > 0) gemm_kernel_ask_ahead(b, panel, from, number, &tile);
    const float *rows[GEMM_ROWS];
    for (int64_t r = 0; r < n; r++) rows[r] = b->rows[at + r] + from;
    tile.rows = rows;
    tile.out = b->out + at * b->out_stride + panel * VF_PANEL;
    tile.also = from > 0 ? tile.out : also_of(b, tile.out);
    if (in_pieces)
      gemm_kernel_run_pieces(b, &tile, panel * VF_PANEL, from, n);
    else
      gemm_tile_run(&tile, n);
  }
}

/* A block of results that are not f32 is computed in scratch. */
static void start_block(block *b) {
  const gemm *g = b->g;
  const int64_t first = b->first_row * g->columns + b->column;
  b->out_stride = g->columns;
  b->out = (float *)b->data->out + first;
  if (g->out_type == BERTH_F32) return;
  b->out_stride = wide_row(g);
  b->out = b->data->scratch + packed_a(g) + packed_b(g);
  for (int64_t r = 0; r < b->n_rows && b->data->sum != NULL; r++)
    chain_load(b->out + r * b->out_stride, g->out_type, (const uint16_t *)b->data->sum + first + r * g->columns, 1,
               b->n_columns);
}

static void finish_block(const block *b) {
  const gemm *g = b->g;
  const chain_run *chain = b->data->epilogue;
  if (g->out_type == BERTH_F32) {
    if (chain != NULL) epilogue_rows(chain, b->first_row, b->n_rows, b->column, b->n_columns);
    return;
  }
  if (chain != NULL) {
    epilogue_rows_from(chain, b->first_row, b->n_rows, b->column, b->n_columns, b->out, b->out_stride);
    return;
  }
  uint16_t *to = (uint16_t *)b->data->out + b->first_row * g->columns + b->column;
  for (int64_t r = 0; r < b->n_rows; r++)
    chain_store(to + r * g->columns, g->out_type, b->out + r * b->out_stride, b->n_columns);
}

static void gemm_kernel_run_block(block *b) {
  start_block(b);
  const int64_t step = even_piece(b->g->depth, DEPTH_MOST);
  for (int64_t panel = 0; panel * VF_PANEL < b->n_columns; panel++) {
    int64_t from = 0;
    do {
      gemm_kernel_run_panel(b, panel, from, gemm_kernel_least(step, b->g->depth - from));
      from += step;
    } while (from < b->g->depth);
  }
  finish_block(b);
}

static int64_t gemm_kernel_offset_of(int64_t index, uint32_t n_axes, const int64_t *dim, const int64_t *stride) {
  int64_t offset = 0;
  if (n_axes == 1) return index * stride[0];
  for (uint32_t axis = 0; axis < n_axes; axis++, index /= dim[axis - 1]) offset += index % dim[axis] * stride[axis];
  return offset;
}

/* Pointers to rows of A whose elements are contiguous. */
static void gemm_kernel_find_rows(const gemm *g, const gemm_data *data, int64_t at, int64_t first, int64_t n,
                                  const float **rows) {
  const bool is_linear = g->n_row_axes <= 1;
  const float *a = (const float *)data->a + at;
  if (g->a_type != BERTH_F32) {
    for (int64_t r = 0; r < n; r++) {
      const int64_t from = at + gemm_kernel_offset_of(first + r, g->n_row_axes, g->row_dim, g->a_row);
      float *to = data->scratch + r * packed_row(g);
      chain_load(to, g->a_type, (const uint16_t *)data->a + from, g->a_step, g->depth);
      rows[r] = to;
    }
    return;
  }
  for (int64_t r = 0; r < n; r++) rows[r] = a + gemm_kernel_offset_of(first + r, g->n_row_axes, g->row_dim, g->a_row);
  if (!g->packs_a) return;
  gemm_pack_rows(data->scratch, packed_row(g), rows, n, is_linear && g->n_row_axes > 0 ? g->a_row[0] : 0, g->depth,
                 g->a_step);
  for (int64_t r = 0; r < n; r++) rows[r] = data->scratch + r * packed_row(g);
}

static int64_t row_stride(const gemm *g) {
  if (g->packs_a) return packed_row(g);
  return g->n_row_axes > 0 ? g->a_row[0] : 1;
}

/* The panels of the item's columns. */
static void find_panels(const gemm *g, const gemm_data *data, int64_t at, block *b) {
  const float *from = (const float *)data->b + at;
  b->panel_step = VF_PANEL;
  b->panel_stride = g->depth * VF_PANEL;
  if (g->is_packed && g->b_type != BERTH_F32) {
    b->halves = (const uint16_t *)data->b + b->column / VF_PANEL * b->panel_stride;
    return;
  }
  if (g->is_packed) {
    b->panels = from + b->column / VF_PANEL * b->panel_stride;
    return;
  }
  b->from = (const char *)data->b + (at + b->column * g->b_column) * (int64_t)berth_type_size(g->b_type);
  if (!g->packs_b) {
    b->panels = (const float *)(const void *)b->from;
    b->panel_step = g->b_step;
    b->panel_stride = VF_PANEL;
    return;
  }
  float *packed = data->scratch + packed_a(g);
  b->panels = packed;
  for (int64_t c = 0; c < b->n_columns; c += VF_PANEL, packed += b->panel_stride)
    gemm_kernel_pack(b, c, gemm_kernel_least(VF_PANEL, b->n_columns - c), 0, g->depth, packed);
}

/* `count` items from this one on, which have the same rows. */
static void gemm_kernel_run_items(const gemm *g, const gemm_data *data, int64_t item, int64_t count) {
  const int64_t across = column_items(g), down = gemm_kernel_row_items(g), matrix = item / (across * down);
  const int64_t column_item = g->goes_down ? item / down % across : item % across;
  const int64_t first = (g->goes_down ? item % down : item / across % down) * g->item_rows;
  const int64_t end = gemm_kernel_least(g->rows, first + g->item_rows),
                column = column_item * g->item_panels * VF_PANEL;
  const int64_t a = gemm_kernel_offset_of(matrix, g->n_matrix_axes, g->matrix_dim, g->a_matrix);
  const bool asks_ahead = g->is_packed && g->b_type == BERTH_F32 && g->depth * g->columns >= FAR_ELEMENTS;
  const float *rows[BLOCK_ROWS];
  block b = {.g = g,
             .data = data,
             .rows = rows,
             .column = column,
             .n_columns = gemm_kernel_least(count * g->item_panels * VF_PANEL, g->columns - column)};
  find_panels(g, data, gemm_kernel_offset_of(matrix, g->n_matrix_axes, g->matrix_dim, g->b_matrix), &b);
  for (int64_t at = first; at < end; at += g->block_rows) {
    b.n_rows = gemm_kernel_least(g->block_rows, end - at);
    b.first_row = matrix * g->rows + at;
    b.height = gemm_tile_height(b.n_rows, row_stride(g));
    if (asks_ahead) {
      const int64_t tiles = gemm_kernel_pieces(g->block_rows, b.height);
      b.n_tiles = g->goes_down ? down * tiles : tiles;
      b.first_tile = g->goes_down ? at / g->block_rows * tiles : 0;
    }
    gemm_kernel_find_rows(g, data, a, at, b.n_rows, rows);
    gemm_kernel_run_block(&b);
  }
}

/* Small items exist so that threads can share them: those that one thread gets are computed together. */
void gemm_run(const gemm *g, const gemm_data *data, int64_t begin, int64_t end) {
  const int64_t count = is_small(g) && end > begin ? end - begin : 1;
  for (int64_t item = begin; item < end; item += count) gemm_kernel_run_items(g, data, item, count);
}
