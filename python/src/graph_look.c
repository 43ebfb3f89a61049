/* Queries on graphs. */
#include "graph.h"

static const berth_graph *graph_of(PyObject *object) { return ((py_graph *)object)->graph; }

static int graph_number(PyObject *number, uint32_t n, const char *what, uint32_t *out) {
  const unsigned long given = PyLong_AsUnsignedLong(number);
  *out = 0;
  if (PyErr_Occurred()) return -1;
  if (given >= n) {
    py_invalid("the graph has no %s %lu; it has %u", what, given, n);
    return -1;
  }
  *out = (uint32_t)given;
  return 0;
}

static const char *graph_kind(berth_value_kind kind) {
  switch (kind) {
    case BERTH_VALUE_INPUT: return "input";
    case BERTH_VALUE_PARAM: return "param";
    case BERTH_VALUE_CONSTANT: return "constant";
    case BERTH_VALUE_NODE: return "node";
    case BERTH_VALUE_STATE: return "state";
    case BERTH_VALUE_DROPPED: break;
  }
  return "dropped";
}

PyObject *py_graph_value(PyObject *object, PyObject *number) {
  const berth_graph *graph = graph_of(object);
  berth_value_info info = BERTH_VALUE_INFO_INIT;
  berth_error err = {BERTH_OK, ""};
  uint32_t value;
  if (graph_number(number, berth_graph_n_values(graph), "value", &value) < 0) return NULL;
  if (berth_graph_value(graph, value, &info, &err) != BERTH_OK) return py_fail(&err);
  return Py_BuildValue("{s:N,s:s,s:s,s:N,s:K,s:N}", "name", py_string(info.name), "kind", graph_kind(info.kind), "type",
                       berth_type_name(info.type), "shape", py_shape(&info.shape), "nbytes",
                       (unsigned long long)info.size, "has_data", PyBool_FromLong(info.data != NULL));
}

PyObject *py_graph_numbers(const berth_value *values, uint32_t n) {
  PyObject *tuple = PyTuple_New((Py_ssize_t)n);
  for (uint32_t i = 0; tuple != NULL && i < n; i++) {
    PyObject *number = values[i] == BERTH_VALUE_NONE ? Py_NewRef(Py_None) : PyLong_FromUnsignedLong(values[i]);
    if (number == NULL || PyTuple_SetItem(tuple, (Py_ssize_t)i, number) < 0) Py_CLEAR(tuple);
  }
  return tuple;
}

PyObject *py_graph_node(PyObject *object, PyObject *number) {
  const berth_graph *graph = graph_of(object);
  berth_node_info info = BERTH_NODE_INFO_INIT;
  berth_error err = {BERTH_OK, ""};
  uint32_t node;
  if (graph_number(number, berth_graph_n_nodes(graph), "node", &node) < 0) return NULL;
  if (berth_graph_node(graph, node, &info, &err) != BERTH_OK) return py_fail(&err);
  return Py_BuildValue("{s:N,s:s,s:N,s:N,s:N}", "name", py_string(info.name), "op", info.op, "inputs",
                       py_graph_numbers(info.in, info.n_in), "outputs", py_graph_numbers(info.out, info.n_out), "attrs",
                       py_attrs(info.attrs, info.n_attrs));
}

PyObject *py_graph_find(PyObject *object, PyObject *name) {
  const char *text = PyUnicode_Check(name) ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL;
  if (text == NULL) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "the name of a value is a str");
    return NULL;
  }
  const berth_value value = berth_graph_find(graph_of(object), text);
  if (value == BERTH_VALUE_NONE) Py_RETURN_NONE;
  return PyLong_FromUnsignedLong(value);
}

PyObject *py_graph_verify(PyObject *object, PyObject *unused) {
  berth_error err = {BERTH_OK, ""};
  (void)unused;
  if (berth_graph_verify(graph_of(object), &err) != BERTH_OK) return py_fail(&err);
  Py_RETURN_NONE;
}

PyObject *py_graph_text(PyObject *object, PyObject *unused) {
  berth_error err = {BERTH_OK, ""};
  PyObject *list = PyList_New(0), *text = NULL;
  (void)unused;
  if (list == NULL) return NULL;
  if (berth_graph_print(graph_of(object), py_text_write, list, &err) != BERTH_OK)
    py_fail(&err);
  else
    text = py_text_join(list);
  Py_DECREF(list);
  return text;
}

PyObject *py_graph_needs(PyObject *object, PyObject *unused) {
  const berth_graph *graph = graph_of(object);
  PyObject *dict = PyDict_New();
  (void)unused;
  for (uint32_t i = 0; dict != NULL && i < berth_graph_n_inputs(graph); i++) {
    const berth_value input = berth_graph_input_at(graph, i);
    const int depend = berth_graph_shapes_depend(graph, input);
    berth_value_info info = BERTH_VALUE_INFO_INIT;
    if (depend == BERTH_SHAPES_FREE || berth_graph_value(graph, input, &info, NULL) != BERTH_OK) continue;
    PyObject *how = py_string(depend == BERTH_SHAPES_NEED ? "need" : "bounded");
    if (how == NULL || PyDict_SetItemString(dict, info.name, how) < 0) Py_CLEAR(dict);
    Py_XDECREF(how);
  }
  return dict;
}

/* ---- Lists of values ---- */

static PyObject *graph_list(PyObject *object, uint32_t (*count)(const berth_graph *),
                            berth_value (*at)(const berth_graph *, uint32_t)) {
  const berth_graph *graph = graph_of(object);
  PyObject *list = PyList_New(0);
  const uint32_t n = count(graph);
  for (uint32_t i = 0; list != NULL && i < n; i++) {
    PyObject *number = PyLong_FromUnsignedLong(at(graph, i));
    if (number == NULL || PyList_Append(list, number) < 0) Py_CLEAR(list);
    Py_XDECREF(number);
  }
  return list;
}

static PyObject *graph_inputs(PyObject *object, void *unused) {
  (void)unused;
  return graph_list(object, berth_graph_n_inputs, berth_graph_input_at);
}
static PyObject *graph_params(PyObject *object, void *unused) {
  (void)unused;
  return graph_list(object, berth_graph_n_params, berth_graph_param_at);
}
static PyObject *graph_states(PyObject *object, void *unused) {
  (void)unused;
  return graph_list(object, berth_graph_n_states, berth_graph_state_at);
}

static PyObject *graph_outputs(PyObject *object, void *unused) {
  const berth_graph *graph = graph_of(object);
  PyObject *list = PyList_New(0);
  (void)unused;
  for (uint32_t i = 0; list != NULL && i < berth_graph_n_outputs(graph); i++) {
    PyObject *pair = Py_BuildValue("(NI)", py_string(berth_graph_output_name(graph, i)),
                                   (unsigned int)berth_graph_output_at(graph, i));
    if (pair == NULL || PyList_Append(list, pair) < 0) Py_CLEAR(list);
    Py_XDECREF(pair);
  }
  return list;
}

static PyObject *graph_dims(PyObject *object, void *unused) {
  const berth_graph *graph = graph_of(object);
  PyObject *list = PyList_New(0);
  (void)unused;
  for (uint32_t i = 0; list != NULL && i < berth_graph_n_dims(graph); i++) {
    PyObject *name = py_string(berth_graph_dim_name(graph, i));
    if (name == NULL || PyList_Append(list, name) < 0) Py_CLEAR(list);
    Py_XDECREF(name);
  }
  return list;
}

static PyObject *graph_name(PyObject *object, void *unused) {
  (void)unused;
  return py_string(berth_graph_name(graph_of(object)));
}
static PyObject *graph_n_values(PyObject *object, void *unused) {
  (void)unused;
  return PyLong_FromUnsignedLong(berth_graph_n_values(graph_of(object)));
}
static PyObject *graph_n_nodes(PyObject *object, void *unused) {
  (void)unused;
  return PyLong_FromUnsignedLong(berth_graph_n_nodes(graph_of(object)));
}

PyGetSetDef graph_getters[] = {{"name", graph_name, NULL, "Its name.", NULL},
                               {"input_values", graph_inputs, NULL, "Numbers of the inputs.", NULL},
                               {"param_values", graph_params, NULL, "Numbers of the params.", NULL},
                               {"state_values", graph_states, NULL, "Numbers of the states.", NULL},
                               {"output_values", graph_outputs, NULL, "Name and number of each output.", NULL},
                               {"dims", graph_dims, NULL, "The named dimensions.", NULL},
                               {"n_values", graph_n_values, NULL, "How many values it has.", NULL},
                               {"n_nodes", graph_n_nodes, NULL, "How many nodes it has.", NULL},
                               {NULL, NULL, NULL, NULL, NULL}};
