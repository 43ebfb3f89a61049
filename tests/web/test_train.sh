#!/usr/bin/env bash
# Learning in the package, in Node.
. "$BERTH_SRC/tests/support/tap.sh"
export BERTH_WEB=${BERTH_WEB:-$BERTH_SRC/build/web}

if ! command -v node >/dev/null; then
  skip_test "learning, in Node" "node is not installed"
  tap_done
fi
if [ ! -f "$BERTH_WEB/package/berth.wasm" ]; then
  skip_test "learning, in Node" "the package is not built: make web says what that needs"
  tap_done
fi
exec node "$BERTH_SRC/tests/web/train.mjs"
