/* Tensors: memory that other libraries can access through the buffer protocol and DLPack. A tensor in a session's arena
 * keeps the session, and the session counts it: as long as there is one, nothing moves. */
#include <stdlib.h>

#include "py.h"

PyTypeObject *py_tensor_type;

static py_tensor *tensor_alloc(berth_type type, uint32_t rank, const int64_t *dim, const int64_t *stride) {
  py_tensor *self = PyObject_New(py_tensor, py_tensor_type);
  if (self == NULL) return NULL;
  memset((char *)self + sizeof(PyObject), 0, sizeof *self - sizeof(PyObject));
  self->type = type;
  self->device = PY_ON_HOST;
  if (berth_type_size(type) == 0) { /* blocks are exposed as bytes */
    uint64_t count = 1;
    for (uint32_t i = 0; i < rank; i++) count *= (uint64_t)dim[i];
    self->size = berth_storage_bytes(berth_type_storage(type), count);
    self->rank = 1;
    self->dim[0] = (int64_t)self->size;
    self->shape[0] = (Py_ssize_t)self->size;
    self->stride[0] = 1;
    return self;
  }
  uint64_t size = berth_type_size(type);
  self->rank = rank;
  for (uint32_t i = rank; i-- > 0;) {
    self->dim[i] = dim[i];
    self->shape[i] = (Py_ssize_t)dim[i];
    self->stride[i] = stride != NULL ? (Py_ssize_t)stride[i] * (Py_ssize_t)berth_type_size(type) : (Py_ssize_t)size;
    size *= (uint64_t)dim[i];
  }
  self->size = size;
  return self;
}

py_tensor *py_tensor_new(berth_type type, uint32_t rank, const int64_t *dim) {
  py_tensor *self = tensor_alloc(type, rank, dim, NULL);
  if (self == NULL) return NULL;
  self->memory = self->data = calloc(1, self->size != 0 ? self->size : 1);
  if (self->memory != NULL) return self;
  Py_DECREF(PY_OBJECT(self));
  return (py_tensor *)PyErr_NoMemory();
}

py_tensor *py_tensor_view(void *data, berth_type type, uint32_t rank, const int64_t *dim, const int64_t *stride,
                          int is_readonly) {
  py_tensor *self = tensor_alloc(type, rank, dim, stride);
  if (self == NULL) return NULL;
  self->data = data;
  self->is_readonly = is_readonly;
  return self;
}

PyObject *py_tensor_at(PyObject *module, PyObject *args) {
  PyObject *name, *extents;
  unsigned long long address;
  int on_cuda, index;
  berth_type type;
  berth_shape shape;
  int64_t dim[BERTH_MAX_RANK];
  (void)module;
  if (!PyArg_ParseTuple(args, "KpiOO", &address, &on_cuda, &index, &name, &extents)) return NULL;
  if (py_type_from(name, &type) < 0 || py_shape_from(extents, &shape) < 0) return NULL;
  if (index < 0) return py_invalid("there is no GPU %d", index);
  int64_t most = PY_SSIZE_T_MAX / 8; /* elements, of the widest type */
  for (uint32_t i = 0; i < shape.rank; i++) {
    if (shape.dim[i].name != NULL || shape.dim[i].extent < 0)
      return py_invalid("the shape of memory at an address is made of extents that are not negative");
    dim[i] = shape.dim[i].extent;
    if (dim[i] > most) return py_invalid("no memory has so many elements");
    if (dim[i] > 1) most /= dim[i];
  }
  py_tensor *self = py_tensor_view((void *)(uintptr_t)address, type, shape.rank, dim, NULL, 0);
  if (self == NULL) return NULL;
  self->device = on_cuda ? PY_ON_CUDA : PY_ON_HOST;
  self->device_id = index;
  return (PyObject *)self;
}

PyObject *py_tensor_array(py_tensor *tensor) {
  if (tensor == NULL) return NULL;
  PyObject *asarray = py_numpy(PY_NUMPY_ASARRAY);
  if (asarray == NULL) return PyErr_Occurred() ? (Py_DECREF(PY_OBJECT(tensor)), NULL) : (PyObject *)tensor;
  PyObject *array = PyObject_CallFunctionObjArgs(asarray, (PyObject *)tensor, NULL);
  Py_DECREF(PY_OBJECT(tensor));
  return array;
}

/* Releases what it is a view of. */
static void tensor_let_go(py_tensor *self) {
  free(self->memory);
  self->memory = self->data = NULL;
  if (self->session != NULL) self->session->n_views--;
  Py_CLEAR(self->session);
  Py_CLEAR(self->keep);
}

static void tensor_dealloc(PyObject *object) {
  PyTypeObject *type = Py_TYPE(object);
  tensor_let_go((py_tensor *)object);
  PyObject_Free(object);
  Py_DECREF(type);
}

static int tensor_is_dead(const py_tensor *self) {
  if (self->data != NULL || self->size == 0) return 0;
  PyErr_SetString(PyExc_ValueError, "the tensor was released");
  return 1;
}

static int tensor_is_contiguous(const py_tensor *self) {
  Py_ssize_t step = (Py_ssize_t)(berth_type_size(self->type) != 0 ? berth_type_size(self->type) : 1);
  for (uint32_t i = self->rank; i-- > 0;) {
    if (self->dim[i] != 1 && self->stride[i] != step) return 0;
    step *= self->shape[i];
  }
  return 1;
}

static int tensor_get_buffer(PyObject *object, Py_buffer *view, int flags) {
  py_tensor *self = (py_tensor *)object;
  view->obj = NULL;
  if (tensor_is_dead(self)) return -1;
  if (self->device != PY_ON_HOST) {
    PyErr_SetString(PyExc_BufferError, "the tensor is not in memory that the host can address; use DLPack");
    return -1;
  }
  if ((flags & PyBUF_WRITABLE) != 0 && self->is_readonly) {
    PyErr_SetString(PyExc_BufferError, "the tensor is read-only: only a run writes outputs");
    return -1;
  }
  const int wants_order =
      (flags & PyBUF_C_CONTIGUOUS) == PyBUF_C_CONTIGUOUS || (flags & PyBUF_STRIDES) != PyBUF_STRIDES;
  if (wants_order && self->size != 0 && !tensor_is_contiguous(self)) {
    PyErr_SetString(PyExc_BufferError, "the tensor has strides");
    return -1;
  }
  const py_element *element = py_element_of(self->type);
  view->buf = self->data;
  view->obj = Py_NewRef(object);
  view->len = (Py_ssize_t)self->size;
  view->readonly = self->is_readonly;
  view->itemsize = (Py_ssize_t)(element->dl_bits / 8);
  view->format = flags & PyBUF_FORMAT ? (char *)(uintptr_t)element->format : NULL; /* the format is never written to */
  view->ndim = flags & PyBUF_ND ? (int)self->rank : 1;
  view->shape = flags & PyBUF_ND ? self->shape : NULL;
  view->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? self->stride : NULL;
  view->suboffsets = NULL;
  view->internal = NULL;
  self->n_exports++;
  return 0;
}

static void tensor_release_buffer(PyObject *object, Py_buffer *view) {
  (void)view;
  ((py_tensor *)object)->n_exports--;
}

static PyObject *tensor_release(PyObject *object, PyObject *unused) {
  py_tensor *self = (py_tensor *)object;
  (void)unused;
  if (self->n_exports > 0) {
    PyErr_Format(PyExc_BufferError, "%zd array%s still show%s the tensor", self->n_exports,
                 self->n_exports == 1 ? "" : "s", self->n_exports == 1 ? "s" : "");
    return NULL;
  }
  tensor_let_go(self);
  Py_RETURN_NONE;
}

static PyObject *tensor_numpy(PyObject *object, PyObject *unused) {
  (void)unused;
  if (tensor_is_dead((py_tensor *)object)) return NULL;
  PyObject *asarray = py_numpy(PY_NUMPY_ASARRAY);
  if (asarray != NULL) return PyObject_CallFunctionObjArgs(asarray, object, NULL);
  if (!PyErr_Occurred()) PyErr_SetString(PyExc_ImportError, "numpy is not installed");
  return NULL;
}

static PyObject *tensor_shape(PyObject *object, void *unused) {
  (void)unused;
  return py_extents(((py_tensor *)object)->rank, ((py_tensor *)object)->dim);
}

static PyObject *tensor_strides(PyObject *object, void *unused) {
  py_tensor *self = (py_tensor *)object;
  int64_t strides[BERTH_MAX_RANK];
  (void)unused;
  for (uint32_t i = 0; i < self->rank; i++) strides[i] = self->stride[i];
  return py_extents(self->rank, strides);
}

static PyObject *tensor_type(PyObject *object, void *unused) {
  (void)unused;
  return py_string(berth_type_name(((py_tensor *)object)->type));
}

static PyObject *tensor_nbytes(PyObject *object, void *unused) {
  (void)unused;
  return PyLong_FromUnsignedLongLong(((py_tensor *)object)->size);
}

static PyObject *tensor_address(PyObject *object, void *unused) {
  (void)unused;
  return PyLong_FromVoidPtr(((py_tensor *)object)->data);
}

static PyObject *tensor_readonly(PyObject *object, void *unused) {
  (void)unused;
  return PyBool_FromLong(((py_tensor *)object)->is_readonly);
}

static PyObject *tensor_repr(PyObject *object) {
  py_tensor *self = (py_tensor *)object;
  char text[PY_SHAPE_TEXT];
  const char *where = self->session != NULL ? " in the arena of a session" : "";
  return PyUnicode_FromFormat("<berth.Tensor %s%s>", py_shape_text(self->type, self->rank, self->dim, text),
                              self->data == NULL && self->size != 0 ? ", released" : where);
}

static PyMethodDef tensor_methods[] = {
    {"numpy", tensor_numpy, METH_NOARGS,
     "numpy() -> numpy.ndarray\n\nAn array that shows this memory, without a copy."},
    {"release", tensor_release, METH_NOARGS,
     "release()\n\nGives the memory up, so that its session can bind other shapes. Fails while an array shows it."},
    {"__dlpack__", PY_METHOD(py_tensor_dlpack), METH_VARARGS | METH_KEYWORDS,
     "__dlpack__(*, stream=None, max_version=None, dl_device=None, copy=None)\n\nA capsule of DLPack."},
    {"__dlpack_device__", py_tensor_dlpack_device, METH_NOARGS, "__dlpack_device__() -> (type, id)"},
    {NULL, NULL, 0, NULL}};

static PyGetSetDef tensor_getters[] = {
    {"shape", tensor_shape, NULL, "Its extents, a tuple of int.", NULL},
    {"strides", tensor_strides, NULL, "Bytes from one element to the next along each axis.", NULL},
    {"type", tensor_type, NULL, "Its element type: \"f32\". Elements of bf16 are shown as their bits, uint16.", NULL},
    {"nbytes", tensor_nbytes, NULL, "How many bytes its elements have.", NULL},
    {"address", tensor_address, NULL, "Where its first element lies, on its device.", NULL},
    {"readonly", tensor_readonly, NULL, "True for outputs: only a run writes them.", NULL},
    {NULL, NULL, NULL, NULL, NULL}};

static PyType_Slot tensor_slots[] = {
    {Py_tp_doc,
     "Memory that numpy, PyTorch and others can look at without a copy (buffer protocol, DLPack).\n\n"
     "Where it shows the arena of a session, it keeps the session alive, and the session does not bind other shapes\n"
     "while it lives: `del` it, and the arrays made of it, first."},
    {Py_tp_dealloc, PY_SLOT(tensor_dealloc)},
    {Py_tp_repr, PY_SLOT(tensor_repr)},
    {Py_tp_methods, tensor_methods},
    {Py_tp_getset, tensor_getters},
    {Py_bf_getbuffer, PY_SLOT(tensor_get_buffer)},
    {Py_bf_releasebuffer, PY_SLOT(tensor_release_buffer)},
    {0, NULL}};

static PyType_Spec tensor_spec = {"berth.Tensor", sizeof(py_tensor), 0,
                                  Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, tensor_slots};

int py_tensor_init(PyObject *module) {
  py_tensor_type = py_type(module, &tensor_spec);
  return py_tensor_type != NULL ? 0 : -1;
}
