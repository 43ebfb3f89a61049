/* The graph of a batch in slices. Every slice goes through the plan's order once: nodes of the batch run in each, those
 * that do not depend on it in the first, and those that need all slices in the last. */
#include "plan/batch.h"

#include "pass/pass.h"
#include "plan/budget.h"

typedef struct slicer {
  const berth_plan *plan;
  const berth_graph *graph; /* the plan's */
  berth__rewrite *r;
  int64_t extent;
  uint32_t n_slices, slice;
  bool may_sum;               /* over slices */
  berth__batch_label *labels; /* one per value */
  berth_value *parts;         /* n_slices per value: those of what is cut, and of means */
  berth_value *sums;          /* one per value: of the slices so far */
  bool *is_gathered;          /* one per value: the whole of it has been put together */
} slicer;

/* ---- Labels ---- */

int64_t berth__batch_extent(const berth_graph *graph) {
  int64_t extent = 0;
  for (size_t v = 0; v < graph->n_values; v++) {
    const berth__value *value = &graph->values[v];
    if (value->kind != BERTH_VALUE_INPUT || value->shape.rank == 0 || value->shape.dim[0] < 2) continue;
    if (extent == 0 || value->shape.dim[0] < extent) extent = value->shape.dim[0];
  }
  return extent;
}

static berth__batch_label batch_label_of(const slicer *s, berth_value value) {
  static const berth__batch_label whole = {BERTH__BATCH_WHOLE, BERTH__BATCH_NO_AXIS};
  return value == BERTH_VALUE_NONE ? whole : s->labels[value];
}

/* Sums are there in the end alone. */
static bool batch_is_late(berth__batch_label label) {
  return label.kind == BERTH__BATCH_LATE || label.kind == BERTH__BATCH_SUM;
}

/* What all operands ask for: those that are cut must be cut where the node wants them. */
static berth__batch_label batch_label_node(const slicer *s, const berth__node *node) {
  berth__batch_label result = {BERTH__BATCH_WHOLE, BERTH__BATCH_NO_AXIS};
  const berth__batch_label late = {BERTH__BATCH_LATE, BERTH__BATCH_NO_AXIS};
  for (uint32_t k = 0; k < node->n_in; k++) {
    const berth__batch_label label = batch_label_of(s, node->in[k]);
    if (batch_is_late(label)) return late;
    if (label.kind == BERTH__BATCH_CUT && result.kind == BERTH__BATCH_WHOLE)
      result = berth__batch_result(s->graph, node, k, label.axis, s->extent);
  }
  if (result.kind == BERTH__BATCH_SUM && !s->may_sum) return late;
  if (result.kind != BERTH__BATCH_CUT && result.kind != BERTH__BATCH_SUM) return result;
  for (uint32_t k = 0; k < node->n_in; k++) {
    const berth__batch_label label = batch_label_of(s, node->in[k]);
    if (node->in[k] == BERTH_VALUE_NONE) continue;
    const uint32_t axis = berth__batch_operand(s->graph, node, result, k, batch_label_of(s, node->in[0]).axis);
    if (label.kind == BERTH__BATCH_CUT && axis != label.axis) return late;
    if (axis != BERTH__BATCH_NO_AXIS && s->graph->values[node->in[k]].shape.dim[axis] % s->extent != 0) return late;
  }
  return result;
}

/* The next value of a state is made in the end: slices read the one before. */
static void batch_label_updates(slicer *s) {
  for (size_t u = 0; u < s->graph->n_updates; u++) {
    const berth_value next = s->graph->updates[u].next;
    if (s->graph->values[next].kind == BERTH_VALUE_NODE) s->labels[next].kind = BERTH__BATCH_LATE;
  }
}

static bool batch_makes_late(const slicer *s, const berth__node *node) {
  for (uint32_t i = 0; i < node->n_out; i++)
    if (s->labels[node->out[i]].kind == BERTH__BATCH_LATE) return true;
  return false;
}

/* False: nothing is cut. */
static bool batch_label_all(slicer *s) {
  bool any = false;
  for (size_t v = 0; v < s->graph->n_values; v++) {
    const berth__value *value = &s->graph->values[v];
    const bool is_cut = value->kind == BERTH_VALUE_INPUT && value->shape.rank > 0 && value->shape.dim[0] == s->extent;
    s->labels[v] = is_cut ? (berth__batch_label){BERTH__BATCH_CUT, 0}
                          : (berth__batch_label){BERTH__BATCH_WHOLE, BERTH__BATCH_NO_AXIS};
  }
  batch_label_updates(s);
  for (uint32_t step = 0; step < s->plan->n_steps; step++) {
    const berth__node *node = &s->graph->nodes[s->plan->order[step]];
    berth__batch_label label = batch_label_node(s, node);
    if (node->op->code == BERTH__OP_choose) return false; /* whose operands run under a condition */
    if (batch_makes_late(s, node)) label.kind = BERTH__BATCH_LATE;
    any = any || label.kind == BERTH__BATCH_CUT;
    for (uint32_t i = 0; i < node->n_out; i++) s->labels[node->out[i]] = label;
  }
  return any;
}

/* ---- The graph ---- */

static berth_value *batch_part(const slicer *s, berth_value value, uint32_t slice) {
  return &s->parts[(size_t)value * s->n_slices + slice];
}

/* A slice of a value that is there as a whole. */
static berth_status batch_narrow(const slicer *s, berth_value value, uint32_t axis, berth_value *out,
                                 berth_error *err) {
  const int64_t rows = s->graph->values[value].shape.dim[axis] / s->n_slices, along = axis;
  const int64_t from = rows * s->slice, to = from + rows;
  const berth_attr attrs[] = {berth_attr_ints("axes", &along, 1), berth_attr_ints("starts", &from, 1),
                              berth_attr_ints("ends", &to, 1)};
  return berth__rewrite_add(s->r, BERTH__OP_narrow, &value, 1, attrs, 3, value, "#rows", out, err);
}

static berth_status batch_operand(const slicer *s, const berth__node *node, berth__batch_label label, uint32_t k,
                                  berth_value *out, berth_error *err) {
  const berth_value value = node->in[k];
  *out = value;
  if (value == BERTH_VALUE_NONE) return BERTH_OK;
  const uint32_t axis = berth__batch_operand(s->graph, node, label, k, batch_label_of(s, node->in[0]).axis);
  if (axis == BERTH__BATCH_NO_AXIS) return BERTH_OK;
  if (s->labels[value].kind != BERTH__BATCH_CUT) return batch_narrow(s, value, axis, out, err);
  berth_value *part = batch_part(s, value, s->slice);
  if (*part == BERTH_VALUE_NONE) BERTH__TRY(batch_narrow(s, value, axis, part, err)); /* an input */
  *out = *part;
  return BERTH_OK;
}

/* The whole of what is cut, from all slices, or for an input as it is. */
static berth_status batch_gather(const slicer *s, berth_value value, berth_error *err) {
  const berth__batch_label label = batch_label_of(s, value);
  if (label.kind != BERTH__BATCH_CUT || s->graph->values[value].kind != BERTH_VALUE_NODE || s->is_gathered[value])
    return BERTH_OK;
  const berth_attr axis = berth_attr_int("axis", label.axis);
  s->is_gathered[value] = true;
  return berth__rewrite_make(s->r, BERTH__OP_concat, batch_part(s, value, 0), s->n_slices, &axis, 1, value, err);
}

static berth_status batch_keep(const slicer *s, uint32_t index, berth_error *err) {
  const berth__node *node = &s->graph->nodes[index];
  for (uint32_t k = 0; k < node->n_in; k++) BERTH__TRY(batch_gather(s, node->in[k], err));
  return berth__rewrite_keep(s->r, index, err);
}

/* Shapes that are attributes are those of the slice. */
static berth_status batch_add_shaped(const slicer *s, const berth__node *node, const berth_value *in, berth_value *out,
                                     berth_error *err) {
  const berth__shape *shape = &s->graph->values[node->out[0]].shape;
  int64_t dim[BERTH_MAX_RANK];
  for (uint32_t i = 0; i < shape->rank; i++) dim[i] = shape->dim[i];
  dim[s->labels[node->out[0]].axis] /= s->n_slices;
  const berth_attr attr = berth_attr_ints("shape", dim, shape->rank);
  return berth__rewrite_add(s->r, node->op->code, in, 1, &attr, 1, node->out[0], "#slice", out, err);
}

static berth_status batch_add_slice(const slicer *s, const berth__node *node, const berth_value *in, berth_value *out,
                                    berth_error *err) {
  const bool is_shaped = node->op->code == BERTH__OP_reshape || node->op->code == BERTH__OP_expand;
  if (is_shaped && s->labels[node->out[0]].kind == BERTH__BATCH_CUT) return batch_add_shaped(s, node, in, out, err);
  return berth__budget_add_copy(s->r, node, in, NULL, "#slice", out, err);
}

/* The mean of the slices' means. */
static berth_status batch_add_mean(const slicer *s, berth_value value, berth_error *err) {
  berth_value *parts = batch_part(s, value, 0), all;
  const int64_t first = 0;
  const berth_attr axes = berth_attr_ints("axes", &first, 1), axis = berth_attr_int("axis", 0);
  const berth_attr mean[] = {axes, berth_attr_int("keepdims", 0)};
  if (s->slice + 1 < s->n_slices) return BERTH_OK;
  for (uint32_t i = 0; i < s->n_slices; i++)
    BERTH__TRY(berth__rewrite_add(s->r, BERTH__OP_unsqueeze, &parts[i], 1, &axes, 1, value, "#mean", &parts[i], err));
  BERTH__TRY(berth__rewrite_add(s->r, BERTH__OP_concat, parts, s->n_slices, &axis, 1, value, "#means", &all, err));
  return berth__rewrite_make(s->r, BERTH__OP_reduce_mean, &all, 1, mean, 2, value, err);
}

/* The sum so far and what this slice gives. */
static berth_status batch_add_sum(const slicer *s, berth_value value, berth_value part, berth_error *err) {
  const berth_value in[] = {s->sums[value], part};
  if (s->slice == 0) s->sums[value] = part;
  if (s->slice == 0) return BERTH_OK;
  if (s->slice + 1 == s->n_slices) return berth__rewrite_make(s->r, BERTH__OP_add, in, 2, NULL, 0, value, err);
  return berth__rewrite_add(s->r, BERTH__OP_add, in, 2, NULL, 0, value, "#sum", &s->sums[value], err);
}

/* A product adds to the sum by itself. */
static berth_status batch_add_product(const slicer *s, const berth__node *node, const berth_value *in,
                                      berth_error *err) {
  const berth_value value = node->out[0], operands[] = {in[0], in[1], BERTH_VALUE_NONE, s->sums[value]};
  const uint32_t n_attrs = node->op->family->n_attrs;
  berth_attr *attrs = berth__alloc_array(s->plan->ctx, n_attrs, sizeof *attrs);
  if (attrs == NULL) return berth__fail_nomem(err, "a plan");
  for (uint32_t i = 0; i < n_attrs; i++) attrs[i] = node->attrs[i];
  attrs[BERTH__PRODUCT_ADDS].i = 1;
  const berth_status status =
      s->slice + 1 == s->n_slices
          ? berth__rewrite_make(s->r, node->op->code, operands, 4, attrs, n_attrs, value, err)
          : berth__rewrite_add(s->r, node->op->code, operands, 4, attrs, n_attrs, value, "#sum", &s->sums[value], err);
  berth__free(s->plan->ctx, attrs);
  return status;
}

static berth_status batch_emit(const slicer *s, const berth__node *node, const berth_value *in, berth_value *out,
                               berth_error *err) {
  const berth__batch_label label = s->labels[node->out[0]];
  if (label.kind == BERTH__BATCH_SUM && node->op->code == BERTH__OP_product && s->slice > 0)
    return batch_add_product(s, node, in, err);
  BERTH__TRY(batch_add_slice(s, node, in, out, err));
  for (uint32_t i = 0; i < node->n_out; i++) *batch_part(s, node->out[i], s->slice) = out[i];
  if (label.kind != BERTH__BATCH_SUM) return BERTH_OK;
  return node->op->code == BERTH__OP_reduce_mean ? batch_add_mean(s, node->out[0], err)
                                                 : batch_add_sum(s, node->out[0], out[0], err);
}

static berth_status batch_emit_node(const slicer *s, uint32_t index, berth_error *err) {
  berth_context *ctx = s->plan->ctx;
  const berth__node *node = &s->graph->nodes[index];
  const berth__batch_label label = s->labels[node->out[0]];
  if (label.kind == BERTH__BATCH_WHOLE) return s->slice == 0 ? batch_keep(s, index, err) : BERTH_OK;
  if (label.kind == BERTH__BATCH_LATE) return s->slice + 1 == s->n_slices ? batch_keep(s, index, err) : BERTH_OK;
  berth_value *in = berth__alloc_array(ctx, node->n_in, sizeof *in);
  berth_value *out = berth__alloc_array(ctx, node->n_out, sizeof *out);
  berth_status status = in != NULL && out != NULL ? BERTH_OK : berth__fail_nomem(err, "a plan");
  for (uint32_t k = 0; k < node->n_in && status == BERTH_OK; k++)
    status = batch_operand(s, node, label, k, &in[k], err);
  if (status == BERTH_OK) status = batch_emit(s, node, in, out, err);
  berth__free(ctx, in);
  berth__free(ctx, out);
  return status;
}

static berth_status batch_emit_all(slicer *s, berth_error *err) {
  for (s->slice = 0; s->slice < s->n_slices; s->slice++)
    for (uint32_t step = 0; step < s->plan->n_steps; step++) BERTH__TRY(batch_emit_node(s, s->plan->order[step], err));
  for (size_t i = 0; i < s->graph->n_outputs; i++) BERTH__TRY(batch_gather(s, s->graph->outputs[i].value, err));
  return BERTH_OK;
}

static berth_status batch_rewrite(slicer *s, berth_graph **out, berth_error *err) {
  berth_graph *graph;
  berth__rewrite r;
  BERTH__TRY(berth__graph_duplicate(s->graph, &graph, err));
  s->r = &r;
  berth_status status = berth__rewrite_start(&r, graph, err);
  if (status == BERTH_OK) status = batch_emit_all(s, err);
  berth__rewrite_finish(&r);
  if (status == BERTH_OK) status = berth__pass_dead(graph, err);
  if (status != BERTH_OK)
    berth_graph_destroy(graph);
  else
    *out = graph;
  return status;
}

berth_status berth__batch_slice(const berth_plan *plan, int64_t extent, uint32_t n_slices, bool sums, berth_graph **out,
                                berth_error *err) {
  const size_t n = plan->graph->n_values;
  berth_context *ctx = plan->ctx;
  slicer s = {.plan = plan,
              .graph = plan->graph,
              .extent = extent,
              .n_slices = n_slices,
              .may_sum = sums,
              .labels = berth__alloc_array(ctx, n, sizeof *s.labels),
              .parts = berth__alloc_array(ctx, n, n_slices * sizeof *s.parts),
              .sums = berth__alloc_array(ctx, n, sizeof *s.sums),
              .is_gathered = berth__alloc_array_zero(ctx, n, sizeof *s.is_gathered)};
  const bool ok = s.labels != NULL && s.parts != NULL && s.sums != NULL && s.is_gathered != NULL;
  berth_status status = ok ? BERTH_OK : berth__fail_nomem(err, "a plan");
  *out = NULL;
  for (size_t i = 0; i < n * n_slices && ok; i++) s.parts[i] = BERTH_VALUE_NONE;
  if (status == BERTH_OK && batch_label_all(&s)) status = batch_rewrite(&s, out, err);
  berth__free(ctx, s.labels);
  berth__free(ctx, s.parts);
  berth__free(ctx, s.sums);
  berth__free(ctx, s.is_gathered);
  return status;
}
