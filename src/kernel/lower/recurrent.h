/* lstm, gru, rnn and qlstm in the kernel language. */
#ifndef BERTH_KERNEL_LOWER_RECURRENT_H
#define BERTH_KERNEL_LOWER_RECURRENT_H

#include "kernel/lower.h"
#include "ops/recurrent.h"

typedef struct berth__recurrent_sizes {
  int64_t steps, batch, inputs, hidden, directions, gates;
  bool is_quantised; /* qlstm */
} berth__recurrent_sizes;
void berth__recurrent_sizes_of(const berth_op_call *call, berth__op_code code, berth__recurrent_sizes *out);
/* Whether the state fits in shared memory; otherwise it is in scratch, from this element on, and each row has one
 * thread. */
bool berth__recurrent_is_shared(const berth__recurrent_sizes *s, const berth__kernel_limits *limits);
int64_t berth__recurrent_state_at(const berth__recurrent_sizes *s);

/* recurrent_steps.c: the recurrence. */
berth_status berth__recurrent_steps(berth__lowering *l, const berth__recurrent_sizes *s, berth_error *err);

/* activation.c: the activation that an attribute names; `clip` infinite: none. */
berth__x berth__activation_of(berth__kernel *k, const berth__activation *a, berth__x x);
bool berth__activation_equal(const berth__activation *a, const berth__activation *b);

#endif
