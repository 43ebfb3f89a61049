/* Data that outlives a run: states and params. */
#include "py.h"

/* Looks up a value of the session's graph by name and kind; its shape in the current binding. */
static int state_find(py_session *self, const char *name, berth_value_kind kind, const char *what,
                      berth_value_info *out) {
  const berth_graph *bound = berth_plan_graph(berth_session_plan(self->session));
  const berth_value value = berth_graph_find(self->graph->graph, name);
  *out = (berth_value_info)BERTH_VALUE_INFO_INIT;
  if (value != BERTH_VALUE_NONE && berth_graph_value(self->graph->graph, value, out, NULL) == BERTH_OK &&
      out->kind == kind && berth_graph_value(bound, value, out, NULL) == BERTH_OK)
    return 0;
  py_invalid("graph '%s' has no %s '%s'", berth_graph_name(self->graph->graph), what, name);
  return -1;
}

static int state_enter(py_session *self) {
  if (py_session_enter(self) < 0) return -1;
  if (py_session_need(self) == 0) return 0;
  py_guard_leave(&self->guard);
  return -1;
}

static PyObject *state_leave(py_session *self, berth_status status, const berth_error *err) {
  py_guard_leave(&self->guard);
  if (status != BERTH_OK) return py_fail(err);
  Py_RETURN_NONE;
}

PyObject *py_session_states(PyObject *object, PyObject *unused) {
  py_session *self = (py_session *)object;
  PyObject *list = PyList_New(0);
  (void)unused;
  for (uint32_t i = 0; list != NULL && self->graph != NULL && i < berth_graph_n_states(self->graph->graph); i++) {
    berth_value_info info = BERTH_VALUE_INFO_INIT;
    if (berth_graph_value(self->graph->graph, berth_graph_state_at(self->graph->graph, i), &info, NULL) != BERTH_OK)
      continue;
    PyObject *name = py_string(info.name);
    if (name == NULL || PyList_Append(list, name) < 0) Py_CLEAR(list);
    Py_XDECREF(name);
  }
  return list;
}

PyObject *py_session_states_lost(PyObject *object, PyObject *unused) {
  py_session *self = (py_session *)object;
  (void)unused;
  if (state_enter(self) < 0) return NULL;
  const int is_lost = berth_session_states_lost(self->session);
  py_guard_leave(&self->guard);
  return PyBool_FromLong(is_lost);
}

PyObject *py_session_state_get(PyObject *object, PyObject *name) {
  py_session *self = (py_session *)object;
  berth_error err = {BERTH_OK, ""};
  berth_value_info info;
  const char *text = PyUnicode_Check(name) ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL;
  if (text == NULL) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "the name of a state is a str");
    return NULL;
  }
  if (state_enter(self) < 0) return NULL;
  py_tensor *tensor = NULL;
  if (state_find(self, text, BERTH_VALUE_STATE, "state", &info) == 0) {
    int64_t dim[BERTH_MAX_RANK];
    for (uint32_t i = 0; i < info.shape.rank; i++) dim[i] = info.shape.dim[i].extent;
    tensor = py_tensor_new(info.type, info.shape.rank, dim);
  }
  if (tensor != NULL &&
      berth_session_state_read(self->session, text, tensor->data, (size_t)tensor->size, &err) != BERTH_OK) {
    Py_CLEAR(tensor);
    py_fail(&err);
  }
  py_guard_leave(&self->guard);
  return py_tensor_array(tensor);
}

/* The name and array of a call, for `kind`; the session must be entered. */
static int state_given(py_session *self, PyObject *args, berth_value_kind kind, const char *what, const char **name,
                       py_array *a) {
  PyObject *given;
  berth_value_info info;
  if (!PyArg_ParseTuple(args, "sO", name, &given) || state_enter(self) < 0) return -1;
  const int is_found = state_find(self, *name, kind, what, &info) == 0;
  const berth_type wanted = is_found && berth_type_size(info.type) == 0 ? BERTH_U8 : info.type; /* blocks are bytes */
  if (!is_found || py_array_get_host(given, wanted, a) < 0) {
    py_guard_leave(&self->guard);
    return -1;
  }
  int is_same = berth_type_size(info.type) == 0 || a->rank == info.shape.rank;
  for (uint32_t i = 0; berth_type_size(info.type) != 0 && is_same && i < a->rank; i++)
    is_same = a->dim[i] == info.shape.dim[i].extent;
  if (a->type == wanted && is_same) return 0;
  char text[PY_SHAPE_TEXT], expected[PY_SHAPE_TEXT];
  int64_t dim[BERTH_MAX_RANK];
  for (uint32_t i = 0; i < info.shape.rank; i++) dim[i] = info.shape.dim[i].extent;
  py_invalid("%s '%s' is %s, but %s was given", what, *name, py_shape_text(info.type, info.shape.rank, dim, expected),
             py_shape_text(a->type, a->rank, a->dim, text));
  py_array_release(a);
  py_guard_leave(&self->guard);
  return -1;
}

PyObject *py_session_state_set(PyObject *object, PyObject *args) {
  py_session *self = (py_session *)object;
  berth_error err = {BERTH_OK, ""};
  const char *name;
  py_array a;
  if (state_given(self, args, BERTH_VALUE_STATE, "state", &name, &a) < 0) return NULL;
  const berth_status status = berth_session_state_write(self->session, name, a.data, (size_t)a.size, &err);
  py_array_release(&a);
  return state_leave(self, status, &err);
}

PyObject *py_session_set_param(PyObject *object, PyObject *args) {
  py_session *self = (py_session *)object;
  berth_error err = {BERTH_OK, ""};
  berth_status status;
  const char *name;
  py_array a;
  if (state_given(self, args, BERTH_VALUE_PARAM, "param", &name, &a) < 0) return NULL;
  Py_BEGIN_ALLOW_THREADS;
  status = berth_session_set_param(self->session, name, a.data, (size_t)a.size, &err);
  Py_END_ALLOW_THREADS;
  py_array_release(&a);
  return state_leave(self, status, &err);
}

PyObject *py_session_state_reset(PyObject *object, PyObject *args) {
  py_session *self = (py_session *)object;
  berth_error err = {BERTH_OK, ""};
  const char *name = NULL;
  if (!PyArg_ParseTuple(args, "|z", &name) || state_enter(self) < 0) return NULL;
  return state_leave(self, berth_session_state_reset(self->session, name, &err), &err);
}

PyObject *py_session_save(PyObject *object, PyObject *unused) {
  py_session *self = (py_session *)object;
  berth_error err = {BERTH_OK, ""};
  (void)unused;
  if (state_enter(self) < 0) return NULL;
  const uint64_t size = berth_session_state_size(self->session);
  PyObject *bytes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)size);
  if (bytes != NULL &&
      berth_session_state_save(self->session, PyBytes_AsString(bytes), (size_t)size, &err) != BERTH_OK) {
    Py_CLEAR(bytes);
    py_fail(&err);
  }
  py_guard_leave(&self->guard);
  return bytes;
}

PyObject *py_session_restore(PyObject *object, PyObject *data) {
  py_session *self = (py_session *)object;
  berth_error err = {BERTH_OK, ""};
  Py_buffer buffer;
  if (PyObject_GetBuffer(data, &buffer, PyBUF_SIMPLE) < 0) return NULL;
  if (state_enter(self) < 0) {
    PyBuffer_Release(&buffer);
    return NULL;
  }
  const berth_status status = berth_session_state_restore(self->session, buffer.buf, (size_t)buffer.len, &err);
  PyBuffer_Release(&buffer);
  return state_leave(self, status, &err);
}
