/* rope before write_rows becomes rope_rows where nothing else reads the turned rows: on a GPU each of the two is a
 * kernel that moves next to nothing, and waits for the one before it. */
#include "rewrite/pattern.h"
#include "rewrite/rewrite.h"

/* The rope that the node can absorb; NULL: none. */
static const berth__node *rope_rows_match(const berth_graph *graph, const berth__uses *uses, const berth__node *node) {
  if (node->op->code != BERTH__OP_write_rows) return NULL;
  const berth_value turned = node->in[BERTH__WRITE_ROWS_ROWS];
  const berth__value *x = &graph->values[node->in[BERTH__WRITE_ROWS_X]], *rows = &graph->values[turned];
  const berth__value *position = &graph->values[node->in[BERTH__WRITE_ROWS_POSITION]];
  const berth__node *rope = berth__maker(graph, turned, BERTH__OP_rope);
  if (rope == NULL || uses->count[turned] != 1 || uses->is_output[turned]) return NULL;
  if (berth__node_is_bounded(graph, node) || berth__node_is_bounded(graph, rope)) return NULL;
  const int64_t axis = node->attrs[BERTH__WRITE_ROWS_AXIS].i;
  const bool is_plain = berth__is_float(x->type) && x->shape.rank == 2 && rows->type == BERTH_F32 &&
                        (axis == 0 || axis == -2) && berth__value_count(position) == 1;
  if (!is_plain || berth__operand_of(rope, BERTH__ROPE_SIN) == BERTH_VALUE_NONE) return NULL;
  return graph->values[rope->in[BERTH__ROPE_COS]].shape.rank == 2 ? rope : NULL;
}

static berth_status rope_rows_make(berth__rewrite *r, const berth__node *node, const berth__node *rope,
                                   berth_error *err) {
  const berth_value in[] = {[BERTH__ROPE_ROWS_X] = node->in[BERTH__WRITE_ROWS_X],
                            [BERTH__ROPE_ROWS_ROWS] = rope->in[BERTH__ROPE_X],
                            [BERTH__ROPE_ROWS_POSITION] = node->in[BERTH__WRITE_ROWS_POSITION],
                            [BERTH__ROPE_ROWS_COS] = rope->in[BERTH__ROPE_COS],
                            [BERTH__ROPE_ROWS_SIN] = rope->in[BERTH__ROPE_SIN]};
  const berth_attr attrs[] = {node->attrs[BERTH__WRITE_ROWS_RING], rope->attrs[BERTH__ROPE_HEADS],
                              rope->attrs[BERTH__ROPE_DIMS], rope->attrs[BERTH__ROPE_INTERLEAVED]};
  return berth__rewrite_make(r, BERTH__OP_rope_rows, in, 5, attrs, 4, node->out[0], err);
}

/* The node of the rope that each write absorbs, and which ropes go. */
typedef struct rope_rows_pass {
  berth__rewrite r;
  berth__uses uses;
  uint32_t *rope;
  bool *goes;
} rope_rows_pass;

static berth_status rope_rows_rewrite(rope_rows_pass *p, berth_graph *graph, berth_error *err) {
  bool changes = false;
  if (graph->n_nodes == 0) return BERTH_OK;
  BERTH__TRY(berth__uses_create(&p->uses, graph, err));
  p->rope = berth__alloc_array(graph->ctx, graph->n_nodes, sizeof *p->rope);
  p->goes = berth__alloc_array_zero(graph->ctx, graph->n_nodes, sizeof *p->goes);
  if (p->rope == NULL || p->goes == NULL) return berth__fail_nomem(err, "rewriting a graph");
  for (uint32_t n = 0; n < graph->n_nodes; n++) {
    const berth__node *rope = rope_rows_match(graph, &p->uses, &graph->nodes[n]);
    p->rope[n] = rope != NULL ? (uint32_t)(rope - graph->nodes) : BERTH__NO_NODE;
    if (rope != NULL) p->goes[p->rope[n]] = changes = true;
  }
  if (!changes) return BERTH_OK;
  BERTH__TRY(berth__rewrite_start(&p->r, graph, err));
  for (uint32_t n = 0; n < p->r.n_old; n++) {
    if (p->goes[n]) continue;
    BERTH__TRY(p->rope[n] == BERTH__NO_NODE ? berth__rewrite_keep(&p->r, n, err)
                                            : rope_rows_make(&p->r, &p->r.old[n], &p->r.old[p->rope[n]], err));
  }
  return BERTH_OK;
}

berth_status berth__rewrite_rope_rows(berth_graph *graph, berth_error *err) {
  rope_rows_pass p = {.rope = NULL};
  const berth_status status = rope_rows_rewrite(&p, graph, err);
  if (p.r.old != NULL) berth__rewrite_finish(&p.r);
  berth__uses_free(&p.uses, graph->ctx);
  berth__free(graph->ctx, p.rope);
  berth__free(graph->ctx, p.goes);
  return status;
}
