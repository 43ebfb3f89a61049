/* A program on any GPU. */
#ifndef BERTH_DEVICE_GPU_PROGRAM_H
#define BERTH_DEVICE_GPU_PROGRAM_H

#include "device/gpu/driver.h"
#include "device/gpu/host_step.h"
#include "device/watch.h"

/* A program is bound to a block by what its driver made for it. */
typedef struct berth__gpu_bound {
  berth__block *block; /* NULL: none */
  berth__gpu_binding *binding;
} berth__gpu_bound;

struct berth__program {
  berth_context *ctx;
  berth__engine *engine;
  const berth__gpu_driver *driver;
  berth__program *next; /* of the engine's */
  const berth_plan *plan;
  berth__recipe *recipe;
  berth__host_steps *host; /* NULL: there are none */
  berth__gpu_code *code;
  berth__gpu_part *parts;
  size_t n_parts, n_prelude; /* the first ones run once */
  double *ms;                /* the times of one part's steps */

  berth__gpu_bound now, before; /* the binding before stays, so that going back to it cannot fail */

  berth__watch *watch;   /* checked mode: every step is a part */
  unsigned char *shadow; /* what the host sees of the arena then, where it does not see the arena itself */

  berth__observer observer; /* of the run that was submitted */
  bool is_under_way;        /* its first part is submitted */
};

#endif
