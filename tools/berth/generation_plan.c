#include "generation_plan.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

enum {
  most_default_ctx = 4096, /* as documented for berth_generator_desc */
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

uint64_t generation_context(const berth_model_info *info) {
  const size_t n = strlen(info->architecture);
  for (size_t i = 0; i < info->n_keys; i++) {
    const berth_model_key *key = &info->keys[i];
    if (strncmp(key->name, info->architecture, n) == 0 && strcmp(key->name + n, ".context_length") == 0 &&
        !key->is_array)
      return strtoull(key->values[0], NULL, 10);
  }
  return 0;
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

/* As the generator has it: a model with a vector for each position has no more positions than these. */
static berth_status generation_check_context(const berth_graph *model, int64_t ctx, berth_error *err) {
  berth_value_info table = BERTH_VALUE_INFO_INIT;
  const berth_value value = berth_graph_find(model, "position_embd.weight");
  if (value == BERTH_VALUE_NONE || berth_graph_value(model, value, &table, NULL) != BERTH_OK) return BERTH_OK;
  if (ctx <= table.shape.dim[0].extent) return BERTH_OK;
  err->status = BERTH_INVALID;
  snprintf(err->message, sizeof err->message,
           "the model has vectors for %" PRId64 " position%s, and a context of %" PRId64 " tokens has more",
           table.shape.dim[0].extent, cli_plural((uint64_t)table.shape.dim[0].extent), ctx);
  return BERTH_INVALID;
}

berth_status generation_plan(const berth_graph *model, const berth_plan_desc *desc, int64_t ctx, int64_t chunk,
                             generation *out, berth_error *err) {
  berth_layout *layout = NULL;
  berth_graph *graph = NULL;
  *out = (generation){.ctx = ctx, .chunk = chunk};
  berth_status status = generation_check_context(model, ctx, err);
  if (status == BERTH_OK) status = berth_generator_graph(model, desc->device, &graph, err);
  if (status == BERTH_OK) status = generation_plan_rows(graph, desc, out, chunk, NULL, &out->reading, err);
  if (status == BERTH_OK) status = berth_plan_layout(out->reading, &layout, err);
  if (status == BERTH_OK) status = generation_plan_rows(graph, desc, out, 1, layout, &out->writing, err);
  berth_layout_destroy(layout);
  berth_graph_destroy(graph);
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
