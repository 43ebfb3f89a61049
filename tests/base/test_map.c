#include "base/map.h"

#include <stdio.h>

#include "support.h"

static void an_empty_map_has_nothing(void **state) {
  (void)state;
  berth_context *ctx = test_context();
  berth__map map = {0};
  uint32_t value = 7;
  assert_false(berth__map_get(&map, "a", &value));
  assert_int_equal(value, 7);
  berth__map_remove(ctx, &map, "a");
  berth__map_clear(ctx, &map);
  berth_context_destroy(ctx);
}

static void keys_are_copied_and_values_replaced(void **state) {
  (void)state;
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  berth__map map = {0};
  berth_error err;
  char key[] = "weight";
  TEST_OK(berth__map_put(ctx, &map, key, 1, &err));
  key[0] = 'x';
  uint32_t value = 0;
  assert_true(berth__map_get(&map, "weight", &value));
  assert_int_equal(value, 1);
  assert_false(berth__map_get(&map, "xeight", &value));
  TEST_OK(berth__map_put(ctx, &map, "weight", 2, &err));
  assert_true(berth__map_get(&map, "weight", &value));
  assert_int_equal(value, 2);
  assert_int_equal(map.count, 1);
  TEST_OK(berth__map_put(ctx, &map, "", 3, &err));
  assert_true(berth__map_get(&map, "", &value) && value == 3);
  berth__map_clear(ctx, &map);
  test_context_done(ctx, &alloc);
}

/* Against a plain array, with puts and removes in a random order. */
static void a_long_random_history_ends_right(void **state) {
  (void)state;
  enum {
    KEYS = 300,
    STEPS = 30000
  };
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  berth__map map = {0};
  berth_error err;
  uint32_t truth[KEYS] = {0}; /* 0: not there */
  uint32_t count = 0;
  uint64_t random = 1;
  for (uint32_t step = 1; step <= STEPS; step++) {
    uint32_t k = (uint32_t)(test_random(&random) % KEYS);
    char key[16];
    snprintf(key, sizeof key, "k%u", (unsigned)k);
    if (test_random(&random) % 2 == 0) {
      TEST_OK(berth__map_put(ctx, &map, key, step, &err));
      count += truth[k] == 0;
      truth[k] = step;
    } else {
      berth__map_remove(ctx, &map, key);
      count -= truth[k] != 0;
      truth[k] = 0;
    }
    assert_int_equal(map.count, count);
    if (step % 500 != 0) continue;
    for (uint32_t i = 0; i < KEYS; i++) {
      snprintf(key, sizeof key, "k%u", (unsigned)i);
      uint32_t value = 0;
      assert_int_equal(berth__map_get(&map, key, &value), truth[i] != 0);
      assert_int_equal(value, truth[i]);
    }
  }
  berth__map_clear(ctx, &map);
  assert_int_equal(map.count, 0);
  test_context_done(ctx, &alloc);
}

static berth_status fill_map(berth_context *ctx, berth_error *err, void *user) {
  (void)user;
  berth__map map = {0};
  berth_status status = BERTH_OK;
  uint32_t stored = 0;
  for (uint32_t i = 0; i < 40 && status == BERTH_OK; i++) {
    char key[16];
    snprintf(key, sizeof key, "key %u", (unsigned)i);
    status = berth__map_put(ctx, &map, key, i, err);
    stored += status == BERTH_OK;
  }
  assert_int_equal(map.count, stored); /* a failed put changes nothing */
  uint32_t value;
  for (uint32_t i = 0; i < stored; i++) {
    char key[16];
    snprintf(key, sizeof key, "key %u", (unsigned)i);
    assert_true(berth__map_get(&map, key, &value) && value == i);
  }
  berth__map_clear(ctx, &map);
  return status;
}

static void every_failing_allocation_leaves_the_map_as_it_was(void **state) {
  (void)state;
  assert_true(test_fail_each_allocation(fill_map, NULL) >= 40);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(an_empty_map_has_nothing),
      cmocka_unit_test(keys_are_copied_and_values_replaced),
      cmocka_unit_test(a_long_random_history_ends_right),
      cmocka_unit_test(every_failing_allocation_leaves_the_map_as_it_was),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
