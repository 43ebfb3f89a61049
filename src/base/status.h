/* Errors: one-line checks that keep the main path straight. */
#ifndef BERTH_BASE_STATUS_H
#define BERTH_BASE_STATUS_H

#include "berth/berth.h"

#if defined(__GNUC__)
#define BERTH__PRINTF(fmt, first) __attribute__((format(printf, fmt, first)))
#else
#define BERTH__PRINTF(fmt, first)
#endif

/* Fills *err (may be NULL) and returns status, so that `return berth__fail(...)` reads as one thought. A message that
 * is too long is cut at a whole character and ends in "...". */
berth_status berth__fail(berth_error *err, berth_status status, const char *fmt, ...) BERTH__PRINTF(3, 4);

/* Puts "<prefix>: " before the message that is already in *err; keeps the status. Returns the status given. */
berth_status berth__fail_within(berth_error *err, berth_status status, const char *fmt, ...) BERTH__PRINTF(3, 4);

/* NOMEM; `what` is what the memory was for: "the graph's values". */
berth_status berth__fail_nomem(berth_error *err, const char *what);

#ifdef __clang_analyzer__ /* clang-tidy cannot see into these, and would follow paths on which a failure is OK */
#define berth__fail(err, status, ...) (berth__fail(err, status, __VA_ARGS__), (status))
#define berth__fail_within(err, status, ...) (berth__fail_within(err, status, __VA_ARGS__), (status))
#define berth__fail_nomem(err, what) (berth__fail_nomem(err, what), BERTH_NOMEM)
#endif

#define BERTH__TRY(expr)                           \
  do {                                             \
    berth_status try_status = (expr);              \
    if (try_status != BERTH_OK) return try_status; \
  } while (0)

/* The same inside a function that unwinds: sets `status` and goes to `fail`. */
#define BERTH__TRY_OR_FAIL(expr)       \
  do {                                 \
    status = (expr);                   \
    if (status != BERTH_OK) goto fail; \
  } while (0)

#endif
