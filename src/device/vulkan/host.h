/* The host memory of a driver: it comes from the context, so that it is counted like the library's own. Small blocks
 * are kept when they are freed and given out again: drivers take and free some for every submission, and a run must not
 * reach the context's allocator.
 *
 * Where the context has no memory left, the C library is asked: not every driver survives the news. The call that met
 * this is a failure all the same (berth__vulkan_check). */
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
  pthread_mutex_t lock; /* drivers free on threads of their own too */
  struct berth__vulkan_spare *spare[BERTH__VULKAN_HOST_ORDERS];
  uint64_t n_live; /* blocks that a driver holds */
  bool is_short;   /* the context had no memory since the last look */
} berth__vulkan_host;

void berth__vulkan_host_start(berth__vulkan_host *host, berth_context *ctx); /* stays where it is from here on */
void berth__vulkan_host_stock(berth__vulkan_host *host);                     /* keeps ready what a run will take */
bool berth__vulkan_host_was_short(berth__vulkan_host *host);                 /* once each time */
void berth__vulkan_host_end(berth__vulkan_host *host);                       /* when the driver has freed all */

#endif
