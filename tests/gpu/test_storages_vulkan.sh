#!/usr/bin/env bash
# tests/device/test_storages on the device "vulkan".
. "$BERTH_SRC/tests/gpu/on_device.sh" vulkan device/test_storages
