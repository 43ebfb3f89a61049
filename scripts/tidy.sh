#!/usr/bin/env bash
# Runs clang-tidy with the checks in .clang-tidy over the library and the tool; prints what it finds.
#   scripts/tidy.sh BUILD [--deep] [FILE...]    BUILD has compile_commands.json; without files: src and tools
# `make check` has this as a gate. With --deep (`make lint`) clang's path-sensitive analyzer runs too: it takes ten times
# as long, and where a caller's promise is not visible in the file it may be wrong.
set -uo pipefail
cd "$(dirname "$0")/.."
build=$1
shift
depth=(--checks='-clang-analyzer-*')
[ "${1-}" = --deep ] && { depth=(); shift; }
commands=$(mktemp -d)
trap 'rm -rf "$commands"' EXIT

# Kernels are compiled once for each instruction set, the widest last; looking at one of them is enough. The first has no
# compiler's headers of thousands of instructions in it, which take longer than all the rest.
awk -v takes_first="${#depth[@]}" '
  /^\{/ { entry = ""; file = "" }
  { entry = entry $0 "\n" }
  /"file":/ { file = $0; gsub(/.*"file": *"|".*/, "", file) }
  /^\}/ { if (!(file in seen)) order[++n] = file; else if (takes_first) next; seen[file] = entry; sub(/,?\n$/, "", seen[file]) }
  END { print "["; for (i = 1; i <= n; i++) print seen[order[i]] (i < n ? "," : ""); print "]" }
' "$build/compile_commands.json" >"$commands/compile_commands.json"

if [ $# -eq 0 ]; then
  mapfile -t files < <(find src tools -name '*.c' | LC_ALL=C sort)
  set -- "${files[@]}"
fi
# A file that this build leaves out (another system's, a device that is not built) has no command, and is not looked at.
for file; do grep -qF "\"$PWD/$file\"" "$commands/compile_commands.json" && echo "$file"; done |
  xargs -P "${JOBS:-2}" -n 24 clang-tidy --quiet -p "$commands" "${depth[@]}" 2>/dev/null
