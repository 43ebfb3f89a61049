#!/usr/bin/env bash
# The page: plans that play, the memory slider, links and verdicts, the graph, what is kept.
. "$BERTH_SRC/tests/web/in_browser.sh" page_play.mjs
