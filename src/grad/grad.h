/* Gradients as graphs: adds nodes that compute the derivatives of a value by other values, using only public ops.
 *
 * grad.def has one row per op; a rule (one file per group of ops) adds the nodes that compute the gradients of the
 * operands from those of the results. The walk (walk.c) goes from the last node to the first and sums up what the
 * readers of a value contribute. Rules use the functions below, which do nothing after a failure: `berth_value` in,
 * `berth_value` out, and the walk checks the status after each rule. */
#ifndef BERTH_GRAD_GRAD_H
#define BERTH_GRAD_GRAD_H

#include "graph/graph.h"

typedef struct berth__grad {
  berth_graph *graph;
  berth_value loss;
  berth_value *of; /* per value: the sum of its readers' contributions; BERTH_VALUE_NONE: none yet */
  bool *wanted;    /* per value: it depends on a value whose gradient is requested */
  size_t n, of_capacity, wanted_capacity; /* values with entries in both; values that rules add come later */
  berth__node node;                       /* the current node of a rule; its lists are the graph's */
  berth_status status;
  berth_error *err;
} berth__grad;

typedef void (*berth__grad_rule)(berth__grad *d);

typedef enum berth__grad_kind {
  BERTH__GRAD_NONE, /* no rule: it is an error if a gradient has to pass */
  BERTH__GRAD_ZERO, /* the derivative is 0 wherever it exists, or the results are not floats: no gradient passes */
  BERTH__GRAD_RULE
} berth__grad_kind;

typedef struct berth__grad_row {
  berth__grad_kind kind;
  berth__grad_rule rule;
} berth__grad_row;

const berth__grad_row *berth__grad_row_of(const berth__op *op); /* never NULL */

/* ---- The current node of a rule (walk.c) ---- */

bool berth__grad_wants(const berth__grad *d, uint32_t operand); /* false if it is omitted */
static inline bool berth__grad_has(const berth__grad *d, uint32_t operand) {
  return operand < d->node.n_in && d->node.in[operand] != BERTH_VALUE_NONE;
}
static inline berth_value berth__grad_in(const berth__grad *d, uint32_t operand) { return d->node.in[operand]; }
static inline berth_value berth__grad_out(const berth__grad *d) { return d->node.out[0]; }
/* The gradient of a result: zeros if it has no contributing readers. */
berth_value berth__grad_dy(berth__grad *d);
berth_value berth__grad_dy_at(berth__grad *d, uint32_t result);
/* Adds to the gradient of an operand: summed over the axes along which the operand was broadcast, and in its type. Does
 * nothing if it is not wanted. */
void berth__grad_give(berth__grad *d, uint32_t operand, berth_value gradient);
void berth__grad_give_value(berth__grad *d, berth_value value, berth_value gradient); /* for any value */
/* The gradients of the node are those of `values`, one per result (BERTH_VALUE_NONE: not computed), which the nodes
 * from `first` on recompute with other ops: the walk now goes through these. */
void berth__grad_through(berth__grad *d, size_t first, const berth_value *values);
void berth__grad_fail(berth__grad *d, berth_status status, const char *format, ...) BERTH__PRINTF(3, 4);
static inline bool berth__grad_ok(const berth__grad *d) { return d->status == BERTH_OK; }

/* The parts of the walk, for rules that go through nodes of their own: adds entries for new values; marks which results
 * of the nodes [first, last) depend on wanted values; applies their rules, from the last to the first. */
void berth__grad_catch_up(berth__grad *d);
void berth__grad_mark(berth__grad *d, size_t first, size_t last);
void berth__grad_walk(berth__grad *d, size_t first, size_t last);

/* ---- Adding nodes (emit.c) ---- */

berth_value berth__grad_op(berth__grad *d, berth__op_code op, const berth_value *in, size_t n_in,
                           const berth_attr *attrs, size_t n_attrs);
void berth__grad_ops(berth__grad *d, berth__op_code op, const berth_value *in, size_t n_in, const berth_attr *attrs,
                     size_t n_attrs, berth_value *out, size_t n_out);
berth_value berth__grad_1(berth__grad *d, berth__op_code op, berth_value a);
berth_value berth__grad_2(berth__grad *d, berth__op_code op, berth_value a, berth_value b);
/* a op number, with a scalar of a's type. */
berth_value berth__grad_num(berth__grad *d, berth__op_code op, berth_value a, double number);
/* number op a */
berth_value berth__grad_num_first(berth__grad *d, berth__op_code op, double number, berth_value a);
static inline berth_value berth__grad_add(berth__grad *d, berth_value a, berth_value b) {
  return berth__grad_2(d, BERTH__OP_add, a, b);
}
static inline berth_value berth__grad_sub(berth__grad *d, berth_value a, berth_value b) {
  return berth__grad_2(d, BERTH__OP_sub, a, b);
}
static inline berth_value berth__grad_mul(berth__grad *d, berth_value a, berth_value b) {
  return berth__grad_2(d, BERTH__OP_mul, a, b);
}
static inline berth_value berth__grad_div(berth__grad *d, berth_value a, berth_value b) {
  return berth__grad_2(d, BERTH__OP_div, a, b);
}
static inline berth_value berth__grad_neg(berth__grad *d, berth_value a) { return berth__grad_1(d, BERTH__OP_neg, a); }
static inline berth_value berth__grad_scale(berth__grad *d, berth_value a, double number) {
  return berth__grad_num(d, BERTH__OP_mul, a, number);
}
berth_value berth__grad_where(berth__grad *d, berth_value condition, berth_value a, berth_value b);
/* A scalar; a list of one axis; any tensor, with its elements as doubles. */
berth_value berth__grad_scalar(berth__grad *d, berth_type type, double number);
berth_value berth__grad_ints(berth__grad *d, const int64_t *entries, uint32_t n);
berth_value berth__grad_tensor(berth__grad *d, berth_type type, uint32_t rank, const int64_t *dim,
                               const double *elements);

berth__shape berth__grad_shape(const berth__grad *d, berth_value value); /* empty after a failure */
berth_type berth__grad_type(const berth__grad *d, berth_value value);
static inline uint32_t berth__grad_rank(const berth__grad *d, berth_value value) {
  return berth__grad_shape(d, value).rank;
}
/* Fails if an extent is unknown: binding the graph first would help. */
bool berth__grad_fixed(berth__grad *d, berth_value value);
/* An axis of a value, made non-negative; 0 after a failure. */
uint32_t berth__grad_axis(berth__grad *d, int64_t axis, uint32_t rank);

berth_value berth__grad_cast(berth__grad *d, berth_value a, berth_type type);
berth_value berth__grad_reshape(berth__grad *d, berth_value a, const berth__shape *shape);
berth_value berth__grad_reshape_like(berth__grad *d, berth_value a, berth_value like);
berth_value berth__grad_expand_like(berth__grad *d, berth_value a, berth_value like);
berth_value berth__grad_unsqueeze(berth__grad *d, berth_value a, const int64_t *axes, uint32_t n);
/* A number broadcast to the shape and type of another value. */
berth_value berth__grad_full_like(berth__grad *d, berth_value like, double number);
/* Zeros to write into. Large ones are made by the run, from the loss: constant ones would be computed once and kept. */
berth_value berth__grad_zeros_like(berth__grad *d, berth_value like);
/* Sums a over the axes along which `like` was broadcast: a has the broadcast shape, the result that of `like`. */
berth_value berth__grad_sum_to(berth__grad *d, berth_value a, berth_value like);
berth_value berth__grad_reduce(berth__grad *d, berth__op_code op, berth_value a, const int64_t *axes, uint32_t n,
                               bool keeps);
berth_value berth__grad_sum_last(berth__grad *d, berth_value a); /* over the last axis, which stays with extent 1 */
berth_value berth__grad_transpose(berth__grad *d, berth_value a, const int64_t *perm);
berth_value berth__grad_swap_last(berth__grad *d, berth_value a); /* the last two axes */
/* Moves an axis; the others keep their order. */
berth_value berth__grad_move_axis(berth__grad *d, berth_value a, uint32_t from, uint32_t to);
/* Elements [start, end) of an axis, with a step. */
berth_value berth__grad_narrow(berth__grad *d, berth_value a, uint32_t axis, int64_t start, int64_t end);
/* How many elements of a correspond to one of b, as a scalar of a's type: for reductions. */
berth_value berth__grad_ratio(berth__grad *d, berth_value a, berth_value b);

/* A list that is an operand or an attribute of the node: false after a failure, for example if only a run knows it. */
#define BERTH__GRAD_MAX_LIST 64
typedef struct berth__grad_list {
  uint32_t n;
  int64_t entry[BERTH__GRAD_MAX_LIST];
} berth__grad_list;
bool berth__grad_read_list(berth__grad *d, uint32_t operand, uint32_t attr, berth__grad_list *out);

#define BERTH_GRAD(op, rule) \
  void berth__grad_of_##rule(berth__grad *d); /* NOLINT(readability-redundant-declaration): once per op */
#define BERTH_GRAD_ZERO(op)
#define BERTH_GRAD_NONE(op)
#include "grad/grad.def"

#endif
