/* rope_rows: one thread per pair of elements, or per element that is not turned, of the rows. If the result overwrites
 * x, that is all; otherwise x is copied first. */
#include "kernel/lower/copy.h"
#include "kernel/lower/write_rows.h"

typedef struct rope_rows {
  const berth__lowering *l;
  int64_t rows, heads, size, pairs;
  bool is_interleaved;
  berth__x row, head, to; /* of the thread: its row of the rows and of the result */
} rope_rows;

static berth__x rope_rows_place(const rope_rows *r, berth__kernel *k, const berth_tensor *t, berth__x row,
                                berth__x element) {
  const berth__x column = berth__x_add(k, berth__x_affine(k, r->head, r->size, 0), element);
  return berth__x_add(k, berth__x_affine(k, row, t->stride[0], 0), berth__x_affine(k, column, t->stride[1], 0));
}

static berth__x rope_rows_load(const rope_rows *r, berth__kernel *k, berth__x element) {
  const berth_tensor *rows = &r->l->call->in[BERTH__ROPE_ROWS_ROWS];
  return berth__l_load(r->l, k, BERTH__ROPE_ROWS_ROWS, rope_rows_place(r, k, rows, r->row, element));
}

static void rope_rows_store(const rope_rows *r, berth__kernel *k, berth__x element, berth__x value) {
  berth__l_store(r->l, k, 0, rope_rows_place(r, k, &r->l->call->out[0], r->to, element), value);
}

static berth__x rope_rows_angle(const rope_rows *r, berth__kernel *k, uint32_t table, berth__x item) {
  return berth__l_load(r->l, k, table, berth__x_add(k, berth__x_affine(k, r->row, r->pairs, 0), item));
}

static void rope_rows_turn(const rope_rows *r, berth__kernel *k, berth__x item) {
  const berth__x i = r->is_interleaved ? berth__x_affine(k, item, 2, 0) : item;
  const berth__x other = berth__x_affine(k, i, 1, r->is_interleaved ? 1 : r->pairs);
  const berth__x a = rope_rows_load(r, k, i), b = rope_rows_load(r, k, other);
  const berth__x cosine = rope_rows_angle(r, k, BERTH__ROPE_ROWS_COS, item),
                 sine = rope_rows_angle(r, k, BERTH__ROPE_ROWS_SIN, item);
  rope_rows_store(r, k, i, berth__x_sub(k, berth__x_mul(k, a, cosine), berth__x_mul(k, b, sine)));
  rope_rows_store(r, k, other, berth__x_add(k, berth__x_mul(k, a, sine), berth__x_mul(k, b, cosine)));
}

/* A pair is one item, but two elements. */
static void rope_rows_keep(const rope_rows *r, berth__kernel *k, berth__x item) {
  const berth__x element = berth__x_affine(k, item, 1, r->pairs);
  rope_rows_store(r, k, element, rope_rows_load(r, k, element));
}

static rope_rows rope_rows_describe(const berth__lowering *l) {
  const berth_attr *attr = l->call->attrs;
  const int64_t *dim = l->call->in[BERTH__ROPE_ROWS_ROWS].dim;
  rope_rows r = {.l = l,
                 .rows = dim[0],
                 .heads = attr[BERTH__ROPE_ROWS_HEADS].i,
                 .is_interleaved = attr[BERTH__ROPE_ROWS_INTERLEAVED].i != 0};
  r.size = dim[1] / r.heads;
  r.pairs = (attr[BERTH__ROPE_ROWS_DIMS].i == 0 ? r.size : attr[BERTH__ROPE_ROWS_DIMS].i) / 2;
  return r;
}

berth_status berth__lower_rope_rows(berth__lowering *l, berth_error *err) {
  const berth_op_call *call = l->call;
  const berth_tensor *x = &call->in[BERTH__ROPE_ROWS_X], *out = &call->out[0];
  rope_rows r = rope_rows_describe(l);
  const int64_t items = r.size - r.pairs, dims[] = {r.rows, r.heads, items};
  berth__x at[3];
  BERTH__TRY(berth__l_copy_all(
      l, &(berth__l_copy){.rank = x->rank, .dim = x->dim, .from_stride = x->stride, .to_stride = out->stride}, err));
  if (berth__count(&call->in[BERTH__ROPE_ROWS_ROWS]) == 0) return BERTH_OK;
  berth__kernel *k = berth__l_begin(l, "rows");
  if (k == NULL) return berth__l_end(l, k, err);
  k->bytes = 2 * berth__l_bytes(l, BERTH__ROPE_ROWS_ROWS);
  berth__l_unravel(k, berth__l_each_alone(l, k, r.rows * r.heads * items), 3, dims, at);
  r.row = at[0];
  r.head = at[1];
  const berth__write_rows w = {.ring = call->attrs[BERTH__ROPE_ROWS_RING].i != 0, .capacity = x->dim[0], .n = r.rows};
  const berth__x position = berth__l_load(l, k, BERTH__ROPE_ROWS_POSITION, berth__x_i32(k, 0));
  r.to = berth__l_open_fitting(k, &w, position, r.row);
  berth__x_if(k, berth__x_lt(k, at[2], berth__x_i32(k, r.pairs)));
  rope_rows_turn(&r, k, at[2]);
  berth__x_else(k);
  rope_rows_keep(&r, k, at[2]);
  berth__x_end(k);
  return berth__l_end(l, k, err);
}
