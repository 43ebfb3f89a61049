/* The host memory of a driver: it comes from the context, so that it is counted like the library's own. Small blocks
 * are kept when they are freed, and reused: drivers allocate and free some for every submission, and a run must not
 * reach the context's allocator.
 *
 * If the context has no memory left, the C library is asked, because not every driver survives a failed allocation. The
 * call that caused it still fails (berth__vulkan_check). */
#ifndef BERTH_DEVICE_VULKAN_HOST_H
#define BERTH_DEVICE_VULKAN_HOST_H

#include <pthread.h>
#include <stdbool.h>

#include "base/context.h"
#include "device/vulkan/loader.h"

#define BERTH__VULKAN_HOST_ORDERS 11u /* 64 bytes, 128, ..., 64 KiB */

typedef struct berth__vulkan_host {
  berth_context *ctx;
  VkAllocationCallbacks callbacks;
  pthread_mutex_t lock; /* drivers also free on their own threads */
  struct berth__vulkan_spare *spare[BERTH__VULKAN_HOST_ORDERS];
  uint64_t n_live; /* blocks in use by the driver */
  bool is_short;   /* the context ran out of memory since the last check */
} berth__vulkan_host;

void berth__vulkan_host_start(berth__vulkan_host *host, berth_context *ctx); /* must not be moved from here on */
void berth__vulkan_host_stock(berth__vulkan_host *host);                     /* keeps blocks ready for a run */
bool berth__vulkan_host_was_short(berth__vulkan_host *host);                 /* resets the flag */
void berth__vulkan_host_end(berth__vulkan_host *host);                       /* once the driver has freed everything */

#endif
