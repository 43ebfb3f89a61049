/* The memory of a session's inputs and outputs, shown to others where it lies, and outputs in memory of others. */
#include "py.h"

static py_tensor *view_at(const berth_memory *at, const py_port *port, uint32_t rank, const int64_t *dim,
                          int is_readonly) {
  py_tensor *view = py_tensor_view((void *)(uintptr_t)at->address, port->type, rank, dim, NULL, is_readonly);
  if (view == NULL) return NULL;
  view->device = at->kind == BERTH_MEMORY_CUDA ? PY_ON_CUDA : PY_ON_HOST;
  view->device_id = (int32_t)at->index;
  return view;
}

static py_tensor *view_of(py_session *self, PyObject *name) {
  berth_error err = {BERTH_OK, ""};
  berth_memory at = BERTH_MEMORY_INIT;
  uint32_t rank;
  int64_t dim[BERTH_MAX_RANK];
  for (uint32_t i = 0; i < self->n_in; i++) {
    const py_port *port = &self->in[i];
    if (PyUnicode_Compare(name, port->name) != 0) continue;
    if (berth_session_input_memory(self->session, i, &at, &err) != BERTH_OK) return (py_tensor *)py_fail(&err);
    return view_at(&at, port, port->rank, port->dim, 0);
  }
  for (uint32_t i = 0; i < self->n_out; i++) {
    if (PyUnicode_Compare(name, self->out[i].name) != 0) continue;
    if (berth_session_output_memory(self->session, i, &at, &err) != BERTH_OK ||
        berth_session_output_shape(self->session, i, &rank, dim, &err) != BERTH_OK)
      return (py_tensor *)py_fail(&err);
    return view_at(&at, &self->out[i], rank, dim, 1);
  }
  return (py_tensor *)py_invalid("graph '%s' has no input or output '%s'", berth_graph_name(self->graph->graph),
                                 PyUnicode_AsUTF8AndSize(name, NULL));
}

PyObject *py_session_view(PyObject *object, PyObject *name) {
  py_session *self = (py_session *)object;
  if (!PyUnicode_Check(name) || PyUnicode_AsUTF8AndSize(name, NULL) == NULL) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "the name of an input or output is a str");
    return NULL;
  }
  if (py_session_enter(self) < 0) return NULL;
  py_tensor *view = py_session_need(self) < 0 ? NULL : view_of(self, name);
  if (view != NULL) {
    Py_INCREF(PY_OBJECT(self));
    view->session = self;
    self->n_views++;
  }
  py_guard_leave(&self->guard);
  return (PyObject *)view;
}

/* ---- Outputs into memory that is there ---- */

/* Where an output goes: memory of the host by the buffer protocol, of CUDA by DLPack. `array` keeps it. */
static int view_place(PyObject *place, py_array *array) {
  memset(array, 0, sizeof *array);
  if (!py_has_host_buffer(place)) {
    array->holder = py_dlpack_open(place, array);
    return array->holder != NULL ? 0 : -1;
  }
  if (PyObject_GetBuffer(place, &array->buffer, PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE) < 0) return -1;
  array->has_buffer = 1;
  array->device = PY_ON_HOST;
  array->data = array->buffer.buf;
  array->size = (uint64_t)array->buffer.len;
  return 0;
}

PyObject *py_session_read_into(PyObject *object, PyObject *args) {
  py_session *self = (py_session *)object;
  PyObject *name, *place;
  berth_error err = {BERTH_OK, ""};
  berth_status status = BERTH_INVALID;
  berth_memory to;
  py_array array;
  uint32_t output;
  if (!PyArg_ParseTuple(args, "UO", &name, &place) || view_place(place, &array) < 0) return NULL;
  if (py_session_enter(self) == 0) {
    if (py_session_need(self) == 0 && py_session_find_output(self, name, &output) == 0) {
      py_array_memory(&array, &to);
      Py_BEGIN_ALLOW_THREADS;
      status = berth_session_read_memory(self->session, output, &to, &err);
      Py_END_ALLOW_THREADS;
      if (status != BERTH_OK) py_fail(&err);
    }
    py_guard_leave(&self->guard);
  }
  py_array_release(&array);
  if (status != BERTH_OK) return NULL;
  Py_RETURN_NONE;
}
