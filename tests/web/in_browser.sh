# Runs a test in Chromium; skipped, by name, where this machine lacks what that takes. scripts/check.sh builds the page
# ($BERTH_WEB) and installs what drives the browser ($BERTH_WEB_TESTS).
#   in_browser.sh TEST.mjs [ARGUMENT]...
test=$1
reason=${BERTH_WEB_REASON:-${BERTH_PACKAGES_REASON-}}
export BERTH_WEB=${BERTH_WEB:-$BERTH_SRC/build/web} BERTH_WEB_TESTS=${BERTH_WEB_TESTS:-$BERTH_SRC/build/web-tests}
export BERTH_CHROMIUM=${BERTH_CHROMIUM:-$(command -v chromium)}
[ -f "$BERTH_WEB/package/berth-threads.wasm" ] || reason=${reason:-"the page is not built: make web builds it"}
[ -d "$BERTH_WEB_TESTS/node_modules" ] || reason=${reason:-"playwright-core is not installed: make check installs it"}
[ -n "$BERTH_CHROMIUM" ] || reason=${reason:-"chromium is not installed"}
if [ -n "$reason" ]; then
  printf 'ok 1 - %s in a browser # SKIP %s\n1..1\n' "$test" "$reason"
  exit 0
fi
exec node "$BERTH_SRC/tests/web/$test" "${@:2}"
