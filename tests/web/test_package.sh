#!/usr/bin/env bash
# The npm package (build/web/package, by scripts/build-web.sh) in Node, and its types.
. "$BERTH_SRC/tests/support/tap.sh"
export BERTH_WEB=${BERTH_WEB:-$BERTH_SRC/build/web}

if ! command -v node >/dev/null; then
  skip_test "the package in Node" "node is not installed"
  tap_done
fi
if [ ! -f "$BERTH_WEB/package/berth.wasm" ]; then
  skip_test "the package in Node" "it is not built: make web says what that needs"
  tap_done
fi

# The tests print TAP of their own; they count on here.
while IFS= read -r line; do
  case $line in
    "ok "*"# SKIP "*) rest=${line#ok * - } && skip_test "${rest% # SKIP *}" "${rest#* # SKIP }" ;;
    "ok "*) ok "${line#ok * - }" ;;
    "not ok "*) not_ok "${line#not ok * - }" ;;
    1..*) ;;
    "status "*) status=${line#status } ;;
    *) echo "$line" ;;
  esac
done < <(node "$BERTH_SRC/tests/web/package.mjs" 2>&1 </dev/null; echo "status $?")
[ "${status-}" = 0 ] || [ $tap_failed -ne 0 ] || not_ok "package.mjs ends well" "its exit status is ${status-unknown}"

typescript=${BERTH_WEB_TESTS:-$BERTH_SRC/build/web-tests}/node_modules/typescript/bin/tsc
accepts() { # file
  node "$typescript" --noEmit --strict --target es2022 --module nodenext --moduleResolution nodenext --lib es2022,dom "$1"
}
refuses() { # file what: it is refused for that
  local output
  output=$(accepts "$1") && return 1
  grep -q "$2" <<<"$output" || { echo "$output" && return 1; }
}
if [ -f "$typescript" ]; then
  check "a program in TypeScript is accepted" accepts "$BERTH_SRC/tests/web/types_right.mts"
  check "one that gives text for numbers is not" refuses "$BERTH_SRC/tests/web/types_wrong.mts" "Type 'string' is not assignable"
else
  skip_test "the types" "${BERTH_PACKAGES_REASON:-typescript is not installed: make check installs it}"
fi
tap_done
