# Compiles HIP that was rendered (*.hip in a folder) for one of AMD's GPUs with clang, without ROCm: all of it in one
# file. Prints what clang says. As many kernels must come out as went in.
#   hip.sh FOLDER GPU
folder=$1 gpu=$2 out=$1/all_$2
cat >"$out.cu" <<'PRELUDE'
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __launch_bounds__(n) __attribute__((amdgpu_flat_work_group_size(1, n)))
#define __forceinline__ inline __attribute__((always_inline))
struct index { unsigned x; };
struct __attribute__((aligned(16))) uint4 { unsigned x, y, z, w; };
#define threadIdx (index{(unsigned)__builtin_amdgcn_workitem_id_x()})
#define blockIdx (index{(unsigned)__builtin_amdgcn_workgroup_id_x()})
#define __syncthreads() (__builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "workgroup"), __builtin_amdgcn_s_barrier())
#define fminf __builtin_fminf
#define fmaxf __builtin_fmaxf
#define fabsf __builtin_fabsf
#define fmaf __builtin_fmaf
#define sqrtf __builtin_sqrtf
#define expf __builtin_expf
#define floorf __builtin_floorf
#define ceilf __builtin_ceilf
#define truncf __builtin_truncf
#define rintf __builtin_rintf
static __device__ int abs(int a) { return a < 0 ? -a : a; }
static __device__ int min(int a, int b) { return a < b ? a : b; }
static __device__ int max(int a, int b) { return a > b ? a : b; }
static __device__ unsigned min(unsigned a, unsigned b) { return a < b ? a : b; }
static __device__ unsigned max(unsigned a, unsigned b) { return a > b ? a : b; }
static __device__ unsigned __float_as_uint(float x) { return __builtin_bit_cast(unsigned, x); }
static __device__ int __float_as_int(float x) { return __builtin_bit_cast(int, x); }
static __device__ float __uint_as_float(unsigned x) { return __builtin_bit_cast(float, x); }
static __device__ float __int_as_float(int x) { return __builtin_bit_cast(float, x); }
static __device__ unsigned atomicMax(unsigned *at, unsigned x) {
  return __atomic_fetch_max(at, x, __ATOMIC_RELAXED);
}
PRELUDE
# The prelude of the first stands for all; each kernel and its functions have a namespace of their own. Kernels that are
# alike but for their number are compiled once.
find "$folder" -name '*.hip' | LC_ALL=C sort | xargs md5sum | awk '!seen[$1]++ { print $2 }' >"$out.list"
xargs awk '
  FNR == 1 { if (n++) printf "}\n"; is_body = 0 }
  /^\/\/ / && !is_body { is_body = 1; printf "namespace k%d {\n", n }
  is_body || n == 1 { sub(/BERTH_KERNEL\([0-9]+\) berth/, "&_" n); print }
  END { print "}" }' <"$out.list" >>"$out.cu"
clang -x hip --cuda-device-only --cuda-gpu-arch="$gpu" -nogpuinc -nogpulib -O1 -ffp-contract=off -Wno-everything -S \
  -o "$out.s" "$out.cu" || exit 1
made=$(grep -c '^[[:space:]]*\.amdhsa_kernel berth_' "$out.s") wanted=$(wc -l <"$out.list")
[ "$made" -eq "$wanted" ] || { echo "$made kernels for $gpu, where $wanted were rendered"; exit 1; }
