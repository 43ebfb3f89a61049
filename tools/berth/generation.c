#include "generation.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format.h"

enum {
  most_default_ctx = 4096, /* as berth_generator_desc says */
  default_chunk = 64
};

static bool generation_has_dim(const berth_graph *graph, const char *name) {
  for (uint32_t i = 0; i < berth_graph_n_dims(graph); i++)
    if (strcmp(berth_graph_dim_name(graph, i), name) == 0) return true;
  return false;
}

bool generation_is(const berth_graph *graph) {
  return generation_has_dim(graph, "rows") && (generation_has_dim(graph, "ctx") || generation_has_dim(graph, "near"));
}

int generation_made_with(berth_context *ctx, const char *path, uint64_t *out) {
  berth_model_info *info = NULL;
  berth_error err = {BERTH_OK, ""};
  *out = 0;
  if (berth_model_inspect(ctx, path, &info, &err) != BERTH_OK) return cli_report(&err);
  const size_t n = strlen(info->architecture);
  for (size_t i = 0; i < info->n_keys; i++) {
    const berth_model_key *key = &info->keys[i];
    if (strncmp(key->name, info->architecture, n) == 0 && strcmp(key->name + n, ".context_length") == 0 &&
        !key->is_array)
      *out = strtoull(key->values[0], NULL, 10);
  }
  berth_model_info_destroy(info);
  return CLI_OK;
}

void generation_sizes(uint64_t made_with, uint64_t ctx, uint64_t chunk, int64_t *out_ctx, int64_t *out_chunk) {
  if (ctx == 0) ctx = made_with != 0 && made_with < most_default_ctx ? made_with : most_default_ctx;
  if (chunk == 0) chunk = default_chunk;
  *out_ctx = ctx < INT32_MAX ? (int64_t)ctx : INT32_MAX;
  *out_chunk = chunk < ctx ? (int64_t)chunk : *out_ctx;
}

static berth_status generation_plan_rows(const berth_graph *graph, const berth_plan_desc *base, generation *sizes,
                                         int64_t rows, const berth_layout *layout, berth_plan **out, berth_error *err) {
  berth_dim bound[BERTH_GENERATOR_DIMS];
  berth_plan_desc desc = *base;
  desc.dims = bound;
  desc.n_dims = berth_generator_dims(graph, (uint32_t)sizes->ctx, (uint32_t)sizes->chunk, (uint32_t)rows, bound);
  desc.layout = layout;
  for (size_t i = 0; i < desc.n_dims; i++)
    if (strcmp(bound[i].name, "near") == 0) sizes->near = bound[i].extent;
  return berth_plan_create(graph, &desc, out, err);
}

berth_status generation_plan(const berth_graph *graph, const berth_plan_desc *desc, int64_t ctx, int64_t chunk,
                             generation *out, berth_error *err) {
  berth_layout *layout = NULL;
  *out = (generation){.ctx = ctx, .chunk = chunk};
  berth_status status = generation_plan_rows(graph, desc, out, chunk, NULL, &out->reading, err);
  if (status == BERTH_OK) status = berth_plan_layout(out->reading, &layout, err);
  if (status == BERTH_OK) status = generation_plan_rows(graph, desc, out, 1, layout, &out->writing, err);
  berth_layout_destroy(layout);
  if (status != BERTH_OK) {
    generation_close(out);
    return status;
  }
  out->arena_size = berth_plan_arena_size(generation_larger(out));
  return BERTH_OK;
}

void generation_close(generation *plans) {
  berth_plan_destroy(plans->reading);
  berth_plan_destroy(plans->writing);
  plans->reading = plans->writing = NULL;
}

const berth_plan *generation_larger(const generation *plans) {
  const bool is_reading = berth_plan_arena_size(plans->reading) >= berth_plan_arena_size(plans->writing);
  return is_reading ? plans->reading : plans->writing;
}

void generation_print(const generation *plans, const char *kv) {
  char bytes[FORMAT_SIZE], state[FORMAT_SIZE];
  const berth_plan_info reading = cli_plan_info(plans->reading), writing = cli_plan_info(plans->writing);
  printf("context: %" PRId64 " tokens of keys and values as %s, %s bytes a token\n", plans->ctx, kv,
         format_count(reading.state_size / (uint64_t)plans->ctx, state));
  if (plans->near) printf("layers with a sliding window keep %" PRId64 " rows\n", plans->near);
  printf("text is read %" PRId64 " tokens at a time; one token alone takes %s of activations and scratch\n",
         plans->chunk, format_bytes(writing.activations_size + writing.scratch_size, bytes));
}

void generation_write_json(const generation *plans, const char *kv, json *out) {
  const berth_plan_info writing = cli_plan_info(plans->writing);
  json_int(out, "ctx", plans->ctx);
  json_int(out, "chunk", plans->chunk);
  json_string(out, "kv", kv);
  if (plans->near) json_int(out, "near", plans->near);
  json_open_object(out, "token");
  json_uint(out, "arena_size", writing.arena_size);
  json_uint(out, "activations_size", writing.activations_size);
  json_uint(out, "scratch_size", writing.scratch_size);
  json_close_object(out);
}
