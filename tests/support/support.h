/* Shared by all tests. */
#ifndef BERTH_TESTS_SUPPORT_H
#define BERTH_TESTS_SUPPORT_H

/* cmocka.h needs these before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdatomic.h>
#include <string.h>

#include "berth/berth.h"

/* An allocator that counts, and fails on demand. Thread-safe. Start from {0}. */
typedef struct test_alloc {
  _Atomic uint64_t calls;       /* requested blocks: allocations and resizes, not frees */
  _Atomic uint64_t live_blocks; /* not freed yet */
  _Atomic uint64_t live_bytes;
  _Atomic uint64_t peak_bytes;
  _Atomic uint64_t fail_at; /* 1: the next call fails, 2: the one after it, ...; 0: none. Counts down; after the
                               failure, later calls succeed again */
  _Atomic uint64_t failed;  /* calls that were made to fail */
} test_alloc;

/* A context with that allocator and 2 threads. Fails the test if it cannot be created. */
berth_context *test_context_counting(test_alloc *alloc);
/* A context with the default allocator and 2 threads. */
berth_context *test_context(void);
/* Messages of Vulkan's validation layer so far, in the logs of all contexts created by the functions above. */
uint64_t test_validation_messages(void);
/* Reads the environment again, as if the context were created now: for tests of the layers below a context. */
void test_read_options(berth_context *ctx);
/* Destroys the context and asserts that every block was freed. */
void test_context_done(berth_context *ctx, test_alloc *alloc);

/* The callback itself, for descriptors that a test fills; user is the test_alloc. */
void *test_alloc_callback(void *user, void *ptr, size_t old_size, size_t new_size);

/* Runs fn once for each of its allocations, making that one fail, until a run has no failure any more. fn gets a new
 * counting context each time and returns the status of the operation under test; it frees what it made. Asserts: a run
 * with a failed allocation returns BERTH_NOMEM (or succeeds, if the operation can do without), nothing leaks, and the
 * last run returns BERTH_OK. Under the sanitizers, after the first hundred only every eighth allocation fails. Returns
 * the approximate number of allocations. */
typedef berth_status (*test_operation)(berth_context *ctx, berth_error *err, void *user);
uint64_t test_fail_each_allocation(test_operation fn, void *user);

/* Asserts that status is `want` and that the message contains `part` (NULL: any nonempty message). */
void test_expect_error(berth_status status, berth_status want, const berth_error *err, const char *part);
/* Asserts BERTH_OK and shows the message otherwise. */
#define TEST_OK(expr) test_expect_ok((expr), &err, #expr, __FILE__, __LINE__) /* needs a berth_error err in scope */
void test_expect_ok(berth_status status, const berth_error *err, const char *expr, const char *file, int line);

/* The result of berth_plan_get_info. */
berth_plan_info test_plan_info(const berth_plan *plan);

/* Built with the address sanitizer: several times slower, with additional memory. */
#if defined(__SANITIZE_ADDRESS__)
#define TEST_IS_SANITIZED 1
#elif defined(__has_feature)
#define TEST_IS_SANITIZED __has_feature(address_sanitizer)
#else
#define TEST_IS_SANITIZED 0
#endif

/* How many of `all` cases of a sweep to run: all, or an eighth under the sanitizers, since the other builds run the
 * rest; all there, too, with BERTH_TEST_SLOW (`make check-slow`). */
uint64_t test_share(uint64_t all);
/* The step of a sweep, likewise: 1, or 5. */
uint64_t test_step(void);

/* For a main that runs nothing: reports one skipped test. Returns 0, for main to return. */
int test_skip_all(const char *what, const char *reason);

/* The GPU for a test: the one that BERTH_TEST_DEVICE names; by default "interp", which every build has. */
const char *test_gpu(void);

/* Ends the test as skipped; the reason is shown at the end of `make check`. */
#define TEST_SKIP(reason)                    \
  do {                                       \
    print_message("# skip: %s\n", (reason)); \
    skip();                                  \
  } while (0)

/* A deterministic pseudo-random sequence (splitmix64); the caller's state may start with any value. */
uint64_t test_random(uint64_t *state);
float test_random_f32(uint64_t *state); /* uniform in [-1, 1) */
/* Blocks of random bytes with scales that make elements of about -1 to 1. */
void test_random_blocks(berth_type type, void *data, uint64_t size, uint64_t *state);

/* A path in the test's own temporary folder, which is removed at exit; the string is valid until the next call. */
const char *test_path(const char *name);
void test_write_file(const char *path, const void *data, size_t size);

/* A symbol of the library that plays NVIDIA's driver (tests/device/fake_cuda) in the build of this program; what it
 * compiles lies in the temporary folder. NULL: the library cannot be opened, which is said on stderr. */
void *test_fake_cuda(const char *symbol, const char **path);

/* A berth_write_fn that collects into a test_buffer; free with test_buffer_free. Start from {0}. */
typedef struct test_buffer {
  char *data; /* terminated */
  size_t size;
} test_buffer;
berth_status test_buffer_write(void *buffer, const char *text, size_t size);
void test_buffer_free(test_buffer *buffer);

#endif
