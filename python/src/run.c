/* Running a session: converts arrays, runs with the GIL released, returns arrays. Everything possible is prepared when
 * a binding becomes current, so that a call costs little more than the run. */
#include <stdio.h>
#include <stdlib.h>

#include "py.h"

enum {
  RUN_FEW = 8 /* numbers of inputs or outputs that need no allocation per call */
};

typedef struct run_result {
  uint32_t index;
  PyObject *array;
  Py_buffer buffer;
  int has_buffer;
} run_result;

typedef struct run_call {
  py_session *self;
  int has_feeds;
  py_array few_arrays[RUN_FEW], *arrays;
  uint32_t n_arrays;
  run_result few_results[RUN_FEW], *results;
  uint32_t n_results;
} run_call;

static void run_release(run_call *c) {
  for (uint32_t i = 0; i < c->n_arrays; i++) py_array_release(&c->arrays[i]);
  for (uint32_t i = 0; i < c->n_results; i++) {
    if (c->results[i].has_buffer) PyBuffer_Release(&c->results[i].buffer);
    Py_XDECREF(c->results[i].array);
  }
  if (c->arrays != c->few_arrays) PyMem_Free(c->arrays);
  if (c->results != c->few_results) PyMem_Free(c->results);
}

/* ---- Arguments ---- */

/* The first name in the feed that is not an input, as text; NULL: none, or an error is set. */
static PyObject *run_unknown_name(py_session *self, PyObject *feeds) {
  PyObject *key, *value, *text = NULL, *copy = PyDict_Copy(feeds); /* comparing keys may change the dict */
  Py_ssize_t at = 0;
  while (copy != NULL && text == NULL && !PyErr_Occurred() && PyDict_Next(copy, &at, &key, &value)) {
    int is_known = 0;
    for (uint32_t i = 0; i < self->n_in && !is_known; i++)
      is_known = PyObject_RichCompareBool(key, self->in[i].name, Py_EQ) == 1;
    if (!is_known && !PyErr_Occurred()) text = PyObject_Str(key);
  }
  Py_XDECREF(copy);
  return text;
}

static int run_complain_names(py_session *self, PyObject *feeds) {
  PyObject *text = run_unknown_name(self, feeds);
  const char *name = text != NULL ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
  if (name != NULL)
    py_invalid("graph '%s' has no input '%s'%s%s", berth_graph_name(self->graph->graph), name,
               self->n_in != 0 ? "; the first that it has is " : "; it has none",
               self->n_in != 0 ? PyUnicode_AsUTF8AndSize(self->in[0].name, NULL) : "");
  Py_XDECREF(text);
  return PyErr_Occurred() ? -1 : 0;
}

static int run_complain_missing(py_session *self, PyObject *feeds, uint32_t input) {
  PyObject *text = run_unknown_name(self, feeds);
  const char *other = text != NULL ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
  if (!PyErr_Occurred())
    py_invalid("input '%s' is missing from the feed%s%s%s", PyUnicode_AsUTF8AndSize(self->in[input].name, NULL),
               other != NULL ? ", which has '" : "", other != NULL ? other : "", other != NULL ? "'" : "");
  Py_XDECREF(text);
  return -1;
}

static int run_feed(run_call *c, PyObject *feeds) {
  py_session *self = c->self;
  if (self->n_in > RUN_FEW) c->arrays = PyMem_Calloc(self->n_in, sizeof *c->arrays);
  if (c->arrays == NULL) {
    c->arrays = c->few_arrays;
    PyErr_NoMemory();
    return -1;
  }
  for (uint32_t i = 0; i < self->n_in; i++) {
    PyObject *given = PyDict_GetItemWithError(feeds, self->in[i].name);
    if (given == NULL) return PyErr_Occurred() ? -1 : run_complain_missing(self, feeds, i);
    Py_INCREF(given); /* converting it may change the dict */
    const int failed = py_array_get(given, self->in[i].type, &c->arrays[i]) < 0;
    Py_DECREF(given);
    if (failed) return -1;
    c->n_arrays++;
  }
  c->has_feeds = 1;
  return PyDict_Size(feeds) == (Py_ssize_t)self->n_in ? 0 : run_complain_names(self, feeds);
}

/* "f32[batch, 4]" */
static const char *run_declared(const py_port *port, char *text) {
  size_t at = (size_t)snprintf(text, PY_SHAPE_TEXT, "%s[", berth_type_name(port->type));
  for (uint32_t i = 0; i < port->shape.rank && at < PY_SHAPE_TEXT - 24; i++) {
    const berth_dim *dim = &port->shape.dim[i];
    at += (size_t)(dim->name != NULL
                       ? snprintf(text + at, PY_SHAPE_TEXT - at, "%s%.16s", i > 0 ? ", " : "", dim->name)
                       : snprintf(text + at, PY_SHAPE_TEXT - at, "%s%lld", i > 0 ? ", " : "", (long long)dim->extent));
  }
  snprintf(text + at, PY_SHAPE_TEXT - at, "]");
  return text;
}

static int run_complain_shape(const py_port *port, const py_array *a) {
  char given[PY_SHAPE_TEXT], wanted[PY_SHAPE_TEXT];
  py_invalid("input '%s' is %s, but %s was given", PyUnicode_AsUTF8AndSize(port->name, NULL),
             run_declared(port, wanted), py_shape_text(a->type, a->rank, a->dim, given));
  return -1;
}

static int run_is_bound_so(const run_call *c) {
  for (uint32_t i = 0; i < c->n_arrays; i++) {
    const py_port *port = &c->self->in[i];
    const py_array *a = &c->arrays[i];
    if (a->rank != port->rank || memcmp(a->dim, port->dim, sizeof a->dim[0] * a->rank) != 0) return 0;
  }
  return 1;
}

/* Infers extents from the arrays, into `wanted`. */
static int run_find_extents(run_call *c) {
  py_session *self = c->self;
  memcpy(self->wanted, self->extents, sizeof *self->wanted * self->n_dims);
  for (uint32_t d = 0; d < self->n_dims; d++) {
    const char *name = berth_graph_dim_name(self->graph->graph, d);
    int is_set = 0;
    for (uint32_t i = 0; i < c->n_arrays; i++) {
      const py_port *port = &self->in[i];
      if (port->shape.rank != c->arrays[i].rank) return run_complain_shape(port, &c->arrays[i]);
      for (uint32_t k = 0; k < port->shape.rank; k++) {
        if (port->shape.dim[k].name == NULL || strcmp(port->shape.dim[k].name, name) != 0) continue;
        if (is_set && self->wanted[d] != c->arrays[i].dim[k]) {
          py_invalid("dimension '%s' is %lld in one input and %lld in input '%s'", name, (long long)self->wanted[d],
                     (long long)c->arrays[i].dim[k], PyUnicode_AsUTF8AndSize(port->name, NULL));
          return -1;
        }
        is_set = 1;
        self->wanted[d] = c->arrays[i].dim[k];
      }
    }
  }
  return 0;
}

/* Binds the session to the shapes of the arrays. */
static int run_bind(run_call *c) {
  py_session *self = c->self;
  for (uint32_t i = 0; i < c->n_arrays; i++)
    if (c->arrays[i].type != self->in[i].type) return run_complain_shape(&self->in[i], &c->arrays[i]);
  if (self->session != NULL && run_is_bound_so(c)) return 0;
  if (run_find_extents(c) < 0) return -1;
  for (uint32_t i = 0; i < self->n_dims; i++) {
    if (self->wanted[i] >= 0) continue;
    py_invalid("dimension '%s' is not bound, and no input says what it is: give dims={'%s': ...}",
               berth_graph_dim_name(self->graph->graph, i), berth_graph_dim_name(self->graph->graph, i));
    return -1;
  }
  for (uint32_t i = 0; i < c->n_arrays; i++) {
    const py_port *port = &self->in[i];
    if (port->shape.rank != c->arrays[i].rank) return run_complain_shape(port, &c->arrays[i]);
    for (uint32_t k = 0; k < port->shape.rank; k++)
      if (port->shape.dim[k].name == NULL && port->shape.dim[k].extent != c->arrays[i].dim[k])
        return run_complain_shape(port, &c->arrays[i]);
  }
  return py_session_adopt_extents(self, self->wanted);
}

/* ---- Requested outputs ---- */

int py_session_find_output(py_session *self, PyObject *name, uint32_t *out) {
  for (*out = 0; *out < self->n_out; (*out)++) {
    const int is_same = name == self->out[*out].name ? 1 : PyObject_RichCompareBool(name, self->out[*out].name, Py_EQ);
    if (is_same != 0) return is_same < 0 ? -1 : 0;
  }
  PyObject *text = PyObject_Str(name);
  const char *utf8 = text != NULL ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
  if (utf8 != NULL)
    py_invalid("graph '%s' has no output '%s'; the first that it has is %s", berth_graph_name(self->graph->graph), utf8,
               self->n_out != 0 ? PyUnicode_AsUTF8AndSize(self->out[0].name, NULL) : "none");
  Py_XDECREF(text);
  return -1;
}

static int run_choose(run_call *c, PyObject *names) {
  py_session *self = c->self;
  Py_ssize_t n = names != NULL && names != Py_None ? PySequence_Size(names) : 0;
  if (n < 0) return -1;
  if (n > 0 && PyUnicode_Check(names)) {
    PyErr_SetString(PyExc_TypeError, "the names of outputs are a list of str");
    return -1;
  }
  const int is_all = n == 0; /* as in ONNX Runtime, no names means all outputs */
  if (is_all) n = (Py_ssize_t)self->n_out;
  if (n > RUN_FEW) c->results = PyMem_Calloc((size_t)n, sizeof *c->results);
  if (c->results == NULL) {
    c->results = c->few_results;
    PyErr_NoMemory();
    return -1;
  }
  for (Py_ssize_t i = 0; i < n; i++) {
    run_result *r = &c->results[i];
    r->array = NULL;
    r->has_buffer = 0;
    r->index = (uint32_t)i;
    if (!is_all) {
      PyObject *name = PySequence_GetItem(names, i);
      const int failed = name == NULL || py_session_find_output(self, name, &r->index) < 0;
      Py_XDECREF(name);
      if (failed) return -1;
    }
    c->n_results++;
  }
  return 0;
}

/* An array for a result of this shape, and its memory. */
static int run_room(const py_port *port, uint32_t rank, const int64_t *dim, int is_planned, run_result *r) {
  PyObject *empty = py_numpy(PY_NUMPY_EMPTY);
  if (empty == NULL && PyErr_Occurred()) return -1;
  if (empty == NULL) {
    r->array = (PyObject *)py_tensor_new(port->type, rank, dim);
  } else if (is_planned) {
    r->array = PyObject_Call(empty, port->empty, NULL);
  } else {
    PyObject *shape = py_extents(rank, dim);
    r->array = shape != NULL ? PyObject_CallFunctionObjArgs(empty, shape, PyTuple_GetItem(port->empty, 1), NULL) : NULL;
    Py_XDECREF(shape);
  }
  if (r->array == NULL || PyObject_GetBuffer(r->array, &r->buffer, PyBUF_WRITABLE) < 0) return -1;
  r->has_buffer = 1;
  return 0;
}

static int run_make_room(run_call *c) {
  for (uint32_t i = 0; i < c->n_results; i++) {
    const py_port *port = &c->self->out[c->results[i].index];
    if (!port->is_bounded && run_room(port, port->rank, port->dim, 1, &c->results[i]) < 0) return -1;
  }
  return 0;
}

/* Allocates outputs whose extents the run has determined. */
static int run_read_bounded(run_call *c) {
  for (uint32_t i = 0; i < c->n_results; i++) {
    run_result *r = &c->results[i];
    uint32_t rank;
    int64_t dim[BERTH_MAX_RANK];
    berth_error err = {BERTH_OK, ""};
    if (r->has_buffer) continue;
    berth_status status = berth_session_output_shape(c->self->session, r->index, &rank, dim, &err);
    if (status == BERTH_OK) {
      if (run_room(&c->self->out[r->index], rank, dim, 0, r) < 0) return -1;
      status = berth_session_read_at(c->self->session, r->index, r->buffer.buf, (size_t)r->buffer.len, &err);
    }
    if (status != BERTH_OK) {
      py_fail(&err);
      return -1;
    }
  }
  return 0;
}

/* ---- The run, without the GIL ---- */

static berth_status run_write(py_session *self, uint32_t i, const py_array *a, berth_error *err) {
  const char *data = a->data;
  if (a->device != PY_ON_HOST) {
    berth_memory from, own = BERTH_MEMORY_INIT;
    py_array_memory(a, &from);
    if (berth_session_input_memory(self->session, i, &own, NULL) == BERTH_OK && own.kind == from.kind &&
        own.address == from.address)
      return BERTH_OK; /* a view of the input itself */
    return berth_session_write_memory(self->session, i, &from, err);
  }
  if (data == self->in[i].data && data != NULL) return BERTH_OK; /* a view of the input itself */
  if (self->block == NULL || data + a->size <= self->block || data >= self->block + self->block_size)
    return berth_session_write_at(self->session, i, data, (size_t)a->size, err);
  void *copy = malloc(a->size != 0 ? a->size : 1); /* it is in the arena, possibly overlapping the input */
  if (copy == NULL) {
    err->status = BERTH_NOMEM;
    strcpy(err->message, "out of host memory");
    return BERTH_NOMEM;
  }
  memcpy(copy, data, a->size);
  const berth_status status = berth_session_write_at(self->session, i, copy, (size_t)a->size, err);
  free(copy);
  return status;
}

static berth_status run_write_all(run_call *c, berth_error *err) {
  berth_status status = BERTH_OK;
  for (uint32_t i = 0; i < c->n_arrays && status == BERTH_OK; i++) status = run_write(c->self, i, &c->arrays[i], err);
  return status;
}

static berth_status run_all(run_call *c, berth_error *err) {
  py_session *self = c->self;
  berth_status status = run_write_all(c, err);
  if (status == BERTH_OK) status = berth_session_run(self->session, err);
  for (uint32_t i = 0; i < c->n_results && status == BERTH_OK; i++) {
    const run_result *r = &c->results[i];
    if (r->has_buffer)
      status = berth_session_read_at(self->session, r->index, r->buffer.buf, (size_t)r->buffer.len, err);
  }
  return status;
}

/* Calls one of the two above without the GIL. */
static int run_unlocked(run_call *c, berth_status (*work)(run_call *c, berth_error *err)) {
  berth_error err;
  berth_status status;
  err.message[0] = '\0';
  c->self->n_changes++;
  Py_BEGIN_ALLOW_THREADS;
  status = work(c, &err);
  Py_END_ALLOW_THREADS;
  if (status == BERTH_OK) return 0;
  if (status == BERTH_CANCELLED) berth_cancel_clear(c->self->cancel);
  err.status = status;
  py_fail(&err);
  return -1;
}

static PyObject *run_list(run_call *c) {
  PyObject *list = PyList_New((Py_ssize_t)c->n_results);
  for (uint32_t i = 0; list != NULL && i < c->n_results; i++)
    PyList_SetItem(list, (Py_ssize_t)i, Py_NewRef(c->results[i].array)); /* steals the reference; the index is valid */
  return list;
}

static PyObject *run_inside(run_call *c, PyObject *names) {
  if (run_bind(c) < 0 || run_choose(c, names) < 0 || run_make_room(c) < 0) return NULL;
  if (run_unlocked(c, run_all) < 0 || run_read_bounded(c) < 0) return NULL;
  return run_list(c);
}

static int run_parse(PyObject *const *args, Py_ssize_t n, PyObject *kwnames, PyObject *out[3]) {
  static const char *const names[] = {"output_names", "input_feed", "run_options"};
  if (n > 3) {
    PyErr_Format(PyExc_TypeError, "run takes at most 3 arguments, not %zd", n);
    return -1;
  }
  for (Py_ssize_t i = 0; i < n; i++) out[i] = args[i];
  for (Py_ssize_t k = 0; kwnames != NULL && k < PyTuple_Size(kwnames); k++) {
    int at = 0;
    while (at < 3 && PyUnicode_CompareWithASCIIString(PyTuple_GetItem(kwnames, k), names[at]) != 0) at++;
    if (at == 3 || out[at] != NULL) {
      PyErr_Format(PyExc_TypeError, "run got the argument %R %s", PyTuple_GetItem(kwnames, k),
                   at == 3 ? "and has none of that name" : "twice");
      return -1;
    }
    out[at] = args[n + k];
  }
  return 0;
}

static void run_start(run_call *c, PyObject *session) {
  c->self = (py_session *)session;
  c->arrays = c->few_arrays;
  c->results = c->few_results;
  c->n_arrays = c->n_results = 0;
  c->has_feeds = 0;
}

/* A new reference to a dict. */
static PyObject *run_dict(PyObject *given) {
  if (PyDict_Check(given)) return Py_NewRef(given);
  return PyObject_CallFunctionObjArgs((PyObject *)&PyDict_Type, given, NULL);
}

/* Options are a RunOptions object, which calls run again without it. */
static PyObject *run_with_options(PyObject *session, PyObject *const given[3]) {
  PyObject *result = PyObject_CallMethod(given[2], "_run", "OOO", session, given[0] != NULL ? given[0] : Py_None,
                                         given[1] != NULL ? given[1] : Py_None);
  if (result == NULL && PyErr_ExceptionMatches(PyExc_AttributeError) && !PyObject_HasAttrString(given[2], "_run")) {
    PyErr_Clear();
    PyErr_SetString(PyExc_TypeError, "run_options is a berth.RunOptions");
  }
  return result;
}

PyObject *py_session_run(PyObject *object, PyObject *const *args, Py_ssize_t n, PyObject *kwnames) {
  PyObject *given[3] = {NULL, NULL, NULL}, *feeds = NULL, *result = NULL;
  run_call c;
  if (run_parse(args, n, kwnames, given) < 0) return NULL;
  run_start(&c, object);
  if (c.self->guard.lock == NULL) return py_invalid("the session was not made: its __init__ was not called");
  if (given[2] != NULL && given[2] != Py_None) return run_with_options(object, given);
  if (given[1] != NULL && given[1] != Py_None && (feeds = run_dict(given[1])) == NULL) return NULL;
  if ((feeds == NULL || run_feed(&c, feeds) == 0) && py_session_enter(c.self) == 0) {
    if (c.has_feeds || py_session_need(c.self) == 0) result = run_inside(&c, given[0]);
    py_guard_leave(&c.self->guard);
  }
  run_release(&c);
  Py_XDECREF(feeds);
  return result;
}

PyObject *py_session_feed(PyObject *object, PyObject *given) {
  PyObject *feeds;
  run_call c;
  int failed = 1;
  run_start(&c, object);
  if (c.self->guard.lock == NULL) return py_invalid("the session was not made: its __init__ was not called");
  if ((feeds = run_dict(given)) == NULL) return NULL;
  if (run_feed(&c, feeds) == 0 && py_session_enter(c.self) == 0) {
    failed = run_bind(&c) < 0 || run_unlocked(&c, run_write_all) < 0;
    py_guard_leave(&c.self->guard);
  }
  run_release(&c);
  Py_DECREF(feeds);
  if (failed) return NULL;
  Py_RETURN_NONE;
}

PyObject *py_session_execute(PyObject *object, PyObject *unused) {
  run_call c;
  (void)unused;
  c.self = (py_session *)object;
  c.n_arrays = c.n_results = 0;
  if (py_session_enter(c.self) < 0) return NULL;
  const int failed = py_session_need(c.self) < 0 || run_unlocked(&c, run_all) < 0;
  py_guard_leave(&c.self->guard);
  if (failed) return NULL;
  Py_RETURN_NONE;
}

PyObject *py_session_read(PyObject *object, PyObject *name) {
  PyObject *array = NULL;
  run_call c;
  run_start(&c, object);
  if (py_session_enter(c.self) < 0) return NULL;
  run_result *r = &c.results[0];
  r->array = NULL;
  r->has_buffer = 0;
  if (py_session_need(c.self) == 0 && py_session_find_output(c.self, name, &r->index) == 0) {
    c.n_results = 1;
    if (run_read_bounded(&c) == 0) array = Py_NewRef(r->array);
  }
  py_guard_leave(&c.self->guard);
  run_release(&c);
  return array;
}
