"""Threads that share sessions and graphs, the GIL, cancelling."""

import threading
import time
import unittest

import numpy

import berth

DIGITS = "examples/digits/digits.berth"


def together(n, what):
    """Runs what(i) on n threads; raises what one of them raised."""
    errors = []

    def call(i):
        try:
            what(i)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=call, args=(i,)) for i in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


class Threads(unittest.TestCase):
    def test_threads_share_a_session(self):
        images = numpy.load("examples/digits/samples.npy").astype("f4")
        labels = numpy.load("examples/digits/samples_labels.npy")
        session = berth.InferenceSession(DIGITS, threads=2)

        def work(i):
            for n in range(1, 6):  # shapes change under the others
                at = (i * 3 + n) % len(images)
                [classes] = session.run(["class"], {"image": images[at : at + n]})
                self.assertEqual(classes.tolist(), labels[at : at + n].tolist())

        together(4, work)

    def test_sessions_in_threads(self):
        graph = berth.load(DIGITS)
        image = numpy.zeros((1, 1, 8, 8), "f4")

        def work(i):
            session = graph.session(threads=1)
            for _ in range(5):
                session.run(None, {"image": image})
            graph.plan({"batch": i + 1}).report()

        together(4, work)

    def test_the_gil_is_given_up_while_a_session_runs(self):
        # The kernel waits for what another thread of Python does: it would wait for ever if the GIL were held.
        started, done = threading.Event(), threading.Event()

        @berth.op("test.waits")
        def waits(x, y):
            started.set()
            y[...] = x if done.wait(60) else -1

        graph = berth.Graph()
        graph.output("y", graph.add("test.waits", graph.input("x", "f32", [1])))
        session = graph.session(threads=1)
        results = []
        thread = threading.Thread(target=lambda: results.append(session.run(None, {"x": [5]})[0].tolist()))
        thread.start()
        self.assertTrue(started.wait(60))
        done.set()
        thread.join()
        self.assertEqual(results, [[5]])

    def test_a_run_is_cancelled_by_another_thread(self):
        graph = berth.Graph()

        @berth.op("test.cancels")
        def cancels(x, y):
            session.cancel()
            y[...] = x

        x = graph.input("x", "f32", [2])
        graph.output("y", graph.add("test.cancels", x) + 1)
        session = graph.session(threads=1)
        with self.assertRaises(berth.Cancelled):
            session.run(None, {"x": [1, 2]})

        @berth.op("test.does_not")
        def does_not(x, y):
            y[...] = x

        other = berth.Graph()
        other.output("y", other.add("test.does_not", other.input("x", "f32", [2])) + 1)
        session = other.session(threads=1)
        session.cancel()
        with self.assertRaises(berth.Cancelled):
            session.run(None, {"x": [1, 2]})
        self.assertEqual(session.run(None, {"x": [1, 2]})[0].tolist(), [2, 3])

    def test_views_come_and_go_while_others_bind(self):
        session = berth.InferenceSession(DIGITS, threads=1)
        until = time.monotonic() + 0.3

        def look(i):
            while time.monotonic() < until:
                array = session.view("probabilities").numpy()
                self.assertIn(array.shape[0], (1, 2))
                del array

        def bind(i):
            n = 0
            while time.monotonic() < until:
                try:
                    session.bind({"batch": 1 + n % 2})
                except BufferError:
                    pass
                n += 1

        session.bind({"batch": 1})
        together(2, lambda i: (look if i == 0 else bind)(i))
