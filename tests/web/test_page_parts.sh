#!/usr/bin/env bash
# More parts of the page that need no browser: plans that play, GIFs, prices, links, the layout of graphs.
set -uo pipefail
. "$BERTH_SRC/tests/support/tap.sh"

if ! command -v node >/dev/null; then
  skip_test "the modules of the page" "node is not installed"
  tap_done
fi
exec node "$BERTH_SRC/tests/web/page_parts.mjs"
