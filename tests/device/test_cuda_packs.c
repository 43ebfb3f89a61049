/* Packs: compiled kernels in a file, for a machine that has the driver but no compiler. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "support.h"

#ifdef BERTH__HAS_CUDA
#include "cuda_use.h"

/* Without targets, for the GPU that the plan was made for; the file may be named already where it is to be. */
static void a_pack_is_made_for_the_gpu_that_is_named(void **state) {
  const char *path = test_path("second_pack");
  gpu_fixture f;
  (void)state;
  cuda_set("FAKE_CUDA_SECOND", "80");
  cuda_set("BERTH_KERNEL_PACK", path);
  assert_string_equal(cuda_write_pack("cuda:1", path, NULL), "sm_80");
  const uint64_t compiled = cuda_fake->compiled;
  cuda_set("BERTH_NVRTC", "/nowhere/libnvrtc.so");
  cuda_start(&f, "cuda:1", 0);
  cuda_expect_right(f.session);
  cuda_finish(&f);
  assert_int_equal(cuda_fake->compiled, compiled);
  cuda_set("BERTH_NVRTC", cuda_library);
  cuda_set("BERTH_KERNEL_PACK", NULL);
  cuda_set("FAKE_CUDA_SECOND", NULL);
}

static void plans_that_are_not_packed(void **state) {
  berth_plan_desc desc = BERTH_PLAN_DESC_INIT;
  berth_context *contexts[2] = {test_context(), test_context()};
  berth_graph *graphs[2];
  berth_plan *plans[2];
  test_buffer bytes = {0};
  berth_error err;
  (void)state;
  desc.device = "cuda";
  for (int i = 0; i < 2; i++) {
    TEST_OK(berth_graph_parse(contexts[i], gpu_products_softmax, strlen(gpu_products_softmax), &graphs[i], &err));
    TEST_OK(berth_plan_create(graphs[i], &desc, &plans[i], &err));
  }
  const berth_plan *const missing[] = {plans[0], NULL}, *const mixed[] = {plans[0], plans[1]};
  test_expect_error(berth_kernels_pack(missing, 2, "sm_90", test_buffer_write, &bytes, &err), BERTH_INVALID, &err,
                    "plan 1 is NULL");
  test_expect_error(berth_kernels_pack(missing + 1, 1, "sm_90", test_buffer_write, &bytes, &err), BERTH_INVALID, &err,
                    "plan 0 is NULL");
  test_expect_error(berth_kernels_pack(mixed, 2, "sm_90", test_buffer_write, &bytes, &err), BERTH_INVALID, &err,
                    "plan 1 is of another context");
  assert_int_equal(bytes.size, 0);
  for (int i = 0; i < 2; i++) {
    berth_plan_destroy(plans[i]);
    berth_graph_destroy(graphs[i]);
    berth_context_destroy(contexts[i]);
  }
  test_buffer_free(&bytes);
}

/* Without a compiler: code for this GPU, for it and newer ones, or for one before. */
static void a_pack_stands_for_the_compiler(void **state) {
  static const char *const targets[] = {NULL, "sm_90", "compute_90", "sm_80,compute_80"};
  gpu_fixture f;
  (void)state;
  for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
    const char *path = test_path("pack");
    (void)cuda_write_pack("cuda", path, targets[i]);
    const uint64_t compiled = cuda_fake->compiled;
    cuda_set("BERTH_KERNEL_PACK", path);
    cuda_set("BERTH_NVRTC", "/nowhere/libnvrtc.so");
    assert_true(cuda_ask("cuda").available);
    cuda_start(&f, "cuda", 0);
    cuda_expect_right(f.session);
    cuda_finish(&f);
    assert_int_equal(cuda_fake->compiled, compiled);
    cuda_set("BERTH_NVRTC", cuda_library);
    cuda_set("BERTH_KERNEL_PACK", NULL);
  }
}

static void expect_no_session(berth_status status, const char *part) {
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  berth_session_desc desc = BERTH_SESSION_DESC_INIT;
  berth_session *session;
  berth_graph *graph;
  berth_error err;
  desc.device = "cuda";
  TEST_OK(berth_graph_parse(ctx, gpu_products_softmax, strlen(gpu_products_softmax), &graph, &err));
  test_expect_error(berth_session_create(graph, &desc, &session, &err), status, &err, part);
  berth_graph_destroy(graph);
  test_context_done(ctx, &alloc);
}

static void packs_that_are_none(void **state) {
  char path[1024], *bytes;
  struct stat about;
  (void)state;
  snprintf(path, sizeof path, "%s", test_path("bad_pack"));
  (void)cuda_write_pack("cuda", path, "sm_80"); /* for another GPU */
  cuda_set("BERTH_KERNEL_PACK", path);
  cuda_set("BERTH_NVRTC", "/nowhere/libnvrtc.so");
  expect_no_session(BERTH_UNSUPPORTED, "kernels are missing in the pack");
  assert_int_equal(stat(path, &about), 0);
  bytes = malloc((size_t)about.st_size);
  assert_non_null(bytes);
  FILE *file = fopen(path, "rb");
  assert_int_equal(fread(bytes, 1, (size_t)about.st_size, file), about.st_size);
  fclose(file);
  for (size_t n = 0; n < (size_t)about.st_size; n += 1 + n / 3) {
    test_write_file(path, bytes, n);
    expect_no_session(BERTH_INVALID, n < 16 ? "is no pack" : "is cut off");
  }
  bytes[8 + 7] = 0x7f; /* very many kernels */
  test_write_file(path, bytes, (size_t)about.st_size);
  expect_no_session(BERTH_INVALID, "is cut off");
  bytes[4] = 9;
  test_write_file(path, bytes, (size_t)about.st_size);
  expect_no_session(BERTH_INVALID, "another version");
  cuda_set("BERTH_KERNEL_PACK", "/nowhere/pack");
  expect_no_session(BERTH_IO, "cannot be opened");
  cuda_set("BERTH_NVRTC", cuda_library);
  (void)cuda_write_pack("cuda", path, "sm_90"); /* which does not look at the one that is named */
  cuda_set("BERTH_NVRTC", "/nowhere/libnvrtc.so");
  cuda_set("BERTH_KERNEL_PACK", path);
  file = fopen(path, "r+b"); /* damaged code counts as missing */
  assert_int_equal(fseek(file, -20, SEEK_END), 0);
  fputc('?', file);
  fclose(file);
  expect_no_session(BERTH_UNSUPPORTED, "kernels are missing in the pack");
  cuda_set("BERTH_NVRTC", cuda_library);
  cuda_set("BERTH_KERNEL_PACK", NULL);
  free(bytes);
}

static void targets_that_are_none(void **state) {
  berth_plan_desc desc = BERTH_PLAN_DESC_INIT;
  berth_context *ctx = test_context();
  test_buffer bytes = {0};
  berth_graph *graph;
  berth_plan *plan;
  berth_error err;
  (void)state;
  desc.device = "cuda";
  TEST_OK(berth_graph_parse(ctx, gpu_products_softmax, strlen(gpu_products_softmax), &graph, &err));
  TEST_OK(berth_plan_create(graph, &desc, &plan, &err));
  test_expect_error(berth_kernels_pack((const berth_plan *const[]){plan}, 1, "sm_91", test_buffer_write, &bytes, &err),
                    BERTH_UNSUPPORTED, &err,
                    "does not compile for sm_91, but for these compute capabilities: 75, 80, 90");
  static const char *const wrong[] = {
      "", "sm_", "sm_9x", "gfx90a", "compute_80,", "sm_900000000000000000000000", "sm_0", "sm_4294967386", "sm_1000"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
    test_expect_error(
        berth_kernels_pack((const berth_plan *const[]){plan}, 1, wrong[i], test_buffer_write, &bytes, &err),
        BERTH_INVALID, &err, "is not a compilation target");
  test_buffer_free(&bytes);
  berth_plan_destroy(plan);
  berth_graph_destroy(graph);
  berth_context_destroy(ctx);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_pack_stands_for_the_compiler),
      cmocka_unit_test(a_pack_is_made_for_the_gpu_that_is_named),
      cmocka_unit_test(targets_that_are_none),
      cmocka_unit_test(plans_that_are_not_packed),
      cmocka_unit_test(packs_that_are_none),
  };
  return cmocka_run_group_tests(tests, cuda_set_up, NULL);
}
#else
int main(void) { return test_skip_all("device cuda", "this build has no device cuda"); }
#endif
