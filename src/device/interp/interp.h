/* For tests of the device "interp": any call of its driver or its memory can be made to fail. */
#ifndef BERTH_DEVICE_INTERP_LOOPS_H
#define BERTH_DEVICE_INTERP_LOOPS_H

#include "device/device.h"

/* How many calls an engine has had so far: to the driver's table, and to the device's memory. */
uint64_t berth__interp_calls(const berth__engine *engine);
/* The next n calls succeed, and the one after them fails with this status, once. After BERTH_DEVICE_LOST every later
 * call fails, too. */
void berth__interp_fail_after(berth__engine *engine, uint64_t n, berth_status status);

#endif
