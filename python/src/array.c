/* Input arrays: anything with elements in C order, through the buffer protocol or DLPack, and whatever numpy can
 * convert to an array. */
#include "py.h"

PyObject *py_numpy(py_numpy_function function) {
  static const char *const names[PY_N_NUMPY] = {"empty", "asarray", "ascontiguousarray", "dtype"};
  static PyObject *functions[PY_N_NUMPY];
  static int is_missing;
  if (functions[function] != NULL || is_missing) return functions[function];
  PyObject *numpy = PyImport_ImportModule("numpy");
  if (numpy == NULL) {
    if (!PyErr_ExceptionMatches(PyExc_ImportError)) return NULL;
    PyErr_Clear();
    is_missing = 1;
    return NULL;
  }
  functions[function] = PyObject_GetAttrString(numpy, names[function]); /* never released */
  Py_DECREF(numpy);
  return functions[function];
}

void py_array_release(py_array *array) {
  if (array->has_buffer) PyBuffer_Release(&array->buffer);
  array->has_buffer = 0;
  Py_CLEAR(array->holder);
}

/* Some encodings serve two types: bf16 is given as u16, blocks as bytes. */
static berth_type array_type(berth_type given, berth_type wanted) {
  return (given == BERTH_U16 && wanted == BERTH_BF16) ? BERTH_BF16 : given;
}

static int array_open(PyObject *object, berth_type wanted, int flags, py_array *out) {
  if (PyObject_GetBuffer(object, &out->buffer, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | flags) < 0) return -1;
  const Py_buffer *b = &out->buffer;
  out->has_buffer = 1;
  out->type = array_type(py_type_of_format(b->format, b->itemsize), wanted);
  if (out->type == BERTH_TYPE_NONE || b->ndim > BERTH_MAX_RANK) {
    py_invalid("elements of the format '%.20s' in %d axes are not what berth computes with", b->format, b->ndim);
    py_array_release(out);
    return -1;
  }
  out->rank = (uint32_t)b->ndim;
  for (int i = 0; i < b->ndim; i++) out->dim[i] = b->shape[i];
  out->data = b->buf;
  out->size = (uint64_t)b->len;
  return 0;
}

static int array_from_buffer(PyObject *object, berth_type wanted, py_array *out) {
  return array_open(object, wanted, 0, out);
}

/* Converted by numpy, in C order; a new reference. */
static PyObject *array_from_numpy(PyObject *object, berth_type wanted, int is_buffer) {
  PyObject *make = py_numpy(is_buffer ? PY_NUMPY_ASCONTIGUOUSARRAY : PY_NUMPY_ASARRAY);
  if (make == NULL) {
    if (!PyErr_Occurred())
      PyErr_SetString(PyExc_TypeError, "an array is needed: something with the buffer protocol or __dlpack__");
    return NULL;
  }
  if (is_buffer || wanted == BERTH_TYPE_NONE) return PyObject_CallFunctionObjArgs(make, object, NULL);
  return PyObject_CallFunction(make, "Os", object, py_element_of(wanted)->numpy);
}

static int array_is_number(PyObject *object) {
  return PyList_Check(object) || PyTuple_Check(object) || PyFloat_Check(object) || PyLong_Check(object);
}

/* For bytes that are not in C order, or whose type the protocol cannot name. */
static int array_copy(PyObject *object, berth_type wanted, py_array *out) {
  PyObject *type, *value, *trace, *copy = NULL;
  PyErr_Fetch(&type, &value, &trace);
  if (wanted == BERTH_BF16) copy = PyObject_CallMethod(object, "view", "s", "uint16"); /* ml_dtypes */
  if (copy == NULL) {
    PyErr_Clear();
    copy = array_from_numpy(object, wanted, 1);
  }
  if (copy == NULL) {
    PyErr_Restore(type, value, trace);
    return -1;
  }
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(trace);
  if (array_from_buffer(copy, wanted, out) < 0) { /* the order was not the reason */
    Py_DECREF(copy);
    return -1;
  }
  out->holder = copy;
  return 0;
}

void py_array_memory(const py_array *array, berth_memory *out) {
  *out = (berth_memory)BERTH_MEMORY_INIT;
  out->kind = array->device == PY_ON_CUDA ? BERTH_MEMORY_CUDA : BERTH_MEMORY_HOST;
  out->index = (uint32_t)array->device_id;
  out->address = (uint64_t)(uintptr_t)array->data;
  out->size = array->size;
}

int py_has_host_buffer(PyObject *object) {
  const py_tensor *tensor = PyObject_TypeCheck(object, py_tensor_type) ? (const py_tensor *)(void *)object : NULL;
  return PyObject_CheckBuffer(object) && (tensor == NULL || tensor->device == PY_ON_HOST);
}

int py_array_get(PyObject *object, berth_type wanted, py_array *out) {
  out->has_buffer = 0;
  out->holder = NULL;
  out->device = PY_ON_HOST;
  out->device_id = 0;
  if (py_has_host_buffer(object)) {
    if (array_from_buffer(object, wanted, out) == 0) return 0;
    if (PyErr_ExceptionMatches(PyExc_BufferError) || PyErr_ExceptionMatches(PyExc_ValueError))
      return array_copy(object, wanted, out);
    return -1;
  }
  PyObject *asked = array_is_number(object) ? NULL : PyObject_GetAttrString(object, "__dlpack__");
  if (asked != NULL) {
    Py_DECREF(asked);
    out->holder = py_dlpack_open(object, out);
    return out->holder != NULL ? 0 : -1;
  }
  PyErr_Clear();
  PyObject *array = array_from_numpy(object, wanted, 0);
  if (array == NULL || array_from_buffer(array, wanted, out) < 0) {
    Py_XDECREF(array);
    return -1;
  }
  out->holder = array;
  return 0;
}

int py_array_get_place(PyObject *object, berth_type wanted, py_array *out) {
  memset(out, 0, sizeof *out);
  out->device = PY_ON_HOST;
  if (py_has_host_buffer(object)) return array_open(object, wanted, PyBUF_WRITABLE, out);
  if (PyObject_TypeCheck(object, py_tensor_type) && ((const py_tensor *)(void *)object)->is_readonly) {
    PyErr_SetString(PyExc_BufferError, "the tensor is read-only: only a run writes outputs");
    return -1;
  }
  out->holder = py_dlpack_open(object, out);
  return out->holder != NULL ? 0 : -1;
}

int py_array_get_host(PyObject *object, berth_type wanted, py_array *out) {
  if (py_array_get(object, wanted, out) < 0) return -1;
  if (out->device == PY_ON_HOST) return 0;
  PyErr_SetString(PyExc_BufferError, "what is given lies on a GPU, and only inputs of a run may: copy it to the host");
  py_array_release(out);
  return -1;
}
