/* States after a failed run: as they were before it, as it would have left them, or lost. A run updates states between
 * a first and a last step, so it is enough to know how far it got. On the CPU, small states are copied before a run and
 * restored after a failure: a counter is updated early, and weights late. */
#include "session/session.h"

/* The size of the largest state that a node updates; 0: none. */
static uint64_t lost_update(const berth_plan *plan, const berth__node *node) {
  uint64_t most = 0;
  for (uint32_t i = 0; i < node->n_out; i++) {
    const berth__place *place = &plan->places[node->out[i]];
    if (place->buffer == BERTH__NO_BUFFER || place->is_view) continue;
    const berth__buffer *buffer = &plan->buffers[place->buffer];
    if (buffer->kind == BERTH__BUFFER_STATE && buffer->size > most) most = buffer->size;
  }
  return most;
}

void berth__session_find_updates(const berth_plan *plan, berth__binding *binding) {
  bool has_loops = false;
  binding->first_update = UINT32_MAX;
  binding->last_update = 0;
  for (uint32_t step = plan->n_prelude; step < plan->n_steps; step++) {
    const berth__node *node = &plan->graph->nodes[plan->order[step]];
    has_loops = has_loops || node->op->code == BERTH__OP_loop_begin;
    const uint64_t size = lost_update(plan, node);
    if (size > BERTH__SMALL_STATE && binding->first_update == UINT32_MAX) binding->first_update = step;
    if (size != 0) binding->last_update = step + 1;
  }
  if (has_loops)
    binding->last_update = UINT32_MAX; /* a step of one iteration may have begun before an update of the next */
}

static bool lost_is_small(const berth_session *session, size_t state) {
  uint64_t size = 0;
  return berth__value_size(&berth__session_current(session)->plan->graph->values[session->graph->states[state]],
                           &size) &&
         size <= BERTH__SMALL_STATE;
}

/* Copies the small states to or from where they are kept. */
static berth_status lost_exchange(berth_session *session, bool is_back, berth_error *err) {
  const berth_graph *graph = berth__session_current(session)->plan->graph;
  for (size_t i = 0; i < session->graph->n_states && session->device == &berth__cpu_device; i++) {
    const berth_value state = session->graph->states[i];
    uint64_t size = 0;
    if (!lost_is_small(session, i)) continue;
    berth__value_size(&graph->values[state], &size);
    unsigned char *kept = session->kept + i * BERTH__SMALL_STATE;
    BERTH__TRY(is_back ? berth__arena_put(session->arena, state, 0, kept, size, err)
                       : berth__arena_get(session->arena, state, kept, size, err));
  }
  return BERTH_OK;
}

berth_status berth__session_keep_small(berth_session *session, berth_error *err) {
  return lost_exchange(session, false, err);
}

void berth__session_lose_states(berth_session *session) {
  if (berth__session_current(session)->last_update == 0) return; /* it updates no state */
  for (size_t i = 0; i < session->graph->n_states; i++) session->is_lost[i] = true;
}

/* begun: one more than the last step that may have begun. */
void berth__session_note_failure(berth_session *session) {
  const berth__binding *binding = berth__session_current(session);
  const bool is_far = session->begun == UINT32_MAX;             /* on a GPU, it is not known how far the run got */
  if (session->begun == 0 || binding->last_update == 0) return; /* nothing was updated */
  if (!is_far && session->begun > binding->last_update) return; /* everything was updated */
  if (!is_far && session->begun <= binding->first_update && lost_exchange(session, true, NULL) == BERTH_OK) return;
  berth__session_lose_states(session);
}

void berth__session_keep_states(berth_session *session) {
  for (size_t i = 0; i < session->graph->n_states; i++) session->is_lost[i] = false;
}

int berth_session_states_lost(const berth_session *session) {
  if (session == NULL) return 0;
  for (size_t i = 0; i < session->graph->n_states; i++)
    if (session->is_lost[i]) return 1;
  return 0;
}

berth_status berth__session_check_lost(const berth_session *session, berth_error *err) {
  if (!berth_session_states_lost(session)) return BERTH_OK;
  return berth__fail(err, BERTH_INVALID,
                     "the states are lost: a run failed while it updated them. Restore, reset or write all of them");
}
