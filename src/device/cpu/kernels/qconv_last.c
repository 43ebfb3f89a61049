/* qconv_last: the windows of a chunk of pixels are laid out as rows (for 1 x 1 they lie so already), then it is a
 * product of bytes. */
#include "device/cpu/kernels/gemm_i8.h"
#include "ops/conv_last.h"

/* One row of a chunk: the window of a pixel, tap after tap, channels of one group. */
typedef struct source {
  berth__last last;
  const uint8_t *x, *end; /* of all of x */
  int64_t each;           /* channels of a group */
  bool is_run;            /* neighbouring taps of a line lie beside each other */
  bool is_direct;         /* the pixels of x are the rows */
  int64_t row_bytes;      /* of a row that is laid out */
  int64_t group;          /* the one whose channels are read */
} source;

static int64_t depth_of(const berth_op_call *call, const berth__last *last) {
  return berth__window_taps(&last->window) * (last->channels / call->attrs[BERTH__LAST_GROUP].i);
}

static int64_t pixels_of(const berth__last *last) {
  int64_t count = last->images;
  for (uint32_t k = 0; k < BERTH__WINDOW_AXES; k++) count *= last->window.axis[k].out;
  return count;
}

/* 1 x 1 over every pixel, one stride apart. */
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

static bool takes(const berth_op_call *call) {
  berth__last last;
  berth__last_read(call, &last);
  const int64_t depth = depth_of(call, &last);
  return depth >= 1 && depth <= I8_MOST_ROWS && call->attrs[BERTH__LAST_PANEL].i == VF_PANEL && i8_takes(call);
}

/* Items are blocks of pixels of blocks of columns. */
static int64_t rows_each(int64_t depth) { return (32768 / (depth * I8_CHUNK) + 1) * I8_CHUNK; }

static int64_t blocks_of(const berth_op_call *call) {
  const int64_t group = call->attrs[BERTH__LAST_GROUP].i;
  return group * i8_blocks_each(call->attrs[BERTH__LAST_CHANNELS].i / group);
}

static int64_t items(const berth_op_call *call) {
  berth__last last;
  berth__last_read(call, &last);
  const int64_t each = rows_each(depth_of(call, &last));
  return (pixels_of(&last) + each - 1) / each * blocks_of(call);
}

#define WHOLE 16      /* bytes that are copied at once */
#define WORTH 1200000 /* multiplications that are worth a thread */

static int64_t grain(const berth_op_call *call) {
  berth__last last;
  berth__last_read(call, &last);
  const int64_t depth = depth_of(call, &last), columns = last.outputs / call->attrs[BERTH__LAST_GROUP].i;
  return WORTH / (rows_each(depth) * depth * (columns < I8_COLUMNS ? columns : I8_COLUMNS)) + 1;
}

static uint64_t scratch(const berth_op_call *call) {
  berth__last last;
  berth__last_read(call, &last);
  const uint64_t sums = I8_CHUNK * sizeof(int32_t);
  if (pixels_are_rows(call, &last)) return sums;
  return sums + (uint64_t)(I8_CHUNK * 4 * berth__bytes_groups(depth_of(call, &last))) + WHOLE;
}

/* May write WHOLE bytes, which is faster than finding out how few there are. */
static inline void copy_bytes(const source *s, uint8_t *to, const uint8_t *from, int64_t n) {
  if (n <= WHOLE && s->end - from >= WHOLE)
    memcpy(to, from, WHOLE);
  else
    memcpy(to, from, (size_t)n);
}

/* The taps of one line of a window; `from` is where its first tap would be. */
static void copy_line(const source *s, int64_t from, int64_t at, int zero, uint8_t *to) {
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
        copy_line(s, from + s->group * s->each, x, zero, to);
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
  const int zero = job->x_zero ^ job->flip; /* of x as it is */
  berth__last_pixel pixel = berth__last_pixel_of(&s->last, row);
  for (int64_t i = 0; i < n; i++, to += s->row_bytes, next_pixel(&s->last, &pixel)) {
    copy_window(s, pixel, zero, to);
    for (int64_t k = job->depth; k < s->row_bytes; k++) to[k] = job->flip;
    for (int64_t k = 0; k < s->row_bytes && job->flip != 0; k++) to[k] ^= job->flip;
  }
}

static void describe(const berth_op_call *call, source *s, i8_job *job) {
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

static berth_status run(const berth_op_call *call, berth_error *err) {
  int32_t *row_sum = call->scratch;
  uint8_t *copy = (uint8_t *)call->scratch + I8_CHUNK * sizeof(int32_t);
  source s;
  i8_job job;
  i8_block block;
  int64_t block_at = -1;
  (void)err;
  describe(call, &s, &job);
  const int64_t pixels = pixels_of(&s.last), each = rows_each(job.depth), row_items = (pixels + each - 1) / each;
  for (int64_t item = call->begin; item < call->end; item++) {
    const int64_t first = item % row_items * each, last = first + each < pixels ? first + each : pixels;
    if (item / row_items != block_at) i8_block_of(&job, block_at = item / row_items, &block);
    s.group = block_at / i8_blocks_each(job.column_each);
    for (int64_t row = first; row < last; row += I8_CHUNK) {
      const int64_t n = last - row < I8_CHUNK ? last - row : I8_CHUNK;
      const uint8_t *x = s.is_direct ? s.x + row * s.row_bytes : copy;
      if (!s.is_direct) copy_windows(&job, &s, row, n, copy);
      if (job.needs_row_sums) i8_sum_rows(x, s.row_bytes, job.depth, n, row_sum);
      i8_multiply(&job, &block, x, s.row_bytes, row_sum, row, n);
    }
  }
  return BERTH_OK;
}

const berth__cpu_kernel BERTH__PER_ISA(berth__kernels_qconv_last)[] = {
    {"qconv_last packed", BERTH__OP_qconv_last, takes, items, grain, scratch, run},
    {0},
};
