/* The module: its single context, its functions, and the creation of its types. */
#include <stdatomic.h>
#include <stdlib.h>

#include "py.h"

berth_context *py_context;
static int64_t module_interpreter;
static _Atomic(uint64_t) module_bytes; /* bytes allocated by the library */

/* The C library's allocator with a counter: tests and users can check that closed objects are freed. */
static void *module_alloc(void *user, void *ptr, size_t old_size, size_t new_size) {
  (void)user;
  if (new_size == 0) {
    free(ptr);
    if (ptr != NULL) atomic_fetch_sub(&module_bytes, old_size);
    return NULL;
  }
  void *block = ptr == NULL ? malloc(new_size) : realloc(ptr, new_size);
  if (block == NULL) return NULL;
  atomic_fetch_add(&module_bytes, new_size);
  if (ptr != NULL) atomic_fetch_sub(&module_bytes, old_size);
  return block;
}

PyObject *py_string(const char *text) {
  if (text == NULL) text = "";
  return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
}

berth_status py_text_write(void *list, const char *text, size_t size) {
  PyGILState_STATE state;
  py_callback_enter(&state);
  PyObject *piece = PyBytes_FromStringAndSize(text, (Py_ssize_t)size);
  const int failed = piece == NULL || PyList_Append(list, piece) < 0;
  Py_XDECREF(piece);
  if (failed) PyErr_Clear();
  py_callback_leave(state);
  return failed ? BERTH_NOMEM : BERTH_OK;
}

PyObject *py_text_join(PyObject *list) {
  PyObject *empty = PyBytes_FromStringAndSize(NULL, 0);
  PyObject *bytes = empty != NULL ? PyObject_CallMethod(empty, "join", "O", list) : NULL;
  PyObject *text = bytes != NULL ? PyUnicode_FromEncodedObject(bytes, "utf-8", "replace") : NULL;
  Py_XDECREF(empty);
  Py_XDECREF(bytes);
  return text;
}

void *py_keep(PyObject *keep, size_t size) {
  if (size > (size_t)PY_SSIZE_T_MAX) {
    PyErr_NoMemory();
    return NULL;
  }
  PyObject *block = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)size);
  if (block == NULL) return NULL;
  const int failed = PyList_Append(keep, block) < 0;
  Py_DECREF(block);
  return failed ? NULL : PyBytes_AsString(block);
}

PyObject *py_keep_dict(PyObject *keep, PyObject *dict) {
  PyObject *copy = PyDict_Copy(dict);
  if (copy == NULL) return NULL;
  const int failed = PyList_Append(keep, copy) < 0;
  Py_DECREF(copy);
  return failed ? NULL : copy;
}

PyTypeObject *py_type(PyObject *module, PyType_Spec *spec) {
  PyObject *type = PyType_FromSpec(spec);
  if (type == NULL || PyModule_AddObjectRef(module, strrchr(spec->name, '.') + 1, type) < 0) return NULL;
  return (PyTypeObject *)type;
}

/* ---- Small functions ---- */

static PyObject *module_devices(PyObject *module, PyObject *unused) {
  (void)module, (void)unused;
  PyObject *list = PyList_New(0);
  const uint32_t n = berth_device_count(py_context);
  for (uint32_t i = 0; list != NULL && i < n; i++) {
    berth_device_info info = BERTH_DEVICE_INFO_INIT;
    berth_error err = {BERTH_OK, ""};
    berth_status status;
    Py_BEGIN_ALLOW_THREADS; /* may query drivers */
    status = berth_device_at(py_context, i, &info, &err);
    Py_END_ALLOW_THREADS;
    PyObject *item = status != BERTH_OK
                         ? py_fail(&err)
                         : Py_BuildValue("{s:s,s:N,s:N,s:N,s:K}", "name", info.name, "description",
                                         py_string(info.description), "available", PyBool_FromLong(info.available),
                                         "reason", py_string(info.reason), "memory", (unsigned long long)info.memory);
    if (item == NULL || PyList_Append(list, item) < 0) Py_CLEAR(list);
    Py_XDECREF(item);
  }
  return list;
}

static PyObject *module_ops(PyObject *module, PyObject *unused) {
  (void)module, (void)unused;
  PyObject *list = PyList_New(0);
  const uint32_t n = berth_op_count(py_context);
  for (uint32_t i = 0; list != NULL && i < n; i++) {
    PyObject *name = py_string(berth_op_name(py_context, i));
    if (name == NULL || PyList_Append(list, name) < 0) Py_CLEAR(list);
    Py_XDECREF(name);
  }
  return list;
}

static PyObject *module_memory(PyObject *module, PyObject *unused) {
  (void)module, (void)unused;
  return PyLong_FromUnsignedLongLong(atomic_load(&module_bytes));
}

static PyObject *module_type_size(PyObject *module, PyObject *name) {
  (void)module;
  berth_type type;
  return py_type_from(name, &type) < 0 ? NULL : PyLong_FromSize_t(berth_type_size(type));
}

/* Without this check other interpreters would get the same module, with objects of the first one. */
static PyObject *module_check_interpreter(PyObject *module, PyObject *unused) {
  (void)module, (void)unused;
  if (PyInterpreterState_GetID(PyInterpreterState_Get()) == module_interpreter) Py_RETURN_NONE;
  PyErr_SetString(PyExc_ImportError, "berth can be imported by one interpreter of a process");
  return NULL;
}

static PyMethodDef module_methods[] = {
    {"check_interpreter", module_check_interpreter, METH_NOARGS,
     "check_interpreter()\n\nFails in all interpreters of a process but the first that imported berth."},
    {"devices", module_devices, METH_NOARGS,
     "devices() -> list of dict\n\nWhat this machine can run on: name, description, available, reason, memory."},
    {"op_names", module_ops, METH_NOARGS, "op_names() -> list of str\n\nThe ops that a graph can have."},
    {"memory_in_use", module_memory, METH_NOARGS,
     "memory_in_use() -> int\n\nBytes that the library has from the C library's allocator. The arenas of sessions come "
     "on top (`plan.arena_size`)."},
    {"type_size", module_type_size, METH_O, "type_size(type) -> int\n\nBytes of one element; 0 for types in blocks."},
    {"from_dlpack", py_from_dlpack, METH_O,
     "from_dlpack(object) -> Tensor\n\nShows the memory of anything that has `__dlpack__`, without a copy."},
    {"tensor_at", py_tensor_at, METH_VARARGS,
     "tensor_at(address, on_cuda, index, type, shape) -> Tensor\n\nShows memory at an address, which must stay "
     "valid."},
    {"register_op", PY_METHOD(py_op_register), METH_VARARGS | METH_KEYWORDS,
     "register_op(name, inputs, outputs, attrs, infer, kernel, in_place=0)\n\nWhat `berth.op` is made of."},
    {"save_weights", py_save_weights, METH_VARARGS,
     "save_weights(path, tensors, types=None)\n\nWrites a dict of arrays as a safetensors file, which is whole at "
     "every "
     "moment. types: a dict of\nthe element types of arrays that come as bits, {name: \"bf16\"} of uint16."},
    {"save_model", py_save_model, METH_VARARGS,
     "save_model(model, path, tensors, types=None)\n\nWrites an ONNX model with the data of its initializers "
     "replaced."},
    {"load_weights", py_load_weights, METH_O,
     "load_weights(path) -> dict\n\nThe tensors of a safetensors or GGUF file, by name."},
    {"pack", PY_METHOD(py_pack), METH_VARARGS | METH_KEYWORDS,
     "pack(buffers, capacity=None, effort=0, seed=0) -> dict\n\nWhat `berth.pack` is made of."},
    {"pack_picture", PY_METHOD(py_pack_picture), METH_VARARGS | METH_KEYWORDS,
     "pack_picture(buffers, offsets, names=None, kind='svg') -> str\n\nA picture of a packing."},
    {NULL, NULL, 0, NULL}};

static struct PyModuleDef module_def = {PyModuleDef_HEAD_INIT,
                                        "berth._berth",
                                        "The C part of berth; `help(berth)` describes what it is for.",
                                        -1,
                                        module_methods,
                                        NULL,
                                        NULL,
                                        NULL,
                                        NULL};

static int module_fill(PyObject *module) {
  berth_context_desc desc = BERTH_CONTEXT_DESC_INIT;
  berth_error err = {BERTH_OK, ""};
  desc.alloc = module_alloc;
  if (py_errors_init(module) < 0) return -1;
  if (berth_context_create(&desc, &py_context, &err) != BERTH_OK) {
    py_fail(&err);
    return -1;
  }
  if (PyModule_AddStringConstant(module, "__version__", berth_version()) < 0) return -1;
  if (py_guard_init_module() < 0 || py_tensor_init(module) < 0 || py_graph_init(module) < 0) return -1;
  if (py_plan_init(module) < 0 || py_session_init_type(module) < 0) return -1;
  return py_generator_init(module) < 0 ? -1 : py_embedder_init(module);
}

PyMODINIT_FUNC PyInit__berth(void) {
  if (py_context != NULL) {
    PyErr_SetString(PyExc_ImportError, "berth can be imported by one interpreter of a process");
    return NULL;
  }
  module_interpreter = PyInterpreterState_GetID(PyInterpreterState_Get());
  PyObject *module = PyModule_Create(&module_def);
  if (module != NULL && module_fill(module) < 0) Py_CLEAR(module);
  return module;
}
