/* Graphs: building them node by node, and reading files. graph_look.c has the queries. */
#include "graph.h"

PyTypeObject *py_graph_type;

py_graph *py_graph_wrap(berth_graph *graph) {
  py_graph *self = PyObject_New(py_graph, py_graph_type);
  if (self == NULL) {
    berth_graph_destroy(graph);
    return NULL;
  }
  self->graph = graph;
  self->n_readers = 0;
  return self;
}

static PyObject *graph_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
  static char *names[] = {"name", NULL};
  const char *name = "graph";
  berth_error err = {BERTH_OK, ""};
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|s", names, &name)) return NULL;
  allocfunc alloc = __extension__(allocfunc) PyType_GetSlot(type, Py_tp_alloc);
  py_graph *self = (py_graph *)alloc(type, 0);
  if (self == NULL) return NULL;
  if (berth_graph_create(py_context, name, &self->graph, &err) == BERTH_OK) return (PyObject *)self;
  Py_DECREF(PY_OBJECT(self));
  return py_fail(&err);
}

static void graph_dealloc(PyObject *object) {
  PyTypeObject *type = Py_TYPE(object);
  freefunc release = __extension__(freefunc) PyType_GetSlot(type, Py_tp_free);
  berth_graph_destroy(((py_graph *)object)->graph);
  release(object);
  Py_DECREF(type);
}

int py_graph_begin_change(py_graph *self) {
  if (self->n_readers == 0) {
    self->n_readers = 1;
    return 0;
  }
  py_invalid("the graph is being planned, or changed, by somebody else");
  return -1;
}

static PyObject *graph_end_change(PyObject *object, berth_status status, const berth_error *err) {
  ((py_graph *)object)->n_readers = 0;
  if (status != BERTH_OK) return py_fail(err);
  Py_RETURN_NONE;
}

static PyObject *graph_end_value(PyObject *object, berth_status status, const berth_error *err, berth_value value) {
  ((py_graph *)object)->n_readers = 0;
  return status != BERTH_OK ? py_fail(err) : PyLong_FromUnsignedLong(value);
}

/* ---- Files ---- */

/* What `keep` holds must outlive the call. */
static int graph_load_desc(PyObject *weights, PyObject *kv, PyObject *dims, PyObject *keep, berth_load_desc *desc) {
  desc->weights = weights != NULL ? PyBytes_AsString(weights) : NULL;
  if (keep == NULL || py_dims_from(dims, keep, &desc->dims, &desc->n_dims) < 0) return -1;
  return kv == Py_None ? 0 : py_type_from(kv, &desc->kv);
}

static PyObject *graph_load(PyObject *class, PyObject *args, PyObject *kwargs) {
  static char *names[] = {"path", "weights", "kv", "dims", NULL};
  PyObject *path = NULL, *weights = NULL, *kv = Py_None, *dims = Py_None;
  berth_load_desc desc = BERTH_LOAD_DESC_INIT;
  berth_graph *graph = NULL;
  berth_error err = {BERTH_OK, ""};
  berth_status status;
  (void)class;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O&|O&OO", names, PyUnicode_FSConverter, &path, PyUnicode_FSConverter,
                                   &weights, &kv, &dims)) {
    Py_XDECREF(path);
    return NULL;
  }
  PyObject *keep = PyList_New(0);
  int failed = graph_load_desc(weights, kv, dims, keep, &desc) < 0;
  if (!failed) {
    const char *file = PyBytes_AsString(path);
    Py_BEGIN_ALLOW_THREADS;
    status = berth_graph_load_with(py_context, file, &desc, &graph, &err);
    Py_END_ALLOW_THREADS;
    failed = status != BERTH_OK;
    if (failed) py_fail(&err);
  }
  Py_XDECREF(keep);
  Py_DECREF(path);
  Py_XDECREF(weights);
  return failed ? NULL : (PyObject *)py_graph_wrap(graph);
}

/* The bytes of a graph are released when the last object made from it is gone, on whatever thread. */
static void graph_release_bytes(void *user, const void *data, size_t size) {
  Py_buffer *buffer = user;
  (void)data, (void)size;
  if (!Py_IsInitialized()) return;
  PyGILState_STATE state = PyGILState_Ensure();
  PyBuffer_Release(buffer);
  PyMem_Free(buffer);
  PyGILState_Release(state);
}

static PyObject *graph_from_bytes(PyObject *class, PyObject *args, PyObject *kwargs) {
  static char *names[] = {"data", "weights", "kv", "dims", NULL};
  PyObject *data, *weights = NULL, *kv = Py_None, *dims = Py_None;
  berth_load_desc desc = BERTH_LOAD_DESC_INIT;
  berth_graph *graph = NULL;
  berth_error err = {BERTH_OK, ""};
  berth_status status;
  (void)class;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O&OO", names, &data, PyUnicode_FSConverter, &weights, &kv, &dims))
    return NULL;
  Py_buffer *buffer = PyMem_Malloc(sizeof *buffer);
  PyObject *keep = PyList_New(0);
  int failed = graph_load_desc(weights, kv, dims, keep, &desc) < 0;
  if (buffer == NULL) PyErr_NoMemory();
  if (failed || buffer == NULL || PyObject_GetBuffer(data, buffer, PyBUF_SIMPLE) < 0) {
    PyMem_Free(buffer);
    Py_XDECREF(keep);
    Py_XDECREF(weights);
    return NULL;
  }
  Py_BEGIN_ALLOW_THREADS;
  status = berth_graph_from_memory_with(py_context, buffer->buf, (size_t)buffer->len, graph_release_bytes, buffer,
                                        &desc, &graph, &err);
  Py_END_ALLOW_THREADS;
  Py_DECREF(keep);
  Py_XDECREF(weights);
  return status != BERTH_OK ? py_fail(&err) : (PyObject *)py_graph_wrap(graph);
}

static PyObject *graph_attach(PyObject *object, PyObject *given) {
  py_graph *self = (py_graph *)object;
  PyObject *path = NULL;
  berth_weights *weights = NULL;
  berth_error err = {BERTH_OK, ""};
  berth_status status;
  if (!PyUnicode_FSConverter(given, &path)) return NULL;
  if (py_graph_begin_change(self) < 0) {
    Py_DECREF(path);
    return NULL;
  }
  const char *file = PyBytes_AsString(path);
  Py_BEGIN_ALLOW_THREADS;
  status = berth_weights_open(py_context, file, &weights, &err);
  Py_END_ALLOW_THREADS;
  if (status == BERTH_OK) status = berth_graph_attach(self->graph, weights, &err);
  berth_weights_destroy(weights); /* the graph keeps what it uses */
  Py_DECREF(path);
  return graph_end_change(object, status, &err);
}

/* ---- Values ---- */

typedef berth_status (*graph_source)(berth_graph *graph, const char *name, berth_type type, berth_shape shape,
                                     berth_value *out, berth_error *err);

static PyObject *graph_add_source(PyObject *object, PyObject *args, graph_source add) {
  const char *name;
  PyObject *type_name, *dims;
  berth_shape shape;
  berth_type type;
  berth_value value = BERTH_VALUE_NONE;
  berth_error err = {BERTH_OK, ""};
  if (!PyArg_ParseTuple(args, "zOO", &name, &type_name, &dims)) return NULL;
  PyObject *list = PySequence_Tuple(dims); /* which owns the names */
  PyObject *result = NULL;
  if (list != NULL && py_type_from(type_name, &type) == 0 && py_shape_from(list, &shape) == 0 &&
      py_graph_begin_change((py_graph *)object) == 0) {
    const berth_status status = add(((py_graph *)object)->graph, name, type, shape, &value, &err);
    result = graph_end_value(object, status, &err, value);
  }
  Py_XDECREF(list);
  return result;
}

static PyObject *graph_input(PyObject *object, PyObject *args) {
  return graph_add_source(object, args, berth_graph_input);
}

static PyObject *graph_param(PyObject *object, PyObject *args) {
  return graph_add_source(object, args, berth_graph_param);
}

/* Constants, and initialised states. */
static PyObject *graph_add_data(PyObject *object, PyObject *args, int is_state) {
  const char *name;
  PyObject *type_name, *given;
  berth_type type = BERTH_TYPE_NONE;
  berth_value value = BERTH_VALUE_NONE;
  berth_error err = {BERTH_OK, ""};
  py_array a;
  if (!PyArg_ParseTuple(args, "zOO", &name, &type_name, &given)) return NULL;
  if (type_name != Py_None && py_type_from(type_name, &type) < 0) return NULL;
  if (py_array_get_host(given, type, &a) < 0) return NULL;
  PyObject *result = NULL;
  char text[PY_SHAPE_TEXT];
  if (type != BERTH_TYPE_NONE && a.type != type) {
    py_invalid("elements of %s are asked for, and %s was given", berth_type_name(type),
               py_shape_text(a.type, a.rank, a.dim, text));
  } else if (py_graph_begin_change((py_graph *)object) == 0) {
    berth_graph *graph = ((py_graph *)object)->graph;
    const berth_shape shape = berth_shape_fixed(a.rank, a.dim);
    const berth_status status =
        is_state ? berth_graph_state(graph, name, a.type, shape, a.data, (size_t)a.size, &value, &err)
                 : berth_graph_constant(graph, name, a.type, shape, a.data, (size_t)a.size, &value, &err);
    result = graph_end_value(object, status, &err, value);
  }
  py_array_release(&a);
  return result;
}

static PyObject *graph_constant(PyObject *object, PyObject *args) { return graph_add_data(object, args, 0); }
static PyObject *graph_state_of(PyObject *object, PyObject *args) { return graph_add_data(object, args, 1); }

static berth_status graph_zero_state(berth_graph *graph, const char *name, berth_type type, berth_shape shape,
                                     berth_value *out, berth_error *err) {
  return berth_graph_state(graph, name, type, shape, NULL, 0, out, err);
}

static PyObject *graph_state(PyObject *object, PyObject *args) {
  return graph_add_source(object, args, graph_zero_state);
}

static PyObject *graph_update(PyObject *object, PyObject *args) {
  unsigned int state, next;
  berth_error err = {BERTH_OK, ""};
  if (!PyArg_ParseTuple(args, "II", &state, &next)) return NULL;
  if (py_graph_begin_change((py_graph *)object) < 0) return NULL;
  return graph_end_change(object, berth_graph_update(((py_graph *)object)->graph, state, next, &err), &err);
}

static PyObject *graph_output(PyObject *object, PyObject *args) {
  const char *name;
  unsigned int value;
  berth_error err = {BERTH_OK, ""};
  if (!PyArg_ParseTuple(args, "zI", &name, &value)) return NULL;
  if (py_graph_begin_change((py_graph *)object) < 0) return NULL;
  return graph_end_change(object, berth_graph_output(((py_graph *)object)->graph, name, value, &err), &err);
}

static PyObject *graph_rename(PyObject *object, PyObject *args) {
  const char *name;
  unsigned int value;
  berth_error err = {BERTH_OK, ""};
  if (!PyArg_ParseTuple(args, "Is", &value, &name)) return NULL;
  if (py_graph_begin_change((py_graph *)object) < 0) return NULL;
  return graph_end_change(object, berth_graph_rename(((py_graph *)object)->graph, value, name, &err), &err);
}

/* ---- Nodes ---- */

/* Numbers of values; None: omitted. */
berth_value *py_graph_operands(PyObject *given, PyObject *keep, size_t *n) {
  const Py_ssize_t count = PySequence_Size(given);
  berth_value *list = count < 0 ? NULL : py_keep(keep, sizeof *list * (size_t)(count + 1));
  if (list == NULL) return NULL;
  for (Py_ssize_t i = 0; i < count; i++) {
    PyObject *item = PySequence_GetItem(given, i);
    const unsigned long number = item == NULL || item == Py_None ? BERTH_VALUE_NONE : PyLong_AsUnsignedLong(item);
    Py_XDECREF(item);
    if (PyErr_Occurred()) return NULL;
    list[i] = (berth_value)(number < BERTH_VALUE_NONE ? number : BERTH_VALUE_NONE);
  }
  *n = (size_t)count;
  return list;
}

static PyObject *graph_add(PyObject *object, PyObject *args) {
  const char *op;
  PyObject *operands, *attributes;
  uint32_t n_out;
  if (!PyArg_ParseTuple(args, "sOOO&", &op, &operands, &attributes, py_count32, &n_out)) return NULL;
  PyObject *keep = PyList_New(0), *result = NULL;
  const berth_attr *attrs;
  size_t n_in = 0, n_attrs;
  berth_value *in = keep != NULL ? py_graph_operands(operands, keep, &n_in) : NULL;
  berth_value *out = in != NULL && n_out < 65536 ? py_keep(keep, sizeof *out * (n_out + 1)) : NULL;
  if (in != NULL && out == NULL && !PyErr_Occurred()) py_invalid("a node has no %u results", n_out);
  if (out != NULL && py_attrs_from(attributes, keep, &attrs, &n_attrs) == 0 &&
      py_graph_begin_change((py_graph *)object) == 0) {
    berth_error err = {BERTH_OK, ""};
    const berth_status status =
        berth_graph_add(((py_graph *)object)->graph, op, in, n_in, attrs, n_attrs, out, n_out, &err);
    ((py_graph *)object)->n_readers = 0;
    result = status == BERTH_OK ? py_graph_numbers(out, n_out) : py_fail(&err);
  }
  Py_XDECREF(keep);
  return result;
}

static PyObject *graph_fix(PyObject *object, PyObject *args) {
  const char *name;
  PyObject *given;
  berth_error err = {BERTH_OK, ""};
  py_graph *self = (py_graph *)object;
  berth_value_info info = BERTH_VALUE_INFO_INIT;
  py_array a;
  if (!PyArg_ParseTuple(args, "sO", &name, &given)) return NULL;
  const berth_value value = berth_graph_find(self->graph, name);
  if (value == BERTH_VALUE_NONE || berth_graph_value(self->graph, value, &info, &err) != BERTH_OK)
    return py_invalid("the graph has no input '%s'", name);
  if (py_array_get_host(given, info.type, &a) < 0) return NULL;
  PyObject *result = NULL;
  if (py_graph_begin_change(self) == 0)
    result = graph_end_change(
        object, berth_graph_fix(self->graph, name, a.type, a.rank, a.dim, a.data, (size_t)a.size, &err), &err);
  py_array_release(&a);
  return result;
}

static PyMethodDef graph_methods[] = {
    {"load", PY_METHOD(graph_load), METH_VARARGS | METH_KEYWORDS | METH_CLASS,
     "load(path, weights=None, kv=None) -> Graph\n\nReads an ONNX or GGUF file, or a graph in berth's text form. The "
     "file is mapped, not copied."},
    {"from_bytes", PY_METHOD(graph_from_bytes), METH_VARARGS | METH_KEYWORDS | METH_CLASS,
     "from_bytes(data, weights=None, kv=None) -> Graph\n\nThe same from bytes, which are not copied."},
    {"attach", graph_attach, METH_O,
     "attach(path)\n\nGives every param its weights, by name, from a safetensors file."},
    {"add_input", graph_input, METH_VARARGS, "add_input(name, type, shape) -> int"},
    {"add_param", graph_param, METH_VARARGS, "add_param(name, type, shape) -> int"},
    {"add_constant", graph_constant, METH_VARARGS, "add_constant(name, type or None, array) -> int"},
    {"add_state", graph_state, METH_VARARGS, "add_state(name, type, shape) -> int"},
    {"add_state_of", graph_state_of, METH_VARARGS, "add_state_of(name, type or None, array) -> int"},
    {"set_update", graph_update, METH_VARARGS, "set_update(state, next)"},
    {"set_output", graph_output, METH_VARARGS, "set_output(name, value)"},
    {"rename", graph_rename, METH_VARARGS, "rename(value, name)"},
    {"add_node", graph_add, METH_VARARGS, "add_node(op, operands, attrs, n_out) -> list of int"},
    {"grad", py_graph_grad, METH_VARARGS, "grad(loss, of) -> tuple of int or None"},
    {"bind", py_graph_bind, METH_O, "bind(dims) -> GraphHandle\n\nThe same with its named dimensions bound."},
    {"thaw", py_graph_thaw, METH_NOARGS, "thaw() -> int: small weights of a file become params"},
    {"lora", py_graph_lora, METH_VARARGS, "lora(rank, alpha, params or None) -> GraphHandle"},
    {"train", PY_METHOD(py_graph_train), METH_VARARGS | METH_KEYWORDS,
     "train(loss, optimizer='adamw', params=None, momentum=0.9, beta1=0.9, beta2=0.999, epsilon=1e-8, "
     "weight_decay=0.01, "
     "clip=0, accumulate=1)"},
    {"fix", graph_fix, METH_VARARGS, "fix(input, array)\n\nTurns an input into a constant."},
    GRAPH_LOOK_METHODS,
    {NULL, NULL, 0, NULL}};

static PyType_Slot graph_slots[] = {{Py_tp_doc, "What berth.Graph is made of: values and nodes by their numbers."},
                                    {Py_tp_new, PY_SLOT(graph_new)},
                                    {Py_tp_dealloc, PY_SLOT(graph_dealloc)},
                                    {Py_tp_methods, graph_methods},
                                    {Py_tp_getset, graph_getters},
                                    {0, NULL}};

static PyType_Spec graph_spec = {"berth._berth.GraphHandle", sizeof(py_graph), 0, Py_TPFLAGS_DEFAULT, graph_slots};

int py_graph_init(PyObject *module) {
  py_graph_type = py_type(module, &graph_spec);
  return py_graph_type != NULL ? 0 : -1;
}
