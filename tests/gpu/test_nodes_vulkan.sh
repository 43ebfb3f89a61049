#!/usr/bin/env bash
# tests/onnx/test_nodes on the device "vulkan".
. "$BERTH_SRC/tests/gpu/on_device.sh" vulkan onnx/test_nodes
