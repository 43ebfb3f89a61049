#!/usr/bin/env bash
# `berth kernels`: a pack that is made where there is a compiler and no GPU, and used where there is a GPU and no
# compiler. Both are played by tests/device/fake_cuda.
set -uo pipefail
. "$BERTH_SRC/tests/support/tap.sh"
if ! "$BERTH_BIN" devices 2>/dev/null | grep -q "^cuda "; then
  skip_test "berth kernels" "this build has no device cuda"
  tap_done
  exit 0
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
fake=$BERTH_BUILD/tests/libfake_cuda.so
export FAKE_CUDA_DIR=$folder BERTH_CACHE_DIR=

compiler() { BERTH_CUDA_LIBRARY=/nowhere/libcuda.so BERTH_NVRTC=$fake "$BERTH_BIN" "$@"; }
gpu() { BERTH_CUDA_LIBRARY=$fake BERTH_NVRTC=/nowhere/libnvrtc.so "$BERTH_BIN" "$@"; }
says() { # text command...
  local text=$1 output
  shift
  output=$("$@" 2>&1)
  grep -F -- "$text" >/dev/null <<<"$output" || { echo "$output"; return 1; }
}
exits_with() { # code command...
  local code=$1
  shift
  "$@" >"$folder/out" 2>&1
  [ $? -eq "$code" ] || { cat "$folder/out"; return 1; }
}

check "a pack is made without a GPU" exits_with 0 compiler kernels -o "$folder/pack" --target sm_90,compute_80
check "it is a file" test -s "$folder/pack"
export BERTH_KERNEL_PACK=$folder/pack
check "it runs the model without a compiler" exits_with 0 gpu run --device cuda --check
check "with other dimensions kernels are missing" says "kernels are missing in the pack" gpu run --device cuda --dim batch=3
tale=$BERTH_SRC/examples/tale/tale.gguf
check "a pack of a model that generates" exits_with 0 compiler kernels "$tale" -o "$folder/tale" --target sm_90 --dim ctx=32 --chunk 4
BERTH_KERNEL_PACK=$folder/tale check "it generates without a compiler" exits_with 0 \
  gpu generate "$tale" --device cuda --ctx 32 --chunk 4 -p "a" -n 2 --temp 0
unset BERTH_KERNEL_PACK
# GPUs before 8.0 have no matrix units that kernels use: they get other kernels, and a pack of their own.
cat >"$folder/half.berth" <<'GRAPH'
graph "half" {
  input %x : f16[128, 128]
  input %w : f16[128, 128]
  %y = matmul(%x, %w)
  output "y" = %y
}
GRAPH
check "16 bits are for matrix units" says "multiply" \
  compiler plan "$folder/half.berth" --device interp --gpu-profile nvidia --kernels -
check "a pack for GPUs without matrix units" exits_with 0 compiler kernels "$folder/half.berth" -o "$folder/old" --target sm_75
BERTH_KERNEL_PACK=$folder/old FAKE_CUDA_SECOND=75 check "it is what such a GPU asks for" exits_with 0 \
  gpu run "$folder/half.berth" --device cuda:1 --check
check "a pack of both" exits_with 0 compiler kernels "$folder/half.berth" -o "$folder/both" --target sm_75,sm_90
for at in 0 1; do # the first GPU is of 9.0
  BERTH_KERNEL_PACK=$folder/both FAKE_CUDA_SECOND=75 check "GPU $at finds its kernels there" exits_with 0 \
    gpu run "$folder/half.berth" --device cuda:$at --check
done
check "one plan for both is refused" says "profile 'turing'" \
  compiler kernels "$folder/half.berth" -o "$folder/other" --target sm_75,sm_90 --gpu-profile nvidia
# Those of 9.0 ask for products by warpgroups, which no other has.
sed 's/128, 128/2048, 2048/' "$folder/half.berth" >"$folder/large.berth"
check "large products of 16 bits are for warpgroups" says "for a warpgroup" \
  compiler plan "$folder/large.berth" --device interp --gpu-profile hopper --kernels -
check "a pack for GPUs of 9.0" exits_with 0 compiler kernels "$folder/large.berth" -o "$folder/hopper" --target sm_90
FAKE_NVRTC_OLD=1 check "an NVRTC before 12 says that it is too old for them" says "NVRTC 12 is the first to compile" \
  compiler kernels "$folder/large.berth" -o "$folder/early" --target sm_90
FAKE_NVRTC_OLD=1 check "it compiles a plan without them" exits_with 0 \
  compiler kernels "$folder/large.berth" -o "$folder/early" --target sm_90 --gpu-profile nvidia
check "one for others too" exits_with 0 compiler kernels "$folder/large.berth" -o "$folder/both" --target sm_90,compute_80
check "one plan for both is refused, too" says "--gpu-profile nvidia" \
  compiler kernels "$folder/large.berth" -o "$folder/other" --target sm_90,compute_80 --gpu-profile hopper
check "without it the compiler is missing" says "BERTH_NVRTC" gpu run --device cuda
check_fails "without a GPU a target is needed" compiler kernels -o "$folder/other"
check "and nothing is written" test ! -e "$folder/other"
check "a target that is none" exits_with 2 compiler kernels -o "$folder/other" --target gfx90a
check "a target that NVRTC does not know" exits_with 3 compiler kernels -o "$folder/other" --target sm_91
check "it names those it knows" says "75, 80, 90" compiler kernels -o "$folder/other" --target sm_91
check "a file is asked for" exits_with 2 compiler kernels --target sm_90
check "other devices have no packs" says "cannot be packed" compiler kernels -o "$folder/other" --device interp
tap_done
