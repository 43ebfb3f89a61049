/* ngrams: one thread per element of the result goes over its row and compares it with the n-grams of the pool, which
 * are constants of the kernel. */
#include "kernel/lower/math.h"

#define LONGEST_POOL 1024u /* numbers in it: the kernel's size grows with them */

typedef struct counting {
  berth__lowering *l;
  berth__kernel *k;
  berth__x row, column; /* of the result; the row is BERTH__X_NONE if there are no rows */
  berth__x result;      /* variable */
} counting;

/* Bounds of the n-grams of length n in the pool. */
static void lower_ngrams_part_of(const berth_attr *attr, int64_t n, int64_t *first, int64_t *last) {
  *first = attr[BERTH__NGRAMS_STARTS].ints[n - 1];
  *last = n < attr[BERTH__NGRAMS_STARTS].count ? attr[BERTH__NGRAMS_STARTS].ints[n] : attr[BERTH__NGRAMS_POOL].count;
}

/* How many n-grams are shorter. */
static int64_t number_of_shorter(const berth_attr *attr, int64_t n) {
  int64_t number = 0;
  for (int64_t shorter = 1; shorter < n; shorter++) {
    int64_t first, last;
    lower_ngrams_part_of(attr, shorter, &first, &last);
    number += (last - first) / shorter;
  }
  return number;
}

/* Whether the same n-gram occurs earlier in the pool; then the earlier one counts. */
static bool is_repeated(const berth_attr *attr, int64_t n, int64_t first, int64_t gram) {
  for (int64_t other = first; other < gram; other += n)
    if (memcmp(&attr[BERTH__NGRAMS_POOL].ints[other], &attr[BERTH__NGRAMS_POOL].ints[gram],
               (size_t)n * sizeof(int64_t)) == 0)
      return true;
  return false;
}

/* Whether an element equals this number, which may not fit the type. */
static berth__x lower_ngrams_is_number(const counting *c, berth__x element, int64_t number) {
  const bool has_sign = berth__l_number(c->l->call->in[0].type) == BERTH__NUM_I32;
  if (number < (has_sign ? INT32_MIN : 0) || number > (has_sign ? INT32_MAX : (int64_t)UINT32_MAX))
    return berth__x_bool(c->k, false);
  const berth__x wanted = has_sign ? berth__x_i32(c->k, number) : berth__x_u32(c->k, (uint32_t)number);
  return berth__x_eq(c->k, element, wanted);
}

static void count_gram(const counting *c, const berth__x *items, int64_t n, int64_t gram, int64_t number) {
  const berth_attr *attr = c->l->call->attrs;
  berth__kernel *k = c->k;
  const berth__x weight = berth__x_f32(
      k, attr[BERTH__NGRAMS_WEIGHTS].count != 0 ? (float)attr[BERTH__NGRAMS_WEIGHTS].floats[number] : 1.0f);
  const berth__x old = berth__x_get(k, c->result);
  berth__x is_found = berth__x_eq(k, c->column, berth__x_i32(k, attr[BERTH__NGRAMS_INDEXES].ints[number])),
           value = weight;
  for (int64_t i = 0; i < n; i++)
    is_found = berth__x_and(k, is_found, lower_ngrams_is_number(c, items[i], attr[BERTH__NGRAMS_POOL].ints[gram + i]));
  if (strcmp(attr[BERTH__NGRAMS_MODE].s, "tf") == 0) value = berth__m_plus(k, old, 1.0f);
  if (strcmp(attr[BERTH__NGRAMS_MODE].s, "tfidf") == 0) value = berth__x_add(k, old, weight);
  berth__x_set(k, c->result, berth__x_select(k, is_found, value, old));
}

/* Item `at` of the row; a bool becomes a number. */
static berth__x item(const counting *c, berth__x at) {
  const berth_tensor *x = &c->l->call->in[0];
  const berth__x place[2] = {x->rank == 2 ? c->row : at, at};
  return berth__x_load(c->k, berth__l_in(c->l, c->k, 0), berth__l_place(c->k, x, place));
}

static berth_status count_length(const counting *c, int64_t n, int64_t step, berth_error *err) {
  const berth_attr *attr = c->l->call->attrs;
  const berth_tensor *x = &c->l->call->in[0];
  int64_t first, last, number = number_of_shorter(attr, n);
  berth__x *items = berth__alloc_array(c->l->ctx, (size_t)n, sizeof *items);
  if (items == NULL) return berth__fail_nomem(err, "the items of an n-gram");
  lower_ngrams_part_of(attr, n, &first, &last);
  const berth__x at = berth__x_loop_n(c->k, x->dim[x->rank - 1] - (n - 1) * step);
  for (int64_t i = 0; i < n; i++) items[i] = item(c, berth__x_affine(c->k, at, 1, i * step));
  for (int64_t gram = first; gram < last; gram += n, number++)
    if (!is_repeated(attr, n, first, gram)) count_gram(c, items, n, gram, number);
  berth__x_end(c->k);
  berth__free(c->l->ctx, items);
  return BERTH_OK;
}

static berth_status count_all(const counting *c, berth_error *err) {
  const berth_attr *attr = c->l->call->attrs;
  const berth_tensor *x = &c->l->call->in[0];
  const int64_t columns = x->dim[x->rank - 1];
  for (int64_t n = attr[BERTH__NGRAMS_MIN_LENGTH].i; n <= attr[BERTH__NGRAMS_MAX_LENGTH].i; n++) {
    const int64_t steps = n == 1 ? 1 : attr[BERTH__NGRAMS_SKIP].i + 1; /* a single item has no distance */
    for (int64_t step = 1; step <= steps && (n - 1) * step < columns; step++) BERTH__TRY(count_length(c, n, step, err));
  }
  return BERTH_OK;
}

/* Bounds the kernel's length: every n-gram at every distance. */
static bool is_too_long(const berth_op_call *call) {
  const int64_t columns = call->in[0].dim[call->in[0].rank - 1];
  const int64_t steps = call->attrs[BERTH__NGRAMS_SKIP].i < columns ? call->attrs[BERTH__NGRAMS_SKIP].i + 1 : columns;
  return call->attrs[BERTH__NGRAMS_POOL].count * steps > LONGEST_POOL;
}

berth_status berth__lower_ngrams(berth__lowering *l, berth_error *err) {
  const berth_tensor *out = &l->call->out[0];
  counting c = {.l = l};
  berth__x at[BERTH_MAX_RANK];
  if (is_too_long(l->call))
    return berth__fail(err, BERTH_UNSUPPORTED, "its pool and distances make a kernel of more than %u comparisons",
                       LONGEST_POOL);
  berth__kernel *k = c.k = berth__l_begin(l, NULL);
  berth__l_unravel(k, berth__l_each(l, k, berth__count(out)), out->rank, out->dim, at);
  c.row = out->rank == 2 ? at[0] : BERTH__X_NONE;
  c.column = at[out->rank - 1];
  c.result = berth__x_variable(k, berth__x_f32(k, 0.0f));
  const berth_status status = count_all(&c, err);
  if (status != BERTH_OK) {
    berth__kernel_destroy(k);
    return status;
  }
  berth__l_store(l, k, 0, berth__l_place(k, out, at), berth__x_get(k, c.result));
  return berth__l_end(l, k, err);
}
