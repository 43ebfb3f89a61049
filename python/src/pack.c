/* The packer alone: buffers with a size and a lifetime in, offsets out. */
#include "py.h"

/* An integer entry of a tuple; `missing` if the tuple is shorter or the entry None. */
static int pack_entry(PyObject *tuple, Py_ssize_t at, unsigned long long missing, unsigned long long *out) {
  PyObject *item = at < PyTuple_Size(tuple) ? PyTuple_GetItem(tuple, at) : NULL;
  *out = missing;
  if (item == NULL || item == Py_None) return 0;
  *out = PyLong_AsUnsignedLongLong(item);
  return PyErr_Occurred() ? -1 : 0;
}

/* (size, lower, upper, align, offset) for each. */
static berth_pack_buffer *pack_buffers(PyObject *given, PyObject *keep, size_t *n) {
  const Py_ssize_t count = PySequence_Size(given);
  berth_pack_buffer *list = count < 0 ? NULL : py_keep(keep, sizeof *list * (size_t)(count + 1));
  for (Py_ssize_t i = 0; list != NULL && i < count; i++) {
    PyObject *item = PySequence_GetItem(given, i), *tuple = item != NULL ? PySequence_Tuple(item) : NULL;
    unsigned long long size, align = 0, offset = BERTH_PACK_FREE;
    int failed = tuple == NULL || PyTuple_Size(tuple) < 3;
    if (tuple != NULL && failed) py_invalid("buffer %zd is not (size, lower, upper)", i);
    failed = failed || pack_entry(tuple, 0, 0, &size) < 0 || pack_entry(tuple, 3, 0, &align) < 0 ||
             pack_entry(tuple, 4, BERTH_PACK_FREE, &offset) < 0;
    if (!failed) {
      const long long lower = PyLong_AsLongLong(PyTuple_GetItem(tuple, 1));
      const long long upper = PyErr_Occurred() ? 0 : PyLong_AsLongLong(PyTuple_GetItem(tuple, 2));
      failed = PyErr_Occurred() != NULL;
      list[i] = (berth_pack_buffer){.size = size, .align = align, .lower = lower, .upper = upper, .offset = offset};
    }
    Py_XDECREF(item);
    Py_XDECREF(tuple);
    if (failed) return NULL;
  }
  *n = (size_t)(count < 0 ? 0 : count);
  return list;
}

static PyObject *pack_offsets(const uint64_t *offsets, size_t n) {
  PyObject *list = PyList_New(0);
  for (size_t i = 0; list != NULL && i < n; i++) {
    PyObject *offset = PyLong_FromUnsignedLongLong(offsets[i]);
    if (offset == NULL || PyList_Append(list, offset) < 0) Py_CLEAR(list);
    Py_XDECREF(offset);
  }
  return list;
}

static PyObject *pack_run(const berth_pack_buffer *buffers, size_t n, const berth_pack_desc *desc, uint64_t *offsets) {
  berth_pack_result r = BERTH_PACK_RESULT_INIT;
  berth_error err = {BERTH_OK, ""};
  berth_status status;
  Py_BEGIN_ALLOW_THREADS;
  status = berth_pack(py_context, buffers, n, desc, offsets, &r, &err);
  Py_END_ALLOW_THREADS;
  if (status != BERTH_OK) return py_fail(&err);
  PyObject *places = r.fits ? pack_offsets(offsets, n) : Py_NewRef(Py_None);
  return Py_BuildValue("{s:N,s:K,s:K,s:K,s:N,s:N,s:N}", "offsets", places, "size", (unsigned long long)r.size,
                       "lower_bound", (unsigned long long)r.lower_bound, "nodes", (unsigned long long)r.nodes,
                       "optimal", PyBool_FromLong(r.optimal), "fits", PyBool_FromLong(r.fits), "infeasible",
                       PyBool_FromLong(r.infeasible));
}

PyObject *py_pack(PyObject *module, PyObject *args, PyObject *kwargs) {
  static char *names[] = {"buffers", "capacity", "effort", "seed", NULL};
  PyObject *given, *capacity = Py_None;
  berth_pack_desc desc = BERTH_PACK_DESC_INIT;
  (void)module;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|OO&O&", names, &given, &capacity, py_count64, &desc.effort,
                                   py_count64, &desc.seed))
    return NULL;
  if (capacity != Py_None) desc.capacity = PyLong_AsUnsignedLongLong(capacity);
  if (PyErr_Occurred()) return NULL;
  PyObject *keep = PyList_New(0), *result = NULL;
  size_t n = 0;
  berth_pack_buffer *buffers = keep != NULL ? pack_buffers(given, keep, &n) : NULL;
  uint64_t *offsets = buffers != NULL ? py_keep(keep, sizeof *offsets * (n + 1)) : NULL;
  if (offsets != NULL) result = pack_run(buffers, n, &desc, offsets);
  Py_XDECREF(keep);
  return result;
}

PyObject *py_pack_picture(PyObject *module, PyObject *args, PyObject *kwargs) {
  static char *names[] = {"buffers", "offsets", "names", "kind", NULL};
  PyObject *given, *places, *labels = Py_None;
  const char *kind = "svg";
  (void)module;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|Os", names, &given, &places, &labels, &kind)) return NULL;
  PyObject *keep = PyList_New(0), *list = PyList_New(0), *text = NULL;
  size_t n = 0;
  berth_pack_buffer *buffers = keep != NULL ? pack_buffers(given, keep, &n) : NULL;
  uint64_t *offsets = buffers != NULL ? py_keep(keep, sizeof *offsets * (n + 1)) : NULL;
  const char **texts = offsets != NULL ? py_keep(keep, sizeof *texts * (n + 1)) : NULL;
  for (size_t i = 0; texts != NULL && i < n; i++) {
    PyObject *place = PySequence_GetItem(places, (Py_ssize_t)i);
    PyObject *label = place != NULL && labels != Py_None ? PySequence_GetItem(labels, (Py_ssize_t)i) : NULL;
    offsets[i] = place != NULL ? PyLong_AsUnsignedLongLong(place) : 0;
    texts[i] = label != NULL && !PyErr_Occurred() ? PyUnicode_AsUTF8AndSize(label, NULL) : NULL;
    if (label != NULL) PyList_Append(keep, label);
    Py_XDECREF(place);
    Py_XDECREF(label);
    if (PyErr_Occurred()) texts = NULL;
  }
  if (texts != NULL && list != NULL) {
    berth_error err = {BERTH_OK, ""};
    const berth_status status =
        berth_pack_draw(py_context, buffers, n, offsets, labels != Py_None ? texts : NULL,
                        strcmp(kind, "html") == 0 ? BERTH_REPORT_HTML : BERTH_REPORT_SVG, py_text_write, list, &err);
    text = status == BERTH_OK ? py_text_join(list) : py_fail(&err);
  }
  Py_XDECREF(keep);
  Py_XDECREF(list);
  return text;
}
