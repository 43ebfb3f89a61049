#include "rows.h"

/* ---- Forms that many ops have ---- */

#define X(type, dims) "input %x : " type dims "\n"
#define A(type, dims) "input %a : " type dims "\n"
#define B(type, dims) "input %b : " type dims "\n"
#define TURNED(type) "input %z : " type "[768, 512]\n%x = transpose(%z) {perm = [1, 0]}\n"
#define STEPPED(type) \
  "input %z : " type "[256, 3072]\n%x = narrow(%z) {axes = [1], starts = [0], ends = [3072], steps = [2]}\n"

#define ONE(op) "%y = " op "(%x)"
#define UNARY_FLOATS(op)                                                                                    \
  X("f32", "[512, 768]")                                                                                    \
  ONE(op), X("f64", "[512, 768]") ONE(op), X("f16", "[512, 768]") ONE(op), X("bf16", "[512, 768]") ONE(op), \
      TURNED("f32") ONE(op), STEPPED("f32") ONE(op), TURNED("f16") ONE(op)
#define UNARY_NUMBERS(op)                                                                                          \
  UNARY_FLOATS(op), X("i8", "[512, 768]") ONE(op), X("i16", "[512, 768]") ONE(op), X("i32", "[512, 768]") ONE(op), \
      X("i64", "[512, 768]") ONE(op), TURNED("i64") ONE(op), STEPPED("i8") ONE(op)

#define TWO(op) "%y = " op "(%a, %b)"
#define PAIR(type, op) A(type, "[512, 768]") B(type, "[512, 768]") TWO(op)
#define PAIR_TURNED(type, op) \
  "input %z : " type "[768, 512]\n%a = transpose(%z) {perm = [1, 0]}\n" B(type, "[512, 768]") TWO(op)
#define PAIR_COLUMN(type, op) A(type, "[512, 768]") B(type, "[512, 1]") TWO(op)
#define PAIR_ROW(type, op) A(type, "[512, 768]") B(type, "[768]") TWO(op)
#define PAIR_MIDDLE(type, op) A(type, "[64, 3, 33, 61]") B(type, "[3, 1, 61]") TWO(op)
#define BINARY_FLOATS(op)                                                                                              \
  PAIR("f32", op), PAIR("f64", op), PAIR("f16", op), PAIR("bf16", op), PAIR_TURNED("f32", op), PAIR_COLUMN("f32", op), \
      PAIR_MIDDLE("f32", op), PAIR_ROW("f16", op)
#define BINARY_NUMBERS(op) \
  BINARY_FLOATS(op), PAIR("i8", op), PAIR("i32", op), PAIR("i64", op), PAIR_TURNED("i64", op), PAIR_MIDDLE("i64", op)
#define BINARY_BITS(op)                                                                        \
  PAIR("bool", op), PAIR("i8", op), PAIR("i32", op), PAIR("i64", op), PAIR_TURNED("bool", op), \
      PAIR_COLUMN("bool", op), PAIR_MIDDLE("i64", op)
#define COMPARE(op)                                                                                    \
  PAIR("f32", op), PAIR("f64", op), PAIR("f16", op), PAIR("i8", op), PAIR("i32", op), PAIR("i64", op), \
      PAIR("bool", op), PAIR_TURNED("f32", op), PAIR_COLUMN("i64", op), PAIR_MIDDLE("f32", op)

#define ALONG(op, attrs)                                                     \
  X("f32", "[512, 768]")                                                     \
  "%y = " op "(%x) " attrs, X("f16", "[512, 768]") "%y = " op "(%x) " attrs, \
      X("f64", "[512, 768]") "%y = " op "(%x) " attrs
#define REDUCE(op)                                                                                                  \
  ALONG(op, "{axes = [1]}"), X("f32", "[512, 768]") "%y = " op "(%x) {axes = [0]}",                                 \
      X("f32", "[64, 16, 33, 12]") "%y = " op "(%x) {axes = [1, 3]}", TURNED("f32") "%y = " op "(%x) {axes = [1]}", \
      X("i8", "[512, 768]") "%y = " op "(%x) {axes = [1]}", X("i64", "[512, 768]") "%y = " op "(%x) {axes = [1]}",  \
      X("i32", "[512, 768]") "%y = " op "(%x) {axes = [0]}", X("f32", "[20000, 7]") "%y = " op "(%x) {axes = [1]}", \
      STEPPED("f32") "%y = " op "(%x) {axes = [1]}", X("f32", "[512, 768]") "%y = " op "(%x)"

#define F64_NOTE \
  "f64: the reference kernel, a function of the C library for each element; no exported network computes in it"
#define LIBRARY_NOTE \
  "a function of the C library for each element, whatever its type; of 16 bits they are half the bytes"
#define TURNED_NOTE                                                                                              \
  "16 bits and bytes: as many elements, of fewer bytes; transposed: columns a power of two apart share sets of " \
  "the cache"
#define COMPARE_NOTE \
  "rows of 61 elements, or a transposed operand: columns a power of two apart share sets of the cache"
#define SMALL_NOTE "one item of a few bytes: the time is that of a step, whatever its form"

const op_row op_rows[] = {
    /* ---- element by element ---- */
    {"identity",
     NULL,
     false,
     TURNED_NOTE,
     {TURNED("f32") ONE("identity"), TURNED("i64") ONE("identity"), TURNED("i8") ONE("identity"),
      STEPPED("f16") ONE("identity")}},
    {"neg", NULL, false, TURNED_NOTE, {UNARY_NUMBERS("neg")}},
    {"abs", NULL, false, TURNED_NOTE, {UNARY_NUMBERS("abs")}},
    {"exp", NULL, false, F64_NOTE, {UNARY_FLOATS("exp")}},
    {"log", NULL, false, F64_NOTE, {UNARY_FLOATS("log")}},
    {"sqrt", NULL, false, TURNED_NOTE, {UNARY_FLOATS("sqrt")}},
    {"rsqrt", NULL, false, TURNED_NOTE, {UNARY_FLOATS("rsqrt")}},
    {"sin", NULL, false, F64_NOTE, {UNARY_FLOATS("sin")}},
    {"cos", NULL, false, F64_NOTE, {UNARY_FLOATS("cos")}},
    {"tan", NULL, false, LIBRARY_NOTE, {UNARY_FLOATS("tan")}},
    {"asin", NULL, false, LIBRARY_NOTE, {UNARY_FLOATS("asin")}},
    {"acos", NULL, false, LIBRARY_NOTE, {UNARY_FLOATS("acos")}},
    {"atan", NULL, false, LIBRARY_NOTE, {UNARY_FLOATS("atan")}},
    {"sinh", NULL, false, LIBRARY_NOTE, {UNARY_FLOATS("sinh")}},
    {"cosh", NULL, false, LIBRARY_NOTE, {UNARY_FLOATS("cosh")}},
    {"tanh", NULL, false, F64_NOTE, {UNARY_FLOATS("tanh")}},
    {"asinh", NULL, false, LIBRARY_NOTE, {UNARY_FLOATS("asinh")}},
    {"acosh", NULL, false, LIBRARY_NOTE, {UNARY_FLOATS("acosh")}},
    {"atanh", NULL, false, LIBRARY_NOTE, {UNARY_FLOATS("atanh")}},
    {"expm1", NULL, false, F64_NOTE, {UNARY_FLOATS("expm1")}},
    {"softplus", NULL, false, F64_NOTE, {UNARY_FLOATS("softplus")}},
    {"sigmoid", NULL, false, F64_NOTE, {UNARY_FLOATS("sigmoid")}},
    {"relu", NULL, false, TURNED_NOTE, {UNARY_NUMBERS("relu")}},
    {"gelu", NULL, false, F64_NOTE, {UNARY_FLOATS("gelu")}},
    {"gelu_tanh", NULL, false, F64_NOTE, {UNARY_FLOATS("gelu_tanh")}},
    {"silu", NULL, false, F64_NOTE, {UNARY_FLOATS("silu")}},
    {"erf", NULL, false, F64_NOTE, {UNARY_FLOATS("erf")}},
    {"round", NULL, false, TURNED_NOTE, {UNARY_FLOATS("round")}},
    {"floor", NULL, false, TURNED_NOTE, {UNARY_FLOATS("floor")}},
    {"ceil", NULL, false, TURNED_NOTE, {UNARY_FLOATS("ceil")}},
    {"reciprocal", NULL, false, TURNED_NOTE, {UNARY_FLOATS("reciprocal")}},
    {"sign", NULL, false, TURNED_NOTE, {UNARY_NUMBERS("sign")}},
    {"not",
     NULL,
     false,
     TURNED_NOTE,
     {X("bool", "[512, 768]") ONE("not"), X("i8", "[512, 768]") ONE("not"), X("i64", "[512, 768]") ONE("not"),
      TURNED("bool") ONE("not"), STEPPED("bool") ONE("not"), TURNED("i32") ONE("not")}},
    {"clamp",
     NULL,
     false,
     TURNED_NOTE,
     {X("f32", "[512, 768]") "%y = clamp(%x) {min = 0.1, max = 0.5}",
      X("f64", "[512, 768]") "%y = clamp(%x) {min = 0.1, max = 0.5}",
      X("f16", "[512, 768]") "%y = clamp(%x) {min = 0.1, max = 0.5}",
      X("i8", "[512, 768]") "%y = clamp(%x) {min = 1.0, max = 3.0}",
      X("i64", "[512, 768]") "%y = clamp(%x) {min = 1.0, max = 3.0}",
      TURNED("f32") "%y = clamp(%x) {min = 0.1, max = 0.5}", TURNED("i32") "%y = clamp(%x) {min = 1.0, max = 3.0}"}},
    {"bitcast", NULL, false, "a view, or a copy of lines", {NULL}},
    {"cast",
     NULL,
     false,
     "64-bit integers to f16: rounded once, through f64, one by one",
     {X("i32", "[512, 768]") "%y = cast(%x) {to = \"f32\"}", X("i64", "[512, 768]") "%y = cast(%x) {to = \"f32\"}",
      X("f32", "[512, 768]") "%y = cast(%x) {to = \"i64\"}", X("f32", "[512, 768]") "%y = cast(%x) {to = \"f16\"}",
      X("f16", "[512, 768]") "%y = cast(%x) {to = \"f32\"}", X("bf16", "[512, 768]") "%y = cast(%x) {to = \"f32\"}",
      X("f32", "[512, 768]") "%y = cast(%x) {to = \"bf16\"}", X("u8", "[512, 768]") "%y = cast(%x) {to = \"i32\"}",
      X("i64", "[512, 768]") "%y = cast(%x) {to = \"i32\"}", X("f64", "[512, 768]") "%y = cast(%x) {to = \"f32\"}",
      X("bool", "[512, 768]") "%y = cast(%x) {to = \"f32\"}", X("f32", "[512, 768]") "%y = cast(%x) {to = \"i8\"}",
      X("i64", "[512, 768]") "%y = cast(%x) {to = \"f16\"}", TURNED("f16") "%y = cast(%x) {to = \"f32\"}",
      STEPPED("i64") "%y = cast(%x) {to = \"i32\"}"}},
    {"add", NULL, false, TURNED_NOTE, {BINARY_NUMBERS("add")}},
    {"sub", NULL, false, TURNED_NOTE, {BINARY_NUMBERS("sub")}},
    {"mul", NULL, false, TURNED_NOTE, {BINARY_NUMBERS("mul")}},
    {"div", NULL, false, "64-bit integers have no vector division", {BINARY_NUMBERS("div")}},
    {"pow", NULL, false, "f64 and integers: pow of the C library for each element", {BINARY_NUMBERS("pow")}},
    {"min", NULL, false, TURNED_NOTE, {BINARY_NUMBERS("min")}},
    {"max", NULL, false, TURNED_NOTE, {BINARY_NUMBERS("max")}},
    {"mod", NULL, false, "the C library: one fmod for each element", {BINARY_NUMBERS("mod")}},
    {"and", NULL, false, TURNED_NOTE, {BINARY_BITS("and")}},
    {"or", NULL, false, TURNED_NOTE, {BINARY_BITS("or")}},
    {"xor", NULL, false, TURNED_NOTE, {BINARY_BITS("xor")}},
    {"eq", NULL, false, COMPARE_NOTE, {COMPARE("eq")}},
    {"ne", NULL, false, COMPARE_NOTE, {COMPARE("ne")}},
    {"lt", NULL, false, COMPARE_NOTE, {COMPARE("lt")}},
    {"le", NULL, false, COMPARE_NOTE, {COMPARE("le")}},
    {"gt", NULL, false, COMPARE_NOTE, {COMPARE("gt")}},
    {"ge", NULL, false, COMPARE_NOTE, {COMPARE("ge")}},
#define WHERE(type) "input %c : bool[512, 768]\n" PAIR_WHERE(type) "%y = where(%c, %a, %b)"
#define PAIR_WHERE(type) A(type, "[512, 768]") B(type, "[512, 768]")
    {"where",
     NULL,
     false,
     TURNED_NOTE,
     {WHERE("f32"), WHERE("f64"), WHERE("f16"), WHERE("i8"), WHERE("i64"), WHERE("bool"),
      "input %c : bool[512, 1]\n" A("f32", "[512, 768]") B("f32", "[]") "%y = where(%c, %a, %b)",
      "input %c : bool[768]\n" A("i64", "[512, 768]") B("i64", "[512, 1]") "%y = where(%c, %a, %b)",
      "input %z : bool[768, 512]\n%c = transpose(%z) {perm = [1, 0]}\n" PAIR_WHERE("f32") "%y = where(%c, %a, %b)"}},
    {"choose",
     NULL,
     false,
     NULL,
     {"input %c : bool[]\n" PAIR_WHERE("f32") "%y = choose(%c, %a, %b)",
      "input %c : bool[]\n" PAIR_WHERE("i8") "%y = choose(%c, %a, %b)"}},
    {"chain",
     "exp",
     false,
     NULL,
     {X("f32", "[512, 768]") "%e = exp(%x)\n%y = neg(%e)", TURNED("f32") "%e = exp(%x)\n%y = neg(%e)",
      STEPPED("f32") "%e = exp(%x)\n%y = neg(%e)", X("f16", "[512, 768]") "%e = exp(%x)\n%y = neg(%e)"}},
    {"loop_begin", NULL, false, SMALL_NOTE, {NULL}},
    {"loop_end", NULL, false, SMALL_NOTE, {NULL}},
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
     "scales along two axes that are no neighbours, as no exporter writes them: the reference kernel",
     {QUANT("f32", "u8", "[512, 768]", "[]"), QUANT("f32", "i8", "[512, 768]", "[768]"),
      QUANT("f32", "i8", "[512, 768]", "[512, 1]"), QUANT("f32", "i16", "[512, 768]", "[]"),
      X("f16", "[512, 768]") "input %s : f16[]\ninput %z : u8[]\n%y = quantize(%x, %s, %z) {to = \"u8\"}",
      QUANT("f32", "u8", "[64, 3, 33, 61]", "[3, 1, 61]")}},
    {"dequantize",
     NULL,
     false,
     "scales along two axes that are no neighbours, as no exporter writes them: the reference kernel",
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
     NULL,
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
     "512 products of 3 x 5 x 4: the time is that of starting each",
     {MATMUL("f32", "256", "256", "256"), MATMUL("f16", "256", "256", "256"), MATMUL("bf16", "256", "256", "256"),
      MATMUL("f64", "128", "256", "256"), MATMUL("i32", "128", "256", "256"), MATMUL("i64", "128", "256", "256"),
      MATMUL("u8", "128", "256", "256"), MATMUL("f32", "253", "251", "7"), MATMUL("f32", "3", "1021", "253"),
      "input %a : f32[256, 256]\ninput %z : f32[256, 256]\n%b = transpose(%z) {perm = [1, 0]}\n%y = matmul(%a, %b)",
      "input %z : f32[256, 256]\n%a = transpose(%z) {perm = [1, 0]}\ninput %b : f32[256, 256]\n%y = matmul(%a, %b)",
      "input %a : f32[512, 3, 5]\ninput %b : f32[512, 5, 4]\n%y = matmul(%a, %b)"}},
    {"pack_weights", NULL, false, "runs once, when weights are loaded", {NULL}},
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
    {"conv",
     NULL,
     true,
     "integers of 32 bits, which no quantised network multiplies, have the reference kernel",
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
     "one channel a group: each tap is a short line of its own; still to be mended",
     {TCONV("f32", "[1, 64, 28, 28]", "[64, 32, 4, 4]", "{pads = [1, 1, 1, 1], strides = [2, 2]}"),
      TCONV("f32", "[1, 64, 28, 28]", "[64, 8, 4, 4]", "{group = 4, pads = [1, 1, 1, 1], strides = [2, 2]}"),
      TCONV("f32", "[1, 64, 28, 28]", "[64, 1, 4, 4]", "{group = 64, pads = [1, 1, 1, 1], strides = [2, 2]}"),
      TCONV("f16", "[1, 64, 28, 28]", "[64, 32, 4, 4]", "{pads = [1, 1, 1, 1], strides = [2, 2]}"),
      TCONV("f32", "[1, 16, 9, 9, 9]", "[16, 16, 4, 4, 4]", "{strides = [2, 2, 2]}"),
      "input %x : f32[1, 64, 28, 28]\ninput %w : f32[64, 32, 4, 4]\n%y = conv_transpose(%x, %w) {strides = [2, 2]}"}},
#define DEFORM(type)                                                                        \
  "input %x : " type "[1, 32, 28, 28]\ninput %w : " type "[32, 32, 3, 3]\ninput %o : " type \
  "[1, 18, 28, 28]\n%y = deform_conv(%x, %w, %o) {pads = [1, 1, 1, 1]}"
    {"deform_conv", NULL, false, NULL, {DEFORM("f32"), DEFORM("f16"), DEFORM("f64")}},
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
     "two outputs for each channel: groups of one channel, which fill no vector",
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
     "one output channel of a panel of 32",
     {TCONV("f32", "[1, 64, 28, 28]", "[64, 64, 2, 2]", "{strides = [2, 2]}"),
      TCONV("f32", "[1, 61, 27, 29]", "[61, 67, 3, 3]", "{strides = [2, 2], output_padding = [1, 1]}"),
      TCONV("f32", "[1, 64, 785]", "[64, 33, 16]", "{strides = [8], pads = [4, 4]}"),
      TCONV("f32", "[1, 64, 28, 28]", "[64, 1, 2, 2]", "{strides = [2, 2]}")}},
#define ATTEND(type, q, k, attrs) \
  "input %q : " type q "\ninput %k : " type k "\ninput %v : " type k "\n%y = attention(%q, %k, %v) " attrs
    {"attention",
     NULL,
     true,
     NULL,
     {ATTEND("f32", "[256, 256]", "[256, 256]", "{heads = 4}"), ATTEND("f32", "[1, 256]", "[1024, 256]", "{heads = 4}"),
      ATTEND("f32", "[253, 244]", "[253, 244]", "{heads = 4}"),
      ATTEND("f16", "[256, 256]", "[256, 256]", "{heads = 4}"),
      ATTEND("f32", "[256, 256]", "[256, 256]", "{heads = 4, mode = \"causal\"}"),
      ATTEND("f32", "[256, 256]", "[256, 128]", "{heads = 8, kv_heads = 4}"),
      ATTEND("bf16", "[256, 256]", "[256, 256]", "{heads = 4}")}},
#define ROPE(type, dims, attrs) X(type, dims) "input %p : i64[256]\n%y = rope(%x, %p) " attrs
    {"rope",
     NULL,
     false,
     NULL,
     {ROPE("f32", "[256, 512]", "{heads = 8}"), ROPE("f16", "[256, 512]", "{heads = 8}"),
      ROPE("f32", "[256, 512]", "{heads = 8, interleaved = 1}"), ROPE("f32", "[256, 488]", "{heads = 4, dims = 60}"),
      X("f32", "[256, 512]") "input %c : f32[256, 32]\ninput %s : f32[256, 32]\n%y = rope(%x, %c, %s) {heads = 8}"}},
#define EXPERTS(type, x, w, which) \
  "input %x : " type x "\ninput %w : " type w "\ninput %i : i64" which "\n%y = expert_matmul(%x, %w, %i)"
    {"expert_matmul",
     NULL,
     false,
     NULL,
     {EXPERTS("f32", "[8, 256]", "[8, 256, 256]", "[8, 2]"), EXPERTS("f32", "[1, 256]", "[8, 1024, 256]", "[1, 2]"),
      EXPERTS("f32", "[8, 2, 251]", "[8, 253, 251]", "[8, 2]")}},
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
     "with places of maxima, which are i64: the reference kernel",
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
     NULL,
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
    {"reduce_sum",
     NULL,
     false,
     "bytes are summed in 64 bits; every second element: the reference kernel",
     {REDUCE("reduce_sum")}},
    {"reduce_mean",
     NULL,
     false,
     "bytes are summed in 64 bits; every second element: the reference kernel",
     {REDUCE("reduce_mean")}},
    {"reduce_max", NULL, false, "every second element: the reference kernel", {REDUCE("reduce_max")}},
    {"reduce_min", NULL, false, "every second element: the reference kernel", {REDUCE("reduce_min")}},
    {"reduce_prod", NULL, false, "lines of seven elements, on the reference kernel", {REDUCE("reduce_prod")}},
#define ARG(op)                                                                                                \
  ALONG(op, "{axis = 1}"), X("f32", "[512, 768]") "%y = " op "(%x) {axis = 0}",                                \
      X("i8", "[512, 768]") "%y = " op "(%x) {axis = 1}", X("i64", "[512, 768]") "%y = " op "(%x) {axis = 1}", \
      X("f32", "[20000, 7]") "%y = " op "(%x) {axis = 1}",                                                     \
      X("f32", "[512, 768]") "%y = " op "(%x) {axis = 1, select_last = 1}"
    {"arg_max", NULL, false, "integers have the reference kernel", {ARG("arg_max")}},
    {"arg_min", NULL, false, "integers have the reference kernel", {ARG("arg_min")}},
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
/* ---- norms ---- */
#define LNORM(type, dims, width) \
  X(type, dims) "input %s : " type width "\ninput %b : " type width "\n%y = layer_norm(%x, %s, %b)"
    {"layer_norm",
     NULL,
     false,
     "lines of seven elements: the time is that of a line",
     {LNORM("f32", "[512, 768]", "[768]"), LNORM("f16", "[512, 768]", "[768]"), LNORM("f64", "[512, 768]", "[768]"),
      LNORM("f32", "[20000, 7]", "[7]"), X("f32", "[512, 16, 48]") "%y = layer_norm(%x) {axis = 1}"}},
    {"rms_norm",
     NULL,
     false,
     "lines of seven elements: the time is that of a line",
     {X("f32", "[512, 768]") "input %s : f32[768]\n%y = rms_norm(%x, %s)",
      X("f16", "[512, 768]") "input %s : f16[768]\n%y = rms_norm(%x, %s)",
      X("bf16", "[512, 768]") "input %s : bf16[768]\n%y = rms_norm(%x, %s)", X("f32", "[20000, 7]") ONE("rms_norm")}},
#define GNORM(type, dims, groups, c) \
  X(type, dims) "input %s : " type c "\ninput %b : " type c "\n%y = group_norm(%x, %s, %b) {groups = " groups "}"
    {"group_norm",
     NULL,
     false,
     "groups of nine elements: the time is that of a group",
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
     "three elements of each channel: the time is that of a channel",
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
     NULL,
     {STEP("f32") "%y, %z, %u = adamw(%w, %g, %m, %v, %r, %t)",
      STEP("f64") "%y, %z, %u = adamw(%w, %g, %m, %v, %r, %t)"}},
    {"random_uniform",
     NULL,
     false,
     NULL,
     {"%y = random_uniform() {shape = [200000], seed = 1}",
      "%y = random_uniform() {shape = [200000], seed = 1, type = \"f16\"}"}},
    {"random_normal",
     NULL,
     false,
     NULL,
     {"%y = random_normal() {shape = [200000], seed = 1}",
      "%y = random_normal() {shape = [200000], seed = 1, type = \"f16\"}"}},
    {"shape", NULL, false, SMALL_NOTE, {NULL}},
    {"size", NULL, false, SMALL_NOTE, {NULL}},
/* ---- moving elements ---- */
#define MOVE(op, attrs)                                                                                    \
  TURNED("f32")                                                                                            \
  "%y = " op "(%x) " attrs, TURNED("i8") "%y = " op "(%x) " attrs, TURNED("f16") "%y = " op "(%x) " attrs, \
      TURNED("i64") "%y = " op "(%x) " attrs, STEPPED("f32") "%y = " op "(%x) " attrs
    {"reshape",
     NULL,
     false,
     "every second element is read, one by one",
     {TURNED("f32") "%y = reshape(%x) {shape = [-1]}", TURNED("i8") "%y = reshape(%x) {shape = [-1]}",
      TURNED("f16") "%y = reshape(%x) {shape = [-1]}", TURNED("i64") "%y = reshape(%x) {shape = [-1]}",
      STEPPED("f32") "%y = reshape(%x) {shape = [-1]}"}},
    {"flatten",
     NULL,
     false,
     NULL,
     {TURNED("f32") "%y = flatten(%x) {axis = 0}", TURNED("i8") "%y = flatten(%x) {axis = 0}",
      TURNED("i64") "%y = flatten(%x) {axis = 0}"}},
    {"squeeze", NULL, false, "always a view", {NULL}},
    {"unsqueeze", NULL, false, "always a view", {NULL}},
#define TURN(type, dims, perm) X(type, dims) "%y = transpose(%x) {perm = " perm "}"
    {"transpose",
     NULL,
     false,
     "three bytes beside each other: squares of 16 that are mostly empty",
     {TURN("f32", "[512, 768]", "[1, 0]"), TURN("i8", "[512, 768]", "[1, 0]"), TURN("f16", "[512, 768]", "[1, 0]"),
      TURN("i64", "[512, 768]", "[1, 0]"), TURN("f32", "[13, 7, 61, 67]", "[3, 1, 0, 2]"),
      TURN("f32", "[512, 256, 3]", "[1, 0, 2]"), TURN("i8", "[512, 256, 3]", "[2, 1, 0]")}},
    {"diagonal",
     NULL,
     false,
     NULL,
     {X("f32", "[512, 32, 32]") ONE("diagonal"), X("i8", "[512, 32, 32]") ONE("diagonal")}},
#define CUT(type, dims, attrs) X(type, dims) "%y = narrow(%x) " attrs
    {"narrow",
     NULL,
     false,
     "a step backwards: as many elements, of fewer bytes",
     {CUT("f32", "[512, 768]", "{axes = [0, 1], starts = [1, 1], ends = [511, 767]}"),
      CUT("f32", "[512, 768]", "{axes = [1], starts = [0], ends = [768], steps = [2]}"),
      CUT("i8", "[512, 768]", "{axes = [1], starts = [0], ends = [768], steps = [3]}"),
      CUT("f32", "[512, 768]", "{axes = [1], starts = [-1], ends = [-1000], steps = [-1]}"),
      CUT("f16", "[512, 768]", "{axes = [1], starts = [-1], ends = [-1000], steps = [-1]}"),
      CUT("i64", "[30000, 7]", "{axes = [1], starts = [2], ends = [5]}")}},
    {"split",
     NULL,
     false,
     NULL,
     {X("f32", "[512, 768]") "%y, %b = split(%x) {axis = 1}", X("i8", "[512, 768]") "%y, %b = split(%x) {axis = 1}",
      X("f32", "[30000, 7]") "%y, %b = split(%x) {axis = 1, parts = [3, 4]}"}},
    {"expand",
     NULL,
     false,
     NULL,
     {X("f32", "[1, 768]") "%y = expand(%x) {shape = [512, 768]}",
      X("f32", "[512, 1]") "%y = expand(%x) {shape = [512, 768]}",
      X("i8", "[512, 1]") "%y = expand(%x) {shape = [512, 768]}",
      X("f32", "[3, 1, 61]") "%y = expand(%x) {shape = [64, 3, 33, 61]}",
      X("i64", "[20000, 1]") "%y = expand(%x) {shape = [20000, 7]}"}},
#define JOIN(type, dims, axis) A(type, dims) B(type, dims) "%y = concat(%a, %b) {axis = " axis "}"
    {"concat",
     NULL,
     false,
     "columns of one element: every element is a line of its own",
     {JOIN("f32", "[512, 768]", "1"), JOIN("f32", "[20000, 7]", "1"), JOIN("i8", "[20000, 7]", "1"),
      JOIN("i64", "[100000, 1]", "1"),
      "input %z : f32[768, 512]\n%a = transpose(%z) {perm = [1, 0]}\n" B(
          "f32", "[512, 768]") "%y = concat(%a, %b) {axis = 0}"}},
#define PAD(type, dims, attrs) X(type, dims) "%y = pad(%x) " attrs
    {"pad",
     NULL,
     false,
     "lines of 58 bytes: the time is that of starting each",
     {PAD("f32", "[1, 64, 56, 56]", "{pads = [0, 0, 1, 1, 0, 0, 1, 1]}"),
      PAD("f32", "[1, 64, 56, 56]", "{pads = [0, 0, 3, 3, 0, 0, 3, 3], mode = \"reflect\"}"),
      PAD("f32", "[1, 64, 56, 56]", "{pads = [0, 0, 3, 3, 0, 0, 3, 3], mode = \"edge\"}"),
      PAD("f16", "[1, 64, 56, 56]", "{pads = [0, 0, 1, 1, 0, 0, 1, 1]}"),
      PAD("u8", "[1, 64, 56, 56]", "{pads = [0, 0, 1, 1, 0, 0, 1, 1]}"),
      PAD("i64", "[1, 64, 56, 56]", "{pads = [0, 0, 1, 1, 0, 0, 1, 1], mode = \"wrap\"}"),
      PAD("f32", "[30000, 7]", "{pads = [0, 1, 0, 2]}"),
      PAD("f32", "[1, 64, 56, 56]", "{pads = [0, 0, -1, 2, 0, 0, 2, -1]}")}},
#define TILE(type, dims, r) X(type, dims) "%y = tile(%x) {repeats = " r "}"
    {"tile",
     NULL,
     false,
     NULL,
     {TILE("f32", "[64, 768]", "[8, 1]"), TILE("f32", "[512, 96]", "[1, 8]"), TILE("i8", "[512, 96]", "[1, 8]"),
      TILE("f32", "[512, 7]", "[3, 11]"), TILE("i64", "[512, 1]", "[1, 200]"),
      TILE("f32", "[8, 3, 5, 7]", "[3, 5, 4, 3]")}},
#define RANGE(type) \
  "input %a : " type "[]\nconst %z : " type "[] = [0]\nconst %one : " type "[] = [1]\nconst %n : " type "[] = [100]\n"
    {"range", NULL, false, SMALL_NOTE, {NULL}},
#define GATHER(type, dims, n, attrs) X(type, dims) "input %i : i64" n "\n%y = gather(%x, %i) " attrs
    {"gather",
     NULL,
     false,
     "one element of each line is picked, and all of x counts",
     {GATHER("f32", "[512, 768]", "[256]", "{axis = 0}"), GATHER("i8", "[512, 768]", "[256]", "{axis = 0}"),
      GATHER("f32", "[512, 768]", "[768]", "{axis = 1}"), GATHER("i8", "[512, 768]", "[768]", "{axis = 1}"),
      GATHER("f32", "[30000, 7]", "[30000]", "{axis = 0}"), GATHER("f32", "[512, 768]", "[]", "{axis = 1}"),
      GATHER("f16", "[64, 64, 64]", "[3]", "{axis = 1}")}},
    {"embedding",
     NULL,
     false,
     "slices of seven bytes",
     {X("f32", "[512, 768]") "input %i : i64[256]\n%y = embedding(%x, %i)",
      X("i8", "[30000, 7]") "input %i : i32[30000]\n%y = embedding(%x, %i)",
      X("f16", "[512, 64]") "input %i : i64[2048]\n%y = embedding(%x, %i)"}},
#define SCATTER(type, axis, extra) \
  X(type, "[512, 768]")            \
  "input %i : i64[512, 768]\ninput %u : " type "[512, 768]\n%y = scatter(%x, %i, %u) {axis = " axis extra "}"
    {"scatter",
     NULL,
     false,
     "16 bits are added one by one",
     {SCATTER("f32", "1", ""), SCATTER("f32", "0", ""), SCATTER("i8", "1", ""),
      SCATTER("f16", "1", ", reduction = \"add\""), SCATTER("f32", "1", ", reduction = \"max\""),
      SCATTER("i64", "0", ", reduction = \"mul\"")}},
#define PICK(type, axis) \
  X(type, "[512, 768]") "input %i : i64[512, 768]\n%y = gather_elements(%x, %i) {axis = " axis "}"
    {"gather_elements",
     NULL,
     false,
     NULL,
     {PICK("f32", "1"), PICK("f32", "0"), PICK("i8", "1"), PICK("i64", "0"),
      X("f16", "[512, 768]") "input %i : i32[512, 300]\n%y = gather_elements(%x, %i) {axis = 1}"}},
#define GND(type, x, i, extra) X(type, x) "input %i : i64" i "\n%y = gather_nd(%x, %i) " extra
    {"gather_nd",
     NULL,
     false,
     "one byte is picked for three indices of eight bytes",
     {GND("f32", "[64, 64, 64]", "[2048, 2]", ""), GND("f32", "[64, 64, 64]", "[100000, 3]", ""),
      GND("i8", "[64, 64, 64]", "[100000, 3]", ""), GND("i64", "[64, 64, 8]", "[64, 200, 1]", "{batch_dims = 1}")}},
#define SND(type, x, i, u, extra) \
  X(type, x) "input %i : i64" i "\ninput %u : " type u "\n%y = scatter_nd(%x, %i, %u) " extra
    {"scatter_nd",
     NULL,
     false,
     "one byte is put for two indices of eight bytes",
     {SND("f32", "[512, 768]", "[256, 1]", "[256, 768]", ""), SND("f32", "[512, 768]", "[50000, 2]", "[50000]", ""),
      SND("i8", "[512, 768]", "[50000, 2]", "[50000]", ""),
      SND("f16", "[512, 768]", "[256, 1]", "[256, 768]", "{reduction = \"add\"}"),
      SND("f32", "[512, 768]", "[256, 1]", "[256, 768]", "{reduction = \"max\"}")}},
    {"write_rows",
     NULL,
     false,
     "all bytes of x count here, and one element of each line is written",
     {X("f32", "[512, 768]") "input %r : f32[256, 768]\ninput %p : i64[]\n%y = write_rows(%x, %r, %p)",
      X("i8", "[512, 768]") "input %r : i8[256, 768]\ninput %p : i64[]\n%y = write_rows(%x, %r, %p)",
      X("f32", "[768, 512]") "input %r : f32[768, 1]\ninput %p : i64[]\n%y = write_rows(%x, %r, %p) {axis = 1}"}},
    {"non_zero",
     NULL,
     false,
     NULL,
     {X("f32", "[512, 768]") ONE("non_zero"), X("bool", "[512, 768]") ONE("non_zero"),
      X("i64", "[8, 8, 8, 8, 96]") ONE("non_zero"), X("f16", "[512, 768]") ONE("non_zero")}},
    {"unique",
     NULL,
     false,
     NULL,
     {X("i64", "[20000]") "%y, %a, %b, %c = unique(%x)", X("f32", "[20000]") "%y, %a, %b, %c = unique(%x)",
      X("i8", "[2000, 10]") "%y, %a, %b, %c = unique(%x) {flat = 0, axis = 0}"}},
/* ---- sequences ---- */
#define LSTM(op, type, rows, s, b, i, h, attrs)                                                                     \
  "input %x : " type "[" s ", " b ", " i "]\nparam %w : " type "[1, " rows ", " i "]\nparam %r : " type "[1, " rows \
  ", " h "]\n%y, %l = " op "(%x, %w, %r) " attrs
    {"lstm",
     NULL,
     true,
     F64_NOTE,
     {LSTM("lstm", "f32", "512", "64", "1", "128", "128", ""), LSTM("lstm", "f32", "512", "64", "8", "128", "128", ""),
      LSTM("lstm", "f16", "512", "64", "1", "128", "128", ""), LSTM("lstm", "f32", "244", "64", "1", "61", "61", ""),
      LSTM("lstm", "f32", "512", "64", "1", "128", "128", "{clip = 5.0}"),
      LSTM("lstm", "f32", "512", "64", "1", "128", "128", "{activations = \"hard_sigmoid tanh tanh\"}"),
      LSTM("lstm", "f64", "512", "64", "1", "128", "128", ""),
      "input %x : f32[64, 1, 128]\nparam %w : f32[1, 512, 128]\nparam %r : f32[1, 512, 128]\nparam %b : f32[1, "
      "1024]\ninput %n : i32[1]\n%y, %l = lstm(%x, %w, %r, %b, %n)"}},
#define QLSTM(bytes, s, b, h, rows, attrs)                                                             \
  "input %g : f32[" s ", 1, " b ", " rows "]\nparam %k : f32[1]\nparam %r : " bytes "[1, " rows ", " h \
  "]\n%y, %l = qlstm(%g, %k, %r) " attrs
    {"qlstm",
     NULL,
     true,
     NULL,
     {QLSTM("i8", "64", "1", "128", "512", ""), QLSTM("u8", "64", "1", "128", "512", ""),
      QLSTM("i8", "64", "8", "128", "512", ""), QLSTM("i8", "64", "1", "61", "244", ""),
      QLSTM("i8", "64", "1", "128", "512", "{direction = \"reverse\"}")}},
    {"gru",
     NULL,
     true,
     NULL,
     {LSTM("gru", "f32", "384", "64", "1", "128", "128", ""), LSTM("gru", "f16", "384", "64", "1", "128", "128", ""),
      LSTM("gru", "f32", "384", "64", "1", "128", "128", "{linear_before_reset = 1}"),
      LSTM("gru", "f32", "183", "64", "3", "61", "61", "")}},
    {"rnn",
     NULL,
     true,
     "other activations than the usual ones have the reference kernel",
     {LSTM("rnn", "f32", "128", "64", "1", "128", "128", ""), LSTM("rnn", "f16", "128", "64", "1", "128", "128", ""),
      LSTM("rnn", "f32", "128", "64", "1", "128", "128", "{activations = \"relu\"}")}},
    {"dft",
     NULL,
     false,
     "16 bits are widened and rounded one by one, through f64",
     {X("f32", "[64, 512, 1]") ONE("dft"), X("f32", "[64, 512, 2]") ONE("dft"), X("f32", "[64, 500, 1]") ONE("dft"),
      X("f32", "[64, 509, 1]") ONE("dft"), X("f16", "[64, 512, 1]") ONE("dft"),
      X("f32", "[512, 64, 1]") "%y = dft(%x) {axis = 0}", X("f32", "[64, 400, 1]") "%y = dft(%x) {onesided = 1}"}},
#define NMS(type, s)                                               \
  "input %b : " type "[1, " s ", 4]\ninput %x : " type "[1, 4, " s \
  "]\nconst %m : i64[1] = [100]\ninput %o : f32[]\n%y, %n = non_max_suppression(%b, %x, %m, %o)"
    {"non_max_suppression", NULL, false, NULL, {NMS("f32", "1000"), NMS("f16", "1000"), NMS("f32", "4000")}},
    {"ngrams",
     NULL,
     false,
     "with a skip, six places are looked at for every item",
     {X("i64", "[64, 128]") "%y = ngrams(%x) {pool = [1, 2, 3, 1, 2, 2, 3], starts = [0, 3], indexes = [0, 1, 2, 3, "
                            "4], max_length = 2}",
      X("i32", "[64, 128]") "%y = ngrams(%x) {pool = [1, 2, 3, 1, 2, 2, 3], starts = [0, 3], indexes = [0, 1, 2, 3, "
                            "4], max_length = 2, skip = 5}"}},
#define TREES(type, rows, targets, weights, attrs)                                                                   \
  "input %x : " type "[" rows ", 8]\nconst %n : i32[3, 3] = [0, 1, 2, 1, -1, -2, 2, -3, -4]\nconst %s : " type       \
  "[3] = [0.5, 0.25, 0.75]\nconst %r : i32[16] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]\nconst %w : " type \
  "[4, " targets "] = [" weights "]\n%y = tree_ensemble(%x, %n, %s, %r, %w) {" attrs "}"
    {"tree_ensemble",
     NULL,
     false,
     NULL,
     {TREES("f32", "4096", "1", "1, 2, 3, 4", "mixed = 0"), TREES("f64", "4096", "1", "1, 2, 3, 4", "mixed = 0"),
      TREES("f32", "4096", "1", "1, 2, 3, 4", "mixed = 1"),
      TREES("f32", "4096", "2", "1, 2, 3, 4, 5, 6, 7, 8", "mixed = 0"),
      TREES("f32", "4096", "1", "1, 2, 3, 4", "aggregate = \"max\"")}},
    {"pairwise_coupling",
     NULL,
     false,
     "the matrix of a row grows with the square of its classes, its rounds with neither",
     {X("f32", "[4096, 3]") "%y = pairwise_coupling(%x) {classes = 3}",
      X("f32", "[512, 45]") "%y = pairwise_coupling(%x) {classes = 10}"}},
    {0},
};
