/* CUDA C, as NVRTC takes it. Memory has bytes here: a buffer is a pointer to elements of its own width, and a store of
 * a narrow element is a plain store. Nothing is joined or rearranged: the compiler is told so (--fmad=false), and
 * divides and takes roots to the nearest. Everything but the prelude is C as well, which is how tests run it on a host.
 */
#include <ctype.h>

#define BERTH__DIALECT_OWN_FUNCTIONS
#include "kernel/dialect.h"
#include "kernel/render_cuda.h"

static void kernel_render_cuda_add_f32(berth__text *out, uint32_t bits) {
  if (!berth__dialect_has_digits(bits)) {
    berth__text_printf(out, "__uint_as_float(0x%08xu)", bits);
    return;
  }
  berth__dialect_digits(out, bits);
  berth__text_printf(out, "f");
}

static void kernel_render_cuda_literal(berth__text *out, berth__number type, uint32_t bits) {
  int32_t value;
  memcpy(&value, &bits, sizeof value);
  switch (type) {
    case BERTH__NUM_F32: kernel_render_cuda_add_f32(out, bits); break;
    case BERTH__NUM_I32:
      if (value == INT32_MIN)
        berth__text_printf(out, "(-2147483647 - 1)");
      else
        berth__text_printf(out, "%d", value);
      break;
    case BERTH__NUM_U32: berth__text_printf(out, "%uu", bits); break;
    case BERTH__NUM_BOOL: berth__text_printf(out, "%s", bits != 0 ? "true" : "false"); break;
  }
}

/* ---- What stands around the instructions ---- */

void berth__cuda_entry(const berth__kernel *kernel, char out[BERTH__CUDA_ENTRY]) {
  static const char begin[] = "berth_";
  size_t n = sizeof begin - 1;
  memcpy(out, begin, n);
  for (const char *c = kernel->name; *c != '\0' && n + 1 < BERTH__CUDA_ENTRY; c++)
    out[n++] = isalnum((unsigned char)*c) ? *c : '_';
  out[n] = '\0';
}

/* What CUDA has no short words for. Conversions between f16 and f32 are single instructions, but their functions are in
 * a header that a machine may not have. */
static const char prelude[] =
    "#define BERTH_KERNEL(threads) extern \"C\" __global__ void __launch_bounds__(threads)\n"
    "#define BERTH_FUNCTION static __device__ __forceinline__\n"
    "#define berth_select(no, yes, condition) ((condition) ? (yes) : (no))\n"
    "BERTH_FUNCTION float berth_from_half(unsigned bits) {\n"
    "  float x;\n"
    "  asm(\"cvt.f32.f16 %0, %1;\" : \"=f\"(x) : \"h\"((unsigned short)bits));\n"
    "  return x;\n"
    "}\n"
    "BERTH_FUNCTION unsigned berth_half_bits(float x) {\n"
    "  unsigned short bits;\n"
    "  asm(\"cvt.rn.f16.f32 %0, %1;\" : \"=h\"(bits) : \"f\"(x));\n"
    "  return bits;\n"
    "}\n"
    "BERTH_FUNCTION float berth_near_half(float x) { return berth_from_half(berth_half_bits(x)); }\n";

static void kernel_render_cuda_head(const berth__kernel *kernel, const berth__render_desc *desc, berth__text *out) {
  (void)desc;
  berth__text_add(out, prelude, sizeof prelude - 1);
  if (kernel->n_sums != 0) berth__cuda_tiles_prelude(kernel, out);
  berth__dialect_name(out, kernel);
}

static const char *const types[BERTH__NUMBERS] = {
    [BERTH__NUM_F32] = "float", [BERTH__NUM_I32] = "int", [BERTH__NUM_U32] = "unsigned", [BERTH__NUM_BOOL] = "bool"};

/* By the bytes of an element. Without signs and floats: buffers of one width that meet are seen alike. */
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

static const char *shared_alignment(const berth__kernel *kernel) {
  for (uint32_t i = 0; i < kernel->n_sums; i++)
    if (kernel->sums[i].left.row != 0) return "__align__(1024) ";
  return kernel->n_sums != 0 ? "__align__(16) " : "";
}

/* Arrays that are more than a kernel may declare lie in room that a launch asks for. */
static void declare_shared(const berth__kernel *kernel, berth__text *out) {
  uint64_t at = 0;
  const bool is_dynamic = berth__cuda_dynamic_shared(kernel) != 0;
  if (is_dynamic) berth__text_printf(out, "  BERTH_ROOM\n");
  for (uint32_t i = 0; i < kernel->n_shared; i++) {
    const berth__kernel_array *array = &kernel->shared[i];
    const char *type = shared_element(array);
    if (is_dynamic)
      berth__text_printf(out, "  %s *const s%u = (%s *)(berth_shared + %u);\n", type, i, type, (unsigned)at);
    else
      berth__text_printf(out, "  __shared__ %s%s s%u[%u];\n", shared_alignment(kernel), type, i, array->count);
    at += (uint64_t)array->count * berth_type_storage(array->storage).bytes;
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
  if (berth__dialect_uses(kernel, BERTH__INST_group)) berth__text_printf(out, "  const int group = (int)blockIdx.x;\n");
  if (berth__dialect_uses(kernel, BERTH__INST_thread))
    berth__text_printf(out, "  const int thread = (int)threadIdx.x;\n");
  for (uint32_t i = 0; i < kernel->n_local; i++)
    berth__text_printf(out, "  %s l%u[%u];\n", types[kernel->local[i].type], i, kernel->local[i].count);
  for (uint32_t i = 0; i < kernel->n_sums; i++)
    berth__text_printf(out, "  float c%u[%u] = {0};\n  unsigned f%u[%u] = {0};\n", i,
                       kernel->sums[i].left.lines * kernel->sums[i].right.lines / kernel->group_size *
                           berth__sums_parts(&kernel->sums[i]),
                       i, berth__cuda_tiles_factors(kernel, i));
}

/* ---- The rules ---- */

#define STORE_16 "b$n[#a] = (unsigned short)$b;"
#define STORE_8 "b$n[#a] = (unsigned char)$b;"

static const berth__dialect cuda = {
    .type = {"float", "int", "unsigned", "bool"},
    .literal = kernel_render_cuda_literal,
    .head = kernel_render_cuda_head,
    .open = kernel_render_cuda_open,
    .close = "}\n",
    .value = "$t $v = #e;",
    .counter = "i",
    .minus = "$a - $m",
    .unrolled = "#pragma unroll\n",
    .rule =
        {
#include "kernel/dialect.def"
            [BERTH__INST_quotient] = BERTH__RULE_F32("$a / $b"),
            [BERTH__INST_min] = {"fminf(#a, #b)", "min(#a, #b)", "min(#a, #b)", NULL},
            [BERTH__INST_max] = {"fmaxf(#a, #b)", "max(#a, #b)", "max(#a, #b)", NULL},
            [BERTH__INST_abs] = {"fabsf(#a)", "abs(#a)", "#a", NULL},
            [BERTH__INST_fma] = BERTH__RULE_F32("fmaf(#a, #b, #c)"),
            [BERTH__INST_sqrt] = BERTH__RULE_F32("sqrtf(#a)"),
            [BERTH__INST_exp] = BERTH__RULE_F32("expf(#a)"),
            [BERTH__INST_floor] = BERTH__RULE_F32("floorf(#a)"),
            [BERTH__INST_ceil] = BERTH__RULE_F32("ceilf(#a)"),
            [BERTH__INST_trunc] = BERTH__RULE_F32("truncf(#a)"),
            [BERTH__INST_round] = BERTH__RULE_F32("rintf(#a)"),
            [BERTH__INST_shl] = BERTH__RULE_BITS("$a << $b", NULL),
            [BERTH__INST_shr] = BERTH__RULE_BITS("$a >> $b", NULL),
            [BERTH__INST_ne] = BERTH__RULE_ALL("$a != $b"),
            [BERTH__INST_select] = BERTH__RULE_ALL("$a ? $b : $c"),
            [BERTH__INST_rounded] = BERTH__RULE_F32("#a"), /* nothing is contracted */
            [BERTH__INST_to_half] = BERTH__RULE_F32("berth_near_half(#a)"),
            [BERTH__INST_pack_half] = {NULL, NULL, "berth_half_bits(#a)", NULL},
            [BERTH__INST_unpack_half] = BERTH__RULE_F32("berth_from_half(#a)"),
            [BERTH__INST_variable] = BERTH__RULE_ALL("$t $v = #a;"),
            [BERTH__INST_loop] = BERTH__RULE_ALL("for (int $v = #a; $v < $b; $v += #c) {"),
            [BERTH__INST_store_max] = BERTH__RULE_ALL("atomicMax(&b$n[#a], #b);"),
            [BERTH__INST_barrier] = BERTH__RULE_ALL("__syncthreads();"),
            [BERTH__INST_shared_copy] = BERTH__RULE_ALL("berth_copy16(&s$l[#a], &b$h[#b], #c);"),
            [BERTH__INST_commit] = BERTH__RULE_ALL("berth_commit();"),
            [BERTH__INST_wait] = BERTH__RULE_ALL("berth_wait($n); BERTH_ARRIVED"),
            [BERTH__INST_multiply] = BERTH__RULE_ALL("BERTH_MULTIPLY_$n(#a);"),
            [BERTH__INST_ahead] = BERTH__RULE_ALL("BERTH_AHEAD_$n(#a);"),
            [BERTH__INST_each] = BERTH__RULE_ALL("BERTH_SETTLE_$n; BERTH_EACH_$n($v) {"),
            [BERTH__INST_sum_row] = BERTH__RULE_ALL("BERTH_ROW_$n(#a)"),
            [BERTH__INST_sum_column] = BERTH__RULE_ALL("BERTH_COLUMN_$n(#a)"),
            [BERTH__INST_sum_line] = BERTH__RULE_ALL("BERTH_LINE_$n(#a)"),
            [BERTH__INST_sum] = BERTH__RULE_ALL("BERTH_SUM_$n(#a, #b)"),
            [BERTH__INST_sum_set] = BERTH__RULE_ALL("BERTH_SUM_$n(#a, #b) = #c;"),
            [BERTH__INST_join] = BERTH__RULE_ALL("BERTH_SETTLE_$n; BERTH_JOIN_$n;"),
            [BERTH__INST_row_largest] = BERTH__RULE_ALL("BERTH_SETTLE_$l; berth_largest_$l(c$l, l$h);"),
            [BERTH__INST_row_total] = BERTH__RULE_ALL("BERTH_SETTLE_$l; berth_total_$l(c$l, l$h);"),
        },
    .wrap = {[BERTH__INST_add] = "(int)((unsigned)$a + (unsigned)$b)",
             [BERTH__INST_sub] = "(int)((unsigned)$a - (unsigned)$b)",
             [BERTH__INST_mul] = "(int)((unsigned)$a * (unsigned)$b)",
             [BERTH__INST_neg] = "(int)(0u - (unsigned)$a)",
             [BERTH__INST_shl] = "(int)((unsigned)$a << $b)"},
    .convert =
        {
            [BERTH__NUM_F32] = {"#a", "(int)$a", "(unsigned)$a", "$a != 0.0f"},
            [BERTH__NUM_I32] = {"(float)$a", "#a", "(unsigned)$a", "$a != 0"},
            [BERTH__NUM_U32] = {"(float)$a", "(int)$a", "#a", "$a != 0u"},
            [BERTH__NUM_BOOL] = {"(float)$a", "(int)$a", "(unsigned)$a", "#a"},
        },
    .bits =
        {
            [BERTH__NUM_F32] = {"#a", "__float_as_int(#a)", "__float_as_uint(#a)", NULL},
            [BERTH__NUM_I32] = {"__int_as_float(#a)", "#a", "(unsigned)$a", NULL},
            [BERTH__NUM_U32] = {"__uint_as_float(#a)", "(int)$a", "#a", NULL},
        },
    .load = {[BERTH_F32] = "__uint_as_float(b$n[#a])",
             [BERTH_I32] = "(int)b$n[#a]",
             [BERTH_U32] = "b$n[#a]",
             [BERTH_F16] = "berth_from_half(b$n[#a])",
             [BERTH_BF16] = "__uint_as_float((unsigned)b$n[#a] << 16)",
             [BERTH_I16] = "(int)(short)b$n[#a]",
             [BERTH_U16] = "(unsigned)b$n[#a]",
             [BERTH_I8] = "(int)(signed char)b$n[#a]",
             [BERTH_U8] = "(unsigned)b$n[#a]",
             [BERTH_BOOL] = "(unsigned)b$n[#a]"},
    .shared_store = {[BERTH_F16] = "s$n[#a] = (unsigned short)berth_half_bits(#b);",
                     [BERTH_BF16] = "s$n[#a] = berth_bf16_bits(#b);"},
    .quad = "((const uint4 *)b$n)[#a]",
    .quad_value = "const uint4 $v = #e;",
    .part = {"__uint_as_float($a.$k)", "(int)$a.$k", "$a.$k", NULL},
    .store = {[BERTH_F32] = "b$n[#a] = __float_as_uint(#b);",
              [BERTH_I32] = "b$n[#a] = (unsigned)$b;",
              [BERTH_U32] = "b$n[#a] = #b;",
              [BERTH_F16] = STORE_16,
              [BERTH_BF16] = STORE_16,
              [BERTH_I16] = STORE_16,
              [BERTH_U16] = STORE_16,
              [BERTH_I8] = STORE_8,
              [BERTH_U8] = STORE_8,
              [BERTH_BOOL] = STORE_8},
    .words = {.open = {"BERTH_FUNCTION float $v(float x) {", "BERTH_FUNCTION int $v(int a, int b) {",
                       "BERTH_FUNCTION unsigned $v(unsigned a, unsigned b) {", "BERTH_FUNCTION unsigned $v(float x) {",
                       "BERTH_FUNCTION float $v(float x, float y) {"},
              .f32 = "float",
              .i32 = "int",
              .u32 = "unsigned",
              .f32_bits = "__uint_as_float",
              .u32_bits = "__float_as_uint",
              .select = "berth_select",
              .round = "rintf",
              .to_u32 = "(unsigned)"},
};

berth_status berth__render_cuda(const berth__kernel *kernel, const berth__render_desc *desc, berth__text *out,
                                berth_error *err) {
  if (!berth__cuda_tiles_fit(kernel))
    return berth__fail(err, BERTH_INTERNAL, "kernel '%s': its tiles have no form in this language", kernel->name);
  return berth__render(kernel, &cuda, desc, out, err);
}
