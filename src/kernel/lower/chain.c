/* Chains (ops/chain.h), alone and as epilogues. */
#include "ops/chain.h"

#include "kernel/lower/elements.h"
#include "kernel/lower/math.h"

/* A register, and its value as a bool if a step produced one: then 1 and 0 need not be compared again. */
typedef struct value {
  berth__x number, truth;
} value;

static value lower_chain_number(berth__x x) { return (value){.number = x, .truth = BERTH__X_NONE}; }

static value truth(berth__kernel *k, berth__x x) {
  return (value){.number = berth__x_convert(k, BERTH__NUM_F32, x), .truth = x};
}

static berth__x truth_of(berth__kernel *k, value v) {
  return v.truth != BERTH__X_NONE ? v.truth : berth__x_ne(k, v.number, berth__x_f32(k, 0));
}

/* ops/chain.def names steps like ops.def names the ops. */
static berth__op_code lower_chain_op_of(berth__chain_code code) {
  static const uint16_t ops[BERTH__CHAIN_COUNT] = {
#define BERTH__CHAIN(name, n_in) [BERTH__CHAIN_##name] = BERTH__OP_##name,
#include "ops/chain.def"
#undef BERTH__CHAIN
  };
  return (berth__op_code)ops[code];
}

static value lower_chain_with_two(berth__kernel *k, berth__op_code op, value a, value b) {
  switch (op) {
    case BERTH__OP_and:
    case BERTH__OP_or:
    case BERTH__OP_xor: return truth(k, berth__l_binary(k, op, truth_of(k, a), truth_of(k, b), BERTH_BOOL));
    case BERTH__OP_eq:
    case BERTH__OP_ne:
    case BERTH__OP_lt:
    case BERTH__OP_le:
    case BERTH__OP_gt:
    case BERTH__OP_ge: return truth(k, berth__l_compare(k, op, a.number, b.number));
    case BERTH__OP_mul:
      return lower_chain_number(berth__x1(k, BERTH__INST_rounded, berth__x_mul(k, a.number, b.number)));
    default: return lower_chain_number(berth__l_binary(k, op, a.number, b.number, BERTH_F32));
  }
}

static value lower_chain_step_of(berth__kernel *k, const int64_t *step, const value *at) {
  const berth__chain_code code = (berth__chain_code)step[0];
  const value a = at[step[1]];
  if (code == BERTH__CHAIN_not) return truth(k, berth__x1(k, BERTH__INST_not, truth_of(k, a)));
  if (code == BERTH__CHAIN_where)
    return lower_chain_number(berth__x_select(k, truth_of(k, a), at[step[2]].number, at[step[3]].number));
  if (code == BERTH__CHAIN_clamp)
    return lower_chain_number(berth__l_clamp(k, a.number, at[step[2]].number, at[step[3]].number));
  if (berth__chain_arity(code) == 2) return lower_chain_with_two(k, lower_chain_op_of(code), a, at[step[2]]);
  return code == BERTH__CHAIN_identity ? a : lower_chain_number(berth__l_unary(k, lower_chain_op_of(code), a.number));
}

berth__x berth__l_chain(berth__kernel *k, const berth__chain *chain, const berth__x *operands) {
  value at[BERTH__CHAIN_OPERANDS + BERTH__CHAIN_NUMBERS + BERTH__CHAIN_STEPS];
  uint32_t n = 0;
  for (uint32_t i = 0; i < chain->n_operands; i++) at[n++] = lower_chain_number(operands[i]);
  for (uint32_t i = 0; i < chain->n_numbers; i++)
    at[n++] = lower_chain_number(berth__x_f32(k, (float)chain->numbers[i]));
  for (uint32_t i = 0; i < chain->n_steps; i++, n++) at[n] = lower_chain_step_of(k, chain->code + (size_t)4 * i, at);
  return n > 0 ? at[n - 1].number : berth__x_f32(k, 0);
}

static berth__x chain_value(const berth__lowering *l, berth__kernel *k, const berth__x *in, const void *state) {
  berth__x operand[BERTH__CHAIN_OPERANDS];
  for (uint32_t i = 0; i < l->call->n_in; i++) operand[i] = berth__l_cast(k, in[i], l->call->in[i].type, BERTH_F32);
  return berth__l_cast(k, berth__l_chain(k, state, operand), BERTH_F32, l->call->out[0].type);
}

berth_status berth__lower_chain(berth__lowering *l, berth_error *err) {
  berth__chain chain;
  BERTH__TRY(berth__chain_read(&l->call->attrs[BERTH__CHAIN_ATTR_CODE], &l->call->attrs[BERTH__CHAIN_ATTR_NUMBERS],
                               l->call->n_in, &chain, err));
  return berth__l_elements(l, chain_value, &chain, err);
}
