"""ONNX's node tests (Debian: libonnx-testdata) through Python: all of them, or every third (BERTH_TEST_SLOW unset)."""

import os
import struct
import unittest

import numpy

import berth

DATA = os.environ.get("BERTH_ONNX_DATA", "/usr/share/libonnx-testdata/data/node")
SOURCE = os.environ["BERTH_SRC"]
TYPES = {
    1: "float32", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64", 9: "bool", 10: "float16",
    11: "float64", 12: "uint32", 13: "uint64", 16: "uint16",
}  # fmt: skip


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value - (1 << 64) if value >= 1 << 63 else value, at


def fields(data):
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        kind = tag & 7
        if kind == 0:
            value, at = varint(data, at)
        else:
            size = {1: 8, 5: 4}.get(kind)
            if size is None:
                size, at = varint(data, at)
            value, at = data[at : at + size], at + size
        yield tag >> 3, value


def varints(value):
    if isinstance(value, int):
        return [value]
    numbers, at = [], 0
    while at < len(value):
        number, at = varint(value, at)
        numbers.append(number)
    return numbers


def read_tensor(data):
    """A TensorProto as (array, is_bf16); numbers that are repeated may lie in one field, or each in its own."""
    shape, integers, pieces, kind = [], [], [], 0
    for number, value in fields(data):
        if number == 3 and not isinstance(value, int):
            return read_tensor(value)  # an OptionalProto that holds a tensor
        if number == 1:
            shape += varints(value)
        elif number == 2:
            kind = value
        elif number in (5, 7, 11):
            integers += varints(value)
        elif number in (4, 9, 10):
            pieces.append(bytes(value))
    if kind not in TYPES:
        raise ValueError(f"elements of type {kind} are not read here")
    dtype = numpy.dtype(TYPES[kind])
    if integers and kind in (10, 16):
        array = numpy.array(integers, "uint16").view(dtype)
    elif integers:
        array = numpy.array([struct.unpack("Q", struct.pack("q", i))[0] if kind == 13 else i for i in integers]).astype(dtype)
    else:
        array = numpy.frombuffer(b"".join(pieces), dtype)
    return array.reshape(shape)


def read_all(folder, kind):
    tensors = []
    while True:
        path = os.path.join(folder, f"{kind}_{len(tensors)}.pb")
        if not os.path.exists(path):
            return tensors
        with open(path, "rb") as file:
            tensors.append(read_tensor(file.read()))


def as_f32(array, type):
    return (array.astype("uint32") << 16).view("float32") if type == "tensor(bfloat16)" else array


def difference(arg, got, wanted):
    if got.shape != wanted.shape or got.dtype != wanted.dtype:
        return f"output '{arg.name}' is {got.dtype}{got.shape}, expected {wanted.dtype}{wanted.shape}"
    got, wanted = as_f32(got, arg.type), as_f32(wanted, arg.type)
    loose = arg.type in ("tensor(bfloat16)", "tensor(float16)")
    if got.dtype.kind == "f":
        is_same = numpy.allclose(got, wanted, rtol=1e-3, atol=1e-2 if loose else 1e-6, equal_nan=True)
    else:
        is_same = (got == wanted).all()
    return "" if is_same else f"output '{arg.name}' is {got.ravel()[:8]}, expected {wanted.ravel()[:8]}"


def run_case(folder):
    """What is wrong; '' where nothing is."""
    try:
        session = berth.InferenceSession(os.path.join(folder, "model.onnx"), threads=1)
        data = os.path.join(folder, "test_data_set_0")
        inputs = read_all(data, "input")
        names = [arg.name for arg in session.get_inputs()]
        results = session.run(None, dict(zip(names, inputs)))
        wanted = read_all(data, "output")
        wrongs = [difference(*item) for item in zip(session.get_outputs(), results, wanted)]
        return next((wrong for wrong in wrongs if wrong), "")
    except (berth.Error, ValueError) as error:
        return str(error)


def read_known():
    with open(os.path.join(SOURCE, "tests/onnx/known.txt"), encoding="utf-8") as file:
        return {line.split()[0] for line in file if line.strip() and not line.startswith("#")}


class Nodes(unittest.TestCase):
    def test_onnx_nodes(self):
        if not os.path.isdir(DATA):
            self.skipTest(f"{DATA} is not there (Debian: libonnx-testdata)")
        known = read_known()
        names = sorted(name for name in os.listdir(DATA) if name.startswith("test_"))
        names = [name for name in names if f"~{name}" not in known]  # the results of those are random
        if not os.environ.get("BERTH_TEST_SLOW"):
            names = names[::3]
        self.assertGreater(len(names), 100)
        passed = 0
        for name in names:
            with self.subTest(name):
                wrong = run_case(os.path.join(DATA, name))
                if name in known:
                    self.assertNotEqual(wrong, "", "it passes now: take it out of the list")
                else:
                    self.assertEqual(wrong, "")
                    passed += 1
        print(f"# {passed} of {len(names)} pass")
