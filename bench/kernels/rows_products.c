/* Products with packed weights, and products of two activations. */
#include <stdio.h>

#include "ops/chain.h"
#include "row.h"

typedef enum epilogue {
  TAIL_NONE,
  TAIL_GELU,
  TAIL_ADD
} epilogue;

static void add_epilogue(call *c, epilogue t, int64_t m, int64_t n) {
  static const int64_t gelu[] = {BERTH__CHAIN_gelu, 0, 0, 0}, add[] = {BERTH__CHAIN_add, 0, 1, 0};
  if (t == TAIL_GELU) call_ints(c, "code", gelu, 4);
  if (t != TAIL_ADD) return;
  CALL_F32(c, 3, m, n);
  call_ints(c, "code", add, 4);
}

static void make_product(subject *s, const berth__cpu_isa *isa, const int64_t *size) {
  static const char *const epilogues[] = {"", " + gelu", " + add"};
  const int64_t m = size[0], k = size[1], n = size[2];
  const epilogue t = (epilogue)size[3];
  call_start(&s->call, isa, BERTH__OP_product);
  CALL_F32(&s->call, 0, m, k);
  CALL_F32(&s->call, 1, row_panels(isa, n), k, isa->panel);
  CALL_F32(&s->call, 2, n);
  call_int(&s->call, "columns", n);
  call_int(&s->call, "panel", isa->panel);
  add_epilogue(&s->call, t, m, n);
  call_finish(&s->call);
  snprintf(s->shape, sizeof s->shape, "%d x %d x %d%s", (int)m, (int)k, (int)n, epilogues[t]);
  s->operations = 2.0 * (double)m * (double)k * (double)n;
  if (t == TAIL_NONE) s->work = (bar_work){.kind = BAR_MATMUL, .has_bias = true, .m = m, .k = k, .n = n};
}

/* Weights packed as bf16, to which x is rounded. */
static void make_bf16(subject *s, const berth__cpu_isa *isa, const int64_t *size) {
  const int64_t m = size[0], k = size[1], n = size[2], packed[] = {row_panels(isa, n), (k + 1) / 2, isa->panel, 2};
  call_start(&s->call, isa, BERTH__OP_product);
  CALL_F32(&s->call, 0, m, k);
  call_operand(&s->call, 1, BERTH_BF16, 4, packed);
  CALL_F32(&s->call, 2, n);
  call_int(&s->call, "columns", n);
  call_int(&s->call, "panel", isa->panel);
  call_int(&s->call, "rounds", 1);
  call_finish(&s->call);
  snprintf(s->shape, sizeof s->shape, "%d x %d x %d, bf16", (int)m, (int)k, (int)n);
  s->operations = 2.0 * (double)m * (double)k * (double)n;
}

/* Weights packed as f16: for one row they are read from memory, with half the bytes. */
static void make_f16(subject *s, const berth__cpu_isa *isa, const int64_t *size) {
  const int64_t m = size[0], k = size[1], n = size[2], packed[] = {row_panels(isa, n), k, isa->panel};
  call_start(&s->call, isa, BERTH__OP_product);
  CALL_F32(&s->call, 0, m, k);
  call_operand(&s->call, 1, BERTH_F16, 3, packed);
  CALL_F32(&s->call, 2, n);
  call_int(&s->call, "columns", n);
  call_int(&s->call, "panel", isa->panel);
  call_finish(&s->call);
  snprintf(s->shape, sizeof s->shape, "%d x %d x %d, f16", (int)m, (int)k, (int)n);
  s->operations = 2.0 * (double)m * (double)k * (double)n;
}

static void make_matmul(subject *s, const berth__cpu_isa *isa, const int64_t *size) {
  const int64_t batch = size[0], m = size[1], k = size[2], n = size[3];
  call_start(&s->call, isa, BERTH__OP_matmul);
  CALL_F32(&s->call, 0, batch, m, k);
  CALL_F32(&s->call, 1, batch, k, n);
  call_finish(&s->call);
  snprintf(s->shape, sizeof s->shape, "%d times %d x %d x %d", (int)batch, (int)m, (int)k, (int)n);
  s->operations = 2.0 * (double)batch * (double)m * (double)k * (double)n;
  s->work = (bar_work){.kind = BAR_MATMUL, .batch = batch, .m = m, .k = k, .n = n};
}

/* m, k, n and an epilogue; for matmul preceded by a batch. */
const row rows_of_products[] = {
    {"product", "MiniLM", make_product, {128, 384, 1152}},
    {"product", "MiniLM", make_product, {128, 384, 384}},
    {"product", "MiniLM", make_product, {128, 384, 384, TAIL_ADD}},
    {"product", "MiniLM", make_product, {128, 384, 1536}},
    {"product", "MiniLM", make_product, {128, 384, 1536, TAIL_GELU}},
    {"product", "MiniLM", make_product, {128, 1536, 384}},
    {"product", "MiniLM", make_product, {16, 384, 1536}},
    {"product", "MiniLM", make_product, {1, 384, 384}},
    {"product", "DeiT-tiny", make_product, {197, 192, 576}},
    {"product", "DeiT-tiny", make_product, {197, 192, 768}},
    {"product", "DeiT-tiny", make_product, {197, 768, 192}},
    {"product", "ResNet-50", make_product, {1, 2048, 1000}},
    {"product", "decoder", make_product, {1, 4096, 4096}},
    {"product", "decoder", make_f16, {1, 4096, 4096}},
    {"product", "MiniLM", make_f16, {128, 384, 1536}},
    {"product", "MiniLM", make_bf16, {128, 384, 1536}},
    {"product", "MiniLM", make_bf16, {128, 1536, 384}},
    {"product", "ResNet-50", make_bf16, {1, 2048, 1000}},
    {"matmul", "MiniLM", make_matmul, {12, 128, 32, 128}},
    {"matmul", "MiniLM", make_matmul, {12, 128, 128, 32}},
    {"matmul", "DeiT-tiny", make_matmul, {3, 197, 64, 197}},
    {"matmul", "square", make_matmul, {1, 512, 512, 512}},
    {0},
};
