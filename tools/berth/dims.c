#include "dims.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "least.h"

static const char from_option[] = "--dim";

static berth_dim *tool_dims_find(berth_dim *items, size_t n, const char *name, size_t length) {
  for (size_t i = 0; i < n; i++)
    if (strlen(items[i].name) == length && memcmp(items[i].name, name, length) == 0) return &items[i];
  return NULL;
}

static int unknown_name(const dims *set, const char *name, size_t length) {
  char known[256] = "";
  size_t used = 0;
  for (size_t i = 0; i < set->n && used + 2 < sizeof(known); i++) {
    int n = snprintf(known + used, sizeof(known) - used, "%s%s", i ? ", " : "", set->items[i].name);
    used += n > 0 ? (size_t)n : 0;
  }
  cli_usage("the model has no named dimension '%.*s'", (int)length, name);
  if (set->n) {
    cli_hint("it has %s", known);
  } else {
    cli_hint("all of its shapes are fixed");
  }
  return CLI_USAGE;
}

/* Splits an option NAME=N; false: that is not what it is, which has been said. */
static bool tool_dims_split(const char *text, size_t *length, uint64_t *extent) {
  const char *value;
  if (!args_split(text, length, &value)) {
    cli_usage("--dim takes NAME=N, not '%s'", text);
    return false;
  }
  if (args_parse_count(value, false, extent) && *extent <= INT64_MAX) return true;
  cli_usage("--dim %.*s takes a whole number, not '%s'", (int)*length, text, value);
  return false;
}

static int tool_dims_read_option(dims *set, const char *text) {
  size_t length;
  uint64_t extent;
  if (!tool_dims_split(text, &length, &extent)) return CLI_USAGE;
  berth_dim *dim = tool_dims_find(set->items, set->n, text, length);
  if (!dim && tool_dims_find(set->fixed, set->n_fixed, text, length)) return CLI_OK;
  if (!dim) return unknown_name(set, text, length);
  if (set->origin[dim - set->items] == from_option) return cli_usage("dimension '%s' is given twice", dim->name);
  dim->extent = (int64_t)extent;
  set->origin[dim - set->items] = from_option;
  return CLI_OK;
}

int dims_read(const arg_list *options, berth_dim **out) {
  size_t room = options->n * sizeof(**out), used = 0;
  for (size_t i = 0; i < options->n; i++) room += strlen(options->items[i]) + 1;
  berth_dim *made = malloc(room + 1);
  char *names = (char *)(made + options->n); /* behind the array, in the same block */
  *out = NULL;
  if (!made) return cli_no_memory();
  for (size_t i = 0; i < options->n; i++) {
    size_t length;
    uint64_t extent;
    if (!tool_dims_split(options->items[i], &length, &extent)) {
      free(made);
      return CLI_USAGE;
    }
    memcpy(names + used, options->items[i], length);
    names[used + length] = '\0';
    made[i] = (berth_dim){names + used, (int64_t)extent};
    used += length + 1;
  }
  *out = made;
  return CLI_OK;
}

int dims_open(const berth_graph *graph, const arg_list *options, berth_dim *fixed, dims *out) {
  size_t n = berth_graph_n_dims(graph);
  *out = (dims){.items = calloc(n + 1, sizeof(*out->items)),
                .origin = calloc(n + 1, sizeof(*out->origin)),
                .n = n,
                .fixed = fixed,
                .n_fixed = fixed ? options->n : 0};
  if (!out->items || !out->origin) {
    dims_close(out);
    return cli_no_memory();
  }
  for (size_t i = 0; i < n; i++) out->items[i] = (berth_dim){berth_graph_dim_name(graph, (uint32_t)i), -1};
  int code = CLI_OK;
  for (size_t i = 0; i < options->n && code == CLI_OK; i++) code = tool_dims_read_option(out, options->items[i]);
  return code;
}

void dims_close(dims *set) {
  free(set->items);
  free((void *)set->origin);
  free(set->fixed);
  *set = (dims){.n = 0};
}

int dims_infer(dims *set, const char *name, int64_t extent, const char *input) {
  berth_dim *dim = tool_dims_find(set->items, set->n, name, strlen(name));
  if (!dim) return CLI_OK; /* depends on other dimensions: the library checks it */
  const char **origin = &set->origin[dim - set->items];
  if (dim->extent < 0) {
    cli_note("%s=%" PRId64 ", from the shape of input '%s'", name, extent, input);
    dim->extent = extent;
    *origin = input;
    return CLI_OK;
  }
  if (dim->extent == extent) return CLI_OK;
  return cli_failed("dimension '%s' is %" PRId64 " in the array for input '%s', but %" PRId64 " by %s%s%s", name,
                    extent, input, dim->extent, *origin == from_option ? "" : "input '", *origin,
                    *origin == from_option ? "" : "'");
}

int dims_check_option(const dims *set, const char *name, const char *option, uint64_t extent) {
  const berth_dim *dim = tool_dims_find(set->items, set->n, name, strlen(name));
  if (!dim || dim->extent < 0 || (uint64_t)dim->extent == extent) return CLI_OK;
  const char *origin = set->origin[dim - set->items];
  if (origin == from_option)
    return cli_usage("--%s %" PRIu64 " and --dim %s=%" PRId64 " contradict each other: leave one of them out", option,
                     extent, name, dim->extent);
  return cli_usage("--%s %" PRIu64 " contradicts the array for input '%s', where '%s' is %" PRId64, option, extent,
                   origin, name, dim->extent);
}

void dims_default(dims *set, const berth_graph *graph) {
  bool *is_free = calloc(set->n + 1, sizeof(*is_free));
  size_t n_free = 0;
  for (size_t i = 0; i < set->n; i++) {
    if (set->items[i].extent >= 0) continue;
    set->items[i].extent = 1;
    n_free++;
    if (is_free) is_free[i] = true;
  }
  if (is_free && n_free) (void)least_dims(graph, set->items, set->n, is_free);
  for (size_t i = 0; i < set->n && is_free; i++) {
    if (!is_free[i]) continue;
    const char *name = set->items[i].name;
    if (set->items[i].extent == 1)
      cli_note("dimension '%s' is not given and becomes 1; --dim %s=N sets it", name, name);
    else
      cli_note("dimension '%s' is not given and becomes %" PRId64
               ", the least that the model takes; --dim %s=N sets it",
               name, set->items[i].extent, name);
  }
  free(is_free);
}

void dims_write_json(const dims *set, json *out) {
  json_open_object(out, "dims");
  for (size_t i = 0; i < set->n; i++) json_int(out, set->items[i].name, set->items[i].extent);
  for (size_t i = 0; i < set->n_fixed; i++) json_int(out, set->fixed[i].name, set->fixed[i].extent);
  json_close_object(out);
}
