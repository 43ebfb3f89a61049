"""Views of the arena: numpy, the buffer protocol, DLPack; and what they hold in place."""

import gc
import os
import unittest
import weakref

import numpy

import berth
from berth import _berth


def doubled(dims=None, shape=("n",)):
    graph = berth.Graph()
    x = graph.input("x", "f32", shape)
    graph.output("y", x + x)
    return graph.session(threads=1, dims=dims)


class Views(unittest.TestCase):
    def test_a_run_without_copies(self):
        session = doubled({"n": 4})
        x, y = session.view("x").numpy(), session.view("y").numpy()
        for i in range(3):
            x[:] = i
            session.execute()
            self.assertEqual(y.tolist(), [2 * i] * 4)
        self.assertEqual(session.run()[0].tolist(), [4] * 4)
        self.assertFalse(y.flags.writeable)
        with self.assertRaises(ValueError):
            y[0] = 1
        self.assertEqual(session.run(None, {"x": x})[0].tolist(), [4] * 4)  # the input's own memory
        self.assertEqual(session.run(None, {"x": y})[0].tolist(), [8] * 4)  # memory of the arena
        self.assertEqual(set(session.views()), {"x", "y"})
        with self.assertRaises(berth.InvalidArgument):
            session.view("z")
        with self.assertRaises(TypeError):
            session.view(3)

    def test_a_view_holds_the_session_in_place(self):
        session = doubled({"n": 2})
        view = session.view("x")
        array = view.numpy()
        before = array.ctypes.data
        for bind in (lambda: session.bind({"n": 1000}), lambda: session.run(None, {"x": numpy.ones(3, "f4")})):
            with self.assertRaisesRegex(BufferError, "1 view .* is alive"):
                bind()
        session.bind({"n": 2})  # which it is bound to
        array[:] = [1, 2]
        self.assertEqual(session.run()[0].tolist(), [2, 4])
        self.assertEqual(array.ctypes.data, before)
        with self.assertRaises(BufferError):
            session.close()
        with self.assertRaisesRegex(BufferError, "arrays? still shows? the tensor"):
            view.release()
        del array
        view.release()
        with self.assertRaises(ValueError):
            view.numpy()
        with self.assertRaises(ValueError):
            memoryview(view)
        with self.assertRaises(ValueError):
            view.__dlpack__()
        self.assertIn("released", repr(view))
        session.bind({"n": 1000})
        session.close()

    def test_a_view_keeps_the_session(self):
        session = doubled({"n": 2})
        session.run(None, {"x": [1, 2]})
        gone = weakref.ref(session)
        array = session.view("y").numpy()
        del session
        gc.collect()
        self.assertIsNotNone(gone())
        self.assertEqual(array.tolist(), [2, 4])
        del array
        gc.collect()
        self.assertIsNone(gone())

    def test_the_buffer_protocol(self):
        session = doubled({"a": 2}, ("a", 3))
        session.run(None, {"x": numpy.arange(6, dtype="f4").reshape(2, 3)})
        view = session.view("y")
        memory = memoryview(view)
        self.assertEqual((memory.shape, memory.format, memory.readonly), ((2, 3), "f", True))
        self.assertEqual(memory.tolist(), [[0, 2, 4], [6, 8, 10]])
        self.assertEqual((view.shape, view.strides, view.type, view.nbytes), ((2, 3), (12, 4), "f32", 24))
        self.assertEqual(bytes(view), memory.tobytes())
        with self.assertRaises(TypeError):
            berth.Tensor()

    def test_dlpack_of_a_read_only_array(self):
        given = numpy.arange(6, dtype="f4")
        given.flags.writeable = False
        numpy.testing.assert_array_equal(numpy.from_dlpack(berth.from_dlpack(given)), given)

    def test_dlpack_both_ways(self):
        session = doubled({"n": 3})
        session.run(None, {"x": [1, 2, 3]})
        view = session.view("y")
        self.assertEqual(view.__dlpack_device__(), (1, 0))
        array = numpy.from_dlpack(view)
        self.assertEqual(array.tolist(), [2, 4, 6])
        del view
        with self.assertRaises(BufferError):  # the capsule's taker shows it
            session.bind({"n": 4})
        del array
        session.bind({"n": 4})
        session.bind({"n": 3})
        for version in (None, (0, 8), (1, 0), (1, 1)):
            capsule = session.view("x").__dlpack__(max_version=version)
            self.assertIn("versioned" if version is not None and version[0] == 1 else '"dltensor"', repr(capsule))
            with self.assertRaises(BufferError):
                session.bind({"n": 5})
            del capsule  # nobody took it
        session.bind({"n": 5})
        with self.assertRaises(BufferError):
            session.view("x").__dlpack__(copy=True)
        with self.assertRaises(BufferError):
            session.view("x").__dlpack__(dl_device=(2, 0))

        for dtype in "float32 float64 float16 int8 uint8 int16 uint16 int32 uint32 int64 uint64".split():
            given = numpy.arange(6).astype(dtype).reshape(2, 3)
            tensor = berth.from_dlpack(given)
            numpy.testing.assert_array_equal(tensor.numpy(), given)
            numpy.testing.assert_array_equal(numpy.from_dlpack(tensor), given)
            self.assertTrue(numpy.shares_memory(tensor.numpy(), given))
        tensor = berth.from_dlpack(numpy.arange(12, dtype="f4").reshape(3, 4).T[::2])
        self.assertEqual((tensor.shape, tensor.strides), ((2, 3), (8, 16)))
        numpy.testing.assert_array_equal(tensor.numpy(), numpy.arange(12, dtype="f4").reshape(3, 4).T[::2])
        with self.assertRaises(BufferError):
            memoryview(tensor).cast("B") if False else doubled().run(None, {"x": _Strided()})

    def test_wrong_capsules_are_refused(self):
        class Wrong:
            def __init__(self, gives):
                self.gives = gives

            def __dlpack__(self, **options):
                if isinstance(self.gives, Exception):
                    raise self.gives
                return self.gives

        session = doubled({"n": 2})
        taken = numpy.ones(2, "f4").__dlpack__()
        numpy.from_dlpack(Wrong(taken)) if hasattr(Wrong, "__dlpack_device__") else None
        for gives in (None, 3, object(), RuntimeError("no"), numpy.ones(2, "complex64").__dlpack__()):
            with self.assertRaises((BufferError, RuntimeError, TypeError)):
                berth.from_dlpack(Wrong(gives))
            with self.assertRaises((BufferError, RuntimeError, TypeError)):
                session.run(None, {"x": Wrong(gives)})
        with self.assertRaises(AttributeError):
            berth.from_dlpack(3)

    def test_outputs_are_read_into_what_is_like_them(self):
        graph = berth.Graph()
        x = graph.input("x", "f32", [2, 2])
        graph.output("y", x + x)
        session = graph.session(threads=1)
        session.run(None, {"x": numpy.float32([[1, 2], [3, 4]])})
        place = numpy.zeros((2, 2), "f4")
        session.read_into("y", place)
        self.assertEqual(place.tolist(), [[2, 4], [6, 8]])
        for place in (numpy.full((2, 1), None, object), numpy.zeros((2, 2), "i4"), numpy.zeros((2, 1), "f8"),
                      numpy.zeros((2, 2), ">f4"), numpy.zeros(4, "f4"), bytearray(16)):
            before = bytes(place)
            with self.subTest(before), self.assertRaises(berth.InvalidArgument):
                session.read_into("y", place)
            self.assertEqual(bytes(place), before)
        for place in (numpy.zeros((2, 4), "f4")[:, ::2], session.view("y"), b"0123456789abcdef", 3):
            with self.subTest(type(place).__name__), self.assertRaises((BufferError, ValueError, AttributeError)):
                session.read_into("y", place)
        binding = session.io_binding()
        binding.bind_cpu_input("x", numpy.float32([[1, 2], [3, 4]]))
        binding.bind_ortvalue_output("y", berth.OrtValue.ortvalue_from_shape_and_type([2, 2], numpy.int32))
        with self.assertRaisesRegex(berth.InvalidArgument, r"output 'y' is f32\[2, 2\], but the place for it is i32"):
            binding.run()

    def test_memory_of_a_gpu_is_for_inputs_alone(self):
        there = _berth.tensor_at(4096, True, 0, "f32", (2,))  # nothing that the host could read
        graph = berth.Graph()
        x = graph.input("x", "f32", [2])
        graph.output("y", x + graph.param("w", "f32", [2]))
        session = graph.session(threads=1)
        for call in (lambda: graph.constant(there), lambda: graph.fix("x", there),
                     lambda: session.set_param("w", there), lambda: berth.save_weights(os.devnull, {"w": there})):
            with self.assertRaisesRegex(BufferError, "lies on a GPU"):
                call()
        with self.assertRaises(berth.InvalidArgument):
            _berth.tensor_at(4096, True, -1, "f32", (2,))
        for shape in ((1 << 62, 4), (1 << 32, 1 << 32), (1 << 61,)):
            with self.subTest(shape), self.assertRaises(berth.InvalidArgument):
                _berth.tensor_at(4096, False, 0, "f32", shape)
        self.assertEqual(_berth.tensor_at(0, False, 0, "f32", (0, 1 << 40)).nbytes, 0)


class _Strided:
    """DLPack alone, not in C order."""

    def __dlpack__(self, **options):
        return numpy.arange(12, dtype="f4")[::2].__dlpack__()
