#!/usr/bin/env bash
# The page: phones, keys, themes, screen readers, screenshots.
. "$BERTH_SRC/tests/web/in_browser.sh" page_look.mjs
