/* Moving elements: transpose, concat, split, narrow, expand and the like, when they are not views. If the last axis of
 * the result is contiguous in the source, lines are copied. If another axis is, the two are exchanged in tiles that are
 * transposed in registers. */
#include "base/blocks.h"
#include "device/cpu/kernels/chain_steps.h"
#include "device/cpu/kernels/turn.h"
#include "ops/copy.h"
#include "ops/operand.h"
#include "ops/write_rows.h"

#define ITEM 16384 /* elements */
#define TILE 64    /* minimum extents of the two transposed axes in an item */

typedef struct mover {
  berth__copy c; /* axes joined */
  bool in_tiles;
  /* The axes except the last and the transposed one. */
  uint32_t rank;
  int64_t dim[BERTH_MAX_RANK], from_stride[BERTH_MAX_RANK], to_stride[BERTH_MAX_RANK];
  int64_t n_outer, outer_each;                          /* positions on those axes: all, and per item */
  int64_t length, length_each;                          /* the last axis: all, and per item */
  int64_t width, width_each;                            /* the transposed axis; 1 if lines are copied */
  int64_t width_from, width_to, length_from, length_to; /* strides */
  int64_t items;
} mover;

static int64_t move_kernel_pieces(int64_t count, int64_t each) { return (count + each - 1) / each; }
static int64_t move_kernel_least(int64_t a, int64_t b) { return a < b ? a : b; }

/* The axis whose elements are contiguous in the source; the last one if there is none, or if the result's last axis is
 * not contiguous. */
static uint32_t turned_axis(const berth__copy *c) {
  const uint32_t last = c->rank - 1;
  if (c->from_stride[last] == 1 || c->from_stride[last] == 0 || c->to_stride[last] != 1) return last;
  for (uint32_t axis = 0; axis < last; axis++)
    if (c->from_stride[axis] == 1) return axis;
  return last;
}

static void choose_pieces(mover *m) {
  m->width_each = m->length < TILE * 4 ? ITEM / m->length : TILE;
  m->width_each = move_kernel_least(m->width, move_kernel_pieces(m->width_each, TILE) * TILE);
  m->length_each = move_kernel_least(m->length, move_kernel_pieces(ITEM / m->width_each, TILE) * TILE);
  const int64_t each = m->width_each * m->length_each;
  m->outer_each = m->width_each == m->width && m->length_each == m->length && each < ITEM ? ITEM / each : 1;
  m->items = move_kernel_pieces(m->n_outer, m->outer_each) * move_kernel_pieces(m->width, m->width_each) *
             move_kernel_pieces(m->length, m->length_each);
}

static void mover_prepare(mover *m, const berth__copy *copy) {
  m->c = *copy;
  berth__copy_join(&m->c);
  const berth__copy *c = &m->c;
  const uint32_t last = c->rank - 1, turned = turned_axis(c);
  m->in_tiles = turned != last;
  m->length = c->dim[last];
  m->length_from = c->from_stride[last];
  m->length_to = c->to_stride[last];
  m->width = m->in_tiles ? c->dim[turned] : 1;
  m->width_from = c->from_stride[turned];
  m->width_to = c->to_stride[turned];
  m->rank = 0;
  m->n_outer = 1;
  for (uint32_t axis = 0; axis < last; axis++) {
    if (axis == turned) continue;
    m->n_outer *= c->dim[axis];
    m->dim[m->rank] = c->dim[axis];
    m->from_stride[m->rank] = c->from_stride[axis];
    m->to_stride[m->rank++] = c->to_stride[axis];
  }
  m->items = 0;
  if (m->n_outer * m->length * m->width > 0) choose_pieces(m);
}

/* ---- Items ---------------------------------------------------------------------------------------------------- */

typedef struct place {
  int64_t at[BERTH_MAX_RANK];
  int64_t from, to; /* elements */
} place;

static void move_kernel_seek(const mover *m, place *p, int64_t outer) {
  p->from = p->to = 0;
  for (uint32_t axis = m->rank; axis-- > 0; outer /= m->dim[axis]) {
    p->at[axis] = outer % m->dim[axis];
    p->from += p->at[axis] * m->from_stride[axis];
    p->to += p->at[axis] * m->to_stride[axis];
  }
}

static void next(const mover *m, place *p) {
  for (uint32_t axis = m->rank; axis-- > 0;) {
    p->from += m->from_stride[axis];
    p->to += m->to_stride[axis];
    if (++p->at[axis] < m->dim[axis]) return;
    p->from -= p->at[axis] * m->from_stride[axis];
    p->to -= p->at[axis] * m->to_stride[axis];
    p->at[axis] = 0;
  }
}

/* `count` lines of the same size, with a stride (in bytes) on both sides. Two copies of a fixed size, which meet or
 * overlap, make a line of any length up to 32; longer lines take more of them. Calling memcpy for each line would take
 * longer than the copy. */
#define SHORT_LINE 1024
#define PASS(size)                                                        \
  for (int64_t i = 0; i < count; i++, to += to_step, from += from_step) { \
    char first[size], last[size];                                         \
    memcpy(first, from, size);                                            \
    memcpy(last, from + bytes - (size), size);                            \
    memcpy(to, first, size);                                              \
    memcpy(to + bytes - (size), last, size);                              \
  }
static void copy_short_lines(char *to, int64_t to_step, const char *from, int64_t from_step, int64_t count,
                             int64_t bytes) {
  if (bytes > 32) {
    for (int64_t i = 0; i < count; i++, to += to_step, from += from_step) {
      for (int64_t k = 0; k + 32 < bytes; k += 32) memcpy(to + k, from + k, 32);
      memcpy(to + bytes - 32, from + bytes - 32, 32);
    }
  } else if (bytes >= 16) {
    PASS(16)
  } else if (bytes >= 8) {
    PASS(8)
  } else if (bytes >= 4) {
    PASS(4)
  } else {
    for (int64_t i = 0; i < count; i++, to += to_step, from += from_step)
      for (int64_t k = 0; k < bytes; k++) to[k] = from[k];
  }
}

/* One element repeated. */
#define REPEAT(c_type)                                                                    \
  {                                                                                       \
    c_type x;                                                                             \
    memcpy(&x, from, sizeof x);                                                           \
    for (int64_t i = 0; i < length; i++) memcpy(to + (size_t)i * sizeof x, &x, sizeof x); \
    break;                                                                                \
  }
static void repeat(char *restrict to, const char *restrict from, int64_t length, size_t element) {
  switch (element) {
    case 1: memset(to, *from, (size_t)length); break;
    case 2: REPEAT(uint16_t)
    case 4: REPEAT(uint32_t)
    default: REPEAT(uint64_t)
  }
}

static void move_kernel_copy_line(const mover *m, char *to, const char *from, int64_t length) {
  if (m->length_from == 0 && m->length_to == 1)
    repeat(to, from, length, m->c.element);
  else if (m->length_from != 1 && m->length_to == 1)
    turn_together(to, from, m->length_from, length, m->c.element);
  else
    berth__copy_line(to, m->length_to, from, m->length_from, length, m->c.element);
}

/* Lines that are contiguous in the source, from the position on, `count` of them. */
static void copy_lines(const mover *m, place *p, int64_t k, int64_t length, int64_t count) {
  const int64_t size = (int64_t)m->c.element, inner = m->rank > 0 ? m->rank - 1 : 0;
  const bool is_short = m->length_from == 1 && m->length_to == 1 && length * size <= SHORT_LINE && m->rank > 0;
  for (int64_t i = 0; i < count;) {
    char *to = (char *)m->c.to + (p->to + k * m->length_to) * size;
    const char *from = (const char *)m->c.from + (p->from + k * m->length_from) * size;
    if (!is_short) {
      move_kernel_copy_line(m, to, from, length);
      next(m, p);
      i++;
      continue;
    }
    const int64_t n = move_kernel_least(m->dim[inner] - p->at[inner], count - i);
    copy_short_lines(to, m->to_stride[inner] * size, from, m->from_stride[inner] * size, n, length * size);
    p->at[inner] += n - 1;
    p->from += (n - 1) * m->from_stride[inner];
    p->to += (n - 1) * m->to_stride[inner];
    next(m, p);
    i += n;
  }
}

static void move_item(const mover *m, int64_t item) {
  const int64_t lengths = move_kernel_pieces(m->length, m->length_each),
                widths = move_kernel_pieces(m->width, m->width_each);
  const int64_t k = item % lengths * m->length_each, w = item / lengths % widths * m->width_each;
  const int64_t length = move_kernel_least(m->length - k, m->length_each),
                width = move_kernel_least(m->width - w, m->width_each);
  const int64_t outer = item / lengths / widths * m->outer_each, size = (int64_t)m->c.element;
  const int64_t count = move_kernel_least(m->n_outer - outer, m->outer_each);
  place p;
  move_kernel_seek(m, &p, outer);
  if (!m->in_tiles) {
    copy_lines(m, &p, k, length, count);
    return;
  }
  for (int64_t i = 0; i < count; i++, next(m, &p))
    turn_block((char *)m->c.to + (p.to + w * m->width_to + k * m->length_to) * size, m->width_to,
               (const char *)m->c.from + (p.from + w * m->width_from + k * m->length_from) * size, m->length_from,
               width, length, m->c.element);
}

/* ---- Ops that could be views ---------------------------------------------------------------------------------- */

/* The part of operand 0 that output k shows; false: the attributes do not tell. */
static bool view_of(const berth_op_call *call, uint32_t k, berth__copy *c) {
  const berth__op *op = call->user;
  const berth_tensor *in = &call->in[0], *out = &call->out[k];
  berth__shape shape = {.rank = out->rank};
  int64_t offset;
  memcpy(shape.dim, out->dim, sizeof shape.dim);
  *c = (berth__copy){.rank = out->rank, .to = out->data, .element = berth_type_size(out->type)};
  memcpy(c->dim, out->dim, sizeof c->dim);
  memcpy(c->to_stride, out->stride, sizeof c->to_stride);
  if (op->code == BERTH__OP_narrow) /* views only go forwards, copies may go backwards */
    berth__narrow_shows(in, call->attrs, &offset, c->from_stride);
  else if (!op->family->view(in, call->attrs, &shape, out->type, k, &offset, c->from_stride))
    return false;
  if (in->data != NULL) c->from = (const char *)in->data + offset * (int64_t)c->element;
  return true;
}

/* The elements of operand 0 in order, which no strides of the result's shape can express. */
static void in_order(const berth_op_call *call, berth__copy *c) {
  const berth_tensor *in = &call->in[0];
  *c = (berth__copy){.rank = in->rank, .from = in->data, .to = call->out[0].data, .element = berth_type_size(in->type)};
  memcpy(c->dim, in->dim, sizeof c->dim);
  memcpy(c->from_stride, in->stride, sizeof c->from_stride);
  berth__contiguous_strides(in->rank, in->dim, c->to_stride);
}

static bool keeps_order(const berth_op_call *call) {
  const berth__op_code op = berth__call_code(call);
  return (op == BERTH__OP_reshape || op == BERTH__OP_flatten) && berth__is_contiguous(&call->out[0]);
}

static bool move_kernel_copy_of(const berth_op_call *call, uint32_t k, berth__copy *c) {
  if (view_of(call, k, c)) return true;
  if (!keeps_order(call)) return false;
  in_order(call, c);
  return true;
}

/* Constant lists have been turned into attributes. Lists that only a run knows still decide what a slice or a part
 * shows; elsewhere the extents of the result say it all. */
static bool takes_view(const berth_op_call *call) {
  const berth__op_code op = berth__call_code(call);
  const bool reads_lists = op == BERTH__OP_narrow || op == BERTH__OP_split;
  berth__copy c;
  for (uint32_t i = 1; i < call->n_in && reads_lists; i++)
    if (berth__call_has(call, i)) return false;
  for (uint32_t k = 0; k < call->n_out; k++)
    if (call->in[0].type != call->out[k].type || !move_kernel_copy_of(call, k, &c)) return false;
  return true;
}

/* The items of the first output, then those of the second, ... */
static int64_t view_items(const berth_op_call *call) {
  int64_t items = 0;
  for (uint32_t k = 0; k < call->n_out; k++) {
    berth__copy c;
    mover m;
    move_kernel_copy_of(call, k, &c);
    mover_prepare(&m, &c);
    items += m.items;
  }
  return items;
}

/* The call's items that belong to this mover, whose first is `first`. */
static void move_share(const mover *m, const berth_op_call *call, int64_t first) {
  const int64_t begin = call->begin > first ? call->begin - first : 0,
                end = move_kernel_least(call->end - first, m->items);
  if (m->c.from == m->c.to) return; /* already in place */
  for (int64_t item = begin; item < end; item++) move_item(m, item);
}

static berth_status run_view(const berth_op_call *call, berth_error *err) {
  int64_t first = 0;
  (void)err;
  for (uint32_t k = 0; k < call->n_out && first < call->end; k++) {
    berth__copy c;
    mover m;
    move_kernel_copy_of(call, k, &c);
    mover_prepare(&m, &c);
    move_share(&m, call, first);
    first += m.items;
  }
  return BERTH_OK;
}

/* ---- concat --------------------------------------------------------------------------------------------------- */

/* Operand k, which goes to `start` on the axis; returns where the next one goes. */
static int64_t move_kernel_part_of(const berth_op_call *call, uint32_t k, int64_t start, mover *m) {
  const berth_tensor *in = &call->in[k], *out = &call->out[0];
  const int64_t given = call->attrs[BERTH__CONCAT_AXIS].i;
  const uint32_t axis = (uint32_t)(given < 0 ? given + out->rank : given);
  berth__copy c = {.rank = in->rank, .from = in->data, .to = out->data, .element = berth_type_size(out->type)};
  if (out->data != NULL) c.to = (char *)out->data + start * out->stride[axis] * (int64_t)c.element;
  memcpy(c.dim, in->dim, sizeof c.dim);
  memcpy(c.from_stride, in->stride, sizeof c.from_stride);
  memcpy(c.to_stride, out->stride, sizeof c.to_stride);
  mover_prepare(m, &c);
  return start + in->dim[axis];
}

static int64_t concat_items(const berth_op_call *call) {
  int64_t items = 0, start = 0;
  for (uint32_t k = 0; k < call->n_in; k++) {
    mover m;
    start = move_kernel_part_of(call, k, start, &m);
    items += m.items;
  }
  return items;
}

static berth_status run_concat(const berth_op_call *call, berth_error *err) {
  int64_t first = 0, start = 0;
  (void)err;
  for (uint32_t k = 0; k < call->n_in && first < call->end; k++) {
    mover m;
    start = move_kernel_part_of(call, k, start, &m);
    move_share(&m, call, first);
    first += m.items;
  }
  return BERTH_OK;
}

/* ---- write_rows ----------------------------------------------------------------------------------------------- */

#define WORTH (64 << 10) /* bytes of rows that are worth a thread */

/* In place, which is how it is planned if possible, x costs nothing. Judged by all operands, one row of a large cache
 * would wake every thread. */
static int64_t write_rows_grain(const berth_op_call *call) {
  berth__write_rows w;
  berth__write_rows_of(call, &w);
  return WORTH / (w.inner * (int64_t)berth_type_size(call->in[BERTH__WRITE_ROWS_ROWS].type) + 1) + 1;
}

static void write_rows_encode(berth_type type, const float *from, int64_t stride, int64_t n, char *to) {
  if (stride == 1 && !berth__type_is_block(type))
    chain_store(to, type, from, n);
  else
    berth__write_rows_encode(type, from, stride, n, to);
}

static berth_status write_rows_run(const berth_op_call *call, berth_error *err) {
  return berth__write_rows_run(call, write_rows_encode, err);
}

#define VIEW(op) \
  { .name = #op, .code = BERTH__OP_##op, .takes = takes_view, .items = view_items, .run = run_view }

const berth__cpu_kernel BERTH__PER_ISA(berth__kernels_move)[] = {
    VIEW(identity),
    VIEW(cast),
    VIEW(reshape),
    VIEW(flatten),
    VIEW(squeeze),
    VIEW(unsqueeze),
    VIEW(transpose),
    VIEW(diagonal),
    VIEW(narrow),
    VIEW(split),
    VIEW(expand),
    {.name = "concat", .code = BERTH__OP_concat, .items = concat_items, .run = run_concat},
    {.name = "write_rows",
     .code = BERTH__OP_write_rows,
     .items = berth__write_rows_items,
     .grain = write_rows_grain,
     .run = write_rows_run},
    {0},
};
