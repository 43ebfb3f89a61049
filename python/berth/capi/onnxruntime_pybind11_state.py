"""The names of ONNX Runtime's errors, for ``except`` lines: each is the class of berth's own that is raised instead."""

from .._berth import Error, FileError, InvalidArgument, MalformedFile, Unsupported

EngineError = EPFail = Fail = ModelLoaded = NoModel = RuntimeException = Error
InvalidGraph = InvalidProtobuf = MalformedFile
NoSuchFile = FileError
NotImplemented = Unsupported

__all__ = [
    "EPFail",
    "EngineError",
    "Fail",
    "InvalidArgument",
    "InvalidGraph",
    "InvalidProtobuf",
    "ModelLoaded",
    "NoModel",
    "NoSuchFile",
    "NotImplemented",
    "RuntimeException",
]
