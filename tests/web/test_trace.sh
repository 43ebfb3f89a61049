#!/usr/bin/env bash
# What the package says of the inside of a network: its nodes, its steps, what they made and how long they took.
. "$BERTH_SRC/tests/support/tap.sh"
export BERTH_WEB=${BERTH_WEB:-$BERTH_SRC/build/web}

if ! command -v node >/dev/null; then
  skip_test "the inside of a network, in Node" "node is not installed"
  tap_done
fi
if [ ! -f "$BERTH_WEB/package/berth.wasm" ]; then
  skip_test "the inside of a network, in Node" "the package is not built: make web says what that needs"
  tap_done
fi
exec node "$BERTH_SRC/tests/web/trace.mjs"
