#!/usr/bin/env bash
# A decoder with 300 keys in its cache and one query, on the devices that are here, against the reference kernels; and
# what `plan` says of it is what `run` takes. The model is in shared/data/models beside the repository.
set -uo pipefail
. "$BERTH_SRC/tests/support/tap.sh"
model=${BERTH_MODELS:-$BERTH_SRC/../shared/data/models}/stories260K/stories260K_kv.onnx
dims=(--dim n=1 --dim p=300 --dim t=301)
if [ ! -f "$model" ]; then
  skip_test "a decoder with 300 keys" "there is no stories260K_kv.onnx"
  tap_done
fi

arena_of() { sed -n 's/.*"arena_size":\([0-9]*\).*/\1/p'; }
same_arena() { # device profile
  local planned taken
  planned=$("$BERTH_BIN" plan "$model" "${dims[@]}" --device "$1" --gpu-profile "$2" --json 2>/dev/null | arena_of)
  taken=$("$BERTH_BIN" run "$model" "${dims[@]}" --device "$1" --gpu-profile "$2" --json 2>/dev/null | arena_of)
  [ -n "$planned" ] && [ "$planned" = "$taken" ]
}

for device in interp vulkan; do
  if ! "$BERTH_BIN" devices 2>/dev/null | grep "^$device " | grep -qv "not available"; then
    skip_test "$device" "the device is not here"
    continue
  fi
  check "$device: as the device is" "$BERTH_BIN" run "$model" "${dims[@]}" --device "$device" --check
  check "$device: as real GPUs do it" "$BERTH_BIN" run "$model" "${dims[@]}" --device "$device" --gpu-profile generic --check
  check "$device: plan tells what run takes" same_arena "$device" generic
done
tap_done
