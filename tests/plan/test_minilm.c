/* A MiniLM-L6 encoder: the plan takes as many bytes as it must, and no more. */
#include "minilm.h"

#include <stdio.h>

#include "plan/planning.h"

static const minilm_shape l6 = MINILM_L6;

#define ROWS (128u * 384u * 4u)   /* hidden states */
#define INNER (128u * 1536u * 4u) /* inside the feed-forward part */

static const berth_plan *plan_minilm(fixture *f, uint32_t flags) {
  berth_error err;
  if (f->graph == NULL) TEST_OK(build_minilm(f->ctx, &l6, &f->graph, &err));
  return plan_again(f, flags);
}

static void test_smallest(void **state) {
  berth_plan_info info = test_plan_info(plan_minilm(*state, 0));
  print_message("MiniLM-L6: activations %llu, bound %llu, scratch %llu, unshared %llu\n",
                (unsigned long long)info.activations_size, (unsigned long long)info.activations_lower_bound,
                (unsigned long long)info.scratch_size, (unsigned long long)info.total_unshared);
  assert_int_equal(info.activations_size, 1376256);
  assert_int_equal(info.activations_size, 2 * ROWS + INNER + ROWS);
  assert_int_equal(info.activations_lower_bound, info.activations_size);
  assert_int_equal(info.arena_size, info.weights_size + info.activations_size + info.scratch_size);
}

static void test_smallest_when_the_input_dies(void **state) {
  berth_plan_info info = test_plan_info(plan_minilm(*state, BERTH_PLAN_INPUTS_DIE));
  assert_int_equal(info.activations_size, 1179648);
  assert_int_equal(info.activations_lower_bound, info.activations_size);
}

static void test_no_reuse(void **state) {
  berth_plan_info shared = test_plan_info(plan_minilm(*state, 0));
  berth_plan_info info = test_plan_info(plan_minilm(*state, BERTH_PLAN_NO_REUSE));
  assert_true(info.activations_size > 34000000);
  assert_int_equal(info.arena_size, shared.total_unshared);
  assert_int_equal(info.saved, 0);
}

/* What a planner without in-place results needs: twice the inner part, and the hidden states (and the input). */
static void test_without_in_place(void **state) {
  assert_int_equal(activations_size(plan_minilm(*state, BERTH_PLAN_NO_INPLACE)), 2 * INNER + 2 * ROWS);
  const berth_plan *plan = plan_minilm(*state, BERTH_PLAN_NO_INPLACE | BERTH_PLAN_INPUTS_DIE);
  assert_int_equal(activations_size(plan), 1769472);
}

static void test_packed_qkv_is_read_through_strides(void **state) {
  const berth_plan *plan = plan_minilm(*state, 0);
  static const char *const parts[] = {"q", "k", "v"};
  for (uint32_t layer = 0; layer < l6.layers; layer++) {
    char packed[64], part[64], attention[64];
    snprintf(packed, sizeof packed, "layer%u.qkv", layer);
    snprintf(attention, sizeof attention, "layer%u.attention", layer);
    for (uint32_t i = 0; i < 3; i++) {
      snprintf(part, sizeof part, "layer%u.%s", layer, parts[i]);
      berth_slot slot = slot_of(plan, part), whole = slot_of(plan, packed);
      assert_true(slot.is_view);
      assert_int_equal(slot.root, whole.root); /* the product, which the bias was added to in place */
      assert_int_equal(slot.root_offset, i * 384 * 4);
      assert_int_equal(slot.stride[0], 1152);
      assert_int_equal(slot.stride[1], 1);
      assert_int_equal(slot.death, slot_of(plan, attention).birth + 1);
      assert_true(whole.death >= slot.death);
    }
    assert_false(share_bytes(plan, packed, attention));
  }
}

/* Small, so that a run under sanitizers stays short. */
static void test_run(void **state) {
  fixture *f = *state;
  const minilm_shape small = {2, 24, 3, 96, 10};
  berth_error err;
  TEST_OK(build_minilm(f->ctx, &small, &f->graph, &err));
  for (uint32_t i = 0; i < 4; i++) {
    berth_plan_desc desc = desc_with(i & 1 ? BERTH_PLAN_INPUTS_DIE : 0);
    desc.order = i & 2 ? BERTH_ORDER_MEMORY : BERTH_ORDER_SOURCE;
    assert_runs_alike(f->graph, &desc);
  }
}

static void test_errors_come_through(void **state) {
  fixture *f = *state;
  const minilm_shape uneven = {1, 25, 3, 96, 10};
  berth_error err;
  test_expect_error(build_minilm(f->ctx, &uneven, &f->graph, &err), BERTH_INVALID, &err, "attention");
  assert_null(f->graph);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      PLAN_TEST(test_smallest),
      PLAN_TEST(test_smallest_when_the_input_dies),
      PLAN_TEST(test_no_reuse),
      PLAN_TEST(test_without_in_place),
      PLAN_TEST(test_packed_qkv_is_read_through_strides),
      PLAN_TEST(test_run),
      PLAN_TEST(test_errors_come_through),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
