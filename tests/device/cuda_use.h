/* The device "cuda" on a library that emulates NVIDIA's driver and compiler (fake_cuda/fake.h), for its tests. */
#ifndef BERTH_TESTS_DEVICE_CUDA_USE_H
#define BERTH_TESTS_DEVICE_CUDA_USE_H

#include "fake_cuda/fake.h"
#include "gpu_use.h"

extern fake_cuda *cuda_fake;
extern const char *cuda_library; /* its path */

int cuda_set_up(void **state); /* of a group of tests */
/* An environment variable; NULL: it is not set. */
void cuda_set(const char *name, const char *value);
/* The first device of that name, as a new context sees it. */
berth_device_info cuda_ask(const char *name);

/* gpu_use.h, with the products that end in a softmax; `finish` also looks at what the library counts. */
void cuda_start(gpu_fixture *f, const char *name, uint32_t flags);
void cuda_finish(gpu_fixture *f);
void cuda_expect_right(berth_session *session);

/* What an observer sees of the steps. */
typedef struct cuda_seen {
  uint32_t count;
  double ms;
} cuda_seen;
void cuda_look(void *user, uint32_t step, uint32_t node, const berth_tensor *out, uint32_t n_out, double ms);

/* Writes their kernels as a pack, and gives what was compiled for last. */
const char *cuda_write_pack(const char *name, const char *path, const char *targets);

#endif
