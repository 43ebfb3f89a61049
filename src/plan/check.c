/* The independent checker. It does not reuse the planner's reasoning: it knows no classes and no lifetimes, but
 * simulates the steps on byte ranges and checks what every write destroys.
 *
 * A value is intact from the step that makes it until a kernel writes to its bytes. It is an error to read a value that
 * is not intact, or to destroy one that is still to be read. Kernels may overwrite an operand only if their op's row
 * allows it. Params, constants, and inputs that stay are never written. A condition is read before every step that
 * depends on it; a step does not destroy what is made under the opposite condition, since one of the two never runs.
 * Loops are simulated twice (check_loops.c), and so are graphs with states: only its update may write a state, which
 * at the start of the second run holds what the first one's update has left (check_states.c). */
#include <stdlib.h>

#include "plan/buffers.h"
#include "plan/checker.h"

typedef berth__range range;
typedef berth__checker checker;

enum {
  SHOWN_PRELUDE = 1,
  SHOWN_RUN = 2
};

static const char *plan_check_name_of(const checker *c, berth_value value) {
  return c->plan->graph->values[value].name;
}

static bool plan_check_inside(range a, range b) { return a.low >= b.low && a.high <= b.high; }

static bool is_contiguous(const checker *c, berth_value value) {
  berth_tensor tensor = berth__plan_tensor(c->plan->graph, value, c->plan->places[value].stride);
  return berth__is_contiguous(&tensor);
}

/* The bytes from a value's first element to its last. */
static range plan_check_range_of(const berth_plan *plan, berth_value value) {
  const berth__place *place = &plan->places[value];
  const berth__value *v = &plan->graph->values[value];
  uint64_t last = 0;
  if (place->buffer == BERTH__NO_BUFFER) return (range){0, 0};
  uint64_t low = plan->buffers[place->buffer].offset + place->root_offset;
  for (uint32_t i = 0; i < v->shape.rank; i++) {
    if (v->shape.dim[i] == 0) return (range){low, low};
    last += (uint64_t)(v->shape.dim[i] - 1) * (uint64_t)place->stride[i];
  }
  const uint64_t block = place->storage.elements != 0 ? place->storage.elements : 1;
  return (range){low, low + berth__place_bytes(place, last / block * block + block)};
}

static bool stays(const checker *c, berth_value value) {
  berth_value_kind kind = c->plan->graph->values[value].kind;
  if (kind == BERTH_VALUE_INPUT) return !(c->plan->flags & BERTH_PLAN_INPUTS_DIE);
  if (kind == BERTH_VALUE_STATE) return berth_graph_next(c->plan->graph, value) == BERTH_VALUE_NONE;
  return kind == BERTH_VALUE_PARAM || kind == BERTH_VALUE_CONSTANT;
}

/* ---- The buffers as rectangles ---- */

static int by_birth(const void *a, const void *b) {
  const berth__buffer *x = *(const berth__buffer *const *)a, *y = *(const berth__buffer *const *)b;
  return x->birth != y->birth ? (x->birth < y->birth ? -1 : 1) : (x < y ? -1 : x > y);
}

static berth_status plan_check_buffer(const checker *c, const berth__buffer *buffer) {
  const berth_plan *plan = c->plan;
  const char *name = buffer->owner != BERTH_VALUE_NONE ? plan_check_name_of(c, buffer->owner) : "scratch";
  if (buffer->birth >= buffer->death)
    return berth__fail(c->err, BERTH_INTERNAL, "plan check: buffer '%s' never lives", name);
  if (buffer->offset % berth__buffer_align(plan, buffer) != 0)
    return berth__fail(c->err, BERTH_INTERNAL, "plan check: buffer '%s' at %llu is not aligned", name,
                       (unsigned long long)buffer->offset);
  if (buffer->offset + buffer->size + buffer->guard > plan->info.arena_size)
    return berth__fail(c->err, BERTH_INTERNAL, "plan check: buffer '%s' ends outside the arena", name);
  return BERTH_OK;
}

static berth_status check_rectangles(const checker *c) {
  const berth_plan *plan = c->plan;
  const berth__buffer **sorted = berth__alloc_array(plan->ctx, 2 * plan->n_buffers, sizeof *sorted);
  if (sorted == NULL) return berth__fail_nomem(c->err, "checking a plan");
  const berth__buffer **open = sorted + plan->n_buffers;
  size_t n_open = 0;
  berth_status status = BERTH_OK;
  for (size_t i = 0; i < plan->n_buffers; i++) sorted[i] = &plan->buffers[i];
  qsort(sorted, plan->n_buffers, sizeof *sorted, by_birth);
  for (size_t i = 0; i < plan->n_buffers && status == BERTH_OK; i++) {
    const berth__buffer *x = sorted[i];
    range mine = {x->offset, x->offset + x->size + x->guard};
    size_t kept = 0;
    status = plan_check_buffer(c, x);
    for (size_t k = 0; k < n_open && status == BERTH_OK; k++) {
      range other = {open[k]->offset, open[k]->offset + open[k]->size + open[k]->guard};
      if (open[k]->death <= x->birth) continue;
      open[kept++] = open[k];
      if (berth__overlap(mine, other))
        status = berth__fail(c->err, BERTH_INTERNAL, "plan check: buffers %zu and %zu share bytes at step %u",
                             (size_t)(x - plan->buffers), (size_t)(open[k] - plan->buffers), x->birth);
    }
    n_open = kept;
    open[n_open++] = x;
  }
  berth__free(plan->ctx, sorted);
  return status;
}

/* ---- The values in their buffers ---- */

static bool is_planned_outside(const checker *c, berth_value root) {
  const berth_plan *plan = c->plan;
  const bool is_for_prelude = (c->shown[root] & SHOWN_PRELUDE) && !(c->shown[root] & SHOWN_RUN);
  switch (plan->graph->values[root].kind) {
    case BERTH_VALUE_INPUT: return plan->flags & BERTH_PLAN_INPUTS_OUTSIDE;
    case BERTH_VALUE_PARAM: return is_for_prelude || (plan->flags & BERTH_PLAN_PARAMS_OUTSIDE);
    case BERTH_VALUE_CONSTANT: return is_for_prelude || (plan->flags & BERTH_PLAN_CONSTANTS_OUTSIDE);
    case BERTH_VALUE_DROPPED: return true;
    case BERTH_VALUE_STATE:
    case BERTH_VALUE_NODE: break;
  }
  return false;
}

/* The storage that the device chose for the value or its root; check_views compares it with the actual one. */
static bool is_chosen(const berth_plan *plan, berth_value value) {
  const berth__place *place = &plan->places[value];
  if (place->is_view) return place->storage.elements != 0 && place->storage.bytes != 0;
  return berth__storage_equal(place->storage, plan->storages != NULL
                                                  ? plan->storages[value]
                                                  : berth_type_storage(plan->graph->values[value].type));
}

static berth_status check_place(const checker *c, berth_value value) {
  const berth__place *place = &c->plan->places[value];
  if (!is_chosen(c->plan, value))
    return berth__fail(c->err, BERTH_INTERNAL, "plan check: '%s' has another storage than the device chose for it",
                       plan_check_name_of(c, value));
  if (place->root >= c->plan->graph->n_values)
    return berth__fail(c->err, BERTH_INTERNAL, "plan check: '%s' lies in a value that does not exist",
                       plan_check_name_of(c, value));
  if ((place->buffer == BERTH__NO_BUFFER) != is_planned_outside(c, place->root))
    return berth__fail(c->err, BERTH_INTERNAL, "plan check: '%s' is on the wrong side of the arena's edge",
                       plan_check_name_of(c, value));
  if (place->buffer == BERTH__NO_BUFFER) return BERTH_OK;
  if (place->buffer >= c->plan->n_buffers || c->plan->buffers[place->buffer].owner != place->root)
    return berth__fail(c->err, BERTH_INTERNAL, "plan check: '%s' is in the buffer of another value",
                       plan_check_name_of(c, value));
  const berth__buffer *buffer = &c->plan->buffers[place->buffer];
  range whole = {buffer->offset, buffer->offset + buffer->size};
  if (!plan_check_inside(plan_check_range_of(c->plan, value), whole))
    return berth__fail(c->err, BERTH_INTERNAL, "plan check: '%s' does not lie inside its buffer",
                       plan_check_name_of(c, value));
  return BERTH_OK;
}

/* Values from outside exist before the first step; what stays, and outputs, must exist after the last. */
static berth_status check_ends(const checker *c) {
  const berth_plan *plan = c->plan;
  uint32_t end = berth__plan_end(plan->n_steps);
  for (size_t v = 0; v < plan->graph->n_values; v++) {
    const berth__place *place = &plan->places[v];
    if (plan->graph->values[v].kind == BERTH_VALUE_NODE || place->buffer == BERTH__NO_BUFFER) continue;
    const berth__buffer *buffer = &plan->buffers[place->buffer];
    const bool is_state = plan->graph->values[v].kind == BERTH_VALUE_STATE;
    if (buffer->birth != 0 || ((is_state || stays(c, (berth_value)v)) && buffer->death != end))
      return berth__fail(c->err, BERTH_INTERNAL, "plan check: '%s' does not live throughout",
                         plan_check_name_of(c, (berth_value)v));
  }
  for (size_t i = 0; i < plan->graph->n_outputs; i++) {
    const berth__place *place = &plan->places[plan->graph->outputs[i].value];
    if (place->buffer != BERTH__NO_BUFFER && plan->buffers[place->buffer].death != end)
      return berth__fail(c->err, BERTH_INTERNAL, "plan check: output '%s' does not live to the end",
                         plan->graph->outputs[i].name);
  }
  return BERTH_OK;
}

/* Who reads the bytes of every root. */
static void note_shown(checker *c) {
  const berth_plan *plan = c->plan;
  for (uint32_t step = 0; step < plan->n_steps; step++) {
    const berth__node *node = &plan->graph->nodes[plan->order[step]];
    for (uint32_t i = 0; i < node->n_in; i++)
      if (node->in[i] != BERTH_VALUE_NONE && plan->places[node->in[i]].root < plan->graph->n_values)
        c->shown[plan->places[node->in[i]].root] |= step < plan->n_prelude ? SHOWN_PRELUDE : SHOWN_RUN;
  }
  for (size_t i = 0; i < plan->graph->n_outputs; i++)
    if (plan->places[plan->graph->outputs[i].value].root < plan->graph->n_values)
      c->shown[plan->places[plan->graph->outputs[i].value].root] |= SHOWN_RUN;
}

static berth_status check_places(checker *c) {
  note_shown(c);
  for (size_t v = 0; v < c->plan->graph->n_values; v++) {
    BERTH__TRY(check_place(c, (berth_value)v));
    c->ranges[v] = plan_check_range_of(c->plan, (berth_value)v);
  }
  BERTH__TRY(berth__check_state_places(c));
  return check_ends(c);
}

/* ---- Simulating the steps ---- */

static bool is_alive(const berth_plan *plan, uint32_t buffer, uint32_t step) {
  return buffer == BERTH__NO_BUFFER || (step >= plan->buffers[buffer].birth && step < plan->buffers[buffer].death);
}

static int by_low(const void *a, const void *b) {
  const range *x = a, *y = b;
  return x->low != y->low ? (x->low < y->low ? -1 : 1) : 0;
}

static bool hits_kept(const checker *c, range bytes) {
  size_t low = 0, high = c->n_kept;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (c->kept[middle].high <= bytes.low)
      low = middle + 1;
    else
      high = middle;
  }
  return low < c->n_kept && berth__overlap(c->kept[low], bytes);
}

/* Values that the prelude makes and runs read are read again by the next run: a read that never comes in this
 * simulation. */
static void note_later_runs(checker *c) {
  const berth_plan *plan = c->plan;
  for (uint32_t step = plan->n_prelude; step < plan->n_steps; step++) {
    const berth__node *node = &plan->graph->nodes[plan->order[step]];
    for (uint32_t i = 0; i < node->n_in; i++) {
      if (node->in[i] == BERTH_VALUE_NONE || plan->graph->values[node->in[i]].kind != BERTH_VALUE_NODE) continue;
      if (plan->places[node->in[i]].birth < plan->n_prelude) c->total[node->in[i]]++;
    }
  }
}

/* How often the steps from here on read every value. */
static void plan_check_count_reads(checker *c, uint32_t first) {
  const berth_graph *graph = c->plan->graph;
  const berth__conditions *conditions = &c->plan->conditions;
  memset(c->total, 0, graph->n_values * sizeof *c->total);
  for (uint32_t step = first; step < c->plan->n_steps; step++) {
    const berth__node *node = &graph->nodes[c->plan->order[step]];
    for (uint32_t i = 0; i < node->n_in; i++)
      if (node->in[i] != BERTH_VALUE_NONE && berth__check_is_read(node, i))
        berth__check_count_read(c, node->in[i], step);
    for (uint32_t g = conditions->of_step[step]; g != BERTH__NO_CONDITION; g = conditions->items[g].parent)
      berth__check_count_read(c, conditions->items[g].condition, step);
  }
  for (size_t i = 0; i < berth__graph_n_kept(graph); i++) c->total[berth__graph_kept(graph, i)]++;
  note_later_runs(c);
}

/* The values that exist before a run: all that no node makes, and what the prelude has made. */
static void plan_check_start(checker *c, uint32_t first) {
  const berth_graph *graph = c->plan->graph;
  plan_check_count_reads(c, first);
  c->n_alive = c->n_kept = 0;
  for (size_t v = 0; v < graph->n_values; v++) {
    const bool is_made = graph->values[v].kind == BERTH_VALUE_NODE;
    const bool is_kept = !is_made && stays(c, (berth_value)v), is_inside = c->plan->places[v].root != v;
    if (is_kept && is_inside) c->total[v]++; /* for the next run; its bytes are among those that a concat writes */
    c->reads[v] = c->total[v];
    if (is_made && c->plan->places[v].birth >= first) c->intact[v] = false;
    if (!is_made && graph->values[v].kind != BERTH_VALUE_STATE) c->intact[v] = true;
    if (c->ranges[v].low == c->ranges[v].high || (is_made && (!c->intact[v] || c->reads[v] == 0))) continue;
    if (is_kept && !is_inside)
      c->kept[c->n_kept++] = c->ranges[v];
    else
      c->alive[c->n_alive++] = (berth_value)v;
  }
  qsort(c->kept, c->n_kept, sizeof *c->kept, by_low);
}

static berth_status check_read(const checker *c, const berth__node *node, uint32_t step, berth_value value) {
  const berth_value root = c->plan->places[value].root;
  if (step < c->plan->n_prelude && c->plan->graph->values[root].kind == BERTH_VALUE_STATE)
    return berth__fail(c->err, BERTH_INTERNAL, "plan check: step %u ('%s') reads state '%s' and is run once", step,
                       plan_check_name_of(c, node->out[0]), plan_check_name_of(c, root));
  if (!c->intact[value])
    return berth__fail(c->err, BERTH_INTERNAL, "plan check: step %u ('%s') reads '%s', which is not intact", step,
                       plan_check_name_of(c, node->out[0]), plan_check_name_of(c, value));
  const berth__place *place = &c->plan->places[value];
  if (!is_alive(c->plan, place->buffer, step) || step < place->birth || step >= place->death)
    return berth__fail(c->err, BERTH_INTERNAL, "plan check: step %u reads '%s' outside its lifetime", step,
                       plan_check_name_of(c, value));
  return BERTH_OK;
}

static berth_status check_reads(checker *c, const berth__node *node, uint32_t step) {
  const berth__conditions *conditions = &c->plan->conditions;
  for (uint32_t i = 0; i < node->n_in; i++) {
    berth_value value = node->in[i];
    if (value == BERTH_VALUE_NONE || !berth__check_is_read(node, i)) continue;
    const berth_tensor seen = berth__plan_tensor(c->plan->graph, value, c->plan->places[value].stride);
    if (!berth__op_takes(node->op, node->attrs, i, &seen))
      return berth__fail(c->err, BERTH_INTERNAL, "plan check: step %u ('%s') cannot read '%s' through strides", step,
                         plan_check_name_of(c, node->out[0]), plan_check_name_of(c, value));
    BERTH__TRY(check_read(c, node, step, value));
  }
  for (uint32_t g = conditions->of_step[step]; g != BERTH__NO_CONDITION; g = conditions->items[g].parent) {
    BERTH__TRY(check_read(c, node, step, conditions->items[g].condition));
    c->reads[conditions->items[g].condition]--; /* that read is complete before the step writes anything */
  }
  return BERTH_OK;
}

/* A view must have exactly the bytes that its op defines. */
static berth_status check_views(const checker *c, const berth__node *node, uint32_t step) {
  const berth_plan *plan = c->plan;
  berth_tensor in = berth__plan_tensor(plan->graph, node->in[0], plan->places[node->in[0]].stride);
  for (uint32_t i = 0; i < node->n_out; i++) {
    const berth__place *place = &plan->places[node->out[i]], *from = &plan->places[node->in[0]];
    const berth__value *value = &plan->graph->values[node->out[i]];
    int64_t offset = 0, stride[BERTH_MAX_RANK] = {0};
    berth_tensor shown = berth__plan_tensor(plan->graph, node->out[i], place->stride);
    bool ok = node->op->family->view != NULL &&
              node->op->family->view(&in, node->attrs, &value->shape, value->type, i, &offset, stride);
    if (berth__count(&shown) == 0) offset = 0;
    ok = ok && place->is_view && place->birth == step && place->root == from->root && place->buffer == from->buffer &&
         place->root_offset == from->root_offset + berth__place_bytes(from, (uint64_t)offset) &&
         berth__storage_equal(place->storage, from->storage) &&
         memcmp(stride, place->stride, value->shape.rank * sizeof *stride) == 0;
    if (!ok)
      return berth__fail(c->err, BERTH_INTERNAL, "plan check: step %u: '%s' is not the view that it should be", step,
                         value->name);
  }
  return BERTH_OK;
}

/* Whether a part has exactly its own bytes of the whole, from byte `at` on. */
static bool lies_there(const checker *c, berth_value part, berth_value whole, uint64_t at) {
  const berth__shape *shape = &c->plan->graph->values[part].shape;
  const int64_t *mine = c->plan->places[part].stride, *stride = c->plan->places[whole].stride;
  for (uint32_t k = 0; k < shape->rank; k++)
    if (shape->dim[k] > 1 && mine[k] != stride[k]) return false;
  if (!berth__storage_equal(c->plan->places[part].storage, c->plan->places[whole].storage)) return false;
  return c->ranges[part].low == at;
}

/* A concat does not copy what is already in place: a part, and contiguous views of a part. */
static bool is_part_in_place(const checker *c, const berth__node *node, berth_value value) {
  if (node->op->code != BERTH__OP_concat) return false;
  const berth_value whole = node->out[0];
  const berth__value *result = &c->plan->graph->values[whole];
  const int64_t axis = node->attrs[BERTH__CONCAT_AXIS].i < 0 ? node->attrs[BERTH__CONCAT_AXIS].i + result->shape.rank
                                                             : node->attrs[BERTH__CONCAT_AXIS].i;
  const berth__place *place = &c->plan->places[whole];
  uint64_t first = 0;
  for (uint32_t i = 0; i < node->n_in; i++) {
    const berth_value part = node->in[i];
    const bool is_or_shows_it =
        value == part || (is_contiguous(c, part) && plan_check_inside(c->ranges[value], c->ranges[part]));
    if (is_or_shows_it && lies_there(c, part, whole, c->ranges[whole].low + berth__place_bytes(place, first)))
      return true;
    first += (uint64_t)(c->plan->graph->values[part].shape.dim[axis] * place->stride[axis]);
  }
  return false;
}

static bool is_operand(const berth__node *node, berth_value value) {
  for (uint32_t i = 0; i < node->n_in; i++)
    if (node->in[i] == value) return true;
  return false;
}

/* Whether the op's row lets output `out` overwrite this operand, at every position where it is an operand. */
static bool may_write_over(const checker *c, const berth__node *node, uint32_t out, berth_value operand) {
  if (node->op->family->is_loop) return berth__check_loop_may_write_over(c, node, out, operand);
  range a = c->ranges[node->out[out]], b = c->ranges[operand];
  if (a.low != b.low || a.high != b.high || !is_contiguous(c, operand)) return false;
  const berth__value *x = &c->plan->graph->values[node->out[out]], *y = &c->plan->graph->values[operand];
  if (!berth__shape_equal(&x->shape, &y->shape)) return false;
  if (!berth__storage_same_width(c->plan->places[node->out[out]].storage, c->plan->places[operand].storage))
    return false;
  const uint32_t allowed = berth__op_in_place_at(node->op, node->attrs, out);
  for (uint32_t i = 0; i < node->n_in; i++)
    if (node->in[i] == operand && (i > 31 || !(allowed >> i & 1u))) return false;
  return true;
}

/* Checks a write of the step to these bytes: they must not contain anything needed. out: which result; UINT32_MAX:
 * scratch. */
static berth_status check_write(checker *c, const berth__node *node, uint32_t step, range bytes, uint32_t out) {
  if (bytes.low == bytes.high) return BERTH_OK;
  if (hits_kept(c, bytes))
    return berth__fail(c->err, BERTH_INTERNAL,
                       "plan check: step %u ('%s') writes over an input, param, state or constant", step,
                       plan_check_name_of(c, node->out[0]));
  BERTH__TRY(berth__check_state_write(c, node, step, bytes, out));
  for (size_t i = 0; i < c->n_alive; i++) {
    berth_value other = c->alive[i];
    if (!berth__overlap(c->ranges[other], bytes) || is_part_in_place(c, node, other)) continue;
    if (out != UINT32_MAX && node->out[out] == other) continue; /* results stacked by a loop exist from its begin */
    if (berth__check_excludes(c->plan, c->plan->conditions.of_step[step], c->condition_of[other])) continue;
    uint32_t reads_here = 0;
    for (uint32_t k = 0; k < node->n_in; k++) reads_here += node->in[k] == other && berth__check_is_read(node, k);
    if (is_operand(node, other) && (out == UINT32_MAX || !may_write_over(c, node, out, other)))
      return berth__fail(c->err, BERTH_INTERNAL, "plan check: step %u ('%s') writes over its operand '%s'", step,
                         plan_check_name_of(c, node->out[0]), plan_check_name_of(c, other));
    if (c->reads[other] > reads_here)
      return berth__fail(c->err, BERTH_INTERNAL, "plan check: step %u ('%s') destroys '%s', which is still needed",
                         step, plan_check_name_of(c, node->out[0]), plan_check_name_of(c, other));
    c->intact[other] = false;
  }
  return BERTH_OK;
}

static range scratch_range(const berth_plan *plan, uint32_t step) {
  if (plan->scratch[step] == BERTH__NO_BUFFER) return (range){0, 0};
  const berth__buffer *buffer = &plan->buffers[plan->scratch[step]];
  return (range){buffer->offset, buffer->offset + buffer->size};
}

static bool lies_over_operand(const checker *c, const berth__node *node, uint32_t out) {
  for (uint32_t i = 0; i < node->n_in; i++)
    if (node->in[i] != BERTH_VALUE_NONE && may_write_over(c, node, out, node->in[i])) return true;
  return false;
}

/* Checks that the result has bytes and that its slot says how it got them. */
static berth_status plan_check_result(const checker *c, const berth__node *node, uint32_t step, uint32_t out) {
  berth_value value = node->out[out];
  const berth__place *place = &c->plan->places[value];
  if (!is_alive(c->plan, place->buffer, step) || place->birth != step)
    return berth__fail(c->err, BERTH_INTERNAL, "plan check: step %u makes '%s' outside its lifetime", step,
                       plan_check_name_of(c, value));
  bool has_bytes = c->ranges[value].low != c->ranges[value].high && !node->op->family->is_loop;
  if (place->is_view || (has_bytes && place->in_place != lies_over_operand(c, node, out)))
    return berth__fail(c->err, BERTH_INTERNAL, "plan check: step %u: '%s' is not made as its place says", step,
                       plan_check_name_of(c, value));
  return BERTH_OK;
}

static berth_status check_writes(checker *c, const berth__node *node, uint32_t step) {
  range scratch = scratch_range(c->plan, step);
  if (!is_alive(c->plan, c->plan->scratch[step], step))
    return berth__fail(c->err, BERTH_INTERNAL, "plan check: step %u uses its scratch outside its lifetime", step);
  if (node->op->family->is_loop) BERTH__TRY(berth__check_loop_places(c, node, step));
  BERTH__TRY(check_write(c, node, step, scratch, UINT32_MAX));
  for (uint32_t i = 0; i < node->n_out; i++) {
    range mine = c->ranges[node->out[i]];
    BERTH__TRY(plan_check_result(c, node, step, i));
    if (!is_contiguous(c, node->out[i]))
      return berth__fail(c->err, BERTH_INTERNAL, "plan check: '%s' is written through strides",
                         plan_check_name_of(c, node->out[i]));
    BERTH__TRY(check_write(c, node, step, mine, i));
    for (uint32_t k = 0; k < i; k++)
      if (berth__overlap(mine, c->ranges[node->out[k]]))
        return berth__fail(c->err, BERTH_INTERNAL, "plan check: step %u: two results share bytes", step);
    if (berth__overlap(mine, scratch))
      return berth__fail(c->err, BERTH_INTERNAL, "plan check: step %u: '%s' lies in the scratch", step,
                         plan_check_name_of(c, node->out[i]));
  }
  return BERTH_OK;
}

void berth__check_made(checker *c, berth_value value, uint32_t step) {
  bool is_listed = c->intact[value] && c->reads[value] != 0; /* it was listed, and still is */
  for (size_t i = 0; is_listed && i < c->n_alive; i++)
    if (c->alive[i] == value) c->alive[i--] = c->alive[--c->n_alive];
  c->intact[value] = true;
  c->reads[value] = c->total[value];
  c->condition_of[value] = c->plan->conditions.of_step[step];
  bool needed = c->reads[value] != 0 && c->ranges[value].low != c->ranges[value].high;
  if (needed && !stays(c, c->plan->places[value].root)) c->alive[c->n_alive++] = value;
}

static void finish_step(checker *c, const berth__node *node, uint32_t step) {
  for (uint32_t i = 0; i < node->n_in; i++)
    if (node->in[i] != BERTH_VALUE_NONE && berth__check_is_read(node, i)) c->reads[node->in[i]]--;
  size_t kept = 0;
  for (size_t i = 0; i < c->n_alive; i++)
    if (c->reads[c->alive[i]] != 0 && c->intact[c->alive[i]]) c->alive[kept++] = c->alive[i];
  c->n_alive = kept;
  if (berth__check_goes_back(c, node, step)) return;
  for (uint32_t i = 0; i < node->n_out; i++) berth__check_made(c, node->out[i], step);
}

static berth_status check_run(checker *c, uint32_t first) {
  const berth_plan *plan = c->plan;
  plan_check_start(c, first);
  for (uint32_t step = first, next; step < plan->n_steps; step = next) {
    const berth__node *node = &plan->graph->nodes[plan->order[step]];
    next = step + 1;
    BERTH__TRY(check_reads(c, node, step));
    BERTH__TRY(plan->places[node->out[0]].is_view ? check_views(c, node, step) : check_writes(c, node, step));
    finish_step(c, node, step);
    berth__check_loop_finish(c, node, step, &next);
  }
  for (size_t i = 0; i < plan->graph->n_outputs; i++)
    if (!c->intact[plan->graph->outputs[i].value])
      return berth__fail(c->err, BERTH_INTERNAL, "plan check: output '%s' is not intact at the end",
                         plan->graph->outputs[i].name);
  return berth__check_state_ends(c);
}

static berth_status check_steps(checker *c) {
  const berth_plan *plan = c->plan;
  for (uint32_t step = 0; step < plan->n_steps; step++)
    if (c->regions.count > 1 && plan->order[step] != step)
      return berth__fail(c->err, BERTH_INTERNAL, "plan check: step %u is out of order in a graph with loops", step);
  for (size_t i = 0; i < plan->graph->n_states; i++) c->intact[plan->graph->states[i]] = true;
  BERTH__TRY(check_run(c, 0));
  return plan->graph->n_states != 0 ? check_run(c, plan->n_prelude) : BERTH_OK;
}

berth_status berth_plan_check(const berth_plan *plan, berth_error *err) {
  if (plan == NULL) return berth__fail(err, BERTH_INVALID, "the plan is NULL");
  berth_context *ctx = plan->ctx;
  size_t n = plan->graph->n_values;
  checker c = {.plan = plan,
               .err = err,
               .ranges = berth__alloc_array(ctx, n, sizeof *c.ranges),
               .intact = berth__alloc_array_zero(ctx, n, sizeof *c.intact),
               .condition_of = berth__alloc_array_zero(ctx, n, sizeof *c.condition_of),
               .total = berth__alloc_array_zero(ctx, n, sizeof *c.total),
               .reads = berth__alloc_array_zero(ctx, n, sizeof *c.reads),
               .alive = berth__alloc_array(ctx, n, sizeof *c.alive),
               .kept = berth__alloc_array(ctx, n, sizeof *c.kept),
               .shown = berth__alloc_array_zero(ctx, n, sizeof *c.shown)};
  berth_status status = berth__regions_create(plan->graph, &c.regions, err);
  if (status == BERTH_OK) c.goes_back = berth__alloc_array_zero(ctx, c.regions.count, sizeof *c.goes_back);
  if (status == BERTH_OK && (!c.ranges || !c.intact || !c.condition_of || !c.total || !c.reads || !c.alive || !c.kept ||
                             !c.shown || !c.goes_back))
    status = berth__fail_nomem(err, "checking a plan");
  if (status == BERTH_OK) status = check_rectangles(&c);
  if (status == BERTH_OK) status = check_places(&c);
  if (status == BERTH_OK) status = berth__check_conditions(plan, err);
  if (status == BERTH_OK) status = check_steps(&c);
  berth__free(ctx, c.ranges);
  berth__free(ctx, c.intact);
  berth__free(ctx, c.condition_of);
  berth__free(ctx, c.total);
  berth__free(ctx, c.goes_back);
  berth__regions_free(ctx, &c.regions);
  berth__free(ctx, c.reads);
  berth__free(ctx, c.alive);
  berth__free(ctx, c.kept);
  berth__free(ctx, c.shown);
  return status;
}
