#!/usr/bin/env bash
# Every op case on the device "cuda"; and a share of its kernels as PTX, where clang is there.
set -uo pipefail
. "$BERTH_SRC/tests/support/tap.sh"
FAKE_CUDA_DIR=$(mktemp -d)
trap 'rm -rf "$FAKE_CUDA_DIR"' EXIT
export FAKE_CUDA_DIR

check "every op case holds on cuda" bash "$BERTH_SRC/tests/gpu/fake_cuda.sh" ops/test_devices_gpu
collected() { [ "$(find "$FAKE_CUDA_DIR" -name '*.cu' | wc -l)" -gt 1000 ]; }
step=17
[ -z "${BERTH_TEST_SLOW-}" ] || step=1
as_ptx() {
  bash "$BERTH_SRC/tests/gpu/ptx.sh" "$FAKE_CUDA_DIR" "$step" "$FAKE_CUDA_DIR/all" &&
    [ "$(grep -c '\.entry berth_' "$FAKE_CUDA_DIR/all.ptx")" -gt 50 ]
}
if ! collected; then
  skip_test "kernels become PTX" "they were compiled for a real GPU"
elif ! command -v clang >/dev/null; then
  skip_test "kernels become PTX" "there is no clang"
else
  check "kernels become PTX" as_ptx
fi
tap_done
