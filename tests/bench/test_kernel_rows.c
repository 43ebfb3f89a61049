/* bench/kernels: the rows of its table are calls that the fast kernels take. */
#include "../../bench/kernels/row.h"
#include "support.h"

/* What a row says must be so for its figures to mean anything. */
static void check_row(const row *r, const berth__cpu_isa *isa) {
  subject s = {.shape = ""};
  r->make(&s, isa, r->size);
  if (s.call.kernel == NULL) fail_msg("%s, %s: %s has no kernel for it", r->kernel, s.shape, isa->name);
  if (strncmp(r->kernel, s.call.op->name, strlen(s.call.op->name)) != 0)
    fail_msg("%s, %s: the call is one of %s", r->kernel, s.shape, s.call.op->name);
  assert_true(s.shape[0] != '\0' && strlen(s.shape) < sizeof s.shape - 1);
  assert_true(s.call.args.end > 0 && call_bytes(&s.call) > 0);
  assert_int_equal(s.is_bytes, r->kernel[0] == 'q');
  call_free(&s.call);
}

static void every_row_has_a_kernel(void **state) {
  (void)state;
  for (uint32_t i = 0; berth__cpu_isa_at(i) != NULL; i++)
    for (const row *const *table = row_tables; *table != NULL; table++)
      for (const row *r = *table; r->kernel != NULL; r++) check_row(r, berth__cpu_isa_at(i));
}

static void bytes_and_operations(void **state) {
  static const int64_t size[8] = {2, 3, 5};
  const berth__cpu_isa *isa = berth__cpu_isa_at(0);
  subject s = {.shape = ""};
  (void)state;
  rows_of_products[0].make(&s, isa, size);
  assert_string_equal(s.shape, "2 x 3 x 5");
  assert_true(s.operations == 2 * 2 * 3 * 5);
  assert_int_equal(call_bytes(&s.call), 4 * (2 * 3 + 3 * isa->panel + 5 + 2 * 5));
  assert_int_equal(s.work.kind, BAR_MATMUL);
  call_run(&s.call);
  call_free(&s.call);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_row_has_a_kernel),
      cmocka_unit_test(bytes_and_operations),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
