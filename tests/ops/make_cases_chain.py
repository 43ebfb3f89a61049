#!/usr/bin/python3
"""Writes the cases of chains: values from numpy and scipy in f64, rounded to f32 after every step. Run by hand; see
caselib.py for what it needs.

    /usr/bin/python3 tests/ops/make_cases_chain.py
"""
import os
import re

import numpy as np
from scipy import special

from caselib import CaseFile, Tensor, quantise

rng = np.random.default_rng(20261115)
INF, NAN = np.inf, np.nan
SPECIALS = [NAN, INF, -INF, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 10.0, -10.0, 30.0, -30.0]
DEF = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "src", "ops", "chain.def")
with open(DEF, encoding="ascii") as f:
    STEPS = re.findall(r"^BERTH__CHAIN\((\w+), (\d)\)", f.read(), re.M)
CODE = {name: i for i, (name, _) in enumerate(STEPS)}
ARITY = {name: int(n) for name, n in STEPS}


def gelu_tanh(x):
    return np.where(x == -INF, 0, x * special.expit(1.5957691216057307117 * (x + 0.044715 * x**3)))


def clamp(x, low, high):
    x = np.where(x < low, low, x)
    return np.where(x > high, high, x)


FUNCTION = {
    "identity": lambda x: x, "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide,
    "min": np.minimum, "max": np.maximum, "pow": np.power, "clamp": clamp,
    "where": lambda c, x, y: np.where(c != 0, x, y), "eq": np.equal, "ne": np.not_equal, "lt": np.less,
    "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
    "and": lambda x, y: (x != 0) & (y != 0), "or": lambda x, y: (x != 0) | (y != 0),
    "xor": lambda x, y: (x != 0) != (y != 0), "not": lambda x: x == 0, "neg": np.negative, "abs": np.abs,
    "relu": lambda x: np.where(x < 0, 0, x), "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x),
    "reciprocal": lambda x: 1 / x, "sign": np.sign, "round": np.rint, "floor": np.floor, "ceil": np.ceil,
    "exp": np.exp, "expm1": np.expm1, "log": np.log, "tanh": np.tanh, "sigmoid": special.expit,
    "softplus": lambda x: np.logaddexp(0, x), "erf": special.erf,
    "gelu": lambda x: np.where(x == -INF, 0, x * special.ndtr(x)), "gelu_tanh": gelu_tanh,
    "silu": lambda x: np.where(x == -INF, 0, x * special.expit(x)), "sin": np.sin, "cos": np.cos,
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh, "asinh": np.arcsinh,
    "acosh": np.arccosh, "atanh": np.arctanh,
}


def value(operands, numbers, steps):
    at = [t.f64() for t in operands] + [np.float64(np.float32(x)) for x in numbers]
    with np.errstate(all="ignore"):
        for name, *registers in steps:
            result = FUNCTION[name](*[at[r] for r in registers])
            at.append(np.asarray(result, dtype=np.float32).astype(np.float64))
    return np.broadcast_to(at[-1], np.broadcast_shapes(*[t.shape for t in operands]))


def code_of(steps):
    return [n for name, *registers in steps for n in ([CODE[name]] + registers + [0, 0])[:4]]


def stored(kind, values):
    """As the op cast does it."""
    if kind == "f32":
        return quantise(kind, values)
    if kind == "bool":
        return Tensor(kind, values != 0)
    info = np.iinfo({"u8": np.uint8, "i8": np.int8, "i32": np.int32}[kind])
    return Tensor(kind, np.clip(np.trunc(np.nan_to_num(values, nan=0.0, posinf=1e18, neginf=-1e18)), info.min, info.max))


def add(file, name, operands, steps, numbers=(), kind="f32", tol=(1e-30, 1e-6)):
    attrs = {"code": code_of(steps)}
    if numbers:
        attrs["numbers"] = [float(x) for x in numbers]
    if kind != "f32":
        attrs["type"] = kind
    file.add(name, "chain", operands, [stored(kind, value(operands, numbers, steps))], attrs, tol=tol)


def tensor(*shape):
    return quantise("f32", rng.normal(size=shape) * 2)


def every_step(file):
    x = quantise("f32", SPECIALS + list(rng.normal(size=5)))
    y = quantise("f32", rng.permutation(np.concatenate([SPECIALS, rng.normal(size=5)])))
    z = quantise("f32", rng.permutation(np.concatenate([np.nan_to_num(SPECIALS, nan=2.0), rng.normal(size=5)])))
    for name, _ in STEPS:
        exact = name in ("sin", "cos")  # of 30, where f32 has few digits left after the turns
        add(file, "chain_" + name, [x, y, z], [(name, *range(ARITY[name]))], tol=(1e-7 if exact else 1e-12, 2e-6))


def shapes(file):
    steps = [("mul", 0, 1), ("add", 3, 2), ("relu", 4)]
    add(file, "chain_rows", [tensor(2, 3, 4), tensor(4), tensor(4)], steps)
    add(file, "chain_channels", [tensor(2, 3, 2, 2), tensor(3, 1, 1), tensor(1)], steps)
    add(file, "chain_grows", [tensor(3, 1), tensor(1, 4), tensor(2, 1, 1)], steps)
    add(file, "chain_scalar", [tensor(), tensor(), tensor()], steps)
    add(file, "chain_empty", [tensor(2, 0), tensor(1), tensor(2, 1)], steps)
    add(file, "chain_hard_swish", [tensor(5, 7)],
        [("add", 0, 1), ("clamp", 4, 2, 3), ("mul", 0, 5), ("div", 6, 3)], [3, 0, 6])
    add(file, "chain_reads_early_results", [tensor(11), tensor(11)],
        [("add", 0, 1), ("mul", 2, 2), ("sub", 3, 2), ("max", 4, 2), ("add", 5, 3)])
    add(file, "chain_unused_operand", [tensor(3), tensor(2, 3)], [("neg", 0)])


def types(file):
    mask = Tensor("bool", rng.random((3, 5)) < 0.5)
    add(file, "chain_mask", [mask, tensor(3, 5)], [("where", 0, 1, 2)], [-INF])
    for kind in ["u8", "i8", "i32"]:
        x = Tensor(kind, rng.integers(0 if kind == "u8" else -100, 100, size=(3, 5)))
        add(file, "chain_from_" + kind, [x, tensor(5)], [("mul", 0, 1)])
    x = quantise("f32", SPECIALS + [300, -300, 127.9, -128.9, 255.9, 3e9, -3e9])
    for kind in ["bool", "u8", "i8", "i32"]:
        add(file, "chain_to_" + kind, [x], [("identity", 0)], kind=kind, tol=None)
    add(file, "chain_in_range", [tensor(4, 4)], [("gt", 0, 1), ("lt", 0, 2), ("and", 3, 4)], [-1, 1], kind="bool")


def errors(file):
    x = tensor(2)
    file.error("chain_without_steps", "chain", [x], "`code` is empty", {"code": []})
    file.error("chain_of_three_entries", "chain", [x], "`code` has 3 entries, expected four a step", {"code": [0, 0, 0]})
    file.error("chain_of_no_step", "chain", [x], "step 0 of `code` is 1000", {"code": [1000, 0, 0, 0]})
    file.error("chain_reads_itself", "chain", [x], "step 0 of `code` reads register 1, expected one of the 1 before it",
               {"code": code_of([("neg", 1)])})
    file.error("chain_too_long", "chain", [x], "is too long", {"code": code_of([("neg", 0)]), "numbers": [0.5] * 33})
    file.error("chain_of_f64", "chain", [Tensor("f64", [1.0])], "operand 0 has type f64, expected f32",
               {"code": code_of([("neg", 0)])})
    file.error("chain_to_i64", "chain", [x], "attribute 'type' is 'i64', expected f32",
               {"code": code_of([("neg", 0)]), "type": "i64"})
    file.error("chain_does_not_broadcast", "chain", [x, tensor(3)], "do not broadcast", {"code": code_of([("add", 0, 1)])})


if __name__ == "__main__":
    cases = CaseFile("chain", "make_cases_chain.py")
    for part in [every_step, shapes, types, errors]:
        part(cases)
    cases.write()
