#!/usr/bin/env bash
# A session on this device, while allocations and calls of the device fail.
. "$BERTH_SRC/tests/gpu/on_device.sh" webgpu fault/test_session_faults
