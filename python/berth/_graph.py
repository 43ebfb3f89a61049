"""Graphs: reading them, looking at them, and building them with operators."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from . import _berth
from ._plan import PathLike, Plan, bytes_of

if TYPE_CHECKING:
    from ._session import InferenceSession

Dim = Union[int, str]
Operand = Union["Value", int, float, bool, Any]

#: How many results ops have that do not have one; others say so with n_out.
_RESULTS = {"top_k": 2, "unique": 4, "non_max_suppression": 2}


class ValueInfo(NamedTuple):
    """A tensor of a graph. Dimensions are extents or names; "?" follows from names by arithmetic."""

    name: str
    kind: str
    type: str
    shape: Tuple[Dim, ...]
    nbytes: int


class Node(NamedTuple):
    """An op with its operands, results and attributes."""

    name: str
    op: str
    inputs: "Tuple[Optional[Value], ...]"
    outputs: "Tuple[Value, ...]"
    attrs: "dict[str, Any]"


class Value:
    """A tensor in a graph that is being built.

    Operators make nodes: ``+ - * / ** % @``, unary ``-``, ``abs``, ``< <= > >=``, ``& | ^ ~``, and slices.
    Every op is a method: ``x.relu()``, ``x.softmax(axis=-1)``, ``x.conv(w, b, pads=[1, 1, 1, 1])``; names that are not
    words of Python alone, or that this class has itself, go through ``graph.add("not", x)``. docs/ops.md lists them.
    """

    __slots__ = ("graph", "number")
    __array_priority__ = 1000  # numpy leaves operators to us
    __array_ufunc__ = None

    def __init__(self, graph: "Graph", number: int) -> None:
        self.graph = graph
        self.number = number

    @property
    def info(self) -> ValueInfo:
        """Its name, kind, type, shape and bytes."""
        return self.graph.value(self.number)

    @property
    def name(self) -> str:
        """Its name in the graph; assigning renames it."""
        return self.info.name

    @name.setter
    def name(self, name: str) -> None:
        self.graph.handle.rename(self.number, name)

    @property
    def type(self) -> str:
        """Its element type: "f32"."""
        return self.info.type

    @property
    def shape(self) -> Tuple[Dim, ...]:
        """Its extents; named dimensions are str."""
        return self.info.shape

    def __getattr__(self, op: str) -> "_Method":
        if op.startswith("_") or op not in _ops():
            raise AttributeError(f"there is no op '{op}'")
        return _Method(self, op)

    def __dir__(self) -> "list[str]":
        return [*super().__dir__(), *_ops()]

    def __repr__(self) -> str:
        info = self.info
        return f"<berth.Value %{info.name}: {info.type}[{', '.join(map(str, info.shape))}]>"

    def _binary(self, op: str, other: Operand) -> "Value":
        return self.graph.one(op, self, self.graph.as_value(other, self))

    def _reverse(self, op: str, other: Operand) -> "Value":
        return self.graph.one(op, self.graph.as_value(other, self), self)

    def __add__(self, other: Operand) -> "Value":
        return self._binary("add", other)

    def __radd__(self, other: Operand) -> "Value":
        return self._reverse("add", other)

    def __sub__(self, other: Operand) -> "Value":
        return self._binary("sub", other)

    def __rsub__(self, other: Operand) -> "Value":
        return self._reverse("sub", other)

    def __mul__(self, other: Operand) -> "Value":
        return self._binary("mul", other)

    def __rmul__(self, other: Operand) -> "Value":
        return self._reverse("mul", other)

    def __truediv__(self, other: Operand) -> "Value":
        return self._binary("div", other)

    def __rtruediv__(self, other: Operand) -> "Value":
        return self._reverse("div", other)

    def __pow__(self, other: Operand) -> "Value":
        return self._binary("pow", other)

    def __rpow__(self, other: Operand) -> "Value":
        return self._reverse("pow", other)

    def __mod__(self, other: Operand) -> "Value":
        return self._binary("mod", other)

    def __matmul__(self, other: Operand) -> "Value":
        return self._binary("matmul", other)

    def __rmatmul__(self, other: Operand) -> "Value":
        return self._reverse("matmul", other)

    def __and__(self, other: Operand) -> "Value":
        return self._binary("and", other)

    def __or__(self, other: Operand) -> "Value":
        return self._binary("or", other)

    def __xor__(self, other: Operand) -> "Value":
        return self._binary("xor", other)

    def __lt__(self, other: Operand) -> "Value":
        return self._binary("lt", other)

    def __le__(self, other: Operand) -> "Value":
        return self._binary("le", other)

    def __gt__(self, other: Operand) -> "Value":
        return self._binary("gt", other)

    def __ge__(self, other: Operand) -> "Value":
        return self._binary("ge", other)

    def __neg__(self) -> "Value":
        return self.graph.one("neg", self)

    def __invert__(self) -> "Value":
        return self.graph.one("not", self)

    def __abs__(self) -> "Value":
        return self.graph.one("abs", self)

    def __bool__(self) -> bool:
        raise TypeError("a value of a graph is not known before it runs")

    def __iter__(self) -> Any:
        raise TypeError("a value of a graph is not iterated over; split it")

    def __getitem__(self, index: Any) -> "Value":
        """Slices and whole numbers, axis by axis: ``x[:, 1:3, 0]``."""
        items = list(index) if isinstance(index, tuple) else [index]
        if Ellipsis in items:
            at = items.index(Ellipsis)
            items[at : at + 1] = [slice(None)] * (len(self.shape) - len(items) + 1)
        axes, starts, ends, steps, gone = [], [], [], [], []
        for axis, item in enumerate(items):
            if isinstance(item, slice):
                if item == slice(None):
                    continue
                step = 1 if item.step is None else int(item.step)
                low, high = (0, 2**62) if step > 0 else (2**62, -(2**62))
                starts.append(low if item.start is None else int(item.start))
                ends.append(high if item.stop is None else int(item.stop))
            elif isinstance(item, int):
                step = 1
                starts.append(item)
                ends.append(item + 1 if item != -1 else 2**62)
                gone.append(axis)
            else:
                raise TypeError("a value is indexed with slices and whole numbers; use gather for other values")
            axes.append(axis)
            steps.append(step)
        value = self.graph.one("narrow", self, axes=axes, starts=starts, ends=ends, steps=steps) if axes else self
        return self.graph.one("squeeze", value, axes=gone) if gone else value


class _Method:
    """An op as a method of its first operand."""

    def __init__(self, value: Value, op: str) -> None:
        self._value = value
        self._op = op

    def __call__(self, *others: Operand, n_out: Optional[int] = None, **attrs: Any) -> Any:
        graph = self._value.graph
        operands = [None if other is None else graph.as_value(other, self._value) for other in others]
        return graph.add(self._op, self._value, *operands, n_out=n_out, **attrs)


_names: "Optional[frozenset[str]]" = None


def _ops() -> "frozenset[str]":
    global _names
    if _names is None:
        _names = frozenset(_berth.op_names())
    return _names


def forget_ops() -> None:
    """After an op was added."""
    global _names
    _names = None


class Graph:
    """A neural network: values, and the nodes that make them.

    >>> graph = Graph("mlp")
    >>> x = graph.input("x", "f32", ["batch", 4])
    >>> w = graph.constant([[1.0], [2.0], [3.0], [4.0]], "f32")
    >>> graph.output("y", (x @ w + 1).relu())
    >>> session = graph.session(threads=1)
    >>> session.run(None, {"x": [[1.0, 1.0, 1.0, 1.0]]})[0].tolist()
    [[11.0]]
    """

    def __init__(self, name: str = "graph", *, handle: Optional[_berth.GraphHandle] = None) -> None:
        self.handle = _berth.GraphHandle(name) if handle is None else handle

    # ---- Building ----

    def input(self, name: Optional[str], type: Any, shape: Sequence[Dim]) -> Value:
        """A value that is given before a run. Dimensions are extents, or names that are bound later."""
        return Value(self, self.handle.add_input(name, type, shape))

    def param(self, name: str, type: Any, shape: Sequence[Dim]) -> Value:
        """A weight: ``attach`` or ``session.set_param`` gives it its elements."""
        return Value(self, self.handle.add_param(name, type, shape))

    def constant(self, array: Any, type: Any = None, name: Optional[str] = None) -> Value:
        """A value that is known now: an array, a number or a list."""
        return Value(self, self.handle.add_constant(name, type, array))

    def state(self, name: str, type: Any = None, shape: Optional[Sequence[Dim]] = None, data: Any = None) -> Value:
        """A value that outlives a run: a cache, a counter. It begins with `data`, or with zeros of this shape."""
        if data is not None:
            return Value(self, self.handle.add_state_of(name, type, data))
        if shape is None or type is None:
            raise _berth.InvalidArgument("a state has data, or a type and a shape")
        return Value(self, self.handle.add_state(name, type, shape))

    def update(self, state: Value, next: Value) -> None:
        """What the state holds when a run has ended."""
        self.handle.set_update(self._number(state), self._number(next))

    def output(self, name: Optional[str], value: Value) -> None:
        """Makes a value an output."""
        self.handle.set_output(name, self._number(value))

    def add(self, op: str, *operands: Optional[Value], n_out: Optional[int] = None, **attrs: Any) -> Any:
        """A node of any op, custom ones included. None is an operand that is left out. Gives its result, or a list of
        them where n_out says that there are several."""
        if n_out is None:
            parts = attrs.get("parts")
            n_out = len(parts) if op == "split" and parts else _RESULTS.get(op, 1)
            is_one = n_out == 1
        else:
            is_one = False
        numbers = [None if value is None else self._number(value) for value in operands]
        made = [Value(self, number) for number in self.handle.add_node(op, numbers, attrs, n_out)]
        return made[0] if is_one else made

    def one(self, op: str, *operands: Optional[Value], **attrs: Any) -> Value:
        """The same for ops with one result, for programs whose types are checked."""
        value: Value = self.add(op, *operands, **attrs)
        return value

    def as_value(self, given: Operand, like: Value) -> Value:
        """A value as it is; numbers and lists become constants of the type of `like`, arrays of their own."""
        if isinstance(given, Value):
            return given
        is_array = hasattr(given, "dtype") or hasattr(given, "__dlpack__")
        return self.constant(given, None if is_array else like.type)

    def _number(self, value: Value) -> int:
        if not isinstance(value, Value):
            raise TypeError(f"a value of the graph is needed, not {value!r}")
        if value.graph is not self:
            raise _berth.InvalidArgument("the value belongs to another graph")
        return value.number

    def gradients(self, loss: Value, of: Sequence[Value]) -> "list[Optional[Value]]":
        """Adds nodes that compute the derivatives of the loss, one number, by these values. None: it does not depend on
        one. Gradients are values like any other: outputs, operands, and what further gradients are taken of."""
        numbers = self.handle.grad(self._number(loss), [self._number(value) for value in of])
        return [None if number is None else Value(self, number) for number in numbers]

    def train(
        self,
        loss: Value,
        optimizer: str = "adamw",
        params: Optional[Sequence[Value]] = None,
        *,
        accumulate: int = 1,
        **options: float,
    ) -> None:
        """Makes every run a step of training: params become states, which the optimiser updates in place, and
        `learning_rate` becomes an input.

        optimizer  "adamw" or "sgd"
        params     what is trained; all by default
        accumulate runs that make a step, whose gradients are averaged
        options    momentum, beta1, beta2, epsilon, weight_decay, clip

        >>> graph = Graph()
        >>> x, wanted = graph.input("x", "f32", [4, 1]), graph.input("wanted", "f32", [4, 1])
        >>> w = graph.param("w", "f32", [1, 1])
        >>> error = x @ w - wanted
        >>> loss = (error * error).reduce_mean(axes=[0, 1], keepdims=0)
        >>> graph.output("loss", loss)
        >>> graph.train(loss, "sgd", weight_decay=0.0)
        >>> session = graph.session(threads=1)
        >>> feeds = {"x": [[1], [2], [3], [4]], "wanted": [[2], [4], [6], [8]], "learning_rate": 0.01}
        >>> for step in range(100):
        ...     [loss] = session.run(["loss"], feeds)
        >>> round(float(session.state("w")[0, 0]), 2)
        2.0
        """
        numbers = None if params is None else [self._number(value) for value in params]
        self.handle.train(self._number(loss), optimizer, numbers, accumulate=accumulate, **options)

    def bind(self, dims: Mapping[str, int]) -> "Graph":
        """The same graph with its named dimensions bound: gradients of some ops need to know extents."""
        return Graph(handle=self.handle.bind(dict(dims)))

    def thaw(self) -> int:
        """Small weights of an ONNX file, which are read as constants, become params; how many did. For training."""
        return self.handle.thaw()

    def lora(
        self, rank: int, alpha: Optional[float] = None, params: Optional[Sequence[Value]] = None
    ) -> "Graph":
        """A graph with low-rank adapters beside its products: x W becomes x W + alpha / rank (x A) B, with the new
        params `W.lora_a` and `W.lora_b`.

        alpha   the rank by default, so that the factor is 1
        params  the matrices that get one; all that are in products alone by default
        """
        numbers = None if params is None else [self._number(value) for value in params]
        return Graph(handle=self.handle.lora(rank, 0.0 if alpha is None else alpha, numbers))

    def fix(self, input: str, array: Any) -> None:
        """Turns an input whose elements decide shapes into a constant."""
        self.handle.fix(input, array)

    def attach(self, path: PathLike) -> None:
        """Gives every param its weights, by name, from a safetensors file."""
        self.handle.attach(path)

    # ---- Looking ----

    @property
    def name(self) -> str:
        """Its name."""
        return self.handle.name

    @property
    def dims(self) -> "list[str]":
        """The named dimensions, which a plan binds to extents."""
        return self.handle.dims

    @property
    def inputs(self) -> "list[Value]":
        """Its inputs."""
        return [Value(self, number) for number in self.handle.input_values]

    @property
    def params(self) -> "list[Value]":
        """Its weights."""
        return [Value(self, number) for number in self.handle.param_values]

    @property
    def states(self) -> "list[Value]":
        """What outlives a run."""
        return [Value(self, number) for number in self.handle.state_values]

    @property
    def outputs(self) -> "dict[str, Value]":
        """Its outputs by name."""
        return {name: Value(self, number) for name, number in self.handle.output_values}

    @property
    def nodes(self) -> "list[Node]":
        """Its nodes; each comes after those that it reads."""
        return [self._node(self.handle.node(number)) for number in range(self.handle.n_nodes)]

    def _node(self, node: "dict[str, Any]") -> Node:
        inputs = tuple(None if number is None else Value(self, number) for number in node["inputs"])
        return Node(node["name"], node["op"], inputs, tuple(Value(self, n) for n in node["outputs"]), node["attrs"])

    def value(self, number: int) -> ValueInfo:
        """What is known of a value."""
        found = self.handle.value(number)
        return ValueInfo(found["name"], found["kind"], found["type"], found["shape"], found["nbytes"])

    def find(self, name: str) -> Optional[Value]:
        """The value of this name."""
        number = self.handle.find(name)
        return None if number is None else Value(self, number)

    def needs(self) -> "dict[str, str]":
        """Inputs whose elements decide shapes: 'need' must be fixed before a plan is made, 'bounded' may be."""
        return self.handle.needs()

    def verify(self) -> None:
        """Checks links, order, types and shapes; fails with the name of the node that is wrong."""
        self.handle.verify()

    def text(self) -> str:
        """The graph in berth's text form, which ``load`` reads."""
        return self.handle.text()

    def __repr__(self) -> str:
        return f"<berth.Graph '{self.name}': {self.handle.n_nodes} nodes, dims {self.dims}>"

    # ---- Planning and running ----

    def plan(
        self,
        dims: "Optional[dict[str, int]]" = None,
        device: Optional[str] = None,
        budget: Union[int, str, None] = None,
        threads: int = 0,
        **options: Any,
    ) -> Plan:
        """Plans the one block, without allocating it.

        dims     the extents of the named dimensions
        device   whose limits to plan for; "cpu"
        budget   at most so many bytes ("64M"), at the cost of time where it must be; fails with DoesNotFit
        threads  0: one per core
        options  effort, gpu_profile, reference, bf16_weights, f16_weights, fallback, inputs_die, no_reuse
        """
        return Plan(_berth.PlanHandle(self.handle, dims, device, bytes_of(budget), threads, **options))

    def session(
        self,
        dims: "Optional[dict[str, int]]" = None,
        device: Optional[str] = None,
        budget: Union[int, str, None] = None,
        threads: int = 0,
        **options: Any,
    ) -> "InferenceSession":
        """A session of this graph: see InferenceSession."""
        from ._session import InferenceSession

        return InferenceSession(self, dims=dims, device=device, budget=budget, threads=threads, **options)


def load(
    path: Union[PathLike, bytes],
    weights: Optional[PathLike] = None,
    *,
    kv: Optional[str] = None,
    dims: "Optional[dict[str, int]]" = None,
) -> Graph:
    """Reads a model: an ONNX or GGUF file, a graph in berth's text form, or the bytes of one.

    The file is mapped and not copied; it must not change while the graph, or what was made of it, is in use.

    weights  a safetensors file with the params
    kv       how a GGUF model keeps keys and values: "f32", "f16", "bf16", "q8_0"
    dims     extents of named dimensions of an ONNX file, for a model whose ranks depend on them (a Squeeze without
             axes): the graph has them as fixed ones
    """
    extra = {} if weights is None else {"weights": os.fspath(weights)}
    if isinstance(path, (bytes, bytearray, memoryview)):
        return Graph(handle=_berth.GraphHandle.from_bytes(path, kv=kv, dims=dims, **extra))
    return Graph(handle=_berth.GraphHandle.load(path, kv=kv, dims=dims, **extra))
