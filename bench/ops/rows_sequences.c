/* Recurrent layers, transforms, and others. */
#include "forms.h"

const op_row rows_sequences[] = {
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
     NULL,
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
    {"non_max_suppression",
     NULL,
     false,
     "16 bits: the reference kernel",
     {NMS("f32", "1000"), NMS("f16", "1000"), NMS("f32", "4000")}},
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
