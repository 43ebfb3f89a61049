/* product with a weight in blocks, which stays as it is in its file (blocks.h). With few rows of x, each row of the
 * weight is multiplied as it comes from memory; with more, some rows of it are unpacked first. Rows of x are quantised,
 * unless `exact` is set. An item is a panel of columns and some rows. */
#include "base/math.h"
#include "base/storage.h"
#include "device/cpu/kernels/blocks.h"
#include "device/cpu/kernels/chain_run.h"
#include "ops/epilogue.h"
#include "ops/operand.h"

#define FEW_ROWS BLOCKS_EXACT_FEW
#define CHUNK 64                   /* rows that are quantised at a time and share an unpacked panel */
#define WORTH_BYTES (96 << 10)     /* bytes of weights from memory that are worth a thread */
#define WORTH_PRODUCTS (512 << 10) /* multiplications that are worth a thread, with many rows */

typedef struct product_blocks_job {
  const berth_op_call *call;
  berth_type type;
  int64_t rows, depth, columns, row_bytes;
  const float *bias, *sum;
  epilogue_form epilogue;
} product_blocks_job;

static int64_t product_blocks_rows(const berth_op_call *call) {
  const berth_tensor *out = &call->out[0];
  int64_t rows = 1;
  for (uint32_t axis = 0; axis + 1 < out->rank; axis++) rows *= out->dim[axis];
  return rows;
}

static int64_t product_blocks_depth(const berth_op_call *call) {
  const berth_tensor *x = &call->in[BERTH__PRODUCT_X];
  return x->dim[x->rank - 1];
}

static bool product_blocks_is_exact(const berth_op_call *call) { return call->attrs[BERTH__PRODUCT_EXACT].i != 0; }

static bool product_blocks_takes(const berth_op_call *call) {
  const berth_tensor *w = &call->in[BERTH__PRODUCT_WEIGHT], *bias = &call->in[BERTH__PRODUCT_BIAS];
  if (!berth__type_is_block(w->type)) return false;
  if (product_blocks_is_exact(call) ? blocks_split_of(w->type) == NULL : !blocks_has_dots(w->type)) return false;
  if (berth__call_has(call, BERTH__PRODUCT_BIAS) && bias->dim[0] > 1 && bias->stride[0] != 1) return false;
  return berth__is_contiguous(w) && product_blocks_depth(call) > 0;
}

static int64_t product_blocks_pieces(int64_t n, int64_t piece) { return n / piece + (n % piece != 0); }

static int64_t product_blocks_across(const berth_op_call *call) {
  return product_blocks_pieces(call->attrs[BERTH__PRODUCT_COLUMNS].i, VF_PANEL);
}

static int64_t product_blocks_items(const berth_op_call *call) {
  return product_blocks_pieces(product_blocks_rows(call), CHUNK) * product_blocks_across(call);
}

static int64_t product_blocks_grain(const berth_op_call *call) {
  const int64_t rows = product_blocks_rows(call), depth = product_blocks_depth(call);
  const berth_storage storage = berth_type_storage(call->in[BERTH__PRODUCT_WEIGHT].type);
  const int64_t bytes = (int64_t)berth__storage_size(storage, (uint64_t)depth) * VF_PANEL;
  const int64_t products = depth * VF_PANEL * (rows < CHUNK ? rows : CHUNK);
  return (rows <= FEW_ROWS ? WORTH_BYTES / (bytes + 1) : WORTH_PRODUCTS / (products + 1)) + 1;
}

/* ---- Scratch: rows of x; with many rows also a panel and its results ---- */

static int64_t product_blocks_chunk(const berth_op_call *call) {
  const int64_t rows = product_blocks_rows(call);
  return rows < CHUNK ? rows : CHUNK;
}

static int64_t product_blocks_copies(const berth_op_call *call) {
  const berth_type type = call->in[BERTH__PRODUCT_WEIGHT].type;
  return product_blocks_rows(call) <= FEW_ROWS ? blocks_copies(type) : blocks_copies_many(type);
}

/* Rows that are read as they are need their addresses, and a copy if their elements are apart. */
static bool product_blocks_copies_rows(const berth_op_call *call) {
  const berth_tensor *x = &call->in[BERTH__PRODUCT_X];
  return x->stride[x->rank - 1] != 1;
}

static uint64_t product_blocks_exact_size(const berth_op_call *call) {
  const uint64_t rows = (uint64_t)product_blocks_chunk(call), depth = (uint64_t)product_blocks_depth(call);
  return CHUNK * sizeof(float *) + (product_blocks_copies_rows(call) ? rows * depth * sizeof(float) : 0);
}

static uint64_t product_blocks_x_size(const berth_op_call *call) {
  const uint64_t bytes =
      product_blocks_is_exact(call)
          ? product_blocks_exact_size(call)
          : blocks_x_bytes(product_blocks_chunk(call), product_blocks_depth(call), product_blocks_copies(call));
  return (bytes + 63) / 64 * 64;
}

static uint64_t product_blocks_panel_size(const berth_op_call *call) {
  if (product_blocks_is_exact(call)) return sizeof(float) * BLOCKS_EXACT_SLICE * VF_PANEL;
  return blocks_panel_bytes(call->in[BERTH__PRODUCT_WEIGHT].type, product_blocks_depth(call));
}

static uint64_t product_blocks_scratch(const berth_op_call *call) {
  const uint64_t of_x = product_blocks_x_size(call);
  if (product_blocks_rows(call) <= FEW_ROWS) return of_x;
  return of_x + CHUNK * VF_PANEL * sizeof(float) + product_blocks_panel_size(call);
}

static blocks_x product_blocks_x(const berth_op_call *call) {
  blocks_x x =
      blocks_x_in(call->scratch, product_blocks_chunk(call), product_blocks_depth(call), product_blocks_copies(call));
  x.has_starts = product_blocks_rows(call) > FEW_ROWS && blocks_starts_many(call->in[BERTH__PRODUCT_WEIGHT].type);
  return x;
}

static const float *product_blocks_row(const berth_op_call *call, int64_t row) {
  const berth_tensor *x = &call->in[BERTH__PRODUCT_X];
  int64_t at = 0;
  for (uint32_t axis = x->rank - 1; axis-- > 0; row /= x->dim[axis]) at += row % x->dim[axis] * x->stride[axis];
  return (const float *)x->data + at;
}

static void product_blocks_quantise(const berth_op_call *call, int64_t first, int64_t n) {
  const berth_tensor *x = &call->in[BERTH__PRODUCT_X];
  const blocks_x to = product_blocks_x(call);
  const bool is_few = product_blocks_rows(call) <= FEW_ROWS;
  for (int64_t r = 0; r < n; r++) {
    blocks_quantise(product_blocks_row(call, first + r), x->stride[x->rank - 1], &to, r);
    (is_few ? blocks_arrange : blocks_arrange_many)(call->in[BERTH__PRODUCT_WEIGHT].type, &to, r);
  }
}

static void product_blocks_list(const berth_op_call *call, int64_t first, int64_t n) {
  const berth_tensor *x = &call->in[BERTH__PRODUCT_X];
  const float **rows = call->scratch;
  const int64_t depth = product_blocks_depth(call), step = x->stride[x->rank - 1];
  float *copies = (float *)(rows + CHUNK);
  for (int64_t r = 0; r < n; r++, copies += depth) {
    const float *from = rows[r] = product_blocks_row(call, first + r);
    if (!product_blocks_copies_rows(call)) continue;
    for (int64_t i = 0; i < depth; i++) copies[i] = from[i * step];
    rows[r] = copies;
  }
}

static void product_blocks_take(const berth_op_call *call, int64_t first, int64_t n) {
  (product_blocks_is_exact(call) ? product_blocks_list : product_blocks_quantise)(call, first, n);
}

/* If all rows are taken at once, this is done before the first item. */
static void product_blocks_prepare(const berth_op_call *call) {
  const int64_t rows = product_blocks_rows(call);
  if (rows <= CHUNK) product_blocks_take(call, 0, rows);
}

/* ---- Items ---- */

/* n columns of a row. */
static void product_blocks_store(const product_blocks_job *j, int64_t row, int64_t column, int64_t n, float *values) {
  const int64_t at = row * j->columns + column;
  const float low = j->epilogue.low, high = j->epilogue.high;
  float *out = (float *)j->call->out[0].data + at;
  for (int64_t c = 0; j->bias != NULL && c < n; c++) values[c] += j->bias[column + c];
  for (int64_t c = 0; j->sum != NULL && c < n; c++) values[c] += j->sum[at + c];
  for (int64_t c = 0; c < n; c++) {
    const float value = values[c] < low ? low : values[c]; /* NaN stays */
    out[c] = value > high ? high : value;
  }
}

static void product_blocks_few(const product_blocks_job *j, const blocks_x *x, int64_t column, int64_t end) {
  const uint8_t *w = (const uint8_t *)j->call->in[BERTH__PRODUCT_WEIGHT].data + column * j->row_bytes;
  for (int64_t row = 0; row < j->rows; row++) {
    const blocks_row_x of = blocks_row_of(x, row);
    float out[VF_PANEL];
    blocks_dots(j->type, w, j->row_bytes, end - column, &of, j->depth, out);
    product_blocks_store(j, row, column, end - column, out);
  }
}

static void product_blocks_many(const product_blocks_job *j, const blocks_x *x, int64_t row, int64_t n, int64_t column,
                                int64_t end) {
  const uint8_t *w = (const uint8_t *)j->call->in[BERTH__PRODUCT_WEIGHT].data + column * j->row_bytes;
  float *tile = (float *)((char *)j->call->scratch + product_blocks_x_size(j->call));
  void *panel = tile + CHUNK * VF_PANEL;
  blocks_product(j->type, w, end - column, x, n, panel, tile);
  for (int64_t r = 0; r < n; r++) product_blocks_store(j, row + r, column, end - column, tile + r * VF_PANEL);
}

/* Rows that stay f32. */
static void product_blocks_exact(const product_blocks_job *j, int64_t row, int64_t n, int64_t column, int64_t end) {
  const uint8_t *w = (const uint8_t *)j->call->in[BERTH__PRODUCT_WEIGHT].data + column * j->row_bytes;
  const blocks_exact_x x = {j->depth, j->call->scratch};
  float few[FEW_ROWS * VF_PANEL];
  float *tile = j->rows <= FEW_ROWS ? few : (float *)((char *)j->call->scratch + product_blocks_x_size(j->call));
  if (j->rows <= FEW_ROWS)
    blocks_exact_dots(j->type, w, j->row_bytes, end - column, &x, n, few);
  else
    blocks_exact_product(j->type, w, end - column, &x, n, tile + CHUNK * VF_PANEL, tile);
  for (int64_t r = 0; r < n; r++) product_blocks_store(j, row + r, column, end - column, tile + r * VF_PANEL);
}

static void product_blocks_begin(product_blocks_job *j, const berth_op_call *call) {
  j->call = call;
  j->type = call->in[BERTH__PRODUCT_WEIGHT].type;
  j->rows = product_blocks_rows(call);
  j->depth = product_blocks_depth(call);
  j->columns = call->attrs[BERTH__PRODUCT_COLUMNS].i;
  j->row_bytes = (int64_t)berth__storage_size(berth_type_storage(j->type), (uint64_t)j->depth);
  j->bias = berth__call_has(call, BERTH__PRODUCT_BIAS) ? call->in[BERTH__PRODUCT_BIAS].data : NULL;
  j->sum = call->attrs[BERTH__PRODUCT_ADDS].i != 0 ? call->in[BERTH__EPILOGUE_SUM].data : NULL;
  epilogue_read(&j->epilogue, call, berth__epilogue_first(&call->attrs[BERTH__PRODUCT_ADDS]),
                &call->attrs[BERTH__PRODUCT_CODE], &call->attrs[BERTH__PRODUCT_NUMBERS]);
}

static berth_status product_blocks_run(const berth_op_call *call, berth_error *err) {
  const blocks_x x = product_blocks_x(call);
  const int64_t across = product_blocks_across(call);
  int64_t taken = 0;
  product_blocks_job j;
  (void)err;
  product_blocks_begin(&j, call);
  if (j.rows > CHUNK) taken = -1;
  for (int64_t item = call->begin; item < call->end; item++) {
    const int64_t row = item / across * CHUNK, n = j.rows - row < CHUNK ? j.rows - row : CHUNK;
    const int64_t column = item % across * VF_PANEL,
                  end = column + VF_PANEL < j.columns ? column + VF_PANEL : j.columns;
    if (row != taken) product_blocks_take(call, taken = row, n);
    if (product_blocks_is_exact(call))
      product_blocks_exact(&j, row, n, column, end);
    else if (j.rows <= FEW_ROWS)
      product_blocks_few(&j, &x, column, end);
    else
      product_blocks_many(&j, &x, row, n, column, end);
    epilogue_finish(&j.epilogue, row, n, column, end - column);
  }
  return BERTH_OK;
}

const berth__cpu_kernel BERTH__PER_ISA(berth__kernels_product_blocks)[] = {
    {"product blocks", BERTH__OP_product, product_blocks_takes, product_blocks_items, product_blocks_grain,
     product_blocks_scratch, product_blocks_run, product_blocks_prepare, false, NULL},
    {0},
};
