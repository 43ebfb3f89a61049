"""Training from Python: steps, weights, files."""

import json
import os
import tempfile
import unittest

import numpy

import berth


def net(rows=None):
    graph = berth.Graph()
    x = graph.input("x", "f32", ["n" if rows is None else rows, 3])
    hidden = (x @ graph.param("w", "f32", [3, 8])).tanh()
    graph.output("y", hidden @ graph.param("v", "f32", [8, 2]))
    return graph


def start(trainer, seed=1):
    random = numpy.random.default_rng(seed)
    trainer.set_weights({"w": random.normal(size=(3, 8)).astype("f4"), "v": random.normal(size=(8, 2)).astype("f4")})


POINTS = numpy.random.default_rng(7).normal(size=(32, 3)).astype("f4")
CLASSES = (POINTS[:, 0] * POINTS[:, 1] > 0).astype("int64")


class Training(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()

    def tearDown(self):
        self.folder.cleanup()

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def train(self, trainer, steps):
        return [trainer.step({"x": POINTS}, CLASSES) for _ in range(steps)]

    def test_classes_are_learned(self):
        trainer = berth.Trainer(net(), rate=lambda step: 0.05 / (1 + step / 100), dims={"n": 32}, clip=1.0, threads=1)
        start(trainer)
        losses = self.train(trainer, 300)
        self.assertLess(losses[-1], 0.7 * losses[0])
        self.assertEqual(trainer.steps, 300)
        self.assertGreater(trainer.plan.arena_size, 0)
        logits = berth.InferenceSession(net(), dims={"n": 32})
        for name, array in trainer.weights().items():
            logits.set_param(name, array)
        [y] = logits.run(None, {"x": POINTS})
        self.assertGreater((y.argmax(1) == CLASSES).mean(), 0.75)
        shifted = y - y.max(1, keepdims=True)
        truth = -(shifted - numpy.log(numpy.exp(shifted).sum(1, keepdims=True)))[numpy.arange(32), CLASSES].mean()
        self.assertAlmostEqual(trainer.step({"x": POINTS}, CLASSES), float(truth), places=4)

    def test_a_checkpoint_goes_on_to_the_bit(self):
        whole, half = (berth.Trainer(net(), rate=0.02, dims={"n": 32}, threads=1) for _ in range(2))
        start(whole), start(half)
        expected = self.train(whole, 20)
        self.train(half, 12)
        half.save_checkpoint(self.path("half.state"))
        again = berth.Trainer(net(), rate=0.02, dims={"n": 32}, threads=1)
        again.load_checkpoint(self.path("half.state"))
        self.assertEqual(self.train(again, 8), expected[12:])
        for name, array in whole.weights().items():
            numpy.testing.assert_array_equal(array, again.weights()[name])
        other = berth.Trainer(net(), optimizer="sgd", dims={"n": 32}, threads=1)
        with self.assertRaises(berth.InvalidArgument):
            other.load_checkpoint(self.path("half.state"))

    def test_weights_are_files(self):
        trainer = berth.Trainer(net(), dims={"n": 32}, threads=1)
        start(trainer)
        self.train(trainer, 1)
        trainer.save(self.path("w.safetensors"))
        read = berth.load_weights(self.path("w.safetensors"))
        self.assertEqual(sorted(read), ["v", "w"])
        numpy.testing.assert_array_equal(read["w"], trainer.weights()["w"])
        with self.assertRaises(berth.InvalidArgument):
            trainer.save(self.path("w.onnx"))
        with self.assertRaises(berth.FileError):
            trainer.save(self.path("no/such/folder.safetensors"))
        with self.assertRaises(berth.Error):
            berth.load_weights(self.path("missing.safetensors"))

    def test_weights_of_16_bits_are_what_they_are(self):
        for type, one, dtype in (("bf16", 0x3F80, "u2"), ("f16", 1.0, "f2")):
            with self.subTest(type):
                graph = berth.Graph()
                x = graph.input("x", "f32", ["n", 3])
                graph.output("y", x @ graph.one("cast", graph.param("w", type, [3, 2]), to="f32"))
                trainer = berth.Trainer(graph, loss="mse", optimizer="sgd", dims={"n": 32}, threads=1)
                trainer.set_weights({"w": numpy.full((3, 2), one, dtype)})
                self.assertEqual(trainer.session.state("w.master").tolist(), [[1, 1]] * 3)
                trainer.save(self.path("w.safetensors"))
                trainer.save_checkpoint(self.path("w.state"))
                for file in ("w.safetensors", "w.state"):
                    with open(self.path(file), "rb") as opened:
                        head = opened.read(int.from_bytes(opened.read(8), "little"))
                    self.assertEqual(json.loads(head)["w"]["dtype"], type.upper())
                trainer.load_checkpoint(self.path("w.state"))
                graph.attach(self.path("w.safetensors"))
                self.assertEqual(graph.session(dims={"n": 1}).run(None, {"x": [[1.0, 2.0, 3.0]]})[0].tolist(), [[6, 6]])
        with self.assertRaisesRegex(berth.InvalidArgument, "'w' is to be bf16, but f32"):
            berth.save_weights(self.path("x.safetensors"), {"w": numpy.ones(2, "f4")}, {"w": "bf16"})

    def test_gradients_of_several_calls_are_averaged(self):
        whole = berth.Trainer(net(), rate=0.02, dims={"n": 32}, threads=1)
        parts = berth.Trainer(net(), rate=0.02, dims={"n": 16}, accumulate=2, threads=1)
        start(whole), start(parts)
        for _ in range(3):
            whole.step({"x": POINTS}, CLASSES)
            for part in (slice(0, 16), slice(16, 32)):
                parts.step({"x": POINTS[part]}, CLASSES[part])
        self.assertEqual(parts.steps, 3)
        for name, array in whole.weights().items():
            numpy.testing.assert_allclose(array, parts.weights()[name], atol=1e-5)

    def test_adapters_and_part_of_a_model(self):
        trainer = berth.Trainer(net(), rate=0.05, dims={"n": 32}, lora=2, threads=1)
        random = numpy.random.default_rng(3)
        trainer.set_weights({"w": random.normal(size=(3, 8)).astype("f4"), "v": random.normal(size=(8, 2)).astype("f4"),
                             "w.lora_a": random.normal(size=(3, 2)).astype("f4"),
                             "v.lora_a": random.normal(size=(8, 2)).astype("f4")})
        losses = self.train(trainer, 100)
        self.assertLess(losses[-1], losses[0])
        self.assertEqual(sorted(trainer.weights()), ["v.lora_a", "v.lora_b", "w.lora_a", "w.lora_b"])
        part = berth.Trainer(net(), params=["v"], dims={"n": 32}, threads=1)
        start(part)
        self.train(part, 1)
        self.assertEqual(list(part.weights()), ["v"])

    def test_a_loss_of_your_own(self):
        trainer = berth.Trainer(net(), loss=lambda y, wanted: abs(y - wanted).reduce_mean(axes=[0, 1], keepdims=0),
                                rate=0.05, dims={"n": 32}, threads=1)
        start(trainer)
        wanted = numpy.stack([POINTS[:, 0], -POINTS[:, 1]], 1)
        losses = [trainer.step({"x": POINTS}, wanted) for _ in range(100)]
        self.assertLess(losses[-1], 0.5 * losses[0])

    def test_what_is_wrong_is_said(self):
        for wrong in (dict(loss="hinge"), dict(output="z"), dict(params=["nothing"]), dict(optimizer="luck"),
                      dict(no_such=1.0), dict(lora=0), dict(dims={}), dict(lora=-1), dict(lora=2**32 + 1),
                      dict(accumulate=-1), dict(accumulate=2**32 + 2), dict(accumulate=2**70)):
            with self.subTest(str(wrong)), self.assertRaises((berth.Error, TypeError, OverflowError)):
                berth.Trainer(net(), **{"dims": {"n": 32}, **wrong})
        trainer = berth.Trainer(net(), dims={"n": 32}, threads=1)
        with self.assertRaises(berth.Error):
            trainer.step({"x": POINTS}, CLASSES[:3])
        with self.assertRaises(berth.Error):
            trainer.set_weights({"nothing": POINTS})
        self.assertFalse(trainer.session.states_lost())
