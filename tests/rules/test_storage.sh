#!/usr/bin/env bash
# Bytes come from one function: nothing in src/ multiplies a count by the size of a type (src/base/storage.h). Kernels may,
# to find an element: ops and the kernels of the CPU, and what converts elements one by one.
set -uo pipefail
. "$BERTH_SRC/tests/support/tap.sh"

# Prints every line under $1 (a source root) that multiplies or divides by berth_type_size.
find_products() {
  (cd "$1" && find src -name '*.[ch]' | grep -v -e '^src/ops/' -e '^src/device/cpu/kernels/' -e '^src/base/storage\.' |
    xargs grep -HnE '(\*|/|%) *\(?(\([a-z0-9_]+\))?berth_type_size\(|berth_type_size\([^()]*(\([^()]*\))*[^()]*\) *(\*|/)|mul_u64\([^;]*berth_type_size\(')
}

# What a graph and its files know of storages: nothing but types.
find_flags() { (cd "$1" && grep -rnE 'is_half|F32_UNIFORM' src/graph src/ops src/import src/pass src/rewrite 2>/dev/null); }

found=$(find_products "$BERTH_SRC")
if [ -z "$found" ]; then ok "bytes come from one function"; else not_ok "bytes come from one function" "$found"; fi
found=$(find_flags "$BERTH_SRC" | grep -v 'static bool is_half(const binding\|if (is_half(b, node))\|is_half(b, node) ?')
if [ -z "$found" ]; then ok "graphs know nothing of storages"; else not_ok "graphs know nothing of storages" "$found"; fi

# The rule can fail.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/src/plan"
printf 'x = count * berth_type_size(type);\n' >"$work/src/plan/a.c"
printf 'if (!berth__mul_u64(n, berth_type_size(type), &size)) return;\n' >"$work/src/plan/b.c"
printf 'n = size / berth_type_size(value->type);\n' >"$work/src/plan/c.c"
n=$(find_products "$work" | wc -l)
if [ "$n" -eq 3 ]; then ok "the rule finds what it forbids"; else not_ok "the rule finds what it forbids" "$n of 3"; fi
tap_done
