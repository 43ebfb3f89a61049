/* attention over keys with a capacity, of which a run has so many: every form that limits may choose, against the
 * reference kernel. */
#include <stdio.h>

#include "against.h"
#include "support.h"

#define FORM                                                                                             \
  "graph \"g\" { input %%q : f32[%d, %d, %d, 8] input %%k : f32[%d, %d, %d, 8] "                         \
  "input %%v : f32[%d, %d, %d, 12] const %%n : i32[%s] = [%s] %%o = attention(%%q, %%k, %%v, _, _, %%n)" \
  "{mode = \"%s\", window = %d} output \"o\" = %%o }"

typedef struct shape {
  int batch, heads, kv_heads, queries, capacity;
  const char *mode;
} shape;

static void check(const shape *s, const char *extents, const char *lengths, const char *form) {
  char text[1024];
  const bool slides = strcmp(s->mode, "sliding_window") == 0;
  const int size = snprintf(text, sizeof text, FORM, s->batch, s->heads, s->queries, s->batch, s->kv_heads, s->capacity,
                            s->batch, s->kv_heads, s->capacity, extents, lengths, s->mode, slides ? 40 : 0);
  assert_true(size > 0 && size < (int)sizeof text);
  check_against(text, &limits_large, form, 2e-5);
  check_against(text, &limits_plain, NULL, 2e-5);
  if (s->capacity < 1000) check_against(text, &limits_small, NULL, 2e-5);
}

/* The sizes at which forms change, with lengths from one key to all of them. */
static void every_length(void **state) {
  static const int capacities[] = {1, 255, 256, 1000, 4096}, queries[] = {1, 7, 64};
  (void)state;
  for (size_t c = 0; c < sizeof capacities / sizeof *capacities; c++)
    for (size_t q = 0; q < sizeof queries / sizeof *queries; q++) {
      const int capacity = capacities[c], lengths[] = {1, capacity / 3, capacity / 2 + 1, capacity};
      const bool is_split = capacity >= 256 && queries[q] < 64;
      for (size_t n = 0; n < 4; n++) {
        char length[16];
        if (lengths[n] < 1 || (n > 0 && lengths[n] == lengths[n - 1])) continue;
        snprintf(length, sizeof length, "%d", lengths[n]);
        check(&(shape){1, 2, 1, queries[q], capacity, n % 2 != 0 ? "causal" : "none"}, "1", length,
              is_split ? "merge" : "tiled");
      }
    }
}

static void a_length_per_batch_entry(void **state) {
  (void)state;
  check(&(shape){3, 2, 2, 5, 70, "causal"}, "3", "5, 70, 33", "tiled");
  check(&(shape){3, 4, 2, 1, 300, "none"}, "3", "1, 300, 129", "merge");
  check(&(shape){2, 2, 2, 17, 90, "none"}, "2", "90, 2", "tiled");
}

static void windows(void **state) {
  (void)state;
  check(&(shape){1, 2, 1, 3, 400, "sliding_window"}, "1", "390", "merge");
  check(&(shape){1, 2, 1, 3, 400, "sliding_window"}, "1", "12", "merge");
  check(&(shape){2, 2, 2, 33, 200, "sliding_window"}, "2", "160, 35", "tiled");
}

/* More queries than keys: the first of them see nothing. */
static void fewer_keys_than_queries(void **state) {
  (void)state;
  check(&(shape){1, 2, 1, 20, 64, "causal"}, "1", "7", "tiled");
  check(&(shape){1, 2, 1, 5, 512, "causal"}, "1", "2", "merge");
}

#define MASKED                                                                                          \
  "graph \"g\" { input %q : f32[2, 4, 3, 8] input %k : f32[2, 2, 300, 8] input %v : f32[2, 2, 300, 8] " \
  "input %m : bool[2, 1, 1, 300] input %b : f32[4, 3, 300] const %n : i64[2] = [200, 31] "              \
  "%o = attention(%q, %k, %v, %m, %b, %n) output \"o\" = %o }"

static void masks_and_biases_over_the_capacity(void **state) {
  (void)state;
  check_all_limits(MASKED, "merge", 2e-5);
}

/* ---- Few queries, with lanes that exchange values (attention_few.c) ---- */

typedef struct few {
  int batch, heads, kv_heads, queries, capacity, size, value_size;
  const char *type, *length, *rest, *form; /* rest: further operands and attributes */
} few;

static void check_few(const few *f) {
  char text[1024];
  const int size = snprintf(text, sizeof text,
                            "graph \"g\" { input %%q : f32[%d, %d, %d, %d] input %%k : %s[%d, %d, %d, %d] "
                            "input %%v : %s[%d, %d, %d, %d] const %%n : i32[1] = [%s] "
                            "%%o = attention(%%q, %%k, %%v, _, _, %%n) {%s} output \"o\" = %%o }",
                            f->batch, f->heads, f->queries, f->size, f->type, f->batch, f->kv_heads, f->capacity,
                            f->size, f->type, f->batch, f->kv_heads, f->capacity, f->value_size, f->length, f->rest);
  assert_true(size > 0 && size < (int)sizeof text);
  if (strcmp(f->type, "f32") == 0) check_against(text, &limits_lanes, f->form, 2e-5);
  if (strcmp(f->type, "f32") == 0) check_against(text, &limits_large, NULL, 2e-5);
  check_narrow(text, &limits_lanes, f->form, 2e-5);
  if (strcmp(f->type, "f32") == 0 && strcmp(f->form, "tiled") != 0) check_exchanges(text, &limits_lanes, 2e-5);
}

/* Several threads per key, values with fewer or more columns than threads, and sizes that are no power of two. */
static void few_queries_of_every_size(void **state) {
  static const int sizes[][2] = {{64, 64},   {4, 8},     {8, 4},   {96, 96}, {80, 80},
                                 {128, 128}, {256, 256}, {64, 12}, {32, 200}};
  (void)state;
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    check_few(&(few){1, 2, 2, 1, 40, sizes[i][0], sizes[i][1], "f32", "33", "mode = \"causal\"", "few"});
    check_few(&(few){2, 4, 2, 1, 200, sizes[i][0], sizes[i][1], "f32", "190", "mode = \"none\"", "few"});
  }
  check_few(&(few){1, 1, 1, 1, 40, 6, 6, "f32", "33", "", "tiled"}); /* no whole runs of four */
}

static void few_queries_of_narrow_caches(void **state) {
  static const char *const types[] = {"f16", "bf16"};
  (void)state;
  for (size_t t = 0; t < 2; t++) {
    check_few(&(few){1, 8, 2, 1, 300, 64, 64, types[t], "290", "mode = \"causal\"", "few"});
    check_few(&(few){1, 3, 3, 2, 70, 128, 128, types[t], "5", "mode = \"causal\"", "few"});
    check_few(&(few){1, 2, 2, 1, 70, 8, 24, types[t], "70", "", "few"});
    check_few(&(few){1, 2, 2, 1, 70, 12, 12, types[t], "70", "", "tiled"}); /* no whole runs of eight */
  }
}

/* One row to eight, of one head or of heads that share keys; and nine, which are too many. */
static void few_queries_of_every_count(void **state) {
  (void)state;
  for (int rows = 1; rows <= 9; rows++) {
    const char *const form = rows <= 8 ? "few" : "tiled";
    check_few(&(few){1, 2, 2, rows, 150, 32, 32, "f32", "100", "mode = \"causal\"", form});
    check_few(&(few){1, 2 * rows, 2, 1, 150, 32, 32, "f32", "149", "mode = \"causal\"", form});
  }
  check_few(&(few){1, 4, 2, 3, 150, 32, 32, "f32", "100", "mode = \"causal\"", "few"});
}

/* Chunks with several blocks of keys, more records than one, and none in use. */
static void few_queries_of_long_caches(void **state) {
  (void)state;
  check_few(&(few){1, 2, 1, 1, 5000, 16, 16, "f32", "4999", "mode = \"causal\"", "merge"});
  check_few(&(few){1, 2, 1, 1, 5000, 16, 16, "f32", "1", "mode = \"causal\"", "merge"});
  check_few(&(few){1, 2, 1, 1, 5000, 16, 16, "f32", "0", "mode = \"none\"", "merge"});
  check_few(&(few){1, 2, 1, 1, 5000, 16, 16, "f32", "3000", "mode = \"sliding_window\", window = 700", "merge"});
  check_few(&(few){1, 2, 1, 2, 500, 16, 16, "f32", "400", "mode = \"causal\", cap = 0.5", "merge"});
  check_few(&(few){1, 2, 1, 1, 100, 16, 16, "f32", "230", "mode = \"sliding_window\", window = 90, ring = 1", "few"});
  check_few(
      &(few){1, 2, 1, 1, 500, 16, 16, "f32", "730", "mode = \"sliding_window\", window = 490, ring = 1", "merge"});
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_length),
                                     cmocka_unit_test(a_length_per_batch_entry),
                                     cmocka_unit_test(windows),
                                     cmocka_unit_test(fewer_keys_than_queries),
                                     cmocka_unit_test(masks_and_biases_over_the_capacity),
                                     cmocka_unit_test(few_queries_of_every_size),
                                     cmocka_unit_test(few_queries_of_narrow_caches),
                                     cmocka_unit_test(few_queries_of_every_count),
                                     cmocka_unit_test(few_queries_of_long_caches)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
