#!/usr/bin/env bash
# tests/session/test_states on the device "vulkan".
. "$BERTH_SRC/tests/gpu/on_device.sh" vulkan session/test_states
