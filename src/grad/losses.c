/* Gradients of losses. */
#include "grad/grad.h"

/* The losses spare the gradient a pass over the logits, but of 16 bits they have too few digits. */
void berth__grad_of_cross_entropy(berth__grad *d) {
  const berth_value losses = berth__grad_out(d);
  const berth_type type = berth__grad_type(d, losses);
  const bool has_digits = type == BERTH_F32 || type == BERTH_F64;
  const berth_value in[] = {berth__grad_in(d, BERTH__CROSS_ENTROPY_LOGITS),
                            berth__grad_in(d, BERTH__CROSS_ENTROPY_LABELS), berth__grad_dy(d),
                            has_digits ? losses : BERTH_VALUE_NONE};
  const berth_value made = berth__grad_op(d, BERTH__OP_cross_entropy_grad, in, has_digits ? 4 : 3, d->node.attrs,
                                          d->node.op->family->n_attrs);
  berth__grad_give(d, BERTH__CROSS_ENTROPY_LOGITS, made);
}

/* (softmax(logits) - 1 at the label) dy, expanded; 0 for ignored labels. The losses are a function of the logits, and
 * have no gradient of their own. */
void berth__grad_of_cross_entropy_grad(berth__grad *d) {
  const size_t first = d->graph->n_nodes;
  const berth_value logits = berth__grad_in(d, BERTH__CROSS_ENTROPY_LOGITS);
  const berth_value given = berth__grad_in(d, BERTH__CROSS_ENTROPY_LABELS);
  const berth_type type = berth__grad_type(d, logits);
  const berth__shape shape = berth__grad_shape(d, logits);
  const int64_t last = -1, classes = shape.rank == 0 ? 0 : shape.dim[shape.rank - 1];
  const berth_attr axis = berth_attr_int("axis", -1);
  if (!berth__grad_fixed(d, logits)) return;
  const berth_value bounds[] = {berth__grad_scalar(d, BERTH_I64, 0), berth__grad_scalar(d, BERTH_I64, (double)classes),
                                berth__grad_scalar(d, BERTH_I64, 1)};
  const berth_value all = berth__grad_op(d, BERTH__OP_range, bounds, 3, NULL, 0);
  const berth_value labels = berth__grad_unsqueeze(d, berth__grad_cast(d, given, BERTH_I64), &last, 1);
  const berth_value ignored =
      berth__grad_num(d, BERTH__OP_eq, labels, (double)d->node.attrs[BERTH__CROSS_ENTROPY_IGNORED].i);
  const berth_value right = berth__grad_cast(d, berth__grad_2(d, BERTH__OP_eq, labels, all), type);
  const berth_value p = berth__grad_op(d, BERTH__OP_softmax, &logits, 1, &axis, 1);
  const berth_value dy = berth__grad_unsqueeze(d, berth__grad_in(d, BERTH__CROSS_ENTROPY_DY), &last, 1);
  const berth_value made = berth__grad_mul(d, berth__grad_sub(d, p, right), dy);
  const berth_value out = berth__grad_where(d, ignored, berth__grad_scalar(d, type, 0), made);
  if (berth__grad_ok(d)) berth__grad_through(d, first, &out);
}
