#!/usr/bin/env bash
# `bench --profile` and `--trace` on every device that is there: whose clock it was, and steps that add up to a run.
set -uo pipefail
. "$BERTH_SRC/tests/support/tap.sh"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Python, of the profile p and the slices of the trace t: times in microseconds, runs and steps apart.
holds() { # device expression
  python3 - "$work/$1" "$2" <<'END'
import json, sys
with open(sys.argv[1] + ".json") as f: p = json.load(f)["profile"]
with open(sys.argv[1] + ".trace") as f: t = [e for e in json.load(f)["traceEvents"] if e["ph"] == "X"]
runs, steps = [e for e in t if e["cat"] == "run"], [e for e in t if e["cat"] != "run"]
sys.exit(not eval(sys.argv[2]))
END
}

for device in interp vulkan webgpu; do
  line=$("$BERTH_BIN" devices 2>/dev/null | grep "^$device ")
  if [ -z "$line" ] || [[ $line == *"not available"* ]] || ! command -v python3 >/dev/null; then
    skip_test "profiles on $device" "there is no python3, or no such device: $line"
    continue
  fi
  check "a profile on $device" bash -c "'$BERTH_BIN' bench --device $device --runs 5 --profile --json \
    --trace '$work/$device.trace' >'$work/$device.json'"
  case $device in
    interp) check "on $device it is the host's clock" holds $device 'p["clock"] == "host"' ;;
    *) check "on $device the clock is told" holds $device 'p["clock"] in ("host", "device")' ;;
  esac
  check "on $device kernels take time, and less than a run" holds $device '0 < p["kernels_ms"] <= p["run_ms"]'
  check "on $device slices follow each other" holds $device \
    'len(runs) == 5 and steps and all(a["ts"] + a["dur"] <= b["ts"] + 0.01 for a, b in zip(steps, steps[1:]))'
  check "on $device every step lies in a run" holds $device \
    'all(any(r["ts"] - 0.01 <= s["ts"] and s["ts"] + s["dur"] <= r["ts"] + r["dur"] + 0.01 for r in runs) for s in steps)'
done
tap_done
