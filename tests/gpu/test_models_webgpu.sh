#!/usr/bin/env bash
# tests/onnx/test_models on the device "webgpu".
if [ -z "${BERTH_TEST_SLOW-}" ]; then # tests/web runs two of them there; all of them run on vulkan
  printf 'ok 1 - onnx/test_models on webgpu # SKIP it takes half a minute; make check-slow runs it\n1..1\n'
  exit 0
fi
. "$BERTH_SRC/tests/gpu/on_device.sh" webgpu onnx/test_models
