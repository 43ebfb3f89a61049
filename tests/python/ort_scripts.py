"""A script as people write them for ONNX Runtime, with the import changed."""

import os
import unittest

import numpy as np

import berth as ort

NODES = os.environ.get("BERTH_ONNX_DATA", "/usr/share/libonnx-testdata/data/node")


class Scripts(unittest.TestCase):
    def model(self, name):
        path = os.path.join(NODES, name, "model.onnx")
        if not os.path.exists(path):
            self.skipTest(f"{NODES} is not there (Debian: libonnx-testdata)")
        return path

    def test_a_script(self):
        options = ort.SessionOptions()
        options.intra_op_num_threads = 1
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
        session = ort.InferenceSession(
            self.model("test_matmul_2d"), sess_options=options,
            providers=["CUDAExecutionProvider", "CPUExecutionProvider"],
        )
        inputs, outputs = session.get_inputs(), session.get_outputs()
        self.assertEqual([(i.name, i.type, i.shape) for i in inputs],
                         [("a", "tensor(float)", [3, 4]), ("b", "tensor(float)", [4, 3])])
        self.assertEqual(outputs[0].shape, [3, 3])
        feeds = {i.name: np.random.rand(*i.shape).astype(np.float32) for i in inputs}
        result = session.run([o.name for o in outputs], feeds)
        np.testing.assert_allclose(result[0], feeds["a"] @ feeds["b"], rtol=1e-4)
        self.assertEqual(session.threads, 1)
        self.assertIn(session.get_providers()[0], ort.get_available_providers())
        self.assertTrue(session.get_modelmeta().graph_name)
        self.assertIn(ort.get_device(), ("CPU", "GPU"))
        with self.assertRaises(ValueError):
            ort.InferenceSession(self.model("test_matmul_2d"), providers=["NoSuchExecutionProvider"])

    def test_bytes_and_paths(self):
        import pathlib

        path = pathlib.Path(self.model("test_relu"))
        x = np.linspace(-1, 1, 60, dtype=np.float32).reshape(3, 4, 5)
        for model in (path, str(path), path.read_bytes()):
            session = ort.InferenceSession(model)
            np.testing.assert_array_equal(session.run(None, {"x": x})[0], np.maximum(x, 0))

    def test_io_binding(self):
        session = ort.InferenceSession(self.model("test_relu"), threads=1)
        x = np.linspace(-1, 1, 60, dtype=np.float32).reshape(3, 4, 5)
        binding = session.io_binding()
        binding.bind_cpu_input("x", x)
        binding.bind_output("y")
        session.run_with_iobinding(binding)
        np.testing.assert_array_equal(binding.copy_outputs_to_cpu()[0], np.maximum(x, 0))
        np.testing.assert_array_equal(binding.get_outputs()[0].numpy(), np.maximum(x, 0))

        value = ort.OrtValue.ortvalue_from_numpy(x)
        into = np.empty_like(x)
        binding = session.io_binding()
        binding.bind_input("x", "cpu", 0, np.float32, value.shape(), value.data_ptr())
        binding.bind_output("y", "cpu", 0, np.float32, into.shape, into.ctypes.data)
        session.run_with_iobinding(binding)
        np.testing.assert_array_equal(into, np.maximum(x, 0))

        binding = session.io_binding()
        binding.bind_ortvalue_input("x", value)
        out = ort.OrtValue.ortvalue_from_shape_and_type([3, 4, 5], np.float32)
        binding.bind_ortvalue_output("y", out)
        session.run_with_iobinding(binding)
        np.testing.assert_array_equal(out.numpy(), np.maximum(x, 0))
        self.assertEqual((out.data_type(), out.device_name(), out.is_tensor()), ("tensor(float)", "cpu", True))
        np.testing.assert_array_equal(session.run_with_ort_values(None, {"x": value})[0].numpy(), np.maximum(x, 0))
        out.update_inplace(x)
        np.testing.assert_array_equal(np.from_dlpack(out), x)
        binding.clear_binding_outputs()
        binding.clear_binding_inputs()
        with self.assertRaises(ort.InvalidArgument):
            session.run_with_iobinding(binding)
        with self.assertRaises(ort.Unsupported):
            binding.bind_output("y", "cuda")

    def test_inputs_whose_elements_decide_shapes(self):
        session = ort.InferenceSession(self.model("test_reshape_reordered_all_dims"), threads=1)
        data = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
        for shape in ([4, 2, 3], [24, 1, 1], [4, 2, 3]):
            [got] = session.run(None, {"data": data, "shape": np.array(shape, np.int64)})
            np.testing.assert_array_equal(got, data.reshape(shape))
        self.assertGreater(session.plan.arena_size, 0)
        self.assertEqual([i.name for i in session.get_inputs()], ["data", "shape"])
        with self.assertRaisesRegex(ort.InvalidArgument, "'shape' is missing"):
            session.run(None, {"data": data})
