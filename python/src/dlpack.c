/* DLPack, in both directions: the structs of its specification, in the form before and since version 1. */
#include <stdlib.h>

#include "py.h"

enum { /* device types of host-accessible memory, in addition to PY_ON_HOST */
  DL_CUDA_HOST = 3,
  DL_CUDA_MANAGED = 13
};
enum {
  DL_READ_ONLY = 1
};

typedef struct dl_device {
  int32_t type, id;
} dl_device;
typedef struct dl_type {
  uint8_t code, bits;
  uint16_t lanes;
} dl_type;
typedef struct dl_tensor {
  void *data;
  dl_device device;
  int32_t rank;
  dl_type type;
  int64_t *shape;
  int64_t *strides; /* in elements; NULL: C order */
  uint64_t offset;  /* in bytes */
} dl_tensor;
typedef struct dl_managed {
  dl_tensor tensor;
  void *user;
  void (*deleter)(struct dl_managed *self);
} dl_managed;
typedef struct dl_versioned {
  uint32_t major, minor;
  void *user;
  void (*deleter)(struct dl_versioned *self);
  uint64_t flags;
  dl_tensor tensor;
} dl_versioned;

/* ---- Export ---- */

typedef struct dl_export { /* one block: the exported tensor, and its shape */
  union {
    dl_managed managed;
    dl_versioned versioned;
  } form;
  int64_t shape[BERTH_MAX_RANK], strides[BERTH_MAX_RANK];
  py_tensor *tensor;
} dl_export;

static void dlpack_free(dl_export *export) {
  if (Py_IsInitialized()) {
    PyGILState_STATE state = PyGILState_Ensure();
    export->tensor->n_exports--;
    Py_DECREF(PY_OBJECT(export->tensor));
    PyGILState_Release(state);
  }
  free(export);
}
static void dlpack_delete(dl_managed *self) { dlpack_free(self->user); }
static void dlpack_delete_versioned(dl_versioned *self) { dlpack_free(self->user); }

static void dlpack_drop(PyObject *capsule) { /* it was never consumed */
  if (PyCapsule_IsValid(capsule, "dltensor")) {
    dl_managed *managed = PyCapsule_GetPointer(capsule, "dltensor");
    managed->deleter(managed);
  } else if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
    dl_versioned *versioned = PyCapsule_GetPointer(capsule, "dltensor_versioned");
    versioned->deleter(versioned);
  }
}

static void dlpack_describe(dl_export *export, py_tensor *self, dl_tensor *out) {
  const py_element *element = py_element_of(self->type);
  for (uint32_t i = 0; i < self->rank; i++) {
    export->shape[i] = self->dim[i];
    export->strides[i] = self->stride[i] / (Py_ssize_t)(element->dl_bits / 8);
  }
  out->data = self->data;
  out->device = (dl_device){self->device, self->device_id};
  out->rank = (int32_t)self->rank;
  out->type = (dl_type){element->dl_code, element->dl_bits, 1};
  out->shape = export->shape;
  out->strides = export->strides;
}

static PyObject *dlpack_export(py_tensor *self, int is_versioned) {
  dl_export *export = calloc(1, sizeof *export);
  if (export == NULL) return PyErr_NoMemory();
  export->tensor = self;
  PyObject *capsule;
  if (is_versioned) {
    dl_versioned *versioned = &export->form.versioned;
    dlpack_describe(export, self, &versioned->tensor);
    versioned->major = 1;
    versioned->user = export;
    versioned->deleter = dlpack_delete_versioned;
    versioned->flags = self->is_readonly ? DL_READ_ONLY : 0;
    capsule = PyCapsule_New(versioned, "dltensor_versioned", dlpack_drop);
  } else {
    dl_managed *managed = &export->form.managed;
    dlpack_describe(export, self, &managed->tensor);
    managed->user = export;
    managed->deleter = dlpack_delete;
    capsule = PyCapsule_New(managed, "dltensor", dlpack_drop);
  }
  if (capsule == NULL) {
    free(export);
    return NULL;
  }
  Py_INCREF(PY_OBJECT(self));
  self->n_exports++;
  return capsule;
}

PyObject *py_tensor_dlpack(PyObject *object, PyObject *args, PyObject *kwargs) {
  static char *names[] = {"stream", "max_version", "dl_device", "copy", NULL};
  py_tensor *self = (py_tensor *)object;
  PyObject *stream = Py_None, *version = Py_None, *device = Py_None, *copy = Py_None;
  long major = 0, minor = 0, type = self->device, id = self->device_id;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$OOOO", names, &stream, &version, &device, &copy)) return NULL;
  if ((version != Py_None && !PyTuple_Check(version)) || (device != Py_None && !PyTuple_Check(device))) {
    PyErr_SetString(PyExc_TypeError, "max_version and dl_device are pairs of int");
    return NULL;
  }
  if (version != Py_None && !PyArg_ParseTuple(version, "ll", &major, &minor)) return NULL;
  if (device != Py_None && !PyArg_ParseTuple(device, "ll", &type, &id)) return NULL;
  if (copy == Py_True || type != self->device || id != self->device_id) {
    PyErr_SetString(PyExc_BufferError, "a tensor of berth is shown where it lies; it is not copied");
    return NULL;
  }
  if (self->data == NULL && self->size != 0) {
    PyErr_SetString(PyExc_ValueError, "the tensor was released");
    return NULL;
  }
  return dlpack_export(self, major >= 1);
}

PyObject *py_tensor_dlpack_device(PyObject *object, PyObject *unused) {
  (void)unused;
  return Py_BuildValue("(ii)", (int)((py_tensor *)object)->device, (int)((py_tensor *)object)->device_id);
}

/* ---- Import ---- */

static berth_type dlpack_type(dl_type type) {
  if (type.lanes != 1) return BERTH_TYPE_NONE;
  for (int t = BERTH_F32; t <= BERTH_U64; t++) {
    const py_element *element = py_element_of((berth_type)t);
    if (element->dl_code == type.code && element->dl_bits == type.bits) return (berth_type)t;
  }
  return BERTH_TYPE_NONE;
}

/* The tensor of a capsule that has not been consumed. */
static dl_tensor *dlpack_look(PyObject *capsule, int *is_readonly) {
  *is_readonly = 0;
  if (PyCapsule_IsValid(capsule, "dltensor")) {
    dl_managed *managed = PyCapsule_GetPointer(capsule, "dltensor");
    return &managed->tensor;
  }
  if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
    dl_versioned *versioned = PyCapsule_GetPointer(capsule, "dltensor_versioned");
    if (versioned->major == 1) {
      *is_readonly = (versioned->flags & DL_READ_ONLY) != 0;
      return &versioned->tensor;
    }
  }
  PyErr_SetString(PyExc_BufferError, "__dlpack__ gave no capsule that berth knows");
  return NULL;
}

static int dlpack_check(const dl_tensor *t, berth_type *type) {
  *type = dlpack_type(t->type);
  if (*type == BERTH_TYPE_NONE || t->rank < 0 || t->rank > BERTH_MAX_RANK) {
    PyErr_SetString(PyExc_BufferError, "berth has no such element type, or no tensors of so many axes");
    return -1;
  }
  for (int32_t i = 0; i < t->rank; i++) {
    if (t->shape[i] >= 0) continue;
    PyErr_SetString(PyExc_BufferError, "an extent is negative");
    return -1;
  }
  return 0;
}

static int dlpack_is_host(const dl_tensor *t) {
  return t->device.type == PY_ON_HOST || t->device.type == DL_CUDA_HOST || t->device.type == DL_CUDA_MANAGED;
}

static int dlpack_is_contiguous(const dl_tensor *t) {
  int64_t step = 1;
  for (int32_t i = t->rank; i-- > 0 && t->strides != NULL;) {
    if (t->shape[i] != 1 && t->strides[i] != step) return 0;
    step *= t->shape[i];
  }
  return 1;
}

/* Without a stream: CUDA's default one, which copies wait for (berth_session_write_memory). */
static PyObject *dlpack_ask_plainly(PyObject *object) { return PyObject_CallMethod(object, "__dlpack__", NULL); }

static int dlpack_is_readonly_array(PyObject *object) {
  PyObject *flags = PyObject_GetAttrString(object, "flags");
  PyObject *writeable = flags != NULL ? PyObject_GetAttrString(flags, "writeable") : NULL;
  const int is_readonly = writeable == Py_False;
  Py_XDECREF(flags);
  Py_XDECREF(writeable);
  PyErr_Clear();
  return is_readonly;
}

/* numpy does not export read-only arrays, and before 2.1 it cannot say that one is: exports a copy. */
static PyObject *dlpack_ask(PyObject *object) {
  PyObject *type, *value, *trace;
  PyObject *capsule = dlpack_ask_plainly(object);
  if (capsule != NULL || !PyErr_ExceptionMatches(PyExc_BufferError)) return capsule;
  PyErr_Fetch(&type, &value, &trace);
  PyObject *copy = dlpack_is_readonly_array(object) ? PyObject_CallMethod(object, "copy", NULL) : NULL;
  if (copy == NULL) {
    PyErr_Restore(type, value, trace);
    return NULL;
  }
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(trace);
  capsule = dlpack_ask_plainly(copy);
  Py_DECREF(copy); /* the capsule keeps it */
  return capsule;
}

PyObject *py_dlpack_open(PyObject *object, py_array *out) {
  PyObject *capsule = dlpack_ask(object);
  int is_readonly;
  const dl_tensor *t = capsule != NULL ? dlpack_look(capsule, &is_readonly) : NULL;
  if (t == NULL || dlpack_check(t, &out->type) < 0) {
    Py_XDECREF(capsule);
    return NULL;
  }
  if ((!dlpack_is_host(t) && t->device.type != PY_ON_CUDA) || !dlpack_is_contiguous(t)) {
    PyErr_SetString(PyExc_BufferError,
                    "what is given must be contiguous, in memory of the host or of CUDA; make a copy that is");
    Py_DECREF(capsule);
    return NULL;
  }
  out->rank = (uint32_t)t->rank;
  out->size = berth_type_size(out->type);
  for (uint32_t i = 0; i < out->rank; i++) {
    out->dim[i] = t->shape[i];
    out->size *= (uint64_t)t->shape[i];
  }
  out->data = t->data != NULL ? (const char *)t->data + t->offset : NULL;
  out->device = dlpack_is_host(t) ? PY_ON_HOST : PY_ON_CUDA;
  out->device_id = t->device.id;
  return capsule;
}

PyObject *py_from_dlpack(PyObject *module, PyObject *object) {
  (void)module;
  PyObject *capsule = dlpack_ask(object);
  int is_readonly;
  berth_type type;
  const dl_tensor *t = capsule != NULL ? dlpack_look(capsule, &is_readonly) : NULL;
  py_tensor *self = NULL;
  if (t != NULL && dlpack_check(t, &type) == 0)
    self = py_tensor_view(t->data != NULL ? (char *)t->data + t->offset : NULL, type, (uint32_t)t->rank, t->shape,
                          t->strides, is_readonly);
  if (self == NULL) {
    Py_XDECREF(capsule);
    return NULL;
  }
  self->device = dlpack_is_host(t) ? PY_ON_HOST : t->device.type;
  self->device_id = t->device.id;
  self->keep = capsule; /* it has the producer's destructor */
  return (PyObject *)self;
}
