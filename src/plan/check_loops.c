/* Loops, for the checker: each is simulated twice, which shows whether values that cross from one round into the next
 * exist. Regions say which steps are inside; nothing else is known about lifetimes. */
#include "plan/checker.h"

static uint32_t n_carried(const berth__node *node) { return berth__loop_end_carried(node->n_in, node->n_out); }

bool berth__check_is_read(const berth__node *node, uint32_t operand) {
  return node->op->code != BERTH__OP_loop_end || operand < BERTH__LOOP_END_CARRIED ||
         operand >= BERTH__LOOP_END_CARRIED + n_carried(node);
}

/* Whether it is the value that says that a loop starts: it is made once, but exists inside the loop. */
static bool is_starts(const berth__checker *c, berth_value value) {
  const berth__value *v = &c->plan->graph->values[value];
  return v->kind == BERTH_VALUE_NODE && c->plan->graph->nodes[v->node].op->code == BERTH__OP_loop_begin &&
         c->plan->graph->nodes[v->node].out[BERTH__LOOP_STARTS] == value;
}

void berth__check_count_read(berth__checker *c, berth_value value, uint32_t step) {
  const berth__regions *regions = &c->regions;
  uint32_t times = 1;
  if (regions->count > 1) {
    uint32_t home = berth__region_of_value(regions, c->plan->graph, value);
    if (is_starts(c, value)) home = regions->items[home].parent;
    for (uint32_t r = berth__region_of(regions, step); r != home && r != 0; r = regions->items[r].parent) times *= 2;
  }
  c->total[value] += times;
}

static bool is_same_place(const berth__checker *c, berth_value a, berth_value b) {
  return c->ranges[a].low == c->ranges[b].low && c->ranges[a].high == c->ranges[b].high;
}

bool berth__check_loop_may_write_over(const berth__checker *c, const berth__node *node, uint32_t out,
                                      berth_value operand) {
  if (node->op->code == BERTH__OP_loop_end) /* it reads all of these before it writes any */
    return out != BERTH__LOOP_AGAIN && out < BERTH__LOOP_LAST + n_carried(node);
  if (out < BERTH__LOOP_CARRIED || node->in[out] != operand || !is_same_place(c, operand, node->out[out])) return false;
  uint32_t times = 0;
  for (uint32_t i = 0; i < node->n_in; i++) times += node->in[i] == operand;
  return times == 1;
}

/* Next values in places where others must go are copied through the scratch. */
static berth_status check_staging(const berth__checker *c, const berth__node *node, uint32_t step) {
  uint64_t needed = 0, given = 0;
  for (uint32_t i = 0; i < n_carried(node); i++) {
    berth__range next = c->ranges[node->in[BERTH__LOOP_END_CARRIED + n_carried(node) + i]];
    bool overlaps = false;
    for (uint32_t k = 0; k < n_carried(node); k++)
      overlaps = overlaps || (k != i && berth__overlap(next, c->ranges[node->out[BERTH__LOOP_LAST + k]]));
    if (overlaps) needed += next.high - next.low;
  }
  if (c->plan->scratch[step] != BERTH__NO_BUFFER) given = c->plan->buffers[c->plan->scratch[step]].size;
  if (given < needed)
    return berth__fail(c->err, BERTH_INTERNAL, "plan check: step %u has too little scratch for what it carries on",
                       step);
  return BERTH_OK;
}

berth_status berth__check_loop_places(const berth__checker *c, const berth__node *node, uint32_t step) {
  for (uint32_t i = 0; i < node->n_out; i++) {
    const berth__place *place = &c->plan->places[node->out[i]];
    bool has_bytes = c->ranges[node->out[i]].low != c->ranges[node->out[i]].high, expected;
    if (node->op->code == BERTH__OP_loop_begin) {
      expected = i >= BERTH__LOOP_CARRIED && is_same_place(c, node->in[i], node->out[i]);
    } else {
      uint32_t operand = i == BERTH__LOOP_ROUNDS ? BERTH__LOOP_ROUND : BERTH__LOOP_END_CARRIED + i - BERTH__LOOP_LAST;
      expected = i == BERTH__LOOP_ROUNDS || (i >= BERTH__LOOP_LAST && i < BERTH__LOOP_LAST + n_carried(node));
      if (expected && !is_same_place(c, node->in[operand], node->out[i]))
        return berth__fail(c->err, BERTH_INTERNAL, "plan check: step %u: '%s' does not lie where it is carried", step,
                           c->plan->graph->values[node->out[i]].name);
    }
    if (has_bytes && place->in_place != expected)
      return berth__fail(c->err, BERTH_INTERNAL, "plan check: step %u: '%s' is not made as its place says", step,
                         c->plan->graph->values[node->out[i]].name);
  }
  return node->op->code == BERTH__OP_loop_end ? check_staging(c, node, step) : BERTH_OK;
}

bool berth__check_goes_back(const berth__checker *c, const berth__node *node, uint32_t step) {
  return node->op->code == BERTH__OP_loop_end && c->goes_back[berth__region_of(&c->regions, step)];
}

void berth__check_loop_finish(berth__checker *c, const berth__node *node, uint32_t step, uint32_t *next) {
  const berth_graph *graph = c->plan->graph;
  uint32_t region = berth__region_of(&c->regions, step);
  if (node->op->code == BERTH__OP_loop_begin) {
    region = berth__region_of_value(&c->regions, graph, node->out[BERTH__LOOP_ROUND]);
    if (region == 0 || c->regions.items[region].begin != step) return;
    c->goes_back[region] = true;
    const berth__node *end = &graph->nodes[c->regions.items[region].end];
    for (uint32_t i = BERTH__LOOP_LAST + n_carried(end); i < end->n_out; i++) berth__check_made(c, end->out[i], step);
  } else if (berth__check_goes_back(c, node, step)) {
    c->goes_back[region] = false;
    *next = c->regions.items[region].begin + 1;
    const berth__node *begin = &graph->nodes[c->regions.items[region].begin];
    for (uint32_t i = 0; i < begin->n_out; i++)
      if (i != BERTH__LOOP_STARTS) berth__check_made(c, begin->out[i], c->regions.items[region].begin);
  }
}
