"""Nothing crashes the interpreter, and what is closed is given back."""

import gc
import os
import subprocess
import sys
import tempfile
import unittest

import numpy

import berth
from berth import _berth

DIGITS = "examples/digits/digits.berth"


class Safety(unittest.TestCase):
    def test_use_after_close(self):
        session = berth.InferenceSession(DIGITS, dims={"batch": 1}, threads=1)
        plan = session.plan
        session.close()
        session.close()
        image = numpy.zeros((1, 1, 8, 8), "f4")
        for call in (lambda: session.run(None, {"image": image}), lambda: session.run(None, {"image": image[:0]}),
                     session.execute, lambda: session.view("image"), lambda: session.bind({"batch": 2}),
                     lambda: session.plan, lambda: session.threads, session.save_states, plan.report, plan.check,
                     lambda: plan.arena_size, lambda: session.set_param("fc1.bias", image)):
            with self.assertRaisesRegex(berth.InvalidArgument, "closed"):
                call()
        session.cancel()
        self.assertIn("closed", repr(session))
        self.assertIn("not current", repr(plan))

    def test_a_plan_of_shapes_that_were_left_says_so(self):
        session = berth.InferenceSession(DIGITS, dims={"batch": 1}, threads=1, max_bindings=1)
        plan = session.plan
        session.bind({"batch": 7})
        with self.assertRaisesRegex(berth.InvalidArgument, "not its plan any more"):
            plan.report()
        self.assertNotEqual(session.plan.arena_size, 0)

    def test_objects_that_were_not_made(self):
        session = berth.InferenceSession.__new__(berth.InferenceSession)
        for call in (lambda: session.run(None, {}), lambda: session.run(None, {"x": 1}), session.execute,
                     lambda: session.view("x"), lambda: session.bind({}), lambda: session.threads,
                     lambda: session.set_param("x", [1]), lambda: session.state("x")):
            with self.assertRaisesRegex(berth.InvalidArgument, "was not made"):
                call()
        session.close()
        session.cancel()
        self.assertEqual((session.dims, session.state_names(), session.input_ports()), ({}, [], []))
        handle = berth.load(DIGITS).handle
        made = _berth.SessionHandle(handle, {"batch": 1}, threads=1)
        with self.assertRaisesRegex(berth.InvalidArgument, "made already"):
            made.__init__(handle)
        for wrong in (lambda: _berth.SessionHandle(), lambda: _berth.SessionHandle(3), lambda: _berth.PlanHandle(handle),
                      lambda: _berth.PlanHandle.of(3), lambda: _berth.GraphHandle(3), lambda: _berth.Embedder(3),
                      lambda: _berth.GeneratorHandle("/no/such/file"), lambda: _berth.Embedder("/no/such/file")):
            with self.assertRaises((berth.Error, TypeError)):
                wrong()
        failed = _berth.SessionHandle.__new__(_berth.SessionHandle)
        with self.assertRaises(berth.Error):
            failed.__init__(handle, {"nothing": 1})
        with self.assertRaisesRegex(berth.InvalidArgument, "closed"):
            failed.execute()

    def test_a_graph_that_changes_under_a_session(self):
        graph = berth.Graph()
        x = graph.input("x", "f32", ["n"])
        graph.output("y", x + x)
        session = graph.session(threads=1)  # not made yet: n is not known
        graph.output("z", graph.input("more", "f32", ["m"]))
        with self.assertRaisesRegex(berth.InvalidArgument, "has changed"):
            session.run(None, {"x": [1.0]})

    def test_feeds_that_change_while_they_are_read(self):
        class Evil:
            def __init__(self, feeds):
                self.feeds = feeds

            def __dlpack__(self, **options):
                self.feeds.clear()
                return numpy.ones(2, "f4").__dlpack__()

        graph = berth.Graph()
        graph.output("y", graph.input("a", "f32", [2]) + graph.input("b", "f32", [2]))
        session = graph.session(threads=1)
        feeds = {}
        feeds.update(a=Evil(feeds), b=Evil(feeds))
        with self.assertRaises(berth.InvalidArgument):
            session.run(None, feeds)

        class Names(list):
            def __getitem__(self, i):
                session.close()
                return "y"

        with self.assertRaisesRegex(berth.InvalidArgument, "is running|closed"):
            session.run(Names(["y"]), {"a": [1.0, 2.0], "b": [1.0, 2.0]})

    def test_dicts_that_change_while_they_are_read(self):
        class Grows:
            def __init__(self, dict, value):
                self.dict, self.value = dict, value

            def grow(self):
                for i in range(100):
                    self.dict[f"n{i}"] = self.value
                return self.value

            def __index__(self):
                return self.grow()

            def __dlpack__(self, **options):
                return self.grow().__dlpack__()

        tensors = {}
        tensors.update(a=Grows(tensors, numpy.ones(2, "f4")), b=numpy.ones(2, "f4"))
        with tempfile.TemporaryDirectory() as folder:
            berth.save_weights(os.path.join(folder, "w.safetensors"), tensors)
            self.assertEqual(sorted(berth.load_weights(os.path.join(folder, "w.safetensors"))), ["a", "b"])
        graph = berth.Graph()
        graph.output("y", graph.input("x", "f32", ["rows"]).tanh())
        dims, attrs = {}, {}
        dims["rows"], attrs["axis"] = Grows(dims, 3), Grows(attrs, 0)
        self.assertEqual(graph.bind(dims).inputs[0].shape, (3,))
        self.assertEqual(len(graph.handle.add_node("softmax", [graph.inputs[0].number], attrs, 1)), 1)

        class Key(str):
            __hash__ = str.__hash__

            def __eq__(self, other):
                feeds.clear()
                return False

        feeds = {"x": numpy.ones(3, "f4"), Key("z"): 1}
        with self.assertRaisesRegex(berth.InvalidArgument, "has no input 'z'"):
            graph.session(dims={"rows": 3}, threads=1).run(None, feeds)

    def test_an_infer_that_uses_its_graph(self):
        graph = berth.Graph()
        x = graph.input("x", "f32", [2])

        def infer(given):
            with self.assertRaisesRegex(berth.InvalidArgument, "by somebody else"):
                graph.input("z", "f32", [2])
            return given

        berth.op("test.greedy", infer=infer)(lambda a, b: None)
        graph.add("test.greedy", x)

    def test_wrong_attributes(self):
        graph = berth.Graph()
        x = graph.input("x", "f32", [2])
        for attrs in ({"axis": None}, {"axis": object()}, {"axis": {}}, {"axis": 2**70}, {"axis": [None]},
                      {"axis": "one"}, {"axis": [1.5, "a"]}):
            with self.assertRaises((TypeError, OverflowError, berth.Error)):
                graph.add("softmax", x, **attrs)
        with self.assertRaises((TypeError, OverflowError)):
            graph.handle.add_node("relu", [-1], {}, 1)
        with self.assertRaises(berth.Error):
            graph.handle.add_node("relu", [10**6], {}, 1)
        with self.assertRaises(berth.Error):
            graph.handle.add_node("relu", [0], {}, 10**9)
        with self.assertRaises(TypeError):
            graph.handle.add_node("relu", None, {}, 1)
        with self.assertRaises(TypeError):
            graph.handle.add_node("relu", [0], {3: 4}, 1)

    def test_everything_is_given_back(self):
        def cycle():
            session = berth.InferenceSession(DIGITS, threads=2)
            for n in (1, 3):
                session.run(None, {"image": numpy.zeros((n, 1, 8, 8), "f4")})
            view = session.view("image").numpy()
            session.plan.report("svg")
            graph = berth.load(berth.load(DIGITS).text().encode())
            graph.plan({"batch": 2})
            try:
                session.run(None, {"image": view[0]})
            except berth.Error:
                pass

        cycle()
        gc.collect()
        before = berth.memory_in_use()
        objects = len(gc.get_objects())
        for _ in range(3):
            cycle()
        gc.collect()
        self.assertEqual(berth.memory_in_use(), before)
        self.assertLess(len(gc.get_objects()) - objects, 50)

    def test_one_interpreter(self):
        try:
            import _xxsubinterpreters as interpreters
        except ImportError:
            self.skipTest("this Python has no module for interpreters")
        other = interpreters.create()
        with self.assertRaises(Exception):
            interpreters.run_string(other, "import sys; sys.path = %r; import berth" % sys.path)
        interpreters.destroy(other)

    def test_without_numpy(self):
        script = """
import sys
sys.modules["numpy"] = None
import berth
graph = berth.Graph()
x = graph.input("x", "f32", [2, 2])
graph.output("y", x + x)
session = graph.session(threads=1)
import array
[y] = session.run(None, {"x": memoryview(array.array("f", [1, 2, 3, 4])).cast("B").cast("f", (2, 2))})
assert isinstance(y, berth.Tensor) and memoryview(y).tolist() == [[2, 4], [6, 8]], y
assert memoryview(session.view("y")).tolist() == [[2, 4], [6, 8]]
for wrong in ([[1, 2], [3, 4]], 1.0):
    try:
        session.run(None, {"x": wrong})
    except TypeError:
        continue
    raise SystemExit("lists need numpy")
try:
    y.numpy()
except ImportError:
    print("fine")
"""
        ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300)
        self.assertEqual((ran.stdout, ran.returncode), ("fine\n", 0), ran.stderr)

    def test_help_reads_like_a_manual(self):
        import inspect
        import pydoc

        text = pydoc.render_doc(berth)
        self.assertIn("one block of memory", text)
        for name in berth.__all__:
            if name == "__version__":
                continue
            thing = getattr(berth, name)
            self.assertTrue(inspect.getdoc(thing), name)
            for method, what in vars(thing).items() if inspect.isclass(thing) else ():
                if not method.startswith("_") and (callable(what) or isinstance(what, property)):
                    self.assertTrue(inspect.getdoc(what), f"{name}.{method}")


class Fork(unittest.TestCase):
    def in_child(self, what):
        """The exit status of a forked process that does this: 0 where it returned."""
        sys.stdout.flush()
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                what()
                status = 0
            except BaseException as error:
                print(f"# in the child: {error!r}", flush=True)
            finally:
                os._exit(status)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    def test_a_forked_process(self):
        image = numpy.zeros((1, 1, 8, 8), "f4")
        many = berth.InferenceSession(DIGITS, dims={"batch": 1}, threads=2)
        one = berth.InferenceSession(DIGITS, dims={"batch": 1}, threads=1)
        tale = berth.Generator("examples/tale/tale.gguf", threads=2, ctx=16)
        wanted = many.run(["probabilities"], {"image": image})[0]

        def child():
            nonlocal many, tale
            for call in (lambda: many.run(None, {"image": image}), many.close, lambda: tale.feed("a"), tale.next):
                try:
                    call()
                except berth.InvalidArgument as error:
                    assert "forked" in str(error), error
                else:
                    raise AssertionError("it ran")
            assert (one.run(["probabilities"], {"image": image})[0] == wanted).all()
            del many, tale
            gc.collect()
            here = berth.InferenceSession(DIGITS, dims={"batch": 1}, threads=2)
            assert numpy.allclose(here.run(["probabilities"], {"image": image})[0], wanted)
            here.close()

        self.assertEqual(self.in_child(child), 0)
        self.assertTrue((many.run(["probabilities"], {"image": image})[0] == wanted).all())
