/* CUDA, using only the driver API: the arena is one allocation, a program one graph that is made once. */
#ifndef BERTH_DEVICE_CUDA_CUDA_H
#define BERTH_DEVICE_CUDA_CUDA_H

#include "device/cuda/api.h"
#include "device/cuda/compiler.h"
#include "device/gpu/driver.h"

#define BERTH__CUDA_NAME 96u
#define BERTH__CUDA_MAX_DEVICES 16u /* further devices are ignored */

/* Pinned memory between host and device, allocated with the first block: lanes that are filled in turn while the
 * previous ones are in flight. Writes fill the open lane; reads have their own lanes. */
#define BERTH__CUDA_LANES 2u
#define BERTH__CUDA_LANE_SIZE ((uint64_t)2 << 20)

typedef struct berth__cuda_lane {
  unsigned char *data;
  berth__cu_event event; /* after the last copy that uses it */
  bool is_busy;
} berth__cuda_lane;

typedef struct berth__cuda_staging {
  void *data; /* NULL: not needed yet */
  berth__cuda_lane up[BERTH__CUDA_LANES], down[BERTH__CUDA_LANES];
  uint32_t open; /* index in `up` */
  uint64_t used; /* its used bytes */
} berth__cuda_staging;

typedef struct berth__cuda_counts {
  uint64_t objects;     /* live streams, events, modules, graphs, allocations */
  uint64_t memory;      /* live bytes of device memory */
  uint64_t peak_memory; /* its maximum */
  uint64_t submissions; /* so far */
} berth__cuda_counts;

struct berth__engine {
  berth__gpu_engine core;
  const berth__cu_calls *cu;
  char name[BERTH__CUDA_NAME];
  berth__cu_device device;
  uint32_t ordinal;          /* of the device, in the driver's numbering */
  uint64_t memory;           /* its total bytes */
  double timeout;            /* for one wait, in ms */
  berth__cu_context context; /* the device's primary context, retained with the first block or program; NULL: not yet */
  berth__cu_stream stream;   /* all work is on it, in order */
  berth__cuda_staging staging;
  berth__cuda_compiler compiler;
  berth__cuda_counts counts;

  bool is_lost;      /* nothing works any more; `why` is the cause */
  bool is_abandoned; /* its work does not end: what it uses is leaked */
  char why[BERTH__CUDA_TEXT];
};

struct berth__block {
  berth__engine *engine;
  berth__cu_address allocated, base; /* as returned by the driver; the start of the arena in it */
  uint64_t size, taken;              /* as requested; bytes of device memory */
};

/* ---- engine.c ---- */

berth_status berth__cuda_open(berth_context *ctx, const char *which, uint32_t n_threads, berth__engine **out,
                              berth_error *err);
void berth__cuda_close(berth__engine *engine);
/* The description of device `index`. False: `reason` says why not. */
bool berth__cuda_describe(const berth_context *ctx, uint32_t index, berth_device_info *out,
                          char reason[BERTH__CUDA_TEXT]);
uint32_t berth__cuda_count(const berth_context *ctx);

/* ---- status.c: driver errors, waiting, and the end of a device ---- */

/* Brackets every use: makes the engine's context current, and then restores the previous one. Fails on a lost
 * device. */
berth_status berth__cuda_enter(berth__engine *engine, berth_error *err);
void berth__cuda_leave(berth__engine *engine);
/* The same for freeing, which also works on a lost device. False: nothing may be freed. */
bool berth__cuda_enter_to_free(berth__engine *engine);
/* `doing`: "copying to the device". A lost device stays lost. */
berth_status berth__cuda_check(berth__engine *engine, berth__cu_result result, const char *doing, berth_error *err);
berth_status berth__cuda_alive(const berth__engine *engine, berth_error *err);
/* Waits for an event; NULL: for the whole stream. */
berth_status berth__cuda_wait(berth__engine *engine, berth__cu_event event, const char *doing, berth_error *err);

/* Objects are made and destroyed through these, so that they are counted. */
static inline berth__cu_result berth__cuda_counted(berth__engine *engine, berth__cu_result result) {
  if (result == BERTH__CU_SUCCESS) engine->counts.objects++;
  return result;
}
#define BERTH__CUDA_FREE(engine, call, object) \
  do {                                         \
    if (object) {                              \
      (void)(engine)->cu->call(object);        \
      (engine)->counts.objects--;              \
      (object) = 0;                            \
    }                                          \
  } while (0)

/* ---- staging.c ---- */

berth_status berth__cuda_staging_need(berth__engine *engine, berth_error *err); /* creates it on first use */
void berth__cuda_staging_destroy(berth__engine *engine);
/* The lane for writes, which has room. */
berth_status berth__cuda_staging_open(berth__engine *engine, berth__cuda_lane **out, berth_error *err);
/* Call after a copy out of the open lane: records its event. */
berth_status berth__cuda_staging_used(berth__engine *engine, uint64_t size, berth_error *err);
berth_status berth__cuda_lane_mark(berth__engine *engine, berth__cuda_lane *lane, berth_error *err);
berth_status berth__cuda_lane_wait(berth__engine *engine, berth__cuda_lane *lane, berth_error *err);

/* ---- block.c, transfer.c ---- */

berth_status berth__cuda_block_create(berth__engine *engine, uint64_t size, uint64_t align, void *host,
                                      berth__block **out, berth_error *err);
void berth__cuda_block_destroy(berth__block *block);
berth_status berth__cuda_write(berth__block *block, uint64_t offset, const void *src, uint64_t size, berth_error *err);
berth_status berth__cuda_read(const berth__block *block, uint64_t offset, void *dst, uint64_t size, berth_error *err);
berth_status berth__cuda_copy(berth__block *dst, uint64_t dst_offset, const berth__block *src, uint64_t src_offset,
                              uint64_t size, berth_error *err);
berth_status berth__cuda_memory(const berth__block *block, berth_memory *out, berth_error *err);
berth_status berth__cuda_write_memory(berth__block *block, uint64_t offset, uint64_t src, uint64_t size,
                                      berth_error *err);
berth_status berth__cuda_read_memory(const berth__block *block, uint64_t offset, uint64_t dst, uint64_t size,
                                     berth_error *err);
berth_status berth__cuda_fill(berth__block *block, uint64_t offset, uint64_t size, uint8_t byte, berth_error *err);

/* ---- graph.c ---- */

extern const berth__gpu_driver berth__cuda_driver;

#endif
