/* Puts the two sides of a choose into one slot.
 *
 * A choose overwrites one of its operands if that operand dies there. If the other side is computed only when the first
 * is not (their conditions exclude each other), both are computed in the same bytes: a run computes only one of them,
 * and nothing is copied. Both live until the choose, so the load never rises. */
#include "plan/alias.h"

#define MAX_CHOICES 4096 /* each checks every value */

typedef struct bytes {
  berth_value root;
  uint64_t low, high; /* relative to the root */
} bytes;

static bytes plan_branches_bytes_of(const berth__alias *alias, berth_value value) {
  bytes b;
  b.root = berth__alias_root(alias, value, &b.low);
  b.high = b.low + berth__alias_bytes(alias, value);
  return b;
}

/* Whether everything written to these bytes before the step is written only if the condition has this value (or could
 * be: in nested choices by the same condition, one side never runs). A view writes nothing, and its source is at least
 * as conditional as the view. */
static bool is_guarded(const berth__alias *alias, const bytes *place, uint32_t step, berth_value condition,
                       bool sense) {
  for (size_t v = 0; v < alias->graph->n_values; v++) {
    const berth__value *value = &alias->graph->values[v];
    if (alias->values[v].is_view || value->kind == BERTH_VALUE_DROPPED) continue;
    if (berth__alias_root(alias, (berth_value)v, NULL) != place->root) continue;
    bytes member = plan_branches_bytes_of(alias, (berth_value)v);
    if (member.low >= place->high || place->low >= member.high) continue;
    if (value->kind != BERTH_VALUE_NODE) return false;
    uint32_t made = alias->step_of[value->node], guard = alias->conditions.of_step[made];
    if (made >= step) continue;
    bool is_one_sided = berth__condition_implies(&alias->conditions, guard, condition, sense) &&
                        !berth__condition_implies(&alias->conditions, guard, condition, !sense);
    if (!is_one_sided) return false;
  }
  return true;
}

/* Whether the value is a whole class that ends with this step. */
static bool is_free_class(const berth__alias *alias, berth_value value, uint32_t step) {
  bytes b = plan_branches_bytes_of(alias, value);
  const berth__alias_class *class = &alias->classes[b.root];
  berth_tensor tensor = berth__plan_tensor(alias->graph, value, alias->values[value].stride);
  return alias->graph->values[b.root].kind == BERTH_VALUE_NODE && !class->has_output && !class->is_of_prelude &&
         class->death <= step + 1 && b.low == 0 && b.high == class->size && b.high != 0 &&
         berth__is_contiguous(&tensor);
}

static void plan_branches_merge(berth__alias *alias, berth_value root, const bytes *place) {
  const berth__alias_class *from = &alias->classes[root];
  berth__alias_class *to = &alias->classes[place->root];
  alias->values[root].parent = place->root;
  alias->values[root].offset = place->low;
  alias->values[root].born_inside = true;
  if (from->birth < to->birth) to->birth = from->birth;
  if (from->death > to->death) to->death = from->death;
  if (from->first_write < to->first_write) to->first_write = from->first_write;
  if (from->last_write > to->last_write) to->last_write = from->last_write;
}

static void share_place(berth__alias *alias, const berth__node *node, uint32_t step) {
  bytes place = plan_branches_bytes_of(alias, node->out[0]);
  for (uint32_t i = 1; i <= 2; i++) {
    bytes mine = plan_branches_bytes_of(alias, node->in[i]), other = plan_branches_bytes_of(alias, node->in[3 - i]);
    if (mine.root != place.root || other.root == place.root || !is_free_class(alias, node->in[3 - i], step)) continue;
    if (!is_guarded(alias, &place, step, node->in[0], i == 1) || !is_guarded(alias, &other, step, node->in[0], i != 1))
      continue;
    plan_branches_merge(alias, other.root, &place);
    return;
  }
}

void berth__alias_branches(berth__alias *alias) {
  if (alias->flags & (BERTH_PLAN_NO_INPLACE | BERTH_PLAN_NO_REUSE)) return;
  uint32_t choices = 0;
  for (uint32_t step = 0; step < alias->n_steps && choices < MAX_CHOICES; step++) {
    const berth__node *node = &alias->graph->nodes[alias->order[step]];
    if (node->op->code != BERTH__OP_choose || !alias->values[node->out[0]].in_place || node->n_in != 3) continue;
    if (node->in[BERTH__CHOOSE_THEN] == BERTH_VALUE_NONE || node->in[BERTH__CHOOSE_ELSE] == BERTH_VALUE_NONE) continue;
    share_place(alias, node, step);
    choices++;
  }
}
