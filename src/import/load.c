/* Loading a model from a file or from memory: what it is shows in its content. */
#include "import/onnx/load.h"
#include "base/file.h"
#include "graph/graph.h"

/* The weights file that a text graph names lies beside it, unless the name is absolute. */
static berth_status beside(berth_context *ctx, const char *path, const char *name, char **out, berth_error *err) {
  const char *slash = strrchr(path, '/');
  size_t folder = name[0] == '/' || slash == NULL ? 0 : (size_t)(slash - path) + 1;
  char *joined = berth__alloc(ctx, folder + strlen(name) + 1);
  *out = joined;
  if (joined == NULL) return berth__fail_nomem(err, "a path");
  memcpy(joined, path, folder);
  memcpy(joined + folder, name, strlen(name) + 1);
  return BERTH_OK;
}

static berth_status attach_named_weights(berth_graph *graph, const char *path, berth_error *err) {
  berth_weights *weights = NULL;
  char *file = NULL;
  berth_status status = beside(graph->ctx, path, graph->weights_path, &file, err);
  if (status == BERTH_OK) status = berth_weights_open(graph->ctx, file, &weights, err);
  if (status == BERTH_OK) {
    status = berth_graph_attach(graph, weights, err);
    if (status != BERTH_OK) berth__fail_within(err, status, "%s", file);
  }
  berth_weights_destroy(weights);
  berth__free(graph->ctx, file);
  return status;
}

/* Text up to the first character that is not white space or a comment. */
static bool looks_like_text_graph(const berth__mapping *file) {
  static const char word[] = "graph";
  size_t i = 0;
  while (i < file->size) {
    if (file->data[i] == '#')
      while (i < file->size && file->data[i] != '\n') i++;
    else if (file->data[i] == ' ' || file->data[i] == '\t' || file->data[i] == '\r' || file->data[i] == '\n')
      i++;
    else
      break;
  }
  return file->size - i > sizeof word - 1 && memcmp(file->data + i, word, sizeof word - 1) == 0;
}

/* A ModelProto has no magic number; those in the world begin with their IR version, field 1. */
static bool looks_like_onnx(const berth__mapping *file, const char *path) {
  size_t length = path != NULL ? strlen(path) : 0;
  bool is_named_so = length > 5 && strcmp(path + length - 5, ".onnx") == 0;
  return is_named_so || (file->size > 2 && file->data[0] == 0x08 && file->data[1] < 0x40);
}

static berth_status load_text(berth_context *ctx, const char *path, berth__mapping *file, berth_graph **out,
                              berth_error *err) {
  berth_status status = berth_graph_parse(ctx, (const char *)file->data, file->size, out, err);
  berth__file_unmap(file);
  if (path == NULL) return status;
  if (status != BERTH_OK) return berth__fail_within(err, status, "%s", path);
  if ((*out)->weights_path != NULL) status = attach_named_weights(*out, path, err);
  if (status != BERTH_OK) {
    berth_graph_destroy(*out);
    *out = NULL;
  }
  return status;
}

/* Takes over the file, also on failure. path NULL: it is memory. */
static berth_status load(berth_context *ctx, const char *path, berth__mapping *file, berth_graph **out,
                         berth_error *err) {
  if (looks_like_text_graph(file)) return load_text(ctx, path, file, out, err);
  if (looks_like_onnx(file, path)) return berth__onnx_load(ctx, path, file, out, err);
  berth__file_unmap(file);
  return berth__fail(err, BERTH_UNSUPPORTED,
                     "%s%sthis is not a format that berth reads a graph from (ONNX, text graphs)",
                     path != NULL ? path : "", path != NULL ? ": " : "");
}

berth_status berth_graph_load(berth_context *ctx, const char *path, berth_graph **out, berth_error *err) {
  berth__mapping file;
  if (out == NULL) return berth__fail(err, BERTH_INVALID, "berth_graph_load needs a place for the graph");
  *out = NULL;
  if (ctx == NULL || path == NULL)
    return berth__fail(err, BERTH_INVALID, "berth_graph_load needs a context and a path");
  BERTH__TRY(berth__file_map(path, &file, err));
  return load(ctx, path, &file, out, err);
}

berth_status berth_graph_from_memory(berth_context *ctx, const void *data, size_t size, berth_release_fn release,
                                     void *user, berth_graph **out, berth_error *err) {
  berth__mapping memory = {.data = data, .size = size, .released = release, .user = user};
  if (out != NULL) *out = NULL;
  if (out == NULL || ctx == NULL || (data == NULL && size > 0)) {
    berth__file_unmap(&memory);
    return berth__fail(err, BERTH_INVALID, "berth_graph_from_memory needs a context, data and a place for the graph");
  }
  if (data == NULL) memory.data = (const uint8_t *)"";
  return load(ctx, NULL, &memory, out, err);
}
