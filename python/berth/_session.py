"""Sessions, as ONNX Runtime has them, and what berth has on top."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Callable, Iterable, Mapping, Optional, Sequence, Tuple, Union

from . import _berth
from ._graph import Graph, load
from ._plan import PathLike, Plan, bytes_of

if TYPE_CHECKING:
    import numpy

_ORT_TYPES = {
    "f32": "tensor(float)",
    "f64": "tensor(double)",
    "f16": "tensor(float16)",
    "bf16": "tensor(bfloat16)",
    "i8": "tensor(int8)",
    "u8": "tensor(uint8)",
    "i16": "tensor(int16)",
    "u16": "tensor(uint16)",
    "i32": "tensor(int32)",
    "u32": "tensor(uint32)",
    "i64": "tensor(int64)",
    "u64": "tensor(uint64)",
    "bool": "tensor(bool)",
}
_PROVIDERS = {
    "CUDAExecutionProvider": "cuda",
    "VulkanExecutionProvider": "vulkan",
    "WebGpuExecutionProvider": "webgpu",
    "CPUExecutionProvider": "cpu",
}


class NodeArg:
    """An input or output of a model: name, type ("tensor(float)") and shape. Named dimensions are str; None is one that
    follows from others."""

    def __init__(self, name: str, type: str, shape: Tuple[Union[int, str], ...]) -> None:
        self.name = name
        self.type = _ORT_TYPES.get(type, f"tensor({type})")
        self.shape: "list[Union[int, str, None]]" = [None if dim == "?" else dim for dim in shape]

    def __repr__(self) -> str:
        return f"NodeArg(name='{self.name}', type='{self.type}', shape={self.shape})"


class GraphOptimizationLevel:
    """For scripts that set it; berth always does all it can."""

    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_ALL = 99


class SessionOptions:
    """What scripts set for ONNX Runtime. intra_op_num_threads is the number of threads; the rest has no effect here."""

    def __init__(self) -> None:
        self.intra_op_num_threads = 0
        self.inter_op_num_threads = 0
        self.graph_optimization_level = GraphOptimizationLevel.ORT_ENABLE_ALL
        self.log_severity_level = 2
        self.enable_profiling = False
        self.enable_mem_pattern = True
        self.enable_cpu_mem_arena = True
        self._entries: "dict[str, str]" = {}

    def add_session_config_entry(self, key: str, value: str) -> None:
        """Kept, and of no effect."""
        self._entries[key] = value

    def get_session_config_entry(self, key: str) -> str:
        """What was kept."""
        return self._entries[key]


class RunOptions:
    """For scripts that pass one; of no effect."""

    def __init__(self) -> None:
        self.log_severity_level = 2
        self.logid = ""


class ModelMetadata:
    """What a session says of its model."""

    def __init__(self, graph_name: str) -> None:
        self.graph_name = graph_name
        self.producer_name = ""
        self.description = ""
        self.version = 0
        self.custom_metadata_map: "dict[str, str]" = {}


def get_available_providers() -> "list[str]":
    """What ONNX Runtime calls the devices that are there."""
    there = {device["name"] for device in _berth.devices() if device["available"]}
    return [name for name, device in _PROVIDERS.items() if device in there]


def get_device() -> str:
    """"GPU" where CUDA is available, otherwise "CPU"."""
    return "GPU" if "CUDAExecutionProvider" in get_available_providers() else "CPU"


def _device_of(providers: "Sequence[Union[str, Tuple[str, Any]]]") -> str:
    names = [provider if isinstance(provider, str) else provider[0] for provider in providers]
    available = get_available_providers() if names != ["CPUExecutionProvider"] else names
    for name in names:
        if name in available:
            return _PROVIDERS[name]
    raise _berth.InvalidArgument(f"none of the providers {names} is available; there are {get_available_providers()}")


class OrtValue:
    """An array with the methods that ONNX Runtime's OrtValue has: host memory, or an output on a GPU of CUDA."""

    def __init__(self, array: Any, to_host: "Optional[Callable[[], Any]]" = None) -> None:
        self._array = array
        self._to_host = to_host

    @staticmethod
    def ortvalue_from_numpy(array: "numpy.ndarray[Any, Any]", device_type: str = "cpu", device_id: int = 0) -> "OrtValue":
        """Shows the array; it is not copied."""
        if device_type != "cpu":
            raise _berth.Unsupported(
                "berth has no memory on a GPU but the arena: hand over host memory (device_type='cpu'), "
                "or a tensor of PyTorch, CuPy or JAX that is there"
            )
        return OrtValue(array)

    @staticmethod
    def ortvalue_from_shape_and_type(
        shape: Sequence[int], element_type: Any, device_type: str = "cpu", device_id: int = 0
    ) -> "OrtValue":
        """Zeros."""
        import numpy

        return OrtValue.ortvalue_from_numpy(numpy.zeros(tuple(shape), element_type), device_type, device_id)

    def numpy(self) -> "numpy.ndarray[Any, Any]":
        """The array; a copy of what is on a GPU."""
        import numpy

        return numpy.asarray(self._array if self._to_host is None else self._to_host())

    def shape(self) -> "list[int]":
        """Its extents."""
        return list(self._array.shape)

    def data_type(self) -> str:
        """As in NodeArg.type."""
        names = {"float32": "float", "float64": "double"}
        name = str(self.numpy().dtype)
        return f"tensor({names.get(name, name)})"

    def data_ptr(self) -> int:
        """Where its elements lie, on its device."""
        return int(self._array.address if self._to_host is not None else self.numpy().ctypes.data)

    def device_name(self) -> str:
        """"cpu" or "cuda"."""
        return "cpu" if self._to_host is None else "cuda"

    def is_tensor(self) -> bool:
        """Always."""
        return True

    def has_value(self) -> bool:
        """Always."""
        return True

    def update_inplace(self, array: Any) -> None:
        """Writes other elements."""
        if self._to_host is not None:
            raise _berth.Unsupported("only a run writes outputs")
        self.numpy()[...] = array

    def _shown(self) -> Any:
        return self.numpy() if self._to_host is None else self._array

    def __dlpack__(self, **options: Any) -> Any:
        return self._shown().__dlpack__(**options)

    def __dlpack_device__(self) -> Tuple[int, int]:
        kind, index = self._shown().__dlpack_device__()
        return int(kind), int(index)

    def __array__(self, dtype: Any = None) -> Any:
        array = self.numpy()
        return array if dtype is None else array.astype(dtype)


def _at_address(device_type: str, device_id: int, address: int, shape: Sequence[int], element_type: Any) -> Any:
    import numpy

    if device_type not in ("cpu", "cuda"):
        raise _berth.Unsupported(f"memory of '{device_type}' cannot be handed over: it is 'cpu' or 'cuda'")
    tensor = _berth.tensor_at(address, device_type == "cuda", device_id, numpy.dtype(element_type), tuple(shape))
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
        self._inputs[name] = value._shown()

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
        self._outputs[name] = value._shown()

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

    def run(self) -> None:
        """What ``session.run_with_iobinding`` does."""
        self._results = []  # views of the last run would hold the session in place
        on_host = [name for name, place in self._outputs.items() if place is None]
        if on_host or not self._outputs:
            arrays = self._session.run(on_host, self._inputs)
        else:
            arrays = []
            self._session.feed(self._inputs)
            self._session.execute()
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
        return OrtValue(shown, lambda: self._session.read(name))

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

    InferenceSession(model, sess_options=None, providers=None, provider_options=None, *, dims=None, device=None,
                     budget=None, threads=0, weights=None, **options)

    model      the path of an ONNX file or of a graph in berth's text form, the bytes of one, or a Graph
    dims       extents of named dimensions; those that are missing follow from what the first run is given, and other
               shapes are bound when they come
    device     "cpu", "cuda", "vulkan", "webgpu", "interp"; see devices()
    budget     an arena of at most so many bytes ("64M"); DoesNotFit where that cannot be had
    threads    0: one per core
    weights    a safetensors file with the params
    options    max_bindings, effort, gpu_profile, reference, checked, bf16_weights, f16_weights, fallback, inputs_die
    sess_options, providers, provider_options  as in ONNX Runtime: threads and device

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
        model: Union[PathLike, bytes, Graph],
        sess_options: Optional[SessionOptions] = None,
        providers: "Optional[Sequence[Union[str, Tuple[str, Any]]]]" = None,
        provider_options: "Optional[Sequence[Mapping[str, Any]]]" = None,
        *,
        dims: "Optional[dict[str, int]]" = None,
        device: Optional[str] = None,
        budget: Union[int, str, None] = None,
        threads: int = 0,
        weights: Optional[PathLike] = None,
        **options: Any,
    ) -> None:
        if device is None and providers:
            device = _device_of(providers)
        if threads == 0 and sess_options is not None:
            threads = sess_options.intra_op_num_threads
        self._model = model
        self._weights = weights
        self._device = device
        self._settings: "dict[str, Any]" = {"device": device, "budget": bytes_of(budget), "threads": threads, **options}
        self._graph = model if isinstance(model, Graph) else load(model, weights)
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
        return self._inner.run(output_names, feeds)

    # ---- As in ONNX Runtime ----

    def get_inputs(self) -> "list[NodeArg]":
        """The inputs, in order."""
        return [NodeArg(value.name, value.type, value.shape) for value in self._graph.inputs]

    def get_outputs(self) -> "list[NodeArg]":
        """The outputs, in order."""
        return [NodeArg(name, value.type, value.shape) for name, value in self._graph.outputs.items()]

    def get_modelmeta(self) -> ModelMetadata:
        """What the model is called."""
        return ModelMetadata(self._graph.name)

    def get_providers(self) -> "list[str]":
        """The device, as ONNX Runtime would call it."""
        device = self._device or "cpu"
        return [name for name, of in _PROVIDERS.items() if of == device] or [device]

    def io_binding(self) -> IOBinding:
        """Inputs and outputs that are named once and used by many runs."""
        return IOBinding(self)

    def run_with_iobinding(self, binding: IOBinding, run_options: Optional[RunOptions] = None) -> None:
        """Runs with the inputs and outputs of a binding."""
        binding.run()

    def run_with_ort_values(
        self, output_names: Optional[Sequence[str]], input_feed: "Mapping[str, OrtValue]", run_options: Any = None
    ) -> "list[OrtValue]":
        """The same as run, with OrtValues in and out."""
        feeds = {name: value.numpy() for name, value in input_feed.items()}
        return [OrtValue(array) for array in self.run(output_names, feeds)]

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
