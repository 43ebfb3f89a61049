#!/usr/bin/env bash
# Compares berth with ONNX Runtime, both run now on the same fresh inputs. ONNX Runtime comes from npm (the package
# onnxruntime-node) and stays under build/ort.
#   scripts/check-ort.sh [--seed N] [--dim NAME=N]... [--only PART] [MODEL.onnx|FOLDER]...
# Without a model: those in $BERTH_MODELS or in shared/data/models beside the repository, and those of ONNX's node tests,
# where they are.
set -uo pipefail
cd "$(dirname "$0")/.."

. scripts/ort-deps.sh

ort_install
[ -x build/berth ] || { echo "check-ort: build/berth is not there; 'make' builds it" >&2; exit 1; }

options=() places=()
while [ $# -gt 0 ]; do
  case $1 in
    --seed | --dim | --only) options+=("$1" "${2-}"); shift 2 || break ;;
    *) places+=("$1"); shift ;;
  esac
done
if [ ${#places[@]} -eq 0 ]; then
  for place in "${BERTH_MODELS:-../shared/data/models}" /usr/share/libonnx-testdata/data/node; do
    if [ -d "$place" ]; then places+=("$place"); else echo "skipped: check-ort: $place is not there"; fi
  done
fi
exec node tests/onnx/ort/compare.js build/berth $ort "${options[@]}" "${places[@]}"
