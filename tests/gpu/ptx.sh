# Turns CUDA C that was rendered (*.cu in a folder) into PTX with clang, without a toolkit: every so many-th of them, in
# one file. Prints what clang says.
#   ptx.sh FOLDER STEP OUT
folder=$1 step=$2 out=$3
cat >"$out.cu" <<'PRELUDE'
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __align__(n) __attribute__((aligned(n)))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#define __forceinline__ inline __attribute__((always_inline))
struct index { unsigned x; };
struct __attribute__((aligned(8))) float2 { float x, y; };
struct __attribute__((aligned(16))) float4 { float x, y, z, w; };
struct __attribute__((aligned(16))) uint4 { unsigned x, y, z, w; };
#define threadIdx (index{(unsigned)__nvvm_read_ptx_sreg_tid_x()})
#define blockIdx (index{(unsigned)__nvvm_read_ptx_sreg_ctaid_x()})
#define fminf __builtin_fminf
#define fmaxf __builtin_fmaxf
#define fabsf __builtin_fabsf
#define fmaf __builtin_fmaf
#define sqrtf __builtin_sqrtf
#define floorf __builtin_floorf
#define ceilf __builtin_ceilf
#define truncf __builtin_truncf
#define rintf __builtin_rintf
extern "C" __device__ float expf(float);
static __device__ int abs(int a) { return a < 0 ? -a : a; }
static __device__ int min(int a, int b) { return a < b ? a : b; }
static __device__ int max(int a, int b) { return a > b ? a : b; }
static __device__ unsigned min(unsigned a, unsigned b) { return a < b ? a : b; }
static __device__ unsigned max(unsigned a, unsigned b) { return a > b ? a : b; }
static __device__ unsigned __float_as_uint(float x) { return __builtin_bit_cast(unsigned, x); }
static __device__ int __float_as_int(float x) { return __builtin_bit_cast(int, x); }
static __device__ float __uint_as_float(unsigned x) { return __builtin_bit_cast(float, x); }
static __device__ float __int_as_float(int x) { return __builtin_bit_cast(float, x); }
static __device__ int __dp4a(int a, int b, int c) {
  int sum;
  asm("dp4a.s32.s32 %0, %1, %2, %3;" : "=r"(sum) : "r"(a), "r"(b), "r"(c));
  return sum;
}
static __device__ unsigned __byte_perm(unsigned a, unsigned b, unsigned bytes) { return __nvvm_prmt(a, b, bytes); }
static __device__ unsigned atomicMax(unsigned *at, unsigned x) { return __nvvm_atom_max_gen_ui(at, x); }
PRELUDE
# The prelude of the first stands for all, so that one with tiles, whose prelude has more, comes first where there is one;
# each kernel and its functions have a namespace of their own.
find "$folder" -name '*.cu' ! -path "$out.cu" | LC_ALL=C sort >"$out.all"
{
  xargs grep -l "typedef unsigned berth_at" <"$out.all" | head -n 1
  awk -v step="$step" 'NR % step == 0' "$out.all"
} | awk '!seen[$0]++' | xargs awk '
  FNR == 1 { if (n++) printf "}\n"; is_body = 0 }
  /^\/\/ / && !is_body { is_body = 1; printf "namespace k%d {\n", n }
  is_body || n == 1 { sub(/BERTH_KERNEL\([0-9]+\) berth/, "&_" n); print }
  END { print "}" }' >>"$out.cu"
exec clang -x cuda --cuda-device-only --cuda-gpu-arch=sm_70 -nocudainc -nocudalib -O1 -ffp-contract=off -Wno-unknown-cuda-version \
  -Wno-everything -S -o "$out.ptx" "$out.cu"
