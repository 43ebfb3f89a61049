/* Custom ops in Python: functions that infer and compute their results, called by the library on any thread. Operands
 * are views of a session's arena, which keep the session; memory without a Python owner (constants being folded, a
 * GPU's staging memory) is copied. */
#include <stdlib.h>

#include "py.h"

typedef struct custom_op { /* lives as long as the context: for ever */
  char *name;
  PyObject *infer, *kernel;
} custom_op;

/* ---- Inferring ---- */

static PyObject *op_described(const berth_op_infer *call) {
  PyObject *list = PyList_New(0);
  for (uint32_t i = 0; list != NULL && i < call->n_in; i++) {
    PyObject *item = call->in_type[i] == BERTH_TYPE_NONE
                         ? Py_NewRef(Py_None)
                         : Py_BuildValue("(sN)", berth_type_name(call->in_type[i]), py_shape(&call->in_shape[i]));
    if (item == NULL || PyList_Append(list, item) < 0) Py_CLEAR(list);
    Py_XDECREF(item);
  }
  return list;
}

/* The text of a name must outlive the call, like that of an operand. */
static int op_own_name(const berth_op_infer *call, berth_dim *dim) {
  if (dim->name == NULL) return 0;
  for (uint32_t i = 0; i < call->n_in; i++)
    for (uint32_t k = 0; call->in_type[i] != BERTH_TYPE_NONE && k < call->in_shape[i].rank; k++) {
      const char *name = call->in_shape[i].dim[k].name;
      if (name == NULL || strcmp(name, dim->name) != 0) continue;
      dim->name = name;
      return 0;
    }
  if (strcmp(dim->name, "?") == 0) {
    dim->name = "?";
    return 0;
  }
  py_invalid("no operand has the dimension '%s'", dim->name);
  return -1;
}

static int op_take_result(const berth_op_infer *call, PyObject *pair, uint32_t i) {
  PyObject *tuple = PySequence_Tuple(pair);
  PyObject *dims = tuple != NULL && PyTuple_Size(tuple) == 2 ? PySequence_Tuple(PyTuple_GetItem(tuple, 1)) : NULL;
  int failed = dims == NULL;
  if (failed && !PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "it gives (type, shape) for each result");
  failed = failed || py_type_from(PyTuple_GetItem(tuple, 0), &call->out_type[i]) < 0 ||
           py_shape_from(dims, &call->out_shape[i]) < 0;
  for (uint32_t k = 0; !failed && k < call->out_shape[i].rank; k++)
    failed = op_own_name(call, &call->out_shape[i].dim[k]) < 0;
  Py_XDECREF(dims);
  Py_XDECREF(tuple);
  return failed ? -1 : 0;
}

static berth_status op_infer(const berth_op_infer *call, berth_error *err) {
  const custom_op *op = call->user;
  PyGILState_STATE state;
  berth_status status = BERTH_OK;
  py_callback_enter(&state);
  PyObject *operands = op_described(call), *attrs = py_attrs(call->attrs, call->n_attrs), *results = NULL;
  if (operands != NULL && attrs != NULL) results = PyObject_CallFunctionObjArgs(op->infer, operands, attrs, NULL);
  int failed = results == NULL;
  if (!failed && PySequence_Size(results) != (Py_ssize_t)call->n_out) {
    if (!PyErr_Occurred())
      PyErr_Format(PyExc_TypeError, "the op has %u result%s", call->n_out, call->n_out == 1 ? "" : "s");
    failed = 1;
  }
  for (uint32_t i = 0; !failed && i < call->n_out; i++) {
    PyObject *pair = PySequence_GetItem(results, (Py_ssize_t)i);
    failed = pair == NULL || op_take_result(call, pair, i) < 0;
    Py_XDECREF(pair);
  }
  if (failed) {
    char what[128];
    PyOS_snprintf(what, sizeof what, "infer of op '%.80s'", op->name);
    status = py_to_error(what, err);
  }
  Py_XDECREF(operands);
  Py_XDECREF(attrs);
  Py_XDECREF(results);
  py_callback_leave(state);
  return status;
}

/* ---- Computing ---- */

static size_t op_bytes(const berth_tensor *t) {
  size_t n = berth_type_size(t->type);
  for (uint32_t i = 0; i < t->rank; i++) n *= (size_t)t->dim[i];
  return n;
}

/* A copy if there is no object to keep the memory alive; results are copied back. Operands are contiguous here: the op
 * requests it. */
static PyObject *op_tensor(const berth_tensor *t, int is_result) {
  if (t->data == NULL) return Py_NewRef(Py_None);
  py_session *session = py_session_at(t->data);
  if (session == NULL) {
    py_tensor *copy = py_tensor_new(t->type, t->rank, t->dim);
    if (copy != NULL && !is_result) {
      memcpy(copy->data, t->data, op_bytes(t));
      copy->is_readonly = 1;
    }
    return (PyObject *)copy;
  }
  py_tensor *view = py_tensor_view(t->data, t->type, t->rank, t->dim, t->stride, !is_result);
  if (view == NULL) return NULL;
  Py_INCREF(PY_OBJECT(session));
  view->session = session;
  session->n_views++;
  return (PyObject *)view;
}

static PyObject *op_tensors(const berth_tensor *tensors, uint32_t n, int is_result) {
  PyObject *list = PyList_New(0);
  for (uint32_t i = 0; list != NULL && i < n; i++) {
    PyObject *item = op_tensor(&tensors[i], is_result);
    if (item == NULL || PyList_Append(list, item) < 0) Py_CLEAR(list);
    Py_XDECREF(item);
  }
  return list;
}

static berth_status op_kernel(const berth_op_call *call, berth_error *err) {
  const custom_op *op = call->user;
  PyGILState_STATE state;
  berth_status status = BERTH_OK;
  py_callback_enter(&state);
  PyObject *in = op_tensors(call->in, call->n_in, 0), *out = op_tensors(call->out, call->n_out, 1);
  PyObject *attrs = py_attrs(call->attrs, call->n_attrs), *result = NULL;
  if (in != NULL && out != NULL && attrs != NULL)
    result = PyObject_CallFunctionObjArgs(op->kernel, in, out, attrs, NULL);
  if (result == NULL) {
    char what[128];
    PyOS_snprintf(what, sizeof what, "the kernel of op '%.80s'", op->name);
    status = py_to_error(what, err);
  }
  for (uint32_t i = 0; result != NULL && i < call->n_out; i++) {
    PyObject *item = PyList_GetItem(out, (Py_ssize_t)i);
    if (item == NULL || !PyObject_TypeCheck(item, py_tensor_type)) continue;
    const py_tensor *tensor = (const py_tensor *)item;
    if (tensor->memory != NULL) memcpy(call->out[i].data, tensor->memory, op_bytes(&call->out[i]));
  }
  PyErr_Clear();
  Py_XDECREF(in);
  Py_XDECREF(out);
  Py_XDECREF(attrs);
  Py_XDECREF(result);
  py_callback_leave(state);
  return status;
}

/* ---- Registering ---- */

static custom_op *op_make(const char *name, PyObject *infer, PyObject *kernel) {
  custom_op *op = malloc(sizeof *op);
  char *text = strdup(name);
  if (op == NULL || text == NULL) {
    free(op);
    free(text);
    return (custom_op *)PyErr_NoMemory();
  }
  *op = (custom_op){text, Py_NewRef(infer), Py_NewRef(kernel)};
  return op;
}

PyObject *py_op_register(PyObject *module, PyObject *args, PyObject *kwargs) {
  static char *names[] = {"name", "inputs", "outputs", "attrs", "infer", "kernel", "in_place", NULL};
  berth_op_desc desc = BERTH_OP_DESC_INIT;
  berth_error err = {BERTH_OK, ""};
  berth_status status;
  const char *name;
  uint32_t min_in, max_in, n_out, in_place = 0;
  PyObject *given, *infer, *kernel;
  size_t n_attrs;
  (void)module;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "s(O&O&)O&OOO|O&", names, &name, py_count32, &min_in, py_count32,
                                   &max_in, py_count32, &n_out, &given, &infer, &kernel, py_count32, &in_place))
    return NULL;
  if (!PyCallable_Check(infer) || !PyCallable_Check(kernel)) {
    PyErr_SetString(PyExc_TypeError, "infer and kernel are functions");
    return NULL;
  }
  PyObject *keep = PyList_New(0);
  custom_op *op = NULL;
  if (keep == NULL || py_attrs_from(given, keep, &desc.attrs, &n_attrs) < 0 ||
      (op = op_make(name, infer, kernel)) == NULL) {
    Py_XDECREF(keep);
    return NULL;
  }
  desc.name = op->name;
  desc.min_in = min_in;
  desc.max_in = max_in;
  desc.n_out = n_out;
  desc.n_attrs = (uint32_t)n_attrs;
  desc.in_place = in_place;
  desc.infer = op_infer;
  desc.kernel = op_kernel;
  desc.user = op;
  Py_BEGIN_ALLOW_THREADS;
  status = berth_op_register(py_context, &desc, &err);
  Py_END_ALLOW_THREADS;
  Py_DECREF(keep);
  if (status == BERTH_OK) Py_RETURN_NONE;
  Py_DECREF(op->infer);
  Py_DECREF(op->kernel);
  free(op->name);
  free(op);
  return py_fail(&err);
}
