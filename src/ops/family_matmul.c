/* matmul: numpy's, with batch broadcasting and 1-d operands. */
#include "ops/line.h"
#include "ops/registry.h"

/* A piece of one output row: its sums stay in the L1 cache while the rows of the second operand are streamed. */
#define PIECE 256

/* Both operands as stacks of matrices: 1-d operands become a row and a column. */
typedef struct product {
  uint32_t batch_rank;
  int64_t batch[BERTH_MAX_RANK];
  int64_t a_batch[BERTH_MAX_RANK], b_batch[BERTH_MAX_RANK]; /* strides */
  int64_t m, k, n, pieces;
  int64_t a_row, a_k, b_k, b_column;
} product;

static void drop_last(const berth__shape *shape, uint32_t n, berth__shape *out) {
  *out = *shape;
  out->rank = shape->rank > n ? shape->rank - n : 0;
}

static berth_status matmul_infer(berth__infer *infer, berth_error *err) {
  const berth__shape *a = &infer->in_shape[0], *b = &infer->in_shape[1];
  for (uint32_t k = 0; k < 2; k++) {
    if (!berth__line_ops_of(infer->in_type[k]))
      return berth__fail(err, BERTH_INVALID, "operand %u has type %s, but matmul takes numbers; cast it first", k,
                         berth_type_name(infer->in_type[k]));
    BERTH__TRY(berth__want_rank(infer, k, 1, BERTH_MAX_RANK, err));
  }
  BERTH__TRY(berth__want_same_type(infer, 0, 1, err));
  const int64_t b_rows = b->dim[b->rank == 1 ? 0 : b->rank - 2];
  int64_t inner;
  BERTH__TRY(berth__same_dim(a->dim[a->rank - 1], b_rows, "columns of operand 0 and rows of operand 1", &inner, err));
  berth__shape a_batch, b_batch, *out = &infer->out_shape[0];
  drop_last(a, 2, &a_batch);
  drop_last(b, 2, &b_batch);
  BERTH__TRY(berth__broadcast(&a_batch, &b_batch, out, err));
  if (a->rank > 1) out->dim[out->rank++] = a->dim[a->rank - 2];
  if (b->rank > 1) out->dim[out->rank++] = b->dim[b->rank - 1];
  infer->out_type[0] = infer->in_type[0];
  return BERTH_OK;
}

/* The strides of a stack of matrices over the output's batch axes. */
static void matmul_batch_strides(const berth_tensor *tensor, const product *p, int64_t *stride) {
  berth_tensor stack = *tensor;
  stack.rank = tensor->rank > 2 ? tensor->rank - 2 : 0;
  berth__broadcast_strides(&stack, p->batch_rank, p->batch, stride);
}

static void matmul_describe(const berth_op_call *call, product *p) {
  const berth_tensor *a = &call->in[0], *b = &call->in[1], *out = &call->out[0];
  const uint32_t matrix_axes = (a->rank > 1 ? 1u : 0u) + (b->rank > 1 ? 1u : 0u);
  p->batch_rank = out->rank - matrix_axes;
  for (uint32_t axis = 0; axis < p->batch_rank; axis++) p->batch[axis] = out->dim[axis];
  matmul_batch_strides(a, p, p->a_batch);
  matmul_batch_strides(b, p, p->b_batch);
  p->m = a->rank > 1 ? a->dim[a->rank - 2] : 1;
  p->a_row = a->rank > 1 ? a->stride[a->rank - 2] : 0;
  p->k = a->dim[a->rank - 1];
  p->a_k = a->stride[a->rank - 1];
  p->n = b->rank > 1 ? b->dim[b->rank - 1] : 1;
  p->b_column = b->rank > 1 ? b->stride[b->rank - 1] : 1;
  p->b_k = b->stride[b->rank > 1 ? b->rank - 2 : 0];
  p->pieces = p->n / PIECE + (p->n % PIECE != 0);
}

/* Items are pieces of output rows; neighbours share their columns of the second operand. */
static int64_t matmul_items(const berth_op_call *call) {
  product p;
  matmul_describe(call, &p);
  int64_t count = p.m * p.pieces;
  for (uint32_t axis = 0; axis < p.batch_rank; axis++) count *= p.batch[axis];
  return count;
}

static uint64_t matmul_scratch(const berth_op_call *call) {
  (void)call;
  return PIECE * BERTH__LINE_BYTES;
}

static void matmul_multiply(const berth_op_call *call, const product *p, const berth__line_ops *line, int64_t item) {
  const berth_tensor *a = &call->in[0], *b = &call->in[1], *out = &call->out[0];
  const size_t size = berth_type_size(a->type);
  const int64_t row = item % p->m, piece = item / p->m % p->pieces, batch = item / p->m / p->pieces;
  const int64_t column = piece * PIECE, left = p->n - column, n = left < PIECE ? left : PIECE;
  int64_t a_at = row * p->a_row, b_at = column * p->b_column, rest = batch;
  for (uint32_t axis = p->batch_rank; axis-- > 0; rest /= p->batch[axis]) {
    a_at += rest % p->batch[axis] * p->a_batch[axis];
    b_at += rest % p->batch[axis] * p->b_batch[axis];
  }
  line->start(call->scratch, NULL, n);
  line->add_rows(call->scratch, 1, berth__element(a->data, a_at, size), p->a_k, berth__element(b->data, b_at, size),
                 p->b_k, p->b_column, p->k, n);
  line->store(berth__element(out->data, (batch * p->m + row) * p->n + column, size), call->scratch, n);
}

static berth_status matmul_kernel(const berth_op_call *call, berth_error *err) {
  (void)err;
  product p;
  matmul_describe(call, &p);
  const berth__line_ops *line = berth__line_ops_of(call->in[0].type);
  for (int64_t item = call->begin; item < call->end; item++) matmul_multiply(call, &p, line, item);
  return BERTH_OK;
}

const berth__family berth__family_matmul = {
    .infer = matmul_infer, .items = matmul_items, .scratch = matmul_scratch, .kernel = matmul_kernel};
