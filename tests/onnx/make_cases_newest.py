#!/usr/bin/env python3
"""Writes tests/onnx/cases/newest.pack: ops that came or changed with opsets 18 to 28, and forms of older ones that
ONNX's node tests of 1.12 lack. Expected values come from numpy, by the words of the specification. Run by hand; needs
Python's onnx and numpy.

    /usr/bin/python3 tests/onnx/make_cases_newest.py"""
import itertools

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from make_cases import as_model
from make_cases_attention import NumpyPack

rng = np.random.default_rng(28)


def normal(*shape, dtype="f4"):
    return rng.normal(size=shape).astype(dtype)


# ---- States that go through a sequence ----

def linear_attention(q, k, v, heads, kv_heads, rule, past=None, decay=None, beta=None, scale=None):
    batch, steps, _ = q.shape
    q = q.reshape(batch, steps, heads, -1).astype("f8")
    k = k.reshape(batch, steps, kv_heads, -1).astype("f8")
    v = v.reshape(batch, steps, kv_heads, -1).astype("f8")
    size, share = k.shape[-1], heads // kv_heads
    state = np.zeros((batch, kv_heads, size, v.shape[-1])) if past is None else past.astype("f8")
    out = np.zeros((batch, steps, heads, v.shape[-1]))
    scale = scale if scale else 1 / np.sqrt(size)
    for b, t, h in itertools.product(range(batch), range(steps), range(kv_heads)):
        s = state[b, h]
        if "gated" in rule:
            gate = decay[b, t].reshape(kv_heads, -1)[h]
            s = s * np.exp(gate)[:, None]
        write = v[b, t, h]
        if "delta" in rule:
            write = beta[b, t][h % beta.shape[-1]] * (write - k[b, t, h] @ s)
        s = s + np.outer(k[b, t, h], write)
        state[b, h] = s
        for g in range(share):
            out[b, t, h * share + g] = scale * q[b, t, h * share + g] @ s
    return out.reshape(batch, steps, -1), state


def linear(p):
    for rule, steps, named, kind in itertools.product(("linear", "gated", "delta", "gated_delta"), (1, 3, 17),
                                                      (False, True), ("f4",)):
        q, k, v = normal(2, steps, 8), normal(2, steps, 4), normal(2, steps, 6)
        decay = -np.abs(normal(2, steps, 4)) if "gated" in rule else None
        beta = rng.random((2, steps, 2)).astype("f4") if "delta" in rule else None
        past = normal(2, 2, 2, 3) if steps != 3 else None
        want, state = linear_attention(q, k, v, 4, 2, rule, None if past is None else past.copy(), decay, beta)
        p.case("linear_%s_%d%s" % (rule, steps, "_named" if named else ""), "LinearAttention",
               [q, k, v, past, decay, beta], [want.astype("f4"), state.astype("f4")], 27, named, update_rule=rule,
               q_num_heads=4, kv_num_heads=2)
    q, k, v = normal(1, 6, 4), normal(1, 6, 4), normal(1, 6, 4)
    decay, beta = -np.abs(normal(1, 6, 2)), rng.random((1, 6, 1)).astype("f4")
    half = [a.astype("f2") for a in (q, k, v)]
    want, state = linear_attention(*half, 2, 2, "gated_delta", None, decay.astype("f2"), beta.astype("f2"), 0.5)
    p.case("linear_half", "LinearAttention", half + [None, decay.astype("f2"), beta.astype("f2")],
           [want.astype("f2"), state.astype("f2")], 27, q_num_heads=2, kv_num_heads=2, scale=0.5)


def causal_conv(p):
    for name, past, bias, size, act, named in (("plain", 0, 0, 4, "none", 0), ("bias", 0, 1, 3, "silu", 0),
                                               ("past", 1, 1, 4, "swish", 0), ("one", 0, 0, 1, "none", 0),
                                               ("named", 1, 0, 3, "silu", 1), ("one_named", 0, 1, 1, "none", 1)):
        x, w = normal(2, 3, 5), normal(3, 1, size)
        before = normal(2, 3, size - 1) if past else None
        b = normal(3) if bias else None
        padded = np.concatenate([np.zeros((2, 3, size - 1), "f4") if before is None else before, x], 2).astype("f8")
        y = np.zeros((2, 3, 5)) + (0 if b is None else b[None, :, None])
        for i in range(size):
            y = y + padded[:, :, i:i + 5] * w[None, :, 0, i, None]
        y = y / (1 + np.exp(-y)) if act != "none" else y
        p.case("causal_conv_" + name, "CausalConvWithState", [x, w, b, before],
               [y.astype("f4"), padded[:, :, 5:].astype("f4")], 27, bool(named), constant=(1,), activation=act)


def swiglu(p):
    a, b = normal(3, 4), normal(3, 4)
    for name, alpha in (("", 1.0), ("_alpha", 1.7)):
        want = a / (1 + np.exp(-alpha * a.astype("f8"))) * b
        p.case("swiglu" + name, "SwiGLU", [a, b], [want.astype("f4")], 28, **({} if alpha == 1 else {"alpha": alpha}))


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def flex(p):
    q, k, v = normal(2, 4, 3, 4), normal(2, 2, 5, 4), normal(2, 2, 5, 3)
    bias = normal(3, 5)

    def change(op, const, elem=TensorProto.FLOAT):
        return helper.make_graph([helper.make_node(op, ["s", "c"], ["t"])], "mod",
                                 [helper.make_tensor_value_info("s", elem, None)],
                                 [helper.make_tensor_value_info("t", elem, None)], [numpy_helper.from_array(const, "c")])
    keys, values = np.repeat(k, 2, 1).astype("f8"), np.repeat(v, 2, 1).astype("f8")
    scores = np.einsum("bhsd,bhtd->bhst", q.astype("f8"), keys)

    def add(name, want, ins=(q, k, v), named=False, **attrs):
        p.case("flex_" + name, "FlexAttention", list(ins), [want], 26, named, "ai.onnx.preview", **attrs)
    add("plain", (softmax(scores / 2) @ values).astype("f4"))
    add("score", (softmax(scores * 0.3 + bias) @ values).astype("f4"), scale=0.3, score_mod=change("Add", bias))
    add("both", (softmax(scores / 2 + bias) * bias @ values).astype("f4"), score_mod=change("Add", bias),
        prob_mod=change("Mul", bias))
    add("named", (softmax(scores / 2 + bias) @ values).astype("f4"), named=True, score_mod=change("Add", bias))
    half = [a.astype("f2") for a in (q, k, v)]
    s = np.einsum("bhsd,bhtd->bhst", half[0].astype("f8"), np.repeat(half[1], 2, 1).astype("f8")) / 2
    want = softmax(s + bias.astype("f2")) @ np.repeat(half[2], 2, 1).astype("f8")
    add("half", want.astype("f2"), half, score_mod=change("Add", bias.astype("f2"), TensorProto.FLOAT16),
        softmax_precision=10)


# ---- Sampling and windows ----

def affine_grid(p):
    for size in ([2, 3, 4, 5], [1, 1, 2, 3, 4], [2, 1, 1, 3]):
        spatial = size[2:]
        theta = normal(size[0], len(spatial), len(spatial) + 1)
        for align, constant in itertools.product((0, 1), ((), (1,))):
            def points(n):
                i = np.arange(n, dtype="f8")
                return (2 * i + 1) / n - 1 if not align else 2 * i / (n - 1) - 1 if n > 1 else np.ones(1)
            grid = np.stack(np.meshgrid(*[points(n) for n in spatial], indexing="ij")[::-1] + [np.ones(spatial)], -1)
            want = np.einsum("...k,nrk->n...r", grid, theta.astype("f8")).astype("f4")
            p.case("affine_grid_%d_%d%s%s" % (len(spatial), align, "_one" if 1 in spatial else "",
                                              "_constant" if constant else ""), "AffineGrid",
                   [theta, np.array(size)], [want], 20, constant=constant, align_corners=align)


def col2im(p):
    cases = (("line", [7], [3], [2], [1], [1, 1]), ("plane", [5, 6], [2, 3], [1, 1], [1, 1], [0, 0, 0, 0]),
             ("pads", [5, 5], [3, 2], [2, 1], [1, 2], [1, 0, 0, 2]), ("cube", [3, 4, 3], [2, 2, 1], [1, 1, 1], [1, 2, 1], [0] * 6),
             ("four", [2, 3, 2, 3], [1, 2, 2, 2], [1, 1, 1, 1], [1, 1, 1, 1], [0] * 7 + [1]))
    for name, image, block, stride, dilation, pads in cases:
        n = len(image)
        padded = [image[i] + pads[i] + pads[n + i] for i in range(n)]
        steps = [(padded[i] - dilation[i] * (block[i] - 1) - 1) // stride[i] + 1 for i in range(n)]
        x = normal(2, 2 * int(np.prod(block)), int(np.prod(steps)))
        blocks = x.reshape([2, 2] + block + steps)
        out = np.zeros([2, 2] + padded)
        for at in itertools.product(*[range(b) for b in block], *[range(s) for s in steps]):
            place = tuple(at[i] * dilation[i] + at[n + i] * stride[i] for i in range(n))
            out[(slice(None), slice(None)) + place] += blocks[(slice(None), slice(None)) + at]
        out = out[(slice(None), slice(None)) + tuple(slice(pads[i], pads[i] + image[i]) for i in range(n))]
        for constant in ((), (1, 2)):
            p.case("col2im_%s%s" % (name, "_constant" if constant else ""), "Col2Im",
                   [x, np.array(image), np.array(block)], [out.astype("f4")], 18, constant=constant, strides=stride,
                   dilations=dilation, pads=pads)


def resize(p):
    """The extent that counts for align_corners is scale times extent, also where that is no whole number."""
    x = normal(1, 1, 2, 7)

    def corners(a, scale):
        n = a.shape[-1]
        at = np.arange(int(n * scale)) * (n - 1) / (n * scale - 1)
        low = np.floor(at).astype(int)
        return a[..., low] * (1 - (at - low)) + a[..., np.minimum(low + 1, n - 1)] * (at - low)
    p.case("resize_down_corners", "Resize", [x, None, np.array([1, 1, 1, 0.6], "f4")],
           [corners(x.astype("f8"), 0.6).astype("f4")], 19, mode="linear", coordinate_transformation_mode="align_corners")


# ---- Along axes, bits, optionals ----

def axes(p):
    x = normal(3, 4)
    p.case("cumprod", "CumProd", [x, np.array(1)], [np.cumprod(x, 1)], 26)
    p.case("cumprod_constant", "CumProd", [x, np.array(0)], [np.cumprod(x[::-1], 0)[::-1]], 26, constant=(1,), reverse=1)
    whole = np.array([[3, 2**64 - 1, 2**63], [1, 2, 0]], np.uint64)
    p.case("top_k_u64", "TopK", [whole, np.array([2])], [np.array([[2**64 - 1, 2**63], [2, 1]], np.uint64),
                                                        np.array([[1, 2], [1, 0]])], 24)
    line = normal(2, 9, 1)
    half = np.fft.rfft(line[..., 0])
    spectrum = np.stack([half.real, half.imag], -1).astype("f4")
    for name, constant in (("", ()), ("_constant", (1, 2))):
        p.case("irfft" + name, "DFT", [spectrum, np.array(9), np.array(1)], [line], 20, constant=constant, inverse=1,
               onesided=1)
        p.case("rfft" + name, "DFT", [line, np.array(9), np.array(-2)], [spectrum], 20, constant=constant, onesided=1)
    p.case("irfft_17", "DFT", [spectrum, np.array(9)], [line], 17, inverse=1, onesided=1)


def bits(p):
    x = normal(2, 3)
    p.case("bit_cast", "BitCast", [x], [x.view(np.int32)], 26, to=TensorProto.INT32)
    p.case("bit_cast_half", "BitCast", [x.astype("f2")], [x.astype("f2").view(np.uint16)], 26, to=TensorProto.UINT16)
    p.case("bit_cast_back", "BitCast", [x.view(np.uint32)], [x], 26, to=TensorProto.FLOAT)


def optionals(p):
    """Optional, OptionalHasElement and OptionalGetElement inside a graph; nothing is asked of an empty one."""
    x = normal(4)
    nodes = [helper.make_node("Optional", ["x"], ["o"]), helper.make_node("OptionalHasElement", ["o"], ["full"]),
             helper.make_node("OptionalGetElement", ["o"], ["y"]),
             helper.make_node("Optional", [], ["e"],
                              type=helper.make_tensor_type_proto(TensorProto.FLOAT, [4])),
             helper.make_node("Identity", ["e"], ["f"]), helper.make_node("OptionalHasElement", ["f"], ["empty"]),
             helper.make_node("OptionalHasElement", [], ["none"]), helper.make_node("OptionalHasElement", [""], ["left"])]
    graph = helper.make_graph(nodes, "optionals", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4])],
                              [onnx.ValueInfoProto(name=n) for n in ("y", "full", "empty", "none", "left")])
    p.put("optionals/model.onnx", as_model(graph, 18).SerializeToString())
    false = np.array(False)
    for kind, arrays in (("input", [x]), ("output", [x, np.array(True), false, false, false])):
        for k, array in enumerate(arrays):
            p.put("optionals/test_data_set_0/%s_%d.pb" % (kind, k), numpy_helper.from_array(array).SerializeToString())


def main():
    p = NumpyPack("newest")
    for part in (linear, causal_conv, swiglu, flex, affine_grid, col2im, resize, axes, bits, optionals):
        part(p)


if __name__ == "__main__":
    main()
