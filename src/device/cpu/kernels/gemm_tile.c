#include "device/cpu/kernels/gemm_tile.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define IS_SANITIZED 1
#endif
#endif

#if defined(__SANITIZE_ADDRESS__) || defined(IS_SANITIZED)
#define UNROLLED /* the sanitizer checks every element: unrolled, compiling takes minutes */
#elif defined(__clang__)
#define UNROLLED _Pragma("clang loop unroll(full)")
#else
#define UNROLLED _Pragma("GCC unroll 16")
#endif
#define ROWS_AHEAD 32 /* of a panel: 4 KiB with the widest vectors */
#define INLINED static inline __attribute__((always_inline))

/* Vector v of the `columns` at p. */
INLINED vf gemm_tile_kernel_load_columns(const float *p, int v, int64_t columns) {
  const int64_t left = columns - v * VF_LANES;
  return left >= VF_LANES ? vf_load(p + v * VF_LANES) : vf_load_n(p + v * VF_LANES, left);
}

/* Below, n_rows, n_vectors and is_half are constants after inlining: the sums live in registers. With is_half, only the
 * first half of the last vector is needed. */
INLINED void gemm_tile_kernel_start(const gemm_tile *t, const int n_rows, const int n_vectors, vf sum[][2]) {
  if (__builtin_expect(t->bias_stride != 0, 0)) {
    UNROLLED for (int v = 0; v < n_vectors; v++) UNROLLED for (int r = 0; r < n_rows; r++) sum[r][v] =
        gemm_tile_kernel_load_columns(t->bias + r * t->bias_stride, v, t->columns);
    return;
  }
  UNROLLED for (int v = 0; v < n_vectors; v++) {
    const vf first = t->bias != NULL ? gemm_tile_kernel_load_columns(t->bias, v, t->columns) : vf_zero();
    UNROLLED for (int r = 0; r < n_rows; r++) sum[r][v] = first;
  }
}

INLINED void add_result(const gemm_tile *t, const int n_rows, const int n_vectors, vf sum[][2]) {
  UNROLLED for (int v = 0; v < n_vectors; v++) UNROLLED for (int r = 0; r < n_rows; r++) sum[r][v] +=
      gemm_tile_kernel_load_columns(t->also + r * t->out_stride, v, t->columns);
}

INLINED void gemm_tile_kernel_find_rows(const gemm_tile *t, const int n_rows, int64_t tap, const float **row) {
  if (t->row_step != 0) {
    const float *first = t->rows[tap] + t->row_offset;
    UNROLLED for (int r = 0; r < n_rows; r++) row[r] = first + r * t->row_step;
  } else {
    UNROLLED for (int r = 0; r < n_rows; r++) row[r] = t->rows[tap * n_rows + r];
  }
}

INLINED void gemm_tile_kernel_multiply(const gemm_tile *t, const int n_rows, const int n_vectors, const bool is_half,
                                       vf sum[][2]) {
  const int64_t step = t->panel_step != 0 ? t->panel_step : VF_PANEL;
  const float *b = t->panel;
  const bool asks_ahead = n_rows <= 2 && t->is_far, asks_later = n_rows > 2 && n_vectors == 2;
  const int64_t ahead_step = t->ahead != NULL ? t->ahead_step : 0;
  const char *ahead = t->ahead != NULL ? t->ahead : (const char *)b; /* an unused prefetch costs less than a branch */
  for (int64_t tap = 0; tap < t->taps; tap++) {
    const float *row[GEMM_ROWS];
    if (t->panels != NULL) b = t->panels[tap];
    gemm_tile_kernel_find_rows(t, n_rows, tap, row);
    for (int64_t k = 0; k < t->depth; k++, b += step) {
      vf across[2];
      if (asks_later) {
        __builtin_prefetch(ahead, 0, 2);
        ahead += ahead_step;
      }
      if (asks_ahead)
        UNROLLED for (int v = 0; v < n_vectors; v++) __builtin_prefetch(b + ROWS_AHEAD * step + v * VF_LANES, 0, 2);
      UNROLLED for (int v = 0; v < n_vectors; v++) across[v] = vf_load(b + v * VF_LANES);
      UNROLLED for (int r = 0; r < n_rows; r++) {
        const vf a = vf_set1(row[r][k]);
        UNROLLED for (int v = 0; v < n_vectors; v++) sum[r][v] =
            is_half && v == n_vectors - 1 ? vf_fma_half(a, across[v], sum[r][v]) : vf_fma(a, across[v], sum[r][v]);
      }
    }
  }
}

/* A panel of f16, all of its columns. */
INLINED void gemm_tile_kernel_multiply_halves(const gemm_tile *t, const int n_rows, vf sum[][2]) {
  const uint16_t *b = t->halves;
  const bool asks_ahead = n_rows <= 2 && t->is_far;
  for (int64_t tap = 0; tap < t->taps; tap++) {
    const float *row[GEMM_ROWS];
    gemm_tile_kernel_find_rows(t, n_rows, tap, row);
    for (int64_t k = 0; k < t->depth; k++, b += VF_PANEL) {
      if (asks_ahead) __builtin_prefetch(b + 2 * ROWS_AHEAD * VF_PANEL, 0, 2);
      const vf across[2] = {vf_load_f16(b), vf_load_f16(b + VF_LANES)};
      UNROLLED for (int r = 0; r < n_rows; r++) {
        const vf a = vf_set1(row[r][k]);
        UNROLLED for (int v = 0; v < 2; v++) sum[r][v] = vf_fma(a, across[v], sum[r][v]);
      }
    }
  }
}

INLINED void gemm_tile_kernel_finish(const gemm_tile *t, const int n_rows, const int n_vectors, vf sum[][2]) {
  const vf low = vf_set1(t->low), high = vf_set1(t->high);
  const int64_t last = t->columns - (n_vectors - 1) * VF_LANES;
  float *out = t->out;
  UNROLLED for (int r = 0; r < n_rows; r++, out += t->out_stride) {
    UNROLLED for (int v = 0; v < n_vectors; v++) sum[r][v] = vf_min(high, vf_max(low, sum[r][v]));
    if (n_vectors == 2) vf_store(out, sum[r][0]);
    if (last == VF_LANES)
      vf_store(out + (n_vectors - 1) * VF_LANES, sum[r][n_vectors - 1]);
    else
      vf_store_n(out + (n_vectors - 1) * VF_LANES, sum[r][n_vectors - 1], last);
  }
}

INLINED void gemm_kernel_run_tile(const gemm_tile *t, const int n_rows, const int n_vectors, const bool is_half) {
  vf sum[GEMM_ROWS][2];
  gemm_tile_kernel_start(t, n_rows, n_vectors, sum);
  gemm_tile_kernel_multiply(t, n_rows, n_vectors, is_half, sum);
  if (t->also != NULL) add_result(t, n_rows, n_vectors, sum);
  gemm_tile_kernel_finish(t, n_rows, n_vectors, sum);
}

/* Two vectors, the second of which may be stored in part or not at all. */
INLINED void gemm_kernel_run_halves(const gemm_tile *t, const int n_rows) {
  vf sum[GEMM_ROWS][2];
  const bool is_one = t->columns <= VF_LANES;
  if (is_one)
    gemm_tile_kernel_start(t, n_rows, 1, sum);
  else
    gemm_tile_kernel_start(t, n_rows, 2, sum);
  UNROLLED for (int r = 0; r < n_rows; r++) sum[r][1] = is_one ? vf_zero() : sum[r][1];
  gemm_tile_kernel_multiply_halves(t, n_rows, sum);
  if (t->also != NULL && is_one) add_result(t, n_rows, 1, sum);
  if (t->also != NULL && !is_one) add_result(t, n_rows, 2, sum);
  if (is_one)
    gemm_tile_kernel_finish(t, n_rows, 1, sum);
  else
    gemm_tile_kernel_finish(t, n_rows, 2, sum);
}

/* One vector, one and a half, two: half a vector by itself would wait for A as long as a whole one. */
#define INSTANCE(n)                                                                     \
  static void run_##n##_0(const gemm_tile *t) { gemm_kernel_run_tile(t, n, 1, false); } \
  static void run_##n##_1(const gemm_tile *t) { gemm_kernel_run_tile(t, n, 2, true); }  \
  static void run_##n##_2(const gemm_tile *t) { gemm_kernel_run_tile(t, n, 2, false); } \
  static void run_##n##_3(const gemm_tile *t) { gemm_kernel_run_halves(t, n); }
#define ENTRY(n) {run_##n##_0, run_##n##_1, run_##n##_2, run_##n##_3},
#if GEMM_ROWS == 14
#define EACH_HEIGHT(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14)
#else
#define EACH_HEIGHT(X) X(1) X(2) X(3) X(4) X(5) X(6)
#endif

EACH_HEIGHT(INSTANCE)

void gemm_tile_run(const gemm_tile *tile, int64_t n_rows) {
  static void (*const instances[GEMM_ROWS][4])(const gemm_tile *) = {EACH_HEIGHT(ENTRY)};
  const int width = (tile->columns > VF_LANES) + (tile->columns > VF_LANES + VF_LANES / 2);
  instances[n_rows - 1][tile->halves != NULL ? 3 : width](tile);
}
