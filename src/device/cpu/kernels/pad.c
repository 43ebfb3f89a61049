/* pad: lines along the last axis that is padded are filled, copied and filled. Unpadded axes after it are part of its
 * elements; with constant padding, whole axes count as part of the axis before them. */
#include "device/cpu/kernels/vec.h"
#include "ops/operand.h"

#define ITEM 16384 /* elements */

/* How an axis changes: `kept` elements from `crop` on, with `before` and other elements around them. */
typedef struct axis {
  int64_t in, out, crop, before, kept;
} axis;

typedef enum pad_mode {
  PAD_CONSTANT,
  PAD_REFLECT,
  PAD_EDGE,
  PAD_WRAP,
  PAD_MODES
} pad_mode;

typedef struct padding {
  pad_mode mode;
  uint32_t rank;
  axis axis[BERTH_MAX_RANK];
  int64_t lines, lines_each, length;
  size_t element; /* bytes of what moves together */
  unsigned char value[8];
} padding;

static pad_mode pad_kernel_mode_of(const berth_op_call *call) {
  static const char *const names[PAD_MODES] = {"constant", "reflect", "edge", "wrap"};
  int mode = 0;
  while (mode < PAD_MODES && strcmp(call->attrs[BERTH__PAD_MODE].s, names[mode]) != 0) mode++;
  return (pad_mode)mode;
}

static bool pad_kernel_is_whole(const axis *a) { return a->kept == a->in && a->kept == a->out; }

static void pad_kernel_add_axis(padding *p, axis next) {
  axis *last = p->rank > 0 ? &p->axis[p->rank - 1] : NULL;
  const bool joins = last != NULL && (p->mode == PAD_CONSTANT || pad_kernel_is_whole(last));
  if (!joins || !pad_kernel_is_whole(&next)) {
    p->axis[p->rank++] = next;
    return;
  }
  *last = (axis){last->in * next.in, last->out * next.in, last->crop * next.in, last->before * next.in,
                 last->kept * next.in};
}

/* Negative pads crop; this happens before the others are added. */
static axis pad_kernel_axis_of(const berth_op_call *call, uint32_t k, int64_t begin, int64_t end) {
  const int64_t in = call->in[BERTH__PAD_X].dim[k], crop = begin < 0 ? -begin : 0;
  return (axis){in, call->out[0].dim[k], crop, begin > 0 ? begin : 0, in - crop + (end < 0 ? end : 0)};
}

static void read_padding(padding *p, const berth_op_call *call) {
  const berth_attr *pads = &call->attrs[BERTH__PAD_PADS], *axes = &call->attrs[BERTH__PAD_AXES];
  const uint32_t rank = call->in[BERTH__PAD_X].rank, n = pads->count / 2;
  int64_t begin[BERTH_MAX_RANK] = {0}, end[BERTH_MAX_RANK] = {0};
  for (uint32_t k = 0; k < n; k++) {
    const int64_t given = axes->count > 0 ? axes->ints[k] : k;
    begin[given < 0 ? given + rank : given] = pads->ints[k];
    end[given < 0 ? given + rank : given] = pads->ints[n + k];
  }
  p->mode = pad_kernel_mode_of(call);
  p->rank = 0;
  for (uint32_t k = 0; k < rank; k++) pad_kernel_add_axis(p, pad_kernel_axis_of(call, k, begin[k], end[k]));
  p->element = berth_type_size(call->in[BERTH__PAD_X].type);
  if (p->rank > 1 && p->mode != PAD_CONSTANT && pad_kernel_is_whole(&p->axis[p->rank - 1]))
    p->element *= (size_t)p->axis[--p->rank].in;
  p->length = p->axis[p->rank - 1].out;
  p->lines = 1;
  for (uint32_t k = 0; k + 1 < p->rank; k++) p->lines *= p->axis[k].out;
  p->lines_each = p->length < ITEM ? ITEM / p->length : 1;
}

static bool pad_kernel_takes(const berth_op_call *call) {
  if (pad_kernel_mode_of(call) == PAD_MODES || call->in[BERTH__PAD_X].rank == 0) return false;
  return !berth__call_has(call, BERTH__PAD_PADS_OPERAND) && !berth__call_has(call, BERTH__PAD_AXES_OPERAND) &&
         berth__count(&call->out[0]) > 0;
}

static int64_t pad_kernel_items(const berth_op_call *call) {
  padding p;
  read_padding(&p, call);
  return (p.lines + p.lines_each - 1) / p.lines_each;
}

static void pad_kernel_fill(const padding *p, char *to, int64_t n) {
  float value;
  if (p->element == sizeof value) {
    memcpy(&value, p->value, sizeof value);
    for (int64_t i = 0; i < n; i += VF_LANES) vf_store_n((float *)(void *)to + i, vf_set1(value), vf_tail(n - i));
    return;
  }
  for (int64_t i = 0; i < n; i++) memcpy(to + (size_t)i * p->element, p->value, p->element);
}

/* Where position `at` of an axis of the result comes from; -1: it is padding. */
static int64_t pad_kernel_place(const padding *p, const axis *a, int64_t at) {
  int64_t i = at - a->before;
  if (i >= 0 && i < a->kept) return a->crop + i;
  if (p->mode == PAD_CONSTANT) return -1;
  if (p->mode == PAD_EDGE || a->kept == 1) return a->crop + (i < 0 ? 0 : a->kept - 1);
  const int64_t period = p->mode == PAD_WRAP ? a->kept : 2 * (a->kept - 1); /* forth and back, the ends once */
  i %= period;
  if (i < 0) i += period;
  return a->crop + (i < a->kept ? i : period - i);
}

/* Where the line comes from; -1: it is padding. */
static int64_t pad_kernel_source_of(const padding *p, int64_t line) {
  int64_t from = 0, stride = p->axis[p->rank - 1].in;
  for (uint32_t k = p->rank - 1; k-- > 0; line /= p->axis[k].out) {
    const int64_t at = pad_kernel_place(p, &p->axis[k], line % p->axis[k].out);
    if (at < 0) return -1;
    from += at * stride;
    stride *= p->axis[k].in;
  }
  return from;
}

/* Elements that move together are as wide as this type but may be unaligned: hence memcpy. */
#define BORDER(c_type)                                                                                   \
  {                                                                                                      \
    const size_t size = sizeof(c_type);                                                                  \
    for (int64_t i = begin; i < end; i++)                                                                \
      memcpy(to + (size_t)i * size, from + (size_t)pad_kernel_place(p, last, i) * size, sizeof(c_type)); \
    break;                                                                                               \
  }
/* The positions [begin, end) of a line outside of what is kept. */
static void pad_kernel_border(const padding *p, char *to, const char *from, int64_t begin, int64_t end) {
  const axis *last = &p->axis[p->rank - 1];
  if (p->mode == PAD_CONSTANT) {
    pad_kernel_fill(p, to + (size_t)begin * p->element, end - begin);
    return;
  }
  switch (p->element) {
    case 1: BORDER(uint8_t)
    case 2: BORDER(uint16_t)
    case 4: BORDER(uint32_t)
    case 8: BORDER(uint64_t)
    default:
      for (int64_t i = begin; i < end; i++)
        memcpy(to + (size_t)i * p->element, from + (size_t)pad_kernel_place(p, last, i) * p->element, p->element);
  }
}

static void kernel_pad_line(const padding *p, char *to, const char *x, int64_t line) {
  const axis *last = &p->axis[p->rank - 1];
  const int64_t source = pad_kernel_source_of(p, line), after = last->before + last->kept;
  if (source < 0) {
    pad_kernel_fill(p, to, p->length);
    return;
  }
  const char *from = x + (size_t)source * p->element;
  pad_kernel_border(p, to, from, 0, last->before);
  memcpy(to + (size_t)last->before * p->element, from + (size_t)last->crop * p->element,
         (size_t)last->kept * p->element);
  pad_kernel_border(p, to, from, after, p->length);
}

static berth_status pad_kernel_run(const berth_op_call *call, berth_error *err) {
  padding p;
  (void)err;
  read_padding(&p, call);
  if (berth__call_has(call, BERTH__PAD_VALUE_OPERAND))
    memcpy(p.value, call->in[BERTH__PAD_VALUE_OPERAND].data, berth_type_size(call->in[BERTH__PAD_X].type));
  else
    berth__store_f64(&(berth_tensor){.data = p.value, .type = call->in[BERTH__PAD_X].type}, 0,
                     call->attrs[BERTH__PAD_VALUE].f);
  const int64_t end = call->end * p.lines_each < p.lines ? call->end * p.lines_each : p.lines;
  for (int64_t line = call->begin * p.lines_each; line < end; line++)
    kernel_pad_line(&p, (char *)call->out[0].data + (size_t)(line * p.length) * p.element, call->in[BERTH__PAD_X].data,
                    line);
  return BERTH_OK;
}

const berth__cpu_kernel BERTH__PER_ISA(berth__kernels_pad)[] = {
    {.name = "pad", .code = BERTH__OP_pad, .takes = pad_kernel_takes, .items = pad_kernel_items, .run = pad_kernel_run},
    {0},
};
