#!/usr/bin/env bash
# The public header compiles everywhere, and the shared library exports just what it declares.
set -uo pipefail
. "$BERTH_SRC/tests/support/tap.sh"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
header=$BERTH_SRC/include/berth/berth.h
strict="-Wall -Wextra -Wconversion -Wpedantic -Werror -I$BERTH_SRC/include -fsyntax-only"
printf '#include <berth/berth.h>\n#include <berth/berth.h>\nint main(void) { return berth_version()[0] == 0; }\n' |
  tee "$work/use.c" >"$work/use.cpp"

compiles() { # compiler standard file
  local name="the header compiles with $1 as $2"
  if ! command -v "$1" >/dev/null; then
    skip_test "$name" "$1 is not installed"
  else
    check "$name" "$1" "-std=$2" $strict "$work/$3"
  fi
}
for cc in gcc clang; do
  compiles $cc c99 use.c
  compiles $cc c11 use.c
done
for cxx in g++ clang++; do compiles $cxx c++11 use.cpp; done

declared_functions() {
  sed -e 's@/\*.*\*/@@' "$header" | tr '\n' ' ' | grep -oE 'BERTH_API [^;#]*;' |
    sed -E 's/^[^(]*[ *](berth_[a-z0-9_]+)\(.*/\1/' | sort
}
exported_symbols() { nm -D --defined-only "$BERTH_BUILD/libberth.so" | awk '$2 != "A" { print $3 }' | sort; }

same_symbols() {
  diff <(declared_functions) <(exported_symbols) | grep '^[<>]' |
    sed -e 's/^</declared, not exported:/' -e 's/^>/exported, not declared:/' >"$work/difference"
  [ ! -s "$work/difference" ] || { cat "$work/difference"; return 1; }
}
only_libc() {
  local needs
  needs=$(ldd "$BERTH_BUILD/libberth.so") && ! echo "$needs" | grep -vE 'linux-vdso|libc\.|libm\.|libpthread|ld-linux|ld-musl'
}
many_declared() { [ "$(declared_functions | wc -l)" -gt 50 ]; }
check "the declarations of the header are found" many_declared
if is_sanitized; then
  skip_test "the symbols and needs of the shared library" "this build has sanitizers in it"
  tap_done
fi
check "the shared library exports what the header declares, and nothing else" same_symbols
check "the shared library needs the C library alone" only_libc
tap_done
