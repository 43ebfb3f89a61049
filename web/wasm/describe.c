/* Graphs, plans and devices as JSON. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "exports.h"
#include "least.h"
#include "ranges.h"
#include "work.h"

static json text = JSON_INIT;

json *web_text_begin(void) {
  json_free(&text);
  return &text;
}

const char *web_text_finish(void) {
  json_end(&text);
  if (!text.failed) return text.text;
  web_error = (berth_error){.status = BERTH_NOMEM, .message = "there is no room for a description"};
  return NULL;
}

/* ---- Devices -------------------------------------------------------------------------------------------------- */

const char *berth_web_devices(void) {
  web_text_begin();
  json_open_array(&text, NULL);
  const uint32_t n = berth_device_count(web_context);
  for (uint32_t i = 0; i < n; i++) {
    berth_device_info info = BERTH_DEVICE_INFO_INIT;
    if (berth_device_at(web_context, i, &info, &web_error) != BERTH_OK) return NULL;
    json_open_object(&text, NULL);
    json_string(&text, "name", info.name);
    json_string(&text, "description", info.description);
    json_bool(&text, "available", info.available != 0);
    json_string(&text, "reason", info.reason != NULL ? info.reason : "");
    json_close_object(&text);
  }
  json_close_array(&text);
  return web_text_finish();
}

/* ---- Graphs --------------------------------------------------------------------------------------------------- */

static const char *name_of(const berth_graph *graph, berth_value value) {
  berth_value_info info = BERTH_VALUE_INFO_INIT;
  return berth_graph_value(graph, value, &info, &web_error) == BERTH_OK ? info.name : "";
}

static void put_names(const char *key, const berth_graph *graph, const berth_value *values, uint32_t n) {
  json_open_array(&text, key);
  for (uint32_t i = 0; i < n; i++)
    json_string(&text, NULL, values[i] != BERTH_VALUE_NONE ? name_of(graph, values[i]) : "");
  json_close_array(&text);
}

static void put_dim(const berth_dim *dim) {
  if (dim->name != NULL)
    json_string(&text, NULL, dim->name);
  else
    json_int(&text, NULL, dim->extent);
}

static void put_shape(const berth_shape *shape) {
  json_open_array(&text, "shape");
  for (uint32_t i = 0; i < shape->rank; i++) put_dim(&shape->dim[i]);
  json_close_array(&text);
}

/* Valid elements of an input. */
static void put_range(const berth_graph *graph, berth_value value) {
  const range r = ranges_of(graph, value);
  if (r.below != INT64_MAX) json_int(&text, "below", r.below);
  if (r.has_value) json_int(&text, "value", r.value);
}

/* name NULL: the value's own. */
static bool put_tensor(const berth_graph *graph, berth_value value, const char *name) {
  berth_value_info info = BERTH_VALUE_INFO_INIT;
  if (berth_graph_value(graph, value, &info, &web_error) != BERTH_OK) return false;
  json_open_object(&text, NULL);
  json_string(&text, "name", name != NULL ? name : info.name);
  json_string(&text, "type", berth_type_name(info.type));
  put_shape(&info.shape);
  if (info.kind == BERTH_VALUE_INPUT) put_range(graph, value);
  json_close_object(&text);
  return true;
}

static bool put_ends(const berth_graph *graph) {
  json_open_array(&text, "inputs");
  for (uint32_t i = 0; i < berth_graph_n_inputs(graph); i++)
    if (!put_tensor(graph, berth_graph_input_at(graph, i), NULL)) return false;
  json_close_array(&text);
  json_open_array(&text, "outputs");
  for (uint32_t i = 0; i < berth_graph_n_outputs(graph); i++)
    if (!put_tensor(graph, berth_graph_output_at(graph, i), berth_graph_output_name(graph, i))) return false;
  json_close_array(&text);
  return true;
}

const char *berth_web_describe(const web_graph *described) {
  const berth_graph *graph = web_graph_of(described);
  web_text_begin();
  json_open_object(&text, NULL);
  json_string(&text, "name", berth_graph_name(graph));
  if (!put_ends(graph)) return NULL;
  json_open_array(&text, "dims");
  for (uint32_t i = 0; i < berth_graph_n_dims(graph); i++) json_string(&text, NULL, berth_graph_dim_name(graph, i));
  json_close_array(&text);
  json_open_array(&text, "toFix");
  for (uint32_t i = 0; i < berth_graph_n_inputs(graph); i++) {
    const berth_value input = berth_graph_input_at(graph, i);
    if (berth_graph_shapes_depend(graph, input) == BERTH_SHAPES_NEED) json_string(&text, NULL, name_of(graph, input));
  }
  json_close_array(&text);
  json_uint(&text, "nNodes", berth_graph_n_nodes(graph));
  json_close_object(&text);
  return web_text_finish();
}

static void put_list(const berth_attr *attr) {
  json_open_array(&text, attr->name);
  for (uint32_t i = 0; i < attr->count; i++) {
    if (attr->kind == BERTH_ATTR_INTS) json_int(&text, NULL, attr->ints[i]);
    if (attr->kind == BERTH_ATTR_FLOATS) json_double(&text, NULL, attr->floats[i]);
    if (attr->kind == BERTH_ATTR_DIMS) put_dim(&attr->dims[i]);
  }
  json_close_array(&text);
}

static void put_attr(const berth_attr *attr) {
  switch (attr->kind) {
    case BERTH_ATTR_INT: json_int(&text, attr->name, attr->i); break;
    case BERTH_ATTR_FLOAT: json_double(&text, attr->name, attr->f); break;
    case BERTH_ATTR_STRING: json_string(&text, attr->name, attr->s); break;
    default: put_list(attr); break;
  }
}

static bool put_node(const berth_graph *graph, uint32_t index) {
  berth_node_info node = BERTH_NODE_INFO_INIT;
  if (berth_graph_node(graph, index, &node, &web_error) != BERTH_OK) return false;
  json_open_object(&text, NULL);
  json_string(&text, "name", node.name);
  json_string(&text, "op", node.op);
  put_names("in", graph, node.in, node.n_in);
  put_names("out", graph, node.out, node.n_out);
  json_open_object(&text, "attrs");
  for (uint32_t i = 0; i < node.n_attrs; i++) put_attr(&node.attrs[i]);
  json_close_object(&text);
  json_close_object(&text);
  return true;
}

static bool put_graph(const berth_graph *graph) {
  json_open_array(&text, "nodes");
  for (uint32_t i = 0; i < berth_graph_n_nodes(graph); i++)
    if (!put_node(graph, i)) return false;
  json_close_array(&text);
  json_open_array(&text, "outputs");
  for (uint32_t i = 0; i < berth_graph_n_outputs(graph); i++) {
    json_open_object(&text, NULL);
    json_string(&text, "name", berth_graph_output_name(graph, i));
    json_string(&text, "value", name_of(graph, berth_graph_output_at(graph, i)));
    json_close_object(&text);
  }
  json_close_array(&text);
  json_open_array(&text, "values");
  for (berth_value v = 0; v < berth_graph_n_values(graph); v++)
    if (!put_tensor(graph, v, NULL)) return false;
  json_close_array(&text);
  return true;
}

const char *berth_web_describe_nodes(const web_graph *described, const berth_dim *dims, size_t n_dims) {
  const berth_graph *graph = web_graph_of(described);
  berth_graph *bound = NULL;
  if (n_dims != 0 && berth_graph_bind(graph, dims, n_dims, &bound, &web_error) != BERTH_OK) return NULL;
  web_text_begin();
  json_open_object(&text, NULL);
  const bool whole = put_graph(bound != NULL ? bound : graph);
  berth_graph_destroy(bound);
  json_close_object(&text);
  return whole ? web_text_finish() : NULL;
}

/* With these dimensions if possible, otherwise with the smallest. */
static berth_graph *bind_somehow(const berth_graph *graph, berth_dim *dims, size_t n_dims) {
  berth_graph *bound = NULL;
  if (berth_graph_bind(graph, dims, n_dims, &bound, &web_error) == BERTH_OK) return bound;
  bool *is_free = malloc(n_dims + 1);
  if (is_free == NULL) return NULL;
  memset(is_free, true, n_dims);
  if (least_dims(graph, dims, n_dims, is_free)) berth_graph_bind(graph, dims, n_dims, &bound, &web_error);
  free(is_free);
  return bound;
}

const char *berth_web_guess(const web_graph *guessed, berth_dim *dims, size_t n_dims) {
  berth_graph *bound = bind_somehow(web_graph_of(guessed), dims, n_dims);
  if (bound == NULL) return NULL;
  web_text_begin();
  json_open_object(&text, NULL);
  json_open_object(&text, "dims");
  for (size_t i = 0; i < n_dims; i++) json_int(&text, dims[i].name, dims[i].extent);
  json_close_object(&text);
  const bool is_whole = put_ends(bound);
  json_close_object(&text);
  berth_graph_destroy(bound);
  return is_whole ? web_text_finish() : NULL;
}

const char *berth_web_describe_bound(const berth_plan *plan) {
  web_text_begin();
  json_open_object(&text, NULL);
  if (!put_ends(berth_plan_graph(plan))) return NULL;
  json_close_object(&text);
  return web_text_finish();
}

/* ---- Plans ---------------------------------------------------------------------------------------------------- */

static const char *kind_of(const berth_graph *graph, berth_value value, const berth_value_info *info) {
  for (uint32_t i = 0; i < berth_graph_n_outputs(graph); i++)
    if (berth_graph_output_at(graph, i) == value) return "output";
  switch (info->kind) {
    case BERTH_VALUE_INPUT: return "input";
    case BERTH_VALUE_PARAM: return "param";
    case BERTH_VALUE_CONSTANT: return "constant";
    case BERTH_VALUE_STATE: return "state";
    default: return "value";
  }
}

static const char *op_of(const berth_graph *graph, const berth_value_info *info) {
  berth_node_info node = BERTH_NODE_INFO_INIT;
  if (info->kind != BERTH_VALUE_NODE || berth_graph_node(graph, info->node, &node, &web_error) != BERTH_OK) return "";
  return node.op;
}

static void put_offset(uint64_t offset) {
  if (offset == BERTH_OFFSET_NONE)
    json_int(&text, "offset", -1);
  else
    json_uint(&text, "offset", offset);
}

static bool put_value(const berth_plan *plan, berth_value value) {
  const berth_graph *graph = berth_plan_graph(plan);
  berth_value_info info = BERTH_VALUE_INFO_INIT;
  berth_slot slot = BERTH_SLOT_INIT;
  if (berth_graph_value(graph, value, &info, &web_error) != BERTH_OK) return false;
  if (info.kind == BERTH_VALUE_DROPPED) return true;
  if (berth_plan_slot(plan, value, &slot, &web_error) != BERTH_OK) return false;
  json_open_object(&text, NULL);
  json_string(&text, "name", info.name);
  json_string(&text, "kind", kind_of(graph, value, &info));
  json_string(&text, "type", berth_type_name(info.type));
  put_shape(&info.shape);
  json_string(&text, "op", op_of(graph, &info));
  put_offset(slot.offset);
  json_uint(&text, "size", slot.size);
  json_uint(&text, "birth", slot.birth);
  json_uint(&text, "death", slot.death);
  json_string(&text, "shares", slot.root != value ? name_of(graph, slot.root) : "");
  json_close_object(&text);
  return true;
}

/* The scratch of a step. */
static bool put_scratch(const berth_plan *plan, uint32_t step) {
  const berth_graph *graph = berth_plan_graph(plan);
  berth_node_info node = BERTH_NODE_INFO_INIT;
  berth_slot slot = BERTH_SLOT_INIT;
  if (berth_plan_scratch(plan, step, &slot, &web_error) != BERTH_OK) return false;
  if (slot.size == 0) return true;
  if (berth_graph_node(graph, berth_plan_step_node(plan, step), &node, &web_error) != BERTH_OK) return false;
  json_open_object(&text, NULL);
  json_string(&text, "name", name_of(graph, node.out[0]));
  json_string(&text, "kind", "scratch");
  json_string(&text, "type", "u8");
  json_open_array(&text, "shape");
  json_uint(&text, NULL, slot.size);
  json_close_array(&text);
  json_string(&text, "op", node.op);
  put_offset(slot.offset);
  json_uint(&text, "size", slot.size);
  json_uint(&text, "birth", slot.birth);
  json_uint(&text, "death", slot.death);
  json_string(&text, "shares", "");
  json_close_object(&text);
  return true;
}

/* The operands, results, kernel and work of a step. */
static bool put_step(const berth_plan *plan, const berth_step_info *step) {
  berth_node_info node = BERTH_NODE_INFO_INIT;
  const berth_graph *graph = berth_plan_graph(plan);
  if (berth_graph_node(graph, step->node, &node, &web_error) != BERTH_OK) return false;
  const work done = work_of_node(graph, plan, &node);
  json_open_object(&text, NULL);
  json_string(&text, "op", node.op);
  json_string(&text, "name", node.name);
  json_bool(&text, "once", step->is_prelude != 0);
  json_string(&text, "kernel", step->kernel);
  put_names("in", graph, node.in, node.n_in);
  put_names("out", graph, node.out, node.n_out);
  json_double(&text, "flops", done.flops);
  json_uint(&text, "bytes", done.bytes);
  json_close_object(&text);
  return true;
}

static bool put_steps(const berth_plan *plan, uint32_t n) {
  berth_step_info *steps = calloc((size_t)n + 1, sizeof *steps);
  bool ok = steps != NULL;
  if (!ok) web_error = (berth_error){.status = BERTH_NOMEM, .message = "there is no room for a description"};
  if (ok) steps[0] = (berth_step_info)BERTH_STEP_INFO_INIT;
  ok = ok && berth_plan_steps(plan, steps, n, &n, &web_error) == BERTH_OK;
  json_open_array(&text, "steps");
  for (uint32_t i = 0; ok && i < n; i++) ok = put_step(plan, &steps[i]);
  json_close_array(&text);
  free(steps);
  return ok;
}

/* The names are those of `berth plan --json`. */
void web_text_report(const berth_plan_info *info) {
  json_uint(&text, "arena_size", info->arena_size);
  json_uint(&text, "weights_size", info->weights_size);
  json_uint(&text, "state_size", info->state_size);
  json_uint(&text, "activations_size", info->activations_size);
  json_uint(&text, "activations_lower_bound", info->activations_lower_bound);
  json_uint(&text, "scratch_size", info->scratch_size);
  json_uint(&text, "preparation_size", info->preparation_size);
  json_uint(&text, "preparation_peak", info->preparation_peak);
  json_uint(&text, "total_unshared", info->total_unshared);
  json_uint(&text, "saved", info->saved);
  json_bool(&text, "optimal", info->optimal != 0);
  json_bool(&text, "order_optimal", info->order_optimal != 0);
  json_uint(&text, "n_values", info->n_values);
  json_uint(&text, "n_buffers", info->n_buffers);
  json_uint(&text, "n_steps", info->n_steps);
  json_uint(&text, "pack_nodes", info->pack_nodes);
  json_uint(&text, "n_recomputed", info->n_recomputed);
  json_uint(&text, "n_split", info->n_split);
  json_uint(&text, "n_slices", info->n_slices);
}

const char *berth_web_describe_plan(const berth_plan *plan) {
  berth_plan_info info = BERTH_PLAN_INFO_INIT;
  berth_plan_get_info(plan, &info, NULL);
  web_text_begin();
  json_open_object(&text, NULL);
  json_open_object(&text, "report");
  web_text_report(&info);
  json_close_object(&text);
  json_open_array(&text, "values");
  for (berth_value v = 0; v < berth_graph_n_values(berth_plan_graph(plan)); v++)
    if (!put_value(plan, v)) return NULL;
  for (uint32_t step = 0; step < info.n_steps; step++)
    if (!put_scratch(plan, step)) return NULL;
  json_close_array(&text);
  if (!put_steps(plan, info.n_steps)) return NULL;
  json_close_object(&text);
  return web_text_finish();
}

static berth_status append(void *user, const char *bytes, size_t size) {
  (void)user;
  json_raw(&text, bytes, size);
  return text.failed ? BERTH_NOMEM : BERTH_OK;
}

const char *berth_web_report(const berth_plan *plan, uint32_t kind) {
  web_text_begin();
  if (berth_plan_report(plan, (berth_report_kind)kind, append, NULL, &web_error) != BERTH_OK) return NULL;
  return web_text_finish();
}
