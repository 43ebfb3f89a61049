#!/usr/bin/env bash
# The layout of every C file is clang-format's; `make format` makes it so. Versions differ in details, so one decides:
# 14, which Debian 12 has.
set -uo pipefail
. "$BERTH_SRC/tests/support/tap.sh"
decides=14

program=clang-format-$decides
command -v $program >/dev/null || program=clang-format
if ! command -v $program >/dev/null; then
  skip_test "the layout of C files" "clang-format is not installed"
  tap_done
fi
version=$($program --version | sed 's/.*version \([0-9]*\).*/\1/')
if [ "$version" != $decides ]; then
  skip_test "the layout of C files" "clang-format $decides decides, and this is $version"
  tap_done
fi

unformatted() { # ROOT: the files that clang-format would change
  (cd "$1" && find include src tools tests bench examples python -name '*.[ch]' 2>/dev/null | LC_ALL=C sort |
    xargs $program --dry-run -Werror 2>&1 | sed -n 's/^\([^:]*\):[0-9]*:[0-9]*: error: .*/\1/p' | uniq)
}
nothing_unformatted() {
  local files
  files=$(unformatted "$1")
  [ -z "$files" ] || { echo "'make format' would change:"; echo "$files"; return 1; }
}

check "every C file is as clang-format leaves it" nothing_unformatted "$BERTH_SRC"
wrong=$(mktemp -d)
trap 'rm -rf "$wrong"' EXIT
cp "$BERTH_SRC/.clang-format" "$wrong"
mkdir -p "$wrong/src/base"
printf 'int  one( void ){return 1;}\n' >"$wrong/src/base/one.c"
check "a file that is not is named" grep -qx src/base/one.c <(unformatted "$wrong")
tap_done
