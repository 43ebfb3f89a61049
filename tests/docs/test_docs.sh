#!/usr/bin/env bash
# Runs the examples in README.md and docs/*.md: every block that starts with ```sh runnable, with berth on the PATH, and
# every ```c runnable, compiled against the library. The blocks of a page run one after the other in a folder of the
# page's own, which has the examples/ of the source.
set -uo pipefail
. "$BERTH_SRC/tests/support/tap.sh"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin"
ln -s "$BERTH_BIN" "$work/bin/berth"
export PATH="$work/bin:$PATH"

# Writes block N of a page to $2/N.sh or $2/N.c and prints that name and the page's line for each.
extract() { # page folder
  awk -v folder="$2" '
    !inside && /^```(sh|c) runnable[ \t]*$/ {
      inside = 1; name = ++n (/^```sh/ ? ".sh" : ".c"); file = folder "/" name; print name, FNR; next
    }
    inside && /^```/ { inside = 0; close(file); next }
    inside { print > file }' "$1"
}

sanitize=$(sed -n 's/^BERTH_SANITIZE:STRING=//p' "$BERTH_BUILD/CMakeCache.txt")

run_block() { # folder script-or-source
  cd "$1" || return 1
  case $2 in
    *.sh) bash -euo pipefail "$2" ;;
    *.c)
      "${CC:-cc}" -std=c11 -Wall -Wextra -Werror ${sanitize:+"-fsanitize=$sanitize"} -I"$BERTH_SRC/include" "$2" \
        "$BERTH_BUILD/libberth.a" -lm -lpthread -o "$2.out" && "$2.out"
      ;;
  esac
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
    check "$name line $line" run_block "$folder" "$blocks/$n"
  done < <(extract "$page" "$blocks")
done
[ "$found" = 1 ] || skip_test "examples of the pages" "no page has a block that is marked as runnable"
tap_done
