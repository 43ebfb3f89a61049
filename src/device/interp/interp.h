/* What tests ask of the device "interp": any call of its driver or its memory can be made to fail. */
#ifndef BERTH_DEVICE_INTERP_LOOPS_H
#define BERTH_DEVICE_INTERP_LOOPS_H

#include "device/device.h"

/* How many calls an engine has had so far: of the driver's table, and of the device's memory. */
uint64_t berth__interp_calls(const berth__engine *engine);
/* The next n calls do as they should, and the one after them fails with this status, once. With BERTH_DEVICE_LOST
 * every call after it does too. */
void berth__interp_fail_after(berth__engine *engine, uint64_t n, berth_status status);

#endif
