#include "base/cancel.h"

#include "base/context.h"

berth_status berth_cancel_create(berth_context *ctx, berth_cancel **out, berth_error *err) {
  if (out == NULL) return berth__fail(err, BERTH_INVALID, "berth_cancel_create needs a pointer to store the token");
  *out = NULL;
  if (ctx == NULL) return berth__fail(err, BERTH_INVALID, "the context is NULL");
  berth_cancel *cancel = berth__alloc_zero(ctx, sizeof *cancel);
  if (cancel == NULL) return berth__fail_nomem(err, "a token for cancelling");
  cancel->ctx = ctx;
  *out = cancel;
  return BERTH_OK;
}

void berth_cancel_destroy(berth_cancel *cancel) {
  if (cancel != NULL) berth__free(cancel->ctx, cancel);
}

void berth_cancel_request(berth_cancel *cancel) {
  atomic_store_explicit(&cancel->is_requested, true, memory_order_relaxed);
}

void berth_cancel_clear(berth_cancel *cancel) {
  atomic_store_explicit(&cancel->is_requested, false, memory_order_relaxed);
}

int berth_cancel_is_requested(const berth_cancel *cancel) { return berth__is_cancelled(cancel); }

berth_status berth__check_cancel(const berth_cancel *cancel, const char *what, berth_error *err) {
  return berth__is_cancelled(cancel) ? berth__fail(err, BERTH_CANCELLED, "%s was cancelled", what) : BERTH_OK;
}
