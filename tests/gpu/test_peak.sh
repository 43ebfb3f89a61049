#!/usr/bin/env bash
# `bench --profile` on a GPU compares with what that device can do, not with the CPU's peak.
set -uo pipefail
. "$BERTH_SRC/tests/support/tap.sh"
answer=$(mktemp)
trap 'rm -f "$answer"' EXIT

holds() { # expression over o, the JSON in $answer
  python3 -c "import json, sys; o = json.load(open('$answer'))['profile']; sys.exit(0 if $1 else 1)"
}

if ! command -v python3 >/dev/null; then
  skip_test "the peak of GPUs" "python3 is not installed"
  tap_done
  exit
fi

for device in interp vulkan; do
  if ! "$BERTH_BIN" devices 2>/dev/null | grep "^$device " | grep -qv "not available"; then
    skip_test "$device" "the device is not here"
    continue
  fi
  "$BERTH_BIN" bench --device "$device" --runs 2 --warmup 1 --profile --json >"$answer" 2>/dev/null
  check "$device: its multiply-adds are measured" holds "o['peak']['gflops'] > 0"
  check "$device: its copies are measured" holds \
    "len(o['peak']['copies']) == 4 and all(c['gb_per_s'] > 0 for c in o['peak']['copies'])"
  check "$device: kernels are compared with it" holds \
    "all(n['of_peak'] > 0 for n in o['ops'] if n['ms'] > 0 and n['op'] in ('conv', 'product'))"
  check "$device: there are such kernels" holds "any(n['of_peak'] > 0 for n in o['ops'])"
  "$BERTH_BIN" bench --device "$device" --runs 1 --warmup 1 --profile >"$answer" 2>/dev/null
  check "$device: it is printed" grep -q "^the device at its best: [0-9.]* GFLOP/s in a product; moving" "$answer"
done
tap_done
