#!/usr/bin/env python3
"""Writes tests/onnx/cases/*.pack: small models with inputs and the outputs that ONNX Runtime gives for them, for ops
that ONNX's own node tests lack. Run by hand; needs Python's onnx and numpy, and node with the npm package
onnxruntime-node in NODE_PATH. The build and the tests need none of these.

    NODE_PATH=<folder>/node_modules /usr/bin/python3 tests/onnx/make_cases.py [PACK]...

A pack is a row of files: a line `path size`, then so many bytes. The paths are those of ONNX's node tests."""
import base64
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "ops"))
from caselib import NUMPY, ORT_NAMES, RUNNER  # noqa: E402

TYPES = {np.dtype(NUMPY[kind]): name for kind, name in ORT_NAMES.items() if kind != "bf16"}
DTYPES = {name: dtype for dtype, name in TYPES.items()}
rng = np.random.default_rng(5)


def run(model, inputs):
    given = [{"name": n, "type": TYPES[a.dtype], "dims": list(a.shape),
              "data": base64.b64encode(np.ascontiguousarray(a).tobytes()).decode()} for n, a in inputs.items()]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "case.onnx")
        onnx.save(model, path)
        job = json.dumps({"model": path, "inputs": given})
        done = subprocess.run(["node", "-e", RUNNER], input=job, capture_output=True, text=True, check=True)
    return [np.frombuffer(base64.b64decode(o["data"]), dtype=DTYPES[o["type"]]).reshape(o["dims"])
            for o in json.loads(done.stdout)]


class Pack:
    def __init__(self, name):
        self.file = open(os.path.join(HERE, "cases", name + ".pack"), "wb")

    def put(self, path, data):
        self.file.write(("%s %d\n" % (path, len(data))).encode() + data)

    def model(self, name, model, inputs):
        inputs = {n: np.asarray(a) for n, a in inputs.items()}
        self.put(name + "/model.onnx", model.SerializeToString())
        for kind, arrays in (("input", inputs.values()), ("output", run(model, inputs))):
            for k, array in enumerate(arrays):
                self.put("%s/test_data_set_0/%s_%d.pb" % (name, kind, k),
                         numpy_helper.from_array(array).SerializeToString())

    def node(self, name, op, ins, outs=1, domain="com.microsoft", opset=17, constant=(), **attrs):
        """constant: the operands that are initializers; outs: how many, or their names."""
        names = ["x%d" % i if a is not None else "" for i, a in enumerate(ins)]
        given = {n: np.asarray(a) for n, a in zip(names, ins) if a is not None}
        fixed = {names[i] for i in constant}
        outs = outs if isinstance(outs, list) else ["y%d" % i for i in range(outs)]
        graph = helper.make_graph(
            [helper.make_node(op, names, outs, domain=domain, **attrs)], name,
            [helper.make_tensor_value_info(n, onnx.mapping.NP_TYPE_TO_TENSOR_TYPE[a.dtype], a.shape)
             for n, a in given.items() if n not in fixed],
            [onnx.ValueInfoProto(name=o) for o in outs if o],
            [numpy_helper.from_array(a, n) for n, a in given.items() if n in fixed])
        self.model(name, as_model(graph, opset), {n: a for n, a in given.items() if n not in fixed})


def as_model(graph, opset=17):
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset),
                                                    helper.make_opsetid("com.microsoft", 1),
                                                    helper.make_opsetid("ai.onnx.preview", 1)])
    model.ir_version = 8 if opset < 20 else 10
    return model


def f32(*shape):
    return rng.normal(size=shape).astype(np.float32)


def u8(*shape):
    return rng.integers(0, 256, size=shape).astype(np.uint8)


def i8(*shape):
    return rng.integers(-128, 128, size=shape).astype(np.int8)


def scalar(value, dtype=np.float32):
    return np.array(value, dtype)


def fused(p):
    p.node("gelu", "Gelu", [f32(2, 5)])
    p.node("bias_gelu", "BiasGelu", [f32(2, 5), f32(5)])
    p.node("fast_gelu", "FastGelu", [f32(2, 5)])
    p.node("fast_gelu_bias", "FastGelu", [f32(2, 5), f32(5)])
    p.node("quick_gelu", "QuickGelu", [f32(2, 5)], alpha=1.5)
    p.node("fused_matmul", "FusedMatMul", [f32(2, 4, 3), f32(2, 5, 4)], alpha=0.5, transA=1, transB=1)
    p.node("fused_matmul_batch", "FusedMatMul", [f32(3, 2, 4), f32(2, 4, 5)], transBatchA=1)
    p.node("fused_matmul_both", "FusedMatMul", [f32(4, 2, 3), f32(2, 4, 5)], transBatchA=1, transA=1)
    p.node("fused_gemm", "FusedGemm", [f32(2, 3), f32(3, 4), f32(4)], activation="LeakyRelu", activation_alpha=0.3)
    x, w = f32(1, 2, 6, 6), f32(3, 2, 3, 3)
    p.node("fused_conv", "FusedConv", [x, w, f32(3)], activation="Relu", constant=(1, 2))
    p.node("fused_conv_sum", "FusedConv", [x, w, f32(3), f32(1, 3, 4, 4)], activation="Relu", constant=(1, 2))
    for name, numbers in (("LeakyRelu", [0.2]), ("Clip", [-0.5, 0.5]), ("HardSigmoid", [0.3, 0.4])):
        p.node("fused_conv_" + name, "FusedConv", [x, w], activation=name, activation_params=numbers, constant=(1,))


def norms(p):
    x, y, v = f32(2, 3, 4), f32(2, 3, 4), f32(4)
    p.node("skip_norm", "SkipLayerNormalization", [x, y, v], epsilon=1e-5)
    p.node("skip_norm_all", "SkipLayerNormalization", [x, y, v, f32(4), f32(4)], ["y", "", "", "s"], epsilon=1e-5)
    p.node("skip_rms", "SkipSimplifiedLayerNormalization", [x, y, v, f32(4)], ["y", "", "", "s"], epsilon=1e-5)
    p.node("rms", "SimplifiedLayerNormalization", [x, v], domain="", epsilon=1e-5, axis=-1)
    ids = rng.integers(0, 9, (2, 3)).astype(np.int32)
    tables = [f32(9, 4), f32(6, 4), f32(2, 4), f32(4), f32(4)]
    mask = np.array([[1, 1, 0], [1, 1, 1]], np.int32)
    p.node("embed", "EmbedLayerNormalization", [ids, ids % 2] + tables + [mask], 2, epsilon=1e-5)
    tables[2] = None
    p.node("embed_plain", "EmbedLayerNormalization", [ids, None] + tables, 2, epsilon=1e-5)


def attention(p):
    x, w, b = f32(2, 3, 8), f32(8, 24), f32(24)
    full = (rng.integers(0, 2, (2, 3, 3)) | np.eye(3, dtype=int)).astype(np.int32)
    masks = {"none": None, "lengths": np.array([2, 3], np.int32), "rows": np.array([[1, 1, 0], [1, 0, 1]], np.int32),
             "full": full}
    for name, mask in masks.items():
        p.node("attention_" + name, "Attention", [x, w, b, mask], num_heads=2)
        p.node("attention_causal_" + name, "Attention", [x, w, b, mask], num_heads=2, unidirectional=1)
    p.node("attention_past", "Attention", [x, w, b, None, f32(2, 2, 2, 4, 4)], 2, num_heads=2, unidirectional=1)
    p.node("attention_bias", "Attention", [x, w, b, None, None, f32(2, 2, 3, 3)], num_heads=2, scale=0.3)
    p.node("attention_widths", "Attention", [x, f32(8, 28), f32(28)], num_heads=2, qkv_hidden_sizes=[8, 8, 12])
    k, v = f32(2, 5, 8), f32(2, 5, 8)
    p.node("heads", "MultiHeadAttention", [x, k, v, b], num_heads=2)
    rows = np.array([[1, 1, 1, 0, 0], [1, 0, 1, 1, 1]], np.int32)
    p.node("heads_rows", "MultiHeadAttention", [x, k, v, None, rows], num_heads=2)
    p.node("heads_lengths", "MultiHeadAttention", [x, k, v, None, np.array([3, 5], np.int32)], num_heads=2)
    p.node("heads_bias", "MultiHeadAttention", [x, k, v, None, None, f32(2, 2, 3, 5)], num_heads=2)
    p.node("heads_past", "MultiHeadAttention", [x, x, x, None, None, None, f32(2, 2, 4, 4), f32(2, 2, 4, 4)], 3,
           num_heads=2, unidirectional=1)
    p.node("heads_cross", "MultiHeadAttention", [x, f32(2, 2, 5, 4), f32(2, 2, 5, 4)], num_heads=2)
    grouped(p)
    c, s = f32(16, 2), f32(16, 2)
    p.node("rotary", "RotaryEmbedding", [x, np.array([[0, 1, 2], [3, 4, 5]]), c, s])
    p.node("rotary_heads", "RotaryEmbedding", [f32(2, 2, 3, 4), np.array([3]), c, s])
    p.node("rotary_neighbours", "RotaryEmbedding", [x, np.array([2]), c, s], interleaved=1)
    p.node("rotary_part", "RotaryEmbedding", [f32(2, 3, 16), np.array([2]), c, s], num_heads=2, rotary_embedding_dim=4)


def grouped(p):
    for name, past, rows, attrs in (("prompt", 0, 3, {}), ("decode", 4, 1, {}),
                                    ("window", 6, 1, {"local_window_size": 3})):
        for turn in (0, 1):
            total = past + rows
            ins = [f32(2, rows, 64), f32(2, rows, 32), f32(2, rows, 32), f32(2, 2, past, 16), f32(2, 2, past, 16),
                   np.array([total - 1] * 2, np.int32), scalar(total, np.int32)]
            p.node("grouped_%s_%d" % (name, turn), "GroupQueryAttention",
                   ins + ([f32(16, 8), f32(16, 8)] if turn else []), 3, num_heads=4, kv_num_heads=2, do_rotary=turn,
                   **attrs)
    ins = [f32(2, 3, 128), None, None, f32(2, 2, 0, 16), f32(2, 2, 0, 16)]
    p.node("grouped_packed", "GroupQueryAttention", ins + [np.array([2, 1], np.int32), scalar(3, np.int32)], 1,
           num_heads=4, kv_num_heads=2)


def quantised(p):
    def q(*shape):
        return [u8(*shape), scalar(0.1), scalar(120, np.uint8)]
    to = [scalar(0.17), scalar(128, np.uint8)]  # no sum lies between two steps
    p.node("q_add", "QLinearAdd", q(2, 3) + q(2, 3) + to)
    p.node("q_mul", "QLinearMul", q(2, 3) + q(3) + [scalar(1), scalar(128, np.uint8)])
    p.node("q_sigmoid", "QLinearSigmoid", q(2, 3) + [scalar(1 / 256), scalar(0, np.uint8)], constant=(1, 2, 3, 4))
    p.node("q_leaky", "QLinearLeakyRelu", q(2, 3) + to, alpha=0.2, constant=(1, 2, 3, 4))
    p.node("q_global_pool", "QLinearGlobalAveragePool", q(1, 2, 3, 3) + to)
    p.node("q_pool", "QLinearAveragePool", q(1, 2, 4, 4) + to, kernel_shape=[2, 2], strides=[2, 2])
    p.node("q_concat", "QLinearConcat", to + q(2, 3) + q(2, 2), axis=1, constant=(0, 1, 3, 4, 6, 7))
    p.node("dynamic_matmul", "DynamicQuantizeMatMul", [f32(3, 4), i8(4, 5), f32(5)**2, i8(5), f32(5)],
           constant=(1, 2, 3, 4))
    p.node("dynamic_matmul_one", "DynamicQuantizeMatMul", [f32(2, 3, 4), u8(4, 5), scalar(0.1), scalar(128, np.uint8)],
           constant=(1, 2, 3))
    p.node("integer_matmul", "MatMulIntegerToFloat", [u8(3, 4), i8(4, 5), scalar(0.1), scalar(0.05),
                                                      scalar(120, np.uint8), scalar(3, np.int8), f32(5)], constant=(1,))
    for bits in (4, 8):
        for k in (32, 40):
            blocks = (k + 15) // 16
            ins = [f32(3, k), u8(5, blocks, 2 * bits), f32(5 * blocks)**2]
            attrs = {"K": k, "N": 5, "bits": bits, "block_size": 16}
            p.node("bits%d_%d" % (bits, k), "MatMulNBits", ins, constant=(1, 2), **attrs)
            zero = u8(5 * ((blocks * bits + 7) // 8))
            p.node("bits%d_%d_zero" % (bits, k), "MatMulNBits", ins + [zero], constant=(1, 2, 3), **attrs)


def four_bits(p):
    """Weights that stay in blocks: groups of 32 and more, by accuracy_level 4 with x as bytes."""
    for name, block, k, zero, level, rows in (("plain", 32, 64, None, 0, 3), ("zero", 32, 96, "u8", 0, 1),
                                              ("zero_f32", 32, 64, "f32", 0, 2), ("wide", 128, 256, None, 0, 5),
                                              ("part", 64, 96, "u8", 0, 2), ("bytes", 32, 64, None, 4, 3),
                                              ("bias", 32, 64, None, 1, 2),
                                              ("zero_given", 32, 64, "u8", 0, 2)):
        blocks = (k + block - 1) // block
        ins = [f32(2, rows, k), u8(70, blocks, block // 2), f32(70 * blocks)**2 / 8]
        fixed = (1, 2)
        if zero is not None:
            ins.append(u8(70 * ((blocks + 1) // 2)) if zero == "u8" else np.abs(f32(70 * blocks)) * 4)
            fixed = (1, 2) if name == "zero_given" else (1, 2, 3)  # by the caller: nothing to pack in advance
        if name == "bias":
            ins += [None, None, f32(70)]
            fixed = (1, 2, 5)
        p.node("four_bits_" + name, "MatMulNBits", ins, constant=fixed, K=k, N=70, bits=4, block_size=block,
               accuracy_level=level)


def quantised_lstm(p):
    def node(name, kind, directions=1, per_row=False, batch=1, states=False, hidden=6, **attrs):
        rows, wide = 4 * hidden, (directions, 4 * hidden) if per_row else (directions,)
        # i8 of seven bits: without VNNI ONNX Runtime lets the sums of two larger products saturate
        bytes_of = u8 if kind == "u8" else lambda *shape: i8(*shape) // 2
        w, r = bytes_of(directions, 3, rows), bytes_of(directions, hidden, rows)
        zero = np.full(wide, 128, np.uint8) if kind == "u8" else np.zeros(wide, np.int8)
        ins = [f32(5, batch, 3), w, r, f32(directions, 2 * rows), None, None, None, None,
               np.full(wide, 0.01, np.float32) * (1 + np.abs(f32(*wide))), zero,
               np.full(wide, 0.008, np.float32) * (1 + np.abs(f32(*wide))), zero]
        if states:
            ins[5], ins[6] = f32(directions, batch, hidden), f32(directions, batch, hidden)
        p.node(name, "DynamicQuantizeLSTM", ins, 3, constant=(1, 2, 3, 8, 9, 10, 11), hidden_size=hidden, **attrs)

    for kind in ("i8", "u8"):
        node("lstm_%s" % kind, kind)
        node("lstm_%s_reverse" % kind, kind, direction="reverse")
        node("lstm_%s_both" % kind, kind, 2, direction="bidirectional")
        node("lstm_%s_rows" % kind, kind, per_row=True)
        node("lstm_%s_both_rows" % kind, kind, 2, True, states=True, hidden=20, direction="bidirectional")
    node("lstm_states", "i8", states=True)
    node("lstm_activations", "i8", activations=["HardSigmoid", "Relu", "Tanh"])


def standard_attention(p):
    def node(name, op, ins, outs=1, **attrs):
        p.node(name, op, ins, outs, "", 23, **attrs)
    q, k, v = f32(2, 4, 3, 8), f32(2, 4, 5, 8), f32(2, 4, 5, 8)
    rows = [f32(2, 3, 32), f32(2, 5, 32), f32(2, 5, 32)]
    seen = (rng.integers(0, 2, (2, 1, 3, 5)) > 0) | (np.arange(5) == 0)
    node("onnx_attention", "Attention", [q, k, v])
    node("onnx_attention_grouped", "Attention", [q, f32(2, 2, 5, 8), f32(2, 2, 5, 8)])
    node("onnx_attention_packed", "Attention", rows, q_num_heads=4, kv_num_heads=4, scale=0.2)
    node("onnx_attention_causal", "Attention", [q, k, v], is_causal=1)
    node("onnx_attention_square", "Attention", [q, q, q], is_causal=1)
    node("onnx_attention_bias", "Attention", [q, k, v, f32(3, 5)])
    node("onnx_attention_mask", "Attention", [q, k, v, seen])
    node("onnx_attention_both", "Attention", [q, k, v, seen], is_causal=1)
    node("onnx_attention_past", "Attention", [q, q, q, None, f32(2, 4, 4, 8), f32(2, 4, 4, 8)], 3, is_causal=1)
    node("onnx_attention_packed_past", "Attention", [rows[0]] * 3 + [None, f32(2, 4, 4, 8), f32(2, 4, 4, 8)], 3,
         q_num_heads=4, kv_num_heads=4)
    node("onnx_rotary", "RotaryEmbedding", [q, f32(16, 4), f32(16, 4), np.array([[0, 1, 2], [3, 4, 5]])])
    node("onnx_rotary_rows", "RotaryEmbedding", [rows[0], f32(2, 3, 4), f32(2, 3, 4)], num_heads=4)
    node("onnx_rotary_part", "RotaryEmbedding", [q, f32(16, 2), f32(16, 2), np.array([[0, 1, 2], [3, 4, 5]])],
         rotary_embedding_dim=4, interleaved=1)


def value(name, kind, shape):
    return helper.make_tensor_value_info(name, kind, shape)


def loops(p):
    real, whole, truth = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
    body = helper.make_graph(
        [helper.make_node("Cast", ["i"], ["fi"], to=1), helper.make_node("Add", ["v", "fi"], ["w"]),
         helper.make_node("Mul", ["w", "outer"], ["s"]), helper.make_node("Less", ["i", "limit"], ["goes_on"])], "body",
        [value("i", whole, []), value("c", truth, []), value("v", real, [2])],
        [value("goes_on", truth, []), value("w", real, [2]), value("s", real, [2])])
    for name, trips, limit in (("loop_trips", 4, 100), ("loop_condition", 50, 2)):
        graph = helper.make_graph(
            [helper.make_node("Loop", ["trips", "", "v0"], ["last", "all"], body=body)], name,
            [value("v0", real, [2]), value("outer", real, [2])], [value("last", real, [2]), value("all", real, None)],
            [numpy_helper.from_array(np.array(trips), "trips"), numpy_helper.from_array(np.array(limit), "limit")])
        p.model(name, as_model(graph), {"v0": f32(2), "outer": f32(2)})
    body = helper.make_graph([helper.make_node("Add", ["s", "a"], ["s2"]), helper.make_node("Mul", ["a", "b"], ["o"])],
                             "body", [value(n, real, [3]) for n in ("s", "a", "b")],
                             [value("s2", real, [3]), value("o", real, [3])])
    scan = helper.make_node("Scan", ["s0", "a", "b"], ["last", "all"], body=body, num_scan_inputs=2,
                            scan_input_axes=[0, 1], scan_input_directions=[0, 1], scan_output_axes=[1],
                            scan_output_directions=[1])
    graph = helper.make_graph([scan], "scan", [value("s0", real, [3]), value("a", real, [4, 3]),
                                               value("b", real, [3, 4])],
                              [value("last", real, [3]), value("all", real, [3, 4])])
    p.model("scan_backwards", as_model(graph), {"s0": f32(3), "a": f32(4, 3), "b": f32(3, 4)})


def choices(p):
    """The usual squeeze: what is taken follows from the shape, and the other branch may not fit it."""
    real = TensorProto.FLOAT
    squeeze = helper.make_node("Squeeze", ["x", "axis"], ["t"])
    squeeze = helper.make_graph([squeeze], "then", [], [value("t", real, None)])
    others = {"sum": helper.make_node("ReduceSum", ["x", "axis"], ["e"], keepdims=0),
              "same": helper.make_node("Identity", ["x"], ["e"])}
    for name, extents in (("sum", (1, 3)), ("same", (1,))):
        other = helper.make_graph([others[name]], "else", [], [value("e", real, None)])
        nodes = [helper.make_node("Shape", ["x"], ["shape"]), helper.make_node("Gather", ["shape", "one"], ["extent"]),
                 helper.make_node("Equal", ["extent", "one"], ["is_one"]),
                 helper.make_node("If", ["is_one"], ["y"], then_branch=squeeze, else_branch=other),
                 helper.make_node("Relu", ["y"], ["z"])]
        graph = helper.make_graph(nodes, "choice", [value("x", real, ["n", "m"])], [value("z", real, None)],
                                  [numpy_helper.from_array(np.array([1]), "axis"),
                                   numpy_helper.from_array(np.array(1), "one")])
        for m in extents:
            p.model("squeeze_or_%s_%d" % (name, m), as_model(graph), {"x": f32(2, m)})


def windows(p):
    def node(name, op, ins, outs=1, opset=19, constant=(), **attrs):
        p.node(name, op, ins, outs, "", opset, constant, **attrs)

    x = f32(1, 2, 5, 6)
    node("conv_same_lower", "Conv", [x, f32(3, 2, 2, 3)], auto_pad="SAME_LOWER", strides=[2, 1])
    node("conv_transpose_shape", "ConvTranspose", [x, f32(2, 3, 3, 3)], opset=11, auto_pad="SAME_UPPER",
         strides=[2, 2], output_shape=[10, 12])
    node("deform_conv", "DeformConv", [x, f32(2, 2, 2, 2), f32(1, 8, 4, 5), None, f32(1, 4, 4, 5)])
    node("max_pool_columns", "MaxPool", [x], 2, 12, kernel_shape=[2, 2], storage_order=1)
    node("lp_pool", "LpPool", [x], opset=11, kernel_shape=[2, 3], p=3)
    node("global_lp_pool", "GlobalLpPool", [x], p=3)
    node("max_roi_pool", "MaxRoiPool", [x, np.float32([[0, 1, 1, 4, 3]])], pooled_shape=[2, 2])
    node("roi_align_max", "RoiAlign", [x, np.float32([[1, 1, 4, 3]]), np.int64([0])], opset=10, mode="max",
         output_height=2, output_width=2)
    sizes = np.int64([1, 2, 3, 4])
    node("resize_antialias", "Resize", [x, None, None, sizes], constant=[3], mode="cubic", antialias=1)
    node("resize_not_larger", "Resize", [x, None, None, sizes[2:]], constant=[3], axes=[2, 3],
         keep_aspect_ratio_policy="not_larger")
    node("resize_10", "Resize", [x, np.float32([1, 1, 0.6, 1.5])], opset=10, constant=[1])
    node("upsample_9", "Upsample", [x, np.float32([1, 1, 2, 1.5])], opset=9, constant=[1], mode="linear")
    node("grid_sample_3d", "GridSample", [f32(1, 2, 3, 4, 5), f32(1, 2, 3, 4, 3)], opset=20)
    node("affine_grid", "AffineGrid", [f32(2, 2, 3), np.int64([2, 1, 3, 4])], opset=20, constant=[1])
    node("quantize_blocks", "QuantizeLinear", [f32(5, 4) * 9, np.float32(rng.uniform(0.1, 0.3, (3, 4))), u8(3, 4)],
         opset=21, axis=0, block_size=2)
    node("dequantize_blocks", "DequantizeLinear", [u8(5, 4), np.float32(rng.uniform(0.1, 0.3, (3, 4)))], opset=21,
         axis=0, block_size=2)
    node("qlinear_conv", "QLinearConv", [u8(1, 2, 5, 6), scalar(0.02), scalar(9, np.uint8), i8(3, 2, 2, 2),
                                         np.float32([0.01, 0.02, 0.03]), np.int8([0, 0, 0]), scalar(0.5),
                                         scalar(100, np.uint8), np.int32([5, -500, 900])], opset=10, pads=[1, 0, 1, 1])


def ints(name, values):
    return numpy_helper.from_array(np.int64(values), name)


def extents(p):
    """Extents that follow from data."""
    def model(name, nodes, inputs, outputs, constants=(), infos=(), opset=17):
        given = [value(n, numpy_helper.from_array(a).data_type, a.shape) for n, a in inputs.items()]
        graph = helper.make_graph([helper.make_node(op, i.split(), o.split(), **attrs) for op, i, o, attrs in nodes],
                                  name, given, outputs, list(constants), value_info=list(infos))
        p.model(name, as_model(graph, opset), inputs)

    f, i = TensorProto.FLOAT, TensorProto.INT64
    mask = np.float32(rng.uniform(-1, 1, (4, 6)))
    mask[mask < 0.2] = 0
    points = [("NonZero", "x", "nz", {}), ("Transpose", "nz", "at", {}), ("GatherND", "x at", "v", {}),
              ("Shape", "at", "s", {}), ("ReduceSum", "v", "sum", {"keepdims": 0}), ("Softmax", "v", "soft", {"axis": 0})]
    outs = [value("at", i, ["n", 2]), value("v", f, ["n"]), value("s", i, [2]), value("sum", f, []),
            value("soft", f, ["n"])]
    model("points", points, {"x": mask}, outs)
    model("points_none", points, {"x": np.zeros((4, 6), np.float32)}, outs)
    model("points_all", points, {"x": np.ones((4, 6), np.float32)}, outs)

    boxes = np.float32(rng.uniform(0, 10, (1, 40, 2)))
    boxes = np.concatenate([boxes, boxes + np.float32(rng.uniform(1, 4, (1, 40, 2)))], 2)
    detector = [
        ("NonMaxSuppression", "boxes scores most iou least", "kept", {}),
        ("Slice", "kept two three one", "column", {}), ("Squeeze", "column one", "index", {}),
        ("Squeeze", "boxes zero", "all", {}), ("Gather", "all index", "corners", {"axis": 0}),
        ("GatherND", "scores kept", "score", {}), ("Slice", "kept one two one", "class", {}),
        ("Cast", "class", "label", {"to": f}), ("Unsqueeze", "score one", "scored", {}),
        ("Concat", "corners scored label", "rows", {"axis": 1}), ("Shape", "rows", "extents", {}),
        ("Gather", "extents zero", "count", {"axis": 0}), ("Min", "count five", "k", {}),
        ("TopK", "score k", "best where", {}), ("Gather", "rows where", "top", {"axis": 0})]
    named = [ints("zero", [0]), ints("one", [1]), ints("two", [2]), ints("three", [3]), ints("five", [5]),
             numpy_helper.from_array(np.float32([0.4]), "iou")]
    outs = [value("kept", i, ["n", 3]), value("rows", f, ["n", 6]), value("top", f, ["k", 6]), value("count", i, [1])]
    for name, least in (("detector", 0.5), ("detector_few", 0.97), ("detector_none", 2)):
        model(name, detector, {"boxes": boxes, "scores": np.float32(rng.uniform(0, 1, (1, 3, 40)))}, outs,
              named + [ints("most", [10]), numpy_helper.from_array(np.float32([least]), "least")])
    model("detector_most", detector, {"boxes": boxes, "scores": np.float32(rng.uniform(0, 1, (1, 3, 40))),
                                      "most": np.int64([4])}, outs,
          named + [numpy_helper.from_array(np.float32([0.1]), "least")])

    x = np.float32(rng.integers(0, 5, (3, 7)))
    model("unique", [("Unique", "x", "y first inverse counts", {}), ("Gather", "y inverse", "again", {}),
                     ("Mul", "y y", "square", {})],
          {"x": x}, [value("y", f, ["n"]), value("first", i, ["n"]), value("inverse", i, [21]),
                     value("counts", i, ["n"]), value("again", f, [21]), value("square", f, ["n"])])
    model("unique_axis", [("Unique", "x", "y first inverse counts", {"axis": 1, "sorted": 0})],
          {"x": np.float32([[1, 2, 1, 2], [3, 4, 3, 5]])},
          [value("y", f, [2, "n"]), value("first", i, ["n"]), value("inverse", i, [4]), value("counts", i, ["n"])])
    model("compress", [("Compress", "x c", "y", {"axis": 1}), ("Compress", "x c", "flat", {})],
          {"x": x, "c": np.array([1, 0, 1, 1, 0, 0, 1], bool)}, [value("y", f, [3, "n"]), value("flat", f, ["m"])])

    # shapes computed from counts
    counting = [("NonZero", "x", "nz", {}), ("Shape", "nz", "s", {}), ("Gather", "s one", "n", {"axis": 0}),
                ("Squeeze", "n zero", "scalar", {}), ("Range", "start scalar step", "places", {}),
                ("Concat", "n four", "to", {"axis": 0}), ("Expand", "seven to", "wide", {}),
                ("ConstantOfShape", "to", "zeros", {}), ("Reshape", "wide flat", "line", {}),
                ("Slice", "x zero n", "cut", {}), ("Transpose", "wide", "turned", {}),
                ("MatMul", "turned wide", "product", {}), ("Equal", "to minus", "is", {}),
                ("Where", "is ones to", "target", {}), ("Expand", "seven target", "chosen", {}),
                ("Sub", "n one", "fewer", {}), ("Pad", "places pads", "padded", {})]
    outs = [value("places", i, ["n"]), value("wide", f, ["n", 4]), value("zeros", f, ["n", 4]),
            value("line", f, ["m"]), value("cut", f, ["k"]), value("product", f, [4, 4]), value("fewer", i, [1]),
            value("chosen", f, ["n", 4]), value("padded", i, ["p"])]
    given = [ints("zero", [0]), ints("one", [1]), ints("four", [4]), ints("start", 0), ints("step", 1),
             ints("flat", [-1]), ints("minus", [-1, -1]), ints("ones", [1, 1]), ints("pads", [1, 2]),
             numpy_helper.from_array(np.float32([[7]]), "seven")]
    model("counting", counting, {"x": np.float32([0, 3, 0, 1, 2, 0])}, outs, given)
    model("counting_all", counting, {"x": np.float32([5, 3, 1, 1, 2, 4])}, outs, given)

    two_stage(p, model)

    ranged = [("ReduceMax", "x", "limit", {"keepdims": 0}), ("Range", "start limit step", "r", {}),
              ("Mul", "r r", "y", {})]
    model("range_declared", ranged, {"x": np.int64([3, 9, 2])}, [value("y", i, ["n"])],
          [ints("start", 1), ints("step", 2)], [value("r", i, [12])])


def two_stage(p, model):
    """Proposals, the best of them kept, their features cut out and classed, and the best of those: as detectors do."""
    f, i = TensorProto.FLOAT, TensorProto.INT64
    corner = np.float32(rng.uniform(0, 24, (60, 2)))
    boxes = np.concatenate([corner, corner + np.float32(rng.uniform(0, 8, (60, 2)))], 1)
    nodes = [
        # the best 40 that are not too small
        ("Shape", "score", "s0", {}), ("Min", "s0 forty", "k0", {}), ("TopK", "score k0", "s1 i1", {}),
        ("Gather", "boxes i1", "b1", {"axis": 0}), ("Split", "b1", "x1 y1 x2 y2", {"axis": 1}),
        ("Sub", "x2 x1", "w", {}), ("Sub", "y2 y1", "h", {}), ("GreaterOrEqual", "w least", "wide", {}),
        ("GreaterOrEqual", "h least", "high", {}), ("And", "wide high", "both", {}), ("Squeeze", "both one", "large", {}),
        ("NonZero", "large", "nz", {}), ("Squeeze", "nz zero", "at", {}), ("Gather", "b1 at", "b2", {"axis": 0}),
        ("Gather", "s1 at", "s2", {"axis": 0}),
        # of those that overlap, the best; at most 12
        ("Unsqueeze", "b2 zero", "b3", {}), ("Unsqueeze", "s2 both_axes", "s3", {}),
        ("NonMaxSuppression", "b3 s3 many iou", "kept", {}), ("Gather", "kept two", "i4", {"axis": 1}),
        ("Slice", "i4 zero twelve", "i5", {}), ("Gather", "b2 i5", "b5", {"axis": 0}),
        # their features, classed
        ("Shape", "b5", "s5", {}), ("Gather", "s5 zero", "n5", {"axis": 0}),
        ("ConstantOfShape", "n5", "image", {"value": helper.make_tensor("v", i, [1], [0])}),
        ("RoiAlign", "map b5 image", "cut", {"output_height": 3, "output_width": 3}),
        ("Flatten", "cut", "flat", {"axis": 1}), ("Gemm", "flat weight bias", "logits", {}),
        ("Softmax", "logits", "prob", {"axis": 1}),
        # every class of every box whose score is high enough, and of those the best of each class
        ("Greater", "prob limit", "sure", {}), ("NonZero", "sure", "pairs", {}), ("Transpose", "pairs", "pair", {}),
        ("GatherND", "prob pair", "s6", {}), ("Split", "pairs", "row label", {"axis": 0}),
        ("Squeeze", "row zero", "row1", {}), ("Squeeze", "label zero", "label1", {}),
        ("Gather", "b5 row1", "b6", {"axis": 0}), ("Cast", "label1", "offset", {"to": f}),
        ("Mul", "offset far", "moved", {}), ("Unsqueeze", "moved one", "moved1", {}), ("Add", "b6 moved1", "b7", {}),
        ("Unsqueeze", "b7 zero", "b8", {}), ("Unsqueeze", "s6 both_axes", "s8", {}),
        ("NonMaxSuppression", "b8 s8 many iou", "last", {}), ("Gather", "last two", "i9", {"axis": 1}),
        ("Gather", "b6 i9", "out_boxes", {"axis": 0}), ("Gather", "s6 i9", "out_scores", {"axis": 0}),
        ("Gather", "label1 i9", "out_labels", {"axis": 0})]
    constants = [ints("zero", [0]), ints("one", [1]), ints("two", 2), ints("forty", [40]), ints("twelve", [12]),
                 ints("both_axes", [0, 1]), ints("many", [100])]
    for name, value_of in (("least", [2]), ("iou", [0.5]), ("limit", [0.3]), ("far", [100])):
        constants.append(numpy_helper.from_array(np.float32(value_of), name))
    constants.append(numpy_helper.from_array(f32(18, 4), "weight"))
    constants.append(numpy_helper.from_array(f32(4), "bias"))
    outs = [value("out_boxes", f, ["n", 4]), value("out_scores", f, ["n"]), value("out_labels", i, ["n"]),
            value("prob", f, ["m", 4])]
    scores = np.float32(rng.permutation(60)) / 60
    for name, size in (("two_stage", 1), ("two_stage_small", 0.45), ("two_stage_none", 0.01)):
        given = np.concatenate([boxes[:, :2], boxes[:, :2] + (boxes[:, 2:] - boxes[:, :2]) * np.float32(size)], 1)
        model(name, nodes, {"boxes": given, "score": scores, "map": f32(1, 2, 32, 32)}, outs, constants, opset=13)


def controlled(p):
    """Such extents in branches, in loops, and as what loops leave behind."""
    f, i, truth = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL

    def graph_of(name, nodes, ins, outs, constants=()):
        return helper.make_graph([helper.make_node(op, a.split(), b.split(), **attrs) for op, a, b, attrs in nodes],
                                 name, ins, outs, list(constants))

    found = graph_of("then", [("NonZero", "x", "nz", {}), ("Transpose", "nz", "t", {})], [], [value("t", i, None)])
    none = graph_of("else", [("Identity", "nothing", "e", {})], [], [value("e", i, None)])
    main = graph_of("if", [("ReduceMax", "x", "m", {"keepdims": 0}), ("Greater", "m half", "any", {}),
                           ("If", "any", "y", {"then_branch": found, "else_branch": none}), ("Add", "y y", "z", {})],
                    [value("x", f, [3, 4])], [value("z", i, ["n", 2])],
                    [numpy_helper.from_array(np.float32(0.5), "half"), ints("nothing", np.zeros((1, 2)))])
    for name, x in (("if_found", np.float32(rng.integers(0, 2, (3, 4)))), ("if_not_found", np.zeros((3, 4), np.float32))):
        p.model("extents_" + name, as_model(main), {"x": x})

    body = graph_of("body", [("Greater", "v one", "large", {}), ("NonZero", "large", "nz", {}), ("Size", "nz", "n", {}),
                             ("Add", "sum n", "sum2", {}), ("Mul", "v half", "v2", {}), ("Greater", "n zero", "go", {}),
                             ("Identity", "v2", "row", {})],
                    [value("i", i, []), value("c", truth, []), value("v", f, [6]), value("sum", i, [])],
                    [value("go", truth, []), value("v2", f, [6]), value("sum2", i, []), value("row", f, [6])])
    loop = graph_of("loop", [("Loop", "trips yes v0 sum0", "v sum rows", {"body": body}), ("Mul", "rows rows", "z", {})],
                    [value("v0", f, [6])], [value("v", f, [6]), value("sum", i, []), value("z", f, ["n", 6])],
                    [ints("trips", 50), numpy_helper.from_array(np.array(True), "yes"), ints("sum0", 0), ints("zero", 0),
                     numpy_helper.from_array(np.float32(0.5), "half"), numpy_helper.from_array(np.float32(1), "one")])
    for k, v in enumerate((1, 30, 0)):
        p.model("extents_loop_%d" % k, as_model(loop), {"v0": np.abs(f32(6)) * np.float32(v)})


if __name__ == "__main__":
    for pack_name, groups in (("microsoft", (fused, norms, attention, quantised)),
                              ("four_bits", (four_bits,)),
                              ("recurrent", (quantised_lstm,)),
                              ("newer", (standard_attention, loops, choices)),
                              ("windows", (windows,)),
                              ("extents", (extents, controlled))):
        if len(sys.argv) > 1 and pack_name not in sys.argv[1:]:
            continue
        pack = Pack(pack_name)
        for group in groups:
            group(pack)
        pack.file.close()
