/* Conversion of element types, shapes and attributes, in both directions. */
#include <stdio.h>

#include "py.h"

static const py_element elements[] = {
    {BERTH_F32, "f", "float32", 2, 32}, {BERTH_F64, "d", "float64", 2, 64}, {BERTH_F16, "e", "float16", 2, 16},
    {BERTH_BF16, "H", "uint16", 4, 16}, {BERTH_I8, "b", "int8", 0, 8},      {BERTH_U8, "B", "uint8", 1, 8},
    {BERTH_I16, "h", "int16", 0, 16},   {BERTH_I32, "i", "int32", 0, 32},   {BERTH_I64, "l", "int64", 0, 64},
    {BERTH_U32, "I", "uint32", 1, 32},  {BERTH_BOOL, "?", "bool", 6, 8},    {BERTH_U16, "H", "uint16", 1, 16},
    {BERTH_U64, "L", "uint64", 1, 64},
};
enum {
  N_ELEMENTS = sizeof elements / sizeof elements[0]
};
_Static_assert(sizeof(long) == 8, "the formats of 64-bit integers are those of a long");

const py_element *py_element_of(berth_type type) {
  static const py_element bytes = {BERTH_U8, "B", "uint8", 1, 8};
  for (int i = 0; i < N_ELEMENTS; i++)
    if (elements[i].type == type) return &elements[i];
  return &bytes;
}

berth_type py_type_of_format(const char *format, Py_ssize_t itemsize) {
  if (format == NULL) return BERTH_U8;
  if (*format == '@' || *format == '=' || *format == '<') format++;
  if (*format == '\0' || format[1] != '\0') return BERTH_TYPE_NONE;
  switch (*format) {
    case 'f': return BERTH_F32;
    case 'd': return BERTH_F64;
    case 'e': return BERTH_F16;
    case '?': return BERTH_BOOL;
    case 'b':
    case 'h':
    case 'i':
    case 'l':
    case 'q': return itemsize == 1 ? BERTH_I8 : itemsize == 2 ? BERTH_I16 : itemsize == 4 ? BERTH_I32 : BERTH_I64;
    case 'c':
    case 'B':
    case 'H':
    case 'I':
    case 'L':
    case 'Q': return itemsize == 1 ? BERTH_U8 : itemsize == 2 ? BERTH_U16 : itemsize == 4 ? BERTH_U32 : BERTH_U64;
    default: return BERTH_TYPE_NONE;
  }
}

static berth_type type_from_text(const char *text) {
  const berth_type type = berth_type_from_name(text);
  if (type != BERTH_TYPE_NONE) return type;
  if (strcmp(text, "bfloat16") == 0) return BERTH_BF16;
  for (int i = 0; i < N_ELEMENTS; i++)
    if (elements[i].type != BERTH_BF16 && strcmp(elements[i].numpy, text) == 0) return elements[i].type;
  return BERTH_TYPE_NONE;
}

int py_type_from(PyObject *name, berth_type *out) {
  PyObject *text = NULL;
  if (PyUnicode_Check(name)) {
    text = Py_NewRef(name);
  } else { /* numpy.float32 has __name__, numpy.dtype("float32") has name */
    text = PyObject_GetAttrString(name, PyType_Check(name) ? "__name__" : "name");
    if (text == NULL) PyErr_Clear();
  }
  const char *utf8 = text != NULL && PyUnicode_Check(text) ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
  if (utf8 == NULL) PyErr_Clear();
  *out = utf8 != NULL ? type_from_text(utf8) : BERTH_TYPE_NONE;
  if (*out == BERTH_TYPE_NONE)
    py_invalid(
        "there is no element type '%s'; they are f32, f64, f16, bf16, i8, u8, i16, u16, i32, u32, i64, u64 and "
        "bool, or as numpy calls them",
        utf8 != NULL ? utf8 : "?");
  Py_XDECREF(text);
  return *out == BERTH_TYPE_NONE ? -1 : 0;
}

PyObject *py_extents(uint32_t rank, const int64_t *dim) {
  PyObject *tuple = PyTuple_New((Py_ssize_t)rank);
  for (uint32_t i = 0; tuple != NULL && i < rank; i++) {
    PyObject *extent = PyLong_FromLongLong(dim[i]);
    if (extent == NULL || PyTuple_SetItem(tuple, (Py_ssize_t)i, extent) < 0) Py_CLEAR(tuple);
  }
  return tuple;
}

PyObject *py_shape(const berth_shape *shape) {
  PyObject *tuple = PyTuple_New((Py_ssize_t)shape->rank);
  for (uint32_t i = 0; tuple != NULL && i < shape->rank; i++) {
    PyObject *dim =
        shape->dim[i].name != NULL ? py_string(shape->dim[i].name) : PyLong_FromLongLong(shape->dim[i].extent);
    if (dim == NULL || PyTuple_SetItem(tuple, (Py_ssize_t)i, dim) < 0) Py_CLEAR(tuple);
  }
  return tuple;
}

/* An integer, or the name of a dimension. */
static int type_dim_from(PyObject *item, berth_dim *out) {
  *out = (berth_dim){NULL, 0};
  if (PyUnicode_Check(item)) {
    out->name = PyUnicode_AsUTF8AndSize(item, NULL);
    return out->name != NULL ? 0 : -1;
  }
  PyObject *number = PyNumber_Index(item);
  if (number == NULL) return -1;
  out->extent = PyLong_AsLongLong(number);
  Py_DECREF(number);
  return out->extent == -1 && PyErr_Occurred() ? -1 : 0;
}

int py_shape_from(PyObject *given, berth_shape *out) {
  const Py_ssize_t n = PySequence_Size(given);
  if (n < 0) return -1;
  if (n > BERTH_MAX_RANK) {
    py_invalid("a shape has at most %d axes, not %zd", BERTH_MAX_RANK, n);
    return -1;
  }
  out->rank = (uint32_t)n;
  for (Py_ssize_t i = 0; i < n; i++) {
    PyObject *item = PySequence_GetItem(given, i);
    const int failed = item == NULL || type_dim_from(item, &out->dim[i]) < 0;
    Py_XDECREF(item); /* still owned by the list or tuple */
    if (failed) return -1;
  }
  return 0;
}

int py_dims_from(PyObject *dict, PyObject *keep, const berth_dim **dims, size_t *n) {
  PyObject *key, *value;
  Py_ssize_t at = 0;
  *dims = NULL;
  *n = 0;
  if (dict == NULL || dict == Py_None) return 0;
  if (!PyDict_Check(dict)) {
    PyErr_SetString(PyExc_TypeError, "dims are a dict: the extent of each named dimension");
    return -1;
  }
  if ((dict = py_keep_dict(keep, dict)) == NULL) return -1;
  berth_dim *list = py_keep(keep, sizeof *list * (size_t)(PyDict_Size(dict) + 1));
  if (list == NULL) return -1;
  while (PyDict_Next(dict, &at, &key, &value)) {
    const char *name = PyUnicode_Check(key) ? PyUnicode_AsUTF8AndSize(key, NULL) : NULL;
    if (name == NULL || PyList_Append(keep, key) < 0) {
      if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "the names of dims are str");
      return -1;
    }
    if (PyUnicode_Check(value) || type_dim_from(value, &list[*n]) < 0) {
      if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "the extents of dims are int");
      return -1;
    }
    list[(*n)++].name = name;
  }
  *dims = list;
  return 0;
}

/* ---- Attributes ---- */

enum {
  HAS_INTS = 1,
  HAS_FLOATS = 2,
  HAS_NAMES = 4
};

static int type_kinds_in(PyObject *list, Py_ssize_t n) {
  int kinds = 0;
  for (Py_ssize_t i = 0; i < n; i++) {
    PyObject *item = PySequence_GetItem(list, i);
    if (item == NULL) return -1;
    kinds |= PyUnicode_Check(item) ? HAS_NAMES : PyIndex_Check(item) ? HAS_INTS : HAS_FLOATS;
    Py_DECREF(item);
  }
  return kinds;
}

static int type_list_from(PyObject *list, PyObject *keep, berth_attr *out) {
  const Py_ssize_t n = PySequence_Size(list);
  const int kinds = n < 0 ? -1 : type_kinds_in(list, n);
  berth_dim *dims = kinds < 0 ? NULL : py_keep(keep, sizeof *dims * (size_t)(n + 1));
  double *floats = dims == NULL ? NULL : py_keep(keep, sizeof *floats * (size_t)(n + 1));
  int64_t *ints = floats == NULL ? NULL : py_keep(keep, sizeof *ints * (size_t)(n + 1));
  if (ints == NULL) return -1;
  out->count = (uint32_t)n;
  out->kind = kinds & HAS_NAMES ? BERTH_ATTR_DIMS : kinds & HAS_FLOATS ? BERTH_ATTR_FLOATS : BERTH_ATTR_INTS;
  out->dims = dims;
  out->floats = floats;
  out->ints = ints;
  for (Py_ssize_t i = 0; i < n; i++) {
    PyObject *item = PySequence_GetItem(list, i);
    int failed = item == NULL;
    if (!failed && out->kind == BERTH_ATTR_FLOATS) {
      floats[i] = PyFloat_AsDouble(item);
      failed = floats[i] == -1.0 && PyErr_Occurred();
    } else if (!failed) {
      failed = type_dim_from(item, &dims[i]) < 0;
      ints[i] = dims[i].extent;
    }
    Py_XDECREF(item);
    if (failed) return -1;
  }
  return 0;
}

static int type_attr_from(PyObject *name, PyObject *value, PyObject *keep, berth_attr *out) {
  *out = (berth_attr){.name = PyUnicode_Check(name) ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL};
  if (out->name == NULL) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "the names of attributes are str");
    return -1;
  }
  if (PyList_Append(keep, name) < 0 || PyList_Append(keep, value) < 0) return -1;
  if (PyUnicode_Check(value)) {
    out->kind = BERTH_ATTR_STRING;
    out->s = PyUnicode_AsUTF8AndSize(value, NULL);
    return out->s != NULL ? 0 : -1;
  }
  if (PyIndex_Check(value)) {
    berth_dim number;
    out->kind = BERTH_ATTR_INT;
    if (type_dim_from(value, &number) < 0) return -1;
    out->i = number.extent;
    return 0;
  }
  if (PySequence_Check(value)) {
    PyObject *list = PySequence_Tuple(value); /* it owns its items, and with them their text */
    const int failed = list == NULL || PyList_Append(keep, list) < 0 || type_list_from(list, keep, out) < 0;
    Py_XDECREF(list);
    return failed ? -1 : 0;
  }
  out->kind = BERTH_ATTR_FLOAT;
  out->f = PyFloat_AsDouble(value);
  return out->f == -1.0 && PyErr_Occurred() ? -1 : 0;
}

int py_attrs_from(PyObject *dict, PyObject *keep, const berth_attr **attrs, size_t *n) {
  PyObject *key, *value;
  Py_ssize_t at = 0;
  *attrs = NULL;
  *n = 0;
  if (dict == NULL || dict == Py_None) return 0;
  if (!PyDict_Check(dict)) {
    PyErr_SetString(PyExc_TypeError, "attributes are a dict: their values by name");
    return -1;
  }
  if ((dict = py_keep_dict(keep, dict)) == NULL) return -1;
  berth_attr *list = py_keep(keep, sizeof *list * (size_t)(PyDict_Size(dict) + 1));
  if (list == NULL) return -1;
  while (PyDict_Next(dict, &at, &key, &value))
    if (type_attr_from(key, value, keep, &list[(*n)++]) < 0) return -1;
  *attrs = list;
  return 0;
}

static PyObject *type_attr_list(const berth_attr *attr) {
  PyObject *list = PyList_New(0);
  for (uint32_t i = 0; list != NULL && i < attr->count; i++) {
    PyObject *item = attr->kind == BERTH_ATTR_INTS     ? PyLong_FromLongLong(attr->ints[i])
                     : attr->kind == BERTH_ATTR_FLOATS ? PyFloat_FromDouble(attr->floats[i])
                     : attr->dims[i].name != NULL      ? py_string(attr->dims[i].name)
                                                       : PyLong_FromLongLong(attr->dims[i].extent);
    if (item == NULL || PyList_Append(list, item) < 0) Py_CLEAR(list);
    Py_XDECREF(item);
  }
  return list;
}

PyObject *py_attrs(const berth_attr *attrs, uint32_t n) {
  PyObject *dict = PyDict_New();
  for (uint32_t i = 0; dict != NULL && i < n; i++) {
    const berth_attr *a = &attrs[i];
    PyObject *value = a->kind == BERTH_ATTR_INT      ? PyLong_FromLongLong(a->i)
                      : a->kind == BERTH_ATTR_FLOAT  ? PyFloat_FromDouble(a->f)
                      : a->kind == BERTH_ATTR_STRING ? py_string(a->s)
                                                     : type_attr_list(a);
    if (value == NULL || PyDict_SetItemString(dict, a->name, value) < 0) Py_CLEAR(dict);
    Py_XDECREF(value);
  }
  return dict;
}

const char *py_shape_text(berth_type type, uint32_t rank, const int64_t *dim, char *text) {
  size_t at = (size_t)snprintf(text, PY_SHAPE_TEXT, "%s[", berth_type_name(type));
  for (uint32_t i = 0; i < rank && at < PY_SHAPE_TEXT - 24; i++)
    at += (size_t)snprintf(text + at, PY_SHAPE_TEXT - at, "%s%lld", i > 0 ? ", " : "", (long long)dim[i]);
  snprintf(text + at, PY_SHAPE_TEXT - at, "]");
  return text;
}

/* ---- Counts ---- */

static int types_count(PyObject *given, uint64_t most, uint64_t *out) {
  PyObject *number = PyNumber_Index(given);
  if (number == NULL) return 0;
  *out = PyLong_AsUnsignedLongLong(number);
  const int is_wrong = PyErr_Occurred() != NULL;
  if (is_wrong && !PyErr_ExceptionMatches(PyExc_OverflowError)) {
    Py_DECREF(number);
    return 0;
  }
  if (is_wrong || *out > most) {
    PyErr_Clear(); /* nothing may be called with an exception set */
    PyObject *text = PyObject_Str(number);
    PyErr_Clear(); /* a number with thousands of digits cannot be converted to text */
    py_invalid("a count is from 0 to %llu, not %s", (unsigned long long)most,
               text != NULL ? PyUnicode_AsUTF8AndSize(text, NULL) : "what is given");
    Py_XDECREF(text);
    Py_DECREF(number);
    return 0;
  }
  Py_DECREF(number);
  return 1;
}

int py_count32(PyObject *given, void *out) {
  uint64_t count;
  if (!types_count(given, UINT32_MAX, &count)) return 0;
  *(uint32_t *)out = (uint32_t)count;
  return 1;
}

int py_count64(PyObject *given, void *out) {
  uint64_t count;
  if (!types_count(given, UINT64_MAX, &count)) return 0;
  *(uint64_t *)out = count;
  return 1;
}
