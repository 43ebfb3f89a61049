/* Library errors as exceptions: one class per status, derived also from the built-in exception that Python programs
 * expect. The text is the library's message. */
#include <stdarg.h>
#include <stdio.h>

#include "py.h"

typedef struct error_class {
  berth_status status;
  const char *name, *doc;
  PyObject **base; /* the built-in exception; NULL: none */
} error_class;

static const error_class error_classes[] = {
    {BERTH_NOMEM, "berth.OutOfMemory", "There is not enough host memory.", &PyExc_MemoryError},
    {BERTH_DEVICE_NOMEM, "berth.DeviceOutOfMemory", "There is not enough memory on the device.", &PyExc_MemoryError},
    {BERTH_INVALID, "berth.InvalidArgument", "An argument is wrong; the text says which, and what would be right.",
     &PyExc_ValueError},
    {BERTH_MALFORMED, "berth.MalformedFile", "A file is not what it should be.", &PyExc_ValueError},
    {BERTH_UNSUPPORTED, "berth.Unsupported", "berth, or this device, cannot do that.", &PyExc_NotImplementedError},
    {BERTH_IO, "berth.FileError", "A file cannot be read or written.", &PyExc_OSError},
    {BERTH_DEVICE_LOST, "berth.DeviceLost", "The device does not answer any more.", &PyExc_RuntimeError},
    {BERTH_INFEASIBLE, "berth.DoesNotFit", "A limit cannot be met: a budget, a context, a capacity.", NULL},
    {BERTH_INTERNAL, "berth.InternalError", "A mistake in berth itself.", &PyExc_RuntimeError},
    {BERTH_CANCELLED, "berth.Cancelled", "Somebody asked for it to stop.", NULL},
};
enum {
  N_CLASSES = sizeof error_classes / sizeof error_classes[0]
};
static PyObject *errors_base, *errors_of[N_CLASSES];
static PyObject *errors_cause; /* the last exception raised by a callback; the following error has its text */
static char errors_cause_text[sizeof((berth_error *)0)->message];

static PyObject *errors_make(const error_class *c) {
  PyObject *bases = c->base != NULL ? PyTuple_Pack(2, errors_base, *c->base) : PyTuple_Pack(1, errors_base);
  PyObject *dict = Py_BuildValue("{s:s}", "status", berth_status_name(c->status));
  PyObject *made = bases != NULL && dict != NULL ? PyErr_NewExceptionWithDoc(c->name, c->doc, bases, dict) : NULL;
  Py_XDECREF(bases);
  Py_XDECREF(dict);
  return made;
}

int py_errors_init(PyObject *module) {
  PyObject *dict = Py_BuildValue("{s:s}", "status", "");
  if (dict == NULL) return -1;
  errors_base = PyErr_NewExceptionWithDoc("berth.Error",
                                          "Every error of the library: a sentence that says what is wrong, where, and "
                                          "what would help. `status` is its kind: \"INVALID\", \"UNSUPPORTED\", ...",
                                          PyExc_Exception, dict);
  Py_DECREF(dict);
  if (errors_base == NULL || PyModule_AddObjectRef(module, "Error", errors_base) < 0) return -1;
  for (int i = 0; i < N_CLASSES; i++) {
    errors_of[i] = errors_make(&error_classes[i]);
    if (errors_of[i] == NULL) return -1;
    if (PyModule_AddObjectRef(module, strchr(error_classes[i].name, '.') + 1, errors_of[i]) < 0) return -1;
  }
  return 0;
}

static PyObject *errors_class(berth_status status) {
  for (int i = 0; i < N_CLASSES; i++)
    if (error_classes[i].status == status) return errors_of[i];
  return errors_base;
}

PyObject *py_fail(const berth_error *err) {
  PyObject *class = errors_class(err->status), *text = py_string(err->message), *cause = NULL;
  if (text == NULL) return NULL;
  if (errors_cause != NULL) { /* reported once */
    cause = errors_cause;
    errors_cause = NULL;
    if (strstr(err->message, errors_cause_text) == NULL) Py_CLEAR(cause);
  }
  PyObject *exception = PyObject_CallFunctionObjArgs(class, text, NULL);
  Py_DECREF(text);
  if (exception == NULL) {
    Py_XDECREF(cause);
    return NULL;
  }
  if (cause != NULL) PyException_SetCause(exception, cause); /* takes it */
  PyErr_SetObject(class, exception);
  Py_DECREF(exception);
  return NULL;
}

PyObject *py_invalid(const char *format, ...) {
  berth_error err = {.status = BERTH_INVALID};
  va_list args;
  va_start(args, format);
  vsnprintf(err.message, sizeof err.message, format, args);
  va_end(args);
  return py_fail(&err);
}

/* "ValueError: text" of an exception. */
static void errors_describe(PyObject *type, PyObject *value, char *text, size_t size) {
  PyObject *name = PyObject_GetAttrString(type, "__name__"), *said = value != NULL ? PyObject_Str(value) : NULL;
  PyObject *name_bytes = name != NULL ? PyUnicode_AsUTF8String(name) : NULL;
  PyObject *said_bytes = said != NULL ? PyUnicode_AsUTF8String(said) : NULL;
  PyErr_Clear();
  snprintf(text, size, "%s: %s", name_bytes != NULL ? PyBytes_AsString(name_bytes) : "an exception",
           said_bytes != NULL ? PyBytes_AsString(said_bytes) : "");
  Py_XDECREF(name);
  Py_XDECREF(said);
  Py_XDECREF(name_bytes);
  Py_XDECREF(said_bytes);
}

berth_status py_to_error(const char *what, berth_error *err) {
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  char text[sizeof errors_cause_text / 2];
  errors_describe(type, value, text, sizeof text);
  snprintf(errors_cause_text, sizeof errors_cause_text, "%.200s raised %s", what, text);
  if (err != NULL) {
    err->status = BERTH_INVALID;
    snprintf(err->message, sizeof err->message, "%s", errors_cause_text);
  }
  if (value != NULL && trace != NULL) PyException_SetTraceback(value, trace);
  Py_XDECREF(errors_cause);
  errors_cause = value;
  Py_XDECREF(type);
  Py_XDECREF(trace);
  return BERTH_INVALID;
}
