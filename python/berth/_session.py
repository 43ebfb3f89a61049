"""Sessions, as ONNX Runtime has them, and what berth has on top."""

from __future__ import annotations

import threading
from typing import Any, Callable, Iterable, Mapping, Optional, Sequence, Tuple, Union

from . import _berth
from ._graph import Graph, load
from ._ort import (
    ModelMetadata,
    NodeArg,
    OrtValue,
    RunOptions,
    SessionOptions,
    device_of,
    dtype_of,
    metadata_of,
    provider_of,
)
from ._plan import PathLike, Plan, bytes_of


def _at_address(device_type: str, device_id: int, address: int, shape: Sequence[int], element_type: Any) -> Any:
    if device_type not in ("cpu", "cuda"):
        raise _berth.Unsupported(f"memory of '{device_type}' cannot be handed over: it is 'cpu' or 'cuda'")
    tensor = _berth.tensor_at(address, device_type == "cuda", device_id, dtype_of(element_type), tuple(shape))
    return tensor if device_type == "cuda" else tensor.numpy()


_ON_DEVICE = object()  # an output that stays where it is


class IOBinding:
    """Inputs and outputs that are named once and used by many runs, as in ONNX Runtime.

    An output that is bound to memory (a pointer, an OrtValue) is written there; one that is bound to "cuda" without a
    pointer stays on the GPU, and ``get_outputs`` shows it there. To have no copies at all, write into
    ``session.view(input)``, call ``session.execute()`` and read ``session.view(output)``.
    """

    def __init__(self, session: "InferenceSession") -> None:
        self._session = session
        self._inputs: "dict[str, Any]" = {}
        self._outputs: "dict[str, Any]" = {}
        self._results: "list[OrtValue]" = []

    def bind_cpu_input(self, name: str, array: Any) -> None:
        """The array is read by every run; it is not copied before."""
        self._inputs[name] = array

    def bind_input(
        self, name: str, device_type: str, device_id: int, element_type: Any, shape: Sequence[int], buffer_ptr: int
    ) -> None:
        """Memory at an address, which must stay valid."""
        self._inputs[name] = _at_address(device_type, device_id, buffer_ptr, shape, element_type)

    def bind_ortvalue_input(self, name: str, value: OrtValue) -> None:
        """The array of an OrtValue."""
        self._inputs[name] = value.shown()

    def bind_output(
        self,
        name: str,
        device_type: str = "cpu",
        device_id: int = 0,
        element_type: Any = None,
        shape: Optional[Sequence[int]] = None,
        buffer_ptr: Optional[int] = None,
    ) -> None:
        """An output that is wanted; with an address it is written there."""
        if buffer_ptr is not None:
            self._outputs[name] = _at_address(device_type, device_id, buffer_ptr, shape or (), element_type)
        elif device_type == "cpu":
            self._outputs[name] = None
        elif device_type == (self._session._device or "cpu").split(":")[0]:
            self._outputs[name] = _ON_DEVICE
        else:
            raise _berth.Unsupported(f"the session's outputs lie on '{self._session._device or 'cpu'}', not on '{device_type}'")

    def bind_ortvalue_output(self, name: str, value: OrtValue) -> None:
        """An output that is written into the array of an OrtValue."""
        self._outputs[name] = value.shown()

    def clear_binding_inputs(self) -> None:
        """Forgets the inputs."""
        self._inputs.clear()

    def clear_binding_outputs(self) -> None:
        """Forgets the outputs."""
        self._outputs.clear()
        self._results = []

    def synchronize_inputs(self) -> None:
        """Nothing to wait for."""

    def synchronize_outputs(self) -> None:
        """Nothing to wait for."""

    def run(self, run_options: Optional[RunOptions] = None) -> None:
        """What ``session.run_with_iobinding`` does."""
        self._results = []  # views of the last run would hold the session in place
        on_host = [name for name, place in self._outputs.items() if place is None]
        if on_host or not self._outputs:
            arrays = self._session.run(on_host, self._inputs, run_options)
        else:
            arrays = []
            self._session.feed(self._inputs)
            if run_options is None:
                self._session.execute()
            else:
                run_options._call(self._session, self._session.execute)
        copies = dict(zip(on_host or [arg.name for arg in self._session.get_outputs()], arrays))
        self._results = [self._result(name, copies) for name in self._outputs or copies]

    def _result(self, name: str, copies: "dict[str, Any]") -> OrtValue:
        place = self._outputs.get(name)
        if place is None:
            return OrtValue(copies[name])
        if place is not _ON_DEVICE:
            self._session.read_into(name, place)
        shown = self._session.view(name) if place is _ON_DEVICE else place
        if not isinstance(shown, _berth.Tensor) or shown.__dlpack_device__()[0] == 1:
            return OrtValue(shown)
        if place is _ON_DEVICE:
            return OrtValue(shown, lambda: self._session.read(name))
        changes = self._session.changes
        return OrtValue(shown, lambda: self._read(name, changes))

    def _read(self, name: str, changes: int) -> Any:
        """What was copied to a place on a GPU, while the arena still has it: nothing else brings it to the host."""
        if self._session.changes != changes:
            raise _berth.Unsupported(
                f"the session has run since it wrote '{name}' there: read that memory with the library that it is of"
            )
        return self._session.read(name)

    def get_outputs(self) -> "list[OrtValue]":
        """The outputs of the last run, in the order in which they were bound."""
        return list(self._results)

    def copy_outputs_to_cpu(self) -> "list[Any]":
        """The same as arrays."""
        return [value.numpy() for value in self._results]


def _must_fix(need: str, device: Optional[str], shape: "Tuple[Union[int, str], ...]", type: str) -> bool:
    """Whether a plan needs the elements of such an input: a GPU wants every extent, the CPU does with bounds."""
    if need == "need":
        return True
    return device not in (None, "cpu") and (len(shape) == 0 or (len(shape) == 1 and type in ("i64", "i32")))


class InferenceSession(_berth.SessionHandle):
    """A model with its one block of memory, ready to run.

    InferenceSession(path_or_bytes, sess_options=None, providers=None, provider_options=None, *, dims=None, device=None,
                     budget=None, threads=0, weights=None, **options)

    path_or_bytes  the path of an ONNX file or of a graph in berth's text form, the bytes of one, or a Graph
    dims       extents of named dimensions; those that are missing follow from what the first run is given, and other
               shapes are bound when they come
    device     "cpu", "cuda", "vulkan", "webgpu", "interp"; see devices()
    budget     an arena of at most so many bytes ("64M"); DoesNotFit where that cannot be had
    threads    0: one per core
    weights    a safetensors file with the params
    options    max_bindings, effort, gpu_profile, reference, checked, bf16_weights, f16_weights, fallback, inputs_die
    sess_options, providers, provider_options  as in ONNX Runtime: threads, extents and device. A provider that is not
               here draws a warning, and the CPU takes over
    disabled_optimizers, enable_fallback  for scripts that pass them: of no effect

    Threads may share a session: it runs one call at a time. A session is a context manager; ``close`` gives its memory
    back.

    >>> session = InferenceSession("examples/digits/digits.berth", threads=1)
    >>> [arg.name for arg in session.get_inputs()], [arg.name for arg in session.get_outputs()]
    (['image'], ['class', 'probabilities'])
    >>> import numpy
    >>> [classes] = session.run(["class"], {"image": numpy.zeros((2, 1, 8, 8), numpy.float32)})
    >>> classes.shape, session.dims
    ((2,), {'batch': 2})
    """

    def __init__(
        self,
        path_or_bytes: Union[PathLike, bytes, Graph],
        sess_options: Optional[SessionOptions] = None,
        providers: "Optional[Sequence[Union[str, Tuple[str, Any]]]]" = None,
        provider_options: "Optional[Sequence[Mapping[str, Any]]]" = None,
        *,
        dims: "Optional[dict[str, int]]" = None,
        device: Optional[str] = None,
        budget: Union[int, str, None] = None,
        threads: int = 0,
        weights: Optional[PathLike] = None,
        disabled_optimizers: Any = None,
        enable_fallback: Any = None,
        **options: Any,
    ) -> None:
        model = path_or_bytes
        if device is None and providers:
            device = device_of(providers, provider_options)
        self._options = sess_options if sess_options is not None else SessionOptions()
        self._options._warn()
        if threads == 0:
            threads = self._options.intra_op_num_threads
        self._model = model
        self._weights = weights
        self._device = device
        self._settings: "dict[str, Any]" = {"device": device, "budget": bytes_of(budget), "threads": threads, **options}
        self._graph = model if isinstance(model, Graph) else load(model, weights)
        overridden = {name: extent for name, extent in self._options._dims.items() if name in self._graph.dims}
        dims = {**overridden, **(dims or {})} if overridden else dims
        self._dims = dims
        needs = self._graph.needs()
        self._fixed = [
            value.name
            for value in self._graph.inputs
            if value.name in needs and _must_fix(needs[value.name], device, value.shape, value.type)
        ]
        self._inner: "Optional[InferenceSession]" = None
        self._inner_key: "list[Any]" = []
        if self._fixed:
            self.run = self._run_fixed  # type: ignore[assignment]
        else:
            super().__init__(self._graph.handle, dims, **self._settings)

    # ---- Inputs whose elements decide shapes ----

    def _run_fixed(
        self, output_names: Optional[Sequence[str]] = None, input_feed: Any = None, run_options: Any = None
    ) -> "list[Any]":
        """Such an input becomes a constant of a session of its own, which is kept until it has other elements."""
        import numpy

        feeds = dict(input_feed or {})
        for name in self._fixed:
            if name not in feeds:
                raise _berth.InvalidArgument(f"input '{name}' is missing from the feed, and shapes depend on it")
        given = [numpy.asarray(feeds.pop(name), order="C") for name in self._fixed]
        key = [(array.shape, str(array.dtype), array.tobytes()) for array in given]
        if self._inner is None or self._inner_key != key:
            if isinstance(self._model, Graph):
                raise _berth.InvalidArgument(
                    f"shapes depend on the elements of input '{self._fixed[0]}': fix it before making a session"
                )
            graph = load(self._model, self._weights)
            for name, array in zip(self._fixed, given):
                graph.fix(name, array)
            dims = {name: extent for name, extent in (self._dims or {}).items() if name in graph.dims}
            self._inner = InferenceSession(graph, dims=dims, **self._settings)
            self._inner_key = key
        return self._inner.run(output_names, feeds, run_options)

    # ---- As in ONNX Runtime ----

    def get_inputs(self) -> "list[NodeArg]":
        """The inputs, in order."""
        return [NodeArg(value.name, value.type, value.shape) for value in self._graph.inputs]

    def get_outputs(self) -> "list[NodeArg]":
        """The outputs, in order."""
        return [NodeArg(name, value.type, value.shape) for name, value in self._graph.outputs.items()]

    def get_modelmeta(self) -> ModelMetadata:
        """What the model says of itself."""
        return metadata_of(self._model, self._graph.name)

    def get_overridable_initializers(self) -> "list[NodeArg]":
        """None: weights come from the model, and ``set_param`` writes others."""
        return []

    def get_session_options(self) -> SessionOptions:
        """The options that it was made with."""
        return self._options

    def get_providers(self) -> "list[str]":
        """The device, as ONNX Runtime would call it."""
        return [provider_of(self._device)]

    def get_provider_options(self) -> "dict[str, dict[str, str]]":
        """The same, with the number of the device."""
        index = (self._device or "").partition(":")[2]
        return {provider_of(self._device): {"device_id": index} if index else {}}

    def set_providers(
        self,
        providers: "Optional[Sequence[Union[str, Tuple[str, Any]]]]" = None,
        provider_options: "Optional[Sequence[Mapping[str, Any]]]" = None,
    ) -> None:
        """Checks that the session is there already: it stays on the device that it was made for."""
        wanted = device_of(providers or ["CPUExecutionProvider"], provider_options)
        if wanted != (self._device or "cpu"):
            raise _berth.Unsupported(f"the session is on '{self._device or 'cpu'}' and stays there: make one with {providers=}")

    def disable_fallback(self) -> None:
        """Of no effect: what fails is an error."""

    def enable_fallback(self) -> None:
        """Of no effect: what fails is an error."""

    def end_profiling(self) -> str:
        """Not supported."""
        raise _berth.Unsupported("berth writes no profile: `berth bench MODEL --profile` has the time of every step")

    def io_binding(self) -> IOBinding:
        """Inputs and outputs that are named once and used by many runs."""
        return IOBinding(self)

    def run_with_iobinding(self, binding: IOBinding, run_options: Optional[RunOptions] = None) -> None:
        """Runs with the inputs and outputs of a binding."""
        binding.run(run_options)

    def run_with_ort_values(
        self, output_names: Optional[Sequence[str]], input_feed: "Mapping[str, OrtValue]", run_options: Any = None
    ) -> "list[OrtValue]":
        """The same as run, with OrtValues in and out."""
        feeds = {name: value.shown() for name, value in input_feed.items()}
        return [OrtValue(array) for array in self.run(output_names, feeds, run_options)]

    def run_async(
        self,
        output_names: Optional[Sequence[str]],
        input_feed: Any,
        callback: "Callable[[list[Any], Any, str], None]",
        user_data: Any = None,
        run_options: Optional[RunOptions] = None,
    ) -> None:
        """Runs in a thread of its own, which then calls callback(results, user_data, error): error is "" or what went
        wrong, and results are empty then."""

        def work() -> None:
            try:
                results, error = self.run(output_names, input_feed, run_options), ""
            except Exception as failure:
                results, error = [], str(failure)
            callback(results, user_data, error)

        threading.Thread(target=work, name="berth.run_async").start()

    # ---- berth's own ----

    @property
    def graph(self) -> Graph:
        """The graph that it was made of."""
        return self._graph

    @property
    def plan(self) -> Plan:
        """The plan of the current binding."""
        return Plan(_berth.PlanHandle.of(self._inner or self))

    def views(self, names: Optional[Iterable[str]] = None) -> "dict[str, _berth.Tensor]":
        """Views of these inputs and outputs, or of all."""
        if names is None:
            names = [arg.name for arg in self.get_inputs() + self.get_outputs()]
        return {name: self.view(name) for name in names}

    def __enter__(self) -> "InferenceSession":
        return self

    def __exit__(self, *unused: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self.closed else f"dims {self.dims}" if not self._fixed else f"fixed {self._fixed}"
        return f"<berth.InferenceSession of '{self._graph.name}' on {self._device or 'cpu'}, {state}>"
