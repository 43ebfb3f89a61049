/* The fast kernels of attention and of rotary positions. */
#include <math.h>

#include "fast.h"

#define F32(...)                                                                                          \
  {                                                                                                       \
    .type = BERTH_F32, .rank = sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), .dim = { __VA_ARGS__ } \
  }

typedef struct heads {
  int64_t batch, heads, kv_heads, queries, keys, size, value_size;
  fast_layout layout;
} heads;

static fast_case case_of(const heads *h) {
  fast_case c = {.op = "attention",
                 .in = {F32(h->batch, h->heads, h->queries, h->size), F32(h->batch, h->kv_heads, h->keys, h->size),
                        F32(h->batch, h->kv_heads, h->keys, h->value_size)},
                 .absolute = 2e-5,
                 .relative = 2e-5};
  for (int k = 0; k < 3; k++) c.in[k].layout = h->layout;
  return c;
}

static const heads shapes[] = {
    {1, 2, 2, 32, 64, 32, 32, FAST_PLAIN},  {2, 3, 3, 37, 70, 36, 36, FAST_PLAIN},
    {1, 4, 2, 65, 131, 20, 7, FAST_PADDED}, {1, 2, 1, 5, 9, 8, 3, FAST_REVERSED},
    {1, 1, 1, 17, 1, 1, 1, FAST_PLAIN},     {2, 6, 3, 1, 133, 48, 48, FAST_PLAIN},
    {1, 2, 2, 1, 5, 64, 100, FAST_PADDED},  {1, 2, 2, 4, 40, 10, 70, FAST_PLAIN},
    {1, 2, 2, 1, 16, 8, 8, FAST_REVERSED},  {1, 3, 3, 16, 200, 64, 64, FAST_PLAIN},
};
#define N_SHAPES (sizeof shapes / sizeof *shapes)

static void every_shape(void **state) {
  (void)state;
  for (size_t i = 0; i < N_SHAPES; i++) {
    fast_case c = case_of(&shapes[i]);
    fast_check(&c);
    c.attrs[0] = (berth_attr)FAST_FLOAT("scale", 0.7);
    c.attrs[1] = (berth_attr)FAST_INT("merged", 1);
    fast_check(&c);
  }
}

static void packed_heads(void **state) {
  (void)state;
  fast_case c = {.op = "attention",
                 .in = {F32(2, 40, 4 * 12), F32(2, 50, 2 * 12), F32(2, 50, 2 * 9)},
                 .attrs = {FAST_INT("heads", 4), FAST_INT("kv_heads", 2)},
                 .absolute = 2e-5,
                 .relative = 2e-5};
  fast_check(&c);
  c.in[0].layout = c.in[1].layout = FAST_PADDED;
  fast_check(&c);
}

static void causal_and_windows(void **state) {
  (void)state;
  for (size_t i = 0; i < N_SHAPES; i++) {
    fast_case c = case_of(&shapes[i]);
    c.attrs[0] = (berth_attr)FAST_STRING("mode", "causal");
    fast_check(&c);
    c.attrs[0] = (berth_attr)FAST_STRING("mode", "sliding_window");
    c.attrs[1] = (berth_attr)FAST_INT("window", 6);
    fast_check(&c);
  }
}

/* Everything that may stand beside the scores: by key, by row and key, a mask, both; a causal limit as well. */
static void masks_and_biases(void **state) {
  (void)state;
  for (size_t i = 0; i < N_SHAPES; i++) {
    const heads *h = &shapes[i];
    const fast_operand by_key = F32(h->batch, 1, 1, h->keys), by_row = F32(h->heads, h->queries, h->keys);
    fast_case c = case_of(h);
    c.in[4] = by_key;
    fast_check(&c);
    c.in[4] = by_row;
    c.in[4].layout = FAST_REVERSED;
    fast_check(&c);
    c.in[3] = by_row;
    c.in[3].type = BERTH_BOOL;
    c.in[3].high = 2;
    fast_check(&c);
    c.in[4].type = BERTH_TYPE_NONE;
    c.attrs[0] = (berth_attr)FAST_STRING("mode", "causal");
    fast_check(&c);
  }
}

/* A row of which nothing is seen, scores far apart, and what hides NaN. */
static void edges(void **state) {
  static const double nothing[] = {-INFINITY}, lowest[] = {-3.4028234663852886e38}, far[] = {-1e30, 20, -300, 15};
  static const double values[] = {1, NAN, -2, 0.5, INFINITY, 3, 0.25};
  static const double hidden[] = {0, 0, 0, -INFINITY, 0};
  const heads few = {1, 2, 2, 3, 35, 8, 8, FAST_PLAIN}, many = {1, 2, 2, 40, 70, 8, 8, FAST_PLAIN};
  (void)state;
  for (int i = 0; i < 2; i++) {
    const heads *h = i ? &many : &few;
    fast_case c = case_of(h);
    c.in[4] = (fast_operand)F32(1, 1, 1, h->keys);
    c.in[4].values = nothing;
    c.in[4].n_values = 1;
    fast_check(&c);
    c.in[4].values = lowest;
    fast_check(&c);
    c.in[4].values = far;
    c.in[4].n_values = 4;
    fast_check(&c);
    c.in[4].values = hidden;
    c.in[4].n_values = 5;
    c.in[2].values = values; /* some are seen: not finite */
    c.in[2].n_values = 7;
    fast_check(&c);
    c.in[1].values = values;
    c.in[1].n_values = 7;
    fast_check(&c);
  }
}

/* Keys with a capacity, from one of them to all; the cases of tests/ops show that those past the length do not count.
 */
static void lengths(void **state) {
  static const int64_t capacities[] = {1, 255, 256, 1000, 4096}, queries[] = {1, 4, 7, 64};
  static const char *const modes[] = {"none", "causal", "sliding_window"};
  (void)state;
  for (size_t i = 0; i < 5; i++)
    for (size_t q = 0; q < 4; q++) {
      const int64_t capacity = capacities[i], length[] = {1, capacity / 3 + 1, capacity - capacity / 9, capacity};
      for (size_t n = 0; n < 4; n++) {
        const heads h = {1, 2, 1, queries[q], capacity, 16, 12, n % 2 ? FAST_PLAIN : FAST_PADDED};
        const double value = (double)length[n];
        fast_case c = case_of(&h);
        c.in[5] = (fast_operand){.type = BERTH_I64, .values = &value, .n_values = 1};
        c.attrs[0] = (berth_attr)FAST_STRING("mode", modes[(i + q + n) % 3]);
        c.attrs[1] = (berth_attr)FAST_INT("window", 9);
        fast_check(&c);
      }
    }
}

static void a_length_per_batch_entry(void **state) {
  static const double each[] = {70, 1, 33};
  (void)state;
  for (int64_t queries = 1; queries < 40; queries += 19) {
    const heads h = {3, 4, 2, queries, 70, 16, 16, FAST_PLAIN};
    fast_case c = case_of(&h);
    c.in[5] = (fast_operand){.type = BERTH_I32, .rank = 1, .dim = {3}, .values = each, .n_values = 3};
    fast_check(&c);
    c.in[4] = (fast_operand)F32(h.heads, h.queries, h.keys);
    c.in[3] = (fast_operand)F32(h.batch, 1, 1, h.keys);
    c.in[3].type = BERTH_BOOL;
    c.in[3].high = 2;
    c.attrs[0] = (berth_attr)FAST_STRING("mode", "causal");
    fast_check(&c);
  }
}

typedef struct cache_form {
  int64_t heads, kv_heads, size, value_size;
} cache_form;

/* A cache of 140 rows, of which 131 are in use. */
static void check_cache(const cache_form *form, int64_t queries, bool is_causal, berth_type type) {
  const double length = 131;
  fast_case c = {.op = "attention",
                 .in = {F32(queries, form->heads * form->size), F32(140, form->kv_heads * form->size),
                        F32(140, form->kv_heads * form->value_size)},
                 .attrs = {FAST_INT("heads", form->heads), FAST_INT("kv_heads", form->kv_heads),
                           FAST_STRING("mode", is_causal ? "causal" : "sliding_window"), FAST_INT("window", 70)},
                 .absolute = 4e-5,
                 .relative = 4e-5};
  c.in[1].type = c.in[2].type = type;
  c.in[5] = (fast_operand){.type = BERTH_I32, .values = &length, .n_values = 1};
  fast_check(&c);
}

/* Keys and values in blocks: heads of whole blocks, which few queries read where they lie, and others. */
static void caches_in_blocks(void **state) {
  static const cache_form forms[] = {{4, 2, 64, 64}, {3, 1, 96, 32}, {4, 4, 8, 8}, {2, 2, 48, 16}, {1, 1, 32, 288}};
  static const int64_t queries[] = {1, 3, 21};
  (void)state;
  for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
    for (size_t q = 0; q < 3; q++) check_cache(&forms[i], queries[q], i % 2 != 0, BERTH_Q8_0);
}

/* Rows of f16 are read where they lie, also those that end within a vector. */
static void caches_of_halves(void **state) {
  static const cache_form forms[] = {{4, 2, 64, 64}, {8, 4, 8, 8},   {3, 1, 7, 33},
                                     {2, 2, 40, 20}, {4, 4, 1, 100}, {1, 1, 72, 15}};
  static const int64_t queries[] = {1, 3};
  (void)state;
  for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
    for (size_t q = 0; q < 2; q++) check_cache(&forms[i], queries[q], i % 2 != 0, BERTH_F16);
}

/* Lengths past the capacity, and queries whose keys go around its end. */
static void rings(void **state) {
  static const int64_t queries[] = {1, 4, 21};
  static const double lengths_of[] = {30, 140, 141, 200, 1000, 16777301, 1073741871}; /* also past f32's integers */
  static const berth_type types[] = {BERTH_F32, BERTH_F16, BERTH_Q8_0};
  (void)state;
  for (size_t t = 0; t < 3; t++)
    for (size_t q = 0; q < 3; q++)
      for (size_t n = 0; n < 7; n++) {
        fast_case c = {.op = "attention",
                       .in = {F32(queries[q], 4 * 32), F32(140, 2 * 32), F32(140, 2 * 32)},
                       .attrs = {FAST_INT("heads", 4), FAST_INT("kv_heads", 2), FAST_STRING("mode", "sliding_window"),
                                 FAST_INT("window", 120), FAST_INT("ring", 1)},
                       .absolute = 4e-5,
                       .relative = 4e-5};
        c.in[1].type = c.in[2].type = types[t];
        c.in[5] = (fast_operand){.type = BERTH_I32, .values = &lengths_of[n], .n_values = 1};
        fast_check(&c);
      }
}

/* No rows at all: no query sees a key. */
static void a_ring_without_rows(void **state) {
  static const int64_t queries[] = {1, 4, 21};
  static const double none = 0;
  static const berth_type types[] = {BERTH_F32, BERTH_F16, BERTH_BF16, BERTH_Q8_0};
  (void)state;
  for (size_t t = 0; t < 4; t++)
    for (size_t q = 0; q < 3; q++) {
      fast_case c = {.op = "attention",
                     .in = {F32(queries[q], 4 * 32), F32(0, 2 * 32), F32(0, 2 * 32)},
                     .attrs = {FAST_INT("heads", 4), FAST_INT("kv_heads", 2), FAST_INT("ring", 1)}};
      c.in[1].type = c.in[2].type = types[t];
      c.in[5] = (fast_operand){.type = BERTH_I32, .values = &none, .n_values = 1};
      fast_check(&c);
    }
}

static void other_types_are_declined(void **state) {
  (void)state;
  fast_case c = case_of(&shapes[0]);
  for (int k = 0; k < 3; k++) c.in[k].type = BERTH_F64;
  fast_check_declined(&c);
}

static void rotary_positions(void **state) {
  (void)state;
  static const struct {
    int64_t heads, size, dims, interleaved;
  } forms[] = {{4, 64, 0, 0}, {3, 22, 0, 0}, {2, 22, 14, 0}, {3, 20, 0, 1}, {1, 10, 6, 1}, {5, 2, 0, 0}};
  for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
    const int64_t pairs = (forms[i].dims != 0 ? forms[i].dims : forms[i].size) / 2;
    fast_case c = {.op = "rope",
                   .in = {F32(2, 7, forms[i].heads * forms[i].size),
                          {.type = BERTH_I64, .rank = 2, .dim = {2, 7}, .low = 0, .high = 5000}},
                   .attrs = {FAST_INT("heads", forms[i].heads), FAST_INT("dims", forms[i].dims),
                             FAST_INT("interleaved", forms[i].interleaved)},
                   .absolute = 1e-5,
                   .relative = 1e-5};
    fast_check(&c);
    c.in[1] = (fast_operand)F32(7, pairs);
    c.in[2] = (fast_operand)F32(7, pairs);
    fast_check(&c);
    c.in[0] = (fast_operand)F32(2, forms[i].heads, 7, forms[i].size);
    fast_check(&c);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_shape),
      cmocka_unit_test(packed_heads),
      cmocka_unit_test(causal_and_windows),
      cmocka_unit_test(masks_and_biases),
      cmocka_unit_test(edges),
      cmocka_unit_test(caches_in_blocks),
      cmocka_unit_test(caches_of_halves),
      cmocka_unit_test(rings),
      cmocka_unit_test(a_ring_without_rows),
      cmocka_unit_test(other_types_are_declined),
      cmocka_unit_test(rotary_positions),
      cmocka_unit_test(lengths),
      cmocka_unit_test(a_length_per_batch_entry),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
