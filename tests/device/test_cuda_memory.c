/* Inputs and outputs of the device "cuda" in memory that other libraries address as well, on a library that plays the
 * driver, whose device memory is the host's. */
#include "support.h"

#ifdef BERTH__HAS_CUDA
#include "cuda_use.h"

static const char *const text = gpu_products_softmax;

static berth_memory on_gpu(uint32_t index, const void *data, uint64_t size) {
  berth_memory memory = BERTH_MEMORY_INIT;
  memory.kind = BERTH_MEMORY_CUDA;
  memory.index = index;
  memory.address = (uint64_t)(uintptr_t)data;
  memory.size = size;
  return memory;
}

/* The outputs by the usual way, and the inputs that gave them. */
static void compute(gpu_fixture *f, float in[GPU_N_IN], float out[GPU_N_OUT]) {
  berth_error err;
  TEST_OK(gpu_compute(f->session, out, &err));
  berth_memory at = BERTH_MEMORY_INIT;
  TEST_OK(berth_session_input_memory(f->session, 0, &at, &err));
  assert_int_equal(at.size, GPU_N_IN * sizeof *in);
  memcpy(in, (const void *)(uintptr_t)at.address, sizeof *in * GPU_N_IN);
}

static void copies_on_the_device_give_the_same(void **state) {
  gpu_fixture f;
  berth_error err;
  float in[GPU_N_IN], out[GPU_N_OUT], again[GPU_N_OUT] = {0};
  (void)state;
  gpu_start(&f, text, "cuda:1", 0);
  compute(&f, in, out);
  for (uint32_t i = 0; i < GPU_N_IN; i++) in[i] *= 0.5f;
  TEST_OK(berth_session_write_at(f.session, 0, in, sizeof in, &err));
  TEST_OK(berth_session_run(f.session, &err));
  TEST_OK(berth_session_read_at(f.session, 0, out, sizeof out, &err));
  const float zeros[GPU_N_IN] = {0};
  TEST_OK(berth_session_write_at(f.session, 0, zeros, sizeof zeros, &err));
  const uint64_t waited = cuda_fake->default_events;
  berth_memory src = on_gpu(1, in, sizeof in), dst = on_gpu(1, again, sizeof again), at = BERTH_MEMORY_INIT;
  TEST_OK(berth_session_write_memory(f.session, 0, &src, &err));
  TEST_OK(berth_session_run(f.session, &err));
  TEST_OK(berth_session_read_memory(f.session, 0, &dst, &err));
  assert_memory_equal(out, again, sizeof out);
  assert_int_equal(cuda_fake->default_events, waited + 2); /* others' work on the default stream comes first */
  TEST_OK(berth_session_output_memory(f.session, 0, &at, &err));
  assert_int_equal(at.kind, BERTH_MEMORY_CUDA);
  assert_int_equal(at.index, 1);
  assert_memory_equal((const void *)(uintptr_t)at.address, out, sizeof out);
  gpu_finish(&f);
}

static void what_cannot_be_reached_is_refused(void **state) {
  gpu_fixture f;
  berth_error err;
  float in[GPU_N_IN] = {0};
  berth_memory other = on_gpu(0, in, sizeof in), small = on_gpu(1, in, 4), kind = other, at = BERTH_MEMORY_INIT;
  (void)state;
  kind.kind = (berth_memory_kind)7;
  gpu_start(&f, text, "cuda:1", 0);
  test_expect_error(berth_session_write_memory(f.session, 0, &other, &err), BERTH_UNSUPPORTED, &err,
                    "that of GPU 0, and the arena lies on GPU 1");
  test_expect_error(berth_session_read_memory(f.session, 0, &other, &err), BERTH_INVALID, &err, "were given");
  test_expect_error(berth_session_write_memory(f.session, 0, &small, &err), BERTH_INVALID, &err, "4 were given");
  test_expect_error(berth_session_write_memory(f.session, 0, &kind, &err), BERTH_INVALID, &err, "of kind 7");
  test_expect_error(berth_session_write_memory(f.session, 0, NULL, &err), BERTH_INVALID, &err, "NULL");
  test_expect_error(berth_session_write_memory(f.session, 9, &other, &err), BERTH_INVALID, &err, "number 9");
  test_expect_error(berth_session_input_memory(f.session, 9, &at, &err), BERTH_INVALID, &err, "number 9");
  test_expect_error(berth_session_output_memory(f.session, 9, &at, &err), BERTH_INVALID, &err, "number 9");
  gpu_finish(&f);
  gpu_start(&f, text, "cpu", 0);
  test_expect_error(berth_session_write_memory(f.session, 0, &other, &err), BERTH_UNSUPPORTED, &err,
                    "device 'cpu' cannot address the memory that is given: it is that of a GPU");
  TEST_OK(berth_session_input_memory(f.session, 0, &at, &err));
  assert_int_equal(at.kind, BERTH_MEMORY_HOST);
  at.address = (uint64_t)(uintptr_t)in;
  TEST_OK(berth_session_write_memory(f.session, 0, &at, &err));
  gpu_finish(&f);
}

/* Every call of the driver, while copies are made. */
static void a_copy_may_fail(void **state) {
  gpu_fixture f;
  berth_error err;
  float in[GPU_N_IN] = {0}, out[GPU_N_OUT];
  berth_memory src = on_gpu(0, in, sizeof in), dst = on_gpu(0, out, sizeof out);
  uint64_t failures = 0;
  (void)state;
  gpu_start(&f, text, "cuda", 0);
  TEST_OK(gpu_compute(f.session, out, &err));
  for (uint64_t k = 1;; k++) {
    cuda_fake->failed = 0;
    cuda_fake->fail_with = 2; /* out of memory: the device goes on */
    cuda_fake->fail_at = k;
    berth_status status = berth_session_write_memory(f.session, 0, &src, &err);
    if (status == BERTH_OK) status = berth_session_read_memory(f.session, 0, &dst, &err);
    cuda_fake->fail_at = 0;
    if (cuda_fake->failed == 0) break;
    if (status == BERTH_OK) fail_msg("%s failed, and nobody said so", cuda_fake->failed_call);
    assert_true(err.message[0] != '\0');
    failures++;
  }
  assert_true(failures >= 6);
  gpu_expect_right(f.session, text, 1e-5f);
  gpu_finish(&f);
  assert_int_equal(cuda_fake->current, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(copies_on_the_device_give_the_same),
      cmocka_unit_test(what_cannot_be_reached_is_refused),
      cmocka_unit_test(a_copy_may_fail),
  };
  return cmocka_run_group_tests(tests, cuda_set_up, NULL);
}
#else
int main(void) { return test_skip_all("device cuda", "this build has no device cuda"); }
#endif
