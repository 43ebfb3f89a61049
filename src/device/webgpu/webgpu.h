/* WebGPU, from C: the arena is one storage buffer, a run one command buffer. */
#ifndef BERTH_DEVICE_WEBGPU_WEBGPU_H
#define BERTH_DEVICE_WEBGPU_WEBGPU_H

#include "device/gpu/driver.h"
#include "device/webgpu/api.h"

#define BERTH__WEBGPU_TEXT 400u
#define BERTH__WEBGPU_NAME 96u
#define BERTH__WEBGPU_STAGING ((uint64_t)1 << 22) /* bytes that are read back, or moved inside a block, at once */
#define BERTH__WEBGPU_PIECE 4096u
#define BERTH__WEBGPU_TIMED 256u /* steps whose times are read at once */

typedef struct berth__webgpu_counts {
  uint64_t objects;     /* that live */
  uint64_t submissions; /* so far */
} berth__webgpu_counts;

/* Something that was asked for and has not been answered, or what the answer was. */
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
  berth__wgpu_limits limits; /* as the device has them */
  uint64_t max_binding;      /* bytes */
  double timeout;            /* for one wait, in ms */
  bool has_even_lanes;       /* its subgroups are all of one size */
  bool binds_each;           /* a bind group for each dispatch: dynamic offsets are not to be used */

  berth__wgpu staging; /* the host reads it; NULL: not needed so far */
  berth__wgpu moving;  /* copies inside one block go through it; NULL: likewise */
  berth__wgpu times;   /* a query set: two entries per step; NULL: the device has no clock that can be read */
  berth__wgpu ticks;   /* what was in it, as a buffer */
  unsigned char piece[BERTH__WEBGPU_PIECE];
  berth__webgpu_answer answer;

  berth__webgpu_counts counts;

  bool is_lost; /* nothing works any more; `why` says since when */
  char why[BERTH__WEBGPU_TEXT];
  bool has_failed;               /* something said so that nobody was waiting for */
  char said[BERTH__WEBGPU_TEXT]; /* what */
};

struct berth__block {
  berth__engine *engine;
  berth__wgpu buffer;
  uint64_t size;      /* as asked for */
  uint64_t allocated; /* whole words */
};

/* ---- engine.c ---- */

berth_status berth__webgpu_open(berth_context *ctx, const char *which, uint32_t n_threads, berth__engine **out,
                                berth_error *err);
void berth__webgpu_close(berth__engine *engine);
/* The same, and the error is the reason alone. */
berth_status berth__webgpu_try(berth_context *ctx, uint32_t n_threads, berth__engine **out, berth_error *err);

/* ---- status.c: waiting, errors, and the end of a device ---- */

berth_status berth__webgpu_alive(const berth__engine *engine, berth_error *err);
/* Until engine->answer is here; `doing`: "copying from the device". */
berth_status berth__webgpu_wait(berth__engine *engine, const char *doing, berth_error *err);
/* Around calls that make things: what they say comes back from the second one. */
void berth__webgpu_watch(berth__engine *engine);
berth_status berth__webgpu_check(berth__engine *engine, const char *doing, berth_error *err);
/* The same, where something was made: an implementation that makes nothing and says nothing has failed too. */
berth_status berth__webgpu_check_made(berth__engine *engine, berth__wgpu object, const char *doing, berth_error *err);
/* What was said outside of that since the last time. */
berth_status berth__webgpu_hear(berth__engine *engine, const char *doing, berth_error *err);
void berth__webgpu_copy_text(char *out, size_t size, berth__wgpu_string text);
/* Called by the implementation. */
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

/* ---- exchange.c: lanes that exchange what they have ---- */

/* The features that a device must be asked for; returns how many there are. */
size_t berth__webgpu_exchange_features(const berth__engine *engine, uint32_t features[2]);
berth_status berth__webgpu_try_exchange(berth__engine *engine, berth_error *err); /* sets the profile */

/* ---- times.c: the device's clock, where it has one ---- */

/* The features that a device must be asked for; returns how many there are. */
size_t berth__webgpu_times_features(const berth__engine *engine, uint32_t features[2]);
berth_status berth__webgpu_make_times(berth__engine *engine, berth_error *err); /* where they can be had */
void berth__webgpu_free_times(berth__engine *engine);
/* Passes are counted from 0 in what is recorded; after them their times go to the staging buffer. */
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

/* Commands are recorded, in passes where they are dispatches, and submitted, which releases what recorded them. */
berth__wgpu berth__webgpu_record(berth__engine *engine);
berth__wgpu berth__webgpu_begin_pass(berth__engine *engine, berth__wgpu encoder, const berth__wgpu_pass_desc *desc);
void berth__webgpu_end_pass(berth__engine *engine, berth__wgpu pass);
void berth__webgpu_submit(berth__engine *engine, berth__wgpu encoder);
berth_status berth__webgpu_need_staging(berth__engine *engine, berth_error *err);
/* Waits for the last commands, which have written to the staging buffer, and gives bytes of it. size 0: only waits. */
berth_status berth__webgpu_fetch(berth__engine *engine, uint64_t offset, void *dst, uint64_t size, const char *doing,
                                 berth_error *err);

/* ---- record.c ---- */

extern const berth__gpu_driver berth__webgpu_driver;

#endif
