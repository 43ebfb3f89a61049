#!/usr/bin/python3
"""Writes the cases of the element-wise ops, reductions and norms: values from numpy and scipy in f64, or from exact
integers, checked against ONNX Runtime where it has the op. Run by hand; see caselib.py for what it needs.

    NODE_PATH=<folder>/node_modules /usr/bin/python3 tests/ops/make_cases.py
"""
from fractions import Fraction

import numpy as np
from scipy import special

from caselib import FLOATS, INTS, LIMITS, NUMPY, ULP, CaseFile, Tensor, agree, ort, quantise, wrap

rng = np.random.default_rng(20240611)
INF, NAN = np.inf, np.nan


def normal(kind, *shape):
    return quantise(kind, rng.normal(size=shape) * 2)


def ints(kind, *shape, low=-100, high=100):
    least, most = LIMITS[kind]
    return Tensor(kind, rng.integers(max(low, least), min(high, most), size=shape))


def any_of(kind, *shape):
    if kind == "bool":
        return Tensor(kind, rng.integers(0, 2, size=shape) > 0)
    return normal(kind, *shape) if kind in FLOATS else ints(kind, *shape)


def specials(kind):
    tiny = {"f32": 1e-42, "f64": 5e-320, "f16": 3e-7, "bf16": 1e-39}[kind]
    large = {"f32": 3e38, "f64": 1.5e308, "f16": 65000.0, "bf16": 3e38}[kind]
    fixed = [NAN, INF, -INF, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.5, 10.0, -10.0, 30.0, -30.0, 88.0,
             -88.0, 104.0, -104.0, tiny, -tiny, large, -large]
    return quantise(kind, fixed + list(rng.normal(size=22) * 3))


def edges(kind):
    least, most = LIMITS[kind]
    return sorted({least, least + 1, least // 2, most, most - 1, most // 2, 0, 1, 2, 3, 7, 100}
                  | ({-1, -2, -7, -100} if least < 0 else set()))


def tolerance(kind, ulps):
    """So many units in the last place; half types are one off at most, where f32 rounds the other way."""
    if isinstance(ulps, tuple):
        ulps = ulps[kind == "f64"]
    # exp is 0 where f32 has no normal number, and silu multiplies that by up to 2^7
    smallest = {"f32": 2.0**-119, "bf16": 2.0**-119, "f64": 2.0**-1022, "f16": 2.0**-24}[kind]
    return (smallest, ULP[kind] if kind in ("f16", "bf16") else ulps * ULP[kind])


UNARY = {  # the function in f64, and how many units in the last place f32 (and f64) may be off
    "neg": (lambda x: -x, 0), "abs": (np.abs, 0), "exp": (np.exp, 2), "log": (np.log, 2), "sqrt": (np.sqrt, 1),
    "rsqrt": (lambda x: 1 / np.sqrt(x), 2), "sin": (np.sin, 2), "cos": (np.cos, 2), "tan": (np.tan, 2),
    "tanh": (np.tanh, 3), "sigmoid": (special.expit, 4), "relu": (lambda x: np.maximum(x, 0), 0),
    "gelu": (lambda x: np.where(x == -INF, 0, x * special.ndtr(x)), (80, 2000)),
    "gelu_tanh": (lambda x: np.where(x == -INF, 0, x * special.expit(2 * np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
                  400),
    "silu": (lambda x: np.where(x == -INF, 0, x * special.expit(x)), 4), "erf": (special.erf, 4),
    "round": (np.rint, 0), "floor": (np.floor, 0), "ceil": (np.ceil, 0), "reciprocal": (lambda x: 1 / x, 1),
    "sign": (np.sign, 0),
}


def unary(file):
    for op, (function, ulps) in UNARY.items():
        for kind in FLOATS:
            x = specials(kind)
            if kind == "f64" and op in ("sin", "cos", "tan"):
                x = Tensor(kind, x.values[np.isnan(x.values) | (np.abs(x.values) < 1e5) | np.isinf(x.values)])
            tol = tolerance(kind, ulps) if ulps else None
            file.add("%s_%s" % (op, kind), op, [x], [quantise(kind, function(x.f64()))], tol=tol)
    for op in ["neg", "abs", "relu", "sign"]:
        for kind in INTS:
            f = {"neg": lambda v: -v, "abs": abs, "relu": lambda v: max(v, 0), "sign": lambda v: (v > 0) - (v < 0)}[op]
            e = edges(kind)
            file.add("%s_%s" % (op, kind), op, [Tensor(kind, e)], [Tensor(kind, [wrap(kind, f(v)) for v in e])])
    for kind in INTS:
        e = edges(kind)
        file.add("not_" + kind, "not", [Tensor(kind, e)], [Tensor(kind, [wrap(kind, ~v) for v in e])])
    b = Tensor("bool", [[1, 0, 1], [0, 0, 1]])
    file.add("not_bool", "not", [b], [Tensor("bool", ~b.values)])
    for shape in [(), (0,), (3, 0, 2), (1, 1), (3, 5), (2, 3, 4), (2, 259), (2, 1, 3, 1, 2, 1, 2, 3)]:
        x = normal("f32", *shape)
        name = "x".join(map(str, shape)) or "scalar"
        file.add("neg_shape_" + name, "neg", [x], [Tensor("f32", -x.values)])
        h = normal("f16", *shape)
        file.add("relu_f16_shape_" + name, "relu", [h], [Tensor("f16", np.maximum(h.values, 0))])
    for op, onnx in [("erf", "Erf"), ("sigmoid", "Sigmoid"), ("tanh", "Tanh"), ("round", "Round"), ("sign", "Sign")]:
        x = normal("f32", 3, 7)
        file.add(op + "_ort", op, [x], [agree(quantise("f32", UNARY[op][0](x.f64())), ort(onnx, [x])[0])],
                 tol=(1e-7, 1e-6))
    file.error("exp_of_ints", "exp", [Tensor("i32", [1])], "operand 0 has type i32, expected a float type")
    file.error("neg_of_bool", "neg", [Tensor("bool", [1])], "operand 0 has type bool, expected a float or integer type")
    file.error("not_of_f32", "not", [Tensor("f32", [1])], "expected bool or an integer type")
    for kind in FLOATS + INTS + ["bool"]:
        x = any_of(kind, 3, 4)
        file.add("identity_" + kind, "identity", [x], [x])
    file.add("identity_empty", "identity", [any_of("f32", 0, 3)], [any_of("f32", 0, 3)])
    file.add("identity_scalar", "identity", [Tensor("f32", 7)], [Tensor("f32", 7)])


def clamp(file):
    for kind in FLOATS:
        x = specials(kind)
        for name, low, high in [("both", -1.25, 2.5), ("min", 0.0, INF), ("max", -INF, 6.0), ("crossed", 3.0, 1.0)]:
            attrs = {k: v for k, v in (("min", low), ("max", high)) if not np.isinf(v)}
            want = np.minimum(np.maximum(x.f64(), low), high)
            file.add("clamp_%s_%s" % (name, kind), "clamp", [x], [quantise(kind, want)], attrs)
    for kind in INTS:
        e = edges(kind)
        for name, low, high in [("both", -3.5, 6.5), ("wide", -1e30, 1e30), ("above", 1e30, INF),
                                ("below", -INF, -1e30), ("inside", 1.0, 2.0**31)]:
            least, most = LIMITS[kind]
            lo = least if low == -INF else int(np.ceil(low))
            hi = most if high == INF else int(np.floor(high))
            lo, hi = min(max(lo, least), most), min(max(hi, least), most)
            want = [min(max(v, lo), hi) for v in e]
            attrs = {k: v for k, v in (("min", low), ("max", high)) if not np.isinf(v)}
            file.add("clamp_%s_%s" % (name, kind), "clamp", [Tensor(kind, e)], [Tensor(kind, want)], attrs)
    file.error("clamp_nan", "clamp", [Tensor("f32", [1])], "attribute 'min' is NaN", {"min": NAN})
    file.error("clamp_bool", "clamp", [Tensor("bool", [1])], "operand 0 has type bool")


def round_to_bits(value, bits):
    """An integer rounded half to even to so many significant bits."""
    extra = max(abs(value).bit_length() - bits, 0)
    quotient = Fraction(value, 2**extra)
    return round(quotient) * 2**extra  # Python rounds half to even


def cast_one(kind, to, value):
    if to == "bool":
        return bool(value != 0)
    if kind in FLOATS:
        value = float(value)
        if to in FLOATS:
            return value  # rounded by quantise
        if np.isnan(value):
            return 0
        least, most = LIMITS[to]
        return most if value == INF else least if value == -INF else min(max(int(value), least), most)
    value = int(value)
    if to in FLOATS:
        return float(round_to_bits(value, {"f32": 24, "f64": 53, "f16": 11, "bf16": 8}[to]))
    return wrap(to, value)


def cast(file):
    for kind in FLOATS + INTS + ["bool"]:
        if kind in FLOATS:
            beyond = [127.5, -128.9, 255.9, 256.0, 32767.9, -32769.0, 2147483647.0, -2147483904.0, 4294967295.0,
                      9.3e18, -9.3e18, 1e-8, 0.1, 1 / 3, 65519.0, 65520.0, 2049.0, 2051.0, 257.0, 259.0]
            x = Tensor(kind, np.concatenate([specials(kind).values[:34], quantise(kind, beyond).values]))
        elif kind == "bool":
            x = Tensor(kind, [1, 0, 1])
        else:
            extra = [2**24 + 1, 2**24 + 3, 2**53 + 1, 2**54 + 2**46 + 1, 2**60 + 2**52 + 1, 2049, 2051, 257,
                     65519, 65520, -(2**60 + 2**52 + 1)]
            x = Tensor(kind, edges(kind) + [v for v in extra if LIMITS[kind][0] <= v <= LIMITS[kind][1]])
        for to in FLOATS + INTS + ["bool"]:
            want = [cast_one(kind, to, v) for v in x.values]
            want = quantise(to, want) if to in FLOATS else Tensor(to, want)
            file.add("cast_%s_%s" % (kind, to), "cast", [x], [want], {"to": to})
    x = Tensor("f64", [1 + 2.0**-11 + 2.0**-40, 1 + 2.0**-8 + 2.0**-50, 1 + 2.0**-8, 1 + 3 * 2.0**-8])
    for to in ["f16", "bf16"]:  # would be wrong through f32
        file.add("cast_once_" + to, "cast", [x], [quantise(to, x.values)], {"to": to})
    x = normal("f32", 3, 2, 5)
    file.add("cast_3d", "cast", [x], [Tensor("i32", np.trunc(x.values))], {"to": "i32"})
    file.add("cast_empty", "cast", [Tensor("f32", np.zeros((0, 2)))], [Tensor("i8", np.zeros((0, 2)))], {"to": "i8"})
    file.error("cast_unknown", "cast", [Tensor("f32", [1])], "attribute 'to' is 'f31'", {"to": "f31"})


def int_pow(x, n):
    return x**n if n >= 0 else 0 if x == 0 else int(Fraction(x)**n)


def truncated_div(x, y):
    return 0 if y == 0 else abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)


def truncated_mod(x, y):
    return 0 if y == 0 else x - truncated_div(x, y) * y


BINARY = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "pow": np.power, "min": np.minimum,
          "max": np.maximum, "mod": np.mod}
INT_BINARY = {"add": lambda x, y: x + y, "sub": lambda x, y: x - y, "mul": lambda x, y: x * y, "div": truncated_div,
              "pow": int_pow, "min": min, "max": max, "mod": lambda x, y: 0 if y == 0 else x % y,
              "and": lambda x, y: x & y, "or": lambda x, y: x | y, "xor": lambda x, y: x ^ y}
SHAPES = [("broadcast", (2, 3), (3,)), ("column", (4, 1), (1, 5)), ("scalar", (), (2, 3)),
          ("middle", (2, 1, 3), (4, 1)), ("empty", (0, 3), (3,)), ("empty_one", (1, 3), (0, 1)),
          ("long", (2, 300), (2, 1)), ("both_scalar", (), ()),
          ("channels", (2, 3, 2, 2), (3, 1, 1))]


def int_case(file, name, op, function, kind, attrs=None):
    e = edges(kind)
    y = [0, 1, 2, 3, 5] + ([-1, -2, -3] if LIMITS[kind][0] < 0 else []) if op == "pow" else e
    pairs = [(a, b) for a in e for b in y]
    if len(pairs) > 60:
        pairs = [pairs[i] for i in sorted(rng.choice(len(pairs), 60, replace=False))]
        pairs += [(LIMITS[kind][0], -1), (LIMITS[kind][0], 0)] if LIMITS[kind][0] < 0 else [(7, 0)]
    a, b = zip(*pairs)
    want = Tensor(kind, [wrap(kind, function(x, z)) for x, z in pairs])
    file.add(name, op, [Tensor(kind, a), Tensor(kind, b)], [want], attrs)


def binary(file):
    for op, function in BINARY.items():
        for kind in FLOATS:
            x = specials(kind)
            y = Tensor(kind, rng.permutation(x.values))
            with np.errstate(all="ignore"):
                want = quantise(kind, function(x.f64(), y.f64()))
            file.add("%s_%s" % (op, kind), op, [x, y], [want], tol=tolerance(kind, 2) if op == "pow" else None)
        for kind in INTS:
            int_case(file, "%s_%s" % (op, kind), op, INT_BINARY[op], kind)
    for op in ["and", "or", "xor"]:
        for kind in INTS:
            int_case(file, "%s_%s" % (op, kind), op, INT_BINARY[op], kind)
        a, b = Tensor("bool", [[0], [1]]), Tensor("bool", [0, 1])
        f = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}[op]
        file.add(op + "_bool", op, [a, b], [Tensor("bool", f(a.values, b.values))])
    for kind in FLOATS:
        x = specials(kind)
        y = Tensor(kind, rng.permutation(x.values))
        with np.errstate(all="ignore"):
            file.add("fmod_" + kind, "mod", [x, y], [quantise(kind, np.fmod(x.f64(), y.f64()))], {"fmod": 1})
    for kind in INTS:
        int_case(file, "fmod_" + kind, "mod", truncated_mod, kind, {"fmod": 1})
    for name, a, b in SHAPES:
        x, y = normal("f32", *a), normal("f32", *b)
        file.add("sub_" + name, "sub", [x, y], [Tensor("f32", x.values - y.values)])
        h, g = normal("bf16", *a), normal("bf16", *b)
        file.add("mul_bf16_" + name, "mul", [h, g], [quantise("bf16", h.f64() * g.f64())])
    x, y = normal("f32", 3, 5), normal("f32", 5)
    file.add("div_ort", "div", [x, y], [agree(quantise("f32", x.f64() / y.f64()), ort("Div", [x, y])[0])])
    i, j = Tensor("i32", [7, -7, 7, -7, 9]), Tensor("i32", [3, 3, -3, -3, 2])
    file.add("div_i32_ort", "div", [i, j], [Tensor("i32", ort("Div", [i, j])[0])])
    file.add("mod_i32_ort", "mod", [i, j], [Tensor("i32", ort("Mod", [i, j])[0])])
    file.add("fmod_i32_ort", "mod", [i, j], [Tensor("i32", ort("Mod", [i, j], {"fmod": 1})[0])], {"fmod": 1})
    file.error("add_types", "add", [x, i], "operand 1 has type i32, expected f32 as operand 0 has")
    file.error("add_shapes", "add", [normal("f32", 2, 3), normal("f32", 2)], "shapes [2, 3] and [2] do not broadcast")
    file.error("add_bool", "add", [Tensor("bool", [1]), Tensor("bool", [1])], "expected a float or integer type")
    file.error("and_f32", "and", [x, x], "expected bool or an integer type")
    file.error("fmod_of_add", "add", [x, x], "belongs to the op mod", {"fmod": 1})


def compare(file):
    functions = {"eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
                 "ge": np.greater_equal}
    for op, f in functions.items():
        for kind in FLOATS + INTS + ["bool"]:
            if kind in FLOATS:
                x = Tensor(kind, specials(kind).values[:25])
            else:
                x = Tensor(kind, edges(kind)) if kind in INTS else Tensor(kind, [0, 1])
            y = Tensor(kind, rng.permutation(x.values))
            file.add("%s_%s" % (op, kind), op, [x, y], [Tensor("bool", f(x.values, y.values))])
        a, b = ints("i32", 4, 1, low=0, high=4), ints("i32", 5, low=0, high=4)
        file.add(op + "_broadcast", op, [a, b], [Tensor("bool", f(a.values, b.values))])
    near = Tensor("i64", [2**53, 2**53 + 1, 2**63 - 1]), Tensor("i64", [2**53 + 1, 2**53, 2**63 - 2])
    file.add("lt_i64_near", "lt", list(near), [Tensor("bool", [1, 0, 0])])
    file.add("eq_empty", "eq", [any_of("f32", 0, 2), any_of("f32", 2)], [any_of("bool", 0, 2)])
    file.error("eq_types", "eq", [Tensor("f32", [1]), Tensor("f64", [1])], "operand 1 has type f64, expected f32")


def where(file):
    for kind in FLOATS + INTS + ["bool"]:
        c, a, b = any_of("bool", 3, 5), any_of(kind, 3, 5), any_of(kind, 3, 5)
        file.add("where_" + kind, "where", [c, a, b], [Tensor(kind, np.where(c.values, a.values, b.values))])
    for name, cs, xs, ys in [("broadcast", (2, 1), (3,), (2, 3)), ("mask", (5,), (), (4, 5)),
                             ("cond_large", (2, 2, 3), (3,), ()), ("empty", (0, 1), (3,), ()), ("scalars", (), (), ())]:
        c, a, b = any_of("bool", *cs), any_of("f32", *xs), any_of("f32", *ys)
        file.add("where_" + name, "where", [c, a, b], [Tensor("f32", np.where(c.values, a.values, b.values))])
    x = Tensor("f32", [1])
    file.error("where_condition", "where", [x, x, x], "operand 0 has type f32, expected bool")
    file.error("where_types", "where", [Tensor("bool", [1]), x, Tensor("f64", [1])], "operand 2 has type f64")


AXES = [("all", []), ("last", [-1]), ("first", [0]), ("middle", [1]), ("outer", [0, 2]), ("two", [1, 2])]


def reduced(op, x, axes, keepdims):
    axis = tuple(axes) if axes else None
    if x.kind in FLOATS:
        f = {"sum": np.sum, "mean": np.mean, "max": np.max, "min": np.min, "prod": np.prod}[op]
        return quantise(x.kind, f(x.f64(), axis=axis, keepdims=keepdims))
    big = x.values.astype(object)
    if op in ("max", "min"):
        return Tensor(x.kind, (np.max if op == "max" else np.min)(x.values, axis=axis, keepdims=keepdims))
    result = (np.prod if op == "prod" else np.sum)(big, axis=axis, keepdims=keepdims)
    count = x.values.size // max(np.asarray(result).size, 1)
    divisor = count if op == "mean" else 1
    finish = lambda v: wrap(x.kind, truncated_div(int(v), divisor))
    return Tensor(x.kind, np.vectorize(finish, otypes=[NUMPY[x.kind]])(result))


def reduce(file):
    for op in ["sum", "mean", "max", "min", "prod"]:
        for kind in FLOATS + INTS:
            x = any_of(kind, 3, 4, 5)
            tol = {"f32": (1e-6, 1e-6), "f64": (1e-14, 1e-13)}.get(kind, (1e-7, ULP.get(kind, 0)))
            for name, axes in AXES if kind in ("f32", "i32") else AXES[1:3]:
                keep = name in ("last", "outer")
                attrs = {"axes": axes, "keepdims": int(keep)} if axes else {"keepdims": 0}
                file.add("reduce_%s_%s_%s" % (op, kind, name), "reduce_" + op, [x], [reduced(op, x, axes, keep)], attrs,
                         tol=None if op in ("max", "min") or kind in INTS else tol)
        x = normal("f32", 2, 3, 4)
        onnx = "Reduce" + op.capitalize()
        ins, attrs = ([x, Tensor("i64", [0, 2])], {}) if op == "sum" else ([x], {"axes": [0, 2]})
        file.add("reduce_%s_ort" % op, "reduce_" + op, [x],
                 [agree(reduced(op, x, [0, 2], True), ort(onnx, ins, attrs)[0])], {"axes": [0, 2]}, tol=(1e-6, 1e-6))
        n = Tensor("f32", [[1, NAN, 3], [4, 5, 6], [NAN, INF, -INF]])
        file.add("reduce_%s_nan" % op, "reduce_" + op, [n], [reduced(op, n, [1], True)], {"axes": [1]},
                 tol=(1e-6, 1e-6))
        long = normal("f32", 2, 700) if op != "prod" else quantise("f32", rng.uniform(0.9, 1.1, size=(2, 700)))
        file.add("reduce_%s_long" % op, "reduce_" + op, [long], [reduced(op, long, [1], False)],
                 {"axes": [1], "keepdims": 0}, tol=(1e-5, 1e-6))
        file.add("reduce_%s_scalar" % op, "reduce_" + op, [Tensor("f32", 3)], [Tensor("f32", 3)])
        nothing = {"sum": 0, "prod": 1, "mean": NAN, "max": -INF, "min": INF}[op]
        file.add("reduce_%s_empty" % op, "reduce_" + op, [Tensor("f32", np.zeros((2, 0)))],
                 [Tensor("f32", [[nothing]] * 2)], {"axes": [1]})
        file.add("reduce_%s_empty_out" % op, "reduce_" + op, [Tensor("f32", np.zeros((0, 3)))],
                 [Tensor("f32", np.zeros((0, 1)))], {"axes": [-1]})
        least, most = LIMITS["i8"]
        nothing = {"sum": 0, "prod": 1, "mean": 0, "max": least, "min": most}[op]
        file.add("reduce_%s_empty_i8" % op, "reduce_" + op, [Tensor("i8", np.zeros((2, 0)))],
                 [Tensor("i8", [[nothing]] * 2)], {"axes": [1]})
    x = normal("f32", 2, 3)
    file.error("reduce_axis", "reduce_sum", [x], "axis 2 is out of range", {"axes": [2]})
    file.error("reduce_twice", "reduce_sum", [x], "axis", {"axes": [1, -1]})
    file.error("reduce_bool", "reduce_sum", [Tensor("bool", [1])], "operand 0 has type bool")
    file.error("reduce_keepdims", "reduce_max", [x], "attribute 'keepdims'", {"keepdims": 2})


def arg_of(op, values, axis, last, keepdims):
    values = np.flip(values, axis) if last else values
    at = (np.argmax if op == "arg_max" else np.argmin)(values, axis=axis)
    at = values.shape[axis] - 1 - at if last else at
    return Tensor("i64", np.expand_dims(at, axis) if keepdims else at)


def arg(file):
    for op, onnx in [("arg_max", "ArgMax"), ("arg_min", "ArgMin")]:
        for kind in FLOATS + INTS:
            x = any_of(kind, 4, 5)
            file.add("%s_%s" % (op, kind), op, [x], [arg_of(op, x.values, 1, False, True)], {"axis": -1})
        ties = ints("i32", 3, 4, 5, low=0, high=3)
        for axis in range(3):
            for last in (0, 1):
                want = arg_of(op, ties.values, axis, last, False)
                agree(want, ort(onnx, [ties], {"axis": axis, "keepdims": 0, "select_last_index": last})[0])
                file.add("%s_ties_%d_%d" % (op, axis, last), op, [ties], [want],
                         {"axis": axis, "keepdims": 0, "select_last": last})
        n = Tensor("f32", [[1, NAN, 3, NAN], [INF, 5, -INF, 6], [-INF, -INF, -INF, -INF]])
        file.add(op + "_nan", op, [n], [arg_of(op, n.values, 1, False, True)], {"axis": 1})
        file.add(op + "_nan_last", op, [n], [arg_of(op, n.values, 1, True, True)], {"axis": 1, "select_last": 1})
        long = normal("f32", 2, 600)
        file.add(op + "_long", op, [long], [arg_of(op, long.values, 1, False, True)], {"axis": 1})
        near = Tensor("i64", [2**60, 2**60 + 1, 2**60 - 1])
        file.add(op + "_i64_near", op, [near], [arg_of(op, near.values, 0, False, True)])
        file.add(op + "_empty_out", op, [Tensor("f32", np.zeros((0, 3)))], [Tensor("i64", np.zeros((0, 1)))],
                 {"axis": 1})
        file.error(op + "_empty", op, [Tensor("f32", np.zeros((2, 0)))], "is empty", {"axis": 1})
        file.error(op + "_scalar", op, [Tensor("f32", 1)], "a scalar, which has no axes")
        file.error(op + "_axis", op, [n], "axis -3 is out of range", {"axis": -3})


def top(x, k, axis, largest):
    def line(values):
        def key(i):
            v = values[i]
            nan = v != v
            number = 0 if nan else (-v if largest else v)
            return (not nan if largest else nan, number, i)
        return sorted(range(len(values)), key=key)[:k]
    order = np.apply_along_axis(lambda v: np.array(line(v.tolist()), dtype=np.int64), axis, x.values)
    return [Tensor(x.kind, np.take_along_axis(x.values, order, axis)), Tensor("i64", order)]


def top_k(file):
    for kind in FLOATS + INTS:
        x = any_of(kind, 3, 7)
        for largest in (0, 1):
            file.add("top_k_%s_%d" % (kind, largest), "top_k", [x], top(x, 3, 1, largest), {"k": 3, "largest": largest})
    ties = ints("i32", 4, 6, 3, low=0, high=4)
    for axis in range(3):
        for largest in (0, 1):
            want = top(ties, 2, axis, largest)
            got = ort("TopK", [ties, Tensor("i64", [2])], {"axis": axis, "largest": largest}, n_out=2)
            agree(want[0], got[0]), agree(want[1], got[1])
            file.add("top_k_ties_%d_%d" % (axis, largest), "top_k", [ties], want,
                     {"k": 2, "axis": axis, "largest": largest})
    n = Tensor("f32", [1, -NAN, INF, -INF, -0.0, 0.0, NAN, 3])
    for largest in (0, 1):
        file.add("top_k_nan_%d" % largest, "top_k", [n], top(n, 8, 0, largest), {"k": 8, "largest": largest})
    long = normal("f32", 2, 600)
    file.add("top_k_long", "top_k", [long], top(long, 37, 1, 1), {"k": 37, "sorted": 0})
    none = np.zeros((2, 0))
    file.add("top_k_none", "top_k", [normal("f32", 2, 3)], [Tensor("f32", none), Tensor("i64", none)], {"k": 0})
    empty = np.zeros((0, 3))
    file.add("top_k_empty", "top_k", [Tensor("f32", empty)], [Tensor("f32", empty), Tensor("i64", empty)], {"k": 3})
    file.error("top_k_many", "top_k", [normal("f32", 2, 3)], "attribute 'k' is 4", {"k": 4})
    file.error("top_k_negative", "top_k", [normal("f32", 2, 3)], "attribute 'k' is -1", {"k": -1})
    file.error("top_k_largest", "top_k", [normal("f32", 2, 3)], "attribute 'largest'", {"k": 1, "largest": 2})
    file.error("top_k_scalar", "top_k", [normal("f32")], "a scalar", {"k": 0})


def cumulative(x, axis, exclusive, reverse):
    values = x.f64() if x.kind in FLOATS else x.values.astype(object)
    values = np.flip(values, axis) if reverse else values
    sums = np.cumsum(values, axis=axis)
    sums = sums - values if exclusive else sums
    sums = np.flip(sums, axis) if reverse else sums
    return quantise(x.kind, sums) if x.kind in FLOATS else Tensor(x.kind, np.vectorize(lambda v: wrap(x.kind, v))(sums))


def cumsum(file):
    for kind in FLOATS + INTS:
        x = any_of(kind, 3, 9)
        tol = {"f32": (1e-6, 1e-6), "f64": (1e-13, 1e-13), "f16": (1e-3, ULP["f16"]), "bf16": (1e-3, ULP["bf16"])}
        tol = tol.get(kind)
        file.add("cumsum_" + kind, "cumsum", [x], [cumulative(x, 1, 0, 0)], {"axis": 1}, tol=tol)
    x = normal("f32", 3, 4, 5)
    for axis in range(3):
        for exclusive in (0, 1):
            for reverse in (0, 1):
                want = cumulative(x, axis, exclusive, reverse)
                agree(want, ort("CumSum", [x, Tensor("i64", axis)], {"exclusive": exclusive, "reverse": reverse})[0])
                file.add("cumsum_%d_%d_%d" % (axis, exclusive, reverse), "cumsum", [x], [want],
                         {"axis": axis, "exclusive": exclusive, "reverse": reverse}, tol=(1e-6, 1e-6))
    long = normal("f32", 600)
    file.add("cumsum_long", "cumsum", [long], [cumulative(long, 0, 1, 1)], {"axis": 0, "exclusive": 1, "reverse": 1},
             tol=(1e-5, 1e-6))
    none = Tensor("f32", np.zeros((2, 0)))
    file.add("cumsum_empty", "cumsum", [none], [none], {"axis": 1})
    file.error("cumsum_axis", "cumsum", [x], "axis 3 is out of range", {"axis": 3})
    file.error("cumsum_reverse", "cumsum", [x], "attribute 'reverse'", {"axis": 0, "reverse": 2})


def softmax(file):
    functions = {"softmax": (special.softmax, "Softmax"), "log_softmax": (special.log_softmax, "LogSoftmax")}
    for op, (f, onnx) in functions.items():
        for kind in FLOATS:
            x = normal(kind, 3, 7)
            tol = {"f32": (1e-6, 2e-6), "f64": (1e-14, 1e-13)}.get(kind, (1e-4, ULP[kind]))
            for axis in (0, 1):
                want = quantise(kind, f(x.f64(), axis=axis))
                file.add("%s_%s_%d" % (op, kind, axis), op, [x], [want], {"axis": axis}, tol=tol)
        x = normal("f32", 2, 3, 4)
        for axis in (-1, 0, 1):
            want = agree(quantise("f32", f(x.f64(), axis=axis)), ort(onnx, [x], {"axis": axis})[0])
            file.add("%s_ort_%d" % (op, axis % 3), op, [x], [want], {"axis": axis}, tol=(1e-6, 2e-6))
        hard = Tensor("f32", [[1e4, -1e4, 1e4], [-3e38, 3e38, 0], [0, -INF, 0], [-INF] * 3, [NAN, 1, 2], [INF, 1, 2]])
        with np.errstate(all="ignore"):
            want = f(hard.f64(), axis=1)
            if op == "log_softmax":  # scipy lets these two through; the definition gives NaN
                want[3:] = NAN
        file.add(op + "_hard", op, [hard], [quantise("f32", want)], tol=(1e-6, 2e-6))
        long = normal("f16", 2, 300)
        file.add(op + "_long", op, [long], [quantise("f16", f(long.f64(), axis=1))], tol=(1e-4, ULP["f16"]))
        for shape in [(2, 0), (0, 3), (1,)]:
            e = Tensor("f32", np.zeros(shape))
            file.add("%s_%s" % (op, "x".join(map(str, shape))), op, [e],
                     [Tensor("f32", np.full(shape, 1.0 if op == "softmax" else 0.0))])
        file.error(op + "_int", op, [Tensor("i32", [1])], "operand 0 has type i32, expected a float type")
        file.error(op + "_scalar", op, [Tensor("f32", 1)], "a scalar")
        file.error(op + "_axis", op, [x], "axis 3 is out of range", {"axis": 3})


def normalised(x, axes, epsilon, scale=None, bias=None, centred=True):
    v = x.f64()
    mean = v.mean(axis=axes, keepdims=True) if centred else 0
    y = (v - mean) / np.sqrt(((v - mean)**2).mean(axis=axes, keepdims=True) + epsilon)
    y = y * scale if scale is not None else y
    return quantise(x.kind, y + bias if bias is not None else y)


NORM_TOL = {"f32": (2e-6, 2e-6), "f64": (1e-13, 1e-13), "f16": (1e-6, ULP["f16"]), "bf16": (1e-6, ULP["bf16"])}


def layer_norm(file):
    for kind in FLOATS:
        x, s, b = normal(kind, 3, 7), normal(kind, 7), normal(kind, 7)
        file.add("layer_norm_" + kind, "layer_norm", [x, s, b], [normalised(x, (1,), 1e-5, s.f64(), b.f64())],
                 tol=NORM_TOL[kind])
        file.add("rms_norm_" + kind, "rms_norm", [x, s], [normalised(x, (1,), 1e-5, s.f64(), centred=False)],
                 tol=NORM_TOL[kind])
    x, s, b = normal("f32", 2, 3, 5), normal("f32", 3, 5), normal("f32", 3, 5)
    want = normalised(x, (1, 2), 1e-3, s.f64(), b.f64())
    agree(want, ort("LayerNormalization", [x, s, b], {"axis": 1, "epsilon": 1e-3})[0])
    file.add("layer_norm_axis_ort", "layer_norm", [x, s, b], [want], {"axis": 1, "epsilon": 1e-3}, tol=NORM_TOL["f32"])
    file.add("layer_norm_plain", "layer_norm", [x], [normalised(x, (2,), 1e-5)], tol=NORM_TOL["f32"])
    file.add("layer_norm_no_scale", "layer_norm", [x, None, normal_bias := normal("f32", 5)],
             [normalised(x, (2,), 1e-5, None, normal_bias.f64())], tol=NORM_TOL["f32"])
    for name, shape in [("scalar", ()), ("one", (1,)), ("row", (5,)), ("column", (3, 1))]:
        s = normal("f32", *shape)
        file.add("layer_norm_scale_" + name, "layer_norm", [x, s], [normalised(x, (1, 2), 1e-5, s.f64())], {"axis": 1},
                 tol=NORM_TOL["f32"])
    file.add("rms_norm_plain", "rms_norm", [x], [normalised(x, (0, 1, 2), 1e-6, centred=False)],
             {"axis": 0, "epsilon": 1e-6}, tol=NORM_TOL["f32"])
    far = quantise("f32", rng.normal(size=(2, 300)) + 1e4)
    file.add("layer_norm_far", "layer_norm", [far], [normalised(far, (1,), 1e-5)], tol=NORM_TOL["f32"])
    same = Tensor("f32", np.full((2, 4), 3.0))
    file.add("layer_norm_constant", "layer_norm", [same], [Tensor("f32", np.zeros((2, 4)))])
    for shape in [(0, 3), (2, 0)]:
        e = Tensor("f32", np.zeros(shape))
        file.add("layer_norm_%dx%d" % shape, "layer_norm", [e], [e])
        file.add("rms_norm_%dx%d" % shape, "rms_norm", [e], [e])
    file.error("layer_norm_int", "layer_norm", [Tensor("i32", [1])], "expected a float type")
    file.error("layer_norm_scale_shape", "layer_norm", [x, normal("f32", 4)], "operand 1 has shape [4], which does not")
    for name, rows in [("rank", 3), ("square", 5)]:
        file.error("layer_norm_scale_" + name, "layer_norm", [x, normal("f32", rows, 5)],
                   "operand 1 has shape [%d, 5], which does not" % rows)
    file.error("layer_norm_grow", "layer_norm", [normal("f32", 2, 1), normal("f32", 4)], "normalised shape [1]")
    file.error("layer_norm_types", "layer_norm", [x, normal("f16", 5)], "operand 1 has type f16, expected f32")
    file.error("layer_norm_epsilon", "layer_norm", [x], "attribute 'epsilon' is -1", {"epsilon": -1.0})
    file.error("layer_norm_axis", "layer_norm", [x], "axis 3 is out of range", {"axis": 3})


def group_norm(file):
    def truth(x, groups, epsilon, scale, bias):
        n, c = x.shape[:2]
        flat = Tensor(x.kind, x.values.reshape(n, groups, -1)).f64()
        mean, var = flat.mean(2, keepdims=True), flat.var(2, keepdims=True)
        y = ((flat - mean) / np.sqrt(var + epsilon)).reshape(x.shape)
        per_channel = (1, c) + (1,) * (len(x.shape) - 2)
        y = y * scale.f64().reshape(per_channel) if scale is not None else y
        return quantise(x.kind, y + bias.f64().reshape(per_channel) if bias is not None else y)
    for kind in FLOATS:
        x, s, b = normal(kind, 2, 6, 3, 2), normal(kind, 6), normal(kind, 6)
        file.add("group_norm_" + kind, "group_norm", [x, s, b], [truth(x, 3, 1e-5, s, b)], {"groups": 3},
                 tol=NORM_TOL[kind])
    x, s, b = normal("f32", 2, 4, 5), normal("f32", 4), normal("f32", 4)
    for groups in (1, 2, 4):
        file.add("group_norm_groups_%d" % groups, "group_norm", [x], [truth(x, groups, 1e-3, None, None)],
                 {"groups": groups, "epsilon": 1e-3}, tol=NORM_TOL["f32"])
    want = agree(truth(x, 4, 1e-5, s, b), ort("InstanceNormalization", [x, s, b])[0])
    file.add("group_norm_instance_ort", "group_norm", [x, s, b], [want], {"groups": 4}, tol=NORM_TOL["f32"])
    file.add("group_norm_no_scale", "group_norm", [x, None, b], [truth(x, 2, 1e-5, None, b)], {"groups": 2},
             tol=NORM_TOL["f32"])
    file.add("group_norm_2d", "group_norm", [normal_2d := normal("f32", 3, 8), None],
             [truth(normal_2d, 2, 1e-5, None, None)], {"groups": 2}, tol=NORM_TOL["f32"])
    long = normal("f32", 1, 2, 300)
    file.add("group_norm_long", "group_norm", [long], [truth(long, 1, 1e-5, None, None)], {"groups": 1},
             tol=NORM_TOL["f32"])
    for shape in [(0, 4, 2), (2, 4, 0)]:
        e = Tensor("f32", np.zeros(shape))
        file.add("group_norm_%dx%dx%d" % shape, "group_norm", [e, s, b], [e], {"groups": 2})
    file.error("group_norm_groups", "group_norm", [x], "attribute 'groups' is 3", {"groups": 3})
    file.error("group_norm_zero", "group_norm", [x], "attribute 'groups' is 0", {"groups": 0})
    file.error("group_norm_rank", "group_norm", [normal("f32", 4)], "expected a rank from 2 to 8", {"groups": 1})
    file.error("group_norm_scale", "group_norm", [x, normal("f32", 3)], "extents 4 and 3 differ", {"groups": 2})
    file.error("group_norm_epsilon", "group_norm", [x], "attribute 'epsilon'", {"groups": 2, "epsilon": NAN})


def batch_norm(file):
    def truth(x, s, b, m, v, epsilon):
        shape = (1, -1) + (1,) * (len(x.shape) - 2)
        s, b, m, v = (t.f64().reshape(shape) for t in (s, b, m, v))
        return quantise(x.kind, (x.f64() - m) / np.sqrt(v + epsilon) * s + b)
    for kind in FLOATS:
        x, s, b, m = normal(kind, 2, 3, 4, 2), normal(kind, 3), normal(kind, 3), normal(kind, 3)
        v = quantise(kind, rng.uniform(0.1, 3, size=3))
        want = truth(x, s, b, m, v, 1e-3)
        if kind == "f32":
            agree(want, ort("BatchNormalization", [x, s, b, m, v], {"epsilon": 1e-3})[0])
        file.add("batch_norm_" + kind, "batch_norm", [x, s, b, m, v], [want], {"epsilon": 1e-3}, tol=NORM_TOL[kind])
    params = [normal("f32", 3), normal("f32", 3), normal("f32", 3), quantise("f32", rng.uniform(0.1, 3, size=3))]
    for shape in [(5, 3), (1, 3, 300), (0, 3, 2), (2, 3, 0)]:
        x = normal("f32", *shape)
        file.add("batch_norm_" + "x".join(map(str, shape)), "batch_norm", [x] + params, [truth(x, *params, 1e-5)],
                 tol=NORM_TOL["f32"])
    x = normal("f32", 2, 4)
    file.error("batch_norm_channels", "batch_norm", [x] + params, "extents 4 and 3 differ")
    file.error("batch_norm_rank", "batch_norm", [normal("f32", 3)] + params, "expected a rank from 2 to 8")
    file.error("batch_norm_int", "batch_norm", [ints("i32", 2, 3)] + params, "expected a float type")


def main():
    families = {"unary": unary, "clamp": clamp, "cast": cast, "binary": binary, "compare": compare, "where": where,
                "reduce": reduce, "arg": arg, "top_k": top_k, "cumsum": cumsum, "softmax": softmax,
                "layer_norm": layer_norm, "group_norm": group_norm, "batch_norm": batch_norm}
    for name, make in families.items():
        file = CaseFile(name, "make_cases.py")
        with np.errstate(all="ignore"):
            make(file)
        file.write()
        print("%-12s %d cases" % (name, len(file.names)))


if __name__ == "__main__":
    main()
