/* product with few columns, or with a table as its weight. Its panels have one column, so that a column is a run of K
 * numbers, as it usually is in the file. Sums go along K in vectors, and nothing is padded to the width of a panel.
 * Other types are converted to f32 in scratch: the columns of an item, rows of x, and results before they are
 * rounded. */
#include "device/cpu/kernels/chain_run.h"
#include "ops/epilogue.h"
#include "ops/operand.h"
#include "ops/product.h"

#define TILE_ROWS 2
#define TILE_COLUMNS 4
#define ITEM_ROWS 16 /* even: which rows are summed together depends only on the shape */
#define ITEM_COLUMNS TILE_COLUMNS
#define WORTH_US 12.0    /* what a piece of the work should take, at least */
#define FLOPS_PER_US 3e4 /* of one core, roughly */
#define BYTES_PER_US 2e4 /* for weights that come from memory */
#define CACHE_LINE 16    /* floats */

typedef struct narrow {
  int64_t rows, columns, depth;
  int64_t row_items, column_items;
} narrow;

static narrow narrow_plan(const berth_op_call *call) {
  const berth_tensor *x = &call->in[BERTH__PRODUCT_X];
  narrow n = {.rows = 1, .columns = call->attrs[BERTH__PRODUCT_COLUMNS].i, .depth = x->dim[x->rank - 1]};
  for (uint32_t axis = 0; axis + 1 < x->rank; axis++) n.rows *= x->dim[axis];
  n.row_items = (n.rows + ITEM_ROWS - 1) / ITEM_ROWS;
  n.column_items = (n.columns + ITEM_COLUMNS - 1) / ITEM_COLUMNS;
  return n;
}

static bool narrow_takes(const berth_op_call *call) {
  const berth_tensor *w = &call->in[BERTH__PRODUCT_WEIGHT], *bias = &call->in[BERTH__PRODUCT_BIAS];
  if (call->attrs[BERTH__PRODUCT_PANEL].i != 1 || !berth__is_contiguous(w)) return false;
  if (w->type != BERTH_F32 && w->type != BERTH_F16 && w->type != BERTH_BF16) return false;
  if (w->type == BERTH_BF16 && (call->attrs[BERTH__PRODUCT_ROUNDS].i != 0 ||
                                call->in[BERTH__PRODUCT_X].dim[call->in[BERTH__PRODUCT_X].rank - 1] % 2 != 0))
    return false;
  if (berth__call_has(call, BERTH__PRODUCT_BIAS) && bias->dim[0] > 1 && bias->stride[0] != 1) return false;
  for (uint32_t k = BERTH__EPILOGUE_SUM; k < call->n_in; k++) {
    const berth_type type = call->in[k].type;
    if (type != BERTH_F32 && type != BERTH_F16 && type != BERTH_BF16 && type != BERTH_BOOL && type != BERTH_U8 &&
        type != BERTH_I8 && type != BERTH_I32)
      return false;
  }
  return true;
}

static int64_t narrow_items(const berth_op_call *call) {
  const narrow n = narrow_plan(call);
  return n.row_items * n.column_items;
}

static int64_t narrow_grain(const berth_op_call *call) {
  const narrow n = narrow_plan(call);
  const double rows = (double)(n.rows < ITEM_ROWS ? n.rows : ITEM_ROWS), elements = (double)n.depth * ITEM_COLUMNS;
  const double compute = 2 * elements * rows / FLOPS_PER_US, memory = 4 * elements / BYTES_PER_US;
  const double grain = WORTH_US / ((compute > memory ? compute : memory) + 0.01);
  return grain > 1 ? (int64_t)grain : 1;
}

static bool is_run(const berth_tensor *x) {
  return x->type == BERTH_F32 && (x->stride[x->rank - 1] == 1 || x->dim[x->rank - 1] <= 1);
}

/* Rows with strided elements are made contiguous first. Elements of scratch: rows of x, columns, results. */
static int64_t narrow_row_elements(const berth_op_call *call) {
  const berth_tensor *x = &call->in[BERTH__PRODUCT_X];
  return is_run(x) ? 0 : x->dim[x->rank - 1] * TILE_ROWS;
}
static int64_t narrow_column_elements(const berth_op_call *call) {
  const berth_tensor *x = &call->in[BERTH__PRODUCT_X];
  return call->in[BERTH__PRODUCT_WEIGHT].type == BERTH_F32 ? 0 : x->dim[x->rank - 1] * ITEM_COLUMNS;
}
static uint64_t narrow_scratch(const berth_op_call *call) {
  const int64_t results = call->out[0].type == BERTH_F32 ? 0 : ITEM_ROWS * ITEM_COLUMNS;
  return (uint64_t)(narrow_row_elements(call) + narrow_column_elements(call) + results) * sizeof(float);
}

/* Columns are too short for the hardware prefetcher: those of the next tile are prefetched, as much with every step as
 * the step uses. */
static inline __attribute__((always_inline)) void narrow_ask_ahead(const float *w, int64_t depth, int64_t k,
                                                                   const int n_columns) {
  const float *next = w + (n_columns * depth + k * n_columns);
  for (int at = 0; at < VF_LANES * n_columns; at += CACHE_LINE) __builtin_prefetch(next + at);
}

/* Below, n_rows and n_columns are constants after inlining: the sums live in registers. */
static inline __attribute__((always_inline)) void narrow_dots(const float *const *x, const float *w, int64_t depth,
                                                              const int n_rows, const int n_columns,
                                                              float out[][TILE_COLUMNS]) {
  vf sum[TILE_ROWS][TILE_COLUMNS];
  int64_t k = 0;
  for (int r = 0; r < n_rows; r++)
    for (int c = 0; c < n_columns; c++) sum[r][c] = vf_zero();
  for (; k + VF_LANES <= depth; k += VF_LANES) {
    if (n_rows == 1) narrow_ask_ahead(w, depth, k, n_columns);
    for (int c = 0; c < n_columns; c++) {
      const vf column = vf_load(w + c * depth + k);
      for (int r = 0; r < n_rows; r++) sum[r][c] = vf_fma(vf_load(x[r] + k), column, sum[r][c]);
    }
  }
  if (k < depth)
    for (int c = 0; c < n_columns; c++) {
      const vf column = vf_load_n(w + c * depth + k, depth - k);
      for (int r = 0; r < n_rows; r++) sum[r][c] = vf_fma(vf_load_n(x[r] + k, depth - k), column, sum[r][c]);
    }
  for (int r = 0; r < n_rows; r++)
    for (int c = 0; c < n_columns; c++) out[r][c] = vf_sum(sum[r][c]);
}

/* One row and one column, in four independent sums. */
static float narrow_dot(const float *x, const float *w, int64_t depth) {
  vf sum[4] = {vf_zero(), vf_zero(), vf_zero(), vf_zero()};
  int64_t k = 0;
  for (; k + 4 * VF_LANES <= depth; k += 4 * VF_LANES)
    for (int i = 0; i < 4; i++) sum[i] = vf_fma(vf_load(x + k + i * VF_LANES), vf_load(w + k + i * VF_LANES), sum[i]);
  for (; k + VF_LANES <= depth; k += VF_LANES) sum[0] = vf_fma(vf_load(x + k), vf_load(w + k), sum[0]);
  if (k < depth) sum[1] = vf_fma(vf_load_n(x + k, depth - k), vf_load_n(w + k, depth - k), sum[1]);
  return vf_sum((sum[0] + sum[1]) + (sum[2] + sum[3]));
}

static void narrow_tile(const float *const *x, const float *w, int64_t depth, int64_t n_rows, int64_t n_columns,
                        float out[][TILE_COLUMNS]) {
  if (n_columns == TILE_COLUMNS && n_rows == TILE_ROWS) {
    narrow_dots(x, w, depth, TILE_ROWS, TILE_COLUMNS, out);
  } else if (n_columns == TILE_COLUMNS) {
    narrow_dots(x, w, depth, 1, TILE_COLUMNS, out);
  } else {
    for (int64_t r = 0; r < n_rows; r++)
      for (int64_t c = 0; c < n_columns; c++) out[r][c] = narrow_dot(x[r], w + c * depth, depth);
  }
}

/* Where a row of x begins; rows are counted over all axes but the last. */
static int64_t narrow_row(const berth_tensor *x, int64_t row) {
  int64_t at = 0;
  for (uint32_t axis = x->rank - 1; axis-- > 0; row /= x->dim[axis]) at += row % x->dim[axis] * x->stride[axis];
  return at;
}

static void narrow_find_rows(const berth_op_call *call, int64_t first, int64_t n, const float **rows) {
  const berth_tensor *x = &call->in[BERTH__PRODUCT_X];
  const int64_t depth = x->dim[x->rank - 1], step = x->stride[x->rank - 1];
  for (int64_t r = 0; r < n; r++) {
    const int64_t at = narrow_row(x, first + r);
    rows[r] = (const float *)x->data + at;
    if (is_run(x)) continue;
    float *copy = (float *)call->scratch + r * depth;
    chain_load(copy, x->type, (const char *)x->data + at * (int64_t)berth_type_size(x->type), step, depth);
    rows[r] = copy;
  }
}

/* Columns [first, end) of the weight. */
static const float *narrow_columns(const berth_op_call *call, const narrow *n, int64_t first, int64_t end) {
  const berth_tensor *w = &call->in[BERTH__PRODUCT_WEIGHT];
  if (w->type == BERTH_F32) return (const float *)w->data + first * n->depth;
  float *columns = (float *)call->scratch + narrow_row_elements(call);
  chain_load(columns, w->type, (const uint16_t *)w->data + first * n->depth, 1, (end - first) * n->depth);
  return columns;
}

static float narrow_value(const berth_tensor *tensor, int64_t at) {
  float value;
  if (tensor->type == BERTH_F32) return ((const float *)tensor->data)[at];
  chain_load(&value, tensor->type, (const uint16_t *)tensor->data + at, 1, 1);
  return value;
}

static void narrow_run_item(const berth_op_call *call, const narrow *n, const float bounds[2], float *wide,
                            int64_t first_row, int64_t first, int64_t end) {
  const float *w = narrow_columns(call, n, first, end);
  const berth_tensor *bias = NULL, *sum = NULL;
  const int64_t end_row = first_row + ITEM_ROWS < n->rows ? first_row + ITEM_ROWS : n->rows, columns = end - first;
  if (berth__call_has(call, BERTH__PRODUCT_BIAS)) bias = &call->in[BERTH__PRODUCT_BIAS];
  if (call->attrs[BERTH__PRODUCT_ADDS].i != 0) sum = &call->in[BERTH__EPILOGUE_SUM];
  for (int64_t row = first_row; row < end_row; row += TILE_ROWS) {
    const int64_t n_rows = end_row - row < TILE_ROWS ? end_row - row : TILE_ROWS;
    const float *rows[TILE_ROWS];
    float tile[TILE_ROWS][TILE_COLUMNS];
    narrow_find_rows(call, row, n_rows, rows);
    narrow_tile(rows, w, n->depth, n_rows, columns, tile);
    for (int64_t r = 0; r < n_rows; r++)
      for (int64_t c = 0; c < columns; c++) {
        const int64_t at = (row + r) * n->columns + first + c;
        float value = tile[r][c] + (bias != NULL ? narrow_value(bias, first + c) : 0);
        if (sum != NULL) value += narrow_value(sum, at);
        if (value < bounds[0]) value = bounds[0]; /* NaN stays */
        value = value > bounds[1] ? bounds[1] : value;
        *(wide != NULL ? wide + (row - first_row + r) * ITEM_COLUMNS + c : (float *)call->out[0].data + at) = value;
      }
  }
}

static berth_status narrow_run(const berth_op_call *call, berth_error *err) {
  const berth_attr *code = &call->attrs[BERTH__PRODUCT_CODE], *numbers = &call->attrs[BERTH__PRODUCT_NUMBERS];
  const uint32_t own = berth__epilogue_first(&call->attrs[BERTH__PRODUCT_ADDS]);
  const narrow n = narrow_plan(call);
  float bounds[2] = {-INFINITY, INFINITY};
  chain_run epilogue;
  bool has_chain = false;
  float *wide = NULL;
  (void)err;
  if (call->out[0].type != BERTH_F32)
    wide = (float *)call->scratch + narrow_row_elements(call) + narrow_column_elements(call);
  if (!epilogue_clamp(code, numbers, &bounds[0], &bounds[1])) {
    bounds[0] = -INFINITY;
    bounds[1] = INFINITY;
    has_chain = epilogue_prepare(&epilogue, call->in + own, call->n_in > own ? call->n_in - own : 0, &call->out[0],
                                 code, numbers);
  }
  for (int64_t item = call->begin; item < call->end; item++) {
    const int64_t row = item / n.column_items * ITEM_ROWS, first = item % n.column_items * ITEM_COLUMNS;
    const int64_t end = first + ITEM_COLUMNS < n.columns ? first + ITEM_COLUMNS : n.columns;
    const int64_t n_rows = n.rows - row < ITEM_ROWS ? n.rows - row : ITEM_ROWS;
    narrow_run_item(call, &n, bounds, wide, row, first, end);
    if (has_chain && wide != NULL)
      epilogue_rows_from(&epilogue, row, n_rows, first, end - first, wide, ITEM_COLUMNS);
    else if (has_chain)
      epilogue_rows(&epilogue, row, n_rows, first, end - first);
    else if (wide != NULL)
      for (int64_t r = 0; r < n_rows; r++)
        chain_store((uint16_t *)call->out[0].data + (row + r) * n.columns + first, call->out[0].type,
                    wide + r * ITEM_COLUMNS, end - first);
  }
  return BERTH_OK;
}

const berth__cpu_kernel BERTH__PER_ISA(berth__kernels_product_narrow)[] = {
    {"product_narrow", BERTH__OP_product, narrow_takes, narrow_items, narrow_grain, narrow_scratch, narrow_run, NULL,
     false, NULL},
    {0},
};
