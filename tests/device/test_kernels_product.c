/* The fast kernels of product, matmul and pack_weights. */
#include <math.h>
#include <stdlib.h>

#include "fast.h"
#include "ops/chain.h"

#define F32(...)                                                                                          \
  {                                                                                                       \
    .type = BERTH_F32, .rank = sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), .dim = { __VA_ARGS__ } \
  }

/* Errors of a sum of k products of numbers up to 3. */
static double tolerance(int64_t k) { return 4e-6 * (double)k + 1e-5; }

/* ---- product with packed weights ---- */

typedef struct packed_shape {
  int64_t batch, m, k, n;
  fast_layout layout; /* of x */
  bool has_bias;
} packed_shape;

static fast_case packed_case(const packed_shape *p, int64_t panel) {
  fast_case c = {.op = "product",
                 .in = {F32(p->batch, p->m, p->k), F32((p->n + panel - 1) / panel, p->k, panel)},
                 .attrs = {FAST_INT("columns", p->n), FAST_INT("panel", panel)},
                 .absolute = tolerance(p->k)};
  c.in[0].layout = p->layout;
  if (p->has_bias) c.in[2] = (fast_operand)F32(p->n);
  return c;
}

static void check_packed(const packed_shape *shapes, size_t n) {
  const berth__cpu_isa *isa;
  for (uint32_t i = 0; (isa = berth__cpu_isa_at(i)) != NULL; i++)
    for (size_t k = 0; k < n; k++) {
      const fast_case c = packed_case(&shapes[k], isa->panel);
      fast_check_on(&c, isa);
    }
}

static void every_height_and_width(void **state) {
  (void)state;
  for (int64_t m = 1; m <= 30; m++) {
    const packed_shape shapes[] = {{1, m, 7, 33 - m, FAST_PLAIN, m % 2 == 0},
                                   {1, m, 3, 32 + m, FAST_PLAIN, m % 2 != 0}};
    check_packed(shapes, 2);
  }
}

static void larger_than_a_block(void **state) {
  static const packed_shape shapes[] = {
      {1, 150, 40, 200, FAST_PLAIN, true},   {1, 1, 300, 1100, FAST_PLAIN, true}, {3, 50, 17, 40, FAST_PADDED, false},
      {2, 70, 33, 300, FAST_REVERSED, true}, {1, 9, 1024, 40, FAST_PLAIN, true},  {1, 3, 5000, 20, FAST_PLAIN, true},
      {1, 90, 1, 5, FAST_PLAIN, false},
  };
  (void)state;
  check_packed(shapes, sizeof shapes / sizeof *shapes);
}

static void nothing_to_sum(void **state) {
  static const packed_shape shapes[] = {{1, 5, 0, 20, FAST_PLAIN, true}, {1, 5, 0, 20, FAST_PLAIN, false}};
  (void)state;
  check_packed(shapes, 2);
}

static void epilogues(void **state) {
  static const packed_shape shape = {2, 70, 24, 90, FAST_PLAIN, true};
  const berth__cpu_isa *isa;
  (void)state;
  for (uint32_t i = 0; (isa = berth__cpu_isa_at(i)) != NULL; i++) {
    fast_case relu = packed_case(&shape, isa->panel), clamp = relu, residual = relu, gelu = relu;
    relu.attrs[2] = (berth_attr)FAST_INTS("code", BERTH__CHAIN_relu, 0, 0, 0);
    clamp.attrs[2] = (berth_attr)FAST_INTS("code", BERTH__CHAIN_clamp, 0, 1, 2);
    clamp.attrs[3] = (berth_attr)FAST_FLOATS("numbers", -2, 1.5);
    gelu.attrs[2] = (berth_attr)FAST_INTS("code", BERTH__CHAIN_gelu, 0, 0, 0);
    residual.in[3] = (fast_operand)F32(2, 70, 90);
    residual.in[4] = (fast_operand)F32(90);
    residual.attrs[2] = (berth_attr)FAST_INTS("code", BERTH__CHAIN_mul, 0, 2, 0, BERTH__CHAIN_add, 3, 1, 0);
    fast_check_on(&relu, isa);
    fast_check_on(&clamp, isa);
    fast_check_on(&gelu, isa);
    fast_check_on(&residual, isa);
  }
}

/* What is added may lie where the result goes. */
static void sums_in_place(void **state) {
  static const packed_shape shapes[] = {{1, 75, 24, 90, FAST_PLAIN, true}, {2, 2, 5000, 33, FAST_PLAIN, false}};
  const berth__cpu_isa *isa;
  (void)state;
  for (uint32_t i = 0; (isa = berth__cpu_isa_at(i)) != NULL; i++)
    for (size_t k = 0; k < 2; k++) {
      fast_case c = packed_case(&shapes[k], isa->panel);
      c.in[3] = (fast_operand)F32(shapes[k].batch, shapes[k].m, shapes[k].n);
      c.attrs[2] = (berth_attr)FAST_INT("adds", 1);
      fast_check_on(&c, isa);
      c.attrs[3] = (berth_attr)FAST_INTS("code", BERTH__CHAIN_relu, 0, 0, 0);
      fast_check_on(&c, isa);
      c.attrs[3] = (berth_attr)FAST_INTS("code", BERTH__CHAIN_tanh, 0, 0, 0);
      fast_check_on(&c, isa);
    }
}

/* A clamp lets NaN through, and infinities come out as they should. */
static void not_numbers(void **state) {
  static const double values[] = {1, -2, INFINITY, 3, NAN, 0.5, -1};
  static const packed_shape shape = {1, 16, 1, 40, FAST_PLAIN, false};
  const berth__cpu_isa *isa;
  (void)state;
  for (uint32_t i = 0; (isa = berth__cpu_isa_at(i)) != NULL; i++) {
    fast_case c = packed_case(&shape, isa->panel);
    c.in[0].values = values;
    c.in[0].n_values = 7;
    fast_check_on(&c, isa);
    c.attrs[2] = (berth_attr)FAST_INTS("code", BERTH__CHAIN_relu, 0, 0, 0);
    fast_check_on(&c, isa);
  }
}

static void what_product_leaves_to_the_reference(void **state) {
  fast_case other_panel = packed_case(&(packed_shape){1, 4, 5, 6, FAST_PLAIN, false}, 5);
  (void)state;
  fast_check_declined(&other_panel);
}

/* ---- product with plain weights, and matmul ---- */

typedef struct plain_shape {
  fast_operand a, b;
} plain_shape;

static const plain_shape plain_shapes[] = {
    {F32(5, 7), F32(7, 9)},
    {F32(1, 70), F32(70, 100)},
    {F32(4, 12), F32(12, 64)},
    {F32(150, 33), F32(33, 70)},
    {F32(3, 90, 17), F32(3, 17, 50)},
    {F32(2, 1, 20, 8), F32(3, 8, 20)},
    {F32(2, 3, 20, 8), F32(2, 1, 8, 20)},
    {F32(4, 20, 8), F32(8, 20)},
    {F32(6, 0), F32(0, 6)},
    {F32(300, 64), F32(64, 40)},
    {F32(90, 21), F32(21, 16)}, /* b is a panel as it lies, on one instruction set or another */
    {F32(2, 30, 9), F32(2, 9, 32)},
    {F32(3, 9), F32(9, 8)},
    {F32(3, 12), F32(12, 48)},
    {F32(203, 3, 5), F32(203, 5, 4)}, /* many small ones */
    {F32(4, 5, 9, 30), F32(4, 5, 30, 20)},
    {F32(2, 7, 16, 64), F32(2, 7, 64, 16)},
    {F32(6, 7, 1, 3), F32(6, 1, 3, 1)},
    {F32(5, 13, 6), F32(5, 6, 8)},
};
#define N_PLAIN (sizeof plain_shapes / sizeof *plain_shapes)
static const fast_layout layouts[] = {FAST_PLAIN, FAST_PADDED, FAST_REVERSED, FAST_REPEATED};
#define N_LAYOUTS (sizeof layouts / sizeof *layouts)

static void check_plain(const plain_shape *shape, fast_layout a, fast_layout b) {
  const int64_t n = shape->b.dim[shape->b.rank - 1], k = shape->a.dim[shape->a.rank - 1];
  fast_case matmul = {.op = "matmul", .in = {shape->a, shape->b}, .absolute = tolerance(k)};
  matmul.in[0].layout = a;
  matmul.in[1].layout = b;
  fast_case product = matmul;
  product.op = "product";
  product.in[2] = (fast_operand)F32(n);
  product.attrs[0] = (berth_attr)FAST_INT("columns", n);
  fast_check(&matmul);
  fast_check(&product);
}

static void every_layout(void **state) {
  (void)state;
  for (size_t i = 0; i < N_PLAIN; i++)
    for (size_t a = 0; a < N_LAYOUTS; a++)
      for (size_t b = 0; b < N_LAYOUTS; b++) check_plain(&plain_shapes[i], layouts[a], layouts[b]);
}

/* Scratch that is planned for upper bounds of rows, of the length of sums, and of columns. */
static void products_of_bounded_extents(void **state) {
  static const berth_type types[] = {BERTH_F32, BERTH_F16};
  const plain_shape shapes[] = {
      {F32(150, 33), F32(33, 70)}, {F32(90, 1100), F32(1100, 40)}, {F32(70, 20), F32(20, 700)}};
  const berth__cpu_isa *isa;
  (void)state;
  for (size_t i = 0; i < 3; i++)
    for (size_t t = 0; t < 2; t++)
      for (fast_layout layout = FAST_PLAIN; layout <= FAST_REVERSED; layout++) {
        fast_case c = {.op = "matmul", .in = {shapes[i].a, shapes[i].b}};
        c.in[0].type = c.in[1].type = types[t];
        c.in[0].layout = layout;
        fast_check_bounds(&c, 0, 0, 1, NULL);
        fast_check_bounds(&c, 1, 1, 1, NULL);
      }
  for (int64_t rows = 1; rows <= 20; rows++)
    for (fast_layout layout = FAST_PLAIN; layout <= FAST_REVERSED; layout++) {
      fast_case c = {.op = "matmul", .in = {F32(rows, 33), F32(33, 70)}};
      c.in[1].layout = layout;
      fast_check_bounds(&c, 0, 0, 1, NULL);
      fast_check_bounds(&c, 1, 1, 1, NULL);
    }
  for (uint32_t i = 0; (isa = berth__cpu_isa_at(i)) != NULL; i++)
    for (size_t t = 0; t < 2; t++) {
      const packed_shape shape = {2, 70, 33, 300, FAST_REVERSED, true};
      fast_case c = packed_case(&shape, isa->panel);
      c.in[0].type = c.in[1].type = c.in[2].type = types[t];
      fast_check_bounds(&c, 0, 0, 1, isa);
      fast_check_bounds(&c, 0, 1, 1, isa);
    }
}

static void lines(void **state) {
  const fast_case cases[] = {{.op = "matmul", .in = {F32(40), F32(40)}, .absolute = tolerance(40)},
                             {.op = "matmul", .in = {F32(40), F32(3, 40, 50)}, .absolute = tolerance(40)},
                             {.op = "matmul", .in = {F32(3, 30, 40), F32(40)}, .absolute = tolerance(40)}};
  (void)state;
  for (size_t i = 0; i < 3; i++) fast_check(&cases[i]);
}

/* a [rows, depth] times b [depth, columns], whose elements lie at these strides; returns the scratch it took. */
static uint64_t multiply(const berth__cpu_isa *isa, const float *a, const float *b, const int64_t *stride,
                         const int64_t *sizes, float *out) {
  const int64_t rows = sizes[0], depth = sizes[1], columns = sizes[2];
  const berth_tensor in[] = {
      {.data = (void *)(uintptr_t)a, .type = BERTH_F32, .rank = 2, .dim = {rows, depth}, .stride = {depth, 1}},
      {.data = (void *)(uintptr_t)b,
       .type = BERTH_F32,
       .rank = 2,
       .dim = {depth, columns},
       .stride = {stride[0], stride[1]}}};
  const berth_tensor to = {.data = out, .type = BERTH_F32, .rank = 2, .dim = {rows, columns}, .stride = {columns, 1}};
  const berth__op *op = berth__op_find(NULL, "matmul");
  berth_op_call call = {.in = in, .out = &to, .n_in = 2, .n_out = 1, .user = berth__op_user(op)};
  const berth__cpu_kernel *kernel = berth__cpu_kernel_find(&(berth__cpu_kernels){.isa = isa}, op, &call);
  berth_error err;
  assert_non_null(kernel);
  const uint64_t size = kernel->scratch(&call);
  call.end = kernel->items(&call);
  call.scratch = aligned_alloc(64, (size / 64 + 1) * 64);
  TEST_OK(kernel->run(&call, &err));
  free(call.scratch);
  return size;
}

/* Options of a plan decide whether a transposed operand is a view or a copy: results have the same bits either way. Few
 * rows need no scratch for it. */
static void a_view_gives_the_bits_of_a_copy(void **state) {
  static const int64_t depths[] = {1, 5, 63, 64, 65, 130, 5000}, widths[] = {1, 7, 16, 33, 100};
  enum {
    MOST = 100 * 5000
  };
  float *a = malloc(20 * 5000 * sizeof *a), *view = malloc(MOST * sizeof *view), *copy = malloc(MOST * sizeof *copy);
  float *got = malloc(20 * 100 * sizeof *got), *want = malloc(20 * 100 * sizeof *want);
  uint64_t seed = 1;
  const berth__cpu_isa *isa;
  (void)state;
  for (size_t i = 0; i < 20 * 5000; i++) a[i] = test_random_f32(&seed);
  for (size_t i = 0; i < MOST; i++) view[i] = test_random_f32(&seed);
  for (uint32_t i = 0; (isa = berth__cpu_isa_at(i)) != NULL; i++)
    for (size_t d = 0; d < sizeof depths / sizeof *depths; d++)
      for (size_t w = 0; w < sizeof widths / sizeof *widths; w++)
        for (int64_t rows = 1; rows <= 20; rows += rows < 7 ? 1 : 6) {
          const int64_t k = depths[d], n = widths[w], sizes[] = {rows, k, n};
          for (int64_t r = 0; r < k; r++)
            for (int64_t c = 0; c < n; c++) copy[r * n + c] = view[c * k + r];
          const uint64_t scratch = multiply(isa, a, view, (int64_t[]){1, k}, sizes, got);
          multiply(isa, a, copy, (int64_t[]){n, 1}, sizes, want);
          assert_memory_equal(got, want, (size_t)(rows * n) * sizeof *got);
          if (rows <= 6) assert_int_equal(scratch, 0);
        }
  free(a);
  free(view);
  free(copy);
  free(got);
  free(want);
}

/* ---- pack_weights ---- */

static void packing(void **state) {
  static const fast_operand weights[] = {F32(20, 70), F32(3, 3, 17, 40), F32(100, 64), F32(2, 5, 8), F32(130, 300)};
  const berth__cpu_isa *isa;
  (void)state;
  for (uint32_t i = 0; (isa = berth__cpu_isa_at(i)) != NULL; i++)
    for (size_t k = 0; k < sizeof weights / sizeof *weights; k++)
      for (int variant = 0; variant < 6; variant++) {
        fast_case c = {.op = "pack_weights",
                       .in = {weights[k]},
                       .attrs = {FAST_INT("panel", isa->panel), FAST_INT("groups", variant < 3 ? 1 : 2)}};
        c.in[0].layout = layouts[variant % 3];
        if (variant >= 3) c.in[1] = (fast_operand)F32(weights[k].dim[weights[k].rank - 1]);
        fast_check_on(&c, isa);
      }
}

/* Numbers below those that are normal come out as 0, from the fast and from the reference kernel; all others stay. */
static void subnormal_weights_become_zero(void **state) {
  float values[] = {1, 1e-40f, -1e-40f, 0x1p-126f, -0x1p-126f, 0x1.fffffcp-127f, INFINITY, 0.5f, -1e-45f};
  const float want[] = {1, 0, 0, 0x1p-126f, -0x1p-126f, 0, INFINITY, 0.5f, 0};
  enum {
    ROWS = 9
  };
  const berth__op *op = berth__op_find(NULL, "pack_weights");
  const berth__cpu_isa *isa;
  berth_error err;
  (void)state;
  for (uint32_t i = 0; (isa = berth__cpu_isa_at(i)) != NULL; i++) {
    float out[ROWS * 64] = {7};
    const berth_tensor in = {.data = values, .type = BERTH_F32, .rank = 2, .dim = {ROWS, 1}, .stride = {1, 1}};
    const berth_tensor to = {.data = out, .type = BERTH_F32, .rank = 3, .dim = {1, ROWS, isa->panel}};
    berth_attr attrs[BERTH_MAX_RANK];
    for (uint32_t k = 0; k < op->family->n_attrs; k++) {
      attrs[k] = op->family->attrs[k];
      if (strcmp(attrs[k].name, "panel") == 0) attrs[k].i = isa->panel;
    }
    berth_op_call call = {.in = &in,
                          .out = &to,
                          .n_in = 1,
                          .n_out = 1,
                          .attrs = attrs,
                          .n_attrs = op->family->n_attrs,
                          .end = 1,
                          .user = berth__op_user(op)};
    const berth__cpu_kernel *kernel = berth__cpu_kernel_find(&(berth__cpu_kernels){.isa = isa}, op, &call);
    assert_non_null(kernel);
    TEST_OK(kernel->run(&call, &err));
    for (size_t row = 0; row < ROWS; row++) assert_true(out[row * isa->panel] == want[row]);
    memset(out, 1, sizeof out);
    TEST_OK(op->family->kernel(&call, &err));
    for (size_t row = 0; row < ROWS; row++) assert_true(out[row * isa->panel] == want[row]);
  }
}

/* Few columns, each of them a run of its own. */
static void narrow_columns(void **state) {
  static const packed_shape shapes[] = {
      {1, 1, 128, 1, FAST_PLAIN, true},     {1, 1, 512, 3, FAST_PLAIN, false},    {1, 2, 33, 4, FAST_PLAIN, true},
      {1, 7, 100, 10, FAST_PADDED, true},   {2, 5, 47, 9, FAST_REVERSED, true},   {1, 90, 65, 1, FAST_PLAIN, true},
      {3, 33, 40, 5, FAST_REVERSED, false}, {1, 4, 3, 16, FAST_PLAIN, false},     {1, 5, 0, 2, FAST_PLAIN, true},
      {1, 3, 1, 2, FAST_PADDED, false},     {1, 2, 5000, 2, FAST_REPEATED, true},
  };
  (void)state;
  for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++) {
    fast_case c = packed_case(&shapes[k], 1);
    fast_check(&c);
    c.attrs[2] = (berth_attr)FAST_INTS("code", BERTH__CHAIN_relu, 0, 0, 0);
    fast_check(&c);
    c.attrs[2] = (berth_attr)FAST_INTS("code", BERTH__CHAIN_sigmoid, 0, 0, 0);
    fast_check(&c);
    c.attrs[3] = (berth_attr)FAST_INT("adds", 1);
    c.in[3] = (fast_operand)F32(shapes[k].batch, shapes[k].m, shapes[k].n);
    fast_check(&c);
    c.in[4] = (fast_operand)F32(shapes[k].n);
    c.attrs[2] = (berth_attr)FAST_INTS("code", BERTH__CHAIN_mul, 0, 1, 0);
    fast_check(&c);
  }
}

static void narrow_not_numbers(void **state) {
  static const double values[] = {1, -2, INFINITY, 3, NAN, 0.5, -1};
  fast_case c = packed_case(&(packed_shape){1, 16, 1, 3, FAST_PLAIN, false}, 1);
  (void)state;
  c.in[0].values = values;
  c.in[0].n_values = 7;
  fast_check(&c);
  c.attrs[2] = (berth_attr)FAST_INTS("code", BERTH__CHAIN_relu, 0, 0, 0);
  fast_check(&c);
}

/* Weights of bytes and of halves, with zero points and scales of all columns or of each, in panels of any width that
 * there is. */
static void packing_bytes_and_halves(void **state) {
  static const fast_operand weights[] = {F32(20, 70), F32(3, 3, 17, 40), F32(101, 3), F32(130, 30)};
  static const berth_type types[] = {BERTH_I8, BERTH_U8, BERTH_F16, BERTH_BF16, BERTH_F32};
  const berth__cpu_isa *isa;
  (void)state;
  for (uint32_t i = 0; (isa = berth__cpu_isa_at(i)) != NULL; i++)
    for (size_t k = 0; k < sizeof weights / sizeof *weights * 5; k++)
      for (int variant = 0; variant < 6; variant++) {
        const fast_operand *weight = &weights[k / 5];
        const int64_t columns = weight->dim[weight->rank - 1];
        fast_case c = {
            .op = "pack_weights", .in = {*weight}, .attrs = {FAST_INT("panel", variant % 2 ? 1 : isa->panel)}};
        c.in[0].type = types[k % 5];
        c.in[0].layout = layouts[variant / 2];
        if (variant > 1) c.in[1] = (fast_operand)F32(variant > 3 ? columns : 1);
        if (variant > 1 && k % 5 < 2) c.in[2] = (fast_operand)F32(variant > 3 ? columns : 1);
        if (variant > 1 && k % 5 < 2) c.in[2].type = types[k % 5];
        fast_check_on(&c, isa);
      }
}

/* For weights of 16 bits. */
static const packed_shape narrow_shapes[] = {{1, 1, 64, 70, FAST_PLAIN, true},    {1, 75, 24, 90, FAST_PLAIN, true},
                                             {2, 2, 501, 33, FAST_PADDED, false}, {3, 9, 7, 150, FAST_REVERSED, true},
                                             {1, 130, 33, 5, FAST_PLAIN, false},  {1, 5, 0, 40, FAST_PLAIN, true}};

/* Weights of bf16, and x rounded to it or not. */
static void bf16_weights(void **state) {
  const berth__cpu_isa *isa;
  (void)state;
  for (uint32_t i = 0; (isa = berth__cpu_isa_at(i)) != NULL; i++)
    for (size_t k = 0; k < sizeof narrow_shapes / sizeof *narrow_shapes; k++) {
      const packed_shape *s = &narrow_shapes[k];
      fast_case c = packed_case(s, isa->panel);
      c.in[1] = (fast_operand){
          .type = BERTH_BF16, .rank = 4, .dim = {(s->n + isa->panel - 1) / isa->panel, (s->k + 1) / 2, isa->panel, 2}};
      fast_check_on(&c, isa);
      c.attrs[2] = (berth_attr)FAST_INT("rounds", 1);
      fast_check_on(&c, isa);
      c.attrs[3] = (berth_attr)FAST_INTS("code", BERTH__CHAIN_relu, 0, 0, 0);
      c.attrs[4] = (berth_attr)FAST_INT("adds", 1);
      c.in[3] = (fast_operand)F32(s->batch, s->m, s->n);
      fast_check_on(&c, isa);
      c.attrs[3] = (berth_attr)FAST_INTS("code", BERTH__CHAIN_mul, 0, 1, 0, BERTH__CHAIN_gelu, 2, 0, 0);
      c.in[4] = (fast_operand)F32(s->m, s->n);
      fast_check_on(&c, isa);
    }
}

static void f16_weights(void **state) {
  const berth__cpu_isa *isa;
  (void)state;
  for (uint32_t i = 0; (isa = berth__cpu_isa_at(i)) != NULL; i++)
    for (size_t k = 0; k < sizeof narrow_shapes / sizeof *narrow_shapes; k++) {
      const packed_shape *s = &narrow_shapes[k];
      fast_case c = packed_case(s, isa->panel);
      c.in[1] =
          (fast_operand){.type = BERTH_F16, .rank = 3, .dim = {(s->n + isa->panel - 1) / isa->panel, s->k, isa->panel}};
      fast_check_on(&c, isa);
      c.attrs[2] = (berth_attr)FAST_INTS("code", BERTH__CHAIN_mul, 0, 1, 0, BERTH__CHAIN_gelu, 2, 0, 0);
      c.in[3] = (fast_operand)F32(s->m, s->n);
      fast_check_on(&c, isa);
    }
}

static void packing_as_f16(void **state) {
  static const fast_operand weights[] = {F32(20, 70), F32(3, 3, 17, 40), F32(101, 64), F32(131, 300)};
  const berth__cpu_isa *isa;
  (void)state;
  for (uint32_t i = 0; (isa = berth__cpu_isa_at(i)) != NULL; i++)
    for (size_t k = 0; k < sizeof weights / sizeof *weights; k++)
      for (int variant = 0; variant < 3; variant++) {
        fast_case c = {.op = "pack_weights",
                       .in = {weights[k]},
                       .attrs = {FAST_INT("panel", isa->panel), FAST_STRING("to", "f16")}};
        c.in[0].layout = layouts[variant];
        fast_check_on(&c, isa);
      }
}

static void packing_as_bf16(void **state) {
  static const fast_operand weights[] = {F32(20, 70), F32(3, 3, 17, 40), F32(101, 64), F32(2, 5, 8), F32(131, 300)};
  const berth__cpu_isa *isa;
  (void)state;
  for (uint32_t i = 0; (isa = berth__cpu_isa_at(i)) != NULL; i++)
    for (size_t k = 0; k < sizeof weights / sizeof *weights; k++)
      for (int variant = 0; variant < 6; variant++) {
        fast_case c = {.op = "pack_weights",
                       .in = {weights[k]},
                       .attrs = {FAST_INT("panel", isa->panel), FAST_INT("groups", variant < 3 ? 1 : 2),
                                 FAST_STRING("to", "bf16")}};
        c.in[0].layout = layouts[variant % 3];
        if (variant >= 3) { /* rounded twice */
          c.in[1] = (fast_operand)F32(weights[k].dim[weights[k].rank - 1]);
          c.relative = 0.008;
        }
        fast_check_on(&c, isa);
      }
}

/* ---- Weights in blocks: x becomes bytes, so that results differ by what that rounds ---- */

static const berth_type block_types[] = {BERTH_Q8_0,  BERTH_Q4_0,    BERTH_Q4_1,   BERTH_Q5_0,    BERTH_Q5_1,
                                         BERTH_Q2_K,  BERTH_Q3_K,    BERTH_Q4_K,   BERTH_Q5_K,    BERTH_Q6_K,
                                         BERTH_MXFP4, BERTH_IQ4_NL,  BERTH_IQ4_XS, BERTH_IQ2_XXS, BERTH_IQ2_XS,
                                         BERTH_IQ2_S, BERTH_IQ3_XXS, BERTH_IQ3_S,  BERTH_Q4_0F,   BERTH_Q4_1F};

/* x of up to 3: an element is rounded by up to 3 / 254, at random. Weights are about 1. */
static double blocks_tolerance(int64_t k) { return 0.03 * sqrt((double)k); }

static fast_case blocks_case(berth_type type, int64_t m, int64_t k, int64_t n) {
  fast_case c = {.op = "product",
                 .in = {F32(m, k), {.type = type, .rank = 2, .dim = {n, k}}},
                 .attrs = {FAST_INT("columns", n)},
                 .absolute = blocks_tolerance(k)};
  return c;
}

static void weights_in_blocks(void **state) {
  (void)state;
  for (size_t t = 0; t < sizeof block_types / sizeof *block_types; t++) {
    const int64_t depth = berth_type_storage(block_types[t]).elements == 32 ? 416 : 512; /* 8 blocks and 5 */
    for (int64_t m = 1; m <= 6; m++) {
      fast_case c = blocks_case(block_types[t], m, depth, m == 1 ? 37 : 11 * m);
      if (m % 2 == 0) c.in[2] = (fast_operand)F32(11 * m);
      if (m % 3 == 0) c.in[0].layout = FAST_PADDED;
      if (m == 5) c.in[0].layout = FAST_REVERSED;
      fast_check(&c);
    }
    const fast_case chunks = blocks_case(block_types[t], 70, 256, 5);
    fast_check(&chunks);
  }
}

/* With `exact`, x is not rounded: only sums of f32 differ. */
static void exact_products_of_blocks(void **state) {
  (void)state;
  for (size_t t = 0; t < sizeof block_types / sizeof *block_types; t++) {
    const int64_t depth = berth_type_storage(block_types[t]).elements == 32 ? 416 : 512;
    for (int64_t m = 1; m <= 21; m += m < 6 ? 1 : 15) {
      fast_case c = blocks_case(block_types[t], m, depth, m == 1 ? 37 : 11 * m);
      c.attrs[1] = (berth_attr)FAST_INT("exact", 1);
      c.absolute = 1e-3; /* of sums up to 400 */
      if (m % 2 == 0) c.in[2] = (fast_operand)F32(11 * m);
      if (m % 3 == 0) c.in[0].layout = FAST_PADDED;
      if (m == 5) c.in[0].layout = FAST_REVERSED;
      fast_check(&c);
    }
    fast_case chunks = blocks_case(block_types[t], 70, 256, 5);
    chunks.attrs[1] = (berth_attr)FAST_INT("exact", 1);
    chunks.absolute = 1e-3;
    fast_check(&chunks);
  }
}

/* The integers are exact: x of whole numbers that bytes hold, and the sums are those of the reference kernel. */
static void bytes_in_blocks_are_exact(void **state) {
  static const double whole[] = {127, -3, 5, 0, -127, 64, 1, -99, 12, 33, -8};
  (void)state;
  for (size_t t = 0; t < sizeof block_types / sizeof *block_types; t++)
    for (int64_t m = 1; m <= 5; m += 4) {
      fast_case c = blocks_case(block_types[t], m, 256, 20);
      c.in[0].values = whole; /* every 32 of them have 127 */
      c.in[0].n_values = sizeof whole / sizeof *whole;
      c.absolute = 0.01; /* of sums of f32 up to 20,000 */
      fast_check(&c);
      c = blocks_case(block_types[t], m, 1280, 3); /* two slices and a half */
      c.in[0].values = whole;
      c.in[0].n_values = sizeof whole / sizeof *whole;
      c.absolute = 0.1;
      fast_check(&c);
    }
}

static void blocks_with_epilogues(void **state) {
  (void)state;
  for (int64_t m = 1; m <= 5; m += 4) {
    fast_case c = blocks_case(BERTH_Q4_K, m, 256, 24);
    c.in[3] = (fast_operand)F32(m, 24);
    c.attrs[1] = (berth_attr)FAST_INT("adds", 1);
    c.attrs[2] = (berth_attr)FAST_INTS("code", BERTH__CHAIN_relu, 0, -1, -1);
    fast_check(&c);
  }
}

static void experts_in_blocks(void **state) {
  static const double which[] = {0, 2, 2, 1, 0, 2, 2, 2, 1};
  static const int64_t rows[] = {1, 3, 4, 21};
  (void)state;
  for (size_t t = 0; t < sizeof block_types / sizeof *block_types; t++)
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
      const int64_t m = rows[i];
      fast_case c = {.op = "expert_matmul",
                     .in = {F32(m, 256),
                            {.type = block_types[t], .rank = 3, .dim = {4, 21, 256}},
                            {.type = BERTH_I32, .rank = 2, .dim = {m, 2}, .values = which, .n_values = 9}},
                     .absolute = blocks_tolerance(256)};
      if (i % 2 == 1) c.in[0] = (fast_operand)F32(m, 2, 256);
      fast_check(&c);
    }
}

static void not_numbers_in_x_are_not_lost(void **state) {
  static const double odd[] = {1, 2, NAN, 4, 5, 6, 7, 8};
  (void)state;
  for (int64_t m = 1; m <= 5; m += 4) {
    fast_case c = blocks_case(BERTH_Q8_0, m, 64, 9);
    c.in[0].values = odd;
    c.in[0].n_values = 8;
    fast_check(&c);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_height_and_width),
      cmocka_unit_test(larger_than_a_block),
      cmocka_unit_test(products_of_bounded_extents),
      cmocka_unit_test(nothing_to_sum),
      cmocka_unit_test(epilogues),
      cmocka_unit_test(sums_in_place),
      cmocka_unit_test(not_numbers),
      cmocka_unit_test(what_product_leaves_to_the_reference),
      cmocka_unit_test(every_layout),
      cmocka_unit_test(lines),
      cmocka_unit_test(a_view_gives_the_bits_of_a_copy),
      cmocka_unit_test(packing),
      cmocka_unit_test(subnormal_weights_become_zero),
      cmocka_unit_test(packing_bytes_and_halves),
      cmocka_unit_test(narrow_columns),
      cmocka_unit_test(narrow_not_numbers),
      cmocka_unit_test(bf16_weights),
      cmocka_unit_test(packing_as_bf16),
      cmocka_unit_test(weights_in_blocks),
      cmocka_unit_test(exact_products_of_blocks),
      cmocka_unit_test(bytes_in_blocks_are_exact),
      cmocka_unit_test(blocks_with_epilogues),
      cmocka_unit_test(experts_in_blocks),
      cmocka_unit_test(not_numbers_in_x_are_not_lost),
      cmocka_unit_test(f16_weights),
      cmocka_unit_test(packing_as_f16),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
