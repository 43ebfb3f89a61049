/* Kernels that do little with each element, and so are limited by memory. */
#include <stdio.h>

#include "ops/chain.h"
#include "row.h"

static void make_softmax(subject *s, const berth__cpu_isa *isa, const int64_t *size) {
  call_start(&s->call, isa, BERTH__OP_softmax);
  call_operand(&s->call, 0, BERTH_F32, 2, size);
  call_finish(&s->call);
  snprintf(s->shape, sizeof s->shape, "%d x %d", (int)size[0], (int)size[1]);
}

static void make_norm(subject *s, const berth__cpu_isa *isa, const int64_t *size) {
  call_start(&s->call, isa, BERTH__OP_layer_norm);
  call_operand(&s->call, 0, BERTH_F32, 2, size);
  CALL_F32(&s->call, 1, size[1]);
  CALL_F32(&s->call, 2, size[1]);
  call_finish(&s->call);
  snprintf(s->shape, sizeof s->shape, "%d x %d", (int)size[0], (int)size[1]);
}

static void make_chain(subject *s, const berth__cpu_isa *isa, const int64_t *size) {
  const bool is_pair = size[2] == BERTH__CHAIN_add;
  const int64_t code[] = {size[2], 0, is_pair, 0};
  call_start(&s->call, isa, BERTH__OP_chain);
  call_operand(&s->call, 0, BERTH_F32, 2, size);
  if (is_pair) call_operand(&s->call, 1, BERTH_F32, 2, size);
  call_ints(&s->call, "code", code, 4);
  call_finish(&s->call);
  snprintf(s->shape, sizeof s->shape, "%d x %d", (int)size[0], (int)size[1]);
}

static void make_transpose(subject *s, const berth__cpu_isa *isa, const int64_t *size) {
  static const int64_t to_last[] = {0, 2, 3, 1}, to_first[] = {0, 3, 1, 2};
  const int64_t channels = size[0], side = size[1], first[] = {1, channels, side, side},
                last[] = {1, side, side, channels};
  const bool is_to_last = size[2] != 0;
  call_start(&s->call, isa, BERTH__OP_transpose);
  call_operand(&s->call, 0, BERTH_F32, 4, is_to_last ? first : last);
  call_ints(&s->call, "perm", is_to_last ? to_last : to_first, 4);
  call_finish(&s->call);
  snprintf(s->shape, sizeof s->shape, "%d channels, %d x %d", (int)channels, (int)side, (int)side);
}

/* Rows, columns, and for chains the step; channels, height and width, and whether channels become the last axis. */
const row rows_of_memory[] = {
    {"softmax", "MiniLM", make_softmax, {12 * 128, 128}},
    {"softmax", "DeiT-tiny", make_softmax, {3 * 197, 197}},
    {"softmax", "ResNet-50", make_softmax, {1, 1000}},
    {"layer_norm", "MiniLM", make_norm, {128, 384}},
    {"layer_norm", "DeiT-tiny", make_norm, {197, 192}},
    {"chain gelu", "MiniLM", make_chain, {128, 1536, BERTH__CHAIN_gelu}},
    {"chain silu", "EfficientNet-B0", make_chain, {112 * 112, 96, BERTH__CHAIN_silu}},
    {"chain silu", "EfficientNet-B0", make_chain, {14 * 14, 672, BERTH__CHAIN_silu}},
    {"chain add", "ResNet-50", make_chain, {56 * 56, 256, BERTH__CHAIN_add}},
    {"chain add", "MiniLM", make_chain, {128, 384, BERTH__CHAIN_add}},
    {"transpose to last", "ResNet-50", make_transpose, {3, 224, 1}},
    {"transpose to last", "ResNet-50", make_transpose, {64, 112, 1}},
    {"transpose to last", "ResNet-50", make_transpose, {2048, 7, 1}},
    {"transpose to first", "yunet", make_transpose, {64, 80, 0}},
    {"transpose to first", "ResNet-50", make_transpose, {256, 56, 0}},
    {0},
};
