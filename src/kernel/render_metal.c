/* Metal's shading language. As in CUDA C, a buffer is a pointer to elements of its own width. What the language leaves
 * open (the rounding direction to f16, the last digits of a quotient) is implemented by functions.c. */
#include "kernel/dialect.h"

static void kernel_render_metal_literal(berth__text *out, berth__number type, uint32_t bits) {
  berth__dialect_literal(out, type, bits, "as_type<float>");
}

/* Both pragmas repeat the host's options: no fast math. */
static const char prelude[] =
    "#include <metal_stdlib>\n"
    "#pragma METAL fp math_mode(safe)\n"
    "#pragma METAL fp contract(off)\n"
    "using namespace metal;\n"
    "#define berth_select(no, yes, condition) ((condition) ? (yes) : (no))\n"
    "static float berth_from_half(uint bits) { return (float)as_type<half>((ushort)bits); }\n";

static void kernel_render_metal_head(const berth__kernel *kernel, const berth__render_desc *desc, berth__text *out) {
  (void)desc;
  berth__text_add(out, prelude, sizeof prelude - 1);
  berth__dialect_name(out, kernel);
}

static const char *const types[BERTH__NUMBERS] = {
    [BERTH__NUM_F32] = "float", [BERTH__NUM_I32] = "int", [BERTH__NUM_U32] = "uint", [BERTH__NUM_BOOL] = "bool"};

static const char *kernel_render_metal_element(berth__storage storage) {
  switch (berth__storage_per_word(storage)) {
    case 4: return "uchar";
    case 2: return "ushort";
    default: return "uint";
  }
}

static void kernel_render_metal_open(const berth__kernel *kernel, const berth__render_desc *desc, berth__text *out) {
  char name[BERTH__CUDA_ENTRY];
  berth__cuda_entry(kernel, name);
  berth__text_printf(out, "[[max_total_threads_per_threadgroup(%u)]] kernel void %s(", kernel->group_size, name);
  for (uint32_t i = 0; i < kernel->n_buffers; i++)
    berth__text_printf(out, "device %s%s *b%u [[buffer(%u)]], ", (desc->only_read >> i & 1u) != 0 ? "const " : "",
                       kernel_render_metal_element(kernel->buffers[i].storage), i, i);
  berth__text_printf(out,
                     "uint berth_group [[threadgroup_position_in_grid]], "
                     "uint berth_thread [[thread_position_in_threadgroup]]) {\n");
  for (uint32_t i = 0; i < kernel->n_shared; i++)
    berth__text_printf(out, "  threadgroup %s s%u[%u];\n", types[kernel->shared[i].type], i, kernel->shared[i].count);
  if (berth__kernel_uses(kernel, BERTH__INST_group)) berth__text_printf(out, "  const int group = (int)berth_group;\n");
  if (berth__kernel_uses(kernel, BERTH__INST_thread))
    berth__text_printf(out, "  const int thread = (int)berth_thread;\n");
  for (uint32_t i = 0; i < kernel->n_local; i++)
    berth__text_printf(out, "  %s l%u[%u];\n", types[kernel->local[i].type], i, kernel->local[i].count);
}

#define BERTH__AS_F32 "as_type<float>"
#define BERTH__AS_U32 "as_type<uint>"
#define BERTH__AS_I32 "as_type<int>"
#define BERTH__I32_AS_F32 BERTH__AS_F32
#define BERTH__U32 "uint"
#define BERTH__U16 "ushort"
#define BERTH__U8 "uchar"
#define BERTH__I8 "char"
#define BERTH__QUADS "device const uint4"
#define BERTH__F32_ENDING ""
#define BERTH__FUNCTION "static "
#define BERTH__DIALECT_OWN_RULES                                                                               \
  [BERTH__INST_to_half] = BERTH__RULE_F32("berth_to_half(#a)"),                                                \
  [BERTH__INST_pack_half] = {NULL, NULL, "berth_pack_half(#a)", NULL},                                         \
  [BERTH__INST_store_max] =                                                                                    \
      BERTH__RULE_ALL("atomic_fetch_max_explicit((device atomic_uint *)&b$n[#a], #b, memory_order_relaxed);"), \
  [BERTH__INST_exchange] = BERTH__RULE_NUMBERS("simd_shuffle_xor(#a, (ushort)$n)"),                            \
  [BERTH__INST_barrier] = BERTH__RULE_ALL("threadgroup_barrier(mem_flags::mem_threadgroup);"),

static const berth__dialect metal = {
    .type = {"float", "int", "uint", "bool"},
    .literal = kernel_render_metal_literal,
    .head = kernel_render_metal_head,
    .open = kernel_render_metal_open,
    .unrolled = "#pragma clang loop unroll(full)\n",
    .byte = BERTH__CAST_BYTES(BERTH__I8),
#include "kernel/dialect_pointers.def"
};

berth_status berth__render_metal(const berth__kernel *kernel, const berth__render_desc *desc, berth__text *out,
                                 berth_error *err) {
  return berth__render(kernel, &metal, desc, out, err);
}
