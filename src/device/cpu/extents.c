/* Extents that are known only during a run.
 *
 * A plan has upper bounds for them, and bytes for those bounds. While the program runs, shape inference is repeated for
 * each node that reads or makes such a value, with the current extents and elements of its operands. That gives the
 * exact shapes of its results, which lie contiguously at the start of their slots. */
#include "device/cpu/cpu.h"

struct berth__extents {
  berth_context *ctx;
  const berth_plan *plan;
  berth__shape *shapes; /* one per value */
  /* Scratch for the inference of any node. */
  berth_type *in_type, *out_type;
  berth__shape *in_shape, *out_shape;
  const void **in_data;
};

static berth_status cpu_extents_reserve(berth__extents *e, berth_error *err) {
  const berth_graph *graph = e->plan->graph;
  size_t n_in = 0, n_out = 0;
  for (size_t n = 0; n < graph->n_nodes; n++) {
    if (graph->nodes[n].n_in > n_in) n_in = graph->nodes[n].n_in;
    if (graph->nodes[n].n_out > n_out) n_out = graph->nodes[n].n_out;
  }
  e->shapes = berth__alloc_array(e->ctx, graph->n_values, sizeof *e->shapes);
  e->in_type = berth__alloc_array(e->ctx, n_in, sizeof *e->in_type);
  e->in_shape = berth__alloc_array(e->ctx, n_in, sizeof *e->in_shape);
  e->in_data = berth__alloc_array(e->ctx, n_in, sizeof *e->in_data);
  e->out_type = berth__alloc_array(e->ctx, n_out, sizeof *e->out_type);
  e->out_shape = berth__alloc_array(e->ctx, n_out, sizeof *e->out_shape);
  if (!e->shapes || !e->in_type || !e->in_shape || !e->in_data || !e->out_type || !e->out_shape)
    return berth__fail_nomem(err, "a program");
  for (size_t v = 0; v < graph->n_values; v++) e->shapes[v] = graph->values[v].shape;
  return BERTH_OK;
}

berth_status berth__extents_create(const berth_plan *plan, berth__extents **out, berth_error *err) {
  bool is_needed = false;
  *out = NULL;
  for (size_t v = 0; v < plan->graph->n_values; v++) is_needed = is_needed || plan->graph->values[v].bounded != 0;
  if (!is_needed) return BERTH_OK;
  berth__extents *e = berth__alloc_zero(plan->ctx, sizeof *e);
  if (e == NULL) return berth__fail_nomem(err, "a program");
  e->ctx = plan->ctx;
  e->plan = plan;
  berth_status status = cpu_extents_reserve(e, err);
  if (status != BERTH_OK) {
    berth__extents_destroy(e);
    return status;
  }
  *out = e;
  return BERTH_OK;
}

void berth__extents_destroy(berth__extents *e) {
  if (e == NULL) return;
  berth__free(e->ctx, e->shapes);
  berth__free(e->ctx, e->in_type);
  berth__free(e->ctx, e->in_shape);
  berth__free(e->ctx, e->in_data);
  berth__free(e->ctx, e->out_type);
  berth__free(e->ctx, e->out_shape);
  berth__free(e->ctx, e);
}

berth__shape *berth__extents_shapes(berth__extents *e) { return e->shapes; }

static void set_extents(berth_tensor *tensor, const berth__shape *shape) {
  memcpy(tensor->dim, shape->dim, sizeof tensor->dim);
  berth__contiguous_strides(tensor->rank, tensor->dim, tensor->stride);
}

static void cpu_extents_read_operands(berth__extents *e, const berth__node *node, berth_tensor *in) {
  for (uint32_t i = 0; i < node->n_in; i++) {
    const bool is_valued = i < 32 && (node->op->family->valued >> i & 1u);
    e->in_type[i] = BERTH_TYPE_NONE;
    e->in_shape[i] = (berth__shape){.rank = 0};
    e->in_data[i] = is_valued ? in[i].data : NULL;
    if (node->in[i] == BERTH_VALUE_NONE) continue;
    e->in_type[i] = in[i].type;
    e->in_shape[i] = e->shapes[node->in[i]];
    if (e->plan->graph->values[node->in[i]].bounded != 0) set_extents(&in[i], &e->in_shape[i]);
  }
}

/* In a bound graph no attribute refers to a name. */
static int64_t resolve(const berth__infer *infer, const berth_dim *dim) {
  (void)infer;
  return dim->name == NULL ? dim->extent : BERTH__DIM_UNKNOWN;
}

static berth_status cpu_extents_check_result(const berth__value *planned, const berth__shape *found, berth_error *err) {
  char has[BERTH__SHAPE_TEXT], expected[BERTH__SHAPE_TEXT];
  bool fits = planned->shape.rank == found->rank;
  for (uint32_t d = 0; fits && d < found->rank; d++) {
    const int64_t extent = found->dim[d], most = planned->shape.dim[d];
    if ((planned->bounded >> d & 1u) && extent > most)
      return berth__fail(err, BERTH_INFEASIBLE,
                         "'%s' has an extent of %lld on axis %u in this run, but at most %lld was planned",
                         planned->name, (long long)extent, d, (long long)most);
    fits = planned->bounded >> d & 1u ? extent >= 0 : extent == most;
  }
  if (fits) return BERTH_OK;
  return berth__fail(err, BERTH_INVALID, "'%s' has the shape %s in this run, but %s was planned", planned->name,
                     berth__shape_text(found, has), berth__shape_text(&planned->shape, expected));
}

static berth_status cpu_extents_infer_results(berth__extents *e, const berth__node *node, const berth_op_call *call,
                                              berth_error *err) {
  berth__infer infer = {.op = node->op,
                        .in_type = e->in_type,
                        .in_shape = e->in_shape,
                        .in_data = e->in_data,
                        .n_in = node->n_in,
                        .n_out = node->n_out,
                        .attrs = node->attrs,
                        .out_type = e->out_type,
                        .out_shape = e->out_shape,
                        .resolve = resolve};
  const berth__family *family = node->op->family;
  BERTH__TRY(family->find != NULL ? family->find(call, e->out_shape, err) : family->infer(&infer, err));
  for (uint32_t i = 0; i < node->n_out; i++)
    BERTH__TRY(cpu_extents_check_result(&e->plan->graph->values[node->out[i]], &e->out_shape[i], err));
  return BERTH_OK;
}

/* What a loop has made of a carried value is what its body reads in the next iteration. */
static void carry_extents(berth__extents *e, const berth__node *node) {
  if (node->op->code != BERTH__OP_loop_end) return;
  const uint32_t n_carried = berth__loop_end_carried(node->n_in, node->n_out);
  for (uint32_t i = 0; i < n_carried; i++)
    e->shapes[node->in[BERTH__LOOP_END_CARRIED + i]] = e->out_shape[BERTH__LOOP_LAST + i];
}

berth_status berth__extents_find(berth__extents *e, const berth__node *node, berth_tensor *tensors,
                                 const berth_op_call *call, berth_error *err) {
  cpu_extents_read_operands(e, node, tensors);
  berth_status status = cpu_extents_infer_results(e, node, call, err);
  if (status != BERTH_OK)
    return berth__fail_within(err, status, "node '%s' (%s)", e->plan->graph->values[node->out[0]].name, node->op->name);
  for (uint32_t i = 0; i < node->n_out; i++) {
    e->shapes[node->out[i]] = e->out_shape[i];
    if (e->plan->graph->values[node->out[i]].bounded != 0) set_extents(&tensors[node->n_in + i], &e->out_shape[i]);
  }
  carry_extents(e, node);
  return BERTH_OK;
}
