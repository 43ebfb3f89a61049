/* CUDA, by the driver's interface alone: the arena is one allocation, a program one graph that is made once. */
#ifndef BERTH_DEVICE_CUDA_CUDA_H
#define BERTH_DEVICE_CUDA_CUDA_H

#include "device/cuda/api.h"
#include "device/cuda/compiler.h"
#include "device/gpu/driver.h"

#define BERTH__CUDA_NAME 96u
#define BERTH__CUDA_MAX_DEVICES 16u /* those after are not looked at */

/* Pinned memory between host and device, made once with the first block: lanes that are filled in turn while those
 * before are on their way. Writes fill the lane that is open; reads have lanes of their own. */
#define BERTH__CUDA_LANES 2u
#define BERTH__CUDA_LANE_SIZE ((uint64_t)2 << 20)

typedef struct berth__cuda_lane {
  unsigned char *data;
  berth__cu_event event; /* behind the last copy that uses it */
  bool is_busy;
} berth__cuda_lane;

typedef struct berth__cuda_staging {
  void *data; /* NULL: not needed so far */
  berth__cuda_lane up[BERTH__CUDA_LANES], down[BERTH__CUDA_LANES];
  uint32_t open; /* of `up` */
  uint64_t used; /* bytes of it */
} berth__cuda_staging;

typedef struct berth__cuda_counts {
  uint64_t objects;     /* that live: streams, events, modules, graphs, allocations */
  uint64_t memory;      /* bytes of device memory that live */
  uint64_t peak_memory; /* and at most did */
  uint64_t submissions; /* so far */
} berth__cuda_counts;

struct berth__engine {
  berth__gpu_engine core;
  const berth__cu_calls *cu;
  char name[BERTH__CUDA_NAME];
  berth__cu_device device;
  uint32_t ordinal;          /* of the device, as the driver counts */
  uint64_t memory;           /* bytes that it has */
  double timeout;            /* for one wait, in ms */
  berth__cu_context context; /* the device's primary one, with the first block or program; NULL: not so far */
  berth__cu_stream stream;   /* everything is on it, in order */
  berth__cuda_staging staging;
  berth__cuda_compiler compiler;
  berth__cuda_counts counts;

  bool is_lost;      /* nothing works any more; `why` says since when */
  bool is_abandoned; /* what it was given does not end: what it uses is never freed */
  char why[BERTH__CUDA_TEXT];
};

struct berth__block {
  berth__engine *engine;
  berth__cu_address allocated, base; /* as the driver gave it; where the arena begins in it */
  uint64_t size, taken;              /* as asked for; bytes of device memory */
};

/* ---- engine.c ---- */

berth_status berth__cuda_open(berth_context *ctx, const char *which, uint32_t n_threads, berth__engine **out,
                              berth_error *err);
void berth__cuda_close(berth__engine *engine);
/* The index-th device, as described. False: `reason` says why not. */
bool berth__cuda_describe(const berth_context *ctx, uint32_t index, berth_device_info *out,
                          char reason[BERTH__CUDA_TEXT]);
uint32_t berth__cuda_count(const berth_context *ctx);

/* ---- status.c: what a driver says, waiting, and the end of a device ---- */

/* Around every use: makes the engine's context current, and what it was before again. Fails on a lost device. */
berth_status berth__cuda_enter(berth__engine *engine, berth_error *err);
void berth__cuda_leave(berth__engine *engine);
/* The same for freeing, which a lost device does not stop. False: nothing may be freed. */
bool berth__cuda_enter_to_free(berth__engine *engine);
/* `doing`: "copying to the device". A device that is lost stays so. */
berth_status berth__cuda_check(berth__engine *engine, berth__cu_result result, const char *doing, berth_error *err);
berth_status berth__cuda_alive(const berth__engine *engine, berth_error *err);
/* Until an event has come; NULL: until all of the stream is over. */
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

berth_status berth__cuda_staging_need(berth__engine *engine, berth_error *err); /* makes it the first time */
void berth__cuda_staging_destroy(berth__engine *engine);
/* The lane to write to, which has room. */
berth_status berth__cuda_staging_open(berth__engine *engine, berth__cuda_lane **out, berth_error *err);
/* After a copy out of the open lane: what is behind it. */
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
