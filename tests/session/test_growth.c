/* Structs with struct_size: a caller of an older header gets its own fields and nothing past them, a caller of a newer
 * one gets zeros for what this library does not know, and a size that no version has is refused. */
#include "sessions.h"

typedef struct asked {
  berth_context *ctx;
  const berth_graph *graph;
  const berth_plan *plan;
  const berth_weights *weights;
} asked;

/* One way to ask for a result that may grow. */
typedef struct growing {
  const char *name;
  size_t size;  /* of the struct */
  size_t older; /* of one that ends after its first fields */
  berth_status (*ask)(const asked *a, void *out, berth_error *err);
} growing;

static berth_status ask_value(const asked *a, void *out, berth_error *err) {
  return berth_graph_value(a->graph, berth_graph_input_at(a->graph, 0), out, err);
}

static berth_status ask_node(const asked *a, void *out, berth_error *err) {
  return berth_graph_node(a->graph, 0, out, err);
}

static berth_status ask_weight(const asked *a, void *out, berth_error *err) {
  return berth_weights_at(a->weights, 0, out, err);
}

static berth_status ask_device(const asked *a, void *out, berth_error *err) {
  return berth_device_at(a->ctx, 0, out, err);
}

static berth_status ask_plan(const asked *a, void *out, berth_error *err) {
  return berth_plan_get_info(a->plan, out, err);
}

static berth_status ask_slot(const asked *a, void *out, berth_error *err) {
  return berth_plan_slot(a->plan, berth_graph_find(a->graph, "y"), out, err);
}

static berth_status ask_scratch(const asked *a, void *out, berth_error *err) {
  return berth_plan_scratch(a->plan, 0, out, err);
}

static berth_status ask_segments(const asked *a, void *out, berth_error *err) {
  uint32_t n = 0;
  return berth_plan_segments(a->plan, out, 1, &n, err);
}

static berth_status ask_preset(const asked *a, void *out, berth_error *err) {
  (void)a;
  return berth_plan_preset(BERTH_PRESET_BACKWARD, out, err);
}

static berth_status ask_format(const asked *a, void *out, berth_error *err) {
  (void)a;
  return berth_format_at(0, out, err);
}

static berth_status ask_pack(const asked *a, void *out, berth_error *err) {
  const berth_pack_buffer buffer = {.size = 64, .lower = 0, .upper = 1, .offset = BERTH_PACK_FREE};
  uint64_t offset;
  return berth_pack(a->ctx, &buffer, 1, NULL, &offset, out, err);
}

#define RESULT(type, second, ask) \
  { #type, sizeof(type), offsetof(type, second), ask }

static const growing results[] = {
    RESULT(berth_value_info, kind, ask_value),       RESULT(berth_node_info, op, ask_node),
    RESULT(berth_weight_info, type, ask_weight),     RESULT(berth_device_info, description, ask_device),
    RESULT(berth_plan_info, weights_size, ask_plan), RESULT(berth_slot, size, ask_slot),
    RESULT(berth_slot, size, ask_scratch),           RESULT(berth_segment, device, ask_segments),
    RESULT(berth_plan_desc, align, ask_preset),      RESULT(berth_pack_result, lower_bound, ask_pack),
    RESULT(berth_format_info, name, ask_format),
};
#define N_RESULTS (sizeof results / sizeof *results)
#define ROOM 1024
#define CANARY 0xa5

typedef union room {
  uint32_t struct_size;
  uint64_t align;
  void *pointer;
  unsigned char byte[ROOM];
} room;

static void prepare(room *r, size_t struct_size) {
  memset(r, CANARY, sizeof *r);
  r->struct_size = (uint32_t)struct_size;
}

static void assert_untouched(const room *r, size_t from) {
  for (size_t i = from; i < ROOM; i++) assert_int_equal(r->byte[i], CANARY);
}

static void check(const growing *want, const asked *a) {
  static const uint32_t wrong[] = {0, 1, 4, 7, 9, 4100, UINT32_MAX};
  room whole, part, more;
  berth_error err;
  prepare(&whole, want->size);
  TEST_OK(want->ask(a, &whole, &err));
  assert_int_equal(whole.struct_size, want->size);
  assert_untouched(&whole, want->size);

  prepare(&part, want->older);
  TEST_OK(want->ask(a, &part, &err));
  assert_int_equal(part.struct_size, want->older);
  assert_memory_equal(part.byte + 4, whole.byte + 4, want->older - 4);
  assert_untouched(&part, want->older);

  prepare(&more, want->size + 64);
  TEST_OK(want->ask(a, &more, &err));
  assert_int_equal(more.struct_size, want->size + 64);
  assert_memory_equal(more.byte + 4, whole.byte + 4, want->size - 4);
  for (size_t i = want->size; i < want->size + 64; i++) assert_int_equal(more.byte[i], 0);
  assert_untouched(&more, want->size + 64);

  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    prepare(&part, wrong[i]);
    test_expect_error(want->ask(a, &part, &err), BERTH_INVALID, &err, "struct_size");
    assert_untouched(&part, 4);
  }
  if (want->ask != ask_segments) /* which then counts */
    test_expect_error(want->ask(a, NULL, &err), BERTH_INVALID, &err, "pointer");
}

static const char safetensors[] =
    "\x38\0\0\0\0\0\0\0"
    "{\"w\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}  "
    "\0\0\x80\x3f";

static void results_of_every_version(void **state) {
  (void)state;
  fixture f;
  berth_error err;
  berth_weights *weights;
  session_start(&f);
  TEST_OK(berth_weights_from_memory(f.ctx, safetensors, sizeof safetensors - 1, &weights, &err));
  const asked a = {f.ctx, f.graph, berth_session_plan(f.session), weights};
  for (size_t i = 0; i < N_RESULTS; i++) {
    print_message("# %s\n", results[i].name);
    check(&results[i], &a);
  }
  berth_weights_destroy(weights);
  session_finish(&f);
}

/* The entries of a list are as far apart as the caller's struct is large. */
static void lists_step_by_the_callers_size(void **state) {
  (void)state;
  struct {
    berth_segment known;
    uint64_t later[2];
  } out[2];
  fixture f;
  berth_error err;
  uint32_t n;
  memset(out, CANARY, sizeof out);
  out[0].known.struct_size = (uint32_t)sizeof out[0];
  session_start(&f);
  TEST_OK(berth_plan_segments(berth_session_plan(f.session), &out[0].known, 2, &n, &err));
  assert_int_equal(n, 1);
  assert_string_equal(out[0].known.device, "cpu");
  assert_int_equal(out[0].later[0] | out[0].later[1], 0);
  assert_int_equal(out[1].known.struct_size, 0xa5a5a5a5); /* there is one segment: the second entry stays */
  session_finish(&f);
}

/* What the library makes and the program reads. */
static int progress_size(void *user, const berth_pack_progress *progress) {
  *(uint32_t *)user = progress->struct_size;
  return 0;
}

static void what_the_library_makes_says_its_size(void **state) {
  (void)state;
  berth_pack_buffer buffers[64];
  uint64_t offsets[64], seed = 3;
  uint32_t size = 0;
  berth_error err;
  berth_pack_desc desc = BERTH_PACK_DESC_INIT;
  berth_pack_result result = BERTH_PACK_RESULT_INIT;
  berth_context *ctx = test_context();
  for (size_t i = 0; i < 64; i++) {
    const int64_t lower = (int64_t)(test_random(&seed) % 40);
    buffers[i] = (berth_pack_buffer){.size = 1 + test_random(&seed) % 1000,
                                     .lower = lower,
                                     .upper = lower + 1 + (int64_t)(test_random(&seed) % 20),
                                     .offset = BERTH_PACK_FREE};
  }
  desc.progress = progress_size;
  desc.user = &size;
  TEST_OK(berth_pack(ctx, buffers, 64, &desc, offsets, &result, &err));
  assert_int_equal(size, sizeof(berth_pack_progress));
  berth_context_destroy(ctx);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(results_of_every_version),
      cmocka_unit_test(lists_step_by_the_callers_size),
      cmocka_unit_test(what_the_library_makes_says_its_size),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
