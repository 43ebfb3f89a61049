/* Every rule of src/grad/grad.def against differences of f64 on the reference kernels; a rule without a case fails. */
#include "check.h"
#include "grad/grad.h"

/* quantize has none: its gradient leaves the rounding out (test_grad.c), and differences see it. */
static int has_case(const char *op) {
  if (strcmp(op, "quantize") == 0) return 1;
  for (const grad_case *c = grad_cases; c->op != NULL; c++)
    if (strcmp(c->op, op) == 0) return 1;
  return 0;
}

static void every_public_op_has_a_row_and_every_rule_a_case(void **state) {
  static const char *const listed[] = {
#define BERTH_GRAD(op, rule) #op,
#define BERTH_GRAD_ZERO(op) #op,
#define BERTH_GRAD_NONE(op) #op,
#include "grad/grad.def"
  };
  (void)state;
  for (int code = 0; code < BERTH__OP_COUNT; code++) {
    const berth__op *op = berth__op_builtin((berth__op_code)code);
    size_t rows = 0;
    for (size_t i = 0; i < sizeof listed / sizeof *listed; i++) rows += strcmp(listed[i], op->name) == 0;
    if (rows != (op->tier == BERTH__PUBLIC)) fail_msg("'%s' has %zu rows in grad.def", op->name, rows);
    if (berth__grad_row_of(op)->kind == BERTH__GRAD_RULE && !has_case(op->name))
      fail_msg("the rule of '%s' has no case in tests/grad/cases.c", op->name);
  }
}

static void rules_agree_with_differences(void **state) {
  size_t count = 0;
  int n_wrong = 0;
  (void)state;
  while (grad_cases[count].op != NULL) count++;
  for (size_t i = 0; i < count; i += (size_t)test_step()) n_wrong += grad_check_case(&grad_cases[i]);
  assert_int_equal(n_wrong, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_public_op_has_a_row_and_every_rule_a_case),
      cmocka_unit_test(rules_agree_with_differences),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
