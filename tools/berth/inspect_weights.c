#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "format.h"
#include "inspect.h"
#include "json.h"

enum {
  n_types = 16
};

typedef struct totals {
  uint64_t count[n_types], bytes[n_types]; /* by type */
  uint64_t all_bytes;
  uint64_t n_metadata;
} totals;

static int tool_inspect_weights_read_metadata(berth_context *ctx, const char *path, totals *sums) {
  berth_model_info *info = NULL;
  berth_error err = {BERTH_OK, ""};
  if (berth_model_inspect(ctx, path, &info, &err) != BERTH_OK) return cli_report(&err);
  sums->n_metadata = info->n_metadata;
  berth_model_info_destroy(info);
  return CLI_OK;
}

static int tool_inspect_weights_sum_up(const berth_weights *weights, totals *sums) {
  for (uint32_t i = 0; i < berth_weights_count(weights); i++) {
    berth_weight_info info = BERTH_WEIGHT_INFO_INIT;
    berth_error err = {BERTH_OK, ""};
    if (berth_weights_at(weights, i, &info, &err) != BERTH_OK) return cli_report(&err);
    sums->count[info.type % n_types]++;
    sums->bytes[info.type % n_types] += info.size;
    sums->all_bytes += info.size;
  }
  return CLI_OK;
}

static int tool_inspect_weights_print_json(const char *path, const berth_weights *weights, const totals *sums) {
  json out = JSON_INIT;
  uint32_t n = berth_weights_count(weights);
  json_open_object(&out, NULL);
  json_string(&out, "format", "safetensors");
  json_string(&out, "file", path);
  json_uint(&out, "n_tensors", n);
  json_uint(&out, "bytes", sums->all_bytes);
  json_uint(&out, "n_metadata", sums->n_metadata);
  json_open_object(&out, "types");
  for (int t = 0; t < n_types; t++) {
    if (!sums->count[t]) continue;
    json_open_object(&out, berth_type_name((berth_type)t));
    json_uint(&out, "count", sums->count[t]);
    json_uint(&out, "bytes", sums->bytes[t]);
    json_close_object(&out);
  }
  json_close_object(&out);
  json_open_array(&out, "tensors");
  for (uint32_t i = 0; i < n; i++) {
    berth_weight_info info = BERTH_WEIGHT_INFO_INIT;
    if (berth_weights_at(weights, i, &info, NULL) != BERTH_OK) continue;
    json_open_object(&out, NULL);
    json_string(&out, "name", info.name);
    json_string(&out, "dtype", berth_type_name(info.type));
    json_ints(&out, "shape", info.rank, info.dim);
    json_uint(&out, "bytes", info.size);
    json_close_object(&out);
  }
  json_close_array(&out);
  json_close_object(&out);
  return json_print(&out);
}

static void tool_inspect_weights_print_text(const char *path, const berth_weights *weights, const totals *sums) {
  char shape[FORMAT_SIZE], bytes[FORMAT_SIZE];
  uint32_t n = berth_weights_count(weights);
  printf("%s: safetensors, %u tensor%s, %s, %llu metadata entr%s\n", path, n, cli_plural(n),
         format_bytes(sums->all_bytes, bytes), (unsigned long long)sums->n_metadata,
         sums->n_metadata == 1 ? "y" : "ies");
  for (uint32_t i = 0; i < n; i++) {
    berth_weight_info info = BERTH_WEIGHT_INFO_INIT;
    if (berth_weights_at(weights, i, &info, NULL) != BERTH_OK) continue;
    printf("  %-40s %-5s %-20s %12s\n", info.name, berth_type_name(info.type),
           format_extents(info.rank, info.dim, shape), format_short_bytes(info.size, bytes));
  }
  for (int t = 0; t < n_types; t++) {
    if (!sums->count[t]) continue;
    printf("total %s: %llu tensor%s, %s\n", berth_type_name((berth_type)t), (unsigned long long)sums->count[t],
           cli_plural(sums->count[t]), format_bytes(sums->bytes[t], bytes));
  }
}

int inspect_weights(berth_context *ctx, const char *path, bool as_json) {
  berth_weights *weights = NULL;
  berth_error err = {BERTH_OK, ""};
  totals sums;
  memset(&sums, 0, sizeof(sums));
  if (berth_weights_open(ctx, path, &weights, &err) != BERTH_OK) return cli_report(&err);
  int code = tool_inspect_weights_sum_up(weights, &sums);
  if (code == CLI_OK) code = tool_inspect_weights_read_metadata(ctx, path, &sums);
  if (code == CLI_OK && as_json) code = tool_inspect_weights_print_json(path, weights, &sums);
  if (code == CLI_OK && !as_json) tool_inspect_weights_print_text(path, weights, &sums);
  berth_weights_destroy(weights);
  return code;
}
