/* conv_last: an implicit product. A block of pixels of the result gets a table of where every tap of its windows lies
 * in x (taps.h); then the register tiles of products (gemm_tile.h) go over it, panel by panel of the weights, so that a
 * panel serves the whole block while it is in the second cache. Nothing of x is copied but windows that cross the left
 * or right border, where few channels make a whole line of a kernel one run of elements; and, where the result may lie
 * over x (`over`), the pixels of a block, which then has all panels. */
#include "device/cpu/kernels/conv_takes.h"
#include "device/cpu/kernels/gemm_tile.h"
#include "device/cpu/kernels/taps.h"

#define BLOCK_TILES 8
#define BLOCK_BYTES (256 << 10) /* of x, for the windows of a block */
#define COPY_BYTES (16 << 10)   /* of scratch */
#define OVER_BYTES (32 << 10)   /* likewise, for the pixels of a block that is written over */
#define ITEMS_WANTED 16
#define ITEM_WORK                                                                                     \
  150000 /* multiplications, at least, or panels are not shared out: each share makes the tables anew \
          */
#define FEW_CHANNELS 8
#define MOST_TAPS 4096

typedef struct conv {
  berth__last last;
  int64_t group, depth, taps;           /* a row of the product: `taps` runs of `depth` elements */
  bool merges;                          /* a run is a line of the kernel, not one tap */
  bool is_plain;                        /* runs are pixels of x, one after the other */
  bool in_place_over;                   /* they are written over: a block is copied first */
  int64_t outputs, panels;              /* of a group */
  int64_t pixels, height, block;        /* of a tile; of an item */
  int64_t blocks, chunk, chunks;        /* panels of an item */
  const float *x, *weight, *bias, *sum; /* bias and sum may be NULL */
  const uint16_t *halves;               /* the weight where it is f16; otherwise NULL */
  float *out;
  epilogue_form epilogue;
} conv;

static int64_t conv_last_kernel_ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

/* Every window is one pixel, and pixels lie one after the other. */
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

/* Into how many items it is cut: some for every thread, but not where they would be too small to share. */
static int64_t items_wanted(const conv *c) {
  const int64_t each = c->taps * c->depth * c->last.outputs, most = ITEMS_WANTED * (int64_t)ITEM_WORK;
  const int64_t work = each >= most || c->pixels >= most / (each > 0 ? each : 1) ? most : c->pixels * each;
  return work < ITEM_WORK ? 1 : work / ITEM_WORK;
}

static void conv_last_kernel_read_shape(const berth_op_call *call, conv *c) {
  berth__last_read(call, &c->last);
  const berth__window_axis *w = c->last.window.axis;
  c->group = call->attrs[BERTH__LAST_GROUP].i;
  c->depth = c->last.channels / c->group;
  c->taps = berth__window_taps(&c->last.window);
  c->merges = c->group == 1 && c->depth <= FEW_CHANNELS && w[2].kernel > 1 && w[2].dilation == 1 &&
              c->last.axis_stride[2] == c->depth;
  if (c->merges) {
    c->taps /= w[2].kernel;
    c->depth *= w[2].kernel;
  }
  c->is_plain = windows_are_pixels(&c->last);
  c->in_place_over = call->attrs[BERTH__LAST_OVER].i != 0;
  c->outputs = c->last.outputs / c->group;
  c->panels = conv_last_kernel_ceil_div(c->outputs, VF_PANEL);
  c->pixels = taps_pixels(&c->last);
  c->height = gemm_tile_height(c->pixels, w[2].stride * c->last.axis_stride[2]);
  const int64_t room = BLOCK_BYTES / (4 * c->last.channels * w[2].stride * w[1].stride * c->height + 1) + 1;
  const int64_t tiles = conv_last_kernel_ceil_div(c->pixels, c->height), all = c->group * c->panels;
  const int64_t share =
      tiles * (c->in_place_over ? 1 : all) / ITEMS_WANTED; /* tiles of an item where there are few panels */
  int64_t most = room < BLOCK_TILES ? room : BLOCK_TILES;
  if (share < most) most = share < 1 ? 1 : share;
  if (c->merges || c->in_place_over) { /* copies are scratch: not much of it */
    const int64_t fits = (c->in_place_over ? OVER_BYTES : COPY_BYTES) / (4 * c->height * c->taps * c->depth);
    most = fits < 1 ? 1 : fits < most ? fits : most;
  }
  c->block = conv_last_kernel_ceil_div(tiles, conv_last_kernel_ceil_div(tiles, most)) * c->height;
  c->blocks = conv_last_kernel_ceil_div(c->pixels, c->block);
  const int64_t wanted = c->in_place_over ? 1 : conv_last_kernel_ceil_div(items_wanted(c), c->blocks);
  c->chunk = conv_last_kernel_ceil_div(all, wanted < all ? wanted : all);
  c->chunks = conv_last_kernel_ceil_div(all, c->chunk);
}

static bool conv_last_kernel_takes(const berth_op_call *call) {
  berth__last last;
  if (!conv_takes(call) || call->attrs[BERTH__LAST_PANEL].i != VF_PANEL) return false;
  berth__last_read(call, &last);
  return berth__window_taps(&last.window) <= MOST_TAPS;
}

static int64_t conv_last_kernel_items(const berth_op_call *call) {
  conv c;
  conv_last_kernel_read_shape(call, &c);
  return c.blocks * c.chunks;
}

/* About 12 microseconds. */
static int64_t conv_last_kernel_grain(const berth_op_call *call) {
  conv c;
  conv_last_kernel_read_shape(call, &c);
  return 1 + 600000 / (c.block * c.taps * c.depth * c.chunk * VF_PANEL + 1);
}

/* Scratch: a row of zeros; the table; copies of runs across borders. */
static uint64_t conv_last_kernel_zeros_size(const conv *c) {
  const int64_t most = c->depth > c->last.channels ? c->depth : c->last.channels;
  return ((uint64_t)most * sizeof(float) + 63) / 64 * 64;
}
static uint64_t table_size(const conv *c) { return ((uint64_t)(c->block * c->taps) * sizeof(float *) + 63) / 64 * 64; }

static uint64_t conv_last_kernel_scratch(const berth_op_call *call) {
  conv c;
  conv_last_kernel_read_shape(call, &c);
  const bool copies = c.merges || c.in_place_over;
  return conv_last_kernel_zeros_size(&c) + table_size(&c) +
         (copies ? (uint64_t)(c.block * c.taps * c.depth) * sizeof(float) : 0);
}

typedef struct worker {
  float *zeros, *copies;
  const float **rows;
} worker;

/* A run that crosses the left or right border, with zeros outside. */
static void copy_run(const conv *c, const float *line, int64_t begin, float *to) {
  const int64_t columns = c->last.window.axis[2].in, channels = c->last.channels;
  const int64_t first = begin < 0 ? -begin : 0, kernel = c->last.window.axis[2].kernel;
  const int64_t last = columns - begin < kernel ? columns - begin : kernel;
  int64_t k = 0; /* a few elements: calls would take longer than these loops */
  for (; k < first * channels && k < c->depth; k++) to[k] = 0;
  for (; k < last * channels; k++) to[k] = line[begin * channels + k];
  for (; k < c->depth; k++) to[k] = 0;
}

/* One line of the kernel for a run of pixels, from column `begin` of a line of x on. Gives the place for the next
 * copies. */
static float *conv_last_kernel_fill_line(const conv *c, const worker *w, float *copies, const float *line,
                                         int64_t begin, int64_t run, const float **to) {
  const berth__window_axis *axis = &c->last.window.axis[2];
  const bool is_inside = line != NULL && begin >= 0 && begin + (run - 1) * axis->stride + axis->kernel <= axis->in;
  const int64_t step = is_inside ? axis->stride * c->last.channels : 0;
  const float *at = is_inside ? line + begin * c->last.channels : w->zeros;
  for (int64_t r = 0; r < run; r++) to[r] = at + r * step;
  if (is_inside || line == NULL) return copies;
  for (int64_t r = 0; r < run; r++, begin += axis->stride) {
    if (begin >= 0 && begin + axis->kernel <= axis->in) {
      to[r] = line + begin * c->last.channels;
      continue;
    }
    copy_run(c, line, begin, copies);
    to[r] = copies;
    copies += c->depth;
  }
  return copies;
}

/* The table of a tile where runs are lines of the kernel. */
static float *fill_lines(const conv *c, const worker *w, float *copies, int64_t first, int64_t n, const float **rows) {
  const berth__window_axis *axis = c->last.window.axis;
  berth__last_pixel pixel = berth__last_pixel_of(&c->last, first);
  for (int64_t r = 0, run; r < n; r += run, taps_skip(&c->last, &pixel, run)) {
    const float **to = rows + r;
    run = taps_run(&c->last, &pixel, n - r);
    for (int64_t k0 = 0; k0 < axis[0].kernel; k0++)
      for (int64_t k1 = 0; k1 < axis[1].kernel; k1++, to += n)
        copies = conv_last_kernel_fill_line(c, w, copies, taps_line(&c->last, c->x, &pixel, k0, k1),
                                            berth__window_input(&axis[2], pixel.at[2], 0), run, to);
  }
  return copies;
}

/* A tile of pixels that the block will write over. */
static float *copy_pixels(const conv *c, float *copies, int64_t first, int64_t n, const float **rows) {
  berth__last_pixel pixel = berth__last_pixel_of(&c->last, first);
  for (int64_t r = 0; r < n; r++, copies += c->depth, taps_skip(&c->last, &pixel, 1)) {
    memcpy(copies, c->x + berth__last_input(&c->last, &pixel, 0), (size_t)c->depth * sizeof *copies);
    rows[r] = copies;
  }
  return copies;
}

static void fill_tables(const conv *c, const worker *w, int64_t group, int64_t first, int64_t last) {
  const float *x = c->x + group * c->depth;
  float *copies = w->copies;
  for (int64_t pixel = first; pixel < last; pixel += c->height) {
    const int64_t n = last - pixel < c->height ? last - pixel : c->height;
    const float **rows = w->rows + (pixel - first) * c->taps;
    if (c->in_place_over)
      copies = copy_pixels(c, copies, pixel, n, rows);
    else if (c->is_plain)
      for (int64_t r = 0; r < n; r++) rows[r] = x + (pixel + r) * c->last.axis_stride[2];
    else if (c->merges)
      copies = fill_lines(c, w, copies, pixel, n, rows);
    else
      taps_fill(&c->last, x, w->zeros + group * c->depth, pixel, n, rows);
  }
}

/* The tables of the next group: its channels come after, in x as among the zeros. */
static void move_tables(const conv *c, const worker *w, int64_t n_pixels) {
  for (int64_t k = 0; k < n_pixels * c->taps; k++) w->rows[k] += c->depth;
}

/* Pixels [first, last) of one panel of a group. */
static void conv_last_kernel_run_panel(const conv *c, const worker *w, int64_t group, int64_t panel, int64_t first,
                                       int64_t last) {
  const int64_t column = group * c->outputs + panel * VF_PANEL, left = c->outputs - panel * VF_PANEL;
  const int64_t from = (group * c->panels + panel) * c->taps * c->depth * VF_PANEL;
  gemm_tile tile = {
      .taps = c->taps,
      .depth = c->depth,
      .panel = c->halves == NULL ? c->weight + from : NULL,
      .halves = c->halves != NULL ? c->halves + from : NULL,
      .bias = c->bias != NULL ? c->bias + column : NULL,
      .out_stride = c->last.outputs,
      .columns = left < VF_PANEL ? left : VF_PANEL,
      .low = c->epilogue.low,
      .high = c->epilogue.high,
  };
  for (int64_t pixel = first; pixel < last; pixel += c->height) {
    tile.rows = w->rows + (pixel - first) * c->taps;
    tile.out = c->out + pixel * c->last.outputs + column;
    tile.also = c->sum != NULL ? c->sum + pixel * c->last.outputs + column : NULL;
    gemm_tile_run(&tile, last - pixel < c->height ? last - pixel : c->height);
  }
}

static int64_t column_of(const conv *c, int64_t panel) {
  const int64_t inside = panel % c->panels * VF_PANEL;
  return panel / c->panels * c->outputs + (inside < c->outputs ? inside : c->outputs);
}

static void conv_last_kernel_run_item(const conv *c, const worker *w, int64_t item) {
  const int64_t first = item % c->blocks * c->block, all = c->group * c->panels;
  const int64_t last = first + c->block < c->pixels ? first + c->block : c->pixels;
  const int64_t begin = item / c->blocks * c->chunk, end = begin + c->chunk < all ? begin + c->chunk : all;
  for (int64_t panel = begin; panel < end; panel++) {
    if (panel == begin)
      fill_tables(c, w, panel / c->panels, first, last);
    else if (panel % c->panels == 0)
      move_tables(c, w, last - first);
    conv_last_kernel_run_panel(c, w, panel / c->panels, panel % c->panels, first, last);
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
  char *scratch = call->scratch;
  const worker w = {.zeros = (float *)(void *)scratch,
                    .rows = (const float **)(void *)(scratch + conv_last_kernel_zeros_size(&c)),
                    .copies = (float *)(void *)(scratch + conv_last_kernel_zeros_size(&c) + table_size(&c))};
  memset(w.zeros, 0, (size_t)conv_last_kernel_zeros_size(&c));
  for (int64_t item = call->begin; item < call->end; item++) conv_last_kernel_run_item(&c, &w, item);
  return BERTH_OK;
}

const berth__cpu_kernel BERTH__PER_ISA(berth__kernels_conv_last)[] = {
    {"conv_last", BERTH__OP_conv_last, conv_last_kernel_takes, conv_last_kernel_items, conv_last_kernel_grain,
     conv_last_kernel_scratch, conv_last_kernel_run, NULL, false},
    {0},
};
