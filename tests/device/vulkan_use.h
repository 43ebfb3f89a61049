/* A model on the device "vulkan", by a session or by hand. */
#ifndef BERTH_TESTS_DEVICE_VULKAN_USE_H
#define BERTH_TESTS_DEVICE_VULKAN_USE_H

#ifdef BERTH__HAS_VULKAN
#include "device/gpu/program.h"
#include "device/vulkan/code.h"
#include "gpu_use.h"
#include "vulkan.h"

typedef struct vulkan_fixture {
  gpu_fixture use;
  berth__engine *engine;
  berth_error err;
} vulkan_fixture;

/* Memory and windows, in which everything must give the same. */
typedef struct vulkan_way {
  const char *memory, *max_binding;
} vulkan_way;
#define VULKAN_WAYS 4u
extern const vulkan_way vulkan_ways[VULKAN_WAYS];

/* A session with its params set; its engine, where the device is this one. */
void vulkan_start(vulkan_fixture *f, const char *device, uint32_t flags);
void vulkan_start_in(vulkan_fixture *f, size_t way, uint32_t flags);
void vulkan_finish(vulkan_fixture *f);            /* nothing is left behind, and the validation layer said nothing */
void vulkan_expect_right(berth_session *session); /* as on the CPU */

/* An engine and a plan for it, without a session. */
typedef struct vulkan_bench {
  test_alloc alloc;
  berth_context *ctx;
  berth_graph *graph;
  berth_plan *plan;
  berth__engine *engine;
  uint64_t handles; /* of the engine alone */
  berth_error err;
} vulkan_bench;

void vulkan_set_up(vulkan_bench *b, const char *memory);
void vulkan_take_down(vulkan_bench *b);
/* Everything that a session does with a device, but opening it. */
berth_status vulkan_use_once(vulkan_bench *b);
#endif

#endif
