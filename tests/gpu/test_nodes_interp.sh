#!/usr/bin/env bash
# tests/onnx/test_nodes on the device "interp".
. "$BERTH_SRC/tests/gpu/on_device.sh" interp onnx/test_nodes
