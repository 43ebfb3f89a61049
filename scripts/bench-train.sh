#!/usr/bin/env bash
# Measures steps of training of GPT-2 124M beside llm.c on the CPU, in turns in one process, and compares losses and
# gradients.
#   scripts/bench-train.sh [--steps 10] [--threads N] [--layers N] [--length N]
# LLMC is a checkout of https://github.com/karpathy/llm.c; without it, berth alone is measured. OMP_NUM_THREADS says how
# many threads llm.c has.
set -euo pipefail
cd "$(dirname "$0")/.."
cmake --preset bench >/dev/null
cmake --build --preset bench --target bench_train_bench_gpt2 --parallel "${JOBS:-2}" >&2
run=build/measure/bench/train/bench_gpt2
if [ -z "${LLMC:-}" ]; then
  echo "skipped: llm.c: LLMC names no checkout of it"
  exec "$run" "$@"
fi
[ -f "$LLMC/train_gpt2.c" ] || { echo "${0##*/}: there is no train_gpt2.c in $LLMC" >&2; exit 1; }
LLMC=$(cd "$LLMC" && pwd) # bench/train/llmc.c includes it from where it lies itself
# The flags of llm.c's own Makefile.
"${CC:-cc}" -Ofast -march=native -fopenmp -DOMP -w -shared -fPIC -DLLMC_SOURCE="\"$LLMC/train_gpt2.c\"" -I"$LLMC" \
  -Ibench/train bench/train/llmc.c -o build/measure/llmc.so -lm
exec "$run" --llmc build/measure/llmc.so "$@"
