"""berth plans one block of memory for a neural network, and runs it there.

A script that was written for ONNX Runtime works with another import::

    import berth as ort

    session = ort.InferenceSession("model.onnx")
    [logits] = session.run(None, {"image": image})

What berth has on top of that:

``InferenceSession(path, dims=, device=, budget=, threads=)``
    ``session.plan`` says where every byte is, before anything runs. ``session.view(name)`` is an input or output where it
    lies, for numpy and PyTorch alike, without a copy; ``session.execute()`` runs on what the inputs hold.

``load(path)`` and ``Graph``
    A model as a graph. Graphs are also built in Python: ``y = (x @ w + b).relu()``. ``graph.plan(...)`` plans without
    running, and ``graph.session(...)`` makes a session.

``Plan``
    ``plan.arena_size`` is exact. ``plan.report()`` is a table, ``plan.picture("plan.svg")`` a drawing; in a notebook a
    plan draws itself.

``pack(buffers)``
    The packer alone: buffers with a size and a lifetime in, offsets out.

``op``
    An op of your own, in Python.

``Trainer``
    A model that learns: ``trainer.step({"x": rows}, labels)``, weights and checkpoints as files.

``Generator`` and ``Embedder``
    Language models, and models that make vectors of texts, from GGUF files.

Every error is a subclass of ``berth.Error``, whose text is a full sentence. Threads may share everything: a session runs
one call at a time, and the GIL is given up meanwhile. numpy is used where it is installed; without it arrays are
``berth.Tensor``, which has the buffer protocol.
"""

from . import _berth

_berth.check_interpreter()

from ._berth import (  # noqa: E402
    Cancelled,
    DeviceLost,
    DeviceOutOfMemory,
    DoesNotFit,
    Embedder,
    Error,
    FileError,
    InternalError,
    InvalidArgument,
    MalformedFile,
    OutOfMemory,
    Tensor,
    Unsupported,
    __version__,
    devices,
    from_dlpack,
    load_weights,
    memory_in_use,
    op_names,
    save_model,
    save_weights,
)
from ._generate import Generator, Piece, generate
from ._graph import Graph, Node, Value, ValueInfo, load
from ._op import op
from ._ort import (
    ExecutionMode,
    ExecutionOrder,
    GraphOptimizationLevel,
    ModelMetadata,
    NodeArg,
    OrtValue,
    RunOptions,
    SessionOptions,
    disable_telemetry_events,
    enable_telemetry_events,
    get_all_providers,
    get_available_providers,
    get_build_info,
    get_device,
    get_version_string,
    set_default_logger_severity,
    set_default_logger_verbosity,
    set_seed,
)
from ._plan import Buffer, Packing, Plan, pack
from ._session import IOBinding, InferenceSession
from ._train import Trainer, cross_entropy, mean_squared_error
from . import capi  # noqa: E402  the names of ONNX Runtime's errors

__all__ = [
    "Buffer",
    "Cancelled",
    "DeviceLost",
    "DeviceOutOfMemory",
    "DoesNotFit",
    "Embedder",
    "Error",
    "ExecutionMode",
    "ExecutionOrder",
    "FileError",
    "Generator",
    "Graph",
    "GraphOptimizationLevel",
    "IOBinding",
    "InferenceSession",
    "InternalError",
    "InvalidArgument",
    "MalformedFile",
    "ModelMetadata",
    "Node",
    "NodeArg",
    "OrtValue",
    "OutOfMemory",
    "Packing",
    "Piece",
    "Plan",
    "RunOptions",
    "SessionOptions",
    "Tensor",
    "Trainer",
    "Unsupported",
    "Value",
    "ValueInfo",
    "__version__",
    "capi",
    "cross_entropy",
    "devices",
    "disable_telemetry_events",
    "enable_telemetry_events",
    "from_dlpack",
    "generate",
    "get_all_providers",
    "get_available_providers",
    "get_build_info",
    "get_device",
    "get_version_string",
    "load",
    "load_weights",
    "mean_squared_error",
    "memory_in_use",
    "op",
    "op_names",
    "pack",
    "save_model",
    "save_weights",
    "set_default_logger_severity",
    "set_default_logger_verbosity",
    "set_seed",
]
