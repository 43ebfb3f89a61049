"""Calls with arguments that make no sense, drawn at random but always the same: each returns or raises, and nothing else
happens to the interpreter. BERTH_TEST_SLOW draws many more, BERTH_TEST_SEED others."""

import array
import gc
import os
import random
import unittest

import numpy

import berth
from berth import _berth

NOT_CALLED = {"cancel", "register_op", "run_async"}  # what they do lasts, or happens in another thread
FUNCTIONS = ["pack", "pack_picture", "from_dlpack", "type_size", "op_names", "GraphHandle", "PlanHandle", "SessionHandle",
             "Embedder", "memory_in_use"]  # fmt: skip
KEYWORDS = ["dims", "threads", "device", "budget", "special", "kind", "name", "ctx", "input_feed", "output_names",
            "max_version", "capacity"]  # fmt: skip


class Evil:
    """Something of everything, and none of it right."""

    def __init__(self, draw):
        self.draw = draw
        self.pool = [None, 1, "x", b"abc"]

    def __index__(self):
        raise ValueError("index")

    def __len__(self):
        return 3

    def __getitem__(self, i):
        return self.draw.choice(self.pool)

    def __dlpack__(self, **options):
        return self.draw.choice([None, numpy.ones((2, 4), "f4").__dlpack__()])

    def __str__(self):
        raise RuntimeError("str")

    def __eq__(self, other):
        return self.draw.random() < 0.5

    def __hash__(self):
        return 5


def simple():
    f4 = numpy.ones((2, 4), "f4")
    return [
        None, 0, 1, -1, 2**31, 2**63, 2**80, 1.5, float("nan"), "", "x", "y", "z", "s", "n", "f32", "relu", "add", "text",
        "svg", "\ud800", "é" * 300, b"", b"abc", bytearray(b"xyz"), [], [1], [1, 2, 3], (1, 2), {}, {"n": 2}, {"n": 3},
        {"n": -1}, {"x": f4}, {"x": f4[:1]}, {"x": [[1, 2, 3, 4]]}, {"x": None}, {1: 2}, f4, numpy.ones(3), f4[:0],
        numpy.array("a"), numpy.array([object()]), array.array("f", [1, 2]), memoryview(b"abcd"), object(), int, ["y"],
        ["z", "y"], [("user", "a")], [(4, 0, 1)], [(4, 0, 1, 8, 0)], True, "cpu", "interp", 10**5,
    ]  # fmt: skip


class WrongCalls(unittest.TestCase):
    def graph(self):
        graph = berth.Graph()
        x = graph.input("x", "f32", ["n", 4])
        state = graph.state("s", "f32", [4])
        graph.update(state, state + 1.0)
        graph.output("y", (x + state).relu())
        graph.output("z", x.non_zero())
        return graph

    def objects(self, draw, generator):
        graph = self.graph()
        session = graph.session(dims={"n": 2}, threads=1)
        session.run(None, {"x": numpy.ones((2, 4), "f4")})
        return [
            graph.handle, self.graph().handle, session, graph.session(threads=draw.choice([1, 2])), session.view("x"),
            session.view("y"), berth.from_dlpack(numpy.arange(6.0)), _berth.PlanHandle.of(session), generator,
            _berth.PlanHandle(graph.handle, {"n": 2}),
        ]  # fmt: skip

    def call(self, draw, objects, pool):
        if draw.random() < 0.12:
            function = getattr(_berth, draw.choice(FUNCTIONS))
        else:
            of = draw.choice(objects)
            extra = ("__dlpack__", "__init__", "__repr__")
            names = [name for name in dir(type(of)) if (name[0] != "_" or name in extra) and name not in NOT_CALLED]
            function = getattr(of, draw.choice(names), None)
        arguments = [draw.choice(pool) for _ in range(draw.choice([0, 0, 1, 1, 1, 2, 2, 3, 4]))]
        keywords = {draw.choice(KEYWORDS): draw.choice(pool)} if draw.random() < 0.15 else {}
        if "threads" in keywords:
            keywords["threads"] = draw.choice([0, 1, 2, -1, "a", None])
        if getattr(function, "__name__", "") in ("SessionHandle", "PlanHandle", "__init__"):
            arguments = arguments[:3]  # the next would be a budget, which takes its time
        return function(*arguments, **keywords)

    def test_they_return_or_raise(self):
        is_slow = bool(os.environ.get("BERTH_TEST_SLOW"))
        draw = random.Random(int(os.environ.get("BERTH_TEST_SEED", "1")))
        generator = berth.Generator("examples/tale/tale.gguf", ctx=16, threads=1)
        raised = 0
        for _ in range(40 if is_slow else 4):
            objects = self.objects(draw, generator)
            pool = simple() + objects + [Evil(draw)]
            for _ in range(400):
                try:
                    result = self.call(draw, objects, pool)
                    if isinstance(result, berth.Tensor) and len(objects) < 40:
                        objects.append(result)
                        pool.append(result)
                except SystemError:  # Python's word for an extension that is wrong
                    raise
                except Exception:
                    raised += 1
        self.assertGreater(raised, 500)
        gc.collect()
