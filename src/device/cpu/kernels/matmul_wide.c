/* matmul of f64 and of integers of 32 and 64 bits, which wrap: blocks of rows and of two vectors of columns stay in
 * registers. Columns that do not lie side by side, or that end within a vector, are packed into scratch first. */
#include "device/cpu/kernels/product.h"
#include "device/cpu/kernels/wide.h"

#define ITEM_ROWS 64
#define LEAST_STEPS 16 /* of the depth, packed at a time */
#define WORTH 40000    /* products of elements that are worth a thread */

static bool matmul_wide_takes(const berth_op_call *call) { return wide_takes(call->out[0].type); }

static int64_t matmul_wide_pieces(int64_t n, int64_t each) { return (n + each - 1) / each; }

static int64_t matmul_wide_items(const berth_op_call *call) {
  gemm g;
  product_plan(call, &g);
  return g.matrices * matmul_wide_pieces(g.rows, ITEM_ROWS) *
         matmul_wide_pieces(g.columns, wide_columns(call->out[0].type));
}

static int64_t matmul_wide_grain(const berth_op_call *call) {
  gemm g;
  product_plan(call, &g);
  const int64_t rows = g.rows < ITEM_ROWS ? g.rows : ITEM_ROWS;
  return WORTH / (rows * g.depth * wide_columns(call->out[0].type) + 1) + 1;
}

/* How much of the depth is packed at a time: a panel of few columns takes about as many bytes as they do. */
static int64_t matmul_wide_steps(const berth_op_call *call, const gemm *g) {
  const int64_t panel = wide_columns(call->out[0].type);
  int64_t steps = g->columns < panel ? g->depth / panel * g->columns : WIDE_STEPS;
  if (steps < LEAST_STEPS) steps = LEAST_STEPS;
  if (steps > WIDE_STEPS) steps = WIDE_STEPS;
  return g->depth < steps ? g->depth : steps;
}

static uint64_t matmul_wide_scratch(const berth_op_call *call) {
  gemm g;
  product_plan(call, &g);
  return WIDE_PANEL * (uint64_t)matmul_wide_steps(call, &g);
}

static int64_t matmul_wide_offset(int64_t index, uint32_t n_axes, const int64_t *dim, const int64_t *stride) {
  int64_t offset = 0;
  for (uint32_t axis = 0; axis < n_axes; axis++, index /= dim[axis - 1]) offset += index % dim[axis] * stride[axis];
  return offset;
}

typedef struct wide_item {
  int64_t matrix, first_row, n_rows, column, n_columns;
} wide_item;

static wide_item matmul_wide_item(const berth_op_call *call, const gemm *g, int64_t item) {
  const int64_t panel = wide_columns(call->out[0].type), across = matmul_wide_pieces(g->columns, panel);
  const int64_t down = matmul_wide_pieces(g->rows, ITEM_ROWS);
  wide_item i = {
      .matrix = item / across / down, .first_row = item / across % down * ITEM_ROWS, .column = item % across * panel};
  i.n_rows = g->rows - i.first_row < ITEM_ROWS ? g->rows - i.first_row : ITEM_ROWS;
  i.n_columns = g->columns - i.column < panel ? g->columns - i.column : panel;
  return i;
}

/* One item over `depth` of the depth, from `first` on. */
static void matmul_wide_run_steps(const berth_op_call *call, const gemm *g, const wide_item *i, int64_t first,
                                  int64_t depth) {
  const berth_type type = call->out[0].type;
  const int64_t size = (int64_t)berth_type_size(type), panel = wide_columns(call->out[0].type);
  const int64_t b = matmul_wide_offset(i->matrix, g->n_matrix_axes, g->matrix_dim, g->b_matrix) +
                    i->column * g->b_column + first * g->b_step;
  const int64_t a = matmul_wide_offset(i->matrix, g->n_matrix_axes, g->matrix_dim, g->a_matrix) + first * g->a_step;
  const char *from = (const char *)call->in[1].data + b * size;
  wide_block w = {.b = from,
                  .a_step = g->a_step,
                  .b_step = g->b_step,
                  .out_stride = g->columns,
                  .depth = depth,
                  .columns = i->n_columns,
                  .adds = first > 0};
  if (g->b_column != 1 || i->n_columns < panel) {
    wide_pack(type, call->scratch, from, g->b_step, g->b_column, depth, i->n_columns);
    w.b = call->scratch;
    w.b_step = panel;
  }
  for (int64_t at = 0; at < i->n_rows; at += WIDE_ROWS) {
    const int64_t n = i->n_rows - at < WIDE_ROWS ? i->n_rows - at : WIDE_ROWS, row = i->first_row + at;
    for (int64_t r = 0; r < n; r++)
      w.row[r] = (const char *)call->in[0].data +
                 (a + matmul_wide_offset(row + r, g->n_row_axes, g->row_dim, g->a_row)) * size;
    w.out = (char *)call->out[0].data + ((i->matrix * g->rows + row) * g->columns + i->column) * size;
    wide_run(type, &w, n);
  }
}

static berth_status matmul_wide_run(const berth_op_call *call, berth_error *err) {
  gemm g;
  (void)err;
  product_plan(call, &g);
  const int64_t steps = matmul_wide_steps(call, &g);
  for (int64_t item = call->begin; item < call->end; item++) {
    const wide_item i = matmul_wide_item(call, &g, item);
    int64_t first = 0;
    do {
      const int64_t left = g.depth - first;
      matmul_wide_run_steps(call, &g, &i, first, left < steps ? left : steps);
      first += steps;
    } while (first < g.depth);
  }
  return BERTH_OK;
}

const berth__cpu_kernel BERTH__PER_ISA(berth__kernels_matmul_wide)[] = {
    {.name = "matmul wide",
     .code = BERTH__OP_matmul,
     .takes = matmul_wide_takes,
     .items = matmul_wide_items,
     .grain = matmul_wide_grain,
     .scratch = matmul_wide_scratch,
     .run = matmul_wide_run},
    {0},
};
