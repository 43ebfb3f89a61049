#!/usr/bin/env bash
# examples/generate: builds as its first lines say, tells a tale to two ends, and goes on after a restart, on the CPU and
# the interpreter.
set -uo pipefail
. "$BERTH_SRC/tests/support/tap.sh"

if is_sanitized; then
  skip_test "the generator" "this build has sanitizers in it, which outside programs do not"
  tap_done
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
model=$BERTH_SRC/examples/tale/tale.gguf
check "it compiles" cc -std=c11 -Wall -Wextra -Wpedantic -Werror -I"$BERTH_SRC/include" \
  "$BERTH_SRC/examples/generate/generate.c" "$BERTH_BUILD/libberth.a" -o "$work/generate" -lm -ldl -lpthread
check "the other one compiles" cc -std=c11 -Wall -Wextra -Wpedantic -Werror -I"$BERTH_SRC/include" \
  "$BERTH_SRC/examples/generate/branches.c" "$BERTH_BUILD/libberth.a" -o "$work/branches" -lm -ldl -lpthread
check "the one in memory compiles" cc -std=c11 -Wall -Wextra -Wpedantic -Werror -I"$BERTH_SRC/include" \
  "$BERTH_SRC/examples/generate/memory.c" "$BERTH_BUILD/libberth.a" -o "$work/memory" -lm -ldl -lpthread
check "it branches" "$work/branches" "$model" "Once upon a time"
check "it plans from the header, and talks from memory" sh -c "'$work/memory' '$model' 'Once upon a time' > '$work/said'"
check "a plan for each context" test "$(grep -c ' tokens: ' "$work/said")" -ge 4
check "and a tale" grep -q 'Once upon a time there was a small boat' "$work/said"
for device in cpu interp; do
  check "it generates on $device" sh -c "'$work/generate' '$model' 'Once upon a time' $device > '$work/$device'"
  check "$device: two ends of one beginning" test "$(grep -c '^Once upon a time' "$work/$device")" = 2
done
tap_done
