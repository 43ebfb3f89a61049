"""Where scripts for ONNX Runtime look for its error classes: ``ort.capi.onnxruntime_pybind11_state``."""

from . import onnxruntime_pybind11_state as onnxruntime_pybind11_state
