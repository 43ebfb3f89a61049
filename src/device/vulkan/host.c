#include "device/vulkan/host.h"

#include <stdlib.h>

#include "base/math.h"

/* A free block, kept for reuse. */
struct berth__vulkan_spare {
  struct berth__vulkan_spare *next;
};

#define TOO_LARGE BERTH__VULKAN_HOST_ORDERS /* not kept */
#define FROM_LIBC (TOO_LARGE + 1)

/* Precedes the memory that the driver gets. */
typedef struct header {
  void *start; /* of the block */
  size_t size; /* as requested */
  uint32_t order;
} header;

static uint32_t vulkan_host_order_of(uint64_t size) {
  uint32_t order = 0;
  while (order < TOO_LARGE && ((uint64_t)64 << order) < size) order++;
  return order;
}

static void vulkan_host_keep(berth__vulkan_host *host, struct berth__vulkan_spare *block, uint32_t order) {
  pthread_mutex_lock(&host->lock);
  block->next = host->spare[order];
  host->spare[order] = block;
  pthread_mutex_unlock(&host->lock);
}

/* A submission needs small blocks, and a driver may free those of the previous one late. */
#define STOCK 4u
#define STOCK_ORDERS 7u /* up to 4 KiB */

static uint32_t count_spare(berth__vulkan_host *host, uint32_t order) {
  uint32_t n = 0;
  pthread_mutex_lock(&host->lock);
  for (const struct berth__vulkan_spare *block = host->spare[order]; block != NULL && n < STOCK; block = block->next)
    n++;
  pthread_mutex_unlock(&host->lock);
  return n;
}

void berth__vulkan_host_stock(berth__vulkan_host *host) {
  for (uint32_t order = 0; order < STOCK_ORDERS; order++) {
    for (uint32_t n = count_spare(host, order); n < STOCK; n++) {
      struct berth__vulkan_spare *block = berth__alloc(host->ctx, (size_t)64 << order);
      if (block == NULL) return; /* it will be allocated when it is needed */
      vulkan_host_keep(host, block, order);
    }
  }
}

static void *vulkan_host_take(berth__vulkan_host *host, uint64_t size, uint32_t order) {
  if (order == TOO_LARGE) return berth__alloc_u64(host->ctx, size);
  pthread_mutex_lock(&host->lock);
  struct berth__vulkan_spare *block = host->spare[order];
  if (block != NULL) host->spare[order] = block->next;
  pthread_mutex_unlock(&host->lock);
  return block != NULL ? (void *)block : berth__alloc(host->ctx, (size_t)64 << order);
}

static void *take_from_libc(berth__vulkan_host *host, uint64_t size) {
  pthread_mutex_lock(&host->lock);
  host->is_short = true;
  pthread_mutex_unlock(&host->lock);
  return size <= SIZE_MAX ? malloc((size_t)size) : NULL;
}

bool berth__vulkan_host_was_short(berth__vulkan_host *host) {
  pthread_mutex_lock(&host->lock);
  const bool was_short = host->is_short;
  host->is_short = false;
  pthread_mutex_unlock(&host->lock);
  return was_short;
}

static void vulkan_host_count(berth__vulkan_host *host, uint64_t by) {
  pthread_mutex_lock(&host->lock);
  host->n_live += by;
  pthread_mutex_unlock(&host->lock);
}

static void *VKAPI_CALL vulkan_host_allocate(void *user, size_t size, size_t align, VkSystemAllocationScope scope) {
  berth__vulkan_host *host = user;
  uint64_t total;
  (void)scope;
  if (align < sizeof(void *)) align = sizeof(void *);
  if (!berth__add_u64(size, sizeof(header) + align, &total))
    return NULL; /* size 0 gives a block, too: lavapipe requires it */
  uint32_t order = vulkan_host_order_of(total);
  unsigned char *start = vulkan_host_take(host, total, order);
  if (start == NULL) {
    start = take_from_libc(host, total);
    order = FROM_LIBC;
  }
  if (start == NULL) return NULL;
  const uintptr_t first = (uintptr_t)start + sizeof(header);
  unsigned char *data = start + (((first + align - 1) & ~(uintptr_t)(align - 1)) - (uintptr_t)start);
  const header h = {.start = start, .size = size, .order = order};
  memcpy(data - sizeof h, &h, sizeof h);
  vulkan_host_count(host, 1);
  return data;
}

static void VKAPI_CALL vulkan_host_release(void *user, void *data) {
  berth__vulkan_host *host = user;
  header h;
  if (data == NULL) return;
  memcpy(&h, (unsigned char *)data - sizeof h, sizeof h);
  vulkan_host_count(host, UINT64_MAX);
  if (h.order == FROM_LIBC)
    free(h.start);
  else if (h.order == TOO_LARGE)
    berth__free(host->ctx, h.start);
  else
    vulkan_host_keep(host, h.start, h.order);
}

static void *VKAPI_CALL reallocate(void *user, void *data, size_t size, size_t align, VkSystemAllocationScope scope) {
  header h;
  if (data == NULL) return vulkan_host_allocate(user, size, align, scope);
  if (size == 0) {
    vulkan_host_release(user, data);
    return NULL;
  }
  memcpy(&h, (unsigned char *)data - sizeof h, sizeof h);
  void *moved = vulkan_host_allocate(user, size, align, scope);
  if (moved == NULL) return NULL;
  memcpy(moved, data, h.size < size ? h.size : size);
  vulkan_host_release(user, data);
  return moved;
}

void berth__vulkan_host_start(berth__vulkan_host *host, berth_context *ctx) {
  *host = (berth__vulkan_host){.ctx = ctx};
  pthread_mutex_init(&host->lock, NULL);
  host->callbacks = (VkAllocationCallbacks){.pUserData = host,
                                            .pfnAllocation = vulkan_host_allocate,
                                            .pfnReallocation = reallocate,
                                            .pfnFree = vulkan_host_release};
}

void berth__vulkan_host_end(berth__vulkan_host *host) {
  for (uint32_t i = 0; i < BERTH__VULKAN_HOST_ORDERS; i++) {
    while (host->spare[i] != NULL) {
      struct berth__vulkan_spare *block = host->spare[i];
      host->spare[i] = block->next;
      berth__free(host->ctx, block);
    }
  }
  pthread_mutex_destroy(&host->lock);
}
