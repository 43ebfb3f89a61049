#include "support.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/context.h"
#include "base/half.h"

/* Output before a crash must not be lost. */
__attribute__((constructor)) static void print_by_line(void) { setvbuf(stdout, NULL, _IOLBF, 0); }

static int must_fail(test_alloc *alloc) {
  uint64_t left = atomic_load(&alloc->fail_at);
  while (left != 0 && !atomic_compare_exchange_weak(&alloc->fail_at, &left, left - 1)) {
  }
  if (left != 1) return 0;
  atomic_fetch_add(&alloc->failed, 1);
  return 1;
}

static void note_bytes(test_alloc *alloc, uint64_t old_size, uint64_t new_size) {
  uint64_t live = atomic_fetch_add(&alloc->live_bytes, new_size - old_size) + new_size - old_size;
  uint64_t peak = atomic_load(&alloc->peak_bytes);
  while (new_size > old_size && live > peak && !atomic_compare_exchange_weak(&alloc->peak_bytes, &peak, live)) {
  }
}

void *test_alloc_callback(void *user, void *ptr, size_t old_size, size_t new_size) {
  test_alloc *alloc = user;
  if (new_size == 0) {
    free(ptr);
    if (ptr != NULL) atomic_fetch_sub(&alloc->live_blocks, 1);
    note_bytes(alloc, old_size, 0);
    return NULL;
  }
  atomic_fetch_add(&alloc->calls, 1);
  if (must_fail(alloc)) return NULL;
  void *moved = malloc(new_size); /* always moves, so that stale pointers are detected */
  if (moved == NULL) return NULL;
  memset(moved, 0xa5, new_size); /* nothing may rely on cleared memory */
  if (ptr != NULL) {
    memcpy(moved, ptr, old_size < new_size ? old_size : new_size);
    free(ptr);
  } else {
    atomic_fetch_add(&alloc->live_blocks, 1);
  }
  note_bytes(alloc, old_size, new_size);
  return moved;
}

static _Atomic uint64_t n_validation;

static void count_validation(void *user, int level, const char *text) {
  (void)user;
  if (level == 2 && strncmp(text, "vulkan validation: ", 19) == 0) atomic_fetch_add(&n_validation, 1);
}

uint64_t test_validation_messages(void) { return atomic_load(&n_validation); }

berth_context *test_context_counting(test_alloc *alloc) {
  berth_context_desc desc = BERTH_CONTEXT_DESC_INIT;
  desc.n_threads = 2;
  desc.log = count_validation;
  if (alloc != NULL) {
    desc.alloc = test_alloc_callback;
    desc.user = alloc;
  }
  berth_context *ctx = NULL;
  berth_error err;
  TEST_OK(berth_context_create(&desc, &ctx, &err));
  return ctx;
}

berth_context *test_context(void) { return test_context_counting(NULL); }

void test_read_options(berth_context *ctx) {
  berth_error err;
  berth__options_free(ctx, &ctx->options);
  TEST_OK(berth__options_read(ctx, NULL, &ctx->options, &err));
}

void test_context_done(berth_context *ctx, test_alloc *alloc) {
  berth_context_destroy(ctx);
  if (atomic_load(&alloc->live_blocks) != 0) {
    fail_msg("%llu blocks (%llu bytes) were not freed", (unsigned long long)atomic_load(&alloc->live_blocks),
             (unsigned long long)atomic_load(&alloc->live_bytes));
  }
  assert_int_equal(atomic_load(&alloc->live_bytes), 0);
}

uint64_t test_fail_each_allocation(test_operation fn, void *user) {
  for (uint64_t k = 1;; k += k < 100 ? 1 : test_step()) {
    test_alloc alloc = {0};
    berth_context *ctx = test_context_counting(&alloc);
    berth_error err = {BERTH_OK, ""};
    atomic_store(&alloc.fail_at, k);
    berth_status status = fn(ctx, &err, user);
    uint64_t failed = atomic_load(&alloc.failed);
    atomic_store(&alloc.fail_at, 0);
    test_context_done(ctx, &alloc);
    if (failed == 0) {
      test_expect_ok(status, &err, "the operation with no allocation failing", __FILE__, __LINE__);
      return k - 1;
    }
    if (status != BERTH_OK && status != BERTH_NOMEM) {
      fail_msg("allocation %llu failed and gave %s, not NOMEM: %s", (unsigned long long)k, berth_status_name(status),
               err.message);
    }
    if (status == BERTH_NOMEM) assert_true(err.status == BERTH_NOMEM && err.message[0] != '\0');
  }
}

void test_expect_error(berth_status status, berth_status want, const berth_error *err, const char *part) {
  if (status != want) {
    fail_msg("expected %s, got %s: %s", berth_status_name(want), berth_status_name(status),
             status != BERTH_OK ? err->message : "");
  }
  assert_int_equal(err->status, want);
  assert_true(err->message[0] != '\0');
  if (part != NULL && strstr(err->message, part) == NULL) {
    fail_msg("the message has no \"%s\": %s", part, err->message);
  }
}

void test_expect_ok(berth_status status, const berth_error *err, const char *expr, const char *file, int line) {
  if (status == BERTH_OK) return;
  print_error("%s gave %s: %s\n", expr, berth_status_name(status), err->message);
  _fail(file, line);
}

uint64_t test_random(uint64_t *state) {
  uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
  return z ^ z >> 31;
}

void test_random_blocks(berth_type type, void *data, uint64_t size, uint64_t *state) {
  static const struct {
    berth_type type;
    int at, least_at; /* offsets of the scale, and of the minima's scale or the offset; -1: none */
    float scale, least;
  } rows[] = {
      {BERTH_Q8_0, 0, -1, 0x1p-7f, 0},    {BERTH_Q4_0, 0, -1, 0x1p-3f, 0},      {BERTH_Q4_1, 0, 2, 0x1p-3f, -1},
      {BERTH_Q5_0, 0, -1, 0x1p-4f, 0},    {BERTH_Q5_1, 0, 2, 0x1p-4f, -1},      {BERTH_Q2_K, 80, 82, 0x1p-5f, 0x1p-4f},
      {BERTH_Q3_K, 108, -1, 0x1p-7f, 0},  {BERTH_Q4_K, 0, 2, 0x1p-9f, 0x1p-6f}, {BERTH_Q5_K, 0, 2, 0x1p-10f, 0x1p-6f},
      {BERTH_Q6_K, 208, -1, 0x1p-12f, 0}, {BERTH_IQ2_XXS, 0, -1, 0x1p-7f, 0},   {BERTH_IQ4_NL, 0, -1, 0x1p-7f, 0},
      {BERTH_IQ4_XS, 0, -1, 0x1p-12f, 0}, {BERTH_MXFP4, -1, -1, 0, 0},          {BERTH_IQ2_XS, 0, -1, 0x1p-7f, 0},
      {BERTH_IQ2_S, 0, -1, 0x1p-7f, 0},   {BERTH_IQ3_XXS, 0, -1, 0x1p-8f, 0},   {BERTH_IQ3_S, 0, -1, 0x1p-8f, 0},
      {BERTH_Q4_0F, 0, -1, 0x1p-3f, 0},   {BERTH_Q4_1F, 0, 4, 0x1p-3f, -1}};
  const uint32_t bytes = berth_type_storage(type).bytes;
  uint8_t *block = data;
  for (uint64_t i = 0; i < size; i++) block[i] = (uint8_t)test_random(state);
  for (; size >= bytes; size -= bytes, block += bytes)
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
      if (rows[r].type != type) continue;
      const float by = 0.75f + 0.25f * test_random_f32(state);
      const float real[2] = {rows[r].scale * by, rows[r].least * by};
      const uint16_t scale = berth__f32_to_f16(real[0]), least = berth__f32_to_f16(real[1]);
      if (rows[r].at < 0) block[0] = (uint8_t)(123 + test_random(state) % 3);
      if (type == BERTH_Q4_0F || type == BERTH_Q4_1F) { /* which have f32 */
        memcpy(block, real, type == BERTH_Q4_0F ? sizeof *real : sizeof real);
        continue;
      }
      if (rows[r].at >= 0) memcpy(block + rows[r].at, &scale, sizeof scale);
      if (rows[r].least_at >= 0) memcpy(block + rows[r].least_at, &least, sizeof least);
    }
}

float test_random_f32(uint64_t *state) { return (float)(test_random(state) >> 40) * 0x1p-23f - 1.0f; }

berth_status test_buffer_write(void *buffer, const char *text, size_t size) {
  test_buffer *b = buffer;
  char *data = realloc(b->data, b->size + size + 1);
  if (data == NULL) return BERTH_NOMEM;
  memcpy(data + b->size, text, size);
  b->data = data;
  b->size += size;
  b->data[b->size] = '\0';
  return BERTH_OK;
}

void test_buffer_free(test_buffer *buffer) {
  free(buffer->data);
  *buffer = (test_buffer){0};
}

int test_skip_all(const char *what, const char *reason) {
  printf("ok 1 - %s # SKIP %s\n1..1\n", what, reason);
  return 0;
}

uint64_t test_step(void) { return TEST_IS_SANITIZED && getenv("BERTH_TEST_SLOW") == NULL ? 8 : 1; }

uint64_t test_share(uint64_t all) { return (all + test_step() - 1) / test_step(); }

const char *test_gpu(void) {
  const char *name = getenv("BERTH_TEST_DEVICE");
  return name != NULL && name[0] != '\0' ? name : "interp";
}

berth_plan_info test_plan_info(const berth_plan *plan) {
  berth_plan_info info = BERTH_PLAN_INFO_INIT;
  berth_error err;
  TEST_OK(berth_plan_get_info(plan, &info, &err));
  return info;
}
