/* Vulkan: the arena is one storage buffer, a program one command buffer that is recorded once. */
#ifndef BERTH_DEVICE_VULKAN_VULKAN_H
#define BERTH_DEVICE_VULKAN_VULKAN_H

#include "device/gpu/driver.h"
#include "device/vulkan/host.h"
#include "device/vulkan/instance.h"
#include "device/vulkan/matrices.h"
#include "device/vulkan/spirv.h"

/* How the host accesses a block. */
typedef enum berth__vulkan_way {
  BERTH__VULKAN_AUTO,
  BERTH__VULKAN_MAPPED, /* directly: reading and writing are plain copies */
  BERTH__VULKAN_STAGED  /* not directly: everything goes through a staging buffer */
} berth__vulkan_way;

/* The staging ring: lanes that are filled in turn while the previous ones are in flight. Writes are collected in the
 * open lane, which is submitted when it is full or when anything else is. Its copies are recorded only then: a
 * submission that fails leaves the lane open, with everything that was written, and the next one sends it. */
#define BERTH__VULKAN_LANES 4u
#define BERTH__VULKAN_LANE_SIZE ((uint64_t)1 << 20)
#define BERTH__VULKAN_COPIES 256u /* per lane */

typedef struct berth__vulkan_pending {
  const struct berth__block *block; /* destination; NULL: destroyed */
  uint64_t from, to, size;          /* in the lane; in the block's buffer */
} berth__vulkan_pending;

typedef struct berth__vulkan_lane {
  VkCommandBuffer commands;
  VkFence fence;
  VkFence ends;        /* fence of its submission: its own, or that of a run */
  unsigned char *data; /* mapped for the host */
  uint64_t offset;     /* in the ring's buffer */
  bool is_busy;
} berth__vulkan_lane;

typedef struct berth__vulkan_ring {
  VkBuffer buffer; /* NULL: not needed yet */
  VkDeviceMemory memory;
  uint64_t allocated; /* its size */
  VkCommandPool pool;
  berth__vulkan_lane lanes[BERTH__VULKAN_LANES];
  uint32_t next;
  berth__vulkan_lane *open; /* NULL: none */
  uint64_t used;            /* its used bytes */
  berth__vulkan_pending copies[BERTH__VULKAN_COPIES];
  uint32_t n_copies;
  /* mail.c: offset, after the lanes, of the small results of the last run. */
  uint64_t mail_offset;
  const unsigned char *mail;
  const struct berth__gpu_binding *mail_of; /* the binding that they belong to; NULL: none, or outdated */
} berth__vulkan_ring;
#define BERTH__VULKAN_MAIL ((uint64_t)1024)

typedef struct berth__vulkan_counts {
  uint64_t handles;     /* live Vulkan objects */
  uint64_t memory;      /* live bytes of device memory */
  uint64_t peak_memory; /* its maximum */
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
  bool keeps_nan, keeps_small; /* supported by the driver */
  bool has_int16;
  berth__render_units units; /* cooperative matrices */
  uint32_t unit_kinds;       /* bits of berth_compute; 0: none */
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
  berth__spirv_compiler *compiler; /* NULL: no program has been made yet */
  berth__vulkan_ring ring;
  berth__vulkan_counts counts;
  uint64_t n_heard; /* messages of the validation layer up to the last run */

  bool is_lost;      /* nothing works any more; `why` is the cause */
  VkFence hung;      /* fence that timed out and whose work may still run; NULL: none */
  bool is_abandoned; /* it did not end afterwards either: its objects are leaked */
  char why[200];
};

struct berth__block {
  berth__engine *engine;
  VkBuffer buffer;
  VkDeviceMemory memory;
  uint64_t size;       /* as requested */
  uint64_t base;       /* start of the arena in the buffer */
  uint64_t allocated;  /* bytes of device memory */
  unsigned char *data; /* its address, if the host can access it; otherwise NULL */
  bool is_mapped;      /* the host can access it */
  bool is_cached;      /* and reading is fast */
};

/* ---- engine.c ---- */

berth_status berth__vulkan_open(berth_context *ctx, const char *which, uint32_t n_threads, berth__engine **out,
                                berth_error *err);
void berth__vulkan_close(berth__engine *engine);

/* ---- matrices.c ---- */

/* Sets `units`, `unit_kinds` and `has_int16` by what the driver has. lanes: threads of a subgroup. */
void berth__vulkan_find_units(berth__engine *engine, uint32_t lanes, bool has_full_subgroups);
/* What is turned on when a device is opened; `next` is the chain of features so far. */
typedef struct berth__vulkan_wanted {
  const void *next;
  VkPhysicalDeviceFeatures core;
  const char *extensions[2];
  uint32_t n_extensions;
  VkPhysicalDeviceVulkan12Features newer;
  VkPhysicalDeviceCooperativeMatrixFeaturesKHR matrices;
  VkPhysicalDeviceShaderBfloat16FeaturesKHR bf16;
} berth__vulkan_wanted;
void berth__vulkan_want_units(const berth__engine *engine, berth__vulkan_wanted *out);

/* ---- status.c: driver errors, and the end of a device ---- */

/* `doing`: "copying to the device". A lost device stays lost. */
berth_status berth__vulkan_check(berth__engine *engine, VkResult result, const char *doing, berth_error *err);
berth_status berth__vulkan_alive(const berth__engine *engine, berth_error *err);
/* Submits several command buffers, in order, at once. */
berth_status berth__vulkan_submit(berth__engine *engine, const VkCommandBuffer *commands, uint32_t n, VkFence fence,
                                  const char *doing, berth_error *err);
berth_status berth__vulkan_wait(berth__engine *engine, VkFence fence, const char *doing, berth_error *err);
/* Whether objects may be destroyed: waits until nothing uses them; false if that does not end. */
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

/* ---- memory.c: buffers and their memory ---- */

/* A memory type with all of `needed`, in a heap of at least `size` bytes, with the most of `wanted`. False: there is
 * none. */
bool berth__vulkan_memory_type(const berth__engine *engine, uint32_t allowed, VkMemoryPropertyFlags needed,
                               VkMemoryPropertyFlags wanted, uint64_t size, uint32_t *out);
berth_status berth__vulkan_allocate(berth__engine *engine, uint64_t size, uint32_t type, VkDeviceMemory *out,
                                    berth_error *err);
void berth__vulkan_free(berth__engine *engine, VkDeviceMemory *memory, uint64_t size);
berth_status berth__vulkan_make_buffer(berth__engine *engine, uint64_t size, VkBufferUsageFlags usage, VkBuffer *out,
                                       berth_error *err);

/* ---- ring.c: the staging ring ---- */

berth_status berth__vulkan_ring_need(berth__engine *engine, berth_error *err); /* creates it on first use */
void berth__vulkan_ring_destroy(berth__engine *engine);
/* The next lane, free and recording; its commands come after everything submitted before. */
berth_status berth__vulkan_lane_begin(berth__engine *engine, berth__vulkan_lane **out, berth_error *err);
berth_status berth__vulkan_lane_open(berth__engine *engine, berth_error *err); /* one with room, for writes */
berth_status berth__vulkan_ring_flush(berth__engine *engine, berth_error *err);
void berth__vulkan_ring_forget(berth__engine *engine, const berth__block *block); /* the block is being destroyed */
berth_status berth__vulkan_lane_submit(berth__engine *engine, berth__vulkan_lane *lane, berth_error *err);
berth_status berth__vulkan_lane_wait(berth__engine *engine, berth__vulkan_lane *lane, berth_error *err);
/* Submits pending writes followed by `commands`, if any; and what happens once its fence is signalled. */
berth_status berth__vulkan_ring_submit(berth__engine *engine, VkCommandBuffer commands, VkFence fence,
                                       const char *doing, berth_error *err);
void berth__vulkan_ring_ended(berth__engine *engine, VkFence fence);

/* ---- mail.c: see code.h ---- */

/* Whether these bytes are among the small results of the last run; if so, copies them. Whoever changes a block's bytes
 * sets mail_of to NULL. */
bool berth__vulkan_mail_read(const berth__block *block, uint64_t offset, void *dst, uint64_t size);
/* Everything before it completes before anything after it. */
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
