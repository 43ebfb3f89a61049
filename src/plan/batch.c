/* The graph of a batch in slices. Every slice goes through a range of the plan's steps once: nodes of the batch run in
 * each, those that do not depend on it in the first, and those that need all slices in the last. Steps outside the
 * range are unchanged. */
#include "plan/batch.h"

#include "pass/pass.h"
#include "plan/budget.h"

typedef struct slicer {
  const berth_plan *plan;
  const berth_graph *graph; /* the plan's */
  berth__rewrite *r;
  berth__batch_range range;
  int64_t extent; /* that the axes to cut are multiples of */
  uint32_t n_slices, slice;
  bool may_sum;               /* over all slices */
  bool *is_inside;            /* one per node: its step is in the range */
  berth__batch_label *labels; /* one per value */
  berth_value *parts;         /* n_slices per value: those of values that are cut, and of means */
  berth_value *sums;          /* one per value: over the slices so far */
  bool *is_gathered;          /* one per value: its slices have been joined */
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

/* Sums are complete only at the end. */
static bool batch_is_late(berth__batch_label label) {
  return label.kind == BERTH__BATCH_LATE || label.kind == BERTH__BATCH_SUM;
}

/* Combines the labels of all operands: those that are cut must be cut where the node needs it. */
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

/* The next value of a state is made at the end, because slices read the previous one. */
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

static bool batch_makes_inside(const slicer *s, berth_value value) {
  const berth__value *v = &s->graph->values[value];
  return v->kind == BERTH_VALUE_NODE && s->is_inside[v->node];
}

static void batch_label_inputs(slicer *s) {
  for (size_t v = 0; v < s->graph->n_values; v++) {
    const berth__value *value = &s->graph->values[v];
    const bool is_cut = value->kind == BERTH_VALUE_INPUT && value->shape.rank > 0 && value->shape.dim[0] == s->extent;
    s->labels[v] = is_cut ? (berth__batch_label){BERTH__BATCH_CUT, 0}
                          : (berth__batch_label){BERTH__BATCH_WHOLE, BERTH__BATCH_NO_AXIS};
  }
}

/* Values from outside the range are whole, and are cut only along the batch, where slices are equal. */
static void batch_label_outside(slicer *s) {
  for (size_t v = 0; v < s->graph->n_values; v++) {
    const berth__batch_label label = s->labels[v];
    const bool is_cut = label.kind == BERTH__BATCH_CUT && !batch_makes_inside(s, (berth_value)v) &&
                        s->graph->values[v].shape.dim[label.axis] % s->extent == 0;
    if (!is_cut) s->labels[v] = (berth__batch_label){BERTH__BATCH_WHOLE, BERTH__BATCH_NO_AXIS};
  }
}

/* False: nothing is cut. */
static bool batch_label_steps(slicer *s, uint32_t from, uint32_t to) {
  bool any = false;
  batch_label_updates(s);
  for (uint32_t step = from; step < to; step++) {
    const berth__node *node = &s->graph->nodes[s->plan->order[step]];
    berth__batch_label label = batch_label_node(s, node);
    if (node->op->code == BERTH__OP_choose) return false; /* its operands run under conditions */
    if (batch_makes_late(s, node)) label.kind = BERTH__BATCH_LATE;
    any = any || label.kind == BERTH__BATCH_CUT;
    for (uint32_t i = 0; i < node->n_out; i++) s->labels[node->out[i]] = label;
  }
  return any;
}

/* Labels of the whole graph tell along which axis to cut the range's operands. */
static bool batch_label_all(slicer *s) {
  const berth__batch_range *range = &s->range;
  s->extent = range->extent;
  batch_label_inputs(s);
  const bool any = batch_label_steps(s, 0, s->plan->n_steps);
  if (!any || (range->from == 0 && range->to == s->plan->n_steps)) return any;
  s->extent = s->n_slices;
  batch_label_outside(s);
  return batch_label_steps(s, range->from, range->to);
}

/* ---- The graph ---- */

static berth_value *batch_part(const slicer *s, berth_value value, uint32_t slice) {
  return &s->parts[(size_t)value * s->n_slices + slice];
}

/* A slice of a value that exists as a whole. */
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

/* The whole of a value that was cut, joined from all slices; an input is used directly. */
static berth_status batch_gather(const slicer *s, berth_value value, berth_error *err) {
  const berth__batch_label label = batch_label_of(s, value);
  if (label.kind != BERTH__BATCH_CUT || !batch_makes_inside(s, value) || s->is_gathered[value]) return BERTH_OK;
  const berth_attr axis = berth_attr_int("axis", label.axis);
  s->is_gathered[value] = true;
  return berth__rewrite_make(s->r, BERTH__OP_concat, batch_part(s, value, 0), s->n_slices, &axis, 1, value, err);
}

static berth_status batch_keep(const slicer *s, uint32_t index, berth_error *err) {
  const berth__node *node = &s->graph->nodes[index];
  for (uint32_t k = 0; k < node->n_in; k++) BERTH__TRY(batch_gather(s, node->in[k], err));
  return berth__rewrite_keep(s->r, index, err);
}

/* Attributes that are shapes become those of the slice. A squeeze that names no axes could remove one of the slice's,
 * too. */
static berth_status batch_add_shaped(const slicer *s, const berth__node *node, const berth_value *in, berth_value *out,
                                     berth_error *err) {
  const berth__shape *shape = &s->graph->values[node->out[0]].shape;
  int64_t dim[BERTH_MAX_RANK];
  for (uint32_t i = 0; i < shape->rank; i++) dim[i] = shape->dim[i];
  dim[s->labels[node->out[0]].axis] /= s->n_slices;
  const berth_attr attr = berth_attr_ints("shape", dim, shape->rank);
  const berth__op_code op = node->op->code == BERTH__OP_expand ? BERTH__OP_expand : BERTH__OP_reshape;
  return berth__rewrite_add(s->r, op, in, 1, &attr, 1, node->out[0], "#slice", out, err);
}

static berth_status batch_add_slice(const slicer *s, const berth__node *node, const berth_value *in, berth_value *out,
                                    berth_error *err) {
  const berth__op_code op = node->op->code;
  const bool is_shaped = op == BERTH__OP_reshape || op == BERTH__OP_expand || op == BERTH__OP_squeeze;
  if (is_shaped && s->labels[node->out[0]].kind == BERTH__BATCH_CUT) return batch_add_shaped(s, node, in, out, err);
  return berth__budget_add_copy(s->r, node, in, NULL, "#slice", out, err);
}

/* The mean of the means of all slices. */
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

/* Adds this slice's contribution to the sum so far. */
static berth_status batch_add_sum(const slicer *s, berth_value value, berth_value part, berth_error *err) {
  const berth_value in[] = {s->sums[value], part};
  if (s->slice == 0) s->sums[value] = part;
  if (s->slice == 0) return BERTH_OK;
  if (s->slice + 1 == s->n_slices) return berth__rewrite_make(s->r, BERTH__OP_add, in, 2, NULL, 0, value, err);
  return berth__rewrite_add(s->r, BERTH__OP_add, in, 2, NULL, 0, value, "#sum", &s->sums[value], err);
}

/* A product can add to the sum itself. */
static bool batch_adds_itself(const slicer *s, const berth__node *node) {
  const berth__value *out = &s->graph->values[node->out[0]];
  if (s->labels[node->out[0]].kind != BERTH__BATCH_SUM || s->slice == 0) return false;
  if (node->op->code == BERTH__OP_product) return true;
  return node->op->code == BERTH__OP_matmul && s->range.fuses && out->type == BERTH_F32 && out->shape.rank >= 2 &&
         s->graph->values[node->in[0]].shape.rank >= 2 && s->graph->values[node->in[1]].shape.rank >= 2;
}

static berth_status batch_add_product(const slicer *s, const berth__node *node, const berth_value *in,
                                      berth_error *err) {
  const berth_value value = node->out[0], operands[] = {in[0], in[1], BERTH_VALUE_NONE, s->sums[value]};
  const berth__shape *shape = &s->graph->values[value].shape;
  const bool is_product = node->op->code == BERTH__OP_product;
  const berth_attr plain[] = {berth_attr_int("columns", shape->dim[shape->rank - 1]), berth_attr_int("adds", 1)};
  const uint32_t n_attrs = is_product ? node->op->family->n_attrs : sizeof plain / sizeof *plain;
  berth_attr *attrs = berth__alloc_array(s->plan->ctx, n_attrs, sizeof *attrs);
  if (attrs == NULL) return berth__fail_nomem(err, "a plan");
  memcpy(attrs, is_product ? node->attrs : plain, n_attrs * sizeof *attrs);
  if (is_product) attrs[BERTH__PRODUCT_ADDS].i = 1;
  const bool is_last = s->slice + 1 == s->n_slices;
  const berth_status status =
      is_last ? berth__rewrite_make(s->r, BERTH__OP_product, operands, 4, attrs, n_attrs, value, err)
              : berth__rewrite_add(s->r, BERTH__OP_product, operands, 4, attrs, n_attrs, value, "#sum", &s->sums[value],
                                   err);
  berth__free(s->plan->ctx, attrs);
  return status;
}

static berth_status batch_emit(const slicer *s, const berth__node *node, const berth_value *in, berth_value *out,
                               berth_error *err) {
  const berth__batch_label label = s->labels[node->out[0]];
  if (batch_adds_itself(s, node)) return batch_add_product(s, node, in, err);
  BERTH__TRY(batch_add_slice(s, node, in, out, err));
  for (uint32_t i = 0; i < node->n_out; i++) *batch_part(s, node->out[i], s->slice) = out[i];
  if (label.kind != BERTH__BATCH_SUM) return BERTH_OK;
  if (node->op->code == BERTH__OP_reduce_mean) return batch_add_mean(s, node->out[0], err);
  for (uint32_t i = 0; i < node->n_out; i++) BERTH__TRY(batch_add_sum(s, node->out[i], out[i], err));
  return BERTH_OK;
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
  const berth_plan *plan = s->plan;
  for (uint32_t step = 0; step < s->range.from; step++) BERTH__TRY(batch_keep(s, plan->order[step], err));
  for (s->slice = 0; s->slice < s->n_slices; s->slice++)
    for (uint32_t step = s->range.from; step < s->range.to; step++)
      BERTH__TRY(batch_emit_node(s, plan->order[step], err));
  for (uint32_t step = s->range.to; step < plan->n_steps; step++) BERTH__TRY(batch_keep(s, plan->order[step], err));
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
  s->r = NULL;
  if (status == BERTH_OK) status = berth__pass_dead(graph, err);
  if (status != BERTH_OK)
    berth_graph_destroy(graph);
  else
    *out = graph;
  return status;
}

static berth_status batch_allocate(slicer *s, berth_error *err) {
  berth_context *ctx = s->plan->ctx;
  const size_t n = s->graph->n_values;
  s->is_inside = berth__alloc_array_zero(ctx, s->graph->n_nodes, sizeof *s->is_inside);
  s->labels = berth__alloc_array(ctx, n, sizeof *s->labels);
  s->parts = berth__alloc_array(ctx, n, s->n_slices * sizeof *s->parts);
  s->sums = berth__alloc_array(ctx, n, sizeof *s->sums);
  s->is_gathered = berth__alloc_array_zero(ctx, n, sizeof *s->is_gathered);
  const bool ok =
      s->is_inside != NULL && s->labels != NULL && s->parts != NULL && s->sums != NULL && s->is_gathered != NULL;
  if (!ok) return berth__fail_nomem(err, "a plan");
  for (size_t i = 0; i < n * s->n_slices; i++) s->parts[i] = BERTH_VALUE_NONE;
  for (uint32_t step = s->range.from; step < s->range.to; step++) s->is_inside[s->plan->order[step]] = true;
  return BERTH_OK;
}

berth_status berth__batch_slice(const berth_plan *plan, const berth__batch_range *range, berth_graph **out,
                                berth_error *err) {
  berth_context *ctx = plan->ctx;
  slicer s = {.plan = plan, .graph = plan->graph, .range = *range, .n_slices = range->n_slices, .may_sum = range->sums};
  *out = NULL;
  berth_status status = batch_allocate(&s, err);
  if (status == BERTH_OK && batch_label_all(&s)) status = batch_rewrite(&s, out, err);
  berth__free(ctx, s.is_inside);
  berth__free(ctx, s.labels);
  berth__free(ctx, s.parts);
  berth__free(ctx, s.sums);
  berth__free(ctx, s.is_gathered);
  return status;
}
