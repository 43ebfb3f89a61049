"""Sessions: what goes in and comes out, custom ops, errors."""

import unittest

import numpy

import berth

DIGITS = "examples/digits/digits.berth"


def doubled(dtype="float32", shape=("n",)):
    graph = berth.Graph()
    x = graph.input("x", dtype, shape)
    graph.output("y", x + x)
    return graph


class Sessions(unittest.TestCase):
    def test_the_digits_are_read(self):
        images = numpy.load("examples/digits/samples.npy").astype("float32")
        labels = numpy.load("examples/digits/samples_labels.npy")
        with berth.InferenceSession(DIGITS, threads=2) as session:
            classes, probabilities = session.run(None, {"image": images})
            numpy.testing.assert_array_equal(classes, labels)
            [alone] = session.run(["probabilities"], {"image": images[:1]})
            numpy.testing.assert_allclose(alone, probabilities[:1], rtol=1e-5)
            self.assertEqual(session.threads, 2)
            self.assertEqual(session.plan.slot("image")["size"], 256)
        self.assertTrue(session.closed)

    def test_every_type_comes_back_as_it_went_in(self):
        for dtype in "float32 float64 float16 int8 uint8 int16 uint16 int32 uint32 int64 uint64 bool".split():
            graph = berth.Graph()
            graph.output("y", graph.input("x", dtype, [2, 3]).transpose(perm=[1, 0]))
            given = numpy.arange(6).reshape(2, 3).astype(dtype)
            [got] = graph.session(threads=1).run(None, {"x": given})
            self.assertEqual(got.dtype, given.dtype)
            numpy.testing.assert_array_equal(got, given.T)
        graph = berth.Graph()
        graph.output("y", graph.input("x", "bf16", [2]).cast(to="f32"))
        bits = (numpy.array([1.5, -2], "float32").view("uint32") >> 16).astype("uint16")
        self.assertEqual(graph.session(threads=1).run(None, {"x": bits})[0].tolist(), [1.5, -2])

    def test_shapes_of_all_kinds(self):
        session = doubled("float32", ["a", "b"]).session(threads=1)
        big = numpy.arange(24, dtype="float32").reshape(4, 6)
        for given in (big, big.T, big[::2, 1::2], big[:0], big[::-1], numpy.asfortranarray(big)):
            [got] = session.run(None, {"x": given})
            numpy.testing.assert_array_equal(got, given * 2)
        self.assertEqual(doubled("float32", []).session(threads=1).run(None, {"x": 2.0})[0].shape, ())
        self.assertEqual(doubled("int64", []).session(threads=1).run(None, {"x": numpy.int64(4)})[0], 8)

    def test_what_has_elements_is_taken(self):
        import array

        session = doubled().session(threads=1)
        readonly = numpy.ones(3, "float32")
        readonly.flags.writeable = False

        class OnlyDlpack:
            def __init__(self, of):
                self.of = of

            def __dlpack__(self, **options):
                return self.of.__dlpack__()

        for given in ([1, 1, 1], (1.0, 1.0, 1.0), array.array("f", [1, 1, 1]), memoryview(array.array("f", [1, 1, 1])),
                      readonly, OnlyDlpack(numpy.ones(3, "float32")), berth.from_dlpack(numpy.ones(3, "float32"))):
            self.assertEqual(session.run(None, {"x": given})[0].tolist(), [2, 2, 2], str(type(given)))

    def test_what_is_wrong_is_said(self):
        session = doubled().session(threads=1, dims={"n": 3})
        good = numpy.ones(3, "float32")
        cases = [
            ({"x": good.astype("float64")}, r"input 'x' is f32\[n\], but f64\[3\] was given"),
            ({"x": good.reshape(3, 1)}, r"input 'x' is f32\[n\], but f32\[3, 1\] was given"),
            ({"x": good, "z": good}, "no input 'z'"),
            ({}, "input 'x' is missing"),
            ({"x": good.astype(">f4")}, "format"),
            ({"x": good.astype("complex64")}, "format"),
        ]
        for feeds, text in cases:
            with self.assertRaisesRegex(berth.InvalidArgument, text):
                session.run(None, feeds)
        with self.assertRaisesRegex(berth.InvalidArgument, "no output 'z'"):
            session.run(["z"], {"x": good})
        for args in ((None, {"x": object()}), (None, {"x": "abc"}), (None, 3), (3, {"x": good}), ("y", {"x": good}),
                     (None, {"x": good}, None, 4), (None, {"x": [[1], [2, 3]]}), (None, {"x": None})):
            with self.assertRaises((TypeError, ValueError)):
                session.run(*args)
        for keywords in ({"feed": 1}, {"input_feed": {"x": good}, "output_names": 1}):
            with self.assertRaises(TypeError):
                session.run(**keywords)
        self.assertEqual(session.run(input_feed={"x": good}, output_names=["y"])[0].tolist(), [2, 2, 2])
        with self.assertRaises(TypeError):
            session.run(None, {"x": good}, input_feed={})

    def test_names_must_agree(self):
        graph = berth.Graph()
        a, b = graph.input("a", "f32", ["n"]), graph.input("b", "f32", ["n"])
        graph.output("y", a + b)
        session = graph.session(threads=1)
        self.assertEqual(session.dims, {"n": None})
        with self.assertRaisesRegex(berth.InvalidArgument, "dimension 'n' is 2 in one input and 3 in input 'b'"):
            session.run(None, {"a": [1, 2], "b": [1, 2, 3]})
        with self.assertRaisesRegex(berth.InvalidArgument, "dimension 'n' is not bound"):
            session.execute()
        with self.assertRaises(berth.InvalidArgument):
            session.bind({"m": 3})
        session.bind({"n": 2})
        self.assertEqual(session.run(None, {"a": [1, 2], "b": [1, 2]})[0].tolist(), [2, 4])

    def test_extents_that_only_a_run_knows(self):
        graph = berth.Graph()
        graph.output("places", graph.input("x", "f32", [5]).non_zero())
        session = graph.session(threads=1)
        self.assertEqual(session.run(None, {"x": [0, 1, 0, 2, 0]})[0].tolist(), [[1, 3]])
        self.assertEqual(session.run(None, {"x": [1, 1, 1, 2, 0]})[0].tolist(), [[0, 1, 2, 3]])
        self.assertEqual(session.view("places").shape, (1, 4))

    def test_many_inputs_and_outputs(self):
        graph = berth.Graph()
        values = [graph.input(f"x{i}", "f32", [2]) for i in range(20)]
        for i, value in enumerate(values):
            graph.output(f"y{i}", value * float(i))
        session = graph.session(threads=1)
        results = session.run(None, {f"x{i}": [1.0, 2.0] for i in range(20)})
        self.assertEqual([r.tolist() for r in results], [[float(i), 2.0 * i] for i in range(20)])
        self.assertEqual(session.run(["y3", "y3"], {f"x{i}": [1.0, 2.0] for i in range(20)})[1].tolist(), [3, 6])

    def test_other_devices_give_the_same(self):
        images = numpy.load("examples/digits/samples.npy").astype("float32")[:2]
        [wanted] = berth.InferenceSession(DIGITS, threads=1).run(["probabilities"], {"image": images})
        session = berth.InferenceSession(DIGITS, device="interp")
        [got] = session.run(["probabilities"], {"image": images})
        numpy.testing.assert_allclose(got, wanted, atol=1e-4)
        with self.assertRaises(berth.Error):
            berth.InferenceSession(DIGITS, device="abacus", dims={"batch": 1})


class CustomOps(unittest.TestCase):
    def test_an_op_with_everything(self):
        seen = []

        def infer(x, extra, n, mode, dims, scales):
            seen.append((x, extra))
            return [("f32", (x[1][0], n)), ("i64", ())]

        @berth.op("test.all", inputs=(1, 2), outputs=2, infer=infer,
                  attrs={"n": 2, "mode": "a", "dims": [1, 2], "scales": [0.5]})
        def everything(x, extra, rows, count, n, mode, dims, scales):
            self.assertIsNone(extra)
            rows[...] = numpy.repeat(x[:, None], n, axis=1) * scales[0]
            count[...] = len(x) * (10 if mode == "b" else 1)

        graph = berth.Graph()
        x = graph.input("x", "f32", ["rows"])
        rows, count = graph.add("test.all", x, None, n_out=2, n=3, mode="b", scales=[2.0])
        graph.output("rows", rows)
        graph.output("count", count)
        self.assertEqual(rows.shape, ("rows", 3))
        rows, count = graph.session(threads=1).run(None, {"x": [1, 2]})
        self.assertEqual((rows.tolist(), count.tolist()), ([[2, 2, 2], [4, 4, 4]], 20))
        self.assertEqual(seen[0], (("f32", ("rows",)), None))
        with self.assertRaises(berth.Error):
            berth.op("test.all")(everything)
        with self.assertRaises(berth.Error):
            berth.op("relu")(everything)
        for more in (2**32, -(2**32), 2**64):  # counts are not taken modulo 2^32
            with self.assertRaises(berth.Error):
                graph.add("test.all", x, None, n_out=2 + more, n=3)
            with self.assertRaises(berth.Error):
                berth.op("test.more", inputs=1 + more)(everything)
            with self.assertRaises(berth.Error):
                berth.op("test.more", outputs=1 + more)(everything)

    def test_an_exception_names_the_op_and_is_the_cause(self):
        @berth.op("test.fails", infer=lambda x, **attrs: x if x[1] != (7,) else 1 / 0)
        def fails(x, y):
            if x[0] > 0:
                raise KeyError("too much")
            y[...] = x

        graph = berth.Graph()
        graph.output("y", graph.add("test.fails", graph.input("x", "f32", ["n"])))
        session = graph.session(threads=1)
        self.assertEqual(session.run(None, {"x": [-1, 2]})[0].tolist(), [-1, 2])
        with self.assertRaisesRegex(berth.Error, "test.fails.*KeyError") as caught:
            session.run(None, {"x": [1, 2]})
        self.assertIsInstance(caught.exception.__cause__, KeyError)
        with self.assertRaises(BufferError):  # its traceback has the kernel's arrays
            session.run(None, {"x": [-1] * 3})
        del caught
        with self.assertRaisesRegex(berth.Error, "ZeroDivisionError"):
            session.run(None, {"x": [-1] * 7})
        self.assertEqual(session.run(None, {"x": [-1, 2]})[0].tolist(), [-1, 2])

    def test_what_an_op_gives_is_checked(self):
        wrong = [lambda x: 3, lambda x: [("f32",)], lambda x: ("f99", (2,)), lambda x: ("f32", ("nobody",)),
                 lambda x: [x, x], lambda x: ("f32", (1,) * 9), lambda x: None]
        for i, infer in enumerate(wrong):
            berth.op(f"test.wrong{i}", infer=infer)(lambda x, y: None)
            graph = berth.Graph()
            with self.assertRaises(berth.Error):
                graph.add(f"test.wrong{i}", graph.input("x", "f32", [2]))

    def test_a_kernel_cannot_use_what_runs_it(self):
        holder = {}

        @berth.op("test.inside")
        def inside(x, y):
            holder["kept"] = x
            for call in (lambda: holder["session"].run(None, {"x": [1, 2]}), lambda: holder["session"].close(),
                         lambda: holder["session"].view("x"), lambda: holder["session"].bind({"n": 4})):
                with self.assertRaisesRegex(berth.Error, "is running"):
                    call()
            y[...] = x

        graph = berth.Graph()
        graph.output("y", graph.add("test.inside", graph.input("x", "f32", ["n"])))
        for threads in (1, 2):
            session = holder["session"] = graph.session(threads=threads, dims={"n": 2})
            session.run(None, {"x": [1, 2]})
            # The kernel kept a view: the session stays where it is, and lives as long as it.
            with self.assertRaises(BufferError):
                session.run(None, {"x": [1, 2, 3]})
            with self.assertRaises(BufferError):
                session.close()
            del session
            holder["session"] = None
            self.assertEqual(holder["kept"].tolist(), [1, 2])
            holder.clear()

    def test_constants_are_folded_by_an_op(self):
        @berth.op("test.plus_one")
        def plus_one(x, y):
            y[...] = x + 1

        graph = berth.Graph()
        folded = graph.add("test.plus_one", graph.constant([1.0, 2.0], "f32"))
        graph.output("y", graph.input("x", "f32", [2]) + folded)
        self.assertEqual(graph.session(threads=1).run(None, {"x": [10, 20]})[0].tolist(), [12, 23])
