#!/usr/bin/env bash
# Every op of ops.def stands in docs/ops.md.
set -uo pipefail
. "$BERTH_SRC/tests/support/tap.sh"

for op in $(sed -n 's/^BERTH_OP(\([a-z_0-9]*\),.*/\1/p' "$BERTH_SRC/src/ops/ops.def"); do
  grep -q "\`$op\`" "$BERTH_SRC/docs/ops.md" || missing="${missing-} $op"
done
if [ -z "${missing-}" ]; then ok "every op is documented"; else not_ok "every op is documented" "missing:$missing"; fi
tap_done
