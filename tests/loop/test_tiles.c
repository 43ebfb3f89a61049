/* Products, convolutions, attention and recurrent layers in every form that limits may choose, at sizes that are no
 * multiple of anything, against the reference kernels. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "graph/graph.h"
#include "loop/lower.h"
#include "run.h"

static const berth__loop_limits large = {.group_size = 256, .lanes = 32, .shared_bytes = 32768, .shares_well = true};
static const berth__loop_limits small = {.group_size = 64, .lanes = 8, .shared_bytes = 4096, .shares_well = true};
static const berth__loop_limits least = {.group_size = 32, .lanes = 32, .shared_bytes = 0, .shares_well = true};
static const berth__loop_limits plain = {.group_size = 1024, .lanes = 8, .shared_bytes = 32768, .shares_well = false};

/* ---- One call of one op ---- */

#define MAX_TENSORS 12

typedef struct call {
  berth_context *ctx;
  berth_graph *graph;
  const berth__node *node;
  berth_op_call op;
  berth_tensor tensors[MAX_TENSORS];
  uint32_t *words[MAX_TENSORS]; /* as they lie in an arena of 32 bits an element */
} call;

static berth_tensor tensor_of(const berth__value *value) {
  berth_tensor tensor = {.type = value->type, .rank = value->shape.rank};
  memcpy(tensor.dim, value->shape.dim, sizeof tensor.dim);
  berth__contiguous_strides(tensor.rank, tensor.dim, tensor.stride);
  tensor.data = calloc((size_t)berth__count(&tensor) + 1, 8);
  assert_non_null(tensor.data);
  return tensor;
}

/* Small integers where they are integers; for lengths something in reach. */
static void fill(const berth_tensor *tensor, uint32_t *words, uint64_t *seed) {
  const bool is_float = berth__l_number(tensor->type) == BERTH__NUM_F32;
  for (int64_t i = 0; i < berth__count(tensor); i++) {
    const float value = test_random_f32(seed);
    const int64_t whole = (int64_t)(test_random(seed) % 5);
    if (is_float)
      berth__store_f64(tensor, i, value);
    else
      berth__store_i64(tensor, i, tensor->type == BERTH_BOOL ? whole > 1 : whole);
    const int32_t number = (int32_t)berth__load_i64(tensor, i);
    memcpy(&words[i], is_float ? (const void *)&value : (const void *)&number, 4);
  }
}

static void open_call(call *c, const char *text) {
  berth_error err;
  uint64_t seed = 7;
  *c = (call){.ctx = test_context()};
  TEST_OK(berth_graph_parse(c->ctx, text, strlen(text), &c->graph, &err));
  assert_int_equal(c->graph->n_nodes, 1);
  c->node = &c->graph->nodes[0];
  const uint32_t count = c->node->n_in + c->node->n_out;
  assert_true(count <= MAX_TENSORS);
  for (uint32_t i = 0; i < count; i++) {
    const berth_value value = i < c->node->n_in ? c->node->in[i] : c->node->out[i - c->node->n_in];
    if (value == BERTH_VALUE_NONE) continue;
    c->tensors[i] = tensor_of(&c->graph->values[value]);
    c->words[i] = calloc((size_t)berth__count(&c->tensors[i]) + 1, 4);
    assert_non_null(c->words[i]);
    if (i < c->node->n_in) fill(&c->tensors[i], c->words[i], &seed);
  }
  c->op = (berth_op_call){.in = c->tensors,
                          .out = c->tensors + c->node->n_in,
                          .n_in = c->node->n_in,
                          .n_out = c->node->n_out,
                          .attrs = c->node->attrs,
                          .n_attrs = c->node->op->family->n_attrs,
                          .user = berth__op_user(c->node->op)};
}

static void close_call(call *c) {
  for (uint32_t i = 0; i < MAX_TENSORS; i++) {
    free(c->tensors[i].data);
    free(c->words[i]);
  }
  berth_graph_destroy(c->graph);
  berth_context_destroy(c->ctx);
}

static void run_reference(call *c) {
  const berth__family *family = c->node->op->family;
  berth_error err;
  c->op.end = berth__op_items(c->node->op, &c->op);
  c->op.scratch = family->scratch != NULL ? aligned_alloc(64, (family->scratch(&c->op) / 64 + 1) * 64) : NULL;
  if (c->op.end > 0) TEST_OK(family->kernel(&c->op, &err));
  free(c->op.scratch);
  c->op.scratch = NULL;
}

/* ---- Its kernels ---- */

static void run_kernels(call *c, const berth__lowering *l, uint32_t *scratch, uint64_t scratch_count) {
  berth_error err;
  for (size_t n = 0; n < l->n_kernels; n++) {
    const berth__kernel *k = l->kernels[n];
    uint32_t *words[BERTH__KERNEL_BUFFERS];
    uint64_t counts[BERTH__KERNEL_BUFFERS];
    for (uint32_t i = 0; i < k->n_buffers; i++) {
      const uint32_t operand = k->buffers[i].operand;
      const bool is_scratch = operand == BERTH__OPERAND_SCRATCH;
      words[i] = is_scratch ? scratch : c->words[operand];
      counts[i] = is_scratch ? scratch_count : (uint64_t)berth__count(&c->tensors[operand]);
    }
    TEST_OK(run_kernel(k, words, counts, &err));
    assert_true(k->bytes > 0);
  }
}

static void compare(const call *c, double tolerance) {
  for (uint32_t o = 0; o < c->op.n_out; o++) {
    const berth_tensor *out = &c->op.out[o];
    const bool is_float = berth__l_number(out->type) == BERTH__NUM_F32;
    for (int64_t i = 0; i < berth__count(out); i++) {
      float number;
      int32_t whole;
      memcpy(&number, &c->words[c->op.n_in + o][i], 4);
      memcpy(&whole, &number, 4);
      const double want = berth__load_f64(out, i), got = is_float ? (double)number : (double)whole;
      if (fabs(want - got) > tolerance * (1 + fabs(want)))
        fail_msg("result %u, element %lld: %g, expected %g", o, (long long)i, got, want);
    }
  }
}

/* `form`: in the name of a kernel that must be there; NULL: any will do. */
static void check(const char *text, const berth__loop_limits *limits, const char *form, double tolerance) {
  call c;
  berth_error err;
  bool found = form == NULL;
  open_call(&c, text);
  run_reference(&c);
  berth__lowering l = {.ctx = c.ctx, .limits = limits, .op = c.node->op, .call = &c.op};
  TEST_OK(berth__lower_call(&l, &err));
  const uint64_t scratch_count = berth__lower_scratch(c.node->op, &c.op, limits) / 4;
  uint32_t *scratch = calloc((size_t)scratch_count + 1, 4);
  assert_non_null(scratch);
  run_kernels(&c, &l, scratch, scratch_count);
  for (size_t i = 0; i < l.n_kernels; i++) {
    found = found || strstr(l.kernels[i]->name, form) != NULL;
    assert_true(l.kernels[i]->group_size <= limits->group_size);
  }
  if (!found) fail_msg("no kernel '%s' for %s", form, text);
  compare(&c, tolerance);
  free(scratch);
  berth__lowering_free(&l);
  close_call(&c);
}

static void check_all(const char *text, const char *form_on_large, double tolerance) {
  check(text, &large, form_on_large, tolerance);
  check(text, &small, NULL, tolerance);
  check(text, &least, NULL, tolerance);
  check(text, &plain, NULL, tolerance);
}

#define TWO(a, b) "graph \"g\" { input %a : " a " input %b : " b " "
#define THREE(a, b, c) TWO(a, b) "input %c : " c " "
#define OUT " output \"o\" = %o }"

/* ---- Tests ---- */

static void products(void **state) {
  (void)state;
  check_all(TWO("f32[70, 37]", "f32[37, 69]") "%o = matmul(%a, %b)" OUT, "tiled", 1e-5);
  check_all(TWO("f32[3, 33, 64]", "f32[64, 40]") "%o = matmul(%a, %b)" OUT, "tiled", 1e-5);
  check_all(TWO("f32[2, 1, 20, 35]", "f32[3, 35, 19]") "%o = matmul(%a, %b)" OUT, "tiled", 1e-5);
  check_all(TWO("i32[40, 33]", "i32[33, 40]") "%o = matmul(%a, %b)" OUT, "tiled", 0);
  check_all(TWO("u8[40, 33]", "u8[33, 40]") "%o = matmul(%a, %b)" OUT, "tiled", 0);
  check_all(TWO("f32[300, 40]", "f32[40, 260]") "%o = matmul(%a, %b)" OUT, "tiled", 1e-5);
}

static void long_sums(void **state) {
  (void)state;
  check_all(TWO("f32[1, 300]", "f32[300, 70]") "%o = matmul(%a, %b)" OUT, "split", 1e-4);
  check_all(TWO("f32[300]", "f32[300]") "%o = matmul(%a, %b)" OUT, "split", 1e-4);
  check_all(TWO("f32[45, 300]", "f32[300]") "%o = matmul(%a, %b)" OUT, "split", 1e-4);
  check_all(TWO("f32[5, 2100]", "f32[2100, 3]") "%o = matmul(%a, %b)" OUT, "split", 1e-4);
  check(TWO("f32[1, 2100]", "f32[2100, 3]") "%o = matmul(%a, %b)" OUT, &plain, "split", 1e-4);
}

static void tails(void **state) {
  (void)state;
  check_all(THREE("f32[2, 20, 33]", "f32[33, 24]", "f32[24]") "input %d : f32[20, 1] %o = product(%a, %b, %c, %d) "
            "{columns = 24, code = [1, 0, 1, 0, 22, 2, 0, 0]}" OUT, "tiled", 1e-5);
  check_all(TWO("f32[1, 2, 90]", "f32[4, 90, 8]") "%o = product(%a, %b) {columns = 27, panel = 8}" OUT, "split", 1e-4);
  check_all(THREE("f32[3, 40, 50]", "f32[3, 50, 16]",
                  "f32[3, 40, 16]") "%o = product(%a, %b, _, %c) {columns = 16, adds = 1}" OUT,
            "tiled", 1e-5);
}

static void convolutions(void **state) {
  (void)state;
  check_all(THREE("f32[2, 5, 11, 13]", "f32[18, 5, 3, 3]",
                  "f32[18]") "%o = conv(%a, %b, %c) {pads = [1, 2, 1, 0], strides = [2, 1], code = [22, 0, 0, 0]}" OUT,
            "tiled", 1e-5);
  check_all(TWO("f32[1, 24, 9, 9]", "f32[24, 1, 3, 3]") "%o = conv(%a, %b) {pads = [1, 1, 1, 1], group = 24}" OUT, NULL,
            1e-5);
  check_all(TWO("f32[1, 12, 70]", "f32[20, 6, 7]") "%o = conv(%a, %b) {dilations = [3], group = 2}" OUT, "tiled", 1e-5);
  check_all(TWO("i32[1, 4, 3, 6, 6]", "i32[9, 4, 2, 3, 3]") "%o = conv(%a, %b) {pads = [1, 1, 1, 0, 1, 1]}" OUT,
            "tiled", 0);
  check_all(TWO("f32[1, 64, 9, 9]", "f32[2, 64, 3, 3]") "%o = conv(%a, %b)" OUT, "split", 1e-4);
  check_all(TWO("f32[1, 6, 7, 8]",
                "f32[6, 10, 3, 3]") "%o = conv_transpose(%a, %b) {strides = [2, 2], pads = [1, 0, 0, 1]}" OUT,
            "tiled", 1e-5);
}

static void attentions(void **state) {
  (void)state;
#define QKV(q, k, v) THREE(q, k, v)
  check_all(QKV("f32[2, 3, 37, 20]", "f32[2, 3, 37, 20]", "f32[2, 3, 37, 20]") "%o = attention(%a, %b, %c)" OUT,
            "tiled", 1e-5);
  check_all(QKV("f32[1, 4, 19, 8]", "f32[1, 2, 45, 8]",
                "f32[1, 2, 45, 40]") "%o = attention(%a, %b, %c) {mode = \"causal\"}" OUT,
            "tiled", 1e-5);
  check_all(QKV("f32[2, 6, 1, 33]", "f32[2, 2, 70, 33]",
                "f32[2, 2, 70, 33]") "%o = attention(%a, %b, %c) {mode = \"causal\"}" OUT,
            "tiled", 1e-5);
  check_all(QKV("f32[1, 6, 3, 16]", "f32[1, 2, 50, 16]",
                "f32[1, 2, 50, 16]") "%o = attention(%a, %b, %c) {mode = \"sliding_window\", window = 9}" OUT,
            "tiled", 1e-5);
  check_all(QKV("f32[1, 40, 24]", "f32[1, 40, 24]", "f32[1, 40, 24]")
            "input %m : bool[1, 1, 40, 40] input %e : f32[3, 40, 40] %o = attention(%a, %b, %c, %m, %e) {heads = 3}" OUT,
            "tiled", 1e-5);
}

static void recurrences(void **state) {
  (void)state;
#define LAYER(gates, d) "graph \"g\" { input %a : f32[4, 3, 10] input %b : f32[" d ", " gates ", 10] "
  check_all(LAYER("160", "2") "input %c : f32[2, 160, 40] input %d : f32[2, 320] input %e : i32[3] "
            "%o, %h, %s = lstm(%a, %b, %c, %d, %e) {direction = \"bidirectional\"}" OUT, "steps", 1e-5);
  check_all(LAYER("105", "1") "input %c : f32[1, 105, 35] input %d : f32[1, 210] "
            "%o, %h = gru(%a, %b, %c, %d) {direction = \"reverse\"}" OUT, "steps", 1e-5);
  check_all(LAYER("105", "1") "input %c : f32[1, 105, 35] input %d : f32[1, 210] "
            "%o, %h = gru(%a, %b, %c, %d) {linear_before_reset = 1}" OUT, "steps", 1e-5);
  check_all(LAYER("300", "1") "input %c : f32[1, 300, 300] %o, %h = rnn(%a, %b, %c)" OUT, "steps", 1e-4);
}

/* What is empty has no kernels, or sums of nothing. */
static void empty_ones(void **state) {
  (void)state;
  check_all(TWO("f32[0, 5]", "f32[5, 4]") "%o = matmul(%a, %b)" OUT, NULL, 0);
  check_all(TWO("f32[6, 0]", "f32[0, 7]") "%o = matmul(%a, %b)" OUT, NULL, 0);
  check_all(TWO("f32[1, 2, 0]", "f32[3, 2, 2]") "%o = conv(%a, %b) {pads = [1, 2]}" OUT, NULL, 0);
  check_all(THREE("f32[1, 2, 3, 4]", "f32[1, 2, 0, 4]", "f32[1, 2, 0, 4]") "%o = attention(%a, %b, %c)" OUT, NULL, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(products),     cmocka_unit_test(long_sums),  cmocka_unit_test(tails),
      cmocka_unit_test(convolutions), cmocka_unit_test(attentions), cmocka_unit_test(recurrences),
      cmocka_unit_test(empty_ones),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
