/* Saving weights: safetensors, and ONNX models with replaced weights. */
#include "py.h"

typedef struct py_saving {
  PyObject *keep; /* owner of the following */
  berth_weight_info *weights;
  py_array *arrays;
  uint32_t n;
} py_saving;

static void save_release(py_saving *s) {
  for (uint32_t i = 0; i < s->n; i++) py_array_release(&s->arrays[i]);
  Py_XDECREF(s->keep);
}

/* The type that `types` gives for a tensor that comes as bits; BERTH_TYPE_NONE: as it comes. */
static int save_type(PyObject *types, PyObject *name, berth_type *out) {
  *out = BERTH_TYPE_NONE;
  if (types == Py_None) return 0;
  if (!PyDict_Check(types)) {
    PyErr_SetString(PyExc_TypeError, "types are a dict of names of element types by name");
    return -1;
  }
  PyObject *type = PyDict_GetItemWithError(types, name);
  if (type == NULL) return PyErr_Occurred() ? -1 : 0;
  Py_INCREF(type);
  const int failed = py_type_from(type, out) < 0;
  Py_DECREF(type);
  return failed ? -1 : 0;
}

static int save_add(py_saving *s, PyObject *name, PyObject *array, PyObject *types) {
  const char *text = PyUnicode_Check(name) ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL;
  py_array *a = &s->arrays[s->n];
  berth_weight_info *w = &s->weights[s->n];
  berth_type type;
  if (text == NULL) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "the names of tensors are str");
    return -1;
  }
  if (PyList_Append(s->keep, name) < 0 || save_type(types, name, &type) < 0 || py_array_get_host(array, type, a) < 0)
    return -1;
  s->n++;
  if (type != BERTH_TYPE_NONE && a->type != type) {
    char given[PY_SHAPE_TEXT];
    py_invalid("tensor '%s' is to be %s, but %s was given", text, berth_type_name(type),
               py_shape_text(a->type, a->rank, a->dim, given));
    return -1;
  }
  *w = (berth_weight_info)BERTH_WEIGHT_INFO_INIT;
  w->name = text;
  w->type = a->type;
  w->rank = a->rank;
  w->data = a->data;
  w->size = a->size;
  for (uint32_t i = 0; i < a->rank; i++) w->dim[i] = a->dim[i];
  return 0;
}

/* A dict of arrays by name. */
static int save_collect(PyObject *given, PyObject *types, py_saving *s) {
  PyObject *name, *array;
  Py_ssize_t at = 0;
  *s = (py_saving){.keep = PyList_New(0)};
  if (s->keep == NULL) return -1;
  if (!PyDict_Check(given)) {
    PyErr_SetString(PyExc_TypeError, "tensors are a dict of arrays by name");
    return -1;
  }
  if ((given = py_keep_dict(s->keep, given)) == NULL) return -1;
  const size_t n = (size_t)PyDict_Size(given) + 1;
  s->weights = py_keep(s->keep, n * sizeof *s->weights);
  s->arrays = s->weights != NULL ? py_keep(s->keep, n * sizeof *s->arrays) : NULL;
  if (s->arrays == NULL) return -1;
  while (PyDict_Next(given, &at, &name, &array))
    if (save_add(s, name, array, types) < 0) return -1;
  return 0;
}

PyObject *py_save_weights(PyObject *module, PyObject *args) {
  PyObject *path = NULL, *given, *types = Py_None;
  berth_error err = {BERTH_OK, ""};
  berth_status status = BERTH_OK;
  py_saving s;
  (void)module;
  if (!PyArg_ParseTuple(args, "O&O|O", PyUnicode_FSConverter, &path, &given, &types)) return NULL;
  const int failed = save_collect(given, types, &s) < 0;
  if (!failed) {
    const char *file = PyBytes_AsString(path);
    Py_BEGIN_ALLOW_THREADS;
    status = berth_weights_save(py_context, file, s.weights, s.n, &err);
    Py_END_ALLOW_THREADS;
  }
  save_release(&s);
  Py_DECREF(path);
  if (failed) return NULL;
  if (status != BERTH_OK) return py_fail(&err);
  Py_RETURN_NONE;
}

PyObject *py_save_model(PyObject *module, PyObject *args) {
  PyObject *model = NULL, *path = NULL, *given, *types = Py_None;
  berth_error err = {BERTH_OK, ""};
  berth_status status = BERTH_OK;
  py_saving s;
  (void)module;
  if (!PyArg_ParseTuple(args, "O&O&O|O", PyUnicode_FSConverter, &model, PyUnicode_FSConverter, &path, &given, &types)) {
    Py_XDECREF(model);
    return NULL;
  }
  const int failed = save_collect(given, types, &s) < 0;
  if (!failed) {
    const char *from = PyBytes_AsString(model), *to = PyBytes_AsString(path);
    Py_BEGIN_ALLOW_THREADS;
    status = berth_model_save(py_context, from, to, s.weights, s.n, &err);
    Py_END_ALLOW_THREADS;
  }
  save_release(&s);
  Py_DECREF(model);
  Py_DECREF(path);
  if (failed) return NULL;
  if (status != BERTH_OK) return py_fail(&err);
  Py_RETURN_NONE;
}

static PyObject *save_tensor(const berth_weight_info *info) {
  py_tensor *tensor = py_tensor_new(info->type, info->rank, info->dim);
  if (tensor != NULL) memcpy(tensor->data, info->data, (size_t)info->size);
  return py_tensor_array(tensor);
}

/* All tensors of a file, as copies. */
PyObject *py_load_weights(PyObject *module, PyObject *given) {
  PyObject *path = NULL, *dict = NULL;
  berth_weights *weights = NULL;
  berth_error err = {BERTH_OK, ""};
  (void)module;
  if (!PyUnicode_FSConverter(given, &path)) return NULL;
  const berth_status status = berth_weights_open(py_context, PyBytes_AsString(path), &weights, &err);
  Py_DECREF(path);
  if (status != BERTH_OK) return py_fail(&err);
  dict = PyDict_New();
  for (uint32_t i = 0; dict != NULL && i < berth_weights_count(weights); i++) {
    berth_weight_info info = BERTH_WEIGHT_INFO_INIT;
    if (berth_weights_at(weights, i, &info, &err) != BERTH_OK) {
      Py_CLEAR(dict);
      py_fail(&err);
      break;
    }
    PyObject *array = save_tensor(&info);
    if (array == NULL || PyDict_SetItemString(dict, info.name, array) < 0) Py_CLEAR(dict);
    Py_XDECREF(array);
  }
  berth_weights_destroy(weights);
  return dict;
}
