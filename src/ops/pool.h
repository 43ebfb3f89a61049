/* The attributes of max_pool, avg_pool and lp_pool. */
#ifndef BERTH_OPS_POOL_H
#define BERTH_OPS_POOL_H

#include "ops/window.h"

static inline berth__window_attrs berth__pool_window(const berth_attr *attr) {
  return (berth__window_attrs){&attr[BERTH__POOL_STRIDES], &attr[BERTH__POOL_PADS], &attr[BERTH__POOL_DILATIONS],
                               &attr[BERTH__POOL_AUTO_PAD]};
}

#endif
