/* conv_winograd in blocks of tiles. The tiles of x are transformed into scratch, as one matrix [tiles, C] for each of
 * the size * size values of a tile. Then, panel by panel of the outputs, every one of these is multiplied by its
 * weights (gemm_tile.h), and the products of a tile are transformed back into pixels of the result. */
#include "device/cpu/kernels/conv_takes.h"
#include "device/cpu/kernels/gemm_tile.h"
#include "device/cpu/kernels/inlined.h"
#include "device/cpu/zeros.h"
#include "ops/operand.h"

#define SIZE 6 /* the larger of two: tiles of 4 come from 6 x 6 inputs, tiles of 2 from 4 x 4 */
#define BLOCK_BYTES (288 << 10)
#define LEAST_BLOCK_BYTES (32 << 10)  /* per item; small images get */
#define SMALL_IMAGE_BYTES (128 << 10) /* only half of what the image and the result take */
#define ITEMS_WANTED 8
#define LEAST_CHUNK 2
/* More tiles in a block than these are no faster. With many channels, the L2 cache is better left to the weights. */
#define MOST_TILES GEMM_ROWS
#define MOST_TILES_OF_MANY (GEMM_ROWS < 8 ? GEMM_ROWS : 8)
#define MANY_CHANNELS 64

typedef struct winograd {
  berth__last last;
  int64_t tile, size, values;  /* values: size * size */
  int64_t down, across, tiles; /* per image; in all */
  int64_t most, block, blocks; /* tiles per item, at most, and as they are cut */
  int64_t panels, chunk, chunks;
  int64_t row, value;                   /* strides of the transformed tiles: between tiles, between values */
  int64_t product, product_value;       /* the same of the products */
  const float *x, *weight, *bias, *sum; /* bias and sum may be NULL */
  float *out;
  epilogue_form epilogue;
} winograd;

static int64_t winograd_kernel_ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

/* Scratch for a block of tiles. It should not dominate the arena of a small model. */
static int64_t block_bytes(const berth_op_call *call) {
  const int64_t image = 4 * (berth__count(&call->in[0]) + berth__count(&call->out[0]));
  const int64_t wanted = image > SMALL_IMAGE_BYTES ? image : image / 2;
  return wanted > BLOCK_BYTES ? BLOCK_BYTES : wanted > LEAST_BLOCK_BYTES ? wanted : LEAST_BLOCK_BYTES;
}

static void winograd_kernel_set_strides(winograd *c) {
  c->value = c->block * c->row + 16;
  c->product_value = c->block * c->product + 16;
}

static void winograd_kernel_read_shape(const berth_op_call *call, winograd *c) {
  berth__winograd_read(call, &c->last);
  const berth__window_axis *w = c->last.window.axis;
  c->tile = call->attrs[BERTH__WINOGRAD_TILE].i;
  c->size = c->tile + 2;
  c->values = c->size * c->size;
  c->down = winograd_kernel_ceil_div(w[1].out, c->tile);
  c->across = winograd_kernel_ceil_div(w[2].out, c->tile);
  c->tiles = c->last.images * c->down * c->across;
  c->row = winograd_kernel_ceil_div(c->last.channels, 16) * 16;
  if (c->row % 512 == 0) c->row += 16; /* rows must not share a set of the L1 cache */
  c->product = c->last.outputs <= VF_LANES ? VF_LANES : VF_PANEL;
  const int64_t room = block_bytes(call) / (4 * c->values * (c->row + VF_PANEL));
  const int64_t most = c->last.channels < MANY_CHANNELS ? MOST_TILES : MOST_TILES_OF_MANY;
  c->most = room < 1 ? 1 : room < most ? room : most;
  c->blocks = winograd_kernel_ceil_div(c->tiles, c->most);
  c->block = winograd_kernel_ceil_div(c->tiles, c->blocks);
  winograd_kernel_set_strides(c);
  c->panels = winograd_kernel_ceil_div(c->last.outputs, VF_PANEL);
  const int64_t wanted = winograd_kernel_ceil_div(ITEMS_WANTED, c->blocks),
                least = winograd_kernel_ceil_div(c->panels, wanted);
  c->chunk = least < LEAST_CHUNK ? (c->panels < LEAST_CHUNK ? c->panels : LEAST_CHUNK) : least;
  c->chunks = winograd_kernel_ceil_div(c->panels, c->chunk);
}

static bool winograd_kernel_takes(const berth_op_call *call) {
  return conv_takes(call) && call->attrs[BERTH__WINOGRAD_PANEL].i == VF_PANEL;
}

static int64_t winograd_kernel_items(const berth_op_call *call) {
  winograd c;
  winograd_kernel_read_shape(call, &c);
  return c.blocks * c.chunks;
}

/* About 12 microseconds of work. */
static int64_t winograd_kernel_grain(const berth_op_call *call) {
  winograd c;
  winograd_kernel_read_shape(call, &c);
  return 1 + 600000 / (c.block * c.values * c.last.channels * c.chunk * c.product + 1);
}

static uint64_t winograd_kernel_zeros_row(const winograd *c) { return (uint64_t)c->row * sizeof(float); }
static uint64_t winograd_kernel_zeros_size(const winograd *c) {
  return berth__cpu_zeros_scratch(winograd_kernel_zeros_row(c));
}
static uint64_t inputs_size(const winograd *c) { return (uint64_t)(c->values * c->value) * sizeof(float); }
static uint64_t products_size(const winograd *c) { return (uint64_t)(c->values * c->product_value) * sizeof(float); }

static uint64_t winograd_kernel_scratch(const berth_op_call *call) {
  winograd c;
  winograd_kernel_read_shape(call, &c);
  return winograd_kernel_zeros_size(&c) + inputs_size(&c) + products_size(&c);
}

/* Fewer tiles may be cut into larger blocks. */
static uint64_t winograd_kernel_scratch_most(const berth_op_call *call) {
  winograd c;
  winograd_kernel_read_shape(call, &c);
  c.block = c.tiles < c.most ? c.tiles : c.most;
  winograd_kernel_set_strides(&c);
  return winograd_kernel_zeros_size(&c) + inputs_size(&c) + products_size(&c);
}

/* The transforms of one line of a tile; the points are 0, +-a and +-1/a with a = sqrt(1/2) for tiles of 4, and 0 and
 * +-1 for tiles of 2 (berth__winograd_matrices). */
#define A 0.70710678118654752f
#define B 1.41421356237309505f

INLINED void inputs_4(const vf *d, vf *t) {
  const vf two = vf_set1(2), half = vf_set1(0.5f), both = vf_set1(2.5f), a = vf_set1(A), b = vf_set1(B);
  const vf even_a = vf_fnma(two, d[2], d[4]), odd_a = vf_fnma(two, d[1], d[3]);
  const vf even_b = vf_fnma(half, d[2], d[4]), odd_b = vf_fnma(half, d[1], d[3]);
  t[0] = vf_fnma(both, d[2], d[0] + d[4]);
  t[1] = vf_fma(a, odd_a, even_a);
  t[2] = vf_fnma(a, odd_a, even_a);
  t[3] = vf_fma(b, odd_b, even_b);
  t[4] = vf_fnma(b, odd_b, even_b);
  t[5] = vf_fnma(both, d[3], d[1] + d[5]);
}

INLINED void outputs_4(const vf *m, vf *y) {
  const vf two = vf_set1(2), half = vf_set1(0.5f), a = vf_set1(A), b = vf_set1(B);
  const vf sum_a = m[1] + m[2], sum_b = m[3] + m[4], odd_a = a * (m[1] - m[2]), odd_b = b * (m[3] - m[4]);
  y[0] = m[0] + sum_a + sum_b;
  y[1] = odd_a + odd_b;
  y[2] = vf_fma(half, sum_a, two * sum_b);
  y[3] = vf_fma(half, odd_a, vf_fma(two, odd_b, m[5]));
}

INLINED void inputs_2(const vf *d, vf *t) {
  t[0] = d[2] - d[0];
  t[1] = d[2] + d[1];
  t[2] = d[2] - d[1];
  t[3] = d[3] - d[1];
}

INLINED void outputs_2(const vf *m, vf *y) {
  y[0] = m[0] + m[1] + m[2];
  y[1] = m[1] - m[2] + m[3];
}

/* `tile` is a constant when these are inlined. */
INLINED void inputs_of(const int tile, const vf *d, vf *t) {
  if (tile == 4)
    inputs_4(d, t);
  else
    inputs_2(d, t);
}
INLINED void winograd_kernel_outputs_of(const int tile, const vf *m, vf *y) {
  if (tile == 4)
    outputs_4(m, y);
  else
    outputs_2(m, y);
}

/* One vector of channels of a tile of x: `from` has its pixels, the last axis innermost. */
INLINED void transform_channels(const int tile, const float *const *from, int64_t channel, int64_t left, float *to,
                                int64_t value) {
  const int size = tile + 2;
  vf half_way[SIZE][SIZE], line[SIZE], done[SIZE];
  for (int k = 0; k < size; k++) {
    for (int i = 0; i < size; i++)
      line[i] =
          left >= VF_LANES ? vf_load(from[i * size + k] + channel) : vf_load_n(from[i * size + k] + channel, left);
    inputs_of(tile, line, done);
    for (int i = 0; i < size; i++) half_way[i][k] = done[i];
  }
  for (int i = 0; i < size; i++) {
    inputs_of(tile, half_way[i], done);
    for (int k = 0; k < size; k++) {
      float *at = to + (i * size + k) * value + channel;
      if (left >= VF_LANES)
        vf_store(at, done[k]);
      else
        vf_store_n(at, done[k], left);
    }
  }
}

static void transform_4(const winograd *c, const float *const *from, float *to) {
  for (int64_t channel = 0; channel < c->last.channels; channel += VF_LANES)
    transform_channels(4, from, channel, c->last.channels - channel, to, c->value);
}
static void transform_2(const winograd *c, const float *const *from, float *to) {
  for (int64_t channel = 0; channel < c->last.channels; channel += VF_LANES)
    transform_channels(2, from, channel, c->last.channels - channel, to, c->value);
}

typedef struct place {
  int64_t image, row, column; /* the first pixel of the tile in the result */
} place;

static place winograd_kernel_place_of(const winograd *c, int64_t tile) {
  return (place){tile / c->across / c->down, tile / c->across % c->down * c->tile, tile % c->across * c->tile};
}

static void transform_tile(const winograd *c, const float *zeros, int64_t tile, float *to) {
  const berth__window_axis *w = c->last.window.axis;
  const place at = winograd_kernel_place_of(c, tile);
  const float *from[SIZE * SIZE];
  for (int64_t i = 0; i < c->size; i++)
    for (int64_t k = 0; k < c->size; k++) {
      const int64_t row = at.row - w[1].begin + i, column = at.column - w[2].begin + k;
      const bool is_inside = row >= 0 && row < w[1].in && column >= 0 && column < w[2].in;
      from[i * c->size + k] = is_inside ? c->x + at.image * c->last.image_stride + row * c->last.axis_stride[1] +
                                              column * c->last.axis_stride[2]
                                        : zeros;
    }
  if (c->tile == 4)
    transform_4(c, from, to);
  else
    transform_2(c, from, to);
}

/* All values of a block for one panel. */
static void winograd_kernel_multiply(const winograd *c, const float *inputs, float *products, int64_t n_tiles,
                                     int64_t panel) {
  const int64_t columns = c->last.outputs - panel * VF_PANEL;
  const gemm_tiles tiles = gemm_tiles_of(n_tiles, gemm_tile_height(n_tiles, c->row));
  const float *rows[GEMM_ROWS];
  gemm_tile tile = {.rows = rows,
                    .taps = 1,
                    .depth = c->last.channels,
                    .out_stride = c->product,
                    .columns = columns < VF_PANEL ? columns : VF_PANEL,
                    .low = -INFINITY,
                    .high = INFINITY};
  for (int64_t value = 0; value < c->values; value++) {
    tile.panel = c->weight + (value * c->panels + panel) * c->last.channels * VF_PANEL;
    gemm_tiles left = tiles;
    for (int64_t first = 0, n; first < n_tiles; first += n) {
      n = gemm_tiles_next(&left);
      for (int64_t r = 0; r < n; r++) rows[r] = inputs + value * c->value + (first + r) * c->row;
      tile.out = products + value * c->product_value + first * c->product;
      gemm_tile_run(&tile, n);
    }
  }
}

/* Transforms one vector of outputs of a tile back into the result, from element `at` on: n_rows x n_columns of its
 * pixels exist. */
INLINED void restore_channels(const int tile, const winograd *c, const float *products, vf first, int64_t left,
                              int64_t at, int64_t n_rows, int64_t n_columns) {
  const int size = tile + 2;
  const vf low = vf_set1(c->epilogue.low), high = vf_set1(c->epilogue.high);
  vf half_way[SIZE][SIZE], line[SIZE], done[SIZE];
  for (int k = 0; k < size; k++) {
    for (int i = 0; i < size; i++) line[i] = vf_load(products + (i * size + k) * c->product_value);
    winograd_kernel_outputs_of(tile, line, done);
    for (int i = 0; i < tile; i++) half_way[i][k] = done[i];
  }
  for (int i = 0; i < tile; i++) {
    if (i >= n_rows) break;
    winograd_kernel_outputs_of(tile, half_way[i], done);
    int64_t to = at + i * c->last.window.axis[2].out * c->last.outputs;
    for (int k = 0; k < tile; k++, to += c->last.outputs) {
      if (k >= n_columns) break;
      vf result = done[k] + first;
      if (c->sum != NULL) result = result + vf_load_n(c->sum + to, vf_tail(left));
      result = vf_min(high, vf_max(low, result));
      if (left >= VF_LANES)
        vf_store(c->out + to, result);
      else
        vf_store_n(c->out + to, result, left);
    }
  }
}

INLINED void restore_tile(const int tile, const winograd *c, const float *products, int64_t index, int64_t panel) {
  const berth__window_axis *w = c->last.window.axis;
  const place at = winograd_kernel_place_of(c, index);
  const int64_t n_rows = w[1].out - at.row, n_columns = w[2].out - at.column;
  const int64_t pixel = (at.image * w[1].out + at.row) * w[2].out + at.column;
  for (int64_t v = 0; v < VF_PANEL; v += VF_LANES) {
    const int64_t column = panel * VF_PANEL + v, left = c->last.outputs - column;
    if (left <= 0) return;
    const vf first = c->bias == NULL ? vf_zero() : vf_load_n(c->bias + column, vf_tail(left));
    restore_channels(tile, c, products + v, first, left, pixel * c->last.outputs + column, n_rows, n_columns);
  }
}

static void restore_4(const winograd *c, const float *products, int64_t index, int64_t panel) {
  restore_tile(4, c, products, index, panel);
}
static void restore_2(const winograd *c, const float *products, int64_t index, int64_t panel) {
  restore_tile(2, c, products, index, panel);
}

/* The epilogue on the pixels of tiles [first, last): along the lines that neighbours share. */
static void run_epilogue(const winograd *c, int64_t first, int64_t last, int64_t column, int64_t n_columns) {
  const berth__window_axis *w = c->last.window.axis;
  while (first < last) {
    const place at = winograd_kernel_place_of(c, first);
    const int64_t rest = c->across - first % c->across, n = last - first < rest ? last - first : rest;
    const int64_t end = at.column + n * c->tile < w[2].out ? at.column + n * c->tile : w[2].out;
    for (int64_t row = at.row; row < at.row + c->tile && row < w[1].out; row++)
      epilogue_finish(&c->epilogue, (at.image * w[1].out + row) * w[2].out + at.column, end - at.column, column,
                      n_columns);
    first += n;
  }
}

static void winograd_kernel_run_item(const winograd *c, const float *zeros, void *memory, int64_t item) {
  float *inputs = berth__cpu_after_zeros(memory, winograd_kernel_zeros_row(c));
  float *products = inputs + c->values * c->value;
  const int64_t first = item % c->blocks * c->block;
  const int64_t last = first + c->block < c->tiles ? first + c->block : c->tiles;
  const int64_t begin = item / c->blocks * c->chunk, end = begin + c->chunk < c->panels ? begin + c->chunk : c->panels;
  for (int64_t tile = first; tile < last; tile++) transform_tile(c, zeros, tile, inputs + (tile - first) * c->row);
  for (int64_t panel = begin; panel < end; panel++) {
    winograd_kernel_multiply(c, inputs, products, last - first, panel);
    for (int64_t tile = first; tile < last; tile++)
      (c->tile == 4 ? restore_4 : restore_2)(c, products + (tile - first) * c->product, tile, panel);
  }
  const int64_t column = begin * VF_PANEL, stop = end * VF_PANEL < c->last.outputs ? end * VF_PANEL : c->last.outputs;
  if (c->epilogue.is_chain) run_epilogue(c, first, last, column, stop - column);
}

static berth_status winograd_kernel_run(const berth_op_call *call, berth_error *err) {
  winograd c;
  (void)err;
  winograd_kernel_read_shape(call, &c);
  c.x = call->in[0].data;
  c.weight = call->in[1].data;
  c.bias = c.last.has_bias ? call->in[BERTH__LAST_BIAS].data : NULL;
  c.out = call->out[0].data;
  c.sum = call->attrs[BERTH__WINOGRAD_ADDS].i != 0 ? call->in[BERTH__EPILOGUE_SUM].data : NULL;
  epilogue_read(&c.epilogue, call, berth__epilogue_first(&call->attrs[BERTH__WINOGRAD_ADDS]),
                &call->attrs[BERTH__WINOGRAD_CODE], &call->attrs[BERTH__WINOGRAD_NUMBERS]);
  const float *zeros = berth__cpu_zeros_in(call->scratch, winograd_kernel_zeros_row(&c));
  for (int64_t item = call->begin; item < call->end; item++) winograd_kernel_run_item(&c, zeros, call->scratch, item);
  return BERTH_OK;
}

/* ---- Weights -------------------------------------------------------------------------------------------------- */

static bool pack_takes(const berth_op_call *call) { return call->out[0].dim[3] <= VF_PANEL; }

static int64_t winograd_kernel_pack_items(const berth_op_call *call) { return call->out[0].dim[1]; }

/* The kernels of one channel for the outputs of a panel, tap after tap. */
static void winograd_kernel_gather(const berth_op_call *call, int64_t channel, int64_t first, int64_t n,
                                   float kernel[9][VF_PANEL]) {
  const berth_tensor *w = &call->in[0], *scale = &call->in[1];
  const int64_t from = channel * w->stride[2] + first * w->stride[3], size = (int64_t)berth_type_size(w->type);
  const bool scales = berth__call_has(call, 1);
  memset(kernel, 0, 9 * sizeof *kernel);
  for (int64_t o = 0; o < n; o++) {
    const float factor = scales ? ((const float *)scale->data)[(first + o) * scale->stride[0]] : 1.0f;
    for (int64_t tap = 0; tap < 9; tap++) {
      const int64_t at = from + o * w->stride[3] + tap / 3 * w->stride[0] + tap % 3 * w->stride[1];
      chain_load(&kernel[tap][o], w->type, (const char *)w->data + at * size, 1, 1);
      kernel[tap][o] *= factor;
    }
  }
}

static void winograd_kernel_pack_row(const berth__winograd *m, const float kernel[9][VF_PANEL], int64_t n, float *to,
                                     int64_t value) {
  double half_way[SIZE][3][VF_PANEL];
  for (int64_t i = 0; i < m->size; i++)
    for (int64_t k = 0; k < 3; k++)
      for (int64_t o = 0; o < n; o++)
        half_way[i][k][o] = m->kernel_side[i][0] * (double)kernel[k][o] +
                            m->kernel_side[i][1] * (double)kernel[3 + k][o] +
                            m->kernel_side[i][2] * (double)kernel[6 + k][o];
  for (int64_t i = 0; i < m->size; i++)
    for (int64_t k = 0; k < m->size; k++)
      for (int64_t o = 0; o < n; o++)
        to[(i * m->size + k) * value + o] = (float)berth__packed_weight(m->kernel_side[k][0] * half_way[i][0][o] +
                                                                        m->kernel_side[k][1] * half_way[i][1][o] +
                                                                        m->kernel_side[k][2] * half_way[i][2][o]);
}

static berth_status pack_run(const berth_op_call *call, berth_error *err) {
  const berth_tensor *out = &call->out[0];
  const int64_t channels = out->dim[2], panel = out->dim[3], outputs = call->in[0].dim[3];
  berth__winograd m;
  float kernel[9][VF_PANEL];
  (void)err;
  berth__winograd_matrices(out->dim[0] == 16 ? 2 : 4, &m);
  for (int64_t item = call->begin; item < call->end; item++)
    for (int64_t channel = 0; channel < channels; channel++) {
      const int64_t first = item * panel, left = outputs - first;
      winograd_kernel_gather(call, channel, first, left < panel ? left : panel, kernel);
      winograd_kernel_pack_row(&m, (const float(*)[VF_PANEL])kernel, panel,
                               (float *)out->data + (item * channels + channel) * panel,
                               out->dim[1] * channels * panel);
    }
  return BERTH_OK;
}

const berth__cpu_kernel BERTH__PER_ISA(berth__kernels_winograd)[] = {
    {"conv_winograd", BERTH__OP_conv_winograd, winograd_kernel_takes, winograd_kernel_items, winograd_kernel_grain,
     winograd_kernel_scratch, winograd_kernel_run, NULL, false, winograd_kernel_scratch_most},
    {"pack_winograd", BERTH__OP_pack_winograd, pack_takes, winograd_kernel_pack_items, NULL, NULL, pack_run, NULL,
     false, NULL},
    {0},
};
