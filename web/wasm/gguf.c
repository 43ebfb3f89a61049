/* GGUF files from their headers: descriptions, and the memory needed to generate text. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "exports.h"
#include "generation_plan.h"

/* Storage types of a cache. The library decides for every file which are supported. */
static const char *const kinds[] = {"f32", "f16", "bf16", "q8_0"};
enum {
  n_kinds = sizeof kinds / sizeof kinds[0]
};

/* The header's bytes, which all graphs share. */
typedef struct header {
  void *data; /* NULL: still owned by the host */
  uint32_t n_holders;
} header;

struct web_gguf {
  header *bytes;
  berth_model_info *info;
  web_graph *graphs[n_kinds]; /* NULL: not supported */
};

static void header_release(void *user, const void *data, size_t size) {
  header *bytes = user;
  (void)data;
  (void)size;
  if (--bytes->n_holders != 0) return;
  free(bytes->data);
  free(bytes);
}

/* ---- Opening ---- */

static bool gguf_load(web_gguf *g, int kind, const void *data, size_t size, uint64_t file_size) {
  berth_load_desc desc = BERTH_LOAD_DESC_INIT;
  berth_graph *graph = NULL;
  desc.kv = berth_type_from_name(kinds[kind]);
  desc.file_size = file_size;
  g->bytes->n_holders++;
  const berth_status status =
      berth_graph_from_memory_with(web_context, data, size, header_release, g->bytes, &desc, &graph, &web_error);
  if (status == BERTH_UNSUPPORTED && kind != 0) return true; /* every model supports the first one */
  return status == BERTH_OK && (g->graphs[kind] = web_graph_hold(graph, NULL)) != NULL;
}

static bool gguf_read(web_gguf *g, const void *data, size_t size, uint64_t file_size) {
  if (berth_model_inspect_memory(web_context, data, size, file_size, &g->info, &web_error) != BERTH_OK) return false;
  if (strcmp(g->info->format, "gguf") != 0) {
    web_error = (berth_error){BERTH_UNSUPPORTED, "this is not a GGUF file"};
    return false;
  }
  if (!gguf_load(g, 0, data, size, file_size)) return false;
  const int n = generation_is(web_graph_of(g->graphs[0])) ? n_kinds : 1; /* others have no cache */
  for (int kind = 1; kind < n; kind++)
    if (!gguf_load(g, kind, data, size, file_size)) return false;
  return true;
}

web_gguf *berth_web_gguf(void *data, size_t size, uint64_t file_size) {
  web_gguf *g = calloc(1, sizeof *g);
  header *bytes = calloc(1, sizeof *bytes);
  if (g == NULL || bytes == NULL) {
    free(g);
    free(bytes);
    web_error = (berth_error){BERTH_NOMEM, "there is no room for a model"};
    return NULL;
  }
  bytes->n_holders = 1;
  g->bytes = bytes;
  if (!gguf_read(g, data, size, file_size)) {
    berth_web_gguf_close(g);
    return NULL;
  }
  bytes->data = data;
  return g;
}

void berth_web_gguf_close(web_gguf *g) {
  for (int kind = 0; kind < n_kinds; kind++)
    if (g->graphs[kind] != NULL) berth_web_graph_close(g->graphs[kind]);
  berth_model_info_destroy(g->info);
  header_release(g->bytes, NULL, 0);
  free(g);
}

/* ---- Its graphs ---- */

static web_graph *gguf_graph(const web_gguf *g, const char *kv) {
  for (int kind = 0; kind < n_kinds; kind++)
    if (g->graphs[kind] != NULL && strcmp(kinds[kind], kv) == 0) return g->graphs[kind];
  web_error = (berth_error){BERTH_UNSUPPORTED, "there is no cache of this type"};
  return NULL;
}

web_graph *berth_web_gguf_graph(const web_gguf *g, const char *kv) {
  web_graph *graph = gguf_graph(g, kv);
  return graph != NULL ? web_graph_retain(graph) : NULL;
}

/* ---- Description ---- */

/* Bytes of all tensors of a type, if tensor i is the first one of it; otherwise 0. */
static uint64_t gguf_type_bytes(const berth_model_info *info, size_t i) {
  uint64_t bytes = 0;
  for (size_t j = 0; j < info->n_tensors; j++) {
    if (strcmp(info->tensors[j].type, info->tensors[i].type) != 0) continue;
    if (j < i) return 0;
    bytes += info->tensors[j].size;
  }
  return bytes;
}

/* The same default as everywhere; a model without a cache has only the first one. */
static const char *gguf_default_kind(const web_gguf *g) {
  for (int kind = 0; kind < n_kinds; kind++)
    if (g->graphs[kind] != NULL && strcmp(kinds[kind], "f16") == 0) return kinds[kind];
  return kinds[0];
}

/* The rows that layers with a sliding window see; 0: none. */
static int64_t gguf_window(const berth_graph *graph) {
  berth_dim dims[BERTH_GENERATOR_DIMS];
  for (size_t n = berth_generator_dims(graph, INT32_MAX, 1, 1, dims); n-- > 0;)
    if (strcmp(dims[n].name, "near") == 0) return dims[n].extent;
  return 0;
}

const char *berth_web_describe_gguf(const web_gguf *g) {
  const berth_model_info *info = g->info;
  json *text = web_text_begin();
  json_open_object(text, NULL);
  json_string(text, "name", info->name);
  json_string(text, "architecture", info->architecture);
  json_string(text, "tokenizer", info->tokenizer);
  json_bool(text, "hasTemplate", info->chat_template[0] != '\0');
  json_bool(text, "generates", generation_is(web_graph_of(g->graphs[0])));
  json_uint(text, "context", generation_context(info));
  json_int(text, "window", gguf_window(web_graph_of(g->graphs[0])));
  json_uint(text, "nParameters", info->param_elements);
  json_uint(text, "nTensors", info->n_tensors);
  json_open_array(text, "kv");
  for (int kind = 0; kind < n_kinds; kind++)
    if (g->graphs[kind] != NULL) json_string(text, NULL, kinds[kind]);
  json_close_array(text);
  json_string(text, "defaultKv", gguf_default_kind(g));
  json_open_object(text, "types");
  for (size_t i = 0; i < info->n_tensors; i++) {
    const uint64_t bytes = gguf_type_bytes(info, i);
    if (bytes != 0) json_uint(text, info->tensors[i].type, bytes);
  }
  json_close_object(text);
  json_close_object(text);
  return web_text_finish();
}

/* The names are those of `berth plan model.gguf --json`. */
const char *berth_web_gguf_plan(const web_gguf *g, const char *kv, const char *device, uint64_t ctx, uint64_t chunk) {
  berth_plan_desc desc = BERTH_PLAN_DESC_INIT;
  berth_plan_info larger = BERTH_PLAN_INFO_INIT, token = BERTH_PLAN_INFO_INIT;
  generation plans;
  int64_t rows, all;
  const web_graph *graph = gguf_graph(g, kv);
  if (graph == NULL) return NULL;
  desc.device = device;
  generation_sizes(generation_context(g->info), ctx, chunk, &all, &rows);
  if (generation_plan(web_graph_of(graph), &desc, all, rows, &plans, &web_error) != BERTH_OK) return NULL;
  berth_plan_get_info(generation_larger(&plans), &larger, NULL);
  berth_plan_get_info(plans.writing, &token, NULL);
  json *text = web_text_begin();
  json_open_object(text, NULL);
  web_text_report(&larger);
  json_int(text, "ctx", all);
  json_int(text, "chunk", rows);
  json_string(text, "kv", kv);
  if (plans.near != 0) json_int(text, "near", plans.near);
  json_open_object(text, "token");
  json_uint(text, "arena_size", token.arena_size);
  json_uint(text, "activations_size", token.activations_size);
  json_uint(text, "scratch_size", token.scratch_size);
  json_close_object(text);
  json_close_object(text);
  generation_close(&plans);
  return web_text_finish();
}
