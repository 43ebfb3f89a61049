/* Parts born inside their concat.
 *
 * Where the parts of a concat lie one after the other in its result (every axis before the joined one has extent 1), a
 * part can be made right there, and nothing is copied. The price is that the result's bytes are taken as soon as the
 * first part is made, so each concat is tried and kept only when the load does not rise. */
#include "plan/alias.h"

bool berth__alias_is_joinable(const berth__alias *alias, const berth__node *node) {
  const berth_graph *graph = alias->graph;
  const berth__shape *shape = &graph->values[node->out[0]].shape;
  int64_t axis = 0;
  for (uint32_t i = 0; i < node->op->family->n_attrs; i++)
    if (strcmp(node->attrs[i].name, "axis") == 0) axis = node->attrs[i].i;
  if (axis < 0) axis += shape->rank;
  for (int64_t i = 0; i < axis; i++)
    if (shape->dim[i] != 1) return false;
  for (uint32_t i = 0; i < node->n_in; i++) /* behind a part whose extent is a bound, no place is certain */
    if (graph->values[node->in[i]].bounded != 0) return false;
  return true;
}

bool berth__alias_may_join(const berth__alias *alias, berth_value part, berth_value whole) {
  uint64_t offset;
  berth_value root = berth__alias_root(alias, part, &offset);
  const berth__alias_class *from = &alias->classes[root], *to = &alias->classes[whole];
  if (root == whole || alias->graph->values[root].kind != BERTH_VALUE_NODE || offset != 0 || from->size == 0)
    return false;
  if (from->is_prepared && !to->is_prepared) return false; /* what stays does not lie in what goes */
  berth_tensor tensor = berth__plan_tensor(alias->graph, part, alias->values[part].stride);
  uint64_t bytes = (uint64_t)berth__count(&tensor) * berth__plan_element(alias->flags, tensor.type);
  return berth__is_contiguous(&tensor) && bytes == from->size;
}

/* A part moves into the result when it is the whole of a root that nothing else claims, when nothing writes over it
 * behind the concat, and when it is read for the last time before anything writes over the result. */
static bool may_be_born_inside(const berth__alias *alias, berth_value part, berth_value whole, uint32_t step) {
  const berth__alias_class *from = &alias->classes[berth__alias_root(alias, part, NULL)], *to = &alias->classes[whole];
  return berth__alias_may_join(alias, part, whole) && from->last_write <= step && from->death <= to->first_write;
}

static void move_inside(berth__alias *alias, berth_value root, berth_value whole, uint64_t offset) {
  const berth__alias_class *from = &alias->classes[root];
  berth__alias_class *to = &alias->classes[whole];
  alias->values[root].parent = whole;
  alias->values[root].offset = offset;
  alias->values[root].born_inside = true;
  if (from->birth < to->birth) to->birth = from->birth;
  if (from->death > to->death) to->death = from->death;
  if (from->last_write > to->last_write) to->last_write = from->last_write;
  to->has_output = to->has_output || from->has_output;
  to->is_read_in_run = to->is_read_in_run || from->is_read_in_run;
}

static void move_back(berth__alias *alias, const berth__node *node, berth_value whole,
                      const berth__alias_class *before) {
  for (uint32_t i = 0; i < node->n_in; i++) {
    berth_value root = node->in[i];
    while (alias->values[root].parent != root && alias->values[root].parent != whole) root = alias->values[root].parent;
    if (root == whole || alias->values[root].parent != whole || !alias->values[root].born_inside) continue;
    alias->values[root].parent = root;
    alias->values[root].offset = 0;
    alias->values[root].born_inside = false;
  }
  alias->classes[whole] = *before;
}

/* True when a part was moved. */
static bool move_parts(berth__alias *alias, const berth__node *node, uint32_t step) {
  berth_value whole = node->out[0];
  uint64_t offset = 0;
  bool moved = false;
  for (uint32_t i = 0; i < node->n_in; i++) {
    berth_tensor part = berth__plan_tensor(alias->graph, node->in[i], alias->values[node->in[i]].stride);
    if (may_be_born_inside(alias, node->in[i], whole, step)) {
      move_inside(alias, berth__alias_root(alias, node->in[i], NULL), whole, offset);
      moved = true;
    }
    offset += (uint64_t)berth__count(&part) * berth__plan_element(alias->flags, part.type);
  }
  return moved;
}

void berth__alias_concat(berth__alias *alias, uint64_t align, uint64_t guard) {
  if (alias->flags & BERTH_PLAN_NO_CONCAT) return;
  uint64_t load = 0;
  bool load_is_known = false;
  for (uint32_t step = 0; step < alias->n_steps; step++) {
    const berth__node *node = &alias->graph->nodes[alias->order[step]];
    if (node->op->code != BERTH__OP_concat || alias->values[node->out[0]].parent != node->out[0]) continue;
    if (!berth__alias_is_joinable(alias, node)) continue;
    if (!load_is_known) load = berth__alias_load(alias, align, guard);
    load_is_known = true;
    berth__alias_class before = alias->classes[node->out[0]];
    if (!move_parts(alias, node, step)) continue;
    uint64_t after = berth__alias_load(alias, align, guard);
    if (after > load)
      move_back(alias, node, node->out[0], &before);
    else
      load = after;
  }
}
