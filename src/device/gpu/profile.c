/* Named profiles, for planning on a machine without the GPU. Matrix units, subgroup exchange and dot4 count only for
 * devices whose kernels can use them (device/plan_create.c). */
#include "device/gpu/profile.h"

#include <stdio.h>
#include <string.h>

#include "base/status.h"

static const berth__profile named[] = {
    /* Most GPUs have at least this much, and all relevant ones gain from shared memory. */
    {"generic",
     {.group_size = 256,
      .lanes = 32,
      .exchanges = true,
      .shared_bytes = 32768,
      .shares_well = true,
      .multiplies = BERTH__MATRIX_UNITS,
      .tile_bytes = 114688}},
    /* As reported by their Vulkan driver. */
    {"nvidia",
     {.group_size = 256,
      .lanes = 32,
      .exchanges = true,
      .has_dot4 = true,
      .shared_bytes = 49152,
      .shares_well = true,
      .multiplies = BERTH__MATRIX_UNITS,
      .tile_bytes = 114688}},
    /* NVIDIA GPUs of compute capability 9.0, which have their own kernels. */
    {"hopper",
     {.group_size = 256,
      .lanes = 32,
      .exchanges = true,
      .begins_early = true,
      .has_dot4 = true,
      .shared_bytes = 49152,
      .shares_well = true,
      .multiplies = BERTH__MATRIX_UNITS,
      .tile_bytes = 114688,
      .large_bytes = 229376,
      .has_warpgroups = true}},
    /* NVIDIA GPUs as their Vulkan driver reports them, with its cooperative matrices. */
    {"cooperative",
     {.group_size = 256,
      .lanes = 32,
      .exchanges = true,
      .shared_bytes = 49152,
      .shares_well = true,
      .multiplies = 1u << BERTH_COMPUTE_F16 | 1u << BERTH_COMPUTE_BF16,
      .tile_bytes = 49152,
      .is_cooperative = true}},
    /* NVIDIA GPUs before compute capability 8.0, whose matrix units are not supported. */
    {"turing",
     {.group_size = 256, .lanes = 32, .exchanges = true, .has_dot4 = true, .shared_bytes = 49152, .shares_well = true}},
    /* A CPU that plays the GPU: lavapipe, SwiftShader. */
    {"cpu", {.group_size = 256, .lanes = 8, .shared_bytes = 32768, .shares_well = false}},
    /* The minimum that the standards guarantee: such a plan runs everywhere, but is optimal nowhere. */
    {"minimal", {.group_size = 128, .lanes = 1, .shared_bytes = 16384, .shares_well = false}},
};
#define N_NAMED (sizeof named / sizeof named[0])

const berth__profile *berth__profile_named(const char *name) {
  for (size_t i = 0; i < N_NAMED; i++)
    if (strcmp(named[i].name, name) == 0) return &named[i];
  return NULL;
}

berth_status berth__profile_find(const char *name, berth__profile *out, berth_error *err) {
  const berth__profile *found = berth__profile_named(name);
  if (found == NULL)
    return berth__fail(
        err, BERTH_INVALID,
        "there is no GPU profile '%s'; it is one of generic, nvidia, hopper, cooperative, turing, cpu and minimal",
        name);
  *out = *found;
  return BERTH_OK;
}

void berth__profile_set(berth__profile *profile, const char *name, const berth__kernel_limits *loops) {
  snprintf(profile->name, sizeof profile->name, "%s", name);
  profile->loops = *loops;
}
