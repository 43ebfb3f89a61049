#!/usr/bin/env python3
"""Writes tests/onnx/cases/attention.pack: Attention of opsets 23 to 25 in the forms that ONNX's node tests lack, or have
for static shapes alone. Expected values come from numpy, by the words of the specification. Run by hand; needs Python's
onnx and numpy.

    /usr/bin/python3 tests/onnx/make_cases_attention.py"""
import numpy as np
import onnx
from onnx import helper, numpy_helper

from make_cases import Pack, as_model

rng = np.random.default_rng(23)


def normal(*shape, dtype="f4"):
    return rng.normal(size=shape).astype(dtype)


class NumpyPack(Pack):
    """Cases whose outputs the caller computes. `named`: every extent has a name, so that nothing is known on import."""

    def case(self, name, op, ins, wants, opset=25, named=False, domain="", constant=(), **attrs):
        names = ["x%d" % i if a is not None else "" for i, a in enumerate(ins)]
        given = {n: np.asarray(a) for n, a in zip(names, ins) if a is not None}
        fixed = {names[i] for i in constant}
        outs = ["y%d" % i if a is not None else "" for i, a in enumerate(wants)]

        def info(n, a):
            dims = ["%s_%d" % (n, i) for i in range(a.ndim)] if named else a.shape
            return helper.make_tensor_value_info(n, onnx.mapping.NP_TYPE_TO_TENSOR_TYPE[a.dtype], dims)
        graph = helper.make_graph([helper.make_node(op, names, outs, domain=domain, **attrs)], name,
                                  [info(n, a) for n, a in given.items() if n not in fixed],
                                  [onnx.ValueInfoProto(name=o) for o in outs if o],
                                  [numpy_helper.from_array(a, n) for n, a in given.items() if n in fixed])
        self.put(name + "/model.onnx", as_model(graph, opset).SerializeToString())
        inputs = [a for n, a in given.items() if n not in fixed]
        for kind, arrays in (("input", inputs), ("output", [a for a in wants if a is not None])):
            for k, array in enumerate(arrays):
                self.put("%s/test_data_set_0/%s_%d.pb" % (name, kind, k),
                         numpy_helper.from_array(np.array(array, order="C")).SerializeToString())


def split(x, heads):
    return x.reshape(x.shape[0], x.shape[1], heads, -1).transpose(0, 2, 1, 3)


def merge(x):
    return x.transpose(0, 2, 1, 3).reshape(x.shape[0], x.shape[2], -1)


def attention(q, k, v, mask=None, past_k=None, past_v=None, lengths=None, is_causal=0, left=-1, right=-1, scale=None,
              softcap=0, mode=0, q_heads=None, kv_heads=None):
    """Y, present keys, present values, scores; one query after the other, in f64."""
    packed = q.ndim == 3
    if packed:
        q, k, v = split(q, q_heads), split(k, kv_heads), split(v, kv_heads)
    past = 0 if past_k is None else past_k.shape[2]
    if past:
        k, v = np.concatenate([past_k, k], 2), np.concatenate([past_v, v], 2)
    batch, heads, rows, size = q.shape
    keys, share = k.shape[2], heads // k.shape[1]
    y, scores = np.zeros((batch, heads, rows, v.shape[3])), np.zeros((batch, heads, rows, keys))
    scale = 1 / np.sqrt(size) if scale is None else scale
    bias = np.zeros((1, keys))
    if mask is not None:
        bias = np.where(mask, 0.0, -np.inf) if mask.dtype == np.bool_ else mask.astype("f8")
        missing = keys - bias.shape[-1]
        bias = np.concatenate([bias, np.full(bias.shape[:-1] + (missing,), -np.inf)], -1)
    bias = np.broadcast_to(bias, scores.shape)
    for b, h, i in np.ndindex(batch, heads, rows):
        offset = past if lengths is None else lengths[b] - rows
        s = k[b, h // share].astype("f8") @ q[b, h, i].astype("f8") * scale
        stages = [s]
        s = softcap * np.tanh(s / softcap) if softcap else s
        stages.append(s)
        j, at = np.arange(keys), i + offset
        seen = (j < keys) if lengths is None else (j < lengths[b])
        seen = seen & (j <= at) if is_causal else seen
        seen = seen & (j >= at - left) if left >= 0 else seen
        seen = seen & (j <= at + right) if right >= 0 else seen
        s = np.where(seen, s + bias[b, h, i], -np.inf)
        stages.append(s)
        p = np.zeros(keys) if np.all(s == -np.inf) else np.exp(s - s.max()) / np.exp(s - s.max()).sum()
        stages.append(p)
        y[b, h, i], scores[b, h, i] = p @ v[b, h // share].astype("f8"), stages[mode]
    y = merge(y) if packed else y
    return y.astype(q.dtype), k, v, scores.astype(q.dtype)


def add(p, name, q, k, v, mask=None, past_k=None, past_v=None, lengths=None, outs=(0,), named=False, opset=25, **given):
    want = attention(q, k, v, mask, past_k, past_v, lengths, **given)
    renamed = {"left": "left_window_size", "right": "right_window_size", "mode": "qk_matmul_output_mode",
               "q_heads": "q_num_heads", "kv_heads": "kv_num_heads"}
    attrs = {renamed.get(n, n): x for n, x in given.items()}
    ins = [q, k, v, mask, past_k, past_v, lengths]
    while ins[-1] is None:
        ins.pop()
    p.case(name, "Attention", ins, [want[i] if i in outs else None for i in range(max(outs) + 1)], opset, named, **attrs)


def windows(p):
    q, k, v = normal(2, 4, 5, 4), normal(2, 4, 5, 4), normal(2, 4, 5, 3)
    add(p, "window_left", q, k, v, left=2)
    add(p, "window_right", q, k, v, right=1)
    add(p, "window_both", q, k, v, left=1, right=2)
    add(p, "window_local", q, k, v, left=2, right=0)
    add(p, "window_own", q, k, v, left=0, right=0, outs=(0, 3), mode=3)
    add(p, "window_causal", q, k, v, left=1, right=2, is_causal=1)
    add(p, "window_rank_1", q, k, v, mask=np.array([1, 0, 1, 1, 1], bool), left=2, is_causal=1)
    long_k, long_v, lengths = normal(2, 2, 9, 4), normal(2, 2, 9, 3), np.array([6, 9])
    add(p, "window_lengths", q, long_k, long_v, lengths=lengths, left=3, right=0)
    add(p, "window_lengths_both", q, long_k, long_v, mask=normal(4, 5, 9), lengths=lengths, left=3, right=1)
    add(p, "window_lengths_batch_mask", q, long_k, long_v, mask=rng.random((2, 1, 5, 9)) < 0.8, lengths=lengths, left=3)
    past_k, past_v = normal(2, 2, 4, 4), normal(2, 2, 4, 3)
    short_k, short_v = normal(2, 2, 5, 4), normal(2, 2, 5, 3)
    add(p, "window_past", q, short_k, short_v, past_k=past_k, past_v=past_v, left=3, is_causal=1, outs=(0, 1, 2))
    add(p, "window_past_both", q, short_k, short_v, past_k=past_k, past_v=past_v, left=3, right=2, outs=(0, 1, 2))
    add(p, "window_named", q, long_k, long_v, lengths=lengths, left=3, right=1, named=True)
    add(p, "window_packed", merge(q), merge(k), merge(v), left=1, right=1, q_heads=4, kv_heads=4)


def masks(p):
    q, k, v = normal(2, 4, 3, 4), normal(2, 2, 6, 4), normal(2, 2, 6, 4)
    bools = rng.random((2, 4, 3, 6)) < 0.6
    bools[0, 1, 2] = False
    floats = np.where(bools, normal(2, 4, 3, 6), -np.inf).astype("f4")
    for name, mask in (("bool", bools), ("float", floats)):
        add(p, "mask_%s_4" % name, q, k, v, mask)
        add(p, "mask_%s_3" % name, q, k, v, mask[0])
        add(p, "mask_%s_2" % name, q, k, v, mask[0, 1])
        add(p, "mask_%s_row" % name, q, k, v, mask[:, :1, :1])
        add(p, "mask_%s_short" % name, q, k, v, mask[..., :4])
        add(p, "mask_%s_short_named" % name, q, k, v, mask[0, 1, :, :5], named=True)
        add(p, "mask_%s_named" % name, q, k, v, mask, named=True, is_causal=1)
        add(p, "mask_%s_cap" % name, q, k, v, mask[:1], softcap=1.5, is_causal=1)
    add(p, "mask_int", q, k, v, rng.integers(-3, 3, (3, 6)).astype(np.int32), opset=23)
    add(p, "mask_half", q.astype("f2"), k.astype("f2"), v.astype("f2"), floats[0].astype("f2"))
    add(p, "values_of_another_type", q, k, v.astype("f2"), bools)
    add(p, "values_of_another_type_f64", q, k, v.astype("f8"), named=True)


def scores(p):
    q, k, v = normal(2, 4, 3, 4), normal(2, 2, 6, 4), normal(2, 2, 6, 3)
    bias = np.where(rng.random((4, 3, 6)) < 0.7, normal(4, 3, 6), -np.inf).astype("f4")
    bias[1, 2] = -np.inf
    for mode in range(4):
        add(p, "scores_%d" % mode, q, k, v, bias, softcap=2.0, mode=mode, is_causal=1, outs=(0, 3))
        add(p, "scores_%d_packed" % mode, merge(q), merge(k), merge(v), bias > 0, mode=mode, outs=(0, 3), q_heads=4,
            kv_heads=2, opset=24)
        add(p, "scores_%d_lengths" % mode, q, k, v, lengths=np.array([2, 5]), mode=mode, is_causal=1, outs=(0, 3),
            opset=24)
    add(p, "scores_past_named", q, k, v, past_k=normal(2, 2, 4, 4), past_v=normal(2, 2, 4, 3), mode=2, is_causal=1,
        outs=(0, 1, 2, 3), named=True, opset=24)
    add(p, "scores_named_packed", merge(q), merge(k), merge(v), softcap=0.5, mode=1, outs=(0, 3), q_heads=4, kv_heads=2,
        named=True)
    half = [x.astype("f2") for x in (q, k, v)]
    add(p, "scores_half", *half, mask=bias[0] > 0, softcap=3.0, mode=2, outs=(0, 3), opset=24)


def pasts(p):
    q, k, v = normal(1, 2, 3, 4), normal(1, 2, 5, 4), normal(1, 2, 5, 4)
    past_k, past_v = normal(1, 2, 2, 4), normal(1, 2, 2, 4)
    add(p, "past_of_other_rows", q, k, v, past_k=past_k, past_v=past_v, is_causal=1, outs=(0, 1, 2))
    add(p, "past_of_other_rows_named", q, k, v, past_k=past_k, past_v=past_v, is_causal=1, outs=(0, 1, 2), named=True)
    add(p, "past_short_mask", q, k[:, :, :3], v[:, :, :3], normal(3, 4), past_k, past_v, outs=(0, 1, 2), named=True)
    add(p, "causal_more_rows_than_keys", k, q, q, is_causal=1)
    add(p, "causal_more_keys_than_rows", q, k, v, is_causal=1, named=True)
    add(p, "scale", q, k, v, scale=0.1, softcap=1.0)
    want = attention(q, k, v)[:1]
    for precision in (1, 10, 11, 16):
        p.case("softmax_precision_%d" % precision, "Attention", [q, k, v], want, softmax_precision=precision)


def grouped(p):
    """com.microsoft's GroupQueryAttention with a soft cap, which ONNX Runtime applies before masks, as ONNX does."""
    q, k, v = normal(2, 4, 3, 4), normal(2, 2, 3, 4), normal(2, 2, 3, 4)
    past_k, past_v = normal(2, 2, 2, 4), normal(2, 2, 2, 4)
    want = attention(q, k, v, past_k=past_k, past_v=past_v, is_causal=1, softcap=0.7)
    p.case("grouped_cap", "GroupQueryAttention",
           [merge(q), merge(k), merge(v), past_k, past_v, np.array([4, 4], np.int32), np.array(5, np.int32)],
           [merge(want[0]), want[1], want[2]], domain="com.microsoft", num_heads=4, kv_num_heads=2, softcap=0.7)


def empty(p):
    """Entries of the batch that have no keys yet."""
    k, v, lengths = normal(2, 2, 6, 4), normal(2, 2, 6, 3), np.array([0, 4])
    for rows in (1, 9):
        q = normal(2, 4, rows, 4)
        add(p, "no_keys_%d" % rows, q, k, v, lengths=lengths, opset=24)
        add(p, "no_keys_causal_%d" % rows, q, k, v, lengths=lengths, is_causal=1, opset=24)
        add(p, "no_keys_cap_%d" % rows, q, k, v, lengths=lengths, softcap=1.0, mode=3, outs=(0, 3), opset=24)


def main():
    p = NumpyPack("attention")
    windows(p)
    masks(p)
    scores(p)
    pasts(p)
    grouped(p)
    empty(p)


if __name__ == "__main__":
    main()
