#!/usr/bin/env bash
# The page at first contact: files that are dropped, models at the first click, what is drawn.
. "$BERTH_SRC/tests/web/in_browser.sh" page_first.mjs
