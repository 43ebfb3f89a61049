#!/usr/bin/env bash
# Every op of ops.def stands in docs/ops.md, whose list of ops is the one that scripts/ops-docs.py makes.
set -uo pipefail
. "$BERTH_SRC/tests/support/tap.sh"

for op in $(sed -n 's/^BERTH_OP(\([a-z_0-9]*\),.*/\1/p' "$BERTH_SRC/src/ops/ops.def"); do
  grep -q "\`$op\`" "$BERTH_SRC/docs/ops.md" || missing="${missing-} $op"
done
if [ -z "${missing-}" ]; then ok "every op is documented"; else not_ok "every op is documented" "missing:$missing"; fi
if ! command -v python3 >/dev/null; then
  skip_test "the list of ops is current" "python3 is not installed"
  tap_done
  exit
fi
check "the list of ops is current" python3 "$BERTH_SRC/scripts/ops-docs.py" --check

# The check itself must be able to find something.
old=$(mktemp -d)
trap 'rm -rf "$old"' EXIT
mkdir -p "$old/scripts" "$old/docs"
cp "$BERTH_SRC/scripts/ops-docs.py" "$old/scripts/"
ln -s "$BERTH_SRC/src" "$old/src"
sed 's/^| `softmax` | 1 |/| `softmax` | 2 |/' "$BERTH_SRC/docs/ops.md" >"$old/docs/ops.md"
if python3 "$old/scripts/ops-docs.py" --check 2>/dev/null; then
  not_ok "an old list is found" "it was not"
else
  ok "an old list is found"
fi
tap_done
