#!/usr/bin/env bash
# Kernels with matrix units as machine code, where NVIDIA's nvcc is there: for compute capability 8.0 and 9.0, with every
# number in a register. It takes a minute, so `make check-slow` alone has it.
set -uo pipefail
. "$BERTH_SRC/tests/support/tap.sh"
nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
if [ ! -x "$nvcc" ] || [ -z "${BERTH_TEST_SLOW-}" ]; then
  skip_test "kernels with matrix units keep to registers" "there is no nvcc, or no time"
  tap_done
  exit
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export FAKE_CUDA_DIR=$folder FAKE_CUDA_COLLECT=1 BERTH_CACHE_DIR=
export BERTH_CUDA_LIBRARY=$BERTH_BUILD/tests/libfake_cuda.so BERTH_NVRTC=$BERTH_BUILD/tests/libfake_cuda.so
collect() { # profile compute graph: its sources, of which nothing runs
  echo "graph \"g\" { $3 output \"o\" = %o }" >"$folder/g.berth"
  "$BERTH_BIN" bench "$folder/g.berth" --device cuda --runs 1 --gpu-profile "$1" --compute "$2" >/dev/null 2>&1
}
two() { echo "input %a : $1[$2] input %b : $1[$3] %o = matmul(%a, %b)"; }
three() { echo "input %a : $1[1, $2] input %b : $1[1, $3] input %c : $1[1, $3] %o = attention(%a, %b, %c)"; }
sources() {
  collect nvidia tf32x3 "$(two f32 '128, 1536' '1536, 384')" && collect nvidia bf16 "$(two f32 '2048, 64' '64, 2048')" &&
    collect nvidia f32 "$(two bf16 '4096, 64' '64, 8192')" && collect hopper f32 "$(two bf16 '4096, 512' '512, 4096')" &&
    collect hopper f32 "$(two bf16 '8192, 512' '512, 768')" &&
    collect hopper f32 "$(two f16 '1024, 512' '512, 1024')" &&
    collect nvidia f32 "$(three bf16 '32, 4096, 128' '32, 4096, 128')" &&
    collect nvidia tf32x3 "$(three f32 '12, 128, 64' '12, 128, 64')" &&
    collect nvidia f32 "$(two f32 '4096, 64' '64, 4096')" && collect nvidia f32 "$(two f32 '1024, 64' '64, 1024')" &&
    collect nvidia f32 "$(two f32 '128, 1536' '1536, 384')" && [ "$(find "$folder" -name '*.cu' | wc -l)" -eq 11 ]
}
compiles() { # source architecture
  local said
  said=$("$nvcc" -gencode "arch=compute_$2,code=sm_$2" --fmad=false -cubin -Xptxas -v -o "$folder/out" "$1" 2>&1) ||
    { echo "$said"; return 1; }
  if grep -E "[1-9][0-9]* bytes spill" <<<"$said"; then return 1; fi
}
all_compile() { # architecture: warpgroups are for 90a alone
  local source
  for source in $(find "$folder" -name '*.cu'); do
    if [ "$1" != 90a ] && grep -q berth_wgmma "$source"; then continue; fi
    compiles "$source" "$1" || { grep -m 1 '^// ' "$source"; return 1; }
  done
}
check "kernels with matrix units are rendered" sources
check "they keep to registers on sm_80" all_compile 80
check "they keep to registers on sm_90a" all_compile 90a
tap_done
