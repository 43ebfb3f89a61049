/* Moves a node that only reshapes a dequantised value before the dequantize. A Flatten between the last convolution of
 * a quantised model and its first product would otherwise hide the bytes from it, and the product would get an f32
 * weight. */
#include "rewrite/pattern.h"
#include "rewrite/rewrite.h"

static bool is_shape_change(const berth__node *node) {
  switch (node->op->code) {
    case BERTH__OP_reshape:
    case BERTH__OP_flatten:
    case BERTH__OP_squeeze:
    case BERTH__OP_unsqueeze: return node->n_in == 1;
    default: return false;
  }
}

/* A scalar, which broadcasts to any shape with so many axes. */
static bool is_for_all(const berth_graph *graph, berth_value value, uint32_t rank) {
  if (value == BERTH_VALUE_NONE) return true;
  return berth__value_count(&graph->values[value]) == 1 && graph->values[value].shape.rank <= rank;
}

/* The dequantize whose result a node reshapes; NULL: none. */
static const berth__node *find_shown(const berth_graph *graph, const berth__node *node) {
  if (!is_shape_change(node) || berth__node_is_bounded(graph, node)) return NULL;
  const berth__node *made = berth__maker(graph, node->in[0], BERTH__OP_dequantize);
  const uint32_t rank = graph->values[node->out[0]].shape.rank;
  if (made == NULL || !is_for_all(graph, made->in[BERTH__QUANTIZE_SCALE], rank) ||
      !is_for_all(graph, berth__operand_of(made, BERTH__QUANTIZE_ZERO_POINT), rank))
    return NULL;
  const berth__value *bytes = &graph->values[made->in[BERTH__QUANTIZE_X]];
  const bool is_weight = bytes->kind == BERTH_VALUE_PARAM || bytes->kind == BERTH_VALUE_CONSTANT;
  return !is_weight && (bytes->type == BERTH_U8 || bytes->type == BERTH_I8) ? made : NULL;
}

static bool shows_any(const berth_graph *graph) {
  for (size_t n = 0; n < graph->n_nodes; n++)
    if (find_shown(graph, &graph->nodes[n]) != NULL) return true;
  return false;
}

static berth_status raise_view(berth__rewrite *r, const berth__node *view, const berth__node *made, berth_error *err) {
  const berth__node before = *made; /* a copy: nodes move while others are added */
  berth_value in[] = {[BERTH__QUANTIZE_X] = before.in[BERTH__QUANTIZE_X],
                      [BERTH__QUANTIZE_SCALE] = before.in[BERTH__QUANTIZE_SCALE],
                      [BERTH__QUANTIZE_ZERO_POINT] = berth__operand_of(&before, BERTH__QUANTIZE_ZERO_POINT)};
  BERTH__TRY(berth__rewrite_add(r, view->op->code, in, 1, view->attrs, view->op->family->n_attrs, in[BERTH__QUANTIZE_X],
                                "#shown", &in[BERTH__QUANTIZE_X], err));
  return berth__rewrite_make(r, BERTH__OP_dequantize, in, before.n_in, NULL, 0, view->out[0], err);
}

berth_status berth__rewrite_raise_views(berth_graph *graph, berth_error *err) {
  berth__rewrite r;
  berth_status status = BERTH_OK;
  if (!shows_any(graph)) return BERTH_OK;
  BERTH__TRY(berth__rewrite_start(&r, graph, err));
  for (size_t n = 0; n < r.n_old && status == BERTH_OK; n++) {
    const berth__node *made = find_shown(graph, &r.old[n]);
    status = made != NULL ? raise_view(&r, &r.old[n], made, err) : berth__rewrite_keep(&r, n, err);
  }
  berth__rewrite_finish(&r);
  return status;
}
