"""What a call from Python costs on top of the same call from C: a model of one addition.

    bench_python.py BUILD    with bench/python/one_op, libberth.so and python/berth in it: `make bench-python`

The best of many short rounds counts, C and Python in turn, as others may be using the machine.
"""

import ctypes
import subprocess
import sys
import timeit

build = sys.argv[1]
sys.path.insert(0, f"{build}/python")

import numpy  # noqa: E402

import berth  # noqa: E402

N, CALLS, ROUNDS = 8, 2000, 40


def best(call):
    call()
    return min(timeit.repeat(call, number=CALLS, repeat=3)) / CALLS * 1e9


def c_times():
    said = subprocess.run([f"{build}/bench/python/one_op", str(N), str(CALLS), "5"], capture_output=True, text=True)
    return [float(ns) for ns in said.stdout.split()]


class Library:
    """The same by ctypes, with pointers made before: what a binding without an extension can reach at best."""

    def __init__(self):
        lib = self.lib = ctypes.CDLL(f"{build}/libberth.so")
        lib.berth_graph_parse.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_void_p]
        text = b'graph "one_op" { input %%x : f32[%d] %%y = add(%%x, %%x) output "y" = %%y }' % N
        context, graph, session = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        assert lib.berth_context_create(None, ctypes.byref(context), None) == 0
        assert lib.berth_graph_parse(context, text, len(text), ctypes.byref(graph), None) == 0
        assert lib.berth_session_create(graph, None, ctypes.byref(session), None) == 0
        self.session = session
        self.x, self.y = numpy.zeros(N, "f4"), numpy.zeros(N, "f4")
        self.size = ctypes.c_size_t(self.x.nbytes)
        self.at = ctypes.c_uint32(0)

    def execute(self):
        self.lib.berth_session_run(self.session, None)

    def run(self):
        lib, size, at = self.lib, self.size, self.at
        lib.berth_session_write_at(self.session, at, self.x.ctypes.data_as(ctypes.c_void_p), size, None)
        lib.berth_session_run(self.session, None)
        y = numpy.empty(N, "f4")
        lib.berth_session_read_at(self.session, at, y.ctypes.data_as(ctypes.c_void_p), size, None)
        return y


def ours():
    graph = berth.Graph()
    x = graph.input("x", "f32", [N])
    graph.output("y", x + x)
    session = graph.session(threads=1)
    feeds = {"x": numpy.zeros(N, "f4")}
    return session.execute, lambda: session.run(None, feeds)


def onnx_runtime():
    """The same in ONNX Runtime's Python, where both it and onnx are installed."""
    try:
        import onnx
        import onnxruntime
        from onnx import TensorProto, helper
    except ImportError:
        return None
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("Add", ["x", "x"], ["y"])], "one_op",
        [value("x", TensorProto.FLOAT, [N])], [value("y", TensorProto.FLOAT, [N])],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(onnx._serialize(model), options, providers=["CPUExecutionProvider"])
    feeds = {"x": numpy.zeros(N, "f4")}
    return lambda: session.run(None, feeds)


def main():
    library = Library()
    execute, run = ours()
    other = onnx_runtime()
    calls = {
        "Python: execute": execute,
        "Python: run": run,
        "ctypes: run alone": library.execute,
        "ctypes: write, run, read": library.run,
    }
    if other is not None:
        calls["ONNX Runtime: run"] = other
    c = [1e18, 1e18]
    times = dict.fromkeys(calls, 1e18)
    for _ in range(ROUNDS):
        c = [min(pair) for pair in zip(c, c_times())]
        for name, call in calls.items():
            times[name] = min(times[name], best(call))
    print("| call | ns | more than C, ns |\n|---|---|---|")
    print(f"| C: run alone | {c[0]:.0f} | |\n| C: write, run, read | {c[1]:.0f} | |")
    for name, ns in times.items():
        base = c[0] if "execute" in name or "alone" in name else c[1]
        print(f"| {name} | {ns:.0f} | {ns - base:.0f} |")
    if other is None:
        print("\nONNX Runtime's Python is not installed.")


main()
