#!/usr/bin/env bash
# Every function of the header is used by the command line, by the Python package, by the WebAssembly module, or by an
# example that is a test: what nobody calls is broken before anyone sees it.
set -uo pipefail
. "$BERTH_SRC/tests/support/tap.sh"

functions() { # source root
  sed -e 's@/\*.*\*/@@' "$1/include/berth/berth.h" | tr '\n' ' ' | grep -oE 'BERTH_API [^;#]*;' |
    sed -E 's/^[^(]*[ *](berth_[a-z0-9_]+)\(.*/\1/' | sort -u
}
find_unused() { # source root
  local name
  for name in $(functions "$1"); do
    grep -rqE "\b$name\(" "$1/tools" "$1/python" "$1/web/wasm" "$1/examples" --include='*.c' --include='*.h' || echo "$name"
  done
}
nothing_from() { # function root
  local found
  found=$("$1" "$2")
  [ -z "$found" ] || { echo "$found"; return 1; }
}
many() { [ "$(functions "$BERTH_SRC" | wc -l)" -gt 100 ]; }
check "the functions of the header are found" many
check "every function is used in tools/, python/, web/wasm or examples/" nothing_from find_unused "$BERTH_SRC"

wrong=$(mktemp -d)
trap 'rm -rf "$wrong"' EXIT
mkdir -p "$wrong/include/berth" "$wrong/tools" "$wrong/python" "$wrong/web/wasm" "$wrong/examples"
printf 'BERTH_API int berth_used(void);\nBERTH_API void berth_forgotten(int a,\n   int b);\n' >"$wrong/include/berth/berth.h"
echo 'int main(void) { return berth_used(); }' >"$wrong/examples/a.c"
check "the rule finds a function that nobody calls" test "$(find_unused "$wrong")" = berth_forgotten
tap_done
