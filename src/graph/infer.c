/* The inference of one node.
 *
 * In a bound graph, extents that are still open depend on elements, such as the number of those that are not zero. Such
 * an extent gets an upper bound and a mark (berth__value.bounded). The mark propagates without support by the ops: a
 * first inference sees the marked extents of its operands as unknown, so every extent that may turn out smaller becomes
 * unknown, too; a second one sees the bounds and computes the bounds of those. */
#include "base/blocks.h"
#include "graph/graph.h"

/* Names in DIMS attributes are dimensions of the graph: add_dims has ensured that. */
static int64_t resolve_dim(const berth__infer *infer, const berth_dim *dim) {
  const berth_graph *graph = infer->graph;
  uint32_t index;
  if (dim->name == NULL) return dim->extent;
  return berth__map_get(&graph->dim_names, dim->name, &index) ? berth__dim_named(index) : BERTH__DIM_UNKNOWN;
}

static const char *dim_name(const berth__infer *infer, int64_t dim) {
  const berth_graph *graph = infer->graph;
  return berth__dim_is_named(dim) ? graph->dims[berth__dim_index(dim)] : "?";
}

static bool graph_infer_is_open(const berth__shape *shape) {
  for (uint32_t i = 0; i < shape->rank; i++)
    if (!berth__dim_is_fixed(shape->dim[i])) return true;
  return false;
}

/* What inference reads and writes. */
typedef struct workspace {
  berth_type *in_type, *out_type;
  berth__shape *in_shape, *out_shape;
  const void **in_data, **in_least, **in_most;
} workspace;

static berth_status graph_infer_reserve(berth_context *ctx, workspace *w, size_t n_in, size_t n_out, berth_error *err) {
  *w = (workspace){.in_type = berth__alloc_array_zero(ctx, n_in, sizeof *w->in_type),
                   .out_type = berth__alloc_array_zero(ctx, n_out, sizeof *w->out_type),
                   .in_shape = berth__alloc_array_zero(ctx, n_in, sizeof *w->in_shape),
                   .out_shape = berth__alloc_array_zero(ctx, n_out, sizeof *w->out_shape),
                   .in_data = berth__alloc_array_zero(ctx, n_in, sizeof *w->in_data),
                   .in_least = berth__alloc_array_zero(ctx, n_in, sizeof *w->in_least),
                   .in_most = berth__alloc_array_zero(ctx, n_in, sizeof *w->in_most)};
  bool ok = w->in_type && w->out_type && w->in_shape && w->out_shape && w->in_data && w->in_least && w->in_most;
  return ok ? BERTH_OK : berth__fail_nomem(err, "inference");
}

static void graph_infer_release(berth_context *ctx, workspace *w) {
  berth__free(ctx, w->in_type);
  berth__free(ctx, w->out_type);
  berth__free(ctx, w->in_shape);
  berth__free(ctx, w->out_shape);
  berth__free(ctx, w->in_data);
  berth__free(ctx, w->in_least);
  berth__free(ctx, w->in_most);
}

static void graph_infer_read_operands(const berth_graph *graph, const berth_value *in, size_t n_in, bool as_bounds,
                                      workspace *w) {
  for (size_t i = 0; i < n_in; i++) {
    if (in[i] == BERTH_VALUE_NONE) continue;
    const berth__value *value = &graph->values[in[i]];
    w->in_type[i] = value->type;
    w->in_shape[i] = value->shape;
    for (uint32_t d = 0; d < value->shape.rank && !as_bounds; d++)
      if (value->bounded >> d & 1u) w->in_shape[i].dim[d] = BERTH__DIM_UNKNOWN;
    if (value->blob != NULL) w->in_data[i] = value->data;
    if (value->low != NULL) w->in_least[i] = berth__blob_data(value->low);
    if (value->high != NULL) w->in_most[i] = berth__blob_data(value->high);
  }
}

static berth_status check_inferred(const workspace *w, size_t n_out, berth_error *err) {
  for (size_t i = 0; i < n_out; i++) {
    berth__value value = {.type = w->out_type[i], .shape = w->out_shape[i]};
    uint64_t size;
    if (berth_type_storage(value.type).bytes == 0) return berth__fail(err, BERTH_INVALID, "result %zu has no type", i);
    if (value.shape.rank > BERTH_MAX_RANK)
      return berth__fail(err, BERTH_INVALID, "result %zu has rank %u, at most %d is supported", i, value.shape.rank,
                         BERTH_MAX_RANK);
    if (!graph_infer_is_open(&value.shape) && !berth__value_size(&value, &size))
      return berth__fail(err, BERTH_INVALID, "the size of result %zu does not fit in 64 bits", i);
  }
  return BERTH_OK;
}

/* The bounds of the open extents. */
static berth_status bound_results(berth__infer *infer, workspace *w, const berth_value *in, berth__value *results,
                                  berth_error *err) {
  graph_infer_read_operands(infer->graph, in, infer->n_in, true, w);
  infer->wants_bounds = true;
  berth_status status = infer->op->family->infer(infer, err);
  if (status == BERTH_OK) status = check_inferred(w, infer->n_out, err);
  if (status != BERTH_OK) return berth__fail_within(err, status, "with the largest extents that its operands can have");
  for (uint32_t i = 0; i < infer->n_out; i++) {
    berth__value *result = &results[i];
    if (w->out_shape[i].rank != result->shape.rank)
      return berth__fail(err, BERTH_UNSUPPORTED, "the rank of result %u depends on extents that only a run knows", i);
    for (uint32_t d = 0; d < result->shape.rank; d++) {
      if (berth__dim_is_fixed(result->shape.dim[d]) || !berth__dim_is_fixed(w->out_shape[i].dim[d])) continue;
      result->shape.dim[d] = w->out_shape[i].dim[d];
      result->bounded |= 1u << d;
    }
  }
  return BERTH_OK;
}

/* Only ops that declare it accept operands in blocks. */
static berth_status check_block_operands(const berth_graph *graph, const berth__op *op, const berth_value *in,
                                         size_t n_in, berth_error *err) {
  for (size_t i = 0; i < n_in; i++) {
    if (in[i] == BERTH_VALUE_NONE || !berth__type_is_block(graph->values[in[i]].type)) continue;
    if (i < 32 && (op->family->takes_blocks >> i & 1u)) continue;
    return berth__fail(err, BERTH_INVALID,
                       "operand %zu, '%s', is %s, whose elements lie in blocks; unpack makes f32 of it", i,
                       graph->values[in[i]].name, berth_type_name(graph->values[in[i]].type));
  }
  return BERTH_OK;
}

/* A registered op's inference allocates, which a run must not do. */
static berth_status graph_infer_check_operands(const berth_graph *graph, const berth__op *op, const berth_value *in,
                                               size_t n_in, berth_error *err) {
  if (op->code != BERTH__OP_CUSTOM) return BERTH_OK;
  for (size_t i = 0; i < n_in; i++)
    if (in[i] != BERTH_VALUE_NONE && graph->values[in[i]].bounded != 0)
      return berth__fail(err, BERTH_UNSUPPORTED,
                         "operand %zu, '%s', has extents that only a run knows, which a registered op cannot take", i,
                         graph->values[in[i]].name);
  return BERTH_OK;
}

static berth_status graph_infer_results(const berth_graph *graph, const berth_value *in, berth__infer *infer,
                                        workspace *w, berth__value *results, berth_error *err) {
  bool has_open = false;
  BERTH__TRY(check_block_operands(graph, infer->op, in, infer->n_in, err));
  BERTH__TRY(graph_infer_check_operands(graph, infer->op, in, infer->n_in, err));
  BERTH__TRY(infer->op->family->infer(infer, err));
  BERTH__TRY(check_inferred(w, infer->n_out, err));
  for (uint32_t i = 0; i < infer->n_out; i++) {
    results[i].type = w->out_type[i];
    results[i].shape = w->out_shape[i];
    results[i].bounded = 0;
    has_open = has_open || graph_infer_is_open(&w->out_shape[i]);
  }
  bool may_bound = graph->is_bound && infer->op->code != BERTH__OP_CUSTOM;
  return has_open && may_bound ? bound_results(infer, w, in, results, err) : BERTH_OK;
}

berth_status berth__graph_infer(const berth_graph *graph, const berth__op *op, const berth_value *in, size_t n_in,
                                const berth_attr *attrs, const char *label, berth__value *results, size_t n_out,
                                berth_error *err) {
  workspace w;
  berth_status status = graph_infer_reserve(graph->ctx, &w, n_in, n_out, err);
  if (status == BERTH_OK) {
    graph_infer_read_operands(graph, in, n_in, false, &w);
    berth__infer infer = {.op = op,
                          .in_type = w.in_type,
                          .in_shape = w.in_shape,
                          .in_data = w.in_data,
                          .in_least = w.in_least,
                          .in_most = w.in_most,
                          .n_in = (uint32_t)n_in,
                          .n_out = (uint32_t)n_out,
                          .attrs = attrs,
                          .out_type = w.out_type,
                          .out_shape = w.out_shape,
                          .resolve = resolve_dim,
                          .dim_name = dim_name,
                          .graph = (void *)(uintptr_t)graph};
    status = graph_infer_results(graph, in, &infer, &w, results, err);
    if (status != BERTH_OK) status = berth__fail_within(err, status, "node '%s' (%s)", label, op->name);
  }
  graph_infer_release(graph->ctx, &w);
  return status;
}
