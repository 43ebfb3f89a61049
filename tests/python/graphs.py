"""Graphs that are built in Python, plans of them, the packer."""

import os
import tempfile
import unittest

import numpy

import berth

DIGITS = "examples/digits/digits.berth"


class Graphs(unittest.TestCase):
    def run_one(self, build, **feeds):
        graph = berth.Graph()
        values = {name: graph.input(name, array.dtype, array.shape) for name, array in feeds.items()}
        graph.output("out", build(graph, **values))
        return graph.session(threads=1).run(None, feeds)[0]

    def test_operators_are_those_of_numpy(self):
        a = numpy.random.default_rng(1).uniform(0.5, 2, (3, 4)).astype("float32")
        b = numpy.random.default_rng(2).uniform(0.5, 2, (3, 4)).astype("float32")
        cases = {
            "sum": lambda x, y: x + y,
            "difference": lambda x, y: x - y * 2,
            "reversed": lambda x, y: 1 - x / y + 2 / y + 3.0 * x,
            "power": lambda x, y: x**y + 2**x,
            "unary": lambda x, y: -x + abs(y - 1),
            "array": lambda x, y: x + numpy.arange(4, dtype="float32"),
            "array first": lambda x, y: numpy.arange(4, dtype="float32") * x,
        }
        for name, case in cases.items():
            with self.subTest(name):
                got = self.run_one(lambda graph, x, y: case(x, y), x=a, y=b)
                numpy.testing.assert_allclose(got, case(a, b), rtol=1e-5)
        got = self.run_one(lambda graph, x, y: x @ y.transpose(perm=[1, 0]), x=a, y=b)
        numpy.testing.assert_allclose(got, a @ b.T, rtol=1e-5)
        for compare in (lambda x, y: x < y, lambda x, y: x >= y, lambda x, y: (x > 1) & ~(y <= 1)):
            got = self.run_one(lambda graph, x, y: compare(x, y), x=a, y=b)
            numpy.testing.assert_array_equal(got, compare(a, b))

    def test_slices_are_those_of_numpy(self):
        x = numpy.arange(60, dtype="int64").reshape(3, 4, 5)
        for index in (
            numpy.s_[1],
            numpy.s_[:, 1:3],
            numpy.s_[..., -1],
            numpy.s_[-1, ..., ::2],
            numpy.s_[:, ::-1, 1:-1],
            numpy.s_[0, 1, 2],
            numpy.s_[:],
        ):
            with self.subTest(str(index)):
                got = self.run_one(lambda graph, x: x[index].identity(), x=x)
                numpy.testing.assert_array_equal(got, x[index])

    def test_ops_are_methods_and_some_have_several_results(self):
        graph = berth.Graph()
        x = graph.input("x", "f32", [2, 6])
        values, places = x.top_k(k=2)
        parts = x.split(axis=1, parts=[2, 4])
        graph.output("values", values)
        graph.output("places", places)
        graph.output("last", parts[1].softmax(axis=-1))
        given = numpy.array([[5, 1, 9, 3, 2, 0], [1, 2, 3, 4, 5, 6]], "float32")
        values, places, last = graph.session(threads=1).run(None, {"x": given})
        numpy.testing.assert_array_equal(values, [[9, 5], [6, 5]])
        numpy.testing.assert_array_equal(places, [[2, 0], [5, 4]])
        numpy.testing.assert_allclose(last.sum(axis=1), [1, 1], rtol=1e-6)
        self.assertIn("relu", dir(x))
        with self.assertRaises(AttributeError):
            x.no_such_op  # noqa: B018

    def test_what_is_wrong_is_said(self):
        graph, other = berth.Graph("a"), berth.Graph("b")
        x = graph.input("x", "f32", [2, 3])
        y = other.input("y", "f32", [2, 3])
        with self.assertRaisesRegex(berth.InvalidArgument, "another graph"):
            x + y
        with self.assertRaises(berth.InvalidArgument) as caught:
            x @ x
        self.assertEqual(caught.exception.status, "INVALID")
        with self.assertRaises(berth.Error):
            x.softmax(no_such_attribute=1)
        with self.assertRaises(berth.InvalidArgument):
            graph.input("x", "f32", [1])
        with self.assertRaises(berth.InvalidArgument):
            graph.input("z", "f31", [1])
        with self.assertRaises(berth.InvalidArgument):
            graph.input("z", "f32", [1] * 9)
        for wrong in (lambda: graph.input("z", 1, [1]), lambda: graph.input("z", "f32", 1),
                      lambda: graph.input("z", "f32", [1.5]), lambda: graph.output("o", 3), lambda: bool(x),
                      lambda: list(x), lambda: x["a"]):
            with self.assertRaises((TypeError, berth.Error)):
                wrong()
        with self.assertRaises(berth.Error):
            graph.value(10**6)
        with self.assertRaises((OverflowError, berth.Error)):
            graph.value(-1)

    def test_a_graph_tells_what_it_has(self):
        graph = berth.load(DIGITS)
        self.assertEqual(graph.dims, ["batch"])
        self.assertEqual([value.name for value in graph.inputs], ["image"])
        self.assertEqual(list(graph.outputs), ["class", "probabilities"])
        self.assertEqual(graph.inputs[0].shape, ("batch", 1, 8, 8))
        self.assertEqual(graph.nodes[0].op, "conv")
        self.assertEqual(graph.nodes[0].attrs["pads"], [1, 1, 1, 1])
        self.assertEqual(len(graph.params), 10)
        graph.verify()
        again = berth.load(graph.text().encode())
        self.assertEqual(again.text(), graph.text())
        with self.assertRaises(berth.FileError):
            berth.load("/no/such/file.onnx")
        with self.assertRaises(berth.Error):
            berth.load(b"graph {")

    def test_extents_that_decide_a_rank_are_given_to_load(self):
        # An ONNX model: y = Squeeze(x), and x is f32[batch, width].
        node = b"\n\x0f\n\x01x\x12\x01y\x22\x07Squeeze\x12\x01g"
        x = b"Z\x1d\n\x01x\x12\x18\n\x16\x08\x01\x12\x12\n\x07\x12\x05batch\n\x07\x12\x05width"
        model = b"\x08\x08:8" + node + x + b"b\x03\n\x01yB\x02\x10\x11"
        with self.assertRaisesRegex(berth.MalformedFile, "when it is loaded"):
            berth.load(model)
        graph = berth.load(model, dims={"batch": 1, "width": 4})
        self.assertEqual(graph.dims, [])
        with tempfile.NamedTemporaryFile(suffix=".onnx") as file:
            file.write(model)
            file.flush()
            self.assertEqual(berth.load(file.name, dims={"batch": 1, "width": 4}).text(), graph.text())
        values = numpy.arange(4, dtype="f4").reshape(1, 4)
        self.assertEqual(graph.session().run(None, {"x": values})[0].tolist(), [0, 1, 2, 3])
        with self.assertRaisesRegex(berth.InvalidArgument, "no named dimension 'height'"):
            berth.load(model, dims={"height": 1})
        with self.assertRaises(TypeError):
            berth.load(model, dims={"batch": "1"})
        with self.assertRaises(TypeError):
            berth.load(model, dims=[1])

    def test_a_plan_says_where_every_byte_is(self):
        graph = berth.load(DIGITS)
        plan = graph.plan({"batch": 64}, threads=1)
        info = plan.info()
        self.assertEqual(plan.arena_size, info["arena_size"])
        self.assertLess(info["arena_size"], info["total_unshared"])
        plan.check()
        self.assertEqual(plan.slot("image")["size"], 64 * 64 * 4)
        self.assertIn("conv1", plan.report())
        self.assertTrue(plan.report("csv").startswith("id,lower,upper,size,offset"))
        self.assertIn("<svg", plan._repr_svg_())
        with tempfile.TemporaryDirectory() as folder:
            for name in ("plan.svg", "plan.html"):
                plan.picture(os.path.join(folder, name))
                self.assertGreater(os.path.getsize(os.path.join(folder, name)), 1000)
            with self.assertRaises(berth.InvalidArgument):
                plan.picture(os.path.join(folder, "plan.png"))
        small = graph.plan({"batch": 64}, threads=1, budget=800000)
        self.assertLessEqual(small.arena_size, 800000)
        self.assertEqual(graph.plan({"batch": 64}, threads=1, budget="64M").arena_size, plan.arena_size)
        with self.assertRaises(berth.DoesNotFit):
            graph.plan({"batch": 64}, threads=1, budget=1000)
        for wrong in ({"dims": {}}, {"dims": {"batch": -1}}, {"dims": {"batch": 1, "x": 1}}, {"device": "abacus"},
                      {"budget": "much"}, {"budget": -1}, {"budget": 2**64 + 800000}, {"threads": -1},
                      {"threads": 2**32 + 1}, {"effort": 2**64}, {"effort": 10**5000}, {"no_such_option": 1}, {"dims": [1]}, {"dims": {"batch": "1"}}):
            with self.assertRaises((berth.Error, TypeError)):
                graph.plan(**{"dims": {"batch": 1}, **wrong})

    def test_the_packer_stands_alone(self):
        buffers = [(4, 0, 3), (4, 3, 9), berth.Buffer(4, 0, 9), (4, 9, 21), (4, 0, 21, 4, 8)]
        packed = berth.pack(buffers)
        self.assertEqual((packed.size, packed.optimal, packed.offsets[4]), (12, True, 8))
        self.assertIn("<svg", packed._repr_svg_())
        self.assertIn("<svg", packed.svg(names=["a", "b", "c", "d", "e"]))
        tight = berth.pack(buffers, capacity=8)
        self.assertEqual((tight.fits, tight.offsets), (False, None))
        self.assertEqual(berth.pack([]).size, 0)
        for wrong in ([(1, 2)], [("a", 0, 1)], [(1, 3, 2)], [None], [(-1, 0, 1)], [(2**70, 0, 1)], 3):
            with self.assertRaises((berth.Error, TypeError, OverflowError)):
                berth.pack(wrong)

    def test_states_outlive_a_run(self):
        graph = berth.Graph()
        x = graph.input("x", "f32", [2])
        total = graph.state("total", data=numpy.array([10, 20], "float32"))
        following = total + x
        graph.update(total, following)
        graph.output("now", following.identity())
        session = graph.session(threads=1)
        self.assertEqual(session.state_names(), ["total"])
        session.run(None, {"x": [1, 2]})
        self.assertEqual(session.run(None, {"x": [1, 2]})[0].tolist(), [12, 24])
        self.assertEqual(session.state("total").tolist(), [12, 24])
        saved = session.save_states()
        session.set_state("total", [0.0, 0.0])
        self.assertEqual(session.run(None, {"x": [1, 2]})[0].tolist(), [1, 2])
        session.restore_states(saved)
        self.assertEqual(session.state("total").tolist(), [12, 24])
        session.reset()
        self.assertEqual(session.state("total").tolist(), [10, 20])
        for wrong in (lambda: session.state("x"), lambda: session.set_state("total", [1.0]),
                      lambda: session.restore_states(b"abc"), lambda: session.reset("x"), lambda: session.state(3),
                      lambda: session.restore_states("text")):
            with self.assertRaises((berth.Error, TypeError)):
                wrong()

    def test_gradients(self):
        graph = berth.Graph()
        x, other = graph.input("x", "f32", [3]), graph.input("other", "f32", [3])
        loss = (x * x * x).reduce_sum(axes=[0], keepdims=0)
        first, none = graph.gradients(loss, [x, other])
        self.assertIsNone(none)
        graph.output("first", first)
        [second] = graph.gradients(first.reduce_sum(axes=[0], keepdims=0), [x])
        graph.output("second", second)
        graph.output("same", other)
        first, second, _ = graph.session(threads=1).run(None, {"x": [1, 2, 3], "other": [0, 0, 0]})
        numpy.testing.assert_allclose(first, [3, 12, 27], rtol=1e-5)
        numpy.testing.assert_allclose(second, [6, 12, 18], rtol=1e-5)
        with self.assertRaises(berth.Error):
            graph.gradients(x, [x])  # not one number
        for wrong in (lambda: graph.gradients(loss, [3]), lambda: graph.gradients(loss, 3), lambda: graph.train(loss, "luck"),
                      lambda: graph.train(loss, no_such=1.0), lambda: graph.train(x), lambda: graph.train(loss, params=[x])):
            with self.assertRaises((berth.Error, TypeError)):
                wrong()

    def test_params_are_set(self):
        graph = berth.Graph()
        x = graph.input("x", "f32", ["n", 2])
        w = graph.param("w", "f32", [2, 1])
        graph.output("y", x @ w)
        session = graph.session(threads=1, dims={"n": 1})
        with self.assertRaisesRegex(berth.Error, "w"):
            session.run(None, {"x": [[1, 2]]})
        with self.assertRaises(berth.InvalidArgument):
            session.set_param("w", numpy.zeros((1, 2), "float32"))
        session.set_param("w", numpy.array([[1], [10]], "float32"))
        self.assertEqual(session.run(None, {"x": [[1, 2]]})[0].tolist(), [[21]])
        session.set_param("w", [[2.0], [3.0]])
        self.assertEqual(session.run(None, {"x": [[1, 2], [3, 4]]})[0].tolist(), [[8], [18]])
