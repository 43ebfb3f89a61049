#!/usr/bin/env bash
# The device "webgpu" in Chromium. The package is that of build/web (scripts/build-web.sh), or of the folder that
# BERTH_WEB names; what drives the browser comes from npm, into build/web-tests.
. "$BERTH_SRC/tests/support/tap.sh"
export BERTH_WEB=${BERTH_WEB:-$BERTH_SRC/build/web}
export BERTH_WEB_TESTS=${BERTH_WEB_TESTS:-$BERTH_SRC/build/web-tests}
export BERTH_CHROMIUM=${BERTH_CHROMIUM:-$(command -v chromium)}

skip() {
  skip_test "webgpu in a browser" "$1"
  tap_done
}

command -v node >/dev/null || skip "node is not installed"
[ -n "$BERTH_CHROMIUM" ] || skip "chromium is not installed"
[ -f "$BERTH_WEB/package/berth-threads.wasm" ] || skip "the package is not built: make web says what that needs"
if [ ! -d "$BERTH_WEB_TESTS/node_modules/playwright-core" ]; then
  command -v npm >/dev/null || skip "npm is not installed"
  mkdir -p "$BERTH_WEB_TESTS"
  cp "$BERTH_SRC/tests/web/package.json" "$BERTH_WEB_TESTS"
  npm install --ignore-scripts --no-audit --no-fund --no-package-lock --loglevel=error --prefix "$BERTH_WEB_TESTS" >&2 </dev/null ||
    skip "npm could not install playwright-core"
fi
unset VK_ICD_FILENAMES # the browser has a driver of its own
exec node "$BERTH_SRC/tests/web/webgpu.mjs"
