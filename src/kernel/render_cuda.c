/* CUDA C for NVRTC, and HIP for HIPRTC. Memory is addressed by bytes here: a buffer is a pointer to elements of its own
 * width, and a store of a narrow element is a plain store. The compiler is told not to contract or reassociate
 * (--fmad=false), and to round divisions and roots to nearest. Everything except `prelude` is also C, which is how
 * tests run it on a host. */
#include <ctype.h>

#define BERTH__DIALECT_OWN_FUNCTIONS
#define BERTH__DIALECT_AWAIT "berth_await();"
#define BERTH__DIALECT_RELEASE "berth_release();"
#include "kernel/dialect.h"
#include "kernel/render_cuda.h"

static void kernel_render_cuda_literal(berth__text *out, berth__number type, uint32_t bits) {
  berth__dialect_literal(out, type, bits, "__uint_as_float");
}

/* ---- Around the instructions ---- */

void berth__cuda_entry(const berth__kernel *kernel, char out[BERTH__CUDA_ENTRY]) {
  static const char begin[] = "berth_";
  size_t n = sizeof begin - 1;
  memcpy(out, begin, n);
  for (const char *c = kernel->name; *c != '\0' && n + 1 < BERTH__CUDA_ENTRY; c++)
    out[n++] = isalnum((unsigned char)*c) ? *c : '_';
  out[n] = '\0';
}

/* Definitions that CUDA and HIP lack. */
#define PRELUDE                                                                        \
  "#define BERTH_BOUNDS(threads) __launch_bounds__(threads)\n"                         \
  "#define BERTH_KERNEL(threads) extern \"C\" __global__ void BERTH_BOUNDS(threads)\n" \
  "#define BERTH_FUNCTION static __device__ __forceinline__\n"                         \
  "#define berth_select(no, yes, condition) ((condition) ? (yes) : (no))\n"
#define NEAR_HALF "BERTH_FUNCTION float berth_near_half(float x) { return berth_from_half(berth_half_bits(x)); }\n"

/* Conversions between f16 and f32 are single instructions, but CUDA's functions for them are in a header that may not
 * be installed. */
static const char prelude[] = PRELUDE
    "BERTH_FUNCTION float berth_from_half(unsigned bits) {\n"
    "  float x;\n"
    "  asm(\"cvt.f32.f16 %0, %1;\" : \"=f\"(x) : \"h\"((unsigned short)bits));\n"
    "  return x;\n"
    "}\n"
    "BERTH_FUNCTION unsigned berth_half_bits(float x) {\n"
    "  unsigned short bits;\n"
    "  asm(\"cvt.rn.f16.f32 %0, %1;\" : \"=h\"(bits) : \"f\"(x));\n"
    "  return bits;\n"
    "}\n" NEAR_HALF
    "BERTH_FUNCTION unsigned berth_exchange(unsigned x, int by) {\n"
    "  unsigned y;\n"
    "  asm volatile(\"shfl.sync.bfly.b32 %0, %1, %2, 0x1f, 0xffffffff;\" : \"=r\"(y) : \"r\"(x), \"r\"(by));\n"
    "  return y;\n"
    "}\n"
    "#if __CUDA_ARCH__ >= 900\n"
    "BERTH_FUNCTION void berth_await() { asm volatile(\"griddepcontrol.wait;\" ::: \"memory\"); }\n"
    "BERTH_FUNCTION void berth_release() { asm volatile(\"griddepcontrol.launch_dependents;\"); }\n"
    "#else\n"
    "#define berth_await()\n"
    "#define berth_release()\n"
    "#endif\n";

static const char hip_prelude[] = PRELUDE
    "#ifndef __align__\n"
    "#define __align__(n) __attribute__((aligned(n)))\n"
    "#endif\n"
    "BERTH_FUNCTION float berth_from_half(unsigned bits) {\n"
    "  return (float)__builtin_bit_cast(_Float16, (unsigned short)bits);\n"
    "}\n"
    "BERTH_FUNCTION unsigned berth_half_bits(float x) {\n"
    "  return __builtin_bit_cast(unsigned short, (_Float16)x);\n"
    "}\n" NEAR_HALF
    "BERTH_FUNCTION unsigned berth_exchange(unsigned x, int by) {\n"
    "  const int lane = (int)__builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0u));\n"
    "  return (unsigned)__builtin_amdgcn_ds_bpermute((lane ^ by) << 2, (int)x);\n"
    "}\n"
    "#define berth_await()\n"
    "#define berth_release()\n";

static void kernel_render_cuda_head(const berth__kernel *kernel, const berth__render_desc *desc, berth__text *out) {
  (void)desc;
  berth__text_add(out, prelude, sizeof prelude - 1);
  if (kernel->n_sums != 0) berth__cuda_tiles_prelude(kernel, out);
  berth__dialect_name(out, kernel);
  if (kernel->resident != 0)
    berth__text_printf(out, "#undef BERTH_BOUNDS\n#define BERTH_BOUNDS(threads) __launch_bounds__(threads, %u)\n",
                       kernel->resident);
}

static void kernel_render_cuda_hip_head(const berth__kernel *kernel, const berth__render_desc *desc, berth__text *out) {
  (void)desc;
  berth__text_add(out, hip_prelude, sizeof hip_prelude - 1);
  berth__dialect_name(out, kernel);
}

static const char *const types[BERTH__NUMBERS] = {
    [BERTH__NUM_F32] = "float", [BERTH__NUM_I32] = "int", [BERTH__NUM_U32] = "unsigned", [BERTH__NUM_BOOL] = "bool"};

/* By the size of an element. Unsigned integers only: overlapping buffers of the same width get the same type. */
static const char *element(berth__storage storage) {
  switch (berth__storage_per_word(storage)) {
    case 4: return "unsigned char";
    case 2: return "unsigned short";
    default: return "unsigned";
  }
}

static const char *shared_element(const berth__kernel_array *array) {
  return berth__storage_per_word(array->storage) != 1 ? element(array->storage) : types[array->type];
}

uint32_t berth__cuda_dynamic_shared(const berth__kernel *kernel) {
  const uint64_t bytes = berth__kernel_shared_bytes(kernel);
  return bytes > BERTH__CUDA_STATIC_SHARED ? (uint32_t)bytes : 0;
}

/* Aligned to at least four words, so that loads of four words are single loads. */
static const char *shared_alignment(const berth__kernel *kernel) {
  for (uint32_t i = 0; i < kernel->n_sums; i++)
    if (kernel->sums[i].left.row != 0) return "__align__(1024) ";
  return "__align__(16) ";
}

static bool has_meeting_arrays(const berth__kernel *kernel) {
  for (uint32_t i = 0; i < kernel->n_shared; i++)
    if (kernel->shared[i].over != 0) return true;
  return false;
}

/* Arrays larger than a kernel may declare use shared memory that the launch requests. */
static void declare_shared(const berth__kernel *kernel, berth__text *out) {
  const bool is_dynamic = berth__cuda_dynamic_shared(kernel) != 0, is_room = has_meeting_arrays(kernel);
  if (is_dynamic)
    berth__text_printf(out, "  BERTH_ROOM\n");
  else if (is_room)
    berth__text_printf(out, "  __shared__ %sunsigned char berth_room[%u];\n", shared_alignment(kernel),
                       (unsigned)berth__kernel_shared_bytes(kernel));
  for (uint32_t i = 0; i < kernel->n_shared; i++) {
    const berth__kernel_array *array = &kernel->shared[i];
    const char *type = shared_element(array);
    if (is_dynamic || is_room)
      berth__text_printf(out, "  %s *const s%u = (%s *)(%s + %u);\n", type, i, type,
                         is_dynamic ? "berth_shared" : "berth_room", (unsigned)berth__kernel_shared_at(kernel, i));
    else
      berth__text_printf(out, "  __shared__ %s%s s%u[%u];\n", shared_alignment(kernel), type, i, array->count);
  }
}

static void kernel_render_cuda_open(const berth__kernel *kernel, const berth__render_desc *desc, berth__text *out) {
  char name[BERTH__CUDA_ENTRY];
  berth__cuda_tiles_open(kernel, out);
  berth__cuda_entry(kernel, name);
  berth__text_printf(out, "BERTH_KERNEL(%u) %s(", kernel->group_size, name);
  for (uint32_t i = 0; i < kernel->n_buffers; i++) {
    const bool only_read = (desc->only_read >> i & 1u) != 0;
    berth__text_printf(out, "%s%s%s *%sb%u", i != 0 ? ", " : "", only_read ? "const " : "",
                       element(kernel->buffers[i].storage), only_read ? "__restrict__ " : "", i);
  }
  berth__text_printf(out, ") {\n");
  declare_shared(kernel, out);
  if (berth__kernel_uses(kernel, BERTH__INST_group)) berth__text_printf(out, "  const int group = (int)blockIdx.x;\n");
  if (berth__kernel_uses(kernel, BERTH__INST_thread))
    berth__text_printf(out, "  const int thread = (int)threadIdx.x;\n");
  for (uint32_t i = 0; i < kernel->n_local; i++)
    berth__text_printf(out, "  %s l%u[%u];\n", types[kernel->local[i].type], i, kernel->local[i].count);
  for (uint32_t i = 0; i < kernel->n_sums; i++)
    berth__text_printf(out, "  float c%u[%u] = {0};\n  unsigned f%u[%u] = {0};\n", i,
                       kernel->sums[i].left.lines * kernel->sums[i].right.lines / kernel->group_size *
                           berth__sums_parts(&kernel->sums[i]),
                       i, berth__cuda_tiles_factors(kernel, i));
  if (!berth__kernel_uses(kernel, BERTH__INST_await)) berth__text_printf(out, "  berth_await();\n  berth_release();\n");
}

/* ---- The rules ---- */

#define BERTH__AS_F32 "__uint_as_float"
#define BERTH__AS_U32 "__float_as_uint"
#define BERTH__AS_I32 "__float_as_int"
#define BERTH__I32_AS_F32 "__int_as_float"
#define BERTH__U32 "unsigned"
#define BERTH__U16 "unsigned short"
#define BERTH__U8 "unsigned char"
#define BERTH__I8 "signed char"
#define BERTH__QUADS "const uint4"
#define BERTH__F32_ENDING "f"
#define BERTH__FUNCTION "BERTH_FUNCTION "
#define BERTH__DIALECT_OWN_RULES                                                                      \
  [BERTH__INST_exchange] = {"__uint_as_float(berth_exchange(__float_as_uint(#a), $n))",               \
                            "(int)berth_exchange((unsigned)$a, $n)", "berth_exchange(#a, $n)", NULL}, \
  [BERTH__INST_to_half] = BERTH__RULE_F32("berth_near_half(#a)"),                                     \
  [BERTH__INST_pack_half] = {NULL, NULL, "berth_half_bits(#a)", NULL},                                \
  [BERTH__INST_store_max] = BERTH__RULE_ALL("atomicMax(&b$n[#a], #b);"),                              \
  [BERTH__INST_barrier] = BERTH__RULE_ALL("__syncthreads();"),

/* A byte becomes the low bits of 2^23, which is then subtracted: two instructions, and one of them is of f32, of which
 * these devices compute twice as many at a time as of conversions, shifts and masks. */
#define BYTE(bytes) "__uint_as_float(__byte_perm(#a, 0x4b000000u, " bytes ")) - 8388608.0f"
#define SIGNED_BYTE(bytes) \
  "__uint_as_float(__byte_perm((unsigned)$a ^ 0x80808080u, 0x4b000000u, " bytes ")) - 8388736.0f"

#define BERTH__DIALECT_DOT4 "(unsigned)__dp4a((int)$a, (int)$b, (int)$c)"
static const berth__dialect cuda = {
    .type = {"float", "int", "unsigned", "bool"},
    .literal = kernel_render_cuda_literal,
    .head = kernel_render_cuda_head,
    .open = kernel_render_cuda_open,
    .unrolled = "#pragma unroll\n",
    .byte = {{BYTE("0x7440u"), BYTE("0x7441u"), BYTE("0x7442u"), BYTE("0x7443u")},
             {SIGNED_BYTE("0x7440u"), SIGNED_BYTE("0x7441u"), SIGNED_BYTE("0x7442u"), SIGNED_BYTE("0x7443u")}},
#include "kernel/dialect_pointers.def"
    .rule[BERTH__INST_shared_copy] = BERTH__RULE_ALL("berth_copy16(&s$l[#a], &b$h[#b], #c);"),
    .rule[BERTH__INST_commit] = BERTH__RULE_ALL("berth_commit();"),
    .rule[BERTH__INST_wait] = BERTH__RULE_ALL("berth_wait($n); BERTH_ARRIVED"),
    .rule[BERTH__INST_multiply] = BERTH__RULE_ALL("BERTH_MULTIPLY_$n(#a);"),
    .rule[BERTH__INST_ahead] = BERTH__RULE_ALL("BERTH_AHEAD_$n(#a);"),
    .rule[BERTH__INST_settle] = BERTH__RULE_ALL("BERTH_FINISH_$n;"),
    .rule[BERTH__INST_pack_pair] = {NULL, NULL, "berth_pair_bf16(#a, #b)", NULL},
    .rule[BERTH__INST_quad_store] = BERTH__RULE_ALL("berth_store16(&b$l[4 * (#a)], l$h);"),
    .rule[BERTH__INST_each] = BERTH__RULE_ALL("BERTH_SETTLE_$n; BERTH_EACH_$n($v) {"),
    .rule[BERTH__INST_sum_row] = BERTH__RULE_ALL("BERTH_ROW_$n(#a)"),
    .rule[BERTH__INST_sum_column] = BERTH__RULE_ALL("BERTH_COLUMN_$n(#a)"),
    .rule[BERTH__INST_sum_line] = BERTH__RULE_ALL("BERTH_LINE_$n(#a)"),
    .rule[BERTH__INST_sum] = BERTH__RULE_ALL("BERTH_SUM_$n(#a, #b)"),
    .rule[BERTH__INST_sum_set] = BERTH__RULE_ALL("BERTH_SUM_$n(#a, #b) = #c;"),
    .rule[BERTH__INST_join] = BERTH__RULE_ALL("BERTH_SETTLE_$n; BERTH_JOIN_$n;"),
    .rule[BERTH__INST_row_largest] = BERTH__RULE_ALL("BERTH_SETTLE_$l; berth_largest_$l(c$l, l$h);"),
    .rule[BERTH__INST_row_total] = BERTH__RULE_ALL("BERTH_SETTLE_$l; berth_total_$l(c$l, l$h);"),
    .shared_store = {[BERTH_F16] = "s$n[#a] = (unsigned short)berth_half_bits(#b);",
                     [BERTH_BF16] = "s$n[#a] = berth_bf16_bits(#b);"},
};

#undef BERTH__DIALECT_DOT4

/* HIP differs from CUDA C by `hip_prelude`. Its matrix units are not used: kernels have no tiles. */
static const berth__dialect hip = {
    .type = {"float", "int", "unsigned", "bool"},
    .literal = kernel_render_cuda_literal,
    .head = kernel_render_cuda_hip_head,
    .open = kernel_render_cuda_open,
    .unrolled = "#pragma unroll\n",
    .byte = BERTH__CAST_BYTES(BERTH__I8),
#include "kernel/dialect_pointers.def"
};

berth_status berth__render_cuda(const berth__kernel *kernel, const berth__render_desc *desc, berth__text *out,
                                berth_error *err) {
  if (kernel->n_sums != 0 && kernel->sums[0].stage != 0)
    return berth__fail(err, BERTH_UNSUPPORTED,
                       "kernel '%s' is for cooperative matrices, which CUDA does not have: plan for another GPU "
                       "(--gpu-profile nvidia)",
                       kernel->name);
  if (!berth__cuda_tiles_fit(kernel))
    return berth__fail(err, BERTH_INTERNAL, "kernel '%s': its tiles have no form in this language", kernel->name);
  return berth__render(kernel, &cuda, desc, out, err);
}

berth_status berth__render_hip(const berth__kernel *kernel, const berth__render_desc *desc, berth__text *out,
                               berth_error *err) {
  return berth__render(kernel, &hip, desc, out, err);
}
