#!/usr/bin/env bash
# The page in Firefox; skipped, by name, where there is none.
export BERTH_FIREFOX=${BERTH_FIREFOX:-$(command -v firefox-esr || command -v firefox)}
if [ -z "$BERTH_FIREFOX" ]; then
  printf 'ok 1 - the page in Firefox # SKIP firefox is not installed\n1..1\n'
  exit 0
fi
. "$BERTH_SRC/tests/web/in_browser.sh" firefox.mjs
