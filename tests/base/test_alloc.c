/* The context, its allocator, descriptors of other versions, errors, types. */
#include "base/context.h"

#include <stdio.h>

#include "base/desc.h"
#include "base/thread.h"
#include "support.h"

static void a_context_needs_no_descriptor(void **state) {
  (void)state;
  berth_context *ctx = NULL;
  berth_error err;
  TEST_OK(berth_context_create(NULL, &ctx, &err));
  assert_int_equal(ctx->n_threads, berth__cpu_count());
  berth_context_destroy(ctx);
  berth_context_destroy(NULL);
}

static void a_descriptor_of_no_version_is_refused(void **state) {
  (void)state;
  const uint32_t sizes[] = {0, 1, 4, 7, 9, 5000, UINT32_MAX};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    berth_context_desc desc = BERTH_CONTEXT_DESC_INIT;
    desc.struct_size = sizes[i];
    berth_context *ctx = (berth_context *)&desc;
    berth_error err;
    berth_status status = berth_context_create(&desc, &ctx, &err);
    test_expect_error(status, BERTH_INVALID, &err, "berth_context_desc");
    assert_null(ctx);
    assert_int_equal(berth_context_create(&desc, &ctx, NULL), BERTH_INVALID);
  }
}

static void an_older_descriptor_gets_defaults_for_the_rest(void **state) {
  (void)state;
  test_alloc alloc = {0};
  berth_context_desc desc = BERTH_CONTEXT_DESC_INIT;
  desc.n_threads = 3;
  desc.alloc = test_alloc_callback;
  desc.user = &alloc;
  desc.struct_size = offsetof(berth_context_desc, alloc);
  berth_context *ctx = NULL;
  berth_error err;
  TEST_OK(berth_context_create(&desc, &ctx, &err));
  assert_int_equal(ctx->n_threads, 3);
  assert_null(ctx->user);
  assert_int_equal(alloc.calls, 0);
  berth_context_destroy(ctx);
}

static void a_newer_descriptor_is_cut(void **state) {
  (void)state;
  struct {
    berth_context_desc known;
    uint64_t later;
  } desc = {BERTH_CONTEXT_DESC_INIT, 7};
  desc.known.struct_size = sizeof desc;
  desc.known.n_threads = 5;
  berth_context_desc copy = BERTH_CONTEXT_DESC_INIT;
  berth_error err;
  TEST_OK(BERTH__DESC_COPY(&copy, &desc, "berth_context_desc", &err));
  assert_int_equal(copy.n_threads, 5);
  assert_int_equal(copy.struct_size, sizeof copy);
}

static void too_many_threads_and_no_place_are_refused(void **state) {
  (void)state;
  berth_context_desc desc = BERTH_CONTEXT_DESC_INIT;
  desc.n_threads = BERTH__MAX_THREADS + 1;
  berth_context *ctx;
  berth_error err;
  test_expect_error(berth_context_create(&desc, &ctx, &err), BERTH_INVALID, &err, "n_threads is 1025");
  test_expect_error(berth_context_create(NULL, NULL, &err), BERTH_INVALID, &err, NULL);
}

static void a_context_without_memory_fails(void **state) {
  (void)state;
  test_alloc alloc = {.fail_at = 1};
  berth_context_desc desc = BERTH_CONTEXT_DESC_INIT;
  desc.alloc = test_alloc_callback;
  desc.user = &alloc;
  berth_context *ctx;
  berth_error err;
  test_expect_error(berth_context_create(&desc, &ctx, &err), BERTH_NOMEM, &err, "context");
  assert_null(ctx);
  assert_int_equal(alloc.live_blocks, 0);
}

static void blocks_are_aligned_and_sizes_reach_the_allocator(void **state) {
  (void)state;
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  uint64_t before = alloc.live_bytes;
  for (size_t size = 0; size < 100; size++) {
    unsigned char *block = berth__alloc(ctx, size);
    assert_non_null(block);
    assert_int_equal((uintptr_t)block % 16, 0);
    if (size > 0) memset(block, 1, size);
    berth__free(ctx, block);
    assert_int_equal(alloc.live_bytes, before); /* the free named the same size as the allocation */
  }
  berth__free(ctx, NULL);
  test_context_done(ctx, &alloc);
}

static void sizes_that_overflow_give_null(void **state) {
  (void)state;
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  uint64_t calls = alloc.calls;
  assert_null(berth__alloc(ctx, SIZE_MAX));
  assert_null(berth__alloc_zero(ctx, SIZE_MAX - 8));
  assert_null(berth__alloc_array(ctx, SIZE_MAX / 2, 3));
  assert_null(berth__alloc_array_zero(ctx, SIZE_MAX / 2 + 2, 2));
  assert_null(berth__strndup(ctx, "", SIZE_MAX));
  assert_int_equal(alloc.calls, calls);
  test_context_done(ctx, &alloc);
}

static void zeroed_blocks_are_zero(void **state) {
  (void)state;
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc); /* hands out blocks full of 0xa5 */
  unsigned char *a = berth__alloc_zero(ctx, 33), *b = berth__alloc_array_zero(ctx, 11, 3);
  for (int i = 0; i < 33; i++) assert_true(a[i] == 0 && b[i] == 0);
  berth__free(ctx, a);
  berth__free(ctx, b);
  void *nothing = berth__alloc_array(ctx, 0, 0);
  assert_non_null(nothing);
  berth__free(ctx, nothing);
  test_context_done(ctx, &alloc);
}

static void a_failed_resize_keeps_the_block(void **state) {
  (void)state;
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  char *text = berth__strdup(ctx, "kept");
  alloc.fail_at = 1;
  assert_null(berth__realloc(ctx, text, 1000));
  assert_string_equal(text, "kept");
  text = berth__realloc(ctx, text, 1000);
  assert_string_equal(text, "kept");
  berth__free(ctx, text);
  assert_null(berth__strdup(ctx, NULL));
  char *part = berth__strndup(ctx, "abcdef", 3);
  assert_string_equal(part, "abc");
  berth__free(ctx, part);
  test_context_done(ctx, &alloc);
}

static void lists_grow_and_survive_failure(void **state) {
  (void)state;
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  struct {
    uint32_t *items;
    size_t count, capacity;
  } list = {NULL, 0, 0};
  berth_error err;
  uint64_t calls = alloc.calls;
  for (uint32_t i = 0; i < 1000; i++) {
    TEST_OK(BERTH__RESERVE(ctx, list.items, list.capacity, list.count + 1, &err));
    list.items[list.count++] = i;
  }
  assert_true(alloc.calls - calls < 20);
  size_t capacity = list.capacity;
  alloc.fail_at = 1;
  test_expect_error(BERTH__RESERVE(ctx, list.items, list.capacity, 100000, &err), BERTH_NOMEM, &err, "list");
  test_expect_error(BERTH__RESERVE(ctx, list.items, list.capacity, SIZE_MAX / 2, &err), BERTH_NOMEM, &err, NULL);
  assert_int_equal(list.capacity, capacity);
  for (uint32_t i = 0; i < 1000; i++) assert_int_equal(list.items[i], i);
  berth__free(ctx, list.items);
  test_context_done(ctx, &alloc);
}

static void long_messages_are_cut_at_a_whole_character(void **state) {
  (void)state;
  for (size_t lead = 0; lead < 4; lead++) {
    char text[2000];
    memset(text, 'x', lead);
    for (size_t i = lead; i + 3 < sizeof text; i += 3) memcpy(text + i, "\xe2\x82\xac", 4); /* the euro sign */
    berth_error err;
    assert_int_equal(berth__fail(&err, BERTH_IO, "%s", text), BERTH_IO);
    size_t length = strlen(err.message);
    assert_true(length < sizeof err.message && length > sizeof err.message - 8);
    assert_string_equal(err.message + length - 3, "...");
    assert_int_equal((length - 3 - lead) % 3, 0);
  }
}

static void a_message_gets_its_place_in_front(void **state) {
  (void)state;
  berth_error err;
  berth__fail(&err, BERTH_MALFORMED, "bad %d", 7);
  assert_int_equal(berth__fail_within(&err, BERTH_MALFORMED, "file \"%s\"", "a"), BERTH_MALFORMED);
  assert_string_equal(err.message, "file \"a\": bad 7");
  assert_int_equal(err.status, BERTH_MALFORMED);
  berth__fail(&err, BERTH_INVALID, "again: %s", err.message); /* the message as its own argument */
  assert_string_equal(err.message, "again: file \"a\": bad 7");
  berth__fail(&err, BERTH_IO, "name '%s'", "a\x1b[2J\nb\x7f"); /* nothing in a file's names reaches a terminal */
  assert_string_equal(err.message, "name 'a?[2J?b?'");
  assert_int_equal(berth__fail(NULL, BERTH_IO, "x"), BERTH_IO);
  assert_int_equal(berth__fail_within(NULL, BERTH_IO, "x"), BERTH_IO);
  assert_int_equal(berth__fail_nomem(NULL, "x"), BERTH_NOMEM);
}

static void statuses_and_types_have_names(void **state) {
  (void)state;
  assert_string_equal(berth_status_name(BERTH_DEVICE_NOMEM), "DEVICE_NOMEM");
  assert_string_equal(berth_status_text(BERTH_INFEASIBLE), "does not fit");
  int beyond = 99; /* not a constant, so that compilers do not object */
  assert_string_equal(berth_status_name((berth_status)beyond), "UNKNOWN");
  assert_string_equal(berth_type_name((berth_type)beyond), "none");
  assert_int_equal(berth_type_size((berth_type)beyond), 0);
  assert_string_equal(berth_version(), BERTH_VERSION);
#define CHECK_TYPE(name, value, text, bytes)                \
  assert_int_equal(BERTH_##name, value);                    \
  assert_string_equal(berth_type_name(BERTH_##name), text); \
  assert_int_equal(berth_type_size(BERTH_##name), bytes);   \
  assert_int_equal(berth_type_from_name(text), BERTH_##name);
  BERTH_TYPE_MAP(CHECK_TYPE)
#undef CHECK_TYPE
  assert_int_equal(berth_type_from_name("F32"), BERTH_TYPE_NONE);
  assert_int_equal(berth_type_from_name(NULL), BERTH_TYPE_NONE);
}

static void shapes_and_attributes_hold_what_they_get(void **state) {
  (void)state;
  berth_shape shape = BERTH_SHAPE(2, 3);
  assert_true(shape.rank == 2 && shape.dim[0].extent == 2 && shape.dim[1].extent == 3 && shape.dim[1].name == NULL);
  const int64_t many[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  assert_int_equal(berth_shape_fixed(12, many).rank, BERTH_MAX_RANK + 1);
  assert_int_equal(berth_shape_fixed(0, NULL).rank, 0);
  berth_attr attr = berth_attr_ints("axes", many, 3);
  assert_true(attr.kind == BERTH_ATTR_INTS && attr.count == 3 && attr.ints == many);
  assert_true(berth_attr_int("axis", -1).i == -1 && berth_attr_int("axis", -1).kind == BERTH_ATTR_INT);
  assert_true(berth_attr_float("eps", 0.5).f == 0.5);
  assert_string_equal(berth_attr_string("mode", "causal").s, "causal");
}

static char logged[600];
static int logged_level;
static void keep_log(void *user, int level, const char *text) {
  (void)user;
  logged_level = level;
  snprintf(logged, sizeof logged, "%s", text);
}

static void the_log_gets_whole_lines(void **state) {
  (void)state;
  berth_context_desc desc = BERTH_CONTEXT_DESC_INIT;
  berth_context *ctx = test_context();
  berth__log(ctx, 2, "silent %d", 1);
  assert_string_equal(logged, "");
  berth_context_destroy(ctx);
  desc.log = keep_log;
  berth_error err;
  TEST_OK(berth_context_create(&desc, &ctx, &err));
  berth__log(ctx, 1, "plan of %d bytes", 42);
  assert_string_equal(logged, "plan of 42 bytes");
  assert_int_equal(logged_level, 1);
  berth_context_destroy(ctx);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_context_needs_no_descriptor),
      cmocka_unit_test(a_descriptor_of_no_version_is_refused),
      cmocka_unit_test(an_older_descriptor_gets_defaults_for_the_rest),
      cmocka_unit_test(a_newer_descriptor_is_cut),
      cmocka_unit_test(too_many_threads_and_no_place_are_refused),
      cmocka_unit_test(a_context_without_memory_fails),
      cmocka_unit_test(blocks_are_aligned_and_sizes_reach_the_allocator),
      cmocka_unit_test(sizes_that_overflow_give_null),
      cmocka_unit_test(zeroed_blocks_are_zero),
      cmocka_unit_test(a_failed_resize_keeps_the_block),
      cmocka_unit_test(lists_grow_and_survive_failure),
      cmocka_unit_test(long_messages_are_cut_at_a_whole_character),
      cmocka_unit_test(a_message_gets_its_place_in_front),
      cmocka_unit_test(statuses_and_types_have_names),
      cmocka_unit_test(shapes_and_attributes_hold_what_they_get),
      cmocka_unit_test(the_log_gets_whole_lines),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
