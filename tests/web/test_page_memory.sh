#!/usr/bin/env bash
# The page: what runs leave behind.
. "$BERTH_SRC/tests/web/in_browser.sh" page_memory.mjs
