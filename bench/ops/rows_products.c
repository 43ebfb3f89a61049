/* Quantisation, products and convolutions. */
#include "forms.h"

const op_row rows_products[] = {
/* ---- quantised ---- */
#define QUANT(from, to, dims, scales) \
  X(from, dims)                       \
  "input %s : f32" scales             \
  "\n"                                \
  "input %z : " to scales "\n%y = quantize(%x, %s, %z) {to = \"" to "\"}"
#define DEQUANT(from, dims, scales) \
  X(from, dims)                     \
  "input %s : f32" scales           \
  "\n"                              \
  "input %z : " from scales "\n%y = dequantize(%x, %s, %z)"
    {"quantize",
     NULL,
     false,
     "rows of 61 elements, with a scale for each",
     {QUANT("f32", "u8", "[512, 768]", "[]"), QUANT("f32", "i8", "[512, 768]", "[768]"),
      QUANT("f32", "i8", "[512, 768]", "[512, 1]"), QUANT("f32", "i16", "[512, 768]", "[]"),
      X("f16", "[512, 768]") "input %s : f16[]\ninput %z : u8[]\n%y = quantize(%x, %s, %z) {to = \"u8\"}",
      QUANT("f32", "u8", "[64, 3, 33, 61]", "[3, 1, 61]")}},
    {"dequantize",
     NULL,
     false,
     "integers of 32 bits with a zero point: differences of 33 bits, in f64",
     {DEQUANT("u8", "[512, 768]", "[]"), DEQUANT("i8", "[512, 768]", "[768]"), DEQUANT("i8", "[512, 768]", "[512, 1]"),
      DEQUANT("i32", "[512, 768]", "[]"), DEQUANT("i16", "[512, 768]", "[768]"),
      X("u8", "[512, 768]") "input %s : f16[]\ninput %z : u8[]\n%y = dequantize(%x, %s, %z)",
      DEQUANT("u8", "[64, 3, 33, 61]", "[3, 1, 61]")}},
    {"unpack",
     NULL,
     false,
     NULL,
     {X("q8_0", "[512, 768]") ONE("unpack"), X("q4_0", "[512, 768]") ONE("unpack"),
      X("q8_0", "[4096, 32]") ONE("unpack")}},
    {"reduce_bytes", NULL, false, "made by rewriting; one form", {NULL}},
    {"unpack_rows", NULL, false, "made by rewriting; one form", {NULL}},
    {"quantize_range", NULL, false, "made by rewriting; one form", {NULL}},
    {"pack_blocks", NULL, false, "runs once, when weights are loaded", {NULL}},
    {"pack_weights_i8", NULL, false, "runs once, when weights are loaded", {NULL}},
#define QMATMUL(x, w, k, n, wz)                                                                    \
  "input %x : " x "[256, " k "]\ninput %s : f32[]\ninput %z : " x "[]\nparam %w : " w "[" k ", " n \
  "]\nparam %t : f32[]\n"                                                                          \
  "param %v : " w wz "\n%d = dequantize(%x, %s, %z)\n%e = dequantize(%w, %t, %v)\n%y = matmul(%d, %e)"
    {"qproduct",
     "matmul",
     true,
     NULL,
     {QMATMUL("u8", "i8", "256", "256", "[]"), QMATMUL("i8", "u8", "256", "256", "[]"),
      QMATMUL("u8", "u8", "256", "256", "[256]"), QMATMUL("u8", "u8", "253", "251", "[]"),
      QMATMUL("u8", "i8", "1021", "61", "[]")}},
#define QCONV(x, w, c, o, wz, attrs)                                                          \
  "input %x : " x "[1, " c ", 28, 28]\ninput %s : f32[]\ninput %z : " x "[]\nparam %w : " w o \
  "\nparam %t : f32[]\n"                                                                      \
  "param %v : " w wz "\n%d = dequantize(%x, %s, %z)\n%e = dequantize(%w, %t, %v)\n%y = conv(%d, %e) " attrs
    {"qconv_last",
     "conv",
     true,
     "groups of 16 channels: sums are short beside what a tile costs",
     {QCONV("u8", "i8", "64", "[64, 64, 3, 3]", "[]", "{pads = [1, 1, 1, 1]}"),
      QCONV("i8", "u8", "64", "[64, 64, 3, 3]", "[64, 1, 1, 1]", "{pads = [1, 1, 1, 1]}"),
      QCONV("u8", "i8", "61", "[67, 61, 3, 3]", "[]", "{pads = [1, 1, 1, 1], dilations = [2, 2]}"),
      QCONV("u8", "i8", "64", "[64, 16, 3, 3]", "[]", "{group = 4, pads = [1, 1, 1, 1]}"),
      QCONV("u8", "u8", "64", "[64, 64, 1, 1]", "[]", "{strides = [2, 2]}")}},
    {"qdepthwise",
     "conv",
     true,
     NULL,
     {QCONV("u8", "i8", "256", "[256, 1, 3, 3]", "[]", "{group = 256, pads = [1, 1, 1, 1]}"),
      QCONV("i8", "u8", "256", "[256, 1, 3, 3]", "[]", "{group = 256, pads = [1, 1, 1, 1]}"),
      QCONV("u8", "u8", "256", "[256, 1, 3, 3]", "[256, 1, 1, 1]", "{group = 256, pads = [1, 1, 1, 1]}"),
      QCONV("u8", "i8", "253", "[253, 1, 5, 5]", "[]", "{group = 253, strides = [2, 2]}")}},
/* ---- products ---- */
#define MATMUL(type, m, k, n) \
  "input %a : " type "[" m ", " k "]\ninput %b : " type "[" k ", " n "]\n%y = matmul(%a, %b)"
    {"matmul",
     NULL,
     true,
     "u8: the reference kernel, as quantised networks have qproduct; 512 products of 3 x 5 x 4 fill no vector",
     {MATMUL("f32", "256", "256", "256"), MATMUL("f16", "256", "256", "256"), MATMUL("bf16", "256", "256", "256"),
      MATMUL("f64", "128", "256", "256"), MATMUL("i32", "128", "256", "256"), MATMUL("i64", "128", "256", "256"),
      MATMUL("u8", "128", "256", "256"), MATMUL("f32", "253", "251", "7"), MATMUL("f32", "3", "1021", "253"),
      "input %a : f32[256, 256]\ninput %z : f32[256, 256]\n%b = transpose(%z) {perm = [1, 0]}\n%y = matmul(%a, %b)",
      "input %z : f32[256, 256]\n%a = transpose(%z) {perm = [1, 0]}\ninput %b : f32[256, 256]\n%y = matmul(%a, %b)",
      "input %a : f32[512, 3, 5]\ninput %b : f32[512, 5, 4]\n%y = matmul(%a, %b)"}},
    {"pack_weights", NULL, false, "runs once, when weights are loaded", {NULL}},
    {"row_product", NULL, false, "made by rewriting, for GPUs alone", {NULL}},
#define PRODUCT(type, m, k, n) \
  "input %a : " type "[" m ", " k "]\nparam %b : " type "[" k ", " n "]\n%y = matmul(%a, %b)"
    {"product",
     "matmul",
     true,
     NULL,
     {PRODUCT("f32", "256", "256", "256"), PRODUCT("f32", "253", "251", "33"), PRODUCT("f32", "256", "256", "7"),
      PRODUCT("f16", "256", "256", "256"), PRODUCT("bf16", "256", "256", "256"),
      "input %z : f32[256, 256]\n%a = transpose(%z) {perm = [1, 0]}\nparam %b : f32[256, 256]\n%y = matmul(%a, %b)"}},
    {"det",
     NULL,
     false,
     "16 bits are widened one by one, into f64",
     {X("f32", "[64, 32, 32]") ONE("det"), X("f64", "[64, 32, 32]") ONE("det"), X("f16", "[64, 32, 32]") ONE("det")}},
#define CONV(type, x, w, attrs) "input %x : " type x "\nparam %w : " type w "\n%y = conv(%x, %w) " attrs
#define CONV_RUN(type, x, w, attrs) "input %x : " type x "\ninput %w : " type w "\n%y = conv(%x, %w) " attrs
#define WGRAD(type, dims, group)                                          \
  X(type, dims)                                                           \
  "input %d : " type dims                                                 \
  "\n%y = conv_weight_grad(%x, %d) {kernel = [3, 3], pads = [1, 1, 1, 1]" \
  ", group = " group "}"
    {"conv_weight_grad",
     NULL,
     true,
     "the reference kernel where it is not depthwise: gradients of other convolutions are convolutions",
     {WGRAD("f32", "[1, 64, 56, 56]", "64"), WGRAD("f64", "[1, 64, 28, 28]", "64")}},
    {"conv",
     NULL,
     true,
     "f64 and integers of 32 bits: half as many to a vector, or slow products; no Winograd",
     {CONV("f32", "[1, 64, 28, 28]", "[64, 64, 3, 3]", "{pads = [1, 1, 1, 1]}"),
      CONV_RUN("f32", "[1, 64, 28, 28]", "[64, 64, 3, 3]", "{pads = [1, 1, 1, 1]}"),
      CONV_RUN("f32", "[1, 61, 27, 29]", "[59, 61, 3, 3]", "{pads = [1, 1, 1, 1], strides = [2, 2]}"),
      CONV("f16", "[1, 64, 28, 28]", "[64, 64, 3, 3]", "{pads = [1, 1, 1, 1]}"),
      CONV("f64", "[1, 64, 28, 28]", "[32, 64, 3, 3]", "{pads = [1, 1, 1, 1]}"),
      CONV("f32", "[1, 64, 9, 10, 11]", "[64, 64, 3, 3, 3]", "{pads = [1, 1, 1, 1, 1, 1]}"),
      CONV("i32", "[1, 64, 28, 28]", "[32, 64, 3, 3]", "{pads = [1, 1, 1, 1]}"),
      CONV_RUN("f32", "[1, 64, 28, 28]", "[64, 16, 3, 3]", "{group = 4, pads = [1, 1, 1, 1]}")}},
#define TCONV(type, x, w, attrs) "input %x : " type x "\nparam %w : " type w "\n%y = conv_transpose(%x, %w) " attrs
    {"conv_transpose",
     NULL,
     true,
     "three axes: lines of ten elements fill no vector; one channel a group: as many bytes for a thirty-second of the "
     "work",
     {TCONV("f32", "[1, 64, 28, 28]", "[64, 32, 4, 4]", "{pads = [1, 1, 1, 1], strides = [2, 2]}"),
      TCONV("f32", "[1, 64, 28, 28]", "[64, 8, 4, 4]", "{group = 4, pads = [1, 1, 1, 1], strides = [2, 2]}"),
      TCONV("f32", "[1, 64, 28, 28]", "[64, 1, 4, 4]", "{group = 64, pads = [1, 1, 1, 1], strides = [2, 2]}"),
      TCONV("f16", "[1, 64, 28, 28]", "[64, 32, 4, 4]", "{pads = [1, 1, 1, 1], strides = [2, 2]}"),
      TCONV("f32", "[1, 64, 12, 12, 12]", "[64, 32, 2, 2, 2]", "{strides = [2, 2, 2]}"),
      TCONV("f32", "[1, 16, 9, 9, 9]", "[16, 16, 4, 4, 4]", "{strides = [2, 2, 2]}"),
      "input %x : f32[1, 64, 28, 28]\ninput %w : f32[64, 32, 4, 4]\n%y = conv_transpose(%x, %w) {strides = [2, 2]}"}},
#define DEFORM(type)                                                                        \
  "input %x : " type "[1, 32, 28, 28]\ninput %w : " type "[32, 32, 3, 3]\ninput %o : " type \
  "[1, 18, 28, 28]\n%y = deform_conv(%x, %w, %o) {pads = [1, 1, 1, 1]}"
    {"deform_conv",
     NULL,
     false,
     "16 bits and f64: the reference kernel",
     {DEFORM("f32"), DEFORM("f16"), DEFORM("f64")}},
    {"conv_last",
     "conv",
     true,
     "a single pixel: every weight is read for one multiplication",
     {CONV("f32", "[1, 64, 28, 28]", "[64, 64, 5, 5]", "{pads = [2, 2, 2, 2]}"),
      CONV("f32", "[1, 61, 27, 29]", "[67, 61, 3, 3]", "{strides = [2, 2]}"),
      CONV("f32", "[1, 3, 112, 112]", "[32, 3, 3, 3]", "{pads = [1, 1, 1, 1]}"),
      CONV("f32", "[1, 64, 28, 28]", "[64, 16, 3, 3]", "{group = 4, pads = [1, 1, 1, 1]}"),
      CONV("f32", "[1, 64, 28, 28]", "[2, 64, 3, 3]", "{pads = [1, 1, 1, 1]}"),
      CONV("f32", "[1, 64, 785]", "[64, 64, 7]", "{pads = [9, 9], dilations = [3]}"),
      CONV("f32", "[1, 128, 1, 1]", "[128, 128, 1, 1]", "")}},
    {"depthwise",
     "conv",
     true,
     "three channels fill no vector",
     {CONV("f32", "[1, 256, 28, 28]", "[256, 1, 3, 3]", "{group = 256, pads = [1, 1, 1, 1]}"),
      CONV("f32", "[1, 253, 27, 29]", "[253, 1, 5, 5]", "{group = 253, strides = [2, 2]}"),
      CONV("f32", "[1, 3, 112, 112]", "[3, 1, 3, 3]", "{group = 3, pads = [1, 1, 1, 1]}"),
      CONV("f32", "[1, 256, 785]", "[256, 1, 31]", "{group = 256, pads = [15, 15]}"),
      CONV("f32", "[1, 64, 28, 28]", "[128, 1, 3, 3]", "{group = 64, pads = [1, 1, 1, 1]}")}},
    {"pack_winograd", NULL, false, "runs once, when weights are loaded", {NULL}},
    {"conv_winograd",
     "conv",
     true,
     NULL,
     {CONV("f32", "[1, 64, 56, 56]", "[64, 64, 3, 3]", "{pads = [1, 1, 1, 1]}"),
      CONV("f32", "[1, 61, 55, 57]", "[67, 61, 3, 3]", "{pads = [1, 1, 1, 1]}"),
      CONV("f32", "[2, 128, 15, 13]", "[128, 128, 3, 3]", "")}},
    {"conv_transpose_last",
     "conv_transpose",
     true,
     "one output channel: with the pixels of a cell, four columns of a panel",
     {TCONV("f32", "[1, 64, 28, 28]", "[64, 64, 2, 2]", "{strides = [2, 2]}"),
      TCONV("f32", "[1, 61, 27, 29]", "[61, 67, 3, 3]", "{strides = [2, 2], output_padding = [1, 1]}"),
      TCONV("f32", "[1, 64, 785]", "[64, 33, 16]", "{strides = [8], pads = [4, 4]}"),
      TCONV("f32", "[1, 64, 28, 28]", "[64, 1, 2, 2]", "{strides = [2, 2]}"),
      TCONV("f32", "[1, 64, 28, 28]", "[64, 1, 3, 3]", "{strides = [2, 2], pads = [1, 1, 1, 1]}"),
      TCONV("f32", "[1, 64, 28, 28]", "[64, 8, 4, 4]", "{strides = [2, 2], pads = [1, 1, 1, 1]}"),
      TCONV("f32", "[1, 64, 28, 28]", "[64, 1, 4, 4]", "{group = 64, strides = [2, 2], pads = [1, 1, 1, 1]}")}},
#define ATTEND(type, q, k, attrs) \
  "input %q : " type q "\ninput %k : " type k "\ninput %v : " type k "\n%y = attention(%q, %k, %v) " attrs
    {"attention",
     NULL,
     true,
     "one query: every key and value is read for two products",
     {ATTEND("f32", "[256, 256]", "[256, 256]", "{heads = 4}"), ATTEND("f32", "[1, 256]", "[1024, 256]", "{heads = 4}"),
      ATTEND("f32", "[253, 244]", "[253, 244]", "{heads = 4}"),
      ATTEND("f16", "[256, 256]", "[256, 256]", "{heads = 4}"),
      ATTEND("f32", "[256, 256]", "[256, 256]", "{heads = 4, mode = \"causal\"}"),
      ATTEND("f32", "[256, 256]", "[256, 128]", "{heads = 8, kv_heads = 4}"),
      ATTEND("bf16", "[256, 256]", "[256, 256]", "{heads = 4}")}},
#define ATTEND_BACK(type, q, k, attrs)                                                      \
  "input %q : " type q "\ninput %k : " type k "\ninput %v : " type k "\ninput %d : " type q \
  "\n%y, %z, %u = attention_grad(%q, %k, %v, _, _, _, _, %d) " attrs
    {"attention_grad",
     NULL,
     true,
     "16 bits are for the reference kernel",
     {ATTEND_BACK("f32", "[256, 256]", "[256, 256]", "{heads = 4}"),
      ATTEND_BACK("f32", "[253, 244]", "[253, 244]", "{heads = 4}"),
      ATTEND_BACK("f32", "[256, 256]", "[256, 256]", "{heads = 4, mode = \"causal\"}"),
      ATTEND_BACK("bf16", "[256, 256]", "[256, 256]", "{heads = 4}")}},
#define ROPE(type, dims, attrs) X(type, dims) "input %p : i64[256]\n%y = rope(%x, %p) " attrs
    {"rope",
     NULL,
     false,
     NULL,
     {ROPE("f32", "[256, 512]", "{heads = 8}"), ROPE("f16", "[256, 512]", "{heads = 8}"),
      ROPE("f32", "[256, 512]", "{heads = 8, interleaved = 1}"), ROPE("f32", "[256, 488]", "{heads = 4, dims = 60}"),
      X("f32", "[256, 512]") "input %c : f32[256, 32]\ninput %s : f32[256, 32]\n%y = rope(%x, %c, %s) {heads = 8}"}},
    {"rope_rows", NULL, false, "made by rewriting, for GPUs alone", {NULL}},
#define EXPERTS(type, x, w, which) \
  "input %x : " type x "\ninput %w : " type w "\ninput %i : i64" which "\n%y = expert_matmul(%x, %w, %i)"
    {"expert_matmul",
     NULL,
     false,
     NULL,
     {EXPERTS("f32", "[8, 256]", "[8, 256, 256]", "[8, 2]"), EXPERTS("f32", "[1, 256]", "[8, 1024, 256]", "[1, 2]"),
      EXPERTS("f32", "[8, 2, 251]", "[8, 253, 251]", "[8, 2]")}},
    {0},
};
