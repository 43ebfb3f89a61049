/* Inside the packer: boxes waste no more than they may and come apart into placements without overlaps, beams find
 * what fits, and both survive every allocation that fails. */
#include "plan/pack/beam.h"
#include "plan/pack/boxes.h"
#include "plan/pack/prepare.h"
#include "support/support.h"

enum {
  N_ITEMS = 40,
  N_SECTIONS = 24
};

typedef struct instance {
  berth__pack_item items[N_ITEMS];
  int64_t offsets[N_ITEMS];
  berth__pack_part part;
} instance;

/* Lifetimes and sizes from few values, so that many items have a partner; alignments on demand. */
static void make_instance(instance *in, uint64_t seed, int aligned) {
  in->part = (berth__pack_part){
      .items = in->items, .offsets = in->offsets, .n = N_ITEMS, .n_sections = N_SECTIONS, .height = INT64_MAX};
  for (uint32_t i = 0; i < N_ITEMS; i++) {
    uint32_t lo = (uint32_t)(test_random(&seed) % (N_SECTIONS - 1) & ~UINT32_C(1));
    uint32_t hi = lo + 1 + (uint32_t)(test_random(&seed) % (N_SECTIONS - lo));
    int64_t size = 1 + (int64_t)(test_random(&seed) % 6), align = aligned ? 1 + (int64_t)(test_random(&seed) % 3) : 1;
    in->items[i] = (berth__pack_item){
        .size = size, .align = align, .fixed = BERTH__PACK_NO_OFFSET, .span = hi - lo, .lo = lo, .hi = hi, .id = i};
  }
  int64_t load[N_SECTIONS];
  berth__pack_loads(in->items, N_ITEMS, N_SECTIONS, load);
  for (uint32_t s = 0; s < N_SECTIONS; s++)
    if (load[s] > in->part.lower_bound) in->part.lower_bound = load[s];
}

static void assert_placed(const instance *in, const int64_t *offsets, int64_t height) {
  for (uint32_t i = 0; i < N_ITEMS; i++) {
    const berth__pack_item *a = &in->items[i];
    assert_true(offsets[i] >= 0 && offsets[i] % a->align == 0 && offsets[i] + a->size <= height);
    for (uint32_t j = 0; j < i; j++) {
      const berth__pack_item *b = &in->items[j];
      if (!berth__pack_conflict(a, b)) continue;
      assert_true(offsets[i] + a->size <= offsets[j] || offsets[j] + b->size <= offsets[i]);
    }
  }
}

static int64_t area_of_items(const instance *in) {
  int64_t area = 0;
  for (uint32_t i = 0; i < N_ITEMS; i++) area += in->items[i].size * (in->items[i].hi - in->items[i].lo);
  return area;
}

/* Neither the area nor any load may be larger than promised; every item is in a box that lives as long as it. */
static void assert_boxes(const instance *in, const berth__pack_boxes *boxes, uint32_t percent) {
  int64_t area = 0, load[N_SECTIONS] = {0};
  for (uint32_t k = 0; k < boxes->n; k++) {
    const berth_pack_buffer *b = &boxes->buffers[k];
    area += (int64_t)b->size * (b->upper - b->lower);
    for (int64_t s = b->lower; s < b->upper; s++) load[s] += (int64_t)b->size;
  }
  assert_true(area >= area_of_items(in) && area * 100 <= area_of_items(in) * (100 + (int64_t)percent));
  for (uint32_t s = 0; s < N_SECTIONS; s++) assert_true(load[s] <= in->part.lower_bound);
  for (uint32_t i = 0; i < N_ITEMS; i++) {
    const berth_pack_buffer *b = &boxes->buffers[boxes->box_of[i]];
    assert_true(b->lower <= in->items[i].lo && b->upper >= in->items[i].hi);
    assert_true(boxes->within[i] >= 0 && boxes->within[i] + in->items[i].size <= (int64_t)b->size);
  }
}

static void boxes_come_apart(void **state) {
  (void)state;
  static const uint32_t percents[] = {0, 2, 10};
  uint32_t fewest = N_ITEMS;
  for (uint64_t seed = 1; seed <= 300; seed++) {
    instance in;
    berth_error err;
    berth_context *ctx = test_context();
    uint32_t percent = percents[seed % 3];
    make_instance(&in, seed, seed % 4 == 0);
    berth__pack_boxes boxes;
    uint64_t box_offsets[N_ITEMS], ticks = 0;
    TEST_OK(berth__pack_boxes_make(ctx, &in.part, percent, seed % 5, &boxes, &ticks, &err));
    assert_boxes(&in, &boxes, percent);
    if (boxes.n < fewest) fewest = boxes.n;
    berth_pack_desc d = BERTH_PACK_DESC_INIT;
    d.effort = 1;
    berth_pack_result r = BERTH_PACK_RESULT_INIT;
    TEST_OK(berth_pack(ctx, boxes.buffers, boxes.n, &d, box_offsets, &r, &err));
    TEST_OK(berth__pack_boxes_open(&boxes, &in.part, box_offsets, in.offsets, &ticks, &err));
    assert_placed(&in, in.offsets, (int64_t)r.size);
    assert_true(ticks > 0);
    berth__pack_boxes_release(&boxes);
    berth_context_destroy(ctx);
  }
  assert_true(fewest < N_ITEMS / 2);
}

/* Equal lifetimes are stacked, equal sizes put side by side, until four boxes of one item and one of four are left. */
static void equal_items_share_a_box(void **state) {
  (void)state;
  static const struct {
    uint32_t lo, hi;
    int64_t size;
  } given[] = {{0, 2, 3}, {0, 2, 4}, {2, 4, 7}, {4, 6, 7}, {0, 6, 40}, {1, 3, 11}, {3, 5, 13}};
  enum {
    N = sizeof given / sizeof *given
  };
  berth__pack_item items[N];
  berth__pack_part part = {.items = items, .n = N, .n_sections = 6, .lower_bound = 100};
  for (uint32_t i = 0; i < N; i++)
    items[i] = (berth__pack_item){
        .size = given[i].size, .align = 1, .fixed = BERTH__PACK_NO_OFFSET, .lo = given[i].lo, .hi = given[i].hi};
  berth_error err;
  berth_context *ctx = test_context();
  berth__pack_boxes boxes;
  uint64_t ticks = 0;
  TEST_OK(berth__pack_boxes_make(ctx, &part, 0, 0, &boxes, &ticks, &err));
  assert_int_equal(boxes.n, 4);
  for (uint32_t i = 1; i < 4; i++) assert_int_equal(boxes.box_of[i], boxes.box_of[0]);
  assert_int_equal(boxes.buffers[boxes.box_of[0]].size, 7);
  assert_int_equal(boxes.within[0] + boxes.within[1], boxes.within[0] == 0 ? 3 : 4);
  berth__pack_boxes_release(&boxes);
  items[6].fixed = 5;
  TEST_OK(berth__pack_boxes_make(ctx, &part, 0, 0, &boxes, &ticks, &err));
  assert_int_equal(boxes.n, N);
  berth__pack_boxes_release(&boxes);
  berth_context_destroy(ctx);
}

static berth_status run_boxes(berth_context *ctx, berth_error *err, void *user) {
  instance *in = user;
  berth__pack_boxes boxes;
  uint64_t box_offsets[N_ITEMS], ticks = 0, top = 0;
  berth_status status = berth__pack_boxes_make(ctx, &in->part, 2, 1, &boxes, &ticks, err);
  if (status != BERTH_OK) return status;
  for (uint32_t k = 0; k < boxes.n; k++) {
    box_offsets[k] = top;
    top += boxes.buffers[k].size;
  }
  status = berth__pack_boxes_open(&boxes, &in->part, box_offsets, in->offsets, &ticks, err);
  berth__pack_boxes_release(&boxes);
  return status;
}

/* A beam within the capacity that stacking everything takes finds something; within one below the load, nothing. */
static berth_status run_beams(berth_context *ctx, berth_error *err, void *user) {
  instance *in = user;
  berth__pack_budget budget = {.limit = UINT64_MAX};
  berth__pack_beam *beam;
  int found = 0;
  uint64_t ticks = UINT64_C(4000000);
  assert_true(berth__pack_beam_suits(&in->part, ticks));
  berth_status status = berth__pack_beam_create(ctx, &in->part, 1, ticks, &beam, err);
  if (status != BERTH_OK) return status;
  status = berth__pack_beam_run(beam, in->part.lower_bound - 1, &budget, in->offsets, &found, err);
  assert_false(found);
  if (status == BERTH_OK)
    status = berth__pack_beam_run(beam, in->part.lower_bound * 2, &budget, in->offsets, &found, err);
  if (status == BERTH_OK) {
    assert_true(found);
    assert_placed(in, in->offsets, in->part.lower_bound * 2);
  }
  berth__pack_beam_destroy(beam);
  return status;
}

/* The whole packer with an effort that is enough for boxes. */
static berth_status run_packer(berth_context *ctx, berth_error *err, void *user) {
  const instance *in = user;
  berth_pack_buffer b[N_ITEMS];
  uint64_t offset[N_ITEMS];
  for (uint32_t i = 0; i < N_ITEMS; i++)
    b[i] = (berth_pack_buffer){(uint64_t)in->items[i].size, 0, in->items[i].lo, in->items[i].hi, BERTH_PACK_FREE};
  berth_pack_result r = BERTH_PACK_RESULT_INIT;
  berth_pack_desc d = BERTH_PACK_DESC_INIT;
  d.effort = 4000;
  return berth_pack(ctx, b, N_ITEMS, &d, offset, &r, err);
}

static void every_allocation_may_fail(void **state) {
  (void)state;
  static const test_operation operations[] = {run_boxes, run_beams, run_packer};
  for (size_t k = 0; k < sizeof operations / sizeof *operations; k++) {
    instance in;
    make_instance(&in, 5, 0);
    assert_true(test_fail_each_allocation(operations[k], &in) > 8);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(boxes_come_apart),
      cmocka_unit_test(equal_items_share_a_box),
      cmocka_unit_test(every_allocation_may_fail),
  };
  return cmocka_run_group_tests_name("pack_boxes", tests, NULL, NULL);
}
