"""Training a model: a loss, an optimiser, steps, and files to go on from."""

from __future__ import annotations

import os
from typing import Any, Callable, Mapping, Optional, Sequence, Union

from . import _berth
from ._graph import Graph, Value, load
from ._plan import PathLike, Plan

Loss = Union[str, Callable[[Value, Value], Value]]


def _output_of(graph: Graph, name: Optional[str], is_classes: bool) -> Value:
    """What the loss is taken of: an output by name, or the first of a float type; for classes what its softmax is of."""
    if name is not None:
        if name not in graph.outputs:
            raise _berth.InvalidArgument(f"the model has no output '{name}'; it has {', '.join(graph.outputs)}")
        value = graph.outputs[name]
    else:
        floats = [value for value in graph.outputs.values() if value.type in ("f32", "f64", "f16", "bf16")]
        if not floats:
            raise _berth.InvalidArgument("the model has no output of a float type to take a loss of")
        value = floats[0]
    for node in graph.nodes if is_classes else []:
        if node.op == "softmax" and any(out.number == value.number for out in node.outputs):
            axis = node.attrs.get("axis", -1)
            if axis in (-1, len(value.shape) - 1) and node.inputs[0] is not None:
                return node.inputs[0]
    return value


def cross_entropy(logits: Value, labels: Value) -> Value:
    """The mean of -log(softmax(logits)[label]): logits are [..., classes], labels integers [...]."""
    graph, axis = logits.graph, len(logits.shape) - 1
    logs = graph.one("log_softmax", graph.one("cast", logits, to="f32"), axis=axis)
    places = graph.one("unsqueeze", graph.one("cast", labels, to="i64"), axes=[axis])
    return -graph.one("reduce_mean", graph.one("gather_elements", logs, places, axis=axis), keepdims=0)


def mean_squared_error(values: Value, wanted: Value) -> Value:
    """The mean of (values - wanted)^2."""
    error = values.graph.one("cast", values - wanted, to="f32")
    return values.graph.one("reduce_mean", error * error, keepdims=0)


class Trainer:
    """A model that learns: its graph with a loss and an optimiser, planned in one block.

    model       a path, or a Graph
    loss        "cross_entropy", "mse", or a function of the output and the labels, two values of the graph
    output      the output that the loss is taken of; the first of a float type by default
    optimizer   "adamw" or "sgd"
    rate        the learning rate: a number, or a function of the number of steps that were done
    params      names of the params that are trained; all of a float type by default
    lora        a rank: train low-rank adapters beside the products, and not the model
    accumulate  calls of step that make one step, whose gradients are averaged
    dims        extents of named dimensions; a batch has as many rows in every step
    options     momentum, beta1, beta2, epsilon, weight_decay, clip

    >>> import numpy
    >>> graph = Graph()
    >>> x = graph.input("x", "f32", ["n", 2])
    >>> graph.output("y", x @ graph.param("w", "f32", [2, 1]))
    >>> trainer = Trainer(graph, loss="mse", rate=0.1, dims={"n": 8}, weight_decay=0.0, threads=1)
    >>> points = numpy.random.default_rng(1).normal(size=(8, 2)).astype(numpy.float32)
    >>> for step in range(200):
    ...     loss = trainer.step({"x": points}, points @ numpy.float32([[1], [-2]]))
    >>> bool(loss < 1e-3)
    True
    """

    def __init__(
        self,
        model: Union[PathLike, Graph],
        *,
        loss: Loss = "cross_entropy",
        output: Optional[str] = None,
        optimizer: str = "adamw",
        rate: Union[float, Callable[[int], float]] = 0.001,
        params: Optional[Sequence[str]] = None,
        lora: Optional[int] = None,
        lora_alpha: Optional[float] = None,
        accumulate: int = 1,
        dims: Optional[Mapping[str, int]] = None,
        device: Optional[str] = None,
        threads: int = 0,
        weights: Optional[PathLike] = None,
        **options: float,
    ) -> None:
        self.path = None if isinstance(model, Graph) else os.fspath(model)
        self.model = model if isinstance(model, Graph) else load(model, weights)
        self.rate = rate
        if self.path is not None and lora is None:
            self.model.thaw()
        base = self.model if lora is None else self.model.lora(lora, lora_alpha)
        own = {param.name for param in self.model.params}
        adapters = [param.name for param in base.params if param.name not in own]
        self._has_adapters = bool(adapters)
        self._params = [param.name for param in base.params]
        self.graph = base.bind(dims or {})
        trained = self._choose(params, adapters)
        self._add_loss(loss, output)
        self.graph.train(self.graph.outputs["train.loss"], optimizer, trained, accumulate=accumulate, **options)
        self.session = self.graph.session(device=device, threads=threads)
        self._states = set(self.session.state_names())

    def _choose(self, params: Optional[Sequence[str]], adapters: "list[str]") -> "Optional[list[Value]]":
        if params is None and not adapters:
            return None
        found = []
        for name in list(params or []) + adapters:
            value = self.graph.find(name)
            if value is None:
                raise _berth.InvalidArgument(f"the model has no param '{name}'")
            found.append(value)
        return found

    def _add_loss(self, loss: Loss, output: Optional[str]) -> None:
        if isinstance(loss, str) and loss not in ("cross_entropy", "mse"):
            raise _berth.InvalidArgument(f"the losses are 'cross_entropy', 'mse' and functions, not '{loss}'")
        is_classes = loss == "cross_entropy"
        value = _output_of(self.graph, output, is_classes)
        shape = value.shape[:-1] if is_classes else value.shape
        labels = self.graph.input("train.labels", "i64" if is_classes else value.type, shape)
        make = loss if callable(loss) else cross_entropy if is_classes else mean_squared_error
        self.graph.output("train.loss", make(value, labels))

    @property
    def steps(self) -> int:
        """Steps that were done."""
        return int(self.session.state("train.step"))

    @property
    def plan(self) -> Plan:
        """Where everything lies while it learns."""
        return self.session.plan

    def step(self, feeds: Mapping[str, Any], labels: Any) -> float:
        """One batch: its loss before the weights are updated."""
        rate = self.rate(self.steps) if callable(self.rate) else self.rate
        given = dict(feeds)
        given["train.labels"] = labels
        given["learning_rate"] = rate
        [loss] = self.session.run(["train.loss"], given)
        return float(loss)

    def set_weights(self, tensors: Mapping[str, Any]) -> None:
        """Weights of params by name; copies in f32 of those that have 16 bits follow."""
        for name, array in tensors.items():
            if name in self._states:
                self.session.set_state(name, array)
                if name + ".master" in self._states:
                    self.session.set_state(name + ".master", _as_f32(self.session.state(name), self._type(name)))
            else:
                self.session.set_param(name, array)

    def _type(self, name: str) -> str:
        value = self.graph.find(name)
        assert value is not None
        return value.type

    def _types(self, tensors: Mapping[str, Any]) -> "dict[str, str]":
        """Of tensors that are shown as bits."""
        return {name: "bf16" for name in tensors if self._type(name) == "bf16"}

    def weights(self) -> "dict[str, Any]":
        """The params that are trained, as they are now: with `lora` the adapters."""
        return {name: self.session.state(name) for name in self._params if name in self._states}

    def save(self, path: PathLike) -> None:
        """Writes the trained params: safetensors, or the ONNX model with them in it where the path ends in .onnx."""
        weights = self.weights()
        if os.fspath(path).endswith(".onnx"):
            if self._has_adapters:
                raise _berth.InvalidArgument("adapters are written as safetensors; `berth train --lora` merges them")
            if self.path is None:
                raise _berth.InvalidArgument("an ONNX model is only written of one that was read from a file")
            _berth.save_model(self.path, path, weights, self._types(weights))
        else:
            _berth.save_weights(path, weights, self._types(weights))

    def save_checkpoint(self, path: PathLike) -> None:
        """Writes all that the training is, to go on from. The file is whole at every moment."""
        states = {name: self.session.state(name) for name in self.session.state_names()}
        _berth.save_weights(path, states, self._types(states))

    def load_checkpoint(self, path: PathLike) -> None:
        """Goes on from a checkpoint: the next step is what it would have been. Nothing changes if it is of another
        training."""
        tensors = _berth.load_weights(path)
        names = self.session.state_names()
        for name in names:
            if name not in tensors:
                raise _berth.InvalidArgument(f"{os.fspath(path)} has no '{name}': it is of another training")
        before = self.session.save_states()
        try:
            for name in names:
                self.session.set_state(name, tensors[name])
        except _berth.Error:
            self.session.restore_states(before)
            raise


def _as_f32(array: Any, type: str) -> Any:
    graph = Graph()
    given = graph.constant(array, type)
    graph.output("wide", graph.one("cast", given, to="f32"))
    return graph.session(threads=1).run(None, {})[0]
