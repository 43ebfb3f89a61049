/* Binding: named dimensions get their extents, and every shape is inferred again and checked fully. Results that depend
 * on constants only (mostly shape arithmetic) are computed on the way, because later shapes may depend on them. The new
 * graph has the same value numbers. Cloning is the same with names left unchanged.
 *
 * A choose whose condition has become known is replaced by the operand that it chooses, and nodes needed only by the
 * other one are removed. That other branch may be invalid with these dimensions (for example a squeeze of an axis that
 * is not 1), and its nodes come before the choose. So a node that fails is not an error yet: its results are dropped,
 * as are those of its readers, and binding fails with the node's own error if an output turns out to need one of them.
 * A choose whose condition only a run knows continues without such an operand, and a run that would choose it fails. */
#include <stdio.h>

#include "graph/graph.h"
#include "graph/needed.h"

typedef struct binding {
  const berth_graph *from;
  berth_graph *to;
  const berth_dim *dims;
  size_t n_dims;
  bool keeps_names;
  bool may_drop;     /* the graph has choices */
  bool *has_dropped; /* set when a choice was made or a node failed */
} binding;

static const berth_dim *find_dim(const binding *b, const char *name) {
  for (size_t i = 0; i < b->n_dims; i++)
    if (strcmp(b->dims[i].name, name) == 0) return &b->dims[i];
  return NULL;
}

static berth_status check_dims(const binding *b, berth_error *err) {
  for (size_t i = 0; i < b->n_dims; i++) {
    uint32_t index;
    if (b->dims[i].name == NULL) return berth__fail(err, BERTH_INVALID, "binding %zu has no name", i);
    if (b->dims[i].extent < 0)
      return berth__fail(err, BERTH_INVALID, "dimension '%s' is bound to %lld; an extent is 0 or more", b->dims[i].name,
                         (long long)b->dims[i].extent);
    if (!berth__map_get(&b->from->dim_names, b->dims[i].name, &index))
      return berth__fail(err, BERTH_INVALID, "graph '%s' has no dimension named '%s'%s%s", b->from->name,
                         b->dims[i].name, b->from->n_dims != 0 ? "; the first that it has is " : "; it has none",
                         b->from->n_dims != 0 ? b->from->dims[0] : "");
    if (find_dim(b, b->dims[i].name) != &b->dims[i])
      return berth__fail(err, BERTH_INVALID, "dimension '%s' is bound twice", b->dims[i].name);
  }
  for (size_t i = 0; i < b->from->n_dims; i++)
    if (find_dim(b, b->from->dims[i]) == NULL)
      return berth__fail(err, BERTH_INVALID, "dimension '%s' of graph '%s' is not bound; give it an extent",
                         b->from->dims[i], b->from->name);
  return BERTH_OK;
}

berth_status berth__graph_copy_source(berth_graph *to, const berth__value *value, berth_value *id, berth_error *err) {
  BERTH__TRY(berth__graph_new_value(to, value->name, value, id, err));
  if (value->blob != NULL) berth__blob_retain(value->blob);
  if (value->initial != NULL) berth__blob_retain(value->initial);
  if (value->kind == BERTH_VALUE_INPUT) {
    BERTH__TRY(BERTH__RESERVE(to->ctx, to->inputs, to->inputs_capacity, to->n_inputs + 1, err));
    to->inputs[to->n_inputs++] = *id;
  } else if (value->kind == BERTH_VALUE_PARAM) {
    BERTH__TRY(BERTH__RESERVE(to->ctx, to->params, to->params_capacity, to->n_params + 1, err));
    to->params[to->n_params++] = *id;
  } else if (value->kind == BERTH_VALUE_STATE) {
    BERTH__TRY(BERTH__RESERVE(to->ctx, to->states, to->states_capacity, to->n_states + 1, err));
    to->states[to->n_states++] = *id;
  }
  return BERTH_OK;
}

static berth_status bind_source(const binding *b, const berth__value *value, berth_error *err) {
  berth__value copy = *value;
  berth_value id;
  copy.low = copy.high = NULL;
  for (uint32_t i = 0; i < copy.shape.rank && !b->keeps_names; i++)
    if (berth__dim_is_named(copy.shape.dim[i]))
      copy.shape.dim[i] = find_dim(b, b->from->dims[berth__dim_index(copy.shape.dim[i])])->extent;
  uint64_t size;
  if (!b->keeps_names && !berth__value_size(&copy, &size))
    return berth__fail(err, BERTH_INVALID, "'%s': its size in bytes does not fit in 64 bits", value->name);
  return berth__graph_copy_source(b->to, &copy, &id, err);
}

/* Attributes with the names in DIMS lists replaced; *dims is what they point to, to be freed. */
static berth_status bind_attrs(const binding *b, const berth__node *node, berth_attr **attrs, berth_dim **dims,
                               berth_error *err) {
  uint32_t n = node->op->family->n_attrs, total = 0, used = 0;
  for (uint32_t i = 0; i < n; i++)
    if (node->attrs[i].kind == BERTH_ATTR_DIMS) total += node->attrs[i].count;
  *attrs = berth__alloc_array(b->to->ctx, n, sizeof **attrs);
  *dims = berth__alloc_array_zero(b->to->ctx, total, sizeof **dims);
  if (*attrs == NULL || *dims == NULL) return berth__fail_nomem(err, "attributes");
  for (uint32_t i = 0; i < n; i++) {
    berth_attr *attr = &(*attrs)[i];
    *attr = node->attrs[i];
    if (attr->kind != BERTH_ATTR_DIMS) continue;
    const berth_dim *from = attr->dims;
    attr->dims = *dims + used;
    for (uint32_t k = 0; k < attr->count; k++, used++) {
      (*dims)[used] = from[k];
      if (from[k].name == NULL || b->keeps_names) continue;
      const berth_dim *bound = find_dim(b, from[k].name);
      if (bound == NULL)
        return berth__fail(err, BERTH_INVALID, "attribute '%s' of node '%s' uses the dimension '%s', which is unknown",
                           attr->name, b->from->values[node->out[0]].name, from[k].name);
      (*dims)[used] = (berth_dim){.name = NULL, .extent = bound->extent};
    }
  }
  return BERTH_OK;
}

static berth_status add_bound(const binding *b, const berth__node *node, berth_error *err) {
  berth_context *ctx = b->to->ctx;
  berth_attr *attrs = NULL;
  berth_dim *dims = NULL;
  const char **names = berth__alloc_array(ctx, node->n_out, sizeof *names);
  berth_status status = BERTH_OK;
  if (names == NULL) return berth__fail_nomem(err, "names");
  for (uint32_t i = 0; i < node->n_out; i++) names[i] = b->from->values[node->out[i]].name;
  status = bind_attrs(b, node, &attrs, &dims, err);
  /* berth__attrs_resolve may not accept an attribute's default as given: an unset string. Those are omitted, and get
   * their default again. */
  uint32_t n_attrs = 0;
  for (uint32_t i = 0; status == BERTH_OK && i < node->op->family->n_attrs; i++)
    if (attrs[i].kind != BERTH_ATTR_STRING || attrs[i].s != NULL) attrs[n_attrs++] = attrs[i];
  if (status == BERTH_OK)
    status = berth__graph_add_op(b->to, node->op, node->in, node->n_in, attrs, n_attrs, names, NULL, node->n_out, err);
  berth__free(ctx, attrs);
  berth__free(ctx, dims);
  berth__free(ctx, names);
  return status;
}

static bool is_dropped(const berth_graph *graph, berth_value value) {
  return value != BERTH_VALUE_NONE && graph->values[value].kind == BERTH_VALUE_DROPPED;
}

/* The operand that a choose takes, if known; otherwise BERTH_VALUE_NONE. */
static berth_value chosen_operand(const binding *b, const berth__node *node) {
  if (b->keeps_names || node->op->code != BERTH__OP_choose) return BERTH_VALUE_NONE;
  const berth__value *condition = &b->to->values[node->in[0]];
  if (condition->blob == NULL) return BERTH_VALUE_NONE;
  uint32_t one = *(const bool *)condition->data ? 1 : 2;
  return one < node->n_in ? node->in[one] : BERTH_VALUE_NONE;
}

/* Whether a choose that only a run can decide has lost one operand. It continues with the other. */
static bool is_half(const binding *b, const berth__node *node) {
  uint32_t there = 0, dropped = 0;
  if (node->op->code != BERTH__OP_choose || is_dropped(b->to, node->in[0])) return false;
  for (uint32_t i = 1; i < node->n_in; i++) {
    dropped += is_dropped(b->to, node->in[i]);
    there += node->in[i] != BERTH_VALUE_NONE && !is_dropped(b->to, node->in[i]);
  }
  return there == 1 && dropped == 1;
}

/* A dropped value that the node requires, or BERTH_VALUE_NONE. */
static berth_value dropped_operand(const binding *b, const berth__node *node) {
  berth_value chosen = chosen_operand(b, node);
  if (chosen != BERTH_VALUE_NONE) return is_dropped(b->to, chosen) ? chosen : BERTH_VALUE_NONE;
  if (is_half(b, node)) return BERTH_VALUE_NONE;
  for (uint32_t i = 0; i < node->n_in; i++)
    if (is_dropped(b->to, node->in[i])) return node->in[i];
  return BERTH_VALUE_NONE;
}

static berth_status add_chosen(const binding *b, const berth__node *node, berth_value chosen, berth_error *err) {
  const char *name = b->from->values[node->out[0]].name;
  *b->has_dropped = true;
  return berth__graph_add_op(b->to, berth__op_builtin(BERTH__OP_identity), &chosen, 1, NULL, 0, &name, NULL, 1, err);
}

static berth_status explain_dropped(const binding *b, berth_value value, berth_error *err);

/* Adds it without the operand that cannot be made, and with the reason, which a run reports if it needs the operand. */
static berth_status add_half(const binding *b, const berth__node *node, berth_error *err) {
  char text[400] = "";
  berth_value in[] = {node->in[BERTH__CHOOSE_CONDITION], node->in[BERTH__CHOOSE_THEN], node->in[BERTH__CHOOSE_ELSE]};
  for (uint32_t i = BERTH__CHOOSE_THEN; i <= BERTH__CHOOSE_ELSE; i++) {
    berth_error why = {.status = BERTH_OK};
    if (!is_dropped(b->to, in[i])) continue;
    if (explain_dropped(b, in[i], &why) == BERTH_NOMEM) return berth__fail_nomem(err, "a choice");
    snprintf(text, sizeof text, "the other branch cannot be made with these dimensions: %.320s", why.message);
    in[i] = BERTH_VALUE_NONE;
  }
  berth_attr reason = berth_attr_string("reason", text);
  berth__node half = *node;
  half.in = in;
  half.attrs = &reason;
  return add_bound(b, &half, err);
}

static berth_status try_node(const binding *b, const berth__node *node, berth_error *err) {
  berth_value chosen = chosen_operand(b, node);
  if (chosen != BERTH_VALUE_NONE)
    BERTH__TRY(add_chosen(b, node, chosen, err));
  else
    BERTH__TRY(is_half(b, node) ? add_half(b, node, err) : add_bound(b, node, err));
  if (b->keeps_names) return BERTH_OK;
  BERTH__TRY(berth__graph_evaluate(b->to, (uint32_t)b->to->n_nodes - 1, err));
  return berth__graph_enclose(b->to, (uint32_t)b->to->n_nodes - 1, err);
}

static berth_status bind_node(const binding *b, const berth__node *node, berth_error *err) {
  berth_value ignored;
  if (dropped_operand(b, node) == BERTH_VALUE_NONE) {
    berth_status status = try_node(b, node, b->may_drop ? NULL : err);
    if (status == BERTH_OK || !b->may_drop) return status;
    if (status == BERTH_NOMEM) return berth__fail_nomem(err, "a node");
  }
  *b->has_dropped = true;
  for (uint32_t i = 0; i < node->n_out; i++) {
    const berth__value *value = &b->from->values[node->out[i]];
    berth__value dropped = {.kind = BERTH_VALUE_DROPPED, .type = value->type, .node = UINT32_MAX};
    BERTH__TRY(berth__graph_new_value(b->to, value->name, &dropped, &ignored, err));
  }
  return BERTH_OK;
}

/* Fails with the original error if the value, or one that it depends on, was dropped. */
static berth_status explain_dropped(const binding *b, berth_value value, berth_error *err) {
  for (;;) {
    const berth__node *node = &b->from->nodes[b->from->values[value].node];
    berth_value before = dropped_operand(b, node);
    if (before == BERTH_VALUE_NONE) return try_node(b, node, err);
    value = before;
  }
}

static berth_status bind_output(const binding *b, const berth__output *output, berth_error *err) {
  if (is_dropped(b->to, output->value) && !is_dropped(b->from, output->value))
    return explain_dropped(b, output->value, err);
  return berth_graph_output(b->to, output->name, output->value, err);
}

static berth_status bind_update(const binding *b, const berth__update *update, berth_error *err) {
  if (is_dropped(b->to, update->next) && !is_dropped(b->from, update->next))
    return explain_dropped(b, update->next, err);
  return berth_graph_update(b->to, update->state, update->next, err);
}

/* Removes nodes that no output needs after a choice: their shapes may still be open. */
static berth_status remove_unneeded(berth_graph *graph, berth_error *err) {
  bool *remove = berth__alloc_array_zero(graph->ctx, graph->n_nodes, sizeof *remove);
  bool *needed = berth__alloc_array_zero(graph->ctx, graph->n_values, sizeof *needed);
  berth_status status = BERTH_OK;
  if (remove == NULL || needed == NULL) {
    status = berth__fail_nomem(err, "removing nodes");
  } else {
    berth__mark_needed(graph, needed);
    berth__mark_removable(graph, needed, remove);
    berth__graph_remove_nodes(graph, remove);
  }
  berth__free(graph->ctx, remove);
  berth__free(graph->ctx, needed);
  return status;
}

/* Says what would help: knowing the elements, or an upper bound of their number. */
static berth_status fail_open(const berth_graph *graph, const berth__value *value, berth_error *err) {
  const bool is_range = value->kind == BERTH_VALUE_NODE && graph->nodes[value->node].op->code == BERTH__OP_range;
  for (size_t i = 0; i < graph->n_inputs; i++)
    if (berth_graph_shapes_depend(graph, graph->inputs[i]) == BERTH_SHAPES_NEED)
      return berth__fail(err, BERTH_UNSUPPORTED,
                         "the shape of '%s' is not known with every dimension bound: shapes depend on the elements of "
                         "input '%s', which must be fixed before a plan is made",
                         value->name, graph->values[graph->inputs[i]].name);
  return berth__fail(err, BERTH_UNSUPPORTED,
                     "the shape of '%s' is not known with every dimension bound: it depends on elements that only a run"
                     " computes, and nothing bounds its size%s",
                     value->name,
                     is_range ? "; `most`, in ONNX a named or fixed dimension in its value_info, would" : "");
}

static berth_status check_all_fixed(const berth_graph *graph, berth_error *err) {
  for (size_t i = 0; i < graph->n_values; i++) {
    uint64_t size;
    if (graph->values[i].kind != BERTH_VALUE_DROPPED && !berth__value_size(&graph->values[i], &size))
      return fail_open(graph, &graph->values[i], err);
  }
  return BERTH_OK;
}

/* The clone numbers its dimensions like the original, so that shapes can be copied. */
static berth_status copy_dim_names(const binding *b, berth_error *err) {
  uint32_t index;
  for (size_t i = 0; i < b->from->n_dims; i++) BERTH__TRY(berth__graph_dim(b->to, b->from->dims[i], &index, err));
  return BERTH_OK;
}

static berth_status copy_into(const binding *b, berth_error *err) {
  const berth_graph *from = b->from;
  BERTH__TRY(b->keeps_names ? copy_dim_names(b, err) : check_dims(b, err));
  BERTH__TRY(berth__graph_set_weights_path(b->to, from->weights_path, err));
  for (size_t i = 0; i < from->n_keeps; i++) BERTH__TRY(berth__graph_keep(b->to, &from->keeps[i], err));
  while (b->to->n_values < from->n_values) {
    const berth__value *value = &from->values[b->to->n_values];
    if (value->kind == BERTH_VALUE_NODE)
      BERTH__TRY(bind_node(b, &from->nodes[value->node], err));
    else
      BERTH__TRY(bind_source(b, value, err));
  }
  for (size_t i = 0; i < from->n_outputs; i++) BERTH__TRY(bind_output(b, &from->outputs[i], err));
  for (size_t i = 0; i < from->n_updates; i++) BERTH__TRY(bind_update(b, &from->updates[i], err));
  if (*b->has_dropped) BERTH__TRY(remove_unneeded(b->to, err));
  if (b->keeps_names) return BERTH_OK;
  if (check_all_fixed(b->to, NULL) != BERTH_OK) BERTH__TRY(remove_unneeded(b->to, err));
  return check_all_fixed(b->to, err);
}

static berth_status copy_graph(binding *b, berth_graph **out, berth_error *err) {
  bool has_dropped = false;
  *out = NULL;
  b->has_dropped = &has_dropped;
  for (size_t i = 0; i < b->from->n_nodes && !b->keeps_names; i++)
    b->may_drop = b->may_drop || b->from->nodes[i].op->code == BERTH__OP_choose;
  BERTH__TRY(berth_graph_create(b->from->ctx, b->from->name, &b->to, err));
  b->to->is_bound = !b->keeps_names;
  berth_status status = copy_into(b, err);
  if (status != BERTH_OK) {
    berth_graph_destroy(b->to);
    return status;
  }
  *out = b->to;
  return BERTH_OK;
}

berth_status berth_graph_bind(const berth_graph *graph, const berth_dim *dims, size_t n_dims, berth_graph **out,
                              berth_error *err) {
  if (out == NULL) return berth__fail(err, BERTH_INVALID, "berth_graph_bind needs a pointer to store the graph");
  *out = NULL;
  if (graph == NULL) return berth__fail(err, BERTH_INVALID, "the graph is NULL");
  if (dims == NULL && n_dims != 0) return berth__fail(err, BERTH_INVALID, "dimensions are counted but not given");
  binding b = {.from = graph, .dims = dims, .n_dims = n_dims};
  BERTH__TRY(berth__graph_check_files(graph, err));
  BERTH__TRY(copy_graph(&b, out, err));
  const berth_status status = berth__graph_check_files(graph, err);
  if (status != BERTH_OK) {
    berth_graph_destroy(*out);
    *out = NULL;
  }
  return status;
}

berth_status berth__graph_clone(const berth_graph *graph, berth_graph **out, berth_error *err) {
  binding b = {.from = graph, .keeps_names = true};
  return copy_graph(&b, out, err);
}
