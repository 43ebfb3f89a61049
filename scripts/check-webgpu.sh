#!/usr/bin/env bash
# Runs every test of the device "webgpu", those too that take too long for scripts/check.sh.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/webgpu-deps.sh

webgpu_find || { echo "skipped: check-webgpu: $webgpu_reason"; exit 0; }
webgpu_find_second
export BERTH_TEST_NIGHTLY=1 BERTH_TEST_TIMEOUT=${BERTH_TEST_TIMEOUT:-1800}
exec scripts/check.sh webgpu wgsl
