/* Tiles in GLSL: a subgroup has a rectangle of the sums as cooperative matrices, pieces of the size that the device
 * multiplies. Threads cannot address the elements of such matrices, so an `each` stores some pieces to shared memory at
 * a time and reads its sums there. Copies go through registers: they are loaded where the kernel copies, and stored
 * where it waits for them.
 *
 * The language is GL_NV_cooperative_matrix, which compilers have had for longest; device/vulkan/matrices.c turns the
 * SPIR-V into that of VK_KHR_cooperative_matrix, which more drivers have. There the types of left sides, right sides
 * and sums differ: here they differ by the specialization constant that is the number of rows. */
#include "kernel/render_glsl.h"

/* ---- What a kernel needs ---- */

typedef struct glsl_sums {
  const berth__kernel_sums *of;
  const berth__render_units *units;
  berth__warps warps;          /* of a part */
  uint32_t pieces, at_a_time;  /* of a subgroup; those that it stores to the stage at once */
  uint32_t together, of_round; /* rounds of an `each` while they are there */
  uint32_t n_each;             /* rounds of an `each` */
} glsl_sums;

static uint32_t size_of_piece(const berth__render_units *u) { return u->rows * u->columns; }

/* False: the units have no form for these. */
static bool glsl_tiles_measure(const berth__kernel *kernel, const berth__render_units *units, uint32_t n,
                               glsl_sums *out) {
  const berth__kernel_sums *sums = &kernel->sums[n];
  const uint32_t parts = berth__sums_parts(sums), size = size_of_piece(units);
  *out = (glsl_sums){.of = sums, .units = units, .together = sums->together};
  if (sums->stage == 0 || size == 0 || kernel->group_size / parts % units->lanes != 0) return false;
  const uint32_t n_warps = kernel->group_size / units->lanes;
  out->warps = berth__warps_of(n_warps / parts, sums->left.lines, sums->right.lines, false);
  if (out->warps.across == 0) return false;
  out->pieces = out->warps.rows * out->warps.columns / size;
  out->at_a_time = kernel->shared[sums->stage - 1].count / (n_warps * size);
  if (out->at_a_time > out->pieces) out->at_a_time = out->pieces;
  const uint32_t staged = n_warps / parts * out->at_a_time * size, a_round = kernel->group_size * sums->together;
  if (out->at_a_time == 0 || out->pieces % out->at_a_time != 0 || staged % a_round != 0) return false;
  out->of_round = staged / a_round;
  out->n_each = out->of_round * (out->pieces / out->at_a_time);
  return sums->left.depth / parts % units->depth == 0 && units->columns % sums->together == 0;
}

static bool is_narrow(const berth__kernel *kernel, uint32_t array) {
  return berth__storage_per_word(kernel->shared[array].storage) == 2;
}

static bool is_copied(const berth__kernel *kernel, uint32_t array) {
  for (size_t i = 0; i < kernel->n_insts; i++)
    if (kernel->insts[i].code == BERTH__INST_shared_copy && (kernel->insts[i].bits & 255u) == array) return true;
  return false;
}

/* Elements of an array that is copied to are stored eight at a time, of others one by one. */
static uint32_t elements_at_once(const berth__kernel *kernel, uint32_t array) {
  return is_copied(kernel, array) ? 8 : 1;
}

static bool glsl_tiles_side_fits(const berth__kernel *kernel, const berth__kernel_tile *tile) {
  return tile->row == 0 && is_narrow(kernel, tile->array) && tile->pitch % elements_at_once(kernel, tile->array) == 0;
}

static bool glsl_tiles_insts_fit(const berth__kernel *kernel) {
  bool is_waited_for = true;
  for (size_t i = 0; i < kernel->n_insts; i++) {
    const berth__inst *inst = &kernel->insts[i];
    const bool stores = inst->code == BERTH__INST_shared_store, loads = inst->code == BERTH__INST_shared_load;
    if ((loads || (stores && is_copied(kernel, inst->bits))) && is_narrow(kernel, inst->bits)) return false;
    if (inst->code == BERTH__INST_shared_copy) is_waited_for = false;
    if (inst->code == BERTH__INST_wait) is_waited_for = true;
  }
  return is_waited_for;
}

bool berth__glsl_tiles_fit(const berth__kernel *kernel, const berth__render_desc *desc) {
  if (kernel->n_sums == 0) return true;
  for (uint32_t i = 0; i < kernel->n_shared; i++)
    if (kernel->shared[i].over != 0) return false;
  for (uint32_t n = 0; n < kernel->n_sums; n++) {
    const berth__kernel_sums *sums = &kernel->sums[n];
    glsl_sums unused;
    if (sums->type != BERTH__NUM_F32 || sums->kind != kernel->sums[0].kind ||
        (sums->kind != BERTH_COMPUTE_F16 && sums->kind != BERTH_COMPUTE_BF16) || sums->has_rows || sums->is_late ||
        sums->by_fours || !glsl_tiles_side_fits(kernel, &sums->left) || !glsl_tiles_side_fits(kernel, &sums->right) ||
        !glsl_tiles_measure(kernel, &desc->units, n, &unused))
      return false;
  }
  return glsl_tiles_insts_fit(kernel);
}

/* ---- Types and functions ---- */

void berth__glsl_tiles_extensions(const berth__kernel *kernel, const berth__render_desc *desc, berth__text *out) {
  if (kernel->n_sums == 0) return;
  berth__text_printf(out, "#extension GL_EXT_shader_explicit_arithmetic_types_int16 : require\n");
  if (desc->units.is_played) return;
  berth__text_printf(out,
                     "#pragma use_vulkan_memory_model\n"
                     "#extension GL_KHR_memory_scope_semantics : require\n"
                     "#extension GL_KHR_shader_subgroup_basic : require\n"
                     "#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require\n"
                     "#extension GL_NV_cooperative_matrix : require\n");
}

static void glsl_tiles_add_types(const berth__render_units *u, berth__text *out) {
  berth__text_printf(out,
                     "layout(constant_id = 0) const uint berth_left_rows = %uu;\n"
                     "layout(constant_id = 1) const uint berth_right_rows = %uu;\n"
                     "layout(constant_id = 2) const uint berth_sums_rows = %uu;\n"
                     "#define berth_left fcoopmatNV<16, gl_ScopeSubgroup, berth_left_rows, %u>\n"
                     "#define berth_right fcoopmatNV<16, gl_ScopeSubgroup, berth_right_rows, %u>\n"
                     "#define berth_sums fcoopmatNV<32, gl_ScopeSubgroup, berth_sums_rows, %u>\n",
                     u->rows, u->depth, u->rows, u->depth, u->columns, u->columns);
  berth__text_printf(out,
                     "#define BERTH_SUBGROUP int(gl_SubgroupID)\n"
                     "#define BERTH_LOAD_LEFT(m, array, element, unit, at, stride, across) "
                     "coopMatLoadNV(m, array, uint(at), stride, across)\n"
                     "#define BERTH_LOAD_RIGHT(m, array, element, unit, at, stride, across) "
                     "coopMatLoadNV(m, array, uint(at), stride, across)\n"
                     "#define BERTH_ADD(c, a, b) c = coopMatMulAddNV(a, b, c)\n"
                     "#define BERTH_STORE(c, array, at) coopMatStoreNV(c, array, uint(at), %uu, false)\n",
                     u->columns);
}

/* A lane has every so many sums of a column, and loads what they are made of. */
static uint32_t played_sums(const berth__render_units *u) { return size_of_piece(u) / u->lanes; }

static void glsl_tiles_add_played(const berth__render_units *u, berth__text *out) {
  const uint32_t n = played_sums(u), depth = u->depth;
  berth__text_printf(out,
                     "struct berth_left { float x[%u]; };\n"
                     "struct berth_right { float x[%u]; };\n"
                     "struct berth_sums { float x[%u]; };\n"
                     "#define BERTH_SUBGROUP (thread / %u)\n"
                     "#define BERTH_LANE_ROW(e) ((e) * %u + thread %% %u / %u)\n"
                     "#define BERTH_LANE_COLUMN (thread %% %u)\n",
                     n * depth, depth, n, u->lanes, u->lanes / u->columns, u->lanes, u->columns, u->columns);
  berth__text_printf(
      out,
      "#define BERTH_LOAD_LEFT(m, array, element, unit, at, stride, across) "
      "for (int e = 0; e < %u; e++) for (int d = 0; d < %u; d++) m.x[e * %u + d] = element((at) * unit + "
      "(across ? d * int(stride) * unit + BERTH_LANE_ROW(e) : BERTH_LANE_ROW(e) * int(stride) * unit + d))\n"
      "#define BERTH_LOAD_RIGHT(m, array, element, unit, at, stride, across) "
      "for (int d = 0; d < %u; d++) m.x[d] = element((at) * unit + (across ? BERTH_LANE_COLUMN * "
      "int(stride) * unit + d : d * int(stride) * unit + BERTH_LANE_COLUMN))\n",
      n, depth, depth, depth);
  berth__text_printf(out,
                     "#define BERTH_ADD(s, a, b) for (int e = 0; e < %u; e++) for (int d = 0; d < %u; d++) "
                     "s.x[e] += a.x[e * %u + d] * b.x[d]\n"
                     "#define BERTH_STORE(s, array, at) for (int e = 0; e < %u; e++) "
                     "array[(at) + BERTH_LANE_ROW(e) * %u + BERTH_LANE_COLUMN] = s.x[e]\n",
                     n, depth, depth, n, u->columns);
}

/* Played: an element of an array as f32. */
static void glsl_tiles_add_element(const berth__kernel *kernel, uint32_t array, berth__text *out) {
  const bool is_bf16 = kernel->shared[array].storage == BERTH_BF16;
  berth__text_printf(out, "float berth_s%u(int i) {\n  uint bits = ", array);
  if (is_copied(kernel, array))
    berth__text_printf(out, "s%u[i / 8][i / 2 %% 4] >> (i %% 2 * 16);\n", array);
  else
    berth__text_printf(out, "uint(s%u[i]);\n", array);
  berth__text_printf(out, "  return %s;\n}\n", is_bf16 ? "uintBitsToFloat(bits << 16u)" : "unpackHalf2x16(bits).x");
}

void berth__glsl_tiles_head(const berth__kernel *kernel, const berth__render_desc *desc, berth__text *out) {
  if (kernel->n_sums == 0) return;
  for (uint32_t i = 0; i < kernel->n_shared; i++) {
    if (!is_narrow(kernel, i)) continue;
    const uint32_t unit = elements_at_once(kernel, i);
    berth__text_printf(out, "shared %s s%u[%u];\n", unit > 1 ? "uvec4" : "uint16_t", i,
                       (kernel->shared[i].count + unit - 1) / unit);
    if (desc->units.is_played) glsl_tiles_add_element(kernel, i, out);
  }
  if (desc->units.is_played)
    glsl_tiles_add_played(&desc->units, out);
  else
    glsl_tiles_add_types(&desc->units, out);
}

/* ---- Copies ---- */

/* What has been loaded, and where it goes; below 0: nothing is under way. */
static void glsl_tiles_open_copies(const berth__kernel *kernel, berth__text *out) {
  for (size_t i = 0; i < kernel->n_insts; i++)
    if (kernel->insts[i].code == BERTH__INST_shared_copy)
      berth__text_printf(out, "  uvec4 v%u = uvec4(0u);\n  int v%u_at = -1;\n", (unsigned)i, (unsigned)i);
}

/* A `wait` stores everything that is copied between the previous one and itself: no copy has to arrive any later. */
static void glsl_tiles_define_wait(const berth__kernel *kernel, size_t wait, berth__text *out) {
  size_t first = wait;
  while (first > 0 && kernel->insts[first - 1].code != BERTH__INST_wait) first--;
  berth__text_printf(out, "#define BERTH_WAIT_v%u ", (unsigned)wait);
  for (size_t i = first; i < wait; i++)
    if (kernel->insts[i].code == BERTH__INST_shared_copy)
      berth__text_printf(out, "if (v%u_at >= 0) { s%u[v%u_at] = v%u; v%u_at = -1; } ", (unsigned)i,
                         kernel->insts[i].bits & 255u, (unsigned)i, (unsigned)i, (unsigned)i);
  berth__text_printf(out, "\n");
}

static void glsl_tiles_define_copies(const berth__kernel *kernel, const berth__render_desc *desc, berth__text *out) {
  for (size_t i = 0; i < kernel->n_insts; i++) {
    const uint32_t buffer = kernel->insts[i].bits >> 8;
    if (kernel->insts[i].code == BERTH__INST_wait) glsl_tiles_define_wait(kernel, i, out);
    if (kernel->insts[i].code != BERTH__INST_shared_copy) continue;
    berth__text_printf(
        out, "#define BERTH_COPY_v%u(to, from, there) v%u_at = (to) >> 3; v%u = uvec4(0u); if (there) v%u = q",
        (unsigned)i, (unsigned)i, (unsigned)i, (unsigned)i);
    if (desc->windows) berth__text_printf(out, "%u", buffer);
    berth__text_printf(out, "[(at[%u] >> 2u) + (uint(from) >> 3u)]\n", buffer);
  }
}

/* ---- Products ---- */

static uint32_t glsl_tiles_line_step(const berth__kernel_tile *tile) { return tile->is_deep ? tile->pitch : 1; }
static uint32_t glsl_tiles_depth_step(const berth__kernel_tile *tile) { return tile->is_deep ? 1 : tile->pitch; }

/* The element of a side at which the subgroup's lines begin, in its slot and its part of the depth. */
static void glsl_tiles_add_start(const berth__kernel_tile *tile, const glsl_sums *s, bool is_left, berth__text *out) {
  const uint32_t deep = tile->depth / berth__sums_parts(s->of), slot = tile->slots == 1 ? 0 : berth__tile_slot(tile);
  berth__text_printf(out,
                     "  const int %s = (slot) * %u + BERTH_SUBGROUP %% %u %s %u * %u + BERTH_SUBGROUP / %u * %u; \\\n",
                     is_left ? "left" : "right", slot, s->warps.n, is_left ? "/" : "%", s->warps.across,
                     (is_left ? s->warps.rows : s->warps.columns) * glsl_tiles_line_step(tile), s->warps.n,
                     deep * glsl_tiles_depth_step(tile));
}

static void glsl_tiles_add_load(const berth__kernel *kernel, const berth__kernel_tile *tile, const glsl_sums *s,
                                bool is_left, uint32_t i, berth__text *out) {
  const uint32_t unit = elements_at_once(kernel, tile->array);
  const uint32_t lines = is_left ? s->units->rows : s->units->columns;
  berth__text_printf(
      out, "    berth_%s %c%u; BERTH_LOAD_%s(%c%u, s%u, berth_s%u, %u, (%s + %u + k * %u) / %u, %uu, %s); \\\n",
      is_left ? "left" : "right", is_left ? 'a' : 'b', i, is_left ? "LEFT" : "RIGHT", is_left ? 'a' : 'b', i,
      tile->array, tile->array, unit, is_left ? "left" : "right", i * lines * glsl_tiles_line_step(tile),
      glsl_tiles_depth_step(tile), unit, tile->pitch / unit, tile->is_deep == is_left ? "false" : "true");
}

static void glsl_tiles_define_multiply(const berth__kernel *kernel, const glsl_sums *s, uint32_t n, berth__text *out) {
  const uint32_t down = s->warps.rows / s->units->rows, across = s->warps.columns / s->units->columns;
  berth__text_printf(out, "#define BERTH_MULTIPLY_%u(slot) { \\\n", n);
  glsl_tiles_add_start(&s->of->left, s, true, out);
  glsl_tiles_add_start(&s->of->right, s, false, out);
  berth__text_printf(out, "  for (int k = 0; k < %u; k += %u) { \\\n", s->of->left.depth / berth__sums_parts(s->of),
                     s->units->depth);
  for (uint32_t j = 0; j < across; j++) glsl_tiles_add_load(kernel, &s->of->right, s, false, j, out);
  for (uint32_t i = 0; i < down; i++) {
    glsl_tiles_add_load(kernel, &s->of->left, s, true, i, out);
    for (uint32_t j = 0; j < across; j++)
      berth__text_printf(out, "    BERTH_ADD(c%u_%u, a%u, b%u); \\\n", n, i * across + j, i, j);
  }
  berth__text_printf(out, "  } \\\n}\n");
}

/* ---- Sums ---- */

/* Pieces p, p + 1, ... of every subgroup are stored as [part][subgroup][piece][row][column]; threads read neighbours.
 */
static void glsl_tiles_define_stage(const glsl_sums *s, uint32_t n, size_t each, berth__text *out) {
  berth__text_printf(out, "#define BERTH_STAGE_i%u if (i%u %% %u == 0) { barrier(); \\\n", (unsigned)each,
                     (unsigned)each, s->of_round);
  for (uint32_t p = 0; p < s->pieces; p++) {
    if (p % s->at_a_time == 0)
      berth__text_printf(out, "  %sif (i%u == %u) { \\\n", p == 0 ? "" : "} else ", (unsigned)each,
                         p / s->at_a_time * s->of_round);
    berth__text_printf(out, "    BERTH_STORE(c%u_%u, s%u, (BERTH_SUBGROUP * %u + %u) * %u); \\\n", n, p,
                       s->of->stage - 1, s->at_a_time, p % s->at_a_time, size_of_piece(s->units));
  }
  berth__text_printf(out, "  } \\\n  barrier(); }\n");
}

static bool glsl_tiles_reads_sums(const berth__kernel *kernel, size_t each) {
  for (size_t i = each + 1; i < kernel->n_insts; i++) {
    if (kernel->insts[i].code == BERTH__INST_sum) return true;
    if (kernel->insts[i].code == BERTH__INST_end && kernel->insts[i].depth == kernel->insts[each].depth) return false;
  }
  return false;
}

static void glsl_tiles_define_places(const berth__kernel *kernel, const glsl_sums *s, uint32_t n, berth__text *out) {
  const berth__render_units *u = s->units;
  const uint32_t size = size_of_piece(u), across = s->warps.columns / u->columns, parts = berth__sums_parts(s->of);
  berth__text_printf(out, "#define BERTH_EACH_%u %u\n", n, s->n_each);
  berth__text_printf(out, "#define BERTH_AT_%u(e) (((e) %% %u * %u + thread) * %u)\n", n, s->of_round,
                     kernel->group_size, s->together);
  berth__text_printf(out, "#define BERTH_OF_%u(e) (BERTH_AT_%u(e) / %u)\n", n, n, size * s->at_a_time);
  berth__text_printf(out, "#define BERTH_PIECE_%u(e) ((e) / %u * %u + BERTH_AT_%u(e) / %u %% %u)\n", n, s->of_round,
                     s->at_a_time, n, size, s->at_a_time);
  berth__text_printf(
      out,
      "#define BERTH_ROW_%u(e) (BERTH_OF_%u(e) / %u * %u + BERTH_PIECE_%u(e) / %u * %u + BERTH_AT_%u(e) %% "
      "%u / %u)\n",
      n, n, s->warps.across, s->warps.rows, n, across, u->rows, n, size, u->columns);
  berth__text_printf(out,
                     "#define BERTH_COLUMN_%u(e) (BERTH_OF_%u(e) %% %u * %u + BERTH_PIECE_%u(e) %% %u * %u + "
                     "BERTH_AT_%u(e) %% %u)\n",
                     n, n, s->warps.across, s->warps.columns, n, across, u->columns, n, u->columns);
  berth__text_printf(out, "#define BERTH_SUM_%u(e, which) (", n);
  for (uint32_t part = 0; part < parts; part++)
    berth__text_printf(out, "%ss%u[BERTH_AT_%u(e) + int(which) + %u]", part == 0 ? "" : " + ", s->of->stage - 1, n,
                       part * s->warps.n * s->at_a_time * size);
  berth__text_printf(out, ")\n");
}

void berth__glsl_tiles_define(const berth__kernel *kernel, const berth__render_desc *desc, berth__text *out) {
  if (kernel->n_sums == 0) return;
  glsl_tiles_define_copies(kernel, desc, out);
  for (uint32_t n = 0; n < kernel->n_sums; n++) {
    glsl_sums s;
    glsl_tiles_measure(kernel, &desc->units, n, &s);
    glsl_tiles_define_multiply(kernel, &s, n, out);
    glsl_tiles_define_places(kernel, &s, n, out);
    for (size_t i = 0; i < kernel->n_insts; i++) {
      if (kernel->insts[i].code != BERTH__INST_each || kernel->insts[i].bits != n) continue;
      if (glsl_tiles_reads_sums(kernel, i))
        glsl_tiles_define_stage(&s, n, i, out);
      else
        berth__text_printf(out, "#define BERTH_STAGE_i%u\n", (unsigned)i);
    }
  }
}

void berth__glsl_tiles_open(const berth__kernel *kernel, const berth__render_desc *desc, berth__text *out) {
  if (kernel->n_sums == 0) return;
  glsl_tiles_open_copies(kernel, out);
  for (uint32_t n = 0; n < kernel->n_sums; n++) {
    glsl_sums s;
    glsl_tiles_measure(kernel, &desc->units, n, &s);
    for (uint32_t p = 0; p < s.pieces; p++) {
      berth__text_printf(out, "  berth_sums c%u_%u;\n", n, p);
      if (desc->units.is_played)
        berth__text_printf(out, "  for (int e = 0; e < %u; e++) c%u_%u.x[e] = 0.0;\n", played_sums(&desc->units), n, p);
      else
        berth__text_printf(out, "  c%u_%u = berth_sums(0.0);\n", n, p);
    }
  }
}
