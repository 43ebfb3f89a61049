/* Packs weights directly from int8 or f16 if the model stores them so: pack_weights takes the operand of a dequantize
 * or a cast, and the weight is never in memory as f32 in addition to its packed form. */
#include "rewrite/pattern.h"
#include "rewrite/rewrite.h"

#define MOST_TURNS 4 /* consecutive transposes */

/* The operands of a pack_weights before its weight was converted to f32. */
typedef struct raw {
  berth_value weight, scale, zero; /* the last two may be BERTH_VALUE_NONE */
  berth__node
      turn[MOST_TURNS]; /* later transposes, last one first; copies, because nodes move while others are added */
  uint32_t n_turns;
} raw;

static bool is_raw_type(berth_type type) {
  return type == BERTH_I8 || type == BERTH_U8 || type == BERTH_F16 || type == BERTH_BF16;
}

/* The axis that becomes the last one after the transposes. */
static int64_t column_axis(const berth_graph *graph, const berth__node *pack, const raw *found) {
  int64_t axis = graph->values[pack->in[BERTH__PACK_WEIGHT]].shape.rank - 1;
  for (uint32_t i = 0; i < found->n_turns; i++) {
    const berth_attr *perm = &found->turn[i].attrs[BERTH__TRANSPOSE_PERM];
    const int64_t rank = graph->values[found->turn[i].in[0]].shape.rank;
    axis = perm->count != 0 ? perm->ints[axis] : rank - 1 - axis;
    if (axis < 0) axis += rank;
  }
  return axis;
}

/* Whether an operand that broadcasts to the weight has a single element, or one per column. */
static bool is_per_column(const berth_graph *graph, berth_value value, uint32_t rank, int64_t axis) {
  if (value == BERTH_VALUE_NONE) return true;
  const berth__shape *shape = &graph->values[value].shape;
  for (uint32_t i = 0; i < shape->rank; i++)
    if (shape->dim[i] != 1 && (int64_t)i + rank - shape->rank != axis) return false;
  return true;
}

static bool find_raw(const berth_graph *graph, const berth__node *pack, raw *found) {
  const berth__node *turn, *made;
  berth_value value = pack->in[BERTH__PACK_WEIGHT];
  *found = (raw){.scale = BERTH_VALUE_NONE, .zero = BERTH_VALUE_NONE};
  if (berth__node_is_bounded(graph, pack)) return false;
  if (berth__operand_of(pack, BERTH__PACK_ZERO) != BERTH_VALUE_NONE) return false;
  while ((turn = berth__maker(graph, value, BERTH__OP_transpose)) != NULL && found->n_turns < MOST_TURNS) {
    found->turn[found->n_turns++] = *turn;
    value = turn->in[0];
  }
  if (graph->values[value].type != BERTH_F32) return false;
  const bool is_cast = (made = berth__maker(graph, value, BERTH__OP_cast)) != NULL;
  if (!is_cast && (made = berth__maker(graph, value, BERTH__OP_dequantize)) == NULL) return false;
  found->weight = made->in[0];
  const berth__value *weight = &graph->values[found->weight];
  if (is_cast) return is_raw_type(weight->type);
  found->scale = made->in[BERTH__QUANTIZE_SCALE];
  found->zero = berth__operand_of(made, BERTH__QUANTIZE_ZERO_POINT);
  const int64_t axis = column_axis(graph, pack, found);
  return (weight->type == BERTH_I8 || weight->type == BERTH_U8) &&
         is_per_column(graph, found->scale, weight->shape.rank, axis) &&
         is_per_column(graph, found->zero, weight->shape.rank, axis);
}

/* Reshapes it to one axis. */
static berth_status pack_raw_flatten(berth__rewrite *r, berth_value *value, berth_error *err) {
  if (*value == BERTH_VALUE_NONE || r->graph->values[*value].shape.rank == 1) return BERTH_OK;
  const berth_dim count = {.extent = berth__value_count(&r->graph->values[*value])};
  const berth_attr shape = berth_attr_dims("shape", &count, 1);
  return berth__rewrite_add(r, BERTH__OP_reshape, value, 1, &shape, 1, *value, "#flat", value, err);
}

static berth_status pack_raw_emit(berth__rewrite *r, const berth__node *pack, const raw *found, berth_error *err) {
  const berth_value other = berth__operand_of(pack, BERTH__PACK_SCALE);
  berth_value in[] = {
      [BERTH__PACK_WEIGHT] = found->weight, [BERTH__PACK_SCALE] = found->scale, [BERTH__PACK_ZERO] = found->zero};
  for (uint32_t i = found->n_turns; i-- > 0;)
    BERTH__TRY(berth__rewrite_add(r, BERTH__OP_transpose, &in[0], 1, &found->turn[i].attrs[BERTH__TRANSPOSE_PERM], 1,
                                  found->turn[i].out[0], "#raw", &in[0], err));
  BERTH__TRY(pack_raw_flatten(r, &in[BERTH__PACK_SCALE], err));
  BERTH__TRY(pack_raw_flatten(r, &in[BERTH__PACK_ZERO], err));
  if (in[BERTH__PACK_SCALE] == BERTH_VALUE_NONE) {
    in[BERTH__PACK_SCALE] = other;
  } else if (other != BERTH_VALUE_NONE) {
    const berth_value factors[] = {other, in[BERTH__PACK_SCALE]};
    BERTH__TRY(berth__rewrite_add(r, BERTH__OP_mul, factors, 2, NULL, 0, other, "#scale", &in[BERTH__PACK_SCALE], err));
  }
  const uint32_t n_in = in[BERTH__PACK_ZERO] != BERTH_VALUE_NONE    ? 3
                        : in[BERTH__PACK_SCALE] != BERTH_VALUE_NONE ? 2
                                                                    : 1;
  return berth__rewrite_make(r, BERTH__OP_pack_weights, in, n_in, pack->attrs, pack->op->family->n_attrs, pack->out[0],
                             err);
}

static bool has_raw(const berth_graph *graph) {
  raw found;
  for (size_t n = 0; n < graph->n_nodes; n++)
    if (graph->nodes[n].op->code == BERTH__OP_pack_weights && find_raw(graph, &graph->nodes[n], &found)) return true;
  return false;
}

berth_status berth__rewrite_pack_raw(berth_graph *graph, berth_error *err) {
  berth__rewrite r;
  berth_status status = BERTH_OK;
  if (!has_raw(graph)) return BERTH_OK;
  BERTH__TRY(berth__rewrite_start(&r, graph, err));
  for (size_t n = 0; n < r.n_old && status == BERTH_OK; n++) {
    raw found;
    const bool is_raw = r.old[n].op->code == BERTH__OP_pack_weights && find_raw(graph, &r.old[n], &found);
    status = is_raw ? pack_raw_emit(&r, &r.old[n], &found, err) : berth__rewrite_keep(&r, n, err);
  }
  berth__rewrite_finish(&r);
  return status;
}
