/* qconv_last: the windows of a chunk of pixels are copied as rows (for 1 x 1 they already are), and then it is an int8
 * product. */
#include "device/cpu/kernels/gemm_i8.h"
#include "ops/conv_last.h"

/* One row of a chunk: the window of a pixel, tap after tap, channels of one group. */
typedef struct source {
  berth__last last;
  const uint8_t *x, *end; /* all of x */
  int64_t each;           /* channels per group */
  bool is_run;            /* neighbouring taps of a line are contiguous */
  bool is_direct;         /* the pixels of x are the rows */
  int64_t row_bytes;      /* of a copied row */
  int64_t group;          /* the group whose channels are read */
} source;

static int64_t depth_of(const berth_op_call *call, const berth__last *last) {
  return berth__window_taps(&last->window) * (last->channels / call->attrs[BERTH__LAST_GROUP].i);
}

static int64_t pixels_of(const berth__last *last) {
  int64_t count = last->images;
  for (uint32_t k = 0; k < BERTH__WINDOW_AXES; k++) count *= last->window.axis[k].out;
  return count;
}

/* 1 x 1 over every pixel, with a constant stride. */
static bool pixels_are_rows(const berth_op_call *call, const berth__last *last) {
  int64_t reach = last->axis_stride[BERTH__WINDOW_AXES - 1];
  if (call->in[0].type != BERTH_U8 || last->channels % 4 != 0 || call->attrs[BERTH__LAST_GROUP].i != 1) return false;
  for (uint32_t k = BERTH__WINDOW_AXES; k-- > 0;) {
    const berth__window_axis *w = &last->window.axis[k];
    if (w->kernel != 1 || w->stride != 1 || w->begin != 0 || w->end != 0) return false;
    if (w->in != 1 && last->axis_stride[k] != reach) return false;
    reach *= w->in;
  }
  return last->images == 1 || last->image_stride == reach;
}

static bool qconv_last_kernel_takes(const berth_op_call *call) {
  berth__last last;
  berth__last_read(call, &last);
  const int64_t depth = depth_of(call, &last);
  return call->attrs[BERTH__LAST_PANEL].i == VF_PANEL && i8_takes(call, depth);
}

#define ENOUGH 16       /* with so many items, chunks may have full size */
#define LEAST_ROWS 8    /* per chunk, at least */
#define FEW_BYTES 32768 /* bytes of x that are multiplied with a block of columns before the next one is prepared */
#define WHOLE 16        /* bytes copied at a time */
#define WORTH 500000    /* multiplications that are worth a thread */

/* Items are chunks of pixels times blocks of columns. Those of a chunk are neighbours, so that the pixels of a thread
 * are contiguous, as in the ops before and after. */
typedef struct cut {
  int64_t rows, blocks;
  int64_t chunks; /* of rows, of about equal size */
} cut;

static cut cut_of(const berth_op_call *call, const berth__last *last) {
  const int64_t group = call->attrs[BERTH__LAST_GROUP].i;
  cut c = {.rows = pixels_of(last), .blocks = group * i8_blocks_each(call->attrs[BERTH__LAST_CHANNELS].i / group)};
  for (int64_t each = I8_CHUNK; each >= LEAST_ROWS; each /= 2) {
    c.chunks = (c.rows + each - 1) / each;
    if (c.chunks * c.blocks >= ENOUGH) break;
  }
  return c;
}

static int64_t qconv_last_kernel_first_row(const cut *c, int64_t chunk) { return chunk * c->rows / c->chunks; }

static int64_t qconv_last_kernel_items(const berth_op_call *call) {
  berth__last last;
  berth__last_read(call, &last);
  const cut c = cut_of(call, &last);
  return c.chunks * c.blocks;
}

static int64_t qconv_last_kernel_grain(const berth_op_call *call) {
  berth__last last;
  berth__last_read(call, &last);
  const cut c = cut_of(call, &last);
  return WORTH / (c.rows * depth_of(call, &last) * last.outputs / (c.chunks * c.blocks) + 1) + 1;
}

static uint64_t qconv_last_kernel_scratch(const berth_op_call *call) {
  berth__last last;
  berth__last_read(call, &last);
  const uint64_t sums = I8_CHUNK * sizeof(int32_t);
  if (pixels_are_rows(call, &last)) return sums;
  return sums + (uint64_t)(I8_CHUNK * 4 * berth__bytes_groups(depth_of(call, &last))) + WHOLE;
}

/* May write up to WHOLE bytes too many, which is faster than computing how few there are. */
static inline void copy_bytes(const source *s, uint8_t *to, const uint8_t *from, int64_t n) {
  if (n <= WHOLE && s->end - from >= WHOLE)
    memcpy(to, from, WHOLE);
  else
    memcpy(to, from, (size_t)n);
}

/* The taps of one line of a window; `from` is where its first tap would be. */
static void qconv_last_kernel_copy_line(const source *s, int64_t from, int64_t at, int zero, uint8_t *to) {
  const berth__window_axis *w = &s->last.window.axis[BERTH__WINDOW_AXES - 1];
  const int64_t step = s->last.axis_stride[BERTH__WINDOW_AXES - 1];
  if (s->is_run) {
    const int64_t before = at < 0 ? (-at < w->kernel ? -at : w->kernel) : 0;
    const int64_t inside = w->in - at < w->kernel ? w->in - at : w->kernel;
    const int64_t bytes = (inside - before) * s->each;
    if (before == 0 && inside == w->kernel) {
      copy_bytes(s, to, s->x + from, bytes);
      return;
    }
    memset(to, zero, (size_t)(w->kernel * s->each));
    if (inside > before) memcpy(to + before * s->each, s->x + from + before * step, (size_t)bytes);
    return;
  }
  for (int64_t tap = 0; tap < w->kernel; tap++, to += s->each, at += w->dilation) {
    if (at < 0 || at >= w->in)
      memset(to, zero, (size_t)s->each);
    else
      memcpy(to, s->x + from + tap * w->dilation * step, (size_t)s->each);
  }
}

static void copy_window(const source *s, berth__last_pixel p, int zero, uint8_t *to) {
  const berth__window_axis *w = s->last.window.axis;
  const int64_t *stride = s->last.axis_stride, line = w[2].kernel * s->each;
  const int64_t x = berth__window_input(&w[2], p.at[2], 0);
  for (int64_t tz = 0; tz < w[0].kernel; tz++)
    for (int64_t ty = 0; ty < w[1].kernel; ty++, to += line) {
      const int64_t z = berth__window_input(&w[0], p.at[0], tz), y = berth__window_input(&w[1], p.at[1], ty);
      const int64_t from = p.image * s->last.image_stride + z * stride[0] + y * stride[1] + x * stride[2];
      if (z < 0 || z >= w[0].in || y < 0 || y >= w[1].in)
        memset(to, zero, (size_t)line);
      else
        qconv_last_kernel_copy_line(s, from + s->group * s->each, x, zero, to);
    }
}

static void next_pixel(const berth__last *last, berth__last_pixel *pixel) {
  for (uint32_t k = BERTH__WINDOW_AXES; k-- > 0;) {
    if (++pixel->at[k] < last->window.axis[k].out) return;
    pixel->at[k] = 0;
  }
  pixel->image++;
}

static void copy_windows(const i8_job *job, const source *s, int64_t row, int64_t n, uint8_t *to) {
  const int zero = job->x_zero ^ job->flip; /* in the type of x */
  berth__last_pixel pixel = berth__last_pixel_of(&s->last, row);
  for (int64_t i = 0; i < n; i++, to += s->row_bytes, next_pixel(&s->last, &pixel)) {
    copy_window(s, pixel, zero, to);
    for (int64_t k = job->depth; k < s->row_bytes; k++) to[k] = job->flip;
    for (int64_t k = 0; k < s->row_bytes && job->flip != 0; k++) to[k] ^= job->flip;
  }
}

static void qconv_last_kernel_describe(const berth_op_call *call, source *s, i8_job *job) {
  const int64_t group = call->attrs[BERTH__LAST_GROUP].i;
  berth__last_read(call, &s->last);
  const berth__window_axis *w = &s->last.window.axis[BERTH__WINDOW_AXES - 1];
  i8_prepare(job, call, depth_of(call, &s->last), s->last.outputs, group);
  s->x = s->end = call->in[0].data;
  s->end += 1;
  for (uint32_t axis = 0; axis < call->in[0].rank; axis++)
    s->end += (call->in[0].dim[axis] - 1) * call->in[0].stride[axis];
  s->each = s->last.channels / group;
  s->is_run = w->dilation == 1 && group == 1 && s->last.axis_stride[BERTH__WINDOW_AXES - 1] == s->each;
  s->is_direct = pixels_are_rows(call, &s->last);
  s->row_bytes = s->is_direct ? s->last.axis_stride[BERTH__WINDOW_AXES - 1] : 4 * job->groups;
}

static uint8_t *copied(const i8_job *job) { return (uint8_t *)job->call->scratch + I8_CHUNK * sizeof(int32_t); }

/* The block of columns that was prepared last. */
typedef struct columns {
  int64_t index;
  i8_block block;
} columns;

/* A block of columns for the pixels [row, row + n). If windows are copied, there is at most one chunk, already
 * copied. */
static void multiply_block(const i8_job *job, const source *s, const i8_block *block, int64_t row, int64_t n) {
  int32_t *row_sum = job->call->scratch;
  for (int64_t i = 0; i < n; i += I8_CHUNK) {
    const int64_t count = n - i < I8_CHUNK ? n - i : I8_CHUNK;
    const uint8_t *x = s->is_direct ? s->x + (row + i) * s->row_bytes : copied(job);
    if (job->needs_row_sums) i8_sum_rows(x, s->row_bytes, job->depth, count, row_sum);
    i8_multiply(job, block, x, s->row_bytes, row_sum, row + i, count);
  }
}

static void qconv_last_kernel_multiply(const i8_job *job, source *s, columns *at, int64_t row, int64_t n, int64_t block,
                                       int64_t end) {
  for (s->group = -1; block < end; block++) {
    const int64_t group = block / i8_blocks_each(job->column_each);
    if (group != s->group) {
      s->group = group;
      if (!s->is_direct) copy_windows(job, s, row, n, copied(job));
    }
    if (at->index != block) i8_block_of(job, at->index = block, n, &at->block);
    multiply_block(job, s, &at->block, row, n);
  }
}

static berth_status qconv_last_kernel_run(const berth_op_call *call, berth_error *err) {
  source s;
  i8_job job;
  columns at;
  (void)err;
  at.index = -1;
  qconv_last_kernel_describe(call, &s, &job);
  const cut c = cut_of(call, &s.last);
  const int64_t most = s.is_direct ? I8_CHUNK + FEW_BYTES / job.depth : I8_CHUNK;
  for (int64_t item = call->begin, next; item < call->end; item = next) {
    const int64_t chunk = item / c.blocks, block = item % c.blocks, row = qconv_last_kernel_first_row(&c, chunk);
    int64_t after = chunk + 1; /* whole chunks are multiplied together */
    while (block == 0 && (after + 1) * c.blocks <= call->end &&
           qconv_last_kernel_first_row(&c, after + 1) - row <= most)
      after++;
    next = after * c.blocks < call->end ? after * c.blocks : call->end;
    qconv_last_kernel_multiply(&job, &s, &at, row, qconv_last_kernel_first_row(&c, after) - row, block,
                               next - (after - 1) * c.blocks);
  }
  return BERTH_OK;
}

const berth__cpu_kernel BERTH__PER_ISA(berth__kernels_qconv_last)[] = {
    {"qconv_last packed", BERTH__OP_qconv_last, qconv_last_kernel_takes, qconv_last_kernel_items,
     qconv_last_kernel_grain, qconv_last_kernel_scratch, qconv_last_kernel_run, NULL, true, NULL},
    {0},
};
