/* Every op case as kernels of the kernel language, in every layout that its op takes.
 *
 *   BERTH_TEST_CASES=conv   cases alone with this in the name of their file or op */
#include <stdio.h>
#include <stdlib.h>

#include "lowered.h"
#include "support.h"

static op_cases cases;
static const berth__kernel_limits plain = {.group_size = 256, .lanes = 32, .shared_bytes = 32768, .shares_well = true};

static int load(void **state) {
  (void)state;
  return op_cases_load(&cases, op_cases_folder()) ? 0 : -1;
}

static int unload(void **state) {
  (void)state;
  op_cases_free(&cases);
  return 0;
}

static bool is_wanted(const op_case *c) {
  const char *filter = getenv("BERTH_TEST_CASES");
  if (c->error != NULL) return false;
  return filter == NULL || strstr(c->file, filter) != NULL || strstr(c->op, filter) != NULL;
}

static void check(const berth__kernel_limits *limits) {
  berth_context *ctx = test_context();
  int count[LOWERED_WIDE + 1] = {0};
  for (size_t i = 0; i < cases.count; i++)
    if (is_wanted(&cases.items[i])) count[lowered_run(ctx, &cases.items[i], limits)]++;
  print_message("# %d hold, %d have no kernel, %d do not fit 32 bits\n", count[LOWERED_HOLDS], count[LOWERED_UNABLE],
                count[LOWERED_WIDE]);
  assert_int_equal(count[LOWERED_FAILS], 0);
  berth_context_destroy(ctx);
}

static void cases_hold_where_shared_memory_pays(void **state) {
  (void)state;
  check(&plain);
}

static void cases_hold_where_it_does_not(void **state) {
  (void)state;
  check(&(berth__kernel_limits){.group_size = 1024, .lanes = 8, .shared_bytes = 32768});
}

/* What every WebGPU device has. */
static void cases_hold_within_the_least_limits(void **state) {
  (void)state;
  check(&(berth__kernel_limits){.group_size = 64, .lanes = 16, .shared_bytes = 16384, .shares_well = true});
}

static void cases_hold_where_lanes_exchange(void **state) {
  (void)state;
  check(&(berth__kernel_limits){
      .group_size = 128, .lanes = 8, .exchanges = true, .shared_bytes = 32768, .shares_well = true});
}

static berth_status make(berth_context *ctx, berth_error *err, void *user) {
  return lowered_make(ctx, user, &plain, err);
}

/* The first case of every op. */
static void lowering_survives_every_allocation_that_fails(void **state) {
  (void)state;
  berth_context *ctx = test_context();
  for (size_t i = 0; i < cases.count; i++) {
    op_case *c = &cases.items[i];
    berth_error err;
    bool is_first = is_wanted(c);
    for (size_t before = 0; before < i && is_first; before++)
      is_first = !is_wanted(&cases.items[before]) || strcmp(cases.items[before].op, c->op) != 0;
    if (is_first && lowered_make(ctx, c, &plain, &err) == BERTH_OK) test_fail_each_allocation(make, c);
  }
  berth_context_destroy(ctx);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(cases_hold_where_shared_memory_pays), cmocka_unit_test(cases_hold_where_it_does_not),
      cmocka_unit_test(cases_hold_within_the_least_limits), cmocka_unit_test(cases_hold_where_lanes_exchange),
      cmocka_unit_test(lowering_survives_every_allocation_that_fails)};
  return cmocka_run_group_tests(tests, load, unload);
}
