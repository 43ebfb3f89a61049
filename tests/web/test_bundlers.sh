#!/usr/bin/env bash
# The package in the hands of bundlers, and in Node by its name.
. "$BERTH_SRC/tests/web/in_browser.sh" bundlers.mjs
