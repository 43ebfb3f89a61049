#!/usr/bin/env bash
# Runs the tests of GPUs and of pages in full: all that scripts/check.sh leaves out because a CPU that plays a GPU takes
# minutes over it (BERTH_TEST_SLOW), and a second implementation of WebGPU. Tokenizers meet llama.cpp's test vectors
# and llama.cpp itself, and Python all of ONNX's node tests.
#   scripts/check-slow.sh [PART...]    only tests whose path contains one of the parts, for example: webgpu
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/webgpu-deps.sh
. scripts/vocab-deps.sh
. scripts/llama-deps.sh

webgpu_find && { webgpu_find_second || echo "skipped: check-slow: a second implementation of WebGPU: $webgpu_reason"; }
[ -z "$npm_wrong" ] || { echo "check-slow: $webgpu_reason" >&2; exit 1; }
vocab_find || echo "skipped: check-slow: the vocabularies of llama.cpp: $vocab_reason"
[ -z "$npm_wrong" ] || { echo "check-slow: $vocab_reason" >&2; exit 1; }
mkdir -p "$llama"
if llama_library; then export BERTH_TEST_LLAMA=$llama_lib; else echo "skipped: check-slow: llama.cpp: $npm_reason"; fi
[ -z "$npm_wrong" ] || { echo "check-slow: $npm_reason" >&2; exit 1; }
export BERTH_TEST_SLOW=1 BERTH_TEST_TIMEOUT=${BERTH_TEST_TIMEOUT:-3600}
[ $# -gt 0 ] || set -- gpu/ text/ fault/ ops/test_devices_gpu python/ install/ webgpu wgsl
exec scripts/check.sh "$@"
