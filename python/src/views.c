/* Views of a session's inputs and outputs, and outputs written to the caller's memory. */
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

/* ---- Outputs to the caller's memory ---- */

/* Checks that the memory has the output's type and extents, or space for the planned ones if a run determines them.
 * Blocks are bytes. */
static int view_check_place(const py_port *port, const py_array *place) {
  const int is_plain = berth_type_size(port->type) != 0;
  int is_same = place->type == (is_plain ? port->type : BERTH_U8);
  if (is_plain && !port->is_bounded) {
    is_same = is_same && place->rank == port->rank;
    for (uint32_t i = 0; is_same && i < port->rank; i++) is_same = place->dim[i] == port->dim[i];
  }
  if (is_same) return 0;
  char wanted[PY_SHAPE_TEXT], given[PY_SHAPE_TEXT];
  py_invalid("output '%s' is %s, but the place for it is %s", PyUnicode_AsUTF8AndSize(port->name, NULL),
             py_shape_text(port->type, port->rank, port->dim, wanted),
             py_shape_text(place->type, place->rank, place->dim, given));
  return -1;
}

/* Without the GIL. */
static int view_read(py_session *self, uint32_t output, const py_array *place) {
  berth_error err = {BERTH_OK, ""};
  berth_status status;
  berth_memory to;
  py_array_memory(place, &to);
  Py_BEGIN_ALLOW_THREADS;
  status = berth_session_read_memory(self->session, output, &to, &err);
  Py_END_ALLOW_THREADS;
  if (status != BERTH_OK) py_fail(&err);
  return status == BERTH_OK ? 0 : -1;
}

/* Host memory through the buffer protocol, CUDA memory through DLPack. */
PyObject *py_session_read_into(PyObject *object, PyObject *args) {
  py_session *self = (py_session *)object;
  PyObject *name, *given;
  py_array place;
  uint32_t output;
  int failed = 1;
  if (!PyArg_ParseTuple(args, "UO", &name, &given) || py_session_enter(self) < 0) return NULL;
  if (py_session_need(self) == 0 && py_session_find_output(self, name, &output) == 0 &&
      py_array_get_place(given, self->out[output].type, &place) == 0) {
    failed = view_check_place(&self->out[output], &place) < 0 || view_read(self, output, &place) < 0;
    py_array_release(&place);
  }
  py_guard_leave(&self->guard);
  if (failed) return NULL;
  Py_RETURN_NONE;
}
