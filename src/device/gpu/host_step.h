/* Host steps: steps that a device has no kernels for, or that read weights which are not on the device, run on the CPU
 * between its submissions. Operands are downloaded, the CPU device's kernel runs on the engine's threads, and results
 * are uploaded. Bytes are transferred in the device's form (uniform elements) and converted here. */
#ifndef BERTH_DEVICE_GPU_HOST_STEP_H
#define BERTH_DEVICE_GPU_HOST_STEP_H

#include "device/gpu/driver.h"

typedef struct berth__host_steps berth__host_steps;

/* Allocates everything that the host steps of a recipe need; makes the engine's threads for the first of them. *out is
 * NULL if there are no host steps. */
berth_status berth__host_steps_create(const berth__recipe *recipe, berth__gpu_engine *engine, berth__host_steps **out,
                                      berth_error *err);
void berth__host_steps_destroy(berth__host_steps *steps); /* NULL is fine */
/* Addresses of values that are not in the arena, one per value; the list stays the caller's. */
void berth__host_steps_bind(berth__host_steps *steps, const void *const *outside); /* steps may be NULL */
/* Runs one step, on the bytes of a block of the device. Allocates nothing. */
berth_status berth__host_steps_run(berth__host_steps *steps, uint32_t step, const berth__device *device,
                                   berth__block *block, berth_error *err);

#endif
