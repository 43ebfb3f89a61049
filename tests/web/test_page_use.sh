#!/usr/bin/env bash
# The page: calling off, switching, saving, the picture and the table, versions of its files.
. "$BERTH_SRC/tests/web/in_browser.sh" page_use.mjs
