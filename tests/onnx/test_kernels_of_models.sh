#!/usr/bin/env bash
# No node of a model at hand runs on a reference kernel of the CPU: those of the repository, and those in $BERTH_MODELS
# or in shared/data/models beside it, where they are. Plans tell; nothing runs.
set -uo pipefail
. "$BERTH_SRC/tests/support/tap.sh"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

references() { # arguments of plan: prints how many steps have reference kernels
  "$BERTH_BIN" plan "$@" --effort 1 --json >"$work/plan.json" 2>"$work/err" || { tail -n 1 "$work/err"; return 1; }
  grep -o '"reference_steps":[0-9]*' "$work/plan.json"
}
none() { # arguments of plan
  local found
  found=$(references "$@") || { echo "$found"; return 1; }
  found=$(tr '{' '\n' <"$work/plan.json" | grep '"reference":true')
  [ -z "$found" ] && return
  echo "$found"
  return 1
}

# A file, and the dims without which it cannot be planned.
models=(
  "$BERTH_SRC/examples/digits/digits.berth --dim batch=2"
  "$BERTH_SRC/examples/decoder/decoder.berth --dim n=3"
  "$BERTH_SRC/examples/state/average.berth"
  "$BERTH_SRC/web/page/samples/encoder.berth"
  "$BERTH_SRC/web/page/samples/lstm.berth"
  "$BERTH_SRC/web/page/samples/unet.berth --dim height=64 --dim width=64"
)
dims() { # name of a model
  case $1 in
    ch_PP-OCRv4_rec_*) echo "--dim p2o.DynamicDimension.0=1 --dim p2o.DynamicDimension.1=160" ;;
    ch_PP-OCRv4_*) echo "--dim p2o.DynamicDimension.0=1 --dim p2o.DynamicDimension.1=64 --dim p2o.DynamicDimension.2=64" ;;
    ch_ppocr_*) echo "--dim p2o.DynamicDimension.0=1 --dim p2o.DynamicDimension.1=48 --dim p2o.DynamicDimension.2=192" ;;
    silero_vad_16k_op15) echo "--dim sequence=512" ;;
    silero_vad_v5) echo "--dim input.0=1 --dim input.1=512 --dim state.1=1" ;;
    moonshine_*) echo "--dim batch_size=1 --dim num_samples=16000" ;;
    stories260K_kv) echo "--dim p=3 --dim n=2" ;;
  esac
}
folder=${BERTH_MODELS:-$BERTH_SRC/../shared/data/models}
for file in "$folder"/*/*.onnx; do
  [ -f "$file" ] && models+=("$file $(dims "$(basename "$file" .onnx)")")
done

for model in "${models[@]}"; do
  # shellcheck disable=SC2086 # arguments
  check "$(basename "${model%% *}"): no node has a reference kernel" none $model
done
[ -d "$folder" ] || skip_test "models beside the repository" "there is no $folder"

printf 'graph "f" { input %%x : f64[4, 4] %%y = matmul(%%x, %%x) output "y" = %%y }\n' >"$work/slow.berth"
check "a reference kernel is found" test "$(references "$work/slow.berth")" = '"reference_steps":1'
tap_done
