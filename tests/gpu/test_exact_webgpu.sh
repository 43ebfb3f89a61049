#!/usr/bin/env bash
# tests/onnx/test_exact on the device "webgpu".
. "$BERTH_SRC/tests/gpu/on_device.sh" webgpu onnx/test_exact
