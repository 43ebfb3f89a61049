#!/usr/bin/env bash
# tests/onnx/test_models on the device "vulkan".
. "$BERTH_SRC/tests/gpu/on_device.sh" vulkan onnx/test_models
