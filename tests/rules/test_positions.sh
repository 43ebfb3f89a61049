#!/usr/bin/env bash
# Positions of operands and attributes have names (BERTH_OPERANDS and BERTH_ATTRS in src/ops/ops.def): no attribute is
# taken by a number, and no operand past the second. What numbers other things is left alone: instructions of kernels and
# registers of chains (src/kernel/*.c, chain_run.c), and operands as a file format counts them (src/import).
set -uo pipefail
. "$BERTH_SRC/tests/support/tap.sh"

find_bare() { # root
  (cd "$1" && {
    grep -rnE '(->|\.|\b)attrs?\[[0-9]+\]' src --include='*.c' --include='*.h' | grep -vE 'berth_attr (attrs?|\w+)\['
    grep -rnE '((->|\.)in|in_shape|in_type|in_data)\[[2-9]\]|_has\((call|infer|l), [2-9]\)' src --include='*.c' \
      --include='*.h' | grep -vE '^src/(import/|kernel/[a-z_]+\.c|device/cpu/kernels/chain_run\.c)'
  })
}

nothing_bare() { # root
  local found
  found=$(find_bare "$1")
  [ -z "$found" ] || { echo "$found"; return 1; }
}

check "positions are named" nothing_bare "$BERTH_SRC"

# The check itself must be able to find something.
wrong=$(mktemp -d)
trap 'rm -rf "$wrong"' EXIT
mkdir -p "$wrong/src/ops" "$wrong/src/kernel/lower"
echo 'x = call->attrs[6].i;' >"$wrong/src/ops/attribute.c"
echo 'x = &infer->in_shape[2];' >"$wrong/src/ops/operand.c"
echo 'x = l->call->in[3];' >"$wrong/src/kernel/lower/lowering.c"
echo 'berth_attr attrs[2] = {first, second};' >"$wrong/src/ops/fine.c"
for name in attribute operand lowering; do
  check "the rule finds $name.c" grep -q "$name.c" <(find_bare "$wrong")
done
if grep -q fine.c <(find_bare "$wrong"); then not_ok "a declaration is none" "fine.c"; else ok "a declaration is none"; fi
tap_done
