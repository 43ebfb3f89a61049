#include "inputs.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "bounds.h"
#include "elements.h"
#include "embedded.h"
#include "format.h"
#include "ranges.h"

static int tool_inputs_value_info(const berth_graph *graph, berth_value value, berth_value_info *out) {
  berth_error err = {BERTH_OK, ""};
  return berth_graph_value(graph, value, out, &err) == BERTH_OK ? CLI_OK : cli_report(&err);
}

/* .npy has no bf16: such inputs are given as f32 and rounded here. */
static int narrow_to_bf16(const model *m, input *in) {
  size_t count = (size_t)in->array.size / sizeof(float);
  const float *wide = in->array.data;
  uint16_t *narrow = malloc(count * sizeof(*narrow) + 1);
  if (!narrow) return cli_no_memory();
  for (size_t i = 0; i < count; i++) narrow[i] = element_to_bf16(wide[i]);
  berth_array array = in->array;
  berth_array_free(m->ctx, &in->array);
  array.type = BERTH_BF16;
  array.data = narrow;
  array.size = count * sizeof(*narrow);
  in->array = array;
  in->own_memory = true;
  return CLI_OK;
}

static int check_type(const model *m, const berth_value_info *info, const char *path, input *in) {
  if (in->array.type == info->type) return CLI_OK;
  if (info->type == BERTH_BF16 && in->array.type == BERTH_F32) return narrow_to_bf16(m, in);
  return cli_failed("input '%s' is %s, but %s holds %s", info->name, berth_type_name(info->type), path,
                    berth_type_name(in->array.type));
}

static int check_shape(model *m, const berth_value_info *info, const char *path, const berth_array *array) {
  char wanted[FORMAT_SIZE], got[FORMAT_SIZE];
  bool fits = array->rank == info->shape.rank;
  for (uint32_t i = 0; i < info->shape.rank && fits; i++) {
    const berth_dim *dim = &info->shape.dim[i];
    fits = dim->name || dim->extent == array->dim[i];
  }
  if (!fits) {
    return cli_failed("input '%s' has the shape %s, but %s holds %s", info->name, format_shape(&info->shape, wanted),
                      path, format_extents(array->rank, array->dim, got));
  }
  int code = CLI_OK;
  for (uint32_t i = 0; i < info->shape.rank && code == CLI_OK; i++) {
    if (info->shape.dim[i].name) code = dims_infer(&m->dims, info->shape.dim[i].name, array->dim[i], info->name);
  }
  return code;
}

static int unknown_input(const berth_graph *graph, const char *name) {
  cli_usage("the model has no input '%s'", name);
  for (uint32_t i = 0; i < berth_graph_n_inputs(graph); i++) {
    berth_value_info info = BERTH_VALUE_INFO_INIT;
    char shape[FORMAT_SIZE];
    if (tool_inputs_value_info(graph, berth_graph_input_at(graph, i), &info) != CLI_OK) break;
    cli_hint("it has '%s', %s%s", info.name, berth_type_name(info.type), format_shape(&info.shape, shape));
  }
  return CLI_USAGE;
}

static int find_input(const berth_graph *graph, const char *name, uint32_t *index) {
  berth_value value = berth_graph_find(graph, name);
  for (uint32_t i = 0; i < berth_graph_n_inputs(graph); i++) {
    if (value == BERTH_VALUE_NONE || berth_graph_input_at(graph, i) != value) continue;
    *index = i;
    return CLI_OK;
  }
  return unknown_input(graph, name);
}

static int tool_inputs_read_file(model *m, const char *name, const char *path, inputs *set) {
  berth_value_info info = BERTH_VALUE_INFO_INIT;
  berth_error err = {BERTH_OK, ""};
  uint32_t index = 0;
  int code = find_input(m->graph, name, &index);
  if (code != CLI_OK) return code;
  input *in = &set->items[index];
  if (in->given) return cli_usage("input '%s' is given twice", name);
  code = tool_inputs_value_info(m->graph, berth_graph_input_at(m->graph, index), &info);
  if (code != CLI_OK) return code;
  if (berth_npy_load(m->ctx, path, &in->array, &err) != BERTH_OK) return cli_report(&err);
  in->given = true;
  code = check_shape(m, &info, path, &in->array);
  return code == CLI_OK ? check_type(m, &info, path, in) : code;
}

static int tool_inputs_read_option(model *m, const char *text, inputs *set) {
  size_t length;
  const char *path;
  if (!args_split(text, &length, &path) || !*path) return cli_usage("--input takes NAME=FILE.npy, not '%s'", text);
  char *name = strndup(text, length);
  if (!name) return cli_no_memory();
  int code = tool_inputs_read_file(m, name, path, set);
  free(name);
  return code;
}

int inputs_read(model *m, const arg_list *options, inputs *out) {
  uint32_t n = berth_graph_n_inputs(m->graph);
  *out = (inputs){calloc(n + 1, sizeof(*out->items)), n};
  if (!out->items) return cli_no_memory();
  int code = CLI_OK;
  for (size_t i = 0; i < options->n && code == CLI_OK; i++) code = tool_inputs_read_option(m, options->items[i], out);
  return code;
}

static int fix_one(model *m, const char *name, const berth_array *array) {
  berth_error err = {BERTH_OK, ""};
  berth_status status =
      berth_graph_fix(m->graph, name, array->type, array->rank, array->dim, array->data, (size_t)array->size, &err);
  if (status != BERTH_OK) return cli_report(&err);
  cli_note("shapes or branches depend on input '%s', so its values are part of the plan", name);
  return CLI_OK;
}

static void free_array(const model *m, input *in) {
  if (in->own_memory) {
    free(in->array.data);
  } else if (in->given) {
    berth_array_free(m->ctx, &in->array);
  }
  *in = (input){.given = false};
}

/* Fixes given inputs on which shapes depend in this way. */
static int fix_those(model *m, inputs *set, berth_shapes depend) {
  uint32_t kept = 0; /* a fixed input is removed from the inputs, and later ones move up */
  for (uint32_t i = 0; i < set->n; i++) {
    input in = set->items[i];
    berth_value_info info = BERTH_VALUE_INFO_INIT;
    berth_value value = berth_graph_input_at(m->graph, kept);
    int code = tool_inputs_value_info(m->graph, value, &info);
    if (code != CLI_OK) return code;
    if (in.given && berth_graph_shapes_depend(m->graph, value) == (int)depend) {
      code = fix_one(m, info.name, &in.array);
      if (code != CLI_OK) return code;
      free_array(m, &set->items[i]);
      continue;
    }
    set->items[i] = (input){.given = false};
    set->items[kept++] = in;
  }
  set->n = kept;
  return CLI_OK;
}

static bool leaves_bounds(const model *m, const inputs *set) {
  for (uint32_t i = 0; i < set->n; i++) {
    int depend = berth_graph_shapes_depend(m->graph, berth_graph_input_at(m->graph, i));
    if (set->items[i].given && depend == BERTH_SHAPES_BOUNDED) return true;
  }
  return false;
}

/* Allocates an array for an input. false: out of memory. */
static bool tool_inputs_make(const berth_value_info *info, input *in) {
  in->array = (berth_array){.type = info->type, .rank = info->shape.rank, .size = info->size};
  for (uint32_t i = 0; i < info->shape.rank; i++) in->array.dim[i] = info->shape.dim[i].extent;
  in->array.data = info->size < SIZE_MAX ? malloc((size_t)info->size + 1) : NULL;
  in->own_memory = in->array.data != NULL;
  return in->own_memory;
}

static void tool_inputs_set(const berth_value_info *info, const range *r, input *in) {
  element_set(info->type, in->array.data, element_count_of(info->type, info->size), (double)r->value);
  cli_note("input '%s' is not given and becomes %" PRId64 ", which the model asks for; --input %s=FILE.npy sets it",
           info->name, r->value, info->name);
}

/* A setting that is required for a plan but was not given gets the value that the model compares it with. */
static int tool_inputs_suppose(const model *m, inputs *set) {
  for (uint32_t i = 0; i < set->n; i++) {
    berth_value_info info = BERTH_VALUE_INFO_INIT;
    const berth_value value = berth_graph_input_at(m->graph, i);
    input *in = &set->items[i];
    if (in->given || berth_graph_shapes_depend(m->graph, value) != BERTH_SHAPES_NEED) continue;
    const range r = ranges_of(m->graph, value);
    const int code = tool_inputs_value_info(m->graph, value, &info);
    if (code != CLI_OK) return code;
    if (!r.has_value) continue;
    if (!tool_inputs_make(&info, in)) return cli_no_memory();
    tool_inputs_set(&info, &r, in);
    in->given = true;
  }
  return CLI_OK;
}

int inputs_fix(model *m, inputs *set, const char *device) {
  int code = tool_inputs_suppose(m, set);
  if (code == CLI_OK) code = fix_those(m, set, BERTH_SHAPES_NEED);
  if (code != CLI_OK || !leaves_bounds(m, set)) return code;
  if (device != NULL && strcmp(device, "cpu") != 0) return fix_those(m, set, BERTH_SHAPES_BOUNDED);
  berth_graph *bound = bounds_try(m->graph, &m->dims);
  bool is_bound = bound != NULL;
  berth_graph_destroy(bound);
  return is_bound ? CLI_OK : fix_those(m, set, BERTH_SHAPES_BOUNDED);
}

int inputs_explain(const berth_graph *graph, const berth_error *err) {
  int code = cli_report(err);
  for (uint32_t i = 0; i < berth_graph_n_inputs(graph); i++) {
    berth_value_info info = BERTH_VALUE_INFO_INIT;
    berth_value value = berth_graph_input_at(graph, i);
    if (!berth_graph_shapes_depend(graph, value) || tool_inputs_value_info(graph, value, &info) != CLI_OK) continue;
    cli_hint("shapes depend on the values of input '%s', so it must be given: --input %s=FILE.npy", info.name,
             info.name);
  }
  return code;
}

/* As many sample digits as the batch has, repeated if necessary. */
static int fill_digits(const model *m, const berth_value_info *info, uint8_t *data) {
  berth_array samples;
  berth_error err = {BERTH_OK, ""};
  berth_status status = berth_npy_parse(m->ctx, berth_digits_samples, berth_digits_samples_size, &samples, &err);
  if (status != BERTH_OK) return cli_report(&err);
  if (samples.type != info->type || samples.size == 0) {
    berth_array_free(m->ctx, &samples);
    return cli_failed("the sample digits in this binary do not fit its model");
  }
  for (uint64_t done = 0; done < info->size;) {
    uint64_t part = info->size - done < samples.size ? info->size - done : samples.size;
    memcpy(data + done, samples.data, (size_t)part);
    done += part;
  }
  berth_array_free(m->ctx, &samples);
  return CLI_OK;
}

/* `plain` may be NULL. */
static range tool_inputs_range(const berth_graph *plain, const char *name) {
  berth_value value = plain ? berth_graph_find(plain, name) : BERTH_VALUE_NONE;
  return value != BERTH_VALUE_NONE ? ranges_of(plain, value) : (range){.below = INT64_MAX};
}

static int fill_one(const model *m, const berth_graph *plain, const berth_value_info *info, input *in) {
  if (!tool_inputs_make(info, in)) return cli_no_memory();
  if (m->built_in) return fill_digits(m, info, in->array.data);
  const range r = tool_inputs_range(plain, info->name);
  if (r.has_value) {
    tool_inputs_set(info, &r, in);
    return CLI_OK;
  }
  element_fill(info->type, in->array.data, element_count_of(info->type, info->size), info->name, 1,
               r.below < ELEMENT_MOST ? (uint32_t)r.below : ELEMENT_MOST);
  cli_note("input '%s' is not given and gets pseudo-random values; --input %s=FILE.npy sets it", info->name,
           info->name);
  return CLI_OK;
}

int inputs_fill(const model *m, const berth_graph *bound, inputs *set) {
  berth_graph *plain = NULL; /* the original graph, because a plan's graph is rewritten */
  int code = CLI_OK;
  if (!m->built_in) berth_graph_bind(m->graph, m->dims.items, m->dims.n, &plain, NULL);
  for (uint32_t i = 0; i < set->n && code == CLI_OK; i++) {
    berth_value_info info = BERTH_VALUE_INFO_INIT;
    if (set->items[i].array.data) continue;
    code = tool_inputs_value_info(bound, berth_graph_input_at(bound, i), &info);
    if (code == CLI_OK) code = fill_one(m, plain, &info, &set->items[i]);
  }
  berth_graph_destroy(plain);
  return code;
}

void inputs_close(const model *m, inputs *set) {
  for (uint32_t i = 0; i < set->n && set->items; i++) free_array(m, &set->items[i]);
  free(set->items);
  *set = (inputs){NULL, 0};
}
