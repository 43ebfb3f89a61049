#include "generation.h"

#include <inttypes.h>
#include <stdio.h>

#include "format.h"

int generation_made_with(berth_context *ctx, const char *path, uint64_t *out) {
  berth_model_info *info = NULL;
  berth_error err = {BERTH_OK, ""};
  *out = 0;
  if (berth_model_inspect(ctx, path, &info, &err) != BERTH_OK) return cli_report(&err);
  *out = generation_context(info);
  berth_model_info_destroy(info);
  return CLI_OK;
}

int generation_check_dims(const model *m, uint64_t ctx, uint64_t chunk) {
  int code = ctx != 0 ? dims_check_option(&m->dims, "ctx", "ctx", ctx) : CLI_OK;
  if (code == CLI_OK && chunk != 0) code = dims_check_option(&m->dims, "rows", "chunk", chunk);
  if (code == CLI_OK && generation_dim(m, "near", 0) != 0)
    code = cli_usage("the dimension near follows from --ctx and --chunk: leave it out");
  return code;
}

uint64_t generation_dim(const model *m, const char *name, uint64_t option) {
  for (size_t i = 0; option == 0 && i < m->dims.n; i++)
    if (strcmp(m->dims.items[i].name, name) == 0 && m->dims.items[i].extent > 0)
      option = (uint64_t)m->dims.items[i].extent;
  return option;
}

void generation_print(const generation *plans, const char *kv) {
  char bytes[FORMAT_SIZE], state[FORMAT_SIZE];
  const berth_plan_info reading = cli_plan_info(plans->reading), writing = cli_plan_info(plans->writing);
  printf("context: %" PRId64 " token%s of keys and values as %s, %s bytes a token\n", plans->ctx,
         cli_plural((uint64_t)plans->ctx), kv, format_count(reading.state_size / (uint64_t)plans->ctx, state));
  if (plans->near)
    printf("layers with a sliding window keep %" PRId64 " row%s\n", plans->near, cli_plural((uint64_t)plans->near));
  printf("text is read %" PRId64 " token%s at a time; one token alone takes %s of activations and scratch\n",
         plans->chunk, cli_plural((uint64_t)plans->chunk),
         format_bytes(writing.activations_size + writing.scratch_size, bytes));
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
