/* Tiles that a warpgroup multiplies (wgmma), for compute capability 9.0. Its four warps have 64 rows, 16 each, and all
 * columns; both sides are read from shared memory, asynchronously. */
#include "kernel/render_cuda.h"

#define STEP 16u /* steps of the depth per instruction */
#define MOST_ROWS 64u

/* Tests define each of these in plain C (tests/device/fake_cuda/shim.h). A matrix descriptor has the start address, in
 * units of 16 bytes, and the strides between its groups of eight lines and its panels; rows are swizzled by 128
 * bytes. */
static const char prelude[] =
    "typedef unsigned long long berth_matrix;\n"
    "BERTH_FUNCTION berth_matrix berth_matrix_of(const void *at, unsigned panel) {\n"
    "  return (unsigned long long)((berth_shared_at(at) & 0x3ffffu) >> 4) | (unsigned long long)(panel >> 4) << 16 |\n"
    "         (unsigned long long)(1024 >> 4) << 32 | 1ull << 62;\n"
    "}\n"
    "#define berth_matrix_step(matrix, bytes) ((matrix) + ((bytes) >> 4))\n"
    "#define berth_warpgroup_begin() asm volatile(\"wgmma.fence.sync.aligned;\" : : : \"memory\")\n"
    "#define berth_warpgroup_commit() asm volatile(\"wgmma.commit_group.sync.aligned;\" : : : \"memory\")\n"
    "#define berth_warpgroup_wait(n) asm volatile(\"wgmma.wait_group.sync.aligned %0;\" : : \"n\"(n) : \"memory\")\n"
    "#define berth_arrived() asm volatile(\"fence.proxy.async.shared::cta;\" : : : \"memory\")\n"
    "#define berth_keep(x) asm volatile(\"\" : \"+f\"(x) : : \"memory\")\n";

bool berth__cuda_warpgroup_fits(const berth__kernel *kernel, const berth__kernel_sums *sums) {
  const uint32_t groups = kernel->group_size / 128, columns = sums->right.lines;
  const bool is_narrow = sums->kind == BERTH_COMPUTE_BF16 || sums->kind == BERTH_COMPUTE_F16;
  return is_narrow && sums->left.row != 0 && sums->right.row != 0 && kernel->group_size % 128 == 0 &&
         sums->left.lines == MOST_ROWS * groups && columns % 8 == 0 && columns <= 256 && sums->together <= 2 &&
         sums->left.depth == sums->left.row && sums->parts <= 1 && !sums->has_rows;
}

/* Lists all registers by name: wgmma has no other syntax. */
static void add_instruction(berth__text *out, const berth__kernel_sums *sums) {
  const char *form = sums->kind == BERTH_COMPUTE_BF16 ? "bf16" : "f16";
  const uint32_t columns = sums->right.lines, n = columns / 2;
  berth__text_printf(
      out,
      "BERTH_FUNCTION void berth_wgmma(float *c, berth_matrix left, berth_matrix right) {\n"
      "  asm volatile(\"{ .reg .pred p; setp.ne.b32 p, %%%u, 0; wgmma.mma_async.sync.aligned.m64n%uk16.f32.%s.%s {\"\n",
      n + 2, columns, form, form);
  for (uint32_t i = 0; i < n; i++)
    berth__text_printf(out, "%s%%%u%s", i % 16 == 0 ? "  \"" : " ", i,
                       i + 1 == n     ? "}\"\n"
                       : i % 16 == 15 ? ",\"\n"
                                      : ",");
  berth__text_printf(out, "  \", %%%u, %%%u, p, 1, 1, %d, %d; }\"\n  :", n, n + 1, !sums->left.is_deep,
                     !sums->right.is_deep);
  for (uint32_t i = 0; i < n; i++)
    berth__text_printf(out, " \"+f\"(c[%u])%s", i, i + 1 == n ? "\n" : i % 8 == 7 ? ",\n  " : ",");
  berth__text_printf(out, "  : \"l\"(left), \"l\"(right), \"r\"(1));\n}\n");
}

void berth__cuda_warpgroup_prelude(const berth__kernel *kernel, berth__text *out) {
  for (uint32_t n = 0; n < kernel->n_sums; n++) {
    if (!kernel->sums[n].is_late) continue;
    berth__text_add(out, prelude, sizeof prelude - 1);
    add_instruction(out, &kernel->sums[n]);
    return; /* all sums of a kernel are alike */
  }
}

/* A step of the depth advances along rows if neighbours along the depth are contiguous, otherwise over rows. */
static uint32_t warpgroup_step(const berth__kernel_tile *tile) {
  return tile->is_deep ? 2 * STEP : STEP * BERTH__ROW_BYTES;
}

/* Stride between panels of 64 lines, if lines are contiguous. */
static uint32_t warpgroup_panel(const berth__kernel_tile *tile) {
  return tile->is_deep ? 16 : tile->depth * BERTH__ROW_BYTES;
}

void berth__cuda_warpgroup_open(const berth__kernel *kernel, uint32_t n, berth__text *out) {
  const berth__kernel_sums *sums = &kernel->sums[n];
  const uint32_t count = sums->right.lines / 2;
  berth__text_printf(
      out,
      "#define BERTH_WGMMA %u, %d, %d, %d\n" /* the shape of berth_wgmma, for tests */
      "BERTH_FUNCTION void berth_multiply_%u(float *c, unsigned *f, const unsigned short *left, const unsigned short "
      "*right) {\n"
      "  const berth_matrix a = berth_matrix_of(left + (int)threadIdx.x / 128 * %u, %u);\n"
      "  const berth_matrix b = berth_matrix_of(right, %u);\n"
      "  berth_warpgroup_begin();\n"
      "#pragma unroll\n"
      "  for (int i = 0; i < %u; i++)\n"
      "    berth_wgmma(c, berth_matrix_step(a, i * %u), berth_matrix_step(b, i * %u));\n"
      "  berth_warpgroup_commit();\n"
      "  berth_warpgroup_wait(1);\n"
      "}\n",
      sums->right.lines, sums->left.is_deep, sums->right.is_deep, sums->kind == BERTH_COMPUTE_BF16, n,
      sums->left.is_deep ? MOST_ROWS * sums->left.row : sums->left.depth * sums->left.row, warpgroup_panel(&sums->left),
      warpgroup_panel(&sums->right), sums->left.depth / STEP, warpgroup_step(&sums->left),
      warpgroup_step(&sums->right));
  berth__text_printf(out,
                     "BERTH_FUNCTION void berth_settle_%u(float *c) {\n"
                     "  berth_warpgroup_wait(0);\n"
                     "#pragma unroll\n"
                     "  for (int i = 0; i < %u; i++) berth_keep(c[i]);\n"
                     "}\n"
                     "#undef BERTH_AHEAD_%u\n#undef BERTH_SETTLE_%u\n#undef BERTH_FINISH_%u\n#undef BERTH_ARRIVED\n"
                     "#define BERTH_AHEAD_%u(slot)\n#define BERTH_SETTLE_%u berth_settle_%u(c%u)\n"
                     "#define BERTH_FINISH_%u BERTH_SETTLE_%u\n"
                     "#define BERTH_ARRIVED berth_arrived();\n",
                     n, count, n, n, n, n, n, n, n, n, n);
}
