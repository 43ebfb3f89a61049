/* The storage of elements on a GPU: their own width, except for 64 bits, since kernels have 32. If a plan asks for it
 * (BERTH_PLAN_F32_UNIFORM), four bytes each: floats as f32, signed integers as i32, unsigned ones and bool as u32.
 *
 * If a plan asks for weights as f16 (BERTH_PLAN_F16_WEIGHTS), they take half the memory and bandwidth; sums stay f32. A
 * param is stored so if all its readers are products, convolutions or tables that use it as their weight, or views that
 * pass the whole of it on to such a reader: loads then unpack it, and nothing else is affected. If a plan lets matrix
 * units multiply as bf16 or f16, weights of products and convolutions are stored in that type, since they would be
 * rounded to it anyway, and so are results that only such products read (factors.c): warpgroups can then load both
 * sides directly.
 *
 * Weights that were f16 or bf16 before the graph converted them to f32 always keep their 16 bits, which loses
 * nothing. */
#include "base/blocks.h"
#include "device/gpu/recipe.h"
#include "device/uniform.h"

/* Whether a node reads operand i as a weight, through loads that unpack it. */
static bool gpu_storages_is_weight(const berth__node *node, uint32_t i) {
  switch (node->op->code) {
    case BERTH__OP_product:
    case BERTH__OP_matmul:
    case BERTH__OP_conv:
    case BERTH__OP_conv_transpose: return i == 1;
    case BERTH__OP_row_product: return i == BERTH__ROW_PRODUCT_WEIGHT || i == BERTH__ROW_PRODUCT_SECOND;
    case BERTH__OP_embedding:
    case BERTH__OP_gather: return i == 0;
    default: return false;
  }
}

/* The transpose of a weight is a view that products read, or an f32 copy. */
static bool shows(const berth__node *node) { return node->op->code == BERTH__OP_transpose; }

static bool takes_strides(const berth__node *node) {
  const berth__op_code code = node->op->code;
  return code == BERTH__OP_product || code == BERTH__OP_row_product || code == BERTH__OP_matmul;
}

typedef struct finder {
  const berth_graph *graph;
  berth_type narrow; /* the narrow type of weights */
  bool is_asked_for; /* for all weights; otherwise only for those that are rounded anyway */
  bool keeps;        /* weights that were narrow before they became f32 keep their type */
  bool *is_read;     /* one per value: read as a weight */
  bool *is_lost;     /* one per value: read in another way */
} finder;

/* Whether it is a weight that was packed. */
static bool is_packed(const berth_graph *graph, berth_value value) {
  const berth__value *v = &graph->values[value];
  return v->kind == BERTH_VALUE_NODE && graph->nodes[v->node].op->code == BERTH__OP_pack_weights;
}

/* The 16-bit type of a param before it was converted to this f32 value; F32: none. */
static berth_type was_narrow(const berth_graph *graph, berth_value value) {
  const berth__value *v = &graph->values[value];
  const berth__node *node = v->kind == BERTH_VALUE_NODE ? &graph->nodes[v->node] : NULL;
  if (node == NULL || node->op->code != BERTH__OP_cast || v->type != BERTH_F32) return BERTH_F32;
  const berth__value *from = &graph->values[node->in[0]];
  const bool is_narrow = from->type == BERTH_F16 || from->type == BERTH_BF16;
  return is_narrow && from->kind == BERTH_VALUE_PARAM ? from->type : BERTH_F32;
}

static bool is_source(const finder *f, berth_value value) {
  return f->keeps ? was_narrow(f->graph, value) != BERTH_F32 : f->graph->values[value].kind == BERTH_VALUE_PARAM;
}

static void gpu_storages_note_read(finder *f, const berth__node *node, uint32_t i) {
  const berth_value value = node->in[i];
  const bool is_first = is_source(f, value);
  const bool is_weight =
      f->is_asked_for ? gpu_storages_is_weight(node, i) : berth__gpu_multiplies_weight(f->graph, node, i);
  if (is_weight && (is_first || takes_strides(node) || is_packed(f->graph, value)))
    f->is_read[value] = true;
  else if (shows(node) && is_first && f->is_read[node->out[0]] && !f->is_lost[node->out[0]])
    f->is_read[value] = true;
  else
    f->is_lost[value] = true;
}

static bool is_candidate(const finder *f, berth_value value) {
  const berth__value *v = &f->graph->values[value];
  return v->type == BERTH_F32 && v->shape.rank >= 2 && f->is_read[value] && !f->is_lost[value];
}

/* Readers come after what they read: going backwards, a view's readers are known before the view. */
static void halve_weights(finder *f, berth_storage *out) {
  const berth_graph *graph = f->graph;
  for (size_t i = 0; i < berth__graph_n_kept(graph); i++) f->is_lost[berth__graph_kept(graph, i)] = true;
  for (size_t n = graph->n_nodes; n-- > 0;)
    for (uint32_t i = 0; i < graph->nodes[n].n_in; i++)
      if (graph->nodes[n].in[i] != BERTH_VALUE_NONE) gpu_storages_note_read(f, &graph->nodes[n], i);
  for (berth_value v = 0; v < graph->n_values && f->keeps; v++)
    if (was_narrow(graph, v) != BERTH_F32 && is_candidate(f, v)) out[v] = berth_type_storage(was_narrow(graph, v));
  if (f->keeps) return;
  for (size_t i = 0; i < graph->n_params; i++)
    if (is_candidate(f, graph->params[i])) out[graph->params[i]] = berth_type_storage(f->narrow);
  for (berth_value value = 0; value < graph->n_values; value++)
    if (is_packed(graph, value) && is_candidate(f, value)) out[value] = berth_type_storage(f->narrow);
}

/* The storage type allowed for weights; f32: unchanged. */
static berth_type narrow_type(const berth__kernel_limits *limits, uint32_t flags) {
  if ((flags & BERTH_PLAN_F16_WEIGHTS) != 0) return BERTH_F16;
  if ((flags & (BERTH_PLAN_F32_UNIFORM | BERTH_PLAN_PARAMS_OUTSIDE)) != 0) return BERTH_F32;
  return berth__gpu_multiplies_narrowly(limits) ? berth__compute_storage(limits->compute) : BERTH_F32;
}

static bool has_narrow_weights(const berth_graph *graph) {
  for (berth_value v = 0; v < graph->n_values; v++)
    if (was_narrow(graph, v) != BERTH_F32) return true;
  return false;
}

static berth_type choose_type(berth_type type, uint32_t flags) {
  if (berth__type_is_block(type)) return type;
  return flags & BERTH_PLAN_F32_UNIFORM ? berth__uniform_type(type) : berth__l_storage(type);
}

static berth_status find_and_halve(finder *f, berth_storage *out, berth_error *err) {
  const berth_graph *graph = f->graph;
  f->is_read = berth__alloc_array_zero(graph->ctx, graph->n_values, sizeof *f->is_read);
  f->is_lost = berth__alloc_array_zero(graph->ctx, graph->n_values, sizeof *f->is_lost);
  const berth_status status = f->is_read != NULL && f->is_lost != NULL ? BERTH_OK : berth__fail_nomem(err, "a plan");
  if (status == BERTH_OK) halve_weights(f, out);
  berth__free(graph->ctx, f->is_read);
  berth__free(graph->ctx, f->is_lost);
  return status;
}

static berth_status halve_factors(const berth__kernel_limits *limits, const berth_graph *graph, berth_storage *out,
                                  berth_error *err) {
  bool *is_factor = berth__alloc_array(graph->ctx, graph->n_values, sizeof *is_factor);
  const berth_status status =
      is_factor != NULL ? berth__gpu_find_factors(limits, graph, is_factor, err) : berth__fail_nomem(err, "a plan");
  for (berth_value v = 0; v < graph->n_values && status == BERTH_OK; v++)
    if (is_factor[v]) out[v] = berth_type_storage(berth__compute_storage(limits->compute));
  berth__free(graph->ctx, is_factor);
  return status;
}

berth_status berth__gpu_choose_storages(const berth__limits *limits, const berth_graph *graph, uint32_t flags,
                                        berth_storage *out, berth_error *err) {
  for (size_t v = 0; v < graph->n_values; v++) out[v] = berth_type_storage(choose_type(graph->values[v].type, flags));
  finder f = {.graph = graph,
              .narrow = narrow_type(&limits->profile.loops, flags),
              .is_asked_for = (flags & BERTH_PLAN_F16_WEIGHTS) != 0};
  if (f.narrow != BERTH_F32) BERTH__TRY(find_and_halve(&f, out, err));
  if (berth__gpu_has_factors(&limits->profile.loops, flags))
    BERTH__TRY(halve_factors(&limits->profile.loops, graph, out, err));
  if ((flags & BERTH_PLAN_F32_UNIFORM) != 0 || !has_narrow_weights(graph)) return BERTH_OK;
  finder kept = {.graph = graph, .is_asked_for = true, .keeps = true};
  return find_and_halve(&kept, out, err);
}
