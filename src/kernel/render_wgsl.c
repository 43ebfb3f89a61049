/* WGSL, for WebGPU. All memory is words: array<u32>. The language has no implicit conversions, and rejects constant
 * expressions that are not finite: such numbers go through a function, which is not evaluated at compile time. */
#include <stdio.h>

#include "kernel/dialect.h"

static void kernel_render_wgsl_add_f32(berth__text *out, uint32_t bits) {
  if (!berth__dialect_has_digits(bits)) {
    berth__text_printf(out, "berth_f32(0x%08xu)", bits);
    return;
  }
  berth__dialect_digits(out, bits);
  berth__text_printf(out, "f");
}

static void kernel_render_wgsl_literal(berth__text *out, berth__number type, uint32_t bits) {
  int32_t value;
  memcpy(&value, &bits, sizeof value);
  switch (type) {
    case BERTH__NUM_F32: kernel_render_wgsl_add_f32(out, bits); break;
    case BERTH__NUM_I32: berth__text_printf(out, value == INT32_MIN ? "i32(%d)" : "%di", value); break;
    case BERTH__NUM_U32: berth__text_printf(out, "%uu", bits); break;
    case BERTH__NUM_BOOL: berth__text_printf(out, "%s", bits != 0 ? "true" : "false"); break;
  }
}

/* ---- Around the instructions ---- */

static uint32_t n_windows(const berth__kernel *kernel, const berth__render_desc *desc) {
  uint32_t n = 0;
  if (desc->window_of == NULL) return kernel->n_buffers;
  for (uint32_t i = 0; i < kernel->n_buffers; i++)
    if (desc->window_of[i] >= n) n = desc->window_of[i] + 1u;
  return n;
}

static void kernel_render_wgsl_add_bindings(const berth__kernel *kernel, const berth__render_desc *desc,
                                            berth__text *out) {
  const uint32_t n = desc->windows ? n_windows(kernel, desc) : 1;
  for (uint32_t i = 0; i < n; i++) {
    char number[12] = "";
    if (desc->windows) snprintf(number, sizeof number, "%u", i);
    berth__text_printf(out, "@group(0) @binding(%u) var<storage, read_write> w%s: array<%s>;\n", i, number,
                       berth__dialect_is_atomic(kernel, desc, i) ? "atomic<u32>" : "u32");
  }
  berth__text_printf(out, "struct Begins {");
  for (uint32_t i = 0; i < kernel->n_buffers; i++) berth__text_printf(out, " b%u: u32,", i);
  berth__text_printf(out, " }\n@group(0) @binding(%u) var<uniform> at: Begins;\n", n);
}

static const char *const types[BERTH__NUMBERS] = {
    [BERTH__NUM_F32] = "f32", [BERTH__NUM_I32] = "i32", [BERTH__NUM_U32] = "u32", [BERTH__NUM_BOOL] = "bool"};

/* To the nearest even f16: by the bits that are dropped; below 2^-14 in multiples of 2^-24, the weight of its last bit
 * there. The language may reassociate sums, so there is none in it (functions.c has another way, for languages that may
 * not). */
#define TO_HALF                                                                                   \
  "fn berth_half(x: f32) -> f32 {\n"                                                              \
  "  let sign = bitcast<u32>(x) & 2147483648u;\n"                                                 \
  "  let a = bitcast<u32>(x) & 2147483647u;\n"                                                    \
  "  let rounded = (a + 4095u + ((a >> 13u) & 1u)) & 4294959104u;\n"                              \
  "  let small = bitcast<u32>(round(bitcast<f32>(a) * 16777216.0f) * 5.9604644775390625e-08f);\n" \
  "  let normal = select(rounded, small, a < 947912704u);\n"                                      \
  "  let large = select(2139095040u, a, a > 2139095040u);\n" /* inf, NaN */                       \
  "  return bitcast<f32>(select(normal, large, a >= 1199566848u) | sign);\n"                      \
  "}\n"

static void kernel_render_wgsl_head(const berth__kernel *kernel, const berth__render_desc *desc, berth__text *out) {
  if (berth__kernel_uses(kernel, BERTH__INST_exchange)) berth__text_printf(out, "enable subgroups;\n");
  berth__dialect_name(out, kernel);
  kernel_render_wgsl_add_bindings(kernel, desc, out);
  for (uint32_t i = 0; i < kernel->n_shared; i++)
    berth__text_printf(out, "var<workgroup> s%u: array<%s, %u>;\n", i, types[kernel->shared[i].type],
                       kernel->shared[i].count);
  if (berth__kernel_uses(kernel, BERTH__INST_barrier) || berth__kernel_uses(kernel, BERTH__INST_exchange))
    berth__text_printf(out, "var<workgroup> agreed: u32;\n");
  berth__text_printf(out, "fn berth_f32(bits: u32) -> f32 { return bitcast<f32>(bits); }\n");
  if (berth__kernel_uses(kernel, BERTH__INST_to_half)) berth__text_printf(out, TO_HALF);
}

static void kernel_render_wgsl_open_main(const berth__kernel *kernel, const berth__render_desc *desc,
                                         berth__text *out) {
  (void)desc;
  const bool has_rows = berth__grid_rows(kernel->n_groups) > 1;
  berth__text_printf(out,
                     "@compute @workgroup_size(%u)\n"
                     "fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) lane: u32) {\n",
                     kernel->group_size);
  if (has_rows) {
    berth__text_printf(out, "  let group = i32(id.x + id.y * %uu);\n", BERTH__GRID_ROW);
    if (kernel->n_groups % BERTH__GRID_ROW != 0)
      berth__text_printf(out, "  if (group >= %llu) { return; }\n", (unsigned long long)kernel->n_groups);
  } else if (berth__kernel_uses(kernel, BERTH__INST_group)) {
    berth__text_printf(out, "  let group = i32(id.x);\n");
  }
  if (berth__kernel_uses(kernel, BERTH__INST_thread)) berth__text_printf(out, "  let thread = i32(lane);\n");
  for (uint32_t i = 0; i < kernel->n_local; i++)
    berth__text_printf(out, "  var l%u: array<%s, %u>;\n", i, types[kernel->local[i].type], kernel->local[i].count);
}

/* ---- The rules ---- */

/* An element of a word that others may be writing to: clears its bits, then sets them. */
#define STORE_16                                                          \
  "atomicAnd(&$w[at.b$n + ($i >> 1u)], ~(65535u << (($i & 1u) << 4u))); " \
  "atomicOr(&$w[at.b$n + ($i >> 1u)], $b << (($i & 1u) << 4u));"
#define STORE_8                                                         \
  "atomicAnd(&$w[at.b$n + ($i >> 2u)], ~(255u << (($i & 3u) << 3u))); " \
  "atomicOr(&$w[at.b$n + ($i >> 2u)], $b << (($i & 3u) << 3u));"

/* && and || are branches, and SwiftShader takes gigabytes to compile a long chain of them. */
#define BERTH__BOTH "$a & $b"
#define BERTH__EITHER "$a | $b"

static const berth__dialect wgsl = {
    .type = {"f32", "i32", "u32", "bool"},
    .literal = kernel_render_wgsl_literal,
    .head = kernel_render_wgsl_head,
    .open = kernel_render_wgsl_open_main,
    .close = "}\n",
    .begin = "at.b$n",
    .arena = "w",
    .window = "w$o",
    .value = "let $v = #e;",
    .counter = "n", /* i32 is a type */
    .minus = "$a - $m",
    .unrolled = "",
    .together = "if (lane == 0u) { agreed = select(0u, 1u, #a); } if (workgroupUniformLoad(&agreed) != 0u) {",
    .loop_together =
        "if (lane == 0u) { agreed = bitcast<u32>(#b); } "
        "let to_$v = bitcast<i32>(workgroupUniformLoad(&agreed)); "
        "for (var $v = #a; $v < to_$v; $v += #c) {",
    .both_together =
        "if (lane == 0u) { agreed = bitcast<u32>(#a); } "
        "let from_$v = bitcast<i32>(workgroupUniformLoad(&agreed)); "
        "if (lane == 0u) { agreed = bitcast<u32>(#b); } "
        "let to_$v = bitcast<i32>(workgroupUniformLoad(&agreed)); "
        "for (var $v = from_$v; $v < to_$v; $v += #c) {",
    .rule =
        {
#include "kernel/dialect.def"
            [BERTH__INST_shl] = {NULL, "$a << bitcast<u32>(#b)", "$a << $b", NULL},
            [BERTH__INST_shr] = {NULL, "$a >> bitcast<u32>(#b)", "$a >> $b", NULL},
            [BERTH__INST_ne] = {"!($a == $b)", "$a != $b", "$a != $b", "$a != $b"}, /* Dawn's != is false for NaN */
            [BERTH__INST_select] = BERTH__RULE_ALL("select(#c, #b, #a)"),
            [BERTH__INST_round] = BERTH__RULE_F32("round(#a)"),
            /* There is no `precise`: the value passes through integers, plus a 0 that compilers cannot know to be one.
             * A buffer begins before word 2^30 of the arena. */
            [BERTH__INST_rounded] = BERTH__RULE_F32("bitcast<f32>(bitcast<u32>(#a) ^ (at.b0 >> 31u))"),
            [BERTH__INST_to_half] = BERTH__RULE_F32("berth_half(#a)"),
            [BERTH__INST_pack_half] = {NULL, NULL, "berth_pack_half(#a)", NULL},
            [BERTH__INST_unpack_half] = BERTH__RULE_F32("unpack2x16float(#a).x"),
            [BERTH__INST_variable] = BERTH__RULE_ALL("var $v: $t = #a;"),
            [BERTH__INST_loop] = BERTH__RULE_ALL("for (var $v = #a; $v < $b; $v += #c) {"),
            [BERTH__INST_store_max] = BERTH__RULE_ALL("atomicMax(&$w[$p], #b);"),
            [BERTH__INST_barrier] = BERTH__RULE_ALL("workgroupBarrier();"),
            [BERTH__INST_exchange] = BERTH__RULE_NUMBERS("subgroupShuffleXor(#a, $nu)"),
        },
    .convert =
        {
            [BERTH__NUM_F32] = {"#a", "i32(#a)", "u32(#a)", "!($a == 0.0f)"},
            [BERTH__NUM_I32] = {"f32(#a)", "#a", "bitcast<u32>(#a)", "$a != 0i"},
            [BERTH__NUM_U32] = {"f32(#a)", "bitcast<i32>(#a)", "#a", "$a != 0u"},
            /* not u32(#a): one implementation does not accept a bool there */
            [BERTH__NUM_BOOL] = {"select(0.0f, 1.0f, #a)", "select(0i, 1i, #a)", "select(0u, 1u, #a)", "#a"},
        },
    .bits =
        {
            [BERTH__NUM_F32] = {"#a", "bitcast<i32>(#a)", "bitcast<u32>(#a)", NULL},
            [BERTH__NUM_I32] = {"bitcast<f32>(#a)", "#a", "bitcast<u32>(#a)", NULL},
            [BERTH__NUM_U32] = {"bitcast<f32>(#a)", "bitcast<i32>(#a)", "#a", NULL},
        },
    .byte = {{"f32($a & 255u)", "f32(($a >> 8u) & 255u)", "f32(($a >> 16u) & 255u)", "f32($a >> 24u)"},
             {"f32(($a << 24u) >> 24u)", "f32(($a << 16u) >> 24u)", "f32(($a << 8u) >> 24u)", "f32($a >> 24u)"}},
    .load = {[BERTH_F32] = "bitcast<f32>($[$p$])",
             [BERTH_I32] = "bitcast<i32>($[$p$])",
             [BERTH_U32] = "$[$p$]",
             [BERTH_F16] = "unpack2x16float($[at.b$n + ($i >> 1u)$] >> (($i & 1u) << 4u)).x",
             [BERTH_BF16] = "bitcast<f32>(($[at.b$n + ($i >> 1u)$] >> (($i & 1u) << 4u)) << 16u)",
             [BERTH_I16] = "extractBits(bitcast<i32>($[at.b$n + ($i >> 1u)$]), ($i & 1u) << 4u, 16u)",
             [BERTH_U16] = "($[at.b$n + ($i >> 1u)$] >> (($i & 1u) << 4u)) & 65535u",
             [BERTH_I8] = "extractBits(bitcast<i32>($[at.b$n + ($i >> 2u)$]), ($i & 3u) << 3u, 8u)",
             [BERTH_U8] = "($[at.b$n + ($i >> 2u)$] >> (($i & 3u) << 3u)) & 255u",
             [BERTH_BOOL] = "($[at.b$n + ($i >> 2u)$] >> (($i & 3u) << 3u)) & 255u"},
    .store = {[BERTH_F32] = "$w[$p] = bitcast<u32>(#b);",
              [BERTH_I32] = "$w[$p] = bitcast<u32>(#b);",
              [BERTH_U32] = "$w[$p] = #b;",
              [BERTH_F16] = STORE_16,
              [BERTH_BF16] = STORE_16,
              [BERTH_I16] = STORE_16,
              [BERTH_U16] = STORE_16,
              [BERTH_I8] = STORE_8,
              [BERTH_U8] = STORE_8,
              [BERTH_BOOL] = STORE_8},
    .atomic_open = "atomicLoad(&",
    .atomic_close = "])",
    .atomic_store = {[BERTH_F32] = "atomicStore(&$w[$p], bitcast<u32>(#b));",
                     [BERTH_I32] = "atomicStore(&$w[$p], bitcast<u32>(#b));",
                     [BERTH_U32] = "atomicStore(&$w[$p], #b);"},
    .words = {.open = {"fn $v(x: f32) -> f32 {", "fn $v(a: i32, b: i32) -> i32 {", "fn $v(a: u32, b: u32) -> u32 {",
                       "fn $v(x: f32) -> u32 {", "fn $v(x: f32, y: f32) -> f32 {",
                       "fn $v(a: u32, b: u32, c: u32) -> u32 {"},
              .f32 = "let",
              .i32 = "let",
              .u32 = "let",
              .f32_bits = "berth_f32",
              .u32_bits = "bitcast<u32>",
              .select = "select",
              .round = "round",
              .to_u32 = "u32"},
};

berth_status berth__render_wgsl(const berth__kernel *kernel, const berth__render_desc *desc, berth__text *out,
                                berth_error *err) {
  return berth__render(kernel, &wgsl, desc, out, err);
}
