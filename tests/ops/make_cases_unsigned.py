#!/usr/bin/python3
"""Writes the cases of u16 and u64, from exact Python integers; see caselib.py for what it needs. Run by hand.

    /usr/bin/python3 tests/ops/make_cases_unsigned.py
"""
import math

import numpy as np

from caselib import CaseFile, Tensor, quantise

WIDTH = {"u16": 16, "u64": 64}
OPS = {"add": lambda x, y: x + y, "sub": lambda x, y: x - y, "mul": lambda x, y: x * y,
       "div": lambda x, y: x // y if y else 0, "mod": lambda x, y: x % y if y else 0, "min": min, "max": max,
       "pow": lambda x, y: pow(x, y, 2**64), "and": lambda x, y: x & y, "or": lambda x, y: x | y,
       "xor": lambda x, y: x ^ y}
COMPARE = {"eq": lambda x, y: x == y, "ne": lambda x, y: x != y, "lt": lambda x, y: x < y, "le": lambda x, y: x <= y,
           "gt": lambda x, y: x > y, "ge": lambda x, y: x >= y}


def numbers(kind):
    top = 2**WIDTH[kind] - 1
    return [0, 1, 2, 3, 7, 1000, top // 2, top // 2 + 1, top - 1, top]


def saturate(kind, x):
    if math.isnan(x):
        return 0
    return int(min(max(x, 0), 2**WIDTH[kind] - 1)) if not math.isinf(x) else (2**WIDTH[kind] - 1 if x > 0 else 0)


f = CaseFile("unsigned", "make_cases_unsigned.py")
for kind in WIDTH:
    a = [x for x in numbers(kind) for _ in numbers(kind)]
    b = numbers(kind) * len(numbers(kind))
    ins = [Tensor(kind, a), Tensor(kind, b)]
    for op, fn in OPS.items():
        f.add("%s_%s" % (op, kind), op, ins, [Tensor(kind, [fn(x, y) % 2**WIDTH[kind] for x, y in zip(a, b)])])
    for op, fn in COMPARE.items():
        f.add("%s_%s" % (op, kind), op, ins, [Tensor("bool", [fn(x, y) for x, y in zip(a, b)])])
    x = Tensor(kind, numbers(kind))
    f.add("not_" + kind, "not", [x], [Tensor(kind, [2**WIDTH[kind] - 1 - v for v in numbers(kind)])])
    for to in ("f64", "f32", "f16", "bf16"):
        values = [v for v in numbers(kind) if to != "f16" or v < 65504]
        out = [np.float32(v) if to == "f32" else float(v) for v in values]
        f.add("cast_%s_%s" % (kind, to), "cast", [Tensor(kind, values)], [quantise(to, out)], {"to": to})
    for to, bits in (("i8", 8), ("i32", 32), ("i64", 64)):
        wrapped = [(v + 2**(bits - 1)) % 2**bits - 2**(bits - 1) for v in numbers(kind)]
        f.add("cast_%s_%s" % (kind, to), "cast", [x], [Tensor(to, wrapped)], {"to": to})
    f.add("cast_%s_bool" % kind, "cast", [x], [Tensor("bool", [v != 0 for v in numbers(kind)])], {"to": "bool"})
    for start in ("f32", "f64"):
        floats = [0, -1, 0.9, 1.5, 65535, 65536, 1e10, 1e30, -1e30, math.inf, -math.inf, math.nan, 2.0**63]
        f.add("cast_%s_%s" % (start, kind), "cast", [quantise(start, floats)],
              [Tensor(kind, [saturate(kind, float(v)) for v in quantise(start, floats).values])], {"to": kind})
    signed = [0, 1, -1, 70000, -2**63, 2**63 - 1]
    f.add("cast_i64_" + kind, "cast", [Tensor("i64", signed)], [Tensor(kind, [v % 2**WIDTH[kind] for v in signed])],
          {"to": kind})
    f.add("concat_" + kind, "concat", [x, x], [Tensor(kind, numbers(kind) * 2)], {"axis": 0})
    f.add("gather_" + kind, "gather", [x, Tensor("i64", [9, 0, 7])],
          [Tensor(kind, [numbers(kind)[k] for k in (9, 0, 7)])], {"axis": 0})
    f.add("unique_" + kind, "unique", [Tensor(kind, numbers(kind)[::-1] + [7])],
          [Tensor(kind, numbers(kind)), Tensor("i64", list(range(9, -1, -1))),
           Tensor("i64", list(range(9, -1, -1)) + [4]), Tensor("i64", [1, 1, 1, 1, 2, 1, 1, 1, 1, 1])])
f.add("matmul_u16", "matmul", [Tensor("u16", [[1, 300], [65535, 2]]), Tensor("u16", [[3, 300], [5, 300]])],
      [Tensor("u16", [[1503, 90300 % 65536], [(65535 * 3 + 10) % 65536, (65535 * 300 + 600) % 65536]])])
f.error("reduce_sum_u64", "reduce_sum", [Tensor("u64", [1, 2])], "operand 0 has type u64, expected a float or integer")
f.error("neg_u64", "neg", [Tensor("u64", [1, 2])], "operand 0 has type u64")
f.error("matmul_u64", "matmul", [Tensor("u64", [[1]]), Tensor("u64", [[1]])], "operand 0 has type u64")
f.write()
