#include "run.h"

#include <stdlib.h>

berth__kernel *kernel_of(berth_context *ctx, const char *name, uint32_t group_size, uint64_t n_groups) {
  berth_error err;
  berth__kernel *k = NULL;
  TEST_OK(berth__kernel_create(ctx, name, &k, &err));
  k->group_size = group_size;
  k->n_groups = n_groups;
  return k;
}

berth__x flat_index(berth__kernel *k) {
  const berth__x thread = berth__x_thread(k); /* in its own statement, since arguments are evaluated in any order */
  return berth__x_add(k, berth__x_affine(k, berth__x_group(k), k->group_size, 0), thread);
}

berth_status run_kernel(const berth__kernel *k, uint32_t **words, const uint64_t *counts, berth_error *err) {
  berth__kernel_memory buffers[BERTH__KERNEL_BUFFERS];
  for (uint32_t i = 0; i < k->n_buffers; ++i)
    buffers[i] = (berth__kernel_memory){.words = words[i], .count = counts[i]};
  uint64_t size = berth__kernel_room(k);
  void *room = malloc(size); /* exactly, so that the sanitizer detects accesses past the end */
  assert_non_null(room);
  memset(room, 0xa5, size);
  berth_status status = berth__kernel_interpret(k, buffers, room, err);
  free(room);
  return status;
}

size_t count_of(const berth__kernel *k, berth__inst_code code) {
  size_t n = 0;
  for (size_t i = 0; i < k->n_insts; ++i) n += k->insts[i].code == code;
  return n;
}

void finish_and_run(berth__kernel *k, uint32_t *words, uint64_t count) {
  berth_error err;
  TEST_OK(berth__kernel_finish(k, &err));
  TEST_OK(run_kernel(k, &words, &count, &err));
  berth__kernel_destroy(k);
}
