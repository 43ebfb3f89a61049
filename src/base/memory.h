/* How much memory there is, checked before any of it is touched: mapping a terabyte succeeds, and only touching it
 * brings the machine down. */
#ifndef BERTH_BASE_MEMORY_H
#define BERTH_BASE_MEMORY_H

#include "base/context.h"

/* Fails with `status` if `what` needs more host memory than one allocation may have: the context's memory_limit, or the
 * total memory of the machine or of this process's control group. */
berth_status berth__memory_check(const berth_context *ctx, uint64_t size, const char *what, berth_status status,
                                 berth_error *err);
/* Total bytes that this process can have on this machine; UINT64_MAX: unknown. *where says whose limit it is. */
uint64_t berth__memory_total(const char **where);
/* For tests: the same with the files of control groups below another root ("" for the real ones). */
uint64_t berth__memory_of_groups(const char *root);

#endif
