#!/usr/bin/env bash
# tests/onnx/test_nodes on the device "loops".
. "$BERTH_SRC/tests/gpu/on_device.sh" loops onnx/test_nodes
