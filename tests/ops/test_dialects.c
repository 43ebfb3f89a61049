/* Op cases as Metal, played on the host (tests/device/fake_cuda), and as HIP, compiled by clang for AMD's GPUs of both
 * kinds, with 64 lanes and with 32 (tests/gpu/hip.sh): it needs nothing else for that. Neither has hardware here.
 *
 *   BERTH_TEST_CASES=conv   cases alone with this in the name of their file or op
 *   BERTH_TEST_SLOW=1       all of them: otherwise the first of every op, and as Metal a share of the others */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "device/fake_cuda/fake.h"
#include "kernel/render.h"
#include "lowered.h"
#include "support.h"

#define SHARE 11u /* one in so many */

static op_cases cases;
static char folder[1024];
static struct {
  fake_kernel *(*load)(const char *source);
  void (*free)(fake_kernel *kernel);
  int (*run)(const fake_kernel *kernel, unsigned groups, unsigned threads, void **params);
} host;

/* What Apple's GPUs have, and AMD's no less. */
static const berth__kernel_limits limits = {
    .group_size = 256, .lanes = 32, .exchanges = true, .shared_bytes = 32768, .shares_well = true};

static bool find(const char *name, void *function) {
  void *found = test_fake_cuda(name, NULL);
  memcpy(function, &found, sizeof found);
  return found != NULL;
}

static int set_up(void **state) {
  (void)state;
  const bool is_there = find("fake_kernel_load", &host.load) && find("fake_kernel_free", &host.free) &&
                        find("fake_kernel_run", &host.run);
  snprintf(folder, sizeof folder, "%s", test_path("dialects"));
  mkdir(folder, 0700);
  return is_there && op_cases_load(&cases, op_cases_folder()) ? 0 : -1;
}

static int tear_down(void **state) {
  (void)state;
  op_cases_free(&cases);
  return 0;
}

/* ---- Which cases ---- */

static bool matches(const op_case *c) {
  const char *filter = getenv("BERTH_TEST_CASES");
  if (c->error != NULL) return false;
  return filter == NULL || strstr(c->file, filter) != NULL || strstr(c->op, filter) != NULL;
}

static bool is_wanted(size_t index, bool is_share) {
  if (!matches(&cases.items[index])) return false;
  if (getenv("BERTH_TEST_SLOW") != NULL || getenv("BERTH_TEST_CASES") != NULL) return true;
  if (is_share && index % SHARE == 0) return true;
  for (size_t before = 0; before < index; before++)
    if (matches(&cases.items[before]) && strcmp(cases.items[before].op, cases.items[index].op) == 0) return false;
  return true;
}

static int run_all(const lowered_player *player, bool is_share) {
  berth_context *ctx = test_context();
  int count[LOWERED_WIDE + 1] = {0};
  for (size_t i = 0; i < cases.count; i++)
    if (is_wanted(i, is_share)) count[lowered_run_plain(ctx, &cases.items[i], &limits, player)]++;
  berth_context_destroy(ctx);
  print_message("# %d hold, %d have no kernel, %d do not fit 32 bits\n", count[LOWERED_HOLDS], count[LOWERED_UNABLE],
                count[LOWERED_WIDE]);
  assert_int_equal(count[LOWERED_FAILS], 0);
  return count[LOWERED_HOLDS];
}

/* ---- Metal ---- */

static berth_status run_metal(const char *source, const berth__kernel *kernel, const berth__kernel_memory *memory,
                              berth_error *err) {
  void *buffers[BERTH__KERNEL_BUFFERS], *params[BERTH__KERNEL_BUFFERS];
  fake_kernel *loaded = host.load(source);
  if (loaded == NULL) return berth__fail(err, BERTH_INTERNAL, "the kernel %s is no C++:\n%s", kernel->name, source);
  for (uint32_t i = 0; i < kernel->n_buffers; i++) {
    buffers[i] = memory[i].words;
    params[i] = &buffers[i];
  }
  const int result = host.run(loaded, (unsigned)kernel->n_groups, kernel->group_size, params);
  host.free(loaded);
  return result == 0 ? BERTH_OK : berth__fail(err, BERTH_INTERNAL, "the kernel %s stopped: %d", kernel->name, result);
}

static berth_status play_metal(const berth__kernel *kernel, const berth__kernel_memory *memory, void *user,
                               berth_error *err) {
  const berth__render_desc desc = {.windows = true};
  berth__text source;
  (void)user;
  berth__text_init(&source, kernel->ctx, NULL, NULL);
  berth_status status = berth__render_metal(kernel, &desc, &source, err);
  if (status == BERTH_OK) status = berth__text_finish(&source, err);
  if (status == BERTH_OK) status = run_metal(source.data, kernel, memory, err);
  berth__text_free(&source);
  return status;
}

static void cases_hold_as_metal(void **state) {
  (void)state;
  setenv("FAKE_CUDA_COLLECT", "1", 1);
  run_all(&(lowered_player){.play = play_metal, .only_looks = true}, true);
  unsetenv("FAKE_CUDA_COLLECT");
  assert_true(run_all(&(lowered_player){.play = play_metal}, true) > 0);
}

/* ---- HIP ---- */

static berth_status write_hip(const berth__kernel *kernel, const berth__kernel_memory *memory, void *user,
                              berth_error *err) {
  const berth__render_desc desc = {.windows = true};
  unsigned *n = user;
  char path[1100];
  berth__text source;
  (void)memory;
  berth__text_init(&source, kernel->ctx, NULL, NULL);
  berth_status status = berth__render_hip(kernel, &desc, &source, err);
  if (status == BERTH_OK) status = berth__text_finish(&source, err);
  snprintf(path, sizeof path, "%s/%06u.hip", folder, (*n)++);
  FILE *out = status == BERTH_OK ? fopen(path, "w") : NULL;
  if (out != NULL) {
    fputs(source.data, out);
    fclose(out);
  }
  berth__text_free(&source);
  return status;
}

static int compile_for(const char *gpu) {
  char command[4096];
  const char *here = getenv("BERTH_SRC");
  snprintf(command, sizeof command, "bash '%s/tests/gpu/hip.sh' '%s' %s", here != NULL ? here : ".", folder, gpu);
  return system(command);
}

static bool clang_knows(const char *gpu) {
  char command[256];
  snprintf(command, sizeof command,
           "clang -x hip --cuda-device-only --cuda-gpu-arch=%s -nogpuinc -nogpulib -S -o /dev/null - </dev/null "
           ">/dev/null 2>&1",
           gpu);
  return system(command) == 0;
}

static void cases_are_hip_for(const char *gpu) {
  static unsigned n;
  if (!clang_knows(gpu)) TEST_SKIP("there is no clang that compiles for this GPU (gfx1100 since 15)");
  if (TEST_IS_SANITIZED && getenv("BERTH_TEST_SLOW") == NULL)
    TEST_SKIP("the build without sanitizers compiles the same");
  if (n == 0) assert_true(run_all(&(lowered_player){.play = write_hip, .user = &n, .only_looks = true}, false) > 0);
  assert_true(n > 0);
  assert_int_equal(compile_for(gpu), 0);
}

static void cases_are_hip_for_gfx90a(void **state) {
  (void)state;
  cases_are_hip_for("gfx90a");
}

static void cases_are_hip_for_gfx1030(void **state) {
  (void)state;
  cases_are_hip_for("gfx1030");
}

static void cases_are_hip_for_gfx1100(void **state) {
  (void)state;
  cases_are_hip_for("gfx1100");
}

/* Matrix units are no part of either language yet: such kernels are expanded first, and are refused otherwise. */
static void tiles_are_refused(void **state) {
  (void)state;
  berth_context *ctx = test_context();
  berth__kernel *k;
  berth_error err;
  TEST_OK(berth__kernel_create(ctx, "copies", &k, &err));
  const uint32_t b = berth__kernel_buffer_of(k, 0, BERTH_F32);
  berth__x_commit(k);
  berth__x_store(k, b, berth__x_i32(k, 0), berth__x_f32(k, 1));
  TEST_OK(berth__kernel_finish(k, &err));
  for (int metal = 0; metal < 2; metal++) {
    berth__text out;
    berth__text_init(&out, ctx, NULL, NULL);
    const berth__render_desc desc = {.windows = true};
    test_expect_error(metal ? berth__render_metal(k, &desc, &out, &err) : berth__render_hip(k, &desc, &out, &err),
                      BERTH_INTERNAL, &err, "commit, has no form in this language");
    berth__text_free(&out);
  }
  berth__kernel_destroy(k);
  berth_context_destroy(ctx);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(cases_hold_as_metal), cmocka_unit_test(cases_are_hip_for_gfx90a),
                                     cmocka_unit_test(cases_are_hip_for_gfx1030),
                                     cmocka_unit_test(cases_are_hip_for_gfx1100), cmocka_unit_test(tiles_are_refused)};
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
