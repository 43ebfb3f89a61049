/* The attributes of max_pool, avg_pool and lp_pool. */
#ifndef BERTH_OPS_POOL_H
#define BERTH_OPS_POOL_H

#include "ops/window.h"

enum {
  BERTH__POOL_KERNEL,
  BERTH__POOL_STRIDES,
  BERTH__POOL_PADS,
  BERTH__POOL_DILATIONS,
  BERTH__POOL_CEIL_MODE,
  BERTH__POOL_COUNT_INCLUDE_PAD,
  BERTH__POOL_AUTO_PAD,
  BERTH__POOL_STORAGE_ORDER,
  BERTH__POOL_P,
  BERTH__POOL_CHANNELS_LAST
};

static inline berth__window_attrs berth__pool_window(const berth_attr *attr) {
  return (berth__window_attrs){&attr[BERTH__POOL_STRIDES], &attr[BERTH__POOL_PADS], &attr[BERTH__POOL_DILATIONS],
                               &attr[BERTH__POOL_AUTO_PAD]};
}

#endif
