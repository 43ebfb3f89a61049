#include "gpu_use.h"

#include <math.h>

#define PRODUCTS                                                                                            \
  "graph \"p\" { input %x : f32[20, 30] param %v : f32[30, 40] param %w : f32[30, 40] param %b : f32[40]\n" \
  " %p = matmul(%x, %v) %q = matmul(%x, %w) %r = add(%p, %b) %s = mul(%r, %q) %t = tanh(%s)\n"
const char gpu_products[] = PRODUCTS " output \"t\" = %t }";
const char gpu_products_softmax[] = PRODUCTS " %u = softmax(%t) output \"t\" = %u }";

void gpu_set_params(berth_session *session) {
  static const struct {
    const char *name;
    size_t n;
  } params[] = {{"v", 1200}, {"w", 1200}, {"b", 40}};
  float data[1200];
  uint64_t seed = 7;
  berth_error err;
  for (size_t i = 0; i < 3; i++) {
    for (size_t k = 0; k < params[i].n; k++) data[k] = test_random_f32(&seed);
    TEST_OK(berth_session_set_param(session, params[i].name, data, params[i].n * sizeof(float), &err));
  }
}

void gpu_start(gpu_fixture *f, const char *text, const char *device, uint32_t flags) {
  berth_session_desc desc = BERTH_SESSION_DESC_INIT;
  berth_error err;
  memset(f, 0, sizeof *f);
  f->ctx = test_context_counting(&f->alloc);
  desc.device = device;
  desc.flags = flags;
  TEST_OK(berth_graph_parse(f->ctx, text, strlen(text), &f->graph, &err));
  TEST_OK(berth_session_create(f->graph, &desc, &f->session, &err));
  gpu_set_params(f->session);
}

void gpu_finish(gpu_fixture *f) {
  berth_session_destroy(f->session);
  berth_graph_destroy(f->graph);
  test_context_done(f->ctx, &f->alloc);
}

berth_status gpu_compute(berth_session *session, float out[GPU_N_OUT], berth_error *err) {
  float in[GPU_N_IN];
  for (int i = 0; i < GPU_N_IN; i++) in[i] = sinf((float)i);
  memset(out, 0, GPU_N_OUT * sizeof *out);
  berth_status status = berth_session_write(session, "x", in, sizeof in, err);
  if (status == BERTH_OK) status = berth_session_run(session, err);
  return status == BERTH_OK ? berth_session_read(session, "t", out, GPU_N_OUT * sizeof *out, err) : status;
}

void gpu_expect_right(berth_session *session, const char *text, float tolerance) {
  float want[GPU_N_OUT], got[GPU_N_OUT];
  gpu_fixture f;
  berth_error err;
  gpu_start(&f, text, "cpu", 0);
  TEST_OK(gpu_compute(f.session, want, &err));
  gpu_finish(&f);
  TEST_OK(gpu_compute(session, got, &err));
  for (int i = 0; i < GPU_N_OUT; i++)
    if (!(fabsf(got[i] - want[i]) < tolerance))
      fail_msg("element %d is %g, not %g", i, (double)got[i], (double)want[i]);
}
