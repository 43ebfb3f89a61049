/* Shared by the fuzz targets. Each target is one file that defines LLVMFuzzerTestOneInput. With clang and
 * -fsanitize=fuzzer it searches; linked with replay.c it runs the files of a folder as an ordinary test. */
#ifndef BERTH_TESTS_FUZZ_H
#define BERTH_TESTS_FUZZ_H

#include <stdio.h>
#include <stdlib.h>

#include "berth/berth.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Stays in release builds, unlike assert. */
#define FUZZ_CHECK(holds)                                                        \
  do {                                                                           \
    if (!(holds)) {                                                              \
      fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #holds); \
      abort();                                                                   \
    }                                                                            \
  } while (0)

static inline berth_context *fuzz_context(void) {
  berth_context_desc desc = BERTH_CONTEXT_DESC_INIT;
  berth_context *ctx = NULL;
  desc.n_threads = 1;
  FUZZ_CHECK(berth_context_create(&desc, &ctx, NULL) == BERTH_OK);
  return ctx;
}

#endif
