/* Every op case on every device but the CPU. What a device does not do is in known_gpu.txt, with the reason, and must
 * really not be done: a case that is listed there and holds is a failure too.
 *
 *   BERTH_TEST_DEVICE=loops   that device alone
 *   BERTH_TEST_CASES=conv     cases alone with this in the name of their file or op */
#include <stdio.h>
#include <stdlib.h>

#include "case_graph.h"
#include "device/device.h"
#include "kernel/lower.h"
#include "support.h"

static op_cases cases;

#define MAX_KNOWN 256
static char *known[MAX_KNOWN]; /* names of cases, or "op NAME" */
static size_t n_known;

static int load(void **state) {
  (void)state;
  char path[1024], line[512];
  snprintf(path, sizeof path, "%s/../known_gpu.txt", op_cases_folder());
  FILE *file = fopen(path, "r");
  if (file == NULL) return -1;
  while (fgets(line, sizeof line, file) != NULL && n_known < MAX_KNOWN) {
    line[strcspn(line, ":#\n")] = '\0';
    if (line[0] != '\0') known[n_known++] = strdup(line);
  }
  fclose(file);
  return op_cases_load(&cases, op_cases_folder()) ? 0 : -1;
}

static int unload(void **state) {
  (void)state;
  op_cases_free(&cases);
  while (n_known > 0) free(known[--n_known]);
  return 0;
}

static bool is_listed(const char *name) {
  for (size_t i = 0; i < n_known; i++)
    if (strcmp(known[i], name) == 0) return true;
  return false;
}

static bool is_known(const op_case *c) {
  char op[128];
  snprintf(op, sizeof op, "op %s", c->op);
  return is_listed(c->name) || is_listed(op);
}

/* What a device may do in its own way, depending on what is under it. */
static bool is_open(const op_case *c, const char *device) {
  char name[256];
  snprintf(name, sizeof name, "on %s %s", device, c->name);
  return is_listed(name);
}

/* Sums and functions in f32, where the case was made in f64. */
static op_case loosened(const op_case *c) {
  op_case loose = *c;
  for (uint32_t i = 0; i < c->n_out; i++) {
    const berth_type type = c->out[i].type;
    if (type != BERTH_F32 && type != BERTH_F64 && type != BERTH_F16 && type != BERTH_BF16) continue;
    if (loose.relative < 2e-5) loose.relative = 2e-5;
    if (loose.absolute < 2e-6) loose.absolute = 2e-6;
  }
  return loose;
}

/* Whether a run refused an integer of 64 bits, which is right. */
static bool is_too_wide(berth_status status, const berth_error *err) {
  return status == BERTH_INVALID && strstr(err->message, "does not fit in the 32 bits") != NULL;
}

static bool holds_on(berth_context *ctx, const op_case *c, const char *device) {
  berth_error err = {.message = ""};
  berth_graph *graph = NULL;
  berth_session *session = NULL;
  berth_session_desc desc = BERTH_SESSION_DESC_INIT;
  const op_case loose = loosened(c);
  desc.device = device;
  desc.flags = BERTH_SESSION_CHECKED;
  berth_status status = case_build(ctx, c, CASE_NO_OPERAND, &graph, &err);
  if (status == BERTH_OK) status = case_fix_operands(graph, c, true, &err);
  if (status == BERTH_OK) status = berth_session_create(graph, &desc, &session, &err);
  if (status == BERTH_OK) status = case_run(session, c, &err);
  const bool refused = is_too_wide(status, &err);
  const bool good = refused || (status == BERTH_OK && case_matches(session, &loose, device, &err));
  if (status != BERTH_OK && !refused)
    fprintf(stderr, "%s:%d: %s on %s: %s\n", c->file, c->line, c->name, device, err.message);
  berth_session_destroy(session);
  berth_graph_destroy(graph);
  return good;
}

/* What rewriting for the CPU alone makes owes no kernel to a GPU. */
static bool is_for_cpu(const berth__op *op) { return op->tier == BERTH__MADE && !berth__lower_has(op); }

static bool is_wanted(const op_case *c) {
  const char *filter = getenv("BERTH_TEST_CASES");
  if (c->error != NULL || !case_is_graph(c) || is_for_cpu(berth__op_find(NULL, c->op))) return false;
  return filter == NULL || strstr(c->file, filter) != NULL || strstr(c->op, filter) != NULL;
}

/* A driver takes its time for every kernel, so a share of the cases will do where the interpreter has all of them: a
 * smaller one under the sanitizers, which a driver does not know of. On cuda every case is compiled, which nothing else
 * does. BERTH_TEST_SLOW asks for all, and so does who names cases. */
#define SHARE_OF_SANITIZED 16
#define SHARE_OF_DRIVERS 3

static size_t share_of(const char *device) {
  if (strcmp(device, "interp") == 0 || strncmp(device, "cuda", 4) == 0) return 1;
  if (getenv("BERTH_TEST_SLOW") != NULL || getenv("BERTH_TEST_CASES") != NULL) return 1;
  return TEST_IS_SANITIZED ? SHARE_OF_SANITIZED : SHARE_OF_DRIVERS;
}

/* Every op has its first case in the share. */
static bool is_in_share(size_t i, size_t share) {
  return i % share == 0 || (!TEST_IS_SANITIZED && strcmp(cases.items[i].op, cases.items[i - 1].op) != 0);
}

/* A driver may take longer to start than a case takes: something holds it from the first case to the last. */
typedef struct held_device {
  const berth__device *device;
  berth__engine *engine;
  berth__block *block;
} held_device;

static held_device hold(berth_context *ctx, const char *name) {
  held_device held = {0};
  berth_error err;
  TEST_OK(berth__device_find(name, &held.device, &err));
  TEST_OK(held.device->open(ctx, berth__device_which(name), 1, &held.engine, &err));
  TEST_OK(held.device->block_create(held.engine, 64, 64, NULL, &held.block, &err));
  return held;
}

static void let_go(const held_device *held) {
  held->device->block_destroy(held->block);
  held->device->close(held->engine);
}

static int count_failures(berth_context *ctx, const char *device) {
  int failures = 0, held = 0, left_out = 0;
  const held_device driver = hold(ctx, device);
  const size_t share = share_of(device);
  for (size_t i = 0; i < cases.count; i++) {
    if (!is_in_share(i, share) || !is_wanted(&cases.items[i])) continue;
    const bool holds = holds_on(ctx, &cases.items[i], device), listed = is_known(&cases.items[i]);
    held += holds;
    left_out += !holds && (listed || is_open(&cases.items[i], device));
    failures += holds == listed && (holds || !is_open(&cases.items[i], device));
    if (holds && listed) fprintf(stderr, "%s holds on %s but is in known_gpu.txt\n", cases.items[i].name, device);
  }
  let_go(&driver);
  print_message("# %s: %d cases hold, %d are known not to\n", device, held, left_out);
  return failures;
}

/* The validation layer watches every call of Vulkan where it is installed, and a message of it is an error. */
static void turn_validation_on(berth_context *ctx) {
  setenv("BERTH_VULKAN_VALIDATION", "1", 0);
  test_read_options(ctx);
  for (uint32_t d = 0; d < berth_device_count(ctx); d++) {
    berth_device_info info = BERTH_DEVICE_INFO_INIT;
    if (berth_device_at(ctx, d, &info, NULL) != BERTH_OK || info.available) continue;
    if (info.reason != NULL && strstr(info.reason, "validation layer") != NULL) {
      print_message("# without it: %s\n", info.reason);
      unsetenv("BERTH_VULKAN_VALIDATION");
    }
  }
  test_read_options(ctx);
}

static void every_case_holds_on_every_device(void **state) {
  (void)state;
  berth_error err;
  berth_context *ctx = test_context();
  const char *only = getenv("BERTH_TEST_DEVICE");
  int failures = 0;
  turn_validation_on(ctx);
  for (uint32_t d = 0; d < berth_device_count(ctx); d++) {
    berth_device_info info = BERTH_DEVICE_INFO_INIT;
    TEST_OK(berth_device_at(ctx, d, &info, &err));
    if (strcmp(info.name, "cpu") == 0 || (only != NULL && strcmp(info.name, only) != 0)) continue;
    if (!info.available)
      print_message("# skip: device %s: %s\n", info.name, info.reason);
    else
      failures += count_failures(ctx, info.name);
  }
  assert_int_equal(failures, 0);
  berth_context_destroy(ctx);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_case_holds_on_every_device)};
  return cmocka_run_group_tests(tests, load, unload);
}
