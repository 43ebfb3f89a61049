#!/usr/bin/env bash
# Where implementations of WebGPU are looked for; and where there is none, `berth devices` says why, and so does a run.
set -uo pipefail
. "$BERTH_SRC/tests/support/tap.sh"

says() { # pattern command...: its output has the pattern
  local pattern=$1
  shift
  { "$@" 2>&1 || true; } | grep -E "$pattern"
}

if ! "$BERTH_BIN" devices 2>/dev/null | grep -q '^webgpu '; then
  skip_test "no WebGPU" "this build has no device webgpu"
  tap_done
fi
check "a library that is not there" says '^webgpu .*not available: .*cannot be opened' \
  env BERTH_WEBGPU_LIBRARY=/nowhere/libwebgpu.so "$BERTH_BIN" devices
check "a run without it" says "'webgpu' cannot be used here" \
  env BERTH_WEBGPU_LIBRARY=/nowhere/libwebgpu.so "$BERTH_BIN" run --device webgpu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
echo "no library" >"$work/text.so"
check "a file that is no library" says '^webgpu .*not available: .*cannot be opened' \
  env BERTH_WEBGPU_LIBRARY="$work/text.so" "$BERTH_BIN" devices

other=$(ldd "$BERTH_BIN" 2>/dev/null | sed -n 's/.*libc\.so[^ ]* => \([^ ]*\).*/\1/p')
if [ -n "$other" ]; then
  check "a library of something else" says '^webgpu .*not available: the implementation of WebGPU lacks wgpu' \
    env BERTH_WEBGPU_LIBRARY="$other" "$BERTH_BIN" devices
  for name in dawn wgpu; do mkdir "$work/$name"; done
  ln -s "$other" "$work/wgpu/libwgpu_native.so"
  check "the usual names are looked for" says '^webgpu .*not available: the implementation of WebGPU lacks wgpu' \
    env -u BERTH_WEBGPU_LIBRARY LD_LIBRARY_PATH="$work/wgpu" "$BERTH_BIN" devices
else
  skip_test "a library of something else" "ldd does not tell where libc is"
fi
if "$BERTH_BIN" devices 2>/dev/null | grep -q '^webgpu .*not available' || [ -z "${BERTH_WEBGPU_LIBRARY-}" ]; then
  skip_test "the order of the usual names" "BERTH_WEBGPU_LIBRARY names no implementation that works here"
else
  ln -s "$(realpath "$BERTH_WEBGPU_LIBRARY")" "$work/dawn/libwebgpu_dawn.so"
  check "Dawn's name goes before wgpu-native's" says '^webgpu .*, WebGPU$' \
    env -u BERTH_WEBGPU_LIBRARY LD_LIBRARY_PATH="$work/wgpu:$work/dawn" "$BERTH_BIN" devices
  check "a path that is given goes before both" says '^webgpu .*not available: .*cannot be opened' \
    env BERTH_WEBGPU_LIBRARY="$work/text.so" LD_LIBRARY_PATH="$work/dawn" "$BERTH_BIN" devices
fi
if env -u BERTH_WEBGPU_LIBRARY "$BERTH_BIN" devices 2>/dev/null | grep -q '^webgpu .*no implementation of WebGPU'; then
  ok "nothing found, and it says what to do"
else
  skip_test "nothing found" "this machine has an implementation under one of the usual names"
fi
if [ -n "${BERTH_WEBGPU_LIBRARY-}" ]; then
  check "no driver" says '^webgpu .*not available: WebGPU finds no' \
    env VK_ICD_FILENAMES=/nowhere/driver.json VK_DRIVER_FILES=/nowhere/driver.json "$BERTH_BIN" devices
else
  skip_test "no driver" "BERTH_WEBGPU_LIBRARY names no implementation"
fi
tap_done
