#!/usr/bin/env bash
# The Python package and memory of CUDA, on a library that plays the driver, in a process of its own: a process has one
# driver.
. "$BERTH_SRC/tests/support/tap.sh"
python=$(sed -n 's/^BERTH_PYTHON_EXECUTABLE:[A-Z]*=//p' "$BERTH_BUILD/CMakeCache.txt")
if [ ! -f "$BERTH_BUILD/python/berth/_berth.abi3.so" ] || ! "$python" -c 'import numpy' 2>/dev/null; then
  skip_test "memory of CUDA from Python" "the package is not built, or numpy is missing (Debian: python3-dev, python3-numpy)"
  tap_done
fi
if ! "$BERTH_BIN" devices | grep -q '^cuda '; then
  skip_test "memory of CUDA from Python" "this build has no device cuda"
  tap_done
fi
export PYTHONPATH=$BERTH_BUILD/python:$BERTH_SRC/tests/python PYTHONDONTWRITEBYTECODE=1
export BERTH_CUDA_LIBRARY=$BERTH_BUILD/tests/libfake_cuda.so BERTH_NVRTC=$BERTH_BUILD/tests/libfake_cuda.so BERTH_CACHE_DIR=
FAKE_CUDA_DIR=$(mktemp -d)
export FAKE_CUDA_DIR
trap 'rm -rf "$FAKE_CUDA_DIR"' EXIT
preload=
if is_sanitized; then
  preload=$(gcc -print-file-name=libasan.so)
  export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0:detect_stack_use_after_return=0
fi
LD_PRELOAD=$preload "$python" "$BERTH_SRC/tests/python/cuda.py"
