#include "outputs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "elements.h"
#include "format.h"

int output_read(berth_session *session, uint32_t index, output *out) {
  const berth_graph *graph = berth_plan_graph(berth_session_plan(session));
  berth_value_info info = BERTH_VALUE_INFO_INIT;
  berth_error err = {BERTH_OK, ""};
  if (berth_graph_value(graph, berth_graph_output_at(graph, index), &info, &err) != BERTH_OK) return cli_report(&err);
  out->name = berth_graph_output_name(graph, index);
  berth_array *array = &out->array;
  array->type = info.type;
  if (berth_session_output_shape(session, index, &array->rank, array->dim, &err) != BERTH_OK) return cli_report(&err);
  array->size = berth_type_size(info.type);
  for (uint32_t i = 0; i < array->rank; i++) array->size *= (uint64_t)array->dim[i];
  array->data = malloc((size_t)array->size + 1);
  if (!array->data) return cli_no_memory();
  berth_status status = berth_session_read_at(session, index, array->data, (size_t)array->size, &err);
  return status == BERTH_OK ? CLI_OK : cli_report(&err);
}

int outputs_read(runner *r, outputs *out) {
  const berth_graph *graph = berth_plan_graph(berth_session_plan(r->session));
  uint32_t n = berth_graph_n_outputs(graph);
  *out = (outputs){calloc(n + 1, sizeof(*out->items)), n};
  if (!out->items) return cli_no_memory();
  int code = CLI_OK;
  for (uint32_t i = 0; i < n && code == CLI_OK; i++) code = output_read(r->session, i, &out->items[i]);
  return code;
}

static char *file_path(const char *folder, const char *name) {
  static const char kept[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
  size_t start = strlen(folder) + 1, size = start + strlen(name) + sizeof(".npy");
  char *path = malloc(size);
  if (!path) return NULL;
  snprintf(path, size, "%s/%s.npy", folder, name);
  for (char *c = path + start; *c; c++) {
    if (!strchr(kept, *c)) *c = '_';
  }
  return path;
}

/* Two names may map to the same file name; no file is better than the wrong one. */
static int name_files(const char *folder, outputs *set) {
  for (uint32_t i = 0; i < set->n; i++) {
    set->items[i].file = file_path(folder, set->items[i].name);
    if (!set->items[i].file) return cli_no_memory();
    for (uint32_t k = 0; k < i; k++) {
      if (strcmp(set->items[k].file, set->items[i].file) != 0) continue;
      return cli_failed("the outputs '%s' and '%s' would both be written to %s", set->items[k].name, set->items[i].name,
                        set->items[i].file);
    }
  }
  return CLI_OK;
}

static int save_array(berth_context *ctx, const char *path, const berth_array *array) {
  berth_error err = {BERTH_OK, ""};
  return berth_npy_save(ctx, path, array, &err) == BERTH_OK ? CLI_OK : cli_report(&err);
}

/* .npy has no bf16, but f32 can represent every bf16 value. */
static int save_widened(berth_context *ctx, const output *out) {
  size_t count = (size_t)out->array.size / 2;
  const uint16_t *narrow = out->array.data;
  float *wide = malloc(count * sizeof(*wide) + 1);
  if (!wide) return cli_no_memory();
  for (size_t i = 0; i < count; i++) wide[i] = element_from_bf16(narrow[i]);
  berth_array array = out->array;
  array.type = BERTH_F32;
  array.data = wide;
  array.size = count * sizeof(*wide);
  cli_note("output '%s' is bf16, which .npy does not have: %s holds it as f32", out->name, out->file);
  int code = save_array(ctx, out->file, &array);
  free(wide);
  return code;
}

int outputs_save(const runner *r, const char *folder, outputs *set) {
  int code = name_files(folder, set);
  if (code != CLI_OK) return code;
  if (mkdir(folder, 0777) != 0 && errno != EEXIST) return cli_failed("cannot make %s: %s", folder, strerror(errno));
  for (uint32_t i = 0; i < set->n && code == CLI_OK; i++) {
    const output *out = &set->items[i];
    code = out->array.type == BERTH_BF16 ? save_widened(r->model.ctx, out)
                                         : save_array(r->model.ctx, out->file, &out->array);
  }
  return code;
}

static int state_read(berth_session *session, uint32_t index, output *out) {
  const berth_graph *graph = berth_plan_graph(berth_session_plan(session));
  berth_value_info info = BERTH_VALUE_INFO_INIT;
  berth_error err = {BERTH_OK, ""};
  if (berth_graph_value(graph, berth_graph_state_at(graph, index), &info, &err) != BERTH_OK) return cli_report(&err);
  out->name = info.name;
  out->array = (berth_array){.type = info.type, .rank = info.shape.rank, .size = info.size};
  for (uint32_t i = 0; i < info.shape.rank; i++) out->array.dim[i] = info.shape.dim[i].extent;
  out->array.data = malloc((size_t)info.size + 1);
  if (!out->array.data) return cli_no_memory();
  berth_status status = berth_session_state_read(session, info.name, out->array.data, (size_t)info.size, &err);
  return status == BERTH_OK ? CLI_OK : cli_report(&err);
}

int states_read(berth_session *session, outputs *out) {
  uint32_t n = berth_graph_n_states(berth_plan_graph(berth_session_plan(session)));
  outputs_close(out);
  *out = (outputs){calloc(n + 1, sizeof(*out->items)), n};
  if (!out->items) return cli_no_memory();
  int code = CLI_OK;
  for (uint32_t i = 0; i < n && code == CLI_OK; i++) code = state_read(session, i, &out->items[i]);
  return code;
}

void outputs_print(const char *label, const outputs *set) {
  for (uint32_t i = 0; i < set->n; i++) {
    const output *out = &set->items[i];
    char shape[FORMAT_SIZE], summary[FORMAT_SIZE];
    size_t count = (size_t)out->array.size / berth_type_size(out->array.type);
    element_summary numbers = element_summarise(out->array.type, out->array.data, count);
    printf("%s %s: %s%s  %s\n", label, out->name, berth_type_name(out->array.type),
           format_extents(out->array.rank, out->array.dim, shape), format_summary(&numbers, summary));
    if (out->file) printf("  written to %s\n", out->file);
  }
}

void outputs_write_json(const char *key, const outputs *set, json *out) {
  json_open_array(out, key);
  for (uint32_t i = 0; i < set->n; i++) {
    const output *item = &set->items[i];
    json_open_object(out, NULL);
    json_string(out, "name", item->name);
    json_string(out, "dtype", berth_type_name(item->array.type));
    json_ints(out, "shape", item->array.rank, item->array.dim);
    json_string(out, "file", item->file);
    json_close_object(out);
  }
  json_close_array(out);
}

void outputs_close(outputs *set) {
  for (uint32_t i = 0; i < set->n && set->items; i++) {
    free(set->items[i].array.data);
    free(set->items[i].file);
  }
  free(set->items);
  *set = (outputs){NULL, 0};
}
