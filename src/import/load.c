/* Loading a graph from a file or from memory, and inspecting a file. The content decides which format it is. */
#include "graph/graph.h"
#include "import/format.h"

#include "base/desc.h"

/* An empty file matches every format that is recognised by name, and is broken in each. */
static berth_status import_load_check_size(const char *path, const berth__mapping *file, berth_error *err) {
  if (path == NULL || file->size != 0) return BERTH_OK;
  return berth__fail(err, BERTH_MALFORMED, "%s is empty", path);
}

static berth_status import_load_check(const berth__format *format, const berth__load *in, berth_error *err) {
  BERTH__TRY(import_load_check_size(in->path, in->file, err));
  if (format == NULL || format->load == NULL) return berth__format_refuse(format, in->path, "a graph", err);
  if (in->n_dims == 0 || format->fixes_dims) return BERTH_OK;
  return berth__fail(err, BERTH_UNSUPPORTED,
                     "%s%sthe dimensions of %s are given when it is planned, not when it is loaded",
                     in->path != NULL ? in->path : "", in->path != NULL ? ": " : "", format->description);
}

/* Takes ownership of the file, also on failure. */
static berth_status import_load(const berth__load *in, berth_graph **out, berth_error *err) {
  const berth__format *format = berth__format_find(in->file, in->path);
  const berth_status status = import_load_check(format, in, err);
  if (status != BERTH_OK) {
    berth__file_unmap(in->file);
    return status;
  }
  BERTH__TRY(format->load(in, out, err));
  const berth_status now = berth__graph_check_files(*out, err); /* they must not have shrunk while they were read */
  if (now != BERTH_OK) {
    berth_graph_destroy(*out);
    *out = NULL;
  }
  return now;
}

static berth_status import_load_check_dims(const berth_load_desc *desc, berth_error *err) {
  if (desc->dims == NULL && desc->n_dims != 0)
    return berth__fail(err, BERTH_INVALID, "dimensions are counted but not given");
  for (size_t i = 0; i < desc->n_dims; i++) {
    const berth_dim *dim = &desc->dims[i];
    if (dim->name == NULL) return berth__fail(err, BERTH_INVALID, "dimension %zu has no name", i);
    if (dim->extent < 0)
      return berth__fail(err, BERTH_INVALID, "dimension '%s' is given as %lld; an extent is 0 or more", dim->name,
                         (long long)dim->extent);
    for (size_t k = 0; k < i; k++)
      if (strcmp(desc->dims[k].name, dim->name) == 0)
        return berth__fail(err, BERTH_INVALID, "dimension '%s' is given twice", dim->name);
  }
  return BERTH_OK;
}

static berth_status attach_file(berth_graph *graph, const char *path, berth_error *err) {
  berth_weights *weights = NULL;
  BERTH__TRY(berth_weights_open(graph->ctx, path, &weights, err));
  berth_status status = berth_graph_attach(graph, weights, err);
  if (status != BERTH_OK) berth__fail_within(err, status, "%s", path);
  berth_weights_destroy(weights); /* the graph keeps what it uses */
  return status;
}

/* A graph from a file, of which it takes ownership, with what the descriptor adds. */
static berth_status import_load_described(berth_context *ctx, const char *path, berth__mapping *file,
                                          const berth_load_desc *desc, berth_graph **out, berth_error *err) {
  const berth__load in = {.ctx = ctx,
                          .path = path,
                          .file = file,
                          .kv = desc->kv,
                          .dims = desc->dims,
                          .n_dims = desc->n_dims,
                          .has_weights = desc->weights != NULL};
  BERTH__TRY(import_load(&in, out, err));
  const berth_status status = desc->weights != NULL ? attach_file(*out, desc->weights, err) : BERTH_OK;
  if (status != BERTH_OK) {
    berth_graph_destroy(*out);
    *out = NULL;
  }
  return status;
}

berth_status berth_graph_load_with(berth_context *ctx, const char *path, const berth_load_desc *desc, berth_graph **out,
                                   berth_error *err) {
  berth_load_desc full = BERTH_LOAD_DESC_INIT;
  berth__mapping file;
  if (out == NULL) return berth__fail(err, BERTH_INVALID, "berth_graph_load needs a pointer to store the graph");
  *out = NULL;
  if (ctx == NULL || path == NULL)
    return berth__fail(err, BERTH_INVALID, "berth_graph_load needs a context and a path");
  BERTH__TRY(BERTH__DESC_COPY(&full, desc, "berth_load_desc", err));
  BERTH__TRY(import_load_check_dims(&full, err));
  if (full.file_size != 0) return berth__fail(err, BERTH_INVALID, "file_size is for graphs from memory");
  BERTH__TRY(berth__file_map(path, &file, err));
  return import_load_described(ctx, path, &file, &full, out, err);
}

berth_status berth_graph_load(berth_context *ctx, const char *path, berth_graph **out, berth_error *err) {
  return berth_graph_load_with(ctx, path, NULL, out, err);
}

/* Memory instead of a file. Only a GGUF file may be partial. */
static berth_status import_load_memory(berth__mapping *memory, uint64_t file_size, berth_error *err) {
  if (memory->data == NULL) memory->data = (const uint8_t *)"";
  if (file_size == 0 || file_size == memory->size) return BERTH_OK;
  if (file_size < memory->size)
    return berth__fail(err, BERTH_INVALID, "a file of %llu bytes cannot begin with %zu", (unsigned long long)file_size,
                       memory->size);
  if (!berth__gguf_probe(memory->data, memory->size))
    return berth__fail(err, BERTH_UNSUPPORTED, "only a GGUF file can be read from its beginning alone");
  memory->whole = file_size;
  return BERTH_OK;
}

berth_status berth_graph_from_memory_with(berth_context *ctx, const void *data, size_t size, berth_release_fn release,
                                          void *user, const berth_load_desc *desc, berth_graph **out,
                                          berth_error *err) {
  berth_load_desc full = BERTH_LOAD_DESC_INIT;
  berth__mapping memory = {.data = data, .size = size, .released = release, .user = user};
  berth_status status = BERTH_OK;
  if (out != NULL) *out = NULL;
  if (out == NULL || ctx == NULL || (data == NULL && size > 0))
    status = berth__fail(err, BERTH_INVALID,
                         "berth_graph_from_memory needs a context, data and a pointer to store the graph");
  if (status == BERTH_OK) status = BERTH__DESC_COPY(&full, desc, "berth_load_desc", err);
  if (status == BERTH_OK) status = import_load_check_dims(&full, err);
  if (status == BERTH_OK) status = import_load_memory(&memory, full.file_size, err);
  if (status == BERTH_OK) return import_load_described(ctx, NULL, &memory, &full, out, err);
  berth__file_unmap(&memory);
  return status;
}

berth_status berth_graph_from_memory(berth_context *ctx, const void *data, size_t size, berth_release_fn release,
                                     void *user, berth_graph **out, berth_error *err) {
  return berth_graph_from_memory_with(ctx, data, size, release, user, NULL, out, err);
}

/* ---- Inspecting a file ---- */

static berth_status inspect(berth_context *ctx, const char *path, const berth__mapping *file, berth_model_info **out,
                            berth_error *err) {
  berth__summary *summary;
  BERTH__TRY(import_load_check_size(path, file, err));
  const berth__format *format = berth__format_find(file, path);
  if (format == NULL || format->inspect == NULL) return berth__format_refuse(format, path, "anything to show", err);
  BERTH__TRY(berth__summary_create(ctx, format->name, &summary, err));
  summary->path = path;
  berth_status status = format->inspect(summary, file, err);
  if (status == BERTH_OK) status = berth__file_check(file, err);
  if (status != BERTH_OK) {
    berth_model_info_destroy(&summary->info);
    return path != NULL ? berth__fail_within(err, status, "%s", path) : status;
  }
  berth__summary_finish(summary);
  *out = &summary->info;
  return BERTH_OK;
}

berth_status berth_model_inspect(berth_context *ctx, const char *path, berth_model_info **out, berth_error *err) {
  berth__mapping file;
  if (out == NULL) return berth__fail(err, BERTH_INVALID, "berth_model_inspect needs a pointer to store what it finds");
  *out = NULL;
  if (ctx == NULL || path == NULL)
    return berth__fail(err, BERTH_INVALID, "berth_model_inspect needs a context and a path");
  BERTH__TRY(berth__file_map(path, &file, err));
  const berth_status status = inspect(ctx, path, &file, out, err);
  berth__file_unmap(&file);
  return status;
}

berth_status berth_model_inspect_memory(berth_context *ctx, const void *data, size_t size, uint64_t file_size,
                                        berth_model_info **out, berth_error *err) {
  berth__mapping memory = {.data = data, .size = size};
  if (out != NULL) *out = NULL;
  if (out == NULL || ctx == NULL || (data == NULL && size > 0))
    return berth__fail(err, BERTH_INVALID,
                       "berth_model_inspect_memory needs a context, data and a pointer to store a result");
  BERTH__TRY(import_load_memory(&memory, file_size, err));
  return inspect(ctx, NULL, &memory, out, err);
}
