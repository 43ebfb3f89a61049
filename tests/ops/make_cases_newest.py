#!/usr/bin/python3
"""Writes the cases of cumprod and bitcast, and of what newer ONNX opsets asked of top_k, dft, resize and pad. Expected
values come from numpy. Run by hand; see caselib.py for what it needs (ONNX Runtime is not used here).

    /usr/bin/python3 tests/ops/make_cases_newest.py
"""
import numpy as np

from caselib import FLOATS, INTS, LIMITS, NUMPY, ULP, CaseFile, Tensor, quantise, wrap

rng = np.random.default_rng(26)


def normal(kind, *shape):
    return quantise(kind, rng.normal(size=shape))


def integers(kind, *shape):
    low, high = LIMITS[kind]
    return Tensor(kind, rng.integers(max(low, -9), min(high, 9) + 1, size=shape))


def running_products(x, axis, exclusive=0, reverse=0):
    values = x.f64() if x.kind in FLOATS else x.values.astype(object)
    values = np.moveaxis(values, axis, 0)
    values = values[::-1] if reverse else values
    out, product = [], np.ones(values.shape[1:], values.dtype)
    for row in values:
        out.append(product if exclusive else product * row)
        product = product * row
    out = np.array(out, values.dtype).reshape(values.shape)
    out = np.moveaxis(out[::-1] if reverse else out, 0, axis)
    return quantise(x.kind, out) if x.kind in FLOATS else Tensor(x.kind, np.vectorize(lambda v: wrap(x.kind, v))(out))


def cumprod():
    f = CaseFile("cumprod", "make_cases_newest.py")
    tol = {"f32": (1e-6, 1e-6), "f64": (1e-13, 1e-13), "f16": (2e-3, ULP["f16"]), "bf16": (1e-2, ULP["bf16"])}
    for kind in FLOATS + INTS:
        x = normal(kind, 3, 9) if kind in FLOATS else integers(kind, 3, 9)
        f.add("cumprod_" + kind, "cumprod", [x], [running_products(x, 1)], {"axis": 1}, tol=tol.get(kind))
    x = normal("f32", 3, 4, 5)
    for axis in range(3):
        for exclusive in (0, 1):
            for reverse in (0, 1):
                f.add("cumprod_%d_%d_%d" % (axis, exclusive, reverse), "cumprod", [x],
                      [running_products(x, axis, exclusive, reverse)],
                      {"axis": axis, "exclusive": exclusive, "reverse": reverse}, tol=(1e-6, 1e-6))
    f.add("cumprod_operand", "cumprod", [x, Tensor("i64", -2)], [running_products(x, 1)], tol=(1e-6, 1e-6))
    signs = Tensor("i32", rng.choice([-1, 1, 1, 1, 3], size=700))
    f.add("cumprod_long", "cumprod", [signs], [running_products(signs, 0, 1, 1)],
          {"axis": 0, "exclusive": 1, "reverse": 1})
    none = Tensor("f32", np.zeros((2, 0)))
    f.add("cumprod_empty", "cumprod", [none], [none], {"axis": 1})
    f.error("cumprod_axis", "cumprod", [x], "axis 3 is out of range", {"axis": 3})
    f.write()


def bits_as(x, to):
    """bf16 is held in f32: its bits are the upper half."""
    raw = (x.values.view(np.uint32) >> 16).astype(np.uint16) if x.kind == "bf16" else x.values
    if to == "bf16":
        return Tensor(to, (raw.view(np.uint16).astype(np.uint32) << 16).view(np.float32))
    return Tensor(to, raw.view(NUMPY[to]))


def whole(kind):
    """An integer that uses many bits and is no NaN as a float."""
    return int(np.iinfo(NUMPY[kind]).max) >> 3


def bitcast():
    f = CaseFile("bitcast", "make_cases_newest.py")
    floats = [0.0, -0.0, 1.0, -2.5, 0.099975586, 60000.0, 2.0**-14, np.inf, -np.inf]
    widths = [("f32", "i32", "u32"), ("f16", "bf16", "i16", "u16"), ("i8", "u8"), ("f64", "i64", "u64")]
    for kinds in widths:
        for start in kinds:
            x = quantise(start, floats) if start in FLOATS else Tensor(start, [0, 1, 2, 3, 100, whole(start)])
            for to in kinds:
                f.add("bitcast_%s_%s" % (start, to), "bitcast", [x], [bits_as(x, to)], {"to": to})
    f.add("bitcast_negative", "bitcast", [Tensor("i8", [-1, -128, 127])], [Tensor("u8", [255, 128, 127])], {"to": "u8"})
    f.add("bitcast_bool_u8", "bitcast", [Tensor("bool", [1, 0, 1])], [Tensor("u8", [1, 0, 1])], {"to": "u8"})
    f.add("bitcast_u8_bool", "bitcast", [Tensor("u8", [[1, 0, 7], [255, 0, 2]])],
          [Tensor("bool", [[1, 0, 1], [1, 0, 1]])], {"to": "bool"})
    x = normal("f32", 2, 3, 4)
    f.add("bitcast_3d", "bitcast", [x], [bits_as(x, "i32")], {"to": "i32"})
    f.add("bitcast_empty", "bitcast", [Tensor("f32", np.zeros((0, 2)))], [Tensor("i32", np.zeros((0, 2)))], {"to": "i32"})
    f.error("bitcast_size", "bitcast", [x], "elements of type f32 have 4 bytes, those of i64 have 8", {"to": "i64"})
    f.error("bitcast_unknown", "bitcast", [x], "attribute 'to' is 'f31'", {"to": "f31"})
    f.write()


def top_k(f):
    large = 2**63
    x = Tensor("u64", [[5, large + 1, 0, 2**64 - 1, large], [1, 2, 3, 4, 5]])
    f.add("top_k_u64", "top_k", [x], [Tensor("u64", [[2**64 - 1, large + 1, large], [5, 4, 3]]),
                                     Tensor("i64", [[3, 1, 4], [4, 3, 2]])], {"k": 3})
    f.add("top_k_u64_smallest", "top_k", [x], [Tensor("u64", [[0, 5], [1, 2]]), Tensor("i64", [[2, 0], [0, 1]])],
          {"k": 2, "largest": 0})
    small = Tensor("u64", [[5, 900, 0, 70000, 8], [1, 2, 3, 4, 5]])
    f.add("top_k_u64_of_32_bits", "top_k", [small], [Tensor("u64", [[70000, 900], [5, 4]]),
                                                    Tensor("i64", [[3, 1], [4, 3]])], {"k": 2})
    for kind in ("u16", "i16", "i8", "u8", "f16", "bf16"):
        n = Tensor(kind, [[3, 1, 2, 7, 5, 100]])
        f.add("top_k_few_" + kind, "top_k", [n], [Tensor(kind, [[100, 7, 5]]), Tensor("i64", [[5, 3, 4]])], {"k": 3})


def dft(f):
    tol = (1e-4, 1e-5)
    for n in (1, 2, 3, 8, 9, 16, 31):
        line = rng.normal(size=(2, n)).astype(np.float32)
        half = np.fft.rfft(line, axis=1)
        x = quantise("f32", np.stack([half.real, half.imag], -1))
        f.add("dft_real_%d" % n, "dft", [x], [quantise("f32", line[..., None])],
              {"axis": 1, "inverse": 1, "onesided": 1, "length": [n]}, tol=tol)
    spectrum = rng.normal(size=(2, 5, 3, 2))
    z = spectrum[..., 0] + 1j * spectrum[..., 1]
    x = quantise("f32", spectrum)
    flags = {"inverse": 1, "onesided": 1}
    for name, axis, n in (("default", 1, None), ("longer", 1, 12), ("shorter", 1, 5), ("middle", 2, None)):
        want = np.fft.irfft(z, n=n, axis=axis)[..., None]
        attrs = dict(flags, axis=axis, **({} if n is None else {"length": [n]}))
        f.add("dft_real_" + name, "dft", [x], [quantise("f32", want)], attrs, tol=tol)
    f.add("dft_real_operands", "dft", [x, Tensor("i64", 7), Tensor("i64", -3)],
          [quantise("f32", np.fft.irfft(z, n=7, axis=1)[..., None])], flags, tol=tol)
    want = np.fft.fft(z, axis=1)
    f.add("dft_axis_operand", "dft", [x, None, Tensor("i64", 1)],
          [quantise("f32", np.stack([want.real, want.imag], -1))], tol=tol)
    f.error("dft_axis_last", "dft", [x, None, Tensor("i64", 3)], "the last axis holds the parts of numbers")
    f.error("dft_real_parts", "dft", [normal("f32", 2, 4, 1)], "a onesided inverse must be complex", dict(flags, axis=1))


def linear_corners(x, scale):
    """Along the last axis, where the extent before it is cut counts if the axis shrinks."""
    n = x.shape[-1]
    count = int(np.floor(n * scale))
    width = n * scale if scale < 1 else count
    at = np.arange(count) * (n - 1) / (width - 1) if count > 1 else np.zeros(count)
    low = np.clip(np.floor(at).astype(int), 0, n - 1)
    high = np.clip(low + 1, 0, n - 1)
    return x[..., low] * (1 - (at - low)) + x[..., high] * (at - low)


def resize(f):
    x = normal("f32", 2, 7)
    for name, scale in (("down", 0.6), ("down_whole", 4 / 7), ("down_little", 0.95), ("up", 1.7), ("up_whole", 3.0)):
        scale = float(np.float32(scale))
        f.add("resize_corners_scaled_" + name, "resize", [x, Tensor("f32", [1, scale])],
              [quantise("f32", linear_corners(x.f64(), scale))],
              {"mode": "linear", "coordinates": "align_corners_scaled"}, tol=(1e-5, 1e-5))
    y = Tensor("f32", linear_corners(np.swapaxes(linear_corners(x.f64()[None], 0.5), 1, 2), 0.5))
    f.add("resize_corners_scaled_two", "resize", [Tensor("f32", x.values[None]), Tensor("f32", [1, 0.5, 0.5])],
          [Tensor("f32", np.swapaxes(y.values, 1, 2))], {"mode": "linear", "coordinates": "align_corners_scaled"},
          tol=(1e-5, 1e-5))


def pad(f):
    x = normal("f32", 2, 3)
    f.add("pad_nothing", "pad", [x], [x], {"pads": [0, 0, 0, 0]})
    f.add("pad_nothing_axes", "pad", [x], [x], {"pads": [0, 0], "axes": [-1], "mode": "reflect"})


def main():
    cumprod()
    bitcast()
    f = CaseFile("newest", "make_cases_newest.py")
    top_k(f)
    dft(f)
    resize(f)
    pad(f)
    f.write()


if __name__ == "__main__":
    main()
