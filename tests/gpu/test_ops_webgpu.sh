#!/usr/bin/env bash
# tests/ops/test_devices_gpu on the device "webgpu".
. "$BERTH_SRC/tests/gpu/on_device.sh" webgpu ops/test_devices_gpu
