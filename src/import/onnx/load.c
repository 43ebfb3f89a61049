/* Loads an ONNX file as a graph. The graph's weights stay where they are in the mapped file. */
#include <stdatomic.h>
#include <stdio.h>

#include "import/format.h"
#include "import/onnx/convert.h"

/* What the weights of a graph point into; shared by the graphs that are bound from it. */
typedef struct source {
  berth_context *ctx;
  atomic_uint references;
  berth__mapping file;
  berth__onnx_files files;
  char *path; /* NULL: it is in memory */
} source;

static void retain(void *object) {
  atomic_fetch_add_explicit(&((source *)object)->references, 1, memory_order_relaxed);
}

static void onnx_load_release(void *object) {
  source *s = object;
  if (atomic_fetch_sub_explicit(&s->references, 1, memory_order_acq_rel) != 1) return;
  berth__onnx_files_free(&s->files);
  berth__file_unmap(&s->file);
  berth__free(s->ctx, s->path);
  berth__free(s->ctx, s);
}

static void onnx_load_rest(void *object, const void *data, size_t size) {
  source *s = object;
  berth__file_release_bytes(&s->file, data, size);
  berth__onnx_files_rest(&s->files, data, size);
}

static berth_status onnx_load_check(void *object, berth_error *err) {
  const source *s = object;
  BERTH__TRY(berth__file_check(&s->file, err));
  return berth__onnx_files_check(&s->files, err);
}

static berth_status source_create(berth_context *ctx, const char *path, berth__mapping *file, source **out,
                                  berth_error *err) {
  source *s = berth__alloc_zero(ctx, sizeof *s);
  char *copy = berth__strdup(ctx, path);
  *out = NULL;
  if (s == NULL || (copy == NULL && path != NULL)) {
    berth__free(ctx, s);
    berth__free(ctx, copy);
    berth__file_unmap(file);
    return berth__fail_nomem(err, "a model");
  }
  s->ctx = ctx;
  atomic_init(&s->references, 1);
  s->file = *file;
  s->path = copy;
  s->files = (berth__onnx_files){.ctx = ctx, .model = copy};
  *out = s;
  return BERTH_OK;
}

static berth_status onnx_load_build(source *s, const berth__load *in, berth_graph **out, berth_error *err) {
  berth__onnx_model model;
  char name[128];
  BERTH__TRY(berth__onnx_parse(s->ctx, s->file.data, s->file.size, &model, err));
  snprintf(name, sizeof name, "%.*s", BERTH__SPAN_TEXT(model.graph.name));
  berth_graph *graph = NULL;
  berth_status status = berth_graph_create(s->ctx, name[0] != '\0' ? name : "onnx", &graph, err);
  const berth__onnx_wanted wanted = {.files = &s->files, .dims = in->dims, .n_dims = in->n_dims};
  berth__keep keep = {
      .object = s, .retain = retain, .release = onnx_load_release, .rest = onnx_load_rest, .check = onnx_load_check};
  if (status == BERTH_OK) status = berth__graph_keep(graph, &keep, err);
  if (status == BERTH_OK) status = berth__onnx_convert(&model, &wanted, graph, err);
  berth__onnx_free(&model);
  if (status != BERTH_OK) {
    berth_graph_destroy(graph);
    return status;
  }
  *out = graph;
  return BERTH_OK;
}

berth_status berth__onnx_load(const berth__load *in, berth_graph **out, berth_error *err) {
  source *s;
  *out = NULL;
  BERTH__TRY(source_create(in->ctx, in->path, in->file, &s, err));
  berth_status status = onnx_load_build(s, in, out, err);
  if (status != BERTH_OK && in->path != NULL && onnx_load_check(s, NULL) == BERTH_OK)
    berth__fail_within(err, status, "%s", in->path);
  else if (status != BERTH_OK && in->path != NULL) { /* the file may have shrunk while it was read */
    const berth_status now = onnx_load_check(s, err);
    if (now != BERTH_OK) status = now;
  }
  onnx_load_release(s);
  return status;
}

/* A ModelProto has no magic number; existing files begin with their IR version, field 1. */
bool berth__onnx_probe(const uint8_t *data, size_t size) { return size > 2 && data[0] == 0x08 && data[1] < 0x40; }
