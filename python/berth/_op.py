"""Custom ops in Python."""

from __future__ import annotations

from typing import Any, Callable, Optional, Sequence, Tuple, TypeVar, Union

from . import _berth
from ._graph import forget_ops

Kernel = TypeVar("Kernel", bound=Callable[..., None])
Described = Tuple[str, Tuple[Union[int, str], ...]]
Infer = Callable[..., "Union[Described, Sequence[Described]]"]


def _arrays(tensors: "list[Optional[_berth.Tensor]]") -> "list[Any]":
    try:
        import numpy
    except ImportError:
        return list(tensors)
    return [None if tensor is None else numpy.asarray(tensor) for tensor in tensors]


def op(
    name: str,
    *,
    inputs: Union[int, Tuple[int, int]] = 1,
    outputs: int = 1,
    attrs: "Optional[dict[str, Any]]" = None,
    infer: Optional[Infer] = None,
) -> Callable[[Kernel], Kernel]:
    """Makes a function the kernel of a new op, which graphs then use by its name, as text and as ``graph.add(name, ...)``.

    name     "vendor.op"
    inputs   how many operands, or (fewest, most); those that are left out are None
    outputs  how many results
    attrs    the attributes it has, with their defaults
    infer    gets (type, shape) of each operand (None: left out) and the attributes by name, and gives (type, shape) of
             the result, or a list of them. Dimensions are int, or str where they are not known yet. Without it, each
             result is like the first operand.

    The kernel gets the operands, then the results to write into, then the attributes by name; arrays of numpy where that
    is installed. They show the arena itself: what is kept of them keeps the session, and stops it from binding others.
    The op runs on the thread that runs the session or on one of its threads; an exception ends the run with an error
    that names the op, and is its cause. An op stays for good.

    >>> @op("doc.scale", attrs={"by": 2.0})
    ... def scale(x, y, by):
    ...     y[...] = x * by
    >>> graph = Graph()
    >>> graph.output("y", graph.add("doc.scale", graph.input("x", "f32", [2]), by=3.0))
    >>> graph.session(threads=1).run(None, {"x": [1.0, 2.0]})[0].tolist()
    [3.0, 6.0]
    """
    least, most = inputs if isinstance(inputs, tuple) else (inputs, inputs)

    def left_out(operands: "Sequence[Any]") -> "list[None]":
        return [None] * (most - len(operands))

    def call_infer(operands: "list[Optional[Described]]", given: "dict[str, Any]") -> "list[Described]":
        if infer is None:
            first = next(operand for operand in operands if operand is not None)
            return [first] * outputs
        found = infer(*operands, *left_out(operands), **given)
        is_one = isinstance(found, tuple) and len(found) == 2 and isinstance(found[0], str)
        return [found] if is_one else list(found)  # type: ignore[list-item, arg-type]

    def register(kernel: Kernel) -> Kernel:
        def call_kernel(
            operands: "list[Optional[_berth.Tensor]]", results: "list[_berth.Tensor]", given: "dict[str, Any]"
        ) -> None:
            kernel(*_arrays(operands), *left_out(operands), *_arrays(list(results)), **given)

        _berth.register_op(name, (least, most), outputs, attrs or {}, call_infer, call_kernel)
        forget_ops()
        return kernel

    return register
