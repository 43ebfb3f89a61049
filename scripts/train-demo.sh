#!/usr/bin/env bash
# Trains the digit classifier from its data to 98 %, and a small model of characters on a play. Everything that is needed
# lies in examples/. usage: train-demo.sh BERTH [FOLDER]
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
berth=${1:-$root/build/berth}
out=${2:-$root/build/train-demo}
mkdir -p "$out"

echo "== digits: examples/digits, a fifth of 1,797 handwritten digits held out"
rm -f "$out/digits.state"
sed '/^  weights /d' "$root/examples/digits/digits.berth" >"$out/digits.berth" # without the weights that it ships with
"$berth" train "$out/digits.berth" --input image="$root/examples/digits/images.npy" --scale image=0.0625 \
  --labels "$root/examples/digits/labels.npy" --hold-out 20 --optimizer sgd --steps 900 --batch 32 --rate 0.05 \
  --warmup 50 --schedule cosine --weight-decay 0.0005 --checkpoint "$out/digits.state" --save "$out/digits.safetensors"
"$berth" run "$root/examples/digits/digits.berth" --weights "$out/digits.safetensors" \
  --input image="$root/examples/digits/samples.npy" | head -3

echo "== characters: examples/chars, a transformer of 270,000 weights on a play"
"$berth" train "$root/examples/chars/chars.berth" --text "$root/examples/chars/coriolanus.txt" --dim time=64 \
  --hold-out 5 --steps "${CHARS_STEPS:-800}" --batch 16 --rate 0.003 --warmup 50 --schedule cosine --clip 1 \
  --save "$out/chars.safetensors" --sample 300 --prompt $'MENENIUS:\n'
