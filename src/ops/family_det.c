/* det of x [..., N, N]: the determinant of each matrix. An item is one matrix.
 *
 * Gaussian elimination with partial pivoting, in f64, on a copy in the call's scratch; rounded once. */
#include <math.h>

#include "base/math.h"
#include "ops/elementwise.h"

static berth_status infer_det(berth__infer *infer, berth_error *err) {
  const berth__shape *in = &infer->in_shape[0];
  int64_t order;
  BERTH__TRY(berth__want_float(infer, 0, err));
  BERTH__TRY(berth__want_rank(infer, 0, 2, BERTH_MAX_RANK, err));
  BERTH__TRY(berth__same_dim(in->dim[in->rank - 2], in->dim[in->rank - 1], "rows and columns", &order, err));
  infer->out_type[0] = infer->in_type[0];
  infer->out_shape[0] = *in;
  infer->out_shape[0].rank = in->rank - 2;
  return BERTH_OK;
}

static int64_t det_order_of(const berth_op_call *call) { return call->in[0].dim[call->in[0].rank - 1]; }

static int64_t det_pivot_row(const double *a, int64_t n, int64_t column) {
  int64_t best = column;
  for (int64_t row = column + 1; row < n; row++)
    if (fabs(a[row * n + column]) > fabs(a[best * n + column])) best = row;
  return best;
}

static void det_swap_rows(double *a, double *b, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    double kept = a[i];
    a[i] = b[i];
    b[i] = kept;
  }
}

/* The product of the pivots; every swap of rows changes the sign. */
static double determinant(double *a, int64_t n) {
  double product = 1;
  for (int64_t k = 0; k < n; k++) {
    int64_t best = det_pivot_row(a, n, k);
    if (best != k) {
      det_swap_rows(a + best * n, a + k * n, n);
      product = -product;
    }
    double pivot = a[k * n + k];
    product *= pivot;
    if (pivot == 0) return product;
    for (int64_t row = k + 1; row < n; row++) {
      double factor = a[row * n + k] / pivot;
      for (int64_t i = k; i < n; i++) a[row * n + i] -= factor * a[k * n + i];
    }
  }
  return product;
}

static berth_status det_kernel(const berth_op_call *call, berth_error *err) {
  const berth_tensor *in = &call->in[0];
  int64_t n = det_order_of(call);
  (void)err;
  for (int64_t item = call->begin; item < call->end; item++) {
    berth__gather_f64(call->scratch, in->type, in->data, item * n * n, 1, n * n);
    berth__store_f64(&call->out[0], item, determinant(call->scratch, n));
  }
  return BERTH_OK;
}

static uint64_t det_scratch(const berth_op_call *call) {
  uint64_t n = (uint64_t)det_order_of(call), bytes;
  return berth__mul_u64(n, n, &bytes) && berth__mul_u64(bytes, sizeof(double), &bytes) ? bytes : UINT64_MAX;
}

const berth__family berth__family_det = {
    .infer = infer_det, .items = berth__items_elements, .scratch = det_scratch, .kernel = det_kernel};
