/* Tiles in CUDA C, for GPUs of compute capability 8.0 and later: copies are cp.async, and a warp multiplies with mma.
 * Its 32 threads hold 16 x 8 sums, four each, in the layout that the hardware defines; warps divide the sums of a
 * workgroup into rectangles of such pieces. */
#include "kernel/render_cuda.h"

/* Instructions that CUDA C lacks. Tests define each of these in plain C (tests/device/fake_cuda/shim.h). */
static const char prelude[] =
    "typedef unsigned berth_at;\n"
    "BERTH_FUNCTION berth_at berth_shared_at(const void *at) {\n"
    "  berth_at place;\n"
    "  asm(\"{ .reg .u64 t; cvta.to.shared.u64 t, %1; cvt.u32.u64 %0, t; }\" : \"=r\"(place) : \"l\"(at));\n"
    "  return place;\n"
    "}\n"
    "BERTH_FUNCTION void berth_copy16(void *to, const void *from, bool is_there) {\n"
    "  asm volatile(\"cp.async.cg.shared.global [%0], [%1], 16, %2;\"\n"
    "               : : \"r\"(berth_shared_at(to)), \"l\"(from), \"r\"(is_there ? 16 : 0) : \"memory\");\n"
    "}\n"
    "#define berth_commit() asm volatile(\"cp.async.commit_group;\" : : : \"memory\")\n"
    "#define berth_wait(n) asm volatile(\"cp.async.wait_group %0;\" : : \"n\"(n) : \"memory\")\n"
    "#define BERTH_LDMATRIX(name, form) \\\n"
    "  BERTH_FUNCTION void name(unsigned *x, berth_at at) { \\\n"
    "    asm volatile(\"ldmatrix.sync.aligned.m8n8.x4\" form \".shared.b16 {%0, %1, %2, %3}, [%4];\" \\\n"
    "                 : \"=r\"(x[0]), \"=r\"(x[1]), \"=r\"(x[2]), \"=r\"(x[3]) \\\n"
    "                 : \"r\"(at) : \"memory\"); \\\n"
    "  }\n"
    "BERTH_LDMATRIX(berth_ldmatrix, \"\")\n"
    "BERTH_LDMATRIX(berth_ldmatrix_across, \".trans\")\n"
    "#define BERTH_MMA(name, form) \\\n"
    "  BERTH_FUNCTION void name(float *c, const unsigned *a, const unsigned *b) { \\\n"
    "    asm(\"mma.sync.aligned.\" form \" {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\" "
    "\\\n"
    "        : \"+f\"(c[0]), \"+f\"(c[1]), \"+f\"(c[2]), \"+f\"(c[3]) \\\n"
    "        : \"r\"(a[0]), \"r\"(a[1]), \"r\"(a[2]), \"r\"(a[3]), \"r\"(b[0]), \"r\"(b[1])); \\\n"
    "  }\n"
    "BERTH_MMA(berth_mma_bf16, \"m16n8k16.row.col.f32.bf16.bf16.f32\")\n"
    "BERTH_MMA(berth_mma_f16, \"m16n8k16.row.col.f32.f16.f16.f32\")\n"
    "BERTH_MMA(berth_mma_tf32, \"m16n8k8.row.col.f32.tf32.tf32.f32\")\n"
    "BERTH_FUNCTION unsigned short berth_bf16_bits(float x) {\n"
    "  unsigned short bits;\n"
    "  asm(\"cvt.rn.bf16.f32 %0, %1;\" : \"=h\"(bits) : \"f\"(x));\n"
    "  return bits;\n"
    "}\n"
    "BERTH_FUNCTION unsigned berth_tf32_bits(float x) {\n"
    "  unsigned bits;\n"
    "  asm(\"cvt.rna.tf32.f32 %0, %1;\" : \"=r\"(bits) : \"f\"(x));\n"
    "  return bits;\n"
    "}\n"
    "BERTH_FUNCTION unsigned berth_pair_bf16(float first, float second) {\n"
    "  unsigned bits;\n"
    "  asm(\"cvt.rn.bf16x2.f32 %0, %1, %2;\" : \"=r\"(bits) : \"f\"(second), \"f\"(first));\n"
    "  return bits;\n"
    "}\n"
    "BERTH_FUNCTION unsigned berth_pair_f16(float first, float second) {\n"
    "  unsigned bits;\n"
    "  asm(\"cvt.rn.f16x2.f32 %0, %1, %2;\" : \"=r\"(bits) : \"f\"(second), \"f\"(first));\n"
    "  return bits;\n"
    "}\n"
    "BERTH_FUNCTION void berth_store16(unsigned *to, const unsigned *from) {\n"
    "  uint4 four;\n"
    "  four.x = from[0], four.y = from[1], four.z = from[2], four.w = from[3];\n"
    "  *(uint4 *)to = four;\n"
    "}\n"
    "#define berth_other(x, by) __uint_as_float(berth_exchange(__float_as_uint(x), by))\n"
    "BERTH_FUNCTION float berth_larger(float a, float b) { return a < b || b != b ? b : a; }\n"
    "BERTH_FUNCTION float berth_plus(float a, float b) { return a + b; }\n"
    "#define BERTH_ROOM extern __shared__ __align__(1024) unsigned char berth_shared[];\n";

void berth__cuda_tiles_prelude(const berth__kernel *kernel, berth__text *out) {
  berth__text_add(out, prelude, sizeof prelude - 1);
  berth__cuda_warpgroup_prelude(kernel, out);
}

/* ---- The share of a warp ---- */

/* Sums of a warpgroup have 16 rows and all columns in a warp. */
berth__warps berth__cuda_warps_of(const berth__kernel *k, const berth__kernel_sums *sums) {
  const uint32_t n = k->group_size / 32 / berth__sums_parts(sums);
  if (sums->is_late) return (berth__warps){n, 1, sums->left.lines / n, sums->right.lines};
  return berth__warps_of(n, sums->left.lines, sums->right.lines, sums->has_rows);
}

bool berth__cuda_tiles_fit(const berth__kernel *kernel) {
  for (uint32_t i = 0; i < kernel->n_sums; i++) {
    const berth__kernel_sums *sums = &kernel->sums[i];
    if (sums->is_late && berth__cuda_warpgroup_fits(kernel, sums)) continue;
    if (sums->is_late || sums->left.row != 0 || sums->right.row != 0) return false;
    if (sums->by_fours && berth__cuda_fours_fit(kernel, sums)) continue;
    const uint32_t step = berth__compute_storage(sums->kind) == BERTH_F32 ? 8 : 16; /* the shape of mma */
    if (sums->type != BERTH__NUM_F32 || sums->kind == BERTH_COMPUTE_F32 || sums->together > 2 ||
        sums->left.depth / berth__sums_parts(sums) % step != 0 ||
        kernel->group_size / berth__sums_parts(sums) % 32 != 0 || berth__cuda_warps_of(kernel, sums).across == 0)
      return false;
  }
  return true;
}

/* ---- Factors ---- */

/* Stride, in elements, between lines or between steps of the depth. */
static uint32_t line_step(const berth__kernel_tile *tile) { return tile->is_deep ? tile->pitch : 1; }
static uint32_t depth_step(const berth__kernel_tile *tile) { return tile->is_deep ? 1 : tile->pitch; }
static uint32_t slot_step(const berth__kernel_tile *tile) { return tile->slots == 1 ? 0 : berth__tile_slot(tile); }

static bool is_wide(const berth__kernel *k, const berth__kernel_tile *tile) {
  return k->shared[tile->array].storage == BERTH_F32;
}

static bool is_tf32(const berth__kernel_sums *sums) { return berth__compute_storage(sums->kind) == BERTH_F32; }
static bool is_split(const berth__kernel_sums *sums) { return sums->kind == BERTH_COMPUTE_TF32X3; }
static uint32_t mma_depth(const berth__kernel_sums *sums) { return is_tf32(sums) ? 8 : 16; }

/* Words that a thread multiplies at once: the left side's, the right side's, and for tf32x3 the remainders of both. */
static uint32_t count_factors(const berth__kernel_sums *sums, const berth__warps *w) {
  return (w->rows + w->columns) / 4 * (is_split(sums) ? 2 : 1);
}

/* While the last products of a piece are computed, the first factors of the next one are loaded: these have their own
 * words, and a piece must have an even number of steps. */
static bool is_pipelined(const berth__kernel *k, uint32_t n) {
  const berth__kernel_sums *sums = &k->sums[n];
  bool is_used = false;
  for (size_t i = 0; i < k->n_insts; i++)
    is_used = is_used || (k->insts[i].code == BERTH__INST_ahead && k->insts[i].bits == n);
  return is_used && !is_split(sums) && sums->parts <= 1 && sums->left.depth / mma_depth(sums) % 2 == 0;
}

uint32_t berth__cuda_tiles_factors(const berth__kernel *kernel, uint32_t sums) {
  const berth__warps w = berth__cuda_warps_of(kernel, &kernel->sums[sums]);
  if (kernel->sums[sums].is_late || kernel->sums[sums].by_fours) return 1;
  return count_factors(&kernel->sums[sums], &w) * (is_pipelined(kernel, sums) ? 2 : 1);
}

/* The address at which a thread begins. 2-byte elements: 8 x 8 pieces are loaded four at a time, and each of 32 threads
 * addresses one row: for the left tile 16 lines by 16 of the depth, lines first; for the right one the depth first.
 * 4-byte elements: each thread loads its own. */
static void add_start(berth__text *out, const berth__kernel *k, const berth__kernel_sums *sums, const berth__warps *w,
                      bool is_left) {
  const berth__kernel_tile *tile = is_left ? &sums->left : &sums->right;
  const char *line = "lane / 4", *depth = is_tf32(sums) ? "lane % 4" : "lane % 4 * 2";
  if (!is_wide(k, tile)) {
    const char *const left[2][2] = {{"lane / 8 % 2 * 8", "lane / 16 * 8 + lane % 8"}, {"lane % 16", "lane / 16 * 8"}};
    const char *const right[2][2] = {{"lane / 16 * 8", "lane % 16"}, {"lane / 16 * 8 + lane % 8", "lane / 8 % 2 * 8"}};
    line = (is_left ? left : right)[tile->is_deep][0];
    depth = (is_left ? left : right)[tile->is_deep][1];
  }
  berth__text_printf(out, "  %s += (warp %s %u * %u + %s) * %u + (k + %s) * %u;\n", is_left ? "left" : "right",
                     is_left ? "/" : "%", w->across, is_left ? w->rows : w->columns, line, line_step(tile), depth,
                     depth_step(tile));
}

/* Pieces of 16 lines by 16 steps of the depth, of 2-byte elements. */
static void add_ldmatrix(berth__text *out, const berth__kernel_tile *tile, uint32_t lines, bool is_left, uint32_t to) {
  const char *name = is_left ? "left" : "right";
  berth__text_printf(out,
                     "  const berth_at %s_at = berth_shared_at(%s);\n"
                     "#pragma unroll\n"
                     "  for (int i = 0; i < %u; i++) berth_ldmatrix%s(f + %u + 4 * i, %s_at + i * %u);\n",
                     name, name, lines / 16, tile->is_deep ? "" : "_across", to, name, 2 * 16 * line_step(tile));
}

/* For 4-byte elements. Word i of the left side is one of four in a piece of 16 lines, of the right side one of two in a
 * piece of 8. */
static void add_loads(berth__text *out, const berth__kernel_sums *sums, const berth__warps *w, bool is_left,
                      uint32_t to) {
  const berth__kernel_tile *tile = is_left ? &sums->left : &sums->right;
  const uint32_t lines = is_left ? w->rows : w->columns, depth = depth_step(tile), half = mma_depth(sums) / 2;
  berth__text_printf(out,
                     "#pragma unroll\n"
                     "  for (int i = 0; i < %u; i++) {\n"
                     "    const float *const x = %s + (%s) * %u + (%s) * %u;\n",
                     lines / 4, is_left ? "left" : "right", is_left ? "i / 4 * 16 + i % 2 * 8" : "i / 2 * 8",
                     line_step(tile), is_left ? "i % 4 / 2" : "i % 2", half * depth);
  if (is_tf32(sums))
    berth__text_printf(out, "    f[%u + i] = berth_tf32_bits(*x);\n", to);
  else if (tile->is_deep)
    berth__text_printf(out, "    f[%u + i] = berth_pair_%s(((const float2 *)x)->x, ((const float2 *)x)->y);\n", to,
                       sums->kind == BERTH_COMPUTE_BF16 ? "bf16" : "f16");
  else
    berth__text_printf(out, "    f[%u + i] = berth_pair_%s(x[0], x[%u]);\n", to,
                       sums->kind == BERTH_COMPUTE_BF16 ? "bf16" : "f16", depth);
  if (is_split(sums))
    berth__text_printf(out, "    f[%u + i] = berth_tf32_bits(*x - __uint_as_float(f[%u + i]));\n",
                       to + (w->rows + w->columns) / 4, to);
  berth__text_printf(out, "  }\n");
}

/* The factors from depth k of a slot on. tf32x3: the remainder of a number after the first rounding is a second
 * factor. */
static void add_load(berth__text *out, const berth__kernel *k, uint32_t n) {
  const berth__kernel_sums *sums = &k->sums[n];
  const berth__warps w = berth__cuda_warps_of(k, sums);
  berth__text_printf(out, "BERTH_FUNCTION void berth_load_%u(unsigned *f, const %s *left, const %s *right, int k) {\n",
                     n, is_wide(k, &sums->left) ? "float" : "unsigned short",
                     is_wide(k, &sums->right) ? "float" : "unsigned short");
  berth__text_printf(out, "  const int lane = (int)threadIdx.x %% 32, warp = (int)threadIdx.x / 32 %% %u;\n", w.n);
  if (sums->parts > 1)
    berth__text_printf(out, "  k += (int)threadIdx.x / %u * %u;\n", 32 * w.n, sums->left.depth / sums->parts);
  for (int i = 0; i < 2; i++) {
    const berth__kernel_tile *tile = i == 0 ? &sums->left : &sums->right;
    add_start(out, k, sums, &w, i == 0);
    if (is_wide(k, tile))
      add_loads(out, sums, &w, i == 0, i == 0 ? 0 : w.rows / 4);
    else
      add_ldmatrix(out, tile, i == 0 ? w.rows : w.columns, i == 0, i == 0 ? 0 : w.rows / 4);
  }
  berth__text_printf(out, "}\n");
}

/* ---- Products ---- */

/* All products of the factors. The units truncate sums instead of rounding them, always in the same direction: over
 * thousands of products the error exceeds that of tf32x3 itself, so for it the core adds up sums of eight. */
static void add_products(berth__text *out, const berth__kernel *k, uint32_t n) {
  static const char *const forms[] = {"", "tf32", "tf32", "bf16", "f16"};
  const berth__kernel_sums *sums = &k->sums[n];
  const berth__warps w = berth__cuda_warps_of(k, sums);
  const uint32_t right = w.rows / 4, rest = (w.rows + w.columns) / 4, across = w.columns / 8;
  berth__text_printf(out,
                     "BERTH_FUNCTION void berth_add_%u(float *c, const unsigned *f) {\n"
                     "#pragma unroll\n"
                     "  for (int i = 0; i < %u; i++) {\n"
                     "#pragma unroll\n"
                     "    for (int j = 0; j < %u; j++) {\n",
                     n, w.rows / 16, across);
  if (is_split(sums))
    berth__text_printf(out,
                       "      float sums[4] = {0};\n"
                       "      berth_mma_tf32(sums, f + %u + 4 * i, f + %u + 2 * j);\n"
                       "      berth_mma_tf32(sums, f + 4 * i, f + %u + 2 * j);\n"
                       "      berth_mma_tf32(sums, f + 4 * i, f + %u + 2 * j);\n"
                       "#pragma unroll\n"
                       "      for (int q = 0; q < 4; q++) c[4 * (i * %u + j) + q] += sums[q];\n",
                       rest, right, rest + right, right, across);
  else
    berth__text_printf(out, "      berth_mma_%s(c + 4 * (i * %u + j), f + 4 * i, f + %u + 2 * j);\n", forms[sums->kind],
                       across, right);
  berth__text_printf(out, "    }\n  }\n}\n");
}

static void add_multiply(berth__text *out, const berth__kernel *k, uint32_t n) {
  const berth__kernel_sums *sums = &k->sums[n];
  const berth__warps w = berth__cuda_warps_of(k, sums);
  const uint32_t words = count_factors(sums, &w), step = mma_depth(sums);
  const bool ahead = is_pipelined(k, n);
  const char *left = is_wide(k, &sums->left) ? "float" : "unsigned short",
             *right = is_wide(k, &sums->right) ? "float" : "unsigned short";
  berth__text_printf(out,
                     "BERTH_FUNCTION void berth_multiply_%u(float *c, unsigned *f, const %s *left, const %s *right) {\n"
                     "#pragma unroll\n"
                     "  for (int i = %u; i < %u; i++) {\n",
                     n, left, right, ahead ? 1u : 0u, sums->left.depth / berth__sums_parts(sums) / step);
  if (ahead)
    berth__text_printf(out,
                       "    berth_load_%u(f + i %% 2 * %u, left, right, i * %u);\n"
                       "    berth_add_%u(c, f + (i - 1) %% 2 * %u);\n",
                       n, words, step, n, words);
  else
    berth__text_printf(out, "    berth_load_%u(f, left, right, i * %u);\n    berth_add_%u(c, f);\n", n, step, n);
  berth__text_printf(out, "  }\n}\n");
}

/* ---- Rows ---- */

/* Row r of a thread: two of every four sums, starting at its piece and half. */
static void add_fold(berth__text *out, const berth__kernel *k, uint32_t n, const char *name, const char *fold) {
  const berth__warps w = berth__cuda_warps_of(k, &k->sums[n]);
  berth__text_printf(out,
                     "BERTH_FUNCTION void berth_%s_%u(const float *c, float *rows) {\n"
                     "#pragma unroll\n"
                     "  for (int r = 0; r < %u; r++) {\n"
                     "    const float *const own = c + r / 2 * %u + r %% 2 * 2;\n"
                     "    float x = %s(own[0], own[1]);\n"
                     "#pragma unroll\n"
                     "    for (int j = 1; j < %u; j++) x = %s(x, %s(own[4 * j], own[4 * j + 1]));\n"
                     "    x = %s(x, berth_other(x, 1));\n"
                     "    rows[r] = %s(x, berth_other(x, 2));\n"
                     "  }\n}\n",
                     name, n, w.rows / 8, w.columns / 2, fold, w.columns / 8, fold, fold, fold, fold);
}

static void add_folds(berth__text *out, const berth__kernel *k, uint32_t n) {
  if (!k->sums[n].has_rows) return;
  add_fold(out, k, n, "largest", "berth_larger");
  add_fold(out, k, n, "total", "berth_plus");
}

/* ---- Functions of this kernel ---- */

/* The last multiplication waits for the first factors of the next piece, or for the `settle`. */
static void add_ahead(berth__text *out, const berth__kernel *k, uint32_t n) {
  const berth__kernel_sums *sums = &k->sums[n];
  const berth__warps w = berth__cuda_warps_of(k, sums);
  berth__text_printf(out, "#undef BERTH_AHEAD_%u\n#undef BERTH_SETTLE_%u\n#undef BERTH_FINISH_%u\n", n, n, n);
  berth__text_printf(out, "#define BERTH_SETTLE_%u\n", n);
  if (!is_pipelined(k, n)) {
    berth__text_printf(out, "#define BERTH_AHEAD_%u(slot)\n#define BERTH_FINISH_%u\n", n, n);
    return;
  }
  const uint32_t last = count_factors(sums, &w);
  berth__text_printf(out,
                     "#define BERTH_AHEAD_%u(slot) berth_load_%u(f%u, s%u + (slot) * %u, s%u + (slot) * %u, 0), "
                     "berth_add_%u(c%u, f%u + %u)\n",
                     n, n, n, sums->left.array, slot_step(&sums->left), sums->right.array, slot_step(&sums->right), n,
                     n, n, last);
  berth__text_printf(out, "#define BERTH_FINISH_%u berth_add_%u(c%u, f%u + %u)\n", n, n, n, n, last);
}

/* Sum number 4 * (i * columns / 8 + j) + q of a thread: row q / 2 * 8 and column q % 2 of its share of a piece. If sums
 * have parts, each part has a range of the numbers. */
static void add_places(berth__text *out, const berth__kernel *kernel, uint32_t n) {
  const berth__kernel_sums *sums = &kernel->sums[n];
  const berth__warps w = berth__cuda_warps_of(kernel, sums);
  const uint32_t across = w.columns / 8, t = sums->together,
                 of_part = w.rows * w.columns / 32 / t / berth__sums_parts(sums);
  berth__text_printf(out, "#undef BERTH_ROW_%u\n#undef BERTH_COLUMN_%u\n#undef BERTH_NUMBER_%u\n", n, n, n);
  if (sums->parts > 1)
    berth__text_printf(out, "#define BERTH_NUMBER_%u(e) (((e) + (int)threadIdx.x / %u * %u) * %u)\n", n, 32 * w.n,
                       of_part, t);
  else
    berth__text_printf(out, "#define BERTH_NUMBER_%u(e) ((e) * %u)\n", n, t);
  if (sums->by_fours) {
    berth__cuda_fours_places(kernel, n, out);
    return;
  }
  berth__text_printf(out,
                     "#define BERTH_ROW_%u(e) ((int)threadIdx.x / 32 %% %u / %u * %u + BERTH_NUMBER_%u(e) / %u * 16 + "
                     "BERTH_NUMBER_%u(e) %% 4 / 2 * 8 + (int)threadIdx.x %% 32 / 4)\n",
                     n, w.n, w.across, w.rows, n, 4 * across, n);
  berth__text_printf(
      out,
      "#define BERTH_COLUMN_%u(e) ((int)threadIdx.x / 32 %% %u * %u + BERTH_NUMBER_%u(e) / 4 %% %u * 8 + "
      "BERTH_NUMBER_%u(e) %% 2 + (int)threadIdx.x %% 4 * 2)\n",
      n, w.across, w.columns, n, across, n);
  if (sums->has_rows)
    berth__text_printf(out, "#undef BERTH_LINE_%u\n#define BERTH_LINE_%u(e) ((e) * %u / %u * 2 + (e) * %u %% 4 / 2)\n",
                       n, n, t, 4 * across, t);
}

static void add_words(berth__text *out, const berth__kernel *kernel, uint32_t n) {
  const berth__kernel_sums *sums = &kernel->sums[n];
  const berth__warps w = berth__cuda_warps_of(kernel, sums);
  const uint32_t t = sums->together;
  berth__text_printf(out, "#undef BERTH_MULTIPLY_%u\n#undef BERTH_EACH_%u\n#undef BERTH_SUM_%u\n", n, n, n);
  berth__text_printf(
      out, "#define BERTH_MULTIPLY_%u(slot) berth_multiply_%u(c%u, f%u, s%u + (slot) * %u, s%u + (slot) * %u)\n", n, n,
      n, n, sums->left.array, slot_step(&sums->left), sums->right.array, slot_step(&sums->right));
  berth__text_printf(out, "#define BERTH_EACH_%u(e) _Pragma(\"unroll\") for (int e = 0; e < %u; e++)\n", n,
                     w.rows * w.columns / 32 / t / berth__sums_parts(sums));
  berth__text_printf(out, "#define BERTH_SUM_%u(e, which) c%u[(e) * %u + (which)]\n", n, n, t);
}

/* Sums of all parts are stored in the memory of a tile, as [number][part][thread of the part]. */
static void add_join(berth__text *out, const berth__kernel *kernel, uint32_t n) {
  const berth__kernel_sums *sums = &kernel->sums[n];
  const berth__warps w = berth__cuda_warps_of(kernel, sums);
  if (sums->parts <= 1) return;
  const uint32_t count = w.rows * w.columns / 32, of_part = count / sums->parts, threads = kernel->group_size;
  berth__text_printf(out,
                     "#undef BERTH_JOIN_%u\n#define BERTH_JOIN_%u berth_join_%u(c%u, (float *)s%u)\n"
                     "BERTH_FUNCTION void berth_join_%u(float *c, float *room) {\n"
                     "  const int thread = (int)threadIdx.x, part = thread / %u, own = thread %% %u;\n"
                     "  __syncthreads();\n"
                     "#pragma unroll\n"
                     "  for (int i = 0; i < %u; i++) room[i * %u + thread] = c[i];\n"
                     "  __syncthreads();\n",
                     n, n, n, n, berth__sums_room(kernel, sums), n, 32 * w.n, 32 * w.n, count, threads);
  berth__text_printf(out,
                     "#pragma unroll\n"
                     "  for (int i = 0; i < %u; i++) {\n"
                     "    const float *const from = room + (part * %u + i) * %u + own;\n"
                     "    c[i] = from[0];\n"
                     "#pragma unroll\n"
                     "    for (int p = 1; p < %u; p++) c[i] += from[p * %u];\n"
                     "  }\n}\n",
                     of_part, of_part, threads, sums->parts, 32 * w.n);
}

static void add_multiplying(berth__text *out, const berth__kernel *kernel, uint32_t n) {
  if (kernel->sums[n].is_late) {
    berth__cuda_warpgroup_open(kernel, n, out);
    return;
  }
  if (kernel->sums[n].by_fours) {
    berth__cuda_fours_open(kernel, n, out);
    return;
  }
  add_load(out, kernel, n);
  add_products(out, kernel, n);
  add_multiply(out, kernel, n);
  add_ahead(out, kernel, n);
}

void berth__cuda_tiles_open(const berth__kernel *kernel, berth__text *out) {
  if (kernel->n_sums != 0) berth__text_printf(out, "#undef BERTH_ARRIVED\n#define BERTH_ARRIVED\n");
  for (uint32_t n = 0; n < kernel->n_sums; n++) {
    add_multiplying(out, kernel, n);
    add_words(out, kernel, n);
    add_places(out, kernel, n);
    add_join(out, kernel, n);
    add_folds(out, kernel, n);
  }
}
