/* GLSL 4.50 for Vulkan. All memory is words: uint w[]. Names of type f32 are `precise`, so that no compiler
 * reassociates sums, or contracts a product and a sum that the kernel keeps apart. */
#include <stdio.h>

#include "kernel/dialect.h"
#include "kernel/render_glsl.h"

static void kernel_render_glsl_add_f32(berth__text *out, uint32_t bits) {
  if (berth__dialect_has_digits(bits))
    berth__dialect_digits(out, bits);
  else
    berth__text_printf(out, "uintBitsToFloat(0x%08xu)", bits);
}

static void kernel_render_glsl_literal(berth__text *out, berth__number type, uint32_t bits) {
  int32_t value;
  memcpy(&value, &bits, sizeof value);
  switch (type) {
    case BERTH__NUM_F32: kernel_render_glsl_add_f32(out, bits); break;
    case BERTH__NUM_I32: berth__text_printf(out, value == INT32_MIN ? "int(0x%08xu)" : "%d", bits); break;
    case BERTH__NUM_U32: berth__text_printf(out, "%uu", bits); break;
    case BERTH__NUM_BOOL: berth__text_printf(out, "%s", bits != 0 ? "true" : "false"); break;
  }
}

static void kernel_render_glsl_add_bindings(const berth__kernel *kernel, const berth__render_desc *desc,
                                            berth__text *out) {
  const uint32_t n = desc->windows ? kernel->n_buffers : 1;
  for (uint32_t i = 0; i < n; i++) {
    char number[12] = "";
    if (desc->windows) snprintf(number, sizeof number, "%u", i);
    berth__text_printf(out, "layout(set = 0, binding = %u, std430) buffer Words%s { uint w%s[]; };\n", i, number,
                       number);
    if (berth__kernel_uses(kernel, BERTH__INST_quad) || berth__kernel_uses(kernel, BERTH__INST_shared_copy))
      berth__text_printf(out, "layout(set = 0, binding = %u, std430) readonly buffer Quads%s { uvec4 q%s[]; };\n", i,
                         number, number);
  }
  berth__text_printf(out, "layout(push_constant, std430) uniform Begins { uint at[%u]; };\n", kernel->n_buffers);
}

static const char *const types[BERTH__NUMBERS] = {
    [BERTH__NUM_F32] = "float", [BERTH__NUM_I32] = "int", [BERTH__NUM_U32] = "uint", [BERTH__NUM_BOOL] = "bool"};

/* SPIR-V execution modes that GLSL cannot express. */
static void add_mode(berth__text *out, int capability, int mode) {
  berth__text_printf(out,
                     "spirv_execution_mode(extensions = [\"SPV_KHR_float_controls\"], capabilities = [%d], %d, 32);\n",
                     capability, mode);
}

static void add_modes(const berth__render_desc *desc, berth__text *out) {
  if (desc->keeps_nan || desc->keeps_small) berth__text_printf(out, "#extension GL_EXT_spirv_intrinsics : require\n");
  if (desc->keeps_nan) add_mode(out, 4466, 4461);   /* SignedZeroInfNanPreserve */
  if (desc->keeps_small) add_mode(out, 4464, 4459); /* DenormPreserve */
}

static void kernel_render_glsl_head(const berth__kernel *kernel, const berth__render_desc *desc, berth__text *out) {
  berth__text_printf(out, "#version 450\n#extension GL_EXT_control_flow_attributes : enable\n");
  if (berth__kernel_uses(kernel, BERTH__INST_exchange))
    berth__text_printf(out, "#extension GL_KHR_shader_subgroup_shuffle : require\n");
  berth__glsl_tiles_extensions(kernel, desc, out);
  add_modes(desc, out);
  berth__dialect_name(out, kernel);
  berth__text_printf(out, "layout(local_size_x = %u, local_size_y = 1, local_size_z = 1) in;\n", kernel->group_size);
  kernel_render_glsl_add_bindings(kernel, desc, out);
  for (uint32_t i = 0; i < kernel->n_shared; i++)
    if (berth__storage_per_word(kernel->shared[i].storage) == 1)
      berth__text_printf(out, "shared %s s%u[%u];\n", types[kernel->shared[i].type], i, kernel->shared[i].count);
  berth__glsl_tiles_head(kernel, desc, out);
}

static void kernel_render_glsl_open_main(const berth__kernel *kernel, const berth__render_desc *desc,
                                         berth__text *out) {
  const bool has_rows = berth__grid_rows(kernel->n_groups) > 1;
  berth__glsl_tiles_define(kernel, desc, out);
  berth__text_printf(out, "void main() {\n");
  if (has_rows) {
    berth__text_printf(out, "  int group = int(gl_WorkGroupID.x + gl_WorkGroupID.y * %uu);\n", BERTH__GRID_ROW);
    if (kernel->n_groups % BERTH__GRID_ROW != 0)
      berth__text_printf(out, "  if (group >= %llu) return;\n", (unsigned long long)kernel->n_groups);
  } else if (berth__kernel_uses(kernel, BERTH__INST_group)) {
    berth__text_printf(out, "  int group = int(gl_WorkGroupID.x);\n");
  }
  /* The driver decides which threads share a subgroup: if it matters, thread numbers follow subgroups. */
  if (berth__kernel_uses(kernel, BERTH__INST_exchange) || (kernel->n_sums != 0 && !desc->units.is_played))
    berth__text_printf(out, "  int thread = int(gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID);\n");
  else if (berth__kernel_uses(kernel, BERTH__INST_thread) || kernel->n_sums != 0)
    berth__text_printf(out, "  int thread = int(gl_LocalInvocationID.x);\n");
  berth__glsl_tiles_open(kernel, desc, out);
  for (uint32_t i = 0; i < kernel->n_local; i++)
    berth__text_printf(out, "  %s l%u[%u];\n", types[kernel->local[i].type], i, kernel->local[i].count);
}

/* An element of a word that others may be writing to: clears its bits, then sets them. */
#define STORE_16                                                         \
  "atomicAnd($w[at[$n] + ($i >> 1u)], ~(65535u << (($i & 1u) << 4u))); " \
  "atomicOr($w[at[$n] + ($i >> 1u)], $b << (($i & 1u) << 4u));"
#define STORE_8                                                        \
  "atomicAnd($w[at[$n] + ($i >> 2u)], ~(255u << (($i & 3u) << 3u))); " \
  "atomicOr($w[at[$n] + ($i >> 2u)], $b << (($i & 3u) << 3u));"

static const berth__dialect glsl = {
    .type = {"precise float", "int", "uint", "bool"},
    .literal = kernel_render_glsl_literal,
    .head = kernel_render_glsl_head,
    .open = kernel_render_glsl_open_main,
    .close = "}\n",
    .begin = "at[$n]",
    .arena = "w",
    .window = "w$n",
    .value = "$t $v = #e;",
    .counter = "i",
    .minus = "$a - $m",
    .unrolled = "[[unroll]] ",
    .rule =
        {
#include "kernel/dialect.def"
            [BERTH__INST_shl] = BERTH__RULE_BITS("$a << $b", NULL),
            [BERTH__INST_shr] = BERTH__RULE_BITS("$a >> $b", NULL),
            [BERTH__INST_ne] = BERTH__RULE_ALL("$a != $b"),
            [BERTH__INST_select] = BERTH__RULE_ALL("$a ? $b : $c"),
            [BERTH__INST_round] = BERTH__RULE_F32("roundEven(#a)"),
            [BERTH__INST_rounded] = BERTH__RULE_F32("#a"), /* names are `precise` */
            [BERTH__INST_to_half] = BERTH__RULE_F32("berth_to_half(#a)"),
            [BERTH__INST_pack_half] = {NULL, NULL, "berth_pack_half(#a)", NULL},
            [BERTH__INST_unpack_half] = BERTH__RULE_F32("unpackHalf2x16(#a).x"),
            [BERTH__INST_variable] = BERTH__RULE_ALL("$t $v = #a;"),
            [BERTH__INST_loop] = BERTH__RULE_ALL("for (int $v = #a; $v < $b; $v += #c) {"),
            [BERTH__INST_store_max] = BERTH__RULE_ALL("atomicMax($w[$p], #b);"),
            [BERTH__INST_barrier] = BERTH__RULE_ALL("barrier();"),
            [BERTH__INST_exchange] = BERTH__RULE_NUMBERS("subgroupShuffleXor(#a, $nu)"),
        },
    .convert =
        {
            [BERTH__NUM_F32] = {"#a", "int(#a)", "uint(#a)", "$a != 0.0"},
            [BERTH__NUM_I32] = {"float(#a)", "#a", "uint(#a)", "$a != 0"},
            [BERTH__NUM_U32] = {"float(#a)", "int(#a)", "#a", "$a != 0u"},
            [BERTH__NUM_BOOL] = {"float(#a)", "int(#a)", "uint(#a)", "#a"},
        },
    .bits =
        {
            [BERTH__NUM_F32] = {"#a", "floatBitsToInt(#a)", "floatBitsToUint(#a)", NULL},
            [BERTH__NUM_I32] = {"intBitsToFloat(#a)", "#a", "uint(#a)", NULL},
            [BERTH__NUM_U32] = {"uintBitsToFloat(#a)", "int(#a)", "#a", NULL},
        },
    .byte = {{"float($a & 255u)", "float(($a >> 8u) & 255u)", "float(($a >> 16u) & 255u)", "float($a >> 24u)"},
             {"float(($a << 24u) >> 24u)", "float(($a << 16u) >> 24u)", "float(($a << 8u) >> 24u)",
              "float($a >> 24u)"}},
    .load = {[BERTH_F32] = "uintBitsToFloat($[$p$])",
             [BERTH_I32] = "int($[$p$])",
             [BERTH_U32] = "$[$p$]",
             [BERTH_F16] = "unpackHalf2x16($[at[$n] + ($i >> 1u)$] >> (($i & 1u) << 4u)).x",
             [BERTH_BF16] = "uintBitsToFloat(($[at[$n] + ($i >> 1u)$] >> (($i & 1u) << 4u)) << 16u)",
             [BERTH_I16] = "bitfieldExtract(int($[at[$n] + ($i >> 1u)$]), int(($i & 1u) << 4u), 16)",
             [BERTH_U16] = "($[at[$n] + ($i >> 1u)$] >> (($i & 1u) << 4u)) & 65535u",
             [BERTH_I8] = "bitfieldExtract(int($[at[$n] + ($i >> 2u)$]), int(($i & 3u) << 3u), 8)",
             [BERTH_U8] = "($[at[$n] + ($i >> 2u)$] >> (($i & 3u) << 3u)) & 255u",
             [BERTH_BOOL] = "($[at[$n] + ($i >> 2u)$] >> (($i & 3u) << 3u)) & 255u"},
    .rule[BERTH__INST_shared_copy] = BERTH__RULE_ALL("BERTH_COPY_$v(#a, #b, #c);"),
    .rule[BERTH__INST_commit] = BERTH__RULE_ALL(""),
    .rule[BERTH__INST_wait] = BERTH__RULE_ALL("BERTH_WAIT_$v"),
    .rule[BERTH__INST_multiply] = BERTH__RULE_ALL("BERTH_MULTIPLY_$n(#a)"),
    .rule[BERTH__INST_ahead] = BERTH__RULE_ALL(""),
    .rule[BERTH__INST_settle] = BERTH__RULE_ALL(""),
    .rule[BERTH__INST_join] = BERTH__RULE_ALL(""), /* where a sum is read, the parts are added up */
    .rule[BERTH__INST_pack_pair] = {NULL, NULL, "berth_pack_bf16(#a) | (berth_pack_bf16(#b) << 16u)", NULL},
    .rule[BERTH__INST_each] = BERTH__RULE_ALL("for (int $v = 0; $v < BERTH_EACH_$n; $v++) { BERTH_STAGE_$v"),
    .rule[BERTH__INST_sum_row] = BERTH__RULE_ALL("BERTH_ROW_$n(#a)"),
    .rule[BERTH__INST_sum_column] = BERTH__RULE_ALL("BERTH_COLUMN_$n(#a)"),
    .rule[BERTH__INST_sum] = BERTH__RULE_ALL("BERTH_SUM_$n(#a, #b)"),
    .shared_store = {[BERTH_F16] = "s$n[#a] = uint16_t(berth_pack_half(#b));",
                     [BERTH_BF16] = "s$n[#a] = uint16_t(berth_pack_bf16(#b));"},
    .quad = "$q[(at[$n] >> 2u) + $i]",
    .quad_value = "uvec4 $v = #e;",
    .part = {"uintBitsToFloat($a.$k)", "int($a.$k)", "$a.$k", NULL},
    .quad_arena = "q",
    .quad_window = "q$n",
    .store = {[BERTH_F32] = "$w[$p] = floatBitsToUint(#b);",
              [BERTH_I32] = "$w[$p] = uint(#b);",
              [BERTH_U32] = "$w[$p] = #b;",
              [BERTH_F16] = STORE_16,
              [BERTH_BF16] = STORE_16,
              [BERTH_I16] = STORE_16,
              [BERTH_U16] = STORE_16,
              [BERTH_I8] = STORE_8,
              [BERTH_U8] = STORE_8,
              [BERTH_BOOL] = STORE_8},
    .words = {.open = {"float $v(float x) {", "int $v(int a, int b) {", "uint $v(uint a, uint b) {",
                       "uint $v(float x) {", "float $v(float x, float y) {", "uint $v(uint a, uint b, uint c) {"},
              .f32 = "precise float",
              .i32 = "int",
              .u32 = "uint",
              .f32_bits = "uintBitsToFloat",
              .u32_bits = "floatBitsToUint",
              .select = "mix",
              .round = "roundEven",
              .to_u32 = "uint"},
};

berth_status berth__render_glsl(const berth__kernel *kernel, const berth__render_desc *desc, berth__text *out,
                                berth_error *err) {
  if (!berth__glsl_tiles_fit(kernel, desc))
    return berth__fail(
        err, BERTH_UNSUPPORTED,
        "kernel '%s' multiplies by matrix units in a way that this device lacks; plan for the device itself",
        kernel->name);
  return berth__render(kernel, &glsl, desc, out, err);
}
