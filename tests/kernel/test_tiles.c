/* Products, convolutions, attention and recurrent layers in every form that limits may choose, at sizes that are no
 * multiple of anything, against the reference kernels. */
#include <stdlib.h>

#include "against.h"
#include "support.h"

#define ONE(a) "graph \"g\" { input %a : " a " "
#define TWO(a, b) "graph \"g\" { input %a : " a " input %b : " b " "
#define THREE(a, b, c) TWO(a, b) "input %c : " c " "
#define OUT " output \"o\" = %o }"

/* ---- Tests ---- */

static void products(void **state) {
  (void)state;
  check_all_limits(TWO("f32[70, 37]", "f32[37, 69]") "%o = matmul(%a, %b)" OUT, "tiled", 1e-5);
  check_all_limits(TWO("f32[3, 33, 64]", "f32[64, 40]") "%o = matmul(%a, %b)" OUT, "tiled", 1e-5);
  check_all_limits(TWO("f32[2, 1, 20, 35]", "f32[3, 35, 19]") "%o = matmul(%a, %b)" OUT, "tiled", 1e-5);
  check_all_limits(TWO("i32[40, 33]", "i32[33, 40]") "%o = matmul(%a, %b)" OUT, "tiled", 0);
  check_all_limits(TWO("u8[40, 33]", "u8[33, 40]") "%o = matmul(%a, %b)" OUT, "tiled", 0);
  check_all_limits(TWO("f32[300, 40]", "f32[40, 260]") "%o = matmul(%a, %b)" OUT, "tiled", 1e-5);
}

static void long_sums(void **state) {
  (void)state;
  check_all_limits(TWO("f32[1, 300]", "f32[300, 70]") "%o = matmul(%a, %b)" OUT, "split", 1e-4);
  check_all_limits(TWO("f32[300]", "f32[300]") "%o = matmul(%a, %b)" OUT, "split", 1e-4);
  check_all_limits(TWO("f32[45, 300]", "f32[300]") "%o = matmul(%a, %b)" OUT, "split", 1e-4);
  check_all_limits(TWO("f32[5, 2100]", "f32[2100, 3]") "%o = matmul(%a, %b)" OUT, "split", 1e-4);
  check_against(TWO("f32[1, 2100]", "f32[2100, 3]") "%o = matmul(%a, %b)" OUT, &limits_plain, "split", 1e-4);
}

static void epilogues(void **state) {
  (void)state;
  check_all_limits(THREE("f32[2, 20, 33]", "f32[33, 24]", "f32[24]") "input %d : f32[20, 1] %o = product(%a, %b, %c, %d) "
            "{columns = 24, code = [1, 0, 1, 0, 22, 2, 0, 0]}" OUT, "tiled", 1e-5);
  check_all_limits(TWO("f32[1, 2, 90]", "f32[4, 90, 8]") "%o = product(%a, %b) {columns = 27, panel = 8}" OUT, "split",
                   1e-4);
  check_all_limits(THREE("f32[3, 40, 50]", "f32[3, 50, 16]",
                         "f32[3, 40, 16]") "%o = product(%a, %b, _, %c) {columns = 16, adds = 1}" OUT,
                   "tiled", 1e-5);
  check_all_limits(THREE("f32[2, 20, 333]", "f32[333, 224]", "f32[224]") "%o = product(%a, %b, %c) {columns = 224, "
            "code = [22, 0, 0, 0]}" OUT, "deep", 1e-3);
}

/* Both sides of a product come in words, along the depth or as columns, but for odd extents. Where a thread has several
 * columns its results go in words, too. */
static void narrow_products(void **state) {
  static const berth__kernel_limits *const all[] = {&limits_plain, &limits_large, &limits_small};
  (void)state;
  for (int i = 0; i < 3; i++) {
    const berth__kernel_limits *limits = all[i];
    void (*check)(const char *, const berth__kernel_limits *, const char *, double) =
        i == 0 ? check_words : check_narrow;
    check(TWO("f16[70, 38]", "f16[38, 68]") "%o = matmul(%a, %b)" OUT, limits, NULL, 2e-3);
    check(TWO("bf16[3, 34, 64]", "bf16[3, 64, 40]") "%o = matmul(%a, %b)" OUT, limits, NULL, 2e-2);
    check(TWO("f16[70, 37]", "f16[37, 68]") "%o = matmul(%a, %b)" OUT, limits, NULL, 2e-3);
    check_words(TWO("f16[300, 40]", "f16[40, 260]") "%o = matmul(%a, %b)" OUT, limits, NULL, 2e-3);
    check(TWO("u8[40, 36]", "u8[36, 40]") "%o = matmul(%a, %b)" OUT, limits, NULL, 0);
    check(TWO("i16[19, 34]", "i16[34, 22]") "%o = matmul(%a, %b)" OUT, limits, NULL, 0);
    check_words(TWO("f16[1, 300]", "f16[300, 72]") "%o = matmul(%a, %b)" OUT, limits, NULL, 2e-2);
    check_narrow(TWO("f16[9, 2100]", "f16[2100, 4]") "%o = matmul(%a, %b)" OUT, limits, NULL, 2e-2);
  }
  check_narrow(TWO("f16[33, 29]", "f16[29, 31]") "%o = matmul(%a, %b)" OUT, &limits_plain, NULL, 2e-3);
}

/* Sums by matrix units, with each kind of numbers: sides that are copied and sides that are fetched, along the depth
 * and across it, and edges that no tile ends at. */
static void matrices(void **state) {
  static const struct {
    berth_compute compute;
    double tolerance;
  } kinds[] = {
      {BERTH_COMPUTE_TF32X3, 2e-6}, {BERTH_COMPUTE_TF32, 4e-3}, {BERTH_COMPUTE_F16, 4e-3}, {BERTH_COMPUTE_BF16, 3e-2}};
  (void)state;
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    const berth_compute compute = kinds[i].compute;
    const double tolerance = kinds[i].tolerance;
    check_matrix(TWO("f32[70, 37]", "f32[37, 69]") "%o = matmul(%a, %b)" OUT, compute, false, tolerance);
    check_matrix(TWO("f32[2, 40, 64]", "f32[2, 64, 36]") "%o = matmul(%a, %b)" OUT, compute, false, tolerance);
    check_matrix(THREE("f32[2, 20, 33]", "f32[33, 24]", "f32[24]") "input %d : f32[20, 1] %o = product(%a, %b, %c, %d) "
              "{columns = 24, code = [1, 0, 1, 0, 22, 2, 0, 0]}" OUT, compute, false, tolerance);
    check_matrix(THREE("f32[2, 5, 11, 13]", "f32[18, 5, 3, 3]", "f32[18]") "%o = conv(%a, %b, %c) "
              "{pads = [1, 2, 1, 0], strides = [2, 1], code = [22, 0, 0, 0]}" OUT, compute, false, tolerance);
  }
  check_matrix(TWO("f16[70, 40]", "f16[40, 72]") "%o = matmul(%a, %b)" OUT, BERTH_COMPUTE_F32, true, 2e-3);
  check_matrix(TWO("bf16[3, 33, 64]", "bf16[3, 64, 40]") "%o = matmul(%a, %b)" OUT, BERTH_COMPUTE_F32, true, 2e-2);
  check_matrix(TWO("bf16[20, 80]", "bf16[80, 17]") "%o = matmul(%a, %b)" OUT, BERTH_COMPUTE_F32, true, 2e-2);
  check_matrix(TWO("f32[130, 200]", "f32[200, 48]") "%o = product(%a, %b) {columns = 48}" OUT, BERTH_COMPUTE_BF16,
               false, 3e-2);
}

/* Cooperative matrices: whatever is not stored as it is multiplied is fetched; sums with parts; words. */
static void matrices_apart(void **state) {
  static const struct {
    berth_compute compute;
    double tolerance;
  } kinds[] = {{BERTH_COMPUTE_F16, 4e-3}, {BERTH_COMPUTE_BF16, 3e-2}};
  (void)state;
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    const berth_compute compute = kinds[i].compute;
    const double tolerance = kinds[i].tolerance;
    check_apart(TWO("f32[70, 37]", "f32[37, 69]") "%o = matmul(%a, %b)" OUT, compute, false, tolerance);
    check_apart(THREE("f32[2, 20, 33]", "f32[33, 24]", "f32[24]") "input %d : f32[20, 1] %o = product(%a, %b, %c, %d) "
              "{columns = 24, code = [1, 0, 1, 0, 22, 2, 0, 0]}" OUT, compute, false, tolerance);
    check_apart(THREE("f32[2, 5, 11, 13]", "f32[18, 5, 3, 3]", "f32[18]") "%o = conv(%a, %b, %c) "
              "{pads = [1, 2, 1, 0], strides = [2, 1], code = [22, 0, 0, 0]}" OUT, compute, false, tolerance);
  }
  check_apart(TWO("f16[70, 40]", "f16[40, 72]") "%o = matmul(%a, %b)" OUT, BERTH_COMPUTE_F32, true, 2e-3);
  check_apart(TWO("bf16[3, 33, 64]", "bf16[3, 64, 40]") "%o = matmul(%a, %b)" OUT, BERTH_COMPUTE_F32, true, 2e-2);
  check_apart(TWO("bf16[70, 512]", "bf16[512, 80]") "%o = matmul(%a, %b)" OUT, BERTH_COMPUTE_F32, true, 2e-2);
  check_apart(TWO("f32[128, 512]", "f32[512, 128]") "%o = matmul(%a, %b)" OUT, BERTH_COMPUTE_F16, false, 2e-2);
  check_apart(TWO("f32[90, 768]", "f32[768, 48]") "%o = product(%a, %b) {columns = 48}" OUT, BERTH_COMPUTE_BF16, false,
              1e-1);
}

/* Results that are stored in runs: of 4 and of 2 bytes, with a bias, with summands in runs, for whole rows and across
 * them, and with all that at once; in batches, channels last, and in sections. */
static void staged_matrices(void **state) {
  (void)state;
  check_staged(TWO("bf16[70, 64]", "bf16[64, 72]") "%o = matmul(%a, %b)" OUT, BERTH_COMPUTE_F32, true, 2e-2);
  check_staged(TWO("f16[3, 33, 40]", "f16[3, 40, 72]") "%o = matmul(%a, %b)" OUT, BERTH_COMPUTE_F32, true, 2e-3);
  /* more rows of tiles than a band has */
  check_staged(TWO("bf16[400, 32]", "bf16[32, 72]") "%o = matmul(%a, %b)" OUT, BERTH_COMPUTE_F32, true, 2e-2);
  check_staged(TWO("f32[70, 40]", "f32[40, 68]") "%o = matmul(%a, %b)" OUT, BERTH_COMPUTE_TF32, false, 4e-3);
  check_staged(THREE("bf16[70, 64]", "bf16[64, 72]", "bf16[72]") "input %d : bf16[70, 72] "
              "%o = product(%a, %b, %c, %d) {columns = 72, adds = 1}" OUT, BERTH_COMPUTE_F32, true, 3e-2);
  check_staged(THREE("f16[70, 64]", "f16[64, 72]", "f16[72]") "input %d : f16[70, 72] input %e : f16[70, 1] "
              "%o = product(%a, %b, %c, %d, %e) {columns = 72, adds = 1, code = [1, 0, 1, 0, 22, 2, 0, 0]}" OUT,
               BERTH_COMPUTE_F32, true, 4e-3);
  check_staged(THREE("f32[70, 64]", "f32[64, 72]", "f32[72]") "input %d : f32[70, 72] input %e : f32[72] "
              "%o = product(%a, %b, %c, %d, %e) {columns = 72, adds = 1, code = [1, 0, 1, 0, 22, 2, 0, 0]}" OUT,
               BERTH_COMPUTE_BF16, false, 4e-2);
  check_staged(THREE("f32[70, 64]", "f32[64, 72]", "f32[72]") "input %d : f32[70, 1] "
              "%o = product(%a, %b, %c, %d) {columns = 72, code = [1, 0, 1, 0, 22, 2, 0, 0]}" OUT,
               BERTH_COMPUTE_TF32X3, false, 2e-5);
}

/* Few results with long sums: parts of a workgroup share the depth. */
static void long_matrices(void **state) {
  (void)state;
  check_matrix(TWO("f32[70, 700]", "f32[700, 72]") "%o = matmul(%a, %b)" OUT, BERTH_COMPUTE_TF32, false, 1e-2);
  check_matrix(TWO("f32[130, 513]", "f32[513, 33]") "%o = matmul(%a, %b)" OUT, BERTH_COMPUTE_TF32X3, false, 1e-5);
  check_matrix(TWO("f32[90, 768]", "f32[768, 48]") "%o = product(%a, %b) {columns = 48}" OUT, BERTH_COMPUTE_BF16, false,
               1e-1);
  check_matrix(TWO("bf16[70, 512]", "bf16[512, 80]") "%o = matmul(%a, %b)" OUT, BERTH_COMPUTE_F32, true, 2e-2);
  check_matrix(THREE("f32[1, 32, 7, 7]", "f32[40, 32, 3, 3]", "f32[40]") "%o = conv(%a, %b, %c) "
            "{pads = [1, 1, 1, 1], code = [22, 0, 0, 0]}" OUT, BERTH_COMPUTE_TF32, false, 1e-2);
}

/* f32 as it is, where both sides can be copied: large and small tiles, parts, edges and both ways to lie. */
static void fours(void **state) {
  (void)state;
  check_matrix(TWO("f32[70, 40]", "f32[40, 72]") "%o = matmul(%a, %b)" OUT, BERTH_COMPUTE_F32, false, 1e-5);
  check_matrix(TWO("f32[2, 40, 64]", "f32[2, 64, 36]") "%o = matmul(%a, %b)" OUT, BERTH_COMPUTE_F32, false, 1e-5);
  check_matrix(TWO("f32[70, 700]", "f32[700, 72]") "%o = matmul(%a, %b)" OUT, BERTH_COMPUTE_F32, false, 1e-4);
  check_matrix(TWO("f32[1300, 36]", "f32[36, 1304]") "%o = matmul(%a, %b)" OUT, BERTH_COMPUTE_F32, false, 1e-5);
  check_matrix(TWO("f32[600, 64]", "f32[64, 700]") "%o = matmul(%a, %b)" OUT, BERTH_COMPUTE_F32, false, 1e-5);
  /* sums of a thread whose end takes more operands than are held at once */
  check_matrix(THREE("f32[1300, 36]", "f32[36, 1304]", "f32[1300, 1304]") "input %d : f32[1300, 1304] "
            "%o = product(%a, %b, _, %c, %d) {columns = 1304, adds = 1, code = [1, 0, 1, 0]}" OUT, BERTH_COMPUTE_F32,
               false, 1e-5);
  check_matrix(THREE("f32[2, 20, 36]", "f32[36, 24]", "f32[24]") "input %d : f32[20, 1] %o = product(%a, %b, %c, %d) "
            "{columns = 24, code = [1, 0, 1, 0, 22, 2, 0, 0]}" OUT, BERTH_COMPUTE_F32, false, 1e-5);
}

static void narrow_rows(void **state) {
  static const berth__kernel_limits *const all[] = {&limits_large, &limits_small, &limits_plain};
  (void)state;
  for (int i = 0; i < 3; i++) {
    const berth__kernel_limits *limits = all[i];
    check_words("graph \"g\" { input %a : f16[5, 70] %o = softmax(%a) {axis = -1}" OUT, limits, NULL, 1e-3);
    check_words("graph \"g\" { input %a : bf16[90, 6] %o = log_softmax(%a) {axis = -1}" OUT, limits, NULL, 1e-2);
    check_words(THREE("f16[4, 3, 40]", "f16[40]", "f16[40]") "%o = layer_norm(%a, %b, %c) {axis = -1}" OUT, limits,
                NULL, 2e-3);
    check_words(TWO("bf16[80, 300]", "bf16[300]") "%o = rms_norm(%a, %b) {axis = -1}" OUT, limits, NULL, 2e-2);
    check_words(THREE("f16[1, 4, 19, 64]", "f16[1, 2, 45, 64]", "f16[1, 2, 45, 64]") "%o = attention(%a, %b, %c)" OUT,
                limits, NULL, 2e-3);
    check_words(THREE("f16[1, 4, 1, 24]", "f16[1, 2, 500, 24]", "f16[1, 2, 500, 20]") "%o = attention(%a, %b, %c)" OUT,
                limits, i == 0 ? "merge" : NULL, 2e-3);
  }
}

static void convolutions(void **state) {
  (void)state;
  check_all_limits(
      THREE("f32[2, 5, 11, 13]", "f32[18, 5, 3, 3]",
            "f32[18]") "%o = conv(%a, %b, %c) {pads = [1, 2, 1, 0], strides = [2, 1], code = [22, 0, 0, 0]}" OUT,
      "tiled", 1e-5);
  check_all_limits(
      TWO("f32[1, 24, 9, 9]", "f32[24, 1, 3, 3]") "%o = conv(%a, %b) {pads = [1, 1, 1, 1], group = 24}" OUT, NULL,
      1e-5);
  check_all_limits(TWO("f32[1, 12, 70]", "f32[20, 6, 7]") "%o = conv(%a, %b) {dilations = [3], group = 2}" OUT, "tiled",
                   1e-5);
  check_all_limits(TWO("i32[1, 4, 3, 6, 6]", "i32[9, 4, 2, 3, 3]") "%o = conv(%a, %b) {pads = [1, 1, 1, 0, 1, 1]}" OUT,
                   "tiled", 0);
  check_all_limits(TWO("f32[1, 64, 9, 9]", "f32[2, 64, 3, 3]") "%o = conv(%a, %b)" OUT, "split", 1e-4);
  check_all_limits(TWO("f32[1, 6, 7, 8]",
                       "f32[6, 10, 3, 3]") "%o = conv_transpose(%a, %b) {strides = [2, 2], pads = [1, 0, 0, 1]}" OUT,
                   "tiled", 1e-5);
}

static void attentions(void **state) {
  (void)state;
#define QKV(q, k, v) THREE(q, k, v)
  check_all_limits(QKV("f32[2, 3, 37, 20]", "f32[2, 3, 37, 20]", "f32[2, 3, 37, 20]") "%o = attention(%a, %b, %c)" OUT,
                   "tiled", 1e-5);
  check_all_limits(QKV("f32[1, 4, 19, 8]", "f32[1, 2, 45, 8]",
                       "f32[1, 2, 45, 40]") "%o = attention(%a, %b, %c) {mode = \"causal\"}" OUT,
                   "tiled", 1e-5);
  check_all_limits(QKV("f32[2, 6, 1, 33]", "f32[2, 2, 70, 33]",
                       "f32[2, 2, 70, 33]") "%o = attention(%a, %b, %c) {mode = \"causal\"}" OUT,
                   "tiled", 1e-5);
  check_all_limits(QKV("f32[1, 6, 3, 16]", "f32[1, 2, 50, 16]",
                       "f32[1, 2, 50, 16]") "%o = attention(%a, %b, %c) {mode = \"sliding_window\", window = 9}" OUT,
                   "tiled", 1e-5);
  check_all_limits(QKV("f32[1, 40, 24]", "f32[1, 40, 24]", "f32[1, 40, 24]")
            "input %m : bool[1, 1, 40, 40] input %e : f32[3, 40, 40] %o = attention(%a, %b, %c, %m, %e) {heads = 3}" OUT,
            "tiled", 1e-5);
  check_all_limits(QKV("f32[1, 4, 1, 24]", "f32[1, 2, 500, 24]",
                       "f32[1, 2, 500, 20]") "input %m : bool[1, 4, 1, 500] %o = attention(%a, %b, %c, %m)" OUT,
                   "merge", 1e-5);
  check_all_limits(QKV("f32[2, 3, 2, 40]", "f32[2, 3, 300, 40]",
                       "f32[2, 3, 300, 40]") "%o = attention(%a, %b, %c) {mode = \"sliding_window\", window = 100}" OUT,
                   "merge", 1e-5);
}

/* Queries, keys and values by matrix units: blocks that nothing fills, heads that share keys, masks, chunks of keys,
 * rows that are copied and rows that are not. */
static void attention_matrices(void **state) {
  static const struct {
    berth_compute compute;
    double tolerance;
  } kinds[] = {{BERTH_COMPUTE_TF32X3, 2e-6},
               {BERTH_COMPUTE_TF32, 2e-3},
               {BERTH_COMPUTE_F16, 2e-3},
               {BERTH_COMPUTE_BF16, 1.5e-2}};
  (void)state;
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    const berth_compute compute = kinds[i].compute;
    const double tolerance = kinds[i].tolerance;
    check_matrix(QKV("f32[1, 3, 37, 20]", "f32[1, 3, 37, 20]", "f32[1, 3, 37, 20]") "%o = attention(%a, %b, %c)" OUT,
                 compute, false, tolerance);
    check_matrix(QKV("f32[1, 4, 19, 9]", "f32[1, 2, 45, 9]",
                     "f32[1, 2, 45, 40]") "%o = attention(%a, %b, %c) {mode = \"causal\"}" OUT,
                 compute, false, tolerance);
    check_matrix(QKV("f32[1, 40, 24]", "f32[1, 40, 24]", "f32[1, 40, 24]")
                 "input %m : bool[1, 1, 40, 40] input %e : f32[3, 40, 40] %o = attention(%a, %b, %c, %m, %e) "
                 "{heads = 3}" OUT, compute, false, tolerance);
  }
  check_matrix(QKV("f32[1, 20, 1, 32]", "f32[1, 2, 300, 32]", "f32[1, 2, 300, 16]") "%o = attention(%a, %b, %c)" OUT,
               BERTH_COMPUTE_TF32, false, 2e-3);
  check_matrix(QKV("f32[1, 6, 6, 16]", "f32[1, 2, 50, 16]",
                   "f32[1, 2, 50, 16]") "%o = attention(%a, %b, %c) {mode = \"sliding_window\", window = 9}" OUT,
               BERTH_COMPUTE_BF16, false, 1.5e-2);
  check_matrix(QKV("f16[1, 4, 70, 64]", "f16[1, 2, 145, 64]", "f16[1, 2, 145, 64]") "%o = attention(%a, %b, %c)" OUT,
               BERTH_COMPUTE_F32, true, 3e-3);
  check_matrix(QKV("bf16[1, 2, 33, 40]", "bf16[1, 2, 33, 40]",
                   "bf16[1, 2, 33, 24]") "%o = attention(%a, %b, %c) {mode = \"causal\"}" OUT,
               BERTH_COMPUTE_F32, true, 2e-2);
}

#define GRADIENTS(q, k, v, d) "graph \"g\" { input %a : " q " input %b : " k " input %c : " v " input %d : " d " "
#define PLAIN_GRADIENTS "%x, %y, %z = attention_grad(%a, %b, %c, _, _, _, _, %d)"
#define THREE_OUT " output \"x\" = %x output \"y\" = %y output \"z\" = %z }"

/* Blocks that nothing fills and blocks that are seen whole, heads that share keys, rows beside each other and apart. */
static void attention_gradients(void **state) {
  (void)state;
  check_all_limits(GRADIENTS("f32[2, 3, 37, 20]", "f32[2, 3, 37, 20]", "f32[2, 3, 37, 20]", "f32[2, 3, 37, 20]")
                       PLAIN_GRADIENTS THREE_OUT,
                   "tiled", 1e-5);
  check_all_limits(GRADIENTS("f32[1, 4, 50, 8]", "f32[1, 2, 75, 8]", "f32[1, 2, 75, 40]", "f32[1, 4, 50, 40]")
                       PLAIN_GRADIENTS "{mode = \"causal\", cap = 2.0, scale = 0.7}" THREE_OUT,
                   "tiled", 1e-5);
  check_all_limits(GRADIENTS("f32[2, 40, 24]", "f32[2, 50, 24]", "f32[2, 50, 24]", "f32[2, 40, 24]") PLAIN_GRADIENTS
                   "{heads = 3, mode = \"sliding_window\", window = 9}" THREE_OUT,
                   "tiled", 1e-5);
  check_all_limits(GRADIENTS("f32[2, 2, 20, 24]", "f32[2, 2, 40, 24]", "f32[2, 2, 40, 17]", "f32[2, 2, 20, 17]")
                       "input %m : bool[2, 1, 20, 40] input %e : f32[2, 20, 40] input %s : f32[2] "
                       "const %l : i32[2] = [7, 33] "
                       "%x, %y, %z = attention_grad(%a, %b, %c, %m, %e, %l, %s, %d)" THREE_OUT, "tiled", 1e-5);
  /* some queries see no key */
  check_all_limits(GRADIENTS("f32[2, 2, 20, 8]", "f32[2, 2, 2, 8]", "f32[2, 2, 2, 8]", "f32[2, 2, 20, 8]")
                       "input %m : bool[2, 1, 20, 2] "
                       "%x, %y, %z = attention_grad(%a, %b, %c, %m, _, _, _, %d)" THREE_OUT, "tiled", 1e-5);
  check_all_limits(GRADIENTS("f32[2, 2, 20, 8]", "f32[2, 2, 2, 8]", "f32[2, 2, 2, 8]", "f32[2, 2, 20, 8]")
                       "input %m : bool[2, 1, 20, 2] input %s : f32[2] const %l : i32[2] = [0, 2] "
                       "%x, %y, %z = attention_grad(%a, %b, %c, %m, _, %l, %s, %d)" THREE_OUT, "tiled", 1e-5);
  check_all_limits(GRADIENTS("f32[1, 1, 3, 4]", "f32[1, 1, 5, 4]", "f32[1, 1, 5, 4]", "f32[1, 1, 3, 4]")
                       PLAIN_GRADIENTS THREE_OUT,
                   "queries", 1e-5);
}

static void attention_gradients_by_units(void **state) {
  static const struct {
    berth_compute compute;
    double tolerance;
  } kinds[] = {
      {BERTH_COMPUTE_TF32X3, 1e-5}, {BERTH_COMPUTE_TF32, 1e-2}, {BERTH_COMPUTE_F16, 1e-2}, {BERTH_COMPUTE_BF16, 6e-2}};
  (void)state;
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    const berth_compute compute = kinds[i].compute;
    const double tolerance = kinds[i].tolerance;
    check_matrix(GRADIENTS("f32[1, 3, 37, 20]", "f32[1, 3, 37, 20]", "f32[1, 3, 37, 20]", "f32[1, 3, 37, 20]")
                     PLAIN_GRADIENTS THREE_OUT,
                 compute, false, tolerance);
    check_matrix(GRADIENTS("f32[1, 4, 70, 9]", "f32[1, 2, 145, 9]", "f32[1, 2, 145, 40]", "f32[1, 4, 70, 40]")
                     PLAIN_GRADIENTS "{mode = \"causal\"}" THREE_OUT,
                 compute, false, tolerance);
  }
  /* four warps; and eight */
  check_matrix(GRADIENTS("f32[1, 24, 130, 16]", "f32[1, 2, 70, 16]", "f32[1, 2, 70, 16]", "f32[1, 24, 130, 16]")
                   PLAIN_GRADIENTS "{mode = \"causal\"}" THREE_OUT,
               BERTH_COMPUTE_BF16, false, 6e-2);
  if (getenv("BERTH_TEST_SLOW") != NULL)
    check_matrix(GRADIENTS("f32[1, 88, 70, 96]", "f32[1, 2, 9, 96]", "f32[1, 2, 9, 64]", "f32[1, 88, 70, 64]")
                     PLAIN_GRADIENTS "{scale = 0.1}" THREE_OUT,
                 BERTH_COMPUTE_TF32, false, 5e-2);
  check_matrix(GRADIENTS("bf16[1, 2, 33, 40]", "bf16[1, 2, 33, 40]", "bf16[1, 2, 33, 24]", "bf16[1, 2, 33, 24]")
                   PLAIN_GRADIENTS "{mode = \"sliding_window\", window = 5}" THREE_OUT,
               BERTH_COMPUTE_F32, true, 6e-2);
  check_words(GRADIENTS("bf16[1, 2, 33, 40]", "bf16[1, 2, 33, 40]", "bf16[1, 2, 33, 24]", "bf16[1, 2, 33, 24]")
                  PLAIN_GRADIENTS THREE_OUT,
              &limits_large, "tiled", 6e-2);
}

/* Parts whose words are their own on both sides are moved by words; the others element by element. */
static void words_are_moved(void **state) {
  (void)state;
  check_words(TWO("bf16[3, 5, 6]", "bf16[3, 5, 10]") "%o = concat(%a, %b) {axis = 2}" OUT, &limits_large, NULL, 0);
  check_words(TWO("i8[3, 5, 8]", "i8[3, 2, 8]") "%o = concat(%a, %b) {axis = 1}" OUT, &limits_large, NULL, 0);
  check_narrow(TWO("bf16[3, 5, 7]", "bf16[3, 5, 9]") "%o = concat(%a, %b) {axis = 2}" OUT, &limits_large, NULL, 0);
  check_narrow(TWO("i8[3, 5, 6]", "i8[3, 5, 6]") "%o = concat(%a, %b) {axis = 2}" OUT, &limits_large, NULL, 0);
  check_words(ONE("f16[3, 5, 16]") "%o, %p = split(%a) {axis = 2, parts = [6, 10]}" OUT, &limits_large, NULL, 0);
  check_narrow(ONE("f16[3, 5, 16]") "%o, %p = split(%a) {axis = 2, parts = [7, 9]}" OUT, &limits_large, NULL, 0);
  check_words(ONE("f16[4, 6, 8]") "%o = narrow(%a) {axes = [1, 2], starts = [1, 2], ends = [4, 8]}" OUT, &limits_large,
              NULL, 0);
  check_narrow(ONE("f16[4, 6, 8]") "%o = narrow(%a) {axes = [1, 2], starts = [1, 3], ends = [4, 7]}" OUT, &limits_large,
               NULL, 0);
  check_words(ONE("f16[4, 6, 8]") "%o = transpose(%a) {perm = [1, 0, 2]}" OUT, &limits_large, NULL, 0);
  check_words(ONE("u8[4, 1, 8]") "%o = expand(%a) {shape = [4, 3, 8]}" OUT, &limits_large, NULL, 0);
}

/* Few threads would walk far: they share the rows, and a row's updates still come in their order. */
static void many_updates(void **state) {
  (void)state;
  check_all_limits(
      THREE("f32[2000, 40]", "i32[150, 1]", "f32[150, 40]") "%o = scatter_nd(%a, %b, %c) {reduction = \"add\"}" OUT,
      "walk", 1e-5);
  check_all_limits(THREE("f32[2000, 40]", "i32[150, 1]", "f32[150, 40]") "%o = scatter_nd(%a, %b, %c)" OUT, "walk", 0);
}

/* So many that they are sorted first. The reference adds them in the same order, and so gets the same bits. */
static void updates_in_order(void **state) {
  (void)state;
  check_all_limits(
      THREE("f32[2000, 40]", "i32[2000, 1]", "f32[2000, 40]") "%o = scatter_nd(%a, %b, %c) {reduction = \"add\"}" OUT,
      "in order", 0);
  check_all_limits(THREE("f32[5, 6, 300]", "i32[3001, 2]", "f32[3001, 300]") "%o = scatter_nd(%a, %b, %c)" OUT,
                   "in order", 0);
  check_narrow(THREE("i8[900, 33]", "i32[1500, 1]", "i8[1500, 33]") "%o = scatter_nd(%a, %b, %c) {reduction = "
                                                                    "\"add\"}" OUT,
               &limits_large, "in order", 0);
  check_narrow(THREE("bf16[900, 33]", "i32[1500, 1]", "bf16[1500, 33]") "%o = scatter_nd(%a, %b, %c) {reduction = "
                                                                        "\"max\"}" OUT,
               &limits_large, "in order", 0);
}

static void recurrences(void **state) {
  (void)state;
#define LAYER(gates, d) "graph \"g\" { input %a : f32[4, 3, 10] input %b : f32[" d ", " gates ", 10] "
  check_all_limits(LAYER("160", "2") "input %c : f32[2, 160, 40] input %d : f32[2, 320] input %e : i32[3] "
            "%o, %h, %s = lstm(%a, %b, %c, %d, %e) {direction = \"bidirectional\"}" OUT, "steps", 1e-5);
  check_all_limits(LAYER("105", "1") "input %c : f32[1, 105, 35] input %d : f32[1, 210] "
            "%o, %h = gru(%a, %b, %c, %d) {direction = \"reverse\"}" OUT, "steps", 1e-5);
  check_all_limits(LAYER("105", "1") "input %c : f32[1, 105, 35] input %d : f32[1, 210] "
            "%o, %h = gru(%a, %b, %c, %d) {linear_before_reset = 1}" OUT, "steps", 1e-5);
  check_all_limits(LAYER("300", "1") "input %c : f32[1, 300, 300] %o, %h = rnn(%a, %b, %c)" OUT, "steps", 1e-4);
}

/* What is empty has no kernels, or sums of nothing. */
static void empty_ones(void **state) {
  (void)state;
  check_all_limits(TWO("f32[0, 5]", "f32[5, 4]") "%o = matmul(%a, %b)" OUT, NULL, 0);
  check_all_limits(TWO("f32[6, 0]", "f32[0, 7]") "%o = matmul(%a, %b)" OUT, NULL, 0);
  check_all_limits(TWO("f32[1, 2, 0]", "f32[3, 2, 2]") "%o = conv(%a, %b) {pads = [1, 2]}" OUT, NULL, 0);
  check_all_limits(THREE("f32[1, 2, 3, 4]", "f32[1, 2, 0, 4]", "f32[1, 2, 0, 4]") "%o = attention(%a, %b, %c)" OUT,
                   NULL, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(products),
      cmocka_unit_test(long_sums),
      cmocka_unit_test(epilogues),
      cmocka_unit_test(narrow_products),
      cmocka_unit_test(matrices),
      cmocka_unit_test(matrices_apart),
      cmocka_unit_test(narrow_rows),
      cmocka_unit_test(convolutions),
      cmocka_unit_test(attentions),
      cmocka_unit_test(recurrences),
      cmocka_unit_test(staged_matrices),
      cmocka_unit_test(long_matrices),
      cmocka_unit_test(attention_matrices),
      cmocka_unit_test(empty_ones),
      cmocka_unit_test(fours),
      cmocka_unit_test(attention_gradients),
      cmocka_unit_test(attention_gradients_by_units),
      cmocka_unit_test(words_are_moved),
      cmocka_unit_test(many_updates),
      cmocka_unit_test(updates_in_order),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
