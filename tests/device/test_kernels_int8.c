/* The fast kernels of the int8 products, and of quantize, dequantize and quantize_range. */
#include <math.h>
#include <stdlib.h>

#include "fast.h"
#include "ops/bytes.h"
#include "ops/chain.h"

#define TENSOR(kind, ...)                                                                              \
  {                                                                                                    \
    .type = (kind), .rank = sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), .dim = { __VA_ARGS__ } \
  }

/* Random elements over the whole range of the type, of 8 or 16 bits. */
static fast_operand bytes(berth_type type, uint32_t rank, const int64_t *dim) {
  const double range = type == BERTH_U8 || type == BERTH_I8 ? 256 : 65536;
  const double low = type == BERTH_U8 || type == BERTH_U16 ? 0 : -range / 2;
  fast_operand o = {.type = type, .rank = rank, .low = low, .high = low + range};
  memcpy(o.dim, dim, rank * sizeof *dim);
  return o;
}

static fast_operand byte(berth_type type) { return bytes(type, 0, (const int64_t[]){0}); }

/* A packed weight [rows, columns]; its values are to be freed. */
static fast_operand packed(berth_type type, int64_t rows, int64_t columns, int64_t groups, int64_t panel) {
  const int64_t panels = groups * ((columns / groups + panel - 1) / panel);
  fast_operand o = {.type = BERTH_I8, .rank = 4, .dim = {panels, berth__bytes_groups(rows) + 1, panel, 4}};
  const int64_t count = panels * o.dim[1] * panel * 4;
  uint8_t *w = malloc((size_t)(rows * columns));
  int8_t *made = malloc((size_t)count);
  double *values = malloc((size_t)count * sizeof *values);
  assert_true(w != NULL && made != NULL && values != NULL);
  uint32_t seed = 5;
  for (int64_t i = 0; i < rows * columns; i++) w[i] = (uint8_t)((seed = seed * 1664525u + 1013904223u) >> 24);
  const berth_tensor in = {.data = w, .type = type, .rank = 2, .dim = {rows, columns}, .stride = {columns, 1}};
  berth_tensor out = {.data = made, .type = BERTH_I8, .rank = 4};
  memcpy(out.dim, o.dim, sizeof out.dim);
  berth__contiguous_strides(4, out.dim, out.stride);
  const berth_attr attrs[] = {FAST_INT("panel", panel), FAST_INT("groups", groups)};
  const berth__op *op = berth__op_find(NULL, "pack_weights_i8");
  const berth_op_call call = {
      .in = &in, .out = &out, .n_in = 1, .n_out = 1, .attrs = attrs, .n_attrs = 2, .end = panels};
  berth_error err;
  TEST_OK(op->family->kernel(&call, &err));
  for (int64_t i = 0; i < count; i++) values[i] = made[i];
  free(w);
  free(made);
  o.values = values;
  o.n_values = (uint32_t)count;
  return o;
}

static void free_packed(const fast_case *c) { free((void *)(uintptr_t)c->in[BERTH__BYTES_WEIGHT].values); }

static const fast_operand one_scale = {.type = BERTH_F32, .rank = 0, .low = 0.001, .high = 0.002};

static void add_scales(fast_case *c, int64_t columns, bool each) {
  c->in[BERTH__BYTES_SCALE] = one_scale;
  if (!each) return;
  c->in[BERTH__BYTES_SCALE].rank = 1;
  c->in[BERTH__BYTES_SCALE].dim[0] = columns;
}

/* ---- qproduct ---- */

typedef struct shape {
  int64_t batch, m, k, n;
  fast_layout layout;
  berth_type x, weight;
  bool each;
} shape;

static fast_case product_case(const shape *s, int64_t panel) {
  const int64_t dim[] = {s->batch, s->m, s->k};
  fast_case c = {.op = "qproduct",
                 .in = {bytes(s->x, 3, dim), packed(s->weight, s->k, s->n, 1, panel)},
                 .attrs = {FAST_INT("columns", s->n), FAST_INT("panel", panel),
                           FAST_STRING("weights", berth_type_name(s->weight))}};
  c.in[0].layout = s->layout;
  add_scales(&c, s->n, s->each);
  return c;
}

static void check_zeros_and_types(fast_case *c, const shape *s, const berth__cpu_isa *isa) {
  fast_check_on(c, isa);
  c->in[BERTH__BYTES_X_ZERO] = byte(s->x);
  c->in[BERTH__BYTES_BIAS] = (fast_operand)TENSOR(BERTH_I32, s->n);
  c->in[BERTH__BYTES_BIAS].low = -5000;
  c->in[BERTH__BYTES_BIAS].high = 5000;
  fast_check_on(c, isa);
  c->in[BERTH__BYTES_BIAS] = (fast_operand)TENSOR(BERTH_F32, s->n);
  fast_check_on(c, isa);
  c->in[BERTH__BYTES_WEIGHT_ZERO] = byte(s->weight);
  fast_check_on(c, isa);
  c->in[BERTH__BYTES_WEIGHT_ZERO] = bytes(s->weight, 1, &s->n);
  fast_check_on(c, isa);
  fast_case sums = *c; /* as they are, to the last bit */
  sums.in[BERTH__BYTES_SCALE].type = sums.in[BERTH__BYTES_BIAS].type = BERTH_TYPE_NONE;
  sums.attrs[3] = (berth_attr)FAST_STRING("to", "i32");
  sums.absolute = sums.relative = 0;
  fast_check_on(&sums, isa);
  c->attrs[3] = (berth_attr)FAST_STRING("to", "u8");
  c->attrs[4] = (berth_attr)FAST_FLOAT("out_scale", 0.5);
  c->attrs[5] = (berth_attr)FAST_INT("out_zero", 100);
  fast_check_on(c, isa);
  c->attrs[3] = (berth_attr)FAST_STRING("to", "i8");
  c->attrs[6] = (berth_attr)FAST_INTS("code", BERTH__CHAIN_relu, 0, 0, 0);
  fast_check_on(c, isa);
}

static void products(void **state) {
  static const shape shapes[] = {
      {1, 9, 16, 40, FAST_PLAIN, BERTH_U8, BERTH_I8, false},  {1, 70, 33, 150, FAST_PLAIN, BERTH_I8, BERTH_U8, true},
      {2, 13, 7, 5, FAST_PLAIN, BERTH_U8, BERTH_U8, true},    {1, 1, 300, 33, FAST_PADDED, BERTH_U8, BERTH_I8, true},
      {1, 600, 1, 3, FAST_PLAIN, BERTH_I8, BERTH_I8, false},  {3, 1, 20, 64, FAST_PADDED, BERTH_U8, BERTH_U8, false},
      {1, 2, 30001, 3, FAST_PLAIN, BERTH_I8, BERTH_U8, true},
  };
  const berth__cpu_isa *isa;
  (void)state;
  for (uint32_t i = 0; (isa = berth__cpu_isa_at(i)) != NULL; i++)
    for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++) {
      fast_case c = product_case(&shapes[k], isa->panel);
      check_zeros_and_types(&c, &shapes[k], isa);
      free_packed(&c);
    }
}

/* Every sum at its largest: nothing may saturate on the way. */
static void extremes(void **state) {
  static const double most[] = {255};
  static const shape shapes[] = {{1, 8, 64, 32, FAST_PLAIN, BERTH_U8, BERTH_I8, false},
                                 {1, 1, 65536, 3, FAST_PLAIN, BERTH_U8, BERTH_I8, false},
                                 {1, 17, 32768, 2, FAST_PLAIN, BERTH_U8, BERTH_U8, false}};
  const berth__cpu_isa *isa;
  (void)state;
  for (uint32_t i = 0; (isa = berth__cpu_isa_at(i)) != NULL; i++)
    for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++) {
      fast_case c = product_case(&shapes[k], isa->panel);
      c.in[0].values = most;
      c.in[0].n_values = 1;
      fast_check_on(&c, isa);
      free_packed(&c);
    }
}

static void product_tails(void **state) {
  static const shape s = {2, 70, 24, 90, FAST_PLAIN, BERTH_U8, BERTH_I8, true};
  const berth__cpu_isa *isa;
  (void)state;
  for (uint32_t i = 0; (isa = berth__cpu_isa_at(i)) != NULL; i++) {
    fast_case clamp = product_case(&s, isa->panel), residual = clamp, declined = clamp;
    clamp.attrs[3] = (berth_attr)FAST_INTS("code", BERTH__CHAIN_clamp, 0, 1, 2);
    clamp.attrs[4] = (berth_attr)FAST_FLOATS("numbers", -2, 1.5);
    residual.in[BERTH__BYTES_EXTRA] = (fast_operand)TENSOR(BERTH_F32, 2, 70, 90);
    residual.attrs[3] = (berth_attr)FAST_INTS("code", BERTH__CHAIN_add, 0, 1, 0, BERTH__CHAIN_gelu, 2, 0, 0);
    residual.absolute = residual.relative = 1e-5; /* gelu, in f32 and in f64 */
    fast_check_on(&clamp, isa);
    fast_check_on(&residual, isa);
    residual.attrs[4] = (berth_attr)FAST_INT("adds", 1);
    residual.attrs[3] = (berth_attr)FAST_INTS("code", BERTH__CHAIN_relu, 0, 0, 0);
    fast_check_on(&residual, isa);
    residual.in[BERTH__BYTES_EXTRA + 1] = (fast_operand)TENSOR(BERTH_F32, 90);
    residual.attrs[3] = (berth_attr)FAST_INTS("code", BERTH__CHAIN_mul, 0, 1, 0);
    fast_check_on(&residual, isa);
    declined = clamp; /* bytes after an epilogue that registers do not do */
    declined.attrs[3] = (berth_attr)FAST_INTS("code", BERTH__CHAIN_gelu, 0, 0, 0);
    declined.attrs[4] = (berth_attr)FAST_STRING("to", "u8");
    if (i == 0) assert_false(fast_is_taken(&declined));
    free_packed(&clamp);
  }
}

/* ---- Convolutions ---- */

typedef struct image {
  int64_t n, h, w, c, o, kernel, stride, pad, dilation, group;
  berth_type x, weight;
} image;

static void add_windows(fast_case *c, const image *s, int64_t lists[4][4]) {
  for (int i = 0; i < 4; i++) {
    lists[0][i] = s->kernel;
    lists[1][i] = s->stride;
    lists[2][i] = s->pad;
    lists[3][i] = s->dilation;
  }
  c->attrs[0] = berth_attr_ints("kernel", lists[0], 2);
  c->attrs[1] = berth_attr_ints("strides", lists[1], 2);
  c->attrs[2] = berth_attr_ints("pads", lists[2], 4);
  c->attrs[3] = berth_attr_ints("dilations", lists[3], 2);
}

static void check_bytes_out(fast_case *c, int at, const berth__cpu_isa *isa) {
  fast_check_on(c, isa);
  c->attrs[at] = (berth_attr)FAST_STRING("to", "u8");
  c->attrs[at + 1] = (berth_attr)FAST_FLOAT("out_scale", 0.3);
  c->attrs[at + 2] = (berth_attr)FAST_INT("out_zero", 90);
  fast_check_on(c, isa);
  c->attrs[at] = (berth_attr)FAST_STRING("to", "i8");
  c->attrs[at + 3] = (berth_attr)FAST_INTS("code", BERTH__CHAIN_relu, 0, 0, 0);
  fast_check_on(c, isa);
}

/* Something of the result's shape is added to it, before an epilogue. */
static void check_sum(const fast_case *plain, const image *s, int64_t outputs, int at, const berth__cpu_isa *isa) {
  const int64_t reach = (s->kernel - 1) * s->dilation + 1, h = (s->h + 2 * s->pad - reach) / s->stride + 1,
                w = (s->w + 2 * s->pad - reach) / s->stride + 1;
  fast_case c = *plain;
  c.in[BERTH__BYTES_EXTRA] = (fast_operand)TENSOR(BERTH_F32, s->n, h, w, outputs);
  c.attrs[at] = (berth_attr)FAST_INT("adds", 1);
  fast_check_on(&c, isa);
  c.attrs[at + 1] = (berth_attr)FAST_INTS("code", BERTH__CHAIN_silu, 0, 0, 0);
  c.absolute = c.relative = 1e-5; /* silu, in f32 and in f64 */
  fast_check_on(&c, isa);
}

static void check_conv(const image *s, const berth__cpu_isa *isa) {
  const int64_t x[] = {s->n, s->h, s->w, s->c}, rows = s->kernel * s->kernel * s->c / s->group;
  int64_t lists[4][4];
  fast_case c = {.op = "qconv_last"};
  c.in[0] = bytes(s->x, 4, x);
  c.in[1] = packed(s->weight, rows, s->o, s->group, isa->panel);
  add_scales(&c, s->o, true);
  c.in[BERTH__BYTES_X_ZERO] = byte(s->x);
  if (s->weight == BERTH_U8) c.in[BERTH__BYTES_WEIGHT_ZERO] = byte(s->weight);
  c.in[BERTH__BYTES_BIAS] = (fast_operand)TENSOR(BERTH_F32, s->o);
  add_windows(&c, s, lists);
  c.attrs[4] = (berth_attr)FAST_INT("channels", s->o);
  c.attrs[5] = (berth_attr)FAST_INT("panel", isa->panel);
  c.attrs[6] = (berth_attr)FAST_INT("group", s->group);
  c.attrs[7] = (berth_attr)FAST_STRING("weights", berth_type_name(s->weight));
  check_sum(&c, s, s->o, 8, isa);
  check_bytes_out(&c, 8, isa);
  free_packed(&c);
}

static void convolutions(void **state) {
  static const image images[] = {
      {1, 9, 8, 8, 40, 1, 1, 0, 1, 1, BERTH_U8, BERTH_I8},    {2, 7, 9, 3, 33, 3, 2, 1, 1, 1, BERTH_U8, BERTH_I8},
      {1, 12, 11, 6, 8, 3, 1, 2, 2, 2, BERTH_I8, BERTH_U8},   {1, 5, 5, 4, 5, 5, 1, 2, 1, 1, BERTH_I8, BERTH_I8},
      {2, 6, 7, 4, 70, 1, 2, 0, 1, 1, BERTH_U8, BERTH_U8},    {1, 4, 3, 5, 3, 2, 3, 3, 1, 1, BERTH_U8, BERTH_I8},
      {1, 7, 7, 12, 160, 1, 1, 0, 1, 1, BERTH_U8, BERTH_I8},  {1, 21, 20, 4, 290, 1, 1, 0, 1, 1, BERTH_U8, BERTH_U8},
      {1, 13, 12, 4, 300, 3, 1, 1, 1, 2, BERTH_U8, BERTH_I8},
  };
  const berth__cpu_isa *isa;
  (void)state;
  for (uint32_t i = 0; (isa = berth__cpu_isa_at(i)) != NULL; i++)
    for (size_t k = 0; k < sizeof images / sizeof *images; k++) check_conv(&images[k], isa);
}

static fast_case depthwise_case(const image *s, int64_t lists[4][4]) {
  const int64_t x[] = {s->n, s->h, s->w, s->c}, w[] = {s->kernel, s->kernel, s->c};
  fast_case c = {.op = "qdepthwise"};
  c.in[0] = bytes(s->x, 4, x);
  c.in[1] = bytes(s->weight, 3, w);
  add_scales(&c, s->c, s->c % 2 != 0);
  c.in[BERTH__BYTES_X_ZERO] = byte(s->x);
  c.in[BERTH__BYTES_BIAS] = (fast_operand)TENSOR(BERTH_F32, s->c);
  add_windows(&c, s, lists);
  return c;
}

static void depthwise(void **state) {
  static const image images[] = {
      {1, 9, 8, 64, 0, 3, 1, 1, 1, 0, BERTH_U8, BERTH_I8},  {2, 7, 9, 37, 0, 3, 2, 1, 1, 0, BERTH_U8, BERTH_I8},
      {1, 12, 11, 5, 0, 5, 1, 2, 2, 0, BERTH_I8, BERTH_I8}, {1, 6, 6, 130, 0, 2, 1, 0, 1, 0, BERTH_I8, BERTH_I8},
      {1, 4, 3, 7, 0, 3, 1, 4, 1, 0, BERTH_U8, BERTH_I8},   {1, 3, 70, 16, 0, 3, 1, 1, 1, 0, BERTH_U8, BERTH_I8},
      {1, 5, 4, 300, 0, 3, 1, 1, 1, 0, BERTH_U8, BERTH_I8}, {1, 7, 6, 530, 0, 3, 2, 1, 1, 0, BERTH_I8, BERTH_I8},
      {1, 6, 9, 40, 0, 5, 1, 2, 1, 0, BERTH_U8, BERTH_I8},  {2, 9, 11, 31, 0, 5, 2, 3, 1, 0, BERTH_I8, BERTH_I8},
      {1, 4, 2, 16, 0, 3, 2, 1, 1, 0, BERTH_U8, BERTH_I8},  {1, 8, 5, 24, 0, 5, 2, 4, 1, 0, BERTH_U8, BERTH_I8},
  };
  const berth__cpu_isa *isa;
  int64_t lists[4][4];
  (void)state;
  for (uint32_t i = 0; (isa = berth__cpu_isa_at(i)) != NULL; i++)
    for (size_t k = 0; k < sizeof images / sizeof *images; k++) {
      fast_case c = depthwise_case(&images[k], lists);
      check_sum(&c, &images[k], images[k].c, 4, isa);
      check_bytes_out(&c, 4, isa);
    }
}

/* Bytes that are sums times their scales and nothing else, as files with QDQ have them; and the sums themselves. */
static void depthwise_plain(void **state) {
  static const image images[] = {
      {1, 9, 8, 64, 0, 3, 1, 1, 1, 0, BERTH_U8, BERTH_I8},
      {1, 7, 9, 37, 0, 3, 2, 1, 1, 0, BERTH_I8, BERTH_I8},
      {1, 6, 7, 23, 0, 5, 1, 2, 1, 0, BERTH_U8, BERTH_U8},
      {1, 6, 7, 5, 0, 3, 1, 1, 1, 0, BERTH_U8, BERTH_I8},
  };
  const berth__cpu_isa *isa;
  int64_t lists[4][4];
  (void)state;
  for (uint32_t i = 0; (isa = berth__cpu_isa_at(i)) != NULL; i++)
    for (size_t k = 0; k < sizeof images / sizeof *images; k++) {
      fast_case c = depthwise_case(&images[k], lists);
      c.in[BERTH__BYTES_BIAS] =
          (fast_operand){.type = BERTH_I32, .rank = 1, .dim = {images[k].c}, .low = -30000, .high = 30000};
      c.attrs[4] = (berth_attr)FAST_STRING("to", "u8");
      c.attrs[5] = (berth_attr)FAST_INT("out_zero", 90);
      fast_check_on(&c, isa);
      c.attrs[4] = (berth_attr)FAST_STRING("to", "i8");
      fast_check_on(&c, isa);
      c.attrs[4] = (berth_attr)FAST_STRING("to", "i32");
      c.attrs[5] = (berth_attr){0};
      c.in[BERTH__BYTES_SCALE] = c.in[BERTH__BYTES_BIAS] = (fast_operand){.type = BERTH_TYPE_NONE};
      fast_check_on(&c, isa);
    }
}

/* Weights that do not fit i8, less their zero points: u8, and i8 with one for all channels or one for each. */
static void depthwise_with_zero_points(void **state) {
  static const image images[] = {
      {1, 9, 8, 64, 0, 3, 1, 1, 1, 0, BERTH_U8, BERTH_U8},   {2, 7, 9, 37, 0, 3, 2, 1, 1, 0, BERTH_I8, BERTH_I8},
      {1, 12, 11, 5, 0, 5, 1, 2, 2, 0, BERTH_I8, BERTH_U8},  {1, 3, 40, 16, 0, 3, 1, 1, 1, 0, BERTH_U8, BERTH_I8},
      {1, 14, 13, 9, 0, 11, 1, 5, 1, 0, BERTH_U8, BERTH_U8}, {1, 6, 7, 19, 0, 5, 2, 2, 1, 0, BERTH_U8, BERTH_U8},
  };
  const berth__cpu_isa *isa;
  int64_t lists[4][4];
  (void)state;
  for (uint32_t i = 0; (isa = berth__cpu_isa_at(i)) != NULL; i++)
    for (size_t k = 0; k < sizeof images / sizeof *images; k++)
      for (int zeros = 0; zeros < 3; zeros++) {
        fast_case c = depthwise_case(&images[k], lists);
        if (zeros == 1) c.in[BERTH__BYTES_WEIGHT_ZERO] = byte(images[k].weight);
        if (zeros == 2) c.in[BERTH__BYTES_WEIGHT_ZERO] = bytes(images[k].weight, 1, &images[k].c);
        fast_check_on(&c, isa);
        check_bytes_out(&c, 4, isa);
      }
}

/* Rows that are made into pairs part by part. */
static void long_products(void **state) {
  static const shape shapes[] = {
      {1, 6, 1024, 40, FAST_PLAIN, BERTH_U8, BERTH_I8, false},
      {1, 5, 1029, 70, FAST_PLAIN, BERTH_I8, BERTH_U8, true},
      {1, 3, 2100, 65, FAST_PADDED, BERTH_U8, BERTH_I8, true},
      {1, 1, 3000, 9, FAST_PLAIN, BERTH_U8, BERTH_U8, true},
  };
  const berth__cpu_isa *isa;
  (void)state;
  for (uint32_t i = 0; (isa = berth__cpu_isa_at(i)) != NULL; i++)
    for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++) {
      fast_case c = product_case(&shapes[k], isa->panel);
      fast_check_on(&c, isa);
      c.in[BERTH__BYTES_X_ZERO] = byte(shapes[k].x);
      c.in[BERTH__BYTES_WEIGHT_ZERO] = byte(shapes[k].weight);
      fast_check_on(&c, isa);
      free_packed(&c);
    }
}

/* ---- quantize and dequantize ---- */

/* Entries along several axes of x, with the last of them or without, of fewer axes than x, and rows of few elements. */
static void quantized_by_several_axes(void **state) {
  static const struct {
    int64_t x[4];
    uint32_t rank;
    int64_t entries[4];
  } shapes[] = {{{2, 5, 6, 37}, 3, {5, 1, 37}}, {{2, 5, 6, 37}, 4, {2, 1, 6, 1}}, {{2, 5, 6, 37}, 4, {2, 5, 6, 37}},
                {{2, 5, 6, 3}, 3, {5, 6, 1}},   {{3, 70, 3, 3}, 3, {70, 1, 1}},   {{3, 70, 1, 1}, 4, {3, 70, 1, 1}}};
  static const double scale[] = {0.25, 0.5, 0.03125, 0.3, 0.7};
  static const berth_type types[] = {BERTH_U8, BERTH_I8, BERTH_U16, BERTH_I16};
  (void)state;
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    for (int t = 0; t < 4; t++) {
      fast_operand by = {.type = BERTH_F32, .rank = shapes[i].rank, .values = scale, .n_values = 5};
      memcpy(by.dim, shapes[i].entries, sizeof shapes[i].entries);
      const fast_operand zero = bytes(types[t], by.rank, by.dim);
      fast_case c = {.op = "quantize",
                     .in = {{.type = BERTH_F32, .rank = 4}, by},
                     .attrs = {FAST_STRING("to", berth_type_name(types[t]))}};
      memcpy(c.in[0].dim, shapes[i].x, sizeof shapes[i].x);
      fast_check(&c);
      c.in[2] = zero;
      fast_check(&c);
      fast_check(&(fast_case){.op = "dequantize", .in = {bytes(types[t], 4, shapes[i].x), by}});
      fast_check(&(fast_case){.op = "dequantize", .in = {bytes(types[t], 4, shapes[i].x), by, zero}});
    }
}

static void quantized(void **state) {
  static const double scale[] = {0.25, 0.5, 0.03125};
  static const double odd[] = {1, -0.5, NAN, 0.125, INFINITY, 300, -INFINITY, 0.375, -0.125, 1e30, 7};
  static const berth_type types[] = {BERTH_U8, BERTH_I8, BERTH_U16, BERTH_I16};
  (void)state;
  for (int t = 0; t < 4; t++) {
    fast_case c = {.op = "quantize", .in = {TENSOR(BERTH_F32, 3, 37, 40), TENSOR(BERTH_F32, 1)}};
    c.attrs[0] = (berth_attr)FAST_STRING("to", berth_type_name(types[t]));
    c.in[0].values = odd;
    c.in[0].n_values = 11;
    c.in[1].values = scale;
    c.in[1].n_values = 3;
    fast_check(&c);
    c.in[2] = byte(types[t]);
    fast_check(&c);
    c.in[1].dim[0] = 40; /* along the last axis */
    c.in[2] = bytes(types[t], 1, c.in[1].dim);
    fast_check(&c);
    c.in[1] = (fast_operand)TENSOR(BERTH_F32, 37, 1); /* a row each */
    c.in[1].values = scale;
    c.in[1].n_values = 3;
    c.in[2] = bytes(types[t], 2, c.in[1].dim);
    fast_check(&c);
    for (fast_layout layout = FAST_PADDED; layout <= FAST_STEPPED; layout++) { /* lines */
      c.in[0].layout = layout;
      fast_check(&c);
    }
    c.in[1].rank = 0; /* one scale, and a zero point per element */
    c.in[2] = bytes(types[t], 3, c.in[0].dim);
    fast_check(&c);
  }
}

/* Bytes that lie in other orders, as a transposed view of them does. */
static void dequantized_from_other_layouts(void **state) {
  static const berth_type types[] = {BERTH_U8, BERTH_I8, BERTH_U16, BERTH_I16};
  static const fast_layout layouts[] = {FAST_PADDED, FAST_REVERSED, FAST_REPEATED, FAST_TURNED, FAST_STEPPED};
  static const int64_t shapes[][4] = {{1, 20, 9, 31}, {2, 130, 40, 3}, {3, 1, 5, 2}};
  (void)state;
  for (size_t t = 0; t < 4; t++)
    for (size_t k = 0; k < 5; k++)
      for (size_t i = 0; i < 3; i++) {
        fast_case c = {.op = "dequantize", .in = {bytes(types[t], 4, shapes[i]), {.type = BERTH_F32}}};
        c.in[0].layout = layouts[k];
        fast_check(&c);
        c.in[2] = (fast_operand){.type = types[t]};
        fast_check(&c);
        c.in[1] = (fast_operand){.type = BERTH_F32, .rank = 1, .dim = {shapes[i][3]}}; /* along lines */
        c.in[2] = bytes(types[t], 1, &shapes[i][3]);
        fast_check(&c);
        c.in[1] = (fast_operand){.type = BERTH_F32, .rank = 3, .dim = {shapes[i][1], 1, 1}};
        fast_check(&c);
      }
}

static void dequantized(void **state) {
  static const berth_type types[] = {BERTH_U8, BERTH_I8, BERTH_U16, BERTH_I16};
  static const int64_t dim[] = {3, 37, 40};
  (void)state;
  for (int t = 0; t < 4; t++) {
    fast_case c = {.op = "dequantize", .in = {bytes(types[t], 3, dim), TENSOR(BERTH_F32, 40)}};
    fast_check(&c);
    c.in[2] = bytes(types[t], 1, c.in[1].dim);
    fast_check(&c);
    c.in[1] = (fast_operand)TENSOR(BERTH_F32, 3, 1, 1);
    c.in[2] = bytes(types[t], 3, c.in[1].dim);
    fast_check(&c);
    c.in[1] = (fast_operand){.type = BERTH_F32};
    c.in[2] = byte(types[t]);
    fast_check(&c);
  }
  fast_case i32 = {.op = "dequantize", .in = {TENSOR(BERTH_I32, 5, 7), {.type = BERTH_F32}}};
  i32.in[0].low = -2e9, i32.in[0].high = 2e9;
  fast_check(&i32);
  i32.in[0].layout = FAST_REVERSED;
  fast_check(&i32);
  i32.in[2] = (fast_operand)TENSOR(BERTH_I32, 7);
  i32.in[2].low = -2e9, i32.in[2].high = 2e9;
  for (fast_layout layout = FAST_PLAIN; layout <= FAST_STEPPED; layout++) {
    i32.in[0].layout = layout;
    fast_check(&i32);
  }
}

static void ranges(void **state) {
  static const double odd[] = {1, -0.5, NAN, 0.125}, endless[] = {1, INFINITY, -3};
  (void)state;
  fast_case c = {.op = "quantize_range", .in = {TENSOR(BERTH_F32, 7, 37)}, .n_out = 2};
  fast_check(&c);
  c.in[0].low = 1;
  fast_check(&c);
  c.in[0].values = odd;
  c.in[0].n_values = 4;
  fast_check(&c);
  c.in[0].values = endless;
  c.in[0].n_values = 3;
  fast_check(&c);
}

static void sums(void **state) {
  static const int64_t axes[][2] = {{1, 2}, {0, 2}, {0, 1}, {2, 2}};
  (void)state;
  for (size_t i = 0; i < sizeof axes / sizeof *axes; i++)
    for (int is_signed = 0; is_signed < 2; is_signed++) {
      fast_case c = {
          .op = "reduce_bytes",
          .in = {bytes(is_signed ? BERTH_I8 : BERTH_U8, 3, (const int64_t[]){5, 37, 70})},
          .attrs = {
              {.name = "axes", .kind = BERTH_ATTR_INTS, .ints = axes[i], .count = axes[i][0] == axes[i][1] ? 1 : 2}}};
      fast_check(&c);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(products),
      cmocka_unit_test(extremes),
      cmocka_unit_test(product_tails),
      cmocka_unit_test(convolutions),
      cmocka_unit_test(depthwise),
      cmocka_unit_test(quantized),
      cmocka_unit_test(quantized_by_several_axes),
      cmocka_unit_test(depthwise_plain),
      cmocka_unit_test(depthwise_with_zero_points),
      cmocka_unit_test(long_products),
      cmocka_unit_test(dequantized),
      cmocka_unit_test(dequantized_from_other_layouts),
      cmocka_unit_test(ranges),
      cmocka_unit_test(sums),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
