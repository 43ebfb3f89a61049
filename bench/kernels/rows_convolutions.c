/* Convolutions and pooling with channels last. */
#include <stdio.h>

#include "row.h"

typedef struct image {
  int64_t height, width, channels, outputs, kernel, stride, pad;
} image;

/* Square images and windows; padding that keeps the extent, unless windows are as wide as their stride. */
static image image_of(const int64_t *size) {
  const int64_t kernel = size[3], stride = size[4];
  return (image){.height = size[0],
                 .width = size[0],
                 .channels = size[1],
                 .outputs = size[2],
                 .kernel = kernel,
                 .stride = stride,
                 .pad = kernel > stride ? (kernel - 1) / 2 : 0};
}

static double pixels_out(const image *i) {
  const int64_t height = (i->height + 2 * i->pad - i->kernel) / i->stride + 1,
                width = (i->width + 2 * i->pad - i->kernel) / i->stride + 1;
  return (double)height * (double)width;
}

static void set_pads(call *c, const image *i) {
  const int64_t pads[] = {i->pad, i->pad, i->pad, i->pad};
  call_ints(c, "pads", pads, 4);
}

static void set_windows(call *c, const image *i) {
  const int64_t kernel[] = {i->kernel, i->kernel}, strides[] = {i->stride, i->stride}, dilations[] = {1, 1};
  call_ints(c, "kernel", kernel, 2);
  call_ints(c, "strides", strides, 2);
  call_ints(c, "dilations", dilations, 2);
  set_pads(c, i);
}

static void describe(subject *s, const image *i, double taps_of_pixel) {
  const int n = snprintf(s->shape, sizeof s->shape, "%d x %d x %d", (int)i->height, (int)i->width, (int)i->channels);
  char *rest = s->shape + n;
  const size_t room = sizeof s->shape - (size_t)n;
  if (i->outputs != i->channels)
    snprintf(rest, room, " to %d, %d x %d / %d", (int)i->outputs, (int)i->kernel, (int)i->kernel, (int)i->stride);
  else
    snprintf(rest, room, ", %d x %d / %d", (int)i->kernel, (int)i->kernel, (int)i->stride);
  s->operations = 2 * pixels_out(i) * taps_of_pixel;
}

static bar_work work_of(const image *i, int64_t group) {
  return (bar_work){.kind = BAR_CONV,
                    .has_bias = true,
                    .height = i->height,
                    .width = i->width,
                    .channels = i->channels,
                    .outputs = i->outputs,
                    .kernel = i->kernel,
                    .stride = i->stride,
                    .pad = i->pad,
                    .group = group};
}

static double taps_of(const image *i) {
  return (double)(i->kernel * i->kernel) * (double)i->channels * (double)i->outputs;
}

static void make_conv(subject *s, const berth__cpu_isa *isa, const int64_t *size) {
  const image i = image_of(size);
  call_start(&s->call, isa, BERTH__OP_conv_last);
  CALL_F32(&s->call, 0, 1, i.height, i.width, i.channels);
  CALL_F32(&s->call, 1, row_panels(isa, i.outputs), i.kernel * i.kernel * i.channels, isa->panel);
  CALL_F32(&s->call, 2, i.outputs);
  set_windows(&s->call, &i);
  call_int(&s->call, "channels", i.outputs);
  call_int(&s->call, "panel", isa->panel);
  call_finish(&s->call);
  describe(s, &i, taps_of(&i));
  s->work = work_of(&i, 1);
}

/* One spatial axis: length, channels, outputs, window, stride. */
static void make_line(subject *s, const berth__cpu_isa *isa, const int64_t *size) {
  const int64_t length = size[0], channels = size[1], outputs = size[2], window = size[3], stride = size[4], one = 1;
  const int64_t pad = window == 3, pads[] = {pad, pad};
  call_start(&s->call, isa, BERTH__OP_conv_last);
  CALL_F32(&s->call, 0, 1, length, channels);
  CALL_F32(&s->call, 1, row_panels(isa, outputs), window * channels, isa->panel);
  CALL_F32(&s->call, 2, outputs);
  call_ints(&s->call, "kernel", &window, 1);
  call_ints(&s->call, "strides", &stride, 1);
  call_ints(&s->call, "dilations", &one, 1);
  call_ints(&s->call, "pads", pads, 2);
  call_int(&s->call, "channels", outputs);
  call_int(&s->call, "panel", isa->panel);
  call_finish(&s->call);
  snprintf(s->shape, sizeof s->shape, "%d x %d to %d, %d / %d", (int)length, (int)channels, (int)outputs, (int)window,
           (int)stride);
  s->operations = 2.0 * (double)s->call.out[0].dim[1] * (double)(window * channels) * (double)outputs;
}

/* Counts the operations of the direct convolution, so the fraction of the peak may exceed 100 %. */
static void make_winograd(subject *s, const berth__cpu_isa *isa, const int64_t *size) {
  const image i = image_of(size);
  const int64_t tile = size[5], values = (tile + 2) * (tile + 2);
  call_start(&s->call, isa, BERTH__OP_conv_winograd);
  CALL_F32(&s->call, 0, 1, i.height, i.width, i.channels);
  CALL_F32(&s->call, 1, values, row_panels(isa, i.outputs), i.channels, isa->panel);
  CALL_F32(&s->call, 2, i.outputs);
  set_pads(&s->call, &i);
  call_int(&s->call, "channels", i.outputs);
  call_int(&s->call, "panel", isa->panel);
  call_int(&s->call, "tile", tile);
  call_finish(&s->call);
  describe(s, &i, taps_of(&i));
  s->work = work_of(&i, 1);
}

static void make_depthwise(subject *s, const berth__cpu_isa *isa, const int64_t *size) {
  const image i = image_of(size);
  call_start(&s->call, isa, BERTH__OP_depthwise);
  CALL_F32(&s->call, 0, 1, i.height, i.width, i.channels);
  CALL_F32(&s->call, 1, i.kernel, i.kernel, i.channels);
  CALL_F32(&s->call, 2, i.channels);
  set_windows(&s->call, &i);
  call_finish(&s->call);
  describe(s, &i, (double)(i.kernel * i.kernel) * (double)i.channels);
  s->work = work_of(&i, i.channels);
}

static void make_pool(subject *s, const berth__cpu_isa *isa, const int64_t *size) {
  const image i = image_of(size);
  call_start(&s->call, isa, BERTH__OP_max_pool);
  CALL_F32(&s->call, 0, 1, i.height, i.width, i.channels);
  set_windows(&s->call, &i);
  call_int(&s->call, "channels_last", 1);
  call_finish(&s->call);
  describe(s, &i, 0);
}

/* Height and width, channels, outputs, window, stride; for conv_winograd the tile. */
const row rows_of_convolutions[] = {
    {"conv_last", "ResNet-50", make_conv, {224, 3, 64, 7, 2}},
    {"conv_last", "ResNet-50", make_conv, {56, 64, 64, 1, 1}},
    {"conv_last", "ResNet-50", make_conv, {56, 64, 256, 1, 1}},
    {"conv_last", "ResNet-50", make_conv, {56, 256, 64, 1, 1}},
    {"conv_last", "ResNet-50", make_conv, {56, 256, 512, 1, 2}},
    {"conv_last", "ResNet-50", make_conv, {28, 512, 128, 1, 1}},
    {"conv_last", "ResNet-50", make_conv, {14, 256, 1024, 1, 1}},
    {"conv_last", "ResNet-50", make_conv, {14, 1024, 256, 1, 1}},
    {"conv_last", "ResNet-50", make_conv, {7, 512, 2048, 1, 1}},
    {"conv_last", "ResNet-50", make_conv, {7, 2048, 512, 1, 1}},
    {"conv_last", "ResNet-50", make_conv, {56, 64, 64, 3, 1}},
    {"conv_last", "ResNet-50", make_conv, {56, 128, 128, 3, 2}},
    {"conv_last", "ResNet-50", make_conv, {14, 512, 512, 3, 2}},
    {"conv_last", "MobileNetV2", make_conv, {224, 3, 32, 3, 2}},
    {"conv_last", "MobileNetV2", make_conv, {112, 16, 96, 1, 1}},
    {"conv_last", "MobileNetV2", make_conv, {56, 24, 144, 1, 1}},
    {"conv_last", "MobileNetV2", make_conv, {56, 144, 24, 1, 1}},
    {"conv_last", "MobileNetV2", make_conv, {14, 384, 64, 1, 1}},
    {"conv_last", "MobileNetV2", make_conv, {7, 320, 1280, 1, 1}},
    {"conv_last", "EfficientNet-B0", make_conv, {112, 32, 16, 1, 1}},
    {"conv_last", "EfficientNet-B0", make_conv, {28, 240, 40, 1, 1}},
    {"conv_last", "EfficientNet-B0", make_conv, {14, 112, 672, 1, 1}},
    {"conv_last", "EfficientNet-B0", make_conv, {7, 1152, 192, 1, 1}},
    {"conv_last", "DeiT-tiny", make_conv, {224, 3, 192, 16, 16}},
    {"conv_last", "yunet", make_conv, {640, 3, 16, 3, 2}},
    {"conv_last", "yunet", make_conv, {160, 64, 64, 1, 1}},
    {"conv_last", "yunet", make_conv, {80, 64, 1, 1, 1}},
    {"conv_last", "silero", make_line, {640, 1, 258, 256, 128}},
    {"conv_last", "silero", make_line, {4, 129, 128, 3, 1}},
    {"conv_winograd", "ResNet-50", make_winograd, {56, 64, 64, 3, 1, 4}},
    {"conv_winograd", "ResNet-50", make_winograd, {28, 128, 128, 3, 1, 4}},
    {"conv_winograd", "ResNet-50", make_winograd, {14, 256, 256, 3, 1, 2}},
    {"conv_winograd", "ResNet-50", make_winograd, {7, 512, 512, 3, 1, 2}},
    {"depthwise", "MobileNetV2", make_depthwise, {112, 32, 32, 3, 1}},
    {"depthwise", "MobileNetV2", make_depthwise, {112, 96, 96, 3, 2}},
    {"depthwise", "MobileNetV2", make_depthwise, {56, 144, 144, 3, 1}},
    {"depthwise", "MobileNetV2", make_depthwise, {14, 384, 384, 3, 1}},
    {"depthwise", "MobileNetV2", make_depthwise, {7, 960, 960, 3, 1}},
    {"depthwise", "EfficientNet-B0", make_depthwise, {28, 240, 240, 5, 1}},
    {"depthwise", "EfficientNet-B0", make_depthwise, {14, 672, 672, 5, 1}},
    {"depthwise", "yunet", make_depthwise, {160, 64, 64, 3, 1}},
    {"max_pool", "ResNet-50", make_pool, {112, 64, 64, 3, 2}},
    {"max_pool", "yunet", make_pool, {160, 64, 64, 2, 2}},
    {0},
};
