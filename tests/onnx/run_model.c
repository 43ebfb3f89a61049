#include "run_model.h"

#include <stdlib.h>
#include <string.h>

/* Devices that record a run once want every extent known; the CPU does with the upper bounds of some. Where these
 * follow from single numbers or lists of integers, a user would give them beforehand; where they follow from what is
 * computed with, there would be nothing left to run. */
static bool must_fix(int depend, const berth_array *a, const char *device) {
  const bool takes_bounds = device == NULL || strcmp(device, "cpu") == 0;
  const bool is_list = a->rank == 0 || (a->rank == 1 && (a->type == BERTH_I64 || a->type == BERTH_I32));
  return depend == BERTH_SHAPES_NEED || (depend == BERTH_SHAPES_BOUNDED && !takes_bounds && is_list);
}

static berth_status fix_shape_inputs(berth_graph *graph, run_input *inputs, size_t n, const char *device,
                                     berth_error *err) {
  for (size_t i = 0; i < n; i++) {
    run_input *in = &inputs[i];
    const berth_array *a = &in->array;
    if (!must_fix(berth_graph_shapes_depend(graph, berth_graph_find(graph, in->name)), a, device)) continue;
    berth_status status = berth_graph_fix(graph, in->name, a->type, a->rank, a->dim, a->data, (size_t)a->size, err);
    if (status != BERTH_OK) return status;
    in->is_fixed = true;
  }
  return BERTH_OK;
}

static bool is_bound(const run_dims *dims, const char *name) {
  for (size_t i = 0; i < dims->n; i++)
    if (strcmp(dims->item[i].name, name) == 0) return true;
  return false;
}

static berth_status find_dims(const berth_graph *graph, const run_input *inputs, size_t n, run_dims *dims,
                              berth_error *err) {
  dims->n = 0;
  for (size_t i = 0; i < n; i++) {
    berth_value_info info = BERTH_VALUE_INFO_INIT;
    const berth_array *a = &inputs[i].array;
    berth_status status = berth_graph_value(graph, berth_graph_find(graph, inputs[i].name), &info, err);
    if (status != BERTH_OK) return status;
    for (uint32_t d = 0; d < info.shape.rank && d < a->rank && dims->n < RUN_MAX_DIMS; d++) {
      const char *name = info.shape.dim[d].name;
      if (name != NULL && !is_bound(dims, name)) dims->item[dims->n++] = (berth_dim){name, a->dim[d]};
    }
  }
  return BERTH_OK;
}

berth_status run_again(berth_session *session, const run_input *inputs, size_t n, berth_error *err) {
  for (size_t i = 0; i < n; i++) {
    const berth_array *a = &inputs[i].array;
    berth_status status =
        inputs[i].is_fixed ? BERTH_OK : berth_session_write(session, inputs[i].name, a->data, (size_t)a->size, err);
    if (status != BERTH_OK) return status;
  }
  return berth_session_run(session, err);
}

berth_status run_model(berth_graph *graph, run_input *inputs, size_t n, run_dims *dims, berth_session **session,
                       berth_error *err) {
  berth_plan_desc plan = BERTH_PLAN_DESC_INIT;
  berth_session_desc desc = BERTH_SESSION_DESC_INIT;
  *session = NULL;
  desc.device = getenv("BERTH_TEST_DEVICE");
  berth_status status = fix_shape_inputs(graph, inputs, n, desc.device, err);
  if (status == BERTH_OK) status = find_dims(graph, inputs, n, dims, err);
  if (status != BERTH_OK) return status;
  plan.dims = dims->item;
  plan.n_dims = dims->n;
  desc.plan = &plan;
  status = berth_session_create(graph, &desc, session, err);
  return status == BERTH_OK ? run_again(*session, inputs, n, err) : status;
}
