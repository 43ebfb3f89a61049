/* berth_plan_create: the planner with the limits of a device. It is here because the planner does not know devices. */
#include <stdio.h>

#include "base/desc.h"
#include "device/device.h"
#include "device/gpu/profile.h"

berth_status berth__device_profile(const berth__device *device, const berth__engine *engine, const char *name,
                                   berth__profile *out, berth_error *err) {
  memset(out, 0, sizeof *out);
  if (device->profile == NULL)
    return name == NULL ? BERTH_OK
                        : berth__fail(err, BERTH_INVALID, "the device '%s' is not a GPU and has no GPU profiles ('%s')",
                                      device->name, name);
  const bool is_asked = name == NULL && engine != NULL;
  if (is_asked)
    device->profile(engine, out);
  else
    BERTH__TRY(berth__profile_find(name != NULL ? name : "generic", out, err));
  if (!is_asked && !device->exchanges) out->loops.exchanges = false;
  if (!is_asked && !device->has_dot4) out->loops.has_dot4 = false;
  if (!device->multiplies || (device->is_cooperative && !out->loops.is_cooperative)) out->loops.multiplies = 0;
  return BERTH_OK;
}

/* A present device is asked; if there is none, or the caller names a profile, no device is opened. */
static berth_status find_profile(berth_context *ctx, const berth__device *device, const berth_plan_desc *desc,
                                 berth__profile *out, berth_error *err) {
  berth__engine *engine = NULL;
  if (device->profile == NULL || desc->gpu_profile != NULL)
    return berth__device_profile(device, NULL, desc->gpu_profile, out, err);
  berth_status status = device->open(ctx, berth__device_which(desc->device), 1, &engine, err);
  if (status != BERTH_OK && status != BERTH_UNSUPPORTED) return status;
  status = berth__device_profile(device, status == BERTH_OK ? engine : NULL, NULL, out, err);
  device->close(engine);
  return status;
}

static const char *const compute_names[] = {"f32", "tf32x3", "tf32", "bf16", "f16"};
#define N_COMPUTE (sizeof compute_names / sizeof compute_names[0])

const char *berth_compute_name(berth_compute compute) {
  return (size_t)compute < N_COMPUTE ? compute_names[compute] : NULL;
}

berth_status berth_compute_from_name(const char *name, berth_compute *out, berth_error *err) {
  for (size_t i = 0; name != NULL && out != NULL && i < N_COMPUTE; i++) {
    if (strcmp(name, compute_names[i]) != 0) continue;
    *out = (berth_compute)i;
    return BERTH_OK;
  }
  return berth__fail(err, BERTH_INVALID, "products are computed in f32, tf32x3, tf32, bf16 or f16, not in '%s'",
                     name != NULL ? name : "");
}

/* Refuses to round numbers if that gains nothing. */
static berth_status check_compute(const berth__device *device, const berth_plan_desc *desc,
                                  const berth__profile *profile, berth_error *err) {
  const char *name = berth_compute_name(desc->compute);
  if (name == NULL) return berth__fail(err, BERTH_INVALID, "there is no berth_compute %d", (int)desc->compute);
  if (desc->compute == BERTH_COMPUTE_F32 || (profile->loops.multiplies >> desc->compute & 1u) != 0) return BERTH_OK;
  return berth__fail(err, BERTH_UNSUPPORTED,
                     "the device '%s'%s%s has no matrix units for %s that kernels could use; NVIDIA GPUs of compute "
                     "capability 8.0 and later have them with the device 'cuda', and GPUs whose driver has "
                     "VK_KHR_cooperative_matrix with 'vulkan', for f16 and bf16%s",
                     device->name, profile->name[0] != '\0' ? ", " : "", profile->name, name,
                     device->profile == NULL ? ", and the cpu can round weights to bf16 (--bf16)" : "");
}

berth_status berth__plan_create_on(const berth_graph *graph, const berth_plan_desc *desc, const berth__device *device,
                                   const berth__profile *profile, berth_plan **out, berth_error *err) {
  berth__limits limits = device->limits();
  BERTH__TRY(check_compute(device, desc, profile, err));
  limits.profile = *profile;
  limits.profile.loops.compute = desc->compute;
  limits.ctx = graph->ctx;
  BERTH__TRY(berth__graph_check_files(graph, err));
  BERTH__TRY(berth__plan_build(graph, desc, &limits, out, err));
  const char *which = berth__device_which(desc->device);
  snprintf((*out)->which, sizeof(*out)->which, "%s", which != NULL ? which : "");
  const berth_status status = berth__graph_check_files(graph, err);
  if (status != BERTH_OK) {
    berth_plan_destroy(*out);
    *out = NULL;
  }
  return status;
}

berth_status berth_plan_create(const berth_graph *graph, const berth_plan_desc *desc, berth_plan **out,
                               berth_error *err) {
  const berth__device *device;
  berth__profile profile;
  berth_plan_desc full = BERTH_PLAN_DESC_INIT;
  if (out == NULL) return berth__fail(err, BERTH_INVALID, "berth_plan_create needs a pointer to store the plan");
  *out = NULL;
  if (graph == NULL) return berth__fail(err, BERTH_INVALID, "the graph is NULL");
  BERTH__TRY(BERTH__DESC_COPY(&full, desc, "berth_plan_desc", err));
  BERTH__TRY(berth__device_find(full.device, &device, err));
  device = berth__device_for(device, full.flags);
  BERTH__TRY(find_profile(graph->ctx, device, &full, &profile, err));
  return berth__plan_create_on(graph, &full, device, &profile, out, err);
}

const char *berth_plan_gpu_profile(const berth_plan *plan) {
  return plan->profile.name[0] != '\0' ? plan->profile.name : NULL;
}
