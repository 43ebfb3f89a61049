/* lstm, gru, rnn. What the inputs contribute to the gates does not depend on time: it is one product for all steps,
 * into scratch (qlstm has it as an operand). Then a workgroup goes through time for each row of the batch in each
 * direction, with its state in shared memory. */
#include "kernel/lower/recurrent.h"

#include "kernel/lower/tile.h"

/* ---- Sizes ---- */

void berth__recurrent_sizes_of(const berth_op_call *call, berth__op_code code, berth__recurrent_sizes *out) {
  const berth_tensor *x = &call->in[BERTH__RECURRENT_X], *own = &call->in[BERTH__RECURRENT_RECURRENCE];
  *out = (berth__recurrent_sizes){.steps = x->dim[0],
                                  .batch = x->dim[code == BERTH__OP_qlstm ? 2 : 1],
                                  .inputs = x->dim[2],
                                  .is_quantised = code == BERTH__OP_qlstm,
                                  .hidden = own->dim[2],
                                  .directions = own->dim[0],
                                  .gates = berth__recurrent_gates(code)};
}

/* The state of a row: two buffers for h, and c (lstm) or the h that has passed the reset gate (gru). */
static int64_t lower_recurrent_state_of(const berth__recurrent_sizes *s) { return 3 * s->hidden; }

bool berth__recurrent_is_shared(const berth__recurrent_sizes *s, const berth__kernel_limits *limits) {
  return lower_recurrent_state_of(s) <= (int64_t)(limits->shared_bytes / 4);
}

int64_t berth__recurrent_state_at(const berth__recurrent_sizes *s) {
  return s->is_quantised ? 0 : s->steps * s->directions * s->batch * s->gates * s->hidden;
}

uint64_t berth__scratch_of_recurrent(const berth_op_call *call, const berth__kernel_limits *limits) {
  berth__recurrent_sizes s;
  berth__recurrent_sizes_of(call, berth__call_code(call), &s);
  const int64_t states =
      berth__recurrent_is_shared(&s, limits) ? 0 : s.directions * s.batch * lower_recurrent_state_of(&s);
  return 4 * (uint64_t)(berth__recurrent_state_at(&s) + states);
}

/* ---- The inputs' contribution: [steps, directions, batch, gates * hidden] ---- */

enum { /* its axes */
  STEP,
  DIRECTION,
  ROW,
  GATE
};

static void finish_gate(const berth__tile *tile, berth__kernel *k, const berth__x *place, berth__x sum) {
  if (berth__l_has(tile->l, BERTH__RECURRENT_BIAS))
    sum = berth__x_add(k, sum, berth__l_load(tile->l, k, BERTH__RECURRENT_BIAS, place[1]));
  berth__x_store(k, berth__l_scratch(k, BERTH_F32), place[0], sum);
}

static berth_status lower_gates(berth__lowering *l, const berth__recurrent_sizes *s, berth_error *err) {
  const berth_tensor *x = &l->call->in[BERTH__RECURRENT_X];
  const int64_t gates = s->gates * s->hidden;
  berth__tile tile;
  berth__tile_init(&tile, l, BERTH__NUM_F32);
  tile.finish = finish_gate;
  tile.goes_elsewhere = true;
  tile.n_views = 2;
  tile.views[0] = (berth__tile_view){.stride = {s->directions * s->batch * gates, s->batch * gates, gates, 1}};
  tile.views[1] = (berth__tile_view){.stride = {0, 2 * gates, 0, 1}};
  berth__tile_axis(&tile.batch, s->directions, DIRECTION, 1);
  berth__tile_axis(&tile.rows, s->steps, STEP, 1);
  berth__tile_axis(&tile.rows, s->batch, ROW, 1);
  berth__tile_axis(&tile.columns, gates, GATE, 1);
  berth__tile_axis(&tile.depth, s->inputs, 0, 0);
  tile.left.line[0] = x->stride[0];
  tile.left.line[1] = x->stride[1];
  tile.left.depth[0] = x->stride[2];
  tile.right.operand = BERTH__RECURRENT_WEIGHT;
  tile.right.batch[0] = gates * s->inputs;
  tile.right.line[0] = s->inputs;
  tile.right.depth[0] = 1;
  return berth__tile_lower(&tile, err);
}

berth_status berth__lower_recurrent(berth__lowering *l, berth_error *err) {
  berth__recurrent_sizes s;
  if (l->call->in[BERTH__RECURRENT_WEIGHT].rank == 4 || l->call->in[BERTH__RECURRENT_RECURRENCE].rank == 4)
    return berth__fail(err, BERTH_UNSUPPORTED,
                       "packed weights of recurrent layers have no kernel in the kernel language");
  berth__recurrent_sizes_of(l->call, l->op->code, &s);
  if (s.directions * s.batch * s.hidden == 0) return BERTH_OK;
  if (!s.is_quantised) BERTH__TRY(lower_gates(l, &s, err));
  return berth__recurrent_steps(l, &s, err);
}
