/* f16 and bf16 for ops whose kernels are written for f32. A call is cut into independent boxes: rows of a softmax,
 * groups of a norm, lines of a convolution with the lines of x around them. What a box reads is converted to f32 in
 * scratch, the op's kernel for f32 runs there, and results are rounded once, when they are stored. So values keep their
 * 16 bits between nodes, and there is one kernel for all types. How a call is cut depends only on its shapes. */
#include "device/cpu/kernels/chain_steps.h"
#include "ops/conv_last.h"
#include "ops/elementwise.h"
#include "ops/operand.h"
#include "ops/pool.h"

#define MOST_IN 20 /* operands: those of a convolution with an epilogue */
#define MOST_OUT 3 /* results */
#define MOST_ATTRS 16
#define LINE_BOX 16384        /* f32 elements of a box: they stay in the L2 cache, with the kernel's own scratch */
#define WINDOW_BOX 65536      /* with windows: their lines overlap, and every box reads the weights again */
#define BOXES_WANTED 8        /* boxes wanted for threads to share, unless they would be smaller than this: */
#define WINDOW_BOXES_WANTED 4 /* with windows: fewer, since each reads all weights */
#define LEAST_BOX 4096
#define WHOLE (-1)

/* How one tensor of the call relates to the box: for each of its axes, the axis of the box, or WHOLE. */
typedef struct follower {
  int8_t axis[BERTH_MAX_RANK];
  bool is_there, is_narrow; /* narrow: f16 or bf16, converted to f32 */
  bool is_moved;            /* a result that is not contiguous in a box: computed in scratch in its own type */
  bool is_window;           /* along its axis `window` it is the part of x that windows see */
} follower;

typedef struct boxes {
  const berth_op_call *call;
  uint32_t rank;
  int64_t dim[BERTH_MAX_RANK], unit[BERTH_MAX_RANK]; /* unit 0: the axis is not cut */
  int64_t each[BERTH_MAX_RANK], n_along[BERTH_MAX_RANK], count;
  follower in[MOST_IN], out[MOST_OUT];
  int window; /* the axis of the box that windows slide along; WHOLE: none */
  berth__window_axis w;
  uint32_t spatial, pads_attr;               /* the attribute with the pads, and how many axes it is for */
  int64_t pads[2 * BERTH__WINDOW_AXES];      /* of the whole call */
  int auto_pad_attr, over_attr, groups_attr; /* WHOLE: no such attribute */
} boxes;

/* One box: its position, and the call that computes it. */
typedef struct box {
  int64_t begin[BERTH_MAX_RANK], extent[BERTH_MAX_RANK];
  int64_t x_begin, x_extent, pad_begin, pad_end; /* along the windows' axis */
  berth_tensor in[MOST_IN], out[MOST_OUT];
  berth_attr attrs[MOST_ATTRS];
  int64_t pads[2 * BERTH__WINDOW_AXES];
  berth_op_call call;
  uint64_t used; /* bytes of scratch before the kernel's own */
} box;

static bool halves_is_narrow(berth_type type) { return type == BERTH_F16 || type == BERTH_BF16; }

/* ---- Which axes are cut ---- */

static follower halves_whole(const berth_tensor *t) {
  follower f = {.is_there = t->type != BERTH_TYPE_NONE, .is_narrow = halves_is_narrow(t->type)};
  memset(f.axis, WHOLE, sizeof f.axis);
  return f;
}

/* The tensor's axes are those of the box, aligned at the last; axes of extent 1 broadcast. */
static void halves_follow(follower *f, const boxes *b, const berth_tensor *t) {
  for (uint32_t axis = 0; axis < t->rank; axis++) {
    const uint32_t to = b->rank - t->rank + axis;
    f->axis[axis] = t->dim[axis] == b->dim[to] && t->dim[axis] != 1 ? (int8_t)to : WHOLE;
  }
}

static void halves_lead(boxes *b, const berth_tensor *t) {
  b->rank = t->rank;
  for (uint32_t axis = 0; axis < t->rank; axis++) b->dim[axis] = t->dim[axis];
}

/* All axes but one, of x and of a result with the same shape. */
static bool halves_cut_lines(boxes *b, int64_t axis) {
  const berth_tensor *x = &b->call->in[0];
  if (axis < 0) axis += x->rank;
  halves_lead(b, x);
  for (uint32_t i = 0; i < x->rank; i++) b->unit[i] = (int64_t)i != axis;
  halves_follow(&b->in[0], b, x);
  halves_follow(&b->out[0], b, &b->call->out[0]);
  return true;
}

static bool halves_cut_rows(boxes *b, int64_t axis) {
  const berth_tensor *x = &b->call->in[0];
  if (b->call->n_out != 1) return false;
  halves_cut_lines(b, 0);
  for (uint32_t i = 0; i < x->rank; i++) b->unit[i] = (int64_t)i < (axis < 0 ? axis + x->rank : axis);
  return true;
}

/* The axes of x that are not reduced, whether the result keeps the reduced ones as 1 or drops them. */
static bool halves_cut_kept(boxes *b, uint32_t gone) {
  const berth_tensor *x = &b->call->in[0], *out = &b->call->out[0];
  uint32_t at = 0;
  halves_cut_lines(b, 0);
  memset(b->out[0].axis, WHOLE, sizeof b->out[0].axis);
  for (uint32_t i = 0; i < x->rank; i++) {
    const bool stays = !(gone >> i & 1u);
    b->unit[i] = stays;
    if (stays) b->out[0].axis[at] = (int8_t)i;
    at += stays || out->rank == x->rank;
  }
  return at == out->rank;
}

static bool halves_cut_reduced(boxes *b) {
  berth__list list;
  uint32_t mask;
  if (berth__call_has(b->call, BERTH__REDUCE_AXES_OPERAND)) return false;
  berth__attr_list(&b->call->attrs[BERTH__REDUCE_AXES], &list);
  if (berth__list_axes(&list, b->call->in[0].rank, &mask, NULL) != BERTH_OK) return false;
  return halves_cut_kept(b, list.count == 0 ? (1u << b->call->in[0].rank) - 1 : mask);
}

static bool halves_cut_argument(boxes *b) {
  const int64_t axis = b->call->attrs[BERTH__ARG_AXIS].i;
  b->out[0].is_moved = true;
  return halves_cut_kept(b, 1u << (axis < 0 ? axis + b->call->in[0].rank : axis));
}

/* Operands from 1 on have one element per channel; channels are axis 1 of x. */
static bool halves_cut_channels(boxes *b, int64_t groups) {
  const berth_tensor *x = &b->call->in[0];
  if (x->rank < 2 || b->call->n_out != 1) return false;
  halves_cut_lines(b, WHOLE - (int64_t)x->rank);
  for (uint32_t i = 0; i < x->rank; i++) b->unit[i] = groups == 0 || i == 0;
  if (groups != 0 && x->dim[1] % groups == 0) b->unit[1] = x->dim[1] / groups;
  if (groups != 0) b->groups_attr = BERTH__GROUP_NORM_GROUPS;
  for (uint32_t k = 1; k < b->call->n_in; k++) b->in[k].axis[0] = 1;
  return true;
}

/* Images, and lines of the result with the lines of x that their windows see. */
static bool halves_cut_windows(boxes *b, const berth__window_attrs *window, const int64_t *kernel, uint32_t pads_attr,
                               int64_t unit) {
  const berth_tensor *x = &b->call->in[0], *out = &b->call->out[0];
  b->spatial = x->rank - 2;
  b->pads_attr = pads_attr;
  halves_lead(b, out);
  for (uint32_t k = 0; k < b->spatial; k++) {
    const berth__window_axis w = berth__window_axis_of(window, b->spatial, k, x->dim[1 + k], kernel[k]);
    if (k == 0) b->w = w;
    b->pads[k] = w.begin;
    b->pads[b->spatial + k] = w.end;
  }
  b->unit[0] = 1;
  b->unit[1] = unit;
  b->window = 1;
  b->in[0].axis[0] = 0;
  b->in[0].axis[1] = 1;
  b->in[0].is_window = true;
  halves_follow(&b->out[0], b, out);
  return true;
}

/* The tensor that a convolution adds to its result is converted with it; operands of its epilogue are read in their own
 * types. */
static bool halves_cut_convolution(boxes *b, uint32_t adds_attr) {
  const berth_op_call *call = b->call;
  const uint32_t first = adds_attr != UINT32_MAX ? berth__epilogue_first(&call->attrs[adds_attr]) : BERTH__LAST_EXTRA;
  b->in[1].is_narrow = false; /* packed weights are f32, or f16 that tiles load directly */
  for (uint32_t k = BERTH__LAST_EXTRA; k < call->n_in; k++) {
    halves_follow(&b->in[k], b, &call->in[k]);
    if (k >= first) b->in[k].is_narrow = false;
  }
  return !berth__call_has(call, BERTH__LAST_BIAS) || call->in[BERTH__LAST_BIAS].type == BERTH_F32;
}

static bool halves_cut_last(boxes *b, uint32_t adds_attr) {
  const berth__window_attrs window = berth__last_window(b->call->attrs);
  return halves_cut_windows(b, &window, b->call->attrs[BERTH__LAST_KERNEL].ints, BERTH__LAST_PADS, 1) &&
         halves_cut_convolution(b, adds_attr);
}

static bool halves_cut_winograd(boxes *b) {
  static const int64_t kernel[BERTH__WINDOW_AXES] = {3, 3, 3};
  const berth__window_attrs window = berth__winograd_window(b->call->attrs);
  return halves_cut_windows(b, &window, kernel, BERTH__WINOGRAD_PADS, b->call->attrs[BERTH__WINOGRAD_TILE].i) &&
         halves_cut_convolution(b, BERTH__WINOGRAD_ADDS);
}

static bool halves_cut_transposed(boxes *b) {
  halves_lead(b, &b->call->out[0]);
  b->unit[0] = 1;
  b->in[0].axis[0] = 0;
  halves_follow(&b->out[0], b, &b->call->out[0]);
  return halves_cut_convolution(b, UINT32_MAX);
}

static bool halves_cut_pool(boxes *b) {
  const berth__window_attrs window = berth__pool_window(b->call->attrs);
  if (b->call->n_out != 1) return false;
  if (b->call->attrs[BERTH__POOL_CHANNELS_LAST].i != 0) {
    b->auto_pad_attr = BERTH__POOL_AUTO_PAD;
    return halves_cut_windows(b, &window, b->call->attrs[BERTH__POOL_KERNEL].ints, BERTH__POOL_PADS, 1);
  }
  halves_lead(b, &b->call->out[0]); /* planes */
  b->unit[0] = b->unit[1] = 1;
  for (int8_t i = 0; i < 2; i++) b->in[0].axis[i] = b->out[0].axis[i] = i;
  return true;
}

/* Every axis; other operands than x broadcast. */
static bool halves_cut_elements(boxes *b) {
  halves_cut_lines(b, WHOLE - (int64_t)b->call->in[0].rank);
  b->out[0].is_moved = !b->out[0].is_narrow;
  for (uint32_t k = 1; k < b->call->n_in; k++)
    if (b->in[k].is_there) halves_follow(&b->in[k], b, &b->call->in[k]);
  return true;
}

static bool halves_cut(boxes *b) {
  const berth_attr *attr = b->call->attrs;
  switch (berth__call_code(b->call)) {
    case BERTH__OP_softmax:
    case BERTH__OP_log_softmax: return halves_cut_lines(b, attr[BERTH__SOFTMAX_AXIS].i);
    case BERTH__OP_cumsum:
    case BERTH__OP_cumprod:
      return !berth__call_has(b->call, BERTH__CUMSUM_AXIS_OPERAND) && halves_cut_lines(b, attr[BERTH__CUMSUM_AXIS].i);
    case BERTH__OP_layer_norm:
    case BERTH__OP_rms_norm: return halves_cut_rows(b, attr[BERTH__LAYER_NORM_AXIS].i);
    case BERTH__OP_layer_norm_grad:
    case BERTH__OP_rms_norm_grad:
      halves_cut_rows(b, attr[BERTH__LAYER_NORM_AXIS].i);
      halves_follow(&b->in[BERTH__NORM_GRAD_DY], b, &b->call->in[BERTH__NORM_GRAD_DY]);
      return true;
    case BERTH__OP_group_norm: return halves_cut_channels(b, attr[BERTH__GROUP_NORM_GROUPS].i);
    case BERTH__OP_batch_norm: return halves_cut_channels(b, 0);
    case BERTH__OP_reduce_sum:
    case BERTH__OP_reduce_mean:
    case BERTH__OP_reduce_max:
    case BERTH__OP_reduce_min:
    case BERTH__OP_reduce_prod: return halves_cut_reduced(b);
    case BERTH__OP_arg_max:
    case BERTH__OP_arg_min: return halves_cut_argument(b);
    case BERTH__OP_max_pool:
    case BERTH__OP_avg_pool: return halves_cut_pool(b);
    case BERTH__OP_conv_last: b->over_attr = BERTH__LAST_OVER; return halves_cut_last(b, BERTH__LAST_ADDS);
    case BERTH__OP_depthwise: return attr[BERTH__DEPTHWISE_OVER].i == 0 && halves_cut_last(b, UINT32_MAX);
    case BERTH__OP_conv_winograd: return halves_cut_winograd(b);
    case BERTH__OP_conv_transpose_last: return halves_cut_transposed(b);
    case BERTH__OP_quantize:
    case BERTH__OP_dequantize: return halves_cut_elements(b);
    default: return true; /* not cut */
  }
}

/* ---- The size of boxes ---- */

/* The lines of x that windows of lines [begin, begin + extent) see. */
static void halves_find_lines(const boxes *b, int64_t begin, int64_t extent, box *to) {
  const int64_t first = begin * b->w.stride - b->w.begin;
  const int64_t end = first + (extent - 1) * b->w.stride + (b->w.kernel - 1) * b->w.dilation + 1;
  const int64_t from = first > 0 ? first : 0, until = end < b->w.in ? end : b->w.in;
  to->x_begin = from;
  to->x_extent = until > from ? until - from : 0;
  to->pad_begin = first < 0 ? -first : 0;
  to->pad_end = end > b->w.in ? end - b->w.in : 0;
  if (to->pad_end > b->w.end) to->pad_end = b->w.end; /* a last window that is cut off sees no more */
}

static int64_t halves_extent(const follower *f, const boxes *b, const box *at, const berth_tensor *t, uint32_t axis) {
  const int to = f->axis[axis];
  if (to == WHOLE) return t->dim[axis];
  return f->is_window && to == b->window ? at->x_extent : at->extent[to];
}

static bool halves_is_made(const follower *f) { return f->is_there && (f->is_narrow || f->is_moved); }

static int64_t halves_count(const follower *f, const boxes *b, const box *at, const berth_tensor *t) {
  int64_t count = 1;
  for (uint32_t axis = 0; axis < t->rank; axis++) count *= halves_extent(f, b, at, t, axis);
  return count;
}

/* Elements of a box in scratch. */
static int64_t halves_size(const boxes *b, const box *at) {
  int64_t size = 0;
  for (uint32_t k = 0; k < b->call->n_in; k++)
    if (halves_is_made(&b->in[k])) size += halves_count(&b->in[k], b, at, &b->call->in[k]);
  for (uint32_t k = 0; k < b->call->n_out; k++)
    if (halves_is_made(&b->out[k])) size += halves_count(&b->out[k], b, at, &b->call->out[k]);
  return size;
}

static int64_t halves_pieces(int64_t n, int64_t each) { return each > 0 ? (n + each - 1) / each : 1; }

static void halves_measure(const boxes *b, box *at) {
  for (uint32_t i = 0; i < b->rank; i++) at->extent[i] = b->each[i];
  at->x_extent = 0;
  if (b->window == WHOLE) return;
  halves_find_lines(b, 0, b->each[b->window], at);
  at->x_extent = (b->each[b->window] - 1) * b->w.stride + (b->w.kernel - 1) * b->w.dilation + 1;
  if (at->x_extent > b->w.in) at->x_extent = b->w.in;
}

/* Halves the outermost axis that can still be cut, until boxes fit and there are enough for every thread. */
static void halves_choose(boxes *b) {
  const int64_t most = b->window != WHOLE ? WINDOW_BOX : LINE_BOX;
  const int64_t wanted = b->window != WHOLE ? WINDOW_BOXES_WANTED : BOXES_WANTED;
  box at;
  b->count = 1;
  for (uint32_t i = 0; i < b->rank; i++) b->each[i] = b->dim[i];
  for (uint32_t axis = 0;;) {
    halves_measure(b, &at);
    const int64_t size = halves_size(b, &at);
    if (size <= most && (b->count >= wanted || size <= LEAST_BOX)) break;
    while (axis < b->rank && (b->unit[axis] == 0 || b->each[axis] <= b->unit[axis])) axis++;
    if (axis == b->rank) break;
    const int64_t units = halves_pieces(b->each[axis], b->unit[axis]);
    b->each[axis] = (units + 1) / 2 * b->unit[axis];
    b->count = 1;
    for (uint32_t i = 0; i < b->rank; i++) b->count *= halves_pieces(b->dim[i], b->each[i]);
  }
  for (uint32_t i = 0; i < b->rank; i++) b->n_along[i] = halves_pieces(b->dim[i], b->each[i]);
}

/* Windows that lie entirely in the padding see no line of x, which kernels do not expect. */
static bool halves_see_lines(const boxes *b) {
  box at;
  if (b->window == WHOLE) return true;
  for (int64_t i = 0; i < b->n_along[b->window]; i++) {
    const int64_t begin = i * b->each[b->window], left = b->dim[b->window] - begin;
    halves_find_lines(b, begin, left < b->each[b->window] ? left : b->each[b->window], &at);
    if (at.x_extent == 0) return false;
  }
  return true;
}

static bool halves_plan(const berth_op_call *call, boxes *b) {
  const berth__op *op = call->user;
  const bool is_narrow = halves_is_narrow(call->out[0].type) || halves_is_narrow(call->in[0].type);
  if (!is_narrow || call->n_in > MOST_IN || call->n_out > MOST_OUT || op->family->n_attrs > MOST_ATTRS) return false;
  *b = (boxes){.call = call, .window = WHOLE, .auto_pad_attr = WHOLE, .over_attr = WHOLE, .groups_attr = WHOLE};
  for (uint32_t k = 0; k < call->n_in; k++) b->in[k] = halves_whole(&call->in[k]);
  for (uint32_t k = 0; k < call->n_out; k++) b->out[k] = halves_whole(&call->out[k]);
  if (berth__count(&call->out[0]) == 0 || !halves_cut(b)) return false;
  halves_choose(b);
  return halves_see_lines(b);
}

/* ---- One box ---- */

/* A tensor of the box: in place, or f32 and contiguous in scratch. */
static berth_tensor halves_tensor(const follower *f, const boxes *b, box *at, const berth_tensor *t, char *scratch) {
  berth_tensor of = *t;
  int64_t offset = 0, stride = 1;
  if (!f->is_there) return of;
  for (uint32_t axis = 0; axis < t->rank; axis++) {
    const int to = f->axis[axis];
    of.dim[axis] = halves_extent(f, b, at, t, axis);
    if (to != WHOLE) offset += (f->is_window && to == b->window ? at->x_begin : at->begin[to]) * t->stride[axis];
  }
  if (!halves_is_made(f)) {
    if (of.data != NULL) of.data = (char *)of.data + offset * (int64_t)berth_type_size(t->type);
    return of;
  }
  if (f->is_narrow) of.type = BERTH_F32;
  for (uint32_t axis = t->rank; axis-- > 0; stride *= of.dim[axis]) of.stride[axis] = stride;
  of.data = scratch != NULL ? scratch + at->used : NULL;
  at->used += ((uint64_t)stride * berth_type_size(of.type) + 63) / 64 * 64;
  return of;
}

static void halves_set_attrs(const boxes *b, box *at) {
  const uint32_t n = ((const berth__op *)b->call->user)->family->n_attrs;
  memcpy(at->attrs, b->call->attrs, n * sizeof *at->attrs);
  if (b->over_attr != WHOLE) at->attrs[b->over_attr].i = 0;
  if (b->groups_attr != WHOLE) at->attrs[b->groups_attr].i = halves_pieces(at->extent[1], b->unit[1]);
  if (b->window == WHOLE) return;
  memcpy(at->pads, b->pads, sizeof at->pads);
  at->pads[0] = at->pad_begin;
  at->pads[b->spatial] = at->pad_end;
  at->attrs[b->pads_attr].ints = at->pads;
  at->attrs[b->pads_attr].count = 2 * b->spatial;
  if (b->auto_pad_attr != WHOLE) at->attrs[b->auto_pad_attr].s = "none";
}

static void halves_box(const boxes *b, int64_t item, char *scratch, box *at) {
  at->used = 0;
  memset(at->extent, 0, sizeof at->extent);
  for (uint32_t i = b->rank; i-- > 0; item /= b->n_along[i]) {
    at->begin[i] = item % b->n_along[i] * b->each[i];
    at->extent[i] = b->dim[i] - at->begin[i] < b->each[i] ? b->dim[i] - at->begin[i] : b->each[i];
  }
  if (b->window != WHOLE) halves_find_lines(b, at->begin[b->window], at->extent[b->window], at);
  for (uint32_t k = 0; k < b->call->n_in; k++) at->in[k] = halves_tensor(&b->in[k], b, at, &b->call->in[k], scratch);
  for (uint32_t k = 0; k < b->call->n_out; k++)
    at->out[k] = halves_tensor(&b->out[k], b, at, &b->call->out[k], scratch);
  halves_set_attrs(b, at);
  at->call = *b->call;
  at->call.in = at->in;
  at->call.out = at->out;
  at->call.attrs = at->attrs;
  at->call.begin = 0;
  at->call.scratch = scratch != NULL ? scratch + at->used : NULL;
}

extern const berth__cpu_isa BERTH__PER_ISA(berth__isa);

/* The kernel that computes a box. Some ops only have the reference kernel, which is several times as fast with f32. */
static bool halves_kernel(const berth_op_call *call, berth__cpu_kernel *kernel) {
  const berth__cpu_kernels kernels = {.isa = &BERTH__PER_ISA(berth__isa)};
  const berth__op *op = call->user;
  const berth__cpu_kernel *found = berth__cpu_kernel_find(&kernels, op, call);
  if (found != NULL) {
    *kernel = *found;
    return true;
  }
  *kernel = (berth__cpu_kernel){.items = op->family->items, .scratch = op->family->scratch, .run = op->family->kernel};
  return op->code == BERTH__OP_cumsum || op->code == BERTH__OP_cumprod || op->code == BERTH__OP_reduce_prod;
}

/* ---- Into and out of scratch ---- */

static void halves_move_line(char *to, char *from, const berth_tensor *wide, const berth_tensor *t, bool is_result,
                             int64_t n, int64_t step) {
  const size_t size = berth_type_size(t->type);
  if (!is_result) {
    chain_load((float *)(void *)to, t->type, from, step, n);
  } else if (wide->type != t->type && step == 1) {
    chain_store(from, t->type, (const float *)(const void *)to, n);
  } else if (step == 1) {
    memcpy(from, to, (size_t)n * size);
  } else {
    for (int64_t i = 0; i < n; i++) {
      const char *element = to + (size_t)i * berth_type_size(wide->type);
      char *at = from + i * step * (int64_t)size;
      if (wide->type != t->type)
        chain_store(at, t->type, (const float *)(const void *)element, 1);
      else
        memcpy(at, element, size);
    }
  }
}

/* Moves a tensor of the box between scratch and its own memory, line by line; axes that continue from line to line are
 * joined. */
static void halves_move(const follower *f, const boxes *b, const box *at, const berth_tensor *wide,
                        const berth_tensor *t, bool is_result) {
  const int64_t size = (int64_t)berth_type_size(t->type), wide_size = (int64_t)berth_type_size(wide->type);
  int64_t offset = 0, n = 1, step = 1, lines = 1, done = 0;
  uint32_t axis = t->rank;
  for (uint32_t i = 0; i < t->rank; i++) {
    const int to = f->axis[i];
    if (to != WHOLE) offset += (f->is_window && to == b->window ? at->x_begin : at->begin[to]) * t->stride[i];
  }
  for (; axis > 0; axis--) {
    if (wide->dim[axis - 1] == 1) continue;
    if (n == 1)
      step = t->stride[axis - 1];
    else if (t->stride[axis - 1] != n * step)
      break;
    n *= wide->dim[axis - 1];
  }
  for (uint32_t i = 0; i < axis; i++) lines *= wide->dim[i];
  for (; done < lines && n > 0; done++) {
    int64_t rest = done, from = offset;
    for (uint32_t i = axis; i-- > 0; rest /= wide->dim[i]) from += rest % wide->dim[i] * t->stride[i];
    halves_move_line((char *)wide->data + done * n * wide_size, (char *)t->data + from * size, wide, t, is_result, n,
                     step);
  }
}

/* ---- The call ---- */

static bool halves_takes(const berth_op_call *call) {
  boxes b;
  box at;
  if (!halves_plan(call, &b)) return false;
  halves_box(&b, 0, NULL, &at);
  berth__cpu_kernel kernel;
  return halves_kernel(&at.call, &kernel);
}

static int64_t halves_items(const berth_op_call *call) {
  boxes b;
  return halves_plan(call, &b) ? b.count : 0;
}

/* The maximum over the boxes at the ends, which may have other pads and fewer lines. */
static uint64_t halves_scratch(const berth_op_call *call) {
  boxes b;
  uint64_t most = 0;
  if (!halves_plan(call, &b)) return 0;
  for (int64_t item = 0; item < b.count; item++) {
    box at;
    halves_box(&b, item, NULL, &at);
    berth__cpu_kernel kernel;
    const uint64_t own = halves_kernel(&at.call, &kernel) && kernel.scratch != NULL ? kernel.scratch(&at.call) : 0;
    if (at.used + own > most) most = at.used + own;
    if (item > 1 && item + 2 < b.count && b.window == WHOLE) item = b.count - 2;
  }
  return most;
}

/* An upper bound of the bytes that boxes of a call with smaller extents have in scratch: the limit for boxes, or the
 * size of the smallest box if that is larger. */
static uint64_t halves_used_most(const boxes *b) {
  const int64_t most = b->window != WHOLE ? WINDOW_BOX : LINE_BOX;
  boxes least = *b;
  box at;
  uint64_t bytes = sizeof(float);
  for (uint32_t i = 0; i < b->rank; i++)
    least.each[i] = b->unit[i] != 0 && b->unit[i] < b->dim[i] ? b->unit[i] : b->dim[i];
  for (uint32_t k = 0; k < b->call->n_out; k++)
    if (b->out[k].is_moved) bytes = sizeof(int64_t);
  halves_measure(&least, &at);
  const int64_t smallest = halves_size(&least, &at);
  return (uint64_t)(smallest > most ? smallest : most) * bytes + 64 * (MOST_IN + MOST_OUT);
}

/* With smaller extents, boxes are other parts of the call. For the kernel of f32, the whole call as one box is an upper
 * bound. */
static uint64_t halves_scratch_most(const berth_op_call *call) {
  boxes b;
  box at;
  berth__cpu_kernel kernel;
  if (!halves_plan(call, &b)) return 0;
  const uint64_t now = halves_scratch(call);
  for (uint32_t i = 0; i < b.rank; i++) {
    b.each[i] = b.dim[i];
    b.n_along[i] = 1;
  }
  halves_box(&b, 0, NULL, &at);
  if (!halves_kernel(&at.call, &kernel)) return now;
  uint64_t (*const scratch)(const berth_op_call *) = kernel.scratch_most != NULL ? kernel.scratch_most : kernel.scratch;
  const uint64_t used = halves_used_most(&b), own = scratch != NULL ? scratch(&at.call) : 0;
  const uint64_t most = own + (used < at.used ? used : at.used);
  return most > now ? most : now;
}

static berth_status halves_run_box(const boxes *b, box *at, berth_error *err) {
  berth__cpu_kernel kernel;
  if (!halves_kernel(&at->call, &kernel)) return berth__fail(err, BERTH_INTERNAL, "a part of a call has no kernel");
  for (uint32_t k = 0; k < b->call->n_in; k++)
    if (halves_is_made(&b->in[k])) halves_move(&b->in[k], b, at, &at->in[k], &b->call->in[k], false);
  at->call.end = kernel.items != NULL ? kernel.items(&at->call) : 1;
  if (kernel.prepare != NULL) kernel.prepare(&at->call);
  BERTH__TRY(kernel.run(&at->call, err));
  for (uint32_t k = 0; k < b->call->n_out; k++)
    if (halves_is_made(&b->out[k])) halves_move(&b->out[k], b, at, &at->out[k], &b->call->out[k], true);
  return BERTH_OK;
}

static berth_status halves_run(const berth_op_call *call, berth_error *err) {
  boxes b;
  if (!halves_plan(call, &b)) return BERTH_OK;
  for (int64_t item = call->begin; item < call->end; item++) {
    box at;
    halves_box(&b, item, call->scratch, &at);
    BERTH__TRY(halves_run_box(&b, &at, err));
  }
  return BERTH_OK;
}

#define ROW(op)                                                                                     \
  {                                                                                                 \
    .name = #op " of halves", .code = BERTH__OP_##op, .takes = halves_takes, .items = halves_items, \
    .scratch = halves_scratch, .run = halves_run, .scratch_most = halves_scratch_most               \
  }

const berth__cpu_kernel BERTH__PER_ISA(berth__kernels_halves)[] = {
    ROW(softmax),
    ROW(log_softmax),
    ROW(cumsum),
    ROW(cumprod),
    ROW(layer_norm),
    ROW(rms_norm),
    ROW(layer_norm_grad),
    ROW(rms_norm_grad),
    ROW(layer_norm_scale_grad),
    ROW(rms_norm_scale_grad),
    ROW(group_norm),
    ROW(batch_norm),
    ROW(reduce_sum),
    ROW(reduce_mean),
    ROW(reduce_max),
    ROW(reduce_min),
    ROW(reduce_prod),
    ROW(arg_max),
    ROW(arg_min),
    ROW(max_pool),
    ROW(avg_pool),
    ROW(conv_last),
    ROW(depthwise),
    ROW(conv_winograd),
    ROW(quantize),
    ROW(dequantize),
    ROW(lstm),
    ROW(gru),
    ROW(rnn),
    ROW(conv_transpose_last),
    {0},
};
