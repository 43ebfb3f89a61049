#!/usr/bin/env bash
# The device "webgpu" in Chromium.
. "$BERTH_SRC/tests/web/in_browser.sh" webgpu.mjs
