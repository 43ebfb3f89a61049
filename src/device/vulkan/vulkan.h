/* Vulkan: the arena is one storage buffer, a program one command buffer that is recorded once. */
#ifndef BERTH_DEVICE_VULKAN_VULKAN_H
#define BERTH_DEVICE_VULKAN_VULKAN_H

#include "device/gpu/driver.h"
#include "device/vulkan/host.h"
#include "device/vulkan/instance.h"
#include "device/vulkan/spirv.h"

/* How the host reaches a block. */
typedef enum berth__vulkan_way {
  BERTH__VULKAN_AUTO,
  BERTH__VULKAN_MAPPED, /* it sees the bytes: reading and writing are plain copies */
  BERTH__VULKAN_STAGED  /* they are the device's alone: everything goes through a buffer that both see */
} berth__vulkan_way;

/* The staging ring: lanes that are filled in turn while those before are on their way. Writes gather in the open lane,
 * which is submitted when it is full or when anything else is. What it copies is recorded only then: a submission that
 * fails leaves it open, with all that was written, and the next one sends it. */
#define BERTH__VULKAN_LANES 4u
#define BERTH__VULKAN_LANE_SIZE ((uint64_t)1 << 20)
#define BERTH__VULKAN_COPIES 256u /* of a lane */

typedef struct berth__vulkan_pending {
  const struct berth__block *block; /* to which; NULL: it is gone */
  uint64_t from, to, size;          /* in the lane; in the block's buffer */
} berth__vulkan_pending;

typedef struct berth__vulkan_lane {
  VkCommandBuffer commands;
  VkFence fence;
  VkFence ends;        /* of the submission that it went with: its own, or that of a run */
  unsigned char *data; /* what the host sees of it */
  uint64_t offset;     /* in the ring's buffer */
  bool is_busy;
} berth__vulkan_lane;

typedef struct berth__vulkan_ring {
  VkBuffer buffer; /* NULL: not needed so far */
  VkDeviceMemory memory;
  uint64_t allocated; /* bytes of it */
  VkCommandPool pool;
  berth__vulkan_lane lanes[BERTH__VULKAN_LANES];
  uint32_t next;
  berth__vulkan_lane *open; /* NULL: none */
  uint64_t used;            /* bytes of it */
  berth__vulkan_pending copies[BERTH__VULKAN_COPIES];
  uint32_t n_copies;
  /* mail.c: after the lanes, small results of the run that ended last. */
  uint64_t mail_offset;
  const unsigned char *mail;
  const struct berth__gpu_binding *mail_of; /* whose they are; NULL: they are nobody's, or no longer right */
} berth__vulkan_ring;
#define BERTH__VULKAN_MAIL ((uint64_t)1024)

typedef struct berth__vulkan_counts {
  uint64_t handles;     /* Vulkan objects that live */
  uint64_t memory;      /* bytes of device memory that live */
  uint64_t peak_memory; /* and at most did */
  uint64_t submissions; /* so far */
  uint64_t pipelines;   /* made so far */
  uint64_t descriptors; /* descriptor sets written so far */
  uint64_t recordings;  /* command buffers recorded so far */
} berth__vulkan_counts;

struct berth__engine {
  berth__gpu_engine core;
  berth__vulkan_host host;
  berth__vulkan_instance instance;
  VkPhysicalDevice physical;
  VkPhysicalDeviceProperties properties;
  VkPhysicalDeviceMemoryProperties memory;
  uint64_t max_buffer, max_allocation, max_binding; /* bytes */
  uint32_t queue_family, timestamp_bits;
  bool keeps_nan, keeps_small; /* the driver can be told to */
  berth__vulkan_way way;
  uint64_t timeout; /* for one wait, in nanoseconds */

  VkDevice device;
  VkQueue queue;
  struct {
#define BERTH__VK_INSTANCE(name)
#define BERTH__VK_OPTIONAL(name)
#define BERTH__VK_DEVICE(name) PFN_vk##name name;
#include "device/vulkan/calls.def"
#undef BERTH__VK_INSTANCE
#undef BERTH__VK_OPTIONAL
#undef BERTH__VK_DEVICE
  } vk;
  VkPipelineCache pipelines;
  berth__spirv_compiler *compiler; /* NULL: no program was made so far */
  berth__vulkan_ring ring;
  berth__vulkan_counts counts;
  uint64_t n_heard; /* of the validation layer's messages, up to the last run */

  bool is_lost;      /* nothing works any more; `why` says since when */
  VkFence hung;      /* what was not seen to end and may still run; NULL: nothing */
  bool is_abandoned; /* it did not end afterwards either: what it uses is never freed */
  char why[200];
};

struct berth__block {
  berth__engine *engine;
  VkBuffer buffer;
  VkDeviceMemory memory;
  uint64_t size;       /* as asked for */
  uint64_t base;       /* where they begin in the buffer */
  uint64_t allocated;  /* bytes of device memory */
  unsigned char *data; /* the first of them, where the host sees it; otherwise NULL */
  bool is_mapped;      /* it does */
  bool is_cached;      /* and reading there is fast */
};

/* ---- engine.c ---- */

berth_status berth__vulkan_open(berth_context *ctx, const char *which, uint32_t n_threads, berth__engine **out,
                                berth_error *err);
void berth__vulkan_close(berth__engine *engine);

/* ---- status.c: what a driver says, and the end of a device ---- */

/* `doing`: "copying to the device". A device that is lost stays so. */
berth_status berth__vulkan_check(berth__engine *engine, VkResult result, const char *doing, berth_error *err);
berth_status berth__vulkan_alive(const berth__engine *engine, berth_error *err);
/* Commands one after the other, as one submission. */
berth_status berth__vulkan_submit(berth__engine *engine, const VkCommandBuffer *commands, uint32_t n, VkFence fence,
                                  const char *doing, berth_error *err);
berth_status berth__vulkan_wait(berth__engine *engine, VkFence fence, const char *doing, berth_error *err);
/* Whether objects may be destroyed: waits until nothing uses them, and is false where that does not end. */
bool berth__vulkan_may_free(berth__engine *engine);

/* Objects are made and destroyed through these, so that they are counted. */
static inline VkResult berth__vulkan_counted(berth__engine *engine, VkResult result) {
  if (result == VK_SUCCESS) engine->counts.handles++;
  return result;
}
#define BERTH__VK_CREATE(engine, kind, info, out) \
  berth__vulkan_counted((engine), (engine)->vk.Create##kind((engine)->device, (info), &(engine)->host.callbacks, (out)))
#define BERTH__VK_DESTROY(engine, kind, handle)                                          \
  do {                                                                                   \
    if ((handle) != VK_NULL_HANDLE) {                                                    \
      (engine)->vk.Destroy##kind((engine)->device, (handle), &(engine)->host.callbacks); \
      (engine)->counts.handles--;                                                        \
      (handle) = VK_NULL_HANDLE;                                                         \
    }                                                                                    \
  } while (0)

/* ---- memory.c: buffers and what is under them ---- */

/* A type that has all of `needed`, in a heap of at least `size` bytes, with the most of `wanted`. False: there is none.
 */
bool berth__vulkan_memory_type(const berth__engine *engine, uint32_t allowed, VkMemoryPropertyFlags needed,
                               VkMemoryPropertyFlags wanted, uint64_t size, uint32_t *out);
berth_status berth__vulkan_allocate(berth__engine *engine, uint64_t size, uint32_t type, VkDeviceMemory *out,
                                    berth_error *err);
void berth__vulkan_free(berth__engine *engine, VkDeviceMemory *memory, uint64_t size);
berth_status berth__vulkan_make_buffer(berth__engine *engine, uint64_t size, VkBufferUsageFlags usage, VkBuffer *out,
                                       berth_error *err);

/* ---- ring.c: the staging ring ---- */

berth_status berth__vulkan_ring_need(berth__engine *engine, berth_error *err); /* makes it the first time */
void berth__vulkan_ring_destroy(berth__engine *engine);
/* The next lane, free and recording; what it records comes after all that was submitted. */
berth_status berth__vulkan_lane_begin(berth__engine *engine, berth__vulkan_lane **out, berth_error *err);
berth_status berth__vulkan_lane_open(berth__engine *engine, berth_error *err); /* one with room, for writes */
berth_status berth__vulkan_ring_flush(berth__engine *engine, berth_error *err);
void berth__vulkan_ring_forget(berth__engine *engine, const berth__block *block); /* which is destroyed */
berth_status berth__vulkan_lane_submit(berth__engine *engine, berth__vulkan_lane *lane, berth_error *err);
berth_status berth__vulkan_lane_wait(berth__engine *engine, berth__vulkan_lane *lane, berth_error *err);
/* What was written, and then `commands`, if any, in one submission; and what is known once its fence is. */
berth_status berth__vulkan_ring_submit(berth__engine *engine, VkCommandBuffer commands, VkFence fence,
                                       const char *doing, berth_error *err);
void berth__vulkan_ring_ended(berth__engine *engine, VkFence fence);

/* ---- mail.c: see code.h ---- */

/* Whether these bytes are among the small results of the last run; then they are there. Whoever changes a block's bytes
 * sets mail_of to NULL. */
bool berth__vulkan_mail_read(const berth__block *block, uint64_t offset, void *dst, uint64_t size);
/* All that was done so far before all that comes. */
void berth__vulkan_barrier(const berth__engine *engine, VkCommandBuffer commands);

/* ---- block.c, transfer.c ---- */

berth_status berth__vulkan_block_create(berth__engine *engine, uint64_t size, uint64_t align, void *host,
                                        berth__block **out, berth_error *err);
void berth__vulkan_block_destroy(berth__block *block);
void *berth__vulkan_block_host(berth__block *block);
berth_status berth__vulkan_write(berth__block *block, uint64_t offset, const void *src, uint64_t size,
                                 berth_error *err);
berth_status berth__vulkan_read(const berth__block *block, uint64_t offset, void *dst, uint64_t size, berth_error *err);
berth_status berth__vulkan_copy(berth__block *dst, uint64_t dst_offset, const berth__block *src, uint64_t src_offset,
                                uint64_t size, berth_error *err);
berth_status berth__vulkan_fill(berth__block *block, uint64_t offset, uint64_t size, uint8_t byte, berth_error *err);

/* ---- record.c ---- */

extern const berth__gpu_driver berth__vulkan_driver;

#endif
