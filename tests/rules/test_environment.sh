#!/usr/bin/env bash
# The library reads the environment in one file, when a context is made; every variable has a field, and the docs list both.
set -uo pipefail
. "$BERTH_SRC/tests/support/tap.sh"

# Prints every line under $1 (a source root) that reads the environment outside that file.
find_readers() {
  (cd "$1" && grep -rnE '\b(secure_)?getenv *\(' src --include='*.[ch]' --include='*.def' | grep -v '^src/base/options\.c:')
}
nothing_from() { # function root
  local found
  found=$("$1" "$2")
  [ -z "$found" ] || { echo "$found"; return 1; }
}
variables() { grep -oE '"BERTH_[A-Z_]+"' "$BERTH_SRC/src/base/options.c" | tr -d '"' | sort -u; }

check "only src/base/options.c reads the environment" nothing_from find_readers "$BERTH_SRC"
many() { [ "$(variables | wc -l)" -ge 14 ]; }
check "the variables are found" many
for name in $(variables); do
  check "$name stands beside its field in the header" grep -q "$name" "$BERTH_SRC/include/berth/berth.h"
  check "$name is in the table of docs/devices.md" grep -qE "^\| \`$name\` \|" "$BERTH_SRC/docs/devices.md"
done

wrong=$(mktemp -d)
trap 'rm -rf "$wrong"' EXIT
mkdir -p "$wrong/src/device"
echo 'const char *value = getenv("BERTH_HIDDEN");' >"$wrong/src/device/hidden.c"
check "the rule finds a reader" grep -q hidden.c <(find_readers "$wrong")
tap_done
