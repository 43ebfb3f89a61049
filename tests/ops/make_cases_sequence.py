#!/usr/bin/python3
"""Writes the cases of lstm, gru, rnn, qlstm, dft, non_max_suppression, ngrams and choose. Run by hand; see caselib.py for what
it needs.

    NODE_PATH=<folder>/node_modules /usr/bin/python3 tests/ops/make_cases_sequence.py

Expected values come from the formulas below in f64, from numpy.fft and from plain Python, held against ONNX Runtime
where it has the same form."""
import numpy as np
from scipy import special

from caselib import FLOATS, CaseFile, Tensor, agree, ort, quantise

rng = np.random.default_rng(41)
TOL = {"f32": (1e-6, 1e-6), "f64": (1e-13, 1e-13), "f16": (2e-3, 2e-3), "bf16": (1e-2, 1e-2)}

ACTIVATIONS = {
    "affine": lambda x, a, b: a * x + b, "relu": lambda x, a, b: np.maximum(x, 0),
    "leaky_relu": lambda x, a, b: np.where(x < 0, a * x, x),
    "thresholded_relu": lambda x, a, b: np.where(x < a, 0, x), "tanh": lambda x, a, b: np.tanh(x),
    "scaled_tanh": lambda x, a, b: a * np.tanh(b * x), "sigmoid": lambda x, a, b: special.expit(x),
    "hard_sigmoid": lambda x, a, b: np.clip(a * x + b, 0, 1),
    "elu": lambda x, a, b: np.where(x < 0, a * np.expm1(x), x), "softsign": lambda x, a, b: x / (1 + np.abs(x)),
    "softplus": lambda x, a, b: np.logaddexp(0, x),
}
ONNX_NAMES = {"affine": "Affine", "relu": "Relu", "leaky_relu": "LeakyRelu", "thresholded_relu": "ThresholdedRelu",
              "tanh": "Tanh", "scaled_tanh": "ScaledTanh", "sigmoid": "Sigmoid", "hard_sigmoid": "HardSigmoid",
              "elu": "Elu", "softsign": "Softsign", "softplus": "Softplus"}
HAS_ALPHA = {"affine", "leaky_relu", "thresholded_relu", "scaled_tanh", "hard_sigmoid", "elu"}
HAS_BETA = {"affine", "scaled_tanh", "hard_sigmoid"}
DEFAULTS = {"lstm": ["sigmoid", "tanh", "tanh"], "gru": ["sigmoid", "tanh"], "rnn": ["tanh"]}
GATES = {"lstm": 4, "gru": 3, "rnn": 1}


def one_step(op, act, x, h, c, w, r, bias, p, attrs):
    """One row of the batch: the gates as ONNX writes them."""
    n = len(h)
    clip = attrs.get("clip", 0.0) or np.inf
    f = lambda k, v: act[k](np.clip(v, -clip, clip))
    wb, rb = bias[:len(bias) // 2], bias[len(bias) // 2:]
    gate = lambda k: slice(k * n, (k + 1) * n)
    sum_of = lambda k: x @ w[gate(k)].T + h @ r[gate(k)].T + wb[gate(k)] + rb[gate(k)]
    if op == "rnn":
        return f(0, sum_of(0)), c
    if op == "gru":
        z, reset = f(0, sum_of(0)), f(0, sum_of(1))
        if attrs.get("linear_before_reset"):
            inner = reset * (h @ r[gate(2)].T + rb[gate(2)])
        else:
            inner = (reset * h) @ r[gate(2)].T + rb[gate(2)]
        return (1 - z) * f(1, x @ w[gate(2)].T + inner + wb[gate(2)]) + z * h, c
    i = f(0, sum_of(0) + p[gate(0)] * c)
    forget = 1 - i if attrs.get("input_forget") else f(0, sum_of(2) + p[gate(2)] * c)
    c = forget * c + i * f(1, sum_of(3))
    return f(0, sum_of(1) + p[gate(1)] * c) * act[2](c), c


def layer(op, ins, attrs):
    x, w, r, bias, lengths, h0, c0, p = [None if t is None else t.f64() for t in (ins + [None] * 8)[:8]]
    steps, batch, _ = x.shape
    directions, _, n = r.shape
    names = attrs.get("activations", "").split() or DEFAULTS[op] * directions
    alpha, beta = attrs.get("alpha", [0.0] * len(names)), attrs.get("beta", [0.0] * len(names))
    y = np.zeros((steps, directions, batch, n))
    last_h, last_c = np.zeros((directions, batch, n)), np.zeros((directions, batch, n))
    for d in range(directions):
        each = len(DEFAULTS[op])
        act = [(lambda v, k=k: ACTIVATIONS[names[k]](v, alpha[k], beta[k])) for k in range(d * each, (d + 1) * each)]
        for b in range(batch):
            length = steps if lengths is None else int(lengths[b])
            h = np.zeros(n) if h0 is None else h0[d, b]
            c = np.zeros(n) if c0 is None else c0[d, b]
            order = range(length)
            if d == 1 or attrs.get("direction") == "reverse":
                order = reversed(order)
            for t in order:
                h, c = one_step(op, act, x[t, b], h, c, w[d], r[d], np.zeros(2 * GATES[op] * n) if bias is None else
                                bias[d], np.zeros(3 * n) if p is None else p[d], attrs)
                y[t, d, b] = h
            if length > 0:
                last_h[d, b], last_c[d, b] = h, c
    return [y, last_h] + ([last_c] if op == "lstm" else [])


def onnx_attrs(op, attrs, hidden):
    out = {k: v for k, v in attrs.items() if k not in ("activations", "alpha", "beta")}
    out["hidden_size"] = hidden
    if "activations" in attrs:
        names = attrs["activations"].split()
        out["activations"] = [ONNX_NAMES[k] for k in names]
        out["activation_alpha"] = [a for a, k in zip(attrs["alpha"], names) if k in HAS_ALPHA]
        out["activation_beta"] = [b for b, k in zip(attrs["beta"], names) if k in HAS_BETA]
        out = {k: v for k, v in out.items() if v != []}
    return out


def add_layer(file, name, op, ins, attrs=None, kind="f32", runtime=True):
    attrs = attrs or {}
    outs = [quantise(kind, v) for v in layer(op, ins, attrs)]
    if runtime and kind == "f32":
        theirs = ort(op.upper(), ins, onnx_attrs(op, attrs, ins[2].shape[2]), n_out=len(outs))
        for ours, other in zip(outs, theirs):
            agree(ours, other)
    file.add(name, op, ins, outs, attrs, tol=TOL[kind])


def normal(kind, *shape):
    return quantise(kind, rng.normal(size=shape) * 0.5)


def operands(op, kind="f32", steps=4, batch=2, inputs=3, hidden=2, directions=1, bias=True):
    g = GATES[op] * hidden
    ins = [normal(kind, steps, batch, inputs), normal(kind, directions, g, inputs), normal(kind, directions, g, hidden)]
    return ins + ([normal(kind, directions, 2 * g)] if bias else [])


def recurrent(file):
    for op in DEFAULTS:
        for kind in FLOATS:
            add_layer(file, "%s_%s" % (op, kind), op, operands(op, kind), kind=kind)
        add_layer(file, op + "_no_bias", op, operands(op, bias=False))
        add_layer(file, op + "_reverse", op, operands(op), {"direction": "reverse"})
        add_layer(file, op + "_both", op, operands(op, directions=2), {"direction": "bidirectional"})
        add_layer(file, op + "_clip", op, operands(op), {"clip": 0.25})
        lengths = Tensor("i32", [3, 0, 4])
        state = normal("f32", 2, 3, 2)
        more = [lengths, state] + ([normal("f32", 2, 3, 2), normal("f32", 2, 6)] if op == "lstm" else [])
        add_layer(file, op + "_lengths", op, operands(op, batch=3, directions=2) + more, {"direction": "bidirectional"})
        add_layer(file, op + "_wide", op, operands(op, steps=2, batch=1, inputs=9, hidden=5))
        add_layer(file, op + "_no_steps", op, operands(op, steps=0), runtime=False)
        add_layer(file, op + "_no_batch", op, operands(op, batch=0), runtime=False)
    add_layer(file, "lstm_input_forget", "lstm", operands("lstm"), {"input_forget": 1})
    add_layer(file, "gru_linear_before_reset", "gru", operands("gru"), {"linear_before_reset": 1})
    for act in ACTIVATIONS:
        one = {"activations": act, "alpha": [0.3], "beta": [0.4]}
        add_layer(file, "rnn_" + act, "rnn", operands("rnn"), one)
        three = {"activations": "hard_sigmoid %s %s" % (act, act), "alpha": [0.25, 0.5, 0.75], "beta": [0.5, 0.25, 0.5]}
        add_layer(file, "lstm_" + act, "lstm", operands("lstm"), three)
    both = {"direction": "bidirectional", "activations": "sigmoid tanh hard_sigmoid relu",
            "alpha": [0.0, 0.0, 0.25, 0.0], "beta": [0.0, 0.0, 0.5, 0.0]}
    add_layer(file, "gru_two_kinds", "gru", operands("gru", directions=2), both)
    recurrent_errors(file)


def recurrent_errors(file):
    x = operands("rnn")
    file.error("rnn_wrong_direction", "rnn", x, "is not one of forward, reverse and bidirectional", {"direction": "up"})
    file.error("rnn_wrong_activation", "rnn", x, "'sine' in attribute 'activations' is not one that is known",
               {"activations": "sine"})
    file.error("rnn_wrong_activations", "rnn", x, "names 2, but 1 are needed", {"activations": "tanh relu"})
    file.error("rnn_wrong_alpha", "rnn", x, "has 2 numbers for 1 activations", {"alpha": [1.0, 2.0]})
    file.error("rnn_wrong_clip", "rnn", x, "attribute 'clip' is negative", {"clip": -1.0})
    file.error("rnn_wrong_rank", "rnn", [normal("f32", 2, 3)] + x[1:], "operand 0 has shape [2, 3]")
    file.error("rnn_wrong_directions", "rnn", x, "axis 0 of operand 1 and what the others need",
               {"direction": "bidirectional"})
    file.error("rnn_wrong_type", "rnn", [x[0], normal("f64", 1, 2, 3)] + x[2:], "operand 1 has type f64")
    file.error("rnn_wrong_ints", "rnn", [Tensor("i32", [[[1]]])] + x[1:], "operand 0 has type i32")
    file.error("gru_wrong_gates", "gru", operands("lstm"), "axis 1 of operand 1 and what the others need")
    file.error("rnn_wrong_lengths", "rnn", x + [Tensor("i64", [1, 2])], "operand 4 has type i64")


def bytes_of(h):
    """h as whole steps from its zero point, and the step: as DynamicQuantizeLinear has it, in f32."""
    h = h.astype(np.float32)
    low, high = np.minimum(h.min(), np.float32(0)), np.maximum(h.max(), np.float32(0))
    step = np.float32(1) if low == high else (high - low) / np.float32(255)
    zero = np.rint(-low / step)
    return np.clip(np.rint(h / step) + zero, 0, 255) - zero, step


def quantised_layer(ins, attrs):
    gates, scale, r, bias, lengths, h0, c0, p, zero = [None if t is None else t.values for t in (ins + [None] * 9)[:9]]
    steps, directions, batch, rows = gates.shape
    n = rows // 4
    names = attrs.get("activations", "").split() or DEFAULTS["lstm"] * directions
    y = np.zeros((steps, directions, batch, n))
    last_h, last_c = np.zeros((directions, batch, n)), np.zeros((directions, batch, n))
    for d in range(directions):
        act = [(lambda v, k=k: ACTIVATIONS[names[k]](v, 0, 0)) for k in range(3 * d, 3 * d + 3)]
        each = np.broadcast_to(scale[d], rows)
        whole = r[d].astype(np.int64) - (0 if zero is None else np.broadcast_to(zero[d], rows).astype(np.int64)[:, None])
        b8 = np.zeros(2 * rows) if bias is None else bias[d].astype(np.float64)
        for b in range(batch):
            length = steps if lengths is None else int(lengths[b])
            h = np.zeros(n) if h0 is None else h0[d, b].astype(np.float64)
            c = np.zeros(n) if c0 is None else c0[d, b].astype(np.float64)
            order = range(length)
            if d == 1 or attrs.get("direction") == "reverse":
                order = reversed(order)
            for t in order:
                q, step = bytes_of(h)
                share = (whole @ q.astype(np.int64)).astype(np.float32) * (step * each)
                # one_step without its products: the sums come as a bias
                total = np.concatenate([gates[t, d, b].astype(np.float64) + b8[:rows], share + b8[rows:]])
                h, c = one_step("lstm", act, np.zeros(1), np.zeros(n), c, np.zeros((rows, 1)), np.zeros((rows, n)),
                                total, np.zeros(3 * n) if p is None else p[d].astype(np.float64), attrs)
                y[t, d, b] = h
            if length > 0:
                last_h[d, b], last_c[d, b] = h, c
    return [quantise("f32", v) for v in (y, last_h, last_c)]


def quantised_operands(kind="i8", steps=4, batch=2, hidden=5, directions=1, wide=False, zero=False, bias=True):
    rows = 4 * hidden
    shape = (directions, rows) if wide else (directions,)
    low, high = (0, 256) if kind == "u8" else (-128, 128)
    middle = 128 if kind == "u8" else 0
    ins = [normal("f32", steps, directions, batch, rows),
           Tensor("f32", rng.uniform(0.005, 0.02, size=shape)),
           Tensor(kind, rng.integers(low, high, size=(directions, rows, hidden))),
           normal("f32", directions, 2 * rows) if bias else None]
    zeros = Tensor(kind, rng.integers(middle - 9, middle + 9, size=shape)) if zero or kind == "u8" else None
    return ins, zeros


def qlstm(file):
    def add(name, made, more=(), attrs=None):
        ins, zeros = made
        ins = ins + list(more)
        if zeros is not None:
            ins = (ins + [None] * 8)[:8] + [zeros]
        attrs = attrs or {}
        # one byte of h more or less is one part in 255 of a weight: what is near the edge of a byte is left to chance
        file.add(name, "qlstm", ins, quantised_layer(ins, attrs), attrs, tol=(1e-6, 1e-6))
    both = {"direction": "bidirectional"}
    for kind in ("i8", "u8"):
        add("qlstm_" + kind, quantised_operands(kind))
        add("qlstm_%s_wide" % kind, quantised_operands(kind, wide=True, zero=True, hidden=9))
        add("qlstm_%s_both" % kind, quantised_operands(kind, directions=2, zero=True), attrs=both)
        add("qlstm_%s_both_wide" % kind, quantised_operands(kind, directions=2, hidden=33, wide=True, zero=True,
                                                           steps=2, batch=1), attrs=both)
    add("qlstm_no_bias", quantised_operands(bias=False))
    add("qlstm_reverse", quantised_operands(), attrs={"direction": "reverse"})
    add("qlstm_clip", quantised_operands(), attrs={"clip": 0.25})
    add("qlstm_input_forget", quantised_operands(), attrs={"input_forget": 1})
    add("qlstm_relu", quantised_operands(), attrs={"activations": "sigmoid relu tanh"})
    state = [normal("f32", 2, 3, 5), normal("f32", 2, 3, 5)]
    add("qlstm_states", quantised_operands(batch=3, directions=2), [None] + state, both)
    add("qlstm_lengths", quantised_operands("u8", batch=3, directions=2),
        [Tensor("i32", [3, 0, 4])] + state + [normal("f32", 2, 15)], both)
    add("qlstm_one", quantised_operands(hidden=1, batch=1))
    add("qlstm_no_steps", quantised_operands(steps=0))
    add("qlstm_no_batch", quantised_operands(batch=0))
    ins, _ = quantised_operands()
    file.error("qlstm_wrong_gates", "qlstm", [normal("f32", 4, 1, 2, 19)] + ins[1:], "axis 3 of operand 0")
    file.error("qlstm_wrong_directions", "qlstm", ins, "axis 1 of operand 0 and direction", both)
    file.error("qlstm_wrong_type", "qlstm", ins[:2] + [normal("f32", 1, 20, 5)], "operand 2 has type f32")
    file.error("qlstm_wrong_scale", "qlstm", [ins[0], normal("f32", 1, 5)] + ins[2:], "axis 1 of operand 1")
    file.error("qlstm_wrong_zero", "qlstm", ins + [None] * 4 + [Tensor("u8", [3])], "operand 8 has type u8")
    file.error("qlstm_wrong_rank", "qlstm", [normal("f32", 4, 2, 20)] + ins[1:], "operand 0 has shape [4, 2, 20]")


def transform(x, axis, length, inverse, onesided):
    z = x[..., 0] + 1j * (x[..., 1] if x.shape[-1] == 2 else 0)
    z = np.fft.ifft(z, length, axis) if inverse else np.fft.fft(z, length, axis)
    if onesided:
        z = z.take(range(z.shape[axis] // 2 + 1), axis)
    return np.stack([z.real, z.imag], axis=-1)


def dft(file):
    def add(name, x, axis=1, length=None, as_operand=False, inverse=0, onesided=0, kind="f32"):
        attrs = {"axis": axis, "inverse": inverse, "onesided": onesided}
        ins = [x]
        if length is not None and as_operand:
            ins.append(Tensor("i64", length))
        elif length is not None:
            attrs["length"] = [length]
        want = quantise(kind, transform(x.f64(), axis, length, inverse, onesided))
        if kind == "f32":
            given = [x] + ([] if length is None else [Tensor("i64", length)])
            agree(want, ort("DFT", given, {"axis": axis, "inverse": inverse, "onesided": onesided})[0], atol=1e-4)
        file.add(name, "dft", ins, [want], attrs, tol=(TOL[kind][0] * 8, TOL[kind][1]))
    for kind in FLOATS:
        add("dft_" + kind, normal(kind, 2, 6, 1), kind=kind)
        add("dft_two_" + kind, normal(kind, 2, 8, 2), kind=kind)
    for n in (1, 2, 5, 16, 31):
        add("dft_length_%d" % n, normal("f32", 1, n, 2))
        add("dft_onesided_%d" % n, normal("f32", 1, n, 1), onesided=1)
        add("dft_inverse_%d" % n, normal("f32", 1, n, 2), inverse=1)
    add("dft_axis", normal("f32", 2, 4, 3, 2), axis=2)
    add("dft_first_axis", normal("f32", 4, 3, 1), axis=0)
    add("dft_longer", normal("f32", 2, 5, 1), length=8)
    add("dft_shorter", normal("f32", 2, 5, 1), length=3)
    add("dft_operand", normal("f32", 2, 5, 1), length=7, as_operand=True, onesided=1)
    x = normal("f32", 2, 4, 1)
    file.add("dft_no_lines", "dft", [normal("f32", 0, 4, 1)], [Tensor("f32", np.zeros((0, 4, 2)))], {"axis": 1})
    file.error("dft_wrong_last_axis", "dft", [x], "the last axis holds the parts of numbers", {"axis": 2})
    file.error("dft_wrong_parts", "dft", [normal("f32", 2, 4, 3)], "the last axis has extent 3", {"axis": 1})
    file.error("dft_wrong_both", "dft", [x], "a onesided inverse",
               {"axis": 1, "onesided": 1, "inverse": 1})
    file.error("dft_wrong_length", "dft", [x], "the length is 0, expected 1 or more", {"axis": 1, "length": [0]})
    file.error("dft_wrong_empty", "dft", [normal("f32", 2, 0, 1)], "the length is 0, expected 1 or more", {"axis": 1})
    file.error("dft_wrong_ints", "dft", [Tensor("i32", [[[1]]])], "operand 0 has type i32")


def suppression(file):
    def add(name, boxes, scores, most, overlap=None, score=None, center=0):
        ins = [boxes, scores, Tensor("i64", [most])] + [None if v is None else Tensor("f32", [v])
                                                        for v in (overlap, score)]
        while ins[-1] is None:
            ins.pop()
        rows = ort("NonMaxSuppression", ins, {"center_point_box": center})[0]
        most = min(most, boxes.shape[1]) * scores.shape[0] * scores.shape[1]
        want = np.zeros((most, 3), np.int64)
        want[:len(rows)] = rows
        file.add(name, "non_max_suppression", ins, [Tensor("i64", want), Tensor("i64", [len(rows)])],
                 {"center": center})
    boxes = quantise("f32", rng.uniform(0, 1, size=(2, 9, 4)))
    scores = quantise("f32", rng.uniform(0, 1, size=(2, 3, 9)))
    add("non_max_suppression", boxes, scores, 4, 0.2, 0.3)
    add("non_max_suppression_all", boxes, scores, 20, 0.5)
    add("non_max_suppression_center", boxes, scores, 4, 0.2, 0.3, center=1)
    add("non_max_suppression_no_overlap", boxes, scores, 3)
    add("non_max_suppression_none_good", boxes, scores, 3, 0.5, 2.0)
    equal = Tensor("f32", np.ones((1, 1, 9)))
    add("non_max_suppression_equal", Tensor("f32", boxes.values[:1]), equal, 9, 0.4)
    file.add("non_max_suppression_most", "non_max_suppression", [boxes, scores],
             [Tensor("i64", np.zeros((0, 3))), Tensor("i64", [0])])
    file.error("non_max_suppression_wrong_boxes", "non_max_suppression",
               [normal("f32", 1, 2, 3), normal("f32", 1, 1, 2)],
               "numbers of a box: extents 3 and 4 differ")
    file.error("non_max_suppression_wrong_count", "non_max_suppression",
               [normal("f32", 1, 2, 4), normal("f32", 1, 1, 3)],
               "number of boxes and scores: extents 2 and 3 differ")


def ngrams(file):
    pool = {"pool": [1, 2, 3, 2, 3, 4, 5, 1, 1], "starts": [0, 3], "indexes": [0, 3, 1, 2, 5, 4]}

    def add(name, x, mode="tf", weights=None, low=1, high=2, skip=0):
        attrs = dict(pool, mode=mode, min_length=low, max_length=high, skip=skip)
        theirs = {"mode": mode.upper(), "min_gram_length": low, "max_gram_length": high, "max_skip_count": skip,
                  "ngram_counts": pool["starts"], "ngram_indexes": pool["indexes"], "pool_int64s": pool["pool"]}
        if weights:
            attrs["weights"] = theirs["weights"] = weights
        file.add(name, "ngrams", [x], [Tensor("f32", ort("TfIdfVectorizer", [x], theirs)[0])], attrs)
    x = Tensor("i64", rng.integers(1, 6, size=(3, 10)))
    for mode in ("tf", "idf", "tfidf"):
        add("ngrams_" + mode, x, mode, [1.0, 2.0, 3.0, 0.5, 4.0, 5.0])
    add("ngrams_skip", x, skip=3)
    add("ngrams_pairs", x, low=2)
    add("ngrams_row", Tensor("i32", [1, 1, 2, 3, 5]), skip=1)
    add("ngrams_short", Tensor("i32", [2]), skip=1)
    one = Tensor("i32", [1])
    file.error("ngrams_wrong_floats", "ngrams", [Tensor("f32", [1])], "operand 0 has type f32", pool)
    file.error("ngrams_wrong_mode", "ngrams", [one], "is not one of tf, idf and tfidf", dict(pool, mode="x"))
    file.error("ngrams_wrong_length", "ngrams", [one], "n-grams of 1 to 3 items", dict(pool, max_length=3))
    file.error("ngrams_wrong_pool", "ngrams", [one], "the pool has 5 n-grams", dict(pool, pool=[1, 2, 3, 1, 2, 3, 4]))
    file.error("ngrams_wrong_starts", "ngrams", [one], "the 1-grams take entries 0 to 30", dict(pool, starts=[0, 30]))


def choose(file):
    yes, no = Tensor("bool", True), Tensor("bool", [False])
    for kind in FLOATS + ["i8", "i64", "bool"]:
        values = rng.integers(0, 2, size=(2, 2, 3))
        a, b = Tensor(kind, values[0]), Tensor(kind, values[1])
        file.add("choose_then_" + kind, "choose", [yes, a, b], [a])
        file.add("choose_else_" + kind, "choose", [no, a, b], [b])
    a, b = normal("f32", 2, 3), normal("f32", 4, 1)
    file.add("choose_larger", "choose", [no, a, b], [b])
    file.add("choose_first_alone", "choose", [yes, a], [a])
    file.add("choose_second_alone", "choose", [no, None, b], [b])
    file.add("choose_empty", "choose", [yes, Tensor("f32", np.zeros((0, 2))), b], [Tensor("f32", np.zeros((0, 2)))])
    file.error("choose_wrong_missing", "choose", [no, a], "the condition is false, but it is not here",
               {"reason": "it is not here"})
    file.error("choose_wrong_condition", "choose", [Tensor("i32", 1), a, b], "operand 0 has type i32")
    file.error("choose_wrong_conditions", "choose", [Tensor("bool", [1, 0]), a, b], "the condition has 2 elements")
    file.error("choose_wrong_nothing", "choose", [yes, None], "there is nothing to choose from")


if __name__ == "__main__":
    for write, name in ((recurrent, "recurrent"), (dft, "dft"), (suppression, "non_max_suppression"),
                        (ngrams, "ngrams"), (choose, "choose"), (qlstm, "qlstm")):
        case_file = CaseFile(name, "make_cases_sequence.py")
        write(case_file)
        case_file.write()
