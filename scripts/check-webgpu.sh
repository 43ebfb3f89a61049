#!/usr/bin/env bash
# Runs every test of the device "webgpu", those too that take too long for scripts/check.sh.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/webgpu-deps.sh

webgpu_find && { webgpu_find_second || echo "skipped: check-webgpu: a second implementation: $webgpu_reason"; }
[ -z "$npm_wrong" ] || { echo "check-webgpu: $webgpu_reason" >&2; exit 1; }
[ -n "$webgpu_library" ] || { echo "skipped: check-webgpu: $webgpu_reason"; exit 0; }
export BERTH_TEST_NIGHTLY=1 BERTH_TEST_TIMEOUT=${BERTH_TEST_TIMEOUT:-1800}
exec scripts/check.sh webgpu wgsl
