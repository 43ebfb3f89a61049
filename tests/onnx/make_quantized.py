#!/usr/bin/env python3
"""Makes quantised networks with random weights, for tests/onnx/test_exact.c (needs Python's onnx and numpy; the tests
do not). One unit in the last place of a scale turns a byte, and the layers after it do the rest: what two kernels do
not round alike ends far apart.

    make_quantized.py                               the small ones, into tests/onnx/quantized
    make_quantized.py FOLDER [LAYERS [CHANNELS]]    others, into a folder: 119 layers of 32 channels are a hard one
"""
import os
import sys

import numpy
from onnx import TensorProto, checker, helper, numpy_helper, save_model

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "quantized")
F32, U8, I8, I32 = TensorProto.FLOAT, TensorProto.UINT8, TensorProto.INT8, TensorProto.INT32


class Network:
    """Nodes and weights, one after the other; every function gives the name of what it made."""

    def __init__(self, name, layers, channels, is_full=False):
        self.name, self.layers, self.channels, self.is_full = name, layers, channels, is_full
        self.nodes, self.weights = [], []
        self.random = numpy.random.default_rng(sum(name.encode()) + layers)

    def constant(self, array, kind=numpy.float32):
        name = f"c{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(numpy.asarray(array, dtype=kind), name))
        return name

    def node(self, op, inputs, n_outputs=1, **attributes):
        names = [f"{op.lower()}_{len(self.nodes)}_{k}" for k in range(n_outputs)]
        self.nodes.append(helper.make_node(op, inputs, names, **attributes))
        return names[0] if n_outputs == 1 else names

    def bytes_of(self, shape, kind=numpy.int8):
        """i8 of 7 bits, as quantisers make it for ONNX Runtime: its sums of u8 times i8 saturate without VNNI. Where
        the network is a full one, all of the type, and the two ends more often than the rest."""
        low, high = (-64, 64) if kind == numpy.int8 else (0, 255)
        if not self.is_full:
            return self.random.integers(low, high + 1, shape).astype(kind)
        low, high = numpy.iinfo(kind).min, numpy.iinfo(kind).max
        ends = numpy.where(self.random.random(shape) < 0.5, low, high)
        others = self.random.integers(low, high + 1, shape)
        return numpy.where(self.random.random(shape) < 0.6, ends, others).astype(kind)

    def spread(self, depth, kind=numpy.int8):
        """What keeps numbers about as large as they were, where a weight is about 37 (i8) or 74 (u8); in a full network
        somewhat larger, so that many bytes are at an end of their range."""
        return (0.8 if self.is_full else 1) / ((37 if kind == numpy.int8 else 74) * numpy.sqrt(depth))

    def scales(self, count, about):
        return (self.random.uniform(0.8, 1.25, count) * about).astype(numpy.float32)

    def save(self, folder, inputs, outputs, opsets=(("", 17),)):
        graph = helper.make_graph(self.nodes, self.name, inputs, outputs, self.weights)
        imports = [helper.make_opsetid(domain, version) for domain, version in opsets]
        model = helper.make_model(graph, producer_name="berth", producer_version="1", ir_version=8,
                                  opset_imports=imports)
        if all(domain == "" for domain, _ in opsets):
            checker.check_model(model)
        save_model(model, os.path.join(folder, self.name + ".onnx"))


def value(name, kind, shape):
    return helper.make_tensor_value_info(name, kind, shape)


def kernel_of(layer):
    """1 x 1, 3 x 3 and depthwise, in turn: the side of the kernel and whether every channel has its own."""
    return [(1, False), (3, True), (3, False)][layer % 3]


def dynamic_convolutions(folder, layers, channels):
    """DynamicQuantizeLinear, ConvInteger, Cast, Mul, Add, Relu; a sum around every third."""
    n = Network("dynamic_conv", layers, channels)
    x, before = "x", None
    for layer in range(layers):
        side, is_depthwise = kernel_of(layer)
        each = 1 if is_depthwise else channels
        kind = numpy.int8 if layer % 2 else numpy.uint8
        weight = n.constant(n.bytes_of((channels, each, side, side), kind), kind)
        zero = n.constant(0 if kind == numpy.int8 else 128, kind)
        quantised, scale, point = n.node("DynamicQuantizeLinear", [x], 3)
        sums = n.node("ConvInteger", [quantised, weight, point, zero], pads=[side // 2] * 4,
                      group=channels if is_depthwise else 1)
        both = n.node("Mul", [scale, n.constant(n.scales(1, 1.5 * n.spread(each * side * side, kind))[0])])
        y = n.node("Mul", [n.node("Cast", [sums], to=F32), both])
        y = n.node("Add", [y, n.constant(n.random.normal(0, 0.1, (1, channels, 1, 1)))])
        if layer % 3 == 2:
            y = n.node("Add", [y, before]) if before else y
            before = y
        x = n.node("Relu", [y]) if layer + 1 < layers else y
    n.nodes[-1].output[0] = "y"
    shape = ["batch", channels, 9, 11]
    n.save(folder, [value("x", F32, shape)], [value("y", F32, shape)])


def dynamic_products(folder, layers, channels, is_full=False):
    """DynamicQuantizeLinear and MatMulInteger, weights with a scale a column; products of ONNX Runtime's own domain."""
    n = Network("dynamic_matmul" + ("_full" if is_full else ""), layers, channels, is_full)
    x = "x"
    for layer in range(layers):
        weight = n.constant(n.bytes_of((channels, channels)), numpy.int8)
        scale = n.constant(n.scales(channels, 1.5 * n.spread(channels)))
        bias = n.constant(n.random.normal(0, 0.1, channels))
        if layer % 3 == 0:
            quantised, of_x, point = n.node("DynamicQuantizeLinear", [x], 3)
            sums = n.node("MatMulInteger", [quantised, weight, point])
            y = n.node("Mul", [n.node("Cast", [sums], to=F32), n.node("Mul", [of_x, scale])])
            y = n.node("Add", [y, bias])
        elif layer % 3 == 1:
            y = n.node("DynamicQuantizeMatMul", [x, weight, scale, "", bias], domain="com.microsoft")
        else:
            quantised, of_x, point = n.node("DynamicQuantizeLinear", [x], 3)
            y = n.node("MatMulIntegerToFloat", [quantised, weight, of_x, scale, point, "", bias],
                       domain="com.microsoft")
        x = n.node("LeakyRelu", [y], alpha=0.3)
    n.nodes[-1].output[0] = "y"
    shape = ["rows", channels]
    n.save(folder, [value("x", F32, shape)], [value("y", F32, shape)], (("", 17), ("com.microsoft", 1)))


def quantised_around(n, x, weight, bias, side, is_depthwise, relu, kind):
    """DequantizeLinear, Conv, (Relu,) QuantizeLinear, as exporters write it."""
    scale, point = n.constant(n.scales(1, 0.02)[0]), n.constant(3 if kind == numpy.int8 else 131, kind)
    y = n.node("Conv", [x, weight, bias] if bias else [x, weight], pads=[side // 2] * 4,
               group=n.channels if is_depthwise else 1)
    y = n.node("Relu", [y]) if relu == 1 else y
    y = n.node("Clip", [y, n.constant(-1.1), n.constant(1.7)]) if relu == 2 else y
    quantised = n.node("QuantizeLinear", [y, scale, point])
    return n.node("DequantizeLinear", [quantised, scale, point]), scale


def exported(folder, layers, channels, is_full=False):
    """QDQ: convolutions with and without bias, of i8 and u8, with a scale a channel, and sums."""
    n = Network("qdq" + ("_full" if is_full else ""), layers, channels, is_full)
    scale, point = n.constant(0.0157), n.constant(120, numpy.uint8)
    x = n.node("DequantizeLinear", [n.node("QuantizeLinear", ["x", scale, point]), scale, point])
    before, of_x = None, scale
    for layer in range(layers):
        side, is_depthwise = kernel_of(layer)
        each = 1 if is_depthwise else channels
        scales = n.scales(channels, 1.4 * n.spread(each * side * side))
        zeros = n.constant(numpy.zeros(channels), numpy.int8)
        weight = n.node("DequantizeLinear", [n.constant(n.bytes_of((channels, each, side, side)), numpy.int8),
                                             n.constant(scales), zeros], axis=0)
        x_scale = numpy_helper.to_array(n.weights[int(of_x[1:])])
        bias = [n.constant(n.random.integers(-2000, 2000, channels), numpy.int32),
                n.constant(x_scale * scales), n.constant(numpy.zeros(channels), numpy.int32)]
        bias = n.node("DequantizeLinear", bias, axis=0) if layer % 4 else None
        y, of_x = quantised_around(n, x, weight, bias, side, is_depthwise, layer % 3,
                                   numpy.int8 if layer % 5 == 4 else numpy.uint8)
        if layer % 3 == 2:
            if before:
                of_x, point = n.constant(n.scales(1, 0.025)[0]), n.constant(127, numpy.uint8)
                quantised = n.node("QuantizeLinear", [n.node("Add", [y, before]), of_x, point])
                y = n.node("DequantizeLinear", [quantised, of_x, point])
            before = y
        x = y
    x = n.node("GlobalAveragePool", [x])
    scale, point = n.constant(0.004), n.constant(128, numpy.uint8)
    x = n.node("DequantizeLinear", [n.node("QuantizeLinear", [x, scale, point]), scale, point])
    n.nodes[-1].output[0] = "y"
    n.save(folder, [value("x", F32, ["batch", channels, 9, 11])], [value("y", F32, ["batch", channels, 1, 1])])


def of_bytes(folder, layers, channels, is_full=False):
    """QLinearConv with and without bias, QLinearAdd, and QLinearMatMul at the end: bytes in, bytes out."""
    n = Network("qlinear" + ("_full" if is_full else ""), layers, channels, is_full)
    x, of_x, zero_x = "x", n.constant(0.0157), n.constant(120, numpy.uint8)
    before = None
    for layer in range(layers):
        side, is_depthwise = kernel_of(layer)
        each = 1 if is_depthwise else channels
        weight = n.constant(n.bytes_of((channels, each, side, side)), numpy.int8)
        scales = n.constant(n.scales(channels, 1.4 * n.spread(each * side * side)))
        zeros = n.constant(numpy.zeros(channels), numpy.int8)
        of_y, zero_y = n.constant(n.scales(1, 0.02)[0]), n.constant(131 - 37 * (layer % 3), numpy.uint8)
        operands = [x, of_x, zero_x, weight, scales, zeros, of_y, zero_y]
        if layer % 4:
            operands.append(n.constant(n.random.integers(-2000, 2000, channels), numpy.int32))
        x = n.node("QLinearConv", operands, pads=[side // 2] * 4, group=channels if is_depthwise else 1)
        of_x, zero_x = of_y, zero_y
        if layer % 3 == 2:
            if before:
                of_y, zero_y = n.constant(n.scales(1, 0.025)[0]), n.constant(127, numpy.uint8)
                x = n.node("QLinearAdd", [x, of_x, zero_x, *before, of_y, zero_y], domain="com.microsoft")
                of_x, zero_x = of_y, zero_y
            before = (x, of_x, zero_x)
    x = n.node("Reshape", [x, n.constant([0, 0, 99], numpy.int64)])
    weight, of_w = n.constant(n.bytes_of((99, 5)), numpy.int8), n.constant(n.scales(1, n.spread(99))[0])
    x = n.node("QLinearMatMul", [x, of_x, zero_x, weight, of_w, n.constant(0, numpy.int8), n.constant(0.02),
                                 n.constant(128, numpy.uint8)])
    n.nodes[-1].output[0] = "y"
    n.save(folder, [value("x", U8, ["batch", channels, 9, 11])], [value("y", U8, ["batch", channels, 5])],
           (("", 17), ("com.microsoft", 1)))


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else FOLDER
    layers = int(sys.argv[2]) if len(sys.argv) > 2 else 17
    channels = int(sys.argv[3]) if len(sys.argv) > 3 else 11
    os.makedirs(folder, exist_ok=True)
    for make in (dynamic_convolutions, dynamic_products, exported, of_bytes):
        make(folder, layers, channels)
    for make in (dynamic_products, exported, of_bytes):
        make(folder, layers // 2, channels, is_full=True)


if __name__ == "__main__":
    main()
