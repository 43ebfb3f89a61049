/* py.h - shared by the files of the Python extension.
 *
 * Threads:  the GIL is held unless a function says otherwise; it is released around everything that plans, runs or
 * reads files. An object that one thread may use at a time is protected by a py_guard.
 * Errors:   as usual in extensions: NULL or -1, and an exception is set.
 * Types:    there is one interpreter (module.c refuses others), so types and other objects of the module are global. */
#ifndef BERTH_PY_H
#define BERTH_PY_H

#define PY_SSIZE_T_CLEAN
#ifndef Py_LIMITED_API
#define Py_LIMITED_API 0x030B0000
#endif
#include <Python.h>

#include "berth/berth.h"

/* Converts a function for a table of slots: ISO C has no conversion to void *, POSIX does. */
#define PY_OBJECT(pointer) ((PyObject *)(pointer))
#define PY_SLOT(function) __extension__(void *)(function)
#define PY_METHOD(function) __extension__(PyCFunction)(void (*)(void))(function)

/* ---- The module (module.c) ---- */

extern berth_context *py_context;
berth_status py_text_write(void *list, const char *text, size_t size); /* a berth_write_fn into a list of str */
PyObject *py_text_join(PyObject *list);
PyObject *py_string(const char *text);                      /* str; invalid UTF-8 is replaced */
PyTypeObject *py_type(PyObject *module, PyType_Spec *spec); /* makes a type and adds it to the module */
/* Memory of `size` bytes, owned by the list `keep`. */
void *py_keep(PyObject *keep, size_t size);
/* A copy of a dict, owned by `keep`: converting its values may run code that changes the original. */
PyObject *py_keep_dict(PyObject *keep, PyObject *dict);

/* ---- Errors (errors.c) ---- */

int py_errors_init(PyObject *module);
PyObject *py_fail(const berth_error *err); /* sets the exception of a status; NULL */
PyObject *py_invalid(const char *format, ...);
/* Converts the current exception to a message in *err, for callbacks of the library; `what` raised it. */
berth_status py_to_error(const char *what, berth_error *err);

/* ---- Objects that one thread may use at a time (guard.c) ---- */

typedef struct py_guard {
  PyThread_type_lock lock;
  unsigned long owner; /* the thread that holds it; 0: none */
  unsigned generation; /* of the process: counts forks */
  int is_alone;        /* it has no threads and no driver, so a forked process can use it */
} py_guard;
int py_guard_init_module(void);
int py_guard_init(py_guard *guard, int is_alone);
void py_guard_free(py_guard *guard);
int py_guard_enter(py_guard *guard, const char *what); /* waits, with the GIL released */
void py_guard_leave(py_guard *guard);
int py_guard_is_lost(const py_guard *guard);     /* a forked process lacks its threads: it can only be leaked */
void py_callback_enter(PyGILState_STATE *state); /* brackets calls into Python from the library */
void py_callback_leave(PyGILState_STATE state);

/* ---- Element types, shapes, attributes (types.c) ---- */

typedef struct py_element {
  berth_type type;
  const char *format; /* for the buffer protocol */
  const char *numpy;  /* its dtype */
  uint8_t dl_code, dl_bits;
} py_element;
const py_element *py_element_of(berth_type type); /* block types are bytes */
berth_type py_type_of_format(const char *format, Py_ssize_t itemsize);
/* Converters for "O&", since Python's own for unsigned numbers ("I", "K") wrap modulo 2^32 and 2^64. */
int py_count32(PyObject *given, void *out);        /* uint32_t */
int py_count64(PyObject *given, void *out);        /* uint64_t */
int py_type_from(PyObject *name, berth_type *out); /* "f32", "float32", numpy.float32, a dtype */
PyObject *py_extents(uint32_t rank, const int64_t *dim);
PyObject *py_shape(const berth_shape *shape);
int py_shape_from(PyObject *given, berth_shape *out); /* its names are owned by `given` */
/* Converts a dict of extents by name to dims, owned by `keep`. None: no dims. */
int py_dims_from(PyObject *dict, PyObject *keep, const berth_dim **dims, size_t *n);
int py_attrs_from(PyObject *dict, PyObject *keep, const berth_attr **attrs, size_t *n);
PyObject *py_attrs(const berth_attr *attrs, uint32_t n);
/* Writes "f32[2, batch]" into `text`, truncated to fit. */
#define PY_SHAPE_TEXT 160
const char *py_shape_text(berth_type type, uint32_t rank, const int64_t *dim, char *text);

/* ---- Tensors (tensor.c, dlpack.c) ---- */

struct py_session;
enum { /* kinds of memory, with DLPack's numbers */
  PY_ON_HOST = 1,
  PY_ON_CUDA = 2
};
typedef struct py_tensor {
  PyObject_HEAD void *data;
  berth_type type;
  uint32_t rank;
  int64_t dim[BERTH_MAX_RANK];
  Py_ssize_t shape[BERTH_MAX_RANK], stride[BERTH_MAX_RANK]; /* strides in bytes */
  uint64_t size;
  int is_readonly;
  Py_ssize_t n_exports;       /* exported buffers and capsules */
  struct py_session *session; /* the session whose arena it is in; NULL: none */
  PyObject *keep;             /* the owner of other memory; NULL: `memory` */
  void *memory;               /* its own memory */
  int32_t device, device_id;  /* as in DLPack */
} py_tensor;
extern PyTypeObject *py_tensor_type;
int py_tensor_init(PyObject *module);
/* A tensor with its own memory. */
py_tensor *py_tensor_new(berth_type type, uint32_t rank, const int64_t *dim);
/* A view of memory: strides in elements, NULL: contiguous. */
py_tensor *py_tensor_view(void *data, berth_type type, uint32_t rank, const int64_t *dim, const int64_t *stride,
                          int is_readonly);
PyObject *py_tensor_array(py_tensor *tensor); /* numpy.asarray of it, or itself without numpy. Takes ownership */
PyObject *py_tensor_dlpack(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *py_tensor_dlpack_device(PyObject *self, PyObject *unused);
PyObject *py_from_dlpack(PyObject *module, PyObject *object);
PyObject *py_tensor_at(PyObject *module, PyObject *args);

/* ---- Input arrays (array.c) ---- */

typedef struct py_array {
  Py_buffer buffer;
  int has_buffer;
  PyObject *holder; /* owner of the bytes */
  const void *data;
  berth_type type;
  uint32_t rank;
  int64_t dim[BERTH_MAX_RANK];
  uint64_t size;
  int32_t device, device_id; /* as in DLPack; 1: host memory */
} py_array;
/* Any object with elements in C order; copies only if necessary. `wanted` decides the type of lists and numbers, and of
 * encodings that serve two types; BERTH_TYPE_NONE: as given. */
int py_array_get(PyObject *object, berth_type wanted, py_array *out);
int py_array_get_place(PyObject *object, berth_type wanted, py_array *out); /* memory to write to, never a copy */
int py_array_get_host(PyObject *object, berth_type wanted, py_array *out);  /* the same, but refuses GPU memory */
void py_array_release(py_array *array);
typedef enum py_numpy_function {
  PY_NUMPY_EMPTY,
  PY_NUMPY_ASARRAY,
  PY_NUMPY_ASCONTIGUOUSARRAY,
  PY_NUMPY_DTYPE,
  PY_N_NUMPY
} py_numpy_function;
PyObject *py_numpy(py_numpy_function function);            /* borrowed; NULL without an exception: no numpy */
PyObject *py_dlpack_open(PyObject *object, py_array *out); /* the capsule; host or CUDA memory, in C order */
int py_has_host_buffer(PyObject *object); /* a GPU tensor supports the protocol, but has no host memory */
void py_array_memory(const py_array *array, berth_memory *out);

/* ---- Graphs, plans, sessions ---- */

typedef struct py_graph {
  PyObject_HEAD berth_graph *graph;
  int n_readers; /* calls that read it with the GIL released, or change it */
} py_graph;
extern PyTypeObject *py_graph_type;
int py_graph_init(PyObject *module);
int py_graph_begin_change(py_graph *self);

typedef struct py_plan {
  PyObject_HEAD berth_plan *own; /* NULL: a session's */
  struct py_session *session;    /* whose current plan it is */
  const berth_plan *of_session;
} py_plan;
extern PyTypeObject *py_plan_type;
int py_plan_init(PyObject *module);

/* Options of plans and sessions. */
typedef struct py_request {
  PyObject *keep;
  berth_plan_desc plan;
  uint32_t session_flags;
  uint32_t max_bindings;
} py_request;
/* From keyword arguments; the caller handles `names` of them. */
int py_request_get(PyObject *args, PyObject *kwargs, int is_session, py_graph **graph, py_request *out);
void py_request_release(py_request *request);

typedef struct py_port {
  PyObject *name;
  berth_type type;
  berth_shape shape; /* as declared by the graph, which owns the names */
  berth_value value;
  uint32_t rank; /* of the current binding, like all that follow */
  int64_t dim[BERTH_MAX_RANK];
  uint64_t size;
  int is_bounded;  /* a run determines its extents */
  PyObject *empty; /* outputs: arguments of numpy.empty */
  void *data;      /* inputs: host address; NULL: none */
} py_port;

typedef struct py_session {
  PyObject_HEAD py_guard guard;
  py_graph *graph;
  py_request request;
  berth_session *session; /* NULL: not created yet, because dims are missing, or closed */
  berth_cancel *cancel;
  int is_closed;
  uint32_t n_in, n_out, n_dims;
  py_port *in, *out;
  int64_t *extents; /* of the n_dims named dimensions; -1: unknown */
  int64_t *wanted;  /* the extents that a run needs */
  Py_ssize_t n_views;
  unsigned long long n_changes; /* counts calls that wrote inputs, ran or bound: earlier outputs are invalid */
  const char *block;            /* its arena, unless it is being bound; NULL: not host memory */
  uint64_t block_size;
  struct py_session *next, **link; /* list of all sessions, for callbacks that look up memory */
} py_session;
extern PyTypeObject *py_session_type;
int py_session_init_type(PyObject *module);
int py_session_enter(py_session *self);                                 /* like py_guard_enter; refuses closed ones */
int py_session_need(py_session *self);                                  /* requires a binding */
int py_session_adopt_extents(py_session *self, const int64_t *extents); /* binds if they differ; session entered */
py_session *py_session_at(const void *data);
PyObject *py_session_run(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *kwnames);
PyObject *py_session_execute(PyObject *self, PyObject *unused);
PyObject *py_session_view(PyObject *self, PyObject *name);
int py_session_find_output(py_session *self, PyObject *name, uint32_t *out); /* its index */
PyObject *py_session_feed(PyObject *self, PyObject *feeds);
PyObject *py_session_read(PyObject *self, PyObject *name);
PyObject *py_session_read_into(PyObject *self, PyObject *args);
PyObject *py_save_weights(PyObject *module, PyObject *args); /* save.c */
PyObject *py_save_model(PyObject *module, PyObject *args);
PyObject *py_load_weights(PyObject *module, PyObject *path);
PyObject *py_session_states_lost(PyObject *self, PyObject *unused); /* state.c */
PyObject *py_session_states(PyObject *self, PyObject *unused);
PyObject *py_session_state_get(PyObject *self, PyObject *name);
PyObject *py_session_state_set(PyObject *self, PyObject *args);
PyObject *py_session_state_reset(PyObject *self, PyObject *args);
PyObject *py_session_save(PyObject *self, PyObject *unused);
PyObject *py_session_restore(PyObject *self, PyObject *data);
PyObject *py_session_set_param(PyObject *self, PyObject *args);

/* ---- Others ---- */

PyObject *py_op_register(PyObject *module, PyObject *args, PyObject *kwargs);
PyObject *py_pack(PyObject *module, PyObject *args, PyObject *kwargs);
PyObject *py_pack_picture(PyObject *module, PyObject *args, PyObject *kwargs);
int py_generator_init(PyObject *module);
int py_embedder_init(PyObject *module);

#endif /* BERTH_PY_H */
