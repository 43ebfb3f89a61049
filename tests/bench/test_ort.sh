#!/usr/bin/env bash
# bench/ort: the models that it writes load and run, and the table is right, with a stand-in for ONNX Runtime.
set -uo pipefail
. "$BERTH_SRC/tests/support/tap.sh"

if ! command -v node >/dev/null; then
  skip_test "bench/ort" "node is not installed"
  tap_done
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
tool=$BERTH_SRC/bench/ort

check "the models are written" node "$tool/models.js" made --small
check "written again elsewhere" node "$tool/models.js" again --small
check "the same bytes every time" diff -r made again
check_fails "a model that is not known" node "$tool/models.js" made --small alexnet
check_fails "no folder" node "$tool/models.js"

runs_and_checks() { # name
  local inputs=() file input
  while IFS=$'\t' read -r file input; do inputs+=(--input "$input=made/$1/$file"); done <"made/$1/inputs.tsv"
  "$BERTH_BIN" run "made/$1/$1.onnx" "${inputs[@]}" --check
}
for model in minilm_l6 resnet50 mobilenet_v2 efficientnet_b0 deit_tiny unet_1024 trees_1_row trees_1000_rows; do
  check "$model runs" runs_and_checks $model
done

# Stands in for both engines: 2 ms for ONNX Runtime and 1 ms for berth, whatever is asked.
cat >ort_run <<'SH'
#!/bin/sh
case "$*" in *--no-pattern*) peak=900 ;; *) peak=1000 ;; esac
echo "{\"version\": \"9.9\", \"median_ms\": 2, \"peak_rss\": 2097152, \"inputs_size\": 700, \"outputs_size\": 100, \
  \"arena_peak\": $peak, \"arena_after\": 100, \"arena_idle\": 0}"
SH
cat >berth <<'SH'
#!/bin/sh
case "$*" in
  *resnet50*) echo "berth: it does not run" >&2; exit 1 ;;
  plan*) echo '{"activations_size": 150, "scratch_size": 50}' ;;
  *) echo '{"median_ms": 1, "peak_rss": 1048576}' ;;
esac
SH
chmod +x ort_run berth
bench() { node "$tool/bench.js" --berth ./berth --ort-run ./ort_run --lib lib --generated made --rounds 3 "$@"; }

check "two models" bench --threads 1,4 --out table.md minilm_l6 made/unet_1024
check "a row for each number of threads" grep -qF '| minilm_l6 | 4 | 2.00 | 1.00 | 0.50 | 1 | 0 | 0.25 | 2 | 0.13 | 2.0 | 1.0 | 0.50 |' table.md
check "and for each model" grep -qF '| unet_1024 | 1 | 2.00 | 1.00 | 0.50 |' table.md
check "the mean" grep -qF -- '- 4 threads, memory that a run needs: geometric mean 0.250 over 2 models, worst 0.25' table.md
check "and with inputs and outputs" grep -qF 'inputs and outputs: geometric mean 0.125 over 2 models, worst 0.13' table.md
check "the version" grep -qF 'ONNX Runtime 9.9' table.md
printf 'before\n<!-- bench-ort: what the command prints -->\nold\n<!-- bench-ort: end -->\nafter\n' >page.md
check "into a page with marks" bench --threads 1 --out page.md minilm_l6
check "what is around stays" test "$(sed -n '1p;2p;$p' page.md | tr '\n' '|')" = \
  'before|<!-- bench-ort: what the command prints -->|after|'
check "the table is there" grep -qF '| minilm_l6 | 1 |' page.md
check_fails "what was there is not" grep -qF old page.md
check_fails "an engine that fails" bench --threads 1 --out failed.md resnet50 minilm_l6
check "is named below the table" grep -qF 'not measured: resnet50, 1 thread: berth: it does not run' failed.md
check "and the others stand there" grep -qF '| minilm_l6 | 1 |' failed.md
check_fails "a name that is not known" bench alexnet
check_fails "an option that is not known" bench --fast
check_fails "no threads" bench --threads 0 minilm_l6
tap_done
