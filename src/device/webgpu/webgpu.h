/* WebGPU, from C: the arena is one storage buffer, a run one command buffer. */
#ifndef BERTH_DEVICE_WEBGPU_WEBGPU_H
#define BERTH_DEVICE_WEBGPU_WEBGPU_H

#include "device/gpu/driver.h"
#include "device/webgpu/api.h"

#define BERTH__WEBGPU_TEXT 400u
#define BERTH__WEBGPU_NAME 96u
#define BERTH__WEBGPU_STAGING ((uint64_t)1 << 22) /* bytes that are read back, or moved inside a block, at a time */
#define BERTH__WEBGPU_PIECE 4096u
#define BERTH__WEBGPU_TIMED 256u /* steps whose times are read at a time */

typedef struct berth__webgpu_counts {
  uint64_t objects;     /* live ones */
  uint64_t submissions; /* so far */
} berth__webgpu_counts;

/* The answer to a pending request. */
typedef struct berth__webgpu_answer {
  bool is_here;
  uint32_t status, type;
  berth__wgpu object;
  char text[BERTH__WEBGPU_TEXT];
} berth__webgpu_answer;

struct berth__engine {
  berth__gpu_engine core;
  const berth__wgpu_calls *gpu;
  berth__wgpu instance, adapter, device, queue;
  char name[BERTH__WEBGPU_NAME];
  berth__wgpu_limits limits; /* of the device */
  uint64_t max_binding;      /* bytes */
  double timeout;            /* for one wait, in ms */
  bool has_even_lanes;       /* all its subgroups have the same size */
  bool binds_each;           /* one bind group per dispatch: dynamic offsets must not be used */

  berth__wgpu staging; /* host-readable; NULL: not needed yet */
  berth__wgpu moving;  /* for copies inside one block; NULL: not needed yet */
  berth__wgpu times;   /* a query set with two entries per step; NULL: the device has no readable clock */
  berth__wgpu ticks;   /* its contents, as a buffer */
  unsigned char piece[BERTH__WEBGPU_PIECE];
  berth__webgpu_answer answer;

  berth__webgpu_counts counts;

  bool is_lost; /* nothing works any more; `why` is the cause */
  char why[BERTH__WEBGPU_TEXT];
  bool has_failed;               /* an error was reported outside of any check */
  char said[BERTH__WEBGPU_TEXT]; /* its message */
};

struct berth__block {
  berth__engine *engine;
  berth__wgpu buffer;
  uint64_t size;      /* as requested */
  uint64_t allocated; /* rounded up to whole words */
};

/* ---- engine.c ---- */

berth_status berth__webgpu_open(berth_context *ctx, const char *which, uint32_t n_threads, berth__engine **out,
                                berth_error *err);
void berth__webgpu_close(berth__engine *engine);
/* The same, but the error is only the reason. */
berth_status berth__webgpu_try(berth_context *ctx, uint32_t n_threads, berth__engine **out, berth_error *err);

/* ---- status.c: waiting, errors, and the end of a device ---- */

berth_status berth__webgpu_alive(const berth__engine *engine, berth_error *err);
/* Waits for engine->answer; `doing`: "copying from the device". */
berth_status berth__webgpu_wait(berth__engine *engine, const char *doing, berth_error *err);
/* Brackets calls that create objects: the second function returns their errors. */
void berth__webgpu_watch(berth__engine *engine);
berth_status berth__webgpu_check(berth__engine *engine, const char *doing, berth_error *err);
/* The same for a created object: an implementation that returns nothing and reports nothing has failed too. */
berth_status berth__webgpu_check_made(berth__engine *engine, berth__wgpu object, const char *doing, berth_error *err);
/* Errors reported outside of these brackets since the last call. */
berth_status berth__webgpu_hear(berth__engine *engine, const char *doing, berth_error *err);
void berth__webgpu_copy_text(char *out, size_t size, berth__wgpu_string text);
/* Callbacks. */
void berth__webgpu_on_error(const berth__wgpu *device, uint32_t type, berth__wgpu_string message, void *engine,
                            void *unused);
void berth__webgpu_on_lost(const berth__wgpu *device, uint32_t reason, berth__wgpu_string message, void *engine,
                           void *unused);
void berth__webgpu_on_object(uint32_t status, berth__wgpu object, berth__wgpu_string message, void *engine,
                             void *unused);

/* Objects are made and released through these, so that they are counted. */
static inline berth__wgpu berth__webgpu_counted(berth__engine *engine, berth__wgpu object) {
  if (object != NULL) engine->counts.objects++;
  return object;
}
#define BERTH__WEBGPU_CREATE(engine, kind, desc) \
  berth__webgpu_counted((engine), (engine)->gpu->DeviceCreate##kind((engine)->device, (desc)))
#define BERTH__WEBGPU_RELEASE(engine, kind, object) \
  do {                                              \
    if ((object) != NULL) {                         \
      (engine)->gpu->kind##Release(object);         \
      (engine)->counts.objects--;                   \
      (object) = NULL;                              \
    }                                               \
  } while (0)

/* ---- exchange.c: subgroup exchange ---- */

/* The features to request from a device; returns their number. */
size_t berth__webgpu_exchange_features(const berth__engine *engine, uint32_t features[2]);
berth_status berth__webgpu_try_exchange(berth__engine *engine, berth_error *err); /* sets the profile */

/* ---- times.c: the device's clock, if it has one ---- */

/* The features to request from a device; returns their number. */
size_t berth__webgpu_times_features(const berth__engine *engine, uint32_t features[2]);
berth_status berth__webgpu_make_times(berth__engine *engine, berth_error *err); /* if they are supported */
void berth__webgpu_free_times(berth__engine *engine);
/* The passes of a recording are numbered from 0; afterwards their timestamps go to the staging buffer. */
berth__wgpu berth__webgpu_begin_timed(berth__engine *engine, berth__wgpu encoder, uint32_t pass);
uint64_t berth__webgpu_fetch_times(berth__engine *engine, berth__wgpu encoder, uint32_t n_passes); /* their bytes */
double berth__webgpu_time_of(const uint64_t *ticks, uint32_t pass);                                /* in ms */

/* ---- block.c, transfer.c ---- */

berth_status berth__webgpu_make_buffer(berth__engine *engine, uint64_t usage, uint64_t size, berth__wgpu *out,
                                       berth_error *err);
void berth__webgpu_free_buffer(berth__engine *engine, berth__wgpu *buffer);
berth_status berth__webgpu_block_create(berth__engine *engine, uint64_t size, uint64_t align, void *host,
                                        berth__block **out, berth_error *err);
void berth__webgpu_block_destroy(berth__block *block);
berth_status berth__webgpu_write(berth__block *block, uint64_t offset, const void *src, uint64_t size,
                                 berth_error *err);
berth_status berth__webgpu_read(const berth__block *block, uint64_t offset, void *dst, uint64_t size, berth_error *err);
berth_status berth__webgpu_copy(berth__block *dst, uint64_t dst_offset, const berth__block *src, uint64_t src_offset,
                                uint64_t size, berth_error *err);
berth_status berth__webgpu_fill(berth__block *block, uint64_t offset, uint64_t size, uint8_t byte, berth_error *err);

/* Commands are recorded, dispatches in passes, and submitted, which releases the encoder. */
berth__wgpu berth__webgpu_record(berth__engine *engine);
berth__wgpu berth__webgpu_begin_pass(berth__engine *engine, berth__wgpu encoder, const berth__wgpu_pass_desc *desc);
void berth__webgpu_end_pass(berth__engine *engine, berth__wgpu pass);
void berth__webgpu_submit(berth__engine *engine, berth__wgpu encoder);
berth_status berth__webgpu_need_staging(berth__engine *engine, berth_error *err);
/* Waits for the last commands, which have written to the staging buffer, and returns bytes of it. size 0: only
 * waits. */
berth_status berth__webgpu_fetch(berth__engine *engine, uint64_t offset, void *dst, uint64_t size, const char *doing,
                                 berth_error *err);

/* ---- record.c ---- */

extern const berth__gpu_driver berth__webgpu_driver;

#endif
