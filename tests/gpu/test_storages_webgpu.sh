#!/usr/bin/env bash
# tests/device/test_storages on the device "webgpu".
. "$BERTH_SRC/tests/gpu/on_device.sh" webgpu device/test_storages
