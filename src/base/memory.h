/* How much memory there is, asked before any of it is touched: a mapping of a terabyte succeeds, and only touching it
 * brings the machine down. */
#ifndef BERTH_BASE_MEMORY_H
#define BERTH_BASE_MEMORY_H

#include "base/context.h"

/* Fails with `status` when `what` needs more host memory than one piece may have: the context's memory_limit, or what
 * the machine or the control group of this process has in all. */
berth_status berth__memory_check(const berth_context *ctx, uint64_t size, const char *what, berth_status status,
                                 berth_error *err);
/* Bytes that this machine has for this process in all; UINT64_MAX: unknown. *where says whose limit it is. */
uint64_t berth__memory_total(const char **where);
/* For tests: the same with the files of control groups below another root ("" in earnest). */
uint64_t berth__memory_of_groups(const char *root);

#endif
