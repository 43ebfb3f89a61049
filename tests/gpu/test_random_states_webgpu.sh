#!/usr/bin/env bash
# tests/session/test_random_states on the device "webgpu".
. "$BERTH_SRC/tests/gpu/on_device.sh" webgpu session/test_random_states
