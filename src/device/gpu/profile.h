#ifndef BERTH_DEVICE_GPU_PROFILE_H
#define BERTH_DEVICE_GPU_PROFILE_H

#include "base/profile.h"
#include "berth/berth.h"

const berth__profile *berth__profile_named(const char *name); /* NULL: unknown */
berth_status berth__profile_find(const char *name, berth__profile *out, berth_error *err);
void berth__profile_set(berth__profile *profile, const char *name, const berth__kernel_limits *loops);

#endif
