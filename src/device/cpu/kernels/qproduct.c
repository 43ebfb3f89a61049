/* qproduct: bytes times packed bytes. */
#include "device/cpu/kernels/gemm_i8.h"

#include "ops/product.h"

/* The rows of x if they have a constant stride; otherwise false. */
static bool qproduct_kernel_rows_of(const berth_tensor *x, int64_t *count, int64_t *stride) {
  *count = 1;
  *stride = x->dim[x->rank - 1];
  for (uint32_t axis = x->rank - 1; axis-- > 0;) {
    if (x->dim[axis] == 1) continue;
    if (*count == 1)
      *stride = x->stride[axis];
    else if (x->stride[axis] != *count * *stride)
      return false;
    *count *= x->dim[axis];
  }
  return true;
}

static bool qproduct_kernel_takes(const berth_op_call *call) {
  const berth_tensor *x = &call->in[0];
  int64_t count, stride;
  return qproduct_kernel_rows_of(x, &count, &stride) && call->attrs[BERTH__PRODUCT_PANEL].i == VF_PANEL &&
         i8_takes(call, x->dim[x->rank - 1]);
}

/* Items are blocks of rows times blocks of columns. */
static int64_t qproduct_kernel_rows_each(const berth_tensor *x) {
  const int64_t chunks = 32768 / (x->dim[x->rank - 1] * I8_CHUNK) + 1; /* so many bytes are worth an item */
  return chunks * I8_CHUNK;
}

static int64_t qproduct_kernel_items(const berth_op_call *call) {
  int64_t rows, stride;
  qproduct_kernel_rows_of(&call->in[0], &rows, &stride);
  const int64_t each = qproduct_kernel_rows_each(&call->in[0]);
  return (rows + each - 1) / each * i8_blocks_each(call->attrs[BERTH__PRODUCT_COLUMNS].i);
}

#define WORTH 500000     /* multiplications that are worth a thread */
#define FEW_WORTH 100000 /* the same if each weight is read for few rows only */
#define FEW_ROWS 4

static int64_t qproduct_kernel_grain(const berth_op_call *call) {
  const berth_tensor *x = &call->in[0];
  int64_t rows, stride;
  qproduct_kernel_rows_of(x, &rows, &stride);
  rows = rows < qproduct_kernel_rows_each(x) ? rows : qproduct_kernel_rows_each(x);
  return (rows <= FEW_ROWS ? FEW_WORTH : WORTH) / (rows * x->dim[x->rank - 1] * I8_COLUMNS + 1) + 1;
}

/* Whether a product can read the rows in place. */
static bool is_direct(const berth_tensor *x) { return x->type == BERTH_U8 && x->dim[x->rank - 1] % 4 == 0; }

static uint64_t qproduct_kernel_scratch(const berth_op_call *call) {
  const berth_tensor *x = &call->in[0];
  const uint64_t sums = I8_CHUNK * sizeof(int32_t);
  int64_t rows, stride;
  qproduct_kernel_rows_of(x, &rows, &stride);
  rows = rows < I8_CHUNK ? rows : I8_CHUNK;
  return sums + (is_direct(x) ? 0 : (uint64_t)(rows * 4 * berth__bytes_groups(x->dim[x->rank - 1])));
}

static void qproduct_kernel_copy_rows(const i8_job *job, const uint8_t *x, int64_t stride, int64_t n, uint8_t *to) {
  for (int64_t row = 0; row < n; row++, x += stride, to += 4 * job->groups) {
    for (int64_t i = 0; i < job->depth; i++) to[i] = x[i] ^ job->flip;
    for (int64_t i = job->depth; i < 4 * job->groups; i++) to[i] = 0;
  }
}

static berth_status qproduct_kernel_run(const berth_op_call *call, berth_error *err) {
  const berth_tensor *in = &call->in[0];
  int64_t rows, stride, each = qproduct_kernel_rows_each(in), block_at = -1;
  int32_t *row_sum = call->scratch;
  uint8_t *copy = (uint8_t *)call->scratch + I8_CHUNK * sizeof(int32_t);
  i8_job job;
  i8_block block;
  (void)err;
  qproduct_kernel_rows_of(in, &rows, &stride);
  i8_prepare(&job, call, in->dim[in->rank - 1], call->attrs[BERTH__PRODUCT_COLUMNS].i, 1);
  const int64_t row_items = (rows + each - 1) / each;
  for (int64_t item = call->begin; item < call->end; item++) {
    const int64_t first = item % row_items * each, last = first + each < rows ? first + each : rows;
    if (item / row_items != block_at) i8_block_of(&job, block_at = item / row_items, rows, &block);
    for (int64_t row = first; row < last; row += I8_CHUNK) {
      const int64_t n = last - row < I8_CHUNK ? last - row : I8_CHUNK, step = is_direct(in) ? stride : 4 * job.groups;
      const uint8_t *x = (const uint8_t *)in->data + row * stride;
      if (!is_direct(in)) {
        qproduct_kernel_copy_rows(&job, x, stride, n, copy);
        x = copy;
      }
      if (job.needs_row_sums) i8_sum_rows(x, step, job.depth, n, row_sum);
      i8_multiply(&job, &block, x, step, row_sum, row, n);
    }
  }
  return BERTH_OK;
}

const berth__cpu_kernel BERTH__PER_ISA(berth__kernels_qproduct)[] = {
    {"qproduct packed", BERTH__OP_qproduct, qproduct_kernel_takes, qproduct_kernel_items, qproduct_kernel_grain,
     qproduct_kernel_scratch, qproduct_kernel_run, NULL, false, NULL},
    {0},
};
