#!/usr/bin/env bash
# The device "webgpu" on a second implementation, which BERTH_WEBGPU_SECOND names by its path: doe-gpu, on the driver that
# is the system's own. It ignores dynamic offsets, so that every dispatch has a bind group of its own.
set -uo pipefail
. "$BERTH_SRC/tests/support/tap.sh"

if [ -z "${BERTH_WEBGPU_SECOND-}" ]; then
  skip_test "a second implementation of WebGPU" "BERTH_WEBGPU_SECOND names none"
  tap_done
fi
unset VK_ICD_FILENAMES VK_DRIVER_FILES
export BERTH_WEBGPU_LIBRARY=$BERTH_WEBGPU_SECOND BERTH_WEBGPU_OFFSETS=static BERTH_TEST_DEVICE=webgpu
if ! "$BERTH_BIN" devices 2>/dev/null | grep -q '^webgpu .*, WebGPU$'; then
  skip_test "a second implementation of WebGPU" "$("$BERTH_BIN" devices 2>/dev/null | grep '^webgpu')"
  tap_done
fi
check "the digits" "$BERTH_BIN" run --device webgpu --check
check "the digits, with weights as f16" "$BERTH_BIN" run --device webgpu --f16-weights
check "every op case" "$BERTH_BUILD/tests/ops/test_devices_gpu"
check "weights as f16" "$BERTH_BUILD/tests/device/test_half_weights"
tap_done
