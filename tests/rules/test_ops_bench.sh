#!/usr/bin/env bash
# Every op of ops.def has a row in a table of bench/ops/rows_*.c, which compares its awkward forms with its fast one.
set -uo pipefail
. "$BERTH_SRC/tests/support/tap.sh"

without_row() { # ops.def, files of rows
  local op def=$1
  shift
  for op in $(sed -n 's/^BERTH_OP(\([a-z_0-9]*\),.*/\1/p' "$def"); do
    grep -q "^ *{\"$op\"," "$@" || echo "$op"
  done
}
missing=$(without_row "$BERTH_SRC/src/ops/ops.def" "$BERTH_SRC"/bench/ops/rows_*.c)
if [ -z "$missing" ]; then ok "every op has a row"; else not_ok "every op has a row" "missing: $(echo $missing)"; fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
printf 'BERTH_OP(neg, PUBLIC, unary)\nBERTH_OP(forgotten, PUBLIC, unary)\n' >"$work/ops.def"
printf '    {"neg", NULL},\n' >"$work/rows.c"
check "the rule finds an op without a row" test "$(without_row "$work/ops.def" "$work/rows.c")" = forgotten
tap_done
