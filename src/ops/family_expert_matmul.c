/* expert_matmul: products of every row with a few of many matrices.
 * x        [R, K], or [R, U, K] if each use has its own row
 *   weights  [E, N, K], of a float type or packed in blocks along K
 *   which    i32 or i64, [R, U]: the matrices that a row is multiplied with
 * The result [R, U, N] has weights[which[r, u]] times x[r] (or x[r, u]). Items are its elements. */
#include <inttypes.h>

#include "base/blocks.h"
#include "base/storage.h"
#include "ops/line.h"
#include "ops/operand.h"
#include "ops/registry.h"

static berth_status experts_check_types(const berth__infer *infer, berth_error *err) {
  const berth_type which = infer->in_type[BERTH__EXPERTS_WHICH], weights = infer->in_type[BERTH__EXPERTS_WEIGHTS];
  BERTH__TRY(berth__want_float(infer, BERTH__EXPERTS_X, err));
  if (!berth__type_is_block(weights)) BERTH__TRY(berth__want_float(infer, BERTH__EXPERTS_WEIGHTS, err));
  if (which == BERTH_I32 || which == BERTH_I64) return BERTH_OK;
  return berth__fail(err, BERTH_INVALID, "operand %d has type %s, and numbers of experts have type i32 or i64",
                     BERTH__EXPERTS_WHICH, berth_type_name(which));
}

static berth_status experts_infer(berth__infer *infer, berth_error *err) {
  const berth__shape *x = &infer->in_shape[BERTH__EXPERTS_X], *w = &infer->in_shape[BERTH__EXPERTS_WEIGHTS],
                     *which = &infer->in_shape[BERTH__EXPERTS_WHICH];
  berth__shape out = {.rank = 3};
  int64_t same;
  BERTH__TRY(experts_check_types(infer, err));
  BERTH__TRY(berth__want_rank(infer, BERTH__EXPERTS_X, 2, 3, err));
  BERTH__TRY(berth__want_rank(infer, BERTH__EXPERTS_WEIGHTS, 3, 3, err));
  BERTH__TRY(berth__want_rank(infer, BERTH__EXPERTS_WHICH, 2, 2, err));
  if (w->dim[0] == 0) return berth__fail(err, BERTH_INVALID, "the weights have no expert to choose");
  BERTH__TRY(berth__same_dim(x->dim[0], which->dim[0], "rows of x and of the experts chosen", &out.dim[0], err));
  out.dim[1] = which->dim[1];
  if (x->rank == 3)
    BERTH__TRY(berth__same_dim(x->dim[1], which->dim[1], "uses of x and experts chosen", &out.dim[1], err));
  BERTH__TRY(berth__same_dim(x->dim[x->rank - 1], w->dim[2], "columns of x and of the weights", &same, err));
  out.dim[2] = w->dim[1];
  infer->out_type[0] = infer->in_type[BERTH__EXPERTS_X];
  infer->out_shape[0] = out;
  return BERTH_OK;
}

static int64_t experts_items(const berth_op_call *call) { return berth__count(&call->out[0]); }

/* A row of x and one of the weights, in f64, and one for unpacking. */
static uint64_t experts_scratch(const berth_op_call *call) {
  return (uint64_t)call->in[BERTH__EXPERTS_WEIGHTS].dim[2] * (2 * sizeof(double) + sizeof(float));
}

static void experts_load_weights(const berth_tensor *w, int64_t row, float *plain, double *out) {
  const int64_t columns = w->dim[2];
  if (!berth__type_is_block(w->type)) {
    berth__line_load(w, row * columns, 1, columns, out);
    return;
  }
  const uint64_t at = berth__storage_size(berth_type_storage(w->type), (uint64_t)(row * columns));
  berth__blocks_decode(w->type, (const uint8_t *)w->data + at, (uint64_t)columns, plain);
  for (int64_t i = 0; i < columns; i++) out[i] = (double)plain[i];
}

static berth_status experts_kernel(const berth_op_call *call, berth_error *err) {
  const berth_tensor *x = &call->in[BERTH__EXPERTS_X], *w = &call->in[BERTH__EXPERTS_WEIGHTS];
  const int64_t columns = w->dim[2], n = w->dim[1], uses = call->out[0].dim[1];
  double *row = call->scratch, *weights = row + columns;
  float *plain = (float *)(weights + columns);
  int64_t loaded = -1;
  for (int64_t item = call->begin; item < call->end; item++) {
    const int64_t use = item / n, source = x->rank == 3 ? use : use / uses;
    const int64_t expert = berth__load_i64(&call->in[BERTH__EXPERTS_WHICH], use);
    if (expert < 0 || expert >= w->dim[0])
      return berth__fail(err, BERTH_INVALID, "there is no expert %" PRId64 " among %" PRId64, expert, w->dim[0]);
    if (source != loaded) berth__line_load(x, source * columns, 1, columns, row);
    loaded = source;
    experts_load_weights(w, expert * n + item % n, plain, weights);
    double sum = 0;
    for (int64_t i = 0; i < columns; i++) sum += row[i] * weights[i];
    berth__line_store(&call->out[0], item, 1, &sum);
  }
  return BERTH_OK;
}

const berth__family berth__family_expert_matmul = {.infer = experts_infer,
                                                   .items = experts_items,
                                                   .scratch = experts_scratch,
                                                   .kernel = experts_kernel,
                                                   .takes_blocks = 1u << BERTH__EXPERTS_WEIGHTS,
                                                   .takes_unaligned = false};
