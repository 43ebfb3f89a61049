/* Shared by the files about graphs: graph.c builds them, graph_look.c queries them, train.c trains. */
#ifndef BERTH_PY_GRAPH_H
#define BERTH_PY_GRAPH_H

#include "py.h"

PyObject *py_graph_value(PyObject *self, PyObject *number);
PyObject *py_graph_node(PyObject *self, PyObject *number);
PyObject *py_graph_find(PyObject *self, PyObject *name);
PyObject *py_graph_verify(PyObject *self, PyObject *unused);
PyObject *py_graph_text(PyObject *self, PyObject *unused);
PyObject *py_graph_needs(PyObject *self, PyObject *unused);
extern PyGetSetDef graph_getters[];
PyObject *py_graph_numbers(const berth_value *values, uint32_t n);          /* a tuple; None for BERTH_VALUE_NONE */
berth_value *py_graph_operands(PyObject *given, PyObject *keep, size_t *n); /* graph.c; None: omitted */
PyObject *py_graph_grad(PyObject *self, PyObject *args);                    /* train.c */
PyObject *py_graph_bind(PyObject *self, PyObject *dims);
PyObject *py_graph_lora(PyObject *self, PyObject *args);
PyObject *py_graph_thaw(PyObject *self, PyObject *ignored);
py_graph *py_graph_wrap(berth_graph *graph); /* graph.c: takes ownership, also on failure */
PyObject *py_graph_train(PyObject *self, PyObject *args, PyObject *kwargs);

#define GRAPH_LOOK_METHODS                                                                                          \
  {"value", py_graph_value, METH_O, "value(number) -> dict\n\nname, kind, type, shape, nbytes."},                   \
      {"node", py_graph_node, METH_O, "node(number) -> dict\n\nname, op, inputs, outputs, attrs."},                 \
      {"find", py_graph_find, METH_O, "find(name) -> int or None"},                                                 \
      {"verify", py_graph_verify, METH_NOARGS, "verify()\n\nFails with the name of the node that is wrong."},       \
      {"text", py_graph_text, METH_NOARGS, "text() -> str\n\nThe graph in berth's text form."}, {                   \
    "needs", py_graph_needs, METH_NOARGS,                                                                           \
        "needs() -> dict\n\nInputs whose elements decide shapes: 'need' (fix them) or 'bounded' (a run finds out)." \
  }

#endif /* BERTH_PY_GRAPH_H */
