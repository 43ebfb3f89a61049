/* Parts computed inside their concat.
 *
 * If the parts of a concat are contiguous pieces of its result (every axis before the joined one has extent 1), a part
 * can be made in place, and nothing is copied. The price is that the result's bytes are occupied as soon as the first
 * part is made, so each concat is tried and kept only if the load does not rise: all parts, and otherwise as many of
 * the last ones as possible.
 *
 * An input can be such a part too: it exists from the beginning, and the concat does not change it, so this works even
 * for an input that stays. If inputs may die they may also lie in the result with gaps, along any axis, since no kernel
 * writes them: the caller does, block by block (device/arena.c). A cache that a model takes and returns longer is then
 * in memory only once. */
#include "plan/alias.h"

static uint32_t joined_axis(const berth_graph *graph, const berth__node *node) {
  const int64_t axis = node->attrs[BERTH__CONCAT_AXIS].i;
  return (uint32_t)(axis < 0 ? axis + graph->values[node->out[0]].shape.rank : axis);
}

static bool parts_are_contiguous(const berth_graph *graph, const berth__node *node) {
  const uint32_t axis = joined_axis(graph, node);
  for (uint32_t i = 0; i < axis; i++)
    if (graph->values[node->out[0]].shape.dim[i] != 1) return false;
  return true;
}

/* The positions after a part whose extent is a bound are unknown; one beside empty parts alone is at the beginning. */
static bool has_bounds(const berth_graph *graph, const berth__node *node) {
  const uint32_t axis = joined_axis(graph, node);
  uint32_t n_filled = 0;
  bool is_bounded = false;
  for (uint32_t i = 0; i < node->n_in; i++) {
    const berth__value *part = &graph->values[node->in[i]];
    is_bounded = is_bounded || part->bounded != 0;
    n_filled += part->shape.dim[axis] != 0;
  }
  return is_bounded && n_filled > 1;
}

/* Results of nodes, and inputs: weights and constants are placed elsewhere. */
static bool may_move(const berth__alias *alias, berth_value root) {
  const berth_value_kind kind = alias->graph->values[root].kind;
  return kind == BERTH_VALUE_NODE || (kind == BERTH_VALUE_INPUT && berth__alias_in_arena(alias, root));
}

bool berth__alias_is_joinable(const berth__alias *alias, const berth__node *node) {
  return parts_are_contiguous(alias->graph, node) && !has_bounds(alias->graph, node);
}

bool berth__alias_may_join(const berth__alias *alias, berth_value part, berth_value whole) {
  uint64_t offset;
  berth_value root = berth__alias_root(alias, part, &offset);
  const berth__alias_class *from = &alias->classes[root], *to = &alias->classes[whole];
  if (root == whole || !may_move(alias, root) || offset != 0 || from->size == 0) return false;
  if (from->is_of_prelude && !to->is_of_prelude) return false; /* a value that stays must not be inside one that dies */
  berth_tensor tensor = berth__plan_tensor(alias->graph, part, alias->values[part].stride);
  if (!berth__storage_equal(alias->values[part].storage, alias->values[whole].storage)) return false;
  return berth__is_contiguous(&tensor) && berth__alias_bytes(alias, part) == from->size;
}

/* A part moves into the result if it is a whole root that is not moved elsewhere, if nothing overwrites it after the
 * concat, and if its last read comes before anything overwrites the result. */
static bool may_be_born_inside(const berth__alias *alias, berth_value part, berth_value whole, uint32_t step) {
  const berth__alias_class *from = &alias->classes[berth__alias_root(alias, part, NULL)], *to = &alias->classes[whole];
  return berth__alias_may_join(alias, part, whole) && from->last_write <= step && from->death <= to->first_write;
}

/* An input may lie there with gaps if it has no views with other strides and every reader supports strides. */
static bool may_lie_with_gaps(const berth__alias *alias, berth_value part, berth_value whole) {
  const berth__alias_class *from = &alias->classes[part], *to = &alias->classes[whole];
  if (!(alias->flags & BERTH_PLAN_INPUTS_DIE)) return false; /* otherwise callers may fill it directly in the arena */
  if (alias->graph->values[part].kind != BERTH_VALUE_INPUT || !berth__alias_in_arena(alias, part)) return false;
  if (alias->values[part].parent != part || from->size == 0 || from->death > to->first_write) return false;
  if (alias->may_stride[part] < BERTH__REACH_UNIT_LAST) return false;
  if (!berth__storage_equal(alias->values[part].storage, alias->values[whole].storage)) return false;
  for (size_t v = 0; v < alias->graph->n_values; v++)
    if (v != part && alias->values[v].parent == part) return false;
  return true;
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

/* Undoes it. */
static void plan_concat_move_out(berth__alias *alias, berth_value part, berth_value whole) {
  berth_value root = part;
  while (alias->values[root].parent != root && alias->values[root].parent != whole) root = alias->values[root].parent;
  if (root == whole || alias->values[root].parent != whole || !alias->values[root].born_inside) return;
  alias->values[root].parent = root;
  alias->values[root].offset = 0;
  alias->values[root].born_inside = false;
  const berth__shape *shape = &alias->graph->values[root].shape;
  berth__contiguous_strides(shape->rank, shape->dim, alias->values[root].stride);
}

static void move_back(berth__alias *alias, const berth__node *node, berth_value whole,
                      const berth__alias_class *before) {
  for (uint32_t i = 0; i < node->n_in; i++) plan_concat_move_out(alias, node->in[i], whole);
  alias->classes[whole] = *before;
}

/* True if the part was moved. `first`: its first element within the whole. */
static bool plan_concat_move_part(berth__alias *alias, const berth__node *node, uint32_t i, uint64_t first,
                                  uint32_t step) {
  const berth_value part = node->in[i], whole = node->out[0];
  const bool is_contiguous = parts_are_contiguous(alias->graph, node);
  if (!(is_contiguous ? may_be_born_inside(alias, part, whole, step) : may_lie_with_gaps(alias, part, whole)))
    return false;
  move_inside(alias, berth__alias_root(alias, part, NULL), whole,
              berth__storage_size(alias->values[whole].storage, first));
  if (!is_contiguous)
    memcpy(alias->values[part].stride, alias->values[whole].stride, sizeof alias->values[part].stride);
  return true;
}

/* The elements of a part and the gaps between them. */
static uint64_t plan_concat_extent(const berth__alias *alias, const berth__node *node, uint32_t i) {
  const uint32_t axis = joined_axis(alias->graph, node);
  return (uint64_t)(alias->graph->values[node->in[i]].shape.dim[axis] * alias->values[node->out[0]].stride[axis]);
}

/* True if a part was moved. */
static bool plan_concat_move_parts(berth__alias *alias, const berth__node *node, uint32_t step) {
  uint64_t first = 0;
  bool moved = false;
  for (uint32_t i = 0; i < node->n_in; i++) {
    moved = plan_concat_move_part(alias, node, i, first, step) || moved;
    first += plan_concat_extent(alias, node, i);
  }
  return moved;
}

typedef struct measure {
  uint64_t align, guard;
  uint64_t load;
  double excess;
} measure;

static void plan_concat_measure(berth__alias *alias, measure *m) {
  m->load = berth__alias_load(alias, m->align, m->guard);
  m->excess = alias->excess;
}

/* Whether the load is no larger than before, and no step that exceeds the aim is fuller on balance; *m becomes the new
 * one then. */
static bool plan_concat_is_no_worse(berth__alias *alias, measure *m) {
  measure next = *m;
  plan_concat_measure(alias, &next);
  if (next.load > m->load || (next.load == m->load && next.excess > m->excess)) return false;
  *m = next;
  return true;
}

/* The parts that are made last, as many as fit: the earlier a part is made, the longer the result's bytes are
 * occupied. */
static void plan_concat_move_last(berth__alias *alias, const berth__node *node, uint32_t step, measure *m) {
  uint64_t first = 0;
  for (uint32_t i = 0; i < node->n_in; i++) first += plan_concat_extent(alias, node, i);
  for (uint32_t i = node->n_in; i-- > 0;) {
    const berth__alias_class before = alias->classes[node->out[0]];
    first -= plan_concat_extent(alias, node, i);
    if (!plan_concat_move_part(alias, node, i, first, step) || plan_concat_is_no_worse(alias, m)) continue;
    plan_concat_move_out(alias, node->in[i], node->out[0]);
    alias->classes[node->out[0]] = before;
    return;
  }
}

void berth__alias_concat(berth__alias *alias, uint64_t align, uint64_t guard) {
  if (alias->flags & BERTH_PLAN_NO_CONCAT) return;
  measure m = {.align = align, .guard = guard};
  bool is_measured = false;
  for (uint32_t step = 0; step < alias->n_steps; step++) {
    const berth__node *node = &alias->graph->nodes[alias->order[step]];
    if (node->op->code != BERTH__OP_concat || alias->values[node->out[0]].parent != node->out[0]) continue;
    if (has_bounds(alias->graph, node)) continue;
    if (!is_measured) plan_concat_measure(alias, &m);
    is_measured = true;
    const berth__alias_class before = alias->classes[node->out[0]];
    if (!plan_concat_move_parts(alias, node, step) || plan_concat_is_no_worse(alias, &m)) continue;
    move_back(alias, node, node->out[0], &before);
    plan_concat_move_last(alias, node, step, &m);
  }
}
