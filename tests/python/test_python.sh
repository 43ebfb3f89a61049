#!/usr/bin/env bash
# The Python package: its tests, its examples, and ONNX's node tests through it, in one process. In the build with
# sanitizers, Python runs under them too.
. "$BERTH_SRC/tests/support/tap.sh"
python=$(sed -n 's/^BERTH_PYTHON_EXECUTABLE:[A-Z]*=//p' "$BERTH_BUILD/CMakeCache.txt")
if [ ! -f "$BERTH_BUILD/python/berth/_berth.abi3.so" ]; then
  skip_test "the Python package" "it is not built: Python 3.11's headers are missing (Debian: python3-dev)"
  tap_done
fi
export PYTHONPATH=$BERTH_BUILD/python:$BERTH_SRC/tests/python PYTHONDONTWRITEBYTECODE=1
if is_sanitized; then
  export LD_PRELOAD=$(gcc -print-file-name=libasan.so)
  # Python and numpy keep what they have until the end, and the package counts what the library has (safety.py).
  export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0:detect_stack_use_after_return=0
fi
cd "$BERTH_SRC" && exec "$python" "$BERTH_SRC/tests/python/run.py" "$@"
