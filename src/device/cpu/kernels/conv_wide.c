/* conv of f64 and of integers of 32 and 64 bits: what the windows of a piece of a line see lies as a panel in scratch
 * (im2col), some of the depth at a time, and is multiplied with the weights. */
#include "device/cpu/kernels/wide.h"
#include "ops/conv.h"
#include "ops/operand.h"

#define WORTH 40000 /* products of elements that are worth a thread */

typedef struct wide_conv {
  berth__conv c;
  berth_type type;
  int64_t groups, channels, outputs; /* channels and outputs: of a group */
  int64_t depth, plane;              /* plane: of a channel of the result */
  int64_t lines, pieces;             /* of a plane; of a line */
} wide_conv;

static void conv_wide_read(const berth_op_call *call, wide_conv *v) {
  berth__conv_read(call, &v->c);
  const berth__window_axis *w = v->c.window.axis;
  v->type = call->out[0].type;
  v->groups = call->attrs[BERTH__CONV_GROUP].i;
  v->channels = call->in[1].dim[1];
  v->outputs = call->in[1].dim[0] / v->groups;
  v->depth = v->channels * v->c.taps;
  v->lines = w[0].out * w[1].out;
  v->plane = v->lines * w[2].out;
  v->pieces = (w[2].out + wide_columns(v->type) - 1) / wide_columns(v->type);
}

static bool conv_wide_takes(const berth_op_call *call) {
  return wide_takes(call->out[0].type) && !berth__conv_has_epilogue(call->attrs) && berth__count(&call->in[1]) > 0;
}

static int64_t conv_wide_items(const berth_op_call *call) {
  wide_conv v;
  conv_wide_read(call, &v);
  return call->in[0].dim[0] * v.groups * v.lines * v.pieces;
}

static int64_t conv_wide_grain(const berth_op_call *call) {
  wide_conv v;
  conv_wide_read(call, &v);
  return WORTH / (v.outputs * v.depth * wide_columns(v.type) + 1) + 1;
}

static uint64_t conv_wide_scratch(const berth_op_call *call) {
  wide_conv v;
  conv_wide_read(call, &v);
  return WIDE_PANEL * (uint64_t)(v.depth < WIDE_STEPS ? v.depth : WIDE_STEPS);
}

/* Columns of a line of the result. */
typedef struct wide_piece {
  int64_t image, group, plane, row, column, n;
} wide_piece;

static wide_piece conv_wide_piece(const wide_conv *v, int64_t item) {
  const berth__window_axis *w = v->c.window.axis;
  const int64_t columns = wide_columns(v->type), line = item / v->pieces % v->lines;
  wide_piece p = {.image = item / v->pieces / v->lines / v->groups,
                  .group = item / v->pieces / v->lines % v->groups,
                  .plane = line / w[1].out,
                  .row = line % w[1].out,
                  .column = item % v->pieces * columns};
  p.n = w[2].out - p.column < columns ? w[2].out - p.column : columns;
  return p;
}

/* Elements of so many bytes are moved as they are; those outside x are 0. */
#define SEE(size)                                                                \
  for (int64_t i = 0; i < columns; i++) {                                        \
    const int64_t at = berth__window_input(w, p->column + i, tap);               \
    if (line != NULL && i < p->n && at >= 0 && at < w->in)                       \
      memcpy((char *)to + i * (size), (const char *)line + at * (size), (size)); \
    else                                                                         \
      memset((char *)to + i * (size), 0, (size));                                \
  }
/* One row of the panel: what tap `tap` of the last axis sees in a line of x; NULL: the line is outside. */
static void conv_wide_see(const wide_conv *v, const wide_piece *p, const void *line, int64_t tap, void *to) {
  const berth__window_axis *w = &v->c.window.axis[2];
  const int64_t columns = wide_columns(v->type);
  if (v->c.size == 4)
    SEE(4)
  else
    SEE(8)
}

static void conv_wide_fill(const berth_op_call *call, const wide_conv *v, const wide_piece *p, int64_t first,
                           int64_t depth) {
  const berth__window_axis *w = v->c.window.axis;
  char *to = call->scratch;
  for (int64_t k = first; k < first + depth; k++, to += WIDE_PANEL) {
    const int64_t channel = (p->image * v->groups + p->group) * v->channels + k / v->c.taps;
    int64_t t[BERTH__WINDOW_AXES];
    berth__window_tap(&v->c.window, k % v->c.taps, t);
    const int64_t i0 = berth__window_input(&w[0], p->plane, t[0]), i1 = berth__window_input(&w[1], p->row, t[1]);
    const bool inside = i0 >= 0 && i0 < w[0].in && i1 >= 0 && i1 < w[1].in;
    const int64_t at = channel * v->c.area + (i0 * w[1].in + i1) * w[2].in;
    conv_wide_see(v, p, inside ? berth__element(call->in[0].data, at, v->c.size) : NULL, t[2], to);
  }
}

/* The results of a piece begin with the bias. */
static void conv_wide_start(const berth_op_call *call, const wide_conv *v, const wide_piece *p, int64_t to) {
  for (int64_t output = 0; output < v->outputs; output++) {
    char *out = berth__element(call->out[0].data, to + output * v->plane, v->c.size);
    const char *bias = berth__element(call->in[BERTH__CONV_BIAS].data, p->group * v->outputs + output, v->c.size);
    for (int64_t i = 0; i < p->n; i++) memcpy(out + i * (int64_t)v->c.size, bias, v->c.size);
  }
}

static void conv_wide_multiply(const berth_op_call *call, const wide_conv *v, const wide_piece *p, int64_t to,
                               int64_t first, int64_t depth) {
  const bool has_bias = berth__call_has(call, BERTH__CONV_BIAS);
  wide_block w = {.b = call->scratch,
                  .a_step = 1,
                  .b_step = wide_columns(v->type),
                  .out_stride = v->plane,
                  .depth = depth,
                  .columns = p->n,
                  .adds = first > 0 || has_bias};
  for (int64_t output = 0; output < v->outputs; output += WIDE_ROWS) {
    const int64_t n = v->outputs - output < WIDE_ROWS ? v->outputs - output : WIDE_ROWS;
    for (int64_t r = 0; r < n; r++)
      w.row[r] = berth__element(call->in[1].data, (p->group * v->outputs + output + r) * v->depth + first, v->c.size);
    w.out = berth__element(call->out[0].data, to + output * v->plane, v->c.size);
    wide_run(v->type, &w, n);
  }
}

static berth_status conv_wide_run(const berth_op_call *call, berth_error *err) {
  wide_conv v;
  (void)err;
  conv_wide_read(call, &v);
  const berth__window_axis *w = v.c.window.axis;
  for (int64_t item = call->begin; item < call->end; item++) {
    const wide_piece p = conv_wide_piece(&v, item);
    const int64_t to =
        (p.image * v.groups + p.group) * v.outputs * v.plane + (p.plane * w[1].out + p.row) * w[2].out + p.column;
    if (berth__call_has(call, BERTH__CONV_BIAS)) conv_wide_start(call, &v, &p, to);
    for (int64_t first = 0; first < v.depth; first += WIDE_STEPS) {
      const int64_t depth = v.depth - first < WIDE_STEPS ? v.depth - first : WIDE_STEPS;
      conv_wide_fill(call, &v, &p, first, depth);
      conv_wide_multiply(call, &v, &p, to, first, depth);
    }
  }
  return BERTH_OK;
}

const berth__cpu_kernel BERTH__PER_ISA(berth__kernels_conv_wide)[] = {
    {.name = "conv wide",
     .code = BERTH__OP_conv,
     .takes = conv_wide_takes,
     .items = conv_wide_items,
     .grain = conv_wide_grain,
     .scratch = conv_wide_scratch,
     .run = conv_wide_run},
    {0},
};
