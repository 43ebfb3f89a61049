#!/usr/bin/env bash
# ONNX's node tests on the webgpu of Chromium. They take minutes, and the kernels are those of the native device:
# make check-slow runs them.
. "$BERTH_SRC/tests/support/tap.sh"
if [ -z "${BERTH_TEST_SLOW-}" ]; then
  skip_test "onnx node tests in a browser" "they take minutes; make check-slow runs them"
  tap_done
fi
. "$BERTH_SRC/tests/web/in_browser.sh" nodes.mjs webgpu
