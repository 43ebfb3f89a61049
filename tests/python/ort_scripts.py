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


def model_of_text():
    """Token ids and a mask in, one vector of each text out: what sentence embeddings end with."""
    table = np.random.default_rng(3).normal(size=(11, 4)).astype(np.float32)
    graph = ort.Graph("embed")
    ids = graph.input("input_ids", "i64", ["batch", "sequence"])
    mask = graph.input("attention_mask", "i64", ["batch", "sequence"]).cast(to="f32")
    words = graph.constant(table, "f32").gather(ids, axis=0) * mask.reshape(shape=[0, 0, 1])
    total = mask.reduce_sum(axes=[1], keepdims=1)
    graph.output("last_hidden_state", words)
    graph.output("sentence_embedding", words.reduce_sum(axes=[1], keepdims=0) / total)
    return graph.text().encode(), table


class RealScripts(unittest.TestCase):
    """The kinds of scripts that there are: nothing in them is berth's but the import."""

    def test_classifying_images(self):
        def preprocess(image):
            return np.expand_dims(image.astype("float64") / 255.0 * 16, 0).transpose(0, 3, 1, 2).astype(np.float32)

        options = ort.SessionOptions()
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
        options.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        providers = ["TensorrtExecutionProvider", ("CPUExecutionProvider", {})]
        with self.assertWarnsRegex(UserWarning, "TensorrtExecutionProvider"):
            session = ort.InferenceSession(
                path_or_bytes="examples/digits/digits.berth", sess_options=options, providers=providers,
                disabled_optimizers=["EliminateDropout"],
            )
        name = session.get_inputs()[0].name
        samples, labels = np.load("examples/digits/samples.npy"), np.load("examples/digits/samples_labels.npy")
        for sample, label in zip(samples[:5], labels):
            image = np.uint8(sample.reshape(8, 8, 1) / 16 * 255 + 0.5)
            scores = session.run([session.get_outputs()[1].name], {name: preprocess(image)})[0]
            self.assertEqual(int(np.argsort(np.squeeze(scores))[::-1][0]), label)
        with self.assertRaisesRegex(ort.capi.onnxruntime_pybind11_state.InvalidArgument, "u8.8, 8, 1. was given"):
            session.run(None, {name: image})
        with self.assertRaisesRegex(ValueError, "'image' is missing from the feed, which has 'data'"):
            session.run(None, {"data": preprocess(image)})

    def test_embedding_texts_with_a_binding(self):
        model, table = model_of_text()
        session = ort.InferenceSession(model, providers=["CPUExecutionProvider"])
        binding = session.io_binding()
        draw = np.random.default_rng(4)
        for batch, sequence in ((1, 3), (2, 7), (1, 3), (3, 1)):
            ids = draw.integers(0, 11, (batch, sequence))
            mask = np.ones_like(ids)
            mask[:, sequence // 2 + 1 :] = 0
            binding.bind_cpu_input("input_ids", ids)
            binding.bind_ortvalue_input("attention_mask", ort.OrtValue.ortvalue_from_numpy(mask))
            binding.bind_output("sentence_embedding", "cpu")
            session.run_with_iobinding(binding)
            [value] = binding.get_outputs()
            wanted = (table[ids] * mask[..., None]).sum(1) / mask.sum(1, keepdims=True)
            np.testing.assert_allclose(value.numpy(), wanted, rtol=1e-5, atol=1e-6)
            self.assertEqual((value.shape(), value.data_type(), value.element_type()), ([batch, 4], "tensor(float)", 1))
            self.assertIn("tensor(float)", repr(value))
        kept = value.numpy()
        before = kept.copy()
        session.run_with_iobinding(binding)
        np.testing.assert_array_equal(kept, before)  # what was handed out stays as it is
        into = ort.OrtValue.ortvalue_from_shape_and_type([batch, 4], 1)  # onnx.TensorProto.FLOAT
        binding.bind_ortvalue_output("sentence_embedding", into)
        session.run_with_iobinding(binding)
        np.testing.assert_array_equal(into.numpy(), before)

    def test_an_audio_stream(self):
        graph = ort.Graph("stream")
        x, state = graph.input("input", "f32", ["n", 4]), graph.input("state", "f32", ["n", 4])
        graph.input("sr", "i64", [])
        after = state * 0.5 + x
        graph.output("output", after.sigmoid())
        graph.output("stateN", after)
        session = ort.InferenceSession(graph.text().encode())
        state = wanted = np.zeros((1, 4)).astype("float32")
        audio = np.sin(np.arange(400) * 0.1).astype("float32")
        for at in range(0, len(audio), 4):
            chunk = audio[None, at : at + 4]
            out, state = session.run(None, {"input": chunk, "state": state, "sr": np.array(16000, dtype="int64")})
            wanted = wanted * np.float32(0.5) + chunk
            np.testing.assert_allclose(state, wanted, rtol=1e-5, atol=1e-6)
            np.testing.assert_allclose(out, 1 / (1 + np.exp(-wanted)), rtol=1e-5)


class Options(unittest.TestCase):
    def session(self, **keywords):
        return ort.InferenceSession(model_of_text()[0], **keywords)

    def feeds(self):
        return {"input_ids": np.ones((1, 3), np.int64), "attention_mask": np.ones((1, 3), np.int64)}

    def test_extents_and_threads(self):
        options = ort.SessionOptions()
        options.intra_op_num_threads = 1
        options.add_free_dimension_override_by_name("batch", 2)
        options.add_free_dimension_override_by_name("sequence", 5)
        options.add_free_dimension_override_by_name("of_another_model", 5)
        session = self.session(sess_options=options)
        self.assertEqual((session.dims, session.threads), ({"batch": 2, "sequence": 5}, 1))
        self.assertIs(session.get_session_options(), options)

    def test_what_is_not_supported_is_said(self):
        options = ort.SessionOptions()
        for call in (lambda: options.register_custom_ops_library("ops.so"), lambda: options.add_initializer("w", None),
                     lambda: options.add_free_dimension_override_by_denotation("DATA_BATCH", 1),
                     lambda: self.session().end_profiling(), lambda: self.session().set_providers(["interp"])):
            with self.assertRaises((ort.Unsupported, ort.InvalidArgument)):
                call()
        options.enable_profiling = True
        options.optimized_model_filepath = "optimised.onnx"
        with self.assertWarnsRegex(UserWarning, "profile"):
            self.session(sess_options=options)
        with self.assertWarnsRegex(UserWarning, "optimised.onnx"):
            self.session(sess_options=options)
        with self.assertRaisesRegex(ort.InvalidArgument, "no entry 'a'"):
            options.get_session_config_entry("a")
        with self.assertRaises(TypeError):
            self.session(providers="CPUExecutionProvider")
        with self.assertRaises(TypeError):
            self.session().run(None, self.feeds(), {"terminate": True})

    def test_a_provider_that_is_not_here(self):
        with self.assertWarns(UserWarning):
            session = self.session(providers=["ROCMExecutionProvider"])
        self.assertEqual(session.get_providers(), ["CPUExecutionProvider"])
        self.assertEqual(session.get_provider_options(), {"CPUExecutionProvider": {}})
        session.set_providers(["CPUExecutionProvider"])

    def test_terminate(self):
        session, options = self.session(), ort.RunOptions()
        self.assertEqual(len(session.run(None, self.feeds(), options)), 2)
        options.terminate = True
        for _ in range(2):
            with self.assertRaises(ort.Cancelled):
                session.run(None, self.feeds(), run_options=options)
        self.assertEqual(len(session.run(None, self.feeds())), 2)  # others go on
        options.terminate = False
        self.assertEqual(len(session.run(None, self.feeds(), options)), 2)

    def test_terminate_while_it_runs(self):
        import threading

        started, options = threading.Event(), ort.RunOptions()

        @ort.op("test.until_terminated")
        def wait(x, y):
            started.set()
            for _ in range(1000):
                if options.terminate:
                    break
                threading.Event().wait(0.01)
            y[...] = x

        graph = ort.Graph()
        x = graph.add("test.until_terminated", graph.input("x", "f32", [2]))
        for _ in range(3):
            x = graph.add("test.until_terminated", x)
        graph.output("y", x)
        session = graph.session(threads=1)
        stopper = threading.Thread(target=lambda: (started.wait(), setattr(options, "terminate", True)))
        stopper.start()
        with self.assertRaises(ort.Cancelled):
            session.run(None, {"x": [1.0, 2.0]}, options)
        stopper.join()
        self.assertEqual(session.run(None, {"x": [1.0, 2.0]})[0].tolist(), [1, 2])  # nothing is left of it

    def test_run_async(self):
        import queue

        said, session = queue.Queue(), self.session()
        session.run_async(None, self.feeds(), lambda *what: said.put(what), "mine")
        results, data, error = said.get(timeout=60)
        self.assertEqual((len(results), data, error), (2, "mine", ""))
        session.run_async(None, {}, lambda *what: said.put(what))
        results, data, error = said.get(timeout=60)
        self.assertEqual((results, data), ([], None))
        self.assertIn("missing", error)

    def test_what_a_model_says_of_itself(self):
        path = os.path.join(NODES, "test_relu", "model.onnx")
        if not os.path.exists(path):
            self.skipTest(f"{NODES} is not there (Debian: libonnx-testdata)")
        names = b"{0: 'cat', 1: 'dog'}"
        pair = b"\x0a\x05names\x12" + bytes([len(names)]) + names  # a StringStringEntryProto
        with open(path, "rb") as file:
            model = file.read() + b"\x72" + bytes([len(pair)]) + pair + b"\x32\x04what\x28\x07"
        meta = ort.InferenceSession(model).get_modelmeta()
        self.assertEqual(meta.custom_metadata_map, {"names": names.decode()})
        self.assertEqual((meta.description, meta.version, meta.producer_name), ("what", 7, "backend-test"))
        self.assertEqual(ort.InferenceSession(path).get_modelmeta().custom_metadata_map, {})
        self.assertEqual(self.session().get_modelmeta().graph_name, "embed")

    def test_names_that_scripts_import(self):
        from berth.capi.onnxruntime_pybind11_state import Fail, InvalidArgument, NoSuchFile, NotImplemented

        with self.assertRaises(NoSuchFile):
            ort.InferenceSession("no_such_file.onnx")
        self.assertTrue(issubclass(InvalidArgument, Fail) and issubclass(NotImplemented, Fail))
        ort.set_default_logger_severity(3)
        ort.disable_telemetry_events()
        self.assertIn("CPUExecutionProvider", ort.get_all_providers())
        self.assertIn(ort.__version__, ort.get_build_info())
