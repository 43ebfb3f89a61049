#!/usr/bin/env python3
"""Writes tests/onnx/cases/cache.pack: what opset 24 has for caches of keys and values, TensorScatter and Attention's
nonpad_kv_seqlen. Expected values come from numpy, by the words of the specification. Run by hand; needs Python's onnx
and numpy.

    /usr/bin/python3 tests/onnx/make_cases_cache.py"""
import numpy as np
import onnx
from onnx import helper, numpy_helper

from make_cases import Pack, as_model, f32


class CachePack(Pack):
    def case(self, name, op, ins, want, **attrs):
        names = ["x%d" % i if a is not None else "" for i, a in enumerate(ins)]
        given = {n: np.asarray(a) for n, a in zip(names, ins) if a is not None}
        graph = helper.make_graph(
            [helper.make_node(op, names, ["y"], **attrs)], name,
            [helper.make_tensor_value_info(n, onnx.mapping.NP_TYPE_TO_TENSOR_TYPE[a.dtype], a.shape)
             for n, a in given.items()], [onnx.ValueInfoProto(name="y")])
        self.put(name + "/model.onnx", as_model(graph, 24).SerializeToString())
        for kind, arrays in (("input", given.values()), ("output", [want])):
            for k, array in enumerate(arrays):
                self.put("%s/test_data_set_0/%s_%d.pb" % (name, kind, k),
                         numpy_helper.from_array(np.ascontiguousarray(array)).SerializeToString())


def scatter(cache, update, write, axis=-2, mode="linear"):
    out = cache.copy()
    axis %= cache.ndim
    for prefix in np.ndindex(cache.shape[:axis]):
        for i in range(update.shape[axis]):
            to = (0 if write is None else write[prefix[0]]) + i
            out[prefix + (to % cache.shape[axis] if mode == "circular" else to,)] = update[prefix + (i,)]
    return out


def attention(q, k, v, lengths, causal, mask=None):
    share = q.shape[1] // k.shape[1]
    k, v = np.repeat(k, share, 1).astype("f8"), np.repeat(v, share, 1).astype("f8")
    scores = np.einsum("bhsd,bhtd->bhst", q.astype("f8"), k) / np.sqrt(q.shape[-1])
    rows, keys = np.arange(q.shape[2])[:, None], np.arange(k.shape[2])[None]
    seen = keys[None] < lengths[:, None, None]
    if causal:
        seen = seen & (keys[None] <= rows[None] + lengths[:, None, None] - q.shape[2])
    seen = np.broadcast_to(seen[:, None], scores.shape)
    if mask is not None:
        seen = seen & mask
    scores = np.where(seen, scores, -np.inf)
    largest = scores.max(-1, keepdims=True)
    weights = np.exp(scores - np.where(np.isinf(largest), 0, largest))
    total = weights.sum(-1, keepdims=True)
    return np.einsum("bhst,bhtd->bhsd", weights / np.where(total == 0, 1, total), v).astype("f4")


def main():
    p = CachePack("cache")
    cache, update, write = f32(2, 3, 6, 4), f32(2, 3, 2, 4), np.array([1, 4])
    p.case("tensor_scatter", "TensorScatter", [cache, update, write], scatter(cache, update, write))
    p.case("tensor_scatter_start", "TensorScatter", [cache, update], scatter(cache, update, None))
    p.case("tensor_scatter_ring", "TensorScatter", [cache, update, np.array([5, 9])],
           scatter(cache, update, np.array([5, 9]), mode="circular"), mode="circular")
    flat, rows = f32(2, 6, 5), f32(2, 3, 5)
    p.case("tensor_scatter_axis", "TensorScatter", [flat, rows, np.array([0, 3])],
           scatter(flat, rows, np.array([0, 3]), 1), axis=1)
    q, k, v, lengths = f32(2, 4, 3, 8), f32(2, 2, 9, 8), f32(2, 2, 9, 8), np.array([4, 9])
    mask = np.random.default_rng(1).random((2, 1, 3, 9)) < 0.7
    p.case("attention_lengths", "Attention", [q, k, v, None, None, None, lengths], attention(q, k, v, lengths, False))
    p.case("attention_lengths_causal", "Attention", [q, k, v, None, None, None, lengths],
           attention(q, k, v, lengths, True), is_causal=1)
    p.case("attention_lengths_mask", "Attention", [q, k, v, mask, None, None, lengths],
           attention(q, k, v, lengths, True, mask), is_causal=1)
    one = q[:, :, :1]
    p.case("attention_lengths_decode", "Attention", [one, k, v, None, None, None, lengths],
           attention(one, k, v, lengths, True), is_causal=1)

    def pack(x):
        return x.transpose(0, 2, 1, 3).reshape(x.shape[0], x.shape[2], -1)
    p.case("attention_lengths_packed", "Attention", [pack(q), pack(k), pack(v), None, None, None, lengths],
           pack(attention(q, k, v, lengths, True)), is_causal=1, q_num_heads=4, kv_num_heads=2)


if __name__ == "__main__":
    main()
