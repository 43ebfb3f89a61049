#!/usr/bin/env bash
# Every fuzz target on every file of its corpus.
set -uo pipefail
. "$BERTH_SRC/tests/support/tap.sh"

for source in "$BERTH_SRC"/tests/fuzz/fuzz_*.c; do
  name=$(basename "$source" .c)
  check "$name on its corpus" "$BERTH_BUILD/tests/fuzz/$name" "$BERTH_SRC/tests/fuzz/corpus/${name#fuzz_}"
done
tap_done
