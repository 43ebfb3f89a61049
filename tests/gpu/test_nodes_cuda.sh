#!/usr/bin/env bash
# tests/onnx/test_nodes on the device "cuda".
. "$BERTH_SRC/tests/gpu/fake_cuda.sh" onnx/test_nodes
