/* Gradients, and training graphs. */
#include "graph.h"

PyObject *py_graph_grad(PyObject *object, PyObject *args) {
  py_graph *self = (py_graph *)object;
  unsigned int loss;
  PyObject *given, *result = NULL;
  berth_error err = {BERTH_OK, ""};
  size_t n = 0;
  if (!PyArg_ParseTuple(args, "IO", &loss, &given)) return NULL;
  PyObject *keep = PyList_New(0);
  berth_value *of = keep != NULL ? py_graph_operands(given, keep, &n) : NULL;
  berth_value *grads = of != NULL ? py_keep(keep, sizeof *grads * (n + 1)) : NULL;
  if (grads != NULL && py_graph_begin_change(self) == 0) {
    const berth_status status = berth_graph_grad(self->graph, loss, of, n, grads, &err);
    self->n_readers = 0;
    result = status == BERTH_OK ? py_graph_numbers(grads, (uint32_t)n) : py_fail(&err);
  }
  Py_XDECREF(keep);
  return result;
}

PyObject *py_graph_bind(PyObject *object, PyObject *given) {
  const berth_dim *dims = NULL;
  berth_graph *bound = NULL;
  berth_error err = {BERTH_OK, ""};
  size_t n = 0;
  PyObject *keep = PyList_New(0);
  int failed = keep == NULL || py_dims_from(given, keep, &dims, &n) < 0;
  if (!failed && berth_graph_bind(((py_graph *)object)->graph, dims, n, &bound, &err) != BERTH_OK) {
    failed = 1;
    py_fail(&err);
  }
  Py_XDECREF(keep);
  return failed ? NULL : (PyObject *)py_graph_wrap(bound);
}

PyObject *py_graph_lora(PyObject *object, PyObject *args) {
  berth_lora_desc desc = BERTH_LORA_DESC_INIT;
  berth_graph *adapted = NULL;
  berth_error err = {BERTH_OK, ""};
  PyObject *params;
  if (!PyArg_ParseTuple(args, "O&dO", py_count32, &desc.rank, &desc.alpha, &params)) return NULL;
  PyObject *keep = PyList_New(0);
  if (keep != NULL && params != Py_None) desc.params = py_graph_operands(params, keep, &desc.n_params);
  int failed = keep == NULL || PyErr_Occurred() != NULL;
  if (!failed && berth_graph_lora(((py_graph *)object)->graph, &desc, &adapted, &err) != BERTH_OK) {
    failed = 1;
    py_fail(&err);
  }
  Py_XDECREF(keep);
  return failed ? NULL : (PyObject *)py_graph_wrap(adapted);
}

PyObject *py_graph_thaw(PyObject *object, PyObject *ignored) {
  berth_error err = {BERTH_OK, ""};
  uint32_t n = 0;
  (void)ignored;
  if (berth_graph_thaw(((py_graph *)object)->graph, &n, &err) != BERTH_OK) return py_fail(&err);
  return PyLong_FromUnsignedLong(n);
}

PyObject *py_graph_train(PyObject *object, PyObject *args, PyObject *kwargs) {
  static char *names[] = {"loss",    "optimizer",    "params", "momentum",   "beta1", "beta2",
                          "epsilon", "weight_decay", "clip",   "accumulate", NULL};
  py_graph *self = (py_graph *)object;
  berth_train_desc desc = BERTH_TRAIN_DESC_INIT;
  berth_error err = {BERTH_OK, ""};
  const char *optimizer = "adamw";
  PyObject *params = Py_None;
  unsigned int loss;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "I|sOddddddO&", names, &loss, &optimizer, &params, &desc.momentum,
                                   &desc.beta1, &desc.beta2, &desc.epsilon, &desc.weight_decay, &desc.clip, py_count32,
                                   &desc.accumulate))
    return NULL;
  if (strcmp(optimizer, "adamw") != 0 && strcmp(optimizer, "sgd") != 0)
    return py_invalid("the optimisers are 'adamw' and 'sgd', not '%s'", optimizer);
  desc.optimizer = strcmp(optimizer, "sgd") == 0 ? BERTH_OPTIMIZER_SGD : BERTH_OPTIMIZER_ADAMW;
  PyObject *keep = PyList_New(0);
  if (keep != NULL && params != Py_None) desc.params = py_graph_operands(params, keep, &desc.n_params);
  int is_done = 0;
  if (keep != NULL && !PyErr_Occurred() && py_graph_begin_change(self) == 0) {
    is_done = berth_graph_train(self->graph, loss, &desc, &err) == BERTH_OK;
    self->n_readers = 0;
    if (!is_done) py_fail(&err);
  }
  Py_XDECREF(keep);
  if (!is_done) return NULL;
  Py_RETURN_NONE;
}
