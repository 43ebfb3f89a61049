/* qdepthwise for instruction sets with products of pairs of 16-bit numbers but none of four bytes (VI_HAS_PAIRS). Two
 * lines of a window are processed together: a column of both, as pairs of 16 bits, serves every pixel of a tile that
 * sees it. In an odd last line, neighbouring columns form the pairs. Weights are 16 bits, so that zero points can be
 * subtracted beforehand.
 *
 * The file's name sorts before qdepthwise, which takes all other calls (cmake/Kernels.cmake). */
#include "device/cpu/kernels/gemm_i8.h"
#include "device/cpu/kernels/inlined.h"
#include "ops/conv_last.h"
#include "ops/operand.h"

#if VI_HAS_PAIRS

#define WIDTH (2 * VF_LANES) /* channels per block */
#define PIXELS 4             /* per tile */
#define MOST_BLOCKS 8        /* per item: their data stays in the L1 cache */
#define MOST_LINES 15        /* per window */
#define MOST_KERNEL 5        /* per window */
#define MOST_COLUMNS ((PIXELS - 1) * 2 + MOST_KERNEL)
#define WORTH 80000 /* multiplications that are worth a thread */

/* What a block of channels needs besides its weights. */
typedef struct numbers {
  float scale[WIDTH], bias[WIDTH];
  int32_t start[WIDTH]; /* of the sums: subtracts the zero point of x, and adds an integer bias */
  bool is_bare;         /* storing a byte clamps it to its range, and there is no other clamp (VI_SATURATES) */
} numbers;

/* Where channel 0 of the columns lies that a tile sees; one more, since the last column of an odd line is paired
 * too. */
typedef struct places {
  const uint8_t *at[MOST_LINES][MOST_COLUMNS + 1];
} places;

typedef struct job job;
typedef void (*tile_sums)(const job *j, const places *x, int64_t block, vi sum[PIXELS][2]);
struct job {
  const berth_op_call *call;
  berth__bytes_attrs attrs;
  berth__last last;
  int64_t lines;        /* per window, over both outer axes */
  int64_t entries;      /* pairs of weights per channel */
  int64_t blocks, sets; /* of channels */
  int32_t x_zero;
  i8_end end;
  bool has_bias; /* of f32; an integer bias is what the sums start with */
  bool is_plain; /* a byte is a sum times its scale, clamped, rounded and shifted, and nothing else */
  tile_sums multiply;
  numbers *numbers;   /* [blocks] */
  int8_t *weights;    /* [blocks][entries][WIDTH] pairs of 16 bits */
  uint8_t *padding;   /* [channels]: the elements outside of x */
  const float *added; /* added before the epilogue; NULL: nothing */
  bool has_epilogue;
  chain_run epilogue;
};

/* ---- The shape ---- */

static int64_t qdepth_pairs_blocks_of(int64_t channels) { return (channels + WIDTH - 1) / WIDTH; }
static int64_t qdepth_pairs_sets_of(int64_t channels) {
  return (qdepth_pairs_blocks_of(channels) + MOST_BLOCKS - 1) / MOST_BLOCKS;
}
static int64_t qdepth_pairs_lines_of(const berth__last *last) {
  return last->window.axis[0].kernel * last->window.axis[1].kernel;
}
static int64_t qdepth_pairs_entries_of(const berth__last *last) {
  const int64_t lines = qdepth_pairs_lines_of(last), kernel = last->window.axis[2].kernel;
  return lines / 2 * kernel + lines % 2 * ((kernel + 1) / 2);
}

/* The last block ends with the last channel and may overlap the one before it. */
static int64_t first_channel(const job *j, int64_t block) {
  const int64_t last = j->last.channels - WIDTH;
  return block * WIDTH < last ? block * WIDTH : last;
}

static bool qdepth_pairs_takes(const berth_op_call *call) {
  berth__last last;
  berth__last_read(call, &last);
  const berth__window_axis *w = &last.window.axis[2];
  return last.channels >= WIDTH && qdepth_pairs_lines_of(&last) <= MOST_LINES && (w->kernel == 3 || w->kernel == 5) &&
         (w->stride == 1 || w->stride == 2) && w->dilation == 1 && i8_takes(call, berth__window_taps(&last.window));
}

/* Items are lines of the result, each for a set of blocks of channels; those of a line are neighbours. */
static int64_t qdepth_pairs_items(const berth_op_call *call) {
  berth__last last;
  berth__last_read(call, &last);
  const berth__window_axis *w = last.window.axis;
  return last.images * w[0].out * w[1].out * qdepth_pairs_sets_of(last.channels);
}

static int64_t qdepth_pairs_grain(const berth_op_call *call) {
  berth__last last;
  berth__last_read(call, &last);
  const int64_t line = last.window.axis[2].out * last.channels * berth__window_taps(&last.window);
  return WORTH / (line / qdepth_pairs_sets_of(last.channels) + 1) + 1;
}

static uint64_t qdepth_pairs_weight_bytes(const berth__last *last) {
  return (uint64_t)(qdepth_pairs_blocks_of(last->channels) * qdepth_pairs_entries_of(last) * WIDTH * 4);
}

static uint64_t qdepth_pairs_scratch(const berth_op_call *call) {
  berth__last last;
  berth__last_read(call, &last);
  return (uint64_t)qdepth_pairs_blocks_of(last.channels) * sizeof(numbers) + qdepth_pairs_weight_bytes(&last) +
         (uint64_t)last.channels;
}

/* ---- Sums of a tile ---- */

INLINED void take_pairs(const uint8_t *a, const uint8_t *b, vi x[2], const bool is_signed) {
  if (is_signed)
    vi_pairs_i8(a, b, x);
  else
    vi_pairs_u8(a, b, x);
}

/* Column k of two lines, or of one line and its neighbour, for every pixel of the tile that has it as a tap. `step`:
 * taps per entry. */
INLINED void add_column(const vi x[2], const int8_t *w, const int k, const int step, const int kernel, const int stride,
                        vi sum[PIXELS][2]) {
  UNROLL for (int pixel = 0; pixel < PIXELS; pixel++) {
    const int tap = k - pixel * stride;
    if (tap < 0 || tap >= kernel || tap % step != 0) continue;
    const int8_t *entry = w + tap / step * WIDTH * 4;
    sum[pixel][0] = vi_dot2(sum[pixel][0], x[0], vi_load(entry));
    sum[pixel][1] = vi_dot2(sum[pixel][1], x[1], vi_load(entry + VF_LANES * 4));
  }
}

INLINED void multiply_tile(const job *j, const places *from, int64_t block, vi sum[PIXELS][2], const int kernel,
                           const int stride, const bool is_signed) {
  const int columns = (PIXELS - 1) * stride + kernel;
  const int64_t first = first_channel(j, block);
  const int8_t *w = j->weights + block * j->entries * WIDTH * 4;
  const int32_t *start = j->numbers[block].start;
  int64_t line = 0;
  UNROLL for (int i = 0; i < 2 * PIXELS; i++) sum[i / 2][i % 2] = vi_load(start + i % 2 * VF_LANES);
  for (; line + 2 <= j->lines; line += 2, w += kernel * WIDTH * 4) {
    UNROLL for (int k = 0; k < columns; k++) {
      vi x[2];
      take_pairs(from->at[line][k] + first, from->at[line + 1][k] + first, x, is_signed);
      add_column(x, w, k, 1, kernel, stride, sum);
    }
  }
  if (line == j->lines) return;
  UNROLL for (int k = 0; k < columns; k += stride) {
    vi x[2];
    take_pairs(from->at[line][k] + first, from->at[line][k + 1] + first, x, is_signed);
    add_column(x, w, k, 2, kernel, stride, sum);
  }
}

#define MULTIPLY(name, kernel, stride, is_signed)                                        \
  static void name(const job *j, const places *from, int64_t block, vi sum[PIXELS][2]) { \
    multiply_tile(j, from, block, sum, kernel, stride, is_signed);                       \
  }
MULTIPLY(multiply_3_1_u8, 3, 1, false)
MULTIPLY(multiply_3_2_u8, 3, 2, false)
MULTIPLY(multiply_5_1_u8, 5, 1, false)
MULTIPLY(multiply_5_2_u8, 5, 2, false)
MULTIPLY(multiply_3_1_i8, 3, 1, true)
MULTIPLY(multiply_3_2_i8, 3, 2, true)
MULTIPLY(multiply_5_1_i8, 5, 1, true)
MULTIPLY(multiply_5_2_i8, 5, 2, true)

static tile_sums multiply_for(const berth_op_call *call, const berth__window_axis *w) {
  static const tile_sums all[2][2][2] = {{{multiply_3_1_u8, multiply_3_2_u8}, {multiply_5_1_u8, multiply_5_2_u8}},
                                         {{multiply_3_1_i8, multiply_3_2_i8}, {multiply_5_1_i8, multiply_5_2_i8}}};
  return all[call->in[BERTH__BYTES_X].type == BERTH_I8][w->kernel == 5][w->stride == 2];
}

/* ---- Weights ---- */

static void qdepth_pairs_describe(job *j, const berth_op_call *call) {
  j->call = call;
  j->attrs = berth__bytes_attrs_of(call->user, call->attrs);
  berth__last_read(call, &j->last);
  j->lines = qdepth_pairs_lines_of(&j->last);
  j->entries = qdepth_pairs_entries_of(&j->last);
  j->blocks = qdepth_pairs_blocks_of(j->last.channels);
  j->sets = qdepth_pairs_sets_of(j->last.channels);
  j->x_zero = 0;
  if (berth__call_has(call, BERTH__BYTES_X_ZERO))
    j->x_zero = (int32_t)berth__load_i64(&call->in[BERTH__BYTES_X_ZERO], 0);
  i8_end_of(call, &j->attrs, 0, j->last.channels, &j->end);
  j->has_bias = berth__call_has(call, BERTH__BYTES_BIAS) && !berth__bytes_counts_bias(call);
  j->is_plain = !j->has_bias && !j->end.divides && !j->end.is_odd && !j->end.may_fail;
  j->multiply = multiply_for(call, &j->last.window.axis[2]);
  j->added = i8_sum(call, &j->attrs);
  j->has_epilogue = i8_epilogue(call, &j->attrs, &j->epilogue);
  j->numbers = call->scratch;
  j->weights = (int8_t *)(j->numbers + j->blocks);
  j->padding = (uint8_t *)j->weights + qdepth_pairs_weight_bytes(&j->last);
}

/* The two taps of an entry; -1: none. */
static void taps_of(const job *j, int64_t entry, int64_t tap[2]) {
  const int64_t kernel = j->last.window.axis[2].kernel, pairs = j->lines / 2 * kernel;
  if (entry < pairs) {
    tap[0] = entry / kernel * 2 * kernel + entry % kernel;
    tap[1] = tap[0] + kernel;
    return;
  }
  const int64_t column = (entry - pairs) * 2;
  tap[0] = (j->lines - 1) * kernel + column;
  tap[1] = column + 1 < kernel ? tap[0] + 1 : -1;
}

/* A tap of the channels from `first` on, minus their zero points. */
static void weights_less_zeros(const job *j, int64_t tap, int64_t first, int16_t *to) {
  const berth_tensor *weight = &j->call->in[BERTH__BYTES_WEIGHT], *zero = &j->call->in[BERTH__BYTES_WEIGHT_ZERO];
  const bool has_zero = berth__call_has(j->call, BERTH__BYTES_WEIGHT_ZERO);
  for (int64_t i = 0; i < WIDTH; i++) {
    int64_t whole = tap < 0 ? 0 : berth__load_i64(weight, tap * j->last.channels + first + i);
    if (has_zero && tap >= 0) whole -= berth__load_i64(zero, berth__bytes_entry(zero, first + i));
    to[2 * i] = (int16_t)whole;
  }
}

static void weights_of_entry(const job *j, int64_t entry, int64_t first, vi w[2]) {
  static const int8_t none[WIDTH];
  const berth_tensor *weight = &j->call->in[BERTH__BYTES_WEIGHT];
  int64_t tap[2];
  taps_of(j, entry, tap);
  if (weight->type == BERTH_I8 && !berth__call_has(j->call, BERTH__BYTES_WEIGHT_ZERO)) {
    const int8_t *from = (const int8_t *)weight->data + first;
    vi_pairs_i8(from + tap[0] * j->last.channels, tap[1] < 0 ? none : from + tap[1] * j->last.channels, w);
    return;
  }
  int16_t pairs[2 * WIDTH];
  for (int which = 0; which < 2; which++) weights_less_zeros(j, tap[which], first, pairs + which);
  w[0] = vi_load(pairs);
  w[1] = vi_load(pairs + WIDTH);
}

/* n numbers of 32 bits, or one for all. */
static void copy_numbers(const void *from, int64_t stride, int64_t first, void *to) {
  const uint32_t *words = from;
  if (stride == 1) {
    memcpy(to, (const char *)from + first * (int64_t)sizeof *words, WIDTH * sizeof *words);
    return;
  }
  for (int64_t i = 0; i < WIDTH; i++) memcpy((uint32_t *)to + i, words + (first + i) * stride, sizeof *words);
}

/* Whether sums times scales stay so small that they fit integers before they are clamped. */
static bool qdepth_pairs_stays_small(const job *j, const numbers *of) {
  const float reach = 255.0f * 255.0f * (float)berth__window_taps(&j->last.window);
  float most = 0;
  for (int i = 0; i < WIDTH; i++) {
    const float bound = fabsf(of->scale[i]) * (fabsf((float)of->start[i]) + reach);
    most = bound > most ? bound : most;
  }
  return most < 0x1p30f;
}

static void prepare_block(const job *j, int64_t block) {
  const berth_tensor *scale = &j->call->in[BERTH__BYTES_SCALE], *bias = &j->call->in[BERTH__BYTES_BIAS];
  const int64_t first = first_channel(j, block);
  numbers *to = &j->numbers[block];
  int8_t *weights = j->weights + block * j->entries * WIDTH * 4;
  vi sum[2] = {vi_set1(0), vi_set1(0)};
  for (int64_t entry = 0; entry < j->entries; entry++) {
    vi w[2];
    weights_of_entry(j, entry, first, w);
    for (int v = 0; v < 2; v++, weights += VF_LANES * 4) {
      vi_store(weights, w[v]);
      sum[v] = vi_dot2(sum[v], vi_set1(0x00010001), w[v]);
    }
  }
  memset(to, 0, sizeof *to);
  if (berth__bytes_counts_bias(j->call)) copy_numbers(bias->data, 1, first, to->start);
  for (int v = 0; v < 2; v++) {
    int32_t *start = to->start + v * VF_LANES;
    vi_store(start, vi_add(vi_load(start), vi_mul(sum[v], vi_set1(-j->x_zero))));
  }
  if (j->call->out[0].type == BERTH_I32) return; /* sums have no scale */
  copy_numbers(scale->data, berth__bytes_entry(scale, 1), first, to->scale);
  if (j->has_bias) copy_numbers(bias->data, 1, first, to->bias);
  to->is_bare = VI_SATURATES && j->is_plain && j->end.holds_type && qdepth_pairs_stays_small(j, to);
}

static void qdepth_pairs_prepare(const berth_op_call *call) {
  job j;
  qdepth_pairs_describe(&j, call);
  memset(j.padding, j.x_zero & 255, (size_t)j.last.channels);
  for (int64_t block = 0; block < j.blocks; block++) prepare_block(&j, block);
}

/* ---- Results ---- */

/* Several pixels of a block: only channels are stored that no earlier block has. */
typedef struct target {
  int64_t index;   /* of the first stored channel in the first pixel */
  int64_t skip, n; /* channels of the block before it, and the number of stored ones */
  int64_t pixels;  /* that are stored */
  int64_t block;
} target;

/* Turns sums into bytes; nothing is stored yet. */
INLINED void make_bytes(const job *j, const numbers *c, vi sum[PIXELS][2], const bool is_bare, const bool is_plain) {
  const i8_end end = j->end;
  const bool has_bias = !is_plain && j->has_bias;
  UNROLL for (int v = 0; v < 2; v++) {
    const vf scale = vf_load(c->scale + v * VF_LANES), bias = vf_load(c->bias + v * VF_LANES);
    UNROLL for (int pixel = 0; pixel < PIXELS; pixel++) {
      vf x = vf_from_int(sum[pixel][v]) * scale;
      if (has_bias) x = x + bias;
      if (!is_bare) x = i8_hold(&end, x);
      sum[pixel][v] = is_plain ? vi_add(vf_to_int(x), end.zero) : i8_byte(&end, x);
    }
  }
}

static void store_bytes(const job *j, const target *t, vi sum[PIXELS][2]) {
  const numbers *c = &j->numbers[t->block];
  const bool is_signed = j->call->out[0].type == BERTH_I8, is_whole = t->n == WIDTH;
  uint8_t *out = (uint8_t *)j->call->out[0].data + t->index, spare[PIXELS][WIDTH];
  if (c->is_bare)
    make_bytes(j, c, sum, true, true);
  else if (j->is_plain)
    make_bytes(j, c, sum, false, true);
  else
    make_bytes(j, c, sum, false, false);
  for (int pixel = 0; pixel < PIXELS; pixel += 2) {
    uint8_t *to[2];
    for (int i = 0; i < 2; i++)
      to[i] = is_whole && pixel + i < t->pixels ? out + (pixel + i) * j->last.channels : spare[pixel + i];
    vi_store_bytes_of_two(to[0], to[1], sum[pixel], sum[pixel + 1], is_signed);
  }
  if (is_whole) return;
  for (int64_t pixel = 0; pixel < t->pixels; pixel++)
    memcpy(out + pixel * j->last.channels, spare[pixel] + t->skip, (size_t)t->n);
}

/* Sums as integers, or f32. */
static void store_words(const job *j, const target *t, vi sum[PIXELS][2]) {
  const numbers *c = &j->numbers[t->block];
  const i8_end end = j->end;
  uint32_t words[WIDTH];
  for (int64_t pixel = 0; pixel < t->pixels; pixel++) {
    const int64_t index = t->index + pixel * j->last.channels;
    float added[WIDTH] = {0};
    if (j->added != NULL) memcpy(added + t->skip, j->added + index, (size_t)t->n * sizeof *added);
    for (int v = 0; v < 2; v++) {
      const vi whole = sum[pixel][v];
      vf x = vf_from_int(whole) * vf_load(c->scale + v * VF_LANES);
      if (j->has_bias) x = x + vf_load(c->bias + v * VF_LANES);
      if (j->added != NULL) x = x + vf_load(added + v * VF_LANES);
      vi_store(words + v * VF_LANES, j->call->out[0].type == BERTH_I32 ? whole : vf_bits(i8_hold(&end, x)));
    }
    memcpy((uint32_t *)j->call->out[0].data + index, words + t->skip, (size_t)t->n * sizeof *words);
  }
}

/* ---- Lines ---- */

/* The lines of x under the lines of a window; NULL: outside. */
static void qdepth_pairs_find_lines(const job *j, const berth__last_pixel *pixel, const uint8_t **line) {
  const berth__window_axis *w = j->last.window.axis;
  for (int64_t tz = 0; tz < w[0].kernel; tz++)
    for (int64_t ty = 0; ty < w[1].kernel; ty++) {
      const int64_t z = berth__window_input(&w[0], pixel->at[0], tz), y = berth__window_input(&w[1], pixel->at[1], ty);
      const int64_t at = pixel->image * j->last.image_stride + z * j->last.axis_stride[0] + y * j->last.axis_stride[1];
      const bool is_outside = z < 0 || z >= w[0].in || y < 0 || y >= w[1].in;
      *line++ = is_outside ? NULL : (const uint8_t *)j->call->in[BERTH__BYTES_X].data + at;
    }
}

/* The addresses of consecutive columns of x. */
static void find_places(const job *j, const uint8_t *const *line, int64_t x, places *to) {
  const berth__window_axis *w = &j->last.window.axis[2];
  const int64_t columns = (PIXELS - 1) * w->stride + w->kernel + 1, stride = j->last.axis_stride[2];
  for (int64_t i = 0; i < j->lines; i++) {
    const uint8_t **at = to->at[i];
    if (line[i] == NULL || x < 0 || x + columns > w->in) {
      for (int64_t k = 0; k < columns; k++)
        at[k] = line[i] == NULL || x + k < 0 || x + k >= w->in ? j->padding : line[i] + (x + k) * stride;
      continue;
    }
    const uint8_t *from = line[i] + x * stride;
    for (int64_t k = 0; k < columns; k++, from += stride) at[k] = from;
  }
}

static void run_tile(const job *j, const places *from, int64_t pixel, int64_t n, int64_t first, int64_t end) {
  const berth_type to = j->call->out[0].type;
  for (int64_t block = first; block < end; block++) {
    const int64_t skip = block * WIDTH - first_channel(j, block);
    const target t = {.index = pixel * j->last.channels + block * WIDTH,
                      .skip = skip,
                      .n = WIDTH - skip,
                      .pixels = n,
                      .block = block};
    vi sum[PIXELS][2];
    j->multiply(j, from, block, sum);
    if (to == BERTH_I8 || to == BERTH_U8)
      store_bytes(j, &t, sum);
    else
      store_words(j, &t, sum);
  }
}

static void run_line(const job *j, int64_t item, int64_t first, int64_t end) {
  const berth__window_axis *w = &j->last.window.axis[2];
  const berth__last_pixel start = berth__last_pixel_of(&j->last, item * w->out);
  const uint8_t *line[MOST_LINES];
  places from;
  qdepth_pairs_find_lines(j, &start, line);
  for (int64_t pixel = 0; pixel < w->out; pixel += PIXELS) {
    const int64_t left = w->out - pixel;
    find_places(j, line, pixel * w->stride - w->begin, &from);
    run_tile(j, &from, item * w->out + pixel, left < PIXELS ? left : PIXELS, first, end);
  }
  const int64_t channel = first * WIDTH, after = end < j->blocks ? end * WIDTH : j->last.channels;
  if (j->has_epilogue) epilogue_rows(&j->epilogue, item * w->out, w->out, channel, after - channel);
}

static berth_status qdepth_pairs_run(const berth_op_call *call, berth_error *err) {
  job j;
  (void)err;
  qdepth_pairs_describe(&j, call);
  for (int64_t item = call->begin; item < call->end; item++) {
    const int64_t set = item % j.sets;
    run_line(&j, item / j.sets, set * j.blocks / j.sets, (set + 1) * j.blocks / j.sets);
  }
  return BERTH_OK;
}

#endif

const berth__cpu_kernel BERTH__PER_ISA(berth__kernels_qdepth_pairs)[] = {
#if VI_HAS_PAIRS
    {.name = "qdepthwise pairs",
     .code = BERTH__OP_qdepthwise,
     .takes = qdepth_pairs_takes,
     .items = qdepth_pairs_items,
     .grain = qdepth_pairs_grain,
     .scratch = qdepth_pairs_scratch,
     .run = qdepth_pairs_run,
     .prepare = qdepth_pairs_prepare,
     .has_parts = true},
#endif
    {0},
};
