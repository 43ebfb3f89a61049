"""Op cases straight from numpy arrays: a thin layer over caselib.py for ops that take many shapes and few values."""
import caselib
from caselib import NUMPY, Tensor

KINDS = {str(array.__name__).rstrip("_"): kind for kind, array in NUMPY.items() if kind != "bf16"}


def bf16(values):
    """numpy has no bf16: values that bf16 can hold (or, where they are expected values, is rounded to)."""
    return Tensor("bf16", values)


def tensor(array):
    return array if array is None or isinstance(array, Tensor) else Tensor(KINDS[str(array.dtype)], array)


def onnx_op(op, ins, n_out=1, opset=19, **attrs):
    """What ONNX Runtime gives for one node; ins are arrays or None."""
    outs = caselib.ort(op, [tensor(array) for array in ins], attrs, n_out, opset)
    return outs[0] if n_out == 1 else outs


class Cases:
    """A case file; attributes are keywords."""

    def __init__(self, family, source):
        self.file = caselib.CaseFile(family, source)

    def case(self, name, op, ins, outs, tol=None, **attrs):
        outs = outs if isinstance(outs, list) else [outs]
        self.file.add(name, op, [tensor(a) for a in ins], [tensor(a) for a in outs], attrs, tol)

    def error(self, name, op, ins, message, **attrs):
        self.file.error(name, op, [tensor(a) for a in ins], message, attrs)

    def save(self):
        self.file.write()
