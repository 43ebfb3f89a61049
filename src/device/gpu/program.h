/* A program on any GPU. */
#ifndef BERTH_DEVICE_GPU_PROGRAM_H
#define BERTH_DEVICE_GPU_PROGRAM_H

#include "device/gpu/driver.h"
#include "device/gpu/host_step.h"
#include "device/watch.h"

/* What a program is bound to: a block, and what the driver made for it. */
typedef struct berth__gpu_bound {
  berth__block *block; /* NULL: none */
  berth__gpu_binding *binding;
} berth__gpu_bound;

struct berth__program {
  berth_context *ctx;
  berth__engine *engine;
  const berth__gpu_driver *driver;
  berth__program *next; /* next in the engine's list */
  const berth_plan *plan;
  berth__recipe *recipe;
  berth__host_steps *host; /* NULL: no host steps */
  berth__gpu_code *code;
  berth__gpu_part *parts;
  size_t n_parts, n_prelude; /* the first n_prelude parts run once */
  double *ms;                /* the times of one part's steps */

  berth__gpu_bound now, before; /* the previous binding is kept, so that going back to it cannot fail */

  berth__watch *watch;   /* checked mode: every step is a part */
  unsigned char *shadow; /* the host's copy of the arena in checked mode, if it cannot access the arena directly */

  berth__observer observer; /* of the submitted run */
  bool is_under_way;        /* its first part has been submitted */
};

#endif
