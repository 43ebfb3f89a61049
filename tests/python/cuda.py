"""Inputs and outputs in memory of CUDA. A library plays the driver (tests/device/fake_cuda), whose device memory is
memory of the host."""

import ctypes
import sys
import unittest

import numpy

import berth
import tap
from berth import _berth


class OnDevice:
    """What PyTorch's tensors have: DLPack, on a GPU."""

    def __init__(self, array, device=(2, 0)):
        self.memory = numpy.ascontiguousarray(array)
        self.tensor = _berth.tensor_at(self.memory.ctypes.data, True, device[1], self.memory.dtype, self.memory.shape)

    def __dlpack__(self, **options):
        return self.tensor.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()


def at(tensor):
    """What lies at the address of a tensor, as the driver would see it."""
    memory = (ctypes.c_char * tensor.nbytes).from_address(tensor.address)
    return numpy.frombuffer(memory, numpy.float32)


class Cuda(unittest.TestCase):
    def doubled(self, dims={"n": 4}, device="cuda"):
        graph = berth.Graph()
        x = graph.input("x", "f32", ["n"])
        graph.output("y", x + x)
        return berth.InferenceSession(graph, dims=dims, device=device)

    def test_views_are_on_the_device(self):
        session = self.doubled()
        x, y = session.view("x"), session.view("y")
        self.assertEqual((x.__dlpack_device__(), y.__dlpack_device__()), ((2, 0), (2, 0)))
        at(x)[:] = [1, 2, 3, 4]
        session.execute()
        self.assertEqual(at(y).tolist(), [2, 4, 6, 8])
        self.assertEqual(session.read("y").tolist(), [2, 4, 6, 8])
        with self.assertRaisesRegex(BufferError, "not in memory that the host can address"):
            memoryview(y)
        shown = berth.from_dlpack(y)
        self.assertEqual((shown.address, shown.readonly), (y.address, False))  # before version 1 nobody can say so
        with self.assertRaisesRegex(BufferError, "views .* are alive"):
            session.bind({"n": 8})

    def test_what_is_given_may_be_on_the_device(self):
        session = self.doubled()
        for values in ([1, 2, 3, 4], [5, 6, 7]):  # another shape is bound on the way
            given = OnDevice(numpy.float32(values))
            self.assertEqual(session.run(None, {"x": given})[0].tolist(), [2 * v for v in values])
        session.feed({"x": numpy.float32([1, 1, 1])})
        session.execute()
        own = session.view("x")
        self.assertEqual(session.run(None, {"x": own})[0].tolist(), [2, 2, 2])

    def test_outputs_can_be_read_into_memory_of_the_device(self):
        session = self.doubled()
        session.run(None, {"x": numpy.float32([1, 2, 3, 4])})
        there, here = OnDevice(numpy.zeros(4, numpy.float32)), numpy.zeros(4, numpy.float32)
        session.read_into("y", there)
        session.read_into("y", here)
        self.assertEqual((there.memory.tolist(), here.tolist()), ([2, 4, 6, 8], [2, 4, 6, 8]))
        for place in (OnDevice(numpy.zeros(3, numpy.float32)), numpy.zeros(5, numpy.float32)):
            with self.assertRaisesRegex(berth.InvalidArgument, r"is f32\[4\], but the place for it is f32"):
                session.read_into("y", place)
        with self.assertRaisesRegex(BufferError, "read-only"):
            session.read_into("y", self.doubled().view("y"))
        here.flags.writeable = False
        with self.assertRaises((BufferError, ValueError)):
            session.read_into("y", here)

    def test_io_binding_keeps_outputs_there(self):
        session = self.doubled()
        given, taken = OnDevice(numpy.float32([1, 2, 3, 4])), numpy.zeros(4, numpy.float32)
        binding = session.io_binding()
        binding.bind_input("x", "cuda", 0, numpy.float32, [4], given.memory.ctypes.data)
        binding.bind_output("y", "cuda")
        for _ in range(2):
            session.run_with_iobinding(binding)
            [value] = binding.get_outputs()
            self.assertEqual((value.device_name(), value.__dlpack_device__()), ("cuda", (2, 0)))
            self.assertEqual(value.numpy().tolist(), [2, 4, 6, 8])
            self.assertEqual(binding.copy_outputs_to_cpu()[0].tolist(), [2, 4, 6, 8])
            del value
        binding.clear_binding_outputs()
        binding.bind_output("y", "cuda", 0, numpy.float32, [4], taken.ctypes.data)
        session.run_with_iobinding(binding)
        self.assertEqual(taken.tolist(), [2, 4, 6, 8])
        [value] = binding.get_outputs()
        self.assertEqual(value.numpy().tolist(), [2, 4, 6, 8])
        session.run(None, {"x": numpy.float32([0, 0, 0, 1])})
        with self.assertRaisesRegex(berth.Unsupported, "has run since it wrote 'y' there"):
            value.numpy()

    def test_what_cannot_be_reached_is_refused(self):
        session = self.doubled()
        with self.assertRaisesRegex(berth.Unsupported, "that of GPU 1, and the arena lies on GPU 0"):
            session.run(None, {"x": OnDevice(numpy.float32([1, 2, 3, 4]), (2, 1))})
        other = self.doubled(device="cuda:1")
        self.assertEqual(other.view("y").__dlpack_device__(), (2, 1))
        on_host = self.doubled(device="cpu")
        with self.assertRaisesRegex(berth.Unsupported, "device 'cpu' cannot address"):
            on_host.run(None, {"x": OnDevice(numpy.float32([1, 2, 3, 4]))})
        with self.assertRaisesRegex(berth.Unsupported, "the session's outputs lie on 'cpu'"):
            on_host.io_binding().bind_output("y", "cuda")


if __name__ == "__main__":
    sys.exit(tap.run(unittest.defaultTestLoader.loadTestsFromTestCase(Cuda)))
