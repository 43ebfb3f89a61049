/* Computing a node at compile time: if its operands are constants, so are its results. */
#include "base/math.h"
#include "base/memory.h"
#include "graph/graph.h"

#define MAX_FOLDED ((uint64_t)1 << 30)  /* of all nodes: larger results are better computed at run time than stored */
#define MIN_COUNTED ((uint64_t)1 << 20) /* smaller results are not counted */
#define MAX_SPREAD 65536                /* a constant broadcast to more than this is better expressed by strides */

berth_tensor berth__value_tensor(const berth__value *value, const void *data) {
  berth_tensor tensor = {.data = (void *)(uintptr_t)data, .type = value->type, .rank = value->shape.rank};
  memcpy(tensor.dim, value->shape.dim, sizeof tensor.dim);
  berth__contiguous_strides(tensor.rank, tensor.dim, tensor.stride);
  return tensor;
}

/* Whether one more result may be stored. A few bytes of a file can ask for any number of elements. */
static bool graph_evaluate_has_room(const berth_graph *graph, uint64_t size) {
  if (size < MIN_COUNTED) return true;
  if (size > MAX_FOLDED || graph->folded > MAX_FOLDED - size) return false;
  return berth__memory_check(graph->ctx, graph->folded + size, "folding", BERTH_NOMEM, NULL) == BERTH_OK;
}

static bool graph_evaluate_is_known(const berth_graph *graph, const berth__node *node) {
  if (node->op->code == BERTH__OP_CUSTOM || node->op->family->is_random || node->op->family->is_loop) return false;
  for (uint32_t i = 0; i < node->n_in; i++) {
    if (node->in[i] == BERTH_VALUE_NONE) continue;
    const berth__value *operand = &graph->values[node->in[i]];
    int64_t count;
    const bool has_shape = berth__shape_count(&operand->shape, &count) && operand->bounded == 0;
    if (berth__op_reads_shape_only(node->op) ? !has_shape : operand->blob == NULL) return false;
  }
  const uint64_t most = node->op->code == BERTH__OP_expand ? MAX_SPREAD : MAX_FOLDED;
  uint64_t total = 0;
  for (uint32_t i = 0; i < node->n_out; i++) {
    uint64_t size;
    if (!berth__value_size(&graph->values[node->out[i]], &size) || size > most) return false;
    total = total > MAX_FOLDED ? total : total + size;
  }
  return graph_evaluate_has_room(graph, total);
}

static berth_status graph_evaluate_run_kernel(const berth_graph *graph, const berth__node *node, const berth_tensor *in,
                                              const berth_tensor *out, berth_error *err) {
  const berth__family *family = node->op->family;
  berth_op_call call = {.struct_size = (uint32_t)sizeof call,
                        .in = in,
                        .out = out,
                        .n_in = node->n_in,
                        .n_out = node->n_out,
                        .attrs = node->attrs,
                        .n_attrs = family->n_attrs,
                        .user = berth__op_user(node->op)};
  uint64_t scratch = family->scratch != NULL ? family->scratch(&call) : 0;
  unsigned char *memory = NULL;
  if (scratch != 0) {
    if (scratch > SIZE_MAX - 64 || (memory = berth__alloc(graph->ctx, (size_t)scratch + 64)) == NULL)
      return berth__fail_nomem(err, "folding a constant");
    call.scratch = memory + (64 - (uintptr_t)memory % 64) % 64;
  }
  call.end = berth__op_items(node->op, &call);
  berth_status status = call.end > 0 ? family->kernel(&call, err) : BERTH_OK;
  berth__free(graph->ctx, memory);
  return status;
}

berth_status berth__graph_compute(const berth_graph *graph, const berth__node *node, const berth_tensor *in,
                                  berth__blob **blobs, berth_error *err) {
  berth_tensor *out = berth__alloc_array_zero(graph->ctx, node->n_out, sizeof *out);
  berth_status status = out != NULL ? BERTH_OK : berth__fail_nomem(err, "folding a constant");
  for (uint32_t i = 0; status == BERTH_OK && i < node->n_out; i++) {
    uint64_t size = 0;
    berth__value_size(&graph->values[node->out[i]], &size);
    blobs[i] = berth__blob_create(graph->ctx, NULL, size);
    if (blobs[i] == NULL)
      status = berth__fail_nomem(err, "folding a constant");
    else
      out[i] = berth__value_tensor(&graph->values[node->out[i]], berth__blob_data(blobs[i]));
  }
  if (status == BERTH_OK) status = graph_evaluate_run_kernel(graph, node, in, out, err);
  berth__free(graph->ctx, out);
  return status;
}

berth_status berth__graph_evaluate(berth_graph *graph, uint32_t index, berth_error *err) {
  const berth__node *node = &graph->nodes[index];
  if (graph->values[node->out[0]].blob != NULL || !graph_evaluate_is_known(graph, node)) return BERTH_OK;
  berth__blob **blobs = berth__alloc_array_zero(graph->ctx, node->n_out, sizeof *blobs);
  berth_tensor *in = berth__alloc_array_zero(graph->ctx, node->n_in, sizeof *in);
  berth_status status = BERTH_NOMEM;
  for (uint32_t i = 0; in != NULL && i < node->n_in; i++)
    if (node->in[i] != BERTH_VALUE_NONE)
      in[i] = berth__value_tensor(&graph->values[node->in[i]], graph->values[node->in[i]].data);
  if (blobs != NULL && in != NULL) status = berth__graph_compute(graph, node, in, blobs, err);
  for (uint32_t i = 0; blobs != NULL && i < node->n_out; i++) {
    if (status != BERTH_OK) {
      berth__blob_release(blobs[i]);
      continue;
    }
    graph->values[node->out[i]].blob = blobs[i];
    graph->values[node->out[i]].data = berth__blob_data(blobs[i]);
    uint64_t size = 0;
    if (berth__value_size(&graph->values[node->out[i]], &size) && size >= MIN_COUNTED) graph->folded += size;
  }
  berth__free(graph->ctx, blobs);
  berth__free(graph->ctx, in);
  if (status == BERTH_NOMEM) return berth__fail_nomem(err, "folding a constant");
  return BERTH_OK; /* a kernel that refuses its operands reports it when it runs */
}

#define MAX_SMALL 65536 /* bytes: shapes, conditions and trip counts depend on small values */

static bool graph_evaluate_is_small(const berth_graph *graph, const berth__node *node) {
  for (uint32_t i = 0; i < node->n_out; i++) {
    uint64_t size;
    if (!berth__value_size(&graph->values[node->out[i]], &size) || size > MAX_SMALL) return false;
  }
  return true;
}

berth_status berth__graph_evaluate_small(berth_graph *graph, uint32_t node, berth_error *err) {
  return graph_evaluate_is_small(graph, &graph->nodes[node]) ? berth__graph_evaluate(graph, node, err) : BERTH_OK;
}

#define MAX_NODES_ON_DEMAND 512

/* Depth first, and at most `budget` nodes: a file may cause this in every round of a loop that is unrolled. */
static berth_status graph_evaluate_compute(berth_graph *graph, berth_value value, unsigned *budget, berth_error *err) {
  if (graph->values[value].kind != BERTH_VALUE_NODE || graph->values[value].blob != NULL || *budget == 0)
    return BERTH_OK;
  const uint32_t index = graph->values[value].node;
  const berth__node *node = &graph->nodes[index];
  if (!graph_evaluate_is_small(graph, node)) return BERTH_OK;
  --*budget;
  for (uint32_t i = 0; i < node->n_in && !berth__op_reads_shape_only(node->op); i++) {
    if (node->in[i] == BERTH_VALUE_NONE) continue;
    BERTH__TRY(graph_evaluate_compute(graph, node->in[i], budget, err));
    if (graph->values[node->in[i]].blob == NULL) return BERTH_OK;
  }
  return berth__graph_evaluate(graph, index, err);
}

berth_status berth__graph_evaluate_value(berth_graph *graph, berth_value value, berth_error *err) {
  unsigned budget = MAX_NODES_ON_DEMAND;
  return graph_evaluate_compute(graph, value, &budget, err);
}
