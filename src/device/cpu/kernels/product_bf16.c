/* product with weights that are packed as bf16: half the bytes of f32. Two rows of a weight are in the halves of a
 * lane. If x is rounded too and the machine has the instruction, both are multiplied and summed at once; otherwise each
 * half is converted to f32, which takes one instruction. */
#include "device/cpu/kernels/bf16.h"
#include "device/cpu/kernels/chain_run.h"
#include "ops/epilogue.h"
#include "ops/operand.h"
#include "ops/product.h"

#if VF_LANES == 16
#define ROWS 12 /* 24 sums, 4 halves of weights */
#define HAS_DOT16 1
#define DOT16 __attribute__((target("avx512bf16")))
#else
#define ROWS 4
#define HAS_DOT16 0
#endif
#define CHUNK 60       /* rows that share a block of columns */
#define PANELS 4       /* per block */
#define FEW_ROWS 4     /* with so few rows, weights come from memory and blocks are smaller */
#define PAIRS_AHEAD 32 /* of a panel, prefetched when there are few rows */
#define WORTH 600000   /* multiplications that are worth a thread */
#define FEW_WORTH 100000
#define UNROLL _Pragma("GCC unroll 16")
#define INLINED static inline __attribute__((always_inline))

typedef struct job {
  const berth_op_call *call;
  int64_t rows, depth, pairs, columns;
  bool is_dot;    /* x is bf16 in scratch; otherwise f32 */
  bool is_narrow; /* the result is f16 or bf16: its blocks are f32 in scratch first */
  const float *bias, *sum;
  epilogue_form epilogue;
} job;

static bool product_bf16_kernel_is_run(const berth_tensor *tensor) {
  return tensor->dim[0] <= 1 || tensor->stride[0] == 1;
}

static bool product_bf16_kernel_takes(const berth_op_call *call) {
  if (call->in[1].type != BERTH_BF16 || call->attrs[BERTH__PRODUCT_PANEL].i != VF_PANEL) return false;
  if (berth__call_has(call, BERTH__PRODUCT_BIAS) && !product_bf16_kernel_is_run(&call->in[BERTH__PRODUCT_BIAS]))
    return false;
  return berth__is_contiguous(&call->in[1]);
}

static bool has_dot16(const berth_op_call *call) {
#if HAS_DOT16
  return call->attrs[BERTH__PRODUCT_ROUNDS].i != 0 && __builtin_cpu_supports("avx512bf16");
#else
  (void)call;
  return false;
#endif
}

static int64_t product_bf16_kernel_rows_of(const berth_op_call *call) {
  const berth_tensor *out = &call->out[0];
  int64_t rows = 1;
  for (uint32_t axis = 0; axis + 1 < out->rank; axis++) rows *= out->dim[axis];
  return rows;
}

static int64_t block_columns(const berth_op_call *call) {
  return (product_bf16_kernel_rows_of(call) <= FEW_ROWS ? 1 : PANELS) * VF_PANEL;
}

static int64_t product_bf16_kernel_pieces(int64_t n, int64_t piece) { return n / piece + (n % piece != 0); }

static int64_t product_bf16_kernel_items(const berth_op_call *call) {
  return product_bf16_kernel_pieces(product_bf16_kernel_rows_of(call), CHUNK) *
         product_bf16_kernel_pieces(call->attrs[BERTH__PRODUCT_COLUMNS].i, block_columns(call));
}

static int64_t product_bf16_kernel_grain(const berth_op_call *call) {
  const int64_t rows = product_bf16_kernel_rows_of(call), chunk = rows < CHUNK ? rows : CHUNK;
  const int64_t depth = call->in[0].dim[call->in[0].rank - 1];
  return (rows <= FEW_ROWS ? FEW_WORTH : WORTH) / (chunk * depth * block_columns(call) + 1) + 1;
}

static int64_t product_bf16_kernel_padded(const berth_op_call *call) {
  return 2 * berth__bf16_pairs(call->in[0].dim[call->in[0].rank - 1]);
}

/* Rows of x in the layout of tiles, then a block of results to be rounded, and its bias. */
static uint64_t product_bf16_kernel_rows_size(const berth_op_call *call) {
  const int64_t rows = product_bf16_kernel_rows_of(call), chunk = rows < CHUNK ? rows : CHUNK;
  const uint64_t element = has_dot16(call) ? sizeof(uint16_t) : sizeof(float);
  return ((uint64_t)(chunk * product_bf16_kernel_padded(call)) * element + 63) / 64 * 64;
}

static uint64_t product_bf16_kernel_scratch(const berth_op_call *call) {
  const int64_t rows = product_bf16_kernel_rows_of(call), chunk = rows < CHUNK ? rows : CHUNK;
  if (call->out[0].type == BERTH_F32) return product_bf16_kernel_rows_size(call);
  return product_bf16_kernel_rows_size(call) + (uint64_t)((chunk + 1) * block_columns(call)) * sizeof(float);
}

static int64_t product_bf16_kernel_row_at(const berth_tensor *x, int64_t row) {
  int64_t at = 0;
  for (uint32_t axis = x->rank - 1; axis-- > 0; row /= x->dim[axis]) at += row % x->dim[axis] * x->stride[axis];
  return at;
}

/* From f16 or bf16, in pieces; bf16 is not rounded again. */
static void product_bf16_kernel_widen(const job *j, const uint16_t *from, int64_t step, uint16_t *halves,
                                      float *whole) {
  const berth_type type = j->call->in[0].type;
  const bool rounds = j->call->attrs[BERTH__PRODUCT_ROUNDS].i != 0 && type != BERTH_BF16;
  const int64_t width = 2 * j->pairs;
  float piece[256];
  if (!j->is_dot) {
    chain_load(whole, type, from, step, j->depth);
    for (int64_t k = 0; k < j->depth && rounds; k++) whole[k] = bf16_rounded(whole[k]);
    if (j->depth < width) whole[j->depth] = 0;
    return;
  }
  for (int64_t k = 0, n; k < j->depth; k += n) {
    n = j->depth - k < 256 ? j->depth - k : 256;
    chain_load(piece, type, from + k * step, step, n);
    for (int64_t i = 0; i < n; i++) halves[k + i] = bf16_of(piece[i]);
  }
  if (j->depth < width) halves[j->depth] = 0;
}

/* Copies rows of x to the layout of tiles: contiguous, rounded if required. */
static void product_bf16_kernel_copy_rows(const job *j, int64_t first, int64_t n, void *to) {
  const berth_tensor *x = &j->call->in[0];
  const int64_t step = x->stride[x->rank - 1], width = 2 * j->pairs;
  const bool rounds = j->call->attrs[BERTH__PRODUCT_ROUNDS].i != 0;
  for (int64_t r = 0; r < n; r++) {
    const int64_t at = product_bf16_kernel_row_at(x, first + r);
    const float *from = (const float *)x->data + at;
    uint16_t *halves = (uint16_t *)to + r * width;
    float *whole = (float *)to + r * width;
    if (x->type != BERTH_F32) {
      product_bf16_kernel_widen(j, (const uint16_t *)x->data + at, step, halves, whole);
      continue;
    }
    if (j->is_dot) {
      if (step == 1)
        for (int64_t k = 0; k < j->depth; k++) halves[k] = bf16_of(from[k]);
      else
        for (int64_t k = 0; k < j->depth; k++) halves[k] = bf16_of(from[k * step]);
      if (j->depth < width) halves[j->depth] = 0;
      continue;
    }
    for (int64_t k = 0; k < j->depth; k++) whole[k] = rounds ? bf16_rounded(from[k * step]) : from[k * step];
    if (j->depth < width) whole[j->depth] = 0;
  }
}

/* ---- Tiles: some rows times one panel ---- */

typedef struct tile {
  const job *job;
  const void *x; /* the first row in scratch */
  const uint16_t *panel;
  int64_t row, column, columns;
  const float *bias; /* for its columns; NULL: none */
  const float *also; /* added to its first element; NULL: nothing */
  float *out;        /* its first element */
  int64_t stride;    /* of both */
} tile;

INLINED vf product_bf16_kernel_load_columns(const float *p, int v, int64_t columns) {
  const int64_t left = columns - v * VF_LANES;
  return left <= 0 ? vf_zero() : vf_load_n(p + v * VF_LANES, vf_tail(left));
}

INLINED void product_bf16_kernel_start(const tile *t, vf sum[ROWS][2], const int rows) {
  const float *bias = t->bias;
  UNROLL for (int v = 0; v < 2; v++) {
    const vf first = bias != NULL ? product_bf16_kernel_load_columns(bias, v, t->columns) : vf_zero();
    UNROLL for (int r = 0; r < rows; r++) sum[r][v] = first;
  }
}

INLINED void product_bf16_kernel_finish(const tile *t, vf sum[ROWS][2], const int rows) {
  const vf low = vf_set1(t->job->epilogue.low), high = vf_set1(t->job->epilogue.high);
  UNROLL for (int r = 0; r < rows; r++) {
    float *out = t->out + r * t->stride;
    UNROLL for (int v = 0; v < 2; v++) {
      const int64_t left = t->columns - v * VF_LANES;
      if (left <= 0) break;
      if (t->also != NULL) sum[r][v] += product_bf16_kernel_load_columns(t->also + r * t->stride, v, t->columns);
      vf_store_n(out + v * VF_LANES, vf_clamp(sum[r][v], low, high), vf_tail(left));
    }
  }
}

INLINED void ask_ahead(const uint16_t *w, const int rows) {
  if (rows > 2) return;
  for (int v = 0; v < 2; v++) __builtin_prefetch((const char *)w + (PAIRS_AHEAD * 2 + v) * VF_LANES * 4, 0, 2);
}

INLINED void multiply_halves(const tile *t, vf sum[ROWS][2], const int rows) {
  const float *x = t->x;
  const int64_t width = 2 * t->job->pairs;
  const uint16_t *w = t->panel;
  const vi upper = vi_set1((int32_t)0xffff0000u);
  for (int64_t k = 0; k < t->job->pairs; k++, w += 2 * VF_PANEL) {
    vf even[2], odd[2];
    ask_ahead(w, rows);
    UNROLL for (int v = 0; v < 2; v++) {
      const vi both = vi_load(w + v * 2 * VF_LANES);
      even[v] = vf_from_bits(vi_shift_left(both, 16));
      odd[v] = vf_from_bits(vi_and(both, upper));
    }
    UNROLL for (int r = 0; r < rows; r++) {
      const vf first = vf_set1(x[r * width + 2 * k]), second = vf_set1(x[r * width + 2 * k + 1]);
      UNROLL for (int v = 0; v < 2; v++) sum[r][v] = vf_fma(second, odd[v], vf_fma(first, even[v], sum[r][v]));
    }
  }
}

INLINED void run_halves(const tile *t, const int rows) {
  vf sum[ROWS][2];
  product_bf16_kernel_start(t, sum, rows);
  multiply_halves(t, sum, rows);
  product_bf16_kernel_finish(t, sum, rows);
}

#if HAS_DOT16
DOT16 INLINED void run_dot(const tile *t, const int rows) {
  const uint16_t *x = t->x, *w = t->panel;
  const int64_t width = 2 * t->job->pairs;
  vf sum[ROWS][2];
  product_bf16_kernel_start(t, sum, rows);
  for (int64_t k = 0; k < t->job->pairs; k++, w += 2 * VF_PANEL) {
    const __m512bh w0 = (__m512bh)vi_load(w), w1 = (__m512bh)vi_load(w + 2 * VF_LANES);
    ask_ahead(w, rows);
    UNROLL for (int r = 0; r < rows; r++) {
      int32_t pair;
      memcpy(&pair, x + r * width + 2 * k, sizeof pair);
      const __m512bh all = (__m512bh)vi_set1(pair);
      sum[r][0] = _mm512_dpbf16_ps(sum[r][0], w0, all);
      sum[r][1] = _mm512_dpbf16_ps(sum[r][1], w1, all);
    }
  }
  product_bf16_kernel_finish(t, sum, rows);
}
DOT16 static void dot_full(const tile *t) { run_dot(t, ROWS); }
DOT16 static void dot_4(const tile *t) { run_dot(t, 4); }
DOT16 static void dot_1(const tile *t) { run_dot(t, 1); }
#endif
static void halves_full(const tile *t) { run_halves(t, ROWS); }
static void halves_4(const tile *t) { run_halves(t, 4); }
static void halves_1(const tile *t) { run_halves(t, 1); }

/* Indexed by the height of a tile. */
typedef struct tiles {
  void (*full)(const tile *), (*four)(const tile *), (*one)(const tile *);
} tiles;

static tiles product_bf16_kernel_tiles_of(bool is_dot) {
#if HAS_DOT16
  if (is_dot) return (tiles){dot_full, dot_4, dot_1};
#endif
  (void)is_dot;
  return (tiles){halves_full, halves_4, halves_1};
}

/* ---- The call ---- */

/* A block of results that are not f32 starts with what is added to it. */
static void product_bf16_kernel_load_sum(const job *j, float *block, int64_t stride, int64_t row, int64_t n,
                                         int64_t column, int64_t end) {
  const berth_type type = j->call->out[0].type;
  const uint16_t *sum = j->call->in[BERTH__EPILOGUE_SUM].data;
  for (int64_t r = 0; r < n; r++)
    chain_load(block + r * stride, type, sum + (row + r) * j->columns + column, 1, end - column);
}

static void product_bf16_kernel_round(const job *j, const float *block, int64_t stride, int64_t row, int64_t n,
                                      int64_t column, int64_t end) {
  uint16_t *out = j->call->out[0].data;
  if (j->epilogue.is_chain) {
    epilogue_rows_from(&j->epilogue.chain, row, n, column, end - column, block, stride);
    return;
  }
  for (int64_t r = 0; r < n; r++)
    chain_store(out + (row + r) * j->columns + column, j->call->out[0].type, block + r * stride, end - column);
}

/* Rows [row, row + n) of a block of columns; x is in scratch. */
static void product_bf16_kernel_run_block(const job *j, const void *x, int64_t row, int64_t n, int64_t column,
                                          int64_t end) {
  const berth_tensor *of_bias = &j->call->in[BERTH__PRODUCT_BIAS];
  float *block = (float *)(void *)((char *)j->call->scratch + product_bf16_kernel_rows_size(j->call));
  const int64_t stride = j->is_narrow ? block_columns(j->call) : j->columns;
  float *out = j->is_narrow ? block : (float *)j->call->out[0].data + row * j->columns + column;
  const float *also = j->sum == NULL ? NULL : j->is_narrow ? block : j->sum + row * j->columns + column;
  const float *bias = j->bias != NULL ? j->bias + column : NULL;
  if (j->bias != NULL && of_bias->type != BERTH_F32) { /* it is stored after the block */
    float *line = block + stride * (n < CHUNK ? n : CHUNK);
    chain_load(line, of_bias->type, (const uint16_t *)of_bias->data + column, 1, end - column);
    bias = line;
  }
  if (j->is_narrow && j->sum != NULL) product_bf16_kernel_load_sum(j, block, stride, row, n, column, end);
  const tiles run = product_bf16_kernel_tiles_of(j->is_dot);
  const int64_t row_bytes = 2 * j->pairs * (int64_t)(j->is_dot ? sizeof(uint16_t) : sizeof(float));
  for (int64_t at = column; at < end; at += VF_PANEL) {
    tile t = {.job = j,
              .panel = (const uint16_t *)j->call->in[1].data + at / VF_PANEL * j->pairs * 2 * VF_PANEL,
              .column = at,
              .columns = end - at < VF_PANEL ? end - at : VF_PANEL,
              .bias = bias != NULL ? bias + (at - column) : NULL,
              .stride = stride};
    for (int64_t r = 0, height; r < n; r += height) {
      height = n - r >= ROWS ? ROWS : n - r >= 4 ? 4 : 1;
      t.x = (const char *)x + r * row_bytes;
      t.row = row + r;
      t.out = out + r * stride + (at - column);
      t.also = also != NULL ? also + r * stride + (at - column) : NULL;
      (height == 1 ? run.one : height == ROWS ? run.full : run.four)(&t);
    }
  }
  if (j->is_narrow)
    product_bf16_kernel_round(j, block, stride, row, n, column, end);
  else
    epilogue_finish(&j->epilogue, row, n, column, end - column);
}

static void product_bf16_kernel_prepare(job *j, const berth_op_call *call) {
  j->call = call;
  j->rows = product_bf16_kernel_rows_of(call);
  j->depth = call->in[0].dim[call->in[0].rank - 1];
  j->pairs = berth__bf16_pairs(j->depth);
  j->columns = call->attrs[BERTH__PRODUCT_COLUMNS].i;
  j->is_dot = has_dot16(call);
  j->is_narrow = call->out[0].type != BERTH_F32;
  j->bias = berth__call_has(call, BERTH__PRODUCT_BIAS) ? call->in[BERTH__PRODUCT_BIAS].data : NULL;
  j->sum = call->attrs[BERTH__PRODUCT_ADDS].i != 0 ? call->in[BERTH__EPILOGUE_SUM].data : NULL;
  epilogue_read(&j->epilogue, call, berth__epilogue_first(&call->attrs[BERTH__PRODUCT_ADDS]),
                &call->attrs[BERTH__PRODUCT_CODE], &call->attrs[BERTH__PRODUCT_NUMBERS]);
}

static berth_status product_bf16_kernel_run(const berth_op_call *call, berth_error *err) {
  job j;
  int64_t copied = -1;
  (void)err;
  product_bf16_kernel_prepare(&j, call);
  const int64_t width = block_columns(call), across = product_bf16_kernel_pieces(j.columns, width);
  for (int64_t item = call->begin; item < call->end; item++) {
    const int64_t row = item / across * CHUNK, n = j.rows - row < CHUNK ? j.rows - row : CHUNK;
    const int64_t column = item % across * width, end = column + width < j.columns ? column + width : j.columns;
    if (row != copied) product_bf16_kernel_copy_rows(&j, copied = row, n, call->scratch);
    product_bf16_kernel_run_block(&j, call->scratch, row, n, column, end);
  }
  return BERTH_OK;
}

const berth__cpu_kernel BERTH__PER_ISA(berth__kernels_product_bf16)[] = {
    {"product bf16", BERTH__OP_product, product_bf16_kernel_takes, product_bf16_kernel_items, product_bf16_kernel_grain,
     product_bf16_kernel_scratch, product_bf16_kernel_run, NULL, false, NULL},
    {0},
};
