/* A call of `cross_entropy` or `cross_entropy_grad` as its kernels see it. */
#ifndef BERTH_OPS_CROSS_ENTROPY_H
#define BERTH_OPS_CROSS_ENTROPY_H

#include "ops/op.h"

int64_t berth__cross_entropy_rows(const berth_op_call *call);
/* The class of a row, -1 if it is ignored; fails if it is out of range. */
berth_status berth__cross_entropy_label(const berth_op_call *call, int64_t row, int64_t *label, berth_error *err);

/* A larger loss has too few digits to tell the sum of its row, and an infinite or NaN one tells nothing of it. */
#define BERTH__CROSS_ENTROPY_KNOWN 128
/* Whether the gradient is given a row's loss, and that tells the row's sum. */
bool berth__cross_entropy_knows_sum(const berth_op_call *call, int64_t row, double *loss);

#endif
