/* Generating text, and embeddings of texts. */
#include "py.h"

typedef struct py_generator {
  PyObject_HEAD py_guard guard;
  berth_generator *generator;
  PyObject *token; /* a capsule of `cancel`: a fork shares the token of its generator */
  berth_cancel *cancel;
} py_generator;

static PyTypeObject *generator_type;

/* ---- Arguments ---- */

static char *generator_names[] = {"path",        "ctx",   "chunk",       "kv",    "device", "threads",
                                  "slide",       "top_k", "temperature", "top_p", "min_p",  "repeat_penalty",
                                  "repeat_last", "seed",  NULL};

typedef struct generator_request {
  PyObject *path;
  berth_generator_desc desc;
  berth_sampling_desc sampling;
} generator_request;

static int generator_parse(PyObject *args, PyObject *kwargs, generator_request *out) {
  PyObject *kv = Py_None;
  int slide = 0;
  berth_sampling_desc *s = &out->sampling;
  *out = (generator_request){NULL, BERTH_GENERATOR_DESC_INIT, BERTH_SAMPLING_DESC_INIT};
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O&|$O&O&OzO&pO&ffffO&O&", generator_names, PyUnicode_FSConverter,
                                   &out->path, py_count32, &out->desc.ctx, py_count32, &out->desc.chunk, &kv,
                                   &out->desc.device, py_count32, &out->desc.n_threads, &slide, py_count32, &s->top_k,
                                   &s->temperature, &s->top_p, &s->min_p, &s->repeat_penalty, py_count32,
                                   &s->repeat_last, py_count64, &s->seed))
    return -1;
  out->desc.flags = slide ? BERTH_GENERATOR_SLIDE : 0;
  out->desc.sampling = s;
  return kv == Py_None ? 0 : py_type_from(kv, &out->desc.kv);
}

static void generator_token_drop(PyObject *token) { berth_cancel_destroy(PyCapsule_GetPointer(token, NULL)); }

static PyObject *generator_token(void) {
  berth_cancel *cancel;
  berth_error err = {BERTH_OK, ""};
  if (berth_cancel_create(py_context, &cancel, &err) != BERTH_OK) return py_fail(&err);
  PyObject *token = PyCapsule_New(cancel, NULL, generator_token_drop);
  if (token == NULL) berth_cancel_destroy(cancel);
  return token;
}

/* Takes ownership of the token. */
static py_generator *generator_alloc(PyTypeObject *type, int is_alone, PyObject *token) {
  allocfunc alloc = __extension__(allocfunc) PyType_GetSlot(type, Py_tp_alloc);
  py_generator *self = token != NULL ? (py_generator *)alloc(type, 0) : NULL;
  if (self == NULL) {
    Py_XDECREF(token);
    return NULL;
  }
  self->token = token;
  self->cancel = PyCapsule_GetPointer(token, NULL);
  if (self->cancel != NULL && py_guard_init(&self->guard, is_alone) == 0) return self;
  Py_DECREF(PY_OBJECT(self));
  return NULL;
}

static PyObject *generator_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
  generator_request request;
  berth_error err = {BERTH_OK, ""};
  berth_status status;
  if (generator_parse(args, kwargs, &request) < 0) {
    Py_XDECREF(request.path);
    return NULL;
  }
  const char *device = request.desc.device;
  const int is_alone = request.desc.n_threads == 1 && (device == NULL || strcmp(device, "cpu") == 0);
  py_generator *self = generator_alloc(type, is_alone, generator_token());
  if (self == NULL) {
    Py_DECREF(request.path);
    return NULL;
  }
  const char *path = PyBytes_AsString(request.path);
  request.desc.cancel = self->cancel;
  Py_BEGIN_ALLOW_THREADS;
  status = berth_generator_create(py_context, path, &request.desc, &self->generator, &err);
  Py_END_ALLOW_THREADS;
  Py_DECREF(request.path);
  if (status == BERTH_OK) return (PyObject *)self;
  Py_DECREF(PY_OBJECT(self));
  return py_fail(&err);
}

static void generator_dealloc(PyObject *object) {
  py_generator *self = (py_generator *)object;
  PyTypeObject *type = Py_TYPE(object);
  freefunc release = __extension__(freefunc) PyType_GetSlot(type, Py_tp_free);
  if (self->guard.lock != NULL && !py_guard_is_lost(&self->guard)) berth_generator_destroy(self->generator);
  py_guard_free(&self->guard);
  Py_CLEAR(self->token);
  release(object);
  Py_DECREF(type);
}

static int generator_enter(py_generator *self) {
  if (py_guard_enter(&self->guard, "generator") < 0) return -1;
  if (self->generator != NULL) return 0;
  py_guard_leave(&self->guard);
  py_invalid("the generator is closed");
  return -1;
}

static PyObject *generator_leave(py_generator *self, berth_status status, const berth_error *err) {
  if (status == BERTH_CANCELLED) berth_cancel_clear(self->cancel);
  py_guard_leave(&self->guard);
  if (status != BERTH_OK) return py_fail(err);
  Py_RETURN_NONE;
}

/* ---- Input text ---- */

static PyObject *generator_feed(PyObject *object, PyObject *args, PyObject *kwargs) {
  static char *names[] = {"text", "special", NULL};
  py_generator *self = (py_generator *)object;
  const char *text;
  Py_ssize_t size;
  int is_special = 0;
  berth_error err = {BERTH_OK, ""};
  berth_status status;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "s#|p", names, &text, &size, &is_special)) return NULL;
  if (generator_enter(self) < 0) return NULL;
  Py_BEGIN_ALLOW_THREADS;
  status = berth_generator_feed(self->generator, text, (size_t)size, is_special ? BERTH_FEED_SPECIAL : 0, &err);
  Py_END_ALLOW_THREADS;
  return generator_leave(self, status, &err);
}

static PyObject *generator_feed_tokens(PyObject *object, PyObject *given) {
  py_generator *self = (py_generator *)object;
  berth_error err = {BERTH_OK, ""};
  berth_status status;
  const Py_ssize_t n = PySequence_Size(given);
  int32_t *tokens = n < 0 ? NULL : PyMem_Malloc(sizeof *tokens * (size_t)(n + 1));
  if (tokens == NULL) return n < 0 ? NULL : PyErr_NoMemory();
  for (Py_ssize_t i = 0; i < n && !PyErr_Occurred(); i++) {
    PyObject *item = PySequence_GetItem(given, i);
    const long token = item != NULL ? PyLong_AsLong(item) : 0;
    tokens[i] = token >= INT32_MIN && token <= INT32_MAX ? (int32_t)token : -1; /* invalid, which the library refuses */
    Py_XDECREF(item);
  }
  if (PyErr_Occurred() || generator_enter(self) < 0) {
    PyMem_Free(tokens);
    return NULL;
  }
  Py_BEGIN_ALLOW_THREADS;
  status = berth_generator_feed_tokens(self->generator, tokens, (size_t)n, &err);
  Py_END_ALLOW_THREADS;
  PyMem_Free(tokens);
  return generator_leave(self, status, &err);
}

/* [(role, content), ...] */
static berth_message *generator_messages(PyObject *given, PyObject *keep, size_t *n) {
  const Py_ssize_t count = PySequence_Size(given);
  berth_message *list = count < 0 ? NULL : py_keep(keep, sizeof *list * (size_t)(count + 1));
  for (Py_ssize_t i = 0; list != NULL && i < count; i++) {
    PyObject *item = PySequence_GetItem(given, i);
    PyObject *pair = item != NULL ? PySequence_Tuple(item) : NULL;
    const int is_pair = pair != NULL && PyTuple_Size(pair) == 2 && PyList_Append(keep, pair) == 0;
    PyObject *role = is_pair ? PyTuple_GetItem(pair, 0) : NULL, *content = is_pair ? PyTuple_GetItem(pair, 1) : NULL;
    list[i].role = role != NULL && PyUnicode_Check(role) ? PyUnicode_AsUTF8AndSize(role, NULL) : NULL;
    list[i].content = content != NULL && PyUnicode_Check(content) ? PyUnicode_AsUTF8AndSize(content, NULL) : NULL;
    if (list[i].role == NULL || list[i].content == NULL) {
      if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "a message is a role and a text");
      list = NULL;
    }
    Py_XDECREF(item);
    Py_XDECREF(pair);
  }
  *n = count < 0 ? 0 : (size_t)count;
  return list;
}

static PyObject *generator_chat(PyObject *object, PyObject *given) {
  py_generator *self = (py_generator *)object;
  berth_error err = {BERTH_OK, ""};
  berth_status status;
  size_t n;
  PyObject *keep = PyList_New(0);
  berth_message *messages = keep != NULL ? generator_messages(given, keep, &n) : NULL;
  if (messages == NULL || generator_enter(self) < 0) {
    Py_XDECREF(keep);
    return NULL;
  }
  Py_BEGIN_ALLOW_THREADS;
  status = berth_generator_chat(self->generator, messages, n, &err);
  Py_END_ALLOW_THREADS;
  Py_DECREF(keep);
  return generator_leave(self, status, &err);
}

static PyObject *generator_tokens_of(const int32_t *tokens, size_t n) {
  PyObject *list = PyList_New(0);
  for (size_t i = 0; list != NULL && i < n; i++) {
    PyObject *token = PyLong_FromLong(tokens[i]);
    if (token == NULL || PyList_Append(list, token) < 0) Py_CLEAR(list);
    Py_XDECREF(token);
  }
  return list;
}

static PyObject *generator_encode(PyObject *object, PyObject *args, PyObject *kwargs) {
  static char *names[] = {"text", "special", NULL};
  py_generator *self = (py_generator *)object;
  const char *text;
  Py_ssize_t size;
  int is_special = 0;
  size_t count = 0;
  berth_error err = {BERTH_OK, ""};
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "s#|p", names, &text, &size, &is_special)) return NULL;
  PyObject *keep = PyList_New(0), *list = NULL;
  const size_t room = (size_t)size + 16; /* a token has at least one byte, except those that begin and end a text */
  int32_t *tokens = keep != NULL ? py_keep(keep, sizeof *tokens * room) : NULL;
  if (tokens != NULL && generator_enter(self) == 0) {
    const berth_status status = berth_generator_encode(self->generator, text, (size_t)size,
                                                       is_special ? BERTH_FEED_SPECIAL : 0, tokens, room, &count, &err);
    py_guard_leave(&self->guard);
    list = status != BERTH_OK ? py_fail(&err) : generator_tokens_of(tokens, count < room ? count : room);
  }
  Py_XDECREF(keep);
  return list;
}

/* ---- Output text ---- */

static PyObject *generator_next(PyObject *object, PyObject *unused) {
  py_generator *self = (py_generator *)object;
  berth_piece piece = BERTH_PIECE_INIT;
  berth_error err = {BERTH_OK, ""};
  berth_status status;
  (void)unused;
  if (generator_enter(self) < 0) return NULL;
  Py_BEGIN_ALLOW_THREADS;
  status = berth_generator_next(self->generator, &piece, &err);
  Py_END_ALLOW_THREADS;
  PyObject *result = NULL;
  if (status == BERTH_OK) {
    PyObject *text = PyUnicode_DecodeUTF8(piece.text != NULL ? piece.text : "", (Py_ssize_t)piece.text_size, "replace");
    if (text != NULL) result = Py_BuildValue("(iNN)", (int)piece.token, text, PyBool_FromLong(piece.is_end));
  }
  PyObject *left = generator_leave(self, status, &err);
  if (left == NULL) return NULL;
  Py_DECREF(left);
  return result;
}

static PyObject *generator_logits(PyObject *object, PyObject *unused) {
  py_generator *self = (py_generator *)object;
  berth_error err = {BERTH_OK, ""};
  const float *logits;
  uint32_t count;
  (void)unused;
  if (generator_enter(self) < 0) return NULL;
  py_tensor *tensor = NULL;
  const berth_status status = berth_generator_logits(self->generator, &logits, &count, &err);
  if (status == BERTH_OK) {
    const int64_t dim = count;
    tensor = py_tensor_new(BERTH_F32, 1, &dim);
    if (tensor != NULL) memcpy(tensor->data, logits, sizeof *logits * count);
  }
  py_guard_leave(&self->guard);
  return status == BERTH_OK ? py_tensor_array(tensor) : py_fail(&err);
}

static PyObject *generator_sample(PyObject *object, PyObject *args, PyObject *kwargs) {
  py_generator *self = (py_generator *)object;
  berth_sampling_desc s = BERTH_SAMPLING_DESC_INIT;
  berth_error err = {BERTH_OK, ""};
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$O&ffffO&O&", generator_names + 7, py_count32, &s.top_k,
                                   &s.temperature, &s.top_p, &s.min_p, &s.repeat_penalty, py_count32, &s.repeat_last,
                                   py_count64, &s.seed))
    return NULL;
  if (generator_enter(self) < 0) return NULL;
  return generator_leave(self, berth_generator_sample(self->generator, &s, &err), &err);
}

/* ---- Conversations ---- */

static PyObject *generator_mark(PyObject *object, PyObject *unused) {
  py_generator *self = (py_generator *)object;
  berth_error err = {BERTH_OK, ""};
  (void)unused;
  if (generator_enter(self) < 0) return NULL;
  return generator_leave(self, berth_generator_mark(self->generator, &err), &err);
}

static PyObject *generator_rewind(PyObject *object, PyObject *unused) {
  py_generator *self = (py_generator *)object;
  berth_error err = {BERTH_OK, ""};
  (void)unused;
  if (generator_enter(self) < 0) return NULL;
  return generator_leave(self, berth_generator_rewind(self->generator, &err), &err);
}

static PyObject *generator_reset(PyObject *object, PyObject *unused) {
  py_generator *self = (py_generator *)object;
  (void)unused;
  if (generator_enter(self) < 0) return NULL;
  berth_generator_reset(self->generator);
  return generator_leave(self, BERTH_OK, NULL);
}

static PyObject *generator_cancel(PyObject *object, PyObject *unused) {
  (void)unused;
  berth_cancel_request(((py_generator *)object)->cancel);
  Py_RETURN_NONE;
}

static PyObject *generator_close(PyObject *object, PyObject *unused) {
  py_generator *self = (py_generator *)object;
  (void)unused;
  if (self->generator == NULL) Py_RETURN_NONE;
  if (generator_enter(self) < 0) return NULL;
  berth_generator_destroy(self->generator);
  self->generator = NULL;
  return generator_leave(self, BERTH_OK, NULL);
}

static PyObject *generator_save(PyObject *object, PyObject *unused) {
  py_generator *self = (py_generator *)object;
  berth_error err = {BERTH_OK, ""};
  (void)unused;
  if (generator_enter(self) < 0) return NULL;
  const uint64_t size = berth_generator_save_size(self->generator);
  PyObject *bytes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)size);
  if (bytes != NULL && berth_generator_save(self->generator, PyBytes_AsString(bytes), (size_t)size, &err) != BERTH_OK) {
    Py_CLEAR(bytes);
    py_fail(&err);
  }
  py_guard_leave(&self->guard);
  return bytes;
}

static PyObject *generator_restore(PyObject *object, PyObject *data) {
  py_generator *self = (py_generator *)object;
  berth_error err = {BERTH_OK, ""};
  Py_buffer buffer;
  if (PyObject_GetBuffer(data, &buffer, PyBUF_SIMPLE) < 0) return NULL;
  if (generator_enter(self) < 0) {
    PyBuffer_Release(&buffer);
    return NULL;
  }
  const berth_status status = berth_generator_load(self->generator, buffer.buf, (size_t)buffer.len, &err);
  PyBuffer_Release(&buffer);
  return generator_leave(self, status, &err);
}

static PyObject *generator_fork(PyObject *object, PyObject *unused) {
  py_generator *self = (py_generator *)object;
  berth_error err = {BERTH_OK, ""};
  berth_status status;
  (void)unused;
  if (generator_enter(self) < 0) return NULL;
  py_generator *other = generator_alloc(Py_TYPE(object), self->guard.is_alone, Py_NewRef(self->token));
  if (other == NULL) {
    py_guard_leave(&self->guard);
    return NULL;
  }
  Py_BEGIN_ALLOW_THREADS;
  status = berth_generator_fork(self->generator, &other->generator, &err);
  Py_END_ALLOW_THREADS;
  PyObject *left = generator_leave(self, status, &err);
  if (left == NULL) {
    Py_DECREF(PY_OBJECT(other));
    return NULL;
  }
  Py_DECREF(left);
  return (PyObject *)other;
}

static PyObject *generator_info(PyObject *object, PyObject *unused) {
  py_generator *self = (py_generator *)object;
  berth_generator_info i = BERTH_GENERATOR_INFO_INIT;
  berth_error err = {BERTH_OK, ""};
  (void)unused;
  if (generator_enter(self) < 0) return NULL;
  const berth_status status = berth_generator_get_info(self->generator, &i, &err);
  PyObject *tokens =
      status == BERTH_OK ? generator_tokens_of(berth_generator_tokens(self->generator), i.n_tokens) : py_fail(&err);
  PyObject *info =
      tokens == NULL
          ? NULL
          : Py_BuildValue("{s:I,s:I,s:I,s:N,s:N,s:N,s:K,s:K,s:K}", "ctx", i.ctx, "chunk", i.chunk, "vocabulary",
                          i.vocabulary, "tokens", tokens, "has_template", PyBool_FromLong(i.has_template),
                          "architecture", py_string(i.architecture), "arena_size", (unsigned long long)i.arena_size,
                          "weights_size", (unsigned long long)i.weights_size, "state_size",
                          (unsigned long long)i.state_size);
  py_guard_leave(&self->guard);
  return info;
}

static PyMethodDef generator_methods[] = {
    {"feed", PY_METHOD(generator_feed), METH_VARARGS | METH_KEYWORDS,
     "feed(text, special=False)\n\nAdds text to the conversation and evaluates it. special: \"<|im_end|>\" and the "
     "like "
     "are tokens; not for a stranger's text."},
    {"feed_tokens", generator_feed_tokens, METH_O, "feed_tokens(tokens)\n\nThe same with tokens."},
    {"set_messages", generator_chat, METH_O,
     "set_messages([(role, text), ...])\n\nMakes the conversation what the model's template makes of these messages."},
    {"encode", PY_METHOD(generator_encode), METH_VARARGS | METH_KEYWORDS,
     "encode(text, special=False) -> list of int\n\nThe tokens of a text."},
    {"next_piece", generator_next, METH_NOARGS,
     "next_piece() -> (token, text, is_end)\n\nOne token more, and what can be shown by now."},
    {"logits", generator_logits, METH_NOARGS, "logits() -> array\n\nWhat the next token is chosen by."},
    {"sample", PY_METHOD(generator_sample), METH_VARARGS | METH_KEYWORDS,
     "sample(*, top_k=40, temperature=0.8, top_p=0.95, min_p=0.05, repeat_penalty=1, repeat_last=64, seed=0)\n\nHow "
     "tokens are chosen from here on."},
    {"mark", generator_mark, METH_NOARGS, "mark()\n\nRemembers where the conversation is."},
    {"rewind", generator_rewind, METH_NOARGS, "rewind()\n\nGoes back to the mark, as often as it is called."},
    {"reset", generator_reset, METH_NOARGS, "reset()\n\nBegins a new conversation."},
    {"fork", generator_fork, METH_NOARGS, "fork() -> Generator\n\nA second one that goes on by itself."},
    {"save", generator_save, METH_NOARGS, "save() -> bytes\n\nThe conversation, with its part of the cache."},
    {"restore", generator_restore, METH_O, "restore(data)\n\nWhat save gave."},
    {"info", generator_info, METH_NOARGS, "info() -> dict\n\nSizes, and the tokens of the conversation."},
    {"cancel", generator_cancel, METH_NOARGS, "cancel()\n\nStops what is under way; any thread may call it."},
    {"close", generator_close, METH_NOARGS, "close()\n\nGives its memory back."},
    {NULL, NULL, 0, NULL}};

static PyType_Slot generator_slots[] = {{Py_tp_doc, "What berth.Generator is made of."},
                                        {Py_tp_new, PY_SLOT(generator_new)},
                                        {Py_tp_dealloc, PY_SLOT(generator_dealloc)},
                                        {Py_tp_methods, generator_methods},
                                        {0, NULL}};

static PyType_Spec generator_spec = {"berth._berth.GeneratorHandle", sizeof(py_generator), 0,
                                     Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, generator_slots};

int py_generator_init(PyObject *module) {
  generator_type = py_type(module, &generator_spec);
  return generator_type != NULL ? 0 : -1;
}
