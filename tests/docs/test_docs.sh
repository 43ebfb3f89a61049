#!/usr/bin/env bash
# Runs the examples in README.md and docs/*.md: every block that starts with ```sh runnable, with berth on the PATH.
# The blocks of a page run one after the other in a folder of the page's own, which has the examples/ of the source.
set -uo pipefail
. "$BERTH_SRC/tests/support/tap.sh"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin"
ln -s "$BERTH_BIN" "$work/bin/berth"
export PATH="$work/bin:$PATH"

# Writes block N of a page to $2/N.sh and prints N and the page's line for each.
extract() { # page folder
  awk -v folder="$2" '
    !inside && /^```sh runnable[ \t]*$/ { inside = 1; file = folder "/" ++n ".sh"; print n, FNR; next }
    inside && /^```/ { inside = 0; close(file); next }
    inside { print > file }' "$1"
}

run_block() { # folder script
  cd "$1" && bash -euo pipefail "$2"
}

found=0
for page in "$BERTH_SRC"/README.md "$BERTH_SRC"/docs/*.md; do
  [ -f "$page" ] || continue
  name=${page#"$BERTH_SRC"/}
  blocks=$work/blocks/$name folder=$work/run/$name
  mkdir -p "$blocks" "$folder"
  ln -s "$BERTH_SRC/examples" "$folder/examples"
  while read -r n line; do
    found=1
    check "$name line $line" run_block "$folder" "$blocks/$n.sh"
  done < <(extract "$page" "$blocks")
done
[ "$found" = 1 ] || skip_test "examples of the pages" "no page has a block that is marked as runnable"
tap_done
