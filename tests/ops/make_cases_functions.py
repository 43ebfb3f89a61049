#!/usr/bin/python3
"""Writes the cases of functions of one number that came after make_cases.py, and of random numbers: values from numpy
in f64, and from numpy's RandomState. Run by hand; see caselib.py for what it needs.

    NODE_PATH=<folder>/node_modules /usr/bin/python3 tests/ops/make_cases_functions.py
"""
import numpy as np

from caselib import FLOATS, ULP, CaseFile, Tensor, agree, ort, quantise

rng = np.random.default_rng(20261115)
INF, NAN = np.inf, np.nan
SPECIALS = [NAN, INF, -INF, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 0.999, -0.999, 1.5, 10.0, -10.0, 30.0, -30.0, 88.0, -88.0,
            104.0, -104.0, 1e-3, -1e-3]

FUNCTIONS = {  # the function in f64, how many units in the last place f32 and f64 may be off, ONNX's name
    "asin": (np.arcsin, 2, "Asin"), "acos": (np.arccos, 2, "Acos"), "atan": (np.arctan, 2, "Atan"),
    "sinh": (np.sinh, 3, "Sinh"), "cosh": (np.cosh, 3, "Cosh"), "asinh": (np.arcsinh, 3, "Asinh"),
    "acosh": (np.arccosh, 3, "Acosh"), "atanh": (np.arctanh, 3, "Atanh"), "expm1": (np.expm1, 3, None),
    "softplus": (lambda x: np.logaddexp(0, x), 4, "Softplus"),
}


def specials(kind):
    return quantise(kind, SPECIALS + list(rng.normal(size=20) * 2))


def tolerance(kind, ulps):
    """Half types are one off at most, where f32 rounds the other way; exp is 0 where f32 has no normal number."""
    smallest = {"f32": 2.0**-119, "bf16": 2.0**-119, "f64": 2.0**-1022, "f16": 2.0**-24}[kind]
    return (smallest, ULP[kind] if kind in ("f16", "bf16") else ulps * ULP[kind])


def functions(file):
    for op, (function, ulps, onnx) in FUNCTIONS.items():
        for kind in FLOATS:
            x = specials(kind)
            file.add("%s_%s" % (op, kind), op, [x], [quantise(kind, function(x.f64()))], tol=tolerance(kind, ulps))
        x = quantise("f32", rng.uniform(-1, 1, size=(3, 7)) if op != "acosh" else rng.uniform(1, 9, size=(3, 7)))
        want = quantise("f32", function(x.f64()))
        if onnx:
            agree(want, ort(onnx, [x])[0], rtol=1e-5, atol=1e-6)
        file.add(op + "_inside", op, [x], [want], tol=(1e-7, 1e-6))
        file.add(op + "_empty", op, [Tensor("f32", np.zeros((2, 0)))], [Tensor("f32", np.zeros((2, 0)))])
        file.error(op + "_of_ints", op, [Tensor("i32", [1])], "operand 0 has type i32, expected a float type")


DRAWS = {"random_uniform": lambda seed, shape: np.random.RandomState(seed).random_sample(shape),
         "random_normal": lambda seed, shape: np.random.RandomState(seed).standard_normal(shape)}


def random(file):
    for op, draw in DRAWS.items():
        tol = (0, 1e-14) if op == "random_normal" else None
        for seed in [0, 1, 12345, 2**32 - 1]:
            attrs = {"shape": [2, 3], "type": "f64", "seed": seed}
            file.add("%s_seed_%d" % (op, seed), op, [], [Tensor("f64", draw(seed, (2, 3)))], attrs, tol=tol)
        for kind in FLOATS:  # f32 is the type without one
            attrs = {"shape": [3, 3], "seed": 7}
            if kind != "f32":
                attrs["type"] = kind
            file.add("%s_%s" % (op, kind), op, [], [quantise(kind, draw(7, (3, 3)))], attrs)
        many = {"shape": [701], "type": "f64", "seed": 3}  # more than the generator makes at once
        file.add(op + "_many", op, [], [Tensor("f64", draw(3, (701,)))], many, tol=tol)
        like = quantise("f16", rng.normal(size=(4, 1, 5)))
        file.add(op + "_like", op, [like], [quantise("f16", draw(9, (4, 1, 5)))], {"seed": 9})
        of_ints = Tensor("i64", [[1, 2, 3], [4, 5, 6]])
        file.add(op + "_like_ints", op, [of_ints], [quantise("f32", draw(9, (2, 3)))], {"seed": 9, "type": "f32"})
        file.add(op + "_scalar", op, [], [quantise("f32", draw(5, ()))], {"seed": 5})
        file.add(op + "_empty", op, [], [Tensor("f32", np.zeros((3, 0)))], {"shape": [3, 0]})
        file.error(op + "_of_ints", op, [of_ints], "the result's type is i64, expected a float type")
        file.error(op + "_type", op, [], "the result's type is f31, expected a float type", {"type": "f31"})
        file.error(op + "_seed", op, [], "attribute 'seed' is 4294967296", {"seed": 2**32})
        file.error(op + "_extent", op, [], "dimension 1 of 'shape' is -1", {"shape": [2, -1]})
        file.error(op + "_rank", op, [], "'shape' has 9 dimensions", {"shape": [1] * 9})
        file.error(op + "_twice", op, [like], "the shape is given twice", {"shape": [4, 1, 5]})


def main():
    for name, make in {"functions": functions, "random": random}.items():
        file = CaseFile(name, "make_cases_functions.py")
        with np.errstate(all="ignore"):
            make(file)
        file.write()
        print("%-12s %d cases" % (name, len(file.names)))


if __name__ == "__main__":
    main()
