#!/usr/bin/env bash
# examples/decoder: builds as its first lines say, and generates the same tokens one by one as all at once, on every
# device that is there.
set -uo pipefail
. "$BERTH_SRC/tests/support/tap.sh"

if is_sanitized; then
  skip_test "the decoder" "this build has sanitizers in it, which outside programs do not"
  tap_done
fi
example=$BERTH_SRC/examples/decoder
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
check "it compiles" cc -std=c11 -Wall -Wextra -Wpedantic -Werror -I"$BERTH_SRC/include" "$example/decode.c" \
  "$BERTH_BUILD/libberth.a" -o "$work/decode" -lm -ldl -lpthread
export BERTH_SHADERC=${BERTH_SHADERC-$BERTH_BUILD/libberth_shaderc.so} # which a build has beside its own programs
for device in cpu $("$BERTH_BIN" devices | sed '/ - not available: /d; s/ .*//' | grep -v '^cpu$'); do
  check "it decodes on $device" sh -c "'$work/decode' '$example/decoder.berth' $device > '$work/$device'"
  check "$device generates what the CPU does" diff <(sed -n 1p "$work/cpu") <(sed -n 1p "$work/$device")
done
tap_done
