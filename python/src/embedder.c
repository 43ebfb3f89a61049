/* Embeddings of texts. */
#include "py.h"

typedef struct py_embedder {
  PyObject_HEAD py_guard guard;
  berth_embedder *embedder;
} py_embedder;

static PyObject *embedder_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
  static char *names[] = {"path", "device", "threads", NULL};
  berth_embedder_desc desc = BERTH_EMBEDDER_DESC_INIT;
  berth_error err = {BERTH_OK, ""};
  berth_status status;
  PyObject *path;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O&|$zO&", names, PyUnicode_FSConverter, &path, &desc.device,
                                   py_count32, &desc.n_threads))
    return NULL;
  allocfunc alloc = __extension__(allocfunc) PyType_GetSlot(type, Py_tp_alloc);
  py_embedder *self = (py_embedder *)alloc(type, 0);
  const int is_alone = desc.n_threads == 1 && (desc.device == NULL || strcmp(desc.device, "cpu") == 0);
  if (self == NULL || py_guard_init(&self->guard, is_alone) < 0) {
    Py_XDECREF(PY_OBJECT(self));
    Py_DECREF(path);
    return NULL;
  }
  const char *file = PyBytes_AsString(path);
  Py_BEGIN_ALLOW_THREADS;
  status = berth_embedder_create(py_context, file, &desc, &self->embedder, &err);
  Py_END_ALLOW_THREADS;
  Py_DECREF(path);
  if (status == BERTH_OK) return (PyObject *)self;
  Py_DECREF(PY_OBJECT(self));
  return py_fail(&err);
}

static void embedder_dealloc(PyObject *object) {
  py_embedder *self = (py_embedder *)object;
  PyTypeObject *type = Py_TYPE(object);
  freefunc release = __extension__(freefunc) PyType_GetSlot(type, Py_tp_free);
  if (!py_guard_is_lost(&self->guard)) berth_embedder_destroy(self->embedder);
  py_guard_free(&self->guard);
  release(object);
  Py_DECREF(type);
}

static PyObject *embedder_embed(PyObject *object, PyObject *args) {
  py_embedder *self = (py_embedder *)object;
  const char *text;
  Py_ssize_t size;
  berth_error err = {BERTH_OK, ""};
  berth_status status;
  if (!PyArg_ParseTuple(args, "s#", &text, &size)) return NULL;
  const int64_t count = berth_embedder_size(self->embedder);
  py_tensor *vector = py_tensor_new(BERTH_F32, 1, &count);
  if (vector == NULL || py_guard_enter(&self->guard, "embedder") < 0) {
    Py_XDECREF(PY_OBJECT(vector));
    return NULL;
  }
  Py_BEGIN_ALLOW_THREADS;
  status = berth_embedder_embed(self->embedder, text, (size_t)size, vector->data, (size_t)count, &err);
  Py_END_ALLOW_THREADS;
  py_guard_leave(&self->guard);
  if (status == BERTH_OK) return py_tensor_array(vector);
  Py_DECREF(PY_OBJECT(vector));
  return py_fail(&err);
}

static PyObject *embedder_size(PyObject *object, void *unused) {
  (void)unused;
  return PyLong_FromUnsignedLong(berth_embedder_size(((py_embedder *)object)->embedder));
}

static PyMethodDef embedder_methods[] = {
    {"embed", embedder_embed, METH_VARARGS,
     "embed(text) -> array\n\nThe vector of a text, of length 1. Texts that are similar have a product near 1."},
    {NULL, NULL, 0, NULL}};
static PyGetSetDef embedder_getters[] = {{"size", embedder_size, NULL, "Numbers of a vector.", NULL},
                                         {NULL, NULL, NULL, NULL, NULL}};

static PyType_Slot embedder_slots[] = {{Py_tp_doc,
                                        "Embedder(path, *, device=None, threads=0)\n\nA model that makes a vector of a "
                                        "text (bert, nomic-bert), from a GGUF "
                                        "file."},
                                       {Py_tp_new, PY_SLOT(embedder_new)},
                                       {Py_tp_dealloc, PY_SLOT(embedder_dealloc)},
                                       {Py_tp_methods, embedder_methods},
                                       {Py_tp_getset, embedder_getters},
                                       {0, NULL}};

static PyType_Spec embedder_spec = {"berth.Embedder", sizeof(py_embedder), 0, Py_TPFLAGS_DEFAULT, embedder_slots};

int py_embedder_init(PyObject *module) { return py_type(module, &embedder_spec) != NULL ? 0 : -1; }
