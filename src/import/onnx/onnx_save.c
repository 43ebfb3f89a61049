/* Writes an ONNX file with the data of its initializers replaced.
 *
 * The new file is a list of pieces: unchanged ones of the old file, and small new ones for keys and lengths. Only the
 * graph's own length and the tensors that change are written anew, so everything else keeps its bytes, including fields
 * that berth does not know. Tensors whose data lies in other files are moved to one new file, whether they change or
 * not. */
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/desc.h"
#include "base/math.h"
#include "base/text.h"
#include "base/whole.h"
#include "import/onnx/tensor.h"

enum { /* field numbers */
  MODEL_GRAPH = 7,
  GRAPH_INITIALIZER = 5,
  TENSOR_FLOATS = 4,
  TENSOR_INT32S = 5,
  TENSOR_INT64S = 7,
  TENSOR_RAW = 9,
  TENSOR_DOUBLES = 10,
  TENSOR_UINT64S = 11,
  TENSOR_EXTERNAL = 13,
  TENSOR_LOCATION = 14
};

#define DATA_ALIGN 64u /* alignment of tensors in the external file */

/* Either bytes that stay where they are, or some in `made`, which moves as it grows. */
typedef struct piece {
  const void *data; /* NULL: in `made` */
  size_t at, size;
} piece;

typedef struct pieces {
  piece *items;
  size_t n, capacity;
  uint64_t size; /* of all pieces */
} pieces;

typedef struct saving {
  berth_context *ctx;
  const berth_weight_info *weights;
  uint32_t n_weights;
  bool *is_used; /* one per weight: an initializer has its name */
  berth__onnx_files files;
  uint8_t *made; /* keys, lengths and other small things */
  size_t n_made, made_capacity;
  pieces model, graph, data;
  const char *data_name; /* of the external file, without its folder */
  bool has_data;         /* some tensor refers to it, even if it has no bytes */
  const berth__mapping *file;
} saving;

static berth_status save_piece(saving *s, pieces *to, piece one, berth_error *err) {
  if (one.size == 0) return BERTH_OK;
  piece *last = to->n != 0 ? &to->items[to->n - 1] : NULL;
  to->size += one.size;
  const bool goes_on = last != NULL && (one.data != NULL) == (last->data != NULL) &&
                       (one.data != NULL ? (const uint8_t *)last->data + last->size == (const uint8_t *)one.data
                                         : last->at + last->size == one.at);
  if (goes_on) {
    last->size += one.size;
    return BERTH_OK;
  }
  BERTH__TRY(BERTH__RESERVE(s->ctx, to->items, to->capacity, to->n + 1, err));
  to->items[to->n++] = one;
  return BERTH_OK;
}

static berth_status save_bytes(saving *s, pieces *to, const void *data, size_t size, berth_error *err) {
  return save_piece(s, to, (piece){.data = data, .size = size}, err);
}

static berth_status save_made(saving *s, pieces *to, const void *data, size_t size, berth_error *err) {
  BERTH__TRY(BERTH__RESERVE(s->ctx, s->made, s->made_capacity, s->n_made + size, err));
  if (size != 0) memcpy(s->made + s->n_made, data, size);
  s->n_made += size;
  return save_piece(s, to, (piece){.at = s->n_made - size, .size = size}, err);
}

static size_t save_varint(uint64_t value, uint8_t *out) {
  size_t n = 0;
  for (; value >= 0x80; value >>= 7) out[n++] = (uint8_t)(value | 0x80);
  out[n++] = (uint8_t)value;
  return n;
}

/* The key of a field of wire type 2 with its length. */
static berth_status save_key(saving *s, pieces *to, uint32_t field, uint64_t length, berth_error *err) {
  uint8_t text[20];
  size_t n = save_varint((uint64_t)field << 3 | BERTH__WIRE_BYTES, text);
  n += save_varint(length, text + n);
  return save_made(s, to, text, n, err);
}

/* ---- Tensors ---- */

static bool save_is_data(uint32_t field) {
  return field == TENSOR_FLOATS || field == TENSOR_INT32S || field == TENSOR_INT64S || field == TENSOR_RAW ||
         field == TENSOR_DOUBLES || field == TENSOR_UINT64S || field == TENSOR_EXTERNAL || field == TENSOR_LOCATION;
}

static const berth_weight_info *save_find(saving *s, berth__span name) {
  for (uint32_t i = 0; i < s->n_weights; i++) {
    if (!berth__span_is(name, s->weights[i].name)) continue;
    s->is_used[i] = true;
    return &s->weights[i];
  }
  return NULL;
}

static berth_status save_check(const berth_weight_info *w, const berth__onnx_tensor *tensor, berth_error *err) {
  berth_type type;
  BERTH__TRY(berth__onnx_type(tensor->data_type, &type, err));
  bool fits = type == w->type && tensor->rank == w->rank && !tensor->rank_is_too_large;
  uint64_t count = 1;
  for (uint32_t i = 0; i < w->rank && fits; i++)
    fits = tensor->dim[i] == w->dim[i] && berth__mul_u64(count, (uint64_t)w->dim[i], &count);
  if (!fits) return berth__fail(err, BERTH_INVALID, "initializer '%s' has another type or shape", w->name);
  if (berth_storage_bytes(berth_type_storage(type), count) != w->size || (w->data == NULL && w->size != 0))
    return berth__fail(err, BERTH_INVALID, "the data of '%s' is not as large as its shape", w->name);
  return BERTH_OK;
}

static berth_status save_entry(saving *s, pieces *to, const char *key, const char *value, berth_error *err) {
  const size_t k = strlen(key), v = strlen(value);
  uint8_t head[2][20];
  size_t n[2];
  for (int i = 0; i < 2; i++) {
    n[i] = save_varint((uint64_t)(i + 1) << 3 | BERTH__WIRE_BYTES, head[i]);
    n[i] += save_varint(i == 0 ? k : v, head[i] + n[i]);
  }
  BERTH__TRY(save_key(s, to, TENSOR_EXTERNAL, n[0] + k + n[1] + v, err));
  BERTH__TRY(save_made(s, to, head[0], n[0], err));
  BERTH__TRY(save_made(s, to, key, k, err));
  BERTH__TRY(save_made(s, to, head[1], n[1], err));
  return save_made(s, to, value, v, err);
}

/* Writes to the external file, and its location to the message. */
static berth_status save_external(saving *s, pieces *message, const void *data, size_t size, berth_error *err) {
  static const uint8_t zeros[DATA_ALIGN] = {0}, is_external[] = {TENSOR_LOCATION << 3, 1};
  char text[24];
  const size_t padding = (size_t)(-s->data.size % DATA_ALIGN);
  s->has_data = true;
  BERTH__TRY(save_made(s, &s->data, zeros, padding, err));
  BERTH__TRY(save_entry(s, message, "location", s->data_name, err));
  snprintf(text, sizeof text, "%llu", (unsigned long long)s->data.size);
  BERTH__TRY(save_entry(s, message, "offset", text, err));
  snprintf(text, sizeof text, "%zu", size);
  BERTH__TRY(save_entry(s, message, "length", text, err));
  BERTH__TRY(save_bytes(s, &s->data, data, size, err));
  return save_made(s, message, is_external, sizeof is_external, err);
}

/* First the unchanged fields, then the data. */
static berth_status save_message(saving *s, pieces *message, const berth__onnx_tensor *tensor, const void *data,
                                 size_t size, berth_error *err) {
  berth__span rest = tensor->message;
  for (;;) {
    const uint8_t *begin = rest.data;
    berth__field field;
    bool more;
    BERTH__TRY(berth__wire_next(&rest, &field, &more, err));
    if (!more) break;
    if (!save_is_data(field.number)) BERTH__TRY(save_bytes(s, message, begin, (size_t)(rest.data - begin), err));
  }
  if (tensor->is_external) return save_external(s, message, data, size, err);
  BERTH__TRY(save_key(s, message, TENSOR_RAW, size, err));
  return save_bytes(s, message, data, size, err);
}

/* A tensor that changes, or whose data moves. */
static berth_status save_tensor(saving *s, const berth__onnx_tensor *tensor, const berth_weight_info *w,
                                berth_error *err) {
  pieces message = {0};
  berth_type type;
  const void *data = NULL;
  size_t size = 0;
  void *owned = NULL;
  berth_status status = w != NULL ? save_check(w, tensor, err)
                                  : berth__onnx_elements(tensor, &s->files, &type, &data, &size, &owned, err);
  if (status == BERTH_OK && w != NULL) {
    data = w->data;
    size = (size_t)w->size;
  }
  if (status == BERTH_OK) status = save_message(s, &message, tensor, data, size, err);
  if (status == BERTH_OK) status = save_key(s, &s->graph, GRAPH_INITIALIZER, message.size, err);
  for (size_t i = 0; i < message.n && status == BERTH_OK; i++) status = save_piece(s, &s->graph, message.items[i], err);
  berth__free(s->ctx, message.items);
  berth__free(s->ctx, owned); /* external data is never decoded: it stays in its file */
  return status;
}

/* ---- The graph and the model ---- */

static berth_status save_graph(saving *s, berth__span message, berth_error *err) {
  for (;;) {
    const uint8_t *begin = message.data;
    berth__field field;
    berth__onnx_tensor tensor;
    bool more;
    BERTH__TRY(berth__wire_next(&message, &field, &more, err));
    if (!more) return BERTH_OK;
    const berth_weight_info *w = NULL;
    bool changes = false;
    if (field.number == GRAPH_INITIALIZER && field.type == BERTH__WIRE_BYTES) {
      BERTH__TRY(berth__onnx_parse_tensor(field.bytes, &tensor, err));
      w = save_find(s, tensor.name);
      changes = w != NULL || tensor.is_external;
    }
    BERTH__TRY(changes ? save_tensor(s, &tensor, w, err)
                       : save_bytes(s, &s->graph, begin, (size_t)(message.data - begin), err));
  }
}

static berth_status save_model(saving *s, berth__span message, berth_error *err) {
  for (;;) {
    const uint8_t *begin = message.data;
    berth__field field;
    bool more;
    BERTH__TRY(berth__wire_next(&message, &field, &more, err));
    if (!more) break;
    if (field.number != MODEL_GRAPH || field.type != BERTH__WIRE_BYTES) {
      BERTH__TRY(save_bytes(s, &s->model, begin, (size_t)(message.data - begin), err));
      continue;
    }
    s->graph.n = 0;
    s->graph.size = 0;
    BERTH__TRY(save_graph(s, field.bytes, err));
    BERTH__TRY(save_key(s, &s->model, MODEL_GRAPH, s->graph.size, err));
    for (size_t i = 0; i < s->graph.n; i++) BERTH__TRY(save_piece(s, &s->model, s->graph.items[i], err));
  }
  for (uint32_t i = 0; i < s->n_weights; i++)
    if (!s->is_used[i]) return berth__fail(err, BERTH_INVALID, "the model has no initializer '%s'", s->weights[i].name);
  return BERTH_OK;
}

static bool save_has_external(const berth__onnx_graph *graph, bool is_inner) {
  for (size_t i = 0; i < graph->n_initializers && is_inner; i++)
    if (graph->initializers[i].is_external) return true;
  for (size_t n = 0; n < graph->n_nodes; n++)
    for (size_t k = 0; k < graph->nodes[n].n_attrs; k++) {
      const berth__onnx_attr *attr = &graph->nodes[n].attrs[k];
      if (attr->tensor != NULL && attr->tensor->is_external) return true;
      if (attr->graph != NULL && save_has_external(attr->graph, true)) return true;
    }
  return false;
}

/* Nodes and inner graphs are left unchanged, so they must not refer to external data. */
static berth_status save_check_model(berth_context *ctx, const berth__mapping *file, berth_error *err) {
  berth__onnx_model model;
  BERTH__TRY(berth__onnx_parse(ctx, file->data, file->size, &model, err));
  const bool refuses = save_has_external(&model.graph, false);
  berth__onnx_free(&model);
  if (refuses) return berth__fail(err, BERTH_UNSUPPORTED, "a node or an inner graph keeps a tensor in another file");
  return BERTH_OK;
}

/* ---- Files ---- */

static berth_status save_write(const saving *s, const pieces *from, const char *path, berth_error *err) {
  berth__whole file;
  BERTH__TRY(berth__whole_open(s->ctx, path, &file, err));
  for (size_t i = 0; i < from->n; i++) {
    const piece *p = &from->items[i];
    berth__whole_write(&file, p->data != NULL ? p->data : s->made + p->at, p->size);
  }
  berth_status status = berth__file_check(s->file, err); /* missing bytes read as zeros */
  if (status == BERTH_OK) status = berth__onnx_files_check(&s->files, err);
  return berth__whole_close(&file, status, err);
}

/* ---- The path of the external data ---- */

static size_t save_folder(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash != NULL ? (size_t)(slash - path) + 1 : 0;
}

/* Whether a model reads a file, under whatever name. */
static berth_status save_is_read(berth_context *ctx, const char *model, const struct stat *data, bool *is_read,
                                 berth_error *err) {
  berth_model_info *info = NULL;
  berth_status status = BERTH_OK;
  *is_read = false;
  if (access(model, F_OK) != 0 || berth_model_inspect(ctx, model, &info, NULL) != BERTH_OK) return BERTH_OK;
  for (size_t i = 0; i < info->n_files && !*is_read && status == BERTH_OK; i++) {
    struct stat other;
    berth__text name;
    berth__text_init(&name, ctx, NULL, NULL);
    berth__text_add(&name, model, save_folder(model));
    berth__text_add(&name, info->files[i], strlen(info->files[i]));
    status = berth__text_finish(&name, err);
    *is_read = status == BERTH_OK && stat(name.data, &other) == 0 && other.st_dev == data->st_dev &&
               other.st_ino == data->st_ino;
    berth__text_free(&name);
  }
  berth_model_info_destroy(info);
  return status;
}

/* The model with this name stays intact until the new one replaces it, and the model that is read stays unchanged:
 * files that either of them reads are not overwritten. */
static berth_status save_choose_data(saving *s, const char *path, berth__text *out, berth_error *err) {
  for (uint32_t number = 1;; number++) {
    struct stat there;
    bool is_read = false;
    out->size = 0;
    berth__text_printf(out, "%s.data", path);
    if (number > 1) berth__text_printf(out, "%u", number);
    BERTH__TRY(berth__text_finish(out, err));
    if (stat(out->data, &there) != 0) break;
    BERTH__TRY(save_is_read(s->ctx, path, &there, &is_read, err));
    if (!is_read) BERTH__TRY(save_is_read(s->ctx, s->files.model, &there, &is_read, err));
    if (!is_read) break;
  }
  s->data_name = out->data + save_folder(path);
  return BERTH_OK;
}

static berth_status save_files(saving *s, const char *path, berth_error *err) {
  berth__text data_path;
  berth__text_init(&data_path, s->ctx, NULL, NULL);
  berth_status status = save_choose_data(s, path, &data_path, err);
  if (status == BERTH_OK) status = save_model(s, (berth__span){s->file->data, s->file->size}, err);
  if (status == BERTH_OK && s->has_data) status = save_write(s, &s->data, data_path.data, err);
  if (status == BERTH_OK) status = save_write(s, &s->model, path, err);
  berth__text_free(&data_path);
  return status;
}

static berth_status save_mapped(saving *s, const char *path, const berth_weight_info *given, berth_error *err) {
  berth_weight_info *weights = berth__alloc_array(s->ctx, s->n_weights, sizeof *weights);
  s->is_used = berth__alloc_array_zero(s->ctx, s->n_weights, sizeof *s->is_used);
  s->weights = weights;
  berth_status status = weights != NULL && s->is_used != NULL ? BERTH_OK : berth__fail_nomem(err, "writing a model");
  for (uint32_t i = 0; i < s->n_weights && status == BERTH_OK; i++) {
    const char *at = (const char *)given + (size_t)i * given->struct_size;
    weights[i] = (berth_weight_info)BERTH_WEIGHT_INFO_INIT;
    status = BERTH__DESC_COPY(&weights[i], (const berth_weight_info *)(const void *)at, "berth_weight_info", err);
    if (status == BERTH_OK && weights[i].name == NULL) status = berth__fail(err, BERTH_INVALID, "a tensor has no name");
  }
  if (status == BERTH_OK) status = save_check_model(s->ctx, s->file, err);
  if (status == BERTH_OK) status = save_files(s, path, err);
  berth__free(s->ctx, weights);
  berth__free(s->ctx, s->is_used);
  berth__free(s->ctx, s->made);
  berth__free(s->ctx, s->model.items);
  berth__free(s->ctx, s->graph.items);
  berth__free(s->ctx, s->data.items);
  berth__onnx_files_free(&s->files);
  return status;
}

berth_status berth_model_save(berth_context *ctx, const char *model, const char *path, const berth_weight_info *weights,
                              uint32_t n_weights, berth_error *err) {
  berth__mapping file;
  if (ctx == NULL || model == NULL || path == NULL || (weights == NULL && n_weights != 0))
    return berth__fail(err, BERTH_INVALID, "berth_model_save needs a context, two paths and tensors");
  BERTH__TRY(berth__file_map(model, &file, err));
  saving s = {.ctx = ctx, .n_weights = n_weights, .files = {.ctx = ctx, .model = model}, .file = &file};
  berth_status status = save_mapped(&s, path, weights, err);
  if (status != BERTH_OK) status = berth__fail_within(err, status, "%s", model);
  berth__file_unmap(&file);
  return status;
}
