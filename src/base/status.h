/* Errors: checks of one line that keep the main path readable. */
#ifndef BERTH_BASE_STATUS_H
#define BERTH_BASE_STATUS_H

#include "berth/berth.h"

#if defined(__GNUC__)
#define BERTH__PRINTF(fmt, first) __attribute__((format(printf, fmt, first)))
#else
#define BERTH__PRINTF(fmt, first)
#endif

/* Fills *err (may be NULL) and returns status, so that it can be used as `return berth__fail(...)`. A message that is
 * too long is cut at a whole character and ends in "...". */
berth_status berth__fail(berth_error *err, berth_status status, const char *fmt, ...) BERTH__PRINTF(3, 4);

/* Prepends "<prefix>: " to the message in *err; returns the given status. */
berth_status berth__fail_within(berth_error *err, berth_status status, const char *fmt, ...) BERTH__PRINTF(3, 4);

/* NOMEM; `what` names the purpose of the memory: "the graph's values". */
berth_status berth__fail_nomem(berth_error *err, const char *what);

/* The ending of a counted noun in a message: "%u token%s", n, berth__plural(n). */
static inline const char *berth__plural(uint64_t n) { return n == 1 ? "" : "s"; }

#ifdef __clang_analyzer__ /* clang-tidy cannot see into these, and would follow paths on which a failure returns OK */
#define berth__fail(err, status, ...) (berth__fail(err, status, __VA_ARGS__), (status))
#define berth__fail_within(err, status, ...) (berth__fail_within(err, status, __VA_ARGS__), (status))
#define berth__fail_nomem(err, what) (berth__fail_nomem(err, what), BERTH_NOMEM)
#endif

#define BERTH__TRY(expr)                           \
  do {                                             \
    berth_status try_status = (expr);              \
    if (try_status != BERTH_OK) return try_status; \
  } while (0)

/* For functions that unwind: sets `status` and goes to `fail`. */
#define BERTH__TRY_OR_FAIL(expr)       \
  do {                                 \
    status = (expr);                   \
    if (status != BERTH_OK) goto fail; \
  } while (0)

#endif
