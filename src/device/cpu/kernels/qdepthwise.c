/* qdepthwise: a lane is a channel, and its four bytes are four taps. If a line of the window has three neighbours and
 * windows are one apart, four pixels of x serve two pixels of the result. With few channels, neighbouring pixels fill a
 * block together, as if they were further channels. Weights that do not fit i8 after their zero points are subtracted
 * are split into sums of two or three that do: then every tap counts that often. */
#include "device/cpu/kernels/gemm_i8.h"
#include "ops/conv_last.h"
#include "ops/operand.h"

#define BLOCK (4 * VF_LANES) /* channels processed together */
#define MOST_BLOCKS 4        /* per item: their data stays in the L1 cache */
#define MOST_TAPS 128
#define MOST_PARTS 3 /* -255 to 254 takes two, and 255 three */
#define UNROLL _Pragma("GCC unroll 16")

/* What a block of channels needs, in the order in which vi_mix_n leaves them. The bytes of all groups of taps follow
 * it. */
typedef struct channels {
  float scale[BLOCK], bias[BLOCK];
  int32_t start[BLOCK]; /* of the sums: subtracts the zero point */
} channels;

typedef struct span {
  int64_t begin, end; /* blocks */
} span;

typedef struct job {
  const berth_op_call *call;
  berth__bytes_attrs attrs;
  berth__last last;
  bool is_paired;       /* two pixels together */
  int64_t beside;       /* pixels that fill a block together; 1: there are enough channels */
  int64_t parts;        /* that a weight is the sum of: 1 to MOST_PARTS */
  int64_t taps, groups; /* per window; groups of four bytes, over all parts (lines of a window if pixels are paired) */
  int64_t pixels;       /* processed together */
  int64_t blocks;       /* of channels, and the number of sets of blocks */
  int64_t sets;
  uint8_t flip;
  int32_t x_zero; /* of unsigned bytes */
  i8_end end;
  bool has_bias;      /* of f32; an integer bias is what the sums start with */
  channels *channels; /* [blocks] */
  int8_t *weights;    /* [blocks][groups][pixels][BLOCK][4] */
  uint8_t *padding;   /* [blocks][BLOCK]: the elements outside of x */
  const float *sum;   /* added before the epilogue; NULL: nothing */
  bool has_epilogue;
  chain_run epilogue;
} job;

static int64_t blocks_of(int64_t count) { return (count + BLOCK - 1) / BLOCK; }
static int64_t sets_of(int64_t count) { return (blocks_of(count) + MOST_BLOCKS - 1) / MOST_BLOCKS; }

static bool qdepthwise_kernel_takes(const berth_op_call *call) {
  berth__last last;
  berth__last_read(call, &last);
  const int64_t taps = berth__window_taps(&last.window);
  return taps <= MOST_TAPS && i8_takes(call, taps);
}

static int64_t qdepthwise_kernel_lines_of(const berth__last *last) {
  return last->images * last->window.axis[0].out * last->window.axis[1].out;
}

/* Items are lines of the result, each for a set of blocks of channels; those of a line are neighbours. */
static int64_t qdepthwise_kernel_items(const berth_op_call *call) {
  berth__last last;
  berth__last_read(call, &last);
  return qdepthwise_kernel_lines_of(&last) * sets_of(last.channels);
}

#define WORTH 50000 /* multiplications that are worth a thread */

static int64_t qdepthwise_kernel_grain(const berth_op_call *call) {
  berth__last last;
  berth__last_read(call, &last);
  const int64_t line = last.window.axis[2].out * last.channels * berth__window_taps(&last.window);
  return WORTH / (line / sets_of(last.channels) + 1) + 1;
}

static int64_t pixels_beside(const berth__last *last) {
  const bool are_neighbours = last->axis_stride[BERTH__WINDOW_AXES - 1] == last->channels;
  const bool is_one_apart = last->window.axis[BERTH__WINDOW_AXES - 1].stride == 1;
  return are_neighbours && is_one_apart && last->channels * 2 <= BLOCK ? BLOCK / last->channels : 1;
}

static bool is_paired(const berth__last *last) {
  const berth__window_axis *w = &last->window.axis[BERTH__WINDOW_AXES - 1];
  return w->kernel == 3 && w->stride == 1 && w->dilation == 1 && pixels_beside(last) == 1;
}

/* The largest number of parts that weights may need. */
static int64_t qdepthwise_kernel_most_parts(const berth_op_call *call) {
  const bool fit = call->in[BERTH__BYTES_WEIGHT].type == BERTH_I8 && !berth__call_has(call, BERTH__BYTES_WEIGHT_ZERO);
  return fit ? 1 : MOST_PARTS;
}

static int64_t qdepthwise_kernel_groups_of(const berth__last *last, int64_t parts) {
  const int64_t taps = berth__window_taps(&last->window) * parts;
  return is_paired(last) ? taps / 3 : berth__bytes_groups(taps);
}

/* Of the weights, in their layout for the kernel. */
static uint64_t qdepthwise_kernel_weight_bytes(const berth_op_call *call, const berth__last *last) {
  const int64_t groups = qdepthwise_kernel_groups_of(last, qdepthwise_kernel_most_parts(call));
  return (uint64_t)(blocks_of(last->channels) * groups * (is_paired(last) ? 2 : 1) * BLOCK * 4);
}

/* The number of parts is stored after everything else. */
static uint64_t qdepthwise_kernel_scratch(const berth_op_call *call) {
  berth__last last;
  berth__last_read(call, &last);
  return (uint64_t)blocks_of(last.channels) * (sizeof(channels) + BLOCK) + qdepthwise_kernel_weight_bytes(call, &last) +
         (qdepthwise_kernel_most_parts(call) > 1 ? sizeof(int64_t) : 0);
}

/* The tap that byte `slot` of a group stands for in pixel `pixel`; -1: none. Taps of a second part follow all of the
 * first. */
static int64_t tap_of(const job *j, int64_t group, int64_t pixel, int64_t slot) {
  if (!j->is_paired) return group * 4 + slot < j->taps * j->parts ? group * 4 + slot : -1;
  return slot >= pixel && slot < pixel + 3 ? group * 3 + slot - pixel : -1;
}

static int64_t whole_weight(const job *j, int64_t tap, int64_t channel) {
  const berth_tensor *weight = &j->call->in[BERTH__BYTES_WEIGHT], *zero = &j->call->in[BERTH__BYTES_WEIGHT_ZERO];
  const int64_t whole = berth__load_i64(weight, tap * j->last.channels + channel);
  if (!berth__call_has(j->call, BERTH__BYTES_WEIGHT_ZERO)) return whole;
  return whole - berth__load_i64(zero, berth__bytes_entry(zero, channel));
}

/* One part of the weights of a tap, for n channels from `first` on. */
static void part_of_weights(const job *j, int64_t tap, int64_t first, int64_t n, int8_t *to) {
  for (int64_t i = 0; i < n; i++) {
    int64_t left = whole_weight(j, tap % j->taps, first + i), part = 0;
    for (int64_t k = 0; k <= tap / j->taps; k++) {
      part = left < -128 ? -128 : left > 127 ? 127 : left;
      left -= part;
    }
    to[i] = (int8_t)part;
  }
}

static int64_t parts_needed(const job *j) {
  if (qdepthwise_kernel_most_parts(j->call) == 1) return 1;
  for (int64_t tap = 0; tap < j->taps; tap++)
    for (int64_t channel = 0; channel < j->last.channels; channel++)
      if (whole_weight(j, tap, channel) > 2 * 127) return MOST_PARTS;
  return 2;
}

/* The weights of a tap for a block; tap < 0: none. For pixels that share a block, they are repeated in `copy`. */
static const int8_t *find_weights(const job *j, int64_t block, int64_t tap, int8_t *copy) {
  static const int8_t none[BLOCK];
  const int64_t each = j->last.channels, first = block * BLOCK, n = each - first < BLOCK ? each - first : BLOCK;
  const int8_t *weight = (const int8_t *)j->call->in[BERTH__BYTES_WEIGHT].data + tap * each + first;
  if (tap < 0) return none;
  if (j->beside == 1 && j->parts == 1) return weight;
  memset(copy, 0, BLOCK);
  if (j->parts == 1)
    memcpy(copy, weight, (size_t)n);
  else
    part_of_weights(j, tap, first, n, copy);
  for (int64_t k = 1; k < j->beside; k++) memcpy(copy + k * each, copy, (size_t)each);
  return copy;
}

/* Channels of a block, counted once for each pixel that shares it. */
static int64_t width_of(const job *j, int64_t block) {
  const int64_t left = j->last.channels * j->beside - block * BLOCK;
  return left < BLOCK ? left : BLOCK;
}

/* The weights of a block, mixed like x, and what its sums start with. */
static void prepare_weights(const job *j, int64_t block) {
  int8_t copy[4][BLOCK];
  int8_t *to = j->weights + block * j->groups * j->pixels * BLOCK * 4;
  vi sum[4];
  for (int part = 0; part < 4; part++) sum[part] = vi_set1(0);
  for (int64_t group = 0; group < j->groups; group++)
    for (int64_t pixel = 0; pixel < j->pixels; pixel++) {
      const void *four[4];
      vi w[4];
      for (int64_t slot = 0; slot < 4; slot++)
        four[slot] = find_weights(j, block, tap_of(j, group, pixel, slot), copy[slot]);
      vi_mix_n(four, width_of(j, block), w);
      for (int part = 0; part < 4; part++, to += VF_LANES * 4) {
        vi_store(to, w[part]);
        if (pixel == 0) sum[part] = vi_dot(sum[part], vi_set1(0x01010101), w[part]);
      }
    }
  int32_t *start = j->channels[block].start;
  for (int part = 0; part < 4; part++) vi_store(start + part * VF_LANES, vi_mul(sum[part], vi_set1(-j->x_zero)));
}

/* A block's share of one number per channel (f32 or i32), in the order of vi_mix_n. */
static void prepare_numbers(const job *j, int64_t block, const void *from, int64_t stride, void *to) {
  const int64_t n = width_of(j, block);
  uint32_t *word = to;
  for (int part = 0; part < 4; part++, word += VF_LANES) {
    UNROLL for (int lane = 0; lane < VF_LANES; lane++) {
      const int64_t at = vi_mixed(part, lane);
      const int64_t channel = j->beside == 1 ? block * BLOCK + at : at % j->last.channels;
      word[lane] = 0;
      if (at < n) memcpy(&word[lane], (const char *)from + channel * stride * 4, sizeof *word);
    }
  }
}

static void add_counts(const job *j, int64_t block) {
  int32_t counts[BLOCK], *start = j->channels[block].start;
  prepare_numbers(j, block, j->call->in[BERTH__BYTES_BIAS].data, 1, counts);
  for (int i = 0; i < BLOCK; i += VF_LANES) vi_store(start + i, vi_add(vi_load(start + i), vi_load(counts + i)));
}

static void prepare_scales(const job *j, int64_t block) {
  const berth_tensor *scale = &j->call->in[BERTH__BYTES_SCALE], *bias = &j->call->in[BERTH__BYTES_BIAS];
  channels *to = &j->channels[block];
  if (j->call->out[0].type == BERTH_I32) return; /* sums have none */
  prepare_numbers(j, block, scale->data, berth__bytes_entry(scale, 1), to->scale);
  if (j->has_bias) prepare_numbers(j, block, bias->data, 1, to->bias);
  if (berth__bytes_counts_bias(j->call)) add_counts(j, block);
}

static void qdepthwise_kernel_describe(job *j, const berth_op_call *call) {
  j->call = call;
  j->attrs = berth__bytes_attrs_of(call->user, call->attrs);
  berth__last_read(call, &j->last);
  j->taps = berth__window_taps(&j->last.window);
  j->beside = pixels_beside(&j->last);
  j->is_paired = is_paired(&j->last);
  j->pixels = j->is_paired ? 2 : 1;
  j->blocks = blocks_of(j->last.channels);
  j->sets = sets_of(j->last.channels);
  j->flip = call->in[BERTH__BYTES_X].type == BERTH_I8 ? 128 : 0;
  j->x_zero = j->flip;
  if (berth__call_has(call, BERTH__BYTES_X_ZERO))
    j->x_zero += (int32_t)berth__load_i64(&call->in[BERTH__BYTES_X_ZERO], 0);
  i8_end_of(call, &j->attrs, 0, j->last.channels, &j->end);
  j->has_bias = berth__call_has(call, BERTH__BYTES_BIAS) && !berth__bytes_counts_bias(call);
  j->sum = i8_sum(call, &j->attrs);
  j->has_epilogue = i8_epilogue(call, &j->attrs, &j->epilogue);
  j->channels = call->scratch;
  j->weights = (int8_t *)(j->channels + j->blocks);
  j->padding = (uint8_t *)j->weights + qdepthwise_kernel_weight_bytes(call, &j->last);
}

static void set_parts(job *j, int64_t parts) {
  j->parts = parts;
  j->groups = qdepthwise_kernel_groups_of(&j->last, parts);
}

static void qdepthwise_kernel_prepare(const berth_op_call *call) {
  job j;
  qdepthwise_kernel_describe(&j, call);
  set_parts(&j, parts_needed(&j));
  memset(j.padding, j.x_zero ^ j.flip, (size_t)(j.blocks * BLOCK));
  if (qdepthwise_kernel_most_parts(call) > 1) memcpy(j.padding + j.blocks * BLOCK, &j.parts, sizeof j.parts);
  for (int64_t block = 0; block < j.blocks; block++) {
    prepare_weights(&j, block);
    prepare_scales(&j, block);
  }
}

static void store_sums(const job *j, const vi *sum, int64_t index, int64_t n) {
  int32_t mixed[BLOCK], plain[BLOCK];
  for (int part = 0; part < 4; part++) vi_store(mixed + part * VF_LANES, sum[part]);
  for (int part = 0; part < 4; part++)
    for (int lane = 0; lane < VF_LANES; lane++) plain[vi_mixed(part, lane)] = mixed[part * VF_LANES + lane];
  memcpy((int32_t *)j->call->out[0].data + index, plain, (size_t)n * sizeof *plain);
}

static void store_f32(const job *j, const vf *x, int64_t index, int64_t n) {
  float *out = (float *)j->call->out[0].data + index, mixed[BLOCK], plain[BLOCK];
  for (int part = 0; part < 4; part++) vf_store(mixed + part * VF_LANES, x[part]);
  for (int part = 0; part < 4; part++)
    for (int lane = 0; lane < VF_LANES; lane++) plain[vi_mixed(part, lane)] = mixed[part * VF_LANES + lane];
  for (int64_t i = 0; i < n; i += VF_LANES) {
    const int64_t left = vf_tail(n - i);
    vf value = vf_load(plain + i);
    if (j->sum != NULL) value = value + vf_load_n(j->sum + index + i, left);
    vf_store_n(out + i, i8_hold(&j->end, value), left);
  }
}

/* `end` is the caller's own copy: byte stores may alias anything, so whatever is read through j would be read again
 * after each. */
static inline __attribute__((always_inline)) void qdepthwise_kernel_store(const job *j, const channels *c,
                                                                          const i8_end *end, const bool has_bias,
                                                                          const vi *sum, int64_t index, int64_t n) {
  vf x[4];
  vi whole[4];
  if (j->call->out[0].type == BERTH_I32) {
    store_sums(j, sum, index, n);
    return;
  }
  UNROLL for (int part = 0; part < 4; part++) {
    x[part] = vf_from_int(sum[part]) * vf_load(c->scale + part * VF_LANES);
    if (has_bias) x[part] = x[part] + vf_load(c->bias + part * VF_LANES);
  }
  if (j->call->out[0].type == BERTH_F32) {
    store_f32(j, x, index, n);
    return;
  }
  UNROLL for (int part = 0; part < 4; part++) whole[part] = i8_byte(end, i8_hold(end, x[part]));
  vi_unmix_n((uint8_t *)j->call->out[0].data + index, whole, n, j->call->out[0].type == BERTH_I8);
}

/* Several blocks of `pixels` neighbouring pixels, of which n_out are stored, with so many channels; row[] is where
 * channel 0 of each byte of the groups lies. */
static inline __attribute__((always_inline)) void do_pixels(const job *j, span blocks, const uint8_t *const *row,
                                                            int64_t item, int64_t n_out, int64_t n_channels,
                                                            const int64_t groups, const int pixels) {
  const vi flip = vi_set1((int32_t)(j->flip * 0x01010101u));
  const int8_t *w = j->weights + blocks.begin * groups * pixels * BLOCK * 4;
  const i8_end end = j->end;
  const bool has_bias = j->has_bias;
  for (int64_t block = blocks.begin; block < blocks.end; block++) {
    const int64_t first = block * BLOCK, left = n_channels - first, n = left < BLOCK ? left : BLOCK;
    vi sum[2][4];
    UNROLL for (int pixel = 0; pixel < pixels; pixel++) UNROLL for (int part = 0; part < 4; part++) sum[pixel][part] =
        vi_load(j->channels[block].start + part * VF_LANES);
    UNROLL for (int64_t g = 0; g < groups; g++) {
      const void *four[4];
      vi x[4];
      UNROLL for (int i = 0; i < 4; i++) four[i] = row[4 * g + i] + first;
      vi_mix_n(four, n, x);
      if (j->flip != 0) UNROLL for (int part = 0; part < 4; part++) x[part] = vi_xor(x[part], flip);
      UNROLL for (int pixel = 0; pixel < pixels; pixel++, w += BLOCK * 4) UNROLL for (int part = 0; part < 4; part++)
          sum[pixel][part] = vi_dot(sum[pixel][part], x[part], vi_load(w + part * VF_LANES * 4));
    }
    for (int pixel = 0; pixel < (pixels == 1 ? 1 : n_out); pixel++)
      qdepthwise_kernel_store(j, &j->channels[block], &end, has_bias, sum[pixel],
                              (item + pixel) * j->last.channels + first, n);
  }
}

/* The lines of x under the lines of a window; NULL: outside. */
static void find_lines(const job *j, const berth__last_pixel *pixel, const uint8_t **line) {
  const berth__window_axis *w = j->last.window.axis;
  for (int64_t tz = 0; tz < w[0].kernel; tz++)
    for (int64_t ty = 0; ty < w[1].kernel; ty++) {
      const int64_t z = berth__window_input(&w[0], pixel->at[0], tz), y = berth__window_input(&w[1], pixel->at[1], ty);
      const int64_t at = pixel->image * j->last.image_stride + z * j->last.axis_stride[0] + y * j->last.axis_stride[1];
      const bool is_outside = z < 0 || z >= w[0].in || y < 0 || y >= w[1].in;
      *line++ = is_outside ? NULL : (const uint8_t *)j->call->in[0].data + at;
    }
}

/* The addresses of `count` taps of a line, from `x` on, `step` apart. */
static inline void find_taps(const job *j, const uint8_t *line, int64_t x, int64_t step, int64_t count,
                             const uint8_t **row) {
  const int64_t in = j->last.window.axis[2].in, stride = j->last.axis_stride[2];
  for (int64_t i = 0; i < count; i++, x += step)
    row[i] = line == NULL || x < 0 || x >= in ? j->padding : line + x * stride;
}

static void do_line(const job *j, int64_t item, span blocks) {
  const berth__window_axis *w = &j->last.window.axis[2];
  const uint8_t *row[MOST_TAPS * MOST_PARTS * 4 / 3 + 4], *line[MOST_TAPS]; /* row: four per three taps in pairs */
  const berth__last_pixel start = berth__last_pixel_of(&j->last, item * w->out);
  const int64_t lines = j->taps / w->kernel, width = j->is_paired ? 4 : w->kernel, n_channels = j->last.channels;
  for (int64_t k = j->taps * j->parts; k < 4 * j->groups; k++)
    row[k] = j->padding; /* bytes without a tap have weight 0 */
  find_lines(j, &start, line);
  for (int64_t pixel = 0, step; pixel < w->out; pixel += step) {
    const int64_t at = item * w->out + pixel, left = w->out - pixel, x = pixel * w->stride - w->begin;
    const bool is_inside = x >= 0 && x + j->beside + (w->kernel - 1) * w->dilation <= w->in && left >= j->beside;
    step = j->is_paired ? 2 : is_inside ? j->beside : 1;
    for (int64_t k = 0; k < lines * j->parts; k++)
      find_taps(j, line[k % lines], x, w->dilation, width, row + k * width);
    const int64_t n_out = left < j->pixels ? left : j->pixels;
    if (j->is_paired && j->groups == 3) /* 3 x 3 has three groups either way */
      do_pixels(j, blocks, row, at, n_out, n_channels, 3, 2);
    else if (j->is_paired)
      do_pixels(j, blocks, row, at, n_out, n_channels, j->groups, 2);
    else if (j->groups == 3)
      do_pixels(j, blocks, row, at, n_out, step * n_channels, 3, 1);
    else
      do_pixels(j, blocks, row, at, n_out, step * n_channels, j->groups, 1);
  }
  const int64_t first = blocks.begin * BLOCK, end = blocks.end < j->blocks ? blocks.end * BLOCK : n_channels;
  if (j->has_epilogue) epilogue_rows(&j->epilogue, item * w->out, w->out, first, end - first);
}

static berth_status qdepthwise_kernel_run(const berth_op_call *call, berth_error *err) {
  job j;
  int64_t parts = 1;
  (void)err;
  qdepthwise_kernel_describe(&j, call);
  if (qdepthwise_kernel_most_parts(call) > 1) memcpy(&parts, j.padding + j.blocks * BLOCK, sizeof parts);
  set_parts(&j, parts);
  for (int64_t item = call->begin; item < call->end; item++) {
    const int64_t set = item % j.sets;
    do_line(&j, item / j.sets, (span){set * j.blocks / j.sets, (set + 1) * j.blocks / j.sets});
  }
  return BERTH_OK;
}

const berth__cpu_kernel BERTH__PER_ISA(berth__kernels_qdepthwise)[] = {
    {"qdepthwise", BERTH__OP_qdepthwise, qdepthwise_kernel_takes, qdepthwise_kernel_items, qdepthwise_kernel_grain,
     qdepthwise_kernel_scratch, qdepthwise_kernel_run, qdepthwise_kernel_prepare, true, NULL},
    {0},
};
