#!/usr/bin/env bash
# Where there is no WebGPU, `berth devices` says why, and so does a run.
set -uo pipefail
. "$BERTH_SRC/tests/support/tap.sh"

says() { # pattern command...: its output has the pattern
  local pattern=$1
  shift
  { "$@" 2>&1 || true; } | grep -E "$pattern"
}

if ! "$BERTH_BIN" devices 2>/dev/null | grep -q '^webgpu '; then
  skip_test "no WebGPU" "this build has no device webgpu"
  tap_done
fi
check "a library that is not there" says '^webgpu .*not available: .*cannot be opened' \
  env BERTH_WEBGPU_LIBRARY=/nowhere/libwebgpu.so "$BERTH_BIN" devices
check "a run without it" says "'webgpu' cannot be used here" \
  env BERTH_WEBGPU_LIBRARY=/nowhere/libwebgpu.so "$BERTH_BIN" run --device webgpu
if [ -n "${BERTH_WEBGPU_LIBRARY-}" ]; then
  check "no driver" says '^webgpu .*not available: WebGPU finds no' \
    env VK_ICD_FILENAMES=/nowhere/driver.json VK_DRIVER_FILES=/nowhere/driver.json "$BERTH_BIN" devices
else
  skip_test "no driver" "BERTH_WEBGPU_LIBRARY names no implementation"
fi
tap_done
