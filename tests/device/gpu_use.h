/* A model with two products on a device, by a session; what it gives is compared with the CPU. */
#ifndef BERTH_TESTS_DEVICE_GPU_USE_H
#define BERTH_TESTS_DEVICE_GPU_USE_H

#include "session/session.h"
#include "support.h"

#define GPU_N_IN 600
#define GPU_N_OUT 800

/* Two products of which neither needs the other, and what joins them; the second ends in a fold over rows. */
extern const char gpu_products[], gpu_products_softmax[];

typedef struct gpu_fixture {
  test_alloc alloc;
  berth_context *ctx;
  berth_graph *graph;
  berth_session *session;
} gpu_fixture;

/* A session with its params set. */
void gpu_start(gpu_fixture *f, const char *text, const char *device, uint32_t flags);
void gpu_finish(gpu_fixture *f); /* nothing is left behind */
void gpu_set_params(berth_session *session);
berth_status gpu_compute(berth_session *session, float out[GPU_N_OUT], berth_error *err);
/* As on the CPU, but for so much. */
void gpu_expect_right(berth_session *session, const char *text, float tolerance);

#endif
