#!/usr/bin/env bash
# Every example in examples/ runs, and checks its own results.
set -uo pipefail
. "$BERTH_SRC/tests/support/tap.sh"

runs() { # program
  local said
  said=$("$BERTH_BUILD/examples/$1") && [ "$(tail -n 1 <<<"$said")" = ok ]
}
for source in "$BERTH_SRC"/examples/*.c; do
  name=$(basename "$source" .c)
  check "examples/$name.c runs" runs "$name"
done
tap_done
