#!/usr/bin/env bash
# The page: loading, digits, models, bad files, plans.
. "$BERTH_SRC/tests/web/in_browser.sh" page.mjs
