/* pad: adds elements around a tensor. Negative pads crop, before the others are added. */
#include <inttypes.h>

#include "ops/copy.h"
#include "ops/line.h"
#include "ops/operand.h"
#include "ops/registry.h"

static const berth_attr attrs[] = {
    [BERTH__PAD_PADS] = {.name = "pads", .kind = BERTH_ATTR_INTS},
    [BERTH__PAD_MODE] = {.name = "mode", .kind = BERTH_ATTR_STRING, .s = "constant"},
    [BERTH__PAD_VALUE] = {.name = "value", .kind = BERTH_ATTR_FLOAT},
    [BERTH__PAD_AXES] = {.name = "axes", .kind = BERTH_ATTR_INTS}, /* empty: all */
};

typedef enum pad_mode {
  CONSTANT,
  REFLECT,
  EDGE,
  WRAP,
  N_MODES
} pad_mode;
static const char *const mode_names[N_MODES] = {"constant", "reflect", "edge", "wrap"};

static pad_mode pad_mode_of(const berth_attr *attr) {
  uint32_t m = 0;
  while (m < N_MODES && strcmp(attr[BERTH__PAD_MODE].s, mode_names[m]) != 0) m++;
  return (pad_mode)m;
}

/* The change of one axis: `kept` elements from `crop` on, with `before` and `after` around them. */
typedef struct margin {
  int64_t crop, kept, before, after;
} margin;

static int64_t at_least_0(int64_t x) { return x > 0 ? x : 0; }

/* What is added to, or removed from, every axis. */
typedef struct pads {
  int64_t begin[BERTH_MAX_RANK], end[BERTH_MAX_RANK];
} pads;

static pads pads_of(const berth__list *list, const berth__list *axes, uint32_t rank) {
  pads p = {.begin = {0}};
  const uint32_t n = list->count / 2;
  for (uint32_t k = 0; k < n; k++) {
    const int64_t given = axes->given ? axes->at[k] : k;
    const uint32_t axis = (uint32_t)(given < 0 ? given + rank : given);
    p.begin[axis] = list->at[k];
    p.end[axis] = list->at[n + k];
  }
  return p;
}

static margin pad_margin_of(const pads *p, uint32_t axis, int64_t extent) {
  const int64_t begin = p->begin[axis], end = p->end[axis];
  margin m = {.crop = begin < 0 ? -begin : 0, .before = at_least_0(begin), .after = at_least_0(end)};
  m.kept = extent - m.crop + (end < 0 ? end : 0);
  return m;
}

static berth_status pad_axis(const pads *p, const berth_attr *attr, uint32_t axis, int64_t *dim, berth_error *err) {
  const int64_t begin = p->begin[axis], end = p->end[axis];
  if (begin == 0 && end == 0) return BERTH_OK;
  if (!berth__dim_is_fixed(*dim)) return *dim = BERTH__DIM_UNKNOWN, BERTH_OK;
  const bool crops_too_much = begin < -*dim || end < -*dim || pad_margin_of(p, axis, *dim).kept < 0;
  if (crops_too_much)
    return berth__fail(err, BERTH_INVALID,
                       "pads %" PRId64 " and %" PRId64 " crop more off axis %" PRIu32 " than its %" PRId64 " elements",
                       begin, end, axis, *dim);
  const margin m = pad_margin_of(p, axis, *dim);
  if (m.kept == 0 && pad_mode_of(attr) != CONSTANT && (m.before > 0 || m.after > 0))
    return berth__fail(err, BERTH_INVALID, "mode \"%s\" has nothing to repeat on axis %" PRIu32 ", which is empty",
                       attr[BERTH__PAD_MODE].s, axis);
  int64_t out;
  BERTH__TRY(berth__dim_add(m.kept, m.before, &out, err));
  return berth__dim_add(out, m.after, dim, err);
}

static berth_status check_value(const berth__infer *infer, berth_error *err) {
  int64_t count;
  if (!berth__infer_has(infer, BERTH__PAD_VALUE_OPERAND)) return BERTH_OK;
  BERTH__TRY(berth__want_same_type(infer, 0, BERTH__PAD_VALUE_OPERAND, err));
  if (!berth__shape_count(&infer->in_shape[BERTH__PAD_VALUE_OPERAND], &count) || count == 1) return BERTH_OK;
  return berth__fail(err, BERTH_INVALID, "operand %d, the value, has more than one element, or none",
                     BERTH__PAD_VALUE_OPERAND);
}

static berth_status read_pads(const berth__infer *infer, berth__list *list, berth__list *axes, berth_error *err) {
  const uint32_t rank = infer->in_shape[0].rank;
  uint32_t mask;
  BERTH__TRY(berth__infer_most_list(infer, BERTH__PAD_PADS, BERTH__PAD_PADS_OPERAND, list, err));
  BERTH__TRY(berth__infer_list(infer, BERTH__PAD_AXES, BERTH__PAD_AXES_OPERAND, axes, err));
  BERTH__TRY(berth__list_axes(axes, rank, &mask, err));
  const uint32_t expected = 2 * (axes->given ? axes->count : rank);
  if (list->count != expected)
    return berth__fail(err, BERTH_INVALID,
                       "`pads` has %" PRIu32 " entries, expected %" PRIu32
                       ": every axis's first, then every axis's last",
                       list->count, expected);
  return BERTH_OK;
}

/* If pads or axes are not known yet, every axis that may be padded is open. */
static void open_axes(const berth__list *axes, berth__shape *out) {
  const bool some = axes->given && axes->known;
  const uint32_t n = some ? axes->count : out->rank;
  for (uint32_t k = 0; k < n; k++) out->dim[some ? axes->at[k] : k] = BERTH__DIM_UNKNOWN;
}

static berth_status pad_infer(berth__infer *infer, berth_error *err) {
  berth__shape *out = &infer->out_shape[0];
  berth__list list, axes;
  *out = infer->in_shape[0];
  infer->out_type[0] = infer->in_type[0];
  if (pad_mode_of(infer->attrs) == N_MODES)
    return berth__fail(err, BERTH_INVALID, "mode \"%s\" is not one of constant, reflect, edge and wrap",
                       infer->attrs[BERTH__PAD_MODE].s);
  BERTH__TRY(check_value(infer, err));
  BERTH__TRY(read_pads(infer, &list, &axes, err));
  if (!list.known || !axes.known) return open_axes(&axes, out), BERTH_OK;
  const pads p = pads_of(&list, &axes, out->rank);
  for (uint32_t axis = 0; axis < out->rank; axis++) BERTH__TRY(pad_axis(&p, infer->attrs, axis, &out->dim[axis], err));
  return BERTH_OK;
}

/* The source of index `at` of the result; -1: none. */
static int64_t pad_source(const margin *m, pad_mode mode, int64_t at) {
  int64_t i = at - m->before;
  if (i >= 0 && i < m->kept) return m->crop + i;
  if (mode == CONSTANT) return -1;
  if (mode == EDGE) return m->crop + (i < 0 ? 0 : m->kept - 1);
  if (m->kept == 1) return m->crop;
  const int64_t period = mode == WRAP ? m->kept : 2 * (m->kept - 1); /* back and forth, without repeating the ends */
  i %= period;
  if (i < 0) i += period;
  return m->crop + (i < m->kept ? i : period - i);
}

typedef struct padding {
  pad_mode mode;
  margin margin[BERTH_MAX_RANK];
  unsigned char value[8]; /* one element */
  size_t size;
} padding;

static void pad_fill(const padding *p, char *to, const char *line, int64_t begin, int64_t end, uint32_t inner) {
  for (int64_t i = begin; i < end; i++) {
    const int64_t from = line ? pad_source(&p->margin[inner], p->mode, i) : -1;
    memcpy(berth__element(to, i, p->size), from < 0 ? (const void *)p->value : berth__element(line, from, p->size),
           p->size);
  }
}

/* One line along the last axis; `line` is the source line, NULL if there is none. */
static void pad_pad_line(const padding *p, char *to, const char *line, int64_t n, uint32_t inner) {
  const margin *m = &p->margin[inner];
  const int64_t kept = line ? m->kept : 0, after = m->before + kept;
  pad_fill(p, to, line, 0, m->before, inner);
  if (kept > 0)
    memcpy(berth__element(to, m->before, p->size), berth__element(line, m->crop, p->size), (size_t)kept * p->size);
  pad_fill(p, to, line, after, n, inner);
}

/* Items are lines along the last axis. */
static int64_t pad_items(const berth_op_call *call) {
  int64_t lines = 1;
  for (uint32_t axis = 0; axis + 1 < call->out[0].rank; axis++) lines *= call->out[0].dim[axis];
  return lines;
}

static padding padding_of(const berth_op_call *call) {
  const berth_tensor *in = &call->in[0];
  berth__list list, axes;
  padding p = {.mode = pad_mode_of(call->attrs), .size = berth_type_size(in->type)};
  berth__call_list(call, BERTH__PAD_PADS, BERTH__PAD_PADS_OPERAND, &list);
  berth__call_list(call, BERTH__PAD_AXES, BERTH__PAD_AXES_OPERAND, &axes);
  const pads around = pads_of(&list, &axes, in->rank);
  for (uint32_t axis = 0; axis < in->rank; axis++) p.margin[axis] = pad_margin_of(&around, axis, in->dim[axis]);
  if (berth__call_has(call, BERTH__PAD_VALUE_OPERAND))
    memcpy(p.value, call->in[BERTH__PAD_VALUE_OPERAND].data, p.size);
  else
    berth__store_f64(&(berth_tensor){.data = p.value, .type = in->type}, 0, call->attrs[BERTH__PAD_VALUE].f);
  return p;
}

static berth_status pad_kernel(const berth_op_call *call, berth_error *err) {
  (void)err;
  const berth_tensor *in = &call->in[0], *out = &call->out[0];
  const padding p = padding_of(call);
  if (out->rank == 0) {
    if (call->begin < call->end) memcpy(out->data, in->data, p.size);
    return BERTH_OK;
  }
  const uint32_t inner = out->rank - 1;
  for (int64_t item = call->begin; item < call->end; item++) {
    int64_t from = 0, rest = item;
    bool inside = true;
    for (uint32_t axis = inner; axis-- > 0; rest /= out->dim[axis]) {
      const int64_t at = pad_source(&p.margin[axis], p.mode, rest % out->dim[axis]);
      inside = inside && at >= 0;
      from += at * in->stride[axis];
    }
    pad_pad_line(&p, berth__element(out->data, item * out->dim[inner], p.size),
                 inside ? berth__element(in->data, from, p.size) : NULL, out->dim[inner], inner);
  }
  return BERTH_OK;
}

/* If nothing is added or removed it is the operand. */
static bool pad_view(const berth_tensor *in, const berth_attr *attr, const berth__shape *shape, berth_type type,
                     uint32_t out, int64_t *offset, int64_t *stride) {
  const berth_attr *given = &attr[BERTH__PAD_PADS];
  for (uint32_t i = 0; i < given->count; i++)
    if (given->ints[i] != 0) return false;
  return given->count != 0 && berth__family_identity.view(in, attr, shape, type, out, offset, stride);
}

const berth__family berth__family_pad = {
    .attrs = attrs,
    .n_attrs = sizeof attrs / sizeof *attrs,
    .infer = pad_infer,
    .items = pad_items,
    .kernel = pad_kernel,
    .view = pad_view,
    .valued = 1u << BERTH__PAD_PADS_OPERAND | 1u << BERTH__PAD_AXES_OPERAND,
    .attr_of = {[BERTH__PAD_PADS_OPERAND] = BERTH__PAD_PADS + 1,
                [BERTH__PAD_VALUE_OPERAND] = BERTH__PAD_VALUE + 1,
                [BERTH__PAD_AXES_OPERAND] = BERTH__PAD_AXES + 1},
};
