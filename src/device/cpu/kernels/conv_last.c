/* conv_last as an implicit GEMM. For each block of pixels of the result, a table is made of where every tap of its
 * windows lies in x (taps.h). Then the register tiles of products (gemm_tile.h) go over the block, panel by panel of
 * the weights, so that a panel serves the whole block while it is in the L2 cache.
 *
 * Tables are short in two cases. If windows are single pixels (1 x 1), the rows of the product have a constant stride.
 * If there are few channels, a line of the kernel is one contiguous run of elements, a block is a piece of one line of
 * the result, and its windows have a constant stride too: one pointer per line of the kernel is enough. If such a block
 * touches a border, its lines of x are copied to scratch with zeros around them. If x has its channels first
 * (`turned`), all its lines are, and lie channels last there: no copy of the whole of x is needed. Beside a small x few
 * lines are there at a time, and the block is the sum of several passes.
 *
 * Nothing else of x is copied, except when the result may overwrite x (`over`): then the pixels of a block are copied,
 * and the block takes all panels. */
#include "device/cpu/kernels/conv_takes.h"
#include "device/cpu/kernels/gemm_tile.h"
#include "device/cpu/kernels/taps.h"
#include "device/cpu/kernels/turn.h"
#include "device/cpu/zeros.h"

#define BLOCK_TILES 8
#define BLOCK_BYTES (256 << 10) /* bytes of x under the windows of a block */
#define COPY_BYTES (8 << 10)    /* scratch for lines with zeros around them */
#define TURNED_BYTES (3 << 10)  /* likewise for turned lines, or: */
#define TURNED_SHARE 64         /* this part of a picture */
#define OVER_BYTES (32 << 10)   /* scratch for the pixels of a block that is overwritten */
#define ITEMS_WANTED 16
#define ITEM_WORK 150000 /* fewer multiplications are not split by panels: each share makes its own tables */
#define FEW_CHANNELS 8
#define MOST_TAPS 4096
#define TABLE_ON_STACK 1024 /* pointers; longer tables lie in scratch */

typedef struct conv {
  berth__last last;
  int64_t group, depth, taps;           /* a row of the product: `taps` runs of `depth` elements */
  bool merges;                          /* a run is a line of the kernel, not one tap; blocks are pieces of lines */
  bool is_turned;                       /* with `merges`: channels are not contiguous in x */
  int64_t line_blocks;                  /* likewise: blocks per line of the result */
  int64_t together;                     /* taps per pass; the results are sums of passes */
  int64_t step;                         /* between rows of the product, if constant; otherwise 0 */
  bool is_plain;                        /* runs are consecutive pixels of x */
  bool in_place_over;                   /* they are overwritten: a block is copied first */
  int64_t outputs, panels;              /* of a group */
  int64_t pixels, height, block;        /* of a tile; of an item */
  int64_t blocks, chunk, chunks;        /* panels per item */
  const float *x, *weight, *bias, *sum; /* bias and sum may be NULL */
  const uint16_t *halves;               /* the weight if it is f16; otherwise NULL */
  float *out;
  epilogue_form epilogue;
} conv;

static int64_t conv_last_kernel_ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

/* Every window is one pixel, and pixels are contiguous. */
static bool windows_are_pixels(const berth__last *last) {
  int64_t expected = last->axis_stride[2];
  for (uint32_t k = BERTH__WINDOW_AXES; k-- > 0;) {
    const berth__window_axis *w = &last->window.axis[k];
    if (w->kernel != 1 || w->stride != 1 || w->begin != 0 || w->end != 0) return false;
    if (w->in != 1 && last->axis_stride[k] != expected) return false;
    expected *= w->in;
  }
  return last->images == 1 || last->image_stride == expected;
}

/* The number of items: several per thread, unless they would be too small to share. */
static int64_t items_wanted(const conv *c) {
  const int64_t each = c->taps * c->depth * c->last.outputs, most = ITEMS_WANTED * (int64_t)ITEM_WORK;
  const int64_t work = each >= most || c->pixels >= most / (each > 0 ? each : 1) ? most : c->pixels * each;
  return work < ITEM_WORK ? 1 : work / ITEM_WORK;
}

/* Whether some windows reach past x along an axis. */
static bool has_border(const berth__window_axis *w) {
  return w->begin > 0 || (w->out - 1) * w->stride + (w->kernel - 1) * w->dilation + 1 - w->begin > w->in;
}

/* Elements of a line of x under a block. */
static int64_t patch_step(const conv *c) {
  const berth__window_axis *w = &c->last.window.axis[2];
  return ((c->block - 1) * w->stride + w->kernel) * c->last.channels;
}

/* Plus room to write whole vectors. */
static int64_t patch_line(const conv *c) { return patch_step(c) + 2 * VF_LANES; }

/* As many lines as may be in scratch at a time, in passes of about equal size. An epilogue's sum needs a single pass:
 * it is added last, and the results of the first one may overwrite it. */
static int64_t lines_together(const conv *c, bool adds) {
  const berth__window_axis *w = c->last.window.axis;
  if (!c->is_turned || adds) return c->taps;
  const int64_t share = 4 * w[0].in * w[1].in * w[2].in * c->last.channels / TURNED_SHARE;
  const int64_t bytes = share < TURNED_BYTES ? TURNED_BYTES : share < COPY_BYTES ? share : COPY_BYTES;
  const int64_t line = patch_step(c), fits = (bytes / 4 - 2 * VF_LANES) / (line < 1 ? 1 : line);
  const int64_t passes = fits < 1 ? c->taps : conv_last_kernel_ceil_div(c->taps, fits);
  return conv_last_kernel_ceil_div(c->taps, passes);
}

/* Pixels per block, at most `most` tiles, and the number of blocks. */
static void conv_last_kernel_cut_lines(conv *c, int64_t most) {
  const berth__window_axis *w = &c->last.window.axis[2];
  c->height = gemm_tile_height(w->out, c->step);
  c->block = most * c->height < w->out ? most * c->height : w->out;
  while ((has_border(w) || c->is_turned) && c->block > c->height && 4 * (c->taps + 1) * patch_line(c) > COPY_BYTES)
    c->block -= c->height;
  c->line_blocks = conv_last_kernel_ceil_div(w->out, c->block);
  c->block = conv_last_kernel_ceil_div(w->out, c->line_blocks);
  c->blocks = c->pixels / w->out * c->line_blocks;
}

static void conv_last_kernel_cut_pixels(conv *c, int64_t most) {
  const int64_t tiles = conv_last_kernel_ceil_div(c->pixels, c->height);
  if (c->in_place_over) { /* copies are scratch: keep them small */
    const int64_t fits = OVER_BYTES / (4 * c->height * c->taps * c->depth);
    most = fits < 1 ? 1 : fits < most ? fits : most;
  }
  c->block = conv_last_kernel_ceil_div(tiles, conv_last_kernel_ceil_div(tiles, most)) * c->height;
  c->blocks = conv_last_kernel_ceil_div(c->pixels, c->block);
}

static bool is_turned(const berth_op_call *call) {
  const berth_tensor *x = &call->in[0];
  return x->stride[x->rank - 1] != 1 && x->dim[x->rank - 1] != 1;
}

/* Whether a line of the kernel can be one run. */
static bool may_merge(const berth_op_call *call, const berth__last *last) {
  const berth__window_axis *line = &last->window.axis[2];
  return call->attrs[BERTH__LAST_GROUP].i == 1 &&
         last->channels <= (is_turned(call) ? BERTH__TURNED_CHANNELS : FEW_CHANNELS) && line->kernel > 1 &&
         line->dilation == 1;
}

static void conv_last_kernel_read_shape(const berth_op_call *call, conv *c) {
  berth__last_read(call, &c->last);
  const berth__window_axis *w = c->last.window.axis;
  c->group = call->attrs[BERTH__LAST_GROUP].i;
  c->depth = c->last.channels / c->group;
  c->taps = berth__window_taps(&c->last.window);
  c->is_turned = is_turned(call);
  c->merges = may_merge(call, &c->last) && (c->is_turned || c->last.axis_stride[2] == c->depth);
  const int64_t pixel = c->merges ? c->depth : c->last.axis_stride[2];
  if (c->merges) {
    c->taps /= w[2].kernel;
    c->depth *= w[2].kernel;
  }
  c->is_plain = windows_are_pixels(&c->last);
  c->in_place_over = call->attrs[BERTH__LAST_OVER].i != 0;
  c->step = c->merges || (c->is_plain && !c->in_place_over) ? w[2].stride * pixel : 0;
  c->outputs = c->last.outputs / c->group;
  c->panels = conv_last_kernel_ceil_div(c->outputs, VF_PANEL);
  c->pixels = taps_pixels(&c->last);
  c->height = gemm_tile_height(c->pixels, w[2].stride * pixel);
  const int64_t room = BLOCK_BYTES / (4 * c->last.channels * w[2].stride * w[1].stride * c->height + 1) + 1;
  const int64_t tiles = conv_last_kernel_ceil_div(c->pixels, c->height), all = c->group * c->panels;
  const int64_t share =
      tiles * (c->in_place_over ? 1 : all) / ITEMS_WANTED; /* tiles per item when there are few panels */
  int64_t most = room < BLOCK_TILES ? room : BLOCK_TILES;
  const bool has_lines = c->merges && c->pixels / w[2].out >= ITEMS_WANTED / 2; /* enough lines to share out */
  if (share < most && !has_lines) most = share < 1 ? 1 : share;
  if (c->merges)
    conv_last_kernel_cut_lines(c, most);
  else
    conv_last_kernel_cut_pixels(c, most);
  c->together = lines_together(c, call->attrs[BERTH__LAST_ADDS].i != 0);
  const int64_t wanted = c->in_place_over ? 1 : conv_last_kernel_ceil_div(items_wanted(c), c->blocks);
  c->chunk = conv_last_kernel_ceil_div(all, wanted < all ? wanted : all);
  c->chunks = conv_last_kernel_ceil_div(all, c->chunk);
}

static bool conv_last_kernel_takes(const berth_op_call *call) {
  berth__last last;
  if (!conv_takes_turned(call) || call->attrs[BERTH__LAST_PANEL].i != VF_PANEL) return false;
  berth__last_read(call, &last);
  if (is_turned(call) && !may_merge(call, &last)) return false;
  return berth__window_taps(&last.window) <= MOST_TAPS;
}

static int64_t conv_last_kernel_items(const berth_op_call *call) {
  conv c;
  conv_last_kernel_read_shape(call, &c);
  return c.blocks * c.chunks;
}

/* About 12 microseconds of work. */
static int64_t conv_last_kernel_grain(const berth_op_call *call) {
  conv c;
  conv_last_kernel_read_shape(call, &c);
  return 1 + 600000 / (c.block * c.taps * c.depth * c.chunk * VF_PANEL + 1);
}

/* Scratch, where needed: a row or a line of zeros; the table; copies. */
static uint64_t row_of_zeros(const conv *c) {
  const int64_t most = c->depth > c->last.channels ? c->depth : c->last.channels;
  return ((uint64_t)(c->merges ? patch_line(c) : most) * sizeof(float) + 63) / 64 * 64;
}
static uint64_t conv_last_kernel_zeros_size(const conv *c) {
  const berth__window_axis *w = c->last.window.axis;
  const bool has_lines_outside = has_border(&w[0]) || has_border(&w[1]);
  return has_lines_outside || (!c->merges && has_border(&w[2])) ? row_of_zeros(c) : 0;
}
static uint64_t table_size(const conv *c) {
  const int64_t entries = c->step != 0 ? c->taps : c->block * c->taps;
  return entries <= TABLE_ON_STACK ? 0 : ((uint64_t)entries * sizeof(float *) + 63) / 64 * 64;
}
static uint64_t copies_size(const conv *c) {
  if (c->merges)
    return has_border(&c->last.window.axis[2]) || c->is_turned
               ? (uint64_t)(c->together * patch_step(c) + 2 * VF_LANES) * sizeof(float)
               : 0;
  return c->in_place_over ? (uint64_t)(c->block * c->taps * c->depth) * sizeof(float) : 0;
}

static uint64_t conv_last_kernel_scratch(const berth_op_call *call) {
  conv c;
  conv_last_kernel_read_shape(call, &c);
  return berth__cpu_zeros_scratch(conv_last_kernel_zeros_size(&c)) + table_size(&c) + copies_size(&c);
}

/* Smaller extents may have a border where larger ones never reach their padding, other tiles, and blocks of less equal
 * size. So this assumes the largest block, and borders wherever there is padding. */
static bool may_have_border(const berth__window_axis *w) { return w->begin > 0 || w->end > 0; }

static uint64_t copies_size_most(const conv *c, bool has_columns_outside) {
  conv least = *c;
  least.block = GEMM_ROWS;
  if (c->merges && !has_columns_outside && !c->is_turned) return 0;
  if (!c->merges && !c->in_place_over) return 0;
  const int64_t all = 4 * (c->merges ? c->taps * patch_line(c) : c->block * c->taps * c->depth);
  const int64_t cut = 4 * (c->merges ? (c->taps + 1) * patch_line(&least) : GEMM_ROWS * c->taps * c->depth);
  const int64_t bytes = c->merges ? COPY_BYTES : OVER_BYTES, most = cut > bytes ? cut : bytes;
  return (uint64_t)(all < most ? all : most);
}

static uint64_t conv_last_kernel_scratch_most(const berth_op_call *call) {
  conv c;
  conv_last_kernel_read_shape(call, &c);
  const berth__window_axis *w = c.last.window.axis;
  const int64_t pixels = c.merges ? w[2].out : c.pixels + GEMM_ROWS, block = BLOCK_TILES * GEMM_ROWS;
  const bool has_columns = may_have_border(&w[2]);
  const bool has_border_at_all = has_columns || may_have_border(&w[0]) || may_have_border(&w[1]);
  c.block = pixels < block ? pixels : block;
  const uint64_t zeros = has_border_at_all ? berth__cpu_zeros_scratch(row_of_zeros(&c)) : 0;
  return zeros + table_size(&c) + copies_size_most(&c, has_columns);
}

/* Pixels of a block, and taps of a pass. */
typedef struct piece {
  int64_t first, last, tap, end;
} piece;

typedef struct worker {
  const float *zeros;
  float *copies;
  const float **rows;
} worker;

/* n pixels of a line of x, channels last. */
static void turn_pixels(const conv *c, const float *from, int64_t n, float *to) {
  const int64_t channels = c->last.channels, channel = c->last.channel_stride, pixel = c->last.axis_stride[2];
  if (pixel == 1) {
    turn_block(to, channels, from, channel, n, channels, sizeof *to);
    return;
  }
  for (int64_t i = 0; i < n; i++)
    for (int64_t k = 0; k < channels; k++) to[i * channels + k] = from[i * pixel + k * channel];
}

/* Pixels [begin, end) of a line of x, zeros outside it. The elements after them may be overwritten. */
static void copy_line(const conv *c, const float *line, int64_t begin, int64_t end, float *to) {
  const int64_t channels = c->last.channels, columns = c->last.window.axis[2].in;
  const int64_t first = begin < 0 ? 0 : begin, last = end < columns ? end : columns;
  const int64_t n = last > first ? (last - first) * channels : 0, left = (first - begin) * channels;
  const int64_t right = (end - begin) * channels;
  for (int64_t k = 0; k < left && k < right; k += VF_LANES) vf_store(to + k, vf_zero());
  to += left;
  int64_t k = 0;
  if (c->is_turned) {
    turn_pixels(c, line + first * c->last.axis_stride[2], n / channels, to);
    for (k = n; k < right - left; k += VF_LANES) vf_store(to + k, vf_zero());
    return;
  }
  const float *from = line + first * channels;
  for (; k + VF_LANES <= n; k += VF_LANES) vf_store(to + k, vf_load(from + k));
  for (; k < right - left; k += VF_LANES) vf_store(to + k, k < n ? vf_load_n(from + k, n - k) : vf_zero());
}

/* The lines of x under the pixels of a piece, which are on one line. What a copy writes past its end is overwritten by
 * the next one. */
static void fill_lines(const conv *c, const worker *w, const piece *p) {
  const berth__window_axis *axis = c->last.window.axis;
  const berth__last_pixel pixel = berth__last_pixel_of(&c->last, p->first);
  const int64_t begin = berth__window_input(&axis[2], pixel.at[2], 0);
  const int64_t end = begin + (p->last - p->first - 1) * axis[2].stride + axis[2].kernel;
  const bool is_inside = begin >= 0 && end <= axis[2].in && !c->is_turned;
  float *copies = w->copies;
  for (int64_t tap = p->tap; tap < p->end; tap++) {
    const float *line = taps_line(&c->last, c->x, &pixel, tap / axis[1].kernel, tap % axis[1].kernel);
    w->rows[tap] = line == NULL ? w->zeros : is_inside ? line + begin * c->last.channels : copies;
    if (line == NULL || is_inside) continue;
    copy_line(c, line, begin, end, copies);
    copies += patch_step(c);
  }
}

/* Copies a tile of pixels that the block will overwrite. */
static float *copy_pixels(const conv *c, float *copies, int64_t first, int64_t n, const float **rows) {
  if (c->is_plain && c->last.axis_stride[2] == c->depth) { /* contiguous */
    memcpy(copies, c->x + first * c->depth, (size_t)(n * c->depth) * sizeof *copies);
    for (int64_t r = 0; r < n; r++) rows[r] = copies + r * c->depth;
    return copies + n * c->depth;
  }
  berth__last_pixel pixel = berth__last_pixel_of(&c->last, first);
  for (int64_t r = 0; r < n; r++, copies += c->depth, taps_skip(&c->last, &pixel, 1)) {
    memcpy(copies, c->x + berth__last_input(&c->last, &pixel, 0), (size_t)c->depth * sizeof *copies);
    rows[r] = copies;
  }
  return copies;
}

static void fill_tables(const conv *c, const worker *w, int64_t group, const piece *p) {
  const float *x = c->x + group * c->depth;
  const int64_t first = p->first, last = p->last;
  float *copies = w->copies;
  if (c->merges) {
    fill_lines(c, w, p);
    return;
  }
  if (c->step != 0) {
    w->rows[0] = x + first * c->step;
    return;
  }
  gemm_tiles tiles = gemm_tiles_of(last - first, c->height);
  for (int64_t pixel = first, n; pixel < last; pixel += n) {
    n = gemm_tiles_next(&tiles);
    const float **rows = w->rows + (pixel - first) * c->taps;
    if (c->in_place_over)
      copies = copy_pixels(c, copies, pixel, n, rows);
    else
      taps_fill(&c->last, x, w->zeros + group * c->depth, pixel, n, rows);
  }
}

/* Moves the tables to the next group: its channels follow, in x as in the zeros. */
static void move_tables(const conv *c, const worker *w, int64_t n_pixels) {
  for (int64_t k = 0; k < (c->step != 0 ? 1 : n_pixels) * c->taps; k++) w->rows[k] += c->depth;
}

/* One panel of a group. The sums of later passes start with the results of the pass before, so that the number of
 * passes, which depends on the extents of x, changes no bit. */
static void conv_last_kernel_run_panel(const conv *c, const worker *w, int64_t group, int64_t panel, const piece *p) {
  const int64_t column = group * c->outputs + panel * VF_PANEL, left = c->outputs - panel * VF_PANEL;
  const int64_t from = ((group * c->panels + panel) * c->taps + p->tap) * c->depth * VF_PANEL;
  const bool is_first = p->tap == 0, is_last = p->end == c->taps;
  gemm_tile tile = {
      .taps = p->end - p->tap,
      .depth = c->depth,
      .row_step = c->step,
      .panel = c->halves == NULL ? c->weight + from : NULL,
      .halves = c->halves != NULL ? c->halves + from : NULL,
      .bias = is_first && c->bias != NULL ? c->bias + column : NULL,
      .bias_stride = is_first ? 0 : c->last.outputs,
      .out_stride = c->last.outputs,
      .columns = left < VF_PANEL ? left : VF_PANEL,
      .low = is_last ? c->epilogue.low : -INFINITY,
      .high = is_last ? c->epilogue.high : INFINITY,
  };
  gemm_tiles tiles = gemm_tiles_of(p->last - p->first, c->height);
  for (int64_t pixel = p->first, n; pixel < p->last; pixel += n) {
    n = gemm_tiles_next(&tiles);
    tile.rows = w->rows + (c->step != 0 ? p->tap : (pixel - p->first) * c->taps);
    tile.row_offset = (pixel - p->first) * c->step;
    tile.out = c->out + pixel * c->last.outputs + column;
    if (!is_first) tile.bias = tile.out;
    tile.also = c->sum != NULL ? c->sum + pixel * c->last.outputs + column : NULL;
    gemm_tile_run(&tile, n);
  }
}

static int64_t column_of(const conv *c, int64_t panel) {
  const int64_t inside = panel % c->panels * VF_PANEL;
  return panel / c->panels * c->outputs + (inside < c->outputs ? inside : c->outputs);
}

static void conv_last_kernel_run_item(const conv *c, const worker *w, int64_t item) {
  const int64_t block = item % c->blocks, all = c->group * c->panels;
  const int64_t line = c->merges ? block / c->line_blocks * c->last.window.axis[2].out : 0;
  const int64_t end_of_line = c->merges ? line + c->last.window.axis[2].out : c->pixels;
  const int64_t first = line + (c->merges ? block % c->line_blocks : block) * c->block;
  const int64_t last = first + c->block < end_of_line ? first + c->block : end_of_line;
  const int64_t begin = item / c->blocks * c->chunk, end = begin + c->chunk < all ? begin + c->chunk : all;
  for (int64_t tap = 0, after; tap < c->taps; tap = after) {
    after = tap + c->together < c->taps ? tap + c->together : c->taps;
    const piece p = {first, last, tap, after};
    for (int64_t panel = begin; panel < end; panel++) {
      if (panel == begin)
        fill_tables(c, w, panel / c->panels, &p);
      else if (panel % c->panels == 0)
        move_tables(c, w, last - first);
      conv_last_kernel_run_panel(c, w, panel / c->panels, panel % c->panels, &p);
    }
  }
  const int64_t column = column_of(c, begin);
  epilogue_finish(&c->epilogue, first, last - first, column, column_of(c, end) - column);
}

static berth_status conv_last_kernel_run(const berth_op_call *call, berth_error *err) {
  conv c;
  (void)err;
  conv_last_kernel_read_shape(call, &c);
  c.x = call->in[0].data;
  c.weight = call->in[1].data;
  c.halves = call->in[1].type == BERTH_F16 ? call->in[1].data : NULL;
  c.bias = c.last.has_bias ? call->in[BERTH__LAST_BIAS].data : NULL;
  c.out = call->out[0].data;
  c.sum = call->attrs[BERTH__LAST_ADDS].i != 0 ? call->in[BERTH__EPILOGUE_SUM].data : NULL;
  epilogue_read(&c.epilogue, call, berth__epilogue_first(&call->attrs[BERTH__LAST_ADDS]),
                &call->attrs[BERTH__LAST_CODE], &call->attrs[BERTH__LAST_NUMBERS]);
  const uint64_t zeros = conv_last_kernel_zeros_size(&c), table = table_size(&c);
  void *after_zeros = berth__cpu_after_zeros(call->scratch, zeros);
  const float *few[TABLE_ON_STACK];
  const worker w = {.zeros = berth__cpu_zeros_in(call->scratch, zeros),
                    .rows = table == 0 ? few : (const float **)after_zeros,
                    .copies = table == 0 ? after_zeros : (float *)(void *)((char *)after_zeros + table)};
  for (int64_t item = call->begin; item < call->end; item++) conv_last_kernel_run_item(&c, &w, item);
  return BERTH_OK;
}

const berth__cpu_kernel BERTH__PER_ISA(berth__kernels_conv_last)[] = {
    {"conv_last", BERTH__OP_conv_last, conv_last_kernel_takes, conv_last_kernel_items, conv_last_kernel_grain,
     conv_last_kernel_scratch, conv_last_kernel_run, NULL, false, conv_last_kernel_scratch_most},
    {0},
};
