#!/usr/bin/env bash
# Prints who gives the same bytes for quantised models: a row a model, a column for each instruction set of this machine
# with one thread and with two, and for each device; "=" where the outputs are those of the first column, "differs"
# elsewhere.
#   scripts/exact.sh [--devices "interp vulkan"] MODEL.onnx|FOLDER...
# A folder stands for the models below it; inputs.tsv beside one names its inputs, which are seeded noise otherwise.
set -uo pipefail
cd "$(dirname "$0")/.."
berth=${BERTH_BIN:-build/berth}
[ -x "$berth" ] || { echo "exact: $berth is not there; 'make' builds it" >&2; exit 1; }
devices="interp vulkan" room=$(mktemp -d)
trap 'rm -rf "$room"' EXIT
[ "${1-}" = --devices ] && { devices=$2; shift 2; }

isas=$(for isa in portable avx2 avx512; do
  BERTH_CPU_ISA=$isa "$berth" run >/dev/null 2>&1 && echo $isa
done)
ways=()
for isa in $isas; do ways+=("cpu:$isa:1" "cpu:$isa:2"); done
for device in $devices; do ways+=("$device:$(echo $isas | awk '{print $NF}'):2"); done

run() { # model inputs... -> outputs in $room/WAY
  local way=$1 model=$2 device isa threads
  shift 2
  IFS=: read -r device isa threads <<<"$way"
  mkdir -p "$room/$way"
  BERTH_CPU_ISA=$isa timeout 300 "$berth" run "$model" --device "$device" --fallback cpu --threads "$threads" \
    --output-dir "$room/$way" "$@" >/dev/null 2>"$room/error"
}

printf '| model |'
printf ' %s |' "${ways[@]}" | sed 's/cpu://g'
printf '\n|---|'
printf -- '---|%.0s' "${ways[@]}"
echo
find "$@" -name '*.onnx' | sort | while read -r model; do
  inputs=()
  if [ -f "$(dirname "$model")/inputs.tsv" ]; then
    while IFS=$'\t' read -r file name; do inputs+=(--input "$name=$(dirname "$model")/$file"); done \
      <"$(dirname "$model")/inputs.tsv"
  fi
  printf '| %s |' "$(basename "$model" .onnx)"
  for way in "${ways[@]}"; do
    if ! run "$way" "$model" ${inputs[@]+"${inputs[@]}"}; then
      printf ' %s |' "$(grep -v 'note:' "$room/error" | head -1 | cut -c1-60)"
    elif diff -rq "$room/${ways[0]}" "$room/$way" >/dev/null; then
      printf ' = |'
    else
      printf ' differs |'
    fi
  done
  echo
  rm -rf "${room:?}"/*
done
