# Runs a test program of the build on a device; skipped, by name, where the machine does not have it.
#   on_device.sh DEVICE PROGRAM
device=$1 program=$2
reason=$("$BERTH_BIN" devices 2>/dev/null | sed -n "s/^$device .* - not available: //p")
if ! "$BERTH_BIN" devices 2>/dev/null | grep -q "^$device "; then reason="this build has no device $device"; fi
if [ -n "$reason" ]; then
  printf 'ok 1 - %s on %s # SKIP %s\n1..1\n' "$program" "$device" "$reason"
  exit 0
fi
BERTH_TEST_DEVICE=$device BERTH_VULKAN_VALIDATION=1 exec "$BERTH_BUILD/tests/$program"
