#!/usr/bin/env bash
# The network learns what is drawn, in Chromium.
. "$BERTH_SRC/tests/web/in_browser.sh" page_learn.mjs "$@"
