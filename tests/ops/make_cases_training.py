#!/usr/bin/python3
"""Writes the cases of sgd and adamw. Expected values come from numpy, in f64. Run by hand; see caselib.py for what it
needs (ONNX Runtime is not used here).

    /usr/bin/python3 tests/ops/make_cases_training.py
"""
import numpy as np

from caselib import CaseFile, Tensor, quantise

rng = np.random.default_rng(16)
TOL = {"f32": (1e-6, 2e-6), "f64": (1e-14, 1e-13)}


def normal(kind, *shape):
    return quantise(kind, rng.normal(size=shape))


def scalar(kind, value, shape=()):
    return Tensor(kind, np.full(shape, value))


def w8(kind, n):
    """Eight numbers without a draw."""
    return quantise(kind, np.cos(np.arange(8) * n + n))


def sgd_step(kind, w, g, rate, velocity=None, scale=None, momentum=0.0, weight_decay=0.0):
    step = g.f64() * (1.0 if scale is None else scale.f64()) + weight_decay * w.f64()
    if velocity is not None:
        step = step + momentum * velocity.f64()
    out = [quantise(kind, w.f64() - rate.f64() * step)]
    return out + ([quantise(kind, step)] if velocity is not None else [])


def sgd():
    f = CaseFile("sgd", "make_cases_training.py")
    for kind in ("f32", "f64"):
        w, g, v = normal(kind, 3, 7), normal(kind, 3, 7), normal(kind, 3, 7)
        rate, scale = scalar("f32", 0.125), scalar("f32", 0.75, (1,))
        f.add("sgd_" + kind, "sgd", [w, g, rate], sgd_step(kind, w, g, rate), tol=TOL[kind])
        f.add("sgd_momentum_" + kind, "sgd", [w, g, rate, v], sgd_step(kind, w, g, rate, v, None, 0.9, 0.01),
              {"momentum": 0.9, "weight_decay": 0.01}, tol=TOL[kind])
        f.add("sgd_scale_" + kind, "sgd", [w, g, rate, None, scale],
              sgd_step(kind, w, g, rate, None, scale, 0, 0.1), {"weight_decay": 0.1}, tol=TOL[kind])
    w, g, rate = normal("f32", 1000), normal("f32", 1000), scalar("f64", 0.5)
    f.add("sgd_long", "sgd", [w, g, rate, w], sgd_step("f32", w, g, rate, w, None, 0.5), {"momentum": 0.5},
          tol=TOL["f32"])
    none = normal("f32", 2, 0)
    f.add("sgd_empty", "sgd", [none, none, rate], [none])
    f.error("sgd_shape", "sgd", [normal("f32", 3), normal("f32", 4), rate], "extents 3 and 4 differ")
    f.error("sgd_rank", "sgd", [normal("f32", 3), normal("f32", 3, 1), rate], "has rank 2, expected 1")
    f.error("sgd_type", "sgd", [normal("f16", 3), normal("f16", 3), rate], "expected f32 or f64")
    f.error("sgd_rate", "sgd", [normal("f32", 3), normal("f32", 3), normal("f32", 3)], "3 elements, expected one")
    for kind, yes in (("f32", "i64"), ("f64", "i32")):  # nothing drawn from here on: what is above stays
        w, g, v = w8(kind, 1), w8(kind, 2), w8(kind, 3)
        rate = scalar("f32", 0.125)
        f.add("sgd_applied_" + kind, "sgd", [w, g, rate, v, None, scalar(yes, 1)],
              sgd_step(kind, w, g, rate, v, None, 0.5), {"momentum": 0.5}, tol=TOL[kind])
        f.add("sgd_not_applied_" + kind, "sgd", [w, g, rate, v, None, scalar(yes, 0)], [w, v], {"momentum": 0.5})
        f.add("sgd_plain_not_applied_" + kind, "sgd", [w, g, rate, None, None, scalar(yes, 0)], [w])
    f.error("sgd_apply", "sgd", [w, g, rate, None, None, rate], "expected i32")
    f.write()


def adamw_step(kind, w, g, m, v, rate, step, scale=None, beta1=0.9, beta2=0.999, epsilon=1e-8, weight_decay=0.01):
    t = float(step.values.reshape(()))
    gradient = g.f64() * (1.0 if scale is None else scale.f64())
    mean = beta1 * m.f64() + (1 - beta1) * gradient
    square = beta2 * v.f64() + (1 - beta2) * gradient**2
    change = (mean / (1 - beta1**t)) / (np.sqrt(square / (1 - beta2**t)) + epsilon)
    return [quantise(kind, w.f64() - rate.f64() * (weight_decay * w.f64() + change)), quantise(kind, mean),
            quantise(kind, square)]


def adamw():
    f = CaseFile("adamw", "make_cases_training.py")
    for kind in ("f32", "f64"):
        for steps in (1, 2, 1000):
            w, g, m = normal(kind, 2, 5), normal(kind, 2, 5), normal(kind, 2, 5)
            v = quantise(kind, rng.uniform(0.1, 2, size=(2, 5)))
            rate, step = scalar("f32", 0.125), scalar("i64", steps)
            f.add("adamw_%s_%d" % (kind, steps), "adamw", [w, g, m, v, rate, step],
                  adamw_step(kind, w, g, m, v, rate, step), tol=TOL[kind] if kind == "f64" else (1e-6, 1e-5))
    w, g, m = normal("f32", 700), normal("f32", 700), normal("f32", 700)
    v = quantise("f32", rng.uniform(0.1, 2, size=(700,)))
    rate, step, scale = scalar("f32", 0.01, (1,)), scalar("i32", 7, (1, 1)), scalar("f32", 0.25)
    given = {"beta1": 0.8, "beta2": 0.95, "epsilon": 0.001, "weight_decay": 0.0}
    f.add("adamw_scale", "adamw", [w, g, m, v, rate, step, scale],
          adamw_step("f32", w, g, m, v, rate, step, scale, 0.8, 0.95, 0.001, 0.0), given, tol=(1e-6, 1e-5))
    zeros = quantise("f32", np.zeros(700))
    f.add("adamw_first", "adamw", [w, g, zeros, zeros, rate, scalar("i64", 1)],
          adamw_step("f32", w, g, zeros, zeros, rate, scalar("i64", 1)), tol=(1e-6, 1e-5))
    x = normal("f32", 3)
    f.error("adamw_moment", "adamw", [x, x, normal("f32", 4), x, rate, step], "extents 3 and 4 differ")
    f.error("adamw_step", "adamw", [x, x, x, x, rate, rate], "expected i32")
    f.error("adamw_beta", "adamw", [x, x, x, x, rate, step], "expected 0 to less than 1", {"beta1": 1.0})
    for kind, yes in (("f32", "i64"), ("f64", "i32")):
        w, g, m, v = w8(kind, 1), w8(kind, 2), w8(kind, 3), quantise(kind, np.arange(1, 9) / 8)
        rate, step = scalar("f32", 0.125), scalar("i64", 3)
        f.add("adamw_applied_" + kind, "adamw", [w, g, m, v, rate, step, None, scalar(yes, 1)],
              adamw_step(kind, w, g, m, v, rate, step), tol=TOL[kind] if kind == "f64" else (1e-6, 1e-5))
        for steps in (3, 0):  # no step has been done while the first gradients are summed
            f.add("adamw_not_applied_%s_%d" % (kind, steps), "adamw",
                  [w, g, m, v, rate, scalar("i64", steps), None, scalar(yes, 0)], [w, m, v])
    f.error("adamw_apply", "adamw", [w, g, m, v, rate, step, None, rate], "expected i32")
    f.write()


sgd()
adamw()
