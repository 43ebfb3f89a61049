/* int8 products and convolutions, for models with i8 weights and u8 activations. */
#include <stdio.h>
#include <string.h>

#include "ops/bytes.h"
#include "row.h"

/* A packed weight has the sums of its columns at the end of each panel, where random bytes would be impossible sums. */
static void clear_sums(const berth_tensor *packed) {
  const size_t group = (size_t)packed->stride[1], panel = (size_t)packed->stride[0];
  for (int64_t i = 0; i < packed->dim[0]; i++) memset((char *)packed->data + (size_t)(i + 1) * panel - group, 0, group);
}

static void add_weight(subject *s, const berth__cpu_isa *isa, int64_t rows, int64_t columns) {
  const int64_t packed[] = {row_panels(isa, columns), berth__bytes_groups(rows) + 1, isa->panel, 4};
  call *c = &s->call;
  call_operand(c, BERTH__BYTES_WEIGHT, BERTH_I8, 4, packed);
  clear_sums(&c->in[BERTH__BYTES_WEIGHT]);
  CALL_F32(c, BERTH__BYTES_SCALE, columns);
  call_operand(c, BERTH__BYTES_X_ZERO, BERTH_U8, 0, packed);
  CALL_F32(c, BERTH__BYTES_BIAS, columns);
  call_int(c, "panel", isa->panel);
  s->is_bytes = true;
}

static void make_product(subject *s, const berth__cpu_isa *isa, const int64_t *size) {
  const int64_t m = size[0], k = size[1], n = size[2];
  call_start(&s->call, isa, BERTH__OP_qproduct);
  call_operand(&s->call, BERTH__BYTES_X, BERTH_U8, 2, size);
  add_weight(s, isa, k, n);
  call_int(&s->call, "columns", n);
  call_finish(&s->call);
  snprintf(s->shape, sizeof s->shape, "%d x %d x %d", (int)m, (int)k, (int)n);
  s->operations = 2.0 * (double)m * (double)k * (double)n;
  s->work = (bar_work){.kind = BAR_MATMUL, .is_bytes = true, .has_bias = true, .m = m, .k = k, .n = n};
}

/* Stride 1, padding that keeps the extent. */
static void make_conv(subject *s, const berth__cpu_isa *isa, const int64_t *size) {
  const int64_t side = size[0], channels = size[1], outputs = size[2], window = size[3], pad = window / 2;
  const int64_t x[] = {1, side, side, channels}, kernel[] = {window, window}, pads[] = {pad, pad, pad, pad};
  call_start(&s->call, isa, BERTH__OP_qconv_last);
  call_operand(&s->call, BERTH__BYTES_X, BERTH_U8, 4, x);
  add_weight(s, isa, window * window * channels, outputs);
  call_ints(&s->call, "kernel", kernel, 2);
  call_ints(&s->call, "pads", pads, 4);
  call_int(&s->call, "channels", outputs);
  call_finish(&s->call);
  snprintf(s->shape, sizeof s->shape, "%d x %d x %d to %d, %d x %d / 1", (int)side, (int)side, (int)channels,
           (int)outputs, (int)window, (int)window);
  s->operations = 2.0 * (double)(side * side) * (double)(window * window * channels) * (double)outputs;
  s->work = (bar_work){.kind = BAR_CONV,
                       .is_bytes = true,
                       .has_bias = true,
                       .height = side,
                       .width = side,
                       .channels = channels,
                       .outputs = outputs,
                       .kernel = window,
                       .stride = 1,
                       .pad = pad,
                       .group = 1};
}

/* m, k, n; height and width, channels, outputs, window. */
const row rows_of_bytes[] = {
    {"qproduct", "MiniLM", make_product, {128, 384, 384}},
    {"qproduct", "MiniLM", make_product, {128, 384, 1536}},
    {"qproduct", "MiniLM", make_product, {128, 1536, 384}},
    {"qproduct", "MiniLM", make_product, {1, 384, 1536}},
    {"qconv_last", "ResNet-50", make_conv, {56, 64, 64, 3}},
    {"qconv_last", "ResNet-50", make_conv, {14, 256, 256, 3}},
    {"qconv_last", "ResNet-50", make_conv, {14, 256, 1024, 1}},
    {"qconv_last", "MobileNetV2", make_conv, {56, 144, 24, 1}},
    {"qconv_last", "MobileNetV2", make_conv, {14, 64, 384, 1}},
    {0},
};
