#!/usr/bin/env bash
# A session on this device, while allocations and calls of the device fail.
. "$BERTH_SRC/tests/gpu/on_device.sh" vulkan fault/test_session_faults
