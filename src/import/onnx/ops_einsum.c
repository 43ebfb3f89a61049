/* Einsum: diagonals, sums, transposes and matrix products. Operands are combined one after the other, from left to
 * right; a label that nothing later needs is summed as early as possible. */
#include <ctype.h>

#include "import/onnx/compose.h"

/* Labels are numbers, so that a set of them is one integer: letters first, then the axes of the ellipsis, of which the
 * last is number FIRST_HIDDEN + BERTH_MAX_RANK - 1. */
#define FIRST_HIDDEN 52u
#define N_LABELS (FIRST_HIDDEN + BERTH_MAX_RANK)

typedef uint64_t label_set;
static label_set set_of(uint32_t label) { return (label_set)1 << label; }

typedef struct term {
  berth_value value;
  uint32_t n;
  uint8_t label[BERTH_MAX_RANK]; /* per axis */
} term;

static label_set labels_of(const term *t) {
  label_set set = 0;
  for (uint32_t i = 0; i < t->n; i++) set |= set_of(t->label[i]);
  return set;
}

/* ---- The equation ---- */

typedef struct reader {
  const char *at, *end;
} reader;

static void skip_blanks(reader *r) {
  while (r->at < r->end && isspace((unsigned char)*r->at)) r->at++;
}

static bool onnx_einsum_take(reader *r, const char *text) {
  size_t size = strlen(text);
  skip_blanks(r);
  if ((size_t)(r->end - r->at) < size || memcmp(r->at, text, size) != 0) return false;
  r->at += size;
  return true;
}

static bool take_letter(reader *r, uint32_t *label) {
  skip_blanks(r);
  if (r->at == r->end) return false;
  char c = *r->at;
  if (c >= 'A' && c <= 'Z')
    *label = (uint32_t)(c - 'A');
  else if (c >= 'a' && c <= 'z')
    *label = (uint32_t)(c - 'a') + 26;
  else
    return false;
  r->at++;
  return true;
}

static berth_status add_label(term *t, uint32_t label, berth_error *err) {
  if (t->n == BERTH_MAX_RANK)
    return berth__fail(err, BERTH_UNSUPPORTED, "a term of the equation has more than %d axes", BERTH_MAX_RANK);
  t->label[t->n++] = (uint8_t)label;
  return BERTH_OK;
}

/* One term. `hidden` tells how many axes its ellipsis stands for: the last of those that any ellipsis has. rank
 * UINT32_MAX: `hidden` is given; otherwise it follows from the rank. */
static berth_status read_term(reader *r, uint32_t rank, uint32_t *hidden, term *t, berth_error *err) {
  uint32_t label, letters = 0;
  bool has_ellipsis = false;
  reader ahead = *r;
  while (take_letter(&ahead, &label) || onnx_einsum_take(&ahead, "...")) letters += ahead.at[-1] != '.';
  if (rank != UINT32_MAX) *hidden = letters <= rank ? rank - letters : 0;
  t->n = 0;
  for (;;) {
    if (take_letter(r, &label)) {
      BERTH__TRY(add_label(t, label, err));
    } else if (!has_ellipsis && onnx_einsum_take(r, "...")) {
      has_ellipsis = true;
      for (uint32_t i = *hidden; i > 0; i--) BERTH__TRY(add_label(t, N_LABELS - i, err));
    } else {
      break;
    }
  }
  if (!has_ellipsis) *hidden = 0;
  if (rank == UINT32_MAX || t->n == rank) return BERTH_OK;
  return berth__fail(err, BERTH_MALFORMED, "a term of the equation has %u axes, its operand has %u", t->n, rank);
}

/* Without "->": the axes of the ellipsis, then the letters that occur once, in alphabetical order. */
static berth_status implied_result(const term *terms, size_t n_terms, uint32_t hidden, term *out, berth_error *err) {
  uint32_t count[N_LABELS] = {0};
  out->n = 0;
  for (size_t k = 0; k < n_terms; k++)
    for (uint32_t i = 0; i < terms[k].n; i++) count[terms[k].label[i]]++;
  for (uint32_t i = hidden; i > 0; i--) BERTH__TRY(add_label(out, N_LABELS - i, err));
  for (uint32_t label = 0; label < FIRST_HIDDEN; label++)
    if (count[label] == 1) BERTH__TRY(add_label(out, label, err));
  return BERTH_OK;
}

static berth_status onnx_einsum_check_result(const term *terms, size_t n_terms, const term *out, berth_error *err) {
  label_set known = 0, seen = 0;
  for (size_t k = 0; k < n_terms; k++) known |= labels_of(&terms[k]);
  for (uint32_t i = 0; i < out->n; i++) {
    if (!(known & set_of(out->label[i])))
      return berth__fail(err, BERTH_MALFORMED, "the equation's result has a label that no operand has");
    if (seen & set_of(out->label[i]))
      return berth__fail(err, BERTH_MALFORMED, "the equation's result has a label twice");
    seen |= set_of(out->label[i]);
  }
  return BERTH_OK;
}

static berth_status read_equation(const berth__onnx_call *call, term *terms, term *out, berth_error *err) {
  berth__span text = berth__onnx_string(call, "equation", "");
  if (text.size == 0) return berth__fail(err, BERTH_MALFORMED, "it has no equation");
  reader r = {(const char *)text.data, (const char *)text.data + text.size};
  uint32_t hidden = 0, most = 0;
  for (size_t k = 0; k < call->n_in; k++) {
    if (k > 0 && !onnx_einsum_take(&r, ",")) return berth__fail(err, BERTH_MALFORMED, "the equation has too few terms");
    terms[k].value = call->in[k];
    BERTH__TRY(read_term(&r, berth__onnx_shape(call, call->in[k])->rank, &hidden, &terms[k], err));
    if (hidden > most) most = hidden;
  }
  if (onnx_einsum_take(&r, "->"))
    BERTH__TRY(read_term(&r, UINT32_MAX, &most, out, err));
  else
    BERTH__TRY(implied_result(terms, call->n_in, most, out, err));
  skip_blanks(&r);
  if (r.at != r.end) return berth__fail(err, BERTH_MALFORMED, "the equation does not fit its operands");
  return onnx_einsum_check_result(terms, call->n_in, out, err);
}

/* ---- One term ---- */

static void drop_label(term *t, uint32_t axis) {
  for (uint32_t i = axis + 1; i < t->n; i++) t->label[i - 1] = t->label[i];
  t->n--;
}

static bool find_repeated(const term *t, uint32_t *first, uint32_t *second) {
  for (*first = 0; *first < t->n; ++*first)
    for (*second = *first + 1; *second < t->n; ++*second)
      if (t->label[*first] == t->label[*second]) return true;
  return false;
}

/* A label that occurs twice means the diagonal of these axes. */
static berth_status take_diagonals(berth__onnx_call *call, term *t, berth_error *err) {
  uint32_t first, second;
  while (find_repeated(t, &first, &second)) {
    uint8_t label = t->label[first];
    berth_attr attrs[] = {berth_attr_int("axis1", first), berth_attr_int("axis2", second)};
    BERTH__TRY(berth__onnx_emit(call, "diagonal", &t->value, 1, attrs, 2, &t->value, 1, err));
    drop_label(t, second);
    drop_label(t, first);
    t->label[t->n++] = label;
  }
  return BERTH_OK;
}

/* An extent of 1 broadcasts to that of another operand: dropping the axis has the same effect. */
static berth_status drop_stretched(berth__onnx_call *call, term *terms, size_t n_terms, berth_error *err) {
  label_set wide = 0;
  for (size_t k = 0; k < n_terms; k++)
    for (uint32_t i = 0; i < terms[k].n; i++)
      if (berth__onnx_shape(call, terms[k].value)->dim[i] != 1) wide |= set_of(terms[k].label[i]);
  for (size_t k = 0; k < n_terms; k++)
    for (uint32_t i = terms[k].n; i-- > 0;) {
      int64_t axis = i;
      if (berth__onnx_shape(call, terms[k].value)->dim[i] != 1 || !(wide & set_of(terms[k].label[i]))) continue;
      BERTH__TRY(berth__onnx_listed(call, "squeeze", terms[k].value, "axes", &axis, 1, &terms[k].value, err));
      drop_label(&terms[k], i);
    }
  return BERTH_OK;
}

static berth_status keep_only(berth__onnx_call *call, term *t, label_set needed, berth_error *err) {
  int64_t axes[BERTH_MAX_RANK];
  uint32_t n = 0;
  for (uint32_t i = 0; i < t->n; i++)
    if (!(needed & set_of(t->label[i]))) axes[n++] = i;
  if (n == 0) return BERTH_OK;
  BERTH__TRY(berth__onnx_reduce_over(call, "reduce_sum", t->value, axes, n, false, &t->value, err));
  while (n > 0) drop_label(t, (uint32_t)axes[--n]);
  return BERTH_OK;
}

/* Permutes the axes into the order of the labels; `order` has the same labels. */
static berth_status arrange(berth__onnx_call *call, term *t, const term *order, berth_error *err) {
  int64_t perm[BERTH_MAX_RANK];
  bool same = true;
  for (uint32_t i = 0; i < order->n; i++) {
    uint32_t from = 0;
    while (t->label[from] != order->label[i]) from++;
    perm[i] = from;
    same = same && from == i;
  }
  if (!same) BERTH__TRY(berth__onnx_listed(call, "transpose", t->value, "perm", perm, t->n, &t->value, err));
  memcpy(t->label, order->label, sizeof t->label);
  return BERTH_OK;
}

/* ---- Two terms ---- */

/* Appends the labels of t that are in the set to `to`, as many as there is room for. */
static uint32_t onnx_einsum_append(term *to, const term *t, label_set set) {
  uint32_t added = 0;
  for (uint32_t i = 0; i < t->n && to->n < BERTH_MAX_RANK; i++)
    if (set & set_of(t->label[i])) {
      to->label[to->n++] = t->label[i];
      added++;
    }
  return added;
}

static berth_status too_many_axes(const berth__onnx_call *call, berth_error *err) {
  return berth__onnx_unsupported(call, err, "a product of two operands has more than %d axes", BERTH_MAX_RANK);
}

/* Element-wise product: each side gets axes of extent 1 for labels that only the other has. */
static berth_status onnx_einsum_multiply(berth__onnx_call *call, term *a, term *b, berth_error *err) {
  label_set in_a = labels_of(a), in_b = labels_of(b);
  term result = {0}, order_b = {0};
  int64_t missing[BERTH_MAX_RANK];
  uint32_t n = 0;
  uint32_t shared = onnx_einsum_append(&result, a, in_a & in_b);
  onnx_einsum_append(&result, a, in_a & ~in_b);
  BERTH__TRY(arrange(call, a, &result, err));
  if (a->n + b->n - shared > BERTH_MAX_RANK) return too_many_axes(call, err);
  onnx_einsum_append(&result, b, in_b & ~in_a);
  onnx_einsum_append(&order_b, &result, in_b);
  BERTH__TRY(arrange(call, b, &order_b, err));
  for (uint32_t i = a->n; i < result.n; i++) missing[n++] = i;
  if (n != 0) BERTH__TRY(berth__onnx_listed(call, "unsqueeze", a->value, "axes", missing, n, &a->value, err));
  n = 0;
  for (uint32_t i = 0; i < result.n; i++)
    if (!(in_b & set_of(result.label[i]))) missing[n++] = i;
  if (n != 0) BERTH__TRY(berth__onnx_listed(call, "unsqueeze", b->value, "axes", missing, n, &b->value, err));
  BERTH__TRY(berth__onnx_binary(call, "mul", a->value, b->value, &result.value, err));
  *a = result;
  return BERTH_OK;
}

/* Consecutive extents of another value's shape; `whole`: joined into one axis. */
typedef struct stretch {
  berth_value of;
  uint32_t begin, n;
  bool whole;
} stretch;

/* The shape that the stretches form, if all their extents are fixed. */
static bool fixed_target(const berth__onnx_call *call, const stretch *s, size_t n, berth_dim *dims, uint32_t *rank) {
  *rank = 0;
  for (size_t k = 0; k < n; k++) {
    const berth__shape *shape = berth__onnx_shape(call, s[k].of);
    int64_t product = 1;
    for (uint32_t i = s[k].begin; i < s[k].begin + s[k].n; i++) {
      if (!berth__dim_is_fixed(shape->dim[i]) || berth__dim_mul(product, shape->dim[i], &product, NULL) != BERTH_OK)
        return false;
      if (!s[k].whole) dims[(*rank)++] = (berth_dim){.extent = shape->dim[i]};
    }
    if (s[k].whole) dims[(*rank)++] = (berth_dim){.extent = product};
  }
  return true;
}

/* The extents of a stretch as a list that is known once the dimensions are. */
static berth_status extents_of(berth__onnx_call *call, const stretch *s, berth_value *out, berth_error *err) {
  int64_t start = s->begin, end = (int64_t)s->begin + s->n;
  berth_attr attrs[] = {berth_attr_ints("starts", &start, 1), berth_attr_ints("ends", &end, 1)};
  BERTH__TRY(berth__onnx_unary(call, "shape", s->of, out, err));
  BERTH__TRY(berth__onnx_emit(call, "narrow", out, 1, attrs, 2, out, 1, err));
  return s->whole ? berth__onnx_reduce_over(call, "reduce_prod", *out, NULL, 0, true, out, err) : BERTH_OK;
}

#define MAX_STRETCHES 3

static berth_status onnx_einsum_reshape_to(berth__onnx_call *call, berth_value x, const stretch *s, size_t n,
                                           berth_value *out, berth_error *err) {
  berth_value in[2] = {x, BERTH_VALUE_NONE}, parts[MAX_STRETCHES];
  berth_dim dims[BERTH_MAX_RANK];
  uint32_t rank;
  const berth_attr axis = berth_attr_int("axis", 0), allow_zero = berth_attr_int("allowzero", 1);
  if (fixed_target(call, s, n, dims, &rank)) {
    const berth_attr attrs[] = {allow_zero, berth_attr_dims("shape", dims, rank)};
    return berth__onnx_emit(call, "reshape", in, 1, attrs, 2, out, 1, err);
  }
  for (size_t k = 0; k < n; k++) BERTH__TRY(extents_of(call, &s[k], &parts[k], err));
  BERTH__TRY(berth__onnx_emit(call, "concat", parts, n, &axis, 1, &in[1], 1, err));
  return berth__onnx_emit(call, "reshape", in, 2, &allow_zero, 1, out, 1, err);
}

/* How many axes of a matrix product's operand have each role. */
typedef struct roles {
  uint32_t batch, rows, columns;
} roles;

/* [batch..., rows..., columns...] becomes [batch..., R, C]. */
static berth_status onnx_einsum_merge(berth__onnx_call *call, berth_value x, roles r, berth_value *out,
                                      berth_error *err) {
  stretch target[] = {{x, 0, r.batch, false}, {x, r.batch, r.rows, true}, {x, r.batch + r.rows, r.columns, true}};
  if (r.rows == 1 && r.columns == 1) return *out = x, BERTH_OK;
  return onnx_einsum_reshape_to(call, x, target, 3, out, err);
}

/* The reverse for a product of a and b: rows have the shape that they have in a, columns as in b. */
static berth_status part(berth__onnx_call *call, berth_value product, berth_value a, berth_value b, roles ra, roles rb,
                         berth_value *out, berth_error *err) {
  stretch target[] = {
      {product, 0, ra.batch, false}, {a, ra.batch, ra.rows, false}, {b, rb.batch + rb.rows, rb.columns, false}};
  if (ra.rows == 1 && rb.columns == 1) return *out = product, BERTH_OK;
  return onnx_einsum_reshape_to(call, product, target, 3, out, err);
}

/* a [batch, rows, summed] times b [batch, summed, columns]. */
static berth_status contract(berth__onnx_call *call, term *a, term *b, label_set summed, berth_error *err) {
  label_set in_a = labels_of(a), in_b = labels_of(b), batch = in_a & in_b & ~summed;
  term order_a = {0}, order_b = {0}, result = {0};
  roles ra, rb;
  berth_value left, right, product;
  ra.batch = rb.batch = onnx_einsum_append(&order_a, a, batch);
  ra.rows = onnx_einsum_append(&order_a, a, in_a & ~in_b);
  ra.columns = onnx_einsum_append(&order_a, a, summed);
  onnx_einsum_append(&order_b, &order_a, batch);
  rb.rows = onnx_einsum_append(&order_b, &order_a, summed);
  rb.columns = onnx_einsum_append(&order_b, b, in_b & ~in_a);
  BERTH__TRY(arrange(call, a, &order_a, err));
  BERTH__TRY(arrange(call, b, &order_b, err));
  BERTH__TRY(onnx_einsum_merge(call, a->value, ra, &left, err));
  BERTH__TRY(onnx_einsum_merge(call, b->value, rb, &right, err));
  BERTH__TRY(berth__onnx_binary(call, "matmul", left, right, &product, err));
  if (ra.batch + ra.rows + rb.columns > BERTH_MAX_RANK) return too_many_axes(call, err);
  onnx_einsum_append(&result, a, batch | (in_a & ~in_b));
  onnx_einsum_append(&result, b, in_b & ~in_a);
  BERTH__TRY(part(call, product, a->value, b->value, ra, rb, &result.value, err));
  *a = result;
  return BERTH_OK;
}

/* ---- All terms ---- */

static berth_status onnx_einsum_combine(berth__onnx_call *call, term *terms, const term *out, berth_error *err) {
  term *a = &terms[0];
  for (size_t k = 1; k < call->n_in; k++) {
    label_set needed = labels_of(out);
    for (size_t later = k + 1; later < call->n_in; later++) needed |= labels_of(&terms[later]);
    term *b = &terms[k];
    BERTH__TRY(keep_only(call, a, needed | labels_of(b), err));
    BERTH__TRY(keep_only(call, b, needed | labels_of(a), err));
    label_set summed = labels_of(a) & labels_of(b) & ~needed;
    BERTH__TRY(summed != 0 ? contract(call, a, b, summed, err) : onnx_einsum_multiply(call, a, b, err));
  }
  BERTH__TRY(keep_only(call, a, labels_of(out), err));
  return arrange(call, a, out, err);
}

static berth_status convert_einsum(berth__onnx_call *call, berth_error *err) {
  term out = {0};
  BERTH__TRY(berth__onnx_begin(call, call->n_in > 0 ? call->n_in : 1, err));
  term *terms = berth__alloc_array_zero(call->graph->ctx, call->n_in, sizeof *terms);
  if (terms == NULL) return berth__fail_nomem(err, "an equation");
  berth_status status = read_equation(call, terms, &out, err);
  for (size_t k = 0; status == BERTH_OK && k < call->n_in; k++) status = take_diagonals(call, &terms[k], err);
  if (status == BERTH_OK) status = drop_stretched(call, terms, call->n_in, err);
  if (status == BERTH_OK) status = onnx_einsum_combine(call, terms, &out, err);
  if (status == BERTH_OK) call->out[0] = terms[0].value;
  berth__free(call->graph->ctx, terms);
  return status;
}

const berth__onnx_handler berth__onnx_einsum[] = {
    {"Einsum", convert_einsum, NULL},
    {NULL, NULL, NULL},
};
