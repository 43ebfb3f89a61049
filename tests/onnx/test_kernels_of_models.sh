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

# What models were seen to do, a graph each: a name, and its nodes.
form() { # name, text
  printf 'graph "f" { %s output "y" = %%y }\n' "$2" >"$work/form.berth"
  check "$1: no reference kernel" none "$work/form.berth"
}
for op in lstm gru rnn; do
  case $op in lstm) gates=32 ;; gru) gates=24 ;; *) gates=8 ;; esac
  form "$op of a transposed operand" "input %z : f32[5, 16, 7] param %w : f32[1, $gates, 16] \
    param %r : f32[1, $gates, 8] %x = transpose(%z) {perm = [0, 2, 1]} %y, %l = $op(%x, %w, %r)"
done
form "boxes that overlap" 'input %b : f32[1, 50, 4] input %s : f32[1, 3, 50] const %m : i64[1] = [10]
  input %o : f32[] %y, %n = non_max_suppression(%b, %s, %m, %o)'
form "as many rows as a run says" 'input %b : f32[1, 50, 4] input %s : f32[1, 3, 50] const %m : i64[1] = [10]
  input %o : f32[] %r, %n = non_max_suppression(%b, %s, %m, %o) const %f : i64[1] = [0]
  const %z : i64[1] = [0] %y = narrow(%r, %f, %n, %z)'
form "the largest of every second element" 'input %z : f32[8, 64]
  %x = narrow(%z) {axes = [1], starts = [0], ends = [64], steps = [2]} %y = reduce_max(%x) {axes = [1]}'
form "bytes with scales along two axes" 'input %x : f32[2, 3, 8, 8] input %s : f32[3, 1, 8] input %z : u8[3, 1, 8]
  %y = quantize(%x, %s, %z) {to = "u8"}'
for op in asin acos atan sinh cosh asinh acosh atanh; do
  form "$op" "input %x : f32[4, 64] %y = $op(%x)"
  form "$op of f16" "input %x : f16[4, 64] %y = $op(%x)"
done

for type in f32 f64 f16; do
  form "draws of $type" "%y = random_normal() {shape = [70], type = \"$type\"}"
  form "draws of $type with a seed" "%y = random_uniform() {shape = [70], type = \"$type\", seed = 3}"
done
for type in u16 i16; do
  form "to $type" "input %x : f32[2, 70] input %s : f32[70] input %z : $type[70] %y = quantize(%x, %s, %z) {to = \"$type\"}"
  form "from $type" "input %x : $type[2, 70] input %s : f32[] input %z : $type[] %y = dequantize(%x, %s, %z)"
  form "to halves from $type" "input %x : $type[9] %y = cast(%x) {to = \"f16\"}"
done
form "a transposed result as bytes" 'input %z : f32[8, 9, 10] input %s : f32[] input %o : u8[]
  %x = transpose(%z) {perm = [2, 0, 1]} %y = quantize(%x, %s, %o) {to = "u8"}'
form "pictures of bytes, resized" 'input %x : u8[1, 9, 11, 3] const %t : i64[4] = [1, 20, 30, 3]
  %y = resize(%x, %t) {mode = "linear"}'
form "volumes, resized" 'input %x : f32[1, 2, 4, 5, 6] const %t : i64[5] = [1, 2, 8, 10, 12]
  %y = resize(%x, %t) {mode = "linear"}'
form "powers of integers" 'input %a : i64[70] input %b : i64[] %y = pow(%a, %b)'
form "remainders" 'input %a : f32[70] input %b : f32[] %y = mod(%a, %b) {fmod = 1}'
for op in exp expm1 log sigmoid silu softplus gelu_tanh tanh sinh cosh sin cos; do
  form "$op of f64" "input %x : f64[4, 64] %y = $op(%x)"
done
form "points of a picture" 'input %x : f32[1, 3, 8, 9] input %g : f32[1, 5, 6, 2] %y = grid_sample(%x, %g)'
form "regions of a picture" 'input %x : f32[1, 3, 8, 9] input %r : f32[4, 4] input %i : i64[4]
  %y = roi_align(%x, %r, %i) {output_height = 2, output_width = 2, sampling_ratio = 2}'
form "taps that move" 'input %x : f32[1, 3, 8, 9] param %w : f32[4, 3, 3, 3] input %o : f32[1, 18, 6, 7]
  %y = deform_conv(%x, %w, %o)'
form "a class drawn by its chance" 'input %x : f64[4, 9] %s = softmax(%x) {axis = 1} %y = cumsum(%s) {axis = 1}'
for type in f64 i32 i64; do
  form "products of $type" "input %x : $type[4, 4] %y = matmul(%x, %x)"
  form "convolutions of $type" "input %x : $type[1, 3, 8, 9] input %w : $type[4, 3, 3, 3] %y = conv(%x, %w)"
done
form "an extent that a run finds" 'input %m : bool[50] %p = non_zero(%m) %n = shape(%p) {start = 1}
  const %w : i64[1] = [7] %s = concat(%n, %w) {axis = 0} input %x : f32[1, 7] %y = expand(%x, %s)'

printf 'graph "f" { input %%x : f32[4, 4] %%y = tan(%%x) output "y" = %%y }\n' >"$work/slow.berth"
check "a reference kernel is found" test "$(references "$work/slow.berth")" = '"reference_steps":1'
tap_done
