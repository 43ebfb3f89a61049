"""What scripts for ONNX Runtime name beside a session: options, providers, OrtValue, what a model says of itself."""

from __future__ import annotations

import enum
import os
import threading
import warnings
from typing import TYPE_CHECKING, Any, Callable, Iterator, Mapping, Optional, Sequence, Tuple, Union

from . import _berth
from ._plan import PathLike

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
#: onnx.TensorProto.DataType of what numpy has; bfloat16 is handed over as its bits.
_ONNX_NUMBERS = {
    1: "float32", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64", 9: "bool", 10: "float16",
    11: "float64", 12: "uint32", 13: "uint64", 16: "uint16",
}  # fmt: skip
_PROVIDERS = {
    "CUDAExecutionProvider": "cuda",
    "VulkanExecutionProvider": "vulkan",
    "WebGpuExecutionProvider": "webgpu",
    "CPUExecutionProvider": "cpu",
}
#: Names that scripts pass for builds of ONNX Runtime that have them.
_OTHER_PROVIDERS = {
    f"{name}ExecutionProvider"
    for name in (
        "ACL", "ArmNN", "Azure", "CANN", "CoreML", "Dml", "Dnnl", "JS", "MIGraphX", "Nnapi", "NvTensorRTRTX", "OpenVINO",
        "QNN", "ROCM", "Rknpu", "SNPE", "Tensorrt", "Tvm", "VSINPU", "VitisAI", "WebNN", "Xnnpack",
    )
}  # fmt: skip


class NodeArg:
    """An input or output of a model: name, type ("tensor(float)") and shape. Named dimensions are str; None is one that
    follows from others."""

    def __init__(self, name: str, type: str, shape: Tuple[Union[int, str], ...]) -> None:
        self.name = name
        self.type = _ORT_TYPES.get(type, f"tensor({type})")
        self.shape: "list[Union[int, str, None]]" = [None if dim == "?" else dim for dim in shape]

    def __repr__(self) -> str:
        return f"NodeArg(name='{self.name}', type='{self.type}', shape={self.shape})"


class GraphOptimizationLevel(enum.IntEnum):
    """For scripts that set it; berth always does all it can."""

    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(enum.IntEnum):
    """For scripts that set it; berth runs one step after another, and all threads share it."""

    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class ExecutionOrder(enum.IntEnum):
    """For scripts that set it; a plan has the order that takes the least memory."""

    DEFAULT = 0
    PRIORITY_BASED = 1


class SessionOptions:
    """What scripts set for ONNX Runtime.

    intra_op_num_threads is the number of threads, and add_free_dimension_override_by_name gives extents of named
    dimensions. What a session would be expected to write (enable_profiling, optimized_model_filepath) draws a warning
    when it is made; all else has no effect.
    """

    def __init__(self) -> None:
        self.intra_op_num_threads = 0
        self.inter_op_num_threads = 0
        self.execution_mode = ExecutionMode.ORT_SEQUENTIAL
        self.execution_order = ExecutionOrder.DEFAULT
        self.graph_optimization_level = GraphOptimizationLevel.ORT_ENABLE_ALL
        self.optimized_model_filepath = ""
        self.log_severity_level = 2
        self.log_verbosity_level = 0
        self.logid = ""
        self.enable_profiling = False
        self.profile_file_prefix = "onnxruntime_profile_"
        self.enable_mem_pattern = True
        self.enable_mem_reuse = True
        self.enable_cpu_mem_arena = True
        self.use_deterministic_compute = False
        self.use_per_session_threads = True
        self._entries: "dict[str, str]" = {}
        self._dims: "dict[str, int]" = {}

    def add_session_config_entry(self, key: str, value: str) -> None:
        """Kept, and of no effect."""
        self._entries[key] = value

    def get_session_config_entry(self, key: str) -> str:
        """What was kept."""
        if key not in self._entries:
            raise _berth.InvalidArgument(f"these options have no entry '{key}'")
        return self._entries[key]

    def has_session_config_entry(self, key: str) -> bool:
        """Whether there is one."""
        return key in self._entries

    def add_free_dimension_override_by_name(self, name: str, extent: int) -> None:
        """The extent of a named dimension, in models that have one of that name."""
        self._dims[name] = int(extent)

    def add_free_dimension_override_by_denotation(self, denotation: str, extent: int) -> None:
        """Not supported."""
        raise _berth.Unsupported(
            "berth does not read the denotations of dimensions: call add_free_dimension_override_by_name, "
            "or give InferenceSession(dims={...})"
        )

    def register_custom_ops_library(self, path: PathLike) -> None:
        """Not supported: such a library speaks to ONNX Runtime alone."""
        raise _berth.Unsupported(f"'{os.fspath(path)}' has ops for ONNX Runtime; write yours with berth.op, or in C")

    def add_initializer(self, name: str, value: "OrtValue") -> None:
        """Not supported."""
        raise _berth.Unsupported("a session takes its weights from the model; session.set_param writes others")

    def add_external_initializers(self, names: Sequence[str], values: "Sequence[OrtValue]") -> None:
        """Not supported."""
        raise _berth.Unsupported("a session takes its weights from the model; session.set_param writes others")

    def _warn(self) -> None:
        if self.enable_profiling:
            warnings.warn("berth writes no profile: `berth bench MODEL --profile` has the time of every step", stacklevel=3)
        if self.optimized_model_filepath:
            warnings.warn(f"berth writes no optimised model: '{self.optimized_model_filepath}' is not made", stacklevel=3)


class RunOptions:
    """What scripts pass to a run. ``terminate = True``, from any thread, stops the runs that were given these options,
    and every later one, with Cancelled; the rest has no effect."""

    def __init__(self) -> None:
        self.log_severity_level = 2
        self.log_verbosity_level = 0
        self.logid = ""
        self.only_execute_path_to_fetches = False
        self.training_mode = False
        self._entries: "dict[str, str]" = {}
        self._terminate = False
        self._lock = threading.Lock()
        self._running: "list[_berth.SessionHandle]" = []

    @property
    def terminate(self) -> bool:
        """Whether runs with these options stop."""
        return self._terminate

    @terminate.setter
    def terminate(self, wanted: bool) -> None:
        with self._lock:
            self._terminate = bool(wanted)
            for session in self._running if wanted else ():
                session.cancel()

    def add_run_config_entry(self, key: str, value: str) -> None:
        """Kept, and of no effect."""
        self._entries[key] = value

    def get_run_config_entry(self, key: str) -> str:
        """What was kept."""
        if key not in self._entries:
            raise _berth.InvalidArgument(f"these options have no entry '{key}'")
        return self._entries[key]

    def _call(self, session: "_berth.SessionHandle", work: "Callable[[], Any]") -> Any:
        """What work returns, which runs the session."""
        with self._lock:
            if self._terminate:
                raise _berth.Cancelled("the run was not begun: its options say terminate")
            self._running.append(session)
        try:
            return work()
        finally:
            with self._lock:
                self._running.remove(session)
                if self._terminate:
                    session.clear_cancel()  # the run may have been over when it was asked to stop

    def _run(self, session: "_berth.SessionHandle", names: Optional[Sequence[str]], feeds: Any) -> Any:
        """What session.run(names, feeds, self) does."""
        return self._call(session, lambda: session.run(names, feeds))


# ---- Providers ----


def get_available_providers() -> "list[str]":
    """What ONNX Runtime calls the devices that are there."""
    there = {device["name"] for device in _berth.devices() if device["available"]}
    return [name for name, device in _PROVIDERS.items() if device in there]


def get_all_providers() -> "list[str]":
    """What ONNX Runtime calls the devices that berth knows."""
    return list(_PROVIDERS)


def get_device() -> str:
    """"GPU" where CUDA is available, otherwise "CPU"."""
    return "GPU" if "CUDAExecutionProvider" in get_available_providers() else "CPU"


def device_of(
    providers: "Sequence[Union[str, Tuple[str, Any]]]", options: "Optional[Sequence[Mapping[str, Any]]]" = None
) -> str:
    """The device of the first provider that is there. As in ONNX Runtime, one that is not there draws a warning, and
    the CPU takes over; a name that nobody has is an error."""
    if isinstance(providers, str):
        raise TypeError("providers is a list of names, or of names with options")
    names = [provider if isinstance(provider, str) else provider[0] for provider in providers]
    given = [{} if isinstance(provider, str) else provider[1] for provider in providers]
    given = [{**own, **more} for own, more in zip(given, list(options or []) + [{}] * len(given))]
    available = get_available_providers() if names != ["CPUExecutionProvider"] else names
    for name, own in zip(names, given):
        if name in available:
            index = str(own.get("device_id", 0))
            return _PROVIDERS[name] if index == "0" else f"{_PROVIDERS[name]}:{index}"
        if name not in _PROVIDERS and name not in _OTHER_PROVIDERS:
            raise _berth.InvalidArgument(f"there is no provider '{name}'; available are {', '.join(available)}")
        warnings.warn(f"the provider '{name}' is not available; there is {', '.join(available)}", stacklevel=3)
    return "cpu"


def provider_of(device: Optional[str]) -> str:
    """What ONNX Runtime calls a device."""
    kind = (device or "cpu").split(":")[0]
    return next((name for name, of in _PROVIDERS.items() if of == kind), kind)


# ---- What a model says of itself ----


class ModelMetadata:
    """What a model says of itself: graph_name, graph_description, producer_name, description, domain, version, and
    custom_metadata_map, the pairs of names and texts that exporters leave in it."""

    def __init__(self, graph_name: str) -> None:
        self.graph_name = graph_name
        self.graph_description = ""
        self.producer_name = ""
        self.description = ""
        self.domain = ""
        self.version = 0
        self.custom_metadata_map: "dict[str, str]" = {}


def _varint(data: memoryview, at: int) -> Tuple[int, int]:
    value = shift = 0
    while at < len(data):
        value |= (data[at] & 127) << shift
        at += 1
        if data[at - 1] < 128:
            return value, at
        shift += 7
    raise ValueError("cut off")


def _fields(data: memoryview) -> "Iterator[Tuple[int, Union[int, memoryview]]]":
    """The fields of a protobuf message: (number, what it holds). Nothing is copied, and no field is looked into."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        wire = tag & 7
        if wire == 0:
            value, at = _varint(data, at)
            yield tag >> 3, value
            continue
        size = {1: 8, 5: 4}.get(wire)
        if size is None:
            if wire != 2:
                raise ValueError("not a message")
            size, at = _varint(data, at)
        if size > len(data) - at:
            raise ValueError("cut off")
        yield tag >> 3, data[at : at + size]
        at += size


def _text(value: Union[int, memoryview]) -> str:
    return bytes(value).decode("utf-8", "replace") if isinstance(value, memoryview) else ""


def _read_metadata(data: memoryview, out: ModelMetadata) -> None:
    for number, value in _fields(data):
        if number == 2:
            out.producer_name = _text(value)
        elif number == 4:
            out.domain = _text(value)
        elif number == 5 and isinstance(value, int):
            out.version = value
        elif number == 6:
            out.description = _text(value)
        elif number == 7 and isinstance(value, memoryview):
            out.graph_description = next((_text(held) for of, held in _fields(value) if of == 10), "")
        elif number == 14 and isinstance(value, memoryview):
            pair = {of: _text(held) for of, held in _fields(value)}
            out.custom_metadata_map[pair.get(1, "")] = pair.get(2, "")


def metadata_of(model: Any, graph_name: str) -> ModelMetadata:
    """That of an ONNX file or its bytes; models in other formats have a name alone."""
    import mmap

    out = ModelMetadata(graph_name)
    try:
        if isinstance(model, (bytes, bytearray, memoryview)):
            _read_metadata(memoryview(model).cast("B"), out)
        elif isinstance(model, (str, os.PathLike)):
            with open(model, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as pages:
                with memoryview(pages) as data:
                    _read_metadata(data, out)
    except (OSError, ValueError):  # not a protobuf, or gone by now
        return ModelMetadata(graph_name)
    return out


# ---- Values ----


def dtype_of(element_type: Any) -> Any:
    """numpy's dtype of what ONNX Runtime takes for a type: a dtype, or a number of onnx.TensorProto.DataType."""
    import numpy

    if type(element_type) is int:  # not bool, which is a type of numpy
        if element_type not in _ONNX_NUMBERS:
            raise _berth.Unsupported(f"elements of ONNX's type {element_type} cannot be handed over")
        return numpy.dtype(_ONNX_NUMBERS[element_type])
    return numpy.dtype(element_type)


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

        return OrtValue.ortvalue_from_numpy(numpy.zeros(tuple(shape), dtype_of(element_type)), device_type, device_id)

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

    def element_type(self) -> int:
        """The same as a number of onnx.TensorProto.DataType."""
        name = str(self.numpy().dtype)
        return next(number for number, of in _ONNX_NUMBERS.items() if of == name)

    def data_ptr(self) -> int:
        """Where its elements lie, on its device."""
        return int(self._array.address if self._to_host is not None else self.numpy().ctypes.data)

    def device_name(self) -> str:
        """"cpu" or "cuda"."""
        return "cpu" if self._to_host is None else "cuda"

    def is_tensor(self) -> bool:
        """Always."""
        return True

    def is_sparse_tensor(self) -> bool:
        """Never."""
        return False

    def is_tensor_sequence(self) -> bool:
        """Never."""
        return False

    def has_value(self) -> bool:
        """Always."""
        return True

    def update_inplace(self, array: Any) -> None:
        """Writes other elements."""
        if self._to_host is not None:
            raise _berth.Unsupported("only a run writes outputs")
        self.numpy()[...] = array

    def shown(self) -> Any:
        """What a session is given: the array, or the tensor on a GPU."""
        return self.numpy() if self._to_host is None else self._array

    def __dlpack__(self, **options: Any) -> Any:
        return self.shown().__dlpack__(**options)

    def __dlpack_device__(self) -> Tuple[int, int]:
        kind, index = self.shown().__dlpack_device__()
        return int(kind), int(index)

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> Any:
        array = self.numpy()
        return array if dtype is None else array.astype(dtype)

    def __repr__(self) -> str:
        return f"<berth.OrtValue {self.data_type()} {self.shape()} on {self.device_name()}>"


# ---- What scripts call once, at their beginning ----


def set_default_logger_severity(severity: int) -> None:
    """Of no effect: berth prints nothing."""


def set_default_logger_verbosity(verbosity: int) -> None:
    """Of no effect: berth prints nothing."""


def set_seed(seed: int) -> None:
    """Of no effect: ops that draw random numbers have their seeds from the model."""


def disable_telemetry_events() -> None:
    """Of no effect: berth has no telemetry."""


def enable_telemetry_events() -> None:
    """Of no effect: berth has no telemetry."""


def get_version_string() -> str:
    """berth's version."""
    return _berth.__version__


def get_build_info() -> str:
    """berth and its version."""
    return f"berth {_berth.__version__}"
