/* The functions of a line for one element type; line.c includes it once per type, with
 *   NAME      the suffix of the functions
 *   ELEMENT   the type in memory
 *   SUM       the type of an accumulator
 *   LOAD(e)   an element as SUM
 *   STORE(s)  a sum as ELEMENT */
#define JOIN_(a, b) a##_##b
#define JOIN(a, b) JOIN_(a, b)

static void JOIN(start, NAME)(void *sum, const void *first, int64_t n) {
  SUM *s = sum;
  const SUM value = first ? LOAD(*(const ELEMENT *)first) : 0;
  for (int64_t i = 0; i < n; i++) s[i] = value;
}

static void JOIN(store, NAME)(void *out, const void *sum, int64_t n) {
  const SUM *s = sum;
  ELEMENT *o = out;
  for (int64_t i = 0; i < n; i++) o[i] = STORE(s[i]);
}

/* Contiguous elements, four rows at a time: a sum is read and written once for four products. */
static void JOIN(add_four, NAME)(SUM *restrict s, const SUM *f, const ELEMENT *restrict x, int64_t row_stride,
                                 int64_t n) {
  const ELEMENT *x1 = x + row_stride, *x2 = x1 + row_stride, *x3 = x2 + row_stride;
  const SUM f0 = f[0], f1 = f[1], f2 = f[2], f3 = f[3];
  for (int64_t i = 0; i < n; i++) {
    SUM t = s[i] + f0 * LOAD(x[i]);
    t += f1 * LOAD(x1[i]);
    t += f2 * LOAD(x2[i]);
    s[i] = t + f3 * LOAD(x3[i]);
  }
}

/* Contiguous rows (a transposed matrix): four sums at a time, so that none waits for another. */
static void JOIN(add_columns, NAME)(SUM *s, const ELEMENT *f, int64_t factor_stride, const ELEMENT *x, int64_t x_stride,
                                    int64_t rows, int64_t n) {
  int64_t i = 0;
  for (; i + 4 <= n; i += 4) {
    const ELEMENT *x0 = x + i * x_stride, *x1 = x0 + x_stride, *x2 = x1 + x_stride, *x3 = x2 + x_stride;
    SUM t0 = s[i], t1 = s[i + 1], t2 = s[i + 2], t3 = s[i + 3];
    for (int64_t row = 0; row < rows; row++) {
      const SUM factor = LOAD(f[row * factor_stride]);
      t0 += factor * LOAD(x0[row]);
      t1 += factor * LOAD(x1[row]);
      t2 += factor * LOAD(x2[row]);
      t3 += factor * LOAD(x3[row]);
    }
    s[i] = t0, s[i + 1] = t1, s[i + 2] = t2, s[i + 3] = t3;
  }
  for (; i < n; i++)
    for (int64_t row = 0; row < rows; row++) s[i] += LOAD(f[row * factor_stride]) * LOAD(x[i * x_stride + row]);
}

static void JOIN(add_rows, NAME)(void *sum, int64_t sum_stride, const void *factor, int64_t factor_stride,
                                 const void *data, int64_t row_stride, int64_t x_stride, int64_t rows, int64_t n) {
  SUM *s = sum;
  const ELEMENT *f = factor, *x = data;
  if (sum_stride == 1 && row_stride == 1 && x_stride != 1) {
    JOIN(add_columns, NAME)(s, f, factor_stride, x, x_stride, rows, n);
    return;
  }
  int64_t row = 0;
  if (sum_stride == 1 && x_stride == 1) {
    for (; row + 4 <= rows; row += 4) {
      const ELEMENT *at = f + row * factor_stride;
      const SUM four[4] = {LOAD(at[0]), LOAD(at[factor_stride]), LOAD(at[2 * factor_stride]),
                           LOAD(at[3 * factor_stride])};
      JOIN(add_four, NAME)(s, four, x + row * row_stride, row_stride, n);
    }
  }
  for (; row < rows; row++) {
    const SUM by = LOAD(f[row * factor_stride]);
    const ELEMENT *at = x + row * row_stride;
    for (int64_t i = 0; i < n; i++) s[i * sum_stride] += by * LOAD(at[i * x_stride]);
  }
}

static const berth__line_ops JOIN(line, NAME) = {JOIN(start, NAME), JOIN(add_rows, NAME), JOIN(store, NAME)};

#undef JOIN
#undef JOIN_
#undef NAME
#undef ELEMENT
#undef SUM
#undef LOAD
#undef STORE
