#!/usr/bin/env bash
# web/package/webgpu.js by itself, in Node.
. "$BERTH_SRC/tests/support/tap.sh"
if ! command -v node >/dev/null; then
  skip_test "what C imports from webgpu.js" "node is not installed"
  tap_done
fi
exec node "$BERTH_SRC/tests/web/webgpu_glue.mjs"
