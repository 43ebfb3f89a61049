/* arg_max and arg_min: the index of the largest or smallest element along an axis. The first NaN wins over every
 * number, as in numpy (with select_last: the last one). An item is one line. */
#include "ops/elementwise.h"

static const berth_attr attrs_of_arg[] = {
    [BERTH__ARG_AXIS] = {.name = "axis", .kind = BERTH_ATTR_INT, .i = 0},
    [BERTH__ARG_KEEPDIMS] = {.name = "keepdims", .kind = BERTH_ATTR_INT, .i = 1},
    [BERTH__ARG_SELECT_LAST] = {.name = "select_last", .kind = BERTH_ATTR_INT, .i = 0}};

static berth_status infer_arg(berth__infer *infer, berth_error *err) {
  const berth__shape *in = &infer->in_shape[0];
  berth__shape *out = &infer->out_shape[0];
  uint32_t axis;
  BERTH__TRY(berth__want_numeric(infer, 0, err));
  BERTH__TRY(berth__want_axis(infer->attrs[BERTH__ARG_AXIS].i, in->rank, &axis, err));
  for (uint32_t i = BERTH__ARG_KEEPDIMS; i <= BERTH__ARG_SELECT_LAST; i++)
    if (infer->attrs[i].i != 0 && infer->attrs[i].i != 1)
      return berth__fail(err, BERTH_INVALID, "attribute '%s' is not 0 or 1", infer->attrs[i].name);
  if (in->dim[axis] == 0)
    return berth__fail(err, BERTH_INVALID, "axis %u is empty, so it has no largest or smallest element", axis);
  infer->out_type[0] = BERTH_I64;
  out->rank = 0;
  for (uint32_t i = 0; i < in->rank; i++)
    if (i != axis || infer->attrs[BERTH__ARG_KEEPDIMS].i) out->dim[out->rank++] = i == axis ? 1 : in->dim[i];
  return BERTH_OK;
}

/* An order of the elements in which the wanted one is the largest. */
typedef struct search {
  bool smallest, last;
  int64_t best;
  double f;
  int64_t i;
} search;

static bool beats_f64(const search *s, double x) {
  if (s->f != s->f || x != x) return x != x && (s->last || s->f == s->f);
  if (x == s->f) return s->last;
  return s->smallest ? x < s->f : x > s->f;
}

static bool beats_i64(const search *s, int64_t x) {
  if (x == s->i) return s->last;
  return s->smallest ? x < s->i : x > s->i;
}

static void search_f64(search *s, const double *x, int64_t first, int64_t count) {
  for (int64_t i = 0; i < count; i++)
    if (s->best < 0 || beats_f64(s, x[i])) s->f = x[i], s->best = first + i;
}

static void search_i64(search *s, const int64_t *x, int64_t first, int64_t count) {
  for (int64_t i = 0; i < count; i++)
    if (s->best < 0 || beats_i64(s, x[i])) s->i = x[i], s->best = first + i;
}

static void search_line(search *s, const berth_tensor *in, const berth__lines *lines, int64_t line) {
  union {
    double f[BERTH__BLOCK];
    int64_t i[BERTH__BLOCK];
  } block;
  bool is_float = berth__type_is_float(in->type);
  int64_t start = berth__line_start(lines, line);
  for (int64_t at = 0; at < lines->length; at += BERTH__BLOCK) {
    int64_t n = lines->length - at < BERTH__BLOCK ? lines->length - at : BERTH__BLOCK;
    berth__gather(is_float ? BERTH__CLASS_F64 : BERTH__CLASS_I64, &block, in->type, in->data, start + at * lines->inner,
                  lines->inner, n);
    if (is_float)
      search_f64(s, block.f, at, n);
    else
      search_i64(s, block.i, at, n);
  }
}

static berth_status arg_kernel(const berth_op_call *call, berth_error *err) {
  berth__lines lines = berth__lines_of(&call->in[0], call->attrs[BERTH__ARG_AXIS].i);
  int64_t *out = call->out[0].data;
  (void)err;
  for (int64_t line = call->begin; line < call->end; line++) {
    search s = {.smallest = berth__call_code(call) == BERTH__OP_arg_min,
                .last = call->attrs[BERTH__ARG_SELECT_LAST].i != 0,
                .best = -1};
    search_line(&s, &call->in[0], &lines, line);
    out[line] = s.best;
  }
  return BERTH_OK;
}

const berth__family berth__family_arg = {
    .attrs = attrs_of_arg, .n_attrs = 3, .infer = infer_arg, .items = berth__items_elements, .kernel = arg_kernel};
