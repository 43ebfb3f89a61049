#!/usr/bin/env bash
# Measures berth beside ONNX Runtime: time, memory that a run needs, peak RSS; prints a table.
#   scripts/bench-ort.sh [--threads 1,2] [--rounds 5] [--dim NAME=N]... [--out FILE] [--rows FILE] [--small] [MODEL.onnx|FOLDER|NAME]...
# --rows keeps what was measured in FILE and prints the table of all in it: a table can be taken model by model.
# --small: thirty small models (bench/ort/small.js), back to back and with pauses of 10 ms between runs.
# Without a model: those in $BERTH_MODELS or in shared/data/models beside the repository, where they are, and networks
# of well-known shape with random weights (bench/ort/models.js). ONNX Runtime comes from npm and stays under build/ort.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/ort-deps.sh

ort_install
ort_headers
library=$(ort_library)
[ -n "$library" ] || skip "onnxruntime-node has no library for this machine"
cmake --preset bench -DBERTH_ORT_INCLUDE="$ORT_INCLUDE" >/dev/null
cmake --build --preset bench --target berth_tool bench_ort_ort_run --parallel "${JOBS:-2}" >&2

models=${BERTH_MODELS:-../shared/data/models}
[ -d "$models" ] && set -- --models "$models" "$@"
exec node bench/ort/bench.js --berth build/measure/berth --ort-run build/measure/bench/ort/ort_run --lib "$library" \
  --generated $ort/models "$@"
