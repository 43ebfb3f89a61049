#!/usr/bin/env bash
# The parts of the page that need no browser: numbers, files, drawings, the view of a plan.
set -uo pipefail
. "$BERTH_SRC/tests/support/tap.sh"

if ! command -v node >/dev/null; then
  skip_test "the modules of the page" "node is not installed"
  tap_done
fi
export BERTH_WEB=${BERTH_WEB:-$BERTH_SRC/build/web}
if [ ! -f "$BERTH_WEB/worker.js" ]; then
  skip_test "the modules of the page" "the page is not built: make web builds it"
  tap_done
fi
exec node "$BERTH_SRC/tests/web/page_modules.mjs"
