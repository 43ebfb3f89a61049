#!/usr/bin/python3
"""Writes the cases of ops that are gradients: attention_grad, cross_entropy and cross_entropy_grad, those of norms.
Gradients come from complex steps through the forward op as numpy has it, so that no formula of a derivative is in here.
Run by hand; see caselib.py for what it needs (ONNX Runtime is not used here).

    /usr/bin/python3 tests/ops/make_cases_backward.py
"""
import math

import numpy as np

from caselib import CaseFile, Tensor, quantise

rng = np.random.default_rng(17)
TOL = {"f32": (2e-6, 1e-5), "f64": (1e-13, 1e-12), "f16": (2e-3, 4e-3), "bf16": (2e-2, 3e-2)}


def normal(kind, *shape):
    return quantise(kind, rng.normal(size=shape))


def gradient(fn, operands, which, dy):
    """Of sum(dy * fn(operands)) by operand `which`, to the last digits of f64."""
    x = operands[which]
    out = np.zeros(x.shape)
    for at in np.ndindex(*x.shape):
        moved = [np.asarray(o, dtype=complex) for o in operands]
        moved[which][at] += 1e-30j
        out[at] = np.sum(dy * fn(*moved).imag) / 1e-30
    return out


def softmax(x, sink=None):
    most = np.max(np.where(np.isfinite(x.real), x.real, -1e300), axis=-1, keepdims=True)
    e = np.exp(x - most)
    total = np.sum(e, axis=-1, keepdims=True)
    if sink is not None:
        total = total + np.exp(sink - most)
    return e / np.where(total == 0, 1, total)


def forward(mode="none", window=0, scale=0.0, cap=0.0, mask=None, bias=None, lengths=None, sinks=None):
    """attention of q [B, H, S, D], k [B, G, T, D], v [B, G, T, E]."""
    def attend(q, k, v):
        heads, groups = q.shape[1], k.shape[1]
        k, v = np.repeat(k, heads // groups, axis=1), np.repeat(v, heads // groups, axis=1)
        s = np.einsum("bhsd,bhtd->bhst", q, k) * (scale if scale else q.shape[3]**-0.5)
        if cap:
            s = cap * np.tanh(s / cap)
        if bias is not None:
            s = s + bias
        seen = np.ones(s.shape, bool) if mask is None else np.broadcast_to(mask, s.shape).copy()
        for b in range(s.shape[0]):
            there = s.shape[3] if lengths is None else int(lengths[b])
            for i in range(s.shape[2]):
                position = there - s.shape[2] + i
                for t in range(s.shape[3]):
                    late = mode != "none" and t > position
                    early = mode == "sliding_window" and t <= position - window
                    if t >= there or late or early:
                        seen[b, :, i, t] = False
        s = np.where(seen, s, -1e300)
        p = softmax(s, None if sinks is None else np.reshape(sinks, (1, -1, 1, 1)))
        return np.einsum("bhst,bhte->bhse", np.where(seen, p, 0), v)
    return attend


def pack(x):
    return x.transpose(0, 2, 1, 3).reshape(x.shape[0], x.shape[2], -1)


def add(f, name, kind, shape, attrs=None, mask=None, bias=None, lengths=None, sinks=None, layout="apart"):
    attrs = dict(attrs or {})
    b, heads, groups, s, t, d, e = shape
    q, k, v, dy = (normal(kind, b, heads, s, d), normal(kind, b, groups, t, d), normal(kind, b, groups, t, e),
                   normal(kind, b, heads, s, e))
    fn = forward(attrs.get("mode", "none"), attrs.get("window", 0), attrs.get("scale", 0.0), attrs.get("cap", 0.0), mask,
                 None if bias is None else bias.f64(), None if lengths is None else np.broadcast_to(lengths, (b,)),
                 None if sinks is None else sinks.f64())
    given = [q.f64(), k.f64(), v.f64()]
    outs = [quantise(kind, gradient(fn, given, i, dy.f64())) for i in range(3)]
    ins = [q, k, v, dy]
    if layout != "apart":
        def turn(x):
            return Tensor(kind, pack(x.values) if layout == "packed" else pack(x.values)[0])
        ins, outs = [turn(x) for x in ins], [turn(x) for x in outs]
        attrs["heads"], attrs["kv_heads"] = heads, groups
    if attrs.get("merged"):
        ins[3] = Tensor(kind, pack(ins[3].values))
    beside = [None if mask is None else Tensor("bool", mask), bias,
              None if lengths is None else Tensor("i64", lengths), sinks]
    f.add(name, "attention_grad", ins[:3] + beside + ins[3:], outs, attrs, tol=TOL[kind])


def attention_grad():
    f = CaseFile("attention_grad", "make_cases_backward.py")
    for kind in ("f32", "f64", "f16", "bf16"):
        add(f, "attention_grad_" + kind, kind, (2, 2, 2, 3, 5, 4, 3))
    add(f, "attention_grad_causal", "f32", (1, 2, 2, 5, 5, 8, 8), {"mode": "causal"}, layout="packed")
    add(f, "attention_grad_shared", "f32", (2, 4, 2, 3, 4, 3, 5), {"mode": "causal", "scale": 0.7}, layout="packed")
    add(f, "attention_grad_flat", "f32", (1, 3, 1, 4, 4, 5, 5), {"mode": "sliding_window", "window": 2}, layout="flat")
    add(f, "attention_grad_merged", "f32", (2, 2, 1, 3, 4, 4, 4), {"merged": 1})
    add(f, "attention_grad_cap", "f32", (1, 2, 2, 3, 6, 4, 4), {"cap": 1.5})
    mask = rng.random((1, 2, 4, 6)) < 0.6
    mask[0, 1, 2] = False
    add(f, "attention_grad_mask", "f32", (2, 2, 2, 4, 6, 4, 4), mask=mask)
    add(f, "attention_grad_bias", "f32", (1, 2, 2, 3, 6, 4, 4), {"mode": "causal", "cap": 2.0},
        bias=normal("f32", 2, 1, 6), sinks=normal("f32", 2))
    add(f, "attention_grad_length", "f32", (2, 2, 1, 2, 7, 4, 4), {"mode": "causal"}, lengths=np.array([3, 6]))
    add(f, "attention_grad_length_none", "f32", (1, 1, 1, 2, 3, 2, 2), lengths=np.array(0))
    add(f, "attention_grad_long", "f32", (1, 1, 1, 19, 37, 18, 17), {"mode": "causal"})
    q, none = normal("f32", 1, 2, 3, 4), normal("f32", 1, 2, 0, 4)
    f.add("attention_grad_no_keys", "attention_grad", [q, none, none, None, None, None, None, q],
          [quantise("f32", np.zeros((1, 2, 3, 4))), none, none])
    f.add("attention_grad_no_queries", "attention_grad", [none, q, q, None, None, None, None, none],
          [none, quantise("f32", np.zeros((1, 2, 3, 4))), quantise("f32", np.zeros((1, 2, 3, 4)))])
    # Heads without size: every score is 0, so that each of the 4 keys has a quarter; or nothing depends on them.
    def ramp(*shape):
        return quantise("f32", np.arange(math.prod(shape)).reshape(shape) / 8 - 1)

    def zeros(*shape):
        return quantise("f32", np.zeros(shape))

    dy = ramp(1, 2, 3, 5)
    f.add("attention_grad_no_size", "attention_grad",
          [zeros(1, 2, 3, 0), zeros(1, 2, 4, 0), ramp(1, 2, 4, 5), None, None, None, None, dy],
          [zeros(1, 2, 3, 0), zeros(1, 2, 4, 0), quantise("f32", np.repeat(dy.f64().sum(2, keepdims=True) / 4, 4, 2))])
    f.add("attention_grad_no_columns", "attention_grad",
          [ramp(1, 2, 3, 5), ramp(1, 2, 4, 5), zeros(1, 2, 4, 0), None, None, None, None, zeros(1, 2, 3, 0)],
          [zeros(1, 2, 3, 5), zeros(1, 2, 4, 5), zeros(1, 2, 4, 0)])
    f.error("attention_grad_shape", "attention_grad",
            [q, q, q, None, None, None, None, normal("f32", 1, 2, 3, 5)], "extents 4 and 5 differ")
    f.error("attention_grad_type", "attention_grad",
            [q, q, q, None, None, None, None, normal("f64", 1, 2, 3, 4)], "has type f64")
    f.error("attention_grad_ring", "attention_grad",
            [q, q, q, None, None, Tensor("i64", 3), None, q], "`ring` is not supported", {"ring": 1})
    f.write()


def norm(axis=-1, epsilon=1e-5, centred=True):
    """layer_norm or rms_norm of x, scale and bias."""
    def fn(x, scale, bias):
        axes = tuple(range(axis % x.ndim, x.ndim))
        rest = x - np.mean(x, axes, keepdims=True) if centred else x
        return rest / np.sqrt(np.mean(rest * rest, axes, keepdims=True) + epsilon) * scale + bias
    return fn


def norm_case(f, name, op, kind, shape, scale_shape, attrs):
    """The gradients by x, with this scale, and by scale and bias in the shape of a row."""
    axis, centred = attrs.get("axis", -1), op == "layer_norm"
    fn = norm(axis, attrs.get("epsilon", 1e-5), centred)
    x, dy = normal(kind, *shape), normal(kind, *shape)
    scale = None if scale_shape is None else normal(kind, *scale_shape)
    given = [x.f64(), np.ones(1) if scale is None else scale.f64(), np.zeros(1)]
    f["grad"].add(op + "_grad_" + name, op + "_grad", [x, scale, dy],
                  [quantise(kind, gradient(fn, given, 0, dy.f64()))], attrs, tol=TOL[kind])
    row = shape[axis % len(shape):]
    given = [x.f64(), np.ones(row), np.zeros(row)]
    outs = [quantise(kind, gradient(fn, given, i, dy.f64())) for i in ((1, 2) if centred else (1,))]
    f["scale_grad"].add(op + "_scale_grad_" + name, op + "_scale_grad", [x, dy], outs, attrs, tol=TOL[kind])


def norms():
    files = {op: {what: CaseFile(op + "_" + what, "make_cases_backward.py") for what in ("grad", "scale_grad")}
             for op in ("layer_norm", "rms_norm")}
    for op, f in files.items():
        for kind in ("f32", "f64", "f16", "bf16"):
            norm_case(f, kind, op, kind, (4, 9), (9,), {})
        norm_case(f, "plain", op, "f32", (2, 3, 4), None, {"epsilon": 0.1})
        norm_case(f, "axis", op, "f32", (3, 2, 5), (2, 1), {"axis": 1})
        norm_case(f, "one_row", op, "f32", (11,), (11,), {"axis": 0})
        norm_case(f, "all", op, "f32", (3, 4), (3, 4), {"axis": -2})
        norm_case(f, "number", op, "f32", (3, 4), (), {})
        norm_case(f, "one_column", op, "f32", (3, 1), (1,), {"epsilon": 0.5})
        norm_case(f, "long", op, "f32", (2, 300), (300,), {})
        norm_case(f, "many", op, "f32", (70, 3), (3,), {"epsilon": 0.01})
    x, none, dy = normal("f32", 2, 4), normal("f32", 0, 4), normal("f32", 2, 3)
    by_x, by_scale = files["layer_norm"]["grad"], files["layer_norm"]["scale_grad"]
    by_x.add("layer_norm_grad_no_rows", "layer_norm_grad", [none, None, none], [none])
    by_scale.add("layer_norm_scale_grad_no_rows", "layer_norm_scale_grad", [none, none],
                 [quantise("f32", np.zeros(4))] * 2)
    by_scale.add("layer_norm_scale_grad_alone", "layer_norm_scale_grad", [x, x],
                 [quantise("f32", gradient(norm(), [x.f64(), np.ones(4), np.zeros(4)], 1, x.f64()))], tol=TOL["f32"])
    far = quantise("f32", np.array([[1e4, 1e4 + 1, 1e4 + 3], [-5e3, -5e3 + 2, -5e3 - 1]]))
    by_x.add("layer_norm_grad_far", "layer_norm_grad", [far, None, dy],
             [quantise("f32", gradient(norm(), [far.f64(), np.ones(1), np.zeros(1)], 0, dy.f64()))], tol=(1e-4, 1e-3))
    by_x.error("layer_norm_grad_shape", "layer_norm_grad", [x, None, normal("f32", 2, 5)], "extents 4 and 5 differ")
    by_x.error("layer_norm_grad_scale", "layer_norm_grad", [x, normal("f32", 5), x], "does not broadcast")
    by_scale.error("layer_norm_scale_grad_rank", "layer_norm_scale_grad", [x, normal("f32", 4)], "expected rank 2")
    files["rms_norm"]["grad"].error("rms_norm_grad_type", "rms_norm_grad", [x, None, normal("f64", 2, 4)],
                                    "has type f64")
    files["rms_norm"]["scale_grad"].error("rms_norm_scale_grad_no_axis", "rms_norm_scale_grad", [x, x], "axis",
                                          {"axis": 2})
    for f in files.values():
        for file in f.values():
            file.write()


def convolve(strides, pads, dilations, group, places):
    """conv of x [N, C, ...] with a weight, of so many places, by sums over taps."""
    n = len(strides)

    def fn(x, weight):
        padded = np.pad(x, [(0, 0), (0, 0)] + [(pads[i], pads[n + i] + strides[i]) for i in range(n)])
        outputs, each = weight.shape[:2]
        out = np.zeros((x.shape[0], outputs, *places), dtype=complex)
        for tap in np.ndindex(*weight.shape[2:]):
            first = [tap[i] * dilations[i] for i in range(n)]
            at = tuple(slice(first[i], first[i] + (places[i] - 1) * strides[i] + 1, strides[i]) for i in range(n))
            seen = padded[(slice(None), slice(None), *at)]
            for o in range(outputs):
                for c in range(each):
                    out[:, o] += seen[:, o // (outputs // group) * each + c] * weight[(o, c, *tap)]
        return out
    return fn


def weight_case(f, name, kind, shape, outputs, kernel, strides=None, pads=None, dilations=None, group=1, last=False,
                places=None):
    n, attrs = len(kernel), {"kernel": list(kernel)}
    for key, value in (("strides", strides), ("pads", pads), ("dilations", dilations)):
        if value is not None:
            attrs[key] = list(value)
    if group != 1:
        attrs["group"] = group
    if last:
        attrs["channels_last"] = 1
    strides, dilations, pads = strides or [1] * n, dilations or [1] * n, pads or [0] * 2 * n
    reach = [(kernel[i] - 1) * dilations[i] + 1 for i in range(n)]
    places = places or tuple((shape[2 + i] + pads[i] + pads[n + i] - reach[i]) // strides[i] + 1 for i in range(n))
    x, dy = normal(kind, *shape), normal(kind, shape[0], outputs, *places)
    given = [x.f64(), np.zeros((outputs, shape[1] // group, *kernel))]
    made = quantise(kind, gradient(convolve(strides, pads, dilations, group, places), given, 1, dy.f64()))
    ins = [Tensor(kind, np.moveaxis(t.values, 1, -1)) if last else t for t in (x, dy)]
    f.add("conv_weight_grad_" + name, "conv_weight_grad", ins, [made], attrs, tol=TOL[kind])


def conv_weights():
    f = CaseFile("conv_weight_grad", "make_cases_backward.py")
    for kind in ("f32", "f64", "f16", "bf16"):
        weight_case(f, kind, kind, (2, 3, 5, 4), 2, (3, 2))
    weight_case(f, "depthwise", "f32", (2, 5, 6, 7), 5, (3, 3), pads=[1, 1, 1, 1], group=5)
    weight_case(f, "depthwise_last", "f32", (2, 19, 6, 7), 19, (3, 3), pads=[1, 1, 1, 1], strides=[2, 2], group=19,
                last=True)
    weight_case(f, "multiplied", "f32", (2, 3, 6), 6, (3, ), dilations=[2], group=3)
    weight_case(f, "groups", "f32", (2, 4, 5, 6), 6, (2, 3), pads=[0, 2, 1, 0], strides=[1, 2], group=2)
    weight_case(f, "groups_last", "f32", (2, 4, 5, 6), 6, (2, 3), pads=[0, 2, 1, 0], strides=[1, 2], group=2, last=True)
    weight_case(f, "solid", "f32", (1, 2, 4, 3, 5), 2, (2, 2, 3), strides=[2, 1, 1], pads=[0, 1, 0, 1, 0, 2])
    weight_case(f, "fewer_places", "f32", (2, 2, 9), 3, (2, ), strides=[2], places=(3, ))
    weight_case(f, "one_place", "f32", (1, 2, 3, 3), 2, (3, 3))
    none = normal("f32", 0, 2, 5)
    f.add("conv_weight_grad_no_images", "conv_weight_grad", [none, normal("f32", 0, 3, 4)],
          [quantise("f32", np.zeros((3, 2, 2)))], {"kernel": [2]})
    x, dy = normal("f32", 2, 4, 6), normal("f32", 2, 4, 5)
    f.error("conv_weight_grad_kernel", "conv_weight_grad", [x, dy], "attribute 'kernel' is empty",
            {"kernel": []})
    f.error("conv_weight_grad_rank", "conv_weight_grad", [x, normal("f32", 2, 4)], "expected rank 3", {"kernel": [2]})
    f.error("conv_weight_grad_group", "conv_weight_grad", [x, dy], "do not split into 3 groups",
            {"kernel": [2], "group": 3})
    f.error("conv_weight_grad_places", "conv_weight_grad", [x, dy], "where there are 4 windows", {"kernel": [3]})
    f.error("conv_weight_grad_images", "conv_weight_grad", [x, normal("f32", 3, 4, 5)], "extents 2 and 3 differ",
            {"kernel": [2]})
    f.write()


def losses(labels, ignored=-100):
    def fn(x):
        rows, flat = x.reshape(-1, x.shape[-1]), labels.reshape(-1)
        out = [0 if y == ignored else -np.log(softmax(row)[y]) for row, y in zip(rows, flat)]
        return np.array(out, dtype=complex).reshape(labels.shape)
    return fn


def cross_entropy():
    f = CaseFile("cross_entropy", "make_cases_backward.py")
    g = CaseFile("cross_entropy_grad", "make_cases_backward.py")
    for name, kind, shape, labels_kind, attrs in (
            ("f32", "f32", (3, 5), "i64", None), ("f64", "f64", (2, 3, 7), "i32", None),
            ("f16", "f16", (4, 6), "i64", None), ("bf16", "bf16", (4, 6), "u8", None),
            ("one_row", "f32", (9,), "i64", None), ("long", "f32", (1, 2100), "i64", None),
            ("ignored", "f32", (6, 5), "i64", None), ("ignored_2", "f32", (6, 5), "i32", {"ignore_index": 2}),
            ("one_class", "f32", (3, 1), "i64", None)):
        x = quantise(kind, rng.normal(size=shape) * 3)
        labels = rng.integers(0, shape[-1], size=shape[:-1])
        ignored = (attrs or {}).get("ignore_index", -100)
        if name == "ignored":
            labels[[1, 4]] = -100
        if name == "ignored_2":
            labels[3] = 2
        fn, y = losses(labels, ignored), Tensor(labels_kind, labels)
        f.add("cross_entropy_" + name, "cross_entropy", [x, y], [quantise(kind, fn(x.f64()).real)], attrs,
              tol=TOL[kind])
        dy = normal(kind, *shape[:-1])
        if x.values.size < 500:
            made = gradient(fn, [x.f64()], 0, dy.f64())
        else:  # the derivative of one row is that row's alone: one step a column, for all rows
            made = np.zeros(shape)
            for column in range(shape[-1]):
                moved = x.f64().astype(complex)
                moved[:, column] += 1e-30j
                made[:, column] = dy.f64() * fn(moved).imag / 1e-30
        g.add("cross_entropy_grad_" + name, "cross_entropy_grad", [x, y, dy], [quantise(kind, made)], attrs,
              tol=TOL[kind])
        if kind in ("f32", "f64"):
            given = quantise(kind, fn(x.f64()).real)
            g.add("cross_entropy_grad_losses_" + name, "cross_entropy_grad", [x, y, dy, given],
                  [quantise(kind, made)], attrs, tol=TOL[kind])
    big = quantise("f32", np.array([[1000.0, 0.0, -1000.0], [-3e38, 3e38, 0.0]]))
    f.add("cross_entropy_far", "cross_entropy", [big, Tensor("i64", [0, 1])], [quantise("f32", [0.0, 0.0])])
    g.add("cross_entropy_grad_far", "cross_entropy_grad", [big, Tensor("i64", [0, 1]), quantise("f32", [1.0, 2.0])],
          [quantise("f32", np.zeros((2, 3)))])
    # Losses that say nothing of the sum: of -inf at the label, of f32's whole range, and of 500, where f32 has 4 digits.
    far = quantise("f32", np.array([[-np.inf, 1.0, 1.0], [-3e38, 3e38, 0.0], [0.5, 500.0, 500.25]]))
    p = 1 / (1 + np.exp(-0.25))
    g.add("cross_entropy_grad_losses_far", "cross_entropy_grad",
          [far, Tensor("i64", [0, 0, 0]), quantise("f32", [1.0, 2.0, 1.0]),
           quantise("f32", [np.inf, np.inf, 500.25 - np.log(p) - 0.5])],
          [quantise("f32", np.array([[-1, 0.5, 0.5], [-2, 2, 0], [-1, 1 - p, p]]))], tol=TOL["f32"])
    g.add("cross_entropy_grad_losses_ignored_far", "cross_entropy_grad",
          [quantise("f32", np.array([[np.inf, 1.0], [2.0, 2.0]])), Tensor("i64", [-100, 1]), quantise("f32", [1.0, 2.0]),
           quantise("f32", [0.0, np.log(2)])], [quantise("f32", np.array([[0, 0], [1, -1]]))], tol=TOL["f32"])
    # Rows of two elements a word, of which a thread has several words and some are left.
    long = quantise("bf16", 4 * np.sin(np.arange(2 * 3000).reshape(2, 3000) ** 1.5))
    dy, fn = quantise("bf16", [1.5, -0.5]), losses(np.array([7, 2999]), -100)
    made = np.array([softmax(row).real for row in long.f64()])
    made[[0, 1], [7, 2999]] -= 1
    f.add("cross_entropy_long_words", "cross_entropy", [long, Tensor("i64", [7, 2999])],
          [quantise("bf16", fn(long.f64()).real)], tol=TOL["bf16"])
    g.add("cross_entropy_grad_long_words", "cross_entropy_grad", [long, Tensor("i64", [7, 2999]), dy],
          [quantise("bf16", made * dy.f64()[:, None])], tol=(1e-6, 3e-2))
    f.add("cross_entropy_masked", "cross_entropy",
          [quantise("f32", np.array([[-np.inf] * 300 + [2.0] * 4])), Tensor("i64", [301])],
          [quantise("f32", [np.log(4)])], tol=TOL["f32"])
    x, y = normal("f32", 2, 4), Tensor("i64", [1, 3])
    f.error("cross_entropy_labels", "cross_entropy", [x, Tensor("i64", [1, 3, 0])], "extents 2 and 3 differ")
    f.error("cross_entropy_rank", "cross_entropy", [x, Tensor("i64", [[1], [3]])], "expected rank 1")
    f.error("cross_entropy_type", "cross_entropy", [x, normal("f32", 2)], "labels are integers")
    g.error("cross_entropy_grad_dy", "cross_entropy_grad", [x, y, normal("f64", 2)], "has type f64")
    two, three, half = (quantise(kind, np.zeros(n)) for kind, n in (("f32", 2), ("f32", 3), ("f16", 2)))
    g.error("cross_entropy_grad_losses_rows", "cross_entropy_grad", [x, y, two, three], "extents 2 and 3 differ")
    g.error("cross_entropy_grad_losses_half", "cross_entropy_grad", [quantise("f16", x.f64()), y, half, half],
            "losses of f16 have too few digits")
    f.write()
    g.write()


if __name__ == "__main__":
    attention_grad()
    cross_entropy()
    norms()
    conv_weights()
