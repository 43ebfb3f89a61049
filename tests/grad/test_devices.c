/* The gradients of every case on every device but the CPU, compared with the reference kernels.
 *
 *   BERTH_TEST_DEVICE=interp   that device alone */
#include <stdlib.h>

#include "check.h"

/* A driver takes its time for every kernel: a share of the cases does there, where the interpreter has all of them. */
static size_t share_of(const char *device) {
  if (strcmp(device, "interp") == 0) return (size_t)test_step();
  return getenv("BERTH_TEST_SLOW") != NULL ? 1 : TEST_IS_SANITIZED ? 40 : 8;
}

/* Loops that a run ends cannot be recorded; all else must be taken. */
static int may_be_refused(const grad_case *c) { return strstr(c->text, "loop_begin") != NULL; }

static int count_wrong(const char *device) {
  const size_t share = share_of(device);
  int n_wrong = 0, n_held = 0, n_refused = 0;
  for (size_t i = 0; grad_cases[i].op != NULL; i++) {
    berth_error why;
    if (i % share != 0) continue;
    const int wrong = grad_check_case_on(&grad_cases[i], device, &why);
    n_refused += wrong < 0;
    n_held += wrong == 0;
    if (wrong < 0 && !may_be_refused(&grad_cases[i])) {
      print_error("%s on %s: { %s }: %s\n", grad_cases[i].op, device, grad_cases[i].text, why.message);
      n_wrong++;
    }
    n_wrong += wrong > 0;
  }
  print_message("# %s: the gradients of %d cases hold, %d are not taken\n", device, n_held, n_refused);
  return n_wrong;
}

static void gradients_agree_on_every_device(void **state) {
  berth_context *ctx = test_context();
  const char *only = getenv("BERTH_TEST_DEVICE");
  int n_wrong = 0;
  (void)state;
  for (uint32_t d = 0; d < berth_device_count(ctx); d++) {
    berth_device_info info = BERTH_DEVICE_INFO_INIT;
    berth_error err;
    OK(berth_device_at(ctx, d, &info, &err));
    if (strcmp(info.name, "cpu") == 0 || (only != NULL && strcmp(info.name, only) != 0)) continue;
    if (!info.available)
      print_message("# skip: device %s: %s\n", info.name, info.reason);
    else
      n_wrong += count_wrong(info.name);
  }
  berth_context_destroy(ctx);
  assert_int_equal(n_wrong, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(gradients_agree_on_every_device)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
