#!/usr/bin/env bash
# clang-tidy has nothing to say about the library and the tool; .clang-tidy has the checks, and why some are left out.
# Where one is wrong about a line, NOLINT(check) stands there with a reason.
set -uo pipefail
. "$BERTH_SRC/tests/support/tap.sh"
cd "$BERTH_SRC" || exit 1

if ! command -v clang-tidy >/dev/null; then
  skip_test "clang-tidy finds nothing" "clang-tidy is not installed"
else
  check "clang-tidy finds nothing" scripts/tidy.sh "$BERTH_BUILD"

  # The run itself must be able to find something: a copy with one bad file.
  wrong=$(mktemp -d)
  trap 'rm -rf "$wrong"' EXIT
  mkdir -p "$wrong/scripts" "$wrong/src/base" "$wrong/tools" "$wrong/build"
  cp scripts/tidy.sh "$wrong/scripts/"
  cp .clang-tidy "$wrong/"
  printf 'int twice(int x) { return x == x ? 2 : 1; }\n' >"$wrong/src/base/bad.c"
  printf '[\n{\n  "directory": "%s",\n  "command": "clang -c %s",\n  "file": "%s"\n}\n]\n' \
    "$wrong" "$wrong/src/base/bad.c" "$wrong/src/base/bad.c" >"$wrong/build/compile_commands.json"
  check_fails "a bad file fails it" "$wrong/scripts/tidy.sh" "$wrong/build"
  check "and is named" grep -q 'bad.c:1:.*misc-redundant-expression' <("$wrong/scripts/tidy.sh" "$wrong/build")
fi

# A NOLINT names its check and has a reason after it.
bare_nolints() { grep -rnE 'NOLINT' include src tools | grep -vE 'NOLINT[A-Z]*\([a-zA-Z0-9.,* -]+\):? +[a-z]'; }
check_fails "every NOLINT names its check and says why" bare_nolints
tap_done
