/* matmul of many small matrices of f32: a block of rows and columns stays in registers, and several products are an
 * item, so that none pays for being started. Sums are taken in the order of gemm.c. */
#include "device/cpu/kernels/inlined.h"
#include "device/cpu/kernels/product.h"

#define FEW_ROWS 16
#define FEW_STEPS 64 /* depth */
#define LEAST_MATRICES 4
#define ROWS 4     /* of a block */
#define ITEM 16384 /* products of elements, and four for each element that is read or written */
#define WORTH 8    /* items that are worth a thread */

/* Operands of one matrix: b has columns side by side. */
typedef struct small {
  const float *a, *b;
  float *out;
  int64_t a_row, a_step, b_row;
  int64_t depth, columns;
} small;

static bool matmul_small_takes(const berth_op_call *call) {
  gemm g;
  if (call->in[0].type != BERTH_F32 || call->in[1].type != BERTH_F32) return false;
  product_plan(call, &g);
  return g.matrices >= LEAST_MATRICES && g.n_row_axes <= 1 && g.rows <= FEW_ROWS && g.depth > 0 &&
         g.depth <= FEW_STEPS && g.columns <= VF_PANEL;
}

static int64_t matmul_small_each(const gemm *g) {
  const int64_t work =
      g->rows * g->depth * g->columns + 4 * (g->rows * g->depth + g->depth * g->columns + g->rows * g->columns);
  return ITEM / (work + 1) + 1;
}

static int64_t matmul_small_items(const berth_op_call *call) {
  gemm g;
  product_plan(call, &g);
  return (g.matrices + matmul_small_each(&g) - 1) / matmul_small_each(&g);
}

static int64_t matmul_small_grain(const berth_op_call *call) {
  (void)call;
  return WORTH;
}

/* n_rows and n_vectors are constants. */
INLINED void matmul_small_block(const small *s, int64_t first, const int n_rows, const int n_vectors) {
  const int64_t last = s->columns - (n_vectors - 1) * VF_LANES;
  const float *a = s->a + first * s->a_row, *b = s->b;
  float *out = s->out + first * s->columns;
  vf sum[ROWS][2];
  UNROLL_FEW for (int r = 0; r < n_rows; r++) sum[r][0] = sum[r][1] = vf_zero();
  for (int64_t k = 0; k < s->depth; k++, a += s->a_step, b += s->b_row) {
    const vf left = n_vectors == 2 ? vf_load(b) : vf_zero(), right = vf_load_n(b + (n_vectors - 1) * VF_LANES, last);
    UNROLL_FEW for (int r = 0; r < n_rows; r++) {
      const vf by = vf_set1(a[r * s->a_row]);
      if (n_vectors == 2) sum[r][0] = vf_fma(by, left, sum[r][0]);
      sum[r][1] = vf_fma(by, right, sum[r][1]);
    }
  }
  UNROLL_FEW for (int r = 0; r < n_rows; r++, out += s->columns) {
    if (n_vectors == 2) vf_store(out, sum[r][0]);
    vf_store_n(out + (n_vectors - 1) * VF_LANES, sum[r][1], last);
  }
}

static void matmul_small_rows(const small *s, int64_t first, int64_t n_rows) {
  const bool is_wide = s->columns > VF_LANES;
  switch (n_rows) {
    case 1: is_wide ? matmul_small_block(s, first, 1, 2) : matmul_small_block(s, first, 1, 1); break;
    case 2: is_wide ? matmul_small_block(s, first, 2, 2) : matmul_small_block(s, first, 2, 1); break;
    case 3: is_wide ? matmul_small_block(s, first, 3, 2) : matmul_small_block(s, first, 3, 1); break;
    default: is_wide ? matmul_small_block(s, first, 4, 2) : matmul_small_block(s, first, 4, 1); break;
  }
}

/* The offset of a matrix in an operand. */
static int64_t matmul_small_offset(const gemm *g, int64_t matrix, const int64_t *stride) {
  int64_t offset = 0;
  for (uint32_t axis = 0; axis < g->n_matrix_axes; axis++, matrix /= g->matrix_dim[axis - 1])
    offset += matrix % g->matrix_dim[axis] * stride[axis];
  return offset;
}

static berth_status matmul_small_run(const berth_op_call *call, berth_error *err) {
  gemm g;
  float panel[FEW_STEPS * VF_PANEL];
  (void)err;
  product_plan(call, &g);
  const bool is_side_by_side = g.b_column == 1 || g.columns == 1;
  const int64_t each = matmul_small_each(&g), begin = call->begin * each;
  const int64_t end = call->end * each < g.matrices ? call->end * each : g.matrices;
  for (int64_t matrix = begin; matrix < end; matrix++) {
    const float *b = (const float *)call->in[1].data + matmul_small_offset(&g, matrix, g.b_matrix);
    const small s = {.a = (const float *)call->in[0].data + matmul_small_offset(&g, matrix, g.a_matrix),
                     .b = is_side_by_side ? b : panel,
                     .out = (float *)call->out[0].data + matrix * g.rows * g.columns,
                     .a_row = g.n_row_axes > 0 ? g.a_row[0] : 0,
                     .a_step = g.a_step,
                     .b_row = is_side_by_side ? g.b_step : VF_PANEL,
                     .depth = g.depth,
                     .columns = g.columns};
    if (!is_side_by_side) gemm_pack_panel(panel, b, g.depth, g.columns, g.b_step, g.b_column);
    for (int64_t row = 0; row < g.rows; row += ROWS)
      matmul_small_rows(&s, row, g.rows - row < ROWS ? g.rows - row : ROWS);
  }
  return BERTH_OK;
}

const berth__cpu_kernel BERTH__PER_ISA(berth__kernels_matmul_small)[] = {
    {.name = "matmul small",
     .code = BERTH__OP_matmul,
     .takes = matmul_small_takes,
     .items = matmul_small_items,
     .grain = matmul_small_grain,
     .run = matmul_small_run},
    {0},
};
