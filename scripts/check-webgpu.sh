#!/usr/bin/env bash
# Runs the tests of the device "webgpu". Where BERTH_WEBGPU_LIBRARY does not name an implementation, Dawn comes from npm
# (the package bun-webgpu-linux-x64) and stays under build/webgpu; so does doe-gpu, as a second implementation. Where
# VK_ICD_FILENAMES does not name a driver, it is the SwiftShader of Debian's chromium, if that is installed.
set -euo pipefail
cd "$(dirname "$0")/.."

skip() {
  echo "skipped: check-webgpu: $1"
  exit 0
}

dawn=build/webgpu/node_modules/bun-webgpu-linux-x64/libwebgpu_wrapper.so
doe=build/webgpu/node_modules/doe-gpu-linux-x64/bin/libwebgpu_doe.so
swiftshader=/usr/lib/chromium/vk_swiftshader_icd.json

if [ -z "${BERTH_WEBGPU_LIBRARY-}" ]; then
  if [ ! -f $dawn ]; then
    command -v npm >/dev/null || skip "npm is not installed"
    echo "== installing bun-webgpu-linux-x64 into build/webgpu" >&2
    mkdir -p build/webgpu
    npm install --ignore-scripts --no-audit --no-fund --loglevel=error --prefix build/webgpu bun-webgpu-linux-x64 >&2 ||
      skip "npm could not install bun-webgpu-linux-x64"
  fi
  export BERTH_WEBGPU_LIBRARY=$PWD/$dawn
fi
if [ -z "${BERTH_WEBGPU_SECOND-}" ] && command -v npm >/dev/null; then
  [ -f $doe ] || npm install --ignore-scripts --no-audit --no-fund --loglevel=error --prefix build/webgpu \
    doe-gpu-linux-x64@0.4.7 >&2 || echo "== npm could not install doe-gpu-linux-x64" >&2
  if [ -f $doe ]; then export BERTH_WEBGPU_SECOND=$PWD/$doe; fi
fi
if [ -z "${VK_ICD_FILENAMES-}" ] && [ -f $swiftshader ]; then export VK_ICD_FILENAMES=$swiftshader; fi
export BERTH_TEST_DEVICE=webgpu BERTH_TEST_TIMEOUT=${BERTH_TEST_TIMEOUT:-1800}
exec scripts/check.sh webgpu loop/test_render_wgsl device/test_arena device/test_fallback device/test_half_weights \
  device/test_gpu_prelude ops/test_devices_gpu gpu/test_profile
