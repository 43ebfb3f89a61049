/* From SPV_NV_cooperative_matrix to SPV_KHR_cooperative_matrix. Types gain what the matrix is for, loads and stores
 * name their layout by a number in the place of a bool, and products are the same but for their number. Nothing else of
 * a module changes. */
#include "device/vulkan/matrices.h"
#include "device/vulkan/spirv.h"

enum {
  OP_EXTENSION = 10,
  OP_CAPABILITY = 17,
  OP_TYPE_INT = 21,
  OP_TYPE_FLOAT = 22,
  OP_CONSTANT_TRUE = 41,
  OP_CONSTANT_FALSE = 42,
  OP_CONSTANT = 43,
  OP_SPEC_CONSTANT = 50,
  OP_DECORATE = 71,
  OP_TYPE_MATRIX_KHR = 4456,
  OP_LOAD_KHR = 4457,
  OP_STORE_KHR = 4458,
  OP_ADD_KHR = 4459,
  OP_TYPE_MATRIX_NV = 5358,
  OP_LOAD_NV = 5359,
  OP_STORE_NV = 5360,
  OP_ADD_NV = 5361,
  DECORATION_SPEC_ID = 1,
  CAPABILITY_NV = 5357,
  CAPABILITY_KHR = 6022,
  CAPABILITY_BF16 = 5116,
  CAPABILITY_BF16_MATRIX = 5118,
  ENCODING_BF16 = 0
};

#define HEADER_WORDS 5u
#define BOUND_AT 3u    /* the word of the header that is one more than the highest id */
#define USES 3u        /* left side, right side, sums: as numbered in types of matrices, and by the constants */
#define ADDED_IDS 4u   /* a constant for each use, and the type bf16 */
#define MORE_WORDS 64u /* at most, by what is added */

typedef struct khr_module {
  const uint32_t *from;
  size_t n_from;
  uint32_t *to; /* a type grows by one word per use, everything else by MORE_WORDS */
  size_t n_to;
  bool is_bf16;
  uint32_t bound;        /* of `from` */
  uint32_t u32, yes, no; /* ids of the type and of the two constants; 0: not seen */
  uint32_t rows[USES];   /* ids of the specialization constants */
  bool has_types;        /* the added constants are there */
} khr_module;

static uint32_t use_id(const khr_module *m, uint32_t use) { return m->bound + use; }

static void put(khr_module *m, uint32_t code, const uint32_t *words, uint32_t n) {
  m->to[m->n_to++] = (n + 1) << 16 | code;
  memcpy(m->to + m->n_to, words, n * sizeof *words);
  m->n_to += n;
}

static void put_extension(khr_module *m, const char *name) {
  uint32_t words[12] = {0};
  memcpy(words, name, strlen(name));
  put(m, OP_EXTENSION, words, (uint32_t)strlen(name) / 4 + 1);
}

static void put_capabilities(khr_module *m) {
  static const uint32_t of_bf16[] = {CAPABILITY_BF16, CAPABILITY_BF16_MATRIX}, khr = CAPABILITY_KHR;
  put(m, OP_CAPABILITY, &khr, 1);
  for (uint32_t i = 0; m->is_bf16 && i < 2; i++) put(m, OP_CAPABILITY, &of_bf16[i], 1);
}

static bool is_extension(const uint32_t *words, uint32_t n, const char *name) {
  const size_t size = strlen(name) + 1;
  return size <= n * sizeof *words && memcmp(words, name, size) == 0;
}

/* Before the first type of a matrix, with which the type u32 is there. */
static void put_types(khr_module *m) {
  if (m->has_types) return;
  for (uint32_t use = 0; use < USES; use++) put(m, OP_CONSTANT, (uint32_t[]){m->u32, use_id(m, use), use}, 3);
  if (m->is_bf16) put(m, OP_TYPE_FLOAT, (uint32_t[]){use_id(m, USES), 16, ENCODING_BF16}, 3);
  m->has_types = true;
}

static bool put_type(khr_module *m, const uint32_t *in) {
  for (uint32_t use = 0; use < USES; use++) {
    if (m->rows[use] == 0 || in[3] != m->rows[use]) continue;
    put_types(m);
    const uint32_t element = m->is_bf16 && use != 2 ? use_id(m, USES) : in[1];
    put(m, OP_TYPE_MATRIX_KHR, (uint32_t[]){in[0], element, in[2], in[3], in[4], use_id(m, use)}, 6);
    return true;
  }
  return false;
}

/* Rows are numbered 0, columns 1. */
static bool find_layout(const khr_module *m, uint32_t is_across, uint32_t *out) {
  *out = use_id(m, is_across == m->yes ? 1 : 0);
  return is_across != 0 && (is_across == m->yes || is_across == m->no) && m->has_types;
}

/* Operands up to the stride, whose order changes, and those after it. */
static bool put_access(khr_module *m, uint32_t code, const uint32_t *in, uint32_t n) {
  uint32_t out[12];
  if (n < 4 || n + 1 > sizeof out / sizeof *out) return false;
  const uint32_t stride = code == OP_LOAD_KHR ? 3 : 2;
  if (n < stride + 2) return false;
  memcpy(out, in, n * sizeof *in);
  out[stride + 1] = in[stride];
  if (!find_layout(m, in[stride + 1], &out[stride])) return false;
  put(m, code, out, n);
  return true;
}

/* The numbers of rows become plain constants. */
static bool put_decoration(khr_module *m, const uint32_t *in, uint32_t n) {
  if (n != 3 || in[1] != DECORATION_SPEC_ID) {
    put(m, OP_DECORATE, in, n);
    return true;
  }
  if (in[2] >= USES) return false;
  m->rows[in[2]] = in[0];
  return true;
}

static bool put_again(khr_module *m, uint32_t code, const uint32_t *in, uint32_t n) {
  switch (code) {
    case OP_CAPABILITY:
      if (n != 1 || in[0] != CAPABILITY_NV) break;
      put_capabilities(m);
      return true;
    case OP_EXTENSION:
      if (!is_extension(in, n, "SPV_NV_cooperative_matrix")) break;
      put_extension(m, "SPV_KHR_cooperative_matrix");
      if (m->is_bf16) put_extension(m, "SPV_KHR_bfloat16");
      return true;
    case OP_DECORATE: return put_decoration(m, in, n);
    case OP_TYPE_INT:
      if (n == 3 && in[1] == 32 && in[2] == 0) m->u32 = in[0];
      break;
    case OP_CONSTANT_TRUE:
      if (n == 2) m->yes = in[1];
      break;
    case OP_CONSTANT_FALSE:
      if (n == 2) m->no = in[1];
      break;
    case OP_SPEC_CONSTANT: code = OP_CONSTANT; break;
    case OP_TYPE_MATRIX_NV: return n == 5 && m->u32 != 0 && put_type(m, in);
    case OP_LOAD_NV: return put_access(m, OP_LOAD_KHR, in, n);
    case OP_STORE_NV: return put_access(m, OP_STORE_KHR, in, n);
    case OP_ADD_NV: code = OP_ADD_KHR; break;
    default: break;
  }
  put(m, code, in, n);
  return true;
}

static bool convert(khr_module *m) {
  memcpy(m->to, m->from, HEADER_WORDS * sizeof *m->to);
  m->bound = m->from[BOUND_AT];
  m->to[BOUND_AT] = m->bound + ADDED_IDS;
  m->n_to = HEADER_WORDS;
  for (size_t at = HEADER_WORDS; at < m->n_from;) {
    const uint32_t n = m->from[at] >> 16;
    if (n == 0 || n > m->n_from - at || !put_again(m, m->from[at] & 0xffffu, m->from + at + 1, n - 1)) return false;
    at += n;
  }
  return m->has_types;
}

/* Types of matrices are three, one for each use: they grow by a word each. */
berth_status berth__spirv_to_khr(berth_context *ctx, bool is_bf16, berth__spirv *module, berth_error *err) {
  khr_module m = {.from = module->words, .n_from = module->n_words, .is_bf16 = is_bf16};
  size_t n = 0;
  if (m.n_from < HEADER_WORDS) return berth__fail(err, BERTH_INTERNAL, "a compiled kernel is no SPIR-V");
  for (size_t at = HEADER_WORDS; at < m.n_from; at += m.from[at] >> 16 != 0 ? m.from[at] >> 16 : m.n_from)
    n += (m.from[at] & 0xffffu) == OP_TYPE_MATRIX_NV;
  m.to = berth__alloc_array(ctx, m.n_from + n + MORE_WORDS, sizeof *m.to);
  if (m.to == NULL) return berth__fail_nomem(err, "a compiled kernel");
  if (!convert(&m)) {
    berth__free(ctx, m.to);
    return berth__fail(err, BERTH_INTERNAL, "a compiled kernel has cooperative matrices that are not as expected");
  }
  berth__free(ctx, module->words);
  *module = (berth__spirv){.words = m.to, .n_words = m.n_to};
  return BERTH_OK;
}
