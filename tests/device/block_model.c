#include "block_model.h"

#include <stdlib.h>
#include <string.h>

#include "support.h"

#define MOST_ASIDE 100u /* bytes by which what is written is not aligned */

typedef struct block_model {
  const berth__device *device;
  uint64_t size;
  const unsigned char *source;
  berth__block *block[BLOCK_MODELS];
  unsigned char *bytes[BLOCK_MODELS];
} block_model;

static void expect_same(const block_model *m, uint64_t which, uint64_t offset, uint64_t size) {
  unsigned char *bytes = malloc((size_t)size);
  berth_error err;
  assert_non_null(bytes);
  TEST_OK(m->device->read(m->block[which], offset, bytes, size, &err));
  assert_memory_equal(bytes, m->bytes[which] + offset, (size_t)size);
  free(bytes);
}

/* Mostly small, sometimes as large as can be; anywhere, or in whole words. */
static uint64_t random_range(const block_model *m, uint64_t *seed, uint64_t *offset) {
  static const uint64_t few[] = {70, 5000};
  const bool in_words = test_random(seed) % 2 == 0;
  uint64_t most = few[test_random(seed) % 2];
  if (test_random(seed) % 8 == 0) most = m->size;
  if (test_random(seed) % 8 == 0) most = m->size / 3;
  uint64_t size = 1 + test_random(seed) % most;
  if (in_words) size = (size + 3) & ~(uint64_t)3;
  *offset = test_random(seed) % (m->size - size + 1);
  if (in_words) *offset &= ~(uint64_t)3;
  return size;
}

static void copy_within(block_model *m, uint64_t to, uint64_t at, uint64_t from, uint64_t at_from, uint64_t size) {
  berth_error err;
  TEST_OK(m->device->copy(m->block[to], at, m->block[from], at_from, size, &err));
  memmove(m->bytes[to] + at, m->bytes[from] + at_from, (size_t)size);
}

static void copy_somewhere(block_model *m, uint64_t to, uint64_t offset, uint64_t size, uint64_t *seed) {
  const uint64_t from = test_random(seed) % BLOCK_MODELS;
  const uint64_t before = test_random(seed) % 2 == 0 ? 9 : 12;
  uint64_t other = offset - (offset < before ? offset : before); /* ranges that overlap */
  if (test_random(seed) % 2 == 0) other = test_random(seed) % (m->size - size + 1);
  if (size % 4 == 0 && offset % 4 == 0) other &= ~(uint64_t)3;
  copy_within(m, to, offset, from, other, size);
  if (to == from) copy_within(m, to, other, to, offset, size); /* and back */
}

static void do_something(block_model *m, uint64_t *seed) {
  const uint64_t which = test_random(seed) % BLOCK_MODELS;
  uint64_t offset;
  berth_error err;
  const uint64_t size = random_range(m, seed, &offset);
  switch (test_random(seed) % 5) {
    case 0:
    case 1: {
      const unsigned char *bytes = m->source + test_random(seed) % MOST_ASIDE;
      TEST_OK(m->device->write(m->block[which], offset, bytes, size, &err));
      memcpy(m->bytes[which] + offset, bytes, (size_t)size);
      break;
    }
    case 2: {
      const uint8_t byte = test_random(seed) % 2 == 0 ? 0 : (uint8_t)size;
      TEST_OK(m->device->fill(m->block[which], offset, size, byte, &err));
      memset(m->bytes[which] + offset, byte, (size_t)size);
      break;
    }
    case 3: expect_same(m, which, offset, size); break;
    default: copy_somewhere(m, which, offset, size, seed); break;
  }
}

void block_model_compare(const berth__device *device, berth__block *const blocks[BLOCK_MODELS], uint64_t size,
                         uint32_t n_steps, uint64_t seed) {
  unsigned char *source = malloc((size_t)size + MOST_ASIDE);
  block_model m = {.device = device, .size = size, .source = source};
  assert_non_null(source);
  for (size_t i = 0; i < size + MOST_ASIDE; i++) source[i] = (unsigned char)test_random(&seed);
  for (uint32_t i = 0; i < BLOCK_MODELS; i++) {
    m.block[i] = blocks[i];
    m.bytes[i] = calloc(1, (size_t)size);
    assert_non_null(m.bytes[i]);
  }
  for (uint32_t i = 0; i < n_steps; i++) do_something(&m, &seed);
  for (uint32_t i = 0; i < BLOCK_MODELS; i++) {
    expect_same(&m, i, 0, size);
    free(m.bytes[i]);
  }
  free(source);
}
