/* Plans: queries, and pictures of them. Either a separate plan, or a session's current one. */
#include "py.h"

PyTypeObject *py_plan_type;

/* ---- Arguments ---- */

static const struct {
  uint32_t plan, session;
} request_flags[] = {{BERTH_PLAN_REFERENCE, BERTH_SESSION_REFERENCE},
                     {0, BERTH_SESSION_CHECKED},
                     {BERTH_PLAN_BF16_WEIGHTS, 0},
                     {BERTH_PLAN_F16_WEIGHTS, 0},
                     {BERTH_PLAN_FALLBACK_CPU, 0},
                     {BERTH_PLAN_INPUTS_DIE, 0},
                     {BERTH_PLAN_NO_REUSE, 0}};
enum {
  N_FLAGS = sizeof request_flags / sizeof request_flags[0]
};

int py_request_get(PyObject *args, PyObject *kwargs, int is_session, py_graph **graph, py_request *out) {
  static char *names[] = {"graph",       "dims",         "device",    "budget",  "threads",      "effort",
                          "gpu_profile", "max_bindings", "reference", "checked", "bf16_weights", "f16_weights",
                          "fallback",    "inputs_die",   "no_reuse",  NULL};
  PyObject *dims = NULL, *device = NULL, *profile = NULL;
  int flag[N_FLAGS] = {0};
  *out = (py_request){.plan = BERTH_PLAN_DESC_INIT};
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!|OOO&O&O&OO&ppppppp", names, py_graph_type, graph, &dims, &device,
                                   py_count64, &out->plan.budget, py_count32, &out->plan.n_threads, py_count64,
                                   &out->plan.effort, &profile, py_count32, &out->max_bindings, &flag[0], &flag[1],
                                   &flag[2], &flag[3], &flag[4], &flag[5], &flag[6]))
    return -1;
  out->keep = PyList_New(0);
  if (out->keep == NULL) return -1;
  PyObject *texts[2] = {device, profile};
  const char **places[2] = {&out->plan.device, &out->plan.gpu_profile};
  for (int i = 0; i < 2; i++) {
    if (texts[i] == NULL || texts[i] == Py_None) continue;
    if (PyList_Append(out->keep, texts[i]) < 0) return -1;
    *places[i] = PyUnicode_AsUTF8AndSize(texts[i], NULL);
    if (*places[i] == NULL) return -1;
  }
  for (int i = 0; i < N_FLAGS; i++) {
    if (!flag[i]) continue;
    out->plan.flags |= request_flags[i].plan;
    if (is_session) out->session_flags |= request_flags[i].session;
  }
  return py_dims_from(dims, out->keep, &out->plan.dims, &out->plan.n_dims);
}

void py_request_release(py_request *request) { Py_CLEAR(request->keep); }

/* ---- Making and finding plans ---- */

static PyObject *plan_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
  py_graph *graph;
  py_request request;
  berth_plan *plan = NULL;
  berth_error err = {BERTH_OK, ""};
  berth_status status;
  if (py_request_get(args, kwargs, 0, &graph, &request) < 0) {
    py_request_release(&request);
    return NULL;
  }
  Py_INCREF(PY_OBJECT(graph));
  graph->n_readers++;
  Py_BEGIN_ALLOW_THREADS;
  status = berth_plan_create(graph->graph, &request.plan, &plan, &err);
  Py_END_ALLOW_THREADS;
  graph->n_readers--;
  Py_DECREF(PY_OBJECT(graph));
  py_request_release(&request);
  if (status != BERTH_OK) return py_fail(&err);
  allocfunc alloc = __extension__(allocfunc) PyType_GetSlot(type, Py_tp_alloc);
  py_plan *self = (py_plan *)alloc(type, 0);
  if (self == NULL) {
    berth_plan_destroy(plan);
    return NULL;
  }
  self->own = plan;
  return (PyObject *)self;
}

static PyObject *plan_of(PyObject *class, PyObject *object) {
  if (!PyObject_TypeCheck(object, py_session_type)) {
    PyErr_SetString(PyExc_TypeError, "a session is needed");
    return NULL;
  }
  py_session *session = (py_session *)object;
  if (py_session_enter(session) < 0) return NULL;
  py_plan *self = NULL;
  if (py_session_need(session) == 0) {
    allocfunc alloc = __extension__(allocfunc) PyType_GetSlot((PyTypeObject *)class, Py_tp_alloc);
    self = (py_plan *)alloc((PyTypeObject *)class, 0);
  }
  if (self != NULL) {
    self->of_session = berth_session_plan(session->session);
    self->session = session;
    Py_INCREF(PY_OBJECT(session));
  }
  py_guard_leave(&session->guard);
  return (PyObject *)self;
}

static void plan_dealloc(PyObject *object) {
  py_plan *self = (py_plan *)object;
  PyTypeObject *type = Py_TYPE(object);
  freefunc release = __extension__(freefunc) PyType_GetSlot(type, Py_tp_free);
  berth_plan_destroy(self->own);
  Py_CLEAR(self->session);
  release(object);
  Py_DECREF(type);
}

/* The plan, to be released with plan_leave; a session's only as long as it is the current one. */
static const berth_plan *plan_enter(py_plan *self) {
  if (self->own != NULL) return self->own;
  if (self->session == NULL) return (const berth_plan *)py_invalid("there is no plan");
  if (py_session_enter(self->session) < 0) return NULL;
  if (self->session->session != NULL && berth_session_plan(self->session->session) == self->of_session)
    return self->of_session;
  py_guard_leave(&self->session->guard);
  return (const berth_plan *)py_invalid(
      "the session has bound other shapes since, and this plan is not its plan any more: ask it for the new one");
}

static void plan_leave(py_plan *self) {
  if (self->own == NULL) py_guard_leave(&self->session->guard);
}

/* ---- Queries ---- */

static PyObject *plan_info(PyObject *object, PyObject *unused) {
  berth_plan_info i = BERTH_PLAN_INFO_INIT;
  berth_error err = {BERTH_OK, ""};
  const berth_plan *plan = plan_enter((py_plan *)object);
  (void)unused;
  if (plan == NULL) return NULL;
  const berth_status status = berth_plan_get_info(plan, &i, &err);
  plan_leave((py_plan *)object);
  if (status != BERTH_OK) return py_fail(&err);
  typedef unsigned long long u;
  return Py_BuildValue("{s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:N,s:N,s:I,s:I,s:I,s:I,s:I,s:I,s:K}", "arena_size",
                       (u)i.arena_size, "weights_size", (u)i.weights_size, "activations_size", (u)i.activations_size,
                       "activations_lower_bound", (u)i.activations_lower_bound, "scratch_size", (u)i.scratch_size,
                       "state_size", (u)i.state_size, "total_unshared", (u)i.total_unshared, "saved", (u)i.saved,
                       "preparation_size", (u)i.preparation_size, "preparation_peak", (u)i.preparation_peak, "optimal",
                       PyBool_FromLong(i.optimal), "order_optimal", PyBool_FromLong(i.order_optimal), "n_values",
                       i.n_values, "n_buffers", i.n_buffers, "n_steps", i.n_steps, "n_recomputed", i.n_recomputed,
                       "n_split", i.n_split, "n_slices", i.n_slices, "pack_nodes", (u)i.pack_nodes);
}

static PyObject *plan_arena_size(PyObject *object, void *unused) {
  const berth_plan *plan = plan_enter((py_plan *)object);
  (void)unused;
  if (plan == NULL) return NULL;
  const uint64_t size = berth_plan_arena_size(plan);
  plan_leave((py_plan *)object);
  return PyLong_FromUnsignedLongLong(size);
}

static int plan_kind(const char *name, berth_report_kind *out) {
  static const char *const kinds[] = {"text", "csv", "svg", "html"};
  for (int i = 0; i < 4; i++) {
    if (strcmp(name, kinds[i]) != 0) continue;
    *out = (berth_report_kind)i;
    return 0;
  }
  py_invalid("a report is 'text', 'csv', 'svg' or 'html', not '%s'", name);
  return -1;
}

static PyObject *plan_report(PyObject *object, PyObject *args) {
  const char *name = "text";
  berth_report_kind kind;
  berth_error err = {BERTH_OK, ""};
  berth_status status;
  if (!PyArg_ParseTuple(args, "|s", &name) || plan_kind(name, &kind) < 0) return NULL;
  PyObject *list = PyList_New(0);
  const berth_plan *plan = list != NULL ? plan_enter((py_plan *)object) : NULL;
  if (plan == NULL) {
    Py_XDECREF(list);
    return NULL;
  }
  Py_BEGIN_ALLOW_THREADS;
  status = berth_plan_report(plan, kind, py_text_write, list, &err);
  Py_END_ALLOW_THREADS;
  plan_leave((py_plan *)object);
  PyObject *text = status == BERTH_OK ? py_text_join(list) : py_fail(&err);
  Py_DECREF(list);
  return text;
}

static PyObject *plan_slot_dict(const berth_slot *slot) {
  PyObject *offset = slot->offset == BERTH_OFFSET_NONE ? Py_NewRef(Py_None) : PyLong_FromUnsignedLongLong(slot->offset);
  return Py_BuildValue("{s:N,s:K,s:I,s:I,s:N,s:N}", "offset", offset, "size", (unsigned long long)slot->size, "birth",
                       slot->birth, "death", slot->death, "is_view", PyBool_FromLong(slot->is_view), "strides",
                       py_extents(slot->rank, slot->stride));
}

static PyObject *plan_slot(PyObject *object, PyObject *name) {
  const char *text = PyUnicode_Check(name) ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL;
  berth_slot slot = BERTH_SLOT_INIT;
  berth_error err = {BERTH_OK, ""};
  if (text == NULL) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "the name of a value is a str");
    return NULL;
  }
  const berth_plan *plan = plan_enter((py_plan *)object);
  if (plan == NULL) return NULL;
  const berth_value value = berth_graph_find(berth_plan_graph(plan), text);
  const berth_status status = value == BERTH_VALUE_NONE ? BERTH_OK : berth_plan_slot(plan, value, &slot, &err);
  plan_leave((py_plan *)object);
  if (value == BERTH_VALUE_NONE) return py_invalid("the plan's graph has no value '%s'", text);
  return status == BERTH_OK ? plan_slot_dict(&slot) : py_fail(&err);
}

static PyObject *plan_check(PyObject *object, PyObject *unused) {
  berth_error err = {BERTH_OK, ""};
  const berth_plan *plan = plan_enter((py_plan *)object);
  (void)unused;
  if (plan == NULL) return NULL;
  const berth_status status = berth_plan_check(plan, &err);
  plan_leave((py_plan *)object);
  if (status != BERTH_OK) return py_fail(&err);
  Py_RETURN_NONE;
}

static PyMethodDef plan_methods[] = {
    {"of", plan_of, METH_O | METH_CLASS, "of(session) -> Plan\n\nThe plan that a session has at the moment."},
    {"info", plan_info, METH_NOARGS, "info() -> dict\n\nSizes and counts, as berth_plan_info has them."},
    {"report", plan_report, METH_VARARGS,
     "report(kind='text') -> str\n\nWhere and when every value lives: 'text', 'csv', 'svg' or 'html'."},
    {"slot", plan_slot, METH_O,
     "slot(name) -> dict\n\nWhere a value lies: offset (None: not in the arena), size, birth and death (steps), "
     "is_view, "
     "strides."},
    {"check", plan_check, METH_NOARGS, "check()\n\nReplays the plan byte by byte; fails where two values collide."},
    {NULL, NULL, 0, NULL}};

static PyGetSetDef plan_getters[] = {
    {"arena_size", plan_arena_size, NULL, "Bytes of the one block: weights, states, activations and scratch.", NULL},
    {NULL, NULL, NULL, NULL, NULL}};

static PyType_Slot plan_slots[] = {{Py_tp_doc, "What berth.Plan is made of."},
                                   {Py_tp_new, PY_SLOT(plan_new)},
                                   {Py_tp_dealloc, PY_SLOT(plan_dealloc)},
                                   {Py_tp_methods, plan_methods},
                                   {Py_tp_getset, plan_getters},
                                   {0, NULL}};

static PyType_Spec plan_spec = {"berth._berth.PlanHandle", sizeof(py_plan), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
                                plan_slots};

int py_plan_init(PyObject *module) {
  py_plan_type = py_type(module, &plan_spec);
  return py_plan_type != NULL ? 0 : -1;
}
