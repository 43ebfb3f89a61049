# Runs a test program of the build on the device "cuda", on a real GPU where there is one, or else on a library that
# plays the driver (tests/device/fake_cuda). Kernels are collected first and compiled at once, which takes a fraction of
# the time that each by itself would take.
#   fake_cuda.sh PROGRAM
program=$1
if ! "$BERTH_BIN" devices 2>/dev/null | grep -q "^cuda "; then
  printf 'ok 1 - %s on cuda # SKIP this build has no device cuda\n1..1\n' "$program"
  exit 0
fi
export BERTH_TEST_DEVICE=cuda
if "$BERTH_BIN" devices | grep "^cuda " | grep -q "not available"; then
  if [ -z "${FAKE_CUDA_DIR-}" ]; then
    FAKE_CUDA_DIR=$(mktemp -d)
    trap 'rm -rf "$FAKE_CUDA_DIR"' EXIT
  fi
  export FAKE_CUDA_DIR BERTH_CACHE_DIR=
  export BERTH_CUDA_LIBRARY=$BERTH_BUILD/tests/libfake_cuda.so BERTH_NVRTC=$BERTH_BUILD/tests/libfake_cuda.so
  FAKE_CUDA_COLLECT=1 "$BERTH_BUILD/tests/$program" >/dev/null 2>&1
fi
"$BERTH_BUILD/tests/$program"
