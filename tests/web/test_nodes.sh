#!/usr/bin/env bash
# ONNX's node tests in the WebAssembly module, on the CPU.
. "$BERTH_SRC/tests/support/tap.sh"
export BERTH_WEB=${BERTH_WEB:-$BERTH_SRC/build/web}
reason=${BERTH_WEB_REASON-}
command -v node >/dev/null || reason=${reason:-"node is not installed"}
[ -f "$BERTH_WEB/package/berth.wasm" ] || reason=${reason:-"the package is not built: make web builds it"}
if [ -n "$reason" ]; then
  skip_test "onnx node tests in WebAssembly" "$reason"
  tap_done
fi
exec node "$BERTH_SRC/tests/web/nodes.mjs" cpu
