/* Views and in-place results.
 *
 * Going through the steps in order, every result becomes one of three things:
 * a view      its op only reinterprets the bytes of operand 0 (reshape, slice, transpose, same-type cast);
 * strided views only if every reader supports strides
 * in place    its op may overwrite an operand of the same size whose class is dead after this step
 * a new root  with its own bytes
 *
 * The next value of a state is in the state's bytes; states.c ensures that all readers of the state itself come before.
 * Readers of the state's views may come later; then these are not views but copies.
 *
 * A loop's body runs repeatedly, so values from outside live to the loop's end, and nothing inside overwrites them. A
 * value carried by the loop has one place from its begin to its end: the next round's value is made there if an op may
 * overwrite this round's, and copied there otherwise. */
#include "plan/alias.h"

#include "base/math.h"
#include "ops/copy.h"

berth_value berth__alias_root(const berth__alias *alias, berth_value value, uint64_t *offset) {
  uint64_t total = 0;
  while (alias->values[value].parent != value) {
    total += alias->values[value].offset;
    value = alias->values[value].parent;
  }
  if (offset != NULL) *offset = total;
  return value;
}

/* Values that only the prelude reads are read directly from the file. */
static bool is_for_prelude(const berth__alias *alias, berth_value root) {
  return alias->last_use[root] != 0 && !alias->classes[root].is_read_in_run;
}

bool berth__alias_in_arena(const berth__alias *alias, berth_value root) {
  switch (alias->graph->values[root].kind) {
    case BERTH_VALUE_INPUT: return !(alias->flags & BERTH_PLAN_INPUTS_OUTSIDE);
    case BERTH_VALUE_PARAM: return !(alias->flags & BERTH_PLAN_PARAMS_OUTSIDE) && !is_for_prelude(alias, root);
    case BERTH_VALUE_CONSTANT: return !(alias->flags & BERTH_PLAN_CONSTANTS_OUTSIDE) && !is_for_prelude(alias, root);
    case BERTH_VALUE_DROPPED: return false;
    case BERTH_VALUE_STATE:
    case BERTH_VALUE_NODE: break;
  }
  return true;
}

static berth_tensor tensor_of(const berth__alias *alias, berth_value value) {
  return berth__plan_tensor(alias->graph, value, alias->values[value].stride);
}

static berth__reach reach_of(const berth__node *node, uint32_t operand) {
  if (!berth__op_takes_strided(node->op, operand)) return BERTH__REACH_CONTIGUOUS;
  return berth__op_wants_unit_last(node->op, node->attrs, operand) ? BERTH__REACH_UNIT_LAST : BERTH__REACH_STRIDED;
}

/* The strides that its readers must support. */
static berth__reach reach_needed(const berth_tensor *tensor) {
  if (berth__is_contiguous(tensor)) return BERTH__REACH_CONTIGUOUS;
  return tensor->stride[tensor->rank - 1] == 1 ? BERTH__REACH_UNIT_LAST : BERTH__REACH_STRIDED;
}

/* Records a read by a step; if loops contain the step but not the value, also a read at their ends. Graphs with loops
 * keep their order, so nodes are steps there. */
static void plan_alias_note_read(berth__alias *alias, berth_value value, uint32_t step) {
  const berth__regions *regions = &alias->regions;
  uint32_t last = step + 1;
  if (regions->count > 1) {
    uint32_t home = berth__region_of_value(regions, alias->graph, value);
    for (uint32_t r = berth__region_of(regions, step); r != home && r != 0; r = regions->items[r].parent)
      last = regions->items[r].end + 1;
  }
  if (last > alias->last_use[value]) alias->last_use[value] = last;
}

/* A condition is read before every step that depends on it. */
static void plan_alias_note_conditions(berth__alias *alias, uint32_t step) {
  const berth__condition *conditions = alias->conditions.items;
  for (uint32_t g = alias->conditions.of_step[step]; g != BERTH__NO_CONDITION; g = conditions[g].parent)
    plan_alias_note_read(alias, conditions[g].condition, step);
}

/* A loop_end has the places of carried values as operands, but does not need what they held at the start of the
 * round. */
static bool is_place_only(const berth__node *node, uint32_t operand) {
  return node->op->code == BERTH__OP_loop_end && operand >= BERTH__LOOP_END_CARRIED &&
         operand < BERTH__LOOP_END_CARRIED + berth__loop_end_carried(node->n_in, node->n_out);
}

/* Even if runs have no strided views, the prelude has them: a transposed weight that is packed is never copied. */
static bool may_stride_for(const berth__alias *alias, uint32_t reader) {
  if (!(alias->flags & BERTH_PLAN_NO_STRIDED)) return true;
  return reader < alias->n_prelude && !(alias->flags & BERTH_PLAN_NO_REUSE);
}

/* Who reads each value, and when for the last time. */
static void plan_alias_note_readers(berth__alias *alias) {
  const berth_graph *graph = alias->graph;
  for (size_t v = 0; v < graph->n_values; v++)
    alias->may_stride[v] = may_stride_for(alias, alias->n_steps) ? BERTH__REACH_STRIDED : BERTH__REACH_CONTIGUOUS;
  for (uint32_t step = 0; step < alias->n_steps; step++) {
    const berth__node *node = &graph->nodes[alias->order[step]];
    alias->step_of[alias->order[step]] = step;
    plan_alias_note_conditions(alias, step);
    for (uint32_t i = 0; i < node->n_out && step < alias->n_prelude; i++)
      if (may_stride_for(alias, step)) alias->may_stride[node->out[i]] = BERTH__REACH_STRIDED;
    for (uint32_t i = 0; i < node->n_in; i++) {
      if (node->in[i] == BERTH_VALUE_NONE) continue;
      if (!is_place_only(node, i)) plan_alias_note_read(alias, node->in[i], step);
      const berth__reach reach = may_stride_for(alias, step) ? reach_of(node, i) : BERTH__REACH_CONTIGUOUS;
      if (reach < alias->may_stride[node->in[i]]) alias->may_stride[node->in[i]] = reach;
    }
  }
  for (size_t i = 0; i < berth__graph_n_kept(graph); i++) {
    alias->is_output[berth__graph_kept(graph, i)] = true;
    alias->may_stride[berth__graph_kept(graph, i)] = BERTH__REACH_CONTIGUOUS;
  }
  for (size_t v = 0; v < graph->n_values; v++) alias->state_of[v] = BERTH_VALUE_NONE;
  for (size_t i = 0; i < graph->n_updates; i++) alias->state_of[graph->updates[i].next] = graph->updates[i].state;
}

static bool is_of_prelude(const berth__alias *alias, berth_value value) {
  const berth__value *v = &alias->graph->values[value];
  return v->kind == BERTH_VALUE_NODE && alias->step_of[v->node] < alias->n_prelude &&
         alias->last_use[value] > alias->n_prelude;
}

/* The step after the last one that needs this value. */
static uint32_t death_of(const berth__alias *alias, berth_value value, uint32_t birth) {
  berth_value_kind kind = alias->graph->values[value].kind;
  bool dies = kind == BERTH_VALUE_NODE || (kind == BERTH_VALUE_INPUT && (alias->flags & BERTH_PLAN_INPUTS_DIE));
  if (alias->is_output[value] || !dies || (alias->flags & BERTH_PLAN_NO_REUSE)) return berth__plan_end(alias->n_steps);
  if (is_of_prelude(alias, value)) return berth__plan_end(alias->n_steps);
  return alias->last_use[value] > birth ? alias->last_use[value] : birth + 1;
}

uint64_t berth__alias_bytes(const berth__alias *alias, berth_value value) {
  int64_t count = 0;
  berth__shape_count(&alias->graph->values[value].shape, &count);
  return berth__storage_size(alias->values[value].storage, (uint64_t)count);
}

static void make_root(berth__alias *alias, berth_value value, uint32_t birth) {
  berth__alias_value *v = &alias->values[value];
  const berth__shape *shape = &alias->graph->values[value].shape;
  v->parent = value;
  berth__contiguous_strides(shape->rank, shape->dim, v->stride);
  if (alias->flags & BERTH_PLAN_NO_REUSE) birth = 0;
  alias->classes[value] = (berth__alias_class){.size = berth__alias_bytes(alias, value),
                                               .birth = birth,
                                               .death = death_of(alias, value, birth),
                                               .first_write = UINT32_MAX,
                                               .has_output = alias->is_output[value],
                                               .is_of_prelude = is_of_prelude(alias, value)};
}

/* Adds a member: the class lives at least as long as it does. */
static void plan_alias_join(berth__alias *alias, berth_value value, berth_value parent, uint64_t offset,
                            uint32_t step) {
  uint64_t before;
  berth_value root = berth__alias_root(alias, parent, &before);
  berth__alias_class *class = &alias->classes[root];
  alias->values[value].parent = root; /* directly below the root: paths stay short */
  alias->values[value].offset = before + offset;
  uint32_t death = death_of(alias, value, step);
  if (death > class->death) class->death = death;
  class->has_output = class->has_output || alias->is_output[value];
  class->is_of_prelude = class->is_of_prelude || is_of_prelude(alias, value);
}

/* Views are derived from attributes; if an operand replaces one, the node's effect is not known until it runs. */
static bool is_shown_by_attrs(const berth__node *node) {
  for (uint32_t i = 1; i < node->n_in && i < BERTH__ATTR_OPERANDS; i++)
    if (node->in[i] != BERTH_VALUE_NONE && node->op->family->attr_of[i] != 0) return false;
  return true;
}

/* The position of a view depends on extents, and these may differ from the planned ones. All elements in their order
 * are where they were, though, as long as they lie one after the other. */
static bool may_show(const berth__alias *alias, const berth__node *node) {
  const berth_graph *graph = alias->graph;
  bool has_bounded = graph->values[node->in[0]].bounded != 0;
  for (uint32_t i = 0; i < node->n_out; i++) has_bounded = has_bounded || graph->values[node->out[i]].bounded != 0;
  const berth_tensor in = tensor_of(alias, node->in[0]);
  return !has_bounded || (node->op->family->view == berth__view_reshaped && berth__is_contiguous(&in));
}

/* Whether the bytes belong to a state and hold its next value before the view is read for the last time. */
static bool outlives_state(const berth__alias *alias, berth_value root, berth_value view, uint32_t step) {
  const berth_graph *graph = alias->graph;
  if (graph->values[root].kind != BERTH_VALUE_STATE) return false;
  const berth_value next = berth_graph_next(graph, root);
  return next != BERTH_VALUE_NONE && alias->step_of[graph->values[next].node] > step &&
         death_of(alias, view, step) > alias->step_of[graph->values[next].node];
}

/* Whether a view consists of whole blocks along the last axis. */
static bool cuts_blocks_whole(berth_storage storage, const berth_tensor *out, int64_t offset) {
  const int64_t block = storage.elements;
  if (block == 1) return true;
  bool is_whole = offset % block == 0 && out->rank != 0 && out->dim[out->rank - 1] % block == 0 &&
                  (out->stride[out->rank - 1] == 1 || out->dim[out->rank - 1] <= 1);
  for (uint32_t axis = 0; axis + 1 < out->rank; axis++)
    is_whole = is_whole && (out->dim[axis] == 1 || out->stride[axis] % block == 0);
  return is_whole;
}

/* Makes the results of a node views of operand 0: all of them or none, since a kernel writes all. */
static bool try_views(berth__alias *alias, const berth__node *node, uint32_t step) {
  const berth__family *family = node->op->family;
  if (family->view == NULL || node->n_in == 0 || node->in[0] == BERTH_VALUE_NONE) return false;
  if (!is_shown_by_attrs(node) || !may_show(alias, node)) return false;
  berth_tensor in = tensor_of(alias, node->in[0]);
  const berth_value root = berth__alias_root(alias, node->in[0], NULL);
  int64_t offset;
  for (uint32_t i = 0; i < node->n_out; i++) {
    if (alias->state_of[node->out[i]] != BERTH_VALUE_NONE || outlives_state(alias, root, node->out[i], step))
      return false;
    const berth__value *value = &alias->graph->values[node->out[i]];
    int64_t *stride = alias->values[node->out[i]].stride;
    if (!family->view(&in, node->attrs, &value->shape, value->type, i, &offset, stride)) return false;
    berth_tensor out = berth__plan_tensor(alias->graph, node->out[i], stride);
    if (reach_needed(&out) > alias->may_stride[node->out[i]]) return false;
    if (!cuts_blocks_whole(alias->values[node->in[0]].storage, &out, offset)) return false;
  }
  const berth_storage storage = alias->values[node->in[0]].storage;
  for (uint32_t i = 0; i < node->n_out; i++) {
    const berth__value *value = &alias->graph->values[node->out[i]];
    berth__alias_value *view = &alias->values[node->out[i]];
    family->view(&in, node->attrs, &value->shape, value->type, i, &offset, view->stride);
    berth_tensor out = tensor_of(alias, node->out[i]);
    if (berth__count(&out) == 0) offset = 0; /* empty: any position inside the root */
    view->is_view = true;
    view->storage = storage;
    plan_alias_join(alias, node->out[i], node->in[0], berth__storage_size(storage, (uint64_t)offset), step);
  }
  return true;
}

/* Another operand in the same bytes would be read after being overwritten, unless it is the same value and the kernel
 * allows overwriting that operand too. */
static bool others_share(const berth__alias *alias, const berth__node *node, uint32_t operand, uint32_t allowed,
                         berth_value root) {
  for (uint32_t i = 0; i < node->n_in; i++) {
    if (i == operand || node->in[i] == BERTH_VALUE_NONE) continue;
    if (berth__alias_root(alias, node->in[i], NULL) != root) continue;
    bool same_value = node->in[i] == node->in[operand];
    if (!same_value || i > 31 || !(allowed >> i & 1u)) return true;
  }
  return false;
}

/* Shapes that are equal in the plan must also be equal at run time. They are if a single operand determines them. */
static bool stays_equal(const berth_graph *graph, const berth__node *node, uint32_t operand, berth_value out) {
  const uint32_t bounded = graph->values[out].bounded;
  if (graph->values[node->in[operand]].bounded != bounded) return false;
  for (uint32_t i = 0; i < node->n_in && bounded != 0; i++)
    if (node->in[i] != BERTH_VALUE_NONE && node->in[i] != node->in[operand] && graph->values[node->in[i]].bounded != 0)
      return false;
  return true;
}

bool berth__alias_may_overwrite(const berth__alias *alias, const berth__node *node, uint32_t operand, uint32_t index) {
  const berth_value in = node->in[operand], out = node->out[index];
  if (in == BERTH_VALUE_NONE) return false;
  const berth__value *a = &alias->graph->values[in], *b = &alias->graph->values[out];
  if (!berth__shape_equal(&a->shape, &b->shape) || berth_type_size(a->type) != berth_type_size(b->type)) return false;
  if (!berth__storage_same_width(alias->values[in].storage, alias->values[out].storage)) return false;
  if (!stays_equal(alias->graph, node, operand, out)) return false;
  berth_value root = berth__alias_root(alias, in, NULL);
  const berth__alias_class *class = &alias->classes[root];
  berth_value_kind kind = alias->graph->values[root].kind;
  bool may_die = kind == BERTH_VALUE_NODE || (kind == BERTH_VALUE_INPUT && (alias->flags & BERTH_PLAN_INPUTS_DIE));
  if (!may_die || !berth__alias_in_arena(alias, root)) return false;
  if (class->has_output || class->is_of_prelude || class->size != berth__alias_bytes(alias, out)) return false;
  berth_tensor tensor = tensor_of(alias, in);
  const uint32_t allowed = berth__op_in_place_at(node->op, node->attrs, index);
  return berth__is_contiguous(&tensor) && !others_share(alias, node, operand, allowed, root);
}

/* Whether an earlier result of the node overwrites these bytes already. */
static bool plan_alias_is_taken(const berth__alias *alias, const berth__node *node, uint32_t index, berth_value root) {
  for (uint32_t i = 0; i < index; i++)
    if (berth__alias_root(alias, node->out[i], NULL) == root) return true;
  return false;
}

static bool may_overwrite(const berth__alias *alias, const berth__node *node, uint32_t operand, uint32_t index,
                          uint32_t step) {
  if (!berth__alias_may_overwrite(alias, node, operand, index)) return false;
  const berth_value root = berth__alias_root(alias, node->in[operand], NULL);
  return alias->classes[root].death <= step + 1 && !plan_alias_is_taken(alias, node, index, root);
}

static void write_over(berth__alias *alias, berth_value operand, berth_value out, uint32_t step) {
  const berth__shape *shape = &alias->graph->values[out].shape;
  berth__contiguous_strides(shape->rank, shape->dim, alias->values[out].stride);
  alias->values[out].in_place = true;
  plan_alias_join(alias, out, operand, 0, step);
  berth__alias_class *class = &alias->classes[berth__alias_root(alias, out, NULL)];
  if (class->first_write > step) class->first_write = step;
  class->last_write = step;
}

static bool is_in_place_off(const berth__alias *alias) {
  return (alias->flags & (BERTH_PLAN_NO_INPLACE | BERTH_PLAN_NO_REUSE)) != 0;
}

static bool try_in_place(berth__alias *alias, const berth__node *node, uint32_t index, uint32_t step) {
  if (is_in_place_off(alias)) return false;
  const uint32_t allowed = berth__op_in_place_at(node->op, node->attrs, index);
  for (uint32_t i = 0; i < node->n_in && i < 32; i++) {
    if (!(allowed >> i & 1u) || !may_overwrite(alias, node, i, index, step)) continue;
    write_over(alias, node->in[i], node->out[index], step);
    return true;
  }
  return false;
}

/* The next value of a state: in the state's bytes, whether or not the node reads them. */
static bool try_state(berth__alias *alias, const berth__node *node, uint32_t index, uint32_t step) {
  const berth_value out = node->out[index], state = alias->state_of[out];
  if (state == BERTH_VALUE_NONE) return false;
  write_over(alias, state, out, step);
  alias->values[out].in_place = false;
  for (uint32_t i = 0; i < node->n_in; i++)
    if (node->in[i] == state) alias->values[out].in_place = true;
  return true;
}

/* A carried value takes over the place of its first value if that dies here. */
static void place_loop_begin(berth__alias *alias, const berth__node *node, uint32_t step) {
  for (uint32_t i = 0; i < node->n_out; i++) {
    if (i >= BERTH__LOOP_CARRIED && !is_in_place_off(alias) && may_overwrite(alias, node, i, i, step))
      write_over(alias, node->in[i], node->out[i], step);
    else
      make_root(alias, node->out[i], step);
  }
}

/* The final values take over the places of the carried ones; stacked results are written in every round. */
static void place_loop_end(berth__alias *alias, const berth__node *node, uint32_t step) {
  uint32_t n_carried = berth__loop_end_carried(node->n_in, node->n_out), stacked = BERTH__LOOP_LAST + n_carried;
  uint32_t begin = alias->regions.items[berth__region_of(&alias->regions, step)].begin;
  write_over(alias, node->in[BERTH__LOOP_ROUND], node->out[BERTH__LOOP_ROUNDS], step);
  make_root(alias, node->out[BERTH__LOOP_AGAIN], step);
  for (uint32_t i = 0; i < n_carried; i++)
    write_over(alias, node->in[BERTH__LOOP_END_CARRIED + i], node->out[BERTH__LOOP_LAST + i], step);
  for (uint32_t i = stacked; i < node->n_out; i++) {
    make_root(alias, node->out[i], step);
    if (alias->classes[node->out[i]].birth > begin) alias->classes[node->out[i]].birth = begin;
  }
}

static void place_results(berth__alias *alias, uint32_t step) {
  const berth__node *node = &alias->graph->nodes[alias->order[step]];
  if (node->op->code == BERTH__OP_loop_begin) {
    place_loop_begin(alias, node, step);
    return;
  }
  if (node->op->code == BERTH__OP_loop_end) {
    place_loop_end(alias, node, step);
    return;
  }
  if (try_views(alias, node, step)) return;
  for (uint32_t i = 0; i < node->n_out; i++)
    if (!try_state(alias, node, i, step) && !try_in_place(alias, node, i, step)) make_root(alias, node->out[i], step);
}

static void note_run_reads(berth__alias *alias) {
  const berth_graph *graph = alias->graph;
  for (uint32_t step = alias->n_prelude; step < alias->n_steps; step++) {
    const berth__node *node = &graph->nodes[alias->order[step]];
    for (uint32_t i = 0; i < node->n_in; i++)
      if (node->in[i] != BERTH_VALUE_NONE)
        alias->classes[berth__alias_root(alias, node->in[i], NULL)].is_read_in_run = true;
  }
  for (size_t i = 0; i < berth__graph_n_kept(graph); i++)
    alias->classes[berth__alias_root(alias, berth__graph_kept(graph, i), NULL)].is_read_in_run = true;
}

/* If this sum is in range, no sum of sizes in the planner can overflow, including rounding. */
static berth_status check_total(const berth__alias *alias, berth_error *err) {
  uint64_t total = 0;
  for (size_t v = 0; v < alias->graph->n_values; v++) {
    const berth__value *value = &alias->graph->values[v];
    int64_t count;
    uint64_t bytes = 0;
    bool fits = berth__shape_count(&value->shape, &count) &&
                berth__storage_bytes(alias->values[v].storage, (uint64_t)count, &bytes) &&
                berth__add_u64(total, bytes, &total);
    if (!fits || total > INT64_MAX / 4)
      return berth__fail(err, BERTH_INVALID, "the values up to '%s' need more bytes than 61 bits can count",
                         value->name);
  }
  return BERTH_OK;
}

static berth_status plan_alias_allocate(berth__alias *alias, berth_error *err) {
  berth_context *ctx = alias->ctx;
  size_t n = alias->graph->n_values;
  alias->step_of = berth__alloc_array_zero(ctx, alias->graph->n_nodes, sizeof *alias->step_of);
  alias->last_use = berth__alloc_array_zero(ctx, n, sizeof *alias->last_use);
  alias->is_output = berth__alloc_array_zero(ctx, n, sizeof *alias->is_output);
  alias->state_of = berth__alloc_array(ctx, n, sizeof *alias->state_of);
  alias->may_stride = berth__alloc_array_zero(ctx, n, sizeof *alias->may_stride);
  alias->values = berth__alloc_array_zero(ctx, n, sizeof *alias->values);
  alias->classes = berth__alloc_array_zero(ctx, n, sizeof *alias->classes);
  alias->delta = berth__alloc_array(ctx, (size_t)berth__plan_end(alias->n_steps) + 1, sizeof *alias->delta);
  bool ok = alias->step_of && alias->last_use && alias->is_output && alias->state_of && alias->may_stride &&
            alias->values && alias->classes && alias->delta;
  return ok ? BERTH_OK : berth__fail_nomem(err, "planning");
}

/* A view gets the storage of its root. */
static void set_storages(berth__alias *alias, const berth_storage *storages) {
  for (size_t v = 0; v < alias->graph->n_values; v++)
    alias->values[v].storage = storages != NULL ? storages[v] : berth_type_storage(alias->graph->values[v].type);
}

berth_status berth__alias_create(berth__alias *alias, const berth_graph *graph, const berth_storage *storages,
                                 uint32_t flags, const uint32_t *order, uint32_t n_prelude, berth_error *err) {
  if (flags & BERTH_PLAN_NO_REUSE) flags |= BERTH_PLAN_NO_STRIDED | BERTH_PLAN_NO_CONCAT | BERTH_PLAN_NO_INPLACE;
  *alias = (berth__alias){.ctx = graph->ctx,
                          .graph = graph,
                          .flags = flags,
                          .order = order,
                          .n_steps = (uint32_t)graph->n_nodes,
                          .n_prelude = n_prelude,
                          .aim = UINT64_MAX};
  berth_status status = berth__regions_create(graph, &alias->regions, err);
  if (status == BERTH_OK) status = berth__conditions_create(graph, order, &alias->conditions, err);
  if (status == BERTH_OK) status = plan_alias_allocate(alias, err);
  if (status == BERTH_OK) set_storages(alias, storages);
  if (status == BERTH_OK) status = check_total(alias, err);
  if (status != BERTH_OK) {
    berth__alias_free(alias);
    return status;
  }
  plan_alias_note_readers(alias);
  for (size_t v = 0; v < graph->n_values; v++)
    if (graph->values[v].kind != BERTH_VALUE_NODE) make_root(alias, (berth_value)v, 0);
  for (uint32_t step = 0; step < alias->n_steps; step++) place_results(alias, step);
  note_run_reads(alias);
  return BERTH_OK;
}

void berth__alias_free(berth__alias *alias) {
  berth__conditions_free(alias->ctx, &alias->conditions);
  berth__regions_free(alias->ctx, &alias->regions);
  berth__free(alias->ctx, alias->step_of);
  berth__free(alias->ctx, alias->last_use);
  berth__free(alias->ctx, alias->is_output);
  berth__free(alias->ctx, alias->state_of);
  berth__free(alias->ctx, alias->may_stride);
  berth__free(alias->ctx, alias->values);
  berth__free(alias->ctx, alias->classes);
  berth__free(alias->ctx, alias->delta);
  berth__free(alias->ctx, alias->scratch);
  *alias = (berth__alias){.ctx = alias->ctx};
}

uint64_t berth__alias_staging(const berth__alias *alias, const berth__node *node) {
  if (node->op->code != BERTH__OP_loop_end) return 0;
  uint32_t n_carried = berth__loop_end_carried(node->n_in, node->n_out);
  uint64_t total = 0;
  for (uint32_t i = 0; i < n_carried; i++) {
    berth_value next = node->in[BERTH__LOOP_END_CARRIED + n_carried + i], root = berth__alias_root(alias, next, NULL);
    bool is_in_the_way = false;
    for (uint32_t k = 0; k < n_carried; k++)
      is_in_the_way =
          is_in_the_way || (k != i && berth__alias_root(alias, node->out[BERTH__LOOP_LAST + k], NULL) == root);
    if (is_in_the_way) total += berth__alias_bytes(alias, next);
  }
  return total;
}

bool berth__alias_is_preparation(const berth__alias *alias, berth_value root) {
  return alias->graph->values[root].kind == BERTH_VALUE_NODE && alias->classes[root].death <= alias->n_prelude;
}

uint64_t berth__alias_load(berth__alias *alias, uint64_t align, uint64_t guard) {
  uint32_t end = berth__plan_end(alias->n_steps);
  memset(alias->delta, 0, ((size_t)end + 1) * sizeof *alias->delta);
  for (size_t v = 0; v < alias->graph->n_values; v++) {
    const berth__alias_class *class = &alias->classes[v];
    berth_value_kind kind = alias->graph->values[v].kind;
    if (alias->values[v].parent != v || class->size == 0 || !berth__alias_in_arena(alias, (berth_value)v)) continue;
    if (kind == BERTH_VALUE_PARAM || kind == BERTH_VALUE_CONSTANT || kind == BERTH_VALUE_STATE || class->is_of_prelude)
      continue;
    if (berth__alias_is_preparation(alias, (berth_value)v)) continue;
    bool is_boundary = kind == BERTH_VALUE_INPUT || class->has_output;
    uint64_t room = class->size + (is_boundary ? guard : 0);
    int64_t rounded = (int64_t)((room + align - 1) & ~(align - 1));
    alias->delta[class->birth] += rounded;
    alias->delta[class->death] -= rounded;
  }
  int64_t now = 0, most = 0;
  alias->excess = 0;
  for (uint32_t t = 0; t < end; t++) {
    now += alias->delta[t];
    const bool has_scratch = alias->scratch != NULL && t < alias->n_steps && t >= alias->n_prelude;
    uint64_t scratch = has_scratch ? alias->scratch[alias->order[t]] : 0;
    int64_t here = now + (int64_t)((scratch + align - 1) & ~(align - 1));
    if (here > most) most = here;
    if ((uint64_t)here > alias->aim) {
      const double over = (double)((uint64_t)here - alias->aim);
      alias->excess += over * over * over * over;
    }
  }
  return (uint64_t)most;
}
