/* The device "vulkan": which one is taken, what it is told by the environment, and bytes in and out of its blocks. */
#include <stdio.h>
#include <stdlib.h>

#include "support.h"
#include "vulkan.h"

#ifdef BERTH__HAS_VULKAN
#include "block_model.h"
#include "device/vulkan/vulkan.h"

static berth_status open_named(berth_context *ctx, const char *which, berth_error *err) {
  berth__engine *engine = NULL;
  berth_status status = berth__vulkan_device.open(ctx, which, 1, &engine, err);
  berth__vulkan_device.close(engine);
  return status;
}

static void is_chosen_by_number_and_name(void **state) {
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  berth_device_info info = BERTH_DEVICE_INFO_INIT;
  berth_error err;
  char part[8];
  (void)state;
  berth__vulkan_device.describe(ctx, 0, &info);
  assert_true(info.available && info.memory != 0 && info.reason == NULL);
  assert_non_null(strstr(info.description, "Vulkan 1."));
  snprintf(part, sizeof part, "%c%.3s", info.description[0] ^ 0x20, info.description + 1); /* the other case */
  TEST_OK(open_named(ctx, NULL, &err));
  TEST_OK(open_named(ctx, "0", &err));
  TEST_OK(open_named(ctx, part, &err));
  test_expect_error(open_named(ctx, "99", &err), BERTH_UNSUPPORTED, &err, "vulkan:99");
  test_expect_error(open_named(ctx, "99999999999999999999", &err), BERTH_UNSUPPORTED, &err, "number");
  test_expect_error(open_named(ctx, "no such device", &err), BERTH_UNSUPPORTED, &err, "no such device");
  test_expect_error(open_named(ctx, "", &err), BERTH_UNSUPPORTED, &err, NULL);
  test_context_done(ctx, &alloc);
}

static void names_reach_the_device(void **state) {
  static const char text[] = "graph \"s\" { input %x : f32[4] output \"x\" = %x }";
  static const struct {
    const char *name, *part;
  } wrong[] = {{"vulkan:no such", "no such"}, {"cpu:0", "cpu"}, {"vulka", "vulka"}, {"vulkanx", "vulkanx"}};
  berth_context *ctx = test_context();
  berth_session_desc desc = BERTH_SESSION_DESC_INIT;
  berth_session *session, *clone;
  berth_graph *graph;
  berth_error err;
  (void)state;
  TEST_OK(berth_graph_parse(ctx, text, sizeof text - 1, &graph, &err));
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    desc.device = wrong[i].name;
    test_expect_error(berth_session_create(graph, &desc, &session, &err), BERTH_UNSUPPORTED, &err, wrong[i].part);
  }
  desc.device = "vulkan:0";
  TEST_OK(berth_session_create(graph, &desc, &session, &err));
  TEST_OK(berth_session_clone(session, &clone, &err));
  berth_session_destroy(clone);
  berth_session_destroy(session);
  berth_graph_destroy(graph);
  berth_context_destroy(ctx);
}

/* The loader asks the environment every time. */
static void says_why_it_is_not_there(void **state) {
  berth_context *ctx = test_context();
  berth_device_info info = BERTH_DEVICE_INFO_INIT;
  berth_error err;
  (void)state;
  setenv("VK_ICD_FILENAMES", "/nowhere/driver.json", 1);
  setenv("VK_DRIVER_FILES", "/nowhere/driver.json", 1);
  berth__vulkan_device.describe(ctx, 0, &info);
  assert_false(info.available);
  assert_non_null(strstr(info.reason, "driver"));
  assert_int_equal(berth__vulkan_device.count(ctx), 1);
  test_expect_error(open_named(ctx, NULL, &err), BERTH_UNSUPPORTED, &err, info.reason);
  unsetenv("VK_ICD_FILENAMES");
  unsetenv("VK_DRIVER_FILES");
  TEST_OK(open_named(ctx, NULL, &err));
  berth_context_destroy(ctx);
}

static void refuses_wrong_options(void **state) {
  static const struct {
    const char *name, *value;
  } wrong[] = {{"BERTH_VULKAN_MEMORY", "both"},          {"BERTH_VULKAN_TIMEOUT", "soon"},
               {"BERTH_VULKAN_TIMEOUT", "-1"},           {"BERTH_VULKAN_TIMEOUT", "nan"},
               {"BERTH_VULKAN_MAX_BINDING", "0"},        {"BERTH_VULKAN_MAX_BINDING", "1e99"},
               {"BERTH_VULKAN_MAX_BINDING", "12 apples"}};
  test_alloc alloc = {0};
  berth_context_desc desc = BERTH_CONTEXT_DESC_INIT;
  berth_context *ctx;
  berth_error err;
  (void)state;
  desc.alloc = test_alloc_callback;
  desc.user = &alloc;
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    setenv(wrong[i].name, wrong[i].value, 1);
    test_expect_error(berth_context_create(&desc, &ctx, &err), BERTH_INVALID, &err, wrong[i].name);
    assert_null(ctx);
    unsetenv(wrong[i].name);
  }
  assert_int_equal(atomic_load(&alloc.live_blocks), 0);
}

/* ---- Blocks ---- */

#define SIZE ((uint64_t)5 << 20) /* more than the ring holds */

/* Two blocks of one engine and one of another. */
static void compare_with_model(const char *memory, bool is_cached, uint64_t seed) {
  const berth__device *device = &berth__vulkan_device;
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  berth__engine *engines[2];
  berth__block *blocks[BLOCK_MODELS];
  berth_error err;
  vulkan_test_memory(memory);
  test_read_options(ctx);
  for (int i = 0; i < 2; i++) TEST_OK(device->open(ctx, NULL, 1, &engines[i], &err));
  for (uint32_t i = 0; i < BLOCK_MODELS; i++) {
    TEST_OK(device->block_create(engines[i / 2], SIZE, 64, NULL, &blocks[i], &err));
    assert_true((device->host(blocks[i]) != NULL) == (strcmp(memory, "mapped") == 0));
    if (is_cached) continue;
    blocks[i]->is_cached = false; /* as on most cards */
    TEST_OK(berth__vulkan_ring_need(engines[i / 2], &err));
  }
  block_model_compare(device, blocks, SIZE, 150, seed);
  for (uint32_t i = 0; i < BLOCK_MODELS; i++) device->block_destroy(blocks[i]);
  for (int i = 0; i < 2; i++) {
    assert_int_equal(engines[i]->counts.memory, engines[i]->ring.allocated);
    device->close(engines[i]);
  }
  vulkan_test_memory(NULL);
  test_context_done(ctx, &alloc);
  vulkan_test_silent();
}

static void blocks_are_memory(void **state) {
  (void)state;
  compare_with_model("mapped", true, 1);
  compare_with_model("mapped", false, 2);
  for (uint64_t seed = 3; seed < 6; seed++) compare_with_model("staged", true, seed);
}

static void validation_says_nothing(void **state) {
  (void)state;
  vulkan_test_silent();
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(is_chosen_by_number_and_name),
      cmocka_unit_test(names_reach_the_device),
      cmocka_unit_test(says_why_it_is_not_there),
      cmocka_unit_test(refuses_wrong_options),
      cmocka_unit_test(blocks_are_memory),
      cmocka_unit_test(validation_says_nothing),
  };
  const char *reason = vulkan_test_start();
  if (reason == NULL) return cmocka_run_group_tests(tests, NULL, NULL);
  return test_skip_all("device vulkan", reason);
}
#else
int main(void) { return test_skip_all("device vulkan", vulkan_test_start()); }
#endif
