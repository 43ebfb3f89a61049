/* Windows, reductions and norms. */
#include "forms.h"

const op_row rows_windows[] = {
/* ---- windows and reductions ---- */
#define POOL(op, extra)                                                                                                \
  X("f32", "[1, 64, 56, 56]")                                                                                          \
  "%y = " op "(%x) {kernel = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]" extra "}",                                 \
      X("f16", "[1, 64, 56, 56]") "%y = " op "(%x) {kernel = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]" extra "}", \
      X("f64", "[1, 64, 56, 56]") "%y = " op "(%x) {kernel = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]" extra "}", \
      X("f32", "[1, 61, 57, 55]") "%y = " op "(%x) {kernel = [2, 2], strides = [2, 2]" extra "}",                      \
      X("f32", "[1, 64, 3137]") "%y = " op "(%x) {kernel = [3], strides = [2]" extra "}",                              \
      X("f32", "[1, 16, 15, 29, 29]") "%y = " op "(%x) {kernel = [3, 3, 3], strides = [2, 2, 2]" extra "}"
    {"max_pool",
     NULL,
     true,
     "with places of maxima: every tap of every window is compared with its place, where lines are joined first "
     "otherwise",
     {POOL("max_pool", ""), X("i8", "[1, 64, 56, 56]") "%y = max_pool(%x) {kernel = [3, 3], strides = [2, 2]}",
      X("f32", "[1, 64, 56, 56]") "%y, %p = max_pool(%x) {kernel = [3, 3], strides = [2, 2]}",
      X("f32", "[1, 64, 56, 56]") "%y = max_pool(%x) {kernel = [3, 3], strides = [1, 1], dilations = [2, 2]}"}},
    {"avg_pool",
     NULL,
     true,
     F64_NOTE,
     {POOL("avg_pool", ""), X("f32", "[1, 64, 56, 56]") "%y = avg_pool(%x) {kernel = [7, 7], strides = [1, 1]}"}},
    {"lp_pool", NULL, true, NULL, {POOL("lp_pool", "")}},
    {"max_unpool",
     NULL,
     false,
     NULL,
     {X("f32",
        "[1, 64, 28, 28]") "input %p : i64[1, 64, 28, 28]\n%y = max_unpool(%x, %p) {kernel = [2, 2], strides = [2, 2]}",
      X("f16", "[1, 64, 28, 28]") "input %p : i64[1, 64, 28, 28]\n%y = max_unpool(%x, %p) {kernel = [2, 2], strides = "
                                  "[2, 2]}"}},
#define RESIZE(type, dims, to, attrs) X(type, dims) "const %t : i64[4] = " to "\n%y = resize(%x, %t) " attrs
    {"resize",
     NULL,
     false,
     "cubic: sixteen neighbours for each element, four weights each way",
     {RESIZE("f32", "[1, 32, 56, 56]", "[1, 32, 112, 112]", "{mode = \"nearest\"}"),
      RESIZE("f32", "[1, 32, 56, 56]", "[1, 32, 112, 112]", "{mode = \"linear\"}"),
      RESIZE("f32", "[1, 32, 56, 56]", "[1, 32, 112, 112]", "{mode = \"cubic\"}"),
      RESIZE("f16", "[1, 32, 56, 56]", "[1, 32, 112, 112]", "{mode = \"linear\"}"),
      RESIZE("u8", "[1, 32, 56, 56]", "[1, 32, 112, 112]", "{mode = \"nearest\"}"),
      RESIZE("f32", "[1, 32, 57, 55]", "[1, 32, 83, 71]", "{mode = \"linear\", coordinates = \"align_corners\"}"),
      RESIZE("f32", "[1, 32, 112, 112]", "[1, 32, 37, 39]", "{mode = \"linear\", antialias = 1}"),
      RESIZE("f32", "[1, 33, 56, 56]", "[1, 67, 56, 56]", "{mode = \"linear\"}")}},
#define GRID(type, mode) \
  X(type, "[1, 32, 56, 56]") "input %g : " type "[1, 56, 56, 2]\n%y = grid_sample(%x, %g) {mode = \"" mode "\"}"
    {"grid_sample",
     NULL,
     false,
     "16 bits are widened one by one",
     {GRID("f32", "linear"), GRID("f32", "nearest"), GRID("f32", "cubic"), GRID("f16", "linear"),
      GRID("f64", "linear")}},
#define ROI(type, extra)                                                                                             \
  X(type, "[1, 64, 28, 28]")                                                                                         \
  "input %r : " type                                                                                                 \
  "[16, 4]\ninput %i : i64[16]\n%n = mul(%i, %i)\n%o = sub(%n, %n)\n%y = roi_align(%x, %r, %o) {output_height = 7, " \
  "output_width = 7, sampling_ratio = 2" extra "}"
    {"roi_align",
     NULL,
     false,
     "16 bits are widened one by one",
     {ROI("f32", ""), ROI("f16", ""), ROI("f32", ", mode = \"max\"")}},
    {"max_roi_pool",
     NULL,
     false,
     NULL,
     {X("f32", "[4, 64, 28, 28]") "input %z : f32[16, 5]\n%r = floor(%z)\n%y = max_roi_pool(%x, %r) {pooled = [7, 7]}",
      X("f16",
        "[4, 64, 28, 28]") "input %z : f16[16, 5]\n%r = floor(%z)\n%y = max_roi_pool(%x, %r) {pooled = [7, 7]}"}},
    {"reduce_sum", NULL, false, "bytes are summed in 64 bits", {REDUCE("reduce_sum")}},
    {"reduce_mean", NULL, false, "bytes are summed in 64 bits", {REDUCE("reduce_mean")}},
    {"reduce_max", NULL, false, "lines of twelve elements, each folded alone", {REDUCE("reduce_max")}},
    {"reduce_min", NULL, false, "lines of twelve elements, each folded alone", {REDUCE("reduce_min")}},
    {"reduce_prod", NULL, false, "lines of seven elements, on the reference kernel", {REDUCE("reduce_prod")}},
#define ARG(op)                                                                                                \
  ALONG(op, "{axis = 1}"), X("f32", "[512, 768]") "%y = " op "(%x) {axis = 0}",                                \
      X("i8", "[512, 768]") "%y = " op "(%x) {axis = 1}", X("i64", "[512, 768]") "%y = " op "(%x) {axis = 1}", \
      X("f32", "[20000, 7]") "%y = " op "(%x) {axis = 1}",                                                     \
      X("f32", "[512, 768]") "%y = " op "(%x) {axis = 1, select_last = 1}"
    {"arg_max", NULL, false, NULL, {ARG("arg_max")}},
    {"arg_min", NULL, false, NULL, {ARG("arg_min")}},
#define TOP(type, dims, attrs) X(type, dims) "%y, %i = top_k(%x) " attrs
    {"top_k",
     NULL,
     false,
     "all of a line: 1000 of 1000 are sorted",
     {TOP("f32", "[512, 768]", "{k = 5}"), TOP("f16", "[512, 768]", "{k = 5}"), TOP("i64", "[512, 768]", "{k = 5}"),
      TOP("f32", "[1, 100000]", "{k = 300}"), TOP("f32", "[8, 8400]", "{k = 1000}"),
      TOP("f32", "[768, 512]", "{k = 5, axis = 0}"), TOP("f32", "[64, 1000]", "{k = 1000}")}},
#define CUM(type, dims, attrs) X(type, dims) "%y = cumsum(%x) " attrs
    {"cumprod",
     NULL,
     false,
     NULL,
     {X("f32", "[512, 768]") "%y = cumprod(%x) {axis = 1}", X("f32", "[512, 768]") "%y = cumprod(%x) {axis = 0}",
      X("f16", "[512, 768]") "%y = cumprod(%x) {axis = 1}", X("i64", "[512, 768]") "%y = cumprod(%x) {axis = 1}"}},
    {"cumsum",
     NULL,
     false,
     NULL,
     {CUM("f32", "[512, 768]", "{axis = 1}"), CUM("f32", "[512, 768]", "{axis = 0}"),
      CUM("f16", "[512, 768]", "{axis = 1}"), CUM("f64", "[512, 768]", "{axis = 1}"),
      CUM("i64", "[512, 768]", "{axis = 1}"), CUM("i32", "[512, 768]", "{axis = 1, exclusive = 1, reverse = 1}")}},
#define SOFT(op)                                                                                                 \
  ALONG(op, "{axis = 1}"), X("f32", "[512, 768]") "%y = " op "(%x) {axis = 0}",                                  \
      X("bf16", "[512, 768]") "%y = " op "(%x) {axis = 1}", X("f32", "[20000, 7]") "%y = " op "(%x) {axis = 1}", \
      X("f32", "[64, 21, 61]") "%y = " op "(%x) {axis = 1}"
    {"softmax", NULL, false, F64_NOTE, {SOFT("softmax")}},
    {"log_softmax", NULL, false, F64_NOTE, {SOFT("log_softmax")}},
#define LABELLED(type) X(type, "[256, 5000]") "input %l : i64[256]\n"
    {"cross_entropy",
     NULL,
     false,
     F64_NOTE,
     {LABELLED("f32") "%y = cross_entropy(%x, %l)", LABELLED("f64") "%y = cross_entropy(%x, %l)"}},
    {"cross_entropy_grad",
     NULL,
     false,
     F64_NOTE,
     {LABELLED("f32") "input %d : f32[256]\n%y = cross_entropy_grad(%x, %l, %d)",
      LABELLED("f32") "input %d : f32[256] input %c : f32[256]\n%y = cross_entropy_grad(%x, %l, %d, %c)",
      LABELLED("f64") "input %d : f64[256]\n%y = cross_entropy_grad(%x, %l, %d)"}},
/* ---- norms ---- */
#define LNORM(type, dims, width) \
  X(type, dims) "input %s : " type width "\ninput %b : " type width "\n%y = layer_norm(%x, %s, %b)"
    {"layer_norm",
     NULL,
     false,
     "f64: the reference kernel, element by element; lines of seven elements are turned, so that each has a lane",
     {LNORM("f32", "[512, 768]", "[768]"), LNORM("f16", "[512, 768]", "[768]"), LNORM("f64", "[512, 768]", "[768]"),
      LNORM("f32", "[20000, 7]", "[7]"), X("f32", "[512, 16, 48]") "%y = layer_norm(%x) {axis = 1}"}},
    {"rms_norm",
     NULL,
     false,
     "16 bits: as many elements, of fewer bytes; lines of seven elements are turned, so that each has a lane",
     {X("f32", "[512, 768]") "input %s : f32[768]\n%y = rms_norm(%x, %s)",
      X("f16", "[512, 768]") "input %s : f16[768]\n%y = rms_norm(%x, %s)",
      X("bf16", "[512, 768]") "input %s : bf16[768]\n%y = rms_norm(%x, %s)", X("f32", "[20000, 7]") ONE("rms_norm")}},
#define NGRAD(op, type, dims, width) \
  X(type, dims) "input %s : " type width "\ninput %d : " type dims "\n%y = " op "(%x, %s, %d)"
#define SGRAD(type, dims) X(type, dims) "input %d : " type dims "\n%y, %z = layer_norm_scale_grad(%x, %d)"
    {"layer_norm_grad",
     NULL,
     false,
     F64_NOTE,
     {NGRAD("layer_norm_grad", "f32", "[512, 768]", "[768]"), NGRAD("layer_norm_grad", "f16", "[512, 768]", "[768]"),
      NGRAD("layer_norm_grad", "f64", "[512, 768]", "[768]"),
      X("f32", "[512, 16, 48]") "input %d : f32[512, 16, 48]\n%y = layer_norm_grad(%x, _, %d) {axis = 1}"}},
    {"rms_norm_grad",
     NULL,
     false,
     F64_NOTE,
     {NGRAD("rms_norm_grad", "f32", "[512, 768]", "[768]"), NGRAD("rms_norm_grad", "bf16", "[512, 768]", "[768]")}},
    {"layer_norm_scale_grad",
     NULL,
     false,
     "lines of seven elements: the time is that of starting each",
     {SGRAD("f32", "[512, 768]"), SGRAD("f16", "[512, 768]"), SGRAD("f64", "[512, 768]"), SGRAD("f32", "[20000, 7]")}},
    {"rms_norm_scale_grad",
     NULL,
     false,
     NULL,
     {X("f32", "[512, 768]") "input %d : f32[512, 768]\n%y = rms_norm_scale_grad(%x, %d)"}},
#define GNORM(type, dims, groups, c) \
  X(type, dims) "input %s : " type c "\ninput %b : " type c "\n%y = group_norm(%x, %s, %b) {groups = " groups "}"
    {"group_norm",
     NULL,
     false,
     "groups of nine elements are turned, so that each has a lane: loads and stores of single elements",
     {GNORM("f32", "[1, 64, 56, 56]", "8", "[64]"), GNORM("f32", "[1, 64, 56, 56]", "64", "[64]"),
      GNORM("f16", "[1, 64, 56, 56]", "8", "[64]"), GNORM("f64", "[1, 64, 56, 56]", "8", "[64]"),
      GNORM("f32", "[64, 96, 3]", "32", "[96]")}},
#define BNORM(type, dims)                                                                       \
  X(type, dims)                                                                                 \
  "input %s : " type "[64]\ninput %b : " type "[64]\ninput %m : " type "[64]\ninput %v : " type \
  "[64]\n%y = batch_norm(%x, %s, %b, %m, %v)"
    {"batch_norm",
     NULL,
     false,
     "three elements of each channel are turned, so that each channel has a lane; f64: the reference kernel",
     {BNORM("f32", "[1, 64, 56, 56]"), BNORM("f16", "[1, 64, 56, 56]"), BNORM("f64", "[1, 64, 56, 56]"),
      BNORM("f32", "[3000, 64]"), BNORM("f32", "[1000, 64, 3]")}},
#define STEP(type)                                                                                                \
  "input %w : " type "[512, 768]\ninput %g : " type "[512, 768]\ninput %m : " type "[512, 768]\ninput %v : " type \
  "[512, 768]\ninput %r : f32[]\nconst %t : i64[] = [3]\n"
    {"sgd",
     NULL,
     false,
     NULL,
     {STEP("f32") "%y, %z = sgd(%w, %g, %r, %m) {momentum = 0.9}",
      STEP("f64") "%y, %z = sgd(%w, %g, %r, %m) {momentum = 0.9}", STEP("f32") "%y = sgd(%w, %g, %r)"}},
    {"adamw",
     NULL,
     false,
     "f64: the reference kernel",
     {STEP("f32") "%y, %z, %u = adamw(%w, %g, %m, %v, %r, %t)",
      STEP("f64") "%y, %z, %u = adamw(%w, %g, %m, %v, %r, %t)"}},
    {"random_uniform",
     NULL,
     false,
     "with a seed every number depends on the ones before it",
     {"%y = random_uniform() {shape = [200000]}", "%y = random_uniform() {shape = [200000], type = \"f64\"}",
      "%y = random_uniform() {shape = [200000], seed = 1}",
      "%y = random_uniform() {shape = [200000], seed = 1, type = \"f16\"}"}},
    {"random_normal",
     NULL,
     false,
     "with a seed every number depends on the ones before it",
     {"%y = random_normal() {shape = [200000]}", "%y = random_normal() {shape = [200000], type = \"f64\"}",
      "%y = random_normal() {shape = [200000], seed = 1}",
      "%y = random_normal() {shape = [200000], seed = 1, type = \"f16\"}"}},
    {"shape", NULL, false, SMALL_NOTE, {NULL}},
    {"size", NULL, false, SMALL_NOTE, {NULL}},
    {0},
};
