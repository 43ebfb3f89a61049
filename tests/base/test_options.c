/* Settings: a field, the variable over it, and both read once. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "support.h"

static const char *const variables[] = {
    "BERTH_CPU_ISA",
    "BERTH_CPU_BACKEND",
    "BERTH_CACHE_DIR",
    "BERTH_SHADERC",
    "BERTH_VULKAN_MEMORY",
    "BERTH_VULKAN_VALIDATION",
    "BERTH_VULKAN_TIMEOUT",
    "BERTH_VULKAN_MAX_BINDING",
    "BERTH_WEBGPU_LIBRARY",
    "BERTH_WEBGPU_OFFSETS",
    "BERTH_WEBGPU_TIMEOUT",
    "BERTH_WEBGPU_MAX_BINDING",
    "BERTH_LOOPS_SHARED",
    "BERTH_ARENA_NO_REUSE",
    "BERTH_MEMORY_LIMIT",
    "BERTH_HASH_SEED",
    "BERTH_CATCH_SIGBUS",
    "BERTH_CUDA_LIBRARY",
    "BERTH_NVRTC",
    "BERTH_CUDA_TIMEOUT",
    "BERTH_KERNEL_PACK",
    "CUDA_PATH",
    "CUDA_HOME",
};

static int clear(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) unsetenv(variables[i]);
  return 0;
}

static berth_context *make(const berth_options *options) {
  berth_context_desc desc = BERTH_CONTEXT_DESC_INIT;
  berth_context *ctx;
  berth_error err;
  desc.options = options;
  TEST_OK(berth_context_create(&desc, &ctx, &err));
  return ctx;
}

static berth_options all_fields(void) {
  berth_options options = BERTH_OPTIONS_INIT;
  options.flags = BERTH_OPTION_NO_REUSE | BERTH_OPTION_LOOPS_UNSHARED | BERTH_OPTION_CATCH_SIGBUS;
  options.cpu_isa = "portable";
  options.cpu_backend = "dnnl";
  options.cache_dir = "/a/cache";
  options.shaderc = "/a/shaderc";
  options.vulkan_memory = "staged";
  options.vulkan_validation = "sync";
  options.vulkan_timeout = 7.5;
  options.vulkan_max_binding = 4096;
  options.webgpu_library = "/a/dawn";
  options.webgpu_offsets = "static";
  options.webgpu_timeout = 2;
  options.webgpu_max_binding = 8192;
  options.memory_limit = 1 << 20;
  options.hash_seed = 77;
  options.cuda_library = "/a/libcuda";
  options.nvrtc = "/a/nvrtc";
  options.cuda_timeout = 9;
  options.kernel_pack = "/a/pack";
  return options;
}

static void fields_are_kept(void **state) {
  (void)state;
  berth_options given = all_fields();
  berth_context *ctx = make(&given);
  memset(&given, 0x55, sizeof given); /* copied, not referred to */
  const berth__options *o = &ctx->options;
  assert_true(o->no_reuse && o->loops_unshared);
  assert_string_equal(o->cpu_isa, "portable");
  assert_string_equal(o->cpu_backend, "dnnl");
  assert_string_equal(o->cache_dir, "/a/cache");
  assert_string_equal(o->shaderc, "/a/shaderc");
  assert_string_equal(o->vulkan_memory, "staged");
  assert_string_equal(o->vulkan_validation, "sync");
  assert_true(o->vulkan_timeout == 7.5 && o->webgpu_timeout == 2);
  assert_int_equal(o->vulkan_max_binding, 4096);
  assert_string_equal(o->webgpu_library, "/a/dawn");
  assert_string_equal(o->webgpu_offsets, "static");
  assert_int_equal(o->webgpu_max_binding, 8192);
  assert_int_equal(o->memory_limit, 1 << 20);
  assert_int_equal(o->hash_seed, 77);
  assert_string_equal(o->cuda_library, "/a/libcuda");
  assert_string_equal(o->nvrtc, "/a/nvrtc");
  assert_true(o->cuda_timeout == 9);
  assert_string_equal(o->kernel_pack, "/a/pack");
  assert_true(o->catches_sigbus);
  berth_context_destroy(ctx);
}

static void variables_override_fields(void **state) {
  (void)state;
  static const char *const values[] = {"avx2",     "other",  "/b/cache", "/b/shaderc", "mapped", "1",
                                       "3",        "100000", "/b/wgpu",  "dynamic",    "4",      "2e5",
                                       "1",        "0",      "1e9",      "5",          "0",      "/b/libcuda",
                                       "/b/nvrtc", "11",     "/b/pack",  "/b/cuda",    "/b/home"};
  for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) setenv(variables[i], values[i], 1);
  const berth_options given = all_fields();
  berth_context *ctx = make(&given);
  clear(NULL); /* read once: what the environment says later changes nothing */
  const berth__options *o = &ctx->options;
  assert_false(o->no_reuse || o->loops_unshared);
  assert_string_equal(o->cpu_isa, "avx2");
  assert_string_equal(o->cpu_backend, "other");
  assert_string_equal(o->cache_dir, "/b/cache");
  assert_string_equal(o->shaderc, "/b/shaderc");
  assert_string_equal(o->vulkan_memory, "mapped");
  assert_string_equal(o->vulkan_validation, "1");
  assert_true(o->vulkan_timeout == 3 && o->webgpu_timeout == 4);
  assert_int_equal(o->vulkan_max_binding, 100000);
  assert_string_equal(o->webgpu_library, "/b/wgpu");
  assert_string_equal(o->webgpu_offsets, "dynamic");
  assert_int_equal(o->webgpu_max_binding, 200000);
  assert_int_equal(o->memory_limit, 1000000000);
  assert_int_equal(o->hash_seed, 5);
  assert_string_equal(o->cuda_library, "/b/libcuda");
  assert_string_equal(o->nvrtc, "/b/nvrtc");
  assert_string_equal(o->cuda_path, "/b/cuda"); /* before CUDA_HOME */
  assert_true(o->cuda_timeout == 11);
  assert_string_equal(o->kernel_pack, "/b/pack");
  assert_false(o->catches_sigbus);
  berth_context_destroy(ctx);
}

static void without_any_all_is_default(void **state) {
  (void)state;
  setenv("BERTH_CACHE_DIR", "", 1); /* no cache; the others are unset or empty, which is the same */
  setenv("BERTH_CPU_ISA", "", 1);
  berth_context *ctx = make(NULL);
  const berth__options none = {0};
  assert_memory_equal(&ctx->options, &none, sizeof none);
  berth_context_destroy(ctx);
}

static void expect_refused(const berth_options *options, const char *part) {
  test_alloc alloc = {0};
  berth_context_desc desc = BERTH_CONTEXT_DESC_INIT;
  berth_context *ctx;
  berth_error err;
  desc.alloc = test_alloc_callback;
  desc.user = &alloc;
  desc.options = options;
  test_expect_error(berth_context_create(&desc, &ctx, &err), BERTH_INVALID, &err, part);
  assert_null(ctx);
  assert_int_equal(atomic_load(&alloc.live_blocks), 0);
}

static void wrong_values_are_refused(void **state) {
  (void)state;
  berth_options o = BERTH_OPTIONS_INIT;
  o.vulkan_memory = "both", expect_refused(&o, "vulkan_memory");
  o = all_fields(), o.webgpu_offsets = "moving", expect_refused(&o, "webgpu_offsets");
  o = all_fields(), o.vulkan_timeout = -1, expect_refused(&o, "vulkan_timeout");
  o = all_fields(), o.webgpu_timeout = 1e9, expect_refused(&o, "webgpu_timeout");
  o = all_fields(), o.flags |= 1u << 20, expect_refused(&o, "flags");
  o = all_fields(), o.struct_size = 3, expect_refused(&o, "berth_options");
  setenv("BERTH_VULKAN_MEMORY", "both", 1);
  o = all_fields(), expect_refused(&o, "BERTH_VULKAN_MEMORY");
}

static void an_older_struct_will_do(void **state) {
  (void)state;
  berth_options given = all_fields();
  given.struct_size = (uint32_t)offsetof(berth_options, webgpu_library);
  berth_context *ctx = make(&given);
  assert_int_equal(ctx->options.vulkan_max_binding, 4096);
  assert_null(ctx->options.webgpu_library);
  assert_int_equal(ctx->options.webgpu_max_binding, 0);
  berth_context_destroy(ctx);
}

/* Every allocation of making a context fails once. */
static void no_memory_is_an_error(void **state) {
  (void)state;
  const berth_options given = all_fields();
  berth_status status = BERTH_NOMEM;
  for (uint64_t k = 1; status != BERTH_OK; k++) {
    test_alloc alloc = {0};
    berth_context_desc desc = BERTH_CONTEXT_DESC_INIT;
    berth_context *ctx;
    berth_error err;
    desc.alloc = test_alloc_callback;
    desc.user = &alloc;
    desc.options = &given;
    atomic_store(&alloc.fail_at, k);
    status = berth_context_create(&desc, &ctx, &err);
    if (status != BERTH_OK) test_expect_error(status, BERTH_NOMEM, &err, NULL);
    assert_true((status == BERTH_OK) == (ctx != NULL));
    assert_true(status != BERTH_OK || k == 13);
    berth_context_destroy(ctx);
    assert_int_equal(atomic_load(&alloc.live_blocks), 0);
  }
}

/* ---- Memory ---- */

static void limits_of_memory_name_what_is_asked_for(void **state) {
  (void)state;
  berth_options given = BERTH_OPTIONS_INIT;
  berth_error err;
  given.memory_limit = 1000;
  berth_context *ctx = make(&given);
  TEST_OK(berth__memory_check(ctx, 1000, "the arena", BERTH_DEVICE_NOMEM, &err));
  berth_status status = berth__memory_check(ctx, 1001, "the arena", BERTH_DEVICE_NOMEM, &err);
  test_expect_error(status, BERTH_DEVICE_NOMEM, &err, "the arena needs 1001 bytes");
  test_expect_error(status, BERTH_DEVICE_NOMEM, &err, "the memory limit of this context is 1000");
  berth_context_destroy(ctx);
  ctx = make(NULL);
  TEST_OK(berth__memory_check(ctx, 1 << 20, "the arena", BERTH_DEVICE_NOMEM, &err));
  status = berth__memory_check(ctx, UINT64_MAX - 1, "the arena", BERTH_NOMEM, &err);
  test_expect_error(status, BERTH_NOMEM, &err, "BERTH_MEMORY_LIMIT");
  berth_context_destroy(ctx);
}

static void write_below(const char *root, const char *path, const char *text) {
  char whole[1024];
  snprintf(whole, sizeof whole, "%s/%s", root, path);
  for (char *slash = whole + strlen(root) + 1; (slash = strchr(slash, '/')) != NULL; slash++) {
    *slash = '\0';
    (void)mkdir(whole, 0700);
    *slash = '/';
  }
  test_write_file(whole, text, strlen(text));
}

/* The least of a group's limit and of those around it, in both versions of control groups. */
static void control_groups_limit_memory(void **state) {
  (void)state;
  char root[512];
  snprintf(root, sizeof root, "%s", test_path("groups"));
  assert_int_equal(mkdir(root, 0700), 0);
  assert_true(berth__memory_of_groups(root) == UINT64_MAX); /* no groups at all */
  write_below(root, "proc/self/cgroup", "0::/a/b/c\n");
  assert_true(berth__memory_of_groups(root) == UINT64_MAX); /* no files */
  write_below(root, "sys/fs/cgroup/a/b/c/memory.max", "max\n");
  assert_true(berth__memory_of_groups(root) == UINT64_MAX);
  write_below(root, "sys/fs/cgroup/a/memory.max", "123456789012\n");
  assert_true(berth__memory_of_groups(root) == UINT64_C(123456789012));
  write_below(root, "sys/fs/cgroup/a/b/c/memory.max", "5000\n");
  assert_int_equal(berth__memory_of_groups(root), 5000);
  write_below(root, "sys/fs/cgroup/memory.max", "4000\n"); /* in a container, its own group looks like the root */
  assert_int_equal(berth__memory_of_groups(root), 4000);
  write_below(root, "proc/self/cgroup", "7:cpu,memory2:/x\n4:memory:/d/e\n0::/nowhere\n");
  write_below(root, "sys/fs/cgroup/memory/d/memory.limit_in_bytes", "3000\n");
  assert_int_equal(berth__memory_of_groups(root), 3000);
  write_below(root, "proc/self/cgroup", "nonsense\n0:\n::\n\n");
  assert_int_equal(berth__memory_of_groups(root), 4000); /* "::" is the root's */
}

/* ---- Keys of maps ---- */

static void maps_have_random_keys(void **state) {
  (void)state;
  berth_options given = BERTH_OPTIONS_INIT;
  given.hash_seed = 12;
  berth_context *same[2] = {make(&given), make(&given)}, *other[2] = {make(NULL), make(NULL)};
  assert_memory_equal(same[0]->hash_key, same[1]->hash_key, sizeof same[0]->hash_key);
  assert_memory_not_equal(other[0]->hash_key, other[1]->hash_key, sizeof other[0]->hash_key);
  for (int i = 0; i < 2; i++) {
    berth_context_destroy(same[i]);
    berth_context_destroy(other[i]);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(fields_are_kept, clear, clear),
      cmocka_unit_test_setup_teardown(variables_override_fields, clear, clear),
      cmocka_unit_test_setup_teardown(without_any_all_is_default, clear, clear),
      cmocka_unit_test_setup_teardown(wrong_values_are_refused, clear, clear),
      cmocka_unit_test_setup_teardown(an_older_struct_will_do, clear, clear),
      cmocka_unit_test_setup_teardown(no_memory_is_an_error, clear, clear),
      cmocka_unit_test_setup_teardown(limits_of_memory_name_what_is_asked_for, clear, clear),
      cmocka_unit_test_setup_teardown(control_groups_limit_memory, clear, clear),
      cmocka_unit_test_setup_teardown(maps_have_random_keys, clear, clear),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
