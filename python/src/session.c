/* Sessions: creating, binding, closing, and views of their memory. run.c runs them, state.c handles states and
 * params. */
#include "py.h"

PyTypeObject *py_session_type;
static py_session *session_list;

py_session *py_session_at(const void *data) {
  const char *at = data;
  for (py_session *s = session_list; s != NULL; s = s->next)
    if (s->block != NULL && at >= s->block && at < s->block + s->block_size) return s;
  return NULL;
}

int py_session_enter(py_session *self) {
  if (self->guard.lock == NULL) {
    py_invalid("the session was not made: its __init__ was not called, or failed");
    return -1;
  }
  if (py_guard_enter(&self->guard, "session") < 0) return -1;
  if (!self->is_closed) return 0;
  py_guard_leave(&self->guard);
  py_invalid("the session is closed");
  return -1;
}

int py_session_need(py_session *self) {
  if (self->session != NULL) return 0;
  for (uint32_t i = 0; i < self->n_dims; i++) {
    if (self->extents[i] >= 0) continue;
    py_invalid("dimension '%s' is not bound yet: give dims={'%s': ...}, call bind, or run once",
               berth_graph_dim_name(self->graph->graph, i), berth_graph_dim_name(self->graph->graph, i));
    return -1;
  }
  return py_session_adopt_extents(self, self->extents);
}

/* ---- Inputs and outputs ---- */

static int session_port(const berth_graph *graph, berth_value value, const char *name, py_port *out) {
  berth_value_info info = BERTH_VALUE_INFO_INIT;
  berth_error err = {BERTH_OK, ""};
  if (berth_graph_value(graph, value, &info, &err) != BERTH_OK) {
    py_fail(&err);
    return -1;
  }
  out->name = py_string(name != NULL ? name : info.name);
  if (out->name == NULL) return -1;
  PyUnicode_InternInPlace(&out->name);
  out->value = value;
  out->type = info.type;
  out->shape = info.shape;
  return 0;
}

static int session_ports(py_session *self) {
  const berth_graph *graph = self->graph->graph;
  const uint32_t n_in = berth_graph_n_inputs(graph), n_out = berth_graph_n_outputs(graph);
  const uint32_t n_dims = berth_graph_n_dims(graph);
  self->in = PyMem_Calloc(n_in + 1, sizeof *self->in);
  self->out = PyMem_Calloc(n_out + 1, sizeof *self->out);
  self->extents = PyMem_Calloc(n_dims + 1, sizeof *self->extents);
  self->wanted = PyMem_Calloc(n_dims + 1, sizeof *self->wanted);
  if (self->in == NULL || self->out == NULL || self->extents == NULL || self->wanted == NULL) {
    PyErr_NoMemory();
    return -1;
  }
  for (; self->n_in < n_in; self->n_in++)
    if (session_port(graph, berth_graph_input_at(graph, self->n_in), NULL, &self->in[self->n_in]) < 0) return -1;
  for (; self->n_out < n_out; self->n_out++)
    if (session_port(graph, berth_graph_output_at(graph, self->n_out), berth_graph_output_name(graph, self->n_out),
                     &self->out[self->n_out]) < 0)
      return -1;
  self->n_dims = n_dims;
  return 0;
}

static int session_port_bound(py_session *self, py_port *port, uint32_t index, int is_input) {
  const berth_graph *bound = berth_plan_graph(berth_session_plan(self->session));
  berth_value_info info = BERTH_VALUE_INFO_INIT;
  berth_error err = {BERTH_OK, ""};
  if (berth_graph_value(bound, port->value, &info, &err) != BERTH_OK) {
    py_fail(&err);
    return -1;
  }
  port->rank = info.shape.rank;
  for (uint32_t i = 0; i < info.shape.rank; i++) port->dim[i] = info.shape.dim[i].extent;
  port->size = info.size;
  port->data = NULL;
  if (is_input) {
    size_t size;
    if (berth_session_input_data(self->session, index, &port->data, &size, NULL) != BERTH_OK) port->data = NULL;
    return 0;
  }
  port->is_bounded = berth_graph_bounds(bound, port->value) != 0;
  Py_CLEAR(port->empty);
  PyObject *shape = py_extents(port->rank, port->dim), *dtype = py_numpy(PY_NUMPY_DTYPE);
  PyObject *type = dtype != NULL ? PyObject_CallFunction(dtype, "s", py_element_of(port->type)->numpy) : NULL;
  if (shape != NULL && type != NULL) port->empty = PyTuple_Pack(2, shape, type);
  Py_XDECREF(shape);
  Py_XDECREF(type);
  return PyErr_Occurred() ? -1 : 0;
}

/* Called after a binding has become current. */
static int session_refresh(py_session *self) {
  berth_arena *arena = berth_session_arena(self->session);
  int failed = 0;
  for (uint32_t i = 0; i < self->n_in && !failed; i++) failed = session_port_bound(self, &self->in[i], i, 1) < 0;
  for (uint32_t i = 0; i < self->n_out && !failed; i++) failed = session_port_bound(self, &self->out[i], i, 0) < 0;
  self->block = berth_arena_data(arena);
  self->block_size = berth_arena_size(arena);
  return failed ? -1 : 0;
}

/* ---- Creating and binding ---- */

static int session_create(py_session *self, const berth_dim *dims) {
  berth_session_desc desc = BERTH_SESSION_DESC_INIT;
  berth_plan_desc plan = self->request.plan;
  berth_error err = {BERTH_OK, ""};
  berth_status status;
  const berth_graph *graph = self->graph->graph;
  if (berth_graph_n_inputs(graph) != self->n_in || berth_graph_n_outputs(graph) != self->n_out ||
      berth_graph_n_dims(graph) != self->n_dims) {
    py_invalid("the graph has changed since the session was made of it");
    return -1;
  }
  plan.dims = dims;
  plan.n_dims = self->n_dims;
  plan.cancel = self->cancel;
  desc.flags = self->request.session_flags;
  desc.device = plan.device;
  desc.n_threads = plan.n_threads;
  desc.max_bindings = self->request.max_bindings;
  desc.plan = &plan;
  desc.cancel = self->cancel;
  self->graph->n_readers++;
  Py_BEGIN_ALLOW_THREADS;
  status = berth_session_create(graph, &desc, &self->session, &err);
  Py_END_ALLOW_THREADS;
  self->graph->n_readers--;
  if (status != BERTH_OK) {
    if (status == BERTH_CANCELLED) berth_cancel_clear(self->cancel);
    py_fail(&err);
    return -1;
  }
  self->guard.is_alone =
      berth_session_n_threads(self->session) == 1 && (desc.device == NULL || strcmp(desc.device, "cpu") == 0);
  return 0;
}

static void session_refuse_views(Py_ssize_t n_views, const char *consequence) {
  const int one = n_views == 1;
  PyErr_Format(PyExc_BufferError, "%zd view%s of the session's memory %s alive%s", n_views, one ? "" : "s",
               one ? "is" : "are", consequence);
}

static int session_bind_now(py_session *self, const berth_dim *dims) {
  berth_error err = {BERTH_OK, ""};
  berth_status status;
  if (self->n_views > 0) {
    session_refuse_views(self->n_views,
                         ", and binding other shapes would move what is shown: let go of it first (del the "
                         "arrays, or release the tensors)");
    return -1;
  }
  self->block = NULL;
  Py_BEGIN_ALLOW_THREADS;
  status = berth_session_bind(self->session, dims, self->n_dims, &err);
  Py_END_ALLOW_THREADS;
  if (status == BERTH_OK) return 0;
  if (status == BERTH_CANCELLED) berth_cancel_clear(self->cancel);
  self->block = berth_arena_data(berth_session_arena(self->session));
  py_fail(&err);
  return -1;
}

int py_session_adopt_extents(py_session *self, const int64_t *extents) {
  if (self->session != NULL && memcmp(self->extents, extents, sizeof *extents * self->n_dims) == 0) return 0;
  berth_dim *dims = PyMem_Calloc(self->n_dims + 1, sizeof *dims);
  if (dims == NULL) {
    PyErr_NoMemory();
    return -1;
  }
  for (uint32_t i = 0; i < self->n_dims; i++)
    dims[i] = (berth_dim){berth_graph_dim_name(self->graph->graph, i), extents[i]};
  self->n_changes++;
  const int failed = self->session == NULL ? session_create(self, dims) : session_bind_now(self, dims);
  PyMem_Free(dims);
  if (failed < 0) return -1;
  memmove(self->extents, extents, sizeof *extents * self->n_dims);
  return session_refresh(self);
}

/* The extents that dims name, in the graph's order; others in `extents` are unchanged. */
static int session_extents(py_session *self, const berth_dim *dims, size_t n, int64_t *extents) {
  for (size_t i = 0; i < n; i++) {
    uint32_t at = 0;
    while (at < self->n_dims && strcmp(berth_graph_dim_name(self->graph->graph, at), dims[i].name) != 0) at++;
    if (at == self->n_dims || dims[i].extent < 0) {
      if (at == self->n_dims)
        py_invalid("graph '%s' has no dimension named '%s'%s%s", berth_graph_name(self->graph->graph), dims[i].name,
                   self->n_dims != 0 ? "; the first that it has is " : "; it has none",
                   self->n_dims != 0 ? berth_graph_dim_name(self->graph->graph, 0) : "");
      else
        py_invalid("dimension '%s' is bound to %lld; an extent is 0 or more", dims[i].name, (long long)dims[i].extent);
      return -1;
    }
    extents[at] = dims[i].extent;
  }
  return 0;
}

static int session_is_known(const int64_t *extents, uint32_t n) {
  for (uint32_t i = 0; i < n; i++)
    if (extents[i] < 0) return 0;
  return 1;
}

static int session_begin(py_session *self) {
  berth_error err = {BERTH_OK, ""};
  if (berth_cancel_create(py_context, &self->cancel, &err) != BERTH_OK) {
    py_fail(&err);
    return -1;
  }
  if (session_ports(self) < 0) return -1;
  for (uint32_t i = 0; i < self->n_dims; i++) self->extents[i] = -1;
  if (session_extents(self, self->request.plan.dims, self->request.plan.n_dims, self->extents) < 0) return -1;
  return session_is_known(self->extents, self->n_dims) ? py_session_adopt_extents(self, self->extents) : 0;
}

static int session_init(PyObject *object, PyObject *args, PyObject *kwargs) {
  py_session *self = (py_session *)object;
  py_graph *graph;
  if (self->guard.lock != NULL) {
    py_invalid("the session is made already");
    return -1;
  }
  if (py_request_get(args, kwargs, 1, &graph, &self->request) < 0 || py_guard_init(&self->guard, 0) < 0) return -1;
  self->graph = (py_graph *)Py_NewRef((PyObject *)graph);
  if (py_session_enter(self) < 0) return -1;
  self->next = session_list;
  self->link = &session_list;
  if (session_list != NULL) session_list->link = &self->next;
  session_list = self;
  const int failed = session_begin(self) < 0;
  if (failed) self->is_closed = 1;
  py_guard_leave(&self->guard);
  return failed ? -1 : 0;
}

/* Destroys the session itself; in a forked process its threads do not exist, and it is leaked. */
static void session_end(py_session *self) {
  self->is_closed = 1;
  self->block = NULL;
  if (self->session != NULL && !py_guard_is_lost(&self->guard)) berth_session_destroy(self->session);
  self->session = NULL;
}

static void session_free_ports(py_port *ports, uint32_t n) {
  for (uint32_t i = 0; ports != NULL && i < n; i++) {
    Py_XDECREF(ports[i].name);
    Py_XDECREF(ports[i].empty);
  }
  PyMem_Free(ports);
}

static void session_dealloc(PyObject *object) {
  py_session *self = (py_session *)object;
  PyTypeObject *type = Py_TYPE(object);
  freefunc release = __extension__(freefunc) PyType_GetSlot(type, Py_tp_free);
  if (self->link != NULL) {
    *self->link = self->next;
    if (self->next != NULL) self->next->link = self->link;
  }
  const int is_lost = py_guard_is_lost(&self->guard);
  session_end(self);
  if (!is_lost) berth_cancel_destroy(self->cancel); /* a leaked session may still refer to it */
  session_free_ports(self->in, self->n_in);
  session_free_ports(self->out, self->n_out);
  PyMem_Free(self->extents);
  PyMem_Free(self->wanted);
  py_request_release(&self->request);
  Py_CLEAR(self->graph);
  py_guard_free(&self->guard);
  release(object);
  Py_DECREF(type);
}

/* ---- Methods ---- */

static PyObject *session_bind(PyObject *object, PyObject *given) {
  py_session *self = (py_session *)object;
  PyObject *keep = PyList_New(0);
  const berth_dim *dims;
  size_t n;
  int failed = keep == NULL || py_dims_from(given, keep, &dims, &n) < 0 || py_session_enter(self) < 0;
  if (!failed) {
    memcpy(self->wanted, self->extents, sizeof *self->wanted * self->n_dims);
    failed = session_extents(self, dims, n, self->wanted) < 0;
    if (!failed && session_is_known(self->wanted, self->n_dims))
      failed = py_session_adopt_extents(self, self->wanted) < 0;
    else if (!failed)
      memcpy(self->extents, self->wanted, sizeof *self->wanted * self->n_dims);
    py_guard_leave(&self->guard);
  }
  Py_XDECREF(keep);
  if (failed) return NULL;
  Py_RETURN_NONE;
}

static PyObject *session_close(PyObject *object, PyObject *unused) {
  py_session *self = (py_session *)object;
  (void)unused;
  if (self->guard.lock == NULL || self->is_closed) Py_RETURN_NONE;
  if (py_session_enter(self) < 0) return NULL;
  const Py_ssize_t n_views = self->n_views;
  if (n_views == 0) session_end(self);
  py_guard_leave(&self->guard);
  if (n_views == 0) Py_RETURN_NONE;
  session_refuse_views(n_views, "");
  return NULL;
}

static PyObject *session_cancel(PyObject *object, PyObject *unused) {
  py_session *self = (py_session *)object;
  (void)unused;
  if (self->cancel != NULL) berth_cancel_request(self->cancel);
  Py_RETURN_NONE;
}

static PyObject *session_clear_cancel(PyObject *object, PyObject *unused) {
  py_session *self = (py_session *)object;
  (void)unused;
  if (self->cancel != NULL) berth_cancel_clear(self->cancel);
  Py_RETURN_NONE;
}

static PyObject *session_port_list(PyObject *object, const py_port *ports, uint32_t n) {
  PyObject *list = PyList_New(0);
  (void)object;
  for (uint32_t i = 0; list != NULL && i < n; i++) {
    PyObject *item = Py_BuildValue("(OsN)", ports[i].name, berth_type_name(ports[i].type), py_shape(&ports[i].shape));
    if (item == NULL || PyList_Append(list, item) < 0) Py_CLEAR(list);
    Py_XDECREF(item);
  }
  return list;
}

static PyObject *session_inputs(PyObject *object, PyObject *unused) {
  (void)unused;
  return session_port_list(object, ((py_session *)object)->in, ((py_session *)object)->n_in);
}
static PyObject *session_outputs(PyObject *object, PyObject *unused) {
  (void)unused;
  return session_port_list(object, ((py_session *)object)->out, ((py_session *)object)->n_out);
}

static PyObject *session_dims(PyObject *object, void *unused) {
  py_session *self = (py_session *)object;
  PyObject *dict = PyDict_New();
  (void)unused;
  for (uint32_t i = 0; dict != NULL && i < self->n_dims; i++) {
    PyObject *extent = self->extents[i] < 0 ? Py_NewRef(Py_None) : PyLong_FromLongLong(self->extents[i]);
    if (extent == NULL || PyDict_SetItemString(dict, berth_graph_dim_name(self->graph->graph, i), extent) < 0)
      Py_CLEAR(dict);
    Py_XDECREF(extent);
  }
  return dict;
}

static PyObject *session_threads(PyObject *object, void *unused) {
  py_session *self = (py_session *)object;
  (void)unused;
  if (py_session_enter(self) < 0) return NULL;
  PyObject *n = py_session_need(self) < 0 ? NULL : PyLong_FromUnsignedLong(berth_session_n_threads(self->session));
  py_guard_leave(&self->guard);
  return n;
}

static PyObject *session_is_closed(PyObject *object, void *unused) {
  (void)unused;
  return PyBool_FromLong(((py_session *)object)->is_closed);
}

static PyMethodDef session_methods[] = {
    {"run", PY_METHOD(py_session_run), METH_FASTCALL | METH_KEYWORDS,
     "run(output_names=None, input_feed=None, run_options=None) -> list\n\n"
     "Writes the inputs, runs, and gives a list of arrays: the outputs of these names, or all of them. Shapes that "
     "are\n"
     "other than the last ones are bound on the way. Without a feed it runs on what the inputs hold."},
    {"execute", py_session_execute, METH_NOARGS,
     "execute()\n\nRuns on what the inputs hold, and leaves the outputs where they are: see view."},
    {"view", py_session_view, METH_O,
     "view(name) -> Tensor\n\nAn input or output where it lies in the arena, without a copy: in memory of the host, or "
     "of\nCUDA, which DLPack shows to others."},
    {"feed", py_session_feed, METH_O, "feed(input_feed)\n\nWrites the inputs, as run does, and does not run."},
    {"read", py_session_read, METH_O, "read(name) -> array\n\nA copy of an output of the last run, wherever it lies."},
    {"read_into", py_session_read_into, METH_VARARGS,
     "read_into(name, place)\n\nCopies an output into memory that is there: an array in C order, or anything on a GPU "
     "of\nCUDA that has DLPack."},
    {"bind", session_bind, METH_O, "bind(dims)\n\nMakes these extents of the named dimensions current."},
    {"close", session_close, METH_NOARGS, "close()\n\nGives the arena back. Fails while a view of it is alive."},
    {"cancel", session_cancel, METH_NOARGS,
     "cancel()\n\nStops the run that is under way, or the next: it raises Cancelled. Any thread may call it."},
    {"clear_cancel", session_clear_cancel, METH_NOARGS, "clear_cancel()\n\nTakes a cancel back that stopped no run."},
    {"input_ports", session_inputs, METH_NOARGS, "input_ports() -> list of (name, type, shape)"},
    {"output_ports", session_outputs, METH_NOARGS, "output_ports() -> list of (name, type, shape)"},
    {"set_param", py_session_set_param, METH_VARARGS, "set_param(name, array)\n\nGives a param its weights."},
    {"state", py_session_state_get, METH_O, "state(name) -> array\n\nWhat a state holds, as a copy."},
    {"set_state", py_session_state_set, METH_VARARGS, "set_state(name, array)\n\nWrites a state."},
    {"reset", py_session_state_reset, METH_VARARGS, "reset(name=None)\n\nGives a state, or all, its initial value."},
    {"save_states", py_session_save, METH_NOARGS, "save_states() -> bytes\n\nAll states as one piece."},
    {"restore_states", py_session_restore, METH_O, "restore_states(data)\n\nWhat save_states gave."},
    {"states_lost", py_session_states_lost, METH_NOARGS,
     "states_lost() -> bool\n\nA run failed while it updated states: restore, reset or set all of them."},
    {"state_names", py_session_states, METH_NOARGS, "state_names() -> list of str"},
    {NULL, NULL, 0, NULL}};

static PyObject *session_changes(PyObject *object, void *unused) {
  (void)unused;
  return PyLong_FromUnsignedLongLong(((py_session *)object)->n_changes);
}

static PyGetSetDef session_getters[] = {
    {"changes", session_changes, NULL, "Counts the calls after which outputs are not those of before.", NULL},
    {"dims", session_dims, NULL, "The extents of the named dimensions; None where one is not known yet.", NULL},
    {"threads", session_threads, NULL, "How many threads run it.", NULL},
    {"closed", session_is_closed, NULL, "Whether close was called.", NULL},
    {NULL, NULL, NULL, NULL, NULL}};

static PyType_Slot session_slots[] = {{Py_tp_doc, "What berth.InferenceSession is made of."},
                                      {Py_tp_new, PY_SLOT(PyType_GenericNew)},
                                      {Py_tp_init, PY_SLOT(session_init)},
                                      {Py_tp_dealloc, PY_SLOT(session_dealloc)},
                                      {Py_tp_methods, session_methods},
                                      {Py_tp_getset, session_getters},
                                      {0, NULL}};

static PyType_Spec session_spec = {"berth._berth.SessionHandle", sizeof(py_session), 0,
                                   Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, session_slots};

int py_session_init_type(PyObject *module) {
  py_session_type = py_type(module, &session_spec);
  return py_session_type != NULL ? 0 : -1;
}
