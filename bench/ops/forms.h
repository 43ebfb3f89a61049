/* Forms shared by many ops, and reasons that apply to several. */
#ifndef BERTH_BENCH_OPS_FORMS_H
#define BERTH_BENCH_OPS_FORMS_H

#include "rows.h"

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

#endif
