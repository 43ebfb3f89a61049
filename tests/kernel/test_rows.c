/* Reductions, norms, softmax, searches and running sums at lengths for which rows are shared by threads, cut into
 * pieces, or neither; against the reference kernels. */
#include "against.h"
#include "support.h"

#define ONE(a) "graph \"g\" { input %a : " a " "
#define TWO(a, b) ONE(a) "input %b : " b " "
#define THREE(a, b, c) TWO(a, b) "input %c : " c " "
#define OUT " output \"o\" = %o }"

static void reductions(void **state) {
  (void)state;
  check_all_limits(ONE("f32[5, 1000]") "%o = reduce_sum(%a) {axes = [1]}" OUT, NULL, 1e-5);
  check_all_limits(ONE("f32[5, 1000]") "%o = reduce_mean(%a) {axes = [0]}" OUT, NULL, 1e-5);
  check_all_limits(ONE("f32[3, 70, 5, 11]") "%o = reduce_max(%a) {axes = [1, 3]}" OUT, NULL, 0);
  check_all_limits(ONE("i32[300, 70]") "%o = reduce_min(%a) {axes = [0], keepdims = 0}" OUT, NULL, 0);
  check_all_limits(ONE("i32[2, 4100]") "%o = reduce_sum(%a) {axes = [1]}" OUT, NULL, 0);
  check_all_limits(ONE("u8[40, 33]") "%o = reduce_prod(%a) {axes = [1]}" OUT, NULL, 0);
  check_all_limits(ONE("f32[70, 9]") "%o = reduce_sum(%a) {axes = [1]}" OUT, NULL, 1e-5);
}

static void long_reductions_go_by_pieces(void **state) {
  (void)state;
  check_all_limits(ONE("f32[200003]") "%o = reduce_sum(%a)" OUT, "by pieces", 1e-4);
  check_all_limits(ONE("f32[2, 40000]") "%o = reduce_max(%a) {axes = [1]}" OUT, "of pieces", 0);
  check_all_limits(ONE("f32[150, 3, 300]") "%o = reduce_mean(%a) {axes = [0, 2]}" OUT, "by pieces", 1e-5);
  /* sums of pieces need more bits than what is summed */
  check_narrow(ONE("u8[300, 500]") "%o = reduce_mean(%a)" OUT, &limits_large, "of pieces", 0);
  check_narrow(ONE("i8[9000, 4]") "%o = reduce_mean(%a) {axes = [0]}" OUT, &limits_large, "of pieces", 0);
}

/* Down columns: several threads share one, and a thread has two columns of 16 bits. */
static void columns(void **state) {
  (void)state;
  check_all_limits(ONE("f32[3001, 70]") "%o = reduce_sum(%a) {axes = [0]}" OUT, "by pieces", 1e-5);
  check_all_limits(ONE("f32[2, 100, 300]") "%o = reduce_min(%a) {axes = [1]}" OUT, NULL, 0);
  check_all_limits(TWO("f32[3001, 70]", "f32[3001, 70]") "%o, %p = layer_norm_scale_grad(%a, %b)" OUT, "by pieces",
                   1e-4);
  check_narrow(ONE("bf16[901, 66]") "%o = reduce_sum(%a) {axes = [0]}" OUT, &limits_large, "by pieces", 1e-2);
  check_narrow(ONE("bf16[901, 67]") "%o = reduce_max(%a) {axes = [0]}" OUT, &limits_large, NULL, 0);
  check_narrow(ONE("f16[3, 500, 2, 10]") "%o = reduce_max(%a) {axes = [1, 2]}" OUT, &limits_large, NULL, 0);
  check_narrow(ONE("f16[3, 40, 5, 2]") "%o = reduce_mean(%a) {axes = [1]}" OUT, &limits_large, NULL, 1e-3);
  check_narrow(ONE("i16[300, 6]") "%o = reduce_max(%a) {axes = [0]}" OUT, &limits_large, NULL, 0);
}

static void lines(void **state) {
  (void)state;
  check_all_limits(ONE("f32[7, 333]") "%o = softmax(%a)" OUT, NULL, 1e-6);
  check_all_limits(ONE("f32[70, 5]") "%o = softmax(%a)" OUT, NULL, 1e-6);
  check_all_limits(ONE("f32[3, 90, 11]") "%o = log_softmax(%a) {axis = 1}" OUT, NULL, 1e-5);
  check_all_limits(ONE("f32[2, 20000]") "%o = softmax(%a)" OUT, NULL, 1e-6);
}

/* Threads take several elements at a time, and then those that are left. */
static void losses(void **state) {
  (void)state;
#define LABELLED(x) ONE(x) "const %l : i32[3] = [0, -100, 999] "
  check_all_limits(LABELLED("f32[3, 5000]") "%o = cross_entropy(%a, %l)" OUT, NULL, 1e-6);
  check_all_limits(LABELLED("f32[3, 1024]") "%o = cross_entropy(%a, %l)" OUT, NULL, 1e-6);
  check_all_limits(LABELLED("f32[3, 90001]") "%o = cross_entropy(%a, %l)" OUT, NULL, 1e-6);
  check_all_limits(LABELLED("f32[3, 1003]") "input %d : f32[3] %o = cross_entropy_grad(%a, %l, %d)" OUT, NULL, 1e-6);
  check_all_limits(LABELLED("f32[3, 5000]") "input %d : f32[3] input %c : f32[3] "
                                            "%o = cross_entropy_grad(%a, %l, %d, %c)" OUT,
                   NULL, 1e-6);
  check_words(LABELLED("f16[3, 5002]") "input %d : f16[3] %o = cross_entropy_grad(%a, %l, %d)" OUT, &limits_large, NULL,
              1e-3);
}

static void norms(void **state) {
  (void)state;
  check_all_limits(THREE("f32[3, 19, 130]", "f32[130]", "f32[130]") "%o = layer_norm(%a, %b, %c)" OUT, NULL, 1e-5);
  check_all_limits(TWO("f32[5, 7, 9]", "f32[7, 1]") "%o = layer_norm(%a, %b) {axis = 1}" OUT, NULL, 1e-5);
  check_all_limits(TWO("f32[66, 258]", "f32[258]") "%o = rms_norm(%a, %b)" OUT, NULL, 1e-5);
  check_all_limits(THREE("f32[2, 12, 9, 9]", "f32[12]", "f32[12]") "%o = group_norm(%a, %b, %c) {groups = 4}" OUT, NULL,
                   1e-5);
}

static void gradients_of_norms(void **state) {
  (void)state;
  check_all_limits(THREE("f32[3, 19, 130]", "f32[130]", "f32[3, 19, 130]") "%o = layer_norm_grad(%a, %b, %c)" OUT, NULL,
                   1e-5);
  check_all_limits(THREE("f32[5, 7, 9]", "f32[7, 1]", "f32[5, 7, 9]") "%o = rms_norm_grad(%a, %b, %c) {axis = 1}" OUT,
                   NULL, 1e-5);
  check_all_limits(TWO("f32[66, 258]", "f32[66, 258]") "%o = layer_norm_grad(%a, _, %b)" OUT, NULL, 1e-5);
  check_all_limits(TWO("f32[3, 9000]", "f32[3, 9000]") "%o = layer_norm_grad(%a, _, %b)" OUT, NULL, 1e-5);
#define SCALES(shape) TWO(shape, shape) "%o, %p = layer_norm_scale_grad(%a, %b) output \"o\" = %o output \"p\" = %p }"
  check_all_limits(SCALES("f32[5, 13, 130]"), NULL, 1e-5);
  check_all_limits(SCALES("f32[1000, 9]"), "by pieces", 1e-5);
  check_all_limits(SCALES("f32[7]"), "moments", 1e-5);
  check_all_limits(TWO("f32[300, 3, 5]", "f32[300, 3, 5]") "%o = rms_norm_scale_grad(%a, %b) {axis = 1}" OUT, NULL,
                   1e-5);
}

static void gradients_of_weights(void **state) {
  (void)state;
#define WEIGHT(x, dy, attrs) TWO(x, dy) "%o = conv_weight_grad(%a, %b) " attrs OUT
  check_all_limits(WEIGHT("f32[3, 8, 9, 11]", "f32[3, 8, 9, 11]", "{kernel = [3, 3], pads = [1, 1, 1, 1], group = 8}"),
                   NULL, 1e-5);
  check_all_limits(WEIGHT("f32[2, 4, 20, 17]", "f32[2, 6, 9, 8]", "{kernel = [3, 2], strides = [2, 2], group = 2}"),
                   NULL, 1e-5);
  check_all_limits(WEIGHT("f32[2, 30, 6]", "f32[2, 26, 6]", "{kernel = [5], group = 6, channels_last = 1}"), NULL,
                   1e-5);
  check_all_limits(WEIGHT("f32[1, 2, 4, 5, 3]", "f32[1, 3, 2, 5, 1]",
                          "{kernel = [2, 3, 2], pads = [0, 1, 0, 0, 1, 0], "
                          "strides = [2, 1, 2]}"),
                   NULL, 1e-5);
}

static void searches(void **state) {
  (void)state;
  check_all_limits(ONE("f32[5, 700]") "%o = arg_max(%a) {axis = 1}" OUT, NULL, 0);
  check_all_limits(ONE("i32[70, 130]") "%o = arg_min(%a) {axis = 1}" OUT, NULL, 0);
  check_all_limits(ONE("i32[130, 6]") "%o = arg_max(%a) {select_last = 1}" OUT, NULL, 0);
#define TOP(shape, attrs) ONE(shape) "%o, %p = top_k(%a) " attrs " output \"o\" = %o output \"p\" = %p }"
  check_all_limits(TOP("f32[3, 500]", "{k = 9}"), "of few", 0);
  check_all_limits(TOP("i32[70, 130]", "{k = 5, largest = 0}"), "of few", 0);
  check_all_limits(TOP("u8[300, 4]", "{k = 3, axis = 0}"), "of few", 0);
  check_all_limits(TOP("f32[3, 90]", "{k = 90}"), "of many", 0);
  check_all_limits(TOP("i32[4, 60, 3]", "{k = 33, axis = 1, largest = 0}"), "of many", 0);
}

static void running_sums(void **state) {
  (void)state;
  check_all_limits(ONE("f32[3, 1000]") "%o = cumsum(%a) {axis = 1}" OUT, NULL, 1e-5);
  check_all_limits(ONE("i32[2, 333, 3]") "%o = cumsum(%a) {axis = 1, exclusive = 1}" OUT, NULL, 0);
  check_all_limits(ONE("i32[70, 129]") "%o = cumsum(%a) {axis = 1, reverse = 1}" OUT, NULL, 0);
  check_all_limits(ONE("i32[5, 129]") "%o = cumsum(%a) {axis = 1, reverse = 1, exclusive = 1}" OUT, NULL, 0);
}

static void transforms(void **state) {
  (void)state;
  check_all_limits(ONE("f32[2, 100, 1]") "%o = dft(%a)" OUT, NULL, 1e-5);
  check_all_limits(ONE("f32[256, 3, 2]") "%o = dft(%a) {axis = 0, inverse = 1}" OUT, NULL, 1e-5);
  check_all_limits(ONE("f32[1, 60, 1]") "%o = dft(%a) {onesided = 1, length = [97]}" OUT, NULL, 1e-5);
}

/* Rows of fewer threads than a subgroup has, of one, and of several; along the rows and across them. */
static void lanes_exchange(void **state) {
  static const char *const graphs[] = {
      ONE("f32[5, 60]") "%o = reduce_sum(%a) {axes = [1]}" OUT,
      ONE("f32[3, 4000]") "%o = reduce_max(%a) {axes = [1]}" OUT,
      ONE("i32[300, 70]") "%o = reduce_min(%a) {axes = [0], keepdims = 0}" OUT,
      ONE("f32[7, 333]") "%o = softmax(%a)" OUT,
      THREE("f32[3, 19, 130]", "f32[130]", "f32[130]") "%o = layer_norm(%a, %b, %c)" OUT,
      TWO("f32[66, 258]", "f32[258]") "%o = rms_norm(%a, %b)" OUT,
      THREE("f32[3, 19, 130]", "f32[130]", "f32[3, 19, 130]") "%o = layer_norm_grad(%a, %b, %c)" OUT,
      SCALES("f32[700, 70]"),
      ONE("f32[5, 700]") "%o = arg_max(%a) {axis = 1}" OUT,
      ONE("i32[130, 6]") "%o = arg_max(%a) {select_last = 1}" OUT,
  };
  (void)state;
  for (size_t i = 0; i < sizeof graphs / sizeof graphs[0]; i++) {
    check_exchanges(graphs[i], &limits_lanes, 1e-5);
    check_exchanges(graphs[i], &limits_quads, 1e-5);
  }
}

static void ranges(void **state) {
  (void)state;
#define RANGE(shape) ONE(shape) "%o, %p = quantize_range(%a) output \"o\" = %o output \"p\" = %p }"
  check_all_limits(RANGE("f32[9, 111]"), NULL, 1e-6);
  check_all_limits(RANGE("f32[70001]"), "of groups", 1e-6);
}

static void draws(void **state) {
  (void)state;
  check_all_limits("graph \"g\" { %o = random_uniform() {shape = [7, 401], seed = 5}" OUT, NULL, 0);
  check_all_limits("graph \"g\" { %o = random_normal() {shape = [3001], seed = 77}" OUT, NULL, 1e-6);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(reductions),
      cmocka_unit_test(long_reductions_go_by_pieces),
      cmocka_unit_test(columns),
      cmocka_unit_test(lines),
      cmocka_unit_test(losses),
      cmocka_unit_test(norms),
      cmocka_unit_test(gradients_of_norms),
      cmocka_unit_test(gradients_of_weights),
      cmocka_unit_test(searches),
      cmocka_unit_test(running_sums),
      cmocka_unit_test(transforms),
      cmocka_unit_test(draws),
      cmocka_unit_test(ranges),
      cmocka_unit_test(lanes_exchange),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
