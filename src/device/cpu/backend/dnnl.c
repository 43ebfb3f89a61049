/* matmul by oneDNN's sgemm, for builds with BERTH_DNNL_BACKEND and runs with BERTH_CPU_BACKEND=dnnl. It allocates in a
 * run and has threads of its own, which is why it is nobody's default (docs/dependencies.md). A call is one item: the
 * library splits it further. */
#include <inttypes.h>
#include <oneapi/dnnl/dnnl.h>

#include "device/cpu/kernel.h"
#include "ops/operand.h"

extern const berth__cpu_kernel berth__backend_dnnl[];

/* How a matrix lies, as sgemm wants to know it. */
typedef struct layout {
  char turned; /* 'N': rows lie together; 'T': columns do */
  dnnl_dim_t step;
} layout;

/* False: neither rows nor columns do. */
static bool layout_of(const berth_tensor *tensor, layout *out) {
  const uint32_t last = tensor->rank - 1;
  const int64_t rows = tensor->dim[last - 1], columns = tensor->dim[last];
  const int64_t down = tensor->stride[last - 1], across = tensor->stride[last];
  if ((across == 1 || columns == 1) && (rows == 1 || down >= columns)) {
    *out = (layout){'N', rows == 1 ? columns : down};
    return true;
  }
  *out = (layout){'T', columns == 1 ? rows : across};
  return (down == 1 || rows == 1) && (columns == 1 || across >= rows);
}

static bool takes(const berth_op_call *call) {
  const berth_tensor *a = &call->in[0], *b = &call->in[1];
  layout unused;
  if (a->type != BERTH_F32 || a->rank < 2 || b->rank < 2 || a->dim[a->rank - 1] == 0) return false;
  return layout_of(a, &unused) && layout_of(b, &unused);
}

static int64_t matrix_at(const berth_tensor *tensor, const berth_tensor *out, int64_t matrix) {
  berth_tensor stack = *tensor;
  int64_t stride[BERTH_MAX_RANK], at = 0;
  stack.rank -= 2;
  berth__broadcast_strides(&stack, out->rank - 2, out->dim, stride);
  for (uint32_t axis = out->rank - 2; axis-- > 0; matrix /= out->dim[axis])
    at += matrix % out->dim[axis] * stride[axis];
  return at;
}

static berth_status run(const berth_op_call *call, berth_error *err) {
  const berth_tensor *a = &call->in[0], *b = &call->in[1], *out = &call->out[0];
  const int64_t m = out->dim[out->rank - 2], n = out->dim[out->rank - 1], count = berth__count(out);
  layout of_a, of_b;
  layout_of(a, &of_a);
  layout_of(b, &of_b);
  for (int64_t matrix = 0; matrix * m * n < count; matrix++) {
    const dnnl_status_t status = dnnl_sgemm(of_a.turned, of_b.turned, m, n, a->dim[a->rank - 1], 1.0f,
                                            (const float *)a->data + matrix_at(a, out, matrix), of_a.step,
                                            (const float *)b->data + matrix_at(b, out, matrix), of_b.step, 0.0f,
                                            (float *)out->data + matrix * m * n, n);
    if (status != dnnl_success)
      return berth__fail(err, BERTH_INTERNAL, "oneDNN's sgemm of %" PRId64 " x %" PRId64 " gives status %d", m, n,
                         (int)status);
  }
  return BERTH_OK;
}

const berth__cpu_kernel berth__backend_dnnl[] = {
    {.name = "oneDNN sgemm", .code = BERTH__OP_matmul, .takes = takes, .run = run}, {0}};
