/* Running a session, in one call or as submit and wait. */
#include "base/cancel.h"
#include "session/session.h"

berth_status berth__session_idle(const berth_session *session, berth_error *err) {
  if (!session->is_submitted) return BERTH_OK;
  return berth__fail(err, BERTH_INVALID, "the session has a run that was submitted; call berth_session_wait first");
}

void berth__session_finish(berth_session *session) {
  if (!session->is_submitted) return;
  session->is_submitted = false;
  if (session->device->wait(berth__session_current(session)->program, NULL) != BERTH_OK)
    berth__session_note_failure(session);
}

/* Everything that a run reads must be set. */
static berth_status session_run_check_ready(const berth_session *session, berth_error *err) {
  const berth_graph *graph = session->graph;
  for (size_t i = 0; i < graph->n_params; i++)
    if (!session->is_set[graph->params[i]])
      return berth__fail(err, BERTH_INVALID, "param '%s' has no weights yet; set them with berth_session_set_param",
                         graph->values[graph->params[i]].name);
  for (size_t i = 0; i < graph->n_inputs; i++)
    if (!berth__session_in_arena(session, graph->inputs[i]) && session->outside[graph->inputs[i]] == NULL)
      return berth__fail(err, BERTH_INVALID,
                         "input '%s' lies outside the arena and has no memory yet; see berth_session_use",
                         graph->values[graph->inputs[i]].name);
  return BERTH_OK;
}

static berth_status session_run_check_files(const berth_session *session, berth_error *err) {
  if (berth__session_current(session)->reads_files) BERTH__TRY(berth__graph_check_files(session->graph, err));
  return berth__session_check_mapped(session, err);
}

berth_status berth_session_submit(berth_session *session, berth_error *err) {
  if (session == NULL) return berth__fail(err, BERTH_INVALID, "the session is NULL");
  BERTH__TRY(berth__session_idle(session, err));
  BERTH__TRY(session_run_check_ready(session, err));
  BERTH__TRY(berth__session_check_lost(session, err));
  BERTH__TRY(berth__check_cancel(session->cancel, "the run", err));
  BERTH__TRY(berth__session_settle(session, err));
  BERTH__TRY(berth__session_prepare(session, err));
  BERTH__TRY(session_run_check_files(session, err));
  BERTH__TRY(berth__session_keep_small(session, err));
  berth__observer observer = session->observer;
  observer.cancel = session->cancel;
  observer.begun = &session->begun;
  session->begun = 0;
  BERTH__TRY(session->device->submit(berth__session_current(session)->program, &observer, err));
  session->is_submitted = true;
  return BERTH_OK;
}

berth_status berth_session_wait(berth_session *session, berth_error *err) {
  if (session == NULL) return berth__fail(err, BERTH_INVALID, "the session is NULL");
  if (!session->is_submitted)
    return berth__fail(err, BERTH_INVALID, "there is no run to wait for; call berth_session_submit first");
  session->is_submitted = false;
  berth_status status = session->device->wait(berth__session_current(session)->program, err);
  if (status != BERTH_OK) {
    berth__session_note_failure(session);
    return status;
  }
  status = session_run_check_files(session, err); /* missing pages read as zeros */
  if (status != BERTH_OK) berth__session_lose_states(session);
  return status;
}

berth_status berth_session_run(berth_session *session, berth_error *err) {
  BERTH__TRY(berth_session_submit(session, err));
  return berth_session_wait(session, err);
}
