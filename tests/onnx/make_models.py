#!/usr/bin/env python3
"""Makes the small models in tests/onnx/models (needs Python's onnx and numpy; the tests do not)."""
import os

import numpy
from onnx import TensorProto, helper, numpy_helper, save_model

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "models")


def save(name, nodes, inputs, outputs, initializers, opsets):
    graph = helper.make_graph(nodes, name, inputs, outputs, initializers)
    imports = [helper.make_opsetid(domain, version) for domain, version in opsets]
    model = helper.make_model(graph, producer_name="berth", producer_version="1", ir_version=8, opset_imports=imports)
    save_model(model, os.path.join(FOLDER, name + ".onnx"))


def value(name, kind, shape):
    return helper.make_tensor_value_info(name, kind, shape)


def main():
    weights = (numpy.arange(12, dtype=numpy.float32).reshape(4, 3) - 6) / 4
    save(
        "small",
        [
            helper.make_node("MatMul", ["x", "weights"], ["product"]),
            helper.make_node("Relu", ["product"], ["positive"]),
            helper.make_node("Reshape", ["positive", "shape"], ["y"]),
        ],
        [value("x", TensorProto.FLOAT, ["batch", 4]), value("shape", TensorProto.INT64, [2])],
        [value("y", TensorProto.FLOAT, ["rows", "columns"])],
        [numpy_helper.from_array(weights, "weights")],
        [("", 17)],
    )
    save(
        "unknown",
        [
            helper.make_node("Relu", ["x"], ["a"]),
            helper.make_node("Frobnicate", ["a"], ["b"]),
            helper.make_node("Frobnicate", ["b"], ["c"]),
            helper.make_node("Gadget", ["c"], ["y"], domain="com.example"),
        ],
        [value("x", TensorProto.FLOAT, ["batch", None])],
        [value("y", TensorProto.FLOAT, None)],
        [],
        [("", 17), ("com.example", 1)],
    )


if __name__ == "__main__":
    main()
