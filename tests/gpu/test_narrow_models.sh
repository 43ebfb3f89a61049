#!/usr/bin/env bash
# A model of bytes takes on a GPU what it takes on the CPU, or a tenth more at most, and gives the same results. The model
# is in shared/data/models beside the repository.
set -uo pipefail
. "$BERTH_SRC/tests/support/tap.sh"
folder=${BERTH_MODELS:-$BERTH_SRC/../shared/data/models}/mobilenet_v2_qdq_int8
model=$folder/mobilenet_v2_qdq_int8.onnx
if [ ! -f "$model" ]; then
  skip_test "a model of bytes" "there is no mobilenet_v2_qdq_int8.onnx"
  tap_done
fi

arena_of() { # device and options
  "$BERTH_BIN" plan "$model" --device "$@" --json 2>/dev/null | sed -n 's/.*"arena_size":\([0-9]*\).*/\1/p'
}
fits() { # device
  local there
  there=$(arena_of "$1")
  [ -n "$there" ] && [ "$there" -le $((cpu * 11 / 10)) ]
}
is_larger() {
  local there
  there=$(arena_of interp --f32-uniform)
  [ -n "$there" ] && [ "$there" -gt $((cpu * 3)) ]
}

cpu=$(arena_of cpu)
for device in interp vulkan webgpu; do
  if ! "$BERTH_BIN" devices 2>/dev/null | grep "^$device " | grep -qv "not available"; then
    skip_test "$device: at most 1.1 times the arena of the cpu" "the device is not here"
    continue
  fi
  check "$device: at most 1.1 times the arena of the cpu" fits "$device"
done
check "four bytes each are still to be had" is_larger
tap_done
