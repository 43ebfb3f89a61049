/* Fusion of element-wise nodes.
 *
 * A group is a set of element-wise nodes of one shape with a single result, its sink: all its other nodes are read only
 * inside the group. Groups are grown from their sinks, the last sink first. If a product or a convolution is read only
 * by the group, the group becomes its epilogue; otherwise a group of two or more becomes one `chain`. Values between
 * the nodes of a group have no bytes, and they are f32 even in a group of f16 or bf16, which is rounded once, at its
 * end. */
#include "ops/bytes.h"
#include "ops/chain.h"
#include "ops/conv_last.h"
#include "pass/prelude.h"
#include "rewrite/pattern.h"
#include "rewrite/rewrite.h"

typedef struct group {
  uint32_t node[BERTH__CHAIN_STEPS]; /* ascending; the last one is the sink */
  uint32_t n;
  uint32_t anchor; /* the product or convolution before it; BERTH__NO_NODE: none */
} group;

typedef struct pass {
  berth__rewrite r;
  berth__uses uses;
  uint32_t *group_of; /* one per node: the sink of its group; BERTH__NO_NODE: it is not in a group */
  uint32_t *before;   /* one per node: the next node of its group, from the sink to the anchor; BERTH__NO_NODE: none */
  bool *is_static;
} pass;

/* The program of a group under construction. */
typedef struct program {
  berth_value operand[BERTH__CHAIN_OPERANDS];
  uint32_t n_operands;
  double number[BERTH__CHAIN_NUMBERS];
  uint32_t n_numbers;
  int64_t code[4 * BERTH__CHAIN_STEPS];
  uint32_t n_steps;
  berth_value skipped[2], stands_for; /* sums that become operands of the anchor; the value they stand for */
} program;

static const berth__value *rewrite_fuse_value_of(const pass *p, berth_value value) {
  return &p->r.graph->values[value];
}

static const berth__node *nodes_of(const pass *p) { return p->r.old != NULL ? p->r.old : p->r.graph->nodes; }

static bool rewrite_fuse_is_number(const berth__value *value) {
  double number;
  return value->blob != NULL && berth__is_float_number(value, &number);
}

static bool is_step(const pass *p, const berth__node *node) {
  const berth__chain_code code = berth__chain_code_of(node->op->code);
  if (node->n_out != 1 || node->op->custom != NULL) return false;
  if (code == BERTH__CHAIN_COUNT && node->op->code != BERTH__OP_clamp) return false;
  const berth_type type = rewrite_fuse_value_of(p, node->out[0])->type;
  if (!berth__is_float(type) && type != BERTH_BOOL) return false;
  for (uint32_t i = 0; i < node->n_in; i++) {
    if (node->in[i] == BERTH_VALUE_NONE) return false;
    const berth_type in = rewrite_fuse_value_of(p, node->in[i])->type;
    if (!berth__is_float(in) && in != BERTH_BOOL) return false;
  }
  return true;
}

static bool is_anchor(const pass *p, const berth__node *node) {
  switch (node->op->code) {
    case BERTH__OP_product:
    case BERTH__OP_conv:
    case BERTH__OP_conv_last:
    case BERTH__OP_depthwise:
    case BERTH__OP_conv_winograd:
    case BERTH__OP_conv_transpose_last:
    case BERTH__OP_qproduct:
    case BERTH__OP_qconv_last:
    case BERTH__OP_qdepthwise: break;
    default: return false;
  }
  const berth_type type = rewrite_fuse_value_of(p, node->out[0])->type;
  if (!berth__is_float(type)) return false;
  for (uint32_t i = 0; i < node->op->family->n_attrs; i++)
    if (strcmp(node->attrs[i].name, "code") == 0) return node->attrs[i].count == 0;
  return false;
}

/* The index of an anchor's bias operand; those of the epilogue follow it. */
static uint32_t bias_operand(const berth__node *anchor) {
  const berth__op_code code = anchor->op->code;
  const bool is_of_bytes = code == BERTH__OP_qproduct || code == BERTH__OP_qconv_last || code == BERTH__OP_qdepthwise;
  return is_of_bytes ? BERTH__BYTES_BIAS : BERTH__LAST_BIAS;
}

/* ---- Growing groups ---- */

static bool rewrite_fuse_has_node(const group *g, uint32_t node) {
  for (uint32_t i = 0; i < g->n; i++)
    if (g->node[i] == node) return true;
  return false;
}

/* Whether all readers of the value are in the group. */
static bool rewrite_fuse_is_inside(const pass *p, const group *g, berth_value value) {
  uint32_t reads = 0;
  if (p->uses.is_output[value]) return false;
  for (uint32_t i = 0; i < g->n; i++) {
    const berth__node *node = &nodes_of(p)[g->node[i]];
    for (uint32_t k = 0; k < node->n_in; k++) reads += node->in[k] == value;
  }
  return reads == p->uses.count[value];
}

static bool has_shape_of_sink(const pass *p, const group *g, berth_value value) {
  const berth_value sink = nodes_of(p)[g->node[0]].out[0];
  return berth__shape_equal(&rewrite_fuse_value_of(p, value)->shape, &rewrite_fuse_value_of(p, sink)->shape);
}

static bool is_made_by(const pass *p, const group *g, berth_value value) {
  for (uint32_t i = 0; i < g->n; i++)
    if (nodes_of(p)[g->node[i]].out[0] == value) return true;
  return false;
}

/* Whether an operand of the group, other than numbers, has as many axes as its result. */
static bool has_full_rank(const pass *p, const group *g) {
  const uint32_t rank = rewrite_fuse_value_of(p, nodes_of(p)[g->node[0]].out[0])->shape.rank;
  for (uint32_t i = 0; i < g->n; i++) {
    const berth__node *node = &nodes_of(p)[g->node[i]];
    for (uint32_t k = 0; k < node->n_in; k++) {
      const berth__value *value = rewrite_fuse_value_of(p, node->in[k]);
      if (value->shape.rank == rank && !rewrite_fuse_is_number(value) && !is_made_by(p, g, node->in[k])) return true;
    }
  }
  return false;
}

/* Whether a value becomes a number of the program, which has no axes. A constant of one element that alone determines
 * the rank of the result stays an operand. */
static bool is_number_of(const pass *p, const group *g, berth_value value) {
  const berth__shape *whole = &rewrite_fuse_value_of(p, nodes_of(p)[g->node[0]].out[0])->shape;
  return rewrite_fuse_is_number(rewrite_fuse_value_of(p, value)) &&
         (rewrite_fuse_value_of(p, value)->shape.rank < whole->rank || whole->rank == 0 || has_full_rank(p, g));
}

/* Whether the operands of the group, without duplicates, fit; numbers are part of the program. */
static bool rewrite_fuse_has_room(const pass *p, const group *g) {
  berth_value operand[BERTH__CHAIN_OPERANDS];
  uint32_t n = 0, numbers = 0;
  for (uint32_t i = 0; i < g->n; i++) {
    const berth__node *node = &nodes_of(p)[g->node[i]];
    numbers += node->op->code == BERTH__OP_clamp ? 2 : 0;
    for (uint32_t k = 0; k < node->n_in; k++) {
      uint32_t at = 0;
      while (at < n && operand[at] != node->in[k]) at++;
      if (at < n || is_made_by(p, g, node->in[k])) continue;
      const bool is_number = is_number_of(p, g, node->in[k]);
      if (is_number ? ++numbers > BERTH__CHAIN_NUMBERS : n == BERTH__CHAIN_OPERANDS) return false;
      if (!is_number) operand[n++] = node->in[k];
    }
  }
  return numbers <= BERTH__CHAIN_NUMBERS;
}

/* A node that makes an operand of the group and may join it; BERTH__NO_NODE: none. While growing, node[0] is the
 * sink. */
static uint32_t find_joining(const pass *p, const group *g, bool anchor) {
  uint32_t best = BERTH__NO_NODE;
  for (uint32_t i = 0; i < g->n; i++) {
    const berth__node *node = &nodes_of(p)[g->node[i]];
    for (uint32_t k = 0; k < node->n_in; k++) {
      const berth__value *value = rewrite_fuse_value_of(p, node->in[k]);
      if (value->kind != BERTH_VALUE_NODE || value->node == BERTH__NO_NODE || rewrite_fuse_has_node(g, value->node))
        continue;
      const berth__node *maker = &nodes_of(p)[value->node];
      if (p->group_of[value->node] != BERTH__NO_NODE || !has_shape_of_sink(p, g, node->in[k])) continue;
      if (!(anchor ? is_anchor(p, maker) : is_step(p, maker)) || !rewrite_fuse_is_inside(p, g, node->in[k])) continue;
      if (anchor && value->type != rewrite_fuse_value_of(p, nodes_of(p)[g->node[0]].out[0])->type) continue;
      if (best == BERTH__NO_NODE || value->node > best) best = value->node;
    }
  }
  return best;
}

/* For extents that only a run knows: equal bounds do not imply equal extents, and an anchor's result does not grow by
 * broadcasting like a chain's. So what joins it must have extent 1 where its extents are open. */
static bool keeps_extents(const pass *p, const group *g) {
  const berth__value *out = rewrite_fuse_value_of(p, nodes_of(p)[g->anchor].out[0]);
  for (uint32_t i = 0; i < g->n && out->bounded != 0; i++) {
    const berth__node *node = &nodes_of(p)[g->node[i]];
    for (uint32_t k = 0; k < node->n_in; k++) {
      const berth__value *value = rewrite_fuse_value_of(p, node->in[k]);
      const bool is_made_here =
          value->kind == BERTH_VALUE_NODE && (value->node == g->anchor || rewrite_fuse_has_node(g, value->node));
      for (uint32_t axis = 0; axis < value->shape.rank && !is_made_here; axis++)
        if ((out->bounded >> (axis + out->shape.rank - value->shape.rank) & 1u) && value->shape.dim[axis] != 1)
          return false;
    }
  }
  return true;
}

static void sort_nodes(group *g) {
  for (uint32_t i = 1; i < g->n; i++)
    for (uint32_t k = i; k > 0 && g->node[k - 1] > g->node[k]; k--) {
      const uint32_t swapped = g->node[k];
      g->node[k] = g->node[k - 1];
      g->node[k - 1] = swapped;
    }
}

static void rewrite_fuse_grow(const pass *p, uint32_t sink, group *g) {
  *g = (group){.node = {sink}, .n = 1, .anchor = BERTH__NO_NODE};
  while (g->n < BERTH__CHAIN_STEPS) {
    const uint32_t next = find_joining(p, g, false);
    if (next == BERTH__NO_NODE) break;
    g->node[g->n++] = next;
    if (!rewrite_fuse_has_room(p, g)) {
      g->n--;
      break;
    }
  }
  g->anchor = find_joining(p, g, true);
  if (g->anchor != BERTH__NO_NODE && !keeps_extents(p, g)) g->anchor = BERTH__NO_NODE;
  sort_nodes(g);
}

static void find_groups(pass *p) {
  const berth_graph *graph = p->r.graph;
  for (size_t n = graph->n_nodes; n-- > 0;) {
    group g;
    if (p->group_of[n] != BERTH__NO_NODE || !is_step(p, &graph->nodes[n])) continue;
    if (!berth__is_float(rewrite_fuse_value_of(p, graph->nodes[n].out[0])->type) ||
        p->is_static[graph->nodes[n].out[0]])
      continue;
    rewrite_fuse_grow(p, (uint32_t)n, &g);
    if (g.n < 2 && g.anchor == BERTH__NO_NODE) continue;
    for (uint32_t i = 0; i < g.n; i++) {
      p->group_of[g.node[i]] = (uint32_t)n;
      p->before[g.node[i]] = i > 0 ? g.node[i - 1] : g.anchor;
    }
    if (g.anchor != BERTH__NO_NODE) p->group_of[g.anchor] = (uint32_t)n;
  }
}

/* ---- Writing programs ---- */

static bool rewrite_fuse_add_operand(program *w, berth_value value) {
  for (uint32_t i = 0; i < w->n_operands; i++)
    if (w->operand[i] == value) return true;
  if (w->n_operands == BERTH__CHAIN_OPERANDS) return false;
  w->operand[w->n_operands++] = value;
  return true;
}

static bool add_number(program *w, double number) {
  for (uint32_t i = 0; i < w->n_numbers; i++)
    if (memcmp(&w->number[i], &number, sizeof number) == 0) return true;
  if (w->n_numbers == BERTH__CHAIN_NUMBERS) return false;
  w->number[w->n_numbers++] = number;
  return true;
}

static double rewrite_fuse_number_of(const berth__value *value) {
  double number = 0;
  berth__is_number(value, &number);
  return number;
}

static bool is_skipped(const program *w, berth_value value) { return value == w->skipped[0] || value == w->skipped[1]; }

/* Operands and numbers first: registers of steps are numbered after them. */
static bool rewrite_fuse_collect(const pass *p, const group *g, program *w) {
  bool ok = true;
  for (uint32_t i = 0; i < g->n; i++) {
    const berth__node *node = &nodes_of(p)[g->node[i]];
    if (is_skipped(w, node->out[0])) continue;
    for (uint32_t k = 0; k < node->n_in; k++) {
      if (is_made_by(p, g, node->in[k])) continue;
      const berth__value *value = rewrite_fuse_value_of(p, node->in[k]);
      ok = ok && (is_number_of(p, g, node->in[k]) ? add_number(w, rewrite_fuse_number_of(value))
                                                  : rewrite_fuse_add_operand(w, node->in[k]));
    }
    if (node->op->code == BERTH__OP_clamp)
      for (uint32_t k = 0; k < 2; k++) ok = ok && add_number(w, node->attrs[k].f);
  }
  return ok;
}

static int64_t number_register(const program *w, double number) {
  for (uint32_t i = 0; i < w->n_numbers; i++)
    if (memcmp(&w->number[i], &number, sizeof number) == 0) return w->n_operands + i;
  return 0;
}

static int64_t register_of(const pass *p, const group *g, const program *w, berth_value value) {
  uint32_t step = 0;
  if (is_skipped(w, value)) value = w->stands_for;
  for (uint32_t i = 0; i < w->n_operands; i++)
    if (w->operand[i] == value) return i;
  for (uint32_t i = 0; i < g->n; i++) {
    if (is_skipped(w, nodes_of(p)[g->node[i]].out[0])) continue;
    if (nodes_of(p)[g->node[i]].out[0] == value) return w->n_operands + w->n_numbers + step;
    step++;
  }
  return number_register(w, rewrite_fuse_number_of(rewrite_fuse_value_of(p, value)));
}

static void write_steps(const pass *p, const group *g, program *w) {
  for (uint32_t i = 0; i < g->n; i++) {
    const berth__node *node = &nodes_of(p)[g->node[i]];
    int64_t *step = &w->code[4 * w->n_steps];
    if (is_skipped(w, node->out[0])) continue;
    const bool is_clamp = node->op->code == BERTH__OP_clamp;
    step[0] = is_clamp ? BERTH__CHAIN_clamp : berth__chain_code_of(node->op->code);
    for (uint32_t k = 0; k < 3; k++) {
      step[1 + k] = k < node->n_in ? register_of(p, g, w, node->in[k]) : 0;
      if (is_clamp && k > 0) step[1 + k] = number_register(w, node->attrs[k - 1].f);
    }
    w->n_steps++;
  }
}

/* ---- A bias that becomes the anchor's ---- */

/* The axis of the result along which a bias of the anchor runs: the channels of a conv, otherwise the last. */
static uint32_t bias_axis(const pass *p, const berth__node *anchor) {
  return anchor->op->code == BERTH__OP_conv ? 1 : rewrite_fuse_value_of(p, anchor->out[0])->shape.rank - 1;
}

/* N elements along the axis of a bias, where the result has N, too, and extents of 1 on the other axes. */
static bool rewrite_fuse_is_bias(const pass *p, const berth__node *anchor, berth_value value) {
  const berth__shape *shape = &rewrite_fuse_value_of(p, value)->shape,
                     *out = &rewrite_fuse_value_of(p, anchor->out[0])->shape;
  const uint32_t axis = bias_axis(p, anchor), missing = out->rank - shape->rank;
  int64_t count;
  return p->is_static[value] &&
         rewrite_fuse_value_of(p, value)->type == rewrite_fuse_value_of(p, anchor->out[0])->type &&
         shape->rank <= out->rank && axis >= missing && berth__shape_count(shape, &count) && count == out->dim[axis] &&
         shape->dim[axis - missing] == count;
}

/* Finds the sum of the anchor's result and a bias; returns the operand that is the bias, or BERTH_VALUE_NONE. */
static berth_value find_bias(const pass *p, const group *g, program *w) {
  const berth__node *anchor = &nodes_of(p)[g->anchor];
  const berth_value result = anchor->out[0];
  const uint32_t at = bias_operand(anchor);
  if ((anchor->n_in > at && anchor->in[at] != BERTH_VALUE_NONE) || p->uses.count[result] != 1) return BERTH_VALUE_NONE;
  for (uint32_t i = 0; i < g->n; i++) {
    const berth__node *node = &nodes_of(p)[g->node[i]];
    if (node->op->code != BERTH__OP_add) continue;
    for (uint32_t k = 0; k < 2; k++) {
      if (node->in[k] != result || !rewrite_fuse_is_bias(p, anchor, node->in[1 - k])) continue;
      w->skipped[0] = node->out[0];
      return node->in[1 - k];
    }
  }
  return BERTH_VALUE_NONE;
}

/* Whether it accepts a summand, and has none yet. */
static bool can_add(const berth__node *anchor) {
  for (uint32_t i = 0; i < anchor->op->family->n_attrs; i++)
    if (strcmp(anchor->attrs[i].name, "adds") == 0) return anchor->attrs[i].i == 0;
  return false;
}

/* The same for a sum with a value of the result's shape, which the result may then overwrite. */
static berth_value find_sum(const pass *p, const group *g, program *w) {
  const berth_value result = w->skipped[0] != BERTH_VALUE_NONE ? w->skipped[0] : w->stands_for;
  if (!can_add(&nodes_of(p)[g->anchor]) || p->uses.count[result] != 1) return BERTH_VALUE_NONE;
  for (uint32_t i = 0; i < g->n; i++) {
    const berth__node *node = &nodes_of(p)[g->node[i]];
    if (node->op->code != BERTH__OP_add) continue;
    for (uint32_t k = 0; k < 2; k++) {
      const berth_value other = node->in[1 - k];
      if (node->in[k] != result || other == result || is_made_by(p, g, other)) continue;
      if (rewrite_fuse_value_of(p, other)->type != rewrite_fuse_value_of(p, w->stands_for)->type) continue;
      if (!has_shape_of_sink(p, g, other)) continue;
      w->skipped[1] = node->out[0];
      return other;
    }
  }
  return BERTH_VALUE_NONE;
}

/* As one axis, and as f32 for convolutions with packed weights. */
static berth_status flatten_bias(pass *p, const berth__node *anchor, berth_value *bias, berth_error *err) {
  const berth_attr to = berth_attr_string("to", "f32");
  const bool takes_own = anchor->op->code == BERTH__OP_product || anchor->op->code == BERTH__OP_conv;
  if (rewrite_fuse_value_of(p, *bias)->type != BERTH_F32 && !takes_own)
    BERTH__TRY(berth__rewrite_add(&p->r, BERTH__OP_cast, bias, 1, &to, 1, *bias, "#f32", bias, err));
  const berth__value *value = rewrite_fuse_value_of(p, *bias);
  if (value->shape.rank == 1) return BERTH_OK;
  const berth_dim dim = {.extent = berth__value_count(value)};
  const berth_attr attr = berth_attr_dims("shape", &dim, 1);
  return berth__rewrite_add(&p->r, BERTH__OP_reshape, bias, 1, &attr, 1, *bias, "#flat", bias, err);
}

/* ---- Emitting ---- */

static void rebuild(const pass *p, uint32_t sink, group *g) {
  *g = (group){.anchor = BERTH__NO_NODE};
  for (uint32_t n = sink; n != BERTH__NO_NODE; n = p->before[n]) {
    if (is_anchor(p, &p->r.old[n]))
      g->anchor = n;
    else
      g->node[g->n++] = n;
  }
  sort_nodes(g);
}

static berth_status emit_chain(pass *p, const group *g, berth_value out, berth_error *err) {
  program w = {.skipped = {BERTH_VALUE_NONE, BERTH_VALUE_NONE}, .stands_for = BERTH_VALUE_NONE};
  if (!rewrite_fuse_collect(p, g, &w)) return berth__fail(err, BERTH_INTERNAL, "a fused group has too many operands");
  write_steps(p, g, &w);
  const berth_attr attrs[] = {berth_attr_ints("code", w.code, 4 * w.n_steps),
                              berth_attr_floats("numbers", w.number, w.n_numbers),
                              berth_attr_string("type", berth_type_name(rewrite_fuse_value_of(p, out)->type))};
  return berth__rewrite_make(&p->r, BERTH__OP_chain, w.operand, w.n_operands, attrs, 3, out, err);
}

#define MAX_ATTRS 16

/* The operands of an anchor up to its bias. */
static uint32_t own_operands(const berth__node *anchor, berth_value *in) {
  const uint32_t n = bias_operand(anchor) + 1;
  for (uint32_t i = 0; i < n; i++) in[i] = i < anchor->n_in ? anchor->in[i] : BERTH_VALUE_NONE;
  return n;
}

static berth_status emit_epilogue(pass *p, const group *g, berth_value out, berth_error *err) {
  const berth__node *anchor = &p->r.old[g->anchor];
  program w = {.skipped = {BERTH_VALUE_NONE, BERTH_VALUE_NONE},
               .stands_for = anchor->out[0],
               .operand = {anchor->out[0]},
               .n_operands = 1};
  berth_value in[BERTH__BYTES_EXTRA + 1 + BERTH__CHAIN_OPERANDS];
  berth_attr attrs[MAX_ATTRS];
  const uint32_t n_attrs = anchor->op->family->n_attrs;
  uint32_t n_in = own_operands(anchor, in);
  const berth_value bias = find_bias(p, g, &w);
  if (bias != BERTH_VALUE_NONE) {
    in[n_in - 1] = bias;
    BERTH__TRY(flatten_bias(p, anchor, &in[n_in - 1], err));
  }
  berth_value sum = find_sum(p, g, &w);
  if (anchor->n_in > n_in) sum = anchor->in[n_in]; /* it already had one before */
  if (!rewrite_fuse_collect(p, g, &w))
    return berth__fail(err, BERTH_INTERNAL, "a fused epilogue has too many operands");
  write_steps(p, g, &w);
  memcpy(attrs, anchor->attrs, n_attrs * sizeof *attrs);
  for (uint32_t i = 0; i < n_attrs; i++) {
    if (strcmp(attrs[i].name, "code") == 0) attrs[i] = berth_attr_ints("code", w.code, 4 * w.n_steps);
    if (strcmp(attrs[i].name, "adds") == 0) attrs[i].i = sum != BERTH_VALUE_NONE;
    if (strcmp(attrs[i].name, "numbers") == 0) attrs[i] = berth_attr_floats("numbers", w.number, w.n_numbers);
  }
  if (sum != BERTH_VALUE_NONE) in[n_in++] = sum;
  for (uint32_t i = 1; i < w.n_operands; i++) in[n_in++] = w.operand[i];
  while (in[n_in - 1] == BERTH_VALUE_NONE) n_in--;
  return berth__rewrite_make(&p->r, anchor->op->code, in, n_in, attrs, n_attrs, out, err);
}

static berth_status rewrite_fuse_emit(pass *p, uint32_t sink, berth_error *err) {
  group g;
  rebuild(p, sink, &g);
  const berth_value out = p->r.old[sink].out[0];
  return g.anchor != BERTH__NO_NODE ? emit_epilogue(p, &g, out, err) : emit_chain(p, &g, out, err);
}

static berth_status fuse_rewrite(pass *p, berth_graph *graph, berth_error *err) {
  p->r.graph = graph;
  BERTH__TRY(berth__uses_create(&p->uses, graph, err));
  BERTH__TRY(berth__prelude_values(graph, &p->is_static, err));
  p->group_of = berth__alloc_array(graph->ctx, graph->n_nodes, sizeof *p->group_of);
  p->before = berth__alloc_array(graph->ctx, graph->n_nodes, sizeof *p->before);
  if (p->group_of == NULL || p->before == NULL) return berth__fail_nomem(err, "rewriting a graph");
  for (size_t n = 0; n < graph->n_nodes; n++) p->group_of[n] = p->before[n] = BERTH__NO_NODE;
  find_groups(p);
  p->r.graph = NULL; /* nothing to finish yet */
  BERTH__TRY(berth__rewrite_start(&p->r, graph, err));
  for (uint32_t n = 0; n < p->r.n_old; n++) {
    if (p->group_of[n] == BERTH__NO_NODE)
      BERTH__TRY(berth__rewrite_keep(&p->r, n, err));
    else if (p->group_of[n] == n)
      BERTH__TRY(rewrite_fuse_emit(p, n, err));
  }
  return BERTH_OK;
}

berth_status berth__rewrite_fuse(berth_graph *graph, berth_error *err) {
  pass p = {0};
  berth_status status = fuse_rewrite(&p, graph, err);
  if (p.r.old != NULL) berth__rewrite_finish(&p.r);
  berth__uses_free(&p.uses, graph->ctx);
  berth__free(graph->ctx, p.is_static);
  berth__free(graph->ctx, p.group_of);
  berth__free(graph->ctx, p.before);
  return status;
}
