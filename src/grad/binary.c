/* Gradients of element-wise ops of two and three operands; berth__grad_give undoes broadcasting. */
#include "grad/grad.h"

void berth__grad_of_add(berth__grad *d) {
  const berth_value dy = berth__grad_dy(d);
  berth__grad_give(d, 0, dy);
  if (berth__grad_wants(d, 1)) berth__grad_give(d, 1, d->node.op->code == BERTH__OP_add ? dy : berth__grad_neg(d, dy));
}

void berth__grad_of_mul(berth__grad *d) {
  const berth_value dy = berth__grad_dy(d), a = berth__grad_in(d, 0), b = berth__grad_in(d, 1);
  if (berth__grad_wants(d, 0)) berth__grad_give(d, 0, berth__grad_mul(d, dy, b));
  if (berth__grad_wants(d, 1)) berth__grad_give(d, 1, berth__grad_mul(d, dy, a));
}

void berth__grad_of_div(berth__grad *d) {
  const berth_value b = berth__grad_in(d, 1), part = berth__grad_div(d, berth__grad_dy(d), b);
  berth__grad_give(d, 0, part);
  if (berth__grad_wants(d, 1)) berth__grad_give(d, 1, berth__grad_neg(d, berth__grad_mul(d, part, berth__grad_out(d))));
}

/* b a^(b - 1), which is 0 for b = 0, and a^b log a, which is taken as 0 where a is not positive. */
void berth__grad_of_pow(berth__grad *d) {
  const berth_value dy = berth__grad_dy(d), a = berth__grad_in(d, 0), b = berth__grad_in(d, 1);
  const berth_value zero_a = berth__grad_scalar(d, berth__grad_type(d, a), 0);
  const berth_value zero_b = berth__grad_scalar(d, berth__grad_type(d, b), 0);
  if (berth__grad_wants(d, 0)) {
    const berth_value power = berth__grad_2(d, BERTH__OP_pow, a, berth__grad_num(d, BERTH__OP_sub, b, 1));
    const berth_value slope =
        berth__grad_where(d, berth__grad_2(d, BERTH__OP_eq, b, zero_b), zero_a,
                          berth__grad_mul(d, berth__grad_cast(d, b, berth__grad_type(d, a)), power));
    berth__grad_give(d, 0, berth__grad_mul(d, dy, slope));
  }
  if (berth__grad_wants(d, 1)) {
    const berth_value is_positive = berth__grad_2(d, BERTH__OP_gt, a, zero_a);
    const berth_value one = berth__grad_scalar(d, berth__grad_type(d, a), 1);
    const berth_value safe = berth__grad_where(d, is_positive, a, one);
    const berth_value slope = berth__grad_mul(d, berth__grad_out(d), berth__grad_1(d, BERTH__OP_log, safe));
    berth__grad_give(d, 1, berth__grad_where(d, is_positive, berth__grad_mul(d, dy, slope), zero_a));
  }
}

/* All of it to the one that wins; half to each if both are equal. */
void berth__grad_of_extreme(berth__grad *d) {
  const bool is_max = d->node.op->code == BERTH__OP_max;
  const berth_value dy = berth__grad_dy(d);
  for (uint32_t i = 0; i < 2; i++) {
    const berth_value a = berth__grad_in(d, i), b = berth__grad_in(d, 1 - i);
    if (!berth__grad_wants(d, i)) continue;
    const berth_type type = berth__grad_type(d, a);
    const berth_value wins = berth__grad_cast(d, berth__grad_2(d, is_max ? BERTH__OP_gt : BERTH__OP_lt, a, b), type);
    const berth_value ties = berth__grad_cast(d, berth__grad_2(d, BERTH__OP_eq, a, b), type);
    const berth_value share = berth__grad_add(d, wins, berth__grad_scale(d, ties, 0.5));
    berth__grad_give(d, i, berth__grad_mul(d, dy, share));
  }
}

/* a - b n for an integer n. */
void berth__grad_of_mod(berth__grad *d) {
  const berth_value dy = berth__grad_dy(d), a = berth__grad_in(d, 0), b = berth__grad_in(d, 1);
  berth__grad_give(d, 0, dy);
  if (!berth__grad_wants(d, 1)) return;
  const berth_value times =
      berth__grad_1(d, BERTH__OP_round, berth__grad_div(d, berth__grad_sub(d, a, berth__grad_out(d)), b));
  berth__grad_give(d, 1, berth__grad_neg(d, berth__grad_mul(d, dy, times)));
}

void berth__grad_of_where(berth__grad *d) {
  const berth_value dy = berth__grad_dy(d), condition = berth__grad_in(d, BERTH__WHERE_CONDITION);
  const berth_value zero = berth__grad_scalar(d, berth__grad_type(d, dy), 0);
  if (berth__grad_wants(d, BERTH__WHERE_A))
    berth__grad_give(d, BERTH__WHERE_A, berth__grad_where(d, condition, dy, zero));
  if (berth__grad_wants(d, BERTH__WHERE_B))
    berth__grad_give(d, BERTH__WHERE_B, berth__grad_where(d, condition, zero, dy));
}

/* The side that was not chosen gets zeros. */
void berth__grad_of_choose(berth__grad *d) {
  const berth_value dy = berth__grad_dy(d), condition = berth__grad_in(d, BERTH__CHOOSE_CONDITION);
  const berth_value zeros = berth__grad_full_like(d, dy, 0);
  for (uint32_t side = BERTH__CHOOSE_THEN; side <= BERTH__CHOOSE_ELSE; side++) {
    const berth_value in[] = {condition, side == BERTH__CHOOSE_THEN ? dy : zeros,
                              side == BERTH__CHOOSE_THEN ? zeros : dy};
    if (berth__grad_wants(d, side)) berth__grad_give(d, side, berth__grad_op(d, BERTH__OP_choose, in, 3, NULL, 0));
  }
}
