/* Tiles of f32, for which there are no matrix units: a warp's threads are arranged eight by four, and each multiplies
 * its own lines in registers. It loads four neighbours of a tile at a time: along the depth, or four lines. */
#include <stdio.h>

#include "kernel/render_cuda.h"

#define DOWN 8u
#define ACROSS 4u
#define STEP 4u   /* along the depth */
#define UNROLL 8u /* steps */

/* Lines of a thread, and how many of them are adjacent: those are loaded together. Lines that are contiguous along the
 * depth are loaded one by one, and neighbouring threads have neighbouring ones, which are in different banks. */
typedef struct lines {
  const berth__kernel_tile *tile;
  uint32_t n, beside, threads;
} lines;

static lines lines_of(const berth__kernel *k, const berth__kernel_sums *sums, bool is_left) {
  const berth__warps w = berth__cuda_warps_of(k, sums);
  lines l = {.tile = is_left ? &sums->left : &sums->right, .threads = is_left ? DOWN : ACROSS};
  l.n = (is_left ? w.rows : w.columns) / l.threads;
  l.beside = is_left ? 1 : sums->together;
  if (!l.tile->is_deep) l.beside = l.n < 4 ? l.n : 4;
  return l;
}

bool berth__cuda_fours_fit(const berth__kernel *kernel, const berth__kernel_sums *sums) {
  const uint32_t threads = kernel->group_size / berth__sums_parts(sums);
  if (sums->kind != BERTH_COMPUTE_F32 || sums->type != BERTH__NUM_F32 || sums->has_rows || threads % 32 != 0 ||
      berth__cuda_warps_of(kernel, sums).across == 0 || sums->left.depth / berth__sums_parts(sums) % STEP != 0)
    return false;
  for (int i = 0; i < 2; i++) {
    const lines l = lines_of(kernel, sums, i == 0);
    if (l.n % l.beside != 0 || l.tile->pitch % 4 != 0 || kernel->shared[l.tile->array].storage != BERTH_F32)
      return false;
    if (i == 1 && l.beside % sums->together != 0) return false;
  }
  return true;
}

/* Loads STEP steps of the depth from d on: x[depth * n + line]. */
static void add_taking(berth__text *out, const lines *l, const char *name, const char *x) {
  const uint32_t pitch = l->tile->pitch, apart = l->threads * l->beside;
  berth__text_printf(out, "#pragma unroll\n");
  if (l->tile->is_deep) {
    berth__text_printf(out,
                       "    for (int i = 0; i < %u; i++) {\n"
                       "      const float4 four = *(const float4 *)(%s + (i / %u * %u + i %% %u) * %u + d);\n"
                       "      %s[i] = four.x, %s[%u + i] = four.y, %s[%u + i] = four.z, %s[%u + i] = four.w;\n"
                       "    }\n",
                       l->n, name, l->beside, apart, l->beside, pitch, x, x, l->n, x, 2 * l->n, x, 3 * l->n);
    return;
  }
  berth__text_printf(out,
                     "    for (int i = 0; i < %u; i++) {\n"
                     "      const float%u some = *(const float%u *)(%s + (d + i / %u) * %u + i %% %u * %u);\n"
                     "      float *const to = %s + i * %u;\n"
                     "      to[0] = some.x, to[1] = some.y;\n",
                     STEP * l->n / l->beside, l->beside, l->beside, name, l->n / l->beside, pitch, l->n / l->beside,
                     apart, x, l->beside);
  if (l->beside == 4) berth__text_printf(out, "      to[2] = some.z, to[3] = some.w;\n");
  berth__text_printf(out, "    }\n");
}

/* The offset of the thread's first line. */
static void add_start(berth__text *out, const lines *l, const char *name, const char *warp, const char *thread) {
  berth__text_printf(out, "  %s += (%s * %u + %s * %u) * %u + k * %u;\n", name, warp, l->n * l->threads, thread,
                     l->beside, l->tile->is_deep ? l->tile->pitch : 1, l->tile->is_deep ? 1 : l->tile->pitch);
}

void berth__cuda_fours_open(const berth__kernel *kernel, uint32_t n, berth__text *out) {
  const berth__kernel_sums *sums = &kernel->sums[n];
  const berth__warps w = berth__cuda_warps_of(kernel, sums);
  const lines left = lines_of(kernel, sums, true), right = lines_of(kernel, sums, false);
  const uint32_t deep = sums->left.depth / berth__sums_parts(sums);
  char down[32], across[32];
  snprintf(down, sizeof down, "warp / %u", w.across);
  snprintf(across, sizeof across, "warp %% %u", w.across);
  berth__text_printf(
      out,
      "BERTH_FUNCTION void berth_multiply_%u(float *c, unsigned *f, const float *left, const float *right) {\n"
      "  const int lane = (int)threadIdx.x %% 32, warp = (int)threadIdx.x / 32 %% %u, k = (int)threadIdx.x / %u * "
      "%u;\n",
      n, w.n, 32 * w.n, deep);
  add_start(out, &left, "left", down, "lane / 4");
  add_start(out, &right, "right", across, "lane % 4");
  berth__text_printf(out,
                     "#pragma unroll %u\n"
                     "  for (int d = 0; d < %u; d += %u) {\n"
                     "    float a[%u], b[%u];\n",
                     UNROLL, deep, STEP, STEP * left.n, STEP * right.n);
  add_taking(out, &left, "left", "a");
  add_taking(out, &right, "right", "b");
  berth__text_printf(out,
                     "#pragma unroll\n"
                     "    for (int i = 0; i < %u; i++)\n"
                     "#pragma unroll\n"
                     "      for (int j = 0; j < %u; j++)\n"
                     "        c[j] = fmaf(a[i * %u + j / %u], b[i * %u + j %% %u], c[j]);\n"
                     "  }\n}\n",
                     STEP, left.n * right.n, left.n, right.n, right.n, right.n);
  berth__text_printf(out,
                     "#undef BERTH_AHEAD_%u\n#undef BERTH_SETTLE_%u\n#undef BERTH_FINISH_%u\n"
                     "#define BERTH_AHEAD_%u(slot)\n#define BERTH_SETTLE_%u\n#define BERTH_FINISH_%u\n",
                     n, n, n, n, n, n);
}

/* Line i of a thread; i is an expression. */
static void add_line(berth__text *out, const lines *l, uint32_t n, const char *i, uint32_t of, const char *thread) {
  char number[48];
  snprintf(number, sizeof number, "(BERTH_NUMBER_%u(e) %s %u)", n, i, of);
  if (l->beside == l->n)
    berth__text_printf(out, "%s * %u + %s)\n", thread, l->beside, number);
  else
    berth__text_printf(out, "%s / %u * %u + %s * %u + %s %% %u)\n", number, l->beside, l->threads * l->beside, thread,
                       l->beside, number, l->beside);
}

void berth__cuda_fours_places(const berth__kernel *kernel, uint32_t n, berth__text *out) {
  const berth__kernel_sums *sums = &kernel->sums[n];
  const berth__warps w = berth__cuda_warps_of(kernel, sums);
  const lines left = lines_of(kernel, sums, true), right = lines_of(kernel, sums, false);
  berth__text_printf(out, "#define BERTH_ROW_%u(e) ((int)threadIdx.x / 32 %% %u / %u * %u + ", n, w.n, w.across,
                     w.rows);
  add_line(out, &left, n, "/", right.n, "(int)threadIdx.x % 32 / 4");
  berth__text_printf(out, "#define BERTH_COLUMN_%u(e) ((int)threadIdx.x / 32 %% %u * %u + ", n, w.across, w.columns);
  add_line(out, &right, n, "%", right.n, "(int)threadIdx.x % 4");
}
