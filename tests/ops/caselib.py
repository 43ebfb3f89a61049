"""Writing op cases: tensors of berth's types, exact rounding, and ONNX Runtime as a second opinion.

Needs Debian's python3-numpy, python3-scipy and python3-onnx, and for ort() also node with the npm package
onnxruntime-node; NODE_PATH must name the node_modules folder that holds it. The build needs none of these.
"""
import base64
import json
import math
import os
import subprocess
import tempfile

import numpy as np

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "cases")
FLOATS = ["f32", "f64", "f16", "bf16"]
INTS = ["i8", "u8", "i16", "i32", "i64", "u32"]
NUMPY = {"f32": np.float32, "f64": np.float64, "f16": np.float16, "bf16": np.float32, "i8": np.int8, "u8": np.uint8,
         "i16": np.int16, "i32": np.int32, "i64": np.int64, "u32": np.uint32, "bool": np.bool_,
         "u16": np.uint16, "u64": np.uint64}
LIMITS = {t: (int(np.iinfo(NUMPY[t]).min), int(np.iinfo(NUMPY[t]).max)) for t in INTS}
# One unit in the last place, for results that may be rounded twice.
ULP = {"f32": 2.0**-23, "f64": 2.0**-52, "f16": 2.0**-10, "bf16": 2.0**-7}


class Tensor:
    """Values of one of berth's types; bf16 is held in f32."""

    def __init__(self, kind, values):
        self.kind = kind
        self.values = np.asarray(values, dtype=NUMPY[kind])
        self.shape = self.values.shape

    def f64(self):
        return self.values.astype(np.float64)


def round_bf16(values):
    """f64 to the nearest bf16, ties to even, rounded once."""
    def one(x):
        if x == 0 or math.isnan(x) or math.isinf(x):
            return x
        exponent = max(math.frexp(x)[1] - 1, -126)
        unit = math.ldexp(1.0, exponent - 7)
        rounded = float(np.rint(x / unit)) * unit  # dividing by a power of two is exact
        return math.copysign(math.inf, x) if abs(rounded) >= 2.0**128 else rounded
    flat = [one(float(x)) for x in np.asarray(values, dtype=np.float64).ravel()]
    return np.array(flat, dtype=np.float64).reshape(np.shape(values))


def quantise(kind, values):
    """f64 values rounded to a type."""
    with np.errstate(all="ignore"):
        values = np.asarray(values, dtype=np.float64)
        return Tensor(kind, round_bf16(values) if kind == "bf16" else values.astype(NUMPY[kind]))


def wrap(kind, value):
    """A Python integer modulo 2^n."""
    low, high = LIMITS[kind]
    return (value - low) % (high - low + 1) + low


def text_of(kind, value):  # of a block type: a byte
    if kind not in FLOATS:
        return str(int(value))
    if np.isnan(value):
        return "-nan" if np.signbit(value) else "nan"
    digits = {"f64": 17, "f32": 9, "bf16": 9, "f16": 6}[kind]
    for n in range(1, digits + 1):  # the shortest that reads back the same
        text = "%.*g" % (n, float(value))
        if NUMPY[kind](float(text)) == value:
            return text
    return text


def tensor_text(tensor):
    if tensor is None:
        return "none"
    shape = ",".join(str(d) for d in tensor.shape)
    values = " ".join(text_of(tensor.kind, v) for v in tensor.values.ravel())
    return "%s[%s] = %s" % (tensor.kind, shape, values)


def attr_text(value):
    if isinstance(value, str):
        return '"%s"' % value
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(attr_text(v) for v in value) + "]"
    if isinstance(value, float):
        text = repr(value)
        return text if any(c in text for c in ".enf") else text + ".0"
    return str(int(value))


class CaseFile:
    def __init__(self, name, source):
        self.path = os.path.join(FOLDER, name + ".case")
        self.text = ["# Written by tests/ops/%s; do not edit." % source]
        self.names = set()

    def add(self, name, op, ins, outs=None, attrs=None, tol=None, error=None):
        assert name not in self.names, name
        self.names.add(name)
        lines = ["", "case " + name, "op " + op]
        lines += ["attr %s = %s" % (k, attr_text(v)) for k, v in (attrs or {}).items()]
        lines += ["in " + tensor_text(t) for t in ins]
        lines += ["out " + tensor_text(t) for t in outs or []]
        if error:
            lines.append('error "%s"' % error)
        if tol:
            lines.append("tol %g %g" % tol)
        self.text += [line.rstrip() for line in lines] + ["end"]

    def error(self, name, op, ins, message, attrs=None):
        self.add(name, op, ins, attrs=attrs, error=message)

    def write(self):
        os.makedirs(FOLDER, exist_ok=True)
        with open(self.path, "w", encoding="ascii") as f:
            f.write("\n".join(self.text) + "\n")


RUNNER = """
const ort = require('onnxruntime-node'), fs = require('fs');
const kinds = {float32: Float32Array, float64: Float64Array, float16: Uint16Array, int8: Int8Array, uint8: Uint8Array,
               int16: Int16Array, int32: Int32Array, uint32: Uint32Array, int64: BigInt64Array, bool: Uint8Array};
(async () => {
  const job = JSON.parse(fs.readFileSync(0));
  const session = await ort.InferenceSession.create(job.model);
  const feeds = {};
  for (const t of job.inputs) {
    const bytes = Buffer.from(t.data, 'base64');
    const copy = new ArrayBuffer(bytes.length);
    new Uint8Array(copy).set(bytes);
    feeds[t.name] = new ort.Tensor(t.type, new kinds[t.type](copy), t.dims);
  }
  const out = await session.run(feeds);
  console.log(JSON.stringify(session.outputNames.map(n => ({
    type: out[n].type, dims: out[n].dims,
    data: Buffer.from(out[n].data.buffer, out[n].data.byteOffset, out[n].data.byteLength).toString('base64')}))));
})().catch(e => { console.error(e); process.exit(1); });
"""
ORT_NAMES = {"f32": "float32", "f64": "float64", "f16": "float16", "i8": "int8", "u8": "uint8", "i16": "int16",
             "i32": "int32", "u32": "uint32", "i64": "int64", "bool": "bool"}


def ort(op, ins, attrs=None, n_out=1, opset=17):
    """The outputs that ONNX Runtime gives for one node, as numpy arrays."""
    import onnx
    from onnx import helper, mapping
    names = ["x%d" % i if t is not None else "" for i, t in enumerate(ins)]
    outs = ["y%d" % i for i in range(n_out)]
    given = [(n, t) for n, t in zip(names, ins) if t is not None]
    infos = [helper.make_tensor_value_info(n, mapping.NP_TYPE_TO_TENSOR_TYPE[np.dtype(NUMPY[t.kind])], t.shape)
             for n, t in given]
    node = helper.make_node(op, names, outs, **(attrs or {}))
    graph = helper.make_graph([node], "case", infos, [onnx.ValueInfoProto(name=o) for o in outs])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    model.ir_version = 8
    model = onnx.shape_inference.infer_shapes(model)
    inputs = [{"name": n, "type": ORT_NAMES[t.kind], "dims": list(t.shape),
               "data": base64.b64encode(np.ascontiguousarray(t.values).tobytes()).decode()} for n, t in given]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "case.onnx")
        onnx.save(model, path)
        job = json.dumps({"model": path, "inputs": inputs})
        done = subprocess.run(["node", "-e", RUNNER], input=job, capture_output=True, text=True, check=True)
    types = {name: NUMPY[kind] for kind, name in ORT_NAMES.items()}
    return [np.frombuffer(base64.b64decode(o["data"]), dtype=types[o["type"]]).reshape(o["dims"])
            for o in json.loads(done.stdout)]


def agree(ours, theirs, rtol=1e-4, atol=1e-5):
    """The two truths must agree before a case is written."""
    np.testing.assert_allclose(np.asarray(ours.values, dtype=np.float64), np.asarray(theirs, dtype=np.float64),
                               rtol=rtol, atol=atol)
    return ours
