/* The fast kernels of training: attention_grad, cross_entropy and its gradient, the steps of optimisers. */
#include <math.h>

#include "fast.h"

#define T(kind, ...)                                                                                   \
  {                                                                                                    \
    .type = (kind), .rank = sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), .dim = { __VA_ARGS__ } \
  }
#define F32(...) T(BERTH_F32, __VA_ARGS__)
#define NUMBER(kind, value) \
  { .type = (kind), .rank = 0, .low = (value), .high = (value) }

typedef struct heads {
  int64_t batch, heads, kv_heads, queries, keys, size, value_size;
} heads;

/* Queries below, at and above a tile; sizes that fill vectors and that do not; heads that share keys. */
static const heads shapes[] = {
    {1, 2, 2, 32, 64, 32, 32}, {2, 3, 3, 37, 70, 36, 36}, {1, 4, 2, 65, 131, 20, 7}, {1, 2, 1, 5, 9, 8, 3},
    {1, 1, 1, 17, 1, 1, 1},    {2, 6, 3, 1, 133, 48, 48}, {1, 2, 2, 4, 40, 10, 70},  {1, 3, 3, 16, 200, 64, 64},
};
#define N_SHAPES (sizeof shapes / sizeof *shapes)

static fast_case case_of(const heads *h, fast_layout layout) {
  fast_case c = {.op = "attention_grad",
                 .in = {[BERTH__ATTENTION_Q] = F32(h->batch, h->heads, h->queries, h->size),
                        [BERTH__ATTENTION_K] = F32(h->batch, h->kv_heads, h->keys, h->size),
                        [BERTH__ATTENTION_V] = F32(h->batch, h->kv_heads, h->keys, h->value_size),
                        [BERTH__ATTENTION_DY] = F32(h->batch, h->heads, h->queries, h->value_size)},
                 .absolute = 2e-4,
                 .relative = 2e-5};
  for (int k = BERTH__ATTENTION_Q; k <= BERTH__ATTENTION_V; k++) c.in[k].layout = layout;
  return c;
}

static void gradients_of_attention(void **state) {
  (void)state;
  for (size_t i = 0; i < N_SHAPES; i++) {
    fast_case c = case_of(&shapes[i], i % 2 == 0 ? FAST_PLAIN : FAST_PADDED);
    fast_check(&c);
    c.attrs[0] = (berth_attr)FAST_STRING("mode", "causal");
    fast_check(&c);
    c.attrs[1] = (berth_attr)FAST_FLOAT("cap", 4.0);
    c.attrs[2] = (berth_attr)FAST_FLOAT("scale", 0.3);
    fast_check(&c);
    c.attrs[0] = (berth_attr)FAST_STRING("mode", "sliding_window");
    c.attrs[1] = (berth_attr)FAST_INT("window", 6);
    fast_check(&c);
  }
}

static void gradients_beside_the_scores(void **state) {
  (void)state;
  for (size_t i = 0; i < N_SHAPES; i++) {
    const heads *h = &shapes[i];
    const fast_operand bias = F32(h->heads, h->queries, h->keys), sinks = F32(h->heads);
    const fast_operand mask = T(BERTH_BOOL, h->batch, 1, h->queries, h->keys);
    const fast_operand length = {.type = BERTH_I64, .rank = 0, .low = (double)h->keys / 2, .high = (double)h->keys / 2};
    fast_case c = case_of(h, FAST_PLAIN);
    c.in[BERTH__ATTENTION_BIAS] = bias;
    fast_check(&c);
    c.in[BERTH__ATTENTION_MASK] = mask;
    c.in[BERTH__ATTENTION_SINKS] = sinks;
    fast_check(&c);
    c.in[BERTH__ATTENTION_LENGTH] = length;
    fast_check(&c);
  }
}

static void gradients_of_packed_heads(void **state) {
  (void)state;
  fast_case c = {.op = "attention_grad",
                 .in = {[BERTH__ATTENTION_Q] = F32(2, 40, 4 * 12),
                        [BERTH__ATTENTION_K] = F32(2, 50, 2 * 12),
                        [BERTH__ATTENTION_V] = F32(2, 50, 2 * 9),
                        [BERTH__ATTENTION_DY] = F32(2, 40, 4 * 9)},
                 .attrs = {FAST_INT("heads", 4), FAST_INT("kv_heads", 2)},
                 .absolute = 2e-4,
                 .relative = 2e-5};
  fast_check(&c);
  for (int k = BERTH__ATTENTION_Q; k <= BERTH__ATTENTION_V; k++) c.in[k].layout = FAST_PADDED;
  fast_check(&c);
  c.in[BERTH__ATTENTION_K].layout = FAST_REVERSED;
  fast_check_declined(&c);
}

/* A key that is not a number has no part in the gradients of queries that do not see it. */
static void gradients_beside_what_is_no_number(void **state) {
  enum {
    KEYS = 40,
    SIZE = 16
  };
  static const heads shape = {1, 2, 1, KEYS, KEYS, SIZE, SIZE};
  static double values[KEYS * SIZE], seen[KEYS];
  (void)state;
  for (int i = 0; i < KEYS * SIZE; i++) values[i] = i < (KEYS - 1) * SIZE ? (double)(i * 37 % 101) / 50 - 1 : NAN;
  for (int i = 0; i < KEYS - 1; i++) seen[i] = 1;
  for (int operand = BERTH__ATTENTION_K; operand <= BERTH__ATTENTION_V; operand++) {
    fast_case c = case_of(&shape, FAST_PLAIN);
    c.in[operand].values = values;
    c.in[operand].n_values = KEYS * SIZE;
    c.attrs[0] = (berth_attr)FAST_STRING("mode", "causal");
    fast_check(&c);
    c.attrs[1] = (berth_attr)FAST_FLOAT("cap", 4.0);
    fast_check(&c);
    c.in[BERTH__ATTENTION_MASK] = (fast_operand)T(BERTH_BOOL, 1, 1, KEYS, KEYS);
    c.in[BERTH__ATTENTION_MASK].values = seen;
    c.in[BERTH__ATTENTION_MASK].n_values = KEYS;
    fast_check(&c);
  }
}

static void cross_entropies(void **state) {
  static const int64_t widths[] = {1, 7, 8, 33, 2048, 5000};
  (void)state;
  for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
    fast_case c = {.op = "cross_entropy",
                   .in = {F32(5, widths[i]), {.type = BERTH_I64, .rank = 1, .dim = {5}, .low = 0}},
                   .absolute = 1e-6,
                   .relative = 2e-6};
    c.in[0].low = -9, c.in[0].high = 9;
    c.in[1].high = (double)widths[i];
    fast_check(&c);
    c.op = "cross_entropy_grad";
    c.in[BERTH__CROSS_ENTROPY_DY] = (fast_operand)F32(5);
    fast_check(&c);
    c.attrs[0] = (berth_attr)FAST_INT("ignore_index", 0);
    fast_check(&c);
    c.in[BERTH__CROSS_ENTROPY_LOSSES] = (fast_operand)F32(5); /* any losses, some of which tell no sum */
    c.in[BERTH__CROSS_ENTROPY_LOSSES].low = 12, c.in[BERTH__CROSS_ENTROPY_LOSSES].high = 20;
    fast_check(&c);
    c.in[BERTH__CROSS_ENTROPY_LOSSES].low = 100, c.in[BERTH__CROSS_ENTROPY_LOSSES].high = 160;
    fast_check(&c);
  }
}

static void gradients_of_norms(void **state) {
  static const int64_t rows[] = {1, 3, 65, 200}, lengths[] = {1, 7, 16, 33, 130, 768, 5000};
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    for (size_t j = 0; j < sizeof lengths / sizeof *lengths; j++) {
      const fast_operand x = F32(rows[i], lengths[j]), left_out = {0};
      fast_case c = {.op = "layer_norm_grad",
                     .in = {x, F32(lengths[j]), x},
                     .attrs = {FAST_FLOAT("epsilon", 0.01)}, /* short rows may be nearly all alike */
                     .absolute = 2e-5,
                     .relative = 2e-5};
      fast_check(&c);
      c.op = "rms_norm_grad";
      c.in[BERTH__NORM_SCALE] = left_out;
      fast_check(&c);
      c.op = "rms_norm_scale_grad";
      c.in[BERTH__NORM_SCALE_GRAD_DY] = x;
      c.in[BERTH__NORM_GRAD_DY] = left_out;
      fast_check(&c);
      c.op = "layer_norm_scale_grad";
      c.n_out = 2;
      fast_check(&c);
    }
}

/* Rows that are far from 0: what is small beside the mean stays. */
static void gradients_of_norms_far_from_zero(void **state) {
  fast_case c = {
      .op = "layer_norm_grad", .in = {F32(9, 300), F32(300), F32(9, 300)}, .absolute = 2e-4, .relative = 2e-4};
  (void)state;
  c.in[0].low = 1000, c.in[0].high = 1003;
  fast_check(&c);
  c.op = "layer_norm_scale_grad";
  c.n_out = 2;
  c.in[BERTH__NORM_SCALE_GRAD_DY] = (fast_operand)F32(9, 300);
  c.in[BERTH__NORM_GRAD_DY] = (fast_operand){0};
  fast_check(&c);
}

static void gradients_of_depthwise_weights(void **state) {
  static const int64_t channels[] = {1, 7, 16, 33, 96};
  (void)state;
  for (size_t i = 0; i < sizeof channels / sizeof *channels; i++) {
    const int64_t c = channels[i];
    fast_case f = {.op = "conv_weight_grad",
                   .in = {F32(3, 9, 11, c), F32(3, 9, 11, c)},
                   .attrs = {FAST_INTS("kernel", 3, 3), FAST_INTS("pads", 1, 1, 1, 1), FAST_INT("group", c),
                             FAST_INT("channels_last", 1)},
                   .absolute = 1e-4,
                   .relative = 1e-5};
    fast_check(&f);
    f.in[1] = (fast_operand)F32(3, 5, 6, c);
    f.attrs[4] = (berth_attr)FAST_INTS("strides", 2, 2);
    fast_check(&f);
    f.in[1] = (fast_operand)F32(3, 2, 3, c);
    f.attrs[5] = (berth_attr)FAST_INTS("dilations", 3, 3);
    fast_check(&f);
    f = (fast_case){.op = "conv_weight_grad",
                    .in = {F32(2, 40, c), F32(2, 36, c)},
                    .attrs = {FAST_INTS("kernel", 5), FAST_INT("group", c), FAST_INT("channels_last", 1)},
                    .absolute = 1e-4,
                    .relative = 1e-5};
    fast_check(&f);
  }
}

static void steps_of_optimisers(void **state) {
  static const int64_t counts[] = {1, 8, 13, 16384, 50000};
  (void)state;
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
    const fast_operand tensor = F32(counts[i]), rate = NUMBER(BERTH_F32, 0.01), step = NUMBER(BERTH_I64, 3.0);
    fast_operand square = tensor;
    square.low = 0.1, square.high = 2;
    fast_case c = {
        .op = "adamw", .in = {tensor, tensor, tensor, square, rate, step}, .absolute = 1e-6, .relative = 2e-6};
    fast_check(&c);
    c.in[BERTH__ADAMW_SCALE] = (fast_operand)NUMBER(BERTH_F32, 0.25);
    fast_check(&c);
    c = (fast_case){.op = "sgd", .in = {tensor, tensor, rate}, .absolute = 1e-6, .relative = 2e-6};
    fast_check(&c);
    c.in[BERTH__SGD_VELOCITY] = tensor;
    c.n_out = 2;
    c.attrs[0] = (berth_attr)FAST_FLOAT("momentum", 0.9);
    c.attrs[1] = (berth_attr)FAST_FLOAT("weight_decay", 0.1);
    fast_check(&c);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(gradients_of_attention),
      cmocka_unit_test(gradients_beside_the_scores),
      cmocka_unit_test(gradients_beside_what_is_no_number),
      cmocka_unit_test(gradients_of_packed_heads),
      cmocka_unit_test(cross_entropies),
      cmocka_unit_test(gradients_of_norms),
      cmocka_unit_test(gradients_of_depthwise_weights),
      cmocka_unit_test(gradients_of_norms_far_from_zero),
      cmocka_unit_test(steps_of_optimisers),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
