/* Tokens that cancel long operations. */
#ifndef BERTH_BASE_CANCEL_H
#define BERTH_BASE_CANCEL_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/status.h"

struct berth_cancel {
  berth_context *ctx;
  _Atomic bool is_requested;
};

/* cancel may be NULL, here and below. */
static inline bool berth__is_cancelled(const berth_cancel *cancel) {
  return cancel != NULL &&
         atomic_load_explicit(&((berth_cancel *)(uintptr_t)cancel)->is_requested, memory_order_relaxed);
}
/* CANCELLED, with a message that says what was cancelled; OK if it was not. */
berth_status berth__check_cancel(const berth_cancel *cancel, const char *what, berth_error *err);

#endif
