#!/usr/bin/env bash
# Who may include whom: base <- ops <- graph <- {grad, import, pass <- rewrite} <- plan <- device <- session <- generate <- tools. The kernels in
# src/kernel stand beside the graph: ops <- kernel <- device. Texts need files alone: import <- text <- session.
# The rules in words, and why, are in CONTRIBUTING.md.
set -uo pipefail
. "$BERTH_SRC/tests/support/tap.sh"

# Prints every #include "..." line under $1 (a source root) that goes against the rules.
find_violations() {
  (cd "$1" && find src -name '*.[ch]' -o -name '*.def' | xargs grep -Hn '^ *# *include *"' || true) | awk -F: '
    BEGIN {
      n = split("base ops kernel graph grad import pass rewrite plan device text session generate", order, " ")
      for (i = 1; i <= n; i++) rank[order[i]] = i
    }
    {
      split($1, path, "/")
      from = path[2]
      target = $0
      sub(/^[^"]*"/, "", target)
      sub(/".*/, "", target)
      split(target, part, "/")
      to = part[1]
      if (target == "berth/berth.h") next
      if (!(from in rank)) { print $0 "    (src/" from " is not a folder of the design)"; next }
      if (!(to in rank)) { print $0 "    (write the folder: \"" from "/...\")"; next }
      siblings = ((from == "pass" || from == "rewrite") && to == "import")
      if (from == "text" && to != "base" && to != "import" && to != "text") siblings = 1
      if (to == "kernel" && from != "kernel" && from != "device") siblings = 1
      if (rank[to] > rank[from] || siblings) print $0 "    (" from " may not include " to ")"
    }'
}

# The tools and the Python extension use the public header and their own files.
find_tool_violations() {
  (cd "$1" && find tools $(ls -d python 2>/dev/null) -name '*.[ch]' | xargs grep -Hn '^ *# *include *"' || true) |
    grep -v '"berth/berth.h"' | grep '"[^"]*/[^"]*"'
}

nothing_from() { # function root
  local found
  found=$("$1" "$2")
  [ -z "$found" ] || { echo "$found"; return 1; }
}

check "sources include only from their own folder or from lower ones" nothing_from find_violations "$BERTH_SRC"
check "tools include the public header alone" nothing_from find_tool_violations "$BERTH_SRC"

# The checks themselves must be able to find something.
wrong=$(mktemp -d)
trap 'rm -rf "$wrong"' EXIT
mkdir -p "$wrong/src/ops" "$wrong/src/text" "$wrong/src/kernel" "$wrong/src/pass" "$wrong/src/plan" "$wrong/src/device/cpu" "$wrong/tools/berth" "$wrong/python/src"
echo '#include "plan/plan.h"' >"$wrong/src/ops/up.c"
echo '  #  include "import/npy/npy.h"' >"$wrong/src/pass/across.c"
echo '#include "graph/graph.h"' >"$wrong/src/kernel/upward.c"
echo '#include "kernel/kernel.h"' >"$wrong/src/plan/beside.c"
echo '#include "plan.h"' >"$wrong/src/plan/bare.c"
echo '#include "session/session.h"' >"$wrong/src/device/cpu/deep.c"
echo '#include "base/map.h"' >"$wrong/tools/berth/inside.c"
echo '#include "graph/graph.h"' >"$wrong/src/text/far.c"
for name in up across upward beside bare deep far; do
  check "the rule finds $name.c" grep -q "$name.c" <(find_violations "$wrong")
done
check "the rule finds a tool that looks inside" grep -q inside.c <(find_tool_violations "$wrong")
echo '#include "graph/graph.h"' >"$wrong/python/src/deep_down.c"
check "the rule finds an extension that looks inside" grep -q deep_down.c <(find_tool_violations "$wrong")
tap_done
