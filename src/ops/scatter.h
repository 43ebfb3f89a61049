/* Putting updates into a tensor: shared by scatter and scatter_nd. */
#ifndef BERTH_OPS_SCATTER_H
#define BERTH_OPS_SCATTER_H

#include "ops/op.h"

typedef enum berth__reduction {
  BERTH__REDUCTION_NONE,
  BERTH__REDUCTION_ADD,
  BERTH__REDUCTION_MUL,
  BERTH__REDUCTION_MAX,
  BERTH__REDUCTION_MIN,
  BERTH__REDUCTION_COUNT
} berth__reduction;

/* BERTH__REDUCTION_COUNT if the name is unknown. */
berth__reduction berth__reduction_of(const char *name);
/* Checks the types of x, indices and updates, and the reduction's name. */
berth_status berth__want_updates(const berth__infer *infer, const char *reduction, berth_error *err);
/* Combines element `from` of the updates with element `to` of the result. */
void berth__put_update(berth__reduction reduction, const berth_tensor *out, int64_t to, const berth_tensor *updates,
                       int64_t from);

#endif
